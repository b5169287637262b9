# SPDX-License-Identifier: MIT
# lib.sh - what the tests with the real programs source: tap.sh, a home and a project of their own, the programs from npm, and a
# scripted model on loopback (../model/model.mjs).
#
# The scratch folder is in build/, because Codex puts no helpers into a home under /tmp and lets its sandbox write there anyway. State is
# where it is for everybody, in the home: a server that Codex starts inherits no variable.

MAILROOM_TOP=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir -p "$MAILROOM_TOP/build/peers"
TMPDIR=$MAILROOM_TOP/build/peers
for name in $(env | sed -n 's/^\(\(CLAUDE\|ANTHROPIC\|CODEX\|OPENAI\|GEMINI\|GOOGLE\|CURSOR\|TMUX\|MCP\)[A-Z_]*\)=.*/\1/p') XDG_CONFIG_HOME; do unset "$name"; done
. "$MAILROOM_TOP/tests/lib/tap.sh"
unset XDG_STATE_HOME MAILROOM_DATA TMPDIR

# need PROGRAM: brings it from npm, in the version that these tests were written for, and puts it on PATH.
need() {
	case $1 in
	node) package=node@22.23.3 ;; # Claude Code wants 22; the system's may be older
	claude) package=@anthropic-ai/claude-code@2.1.325 ;; # 350 MB
	codex) package=@openai/codex@0.166.0 ;; # 436 MB
	qwen) package=@qwen-code/qwen-code@0.24.4 ;;
	opencode) package=opencode-ai@1.18.33 ;;
	pi) package=@earendil-works/pi-coding-agent@0.87.1 ;;
	gemini) package=@google/gemini-cli@0.61.0 ;; # 100 MB
	esac
	if ! MAILROOM_NPM_SCRIPTS=1 timeout 900 "$top/tools/npm" "node-peers/$1" "$package" >npm.out 2>&1; then
		note <npm.out; echo "Bail out! npm could not install $package"; exit 1
	fi
	PATH=$top/build/node-peers/$1/node_modules/.bin:$PATH
}
need node
mkdir bin && ln -s "$BIN" bin/mailroom
PATH=$scratch/bin:$PATH
export DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 ANTHROPIC_API_KEY=dummy

socket=mailroom-peers-$$ model_pid= tmux_used=
leave() {
	[ -z "$tmux_used" ] || tmux -L "$socket" kill-server 2>/dev/null
	[ -z "$model_pid" ] || kill "$model_pid" 2>/dev/null
	[ -z "${KEEP:-}" ] || { echo "# kept: $scratch"; return; }
	# what a harness leaves behind for a moment may still write here
	rm -rf "$scratch" 2>/dev/null || { sleep 1; rm -rf "$scratch"; }
}
trap leave EXIT

