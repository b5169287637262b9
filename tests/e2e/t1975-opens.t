# SPDX-License-Identifier: MIT
# once
# How many files a command opens in a room with a long history, against the same command in a small room: cost follows the work
# (promise 6). Names carry what lists need, so only what is shown is opened.
. "$(dirname "$0")/../lib/tap.sh"

# opens COMMAND...: how many files it opened; `trace` has them.
opens() {
	strace -f --seccomp-bpf -qq -e trace=open,openat,openat2 -o raw -- "$@" >out 2>err <"${in:-/dev/null}"
	grep -E '= [0-9]+$' raw >trace
	wc -l <trace | tr -d ' '
}
if ! strace -f --seccomp-bpf -qq -e trace=open -o raw -- "$BIN" --version >/dev/null 2>&1; then
	skip 'opened files are counted' 'strace does not work here'
	finish
	exit 0
fi

# letters BOX/FOLDER FLAGS SECONDS COUNT [FROM TO]: so many messages, a second apart.
letters() {
	mkdir -p ".mailroom/agents/$1"
	awk -v folder=".mailroom/agents/$1" -v flags="$2" -v from="$3" -v count="$4" -v date="$(date -u -R -d "@$3")" -v lot=$((lot += 1)) -v sender="${5:-alice}" -v to="${6:-bob}" '
	function digits(value, n,   text) { # as in an id
		for (; n > 0; n--) { text = substr("0123456789abcdefghjkmnpqrstvwxyz", value % 32 + 1, 1) text; value = int(value / 32) }
		return text
	}
	BEGIN { for (i = 0; i < count; i++) {
		id = digits((from + i) * 1000, 10) digits(0, 10) digits(lot, 2) digits(i, 4)
		name = folder "/" (from + i) "." id ".mr" flags
		printf "From: %s@town\nTo: %s@town\nSubject: letter %d\nDate: %s\nMessage-ID: <%s@town>\nMailroom-Life: 1\nMIME-Version: 1.0\nContent-Type: text/markdown; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nthe text of letter %d\n", sender, to, i, date, id, i >name
		close(name)
	} }'
}
# town UNREAD READ SENT: bob has so much mail, most of it old: the archive is of the last 12 months.
town() {
	room alice
	CLAUDE_CODE_SESSION_ID=opens-1 mr register bob >/dev/null 2>&1
	sed -i 's/^Sync: .*/Sync: none/' .mailroom/room
	mr --as bob send alice -m 'makes the folder of the month' >/dev/null
	now=$(date +%s)
	letters bob/new '' $((now - 40 * 86400)) $(($1 - 3))
	letters bob/new '' $((now - 3600)) 3
	month=1
	while [ $month -le 12 ]; do
		at=$((now - month * 30 * 86400 - 2 * 86400))
		letters "bob/.Archive.$(date -u -d "@$at" +%Y-%m)/cur" :2,S $at $(($2 / 12))
		letters "bob/.Sent.$(date -u -d "@$at" +%Y-%m)/cur" :2,S $at $(($3 / 12)) bob alice
		cp -al ".mailroom/agents/bob/.Sent.$(date -u -d "@$at" +%Y-%m)" ".mailroom/agents/alice/.Archive.$(date -u -d "@$at" +%Y-%m)"; month=$((month + 1))
	done
	find .mailroom/agents -type d -name cur -exec sh -c 'mkdir -p "${1%cur}new" "${1%cur}tmp"' sh {} \;
	unread=$(ls .mailroom/agents/bob/new | sed -n '2s/^[0-9]*\.\([0-9a-z]*\)\.mr.*/\1/p')
	chmod -R u+rwX,go= .mailroom
	touch -d '1 minute ago' .mailroom/spool .mailroom/holds .mailroom/agents/bob/new .mailroom/agents/bob/cur
}

