# SPDX-License-Identifier: MIT
# Rooms of kind teams: every command that makes sense there, refusals for the rest, the files as their program has them.
. "$(dirname "$0")/../lib/tap.sh"

teams=$HOME/.claude/teams
blue() { who=$1; shift; "$BIN" --room teams:blue --as "$who" "$@" </dev/null; }
box() { cat "$teams/blue/inboxes/$1.json"; }
field() { box "$1" | jq -r ".[$2].$3"; }

# ---- nothing is there yet
exits 0 'the first message makes the team' blue alice send bob -s hello -m 'hi there'
same 'drwx------ drwx------ -rw-------' "$(stat -c %A "$teams/blue" "$teams/blue/inboxes" "$teams/blue/inboxes/bob.json" | tr '\n' ' ' | sed 's/ $//')" 'for nobody else to read'
same 'from text summary timestamp read' "$(box bob | jq -r '.[0] | keys_unsorted | join(" ")')" 'with the keys of the program, in its order'
same "$(box bob | jq --indent 2 .)" "$(box bob)" 'laid out as it does'
same bob.json "$(ls -A "$teams/blue/inboxes")" 'and nothing else is left'
id=$(CLAUDE_CODE_AGENT_COLOR=green blue alice send bob -s two -m 'more' 2>/dev/null)
same green "$(field bob 1 color)" 'the colour comes from the environment'
same 2 "$(blue bob inbox --json | wc -l)" 'both are in the inbox'
exits 0 'read shows one' blue bob read "$id"; says out '^more$' 'with its text'
same 'false true' "$(box bob | jq -r '[.[].read | tostring] | join(" ")')" 'and marks that one'
check 'mark read' blue bob mark read "$(blue bob inbox --json | jq -r .id)"
same 'true true' "$(box bob | jq -r '[.[].read | tostring] | join(" ")')" 'all are read'
exits 0 'reply' blue bob reply "$id" -m 'thanks'
same bob "$(field alice 0 from)" 'reaches the sender'
exits 0 'search' blue bob search more; says out 'two' 'finds it'
exits 0 'drain' blue alice drain; says out '^thanks$' 'hands it over'
same true "$(field alice 0 read)" 'and marks it'
(sleep 0.3; blue alice send bob -m late >/dev/null 2>&1) &
exits 0 'wait sees what comes' blue bob wait --timeout 20
wait

# ---- counted without being read as a whole, where the first letters tell that there is no type
jq -n '[("plain", "The build", "HELP: x", "Re: HELP: x", "{\"type\":\"shutdown_request\"}", " {}", "MERGED x", "I am", "é", "\nHELP: y"), (range(300) | "letter \(.)")]
	| to_entries | map({from: "alice", text: .value, timestamp: "2026-10-03T10:\(.key / 60 | floor + 10):\(.key % 60 + 10 - (if .key % 60 + 10 > 59 then 50 else 0 end)).000Z", read: (.key == 3)})' >"$teams/blue/inboxes/many.json"
same 309 "$(blue many check --json | jq .unread)" 'check counts what is unread, whatever it begins with'
same 309 "$(blue many inbox --unread --json | wc -l)" 'as many as the list has'
exits 0 'a look at more than a screen of it' blue many inbox --unread
shown=$(grep -c '^[0-9a-z]\{6\} ' out)
[ "$shown" -gt 0 ] && says out "^$((309 - shown)) more messages not shown" 'counts the rest' || { note <out; not_ok 'a look at more than a screen shows lines'; }

# ---- a prompt tells of a large inbox once, and then of what is new
touch -d '1 minute ago' "$teams/blue/inboxes/many.json"
exits 0 'a hook tells of it' blue many check --inject; says out '^Plus 10[0-9] more unread messages' 'by its number'
same '' "$(blue many check --inject)" 'once'
blue alice send many -m 'something new' >/dev/null 2>&1
same 1 "$(blue many check --inject | grep -c 'something new')" 'and then of what is new'
same '' "$(blue many check --inject)" 'once, too'
jq '[.[] | .read = (.read or .text == "letter 5")]' "$teams/blue/inboxes/many.json" >many && cp many "$teams/blue/inboxes/many.json"
same '' "$(blue many check --inject)" 'an inbox that was written anew has nothing new'

