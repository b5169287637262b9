# A guarded room in PostgreSQL: each login acts for its own agent, proven by the server, and cheating with psql is refused.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

there="postgres:host=$pg dbname=postgres"
as() { who=$1; shift; "$BIN" --room "$there user=$who#town" --as "$who" "$@" </dev/null; }
own() { "$BIN" --room "$spec#town" "$@" </dev/null; } # the owner
# cheat LOGIN NAME SQL: the login tries it with psql, and the server refuses.
cheat() {
	if psql -qAtX -v ON_ERROR_STOP=1 -h "$pg" -U "$1" -d postgres -c "$3" >out 2>err; then note <out; not_ok "$2"; else
		grep -Eq 'permission denied|does not act for|not an owner|does not say|may not claim|cannot set' err && ok "$2" || { note <err; not_ok "$2: another error"; }
	fi
}
# nothing LOGIN NAME SQL: the login gets no row.
nothing() { same '' "$(psql -qAtX -h "$pg" -U "$1" -d postgres -c "$3" 2>&1)" "$2"; }

exits 4 'a folder has no logins' mr init --roles alice .
exits 4 'what is no login' mr init --roles "alice=b ad" "$spec#town"
exits 4 'nor an injection' mr init --roles "alice=x');DROP TABLE y;--" "$spec#town"
exits 0 'init --roles makes a guarded room' mr init --roles 'alice,bob,worker=rig/*' "$spec#town" --name town
same mailroom_town "$(sql "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'town'")" 'it belongs to a role of its own'
same f "$(sql "SELECT rolcanlogin OR rolsuper FROM pg_roles WHERE rolname = 'mailroom_town'")" 'which is nobody in particular'
for who in alice bob; do exits 0 "$who registers" as $who register $who; done
exits 0 'a login for many' own --room "$there user=worker#town" --as rig/nux register rig/nux
exits 4 'not for others' own --room "$there user=worker#town" register carol
says err "does not act for 'carol'" 'is said'
exits 0 'the owner registers anybody' own register carol

# ---- the commands of every day ----
exits 0 'send' as alice send bob -s 'a proven one' -m text --key k
id=$(tail -n 1 out)
as bob inbox --json >out
same true "$(jq .proven out)" 'the sender is proven'
exits 0 'read' as bob read "$id"
says out '^Proven: ' 'shows it'
exits 0 'reply' as bob reply "$id" -m answer
exits 0 'thread' as alice thread "$id"
exits 0 'search' as alice search answer
exits 0 'sent' as alice sent
exits 0 'why' as alice why "$id"
says out 'login alice \(proven\)' 'tells the login'
MAILROOM_DEBUG=1 as alice who >out 2>err
n=$(sed -n 's/.*trace: postgres: \([0-9]*\) round trips/\1/p' err)
[ "$n" -le 4 ] && ok "who: $n round trips, whoever is closed to us" || { note <err; not_ok "who: $n round trips"; }
says out '^alice +unknown +1 +1 ' 'counts our own mail'
says err 'closed to this login' 'leaves out the mail of others, and says so'
exits 0 'doctor' as alice doctor
says out "login 'alice' acts for alice" 'says what the login may'
exits 0 'stats' as alice stats
as alice send bob -m 'to do' >/dev/null
exits 0 'recv' as bob recv --json
token=$(jq -r .token out)
exits 0 'done' as bob done "$token"
exits 0 'archive' as bob archive "$id"
# what the owner's settings do not keep goes with the next command of any login, and nothing else
sql "INSERT INTO town.archive SELECT place, '010000000000000000000000' || right(id, 2), 1, 0, prio, look FROM town.archive LIMIT 1;
    INSERT INTO town.record (kind, owner, name, text, at) VALUES ('setting', '', 'Keep-Archive', '30d', now() - interval '2 days')"
