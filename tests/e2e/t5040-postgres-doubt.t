# A room in PostgreSQL: sends whose answer is lost, servers that are not the right one.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

export PGOPTIONS='-c synchronous_commit=local' # of psql: it must not wait for the standby that is missing
as() { who=$1; shift; env -u PGOPTIONS "$BIN" --as "$who" "$@" </dev/null; }
rule() { # rule NAMES: which standbys must confirm; a name that nobody has means that nothing is accepted
	sql "ALTER SYSTEM SET synchronous_standby_names = '$1'"; sql 'SELECT pg_reload_conf()' >/dev/null
	n=0; until [ "$(sql 'SHOW synchronous_standby_names')" = "$1" ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
}
patience() { sql "UPDATE town$towns.room SET settings = settings || 'Reconnect: $1' || chr(10)"; }
# until_waits EVENT: a session of mailroom waits for that
until_waits() {
	n=0; until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mailroom' AND wait_event = '$1'")" -gt 0 ] || [ $n -gt 200 ]; do n=$((n + 1)); sleep 0.05; done
}
state=$XDG_STATE_HOME/mailroom/postgres

# ---- the server dies before it did anything, and comes back too late ----
town alice bob
patience 1s
class=$(sql "SELECT lock_class FROM town$towns.room")
sql "SELECT pg_advisory_lock($class, 0), pg_sleep(60)" >/dev/null 2>&1 &
n=0; until [ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")" -gt 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
as alice send bob -s 'too late' -m x >sent 2>said & sender=$!
until_waits advisory
server kill
wait $sender
same 6 $? 'no server answers: in doubt'
id=$(cat sent)
says said 'kept on this machine' 'it says what happens next'
same 1 "$(ls "$state"/*/outbox | grep -c "$id")" 'the message is kept'
same 600 "$(stat -c %a "$state"/*/outbox/"$id")" 'for this user alone'
server restart
exits 3 'the next command' as alice check
says err "$id, in doubt since .*, is accepted: it was sent again" 'sends it and says so'
same "$id" "$(as bob inbox --json | jq -r .id)" 'bob has it, with that id'
same 0 "$(ls "$state"/*/outbox | wc -l)" 'nothing is kept any more'
exits 0 'why' as alice why "$id"
says out 'in doubt at .* it was accepted: it was sent again' 'tells which it was'

# ---- no standby confirms: the server has it, and does not say so; then it dies ----
town alice bob
patience 1s
rule h2
as alice send bob -s 'unconfirmed' -m x >sent 2>said & sender=$!
until_waits SyncRep
server kill
wait $sender
same 6 $? 'an unconfirmed send is in doubt'
id=$(cat sent)
rule_off() { printf "synchronous_standby_names = ''\n" >>"$pg/data/postgresql.auto.conf"; }
rule_off; server restart
exits 0 'the next command, of another agent' as bob check
says err 'accepted: the server had it' 'finds that the server had it'
same 1 "$(as bob inbox --json | grep -c .)" 'once'
exits 0 'why' as bob why "$id"
says out 'accepted: the server had it' 'tells that, too'

# ---- the rule is strict and its standby is gone: looking works, nothing is accepted, nothing is lost ----
rule h2
exits 6 'a send' as alice send bob -s 'behind the rule' -m x
says err 'it is not known' 'is in doubt'
exits 0 'looking' as bob inbox
sql 'ALTER ROLE mailroom SET synchronous_commit = off'
exits 6 'a login that does not want to wait' as alice send bob -s 'lowered' -m x
sql 'ALTER ROLE mailroom RESET synchronous_commit'
rule ''
as bob check >/dev/null 2>&1
same '1 1' "$(as bob inbox --json | jq -r .subject | grep -c 'behind the rule') $(as bob inbox --json | jq -r .subject | grep -c lowered)" 'both are there once when the rule is off'

# ---- an administrator cancels the wait for the standby: the server says success, with a warning ----
town alice bob
rule h2
as alice send bob -s 'cancelled' -m x >sent 2>said & sender=$!
until_waits SyncRep
sql "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'" >/dev/null
n=0; until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%settled%'")" -gt 0 ] || [ $n -gt 200 ]; do n=$((n + 1)); sleep 0.05; done
[ $n -le 200 ] && ok 'is no answer: it waits behind it' || not_ok 'a cancelled wait was taken for an answer'
[ ! -s sent ] && ok 'nothing is acknowledged before' || not_ok 'acknowledged without a standby'
rule ''
wait $sender
same 0 $? 'then it is accepted'
same 1 "$(as bob inbox --json | grep -c .)" 'once'

# ---- refused in the end ----
town alice bob
patience 1s
rule h2
class=$(sql "SELECT lock_class FROM town$towns.room")
sql "SELECT pg_advisory_lock($class, 0), pg_sleep(60)" >/dev/null 2>&1 &
n=0; until [ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")" -gt 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
as alice send bob -s 'to nobody' -m x >sent 2>said & sender=$!
until_waits advisory
server kill
wait $sender
same 6 $? 'in doubt again'
rule_off; server restart
XDG_STATE_HOME=$scratch/elsewhere as alice prune bob --force >/dev/null 2>&1
exits 3 'the next command' as alice check
says err 'refused: a recipient no longer exists' 'says that it was refused'
exits 0 'why' as alice why "$(cat sent)"
says out 'refused: a recipient no longer exists' 'tells it'

# ---- a backup is put back ----
town alice bob
as alice send bob -s 'before the backup' -m x >/dev/null
server stop; cp -a "$pg/data" "$pg/backup"; server restart
as alice send bob -s 'after it' -m x >/dev/null
as alice send bob -s 'and once more' -m x >/dev/null
server stop; rm -rf "$pg/data"; mv "$pg/backup" "$pg/data"; server restart
exits 4 'a server that lacks what was acknowledged' as bob inbox
says err 'lacks mail that was acknowledged here' 'is refused'
says err "remove .*/postgres/.*/seen" 'with what to do'
exits 0 'a machine that does not know better is served' env XDG_STATE_HOME="$scratch/elsewhere" "$BIN" --as bob inbox
rm "$state"/*/seen
exits 0 'and this one, after that' as bob inbox
# ---- a copy in another database ----
sql 'CREATE DATABASE copy'
pg_dump -h "$pg" -U mailroom -n "town$towns" postgres | psql -qX -h "$pg" -U mailroom copy >/dev/null 2>&1
exits 4 'a copy of the room' mr --room "postgres:host=$pg user=mailroom dbname=copy#town$towns" --as bob inbox
says err 'is not the database that was used from here' 'is noticed'
finish
