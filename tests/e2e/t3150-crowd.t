# SPDX-License-Identifier: MIT
# once
# Rooms of many agents: what a command costs for each of them, in system calls and opened files. The times are in bench/.
. "$(dirname "$0")/../lib/tap.sh"

agents=300
room boss rig/witness
# crowd NAME: a mailbox as register makes it, with its first life.
crowd() { mkdir -p ".mailroom/agents/$(dirname "$1")"; cp -a .mailroom/agents/rig/witness ".mailroom/agents/$1"; sed -i "s|^Name: .*|Name: $1|" ".mailroom/agents/$1/agent"; }
i=0; while [ $i -lt $((agents / 2)) ]; do crowd "worker$i"; crowd "rig$i/witness"; i=$((i + 1)); done
find .mailroom/agents -type d -exec touch -d '1 minute ago' {} +

exits 5 'a pattern that fits nobody' mr --as boss resolve '*/refinery'
exits 0 'one that fits many' mr --as boss resolve '*/witness' --json
same $((agents / 2 + 1)) "$(jq '.targets | length' out)" 'finds them all'
exits 5 'a mistyped name' mr --as boss send worker1O -m hi
says err "did you mean 'worker1[0-9]*'" 'is told near names'

if ! strace -qq -o raw -- "$BIN" --version >/dev/null 2>&1; then
	skip 'system calls are counted' 'strace does not work here'
	finish
fi
# per_agent LIMIT NAME COMMAND...: at most so many system calls for each agent. Calls of the allocator are left out.
per_agent() {
	limit=$1 name=$2; shift 2
	strace -f -qq -o raw -- "$BIN" "$@" >out 2>err </dev/null
	n=$(grep -E '^[0-9]+ +[a-z]' raw | grep -Evc '^[0-9]+ +(mmap|munmap|mremap|brk|madvise)\(')
	if [ "$n" -gt 0 ] && [ "$n" -le $((limit * agents + 200)) ]; then
		ok "$name: $n calls for $agents agents"
	else
		echo "# $n system calls for $agents agents, $limit for each are allowed"; tail -n 60 raw | cut -c1-120 | note
		not_ok "$name"
	fi
}
per_agent 6 'a pattern' --as boss resolve '*/witness'
silent_about raw '"(agent|lives|lives/1|[^"]*/agent|[^"]*/lives)", O_' 'opens no registration and no life'
per_agent 6 'a mistyped name' --as boss send worker1O -m hi
silent_about raw '"(agent|lives|[^"]*/agent|[^"]*/lives)", O_' 'opens no registration and no life, either'

per_agent 30 'who --json' --as boss who --json
same $((agents + 3)) "$(grep -c '"state":"\(unknown\|never\)"' out)" 'lists them all'
silent_about raw '"(tmp|holds|[^"]*\.mr[^"]*)", O_' 'reads names, and no message'
per_agent 17 'who with a limit' --as boss who --limit 5
same 5 "$(grep -c ' unknown \| never ' out)" 'shows the first'
says out "^and $((agents - 2)) more" 'and says how many there are'
silent_about raw '"worker.*"(new|cur|held)"' 'counts only what it shows'
per_agent 25 'who' --as boss who
same 200 "$(grep -c ' unknown \| never ' out)" 'prints as many lines as a person may look through'
says out "^and $((agents + 3 - 200)) more" 'and says how many there are'
per_agent 5 'who with addresses' --as boss who worker7 rig/witness rig1/witness
exits 0 'who with addresses' mr --as boss who worker7 worker8 worker7 --json
same 'worker7 worker8' "$(jq -r .name out | paste -sd' ')" 'lists each once'
exits 5 'who with a mistyped one' mr --as boss who worker7 worker1O
exits 0 'who with the operator' mr --as boss who operator

# ---- a shell that does not say who it is ----
mr whoami >out 2>err; code=$?
same '5 0' "$code $(wc -c <out)" 'a shell that nobody bound to an agent is nobody'
says err 'registered from this worktree: ' 'but the worktree has agents'
n=$agents; while [ $n -le 1000 ]; do cp -a .mailroom/agents/rig0 ".mailroom/agents/more$n"; n=$((n + 1)); done
strace -f -qq -o raw -- "$BIN" whoami >out 2>err </dev/null; code=$?
same 5 $code 'in a room of more than a thousand'
says err 'more than a thousand agents' 'is told that it has to say who it is'
check 'and not all lives were read' test "$(grep -c '"lives/1", ' raw)" -le 1001
n=$agents; while [ $n -le 1000 ]; do rm -rf ".mailroom/agents/more$n"; n=$((n + 1)); done

# ---- more waiters than the kernel wakes ----
few() { unshare -U -r sh -c 'echo 1 >/proc/sys/user/max_inotify_instances && exec "$@"' few "$@" </dev/null; }
if few true 2>/dev/null; then
	chmod -R go-rwx .mailroom
	exits 0 'doctor where the kernel gives one inotify instance' few "$BIN" --as boss doctor
	says out "gives this user 1 inotify instances.* room has $((agents + 3)) agents" 'says so'
	says out 'looks every 2 s' 'and what that means'
	says out 'sysctl -w fs.inotify.max_user_instances=' 'and the line that helps'
	# A poll without a change looks at the times of a few folders: nothing is opened, nothing is listed.
	printf 'echo 0 >/proc/sys/user/max_inotify_instances && exec strace -qq -o raw "$@"\n' >blind
	unshare -U -r sh blind "$BIN" --as worker5 wait --timeout 7 </dev/null >out 2>err; code=$?
	same 3 $code 'a wait without inotify ends when its time is up'
	poll_at=$(grep -n 'poll(NULL, 0' raw | sed -n 7p | cut -d: -f1) # by then it has seen that nothing is held
	last_at=$(grep -n 'poll(NULL, 0' raw | tail -n 1 | cut -d: -f1)
	sed -n "${poll_at:-1},${last_at:-1}p" raw >polls
	check 'it polls' test "$(grep -c 'poll(NULL, 0' polls)" -ge 2
	silent_about polls 'open|getdents' 'and a poll opens and lists nothing'
	check 'with a few looks at folders each' test "$(grep -c stat polls)" -le $((6 * $(grep -c 'poll(NULL, 0' polls)))
	printf 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"\n' >blind
	( unshare -U -r sh blind "$BIN" --as worker5 wait --timeout 30 --json </dev/null >waited 2>&1; echo $? >code ) &
	sleep 3; mr --as boss send worker5 -s 'after a while' -m x >/dev/null 2>&1; wait
	same 0 "$(cat code)" 'mail that comes while it polls'
	says waited 'after a while' 'ends the wait'
else
	skip 'doctor where the kernel gives one inotify instance' 'no user namespaces here'
fi
finish
