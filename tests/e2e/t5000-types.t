#!/bin/sh
# SPDX-License-Identifier: MIT
# Message types in the post office and the commands: sending by fields, types told by subjects, types of a room's own.
. "$(dirname "$0")/../lib/tap.sh"
room alice bob gp/witness gp/refinery gp/polecats/nux
field() { jq -r "$1" out; }

# ---- Sending by fields ----
exits 0 'fields become a message' mr --as gp/refinery send gp/witness --type MERGED --field Branch=polecat/nux --field Polecat=nux
silent_about err 'goes refinery' 'on its route there is nothing to say'
id=$(cat out)
exits 0 'which is read' mr --as gp/witness read --json "$id"
same 'MERGED nux' "$(field .subject)" 'with the subject of the form'
same 'high' "$(field .priority)" 'and the priority of the type'
same 'polecat/nux nux gp main' "$(field '.fields | "\(.Branch) \(.Polecat) \(.Rig) \(.Target)"')" 'and its fields: given, derived, defaults'
same 'null' "$(field .fields_error)" 'none of them wrong'
exits 0 'a priority that is asked for counts' mr --as gp/refinery send gp/witness --type MERGED --field Branch=b --field Polecat=p --priority normal
exits 0 'it is read' mr --as gp/witness read --json "$(cat out)"
same 'normal' "$(field .priority)" 'normal is one, too'

exits 4 'a missing field is refused' mr --as gp/refinery send gp/witness --type MERGED --field Polecat=nux
says err "'Branch'" 'by its name'; says err 'hint: .*--force' 'with the way around'
exits 4 'a wrong one, too' mr --as gp/polecats/nux send gp/witness --type POLECAT_DONE --field Exit=WHATEVER
says err "'Exit'" 'by its name'
exits 4 'one that another makes necessary' mr --as gp/polecats/nux send gp/witness --type POLECAT_DONE --field Exit=MERGED
says err "'MR'" 'is named'
exits 0 'unless it is forced' mr --as gp/refinery send gp/witness --type MERGED --field Polecat=nux --force
exits 2 'fields need a type' mr --as alice send bob --field A=b
exits 2 'and a value' mr --as alice send bob --type MERGED --field Branch
exits 4 'fields of an unknown type' mr --as alice send bob --type MERGD --field A=b
says err "did you mean 'MERGED'" 'with the one that is near'
exits 0 'an unknown type is plain mail' mr --as alice send bob --type OUR_OWN -m hi
same 0 "$(mr --as alice send bob --type NO_SUCH -m x >/dev/null 2>&1; echo $?)" 'as it ever was'

# ---- A text of one's own ----
exits 0 'a text with the fields' mr --as gp/refinery send gp/witness --type MERGED -m 'Branch: b1
Polecat: nux'
exits 0 'is read' mr --as gp/witness read --json "$(cat out)"
same 'MERGED nux b1' "$(field '"\(.subject) \(.fields.Branch)"')" 'and gets its subject'
exits 4 'without one it is refused' mr --as gp/refinery send gp/witness --type MERGED -m 'Polecat: nux'
says err "'Branch'" 'by its name'
printf 'Branch: b2\nPolecat: ace\n' >text
exits 0 'also on stdin' sh -c '"$BIN" --as gp/refinery send gp/witness --type MERGED <text'

# ---- Routes and nudges ----
exits 0 'a wrong route is said' mr --as alice send bob --type MERGED --field Branch=b --field Polecat=p
says err "'MERGED' goes refinery -> witness, not from 'alice' to 'bob'" 'with the right one'
exits 0 'a nudge as mail' mr --as gp/witness send gp/refinery --type HEALTH_CHECK -m 'are you there?'
says err 'is a nudge' 'is said'
setting Wrong-Route refuse
exits 4 'or refused, where a room wants that' mr --as alice send bob --type MERGED --field Branch=b --field Polecat=p
says err 'not from' 'with the reason'
exits 0 'unless it is forced' mr --as alice send bob --type MERGED --field Branch=b --field Polecat=p --force
mr register lee --role refinery >/dev/null 2>&1
exits 0 'a role counts as it was registered' mr --as lee send gp/witness --type MERGED --field Branch=b --field Polecat=p

