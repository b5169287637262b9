# Work queues: one claimant a message, limits, status, leases, deleting.
. "$(dirname "$0")/../lib/tap.sh"

token() { jq -r .token out; }
ready() { mr queue show "$1" --json | jq -r "\"\(.ready) \(.delayed) \(.claimed) \(.done) \(.failed)\""; }

room alice bob carol
exits 0 'no queues yet' mr queue list
says out '^no queues' 'is said'
exits 0 'create' mr --as alice queue create builds --attempts 2
exits 4 'a name is taken once' mr --as bob queue create builds
exits 4 'names are checked' mr --as alice queue create '../etc'
exits 2 'a second word that is none' mr queue nonsense
exits 2 'and must be one of ours' mr queue crate x
says err "did you mean 'create'" 'with the nearest'
exits 2 'an order is fifo or priority' mr --as alice queue create x --order lifo
says err "'lifo' is not one of fifo, priority" 'which are named'
exits 2 'a number has an upper bound' mr --as alice queue create x --attempts 1000001
says err 'at most 1000000' 'which is named'
exits 2 'a lease of no time is none' mr --as alice queue create x --lease 0s
check 'settings are header lines' grep -qx 'Attempts: 2' .mailroom/queues/builds/settings
a=$(send alice queue:builds 'one'); b=$(send alice queue:builds 'two')
same '2 0 0 0 0' "$(ready builds)" 'what waits is counted'

# ---- one claimant ----
exits 0 'recv queue:builds' mr --as bob recv queue:builds --json
same "$a" "$(jq -r .id out)" 'takes the oldest'
bob=$(token)
exits 0 'claim is the same' mr --as carol claim builds --json
same "$b" "$(jq -r .id out)" 'and the other gets the next'
carol=$(token)
exits 0 'its thread' mr --as carol thread "$b"
says out '^two$' 'has the work in her hands'
exits 0 'also as JSON' mr --as carol thread "$b" --json
same "$b" "$(jq -r .id out)" 'once'
exits 0 'and its bytes' mr --as carol read --raw "$b"
says out '^Message-ID: <' 'as they are stored'
exits 5 'which are not for others' mr --as bob read --raw "$b"
exits 3 'then nothing is left' mr --as bob claim builds
exits 4 "a stranger's release is refused" mr --as bob release "$carol"
says err "belongs to 'carol'" 'and told whose it is'
exits 0 'show' mr queue show builds
says out 'held by .bob. for .*, attempt 1 of 2, live' 'tells who holds what'
says out '2 attempts .a release does not count.' 'and the rule'
says out "claimers '\*', 0 of them live, 3 unknown" 'and how many could'
silent_about out "$bob" 'and no token'
exits 0 'done by token' mr --as bob done "$bob"
exits 5 'a second done is refused' mr --as bob done "$bob"
exits 0 'release by the bare id' mr --as carol release "$b"
exits 0 'it comes again' mr --as carol recv queue:builds --json
same '1 2' "$(jq -r '"\(.attempt) \(.attempts)"' out)" 'and a release is no attempt'
exits 0 'fail' mr --as carol fail "$(token)" --reason 'no compiler'
same '0 0 0 1 1' "$(ready builds)" 'done and failed are counted'
exits 0 'the sender' mr --as alice inbox --json
same "carol bounce $b" "$(jq -r '"\(.from) \(.type) \(.reply_to)"' out)" 'got a bounce'
exits 2 'filters are for mail of one'"'"'s own' mr --as bob recv queue:builds --from alice
exits 5 'an unknown queue' mr --as bob recv queue:buidls
says err "'builds'" 'with near names'

# ---- releasing ----
room alice bob carol
mr --as alice queue create q >/dev/null
for i in 1 2 3; do send alice queue:q "w$i" >/dev/null; done
for i in 1 2 3; do
	exits 0 'recv' mr --as bob recv queue:q --json
	same "w$i 1" "$(jq -r '"\(.subject) \(.attempt)"' out)" "who releases comes to task $i"
	exits 0 'release' mr --as bob release "$(token)" --reason "no compiler $i"
