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

per_agent 33 'who' --as boss who
same $((agents + 3)) "$(grep -c ' unknown \| never ' out)" 'lists them all'
silent_about raw '"(tmp|holds|[^"]*\.mr[^"]*)", O_' 'reads names, and no message'
per_agent 18 'who with a limit' --as boss who --limit 5
same 5 "$(grep -c ' unknown \| never ' out)" 'shows the first'
says out "^and $((agents - 2)) more" 'and says how many there are'
silent_about raw '"worker.*"(new|cur|held)"' 'counts only what it shows'
per_agent 5 'who with addresses' --as boss who worker7 rig/witness rig1/witness
exits 0 'who with addresses' mr --as boss who worker7 worker8 worker7 --json
same 'worker7 worker8' "$(jq -r .name out | paste -sd' ')" 'lists each once'
exits 5 'who with a mistyped one' mr --as boss who worker7 worker1O
exits 0 'who with one that is no agent' mr --as boss who operator
finish
