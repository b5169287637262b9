# once
# mailroom sendmail: what mail programs write, through the same send as everything else; neomutt and mblaze as clients.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
sm() { "$BIN" --as alice sendmail "$@"; }
newest() { "$BIN" --as "$1" inbox --json </dev/null | jq -r .id | head -n 1; }
show() { "$BIN" --as "$1" read --json "$(newest "$1")" </dev/null; }
try() { # try EXIT NAME MESSAGE [ARGUMENT...]
	want=$1 name=$2; printf "$3" >message; shift 3
	sm "$@" <message >out 2>err; got=$?
	if [ $got -eq "$want" ]; then ok "$name"; else echo "# exit $got, not $want"; note <err; not_ok "$name"; fi
}

# ---- recipients and headers ----
try 0 'recipients of To and Cc' 'From: someone@host\nTo: Bob <bob@town>\nCc: carol\nSubject: =?utf-8?q?caf=C3=A9?=\nX-Priority: 1\nUser-Agent: x/1\n\ntext =E9\n' -t -oi
same 'café urgent alice|bob|carol|text =E9' "$(show bob | jq -r '"\(.subject) \(.priority) \(.from)|\(.to[])|\(.cc[])|\(.body)"' | head -n 1)" 'with subject, priority, sender, copies'
same 'x/1' "$(mr --as carol read --json "$(newest carol)" | jq -r '.headers["User-Agent"]')" 'and further headers'
try 0 'a message of an SMTP server' 'Subject: again\nMessage-ID: <1@phone>\n\nhi\n' --submitted -- bob
try 0 'and the same once more' 'Subject: again\nMessage-ID: <1@phone>\n\nhi\n' --submitted -- bob
try 0 'and to another' 'Subject: again\nMessage-ID: <1@phone>\n\nhi\n' --submitted -- carol
same '1 1' "$(for to in bob carol; do mr --as $to inbox --all --json | grep -c '"again"'; done | xargs)" 'is sent to each once'
try 0 'arguments' 'Subject: a\n\nhi\n' -i -f alice@town -- bob
same bob "$(show bob | jq -r '.to[]')" 'are the recipients'
try 0 'a copy among the arguments' 'To: bob\nCc: carol@town\nSubject: a\n\nhi\n' -odb -oem bob@town carol@town
same 'carol' "$(show bob | jq -r '.cc[]')" 'stays one'
sm -t <<'MAIL' >out 2>err
To: bob
Subject: dots

one
.
two
MAIL
same 'one|.|two|' "$(show bob | jq -j .body | tr '\n' '|')" 'a dot alone is text'
check 'from a pipe' sh -c "printf 'To: bob\nSubject: piped\n\nhi\n' | '$BIN' --as alice sendmail -t"
same piped "$(show bob | jq -r .subject)" 'it comes, too'

# ---- refused ----
try 67 'nobody of that name' 'To: bobb\nSubject: x\n\nhi\n' -t
says err "'bob'" 'with the near one'
try 67 'no recipients' 'Subject: x\n\nhi\n' -t
try 65 'a blind copy' 'To: bob\nSubject: x\n\nhi\n' bob carol
try 65 'also one of a header' 'To: bob\nBcc: carol\nSubject: x\n\nhi\n' -t
try 77 'in the name of another agent' 'From: carol@town\nTo: bob\nSubject: x\n\nhi\n' -t
try 77 'by -f, too' 'To: bob\nSubject: x\n\nhi\n' -t -f carol
try 65 'no text' 'To: bob\nSubject: x\n\n\n' -t
try 65 'what is no message' 'just text\n' bob
try 64 'another mode' 'To: bob\n\nx\n' -bs
env -u MAILROOM "$BIN" --room ./nowhere --as alice sendmail -t <message >out 2>err
same 78 $? 'no room'
before=$(unread bob)
try 67 'one of two is unknown' 'To: bob, nobody\nSubject: x\n\nhi\n' -t
same "$before" "$(unread bob)" 'nobody gets it'

# ---- MIME is kept ----
printf 'To: bob\nSubject: mime\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=zz\n\npre\n--zz\nContent-Type: text/plain; charset=iso-8859-1\n\ncaf\351\n--zz\nContent-Type: image/png; name=x.png\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n--zz--\nend\n' >message
exits 0 'a multipart' sh -c "'$BIN' --as alice sendmail -t <message"
same 'café x.png 5' "$(show bob | jq -r '"\(.body) \(.attachments[0].name) \(.attachments[0].size)"' | tr '\n' ' ' | sed 's/ $//')" 'has its text and its file'
sed '1,/^$/d' message >body
check 'byte for byte' sh -c "'$BIN' --as bob read --raw '$(mr --as bob inbox --all --json | jq -r 'select(.subject == "mime") | .id')' | sed '1,/^\$/d' | cmp - body"

