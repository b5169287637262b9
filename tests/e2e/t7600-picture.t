# Pictures of who told whom: as SVG, as text, as JSON; a thread from whosever mailbox, all mail since a time.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
"$BIN" --as alice queue create builds </dev/null >/dev/null 2>&1
id=$(mr --as alice send bob -s 'which port?' -m 'which one' 2>/dev/null)
mr --as bob read "$id" >/dev/null
answer=$(mr --as bob reply "$id" -m 8081 2>/dev/null)
mr --as carol send alice bob --thread "$id" -s 'I use it, too' -m x --priority urgent >/dev/null 2>&1
mr --as alice send queue:builds --thread "$id" -s 'build with it' -m x >/dev/null 2>&1
token=$(mr --as carol recv queue:builds --json 2>/dev/null | jq -r .token)

short=${answer#????????????????????}
exits 0 'a thread, by the end of the id of any message in it' mr picture "$short" --json
jq -c '[.title, [.lanes[].name], (.messages | map([.from, .to, .unread, .subject, .priority, .answer])), (.held | map([.agent, .how])), .left_out]' out >model
same '["which port?",["alice","bob","carol","queue:builds"],[["alice",["bob"],[],"which port?","normal",false],["bob",["alice"],["alice"],"Re: which port?","normal",true],["carol",["alice","bob"],["alice","bob"],"I use it, too","urgent",false],["alice",["queue:builds"],[],"build with it","normal",false]],[["carol","held"]],0]' \
	"$(sed 's/\["bob","alice"\]/["alice","bob"]/g' model)" 'says who told whom, what is unread and who works on what'
schema='def ok(s): . as $v | (s.properties // {}) as $p | if type == "object" then (keys == (s.required | sort)) and (keys == ($p | keys)) and all(keys[]; . as $k | $v[$k] | ok($p[$k]))
	elif type == "array" then all(.[]; ok(s.items)) else (s.enum == null or (s.enum | index($v)) != null) and (s.type == null or ([s.type] | flatten | map(if . == "integer" then "number" else . end) | index($v | type)) != null) end; ok($s[0])'
same true "$(jq --slurpfile s "$top/docs/schema/picture.json" "$schema" out)" 'and is what docs/schema/picture.json says'
mr --as carol done "$token" >/dev/null 2>&1
same '["done",true]' "$(mr picture "$id" --json | jq -c '.held[0] | [.how, (.to >= .from)]')" 'work that is done has an end'
exits 0 'with --text it is drawn in columns' mr picture "$id" --text --width 130
says out 'not instructions' 'inside a fence'
says out '^ *alice +bob +carol +queue:builds$' 'under its names'
says out '├─*▶│.* which port[?]$' 'with a whole line for what was read'
says out '│◀╌*┤.* Re: which port[?]$' 'and a broken one for what was not'
says out '◀╌*┼◀╌*┤.* ! I use it, too$' 'to several at once'
says out 'carol takes: build with it [(]done after ' 'and the work'
mr picture "$id" --text --width 20 >out
same 20 "$(grep -v '^---' out | wc -L)" 'in 20 columns it is a list, no line longer'
exits 0 'SVG goes to stdout' mr picture "$id"
cp out one.svg
check 'and is XML' python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" one.svg
exits 0 'or whole into a file' mr picture "$id" -o pictures/a.svg
same 'pictures/a.svg: 4 messages' "$(cat out)" 'which is said'
check 'the same' cmp -s one.svg pictures/a.svg
exits 0 'all mail of the last hour' mr picture --since 1h --json
same 4 "$(jq '.messages | length' out)" 'has the same messages'
exits 0 'at most so many' mr picture --since 1h --limit 3 --json
same '3 1' "$(jq -r '"\(.messages | length) \(.left_out)"' out)" 'the newest, and what was left out is said'
exits 0 'a span without mail' mr picture --since 2030-01-01 --text
says out '^no mail$' 'says so'
same "$(mr --as alice inbox --json --all | jq -c '[.id, .read]')" "$(mr --as alice inbox --json --all | jq -c '[.id, .read]')" 'looking marks nothing'
same 2 "$(unread alice)" 'and alice has as much unread as before'

# from mailbox to mailbox
chain=$(mr --as alice send bob -s 'pass it on' -m x 2>/dev/null)
mr --as bob send carol --thread "$chain" -s 'pass it on' -m x >/dev/null 2>&1
mr --as carol send carol --thread "$chain" -s 'it ends here' -m x >/dev/null 2>&1
same 'alice>bob bob>carol carol>carol' "$(mr picture "$chain" --json | jq -r '[.messages[] | "\(.from)>\(.to[0])"] | join(" ")')" 'a thread is followed to mailboxes that its first message does not name'

# hostile words
mr --as alice send bob -s "$(printf '</text><script>alert(1)</script>\033[31m\342\200\256')" -m x >/dev/null 2>&1
mr picture --since 1h >hostile.svg
check 'a hostile subject leaves the SVG well-formed' python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" hostile.svg
check 'without a script' sh -c '! grep -q "<script" hostile.svg'
says hostile.svg '&lt;script&gt;' 'and is shown as it was written'
mr picture --since 1h --text >text
check 'no control character and no override gets into the text' sh -c '! grep -q "$(printf "\\033")" text && ! grep -q "$(printf "\\342\\200\\256")" text'

# many agents
mkdir many && "$BIN" init many >/dev/null 2>&1 </dev/null
( cd many || exit
for i in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28; do "$BIN" register a$i </dev/null >/dev/null 2>&1; done
"$BIN" --as a28 send '@all' -s news -m x </dev/null >/dev/null 2>&1 )
same '24 a28 5 others 23' "$(mr --room many/.mailroom picture --since 1h --json | jq -r '"\(.lanes | length) \(.messages[0].from) \(.lanes[-1].name) \(.messages[0].unread | length)"')" 'of more than 24 agents those that said least share a column'

exits 5 'a thread that is not there' mr picture 01m7f5d9v7a90dbbv9vq6m4ym2
exits 5 'or a word that is none' mr picture no-such-thread
exits 2 'text does not go into a file' mr picture "$id" --text -o x.svg
exits 2 'a limit is a number from 1 to 1000' mr picture --limit 0
exits 2 'a time is a time' mr picture --since yesterday

# a thread costs what its mailboxes cost, not the room
if command -v strace >/dev/null; then
	for i in 1 2 3 4 5 6 7 8 9; do mr --as carol send carol -s "note $i" -m x >/dev/null 2>&1; done
	mr --as alice send bob --thread small -s one -m x >/dev/null 2>&1
	few=$(mr --as alice send bob -s 'two of us' -m x 2>/dev/null)
	strace -f -e trace=openat,openat2,open -o trace "$BIN" picture "$few" --json </dev/null >/dev/null 2>&1
	check 'of the mail of one who did not take part nothing is opened' sh -c '! grep -q "carol/\(new\|cur\).*\.mr" trace && ! grep "carol" trace | grep -q "[0-9]\.mr"'
else
	skip 'of the mail of one who did not take part nothing is opened' 'no strace'
fi
finish
