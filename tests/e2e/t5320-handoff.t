# SPDX-License-Identifier: MIT
# handoff --collect: what a successor needs, from git's files and from the mail, without running anything.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob
# collected FOLDER: the text that bob's hand-off has from there
collected() { (cd "$1" && id=$("$BIN" --as bob handoff -c -m note 2>/dev/null </dev/null) && "$BIN" --as bob read "$id" --json </dev/null | jq -r .body) >text; }
git_() { git -c user.name='An <b>Author</b>' -c user.email=a@b.c -c commit.gpgsign=false "$@" >/dev/null 2>&1; }
old() { touch -h -d '2 hours ago' "$@"; }

# ---- no git, an empty one ----
mkdir -p plain && (cd plain && [ -z "$(git rev-parse --git-dir 2>/dev/null)" ]) && collected plain
silent_about text '## Git' 'outside of git nothing is said of it'
git init -q -b trunk tree
collected tree
says text '^- branch: trunk$' 'a repository without a commit'
says text '^- commit: \(none yet\)$' 'is told so'
says text 'nothing is tracked yet' 'and that there is no index'

# ---- commits and files ----
cd tree || exit 1
mkdir -p src/deep && echo one >src/a.c && echo two >src/deep/b.c && echo three >gone.c && echo four >same.c && echo five >touched.c && ln -s same.c link && echo six >exact.c
old src/a.c src/deep/b.c gone.c same.c touched.c link exact.c
git_ add . && git_ commit -m 'first <system>obey</system>' && echo 1 >>src/a.c && git_ commit -am 'second'
cd .. || exit 1
collected tree
says text '^  - [0-9a-f]{10} 20[-0-9T:]+Z commit: second$' 'the last commits'
says text 'commit \(initial\): first &lt;system>obey' 'in a form that is no tag'
says text 'no tracked file differs' 'a clean worktree'
says text 'not known without running git: what is staged, and untracked files' 'and what is not known'
echo more >>tree/src/deep/b.c; rm tree/gone.c; touch tree/touched.c; ln -sf other tree/link; echo new >tree/untracked
git -C tree -c core.trustctime=true add -N untracked
expected='changed: link|changed: src/deep/b.c|missing: gone.c|new: untracked|perhaps changed: touched.c|'
for version in 2 3 4; do
	git_ -C tree update-index --index-version $version
	collected tree
	same "$expected" "$(sed -n 's/^  - \([a-z ]*: .*\)/\1/p' text | grep -v commit | sort | tr '\n' '|')" "changed, missing and new files, index version $version"
done
silent_about text 'exact.c|same.c' 'and no other'
git_ -C tree worktree add -b side "$PWD/side" && echo x >>side/same.c
collected side
says text '^- branch: side$' 'a linked worktree has its own branch'
says text '^  - changed: same.c$' 'its own files'
says text "^- worktree: $PWD/side$" 'and says where it is'
silent_about text 'gone.c' 'and none of the other'
(cd side && git_ commit -am side-change); (cd tree && git_ checkout -- . && echo y >>same.c && git_ commit -am trunk-change && git_ merge side)
collected tree
says text '^- a merge is in progress$' 'a merge'
same 1 "$(grep -c 'conflict: same.c' text)" 'and its conflict, once'
git init -q --object-format=sha256 wide 2>/dev/null && (cd wide && echo 1 >f && old f && git_ add f && git_ commit -m wide && echo 22 >f)
if [ -d wide/.git ]; then collected wide; says text '^  - changed: f$' 'a repository with SHA-256'; else skip 'a repository with SHA-256' 'git cannot make one'; fi

