# SPDX-License-Identifier: MIT
# The official inspector's command-line mode against `mailroom mcp` over stdio, in all its eras.
MAILROOM_TOP=$(cd "$(dirname "$0")/../../.." && pwd)
. "$MAILROOM_TOP/tests/lib/tap.sh"

MAILROOM_NPM_SCRIPTS=1 "$top/tools/npm" node-peers/node node@22.23.3 >npm 2>&1 || { note <npm; not_ok 'Node 22 is there'; finish; }
PATH=$top/build/node-peers/node/node_modules/.bin:$PATH
"$top/tools/npm" node-peers/inspector @modelcontextprotocol/inspector@2.12.0 >npm 2>&1 || { note <npm; not_ok 'the inspector is there'; finish; }
inspector=$top/build/node-peers/inspector/node_modules/.bin/mcp-inspector
room alice bob
inspect() { "$inspector" --cli -e MAILROOM_AGENT=alice -e MAILROOM="$scratch/.mailroom" -e XDG_STATE_HOME="$XDG_STATE_HOME" "$BIN" mcp "$@"; }

for era in legacy auto modern; do
	exits 0 "$era: tools/list" inspect --protocol-era $era --method tools/list --strict
	same 'send inbox read wait recv done who nudge' "$(jq -r '[.tools[].name] | join(" ")' out)" "$era: eight tools"
	silent_about err 'error' "$era: --strict has nothing to say of their schemas"
	exits 0 "$era: tools/call send" inspect --protocol-era $era --method tools/call --tool-name send --tool-arg to=bob --tool-arg "body=from $era"
	id=$(jq -r .structuredContent.id out)
	same "from $era" "$(mr --as bob read "$id" --json | jq -r .body | tr -d '\n')" "$era: bob has it"
	mr --as bob send alice -m "to $era" >/dev/null 2>&1
	exits 0 "$era: tools/call inbox" inspect --protocol-era $era --method tools/call --tool-name inbox
	says out "to $era" "$era: shows the mail"
	exits 5 "$era: an error of the tool is one for the inspector" inspect --protocol-era $era --method tools/call --tool-name send --tool-arg to=nobody --tool-arg body=x
	before=$(mr --as bob inbox --json -n 1000 | wc -l)
	exits 0 "$era: 200 sends, ten at a time" inspect --protocol-era $era --method tools/call --tool-name send --tool-arg to=bob --tool-arg body=x --load --load-requests 200
	same '200 0 0' "$(jq -r '"\(.ok) \(.toolErrors) \(.errors)"' out)" "$era: all of them done"
	same 200 $(($(mr --as bob inbox --json -n 1000 | wc -l) - before)) "$era: bob has each once"
	exits 0 "$era: resources/list" inspect --protocol-era $era --method resources/list
	says out 'mailroom://inbox' "$era: the inbox is a resource"
done
finish
