# once
# Names, lives, takeover, who, prune, the operator.
. "$(dirname "$0")/../lib/tap.sh"
started=
trap 'for p in $started; do kill -9 $p 2>/dev/null; done; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
process() { sleep 300 & pid=$!; started="$started $pid"; } # a process that an agent can be tied to
end() { kill -9 "$1"; wait "$1" 2>/dev/null; }
state() { mr who --json | jq -r "select(.name==\"$1\").state"; }

# ---- one name, many who want it ----
room
i=0; while [ $i -lt 20 ]; do { mr register prize --json >race.$i 2>race.$i.err; echo $? >race.$i.rc; } & i=$((i + 1)); done; wait
same 1 "$(grep -lx 0 race.*.rc | wc -l)" 'of 20 that register one name at once exactly one gets it'
same 19 "$(grep -lx 4 race.*.rc | wc -l)" 'the others are refused'
same 1 "$(cat race.? race.?? | jq -r .life)" 'it is the first life'
check 'and told to take over, if need be' sh -c 'test $(grep -l "takeover prize" race.*.err | wc -l) = 19'
rm -f race.*

# ---- fifty names at once, nested ones too ----
room
names='rig rig/witness rig/refinery rig/crew rig/crew/ann rig/crew/bea rig/crew/cid deep/deeper/deepest deep deep/deeper'
i=0; while [ $i -lt 40 ]; do names="$names agent-$i"; i=$((i + 1)); done
for name in $names; do mr register "$name" >/dev/null 2>fifty.err || echo "$name: $(cat fifty.err)" >>fifty & done; wait
same '' "$(cat fifty 2>/dev/null)" '50 processes that register 50 names, nested ones too, all succeed'
same 50 "$(mr who --json | jq -r 'select(.name!="operator").name' | wc -l)" 'and who lists all 50'
exits 0 'mail to a nested one' mr --as rig send rig/witness deep/deeper/deepest -m x
same '1 0' "$(unread rig/witness) $(unread rig)" 'is not in the mailbox around it'
exits 0 'a wildcard' mr --as agent-1 send 'rig/*' -m x --json
same 'rig/crew rig/refinery rig/witness' "$(jq -r '.to[]' out | sort | paste -sd' ')" 'is one level'

# ---- names that cannot be ----
room bob rig/witness
exits 4 'a name that differs only in case' mr register Bob
says err "'bob'" 'is told which one is there'
exits 4 'also further up' mr register Rig/other
exits 4 'also below' mr register rig/Witness
for name in tmp new cur held lives agent NEW Agent rig/tmp cur/x operator human @overseer mailroom; do
	mr register "$name" >out 2>err; code=$?
	[ $code = 4 ] && [ -s err ] || echo "$name: exit $code"
done >wrong
same '' "$(cat wrong)" 'reserved names are refused'
for n in 1 2 3 4 5 6 7 8; do mr register kay >/dev/null 2>&1 & mr register KAY >/dev/null 2>&1 & done; wait
same 1 "$(mr who --json | jq -r .name | grep -ic '^kay$')" 'of two spellings at once one wins'

# ---- roles ----
role_of() { mr who --json | jq -r "select(.name==\"$1\").role"; }
room alice
mr --as alice send carol --hold -m 'for later' >/dev/null 2>&1
check 'register a name that send --hold made' mr register carol --role 'reviews pull requests'
same 'reviews pull requests' "$(role_of carol)" 'takes the role'
check 'takeover with a role' mr takeover carol --role 'merges'
same 'merges' "$(role_of carol)" 'takes it too'
check 'takeover without one' mr takeover carol
same 'merges' "$(role_of carol)" 'keeps what there was'
check 'and the mail' test "$(unread carol)" = 1