done
d=$(send alice queue:q 'w4')
exits 0 'new work' mr --as bob recv queue:q --json
same w4 "$(jq -r .subject out)" 'goes to who released all the rest'
work=$(token)
same 'w1 w2 w3 ' "$(mr --as carol recv queue:q --limit 9 --json | jq -r .subject | tr '\n' ' ')" 'others get it as it was released'
exits 0 'release --to' mr --as bob release "$work" --to carol --for 2s --reason 'needs her key'
exits 3 'nobody else gets it' mr --as alice recv queue:q
exits 0 'why' mr --as alice why "$d"
says out "bob +released .*released at .*: 'needs her key', only for 'carol' until" 'tells who, when, why and for whom'
says out "only for .carol. until" 'and that it waits for one'
exits 0 'she gets it' mr --as carol recv queue:q --json
same "$d" "$(jq -r .id out)" 'at once'
exits 0 'and gives it back' mr --as carol release "$(token)" --to bob --for 1s
exits 0 'and when its time is over' mr --as alice recv queue:q --wait 15s --json
same "$d 1" "$(jq -r '"\(.id) \(.attempt)"' out)" 'others get it'
exits 0 'done' mr --as alice done "$(token)"
exits 0 'why' mr --as alice why "$d" --json
same 'bob released carol released alice done ' "$(jq -r 'select(.agent != "" and .state != "sent") | "\(.agent) \(.state)"' out | tr '\n' ' ')" 'has its history'
send alice queue:q o1 >/dev/null
exits 0 'carol takes work' mr --as carol recv queue:q --json
held=$(jq -r .id out) work=$(token)
exits 4 'another agent cannot release it' mr --as bob release "$held"
exits 0 'the operator can, by its id' mr --as operator release "$held" --reason 'carol sleeps'
exits 5 'her done comes too late' mr --as carol done "$work"
exits 0 'another takes it' mr --as alice recv queue:q --json
same "$held 1" "$(jq -r '"\(.id) \(.attempt)"' out)" 'the same work, and it was no attempt'
exits 0 'done' mr --as alice done "$(token)"
exits 0 'why' mr --as alice why "$held" --json
same 'true' "$(jq -r 'select(.state == "released") | .at != null' out)" 'says when'
mr --as carol inbox --all --json | jq -r .token >tokens
exits 5 'to nobody' mr --as carol release "$(head -n 1 tokens)" --to crol
exits 2 'for how long goes with for whom' mr --as carol release "$(head -n 1 tokens)" --for 1s
mr --as alice queue create p --order priority --claimers 'bob' >/dev/null
mr --as alice send queue:p --priority urgent -m u1 >/dev/null; send alice queue:p n1 >/dev/null
mr --as bob recv queue:p --json >out; work=$(token)
exits 4 'only a claimer' mr --as bob release "$work" --to carol
exits 0 'urgent work is released' mr --as bob release "$work"
exits 0 'and does not keep its releaser' mr --as bob recv queue:p --json
same n1 "$(jq -r .subject out)" 'from the rest'
exits 0 'nothing else is left' mr --as bob recv queue:p --json
same u1 "$(jq -r .subject out)" 'then it comes again'
for i in 1 2; do send alice bob "m$i" >/dev/null; done
exits 0 'mail of ones own' mr --as bob recv --json
work=$(token)
exits 4 'has no reason' mr --as bob release "$work" --reason x
exits 4 'and nobody else' mr --as bob release "$work" --to alice
exits 0 'but is released' mr --as bob release "$work"
same 'm2 1 m1 1 ' "$(mr --as bob recv --limit 2 --json | jq -r '"\(.subject) \(.attempt)"' | tr '\n' ' ')" 'and comes after the rest'
exits 0 'doctor' mr doctor
exits 0 'purge' mr --as alice purge "$d"
check 'takes the past along' sh -c "! find .mailroom/queues/q/past | grep -q $d"