# ---- Types told by subjects ----
room alice bob
mr --as alice send bob -s 'HELP: the build' -m 'Problem: it is red' >/dev/null 2>&1
mr --as alice send bob -s 'Re: HELP: the build' -m 'Problem: it is red' >/dev/null 2>&1
mr --as alice send bob -s '🤝 HANDOFF: tired' -m 'go on' >/dev/null 2>&1
mr --as alice send bob -s 'LIFECYCLE:Shutdown nux' -m 'Reason: idle' >/dev/null 2>&1
mr --as alice send bob -s 'Merge Request Completed: b1' -m 'Source: x' >/dev/null 2>&1
mr --as alice send bob -s 'help me please' -m 'prose' >/dev/null 2>&1
mr --as alice send bob -s 'URGENT please look' -m 'prose' >/dev/null 2>&1
same 'HANDOFF HELP HELP LIFECYCLE_SHUTDOWN MERGE_REQUEST_COMPLETED null null' \
	"$(mr --as bob inbox --json | jq -r .type | sort | tr '\n' ' ' | sed 's/ $//')" 'subjects tell the type'
same 2 "$(mr --as bob inbox --type HELP --json | wc -l)" 'the filter goes by it'
same 2 "$(mr --as bob inbox --type help --json | wc -l)" 'in any case'
exits 0 'wait goes by it' mr --as bob wait --type HANDOFF --timeout 0
exits 3 'and misses what is not there' mr --as bob wait --type MERGED --timeout 0
same 1 "$(mr --as bob search tired --json | jq -r .type | grep -c HANDOFF)" 'search shows it'
exits 0 'recv goes by it' mr --as bob recv --type HELP --json
same 'HELP the build' "$(field '"\(.type) \(.fields.Problem | if . == "it is red" then "the build" else . end)"')" 'with its fields'
mr --as alice send bob -s 'MERGE_READY nux' -m 'Issue: gt-1' >/dev/null 2>&1
mr --as bob inbox --type MERGE_READY --json | jq -r .id >id
exits 0 'mail with a field missing is read' mr --as bob read --json "$(cat id)"
says out '"fields_error":"[^"]*Branch' 'and what is wrong with it said'

# ---- Answers ----
room gp/witness gp/refinery
id=$(mr --as gp/witness send gp/refinery --type MERGE_READY --field Branch=b7 --field Polecat=nux --field Issue=gt-7 2>/dev/null)
exits 0 'an answer copies what the request has' mr --as gp/refinery reply "$id" --type MERGED
exits 0 'it is read' mr --as gp/witness read --json "$(cat out)"
same 'MERGED nux b7 gt-7' "$(field '"\(.subject) \(.fields.Branch) \(.fields.Issue)"')" 'branch, polecat and issue'

# ---- A protocol of one's own, without any C ----
room alice bob
cat >DEPLOY <<'DEFINITION'
Type: DEPLOY
Summary: put a build somewhere
Subject: deploy of {Build}
Route: any -> any
Priority: urgent
Field: Build; number; required
Field: Where; one-of staging production; default staging
Field: Window; time; required if Where=production
DEFINITION
exits 0 'a type file is checked' mr types check DEPLOY
sed 's/number/numbr/' DEPLOY >wrong; mkdir -p broken; mv wrong broken/DEPLOY
exits 4 'a wrong one is refused' mr types check broken/DEPLOY
says err 'numbr' 'with what is wrong'
exits 4 'and never comes into a room' mr types new DEPLOY -f broken/DEPLOY
exits 0 'a right one does' mr types new DEPLOY -f DEPLOY
check 'as a file' test -f .mailroom/types/DEPLOY
exits 4 'once' mr types new DEPLOY -f DEPLOY
exits 0 'or over the old one' mr types new DEPLOY -f DEPLOY --force
exits 0 'it is listed' mr types list --pack room
says out '^DEPLOY  *room  *mail  *.put a build somewhere.$' 'as the room'"'"'s own'
exits 0 'and explained' mr types show DEPLOY
says out 'Window: time, required if Where=production' 'with its fields'
exits 0 'also in JSON' mr types show deploy --json
same 'DEPLOY 3' "$(field '"\(.name) \(.fields | length)"')" 'by any spelling'
exits 5 'a name that is near' mr types show DEPLOI
says err "'DEPLOY'" 'is offered'
exits 0 'it is sent' mr --as alice send bob --type DEPLOY --field Build=42
exits 4 'and checked' mr --as alice send bob --type DEPLOY --field Build=x
says err "'Build'" 'each field'
exits 4 'by its conditions' mr --as alice send bob --type DEPLOY --field Build=1 --field Where=production
says err "'Window'" 'too'
mr --as bob inbox --type DEPLOY --json | jq -r .id >id
exits 0 'it is read' mr --as bob read --json "$(cat id)"
same 'deploy of 42 urgent 42 staging' "$(field '"\(.subject) \(.priority) \(.fields.Build) \(.fields.Where)"')" 'with subject, priority and fields'
mr --as alice send bob -s 'deploy of 43' -m 'Where: staging' >/dev/null 2>&1
exits 0 'mail that only looks so' mr --as bob inbox --type DEPLOY --json
same 'DEPLOY' "$(field .type)" 'is one, too'
exits 0 'a file put there by hand' sh -c 'sed "s/DEPLOY/UNDEPLOY/; s/deploy of/undo/" DEPLOY >.mailroom/types/UNDEPLOY'
exits 0 'is a type as well' mr --as alice send bob --type UNDEPLOY --field Build=1
echo nonsense >.mailroom/types/BAD
exits 0 'a broken one' mr types list
says err 'types/BAD' 'is named and left out'; says out '^UNDEPLOY' 'and the others are there'
exits 4 'it cannot be sent' mr --as alice send bob --type BAD -m x
rm .mailroom/types/BAD
exits 0 'new without a file' mr types new PLAIN
exits 0 'makes one that works' mr --as alice send bob --type PLAIN --field Subject='it works'
setting Types chipset
exits 5 'packs that do not count here' mr types show MERGED
exits 0 'are not known' mr types show completion_report

