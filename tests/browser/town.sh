#!/bin/sh
# SPDX-License-Identifier: MIT
# town.sh - a small town in $MAILROOM with something on every page: for the tests of the operator's view, and for its screenshots.
# $DEVBIN writes it, because it can set the clock back. The agents' processes are on standard output: the caller ends them.
set -eu
ago() { minutes=$1; shift; MAILROOM_TEST_CLOCK_OFFSET_MS=$((minutes * -60000)) "$DEVBIN" "$@" 2>/dev/null </dev/null; } # ago MINUTES COMMAND...
live() { # live NAME ROLE: an agent with a session and a process
	CLAUDE_CODE_SESSION_ID=s-$1 perl -e 'system(@ARGV); sleep 900' "$DEVBIN" register "$1" --role "$2" </dev/null >/dev/null 2>&1 &
	echo $!
}
quiet() { "$@" >/dev/null; }

"$DEVBIN" init --name greenplace >/dev/null 2>&1 </dev/null
lives=$(live mayor 'gives out work'; live witness 'watches the workers'; live refinery 'merges'; live nux builder; live slit builder; live furiosa reviewer)
tries=0
until [ "$("$DEVBIN" who --live --json 2>/dev/null | wc -l)" -eq 6 ]; do
	tries=$((tries + 1))
	[ $tries -lt 500 ] || { echo 'town.sh: the agents do not come to live' >&2; kill $lives; exit 1; }
	sleep 0.02
done
CLAUDE_CODE_SESSION_ID=s-rictus perl -e 'system(@ARGV)' "$DEVBIN" register rictus --role builder </dev/null >/dev/null 2>&1 # gone at once
quiet "$DEVBIN" --as mayor group create builders nux slit rictus
quiet "$DEVBIN" --as mayor queue create reviews --attempts 3 --lease 15m
quiet "$DEVBIN" --as mayor queue create deploys --attempts 2
quiet "$DEVBIN" --as mayor channel create news --retain-count 100
quiet "$DEVBIN" --as nux channel subscribe news
quiet "$DEVBIN" --as slit channel subscribe news

# a conversation of several, with code in it
start=$(ago 54 --as nux send refinery witness -s 'MERGE_READY parser-spans' -m 'Branch `parser-spans` is ready.

```
$ make test
412 passed, 0 failed
```
The only risk is the lexer table: it is generated now.')
ago 51 --as refinery read "$start" >/dev/null
answer=$(ago 50 --as refinery reply "$start" -m 'Rebased onto main and merging. One conflict in `src/lex.c`, taken from your side.')
ago 49 --as nux read "$answer" >/dev/null
quiet ago 44 --as refinery send nux witness -s 'MERGED parser-spans' --thread "$start" -m 'Merged as 4f1c9e2. The worktree can go.'
ago 43 --as witness drain >/dev/null

# questions
quiet ago 26 --as slit send operator -s 'Which port should staging use?' --by 20m -m 'The proxy wants one of 8080 and 8443. I can go on with the tests in the meantime, but not deploy.'
quiet ago 12 --as furiosa send operator -s 'May I delete the old fixtures?' --by 30m --priority high -m 'Nobody reads `tests/data/v1` since March. 48 MB.'
late=$(ago 38 --as nux send slit -s 'Can you take over the index rebuild?' --by 15m -m 'I am at the parser all day.')
quiet ago 31 --as mayor send rictus -s 'Rebuild the cache of CI' --priority high -m 'It has the wrong compiler.'
quiet ago 30 --as mayor send rictus -m 'And tell me when it is done.'
quiet ago 6 --as mayor send group:builders -s 'Freeze at noon' --priority urgent -m 'No merges between 12 and 13 o clock.'
: "$late"

# work
for text in 'review the parser' 'review the retry loop of the uploader' 'check the migration for locks' 'read the threat model'; do quiet ago 35 --as mayor send queue:reviews -m "$text"; done
quiet ago 20 --as mayor send queue:reviews --priority high -m 'review the fix for the token leak'
quiet ago 13 --as furiosa recv queue:reviews --lease 14m --json
quiet ago 20 --as slit recv queue:reviews --json
quiet "$DEVBIN" --as slit done "$("$DEVBIN" --as slit inbox --all --json 2>/dev/null | sed -n 's/.*"token":"\([^"]*\)".*/\1/p' | head -n 1)" 2>/dev/null || :
quiet ago 90 --as mayor send queue:deploys -m 'deploy staging'
work=$(ago 80 --as nux recv queue:deploys --json | sed 's/.*"token":"\([^"]*\)".*/\1/')
ago 79 --as nux fail "$work" --reason 'the registry does not answer' >/dev/null
quiet ago 10 --as mayor send queue:deploys --not-before 3h -m 'deploy production'

quiet "$DEVBIN" register toast 2>/dev/null </dev/null
quiet ago 70 --as mayor send toast -s 'Rotate the deploy key' -m 'By Friday, please.'
quiet "$DEVBIN" prune toast --force 2>/dev/null </dev/null

quiet ago 120 --as mayor send channel:news -s 'Release 2.4 is out' -m 'Thanks to all. The next freeze is on Thursday.'
quiet ago 15 --as witness send channel:news -s 'CI is slow today' -m 'Two of five runners are gone.'
echo "$lives"
