# once
# What the manual says is so: every example runs, help and man pages agree, and a shell alone can take part in a room.
. "$(dirname "$0")/../lib/tap.sh"

mkdir -p bin libexec/mailroom && cp "$BIN" bin/mailroom && cp "$(dirname "$DEVBIN")/mailroom-full" "$(dirname "$DEVBIN")/mailroom-serve" libexec/mailroom/
PATH=$scratch/bin:$PATH
mailroom describe --all >all </dev/null

# ---- every example of every command ----
room alice bob
mkdir fresh && cp -a .mailroom fresh/ && rm -rf .mailroom
# one file an example, its command in the first line
jq -rj '.commands[]|.name as $name|.examples[]|"\($name)\n\(.)\u0001"' all | awk 'BEGIN { RS = "\1" } { print > ("example." NR); close("example." NR) }'
n=$(ls example.* | wc -l) i=0
while [ $i -lt "$n" ]; do
	i=$((i + 1))
	name=$(head -n 1 example.$i)
	tail -n +2 example.$i >example
	cp -a fresh "at$i"
	user trust "at$i" >/dev/null 2>&1
	if (cd "at$i" && sh -eu ../example </dev/null >../out 2>../err) && { [ -s out ] || grep -q -e --json example; }; then ok "$name: $(head -n 1 example)"
	else note <example; note <out; note <err; not_ok "$name: $(head -n 1 example)"; fi
	rm -rf "at$i"
done
same '' "$(jq -r '.commands[]|select(.examples|length == 0)|.name' all)" 'no command is without an example'
same "cat <<'EOF'" "cat $(jq -r '.commands[]|select(.name == "send")|.examples[0]' all | head -n 1 | grep -o "<<'EOF'")" "the first example of send is a heredoc"

