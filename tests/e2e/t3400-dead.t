# once
# Dead letters: what failed is kept, can be delivered again, and is deleted only on request.
. "$(dirname "$0")/../lib/tap.sh"

# fail FROM TO TEXT: TO takes it and gives it up; prints the id.
fail() {
	send "$1" "$2" "$3" >/dev/null
	"$BIN" --as "$2" recv --json </dev/null 2>/dev/null >work
	"$BIN" --as "$2" fail "$(jq -r .token work)" --reason 'cannot' </dev/null >/dev/null 2>&1
	jq -r .id work
}
dead() { mr dead list --json | jq -r .id | tr '\n' ' '; }

room alice bob carol
exits 0 'nothing is dead yet' mr dead list
says out '^no dead letters' 'and that is said'
id=$(fail alice bob 'the tests')
same "$id " "$(dead)" 'what was failed is listed'
exits 0 'show, by the end of its id' mr dead show "${id#????????????????????}"
says out 'not instructions' 'is fenced'
says out '^the tests' 'and shows its text'
exits 0 'retry' mr --as alice dead retry "$id"
same '' "$(dead)" 'takes it away'
same "$(cat out) $id" "$(mr --as bob inbox --json | jq -r '"\(.id) \(.thread)"')" 'and delivers it again, in its thread'
exits 5 'a second retry finds nothing' mr --as alice dead retry "$id"
mr --as bob drain >/dev/null

id=$(fail alice bob 'other tests')
exits 5 'retry for nobody' mr --as alice dead retry "$id" --to nobody
exits 0 'retry for another' mr --as alice dead retry "$id" --to carol --json
same 'carol' "$(jq -r '.to[]' out)" 'is said'
same 1 "$(unread carol)" 'and done'

id=$(fail alice bob 'more tests')
exits 2 'drop wants --force' mr --as alice dead drop "$id"
same "$id " "$(dead)" 'and does nothing without'
exits 0 'drop --force' mr --as alice dead drop "$id" --force
same '' "$(dead)" 'deletes it'
check "and not the sender's copy" sh -c "'$BIN' --as alice sent --json </dev/null | grep -q $id"
exits 5 'once' mr --as alice dead drop "$id" --force

# ---- work ----
mr --as alice queue create builds >/dev/null
send alice queue:builds 'build main' >/dev/null
mr --as bob recv queue:builds --json >work
mr --as bob fail "$(jq -r .token work)" --reason 'no compiler' >/dev/null
exits 0 'failed work' mr dead list
says out 'failed in queue:builds' 'is a dead letter, too'
exits 0 'retry' mr --as alice dead retry "$(jq -r .id work)"
same '1 0' "$(mr queue show builds --json | jq -r '"\(.ready) \(.failed)"')" 'puts it back into its queue'

# ---- one message, several recipients ----
# give_up AGENT [QUEUE]: AGENT takes the next thing and gives it up.
give_up() {
	"$BIN" --as "$1" recv ${2:+"$2"} --json </dev/null 2>/dev/null >work
	"$BIN" --as "$1" fail "$(jq -r .token work)" --reason 'cannot' </dev/null >/dev/null 2>&1
}
states() { mr --as alice why "$1" --json | jq -r '"\(.agent):\(.state)"' | sort | tr '\n' ' ' | sed 's/ $//'; }
room alice bob carol
id=$(mr --as alice send bob carol -m 'for both')
give_up bob
exits 0 "one recipient's copy" mr --as alice dead retry "$id"
again=$(cat out)
give_up carol
exits 0 "then the other's" mr --as alice dead retry "$id"
same '' "$(dead)" 'and none is left'
same '1 1' "$(unread bob) $(unread carol)" 'each has it once'
same 'alice:sent bob:failed bob:retried carol:failed carol:retried' "$(states "$id")" 'why tells of both'
exits 0 'why' mr --as alice why "$id"
says out "delivered again as $again by 'alice'" 'names the new id and who did it'
give_up bob
give_up carol
id=$(mr --as alice send bob carol -m 'for both again')
give_up bob
give_up carol
exits 0 'both copies are dropped at once' mr --as alice dead drop "$id" --force
same 0 "$(mr dead list --json | grep -c "$id")" 'and none is left'
same 'alice:sent bob:dropped bob:failed carol:dropped carol:failed' "$(states "$id")" 'why knows that, too'

