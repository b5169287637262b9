# once
# Every command in the rooms of other programs: it works, or exits with 4 and a sentence and has changed nothing.
. "$(dirname "$0")/../lib/tap.sh"

# make KIND: a room with alice and bob in r, and mail from alice to bob, ID, which bob has not read.
make() {
	rm -rf r && mkdir -p r/blue r/alice/.mailbox/inbox r/bob/.mailbox/inbox r/alice/.mailbox/scratch r/bob/.mailbox/scratch
	case $1 in
	teams)
		MAILROOM=teams:$scratch/r/blue
		printf '{\n  "name": "blue",\n  "members": [\n    { "name": "alice" },\n    { "name": "bob" },\n    { "name": "lead" }\n  ]\n}' >r/blue/config.json ;;
	handoff)
		MAILROOM=handoff:$scratch/r/hand
		mr --room "$MAILROOM" register alice >/dev/null && mr --room "$MAILROOM" register bob >/dev/null ;;
	*) MAILROOM=$1:$scratch/r ;;
	esac
	export MAILROOM
	ID=$(mr --as alice send bob -m 'the first') || { echo "Bail out! no mail in a $1 room"; exit 1; }
}
state() { find r -type f -printf '%p %s %T@\n'; }

# teams, chipset, handoff, workspace: the exit codes; then the command. Codes in the order of the kinds.
cat >rows <<'EOF'
0000 where
0000 where --json
5555 whoami
0000 --as bob whoami
0000 status
0000 who
0000 who --json
0404 register carol
4444 register bob
0404 takeover bob
0404 prune lead|prune nobody|prune alice|prune x
4444 prune bob
4444 prune --stale 7d
0000 --as alice send bob -m hi
0000 --as alice send bob -s subject -m hi
4044 --as alice send bob --type work -m hi
0000 --as alice send bob --type HELP --field Topic=lost --field Problem=all
4044 --as alice send bob --type completion_report -m hi --force
0000 types list
0000 types show HELP
4444 types new OURS
4044 --as alice send bob --priority urgent -m hi
4444 --as alice send bob --priority high -m hi
4440 --as alice send bob --thread deploy -m hi
4444 --as alice send bob --cc alice -m hi
4444 --as alice send bob --by 1h -m hi
4444 --as alice send bob --key k -m hi
4444 --as alice send bob --replace-key k -m hi
4444 --as alice send bob --header X-Mood:well -m hi
4444 --as alice send queue:q -m hi
4444 --as alice send channel:c -m hi
4444 --as alice send group:g -m hi
4440 --as alice send bob --reply-path . -m hi
0000 --as alice send bob -n -m hi
0000 --as alice send @all -m hi
4444 --as alice send you there
5055 --as alice send nobody -m hi
0000 --as bob reply ID -m answer
4444 --as bob reply ID --key k -m answer
0000 --as bob inbox
0000 --as bob inbox --all --json
0000 --as bob inbox --from alice
0000 --as bob inbox --type HELP
4044 --as bob inbox --priority urgent
4440 --as bob inbox --thread ID
0055 --as stranger inbox
0000 --as bob read ID
0000 --as bob read --peek ID
0000 --as bob read --raw ID
5555 --as bob read 01m7f5d9v7a90dbbv9vq6m4ym2
4444 --as bob recv
4444 --as bob recv queue:q
4444 --as bob done ID
4444 --as bob release ID
4444 --as bob fail ID --reason no
4444 --as bob extend ID --lease 1h
0000 --as bob mark read ID
0000 --as bob mark read --at 0
5555 --as bob mark read --at 7
2222 --as bob mark read --at x
0000 --as bob mark read --all
0000 --as bob mark read --from alice
4444 --as bob mark pinned ID
4004 --as bob archive --all-read
4004 --as bob archive ID --include-unread
0444 --as bob clear
0000 --as bob drain
0000 --as bob drain --json
0000 --as bob wait --timeout 0
3333 --as alice wait --timeout 0
4333 --as alice wait --id ID --timeout 0
4440 --as bob thread ID
4440 --as alice sent
0000 top --once
0000 top --json
0000 picture --since 1h --text
4440 picture ID
0000 --as bob search first
0000 --as alice why ID
4444 --as alice purge ID --reason test
0000 --as alice resolve bob
4444 --as alice group list
4444 --as alice group create g bob
4444 --as alice queue list
4444 --as alice queue create q
4444 --as alice channel list
4444 --as alice channel create c
4444 dead list
4444 --as alice dead drop ID --force
4444 index
4444 index --drop
0000 doctor
0000 stats
0000 stats --json
0000 describe
0000 --as bob check
3333 --as alice check
0000 --as bob check --inject
0000 --as bob check --inject --format teams-xml
4444 --as bob dnd on
4444 --as bob dnd status
4044 --as alice nudge bob -m hi
4044 --as alice nudge bob --mode queue -m hi
4444 --as alice nudge bob --urgent -m hi
4444 --as alice escalate -s high trouble
4444 escalate list
0000 --as alice handoff -m notes
0000 lint
0000 lint --policy gastown
0000 --as bob patrol
0000 --as bob patrol --dry-run
0000 --as bob patrol log
0000 --as bob gt mail inbox
0000 --as alice gt mail send bob -s hi -m hi
0000 --as bob gt mail read ID
0000 --as bob gt mail reply ID -m hi
0000 --as bob gt mail mark-read ID
1001 --as bob gt mail archive ID
0000 --as bob gt mail check --inject
1111 --as bob gt mail claim q
1111 --as bob gt mail channel
1011 --as alice gt nudge bob hi
1111 --as alice gt escalate -s high trouble
1111 --as bob gt dnd on
0000 --as alice gt handoff -m notes
1111 --as alice gt sling gt-1 gp
1111 --as alice gt deacon redispatch gt-1
EOF

