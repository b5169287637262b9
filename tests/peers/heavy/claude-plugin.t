# SPDX-License-Identifier: MIT
# The plugin in the real Claude Code: with one option it brings server, hooks and skill, and no setup is needed.
. "$(dirname "$0")/lib.sh"
need claude

plugin=$top/share/mailroom/plugin
exits 0 'claude plugin validate' claude plugin validate "$plugin"
project proj bob
claude_home
mailroom --as bob send proj --hold -s 'for the plugin' -m x </dev/null >/dev/null 2>&1
model plugin <<'JSON'
{"actors": [{"steps": [
 {"tool": "Skill", "input": {"skill": "mailroom:mailroom", "args": "check"}},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"tool": "ToolSearch", "input": {"query": "select:mcp__plugin_mailroom_mailroom__send"}},
 {"tool": "mcp__plugin_mailroom_mailroom__send", "input": {"to": "bob", "body": "from the server"}},
 {"text": "done"}]}]}
JSON
exits 0 'a session with the plugin' claude_p --plugin-dir "$plugin" --allowedTools 'Skill,Bash(mailroom *),mcp__plugin_mailroom_mailroom' -- go
jq 'select(.type == "system" and .subtype == "init")' out >init
same connected "$(jq -r '.mcp_servers[] | select(.name | test("mailroom")) | .status' init)" 'its server is connected'
same 'mailroom:mailroom' "$(jq -r '.skills[]?' init | grep mailroom)" 'its skill is there'
model_was_told 1 "This session is the agent 'proj'" 'its hooks tell the model who it is'
model_was_told 1 'from bob: for the plugin' 'and of the mail that waits'
model_was_told 2 'The argument is a flow' 'the skill can be run by name'
model_was_told 2 'ARGUMENTS: check|Arguments: check' 'with a flow'
model_was_told 3 'for the plugin' 'whose commands run'
same proj:1 "$(senders bob)" 'and the server is that agent'
nothing_failed

# ---- the skill alone, by a link in the folder of skills ----
mkdir -p "$HOME/.claude/skills" && ln -s "$top/share/mailroom/skill" "$HOME/.claude/skills/mailroom"
model skill <<'JSON'
{"actors": [{"steps": [{"text": "done"}]}]}
JSON
exits 0 'the skill without the plugin' claude_p -- '/mailroom check'
model_was_told 1 'The argument is a flow' 'a person runs it by its name'
model_was_told 1 'ARGUMENTS: check|Arguments: check' 'with a flow'
finish
