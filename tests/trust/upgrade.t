# SPDX-License-Identifier: MIT
# once
# A room made by the build before: what stops working says so, once, with one command that mends it. And `trust` and `config`
# as a user meets them.
. "$(dirname "$0")/../lib/tap.sh"

# tty COMMAND ANSWER: the command at a terminal, with that answer typed.
tty() { printf '%s\n' "$2" | script -q -e -c "$1" typescript >/dev/null 2>&1; rc=$?; tr -d '\r' <typescript >out; return $rc; }
# old: a room as the earlier build wrote it, with a command or a link wherever one could stand.
old() {
	room alice bob
	mkdir -p blue && user init --name blue ./blue >/dev/null 2>&1
	"$BIN" --room blue register carol >/dev/null 2>&1 </dev/null
	user link blue ./blue --name alice= >/dev/null 2>&1
	sed -i 's/^Role:.*/Role: stands for alice of another room/' blue/.mailroom/agents/alice/agent
	sed -i '/^Identity:/d' .mailroom/room
	printf 'Notify: touch %s/notified\nPatrol-Handler: HELP touch %s/handled\n' "$scratch" "$scratch" >>.mailroom/room
	mkdir -p .mailroom/types
	printf 'Type: BUILD\nSummary: x\nSubject: BUILD {What}\nField: What; word; required; subject\nHandler: touch %s/built\n' "$scratch" >.mailroom/types/BUILD
	echo "Wake: touch $scratch/woken" >>.mailroom/agents/bob/agent
	rm -rf "$XDG_CONFIG_HOME"
}

# ---- without a terminal: refused, with the line to type
mkdir one && cd one && old
exits 4 'a room of the build before is not trusted by itself' mr --as alice inbox
says err "mailroom trust '$PWD/.mailroom'" 'the line to type is in the error'
exits 4 'as JSON' mr --as alice inbox --json
same untrusted "$(jq -r .error.code err)" 'with a code of its own'
exits 0 'named, it works' mr --room . --as alice inbox
exits 0 'send to the operator' mr --room . --as alice send operator -m x
says err 'mailroom config adopt' 'the Notify: that does not run any more is told'
exits 0 'again' mr --room . --as alice send operator -m x
silent_about err 'config adopt' 'once'
mr --room . doctor >out
for line in 'Notify: touch' 'Patrol-Handler: HELP' 'Wake: touch' 'Handler: touch' 'Room: maildir'; do says out "$line.*has no effect" "doctor tells of '$line'"; done
says out 'mailroom config adopt' 'with the command that moves them'

# ---- trust, at a terminal
exits 4 'an agent cannot trust it' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" trust
tty "'$BIN' --as alice inbox" n; same 4 $? 'a terminal is asked'
says out 'Trust it from now on\? \[y/N\]' 'whether it is known'
exits 4 'no is no' mr --as alice inbox
tty "'$BIN' --as alice inbox" y && ok 'yes is yes' || { note <out; not_ok 'yes is yes'; }
says out '[0-9] lines? in this room' 'and tells how much of it has no effect'
exits 0 'from then on it is used' mr --as alice inbox
says .mailroom/room '^Identity: [0-9a-f]{32}$' 'it has an identity now'
same 600 "$(stat -c %a "$XDG_CONFIG_HOME"/mailroom/rooms/????????*)" 'the record is for this user alone'
exits 0 'where' mr where --json
same 'mailroom trust' "$(jq -r .trust out)" 'says by what it is trusted'
exits 0 'who says it, too' mr who; says out 'trusted by mailroom trust' 'in a line of its own'
same 'mailroom trust' "$(mr who --json | head -n 1 | jq -r .room_trust)" 'and as JSON'

