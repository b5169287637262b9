# SPDX-License-Identifier: MIT
# The real OpenCode in a terminal, with our plugin: shell, plugin and server of one session are one agent, mail comes with the prompt and after tools,
# and wakes it when it is idle. Whatever happens to the plugin, the user's prompt goes on.
. "$(dirname "$0")/lib.sh"
need opencode
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

own_program
project proj bob carol
scripted bash command mailroom_send opencode
conf=${XDG_CONFIG_HOME:-$HOME/.config}/opencode
mkdir -p "$conf"; unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL
printf '{\n  // the scripted model\n  "model": "mock/mock", "autoupdate": false, "share": "disabled", "permission": "allow",\n  "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:%s/v1", "apiKey": "x"}, "models": {"mock": {"tool_call": true}}}}\n}\n' "$port" >"$conf/opencode.json"
set_up opencode "$conf/opencode.json" "$conf/plugins/mailroom.js"
one_session 'Ask anything' opencode
enters one 'hello'
a_turn
is_woken "$BELL"
why_says_rung opencode-plugin
never_costs_a_prompt
ends_with_its_session
