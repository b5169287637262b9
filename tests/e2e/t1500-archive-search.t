# once
# What happens to mail after it was read: archive, search, sent, why, purge; and the care of a room: stats, doctor.
. "$(dirname "$0")/../lib/tap.sh"

# in_month AGENT ID MONTH: the archive of that month has it.
in_month() { ls ".mailroom/agents/$1/.Archive.$3/cur" 2>/dev/null | grep -q "$2"; }
states() { mr --as "$1" why "$2" --json | jq -r '"\(.agent):\(.state)"' | sort | tr '\n' ' ' | sed 's/ $//'; }
ids() { jq -r .id "$1" | tr '\n' ' ' | sed 's/ $//'; }

# ---- archive ----
room alice bob carol
month=$(date -u +%Y-%m)
a=$(send alice bob 'read and filed'); b=$(send alice bob 'read and pinned'); c=$(send alice bob 'unread')
mr --as bob mark read "$a" "$b" >/dev/null; mr --as bob mark pinned "$b" >/dev/null
exits 2 'archive of nothing in particular is wrong usage' mr --as bob archive
exits 2 'ids and --all-read together too' mr --as bob archive --all-read "$a"
exits 0 'archive --all-read --dry-run' mr --as bob archive --all-read --dry-run
says out '^1 message would be archived, 1 unread kept, 1 pinned kept$' 'says how many'
check 'and moves nothing' test -f .mailroom/agents/bob/cur/*"$a.mr:2,S"
exits 4 'an unread one by id is refused' mr --as bob archive "$c"
says err 'include-unread' 'with what to do'
exits 4 'a pinned one is refused' mr --as bob archive "$b"
exits 5 'one that is not there' mr --as bob archive 01k9w3b7zq8m4c2v6t1x5n0prs
exits 0 'archive --all-read' mr --as bob archive --all-read
says out '^1 message archived, 1 unread kept, 1 pinned kept$' 'prints how many, and what stays'
check 'it is in the archive of its month' in_month bob "$a" "$month"
check 'pinned mail stayed' test -f .mailroom/agents/bob/cur/*"$b.mr:2,FS"
same 1 "$(unread bob)" 'so did unread mail'
exits 0 'read still finds it' mr --as bob read "$a" --json
same archive "$(jq -r .folder out)" 'in the archive'
exits 0 'archiving it again by id' mr --as bob archive "$a"
exits 0 'archive --include-unread' mr --as bob archive "${c#????????????????????}" --include-unread --json
same '1 0' "$(jq -r '"\(.archived) \(.would_archive)"' out)" 'by its last six characters, as JSON'
same 0 "$(unread bob)" 'it left the inbox'
same "alice:sent bob:archived" "$(states alice "$c")" 'and why knows where it is'
mr --as bob mark unpinned "$b" >/dev/null
exits 0 'an unpinned one goes' mr --as bob archive "$b"
check 'with its state' in_month bob "$b.mr:2,S" "$month"

# by age and month, with a clock that tests can move (test builds only)
if MAILROOM_TEST_CLOCK_OFFSET_MS=-86400000 "$DEVBIN" --as alice send bob -m probe </dev/null >out 2>/dev/null &&
	[ "$(expr "$(mr --as bob inbox --json | jq -r .date)" : "$(date -u -d '-1 day' +%Y-%m-%d)")" -gt 0 ]; then
	mr --as bob drain >/dev/null
	past() { MAILROOM_TEST_CLOCK_OFFSET_MS=$1 "$DEVBIN" --as alice send bob -m "$2" </dev/null 2>/dev/null; }
	day=86400000 now=$(date +%s)
	old=$(past -$((3 * day)) 'three days old'); older=$(past -$((70 * day)) 'seventy days old'); fresh=$(past 0 fresh)
	mr --as bob mark read --all >/dev/null
	exits 0 'archive --older-than 24h' mr --as bob archive --older-than 24h
	says out '^2 messages archived' 'takes what is older'
	check 'and leaves the fresh one' test -f .mailroom/agents/bob/cur/*"$fresh.mr:2,S"
	check 'each goes to the UTC month of its id' in_month bob "$old" "$(date -u -d "@$((now - 3 * 86400))" +%Y-%m)"
	check 'also one of long ago' in_month bob "$older" "$(date -u -d "@$((now - 70 * 86400))" +%Y-%m)"
	# an unread one is not taken for being old
	stale=$(past -$((2 * day)) 'two days old, unread')
	exits 0 'old unread mail' mr --as bob archive --older-than 1d
	says out '^0 messages archived, 1 unread kept' 'stays'
	exits 0 'unless' mr --as bob archive --older-than 1d --include-unread
	says out '^1 message archived' 'it is asked for'
	exits 0 'the last second of a month' env MAILROOM_TEST_CLOCK_OFFSET_MS=$((($(date -u -d 2026-02-01T00:00:00 +%s) - now) * 1000 - 4000)) "$DEVBIN" --as alice send carol -m january
	jan=$(cat out)
	exits 0 'the first of the next' env MAILROOM_TEST_CLOCK_OFFSET_MS=$((($(date -u -d 2026-02-01T00:00:00 +%s) - now) * 1000 + 4000)) "$DEVBIN" --as alice send carol -m february
	feb=$(cat out)
	mr --as carol archive --older-than 0s --include-unread >/dev/null 2>&1 || mr --as carol archive --all-read --include-unread >/dev/null
	check 'are two archives' in_month carol "$jan" 2026-01
	check 'one each' in_month carol "$feb" 2026-02
	exits 0 'search finds both' mr --as carol search --regex 'january|february' --json
	same "$feb $jan" "$(ids out)" 'newest first, across months'
else
	mr --as bob drain >/dev/null
	skip 'archive by age' 'this build has no test clock'
fi

# ---- search, sent ----
room alice bob carol
a=$("$BIN" --as alice send bob -s 'The Build' -m 'is green on port 8081' </dev/null 2>/dev/null)
b=$("$BIN" --as alice send bob -s 'lunch' -m 'green beans' </dev/null 2>/dev/null)
c=$("$BIN" --as bob send alice -s 'Re: the build' -m 'GREEN indeed, naïve' </dev/null 2>/dev/null)
mr --as bob mark read "$a" >/dev/null; mr --as bob archive "$a" >/dev/null
exits 0 'search' mr --as bob search green --json
same "$c $b $a" "$(ids out)" 'finds in inbox, archive and sent, newest first'
exits 0 'words in any case, all of them' mr --as bob search gReEn BUILD --json
same "$c $a" "$(ids out)" 'wherever they stand'
exits 0 'a word outside ASCII' mr --as bob search naïve --json
same "$c" "$(ids out)" 'is found'
exits 0 'a sender is found too' mr --as bob search --from alice beans --json
same "$b" "$(ids out)" 'with a filter'
exits 0 'search --regex' mr --as bob search --regex 'port [0-9]+' --json
same "$a" "$(ids out)" 'is an extended expression'
exits 4 'a bad expression' mr --as bob search --regex 'port ['
says err "pattern 'port \[': " 'is refused, with why'
exits 0 'nothing found' mr --as bob search xyzzy
says out 'nothing found' 'exits 0 and says so'
exits 0 'nothing found as JSON' mr --as bob search xyzzy --json
same '' "$(cat out)" 'is no line'
exits 2 'search for nothing' mr --as bob search
exits 0 'search --limit' mr --as bob search green --limit 1 --json
same "$c" "$(ids out)" 'gives the newest'
exits 0 'search as text' mr --as bob search green
says out '^--- ' 'is fenced'
same 1 "$(unread bob)" 'searching marks nothing'
exits 0 "another's mail" mr --as carol search green --json
same '' "$(cat out)" 'is not searched'
exits 0 'sent' mr --as alice sent --json
same "$b $a" "$(ids out)" 'is newest first'
exits 0 'sent of someone who sent nothing' mr --as carol sent
says out 'nothing sent' 'says so'

# ---- why ----
same 'alice:sent bob:archived' "$(states alice "$a")" 'why: archived'
same 'alice:sent bob:unread' "$(states alice "$b")" 'why: unread'
mr --as alice mark read "$c" >/dev/null
same 'alice:read bob:sent' "$(states bob "$c")" 'why: read'
token=$(mr --as bob recv --json | jq -r .token)
same 'alice:sent bob:held' "$(states alice "$b")" 'why: held'
mr --as bob fail "$token" --reason 'no beans' >/dev/null
exits 0 'why of a failed one' mr --as alice why "$b" --json
same dead "$(jq -r 'select(.state=="dead").state' out)" 'is dead'
d=$(send alice carol 'vanishes')
rm -f .mailroom/agents/carol/new/*"$d"*
same 'alice:sent carol:nowhere' "$(states alice "$d")" 'why: nowhere, when another program removed it'
exits 0 'the evidence' mr --as alice why "$d"
says out 'removed by another program, or never delivered' 'claims no more than is known'
exits 5 'why of an unknown id' mr --as alice why 01k9w3b7zq8m4c2v6t1x5n0prs
exits 0 'why by the last six characters' mr --as alice why "${a#????????????????????}"
says out 'bob.*archived.*\.Archive\.' 'tells where'

# ---- purge ----
room alice bob carol dave
p=$("$BIN" --as alice send bob carol dave --key k --cc operator -m 'password: hunter2' </dev/null 2>/dev/null)
mr --as bob read "$p" >/dev/null; mr --as bob archive "$p" >/dev/null
mr --as carol recv >/dev/null
exits 4 'a recipient may not purge it' mr --as bob purge "$p"
says err "its sender 'alice' or the operator" 'and is told who may'
says err 'send alice' 'and whom to ask'
mr register builder >/dev/null 2>&1; CLAUDE_CODE_SESSION_ID=purge-1 mr register erin >/dev/null 2>&1
exits 4 'a session of a harness is not the operator' env CLAUDE_CODE_SESSION_ID=purge-1 "$BIN" --as operator purge "$p"
exits 0 'purge' mr --as alice purge --reason 'leaked a password' "$p"
says out "^5 copies of $p removed" 'removes every copy: archived, held, unread, sent'
same '3' "$(grep -c 'had not read it and was told' out)" 'says who had it unread'
for who in carol dave operator; do
	same "purged alice $p" "$(mr --as $who inbox --unread --json | jq -r '.type + " " + .from' | tail -n 1) $(mr --as $who drain --json | jq -r .body | sed -n 's/^Message: //p')" "$who is told that it is gone"
done
same 0 "$(unread bob)" 'bob had read it and is not'
same '' "$(grep -rl hunter2 .mailroom)" 'the text is nowhere in the room'
exits 0 'why' mr --as alice why "$p" --json
same purged "$(jq -r .state out | tail -n 1)" 'tells of it'
says out 'leaked a password' 'with the reason'
says out "purged by 'alice' at 20" 'and by whom'
exits 5 'read finds nothing' mr --as bob read "$p"
exits 5 'purging it again' mr --as alice purge "$p"
"$BIN" --as alice send bob carol dave --key k --cc operator -m 'password: hunter2' </dev/null >out 2>err
same '' "$(grep -rl hunter2 .mailroom/agents)" 'a retry with its key does not bring it back'
mr doctor --fix >/dev/null 2>&1
same '' "$(grep -rl hunter2 .mailroom)" 'nor does doctor'
q=$(send alice bob 'one more'); user --as operator purge --json "$q" >out
same 'bob 2' "$(jq -r '(.told | join(" ")) + " " + (.removed | tostring)' out)" 'the operator may, and JSON tells the same'
mr --as bob drain --json >out; says out 'by operator' 'the notice says who did it'
# a copy in a linked room
mkdir -p blue && mr init blue --name blue >/dev/null 2>&1 && "$BIN" --room blue register zoe >/dev/null 2>&1 </dev/null
if mr --as operator link blue "$PWD/blue" >/dev/null 2>&1; then
	q=$(send alice zoe@blue 'to another room'); mr carry >/dev/null 2>&1
	exits 0 'purge of what was carried' mr --as alice purge --json "$q"
	same zoe@blue "$(jq -r '.carried[]' out)" 'names the copy that is not removed'
	same 1 "$("$BIN" --room blue --as zoe inbox --json </dev/null | wc -l | tr -d ' ')" 'which is still there'
	q=$(send alice zoe@blue 'and in text'); mr carry >/dev/null 2>&1
	mr --as alice purge "$q" >out; says out 'a copy is with zoe@blue; it is not removed there' 'in text, too'
	"$BIN" --room blue --as zoe drain >/dev/null 2>&1 </dev/null
fi
# killed anywhere
if [ -n "$(MAILROOM_FAULT=kill-before:1 "$DEVBIN" where 2>&1 </dev/null; [ $? -gt 128 ] && echo killed)" ]; then
	room alice bob carol
	n=8; while [ $n -lt 420 ]; do
		to=bob; [ $((n % 2)) = 0 ] || to='bob carol'
		q=$("$BIN" --as alice send $to -m "cut off at $n" </dev/null 2>/dev/null)
		MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice purge --reason cut "$q" </dev/null >/dev/null 2>&1; code=$?
		mr --as alice why "$q" >/dev/null 2>&1 || echo "killed at $n: nobody knows what became of it"
		if [ $code -gt 128 ]; then
			mr --as alice purge --reason again "$q" >/dev/null 2>err || grep -q 'no copy' err || echo "killed at $n: cannot be repeated: $(cat err)"
		fi
		[ -z "$(grep -rl "cut off at $n\$" .mailroom)" ] || echo "killed at $n: a copy is left"
		for who in $to; do
			[ "$(mr --as $who drain --json | grep -c "$q")" = 1 ] || echo "killed at $n: $who was not told once"
		done
		[ -z "$(ls .mailroom/records/purged/_ | grep "$q")" ] || echo "killed at $n: the record of it is left"
		n=$((n + 9)); [ $code -gt 128 ] || break
	done >wrong
	same '' "$(cat wrong)" 'a purge killed at any call explains itself, and repeated it tells everybody once'
	[ $n -gt 200 ] && ok "it was killed at calls up to $n" || not_ok "it was killed at calls up to $n only"
else
	skip 'a purge killed at any call' 'this build has no fault points'
fi
room alice bob carol dave
exits 5 'purge of an unknown id' mr --as alice purge 01k9w3b7zq8m4c2v6t1x5n0prs
# a fan-out that died half-way
if MAILROOM_FAULT=help "$DEVBIN" where </dev/null >/dev/null 2>&1; then
	skip 'purge of a fan-out that died' 'this build has no fault points'
else
	half= n=20; while [ $n -lt 250 ] && [ -z "$half" ]; do
		MAILROOM_FAULT=kill-before:$n "$DEVBIN" --as alice send bob carol dave -m "swordfish$n" </dev/null >/dev/null 2>&1
		word=swordfish$n n=$((n + 1))
		have=$(grep -rl "$word" .mailroom/agents/*/new | wc -l)
		[ "$have" -gt 0 ] && [ "$have" -lt 3 ] && half=$(ls .mailroom/spool | grep -E '^[0-9a-z]{26}$')
		[ -n "$half" ] || rm -f .mailroom/spool/* .mailroom/agents/*/tmp/*
	done 2>/dev/null
	exits 0 'a fan-out whose sender died half-way' mr --as alice purge "$half"
	send alice bob 'the next send rolls forward what is half done' >/dev/null; mr doctor --fix >/dev/null 2>&1
	same '' "$(grep -rl --exclude='mr-*.tmp' "$word" .mailroom)" 'is purged before it is completed, and stays away'
	same '' "$(ls .mailroom/spool | grep "$half")" 'nothing is left of it in the spool'
fi

# ---- stats ----
room alice bob
send alice bob one >/dev/null; "$BIN" --as alice send bob --priority urgent -m two </dev/null >/dev/null 2>&1; r=$(send alice bob three); mr --as bob read "$r" >/dev/null
exits 0 'stats' mr stats --json
same '2 1 1 0' "$(jq -r '.agents[]|select(.name=="bob")|"\(.unread) \(.urgent) \(.read) \(.held)"' out)" 'counts'
same '2 0' "$(jq -r '"\(.total.unread) \(.dead_letters)"' out)" 'in all too'
exits 0 'stats as text' mr stats
says out '^bob +2 +1 +0 +1 ' 'is a table'

# ---- doctor ----
exits 0 'a healthy room' mr doctor
says out '^0 problems' 'has no problems'
findings() { jq -r 'select(.severity=="problem" or .severity=="note")|select(.code!="storage" and .code!="waiting" and .code!="space")|"\(.severity) \(.code) \(.fixed)"' out | sort | uniq | tr '\n' ';'; }
keep=$(find .mailroom/agents/bob -type f -name '*.mr*' | sort | xargs cat | cksum)
find .mailroom/agents/bob -type f -name '*.mr*' | sed 's,.*/,,' | sort >names
chmod 755 .mailroom/agents/bob; chmod 644 .mailroom/agents/alice/agent
: >.mailroom/agents/bob/tmp/mr-123.tmp
: >.mailroom/agents/bob/tmp/mr-456.tmp; touch -d '+3 days' .mailroom/agents/bob/tmp/mr-456.tmp
: >.mailroom/agents/bob/tmp/foreign
later() { MAILROOM_TEST_CLOCK_OFFSET_MS=259200000 "$DEVBIN" "$@" </dev/null; }
ln -s /etc/passwd .mailroom/agents/bob/new/1762900000.planted
: >.mailroom/agents/alice/new/1762900000.empty; chmod 400 .mailroom/agents/alice/new/1762900000.empty
exits 1 'a room with planted problems' later doctor --json
same 'note leftovers false;problem messages false;problem modes false;problem symlinks false;' "$(findings)" 'doctor finds each, and says what it is'
cp out saved; check 'each with what to do' jq -es 'map(select(.severity=="problem"))|length > 0 and all(.[]; .fix|length > 0)' saved
check 'and changes nothing' test "$(stat -c %a .mailroom/agents/bob)" = 755 -a -f .mailroom/agents/bob/tmp/mr-123.tmp
exits 1 'doctor --fix' later doctor --fix --json
same 'note leftovers true;problem messages true;problem modes true;problem symlinks false;' "$(findings)" 'repairs modes, and takes leftovers and what is empty'
same '700 600' "$(stat -c %a .mailroom/agents/bob .mailroom/agents/alice/agent | tr '\n' ' ' | sed 's/ $//')" 'modes are closed'
check 'an old temporary file is gone' test ! -e .mailroom/agents/bob/tmp/mr-123.tmp
check 'a young one, which may be in use, is not' test -e .mailroom/agents/bob/tmp/mr-456.tmp; rm .mailroom/agents/bob/tmp/mr-456.tmp
check "nor one of another program" test -e .mailroom/agents/bob/tmp/foreign
check 'the link is left to a person, the empty file is kept in the attic' test -L .mailroom/agents/bob/new/1762900000.planted -a -f "$(ls .mailroom/attic/20*/*1762900000.empty)"
same "$keep" "$(find .mailroom/agents/bob -type f -name '*.mr*' | sort | xargs cat | cksum)" 'and all mail is kept'
find .mailroom/agents/bob -type f -name '*.mr*' | sed 's,.*/,,' | sort | diff names - >diff && ok 'under its names' || { note <diff; not_ok 'under its names'; }
exits 0 'inbox skips the link' mr --as bob inbox --json
same 2 "$(wc -l <out | tr -d ' ')" 'and lists the mail'
silent_about out 'root:' 'and does not read through it'
rm .mailroom/agents/bob/new/1762900000.planted
# a record in the spool that says nothing
printf 'garbage\n' >.mailroom/spool/01k9w3b7zq8m4c2v6t1x5n0prs
exits 1 'a broken spool record' mr doctor
says out 'PROBLEM +spool' 'is a problem'
exits 1 'that --fix' mr doctor --fix
check 'keeps' test -f .mailroom/spool/01k9w3b7zq8m4c2v6t1x5n0prs
exits 0 'and sending goes on' mr --as alice send bob -m 'all the same'
rm -f .mailroom/spool/01k9w3b7zq8m4c2v6t1x5n0prs
rm -rf .mailroom/agents/operator
exits 1 'a room without its operator' mr doctor
exits 0 'gets one' mr doctor --fix
check 'from --fix' test -f .mailroom/agents/operator/agent
sed -i '/^Unknown-Recipients/d' .mailroom/room; printf 'Unknown-Recipients: maybe\n' >>.mailroom/room
exits 1 'a setting that is not understood' mr doctor
says out 'settings.*maybe' 'is named'

