# every-build
. "$(dirname "$0")/../lib/tap.sh"
here=$(pwd -P)
nl='
'
cr=$(printf '\r')
quick() { timeout 10 "$BIN" "$@" </dev/null; }
wrong() { same '' "$(cat wrong)" "$1"; }
files() { find .mailroom/agents .mailroom/dead .mailroom/spool -type f | sort; }

# ---- header injection ----
room alice bob
id=$(send alice bob 'an honest one')
before=$(files)
for break in "$nl" "$cr" "$cr$nl"; do
	bad="x${break}Injected: yes"
	try() { what=$1; shift; quick "$@" >out 2>err; code=$?
		case $code in 2|4|5) [ -s err ] || echo "$what: no error text" ;; *) echo "$what: exit $code" ;; esac; }
	try subject --as alice send bob -s "$bad" -m text
	try type --as alice send bob --type "$bad" -m text
	try priority --as alice send bob --priority "$bad" -m text
	try key --as alice send bob --key "$bad" -m text
	try replace-key --as alice send bob --replace-key "$bad" -m text
	try thread --as alice send bob --thread "$bad" -m text
	try reply-to --as alice send bob --reply-to "$bad" -m text
	try 'header value' --as alice send bob --header "X-Note: $bad" -m text
	try 'header name' --as alice send bob --header "X-No${break}te: value" -m text
	try recipient --as alice send "bob${break}Injected: yes" -m text
	try cc --as alice send bob --cc "bob${break}Injected: yes" -m text
	try 'held recipient' --as alice send --hold "new${break}Injected: yes" -m text
	try sender --as "alice${break}Injected: yes" send bob -m text
	try reply-subject --as bob reply "$id" --header "X-Note: $bad" -m text
	try 'agent name' register "new${break}Injected: yes"
	try role register newcomer --role "$bad"
	try wake register newcomer --wake "$bad"
	try variable --as "${break}alice" whoami
	try by --as alice send bob --by "1m$break" -m text
done >wrong
wrong 'a line break in any field of a message or a name is refused'
same '' "$(grep -rl '^Injected' .mailroom)" 'and forges no line in any file'
same "$before" "$(files)" 'nothing was delivered, nobody registered'
for header in 'From: eve' 'To: eve' 'Message-ID: <x@y>' 'Mailroom-Life: 9' 'Mailroom-Type: X' 'Content-Type: text/html' 'Content-Transfer-Encoding: base64' 'Date: now' 'Subject: x' 'In-Reply-To: <x>' 'References: <x>' 'MIME-Version: 2' 'Cc: eve' 'bad name: x' ': x' 'Ünï: x'; do
	quick --as alice send bob --header "$header" -m text >out 2>err; code=$?
	case $code in 2|4) ;; *) echo "$header: exit $code" ;; esac
done >wrong
wrong 'a header that mailroom itself writes, or that is no header, cannot be given'
quick --as bob recv --json >out 2>/dev/null; token=$(jq -r .token out)
exits 0 'a reason with a line break' mr --as bob fail "$token" --reason "x${nl}Injected: yes${nl}${nl}Injected: too"
mr --as alice inbox --type bounce --json >bounce
same 'null 1' "$(mr --as alice read --json "$(jq -r .id bounce)" | jq -r '"\(.headers.Injected) \(.subject|split("\n")|length)"')" 'is text in the bounce, not a header of it'
exits 0 'a body may say anything' mr --as alice send bob -m "text${nl}Injected: yes${nl}${nl}From: eve${nl}.${nl}From eve"
exits 0 'and is' mr --as bob read "$(cat out)" --json
same "text${nl}Injected: yes${nl}${nl}From: eve${nl}.${nl}From eve" "$(jq -r .body out)" 'just a body'
same null "$(jq '.headers.Injected' out)" 'and no header'
exits 0 'a body whose first line would be a long or odd subject' mr --as alice send bob -m "$(printf '\001\033[2J%3000s' x)"
exits 0 'is sent' mr --as bob read "$(cat out)" --json
check 'with a short and harmless subject' jq -e '.subject|length < 200 and (test("[\u0000-\u001f]")|not)' out

