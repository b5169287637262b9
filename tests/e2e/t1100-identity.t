# Identity without exporting anything: each command acts as the right agent, or refuses.
#
# A harness is played by a perl process that runs one shell command at a time, as the Bash tool does: what matters is that
# it is a process of its own that lives on between commands, and which variables its commands see.
. "$(dirname "$0")/../lib/tap.sh"
here=$(pwd -P)
command -v perl >/dev/null || { echo '1..0 # skip no perl'; exit 0; }
[ -r /proc/self/stat ] || { echo '1..0 # skip no /proc'; exit 0; }

cat >harness.pl <<'EOF'
my $n = shift;
while (1) {
	open(my $in, '<', "$n.in") or exit 1;
	my $cmd = join '', <$in>;
	close $in;
	if ($cmd =~ /^ENV (\w+) ?(.*)/) { if (length $2) { $ENV{$1} = $2 } else { delete $ENV{$1} } $? = 0 }
	else { system('sh', '-c', "{ $cmd\n} >$n.out 2>$n.err </dev/null") }
	open(my $rc, '>', "$n.rc") or exit 1;
	print $rc $? >> 8, "\n";
	close $rc;
}
EOF
# an agent started by a command of an agent
cat >nested.pl <<'EOF'
system(@ARGV); exit $? >> 8;
EOF
harnesses=
trap 'for p in $harnesses; do kill $p 2>/dev/null; done; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
start() { # start NAME [SESSION]: a harness, in the working folder
	rm -f "$here/$1.in" "$here/$1.rc"; mkfifo "$here/$1.in" "$here/$1.rc"
	perl "$here/harness.pl" "$here/$1" >/dev/null 2>&1 & eval "pid_$1=\$!"; harnesses="$harnesses $!"
	[ -z "$2" ] || setenv "$1" CLAUDE_CODE_SESSION_ID "$2"
}
tool() { # tool NAME COMMAND: what the harness's Bash tool does
	printf '%s' "$2" >"$here/$1.in"; read -r code <"$here/$1.rc"
	cat "$here/$1.out"; cat "$here/$1.err" >&2
	return $code
}
setenv() { printf 'ENV %s %s' "$2" "$3" >"$here/$1.in"; read -r code <"$here/$1.rc"; }
stop() { eval "kill \$pid_$1; wait \$pid_$1" 2>/dev/null; }
me() { tool "$1" '"$BIN" whoami --json' 2>/dev/null | jq -r '"\(.agent) \(.life)"'; }

room
# ---- a session ----
start h1 s-1
exits 5 'a session that nobody is yet' tool h1 '"$BIN" whoami'
says err 'mailroom register NAME' 'is told the line to type'
exits 5 'and sends nothing' tool h1 '"$BIN" send operator -m hi'
exits 0 'it registers' tool h1 '"$BIN" register alice'
silent_about out 'export' 'and is not told to export anything'
same 'alice 1' "$(me h1)" 'and is that agent in every later command'
exits 0 'which sends' tool h1 '"$BIN" send operator -m "from a session"'
same 'alice' "$(mr --as operator inbox --json | jq -r .from)" 'as itself'
exits 0 'registering again' tool h1 '"$BIN" register alice --json'
same '1 true' "$(jq -r '"\(.life) \(.continued)"' out)" 'keeps the life'
exits 4 'it cannot be a second agent' tool h1 '"$BIN" register alice2'
says err "already is 'alice'" 'and is told why'
exits 0 '--as wins' tool h1 '"$BIN" --as operator whoami'
says out '^operator' 'over the session'
for name in operator human @overseer; do
	exits 4 "but a bound session cannot send as $name" tool h1 "\"\$BIN\" --as $name send alice -m 'I am your boss'"
done
same 0 "$(unread alice)" 'and nothing was sent'
exits 4 'a session cannot register operator either' tool h1 '"$BIN" register operator'

# ---- two sessions in one worktree ----
start h2 s-2
exits 5 'a second session in the same worktree is not the first' tool h2 '"$BIN" whoami'
exits 4 'and cannot take its name' tool h2 '"$BIN" register alice'
says err 'taken by life 1, session .claude-code-s-1.' 'and is told who has it'
says err 'takeover alice' 'and which word would move it'
exits 0 'it registers under its own' tool h2 '"$BIN" register bob'
same 'alice 1,bob 1' "$(me h1),$(me h2)" 'now they are two agents'
exits 0 'who' mr who --json
same 'alice live,bob live' "$(jq -r 'select(.name!="operator")|"\(.name) \(.state)"' out | paste -sd,)" 'shows both live'

# ---- a subagent, another worktree ----
mkdir -p other && git init -q other 2>/dev/null
same 'alice 1' "$(tool h1 'cd other && "$BIN" --room .. whoami --json' 2>/dev/null | jq -r '"\(.agent) \(.life)"')" 'a subagent in another worktree is its parent'
same 'alice 1' "$(tool h1 '(cd / && bash -c "\"\$BIN\" --room \"$OLDPWD\" whoami --json; true" 2>/dev/null || "$BIN" --room "$OLDPWD" whoami --json)' 2>/dev/null | jq -r '"\(.agent) \(.life)"')" 'shells in between make no difference'

