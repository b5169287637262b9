# every-build
. "$(dirname "$0")/../lib/tap.sh"
unset GIT_DIR GIT_WORK_TREE
here=$(pwd -P)

# ---- no room ----
exits 5 'without a room a command exits 5' mr inbox
says err 'mailroom init' 'and says how to make one'
says err 'MAILROOM' 'and how to name one'
exits 5 'also where' mr where
exits 5 'a --room that is not there' mr --room "$here/nowhere" --as operator inbox
exits 5 'errors are JSON with --json' mr --json inbox
same not-found "$(jq -r .error.code err)" 'with a code a program can use'
exits 5 'bare mailroom too' mr
says err 'mailroom init' 'says how to make one'

# ---- a plain folder ----
mkdir "$here/My Project" && cd "My Project" || exit 1
exits 0 'init in a plain folder' mr init
check 'makes .mailroom there' test -f .mailroom/room
says .mailroom/room '^Format: 1$' 'with a format number'
says .mailroom/room '^Name: My-Project$' 'named after the folder, as far as an address can say it'
check 'and a mailbox for the operator' test -f .mailroom/agents/operator/agent
check 'no git, no stub .git' test ! -e .mailroom/.git
before=$(find .mailroom | sort; cat .mailroom/room)
exits 0 'init again is no error' mr init
says out 'already' 'and says that the room was there'
same "$before" "$(find .mailroom | sort; cat .mailroom/room)" 'and changes nothing'
exits 0 'init again with another name' mr init --name other
says .mailroom/room '^Name: My-Project$' 'does not rename the room'
mkdir -p a/b/c && cd a/b/c || exit 1
exits 0 'where, from below' mr where --json
same "maildir:$here/My Project/.mailroom" "$(jq -r .spec out)" 'finds the nearest room upwards'
same null "$(jq .warning out)" 'without a warning'
says out '"why":"nearest .mailroom above' 'and says why'
exits 0 'where as text' mr where
says out 'why +nearest' 'says why too'
exits 0 'a second room below the first' sh -c 'mkdir x && "$BIN" init x --name inner </dev/null'
cd x || exit 1
exits 0 'where, with two rooms on the way' mr where --json
same "maildir:$here/My Project/a/b/c/x/.mailroom" "$(jq -r .spec out)" 'takes the nearest'
says err 'second room' 'and warns of the other'
same true "$(jq '.warning|test("second room")' out)" 'also in JSON'
exits 0 '--room wins' mr --room "$here/My Project" where --json
same 'My-Project --room' "$(jq -r '"\(.name) \(.why)"' out)" 'and is the reason'
exits 0 'the room folder itself may be named' mr --room "$here/My Project/.mailroom" where --json
same My-Project "$(jq -r .name out)" 'and is the same room'
exits 0 '$MAILROOM wins over the nearest' env MAILROOM="$here/My Project" "$BIN" where --json
same 'My-Project $MAILROOM' "$(jq -r '"\(.name) \(.why)"' out)" 'and is the reason'
exits 0 '--room wins over $MAILROOM' env MAILROOM=/nowhere "$BIN" --room . where --json
same inner "$(jq -r .name out)" 'relative to the working folder'
exits 5 'a wrong $MAILROOM is not quietly passed over' env MAILROOM="$here/nowhere" "$BIN" --as operator inbox
exits 4 'a room name with a slash is refused' mr init --name a/b "$here"
exits 4 'a room name with a line break is refused' mr init --name 'a
Sync: none' "$here"
check 'and makes no room' test ! -e "$here/.mailroom/room"
exits 5 'init in a folder that is not there' mr init "$here/not/there"
exits 2 'init --share of something else' mr init --share world "$here"
cd "$here" || exit 1

# ---- modes ----
modes() { find "$1/.mailroom" -printf '%m %y\n' | sort -u | tr '\n' ','; }
for mask in 000 077 022; do
	rm -rf m && mkdir m
	(umask $mask; cd m && mr init --name m && mr register alice && mr register bob && send alice bob hi && mr --as bob read "$(mr --as bob inbox --json | jq -r .id)"; mr --as bob archive --all-read) >/dev/null 2>&1
	same '400 f,600 f,700 d,' "$(modes m)" "folders 0700, files 0600, messages 0400 with umask $mask"
