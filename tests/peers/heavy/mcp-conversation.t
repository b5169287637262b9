# SPDX-License-Identifier: MIT
# Two agents with the official client, in each pair of eras; the short form of this runs in `make test` (t6050).
MAILROOM_TOP=$(cd "$(dirname "$0")/../../.." && pwd)
. "$MAILROOM_TOP/tests/lib/tap.sh"

"$top/tools/deps" test >deps 2>&1 || note <deps
for eras in 'legacy modern' 'modern legacy' 'auto auto'; do
	room alice bob
	"$BIN" --as alice queue create builds >/dev/null 2>&1
	# shellcheck disable=SC2086
	MAILROOM_TEST_LONG=1 node "$top/tests/peers/mcp/conversation.mjs" $eras >told 2>told.err
	code=$?
	while read -r line; do
		case $line in
		'ok '*) ok "$eras: ${line#ok }" ;;
		'not ok '*) not_ok "$eras: ${line#not ok }" ;;
		*) echo "$line" ;;
		esac
	done <told
	[ $code -eq 0 ] || note <told.err
	same 0 $code "$eras: to the end"
	same '0 0 0 2 0' "$(mr queue show builds --json | jq -r '"\(.ready) \(.delayed) \(.claimed) \(.done) \(.failed)"')" "$eras: both pieces of work are done, each once"
done
finish
