# SPDX-License-Identifier: MIT
# The real Pi in a terminal, with our extension: shell and extension of one session are one agent, mail comes with the prompt and after tools, and
# wakes it when it is idle. Whatever happens to the extension, the user's prompt goes on.
. "$(dirname "$0")/lib.sh"
need pi
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

own_program
project proj bob carol
scripted bash command '' pi
conf=$HOME/.pi/agent
mkdir -p "$conf"; unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL
printf '{"providers": {"mock": {"baseUrl": "http://127.0.0.1:%s/v1", "api": "openai-completions", "apiKey": "x", "models": [{"id": "mock", "name": "mock", "reasoning": false, "input": ["text"], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 128000, "maxTokens": 8000}]}}}\n' "$port" >"$conf/models.json"
set_up pi "$conf/extensions/mailroom.js"
one_session mock pi --provider mock --model mock
enters one 'hello'
a_turn
is_woken "$BELL"
why_says_rung pi-plugin
never_costs_a_prompt
ends_with_its_session