kinds='teams chipset handoff workspace'
place=0
for kind in $kinds; do
	place=$((place + 1))
	make $kind
	before=$(state)
	while read -r codes words; do
		want=$(echo "$codes" | cut -c $place)
		case $words in *'|'*) words=$(echo "$words" | cut -d '|' -f $place) ;; esac
		words=$(echo "$words" | sed "s/ID/$ID/")
		set -- $words
		case "$*" in *'send you there'*) set -- --as alice send 'you there' ;; esac
		mr "$@" >out 2>err
		got=$?
		after=$(state)
		if [ $got -ne "$want" ]; then
			echo "# exit $got, not $want"; note <out; note <err; not_ok "$kind: $words"
		elif [ $got -ne 0 ] && [ $got -ne 3 ] && { ! grep -q '^mailroom: .' err || [ "$before" != "$after" ]; }; then
			note <err; [ "$before" = "$after" ] || echo '# the room was changed'; not_ok "$kind: $words: refused with a sentence, nothing changed"
		else
			ok "$kind: $words exits with $want"
		fi
		[ "$before" = "$after" ] || { make $kind; before=$(state); }
	done <rows
done

# every command of help is tried above, or in a test of its own
mr help | sed -n 's/^  \([a-z]*\)   *[a-z].*/\1/p' | grep -v '^mailroom$' | sort >help
{ sed 's/^....//; s/--as [a-z]*//' rows | awk '{ print $1 }'; printf '%s\n' init trust config link unlink carry export import hook mcp peer selftest sendmail serve setup token; } | sort -u >tried
same '' "$(comm -23 help tried | tr '\n' ' ')" 'no command was forgotten'

