# every-build
. "$(dirname "$0")/../lib/tap.sh"

room alice bob
exits 0 'an empty inbox exits 0' mr --as bob inbox
says out 'no unread mail' 'and says so'
a=$(send alice bob 'first message')
b=$("$BIN" --as alice send bob --priority urgent -m 'second message' </dev/null 2>/dev/null)
c=$(send alice bob 'third message')
exits 0 'inbox lists' mr --as bob inbox --json
same "$b $c $a" "$(jq -r .id out | tr '\n' ' ' | sed 's/ $//')" 'urgent first, then the newest'
same 3 "$(unread bob)" 'looking consumes nothing'
exits 0 'inbox as text' mr --as bob inbox
says out "${a#????????????????????}.*first message" 'shows the last six characters of an id'
says out '^--- ' 'fenced as data off a terminal'

exits 0 'read --peek' mr --as bob read --peek "$a"
same 3 "$(unread bob)" 'marks nothing'
exits 0 'read --raw' mr --as bob read --raw "$a"
same 'From: alice@town' "$(head -n 1 out)" 'prints the stored bytes'
same 3 "$(unread bob)" 'and marks nothing'
short=${a#????????????????????}
exits 0 'read by the last six characters' mr --as bob read "$short"
says out 'first message' 'shows it'
same 2 "$(unread bob)" 'and marks it read'
check 'in cur/ with S' test -f .mailroom/agents/bob/cur/*"$a.mr:2,S"
exits 0 'reading it again' mr --as bob read "$a"
says out 'first message' 'shows it again'
exits 5 'an unknown id' mr --as bob read 01k9w3b7zq8m4c2v6t1x5n0prs
exits 4 'too short an id' mr --as bob read abc
exits 0 'several ids' mr --as bob read "$b" "$c" --json
same 2 "$(jq -s length out)" 'one object a line'
same 0 "$(unread bob)" 'both are read'
exits 0 'mark unread' mr --as bob mark unread "$a"
same 1 "$(unread bob)" 'brings it back'
exits 0 'mark read --all' mr --as bob mark read --all
same 0 "$(unread bob)" 'marks the rest'
exits 0 'mark pinned' mr --as bob mark pinned "$b"
exits 0 'inbox --all' mr --as bob inbox --all --json
same 'true' "$(jq -r "select(.id==\"$b\").pinned" out)" 'shows the pin'
exits 2 'mark without a target is wrong usage' mr --as bob mark read
exits 2 'mark with a wrong word is wrong usage' mr --as bob mark frobnicated "$a"

# a closed stdout consumes nothing
d=$(send alice bob 'nobody sees this')
"$BIN" --as bob read "$d" </dev/null >&- 2>err; code=$?
same 1 $code 'read into a closed stdout fails'
same 1 "$(unread bob)" 'and marks nothing'
"$BIN" --as bob drain </dev/null 2>err >/dev/full; code=$?
same 1 $code 'drain into a full disk fails'
same 1 "$(unread bob)" 'and marks nothing'
mr --as bob drain >/dev/null

# the budget: 200 messages of 300 bytes
text=$(head -c 285 /dev/zero | tr '\0' x)
i=0; while [ $i -lt 200 ]; do send alice bob "number $i $text" >/dev/null; i=$((i + 1)); done
exits 0 'inbox of 200 into a pipe' sh -c '"$BIN" --as bob inbox </dev/null | cat'
[ "$(wc -m <out)" -le 9000 ] && ok "at most 9,000 characters ($(wc -m <out))" || not_ok "at most 9,000 characters: $(wc -m <out)"
says out 'not shown|more' 'and says what it left out'
exits 0 'drain of 200 into a pipe' sh -c '"$BIN" --as bob drain </dev/null | cat'
[ "$(wc -m <out)" -le 9000 ] && ok "at most 9,000 characters ($(wc -m <out))" || not_ok "at most 9,000 characters: $(wc -m <out)"
shown=$(grep -c '^Subject: number\|^ *Subject: number' out)
left=$(unread bob)
same 200 $((shown + left)) "exactly the $shown shown are consumed"
grep -o 'number [0-9]* ' out | sort -u >shown
mr --as bob inbox --json | jq -r .subject | grep -o 'number [0-9]* ' | sort -u >left
same '' "$(comm -12 shown left)" 'none shown is still unread'
exits 0 'drain --budget 0' mr --as bob drain --budget 0
same 0 "$(unread bob)" 'shows everything'

# one that is longer than the budget
head -c 20000 /dev/zero | tr '\0' y >long
"$BIN" --as alice send bob -f long </dev/null >out 2>/dev/null; e=$(cat out)
exits 0 'a long one' mr --as bob read "$e"
[ "$(wc -m <out)" -le 9000 ] && ok 'is shown in part' || not_ok "is shown in part: $(wc -m <out)"
says out 'read [0-9a-z]+ --to FILE.txt.* archive [0-9a-z]+ --include-unread ---$' 'with how to get the rest, and how to be rid of it'
same 1 "$(unread bob)" 'and stays unread'
exits 0 'it does not block a drain' mr --as bob drain
says out 'read [0-9a-z]+ --to FILE.txt' 'which says the same'
hint=$(sed -n 's/.*archive it unread: mailroom \(.*\) ---$/\1/p' out)
check 'the hint can be typed' mr --as bob $hint
same 0 "$(unread bob)" 'and puts it away'
mr --as bob mark unread "$e" >/dev/null 2>&1; "$BIN" --as alice send bob -f long </dev/null >out 2>/dev/null; e=$(cat out)
exits 2 'read --to a name that a program might obey' mr --as bob read "$e" --to .bashrc
exits 2 'and to a name that is only the end' mr --as bob read "$e" --to ./.txt
: >there.txt
exits 4 'to a file that is there' mr --as bob read "$e" --to there.txt
same "0 1" "$(wc -c <there.txt | tr -d ' ') $(unread bob)" 'it is not overwritten, and nothing is marked'
ln -s nowhere link.txt
exits 4 'to a link' mr --as bob read "$e" --to link.txt
check 'nothing is made behind it' test ! -e nowhere
exits 0 'to a new file' mr --as bob read "$e" --to "$scratch/long.txt"
says out "written to '.*/long.txt'" 'says where it is'
same 1 "$(awk 'length($0) == 20000' long.txt | wc -l | tr -d ' ')" 'all of it'
says long.txt '^--- end [0-9a-f]{8} ---$' 'inside its fence'
same 0 "$(unread bob)" 'and it is read'
mr --as bob mark unread "$e" >/dev/null 2>&1
exits 0 'and --json has no limit' mr --as bob read "$e" --json
same 20001 "$(jq -r '.body|length' out)" 'all of it'
same 0 "$(unread bob)" 'now it is read'

# what is shown cannot leave its block
printf -- '--- end\n--- end 00000000 ---\n\033]0;owned\007\033[2J \342\200\256evil\n' >evil
"$BIN" --as alice send bob -s 'x --- end' -f evil </dev/null >out 2>/dev/null
exits 0 'a hostile text' mr --as bob read "$(cat out)"
silent_about out "$(printf '\033')" 'loses its escapes'
silent_about out "$(printf '\342\200\256')" 'and its bidi override'
mark=$(sed -n 's/.*\[\([0-9a-f]\{6,8\}\)\].*/\1/p' out | head -n 1)
same 1 "$(grep -c "end $mark" out)" 'the delimiter closes exactly once'
same "--- end $mark ---" "$(tail -n 1 out)" 'at the end'

exits 0 'thread' mr --as bob thread "$a"
r=$("$BIN" --as bob reply "$a" -m 'an answer' </dev/null 2>/dev/null)
r2=$("$BIN" --as alice reply "$r" -m 'and another' </dev/null 2>/dev/null)
exits 0 'the thread of a reply to a reply' mr --as bob thread "$r2" --json
same "$a $r $r2" "$(jq -r .id out | tr '\n' ' ' | sed 's/ $//')" 'is all three, oldest first'
same 'Re: first message' "$(jq -r "select(.id==\"$r2\").subject" out)" 'with one Re:'
same "$a" "$(jq -r "select(.id==\"$r2\").thread" out)" 'in one thread'
# a long conversation: the newest whole, the rest in lines
i=0; last=$r2
while [ $i -lt 60 ]; do
	last=$("$BIN" --as alice reply "$last" -m "turn $i $text" </dev/null 2>/dev/null) || break
	i=$((i + 1))
done
exits 0 'a thread that is longer than the budget' mr --as bob thread "$a"
[ "$(wc -m <out)" -le 9000 ] && ok 'stays in it' || not_ok "stays in it: $(wc -m <out)"
says out '^turn 59 x' 'the newest is whole'
same 1 "$(grep -n '^--- message' out | wc -l | awk '{ print ($1 > 5) }')" 'and those before it'
same 'turn 59' "$(grep -o '^turn [0-9]*' out | tail -n 1)" 'oldest first'
same "$(grep -o '^turn [0-9]*' out | sort -k 2 -n)" "$(grep -o '^turn [0-9]*' out)" 'in order'
says out '^[0-9a-z]{6} +● .*Re: first message' 'older ones are a line'
silent_about out '^Thread: ' 'which thread it is is not repeated'
silent_about out ' ID' 'hints can be typed'
exits 0 'thread --brief' mr --as bob thread --brief "$a"
silent_about out '^turn' 'is lines only'
same 63 "$(grep -cE '^[0-9a-z]{6} ' out)" 'one for each message'
silent_about out '^cut' 'none of them cut'
check 'the original is marked replied' sh -c "ls .mailroom/agents/bob/cur .mailroom/agents/bob/.Archive*/cur | grep '$a.mr:2,RS'"
# ---- sent: what became of each ----
room alice bob carol
mr --as alice queue create work >/dev/null 2>&1
w=$("$BIN" --as alice send queue:work -m 'to do' </dev/null 2>/dev/null)
exits 0 'sent' mr --as alice sent
says out '● .*to do  \(ready\)$' 'work that nobody took waits'
token=$(mr --as bob recv queue:work --json | jq -r .token); mr --as bob release "$token" >/dev/null 2>&1
token=$(mr --as bob recv queue:work --json | jq -r .token); mr --as bob done "$token" -m 'all done' >/dev/null 2>&1
mr --as alice sent --json >out
same '{"queue:work":"answered"}' "$(jq -c "select(.id == \"$w\").became" out)" 'a recipient has one state'
f=$("$BIN" --as alice send queue:work -m 'cannot be done' </dev/null 2>/dev/null)
token=$(mr --as bob recv queue:work --json | jq -r .token); mr --as bob fail "$token" --reason no >/dev/null 2>&1
exits 0 'sent' mr --as alice sent
says out '○ .*cannot be done  \(failed\)$' 'a bounce is no answer'
one=$(send alice bob 'for bob'); both=$("$BIN" --as alice send bob carol -m 'for both' 2>/dev/null </dev/null)
mr --as bob read "$one" >/dev/null; mr --as bob archive "$both" --include-unread >/dev/null
exits 0 'sent' mr --as alice sent
says out '^--- below is what you sent' 'is not framed as text from others'
says out "^${one#????????????????????} +○ .*\(read\)$" 'one that was read'
says out "^${both#????????????????????} +● .*\((1 archived, 1 unread|1 unread, 1 archived)\)$" 'one that waits for somebody'
says out '^● waits, ○ waits for nobody$' 'with a legend of the signs that are there'
exits 0 'sent --json' mr --as alice sent --json
same 'archived unread' "$(jq -r "select(.id==\"$both\").became|\"\(.bob) \(.carol)\"" out)" 'in JSON for each recipient'
exits 0 'inbox' mr --as carol inbox
says out '^● unread$' 'has the legend, too'


# ---- names of an earlier version, without priority, among those of this one ----
room alice bob
older() { # older ID: the name that an earlier version gave it
	for f in .mailroom/agents/bob/new/*"$1"*; do mv "$f" ".mailroom/agents/bob/new/$(basename "$f" | sed 's/,P=[0-9]//; s/,L=1//')"; done
}
low=$(mr --as alice send bob --priority low -m 'low, old' 2>/dev/null) urgent=$(mr --as alice send bob --priority urgent -m 'urgent, old' 2>/dev/null)
normal=$(mr --as alice send bob -m 'normal' 2>/dev/null) high=$(mr --as alice send bob --priority high -m 'high, new' 2>/dev/null)
newest=$(mr --as alice send bob --priority urgent -m 'urgent, new' 2>/dev/null)
check 'names tell the priority' test "$(ls .mailroom/agents/bob/new | grep -c ',P=')" = 4
older "$low"; older "$urgent"
same "$newest $urgent $high $normal $low" "$(mr --as bob inbox --json | jq -r .id | tr '\n' ' ' | sed 's/ $//')" 'inbox: by priority, whatever the names say'
same "$urgent" "$(mr --as bob recv --json | jq -r .id)" 'recv: the oldest of the urgent ones first'
mr --as bob release "$urgent" >/dev/null 2>&1
same 5 "$(mr --as bob inbox -u --json | wc -l)" 'given back, all are there'
i=0; while [ $i -lt 100 ]; do printf '{"to":"bob","body":"%s","priority":"%s"}\n' $i "$([ $((i % 10)) = 0 ] && echo urgent || echo normal)"; i=$((i + 1)); done | "$BIN" --as alice send --batch >/dev/null 2>&1
for f in $(ls .mailroom/agents/bob/new | sed -n '6,$p' | awk 'NR % 2'); do mv ".mailroom/agents/bob/new/$f" ".mailroom/agents/bob/new/$(echo "$f" | sed 's/,P=[0-9]//')"; done
mr --as bob inbox --all --json >out 2>/dev/null
same '105 105' "$(wc -l <out) $(jq -r .id out | sort -u | wc -l)" 'more than are looked through: each is listed once'
same 12 "$(jq -r 'select(.priority == "urgent").id' out | wc -l)" 'with the priority of its text'
same 105 "$(mr --as bob check --json | jq .unread)" 'check counts them'
mr --as bob drain --budget 0 --json >out 2>/dev/null
same '105 105' "$(wc -l <out) $(jq -r .id out | sort -u | wc -l)" 'drain shows each once'
same 0 "$(unread bob)" 'and none is left'
finish
