# once: it runs the release build and makes its own broken ones
. "$(dirname "$0")/../lib/tap.sh"

# The short form of tests/powercut/run: see there, and docs/DURABILITY.md.
run=$top/tests/powercut/run cuts=5
TMPDIR=$scratch; export TMPDIR
fast_cuts=3
[ -n "$MAILROOM_TEST_LONG" ] && cuts=100 fast_cuts=100
for fs in ext4 xfs btrfs ext4-nojournal; do
	"$run" --bin "$BIN" --fs $fs --cuts $cuts >out 2>&1; rc=$?
	note <out
	# Without a journal nothing is promised (mailroom where), and the disk is copied while the kernel writes it, not at one moment: once more.
	if [ $rc = 1 ] && [ $fs = ext4-nojournal ]; then "$run" --bin "$BIN" --fs $fs --cuts $cuts >out 2>&1; rc=$?; note <out; fi
	name="$fs: after $cuts power cuts everything that was acknowledged is there, and nothing is torn"
	case $rc in
	0) ok "$name" ;;
	77) skip "$name" "$(sed -n 's/^powercut: \(.*\)/\1/p' out | tail -1)"; continue ;;
	*) not_ok "$name" ;;
	esac
	case $fs${MAILROOM_TEST_LONG:+-long} in ext4 | ext4-long | xfs-long) ;; *) continue ;; esac
	"$run" --broken --fs $fs >out 2>&1; rc=$?
	note <out
	name="$fs: a build without the syncs of folders, and one without the syncs of files, are caught losing mail"
	[ $rc = 0 ] && ok "$name" || not_ok "$name"
	"$run" --bin "$BIN" --fs $fs --sync fast --cuts $fast_cuts >out 2>&1; rc=$?
	note <out
	name="$fs: so it is after $fast_cuts power cuts with Sync: fast"
	[ $rc = 0 ] && ok "$name" || not_ok "$name"
	"$run" --broken --fs $fs --sync fast >out 2>&1; rc=$?
	note <out
	name="$fs: a build that leaves out the one thing that Sync: fast needs is caught with torn mail"
	[ $rc = 0 ] && grep -q 'torn [1-9]' out && ok "$name" || not_ok "$name"
done
check 'no mount is left behind' sh -c '! grep -q "$TMPDIR" /proc/mounts'
finish
