# SPDX-License-Identifier: MIT
# The real Claude Code in a terminal: mail wakes a session that is idle, also one that was never given a prompt.
. "$(dirname "$0")/lib.sh"
need claude

project proj bob
claude_home
exits 0 'setup' mailroom setup claude-code --apply
model wake <<'JSON'
{"actors": [{"steps": [
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"text": "I was woken"},
 {"tool": "Bash", "input": {"command": "mailroom reply --help", "description": "mail"}},
 {"text": "woken again"},
 {"tool": "Bash", "input": {"command": "mailroom send bob -m 'after clear'", "description": "send"}},
 {"tool": "ToolSearch", "input": {"query": "select:mcp__mailroom__send"}},
 {"tool": "mcp__mailroom__send", "input": {"to": "bob", "body": "after clear, by the server"}},
 {"text": "cleared and done"}]}]}
JSON
claude_tui
until_true 20 sh -c "mailroom who --json </dev/null | jq -e 'select(.name == \"proj\" and .state == \"live\")'" && ok 'a session without a prompt has registered' || not_ok 'a session without a prompt has registered'
same 0 "$(ls "$log" 2>/dev/null | grep -c json)" 'and is idle: the model was not asked'
start=$(date +%s%N)
mailroom --as bob send proj -s 'are you there' -m x </dev/null >/dev/null 2>&1
until_true 30 test -e "$log/1.json" && ok "mail wakes it ($((($(date +%s%N) - start) / 1000000)) ms)" || { screen | note; not_ok 'mail wakes it'; }
model_was_told 1 'are you there' 'the model sees what came'
until_true 30 sh -c "tmux -L $socket capture-pane -p | grep -q 'I was woken'" && ok 'it works, and is idle again' || { screen | note; not_ok 'it works, and is idle again'; }
sleep 2
same 2 "$(ls "$log" | grep -c json)" 'the same mail does not wake it twice'
mailroom --as bob send proj -s 'and now' -m x </dev/null >/dev/null 2>&1
until_true 30 test -e "$log/4.json" && ok 'the waiter of the stop hook wakes it again' || { screen | note; not_ok 'the waiter of the stop hook wakes it again'; }
model_was_told 3 'and now' 'the model sees that, too'

# After /clear the session has a new id, and the server still has the old one in its environment: one agent all the same.
types_in /clear
sleep 2
types_in go
until_true 30 sh -c "tmux -L $socket capture-pane -p | grep -q 'cleared and done'" && ok 'after /clear it goes on' || { screen | note; not_ok 'after /clear it goes on'; }
same proj:2 "$(senders bob)" 'as the same agent, in shell and server'
no_waiters() { [ "$(waiters)" = 0 ]; }
one_waiter() { [ "$(waiters)" = 1 ]; }
until_true 10 one_waiter && ok 'after all these turns there is one waiter' || not_ok "after all these turns there is one waiter, not $(waiters)"
tmux -L "$socket" kill-server; tmux_used=
until_true 10 no_waiters && ok 'no waiter outlives its session' || not_ok 'no waiter outlives its session'
until_true 10 sh -c "mailroom who --json </dev/null | jq -e 'select(.name == \"proj\" and .state == \"gone\")'" && ok 'and who says that it is gone' || { mailroom who </dev/null | note; not_ok 'and who says that it is gone'; }
nothing_failed
finish
