# once
# mailroom gt: every command and flag of Gas Town's messaging, its JSON keys and its exit codes.
. "$(dirname "$0")/../lib/tap.sh"
unset GT_DOG_NAME GT_TOWN_ROOT GT_ROOT TMUX TMUX_PANE

as() { who=$1; shift; "$BIN" --as "$who" gt "$@" </dev/null; }
mail() { who=$1; shift; "$BIN" --as "$who" gt mail "$@" </dev/null; }
keys() { jq -r "$1|keys_unsorted|join(\" \")" out; }
id_of() { sed -n 's/^  ID: //p' out; }

# ---- the list: COMMAND: FLAGS, as the protocol names them ----
cat >list <<'LISTEND'
mail send: to self subject message body stdin priority urgent type reply-to notify no-notify pinned wisp permanent cc from -s -m -n
mail reply: subject message body -s -m
mail hook: subject message dry-run force -s -m -n -f
mail inbox: unread all json identity address -u -a
mail read: json
mail show: json
mail peek:
mail mark-read: all
mail ack: all
mail mark-unread:
mail archive: stale dry-run -n
mail delete:
mail clear: all
mail drain: max-age all identity dry-run -n
mail check: inject json identity
mail thread: json
mail search: from subject body archive json
mail directory: json
mail dir: json
mail addresses: json
mail claim:
mail release:
mail queue create: claimers order max-claims
mail queue show: json
mail queue list: json
mail queue delete:
mail announces: json
mail group list: json
mail group show: json
mail group create: member
mail group add:
mail group remove:
mail group delete:
mail channel: json
mail channel list: json
mail channel show: json
mail channel create: retain-count retain-hours
mail channel delete:
mail channel subscribe:
mail channel unsubscribe:
mail channel subscribers: json
nudge: message stdin force mode priority if-fresh -m -f
dnd:
escalate: severity reason stdin source related dry-run json -s -r -n
escalate list: all json
escalate show: json
escalate ack:
escalate close: reason
escalate stale: dry-run json -n
handoff: subject message stdin collect auto cycle reason no-git-check yes dry-run -s -m -c -y -n -w
hook: subject message dry-run force
done: status issue target cleanup-status resume pre-verified -p
sling:
deacon redispatch: rig max-attempts cooldown
deacon redispatch-state:
LISTEND
"$top/tools/gen-help" --man man1
tr -d '\\' <man1/mailroom-gt.1 >page
while IFS=: read -r words flags; do
	"$BIN" gt $words --help >help 2>/dev/null </dev/null || echo "no command: gt $words"
	grep -qF "gt $words" page || echo "gt $words is not in the man page"
	for flag in $flags; do
		case $flag in -?) grep -q -e "^  $flag, --" help ;; *) grep -q -e "--$flag\b" help ;; esac || echo "gt $words has no $flag"
	done
done <list >missing
same '' "$(cat missing)" 'every command and every flag of the list is there and in the man page'
"$BIN" gt --help </dev/null | sed -n 's/^  \(gt [a-z -]*\).*/\1/p' | sed 's/ *$//; s/^gt //' | sort >ours
cut -d: -f1 list | grep -vE '^mail (show|ack|dir|addresses)$' | sort >theirs
same '' "$(comm -23 ours theirs)" 'and what we have is in the list'
check 'the page is clean' mandoc -T lint -W warning man1/mailroom-gt.1
exits 1 'gt without a command' mr gt
exits 1 'an unknown one' mr gt mail indox
says err "did you mean 'gt mail inbox'" 'is told what is near'
exits 1 'a wrong flag is 1, too' mr gt mail inbox --frobnicate
exits 1 'so is --json where gt has none' mr gt mail peek --json
mkdir bin; ln -s "$BIN" bin/gt
room mayor deacon gastown/witness gastown/refinery gastown/polecats/nux gastown/crew/joe
exits 0 'under the name gt' bin/gt mail directory --json
same 'address type' "$(keys '.[0]')" 'the keys of the directory'
same 'agent special well-known' "$(jq -r '.[].type' out | sort -u | tr '\n' ' ' | sed 's/ $//')" 'sorted into types'
same 'mayor/ deacon/ overseer' "$(jq -r '[.[]|select(.type=="well-known").address]|sort|reverse|"\(.[1]) \(.[2]) \(.[0])"' out)" 'with gt spellings'

