# A room in PostgreSQL: the commands of every day. The contract itself is tested by tests/rooms.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }

# ---- init, where, doctor ----
exits 0 'init makes the room' mr init "$spec#town" --name town --json
same true "$(jq .created out)" 'it was not there'
says err 'ONE COPY' 'and warns that there is one copy'
exits 0 'again' mr init "$spec#town" --json
same false "$(jq .created out)" 'it is there'
export MAILROOM="$spec#town"
exits 0 'where' mr where
says out 'kind +postgres' 'says the kind'
says out 'copies +ONE COPY' 'and the copies'
exits 0 'doctor' mr doctor
says out 'a message to itself' 'proves both directions'
exits 0 'the other word for it' mr --room "postgresql:${spec#postgres:}#town" where --json
same postgres "$(jq -r .kind out)" 'is the same kind'

# ---- mail ----
town alice bob carol
exits 0 'send' as alice send bob carol -s 'hello' -m 'first line' --priority high
id=$(tail -n 1 out)
same "$id" "$(as bob inbox --json | jq -r .id)" 'bob has it'
same high "$(as carol inbox --json | jq -r .priority)" 'carol too, with its priority'
exits 0 'read shows it' as bob read "$id"
says out 'first line' 'its text'
same true "$(as bob inbox --all --json | jq -r .read)" 'and marks it read'
same false "$(as carol inbox --json | jq -r .read)" 'for bob alone'
exits 0 'reply' as bob reply "$id" -m 'an answer'
same 'Re: hello' "$(as alice inbox --json | jq -r .subject)" 'comes back'
same "$id" "$(as alice sent --json | jq -r .id)" 'sent mail'
same 2 "$(as alice thread "$id" --json | wc -l)" 'the thread'
exits 0 'search' as bob search hello
exits 0 'archive' as bob archive "$id"
short=$(printf %s "$id" | tail -c 8)
exits 0 'the end of an id' as bob read "$short"
says out 'first line' 'means the archived message'
exits 3 'the inbox is empty' as bob check
exits 5 'nobody of that name' as alice send nobody -m x
says err "nobody" 'is said'
for n in 1 2; do as alice send bob -m once --key k1 >key.$n 2>err; done
same "$(cat key.1)" "$(cat key.2)" 'a key repeated is one message'
same 1 "$(as bob inbox --json | grep -c .)" 'in the mailbox, too'
exits 4 'and refused for another text' as alice send bob -m other --key k1
exits 0 'drain' as bob drain
printf 'a\000b\377\n' >bytes
exits 0 'any bytes' sh -c '"$BIN" --as alice send bob -f - <bytes'
as bob export "$(tail -n 1 out)" >/dev/null 2>&1
exits 0 'why' as alice why "$id"
says out 'archived' 'tells where it is'
exits 0 'purge' as alice purge "$id"
exits 0 'why afterwards' as alice why "$id"
says out 'purged' 'tells that it was purged'
printf '%s\n' '{"to":"bob","body":"one"}' '{"to":"carol","body":"two"}' '{"to":"nobody","body":"three"}' | "$BIN" --as alice send --batch >out 2>err
same 2 "$(grep -cE '[0-9a-z]{26}' out)" 'a batch: two are sent, one refused'

# ---- work ----
town alice bob carol
as alice send bob -m 'do it' >/dev/null
exits 0 'recv' as bob recv --json
token=$(jq -r .token out)
exits 3 'no more' as bob recv
exits 0 'extend' as bob extend "$token"
exits 0 'done' as bob done "$token"
exits 5 'twice is told' as bob done "$token"
exits 0 'a queue' as alice queue create builds
for n in 1 2 3; do as alice send queue:builds -m "work $n" >/dev/null; done
exits 0 'claim' as bob recv queue:builds --json
first=$(jq -r .token out)
same 'work 1' "$(jq -r .body out | head -n 1)" 'the oldest first'
exits 0 'another claims the next' as carol recv queue:builds --json
same 'work 2' "$(jq -r .body out | head -n 1)" 'not the same'
second=$(jq -r .token out) work=$(jq -r .id out)
exits 0 'its thread' as carol thread "$work"
says out '^work 2$' 'has the work'
exits 0 'and its bytes' as carol read --raw "$work"
says out '^Message-ID: <' 'are those that were sent'
exits 0 'release' as bob release "$first"
exits 0 'done by carol' as carol done "$second"
exits 0 'the queue' as alice queue show builds
exits 0 'fail' sh -c '"$BIN" --as bob recv queue:builds --json | jq -r .token | xargs -I{} "$BIN" --as bob fail {} --reason broken </dev/null'
exits 0 'dead letters' as alice dead list
exits 4 'a queue with work is not removed' as alice queue delete builds

