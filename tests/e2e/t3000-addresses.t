# What addresses mean, from the command line: forms, order, ambiguity, spellings, near names.
. "$(dirname "$0")/../lib/tap.sh"

targets() { mr --as alice resolve "$1" --json 2>err | jq -r '[.targets[]]|sort|join(" ")'; }

room alice bob carol mayor deacon deacon/dogs/rex green/witness blue/witness green/refinery green/crew/max green/polecats/nux

# ---- resolve explains ----
exits 0 'resolve an agent' mr --as alice resolve bob
says out "^agent 'bob': 1 recipient" 'says what it is'
says out '^  bob$' 'and who gets the mail'
exits 0 'resolve a pattern' mr --as alice resolve @witnesses
says out "^pattern '@witnesses': 2 recipients" 'says how many'
says out "means \*/witness" 'and what it stands for'
exits 0 'with --json' mr --as alice resolve green/max --json
same 'agent green/crew/max green/crew/max' "$(jq -r '"\(.form) \(.name) \(.targets[0])"' out)" 'form, name and targets'
says out 'another spelling' 'and the trail'
exits 0 'nobody in particular may ask' mr resolve @all
says out '^  alice$' 'and nobody is left out'
exits 5 'an unknown sender may not' mr --as nobody resolve bob
exits 5 'an unknown address' mr --as alice resolve green/nobody
says err 'no agent .green/nobody' 'is named'
exits 5 'a misspelled one' mr --as alice resolve caroll
says err "'carol'" 'comes with the near name'
exits 5 'several addresses' mr --as alice resolve bob xyzzy carol
same 2 "$(grep -c '^agent' out)" 'are answered one by one'
exits 2 'resolve without an address' mr resolve
mr --as alice resolve @nonsense --json >out 2>err
same not-found "$(jq -r .error.code err)" 'the error is JSON too'

# ---- forms ----
same 'blue/witness green/witness' "$(targets '*/witness')" 'a star is one part'
same 'bob carol deacon mayor' "$(targets @town)" '@town'
same 'operator' "$(targets @overseer)" '@overseer'
same 'green/refinery' "$(targets @refineries)" '@refineries'
same 'deacon' "$(targets @deacons)" '@deacons'
same 'deacon/dogs/rex' "$(targets @dogs)" '@dogs'
same 'green/crew/max' "$(targets @crew)" '@crew'
same 'green/polecats/nux' "$(targets @polecats/green)" '@polecats/RIG'
same 'green/crew/max green/polecats/nux green/refinery green/witness' "$(targets @rig/green)" '@rig/RIG'
exits 5 'a wildcard without a match' mr --as alice send '*/nobody' -m hi
exits 4 'half a star' mr --as alice send 'gr*/witness' -m hi
setting Pattern-heads 'mayor, */witness'
same 'blue/witness green/witness mayor' "$(targets @heads)" 'a pattern of the room'

# ---- spellings meet in one mailbox ----
for to in mayor mayor/ green/mayor; do mr --as alice send "$to" -m "to $to" >/dev/null 2>&1; done
same 3 "$(unread mayor)" 'mayor, mayor/ and rig/mayor are one mailbox'
for to in green/max green/crew/max green/polecats/max; do mr --as alice send "$to" -m "to $to" >/dev/null 2>&1; done
same 3 "$(unread green/crew/max)" 'rig/name, rig/crew/name and rig/polecats/name too'
exits 0 '--as in another spelling' mr --as green/max whoami --json
same green/crew/max "$(jq -r .agent out)" 'is the agent that mail to it reaches'
exits 0 'and so is the variable' env MAILROOM_AGENT=green/polecats/max "$BIN" whoami --json
same green/crew/max "$(jq -r .agent out)" 'of an environment'
exits 5 '--as of nobody' mr --as green/nobody whoami
mr register green/polecats/max >/dev/null 2>&1
exits 4 '--as that is short for two' mr --as green/max whoami
exits 4 'with two such workers' mr --as alice send green/max -m hi
says err "'green/crew/max', 'green/polecats/max'" 'both are named'
same 3 "$(unread green/crew/max)" 'and nothing is stored'

# ---- one name, several kinds ----
exits 4 'a group with the name of an agent' mr --as alice group create bob carol
says err 'an agent has that name' 'is refused'
exits 4 'so is a queue' mr --as alice queue create bob
exits 4 'and a channel' mr --as alice channel create bob
for word in all witnesses operator; do
	exits 4 "a group '$word'" mr --as alice group create $word bob
	says err "'@$word' already has a meaning" 'would change what a pattern means'
