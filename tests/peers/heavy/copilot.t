# SPDX-License-Identifier: MIT
# The real Copilot CLI: with -p its hooks tell at all four moments, and hooks, shell and server of one session are one agent; in a terminal, with its
# setting "experimental" on, our extension wakes it when it is idle, also before its first prompt.
. "$(dirname "$0")/lib.sh"
need copilot
command -v tmux >/dev/null || { echo '1..0 # skip no tmux'; exit 0; }

own_program
project proj bob carol
scripted bash command mailroom-send four
unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL
conf=$HOME/.copilot
offline() { export COPILOT_OFFLINE=true COPILOT_MODEL=mock COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:$port/v1"; }
offline
mkdir -p "$conf"; printf '{"theme": "dark"}\n' >"$conf/settings.json"; printf '{"mcpServers": {}}\n' >"$conf/mcp-config.json"
set_up copilot "$conf/mcp-config.json" "$conf/hooks/mailroom.json"
check 'without "experimental" there is no extension' test ! -e "$conf/extensions"

# ---- the four moments, without a terminal
model moments <<'JSON'
{"actors": [{"steps": [
 {"tool": "bash", "input": {"command": "mailroom whoami", "description": "x"}},
 {"before": "mailroom --as bob send proj --priority urgent -s 'stop the press' -m x </dev/null", "tool": "bash", "input": {"command": "true", "description": "x"}},
 {"tool": "mailroom-send", "input": {"to": "bob", "body": "from the server"}},
 {"text": "first done"},
 {"tool": "bash", "input": {"command": "mailroom drain", "description": "x"}},
 {"text": "second done"}, {"text": "third done"}]}]}
JSON
offline
timeout 120 copilot -p hello --allow-all-tools >run.out 2>&1 </dev/null || note <run.out
whole 1 >told; says told "This session is the agent 'proj'" 'at its start the model is told who it is'
asked 2 >told; says told 'proj' 'the shell is that agent'
same 1 "$(for i in 3 4; do asked $i; done | grep -c 'from bob: stop the press')" 'urgent mail after a tool is told, once'
same 'proj:1' "$(senders bob)" 'the server is the same agent'
asked 5 >told; note <told; says told 'stop the press' 'it does not stop over unread urgent mail'
says run.out 'second done' 'and then it does'
mailroom --as bob send proj -s 'in between' -m x </dev/null >/dev/null 2>&1
timeout 120 copilot -p more --continue --allow-all-tools >run.out 2>&1 </dev/null || note <run.out
whole 7 >told; says told 'from bob: in between' 'what came before it goes on is told'
same 'proj' "$(mailroom who --json </dev/null | jq -r 'select(.worktree != null and .name != "bob" and .name != "carol" and .name != "operator") | .name')" 'and the session that goes on is the same agent'

# ---- woken, in a terminal
cd "$scratch" && rm -rf proj; project proj bob carol
printf '{"theme": "dark", "experimental": true}\n' >"$conf/settings.json"
mailroom setup copilot --apply >/dev/null </dev/null
check 'with "experimental" there is one' test -s "$conf/extensions/mailroom/extension.mjs"
exits 0 'which rings' mailroom setup copilot --check
printf '{"trustedFolders": ["%s"]}\n' "$PWD" >"$conf/config.json"
model woken <<'JSON'
{"actors": [{"steps": [
 {"tool": "bash", "input": {"command": "mailroom drain", "description": "x"}}, {"text": "first done"},
 {"tool": "bash", "input": {"command": "mailroom drain", "description": "x"}}, {"text": "second done"}, {"text": "third done"}]}]}
JSON
offline
one_session 'for help\|/ commands' copilot --allow-all-tools
until_true 30 waits && ok 'a waiter stands beside a session without a prompt' || ends_badly 'a waiter stands beside a session without a prompt'
mailroom --as bob send proj -s 'are you there' -m x </dev/null >/dev/null 2>&1
until_true 30 has_asked 1 && ok 'mail wakes it' || ends_badly 'mail wakes it'
whole 1 >told; says told 'from bob: are you there' 'and is told'
until_true 60 shows one 'first done' || ends_badly 'a turn'
sleep 1
is_woken "$BELL"
why_says_rung copilot-plugin
never_costs_a_prompt
mailroom setup copilot --remove >/dev/null </dev/null
check 'the extension is taken out without a trace' test ! -e "$conf/extensions"
ends_with_its_session
