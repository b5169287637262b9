# SPDX-License-Identifier: MIT
# Completion of command lines: from the table of commands and from the room, in the real shells; nothing of a room is evaluated.
. "$(dirname "$0")/../lib/tap.sh"
room alice bob
mr --as bob send alice -s 'the build is red' -m x >id
short=$(tail -c 7 <id)
mr --as alice queue create builds >/dev/null
mr --as alice queue create rig/night >/dev/null
mr --as alice group create team bob >/dev/null
mr --as alice channel create news >/dev/null
given() { # given WORD... - the candidates, without what they are
	mr complete -- "$@" 2>err | cut -f1 | tr '\n' ' ' | sed 's/ $//'
}

# ---- the table of commands
same 'register' "$(given regi)" 'commands by their beginning'
same 'sent	list the mail that you sent' "$(mr complete -- sent)" 'with what each does'
same '' "$(given nosuch '')" 'nothing behind a command that does not exist'
same 'create list show wait pause resume close delete' "$(given queue '')" 'second words'
same '--priority' "$(given send --prio)" 'options'
same '--room' "$(given --ro)" 'options of the program'
same 'urgent high normal low' "$(given send --priority '')" 'values of an option'
same '--priority=urgent' "$(given send --priority=u)" 'also behind ='
same ':files' "$(given send --file '')" 'names of files are the work of the shell'
same '' "$(given send --subject '')" 'a text has no candidates'
same '' "$(given send -- --pri)" 'behind -- there are no options'
same 'mail' "$(given gt ma)" 'words of gt'
same 'send search' "$(given gt mail se)" 'its second words, each once'
same 'claude-code codex copilot' "$(given setup c | sed 's/ cursor//')" 'harnesses'
for cmd in $(mr describe --all | jq -r '.commands[].name'); do
	case $cmd in gt*) continue ;; esac
	same "$cmd" "$(given "$cmd" | tr ' ' '\n' | grep -x -- "$cmd")" "'$cmd' is a candidate"
done

# ---- the room
same 'alice bob' "$(given register '' | sed 's/ operator//')" 'agents'
same 'queue:builds queue:rig/night' "$(given send queue:)" 'addresses of queues'
same 'group:team' "$(given group add team group:)" 'members of a group'
same 'builds rig/night' "$(given queue show '')" 'queues'
same 'news' "$(given channel read '')" 'channels'
same "$short	bob: the build is red" "$(mr complete -- --as alice read '')" 'ids of the inbox, with sender and subject'
same '' "$(given --as bob read '')" 'of the caller that --as names'
same '' "$(given --as alice done '')" 'no work is held'
mr --as alice recv --lease 1h >/dev/null
same "$short" "$(given --as alice done '')" 'work that is held'
mkdir -p elsewhere
same '' "$(cd elsewhere && env -u MAILROOM "$BIN" complete -- --room "$scratch/nowhere" send '')" 'no room: no candidates'
(cd elsewhere && "$BIN" complete -- --room "$scratch/nowhere" send '' >out 2>err); same '0 ' "$? $(cat elsewhere/out)" 'and no failure'
cp -r .mailroom before
given --as alice read '' >/dev/null
given send '' >/dev/null
check 'looking changes nothing in the room' diff -r before .mailroom

# ---- what a room says is data
mkdir -p evil/.claude/teams/t/inboxes
printf '{"name":"t","members":[{"name":"$(touch pwned)"},{"name":"`touch pwned`"},{"name":"good"},{"name":"a b"},{"name":"x;y"}]}' >evil/.claude/teams/t/config.json
for name in '$(touch pwned)' '`touch pwned`' good 'a b' 'x;y'; do printf '[]' >"evil/.claude/teams/t/inboxes/$name.json"; done
exits 0 'candidates of a room with hostile names' "$BIN" --room "teams:$scratch/evil/.claude/teams/t" complete -- send ''
cut -f1 out >names
says names '^good$' 'its names are there'
silent_about names '[^A-Za-z0-9_./:@+%-]' 'and nothing that a shell would have to quote'
mr --as bob send alice -s "$(printf 'red\033[31m\ttab')" -m x >/dev/null
check 'no control character gets to the terminal' sh -c '! "$1" complete -- --as alice read "" | cut -f2- | grep -q "[[:cntrl:]]"' - "$BIN"

# ---- the real shells
mkdir -p bin; ln -sf "$BIN" bin/mailroom
PATH=$scratch/bin:$PATH; export PATH
in_bash() { # in_bash LINE
	bash --norc -c '. "$1"; compopt() { echo "compopt $*"; }; COMP_LINE=$2 COMP_POINT=${#2}
	set -f; COMP_WORDS=(${2//:/ : }); COMP_WORDS=("${COMP_WORDS[@]//=/ = }"); COMP_WORDS=(${COMP_WORDS[*]})
	[[ $2 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _mailroom; printf "%s\n" "${COMPREPLY[@]}"' - "$top/share/completions/mailroom.bash" "$1" | tr '\n' ' ' | sed 's/ *$//'
}
same 'register' "$(in_bash 'mailroom regi')" 'bash: commands'
same 'builds rig/night' "$(in_bash 'mailroom send queue:')" 'bash: behind a colon only the rest'
same 'urgent' "$(in_bash 'mailroom send --priority=u')" 'bash: behind ='
same 'compopt -o default' "$(in_bash 'mailroom send -f ')" 'bash: files'
same 'alice bob' "$(in_bash 'mailroom takeover ' | sed 's/ operator//')" 'bash: an empty word'
if command -v fish >/dev/null; then
	in_fish() { HOME=$scratch fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$top/share/completions/mailroom.fish" "$1" 2>/dev/null | cut -f1 | tr '\n' ' ' | sed 's/ $//'; }
	same 'register' "$(in_fish 'mailroom regi')" 'fish: commands'
	same 'queue:builds queue:rig/night' "$(in_fish 'mailroom send queue:')" 'fish: addresses'
	printf x >a-file
	same 'a-file' "$(in_fish 'mailroom send -f a-f')" 'fish: files'
else
	skip 'in fish' 'fish is not installed'
fi
if command -v zsh >/dev/null; then
	mkdir -p zfunc; cp "$top/share/completions/_mailroom" zfunc/
	cat >drive.zsh <<'Z'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1='>'; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $1/dump; zstyle ':completion:*' list-prompt ''; LISTMAX=0; print READY"
zpty -r -m z seen '*READY*READY*'
zpty -w -n z "$2"$'\t\C-a\C-kprint -r -- DONE\n'
got=
for ((i = 0; i < 100; i++)); do
	zpty -r -t z part && got+=$part || sleep 0.05
	[[ $got == *DONE*DONE* ]] && break
done
print -r -- "$got"
zpty -d z
Z
	in_zsh() { HOME=$scratch timeout 30 zsh -f drive.zsh "$scratch/zfunc" "$1" >zout 2>&1; tr -d '\r' <zout; }
	in_zsh 'mailroom queue sho' >got
	check 'zsh: completes a word' grep -q 'mailroom queue show' got
	in_zsh 'mailroom send queue:b' >got
	check 'zsh: an address' grep -q 'queue:builds\|queue\\:builds\|uilds' got
else
	skip 'in zsh' 'zsh is not installed'
fi
check 'nothing of it was run' test ! -e pwned -a ! -e elsewhere/pwned
finish