done
rm -rf m && mkdir m
(umask 077; cd m && mr init --name m --share group && mr register alice && mr register bob && send alice bob hi && send alice bob hi && mr --as bob read "$(mr --as bob inbox --json | jq -r .id | head -n 1)"; mr --as bob archive --all-read) >/dev/null 2>&1
same '2770 d,440 f,660 f,' "$(modes m)" '--share group opens all of it to the group, whatever the umask'

# ---- git ----
at() { (cd "$1" && shift && "$@"); }
git init -q repo && git -C repo commit -q --allow-empty -m first
mkdir repo/sub && echo x >repo/sub/file
git -C repo worktree add -q ../linked 2>/dev/null
exits 0 'init in a subfolder of a repository' at repo/sub mr init
check 'makes the room at the top of the worktree' test -f repo/.mailroom/room -a ! -e repo/sub/.mailroom
same '*' "$(cat repo/.mailroom/.gitignore)" 'with a .gitignore of *'
check 'excluded in info/exclude' grep -qx '/.mailroom/' repo/.git/info/exclude
check 'and a stub .git inside' test -f repo/.mailroom/.git/HEAD
exits 0 'init again in a repository' at repo mr init
same 1 "$(grep -c mailroom repo/.git/info/exclude)" 'does not exclude it twice'
at repo mr register alice >/dev/null 2>&1; at repo send operator alice 'important' >/dev/null
mail() { find repo/.mailroom -type f | sort | xargs -d '\n' md5sum; }
before=$(mail)
same '?? sub/' "$(git -C repo status --porcelain)" 'git status does not show the room'
git -C repo add -A && git -C repo commit -q -m second
same sub/file "$(git -C repo ls-files)" 'git add -A does not add it'
echo y >repo/sub/other; echo z >>repo/sub/file
check 'git stash -u' git -C repo stash -q -u
same "$before" "$(mail)" 'leaves the mail alone'
check 'and stashed the rest' test ! -e repo/sub/other
git -C repo stash drop -q
echo y >repo/sub/other
check 'git stash -a' git -C repo stash -q -a
same "$before" "$(mail)" 'leaves the mail alone'
git -C repo stash drop -q
echo y >repo/sub/other
check 'git clean -fdx' git -C repo clean -qfdx
same "$before" "$(mail)" 'leaves the mail alone'
check 'but cleaned' test ! -e repo/sub/other
check 'git clean -fd' git -C repo clean -qfd
same "$before" "$(mail)" 'leaves the mail alone'
check 'git checkout of another branch' git -C repo checkout -q -b branch
same "$before" "$(mail)" 'leaves the mail alone'
same '' "$(git -C repo status --porcelain)" 'git status is clean'

exits 0 'a linked worktree' at linked mr where --json
same "maildir:$here/repo/.mailroom" "$(jq -r .spec out)" 'uses the room of the main worktree'
same "$here/linked" "$(jq -r .worktree out)" 'and knows its own top'
says out 'main worktree' 'and says why'
mkdir linked/deep
same "maildir:$here/repo/.mailroom" "$(at linked/deep mr where --json | jq -r .spec)" 'from a subfolder too'
same 1 "$(at linked/deep unread alice)" 'and sees its mail'
exits 0 'init in a linked worktree' at linked mr init
says out 'already' 'finds the one of the main worktree'
check 'and makes no second' test ! -e linked/.mailroom
git init -q repo2 && git -C repo2 commit -q --allow-empty -m first && git -C repo2 worktree add -q ../linked2 2>/dev/null
exits 0 'the first init from a linked worktree' at linked2 mr init --name two
check 'makes the room in the main worktree' test -f repo2/.mailroom/room -a ! -e linked2/.mailroom
same '' "$(git -C linked2 status --porcelain)$(git -C repo2 status --porcelain)" 'git status is clean in both'
exits 0 'a room of its own in a linked worktree, when asked for' at linked2 mr init . --name own
exits 0 'is used there' at linked2 mr where --json
same own "$(jq -r .name out)" 'as the nearest'
says err 'second room' 'with a warning that the others meet elsewhere'
same '' "$(git -C linked2 status --porcelain)" 'and git does not show it'