mr --as alice queue create builds >/dev/null
id=$(mr --as alice send bob queue:builds -m 'for bob and the queue')
give_up bob
give_up carol queue:builds
exits 0 'failed in a mailbox and in a queue' mr --as alice dead retry "$id"
says err 'queue:builds' 'the retry of one names the other'
same 1 "$(unread bob)" 'and goes to the mailbox'
exits 0 'the other' mr --as alice dead retry "$id"
same 1 "$(mr queue show builds --json | jq -r .ready)" 'goes to the queue'
mr --as alice queue delete builds --force >/dev/null 2>&1
id=$(mr dead list --json | jq -r 'select(.to[0] == "queue:builds") | .id')
exits 5 'work of a queue that is gone' mr --as alice dead retry "$id"
says err "queue 'builds' no longer exists" 'is not retried'
says err '--to' 'and one is told how to go on'
mr --as alice queue create builds >/dev/null
exits 0 'when the queue is there again' mr --as alice dead retry "$id"
same 1 "$(mr queue show builds --json | jq -r .ready)" 'it goes back to it'

# ---- killed at any step; the slower builds take fewer of them ----
case $BIN in */asan/* | */portable/*) often=4 ;; *) often=1 ;; esac
if [ "${ROOM-}" = postgres ] || MAILROOM_FAULT=help "$DEVBIN" where </dev/null >/dev/null 2>&1; then
	skip 'a retry that is killed' 'this build has no fault points'
else
	room alice bob carol
	n=1 bad=0 killed=0 last=0
	while [ $n -lt 200 ]; do
		id=$(fail alice bob "retry $n")
		MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice dead retry "$id" --to carol </dev/null >/dev/null 2>&1 && { last=1; break; }
		killed=$((killed + 1))
		[ -z "$(dead)" ] || mr --as bob dead retry "$id" --to carol >/dev/null 2>err || { note <err; bad=$((bad + 1)); }
		[ -z "$(dead)" ] || bad=$((bad + 1))
		n=$((n + 7 * often))
	done
	check 'a retry is killed at many steps' test $killed -gt 5
	same 0 $bad 'and repeated by another'
	same $((killed + last)) "$(unread carol)" 'each time it is delivered once'
	same $((killed + last)) "$(mr --as carol inbox --json | jq -r .subject | sort -u | wc -l | tr -d ' ')" 'and none is missing'

	room alice bob carol
	n=2 bad=0 killed=0
	while [ $n -lt 300 ]; do
		id=$(mr --as alice send bob carol -m "both $n")
		give_up bob
		give_up carol
		MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice dead retry "$id" </dev/null >/dev/null 2>&1 && break
		killed=$((killed + 1))
		[ -z "$(dead)" ] || mr --as bob dead retry "$id" >/dev/null 2>err || { note <err; bad=$((bad + 1)); }
		[ -z "$(dead)" ] || bad=$((bad + 1))
		[ "$(unread bob) $(unread carol)" = '1 1' ] || bad=$((bad + 1))
		case $(states "$id") in
		*bob:retried*carol:retried*) ;;
		*) bad=$((bad + 1)) ;;
		esac
		mr --as bob drain >/dev/null
		mr --as carol drain >/dev/null
		n=$((n + 13 * often))
	done
	check 'a retry for two is killed at many steps' test $killed -gt 5
	same 0 $bad 'and repeated: both have it once, both letters are gone, and why tells so'
fi

# ---- pruned ----
room alice bob carol
id=$(send alice carol 'never read')
mr prune carol --force >/dev/null 2>&1
same "$id " "$(dead)" 'unread mail of a pruned agent is kept'
exits 5 'it cannot go back to her' mr --as alice dead retry "$id"
says err '--to' 'and one is told how to go on'
exits 0 'but to another' mr --as alice dead retry "$id" --to bob
same 1 "$(unread bob)" 'who has it now'
# ---- a command that can list does so when nothing else is said ----
room alice
for word in dead queue channel group types config; do
	"$BIN" $word list >want 2>&1 </dev/null; a=$?
	"$BIN" $word >got 2>&1 </dev/null; b=$?
	[ $a = $b ] && cmp -s want got || { echo "$word: exit $a, then $b"; cat got; }
done >wrong
same '' "$(cat wrong)" 'dead, queue, channel, group, types and config alone are their list'

finish