# work COUNT: so much work that is ready, delayed, done and failed; so many posts and dead letters.
work() {
	mr --as alice queue create work >/dev/null 2>&1; mr --as alice channel create news >/dev/null 2>&1
	later=$(date -u -d '+30 days' +%Y-%m-%dT%H:%M:%SZ)
	awk -v count="$1" -v later="$later" 'BEGIN { for (i = 0; i < count; i++) {
		printf "{\"to\":\"queue:work\",\"body\":\"job %d\"}\n{\"to\":\"queue:work\",\"body\":\"later %d\",\"not_before\":\"%s\"}\n", i, i, later
		printf "{\"to\":\"channel:news\",\"body\":\"post %d\"}\n", i
	} }' | "$BIN" --as alice send --batch >out 2>err || { echo "Bail out! the work cannot be sent"; note <err; exit 1; }
	letters "../queues/work/done/$(date -u -d '30 days ago' +%Y-%m)" '' $(($(date +%s) - 30 * 86400)) "$1"
	letters ../queues/work/failed '' $(($(date +%s) - 20 * 86400)) "$1"
	letters ../dead/new '' $(($(date +%s) - 20 * 86400)) "$1"
	find .mailroom/agents/alice/.Sent.* -newer .mailroom/room -name '*.mr*' -delete # so much was not sent in one minute, but in the last hour
	letters "alice/.Sent.$(date -u -d '50 minutes ago' +%Y-%m)/cur" :2,S $(($(date +%s) - 3000)) "$1" alice bob
	chmod -R u+rwX,go= .mailroom
}

