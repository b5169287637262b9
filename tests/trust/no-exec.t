# SPDX-License-Identifier: MIT
# once
# What setup lets agents run unasked starts no program (but mailroom-full, which is the same program: tests/e2e/t7300-index.t): the commands and tools of GRANTED_COMMANDS and GRANTED_TOOLS are run with
# every option that they have, in a room that asks for commands everywhere, under strace; and whole scripts of tests/e2e are run with
# their granted commands traced.
. "$(dirname "$0")/../lib/tap.sh"
command -v strace >/dev/null || { echo '1..0 # skip no strace'; exit 0; }

# traced COMMAND...: fails if the command, or a process that it made, starts a program. The first execve is strace's own.
traced() {
	strace -f -qq -e trace=execve,execveat -o trace "$@" </dev/null >/dev/null 2>&1
	[ "$(grep -c -e 'execve(' -e 'execveat(' trace)" -eq 1 ]
}
room alice bob carol
mkdir -p .mailroom/types
printf 'Notify: touch owned\nNudge-On-Send: yes\nSling: touch owned\nPatrol-Handler: HELP touch owned\n' >>.mailroom/room
printf 'Type: HELP\nSummary: x\nSubject: HELP: {Topic}\nField: Topic; text; required; subject\nHandler: touch owned\n' >.mailroom/types/HELP
echo 'Wake: touch owned' >>.mailroom/agents/bob/agent
git init -q . 2>/dev/null; git config core.fsmonitor "touch $scratch/owned"; git config core.pager "touch $scratch/owned"
# a terminal for a nudge to be typed into
(unset TMUX; tmux -S "$scratch/tmux" new-session -d -x 80 -y 24 "env MAILROOM_AGENT=bob sh" 2>/dev/null)
pane=$(tmux -S "$scratch/tmux" list-panes -F '#{pane_id}' 2>/dev/null)
TMUX=$scratch/tmux,1,0 TMUX_PANE=$pane mr takeover bob >/dev/null 2>&1
send alice bob 'one' >/dev/null; send alice bob 'two' >/dev/null; id=$(send alice bob 'HELP: x')
mr --as alice queue create q >/dev/null 2>&1; mr --as alice channel create c >/dev/null 2>&1

mr describe --all | jq -r '.commands[] | .name as $n | if .granted == true then $n elif .granted == false then empty else (.granted[] | "\($n) \(.)") end' >granted
[ "$(wc -l <granted)" -ge 24 ] && ok "$(wc -l <granted) commands are granted" || not_ok 'commands are granted'
# every granted command with each of its options, valued ones with a few values; what is refused counts, too
mr describe --all | jq -r '.commands[] | select(.granted != false) | .name as $n | .options[] | [$n, .name, (.value // "")] | @tsv' >options
operands() {
	case $1 in
	send) echo "operator -m x" ;; reply) echo "$id -m x" ;; read|thread|why) echo "$id" ;; done|release|fail|extend) echo "$id" ;;
	search) echo x ;; resolve) echo @all ;; handoff) echo "-m x" ;; 'queue show') echo q ;; 'channel read'|'channel show') echo c ;; 'channel post') echo 'c -m x' ;; wait) echo '--timeout 0' ;;
	esac
}
bad= n=0
while read -r command; do
	# shellcheck disable=SC2046,SC2086
	traced "$BIN" --as bob $command $(operands "$command") || bad="$bad $command"
	# shellcheck disable=SC2046,SC2086
	traced "$BIN" --as bob $command $(operands "$command") --json || bad="$bad $command--json"
	n=$((n + 2))
	word=${command%% *}
	while IFS='	' read -r of option value; do
		[ "$of" = "$word" ] || continue
		case $option in follow) continue ;; esac
		for given in ${value:+1} ${value:+"operator"} ${value:+'touch owned'} ${value:-flag}; do
			# shellcheck disable=SC2046,SC2086
			if [ -z "$value" ]; then set -- "--$option"; else set -- "--$option" "$given"; fi
			# shellcheck disable=SC2046,SC2086
			traced timeout 2 "$BIN" --as bob $command $(operands "$command") "$@"
			[ "$(grep -c 'execve(' trace)" -le 2 ] || bad="$bad $command--$option" # timeout and the command
			n=$((n + 1))
			[ -n "$value" ] || break
		done
	done <options
done <granted
same '' "$bad" "none of them starts a program, in $n runs"
check 'no command of the room, of its types or of git ran' test ! -e owned
# the tools of the server
rpc() { printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}' "$@"; }
call() { printf '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"%s","arguments":%s}}' "$1" "$2"; }
rpc "$(call send '{"to":"operator","body":"x"}')" "$(call send '{"to":"bob","body":"x","priority":"urgent"}')" "$(call inbox '{}')" "$(call read "{\"ids\":[\"$id\"]}")" \
	"$(call wait '{"timeout":0}')" "$(call recv '{}')" "$(call who '{}')" "$(call done '{"token":"x"}')" >calls
strace -f -qq -e trace=execve,execveat -o trace env MAILROOM_AGENT=alice "$BIN" mcp <calls >answers 2>/dev/null
same 2 "$(grep -c 'execve' trace)" 'nor does a tool that setup allows' # env and the server
[ "$(grep -c '"id":2' answers)" -ge 8 ] && ok 'all of them answered' || { note <answers; not_ok 'all of them answered'; }
# with the user's own Notify that, and nothing else, runs
user config set Notify "touch $scratch/notified" >/dev/null
strace -f -qq -e trace=execve -o trace "$BIN" --as alice send operator -m x </dev/null >/dev/null 2>&1
n=0; while [ ! -e notified ] && [ $n -lt 1200 ]; do sleep 0.05; n=$((n + 1)); done
check 'what the user allowed does run' test -e notified
same '' "$(sed -n 's/.*execve("\([^"]*\)".*/\1/p' trace | grep -v -e "^$BIN\$" -e '/sh$' -e '/touch$')" 'and only that'
tmux -S "$scratch/tmux" kill-server 2>/dev/null

# ---- whole scripts, with every granted command in them traced
mkdir traced
cat >traced/mailroom <<'WRAP'
#!/bin/sh
word= next=
for arg; do
	if [ -n "$next" ]; then next=; continue; fi
	case $arg in --room|--as) next=1; continue ;; -*) continue ;; esac
	word=$arg; break
done
case " $GRANTED " in *" $word "*) ;; *) exec "$REAL" "$@" ;; esac
exec strace -f -qq -e trace=execve,execveat -o "$TRACES/$$" "$REAL" "$@"
WRAP
chmod +x traced/mailroom
GRANTED=$(grep -v ' ' granted | tr '\n' ' ') REAL=$BIN TRACES=$scratch/traces; export GRANTED REAL TRACES; mkdir traces
for script in t1200-send t1300-read t1400-work; do
	(unset XDG_CONFIG_HOME XDG_STATE_HOME HOME; HOME=/nonexistent MAILROOM_TOP=$top BIN=$scratch/traced/mailroom sh "$top/tests/e2e/$script.t") >script.out 2>&1
done
seen=$(ls traces | wc -l)
[ "$seen" -ge 100 ] && ok "$seen granted commands of e2e scripts were traced" || not_ok "$seen granted commands of e2e scripts were traced"
same '' "$(for t in traces/*; do [ "$(grep -c 'execve' "$t")" -le 1 ] || sed -n 's/.*\(execve("[^"]*"\).*/\1/p' "$t"; done | sort | uniq -c)" 'and started nothing'
finish
