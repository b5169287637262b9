# SPDX-License-Identifier: MIT
# once
# How many system calls the daily commands make: each is little, and they creep in one by one. The times are in bench/.
. "$(dirname "$0")/../lib/tap.sh"

# calls COMMAND...: all of them in `trace`, one a line. Looks for a second room above are left out: there are as many as
# the scratch folder is deep. Calls of the allocator are left out as well: they depend on the C library.
calls() {
	strace -f -qq -o raw -- "$@" >out 2>err <"${in:-/dev/null}"
	grep -E '^[0-9]+ +[a-z]' raw | grep -Ev '^[0-9]+ +(mmap|munmap|mremap|brk|madvise)\(|lstat\("[^"]*/\.mailroom/room", 0x.*ENOENT' >trace
	wc -l <trace | tr -d ' '
}
# at_most LIMIT NAME COMMAND...
at_most() {
	limit=$1 name=$2; shift 2
	n=$(calls "$@")
	if [ "$n" -gt 0 ] && [ "$n" -le "$limit" ]; then
		ok "$name: $n of $limit"
	else
		echo "# $n system calls, $limit are allowed:"; sed 's/^[0-9]* *//; s/^\(.\{100\}\).*/\1/' trace | note
		not_ok "$name"
	fi
}
syncs() { grep -c 'f.*sync(' trace; }

if ! strace -qq -o raw -- "$BIN" --version >/dev/null 2>&1 || [ "$(calls "$BIN" --version)" -gt 15 ]; then
	skip 'system calls are counted' 'strace does not work here, or this is no static command'
	finish
	exit 0
fi
git init -q .
room alice bob
sed -i "s/^Sync: .*/Sync: full/" .mailroom/room # whatever disk this runs on
calls "$BIN" --as alice send bob -m 'the first of an agent' >/dev/null
same 3 "$(syncs)" 'the first send of an agent syncs no more than every other'
mr --as bob drain >/dev/null 2>&1
# settled AGENT: nothing happened for a while. A folder that changed this moment is read more than once.
settled() { touch -d '1 minute ago' .mailroom/spool .mailroom/holds ".mailroom/agents/$1/new" ".mailroom/agents/$1/cur"; }
settled bob

at_most 69 'a hook without mail, the first time' "$BIN" --as bob check --inject
at_most 69 'a hook without mail' "$BIN" --as bob check --inject
same '' "$(cat out err)" 'says nothing'
same 0 "$(syncs)" 'syncs nothing'
silent_about trace 'utimensat' 'and does not say again that bob was seen'
silent_about trace '/proc/' 'nor looks at processes'

export CLAUDE_CODE_SESSION_ID=calls-1
mr register carol >/dev/null 2>&1
settled carol; mr check --inject
at_most 67 'check of a bound session' "$BIN" check --inject
unset CLAUDE_CODE_SESSION_ID
printf '{"session_id":"calls-1","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt":"x"}' "$(pwd -P)" >event
in=event; at_most 70 'a hook of a bound session' "$BIN" hook claude-code; in=

