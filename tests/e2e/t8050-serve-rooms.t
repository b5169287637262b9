# SPDX-License-Identifier: MIT
# once
# The server in every kind of room: a page hears of mail at once, by what the room tells and not by looking again and again.
. "$(dirname "$0")/../lib/tap.sh"
serve=$(dirname "$DEVBIN")/mailroom-serve
[ -x "$serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }
BIN=$DEVBIN

pids=
trap 'kill $pids 2>/dev/null; [ -z "$pg" ] || { sh "$top/tests/support/pg.sh" stop "$pg"; rm -rf "$pg"; } 2>/dev/null; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
pg=
until_says() { # until_says FILE PATTERN [N]: N lines of it, within 5 s
	i=0; while [ $i -lt 100 ] && [ "$(grep -c "$2" "$1")" -lt "${3:-1}" ]; do sleep 0.05; i=$((i + 1)); done
}
begin() { # a server of $MAILROOM, and a page that listens: events
	rm -f link jar
	"$serve" serve --listen 127.0.0.1:0 >link 2>serve.err </dev/null & server=$!
	i=0; while [ $i -lt 200 ] && ! [ -s link ]; do sleep 0.05; i=$((i + 1)); done
	url=$(sed 's|/login.*||' link)
	curl -s -m 20 -c jar -o /dev/null "$(cat link)"
	: >events
	curl -s -N -m 100 -b jar "$url/events" >events & page=$!
	pids="$server $page"
	until_says events retry
	sleep 1.5 # until the watch is armed, and what was there has been told
}
end() { kill $page $server 2>/dev/null; wait $page $server 2>/dev/null; pids=; }
ms() { date +%s%3N; }
changes() { grep -c '^event: change' events; }

for kind in maildir teams chipset handoff workspace; do
	rm -rf r .mailroom && mkdir -p r/blue r/alice/.mailbox/inbox r/bob/.mailbox/inbox r/alice/.mailbox/scratch r/bob/.mailbox/scratch
	case $kind in
	maildir) MAILROOM=$scratch/.mailroom; "$BIN" init --name town >/dev/null 2>&1 </dev/null; export MAILROOM; for n in alice bob; do user register $n >/dev/null 2>&1; done ;;
	teams)
		MAILROOM=teams:$scratch/r/blue
		printf '{\n  "name": "blue",\n  "members": [\n    { "name": "alice" },\n    { "name": "bob" }\n  ]\n}' >r/blue/config.json ;;
	handoff) MAILROOM=handoff:$scratch/r/hand; for n in alice bob; do mr --room "$MAILROOM" register $n >/dev/null; done ;;
	*) MAILROOM=$kind:$scratch/r ;;
	esac
	export MAILROOM
	before=$(mr --as alice send bob -m 'the first')
	begin
	began=$(ms)
	mr --as alice send bob -s 'the second' -m 'the second' >id 2>/dev/null
	until_says events '"the second"'
	took=$(($(ms) - began))
	same 1 "$(sed -n 's/^data: //p' events | jq -r 'select(.body? != null or .subject? != null) | .subject' | grep -c 'the second')" "$kind: mail is told"
	note <<-TEXT
		after $took ms, the send included
	TEXT
	n=$(changes)
	mr --as bob read "$before" >/dev/null 2>&1
	until_says events '^event: change' $((n + 1))
	same yes "$([ "$(changes)" -gt "$n" ] && echo yes)" "$kind: a page hears that a message was read"
	sleep 2; n=$(changes); sleep 3
	same "$n" "$(changes)" "$kind: nothing is told while nothing happens"
	same 1 "$(ls -l "/proc/$server/fd" | grep -c inotify)" "$kind: one inotify set"
	end
done
[ "$kind" = workspace ] # the last one ran

# Files that the peer writes itself, and a mailbox that comes while the page is open.
rm -rf r && mkdir -p r/blue/inboxes
printf '{ "name": "blue", "members": [ { "name": "alice" }, { "name": "bob" } ] }' >r/blue/config.json
export MAILROOM=teams:$scratch/r/blue
begin
printf '[{"from":"alice","text":"by hand","timestamp":"%s","read":false}]' "$(date -u +%Y-%m-%dT%H:%M:%S.000Z)" >r/bob.json && mv r/bob.json r/blue/inboxes/bob.json
until_says events 'by hand'
says events 'by hand' 'teams: what another program wrote is told'
end

# ---- PostgreSQL ----
pg=$(mktemp -d "${TMPDIR:-/tmp}/mailroom-pg.XXXXXX")
if ! sh "$top/tests/support/pg.sh" start "$pg" $$ >spec 2>err; then skip 'rooms in PostgreSQL' 'no server is installed (Debian: postgresql)'; finish; fi
if ! "$BIN" --version | grep -q libpq && ! [ -x "${BIN%/*}/mailroom-full" ]; then skip 'rooms in PostgreSQL' 'built without libpq (Debian: libpq-dev)'; finish; fi
export MAILROOM="$(cat spec)#town"
sql() { psql -qAtX -h "$pg" -U mailroom -d postgres -c "$1"; }
mr init "$MAILROOM" --name town >/dev/null 2>&1
for n in alice bob; do user register $n >/dev/null 2>&1; done
before=$(mr --as alice send bob -m 'the first' 2>/dev/null)
begin
began=$(ms)
mr --as alice send bob -s 'the second' -m x >/dev/null 2>&1
until_says events '"the second"'
says events '"the second"' 'postgres: mail is told'
note <<-TEXT
	after $(($(ms) - began)) ms, the send included
TEXT
same 1 "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 0 AND objsubid = 2 AND mode = 'ExclusiveLock'")" 'postgres: senders see that a page waits'
n=$(changes)
mr --as bob read "$before" >/dev/null 2>&1
until_says events '^event: change' $((n + 1))
same yes "$([ "$(changes)" -gt "$n" ] && echo yes)" 'postgres: a page hears that a message was read'
mr --as alice queue create q >/dev/null 2>&1
tries=0 quiet=
while [ $tries -lt 6 ] && ! [ "$quiet" ]; do # a vacuum writes, too: one look more
	sleep 3
	n=$(changes) calls=$(sql "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'postgres'")
	sleep 4
	calls=$(($(sql "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = 'postgres'") - calls))
	[ "$(changes)" -ne "$n" ] || [ "$calls" -gt 15 ] || quiet=yes
	tries=$((tries + 1))
done
same yes "$quiet" 'postgres: nothing is told while nothing happens, at a call or so a second'
n=$(changes)
mr --as alice send queue:q -m work >/dev/null 2>&1
until_says events '^event: change' $((n + 1))
same yes "$([ "$(changes)" -gt "$n" ] && echo yes)" 'postgres: work is told'
sh "$top/tests/support/pg.sh" restart "$pg" 2>/dev/null
until_says events nothing
mr --as alice send bob -s 'after the restart' -m x >/dev/null 2>&1
until_says events 'after the restart'
says events 'after the restart' 'postgres: also after the server was started again'
end
finish
