# SPDX-License-Identifier: MIT
# The official conformance suite of MCP against `mailroom mcp`, both eras, through a bridge of HTTP: every scenario that a revision
# requires passes, but for those that mcp/not-applicable-*.yml names.
MAILROOM_TOP=$(cd "$(dirname "$0")/../../.." && pwd)
. "$MAILROOM_TOP/tests/lib/tap.sh"

peers=$top/tests/peers/mcp
MAILROOM_NPM_SCRIPTS=1 "$top/tools/npm" node-peers/node node@22.23.3 >npm 2>&1 || { note <npm; not_ok 'Node 22 is there'; finish; }
PATH=$top/build/node-peers/node/node_modules/.bin:$PATH
"$top/tools/npm" node-peers/conformance @modelcontextprotocol/conformance@0.2.0-alpha.12 >npm 2>&1 || { note <npm; not_ok 'the suite is there'; finish; }
suites=$top/build/node-peers/conformance/node_modules/@modelcontextprotocol/conformance
room conformance
export MAILROOM_AGENT=conformance

for revision in 2025-11-25 2026-07-28; do
	list=$peers/not-applicable-$revision.yml
	node "$peers/bridge.mjs" node "$suites/dist/index.js" server --url URL --requirements $revision --expected-failures "$list" \
		-o results-$revision -- "$DEVBIN" mcp --conformance >$revision.out 2>$revision.err
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
finish