# ---- cur/ stays small: 260 that another program delivered and read, 40 of ours ----
room alice bob
begin=$(($(date +%s) - 1000)) umask=$(umask); umask 077
i=0; while [ $i -lt 260 ]; do printf 'Subject: number %s\n\nx\n' $i >".mailroom/agents/bob/cur/$((begin + i)).M$i.host:2,S"; i=$((i + 1)); done
umask "$umask"
i=0; while [ $i -lt 40 ]; do "$BIN" --as alice send bob -m "number $i" </dev/null; i=$((i + 1)); done >sent 2>/dev/null
mr --as bob inbox --all >/dev/null
same 260 "$(ls .mailroom/agents/bob/cur | wc -l)" 'looking moves nothing'
mr --as bob mark read --all >/dev/null
left=$(ls .mailroom/agents/bob/cur | wc -l)
[ "$left" -le 192 ] && ok "of 300 that were read $left stay in cur/" || not_ok "of 300 that were read $left stay in cur/"
same 300 $((left + $(ls .mailroom/agents/bob/.Archive.*/cur | grep -c ':2,S$'))) 'the others are filed in the archive'
check 'the oldest' sh -c "ls .mailroom/agents/bob/.Archive.*/cur | grep '^$begin.M0.host:2,S'"
check 'not the newest' test -f .mailroom/agents/bob/cur/*"$(tail -n 1 sent).mr:2,S"
exits 0 'search finds all' mr --as bob search number --json
same 300 "$(jq -r .id out | sort -u | wc -l)" 'across folders'
same "$(jq -r .id out | sort -r | cksum)" "$(jq -r .id out | cksum)" 'newest first'
exits 0 'and read finds the oldest' mr --as bob read "$(jq -r .id out | tail -n 1)" --json
same archive "$(jq -r .folder out)" 'in the archive'
finish