# ---- an answer ----
question=$(send bob alice 'which port?')
try 0 'an answer' "To: bob\nSubject: Re: x\nIn-Reply-To: <$question@town>\nReferences: <$question@town>\n\n8080\n" -t
same "$question $question" "$(show bob | jq -r '"\(.reply_to) \(.thread)"')" 'is one'
try 0 'an answer to what is not here' 'To: bob\nSubject: Re: y\nIn-Reply-To: <elsewhere@example.org>\n\nyes\n' -t

# ---- neomutt reads, answers, and forwards with an attachment; an agent waits for it ----
# mutt PUSH [KEYS...]: neomutt on the operator's mailbox; its keys at the menu before sending, then y.
mutt() {
	tmux -L "mr$$" -f /dev/null new-session -d -x 120 -y 40 "TERM=screen neomutt -n -F '$scratch/muttrc' -e 'push $1'" 2>/dev/null
	shift
	menu 'y:Send'
	[ $# -eq 0 ] || { tmux -L "mr$$" send-keys "$@" 2>/dev/null; menu 'build.log'; }
	tmux -L "mr$$" send-keys y 2>/dev/null
}
menu() { # waits until the screen has it
	tries=0
	until tmux -L "mr$$" capture-pane -p 2>/dev/null | grep -q "$1" || [ $tries -gt 300 ]; do tries=$((tries + 1)); sleep 0.1; done
}
if command -v neomutt >/dev/null 2>&1 && command -v tmux >/dev/null 2>&1; then
	send bob operator 'please look at the build' >/dev/null
	printf 'log of the build\n' >build.log
	printf '#!/bin/sh\necho "it is fixed" >>"$1"\n' >editor && chmod +x editor
	cat >muttrc <<RC
set folder="$scratch/.mailroom/agents/operator" spoolfile="$scratch/.mailroom/agents/operator" mbox_type=Maildir
set sendmail="$BIN --room $scratch --as operator sendmail" from="operator@town" realname="" use_from=yes
set editor="$scratch/editor" header_cache="" record="" postponed="" copy=no fast_reply=yes include=no abort_unmodified=no abort_noattach=no
set wait_key=no confirmappend=no sleep_time=0 autoedit=no edit_headers=no sig_dashes=no mime_forward=yes mail_check=1
RC
	(mr --as bob wait --timeout 90s --from operator >waited 2>&1) &
	waiter=$!
	mutt '<display-message>r' a "$scratch/build.log" Enter
	wait $waiter
	same 0 $? 'neomutt answers with a file, and the agent that waits gets it'
	tmux -L "mr$$" kill-server 2>/dev/null
	says waited 'operator' 'from the operator'
	show bob >out
	same 'Re: please look at the build|build.log' "$(jq -r '"\(.subject)|\(.attachments[0].name)"' out)" 'its subject and its file'
	says out 'it is fixed' 'its text'
	(mr --as carol wait --timeout 90s --from operator >waited 2>&1) &
	waiter=$!
	mutt 'fcarol@town<Enter>'
	wait $waiter
	same 0 $? 'and forwards the question to another agent'
	tmux -L "mr$$" kill-server 2>/dev/null
	same 'message/rfc822' "$(show carol | jq -r '.attachments[0].type')" 'as an attachment'
else
	skip 'neomutt as a client' 'neomutt or tmux is not here'
fi

# ---- mblaze ----
printf '#!/bin/sh\necho "it is fixed" >>"$1"\n' >editor && chmod +x editor
if command -v mmime >/dev/null 2>&1 && command -v mrep >/dev/null 2>&1; then
	printf 'From: operator@town\nTo: carol@town\nSubject: blaze\n\nhi there\n\n#text/plain %s\n' "$scratch/message" | mmime >made 2>/dev/null
	check 'what mblaze makes' sh -c "'$BIN' --as operator sendmail -t <made"
	same blaze "$(show carol | jq -r .subject)" 'comes'
	printf 'Local-Mailbox: operator@town\nSendmail: %s --room %s --as operator sendmail\nSendmail-Args: -t\n' "$BIN" "$scratch" >profile
	send carol operator 'a question for mblaze' >/dev/null
	# mcom is interactive: its editor writes the text, its question is answered with s, for send.
	export MBLAZE="$scratch/blaze" && mkdir -p "$MBLAZE" && cp profile "$MBLAZE/profile"
	grep -l 'a question for mblaze' "$scratch"/.mailroom/agents/operator/new/* >list
	mseq -S <list >/dev/null
	echo s | EDITOR="$scratch/editor" VISUAL="$scratch/editor" mrep "$(cat list)" >out 2>&1 || note <out
	same 'Re: a question for mblaze' "$(show carol | jq -r .subject)" 'and mrep answers through it'
else
	skip 'what mblaze makes' 'mblaze is not here'
fi
finish
