# SPDX-License-Identifier: MIT
# once
# mailroom hook --wait: one waiter for each session, which wakes it for what it was not told of, and not for ever.
. "$(dirname "$0")/../lib/tap.sh"
unset TMUX TMUX_PANE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED
waiters=
trap 'for p in $waiters; do kill $p 2>/dev/null; done; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT

event() { printf '{"session_id":"%s","cwd":"%s","hook_event_name":"%s","source":"startup","stop_hook_active":false}' "$1" "$PWD" "$2"; }
hook() { event "$1" "$2" | "$BIN" hook claude-code; }
# waiter NAME SESSION [EVENT]: starts one in the background; its text is in NAME.err, its exit code in NAME.rc.
waiter() {
	rm -f "$1.rc" "$1.err"
	event "$2" "${3:-Stop}" >"$1.in"
	{ "$BIN" hook claude-code --wait --gather "${gather:-0}" <"$1.in" >"$1.out" 2>"$1.err" & echo $! >"$1.pid"; wait $!; echo $? >"$1.rc"; } &
	waiters="$waiters $!"
	n=0; while [ "$(ls "$XDG_STATE_HOME/mailroom/waiters" 2>/dev/null | wc -l)" -eq 0 ] && [ ! -s "$1.rc" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
}
# ends NAME [TENTHS]: its exit code, or "waits" after so many tenths of a second.
ends() {
	n=0; while [ ! -s "$1.rc" ] && [ $n -lt "$((${2:-600} * 2))" ]; do sleep 0.05; n=$((n + 1)); done
	if [ -s "$1.rc" ]; then cat "$1.rc"; else echo waits; fi
}

mkdir web && cd web
waiter none s0
same 0 "$(ends none)" 'without a room nobody waits'
"$BIN" init --name town >/dev/null 2>&1 </dev/null
mr register bob >/dev/null 2>&1; mr register carol >/dev/null 2>&1
hook s1 SessionStart >/dev/null

# `claude -p` waits for every hook to end: with a waiter beside it, it never would
CLAUDE_CODE_ENTRYPOINT=sdk-cli; export CLAUDE_CODE_ENTRYPOINT
waiter none s1
same 0 "$(ends none)" 'in a run without a terminal nobody waits'
CLAUDE_CODE_ENTRYPOINT=cli CLAUDE_CODE_SESSION_ATTENDED=0; export CLAUDE_CODE_SESSION_ATTENDED
waiter none s1
same 0 "$(ends none)" 'nor in one that nobody attends'
unset CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED

# ---- mail, nudges ----
waiter a s1
same waits "$(ends a 6)" 'it waits'
send bob web 'are you there' >/dev/null
same 2 "$(ends a)" 'mail wakes'
says a.err '^- [0-9a-z]{26} from bob: are you there$' 'with what it is, on standard error'
same '' "$(cat a.out)" 'and nothing on standard output'
same '' "$(hook s1 UserPromptSubmit)" 'which the session need not be told again'
waiter a s1
same waits "$(ends a 6)" 'what it was told of does not wake it again, read or not'
mr --as bob nudge web -m 'come on' >nudged 2>&1
same 2 "$(ends a)" 'a nudge wakes'
says a.err 'from bob. come on$' 'with its words'
# Another process rings, or holds that lock for as long as it is stopped: the waiter looks now and then, and does not turn in circles.
held=$(find .mailroom/records -name '*ringer*' | head -n 1)
flock "$held" sh -c 'echo >../held; while [ -e ../held ]; do sleep 0.05; done' & holder=$!
n=0; while [ ! -e ../held ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
MAILROOM_DEBUG=1; export MAILROOM_DEBUG
waiter a s1
send bob web 'while another rings' >/dev/null
same waits "$(ends a 24)" 'while another process rings it waits'
tries=$(grep -c 'record_lock.*ringer' a.err)
[ "$tries" -ge 2 ] && [ "$tries" -le 8 ] && ok "and tries now and then" || not_ok "and tries now and then: $tries times in 2.4 s"
unset MAILROOM_DEBUG
rm ../held
same 2 "$(ends a)" 'then it rings'
wait $holder
says nudged '^shown to web, who was waiting \(bell: claude-code-hook, told\)$' 'and who sent it knows, and which bell it was'
same 'queued none' "$(mr --as bob nudge web -m 'nobody there' --json --patience 0s | jq -r '"\(.way) \(.bell)"')" 'without a waiter there is no bell'
id=$(mr --as bob send web -s 'why not' -m x 2>/dev/null)
mr --as bob why "$id" >why 2>&1
hook s1 UserPromptSubmit >/dev/null
mr --as bob why "$id" >why 2>&1; says why 'announced +listed to life 1 of .web. by prompt at' 'why names the door by which mail was announced'
send bob web 'before the prompt' >/dev/null
hook s1 UserPromptSubmit >/dev/null
waiter a s1
same waits "$(ends a 6)" 'what the session was told at a prompt does not wake it'
mr --as web dnd on >/dev/null 2>&1
send bob web 'do not disturb' >/dev/null
same waits "$(ends a 6)" 'who is not to be disturbed is not woken'
mr --as web dnd off >/dev/null 2>&1
same 2 "$(ends a)" 'but afterwards'

# ---- a kill while it rings: what is noted as begun is no open ring ----
pi() { printf '{"session_id":"p1","cwd":"%s","hook_event_name":"%s","source":"startup","prompt":"%s"}' "$PWD" "$1" "${2:-}"; }
mkdir -p pie && cd pie && pi SessionStart | "$BIN" hook pi >/dev/null
send bob pie 'ring once' >/dev/null
kills=0 rings=0
for at in $(seq 20 20 180) $(seq 185 4 400); do
	pi Stop | MAILROOM_FAULT=kill-before:$at timeout 20 "$DEVBIN" hook pi --wait --gather 0 >/dev/null 2>ring
	rc=$?
	case $rc in 137) kills=$((kills + 1)) ;; 2) rings=$((rings + 1)); break ;; *) break ;; esac
	grep -q ringing ../.mailroom/records/bell/pie/* 2>/dev/null && touch begun
	[ ! -s ring ] || break # it came through, and was not noted
done
check "killed $kills times" test $kills -gt 9
check 'also between the note and the ring' test -e begun
[ -s ring ] || pi Stop | timeout 20 "$BIN" hook pi --wait --gather 0 >/dev/null 2>ring
first=$(cut -c1-20 ring)
says ring '^mailroom bell [0-9a-f]{6}: 1 new message' 'it rings'
pi Stop | timeout 5 "$BIN" hook pi --wait --gather 0 >/dev/null 2>again
[ ! -s again ] || same "$first" "$(cut -c1-20 again)" 'again under the same number, if nobody knows whether it rang'
pi UserPromptSubmit "$(cat ring)" | "$BIN" hook pi >out; says out 'ring once' 'the prompt is told'
CLAUDE_CODE_SESSION_ID= MAILROOM_SESSION=pi-p1 "$BIN" drain >/dev/null 2>&1 </dev/null
cd ..

# ---- one a session ----
waiter a s1
waiter b s1
sleep 0.3
waiter c s1 SessionStart
same '0 0' "$(ends a) $(ends b)" 'older ones leave'
same waits "$(ends c 6)" 'the newest stays'
hook s2 SessionStart >/dev/null
waiter d s2
same waits "$(ends c 6)" 'also when another session has one'
send bob web 'for the first' >/dev/null
same 2 "$(ends c)" 'it wakes'
same 1 "$(cat ./*.err | grep -c 'for the first')" 'alone'
same waits "$(ends d 6)" 'and not the other session'
check 'SIGTERM' kill "$(cat d.pid)"
same 0 "$(ends d)" 'ends it quietly'
same '' "$(cat d.err)" 'without a word'
rm -f "$XDG_STATE_HOME"/mailroom/waiters/* # the mark of d, so that it is e's that is waited for
waiter e s1
event s1 SessionEnd | "$BIN" hook claude-code
same 0 "$(ends e)" 'so does the end of the session'
hook s1 SessionStart >/dev/null

# ---- the harness dies ----
cat >harness.pl <<'EOF'
system('{ "$BIN" hook claude-code --wait <harness.in >harness.out 2>harness.err; echo $? >harness.rc; } & touch harness.ready; wait');
EOF
rm -f harness.rc harness.ready
event s9 SessionStart >harness.in
perl harness.pl & harness=$!
n=0; while [ ! -e harness.ready ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
sleep 0.7
kill -9 $harness; wait $harness 2>/dev/null
same 0 "$(ends harness)" 'when its harness was killed a waiter leaves'

# ---- what comes together is told together ----
gather=2 waiter a s1
send bob web 'first' >/dev/null; sleep 0.5; send carol web 'second' >/dev/null
same 2 "$(ends a)" 'several messages within two seconds'
same 2 "$(grep -cE ': (first|second)$' a.err)" 'are one wake'

# ---- work ----
mr --as bob queue create jobs --claimers web >/dev/null 2>&1; mr --as bob queue create others --claimers bob >/dev/null 2>&1
waiter a s1
mr --as bob send queue:others -m 'not for web' >/dev/null 2>&1
same waits "$(ends a 25)" 'work for others wakes nobody else'
mr --as bob send queue:jobs -m 'build it' >/dev/null 2>&1
same 2 "$(ends a 80)" 'work in a queue that it may claim from wakes'
says a.err '^Work waits in the queue jobs: mailroom recv queue:jobs$' 'with the command to take it'
waiter a s1
same waits "$(ends a 6)" 'once'
mr --as bob send queue:jobs -m 'and this' >/dev/null 2>&1
same 2 "$(ends a 80)" 'more work wakes again'
CLAUDE_CODE_SESSION_ID=s1 "$BIN" recv queue:jobs --json </dev/null >out 2>/dev/null
waiter a s1
mr --as bob send queue:jobs -m 'third' >/dev/null 2>&1
same waits "$(ends a 25)" 'but not one who has work in its hands'
CLAUDE_CODE_SESSION_ID=s1 "$BIN" release "$(jq -r .token out)" >/dev/null 2>&1 </dev/null
same 2 "$(ends a 80)" 'until it gave it back'

# ---- two polite agents ----
mkdir -p ../polite/alpha ../polite/beta && cd ../polite
"$BIN" init --name club >/dev/null 2>&1 </dev/null
echo 'Wake-Limit: 3/10m' >>.mailroom/room
(cd alpha && hook p1 SessionStart >/dev/null); (cd beta && hook p2 SessionStart >/dev/null)
# An agent that answers whatever wakes it, and goes idle again.
polite() { # polite SESSION
	while :; do
		event "$1" Stop | "$BIN" hook claude-code --wait --gather 0 >/dev/null 2>"$1.err" || rc=$?
		[ "${rc:-0}" -eq 2 ] || return
		rc=0
		echo wake >>wakes
		id=$(sed -n 's/^- \([0-9a-z]\{26\}\) from .*/\1/p' "$1.err" | head -n 1)
		CLAUDE_CODE_SESSION_ID=$1 "$BIN" reply "$id" -m 'Thank you!' >/dev/null 2>&1 </dev/null
	done
}
: >wakes
polite p1 & waiters="$waiters $!" first_one=$!
polite p2 & waiters="$waiters $!" second_one=$!
sleep 0.5
send alpha beta 'You are welcome' >first
n=0; while [ "$(mr --as operator inbox --json 2>/dev/null | wc -l)" -eq 0 ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done
sleep 1
same 6 "$(wc -l <wakes)" 'two agents that answer each other wake each other three times each'
same 1 "$(mr --as operator inbox --json | wc -l)" 'then the operator has one notice'
mr --as operator read "$(mr --as operator inbox --json | jq -r .id)" >out 2>/dev/null
says out '^Subject: agents keep waking each other' 'which says so'
says out "^mailroom --as [a-z]* thread" 'and how to look'
same 7 "$(mr --as alpha thread "$(cat first)" --json | wc -l)" 'all their mail is there'
CLAUDE_CODE_SESSION_ID=p1 "$BIN" send beta -m 'something else' </dev/null >/dev/null 2>&1
n=0; while [ "$(wc -l <wakes)" -lt 7 ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
check 'another thread wakes as before' test "$(wc -l <wakes)" -ge 7
n=0; while [ "$(wc -l <wakes)" -lt 12 ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
sleep 0.5
same 12 "$(wc -l <wakes)" 'up to its own limit'
CLAUDE_CODE_SESSION_ID=p1 "$BIN" send beta --notify --thread "$(cat first)" -m 'and yet' </dev/null >out 2>err
says err 'limited until [0-9:]* UTC: .beta. was not nudged' 'nor is anybody nudged for mail of that thread'
says err "^mailroom: stored for 'beta'; wakes of this thread are limited until [0-9:]* UTC" 'the sender is told'
mr --as beta why "$(cat out)" >why
CLAUDE_CODE_SESSION_ID=p1 "$BIN" send beta --thread "$(cat first)" -m 'as JSON' --json </dev/null >json 2>/dev/null
same 1 "$(jq '.warnings | map(select(test("limited until"))) | length' json)" 'also in JSON'
printf '{"to":["beta"],"thread":"%s","body":"one of many"}\n' "$(cat first)" | CLAUDE_CODE_SESSION_ID=p1 "$BIN" send --batch >json 2>/dev/null
same 1 "$(jq '.warnings // [] | map(select(test("limited until"))) | length' json)" 'and of a batch'
last=$(mr --as beta inbox --json --limit 1 | jq -r .id); printf x | CLAUDE_CODE_SESSION_ID=p1 "$BIN" gt mail send beta -s x --reply-to "$last" --stdin >out2 2>err
says err 'limited until' 'and of gt'
says why 'unread.*; wakes of this thread are limited until [0-9:]* UTC' 'and so does why'
same 2 "$(mr --as operator inbox --all --json | wc -l)" 'one notice a thread'
# Nobody is told to stop: the waiters of the agents end with their sessions.
for s in p1 p2; do event $s SessionEnd | "$BIN" hook claude-code; done
wait $first_one $second_one
finish
