# A room in PostgreSQL: attachments, streamed both ways, whole or not at all, and gone with their message.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"

as() { who=$1; shift; "$BIN" --as "$who" "$@" </dev/null; }
lists() { jq -r '.attachments[] | "\(.name)|\(.type)|\(.size)"'; }
chunks() { sql "SELECT count(*) FROM town$towns.chunk"; }
${CC:-cc} -O1 -o peak "$top/bench/peak.c" || echo 'Bail out! no compiler'
full=$BIN-full; [ -x "$full" ] || full=$BIN # what the command becomes: its own memory is measured
town alice bob carol

# ---- short ones are part of the row, long ones have rows of their own ----
printf 'one\n' >a.txt
head -c 300000 /dev/urandom >b.png
exits 0 'a short attachment' as alice send bob -m 'short' --attach a.txt --json
short=$(jq -r .id out)
same 0 "$(chunks)" 'lies with its message'
exits 0 'a long one' as alice send bob carol -m 'two files' --attach a.txt --attach b.png --json
id=$(jq -r .id out)
same 2 "$(chunks)" 'has pieces'
same 2 "$(as bob inbox --json | grep -c .)" 'both are in the list'
exits 0 'read lists them' as bob read --peek --json "$id"
same 'a.txt|text/plain|4
b.png|image/png|300000' "$(lists <out)" 'with type and size'
same 'two files' "$(jq -r .body out)" 'the body is the text'
exits 0 'read --save' as bob read "$id" --save in
check 'the bytes are the same' cmp b.png in/b.png
exits 0 'the other recipient, too' as carol read "$id" --save in2
check 'has the bytes' cmp b.png in2/b.png
exits 0 'the short one' as bob read "$short" --save in3
check 'has its bytes' cmp a.txt in3/a.txt
exits 0 'sent mail has it' as alice read --json "$id"
same 2 "$(lists <out | wc -l)" 'with both files'
as bob read --raw "$id" >raw 2>err
same "$(sql "SELECT octet_length(head) + content FROM town1.message WHERE id = '$id'")" "$(stat -c %s raw)" 'read --raw has all bytes'

# ---- looking at mail fetches no byte of an attachment; saving it does ----
sql "ALTER TABLE town$towns.chunk RENAME TO away"
exits 0 'read' as bob read --peek --json "$id"
same 'a.txt|text/plain|4
b.png|image/png|300000' "$(lists <out)" 'knows the attachments without the pieces'
same 'two files' "$(jq -r .body out)" 'and the text'
exits 0 'a list with bodies' as bob inbox --all --json
exits 0 'sent mail' as alice read --json "$id"
exits 4 'saving needs the pieces' as bob read "$id" --save in4
sql "ALTER TABLE town$towns.away RENAME TO chunk"
outline=$(sql "SELECT '''\\x' || encode(body, 'hex') || '''' FROM town$towns.message WHERE id = '$id'")
for body in "''" "'no outline'" "'Outline: 1'" "'Outline: 1' || chr(10) || 'Part: 1 99999999 1 2'" "'Outline: 1' || chr(10) || 'Part: 0 1 1 9'" "'Outline: 1' || chr(10) || 'Part: x'"; do
	sql "UPDATE town$towns.message SET body = convert_to($body, 'UTF8') WHERE id = '$id'"
	as bob read --peek --json "$id" >out 2>err
	case $body in "'Outline: 1'") same 0 "$(jq '.attachments | length' out)" "the outline $body is believed" ;;
	*) same 2 "$(lists <out | wc -l)" "with the outline $body all is looked through" ;; esac
done
sql "UPDATE town$towns.message SET body = $outline WHERE id = '$id'"

# ---- queues and channels ----
as alice queue create jobs >/dev/null; as alice channel create news >/dev/null
exits 0 'to a queue' as alice send queue:jobs -m 'work' --attach b.png
exits 0 'is claimed with it' as bob recv queue:jobs --json
same 'b.png|image/png|300000' "$(lists <out)" 'its file is listed'
exits 0 'to a channel' as alice send channel:news -m 'post' --attach b.png
exits 0 'is read there' as carol channel read news --json
says out 'b.png' 'and listed'

