# SPDX-License-Identifier: MIT
# once
# The packages: Debian's lists name every file that is installed, once; npm's tarballs install without a network and run.
# `make deb-test` builds the Debian packages and tries them in a clean system.
. "$(dirname "$0")/../lib/tap.sh"
command=$(cd "$top" && pwd)/build/musl/mailroom

# ---- Debian: what install-files installs is in exactly one package
(cd "$top" && LIBDIR=/usr/lib/machine tools/install-files "$scratch/root" /usr) >out 2>&1 || note <out
(cd root && find usr \( -type f -o -type l \) | sort) >files
: >claims
for list in "$top"/debian/*.install; do
	while read -r pattern; do
		grep -E "^$(printf %s "$pattern" | sed 's/\./\\./g; s/\*/[^\/]*/g')(/.*)?\$" files >matched
		check "'$pattern' of ${list##*/} names something" test -s matched
		cat matched >>claims
	done <"$list"
done
sort claims >sorted
same '' "$(comm -23 files sorted | head -n 3)" 'every file is in a package'
same '' "$(uniq -d sorted | head -n 3)" 'none is in two'
version=$("$command" --version | sed 's/^mailroom //')
same "$version" "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")" 'the changelog has the version of the command'
for package in $(sed -n '/^build=/,/[^|]'"'"'$/s/.*|//p' "$top/tools/deps" | tr -d "'"); do
	case $package in gcc) continue ;; esac # Debian's build-essential
	check "'$package' is among Build-Depends" grep -q "^ $package[ :,]" "$top/debian/control"
done

# ---- npm
(cd "$top" && tools/npm-pack) >tarballs 2>err || note <err
cp "$top"/build/npm/*.tgz .
mkdir place
check 'npm installs the tarballs without a network' npm install --offline --prefix place --no-audit --no-fund --no-save --ignore-scripts ./mailroom-"$version".tgz ./mailroom-linux-*.tgz
npm=$scratch/place/node_modules/.bin/mailroom
same "mailroom $version" "$($npm --version)" 'and the command runs'
room alice bob
exits 2 'its exit codes come through' "$npm" nosuch
says err "no command 'nosuch'" 'and its words'
printf 'over a pipe' | "$npm" --as alice send bob >id 2>err
same 'over a pipe' "$(mr --as bob read "$(cat id)" --json | jq -r .body)" 'standard input comes through'
check 'the data of the package is found' sh -c '"$1" types show MERGE_READY | grep -q MERGE_READY' - "$npm"
"$npm" --as alice wait --timeout 60s >/dev/null 2>&1 &
pid=$!
i=0; while [ $i -lt 100 ] && ! pgrep -P $pid >/dev/null 2>&1; do sleep 0.1; i=$((i + 1)); done
sleep 0.2; kill -TERM $pid; wait $pid; same 143 $? 'a signal ends both'
rm -r place/node_modules/mailroom-linux-*
exits 1 'without the package of the platform' "$npm" --version
says err 'hint: npm install mailroom-linux-' 'it says what to install'
finish