# ---- expiry ----
room alice bob carol
mr --as alice queue create builds --attempts 2 >/dev/null
a=$(send alice queue:builds 'slow')
exits 0 'a short lease' mr --as bob claim builds --lease 1 --json
late=$(token); sleep 1.2
exits 0 'runs out' mr --as carol claim builds --lease 1 --json
same "$a 2" "$(jq -r '"\(.id) \(.attempt)"' out)" 'and the work goes to another'
exits 5 'a late done is refused' mr --as bob done "$late"
sleep 1.2
exits 3 'after the last attempt nobody gets it' mr --as bob claim builds
same '0 0 0 0 1' "$(ready builds)" 'it is failed'
same 'carol|bounce' "$(mr --as alice inbox --json | jq -r '"\(.from)|\(.type)"')" 'and its sender told, once'
id=$(mr --as alice inbox --json | jq -r .id)
exits 0 'the bounce' mr --as alice read "$id"
says out 'attempts used up' 'gives the reason'

# ---- status ----
room alice bob
mr --as alice queue create builds >/dev/null
mr --as alice queue pause builds >/dev/null
exits 0 'a paused queue takes mail' mr --as alice send queue:builds -m one
exits 4 'and gives nothing out' mr --as bob recv queue:builds
says err 'paused' 'and says why'
exits 0 'resume' mr --as alice queue resume builds
exits 0 'gives it out' mr --as bob recv queue:builds --json
work=$(token)
exits 0 'close' mr --as alice queue close builds
exits 4 'refuses mail' mr --as alice send queue:builds -m two
exits 4 'and claims' mr --as bob recv queue:builds
exits 4 'and is not deleted with work in it' mr --as alice queue delete builds
exits 0 'running work may finish' mr --as bob done "$work"
exits 0 'then it is deleted' mr --as alice queue delete builds
exits 5 'and gone' mr queue show builds

# ---- delete with work in it ----
mr --as alice queue create builds >/dev/null
a=$(send alice queue:builds 'one')
exits 0 'delete --force' mr --as bob queue delete builds --force --json
same "$a" "$(mr dead list --json | jq -r .id)" 'moves the work to dead letters'
same "bounce $a" "$(mr --as alice inbox --json | jq -r '"\(.type) \(.reply_to)"')" 'and tells its sender'

# ---- limits, order, claimers ----
room alice bob rig/crew/max rig/witness
mr --as alice queue create q1 --max-claims 2 >/dev/null
for i in 1 2 3; do send alice queue:q1 "w$i" >/dev/null; done
exits 0 'two claims' mr --as bob recv queue:q1 --limit 5 --json
same 2 "$(wc -l <out)" 'are what --max-claims 2 allows'
token=$(head -n 1 out | jq -r .token)
exits 4 'a third is refused' mr --as alice recv queue:q1
mr --as bob done "$token" >/dev/null
exits 0 'and allowed when one is done' mr --as alice recv queue:q1
mr --as alice queue create q2 --order priority >/dev/null
for p in low normal urgent high; do "$BIN" --as alice send queue:q2 --priority $p -m $p </dev/null >/dev/null 2>&1; done
same 'urgent high normal low ' "$(mr --as bob recv queue:q2 --limit 9 --json | jq -r .subject | tr '\n' ' ')" 'urgent first'
mr --as alice queue create rig/q3 --claimers 'rig/crew/*' >/dev/null
send alice queue:rig/q3 crew >/dev/null
exits 4 'only claimers may claim' mr --as rig/witness recv queue:rig/q3
exits 0 'by their pattern' mr --as rig/crew/max claim rig/q3
same 'q1 q2 rig/q3 ' "$(mr queue list --json | jq -r .name | sort | tr '\n' ' ')" 'all are listed'

