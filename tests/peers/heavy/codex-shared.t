# SPDX-License-Identifier: MIT
# The real Codex in terminals, which run all their sessions in one background server with the environment of the first terminal: each of
# them is itself, also after /clear, and is gone when its thread is unloaded, a minute after its terminal was closed.
. "$(dirname "$0")/lib.sh"
need codex
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

project proj bob
mkdir -p "$HOME/.codex"
mailroom setup codex --apply >/dev/null 2>&1 </dev/null
ask() { printf '{"match": "%s", "steps": [{"tool": "exec_command", "input": {"cmd": "mailroom whoami --json"}}, {"tool": "send", "namespace": "mcp__mailroom", "input": {"to": "bob", "body": "%s"}}, {"text": "%s done"}' "$1" "$1" "$1"; }
model shared <<JSON
{"actors": [$(ask ASK-ONE), {"tool": "exec_command", "input": {"cmd": "mailroom whoami --json"}}, {"text": "once more done"}]}, $(ask ASK-TWO)]}, $(ask ASK-THREE)]}, $(ask ASK-FOUR)]}, $(ask ASK-FIVE)]}]}
JSON
codex_home
codex_server
agent_of() { jq -r '.body | tostring' "$log"/*.json | grep -F "$1" | grep -Eo 'agent\\+":\\*"?[a-z0-9-]+' | tail -n 1 | sed 's/.*"//'; }
sender_of() { mailroom --as bob inbox --all --json </dev/null >box 2>/dev/null; by_text "$1" | sed 's/.* //'; }
state() { mailroom who --json </dev/null 2>/dev/null | jq -r "select(.name == \"$1\").state"; }
is_state() { [ "$(state "$1")" = "$2" ]; }

# ---- two terminals; the first one starts the server, as bob and inside of Claude Code ----
terminal one -e MAILROOM_AGENT=bob -e CLAUDE_CODE_SESSION_ID=outer
says_done one ASK-ONE ASK-ONE
server=$(jq -r .pid "$CODEX_HOME/app-server-daemon/daemon.pid")
check 'Codex runs its sessions in a server' kill -0 "$server"
terminal two
says_done two ASK-TWO ASK-TWO
same 'outer bob' "$(tr '\0' '\n' <"/proc/$server/environ" | sed -n 's/^CLAUDE_CODE_SESSION_ID=//p; s/^MAILROOM_AGENT=//p' | sort -r | tr '\n' ' ' | sed 's/ $//')" 'which has the environment of the first terminal'
same 'proj proj-2' "$(agent_of ASK-ONE) $(agent_of ASK-TWO)" 'the shell of each session is that session'
same 'proj proj-2' "$(sender_of ASK-ONE) $(sender_of ASK-TWO)" 'and so is its server'
[ ! -e .mailroom/records/pane/proj ] && [ ! -e .mailroom/records/pane/proj-2 ] && ok "neither has the first terminal's pane" || not_ok "neither has the first terminal's pane"

# ---- /clear in the second ----
enters two /clear; sleep 3
says_done two ASK-THREE ASK-THREE
same 'proj-3 proj-3' "$(agent_of ASK-THREE) $(sender_of ASK-THREE)" 'after /clear in the second it has not become the first'
jq -r '.body | tostring' "$log"/*.json | grep -F ASK-THREE >told; says told "one of .proj, proj-2" 'and is told whom it may have been'
says_done one 'ASK-ONE again' 'once more'
same proj "$(agent_of 'ASK-ONE again')" 'and the first is who it was'
until_true 80 is_state proj-2 gone && ok 'the session that was left is gone a minute later' || not_ok 'the session that was left is gone a minute later'
same 'live live' "$(state proj) $(state proj-3)" 'the other two are live'

# ---- both closed ----
tmux -L "$socket" kill-session -t one; tmux -L "$socket" kill-session -t two
until_true 80 is_state proj gone && until_true 10 is_state proj-3 gone && ok 'a minute after the terminals were closed both are gone' || not_ok 'a minute after the terminals were closed both are gone'
check 'while the server is still there' kill -0 "$server"

# ---- one terminal, with one name in the room ----
mailroom prune proj-2 proj-3 </dev/null >/dev/null 2>&1
terminal three
says_done three ASK-FOUR ASK-FOUR
same 'proj proj' "$(agent_of ASK-FOUR) $(sender_of ASK-FOUR)" 'the next session of the worktree takes the name'
life=$(mailroom who --json </dev/null | jq -r 'select(.name == "proj").life')
enters three /clear; sleep 3
says_done three ASK-FIVE ASK-FIVE
same "proj proj $life" "$(agent_of ASK-FIVE) $(sender_of ASK-FIVE) $(mailroom who --json </dev/null | jq -r 'select(.name == "proj").life')" 'and keeps it, in the same life, after /clear'
nothing_failed
finish
