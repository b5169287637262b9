# every-build
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
exits 0 'send succeeds' mr --as alice send bob -m 'hello there'
id=$(cat out)
same 26 "${#id}" 'send prints the id'
says out '^[0-9a-hjkmnp-tv-z]{26}$' 'the id is a ULID in lower case'
file=$(echo .mailroom/agents/bob/new/*)
case $file in *"/new/"[0-9]*".$id.mr") ok 'the file is named after the id';; *) not_ok "the file is named after the id: $file";; esac
same 400 "$(stat -c %a "$file")" 'a message is 0400'
same 'From: alice@town' "$(head -n 1 "$file")" 'the message is readable with cat'
same 'Subject: hello there' "$(grep ^Subject "$file")" 'the subject defaults to the first line of the text'
check 'Message-ID is the id at the room' grep -q "^Message-ID: <$id@town>" "$file"
check 'a link is in .Sent' test "$(stat -c %h "$file")" = 2

# text from a heredoc, a file, a pipe
exits 0 'text from standard input' sh -c '"$BIN" --as alice send bob <<"EOF"
backticks `stay` $(as) they are
EOF'
"$BIN" --as bob read "$(cat out)" --json </dev/null >out 2>err
same 'backticks `stay` $(as) they are' "$(jq -r .body out)" 'the heredoc arrives as it was written'
printf 'from a file\n' >text
exits 0 'text from a file' mr --as alice send bob -f text
exits 0 'text from a pipe' sh -c 'echo piped | "$BIN" --as alice send bob'
exits 2 'no text is wrong usage' mr --as alice send bob
says err '<<' 'and shows the heredoc'
exits 4 'an empty text is refused' mr --as alice send bob -m ''
same 0 "$(find .mailroom/agents/carol/new -type f | wc -l)" 'nothing went astray'

# several recipients: one file
exits 0 'send to two and a cc' mr --as alice send bob carol --cc operator -m 'to all of you'
id=$(cat out)
same 4 "$(stat -c %h .mailroom/agents/bob/new/*"$id"*)" 'one file, a link each and one for .Sent'
same "$(stat -c %i .mailroom/agents/bob/new/*"$id"*)" "$(stat -c %i .mailroom/agents/carol/new/*"$id"*)" 'the same inode for everyone'
same '' "$(ls .mailroom/spool)" 'nothing is left in the spool'
exits 0 'naming someone twice' mr --as alice send bob bob --cc bob -m 'once'
same 1 "$(ls .mailroom/agents/bob/new | grep -c "$(cat out)")" 'delivers once'
mr --as bob mark read "$id" >/dev/null
check 'each has its own read state' test -f .mailroom/agents/carol/new/*"$id"*

# unknown, near, held, wrong
exits 5 'an unknown recipient is refused' mr --as alice send bbo -m hi
says err 'bob' 'with the near name'
exits 5 'one unknown among several refuses all' mr --as alice send carol nobody -m 'not even carol'
same '' "$(grep -l 'not even carol' .mailroom/agents/carol/new/* 2>/dev/null)" 'and nobody gets it'
exits 0 '--hold makes a mailbox that waits' mr --as alice send later --hold -m 'for later'
says err 'not here yet' 'and says that nobody lives there'
exits 0 'registering finds the waiting mail' mr register later
says out '1 unread|unread.*1' 'and tells of it'
exits 4 'a recipient with a space is a hint at -m' mr --as alice send 'hello there bob' -m x
says err '[-]m' 'the hint names -m'
exits 5 'an unknown sender is refused' mr --as nobody send bob -m hi
exits 4 'another room needs a link' mr --as alice send bob@elsewhere -m hi
exits 0 'the room itself may be named' mr --as alice send bob@town -m hi
exits 0 '--dry-run' mr --as alice send bob carol --dry-run -m 'not sent'
says out 'bob.*carol' 'says who would get it'
same '' "$(grep -rl 'not sent' .mailroom/agents/*/new)" 'and sends nothing'

