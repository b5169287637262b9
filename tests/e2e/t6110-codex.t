# SPDX-License-Identifier: MIT
# Codex runs the sessions of all terminals in one background server: hooks and shells of each have the environment of the terminal that
# started it, and the same process above them. Each is itself all the same. tests/peers/heavy/codex-shared.t tries it with the real one.
#
# The server is played by a copy of perl with the name and the arguments of Codex, which runs one command at a time.
. "$(dirname "$0")/../lib/tap.sh"
command -v perl >/dev/null || { echo '1..0 # skip no perl'; exit 0; }
[ -r /proc/self/stat ] || { echo '1..0 # skip no /proc'; exit 0; }
cp "$(readlink -f "$(command -v perl)")" codex
cat >play.pl <<'PERL'
my $n = shift;
while (1) {
	open(my $in, '<', "$n.in") or exit 1;
	my $cmd = join '', <$in>;
	close $in;
	system('sh', '-c', "{ $cmd\n} >$n.out 2>$n.err </dev/null");
	open(my $rc, '>', "$n.rc") or exit 1;
	print $rc $? >> 8, "\n";
	close $rc;
}
PERL
here=$(pwd -P) locks=$scratch/codex-home/thread-writer-locks servers=
mkdir -p town "$locks" && cd town || exit 1
trap 'for p in $servers; do kill $p 2>/dev/null; done; rm -rf "$scratch"' EXIT
serve() { # serve NAME ARGUMENT...: a process of Codex, with the environment of this moment
	mkfifo "$here/$1.in" "$here/$1.rc"
	name=$1; shift
	CODEX_HOME=$scratch/codex-home "$here/codex" "$here/play.pl" "$here/$name" "$@" >/dev/null 2>&1 & servers="$servers $!"
	eval "pid_$name=\$!"
}
at() { # at NAME COMMAND
	printf "cd '%s'; %s" "$PWD" "$2" >"$here/$1.in"; read -r code <"$here/$1.rc"
	cat "$here/$1.out"; cat "$here/$1.err" >&2
	return "$code"
}
# thread N [SECONDS]: the id of a thread that began so long ago; it is loaded.
thread() {
	ms=$(printf '%012x' $(($(date +%s%3N) - ${2:-0} * 1000)))
	id=$(printf '%.8s-%s-7000-8000-%012d' "$ms" "${ms#????????}" "$1")
	: >"$locks/$id.lock"
	echo "$id"
}
event() { # event NAME THREAD EVENT [MEMBERS]
	printf '{"session_id":"%s","transcript_path":null,"cwd":"%s","hook_event_name":"%s","model":"m","permission_mode":"default"%s}' "$2" "$PWD" "$3" "${4:+,$4}" >"$here/event"
	at "$1" "\"$BIN\" hook codex <'$here/event'"
}
start() { event "$1" "$2" SessionStart "\"source\":\"$3\""; }
unload() { rm -f "$locks/$2.lock"; event "$1" "$2" SessionEnd '"reason":"other"'; }
me() { at "$1" "CODEX_THREAD_ID=$2 \"$BIN\" whoami --json" 2>/dev/null | jq -r .agent; }
state() { mr who --json | jq -r "select(.name == \"$1\").state"; }
git init -q . && room bob

# ---- two terminals, with the environment of a third: of bob, inside of Claude Code, in a pane of tmux ----
MAILROOM_AGENT=bob CLAUDE_CODE_SESSION_ID=outer TMUX=/tmp/tmux-0/default,1,0 TMUX_PANE=%1 serve s app-server --listen unix://
one=$(thread 1) two=$(thread 2)
start s "$one" startup >out; says out "agent 'town'" 'a session is not the agent that the variable of another terminal names'
start s "$two" startup >out; says out "agent 'town-2'" 'nor is the second one the first'
same 'town town-2' "$(me s "$one") $(me s "$two")" 'and so are their shells, with the variables of two harnesses'
[ ! -e .mailroom/records/pane/town ] && [ ! -e .mailroom/records/pane/town-2 ] && ok 'no pane of another is theirs' || not_ok 'no pane of another is theirs'
exits 4 'two harnesses are refused where no hook has told which is the inner one' at s "CODEX_THREAD_ID=nobody \"$BIN\" whoami"
exits 5 'a thread without hooks is nobody' at s "unset CLAUDE_CODE_SESSION_ID; CODEX_THREAD_ID=nobody \"$BIN\" whoami"
sandboxed="PATH=/h/.codex/packages/app-server-daemon/r/codex-path:\$PATH CODEX_THREAD_ID=nobody MAILROOM_AGENT=bob '$BIN' whoami"
exits 5 'also in a sandbox that hides the server' env -u CLAUDE_CODE_SESSION_ID sh -c "$sandboxed"