done
exits 4 'a queue called as a pattern' mr --as alice queue create town
mkdir -p .mailroom/groups
printf 'Name: bob\nMember: carol\n' >.mailroom/groups/bob # as an older version let it be
exits 4 'an ambiguous name' mr --as alice send bob -m hi
says err 'agent:bob, group:bob' 'lists the forms that are not'
exits 4 'resolve says the same' mr --as alice resolve bob
exits 0 'agent:' mr --as alice send agent:bob -m 'to the agent'
exits 0 'group:' mr --as alice send group:bob -m 'to the group'
same '1 1' "$(unread bob) $(unread carol)" 'each goes where it says'
exits 0 'an answer' mr --as bob send alice -m question
id=$(cat out)
exits 0 'goes to the agent, not to the group' mr --as alice reply "$id" -m answer
same '2 1' "$(unread bob) $(unread carol)" 'as it should'

# ---- gastown, appendix B 1: subjects and bodies ----
exits 0 'a subject that looks like an option' mr --as alice send carol -s --help -m 'body'
id=$(cat out)
same '--help' "$(mr --as carol read --peek "$id" --json | jq -r .subject)" 'is a subject'
exits 0 'an empty subject' mr --as alice send carol -s '' -m 'first line'
same 'first line' "$(mr --as carol read --peek "$(cat out)" --json | jq -r .subject)" 'becomes the first line'
{ i=0; while [ $i -lt 511 ]; do printf x; i=$((i + 1)); done; printf 'ä "$HOME" '\''q'\'' `id`\n\n$(id)\n'; i=0
	while [ $i -lt 600 ]; do printf 'line %04d\n' $i; i=$((i + 1)); done; } >text
exits 0 'a long body from stdin' sh -c '"$BIN" --as alice send carol <text'
mr --as carol read --peek "$(cat out)" --json >out
jq -j .body out >body
if cmp -s text body; then ok 'with quotes, $, backticks and UTF-8 at byte 512 arrives as it was'; else not_ok 'with quotes, $, backticks and UTF-8 at byte 512 arrives as it was'; fi

# ---- a time to wait for ----
exits 4 '--not-before without a queue' mr --as alice send carol --not-before 1h -m later
says err 'work queue' 'is refused with why'
exits 2 '--not-before with no time' mr --as alice send carol --not-before soon -m later
mr --as alice queue create work >/dev/null 2>&1
exits 4 'with a queue and an agent' mr --as alice send queue:work carol --not-before 2099-01-01T00:00:00Z -m later
says err "'carol' is not one" 'too: the agent would have it at once'
exits 0 'to a queue it is taken' mr --as alice send queue:work --not-before 2099-01-01T00:00:00Z -m later
exits 4 '--replace-key to a queue' mr --as alice send queue:work --replace-key k -m status
says err 'does nothing' 'is refused, not ignored'
check 'and stands in the message as a header' grep -rqx 'Mailroom-Not-Before: 2099-01-01T00:00:00.000Z' .mailroom/queues/work
exits 0 'so is a duration' mr --as alice send work --not-before 1h -m later

# ---- queues and channels ----
mr --as alice queue create green/builds >/dev/null 2>&1
mr --as alice channel create news >/dev/null 2>&1
mr --as bob channel subscribe news >/dev/null 2>&1
same 'queue:work' "$(targets work)" 'the bare name of a queue'
same 'queue:green/builds' "$(targets queue:green/builds)" 'the queue of a rig'
exits 5 'which needs its prefix' mr --as alice resolve green/builds
says err "'queue:green/builds'" 'and says so'
same 'bob channel:news' "$(targets announce:news)" 'a channel and its subscribers'
mr --as alice queue create news >/dev/null 2>&1
exits 4 'a queue and a channel of one name' mr --as alice send news -m hi
says err 'queue:news, channel:news' 'are told apart by their prefixes'
mr --as alice group create mixed agent:bob queue:work channel:news >/dev/null 2>&1
same 'bob channel:news queue:work' "$(targets mixed)" 'a group may have them as members'
exits 0 'sending to it' mr --as alice send mixed -m 'to all kinds'
same 1 "$(grep -rl 'to all kinds' .mailroom/agents/bob/new | wc -l)" 'reaches bob once'
mr --as alice queue close work >/dev/null 2>&1
exits 4 'a closed queue' mr --as alice send queue:work -m hi
says err 'closed' 'refuses mail'
exits 0 'a group with it' mr --as alice send mixed -m hi
says err "member 'queue:work' of group 'mixed': queue 'work' is closed" 'says so and goes on'

finish
