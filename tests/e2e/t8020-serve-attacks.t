# SPDX-License-Identifier: MIT
# once
# mailroom serve, attacked: other sites, requests that two programs read differently, tokens that are over, many streams, hostile fields.
. "$(dirname "$0")/../lib/tap.sh"
serve=$(dirname "$DEVBIN")/mailroom-serve
[ -x "$serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }
command -v jq >/dev/null || { echo '1..0 # skip no jq'; exit 0; }

servers=
begin() {
	rm -f link.txt
	"$serve" serve --listen 127.0.0.1:0 "$@" >link.txt 2>serve.err </dev/null & server=$!
	servers="$servers $server"
	i=0; while [ $i -lt 300 ] && ! [ -s link.txt ]; do sleep 0.05; i=$((i + 1)); done
	link=$(cat link.txt) url=${link%/login*} port=${url##*:}
}
trap 'for p in $servers; do kill -9 $p 2>/dev/null; done; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
status() { curl -s -m 20 -o body -w '%{http_code}' "$@" 2>/dev/null; }
page() { curl -s -m 20 -b jar "$url/$1"; }
raw() { python3 "$top/tests/lib/raw-http.py" "$port" "$@"; }

room alice bob
begin
curl -s -m 20 -c jar -o welcome -D headers "$link"
cookie="mailroom-$port=$(awk '/mailroom-/ { print $7 }' jar)"
ours="Host: 127.0.0.1:$port" C="Cookie: $cookie"

# ---- the link ----
says headers '^Referrer-Policy: no-referrer' 'the page of the link tells nobody where it came from'
says headers '^Refresh: 0; url=/' 'and leads to an address without the token'
says headers '^Cache-Control: no-store' 'nothing is kept'
same '' "$(page / | grep -c "$(printf %s "$link" | sed 's/.*token=//')" | sed 's/^0$//')" 'no page has the token in it'

# ---- whose address is it? ----
same 200 "$(raw "GET / HTTP/1.1" "$ours" "$C")" 'our own Host'
same 403 "$(raw 'GET / HTTP/1.1' "Host: 127.0.0.1.:$port" "$C")" 'with a dot'
same 403 "$(raw 'GET / HTTP/1.1' "Host: a@127.0.0.1:$port" "$C")" 'with a user'
same 403 "$(raw 'GET / HTTP/1.1' "Host: 127.0.0.1:$port.evil.example" "$C")" 'with more behind it'
same 403 "$(raw 'GET / HTTP/1.0' "$C")" 'none, in HTTP/1.0'
same 400 "$(raw 'GET / HTTP/1.1' "$C")" 'none'
for hosts in "$ours|Host: evil.example" "Host: evil.example|$ours"; do
	same 400 "$(raw 'GET / HTTP/1.1' "${hosts%|*}" "${hosts#*|}" "$C")" 'two'
done
same 404 "$(raw "GET http://evil.example/ HTTP/1.1" "$ours" "$C")" 'an address in the first line that is not ours'

# ---- whose page asks? ----
csrf() { page "$1" | grep -o "action=\"$2\"><input type=\"hidden\" name=\"csrf\" value=\"[0-9a-f]*" | head -n 1 | sed 's/.*"//'; }
mr --as alice queue create q >/dev/null 2>&1
right=$(csrf queues /do/queue) other=$(csrf write /do/send)
same 32 "${#right}" 'a form has a token'
form() { status -b jar -H "Origin: ${origin-$url}" --data-urlencode 'queue=q' -d status=pause -d "csrf=$1" "$url/do/queue"; }
same 403 "$(form '')" 'none'
same 403 "$(form "$other")" 'that of another form'
same 403 "$(form 00000000000000000000000000000000)" 'a made-up one'
same 403 "$(origin=http://127.0.0.1:1 form "$right")" 'another port of this machine'
same 403 "$(origin=https://127.0.0.1:$port form "$right")" 'another scheme'
same 403 "$(origin=null form "$right")" 'a page without an origin'
same 403 "$(status -H "Sec-Fetch-Site: same-site" -b jar "$url/api/v1/agents")" 'another port of this machine that only reads'
same 403 "$(status -H "Sec-Fetch-Site: cross-site" -b jar "$url/events")" 'another site that only reads'
same 200 "$(status -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' -b jar "$url/")" 'a link in a page elsewhere may lead here'
same active "$(mr queue show q --json | jq -r .status)" 'and nothing has changed'
same 405 "$(status -b jar "$url/do/queue?csrf=$right&queue=q&status=pause")" 'an action is no GET'
same 303 "$(form "$right")" 'the right one'
for back in //evil.example/ '/\evil.example' 'http://evil.example/' 'javascript:alert(1)' '/x
Set-Cookie: a=b'; do
	curl -s -m 20 -D headers -o /dev/null -b jar --data-urlencode "back=$back" -d queue=q -d status=resume -d "csrf=$right" "$url/do/queue"
	tr -d '\r' <headers | grep -i '^location' | grep -Eqv '^Location: /([^/\\]|$)' && echo "$back" >>leads
	grep -qi '^set-cookie' headers && echo "$back" >>leads
done
same '' "$(cat leads 2>/dev/null)" 'the way back is never to another site, nor a header'

# ---- what two programs read differently ----
smuggled="GET /do/never HTTP/1.1
$ours
$C

"
answers() { raw --all "$@" | wc -l | tr -d ' '; } # how many requests were seen in it
refused() { # refused NAME FIRST-ANSWER HEADER...: the second request is in the body, or nowhere
	name=$1; shift
	got=$(raw --all --body "0

$smuggled" 'POST /login HTTP/1.1' "$ours" "$@" | tr '\n' ' ')
	case $got in '400 ' | '400 400 ' | 'closed ') ok "$name" ;; *) not_ok "$name: $got" ;; esac
}
refused 'a length and chunks' 'Content-Length: 6' 'Transfer-Encoding: chunked'
refused 'chunks and a length' 'Transfer-Encoding: chunked' 'Content-Length: 6'
refused 'two lengths' 'Content-Length: 5' 'Content-Length: 0'
refused 'a length with a sign' 'Content-Length: +5'
refused 'a coding that is unknown' 'Transfer-Encoding: xchunked'
refused 'chunks twice' 'Transfer-Encoding: chunked' 'Transfer-Encoding: identity'
refused 'a blank before the colon' 'Transfer-Encoding : chunked' 'Content-Length: 5'

# ---- paths ----
for path in /../../../../etc/passwd /%2e%2e/%2e%2e/etc/passwd /picture/..%2f..%2fetc%2fpasswd.svg /agent/..%2f..%2f..%2fetc /thread/..%2f..%2froom /channel/..%2fx /dead/..%2fx /style.css/.. /api/v1/queues/..%2f..%2froom; do
	code=$(status -b jar --path-as-is "$url$path")
	case $code in 404|409|400|403) ;; *) echo "$path $code" ;; esac
