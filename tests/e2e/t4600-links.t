# once
# Links and carrying: mail between this room and rooms of every kind, once, in its thread, never in circles, never lost.
. "$(dirname "$0")/../lib/tap.sh"

unset CLAUDE_CONFIG_DIR CLAUDE_CODE_TEAM_NAME MB_TEST_ROOT
there() { "$BIN" --room "$scratch/blue" "$@" </dev/null; }
# fresh: a room with alice and bob, and a second one, blue, with carol.
fresh() {
	room alice bob rig/polecats/nux
	rm -rf blue red && mkdir blue
	mr init --name blue ./blue >/dev/null 2>&1
	there register carol >/dev/null 2>&1
}
keys() { jq -r '"\(.from) \(.subject) \(.thread) \(.reply_to)"'; }

# ---- making and removing ----
fresh
exits 0 'there are none' mr link list
exits 0 'as link alone says' mr link
says out 'no links' 'and that is said'
exits 0 'a link to another room' mr link blue ./blue
says out '@blue' 'says how to write there'
exits 0 'is listed' mr link list --json
same "blue maildir:$scratch/blue/.mailroom 0" "$(jq -r '"\(.name) \(.room) \(.waiting)"' out)" 'with its room, absolute'
check 'it is a small file' test -f .mailroom/links/blue
exits 4 'not to the room itself' mr link me "${MAILROOM:-.}"
says err 'this very room' 'which is said'
ln -s .mailroom hidden
exits 4 'nor by another path' mr link me ./hidden
rm hidden
mr link chip chipset:blue/../chip/state --make >/dev/null
exits 4 'nor twice to one folder by another path' mr link chip2 chipset:chip/state
ln -s chip chips
exits 4 'or by a symbolic link' mr link chip2 chipset:chips/state
mr unlink chip >/dev/null
exits 4 'not twice to one room' mr link azure ./blue
says err "already linked, as 'blue'" 'and the name that it has is told'
exits 4 'not under a name that is taken' mr link blue ./blue
exits 4 'not under the name of this room' mr link town ./blue
exits 2 'not under a word of the command itself' mr link name ./blue
exits 4 'not under a bad name' mr link B/lue ./blue
exits 5 'not to a room that is not there' mr link red ./nowhere
exits 4 'an unknown link' mr --as alice send carol@red -m hi
says err "no link to room 'red'" 'is told'
exits 0 'unlink' mr unlink blue
exits 5 'once' mr unlink blue
check 'nothing of it is left' sh -c '! ls .mailroom/links/blue .mailroom/queues/link-blue/settings 2>/dev/null'

# ---- a conversation with a room of our own kind ----
fresh
mr link blue ./blue >/dev/null
exits 5 'a name that is unknown there' mr --as alice send carl@blue -m hi
says err "'carol'" 'is refused with the near ones'
exits 0 'a dry run' mr --as alice send carol@blue -m 'hi' --dry-run
says out 'carol@blue' 'names the recipient, not the queue'
exits 0 'a message' mr --as alice send carol@blue -s 'port' --priority high -m 'which port?' --json
id=$(jq -r .id out)
same 'carol@blue' "$(jq -r '.to[]' out)" 'is to whom it was written'
same "alice port high" "$(there --as carol inbox --json | jq -r '"\(.from) \(.subject) \(.priority)"')" 'arrives at once'
there --as carol reply "$(there --as carol inbox --json | jq -r .id)" -m 8081 >/dev/null 2>&1
exits 0 'carry' mr carry
same 'blue: 0 out, 1 in' "$(cat out)" 'brings the answer'
same "carol@blue Re: port $id $id" "$(mr --as alice inbox --json | keys)" 'as an answer to it, in its thread'
same 'carol@blue:read' "$(mr --as alice why "$id" --json | jq -r 'select(.agent == "carol@blue")|"\(.agent):\(.state)"')" 'why tells where it went'
exits 0 'wait --id' mr --as alice wait --id "$id" --timeout 60s
mr --as alice reply "$(mr --as alice inbox --json | jq -r .id)" -m thanks >/dev/null 2>&1
same "$(there --as carol sent --json | jq -r .id)" "$(there --as carol inbox --json | jq -r 'select(.subject == "Re: port").reply_to')" \
	'an answer to the answer refers to it over there'