# ---- keys; a collision leaves no pieces ----
n=$(chunks)
as alice send bob -m keyed --attach b.png --key k1 >first 2>&1
as alice send bob -m keyed --attach b.png --key k1 >second 2>/dev/null
same "$(cat first)" "$(cat second)" 'a repeated key is the first message'
same $((n + 2)) "$(chunks)" 'and stored once'
printf 'x' >>b.png
exits 4 'other bytes are refused' as alice send bob -m keyed --attach b.png --key k1
exits 5 'nobody of that name' as alice send nobody -m x --attach b.png
same $((n + 2)) "$(chunks)" 'what was not sent leaves no pieces'

# ---- purge, retention ----
town alice bob
id=$(as alice send bob -m gone --attach b.png | tail -n 1)
same 2 "$(chunks)" 'a message with pieces'
exits 0 'purge' as alice purge "$id"
same 0 "$(chunks)" 'takes them away'
id=$(as alice send bob -m old --attach b.png | tail -n 1)
as bob read "$id" >/dev/null; as bob archive "$id" >/dev/null
as alice config set Keep-Archive 1 >/dev/null; as alice config set Keep-Sent 1 >/dev/null
for k in 1 2 3; do as alice send bob -m "newer $k" >/dev/null; done
as bob drain >/dev/null; as bob archive --all >/dev/null 2>&1
for m in $(as bob inbox --all --json | jq -r .id); do as bob archive "$m" >/dev/null 2>&1; done
sql "UPDATE town$towns.record SET at = at - interval '3 days' WHERE kind = 'setting'"
env MAILROOM_TEST_CLOCK_OFFSET_MS=$((3 * 86400000)) "$BIN" --as alice send bob -m 'looks' >/dev/null 2>&1 </dev/null
sql "DELETE FROM town$towns.record WHERE kind = 'kept'"
env MAILROOM_TEST_CLOCK_OFFSET_MS=$((3 * 86400000)) "$BIN" --as alice send bob -m 'looks' >/dev/null 2>&1 </dev/null
same 0 "$(sql "SELECT count(*) FROM town$towns.message WHERE id = '$id'")" 'retention takes the message'
same 0 "$(chunks)" 'and its pieces'

# ---- flat memory, 64 MiB; carried and exported ----
town alice bob
mkdir native && mr init native --name native >/dev/null 2>&1
MAILROOM= "$BIN" --room native register dora >/dev/null 2>&1 </dev/null
"$BIN" --room native link fleet "$MAILROOM" >/dev/null 2>err </dev/null || note <err
exits 0 'what a command needs anyhow' ./peak base "$full" --as alice inbox --all
head -c 67108000 /dev/urandom >big
exits 0 '64 MiB' ./peak kb "$full" --as alice send bob -m 'big one' --attach big --json
id=$(jq -r .id out)
check "sent with $(($(cat kb) - $(cat base))) KiB more than an empty inbox, below 8 MiB" test $(($(cat kb) - $(cat base))) -lt 8192
exits 0 'the list' ./peak kb "$full" --as bob inbox
check "lists: $(($(cat kb) - $(cat base))) KiB more, below 4 MiB" test $(($(cat kb) - $(cat base))) -lt 4096
exits 0 'save it' ./peak kb "$full" --as bob read "$id" --save there
check "saved with $(($(cat kb) - $(cat base))) KiB more, below 8 MiB" test $(($(cat kb) - $(cat base))) -lt 8192
check 'it is what it was' cmp big there/big
exits 0 'read --raw' ./peak kb "$full" --as bob read --raw "$id"
check "streamed with $(($(cat kb) - $(cat base))) KiB more, below 8 MiB" test $(($(cat kb) - $(cat base))) -lt 8192
same "$(sql "SELECT octet_length(head) + content FROM town$towns.message WHERE id = '$id'")" "$(as bob read --raw "$id" | wc -c | tr -d ' ')" 'and all of it'
exits 0 'export' ./peak kb "$full" export --to "$scratch/native/.mailroom"
check "exported with $(($(cat kb) - $(cat base))) KiB more, below 12 MiB" test $(($(cat kb) - $(cat base))) -lt 12288
rm -rf there
exits 0 'the folder has it' env -u MAILROOM "$BIN" --room native --as bob read "$id" --save there
check 'whole' cmp big there/big
exits 0 'from the folder into the database' env -u MAILROOM "$BIN" --room native --as dora send bob@fleet -m 'carried' --attach big
env -u MAILROOM "$BIN" --room native carry >/dev/null 2>&1 </dev/null
got=$(as bob inbox --json | jq -r 'select(.subject == "carried") | .id')
rm -rf there
exits 0 'it came' as bob read "$got" --save there
check 'whole, too' cmp big there/big
rm -rf there big native

