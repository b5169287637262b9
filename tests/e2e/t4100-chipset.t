# once
# A chipset room: our mail beside that of a program that follows the mail-async recipe, the golden files, and the
# examples of mailroom-chipset(5).
. "$(dirname "$0")/../lib/tap.sh"

state=$scratch/.chipset/state room=chipset:$scratch/.chipset/state
peer() { python3 "$top/tests/peers/chipset-peer.py" "$state" "$@"; }
cs() { "$BIN" --room "$room" "$@" </dev/null; }
sum() { sha256sum <"$1" | cut -d' ' -f1; }
gold() { sed -n "s/  $1\$//p" "$data/chipset/SHA256SUMS"; }

# ---- the golden files, and the peer that makes them ----
check 'the golden files are what they were' sh -c "cd '$data/chipset' && sha256sum -c SHA256SUMS"
one=2026-07-01T08-15-30.250Z-lead-01.json
peer send worker-7 lead-01 'Pick up the parser task' 'Start with the header reader.
Ask if the grammar is unclear.' 2026-07-01T08:15:30.250Z >/dev/null
same "$(gold g1.json)" "$(sum "$state/mail/worker-7/$one")" 'the peer writes G1'
peer mark worker-7 $one
same "$(gold g2.json)" "$(sum "$state/mail/worker-7/$one")" 'marks it to G2'
peer send lead-01 w9 "$(printf 'Done: "quoted" \\ slash / tab\there')" "$(printf 'naïve – ✓ 😀\001\177\342\200\250')" \
	2026-07-01T08:16:00.000Z urgent completion_report >/dev/null
same "$(gold g3.json)" "$(sum "$state/mail/lead-01/2026-07-01T08-16-00.000Z-w9.json")" 'G3'
peer nudge worker-7 watch-1 'Still on task 12?' health_check 2026-07-01T08:20:00.000Z
same "$(gold g4.json)" "$(sum "$state/nudge/worker-7/latest.json")" 'and G4'
same true "$(cs --as worker-7 inbox --all --json | jq .read)" 'what the peer marked is read for us'
id=$(cs --as worker-7 inbox --all --json | jq -r .id)
check 'mark unread' cs --as worker-7 mark unread "$id"
same "$(gold g1.json)" "$(sum "$state/mail/worker-7/$one")" 'gives G1 again'
check 'mark read' cs --as worker-7 mark read "$id"
same "$(gold g2.json)" "$(sum "$state/mail/worker-7/$one")" 'and G2'

# ---- we write, the peer reads ----
check 'send makes the mailbox' cs --as alice send bob -s first -m 'one'
check 'and again' cs --as alice send bob -s second --type completion_report --priority urgent -m 'two'
check 'low' cs --as carol send bob -s third --priority low -m 'three'
peer list bob >listed
same 'first second third ' "$(jq -r .subject listed | tr '\n' ' ')" 'the peer lists it in the order of sending'
same '{"body":"two","from":"alice","priority":"urgent","read":false,"subject":"second","to":"bob","type":"completion_report"}' \
	"$(sed -n 2p listed | jq -cS 'del(.timestamp, .name)')" 'field by field'
same 'true' "$(jq -s 'all(.[]; (.timestamp | gsub(":"; "-")) + "-" + .from + ".json" == .name)' listed)" 'under the name that follows from it'
name=$(sed -n 1p listed | jq -r .name)
cp "$state/mail/bob/$name" before
peer mark bob "$name"
same 'second third ' "$(peer unread bob | jq -r .subject | tr '\n' ' ')" 'its mark leaves two unread'
same 2 "$(cs --as bob inbox --json | wc -l)" 'for us, too'
sed 's/"read": false/"read": true/' before >after
same "$(sum after)" "$(sum "$state/mail/bob/$name")" 'and the bytes are those of our own mark'
exits 4 'high is no priority here' cs --as alice send bob --priority high -m x
exits 4 'nor is there a Cc' cs --as alice send bob --cc carol -m x
exits 4 'nor a thread' cs --as alice send bob --thread build-42 -m x
head -c 70000 /dev/zero | tr '\0' x >large
exits 4 'nor more than 64 KiB' "$BIN" --room "$room" --as alice send bob -f large
says err '65536|64 KiB' 'with the limit'
exits 4 'a name that leads elsewhere is refused' cs --as alice send ../evil -m x
same 3 "$(ls "$state/mail/bob" | wc -l)" 'and nothing came of all that'

