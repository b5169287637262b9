# A room in PostgreSQL, day by day: doctor, stats, retention, mail from and to a folder, a pool, a backup that is restored and used.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }

# ---- from a folder and back, as often as one likes ----
mkdir old && mr init old --name old >/dev/null 2>&1
native="$scratch/old/.mailroom"
for who in alice bob; do env XDG_STATE_HOME="$scratch/user-state" "$BIN" --room "$native" register $who >/dev/null 2>&1 </dev/null; done
for n in 1 2 3; do "$BIN" --room "$native" --as alice send bob -s "letter $n" -m "text $n" >/dev/null </dev/null; done
first=$("$BIN" --room "$native" --as bob inbox --json </dev/null | head -n 1 | jq -r .id)
for word in read archive; do "$BIN" --room "$native" --as bob $word "$first" >/dev/null 2>&1 </dev/null; done
town alice bob
list() { "$BIN" --room "$1" --as bob search letter --json </dev/null 2>/dev/null | jq -c '[.id, .from, .subject, .date]' | sort -u; }
exits 0 'export from a folder' mr --room "$native" export --to "$MAILROOM"
same "$(list "$native")" "$(list "$MAILROOM")" 'the database has the same mail'
exits 0 'once more' mr --room "$native" export --to "$MAILROOM"
same "$(list "$native")" "$(list "$MAILROOM")" 'adds nothing'
mkdir second && mr init second --name second >/dev/null 2>&1
exits 0 'and back, to another folder' mr export --to "$scratch/second/.mailroom"
same "$(list "$native")" "$(list "$scratch/second/.mailroom")" 'which has the same'
exits 0 'twice' mr export --to "$scratch/second/.mailroom"
same "$(list "$native")" "$(list "$scratch/second/.mailroom")" 'as well'
same 3 "$(list "$native" | grep -c .)" 'all three'

# ---- doctor, stats ----
town alice bob
as alice send bob -m x >/dev/null
exits 0 'doctor' mr doctor
says out 'a message to itself' 'proves both directions by a message'
same 0 "$(sql "SELECT count(*) FROM town$towns.record WHERE kind = 'probe'")" 'and leaves nothing'
exits 0 'stats' mr stats --json
same true "$(jq '[.disk[] | .what] | (index("table message") != null) and (index("archive") != null) and (index("seconds of the oldest transaction") != null)' out)" 'has shelves, tables and the oldest transaction'
sql "BEGIN; SELECT count(*) FROM town$towns.message; SELECT pg_sleep(3)" >/dev/null &
sleep 1.2
exits 0 'stats beside an open transaction' mr stats --json
wait $!
[ "$(jq '.disk[] | select(.what == "seconds of the oldest transaction") | .files' out)" -ge 1 ] && ok 'tells its age' || { note <out; not_ok 'tells its age'; }

