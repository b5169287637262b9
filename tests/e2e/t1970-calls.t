# SPDX-License-Identifier: MIT
# once
# How many system calls the daily commands make: each is little, and they creep in one by one. The times are in bench/.
. "$(dirname "$0")/../lib/tap.sh"

# calls COMMAND...: all of them in `trace`, one a line. Looks for a second room above are left out: there are as many as
# the scratch folder is deep.
calls() {
	strace -f -qq -o raw -- "$@" >out 2>err </dev/null
	grep -E '^[0-9]+ +[a-z]' raw | grep -Ev 'lstat\("[^"]*/\.mailroom/room", 0x.*ENOENT' >trace
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
mr --as alice send bob -m 'the first one makes .Sent' >/dev/null 2>&1
mr --as bob drain >/dev/null 2>&1
sleep 0.1 # a folder that changed this moment is read more than once

at_most 55 'a hook without mail' "$BIN" --as bob check --inject
same '' "$(cat out err)" 'says nothing'
same 0 "$(syncs)" 'syncs nothing'
silent_about trace 'utimensat' 'and does not say again that bob was seen'
silent_about trace '/proc/' 'nor looks at processes'

export CLAUDE_CODE_SESSION_ID=calls-1
mr register carol >/dev/null 2>&1
sleep 0.1
at_most 72 'a hook of a bound session' "$BIN" check --inject
unset CLAUDE_CODE_SESSION_ID

at_most 80 'send to one' "$BIN" --as alice send bob -m hi
same 3 "$(syncs)" 'three syncs'
sleep 0.1
at_most 95 'inbox with one unread' "$BIN" --as bob inbox
finish