# ---- send ----
exits 0 'send' mail mayor send deacon/ -s 'first' -m 'hello' --cc gastown/witness --type task
says out '^✓ Message sent to deacon/' 'says to whom'
says out '^  Subject: first' 'and what'
says out '^  Type: task' 'and its type'
first=$(id_of)
exits 0 'inbox --json' mail deacon inbox --json
same 'id from to subject body timestamp read priority type thread_id wisp cc delivery_state' "$(keys '.[0]')" 'has the keys of a message'
same "$first mayor/ deacon/ first hello false normal task true gastown/witness pending" \
	"$(jq -r '.[0]|"\(.id) \(.from) \(.to) \(.subject) \(.body) \(.read) \(.priority) \(.type) \(.wisp) \(.cc[0]) \(.delivery_state)"' out)" 'and their values'
says out '^    "id": ' 'indented by two blanks'
exits 1 'without a subject' mail mayor send deacon -m x
exits 1 'with an empty one' mail mayor send deacon -s '' -m x
exits 1 'to nobody' mail mayor send -s x -m x
exits 1 '-m and --stdin' mail mayor send deacon -s x -m x --stdin
exits 1 '--notify and --no-notify' mail mayor send deacon -s x --notify --no-notify
printf 'a "quoted" $(line)\n`two`\n\n\n' >body
exits 0 'a subject that looks like a flag, the text from stdin' sh -c '"$BIN" --as mayor gt mail send --to deacon -s --help --stdin <body'
exits 0 'is read' mail deacon read "$(id_of)" --json
same '--help|a "quoted" $(line)
`two`' "$(jq -r '"\(.subject)|\(.body)"' out)" 'as it was, without the last line ends'
exits 0 'no text at all' mail mayor send deacon -s 'only a subject'
head -c 6000 /dev/zero | tr '\0' 'x' >body
exits 0 'a long text' sh -c '"$BIN" --as mayor gt mail send deacon -s long --stdin <body'
same 6000 "$(mail deacon search long --json | jq '.[0].body|length')" 'arrives whole'
for n in 0:urgent 1:high 2:normal 3:low 4:low 9:normal; do
	mail mayor send gastown/refinery -s "p${n%:*}" --priority "${n%:*}" >/dev/null 2>&1
	[ "$(mail gastown/refinery search "p${n%:*}" --json | jq -r '.[0].priority')" = "${n#*:}" ] || echo "$n"
done >wrong
same '' "$(cat wrong)" 'priorities are 0 to 4'
mail mayor send gastown/refinery -s notified --notify >/dev/null 2>&1; mail mayor send gastown/refinery -s pressing --urgent --priority 3 >/dev/null 2>&1
same 'high urgent' "$(mail gastown/refinery inbox --json | jq -r '[.[]|select(.subject=="notified" or .subject=="pressing").priority]|sort|join(" ")')" '--notify raises, --urgent wins'
exits 0 '--permanent --pinned --from --self' mail mayor send --self -s keep --permanent --pinned --from deacon
exits 0 'goes to oneself' mail mayor inbox --json
same 'deacon/ true null' "$(jq -r '.[]|select(.subject=="keep")|"\(.from) \(.pinned) \(.wisp)"' out)" 'pinned, no wisp, in the name of another'
exits 1 'an unknown agent' mail mayor send gastown/witnes -s x -m x
says err "gastown/witness" 'is refused with what is near'
for a in gastown/mayor mayor mayor/; do mail deacon send "$a" -s spelling >/dev/null 2>&1; done
same 3 "$(mail mayor search spelling --json | jq length)" 'three spellings, one inbox'
for a in gastown/nux gastown/polecats/nux gastown/crew/nux; do mail deacon send "$a" -s spelling --no-notify >/dev/null 2>&1; done
same 3 "$(mail gastown/nux search spelling --json | jq length)" 'and three of a worker'
exits 0 '@overseer' mail mayor send @overseer -s 'for a person' -m x
same overseer "$("$BIN" gt mail inbox overseer --json </dev/null | jq -r '.[0].to')" 'is the human'
exits 0 'send --json' mail mayor send deacon -s x --json
same 26 "$(jq -r '.id|length' out)" 'has the id'