# ---- the server is killed while it is sent: whole or not at all ----
town alice bob
sql "UPDATE town$towns.room SET settings = settings || 'Reconnect: 1s' || chr(10)"
head -c 3000000 /dev/urandom >mid
class=$(sql "SELECT lock_class FROM town$towns.room")
sql "SELECT pg_advisory_lock($class, 0), pg_sleep(60)" >/dev/null 2>&1 &
n=0; until [ "$(sql "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")" -gt 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
as alice send bob -s 'in doubt' -m x --attach mid >sent 2>said & sender=$!
n=0; until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mailroom' AND wait_event = 'advisory'")" -gt 0 ] || [ $n -gt 200 ]; do n=$((n + 1)); sleep 0.05; done
server kill
wait $sender
same 6 $? 'no server answers: in doubt'
id=$(cat sent)
same 2 "$(ls "$XDG_STATE_HOME"/mailroom/postgres/*/outbox | grep -c "$id")" 'message and body are kept'
rm mid.copy 2>/dev/null; cp mid mid.copy; rm mid
server restart
outbox=$(dirname "$(find "$XDG_STATE_HOME" -name "$id.content")")
mv "$outbox/$id.content" kept
as alice check >/dev/null 2>err
says err 'attachments in .* not readable' 'without its attachments it is not sent'
head -c 3000 kept >"$outbox/$id.content"
as alice check >/dev/null 2>err
says err 'attachments in .* not what was kept' 'nor with a part of them'
same 0 "$(sql "SELECT count(*) FROM town$towns.message")" 'nobody got it'
same 2 "$(ls "$outbox" | grep -c "$id")" 'both are kept'
mv kept "$outbox/$id.content"
as alice check >/dev/null 2>err
says err 'it was sent again' 'the next command sends it'
exits 0 'bob' as bob read "$id" --save whole
check 'has all of it' cmp mid.copy whole/mid
same 0 "$(find "$XDG_STATE_HOME"/mailroom/postgres/*/outbox -type f | wc -l)" 'nothing is kept any more'

# ---- guarded: only those who may read the message may read its pieces ----
sql 'CREATE ROLE l_alice LOGIN; CREATE ROLE l_bob LOGIN; CREATE ROLE l_eve LOGIN'
export MAILROOM="$spec#vault"
mr init --roles 'l_alice=alice,l_bob=bob,l_eve=eve' "$MAILROOM" >/dev/null 2>err || note <err
for agent in alice bob eve; do XDG_STATE_HOME=$scratch/user-state "$BIN" register $agent >/dev/null 2>&1 </dev/null; done
there="postgres:host=$pg dbname=postgres"
exits 0 'alice sends' mr --room "$there user=l_alice#vault" --as alice send bob -m secret --attach b.png
id=$(tail -n 1 out)
exits 0 'bob reads' mr --room "$there user=l_bob#vault" --as bob read "$id" --save guarded
check 'the bytes' cmp b.png guarded/b.png
eve() { psql -qAtX -h "$pg" -U l_eve -d postgres -c "$1" 2>&1; }
for box in bob alice eve queue:x channel:x ''; do
	case $(eve "SELECT count(*) FROM vault.content('$box', '$id', 0, 1000000)") in 0 | *'does not act'* | *'not an owner'*) ;; *) not_ok "eve reads pieces as '$box'" ;; esac
