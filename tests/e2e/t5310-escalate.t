# escalate: on record, told by mail, acknowledged, closed, raised.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob mayor
exits 0 'escalate alone is the list' mr --as alice escalate
exits 2 'a severity that is none' mr --as alice escalate trouble -s awful
exits 0 'escalate' mr --as alice escalate main does not build -s high -r 'no compiler' --related gp-1 --source patrol
id=$(cat out)
same 'operator mayor' "$(for a in operator mayor; do [ "$(unread $a)" = 1 ] && echo $a; done | tr '\n' ' ' | sed 's/ $//')" 'both are told'
same "[HIGH] main does not build|ESCALATE|high|$id" \
	"$(mr --as mayor inbox --json | jq -r '"\(.subject)|\(.type)|\(.priority)|\(.thread)"')" 'by mail in its thread'
exits 0 'the same again' mr --as alice escalate main does not build
same "$id" "$(cat out)" 'is the same'
says err 'is open' 'and that is said'
same 1 "$(unread mayor)" 'nobody is told twice'
same 'medium ok mayor,operator' "$(mr --as bob escalate 'main does not build' --json | jq -r '"\(.severity) \(.status) \(.targets|sort|join(","))"')" 'of another it is another'
exits 0 'a rehearsal' mr --as bob escalate 'not really' -n
says out 'operator, mayor' 'says who would be told'
same 2 "$(mr escalate list --json | wc -l | tr -d ' ')" 'list'
exits 0 'show, by the end of the id' mr escalate show "${id#esc-}"
says out 'no compiler' 'tells why'
exits 5 'show of none' mr escalate show esc-000000000000
exits 0 'ack' mr --as bob escalate ack "$id"
exits 2 'close wants a reason' mr --as bob escalate close "$id"
exits 0 'close' mr --as bob escalate close "$id" --reason 'installed it'
exits 4 'once' mr --as bob escalate close "$id" --reason 'installed it'
same 'closed bob installed it' "$(mr escalate show "$id" --json | jq -r '"\(.status) \(.closed_by) \(.closed_reason)"')" 'and it says so'
same 1 "$(mr escalate list --json | wc -l | tr -d ' ')" 'it is no longer listed'
same 2 "$(mr escalate list --all --json | wc -l | tr -d ' ')" 'but with --all'
exits 0 'new close the valve, a text' mr --as alice escalate new close the valve
n=$(mr escalate list --json | wc -l)
exits 2 'close the valve is no text' mr --as alice escalate close the valve
says err 'escalate new close' 'and it says how it would be one'
exits 2 'nor is list disk' mr --as alice escalate list disk
exits 5 'show stopper shows one' mr --as alice escalate show stopper
says err 'escalate new show' 'that is not there, and says how to record it'
same "$n" "$(mr escalate list --json | wc -l)" 'none of them is on record'

# ---- nobody cares ----
room alice bob carol
setting Escalate-Low bob; setting Escalate-Medium carol
id=$(mr --as alice escalate -s low 'the log grows' 2>/dev/null)
same '1 0' "$(unread bob) $(unread carol)" 'a route is a setting'
mr --as bob escalate stale >out
says out 'nothing is stale' 'it is not stale yet'
setting Escalate-Stale 1s
sleep 1.1
exits 0 'stale' mr --as bob escalate stale
says out "$id  medium \(raised)  the log grows  told: carol" 'raises it and tells the new route'
same '[LOW→MEDIUM] Re-escalated: the log grows' "$(mr --as carol inbox --json | jq -r .subject)" 'in these words'
same 'medium low 1' "$(mr escalate show "$id" --json | jq -r '"\(.severity) \(.original_severity) \(.reescalation_count)"')" 'it is on record'

# ---- a route that leads nowhere ----
setting Escalate-Medium 'carol, nosuch'
exits 6 'not everybody can be told' mr --as alice escalate 'half a route' --json
same 'partial_failure carol nosuch' "$(jq -r '"\(.status) \(.targets[]) \(.delivery[]|select(.created|not)|.target)"' out)" 'and that is said'

finish
