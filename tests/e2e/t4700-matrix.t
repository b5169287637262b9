# once
# From each kind of room to each kind of room, through a hub that links them all: a message and its answer, every
# field compared with the table in the man pages.
. "$(dirname "$0")/../lib/tap.sh"
mkdir matrix
python3 "$top/tests/peers/matrix.py" "$BIN" "$top/man" "$scratch/matrix"
