# SPDX-License-Identifier: MIT
# The real Claude Code: server, hooks and Bash tool of one session are one agent, and mail reaches the model wherever it can.
. "$(dirname "$0")/lib.sh"
need claude

project proj bob
claude_home
exits 0 'setup' mailroom setup claude-code --apply
exits 0 'and its own proof of the round trip' mailroom setup claude-code --check
exits 0 'claude mcp list' claude mcp list
says out 'mailroom: .*Connected' 'says that the server is connected'

# ---- one session ----
mailroom --as bob send proj --hold -m 'waiting since yesterday' </dev/null >/dev/null 2>&1
model one <<'JSON'
{"actors": [{"steps": [
 {"tool": "Bash", "input": {"command": "mailroom whoami", "description": "who am I"}},
 {"tool": "Bash", "input": {"command": "mailroom send bob -m 'from the shell'", "description": "send"}},
 {"tool": "ToolSearch", "input": {"query": "select:mcp__mailroom__send"}},
 {"tool": "mcp__mailroom__send", "input": {"to": "bob", "body": "from the server"}},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'stop the press' -m x </dev/null", "tool": "Bash", "input": {"command": "mailroom who", "description": "who"}},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'before you go' -m x </dev/null", "text": "I am done"},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"text": "now I am"}]}]}
JSON
exits 0 'a session' claude_p go
session=$(jq -r 'select(.type == "system" and .subtype == "init") | .session_id' out | head -n 1)
same connected "$(jq -r 'select(.type == "system" and .subtype == "init") | .mcp_servers[] | select(.name == "mailroom") | .status' out | head -n 1)" 'has the server connected'
model_was_told 1 "This session is the agent 'proj'" 'at its start the model is told who it is'
model_was_told 1 'from bob: waiting since yesterday' 'and of the mail that waits'
silent_about "$scratch/asked" '&lt;.*reminder' 'in words that the harness leaves as they are'
model_was_told 2 '^proj$' 'the Bash tool is that agent, with nothing exported'
same 'proj:2' "$(senders bob)" 'shell and server of the session send as one agent'
model_was_told 7 'from bob: stop the press' 'urgent mail sent meanwhile is in the context at the next tool call'
model_was_told 9 'from bob: before you go' 'urgent mail at the end keeps the turn open'
same 10 "$(ls "$log" | grep -c json)" 'once: then the turn ends'
nothing_failed

# ---- the same session, later ----
mailroom --as bob send proj -s 'over night' -m x </dev/null >/dev/null 2>&1
model two <<'JSON'
{"actors": [{"steps": [{"tool": "Bash", "input": {"command": "mailroom send bob -m 'resumed'", "description": "send"}}, {"text": "done"}]}]}
JSON
exits 0 'it is resumed' claude_p --resume "$session" go
model_was_told 1 'from bob: over night' 'mail that came meanwhile is in the context with the prompt'
same 'proj:3' "$(senders bob)" 'and it still is the same agent'

# ---- a subagent shares the mailbox, and is left alone by the hooks ----
model sub <<'JSON'
{"actors": [
 {"match": "LEAD-GO", "steps": [
  {"tool": "Agent", "input": {"description": "helper", "prompt": "HELPER-GO", "subagent_type": "general-purpose"}},
  {"text": "waiting"}, {"text": "done"}, {"text": "done"}, {"text": "done"}]},
 {"match": "HELPER-GO", "steps": [
  {"before": "mailroom --as bob send proj --priority urgent -s 'for the parent' -m x </dev/null", "tool": "Bash", "input": {"command": "mailroom send bob -m 'from the helper'", "description": "send"}},
  {"text": "helped"}]}]}
