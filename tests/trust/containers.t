# SPDX-License-Identifier: MIT
# once
# Two containers and a host on one room (promise 4). The containers are real namespaces: one with a boot clock of its own, one
# with process numbers of its own, one with both. A claim has one claimant until its lease is over for everybody.
. "$(dirname "$0")/../lib/tap.sh"

if [ "$(id -u)" != 0 ] || ! unshare --time --boottime 1000 --pid --fork --mount-proc true 2>/dev/null ||
	! nsenter --time=/proc/self/ns/time true 2>/dev/null; then
	skip 'two containers and a host on one room' 'needs root, and a kernel with time namespaces'
	finish
fi

# container NAME ARGUMENT...: one that runs until the script ends; its first process is a shell that waits. Sets NAME_pid.
started=
trap 'for p in $started; do kill -9 $p 2>/dev/null; done; wait; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
container() {
	name=$1; shift
	unshare --fork --kill-child "$@" sh -c 'echo >"$0.up"; exec sleep 600' "$scratch/$name" & started="$started $!"
	while [ ! -e "$scratch/$name.up" ]; do sleep 0.01; done
	child=$(cat "/proc/$!/task/$!/children"); eval "${name}_pid=${child% }"
}
# `later` and `sooner` share the process numbers of the host, `apart` its clock, `island` neither.
container later --time --boottime 1000000
container sooner --time --boottime -100
container apart --pid --mount-proc
container island --pid --mount-proc --time --boottime 500000
host() { "$@"; }
later() { nsenter -t $later_pid --time "$@"; }
sooner() { nsenter -t $sooner_pid --time "$@"; }
apart() { nsenter -t $apart_pid --mount --pid --wdns="$scratch" "$@"; }
island() { nsenter -t $island_pid --mount --pid --time --wdns="$scratch" "$@"; }
everywhere='host later sooner apart island'
in_() { where=$1; shift; "$where" "$BIN" "$@" </dev/null; } # in_ WHERE ARGUMENT...
same 4 "$(for w in $everywhere; do $w sed -n 's/boottime//p' /proc/self/timens_offsets; done | sort -u | wc -l)" 'the containers have clocks of their own'
same 1 "$(for w in $everywhere; do $w cat /proc/sys/kernel/random/boot_id; done | sort -u | wc -l)" 'and one boot id'

# ---- a lease lasts as long for everybody ----
room alice bob carol dave erin
mr --as alice queue create jobs --attempts 0 >/dev/null 2>&1
for holder in $everywhere; do
	id=$(send alice queue:jobs "from $holder")
	in_ $holder --as bob recv queue:jobs --lease 10m --json >held 2>err || note <err
	for other in $everywhere; do
		in_ $other --as carol recv queue:jobs >/dev/null 2>&1 && echo "$other took what $holder holds"
		in_ $other queue show jobs | grep -q 'held by .bob.*live' || echo "for $other the claim of $holder is over"
	done
	in_ $holder --as bob done "$(jq -r .token held)" >/dev/null 2>err || note <err
done >wrong
same '' "$(cat wrong)" 'work that is held for ten minutes is taken from nowhere else'
for holder in $everywhere; do
	send alice bob "to $holder" >/dev/null
	in_ $holder --as bob recv --lease 10m --json >held 2>err || note <err
	for other in $everywhere; do
		[ "$(in_ $other --as bob inbox --json 2>/dev/null | wc -l)" = 0 ] || echo "$other gave back what $holder holds"
	done
	in_ $holder --as bob done "$(jq -r .token held)" >/dev/null 2>err || note <err
done >wrong
same '' "$(cat wrong)" 'nor is mail given back that an agent works on'
for holder in $everywhere; do
	mr --as alice queue create "from-$holder" --attempts 0 >/dev/null 2>&1
	for other in $everywhere; do
		send alice "queue:from-$holder" "to $other" >/dev/null
		in_ $holder --as bob recv "queue:from-$holder" --lease 1s >/dev/null 2>err || note <err
	done
done
sleep 1.1
for holder in $everywhere; do
	for other in $everywhere; do
		in_ $other --as carol recv "queue:from-$holder" >/dev/null 2>&1 || echo "for $other the claim of $holder goes on"
	done
done >wrong
same '' "$(cat wrong)" 'a lease that ran out is over for everybody, at once'

# ---- a process is judged where its number means something, whatever the clock ----
state() { in_ "$1" who --json 2>/dev/null | jq -r "select(.name==\"$2\").state"; }
states() { for w in $everywhere; do state $w "$1"; done | paste -sd' '; }
sleep 300 & live=$!; started="$started $live"
in_ later takeover dave --pid $live >/dev/null 2>err || note <err
same 'live live live unknown unknown' "$(states dave)" 'a process that one time namespace noted is alive in every other, and unknown to other process numbers'
send alice queue:jobs 'held by a process' >/dev/null
in_ sooner --as dave recv queue:jobs --lease 1s --json >/dev/null 2>err || note <err
sleep 1.1
for w in host later sooner; do in_ $w --as carol recv queue:jobs >/dev/null 2>&1 && echo "taken from $w"; done >wrong
same '' "$(cat wrong)" 'while it lives its lease does not run out for those who see it'
for w in host later sooner apart island; do
	in_ $w register dave >/dev/null 2>err && echo "$w may register it"
	grep -q "process $live" err && grep -q 'takeover dave' err || echo "$w is not told who has it"
