# SPDX-License-Identifier: MIT
# once
# The line that long commands draw on a terminal, Ctrl-C, and going on where they stopped. What archive, sent mail and records cost.
. "$(dirname "$0")/../lib/tap.sh"
room alice bob
cat >fill.py <<'PY'
# 40,000 archived messages: links to 20 files, under names of their own.
import os, sys
box = ".mailroom/agents/bob/.Archive.2026-01"
digits = "0123456789abcdefghjkmnpqrstvwxyz"
def ulid(ms, n):
    v = (ms << 80) | (n * 2654435761 % (1 << 64)) << 16 | n % 65536
    return "".join(digits[(v >> (5 * i)) & 31] for i in range(25, -1, -1))
for part in ("tmp", "new", "cur"):
    os.makedirs(box + "/" + part, 0o700)
os.chmod(box, 0o700)
for n in range(40000):
    base = box + "/tmp/base%d" % (n % 20)
    if n < 20:
        with open(base, "w") as f:
            f.write("From: alice@town\nTo: bob@town\nSubject: old mail\nDate: Mon, 05 Jan 2026 10:00:00 +0000\n\ntext\n")
        os.chmod(base, 0o400)
    os.link(base, "%s/cur/%d.%s.mr:2,S" % (box, 1767607200 + n, ulid((1767607200 + n) * 1000, n)))
for n in range(20):
    os.unlink(box + "/tmp/base%d" % n)
PY
python3 fill.py
sleep 2.1 # what changed within a second of a look is looked at again
cat >terminal.py <<'PY'
# terminal.py COMMAND...: runs it in a terminal of its own, and types Ctrl-C when the line says that some of the work is done (a look at all names comes first, and
# stopping that leaves nothing). The line is drawn after 300 ms, and a fast machine is done before that: until then the command runs 30 ms and rests 120 in turn.
# Prints what came, then the exit code.
import os, pty, re, select, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen, typed = b"", False
while True:
    try:
        ready = typed or select.select([fd], [], [], 0.03)[0]
        if not ready:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.12)
            os.kill(pid, signal.SIGCONT)
            continue
        got = os.read(fd, 65536)
    except OSError:
        break
    if not got:
        break
    seen += got
    if not typed and re.search(rb"[1-9][0-9]* of [0-9]+  [0-9]+/s  ", seen):
        os.write(fd, b"\x03")
        typed = True
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
print("\nexit %d" % (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)))
PY
opens() { strace -f -e trace=open,openat,openat2 -o trace "$@" >/dev/null 2>&1; grep -c '\.mr' trace; }

# ---- doctor ----
python3 terminal.py "$BIN" doctor >screen 2>&1
says screen '\[#* *\] [0-9]+ of [0-9]+  [0-9]+/s  [0-9]+[smh] left  messages' 'doctor draws how far it is, how fast, and the time left'
says screen 'stopped after [0-9]+ messages' 'Ctrl-C stops it, and it says how far it came'
says screen '^exit 1' 'with exit code 1'
check 'the line is wiped away' sh -c 'tr "\r" "\n" <screen | grep -qx "$(printf "\033")\[K.*"'
stopped=$(grep -o 'stopped after [0-9]*' screen | grep -o '[0-9]*$')
left=$(opens "$BIN" doctor)
check "started again it goes on: $left of 40000 files are read, $stopped were before" test "$left" -le $((40100 - stopped))
check 'and once more, hardly any' test "$(opens "$BIN" doctor)" -le 100
f=$(find .mailroom/agents/bob/.Archive.2026-01/cur -type f | sed -n 77p)
cp "$f" copy; rm "$f"; printf '\0\0\0\0\0\0\0\0' >"$f"; chmod 400 "$f"
mr doctor >out 2>err
says out 'has zero bytes where its header lines should be' 'a message that changed is read again'
rm -f "$f"; cp copy "$f"; chmod 400 "$f"
mr doctor >found 2>err
check 'in a pipe nothing is drawn' sh -c '! grep -q "$(printf "\r")" found err'
mr doctor --json >found 2>err
check 'nor with --json' sh -c '! grep -q "$(printf "\r")" found err'
says found '"code":"cost".*archive: (40000|39999) files' 'doctor tells what the archive costs'

# ---- stats ----
mr stats --json >out
same 40000 "$(jq '.disk[] | select(.what == "archive").files' out)" 'stats counts it, too'
check 'in bytes' test "$(jq '.disk[] | select(.what == "archive").bytes' out)" -gt 1000000
check 'without opening a message' test "$(opens "$BIN" stats)" -eq 0
mr config set Keep-Archive 90d >/dev/null
mr stats >out
says out '^archive +40000 +[0-9]+ +90d' 'and names the setting that limits it'
mr config unset Keep-Archive >/dev/null

# ---- export ----
mkdir other && (cd other && "$BIN" init --name other >/dev/null 2>&1 </dev/null)
python3 terminal.py "$BIN" export --to maildir:"$PWD/other/.mailroom" >out 2>&1
says out '[0-9]+/s  ' 'export draws it'
says out 'stopped before the end|^exit 1' 'and can be stopped'

# ---- import ----
mkdir third && (cd third && "$BIN" init --name third >/dev/null 2>&1 </dev/null)
python3 terminal.py "$BIN" --room third/.mailroom import --from maildir:"$PWD/.mailroom" >out 2>&1
says out '[0-9]+/s  ' 'import draws it'
says out 'stopped before the end|^exit 1' 'and can be stopped'
got=$(find third/.mailroom/agents -name '*.mr*' | wc -l)
check 'what came until then stays' test "$got" -gt 0
timeout 2 "$BIN" --room third/.mailroom import --from maildir:"$PWD/.mailroom" >/dev/null 2>&1 </dev/null
check 'and it goes on there' test "$(find third/.mailroom/agents -name '*.mr*' | wc -l)" -gt "$got"
same '' "$(find third/.mailroom/agents -path '*Archive*' -name '*.mr*' | sed 's|.*/||; s|[:,].*||' | sort | uniq -d)" 'without a message twice'
finish