# ---- a claim by one that was killed comes back ----
town alice bob
as alice send bob -m 'hold me' >/dev/null
exits 0 'a new life' as bob takeover bob
as bob recv >/dev/null 2>&1
exits 0 'another one' as bob takeover bob
same 1 "$(as bob inbox --json | grep -c .)" 'gets the held mail of the one before'

# ---- a drain that is killed while nobody reads its output; one whose name was taken over ----
town alice bob
head -c 12000 /dev/zero | tr '\0' x >page
for n in 1 2 3 4 5 6 7 8 9 10; do as alice send bob -s "page $n" -f page >/dev/null; done
mkfifo pipe
held() { sql "SELECT count(*) FROM town$towns.inbox WHERE kind IS NOT NULL"; }
"$BIN" --as bob drain --json >pipe 2>/dev/null </dev/null & drain=$!
exec 3<pipe
n=0; until [ "$(held)" = 10 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
same 10 "$(held)" 'a drain holds the page that it shows'
kill -9 $drain; wait $drain 2>/dev/null; exec 3<&-
same 10 "$(as bob inbox --json | grep -c .)" 'killed, all of it is unread'
"$BIN" --as bob drain --json >pipe 2>said </dev/null & drain=$!
exec 3<pipe
n=0; until [ "$(held)" = 10 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
as bob takeover bob >/dev/null
cat <&3 >/dev/null; exec 3<&-
wait $drain
same 4 $? 'taken over meanwhile, it is told'
says said 'no longer belong to this life' 'why'
same 10 "$(as bob inbox --json | grep -c .)" 'and the new life has the mail'

# ---- groups, channels ----
town alice bob carol
exits 0 'a group' as alice group create team bob carol
exits 0 'is written to' as alice send @team -m 'to all'
same 11 "$(as bob inbox --json | grep -c .)$(as carol inbox --json | grep -c .)" 'each has it'
exits 0 'a channel' as alice channel create news
exits 0 'is subscribed to' as bob channel subscribe news
exits 0 'is posted to' as alice send channel:news -m 'hear'
exits 0 'and read' as carol channel read news
says out 'hear' 'the post'

# ---- waiting: woken by the server ----
town alice bob
"$BIN" --as bob wait --timeout 20s >waited 2>&1 </dev/null &
waiter=$!
sleep 1
begin=$(date +%s%N)
as alice send bob -m 'wake up' >/dev/null
wait $waiter
same 0 $? 'a wait ends with the mail'
took=$((($(date +%s%N) - begin) / 1000000))
[ $took -lt 3000 ] && ok "within $took ms" || not_ok "took $took ms"
"$BIN" --as alice wait --timeout 30s >waited 2>&1 </dev/null &
waiter=$!
sleep 1
server restart
as bob send alice -m 'after the restart' >/dev/null
wait $waiter
same 0 $? 'a wait survives a restart of the server'

# ---- hooks and MCP ----
printf '{"hook_event_name":"UserPromptSubmit","session_id":"s1","cwd":"%s"}' "$scratch" >event
as alice send bob -m 'for the hook' >/dev/null
exits 0 'check --inject' as bob check --inject
says out 'for the hook|unread' 'tells of mail'
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
	'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
	'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send","arguments":{"to":["bob"],"body":"by mcp"}}}' \
	'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"inbox","arguments":{}}}' >requests
(cat requests; sleep 3) | "$BIN" --as alice mcp >out 2>err
says out '"id":2' 'MCP answers'
same 1 "$(as bob inbox --json | jq -r .subject | grep -c 'by mcp')" 'and sends'

# ---- between rooms ----
mkdir native && mr init native --name native >/dev/null 2>&1
exits 0 'export to a folder' mr export --to "$scratch/native/.mailroom"
exits 0 'has the mail' env -u MAILROOM "$BIN" --room native --as bob inbox --json
says out 'by mcp' 'all of it'
finish