# ---- nothing remembered hides mail ----
told() { mr --as bob check --inject | grep -c "$1"; }
settled bob; mr --as bob check --inject >/dev/null
mr --as alice send bob -s 'after the look' -m x >/dev/null 2>&1
same 1 "$(told 'after the look')" 'mail that comes after a look without mail is told'
mr --as bob drain >/dev/null 2>&1; settled bob; mr --as bob check --inject >/dev/null
file=$(ls .mailroom/agents/alice/.Sent.*/cur/* | head -n 1); cp "$file" .mailroom/agents/bob/tmp/1; mv .mailroom/agents/bob/tmp/1 ".mailroom/agents/bob/cur/1700000000.by-hand:2,"
same 1 "$(mr --as bob check --inject | grep -c 'from alice')" 'so is what another program puts there'
rm .mailroom/agents/bob/cur/1700000000.by-hand*; settled bob; mr --as bob check --inject >/dev/null
mr --as alice send bob -s 'touched' -m x >/dev/null 2>&1; touch .mailroom/agents/bob/new .mailroom/agents/bob/cur
same 1 "$(told touched)" 'times that somebody sets by hand hide nothing'
mr --as bob drain >/dev/null 2>&1; i=0 missed=0
while [ $i -lt 30 ]; do # a look and a delivery as near as they come
	mr --as bob check --inject >/dev/null & mr --as alice send bob -s "near $i" -m x >/dev/null 2>&1; wait
	[ "$(mr --as bob inbox --json | grep -c "near $i")" = 1 ] || missed=$((missed + 1))
	settled bob; mr --as bob check --inject >/dev/null; mr --as bob drain >/dev/null 2>&1; settled bob; i=$((i + 1))
done
same 0 $missed 'however near they come'
mr --as alice send bob -s 'held by the dead' -m x >/dev/null 2>&1
n=40; while [ $n -lt 200 ] && [ -z "$(find .mailroom/agents/bob/held -type f)" ]; do
	MAILROOM_FAULT=kill-after:$n "$DEVBIN" --as bob drain </dev/null >/dev/null 2>&1; n=$((n + 5))
done
if [ -n "$(find .mailroom/agents/bob/held -type f)" ]; then
	same 1 "$(told 'held by the dead')" 'mail that a killed command had in its hands is told at the next look'
else
	skip 'mail that a killed command had in its hands is told at the next look' 'it was not cut off in the middle'
fi
mr --as bob drain >/dev/null 2>&1; settled bob
mr --as bob check --inject >/dev/null; mr --as bob check --inject >/dev/null
records() { ls .mailroom/spool | grep -v '\.'; }
n=20; while [ $n -lt 120 ] && [ -z "$(records)" ]; do
	MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice send bob alice -s 'cut off' -m x </dev/null >/dev/null 2>&1; n=$((n + 1))
	[ -n "$(records)" ] || rm -f .mailroom/spool/* # each message without a record is one more look in the next try
done
if [ -n "$(records)" ]; then
	mr --as bob check --inject >one; [ "$(grep -c 'cut off' one)" -ge 1 ] && [ -z "$(records)" ] && ok 'a send that was cut off is completed by a look' || { ls .mailroom/spool | note; note <one; not_ok 'a send that was cut off is completed by a look'; }
else
	skip 'a send that was cut off is completed by a look' 'it was not cut off in the middle'
fi
mr --as bob drain >/dev/null 2>&1

mr --as alice check >/dev/null 2>&1 # it was seen a moment ago: that is noted every 5 s, by one more call
# On a busy machine one more: a mailbox that was opened 20 ms ago is asked whether it is still that agent's.
at_most 74 'send to one' "$BIN" --as alice send bob -m hi
same 3 "$(syncs)" 'three syncs'
sleep 0.1
at_most 77 'inbox with one unread' "$BIN" --as bob inbox

# ---- what is to be done many times ----
i=0; while [ $i -lt 40 ]; do i=$((i + 1)); XDG_STATE_HOME=$scratch/others "$BIN" register "crew/a$i" >/dev/null 2>&1 </dev/null; done
all=$(ls -d .mailroom/agents/crew/*/ | wc -l)
at_most $((100 + 9 * (all + 3))) "send @all to $all and a few" "$BIN" --as alice send @all -m hi
same 1 "$(grep -c 'crew/a17/' trace)" 'looks for each of them once'
i=0; while [ $i -lt 30 ]; do i=$((i + 1)); printf '{"to":"bob","body":"letter %s"}\n' $i; done | "$BIN" --as alice send --batch >/dev/null 2>&1
all=$(find .mailroom/agents/bob -path "*.Sent*" -prune -o -name "*.mr*" -print | wc -l); mkdir copy; "$BIN" init copy >/dev/null 2>&1 </dev/null
at_most $((250 + 45 * all)) "an export of $all" "$BIN" export --to copy bob; same "copied $all, already there 0, skipped 0" "$(cat out)" "all of it"
finish
