# once
# Rooms of the mailbox skill: mailroom's commands beside another program at the same files, both ways, and both at once.
. "$(dirname "$0")/../lib/tap.sh"
command -v bash >/dev/null || { echo '1..0 # SKIP no bash'; exit 0; }

peer=$top/tests/peers/handoff-peer.sh
export MB_TEST_ROOT=$scratch/root; unset AGENT_MAILBOX_ID AGENT_HARNESS CLAUDE_CODE
root=$MB_TEST_ROOT
h() { "$BIN" --room handoff: "$@" </dev/null; }
p() { who=$1; shift; ( export AGENT_MAILBOX_ID="$who"; exec "$peer" "$@" ); }
id_of() { jq -r --arg n "$1" '.[$n].id' "$root/registry.json"; }
one_file() { ls "$root/$1/$2"/*.md | tail -n 1; }

# ---- the golden files ----
( cd "$data/handoff" && sha256sum -c SHA256SUMS ) >out 2>&1 && ok 'the golden files are whole' || { note <out; not_ok 'the golden files are whole'; }
cp -r "$data/handoff" "$root"; chmod 700 "$root"
exits 0 'golden mail' h --as Wim inbox --json
same 'Lea Parser: next steps false' "$(jq -r '"\(.from) \(.subject) \(.read)"' out)" 'is read'
says err 'registry says' 'a root that is not where the registry says is reported'
exits 1 'doctor' h doctor --json
grep -q '"code":"root"' out && ok 'reports it too' || { note <out; not_ok 'reports it too'; }
exits 0 'doctor --fix' h doctor --fix
same "$root/worker-7/inbox" "$(jq -r .Wim.inbox "$root/registry.json")" 'writes the paths of this root'
h --as Wim inbox >out 2>err; silent_about err 'registry says' 'and it is quiet then'
exits 0 'the answer' h --as Lea read --peek --json "$(h --as Lea inbox --json 2>/dev/null | jq -r .id)"
same 'Wim Done; no questions. 3b1f9c02-77aa-4c1e-9d5e-0a1b2c3d4e5f' "$(jq -r '"\(.from) \(.body) \(.reply_to)"' out)" 'has its body as it is'
rm -rf "$root"

# ---- we write, the other reads ----
exits 0 'register' h register Ada
exits 0 'register a name with a space' h register 'Old Bob'
exits 0 'and with other letters' h register 'Jürgen'
p x ensure_inbox; p pid-1 ensure_inbox; p pid-1 register Pia >/dev/null
same 'Ada Old Bob Jürgen Pia' "$(p x names | tr '\n' ' ' | sed 's/ $//')" 'the other sees all names'
check 'the registry is JSON' jq -e . "$root/registry.json"
same "$(id_of 'Old Bob')" "$(p x lookup 'Old Bob' | cut -f1)" 'and finds each'
same Jürgen "$(p x whois "$(id_of Jürgen)")" 'both ways'
exits 0 'register with an id' env AGENT_MAILBOX_ID=own-1 "$BIN" --room handoff: register Own
same own-1 "$(id_of Own)" 'takes it, as the skill does'
says out 'AGENT_MAILBOX_ID=own-1' 'and says so'
exits 0 'who has it' env AGENT_MAILBOX_ID=own-1 "$BIN" --room handoff: whoami
says out 'Own' 'is that agent'
exits 4 'an id that leads out of the root' env AGENT_MAILBOX_ID=../own-2 "$BIN" --room handoff: register Out
same null "$(id_of Out)" 'is refused'
h prune Own >/dev/null 2>&1
exits 4 'a name that is taken' h register Ada
exits 4 'one that differs in case' h register ADA
exits 0 'send by name' h --as Ada send Pia -s 'spawn: first words' -m 'Hello.'
mail=$(one_file pid-1 inbox)
same "$(id_of Ada) pid-1" "$(sed -n 's/^from: //p' "$mail") $(sed -n 's/^to: //p' "$mail")" 'has ids in its header'
same "$mail" "$(p pid-1 list)" 'the other lists it'
same "$(id_of Ada)" "$(p pid-1 parent)" 'and finds its parent by it'
exits 0 'why' h --as Ada why "$(h --as Pia inbox --json | jq -r .id)" --json
same 'Pia unread' "$(jq -r '"\(.agent) \(.state)"' out | head -n 1)" 'says in whose mailbox it is'
p pid-1 archive "$mail"
exits 0 'what the other archived' h --as Pia search --json first
same 'true' "$(jq -r .read out)" 'is read for us'
exits 0 'send to a name with a space' h --as Ada send 'Old Bob' -m 'To you.'
same 1 "$(h --as 'Old Bob' inbox --json | wc -l | tr -d ' ')" 'arrives'
exits 0 'also as an address' h --as Ada send Old%20Bob -m 'Again.'
exits 0 'also by id' h --as Ada send "$(id_of 'Old Bob')" -m 'Third.'
same 3 "$(h --as 'Old Bob' inbox --json | wc -l | tr -d ' ')" 'all of it in one mailbox'
same 'To you.|Again.|Third.|' "$(h --as 'Old Bob' inbox --json | jq -r '"\(.id) \(.subject)"' | sort | cut -d' ' -f2- | tr '\n' '|')" 'in the order of their ids'
exits 5 'send to nobody' h --as Ada send Pai -m x
says err 'Pia' 'names who is near'
p pid-9 wait 5 & waiting=$!
sleep 0.2; p pid-9 register Neun >/dev/null; h --as Ada send Neun -m 'wake up' >/dev/null 2>&1
wait $waiting && ok 'the other wakes by our mail' || not_ok 'the other wakes by our mail'

# ---- the other writes, we read ----
printf 'no end' | p pid-1 send "$(id_of Ada)" - 'Question' >/dev/null
p pid-1 send "$(id_of Ada)" /dev/null '?!' >/dev/null
exits 0 'inbox' h --as Ada inbox --json
same 2 "$(wc -l <out | tr -d ' ')" 'has both'
question=$(jq -r 'select(.subject == "Question").id' out)
exits 0 'read' h --as Ada read "$question" --json
same 'Pia no end' "$(jq -r '"\(.from) \(.body)"' out)" 'byte for byte'
same 1 "$(h --as Ada inbox --json | wc -l | tr -d ' ')" 'and it is archived'
asked=$(grep -l '^subject: Question' "$root/$(id_of Ada)/archive"/*.md)
exits 0 'reply' h --as Ada reply "$question" -m 'Yes.'
same "$(sed -n 's/^msg_id: //p' "$asked")" "$(sed -n 's/^reply_to: //p' "$(one_file pid-1 inbox)")" 'names the msg_id that it answers'
exits 0 'mark unread' h --as Ada mark unread "$question"
same 2 "$(h --as Ada inbox --json | wc -l | tr -d ' ')" 'puts it back'
for word in '--priority urgent' '--type task' '--thread x' '--by 2h'; do exits 4 "$word has no place here" h --as Ada send Pia $word -m x; done
exits 0 'a stranger with no name' p stray-1 send "$(id_of Ada)" /dev/null hello
same stray-1 "$(h --as Ada inbox --json | jq -r 'select(.subject == "hello").from')" 'is shown by his id'
p stray-1 ensure_inbox
exits 0 'and can be answered' h --as Ada reply "$(h --as Ada inbox --json | jq -r 'select(.subject == "hello").id')" -m 'Who are you?'
[ -n "$(p stray-1 list)" ] && ok 'he has it' || not_ok 'he has it'
i=0; while [ $i -lt 30 ]; do p pid-1 send many /dev/null burst >/dev/null; i=$((i + 1)); done
same 30 "$(h --as many inbox --json --limit 0 2>/dev/null | wc -l | tr -d ' ')" 'many within a second are all there'

# ---- registries of other hands ----
p pid-2 ensure_inbox; p pid-2 register Gone >/dev/null
p x prune Gone # jq, by the skill's own recipe
same '' "$(p x names)" 'after jq the other finds no name'
h who --json >out 2>&1; grep -q '"Jürgen"\|J%C3%BCrgen' out && ok 'we find them' || { note <out; not_ok 'we find them'; }
exits 0 'our next registration' h register Otto
same 'Ada Old Bob Jürgen Pia Neun Otto' "$(p x names | tr '\n' ' ' | sed 's/ $//')" 'puts the registry right for all'
sed 's/": {"id":"/":   { "id": "/' "$root/registry.json" >spaced && cp spaced "$root/registry.json"
same 'Ada' "$(h who --json | jq -r .name | grep Ada)" 'the layout of the protocol text is read, too'
h register Emil >/dev/null 2>&1; same 7 "$(p x names | wc -l | tr -d ' ')" 'and put right'
jq . "$root/registry.json" >pretty && cp pretty "$root/registry.json"; p x register Wrecker wreck >/dev/null
jq -e . "$root/registry.json" >/dev/null 2>&1 && not_ok 'the other breaks what jq wrote' || ok 'the other breaks what jq wrote'
exits 0 'what is left of it' h who --json
same Wrecker "$(jq -r .name out | grep Wrecker)" 'we read'
exits 0 'and a registration' h register Ada
check 'makes it JSON again' jq -e '.Ada and .Wrecker' "$root/registry.json"

# ---- prune ----
id=$(id_of Ada); h --as Wrecker send Ada -m 'unread' >/dev/null 2>&1
p wreck ensure_inbox; h --as Wrecker send Ada -m 'unread' >/dev/null 2>&1
exits 4 'prune of a mailbox with unread mail' h prune Ada
says err 'unread' 'is refused'
[ -d "$root/$id" ] && ok 'and nothing is gone' || not_ok 'and nothing is gone'
exits 0 'prune --force' h prune --force Ada
[ ! -e "$root/$id" ] && [ "$(id_of Ada)" = null ] && ok 'takes entry and mailbox' || not_ok 'takes entry and mailbox'

# ---- who is who: a session and a terminal are bound as in other rooms ----
s() { CLAUDE_CODE_SESSION_ID=$1; shift; export CLAUDE_CODE_SESSION_ID; h "$@"; rc=$?; unset CLAUDE_CODE_SESSION_ID; return $rc; }
exits 5 'a session that is nobody yet' s g-1 whoami
says err 'mailroom register NAME' 'is told the line to type'
exits 0 'it registers' s g-1 register Greta
says out 'later commands of this session know it' 'and is told that it need not export anything'
says out '^export AGENT_MAILBOX_ID=' 'unless for the functions of the skill'
same Greta "$(s g-1 whoami --json | jq -r .agent)" 'later commands are that agent'
exits 0 'again' s g-1 register Greta --json
same true "$(jq .continued out)" 'it is who it was'
other() { CODEX_THREAD_ID=g-2 "$BIN" --room handoff: "$@" </dev/null; }
exits 4 'another session' other register Greta
says err "takeover 'Greta'" 'cannot have the name by registering'
exits 0 'a name for a child' s g-1 register Kid
same Greta "$(s g-1 whoami --json | jq -r .agent)" 'does not change who the session is'
h --as Kid send Greta -m 'to a session' >/dev/null 2>&1
exits 0 'it reads its mail' s g-1 drain
says out 'to a session' 'with no name given'
same Kid "$(AGENT_MAILBOX_ID=$(id_of Kid) CLAUDE_CODE_SESSION_ID=g-1 "$BIN" --room handoff: whoami --json </dev/null | jq -r .agent)" 'the variable of the skill is nearer'
exits 0 'a takeover' other takeover Greta
same Greta "$(other whoami --json | jq -r .agent)" 'makes the other session that agent'
h prune Greta >/dev/null 2>&1
exits 5 'when the name was pruned' s g-1 whoami
says err "was agent 'Greta', which was pruned" 'the session is told so'
h prune Kid >/dev/null 2>&1
(unset CLAUDE_CODE_SESSION_ID; exec setsid -w sh -c '"$BIN" --room handoff: register Tess && "$BIN" --room handoff: whoami --json; :') </dev/null >out 2>/dev/null
says out '"agent":"Tess"' 'so does a terminal that registered one'
h prune Tess >/dev/null 2>&1

# ---- a shell takes part: mailroom-handoff(5) ----
rm -rf "$root"; for who in alice bob; do p $who-1 ensure_inbox; done; p alice-1 register Alice >/dev/null; p bob-1 register Bob >/dev/null
awk '/^\.Sh/ { by_hand = /BY HAND/ } /^\.Bd -literal/ && by_hand { n++; on = 1; next } /^\.Ed/ { on = 0 } on { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print > ("block." n) }' "$top/man/mailroom-handoff.5"
same 4 "$(ls block.* | wc -l | tr -d ' ')" 'the manual shows how to send, read, answer and register'
by_hand() { ( cd "$root" && sh -eu "$scratch/block.$1" ); }
exits 0 'sending with sh' by_hand 1
same 'Alice from a shell Hello, bob.' "$(h --as Bob read --peek --json "$(h --as Bob inbox --json | jq -r .id)" | jq -r '"\(.from) \(.subject) \(.body)"' | tr -d '\n')" 'is mail for mailroom'
exits 0 'reading with sh' by_hand 2
says out '^Hello, bob\.$' 'shows it'
same 0 "$(h --as Bob inbox --json | wc -l | tr -d ' ')" 'and it is read for mailroom'
exits 0 'answering with sh' by_hand 3
same "Bob $(sed -n 's/^msg_id: //p' "$(one_file bob-1 archive)")" "$(h --as Alice inbox --json | jq -r '"\(.from) \(.reply_to)"')" 'is an answer for mailroom'
exits 0 'registering with sh' by_hand 4
same 'Alice Bob Carol ' "$(p x names | tr '\n' ' ')" 'is seen by the other'
exits 0 'mail for Carol' h --as Alice send Carol -m hi
h doctor --json >out 2>err; silent_about out '"severity":"problem"' 'and doctor finds nothing wrong with any of it'

# ---- a root that is not ours to trust ----
chmod 777 "$root"; exits 4 'a root that others can write to' h who; chmod 700 "$root"
mv "$root" "$root.real"; ln -s "$root.real" "$root"; exits 4 'a root that is a link' h who
rm "$root"; mv "$root.real" "$root"

# ---- ten of them and ten of us ----
rm -rf "$root"; i=0
while [ $i -lt 10 ]; do
	( p "them-$i" ensure_inbox; p "them-$i" register "Them $i" >/dev/null; p "them-$i" send all-of-us /dev/null "from $i" >/dev/null ) &
	( h register "Us $i" >/dev/null 2>&1; AGENT_MAILBOX_ID=us-$i "$BIN" mb send all-of-us - "ours $i" </dev/null >/dev/null ) &
	i=$((i + 1))
done; wait
same 20 "$(h who --json | jq -r .name | grep -c '^\(Us\|Them\)')" '10 and 10 processes at once: 20 names'
same 20 "$(p x names | wc -l | tr -d ' ')" 'for the other, too'
check 'in JSON' jq -e . "$root/registry.json"
same 20 "$(p all-of-us list | wc -l | tr -d ' ')" 'no message is lost'
same 0 "$(find "$root"/.registry.* "$root"/.[!.]*.tmp "$root"/*/tmp -type f ! -name .registry.lock 2>/dev/null | wc -l | tr -d ' ')" 'no temporary file is left'
exits 0 'a mailbox' h register Noa
id=$(id_of Noa); rm -rf "$root/$id/archive"
exits 0 'mail for it' h --as Noa send Noa -m 'no archive yet'
exits 0 'that is read and archived where no archive is yet' h --as Noa drain
check 'is in the archive' sh -c "ls '$root/$id/archive' | grep -q md"
finish
