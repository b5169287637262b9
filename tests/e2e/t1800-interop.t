# once
# Other mail programs in a room of ours, and their mail in our hands: mblaze, notmuch and neomutt, the real ones.
. "$(dirname "$0")/../lib/tap.sh"

for program in mdeliver notmuch neomutt script; do command -v $program >/dev/null || { echo "Bail out! $program is missing: tools/deps test"; exit 1; }; done
room alice bob
bob=$scratch/.mailroom/agents/bob alice=$scratch/.mailroom/agents/alice
MBLAZE=$HOME/.mblaze; mkdir -p "$MBLAZE"; : >"$MBLAZE/seq"; export MBLAZE
tree() { find .mailroom -name lives -prune -o -type f -printf '%P %m %s %i\n' | sort | cksum; }
a=$("$BIN" --as alice send bob -s '🤝 HANDOFF: naïve café' </dev/null 2>/dev/null -m 'the text of the handoff
on two lines')
r=$("$BIN" --as bob reply "$a" -m 'taken' </dev/null 2>/dev/null)
r2=$("$BIN" --as alice reply "$r" -m 'thanks' </dev/null 2>/dev/null)
b=$(send alice bob 'something else')
before=$(tree)

# ---- mblaze reads ----
exits 0 'mlist lists the room' mlist "$bob"
sort out >list
same 3 "$(grep -cE "$a|$r2|$b" list)" 'all messages of the inbox'
exits 0 'mscan' mscan -f '%f|%s' $(cat list)
says out '^alice@town\|🤝 HANDOFF: naïve café$' 'shows sender and subject'
exits 0 'mshow' mshow -n "$(grep "$a" list)"
says out '^Subject: 🤝 HANDOFF: naïve café$' 'shows the subject'
says out '^on two lines$' 'and the text'
exits 0 'mlist of sent mail' mlist "$bob"/.Sent.*
says out "$r" 'works as for any Maildir++ folder'
find "$alice" "$bob" -path '*/.Sent.*' -prune -o -name '*.mr*' -print | mthread >threaded
exits 0 'mthread' mscan -f '%i|%s' <threaded
same '|🤝 HANDOFF: naïve café;.|Re: 🤝 HANDOFF: naïve café;..|Re: 🤝 HANDOFF: naïve café;|something else;' "$(awk -F'|' '{ gsub(/ /, ".", $1); printf "%s|%s;", $1, $2 }' out)" 'threads an answer to an answer'
exits 0 'mpick' sh -c "mlist '$bob' | mpick -t 'subject =~ \"HANDOFF\" && from =~ \"alice\"'"
same 2 "$(grep -c . out)" 'searches'
exits 0 'mhdr' mhdr -h message-id "$(grep "$a" list)"
says out "^<$a@town>$" 'reads the message id'

# ---- notmuch reads ----
mkdir nm
cat >nm/config <<CONFIG
[database]
path=$scratch/nm
mail_root=$bob
[user]
name=bob
primary_email=bob@town
[new]
tags=new
ignore=agent;lives;held;dovecot-keywords;maildirfolder;.lock
[maildir]
synchronize_flags=false
CONFIG
export NOTMUCH_CONFIG="$scratch/nm/config"
exits 0 'notmuch new' notmuch new
says out 'Added 4 new messages' 'finds the mail, sent mail too'
exits 0 'notmuch search' notmuch search --format=json subject:HANDOFF
same '1 3' "$(jq -r '"\(length) \(.[0].total)"' out)" 'one thread of three'
same '🤝 HANDOFF: naïve café' "$(jq -r '.[0].subject' out | sed 's/^Re: //')" 'with its subject'
exits 0 'notmuch search by text' notmuch search --output=messages thanks
same "id:$r2@town" "$(cat out)" 'finds it'
exits 0 'notmuch show' notmuch show --format=json "id:$a@town"
same 'alice@town|the text of the handoff
on two lines' "$(jq -r '[..|objects|select(.headers?)][0]|"\(.headers.From)|\(.body[0].content)"' out)" 'shows sender and text'
exits 0 'notmuch count' notmuch count --output=threads '*'
same 2 "$(cat out)" 'two threads in all'
exits 0 'notmuch address' notmuch address 'from:alice'
same alice@town "$(cat out)" 'understands our addresses'
same "$before" "$(tree)" 'and nothing of this changed a file of the room'
# ---- notmuch as mailroom-maildir(5) shows it ----
sed -n '/^\.Xr notmuch 1/,/^\.Ed/s/^\$ //p' "$top/man/mailroom-maildir.5" >shown
check 'the manual shows how notmuch is used' test "$(wc -l <shown)" -ge 6
mkdir nmhome nmhome/.cache
exits 0 'as it is written there' env -u NOTMUCH_CONFIG HOME="$scratch/nmhome" sh -e ./shown
says out 'Added 4 new messages' 'notmuch finds the mail'
printf 'from:alice and subject:HANDOFF\n' >question
exits 0 'and answers' env NOTMUCH_CONFIG="$scratch/nmhome/.notmuch-mailroom" HOME="$scratch/nmhome" notmuch count "$(cat question)"
check 'with what is there' test "$(cat out)" -ge 1
same "$before" "$(tree)" 'without changing a file of the room'

# ---- mail that others deliver ----
umask 077
# deliver TEXT: as printf writes it, through mdeliver. Sets id and file, its name.
deliver() {
	file=$(printf "$1" | mdeliver -v "$bob") && file=${file##*/} &&
		id=$(mr --as bob inbox --limit 0 --json | jq -r "select(.path|endswith(\"$file\")).id") && file=${file%:2,} && [ -n "$id" ]
}
field() { mr --as bob read --peek "$id" --json | jq -r "$1"; }
mr --as bob drain >/dev/null
check 'mdeliver' deliver 'From: Carol <carol@example.org>\nTo: bob@town\nSubject: delivered by mblaze\nDate: Sat, 14 Nov 2026 10:00:00 +0100\nMessage-ID: <xyz@example.org>\n\nHello.\n'
same 1 "$(unread bob)" 'is unread mail for mailroom'
same 'delivered by mblaze|2026-11-14T09:00:00' "$(field '"\(.subject)|\(.date)"' | cut -c 1-39)" 'with subject and date'
same 'Hello.' "$(field .body)" 'and text'
case $(field .from) in *carol@example.org*) ok 'from its sender';; *) not_ok "from its sender: $(field .from)";; esac
short=$(printf %s "$id" | tail -c 6)
exits 0 'read by its last six characters' mr --as bob read "$short"
says out 'delivered by mblaze' 'shows it'
same 1 "$(ls "$bob/cur" | grep -c ':2,S$')" 'and marks it seen under its own name'
mr --as bob drain >/dev/null

