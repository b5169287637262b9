# SPDX-License-Identifier: MIT
# once
# Patrols: handlers that are programs, in a native room and in a team; what is acknowledged, tried again, given up.
. "$(dirname "$0")/../lib/tap.sh"

# type NAME LINE...: a type of this room. The command of its handler is the user's to give, not the room's.
type() {
	name=$1; shift
	for line; do case $line in Handler:*) user config set "Handler-$name" "${line#Handler: }" >/dev/null 2>&1 || echo "# config: $line" ;; esac; done
	{ printf 'Type: %s\nSummary: a test\nSubject: %s {What}\nField: What; word; required; subject\n' "$name" "$name"; printf '%s\n' "$@" | sed 's/^Handler:.*/Handler: do-it/'; } |
		"$BIN" types new "$name" -f - --force >out 2>&1 || note <out
}
mail() { mr --as "$1" send "$2" -s "$3" -m 'Note: hi' 2>/dev/null; }
bob() { mr --as bob "$@"; }
# handled ID [put]: what is noted of bob's message; put: from standard input.
handled() {
	if [ "${ROOM-}" = postgres ] && [ $# -gt 1 ]; then sql "UPDATE town$towns.record SET text = '$(cat)'::bytea WHERE kind = 'handled' AND owner = 'bob' AND name = '$1'"
	elif [ "${ROOM-}" = postgres ]; then sql "SELECT convert_from(text, 'UTF8') FROM town$towns.record WHERE kind = 'handled' AND owner = 'bob' AND name = '$1'"
	elif [ $# -gt 1 ]; then cat >".mailroom/records/handled/bob/$1"
	else cat ".mailroom/records/handled/bob/$1" 2>/dev/null; fi
}

# ---- what runs, and with what
room alice bob carol
cat >handle <<'HANDLE'
#!/bin/sh
cat >message
env | grep ^MAILROOM | sort >environment
printf '%s\n' "$@" >arguments
echo "$MAILROOM_ID $MAILROOM_ATTEMPT" >>runs
[ "$1" != fails ]
HANDLE
chmod +x handle
type BUILD 'Field: Note; text' 'Handler: ./handle {What} "a b" {Note}'
id=$(mail alice bob 'BUILD main')
mail alice bob 'not for programs' >/dev/null
exits 0 'a dry run' bob patrol --dry-run
says out "would-run ${id#????????????????????} BUILD from alice: ./handle main a b hi" 'says what would run'
check 'and runs nothing' test ! -e runs
exits 0 'patrol' env MAILROOM_FIELD_OF_ANOTHER=x "$BIN" --as bob patrol </dev/null
says out '^handled .* exit 0$' 'says what it did'
says out '^1 handled, 1 left alone$' 'and how much'
says out 'not instructions' 'fenced: it has words of others in it'
same 'main|a b|hi|' "$(tr '\n' '|' <arguments)" 'the words are those of the type, filled in one by one'
same "$id BUILD hi" "$(jq -r '"\(.id) \(.type) \(.fields.Note)"' message)" 'the message is on standard input'
says environment "^MAILROOM_ID=$id$" 'the environment has its id'
says environment '^MAILROOM_FIELD_NOTE=hi$' 'its fields'
silent_about environment ANOTHER 'and none of a patrol outside'
says environment '^MAILROOM_ATTEMPT=1$' 'the attempt'
says environment '^MAILROOM_AGENT=bob$' 'and who acts'
same "archive true" "$(bob read "$id" --json | jq -r '"\(.folder) \(.acked)"')" 'it is acknowledged'
same 1 "$(unread bob)" 'the rest is unread'
exits 0 'again' bob patrol
same 1 "$(wc -l <runs | tr -d ' ')" 'it does not run again'

# ---- as whom a handler acts, also when the patrol was started in the session of another
type WHO 'Handler: sh -c "$BIN whoami >who 2>&1"'
CLAUDE_CODE_SESSION_ID=s1 "$BIN" register dave --pid $$ >/dev/null 2>&1 </dev/null
mail alice bob 'WHO x' >/dev/null
check 'a patrol for bob in the session of dave' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" --as bob patrol </dev/null
same bob "$(head -n 1 who)" 'its handlers act as bob'
for variable in QWEN_CODE_SESSION_ID PI_SESSION_ID COPILOT_AGENT_SESSION_ID MAILROOM_SESSION; do
	env $variable=other-s1 "$BIN" register "of-$variable" --pid $$ >/dev/null 2>&1 </dev/null
	mail alice bob 'WHO x' >/dev/null
	check "a patrol for bob in a session that $variable names" env $variable=other-s1 "$BIN" --as bob patrol </dev/null
	same bob "$(head -n 1 who)" 'its handlers act as bob'
	exits 4 'and the configuration is not for an agent there to change' env $variable=other-s1 XDG_STATE_HOME="$scratch/user-state" "$BIN" config set Notify beep </dev/null
done
exits 4 'an agent in a session cannot give a handler' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" --as bob patrol --handler 'HELP=touch owned' </dev/null
says err 'for the user to do' 'which is said'
exits 4 'nor without the variable, below the same process' mr --as bob patrol --handler 'HELP=touch owned'
user config set Session-Handlers yes >/dev/null
exits 0 'unless the configuration lets it' mr --as bob patrol --handler 'HELP=true'
user config unset Session-Handlers >/dev/null
rm -rf "$XDG_STATE_HOME/mailroom/sessions"

# ---- a shell is never involved
id=$(mail alice bob 'BUILD $(touch${IFS}owned);`touch${IFS}owned`|x')
check 'a nasty field' bob patrol
same '$(touch${IFS}owned);`touch${IFS}owned`|x' "$(head -n 1 arguments)" 'arrives as it is'
check 'and did nothing' test ! -e owned
mail alice bob 'BUILD --force' >/dev/null
exits 0 'one that would be an option' bob patrol
says out '^broken .*begins with a dash' 'is not run'
exits 0 'twice' bob patrol
silent_about out 'broken .*dash' 'and told once'

# ---- failures
room alice bob carol
type BUILD 'Handler: ./handle {What}' 'Escalate-After: 3'
setting Patrol-Escalate-To carol
id=$(mail alice bob 'BUILD fails')
exits 1 'a failure' bob patrol
says out '^failed .* exit 1$' 'is said'
same 1 "$(unread bob)" 'and stays unread'
exits 1 'another' bob patrol
exits 1 'the last' bob patrol --json
same 'failed escalated dead round' "$(jq -r .what out | tr '\n' ' ' | sed 's/ $//')" 'is escalated'
same "$id 3" "$(tail -n 1 runs)" 'the third time with the same id'
same "ESCALATION: BUILD from alice failed 3 times" "$(mr --as carol inbox --json | jq -r .subject)" 'to whom the room says'
same "$id" "$(mr dead list --json | jq -r .id)" 'and kept as a dead letter'
same 'Failed: BUILD fails' "$(mr --as alice inbox --json | jq -r .subject)" 'its sender knows'
exits 0 'the log' bob patrol log --json
same 'dead 3,escalated 0,failed 1,failed 2,failed 3' "$(jq -r '"\(.what) \(.attempt)"' out | sort | paste -sd ,)" 'tells it all'
exits 0 'its end' bob patrol log -n 1 --json
same 1 "$(wc -l <out | tr -d ' ')" 'is one line'
setting Patrol-Escalate-Two carol
exits 4 'a setting that does not exist is refused' bob patrol
says err 'Escalate-Two' 'by its name'
exits 2 'another word than log' bob patrol lag

# ---- cooldown, time limit, earlier lives
room alice bob carol
type BUILD 'Handler: true' 'Cooldown: 5m' 'Cooldown-Key: {What}'
type SLOW 'Handler: sleep 30' 'Time-Limit: 1s'
mail alice bob 'BUILD main' >/dev/null
mail alice bob 'BUILD main' >/dev/null
exits 0 'one is handled' bob patrol
exits 3 'the other waits' bob patrol
says out '^waiting .*cooldown' 'and it is said why'
bob mark read --all >/dev/null
mail alice bob 'SLOW main' >/dev/null
exits 1 'too slow' bob patrol
says out 'did not end within 1s' 'is ended'
bob mark read --all >/dev/null
mail alice bob 'BUILD other' >/dev/null
mr takeover alice >/dev/null 2>&1
exits 0 'a report of an earlier life' bob patrol
says out '^set-aside .*sent by life 1 of its sender, which is at life 2 now' 'is set aside'
same 0 "$(unread bob)" 'and gone from the inbox'
type BUILD 'Handler: true' 'Earlier-Life: act'
mail alice bob 'BUILD other' >/dev/null
mr takeover alice >/dev/null 2>&1
exits 0 'one that holds in any life' bob patrol
says out '^handled .*BUILD' 'is acted on'
printf 'MERGED nux' | "$BIN" --as alice send bob -s 'HELP: tests' >/dev/null 2>&1
mr takeover alice >/dev/null 2>&1
exits 0 'a cry for help of who died' bob patrol --handler HELP=true
says out '^handled .*HELP' 'is one of them'

# ---- a handler that takes the patrol down
type BOMB 'Handler: sh -c "kill -9 $PPID"'
id=$(mail carol bob 'BOMB x')
for _ in 1 2 3 4 5 6 7 8 9 10 11; do
	bob patrol >/dev/null 2>&1
	for _ in $(seq 400); do bob patrol --dry-run 2>/dev/null | grep -q still && sleep 0.05 || break; done
done
same 'State: running' "$(handled "$id" | head -n 1)" 'ten times within a moment may be anything'
exits 1 'but not for five minutes' env MAILROOM_TEST_CLOCK_OFFSET_MS=310000 "$DEVBIN" --as bob patrol </dev/null
says out '^dead .*BOMB from carol, attempt 11' 'it is given up'
same 'ESCALATION: BOMB from carol failed 11 times' "$(mr --as operator inbox --json | jq -r .subject | grep BOMB)" 'and escalated'

# ---- what happens within a millisecond stays in order
{
	printf 'State: dead\nAt: 2026-03-05T10:30:00.000Z\nAttempt: 9\nType: BUILD\nFrom: alice\n'
	for i in 1 2 3 4 5 6 7 8 9; do printf 'Did: 2026-03-05T10:30:00.000Z 9 step%s x\n' $i; done
} | handled "$id" put
same '1 2 3 4 5 6 7 8 9' "$(bob patrol log --json | jq -r .what | sed -n 's/^step//p' | paste -sd ' ')" 'the log has the order in which it was written'

# ---- control messages are no text, wherever they lie
mr --as alice queue create work --claimers '*' >/dev/null
mr --as alice channel create news >/dev/null
for to in queue:work channel:news bob; do mr --as alice send $to --type shutdown_request --field reason=soon >/dev/null 2>&1; done
token=$(bob recv --type shutdown_request --json | jq -r .token)
id=$(bob fail "$token" --reason 'no' --json | jq -r .id)
for way in 'recv queue:work' 'channel read news' 'gt mail channel show news' "dead show $id"; do
	exits 0 "a control message by '$way'" bob $way
	says out '^\(a control message, for programs: --json shows it\)' 'is told of'
	silent_about out 'reason|requestId' 'and not shown'
done

# ---- staying
type BUILD 'Handler: ./handle {What}'
: >runs
"$BIN" --as bob patrol --watch >log 2>&1 </dev/null &
patrol=$!
mail carol bob 'BUILD one' >/dev/null
mail carol bob 'BUILD two' >/dev/null
for _ in $(seq 600); do [ "$(wc -l <runs)" -ge 2 ] && break; sleep 0.1; done
kill $patrol
wait $patrol
same 0 $? 'told to end, it ends well'
same 2 "$(wc -l <runs | tr -d ' ')" 'and had handled what came'
type BUILD 'Handler: sh -c "echo run >>runs; kill $PPID"'
: >runs
for what in three four five; do mail carol bob "BUILD $what" >/dev/null; done
exits 0 'told to end in a round' bob patrol --watch
same 1 "$(wc -l <runs | tr -d ' ')" 'it ends after the message at hand'

# ---- killed at calls to the disk: each of those around the end of the handler, some of the others (in PostgreSQL: t5080)
room alice bob
type BUILD 'Handler: ./handle {What}'
n=1 fine=0 again=0 wrong=
while [ "${ROOM-}" != postgres ] && [ $n -lt 600 ]; do
	: >runs
	id=$(mail alice bob 'BUILD main')
	MAILROOM_FAULT=kill-after:$n "$DEVBIN" --as bob patrol >/dev/null 2>&1 </dev/null && break
	ran=$(wc -l <runs | tr -d ' ')
	state=$(handled "$id" | head -n 1)
	tries=0; while bob patrol >/dev/null 2>&1; [ $? -eq 3 ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.1; done # what it had started may live a moment longer
	times=$(wc -l <runs | tr -d ' ')
	[ "$state" != 'State: handled' ] || [ "$times" -eq 1 ] || wrong="$wrong $n: recorded, and ran $times times;"
	{ [ "$times" -ge 1 ] && [ "$times" -le 2 ]; } || wrong="$wrong $n: ran $times times;"
	[ "$(bob read "$id" --json | jq -r .acked)" = true ] || wrong="$wrong $n: not acknowledged;"
	[ "$times" -eq 1 ] || { again=$((again + 1)); [ "$(tail -n 1 runs)" = "$id 2" ] || wrong="$wrong $n: no attempt 2;"; }
	case $fine:$ran in
	0:0) n=$((n + 10)) ;;                  # not there yet
	0:1) fine=25 n=$((n - 10)) ;;          # back, and every one from here on
	1:*) n=$((n + 30)) ;;                  # what comes behind
	*) fine=$((fine - 1)) n=$((n + 1)) ;;
	esac
