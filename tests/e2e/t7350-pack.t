# once
# SPDX-License-Identifier: MIT
# A month of the archive in one compressed mbox: everything that reads mail finds it there, and it comes back as it was.
. "$(dirname "$0")/../lib/tap.sh"
full=$(dirname "$DEVBIN")/mailroom-full
[ -x "$full" ] || { echo '1..0 # skip mailroom-full was not built'; exit 0; }
mkdir -p inst/bin inst/libexec/mailroom
cp "$BIN" inst/bin/mailroom
BIN=$scratch/inst/bin/mailroom
room alice bob town/carol
sed -i 's/^Name: .*/Name: r/' .mailroom/room
python3 "$top/tests/lib/index_room.py" make .mailroom 900 3 >/dev/null
month=$(date -u -d "$(date -u +%Y-%m-15) -6 months" +%Y-%m)
m=.mailroom/agents/bob/.Archive.$month
# hostile to an mbox: lines that begin like a separator, no line break at the end, an empty body, bytes that are no text
odd() { # odd LETTER TEXT
	printf 'Message-ID: <x@r>\nFrom: alice@r\nTo: bob@r\nSubject: odd %s\n\n%b' "$1" "$2" >"$m/cur/$(date -u -d "$month-10" +%s).01odd.$1.mr:2,S"
}
odd a 'From here on\n>From there\n>>From nowhere\n'
odd b 'no line break at the end: xylophone'
odd c ''
odd d '\0\0001\r\nFrom \r\n\n\n'
(cd "$m/cur" && for f in *; do case $f in *:2,*F*) ;; *:2,*S*) echo "$f" ;; esac; done) | sort >packable
(cd "$m/cur" && md5sum -- * && stat -c '%n %Y' -- *) >before
n=$(wc -l <packable) all=$(ls "$m/cur" | wc -l)
check 'there is something to pack, and something to keep' test "$n" -gt 4 -a "$n" -lt "$all"
id=$(grep -o '01[0-9a-z]\{24\}' packable | head -n 1)
thread=$(mr --as bob read "$id" --json | jq -r .thread)
answers() { # what every reading command says, but for the path of the file
	mr --as bob search build --json | jq -c 'del(.path)'
	mr --as bob search after:"$month-01" x --json | jq -c 'del(.path)'
	mr --as bob search --regex 'green.*red' --json | jq -c 'del(.path)'
	mr --as bob thread "$thread" --json | jq -c 'del(.path)'
	mr --as bob read "$id" --raw
	mr --as bob read "$id" --json | jq -c 'del(.path)'
	mr --as bob why "$id" --json | jq -c '[.agent, .state]'
	rm -rf copy; mkdir copy; mr init copy >/dev/null 2>&1; mr export --to copy bob >/dev/null 2>&1
	find copy/.mailroom/agents/bob -name '*.mr*' -exec md5sum {} + | cut -d' ' -f1 | sort
}
answers >plain 2>&1

# ---- without mailroom-full
exits 4 'the small command alone does not pack' mr --as bob archive --pack "$month"
says err 'zlib1g-dev' 'and says what to install'
check 'nothing is made' test ! -e "$m/mbox.gz"
cp "$full" inst/libexec/mailroom/

# ---- refused
exits 4 'this month stays' mr --as bob archive --pack "$(date -u +%Y-%m)"
exits 4 'and the one before' mr --as bob archive --pack "$(date -u -d "$(date -u +%Y-%m-15) -1 month" +%Y-%m)"
exits 4 'no month' mr --as bob archive --pack 2026-13
exits 5 'a month without mail' mr --as bob archive --pack 2001-01
exits 2 'with ids' mr --as bob archive --pack "$month" "$id"
exits 5 'what is not packed cannot be unpacked' mr --as bob archive --unpack "$month"

