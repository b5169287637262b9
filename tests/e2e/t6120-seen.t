# SPDX-License-Identifier: MIT
# Consumed and not seen: a command of a session showed mail, and the model did not get the result of the call. The hooks
# of the session see what it got; without them nothing changes.
. "$(dirname "$0")/../lib/tap.sh"
command -v jq >/dev/null || { echo '1..0 # skip no jq'; exit 0; }
room bob
mkdir web; cd web || exit 1; here=$(pwd -P)
state=$XDG_STATE_HOME/mailroom
event() { # event NAME [MEMBERS]: what the hook says to the model
	printf '{"session_id":"%s","cwd":"%s","hook_event_name":"%s"%s}' "${session:-s1}" "$here" "$1" "${2:+,$2}" | "$BIN" hook "${harness:-claude-code}" |
		jq -r '.hookSpecificOutput.additionalContext // .reason // empty'
}
after() { # after COMMAND RESULT [MEMBERS]: a call of Bash ended, and this is what the model got
	event PostToolUse "\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"$1\"},\"tool_response\":{\"stdout\":$(printf '%s' "$2" | jq -Rs .),\"interrupted\":false}${3:+,$3}"
}
tool() { CLAUDE_CODE_SESSION_ID=${session:-s1} "$BIN" "$@" </dev/null 2>/dev/null; }
prompt() { event UserPromptSubmit '"prompt":"x"'; }
three() { for n in 1 2 3; do "$BIN" --as bob send web -s "$1 $n" -m "text $n" </dev/null >/dev/null 2>&1; done; }
told() { grep -c "from bob: $1"; }

# ---- without hooks after tools nothing changes ----
event SessionStart '"source":"startup"' >/dev/null
same web "$(tool whoami --json | jq -r .agent)" 'a session'
three zero; prompt >/dev/null; tool drain >/dev/null
same '' "$(prompt)" 'of which no hook ever ran after a tool: what was consumed stays so'
same 0 "$(unread web)" 'and is read'
same '' "$(grep -E 'Hooked|Unconfirmed' "$state/sessions/claude-code-s1")" 'nothing is noted'

# ---- seen ----
after 'ls' 'a b' >/dev/null
three one; prompt >/dev/null
text=$(tool drain)
says "$state/sessions/claude-code-s1" '^Unconfirmed: [0-9a-z]+ [0-9a-z]+ [0-9a-z]+$' 'what a command consumes is noted'
same '' "$(after 'mailroom drain' "$text")" 'the model got it all'
same '' "$(prompt)" 'and is told nothing again'
same '0 0' "$(unread web) $(grep -c Unconfirmed "$state/sessions/claude-code-s1")" 'it is read, and nothing is noted any more'
three json; prompt >/dev/null
after 'mailroom drain --json' "$(tool drain --json)" >/dev/null
same 0 "$(prompt | told json)" 'as JSON too'

# ---- interrupted: no event for that call ----
three esc; same 3 "$(prompt | told esc)" 'three messages are announced'
tool drain >/dev/null
same 0 "$(unread web)" 'and drained by a call that the user then interrupts'
same 3 "$(prompt | told esc)" 'with the next prompt they are announced again'
same 3 "$(unread web)" 'and unread'
after 'mailroom drain' "$(tool drain)" >/dev/null
same '0 0' "$(prompt | told esc) $(unread web)" 'once the model got them that is over'
three kill; prompt >/dev/null; tool drain >/dev/null
event SessionStart '"source":"resume"' >out
same 3 "$(told kill <out)" 'a session that was killed in the middle of the call is told when it is resumed'
after 'mailroom drain' "$(tool drain)" >/dev/null
"$BIN" --as bob send web --priority urgent -s 'now' -m x </dev/null >/dev/null 2>&1
tool drain >/dev/null
says "$(event Stop '"stop_hook_active":false' >out; echo out)" 'from bob: now' 'urgent mail that was lost keeps the turn from ending'
after 'mailroom drain' "$(tool drain)" >/dev/null