# NAME MORE COMMAND: how many files more than in the small room it may open; @ID is an unread message, @6 its last characters.
# Beside the 10 that a list shows there is a folder for each month of the archive, where it is looked at.
cat >rows <<'EOF'
inbox 2 --as bob inbox --limit 10
check 0 --as bob check
wait 60 --as bob wait --timeout 0
hook 30 hook claude-code
told 2 hook claude-code
who 2 who
recv 2 --as bob recv
search-since 14 --as bob search letter --since 1d
read 2 --as bob read @6
reply 2 --as bob reply @6 -m yes
sent 2 --as bob sent --limit 10
thread 4 --as bob thread @ID
EOF
measure() { # measure FILE ROWS: a line "NAME OPENS" for each row
	printf '{"session_id":"opens-1","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt":"x"}' "$(pwd -P)" >event
	printf '{"session_id":"opens-1","cwd":"%s","hook_event_name":"Stop","stop_hook_active":false}' "$(pwd -P)" >stop
	while read -r name more command; do
		in=/dev/null program=$BIN
		case $name in
		hook | told) in=event ;;
		hook-stop) in=stop ;;
		mcp) in=calls ;;
		done) command="$command $(sed -n 's/.*"token":"\([^"]*\)".*/\1/p' said.claim)" ;;
		*-index | thread) "$DEVBIN" index >/dev/null 2>&1 || continue; program=$DEVBIN ;; # only with an index it does not read all mail
		esac
		sleep 0.05 # a folder that changed within a tick of the kernel is read more than once
		opens "$program" $(echo "$command" | sed "s/@6/$(printf %s "$unread" | tail -c 6)/; s/@ID/$unread/") | sed "s/^/$name /" >>"$1"
		cp trace "trace.$name"; cp out "said.$name"
		[ -s out ] || [ -s err ] || [ "$in" != /dev/null ] || { echo "# $name said nothing:"; note <err; }
	done <"$2"
}
judge() { # judge ROWS: the figures of small against those of large
	while read -r name more command; do
		few=$(sed -n "s/^$name //p" small) many=$(sed -n "s/^$name //p" large)
		if [ -z "$few" ]; then
			skip "$name" 'it is not built in'
		elif [ "${many:-0}" -gt 0 ] && [ "$many" -le $((few + more)) ]; then
			ok "$name opens $many files in a room of 20,000 messages, $few in a small one"
		else
			echo "# $many files, $few in a small room, $more more are allowed; the last of them:"; tail -n 5 "trace.$name" | note
			not_ok "$name opens no more in a room of 20,000 messages"
		fi
	done <"$1"
}
many=8000; [ -z "${MAILROOM_TEST_LONG:-}" ] || many=100000
town 15 12 12; measure small rows
town $many 8004 4008; measure large rows
# The backlog was announced by `hook` above: `told` had nothing to say, and neither has any later one until mail comes.
says said.hook 'Plus [0-9]+ more unread' "a backlog of $many is announced"
same '' "$(cat said.told)" 'once'
silent_about trace.told '"new"' 'and then its folder is not read'
send alice bob 'one more' >/dev/null
"$BIN" hook claude-code <event >out 2>err
says out 'one more' 'new mail is told beside it'
# Mail that came with an older id, as a carrier or another program may bring it.
letters bob/new '' $((now - 90 * 86400)) 1
"$BIN" hook claude-code <event >out 2>err
says out 'letter 0' 'so is mail with an older id'
silent_about out 'one more' 'alone'
# What is no longer unread leaves the log of what was told when that is most of it, and then nothing is told again.
log() { cat .mailroom/records/announced-log/bob/life-1 2>/dev/null | wc -l; }
noted=$(log)
python3 -c "import os, sys
os.chdir('.mailroom/agents/bob/new')
for name in sorted(os.listdir('.'))[1:$many * 3 // 4]: os.rename(name, '../cur/' + name + ':2,S')"
"$BIN" hook claude-code <event >out 2>err
same '' "$(cat out)" 'after most was read nothing is told again'
[ "$noted" -gt $((many / 2)) ] && [ "$(log)" -lt $((many / 2)) ] && [ "$(log)" -gt 0 ] && ok "the log of $noted lines has $(log)" || not_ok "the log of $noted lines has $(log)"
"$BIN" hook claude-code <event >out 2>err
same '' "$(cat out)" 'nor the next time'
send alice bob 'after the log was pruned' >/dev/null
"$BIN" hook claude-code <event >out 2>err
says out 'after the log was pruned' 'but for what is new'
judge rows

# What is shown of ten messages that were sent lies in the mailboxes that they went to: no other one is looked at.
sent=$(sed -n 's/^sent //p' large)
[ "$sent" -le 320 ] && ok "ten lines of sent open $sent files" || { note <trace.sent; not_ok "ten lines of sent open $sent files"; }

# The calls that each of 400 messages costs a drain, which takes and settles one after the other: what a thousand of them cost is
# the difference, not what a command costs.
calls() {
	strace -qq -o raw -- "$BIN" --as bob drain --budget 0 --limit "$1" >out 2>err
	wc -l <raw
}
each=$((($(calls 500) - $(calls 100)) / 4))
if [ "$each" -le 2400 ]; then
	ok "a drain makes $((each / 100)) system calls a message"
else
	echo "# $each for 100 messages, at most 2,400; the last of them:"; tail -n 40 raw | note
	not_ok 'a drain makes at most 24 system calls a message'
fi
each=$(grep -c 'openat(.*\.mr"' raw)
same 100 "$each" 'and opens each message once'
# A control message that another program put there does not say so in its name: it is judged when its turn comes, and stays.
mr --as alice send bob --type shutdown_request --field reason=soon >/dev/null 2>&1
control=$(ls .mailroom/agents/bob/new | grep ',L=1$')
mv ".mailroom/agents/bob/new/$control" ".mailroom/agents/bob/new/${control%%,*}"
exits 0 'a drain of the rest' mr --as bob drain --budget 0
silent_about out 'requestId' 'shows no control message'
same "${control%%,*}" "$(ls .mailroom/agents/bob/new)" 'and takes none'

# ---- the other commands, in rooms with queues, channels and dead letters as well; those that change something come last ----
cat >more <<'EOF'
search-index 14 --as bob search letter --limit 10
claim 8 --as bob recv queue:work --json
done 4 --as bob done
channel-list 2 channel list
channel-read 14 --as bob channel read news --limit 10
hook-stop 20 hook claude-code
mcp 14 --as bob mcp
gt-check 2 --as bob gt mail check
nudge 4 --as alice nudge bob -m look
drain 20 --as bob drain --limit 10
mark-one 2 --as bob mark pinned @6
EOF
cat >calls <<'EOF'
{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inbox","arguments":{"limit":10}}}
EOF
# Lists with a limit, and the pages of `mailroom serve`, the second time that they are asked for: the small room fills them, too.
cat >lists <<'EOF'
why 20 --as bob why @ID
stats 10 stats
top 10 top --once --limit 10
queue-list 20 queue list
queue-show 30 queue show work
dead-list 10 dead list --limit 10
EOF
cat >views <<'EOF'
attention 30 /
threads 30 /threads
picture 30 /picture
queues 60 /queues
agents 20 /agents
agent 30 /agent/bob
channels 20 /channels
channel 20 /channel/news
dead 20 /dead
metrics 40 /metrics
api-agents 20 /api/v1/agents
api-dead 20 /api/v1/dead?limit=50
api-queue 60 /api/v1/queues/work
api-messages 30 /api/v1/messages?agent=bob
one 30 /thread/@ID
search 30 /search?q=letter
search-old 60 /search?q=from:bob+letter
search-none 30 /search?q=nowhere
EOF
cat >streamed <<'EOF'
idle 0
one-mail 10
EOF
look() { # look FILE: as measure; and with a page that listens, what a second costs in which nothing happens, and one message
	[ -x "$serve" ] || return
	rm -f link jar served
	XDG_STATE_HOME=$scratch/operator strace -f --seccomp-bpf -qq -e trace=open,openat,openat2 -o served -- "$serve" serve --listen 127.0.0.1:0 >link 2>serve.err </dev/null & tracer=$!
	i=0; while [ $i -lt 200 ] && ! [ -s link ]; do sleep 0.05; i=$((i + 1)); done
	url=$(sed 's|/login.*||' link)
	curl -s -m 20 -c jar -o /dev/null "$(cat link)"
	while read -r name more page; do
		[ "$name" != one ] || "$DEVBIN" index >/dev/null 2>&1
		page=$(echo "$page" | sed "s/@ID/$unread/")
		curl -s -m 60 -b jar -o out "$url$page"
		before=$(wc -l <served)
		curl -sf -m 60 -b jar -o "said.$name" "$url$page" || { echo "# $page: curl exits $?"; continue; }
		tail -n +$((before + 1)) served | grep -E '= [0-9]+$' >"trace.$name"
		echo "$name $(wc -l <"trace.$name")" >>"$1"
	done <views
	curl -s -N -m 60 -b jar "$url/events" >events & listener=$!
	sleep 1.5 # the watch is armed, and what was there has been told
	before=$(wc -l <served)
	sleep 1
	idle=$(tail -n +$((before + 1)) served | grep -c '= [0-9]*$'); [ "$idle" -gt 3 ] || idle=3 # a look every 5 s whether its token is good
	echo "idle $idle" >>"$1"
	before=$(wc -l <served)
	mr --as alice send bob -m 'to the page that listens' >/dev/null 2>&1
	i=0; while [ $i -lt 100 ] && ! grep -q '^event: mail' events; do sleep 0.05; i=$((i + 1)); done
	sleep 0.5
	tail -n +$((before + 1)) served | grep -E '= [0-9]+$' >trace.one-mail
	cp trace.one-mail trace.idle
	echo "one-mail $(wc -l <trace.one-mail)" >>"$1"
	kill $listener
	kill $(cat /proc/$tracer/task/$tracer/children); wait $tracer 2>/dev/null
}
serve=$(dirname "$DEVBIN")/mailroom-serve
rm -f small large
town 15 12 12; work 12; measure small more
town 8000 8004 4008; work 2000; measure large lists; look large; measure large more
judge more
town 300 240 240; work 220; measure small lists; look small
judge lists; judge views; judge streamed
while read -r name most; do # also of what the small room opens as well
	opened=$(sed -n "s/^$name //p" large)
	[ "${opened:-0}" -le "$most" ] && ok "$name opens at most $most files" || not_ok "$name opens $opened files, not $most"
done <<'EOF'
attention 280
threads 600
agent 420
dead 900
queues 720
one 600
search 700
search-old 900
one-mail 60
EOF
[ ! -x "$serve" ] || same 3 "$(sed -n 's/^idle //p' large)" 'an idle room costs a page nothing else'

# ---- a team's inbox that is as it was when all of it had been told
mkdir -p teams/crew/inboxes
jq -n '[range(600) | {from: "alice", text: "letter \(.)", timestamp: "2026-10-03T10:\(. / 60 | floor + 10):\(. % 60 | if . < 10 then "0\(.)" else . end).000Z", read: false}]' >teams/crew/inboxes/bob.json
touch -d '1 minute ago' teams/crew/inboxes/bob.json
opens "$BIN" --room teams:teams/crew --as bob check --inject >/dev/null
says out 'more unread' 'a prompt tells of it'
says trace bob.json 'having read it'
opens "$BIN" --room teams:teams/crew --as bob check --inject >/dev/null
same '' "$(cat out)" 'the next prompt tells nothing'
silent_about trace bob.json 'and does not open it'
touch teams/crew/inboxes/bob.json
opens "$BIN" --room teams:teams/crew --as bob check --inject >/dev/null
says trace bob.json 'one that was touched is read'

finish