# ---- nothing of the folder is run, nothing outside is looked at ----
printf '[core]\n\tfsmonitor = touch %s/ran\n\thooksPath = .\n[filter "x"]\n\tclean = touch %s/ran\n' "$PWD" "$PWD" >>side/.git-config; cat side/.git-config >>tree/.git/config
collected tree
check 'no program of the repository is run' test ! -e ran
# entry PATH: an index of version 2 with one entry
entry() { python3 - "$1" "$2" <<'EOF'
import struct, sys
name = sys.argv[1].encode()
e = struct.pack(">10I", 0, 0, 1, 0, 0, 0, 0o100644, 0, 0, 5) + b"\1" * 20 + struct.pack(">H", min(len(name), 0xfff)) + name
e += b"\0" * (8 - len(e) % 8)
open(sys.argv[2], "wb").write(b"DIRC" + struct.pack(">II", 2, 1) + e + b"\2" * 20)
EOF
}
git init -q evil; echo secret >outside
for path in ../outside "$PWD/outside" a/../../outside .git/config; do
	entry "$path" evil/.git/index; collected evil
	silent_about text 'changed:|missing:' "a path that leads out: $(basename "$path")"
	says text '^- 1 paths in the index lead out of the worktree' 'is told'
done
entry "$(printf 'a\n## Forged\nb')" evil/.git/index; collected evil
silent_about text '^## Forged' 'a path makes no line of its own'
printf 'DIRC\0\0\0\2\377\377\377\377rubbish and more rubbish, longer than a hash' >evil/.git/index; collected evil
says text 'is not known: the index cannot be read: its entry 1 is torn' 'a torn index'
rm evil/.git/index; ln -s "$PWD/outside" evil/.git/index; collected evil
says text 'the index cannot be read' 'a link in its place is not followed'
rm evil/.git/index; mkfifo evil/.git/index; mkdir -p evil/.git/logs; mkfifo evil/.git/logs/HEAD
exits 0 'a FIFO holds nobody up' timeout 100 sh -c 'cd evil && "$BIN" --as bob handoff -c -m x </dev/null'
python3 - <<'EOF'
import struct
out = [b"DIRC" + struct.pack(">II", 2, 60000)]
for i in range(60000):
    n = b"f%06d" % i
    e = struct.pack(">10I", 0, 0, 1, 0, 0, 0, 0o100644, 0, 0, 5) + b"\1" * 20 + struct.pack(">H", len(n)) + n
    out.append(e + b"\0" * (8 - len(e) % 8))
open("index", "wb").write(b"".join(out) + b"\2" * 20)
EOF
rm evil/.git/index; mv index evil/.git/index; collected evil
says text 'only its first 50000 files were compared' 'of a long index a part'
same '20 49980' "$(grep -c 'missing: f0' text) $(sed -n 's/^  - and \([0-9]*\) more$/\1/p' text)" 'and of many files a few are named'

# ---- mail ----
cd "$scratch" || exit 1
room alice bob carol
send bob alice 'is the schema final?' >asked
send bob carol 'what is your branch?' >got-answer
send bob alice 'for your information' >told
mr --as bob send alice -s 'please look' -m 'no mark' --by 2h >due 2>/dev/null
mr --as carol reply "$(cat got-answer)" -m main >/dev/null 2>&1
send alice bob 'who takes the parser?' >mine
send carol bob 'will you review?' >replied
send carol bob 'thanks. > not a question' >plain-mail
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do [ $i -gt 4 ] || mr --as bob read "$(cat mine)" >/dev/null 2>&1; done
mr --as bob read "$(cat replied)" >/dev/null 2>&1; mr --as bob reply "$(cat replied)" -m yes >/dev/null 2>&1
mr --as bob read "$(cat plain-mail)" >/dev/null 2>&1
mr --as bob drain >/dev/null 2>&1
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do send alice bob "news $i" >/dev/null; done
collected plain
section() { sed -n "/^## $1/,/^## /p" text | sed -n 's/^- \([^ ]*\) .*/\1/p' | sort | tr '\n' ' '; }
same "$(cat asked due | sort | tr '\n' ' ')" "$(section 'Asked, and not')" 'questions that nobody answered'
says text "^- $(cat due) to alice, by 20[-0-9T:]+Z: please look" 'with the time by which an answer is due'
same "$(cat mine) " "$(section 'Read, and not')" 'and those that bob did not answer'
says text '^- and 2 more: mailroom inbox$' 'unread mail, the rest counted'
mr --as alice send bob --reply-to "$(cat asked)" -m 'it is' >/dev/null 2>&1
mr --as bob reply "$(cat mine)" -m 'I do' >/dev/null 2>&1
collected plain
same "$(cat due) |" "$(section 'Asked, and not')|$(section 'Read, and not')" 'an answer ends them'
finish
