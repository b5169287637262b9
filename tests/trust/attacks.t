# SPDX-License-Identifier: MIT
# once
# What a folder from elsewhere can plant, tried with real clones: see attacks.py.
. "$(dirname "$0")/../lib/tap.sh"
MAILROOM_SCRATCH=$scratch python3 "$top/tests/trust/attacks.py"
exit