# ---- resumed ----
send operator alice 'work' >/dev/null
exits 0 'it takes work' tool h1 '"$BIN" recv --lease 1h --json'
token=$(jq -r .token out)
stop h1
same gone "$(mr who --json | jq -r 'select(.name=="alice").state')" 'when its process ends, who says gone'
start h1 s-1
same 'alice 1' "$(me h1)" 'the resumed session is the same agent and life'
same live "$(mr who --json | jq -r 'select(.name=="alice").state')" 'and live again'
exits 0 'and its work is still its own' tool h1 "\"\$BIN\" done $token"

# ---- /clear ----
setenv h1 CLAUDE_CODE_SESSION_ID s-1-after-clear
same 'alice 1' "$(me h1)" 'after /clear (a new id, the same process) it is the same agent and life'
exits 0 'the server of that session, with the stale id' tool h1 'CLAUDE_CODE_SESSION_ID=s-1 "$BIN" whoami'
says out '^alice' 'is still that agent'
setenv h1 CLAUDE_CODE_SESSION_ID s-1-again
same 'alice 1' "$(me h1)" 'after a second /clear too'
stop h1; start h1 s-1-again
same 'alice 1' "$(me h1)" 'resuming the last of them as well'
exits 4 'another session cannot take the name meanwhile' tool h2 'CLAUDE_CODE_SESSION_ID=s-3 perl nested.pl "$BIN" register alice'

# ---- nested agents: never their parent ----
nest='CLAUDE_CODE_SESSION_ID=s-nested perl nested.pl'
exits 5 'a nested agent with its own id is nobody' tool h1 "$nest \"\$BIN\" whoami"
exits 4 'with a leaked MAILROOM_AGENT it is refused' tool h1 "MAILROOM_AGENT=alice $nest \"\$BIN\" whoami"
says err 'MAILROOM_AGENT.*alice' 'and told which variable'
exits 4 'and cannot send as its parent' tool h1 "MAILROOM_AGENT=alice $nest \"\$BIN\" send operator -m x"
exits 4 'nor drain its mail' tool h1 "MAILROOM_AGENT=alice $nest \"\$BIN\" drain"
exits 5 'a leaked CLAUDE_PID does not make it its parent' tool h1 "CLAUDE_PID=$pid_h1 $nest \"\$BIN\" whoami"
exits 0 'it may register under its own name' tool h1 "MAILROOM_AGENT=alice $nest \"\$BIN\" register helper"
same 'helper 1,alice 1' "$(tool h1 "MAILROOM_AGENT=alice $nest \"\$BIN\" whoami --json" 2>/dev/null | jq -r '"\(.agent) \(.life)"'),$(me h1)" 'then both are who they are'
exits 4 'two harnesses in one environment are refused' tool h1 'CODEX_THREAD_ID=t-1 "$BIN" whoami'
says err '[-]-as' 'and told to say who'
exits 0 'CLAUDE_PID of the own harness is fine' tool h1 'CLAUDE_PID='"$pid_h1"' "$BIN" whoami'

# ---- fenced ----
start h4 s-4
exits 0 'a takeover elsewhere' tool h4 '"$BIN" takeover alice'
says out 'life 2' 'is the next life'
send operator alice 'for the new life' >/dev/null
for command in whoami 'send operator -m x' drain inbox recv 'mark read --all' 'archive --all-read'; do
	exits 4 "the fenced session is refused: $command" tool h1 "\"\$BIN\" $command"
done
says err 'fenced.*taken over by life 2' 'and told by whom'
says err 'takeover alice' 'and how to take it back'
same 1 "$(unread alice)" 'the mail is untouched'
exits 0 'it may become somebody else' tool h1 '"$BIN" register alice-the-first'
same 'alice-the-first 1,alice 2' "$(me h1),$(me h4)" 'and is'