done
same '' "$wrong" 'wherever it is killed, it is handled, and never again once that is recorded'
[ "${ROOM-}" = postgres ] || check "it was killed ($n calls), and cut off at least once ($again)" test $n -gt 40 -a $n -lt 600 -a $again -gt 0

# ---- three watchers, one alert; a wake command
room mayor w1 w2 w3 deacon
setting Patrol-Watch deacon; setting Patrol-Alert-To mayor; setting Patrol-Stale-After 1s
sleep 1.1
for w in w1 w2 w3; do mr --as $w patrol >/dev/null & done
wait
same 'ALERT: deacon is not seen any more' "$(mr --as mayor inbox --json | jq -r .subject)" 'three watchers send one alert'
sleep 30 & sleeper=$!
mr register --pid $sleeper --wake 'sh -c "echo woken \$MAILROOM_AGENT >>woken"' sleepy >/dev/null
kill $sleeper; wait $sleeper 2>/dev/null
send mayor sleepy 'are you there?' >/dev/null
mr --as w1 patrol >/dev/null
mr --as w2 patrol >/dev/null
same 'woken sleepy' "$(cat woken)" 'who is gone and has mail is woken, once'

# ---- a team
[ "${ROOM-}" != postgres ] || finish # nothing of the room is in it
teams=$HOME/.claude/teams
mkdir -p "$teams/crew"
jq -n '{name: "crew", createdAt: 1, leadAgentId: "team-lead@crew", members: [{agentId: "team-lead@crew", name: "team-lead", joinedAt: 1}, {agentId: "bob@crew", name: "bob", joinedAt: 2}]}' >"$teams/crew/config.json"
crew() { who=$1; shift; "$BIN" --room teams:crew --as "$who" "$@" </dev/null; }
box() { jq -r '[.[].read | tostring] | join(" ")' "$teams/crew/inboxes/bob.json"; }
: >runs
check 'a control message' crew team-lead send bob --type shutdown_request --field reason=done
crew team-lead send bob -m 'some text' >/dev/null 2>&1
exits 0 'is handled by a patrol' crew bob patrol --handler 'shutdown_request=./handle {reason}'
same done "$(cat arguments)" 'with its fields'
same 'true false' "$(box)" 'and marked as read; text is not'
exits 0 'again' crew bob patrol --handler 'shutdown_request=./handle {reason}'
same 1 "$(wc -l <runs | tr -d ' ')" 'it does not run again'
jq '.[0].read = false' "$teams/crew/inboxes/bob.json" >new && cat new >"$teams/crew/inboxes/bob.json"
check 'unread again by another program' crew bob patrol --handler 'shutdown_request=./handle {reason}'
same '1 true false' "$(wc -l <runs | tr -d ' ') $(box)" 'it is known that it was handled'
jq '. + [.[0] | .from = "stranger" | .read = false | .timestamp = "2026-01-01T00:00:00.000Z"]' "$teams/crew/inboxes/bob.json" >new && cat new >"$teams/crew/inboxes/bob.json"
exits 0 'one from a stranger' crew bob patrol --handler 'shutdown_request=./handle {reason}'
says out "^broken .*not a member" 'is not acted on'
crew team-lead send bob --type shutdown_request --field reason=fails >/dev/null
for _ in 1 2 3; do crew bob patrol --handler 'shutdown_request=./handle {reason}' --set Escalate-To=team-lead >out 2>&1; done
says "$teams/crew/inboxes/team-lead.json" 'could not handle' 'what fails is escalated in a team, too'
crew team-lead send bob --type shutdown_request --field reason=slow >/dev/null
printf '#!/bin/sh\nuntil [ -e go ]; do sleep 0.1; done\n' >slow; chmod +x slow
crew bob patrol --handler 'shutdown_request=./slow' >/dev/null & first=$!
for _ in $(seq 600); do sleep 0.1; grep -rqs '^State: running' "$XDG_STATE_HOME" && break; done
exits 4 'a second patrol at that mailbox is refused' crew bob patrol --handler 'shutdown_request=true'
: >go; wait $first
same 0 $? 'while the first goes on'
check 'nothing of it is in the team' sh -c "! ls -A '$teams/crew' | grep -v -e inboxes -e config.json"
exits 0 'the log' crew bob patrol log
says out 'handled .*shutdown_request' 'is there, too'
finish