# ---- names ----
long=$(head -c 65 /dev/zero | tr '\0' a); longest=$(head -c 41 /dev/zero | tr '\0' a)
before=$(find "$here" -maxdepth 3 | sort)
for name in .. . ../x a/../b a/./b /etc /etc/passwd "$here/x" a//b /a .hidden a/.hidden "$long" "a/$long" "$longest/$longest/$longest/$longest" a/b/c/d/e \
	tmp a/new 'a b' 'a	b' 'a*b' 'ä' 'ａ' 'a\b' 'a:b' 'a%2Fb' '~' '$x' '`x`' 'a;b' 'a|b' 'a"b' "a'b" 'a<b' '@x' 'a@b@c' '@' '/' '//' 'bob/'/ ''; do
	quick register -- "$name" >out 2>err; code=$?
	case $code in 2|4) [ -s err ] || echo "register '$name': no error" ;; *) echo "register '$name': exit $code" ;; esac
	quick --as alice send --hold -m text -- "$name" >out 2>err; code=$?
	case $code in 2|4|5) ;; *) echo "send to '$name': exit $code" ;; esac
	quick --as "$name" inbox >out 2>err; code=$?
	case $name:$code in *:2|*:4|*:5) ;; *) echo "--as '$name': exit $code" ;; esac
done >wrong
wrong 'names that leave the room, are reserved, too long, too deep or not plain are refused'
same "$before" "$(find "$here" -maxdepth 3 | sort)" 'and make nothing'
exits 4 'an over-long name' mr register "$long"
says err '64' 'is told the limit'
exits 4 'a name that is not plain' mr register 'ä'
says err 'A-Z a-z 0-9' 'is told what is allowed'
exits 0 'the longest that is allowed' mr register "$(head -c 64 /dev/zero | tr '\0' a)"
exits 0 'the deepest' mr register a/b/c/d
exits 0 'a mayor' mr register mayor/
same 1 "$(mr who --json | jq -r .name | grep -c '^mayor$')" 'is the mayor'
exits 2 'no name at all' mr register

# ---- things planted in the room ----
room alice bob
a=$(send alice bob 'first'); b=$(send alice bob 'second')
mkdir -p outside/new outside/cur outside/tmp outside/lives outside/held; echo secret >outside/agent; printf 'Subject: secret\n\nsecret\n' >outside/new/1.x
ln -s "$here/outside" .mailroom/agents/eve
ln -s /etc .mailroom/agents/etc
exits 0 'who, with a linked folder among the agents' quick who --json
silent_about out '"(eve|etc)"' 'does not follow it'
quick --as alice send eve -m x >out 2>err; code=$?
case $code in 4|5) ok 'nobody is there';; *) not_ok "nobody is there: exit $code";; esac
"$BIN" --as eve inbox </dev/null >out 2>err; code=$?
case $code in 4|5) ok 'and its mail is not read';; *) not_ok "and its mail is not read: exit $code";; esac
silent_about out secret 'not shown'
"$BIN" register eve </dev/null >out 2>err; code=$?
case $code in 1|4) ok 'and it cannot be registered';; *) not_ok "and it cannot be registered: exit $code";; esac
"$BIN" --as alice send --hold eve -m x </dev/null >out 2>err; code=$?
case $code in 1|4) ok 'nor held for';; *) not_ok "nor held for: exit $code";; esac
same 1 "$(find outside -type f -newer .mailroom/room | grep -c new/)" 'nothing was written there'
ln -s /etc/passwd .mailroom/agents/bob/new/1700000000.link.mr
ln -s "$here/outside/new/1.x" .mailroom/agents/bob/cur/1700000000.link2.mr:2,
mkfifo .mailroom/agents/bob/new/1700000000.fifo.mr
mkdir .mailroom/agents/bob/new/1700000000.folder.mr
exits 0 'inbox with links, a fifo and a folder in new/' quick --as bob inbox --json
same "$a $b" "$(jq -r .id out | sort | paste -sd' ')" 'lists the mail'
silent_about out 'secret|root:' 'follows nothing'
says err 'link|fifo|folder|not a' 'and reports what it skipped'
exits 0 'read of what was not skipped' quick --as bob read "$a"
for command in 'search root' 'search secret' 'archive --all-read' 'wait --timeout 0' 'doctor' 'stats' 'who' 'mark unread --all' "why $a"; do
	quick --as bob $command >out 2>err; code=$?
	[ $code -le 5 ] && ! grep -q 'root:\|secret$' out || echo "$command: exit $code: $(cat err)"
