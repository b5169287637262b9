# every-build
. "$(dirname "$0")/../lib/tap.sh"

room alice bob
exits 3 'nothing to take' mr --as bob recv
a=$(send alice bob 'work one'); b=$(send alice bob 'work two')
u=$("$BIN" --as alice send bob --priority urgent -m 'urgent work' </dev/null 2>/dev/null)
exits 0 'recv' mr --as bob recv --json
token=$(jq -r .token out)
same "$u" "$(jq -r .id out)" 'takes the urgent one first'
same 2 "$(unread bob)" 'and out of the inbox'
exits 0 'the next' mr --as bob recv --json
same "$a" "$(jq -r .id out)" 'is the oldest'
exits 5 'the token of mail of another agent' mr --as alice done "$token"
says err "no claim '$token'" 'is none'
exits 0 'done by token' mr --as bob done "$token"
check 'is archived as done' sh -c "ls .mailroom/agents/bob/.Archive.*/cur | grep '$u.*:2,Sa'"
same true "$(mr --as bob read "$u" --json | jq .acked)" 'and acked'
exits 5 'done twice' mr --as bob done "$token"
says err "'$u' was done by you at 20[0-9T:.-]*Z" 'says that, and when'
exits 5 'by its id' mr --as bob done "$u"
says err "'$u' was done by you at 20" 'too'
exits 5 'by the end of its id' mr --as bob done "${u#????????????????????}"
says err "'$u' was done by you at 20" 'too'
exits 0 'done by id' mr --as bob done "$a"
exits 0 'recv as text' mr --as bob recv --lease 30m
says out '^token [0-9a-z]{12}' 'prints the token'
token=$(sed -n 's/^token \([0-9a-z]*\).*/\1/p' out)
exits 0 'extend' mr --as bob extend "$token" --lease 2h --json
same "$token" "$(jq -r .token out)" 'keeps the token'
exits 0 'release' mr --as bob release "$token"
same 1 "$(unread bob)" 'puts it back'
exits 5 'a late done finds nothing' mr --as bob done "$token"
says err "was released by you at 20" 'and says why'
exits 0 'the next claim' mr --as bob recv --json
same 1 "$(jq .attempt out)" 'has the same attempt number: a release is none'
token=$(jq -r .token out)
exits 2 'fail without a reason' mr --as bob fail "$token"
exits 0 'fail' mr --as bob fail "$token" --reason 'no compiler'
exits 5 'done after that' mr --as bob done "$token"
says err "was failed by you at 20" 'says that it failed'
check 'goes to dead letters' sh -c 'ls .mailroom/dead/*/* | grep .'
exits 0 'and the sender' mr --as alice inbox --type bounce --json
same "$b" "$(jq -r .reply_to out)" 'gets a bounce that answers it'
mr --as alice drain >/dev/null

# leases
c=$(send alice bob 'short lease')
exits 0 'a lease of a second' mr --as bob recv --lease 1s --json
token=$(jq -r .token out)
exits 3 'holds it' mr --as bob recv
sleep 1.3
exits 0 'and then it is back' mr --as bob recv --json
same "$c 2" "$(jq -r '"\(.id) \(.attempt)"' out)" 'with the same id and the next attempt'
late=$token; token=$(jq -r .token out)
exits 5 'the late done is refused' mr --as bob done "$late"
says err "your claim on '$c' is over: its lease ran out, and it went back at 20" 'and says why'
sleep 60 & live=$!
mr takeover bob --pid $live >out 2>err
says out '1' 'takeover tells of the returned work'
exits 4 'the token of the old life' sh -c '"$BIN" --as bob done '"$token"' </dev/null; c=$?; [ $c = 4 ] || [ $c = 5 ] && exit 4; exit $c'
exits 0 'the new life takes it' mr --as bob recv --lease 1s --json
same "$c" "$(jq -r .id out)" 'the same message'
token=$(jq -r .token out)
sleep 1.3
exits 3 'a lease does not run out while the harness process lives' mr --as bob recv
kill -9 $live; wait $live 2>/dev/null
exits 0 'when it is dead' mr --as bob recv --json
same "$c" "$(jq -r .id out)" 'the work comes back'

