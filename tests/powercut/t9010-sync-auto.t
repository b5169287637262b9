# SPDX-License-Identifier: MIT
# once
# Sync: auto is the fast order on file systems that keep bytes and names in order, and the full one on all others.
. "$(dirname "$0")/../lib/tap.sh"

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && losetup -f >/dev/null 2>&1 || { skip 'Sync: auto' 'needs root and loop devices'; finish; }
mkdir disk
# chosen FS MKFS-OPTIONS MOUNT-OPTIONS: what a new room there has, and why; "" where it cannot be mounted.
chosen() {
	rm -f image; truncate -s 320M image
	mkfs.$1 -q $2 image >/dev/null 2>&1 || return
	unshare -m sh -c 'mount -o "loop$1" image disk 2>/dev/null || exit 0
		"$2" init disk --name town --json 2>/dev/null | jq -r "\"\(.sync) \(.sync_reason)\""
		"$2" --room disk where --json | jq -r .storage.sync; "$2" --room disk register bob >/dev/null; "$2" --room disk --as bob send bob -m first >/dev/null
		strace -f -qq -e trace=fsync,sync_file_range -o calls "$2" --room disk --as bob send bob -m hi >/dev/null 2>&1; umount disk' sh "$3" "$BIN" </dev/null
}
# is HOW SYNCS NAME FS MKFS-OPTIONS MOUNT-OPTIONS [WHY]
is() {
	how=$1 syncs=$2 name=$3; shift 3
	rm -f calls; chosen "$1" "$2" "$3" >choice
	[ -s choice ] || { skip "$name" "it cannot be made and mounted here"; return; }
	says choice "^$how .*${4:-in order}" "$name: $how, and why"
	same $how "$(sed -n 2p choice)" 'where says the same'
	[ ! -s calls ] || same "$syncs" "$(grep -c 'fsync(' calls)" "and a send has $syncs syncs"
}
is fast 1 'ext4' ext4 '' ''
is fast 1 'xfs' xfs -f ''
is full 3 'ext4 without a journal' ext4 '-O ^has_journal' '' 'no journal'
is full 3 'ext4 with data=writeback' ext4 '' ,data=writeback 'data=ordered'
is full 3 'ext4 with data=journal' ext4 '' ,data=journal 'data=ordered'
is full 3 'ext4 without barriers' ext4 '' ,nobarrier 'barriers'
is full 3 'ext4 with fast_commit' ext4 '-O fast_commit' '' 'fast_commit'
is full 3 'ext4 with journal_async_commit' ext4 '' ,journal_async_commit,data=writeback 'data=ordered'
is full 3 'btrfs' btrfs -f '' 'only ext4'
check 'no mount is left behind' sh -c '! grep -q "$1" /proc/mounts' sh "$scratch"
finish
