# once: the peer is Node with the real proper-lockfile; the driver itself runs under the sanitizers elsewhere
# A team's inbox with two kinds of writer: our command, and Node programs that rewrite the file under their lock.
. "$(dirname "$0")/../lib/tap.sh"

"$top/tools/deps" test >deps 2>&1 || note <deps
if [ ! -e "$top/build/node/installed" ]; then
	note <deps
	not_ok 'proper-lockfile is there (npm installs it into build/node): without it nothing here can be shown'
	finish
fi
program=$top/tests/peers/teams-peer.mjs
peer() { node "$program" "$@"; }
team=$scratch/teams/town inboxes=$scratch/teams/town/inboxes
mkdir -p "$inboxes"
ours() { who=$1; shift; "$BIN" --room "teams:$team" --as "$who" "$@" </dev/null; }
entries() { peer print "$inboxes/$1.json" | jq length; }
# mail NAME COUNT: sends so many, one command each, at the first try or not at all; what went wrong is in NAME.err
mail() { n=0; while [ $n -lt "$2" ]; do ours "$1" send "${3:-target}" -m "$1 $n" >/dev/null 2>>"$1.err" || echo "exit $? at $n" >>"$1.failed"; n=$((n + 1)); done; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# ---- eight of each, one inbox
WRITERS='1 2 3 4 5 6 7 8' EACH=30 OLD=1000
[ -z "${MAILROOM_TEST_LONG:-}" ] || EACH=100 OLD=2000
ALL=$((OLD + 16 * EACH))
peer fill "$inboxes/target.json" $OLD
began=$(milliseconds)
for w in $WRITERS; do timeout 150 node "$program" send "$inboxes/target.json" "n$w" $EACH >node.$w 2>node.$w.err & done
for w in $WRITERS; do mail "w$w" $EACH & done
wait
echo "# $(($(milliseconds) - began)) ms; Node: $(cat node.[1-8] | jq -sc '{repeated: map(.repeated) | add, longest_ms: map(.longest_ms) | max}')"
same '' "$(cat w?.failed 2>/dev/null)" "8 of ours send $EACH each beside 8 Node programs: each at the first try"
same '' "$(cat node.?.err)" 'no Node program fails'
same $((8 * EACH)) "$(cat node.[1-8] | jq -s 'map(.sent) | add')" 'each Node program has got all of its messages in'
check 'none of them waited longer than 10 s for a message' sh -c 'cat node.[1-8] | jq -se "map(.longest_ms) | max < 10000"'
peer print "$inboxes/target.json" >all
same $ALL "$(jq length all)" "all $ALL are in it at the end"
same $ALL "$(jq '[.[] | .from + " " + (.text | split(" ")[1])] | unique | length' all)" 'each once'
same $OLD "$(jq '[.[:'$OLD'][] | select(.from == "old")] | length' all)" 'the older ones are where they were'
for who in w1 w8 n1 n8; do
	same "$(seq -s ' ' 0 $((EACH - 1)))" "$(jq -r --arg who $who '[.[] | select(.from == $who) | .text | split(" ")[1]] | join(" ")' all)" "those of $who are in the order in which they were sent"
done
same target.json "$(ls -A "$inboxes")" 'neither a lock nor a temporary file is left'

# ---- a reader without lock
peer fill "$inboxes/watched.json" 500
rm -f stop
peer look "$inboxes/watched.json" stop >look 2>look.err & looker=$!
for w in 1 2 3 4; do mail "v$w" 50 watched & writers="$writers $!"; done
wait $writers; touch stop; wait $looker
echo "# $(cat look)"
same 0 "$(jq .bad look)" "while only ours write, each of $(jq .looks look) looks finds valid JSON"
same 0 "$(jq .lost look)" 'and no fewer messages than the one before'
check 'there were enough looks to say so' jq -e '.looks >= 50 and .first >= 500 and .last > .first' look
same 700 "$(entries watched)" 'all arrive'

# ---- a lock whose holder was killed
hold() { # hold INBOX: a Node program takes the lock; $holder is its number, fd 8 its life
	rm -f in out.hold; mkfifo in
	node "$program" hold "$inboxes/$1.json" <in >out.hold 2>&1 & holder=$!
	exec 8>in
	tries=0; until grep -q held out.hold || [ $tries -ge 1200 ]; do sleep 0.05; tries=$((tries + 1)); done
}
peer fill "$inboxes/locked.json" 1
hold locked
kill -9 $holder; wait $holder 2>/dev/null; exec 8>&-
check 'a Node program that is killed leaves its lock behind' test -d "$inboxes/locked.json.lock"
touch -c -d "$(date -d '8 seconds ago' '+%Y-%m-%d %H:%M:%S.%N')" "$inboxes/locked.json.lock"
began=$(milliseconds)
exits 0 'a lock that will be stale in 2 s is waited for' ours w1 send locked -m 'w1 0'
took=$(($(milliseconds) - began))
check "not shorter than that, and not much longer: $took ms" test $took -ge 1800 -a $took -lt 12000
mkdir "$inboxes/locked.json.lock"; touch -d '11 seconds ago' "$inboxes/locked.json.lock"
began=$(milliseconds)
exits 0 'a stale one is taken over' ours w1 send locked -m 'w1 1'
took=$(($(milliseconds) - began))
check "at once: $took ms" test $took -lt 10000
same 3 "$(entries locked)" 'both messages are in'
check 'and the lock is free' test ! -e "$inboxes/locked.json.lock"

# Two that are in at the same time would rewrite the file from the same start: one message would be lost. Slow calls
# make sure that they would meet.
peer fill "$inboxes/raced.json" 1
for round in 1 2 3 4 5; do
	mkdir "$inboxes/raced.json.lock"; touch -d '11 seconds ago' "$inboxes/raced.json.lock"
	for w in 1 2 3 4 5 6; do
		MAILROOM_FAULT=delay:1000 "$DEVBIN" --room "teams:$team" --as "r$w" send raced -m "r$w $round" >/dev/null 2>>raced.err </dev/null || echo "exit $?" >>raced.failed &
	done
	wait
done
same '' "$(cat raced.failed raced.err 2>/dev/null | grep -v '^ *$')" 'six of ours at a stale lock, five times: nobody fails'
same 31 "$(entries raced)" 'and never were two of them in'
check 'the lock is free' test ! -e "$inboxes/raced.json.lock"

# ---- a lock whose holder lives
peer fill "$inboxes/held.json" 1
hold held
before=$(stat -c '%i' "$inboxes/held.json.lock")
for w in 1 2 3 4; do (exec 8>&-; ours "h$w" send held -m "h$w 0" >/dev/null 2>"h$w.err" || echo "exit $?" >>held.failed) & waiting="$waiting $!"; done
sleep 2
same "1 $before" "$(entries held) $(stat -c '%i' "$inboxes/held.json.lock")" 'four of ours wait for a live lock and leave it alone'
exec 8>&-
wait $holder; same 0 $? 'its holder never noticed them'
wait $waiting
same '' "$(cat held.failed h?.err 2>/dev/null)" 'and all get in when it is released'
same 5 "$(entries held)" 'with every message'

# ---- the same messages in both hands
printf '[]' >"$inboxes/both.json"
id=$(ours w1 send both -s 'Schöne Grüße' -m "$(printf 'tab\there, back\\slash / \001 \177 \342\200\250 😀\nend')")
cat >want <<'WANT'
{"from": "w1", "text": "tab\there, back\\slash / \u0001 \u007f \u2028 😀\nend", "summary": "Schöne Grüße", "timestamp": "", "read": false}
WANT
check 'Node reads what we wrote, key by key' sh -c "node '$program' equal '$inboxes/both.json' 0 <want"
check 'the file is byte for byte as Node would have written it' peer canonical "$inboxes/both.json"
peer send "$inboxes/both.json" n1 2 >/dev/null
ours both inbox --json 2>err | jq -s 'sort_by(.id)' >list
same 'w1 n1 n1' "$(jq -r 'map(.from) | join(" ")' list)" 'we read what Node wrote'
same 'n1 number 1' "$(jq -r '.[2].subject' list)" 'its summary is our subject'
same "$(peer print "$inboxes/both.json" | jq -r '.[2].text')" "$(ours both read "$(jq -r '.[2].id' list)" --json 2>/dev/null | jq -r .body)" 'and its text our body'
same false,false,true "$(peer print "$inboxes/both.json" | jq -r 'map(.read) | join(",")')" 'what we have read is read for Node'
peer mark "$inboxes/both.json" 0
same 1 "$(ours both inbox --json 2>/dev/null | grep -c .)" 'what Node has read is read for us'
exits 0 'mark read' ours both mark read --all
same true,true,true "$(peer print "$inboxes/both.json" | jq -r 'map(.read) | join(",")')" 'what we mark is marked for Node'
exits 0 'mark unread' ours both mark unread "$id"
same false,true,true "$(peer print "$inboxes/both.json" | jq -r 'map(.read) | join(",")')" 'also the other way'
finish