# ---- lives ----
room alice
exits 0 'register with a role' mr register bob --role 'reviews' --json
same '1 true 0' "$(jq -r '"\(.life) \(.created) \(.unread)"' out)" 'says life, that it is new, and unread mail'
exits 4 'a name whose life has no process, from another terminal' setsid -w "$BIN" register bob
says err 'takeover bob' 'needs takeover'
a=$(send alice bob 'one'); b=$(send alice bob 'two')
exits 0 'takeover' mr takeover bob --json
same '2 false 2' "$(jq -r '"\(.life) \(.created) \(.unread)"' out)" 'is life 2, with the mail that waited'
if [ -r /proc/self/stat ] && process && mr takeover bob --pid $pid >/dev/null 2>&1; then
	same live "$(state bob)" 'a life with a running process is live'
	exits 4 'and cannot be registered again' mr register bob
	says err "process $pid" 'with who has it'
	exits 0 'it takes work' mr --as bob recv --lease 1h --json
	token=$(jq -r .token out)
	end $pid
	same gone "$(state bob)" 'when the process is dead it is gone'
	exits 0 'sending to it' mr --as alice send bob -m three
	says err "'bob' is gone" 'says so'
	process
	exits 0 'then the name can be registered again' mr register bob --pid $pid
	says out 'life 4' 'as the next life'
	says out '3 unread' 'with the unread mail'
	says out '1 message of the last life came back' 'and the work that came back'
	"$BIN" --as bob done "$token" >out 2>err; code=$?
	case $code in 4|5) ok 'the token of the last life is worth nothing';; *) not_ok "the token of the last life: exit $code";; esac
	same 3 "$(unread bob)" 'and nothing is lost'
	exits 0 'who' mr who --json
	same 'reviews' "$(jq -r 'select(.name=="bob").role' out)" 'keeps the role'
	same "$pid" "$(jq -r 'select(.name=="bob").pid' out)" 'tells the process'
	check 'and the oldest unread' jq -e 'select(.name=="bob")|.oldest_unread|test("^20")' out
	exits 0 'who --live' mr who --live --json
	same bob "$(jq -r .name out)" 'lists the living'
	exits 2 '--pid of nobody' mr register nobody --pid 999999999
	end $pid
else
	skip 'lives with a process' 'no /proc here'
fi
same unknown "$(state alice)" 'of a life without a process nobody knows'
same never "$(state operator)" 'a mailbox where nobody lived yet says never'
exits 0 'who as text' mr who
says out '^NAME +STATE +LIFE +UNREAD' 'is a table'
i=0; while [ $i -lt 8 ]; do mr takeover alice --json >take.$i 2>/dev/null & i=$((i + 1)); done; wait
same 8 "$(cat take.? | jq .life | sort -u | wc -l)" 'eight takeovers at once are eight lives'
i=0; while [ $i -lt 20 ]; do mr takeover alice >/dev/null 2>&1; i=$((i + 1)); done
same 29 "$(mr who --json | jq 'select(.name=="alice").life')" 'numbers only grow, also when old ones are forgotten'

# ---- takeover while the old life drains ----
for round in 1 2 3 4 5 6; do
	room alice bob
	sent=$(i=0; while [ $i -lt 12 ]; do send alice bob "mail $i"; i=$((i + 1)); done)
	slow="$DEVBIN"; [ "$round" -gt 3 ] && slow="$BIN"
	MAILROOM_FAULT=$([ "$round" -gt 3 ] || echo delay:$((round * 300))) "$slow" --as bob drain --json </dev/null >old 2>old.err & drain=$!
	[ "$round" -gt 3 ] || sleep "0.0$((round * 2))"
	mr takeover bob --json >taken 2>&1
	mr --as bob drain --json >new 2>new.err
	wait $drain; code=$?
	mr --as bob drain --json >>new 2>>new.err
	left=$(unread bob)
	seen=$(cat old new | jq -r .id | sort -u)
	[ "$left" = 0 ] || echo "round $round: $left left unread"
	[ "$seen" = "$(echo "$sent" | sort)" ] || echo "round $round: $(echo "$seen" | wc -l) of 12 seen"
	[ "$(find .mailroom/agents/bob/.Archive* -name '*:2,S*' | wc -l)" = 12 ] || echo "round $round: archived $(find .mailroom/agents/bob/.Archive* -type f -name '*:2,*' | wc -l)"
	[ "$(find .mailroom/agents/bob/held -type f | wc -l)" = 0 ] || echo "round $round: still held"
	# what the old life could not settle, the new one was shown
	if [ $code != 0 ]; then [ $code = 4 ] || echo "round $round: the fenced drain exits $code: $(cat old.err)"; fi
done >wrong
same '' "$(cat wrong)" 'takeover while the old life drains: every message is seen, by the old life or the new one, and none consumed unseen'

