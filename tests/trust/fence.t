# once
# The fence: whatever another agent or a file supplies, in any field of any record, message or file name, no command shows it raw, as a
# line of its own, or as a tag. fence.py has the rules; hostile.py makes the room and says which commands there are.
. "$(dirname "$0")/../lib/tap.sh"
command -v python3 >/dev/null || { echo '1..0 # skip no python3'; exit 0; }
PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/trust/fence.py"