same 'blue: 0 out, 0 in' "$(mr carry --once blue)" 'and there is no more'
exits 0 'counts as JSON' mr carry --json
same 'blue 0 0 0' "$(jq -r '"\(.link) \(.out) \(.in) \(.waiting)"' out)" 'are there'
exits 0 'mail to somebody who is to come' mr --as alice send dave@blue --hold -m 'for later'
same 1 "$(there --as dave inbox --json | wc -l | tr -d ' ')" 'waits in a mailbox that was made'
mr --as alice group create both bob carol@blue >/dev/null 2>&1
exits 0 'a group with members in both rooms' mr --as alice send group:both -m 'to all'
same 1 "$(unread bob)" 'reaches the one here'
check 'and the one there' sh -c "'$BIN' --room '$scratch/blue' --as carol search 'to all' </dev/null | grep -q 'to all'"

# ---- names ----
fresh
there register bob >/dev/null 2>&1
mr link blue ./blue --name alice=alice.of.town >/dev/null
exits 0 'a message under a given name' mr --as alice send carol@blue -m hi
same 'alice.of.town' "$(there --as carol inbox --json | jq -r .from)" 'comes from that name'
exits 0 'somebody there has the name of one of us' mr --as bob send carol@blue -m 'from bob'
says err "somebody has that name there" 'and that is said'
says err "mailroom link name blue bob OTHER" 'with what to do'
same 'blue: 0 out, 0 in, 1 waiting' "$(mr carry 2>/dev/null)" 'the mail waits'
exits 4 'and the link is not removed' mr unlink blue
exits 4 'the name of another of us is taken, too' mr link name blue bob alice.of.town
exits 0 'another name' mr link name blue bob bob2
same 'blue: 1 out, 0 in' "$(mr carry)" 'lets it go'
there --as carol send bob2 -m 'who are you?' >/dev/null 2>&1
there --as carol send bob -m 'not for the other bob' >/dev/null 2>&1
mr carry >/dev/null
same 'carol@blue who are you?' "$(mr --as bob inbox --json | jq -r '"\(.from) \(.subject)"')" 'and answers reach him only'
exits 0 'somebody can be made known before he writes' mr link name blue rig/polecats/nux
there --as carol send rig/polecats/nux -m 'first' >/dev/null 2>&1
mr carry >/dev/null
same 'first' "$(mr --as rig/polecats/nux inbox --json | jq -r .subject)" 'so that they can write first'
exits 4 'nobody writes to a name that stands for one of us' mr --as alice send bob2@blue -m hi
says err "write to 'bob'" 'but to him'

# ---- one whose mail waits takes nobody's turn ----
fresh
there register bob >/dev/null 2>&1
mr link blue ./blue >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do mr --as bob send carol@blue -m "$i" >/dev/null 2>&1; done
exits 0 'mail behind that of one whose name is taken' mr --as alice send carol@blue -m 'not of bob'
same '' "$(grep -e bob -e stored err)" 'arrives, and its sender hears nothing of the others'
same 'not of bob' "$(there --as carol inbox --json | jq -r .subject)" 'it is there'
exits 0 'carrying' mr carry
same 'blue: 0 out, 0 in, 18 waiting' "$(cat out)" 'counts all that wait'
same 1 "$(grep -c 'has that name there' err)" 'and says why once'
mr link name blue bob bob2 >/dev/null
mr carry >/dev/null 2>&1
same "$(seq 1 18)" "$(there --as carol inbox --json | jq -r 'select(.from == "bob2") | "\(.id) \(.subject)"' | sort | cut -d' ' -f2)" \
	'then all go, in their order'

# ---- what cannot be delivered ----
fresh
mr link blue ./blue >/dev/null
mv blue away
exits 5 'a room that is away is no place to write to' mr --as alice send carol@blue -m hi
says err 'unlink blue' 'and the hint is about the link, not about a new room'
mv away blue
mr --as alice send carol@blue -m 'first' >/dev/null 2>&1
chmod 500 blue/.mailroom/agents/carol blue/.mailroom/agents/carol/new
if [ "$(id -u)" = 0 ]; then skip 'a mailbox that cannot be written' 'root can'; else
	exits 0 'a mailbox that cannot be written' mr --as alice send carol@blue -m second
	says err 'mailroom carry blue' 'lets it wait, and says so'
