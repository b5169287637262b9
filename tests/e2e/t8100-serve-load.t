#!/bin/sh
# SPDX-License-Identifier: MIT
# once
# 200 open pages and 50 requests a second: what is counted (events, descriptors, memory). `make serve-load` is the long form, which times sends.
. "$(dirname "$0")/../lib/tap.sh"
[ -x "$(dirname "$DEVBIN")/mailroom-serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }
timeout 200 python3 "$top/tests/load/serve-load.py" --events 400 </dev/null