n=$(sql "SELECT count(*) FROM town.archive")
exits 0 'who' as alice who
same $((n - 1)) "$(sql "SELECT count(*) FROM town.archive")" 'the login of an agent removes what the owner does not keep'
cheat alice 'more than that' "SELECT town.retain_shelf('archive', 'Keep-Archive', '1', now() + interval '1 year')"
same 0 "$(psql -qAtX -h "$pg" -U alice -d postgres -c 'SELECT town.retain()')" 'nor twice within the hour'
sql "DELETE FROM town.record WHERE kind = 'setting'"
exits 0 'a queue' as alice queue create builds
exits 0 'work for it' as alice send queue:builds -m work
exits 0 'claimed' as bob recv queue:builds --json
claim=$(jq -r .token out) work=$(jq -r .id out)
exits 0 'a channel' as alice channel create news
exits 0 'subscribed to by another' as bob channel subscribe news
exits 0 'posted to' as bob send channel:news -m hear
exits 0 'read' as alice channel read news
exits 0 'a group' as alice group create team bob rig/nux
exits 0 'is written to' as bob send @team -m all
exits 0 'a nudge' as alice nudge bob 'look here'
exits 0 'is shown by check --inject' as bob check --inject
says out 'look here' 'with its text'
"$BIN" --room "$there user=bob#town" --as bob wait --timeout 20s >waited 2>&1 </dev/null &
waiter=$!
as alice send bob -m 'wake up' >/dev/null
wait $waiter
same 0 $? 'wait'
exits 0 'the hook of a prompt' as alice check --inject
exits 0 'the owner reads everything' own --as bob inbox

# ---- in another's name, by the command ----
exits 4 'send in another name' own --room "$there user=alice#town" --as bob send carol -m forged
says err "login 'alice' does not act for 'bob'" 'says why'
says err 'init --roles' 'and what the owner can do'
for command in inbox "read $id" drain recv check 'done '"$claim" sent; do
	exits 4 "$command of another" own --room "$there user=alice#town" --as bob $command
done
exits 4 'purge is the owners' as alice purge "$id"
exits 0 'the owner may' own --as operator purge "$(as alice send bob -m gone | tail -n 1)"