# fields
exits 0 'all the fields' mr --as alice send bob -s 'a subject' --type OUR_OWN --priority urgent --header 'X-Build: 17' --thread release-1 -m body
id=$(cat out)
mr --as bob read --peek --json "$id" >out
same 'OUR_OWN urgent release-1 a subject 17' "$(jq -r '[.type,.priority,.thread,.subject,.headers["X-Build"]//(.headers[]?|select(.name=="X-Build").value)]|join(" ")' out)" 'arrive'
same '["bob"]' "$(jq -c .to out)" 'to is a list'
exits 0 'an emoji subject' mr --as alice send bob -s '🤝 HANDOFF: naïve' -m x
check 'is raw UTF-8 in the file' grep -q '^Subject: 🤝 HANDOFF: naïve$' .mailroom/agents/bob/new/*"$(cat out)"*
exits 0 'words that agents try are accepted' mr --as alice send --to bob --subject s --body b
exits 0 'broadcast' mr --as alice broadcast -m 'to everyone'
same 1 "$(ls .mailroom/agents/later/new | grep -c "$(cat out)")" 'reaches all the others'
exits 0 '--json prints one object' mr --as alice send bob -m x --json
same 1 "$(jq -s length out)" 'and nothing else'
exits 5 '--json errors' mr --json --as alice send nobody -m x
same not-found "$(jq -r .error.code err)" 'are JSON on stderr with a code'
same '' "$(cat out)" 'and stdout is empty'

# keys
exits 0 'a send with a key' mr --as alice send bob --key k1 -m 'keyed'
id=$(cat out)
exits 0 'again with the same key' mr --as alice send bob --key k1 -m 'keyed'
same "$id" "$(cat out)" 'gives the same id'
same 1 "$(ls .mailroom/agents/bob/new | grep -c "$id")" 'and one message'
exits 4 'the key with another text is refused' mr --as alice send bob --key k1 -m 'other'
exits 0 'the same key of another sender is another key' mr --as carol send bob --key k1 -m 'keyed'
mr --as bob mark read "$id" >/dev/null
exits 0 'a retry after it was read' mr --as alice send bob --key k1 -m 'keyed'
same 0 "$(ls .mailroom/agents/bob/new | grep -c "$id")" 'does not bring it back'

# status mail
mr --as bob drain --budget 0 >/dev/null 2>&1
for i in 1 2 3; do mr --as alice send bob --replace-key status -m "status $i" >/dev/null; done
same 1 "$(unread bob)" '--replace-key leaves one unread'
same 'status 3' "$(mr --as bob inbox --json | jq -r .subject)" 'the newest'
mr --as carol send bob --replace-key status -m "status of carol" >/dev/null
same 2 "$(unread bob)" "and does not touch another's"

# an answer that is due
exits 0 'send --by' mr --as alice send bob --by 1s -m 'which port?'
id=$(cat out)
silent_about err 'nobody answered' 'nothing is overdue yet'
sleep 1.2
exits 0 'the next command' mr --as alice whoami
says err "nobody answered.*${id#????????????????????}" 'tells that nobody answered'
exits 0 'a further command' mr --as alice whoami
silent_about err 'nobody answered' 'tells it once'
exits 0 'an answered one' mr --as alice send bob --by 1s -m 'which host?'
mr --as bob reply "$(cat out)" -m here >/dev/null
sleep 1.2
exits 0 'stays quiet' mr --as alice whoami
silent_about err 'nobody answered' 'because somebody answered'

# the answer to what was done gets lost
"$BIN" --as alice send bob -m 'sent, but not told' </dev/null 2>err >/dev/full; code=$?
same 6 $code 'a send whose id stdout does not take is in doubt'
id=$(grep -rl 'sent, but not told' .mailroom/agents/bob/new | sed 's/.*\(..........................\)\.mr.*/\1/')
says err "it was done \($id\), but stdout" 'says what was done'
says err 'do not repeat it' 'and not to repeat it'
"$BIN" --as alice send bob --dry-run -m x </dev/null 2>err >/dev/full; code=$?
same 1 $code 'a rehearsal is none'
"$BIN" --as bob mark read "$id" </dev/null 2>err >/dev/full; code=$?
same 6 $code 'so is mark'
says err 'it was done' 'says so'
"$BIN" --as alice group create lost bob </dev/null 2>err >/dev/full; code=$?
same 6 $code 'and group create'
"$BIN" group show lost </dev/null 2>err >/dev/full; code=$?
same 1 $code 'but not group show, which changes nothing'

