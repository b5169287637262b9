# once
# export and import: all mail of a room into another, of any two kinds, again and again without doubling anything.
. "$(dirname "$0")/../lib/tap.sh"

new_room() { rm -rf "$1"; mkdir -p "$1" && mr init "$1" --name "${2:-$1}" --sync none >/dev/null 2>&1; }
# mail ROOM AGENT...: what was sent to them, a line each, without what another room gives it anew: ids, and what it
# states in the body, as lines at the end or as a heading.
mail() {
	where=$1; shift
	for who; do
		ids=$(mr --room "$where" --as "$who" search -E . --json 2>/dev/null | jq -r 'select(.folder != "sent")|.id')
		# shellcheck disable=SC2086
		[ -z "$ids" ] || mr --room "$where" --as "$who" read $ids --peek --json 2>/dev/null |
			jq -c "[\"$who\",.from,(.date|sub(\"[.].*\";\"\")),.read,(.body|sub(\"\n\$\";\"\")|split(\"\n-- \n\")[0]|sub(\"^# [^\n]*\n\n\";\"\"))]"
	done | sort
}
count() { find "$1" -type f -name "$2" ! -path '*/.Sent.*' | wc -l | tr -d ' '; }

# ---- A room with what mail can have ----
mkdir a && mr init a --name a --sync none >/dev/null 2>&1
for who in alice bob; do mr --room a register $who >/dev/null 2>&1; done
one=$(mr --room a --as alice send bob -s Plans -m 'first' --type task --priority urgent 2>/dev/null)
mr --room a --as bob read "$one" >/dev/null 2>&1
two=$(mr --room a --as bob reply "$one" -m 'second' 2>/dev/null)
mr --room a --as alice send bob -s Stop -m '{"type":"shutdown_request"}' >/dev/null 2>&1
mr --room a --as bob archive "$one" >/dev/null 2>&1

# ---- Our own kind ----
new_room b
check 'a room is copied into another' mr --room a export --to b
says out '^copied 3, already there 0, skipped 0$' 'and it is said how much'
check 'again' mr --room a export --to b --json
same '{"agents":3,"copied":0,"there":3,"skipped":0,"stopped":false}' "$(cat out)" 'nothing is copied twice'
same 3 "$(count b '*.mr*')" '... and nothing is there twice'
fields() { mr --room "$1" --as "$2" read "$3" --peek --json 2>/dev/null |
	jq -c '[.id,.from,.to,.subject,.date,.type,.priority,.thread,.reply_to,.read,.folder,.body]'; }
same "$(fields a bob "$one")" "$(fields b bob "$one")" 'all fields of a message are kept'
same "$(fields a alice "$two")" "$(fields b alice "$two")" '... and of its answer'
mr --room b --as bob inbox --json >out
id=$(jq -r .id out)
mr --room b --as bob read "$id" --peek --json >out
same 'alice sent this; it is shown as text, not as a command:' "$(jq -r .body out | head -n 1)" 'a command of a program becomes prose'

exits 4 'two agents do not become one' mr --room a export --to b --name alice=bob
says err "'alice' and 'bob' would both become 'bob'" '... and it is said which'
new_room c
check 'an agent gets another name' mr --room a export --to c --name bob=old/bob bob
same 'old/bob' "$(mr --room c who --json 2>/dev/null | jq -r 'select(.name != "operator")|.name')" '... and only his mail is copied'
new_room c
check 'a rehearsal' mr --room a export --to c --dry-run
says out '^would copy 3' '... says how much'
same 0 "$(count c '*.mr*')" '... and copies nothing'
exits 4 'not into itself' mr --room a export --to a
exits 5 'a room that is not there' mr --room a export --to nowhere
exits 2 'the other room must be named' mr --room a import

broken=$(find a -name "*$two.mr*" ! -path '*/.Sent.*')
cp "$broken" saved && chmod u+w "$broken" && : >"$broken"
printf 'no header at all' >"$broken"
exits 1 'a message that cannot be read is reported' mr --room a export --to c
says err 'was skipped: ' '... with the reason'
says out '^copied 2, already there 0, skipped 1$' '... and the others are copied'
cp saved "$broken"

