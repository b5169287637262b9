# SPDX-License-Identifier: MIT
# The state folder can be written from within a sandbox. Whatever lies there, a hook can at worst repeat an announcement or miss one:
# it speaks for no other agent, shows nobody else's mail, starts nothing, and exits with 0.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
state=$XDG_STATE_HOME/mailroom
event() { printf '{"hook_event_name":"%s","session_id":"s1","cwd":"%s","source":"%s","prompt":"x"}' "$1" "$scratch" "${2:-startup}"; }
hook() { event "$@" | "$BIN" hook claude-code; }
# The harness is a process of its own, as it is in life.
mr send alice -m x >/dev/null 2>&1
send carol bob 'a secret of carol and bob' >/dev/null; send bob operator 'for the operator alone' >/dev/null; send bob carol 'for carol' >/dev/null
MAILROOM_AGENT=alice hook SessionStart >out 2>err
says out 'agent .alice.' 'a session is alice'
send bob alice 'hello alice' >/dev/null
session=$(ls "$state"/sessions | grep claude-code | head -n 1)
cp -a "$state" state.kept
life() { sed -n 's/^Life: //p' ".mailroom/agents/$1/lives/$(ls ".mailroom/agents/$1/lives" | sort -n | tail -n 1)" 2>/dev/null; }

# judge NAME: all moments of a session, with the state folder as it is now
judge() {
	before=$(find .mailroom/agents/bob .mailroom/agents/carol .mailroom/agents/operator -type f | sort | xargs sha256sum)
	codes=
	: >said
	for moment in UserPromptSubmit PostToolUse Stop; do hook $moment >>said 2>>said; codes="$codes$?"; done
	hook SessionStart resume >>said 2>>said; codes="$codes$?"
	event Stop | timeout 0.3 "$BIN" hook claude-code --wait >>said 2>>said
	after=$(find .mailroom/agents/bob .mailroom/agents/carol .mailroom/agents/operator -type f | sort | xargs sha256sum)
	if [ "$codes" = 0000 ] && [ "$before" = "$after" ] && ! grep -q -e secret -e 'for carol' -e 'for the operator' -e 'agent .operator' -e 'agent .bob' -e 'agent .carol' said && [ ! -e owned ]; then ok "$1"
	else echo "# exits $codes"; [ "$before" = "$after" ] || echo '# mail of others changed'; note <said; not_ok "$1"; fi
	chmod -R u+rwX "$state" 2>/dev/null; rm -rf "$state"; cp -a state.kept "$state"
}
judge 'as it is'
for agent in bob carol operator; do
	for n in 1 2; do
		sed -i "s/^Agent:.*/Agent: $agent/; s/^Life:.*/Life: $n/" "$state/sessions/$session"
		judge "a binding that says $agent, life $n"
		printf 'Room: maildir:%s/.mailroom\nSession: claude-code-s1\nAgent: %s\nLife: %s\nWorktree: /\nBound: 2036-01-01T00:00:00Z\n' "$scratch" "$agent" "$n" >"$state/sessions/$session"
		judge "one without a process that says $agent, life $n"
		sed "s/^Agent:.*/Agent: $agent/; s/^Session:.*/Session: claude-code-other/; s/^Bound:.*/Bound: 2036-01-01T00:00:00Z/" "$state/sessions/$session" >"$state/sessions/claude-code-other"
		rm "$state/sessions/$session"
		judge "the binding of another session of this process, $agent"
	done
done
for what in sessions waiters telling announced stopped wakes patrol answers setup attic hook.log; do
	rm -rf "$state/$what"; head -c 3000 /dev/urandom >"$state/$what"; judge "garbage in the place of $what"
	rm -rf "$state/$what"; ln -s "$scratch/.mailroom/agents/bob" "$state/$what"; judge "a link to a mailbox in the place of $what"
	rm -rf "$state/$what"; mkdir -p "$state/$what/$session/x"; judge "folders in the place of files of $what"
	chmod 000 "$state/$what"; judge "$what that cannot be opened"
done
for file in "$state"/sessions/*; do
	name=${file##*/}
	head -c 100000 /dev/urandom >"$state/sessions/$name"; judge "garbage in $name"
	: >"$state/sessions/$name"; judge "nothing in $name"
	rm -f "$state/sessions/$name"; mkfifo "$state/sessions/$name"; judge "a pipe in the place of $name"
done
for line in 'Notify: touch owned' 'Command: touch owned' 'Wake: touch owned' 'Process: 1 1 1 x' "Room: maildir:$scratch/elsewhere" 'Agent: ../../x' 'Agent: operator' 'Worktree: $(touch owned)'; do
	for file in "$state"/sessions/* "$state"/*/*; do [ ! -f "$file" ] || { printf '%s\n' "$line" | cat - "$file" >new && cp new "$file"; }; done
	judge "every file with a line '$line' in front"
done
rm -rf "$state"; : >"$state"; judge 'no folder at all'
hook UserPromptSubmit >out; exits 0 'and afterwards it is alice as before' env CLAUDE_CODE_SESSION_ID=s1 "$BIN" whoami </dev/null
says out '^alice' 'by its life'
finish