# ---- by psql ----
town="host=$pg user=alice dbname=postgres"
for table in message inbox archive place record actor room claim ready sendkey mail; do cheat alice "table $table" "SELECT * FROM town.$table"; done
cheat alice 'writing a table' "INSERT INTO town.actor VALUES ('alice', '*')"
cheat alice 'a table of its own in the schema' 'CREATE TABLE town.x (y int)'
cheat alice 'a function of its own in the schema' "CREATE FUNCTION town.may(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
cheat alice 'SET ROLE to the owner' 'SET ROLE mailroom_town'
cheat alice 'SET ROLE to another' 'SET ROLE bob'
cheat alice 'SET SESSION AUTHORIZATION' 'SET SESSION AUTHORIZATION bob'
cheat alice 'a helper' 'SELECT town.give_back(1, NULL, NULL)'
cheat alice 'another helper' "SELECT town.may('bob')"
scan="SELECT * FROM town.scan('bob', 1, 2, 0, false, NULL, NULL, NULL, NULL, false, 0, false)"
cheat alice 'the mail of another' "$scan"
cheat alice 'by SET ROLE users' "SET ROLE mailroom_town_user; $scan"
cheat alice 'a temporary table that shadows' "CREATE TEMP TABLE actor AS SELECT 'alice'::name AS login, '*'::text AS agent; SET search_path = pg_temp; $scan"
cheat alice 'one message of another' "SELECT * FROM town.mail_fetch('bob', '$id', 15, 2)"
cheat alice 'its marks' "SELECT * FROM town.mark('bob', '$id', 8, 0, 0, false)"
cheat alice 'its holds' "SELECT * FROM town.holds('bob')"
cheat alice 'waiting for another' "SELECT * FROM town.watch('a', 'bob')"
cheat alice 'the life of another' "SELECT * FROM town.life_take('bob', 99, 0, '', '', '', 0, 0, 0, '', false)"
cheat alice 'removing another' "SELECT * FROM town.agent_remove('bob', false)"
cheat alice 'removing it as a place' "SELECT * FROM town.place_remove('a', 'bob', true, false)"
cheat alice 'making an agent as a place' "SELECT * FROM town.place_make('a', 'mallory')"
send() { echo "SELECT town.send('$1', convert_to($2, 'UTF8'), ''::bytea, 'd', $3, ARRAY['bob'], NULL, NULL, NULL, $4, 2, 0, false, false)"; }
good="E'From: alice@town\nTo: bob@town\nSubject: x\n\n'"
new=01arz3ndektsv4rrffq69g5fa
cheat alice 'a forged sender' "$(send ${new}0 "E'From: bob@town\n\n'" "'bob'" 0)"
cheat alice 'a forged header' "$(send ${new}1 "E'From: bob@town\n\n'" "'alice'" 0)"
cheat alice 'a second header' "$(send ${new}2 "E'From: alice@town\nSubject: x\nfrom : bob@town\n\n'" "'alice'" 0)"
cheat alice 'a folded header' "$(send ${new}3 "E'From: alice@town\n , bob@town\n\n'" "'alice'" 0)"
cheat alice 'no sender' "$(send ${new}4 "$good" "''" 0)"
cheat alice 'making a mailbox' "$(send ${new}5 "$good" "'alice'" 1 | sed 's/bob/mallory/')"
cheat alice 'an import for another' "$(send ${new}6 "$good" "'alice'" 2)"
cheat alice 'an import with a known id, to read it' "$(send "$id" "$good" "'alice'" 2 | sed "s/ARRAY\['bob'\]/ARRAY['alice']/")"
check 'what is true is accepted' psql -qAtX -h "$pg" -U alice -d postgres -c "$(send ${new}7 "$good" "'alice'" 0)"
cheat alice "the claim of another" "SELECT * FROM town.claim_settle('$claim', '$work', 1, 'd', NULL, NULL, 0, false)"
same 2 "$(psql -qAtX -h "$pg" -U alice -d postgres -c "SELECT rc FROM town.claim_extend('$claim', '$work', 1, 1000)")" 'nor is it extended'
nothing alice 'nor found by its token' "SELECT * FROM town.claim_find('$claim')"
nothing alice 'nor is the token shown' "SELECT token FROM town.work('builds', 4)"
cheat alice 'a claim in another name' "SELECT * FROM town.claim('builds', 'bob', 0, false, 0, 'l', 1000, 't', '', '', 0, 0, 0, '', false)"
exits 0 'a queue with claimers' as alice queue create mine --claimers alice
cheat bob 'claims from a queue of others' "SELECT * FROM town.claim('mine', 'bob', 0, false, 0, 'l', 1000, 't', '', '', 0, 0, 0, '', false)"
cheat bob 'its settings' "SELECT town.record_put('queue', '', 'mine', 'Claimers: *')"
cheat bob 'and its removal' "SELECT * FROM town.place_remove('q', 'mine', true, false)"
cheat bob 'the subscription of another' "SELECT town.record_put('channel', '', 'news', 'Name: news')"
cheat bob 'the posts of a channel' "SELECT * FROM town.remove(2, 'news', '', 99, false)"
cheat bob 'a record of the room' "SELECT town.record_put('policy', '', 'strict', 'x')"
cheat bob 'a link' "SELECT town.record_put('link', '', 'x', 'Room: /tmp')"
cheat bob 'a record of another' "SELECT town.record_put('due', 'alice', 'x', 'x')"
cheat bob 'dropping it' "SELECT * FROM town.record_drop('said', 'alice', 'x', false)"
cheat bob 'a nudge in another name' "SELECT town.record_put('nudge', 'alice', '1-a', E'From: carol\n\nobey\n')"
nothing bob 'the records of another' "SELECT * FROM town.record_each('told', 'alice')"
cheat bob 'purging' "SELECT * FROM town.remove(0, '', '$id', 0, false)"
cheat worker 'a name that only begins so' "SELECT * FROM town.scan('rigor', 1, 2, 0, false, NULL, NULL, NULL, NULL, false, 0, false)"
sql 'CREATE ROLE stranger LOGIN'
cheat stranger 'a stranger' 'SELECT * FROM town.hello(1)'
same 0 "$(sql "SELECT count(*) FROM town.inbox i JOIN town.message m USING (id) WHERE m.id LIKE '$new%' AND m.id <> '${new}7'")" 'nothing forged is there'
same 1 "$(own --as bob inbox --json --limit 100 | jq -c "select(.id == \"${new}7\" and .proven)" | wc -l)" 'and what is true is proven'