# ---- nothing runs before it is adopted, everything after
mr --as alice send bob -s 'HELP: x' -m 'Problem: y' >/dev/null 2>&1; mr --as alice send bob -s 'BUILD main' -m x >/dev/null 2>&1
exits 0 'a patrol' mr --as bob patrol
says out 'unhandled BUILD.*config set Handler-BUILD' 'says what has no handler any more'
exits 4 'a link that is not allowed' mr --as alice send carol@blue -m hi
says err 'mailroom config set Link-blue' 'says what allows it'
exits 4 'carry' mr carry
check 'nothing ran' test ! -e ../notified -a ! -e ../handled -a ! -e ../built -a ! -e ../woken
exits 4 'config adopt without a person' mr config adopt
says out "would become  Notify: .touch" 'shows what it would do'
exits 4 'in a session' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" config adopt </dev/null
check 'a person who does not say yes' sh -c "printf 'y\n' | script -q -c \"'$BIN' config adopt\" typescript >/dev/null 2>&1"
exits 0 'adopts nothing' mr config list; says out 'may start nothing' 'as before'
tty "'$BIN' config adopt" yes && ok 'yes adopts all' || { note <out; not_ok 'yes adopts all'; }
same '6' "$(mr config list --json | wc -l | tr -d ' ')" 'commands, link and mailbox are in the configuration'
exits 0 'adopt again' mr config adopt; says out 'nothing in this room waits' 'finds nothing more'
exits 0 'send to the operator' mr --as alice send operator -m x
exits 0 'the patrol' mr --as bob patrol
n=0; while [ ! -e ../notified ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
for what in notified handled built; do check "$what" test -e ../$what; done
exits 0 'mail over the link' mr --as alice send carol@blue -m hi
same 1 "$(mr --room blue --as carol inbox --json | wc -l | tr -d ' ')" 'arrives'
mr doctor >out; silent_about out 'has no effect' 'is content'
cd ..

# ---- config: names, values, refusals
room alice bob
exits 0 'an empty configuration' mr config list; same '' "$(mr config list --json)" 'is no line of JSON'
exits 0 'set' mr config set Notify 'true'; exits 0 'a second time replaces' mr config set Notify 'false'
same 'Notify: false' "$(mr config list)" 'the first'
exits 0 '--add' mr config set --add Adopt-blue 'alice a'; exits 0 'keeps both' mr config set --add Adopt-blue 'bob b'
same 2 "$(mr config list | grep -c Adopt)" 'lines'
exits 0 'unset' mr config unset Adopt-blue; exits 5 'what is not there' mr config unset Adopt-blue
exits 4 'a name that means nothing' mr config set Nothing x; says err 'man 5 mailroom-config' 'where the names are'
exits 4 'what trust writes' mr config set Trusted now
exits 4 'a value with a line break' mr config set Notify 'a
Trusted: x'
exits 4 'a room without a kind' mr config set Link-blue /tmp/x
for command in "sh -c 'echo {Problem}'" "sh -c {Problem}" "bash -lc 'x {A} y'" "python3 -c 'print({x})'" "perl -e {x}" "env X=1 sh -c '{x}'" "timeout 5 bash -o pipefail -c 'a {x}'" "sh {Script}" "awk '{x}' f" "ssh host '{x}'"; do
	exits 4 "a field as program text: $command" mr config set Handler-HELP "$command"
	says err 'MAILROOM_FIELD_' 'with the variable to use instead'
done
for command in "echo {Problem}" "sh ./handle {Problem}" "sh -c 'echo \"\$1\"' x {Problem}" "sh -c 'echo \"\$MAILROOM_FIELD_PROBLEM\"'"; do exits 0 "an argument: $command" mr config set Handler-HELP "$command"; done
exits 4 'the same for --handler' mr --as bob patrol --handler "HELP=sh -c 'echo {Problem}'"
cat >type <<'TYPE'
Type: BUILD
Summary: x
Subject: BUILD {What}
Field: What; word; required; subject
Handler: touch owned
TYPE
exits 4 'a type with a command' mr types new BUILD -f type
says err 'a room holds no commands' 'is refused'
exits 0 'register --wake' mr register dave --wake 'true'; says "$XDG_CONFIG_HOME/mailroom/rooms/$(sed -n 's/^Identity: //p' .mailroom/room)" '^Wake-dave: true$' 'goes into the configuration'
same '' "$(grep -r Wake .mailroom/agents)" 'and not into the room'
exits 4 'in a session it is refused' env CLAUDE_CODE_SESSION_ID=s9 "$BIN" register erin --wake 'touch owned' </dev/null
for words in 'config set Notify x' 'config unset Notify' 'config edit' 'trust' 'trust --remove' 'trust --prune' 'link x ./blue' 'unlink x'; do
	# shellcheck disable=SC2086
	for variable in CLAUDE_CODE_SESSION_ID CODEX_THREAD_ID GEMINI_SESSION_ID CLAUDECODE; do exits 4 "$variable: $words" env $variable=1 "$BIN" $words </dev/null; done
done
exits 4 'edit without a terminal' mr config edit
VISUAL="sed -i s/false/true/" tty "env VISUAL='sed -i s/false/true/' '$BIN' config edit" '' && ok 'edit' || { note <out; not_ok 'edit'; }
says out '^Notify: true$' 'takes what the editor wrote'
tty "env VISUAL='sed -i s/Notify/Nonsense/' '$BIN' config edit" ''
same 1 "$(mr config list | grep -c '^Notify: true$')" 'what is wrong changes nothing'
conf=$XDG_CONFIG_HOME/mailroom/rooms/$(sed -n 's/^Identity: //p' .mailroom/room)
chmod 666 "$conf"; exits 4 'a configuration that others can write' mr --as alice inbox; same '' "$(mr --room . config list --json)" 'says nothing'; chmod 600 "$conf"
exits 0 'its own again' mr --as alice inbox

# ---- a room of another program has a configuration, too: it is known by its place
mkdir -p state && exits 0 'set in a chipset room' mr --room "chipset:$scratch/state" config set Handler-ping 'true'
same 'Handler-ping: true' "$(mr --room "chipset:$scratch/state" config list)" 'and listed there'
silent_about "$conf" ping 'and nowhere else'

# ---- killed anywhere: a change is made or not, a room that init made is trusted
before=$(mr config list) wrong= n=1
while [ $n -lt 60 ]; do
	MAILROOM_FAULT=kill-before:$n "$DEVBIN" config set Notify "n$n" >/dev/null 2>&1 </dev/null && break
	case $(mr config list | sed -n 's/^Notify: //p') in true|n*) ;; *) wrong="$wrong $n" ;; esac
	[ "$(mr config list | grep -v Notify)" = "$(printf '%s\n' "$before" | grep -v Notify)" ] || wrong="$wrong $n"
	n=$((n + 1))
