# once
# libmailroom as an outside program meets it: installed by `make install`, found by pkg-config.
. "$(dirname "$0")/../lib/tap.sh"

exits 0 'make install' env MAILROOM_NO_INSTALL=1 make -s -C "$top" install DESTDIR="$scratch/dest" PREFIX=/usr
usr=$scratch/dest/usr
for file in bin/mailroom lib/libmailroom.a lib/libmailroom.so lib/libmailroom.so.0 include/mailroom.h include/mailroom-town.h include/mailroom-hooks.h lib/pkgconfig/mailroom.pc \
	share/man/man1/mailroom.1 share/man/man1/mailroom-send.1 share/man/man5/mailroom-maildir.5 share/man/man7/mailroom.7 \
	share/doc/mailroom/README.md share/doc/mailroom/NEWS.md share/doc/mailroom/LICENSE share/doc/mailroom/examples/hello.c \
	share/doc/mailroom/examples/gastown/README.md share/doc/mailroom/examples/gastown/handlers/merged share/doc/mailroom/examples/gastown/types/REWORK; do
	[ -e "$usr/$file" ] || echo "$file"
done >missing
same '' "$(cat missing)" 'puts everything in place'
"$BIN" describe --all </dev/null | jq -r '.commands[].name' >commands
for command in $(cat commands); do [ -f "$usr/share/man/man1/mailroom-$command.1" ] || echo "$command"; done >missing
same '' "$(cat missing)" 'with a man page for every command'
check 'the plugin is installed whole' diff -r "$top/share/mailroom/plugin" "$usr/share/mailroom/plugin"
check 'and the skill' diff -r "$top/share/mailroom/skill/" "$usr/share/mailroom/skill/"
same '' "$(find "$scratch/dest" -perm /022 ! -type l)" 'nothing is writable for others'
same '' "$(grep -rIl -e "$scratch" -e "$top" "$usr/lib/pkgconfig" "$usr/share" "$usr/include")" 'and nothing names where it was built'
exits 0 'the installed command runs' "$usr/bin/mailroom" --version
says out "^mailroom $(sed -n 's/^Version: //p' "$usr/lib/pkgconfig/mailroom.pc")$" 'with the version that pkg-config tells'
[ ! -e "$usr/bin/gt" ] && ok 'no gt unless it is asked for' || not_ok 'no gt unless it is asked for'
exits 0 'GT=1 installs it' env GT=1 "$top/tools/install-files" "$scratch/dest" /usr
exits 1 'and it answers to that name' "$usr/bin/gt" mail
rm "$usr/bin/gt"; echo other >"$usr/bin/gt"
exits 1 'but never over another' env GT=1 "$top/tools/install-files" "$scratch/dest" /usr
rm "$usr/bin/gt"
exits 2 'install-files without a prefix' "$top/tools/install-files" "$scratch/dest"

export PKG_CONFIG_LIBDIR="$usr/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$scratch/dest" PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
flags=$(pkg-config --cflags --libs mailroom)
strict="-pedantic -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Werror"
header=$top/tests/headers
for cc in gcc clang; do
	check "the header is C99 for $cc" $cc -std=c99 $strict "$header/c99.c" $flags -o c99-$cc
	check 'and works' env LD_LIBRARY_PATH="$usr/lib" ./c99-$cc
done
check 'the header is C++17' g++ -std=c++17 -pedantic -Wall -Wextra -Werror "$header/cxx.cc" $flags -o cxx
check 'and works' env LD_LIBRARY_PATH="$usr/lib" ./cxx
check 'the header is C++11 too' g++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only "$header/cxx.cc" $flags

# the example, both ways
example=$usr/share/doc/mailroom/examples/hello.c
check 'the example builds against the shared library' gcc -std=c99 $strict "$example" $flags -o hello-shared
exits 0 'which it needs' sh -c 'readelf -d hello-shared | grep NEEDED'
says out 'libmailroom\.so\.0' 'by its soname'
check 'and against the static one' gcc -std=c99 $strict "$example" $(pkg-config --cflags mailroom) "$usr/lib/libmailroom.a" -o hello-static
readelf -d hello-static >out
silent_about out 'libmailroom' 'which it does not need at run time'
check 'all static' gcc -static -std=c99 "$example" $(pkg-config --cflags mailroom) "$usr/lib/libmailroom.a" -o hello-all-static
for kind in shared static all-static; do
	mkdir $kind
	exits 0 "hello-$kind runs" env LD_LIBRARY_PATH="$usr/lib" ./hello-$kind "$kind"
	says out '^took .* from alice: Hello from C' 'takes what it sent'
	says out '^done [0-9a-z]{26}$' 'and finishes it'
	exits 0 'the command' mr --room "$kind" --as bob why "$(sed -n 's/^done //p' out)"
	says out 'bob.*archived.*finished' 'sees it the same way'
