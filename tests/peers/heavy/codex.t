# SPDX-License-Identifier: MIT
# The real Codex: server, hooks and shell of one session are one agent, in its default sandbox, and mail reaches the model.
. "$(dirname "$0")/lib.sh"
need codex

project proj bob
mkdir -p "$HOME/.codex"
exits 0 'setup' mailroom setup codex --apply
exits 0 'and its own proof of the round trip' mailroom setup codex --check
codex_p() { timeout 90 codex exec "$@" </dev/null; }
flags='--skip-git-repo-check --sandbox workspace-write --dangerously-bypass-hook-trust --json'

# ---- one session ----
mailroom --as bob send proj --hold -s 'waiting since yesterday' -m x </dev/null >/dev/null 2>&1
model one <<'JSON'
{"actors": [{"steps": [
 {"tool": "exec_command", "input": {"cmd": "mailroom whoami"}},
 {"tool": "exec_command", "input": {"cmd": "mailroom send bob -m 'from the shell'"}},
 {"tool": "send", "namespace": "mcp__mailroom", "input": {"to": "bob", "body": "from the server"}},
 {"tool": "exec_command", "input": {"cmd": "mailroom drain"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'stop the press' -m x </dev/null", "tool": "exec_command", "input": {"cmd": "mailroom who"}},
 {"tool": "exec_command", "input": {"cmd": "mailroom drain"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'before you go' -m x </dev/null", "text": "I am done"},
 {"tool": "exec_command", "input": {"cmd": "mailroom drain"}},
 {"text": "now I am"}]}]}
JSON
codex_home
mkdir -p "$HOME/.agents/skills" && ln -s "$top/share/mailroom/skill" "$HOME/.agents/skills/mailroom"
exits 0 'a session' codex_p $flags go
session=$(jq -r 'select(.type == "thread.started") | .thread_id' out)
model_was_told 1 "This session is the agent 'proj'" 'at its start the model is told who it is'
model_was_told 1 'from bob: waiting since yesterday' 'and of the mail that waits'
whole 1 >told; says told 'Mail and nudges between agent sessions' 'it knows the skill that a link brought'
model_was_told 2 '^proj$' 'the shell is that agent, with nothing exported'
same 'proj:2' "$(senders bob)" 'shell and server of the session send as one agent'
model_was_told 6 'from bob: stop the press' 'urgent mail sent meanwhile is in the context at the next tool call'
model_was_told 8 'from bob: before you go' 'urgent mail at the end keeps the turn open'
same 9 "$(ls "$log" | grep -c json)" 'once: then the turn ends'
nothing_failed

# ---- the same session, later ----
mailroom --as bob send proj -s 'over night' -m x </dev/null >/dev/null 2>&1
model two <<'JSON'
{"actors": [{"steps": [{"tool": "exec_command", "input": {"cmd": "mailroom send bob -m resumed"}}, {"text": "done"}]}]}
JSON
sed -i "s,127.0.0.1:[0-9]*,127.0.0.1:$port," "$HOME/.codex/config.toml"
exits 0 'it is resumed' codex_p resume --skip-git-repo-check --dangerously-bypass-hook-trust --json "$session" again
model_was_told 1 'from bob: over night' 'mail that came meanwhile is in the context with the prompt'
same 'proj:3' "$(senders bob)" 'and it still is the same agent'
# ---- two sessions in one worktree, at the same time; the room is that of the main worktree, which the sandbox protects ----
git worktree add -q ../linked 2>/dev/null && cd ../linked || exit 1
meet() { echo "touch $scratch/$1; i=0; while [ ! -e $scratch/$2 ] && [ \$i -lt 200 ]; do sleep 0.1; i=\$((i+1)); done"; }
model pair <<JSON
{"actors": [
 {"match": "PEER-ONE", "steps": [
  {"before": "$(meet a b)", "tool": "exec_command", "input": {"cmd": "mailroom send bob -m one"}},
  {"tool": "exec_command", "input": {"cmd": "touch $scratch/proj/outside"}},
  {"tool": "send", "namespace": "mcp__mailroom", "input": {"to": "bob", "body": "one"}},
  {"before": "$(meet a2 b2)", "text": "done"}]},
 {"match": "PEER-TWO", "steps": [
  {"before": "$(meet b a)", "tool": "exec_command", "input": {"cmd": "mailroom send bob -m two"}},
  {"tool": "send", "namespace": "mcp__mailroom", "input": {"to": "bob", "body": "two"}},
  {"before": "$(meet b2 a2)", "text": "done"}]}]}
JSON
sed -i "s,127.0.0.1:[0-9]*,127.0.0.1:$port," "$HOME/.codex/config.toml"
mailroom --as bob drain </dev/null >/dev/null 2>&1
codex_p $flags PEER-ONE >first.out 2>first.err &
first=$!
codex_p $flags PEER-TWO >second.out 2>second.err &
wait $first; rc1=$?; wait $!; rc2=$?
same '0 0' "$rc1 $rc2" 'two sessions in one linked worktree, at the same time'
mailroom --as bob inbox --json </dev/null >box
[ ! -e "$scratch/proj/outside" ] && ok 'the sandbox is on' || not_ok 'the sandbox is on'
same 4 "$(wc -l <box)" 'send two messages each, from inside the sandbox'
same 2 "$(jq -r .from box | sort -u | wc -l)" 'as two agents'
same 2 "$(by_text one two | sort -u | wc -l)" 'each of which has its own shell and server'
nothing_failed
finish