# the text in the place of a recipient
exits 4 'a text without -m' mr --as alice send bob 'hello there'
says err 'did you mean -m' 'gets the hint that helps'

# an answer is no work
mr --as alice queue create jobs >/dev/null
id=$(mr --as alice send bob carol queue:jobs -m 'who takes it?' 2>/dev/null)
exits 0 'reply --all' mr --as bob reply "$id" --all -m 'I do' --json
same 'alice,carol' "$(jq -r '.to|sort|join(",")' out)" 'goes to agents, not into the queue'

# what was sent
exits 0 'sent' mr --as bob sent
says out ' to alice' 'shows the recipients'
exits 0 'inbox --from' mr --as bob inbox --from nosuch
says out 'no unread mail for bob that matches' 'says what was looked for'
exits 4 'an error without a hint' mr --as alice --json send '' -m x
same null "$(jq -c .error.hint err)" 'has null for it'

# by month, beside the one folder of an older version
box=.mailroom/agents/erin
mr register erin >/dev/null 2>&1
check 'register makes the folder of the month' test -d $box/.Sent.*/cur
first=$(mr --as erin send bob -m 'one'); second=$(mr --as erin send bob -m 'two'); third=$(mr --as erin send bob -m 'three')
mkdir -p $box/.Sent/cur $box/.Sent/new $box/.Sent.2020-01/cur $box/.Sent.2020-01/new
mv $box/.Sent.*/cur/*"$first"* $box/.Sent/cur; mv $box/.Sent.*/cur/*"$third"* $box/.Sent/cur
old=1577923200.01dxkbm2000000000000000000.mr
sed "s/$first/01dxkbm2000000000000000000/g" $box/.Sent/cur/*"$first"* >$box/.Sent.2020-01/cur/$old:2,S
mr --as erin sent --json >out
same "$third $second $first 01dxkbm2000000000000000000" "$(jq -r .id out | tr '\n' ' ' | sed 's/ $//')" 'sent has all months and the old folder, newest first'
same "$third" "$(mr --as erin sent --limit 1 --json | jq -r .id)" 'and of them the newest'
for id in "$first" "$second" "$third"; do
	exits 0 'read finds each' mr --as erin read "$id"
	exits 0 'by its end too' mr --as erin read "$(printf %s "$id" | tail -c 8)"
	exits 0 'and why' mr --as erin why "$id"
	says out 'agents/erin/.Sent' 'with the folder'
done
exits 0 'search --sent' mr --as erin search three
says out three 'finds it'

# the end of an id means what is near
put() { mkdir -p "$box/$1"; sed "s/$first/$2/g" $box/.Sent/cur/*"$first"* >"$box/$1/$3.$2.mr$4"; }
put new 01m0000000000000000nearest 1786706395 ''
put .Archive.2026-08/cur 01m0000000000000001nearest 1786706395 :2,S
put .Archive.2020-01/cur 01dxkbm2000000000001secnd7 1577923200 :2,S
put .Archive.2020-01/cur 01dxkbm2000000000002secnd7 1577923200 :2,S
put .Archive.2019-01/cur 01d06k6c000000000003secnd7 1546300800 :2,S
exits 0 'an end that mail in the inbox has' mr --as erin read --peek nearest --json
same 01m0000000000000000nearest "$(jq -r .id out)" 'is not ambiguous because of the archive'
exits 4 'an end that two of one month have' mr --as erin read --peek secnd7
says err "several of the nearest messages end in 'secnd7'" 'is, and is said to be among the nearest'
silent_about err 01d06k6c 'of which older months have none'
exits 0 'a longer one' mr --as erin read --peek 3secnd7 --json
same 01d06k6c000000000003secnd7 "$(jq -r .id out)" 'finds the older'

# standard input that never ends must not be read
exits 0 'an open socket on stdin is not read with -m' perl -MSocket -e '
	socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC); open(STDIN, "<&", $a); alarm 5; exec @ARGV' "$BIN" --as alice send bob -m x
exits 2 'nor without' perl -MSocket -e '
	socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC); open(STDIN, "<&", $a); alarm 5; exec @ARGV' "$BIN" --as alice send bob
finish