fi
chmod 700 blue/.mailroom/agents/carol blue/.mailroom/agents/carol/new
mr carry >/dev/null 2>&1
there --as carol send alice -m 'for alice' >/dev/null 2>&1
mr prune alice --force >/dev/null 2>&1
mr carry >/dev/null 2>&1
same 'for alice' "$(mr dead list --json | jq -r 'select(.from == "carol@blue").subject')" 'mail for one who is gone is a dead letter here'
same 'Failed: for alice' "$(there --as carol inbox --json | jq -r 'select(.type == "bounce").subject')" 'and its sender is told over there'
same 0 "$(mr carry --json | jq '.in + .out + .failed')" 'once'

# ---- circles ----
fresh
mr link blue ./blue >/dev/null
there link town . >/dev/null 2>&1
mr link name blue alice >/dev/null
exits 0 'mail that came through here already' there --as carol send alice -m 'round' --header 'X-Mailroom-Carried: blue/town'
mr carry >out 2>err
says err 'in circles' 'does not go round again'
same 0 "$(unread alice)" 'nor arrive'
same '' "$(mr carry 2>&1 >/dev/null)" 'and is said once'

# ---- each kind of room ----
mkdir -p teams/blue/inboxes state root yard/carol/.mailbox/inbox
fresh
printf '{\n  "name": "blue",\n  "members": [ { "name": "carol", "agentId": "carol@blue" } ]\n}\n' >teams/blue/config.json
exits 0 'a link to a team' mr link team "teams:$scratch/teams/blue"
exits 0 'to chipset' mr link chip chipset:state
exits 0 'to handoff' mr link hand handoff:root
exits 0 'to a workspace' mr link work workspace:yard
mr --room chipset:state register carol >/dev/null 2>&1
mr --room handoff:root register carol >/dev/null 2>&1
# talk LINK SPEC: nux writes to carol there, carol answers, nux answers that.
talk() {
	exits 0 "$1: a message" mr --as rig/polecats/nux send "carol@$1" --hold -s "port of $1" --priority urgent -m 'which port?' --json
	id=$(jq -r .id out)
	exits 0 "$1: is in her inbox" mr --room "$2" --as carol inbox --json
	same 1 "$(wc -l <out | tr -d ' ')" "$1: once"
	proxy=$(jq -r .from out) mail=$(jq -r .id out)
	mr --room "$2" --as carol read "$mail" >text 2>/dev/null
	check "$1: its text and urgency are there" sh -c 'grep -q "which port?" text && grep -qi urgent text'
	exits 0 "$1: she answers" mr --room "$2" --as carol reply "$mail" -m '8081'
	exits 0 "$1: carry" mr carry "$1"
	same "$1: 0 out, 1 in" "$(cat out)" "$1: brings it"
	same "carol@$1 $id $id" "$(mr --as rig/polecats/nux inbox --json | jq -r '"\(.from) \(.thread) \(.reply_to)"')" \
		"$1: as an answer, in the thread"
	back=$(mr --as rig/polecats/nux inbox --json | jq -r .id)
	exits 0 "$1: an answer to the answer" mr --as rig/polecats/nux reply "$back" -m thanks
	same 'thanks' "$(mr --room "$2" --as carol search thanks --json | jq -rs 'map(select(.from == "'"$proxy"'")) | length | if . == 1 then "thanks" else . end')" \
		"$1: arrives once"
	mr --as rig/polecats/nux drain >/dev/null 2>&1
	same "$1: 0 out, 0 in" "$(mr carry "$1" 2>&1)" "$1: and that is all"
	# a power cut can bring a message back into the queue that it has left
	left=$(find ".mailroom/queues/link-$1/done" -type f -name "*$id*") ghost=.mailroom/queues/link-$1/ready/0/00000001
	there=$(mr --room "$2" --as carol search 'which port' --json | wc -l)
	mkdir -p "$ghost" && cp -p "$left" "$ghost/$(basename "$left" | sed 's/,A=1//')"
	mr carry "$1" >/dev/null 2>&1
	same "$there " "$(mr --room "$2" --as carol search 'which port' --json | wc -l) $(ls "$ghost" 2>/dev/null)" "$1: what was carried is not carried again"
}
talk team "teams:$scratch/teams/blue"
talk chip "chipset:$scratch/state"
talk hand "handoff:$scratch/root"
talk work "workspace:$scratch/yard"
same 'rig-polecats-nux' "$(mr link list --json | jq -r 'select(.name == "team").names[].foreign')" 'a name with slashes is plain in a team'

# A command of a team that travels is text about it.
exits 0 'a control message of a team' mr --as alice send carol@team -m '{"type":"shutdown_request","from":"lead","requestId":"1"}'
check 'is carried as prose' sh -c "! jq -r '.[].text' teams/blue/inboxes/carol.json | grep -q '^{\"type\"'"