# ---- prune ----
room alice bob carol dave
send alice bob one >/dev/null; b=$(send alice bob two); mr --as bob read "$(mr --as bob inbox --json | jq -r .id | tail -n 1)" >/dev/null
exits 2 'prune of nobody in particular is wrong usage' mr prune
exits 0 'prune --dry-run' mr prune bob --dry-run
says out 'would prune bob: 1 unread message' 'says what would happen'
exits 0 'and does nothing' mr --as bob whoami
exits 0 'prune NAME' mr prune bob
says out 'pruned bob: 1 unread message to dead letters' 'says what happened'
check 'the unread mail is a dead letter' sh -c "ls .mailroom/dead/new | grep $b"
exits 5 'the name is unknown now' mr --as alice send bob -m x
exits 0 'mail of a pruned agent' mr --as alice why "$b"
says out 'dead' 'can be found out with why'
exits 0 'registered again' mr register bob --json
same '2 0' "$(jq -r '"\(.life) \(.unread)"' out)" 'its lives go on counting'
exits 5 'prune of an unknown name' mr prune bbo
says err "'bob'" 'has the near name'
exits 4 'prune of the operator' mr prune operator
exits 5 'prune of one known and one unknown' mr prune carol nobody
exits 0 'removes nobody' mr --as carol whoami
if [ -r /proc/self/stat ] && process && mr takeover dave --pid $pid >/dev/null 2>&1; then
	exits 4 'prune of a live agent is refused' mr prune dave
	says err "live.*process $pid" 'with who it is'
	exits 0 'unless forced' mr prune dave --force
	end $pid
	mr register dave >/dev/null 2>&1
else
	skip 'prune of a live agent' 'no /proc here'
fi
if "$DEVBIN" --version >/dev/null 2>&1; then
	week=604800000
	exits 0 'nobody is stale yet' "$DEVBIN" prune --stale 7d
	says out 'nobody' 'and it says so'
	exits 0 'a week later' env MAILROOM_TEST_CLOCK_OFFSET_MS=$((week + 60000)) "$DEVBIN" prune --stale 7d --dry-run
	same 4 "$(grep -c '^would prune' out)" 'all look stale'
	exits 4 'pruning more than half is refused' env MAILROOM_TEST_CLOCK_OFFSET_MS=$((week + 60000)) "$DEVBIN" prune --stale 7d
	says err '4 of 4 agents' 'and says how many'
	says err '[-]-dry-run' 'and what to do'
	exits 4 'so is pruning when the clock looks wrong' env MAILROOM_TEST_CLOCK_OFFSET_MS=-$((3 * 86400000)) "$DEVBIN" prune --stale 1h
	says err 'clock' 'and says so'
	same 5 "$(mr who --json | wc -l)" 'nobody was pruned'
	exits 0 'one that was made long ago' env MAILROOM_TEST_CLOCK_OFFSET_MS=-$((week + 60000)) "$DEVBIN" register old
	touch -d '8 days ago' .mailroom/agents/old/lives/1
	send alice old 'unread' >/dev/null
	exits 0 'prune --stale' mr prune --stale 7d --json
	same 'old 1' "$(jq -r '"\(.agent) \(.dead_letters)"' out)" 'takes just that one, its unread mail to dead letters'
else
	skip 'prune --stale' 'no build with a test clock'
fi

# ---- mail under way to somebody who is pruned ----
for round in 1 2 3; do
	room alice bob
	( i=0; while [ $i -lt 15 ]; do mr --as alice send bob -m "m$i" 2>/dev/null; i=$((i + 1)); done >accepted ) &
	sleep "0.0$((round * 2))"; mr prune bob >/dev/null 2>&1; wait
	find .mailroom/dead -name '*.mr*' | sed 's/.*\.\([0-9a-z]*\)\.mr.*/\1/' | sort -u >dead
	[ "$(sort accepted | comm -23 - dead)$(find .mailroom/agents/bob/new .mailroom/agents/bob/cur -type f)" = '' ] || echo "round $round: $(wc -l <accepted) accepted, $(wc -l <dead) dead letters, $(find .mailroom/agents/bob/new -type f | wc -l) left behind"
done >wrong
same '' "$(cat wrong)" 'mail that was accepted while its recipient is pruned is a dead letter, never away'