check 'CRLF, quoted-printable, encoded subject' deliver 'From: carol@example.org\r\nTo: bob@town\r\nSubject: =?utf-8?B?8J+knQ==?= =?iso-8859-1?Q?HANDOFF:_caf=E9?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nna=C3=AFve and a very long li=\r\nne\r\nsecond\r\n'
same '🤝HANDOFF: café' "$(field .subject)" 'the subject is decoded'
same 'naïve and a very long line
second' "$(field .body)" 'the text too, with plain line ends'
exits 0 'search finds the decoded text' mr --as bob search 'very long line' HANDOFF --json
same "$id" "$(jq -r .id out)" 'and subject'
check 'base64 in latin1' deliver 'From: carol@example.org\nSubject: old\nContent-Type: text/plain; charset="ISO-8859-1"\nContent-Transfer-Encoding: base64\n\nZ3LpdHplIGF1cyBLb2xuCg==\n'
same 'grétze aus Koln' "$(field .body)" 'is UTF-8 when read'
check 'folded headers' deliver 'From: "Carol\n the Folder"\n <carol@example.org>\nSubject: a subject\n\tthat goes on\n   and on\nX-Note: one\n two\n\nfolded\n'
same 'a subject that goes on and on' "$(field .subject | tr -s '\t ' ' ')" 'are unfolded'
check 'hardly any header' deliver 'Subject: nothing else\n\nbare\n'
same 'nothing else|bare' "$(field '"\(.subject)|\(.body)"' | tr -d '\n')" 'is read'
printf 'no header at all\n' >"$bob/new/1762900000.plain.host"
exits 0 'a file without a header' mr --as bob inbox --json
cat out err >both
says both '1762900000\.plain' 'is listed or told about'
exits 0 'drain' mr --as bob drain --json
check 'and is kept' sh -c "ls '$bob'/*/ '$bob'/.Archive.*/cur | grep 1762900000.plain"
rm -f "$bob"/*/1762900000.plain.host*

# ---- foreign files under our commands ----
check 'a message' deliver 'From: alice@town\nTo: bob@town\nSubject: foreign work\nMessage-ID: <work-1@elsewhere>\n\nplease do\n'
exits 0 'recv holds a foreign file' mr --as bob recv --json
same "$id" "$(jq -r .id out)" 'under its id'
token=$(jq -r .token out)
exits 0 'release' mr --as bob release "$token"
same "$id" "$(mr --as bob inbox --json | jq -r .id)" 'gives it back with the same id'
exits 0 'recv again' mr --as bob recv --json
same "1 $id" "$(jq -r '"\(.attempt) \(.id)"' out)" 'and a release was no attempt'
exits 0 'done' mr --as bob done "$(printf %s "$id" | tail -c 6)"
check 'it is archived by the month in its name' sh -c "ls '$bob/.Archive.$(date -u +%Y-%m)/cur' | grep '^$file.*:2,'"
exits 0 'and found there' mr --as bob read "$id" --json
same true "$(jq .acked out)" 'as done'
check 'another' deliver 'From: alice@town\nTo: bob@town\nSubject: a question\nMessage-ID: <q-1@elsewhere>\n\nwhy?\n'
exits 0 'reply to a foreign message' mr --as bob reply "$id" -m 'because'
check 'refers to it by the id its own program knows' grep -q '^In-Reply-To: <q-1@elsewhere' "$alice/new/"*"$(cat out)"*
exits 0 'archive of a foreign file' mr --as bob archive --include-unread "$id"
exits 0 'pin, in the archive' mr --as bob mark pinned "$id"
check 'keeps its name' sh -c "ls '$bob'/.Archive.*/cur | grep ':2,FR*S*\$'"
exits 0 'why of a foreign message' mr --as bob why "$id"
says out 'archived' 'knows it'

