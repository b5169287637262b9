#!/bin/sh
# SPDX-License-Identifier: MIT
# once
# The server is killed 20 times during actions; with `make serve-load` 100 times.
. "$(dirname "$0")/../lib/tap.sh"
[ -x "$(dirname "$DEVBIN")/mailroom-serve" ] || { echo '1..0 # skip mailroom-serve was not built'; exit 0; }
timeout 200 python3 "$top/tests/load/serve-kills.py" 20 </dev/null