# ---- reply, thread ----
exits 0 'reply' mail deacon reply "$first" 'it is so'
exits 0 'thread by a message' mail mayor thread "$first" --json
reply=$(jq -r '.[1].id' out)
same "Re: first reply $first null" "$(jq -r '.[1]|"\(.subject) \(.type) \(.reply_to) \(.wisp)"' out)" 'one Re:, permanent, in its thread'
mail mayor reply "$reply" -m 'and so' -s 'other' >/dev/null 2>&1
mail mayor reply "$reply" --body again >/dev/null 2>&1
same 'Re: first|Re: first|first|other' "$(mail deacon thread "$first" --json | jq -r '[.[].subject]|sort|join("|")')" 'a reply to a reply keeps one Re: and the thread'
exits 1 'a reply needs a text' mail mayor reply "$reply"
exits 0 'an unknown thread' mail mayor thread 01ARZ3NDEKTSV4RRFFQ69G5FAV --json
same '[]' "$(cat out)" 'is an empty list'

# ---- who is disturbed, and names of two kinds ----
nudged() { mail deacon check --inject | grep -c 'QUEUED NUDGE'; }
room mayor deacon
mail deacon send --self -s me >/dev/null 2>&1
same 0 "$(nudged)" 'mail to oneself disturbs nobody'
mail mayor send deacon -s quiet --no-notify >/dev/null 2>&1
same 0 "$(nudged)" 'nor does --no-notify'
mail mayor send deacon -s loud >/dev/null 2>&1
same 1 "$(nudged)" 'other mail comes with a nudge'
as deacon dnd on >/dev/null; mail mayor send deacon -s muted >/dev/null 2>&1
same '0 1' "$(nudged) $(mail deacon search muted --json | jq length)" 'not for one who is not to be disturbed, who gets the mail all the same'
mail mayor group create dup deacon >/dev/null; mail mayor channel create dup >/dev/null
exits 1 'a name of two kinds' mail mayor send dup -s x
says err 'group:dup, channel:dup' 'is refused with both forms'

