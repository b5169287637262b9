# SPDX-License-Identifier: MIT
# pg.sh - for e2e scripts about rooms in PostgreSQL, after tap.sh: a server of its own, $spec without a schema, and the command that has the
# driver. Without a server on this machine the script ends here, and says so.
BIN=$DEVBIN
pg=$(mktemp -d "${TMPDIR:-/tmp}/mailroom-pg.XXXXXX") || exit 1
trap 'sh "$top/tests/support/pg.sh" stop "$pg" 2>/dev/null; rm -rf "$pg"; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
spec=$(sh "$top/tests/support/pg.sh" start "$pg" $$ 2>err) || {
	[ $? -eq 3 ] || { cat err; echo 'Bail out! the server does not start'; exit 1; }
	echo 'ok 1 - rooms in PostgreSQL # skip no server is installed (Debian: postgresql)'
	echo 1..1
	exit 0
}
"$BIN" --version | grep -q libpq || [ -x "${BIN%/*}/mailroom-full" ] || {
	echo 'ok 1 - rooms in PostgreSQL # skip mailroom-full was built without libpq (Debian: libpq-dev)'
	echo 1..1
	exit 0
}
server() { sh "$top/tests/support/pg.sh" "$1" "$pg"; } # server stop|kill|restart
sql() { psql -qAtX -h "$pg" -U mailroom -d postgres -c "$1"; }
# town AGENT...: a fresh room in $MAILROOM with these agents.
towns=0
town() {
	towns=$((towns + 1))
	export MAILROOM="$spec#town$towns"
	"$BIN" init "$MAILROOM" --name town >out 2>err </dev/null || { cat err; echo 'Bail out! init failed'; exit 1; }
	for agent; do XDG_STATE_HOME=$scratch/user-state "$BIN" register "$agent" >/dev/null 2>err </dev/null || { cat err; echo "Bail out! register $agent failed"; exit 1; }; done
}