# ---- A plain Maildir ----
mkdir -p m/cur m/new m/tmp m/.Archive.2020/cur m/.Archive.2020/new m/.Drafts/cur m/.Drafts/new
letter() { printf 'From: %s\nTo: me@example.com\nSubject: %s\nMessage-ID: <%s@x>\nDate: Mon, 02 Mar 2020 10:0%s:00 +0000\n%b\n%s\n' "$@"; }
letter 'Bob <bob@example.com>' Hello one 0 '' 'body' >'m/cur/1583143200.1.host:2,RS'
letter me@example.com 'Re: Hello' two 1 'In-Reply-To: <one@x>\nX-Spam: no\n' 'answer' >m/new/1583143260.2.host
letter a@b Old three 2 '' 'old' >'m/.Archive.2020/cur/1583143320.3.host:2,FS'
letter a@b Draft four 3 '' 'no' >m/.Drafts/cur/1583143380.4.host:2,D
find m | sort >before
new_room c
exits 2 'a Maildir must have an agent' mr --room c import --from m
check 'a plain Maildir is imported' mr --room c import --from m --agent bob
check 'again, by its kind' mr --room c import --from folder:m --agent bob
says out '^copied 0, already there 3, skipped 0$' '... nothing twice'
find m | sort | cmp -s - before && ok 'nothing in it was changed' || not_ok 'nothing in it was changed'
mr --room c --as bob inbox --all --json >out
same 'me@example.com Re: Hello 2020-03-02T10:01:00.000Z false,bob@example.com Hello 2020-03-02T10:00:00.000Z true' \
	"$(jq -r '"\(.from) \(.subject) \(.date) \(.read)"' out | paste -sd,)" 'dates and marks are kept'
same "$(jq -r 'select(.subject == "Hello")|.id' out)" "$(jq -r 'select(.subject != "Hello")|.reply_to' out)" 'an answer answers the message here'
same 1 "$(find c -path '*.Archive.2020-03*' -name '*:2,FS' | wc -l | tr -d ' ')" 'the archive is the archive'
exits 4 'a folder is only read' mr --room a export --to folder:m

# ---- Every other kind, and back ----
mail b alice bob >b.mail
for kind in teams chipset handoff workspace; do
	there=$kind:$scratch/$kind/room
	rm -rf "./$kind"; mkdir -p $kind; [ $kind = teams ] || mkdir -p $kind/room
	check "$kind: export" mr --room a export --to "$there"
	says out '^copied 3, already there 0, skipped 0$' "$kind: all of it"
	mail "$there" alice bob >first
	check "$kind: again" mr --room a export --to "$there"
	says out '^copied 0, already there 3, skipped 0$' "$kind: nothing twice"
	mail "$there" alice bob >second
	cmp -s first second && ok "$kind: it stays as it was" || { diff first second | note; not_ok "$kind: it stays as it was"; }
	new_room back
	check "$kind: and back" mr --room back import --from "$there"
	check "$kind: and back again" mr --room back import --from "$there"
	says out 'already there 3, skipped 0$' "$kind: nothing twice on the way back"
	mail back alice bob >got
	cmp -s b.mail got && ok "$kind: sender, date, read state and body are kept" || { diff b.mail got | note; not_ok "$kind: sender, date, read state and body are kept"; }
done

mr --room b --as operator purge "$one" >/dev/null 2>&1
check 'what was purged over there' mr --room a export --to b
same 2 "$(count b '*.mr*')" '... does not come back'
new_room c
mr --room c register rig/witness >/dev/null 2>&1
exits 4 'an agent who cannot have his name there' mr --room c export --to "chipset:$scratch/none"
says err "hint: .*--name 'rig/witness=NEW'" '... is told what to do'
[ ! -e none ] && ok '... and nothing was written' || not_ok '... and nothing was written'
check '... and does it' mr --room c export --to "chipset:$scratch/none" --name rig/witness=witness