done >wrong
wrong 'no command hangs or follows them'
exits 0 'drain' quick --as bob drain
silent_about out 'secret|root:' 'drains the mail alone'
check 'and leaves the rest' test -L .mailroom/agents/bob/new/1700000000.link.mr -a -p .mailroom/agents/bob/new/1700000000.fifo.mr
exits 1 'doctor has found problems' quick doctor
says out "agents/eve' is a symbolic link" 'and names the links'
rm -rf .mailroom/agents/bob/new && ln -s "$here/outside/new" .mailroom/agents/bob/new
"$BIN" --as alice send bob -m 'not outside' </dev/null >out 2>err; code=$?
case $code in 1|4) ok 'a linked new/ is not delivered into';; *) not_ok "a linked new/ is not delivered into: exit $code"; note <err;; esac
says err "new|bob" 'and the error names it'
same 1 "$(ls outside/new | wc -l)" 'nothing is there'
room alice bob
rmdir .mailroom/spool && ln -s "$here/outside" .mailroom/spool
"$BIN" --as alice send bob alice -m 'not outside' </dev/null >out 2>err; code=$?
case $code in 1|4) ok 'nor is a linked spool';; *) not_ok "nor is a linked spool: exit $code";; esac
same '' "$(grep -rl 'not outside' outside .mailroom/agents)" 'nothing is visible anywhere'

# ---- bodies ----
room alice bob
printf 'a\000b\377\376 \342\202 end\n' >bytes
exits 0 'a body with NUL and invalid UTF-8' mr --as alice send bob -f bytes
id=$(cat out)
exits 0 'is stored' mr --as bob read --raw "$id"
same base64 "$(sed -n 's/^Content-Transfer-Encoding: //p' out)" 'as base64'
sed '1,/^$/d' out | base64 -d >bytes.back
check 'and comes back byte for byte' cmp bytes.back bytes
exits 0 'as JSON' mr --as bob read "$id" --json
check 'it is still JSON' jq -e .id out
exits 0 'as text' mr --as bob read "$id"
same 0 "$(tr -d '\n' <out | LC_ALL=C grep -c "$(printf '[\001-\010\016-\037]')")" 'it has no control characters'
check 'and is UTF-8' iconv -f UTF-8 -t UTF-8 out
exits 4 'invalid UTF-8 in a subject is refused' mr --as alice send bob -s "$(printf 'x\377y')" -m text
says err 'UTF-8' 'and told why'
mr --as alice send bob -s "$(printf 'x\033[2Jy\007\177')" -m text >out 2>err && mr --as bob inbox >out 2>err
silent_about out "$(printf '[\033\007\177]')" 'a control character in a subject is not shown'
exits 4 'an over-long subject' mr --as alice send bob -s "$(head -c 2001 /dev/zero | tr '\0' s)" -m text
says err '2000' 'is told the limit'
{ head -c 16777215 /dev/zero | tr '\0' x; echo; } >big
exits 0 'a body of 16 MiB' mr --as alice send bob -f big
mr --as bob read --json "$(cat out)" 2>/dev/null | jq -j .body >big.back
check 'arrives whole' cmp big.back big
rm -f big.back
printf x >>big
n=$(find .mailroom -name '*.mr*' | wc -l)
exits 4 'one byte more is refused' mr --as alice send bob -f big
says err '16 MiB|16777216' 'and told the limit'
exits 4 'also from a pipe' sh -c 'cat big | "$BIN" --as alice send bob'
same "$n" "$(find .mailroom -name '*.mr*' | wc -l)" 'nothing was delivered'
rm -f big
exits 4 'only blanks are no text' mr --as alice send bob -m '  
	'
exits 5 'a file that is not there' mr --as alice send bob -f nowhere
"$BIN" --as alice send bob -f . </dev/null >out 2>err; code=$?
case $code in 1|2|4) ok 'a folder is no text';; *) not_ok "a folder is no text: exit $code";; esac