# ---- the variable ----
exits 0 'an agent registered by a script' mr register dave
start h5 s-5
exits 0 'MAILROOM_AGENT binds an unbound session' tool h5 'MAILROOM_AGENT=dave "$BIN" whoami'
same 'dave 1' "$(me h5)" 'for good: the next command needs no variable'
exits 0 'the binding wins over the variable' tool h5 'MAILROOM_AGENT=bob "$BIN" whoami'
says out '^dave' 'later on'
start h6 s-6
exits 4 'an agent that is live in another session is not to be had by a variable' tool h6 'MAILROOM_AGENT=dave "$BIN" whoami'
exits 5 'nor one that does not exist' tool h6 'MAILROOM_AGENT=davee "$BIN" whoami'
says err "'dave'" 'with the near name'
exits 4 'nor the operator' tool h6 'MAILROOM_AGENT=operator "$BIN" whoami'
mr register rig/witness >/dev/null 2>&1
exits 0 'the variables of Gas Town' env GT_ROLE=witness GT_RIG=rig "$BIN" whoami
says out '^rig/witness' 'name an agent'
exits 0 'MAILROOM_AGENT without a harness' env MAILROOM_AGENT=rig/witness "$BIN" whoami
mr register zoe >/dev/null 2>&1
start h7 s-7
for n in 1 2 3 4; do echo "MAILROOM_AGENT=zoe \"\$BIN\" whoami --json >zoe.$n & "; done >zoe; echo wait >>zoe
tool h7 "$(cat zoe)" >/dev/null 2>&1
same 'zoe 1' "$(cat zoe.? | jq -r '"\(.agent) \(.life)"' | sort -u)" 'four first commands of one session at once are one agent and one life'

# ---- the worktree ----
mkdir wt && cd wt || exit 1
start h8 s-8
exits 0 'an agent works in a worktree' tool h8 '"$BIN" register erin'
stop h8
start h9 s-9
same 'erin 2' "$(me h9)" 'a new session in the worktree of the one agent that is gone is that agent, in a new life'
same 'erin 2' "$(me h9)" 'and stays it'
start h10 s-10
exits 5 'another session there, while it lives, is nobody' tool h10 '"$BIN" whoami'
exits 0 'and registers' tool h10 '"$BIN" register frank'
stop h9; stop h10
start h11 s-11
exits 5 'with two that are gone nobody guesses' tool h11 '"$BIN" whoami'
says err "'erin', 'frank'|'frank', 'erin'" 'but names them'
cd "$here" || exit 1
exits 5 'without session, variable, terminal or worktree: nobody' setsid -w sh -c 'cd / && exec "$BIN" --room "$OLDPWD" whoami'
says err 'mailroom register NAME, or mailroom --as NAME' 'with the line to type'

# ---- Codex: a thread, commands in a pid namespace of their own ----
if [ "$(id -u)" = 0 ] && unshare -pf --mount-proc true 2>/dev/null; then
	start h12
	setenv h12 CODEX_THREAD_ID t-12
	exits 0 'Codex registers from within its sandbox' tool h12 'unshare -pf --mount-proc "$BIN" register carl'
	exits 0 'and is known in the next' tool h12 'unshare -pf --mount-proc "$BIN" whoami --json'
	same 'carl 1' "$(jq -r '"\(.agent) \(.life)"' out)" 'as the same agent and life'
	same 'carl 1' "$(me h12)" 'and outside of it (hooks, servers)'
	start h13
	setenv h13 CODEX_THREAD_ID t-13
	exits 4 'another thread cannot have the name' tool h13 'unshare -pf --mount-proc "$BIN" register carl'
	exits 5 'and is nobody' tool h13 'unshare -pf --mount-proc "$BIN" whoami'
	setenv h12 CODEX_THREAD_ID t-12b
	exits 5 'nor is a second thread of the same process' tool h12 'unshare -pf --mount-proc "$BIN" whoami'
else
	skip 'Codex in a pid namespace' 'needs root'
fi

# ---- a state folder that cannot be written, or holds nonsense ----
start h14 s-14
setenv h14 XDG_STATE_HOME /proc/nowhere
exits 0 'a sandbox without a state folder' tool h14 '"$BIN" register gina'
same 'gina 1' "$(me h14)" 'still knows who it is'
start h15 s-15
tool h15 '"$BIN" register hugo' >/dev/null 2>&1
head -c 300 /dev/urandom >state/mailroom/sessions/claude-code-s-15
same 'hugo 1' "$(me h15)" 'so does one whose binding is garbage'
printf 'Room: maildir:%s/.mailroom\nSession: claude-code-s-15\nAgent: ../../etc\nLife: 1\n' "$here" >state/mailroom/sessions/claude-code-s-15
same 'hugo 1' "$(me h15)" 'or names what is no agent'
start h16 '../../../escaped'
exits 0 'a session id with slashes' tool h16 '"$BIN" register ivan'
same 'ivan 1' "$(me h16)" 'works'
same '' "$(find . -path ./.mailroom -prune -o -name '*escaped*' -print | grep -v sessions/)" 'and stays in its folder'
exits 0 'a very long session id' tool h16 'CLAUDE_CODE_SESSION_ID=$(head -c 3000 /dev/zero | tr "\0" x) perl nested.pl "$BIN" register judy'
exits 4 'a session id with line breaks is no name of a session' tool h16 'CLAUDE_CODE_SESSION_ID="x
Agent: alice
Life: 2" perl nested.pl "$BIN" register kim'
says err "'Session' has a line break" 'and told why'
tool h16 'CLAUDE_CODE_SESSION_ID="x
Agent: alice
Life: 2" perl nested.pl "$BIN" whoami' >out 2>err
silent_about out '^alice' 'and forges nothing'
finish
