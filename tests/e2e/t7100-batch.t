# once
# send --batch: many messages, a line each.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
batch() { "$BIN" --as alice send --batch "$@"; }
lines() { printf '%s\n' "$@"; }
field() { sed -n "s/^{\"line\":$1,\"id\":\"\([^\"]*\)\".*/\1/p" out; }

# ---- each line its answer, in order ----
lines '{"to":"bob","body":"one"}' '{"to":["bob","carol"],"subject":"both","body":"two"}' '{"to":"carol","body":"three","priority":"high"}' |
	batch >out 2>err; code=$?
same 0 $code 'all are accepted'
same 3 "$(wc -l <out | tr -d ' ')" 'a line each'
same '1 2 3' "$(sed 's/.*"line":\([0-9]*\).*/\1/' out | tr '\n' ' ' | sed 's/ $//')" 'in order'
silent_about out '\[\]' 'without empty lists'
same 2 "$(unread bob)" 'bob has two'
same 2 "$(unread carol)" 'carol has two'
check 'the first is what the id says' sh -c "'$BIN' --as bob read --peek $(field 1) </dev/null | grep -q one"
same 1 "$(mr --as carol inbox --json --priority high | wc -l | tr -d ' ')" 'a priority arrives'
same 3 "$(ls .mailroom/agents/alice/.Sent.*/cur | wc -l | tr -d " ")" "copies are among the sent"

# ---- bad lines stop nothing ----
room alice bob carol
lines 'nonsense' '{"to":"bob","body":"first"}' '[1]' '' '{"to":"nobody","body":"x"}' '{"to":"bob","bdy":"x"}' '{"body":"x"}' \
	'{"to":"bob"}' '{"to":"bob","body":7}' '{"to":"bob","body":"x","by":"soon"}' '{"to":"bob","body":"last"}' | batch >out 2>err; code=$?
same 4 $code 'the worst line says the exit code'
same 10 "$(wc -l <out | tr -d ' ')" 'every line but the empty one has an answer'
says out '^{"line":1,"error":{"code":"refused","message":"the line is not a JSON object' 'no JSON'
says out '^{"line":5,"error":{"code":"not-found",' 'an unknown recipient, counted with the empty line'
says out '^{"line":6,"error":.*bdy.* is not a part of a message","hint":"the parts are: to, cc, ' 'a misspelt name'
says out '^{"line":7,"error":.*no recipient' 'nobody'
says out '^{"line":8,"error":.*has no text' 'no text'
says out "^{\"line\":9,\"error\":.*'body' must be a string" 'a number for a text'
says out "^{\"line\":10,\"error\":.*'by' is not a time" 'a time that is none'
same 2 "$(unread bob)" 'the good ones are there'
exits 5 'only recipients that are not there' sh -c "echo '{\"to\":\"nobody\",\"body\":\"x\"}' | '$BIN' --as alice send --batch"

# ---- the ends of the input ----
exits 0 'nothing to send' sh -c "'$BIN' --as alice send --batch </dev/null"
same '' "$(cat out)" 'says nothing'
printf '{"to":"carol","body":"no end of line"}' | batch >out 2>err
same 1 "$(unread carol)" 'the last line needs no end'
printf '{"to":"carol","body":"cut o' | batch >out 2>err; code=$?
same "4 1" "$code $(unread carol)" 'a line that was cut off is refused'
exits 2 'recipients beside it' sh -c "'$BIN' --as alice send bob --batch </dev/null"
exits 2 'a text beside it' sh -c "'$BIN' --as alice send --batch -m hi </dev/null"
says err '--message does not go with --batch' 'which is named'
lines '{"to":"carol","body":"not sent"}' | batch --dry-run >out
says out '^{"line":1,"id":null,"to":\["carol"\]' 'a dry run'
same 1 "$(unread carol)" 'sends nothing'
exits 1 'a stdout that is full, nothing sent' sh -c "echo x | '$BIN' --as alice send --batch >/dev/full"
exits 6 'a stdout that is full' sh -c "echo '{\"to\":\"carol\",\"body\":\"untold\"}' | '$BIN' --as alice send --batch >/dev/full"

# ---- long lines ----
room alice bob carol
{ printf '{"to":"bob","body":"'; head -c 3000000 /dev/zero | tr '\0' x; printf '"}\n'; } | batch >out 2>err
same "0 1" "$? $(unread bob)" 'a long line'
{ printf '{"to":"bob","body":"'; head -c 51000000 /dev/zero | tr '\0' x; printf '"}\n{"to":"bob","body":"behind it"}\n'; } | batch >out 2>err; code=$?
same 4 $code 'one that is too long'
says out '^{"line":1,"error":{"code":"refused","message":"the line has over' 'is refused'
says out '^{"line":2,"id":' 'and the next one is read'

# ---- keys ----
lines '{"to":"carol","body":"once","key":"k"}' '{"to":"carol","body":"once","key":"k"}' '{"to":"carol","body":"other","key":"k"}' | batch >out; code=$?
same 4 $code 'a key for another text is refused'
same "$(field 1)" "$(field 2)" 'a key twice is one message'
says out '^{"line":2,.*"repeated":true' 'and says so'
same 1 "$(unread carol)" 'that is there once'

# ---- many ----
room alice bob carol
awk 'BEGIN { for (i = 1; i <= 600; i++) printf "{\"to\":\"%s\",\"subject\":\"n%d\",\"body\":\"text %d\"}\n", i % 3 ? "bob" : "carol", i, i }' >many
check 'six hundred' sh -c "'$BIN' --as alice send --batch <many >out.many"
same "400 200" "$(unread bob) $(unread carol)" 'are there'
same 600 "$(sed 's/.*"id":"\([^"]*\)".*/\1/' out.many | sort -u | wc -l | tr -d ' ')" 'each with its own id'
check 'where few files may be open' sh -c "ulimit -n 40; '$BIN' --as alice send --batch <many >/dev/null"
same "800 400" "$(unread bob) $(unread carol)" 'they are there too'
check 'doctor finds nothing' sh -c "'$BIN' doctor </dev/null >/dev/null 2>&1"

# ---- a slow writer does not wait for others ----
mkfifo pipe
batch <pipe >slow 2>/dev/null &
exec 3>pipe
lines '{"to":"bob","body":"slow"}' >&3
for i in $(seq 600); do [ -s slow ] && break; sleep 0.1; done
says slow '^{"line":1,"id":' 'the answer comes before the next line'
exec 3>&-
wait

# ---- queues, channels, groups; rooms of others ----
mr --as alice queue create jobs >/dev/null 2>&1
lines '{"to":"queue:jobs","body":"work"}' '{"to":"queue:jobs","body":"later","not_before":"1h"}' '{"to":"bob","body":"x","not_before":"1h"}' | batch >out; code=$?
same 4 $code 'a delay is for queues only'
same 2 "$(grep -c '"id":' out)" 'work for a queue'
mkdir -p "$HOME/.claude/teams/t/inboxes"
echo '{"name":"t","members":[{"name":"lead","agentId":"lead@t"},{"name":"dev","agentId":"dev@t"}]}' >"$HOME/.claude/teams/t/config.json"
lines '{"to":"dev","body":"one"}' '{"to":"dev","body":"two"}' '{"to":"dev","body":"x","key":"k"}' |
	"$BIN" --room "teams:$HOME/.claude/teams/t" --as lead send --batch >out 2>err; code=$?
same 4 $code 'what a room of others cannot hold is refused'
same 2 "$(grep -c '"id":' out)" 'the rest goes there one by one'
finish
