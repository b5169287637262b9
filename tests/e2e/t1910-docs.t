# SPDX-License-Identifier: MIT
# once
# The pages for people: every block of commands is run as it stands, from the top of a page to its end, and no command hides in another block.
. "$(dirname "$0")/../lib/tap.sh"
full=$(dirname "$DEVBIN")/mailroom-full
mkdir -p inst/bin inst/libexec/mailroom
cp "$BIN" inst/bin/mailroom
[ ! -x "$full" ] || cp "$full" inst/libexec/mailroom/
PATH=$scratch/inst/bin:$PATH; export PATH
for page in FIRST-TEN-MINUTES ONE-MACHINE COMING-FROM HARNESSES TYPES; do
	awk '/^```sh$/ { code = 1; next } /^```/ { code = 0 } code' "$top/docs/$page.md" >"$page.sh"
	awk '/^```sh$/ { skip = 1; next } /^```/ { skip = 0; code = !code; next } code && !skip' "$top/docs/$page.md" | grep -n '^mailroom ' >hidden
	same '' "$(cat hidden)" "$page: every command is in a block that is run"
	mkdir "$page.d" "$page.home"
	[ $page != HARNESSES ] || (cd "$page.d" && mr init >/dev/null 2>&1)
	(cd "$page.d" && HOME=$scratch/$page.home XDG_STATE_HOME=$scratch/$page.home/s XDG_CONFIG_HOME=$scratch/$page.home/c sh -eu "../$page.sh") >"$page.out" 2>&1
	code=$?
	if [ $code -eq 0 ]; then ok "$page: runs as it stands"; else note <"$page.out"; not_ok "$page: runs as it stands (exit $code)"; fi
done
awk '/^## Three commands/ { on = 1 } on && /^```sh$/ { code = 1; next } /^```/ { if (code) exit } code' "$top/README.md" >three.sh
mkdir three.d
(cd three.d && sh -eu ../three.sh) >three.out 2>&1 || note <three.out
says three.out 'please run the tests of feature-x' 'README: the three commands bring the message'
same 3 "$(grep -c ^mailroom three.sh)" 'README: they are three'
check 'README: at most 150 lines' test "$(wc -l <"$top/README.md")" -le 150
says FIRST-TEN-MINUTES.out 'bob.*archived|read' 'why tells what became of the message'
says FIRST-TEN-MINUTES.out '^exit code 5$' 'a mistyped name is refused'
says FIRST-TEN-MINUTES.out '^done for today$' 'wait and drain bring the answer'
says ONE-MACHINE.out 'main is green' 'a channel'
says ONE-MACHINE.out 'no merges until noon|freeze' 'search finds it'
says COMING-FROM.out 'is the port 8080' 'mail in a team'
for page in README.md docs/FIRST-TEN-MINUTES.md docs/ONE-MACHINE.md docs/COMING-FROM.md docs/HARNESSES.md; do
	for link in $(grep -oE '\]\([A-Za-z0-9_./-]+\)' "$top/$page" | tr -d '()]'); do
		check "$page: '$link' is there" test -e "$top/$(dirname "$page")/$link"
	done
done
finish
