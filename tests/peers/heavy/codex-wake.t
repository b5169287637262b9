# SPDX-License-Identifier: MIT
# The real Codex in a terminal, idle: mail wakes it through its own queue, once for a backlog, with not a word of a sender in the prompt that
# this makes; a ring for mail that was read meanwhile never reaches the model.
. "$(dirname "$0")/lib.sh"
need codex
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

project proj bob carol
mkdir -p "$HOME/.codex"
mailroom setup codex --apply >/dev/null 2>&1 </dev/null
model wake <<'JSON'
{"actors": [{"steps": [{"text": "first done"},
 {"tool": "exec_command", "input": {"cmd": "mailroom drain"}}, {"text": "second done"},
 {"tool": "exec_command", "input": {"cmd": "mailroom drain"}}, {"text": "third done"},
 {"tool": "exec_command", "input": {"cmd": "sleep 9"}}, {"text": "fourth done"}, {"text": "fifth done"}]}]}
JSON
codex_home
codex_server
requests() { find "$log" -name '[0-9]*.json' | wc -l; }
has_asked() { [ "$(requests)" -ge "$1" ]; }
waits() { [ "$(waiters)" -ge 1 ]; }
unread_of() { mailroom --as "$1" inbox --json </dev/null 2>/dev/null | wc -l; }
terminal one
says_done one 'hello' 'first'
until_true 20 waits && ok 'a waiter stands beside the idle session' || not_ok 'a waiter stands beside the idle session'

# ---- woken
before=$(date +%s%N)
id=$(mailroom --as bob send proj -s 'SENDER-WORDS in the subject' -m 'SENDER-WORDS in the text' </dev/null 2>/dev/null)
until_true 30 has_asked 2 && ok "the idle session is woken, $((($(date +%s%N) - before) / 1000000)) ms after the send" || { tmux -L "$socket" capture-pane -p -t one | grep -v '^ *$' | note; not_ok 'the idle session is woken'; }
prompts() { jq -r '.body.input[] | select(.role == "user") | .content[].text' "$log/$1.json"; }
prompts 2 | tail -n 1 >prompt
note <prompt
says prompt "^mailroom bell [0-9a-f]{6}: 1 new message \\($id\\)\\. Run: mailroom drain" 'by a prompt that is ours'
silent_about prompt 'SENDER-WORDS' 'without a word of the sender'
asked 2 >told; says told 'from bob: SENDER-WORDS in the subject' 'the hook tells of the mail beside it, fenced'
until_true 30 shows one 'second done'
same 0 "$(unread_of proj)" 'and the agent reads it'
mailroom --as bob why "$id" </dev/null >why 2>/dev/null
says why 'rung by codex-queue at .*, answered at' 'why tells of the bell and its answer'
sleep 3
same 3 "$(requests)" 'it was woken once'

# ---- many at once: one ring
until_true 20 waits
senders=
for i in 1 2 3 4; do
	(for k in $(seq 50); do mailroom --as carol send proj -m "many $i $k" </dev/null >/dev/null 2>&1; done) &
	senders="$senders $!"
done
for pid in $senders; do wait "$pid"; done
until_true 40 has_asked 4 && ok 'two hundred messages wake it' || not_ok 'two hundred messages wake it'
until_true 60 shows one 'third done'
sleep 4
same 2 "$(prompts "$(requests)" | grep -c '^mailroom bell')" 'with one ring for all of them'

# ---- read before the ring is answered: the session is busy, the ring waits for the end of its turn
mailroom --as proj drain --budget 0 </dev/null >/dev/null 2>&1
enters one 'work for a while'
until_true 20 has_asked 6
id=$(mailroom --as bob send proj -m 'read by another command' </dev/null 2>/dev/null)
until_true 10 sh -c 'mailroom --as bob why "$1" </dev/null | grep -q "rung by"' - "$id" && ok 'a busy session is rung for' || not_ok 'a busy session is rung for'
mailroom --as proj drain --budget 0 </dev/null >/dev/null 2>&1
until_true 30 shows one 'fourth done'
until_true 20 shows one 'has been read' && ok 'the ring that came too late is blocked, and says why' || { tmux -L "$socket" capture-pane -p -t one | grep -v '^ *$' | note; not_ok 'the ring that came too late is blocked, and says why'; }
sleep 2
same 7 "$(requests)" 'and the model was not asked'
mailroom --as bob why "$id" </dev/null >why 2>/dev/null
says why 'rung by codex-queue at .*, blocked as stale' 'as why tells'

# ---- nobody else is rung: codex exec drops such prompts
n=$(waiters)
timeout 60 codex exec --skip-git-repo-check --dangerously-bypass-hook-trust 'say something' </dev/null >exec.out 2>&1
same "$n" "$(waiters)" 'codex exec leaves no waiter behind'

# ---- gone with the session
tmux -L "$socket" kill-session -t one; stop_server
nobody_waits() { [ "$(waiters)" -eq 0 ]; }
until_true 20 nobody_waits && ok 'the waiter leaves with the server' || not_ok 'the waiter leaves with the server'
nothing_failed
finish
