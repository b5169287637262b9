# SPDX-License-Identifier: MIT
# The real Claude Code: mail that a command of the session consumed and that the model did not get is unread again, and is announced.
. "$(dirname "$0")/lib.sh"
need claude

project proj bob
claude_home
exits 0 'setup' mailroom setup claude-code --apply
three() { for n in 1 2 3; do mailroom --as bob send "$1" --hold -s "$2 $n" -m "text $n" </dev/null >/dev/null 2>&1; done; }
told() { asked "$1" | grep -c "from bob: $2"; }

# ---- the result is cut, replaced by a preview, or read by a helper ----
model cut <<'JSON'
{"actors": [
 {"steps": [
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"tool": "Bash", "input": {"command": "mailroom drain | head -n 9", "description": "mail"},
  "before": "for n in 1 2 3; do mailroom --as bob send proj -s \"head $n\" -m x </dev/null; done"},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"tool": "Bash", "input": {"command": "seq 1 12000; mailroom drain", "description": "mail"},
  "before": "for n in 1 2 3; do mailroom --as bob send proj -s \"preview $n\" -m x </dev/null; done"},
 {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}},
 {"text": "done"}]}]}
JSON
three proj first
exits 0 'a session' claude_p go
session=$(jq -r 'select(.type == "system" and .subtype == "init") | .session_id' out | head -n 1)
same 3 "$(asked 2 | grep -c '^Subject: first')" 'the model gets what it drains'
same 1 "$(asked 3 | grep -c '^Subject: head')" 'of a result that head cut it gets one message'
same 2 "$(asked 4 | grep -c '^Subject: head')" 'and the other two by the next drain: they were unread again'
same 0 "$(asked 5 | grep -c '^Subject: preview')" 'of a long result it gets the beginning'
same 3 "$(asked 6 | grep -c '^Subject: preview')" 'and the mail behind it by the next drain'
nothing_failed

# ---- a helper consumes the mail of its session ----
model helper <<'JSON'
{"actors": [
 {"match": "LEAD-GO", "steps": [
  {"before": "mailroom --as bob send proj --priority urgent -s 'for the session' -m x </dev/null",
   "tool": "Agent", "input": {"description": "helper", "prompt": "HELPER-GO", "subagent_type": "general-purpose", "run_in_background": false}},
  {"text": "I stop"}, {"text": "I stop again"}, {"text": "over"}]},
 {"match": "HELPER-GO", "steps": [
  {"tool": "Bash", "input": {"command": "mailroom drain", "description": "mail"}}, {"text": "helped"}]}]}
JSON
exits 0 'a session whose helper drains' claude_p --resume "$session" LEAD-GO
same 1 "$(jq -rs '[.[] | select(.actor == "LEAD-GO") | .body.messages | tostring | select(test("from bob: for the session"))] | if length > 0 then 1 else 0 end' "$log"/*.json)" 'the session itself is told of it'
nothing_failed

# ---- interrupted by the user, in a terminal ----
model esc <<'JSON'
{"actors": [{"steps": [
 {"tool": "Bash", "input": {"command": "mailroom drain && sleep 60", "description": "mail"}},
 {"text": "I was told again"}]}]}
JSON
mailroom --as bob drain </dev/null >/dev/null 2>&1
claude_tui
until_true 20 sh -c "mailroom who --json </dev/null | jq -e 'select(.state == \"live\")'"
me=$(mailroom who --json </dev/null | jq -r 'select(.state == "live").name' | head -n 1)
three "$me" esc
drained() { [ "$(mailroom --as "$me" inbox --json </dev/null 2>/dev/null | jq -r 'select(.read == false).subject' | grep -c esc)" = 0 ]; }
[ -e "$log/1.json" ] || types_in go
until_true 30 test -e "$log/1.json"
until_true 30 drained && ok 'the model drains and goes on in the same call' || { screen | note; not_ok 'the model drains and goes on in the same call'; }
sleep 1; tmux -L "$socket" send-keys Escape
until_true 20 sh -c "tmux -L $socket capture-pane -p | grep -qi interrupted" && ok 'the user interrupts it' || { screen | note; not_ok 'the user interrupts it'; }
types_in 'go on'
until_true 30 test -e "$log/2.json"
same 3 "$(told 2 esc)" 'with the next prompt all three are announced again'
same 3 "$(mailroom --as "$me" inbox --json </dev/null | jq -r 'select(.read == false).subject' | grep -c esc)" 'and unread'
nothing_failed
finish