# ---- flags of others ----
printf 'Subject: flags\n\nx\n' >"$bob/cur/1794700000.M1P2.host,U=7:2,Pbc"
id=$(mr --as bob inbox --json | jq -r 'select(.subject=="flags").id')
exits 0 'unseen mail of another program in cur/' mr --as bob mark read "$id"
check 'keeps passed, keywords and UID' test -f "$bob/cur/1794700000.M1P2.host,U=7:2,PSbc"
exits 0 'pinned' mr --as bob mark pinned "$id"
check 'sorted in' test -f "$bob/cur/1794700000.M1P2.host,U=7:2,FPSbc"
exits 0 'unread again' mr --as bob mark unread "$id"
exits 0 'recv and back' mr --as bob recv --json
exits 0 'keeps the id' mr --as bob release "$id"
check 'and all letters' sh -c "ls '$bob/cur' | grep '^1794700000.M1P2.host,U=7.*:2,FPbc\$'"
printf 'Subject: a keyword\n\nx\n' >"$bob/cur/1794700001.M2P2.host:2,Sa"
same false "$(mr --as bob inbox --all --json | jq 'select(.subject=="a keyword").acked')" "another program's keyword 'a' is not ours"
printf 'Subject: cut short\n\nx\n' >"$bob/new/1794700002.M3P2.host:2"
id=$(mr --as bob inbox --json | jq -r 'select(.subject=="cut short").id')
mr --as bob mark read --from nobody >/dev/null 2>&1
exits 0 'a name that ends in ":2"' mr --as bob mark read "$id"
same "$id" "$(mr --as bob inbox --all --json | jq -r 'select(.subject=="cut short").id')" 'keeps its id'
mr --as bob mark unpinned --all >/dev/null; mr --as bob drain >/dev/null; mr --as bob archive --all-read >/dev/null

