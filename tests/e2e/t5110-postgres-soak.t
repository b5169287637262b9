# The short form of make soak-postgres: no table of a room in PostgreSQL grows once it is full.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
sh "$top/tests/soak/postgres.sh" 4000
