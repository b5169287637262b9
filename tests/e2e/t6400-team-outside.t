# once
# A team of Claude Code from outside: linked, our agents its members, mail both ways, and out again.
. "$(dirname "$0")/../lib/tap.sh"

crew=$HOME/.claude/teams/crew
# team: a lead and alice, as the newest client writes them
team() {
	rm -rf "$HOME/.claude" && mkdir -p "$crew/inboxes"
	printf '{\n  "name": "crew",\n  "createdAt": 1793000000000,\n  "leadAgentId": "team-lead@crew",\n  "members": [\n    {\n      "agentId": "team-lead@crew",\n      "name": "team-lead",\n      "tmuxPaneId": "leader"\n    },\n    {\n      "agentId": "alice@crew",\n      "name": "alice",\n      "color": "blue",\n      "tmuxPaneId": "in-process"\n    }\n  ]\n}' >"$crew/config.json"
	cp "$crew/config.json" before
}
members() { jq -r '.members[].name' "$crew/config.json" | tr '\n' ' ' | sed 's/ $//'; }
# writes FROM TO TEXT: what the client does when FROM sends a message
writes() {
	[ -e "$crew/inboxes/$2.json" ] || echo '[]' >"$crew/inboxes/$2.json"
	jq --arg from "$1" --arg text "$3" '. + [{from: $from, text: $text, summary: $text, timestamp: "2026-11-20T10:00:00.000Z", msgV: 1, msg_id: "00000000-0000-4000-8000-000000000001", type: "message", read: false}]' "$crew/inboxes/$2.json" >new && mv new "$crew/inboxes/$2.json"
}

# ---- a look, and in ----
team; room bob rig/nux
exits 0 'a preview' mr setup claude-code --team crew
says out "would link crew, teams:$crew" 'says what would be linked'
says out 'would register rig/nux' 'and who would be a member'
check 'and changes nothing' sh -c "cmp before '$crew/config.json' && ! ls .mailroom/links/crew 2>/dev/null"
exits 0 'apply' mr setup claude-code --team crew --apply
same 'team-lead alice bob rig-nux' "$(members)" 'makes our agents members, under names that the team can write'
same '["agentId","name"] bob@crew' "$(jq -c '.members[2]|keys_unsorted[:2]' "$crew/config.json") $(jq -r '.members[2].agentId' "$crew/config.json")" 'as members are written'
check 'the lock is free again' sh -c "! [ -e '$crew/config.json.lock' ]"
cp "$crew/config.json" once
exits 0 'apply again' mr setup claude-code --team crew --apply --json
same 'none none none' "$(jq -r .action out | tr '\n' ' ' | sed 's/ $//')" 'has nothing to do'
check 'and changes nothing' cmp once "$crew/config.json"

# ---- mail both ways ----
exits 0 'a message to a teammate' mr --as bob send alice@crew -s port -m 'which port?'
id=$(cat out)
same 'bob which port?' "$(jq -r '.[0]|"\(.from) \(.text)"' "$crew/inboxes/alice.json" | head -n 1)" 'is in its inbox at once'
writes alice bob '8081'
same "alice@crew $id" "$(mr --as bob inbox --json | jq -r '"\(.from) \(.reply_to)"')" 'its answer reaches the sender, as an answer'
writes alice rig-nux 'you do not know me'
same 'alice@crew' "$(mr --as rig/nux inbox --json | jq -r .from)" 'it can write first'
mr --as bob drain >/dev/null
( sleep 0.5; writes alice bob 'while you wait' ) &
exits 0 'who waits' mr --as bob wait --timeout 20s --json
same 'alice@crew' "$(jq -r .from out)" 'is brought the answer'
wait; mr --as bob drain >/dev/null
writes alice bob 'at the next prompt'
printf '{"hook_event_name":"UserPromptSubmit","session_id":"s1","cwd":"%s","prompt":"go on"}' "$(pwd -P)" | "$BIN" --as bob hook claude-code >out 2>err
says out 'alice@crew' 'a hook brings it, too'
mr --as bob drain >/dev/null; mkdir "$crew/inboxes/bob.json.lock"; writes alice bob 'under a lock'
begun=$(date +%s%N)
exits 0 'a team that is locked' mr --as bob inbox
[ $((($(date +%s%N) - begun) / 1000000)) -lt 15000 ] && ok 'holds nobody up' || not_ok 'holds nobody up'
begun=$(date +%s%N)
exits 3 'nor does it make a wait longer' mr --as bob wait --timeout 1s --from rig/nux
[ $((($(date +%s%N) - begun) / 1000000)) -lt 3500 ] && ok 'than was asked for' || not_ok 'than was asked for'
rmdir "$crew/inboxes/bob.json.lock"
same 1 "$(tries=0; until [ "$(mr --as bob inbox --json | jq -r .subject | grep -c 'under a lock')" = 1 ] || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done; mr --as bob inbox --json | jq -r .subject | grep -c 'under a lock')" 'and its mail comes once'
mr --as bob drain >/dev/null
writes alice bob 'before you go'
{ printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' '{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"mailroom://inbox"}}'
	tries=0; until grep -q updated sub || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; [ $tries = 5 ] && writes alice bob 'to who subscribed' >/dev/null; done; } | (: >sub; "$BIN" --as bob mcp >sub 2>err)
