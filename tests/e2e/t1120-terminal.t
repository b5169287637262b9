# SPDX-License-Identifier: MIT
# Identity outside of any harness: the terminal session that registered, then the worktree. And in a harness that tells
# its shells and servers no session: by the bound process above them.
. "$(dirname "$0")/../lib/tap.sh"
command -v setsid >/dev/null || { echo '1..0 # skip no setsid'; exit 0; }
command -v perl >/dev/null || { echo '1..0 # skip no perl'; exit 0; }
[ -r /proc/self/stat ] || { echo '1..0 # skip no /proc'; exit 0; }

# terminal COMMANDS: a terminal session of its own, whose leader is a shell that runs them.
terminal() { setsid -w sh -c "$1
:" >out 2>err </dev/null; }
room
mkdir w1 w2 w3

# ---- the terminal ----
terminal 'cd w1; "$BIN" register alice; "$BIN" whoami; "$BIN" send operator -m "from a terminal"; cd ../w2; "$BIN" whoami --json'
says out '^later commands of this terminal session know it' 'register says what holds'
silent_about out '[-]-as|export' 'and asks for nothing'
says out 'this terminal session registered it' 'whoami agrees'
says out '"agent":"alice".*"bound":false' 'in another folder of that terminal too'
same alice "$(mr --as operator inbox --json | jq -r .from)" 'and mail is sent as that agent'
terminal 'cd w1; "$BIN" register ria >/dev/null; "$BIN" register ria; echo "exit $?"; ("$BIN" register ria --json); "$BIN" prune ria >/dev/null'
says out 'exit 0' 'to register once more in that terminal is no error'
says out '^you are ria, life 1.* as before' 'it is who it was'
says out '"life":1.*"continued":true' 'also in a shell inside of that one'
terminal 'cd w1; for i in 1 2 3 4 5; do { "$BIN" register rob >/dev/null 2>&1 && echo got it; } & done; wait; "$BIN" --as rob whoami >/dev/null && "$BIN" --as operator prune rob'
same 1 "$(grep -c 'got it' out)" 'of several side by side in one terminal one gets a name'
terminal 'cd w1; "$BIN" register alice; echo "exit $?"'
says out 'exit 4' 'another terminal does not get the name by asking again'
says err '[-]-as alice .*takeover alice' 'and is told both ways'
terminal 'cd w2; "$BIN" --as alice register alice --json; "$BIN" whoami'
same '1 true' "$(head -n 1 out | jq -r '"\(.life) \(.continued)"')" '--as alice register alice is no error and keeps the life'
says out '^alice' 'and binds that terminal too'

# a terminal that lost its name is nobody else, whoever else is in the worktree
mkdir -p w8
terminal 'cd w8; "$BIN" register sue >/dev/null; setsid -w sh -c "\"\$BIN\" takeover sue; true" >/dev/null; "$BIN" whoami; echo "exit $?"'
says out 'exit 4' 'a terminal whose agent was taken over in another does not go on as its new life'
says err "this terminal was 'sue'.*taken over" 'and is told why'
terminal 'cd w8; "$BIN" register tom >/dev/null; setsid -w sh -c "\"\$BIN\" prune tom --force; \"\$BIN\" register tim; true" >/dev/null; "$BIN" --as operator prune sue --force >/dev/null; "$BIN" inbox; echo "exit $?"'
says out 'exit 4' 'one whose agent was pruned does not become the other agent of the worktree'
says err "this terminal was 'tom'" 'and is told, too'
mr --as operator prune tim --force >/dev/null 2>&1

# the last command of a shell takes its place, and is the leader of the session itself
terminal 'cd w2; "$BIN" register ned'
(cd w2 && setsid -w bash -c '"$BIN" register max >/dev/null; "$BIN" whoami' >../out 2>../err </dev/null)
says out '^max' 'the last command of a terminal knows who it is, too'
(cd w2 && setsid -w "$BIN" register moe >../out 2>../err </dev/null)
silent_about out 'later commands of this terminal' 'a terminal that ends with this command promises nothing'
mr --as operator prune max moe ned >/dev/null 2>&1

# ---- the worktree ----
terminal 'cd w1; "$BIN" whoami'
says out 'registered from this worktree without a session' 'a new terminal in the worktree of the one agent is that agent'
terminal 'cd w2; "$BIN" whoami; echo "exit $?"'
says out 'exit 5' 'elsewhere it is nobody'
terminal 'cd w1; "$BIN" register bob >/dev/null; "$BIN" whoami; (cd ../w2; "$BIN" register carol; "$BIN" whoami; echo "exit $?")'
says out '^bob' 'the terminal says more than the worktree'
says out '^this terminal has registered 2 agents: give --as carol' 'a second agent of one terminal is told so'
says out 'exit 5' 'then the terminal is neither'
says err "cannot tell which agent you are: this terminal registered '(bob', 'carol|carol', 'bob)'" 'but names both'
says err 'mailroom --as (bob|carol) \.\.\.' 'with the line to type'
terminal 'cd w1; "$BIN" whoami; echo "exit $?"'
says out 'exit 5' 'with two in a worktree a new terminal is nobody'
says err "registered from this worktree: '(alice', 'bob|bob', 'alice)'" 'and names both'
terminal 'cd w1; MAILROOM_AGENT=bob "$BIN" whoami'
says out '^bob' 'a variable decides'
terminal 'cd w3; "$BIN" register dan >/dev/null; "$BIN" register eve >/dev/null; "$BIN" takeover dan; "$BIN" whoami'
says out '^dan' 'a takeover makes the terminal that agent alone'
terminal 'cd w3; export CLAUDECODE=1; "$BIN" register fay; "$BIN" whoami; echo "exit $?"'
says out 'exit 5' 'in a harness the terminal says nothing'
says out 'neither a harness session nor a terminal is known here: give --as fay' 'and register says so'
mkdir w5 w6 w7
for harness in CLAUDECODE=1 GEMINI_CLI=1 OPENCODE=1; do
	terminal "export $harness; cd w5; \"\$BIN\" register pia >/dev/null 2>&1; \"\$BIN\" whoami; echo \"exit \$?\""
	says out 'exit 5' "with $harness and no hooks nobody is known"
	says err "registered here: 'pia'; if that is you: mailroom --as pia \.\.\., or export MAILROOM_AGENT=pia" 'but the lines that work are said'
	terminal "export $harness MAILROOM_AGENT=pia; cd w5; \"\$BIN\" whoami"
	says out '^pia' 'and do'
done
terminal 'cd w6; CLAUDECODE=1 "$BIN" whoami'
says err 'hint: mailroom register NAME, then mailroom --as NAME' 'where nobody registered the second step is said at once'
call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inbox","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
terminal 'cd w6; "$BIN" register pam >/dev/null; cd ../w7; echo '"'$call'"' | "$BIN" mcp; echo '"'$call'"' | MAILROOM_AGENT=pam "$BIN" mcp'
says out "registered here: 'pam'.*MAILROOM_AGENT=pam .an MCP server: in the env of its settings" 'a server in a terminal says what works for it'
says out 'no unread mail for pam' 'and it does'
mr --as operator prune pia pam >/dev/null 2>&1
terminal 'cd w3; "$BIN" register gus >/dev/null; CLAUDE_CODE_SESSION_ID=t-1 MAILROOM_AGENT=gus perl -e "system(\$ENV{BIN}, qw(whoami))" >/dev/null; "$BIN" whoami; echo "exit $?"'
silent_about out '^gus' 'an agent that a session has become is the terminal no more'
terminal '"$BIN" config set Notify true; echo "exit $?"; "$BIN" register hal >/dev/null; "$BIN" config set Notify true; echo "exit $?"'
same 'exit 0 exit 0' "$(grep exit out | paste -sd' ')" 'a terminal with an agent is no harness session: its user may change the configuration'
leftover=$(grep -l '^Agent: hal' state/mailroom/sessions/* | head -n 1)
terminal '"$BIN" register ida'
[ -n "$leftover" ] && [ ! -e "$leftover" ] && ok 'the next terminal clears away what closed ones left' || not_ok 'the next terminal clears away what closed ones left'

# ---- a harness without a variable: hooks know the session, shells and servers are below its process ----
cat >harness.pl <<'PERL'
while (<STDIN>) { chomp; system('sh', '-c', $_); }
PERL
cp "$(command -v perl)" ./gemini
harness() { GEMINI_CLI=1 setsid -w ./gemini harness.pl >out 2>err; }
event='{"session_id":"g-1","cwd":"'$(pwd -P)'/w4","hook_event_name":"SessionStart","source":"startup"}'
mkdir w4; cd w4 || exit 1; cp ../harness.pl ../gemini .
cat >script <<'LINES'
printf '%s' "$EVENT" | "$BIN" hook gemini >/dev/null
"$BIN" whoami --json | jq -c '{agent,session,bound}'
bash -c 'env "$BIN" whoami --json; true' | jq -r .agent
"$BIN" register other; echo "exit $?"
"$BIN" --as operator send alice -m "I am your boss"; echo "exit $?"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mailroom_inbox","arguments":{}}}' | "$BIN" mcp | tail -n 1 | grep -c isError.:true
./gemini -e 'system("$ENV{BIN} whoami; echo nested \$?")'
LINES
export EVENT="$event"
harness <script
unset EVENT
cd ..
same '{"agent":"w4","session":"gemini-g-1","bound":true}' "$(head -n 1 w4/out)" 'a shell without a session variable is the agent of the bound process above it'
same w4 "$(sed -n 2p w4/out)" 'with shells in between'
same 'exit 4 exit 4' "$(grep '^exit' w4/out | paste -sd' ')" 'it cannot register a second name, nor send as the operator'
says w4/err "this session already is 'w4'" 'and is told who it is'
same 0 "$(sed -n 5p w4/out)" 'its MCP server is that agent'
says w4/out '^nested 5' 'the same program nested in it is not'
finish
