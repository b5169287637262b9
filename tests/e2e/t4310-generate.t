# once
# share/mailroom/generate_message prints the bytes of the format's generator.
. "$(dirname "$0")/../lib/tap.sh"

mkdir bin && ln -s "$BIN" bin/mailroom
PATH=$scratch/bin:$PATH
ours=$top/share/mailroom/generate_message peer=$top/tests/peers/generate-peer.py golden=$data/workspace
command -v python3 >/dev/null || { skip 'generate' 'no python3'; finish; }
i=0f1e2d3c4b5a69788796a5b4c3d2e1f0
lead=/srv/agents/lead/.mailbox/inbox tester=/srv/agents/tester/.mailbox/inbox
# alike NAME ARGS...: both, with stdin from the file `in`.
: >in
alike() {
	name=$1; shift
	"$ours" --request-id $i --receiver-inbox-path $tester/$i "$@" <in >ours 2>err
	python3 "$peer" --request-id $i --receiver-inbox-path $tester/$i "$@" <in >theirs 2>/dev/null
	if [ -s theirs ] && cmp ours theirs >diff 2>&1; then ok "$name"; else note <diff; note <err; not_ok "$name"; fi
}
nbsp=$(printf 'text\302\240')
cr=$(printf 'one\r\ntwo\rthree\r')
leading=$(printf '\n\n\nx')
alike 'a channel' --channel-id build-42 --reply-inbox-path $lead/$i --body 'Run the parser tests and list the failures.'
check 'which is the golden file' cmp ours "$golden/new"
alike 'no channel' --reply-inbox-path $lead/$i --body x
alike 'an empty channel' --channel-id '' --reply-inbox-path $lead/$i --body x
alike 'a reply' --message-type REPLY --channel-id build-42 --reply-inbox-path $lead/$i --body x
alike 'an empty body' --channel-id build-42 --reply-inbox-path $lead/$i --body ''
check 'which is the golden file' cmp ours "$golden/empty"
alike 'blanks at the end' --reply-inbox-path $lead/$i --body 'x  	 '
alike 'a no-break space at the end' --reply-inbox-path $lead/$i --body "$nbsp"
alike 'nothing but blanks' --reply-inbox-path $lead/$i --body '   '
alike 'blank lines before it' --reply-inbox-path $lead/$i --body "$leading"
alike 'CRLF in an argument' --reply-inbox-path $lead/$i --body "$cr"
alike 'the empty answer' --message-type REPLY --reply-inbox-path '' --body '""'
alike 'no way back' --reply-inbox-path '' --body x
printf 'one\r\ntwo\rthree\r\n\r\n' >in
alike 'CRLF on stdin' --reply-inbox-path $lead/$i
alike 'CRLF in a file' --reply-inbox-path $lead/$i --body-file in
printf '\342\200\203\n \n' >in
alike 'only wide spaces' --reply-inbox-path $lead/$i

exits 2 'a type of another case' "$ours" --message-type New --receiver-inbox-path x --reply-inbox-path y --body z
exits 2 'a path is missing' "$ours" --receiver-inbox-path x --body z
exits 2 'a line in a value' "$ours" --channel-id "$(printf 'a\nREPLY_INBOX_PATH: /etc')" --receiver-inbox-path x --reply-inbox-path y --body z
exits 0 'an id is made' "$ours" --request-id '' --receiver-inbox-path x --reply-inbox-path y --body z
says out '^REQUEST_ID: [0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$' 'a UUID without dashes'
exits 0 'into a file' "$ours" --receiver-inbox-path x --reply-inbox-path y --body z --output a/b/c
same '' "$(cat out)" 'nothing on stdout'
says a/b/c '^RECEIVER_INBOX_PATH: x$' 'whose folders are made'
finish
