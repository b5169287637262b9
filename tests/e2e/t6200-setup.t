# once
# Setup: our entries in the settings of every harness, and out again without a trace, whatever the files look like.
. "$(dirname "$0")/../lib/tap.sh"

unset CODEX_HOME
mkdir bin here && cp "$BIN" bin/mailroom && PATH=$scratch/bin:$PATH && cd here || exit 1
mailroom() { "$scratch/bin/mailroom" "$@" </dev/null; }
unset XDG_CONFIG_HOME # it is in $HOME here, and goes with it
own() { rm -rf "$HOME" "$XDG_STATE_HOME" && mkdir -p "$HOME/.claude" "$HOME/.codex" "$HOME/.gemini" "$HOME/.cursor" "$HOME/.qwen" "$HOME/.opencode-conf" "$HOME/.copilot/hooks"; }
OPENCODE_CONFIG_DIR=$HOME/.opencode-conf; export OPENCODE_CONFIG_DIR

# ---- what is written ----
own
exits 0 'a preview' mailroom setup claude-code
says out '^\+.*"command": "'"$scratch"'/bin/mailroom hook claude-code",' 'shows the hooks, with the path of this program'
says out 'Bash\(mailroom send \*\)' 'and the permissions'
says out 'nothing was written' 'and says that it was only a look'
same '' "$(find "$HOME" -type f)" 'which is so'
exits 0 'apply' mailroom setup claude-code --apply
says out '^\+.*hook claude-code --wait' 'shows it again'
same '["PostToolUse","PostToolUseFailure","SessionEnd","SessionStart","Stop","UserPromptSubmit"]' "$(jq -c '.hooks|keys' "$HOME/.claude/settings.json")" 'the events'
same 'true 86400|true 86400|' "$(jq -r '.hooks[][].hooks[]|select(.asyncRewake)|"\(.asyncRewake) \(.timeout)"' "$HOME/.claude/settings.json" | tr '\n' '|')" 'the waiter at start and stop'
{ mailroom describe --all | jq -r '.commands[] | .name as $n | if .granted == true then $n elif .granted == false then empty else (.granted[] | "\($n) \(.)") end | "Bash(mailroom \(.) *)"'
	for tool in send inbox read wait recv done who; do echo "mcp__mailroom__$tool"; done; } | sort >granted
same "$(cat granted)" "$(jq -r '.permissions.allow[]' "$HOME/.claude/settings.json" | sort)" 'permission for the commands and tools that start nothing, each by name'
same '' "$(grep -w -e config -e trust -e patrol -e register -e takeover -e link -e setup -e nudge -e 'mailroom \*' granted)" 'and for none that could'
same "{\"type\":\"stdio\",\"command\":\"$scratch/bin/mailroom\",\"args\":[\"mcp\"]}" "$(jq -c .mcpServers.mailroom "$HOME/.claude.json")" 'the server'
same '600 600' "$(stat -c %a "$HOME/.claude/settings.json" "$HOME/.claude.json" | tr '\n' ' ' | sed 's/ $//')" 'both files are private'
mailroom setup codex --apply >/dev/null && mailroom setup gemini --apply >/dev/null && mailroom setup cursor --apply >/dev/null
same '["PostToolUse","SessionEnd","SessionStart","Stop","UserPromptSubmit"] 10 3' "$(jq -c '.hooks|keys' "$HOME/.codex/hooks.json") $(jq -r '.hooks|"\(.Stop[0].hooks[0].timeout) \(.SessionEnd[0].hooks[0].timeout)"' "$HOME/.codex/hooks.json")" 'Codex: the events, and as much time as it allows'
check 'its server and state folder' grep -q "^writable_roots = \[ \"$XDG_STATE_HOME/mailroom\" \]" "$HOME/.codex/config.toml"
same '["AfterAgent","AfterTool","BeforeAgent","SessionEnd","SessionStart"] 10000 mcp' "$(jq -c '.hooks|keys' "$HOME/.gemini/settings.json") $(jq -r '"\(.hooks.AfterAgent[0].hooks[0].timeout) \(.mcpServers.mailroom.args[0])"' "$HOME/.gemini/settings.json")" 'Gemini: milliseconds, and all in one file'
same '1 ["beforeSubmitPrompt","postToolUse","sessionEnd","sessionStart","stop"] mcp' "$(jq -c .version "$HOME/.cursor/hooks.json") $(jq -c '.hooks|keys' "$HOME/.cursor/hooks.json") $(jq -r '.mcpServers.mailroom.args[0]' "$HOME/.cursor/mcp.json")" 'Cursor: its version and events'
same "env = { XDG_STATE_HOME = \"$XDG_STATE_HOME\" }" "$(grep ^env "$HOME/.codex/config.toml")" 'its server is told where the state folder is: Codex passes no variable on'
exits 0 'as JSON' mailroom setup codex --json
same 'none false|none false|' "$(jq -r '"\(.action) \(.written)"' out | tr '\n' '|')" 'a second time there is nothing to do'

