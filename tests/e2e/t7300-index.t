# SPDX-License-Identifier: MIT
# The index is a cache: search, thread and why answer the same with it and without it, whatever becomes of it.
. "$(dirname "$0")/../lib/tap.sh"
full=$(dirname "$DEVBIN")/mailroom-full
[ -x "$full" ] || { echo '1..0 # skip mailroom-full was not built'; exit 0; }
small=$BIN
mkdir -p inst/bin inst/libexec/mailroom
cp "$BIN" inst/bin/mailroom
BIN=$scratch/inst/bin/mailroom
# under the sanitizers a quarter of the questions
size=900 part=1
case $DEVBIN in *asan*) size=900 part=4 ;; esac
compare() { # compare COUNT SEED NAME
	python3 "$top/tests/lib/index_room.py" compare "$BIN" "$scratch/.mailroom" $((($1 + part - 1) / part)) "$2" >answers 2>&1
	if grep -q ', 0 differ$' answers; then ok "$3"; else note <answers; not_ok "$3"; fi
}
room alice bob town/carol
sed -i 's/^Name: .*/Name: r/' .mailroom/room
python3 "$top/tests/lib/index_room.py" make .mailroom $size 1 >ids
copies=$(find .mailroom/agents -name '*.mr*' -type f | wc -l)

# ---- without mailroom-full
exits 4 'without mailroom-full there is no index' mr index
says err 'libsqlite3-dev' 'and it says what to install'
check 'nothing is made' test ! -e .mailroom/index
exits 0 'search goes on' mr --as bob search build --json
hits=$(wc -l <out)

