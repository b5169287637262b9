# SPDX-License-Identifier: MIT
# What it would take to put mailroom's agents among Claude Code's peers (docs/decisions/peers.md): a stand-in is listed and gets SendMessage. The
# sender's model is told of success when the stand-in has closed the connection, also a second later: so long it could store the message. To one that
# is stopped it fails.
. "$(dirname "$0")/lib.sh"
need claude
command -v python3 >/dev/null || { echo '1..0 # skip no python3'; exit 0; }

project proj
claude_home
cat >"$scratch/standin.py" <<'PY'
import hashlib, json, os, socket, struct, sys, time
home, log = sys.argv[1], sys.argv[2]
pid = os.getpid()
stat = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
path = "/tmp/cc-socks/%d.sock" % pid
os.makedirs("/tmp/cc-socks", mode=0o700, exist_ok=True)
s = socket.socket(socket.AF_UNIX)
s.bind(path); os.chmod(path, 0o600); s.listen(8)
folder = home + "/.claude/sessions"
os.makedirs(folder, exist_ok=True)
domain = "linux:%s:pid:[%d]" % (open("/etc/machine-id").read().strip(), os.stat("/proc/self/ns/pid").st_ino)
key = "%s/%d.%s.key" % (folder, pid, hashlib.sha256(path.encode()).hexdigest())
json.dump({"peerToken": "0" * 32, "procStart": stat[19], "pidDomain": domain}, open(key, "w"))
json.dump({"pid": pid, "sessionId": "11111111-2222-4333-8444-555555555555", "cwd": "/", "startedAt": int(time.time() * 1000), "procStart": stat[19], "version": "2.1.325",
    "peerProtocol": 1, "peerFeatures": [], "kind": "interactive", "entrypoint": "cli", "pidDomain": domain, "messagingSocketPath": path, "name": "bob", "status": "idle"},
    open("%s/%d.json" % (folder, pid), "w"))
print(pid, flush=True)
while True:
    c, _ = s.accept()
    got = b""
    while True:
        part = c.recv(65536)
        if not part: break
        got += part
    peer = struct.unpack("3i", c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    open(log, "a").write("%d %s\n" % (peer, got.decode().replace("\n", " ")))
    if b"slowly" in got: time.sleep(1)
    c.close()
PY
python3 "$scratch/standin.py" "$HOME" "$scratch/got" >"$scratch/standin.pid" 2>"$scratch/standin.err" & standin=$!
trap 'kill -9 $standin 2>/dev/null; rm -f "/tmp/cc-socks/$standin.sock"; leave' EXIT
until_true 10 test -s "$scratch/standin.pid"
model peers <<JSON
{"actors": [{"steps": [
 {"tool": "ToolSearch", "input": {"query": "select:ListAgents,SendMessage"}},
 {"tool": "ListAgents", "input": {}},
 {"tool": "SendMessage", "input": {"to": "bob", "summary": "one", "message": "at once"}},
 {"tool": "SendMessage", "input": {"to": "bob", "summary": "two", "message": "slowly"}},
 {"before": "sleep 2; kill -STOP $standin", "tool": "SendMessage", "input": {"to": "bob", "summary": "three", "message": "stopped"}},
 {"text": "done"}]}]}
JSON
claude_p go --allowedTools 'ListAgents,SendMessage,ToolSearch' >out 2>err || note <err
for n in 3 4 5; do echo "# request $n"; asked $n | note; done
asked 3 >told; says told 'bob' 'a stand-in is listed'
asked 4 >told; says told 'success":true' 'what is taken at once is a success'
check 'and is there' grep -q 'at once' "$scratch/got"
asked 5 >told; says told 'success":true' 'and what is taken slowly'
check 'and is there, too' grep -q 'slowly' "$scratch/got"
asked 6 >told; says told 'success":false' 'what is not taken is none'
finish