done

# what is visible
nm -D --defined-only "$usr/lib/libmailroom.so" | awk '$2 != "A" { print $3 }' | grep -v '^mr_' >foreign
same '' "$(cat foreign)" 'the shared library exports mr_* and nothing else'
nm -g --defined-only "$usr/lib/libmailroom.a" | awk 'NF == 3 { print $3 }' | grep -v '^mr_' >foreign
same '' "$(cat foreign)" 'so does the static one'
sed -n 's/^MR_API.*[ *]\(mr_[a-z_]*\)(.*/\1/p' "$usr"/include/mailroom*.h | sort -u >declared
nm -D --defined-only "$usr/lib/libmailroom.so" | awk '{ print $3 }' | sort -u >exported
[ "$(wc -l <declared)" -gt 40 ] && ok "the header declares $(wc -l <declared) functions" || not_ok "the header declares $(wc -l <declared) functions"
same '' "$(comm -23 declared exported)" 'all of them are there'
nm -D --undefined-only "$usr/lib/libmailroom.so" | grep -wE 'getenv|secure_getenv|exit|_exit|printf|puts|fprintf|stdout|stderr' | grep -vw _exit >forbidden
same '' "$(sed 's/.* //' forbidden | tr '\n' ' ')" 'the library does not print, exit or read the environment'
# Only what starts a program passes its environment on, and leaves the child that could not. "environ" is the file of another process.
(cd "$top/src" && grep -wE '_exit|environ' -r base message room rooms office --include='*.c' | grep -v '"environ"' | cut -d: -f1 | sort -u) >places
same 'base/spawn.c' "$(cat places)" 'but for the programs that it starts'

# the command
if command -v musl-gcc >/dev/null; then
	exits 0 'the command' readelf -lW "$usr/bin/mailroom"
	silent_about out 'INTERP' 'needs no loader'
	exits 0 'and' readelf -dW "$usr/bin/mailroom"
	silent_about out 'NEEDED' 'no library'
	if unshare -Ur true 2>/dev/null; then
		exits 0 'it runs where there is nothing else' unshare -Ur chroot "$usr/bin" /mailroom --version
	else
		skip 'it runs where there is nothing else' 'no user namespaces here'
	fi
else
	skip 'the command is static' 'no musl-gcc'
fi

# both compilers' commands say the same
smoke() { # smoke COMMAND FOLDER
	mkdir "$2" && (cd "$2" || exit 1
	exec 2>&1 </dev/null
	"$1" init --name town; "$1" register alice; "$1" register bob
	id=$("$1" --as alice send bob -s subject -m 'first line')
	"$1" --as bob inbox; "$1" --as bob read "$id"; "$1" --as bob reply "$id" -m 'an answer'; "$1" --as alice drain
	"$1" --as alice send nobody -m x; echo "exit $?"
	"$1" --as bob recv; echo "exit $?"
	"$1" --as alice thread "$id"; "$1" --as bob search first; "$1" --as alice why "$id"; "$1" stats; "$1" frobnicate; echo "exit $?"
	) | sed -E 's/[0-9a-hjkmnp-tv-z]{26}/ID/g; s/\[?[0-9a-f]{8}\]?/MARK/g; s,/[^ ]*/\.mailroom,ROOM,g; s/20[0-9-]{8}T[0-9:.]*Z/TIME/g
		s/(20[0-9]{2}-)?[0-9]{2}-[0-9]{2} [0-9:]{5,8}/TIME/g; s/\b[0-9a-hjkmnp-tv-z]{6}\b/SHORT/g; s/\b[0-9]+ ?(ms|s)( ago)?\b/AGO/g; s/in [0-9.]+/in N/g'
}
smoke "$top/build/musl/mailroom" one >one.txt
smoke "$top/build/glibc/mailroom" two >two.txt
sed -i 's,/two,/one,g' two.txt
[ "$(wc -l <one.txt)" -gt 40 ] && ok "a smoke run of $(wc -l <one.txt) lines" || not_ok 'a smoke run'
if diff one.txt two.txt >diff; then ok 'is the same with both compilers'; else note <diff; not_ok 'is the same with both compilers'; fi
finish
