# SPDX-License-Identifier: MIT
# The real Claude Code's ListAgents and SendMessage, and agents of a room: `mailroom peer` and `setup claude-code --peers`. What the sender's model is
# told, what lands where and from whom. The files and the socket are no documented interface (docs/decisions/peers.md).
. "$(dirname "$0")/lib.sh"
need claude

project proj bob
claude_home
mkdir -p "$HOME/.claude/sessions"
sessions=$HOME/.claude/sessions
peer() { rm -f listed; mailroom peer bob >listed 2>listed.err </dev/null & peer=$!; until_true 10 test -s listed || { note <listed.err; not_ok 'mailroom peer starts'; finish; }; }
trap 'kill -9 $peer 2>/dev/null; leave' EXIT
exits 0 'setup --peers' mailroom setup claude-code --peers --apply
peer
text='{"tool": "ToolSearch", "input": {"query": "select:ListAgents,SendMessage"}}'
say() { printf '{%s"tool": "SendMessage", "input": {"to": "%s", "summary": "s", "message": "%s"}}' "${3:-}" "$1" "$2"; }
big=$(head -c 200000 /dev/zero | tr '\0' x)
model peers <<JSON
{"actors": [{"steps": [ $text, {"before": "sleep 3", "tool": "ListAgents", "input": {}},
 $(say bob 'to bob, <b> \"quoted\"\nsecond line'),
 $(say bob "$big"),
 $(say bob stopped "\"before\": \"kill -STOP $peer\", "),
 $(say bob 'after the stop' "\"before\": \"kill -CONT $peer; sleep 1\", "),
 $(say bob killed "\"before\": \"kill -KILL $peer; sleep 1\", "),
 {"text": "done"}]}]}
JSON
claude_p go --allowedTools 'ListAgents,SendMessage,ToolSearch' >out 2>err || note <err
asked 3 >told; note <told
says told '^ +bob \[[0-9a-f]+\]' 'the agent is among the peers'
says told '^ +proj \[[0-9a-f]+\]' 'and so is the agent of the session, by its MCP server'
asked 4 >told; says told 'success":true' 'what is sent to it is a success'
asked 5 >told; says told 'success":false' 'what is too long is none'
asked 6 >told; cut -c 1-300 told | note; says told 'success":false' 'nor what is sent to a process that is stopped'
asked 7 >told; says told 'success":true' 'when it goes on it takes mail'
asked 8 >told; cut -c 1-300 told | note; says told 'success":false' 'what is sent to a killed one is none'
mailroom --as bob inbox --json --all </dev/null >box 2>/dev/null
same 'proj after the stop|proj to bob, <b> "quoted"|' "$(jq -r '.from + " " + .subject' box | sort | tr '\n' '|')" 'the mail is there, from the agent of the session, and nothing else'
id=$(jq -r 'select(.subject | startswith("to bob")) | .id' box)
same 'to bob, <b> "quoted"
second line' "$(mailroom --as bob read --peek "$id" --json </dev/null | jq -r .body)" 'with its text'
until_true 5 sh -c "[ -z \"\$(jq -r 'select(.kind == \"mailroom\" and .name == \"proj\") | .name' $sessions/*.json 2>/dev/null)\" ]" && ok 'with the session its entry went' || { head -c 300 "$sessions"/*.json | note; not_ok 'with the session its entry went'; }

# A session that is nobody here: without hooks and server it is bound to no agent.
exits 0 'taken out' mailroom setup claude-code --remove
same 1 "$(cat "$sessions"/*.json | jq -r 'select(.name == "bob") | .kind' | wc -l | tr -d ' ')" 'what the killed one left is there'
peer
same 1 "$(cat "$sessions"/*.json | jq -r 'select(.name == "bob") | .kind' | wc -l | tr -d ' ')" 'until the next one'
model stranger <<JSON
{"actors": [{"steps": [ $text, $(say bob 'who am I'), {"text": "done"}]}]}
JSON
claude_p go --allowedTools 'ListAgents,SendMessage,ToolSearch' >out 2>err || note <err
asked 3 >told; says told 'success":true' 'a session that is no agent'
id=$(mailroom --as bob inbox --json </dev/null 2>/dev/null | jq -r 'select(.from == "claude-unproven") | .id')
mailroom --as bob read --peek "$id" </dev/null >told 2>&1; note <told
says told "unproven: session 'proj-[0-9a-f]+' of Claude Code is not an agent of this room; answers: SendMessage to uds:/" 'is told as one, and how to answer it'
kill "$peer"; wait "$peer"
same '' "$(find "$sessions" -name '*.key')" 'it goes without a trace'
nothing_failed
finish
