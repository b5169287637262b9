# once
# doctor: every kind of damage is made, named, explained, and repaired or kept; nothing is thrown away, nobody who lives is disturbed.
. "$(dirname "$0")/../lib/tap.sh"

later() { days=$1; shift; MAILROOM_TEST_CLOCK_OFFSET_MS=$((days * 86400000)) "$DEVBIN" "$@" </dev/null; }
# found CODE: "severity path fixed" of each finding of that code in out
found() { jq -r --arg code "$1" 'select(.code==$code and .severity!="fine")|"\(.severity) \(.path) \(.fixed)"' out | sort | tr '\n' ';'; }
explained() { check "$1" jq -es 'map(select(.severity!="fine" and .code!="storage"))|length > 0 and all(.[]; (.what|length > 0) and (.fix|length > 0) and (.code=="members" or (.why|length > 0)))' saved; }
attic() { ls "$1"/attic/20* 2>/dev/null | tr '\n' ' '; }
boxes=.mailroom/agents

# ---- a healthy room, and the form of a finding ----
room alice bob carol
exits 0 'a healthy room' mr doctor --json
same '' "$(jq -r 'select(.severity!="fine" and .code!="storage")|.code' out)" 'has nothing to tell'
cp out saved; check 'each finding has the same seven keys' jq -es 'length > 5 and all(.[]; keys==["code","fix","fixed","path","severity","what","why"])' saved
exits 0 'as text' mr doctor
says out '^fine +modes: ' 'a line each'