JSON
exits 0 'a session with a helper' claude_p --resume "$session" LEAD-GO
same 'proj:4' "$(senders bob)" 'its mail comes from its parent'
for f in $(grep -l '"actor": "HELPER-GO"' "$log"/*.json); do jq -r '[.body.messages[] | .. | strings] | join("\n")' "$f"; done >helper
silent_about helper 'for the parent' 'what is for the parent is not told to it'
for f in $(grep -l '"actor": "LEAD-GO"' "$log"/*.json); do jq -r '[.body.messages[] | .. | strings] | join("\n")' "$f"; done >parent
says parent 'from bob: for the parent' 'but to the parent'

# ---- two sessions in one worktree, at the same time ----
cd .. && project pair bob
model pair <<JSON
{"actors": [
 {"match": "PEER-ONE", "steps": [
  {"before": "touch $scratch/a; i=0; while [ ! -e $scratch/b ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i+1)); done", "tool": "Bash", "input": {"command": "mailroom send bob -m one", "description": "send"}},
  {"tool": "ToolSearch", "input": {"query": "select:mcp__mailroom__send"}},
  {"tool": "mcp__mailroom__send", "input": {"to": "bob", "body": "one"}},
  {"before": "touch $scratch/a2; i=0; while [ ! -e $scratch/b2 ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i+1)); done", "text": "done"}]},
 {"match": "PEER-TWO", "steps": [
  {"before": "touch $scratch/b; i=0; while [ ! -e $scratch/a ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i+1)); done", "tool": "Bash", "input": {"command": "mailroom send bob -m two", "description": "send"}},
  {"tool": "ToolSearch", "input": {"query": "select:mcp__mailroom__send"}},
  {"tool": "mcp__mailroom__send", "input": {"to": "bob", "body": "two"}},
  {"before": "touch $scratch/b2; i=0; while [ ! -e $scratch/a2 ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i+1)); done", "text": "done"}]}]}
JSON
claude_p PEER-ONE >first.out 2>first.err &
first=$!
claude_p PEER-TWO >second.out 2>second.err &
wait $first; rc1=$?; wait $!; rc2=$?
same '0 0' "$rc1 $rc2" 'two sessions in one worktree, at the same time'
mailroom --as bob inbox --json </dev/null >box
same 4 "$(wc -l <box)" 'send two messages each'
same 2 "$(jq -r .from box | sort -u | wc -l)" 'as two agents'
same 2 "$(by_text one two | sort -u | wc -l)" 'each of which has its own shell and server'
# ---- what setup did not allow is not run, and a clone is not used ----
model trust <<JSON
{"actors": [{"steps": [
 {"tool": "Bash", "input": {"command": "mailroom patrol --handler 'HELP=touch $scratch/owned'", "description": "patrol"}},
 {"tool": "Bash", "input": {"command": "mailroom config set Notify 'touch $scratch/owned'", "description": "config"}},
 {"tool": "Bash", "input": {"command": "mailroom inbox", "description": "inbox"}}, {"text": "done"}]}]}
JSON
exits 0 'a session whose model asks for more' claude_p go
check 'no command of its own ran' test ! -e "$scratch/owned"
same '' "$(env -u CLAUDE_CODE_SESSION_ID mailroom config list --json </dev/null)" 'and the configuration is as it was'
mkdir -p "$scratch/clone/.mailroom/agents/clone/new" && cd "$scratch/clone" || exit 1
printf 'Format: 1\nName: x\nNotify: touch %s/owned\n' "$scratch" >.mailroom/room
printf 'Name: clone\nCreated: 2026-01-01T00:00:00Z\n' >.mailroom/agents/clone/agent
printf 'From: a@x\nTo: clone@x\nSubject: from the clone\n\nx\n' >.mailroom/agents/clone/new/1772706600.x
model clone <<'JSON'
{"actors": [{"steps": [{"tool": "Bash", "input": {"command": "mailroom send operator -m hi", "description": "send"}}, {"text": "done"}]}]}
JSON
exits 0 'a session in a clone with a room' claude_p go
check 'runs nothing' test ! -e "$scratch/owned"
model_was_told 2 'is not trusted' 'its command is refused, with the reason'
nothing_failed
finish
