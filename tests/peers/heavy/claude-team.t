# SPDX-License-Identifier: MIT
# A team of the real Claude Code: mail from outside reaches a running teammate, and its answer comes back.
. "$(dirname "$0")/lib.sh"
need claude

project proj bob
claude_home
mkdir -p "$HOME/.claude"
echo '{"permissions": {"allow": ["Agent", "SendMessage", "ToolSearch"]}}' >"$HOME/.claude/settings.json"
export CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1
model team <<'JSON'
{"actors": [
 {"match": "LEADGO", "steps": [
  {"tool": "Agent", "input": {"description": "helper", "name": "alice", "prompt": "You are HELPER: wait for mail.", "subagent_type": "general-purpose"}},
  {"text": "spawned"}]},
 {"match": "HELPER", "steps": [
  {"text": "ready for mail"},
  {"tool": "ToolSearch", "input": {"query": "select:SendMessage"}},
  {"tool": "SendMessage", "input": {"to": "bob", "message": "PONG, the port is 8081", "summary": "the port"}},
  {"text": "answered"}]}]}
JSON
claude_tui --teammate-mode in-process
types_in LEADGO
until_true 30 sh -c "jq -e '.members[] | select(.name == \"alice\")' $HOME/.claude/teams/*/config.json" && ok 'the lead has a teammate' || { screen | note; not_ok 'the lead has a teammate'; }
team=$(basename "$(dirname "$(ls "$HOME"/.claude/teams/*/config.json)")")
until_true 30 sh -c "tmux -L $socket capture-pane -p | grep -q 'ready for mail'" && ok 'which is idle' || { screen | note; not_ok 'which is idle'; }

exits 0 'setup --team' mailroom setup claude-code --team "$team" --apply
jq -e '.members[] | select(.name == "bob")' "$HOME/.claude/teams/$team/config.json" >/dev/null && ok 'our agent is a member of the team' || { note <"$HOME/.claude/teams/$team/config.json"; not_ok 'our agent is a member of the team'; }
exits 0 'mail to the teammate' mailroom --as bob send "alice@$team" -s 'a question' -m 'PING, which port?'
asked_alice() { grep -l 'PING, which port' "$log"/*.json; }
until_true 30 asked_alice && ok 'reaches its model' || { screen | note; cat "$HOME/.claude/teams/$team"/inboxes/*.json | note; not_ok 'reaches its model'; }
says "$(asked_alice | head -n 1)" '"actor": "HELPER"' 'and nobody else'
answer() { mailroom carry --once </dev/null >carried 2>&1; mailroom --as bob inbox --all --json </dev/null | grep -q alice; }
until_true 30 answer && ok 'it answers, and the answer comes back' || { screen | note; note <carried; ls -R "$HOME/.claude/teams/$team/inboxes" | note; not_ok 'it answers, and the answer comes back'; }
mailroom --as bob inbox --all --json </dev/null >box
same "alice@$team" "$(jq -r .from box | head -n 1)" 'from the teammate, by an address that can be answered'
mailroom --as bob drain </dev/null >text 2>&1
says text 'PONG, the port is 8081' 'with its text'
nothing_failed
finish