# ---- logins come and go; an upgrade keeps them ----
exits 0 'one login more' mr init --roles carol "$spec#town"
exits 0 'acts' own --room "$there user=carol#town" --as carol inbox
exits 0 'an upgrade' mr init --upgrade "$spec#town"
exits 0 'keeps the rights' own --room "$there user=carol#town" --as carol check --inject
exits 4 'and the guards' own --room "$there user=carol#town" --as bob inbox
exits 0 'one login less' mr init --roles carol= "$spec#town"
exits 4 'acts no more' own --room "$there user=carol#town" --as carol inbox
town zoe yan
as() { "$BIN" --room "$there user=$1#town$towns" --as "$1" inbox </dev/null; }
mr --as zoe send yan -m 'before it was guarded' >/dev/null
exits 0 'a room that was not guarded becomes it' mr init --roles yan "$MAILROOM"
as yan >out 2>err
says out 'before it was guarded.*unproven' 'its old mail is not proven'

# ---- TLS, SCRAM and client certificates, as libpq gives them; the password is nowhere but in .pgpass ----
at=127.$(($$ / 250 % 250 + 1)).$(($$ % 250 + 1)).1
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$at" -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=bob -keyout bob.key -out bob.csr 2>/dev/null
openssl x509 -req -in bob.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out bob.crt 2>/dev/null
for file in ca.key ca.crt; do cp $file "$pg/data/server.$file"; done
chmod 600 "$pg"/data/server.ca.key bob.key
[ "$(id -u)" -ne 0 ] || chown postgres: "$pg"/data/server.ca.*
cat >>"$pg/data/postgresql.conf" <<CONF
listen_addresses = '$at'
ssl = on
ssl_cert_file = 'server.ca.crt'
ssl_key_file = 'server.ca.key'
ssl_ca_file = 'server.ca.crt'
log_statement = all
log_connections = on
CONF
printf 'local all mailroom trust\nhostssl all bob all cert\nhostssl all all all scram-sha-256\n' >"$pg/data/pg_hba.conf"
server restart
PGOPTIONS='-c log_statement=none' sql "ALTER ROLE alice PASSWORD 'geheim-4711'"
printf '%s:*:*:alice:geheim-4711\n' "$at" >"$HOME/.pgpass"; chmod 600 "$HOME/.pgpass"
tls="postgres://alice@$at/postgres?sslmode=verify-full&sslrootcert=$scratch/ca.crt#town"
exits 0 'TLS and SCRAM' mr --room "$tls" --as alice send bob -m 'over the wire'
says "$pg/log" 'user=alice.*SSL enabled \(protocol=TLSv1' 'it is encrypted'
mr --room "$tls" --as alice drain >/dev/null
"$BIN" --room "$tls" --as alice wait --timeout 2s >/dev/null 2>&1 </dev/null &
waiter=$!
sleep 0.5
cat /proc/$waiter/cmdline /proc/$waiter/environ 2>/dev/null | tr '\0' '\n' >processes
MAILROOM_DEBUG=1 mr --room "$tls" --as alice --trace where >traced 2>&1
wait $waiter
exits 0 'a client certificate' mr --room "postgres://bob@$at/postgres?sslmode=verify-full&sslrootcert=$scratch/ca.crt&sslcert=$scratch/bob.crt&sslkey=$scratch/bob.key#town" --as bob inbox
exits 4 'not of another' mr --room "postgres://alice@$at/postgres?sslmode=verify-full&sslrootcert=$scratch/ca.crt&sslcert=$scratch/bob.crt&sslkey=$scratch/bob.key&passfile=/nowhere#town" --as alice inbox
exits 1 'a server that is another one' mr --room "postgres://alice@$at/postgres?sslmode=verify-full&sslrootcert=$scratch/bob.crt#town" --as alice inbox
rm "$HOME/.pgpass"
same '' "$(grep -rl geheim-4711 "$scratch" "$pg/log" processes traced 2>/dev/null)" 'the password is in no file, process list, trace or log'
finish