# ---- what killed commands left ----
umask 077
echo half >$boxes/bob/tmp/mr-1.tmp; echo half >$boxes/bob/tmp/mr-2.tmp
exits 0 'a fresh temporary file' mr doctor --json
same '' "$(found leftovers)" 'may be in use'
touch -d '+3 days' $boxes/bob/tmp/mr-2.tmp
later 3 doctor --json >out 2>err; cp out saved
same 'note agents/bob/tmp/mr-1.tmp false;' "$(found leftovers)" 'an old one is a leftover, one that was just written to is not'
explained 'and explained'
later 3 doctor --fix --json >out 2>err
same 'note agents/bob/tmp/mr-1.tmp true;' "$(found leftovers)" '--fix takes it'
check 'it is kept' grep -qx half .mailroom/attic/20*/agents%2Fbob%2Ftmp%2Fmr-1.tmp
says .mailroom/attic/log 'leftovers agents/bob/tmp/mr-1.tmp -> attic/.*: .*temporary file, 3d old .*killed' 'with what and why in the log'
check 'the other is where it was' test -f $boxes/bob/tmp/mr-2.tmp; rm $boxes/bob/tmp/mr-2.tmp
echo half >.mailroom/spool/01k9w3b7zq8m4c2v6t1x5n0prs.mr; later 3 doctor --json >out 2>err; rm .mailroom/spool/*
same 'note spool/01k9w3b7zq8m4c2v6t1x5n0prs.mr false;' "$(found leftovers)" 'so is the message of a delivery that never began'
mr doctor >out; says out 'attic.*1 so far' 'and doctor reminds of the attic'
echo half >$boxes/bob/tmp/mr-1.tmp; later 3 doctor --fix >/dev/null 2>&1
same 2 "$(attic .mailroom | wc -w)" 'a second of that name gets another there'

# ---- torn and foreign files ----
room alice bob
a=$(send alice bob one); file=$(ls $boxes/bob/new)
: >$boxes/bob/new/1762900000.empty
head -c 300 /dev/zero >$boxes/bob/new/1762900001.zeroes
head -c 30 $boxes/bob/new/$file >cut; rm -f $boxes/bob/new/$file; cp cut $boxes/bob/new/$file # .Sent has the same file
mkfifo $boxes/bob/new/1762900002.pipe; mkdir $boxes/alice/cur/folder; mkdir .mailroom/stranger; chmod 755 .mailroom/stranger
ln -s /etc/passwd $boxes/alice/new/1762900003.link
exits 1 'torn and foreign files' mr doctor --json; cp out saved
same "problem agents/bob/new/1762900000.empty false;problem agents/bob/new/1762900001.zeroes false;problem agents/bob/new/$file false;" "$(found messages)" 'empty, zeroes, cut'
same 'note stranger false;problem agents/alice/cur/folder false;problem agents/bob/new/1762900002.pipe false;' "$(found foreign)" 'what mailroom does not make'
same 'problem agents/alice/new/1762900003.link false;' "$(found symlinks)" 'and a link'
explained 'all explained'
exits 1 'young ones' mr doctor --fix --json
same '' "$(found messages | grep true)" 'are left alone'
later 3 doctor --fix --json >out 2>err
same "problem agents/bob/new/1762900000.empty true;problem agents/bob/new/1762900001.zeroes true;problem agents/bob/new/$file false;" "$(found messages)" 'old ones that hold nothing go to the attic, what can be read stays'
same 'agents%2Fbob%2Fnew%2F1762900000.empty agents%2Fbob%2Fnew%2F1762900001.zeroes ' "$(attic .mailroom)" 'and nothing else does'
same 755 "$(stat -c %a .mailroom/stranger)" 'what is foreign is not touched'

# ---- modes, owners, flags ----
room alice bob
chmod 755 $boxes/bob; chmod 644 $boxes/alice/agent; chmod 000 $boxes/bob/new
exits 1 'modes' mr doctor --json; cp out saved
same 'problem agents/alice/agent false;problem agents/bob false;problem agents/bob/new false;' "$(found modes)" 'too open and too closed'
explained 'are explained'
mr doctor --fix --json >out 2>&1; mr doctor --json >out
[ "$(id -u)" != 0 ] || same '' "$(found modes)" '--fix puts them right'
same '700 600' "$(stat -c %a $boxes/bob $boxes/alice/agent | tr '\n' ' ' | sed 's/ $//')" 'open ones are closed'
chmod 700 $boxes/bob/new
if chown 12345 $boxes/alice/lives/1 2>/dev/null; then
	exits 1 'a file of another user' mr doctor --fix --json
	same 'problem agents/alice/lives/1 false;' "$(found owners)" 'is told, and left to him who may'
	chown "$(id -u)" $boxes/alice/lives/1
else skip 'a file of another user' 'not root'; fi
printf 'Subject: x\n\nx\n' >"$boxes/bob/cur/1762900000.M1.host:2,Sx7"
exits 0 'unknown flags' mr doctor --json; cp out saved
same 'note agents/bob/cur/1762900000.M1.host:2,Sx7 false;' "$(found flags)" 'are a note'
says out "'x7'" 'that names them'; explained 'and is explained'
printf '23 urgent\n' >$boxes/bob/dovecot-keywords; mr doctor --fix --json >out; says out "unknown flags: '7'" 'a keyword of another program is one that is known'
check 'they are kept' test -f "$boxes/bob/cur/1762900000.M1.host:2,Sx7"
i=0; while [ $i -lt 25 ]; do ln -s /etc/passwd $boxes/bob/new/link$i; i=$((i + 1)); done
mr doctor --json >out; same 21 "$(grep -c '"code":"symlinks"' out)" 'of one kind at most 20 are told one by one'
says out '"and 5 more of this kind"' 'the rest is counted'

# ---- hands of the dead ----
room alice bob carol dave
a=$(send alice bob one)
n=1; while [ -z "$(ls $boxes/bob/held/1 2>/dev/null)" ] && [ $n -lt 120 ]; do
	MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as bob read "$a" </dev/null >/dev/null 2>&1; n=$((n + 1)); done
exits 0 'mail in the hands of a killed reader' mr doctor --json; cp out saved
same 'note bob false;' "$(found claims)" 'is a note'; explained 'that explains it'
exits 0 '--fix' mr doctor --fix --json
same 'note bob true;' "$(found claims)" 'puts it back'
check 'unread' test -n "$(ls $boxes/bob/new)"
mr --as alice queue create jobs >/dev/null 2>&1; send alice queue:jobs job >/dev/null; mr --as bob recv queue:jobs --json >claim 2>/dev/null
mr doctor --fix --json >out; same '' "$(found claims)" 'a claim of somebody who lives is none of the dead'
check 'and stays' test -n "$(ls .mailroom/queues/jobs/claimed)"
sed -i 's/^Process: [0-9]*/Process: 4000000/; s/^Boot-Deadline: .*/Boot-Deadline: 1/' .mailroom/holds/*
exits 0 'a claim whose holder was killed' mr doctor --json
same 'note jobs false;' "$(found claims)" 'is'
exits 0 '--fix' mr doctor --fix --json
same 'note jobs true;1' "$(found claims)$(mr queue show jobs --json | jq .ready)" 'makes it ready again'
# killed when it had said who it is and had no mail yet
token() { # token AGENT: leaves one; its mail is where it was
	n=1; while [ -z "$(ls .mailroom/holds)" ] && [ $n -lt 90 ]; do
		MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as $1 drain </dev/null >/dev/null 2>&1; n=$((n + 1)); done
	same 1: "$(ls .mailroom/holds | wc -l):$(ls $boxes/$1/held/1 2>/dev/null)" "a command of $1 was killed before it held anything"
}
rm -f .mailroom/holds/*; token bob
exits 0 'its token' mr doctor --json; cp out saved
same "note holds/$(ls .mailroom/holds) false;" "$(found holds)" 'is a note at once'; explained 'that explains it'
mr --as carol check --inject >/dev/null 2>&1; same 1 "$(ls .mailroom/holds | wc -l)" 'a hook of another agent leaves it'
mr --as bob check --inject >/dev/null 2>&1; same 0 "$(ls .mailroom/holds | wc -l)" 'one of its own removes it'
token bob; left=$(ls .mailroom/holds); mr doctor --fix --json >out; same 'true' "$(found holds | sed 's/.* //; s/;//')" 'and so does doctor --fix'
same 0:1 "$(ls .mailroom/holds | wc -l):$(ls .mailroom/attic/20* | grep -c "^holds%2F$left")" 'which keeps it'
mr --as bob recv --json >claim 2>/dev/null; mr doctor --fix --json >out
same '' "$(found holds)" 'the token of a lease stays'; mr --as bob release "$(jq -r .token claim)" >/dev/null 2>&1
n=60; while ! ls .mailroom/spool | grep -qv '[.]mr$' && [ $n -lt 150 ]; do
	rm -f .mailroom/spool/*.mr; MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice send bob carol dave -m 'to all' </dev/null >/dev/null 2>&1; n=$((n + 1)); done
exits 0 'a delivery whose sender was killed' mr doctor --json; cp out saved
says saved '"note","code":"spool".*died before all 3 recipients' 'is a note'; explained 'that explains it'
exits 0 '--fix' mr doctor --fix --json
says out '"code":"spool".*"fixed":true' 'completes it'
same 1 "$(unread carol)" 'for each recipient, once'

# ---- locks and leftovers of other programs' rooms ----
t=$HOME/.claude/teams/blue; mkdir -p "$t/inboxes"; echo '{"name":"blue","members":[{"name":"bob"}]}' >"$t/config.json"; echo '[]' >"$t/inboxes/bob.json"
blue() { "$BIN" --room teams:blue "$@" </dev/null; }
mkdir "$t/inboxes/bob.json.lock"
blue doctor --fix --json >out; same '' "$(found locks)" 'a lock that is renewed is held'; check 'and stays' test -d "$t/inboxes/bob.json.lock"
touch -d '1 hour ago' "$t/inboxes/bob.json.lock"
exits 0 'one that is not' blue doctor --json
same 'note bob.json.lock false;' "$(found locks)" 'is a dead one'
blue doctor --fix --json >out; same 'note bob.json.lock true;' "$(found locks)" '--fix removes it'; check 'really' test ! -e "$t/inboxes/bob.json.lock"
echo '[' >"$t/inboxes/bob.json.tmp.aa"; echo '[]' >"$t/inboxes/.mailroom-carry-bb.tmp"; : >"$t/inboxes/.mailroom-carry-cc.tmp"
blue doctor --fix --json >out; same '' "$(found leftovers)" 'a writer may be writing them'
later 3 --room teams:blue doctor --fix --json >out; cp out saved
same 'note .mailroom-carry-bb.tmp false;note .mailroom-carry-cc.tmp true;note bob.json.tmp.aa true;' "$(found leftovers)" 'later they are leftovers; what a carrier may ask for stays'
explained 'explained'
later 29 --room teams:blue doctor --fix --json >out; same 'note .mailroom-carry-bb.tmp false;' "$(found leftovers)" 'for a month'
later 31 --room teams:blue doctor --fix --json >out; same 'note .mailroom-carry-bb.tmp true;' "$(found leftovers)" 'then it is put aside'
says out 'mailroom-void.*a week' 'which is said'; same '.mailroom-void-bb.tmp' "$(ls -A "$t/inboxes" | grep mailroom)" 'under the name that says: not delivered'
blue doctor --json >out; same '' "$(found leftovers)" 'as long as that may be asked for it is no leftover'
same '.mailroom-carry-cc.tmp bob.json.tmp.aa' "$(ls -A "$XDG_STATE_HOME"/mailroom/attic/20* | tr '\n' ' ' | sed 's/ $//')" 'they are in the attic of the state folder'
same 'bob.json' "$(ls "$t/inboxes")" 'and nothing of ours is left in the team'
h=$scratch/boxes; "$BIN" --room "handoff:$h" register eve >out 2>err </dev/null; : >"$h/.registry.json.0a.tmp"
later 3 --room "handoff:$h" doctor --fix --json >out; same 'note .registry.json.0a.tmp true;' "$(found leftovers)" 'of an export into mailboxes of the skill'
c=$scratch/chips; mkdir -p "$c/mail/eve"; : >"$c/mail/eve/.mailroom-mark-1.tmp"; : >"$c/mail/eve/.lead.tmp"
later 3 --room "chipset:$c" doctor --fix --json >out; same 'note mail/eve/.mailroom-mark-1.tmp true;' "$(found leftovers)" 'of a mark in a chipset, and only ours'
w=$scratch/yard; mkdir -p "$w/lead/.mailbox/inbox" "$w/lead/.mailbox/scratch"; : >"$w/lead/.mailbox/inbox/.mailroom-0a.tmp"
later 3 --room "workspace:$w/lead" doctor --fix --json >out; same 'note lead/.mailbox/inbox/.mailroom-0a.tmp true;' "$(found leftovers)" 'of a message to a workspace'

# ---- links ----
room alice
exits 0 'a link' mr --as alice link blue teams:blue
mv "$t" away; exits 1 'whose room is gone' mr doctor --fix --json; cp out saved
same 'problem blue false;' "$(found links)" 'is told, and kept'; explained 'with what to do'; mv away "$t"
mkdir -p .mailroom/records/carrying/ghost; echo 'To: x@ghost' >.mailroom/records/carrying/ghost/a; mkdir -p .mailroom/records/carrying/blue; echo 'To: x@blue' >.mailroom/records/carrying/blue/a
mr doctor --fix --json >out; same '' "$(found links)" 'records that are young may be in use'
later 3 doctor --fix --json >out; same 'note records/carrying/ghost true;' "$(found links)" 'old ones without their link go to the attic'
check 'those of a link that is there stay' test -f .mailroom/records/carrying/blue/a

# ---- the clock ----
room alice bob
MAILROOM_TEST_CLOCK_OFFSET_MS=172800000 "$DEVBIN" --as alice send bob -m 'from the day after tomorrow' </dev/null >/dev/null 2>&1
touch -d '+2 days' .mailroom/room
exits 1 'times in the future' mr doctor --fix --json; cp out saved
same 3 "$(found clock | tr ';' '\n' | grep -c 'problem .* false')" 'of a message, its copy and a file'; explained 'are explained'
same 1 "$(unread bob)" 'and kept'; touch .mailroom/room
later -400 doctor >out 2>err; says out 'PROBLEM +clock: this machine.s clock is .* behind the creation of this room' 'a clock that is behind'

# ---- nearly full disks ----
cat >full.sh <<'FULL'
mount -t tmpfs -o size=$1,nr_inodes=$2 none full && cd full && "$BIN" init >/dev/null 2>&1 || exit 99
i=0; while [ $i -lt "$3" ]; do touch x$i 2>/dev/null || break; i=$((i + 1)); done
exec "$BIN" doctor --json
FULL
mkdir full
if unshare -m sh full.sh 256m 2000 0 >out 2>err; then
	same '' "$(found space)" 'a disk with space'
	exits 1 'one with 32 MiB' unshare -m sh full.sh 32m 2000 0
	says out '"code":"space".*MiB.*64 MiB or 1 %' 'is nearly full, and the bound is said'
	exits 1 'one without inodes' unshare -m sh full.sh 256m 400 1000
	says out '"code":"space".*inodes are free' 'too'
else skip 'nearly full disks' 'nothing can be mounted here'; fi

# ---- sessions and hooks ----
room alice
cp "$BIN" mailroom
CLAUDE_CODE_SESSION_ID=s1 ./mailroom register eve </dev/null >/dev/null 2>&1
exits 0 'an agent in a session of a harness' ./mailroom doctor --json; cp out saved
same 'note eve false;' "$(found hooks)" 'without our hooks'; explained 'is told'
./mailroom setup claude-code --apply >/dev/null 2>&1
./mailroom doctor --json >out; same '' "$(found hooks)" 'with them it is well'
echo '{"enabledPlugins":{"mailroom@there":true}}' >"$HOME/.claude/settings.json"
./mailroom doctor --json >out; same '' "$(found hooks)" 'and with the plugin'
s=$XDG_STATE_HOME/mailroom/sessions
for n in old living; do sed "s,^Room: .*,Room: maildir:$scratch/removed/.mailroom," "$s/claude-code-s1" >"$s/claude-code-$n"; done
sed -i 's/^Process: [0-9]*/Process: 4000000/' "$s/claude-code-old"; grep -q ^Process: "$s/claude-code-living" || printf 'Process: %s\n' "$(sed -n 's/^Process: [0-9]*/'$$'/p' "$s/claude-code-old")" >>"$s/claude-code-living"
later 20 doctor --fix --json >out; same '' "$(found sessions)" 'sessions of this month may be resumed'
later 31 doctor --json >out; same 'note claude-code-old false;' "$(found sessions)" 'later, without process and room, they are over; one that lives is not'
later 31 doctor --fix --json >out; same 'note claude-code-old true;' "$(found sessions)" '--fix takes it'
same 'claude-code-living claude-code-s1 ' "$(ls "$s" | grep -v ^terminal- | tr '\n' ' ')" 'and no other'
check 'it is kept' test -f "$(ls "$XDG_STATE_HOME"/mailroom/attic/20*/claude-code-old)"