# ---- The rooms of other programs ----
mkdir -p teams/blue/inboxes
echo '{"name":"blue","members":[{"name":"team-lead","agentId":"team-lead@blue"},{"name":"alice","agentId":"alice@blue"}]}' >teams/blue/config.json
blue() { who=$1; shift; mr --room "teams:$scratch/teams/blue" --as "$who" "$@"; }
exits 0 'a control message of a team' blue team-lead send alice --type shutdown_request --field reason=done
exits 0 'is answered' blue alice reply "$(cat out)" --type shutdown_approved
same 'shutdown_approved true' "$(jq -r '.[0].text | fromjson | "\(.type) \(.requestId | test("^shutdown-[0-9]+@alice$"))"' teams/blue/inboxes/team-lead.json)" 'with the id of the request'
same null "$(jq -r '.[0].summary' teams/blue/inboxes/team-lead.json)" 'and without a summary'
exits 4 'who is no member' blue mallory send alice --type shutdown_request --field reason=done
says err 'not a member' 'gives no orders'
exits 0 'a type that its subject says' blue alice send team-lead --type HELP --field Topic=lost --field Problem=all
exits 0 'is one there, too' blue team-lead inbox --type HELP --json
same 'HELP' "$(field .type)" 'and the filter finds it'
exits 4 'such a room has no types of its own' mr --room "teams:$scratch/teams/blue" types new X

# ---- Only the files of types that are called like the subject are read ----
mkdir -p packs/types/own
for type in 'ALARM ALARM' 'FIRE_DRILL Fire Drill:' 'OTHER URGENT' 'BRACKET [now]'; do
	printf 'Type: %s\nSubject: %s {What}\nField: What; text; subject\n' "${type%% *}" "${type#* }" >"packs/types/own/${type%% *}"
done
room alice bob
for subject in 'ALARM one' 'Re: Fire Drill: two' '🔥 ALARM three' 'URGENT four' '[now] five' 'Re: [now] six' 'ALARMING seven' 'über: eight'; do
	mr --as alice send bob -s "$subject" -m x >/dev/null 2>&1
done
same 'ALARM,FIRE_DRILL,ALARM,null,BRACKET,BRACKET,null,null' "$(MAILROOM_DATA=$scratch/packs "$BIN" --as bob inbox --json </dev/null | jq -rs 'sort_by(.id)|map(.type)|map(tostring)|join(",")')" \
	'a pack'\''s type is found by the word that its name begins with, or by a bracket'

# ---- Where the packs are ----
unset MAILROOM_DATA
mkdir -p there/bin there/share && cp "$BIN" there/bin/mailroom && cp -R "$top/share/mailroom" there/share/ && mkdir room2
exits 0 'an installed one' sh -c 'cd room2 && ../there/bin/mailroom init >/dev/null 2>&1 && ../there/bin/mailroom types show MERGED'
says out 'pack gastown' 'finds them beside itself'
exits 0 'a room without packs' env MAILROOM_DATA=/nowhere "$BIN" --as alice send bob --type MERGED -m 'plain mail then'
finish