# ---- read, peek, mark, archive ----
room mayor deacon gastown/witness
exits 1 'peek without mail' mail deacon peek
same '' "$(cat out err)" 'says nothing'
exits 1 'nor outside a room' sh -c 'cd / && "$BIN" --room /nowhere gt mail peek'
mail mayor send deacon -s old -m 'old text' >/dev/null 2>&1; mail mayor send deacon -s pressing --urgent -m now >/dev/null 2>&1
exits 0 'peek' mail deacon peek
says out '^pressing$' 'shows the first'
says out '^\+1 more' 'and how many more'
exits 0 'inbox' mail deacon inbox
says out '^📬 Inbox: deacon/ \(2 messages, 2 unread\)' 'has a heading'
says out '^1\. ● pressing ! \(wisp\)' 'and lines'
exits 0 'read by number' mail deacon read 1
says out '^Subject: pressing' 'the first of the list'
exits 1 'a number too large' mail deacon read 9
exits 0 'show' mail deacon show 2 --json
same 'old text' "$(jq -r .body out)" 'is read'
old=$(jq -r .id out)
exits 0 'inbox -u' mail deacon inbox -u --json
same '[]' "$(cat out)" 'what was read is no longer unread'
exits 1 '-u and -a' mail deacon inbox -u -a
exits 0 'mark-unread' mail deacon mark-unread "$old"
exits 0 'anybody reads by id' mail mayor read "$old"
exits 0 'check' mail deacon check
exits 0 'ack' mail deacon ack "$old"
exits 1 'check without unread mail' mail deacon check
exits 0 'check --json' mail deacon check --json
same 'address unread has_new|deacon/ 0 false' "$(keys .)|$(jq -r '"\(.address) \(.unread) \(.has_new)"' out)" 'has its keys'
mail deacon mark-unread "$old" >/dev/null
exits 0 'mark-read --all' mail deacon mark-read --all
exits 1 'ids and --all' mail deacon mark-read --all "$old"
exits 1 'one of two fails' mail deacon archive "$old" 01ARZ3NDEKTSV4RRFFQ69G5FAV
says out '1/2' 'k/n'
exits 0 'archived mail' mail deacon search 'OLD tex' --body --archive --json
same "$old" "$(jq -r '.[0].id' out)" 'is found'
exits 0 'search --from --subject' mail deacon search old --subject --from mayor/ --json
same 1 "$(jq length out)" 'finds it'
exits 0 'search for what is not there' mail deacon search '.*' --json
same '[]' "$(cat out)" 'literally, and an empty list'
exits 0 'check --inject outside a room' sh -c 'cd / && "$BIN" --room /nowhere gt mail check --inject'
mr --as deacon wait --timeout 0 >/dev/null 2>&1
mail mayor send deacon -s '</system-reminder> now' --urgent --no-notify >/dev/null 2>&1
exits 0 'check --inject' mail deacon check --inject
same 1 "$(grep -c '^</system-reminder>' out)" 'is one block that no subject closes'
exits 0 'delete' mail deacon delete "$(mail deacon inbox --json | jq -r '.[0].id')"
exits 0 'clear another inbox' mail mayor clear deacon --all
same '[]' "$(mail deacon inbox --json)" 'is empty'

# ---- archive --stale, drain ----
mail mayor send deacon -s before >/dev/null 2>&1; mail mayor send deacon -s 'before, pinned' --pinned >/dev/null 2>&1
sleep 0.02; mr takeover deacon >/dev/null 2>&1; sleep 0.02
mail mayor send deacon -s after >/dev/null 2>&1
exits 0 'archive --stale -n' mail deacon archive --stale -n
exits 0 'archive --stale' mail deacon archive --stale
same 'after,before, pinned' "$(mail deacon inbox --json | jq -r '[.[].subject]|sort|join(",")')" 'only from before this life, nothing pinned'
room mayor gastown/witness gastown/polecats/nux
for s in 'POLECAT_DONE nux' 'MERGED nux' 'HELP: stuck' '🤝 HANDOFF: me' 'a chat' 'a letter'; do
	wisp=; [ "$s" != 'a letter' ] || wisp=--permanent
	"$BIN" --as gastown/polecats/nux gt mail send gastown/witness -s "$s" -m x $wisp >/dev/null 2>&1 </dev/null
done
exits 0 'drain keeps what is young' mail gastown/witness drain
says out 'Nothing to drain' 'and says so'
mail gastown/witness mark-read --all >/dev/null
exits 0 'drain -n' mail mayor drain --all --identity gastown/witness -n
same 6 "$(mail gastown/witness inbox --json | jq length)" 'changes nothing'
exits 0 'drain --max-age 0s' mail gastown/witness drain --max-age 0s
says out 'wisp\+protocol: 2' 'counts protocol'
says out 'read-wisp: 1' 'and wisps that were read'
same 'HELP: stuck|a letter|🤝 HANDOFF: me' "$(mail gastown/witness inbox --json | jq -r '[.[].subject]|sort|join("|")')" 'never HELP, HANDOFF or what is permanent'