# ---- in and out: the same bytes, for every harness and every style of file ----
mkdir j t
jv() { printf "$2" >"j/$1"; } # a file of JSON
jv empty ''; jv blank '\n \n'; jv braces '{}\n'; jv spaced '{ }'; jv braces-lines '{\n}\n'; jv bom '\357\273\277{\n\t"a": 1\n}\n'; jv bom-only '\357\273\277'
jv one-line '{"a":1,"b":[]}'; jv last-comma '{\n  "a": 1,\n}\n'; jv no-newline '{\n  "a": 1\n}'; jv crlf '{\r\n    "a": {\r\n        "b": [1, 2]\r\n    }\r\n}\r\n'
jv comments '// top\n{\n  // a\n  "a": 1, /* b */\n  "b": "// no" // last\n  /* end */\n}\n// bottom\n'; jv only-comment '{\n  // nothing yet\n}\n'
jv empty-parts '{"hooks":{},"permissions":{},"mcpServers":{}}'
jv empty-lists '{\n  "permissions": { "allow": [] },\n  "mcpServers": {\n  },\n  "hooks": { "Stop": [], "stop": [ ], "AfterAgent": [\n  ] }\n}\n'
jv theirs '{\n\t"$schema": "x",\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{ "matcher": "", "hooks": [{ "type": "command", "command": "say hi" }] } // mine\n\t\t],\n\t\t"stop": [{ "command": "say hi" }],\n\t\t"AfterAgent": []\n\t},\n\t"permissions": {\n\t\t"deny": ["Read(.env)"],\n\t\t"allow": [\n\t\t\t"Bash(ls *)"\n\t\t]\n\t},\n\t"mcpServers": { "other": { "command": "other", "args": [] } },\n\t"version": 1\n}'
jv version '{\n  "version": 1\n}\n'; jv their-permission '{ "permissions": { "allow": ["Bash(mailroom *)"] } }'; jv twice '{"a":1,"a":2,"hooks":{"x":1},"hooks":{}}'
tv() { printf "$2" >"t/$1"; } # a file of TOML
tv empty ''; tv blank '\n'; tv bom '\357\273\277a = 1\n'; tv no-newline 'a = 1'; tv crlf 'a = 1\r\n[b]\r\n# c\r\n'; tv gap 'a = 1\n\n\n'; tv comment '# mine'
tv table '[sandbox_workspace_write]\n'; tv table-end '[sandbox_workspace_write] # c'; tv table-more '[sandbox_workspace_write]\nnetwork_access = true\n\n[x]\ny = 1\n'
tv roots-empty '[sandbox_workspace_write]\nwritable_roots = []\n'; tv roots-lines '[sandbox_workspace_write]\nwritable_roots = [\n  "/a", # a\n  "/b"  # b\n]\n[z]\n'
tv roots-comma 'sandbox_workspace_write.writable_roots = ["/a",]\n'; tv dotted 'sandbox_workspace_write.network_access = true\nm = "x"\n'
tv inline 'sandbox_workspace_write = { writable_roots = ["/a"], b = 1 }\n'; tv servers '[mcp_servers.other]\ncommand = "o"\n[mcp_servers.other.env]\nK = """\n[mcp_servers.mailroom]\n"""\n'
tv their-root "[sandbox_workspace_write]\nwritable_roots = [\"$XDG_STATE_HOME/mailroom\"]\n"; tv dates 'd = 1979-05-27 07:32:00Z # x\n[[l]]\na = [ { b = 1 } ]\n'

