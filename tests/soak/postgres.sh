#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/soak/postgres.sh MESSAGES - a room in PostgreSQL with retention in which so many messages come and go in twelve equal rounds: sends by
# batches, drains, work that is claimed and done, retention. After the fourth round it is full; from then on no table or index may grow by a
# third, and autovacuum must keep up with the busy tables. The days that retention asks for are given to it as ids. Prints TAP.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
messages=${1:-1000000} rounds=12
each=$((messages / rounds))
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$bin/pgbench" ] || { echo 'ok 1 - a soak of a room in PostgreSQL # skip no server is installed'; echo 1..1; exit 0; }
BIN=${DEVBIN:-$top/build/dev/mailroom}; [ ! -x "$BIN-full" ] || BIN=$BIN-full
work=$(mktemp -d "${TMPDIR:-/tmp}/mailroom-soak-pg.XXXXXX") || exit 1
chmod 755 "$work"
trap 'sh "$top/tests/support/pg.sh" stop "$work/server" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/server"
spec=$(sh "$top/tests/support/pg.sh" start "$work/server" $$) || exit 1
export MAILROOM="$spec#town" HOME="$work" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" MAILROOM_DATA="$top/share/mailroom"
unset MAILROOM_AGENT CLAUDE_CODE_SESSION_ID CODEX_THREAD_ID GEMINI_SESSION_ID
psql() { command psql -qAtX -h "$work/server" -U mailroom -d postgres "$@"; }
# A short soak is over before a server that looks every ten seconds has looked.
psql -c "ALTER SYSTEM SET autovacuum_naptime = '1s'" -c 'SELECT pg_reload_conf()' >/dev/null
cd "$work" || exit 1
must() { "$@" >said 2>&1 </dev/null || { cat said; echo "Bail out! $*"; exit 1; }; }
must "$BIN" init "$MAILROOM" --name town
for agent in s a b c d; do must "$BIN" register $agent; done
must "$BIN" --as s queue create work
for keep in Archive Sent Done Dead; do must "$BIN" --as s config set Keep-$keep $((each / 4)); done
psql -c "UPDATE town.record SET at = at - interval '3 days' WHERE kind = 'setting'"

# The statements that the driver sends for a claim and for its end.
cat >work.sql <<-'SQL'
	SELECT md5(random()::text) AS token \gset
	SELECT rc AS got, id AS work, attempt FROM town.claim('work', 'a', 0, false, 0, 'l', 600000, ':token', '', 'host', 0, 0, 0, '', false) \gset
	\if :got = 0
	SELECT * FROM town.claim_settle(':token', ':work', :attempt, 'd', NULL, NULL, 0, false);
	\endif
SQL
# Retention as if days had passed: nothing is too young.
retain() {
	for shelf in archive:Keep-Archive sent:Keep-Sent done:Keep-Done dead:Keep-Dead; do
		n=0
		while [ $n -lt $((each / 100 + 20)) ]; do
			n=$((n + 1))
			[ "$(psql -c "SELECT town.retain_shelf('${shelf%%:*}', '${shelf#*:}', '$((each / 4))', now() + interval '2 days')")" != 0 ] || break
		done
	done
}
sizes() { # sizes ROUND: lines "ROUND relation bytes"
	psql -F ' ' -c "SELECT $1, c.relname, pg_relation_size(c.oid) + CASE c.relkind WHEN 'r' THEN coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) ELSE 0 END
	    FROM pg_class c WHERE c.relnamespace = 'town'::regnamespace AND c.relkind IN ('r', 'i')" >>sizes
}
# Autovacuum looks in its own time, later on a busy machine: what is measured is what is left when it has looked.
vacuumed() {
	n=0
	while [ $n -lt 30 ]; do
		n=$((n + 1))
		sleep 1
		[ "$(psql -c "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = 'town' AND n_dead_tup > 500 + 0.2 * n_live_tup")" != 0 ] || break
	done
}
: >sizes
round=0
while [ $round -lt $rounds ]; do
	round=$((round + 1))
	awk -v n="$each" -v r=$round 'BEGIN { for (i = 0; i < n; i++) { to = i % 3 == 0 ? "queue:work" : substr("abcd", i % 4 + 1, 1); printf "{\"to\":\"%s\",\"subject\":\"m%d-%d\",\"body\":\"%0200d\"}\n", to, r, i, i } }' >batch
	"$BIN" --as s send --batch <batch >said 2>&1 || { tail -n 3 said; echo 'Bail out! sends failed'; exit 1; }
	for agent in a b c d; do "$BIN" --as $agent drain --json --limit "$each" >/dev/null 2>said </dev/null || { cat said; echo 'Bail out! a drain failed'; exit 1; }; done
	"$bin/pgbench" -n -h "$work/server" -U mailroom -c 4 -t $((each / 12 + 1)) -f work.sql postgres >said 2>&1 || { tail -n 5 said; echo 'Bail out! claims failed'; exit 1; }
	retain
	vacuumed
	sizes $round
done
n=0 bad=0
tell() { n=$((n + 1)); if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=1; fi; }
left=$(psql -c "SELECT (SELECT count(*) FROM town.ready) + (SELECT count(*) FROM town.claim) + (SELECT count(*) FROM town.inbox WHERE flags & 1 = 0)")
tell "$left" "$((each * rounds)) messages came and went, $left are left unread or undone"
kept=$(psql -c 'SELECT count(*) FROM town.message')
tell $((kept > each * 3)) "$kept messages are kept"
# From the fourth round on; a table of less than a MiB is as large as the busiest moment of one round, by chance.
awk '$1 > 4 && $1 <= 8 && $3 > before[$2] { before[$2] = $3 } $1 > 8 && $3 > after[$2] { after[$2] = $3 }
	END { for (r in after) if (after[r] > 1048576 && after[r] > 1.3 * before[r]) printf "%s grew from %d to %d\n", r, before[r], after[r] }' sizes >grown
sed 's/^/# /' grown
tell "$(grep -c . grown)" "no table or index grew by a third between the fourth and the last round"
for table in inbox ready claim message archive finished; do
	vacuums=$(psql -c "SELECT autovacuum_count FROM pg_stat_user_tables WHERE schemaname = 'town' AND relname = '$table'")
	[ "$vacuums" -gt 0 ] || echo "# autovacuum never looked at $table"
done
late=$(psql -c "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = 'town' AND relname IN ('inbox', 'ready', 'claim') AND n_dead_tup > $each / 2 + 2000")
tell "$late" "autovacuum kept up with the busy tables"
echo "# $(psql -F ' ' -c "SELECT string_agg(relname || ' ' || pg_size_pretty(pg_total_relation_size(relid)), ', ' ORDER BY pg_total_relation_size(relid) DESC) FROM pg_stat_user_tables WHERE schemaname = 'town' AND pg_total_relation_size(relid) > 200000")"
echo "1..$n"
exit $bad
