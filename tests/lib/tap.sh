# SPDX-License-Identifier: MIT
# tap.sh - what every e2e script sources: a scratch folder, a room, and a few ways to say "ok".
# BIN is the command under test, DEVBIN one built with fault points (MAILROOM_FAULT works in it).
#
# A script has its own $HOME and no identity in its environment, runs from $scratch, and ends with `finish`.

top=${MAILROOM_TOP:-$(cd "$(dirname "$0")/../.." && pwd)}
case ${BIN:=build/musl/mailroom} in /*) ;; *) BIN=$top/$BIN ;; esac
case ${DEVBIN:=build/dev/mailroom} in /*) ;; *) DEVBIN=$top/$DEVBIN ;; esac
export BIN DEVBIN
data=$top/tests/data
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mailroom-test.XXXXXX") || exit 1
trap 'chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
HOME=$scratch/home XDG_STATE_HOME=$scratch/state XDG_CONFIG_HOME=$scratch/config MAILROOM_DATA=$top/share/mailroom
export HOME XDG_STATE_HOME XDG_CONFIG_HOME MAILROOM_DATA
for name in MAILROOM MAILROOM_TRUST MAILROOM_AGENT MAILROOM_DEBUG CLAUDE_CODE_SESSION_ID CLAUDE_PID CLAUDE_CODE_AGENT_NAME CODEX_THREAD_ID \
	CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED CLAUDE_CODE_TEAM_NAME CLAUDE_CODE_AGENT_COLOR CLAUDE_CONFIG_DIR \
	AGENT_MAILBOX_ID MB_TEST_ROOT GEMINI_SESSION_ID CLAUDECODE CODEX_SANDBOX GEMINI_CLI QWEN_CODE CURSOR_AGENT OPENCODE COPILOT_CLI GT_ROLE GT_RIG GT_POLECAT GT_CREW BD_ACTOR NO_COLOR; do unset $name; done
export LC_ALL=C.UTF-8 GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
mkdir -p "$HOME" && cd "$scratch" || exit 1

count=0 failures=0
ok() { count=$((count + 1)); echo "ok $count - $*"; }
not_ok() {
	count=$((count + 1))
	if [ "${ROOM-}" = postgres ] && is_about_files "$*"; then echo "ok $count - $* # skip it is about files"; return; fi
	failures=$((failures + 1)); echo "not ok $count - $*"
}
note() { sed 's/^/# /'; }
skip() { count=$((count + 1)); echo "ok $count - $1 # skip $2"; }

mr() { "$BIN" "$@" </dev/null; }
# user ...: the same as the user in a terminal of their own, whatever session this script has bound above itself.
user() { env -u CLAUDE_CODE_SESSION_ID -u CODEX_THREAD_ID -u GEMINI_SESSION_ID XDG_STATE_HOME="$scratch/user-state" "$BIN" "$@" </dev/null; }

# check NAME COMMAND...: the command succeeds.
check() {
	name=$1; shift
	if "$@" >out 2>err; then ok "$name"; else echo "# exit $?: $*"; note <out; note <err; not_ok "$name"; fi
}
# exits CODE NAME COMMAND...: that exit code; stdout and stderr stay in out and err.
exits() {
	want=$1 name=$2; shift 2
	"$@" >out 2>err; got=$?
	if [ $got -eq "$want" ]; then ok "$name"; else echo "# exit $got, not $want: $*"; note <out; note <err; not_ok "$name"; fi
}
# says FILE PATTERN NAME: a line of out or err matches the extended expression.
says() {
	if grep -Eq -e "$2" "$1"; then ok "$3"; else echo "# no /$2/ in $1:"; note <"$1"; not_ok "$3"; fi
}
silent_about() {
	if grep -Eq -e "$2" "$1"; then echo "# /$2/ is in $1:"; note <"$1"; not_ok "$3"; else ok "$3"; fi
}
# same WANT GOT NAME
same() {
	if [ "$1" = "$2" ]; then ok "$3"; else echo "# want: $1"; echo "# got:  $2"; not_ok "$3"; fi
}
# room AGENT...: a fresh room in $scratch/.mailroom with these agents, nobody in particular being us.
room() {
	chmod -R u+rwX .mailroom 2>/dev/null; rm -rf .mailroom
	if [ "${ROOM-}" = postgres ]; then town "$@"; "$BIN" trust >/dev/null 2>&1 </dev/null; return; fi
	"$BIN" init --name town >/dev/null 2>&1 </dev/null || { echo "Bail out! init failed"; exit 1; }
	for agent; do XDG_STATE_HOME=$scratch/user-state "$BIN" register "$agent" >/dev/null 2>&1 </dev/null || { echo "Bail out! register $agent failed"; exit 1; }; done
}
# send FROM TO TEXT: prints the id.
send() { "$BIN" --as "$1" send "$2" -m "$3" 2>/dev/null </dev/null; }
unread() { "$BIN" --as "$1" inbox --json 2>/dev/null </dev/null | wc -l | tr -d ' '; }
# setting NAME [VALUE]: a line of the room's settings; without a value it goes.
setting() {
	if [ "${ROOM-}" = postgres ]; then
		sql "UPDATE town$towns.room SET settings = regexp_replace(settings, '(?n)^$1: .*\n', '', 'g') ${2:+|| '$1: $2' || chr(10)}"
	else
		sed -i "/^$1: /d" .mailroom/room
		[ $# -lt 2 ] || printf '%s: %s\n' "$1" "$2" >>.mailroom/room
	fi
}
finish() { echo "1..$count"; [ $failures -eq 0 ]; exit; }

# ROOM=postgres: the rooms of `room` are schemas of a server that this script starts. tests/e2e/postgres.list has the scripts that run so, and
# of each the checks that are about files.
is_about_files() {
	awk -v script="${0##*/}" -v name="$1" '/^[^\t#]/ { mine = $1 == script } mine && substr($0, 2) == name { found = 1 } END { exit !found }' "$top/tests/e2e/postgres.list"
}
[ "${ROOM-}" != postgres ] || . "$top/tests/lib/pg.sh"