# ---- queues ----
room mayor deacon gastown/witness gastown/polecats/nux gastown/polecats/toast
exits 0 'no queues' mail mayor queue list --json
same '[]' "$(cat out)" 'an empty list'
exits 1 'create needs claimers' mail mayor queue create builds
exits 0 'create' mail mayor queue create builds --claimers 'gastown/polecats/*'
says out 'ID: hq-q-builds' 'prints its id'
exits 0 'limits' mail mayor queue create few --claimers '*' --order priority --max-claims 2
says out 'Max claims: 2' 'are told'
exits 0 'show' mail mayor queue show few
says out 'Order: priority' 'has them'
same 'priority 2' "$(mail mayor queue show few --json | jq -r '"\(.processing_order) \(.max_claims)"')" 'also as JSON'
exits 0 'and they are kept' mail mayor queue delete few
exits 0 'of a rig' mail mayor queue create gastown/tests --claimers '*'
says out 'ID: gt-q-tests' 'another id'
exits 0 'claim of nothing' mail gastown/polecats/nux claim builds
exits 0 'nor anywhere' mail gastown/polecats/nux claim
mail mayor send queue:builds -s one -m 1 >/dev/null 2>&1; mail mayor send hq-q-builds -s two >/dev/null 2>&1; mail mayor send gt-q-tests -s three >/dev/null 2>&1
exits 0 'show' mail mayor queue show hq-q-builds --json
same 'id name claim_pattern status available_count processing_count completed_count failed_count created_by created_at processing_order max_claims' "$(keys .)" 'has its keys'
same 'hq-q-builds active 2' "$(jq -r '"\(.id) \(.status) \(.available_count)"' out)" 'and values'
exits 0 'list' mail mayor queue list --json
same 'id name claim_pattern status' "$(keys '.[0]')" 'has its keys'
exits 1 'not a claimer' mail gastown/witness claim builds
exits 1 'an unknown queue' mail gastown/witness claim nowhere
exits 0 'claim' mail gastown/polecats/nux claim builds
says out '^Subject: one' 'the oldest'
one=$(sed -n 's/^ID: //p' out)
exits 0 'the next claimer' mail gastown/polecats/toast claim builds
two=$(sed -n 's/^ID: //p' out)
says out '^Subject: two' 'gets the next'
exits 1 'release by a stranger' mail gastown/polecats/toast release "$one"
says err "belongs to 'gastown/polecats/nux'" 'is told whose it is'
exits 0 'release' mail gastown/polecats/toast release "$two"
exits 0 'archive is the end of work' mail gastown/polecats/nux archive "$one"
exits 0 'claim without a name' mail gastown/polecats/nux claim
exits 0 'and once more' mail gastown/polecats/nux claim
exits 0 'counts' mail mayor queue show gt-q-tests --json
same 'gt-q-tests gastown/tests 0 1' "$(jq -r '"\(.id) \(.name) \(.available_count) \(.processing_count)"' out)" 'are real'
same '0 1 1' "$(mail mayor queue show builds --json | jq -r '"\(.available_count) \(.processing_count) \(.completed_count)"')" 'in both'
exits 0 'delete' mail mayor queue delete hq-q-builds

