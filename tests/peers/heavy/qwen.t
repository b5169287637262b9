# SPDX-License-Identifier: MIT
# The real Qwen Code in a terminal: hooks, shell and server of one session are one agent, urgent mail is told once although its prompt hook also
# runs after tools, and mail wakes it when it is idle, through the session's own socket.
. "$(dirname "$0")/lib.sh"
need qwen
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

project proj bob carol
mkdir -p "$HOME/.qwen"
printf '{"security":{"auth":{"selectedType":"openai"}},"general":{"disableAutoUpdate":true},"telemetry":{"enabled":false},"tools":{"approvalMode":"yolo"}}\n' >"$HOME/.qwen/settings.json"
set_up qwen "$HOME/.qwen/settings.json"
scripted run_shell_command 'is_background": false, "command' mcp__mailroom__send qwen
export OPENAI_API_KEY=dummy OPENAI_BASE_URL="http://127.0.0.1:$port/v1" OPENAI_MODEL=mock
one_session 'Type your message' qwen
types_hello() { tmux -L "$socket" send-keys -t one -l hello; sleep 1; shows one '[*>] *hello'; } # it takes keys some time after it shows its prompt
until_true 30 types_hello
tmux -L "$socket" send-keys -t one Enter
a_turn
is_woken 'from bob'
ends_with_its_session