# ---- delay, waiting, takeover ----
mr --as alice queue create q4 >/dev/null
exits 0 'a delayed message' mr --as alice send queue:q4 --not-before 2s -m later
same '0 1 0 0 0' "$(ready q4)" 'waits for its time'
exits 3 'and cannot be claimed before' mr --as bob recv queue:q4
exits 0 'waiting gets it' mr --as bob recv queue:q4 --wait 15s --json
same later "$(jq -r .subject out)" 'when its time has come'
mr --as bob done "$(token)" >/dev/null
(sleep 0.4; send alice queue:q4 'fresh' >/dev/null) &
exits 0 'waiting gets what is sent meanwhile' mr --as alice recv queue:q4 --wait 15s --json
same fresh "$(jq -r .subject out)" 'at once'
wait
send alice queue:q4 'of an old life' >/dev/null
mr --as bob recv queue:q4 --lease 1h --json >/dev/null
mr takeover bob >/dev/null 2>&1
exits 0 'after a takeover' mr --as alice recv queue:q4 --json
same 'of an old life 2' "$(jq -r '"\(.subject) \(.attempt)"' out)" 'the work of the old life is back at once'
(sleep 0.4; send alice bob 'for bob himself' >/dev/null) &
exits 0 'recv --wait without a queue' mr --as bob recv --wait 15s --json
same 'for bob himself' "$(jq -r .subject out)" "waits for one's own mail"
wait

# ---- what may still come ----
room alice bob carol
mr --as alice queue create q >/dev/null
send alice queue:q 'one' >/dev/null
mr --as bob recv queue:q --json >out; work=$(token)
exits 3 'nothing to take' mr --as carol recv queue:q
says err '1 is claimed by others and may come back' 'but it may come back'
exits 3 'nor with --json' mr --as carol recv queue:q --json
same 'empty 1 0' "$(jq -r '"\(.state) \(.claimed) \(.mine)"' out)" 'which has the numbers'
exits 3 'the holder' mr --as bob recv queue:q
says err '1 is in your hands' 'knows it'
exits 3 'for whom it is drained' mr --as bob recv queue:q --until-drained
exits 3 'others wait' mr --as carol recv queue:q --until-drained --wait 1s
exits 3 'queue wait --empty' mr queue wait q --empty --timeout 1s
says err 'not empty' 'has its time'
exits 3 'queue wait' mr queue wait q --timeout 0 --json
same '0 1' "$(jq -r '"\(.ready) \(.claimed)"' out)" 'counts'
(sleep 0.4; mr --as bob release "$work" >/dev/null) &
exits 0 'until it comes back' mr --as carol recv queue:q --until-drained --json
work=$(token); wait
(sleep 0.6; mr --as carol done "$work" >/dev/null) &
exits 3 'or is done' mr --as bob recv queue:q --until-drained
silent_about err 'claimed|ready' 'and nothing is left'
wait
exits 0 'queue wait --empty sees it, too' mr queue wait q --empty --timeout 60s
exits 2 'ones own mail is not drained' mr --as bob recv --until-drained
(sleep 0.4; send alice queue:q 'two' >/dev/null) &
exits 0 'queue wait' mr queue wait q --timeout 15s
says out '1 ready' 'ends with work'
wait

# ---- what is in my hands can be read and answered ----
room alice bob carol
mr --as alice queue create q >/dev/null
a=$(send alice queue:q 'build main')
mr --as bob recv queue:q --json >out; work=$(token)
short=$(printf %s "$a" | tail -c 6)
exits 0 'claimed work can be read by its short id' mr --as bob read "$short"
says out 'build main' 'and is shown'
exits 0 'and by its id' mr --as bob read --peek "$a"
exits 5 'but not by another' mr --as carol read "$a"
exits 0 'inbox --all' mr --as bob inbox --all --json
same "$a held $work" "$(jq -r '"\(.id) \(.folder) \(.token)"' out)" 'lists it with its token'
exits 0 'a filter' mr --as bob inbox --all --from carol --json
same '' "$(cat out)" 'applies to it, too'
exits 0 'status' mr --as bob status --json
same 1 "$(jq -r .held out)" 'counts it'
exits 0 'send --reply-to' mr --as bob send alice --reply-to "$short" -m 'started'
exits 0 'still claimed' mr --as bob done "$work"
exits 0 'done work is answered by its full id' mr --as bob send alice --reply-to "$a" -m 'built'
same "$a $a" "$(mr --as alice inbox --json | jq -r .reply_to | tr '\n' ' ' | sed 's/ $//')" 'in its thread'
exits 5 'and not by the end of it' mr --as bob send alice --reply-to "$short" -m 'built'