# ---- answers ----
id=$(cs --as bob inbox --json | jq -r 'select(.subject == "second").id')
check 'reply' cs --as bob reply "$id" -m 'done'
same "$(sed -n 2p listed | jq -r .name)" "$(peer list alice | jq -r .in_reply_to)" 'names the file that it answers'
same "$id" "$(cs --as alice inbox --json | jq -r .reply_to)" 'which is the id that the sender was told'

# ---- the peer writes, we read ----
peer send dora mayor 'whole second' 'text' 2026-03-05T10:30:00Z >/dev/null
peer send dora mayor 'with milliseconds' 'text' >/dev/null
peer send-plain dora witness-01 'DONE: t-1' 2026-03-06T09:15:00Z >/dev/null
printf '{\n  "from": "mayor",\n  "bo' >"$state/mail/dora/2026-03-06T09-15-01.000Z-mayor.json"
printf '{' >"$state/mail/dora/.msg.tmp"
sed 's/mayor/deacon/' "$state/mail/dora/2026-03-05T10-30-00Z-mayor.json" >"$state/mail/dora/2026-03-07T00-00-00Z-mayor.json"
cs --as dora inbox --json >out 2>err
same 'mayor:with milliseconds deacon:whole second witness-01:DONE mayor:whole second ' \
	"$(jq -r '"\(.from):\(.subject)"' out | tr '\n' ' ')" 'all that is whole is listed, by its fields, the newest first'
says err '2026-03-06T09-15-01.000Z-mayor.json' 'what is not is told'
same '2026-03-05T10:30:00.000Z' "$(sed -n 4p out | jq -r .date)" 'with the right time'
same 6 "$(ls -A "$state/mail/dora" | wc -l)" 'and nothing was removed'
extra=$state/mail/dora/2026-03-08T00-00-00.000Z-x.json
printf '{"zeta": 12345678901234567890, "from": "x", "to": "dora", "nested": {"read": false}, "read": false}' >"$extra"
id=$(cs --as dora inbox --json 2>/dev/null | jq -r 'select(.from == "x").id')
check 'a mark' cs --as dora mark read "$id"
same '{"zeta": 12345678901234567890, "from": "x", "to": "dora", "nested": {"read": false}, "read": true}' "$(cat "$extra")" 'keeps what it does not know'

# ---- archive ----
check 'archive --older-than' cs --as dora archive --older-than 24h
says out '^1 message archived, 3 unread kept' 'moves what was read'
check 'archive --include-unread' cs --as dora archive --older-than 24h --include-unread
says out '^3 messages archived' 'and the rest when asked'
same 'with milliseconds' "$(cs --as dora inbox --json 2>/dev/null | jq -r .subject)" 'by the times in their names, whatever the dialect'
same 4 "$(ls "$state/mail/dora/archive" | wc -l)" 'into the archive'
exits 0 'an empty mailbox' cs --as nobody archive --older-than 24h
says out '^0 messages' 'is no error'

# ---- who, wait, drain, why ----
cs who --json >out 2>err
same 'alice bob dora lead-01 worker-7 ' "$(jq -r '.name // .agent' out | sort | tr '\n' ' ')" 'who lists the mailboxes'
(sleep 0.2; peer send eve mayor wake up >/dev/null) &
exits 0 'wait sees the first mail of a mailbox that was not there' cs --as eve wait --timeout 10s
wait
id=$(cs --as eve inbox --json | jq -r .id)
exits 0 'read shows it' cs --as eve read "$id"
says out 'wake' 'whole'
same true "$(peer list eve | jq .read)" 'and marks it for the peer'
exits 0 'why' cs --as eve why "$id"
says out 'eve.*read' 'tells where it is'

