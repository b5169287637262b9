# once
# The skill and the plugin: their form, and that every command in them runs, as an agent runs it: in a bound session, with no --as.
. "$(dirname "$0")/../lib/tap.sh"

plugin=$top/share/mailroom/plugin skill=$top/share/mailroom/skill
mkdir bin && ln -s "$BIN" bin/mailroom
PATH=$scratch/bin:$PATH
flows='setup check send reply wait recv handoff takeover prune'

# ---- form ----
awk 'NR == 1 && /^---$/ { on = 1; next } /^---$/ { exit } on' "$skill/SKILL.md" >front
awk '/^---$/ { n++; next } n >= 2' "$skill/SKILL.md" >body
same "name: mailroom" "$(grep '^name:' front)" 'the skill is called mailroom'
same mailroom "$(basename "$(readlink -f "$skill")")" 'which is also the name of its folder'
same "$(readlink -f "$plugin/skills/mailroom")" "$(readlink -f "$skill")" 'there is one source: the skill is the one in the plugin'
same '' "$(sed 's/:.*//' front | grep -vxE 'name|description|license|compatibility|metadata|allowed-tools')" 'its front matter has only fields of the standard'
n=$(sed -n 's/^description: "\(.*\)"$/\1/p' front | wc -m)
[ "$n" -gt 1 ] && [ "$n" -le 1024 ] && ok "the description fits ($n of 1024 characters)" || not_ok "the description fits ($n of 1024 characters)"
n=$(wc -c <body) # a token is 3.5 bytes or more of such text
[ $((n * 2 / 7)) -le 1500 ] && ok "the body is short ($n bytes, at most $((n * 2 / 7)) tokens)" || not_ok "the body is short ($n bytes)"
same "$flows" "$(awk '/^```/ { code = !code } !code && sub(/^## /, "")' body | tr '\n' ' ' | sed 's/ $//')" 'each flow has its section'
for flow in $flows; do grep '^description:' front | grep -q "\b$flow\b" || echo "$flow"; done >missing
same '' "$(cat missing)" 'and is named in the description'
grep -o '](references/[a-z]*\.md)' body | tr -d '()]' | sort >linked
same "$(cat linked)" "$(cd "$skill" && ls references/*.md)" 'the references are those that it links'
for file in .claude-plugin/plugin.json .mcp.json hooks/hooks.json; do check "$file is JSON" jq -e . "$plugin/$file"; done
same "$(mr --version | sed 's/mailroom //')" "$(jq -r .version "$plugin/.claude-plugin/plugin.json")" 'the plugin has the version of the command'
same 'mailroom mcp' "$(jq -r '.mcpServers.mailroom|([.command]+.args)|join(" ")' "$plugin/.mcp.json")" 'the plugin starts the server from PATH'
same 'PostToolUse:mailroom hook claude-code PostToolUseFailure:mailroom hook claude-code SessionEnd:mailroom hook claude-code SessionStart:mailroom hook claude-code SessionStart:mailroom hook claude-code --wait Stop:mailroom hook claude-code Stop:mailroom hook claude-code --wait UserPromptSubmit:mailroom hook claude-code' \
	"$(jq -r '.hooks|to_entries[]|.key as $k|.value[].hooks[]|"\($k):\(.command)"' "$plugin/hooks/hooks.json" | sort | tr '\n' ' ' | sed 's/ $//')" 'and hooks on five events, a waiter on two'
same true "$(jq '[.hooks[][].hooks[]|select(.command|endswith("--wait"))|.asyncRewake == true and .timeout > 3600]|all' "$plugin/hooks/hooks.json")" 'only the waiters run beside the session, for long'

# ---- a room in which a session, bound to "me", finds whatever a flow needs ----
mkdir world && cd world || exit 1
room bob carol
CLAUDE_CODE_SESSION_ID=s-1; export CLAUDE_CODE_SESSION_ID
exits 0 'the session registers' mr register me
mr queue create jobs >/dev/null 2>&1
ID=$(mailroom --as bob send me -s 'which port?' -m 'which port?' </dev/null)
mailroom --as carol send me -m 'please run the tests' </dev/null >/dev/null
cd .. || exit 1
[ -n "$ID" ] && ok 'and has mail' || not_ok 'and has mail'