says sub 'notifications/resources/updated' 'who subscribed is told of it'
exits 0 'a look at leaving' mr setup claude-code --team crew --remove --preview
says out 'would unlink crew' 'only tells'
same 'team-lead alice bob rig-nux' "$(members)" 'and does nothing'
exits 0 'remove' mr setup claude-code --team crew --remove
check 'the team is as it was' cmp before "$crew/config.json"
same 'alice.json' "$(ls "$crew/inboxes")" 'so are its inboxes'
same 1 "$(unread bob)" 'mail that had come meanwhile was carried'
same 'there are no links; mailroom link NAME KIND:WHERE' "$(mr link list)" 'the link is gone'
exits 0 'in again' mr setup claude-code --team crew --apply
same 'team-lead alice bob rig-nux' "$(members)" 'is no trouble'
exits 0 'and out' mr setup claude-code --team crew --remove
exits 0 'remove again' mr setup claude-code --team crew --remove
says out 'nothing to do' 'has nothing to do'

# ---- names ----
team; room bob alice carol
exits 4 'somebody of ours has a name of theirs' mr setup claude-code --team crew --apply
says err "'alice' cannot be 'alice' in 'crew'" 'which is told'
same 'team-lead alice bob carol' "$(members)" 'the others are members all the same'
mr setup claude-code --team crew --remove >/dev/null 2>&1; check 'and can leave' cmp before "$crew/config.json"
exits 0 'only those who are named' mr setup claude-code --team crew --apply carol
same 'team-lead alice carol' "$(members)" 'come in'
exits 5 'nobody of ours' mr setup claude-code --team crew --apply dave
team; room bob; mr link blue "teams:crew" >/dev/null
exits 0 'a team that is linked already' mr setup claude-code --team crew --apply
says out 'blue is already linked to' 'keeps its name'
same 'team-lead alice bob' "$(members)" 'and gets its members'
room bob; mkdir -p "$HOME/.claude/teams/red-team"; echo '{"members":[]}' >"$HOME/.claude/teams/red-team/config.json"
exits 0 'a name that no link can have' mr setup claude-code --team Red_Team --apply
same red_team "$(mr link list --json | jq -r .name)" 'is made one'

# ---- trouble ----
team; room bob
exits 5 'an unknown team' mr setup claude-code --team nobody --apply
says err "hint: check the team's name" 'is told'
exits 5 'also in a preview' mr setup claude-code --team nobody
exits 4 'no name of a team' mr setup claude-code --team ../crew
exits 2 'another harness has no teams' mr setup codex --team crew
exits 2 'nor has a project' mr setup claude-code --team crew --project
mv .mailroom away; exits 5 'without a room' mr setup claude-code --team crew
says err 'hint: .*mailroom init' 'that is said'; mv away .mailroom
mkdir "$crew/config.json.lock"; (sleep 0.4; rmdir "$crew/config.json.lock") &
start=$(date +%s%N); exits 0 'while the client holds its lock' mr setup claude-code --team crew --apply
check 'it waits' [ $((($(date +%s%N) - start) / 1000000)) -ge 300 ]
same 'team-lead alice bob' "$(members)" 'and then comes in'
printf '{"members":[' >"$crew/config.json"; exits 1 'a config.json that is broken' mr setup claude-code --team crew --remove
team; mr setup claude-code --team crew --apply >/dev/null 2>&1; rm -rf "$HOME/.claude/teams"
exits 0 'a team that is over' mr setup claude-code --team crew --remove
same 'there are no links; mailroom link NAME KIND:WHERE' "$(mr link list)" 'is forgotten'
finish