# ---- all at once: the peer's senders lose each other's mail, never ours ----
rm -rf "$state/mail/bob"
peer flood bob p-1 60 >flood1 & a=$!
peer flood bob p-2 60 >flood2 & b=$!
for i in 1 2 3 4 5 6 7 8; do cs --as "m-$((i % 2))" send bob -m "ours $i" >/dev/null 2>&1 || echo "send $i failed"; done >failed
wait $a $b
same '' "$(cat failed)" 'our sends succeed'
same 'ours 1 ours 2 ours 3 ours 4 ours 5 ours 6 ours 7 ours 8 ' \
	"$(cs --as bob inbox --json 2>/dev/null | jq -r 'select(.subject | startswith("ours")).subject' | sort | tr '\n' ' ')" 'and all of ours arrive'
(for i in 1 2 3 4 5 6 7 8 9 10; do cs --as "m-$i" send frank -m "$i" >/dev/null 2>&1 & done; wait) &
exits 0 'a peer that lists meanwhile sees only whole files' python3 "$top/tests/peers/chipset-peer.py" "$state" look frank 10
wait
same '' "$(ls -A "$state/mail/frank" | grep -v '\.json$')" 'and nothing else is left'

# ---- hostile ----
python3 - "$state/mail/dora" <<'EOF'
import sys
box = sys.argv[1]
open(box + '/2026-03-09T00-00-00.000Z-deep.json', 'w').write('{"body":' * 100000)
open(box + '/2026-03-09T00-00-01.000Z-huge.json', 'w').write('{"body":"' + 'x' * (17 << 20) + '"}')
open(box + '/2026-03-09T00-00-02.000Z-path.json', 'w').write('{"from":"../../x","to":"/etc","in_reply_to":"../../../y.json","read":false,"read":0}')
open(box + '/2026-03-09T00-00-03.000Z-bytes.json', 'wb').write(b'{"from":"x","to":"dora","body":"\xff\xfe"}')
EOF
cs --as dora inbox --json >out 2>err
same 3 "$(wc -l <out)" 'deep and huge files are passed over'
says err 'deep' 'and told'
exits 0 'a path in every field' cs --as dora drain
same '' "$(find "$scratch" -newer large -name x -o -name 'y.json')" 'leads nowhere'

# ---- by hand: mailroom-chipset(5) ----
rm -rf "$scratch/.chipset"; mkdir hand && cd hand || exit 1
state=$scratch/hand/.chipset/state room=chipset:.chipset/state
rm -f block.*
awk '/^\.Bd -literal/ { n++; on = 1; next } /^\.Ed/ { on = 0 } on { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print > ("block." n) }' "$top/man/mailroom-chipset.5"
same 5 "$(ls block.* | wc -l)" 'the manual has the table and shows how to send, read, mark and archive'
exits 0 'sending with sh' sh -eu block.2
same 'alice:from a shell:false' "$(cs --as bob inbox --json | jq -r '"\(.from):\(.subject):\(.read)"')" 'mailroom sees it'
check 'a second one' cs --as carol send bob -m 'from mailroom'
exits 0 'reading with sh' sh -eu block.3
same 'alice: from a shell|Hello, bob.|carol: from mailroom|from mailroom|' "$(tr '\n' '|' <out)" 'shows both'
exits 0 'marking with sh' sh -eu block.4
same '' "$(cs --as bob inbox --json)" 'is a mark for mailroom'
exits 0 'archiving with sh' sh -eu block.5
same 0:2 "$(ls .chipset/state/mail/bob | grep -c json):$(ls .chipset/state/mail/bob/archive | wc -l)" 'moves both'
exits 0 'search' cs --as bob search Hello --json
same 'from a shell' "$(jq -r .subject out)" 'still finds them'
exits 0 'doctor' cs doctor
says out '^0 problems' 'finds nothing wrong'
finish