# ---- retention ----
town alice bob
exits 0 'a setting of the room' mr config set Keep-Archive 30d
exits 4 'what is none' mr config set Keep-Archive soon
exits 0 'is told by where' mr where
says out 'Keep-Archive: 30d' 'with its value'
file() { as bob read "$1" >/dev/null; as bob archive "$1" >/dev/null; }
old() { # old ID: makes the message 90 days older
	fresh=$(printf '%s%s' "$(python3 -c "
a='0123456789abcdefghjkmnpqrstvwxyz'; n=0
for c in '$1'[:10]: n=n*32+a.index(c)
n-=90*86400000; s=''
for i in range(10): s=a[n%32]+s; n//=32
print(s, end='')")" "$(printf %s "$1" | cut -c11-)")
	for table in message archive inbox dead; do sql "UPDATE town$towns.$table SET id = '$fresh' WHERE id = '$1'"; done
	echo "$fresh"
}
now=$(as alice send bob -s young -m x | tail -n 1); file "$now"
gone=$(as alice send bob -s gone -m x | tail -n 1); file "$gone"; gone=$(old "$gone")
kept=$(as alice send bob -s pinned -m x | tail -n 1); file "$kept"; kept=$(old "$kept")
sql "UPDATE town$towns.archive SET flags = flags | 4 WHERE id = '$kept'; UPDATE town$towns.message SET sender = NULL"
unread=$(old "$(as alice send bob -s unread -m x | tail -n 1)")
archived() { sql "SELECT count(*) FROM town$towns.archive WHERE id = '$1'"; }
as alice send bob -m tick >/dev/null
same 1 "$(archived "$gone")" 'on its first day a setting removes nothing'
sql "UPDATE town$towns.record SET at = at - interval '2 days' WHERE kind IN ('setting', 'kept')"
exits 0 'any command that may change the room looks' mr who
n=0; until [ "$(archived "$gone")" = 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
same 0 "$(archived "$gone")" 'then what is too old goes'
same 0 "$(sql "SELECT count(*) FROM town$towns.message WHERE id = '$gone'")" 'with its text'
same 11 "$(archived "$now")$(archived "$kept")" 'what is young or pinned stays'
same 1 "$(sql "SELECT count(*) FROM town$towns.inbox WHERE id = '$unread'")" 'and what is unread'
exits 0 'why' as bob why "$gone"
says out 'removed from the archives by Keep-Archive: 30d' 'tells the setting'
# a watcher, which is never closed; sizes and numbers; what the command does is the server's to decide
aged() { # aged SETTING VALUE: as if the owner had set it two days ago, and nothing was looked for since
	mr config set "$1" "$2" >/dev/null; sql "UPDATE town$towns.record SET at = at - interval '2 days' WHERE kind IN ('setting', 'kept')"
}
gone=$(as alice send bob -s 'gone too' -m x | tail -n 1); file "$gone"; gone=$(old "$gone")
aged Keep-Archive 30d
"$BIN" --as bob patrol --watch >watch.out 2>&1 </dev/null & watcher=$!
n=0; until [ "$(archived "$gone")" = 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sql "SELECT town$towns.poke('{bob}', NULL, NULL)" >/dev/null; sleep 0.1; done
same 0 "$(archived "$gone")" 'patrol --watch looks, too'
kill $watcher; wait $watcher 2>/dev/null
for n in 1 2 3 4; do id=$(as alice send bob -m "$(printf '%0400d' $n)" | tail -n 1); file "$id"; old "$id" >/dev/null; done
n=$(sql "SELECT count(*) FROM town$towns.archive")
aged Keep-Archive 1K; mr who >/dev/null
same 3 "$((n - $(sql "SELECT count(*) FROM town$towns.archive")))" 'by size what is too much goes'
aged Keep-Archive all; for n in 1 2; do id=$(as alice send bob -m "$n" | tail -n 1); file "$id"; old "$id" >/dev/null; done
n=$(sql "SELECT count(*) FROM town$towns.archive")
mr who >/dev/null
same "$n" "$(sql "SELECT count(*) FROM town$towns.archive")" 'all is all'
aged Keep-Archive 1; mr doctor >/dev/null
same "$n" "$(sql "SELECT count(*) FROM town$towns.archive")" 'a command that only tells removes nothing'
sql "INSERT INTO town$towns.sendkey VALUES ('alice', 'old', 'x', 'x', now() - interval '8 days'), ('alice', 'new', 'x', 'x', now())"
mr who >/dev/null
same "$now" "$(sql "SELECT id FROM town$towns.archive WHERE flags & 4 = 0")" 'by number what is too much goes'
same new "$(sql "SELECT key FROM town$towns.sendkey WHERE id = 'x'")" 'and with it keys that nobody repeats any more'
exits 0 'the setting is taken back' mr config unset Keep-Archive

# ---- a pool ----
if command -v pgbouncer >/dev/null 2>&1; then
	mkdir pool
	cat >pool/ini <<-INI
		[databases]
		postgres = host=$pg dbname=postgres
		[pgbouncer]
		listen_addr =
		unix_socket_dir = $scratch/pool
		listen_port = 5432
		auth_type = any
		pool_mode = transaction
		logfile = $scratch/pool/log
		ignore_startup_parameters = extra_float_digits
	INI
	sed -i 's/^postgres = .*/& user=mailroom/' pool/ini
	chmod 755 "$scratch" . pool; [ "$(id -u)" -ne 0 ] || chown -R postgres: pool
	if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups pgbouncer -q pool/ini </dev/null & else pgbouncer -q pool/ini </dev/null & fi
	pool=$!
	n=0; until [ -S pool/.s.PGSQL.5432 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
	town alice bob
	direct=$MAILROOM
	MAILROOM="postgres:host=$scratch/pool user=mailroom dbname=postgres#town$towns"
	exits 0 'send through a pool' as alice send bob -m pooled
	exits 0 'inbox' as bob inbox
	exits 0 'recv' as bob recv --json
	exits 0 'done' as bob done "$(jq -r .token out)"
	as alice send bob -m again >/dev/null
	exits 4 'what needs a session of its own is refused' as bob drain
	says err 'a pool is between' 'with the reason'
	says err 'MAILROOM_POOL' 'and what to do'
	export MAILROOM_POOL="host=$scratch/pool user=mailroom dbname=postgres" MAILROOM=$direct
	MAILROOM_DEBUG=1 as alice send bob -m short >out 2>err
	same 0 $? 'with MAILROOM_POOL short commands use the pool'
	says err 'round trips through a pool' 'and say so'
	exits 0 'drain goes the direct way' as bob drain
	exits 3 'wait, too' as alice wait --timeout 1s
	kill $pool
	exits 0 'a pool that is away is not missed' as alice send bob -m direct
	unset MAILROOM_POOL
else
	skip 'a pool' 'pgbouncer is not installed (Debian: pgbouncer)'
fi

# ---- a backup, restored and used ----
town alice bob
as alice send bob -s 'in the backup' -m x >/dev/null
pg_dump -h "$pg" -U mailroom -n "town$towns" postgres >backup.sql 2>err || { note <err; not_ok 'pg_dump'; }
psql -qAtX -h "$pg" -U mailroom -d postgres -c 'CREATE DATABASE restored' && psql -qAtX -h "$pg" -U mailroom -d restored -f backup.sql >out 2>&1
copy="postgres:host=$pg user=mailroom dbname=restored#town$towns"
XDG_STATE_HOME=$scratch/elsewhere exits 0 'a restored room is used' "$BIN" --room "$copy" --as bob inbox
says out 'in the backup' 'with its mail'
XDG_STATE_HOME=$scratch/elsewhere exits 0 'and written to' "$BIN" --room "$copy" --as bob send alice -m y
finish
