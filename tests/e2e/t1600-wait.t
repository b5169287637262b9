# every-build
# Waiting for mail. The portable build has no inotify, so it shows that the poll alone does.
. "$(dirname "$0")/../lib/tap.sh"

now_ms() { echo $(($(date +%s%N) / 1000000)); }
# begin NAME ARGUMENT...: a wait in the background; its output is in NAME.out, its exit code and end in NAME.end. Sets pid.
begin() {
	name=$1; shift
	rm -f "$name.end" "$name.pid"
	( "$BIN" "$@" </dev/null >"$name.out" 2>"$name.err" & echo $! >"$name.pid"; wait $!; echo "$? $(now_ms)" >"$name.end.part"; mv "$name.end.part" "$name.end" ) &
	while [ ! -s "$name.pid" ]; do sleep 0.02; done
	pid=$(cat "$name.pid")
	sleep 0.15
}
# ended NAME CODE WITHIN_MS SINCE TEXT: it ended with that code in time.
ended() {
	tries=0; while [ ! -e "$1.end" ] && [ $tries -lt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
	[ -e "$1.end" ] || { kill "$(cat "$1.pid")"; not_ok "$5: it goes on waiting"; return; }
	read -r code at <"$1.end"
	took=$((at - $4))
	if [ "$code" -eq "$2" ] && [ $took -le "$3" ]; then ok "$5 ($took ms)"; else echo "# exit $code after $took ms"; note <"$1.err"; not_ok "$5"; fi
}
waiting() { if [ -e "$1.end" ]; then note <"$1.out"; not_ok "$2"; else ok "$2"; fi; }

room alice bob carol
# ---- looking once, and not at all ----
exits 3 '--timeout 0 with no mail' mr --as bob wait --timeout 0
same '' "$(cat out)" 'prints nothing on stdout'
begun=$(now_ms)
exits 3 'time up' mr --as bob wait --timeout 1
took=$(($(now_ms) - begun))
[ $took -ge 950 ] && [ $took -lt 10000 ] && ok "after the time ($took ms)" || not_ok "after the time ($took ms)"
says err 'no mail' 'and says so'
exits 3 'time up as JSON' mr --as bob wait --timeout 0 --json
same '' "$(cat out)" 'is no line'
a=$(send alice bob 'first'); begun=$(now_ms)
exits 0 'with mail waiting' mr --as bob wait --json
same "$a" "$(jq -r .id out)" 'it is listed'
took=$(($(now_ms) - begun)); [ $took -lt 10000 ] && ok "at once ($took ms)" || not_ok "at once ($took ms)"
exits 0 '--timeout 0 with mail' mr --as bob wait --timeout 0
same 1 "$(unread bob)" 'waiting consumes nothing'
exits 5 'waiting as nobody' mr --as nobody wait --timeout 0
exits 4 'a timeout that is none' sh -c '"$BIN" --as bob wait --timeout soon </dev/null; c=$?; [ $c = 2 ] || [ $c = 4 ] && exit 4; exit $c'

# ---- woken ----
mr --as bob drain >/dev/null
begin one --as bob wait --timeout 60s --json
begin two --as bob wait --timeout 60s --json
waiting one 'a waiter waits'
sleep 1.2
ticks=$(awk '{ print $14 + $15 }' "/proc/$pid/stat" 2>/dev/null)
[ "${ticks:-99}" -lt 5 ] && ok "and burns no CPU ($ticks ticks of 10 ms in 1.5 s)" || not_ok "and burns no CPU: $ticks ticks"
b=$(send alice bob 'wakes both'); since=$(now_ms)
ended one 0 10000 "$since" 'a send wakes it'
ended two 0 10000 "$since" 'and a second waiter too'
same "$b $b" "$(jq -r .id one.out two.out | tr '\n' ' ' | sed 's/ $//')" 'both list it'
same 1 "$(unread bob)" 'it is still unread'
mr --as bob drain >/dev/null

# ---- filters ----
begin one --as bob wait --timeout 60s --from carol --json
send alice bob 'not this one' >/dev/null
sleep 0.3
waiting one 'mail that does not pass the filter does not wake'
c=$(send carol bob 'this one'); since=$(now_ms)
ended one 0 10000 "$since" 'mail that passes does'
same "$c" "$(jq -r .id one.out)" 'and only that is listed'
exits 3 'a filter beside waiting mail' mr --as bob wait --timeout 0 --type MERGE_READY
exits 0 'a filter that waiting mail passes' mr --as bob wait --timeout 0 --from alice
mr --as bob drain >/dev/null

# ---- the answer ----
q=$(send bob alice 'which port?'); other=$(send bob alice 'which host?')
begin one --as bob wait --timeout 60s --id "${q#????????????????????}" --json
send alice bob 'unrelated' >/dev/null
"$BIN" --as alice reply "$other" -m 'the other answer' </dev/null >/dev/null 2>&1
sleep 0.3
waiting one '--id waits on beside other mail and other answers'
"$BIN" --as alice reply "$q" -m 8081 </dev/null >/dev/null 2>&1; since=$(now_ms)
ended one 0 10000 "$since" 'the answer ends it'
same "$q" "$(jq -r .reply_to one.out)" 'and is listed'
exits 5 '--id of a message that is not there' mr --as bob wait --timeout 0 --id 01k9w3b7zq8m4c2v6t1x5n0prs
mr --as bob drain >/dev/null

# ---- unseen mail that another mail program looked at; mail marked unread ----
d=$(send alice bob 'seen by a client')
mv .mailroom/agents/bob/new/*"$d"* ".mailroom/agents/bob/cur/$(basename .mailroom/agents/bob/new/*"$d"*):2,"
exits 0 'unseen mail in cur/ is waiting' mr --as bob wait --timeout 0
mr --as bob mark read --all >/dev/null
begin one --as bob wait --timeout 60s --json
mr --as bob mark unread "$d" >/dev/null; since=$(now_ms)
ended one 0 10000 "$since" 'mail that is marked unread again wakes'
mr --as bob drain >/dev/null

# ---- held mail that comes back ----
e=$(send alice bob 'leased')
mr --as bob recv --lease 1s >/dev/null
exits 3 'held mail does not count' mr --as bob wait --timeout 0
since=$(now_ms)
begin one --as bob wait --timeout 60s --json
ended one 0 10000 "$since" 'a lease that runs out ends the wait'
same "$e" "$(jq -r .id one.out)" 'and is listed'
mr --as bob drain >/dev/null
head -c 300000 /dev/zero | tr '\0' z >long; f=$("$BIN" --as alice send bob -f long </dev/null 2>/dev/null)
mkfifo pipe; sleep 300 >pipe & sleeper=$!
( exec 3<pipe; exec sleep 300 ) & reader=$!
"$BIN" --as bob drain --budget 0 </dev/null >pipe 2>/dev/null & drain=$!
tries=0; while ! ls .mailroom/agents/bob/held/*/* >/dev/null 2>&1 && [ $tries -lt 3000 ]; do sleep 0.02; tries=$((tries + 1)); done
begin one --as bob wait --timeout 60s --json
waiting one 'mail that a drain is showing does not count'
kill -9 $drain; wait $drain 2>/dev/null; since=$(now_ms)
ended one 0 10000 "$since" 'it comes back when that drain is killed'
same "$f" "$(jq -r .id one.out)" 'the same message'
kill $sleeper $reader 2>/dev/null; wait $sleeper $reader 2>/dev/null
mr --as bob drain --budget 0 >/dev/null

# ---- a fleet can run out of watches ----
if unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances' 2>/dev/null && [ "$(id -u)" = 0 ]; then
	rm -f none.end
	( unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances; exec "$BIN" --as bob wait --timeout 60s --json' </dev/null >none.out 2>none.err & echo $! >none.pid
	wait $!; echo "$? $(now_ms)" >none.end ) &
	sleep 0.6
	if [ -s none.err ]; then note <none.err; fi
	waiting none 'a waiter without inotify waits'
	send alice bob 'polled' >/dev/null; since=$(now_ms)
	ended none 0 10000 "$since" 'and finds the mail'
	mr --as bob drain >/dev/null
else
	skip 'a waiter without inotify' 'no user namespaces, or not root'
fi

# ---- what this life left for the next one ----
room alice bob
mr --as bob handoff -m 'the parser is next' >/dev/null 2>&1
exits 3 'a hand-off of this life ends no wait' mr --as bob wait --timeout 1s
id=$(send alice bob 'and you?')
exits 0 'other mail does' mr --as bob wait --timeout 60s
silent_about out HANDOFF 'and is listed alone'
exits 4 'nobody else answers what was sent to me' mr --as bob wait --id "$id" --timeout 20s
says err "mailroom reply $id" 'that is said'
own=$(send bob bob 'a note')
exits 4 'nor what I sent to myself' mr --as bob wait --id "$own" --timeout 20s
says err "from you to yourself: no other agent will answer it" 'as is said'
mr --as bob mark read "$own" >/dev/null
exits 3 'its sender waits' mr --as alice wait --id "$id" --timeout 0

# ---- --read ----
exits 0 'wait --read' mr --as bob wait --read --timeout 60s
says out '^and you\?$' 'shows the mail whole'
same true "$(mr --as bob inbox --all --json | jq "select(.id==\"$id\").read")" 'and marks it read'
exits 3 'so that the next one waits' mr --as bob wait --read --timeout 0
send alice bob 'nobody sees it' >/dev/null
exits 1 'a stdout that is full' sh -c '"$BIN" --as bob wait --read --timeout 0 </dev/null >/dev/full'
exits 0 'marks nothing' mr --as bob wait --read --timeout 0
same 'nobody sees it' "$(send alice bob 'nobody sees it' >/dev/null; mr --as bob wait --read --timeout 0 --json | jq -r .body)" 'as JSON'

# a file that nobody can read
room alice bob
: >.mailroom/agents/bob/new/1794725999.01m7ezzzzzzzzzzzzzzzzzzzz1.mr
exits 3 'a file that cannot be read does not end a wait' mr --as bob wait --timeout 1s
same 1 "$(grep -c skipped err)" 'and is told of, once'
says err 'no mail came for bob that can be read' 'with what did not come'
exits 3 'check counts no such file' mr --as bob check
says err "skipped .*mailroom doctor" 'and tells of it'
says out 'no unread mail for bob that can be read' 'and what there is not'
same 1 "$(mr --as bob check --json 2>/dev/null | jq .unreadable)" 'as JSON'
exits 3 'recv has nothing to take' mr --as bob recv
says err "skipped .*mailroom doctor" 'and tells why'
exits 0 'a hook' mr --as bob check --inject
says out '^1 message for you cannot be read, and is kept: mailroom doctor' 'tells of it'
exits 0 'the hook after it' mr --as bob check --inject
same '' "$(cat out)" 'does not'
exits 0 'drain' mr --as bob drain
says err 'skipped' 'tells of it'
send alice bob 'readable' >/dev/null
exits 0 'mail beside it does' mr --as bob wait --timeout 60s
says out 'readable' 'and is listed'
echo junk >.mailroom/agents/bob/new/1794725999.junk; chmod 600 .mailroom/agents/bob/new/*; mr --as bob check --inject >/dev/null
exits 1 'doctor' mr doctor --json
same 'bob/new/1794725999.01m7ezzzzzzzzzzzzzzzzzzzz1.mr bob/new/1794725999.junk' "$(jq -r 'select(.severity == "problem").path' out | sed 's,agents/,,' | sort | tr '\n' ' ' | sed 's/ $//')" 'says more, as they promise'
send alice bob 'and another' >/dev/null; mr --as bob check --inject >/dev/null; send alice bob 'a third' >/dev/null
mr --as bob check --inject >out
says out '^Plus 2 more unread' 'a hook counts what inbox lists, and nothing else'

# in the rooms of other programs
state=$scratch/.chipset/state
mkdir -p "$state/mail/bob"
printf '{' >"$state/mail/bob/2026-07-01T08-15-30.250Z-alice.json"
mkdir -p w/bob/.mailbox/inbox
echo junk >w/bob/.mailbox/inbox/749483aaff75eb7d3adcd18e72c5f8c8
mr --room "handoff:$scratch/h" register bob >/dev/null
echo junk >"$(echo h/*/inbox)/20261116T043326Z-ca5f2dd9-hi.md"
for spec in "chipset:$state" "handoff:$scratch/h" "workspace:$scratch/w"; do
	kind=${spec%%:*}
	exits 3 "$kind: wait" mr --room "$spec" --as bob wait --timeout 0
	says err skipped "$kind: tells of it"
	exits 3 "$kind: check" mr --room "$spec" --as bob check
	says err skipped "$kind: tells of it"
	exits 0 "$kind: the hook" mr --room "$spec" --as bob check --inject
	says out 'cannot be read' "$kind: tells of it"
	exits 0 "$kind: the hook after it" mr --room "$spec" --as bob check --inject
	same '' "$(cat out)" "$kind: does not"
	"$BIN" --room "$spec" doctor </dev/null >out 2>&1
	says out '^PROBLEM' "$kind: doctor says more"
done
finish
