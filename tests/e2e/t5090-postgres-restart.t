# A room in PostgreSQL whose server is restarted: what runs on outlives it.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }
until_true() { end=$(($(date +%s) + 30)); until eval "$1"; do [ "$(date +%s)" -lt $end ] || return 1; sleep 0.1; done; }
sessions() { sql "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'mailroom%'"; }

# ---- all of them wait, the server goes away for a while, mail comes afterwards ----
town alice bob carol dave
mkdir local
here() { env -u MAILROOM "$BIN" --room local "$@" </dev/null; } # the small command: for the link it becomes mailroom-full
here init local --name local >/dev/null 2>&1; here register erin >/dev/null 2>&1
exits 0 'a link to the room in the database' here link fleet "$spec#town$towns"
exits 0 'a message to it' here --as erin send alice@fleet -m 'first'
same 1 "$(as alice inbox --json | grep -c first)" 'is carried at once'

"$BIN" --as bob patrol --watch --handler HELP="sh -c 'cat >>$scratch/handled'" >patrol.out 2>&1 </dev/null & patrol=$!
env -u MAILROOM "$BIN" --room local carry --watch fleet >carry.out 2>&1 </dev/null & carry=$!
mkfifo requests
"$BIN" --as carol mcp <requests >mcp.out 2>mcp.err & server=$!
exec 9>requests
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
	'{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"timeout":90}}}' >&9
"$BIN" --as dave wait --timeout 90s >wait.out 2>wait.err </dev/null 9>&- & waiting=$!
# the fourth, carry, is connected only while it looks
until_true '[ "$(sessions)" -ge 3 ]' && ok 'the programs are connected' || not_ok "only $(sessions) are connected"
server stop
sleep 2
server restart 9>&-
as alice send dave -m 'for the wait' >/dev/null
as alice send carol -m 'for the server' >/dev/null
as alice send bob -s 'HELP: tests' -m 'Problem: they hang' >/dev/null
erin=$(as alice inbox --json | jq -r .from | head -n 1)
exits 0 'an answer to the linked room' as alice send "$erin" -m 'for the carrier'
wait $waiting
same 0 $? 'wait ends with the mail'
says wait.out 'for the wait' 'and shows it'
until_true 'grep -q "\"id\":2" mcp.out' && says mcp.out 'for the server' 'the MCP server goes on waiting' || not_ok 'the MCP server did not answer'
printf '%s\n' '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"send","arguments":{"to":["dave"],"body":"by mcp"}}}' >&9
until_true 'grep -q "\"id\":3" mcp.out' && same 1 "$(as dave inbox --json | grep -c 'by mcp')" 'and sends'
until_true '[ -s handled ]' && ok 'patrol --watch runs its handler' || { note <patrol.out; not_ok 'patrol --watch does not go on'; }
until_true '[ "$(here --as erin inbox --json 2>/dev/null | grep -c "for the carrier")" = 1 ]' && ok 'carry --watch brings the answer' ||
	{ note <carry.out; not_ok 'carry --watch does not go on'; }
exec 9>&-
kill -TERM $patrol $carry 2>/dev/null
wait $patrol; patrolled=$?
wait $carry; carried=$?
same '0 0' "$patrolled $carried" 'both end when they are told to'
wait $server

# ---- a hook while the server is away says nothing wrong, and tells of the mail afterwards ----
event() { printf '{"hook_event_name":"%s","session_id":"s1","cwd":"%s","prompt":"x"}' "$1" "$scratch"; }
town alice bob
event SessionStart | "$BIN" --as bob hook claude-code >/dev/null 2>&1
server stop
event UserPromptSubmit | "$BIN" --as bob hook claude-code >hook.out 2>hook.err
same 0 $? 'a hook without a server'
server restart
as alice send bob -m 'for the hook' >/dev/null
event UserPromptSubmit | "$BIN" --as bob hook claude-code >hook.out 2>hook.err
same 0 $? 'the next one'
says hook.out 'for the hook|unread' 'tells of the mail'
event Stop >stop.json
"$BIN" --as bob hook --wait claude-code <stop.json >hook.out 2>hook.err & waiting=$!
until_true '[ "$(sessions)" -ge 1 ]'
server restart
as alice send bob -m 'for the hook that waits' >/dev/null
wait $waiting
same 2 $? 'a hook that waits outlives a restart'
says hook.err 'for the hook that waits|unread' 'and tells of the mail'
finish