# ---- who and where
same default "$(cd /; "$BIN" --room teams: --as alice send bob -m x >/dev/null 2>&1 </dev/null; ls "$teams" | grep default)" 'without a name it is the team default'
CLAUDE_CODE_TEAM_NAME=green CLAUDE_CONFIG_DIR=$scratch/conf "$BIN" --room teams: --as a send b -m x >/dev/null 2>&1 </dev/null
check 'else what the environment says, where it says' test -f "$scratch/conf/teams/green/inboxes/b.json"
CLAUDE_CODE_AGENT_NAME=carol "$BIN" --room teams:blue send bob -m 'from carol' >/dev/null 2>&1 </dev/null
same carol "$(field bob -1 from)" 'who I am comes from the environment, too'
"$BIN" --room "teams:Tést Team_1.x" --as "Old Bob" send 'a.b/../c' -m x >/dev/null 2>&1 </dev/null
check 'names become files as the program makes them' test -f "$teams/T-st-Team_1-x/inboxes/a-b----c.json"
same 'Old Bob' "$(jq -r '.[0].from' "$teams/T-st-Team_1-x/inboxes/a-b----c.json")" 'and stay what they are inside'

# ---- members
mkdir -p "$teams/crew"
jq -n '{name: "crew", createdAt: 1, leadAgentId: "team-lead@crew", members: [{agentId: "team-lead@crew", name: "team-lead", joinedAt: 1, tmuxPaneId: "leader"}, {agentId: "Old Bob@crew", name: "Old Bob", color: "blue", joinedAt: 2}], later: 1}' | sed 's/"later": 1/"later": 1.50/' >"$teams/crew/config.json"
crew() { who=$1; shift; "$BIN" --room teams:crew --as "$who" "$@" </dev/null; }
exits 5 'who is no member cannot be written to' crew team-lead send nobody -m x
exits 5 'nor under another case' crew team-lead send Team-Lead -m x
exits 0 'unless it is held for later' crew team-lead send --hold nobody -m x
rm "$teams/crew/inboxes/nobody.json"
exits 0 'register' crew mailman register mailman
same 'mailman@crew mailman ' "$(jq -r '.members[2] | .agentId + " " + .name + " " + .tmuxPaneId' "$teams/crew/config.json")" 'adds a member as the program does'
says "$teams/crew/config.json" '"later": 1.50' 'and changes nothing else'
exits 0 'everybody' crew team-lead send @all -m 'to all'
same 'Old-Bob.json mailman.json' "$(cd "$teams/crew/inboxes" && grep -l 'to all' ./*.json | sed 's,^./,,' | tr '\n' ' ' | sed 's/ $//')" 'reaches every member but the sender'
exits 0 'who' crew mailman who; says out "^'Old Bob' " 'lists them as their people write them'
jq '.members += [{agentId: "Zoë@crew", name: "Zoë", joinedAt: 3}]' "$teams/crew/config.json" >new && cat new >"$teams/crew/config.json"
exits 0 'who' crew mailman who; says out "^'Zoë' " 'also in other letters'
for spelled in 'Old Bob' Old%20Bob; do
	exits 0 "as '$spelled'" crew "$spelled" send team-lead -m "from $spelled"
	exits 0 "to '$spelled'" crew team-lead send "$spelled" -m x
done
exits 0 'their mail' crew team-lead inbox; says out "'Old Bob' +from Old Bob" 'is from the name that they wrote'
for spelled in 'Old Bob' Old%20Bob; do
	same 2 "$(crew team-lead inbox --from "$spelled" --json | wc -l)" "inbox --from '$spelled' finds it"