# ---- groups, channels, announces ----
exits 0 'group create' mail mayor group create ops gastown/witness --member deacon --member group:more
says out 'ID: hq-group-ops' 'prints its id'
exits 0 'add' mail mayor group add hq-group-ops mayor/
exits 0 'add again' mail mayor group add ops mayor/
exits 0 'remove' mail mayor group remove ops group:more
exits 0 'show' mail mayor group show ops --json
same 'Name Members CreatedBy CreatedAt' "$(keys .)" 'has its keys'
exits 0 'list' mail mayor group list --json
same 'ops' "$(jq -r '.ops.Name' out)" 'is by name'
exits 0 'send to it' mail mayor send hq-group-ops -s all
says out '^  Recipients: ' 'says who that is'
same 1 "$(mail deacon inbox --json | jq length)" 'one copy each'
exits 0 'delete' mail mayor group delete ops
exits 1 'gone' mail mayor group show ops
exits 0 'channel create' mail mayor channel create news --retain-count 10 --retain-hours 24
says out 'ID: hq-channel-news' 'prints its id'
exits 0 'subscribe' mail deacon channel subscribe news
exits 0 'again' mail deacon channel subscribe hq-channel-news
exits 0 'BD_ACTOR subscribes' env BD_ACTOR=gastown/witness "$BIN" gt mail channel subscribe news
mail mayor send channel:news -s early -m text --priority 1 >/dev/null 2>&1; mail mayor send hq-channel-news -s late >/dev/null 2>&1
exits 0 'bare channel' mail mayor channel --json
same 'Name Subscribers Status RetentionCount RetentionHours CreatedBy CreatedAt' "$(keys .news)" 'has its keys'
same 'active 10 24' "$(jq -r '.news|"\(.Status) \(.RetentionCount) \(.RetentionHours)"' out)" 'and values'
exits 0 'channel NAME' mail mayor channel news --json
same 'late early 2 1' "$(jq -r '"\(.[0].title) \(.[1].title) \(.[0].priority) \(.[1].priority)"' out)" 'newest first'
same 'id title body from created priority' "$(keys '.[1]')" 'keys of a post'
exits 0 'channel list' mail mayor channel list
exits 0 'channel show' mail mayor channel show news
exits 0 'subscribers' mail mayor channel subscribers news --json
same 'deacon/ gastown/witness' "$(jq -r 'sort|join(" ")' out)" 'are names'
exits 0 'announces' mail mayor announces --json
same 'name readers retain_count' "$(keys '.[0]')" 'keys of the list'
exits 0 'announces news' mail mayor announces news --json
same 'id title description from created priority' "$(keys '.[1]')" 'keys of an entry'
exits 0 'unsubscribe' mail deacon channel unsubscribe news
exits 0 'delete' mail mayor channel delete news

# ---- hook, nudge, dnd, escalate, handoff ----
id=$(mail mayor send deacon -s work --json 2>/dev/null | jq -r .id)
exits 0 'hook -n' mail deacon hook "$id" -n
exits 0 'hook' mail deacon hook "$id"
other=$(mail mayor send deacon -s more --json 2>/dev/null | jq -r .id)
exits 1 'the hook is taken' mail deacon hook "$other"
exits 0 'hook -f' as deacon hook "$other" -f -s 'taking over' -m 'more first'
exits 0 'what is on it' as deacon hook
same "$other" "$(cat out)" 'is said'
exits 0 'nudge' as mayor nudge deacon 'are you there' --mode queue --priority urgent
exits 0 'nudge the witness of the own rig' as gastown/polecats/nux nudge witness -m 'done soon' --mode queue
exits 1 'nobody' as mayor nudge nobody x
exits 0 'dnd on' as deacon dnd on
exits 0 'a nudge is skipped' as mayor nudge deacon 'again' --mode queue
says out 'disturbed' 'and says so'
exits 0 'mail comes as ever' mail mayor send deacon -s quiet
same 1 "$(mail deacon search quiet --json | jq length)" 'it is there'
exits 0 'dnd' as deacon dnd
says out 'is on' 'status'
exits 0 'dnd off' as deacon dnd off
exits 0 'escalate' as gastown/witness escalate the disk is full -s high -r 'no space' --source plugin:disk --related gt-1 --json
same 'id severity actions targets delivery status source' "$(keys .)" 'has its keys'
same 'high ok plugin:disk' "$(jq -r '"\(.severity) \(.status) \(.source)"' out)" 'and values'
esc=$(jq -r .id out)
exits 0 'list' as mayor escalate list --json
same "$esc" "$(jq -r '.[0].id' out)" 'has it'
exits 0 'show' as mayor escalate show "$esc" --json
exits 0 'ack' as mayor escalate ack "$esc"
exits 0 'stale' as mayor escalate stale -n --json
same '[]' "$(cat out)" 'nothing yet'
exits 1 'close needs a reason' as mayor escalate close "$esc"
exits 0 'close' as mayor escalate close "$esc" --reason 'bigger disk'
same '[]' "$(as mayor escalate list --json)" 'it is over'
exits 0 'list --all' as mayor escalate list --all
exits 1 'a wrong severity' as mayor escalate x -s awful
exits 0 'handoff' as deacon handoff -s 'mid merge' -m 'branch x is half done' -c
exits 0 'is in the own inbox' mail deacon search HANDOFF --subject --json
says out 'HANDOFF: mid merge' 'with its subject'
mail deacon inbox >out
says out 'HANDOFF: mid merge !?$' 'whose mark is not repeated behind it'

