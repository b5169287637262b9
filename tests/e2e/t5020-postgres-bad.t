# A room in PostgreSQL when things go wrong: a clear error, the right exit code, nothing half done.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }
town alice bob
as alice send bob -m first >/dev/null

# ---- names ----
exits 4 'a password in a spec' mr --room "$spec password=geheim#town1" inbox
says err 'password does not belong' 'is refused'
silent_about err geheim 'and not repeated'
exits 4 'in a URI, too' mr --room 'postgres://alice:geheim@db.example/fleet#town1' inbox
silent_about err geheim 'nor there'
exits 4 'no address' mr --room 'postgres://[#town' inbox
exits 4 'a schema that is none' mr --room "$spec#Robert'); DROP TABLE students;--" inbox
says err 'cannot be the schema' 'is said'
exits 4 'nor public' mr init "$spec#public"
exits 4 'nor with --sync' mr init "$spec#other" --sync none
exits 4 'a folder needs no upgrade' mr init --upgrade .

# ---- no room, another's schema, other versions ----
exits 5 'no room there' mr --room "$spec#nowhere" inbox
says err 'mailroom init' 'says what to do'
sql 'CREATE SCHEMA theirs; CREATE TABLE theirs.room (x int)'
exits 4 'the schema of another application' mr --room "$spec#theirs" inbox
says err 'another application' 'is said'
exits 4 'nor is a room made in it' mr init "$spec#theirs"
same 1 "$(sql "SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace AND relkind = 'r'")" 'nothing was added to it'
sql 'CREATE SCHEMA empty'
exits 0 'an empty schema, made by an administrator, is used' mr init "$spec#empty"
sql 'UPDATE town1.room SET format = 99'
exits 4 'a newer format' as bob inbox
says err 'newer mailroom' 'is refused'
exits 4 'also for an upgrade' mr init --upgrade "$MAILROOM"
sql 'UPDATE town1.room SET format = 1; DELETE FROM town1.migration'
exits 4 'an older one' as bob inbox
says err 'init --upgrade' 'says what to do'
sql 'INSERT INTO town1.migration (n) VALUES (1); DROP FUNCTION town1.scan'
exits 4 'a function is missing' as bob inbox
exits 0 'upgrade brings it back' mr init --upgrade "$MAILROOM"
exits 0 'and the mail is there' as bob inbox
same 1 "$(as bob inbox --json | grep -c .)" 'all of it'
exits 5 'nothing to upgrade' mr init --upgrade "$spec#nowhere"
sql 'DROP TABLE town1.actor, town1.chunk; ALTER TABLE town1.message DROP content; ALTER TABLE town1.room DROP users; ALTER TABLE town1.message DROP proven; ALTER TABLE town1.record DROP login; ALTER TABLE town1.life DROP door; DELETE FROM town1.migration WHERE n > 1'
exits 0 'a room of the first step is brought up to date' mr init --upgrade "$MAILROOM"
same 6 "$(sql 'SELECT max(n) FROM town1.migration')" 'step by step'
same 3 "$(sql 'SELECT format FROM town1.room')" 'and closed to programs that send in another way'
exits 0 'works' as alice send bob -m second
same 2 "$(as bob inbox --json | grep -c .)" 'and kept its mail'
sql 'INSERT INTO town1.migration (n) VALUES (99)'
exits 4 'a newer room is not brought back to what it was' mr init --upgrade "$MAILROOM"
says err 'newer mailroom' 'is said'
sql 'DELETE FROM town1.migration WHERE n = 99'

# ---- logins ----
sql "CREATE ROLE closed LOGIN PASSWORD 'x'; CREATE ROLE stranger LOGIN"
printf 'local all closed scram-sha-256\nlocal all all trust\n' >"$pg/data/pg_hba.conf"
sql 'SELECT pg_reload_conf()' >/dev/null
sleep 0.3
there="postgres:host=$pg dbname=postgres"
exits 4 'no password' mr --room "$there user=closed#town1" inbox
says err 'pgpass' 'says where it belongs'
printf '*:*:*:closed:wrong\n' >"$HOME/.pgpass"; chmod 600 "$HOME/.pgpass"
exits 4 'a wrong password' mr --room "$there user=closed#town1" inbox
says err 'refuses the login' 'is said'
exits 4 'a login without rights' mr --room "$there user=stranger#town1" inbox
says err 'init --roles' 'says what to do'
exits 4 'may not make a room' mr init "$there user=stranger#mine"
says err 'CREATE SCHEMA mine AUTHORIZATION' 'says what an administrator does'
exits 4 'nobody of that name' mr --room "$there user=nobody_at_all#town1" inbox
exits 5 'no database' mr --room "postgres:host=$pg user=mailroom dbname=nowhere#town1" inbox
says err 'createdb' 'says how'