# ---- the operator ----
room alice
for name in operator human @overseer Operator; do mr --as alice send "$name" -m "to $name" >/dev/null 2>err || note <err; done
same 4 "$(unread operator)" 'operator, human and @overseer are one mailbox'
exits 0 'its mail is read' mr --as human inbox
exits 0 'as any of them' mr --as @overseer drain
exits 0 'it can send' mr --as operator send alice -m 'well done'
mr config set Notify "printf '%s|%s|%s\\n' \"\$MAILROOM_ID\" \"\$MAILROOM_FROM\" \"\$MAILROOM_SUBJECT\" >>$scratch/notified" >/dev/null
exits 0 'mail to the operator of a room with Notify' mr --as alice send operator -s 'a "b" $(touch pwned) `touch pwned`; touch pwned' -m 'help'
id=$(cat out)
n=0; while [ ! -s notified ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
same "$id|alice|a \"b\" \$(touch pwned) \`touch pwned\`; touch pwned" "$(cat notified)" 'runs that command with id, sender and subject'
check 'which are data' test ! -e pwned
rm -f notified
exits 0 'without a subject' mr --as alice send human -m 'the first line
and more'
n=0; while [ ! -s notified ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
same "$(cat out)|alice|the first line" "$(cat notified)" 'it is the first line, as everywhere'
rm -f notified
r=$(send operator alice 'a question')
exits 0 'an answer to the operator' mr --as alice reply "$r" -m 'an answer'
n=0; while [ ! -s notified ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
same "$(cat out)|alice|Re: a question" "$(cat notified)" 'has the subject of the answer'
rm -f notified
exits 0 'mail to others' mr --as operator send alice -m x
exits 0 'and what the operator sends itself' mr --as operator send operator -m x
sleep 0.1
check 'runs nothing' test ! -e notified
printf '#!/bin/sh\nuntil [ -e "%s/go-on" ]; do sleep 0.1; done\n: >"%s/went-on"\n' "$scratch" "$scratch" >"$scratch/hang"; chmod +x "$scratch/hang"
mr config set Notify "$scratch/hang" >/dev/null
exits 0 'a command that hangs' timeout 100 "$BIN" --as alice send operator -m x </dev/null
check 'holds nobody up' test ! -e "$scratch/went-on"
: >"$scratch/go-on"

# a prune that died after the name was gone
room alice bob
send alice bob 'left behind' >/dev/null
rm .mailroom/agents/bob/agent
exits 1 'doctor finds unread mail in a mailbox that is nobody'"'"'s' mr doctor
says out 'no agent is registered there' 'and says so'
exits 0 'doctor --fix' mr doctor --fix
same 1 "$(grep -rl 'left behind' .mailroom/dead | wc -l | tr -d ' ')" 'moves it to the dead letters'

# Which life is the newest is often seen by two looks, so those that are kept must have no gap, wherever a takeover dies that
# forgets several old ones.
room bob
lives=.mailroom/agents/bob/lives
n=1 gaps=
while :; do
	rm -f $lives/*
	for life in 20 3 7 19 1 2 18 4 5 6 17 8 9 10 11 12 13 14 15 16; do echo "Life: $life" >$lives/$life; done
	MAILROOM_FAULT=kill-after:$n "$DEVBIN" takeover bob </dev/null >/dev/null 2>&1 && break
	ls $lives | sort -n | awk 'NR > 1 && $1 != last + 1 { bad = 1 } { last = $1 } END { exit bad }' || gaps="$gaps $n"
	n=$((n + 1))
	[ $n -lt 200 ] || break
done
same '' "$gaps" 'a takeover that dies leaves no gap in the lives'
same 16 "$(ls $lives | wc -l | tr -d ' ')" 'one that does not, the last sixteen'
check "it was killed at $n places" test $n -gt 10 -a $n -lt 200

# ---- the door by which an agent was seen last ----
room nux
life=.mailroom/agents/nux/lives/1
seen_by() { mr who nux --json | jq -r .seen_by; }
touch "$life"
same '' "$(seen_by)" 'what set the time of the file is not known: no door is claimed'
mr --as nux inbox >/dev/null 2>&1
same command "$(seen_by)" 'a command'
mr who nux >out; says out '^NAME.* SEEN +BY ' 'in the table, too'
later() { touch -d '1 minute ago' "$life"; }
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"inbox","arguments":{}}}' >lines
later; "$BIN" --as nux mcp <lines >/dev/null 2>&1
same mcp "$(seen_by)" 'a tool'
later
printf '{"session_id":"s9","cwd":"%s","hook_event_name":"SessionStart","source":"startup"}' "$(pwd -P)" | MAILROOM_AGENT=nux "$BIN" hook claude-code >/dev/null 2>&1
life=$(ls -d .mailroom/agents/*/lives/* | xargs ls -t | head -n 1)
same hook "$(mr who --json | jq -r 'select(.session == "claude-code-s9").seen_by')" 'a hook'
if command -v strace >/dev/null; then
	calls() { strace -f -qq -o calls -e trace=utimensat "$BIN" --as nux send nux -m x </dev/null >/dev/null 2>&1; grep -c utimensat calls; }
	calls >/dev/null
	same 0 "$(calls)" 'it costs no call of a command that follows another'
fi
finish
