# SPDX-License-Identifier: MIT
# read --to: agents may run it unasked, so mail may talk one into any path. It makes new files of text below the working
# folder or that for temporary files, and nothing else, whatever lies on the way.
. "$(dirname "$0")/../lib/tap.sh"

mkdir evil-tmp && export TMPDIR="$scratch/evil-tmp"
room alice bob
id=$(printf '#!/bin/sh\ntouch obeyed\n' | "$BIN" --as alice send bob -s x 2>/dev/null)
mkdir -p outside work
into() { mr --as bob read "$id" --to "$1" >out 2>err; }
refused() { # refused NAME PATH: exit code 4, nothing was made, the mail is unread
	before=$(find "$scratch" -type f -o -type l | grep -v -e '/out$' -e '/err$' -e /state/ -e /.mailroom/ | sort)
	into "$2"; code=$?
	after=$(find "$scratch" -type f -o -type l | grep -v -e '/out$' -e '/err$' -e /state/ -e /.mailroom/ | sort)
	if [ $code = 4 ] && [ "$before" = "$after" ] && [ "$(unread bob)" = 1 ] && [ -z "$(find "$scratch/.mailroom" -name '*.txt')" ]; then ok "refused: $1"
	else note <err; not_ok "refused: $1 (exit $code)"; fi
}
cd work || exit 1
mkdir -p sub .git/hooks .claude; export MAILROOM="$scratch/.mailroom"
ln -s ../outside link; ln -s ../../outside sub/link; ln -s nowhere dangling.txt; mkfifo fifo.txt; echo mine >there.txt; ln there.txt hard.txt
refused 'above the working folder' ../outside/x.txt
refused 'the same in the middle' sub/../../outside/x.txt
refused 'an absolute path elsewhere' /var/x.txt
refused 'the home folder' "$HOME/x.txt"
refused 'a neighbour with a longer name' "${PWD}er/x.txt"
refused 'through a linked folder' link/x.txt
refused 'through a linked folder further below' sub/link/x.txt
refused 'the same, absolute' "$PWD/link/x.txt"
refused 'hooks of git' .git/hooks/pre-commit.txt
refused "a harness's folder" .claude/x.txt
refused 'a hidden file' .x.txt
refused 'a hidden file, with a folder' ./sub/.x.txt
refused 'a link to nothing' dangling.txt
refused 'a FIFO' fifo.txt
refused 'a file that is there' there.txt
refused 'a file with two names' hard.txt
same mine "$(cat there.txt)" 'which has its bytes'
(cd .git/hooks && refused 'inside of .git' x.txt; echo "$count $failures" >"$scratch/n"); read -r count failures <"$scratch/n"
box=$scratch/.mailroom/agents/bob/new
(cd "$box" && "$BIN" --as bob read "$id" --to mail.txt >"$scratch/out" 2>"$scratch/err" </dev/null; same '4 ' "$? $(ls -A "$box" | grep txt)" 'inside of a mailbox'; echo "$count $failures" >"$scratch/n"); read -r count failures <"$scratch/n"
ln -s "$scratch/outside" "$TMPDIR/planted"; refused 'a link in the folder for temporary files' "$TMPDIR/planted/x.txt"
same '' "$(ls -A "$scratch/outside")" 'nothing came outside'

into "$TMPDIR/mail.txt"; same '0 600' "$? $(stat -c %a "$TMPDIR/mail.txt")" 'a new file there, for this user alone'
id=$(printf 'again\n' | "$BIN" --as alice send bob -s x 2>/dev/null); into sub/mail.txt; same 0 $? 'and one below the working folder'
check 'it begins with our words, not with those of others' sh -c 'head -n 1 sub/mail.txt | grep -q "^---"'

# ---- races: the folder becomes a link, the file a link, while it is written ----
(while :; do rm -rf swap; mkdir swap; rm -rf swap; ln -s ../outside swap; done) 2>/dev/null & swapper=$!
(while :; do ln -sf "$scratch/outside/y.txt" race.txt; rm -f race.txt; done) 2>/dev/null & linker=$!
id=$(printf 'race\n' | "$BIN" --as alice send bob -s x 2>/dev/null)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do into swap/x$i.txt; into race.txt; mr --as bob mark unread "$id" >/dev/null 2>&1; done
kill $swapper $linker; wait $swapper $linker 2>/dev/null
same '' "$(ls -A "$scratch/outside")" 'links that come and go lead nothing outside'
finish