# ---- from one linked room to another ----
exits 0 'somebody of one linked room is made known in another' mr link name chip carol@team
same 'carol@team is known in chip as carol-at-team' "$(cat out)" 'under a name that can be written'
mr --room chipset:state --as carol send carol-at-team -s across -m 'from chip to team' >/dev/null 2>&1
exits 0 'carry' mr carry
check 'takes it across' grep -q 'from chip to team' teams/blue/inboxes/carol.json
same 'carol-at-chip' "$(jq -r '.[] | select(.text | test("from chip to team")).from' teams/blue/inboxes/carol.json)" 'with a return address'
mr --room "teams:$scratch/teams/blue" --as carol send carol-at-chip -s 'Re: across' -m 'and back' >/dev/null 2>&1
mr carry >/dev/null 2>&1
same 1 "$(mr --room chipset:state --as carol inbox --json | jq -r 'select(.from == "carol-at-team").subject' | grep -c across)" 'and the answer comes back'

# ---- a message cannot draw the mail of another elsewhere ----
mkdir -p yard/dora/.mailbox/inbox yard/bob/.mailbox/inbox elsewhere/dora/.mailbox/inbox
exits 0 'mail that has to wait' mr --as bob send dora@work -m 'for the real dora'
rm -r yard/bob
printf -- '---\nREQUEST_ID: 77\nMESSAGE_TYPE: NEW\nREPLY_INBOX_PATH: %s/elsewhere/dora/.mailbox/inbox/77\n---\n\nhi\n' "$scratch" \
	>yard/rig-polecats-nux/.mailbox/inbox/77
touch -d '5 seconds ago' yard/rig-polecats-nux/.mailbox/inbox/77
mr carry work >/dev/null 2>&1
same 0 "$(ls elsewhere/dora/.mailbox/inbox | wc -l | tr -d ' ')" 'a reply path that ends in her name leads no mail away'
same 1 "$(grep -l 'for the real dora' yard/dora/.mailbox/inbox/* | wc -l | tr -d ' ')" 'she has it'
rm -rf yard/dora elsewhere
mr --as rig/polecats/nux drain >/dev/null 2>&1

# ---- names with a blank ----
mr --room handoff:root register 'Old Bob' >/dev/null 2>&1
exits 0 'a name with a blank in it' mr --as alice send 'Old Bob@hand' -m 'as it is spoken'
same 'as it is spoken' "$(mr --room handoff:root --as 'Old Bob' inbox --json | jq -r .subject)" 'is found in the other room'
exits 4 'a name that nobody has there' mr --as alice send 'New Bob@hand' -m hi

# ---- a disk over there that is full ----
if [ "${ROOM-}" != postgres ] && MAILROOM_FAULT= "$DEVBIN" --version >/dev/null 2>&1; then
	n=150
	while [ $n -le 200 ]; do
		MAILROOM_FAULT=errno:ENOSPC:$n "$DEVBIN" --as alice send carol@team -m "full $n" </dev/null >/dev/null 2>&1
		n=$((n + 1))
	done
	mr carry team >/dev/null 2>&1
	same 0 "$(find teams/blue/inboxes -name '.mailroom-carry-*' | wc -l | tr -d ' ')" 'deliveries that failed leave nothing behind'
	same '' "$(jq -r '.[].text' teams/blue/inboxes/carol.json | grep '^full' | sort | uniq -d)" 'and none is doubled'
	mr --room "teams:$scratch/teams/blue" --as carol mark read --all >/dev/null 2>&1
	mr carry team >/dev/null 2>&1
	mr --as alice drain >/dev/null 2>&1
	n=10
	while [ $n -le 60 ]; do
		printf '[{"from":"eve","text":"hi","timestamp":"2026-07-01T08:15:30.250Z","read":false}]' >teams/blue/inboxes/eve.json
		MAILROOM_FAULT=errno:ENOSPC:$n "$DEVBIN" --room "teams:$scratch/teams/blue" --as eve mark read --all --json </dev/null >out 2>err
		told=$(jq -r '.changed // 0' out) done=$(jq '[.[] | select(.read)] | length' teams/blue/inboxes/eve.json)
		[ "${told:-0}" -le "$done" ] || echo "call $n: $told, not $done"
		n=$((n + 2))
	done >wrong
	rm -f teams/blue/inboxes/eve.json
	same '' "$(cat wrong)" 'a mark that failed is not counted'
else
	skip 'a full disk' 'no build with fault points'
