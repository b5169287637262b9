#!/bin/sh
# SPDX-License-Identifier: MIT
# once
# 200 open pages and 50 requests a second: what is counted (events, descriptors, memory). `make serve-load` is the long form, which times sends.
# Then more mail at once than the server remembers, read while it comes: each message is one event.
. "$(dirname "$0")/../lib/tap.sh"
[ -x "$(dirname "$DEVBIN")/mailroom-serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }
load() { timeout 200 python3 "$top/tests/load/serve-load.py" "$@" </dev/null; }
{ load --events 400; load --events 10000 --batch 500 --streams 2 --rate 0; } |
	awk '/^1\.\./ { plans++; next } /^(not )?ok / { sub(/ok [0-9]+/, "ok " ++n) } /^not / { bad = 1 } { print } END { print "1.." n; exit bad || plans != 2 }'