done >wrong
same '' "$(cat wrong)" 'its name is taken everywhere, and it is said by whom'
says err "process $live of another pid namespace" 'and where'
exits 4 'it is not pruned from where nobody can see it' in_ island prune dave
says err "may be alive.*process $live" 'because it may be alive'
kill -9 $live; wait $live 2>/dev/null
same 'gone gone gone unknown unknown' "$(states dave)" 'a dead one is dead in every time namespace'
exits 0 'its work comes back' in_ later --as carol recv queue:jobs

# ---- a holder with process numbers of its own ----
exits 0 'an agent lives in a container' in_ island takeover erin --pid 1
same 'unknown unknown unknown unknown live' "$(states erin)" 'and is live only there'
send alice queue:jobs 'held in the island' >/dev/null
exits 0 'it takes work for a second' in_ island --as erin recv queue:jobs --lease 1s --json
token=$(jq -r .token out)
exits 0 'and asks for more' in_ island --as erin extend "$token" --lease 10m
sleep 1.1
for w in host later sooner apart; do in_ $w --as carol recv queue:jobs >/dev/null 2>&1 && echo "taken from $w"; done >wrong
same '' "$(cat wrong)" 'an extended lease lasts everywhere'
exits 0 'then it wants no more than a second' in_ island --as erin extend "$token" --lease 1s
sleep 1.1
exits 3 'where it is seen to be alive its lease goes on' in_ island --as bob recv queue:jobs
exits 0 'elsewhere the lease is over at its time: only its own extend counts' in_ apart --as carol recv queue:jobs
exits 5 'and its late done is refused' in_ island --as erin done "$token"
exits 4 'its name is not free' in_ apart register erin
says err 'takeover erin' 'takeover is the word'
exits 0 'which works from everywhere' in_ apart takeover erin
# ---- what the dead held ----
mr --as alice queue create left --attempts 0 >/dev/null 2>&1
send alice bob 'shown and not consumed' >/dev/null
i=0; while [ $i -lt 60 ] && [ -z "$(find .mailroom/agents/bob/held -type f)" ]; do # killed with mail in its hands
	island env MAILROOM_FAULT=kill-after:$((40 + i)) "$DEVBIN" --as bob drain </dev/null >/dev/null 2>&1; i=$((i + 1))
done
same 1 "$(find .mailroom/agents/bob/held -type f | wc -l)" 'a command that was killed in a container had mail in its hands'
same 1 "$(in_ apart --as bob inbox --json 2>/dev/null | wc -l)" 'the mail is there again at the first look from another'
mr --as bob drain >/dev/null 2>&1
head -c 200000 /dev/zero | tr '\0' x | fold | "$BIN" --as alice send bob >/dev/null 2>&1 # more than a pipe takes
mkfifo pipe; island "$BIN" --as bob drain --budget 0 >pipe 2>/dev/null </dev/null & reader=$!; exec 8<pipe
dd bs=1 count=1 <&8 >/dev/null 2>&1 # it has begun to print
same 0 "$(in_ apart --as bob inbox --json 2>/dev/null | wc -l)" 'what a living command shows nobody else gets'
same 1 "$(find .mailroom/agents/bob/held -type f | wc -l)" 'nor gives back'
cat <&8 >/dev/null; exec 8<&-; wait $reader
same '0 0' "$(unread bob) $(find .mailroom/agents/bob/held -type f | wc -l)" 'and it consumes it in the end'

# ---- no clock in common: the wall clock, and a minute more ----
# dev WHERE SECONDS BOOT ARGUMENT...: at another time of the day, in another boot ("": this one)
dev() { where=$1 at=$2 boot=$3; shift 3; "$where" env MAILROOM_TEST_CLOCK_OFFSET_MS="${at}000" MAILROOM_TEST_BOOT_ID="$boot" "$DEVBIN" "$@" </dev/null; }
if dev host 0 '' --version >/dev/null 2>&1; then
	send alice queue:left 'for an hour' >/dev/null
	exits 0 'an hour of lease' in_ island --as bob recv queue:left --lease 1h
	exits 3 'a clock that is set is not the one that counts within a boot' dev apart 7200 '' --as carol recv queue:left
	exits 3 'on another machine the lease is not over when the hour is' dev later 3630 another-boot --as carol recv queue:left
	exits 0 'but a minute after' dev later 3670 another-boot --as carol recv queue:left --lease 1h --json
	token=$(jq -r .token out)
	sed -i '/^Boot:/d' .mailroom/holds/"$token"
	exits 3 'a record that does not say which clock it means is as good as none' dev host 3650 '' --as carol recv queue:left
	exits 3 'it counts by the time of the day' dev host $((3670 + 3630)) '' --as carol recv queue:left
	exits 0 'and comes back in the end' dev host $((3670 + 3670)) '' --as carol recv queue:left --lease 1h --json
	rm .mailroom/holds/"$(jq -r .token out)"
	exits 3 'a record that is lost, too' dev apart $((3670 + 3670 + 3630)) '' --as carol recv queue:left
	exits 0 'comes back' dev apart $((3670 + 3670 + 3670)) '' --as carol recv queue:left --json
	mr --as carol done "$(jq -r .token out)" >/dev/null 2>&1
