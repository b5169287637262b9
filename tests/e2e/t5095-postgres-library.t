# libmailroom built with the driver for PostgreSQL (-Dlibrary_postgres): a C program sends and reads in such a room.
# once: the room is a server's
. "$(dirname "$0")/../lib/tap.sh"
. "$top/tests/lib/pg.sh"
built=${DEVBIN%/*}
readelf -d "$built/libmailroom.so" 2>/dev/null | grep -q 'NEEDED.*libpq' || { skip 'libmailroom with the driver' 'this build has none (-Dlibrary_postgres)'; finish; }
pq=$(pkg-config --cflags --libs libpq)
strict='-std=c99 -pedantic -Wall -Wextra -Werror'
check 'the example builds against the shared library' gcc $strict -I"$top/include" "$top/examples/hello.c" -L"$built" -lmailroom -o hello-shared
check 'and against the static one with libpq' gcc $strict -I"$top/include" "$top/examples/hello.c" "$built/libmailroom.a" $pq -o hello-static
for kind in shared static; do
	exits 0 "hello-$kind makes a room in the database" env LD_LIBRARY_PATH="$built" ./hello-$kind "$spec#hello_$kind"
	says out '^took .* from alice: Hello from C' 'takes what it sent'
	id=$(sed -n 's/^done //p' out)
	same 1 "$(sql "SELECT count(*) FROM hello_$kind.message WHERE id = '$id'")" 'the message is in the database'
	exits 0 'the command' mr --room "$spec#hello_$kind" --as bob why "$id"
	says out 'bob.*archived' 'sees it the same way'
done
readelf -d hello-static >out
silent_about out 'libmailroom' 'the static one needs no libmailroom at run time'
nm -D --defined-only "$built/libmailroom.so" | awk '$2 != "A" { print $3 }' | grep -v '^mr_' >foreign
same '' "$(cat foreign)" 'the shared library still exports mr_* and nothing else'
finish