done
ok 'eve reads no piece'
case $(eve 'SELECT count(*) FROM vault.chunk') in *denied*) ok 'nor the table' ;; *) not_ok 'eve reads the table' ;; esac
before=$(sql "SELECT md5(string_agg(bytes, '' ORDER BY at)) FROM vault.chunk WHERE id = '$id'")
eve "SELECT vault.chunk('$id', 0, 'evil')" >/dev/null; eve "SELECT vault.chunk('$id', 900000, 'evil')" >/dev/null
same "$before" "$(sql "SELECT md5(string_agg(bytes, '' ORDER BY at)) FROM vault.chunk WHERE id = '$id'")" 'nor changes what was sent'
# a row of her own in the inbox would show the pieces: the header block is known to all who may guess it
head=$(sql "SELECT '''\\x' || encode(head, 'hex') || '''' FROM vault.message WHERE id = '$id'")
for body in "''" NULL; do
	case $(eve "SELECT vault.send('$id', $head, $body, 'x', 'eve', '{eve}', NULL, NULL, NULL, 2, 1, 0, false, false)") in
		*'not an owner'*) ok "nor imports the message with the body $body" ;; *) not_ok "eve imports the message with the body $body" ;; esac
done
same 0 "$(sql "SELECT count(*) FROM vault.inbox i JOIN vault.place p USING (place) WHERE p.name = 'eve'")" 'her inbox is empty'

# ---- pieces that make no body ----
piece() { # piece NAME SQL...: refused, all of it
	name=$1 calls=$2
	new=$((${new:-100} + 1))
	send="SELECT vault.send_long('piece$new', convert_to(E'From: eve@vault\\n\\n', 'UTF8'), NULL, 'x', 'eve', '{eve}', NULL, NULL, NULL, 16, 1, 0, false, false);"
	eve "BEGIN; $(printf '%s' "$calls" | sed "s/ID/piece$new/g") $send COMMIT" >said
	case $name in whole) same "0 piece$new" "$(tail -n 1 said)" 'pieces that make a body are taken' ;; *)
		if grep -q 'the pieces of the body\|a piece of a body\|duplicate key' said; then ok "refused: $name"; else note <said; not_ok "refused: $name"; fi ;; esac
}
piece whole "SELECT vault.chunk('ID', 0, 'one'); SELECT vault.chunk('ID', 3, 'two');"
piece 'no piece at all' ''
piece 'none at the beginning' "SELECT vault.chunk('ID', 3, 'two');"
piece 'a gap' "SELECT vault.chunk('ID', 0, 'one'); SELECT vault.chunk('ID', 4, 'two');"
piece 'one over another' "SELECT vault.chunk('ID', 0, 'one'); SELECT vault.chunk('ID', 2, 'two');"
piece 'one in the place of another' "SELECT vault.chunk('ID', 0, 'one'); SELECT vault.chunk('ID', 3, 'two'); SELECT vault.chunk('ID', 3, 'six');"
piece 'an empty one' "SELECT vault.chunk('ID', 0, 'one'); SELECT vault.chunk('ID', 3, '');"
piece 'one before the beginning' "SELECT vault.chunk('ID', -3, 'one');"
piece 'one behind 128 MiB' "SELECT vault.chunk('ID', 134217727, 'one');"
same 1 "$(sql "SELECT count(*) FROM vault.inbox i JOIN vault.place p USING (place) WHERE p.name = 'eve'")" 'one of them came'
sql "DELETE FROM vault.actor WHERE login = 'l_eve'"
case $(eve "SELECT vault.chunk('new', 0, 'evil')") in *'not an owner'*) ok 'a login that acts for nobody leaves no pieces' ;; *) not_ok 'a login that acts for nobody leaves pieces' ;; esac
# ---- asked again after a lost answer: it waits for the first try, and finds its message ----
send="SELECT vault.chunk('again', 0, 'body'); SELECT vault.send_long('again', convert_to(E'From: bob@vault\\n\\n', 'UTF8'), NULL, 'x', 'bob', '{alice}', NULL, NULL, NULL, 16, 1, 0, false"
bob() { psql -qAtX -h "$pg" -U l_bob -d postgres -c "$1" 2>&1; }
bob "BEGIN; $send, false); SELECT pg_sleep(1); COMMIT" >first & first=$!
n=0; until [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")" -gt 0 ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done
bob "BEGIN; $send, true); COMMIT" >again
wait $first
same '0 again repeated' "$(tail -n 1 again)" 'the same send once more is the first one'
same 4 "$(sql "SELECT content FROM vault.message WHERE id = 'again'")" 'stored once'
# ---- a size that no list has room for ----
sql "UPDATE vault.message SET content = 5000000000 WHERE id = '$id'"
exits 0 'a list with a message of an impossible size' mr --room "$there user=l_bob#vault" --as bob inbox --all --json
finish