# ---- Killed, interrupted, and a thousand ----
if MAILROOM_FAULT= "$DEVBIN" --version >/dev/null 2>&1; then
	for kind in maildir teams chipset handoff workspace; do
		lost=
		for n in 15 40 65 90; do
			rm -rf killed; mkdir -p killed/room; there=$kind:$scratch/killed/room
			[ $kind = teams ] && rmdir killed/room
			[ $kind = maildir ] && mr init killed/room --name k --sync none >/dev/null 2>&1
			MAILROOM_FAULT=kill-before:$n "$DEVBIN" --room a export --to "$there" </dev/null >/dev/null 2>&1
			mr --room a export --to "$there" >out 2>err || lost="$lost $n:exit"
			[ "$(mail "$there" alice bob | wc -l)" -eq 3 ] || lost="$lost $n"
		done
		same '' "$lost" "$kind: killed in the middle and repeated, all of it is there once"
	done
	new_room some && mkdir -p few/cur few/new few/tmp
	for n in 10 11 12 13 14 15; do letter alice "$n" "$n" 0 '' "$n" >few/new/15831432$n.$n.host; done
	mr --room some import --from few --agent bob >/dev/null 2>&1
	for kind in maildir teams chipset handoff workspace; do
		rm -rf atonce; mkdir -p atonce/room; there=$kind:$scratch/atonce/room
		[ $kind = teams ] && rmdir atonce/room
		[ $kind = maildir ] && mr init atonce/room --name k --sync none >/dev/null 2>&1
		for n in 1 2 3; do MAILROOM_FAULT=delay:300 "$DEVBIN" --room some export --to "$there" </dev/null >/dev/null 2>&1 & done
		wait
		same 6 "$(mail "$there" bob | wc -l | tr -d ' ')" "$kind: three exports at once double nothing"
	done
	new_room c
	MAILROOM_FAULT=delay:2000 "$DEVBIN" --room a export --to c >out 2>err </dev/null &
	pid=$!
	sleep 0.1
	kill -INT $pid 2>/dev/null
	wait $pid
	mr --room a export --to c >/dev/null 2>&1
	same 3 "$(count c '*.mr*')" 'interrupted and repeated, all of it is there once'
fi
mkdir -p many/cur many/new many/tmp
awk 'BEGIN { for (i = 0; i < 1000; i++) { f = sprintf("many/%s/%d.%d.host%s", i % 2 ? "new" : "cur", 1583143200 + i, i, i % 2 ? "" : ":2,S")
	printf "From: a@b\nSubject: number %d\nDate: Mon, 02 Mar 2020 10:%02d:%02d +0000\n\nbody %d\n", i, i / 60, i % 60, i >f; close(f) } }'
new_room c
check 'a thousand messages' mr --room c import --from many --agent bob
says out '^copied 1000, already there 0, skipped 0$' '... all of them'
script -qec "MAILROOM_FAULT=delay:300 '$DEVBIN' --room '$scratch/c' import --from '$scratch/many' --agent bob" typescript >/dev/null 2>&1 </dev/null
says typescript '\[#+ *\] [0-9]+ of 1000 ' 'a long run shows how far it is'
check '... and again' mr --room c import --from many --agent bob
says out '^copied 0, already there 1000, skipped 0$' '... nothing twice'
check '... into a room of another kind' mr --room c export --to "chipset:$scratch/crowd"
says out '^copied 1000, already there 0, skipped 0$' '... all of them there, too'
same 1000 "$(find crowd -name '*.json' | wc -l | tr -d ' ')" '... each in its file'
same 'a-b X-From: a@b' "$(jq -r '"\(.from) \(.body|split("\n-- \n")[1]|rtrimstr("\n"))"' crowd/mail/bob/archive/*00.000Z* crowd/mail/bob/*00.000Z* 2>/dev/null | sort -u)" \
	'a sender whose name cannot be one there is stated'
finish