# ---- garbage in a mailbox ----
room alice bob
a=$(send alice bob 'before the garbage')
cd .mailroom/agents/bob/new || exit 1
: >1700000001.empty.mr
head -c 1000000 /dev/urandom >1700000002.random.mr
printf 'no header here' >1700000003.plain.mr
printf '\n\nonly a body\n' >1700000004.body.mr
head -c 300000 /dev/zero | tr '\0' 'H' >1700000005.longline.mr
printf 'Subject: no end' >1700000006.noend.mr
printf 'From: eve@elsewhere\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3Db\r\n' >'1700000007.foreign'
echo x >.hidden
printf 'x' >"name with${nl}line break"
cd "$here" || exit 1
b=$(send alice bob 'after the garbage')
exits 0 'inbox with garbage' quick --as bob inbox --json
cp out listed
check 'is JSON' jq -es 'length >= 2' listed
same "$a$b" "$(jq -r .id listed | grep -x "$a\|$b" | sort | tr -d '\n')" 'lists the mail before and after it'
same café "$(jq -r 'select(.from|test("eve")).subject' listed)" 'and what another mail program wrote'
exits 0 'inbox as text' quick --as bob inbox
cp out listed
check 'is UTF-8' iconv -f UTF-8 -t UTF-8 listed
same 0 "$(tr -d '\n' <listed | LC_ALL=C grep -c "$(printf '[\001-\010\013-\037]')")" 'without control characters'
exits 0 'read of a good one' quick --as bob read "$a"
n=$(find .mailroom/agents/bob -name '17000000*' | wc -l)
quick --as bob drain --budget 0 >out 2>err; code=$?
case $code in 0|1) ok 'drain gets through';; *) not_ok "drain gets through: exit $code"; note <err;; esac
says out 'after the garbage' 'to the mail after it'
same "$n" "$(find .mailroom/agents/bob -name '17000000*' | wc -l)" 'nothing was deleted'
exits 1 'doctor' quick doctor
says out "empty.mr' is empty" 'names what holds nothing'

# ---- garbage in the room's own files ----
room alice bob
garbage() { printf '\377\000 garbage\n\001\n'; }
cp .mailroom/agents/alice/agent keep; garbage >.mailroom/agents/alice/agent
quick --as bob who --json >out 2>err; code=$?
[ $code -le 1 ] && grep -q '"bob"' out && ok 'a corrupt registration does not hide the others' || { note <err; not_ok "a corrupt registration does not hide the others: exit $code"; }
same 1 "$(grep -c '"alice".*doctor' out)" 'and is shown as what it is'
exits 0 'nor stop their mail' quick --as bob send operator -m x
exits 1 'doctor' quick doctor
says out "agent 'alice'" 'names it'
cp keep .mailroom/agents/alice/agent
cp .mailroom/agents/alice/lives/1 keep; garbage >.mailroom/agents/alice/lives/1
exits 0 'a corrupt life does not stop mail to others' quick --as bob send operator -m x
quick --as bob send alice -m x >out 2>err; code=$?
case $code in 0|1) ok "nor crash a send to it";; *) not_ok "nor crash a send to it: exit $code";; esac
: >.mailroom/agents/alice/lives/1
quick --as alice inbox >out 2>err; code=$?
case $code in 0|1) ok "an empty one neither";; *) not_ok "an empty one neither: exit $code";; esac
cp keep .mailroom/agents/alice/lives/1
: >.mailroom/agents/alice/lives/nonsense; : >.mailroom/agents/alice/lives/99999999999999999999
exits 0 'odd files among the lives' quick --as alice whoami --json
same 1 "$(jq .life out)" 'are no lives'
cp .mailroom/room keep
garbage >.mailroom/room
exits 1 'a corrupt room file' quick who
says err 'room' 'is named'
: >.mailroom/room
exits 1 'an empty one' quick who
says err 'Format' 'says what is missing'
head -c 1000000 /dev/zero >.mailroom/room
exits 4 'a large one' quick who
says err '65536' 'is told the limit'
cp keep .mailroom/room
echo 'Format: 1x' >.mailroom/room
exits 1 'a format that is no number' quick who
cp keep .mailroom/room
echo garbage >.mailroom/spool/01k9w3b7zq8m4c2v6t1x5n0prs; echo garbage >.mailroom/holds/nonsense; echo garbage >.mailroom/keys/nonsense
exits 0 'garbage in spool, holds and keys' quick --as alice send bob --key k -m x
exits 0 'stops nobody' quick --as bob drain
quick doctor >out 2>err
says out 'PROBLEM.*spool/01k9w3b7zq8m4c2v6t1x5n0prs' 'and doctor tells of it'