done >paths
same '' "$(cat paths)" 'no path leads out'

# ---- tokens that are over ----
token=$(mr token create alice 2>/dev/null)
as_token() { status -H "Authorization: Bearer $token" "$url/api/v1/messages"; }
same 200 "$(as_token)" 'the token of an agent'
user prune alice --force >/dev/null 2>&1
case $(as_token) in 401|404) ok 'is worth nothing when the agent is gone' ;; *) not_ok 'is worth nothing when the agent is gone' ;; esac
sleep 1.1
user register alice >/dev/null 2>&1
same 401 "$(as_token)" 'nor when another has taken the name'
listen_by() { curl -s -N -m 60 -b "$1" "$url/events" >"$2" & stream=$!; i=0; while [ $i -lt 100 ] && ! grep -q retry "$2"; do sleep 0.05; i=$((i + 1)); done; }
shared=$(mr token create --read-only --expires 1h 2>/dev/null)
same 200 "$(status -c reader "$url/${shared#http://*/}")" 'a link that was shared'
listen_by reader events
mr token revoke "$(mr token list --json | jq -r 'select(.read_only).name' | cut -c1-12)" >/dev/null
i=0; while kill -0 $stream 2>/dev/null && [ $i -lt 120 ]; do sleep 0.1; i=$((i + 1)); done
same no "$(kill -0 $stream 2>/dev/null && echo yes || echo no)" 'a stream ends when its token is revoked'
same 401 "$(status -b reader "$url/events")" 'and is not begun again'
listen_by jar events
sleep 6
same yes "$(kill -0 $stream 2>/dev/null && echo yes)" 'those of others go on'
kill $stream 2>/dev/null
# An agent that waits over /mcp.
token=$(mr token create alice 2>/dev/null) theirs=$(mr token create bob 2>/dev/null)
mcp() { curl -s -N -m "$3" -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d "$2" "$url/mcp"; }
mcp "$token" '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{"timeout":50}}}' 55 >waiting & waits=$!
sleep 1
mcp "$theirs" '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}' 5 >/dev/null
mcp "$theirs" '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"inbox","arguments":{}}}' 5 >mine
silent_about mine alice 'the same number from another token is another call'
same yes "$(kill -0 $waits 2>/dev/null && echo yes)" 'and cancels nothing of others'
for name in $(mr token list --json | jq -r 'select(.agent == "alice").name'); do mr token revoke "$name" >/dev/null; done
i=0; while kill -0 $waits 2>/dev/null && [ $i -lt 120 ]; do sleep 0.1; i=$((i + 1)); done
same no "$(kill -0 $waits 2>/dev/null && echo yes || echo no)" 'a call that waits ends when its token is revoked'
i=0; while pgrep -P "$server" >/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done
same '' "$(pgrep -P "$server")" 'and its process with it'

# ---- many at once ----
timeout 60 python3 - "$port" "$cookie" >many 2>&1 <<'PY'
import socket, sys, time
port, cookie = int(sys.argv[1]), sys.argv[2]
def ask(path, method="GET"):
    s = socket.create_connection(("127.0.0.1", port)); s.settimeout(20)
    s.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode())
    return s, s.recv(200).split(b" ")[1].decode()
