# once
# selftest: what the disk can do, and the kill campaign that a user can repeat; it must be able to fail.
. "$(dirname "$0")/../lib/tap.sh"

left() { ls -A "${1:-.}" | grep -c selftest; }
exits 0 'the quick test' mr selftest
says out '^ok +write: .* ms$' 'tells of each call'
says out '^a room can be kept here' 'and what follows'
same 0 "$(left)" 'and leaves nothing'
exits 0 'as JSON' mr selftest --json
cp out saved; check 'a line each' jq -es 'length > 8 and all(.[]; .test and .result and .what)' saved
exits 0 'where there are no unnamed files' env MAILROOM_TEST_BREAK=no-unnamed "$DEVBIN" selftest
says out '^without +unnamed: .*doctor' 'it says what is done instead'
exits 1 'where nothing can be written' mr selftest --dir /proc
says err 'cannot make .*' 'it says so'
exits 2 'times are for --crash' mr selftest --time 2s
exits 2 'a time that is none' mr selftest --crash --time 0

# in a room: beside it, and nothing in it changes
git init -q . 2>/dev/null; room alice; cp .git/info/exclude exclude; find .mailroom -printf '%p %T@ %i\n' | sort >before
exits 0 'the kill campaign' mr selftest --crash --time 1s --seed 7 --json
same '7 0 []' "$(jq -c '.seed, .broken, .promises_broken' out | tr '\n' ' ' | sed 's/ $//')" 'breaks no promise'
same true "$(jq '.killed > 0 and .commands > .killed and .accepted > 0' out)" 'though it killed'
same 0 "$(left)" 'and leaves nothing'
find .mailroom -printf '%p %T@ %i\n' | sort | cmp -s - before && ok 'the room beside it is as it was' || not_ok 'the room beside it is as it was'

cmp -s exclude .git/info/exclude && ok 'and so is the repository around it' || not_ok 'and so is the repository around it'

# a build that consumes before it shows is caught
mkdir wrong; tries=0 # a slow machine kills few at the right moment
wrong() { MAILROOM_TEST_BREAK=mark-before-show "$DEVBIN" selftest --crash --time 1s --dir wrong </dev/null; }
while wrong >out 2>err && [ $tries -lt 8 ]; do tries=$((tries + 1)); done
says out '^BROKEN .*consumed, but never shown' 'a build that is wrong on purpose is caught'
says out 'the room is kept in ' 'with the evidence'
same 1 "$(left wrong)" 'which is there'
finish