done
if [ $n -lt 5 ]; then skip 'a change that is killed' 'no fault points in this build'; else same '' "$wrong" "a change that is killed, at $n places"; fi
wrong= n=1
while [ $n -lt 150 ]; do
	rm -rf killed; mkdir killed
	(cd killed && MAILROOM_FAULT=kill-before:$n "$DEVBIN" init >/dev/null 2>&1 </dev/null) && break
	(cd killed && mr init && mr where) >/dev/null 2>&1 || wrong="$wrong $n"
	n=$((n + 1))
done
if [ $n -lt 5 ]; then skip 'an init that is killed' 'no fault points in this build'; else same '' "$wrong" "an init that is killed and repeated, at $n places"; fi

# ---- list, remove, prune
mkdir gone && user init ./gone >/dev/null 2>&1 && rm -rf gone
exits 0 'list' mr trust --list --json
same 'true' "$(jq -r "select(.room == \"maildir:$scratch/gone/.mailroom\").gone" out)" 'knows the room that is gone'
exits 0 'prune --dry-run' mr trust --prune --dry-run; says out 'gone/.mailroom' 'names it'
exits 0 'prune' mr trust --prune; exits 0 'again' mr trust --prune; says out 'no trusted room is gone' 'nothing is left'
exits 0 'remove' mr trust --remove; exits 4 'and it is not used any more' mr --as alice inbox
exits 5 'once' mr trust --remove
exits 0 '$MAILROOM_TRUST' env MAILROOM_TRUST="/nowhere:$scratch/.mailroom" "$BIN" --as alice inbox </dev/null
exits 0 'or the folder around it' env MAILROOM_TRUST="$scratch/" "$BIN" --as alice inbox </dev/null
exits 4 'another path says nothing' env MAILROOM_TRUST="$scratch/x:${scratch%/*}" "$BIN" --as alice inbox </dev/null
same '$MAILROOM_TRUST' "$(MAILROOM_TRUST=$scratch "$BIN" where --json </dev/null | jq -r .trust)" 'and where says so'
exits 0 'a copy that is trusted gets an identity of its own' sh -c "mkdir copy && cp -a .mailroom copy/ && '$BIN' trust . && '$BIN' trust copy"
check 'so that both are used' sh -c "'$BIN' --as alice inbox && cd copy && '$BIN' --as alice inbox"
check 'init without a home' sh -c "mkdir homeless && cd homeless && env -u HOME -u XDG_CONFIG_HOME '$BIN' init 2>../err"
says err 'mailroom trust' 'says that the room is not trusted'
finish