git init -q tracked
exits 0 'a room' at tracked mr init --name tracked
rm -rf tracked/.mailroom/.git tracked/.mailroom/.gitignore && : >tracked/.git/info/exclude
git -C tracked add -A 2>/dev/null && git -C tracked commit -q -m 'the mail too'
exits 0 'that git tracks' at tracked mr where --json
says err 'git tracks' 'is warned of'
says err 'git rm' 'with what to do'
same true "$(jq '.warning|test("git tracks")' out)" 'also in JSON'
eval "$(sed -n "s/.*run '\(git rm .*\)'.*/\1/p" err | sed 's/^git/git -C tracked/')"
exits 0 'doing that' at tracked mr where
silent_about err 'git tracks' 'ends it'
mkdir late && mr init late --name late >/dev/null 2>&1 && git init -q late
exits 0 'git init around a room, then init again' at late mr init
same '' "$(git -C late status --porcelain)" 'hides it from git'

# ---- rooms that must not be used ----
mkdir newer && mr init newer --name newer >/dev/null 2>&1
sed -i 's/^Format: 1/Format: 2/' newer/.mailroom/room
exits 4 'a room of a newer format is refused' mr --room newer who
says err 'newer mailroom' 'and says what to do'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$here"; cp "$BIN" "$here/mailroom" && chmod 755 "$here/mailroom"
	nobody() { (cd "$here" && HOME=$here/nobody XDG_STATE_HOME=$here/nobody setpriv --reuid 65534 --regid 65534 --clear-groups "$here/mailroom" "$@" </dev/null); }
	mkdir theirs nobody && chown 65534:65534 nobody && mr init theirs --name theirs >/dev/null 2>&1
	exits 1 'a room that its owner keeps closed' nobody --room "$here/theirs" --as operator inbox
	says err 'ermission' 'is an error that says why'
	chmod -R a+rwX theirs
	exits 4 'a room of another user is refused, even with its modes open' nobody --room "$here/theirs" --as operator inbox
	says err 'another user' 'and says why'
	same 0 "$(find theirs -uid 65534 | wc -l)" 'nothing was written into it'
	chown -R 65534:65534 theirs && chmod -R go= theirs
	exits 4 'root does not use the room of another user either' mr --room theirs --as operator inbox
	mkdir shared && chgrp 65534 shared && mr init shared --name shared --share group >/dev/null 2>&1
	chgrp -R 65534 shared/.mailroom; chmod -R g+s shared/.mailroom 2>/dev/null; find shared/.mailroom -type f -exec chmod g-s {} +
	exits 0 'a shared room' nobody --room "$here/shared" register eve
	exits 0 'is used by the group' nobody --room "$here/shared" --as eve send operator -m 'from another user'
	exits 0 'and by its owner' mr --room shared --as operator inbox --json
	same 'from another user' "$(jq -r .subject out)" 'who sees the mail'
	exits 0 'reads it' mr --room shared --as operator read "$(jq -r .id out)"
	exits 0 'and answers' mr --room shared --as operator send eve -m 'hello eve'
	exits 0 'which the other user' nobody --room "$here/shared" --as eve drain
	says out 'hello eve' 'drains'
else
	skip 'a room of another user is refused' 'needs root and setpriv'
fi