# ---- packed
exits 0 'a month is packed' mr --as bob archive --pack "$month" --json
same "$n $n $((all - n))" "$(jq -r '"\(.packed) \(.total) \(.kept)"' out)" 'all that is read and not pinned'
same "$((all - n))" "$(ls "$m/cur" | wc -l)" 'the others stay files'
check 'it is one gzip file' gzip -t "$m/mbox.gz"
zcat "$m/mbox.gz" >mbox
same "$n" "$(python3 -c 'import mailbox; print(len(mailbox.mbox("mbox")))')" 'and an mbox with that many messages'
same "$n" "$(grep -ac '^From ' mbox)" 'no line of a text passes for a separator'
same 600 "$(stat -c %a "$m/mbox.gz")" 'for its user alone'
answers >packed 2>&1
if cmp -s plain packed; then ok 'search, thread, read, why, export say the same as before'; else diff plain packed | head -n 20 | cut -c1-300 | note; not_ok 'the same as before'; fi
exits 0 'with an index' mr index
answers >indexed 2>&1
if cmp -s plain indexed; then ok 'and the same'; else diff plain indexed | head -n 20 | cut -c1-300 | note; not_ok 'the same with an index'; fi
mr index --drop >/dev/null
exits 0 'doctor' mr doctor --json
silent_about out 'mbox.gz' 'finds nothing wrong with it'
exits 4 'a mark is refused' mr --as bob mark pinned "$id"
says err "archive --unpack $month" 'with the way out'
exits 0 'an answer is not' mr --as bob reply "$id" -m 'still here'

# ---- the small command alone says what it leaves out
rm inst/libexec/mailroom/mailroom-full
exits 4 'read without zlib' mr --as bob read "$id"
says err 'zcat' 'says how to read it by hand'
mr --as bob search after:"$month-01" x --json >out 2>err
says err "$month/mbox.gz.*zlib" 'search says what it could not read'
same 1 "$(grep -c 'mbox.gz' err)" 'once'
cp "$full" inst/libexec/mailroom/