# ---- read-only, limits, a lock in the way ----
sql "ALTER ROLE stranger SET default_transaction_read_only = on; GRANT USAGE ON SCHEMA town1 TO stranger; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA town1 TO stranger"
begin=$(date +%s)
exits 1 'a read-only server' mr --room "$there user=stranger#town1" --as alice send bob -m x
says err 'read-only' 'is said'
sql 'ALTER ROLE stranger RESET default_transaction_read_only'
exits 0 'with those rights another login may send' mr --room "$there user=stranger#town1" --as alice send bob -m 'by another login'
sql "ALTER ROLE stranger SET synchronous_commit = off"
exits 0 'a role that lowered it' mr --room "$there user=stranger#town1" --as alice send bob -m 'durable all the same'
sql 'ALTER ROLE mailroom SET statement_timeout = 1'
"$BIN" --as alice send bob -m timed >out 2>err </dev/null; code=$?
case $code in 0) ok 'a statement timeout: it was quick enough' ;; 4) says err 'cancelled|timeout|busy' 'a statement timeout is said' ;; *) note <err; not_ok "a statement timeout: exit $code" ;; esac
psql -qAtX -h "$pg" -U mailroom -d postgres -c 'SET statement_timeout = 0; ALTER ROLE mailroom RESET statement_timeout'

# ---- copies: the rule asks for a standby that is not there ----
sql "ALTER SYSTEM SET synchronous_standby_names = 'h2'"; sql 'SELECT pg_reload_conf()' >/dev/null
sleep 0.3
exits 0 'looking works without the standby' mr where
says out "no standby of 'h2' is there" 'and says that nothing is accepted'
sql 'ALTER SYSTEM RESET synchronous_standby_names'; sql 'SELECT pg_reload_conf()' >/dev/null
sql "CREATE ROLE keeper LOGIN; GRANT CREATE ON DATABASE postgres TO keeper"
exits 0 'a room of a login without rights on statistics' mr init "$there user=keeper#kept"
sql "ALTER SYSTEM SET synchronous_standby_names = 'h2'"; sql 'SELECT pg_reload_conf()' >/dev/null
sleep 0.3
exits 0 'can be asked, too' mr --room "$there user=keeper#kept" where
says out 'GRANT pg_monitor' 'and says why it does not know'
sql 'ALTER SYSTEM RESET synchronous_standby_names'; sql 'SELECT pg_reload_conf()' >/dev/null
sleep 0.3

# ---- no server, restarts ----
n=$(as bob inbox --json | grep -c .)
server restart
exits 0 'a command after a restart' as alice send bob -m 'after a restart'
server kill
begin=$(date +%s)
exits 1 'no server' as alice send bob -m lost
says err 'cannot reach the room' 'is said'
[ $(($(date +%s) - begin)) -lt 5 ] && ok 'at once' || not_ok 'took too long'
server restart 2>/dev/null
same $((n + 1)) "$(as bob inbox --json | grep -c .)" 'nothing was half done'

# ---- the connection is cut while the server works on a send ----
town alice bob
class=$(sql "SELECT lock_class FROM town$towns.room")
sql "SELECT pg_advisory_lock($class, 0), pg_sleep(3)" >/dev/null &
sleep 0.5
as alice send bob -m 'asked for again' >sent 2>said &
stream=$!
n=0
until [ "$(sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'mailroom' AND wait_event_type = 'Lock'")" -gt 0 ] || [ $n -gt 100 ]; do
	n=$((n + 1)); sleep 0.05
done
wait $stream
same 0 $? 'the command connects anew and asks again'
says said 'was away' 'and says so'
same 1 "$(as bob inbox --json | grep -c .)" 'the message is there once'

# ---- a function that says nothing: no success ----
town alice bob
"$BIN" --as alice queue create work >/dev/null 2>&1 </dev/null
as alice send queue:work bob -m hi >/dev/null 2>&1
sql "UPDATE pg_proc SET prosrc = 'BEGIN rc := NULL; END' WHERE pronamespace = 'town$towns'::regnamespace AND proname IN ('claim', 'hold', 'mark')"
exits 5 'a claim without an answer is none' as bob recv queue:work
exits 3 'nor is a hold' as bob recv
exits 5 'nor a mark' as bob mark read "$(as bob inbox --json | jq -r .id)"

# ---- the server is killed under a stream of sends: each answer counts, once ----
town alice bob
(for n in $(seq 1 60); do printf '{"to":"bob","body":"n%s","key":"n%s"}\n' $n $n; sleep 0.02; done) | "$BIN" --as alice send --batch --json >sent 2>err &
stream=$!
sleep 0.6
server kill; server restart 2>/dev/null
wait $stream
as bob inbox --limit 1000 --json >got
jq -r .id got | sort >got.ids
jq -r 'select(.id) | .id' sent 2>/dev/null | sort >acked.ids
same '' "$(comm -23 acked.ids got.ids)" "of $(wc -l <acked.ids) acknowledged none is lost"
same '' "$(jq -r .subject got | sort | uniq -d)" 'none is there twice'
[ "$(wc -l <acked.ids)" -ge 20 ] && ok 'and the stream went on after the crash' || { note <err; not_ok 'the stream ended'; }
finish
