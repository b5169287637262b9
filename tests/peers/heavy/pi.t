# SPDX-License-Identifier: MIT
# The real Pi in a terminal, with our extension: shell and extension of one session are one agent, mail comes with the prompt and after tools, and
# wakes it when it is idle. Whatever happens to the extension, the user's prompt goes on.
. "$(dirname "$0")/lib.sh"
need pi
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

cp "$BIN" "$scratch/program"; BIN=$scratch/program; ln -sf "$BIN" "$scratch/bin/mailroom"
project proj bob carol
model pi <<'JSON'
{"actors": [{"steps": [
 {"tool": "bash", "input": {"command": "mailroom whoami"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'stop the press' -m x </dev/null", "tool": "bash", "input": {"command": "true"}},
 {"tool": "bash", "input": {"command": "true"}},
 {"tool": "bash", "input": {"command": "mailroom send bob -m 'from the shell'"}},
 {"tool": "bash", "input": {"command": "mailroom drain"}},
 {"text": "first done"},
 {"tool": "bash", "input": {"command": "mailroom drain"}},
 {"text": "second done"}, {"text": "third done"}, {"text": "fourth done"}]}]}
JSON
conf=$HOME/.pi/agent
mkdir -p "$conf"; unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL
printf '{"providers": {"mock": {"baseUrl": "http://127.0.0.1:%s/v1", "api": "openai-completions", "apiKey": "x", "models": [{"id": "mock", "name": "mock", "reasoning": false, "input": ["text"], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 128000, "maxTokens": 8000}]}}}\n' "$port" >"$conf/models.json"
exits 0 'setup' mailroom setup pi --apply
exits 0 'and its own proof of the round trip' mailroom setup pi --check
exits 0 'is taken out' mailroom setup pi --remove
check 'without a trace' test ! -e "$conf/extensions"
mailroom setup pi --apply >/dev/null </dev/null
requests() { find "$log" -name '[0-9]*.json' | wc -l; }
has_asked() { [ "$(requests)" -ge "$1" ]; }
waits() { [ "$(waiters)" -ge 1 ]; }
tmux_used=1
tmux -L "$socket" -f /dev/null new-session -d -s one -x 150 -y 50 pi --provider mock --model mock
until_true 60 shows one 'mock' || { tmux -L "$socket" capture-pane -p -t one | note; not_ok 'Pi starts'; finish; }
sleep 2
enters one 'hello'
until_true 90 shows one 'first done' || { tmux -L "$socket" capture-pane -p -t one | grep -v '^ *$' | note; not_ok 'a turn'; finish; }
whole 1 >told; says told "This session is the agent 'proj'" 'at its start the model is told who it is'
asked 2 >told; says told '^proj$|proj' 'the shell is that agent'
same 1 "$(for i in 3 4 5; do asked $i; done | grep -c 'from bob: stop the press')" 'urgent mail after a tool is told, once'
same 'proj:1' "$(senders bob)" 'and sends as it'
until_true 20 waits && ok 'a waiter stands beside the idle session' || not_ok 'a waiter stands beside the idle session'
n=$(requests)
id=$(mailroom --as bob send proj -s 'SENDER-WORDS' -m 'please' </dev/null 2>/dev/null)
until_true 30 has_asked $((n + 1)) && ok 'the idle session is woken' || { tmux -L "$socket" capture-pane -p -t one | grep -v '^ *$' | note; not_ok 'the idle session is woken'; }
asked $((n + 1)) >told; note <told
says told "mailroom bell [0-9a-f]{6}: 1 new message \\($id\\)" 'by a prompt that is ours'
says told 'from bob: SENDER-WORDS' 'and told of the mail, fenced'
until_true 60 shows one 'second done'
sleep 3
same $((n + 2)) "$(requests)" 'once'
mailroom --as bob why "$id" </dev/null >why 2>/dev/null; says why 'rung by pi at .*, answered at' 'why tells of the bell'

# ---- a plugin that cannot run its command never costs the user a prompt
mv "$scratch/bin/mailroom" "$scratch/bin/away"; mv "$(readlink -f "$BIN")" "$BIN.away"
enters one 'goes on'
until_true 60 shows one 'third done' && ok 'without the command the prompt goes on' || not_ok 'without the command the prompt goes on'
mv "$BIN.away" "$BIN"; mv "$scratch/bin/away" "$scratch/bin/mailroom"
tmux -L "$socket" kill-session -t one
nobody_waits() { [ "$(waiters)" -eq 0 ]; }
until_true 20 nobody_waits && ok 'the waiter leaves with the session' || not_ok 'the waiter leaves with the session'
nothing_failed
finish