done
exits 0 'a message' crew team-lead read --peek "$(crew team-lead inbox --json | jq -rs '.[0].id')"
says out "^From: 'Old Bob'" 'says the same'
same Old%20Bob "$(crew team-lead inbox --json | jq -rs '.[0].from')" 'JSON has the address'
crew Zoë nudge team-lead -m psst >/dev/null 2>&1
crew Zoë send team-lead -m 'from Zoë' >/dev/null
exits 0 'check --inject --format teams-xml' crew team-lead check --inject --format teams-xml
says out '^<teammate-message teammate_id="Old Bob" ' 'has the name as the program writes it'
says out '^<teammate-message teammate_id="Zoë" ' 'in all letters'
for name in 'Old Bob' Zoë; do crew "$name" send team-lead -m "from $name" >/dev/null; done
exits 0 'check --inject' crew team-lead check --inject
says out "from 'Old Bob': from" 'names the sender as the person wrote it'
says out "from 'Zoë': from" 'in all letters, too'
for args in 'check' 'drain' 'drain' 'whoami' 'status' 'inbox' 'resolve Zoë' 'resolve @all' 'wait --timeout 0' 'send -n Zoë -m x'; do
	# shellcheck disable=SC2086
	crew 'Old Bob' $args >out 2>&1
	silent_about out '%20|%C3' "$args by Old Bob shows no encoded name"
done
crew mailman resolve 'Old Bob' >out 2>&1
same "agent 'Old Bob': 1 recipient|  'Old Bob'" "$(paste -sd'|' out)" 'resolve says whom it found, in those words'

# ---- what a team does not have
for flag in '--priority urgent' '--cc carol' '--thread x' '--type note' '--header X-Y:z' '--by 1h' '--key k'; do
	# shellcheck disable=SC2086
	exits 4 "send $flag is refused" blue alice send bob -m x $flag
done
exits 4 'archive is refused' blue bob archive "$id"
exits 4 'so is recv' blue bob recv
exits 4 'a control message is refused' blue alice send bob -m '{"type":"mode_set_request","mode":"plan","from":"alice"}'
says err 'mode_set_request' 'by its name'; says err 'hint: .*--type' 'with the way to mean it'
exits 0 'which is taken then' blue alice send bob --type mode_set_request -m '{"type":"mode_set_request","mode":"plan","from":"alice"}'
same mode_set_request "$(blue bob inbox --json | jq -r 'select(.type) | .type')" 'and read back as that type'

# ---- damage
printf '[\n  {"from":"x","text":"whole","timestamp":"2026-03-05T10:30:00.000Z"},\n  {"from":"x","te' >"$teams/blue/inboxes/torn.json"
cp "$teams/blue/inboxes/torn.json" before
touch -d '1 minute ago' "$teams/blue/inboxes/torn.json"
blue torn inbox >out 2>err
says err 'torn' 'a torn inbox is reported'
blue torn doctor >out 2>err; says out 'torn.json' 'by doctor, too'
exits 0 'a message to it is taken' blue alice send torn -m 'and more'
same 'whole and more' "$(box torn | jq -r 'map(.text) | join(" ")')" 'what was whole is kept'
saved=$(find "$scratch/state" -path '*salvage*' -type f)
check 'and the bytes that were there are saved' cmp before "$saved"
echo '{"a":1}' >"$teams/blue/inboxes/other.json"
exits 1 'what is no inbox is not written to' blue alice send other -m x
same '{"a":1}' "$(box other)" 'and stays'
head -c 50000000 /dev/zero >"$teams/blue/inboxes/huge.json"
exits 4 'an inbox of 50 MB is refused' blue alice send huge -m x; says err '48 MB' 'with the limit'
mkdir outside && ln -s "$scratch/outside" "$teams/blue/inboxes/link.json"
exits 4 'a link is not followed' blue alice send link -m x
rm "$teams/blue/inboxes/"other.json "$teams/blue/inboxes/"huge.json "$teams/blue/inboxes/"link.json