# ---- show lists the tasks ----
room alice bob carol
mr --as alice queue create q --attempts 2 >/dev/null
for i in 1 2 3 4; do send alice queue:q "task $i" >/dev/null; done
mr --as alice send queue:q --not-before 1h -m 'much later' >/dev/null
mr --as bob recv queue:q --json >out; mr --as bob done "$(token)" -m 'fine' >/dev/null; id=$(jq -r .id out)
mr --as bob recv queue:q --json >out
mr --as carol recv queue:q --json >out; mr --as carol release "$(token)" --to alice >/dev/null
exits 0 'show' mr queue show q
says out "claimed .* bob .* 1 of 2 +'task 2'" 'claimed work has its holder'
says out "ready .* 0 of 2 +'task 4'" 'what waits'
says out "reserved .* alice .* 'task 3'" 'what is for one'
says out "delayed .* 'much later'" 'and what is for later'
silent_about out 'task 1' 'but not what is done'
exits 0 'show --done' mr queue show q --done
says out "done .* bob .* 'task 1'" 'shows that, too'
exits 0 'show --json' mr queue show q --done --limit 3 --json
same 'claimed ready reserved 2' "$(jq -r '"\(.tasks | map(.state) | join(" ")) \(.more_tasks)"' out)" 'has the tasks'
exits 0 'why' mr --as alice why "$id"
says out 'bob +done .*claimed from queue .q. at .*done at' 'tells who did it'
says out "bob +answered .*'bob' answered with" 'and the answer'
m=$(send alice bob 'a question')
mr --as bob check --inject >/dev/null
exits 0 'why of mail' mr --as alice why "$m"
says out "bob +announced +listed to life 1 of 'bob' by check at 20[0-9T:.-]*Z" 'tells when it was announced'
sed -i 's/=.*//' .mailroom/records/announced/bob/*
exits 0 'with the memory of an older version' mr --as alice why "$m"
says out "listed to life 1 of 'bob'; the time was not recorded" 'it tells what is known'
exits 0 'and nothing' mr --as bob check --inject
silent_about out "$m" 'is announced again'
answer=$(mr --as bob reply "$m" -m 'an answer' 2>/dev/null)
exits 0 'why' mr --as alice why "$m" --json
same "$answer" "$(jq -r 'select(.state == "answered").evidence' out | grep -o "$answer")" 'and the id of the answer'
says out "marked read and answered; its file last changed at 20" 'and when it was marked'

# ---- done with a result, and done twice ----
room alice bob carol
mr --as alice queue create q --attempts 3 >/dev/null
a=$(send alice queue:q 'run the tests'); send alice queue:q 'two' >/dev/null
mr --as bob recv queue:q --json >out; work=$(token)
exits 4 "another's claim by its id" mr --as carol release "$a"
says err "belongs to 'bob'" 'is not over'
exits 2 'a result is for one' mr --as bob done "$work" "$work" -m x
exits 0 'done -m' mr --as bob done "$work" -m 'all 214 pass' --json
answer=$(jq -r .answer out)
exits 0 'the sender' mr --as alice inbox --json
same "$answer bob $a" "$(jq -r '"\(.id) \(.from) \(.reply_to)"' out)" 'has the answer, in the thread'
exits 0 'it' mr --as alice read "$answer"
says out 'all 214 pass' 'is the result'
exits 5 'once more' mr --as bob done "$work" -m 'all 214 pass'
says err "was done by you at 20" 'says when it was done'
exits 5 'by its id' mr --as bob done "$a"
says err "was done by you at 20" 'too'
same 1 "$(mr --as alice inbox --all --json | grep -c .)" 'and nobody is told twice'
mr --as bob recv queue:q --json >out; work=$(token)
mr --as bob release "$work" >/dev/null
exits 5 'after a release' mr --as bob done "$work"
says err "was released by you at 20" 'that is said'
mr --as bob recv queue:q --lease 1 --json >out; work=$(token); sleep 1.2
mr --as carol recv queue:q --json >out; other=$(token)
exits 5 'after the lease' mr --as bob done "$work"
says err "your claim on .* is over: its lease ran out, and it went back at 20" 'that is said'
exits 0 'a result from stdin' sh -c "echo built | '$BIN' --as carol done '$other' -f -"
same "carol" "$(mr --as alice inbox --json | jq -r 'select(.from == "carol") | .from')" 'goes to the sender, too'
b=$(send bob queue:q 'my own'); mr --as bob recv queue:q --json >out
exits 0 'a result of work that I sent myself' mr --as bob done "$(token)" -m 'done'
same '0 0 0 3 0' "$(ready q)" 'is no new work'
same "$b" "$(mr --as bob inbox --json | jq -r .reply_to)" 'and mine'
send carol queue:q 'of one who leaves' >/dev/null; mr --as bob recv queue:q --json >out; work=$(token)
mr prune carol --force >/dev/null
exits 0 'nobody to tell' mr --as bob done "$work" -m 'done'
says err "sender 'carol' is gone" 'is said'

# ---- a result that was sent by a command which was killed before the end ----
room alice bob
mr --as alice queue create q >/dev/null
w=$(send alice queue:q 'work'); mr --as bob recv queue:q --json >out; work=$(token)
n=200
while [ $n -lt 900 ] && [ "$(unread alice)" = 0 ]; do
	n=$((n + 10)); MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as bob done "$work" -m 'one' </dev/null >/dev/null 2>&1
done 2>/dev/null
same '1 claimed' "$(unread alice) $(mr queue show q --json | jq -r '.tasks[0].state')" 'the sender has it, the work is still held'
exits 4 'other words' mr --as bob done "$work" -m 'two'
says err "a result of this claim on '$w' was sent before, in other words" 'are not sent, and that is said'
says err "mailroom done $work. without a text finishes" 'and what to do'
exits 0 'the same words' mr --as bob done "$work" -m 'one'
same '1 1' "$(unread alice) $(mr queue show q --json | jq .done)" 'finish it, and nobody is told twice'

# ---- work that is for one alone, when the story of its release is lost ----
room alice bob carol
mr --as alice queue create q >/dev/null
send alice queue:q 'for carol' >/dev/null
mr --as bob recv queue:q --json >out
mr --as bob release --to carol "$(token)" >/dev/null
rm -r .mailroom/queues/q/past
same 'reserved carol' "$(mr queue show q --json | jq -r '.tasks[0] | "\(.state) \(.who)"')" 'the name says for whom'
exits 3 'nobody else gets it' mr --as alice recv queue:q --json
same 1 "$(jq .reserved out)" 'it is reserved'
exits 0 'she does' mr --as carol recv queue:q --json
mr --as carol release --to bob --for 300d "$(token)" >/dev/null
exits 3 'work for bob' mr --as alice recv queue:q
exits 0 'why' mr --as alice why "$(mr queue show q --json | jq -r '.tasks[0].id')"
says out "ready .* only for 'bob' until 20" 'says whose it is'
mr prune bob --force >/dev/null
same ready "$(mr queue show q --json | jq -r '.tasks[0].state')" 'is for everybody when he is removed'
exits 0 'and given out' mr --as alice recv queue:q
mr --as alice queue create p --order priority >/dev/null
send alice queue:p 'normal' >/dev/null; mr --as alice send queue:p --priority urgent -m 'urgent' >/dev/null 2>&1
same 'urgent normal' "$(mr queue show p --json | jq -r '[.tasks[].subject] | join(" ")')" 'queue show has the order in which work is given out'

# ---- a holder who is pruned or taken over ----
room alice bob carol
mr --as alice queue create q >/dev/null
send alice queue:q 'w0' >/dev/null; mr --as bob recv queue:q --json >out; mr --as bob done "$(token)" >/dev/null
for i in 1 2; do send alice queue:q "w$i" >/dev/null; done
mr --as bob recv queue:q --limit 2 >/dev/null
send alice bob 'for bob' >/dev/null; mr --as bob recv >/dev/null
exits 0 'takeover' mr takeover bob
says out '2 claims of the last life went back to queues' 'says what went back'
same '2 0 0 1 0' "$(ready q)" 'and it is ready'
mr --as bob recv queue:q >/dev/null; mr --as bob recv >/dev/null
exits 0 'prune --dry-run' mr prune bob --force --dry-run
says out 'bob: 1 unread message to dead letters, 1 claim back to queues' 'counts what is held'
exits 0 'prune' mr prune bob --force
says out 'bob: 1 unread message to dead letters, 1 claim back to queues' 'does the same'
same '2 0 0 1 0' "$(ready q)" 'and its work is ready'

# ---- what cannot be read ----
[ "${ROOM-}" != postgres ] || finish # from here on it is about files
room alice bob
mr --as alice queue create q >/dev/null
for i in 1 2 3; do send alice queue:q "w$i" >/dev/null; done
files=$(find .mailroom/queues/q/ready -name '*.mr' | sort)
first=$(echo "$files" | sed -n 1p); chmod u+w "$first"; : >"$first"
ln -sf /etc/passwd "$(echo "$files" | sed -n 2p)"
exits 1 'doctor' mr doctor
says out "ready/.* is empty" 'tells of empty work'
exits 0 'broken work is skipped' mr --as bob recv queue:q
says out 'w3' 'and the next is given out'
says err 'skipped 2 that cannot be read' 'which is said'
same '0 0 1 0 2' "$(ready q)" 'and kept as failed'
send alice queue:q 'w4' >/dev/null
chmod u+w "$(find .mailroom/queues/q/ready -name '*.mr')"; : >"$(find .mailroom/queues/q/ready -name '*.mr')"
exits 3 'nothing else is there' mr --as bob recv queue:q
says err 'skipped what cannot be read' 'that is said, too'
b=$(send alice queue:q 'w5'); send alice queue:q 'w6' >/dev/null
if [ "$(id -u)" != 0 ]; then
	chmod 0 .mailroom/queues/q/ready/*/*/*"$b"*
	exits 0 'what cannot be read now' mr --as bob recv queue:q
	says out 'w6' 'is passed by'
	same '1 0 2 0 3' "$(ready q)" 'and stays'
fi
: >.mailroom/queues/q/settings
mr --as alice queue create fine >/dev/null
exits 1 'emptied settings are no defaults' mr queue show q
says err 'the file is empty' 'and that is said'
exits 1 'nor are they mended by a change' mr --as alice queue pause q
exits 1 'a list' mr queue list --json
says out 'fine' 'still names the others'

# ---- waiting at the limit, a sender who is gone ----
room alice bob carol
mr --as alice queue create q --max-claims 1 >/dev/null
for i in 1 2; do send carol queue:q "w$i" >/dev/null; done
mr --as bob recv queue:q --json >out; work=$(token)
exits 4 'at the limit' mr --as alice claim q
says err '1 claim is live' 'it is said'
exits 3 'waiting ends with nothing' mr --as alice claim q --wait 1s
silent_about err 'wait;|kept' 'and no advice to wait'
(sleep 0.4; mr --as bob release "$work" >/dev/null) &
exits 0 'or when there is a place' mr --as alice claim q --wait 15s --json
work=$(token); wait
mr prune carol --force >/dev/null
exits 0 'fail' mr --as alice fail "$work" --reason 'no compiler'
says err "sender 'carol' is gone and was not told" 'says that nobody hears of it'

# ---- an answer to work in my hands ----
room alice bob
mr --as alice queue create builds >/dev/null
send alice queue:builds 'which branch?' >/dev/null
exits 0 'work is taken' mr --as bob recv queue:builds --json
id=$(jq -r .id out)
exits 0 'and answered while it is held' mr --as bob reply "$id" -m main
same "$id" "$(mr --as alice inbox --json | jq -r .reply_to)" 'the sender finds the answer to it'
exits 4 'an agent cannot be registered under the name of a queue' mr register builds
mr register mayor >/dev/null 2>&1
exits 4 'nor under another spelling of one that is there' mr register rig/mayor
says err 'another spelling' 'and is told which'
# ---- one notion of who is there ----
room alice bob
mr --as alice queue create jobs >/dev/null 2>&1
mr who --json >who; mr queue show jobs --json >shown
same "$(jq -r 'select(.state=="live").name' who | wc -l | tr -d ' ') $(jq -r 'select(.state=="unknown").name' who | wc -l | tr -d ' ')" \
	"$(jq -r '"\(.live_claimers) \(.unknown_claimers)"' shown)" 'who and queue show count the same agents as live and as unknown'
exits 0 'and in words' mr queue show jobs
says out "0 of them live, 2 unknown" 'they say it'


# ---- a power cut can leave work under the name of its claim and under that of its end ----
room alice bob
mr --as alice queue create done --lease 1s >/dev/null; mr --as alice queue create fail --lease 1s --attempts 1 >/dev/null
for end in done fail; do
	q=.mailroom/queues/$end
	id=$("$BIN" --as alice send "queue:$end" -m "ghost $end" </dev/null 2>/dev/null)
	mr --as bob recv "queue:$end" --json >out; t=$(jq -r .token out)
	claim=$(ls $q/claimed)
	mr --as bob $end "$t" $([ $end = done ] || echo --reason broken) >/dev/null 2>&1
	ln "$(find $q/done $q/failed -type f -name "*$id*" 2>/dev/null)" "$q/claimed/$claim" || not_ok 'the name of the claim is there again'
	MAILROOM_TEST_CLOCK_OFFSET_MS=180000 "$DEVBIN" --as alice recv "queue:$end" </dev/null >out 2>&1
	says out 'nothing to take' "$end: work that was settled does not come back by its old name"
	same 0 "$(ls $q/claimed | wc -l | tr -d ' ')" "$end: which goes"
done
# ---- work that waits for its hour ----
room alice bob
mr --as alice queue create later >/dev/null 2>&1
at() { MAILROOM_TEST_CLOCK_OFFSET_MS=$(($1 * 1000)) "$DEVBIN" --as bob recv queue:later --json </dev/null 2>/dev/null | jq -r '.body // empty'; }
for s in 60 7200 7200 90000; do mr --as alice send queue:later --not-before "$(date -u -d "+$s seconds" +%Y-%m-%dT%H:%M:%SZ)" -m "in $s" >/dev/null; done
delayed=.mailroom/queues/later/delayed
same 3 "$(ls $delayed | wc -l)" 'delayed work is in a folder for each hour'
mv "$(ls -d $delayed/*/* | head -n 1)" $delayed/
same '' "$(at 0)" 'nothing is ready yet'
same 'in 60' "$(at 120)" 'work that an earlier version put beside the hours is handed out'
mkdir -p $delayed/0000400000; same 4 "$(mr queue show later --json | jq '.ready + .delayed + .claimed')" 'and counted'
for s in 1 2; do at 8000; done >bodies
same 'in 7200 in 7200' "$(xargs <bodies)" 'each in its hour'
same '' "$(at 8000)" 'the next day is another'
check 'an hour that is over has no folder any more' test ! -e $delayed/0000400000
same 'in 90000' "$(at 100000)" 'its work comes then'
same 0 "$(find $delayed -type f | wc -l)" 'and nothing is left'
check 'doctor finds nothing wrong' mr doctor
finish