# ---- cut short ----
three head; prompt >/dev/null
text=$(tool drain | sed -n 1,9p)
after 'mailroom drain | head -n 9' "$text" >/dev/null
same 2 "$(unread web)" 'of three messages of which the model saw one, two are unread again at once'
same 2 "$(prompt | told head)" 'and announced'
after 'mailroom drain --json | jq .subject' "$(tool drain --json | jq .subject)" >/dev/null
same '0 0' "$(unread web) $(prompt | told head)" 'what was brought back once is not brought back again'
three preview; prompt >/dev/null
text=$(tool drain; head -c 4000 /dev/zero | tr '\0' x)
event PostToolUse "\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"mailroom drain\"},\"tool_response\":{\"stdout\":$(printf '%s' "$(head -c 4000 /dev/zero | tr '\0' x)$text" | jq -Rs .),\"persistedOutputPath\":\"/x\"}" >/dev/null
same 3 "$(unread web)" 'what lies behind the preview of a long result was not seen'
after 'mailroom drain' "$(tool drain)" >/dev/null
three fails; prompt >/dev/null; text=$(tool drain)
event PostToolUseFailure "\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"mailroom drain; false\"},\"error\":$(printf '%s' "$text" | jq -Rs .)" >/dev/null
same 0 "$(unread web)" 'the result of a call that failed counts'

# ---- other calls, helpers, other agents ----
three other; prompt >/dev/null; text=$(tool drain)
after 'ls' 'a b' >/dev/null
same 0 "$(unread web)" 'a call beside it that does not name mailroom decides nothing'
after './my-wrapper' "$text" >/dev/null
same '' "$(prompt)" 'and its own result comes by any name'
three helper; prompt >/dev/null; text=$(tool drain)
same '' "$(after 'mailroom drain' "$text" '"agent_id":"a1"')" 'a helper is told nothing'
same 0 "$(unread web)" 'and is not disturbed in what it does'
after 'mailroom who' 'web' '"agent_id":"a1"' >/dev/null
same 0 "$(unread web)" 'also by its next call'
same 3 "$(prompt | told helper)" 'but what it consumed is announced to its session'
after 'mailroom drain' "$(tool drain)" >/dev/null
three quoted; prompt >/dev/null; text=$(tool drain)
after 'mailroom drain' "$text" '"agent_id":"a1"' >/dev/null
event PostToolUse "\"tool_name\":\"Agent\",\"tool_input\":{\"prompt\":\"x\"},\"tool_response\":{\"content\":$(printf '%s' "$text" | jq -Rs .)}" >/dev/null
same 0 "$(prompt | told quoted)" 'except for what it handed on with its id'
"$BIN" --as web send bob -m 'for bob' </dev/null >/dev/null 2>&1
tool --as bob drain >/dev/null; after 'mailroom --as bob drain' '' >/dev/null
same 0 "$(unread bob)" 'mail of another agent is left as it is'
three read; prompt >/dev/null; id=$(tool inbox --json | jq -r .id | head -n 1)
tool read "$id" >/dev/null; after "mailroom read $id | wc" '12' >/dev/null
same 3 "$(unread web)" 'an id in the command is no sign that it was seen'
tool mark read --all >/dev/null; prompt >/dev/null
same 0 "$(unread web)" 'mark read consumes without showing, and stays'

# ---- the first call of a session, where hooks ran after tools before; another harness ----
session=s2; event SessionStart '"source":"startup"' >/dev/null
me=$(tool whoami --json | jq -r .agent); same web-2 "$me" 'a second session'
"$BIN" --as bob send "$me" -s first -m x </dev/null >/dev/null 2>&1; prompt >/dev/null; tool drain >/dev/null
same 1 "$(prompt | told first)" 'also of the first call of a session what was lost comes back'

harness=codex session=c1; event SessionStart '"source":"startup"' >/dev/null; after ls x >/dev/null
me=$(CODEX_THREAD_ID=c1 "$BIN" whoami --json </dev/null | jq -r .agent)
"$BIN" --as bob send "$me" -s codex -m x </dev/null >/dev/null 2>&1; prompt >/dev/null
CODEX_THREAD_ID=c1 "$BIN" drain </dev/null >/dev/null 2>&1; after 'mailroom drain' '' >/dev/null
same '0 0' "$(unread "$me") $(prompt | told codex)" 'a harness whose hooks may not see every result: nothing changes'
harness=

# ---- a kill between noting and consuming, and while it is brought back ----
session=s1; three crash; prompt >/dev/null; n=20 lost=0
while [ $n -lt 160 ]; do
	CLAUDE_CODE_SESSION_ID=s1 MAILROOM_FAULT=kill-before:$n "$DEVBIN" drain </dev/null >/dev/null 2>&1
	printf '{"session_id":"s1","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt":"x"}' "$here" | MAILROOM_FAULT=kill-before:$n "$DEVBIN" hook claude-code >/dev/null 2>&1
	n=$((n + 7))
done
prompt >/dev/null; tool drain --json >left 2>/dev/null
ids=$(cat left; mr --as web search crash --json 2>/dev/null)
same 3 "$(printf '%s\n' "$ids" | jq -r 'select(.subject|startswith("crash")).id' | sort -u | wc -l | tr -d ' ')" 'kills at many points lose none of it'
finish