fi

# ---- what vanishes unread ----
id=$(send alice carol@team 'never read')
rm -rf teams/blue
exits 5 'a team whose folder was deleted' mr carry team
says out 'vanished unread' 'is told'
exits 0 'what nobody read there' mr --as alice inbox --json
same 'bounce' "$(jq -r 'select(.reply_to == "'"$id"'").type' out)" 'comes back to its sender'
check 'with its text' sh -c "'$BIN' --as alice drain </dev/null | grep -q 'never read'"
mr carry team >/dev/null 2>&1
same 0 "$(unread alice)" 'once'
rm -rf state/mail/carol
n=$(unread alice)
exits 0 'unlink leaves the other room as it is' mr unlink chip --force
check 'with its mailboxes' test -d state/mail/alice -o -d state/mail/carol-at-team

# ---- a place that is gone is not made again ----
fresh
for place in "teams:$scratch/far/blue" "chipset:$scratch/far" "handoff:$scratch/far"; do
	kind=${place%%:*}
	rm -rf far
	exits 5 "$kind: no link to what is not there" mr link far "$place"
	says err '[-]-make' "$kind: but with --make"
	check "$kind: and nothing is made" test ! -e far
	exits 4 "$kind: nor with --make for a link that is refused" mr link town "$place" --make
	check "$kind: which leaves nothing" test ! -e far
	exits 0 "$kind: --make" mr link far "$place" --make
	check "$kind: makes it" test -d "${place#*:}"
	mr --room "$place" register bob >/dev/null 2>&1
	mr --room "$place" register carol >/dev/null 2>&1
	[ $kind != chipset ] || mkdir -p far/mail/bob # nobody registers there
	exits 0 "$kind: mail that has to wait" mr --as bob send carol@far -m waits
	says err 'has that name there' "$kind: for its name is taken"
	mv far away
	exits 5 "$kind: carrying to a place that is gone" mr carry far
	says err "link 'far'" "$kind: says so"
	says err 'unlink far' "$kind: and what to do"
	exits 5 "$kind: nor is anything sent there" mr --as alice send carol@far -m hi
	check "$kind: and the place is not made" test ! -e far
	same 1 "$(mr link list --json | jq .waiting)" "$kind: the mail waits"
	mv away far
	mr link name far bob bob2 >/dev/null 2>&1
	same 'far: 1 out, 0 in' "$(mr carry far 2>&1)" "$kind: until it is back"
	mr unlink far >/dev/null
done

# ---- staying ----
fresh
mr link blue ./blue >/dev/null
mr link name blue alice >/dev/null
"$BIN" carry --watch >watched 2>&1 </dev/null &
watcher=$!
there --as carol send alice -m 'while it watches' >/dev/null 2>&1
came() { if [ "${ROOM-}" = postgres ]; then sql "SELECT count(*) FROM town$towns.inbox"; else ls .mailroom/agents/alice/new | wc -l | tr -d ' '; fi; } # inbox and wait would carry, too
tries=0; until [ "$(came)" -gt 0 ] || [ $((tries += 1)) -gt 200 ]; do sleep 0.05; done
same 1 "$(came)" 'carry --watch brings what comes'
kill -TERM $watcher
wait $watcher
same 0 $? 'and ends when it is told to'
says watched 'blue: 0 out, 1 in' 'having said what it did'
exits 2 '--once and --watch' mr carry --once --watch
exits 5 'an unknown link' mr carry nowhere
same '' "$(cat out)" 'and nothing is counted of it'
exits 5 'nor beside another' mr carry blue nowhere
same 1 "$(grep -c '^mailroom: .*nowhere' err)" 'which is said once'
# ---- one whose mail waits does not make each later send look through all that was carried ----
fresh
mr link blue ./blue >/dev/null
for n in 1 2 3; do mr --as alice send carol@blue -m "number $n" >/dev/null 2>&1; done
there register bob >/dev/null 2>&1
mr --as bob send carol@blue -m 'waits for a name' >/dev/null 2>&1
same 1 "$(mr link list --json | jq .waiting)" 'one waits'
MAILROOM_DEBUG=1 "$BIN" --as alice send carol@blue -m 'number 4' >out 2>err </dev/null
says err "claim 'queue:link-blue'.*: ok" 'a send carries'
silent_about err "each_claim 'queue:link-blue' states (8|16|24)" 'and looks at no work that is done'
same 4 "$(there --as carol inbox --json | wc -l | tr -d ' ')" 'its mail arrives'

