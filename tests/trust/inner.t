# SPDX-License-Identifier: MIT
# What a harness tells the processes that it starts, a harness inside of it inherits. OpenCode has one server for all its sessions, and our plugin names the session in an argument of each call. A harness that was started from a shell
# of OpenCode inherits OpenCode's variables; its model may write that argument itself, and must not become another session by it. A copy of perl plays
# the two harnesses: "opencode" starts "codex", and each starts a server.
. "$(dirname "$0")/../lib/tap.sh"
command -v perl >/dev/null || { echo '1..0 # skip no perl'; exit 0; }
[ -r /proc/self/stat ] || { echo '1..0 # skip no /proc'; exit 0; }
perl=$(readlink -f "$(command -v perl)")
cp "$perl" opencode; cp "$perl" codex
mkdir town && cd town && "$BIN" init >/dev/null 2>&1 </dev/null
mr register bob >/dev/null 2>&1
for s in one two; do MAILROOM_SESSION=opencode-$s "$BIN" register "$s" </dev/null >/dev/null 2>&1; done
# a client that shakes hands, makes one call and waits for its answer
cat >client.pl <<'PERL'
use IPC::Open2;
my ($program, $argument) = @ARGV;
my $pid = open2(my $out, my $in, $program, 'mcp');
print $in qq({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n);
print $in qq({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"send","arguments":{"to":"bob","body":"x"$argument}}}\n);
$in->flush;
while (<$out>) { print; last if /"id":2/; }
close $in;
waitpid $pid, 0;
PERL
# play HARNESS ARGUMENT: a call by the server of that harness; the inner one is started by a shell of OpenCode
cat >outer.pl <<'PERL'
$ENV{OPENCODE} = 1;
$ENV{OPENCODE_PID} = $$;
system(@ARGV);
PERL
play() { "$scratch/opencode" outer.pl "$@" >out 2>err </dev/null; }
from() { mr --as bob inbox --all --json | jq -r .from | tr '\n' ' '; }

play "$scratch/opencode" client.pl "$BIN" ',"mailroom_session":"opencode-one"'
same '' "$(from)" 'a harness inside of OpenCode is not believed, whatever it is called'
play sh -c "exec '$scratch/codex' client.pl '$BIN' ',\"mailroom_session\":\"opencode-one\"'"
same '' "$(from)" 'nor Codex in a shell of OpenCode'
sed -i 's/^system(@ARGV);/do ".\/client.pl" or die $!;/' outer.pl # OpenCode itself is the client now
play "$BIN" ',"mailroom_session":"opencode-one"'
same 'one ' "$(from)" 'OpenCode itself is'
play "$BIN" ',"mailroom_session":"opencode-two"'
same 'one two ' "$(from | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/^ //')" 'for each of its sessions'

# ---- the socket of a session of Claude Code: only a server that the session runs rings through it ----
cat >bell.pl <<'PERL'
use IO::Socket::UNIX;
my ($top, $program, @inner) = @ARGV;
my $path = "$top/$$.sock";
my $entry = "$ENV{HOME}/.claude/sessions/$$.json";
sub entry { open(my $f, '>', $entry) or die $!; print $f qq({"sessionId":"abc","status":"$_[0]"}); close $f }
my $listens = IO::Socket::UNIX->new(Local => $path, Listen => 4) or die $!;
unlink $path if $ENV{DEAD};
entry('idle');
$ENV{CLAUDE_CODE_MESSAGING_SOCKET} = $path;
pipe(my $in, my $out);
my $pid = fork();
if ($pid == 0) { open(STDIN, '<&', $in); close $out; open(STDOUT, '>', '/dev/null'); exec(@inner, $program, 'mcp') or die $! }
$SIG{ALRM} = sub { print "silent\n"; kill 'TERM', $pid; exit 0 };
alarm 12;
while (my $c = $listens->accept) { my @lines = <$c>; next unless @lines; entry('busy'); print "rang @lines"; last }
kill 'TERM', $pid;
PERL
mkdir -p "$HOME/.claude/sessions"; cp "$perl" "$scratch/claude"
unset CLAUDE_CONFIG_DIR CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ATTENDED
MAILROOM_AGENT=one; export MAILROOM_AGENT
send bob one 'wake up' >/dev/null
DEAD=1 "$scratch/claude" bell.pl "$scratch" "$BIN" >out 2>err </dev/null
cat .mailroom/records/bell/one/* >bells 2>/dev/null
same 'silent 1' "$(cat out) $(grep -c claude-code-socket bells)" 'a socket that is gone is tried once, not for ever'
"$scratch/claude" bell.pl "$scratch" "$BIN" "$scratch/codex" -e 'system(@ARGV)' >out 2>err </dev/null
same silent "$(cat out)" 'a server of a harness inside of the session does not ring for it'
"$scratch/claude" bell.pl "$scratch" "$BIN" >out 2>err </dev/null
says out '^rang .*"type":"auth"' 'that of the session does'
says out '"session_id":"abc"' 'for the session that is there now'
says out 'from bob: wake up' 'and tells it of its mail'
finish