# ---- more mail of that month
odd e 'came later: glockenspiel\n'
printf '%s\n' "$m"/cur/*01odd.e.mr:2,S | sed 's,.*/,,' >>packable
exits 0 'packed again' mr --as bob archive --pack "$month" --json
same "1 $((n + 1))" "$(jq -r '"\(.packed) \(.total)"' out)" 'with what came since'
same 1 "$(mr --as bob search glockenspiel --json | wc -l)" 'which is found'
exits 0 'and again' mr --as bob archive --pack "$month" --json
same "0 $((n + 1))" "$(jq -r '"\(.packed) \(.total)"' out)" 'there is nothing to do'
# a file that a mail program put back goes before the pack, and counts once
cp "$m/mbox.gz" kept.gz
mr --as bob archive --unpack "$month" >/dev/null 2>&1
rm "$m"/cur/*01odd.e.mr:2,S
cp kept.gz "$m/mbox.gz"
same 1 "$(mr --as bob search xylophone --json | wc -l)" 'a message that is in both counts once'
exits 0 'packing both' mr --as bob archive --pack "$month" --json
same "$n $((n + 1))" "$(jq -r '"\(.packed) \(.total)"' out)" 'gives each once'

# ---- purge
secret=$(mr --as bob search glockenspiel --json | jq -r .id)
: >"$m/.mbox.gz.tmp" && cp kept.gz "$m/.mbox.gz.tmp" # as a killed one leaves it
exits 0 'a packed message is purged' user --as operator purge "$secret"
zcat "$m/mbox.gz" >mbox
silent_about mbox 'glockenspiel' 'its text is gone'
check 'also from what a killed command left' test ! -e "$m/.mbox.gz.tmp"
same "$n" "$(python3 -c 'import mailbox; print(len(mailbox.mbox("mbox")))')" 'the others are there'
same 0 "$(mr --as bob search glockenspiel --json | wc -l)" 'and nothing finds it'

# ---- back
exits 0 'unpacked' mr --as bob archive --unpack "$month" --json
same "$n" "$(jq .unpacked out)" 'all of it'
check 'the pack is gone' test ! -e "$m/mbox.gz"
(cd "$m/cur" && md5sum -- * && stat -c '%n %Y' -- *) >after
if cmp -s before after; then ok 'names, bytes and times are as they were'; else diff before after | note; not_ok 'as they were'; fi
same '400' "$(stat -c %a "$m/cur/$(head -n 1 packable)")" 'for reading only'

# ---- damage
mr --as bob archive --pack "$month" >/dev/null
cp "$m/mbox.gz" kept.gz
size=$(stat -c %s kept.gz)
for cut in 0 10 31 100 $((size / 2)) $((size - 1)); do
	head -c "$cut" kept.gz >"$m/mbox.gz"
	mr --as bob search build --json >out 2>err
	if grep -q "$month/mbox.gz.*damaged" err && [ -s out ]; then :; else note <err; not_ok "cut at $cut: it is said, and the rest is found"; fi
	mr doctor >out 2>err
	grep -q "$month/mbox.gz.*damaged" out || { note <out; not_ok "cut at $cut: doctor says so"; }
	mr --as bob archive --pack "$month" >out 2>err && not_ok "cut at $cut: nothing is packed into a damaged one"
done
ok 'a pack that was cut'
exits 1 'a purge does not pass a damaged pack by' user --as operator purge "$id"
python3 - kept.gz "$m/mbox.gz" <<'END'
import sys
d = bytearray(open(sys.argv[1], "rb").read())
d[150] ^= 255 # within the first message
open(sys.argv[2], "wb").write(d)
END
mr doctor >out 2>err
says out "$month/mbox.gz.*damaged" 'doctor reads every message'
# bytes of the table that somebody changed: nothing is read beyond it, and nothing ends by a signal
python3 - kept.gz "$m/mbox.gz" "$full" <<'END' >out
import random, subprocess, sys
good, rnd, bad = open(sys.argv[1], "rb").read(), random.Random(1), 0
table = good.rindex(b"mailroom pack 1\n")
for _ in range(120):
    d = bytearray(good)
    for _ in range(rnd.randint(1, 4)):
        d[rnd.randrange(table, len(d))] = rnd.choice([0, 10, 32, 47, 57, 255, rnd.randrange(256)])
    open(sys.argv[2], "wb").write(d)
    rc = subprocess.run([sys.argv[3], "--as", "bob", "search", "odd"], stdin=subprocess.DEVNULL, capture_output=True).returncode
    bad += rc < 0 or rc > 5
print(bad)
END
same 0 "$(cat out)" 'a table with changed bytes'
cp kept.gz "$m/mbox.gz"
mr --as bob archive --unpack "$month" >/dev/null

# ---- killed at every call: each message is there once
for other in .mailroom/agents/*/.Archive.* .mailroom/agents/town/carol/.Archive.*; do [ "$other" = "$m" ] || rm -rf "$other"; done
tail -n +7 packable | while read -r name; do rm -f "$m/cur/$name"; done
list() { "$full" --as bob search --regex . --limit 5000 --json 2>/dev/null | jq -r 'select(.folder == "archive") | .id' | sort; }
list >ids
once() { list >now; cmp -s ids now; }
check 'every archived message is listed' test "$(wc -l <ids)" -ge 6
# ---- doctor --fix: whatever is damaged, every message is a file again or is named
mr --as bob archive --pack "$month" >/dev/null
rm -rf whole-month; cp -a "$m" whole-month
python3 - "$m" whole-month "$full" >out <<'END'
import json, os, random, re, shutil, subprocess, sys
month, whole, full = sys.argv[1:]
good = open(whole + "/mbox.gz", "rb").read()
begin = len(good) - int(good[-31:-11])
table = sorted((int(a), int(b)) for a, b in (l.split()[:2] for l in good[begin + 10:-31].decode().split("\n")[1:-1] if not l.startswith("sum ")))
names = good.index(table_lines := good[begin + 10:-31]) + table_lines.index(b"\n") + 30 # in the name of the first message
def files():
    return {n: open(month + "/cur/" + n, "rb").read() for n in os.listdir(month + "/cur")}