# ---- /clear in one of them ----
three=$(thread 3)
start s "$three" clear >out
says out "agent 'town-3'.*one of 'town, town-2'.*mailroom takeover NAME" 'after /clear in one of two nobody guesses which: a new name, and those that it may have been'
same 'town town-2 town-3' "$(me s "$one") $(me s "$two") $(me s "$three")" 'and nobody has become another'
same 'live live live' "$(state town) $(state town-2) $(state town-3)" 'while the threads are loaded they are live'
unload s "$two"
same 'live gone live' "$(state town) $(state town-2) $(state town-3)" 'the one that was left is gone when it is unloaded'
rm "$locks/$three.lock"
same 'gone' "$(state town-3)" 'the lock of the thread counts, also when no hook said so: the server is still there'
: >"$locks/$three.lock"
same 'live' "$(state town-3)" 'and it is live when it is loaded again'
unload s "$one"; same gone "$(state town)" 'a closed terminal: its agent is gone, too'
: >"$locks/$one.lock"; start s "$one" resume >/dev/null
same 'town live' "$(me s "$one") $(state town)" 'a resumed thread is who it was'
unload s "$three"; unload s "$one"

# ---- one terminal ----
git init -q ../town2 && cd ../town2 && rm -rf ../town && mv ../town2 ../town && cd ../town && room bob || exit 1
one=$(thread 1); start s "$one" startup >/dev/null
four=$(thread 4); start s "$four" clear >out
says out "agent 'town'.*life 1" '/clear in the only one goes on as the same life'
silent_about out 'takeover' 'without a question'
same 'town' "$(me s "$four")" 'as which its shell acts'
same '' "$(me s "$one")" 'the thread before is nobody any more'
five=$(thread 5); start s "$five" clear >out
says out "agent 'town'.*life 1" 'and once more, with two left behind'
six=$(thread 6); seven=$(thread 7); start s "$seven" clear >out
silent_about out "agent 'town'" 'a thread that never said a word may be the one that was left: no guess'
unload s "$seven"; rm "$locks/$six.lock"
late=$(thread 8 90); start s "$late" clear >out
silent_about out "agent 'town'" 'a thread that is still there after a minute is not the one that was left'
unload s "$late"; unload s "$five"

# ---- closed, and left by /new ----
nine=$(thread 9); start s "$nine" startup >out
says out "agent 'town'.*life 2" 'a new session of the worktree takes the name of one that was closed'
ten=$(thread 10); event s "$ten" SessionEnd '"reason":"other"'
same 2 "$(mr who --json | jq -r 'select(.name == "town").life')" 'the end of a session that was nobody takes no name'
unload s "$nine"
eleven=$(thread 11); start s "$eleven" startup >out; says out "agent 'town'.*life 3" 'after /new it is the same agent, once the thread before is unloaded'

# ---- work in the hands of a session whose server lives on ----
mr --as bob send town -m work >/dev/null 2>&1
exits 0 'it claims' at s "CODEX_THREAD_ID=$eleven \"$BIN\" recv --lease 1s --json"
sleep 1.2; mr check --as town >/dev/null 2>&1
same 1 "$(unread town)" 'the life of the server does not prolong its lease'

# ---- without the shared server a process has one terminal ----
serve own --no-daemon
twelve=$(thread 12) thirteen=$(thread 13)
(mkdir -p ../solo && cd ../solo && git init -q . && room bob && start own "$twelve" startup >out && says out "agent 'solo'" 'a session in a process of its own' &&
	start own "$thirteen" startup >out && says out "agent 'solo'.*life 1" '/new in it goes on as the same life' && same 'solo' "$(me own "$thirteen")" 'as which its shell acts'
	echo "$count $failures" >n); read -r count failures <../solo/n
MAILROOM_AGENT=bob TMUX=/tmp/tmux-0/default,1,0 TMUX_PANE=%7 serve exported exec
(mkdir -p ../given && cd ../given && git init -q . && room bob && start exported "$(thread 14)" startup >out && says out "agent 'bob'" 'there a variable says who it is'
	says .mailroom/records/pane/bob/tmux '^Pane: %7$' 'and the pane is its own'
	echo "$count $failures" >n); read -r count failures <../given/n

# ---- the other way round: Claude Code started by a shell of Codex ----
printf '{"session_id":"inner","cwd":"%s","hook_event_name":"SessionStart","source":"startup"}' "$PWD" >"$here/event"
at s "CODEX_THREAD_ID=$eleven \"$BIN\" hook claude-code <'$here/event'" >/dev/null
inner=$(at s "CLAUDE_CODE_SESSION_ID=inner CODEX_THREAD_ID=$eleven \"$BIN\" whoami --json" | jq -r .agent)
[ -n "$inner" ] && [ "$inner" != town ] && ok 'is itself, too' || { echo "# $inner"; not_ok 'is itself, too'; }
finish
