# once: the peer is the official MCP client for Node; the server runs under the sanitizers elsewhere
# Two agents with the official client over stdio, one of each era: they mail, wait, answer, take and finish work, and one is killed.
. "$(dirname "$0")/../lib/tap.sh"

"$top/tools/deps" test >deps 2>&1 || note <deps
if [ ! -e "$top/build/node/installed" ]; then
	note <deps
	not_ok 'the MCP client is there (npm installs it into build/node): without it nothing here can be shown'
	finish
fi
room alice bob
"$BIN" --as alice queue create builds >/dev/null 2>&1 || not_ok 'a queue'
node "$top/tests/peers/mcp/conversation.mjs" legacy modern >told 2>told.err
code=$?
while read -r line; do
	case $line in
	'ok '*) ok "${line#ok }" ;;
	'not ok '*) not_ok "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done <told
[ $code -eq 0 ] || note <told.err
same 0 $code 'the conversation comes to its end'
same '0 0 0 2 0' "$(mr queue show builds --json | jq -r '"\(.ready) \(.delayed) \(.claimed) \(.done) \(.failed)"')" 'both pieces of work are done, each once'
finish
