# every-build
# Channels: posts, subscribers, retention, reading, following.
. "$(dirname "$0")/../lib/tap.sh"

numbers() { mr channel read "$@" --json | jq -r .number | tr '\n' ' '; }

room alice bob carol
exits 0 'no channels yet' mr channel list
exits 0 'create' mr --as alice channel create news --retain-count 10
exits 4 'a name is taken once' mr --as bob channel create news
exits 5 'subscribers must exist' mr --as bob channel subscribe news nobody
exits 0 'subscribe' mr --as bob channel subscribe news
exits 0 'subscribing twice is success' mr --as bob channel subscribe news --json
same false "$(jq .changed out)" 'that changes nothing'
exits 0 'the sender may subscribe, too' mr --as alice channel subscribe channel:news
same 'bob alice ' "$(mr channel subscribers news | tr '\n' ' ')" 'both are listed'
id=$(send alice channel:news 'post 1')
same "$id" "$(mr --as bob inbox --json | jq -r .id)" 'a subscriber gets the post'
same 0 "$(unread alice)" 'its sender gets no copy'
same 0 "$(unread carol)" 'nor does anybody else'
check 'a post is one file with many names' sh -c 'test "$(stat -c %h .mailroom/channels/news/posts/*1)" -ge 2'

# ---- retention ----
for i in 2 3 4 5 6 7 8 9 10; do send alice channel:news "post $i" >/dev/null; done
same '1 2 3 4 5 6 7 8 9 10 ' "$(numbers news)" 'ten are kept'
send alice channel:news 'post 11' >/dev/null
same '2 3 4 5 6 7 8 9 10 11 ' "$(numbers news)" 'the eleventh leaves ten'
same 11 "$(unread bob)" 'subscribers keep what they got'
sed -i 's/^Retain-Count: 10/Retain-Count: 0/' .mailroom/channels/news/settings
send alice channel:news 'post 12' >/dev/null
sed -i 's/^Retain-Count: 0/Retain-Count: 10/' .mailroom/channels/news/settings
exits 0 'prune at eleven' mr channel prune news --json
same 0 "$(jq .removed out)" 'does nothing'
sed -i 's/^Retain-Count: 10/Retain-Count: 0/' .mailroom/channels/news/settings
send alice channel:news 'post 13' >/dev/null
sed -i 's/^Retain-Count: 0/Retain-Count: 10/' .mailroom/channels/news/settings
exits 0 'prune --all at twelve' mr channel prune --all --json
same 2 "$(jq .removed out)" 'leaves ten'
exits 2 'prune wants a name or --all' mr channel prune
exits 2 'and not both' mr channel prune news --all