# ---- made, and brought up to date
cp "$full" inst/libexec/mailroom/
(umask 0; mr index --json >out 2>err)
same "$copies" "$(jq .messages out)" 'every copy is in it'
same "700 600 600" "$(stat -c %a .mailroom/index .mailroom/index/mail.db .mailroom/index/lock | tr '\n' ' ' | sed 's/ $//')" 'for its user alone, whatever the umask'
exits 0 'again' mr index
says out 'up to date' 'there is nothing to do'
same "$hits" "$(mr --as bob search build --json | wc -l)" 'search finds as much'
compare 60 2 'the same answers as without it'
mr --as alice send bob -m 'brandnew xylophone' >id
exits 0 'mail that came since' mr --as bob search xylophone --json
same 1 "$(wc -l <out)" 'is found'
mr --as bob archive "$(cat id)" --include-unread >/dev/null 2>&1
same archive "$(mr --as bob search xylophone --json | jq -r .folder)" 'and where it went'
mr --as bob reply "$(cat id)" -m 'zither' >/dev/null
same 2 "$(mr --as bob thread "$(cat id)" --json | wc -l)" 'a thread has its answer'
told() { mr --as alice why "$(cat id)" "$@" | sed 's/last seen [^ ]* ago//'; }
same "$(told --no-index)" "$(told)" 'and why tells of it'
find .mailroom/agents/bob -name "*$(cat id)*" -delete
same 0 "$(mr --as bob search from:alice xylophone --json | wc -l)" 'what was removed is not found'
ls .mailroom/agents/bob/new | head -n 20 | while read -r name; do mv ".mailroom/agents/bob/new/$name" ".mailroom/agents/bob/cur/$name:2,S"; done
compare 20 3 'the same after marks, moves and removals'
if command -v strace >/dev/null; then
	mr --as bob mark read --all >/dev/null 2>&1; mr --as bob archive --all-read >/dev/null 2>&1
	strace -f -qq -e trace=openat,openat2,execve -o trace "$BIN" index </dev/null >/dev/null 2>&1
	same 0 "$(grep -c '\.mr' trace)" 'mail that was only moved is not read again'
	same "$BIN $scratch/inst/libexec/mailroom/mailroom-full" "$(sed -n 's/.*execve("\([^"]*\)".*/\1/p' trace | sed 's|/bin/\.\.||' | tr '\n' ' ' | sed 's/ $//')" 'one program is started: our own'
	strace -f -qq -e trace=execve -o trace "$BIN" --as bob search x --no-index </dev/null >/dev/null 2>&1
	same 1 "$(grep -c execve trace)" 'none with --no-index'
	strace -f -qq -e trace=openat,openat2 -o trace "$BIN" --as bob search x --no-index --since 1d </dev/null >/dev/null 2>&1
	recent=$(python3 -c "import os,time
n=0
for d, _, names in os.walk('.mailroom/agents/bob'):
    n += sum(1 for f in names if '.mr' in f and int(f.split('.')[0]) > time.time() - 86500)
print(n)")
	[ "$(grep -c '\.mr' trace)" -le "$recent" ] && ok "search --since opens only that span ($recent)" || not_ok "search --since opens $(grep -c '\.mr' trace), not $recent"
	strace -f -qq -e trace=openat,openat2 -o trace "$BIN" --as bob search build before:2001-01-01 </dev/null >/dev/null 2>&1
	same 0 "$(grep -c '\.mr:' trace)" 'and with before: an index opens nothing that is newer'
fi

# ---- the ends of ids: near first, then what the index knows; the same as by reading names
exits 0 'an index of all' mr index
far=$(ls .mailroom/agents/bob/.Archive.*/cur | sed -n 's/^[0-9]*\.\([0-9a-z]*\)\.mr.*/\1/p' | sort | sed -n 5p)
end=$(echo "$far" | tail -c 7)
mr --as bob reply "$end" -m 'a reply to the end of an id' >/dev/null 2>err || note <err
same "$far" "$(mr --as bob sent --limit 1 --json | jq -r .reply_to)" 'a reply goes to what the end of its id says'
exits 0 'the index has it' mr index
if command -v strace >/dev/null; then
	strace -f -qq -y -e trace=getdents64,execve -o trace "$BIN" --as bob read "$end" --peek </dev/null >/dev/null 2>&1
	same '0 2' "$(grep -c 'getdents64.*\.Archive\..*/cur' trace) $(grep -c execve trace)" 'an end that is not near is found without reading the archive'
	near=$(mr --as alice send bob -m 'near' | tail -c 7)
	strace -f -qq -e trace=execve -o trace "$BIN" --as bob read "$near" --peek </dev/null >out 2>err
	same '1 1' "$(grep -c execve trace) $(grep -c '^near$' out)" 'what is near needs no other program'
fi
call() { # call OUT: the MCP server is asked for it
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":{\"ids\":[\"$end\"]}}}" >asked
	strace -f -qq -y -e trace=getdents64,execve -o trace "$BIN" --as bob mcp <asked >"$1" 2>err
}
if command -v strace >/dev/null; then
	call mcp
	same '0 2' "$(grep -c 'getdents64.*\.Archive\..*/cur' trace) $(grep -c execve trace)" 'the MCP server uses it, too'
	same true "$(jq -c "select(.id == 2).result | .isError != true and (tostring | contains(\"$end\"))" mcp)" "and reads the message"
fi
mr --as bob read "$end" --peek --json >with 2>&1
mv inst/libexec/mailroom/mailroom-full hidden
mr --as bob read "$end" --peek --json >without 2>&1
mv hidden inst/libexec/mailroom/mailroom-full
check 'it is the same without mailroom-full' cmp with without

# ---- what is started
mkdir elsewhere; printf '#!/bin/sh\ntouch %s/owned\n' "$scratch" >elsewhere/mailroom-full; chmod 755 elsewhere/mailroom-full
cp elsewhere/mailroom-full .mailroom/mailroom-full; cp elsewhere/mailroom-full mailroom-full
PATH=$scratch/elsewhere:$PATH mr index >/dev/null 2>&1
mv inst/libexec/mailroom/mailroom-full hidden
PATH=$scratch/elsewhere:$PATH mr index >/dev/null 2>&1; mr --as bob search build >/dev/null 2>&1
cp elsewhere/mailroom-full inst/libexec/mailroom/mailroom-full; chmod 777 inst/libexec/mailroom/mailroom-full
mr index >/dev/null 2>&1
check 'nothing from PATH, a room, the working folder, or that others can write' test ! -e owned
chmod 775 inst/libexec/mailroom/mailroom-full; chmod 755 "$BIN"
mr --as bob search x >/dev/null 2>&1
check 'nor one that the group may write, and not the command' test ! -e owned
rm -f inst/libexec/mailroom/mailroom-full mailroom-full .mailroom/mailroom-full; mv hidden inst/libexec/mailroom/mailroom-full

# ---- killed
bad=
for n in 1 2 3 4 5 6; do
	mr index --drop >/dev/null 2>&1
	"$BIN" index </dev/null >/dev/null 2>&1 & pid=$!
	sleep "0.0$((n * 3 % 10))$n"; kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
	python3 "$top/tests/lib/index_room.py" compare "$BIN" "$scratch/.mailroom" 4 $n >answers 2>&1
	grep -q ', 0 differ$' answers || bad="$bad $n: $(head -n 2 answers)"
done
same '' "$bad" 'killed at any time, the answers are the same'
exits 0 'the next one goes on' mr index
compare 10 5 'and is right'

# ---- two at once
mr index --drop >/dev/null 2>&1
"$BIN" index --json </dev/null >one 2>err1 & a=$!
"$BIN" index --json </dev/null >two 2>err2 & b=$!
wait $a; ra=$?; wait $b; rb=$?
same '0 0' "$ra $rb" 'two indexers get on'
same "$(find .mailroom/agents -name '*.mr*' -type f | wc -l)" "$(jq -s 'map(.added) | add' one two)" 'each message is read by one of them'
compare 10 6 'and the answers are right'

# ---- torn, strange, of another version
spoil() { # spoil NAME PYTHON
	mr index >/dev/null 2>&1
	python3 -c "$2"
	compare 8 7 "$1: the same answers"
	exits 0 "$1: made again" mr index --json
	cat err >>made
	compare 4 8 "$1: and right"
}
spoil 'half of it' "import os; os.truncate('.mailroom/index/mail.db', os.path.getsize('.mailroom/index/mail.db') // 2)"
spoil 'empty' "import os; os.truncate('.mailroom/index/mail.db', 0)"
spoil 'its beginning overwritten' "f = open('.mailroom/index/mail.db', 'r+b'); f.write(bytes(range(256)) * 64)"
spoil 'random bytes' "
import os, random; r = random.Random(3); n = os.path.getsize('.mailroom/index/mail.db'); f = open('.mailroom/index/mail.db', 'r+b')
for _ in range(200): f.seek(r.randrange(n)); f.write(r.randbytes(64))"
spoil 'one of the future' "import sqlite3; d = sqlite3.connect('.mailroom/index/mail.db'); d.execute('PRAGMA user_version=99'); d.commit()"
spoil 'a page of zeros in the middle' "
import os; n = os.path.getsize('.mailroom/index/mail.db'); f = open('.mailroom/index/mail.db', 'r+b'); f.seek(n // 8192 * 4096); f.write(bytes(65536))"
[ "$(grep -c 'it was made again' made)" -ge 4 ] && ok 'which is told' || not_ok 'which is told'
echo precious >target; rm -f .mailroom/index/mail.db*; ln -s "$scratch/target" .mailroom/index/mail.db
compare 4 9 'a link in its place: the same answers'
exits 0 'the link is not followed' mr index
same precious "$(cat target)" 'nor written through'
rm -rf .mailroom/index; mkdir other; ln -s "$scratch/other" .mailroom/index
exits 4 'a folder that is a link is refused' mr index
exits 0 'search goes on' mr --as bob search build
check 'nothing is put there' rmdir other
rm .mailroom/index; mkdir -m 755 .mailroom/index
exits 4 'and one that others can read' mr index
rmdir .mailroom/index

# ---- no space: files may not grow
(ulimit -f 100; exec "$BIN" index </dev/null >out 2>err); got=$?
same 1 $got 'without space it fails'
compare 8 10 'and the answers are the same'
exits 0 'with space again it is made' mr index
compare 8 11 'and right'

# ---- hostile
head -c 10000000 /dev/zero | tr '\0' w >long; printf ' tuba' >>long
mr --as alice send bob -f long >/dev/null
same 1 "$(mr --as bob search tuba --json | wc -l)" 'behind a word of 10 MB'
printf 'From: alice@r\nTo: bob@r\nSubject: a NUL\n\nbefore\000behind marimba\n' >".mailroom/agents/bob/new/$(date +%s).nul.r.mr"; chmod 600 .mailroom/agents/bob/new/*.nul.r.mr
mr index >/dev/null 2>&1
same '1 1' "$(mr --as bob search marimba --json | wc -l) $(mr --as bob search marimba --no-index --json | wc -l)" 'behind a NUL'
for q in 'a" OR "b' '"' 'NEAR(a b, 3)' 'sender:alice' '{rest}:x' '^x' 'x + y' "x'; DROP TABLE copy; --" '*' '(' 'a AND' 'NOT'; do
	a=$(mr --as bob search --json -- "$q" 2>/dev/null; echo "exit $?") b=$(mr --as bob search --no-index --json -- "$q" 2>/dev/null; echo "exit $?")
	[ "$a" = "$b" ] || bad="$bad [$q]"
done
same '' "$bad" 'no query is syntax'
# ---- a purge
id=$(mr --as alice send bob -m 'the secret is zitherpurge' 2>/dev/null)
mr index >/dev/null
check 'the index has the words of a message' grep -qaF zitherpurge .mailroom/index/*
exits 0 'purge' mr --as alice purge "$id"
check 'takes them with it' sh -c '! grep -rqaF zitherpurge .mailroom'
exits 0 'an index again' mr index
compare 6 12 'which is right'
# ---- mail that is gone
mkdir forget; (cd forget && "$BIN" init && "$BIN" register eve) >/dev/null 2>&1 </dev/null
for n in 1 2 3 4 5 6 7 8; do (cd forget && "$BIN" --as eve send eve -m "word kept$n" </dev/null >/dev/null); done
for n in 1 2; do (cd forget && "$BIN" --as eve send eve -m "quaggaword$n" </dev/null >id$n 2>/dev/null); done
(cd forget && "$BIN" index </dev/null >/dev/null)
find forget/.mailroom/agents -name "*$(cat forget/id1)*" -delete
same false "$(cd forget && "$BIN" index --json </dev/null | jq .rebuilt)" 'of ten texts one may be of mail that is gone'
find forget/.mailroom/agents -name "*$(cat forget/id2)*" -delete
(cd forget && "$BIN" --as eve archive --all --include-unread </dev/null >/dev/null 2>&1)
find forget/.mailroom/agents -name "*$(cd forget && "$BIN" --as eve search kept1 --json --no-index </dev/null | jq -r .id | head -n 1)*" -delete
same true "$(cd forget && "$BIN" index --json </dev/null | jq .rebuilt)" 'of three it is made anew'
check 'and their words are forgotten' sh -c '! grep -qaF quaggaword forget/.mailroom/index/*'
same 1 "$(cd forget && "$BIN" --as eve search kept8 --json </dev/null | jq -r .id | sort -u | wc -l)" 'the others are in it'
# ---- shared rooms
mkdir shared; (cd shared && "$BIN" init --share group >/dev/null 2>&1 </dev/null; "$BIN" register dora >/dev/null 2>&1 </dev/null)
(cd shared && exits 4 'a room of several users has none' "$BIN" index; cp err ..) | sed 's/^ok [0-9]*/ok/' | grep -q '^ok' && ok 'a room of several users has none' || not_ok 'a room of several users has none'
# ---- removed
exits 0 '--drop' mr index --drop --json
check 'it is gone' test ! -e .mailroom/index
exits 5 'there is none to drop' mr index --drop
exits 2 '--drop --watch' mr index --drop --watch
mr index >/dev/null
"$BIN" index --watch --json </dev/null >watched 2>&1 & pid=$!
mr --as alice send bob -m 'a late ocarina' >/dev/null
n=0; while ! grep -q '"added":[1-9]' watched && [ $n -lt 200 ]; do sleep 0.1; n=$((n + 1)); done
check '--watch brings it up to date' grep -q '"added":[1-9]' watched
kill -TERM $pid; wait $pid; same 0 $? 'and ends when it is asked to'
mr --as alice send bob -m 'a patrolled sousaphone' >/dev/null
copies() { python3 -c "import sqlite3; print(sqlite3.connect('.mailroom/index/mail.db').execute('SELECT count(*) FROM copy').fetchone()[0])"; }
before=$(copies)
exits 0 'patrol' mr --as bob patrol
[ "$(copies)" -gt "$before" ] && ok 'brings it up to date' || not_ok "brings it up to date: $before, then $(copies)"
exits 0 'doctor' mr doctor
silent_about out 'index' 'finds nothing wrong with it'
finish