# ---- help, man pages and describe say the same ----
check 'gen-help writes the pages' "$top/tools/gen-help" --man man1
for command in $(jq -r '.commands[].name' all); do
	page=man1/mailroom-$command.1
	[ -f "$page" ] || { echo "$command: no page"; continue; }
	mandoc -T lint -W warning "$page" >lint || sed "s/^/$command: /" lint
	# as mandoc shows it, on one line
	shown=$(mandoc -T utf8 "$page" | sed 's/.\x08//g' | awk '/^SYNOPSIS/ { on = 1; next } /^[A-Z]/ { on = 0 } on' | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')
	mailroom "$command" --help </dev/null >help
	help=$(awk '/^Usage/ { on = 1; next } on && /^  mailroom/ { print; next } on { exit }' help | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')
	described="mailroom $command $(jq -r ".commands[]|select(.name==\"$command\")|.synopsis" all)"
	described=${described% }
	[ "$shown" = "$help" ] || echo "$command: the page says '$shown', --help '$help'"
	[ "$help" = "$described" ] || echo "$command: --help says '$help', describe '$described'"
	# exit codes
	listed=$(awk '/^\.SH EXIT STATUS/ { on = 1; next } /^\.SH/ { on = 0 } on && /^\\fB[0-9]/' "$page" | tr -dc '0-9' | sed 's/\(.\)/\1 /g')
	codes=$(jq -r ".commands[]|select(.name==\"$command\")|.exit_codes|keys[]" all | tr '\n' ' ')
	[ "$listed" = "$codes" ] || echo "$command: the page lists exit codes '$listed', describe '$codes'"
	# options
	tr -d '\\' <"$page" >plain
	for option in $(jq -r ".commands[]|select(.name==\"$command\")|.options[].name" all); do
		grep -q -e "--$option" help || echo "$command: --$option is not in --help"
		grep -q -e "--$option" plain || echo "$command: --$option is not in its page"
	done
	grep -q '^\.SH DIFFERENCES' "$page" || echo "$command: no section DIFFERENCES"
done >problems
if [ -s problems ]; then note <problems; not_ok 'synopsis, options and exit codes agree everywhere'; else ok 'synopsis, options and exit codes agree everywhere'; fi
for page in "$top"/man/*.[57]; do check "${page##*/} is clean" mandoc -T lint -W warning "$page"; done
check 'so is mailroom.1' mandoc -T lint -W warning man1/mailroom.1
for code in 0 1 2 3 4 5 6; do
	grep -q "^\.It $code$" "$top/man/mailroom.7" || echo "mailroom.7: $code"
	[ "$(jq -r ".exit_codes[\"$code\"]" all)" != null ] || echo "describe: $code"
done >missing
same '' "$(cat missing)" 'every exit code is in mailroom(7) and in describe'
for name in MAILROOM MAILROOM_AGENT MAILROOM_DEBUG NO_COLOR; do grep -q "^\.It Ev $name$" "$top/man/mailroom.7" || echo "$name"; done >missing
same '' "$(cat missing)" 'so is every variable'

# blocks PAGE: its literal blocks, one file each: block.1, block.2, ...
blocks() { rm -f block.*; awk '/^\.Bd -literal -offset/ { n++; on = 1; next } /^\.Ed/ { on = 0 } on { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print > ("block." n) }' "$1"; }

# ---- a shell takes part: mailroom-maildir(5) ----
room alice bob
blocks "$top/man/mailroom-maildir.5"
same 4 "$(ls block.* | wc -l)" 'mailroom-maildir(5) shows how to send, read, mark and answer'
exits 0 'sending with sh' sh -eu block.1
exits 0 'mailroom' mr --as bob inbox --json
same 'alice from a shell false' "$(jq -r '"\(.from) \(.subject) \(.read)"' out)" 'sees it in the inbox, unread'
id=$(jq -r .id out) thread=$(jq -r .thread out)
same 'Hello, bob.' "$(mr --as bob read --peek "$id" --json | jq -r .body)" 'and reads its text'
m=$(send alice bob 'from mailroom')
exits 0 'reading with sh' sh -eu block.2
says out '^Hello, bob\.' 'shows what the shell sent'
says out '^from mailroom' 'and what mailroom sent'
same 2 "$(unread bob)" 'looking changes nothing'
mr --as bob mark read "$m" >/dev/null
exits 0 'reading what is unread' sh -eu block.2
silent_about out '^from mailroom' 'leaves out what mailroom marked read'
exits 0 'marking with sh' sh -eu block.3
same 0 "$(unread bob)" 'is a mark for mailroom'
same true "$(mr --as bob inbox --all --json | jq "select(.id==\"$id\").read")" 'it is read'
rm -f .mailroom/agents/bob/cur/*"$m"* .mailroom/agents/bob/.Archive.*/cur/*"$m"* 2>/dev/null
exits 0 'answering with sh' sh -eu block.4
exits 0 'the answer' mr --as alice inbox --json
same "bob Re: from a shell false $thread $thread" "$(jq -r '"\(.from) \(.subject) \(.read) \(.thread) \(.reply_to)"' out)" "is in alice's inbox, in the same thread"
answer=$(jq -r .id out)
exits 0 'mailroom answers that' mr --as alice reply "$answer" -m 'Hello again.'
exits 0 'the thread' mr --as bob thread "$id" --json
same 'Hello, bob.|Hello again.|' "$(jq -r .body out | grep . | tr '\n' '|')" 'is one for bob, who has the first and the last'
exits 0 'and for alice' mr --as alice thread "$answer" --json
same 'Hello, alice.|Hello again.|' "$(jq -r .body out | grep . | tr '\n' '|')" 'who has the others'
exits 0 'doctor' mr doctor
says out '^0 problems' 'finds nothing wrong with any of it'

# ---- the smallest conversation of mailroom(7) ----
export XDG_STATE_HOME="$scratch/user-state" # an example above has bound a session to the process above us
rm -rf .mailroom; mkdir seven && cd seven || exit 1
blocks "$top/man/mailroom.7"
exits 0 'the smallest conversation' sh -eu block.1
says out 'The build is green again' 'ends with the mail shown'
cd .. || exit 1

# ---- the two minutes of the README ----
awk '/^## Two minutes/ { on = 1 } on && /^```sh/ { code = 1; next } /^```/ { code = 0 } on && code' "$top/README.md" | sed 's/  *# .*//' >tour
grep -q 'cd your-project' tour && grep -q 'mailroom --as alice why ID' tour && ok 'the README has its tour' || not_ok 'the README has its tour'
sed "s/\bTOKEN\b/\"\$TOKEN\"/; s/\bID\b/\"\$ID\"/
s/^mailroom --as bob recv\$/ID=\$(mailroom --as bob inbox --json | jq -r .id); mailroom --as bob recv >work; cat work; TOKEN=\$(sed -n 's,^token \\\\([0-9a-z]*\\\\).*,\\\\1,p' work)/" tour >tour.sh
mkdir your-project
exits 0 'which runs as it stands' sh -eu tour.sh
says out 'Please run the tests of branch `feature-x`' 'and shows the mail'
says out 'bob.*archived.*finished' 'and what became of it'
finish