else
	skip 'no clock in common' 'this build has no clock to set'
fi

# ---- a storm of claimers in all of them, and kills ----
pieces=300
mr --as alice queue create storm --attempts 0 >/dev/null 2>&1
i=0; while [ $i -lt $pieces ]; do i=$((i + 1)); echo "{\"to\":\"queue:storm\",\"body\":\"piece $i\"}"; done | "$BIN" --as alice send --batch --json >ids 2>err || note <err
cat >worker <<'WORKER'
me=$1 turn=0
# its own process, so that it is seen to be alive where its number means something
"$BIN" register "$me" --pid $$ >/dev/null 2>&1 || echo "$me cannot register" >>wrong
until [ -e over ]; do
	turn=$((turn + 1))
	begin=$(date +%s%N)
	if [ $((turn % 5)) = 3 ]; then # killed somewhere while it claims
		MAILROOM_FAULT=kill-after:$((turn * 7 % 130 + 20)) "$DEVBIN" --as "$me" recv queue:storm --lease 1s --json </dev/null >"$me.out" 2>/dev/null; code=$?
	else
		"$BIN" --as "$me" recv queue:storm --lease 1s --json </dev/null >"$me.out" 2>"$me.err"; code=$?
	fi
	case $code in
	0) ;;
	3) sleep 0.05; continue ;;
	137) continue ;;
	*) echo "$me: recv exits $code: $(cat "$me.err")" >>wrong; continue ;;
	esac
	id=$(sed 's/.*"id":"\([^"]*\)".*/\1/' "$me.out") token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' "$me.out")
	echo "$id $begin $(date +%s%N) $me" >>claims
	[ $((turn % 11)) != 7 ] || continue # it forgets the work, and lives on
	if [ $((turn % 7)) = 4 ]; then
		MAILROOM_FAULT=kill-before:$((turn % 40 + 1)) "$DEVBIN" --as "$me" done "$token" </dev/null >/dev/null 2>&1; code=$?
		[ $code = 0 ] || continue
	else
		"$BIN" --as "$me" done "$token" </dev/null >/dev/null 2>"$me.err"; code=$?
	fi
	case $code in
	0) echo "$id" >>finished ;;
	5) ;; # slower than its lease
	*) echo "$me: done exits $code: $(cat "$me.err")" >>wrong ;;
	esac
done
WORKER
: >wrong; : >claims; : >finished
for w in host later apart island; do
	for n in 1 2; do $w sh worker "$w-$n" & started="$started $!"; workers="${workers:-} $!"; done
done
counted() { mr queue show storm --json | jq -r "\"\(.ready) \(.claimed) \(.done) \(.failed)\""; }
n=0; until [ "$(counted)" = "0 0 $pieces 0" ] || [ $n -ge 200 ]; do n=$((n + 1)); sleep 0.2; done
: >over; wait $workers
same '' "$(cat wrong)" 'eight workers in four places: nothing goes wrong'
same "0 0 $pieces 0" "$(counted)" "all $pieces pieces of work are done in the end, with claimers killed and forgetful"
same '' "$(sort finished | uniq -d)" 'none was finished twice'
jq -r .id ids | sort >sent
find .mailroom/queues/storm -type f -name '*.mr*' ! -path '*/past/*' | sed 's,.*/[0-9]*\.,,; s/\.mr.*//' | sort >kept
check 'and each is there once' cmp sent kept
# The second claim was over when it was claimed again: from before the one claim to after the next.
same '' "$(sort -k1,1 -k3,3n claims | awk '$1 == id && $3 - begin < 1000000000 { print id " went to " $4 " after " ($3 - begin) / 1000000 " ms" } { id = $1; begin = $2 }')" 'no lease was cut short'
again=$(awk '{ n[$1]++ } END { for (i in n) if (n[i] > 1) again++; print again + 0 }' claims)
[ "$again" -gt 5 ] && ok "though $again were claimed more than once" || not_ok "only $again were claimed more than once: nobody died"
same 4 "$(sed 's/.* //; s/-.*//' claims | sort -u | wc -l)" 'and all places took part'
finish