# around HARNESS VARIANT KEEP FILE...: the variant in these files of that harness, apply, apply, remove; "forget": without the memory.
around() {
	h=$1 v=$2 keep=$3; shift 3; own; wrong=
	for f; do set -- "$@" "$HOME/$f"; shift; done
	for f; do cp $v "$f"; done
	chmod 640 "$@"
	mailroom setup $h --apply >/dev/null 2>err || wrong="apply failed: $(cat err)"
	for f; do cmp -s "$f" $v && wrong="$wrong $f is as before;"; done
	once=$(cat "$@" | cksum)
	mailroom setup $h --apply >/dev/null 2>&1
	[ "$(cat "$@" | cksum)" = "$once" ] || wrong="$wrong the second time it changes something;"
	[ $keep = keep ] || rm -rf "$XDG_STATE_HOME" "$HOME/.config"
	mailroom setup $h --remove >/dev/null 2>err || wrong="$wrong remove failed: $(cat err)"
	for f; do cmp -s "$f" $v || wrong="$wrong $f is not what it was: $(head -c 300 "$f" 2>&1);"; done
	case $(stat -c %a "$@" 2>&1) in 640 | '640
640') ;; *) wrong="$wrong its mode is another;" ;; esac
	for f in "$HOME"/.*/.*mailroom-*; do [ -e "$f" ] && wrong="$wrong $f was left;"; done
	if [ -z "$wrong" ]; then ok "$h, $v, $keep: the same bytes"; else echo "# $wrong"; not_ok "$h, $v, $keep: the same bytes"; fi
}
for v in j/*; do
	around claude-code $v keep .claude/settings.json .claude.json
	around gemini $v keep .gemini/settings.json
	around qwen $v keep .qwen/settings.json
	around opencode $v keep .opencode-conf/opencode.json
	around cursor $v keep .cursor/hooks.json .cursor/mcp.json
	around copilot $v keep .copilot/hooks/mailroom.json .copilot/mcp-config.json
	around codex $v keep .codex/hooks.json
done
for v in t/*; do around codex $v keep .codex/config.toml; done
# with what was remembered gone the text alone must tell (all but whose a permission or a root in a table of theirs was)
for v in empty blank braces one-line comments empty-lists theirs version; do around cursor j/$v forget .cursor/hooks.json .cursor/mcp.json; done
for v in empty blank no-newline; do around codex t/$v forget .codex/config.toml; done

# ---- a permission or a root that --apply did not add is the user's ----
allowed() { jq -r '.permissions.allow[]?' "$HOME/.claude/settings.json" | tr '\n' ' '; }
own; printf '{ "permissions": { "allow": ["Bash(mailroom *)", "Bash(mailroom send *)"] } }\n' >"$HOME/.claude/settings.json"; cp "$HOME/.claude/settings.json" before
exits 0 'remove without a prior apply' mailroom setup claude-code --remove
says out 'note: .*settings.json keeps Bash\(mailroom \*\) and 1 more, which setup has no record of adding' 'and says what it leaves'
check 'changes nothing' cmp before "$HOME/.claude/settings.json"
for i in 1 2 3; do mailroom setup claude-code --apply >/dev/null; done
for i in 1 2 3; do mailroom setup claude-code --remove >/dev/null; done
check 'nor do many of both' cmp before "$HOME/.claude/settings.json"
own; mailroom setup claude-code --apply >/dev/null
jq '.permissions.allow += ["Bash(mailroom *)"]' "$HOME/.claude/settings.json" >new && cat new >"$HOME/.claude/settings.json"
mailroom setup claude-code --apply >/dev/null; check 'one that the user adds later is kept by apply' grep -q 'Bash(mailroom \*)' "$HOME/.claude/settings.json"
mailroom setup claude-code --remove >/dev/null; same 'Bash(mailroom *) ' "$(allowed)" 'and by remove'
own; mailroom setup claude-code --apply >/dev/null; rm -rf "$HOME/.config"; mailroom setup claude-code --remove >out
same 'false true' "$(jq -r 'has("hooks")' "$HOME/.claude/settings.json") $(allowed | grep -q 'mailroom send' && echo true)" 'without a memory the hooks go and the permissions stay'
says out 'if it is not yours, remove it' 'which is said'
own; printf '[sandbox_workspace_write]\nwritable_roots = ["/other/.mailroom", "%s/mailroom"]\n' "$XDG_STATE_HOME" >"$HOME/.codex/config.toml"; cp "$HOME/.codex/config.toml" before
mailroom setup codex --remove >/dev/null; check 'Codex: roots like ours stay' cmp before "$HOME/.codex/config.toml"
mailroom setup codex --apply >/dev/null; mailroom setup codex --remove >/dev/null; mailroom setup codex --remove >/dev/null; check 'however often it is removed' cmp before "$HOME/.codex/config.toml"

# ---- Codex: the variable of its server ----
codex_env() { sed -n '/^\[mcp_servers.mailroom/,/^#/p' "$HOME/.codex/config.toml" | grep -E 'STATE|env|KEY' | tr '\n' ';'; }
own; mailroom setup codex --apply >/dev/null
(export XDG_STATE_HOME=$scratch/other; exits 1 'another state folder' mailroom setup codex --check; says out "would not be one agent" 'is noticed'
	mailroom setup codex --apply >/dev/null; same "env = { XDG_STATE_HOME = \"$scratch/other\" };" "$(codex_env)" 'and mended'; echo "$count $failures" >n)
read -r count failures <n
(unset XDG_STATE_HOME; mailroom setup codex --apply >/dev/null); same '' "$(codex_env)" 'without the variable it goes'
printf '%s\n' '[mcp_servers.mailroom]' 'command = "/x/mailroom"' 'args = ["mcp"]' '[mcp_servers.mailroom.env]' 'KEY = "1"' >"$HOME/.codex/config.toml"; mailroom setup codex --apply >/dev/null
same "[mcp_servers.mailroom.env];XDG_STATE_HOME = \"$XDG_STATE_HOME\";KEY = \"1\";" "$(codex_env)" "beside the user's own, in a table"
printf '%s\n' '[mcp_servers.mailroom]' 'env = { KEY = "1" }' 'command = "/x/mailroom"' 'args = ["mcp"]' >"$HOME/.codex/config.toml"; mailroom setup codex --apply >/dev/null
same "env = { XDG_STATE_HOME = \"$XDG_STATE_HOME\", KEY = \"1\" };" "$(codex_env)" 'and in a line'
exits 0 'where it is found' mailroom setup codex --check
(unset XDG_STATE_HOME; mailroom setup codex --apply >/dev/null); same "env = { XDG_STATE_HOME = \"$XDG_STATE_HOME\", KEY = \"1\" };" "$(codex_env)" 'a line with more in it is left alone'

# ---- a plugin is all ours ----
own; mailroom setup pi --apply >/dev/null
plugin=$HOME/.pi/agent/extensions/mailroom.js
same "$(tail -n +2 "$plugin" | sha256sum | cut -c1-64)" "$(head -n 1 "$plugin" | grep -oE '[0-9a-f]{64}$')" 'its first line has the sum of the rest'
check 'it names this program' grep -qF "const COMMAND = [\"$scratch/bin/mailroom\"];" "$plugin"
check 'it is a program' node --check "$plugin"
exits 0 'it is tried' mailroom setup pi --check
printf '#!/bin/sh\ncat >/dev/null\necho "warning: $WARNED" >&2\n[ -z "$RING" ] || echo "$RING" >&2\nexit 2\n' >ringer; chmod +x ringer
{ echo 'const HARNESS = "pi";'; sed 's|^const COMMAND = .*|const COMMAND = ["./ringer"];|' "$top/share/mailroom/plugins/common.js"; echo 'waitBeside({ cwd: "." }, (text) => console.log(text));'; } >ring.mjs
same 'mailroom bell 01abef: a nudge.' "$(WARNED=obey RING='mailroom bell 01abef: a nudge.' node ring.mjs)" 'what it makes a prompt is the line of the bell'
same '' "$(WARNED='mailroom bell of mine' RING= node ring.mjs)" 'and nothing else on stderr'
echo '// mine' >>"$plugin"; cp "$plugin" changed
exits 1 'one that was changed is told' mailroom setup pi --check
says out 'differs from the one that this program writes' 'as such'
exits 4 'and not written over' mailroom setup pi --apply
mailroom setup pi --remove >/dev/null 2>&1
check 'nor removed' cmp changed "$plugin"
rm "$plugin"; mailroom setup pi --apply >/dev/null; mailroom setup pi --remove >/dev/null
check 'one of ours goes' test ! -e "$plugin"

# ---- files and folders that were not there ----
rm -rf "$HOME" "$XDG_STATE_HOME"; mkdir "$HOME"
for h in claude-code codex qwen opencode pi gemini cursor; do mailroom setup $h --apply >/dev/null; mailroom setup $h --remove >/dev/null; done
same '' "$(ls -A "$HOME" | grep -v -x .config)" 'what was made is removed, folders too'
mkdir "$HOME/.codex"; mailroom setup codex --apply >/dev/null; rm -rf "$XDG_STATE_HOME" "$HOME/.config"; mailroom setup codex --remove >/dev/null
same '.codex' "$(cd "$HOME" && find . -mindepth 1 -printf '%P ' | sed 's/ $//')" 'but not a folder that was there; also without a memory'
mailroom setup gemini --apply >/dev/null; echo '{"theirs":1}' >"$HOME/.gemini/other"; mailroom setup gemini --remove >/dev/null
same 'other' "$(ls -A "$HOME/.gemini")" 'nor one that others use meanwhile'
own; mailroom setup gemini --apply >/dev/null; jq . "$HOME/.gemini/settings.json" >new; printf %s "$(cat new)" >"$HOME/.gemini/settings.json"; mailroom setup gemini --remove >/dev/null
same '' "$(ls -A "$HOME/.gemini")" 'a file of ours goes, also when the harness has written it anew'
own; printf '{\n  "a": 1\n}\n' >"$HOME/.gemini/settings.json"; mailroom setup gemini --apply >/dev/null
jq 'del(.a)' "$HOME/.gemini/settings.json" >new && cat new >"$HOME/.gemini/settings.json"; mailroom setup gemini --remove >/dev/null
same '{}' "$(jq -c . "$HOME/.gemini/settings.json")" 'nor a file of the user that is left without anything'

# ---- others change the files meanwhile ----
own; mailroom setup claude-code --apply >/dev/null
jq '.hooks.Stop += [{"hooks":[{"type":"command","command":"say hi"}]}] | .hooks.SessionStart[0].hooks += [{"type":"command","command":"date"}] | .model = "x"' "$HOME/.claude/settings.json" >new && cat new >"$HOME/.claude/settings.json"
mailroom setup claude-code --remove >/dev/null
same '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"date"}]}],"Stop":[{"hooks":[{"type":"command","command":"say hi"}]}]},"model":"x"}' "$(jq -c . "$HOME/.claude/settings.json")" 'their entries stay, in our groups as well'
own; echo '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"cd /x && mailroom hook claude-code"},{"type":"command","command":"mailroom check --inject"},{"type":"command","command":"mailroom hook codex"}]}]}}' >"$HOME/.claude/settings.json"
cp "$HOME/.claude/settings.json" before; mailroom setup claude-code --remove >/dev/null; check 'what is not exactly ours is not taken' cmp before "$HOME/.claude/settings.json"

# ---- another path, a room ----
own; mkdir -p "$scratch/a b" && cp "$BIN" "$scratch/a b/mailroom"
for h in claude-code codex gemini cursor; do mailroom setup $h --apply >/dev/null; "$scratch/a b/mailroom" setup $h --apply >/dev/null </dev/null; done
same '9 0' "$(cat "$HOME/.claude/settings.json" "$HOME/.claude.json" | grep -c "a b/mailroom") $(cat "$HOME"/.claude/settings.json "$HOME"/.claude.json "$HOME"/.codex/* "$HOME"/.gemini/* "$HOME"/.cursor/* | grep -c "$scratch/bin")" 'a program in another place takes over its entries'
exits 0 'a path with a space' "$scratch/a b/mailroom" setup claude-code --check
exits 0 'also for Codex' "$scratch/a b/mailroom" setup codex --check
for h in claude-code codex gemini cursor; do mailroom setup $h --remove >/dev/null; done
same '' "$(find "$HOME" -type f ! -path "*/.config/*")" 'and either can remove them'
mailroom init "$scratch/here" >/dev/null 2>&1
mailroom setup codex --apply >/dev/null
same "writable_roots = [ \"$XDG_STATE_HOME/mailroom\", \"$scratch/here/.mailroom\" ]" "$(grep ^writable "$HOME/.codex/config.toml")" 'in a room, Codex can write it'
(cd / && mailroom setup codex --remove >/dev/null)
same '' "$(find "$HOME" -type f ! -path '*/.config/*')" 'and it is taken out from anywhere'
exits 0 'with a room' mailroom setup claude-code --apply --room "$scratch/here"
same "$scratch/bin/mailroom hook claude-code --room maildir:$scratch/here/.mailroom" "$(jq -r '.hooks.UserPromptSubmit[0].hooks[0].command' "$HOME/.claude/settings.json")" 'the hooks name it'
same "[\"mcp\",\"--room\",\"maildir:$scratch/here/.mailroom\"]" "$(jq -c .mcpServers.mailroom.args "$HOME/.claude.json")" 'and the server'
exits 0 'and are tried in another' mailroom setup claude-code --check
same 0 "$(mr --as operator inbox --all --json | wc -l)" 'where no mail comes from that'
mailroom setup claude-code --apply >/dev/null
same '["mcp"]' "$(jq -c .mcpServers.mailroom.args "$HOME/.claude.json")" 'without it they go where the agent is'
rm -rf "$scratch/here/.mailroom"

# ---- links, modes, owners ----
own; mkdir -p dots; printf '{\n  "a": 1\n}\n' >dots/s.json; cp dots/s.json before; ln -s "$scratch/here/dots/s.json" "$HOME/.gemini/s2"; ln -s s2 "$HOME/.gemini/settings.json"
[ "$(id -u)" = 0 ] && chown 1234:4321 dots/s.json; chmod 664 dots/s.json; owner=$(stat -c '%u:%g %a' dots/s.json)
mailroom setup gemini --apply >/dev/null
check 'a symbolic link stays one' sh -c "[ \"\$(readlink '$HOME/.gemini/settings.json')\" = s2 ] && [ -L '$HOME/.gemini/s2' ]"
check 'what it leads to is changed' grep -q 'hook gemini' dots/s.json
same "$owner" "$(stat -c '%u:%g %a' dots/s.json)" 'with its mode and owner'
mailroom setup gemini --remove >/dev/null
check 'and changed back' cmp before dots/s.json
same "$owner" "$(stat -c '%u:%g %a' dots/s.json)" 'as they were'
rm dots/s.json; mailroom setup gemini --apply >/dev/null
check 'a link to nothing is followed, too' grep -q 'hook gemini' dots/s.json
mailroom setup gemini --remove >/dev/null; check 'both ways' sh -c "! [ -e dots/s.json ] && [ -L '$HOME/.gemini/settings.json' ]"
ln -sf loop "$HOME/.gemini/loop"; ln -sf loop "$HOME/.gemini/settings.json"; exits 4 'a link to itself is refused' mailroom setup gemini --apply
rm -f "$HOME/.gemini/settings.json"; mkdir "$HOME/.gemini/settings.json"; exits 4 'so is a folder' mailroom setup gemini --apply

# ---- what cannot be understood ----
# an earlier build allowed every command, those that start programs included
own; mailroom setup claude-code --apply >/dev/null
jq '.permissions.allow = ["Bash(ls *)", "Bash(mailroom *)", "mcp__mailroom"]' "$HOME/.claude/settings.json" >old && cp old "$HOME/.claude/settings.json"; rm -rf "$HOME/.config"
exits 1 'the permission of an earlier build' mailroom setup claude-code --check
says out 'start any program' 'is a problem'
mailroom setup claude-code --apply >/dev/null
same 'Bash(ls *)' "$(jq -r '.permissions.allow[]' "$HOME/.claude/settings.json" | grep -v -x -F -f granted)" 'and goes with the next --apply, the users own stay'
# what the sandbox may write holds no configuration
own
exits 4 'a state folder around the configuration' env XDG_STATE_HOME="$HOME" XDG_CONFIG_HOME="$HOME/mailroom" "$scratch/bin/mailroom" setup codex --apply </dev/null
says err 'two different folders' 'is refused for Codex'
(export XDG_CONFIG_HOME=$scratch/elsewhere; mailroom setup codex --apply >/dev/null)
same "env = { XDG_STATE_HOME = \"$XDG_STATE_HOME\", XDG_CONFIG_HOME = \"$scratch/elsewhere\" }" "$(grep ^env "$HOME/.codex/config.toml")" 'its server is told where the configuration is, too'

for bad in '{' '{"a":1 "b":2}' '[]' '{"hooks":[]}' '{"hooks":{"Stop":{}}}' '{"permissions":{"allow":"x"}}' '{"permissions":3}' 'null' '/* {}'; do
	own; printf '%s' "$bad" >"$HOME/.claude/settings.json"
	mailroom setup claude-code --apply >out 2>err; code=$?
	if [ $code = 1 ] && grep -q 'settings.json' err && grep -q 'hint: no file was changed' err && [ "$(cat "$HOME/.claude/settings.json")" = "$bad" ] && ! [ -e "$HOME/.claude.json" ]
	then ok "refused: $bad"; else note <err; not_ok "refused: $bad (exit $code)"; fi
done
own; printf '{\n  "a": 1,\n  "b" 2\n}\n' >"$HOME/.claude.json"; exits 1 'also in the second file' mailroom setup claude-code --apply
says err "claude.json': line 3: it lacks a colon" 'which is told with its line'
check 'and then the first is left alone' sh -c "! [ -e '$HOME/.claude/settings.json' ]"
exits 1 'remove does the same' mailroom setup claude-code --remove
own; printf 'a = [1\n' >"$HOME/.codex/config.toml"; exits 1 'bad TOML' mailroom setup codex --apply
own; printf 'sandbox_workspace_write = { a = 1 }\n' >"$HOME/.codex/config.toml"; exits 4 'a table that cannot be added to' mailroom setup codex --apply
says err 'hint: write it as a table' 'is told'
own; echo '{"mcpServers":{"mailroom":{"command":"/opt/other","args":[]}}}' >"$HOME/.cursor/mcp.json"; exits 4 "another's server of our name" mailroom setup cursor --apply
check 'nothing is written then' sh -c "! [ -e '$HOME/.cursor/hooks.json' ]"
exits 0 'nor is it removed' mailroom setup cursor --remove; check 'it stays' grep -q other "$HOME/.cursor/mcp.json"
own; printf '[mcp_servers.mailroom]\nurl = "http://x"\n' >"$HOME/.codex/config.toml"; exits 4 "another's in Codex" mailroom setup codex --apply

# ---- places ----
own; mkdir -p p/sub && git init -q p && cd p/sub || exit 1
mailroom setup claude-code --project --apply >/dev/null; mailroom setup codex --project --apply >/dev/null 2>err; mailroom setup gemini --project --apply >/dev/null; mailroom setup cursor --project --apply >/dev/null
says err 'sandbox must write to belong in your own settings' 'for Codex it says what belongs in ones own file'
rm -f err
same '.claude/settings.json .codex/config.toml .codex/hooks.json .cursor/hooks.json .cursor/mcp.json .gemini/settings.json .mcp.json ' "$(cd .. && find . -name .git -prune -o -type f -printf '%P\n' | sort | tr '\n' ' ')" "the project's files are at its top"
same '' "$(find "$HOME" -type f ! -path '*/.config/*')" "the user's are left alone"
same '' "$(cd .. && grep -r -e "$scratch" -e "$HOME" .claude .codex .gemini .cursor .mcp.json)" 'and have no path of this machine in them'
same 'mailroom hook claude-code|mailroom|command = "mailroom"' "$(jq -r '.hooks.UserPromptSubmit[0].hooks[0].command' ../.claude/settings.json)|$(jq -r .mcpServers.mailroom.command ../.mcp.json)|$(grep ^command ../.codex/config.toml)" 'but the bare name'
exits 0 'they can be tried' mailroom setup claude-code --project --check
exits 1 'in Codex without folders of ones own' mailroom setup codex --project --check
says out 'wrong .*writable root' 'that is told'
mailroom setup codex --apply >/dev/null; exits 0 'with them it works' mailroom setup codex --project --check; mailroom setup codex --remove >/dev/null
exits 0 'a second time' mailroom setup claude-code --project
same '' "$(cat err)" 'without a word'
exits 0 'another mailroom first in the PATH' env PATH="$scratch/a b:$PATH" "$scratch/bin/mailroom" setup claude-code --project
says err "first in .PATH is '$scratch/a b/mailroom', not this program" 'is told'
exits 0 'none' env PATH=/usr/bin:/bin "$scratch/bin/mailroom" setup gemini --project
says err 'which a shell does not find; put it in .PATH: ln -s' 'is told, too'
for h in claude-code codex gemini cursor; do mailroom setup $h --project --remove >/dev/null; done; rm -f out err
same '' "$(cd .. && find . -name .git -prune -o -mindepth 1 ! -path ./sub -print)" 'and removed'
cd ../.. || exit 1
(export CLAUDE_CONFIG_DIR="$scratch/cc" CODEX_HOME="$scratch/cx"; mailroom setup claude-code --apply >/dev/null; mailroom setup codex --apply >/dev/null)
same '.claude.json settings.json config.toml hooks.json' "$(ls -A "$scratch/cc" | sort | tr '\n' ' ')$(ls "$scratch/cx" | sort | tr '\n' ' ' | sed 's/ $//')" 'folders that the harness is told are used'
(unset HOME; mailroom setup gemini >out 2>err); says err 'HOME is not set' 'without a home folder that is said'
exits 2 'an unknown harness' mailroom setup emacs
exits 2 'two ways at once' mailroom setup gemini --apply --remove

# ---- the harness writes at the same time, a kill, a full disk ----
own; mkdir dev && cp "$DEVBIN" dev/mailroom
printf '{\n  "n": 0\n}\n' >"$HOME/.gemini/settings.json"
MAILROOM_FAULT=delay:20000 dev/mailroom setup gemini --apply >/dev/null 2>err </dev/null & pid=$!
for i in 1 2 3 4 5 6 7 8; do
	sleep 0.06; grep -q hook "$HOME/.gemini/settings.json" || { printf '{\n  "n": %s\n}\n' $i >"$HOME/.gemini/new" && mv "$HOME/.gemini/new" "$HOME/.gemini/settings.json"; last=$i; }
done
wait $pid; same "0 $last true" "$? $(jq -r '"\(.n) \(.hooks != null)"' "$HOME/.gemini/settings.json")" "its change is kept, and ours is there"
own; printf '{\n  "n": 0\n}\n' >"$HOME/.claude/settings.json"; cp "$HOME/.claude/settings.json" before
for i in 1 2 3; do for way in apply remove; do mailroom setup claude-code --$way >/dev/null 2>"$way.$i" & done; done; wait
same '' "$(cat apply.? remove.?)" 'many at once, in and out: nobody fails'
mailroom setup claude-code --remove >/dev/null; check 'and it can be taken back' cmp before "$HOME/.claude/settings.json"
same 'settings.json' "$(ls -A "$HOME/.claude")" 'without a trace'; rm -f apply.? remove.?
n=0 torn=0 done= f=$HOME/.gemini/settings.json old=$(printf '{\n  "a": 1\n}')
own; printf %s "$old" >"$f"; dev/mailroom setup gemini --apply >/dev/null 2>&1 </dev/null; new=$(cat "$f")
while [ -z "$done" ] && [ $n -lt 80 ]; do
	n=$((n + 1)); own; printf %s "$old" >"$f"
	MAILROOM_FAULT=kill-before:$n dev/mailroom setup gemini --apply >/dev/null 2>&1 </dev/null && done=1
	is=$(cat "$f"); [ "$is" = "$old" ] || [ "$is" = "$new" ] || torn=$((torn + 1))
	dev/mailroom setup gemini --remove >/dev/null 2>&1 </dev/null
	[ "$(cat "$f")" = "$old" ] && [ "$(ls -A "$HOME/.gemini")" = settings.json ] || torn=$((torn + 1))
done
same '0 1' "$torn $done" "killed at any of $n steps it is the old or the new, and can be taken back without a trace"
own; printf '{\n  "a": 1\n}' >"$HOME/.gemini/settings.json"
for at in 20 24 28 32 36 40 44; do MAILROOM_FAULT=errno-from:ENOSPC:$at dev/mailroom setup gemini --apply >/dev/null 2>&1 </dev/null; done
check 'a full disk leaves a whole file' jq -e .a "$HOME/.gemini/settings.json"
dev/mailroom setup gemini --apply >/dev/null 2>&1 </dev/null
same '' "$(find "$HOME" -name '*mailroom-*')" 'and nothing beside it, at the latest after the next one (on such a disk nothing can be removed either)'

# ---- check ----
own; exits 1 'check without setup' mailroom setup claude-code --check
says out 'hook Stop: it is not configured' 'says what is missing'
says out 'repair: mailroom setup claude-code --apply' 'and what to do'
for h in claude-code codex gemini cursor; do
	mailroom setup $h --apply >/dev/null
	exits 0 "check $h" mailroom setup $h --check --json
	same '' "$(jq -r 'select(.ok|not).part' out)" 'everything is fine'
	says out 'MCP server' 'the server among it'
	says out '"part":"shell","ok":true' 'and a shell with the variables that it gets'
done
same '' "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'mailroom-check-*' -user "$(id -un)" -newer dev 2>/dev/null)" 'nothing is left of it'
printf '#!/bin/sh\nenv >"%s"\nexec mailroom "$@"\n' "$PWD/told" >serves; chmod +x serves
cp "$HOME/.claude.json" before; jq --arg serves "$PWD/serves" '.mcpServers.mailroom.command = $serves' before >"$HOME/.claude.json"
CLAUDE_CODE_MESSAGING_SOCKET=/door CLAUDE_CODE_MESSAGING_TOKEN=key mailroom setup claude-code --check >/dev/null 2>&1; cp before "$HOME/.claude.json"
says told '^MAILROOM=' 'the server that is tried'
silent_about told 'door|MESSAGING_TOKEN=key' 'does not have the socket of the session around it'
sed -i "s,$scratch/bin/mailroom hook,$scratch/gone/mailroom hook," "$HOME/.claude/settings.json"
exits 1 'a hook that is not there' mailroom setup claude-code --check
says out 'hook SessionStart: the message is not in what it prints \(exit 127' 'is told'
printf '#!/bin/sh\nexit 0\n' >"$scratch/a b/mailroom"; sed -i "s,$scratch/gone,$scratch/a b," "$HOME/.claude/settings.json"; jq '.mcpServers.mailroom.command = "/nowhere/mailroom"' "$HOME/.claude.json" >new && cat new >"$HOME/.claude.json"
exits 1 'a server that is not there' mailroom setup claude-code --check --json
same "cannot run '/nowhere/mailroom': there is no such program" "$(jq -r 'select(.part == "MCP server").problem' out)" 'is told, too'
mailroom setup claude-code --apply >/dev/null; exits 0 'apply repairs both' mailroom setup claude-code --check
PATH=/usr/bin:/bin; exits 1 'a command that no shell finds' "$scratch/bin/mailroom" setup cursor --check
says out "repair: ln -s $scratch/bin/mailroom" 'is told with the line to type'
finish