# project NAME AGENT...: a repository with a room in it, and agents without a process that others are played with; we stand in it.
project() {
	mkdir -p "$scratch/$1" && cd "$scratch/$1" || exit 1
	shift
	git init -q . && git commit -q --allow-empty -m start
	mailroom init --name town >/dev/null 2>&1 </dev/null || { echo 'Bail out! init failed'; exit 1; }
	for agent; do mailroom register "$agent" >/dev/null 2>&1 </dev/null || { echo "Bail out! register $agent failed"; exit 1; }; done
}
# until_true SECONDS COMMAND...: waits for it to succeed
until_true() {
	tenths=$(($1 * 10)); shift
	while ! "$@" >/dev/null 2>&1; do
		tenths=$((tenths - 1))
		[ $tenths -gt 0 ] || return 1
		sleep 0.1
	done
}
# model NAME: the script is on standard input; what the model is asked comes into $log, one file a request.
model() {
	[ -z "$model_pid" ] || kill "$model_pid" 2>/dev/null
	log=$scratch/log.$1
	cat >"$scratch/script.$1"
	rm -f "$scratch/port"
	node "$top/tests/peers/model/model.mjs" "$scratch/script.$1" "$log" "$scratch/port" >"$scratch/model.err" 2>&1 &
	model_pid=$!
	until_true 10 test -s "$scratch/port" || { echo 'Bail out! the model does not start'; exit 1; }
	port=$(cat "$scratch/port")
	export ANTHROPIC_BASE_URL="http://127.0.0.1:$port"
}
# asked N: what the model was given in its N-th request: only what is new in it, the last messages since its own last answer
asked() { jq -r '.body | if .messages then .messages as $all | ([$all | to_entries[] | select(.value.role == "assistant") | .key] | max // -1) as $last | $all[$last + 1:] else
	.input as $all | ([$all | to_entries[] | select(.value.role == "assistant" or .value.type == "function_call") | .key] | max // -1) as $last | $all[$last + 1:] end
	| [.. | strings] | join("\n")' "$log/$1.json" 2>/dev/null; }
# whole N: the whole of it, tools and system prompt, too
whole() { jq -r '[.body | .. | strings] | join("\n")' "$log/$1.json" 2>/dev/null; }
# model_was_told N PATTERN NAME
model_was_told() { asked "$1" >"$scratch/asked"; says "$scratch/asked" "$2" "$3"; }
nothing_failed() {
	failed=$(cat "$log"/*.before-failed 2>/dev/null)
	same '' "$failed" 'what went on meanwhile went well'
}
senders() { mailroom --as "$1" inbox --all --json </dev/null 2>/dev/null | jq -r .from | sort | uniq -c | awk '{ print $2 ":" $1 }' | tr '\n' ' ' | sed 's/ $//'; }

# by_text WORD...: "WORD SENDER" for each message in bob's inbox (a list in ./box) that begins so
by_text() {
	for word; do
		for id in $(jq -r .id box); do mailroom --as bob read --peek "$id" --json </dev/null | jq -r "select(.body | startswith(\"$word\")) | \"$word \" + .from"; done
	done
}

# Claude Code asks a new user some questions; these are the answers.
claude_home() {
	cat >"$HOME/.claude.json" <<JSON
{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["dummy"],"rejected":[]},"projects":{"$PWD":{"hasTrustDialogAccepted":true}}}
JSON
}
# claude_p ARGUMENT...: one run without a terminal, in which nothing may be asked
claude_p() { timeout 90 claude -p --output-format stream-json --verbose --permission-mode default "$@" </dev/null; }
# screen: what the terminal shows
screen() { tmux -L "$socket" capture-pane -p | grep -v '^ *$'; }
claude_tui() { # claude_tui ARGUMENT...: starts it in a terminal of its own and waits for its prompt
	tmux_used=1
	tmux -L "$socket" -f /dev/null new-session -d -x 150 -y 50 "claude --permission-mode default $*"
	until_true 30 sh -c "tmux -L $socket capture-pane -p | grep -q '❯'" || { screen | note; not_ok 'Claude Code starts in a terminal'; finish; }
	sleep 1
}
types_in() { tmux -L "$socket" send-keys -l "$1"; sleep 0.5; tmux -L "$socket" send-keys Enter; }

# waiters: how many wait for mail beside a session of this test
waiters() {
	for p in /proc/[0-9]*; do
		case $(readlink "$p/exe" 2>/dev/null) in "$(readlink -f "$BIN")") ;; *) continue ;; esac
		case $(readlink "$p/cwd" 2>/dev/null) in "$scratch"*) tr '\0' ' ' <"$p/cmdline" 2>/dev/null; echo ;; esac
	done | grep -c -e '--wait'
}

codex_home() { # after setup: adds the scripted model to the configuration that setup wrote
	CODEX_HOME=$HOME/.codex; export CODEX_HOME
	mkdir -p "$CODEX_HOME"
	echo "PATH=$scratch/bin:\$PATH" >"$HOME/.profile" # its shell is a login shell
	{ printf 'model_provider = "mock"\n'; cat "$CODEX_HOME/config.toml" 2>/dev/null
		printf '\n[model_providers.mock]\nname = "mock"\nbase_url = "http://127.0.0.1:%s/v1"\nwire_api = "responses"\n' "$port"; } >"$scratch/config.new"
	mv "$scratch/config.new" "$CODEX_HOME/config.toml"
}

# codex_server: before Codex is started in terminals; all of them share one background server, which ends with the test
codex_server() {
	printf '\n[projects."%s"]\ntrust_level = "trusted"\n' "$PWD" >>"$CODEX_HOME/config.toml"
	locks=$CODEX_HOME/thread-writer-locks
	trap 'stop_server; leave' EXIT
}
stop_server() { timeout 20 codex app-server daemon stop >/dev/null 2>&1 </dev/null; kill "$(jq -r .pid "$CODEX_HOME/app-server-daemon/daemon-updater.pid")" 2>/dev/null; }
shows() { tmux -L "$socket" capture-pane -p -t "$1" | grep -q "$2"; }
terminal() { # terminal NAME [-e VARIABLE=VALUE...]: Codex in a terminal, with its hooks trusted
	name=$1; shift; tmux_used=1
	tmux -L "$socket" -f /dev/null new-session -d -s "$name" -x 150 -y 50 "$@" codex
	until_true 40 sh -c "tmux -L $socket capture-pane -p -t $name | grep -q -e 'Trust all and continue' -e 'for agents'" || { tmux -L "$socket" capture-pane -p -t "$name" | note; not_ok "Codex starts in terminal $name"; finish; }
	sleep 1
	if shows "$name" 'Trust all and continue'; then
		tmux -L "$socket" send-keys -t "$name" 2; sleep 0.5; tmux -L "$socket" send-keys -t "$name" Enter
		until_true 20 shows "$name" 'for agents'; sleep 1
	fi
}
enters() { tmux -L "$socket" send-keys -t "$1" -l "$2"; sleep 0.7; tmux -L "$socket" send-keys -t "$1" Enter; }
says_done() { # says_done NAME TEXT ANSWER: a prompt, and the model's last word
	enters "$1" "$2"
	until_true 30 shows "$1" "$3 done" || { tmux -L "$socket" capture-pane -p -t "$1" | grep -v '^ *$' | note; not_ok "the turn of $2 ends"; }
}