# ---- places: as they are in the file, whatever the dates say
at() { printf '%s\n' "$1" >"$teams/blue/inboxes/p.json"; touch -d '1 minute ago' "$teams/blue/inboxes/p.json"; }
e() { printf '{"from":"x","text":"%s","timestamp":"2026-03-05T10:30:00.%sZ","read":false}' "$1" "$2"; }
marks() { jq -r '[.[] | if type == "object" then "\(.text):\(.read)" else tostring end] | join(" ")' "$teams/blue/inboxes/p.json"; }
at "[$(e a 005),$(e b 000)]"
exits 0 'mark read --at 0' blue p mark read --at 0
same 'a:true b:false' "$(marks)" 'is the first entry, not the oldest'
at "[$(e c 000),$(e b 000),$(e a 000)]"
exits 0 'with equal dates' blue p mark read --at 1
same 'c:false b:true a:false' "$(marks)" 'it is the entry in that place'
at "[$(e a 000),17,$(e c 001)]"
exits 0 'behind what is no message' blue p mark read --at 2
same 'a:false 17 c:true' "$(marks)" 'the place is that in the file'
exits 5 'which itself is no message' blue p mark read --at 1
exits 5 'nor is there one behind the last' blue p mark read --at 3
says err 'the last one is at 2' 'which is said'
at "[$(e third 009),$(e first 001),$(e second 005)]"
exits 0 'teams-xml' blue p check --inject --format teams-xml
same 'third first second ' "$(grep -E '^(third|first|second)$' out | tr '\n' ' ')" 'has the order of the inbox'
at "[$(i=0; while [ $i -lt 12 ]; do [ $i = 0 ] || printf ,; e "text $i $(if [ $i = 0 ]; then printf '%01600d' 0; fi)" "0$((10 + i))"; i=$((i + 1)); done)]"
exits 0 'what is cut' blue p check --inject --format teams-xml
same 10 "$(grep -c '^<teammate-message ' out)" 'is cut after ten blocks'
says out '^2 more unread; at most 10 messages and about 6000 characters are shown at once' 'and that is said'
says out 'more characters, 1500 are shown here: mailroom read' 'as is the limit of a text'
rm "$teams/blue/inboxes/p.json"

# ---- without a summary
at "[{\"from\":\"x\",\"text\":\"\\\\nthe build is red\\\\nsee the log\",\"timestamp\":\"2026-03-05T10:30:00.000Z\"}]"
sed -i 's/\\\\n/\\n/g' "$teams/blue/inboxes/p.json"; touch -d '1 minute ago' "$teams/blue/inboxes/p.json"
exits 0 'mail without a summary' blue p inbox
says out 'the build is red$' 'is listed with its first line'
same 'the build is red' "$(blue p inbox --json | jq -r .subject)" 'in JSON, too'
exits 0 'a hook' blue p check --inject
says out 'the build is red' 'tells it so'
rm "$teams/blue/inboxes/p.json"

# ---- clear
exits 0 'clear' blue bob clear
same '[]' "$(box bob)" 'empties the inbox'
exits 0 'clear of one that is not there' blue zoe clear
check 'makes none' test ! -e "$teams/blue/inboxes/zoe.json"

# ---- golden files
check 'the golden files are as they were made' sh -c 'cd "$1" && sha256sum -c SHA256SUMS' - "$data/teams"
for golden in three mark-position mark-all mark-filter later; do
	cp "$data/teams/$golden.json" "$teams/blue/inboxes/g.json"
	blue g inbox --all --json | jq -rs 'sort_by(.date) | .[].id' >ids
	while read -r one; do "$BIN" --room teams:blue --as g read --raw "$one" </dev/null; done <ids 2>/dev/null | jq -c 'del(.read)' >got
	same "$(jq -c '.[] | del(.read)' "$data/teams/$golden.json")" "$(cat got)" "$golden.json is read as it is"
done

# ---- a shell takes part: mailroom-teams(5)
rm -rf "$teams/blue"
awk '/^\.Bd -literal -offset/ { n++; on = 1; next } /^\.Ed/ { on = 0 } on { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print > ("block." n) }' "$top/man/mailroom-teams.5"
exits 0 'sending with sh' sh -eu block.1
exits 0 'a second time' sh -eu block.1
same 2 "$(blue bob inbox --json | jq -s 'map(select(.from == "alice" and .subject == "from a shell")) | length')" 'mailroom reads it'
exits 0 'and adds to it' blue carol send bob -m 'hi bob'
exits 0 'reading with sh' sh -eu block.2; says out '^carol: hi bob$' 'shows what mailroom wrote'
exits 0 'marking with sh' sh -eu block.3
same 0 "$(blue bob inbox --json | wc -l)" 'is seen by mailroom'
finish