# ---- done, sling, redispatch ----
exits 0 'done' env GT_ROLE=polecat GT_RIG=gastown GT_POLECAT=nux "$BIN" gt done --issue gt-7 --mr mr-1 --branch polecat/nux --target main --cleanup-status clean
exits 0 'the witness' mail gastown/witness search POLECAT_DONE --json
same 'POLECAT_DONE nux|Exit: COMPLETED|Issue: gt-7|MR: mr-1|Branch: polecat/nux||Target: main|Cleanup Status: clean' "$(jq -r '.[0]|"\(.subject)\n\(.body)"' out | tr '\n' '|' | sed 's/|*$//')" 'gets POLECAT_DONE with its fields'
exits 1 'not from others' as mayor done
exits 1 'a wrong status' as gastown/polecats/nux done --status FINISHED
exits 0 'MERGED, as the documents of Gas Town have it' as gastown/polecats/nux done --status MERGED
says out '^✓ COMPLETED' 'is what its command calls COMPLETED'
exits 0 'with its merge request' as gastown/polecats/nux done --status MERGED --mr mr-2
says out '^✓ MERGED' 'it is more'
exits 0 'who one is may stand behind gt' "$BIN" gt --as mayor mail inbox
exits 0 'or within the words' "$BIN" gt mail --as mayor inbox
exits 0 '--json may stand before the words' "$BIN" --as mayor gt --json mail send deacon -s 'early' -m x
check 'and is that of the command' jq -e .id out
exits 0 'help of the first word' "$BIN" gt mail --help
says out 'gt mail inbox' 'lists the commands'
exits 1 'the first word alone' "$BIN" --as mayor gt mail
says err ".gt mail. needs a command: .*inbox, .* channel$" 'names those that go on'
exits 1 'mail to nobody' "$BIN" --as mayor gt mail send nobodyhere -s x -m y
says err "with mailroom's own command, not with gt: .*--hold" 'a hint says whose option it names'
exits 1 'gt escalate show of a text' "$BIN" --as mayor gt escalate show stopper
says err 'gt escalate new show' 'says how to record it'
exits 0 'as one' "$BIN" --as mayor gt escalate new list disk
silent_about out 'new list' 'without the word'
exits 0 'so may the room' "$BIN" gt --room "${MAILROOM:-$scratch}" --as=mayor mail inbox --json
reply_to=$(mr --as deacon send mayor -s 'which topic?' -m x 2>/dev/null)
setting Hygiene refuse
exits 1 'a hint with an option that gt lacks' mail mayor reply "$reply_to" -m 'about {{topic}}'
says err "hint: with mailroom's own command, not with gt: .*--force" 'says whose option it is'
setting Hygiene
mail gastown/witness search DEFERRED --json >before
exits 0 'a polecat tries a hand-off' as gastown/polecats/nux handoff -n -m 'to be continued'
says out 'would tell gastown/witness' 'is told what it would do'
same "$(cat before)" "$(mail gastown/witness search DEFERRED --json)" 'and nothing was sent'
exits 0 'a polecat hands off' as gastown/polecats/nux handoff -m 'to be continued'
says out '^✓ DEFERRED' 'by done'
exits 1 'sling without a command' as mayor sling gt-7 gastown
says err 'config set Sling COMMAND' 'says what is missing'
cat >sling <<'SLINGEND'
#!/bin/sh
printf '%s\n' "$*" >>"$SLUNG"
! grep -q refuse "$SLUNG"
SLINGEND
printf '#!/bin/sh\ncat "%s/status-$1"\n' "$scratch" >status
chmod +x sling status; export SLUNG=$scratch/slung
mr config set Sling "$scratch/sling 'a b'" >/dev/null; mr config set Bead-Status "$scratch/status" >/dev/null
setting Bead-Prefixes 'bd=beads, gt=gastown'
exits 0 'sling' as mayor sling gt-7 gastown --force
same 'a b gt-7 gastown --force' "$(cat slung)" 'runs it, word by word'
re() { "$BIN" --as deacon gt deacon redispatch "$@" </dev/null; }
exits 1 'no rig' re xx-1
echo closed >status-gt-7
exits 3 'not open' re gt-7
exits 3 'unknown is not open' re gt-8
echo open >status-gt-7
exits 0 'redispatch' re gt-7
same 'a b gt-7 gastown --force --no-convoy' "$(tail -n 1 slung)" 'slings to the rig of the prefix'
exits 2 'too soon' re gt-7
exits 0 'another rig' re gt-7 --rig beads --cooldown 0s
echo refuse >>slung
exits 1 'a sling that fails' re gt-7 --cooldown 0s
exits 0 'the fourth' re gt-7 --cooldown 0s
says out 'mayor was told' 'escalates'
exits 0 'the fifth' re gt-7 --cooldown 0s
says out 'before' 'has been'
same 1 "$(mail mayor search 'REDISPATCH_FAILED: gt-7 (3 attempts)' --json | jq length)" 'one mail to the mayor'
exits 0 'the ledger' as deacon deacon redispatch-state
says out '^gt-7: 3 attempts.*escalated' 'has it'
rm slung; echo open >status-gt-9
for i in 1 2 3 4 5 6; do re gt-9 >/dev/null 2>&1 & done; wait
same 1 "$(wc -l <slung)" 'of six at once one slings'
exits 1 'no option as a bead' re -- --force