# ---- minc and mflag ----
c=$(send alice bob 'moved by minc'); d=$(send alice bob 'flagged by mflag')
exits 0 'minc' minc "$bob"
same 0 "$(ls "$bob/new" | wc -l)" 'moves all to cur/'
same 2 "$(unread bob)" 'unseen mail in cur/ is still unread'
exits 0 'mflag -S' sh -c "mflag -S '$bob'/cur/*'$d'*"
same "$c" "$(mr --as bob inbox --json | jq -r .id)" 'is a mark for us'
exits 0 'mflag -s' sh -c "mflag -s '$bob'/cur/*'$d'*"
same 2 "$(unread bob)" 'and taking it back, too'
sh -c "mflag -P '$bob'/cur/*'$c'*" >/dev/null
exits 0 'read' mr --as bob read "$c"
check "keeps mflag's flag" sh -c "ls '$bob/cur' | grep '$c.mr:2,PS\$'"
exits 0 'recv of mail in cur/' mr --as bob recv --json
same "$d" "$(jq -r .id out)" 'takes it'
exits 0 'done' mr --as bob done "$d"
mr --as bob archive --all-read >/dev/null

# while they move files, each message is handed over once
( while [ ! -e stop ]; do minc -q "$bob" >/dev/null 2>&1; mlist "$bob" 2>/dev/null | mflag -P 2>/dev/null; mlist "$bob" 2>/dev/null | mflag -p 2>/dev/null; done >moved ) &
mover=$!
( i=0; while [ $i -lt 60 ]; do send alice bob "number $i"; i=$((i + 1)); done >sent; : >all-sent ) &
sender=$!
: >got
while [ ! -e all-sent ]; do mr --as bob drain --json 2>>drain.err | jq -r .id >>got; done
tries=0; while [ "$(wc -l <got)" -lt 60 ] && [ $tries -lt 10 ]; do mr --as bob drain --json 2>>drain.err | jq -r .id >>got; tries=$((tries + 1)); done
: >stop; wait $mover $sender
[ "$(grep -c ':2,P$' moved)" -gt 20 ] && ok "they moved $(wc -l <moved) files" || not_ok "they moved $(wc -l <moved) files"
sort sent >sent.sorted; sort got >got.sorted
if cmp -s sent.sorted got.sorted; then ok 'while minc and mflag move files, 60 of 60 are drained once'
else diff sent.sorted got.sorted | head -n 10 | note; head -n 5 drain.err | note; not_ok 'while minc and mflag move files, 60 of 60 are drained once'; fi

# ---- a scripted neomutt ----
mr --as bob archive --all-read >/dev/null; mr --as bob drain >/dev/null
e=$(send alice bob 'neomutt one'); f=$(send alice bob 'neomutt two'); g=$(send alice bob 'neomutt three')
mkfifo keys; exec 9<>keys
# mutt KEYS: opens the mailbox, presses them, leaves.
mutt() {
	cat >mutt.sh <<RUN
exec neomutt -n -F /dev/null -e 'set mbox_type=Maildir quit=yes move=no record="" sort=date folder=$HOME mark_old=yes wait_key=no sleep_time=0' \
	-e 'push "$1"' -f $bob
RUN
	TERM=xterm timeout 10 script -qec 'sh mutt.sh' /dev/null <&9 >mutt.out 2>&1
}
check 'neomutt reads one message' mutt '<first-entry><display-message><exit><sync-mailbox><quit>'
same 0 "$(ls "$bob/new" | wc -l)" 'moves the others to cur/ as old'
same 2 "$(ls "$bob/cur" | grep -cE "($e|$f|$g).mr:2,\$")" 'unseen'
exits 0 'inbox' mr --as bob inbox --json
same "$(ls "$bob/cur" | sed -n 's/.*\.\(.*\)\.mr:2,$/\1/p' | sort)" "$(jq -r .id out | sort)" 'they are still unread for mailroom'
same 1 "$(ls "$bob/cur" | grep -cE "($e|$f|$g).mr:2,S\$")" 'the one it read is not'
check 'neomutt flags one' mutt '<first-entry><flag-message><sync-mailbox><quit>'
flagged=$(ls "$bob/cur" | sed -n 's/.*\.\(.*\)\.mr:2,F.*/\1/p')
check 'in the name' test -n "$flagged"
same "$flagged" "$(mr --as bob inbox --all --json | jq -r 'select(.pinned).id')" 'a flag is a pin'
exits 0 'drain' mr --as bob drain --json
same 2 "$(jq -s length out)" 'consumes what was unread'
check 'neomutt opens what is left' mutt '<quit>'
exits 0 'doctor' mr doctor
says out '^0 problems' 'finds nothing wrong with all of it'
finish
