# A room in PostgreSQL far away: how often a command waits for the way there and back, counted by the driver and on the wire.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

town alice bob carol
# trips WANT NAME WHO COMMAND...: so many round trips behind the connection, by the driver's trace.
trips() {
	want=$1 name=$2 who=$3; shift 3
	MAILROOM_DEBUG=1 "$BIN" --as "$who" "$@" >out 2>err </dev/null || { note <err; not_ok "$name: exit $?"; return; }
	same "$want" "$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)" "$name"
}
trips 2 'send' alice send bob -m one
trips 2 'send to several' alice send bob carol -m two
trips 2 'send with a key' alice send bob -m three --key k
trips 2 'inbox' bob inbox
trips 3 'recv' bob recv --json
trips 2 'done' bob done "$(jq -r .token out)"
MAILROOM_DEBUG=1 "$BIN" --as bob check --inject >out 2>err </dev/null
trips 2 'the hook of a prompt without news' bob check --inject
"$BIN" --as alice queue create builds >/dev/null 2>&1 </dev/null
trips 2 'work for a queue' alice send queue:builds -m work
trips 4 'a claim of work' bob recv queue:builds --json
trips 2 'done' bob done "$(jq -r .token out)"
for n in 1 2 3 4 5 6 7 8 9 10; do echo "{\"to\":\"carol\",\"body\":\"n$n\"}"; done >batch
MAILROOM_DEBUG=1 "$BIN" --as alice send --batch <batch >out 2>err
[ "$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)" -le 4 ] && ok 'a batch of ten' || { note <err; not_ok 'a batch of ten'; }
MAILROOM_DEBUG=1 "$BIN" --as alice sent >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 20 ] && ok "sent mail of thirteen messages: $n" || { note <err; not_ok "sent mail of thirteen messages: $n"; }
MAILROOM_DEBUG=1 "$BIN" --as carol drain >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 5 ] && ok "drain of eleven: $n" || { note <err; not_ok "drain of eleven: $n"; }
for n in $(seq 40); do echo "{\"to\":\"carol\",\"body\":\"n$n\"}"; done >batch
"$BIN" --as alice send --batch <batch >out 2>err
MAILROOM_DEBUG=1 "$BIN" --as carol drain --limit 30 >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 6 ] && ok "drain of thirty of forty: $n" || { note <err; not_ok "drain of thirty of forty: $n"; }
same 10 "$("$BIN" --as carol inbox --json </dev/null | wc -l)" 'ten are left, and unread'
same 0 "$(sql "SELECT count(*) FROM town$towns.inbox WHERE kind IS NOT NULL OR attempt <> 0")" 'nothing is held any more, and what was not shown was not handed out'
# a long message in the middle is fetched by itself, and what was held with the first one goes back and is held again: no attempt more
"$BIN" register dora >/dev/null 2>&1 </dev/null
head -c 20000 /dev/zero | tr '\0' x >long
"$BIN" --as alice send dora -m one >/dev/null 2>&1 </dev/null; "$BIN" --as alice send dora <long >/dev/null 2>&1; "$BIN" --as alice send dora -m three >/dev/null 2>&1 </dev/null
MAILROOM_DEBUG=1 "$BIN" --as dora drain --json >out 2>err </dev/null
same 3 "$(grep -c . out)" 'drain with a long one between'
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 8 ] && ok "in $n round trips" || { note <err; not_ok "in $n round trips"; }
same '3|0' "$(sql "SELECT count(*), max(a.attempt) FROM (SELECT place, attempt FROM town$towns.inbox UNION ALL SELECT place, attempt FROM town$towns.archive) a JOIN town$towns.place p USING (place) WHERE p.name = 'dora'")" 'each was handed out once'
# a page whose answer was lost is not hidden from the command that took it
"$BIN" --as alice send --batch >out 2>err <<'END'
{"to":"dora","body":"four"}
{"to":"dora","body":"five"}
END
ids="ARRAY(SELECT i.id FROM town$towns.inbox i JOIN town$towns.place p USING (place) WHERE p.name = 'dora' AND i.flags & 1 = 0)"
page() { echo "SELECT count(*), min(attempt), max(attempt) FROM town$towns.hold_many('dora', $ids, 99, 'token', '', '', 0, 0, 0, '', $1);"; }
same '2|1|1
0||
2|1|1' "$(sql "$(page false) $(page false) $(page true)")" 'asked again it is what the first try took'
for n in $(seq 20); do "$BIN" register "many$n" >/dev/null 2>&1 </dev/null; done
MAILROOM_DEBUG=1 "$BIN" --as alice who >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 6 ] && ok "who of twenty-four: $n" || { note <err; not_ok "who of twenty-four: $n"; }
says out 'carol.*10' 'with what each has'
MAILROOM_DEBUG=1 "$BIN" --as alice stats >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 9 ] && ok "stats of twenty-four: $n" || { note <err; not_ok "stats of twenty-four: $n"; }
# what has come is counted by the server, however much it is
awk 'BEGIN { for (n = 0; n < 4000; n++) printf "{\"to\":\"carol\",\"body\":\"more\",\"priority\":\"%s\"}\n", n % 100 ? "normal" : "urgent" }' >batch
"$BIN" --as alice send --batch <batch >out 2>err
MAILROOM_DEBUG=1 "$BIN" --as alice who --json >out 2>err </dev/null
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 6 ] && ok "who beside four thousand unread: $n" || { note <err; not_ok "who beside four thousand unread: $n"; }
same 40 "$(jq -r 'select(.name == "carol").urgent' out)" 'counts what is urgent'
[ "$(jq -r 'select(.name == "carol").unread' out)" -ge 4000 ] && ok 'and all of it' || { note <out; not_ok 'and all of it'; }
MAILROOM_DEBUG=1 "$BIN" --as alice top --once >out 2>err </dev/null
says out '4,0[0-9]* messages came' 'and top what came in the last minute'
for what in who stats ''; do
	MAILROOM_DEBUG=1 user $what >out 2>err </dev/null
	n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
	[ "$n" -le 7 ] && ok "${what:-mailroom alone} without a name: $n" || { note <err; not_ok "${what:-mailroom alone} without a name: $n"; }
done

# ---- on the wire ----
mkdir far
python3 "$top/tests/support/lag.py" "$scratch/far/.s.PGSQL.5432" "$pg/.s.PGSQL.5432" 30 "$scratch/turns" >ready &
lag=$!
n=0; until grep -q ready ready; do n=$((n + 1)); [ $n -lt 100 ] || break; sleep 0.05; done
wire() { # wire NAME COMMAND...: the trace and the wire agree: startup, and each trip
	name=$1; shift
	: >turns
	MAILROOM_DEBUG=1 "$BIN" --room "postgres:host=$scratch/far user=mailroom dbname=postgres#town$towns" "$@" >out 2>err </dev/null || { note <err; not_ok "$name"; return; }
	n=0; until [ -s turns ]; do n=$((n + 1)); [ $n -lt 100 ] || break; sleep 0.05; done
	trips=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
	same $((trips + 1)) "$(head -n 1 turns)" "$name: $trips round trips, and one to connect"
}
wire 'send' --as alice send bob -m far
wire 'inbox' --as bob inbox
wire 'recv' --as bob recv --json
wire 'done' --as bob done "$(jq -r .token out)"
kill $lag
finish