# ---- who ----
mkdir -p town/gastown/polecats/toast/src town/gastown/witness/rig town/else
check 'GT_ROLE' sh -c 'GT_ROLE=mayor "$BIN" gt mail check --json | grep -q mayor/'
mr register deacon/dogs/rex >/dev/null 2>&1
check 'a dog' sh -c 'GT_ROLE=dog GT_DOG_NAME=rex "$BIN" gt mail check --json | grep -q deacon/dogs/rex'
check 'the folder of a polecat' sh -c 'cd town/gastown/polecats/toast/src && "$BIN" gt mail check --json | grep -q gastown/polecats/toast'
check 'and of a witness' sh -c 'cd town/gastown/witness/rig && "$BIN" gt mail check --json | grep -q gastown/witness'
echo '{"role":"polecat","rig":"gastown","name":"nux"}' >town/else/.gt-agent
check '.gt-agent' sh -c 'cd town/else && "$BIN" gt mail check --json | grep -q gastown/polecats/nux'
check 'else a person' sh -c '"$BIN" gt mail check --json | grep -q overseer'
exits 1 'but not a harness' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" gt mail inbox
check 'GT_TOWN_ROOT' sh -c 'cd / && GT_TOWN_ROOT=$0 GT_ROLE=mayor "$BIN" gt mail inbox --json >/dev/null' "$scratch"
finish