# fill: the words in capitals get a value; what recv prints has the token
fill() { sed "s/\bAGENT\b/bob/g; s/\bID\b/$ID/g; s/\bTOKEN\b/\"\$TOKEN\"/g; s/\bADDRESS\b/@all/g; s/\bTEAM\b/blue-team/g; s/queue:NAME/queue:jobs/g; s/\bNAME\b/$1/g
s/^mailroom recv.*/& >work; cat work; TOKEN=\$(sed -n 's,^token \\\\([0-9a-z]*\\\\).*,\\\\1,p' work)/"; }
# sections FILE: its sh blocks as SECTION.N; a section is the last heading above
sections() { rm -f block.*; awk '!on && /^#/ { name = $NF } /^```sh$/ { n++; file = "block." name "." n; on = 1; next } /^```$/ { on = 0 } on { print > file }' "$1"; }

# afresh: the world as it was; a session is bound to a room by its path, so the copy stands where the original stood.
cp -a "$XDG_STATE_HOME" state.kept && mv world world.kept
afresh() { rm -rf world "$XDG_STATE_HOME"; cp -a state.kept "$XDG_STATE_HOME"; cp -a world.kept world; user trust world >/dev/null 2>&1; }

sections "$skill/SKILL.md"
for flow in $flows; do ls block.$flow.* >/dev/null 2>&1 || echo "$flow"; done >missing
same '' "$(cat missing)" 'every flow shows its commands'
for block in block.*; do
	afresh
	fill carol <"$block" >run.sh
	if (cd world && sh -eu ../run.sh </dev/null >../out 2>../err); then ok "${block#block.}: $(head -n 1 "$block")"
	else note <run.sh; note <out; note <err; not_ok "${block#block.}: $(head -n 1 "$block")"; fi
	cp out "$block.out"
done
says block.check.*.out 'which port' 'check shows the mail'
says block.wait.*.out 'please run the tests' 'wait shows what came'
says block.recv.*.out '^token ' 'recv gives a token'

# what the flows leave behind
afresh; fill x <"$(ls block.reply.? block.reply.?? 2>/dev/null)" >run.sh
(cd world && sh -eu ../run.sh </dev/null >/dev/null 2>&1)
same 1 "$(cd world && mr --as bob inbox --json | grep -c '"Re: which port?"')" 'reply answers the sender, in its thread'
afresh; fill x <"$(ls block.handoff.? block.handoff.?? 2>/dev/null)" >run.sh
(cd world && sh -eu ../run.sh </dev/null >/dev/null 2>&1; user takeover me >/dev/null 2>&1; user --as me check --inject) >out
says out 'what this is about|hand-off|HANDOFF' 'handoff is the first thing that the next life sees'
afresh; rm -rf world/.mailroom "$XDG_STATE_HOME"; fill newcomer <"$(ls block.setup.? 2>/dev/null)" >run.sh
(cd world && git init -q . 2>/dev/null; sh -eu ../run.sh </dev/null >../out 2>&1); rc=$?
same 0 $rc 'setup works where there is nothing yet'
same newcomer "$(cd world && mr whoami --json | jq -r .agent)" 'and its session is that agent then'
afresh; fill carol <"$(ls block.prune.?? block.prune.? 2>/dev/null)" >run.sh
(cd world && sh -eu ../run.sh </dev/null >/dev/null 2>&1)
exits 5 'prune removes the name' mr --room world/.mailroom send carol -m x
afresh; fill bob <"$(ls block.takeover.?? block.takeover.? 2>/dev/null)" >run.sh
(cd world && sh -eu ../run.sh </dev/null >/dev/null 2>&1)
same bob "$(cd world && mr whoami --json | jq -r .agent)" 'takeover makes the session that agent'
same gone "$(cd world && mr who --json | jq -r 'select(.name == "me").state')" 'and leaves its old name free for the next one'

# ---- the same flows over the root of the mailbox skill, which has no lives, nudges, claims and times ----
export MAILROOM=handoff:$scratch/root
native=$ID
for name in bob carol; do user register $name >/dev/null 2>&1; done
fill me <"$(ls block.setup.? 2>/dev/null)" >run.sh
exits 0 'handoff room: setup' sh -eu run.sh
same me "$(mr whoami --json | jq -r .agent)" 'and its session is that agent then'
for block in block.*; do
	case $block in *.out|block.setup.*|block.recv.*) continue ;; esac
	ID=$(mailroom --as bob send me -s 'which port?' -m 'which port?' </dev/null)
	user register carol >/dev/null 2>&1
	fill carol <"$block" | sed 's/100s/0/' >run.sh
	# each command for itself: what the room does not have is refused with what to do instead
	if grep -q EOF run.sh; then sh -eu run.sh </dev/null >out 2>err; echo "$? run.sh" >rcs
	else : >rcs; : >out; : >err; while IFS= read -r line; do sh -c "$line" </dev/null >>out 2>>err; echo "$? $line" >>rcs; done <run.sh; fi
	grep -vE '^(0|3) |^4 mailroom (nudge|prune --stale)' rcs >wrong
	if [ ! -s wrong ]; then ok "handoff room: ${block#block.}: $(head -n 1 "$block")"; else note <rcs; note <err; not_ok "handoff room: ${block#block.}"; fi