# ---- one of several rooms is gone, with mail that was not read, and more waits for it ----
fresh
mr link blue ./blue >/dev/null
mr link team "teams:$scratch/teams/red" --make >/dev/null
for name in bob carol; do mr --room "teams:$scratch/teams/red" register $name >/dev/null 2>&1; done
mr --as alice send carol@team -m 'not read' >/dev/null 2>&1
mr --as bob send carol@team -m 'waits for a name' >/dev/null 2>&1
rm -rf teams
exits 5 'carrying with one room gone' mr carry
same 1 "$(grep -c "^mailroom: link 'team'" err)" 'it is said once'
says out '^team: 0 out, 0 in, 1 waiting, 1 vanished unread$' 'with what waits for it'

# ---- a message that was purged here and vanished there ----
id=$(mr --as alice send carol@blue -s 'the plan' -m 'soon gone' 2>/dev/null)
check 'purged' mr --as alice purge "$id"
rm -rf blue/.mailroom/agents/carol
mr carry >/dev/null 2>&1
mr --as alice inbox --json | jq -r 'select(.reply_to=="'"$id"'")|"\(.subject)"' >subjects
same "Failed: your message $id" "$(cat subjects)" 'its notice names it'
mr --as alice drain --json | jq -r 'select(.reply_to=="'"$id"'").body' >body
silent_about body '1970|^Subject: $' 'and says nothing that is not known'
says body '^Sent: 20' 'but when it was sent'

# ---- the other room is away: it is there and cannot be reached (t5090: when it is in PostgreSQL) ----
[ "${ROOM-}" != postgres ] || finish
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$scratch"; cp "$BIN" "$scratch/mailroom" && chmod 755 "$scratch/mailroom"
	mkdir -p laptop/fleet laptop/home && chown -R 65534:65534 laptop
	nobody() { (cd "$scratch/laptop" && HOME=$scratch/laptop/home XDG_STATE_HOME=$scratch/laptop/home XDG_CONFIG_HOME=$scratch/laptop/home setpriv --reuid 65534 --regid 65534 --clear-groups "$scratch/mailroom" "$@" </dev/null); }
	{ nobody init --name laptop && nobody register alice && nobody init --name fleet ./fleet; } >/dev/null 2>&1
	for a in carol dan; do nobody --room ./fleet register $a >/dev/null 2>&1; done
	{ nobody link fleet ./fleet && nobody link name fleet alice; } >/dev/null 2>&1
	chmod 000 laptop/fleet/.mailroom
	exits 0 'away, mail for a name that was seen there is stored' nobody --as alice send carol@fleet -m 'first'
	says err 'carry fleet.* delivers it' 'and it is said that it waits'
	exits 0 'in any spelling' nobody --as alice send Dan@fleet -m 'second'
	exits 1 'a name that was never seen there' nobody --as alice send eve@fleet -m hi
	says err "'eve' was not" 'is refused with the reason'
	same 2 "$(nobody link list --json | jq .waiting)" 'what waits is counted'
	nobody doctor >out 2>&1
	says out '2 messages to fleet wait to be carried, the oldest for' 'and doctor says since when'
	silent_about out 'counts for nothing' 'and does not take the names of a link that is away for leftovers'
	chmod 700 laptop/fleet/.mailroom
	nobody --room ./fleet prune dan >/dev/null 2>&1
	exits 0 'back again' nobody carry
	same first "$(nobody --room ./fleet --as carol drain --json | jq -r .body)" 'it arrives, once'
	nobody carry >/dev/null 2>&1
	same '' "$(nobody --room ./fleet --as carol drain --json)" 'and not again'
	same 'Failed: second' "$(nobody --as alice inbox --json | jq -r 'select(.subject|startswith("Failed"))|.subject')" 'what nobody takes any more comes back to its sender'
	nobody --room ./fleet register frank >/dev/null 2>&1
	exits 0 'a name that came since' nobody --as alice send frank@fleet -m hi
	check 'is known from then on' grep -q '^Agent: frank$' laptop/.mailroom/records/known/_/fleet
	check 'until the link goes' sh -c 'cd laptop && chown -R 0:0 . && HOME=$PWD/home XDG_STATE_HOME=$PWD/home XDG_CONFIG_HOME=$PWD/home "$0" --room . unlink fleet && ! test -e .mailroom/records/known/_/fleet' "$BIN"
else
	skip 'the other room is away' 'needs root and setpriv'
fi

finish