# ---- what may not be read ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$here"; cp "$BIN" "$here/mailroom" && chmod 755 "$here/mailroom"
	mkdir -p theirs/home && chown -R 65534:65534 theirs
	nobody() { (cd "$here/theirs" && HOME=$here/theirs/home XDG_STATE_HOME=$here/theirs/home XDG_CONFIG_HOME=$here/theirs/home timeout 10 setpriv --reuid 65534 --regid 65534 --clear-groups "$here/mailroom" "$@" </dev/null); }
	nobody init --name theirs >/dev/null 2>&1; nobody register alice >/dev/null 2>&1; nobody register bob >/dev/null 2>&1
	a=$(nobody --as alice send bob -m 'unreadable' 2>/dev/null); b=$(nobody --as alice send bob -m 'readable' 2>/dev/null)
	chmod 000 theirs/.mailroom/agents/bob/new/*"$a"*
	exits 0 'inbox with a message that may not be read' nobody --as bob inbox --json
	same "$b" "$(jq -r .id out)" 'lists the rest'
	says err 'ermission' 'and says why'
	nobody --as bob drain >out 2>err; code=$?
	case $code in 0|1) ok 'drain shows the rest';; *) not_ok "drain shows the rest: exit $code";; esac
	says out readable 'of it'
	check 'and keeps the other' sh -c "ls theirs/.mailroom/agents/bob/new | grep $a"
	chmod 000 theirs/.mailroom/agents/bob
	"$@" true; nobody --as alice send bob -m x >out 2>err; code=$?
	same 1 $code 'a mailbox that may not be opened is an error'
	says err 'ermission.*|bob' 'that says whose'
	exits 0 'and stops no other' nobody --as alice send operator -m x
	chmod 700 theirs/.mailroom/agents/bob
	chmod 000 theirs/.mailroom
	exits 1 'a room that may not be opened' nobody --room "$here/theirs" who
	says err 'ermission denied' 'says why'
	chmod 700 theirs/.mailroom
else
	skip 'what may not be read' 'needs root and setpriv'
fi

# ---- the clock ----
room alice bob
if "$DEVBIN" --version >/dev/null 2>&1; then
	a=$(send alice bob now)
	for n in 1 2 3; do MAILROOM_TEST_CLOCK_OFFSET_MS=-86400000 "$DEVBIN" --as alice send bob -m "yesterday $n" </dev/null 2>/dev/null; done >ids
	MAILROOM_TEST_CLOCK_OFFSET_MS=86400000 "$DEVBIN" --as alice send bob -m tomorrow </dev/null >>ids 2>/dev/null
	same 5 "$(unread bob)" 'mail sent with the clock set back or forth is all there'
	same 5 "$({ echo "$a"; cat ids; } | sort -u | wc -l)" 'with ids of its own'
	exits 0 'a command with the clock set back' env MAILROOM_TEST_CLOCK_OFFSET_MS=-864000000 "$DEVBIN" --as bob inbox --json
	same 5 "$(wc -l <out)" 'sees it too'
	exits 0 'and can take it' env MAILROOM_TEST_CLOCK_OFFSET_MS=-864000000 "$DEVBIN" --as bob drain --json
	same '5 0' "$(wc -l <out) $(unread bob)" 'all of it'
	exits 0 'a clock before 1970' env MAILROOM_TEST_CLOCK_OFFSET_MS=-4102444800000 "$DEVBIN" --as alice send bob -m x
	exits 0 'a clock far ahead' env MAILROOM_TEST_CLOCK_OFFSET_MS=4102444800000 "$DEVBIN" --as alice send bob -m x
	same 2 "$(unread bob)" 'even these arrive'
	exits 0 'register with the clock set back' env MAILROOM_TEST_CLOCK_OFFSET_MS=-864000000 "$DEVBIN" register early
	exits 0 'and takeover' env MAILROOM_TEST_CLOCK_OFFSET_MS=-964000000 "$DEVBIN" takeover early --json
	same 2 "$(jq .life out)" 'count on'
else
	skip 'clocks' 'no build with a test clock'
fi

# ---- wrong usage ----
exits 2 'an unknown command' mr sned
says err "'send'" 'has the near name'
exits 2 'an unknown option' mr --as alice send bob --subjcet x -m y
says err 'subject' 'has the near name'
exits 2 'an option without its value' mr --as alice send bob -m
exits 2 'an option of another command' mr --as alice inbox --lease 5m
exits 2 'one argument too many' mr whoami now
exits 2 'a number that is none' mr --as alice inbox --limit many
exits 2 'a duration that is none' mr --as alice recv --lease soon
exits 2 'wrong usage with --json' mr sned --json
check 'is JSON too' jq -e .error.message err
exits 0 'help of help' mr help
finish
