# once: the crowd tests in C run under the sanitizers; here the real command runs side by side with itself
. "$(dirname "$0")/../lib/tap.sh"

# ---- eight senders, four drains
room alice bob
send_many() { n=0; while [ $n -lt 50 ]; do "$BIN" --as alice send bob -m "from $1 number $n" </dev/null 2>/dev/null || echo failed; n=$((n + 1)); done >sent.$1; }
drain_until() {
	while [ ! -e all-sent ]; do "$BIN" --as bob drain --json </dev/null; done >drained.$1 2>drained.$1.err
	"$BIN" --as bob drain --json </dev/null >>drained.$1 2>>drained.$1.err
}
for s in 1 2 3 4 5 6 7 8; do send_many $s & senders="$senders $!"; done
for d in 1 2 3 4; do drain_until $d & drains="$drains $!"; done
wait $senders; touch all-sent; wait $drains
cat sent.* | sort >sent; cat drained.[1-4] | jq -r .id | sort >drained
same 400 "$(grep -c '^[0-9a-z]\{26\}$' sent)" '8 processes send 50 messages each: all are accepted'
same '' "$(cat drained.*.err)" '4 drains beside them have nothing to complain of'
same "$(cat sent)" "$(cat drained)" 'and show every message exactly once'
same 0 "$(unread bob)" 'none is left'

# ---- one key, twenty processes, killed anywhere, retried until they succeed
fanout() { # fanout NAME TO...: prints the distinct ids that the twenty got
	key=$1; shift
	i=0; while [ $i -lt 20 ]; do
		(
			try=0
			while :; do
				plan=; [ $try -lt 4 ] && plan=kill-after:$(($(od -An -N2 -tu2 /dev/urandom) % 90 + 1))
				MAILROOM_FAULT=$plan "$DEVBIN" --as alice send "$@" --key "$key" -m "once: $key" </dev/null 2>/dev/null && break
				try=$((try + 1))
			done
		) >id.$i &
		i=$((i + 1))
	done 2>/dev/null
	wait
	cat id.*; rm -f id.*
}
room alice bob carol dave erin frank
for round in 1 2; do
	ids=$(fanout "one-$round" bob | sort -u)
	same 1 "$(echo "$ids" | wc -l)" "round $round: 20 processes, one key, one id"
	same "$ids" "$(mr --as bob inbox --json --all | jq -r 'select(.subject == "once: one-'$round'").id')" 'one message'
	ids=$(fanout "five-$round" bob carol dave erin frank | sort -u)
	same 1 "$(echo "$ids" | wc -l)" "round $round: the same for five recipients"
	for who in bob carol dave erin frank; do
		mr --as $who inbox --json --all | jq -r 'select(.subject == "once: five-'$round'").id'
	done >got
	same "$(for who in 1 2 3 4 5; do echo "$ids"; done)" "$(cat got)" 'each has it once'
done
same '' "$(ls .mailroom/spool | grep -v '\.mr$')" 'nothing is left under way' # a message without a record is litter of a killed sender
exits 4 'other content with the same key is refused' mr --as alice send bob --key one-1 -m 'something else'

# ---- killed behind its last link, while one of the three was being removed
room alice bob carol dave
n=60
while :; do
	(MAILROOM_FAULT=kill-after:$n "$DEVBIN" --as alice send bob carol dave -s three -m three </dev/null) >/dev/null 2>&1 && break
	grep -q '^Next: 0*3$' .mailroom/spool/* 2>/dev/null && break
	rm -rf .mailroom/spool/* .mailroom/agents/*/new/*; n=$((n + 1)); [ $n -lt 400 ] || break
done
same 1 "$(ls .mailroom/agents/carol/new | wc -l)" 'a sender is killed when all three have their copy'
rm .mailroom/agents/carol/agent; printf . >>.mailroom/agents/.lock # what a removal did that was over before that copy came
mr --as bob inbox >/dev/null
same 0 "$(ls .mailroom/agents/carol/new | wc -l)" 'the process that completes it sees that one was removed meanwhile'
same 1 "$(mr --as alice dead list --json | jq -r .subject | grep -c '^three$')" 'and her copy is a dead letter'
same '1 1' "$(unread bob) $(unread dave)" 'the others have theirs once'

# ---- status mail is never missing
room alice carol bob
"$BIN" --as alice send bob --replace-key status -m 'status 0' >/dev/null 2>&1 </dev/null
update() { n=0; while [ $n -lt 30 ]; do "$BIN" --as $1 send bob --replace-key status -m "status $n" </dev/null >/dev/null 2>&1; n=$((n + 1)); done; }
rm -f all-sent
update alice & a=$!; update alice & b=$!; update carol & c=$!
(wait_for() { while [ ! -e all-sent ]; do unread bob; done; }; wait_for >seen) & watcher=$!
wait $a $b $c; touch all-sent; wait $watcher
same 0 "$(grep -cx 0 seen)" "an inbox with status mail was never empty, in $(wc -l <seen) looks"
n=$(unread bob)
check "and at the end it has one or two of each ($n)" test "$n" -ge 2 -a "$n" -le 4

# ---- fifty names at once
room
i=0; while [ $i -lt 50 ]; do
	case $((i % 2)) in 0) name=rig$i ;; 1) name=rig$((i - 1))/witness ;; esac
	"$BIN" register $name </dev/null >/dev/null 2>reg.$i || echo $name >>refused &
	i=$((i + 1))
done; wait
check '50 processes register 50 names, half of them within others' test ! -e refused
same 50 "$(mr who --json | jq -r 'select(.name | startswith("rig")).name' | sort -u | wc -l)" 'and all 50 are there'
finish