# an agent that nobody registered takes work, too: it comes back like any other
exits 0 'mail for a name to come' mr --as alice send --hold carl -m 'work for a script'
d=$(cat out) held=$(mr top --once --json | jq .held)
exits 0 'a script takes it' mr --as carl recv --lease 1s
says out 'token' 'with a token'
same $((held + 1)) "$(mr top --once --json | jq .held)" 'and it counts as work in hand'
sleep 1.3
exits 0 'its lease runs out' mr --as carl recv --json
same "$d 2" "$(jq -r '"\(.id) \(.attempt)"' out)" 'and the work is back'
exits 0 'the name is registered meanwhile' mr --as carl register carl
exits 0 'the first life takes what the script held' mr --as carl recv --json
same "$d 3" "$(jq -r '"\(.id) \(.attempt)"' out)" 'at once'
exits 0 'and ends it' mr --as carl done "$(jq -r .token out)"

# what is over is told by why, and kept for two months
mr --as bob done "$c" >/dev/null
exits 0 'why' mr --as alice why "$c"
says out 'bob +came back +claimed at 20.* \(attempt 1\), the lease ran out, or its holder is gone: came back at 20' 'tells the claims that ran out'
says out 'bob +done +claimed at 20.* \(attempt [0-9]*\), done at 20' 'and the one that was not'
says out 'bob +archived .*finished; its file last changed at 20' 'and when its file was changed'
month=$(ls .mailroom/past)
mv .mailroom/past/$month .mailroom/past/2020-02
cp -r .mailroom/past/2020-02 .mailroom/past/2020-01
send alice bob 'the first of a month' >/dev/null
mr --as bob recv --json >out; mr --as bob done "$(jq -r .token out)" >/dev/null
same "2020-02 $month" "$(ls .mailroom/past | tr '\n' ' ' | sed 's/ $//')" 'the oldest month goes with the first claim of a new one'
check 'the doctor knows that folder' mr doctor

# a clock set back or forth does not void a lease within one boot
d=$(send alice bob 'clock')
if MAILROOM_TEST_CLOCK_OFFSET_MS=0 "$DEVBIN" --version >/dev/null 2>&1; then
	exits 0 'recv for 10 minutes' "$DEVBIN" --as bob recv --lease 10m --json
	exits 3 'an hour later by the wall clock' env MAILROOM_TEST_CLOCK_OFFSET_MS=3600000 "$DEVBIN" --as bob recv
fi

# drains share, a killed one gives back
room alice bob
i=0; while [ $i -lt 40 ]; do send alice bob "m$i" >/dev/null; i=$((i + 1)); done
for n in 1 2 3 4; do "$BIN" --as bob drain --json </dev/null >drain.$n 2>/dev/null & done; wait
same 40 "$(cat drain.* | jq -r .id | sort -u | wc -l)" 'four drains see every message'
same 40 "$(cat drain.* | wc -l)" 'each once'
e=$(send alice bob 'shown to the dead')
mkfifo pipe
"$BIN" --as bob drain --json </dev/null >pipe 2>/dev/null & drain=$!
exec 9<pipe   # opened, never read: small output fits the pipe, so stop the process instead
wait $drain; exec 9<&-
same 0 "$(unread bob)" 'a drain into a pipe that took it has consumed it'
f=$(send alice bob 'again')
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as bob drain --json </dev/null >killed 2>/dev/null && break
	if [ ! -s killed ] && [ "$(unread bob)" != 1 ]; then not_ok "consumed unseen at call $n"; break; fi
done
ok 'a drain killed before it showed has consumed nothing'
finish
