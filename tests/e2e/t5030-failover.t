# SPDX-License-Identifier: MIT
# once: the room is a server's
# Two rounds of the failover campaign, and the controls that must be caught. `make failover` is the long form.
cd "$(dirname "$0")/../.." || exit 1
exec env DEVBIN="${DEVBIN:-build/dev/mailroom}" python3 tests/failover/campaign.py 2