# ---- what a power cut may do ----
if [ -w /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	shm=$(mktemp -d /dev/shm/mailroom-test.XXXXXX)
	trap 'rm -rf "$shm"; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
	cd "$shm" || exit 1
	exits 0 'init on tmpfs' mr init --name ram
	says err 'tmpfs' 'says what is not power-safe'
	exits 0 'where on tmpfs' mr where
	says out 'tmpfs.*power cut' 'says it too'
	says out 'sync +full: only (ext4 with a journal and xfs|Linux is the order known)' 'and why each delivery has all its syncs'
	says .mailroom/room '^Sync: auto$' 'which the room leaves open'
	exits 0 'doctor' mr doctor
	silent_about out 'Sync: full is used' 'has nothing to say about that'
	same 'full true' "$(sed -i '/^Sync:/d' .mailroom/room; mr where --json | jq -r '.storage | "\(.sync) \(.sync_reason != null)"')" 'nor needs the room a line for it'
	same false "$(mr where --json | jq .storage.power_safe)" 'also in JSON'
	mkdir quick
	exits 0 'init --sync fast on tmpfs' mr init quick --name quick --sync fast
	says err "as with '--sync full': only " 'says that it is full all the same, and why'
	same 'full true' "$(mr --room quick where --json | jq -r '.storage | "\(.sync) \(.sync_reason != null)"')" 'where says what is so'
	exits 0 'doctor there' mr --room quick doctor
	says out 'Sync: full is used: only ' 'says it too'
	mr register alice >/dev/null 2>&1; mr register bob >/dev/null 2>&1
	exits 0 'a send there' mr --as alice send bob -m 1
	silent_about err 'tmpfs|power' 'does not say it: that was said when the room was made'
	exits 0 'doctor' mr doctor
	says out 'tmpfs|power' 'says it'
	cd "$here" || exit 1
else
	skip 'storage warnings' 'no tmpfs at /dev/shm'
fi
mkdir fast
exits 0 'init --sync none' mr init fast --name fast --sync none
says err 'power cut' 'is said loudly'
same false "$(mr --room fast where --json | jq .storage.power_safe)" 'and where knows'
same none "$(mr --room fast where --json | jq -r .storage.sync)" 'in so many words'
exits 2 'init --sync with another word' mr init fast --sync quick
says err "not one of auto, full, fast, none" 'tells the words'

# ---- the command explains itself ----
room alice bob
exits 0 'bare mailroom' mr --as alice
says out 'alice' 'says who you are'
says out 'town' 'and the room'
silent_about out 'mailroom send' 'and teaches no command to one who has a name'
exits 0 'bare mailroom, nobody in particular' mr
says out 'register' 'tells how to become somebody'
says out 'mailroom send' 'and the commands'
exits 0 'help of a command' mr send --help
silent_about out 'nearest .mailroom upwards|corrupt room' 'leaves out what all have in common'
says out 'mailroom help options$' 'and says where it is'
exits 0 'help options' mr help options
says out '--room SPEC' 'has the options of every command'
says out '^  6  in doubt' 'and what exit codes mean'
exits 0 'describe' mr describe
[ "$(wc -m <out)" -le 2000 ] && ok "fits 500 tokens ($(wc -m <out) characters)" || not_ok "fits 500 tokens: $(wc -m <out) characters"
for word in send inbox reply drain wait; do grep -q "mailroom $word\|^ *$word\|mailroom.* $word" out || echo "$word"; done >missing
same '' "$(cat missing)" 'and teaches the commands that matter'
exits 0 'describe --all' mr describe --all
cp out all
check 'is one JSON object' jq -es 'length == 1 and (.[0]|type == "object")' all
jq -r '.. | .name? // empty' all >names
for word in init where register whoami who takeover prune send reply inbox read recv done release fail extend mark archive drain wait thread sent why search purge doctor stats describe; do
	grep -qx "$word" names || echo "describe: $word"
	"$BIN" $word --help </dev/null >help 2>help.err || echo "help: $word: exit $?"
	grep -q "mailroom.* $word" help && grep -qi example help || echo "help: $word: no example"
	[ -s help.err ] && echo "help: $word: wrote to stderr"
done >missing
same '' "$(cat missing)" 'every command is in it, and has --help with an example'
exits 0 '--version' mr --version
says out '^mailroom [0-9]+\.[0-9]+' 'prints a version'
exits 0 '--help' mr --help
says out 'send' 'lists the commands'
exits 0 'help send' mr help send
says out "<<'EOF'" 'whose first example is a heredoc'
exits 2 'a command without its arguments' mr read
says err 'mailroom read' 'explains itself'
# ---- a trace tells of every operation ----
room alice
mr --as alice queue create jobs >/dev/null 2>&1; mr --as alice channel create news >/dev/null 2>&1
MAILROOM_DEBUG=1 "$BIN" --as alice send queue:jobs -m work >out 2>err </dev/null
MAILROOM_DEBUG=1 "$BIN" --as alice recv queue:jobs --lease 1m >out 2>>err </dev/null
MAILROOM_DEBUG=1 "$BIN" --as alice channel show news >out 2>>err </dev/null
says err "claim 'queue:jobs' for 'alice' [0-9a-z]*: ok" 'a claim'
says err "channel_[a-z]* 'news'.*: ok" 'a channel'
says err "record_[a-z]* (queue|channel) '' '(jobs|news)'" 'a record'
silent_about err 'work' 'and nothing of the text'
says "$top/src/room/trace.c" '^#include "room/slots.h"' 'every slot is traced: the wrappers are made from the list of slots'

finish