# ---- who am I ----
make teams
mkdir -p "$HOME/.claude/teams" && cp -r r/blue "$HOME/.claude/teams/"
MAILROOM=teams: CLAUDE_CODE_TEAM_NAME=blue CLAUDE_CODE_AGENT_NAME=bob
export CLAUDE_CODE_TEAM_NAME CLAUDE_CODE_AGENT_NAME
same "bob blue" "$(mr whoami --json | jq -r '"\(.agent) \(.room)"')" 'a member of a team is known by its variables'
CLAUDE_CODE_AGENT_COLOR=green mr send alice -m 'in green' >/dev/null 2>&1
export CLAUDE_CODE_AGENT_COLOR=green
mr send alice --header 'Color: red' -m 'in red' >/dev/null
unset CLAUDE_CODE_AGENT_COLOR
mr send alice -m plain >/dev/null
same 'green red null' "$(jq -r '[.[].color] | map(tostring) | join(" ")' "$HOME/.claude/teams/blue/inboxes/alice.json")" 'its colour goes with its mail, unless told otherwise'
unset CLAUDE_CODE_TEAM_NAME CLAUDE_CODE_AGENT_NAME
make teams
exits 0 'register appends a member' mr register 'Old Bob'
same 'Old Bob' "$(jq -r '.members[-1].name' r/blue/config.json)" 'by its own name'
exits 0 'a name with a blank is a recipient' mr --as 'Old Bob' send 'Old Bob' -m 'to myself'
same "$(cat out)" "$(mr --as 'Old Bob' inbox --json | jq -r .id)" 'and reads its mail'
mr --as lead send @all -m 'to all' --json >out
same 'Old%20Bob alice bob' "$(jq -r '.to | sort | join(" ")' out)" '@all is every member but the sender'
: >r/blue/inboxes/stray.json
mr --as lead send @all -m 'to all' --json >out
same 'Old%20Bob alice bob' "$(jq -r '.to | sort | join(" ")' out)" 'and nobody who only has an inbox'
mr --as bob clear --json >out
same '3' "$(jq -r .removed out)" 'clear says how much it removed'
exits 0 'clear where there is no inbox' mr --as nobody clear
check 'makes none' test ! -e r/blue/inboxes/nobody.json

make handoff
mr register carol >out
same "$(jq -r .carol.id r/hand/registry.json)" "$(sed -n 's/^export AGENT_MAILBOX_ID=//p' out)" 'register prints the id of the mailbox'
mr takeover bob >out
eval "$(grep ^export out)"
same bob "$(mr whoami --json | jq -r .agent)" 'takeover prints it too, and it is all that later commands need'
same 1 "$(mr inbox --json | wc -l | tr -d ' ')" 'to read the mail'
unset AGENT_MAILBOX_ID
exits 4 'an agent with unread mail is not pruned' mr prune bob
exits 0 'but with --force' mr prune bob --force
says out '1 unread message deleted' 'and that is said'
exits 5 'then it is nobody' mr --as alice send bob -m hi

# ---- answers ----
for kind in chipset handoff workspace; do
	make $kind
	mr --as bob reply "$ID" -m 'the answer' >/dev/null
	mr --as bob send alice -m 'something else' >/dev/null
	same 1 "$(mr --as alice wait --id "$ID" --timeout 0 --json | wc -l | tr -d ' ')" "$kind: wait --id waits for the answer, not for other mail"
done

# ---- a client without a mailbox ----
make workspace
MAILROOM=workspace:$scratch/r/bob
mkdir client
printf '%s\n' "$scratch/client" >r/bob/.mailbox/reply-paths
id=$(mr send bob --reply-path client -m 'which port?')
exits 3 'no answer yet' mr wait --id "$id" --timeout 0
mr reply "$id" -m 8081 >/dev/null
exits 1 'an answer that stdout did not take' sh -c "'$BIN' wait --id $id --timeout 0 --json >&-"
exits 0 'is still there' mr wait --id "$id" --timeout 60s
says out '^8081' 'and is shown'
same '' "$(ls client)" 'then it is gone'
id=$(mr send bob --reply-path client -m 'and now?')
mr reply "$id" -m 8082 >/dev/null
request=$(ls client)
rm -rf state # nothing is remembered
exits 0 'where it comes can be said, too' mr wait --id "$request" --reply-path client --timeout 0
finish
