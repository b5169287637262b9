# SPDX-License-Identifier: MIT
# once
# Two equal phases of a room with retention: no folder grows. `make soak` is the long form.
cd "$(dirname "$0")/../.." || exit 1
exec env DEVBIN="${DEVBIN:-build/dev/mailroom}" python3 tests/soak/soak.py 3000
