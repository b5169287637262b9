# A room in PostgreSQL behind a wire that is cut at any byte.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"
town alice bob
sql "UPDATE town1.room SET settings = settings || 'Reconnect: 1s' || chr(10)" # a silent server is one that is gone after 1.5 s
mkdir proxy
[ ! -x "$BIN-full" ] || BIN=$BIN-full
PG=$pg PROXY=$scratch/proxy SCHEMA=town1 MAILROOM="postgres:host=$scratch/proxy user=mailroom dbname=postgres#town1" python3 "$top/tests/failover/wire.py"
