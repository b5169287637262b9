# A room in PostgreSQL whose server is in trouble: a full disk, recovery, a standby, one that hangs, time limits. A clear error with what to
# do, the right exit code, nothing half done.
# once: the room is a server's
# With the rights to mount, everything runs in a mount namespace of its own, and the server's data folder is a small tmpfs.
if [ -z "${MAILROOM_TEST_MOUNTS-}" ]; then
	if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then exec env MAILROOM_TEST_MOUNTS=yes unshare -m sh "$0"; fi
	MAILROOM_TEST_MOUNTS=no
fi
. "$(dirname "$0")/../lib/tap.sh"
if [ $MAILROOM_TEST_MOUNTS = yes ]; then
	mkdir small && mount -t tmpfs -o size=160m,mode=755 tmpfs small && TMPDIR=$scratch/small || MAILROOM_TEST_MOUNTS=no
	chmod 755 "$scratch"
fi
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }
mail() { as bob inbox --all --limit 100 --json | grep -c .; }
within() { [ $(($(date +%s) - begin)) -le "$1" ] && ok "$2" || not_ok "$2: it took $(($(date +%s) - begin)) s"; }
town alice bob
as alice send bob -m first >/dev/null

# ---- the disk of the server is full ----
if [ $MAILROOM_TEST_MOUNTS = yes ]; then
	head -c 8000000 /dev/urandom | base64 >long
	head -c 8000000 /dev/urandom >file
	sql CHECKPOINT
	dd if=/dev/zero of="$TMPDIR/filler" bs=64k 2>/dev/null
	before=$(mail)
	exits 1 'a send to a full disk' as alice send bob -s 'no room' -f long
	says err 'the disk of the server is full' 'says so'
	says err 'free some space' 'and who can help'
	exits 1 'an attachment' as alice send bob -s 'no room' -m x --attach file
	says err 'the disk of the server is full' 'likewise'
	exits 0 'looking works' as bob inbox
	rm "$TMPDIR/filler"
	same "$before" "$(mail)" 'nothing was half done'
	same 0 "$(sql "SELECT (SELECT count(*) FROM town1.chunk) + (SELECT count(*) FROM town1.message m WHERE NOT EXISTS (SELECT 1 FROM town1.inbox i WHERE i.id = m.id))")" 'no row without a message, no message without a mailbox'
	exits 0 'with room again it goes on' as alice send bob -s 'room' -m x --attach file
	same $((before + 1)) "$(mail)" 'and it is there'
else
	skip 'a full disk' 'needs the right to mount'
fi

# ---- time limits: a lock that another has, a statement that takes too long ----
before=$(mail)
class=$(sql "SELECT lock_class FROM town1.room")
sql "SELECT pg_advisory_lock($class, 0), pg_sleep(60)" >/dev/null 2>&1 & holder=$!
n=0; until [ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")" -gt 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
sql "ALTER ROLE mailroom SET statement_timeout = '2s'"
exits 4 'a statement that takes too long' as alice send bob -m 'never'
says err 'statement_timeout' 'says what ended it'
says err 'try again' 'and what to do'
psql -qAtX -h "$pg" -U mailroom -d postgres -c 'SET statement_timeout = 0; ALTER ROLE mailroom RESET statement_timeout'
begin=$(date +%s)
exits 4 'a lock that another has' as alice send bob -m 'never'
says err 'locked' 'says so'
within 20 'after the ten seconds of lock_timeout'
sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()" >/dev/null
wait $holder
same "$before" "$(mail)" 'nothing of it was done'

# ---- a connection that hangs: accepted, and no word ----
mkdir hang
python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(20)
kept = []
while True: kept.append(s.accept())' "$scratch/hang/.s.PGSQL.5432" & hang=$!
n=0; until [ -S hang/.s.PGSQL.5432 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
begin=$(date +%s)
exits 1 'a server that says nothing' mr --room "postgres:host=$scratch/hang user=mailroom dbname=postgres#town1" --as bob inbox
says err 'cannot reach the room.*timeout' 'is given up'
within 12 'after five seconds'
begin=$(date +%s)
exits 0 'the next host of the list is tried' mr --room "postgres:host=$scratch/hang,$pg user=mailroom dbname=postgres#town1" --as bob inbox
within 12 'after five seconds, too'
kill $hang

# ---- a standby, and a server in recovery ----
touch "$pg/data/standby.signal"; chown --reference="$pg/data/PG_VERSION" "$pg/data/standby.signal"
server restart
exits 1 'a standby' as alice send bob -m 'to a standby'
says err 'read-only: a standby' 'is told'
says err 'host=h1,h2' 'with how to name the primary'
exits 1 'which is no place to look either' as bob inbox
mkdir other
spec2=$(sh "$top/tests/support/pg.sh" start "$scratch/other" $$)
two="postgres:host=$pg,$scratch/other user=mailroom dbname=postgres#pair"
exits 0 'a room on the primary of two hosts' mr init "$two" --name pair
mr --room "$two" doctor >out 2>&1
says out ': .*mailroom-pg[^,]* is a standby, .*other is a primary \(timeline 1\)' 'doctor tells what each host is'
silent_about out 'clock of the database' 'and nothing of clocks that agree'
env MAILROOM_TEST_CLOCK_OFFSET_MS=-5000 "$BIN" --room "$two" doctor >out 2>&1 </dev/null
says out 'clock of the database is [45] s ahead of' 'but of those that do not'
mr --room "postgres:host=$scratch/other,$scratch/other user=mailroom dbname=postgres#pair" doctor >out 2>&1
says out 'an old primary was not stopped' 'and of two primaries'
sh "$top/tests/support/pg.sh" stop "$scratch/other"
printf 'hot_standby = off\n' >>"$pg/data/postgresql.conf"
(server restart >/dev/null 2>&1 &)
n=0; until psql -h "$pg" -U mailroom -d postgres -c '' 2>&1 | grep -q 'not accepting\|starting up\|recovery' || [ $n -gt 200 ]; do n=$((n + 1)); sleep 0.05; done
exits 1 'a server in recovery' as bob inbox
says err 'starting or recovering' 'is told'
says err 'try again in a moment' 'with what to do'
rm "$pg/data/standby.signal"
server restart
same "$before" "$(mail)" 'when it is over, nothing is lost'
[ $MAILROOM_TEST_MOUNTS = no ] || { server stop; umount -l "$scratch/small"; }
finish