shutil.rmtree(month); shutil.copytree(whole, month, symlinks=True)
plain = files()
subprocess.run([full, "--as", "bob", "archive", "--unpack", month[-7:]], stdin=subprocess.DEVNULL, capture_output=True, check=True)
want = files()
rnd, bad = random.Random(5), []
def trial(what, data, may_lose):
    shutil.rmtree(month); shutil.copytree(whole, month, symlinks=True)
    open(month + "/mbox.gz", "wb").write(data)
    run = subprocess.run([full, "doctor", "--fix", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said = [json.loads(l) for l in run.stdout.splitlines()]
    stays = os.path.exists(month + "/mbox.gz")
    if stays: # a byte that says nothing: the time of a file, a flag
        run.returncode |= subprocess.run([full, "--as", "bob", "archive", "--unpack", month[-7:]], stdin=subprocess.DEVNULL, capture_output=True).returncode
        if sorted(files().values()) != sorted(want.values()): bad.append("%s: taken for whole" % what)
        if run.returncode != 0: bad.append("%s: exit %d" % (what, run.returncode))
        return
    now = files()
    lost = [n for n in want if want[n] not in now.values()]
    told = " ".join(s["what"] for s in said if not s["fixed"])
    named = [n for n in lost if not re.search(r"[0-9a-z]{26}", n) or re.search(r"[0-9a-z]{26}", n).group(0) in told]
    wrong = [n for n in now if n in want and now[n] != want[n]]
    if wrong: bad.append("%s: other bytes in %s" % (what, wrong))
    if len(lost) > may_lose: bad.append("%s: %d lost, %d may be" % (what, len(lost), may_lose))
    if lost and len(named) < len(lost) and what != "cut": bad.append("%s: %d lost, %d named" % (what, len(lost), len(named)))
    if (run.returncode == 1) != bool(lost) and what != "cut": bad.append("%s: exit %d, %d lost: %s" % (what, run.returncode, len(lost), run.stderr))
    if run.returncode not in (0, 1): bad.append("%s: exit %d" % (what, run.returncode))
    again = subprocess.run([full, "doctor"], stdin=subprocess.DEVNULL, capture_output=True).returncode
    if again != 0: bad.append("%s: then doctor exits with %d" % (what, again))
trial("no table", good[:begin], 0)
trial("the table torn", good[:-5], 0)
trial("a byte of the table", good[:begin + 30] + bytes([good[begin + 30] ^ 64]) + good[begin + 31:], 0)
for bit in range(8): # nothing but the sum guards a name
    trial("bit %d of a name" % bit, good[:names] + bytes([good[names] ^ (1 << bit)]) + good[names + 1:], 0)
for i in (0, len(table) // 2, len(table) - 1):
    offset, length = table[i]
    at = offset + length - 12
    trial("a byte of message %d" % i, good[:at] + bytes([good[at] ^ 255]) + good[at + 1:], 1)
trial("cut", good[:table[len(table) // 2][0] + 40], len(table) - len(table) // 2)
for _ in range(12):
    at = rnd.randrange(len(good))
    trial("byte %d" % at, good[:at] + bytes([good[at] ^ (1 << rnd.randrange(8))]) + good[at + 1:], 1)
print("\n".join(bad) or "fine, %d messages" % len(table))
END
says out '^fine, [0-9]+ messages$' 'a damaged pack: what can be read is in files, the rest is named, the pack in the attic' || note <out
rm -rf "$m"; cp -a whole-month "$m"
mr --as bob archive --unpack "$month" >/dev/null

# Every sixth call here, another sixth with each run; all of them in the long form.
stride=6 first=$(($(date +%S | sed 's/^0//') % 6 + 1)); [ -z "${MAILROOM_TEST_LONG:-}" ] || stride=1 first=1
killed() { # killed NAME FOLDER COMMAND...: with that folder in the place of the month
	what=$1 prepare=$2 at=$first broken=0; shift 2
	while [ $at -lt 600 ]; do
		rm -rf "$m"; cp -a "$prepare" "$m"
		MAILROOM_FAULT=kill-before:$at "$full" "$@" >out 2>err </dev/null && break
		once || { broken=$((broken + 1)); echo "# killed before call $at"; diff ids now | head -n 3 | note; }
		"$full" "$@" >out 2>err </dev/null || grep -q 'is not packed' err || { broken=$((broken + 1)); note <err; }
		once || { broken=$((broken + 1)); echo "# repeated after a kill before call $at"; diff ids now | head -n 3 | note; }
		[ ! -e "$m/.mbox.gz.tmp" ] || { broken=$((broken + 1)); echo "# something is left, $at"; }
		at=$((at + stride))
	done
	same 0 $broken "$what, killed before each of its calls"
	check 'and it came to its end' test $at -gt 20 -a $at -lt 600
}
cp -a "$m" plain-month
killed 'packing' plain-month --as bob archive --pack "$month"
cp -a "$m" packed-month
odd f 'came later\n'
list >ids
cp -a "$m" mixed-month
killed 'packing again' mixed-month --as bob archive --pack "$month"
rm -rf "$m"; cp -a packed-month "$m"
list >ids
killed 'unpacking' packed-month --as bob archive --unpack "$month"
# a purge that is killed, and repeated
rm -rf "$m"; cp -a packed-month "$m"
odd g 'the key is glockenspiel\n'
"$full" --as bob archive --pack "$month" >/dev/null
rm -rf packed-month; cp -a "$m" packed-month
secret=$("$full" --as bob search glockenspiel --json | jq -r .id)
at=$first broken=0
list | grep -v "$secret" >ids
while [ $at -lt 1500 ]; do
	rm -rf "$m" .mailroom/records/purged; cp -a packed-month "$m"
	XDG_STATE_HOME=$scratch/user-state MAILROOM_FAULT=kill-before:$at "$full" --as operator purge "$secret" >out 2>err </dev/null && break
	XDG_STATE_HOME=$scratch/user-state "$full" --as operator purge "$secret" >out 2>err </dev/null
	once || { broken=$((broken + 1)); echo "# killed before call $at"; diff ids now | head -n 3 | note; note <err; }
	if cat "$m"/.mbox* "$m/mbox.gz" 2>/dev/null | zcat 2>/dev/null | grep -q glockenspiel; then broken=$((broken + 1)); echo "# killed before call $at: the text is left"; fi
	at=$((at + stride))
done
check "a purge came to its end" test $at -gt 20 -a $at -lt 1500
same 0 $broken 'a purge that is killed before any of its calls and repeated leaves nothing'

# ---- retention: a pack goes as a whole, when all of it may go
rm -rf "$m"; cp -a packed-month "$m"
cost=$("$DEVBIN" stats --json | jq '[.. | objects | select(.what? == "archive")][0].files')
same "$(find .mailroom/agents -path '*/.Archive.*/cur/*' | wc -l) $(zcat "$m/mbox.gz" | grep -ac '^From ')" \
	"$((cost - $(zcat "$m/mbox.gz" | grep -ac '^From '))) $(zcat "$m/mbox.gz" | grep -ac '^From ')" 'what the archive costs counts packed mail'
at() { MAILROOM_TEST_CLOCK_OFFSET_MS=$(awk "BEGIN { printf \"%.0f\", $1 * 86400000 }") "$DEVBIN" --as alice send town/carol -m tick >/dev/null 2>&1; }
mr config set Keep-Archive 4000d >/dev/null
for days in 0 1.1 2.2 3.3; do at $days; done
check 'what is kept stays' test -e "$m/mbox.gz"
mr config set Keep-Archive 90d >/dev/null
at 3.4
check 'nothing goes at once' test -e "$m/mbox.gz"
for days in 4.5 5.6; do at $days; done
check 'an old one goes' test ! -e "$m/mbox.gz"
says .mailroom/records/kept/_/archive "$month" 'and that is noted'
finish