done
same carol "$(mr whoami --json | jq -r .agent)" 'takeover makes the session that agent there, too'
exits 4 'handoff room: no claims' mr recv
says err 'mailroom drain' 'but what to do instead'
unset MAILROOM
ID=$native

# ---- what stands in the text, and in the references ----
for file in references/addresses references/trouble; do
	sections "$skill/$file.md"
	afresh
	for block in block.*; do
		fill carol <"$block" >run.sh
		if (cd world && sh -eu ../run.sh </dev/null >../out 2>../err); then ok "$file: $(head -n 1 "$block")"
		else note <run.sh; note <out; note <err; not_ok "$file: $(head -n 1 "$block")"; fi
	done
done
cat "$skill"/SKILL.md "$skill"/references/*.md | grep -o '`mailroom [^`]*`' | tr -d '`' | sort -u >inline
echo 'a text' >text
while IFS= read -r line; do
	case $line in
	*' init'|*' COMMAND'*) continue ;;
	'mailroom setup'*) set -- 0 ;;
	*) set -- 0 3 ;;
	esac
	afresh
	(cd world && mailroom --as bob send queue:jobs -m work </dev/null >/dev/null 2>&1; mailroom recv --from carol >work </dev/null
		TOKEN=$(sed -n 's,^token \([0-9a-z]*\).*,\1,p' work); export TOKEN
		[ -d "$HOME/.claude/teams/blue-team/inboxes" ] || mkdir -p "$HOME/.claude/teams/blue-team/inboxes"
		asked=$(mailroom send bob -m 'and you?' </dev/null 2>/dev/null)
		case $line in *register*) name=newcomer; unset CLAUDE_CODE_SESSION_ID; export XDG_STATE_HOME="$scratch/user-state" ;; *) name=carol ;; esac
		printf '%s\n' "$line" | fill $name | sed "s/wait --id [0-9a-z]*/wait --timeout 0 --id $asked/; s/ >work; cat.*//" >../run.sh
		timeout 20 sh -eu ../run.sh <../text >../out 2>../err); rc=$?
	case " $* " in *" $rc "*) ok "in the text: $line" ;; *) note <run.sh; note <err; not_ok "in the text: $line (exit $rc)" ;; esac
done <inline
[ "$(wc -l <inline)" -ge 12 ] && ok 'the text was searched for commands' || not_ok 'the text was searched for commands'
finish
