# SPDX-License-Identifier: MIT
# once
# mailroom serve, as curl sees it: who may ask, what is refused and how, the JSON of the commands, events, tokens.
. "$(dirname "$0")/../lib/tap.sh"
serve=$(dirname "$DEVBIN")/mailroom-serve
[ -x "$serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }

servers=
begin() { # begin OPTION...: starts a server; url is its address, link the one with the token
	rm -f link.txt
	"$serve" serve --listen "${listen:-127.0.0.1:0}" "$@" >link.txt 2>serve.err </dev/null &
	server=$!
	servers="$servers $server"
	i=0; while [ $i -lt 300 ] && ! [ -s link.txt ] && kill -0 $server 2>/dev/null; do sleep 0.05; i=$((i + 1)); done
	link=$(cat link.txt) url=${link%/login*}
}
end() { kill $server 2>/dev/null; wait $server 2>/dev/null; }
trap 'for p in $servers; do kill -9 $p 2>/dev/null; done; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
status() { curl -s -m 20 -o body -w '%{http_code}' "$@" 2>/dev/null; }
get() { curl -s -m 20 -b jar "$url/$1"; }
post() { curl -s -m 20 -b jar -H 'Content-Type: application/json' -d "$2" "$url/api/v1/$1"; }

# ---- starting ----
mkdir -p alone && cp "$BIN" alone/mailroom
room alice bob carol
exits 4 'without mailroom-serve it says so' alone/mailroom serve
says err 'libmicrohttpd' 'and what to install'
exits 4 'an address that others can reach is refused' "$serve" serve --listen 0.0.0.0:0
says err 'insecure' 'and it says what to do instead'
exits 4 'no address at all' "$serve" serve --listen nowhere
exits 4 'inside the session of a harness' env CLAUDE_CODE_SESSION_ID=x CLAUDECODE=1 "$serve" serve --listen 127.0.0.1:0
mr --as alice queue create q1 >/dev/null
first=$(send alice bob 'hello <script>alert(1)</script>')
question=$(mr --as alice send operator --by 1h -s 'May I?' -m 'May I deploy?' 2>/dev/null)
begin
case $url in http://127.0.0.1:[0-9]*) ok 'it prints a link' ;; *) note <serve.err; not_ok 'it prints a link'; finish ;; esac

# One that never ends its request is cut off; looked at below, because it takes its time.
python3 - "${url#http://127.0.0.1:}" >slow 2>&1 <<'PY' &
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST /api/v1/send HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
begun = time.time()
try:
    while time.time() - begun < 60:
        s.sendall(b"x")
        s.settimeout(1)
        try:
            if not s.recv(1000):
                break
        except socket.timeout:
            pass
except OSError:
    pass
print("cut" if time.time() - begun < 40 else "still there")
PY
slow=$!

# ---- the link, the cookie ----
same 401 "$(status "$url/")" 'without a cookie there is no page'
silent_about body 'hello|maildir:|alice' 'and not a byte of the room'
same 401 "$(status "$url/api/v1/messages")" 'nor JSON'
same 401 "$(status "$url/events")" 'nor events'
same 403 "$(status "$url/login?token=0000000000000000000000000000000000000000")" 'a wrong token in the link'
same 200 "$(status -c jar "$link")" 'the link gives a cookie'
says jar '#HttpOnly_127.0.0.1.*mailroom-' 'that no script can read'
curl -s -m 20 -D headers -o /dev/null -b jar "$url/"
says headers "^Content-Security-Policy: default-src 'none'.*frame-ancestors 'none'" 'a strict policy'
silent_about headers 'unsafe' 'without inline script'
says headers '^X-Frame-Options: DENY' 'no frames'
same 403 "$(status "$link")" 'the link is good once'
same 200 "$(status -b jar "$url/")" 'the cookie opens the page'
same 200 "$(status -b jar "$link")" 'and the old link leads to it in the browser that has the cookie'
same yes "$([ "$(curl -s "$url/script.js" | wc -c)" -lt 40960 ] && echo yes)" 'its script is under 40 KB'
same 401 "$(status -H "Cookie: mailroom-${url##*:}=0000000000000000000000000000000000000000" "$url/")" 'a made-up cookie does not'
silent_about jar "$(cat .mailroom/records/token/_/* | tr '\n' '|')x" 'the room has no token in the clear'

# ---- other sites ----
same 403 "$(status -b jar -H 'Host: evil.example' "$url/")" 'another Host'
same 403 "$(status -b jar -H "Host: evil.example:${url##*:}" "$url/")" 'another Host with our port'
same 403 "$(status -b jar -H 'Origin: http://evil.example' -H 'Content-Type: application/json' -d '{"to":"bob","body":"x"}' "$url/api/v1/send")" 'another Origin'
same 403 "$(status -b jar -H 'Origin: null' -H 'Content-Type: application/json' -d '{"to":"bob","body":"x"}' "$url/api/v1/send")" 'no Origin that is one'
same 415 "$(status -b jar -d 'to=bob&body=x' "$url/api/v1/send")" 'a form is no call of the API'
same 1 "$(unread bob)" 'and nothing was sent'

# ---- the same JSON as --json ----
compare() { # compare PATH COMMAND...: a list, or one object
	path=$1; shift
	mr --json "$@" 2>/dev/null | jq -cS 'del(.seen)' >want
	get "api/v1/$path" | jq -cS 'if type == "array" then .[] else . end | del(.seen)' >got
	if [ -s got ] && cmp -s want got; then ok "$path is $*"; else diff want got | note; not_ok "$path is $*"; fi
}
work=$(mr --as alice send queue:q1 -m 'work' 2>/dev/null)
mr --as alice channel create news >/dev/null
mr --as alice send bob -m 'will fail' >/dev/null 2>&1
mr --as bob recv --json >claim 2>/dev/null
mr --as bob fail "$(jq -r .token claim)" --reason 'cannot' >/dev/null 2>&1
dead=$(jq -r .id claim)
compare agents who
compare queues queue list
compare queues/q1 queue show q1
compare channels channel list
compare channels/news channel show news
compare dead dead list
compare "dead/$dead" dead show "$dead"
compare "why/$question" --as operator why "$question"
compare 'resolve?address=@all' resolve @all
compare 'messages?agent=operator&unread=true' --as operator inbox
compare "messages/$question" --as operator read --peek "$question"
compare "threads/$question" --as operator thread "$question"
fits() { # fits SCHEMA PATH [ANSWER]
	{ [ $# -gt 2 ] && printf '%s\n' "$3" || get "api/v1/$2"; } | jq -c 'if type == "array" then .[] else . end' >got
	if python3 "$top/tests/lib/schema.py" "$top/docs/schema/$1.json" <got >problems 2>&1; then ok "$2 fits its schema"; else note <problems; not_ok "$2 fits its schema"; fi
}
fits agent agents; fits message messages; fits message "threads/$question"; fits message 'search?q=hello'; fits queue queues; fits queue-shown queues/q1
fits thread threads; fits channel channels; fits channel-shown channels/news; fits dead dead; fits why "why/$question"; fits resolution 'resolve?address=@all'; fits attention attention; fits error nothing
same "$(mr --as operator thread "$question" --json | wc -l) $question" "$(get api/v1/threads | jq -r ".[] | select(.thread == \"$question\") | \"\(.messages) \(.newest)\"")" 'threads: how many messages, and the newest'
same 'alice 1' "$(get 'api/v1/threads?agent=operator&unread=1' | jq -r '.[] | "\(.from) \(.unread)"')" 'threads of a mailbox, with something unread'
same 1 "$(get 'api/v1/threads?limit=1' | jq length)" 'not more than are wanted'
same 0 "$(get 'api/v1/threads?before=2020-01-01' | jq length)" 'or older ones'
same 400 "$(status -b jar "$url/api/v1/queues/q1?limit=x")" 'a limit that is none'
same "$(mr top --json | jq -c 'keys')" "$(get api/v1/attention | jq -c 'keys')" 'attention is top'
same answer "$(get api/v1/attention | jq -r '.needs[0].kind')" 'attention: the question to the operator'
same 404 "$(status -b jar "$url/api/v1/nothing")" 'what is not there'
same not-found "$(jq -r .error.code body)" 'is an error in JSON'
same 404 "$(status -b jar "$url/api/v1/queues/none")" 'a queue that is not there'
same 400 "$(status -b jar "$url/api/v1/queues/q1?colour=red")" 'an argument that is none'
same 400 "$(status -b jar "$url/api/v1/agents?live=%zz")" 'an escape that is none'
same 400 "$(status -b jar "$url/api/v1/queues/a%00b")" 'a NUL in a path'

# ---- actions ----
id=$(post send '{"to":"bob","subject":"from the web","body":"-m --as carol"}' | jq -r .id)
same 'operator|-m --as carol' "$(mr --as bob read --peek "$id" --json | jq -r '"\(.from)|\(.body)"' | tr -d '\n')" 'send: a text like an option is a text'
answer=$(post reply "{\"id\":\"$question\",\"body\":\"Yes\"}") id=$(printf %s "$answer" | jq -r .id)
fits sent 'the answer of reply' "$answer"
same "$question" "$(mr --as alice read --peek "$id" --json | jq -r .reply_to)" 'reply'
fits marked 'that of mark' "$(post mark "{\"as\":\"read\",\"id\":[\"$question\"]}")"
same true "$(get "api/v1/messages/$question" | jq .read)" 'mark'
# ---- what the server keeps of a message is what it says, not its state
kept=$("$BIN" --as alice send bob -s 'is it kept' -m text)
state() { get 'api/v1/messages?agent=bob' | jq -c --arg id "$kept" '[.[] | select(.id == $id) | .read]'; }
same '[false]' "$(state)" 'mail that nobody read'
same '[false]' "$(state)" 'asked again'
"$BIN" --as bob mark read "$kept" >/dev/null
same '[true]' "$(state)" 'was read'
"$BIN" --as operator purge "$kept" >/dev/null 2>&1
same '[]' "$(state)" 'was purged'
post archive "{\"id\":\"$question\"}" >/dev/null
same 0 "$(mr --as operator inbox --all --json | grep -c "$question")" 'archive'
fits queue-status 'that of pause' "$(post pause '{"name":"q1"}')"
same paused "$(mr queue show q1 --json | jq -r .status)" 'pause'
post resume '{"name":"q1"}' >/dev/null
same active "$(mr queue show q1 --json | jq -r .status)" 'resume'
mr --as bob recv q1 --json >claim 2>/dev/null
fits settled 'that of release' "$(post release "{\"id\":\"$work\",\"reason\":\"stuck\"}")"
same ready "$(mr queue show q1 --json | jq -r '.tasks[0].state')" 'release of work that another holds'
nudged=$(post nudge '{"to":"carol","text":"look"}')
same queued "$(printf %s "$nudged" | jq -r .way)" 'nudge'
fits nudged 'that of nudge' "$nudged"
fits retried 'that of retry' "$(post retry "{\"id\":\"$dead\",\"to\":\"carol\"}")"
same 1 "$(unread carol)" 'retry'
mr --as carol recv --json >claim 2>/dev/null
mr --as carol fail "$(jq -r .token claim)" --reason 'again' >/dev/null 2>&1
fits settled 'that of drop' "$(post drop "{\"id\":\"$(jq -r .id claim)\"}")"
same 0 "$(mr dead list --json | wc -l)" 'drop'
for schema in "$top"/docs/schema/*.json; do
	name=${schema##*/} name=${name%.json}
	grep -qE "(fits $name |schema/$name\.json)" "$top"/tests/e2e/t8000-serve.t "$top"/tests/e2e/t76*.t || echo "$name"
done >untried
same '' "$(cat untried)" 'every schema is held against an answer'
same 404 "$(status -b jar -H 'Content-Type: application/json' -d '{"to":"nobody","body":"x"}' "$url/api/v1/send")" 'a send to nobody'
says body 'who' 'has the hint of the command'
same 400 "$(status -b jar -H 'Content-Type: application/json' -d '{"to":"bob"}' "$url/api/v1/send")" 'a send without a text'
same 400 "$(status -b jar -H 'Content-Type: application/json' -d '[1' "$url/api/v1/send")" 'no JSON'

# ---- tokens ----
token=$(mr token create alice 2>/dev/null)
check 'it is kept as a hash only' sh -c "! grep -rqF $token .mailroom"
touch -d '1 minute ago' .mailroom/agents/alice/lives/*
mr --as alice inbox >/dev/null 2>&1
as_alice() { status -H "Authorization: Bearer $token" "$@"; }
same 200 "$(as_alice -H 'Content-Type: application/json' -d '{"to":"bob","body":"by token"}' "$url/api/v1/send")" 'a token acts'
same alice "$(mr --as bob read --peek "$(jq -r .id body)" --json | jq -r .from)" 'as its agent'
seen_by() { mr who alice --json | jq -r .seen_by; }
same command "$(seen_by)" 'it was seen by a command just before, and once in a few seconds is enough'
touch -d '1 minute ago' .mailroom/agents/alice/lives/*
as_alice -H 'Content-Type: application/json' -d '{"to":"bob","body":"by token"}' "$url/api/v1/send" >/dev/null
same http "$(seen_by)" 'then by this door'
curl -s -m 20 -b jar "$url/agents" >body
says body ' by http<' 'and the page of agents says so'
same 403 "$(as_alice "$url/api/v1/messages?agent=bob")" 'not in the mailbox of another'
shared=$(send alice bob 'a thread of both')
mr --as bob send carol --thread "$shared" -s 'aside' -m 'not both' >/dev/null 2>&1
same 200 "$(as_alice "$url/api/v1/threads?thread=$shared")" 'a thread of its own'
same "1 $shared" "$(jq -r '.[] | "\(.messages) \(.newest)"' body)" 'is told without what others wrote aside in it'
as_alice "$url/api/v1/threads?thread=$shared&q=both" >/dev/null
same 1 "$(jq '.[].messages' body)" 'also where words are looked for'
same 2 "$(get "api/v1/threads?thread=$shared&agent=alice" | jq '.[].messages')" 'the operator sees the whole thread'
same 403 "$(as_alice "$url/")" 'and sees no page'
same 403 "$(as_alice "$url/events")" 'nor the events of all'
exits 4 'a session makes no token' env CLAUDE_CODE_SESSION_ID=x CLAUDECODE=1 "$BIN" token create alice
exits 5 'nor is there one for nobody' mr token create nobody
mr token revoke "$(mr token list --json | jq -r 'select(.agent == "alice").name')" >/dev/null
same 401 "$(as_alice "$url/api/v1/messages")" 'a token that was revoked'
token=$(MAILROOM_TEST_CLOCK_OFFSET_MS=-7200000 "$DEVBIN" token create alice --expires 1h 2>/dev/null </dev/null)
same 401 "$(as_alice "$url/api/v1/messages")" 'a token whose time is up'
shared=$(mr token create --read-only --expires 2h 2>/dev/null)
same 200 "$(status -c reader "$url/${shared#http://*/}")" 'a link to share'
same 200 "$(status -b reader "$url/api/v1/messages")" 'looks'
same 403 "$(status -b reader -H 'Content-Type: application/json' -d '{"to":"bob","body":"x"}' "$url/api/v1/send")" 'and changes nothing'
same 200 "$(status -c reader "$url/${shared#http://*/}")" 'and is good more than once'

# ---- too much ----
same 431 "$(status -H "X-Long: $(head -c 60000 /dev/zero | tr '\0' x)" "$url/")" 'headers that are too long'
head -c 18000000 /dev/zero | tr '\0' x >large
same 413 "$(status -b jar -H 'Content-Type: application/json' --data-binary @large "$url/api/v1/send")" 'a body that is too long'
same 413 "$(status -b jar -H 'Content-Type: application/json' -H 'Transfer-Encoding: chunked' --data-binary @large "$url/api/v1/send")" 'also without its length'
rm large
same 413 "$(head -c 100000 /dev/zero | status --data-binary @- "$url/login")" 'a body of one without a token'
python3 - "${url#http://127.0.0.1:}" >nonsense 2>&1 <<'PY'
import socket, sys
port = int(sys.argv[1])
def ask(data):
    s = socket.create_connection(("127.0.0.1", port)); s.settimeout(20); s.sendall(data)
    try:
        got = s.recv(100).split(b"\r\n")[0]
    except OSError:
        got = b"reset"
    s.close(); return got.decode() or "closed"
host = b"Host: 127.0.0.1:%d\r\n" % port
print(ask(b"POST /login HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n"))
print(ask(b"POST /login HTTP/1.1\r\n" + host + b"Content-Length: -5\r\n\r\n"))
print(ask(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"))
print(ask(b"BREW /pot HTTP/1.1\r\n" + host + b"\r\n"))
PY
silent_about nonsense '200|500' 'nonsense is refused'
same 200 "$(status -b jar "$url/")" 'and the next one is served'
begun=$(date +%s)
curl -s -m 60 -o /dev/null -w '%{http_code}\n' -H 'Cookie: flood' "$url/icon.svg?[1-3000]" >flood
took=$(($(date +%s) - begun + 1)) answered=$(grep -c 200 flood)
same yes "$([ "$answered" -ge 200 ] && [ "$answered" -le $((202 + 100 * took)) ] && [ "$(wc -l <flood)" -eq 3000 ] && echo yes || echo "$answered of $(wc -l <flood) in $took s")" '200 requests at once and 100 a second are answered, the others refused'
same 429 "$(sort flood | uniq | tail -n 1)" 'with 429'
same 200 "$(status -b jar "$url/")" 'another client is not'

# ---- events ----
curl -s -N -m 60 -b jar "$url/events" >events &
reader=$!
i=0; while [ $i -lt 200 ] && ! grep -q retry events; do sleep 0.05; i=$((i + 1)); done
hostile=$(printf 'x\nevent: forged\ndata: y' | "$BIN" --as alice send bob -s 'a "quote" & <b> \ end' -f - 2>/dev/null)
i=0; while [ $i -lt 200 ] && ! grep -q "$hostile" events; do sleep 0.05; i=$((i + 1)); done
same 'a "quote" & <b> \ end' "$(sed -n 's/^data: //p' events | jq -r "select(.id? == \"$hostile\").subject")" 'mail is told at once, as JSON'
silent_about events '^event: forged' 'and forges no event'
send alice bob 'a look begins' >/dev/null # and another one only a while later: this is read and filed away by then
quick=$(send alice bob 'read at once') && mr --as bob drain >/dev/null 2>&1
i=0; while [ $i -lt 200 ] && ! grep -q "$quick" events; do sleep 0.05; i=$((i + 1)); done
same 1 "$(grep -c "^data: .*$quick" events)" 'also mail that was read at once, in seconds'
newest=$(sed -n 's/^id: //p' events | tail -n 1)
kill $reader 2>/dev/null
while_away=$(send carol bob 'while nobody listened')
curl -s -N -m 60 -b jar -H "Last-Event-ID: $newest" "$url/events" >again & reader=$!
i=0; while [ $i -lt 80 ] && ! grep -q "$while_away" again; do sleep 0.1; i=$((i + 1)); done
kill $reader; wait $reader 2>/dev/null
says again "$while_away" 'a client that comes back gets what it missed, in seconds'
# ---- results of a search as they come ----
get 'search?q=hello' >body
says body '<mark>hello</mark>' 'a search shows where it found the word'
same 0 "$(curl -s -m 20 -D - -o /dev/null -b jar "$url/search?q=hello" | grep -ci '^content-length')" 'its length is not known when it begins'
if command -v strace >/dev/null; then
	strace -f -qq -o /dev/null -e trace=getdents64 -e inject=getdents64:delay_enter=30000 -p $server 2>/dev/null & tracer=$!
	sleep 0.5
	: >slowly
	curl -s -N -m 100 -b jar "$url/search?q=hello" >slowly & reader=$!
	i=0; while [ $i -lt 1000 ] && ! grep -q '<mark>hello' slowly; do sleep 0.02; i=$((i + 1)); done
	same 'found, not whole' "$(grep -q '<mark>hello' slowly && printf found; grep -q '</html>' slowly || printf ', not whole')" 'what is found is shown before all is looked through'
	wait $reader
	says slowly '</html>' 'and the page is whole at the end'
	kill -INT $tracer; wait $tracer 2>/dev/null
else
	skip 'what is found is shown before all is looked through' 'no strace'
fi
fds() { ls -l "/proc/$server/fd" | grep -c socket; } # of connections: workers have a few files more or less
i=0; while [ $i -lt 200 ] && [ "$(fds)" -gt 1 ]; do sleep 0.05; i=$((i + 1)); done
before=$(fds)
: >left
curl -s -N -b jar "$url/events" >left & reader=$!
i=0; while [ $i -lt 200 ] && ! grep -q retry left; do sleep 0.05; i=$((i + 1)); done
same yes "$([ "$(fds)" -gt "$before" ] && echo yes)" 'a stream has a descriptor'
kill $reader; wait $reader 2>/dev/null
i=0; while [ $i -lt 80 ] && [ "$(fds)" -gt "$before" ]; do sleep 0.05; i=$((i + 1)); done
same yes "$([ "$(fds)" -le "$before" ] && echo yes)" 'a client that leaves is noticed without an event, within seconds'
watches() { ls -l "/proc/$server/fd" | grep -c inotify; }
watches=$(watches) pids=
for i in $(seq 30); do curl -s -N -m 3 -b jar "$url/events" >/dev/null & pids="$pids $!"; done
same "$watches" "$(watches)" 'one watch for all streams'
wait $pids
i=0; while [ $i -lt 100 ] && [ "$(fds)" -gt "$before" ]; do send carol bob "news $i" >/dev/null; sleep 0.2; i=$((i + 1)); done
same yes "$([ "$(fds)" -le "$before" ] && echo yes)" 'descriptors are given back'

# ---- metrics, mcp ----
mr --as alice queue create pace >/dev/null
mr --as carol send queue:pace -m one >/dev/null 2>&1; mr --as carol send queue:pace -m two >/dev/null 2>&1; mr --as carol send queue:pace -m three >/dev/null 2>&1
mr --as bob recv queue:pace --json >claim 2>/dev/null; mr --as bob done "$(jq -r .token claim)" >/dev/null 2>&1
mr --as bob recv queue:pace --json >claim 2>/dev/null; mr --as bob fail "$(jq -r .token claim)" --reason x >/dev/null 2>&1
mr --as bob recv queue:pace --json >claim 2>/dev/null; mr --as bob release "$(jq -r .token claim)" >/dev/null 2>&1
mr --as carol queue create quiet >/dev/null
old=$(MAILROOM_TEST_CLOCK_OFFSET_MS=-120000 "$DEVBIN" --as carol send queue:quiet -m old 2>/dev/null </dev/null)
mr --as bob drain >/dev/null 2>&1
get metrics >metrics
says metrics '^mailroom_unread\{agent="alice"\} [1-9]' 'unread mail is counted'
says metrics '^mailroom_queue_came_last_minute\{queue="pace"\} 3' 'what came into a queue in a minute'
says metrics '^mailroom_queue_done_last_minute\{queue="pace"\} 1' 'what was done'
says metrics '^mailroom_queue_failed_last_minute\{queue="pace"\} 1' 'what failed'
says metrics '^mailroom_queue_came_last_minute\{queue="quiet"\} 0' 'older work is not counted'
says metrics '^mailroom_queue\{queue="pace",state="done"\} 1' 'the state of a queue'
says metrics '^mailroom_sent_last_minute\{agent="carol"\} [1-9]' 'what an agent sent'
says metrics '^mailroom_read_last_minute\{agent="bob"\} [1-9]' 'and read, also what is archived by now'
says metrics '^mailroom_came_last_minute\{agent="bob"\} [1-9]' 'and what came in the last minute'
same '' "$(grep -vE '^(#|mailroom_[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="[^"]*")?\})? [0-9]+$)' metrics)" 'every line is one of Prometheus'
token=$(mr token create alice 2>/dev/null)
mcp() { as_alice -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d "$@" "$url/mcp"; }
same 200 "$(mcp '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}')" 'mcp: initialize'
same 2025-11-25 "$(jq -r .result.protocolVersion body)" 'of the older era'
same 200 "$(mcp '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send","arguments":{"to":"bob","body":"by mcp"}}}')" 'mcp: a call'
same alice "$(mr --as bob read --peek "$(jq -r .result.structuredContent.id body)" --json | jq -r .from)" 'as the agent of the token'
touch -d '1 minute ago' .mailroom/agents/alice/lives/*
mcp '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"inbox","arguments":{}}}' >/dev/null
same http "$(seen_by)" 'and was seen by it'
same 403 "$(mcp '{}' -H 'Origin: http://evil.example')" 'mcp: another Origin'
same true "$(mcp '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}' >/dev/null; jq .result.capabilities.resources.subscribe body)" 'mcp: a client of the older era may subscribe'
same 200 "$(mcp '{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"mailroom://inbox"}}')" 'says so'
same 406 "$(as_alice -H 'Accept: text/html' "$url/mcp")" 'its GET asks for a stream'
same 405 "$(as_alice -X DELETE "$url/mcp")" 'and has no session to end'
curl -sN -m 60 -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url/mcp" >heard 2>/dev/null & hears=$!
i=0; while [ $i -lt 200 ] && ! [ -s heard ]; do sleep 0.05; i=$((i + 1)); done
send bob carol 'not for alice' >/dev/null
send bob alice 'for alice' >/dev/null
i=0; while [ $i -lt 200 ] && ! grep -q updated heard; do sleep 0.05; i=$((i + 1)); done
same 'notifications/resources/updated mailroom://inbox' "$(sed -n 's/^data: //p' heard | jq -r '"\(.method) \(.params.uri)"')" 'and tells once of mail, of nothing else'
kill $hears
token=0000000000000000000000000000000000000000
same 401 "$(mcp '{"jsonrpc":"2.0","id":1,"method":"ping"}')" 'mcp: no token'

wait $slow
says slow '^cut' 'a request that never ends was cut off'

# ---- started again, read-only ----
end
same 0 $? 'it ends when it is asked to'
listen=${url#http://} begin --read-only
same 200 "$(status -b jar "$url/api/v1/agents")" 'the cookie is good after the next start'
same 403 "$(status -b jar -H 'Content-Type: application/json' -d '{"to":"bob","body":"x"}' "$url/api/v1/send")" 'a read-only server changes nothing'
i=0; until curl -s -N -m 2 -b jar -H "Last-Event-ID: $newest" "$url/events" >again; grep -q "$while_away" again || [ $i -ge 10 ]; do i=$((i + 1)); done
says again "$while_away" 'events of before the start come from the mail'
end

exits 0 'and the room is fine' mr doctor

# ---- a search in a room of many, of whose mailboxes each shows a few ----
i=0; many=; while [ $i -lt 26 ]; do many="$many a$i"; i=$((i + 1)); done
room bob $many
old=$(send a0 bob 'the oldest with this word')
spelled=$(python3 -c 'import sys
ms = int(sys.argv[1]) * 1000
print("".join("0123456789abcdefghjkmnpqrstvwxyz"[ms >> 5 * i & 31] for i in range(9, -1, -1)) + sys.argv[2][10:])' "$(date +%s -d '3 days ago')" "$old") # its id of that day
mv .mailroom/agents/bob/new/*"$old"* "lost"
sed "s/$old/$spelled/; s/^Date: .*/Date: $(date -u -R -d '3 days ago')/" lost >".mailroom/agents/bob/new/$(basename "$(date +%s -d '3 days ago').$spelled.mr")"
awk 'BEGIN { for (i = 0; i < 45; i++) printf "{\"to\":\"bob\",\"body\":\"with this word, %d\"}\n", i }' | "$BIN" --as a1 send --batch >/dev/null 2>&1
listen=127.0.0.1:0 begin
curl -s -m 20 -c jar -o /dev/null "$link"
get 'search?q=word' >body
same 40 "$(grep -o 'data-key="0[^"]*"' body | sort -u | wc -l | tr -d ' ')" 'the newest of it'
silent_about body oldest 'and nothing from behind those that were left out'
says body 'before=' 'but a way to it'
end

# ---- a month with much mail: what a list costs, and that it is never behind ----
rm -rf .mailroom
room alice bob
sent() { awk -v n="$1" 'BEGIN { while (n--) printf "{\"to\":\"bob\",\"body\":\"letter %d\"}\n", n }' | "$BIN" --as alice send --batch >/dev/null 2>&1; mr --as bob drain --json >/dev/null; }
send alice bob 'a needle' >/dev/null
sent 30
begin
curl -s -m 20 -c jar -o /dev/null "$link"
months() { # how often a folder of a month is read for one page
	get threads >/dev/null
	strace -f -qq -y -o calls -e trace=getdents64 -p $server 2>/dev/null & tracer=$!
	sleep 0.5
	get threads >/dev/null
	kill -INT $tracer; wait $tracer 2>/dev/null
	grep -c 'getdents64([^ ]*/\.\(Archive\|Sent\)' calls
}
if command -v strace >/dev/null; then
	same 0 "$(months)" 'a list reads the names of a month once, and hears of changes'
	says calls '/new>' 'those of new mail always'
	sent 3000
	same 0 "$(months)" 'also of 3,000 letters'
else
	skip 'a list reads the names of a month once, and hears of changes' 'no strace'
	skip 'those of new mail always' 'no strace'
	skip 'also of 3,000 letters' 'no strace'
	sent 3000
fi
get 'search?q=needle' >body
says body 'Nothing found in the newest mail' 'a search opens the newest mail, and says so'
i=0; while [ $i -lt 9 ] && ! grep -q '<mark>needle' body; do i=$((i + 1)); get "$(grep -o 'search?q=needle&amp;before=[^"]*' body | sed 's/&amp;/\&/')" >body; done
same yes "$([ $i -gt 1 ] && grep -q '<mark>needle' body && echo yes)" 'its link leads to older mail, page by page'
get 'search?q=needle+after:1d' >body
says body '<mark>needle' 'a query that says how far is answered at once'
i=0 behind=
while [ $i -lt 25 ]; do
	i=$((i + 1))
	new=$(send alice bob "letter now $i")
	get 'api/v1/messages?limit=3' | grep -q "$new" || behind="$behind sent"
	mr --as bob drain --json >/dev/null
	get 'api/v1/messages?limit=3' | grep "$new" | grep -q '"folder":"archive"' || behind="$behind archived"
	[ $((i % 5)) -gt 0 ] || mr --as alice purge "$new" >/dev/null 2>&1
	[ $((i % 5)) -gt 0 ] || ! get 'api/v1/messages?limit=3' | grep -q "$new" || behind="$behind purged"
done
same '' "$behind" 'and shows each letter where it is at that moment'
end

# ---- the socket of a server that was killed may live for a moment in a child of it ----
port=${url##*:}
python3 -c 'import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("here", flush=True)
time.sleep(0.4)' "$port" >holder &
i=0; while [ $i -lt 100 ] && ! [ -s holder ]; do sleep 0.02; i=$((i + 1)); done
listen=127.0.0.1:$port; begin; unset listen
check 'the next one waits for it' test -s link.txt
end
finish
