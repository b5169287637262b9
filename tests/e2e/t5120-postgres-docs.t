# The commands of docs/FLEET.md as they stand there, from the top of the page to its end. The hosts of the page are loopback addresses of a
# network of its own, which takes root.
# once: the room is a server's
if [ -z "${MAILROOM_TEST_NET-}" ]; then
	if [ "$(id -u)" -eq 0 ] && unshare -mn true 2>/dev/null; then exec env MAILROOM_TEST_NET=yes unshare -mn sh "$0"; fi
	echo 'ok 1 - the commands of docs/FLEET.md # skip needs the right to make a network namespace'
	echo 1..1
	exit 0
fi
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"
ip link set lo up
printf '127.0.0.1 localhost db.example db1.example\n127.0.0.2 db2.example\n' >hosts
mount --bind hosts /etc/hosts || { echo 'Bail out! no mounts'; exit 1; }
printf "listen_addresses = '127.0.0.1'\n" >>"$pg/data/postgresql.conf"
server restart
sql 'CREATE ROLE admin SUPERUSER LOGIN'
mkdir -p inst/bin inst/libexec/mailroom page
cp "$BIN" inst/bin/mailroom
[ ! -x "$BIN-full" ] || cp "$BIN-full" inst/libexec/mailroom/mailroom-full
PATH=$scratch/inst/bin:$PATH PGHOST=db.example PGUSER=admin PGDATABASE=postgres
export PATH PGHOST PGUSER PGDATABASE
awk '/^```sh$/ { code = 1; next } /^```/ { code = 0 } code' "$top/docs/FLEET.md" >FLEET.sh
awk '/^```sh$/ { skip = 1; next } /^```/ { if (skip) skip = 0; else code = !code; next } code' "$top/docs/FLEET.md" >hidden
same '' "$(cat hidden)" 'every command is in a block that is run'
same 12 "$(grep -c '^mailroom' FLEET.sh)" 'these are the commands of the page'
(cd page && sh -eu ../FLEET.sh) >page.out 2>&1
code=$?
if [ $code -eq 0 ]; then ok 'the page runs as it stands'; else note <page.out; not_ok "the page runs as it stands (exit $code)"; fi
says page.out 'ONE COPY' 'init and doctor say how many copies there are'
says page.out 'a message to itself was accepted' 'doctor proves both directions'
says page.out 'table message' 'stats has the tables'
same town "$(psql -qAtX -d restored -c 'SELECT name FROM town.room')" 'the backup was put back'
cd page/laptop
env -u PGDATABASE mailroom carry >/dev/null 2>&1 </dev/null
same 'stored here, carried when the server answers' "$(mailroom --room 'postgres://admin@db.example/fleet#town' --as alice inbox --json </dev/null | jq -r .subject)" 'mail of the laptop arrives'
finish