# ---- nobody who lives is disturbed, whatever the clock says ----
room alice bob carol dave
for i in 1 2 3; do send alice bob "m$i"; done >/dev/null
MAILROOM_FAULT=delay:6000 "$DEVBIN" --as bob drain --json </dev/null >drained 2>/dev/null & one=$!
MAILROOM_FAULT=delay:6000 "$DEVBIN" --as alice send bob carol dave -m 'to three' </dev/null >sent 2>/dev/null & two=$!
( i=0; while [ $i -lt 12 ]; do "$BIN" --as alice send dave -m "d$i" </dev/null || echo FAILED; i=$((i + 1)); done ) >many 2>/dev/null & three=$!
while kill -0 $one 2>/dev/null || kill -0 $two 2>/dev/null || kill -0 $three 2>/dev/null; do later 3 doctor --fix --json; done >out 2>err
wait $one; r1=$?; wait $two; r2=$?; wait $three
same '0 0 0' "$r1 $r2 $(grep -c FAILED many)" 'doctor --fix beside a reader, a fan-out and a sender: all succeed'
same '3 3' "$(wc -l <drained | tr -d ' ') $(ls $boxes/bob/.Archive.*/cur | grep -c .)" 'each message was shown once and archived'
same '1 1 13' "$(unread bob) $(unread carol) $(unread dave)" 'each copy is there once'
same '' "$(attic .mailroom)" 'and nothing was taken'

finish