# ---- reading ----
exits 0 'read' mr channel read news
says out '^Number: 4$' 'prints numbers'
same '--- below' "$(grep -B 1 '^Number: 4$' out | head -n 1 | cut -c 1-9)" 'as a header of the message, behind the mark'
says out 'not instructions' 'in a fence'
same '12 13 ' "$(numbers news --since 11)" 'since a number'
last=$(mr channel read news --json --since 11 | head -n 1 | jq -r .id)
same '13 ' "$(numbers news --since "$last")" 'since an id'
same '13 ' "$(numbers news --since "${last#??????????????}")" 'or its end'
same 10 "$(mr channel read news --json --since 1h | wc -l | tr -d ' ')" 'since a time'
same '12 13 ' "$(numbers news --limit 2)" 'the newest two'
same '5 6 ' "$(numbers news --since 4 --limit 2)" 'the first two after a number'
exits 5 'since nothing that is there' mr channel read news --since 01k9w3b7zq8m4c2v6t1x5n0prs
exits 0 'a small budget' mr channel read news --budget 900
says out 'posts? \(.*not shown: mailroom channel read news --since [0-9]+' 'says how to go on'
left=$(sed -n 's/^\([0-9]*\) more post.*/\1/p' out)
same 10 "$(($(grep -c '^Number: ' out) + left))" 'and counts all that is left out'
next=$(sed -n 's/.*--since \([0-9]*\).*/\1/p' out)
same "$((next + 1))" "$(mr channel read news --since "$next" --json | head -n 1 | jq -r .number)" 'without a gap'
exits 0 'nothing new' mr channel read news --since 13
says out '^nothing new' 'is said'
exits 0 'since a number beyond the last' mr channel read news --since 99
says out 'the last post is 13' 'is told from nothing new'

# ---- following ----
"$BIN" channel read news --since 13 --follow --timeout 20s --limit 5 --json </dev/null >followed 2>follow.err &
follower=$!
for i in 1 2 3 4 5; do send alice channel:news "more $i" >/dev/null; done
wait $follower
same '14 15 16 17 18 ' "$(jq -r .number followed | tr '\n' ' ')" 'a follower gets every post once, in order'
begin=$(date +%s)
exits 0 'follow with --timeout' mr channel read news --since 18 --follow --timeout 1s
check 'ends in time' test $(($(date +%s) - begin)) -le 5

mr --as alice channel create long >/dev/null
"$BIN" channel read long --follow --timeout 30s --limit 3 --budget 1500 </dev/null >followed 2>follow.err &
follower=$!
for i in 1 2 3; do
	send alice channel:long "$(printf '%0900d' $i)" >/dev/null
	n=0; while [ "$(grep -c '^Number: ' followed)" -lt $i ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
done
wait $follower
same 3 "$(grep -c '^Number: ' followed)" 'a follower has the whole budget for every batch'

# ---- eight posters and a follower ----
mr --as alice channel create busy >/dev/null
"$BIN" channel read busy --follow --timeout 60s --limit 40 --json </dev/null >followed 2>follow.err &
follower=$!
for p in 1 2 3 4 5 6 7 8; do (for i in 1 2 3 4 5; do send alice channel:busy "$p $i" >/dev/null; done) & done
wait
same 40 "$(jq -r .id followed | sort -u | wc -l | tr -d ' ')" 'every post arrives'
jq -r .number followed >got; seq 1 40 >want
check 'once, in order' cmp got want

# ---- closed, deleted ----
exits 0 'unsubscribe' mr --as bob channel unsubscribe news
before=$(unread bob); send alice channel:news 'without bob' >/dev/null
same "$before" "$(unread bob)" 'ends it'
exits 0 'close' mr --as alice channel close news
exits 4 'a closed channel refuses posts' mr --as alice send channel:news -m late
exits 0 'and can be read' mr channel read news
exits 0 'close --open' mr --as alice channel close news --open
exits 0 'opens it' mr --as alice send channel:news -m again
exits 2 'an option of another word' mr channel show news --retain-count 5
says err "'--retain-count' is not for 'channel show'" 'is refused, not ignored'
mr --as alice channel create torn >/dev/null
send alice channel:torn one >/dev/null; send alice channel:torn two >/dev/null
ln -sf /etc/passwd "$(find .mailroom/channels/torn/posts -name '*1' | head -n 1)"
exits 0 'show with a post that is a link' mr channel show torn
says out '2 kept now, the last is number 2' 'counts it: it reads no post'
exits 1 'reading' mr channel read torn
says err 'post 1' 'reports it'
MAILROOM_DEBUG=1 "$BIN" channel show torn >out 2>err </dev/null
silent_about err 'channel_scan' 'a count opens nothing'
printf '' >.mailroom/channels/torn/settings
exits 1 'a channel whose settings were emptied' mr channel show torn
says err 'the file is empty' 'is no channel with defaults'
exits 1 'nor can it be posted to' mr --as alice send channel:torn -m x
says err 'the file is empty' 'and that is why'
exits 0 'delete' mr --as alice channel delete news
exits 5 'and it is gone' mr channel show news
exits 5 'for posters, too' mr --as alice send channel:news -m gone

# ---- a disk that fails from some call on: it ends, and is said
room alice
mr --as alice channel create news >/dev/null 2>&1
hung=; n=15
while [ $n -lt 40 ]; do
	MAILROOM_FAULT=errno-from:EIO:$n timeout 60 "$DEVBIN" --as alice channel read news </dev/null >out 2>err
	[ $? -eq 124 ] && hung="$hung $n"
	n=$((n + 1))
done
same '' "$hung" 'reading a channel ends wherever the disk begins to fail'
# ---- post ----
room alice bob
mr --as alice channel create news >/dev/null 2>&1; mr --as bob channel subscribe news >/dev/null 2>&1
exits 0 'channel post' mr --as alice channel post news -s late -m 'one hour late'
same 'late' "$(mr --as bob inbox --json | jq -r .subject)" 'is send channel:NAME'
exits 0 'with the prefix, as JSON' mr --as alice channel post channel:news -m two --json
same 'channel:news bob' "$(jq -r '.to | join(" ")' out)" 'the same'
exits 5 'a channel that is not there' mr --as alice channel post nowhere -m x
exits 2 'without a text' mr --as alice channel post news
printf 'from a pipe\n' | "$BIN" --as alice channel post news >out 2>err; same 0 $? 'standard input is the text'
exits 2 'an option of another word' mr --as alice channel post news --retain-count 3 -m x
# numbers of purged posts are not among the newest
for p in $(mr --as alice channel read news --limit 2 --json | jq -r .id); do mr --as alice purge "$p" >/dev/null 2>&1; done
exits 0 'the newest post, where two behind it were purged' mr --as bob channel read news --limit 1 --json
same 'one hour late' "$(jq -r .body out | head -n 1)" 'is the last that can be read'
finish