streams, codes = [], {}
for i in range(310):
    if i % 90 == 89: time.sleep(1)  # a hundred a second may ask
    s, code = ask("/events"); streams.append(s); codes[code] = codes.get(code, 0) + 1
print("streams", codes)
time.sleep(2)
print("page", ask("/")[1])
for s in streams: s.close()
time.sleep(3)
print("again", ask("/events")[1])
for path in ("/events", "/search?q=x", "/mcp"): print("head", ask(path, "HEAD")[1])
drip = []
for i in range(150):
    s = socket.create_connection(("127.0.0.1", port)); s.sendall(b"GET / HTTP/1.1\r\nHost: "); drip.append(s)
began = time.time(); print("beside", ask("/")[1], "soon" if time.time() - began < 3 else "late")
cut = 0
while time.time() - began < 25 and cut < 150:
    cut = 0
    for s in drip:
        try:
            s.sendall(b"x"); s.setblocking(False)
            try: cut += s.recv(1) == b""
            except BlockingIOError: pass
            finally: s.setblocking(True)
        except OSError: cut += 1
    time.sleep(1)
print("dripping", "cut" if cut == 150 else cut)
PY
note <many
says many "^streams \{'200': 300, '503': 10\}" '300 streams, and no more'
says many '^page 200' 'pages are answered beside them'
says many '^again 200' 'who leaves makes room'
same 3 "$(grep -c '^head [2-4]' many)" 'the head of a stream ends'
says many '^beside 200 soon' '150 that send their headers a byte at a time hold nobody up'
says many '^dripping cut' 'and are cut off'
same 0 "$(ls -l "/proc/$server/fd" | grep -c 'socket' | awk '{ print ($1 > 3) }')" 'no connection is left'

# ---- hostile fields ----
X='<img src=x onerror=alert(1)>"'"'"'><script>alert(2)</script>'
user register mallory --role "$X" >/dev/null 2>&1
mkdir -p "dir $X" && (cd "dir ${X}" && CLAUDE_CODE_SESSION_ID="s<b>1" "$BIN" register eve >/dev/null 2>&1 </dev/null)
mr --as mallory send bob -s "$X" -m "$X" >/dev/null 2>&1
mr --as mallory send queue:q -s "$X" -m "$X" >/dev/null 2>&1
mr --as bob recv q --json >claim 2>/dev/null; mr --as bob fail "$(jq -r .token claim)" --reason "$X" >/dev/null 2>&1
printf 'From: %s\nTo: %s\nCc: <svg/onload=alert(3)>@x\nSubject: %s\nDate: Thu, 01 Jan 2026 00:00:00 +0000\nMessage-ID: <"><script>alert(4)</script>@x>\nMailroom-Type: "><b>\nMailroom-Thread: "><script>alert(5)</script>\nMailroom-Priority: "><i>\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/html\n\n<script>alert(6)</script>\n--b\nContent-Type: "><script>alert(7)</script>\nContent-Disposition: attachment; filename="\\"><script>alert(8)</script>"\n\nx\n--b--\n' "$X" "$X" "$X" >.mailroom/agents/operator/new/1767225600.hostile
: >found
for path in / threads agents agent/operator agent/bob agent/mallory agent/eve queues dead channels 'search?q=alert' 'search?q=%22%3E%3Cscript%3E' "picture?since=1d" "threads?agent=%22%3E%3Cscript%3Ealert(9)%3C/script%3E" 'write?to=%22%3E%3Cscript%3Ealert(1)%3C/script%3E' 'thread/%22%3E%3Cscript%3E' 'agent/%22%3E%3Cscript%3E' 'picture?thread=%22%3E%3Cscript%3E' '%3Cscript%3E' $(page threads | grep -o 'href="/thread/[^"]*' | sed 's|href="/||'); do
	page "$path" >got
	[ -s got ] || echo "$path: nothing" >>found
	python3 "$top/tests/lib/elements.py" "$path" <got >>found
done
same '' "$(cat found)" 'no field becomes an element or a handler'
for path in agents messages threads attention 'why/x' dead queues/q; do curl -s -b jar "$url/api/v1/$path" | jq . >/dev/null 2>&1 || echo "$path"; done >found
same '' "$(cat found)" 'JSON stays JSON'
same '' "$(page metrics | grep -vE '^(#|mailroom_[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="[^"]*")?\})? [0-9]+$)')" 'metrics stay metrics'
exits 0 'and the server is still there' kill -0 "$server"
finish
