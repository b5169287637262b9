# SPDX-License-Identifier: MIT
# The official conformance suite of MCP against /mcp of `mailroom serve`, both eras: every scenario that a revision
# requires passes, but for those that mcp/not-applicable-*.yml names.
MAILROOM_TOP=$(cd "$(dirname "$0")/../../.." && pwd)
. "$MAILROOM_TOP/tests/lib/tap.sh"

peers=$top/tests/peers/mcp
MAILROOM_NPM_SCRIPTS=1 "$top/tools/npm" node-peers/node node@22.23.3 >npm 2>&1 || { note <npm; not_ok 'Node 22 is there'; finish; }
PATH=$top/build/node-peers/node/node_modules/.bin:$PATH
"$top/tools/npm" node-peers/conformance @modelcontextprotocol/conformance@0.2.0-alpha.12 >npm 2>&1 || { note <npm; not_ok 'the suite is there'; finish; }
suites=$top/build/node-peers/conformance/node_modules/@modelcontextprotocol/conformance
room conformance
serve=$(dirname "$DEVBIN")/mailroom-serve
"$serve" serve --listen 127.0.0.1:0 --conformance --json >link 2>serve.err </dev/null &
server=$!
i=0; while [ $i -lt 200 ] && ! [ -s link ]; do sleep 0.1; i=$((i + 1)); done
url=$(jq -r .url link | sed 's|/login.*|/mcp|')

for revision in 2025-11-25 2026-07-28; do
	list=$peers/not-applicable-$revision.yml
	node "$suites/dist/index.js" server --url "$url" --requirements $revision --expected-failures "$list" \
		-o results-$revision >$revision.out 2>$revision.err
	code=$?
	sed -n 's/^\([✓✗]\) \([^:]*\): \(.*\)/\1|\2|\3/p' $revision.out >scenarios
	sed -n 's/^  - scenario: //p' "$suites/requirements/$revision.yaml" >unscored
	while IFS='|' read -r mark scenario counts; do
		reason=$(sed -n "s/^  - $scenario # //p" "$list")
		what="$revision $scenario: $counts"
		if [ -n "$reason" ]; then skip "$what" "not applicable: $reason"
		elif [ "$counts" = '0 passed, 0 failed' ]; then skip "$what" 'the suite itself left it out'
		elif [ "$mark" = ✓ ]; then ok "$what"
		elif grep -qxF "$scenario" unscored; then skip "$what" 'an extension, or not required of this revision'
		else not_ok "$what"; fi
	done <scenarios
	check "$revision: the suite ran" test -s scenarios
	[ $code -eq 0 ] || { sed -n '/Unexpected\|Stale/,$p' $revision.out | note; sed 's/^\(.\{200\}\).*/\1/;30q' $revision.err | note; }
	same 0 $code "$revision: nothing that applies fails, not even as a warning, and nothing that does not apply passes"
done
kill $server; wait $server
same 0 $? 'the server ends when it is asked to'
finish
