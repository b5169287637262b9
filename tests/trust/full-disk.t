# once
# A way out of a full disk: purge, drain, read, recv, archive and done go on without space and without inodes, from the
# reserve that the room keeps; a send never uses it. Needs root: it mounts small file systems in a namespace of its own.
. "$(dirname "$0")/../lib/tap.sh"
here=$(pwd -P)
if [ "$(id -u)" != 0 ] || ! command -v unshare >/dev/null || ! unshare -m true 2>/dev/null; then
	echo '1..0 # skip needs root and mount namespaces'; exit 0
fi
if [ -z "$MAILROOM_TEST_MOUNTS" ]; then # everything mounted ends with the namespace, also after a kill
	MAILROOM_TEST_MOUNTS=1 unshare -m --propagation private sh "$top/tests/trust/${0##*/}"; exit
fi
trap 'cd /; for m in $(sed -n "s|^[^ ]* \($here[^ ]*\) .*|\1|p" /proc/mounts | sort -r); do umount -l "$m" 2>/dev/null; done
	chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
mkdir disk
if ! mount -t tmpfs -o size=1m tmpfs disk 2>/dev/null; then echo '1..0 # skip may not mount'; exit 0; fi
umount disk

at() { "$BIN" --room "$here/disk" "$@" </dev/null; }
mails() { find disk/.mailroom/agents -name '*.mr*' | wc -l; }
kept() { ls disk/.mailroom/reserve 2>/dev/null | wc -l; }
# A harness session whose binding is on the same disk.
session() { XDG_STATE_HOME=$here/disk/state CLAUDE_CODE_SESSION_ID=full-1 "$BIN" --room "$here/disk" "$@" </dev/null; }
unread_of() { at --as "$1" inbox --unread --json 2>/dev/null | jq -r .id; }
first() { unread_of bob | head -n 1; }

# Mounts a file system of that kind on disk/.
mount_small() {
	case $1 in
	tmpfs) mount -t tmpfs -o size=4m,nr_inodes=400 tmpfs disk ;;
	ext4) truncate -s 12M image && mkfs.ext4 -q -F -b 4096 -J size=4 -m 0 -N 400 image && mount -o loop image disk ;;
	ext4-bare) truncate -s 8M image && mkfs.ext4 -q -F -b 1024 -O ^has_journal -m 0 -N 400 image && mount -o loop image disk ;;
	xfs) truncate -s 300M image && mkfs.xfs -q -f image && mount -o loop image disk ;;
	esac
}
# Uses up the space, or the inodes, to the last.
fill() {
	case $1 in
	space)
		free=$(df -Pk disk | awk 'NR == 2 { print $4 - 2048 }'); [ "$free" -le 0 ] || fallocate -l ${free}k disk/fill.all 2>/dev/null
		i=0; for round in 1 2 3; do # xfs gives back what it had set aside for growing files
			for size in 64k 4k 1k 1; do dd if=/dev/zero of=disk/fill.$round.$size bs=$size 2>/dev/null; sync -f disk; done
			while echo x 2>/dev/null >disk/fill.s$i; do i=$((i + 1)); done; sync -f disk
			[ "$kind" != xfs ] || sleep 0.3
		done ;;
	inodes) i=0; while true 2>/dev/null >disk/fill.i$i; do i=$((i + 1)); done ;;
	esac
}

# ---- nothing but the six commands, on a disk that stays full ----
for kind in tmpfs ext4 ext4-bare xfs; do
	for lack in space inodes; do
		[ $kind != xfs ] || [ $lack = space ] || continue # it makes inodes as it needs them
		mount_small $kind >/dev/null 2>&1 || { skip "$kind" 'cannot be made here'; continue; }
		on="$kind without $lack"
		at init disk --name disk >/dev/null 2>&1 || mr init disk --name disk >/dev/null 2>&1
		for name in alice bob carol; do at register $name >/dev/null 2>&1; done
		same 32 "$(kept)" "$on: init makes the reserve"
		i=0; while [ $i -lt 24 ]; do at --as alice send bob carol -m "message $i" >>ids 2>/dev/null; i=$((i + 1)); done
		session register dora >/dev/null 2>&1; at --as alice send dora -m 'for a session' >/dev/null 2>&1
		fill $lack
		more=0; while [ $more -lt 200 ] && at --as alice send carol -m 'what fits yet' >/dev/null 2>&1; do more=$((more + 1)); done
		n=$(mails)
		for to in bob 'bob carol' queue:none; do
			exits $([ "$to" = queue:none ] && echo 5 || echo 1) "$on: send to $to is refused" at --as alice send $to -m x --json
			[ "$to" = queue:none ] || same full "$(jq -r .error.code err)" "$on: and says why"
		done
		exits 1 "$on: with a key" at --as alice send bob --key k -m x
		same "$n 32 0" "$(mails) $(kept) $(ls disk/.mailroom/spool | wc -l)" "$on: nothing is visible, and the reserve is untouched"
		exits 0 "$on: read" at --as bob read "$(first)"
		exits 0 "$on: read --json" at --as bob read --json "$(first)"
		exits 0 "$on: recv" at --as bob recv
		token=$(sed -n 's/^token \([^ ]*\) .*/\1/p' out)
		exits 0 "$on: done" at --as bob done "$token"
		exits 0 "$on: recv --json" at --as bob recv --json
		exits 0 "$on: done --json" at --as bob done --json "$(jq -r .token out)"
		exits 0 "$on: archive" at --as bob archive --include-unread "$(first)"
		exits 0 "$on: archive --json" at --as bob archive --json --include-unread "$(first)"
		exits 0 "$on: purge" at --as alice purge "$(first)"
		exits 0 "$on: purge --json" at --as alice purge --json "$(first)"
		same true "$(jq '.removed >= 3' out)" "$on: which removes every copy"
		exits 0 "$on: drain" at --as bob drain --limit 3
		exits 0 "$on: drain --json" at --as bob drain --json --limit 3
		same 3 "$(wc -l <out | tr -d ' ')" "$on: shows its three"
		tries=0; while [ -n "$(first)" ] && [ $tries -lt 20 ]; do at --as bob drain --json >>all 2>>wrong || echo "$on: drain fails" >>wrong; tries=$((tries + 1)); done
		same '' "$(first)$(cat wrong 2>/dev/null)" "$on: until the mailbox is empty"
		exits 3 "$on: nothing is left to take" at --as bob recv
		exits 0 "$on: a bound session drains, too" session drain
		says out 'for a session' "$on: its own mail"
		at --as carol drain >/dev/null 2>err; same 0 $? "$on: the next mailbox, too"
		same '' "$(find disk/.mailroom/agents/*/held disk/.mailroom/holds -type f)" "$on: nothing is held"
		same 24 "$(find disk/.mailroom/agents/bob -name '*.mr*' | wc -l)" "$on: and nothing was lost, and two notices of a purge came"
		# purge makes space for what a send needs, one message after the other; its locks take a few inodes of it
		for id in $(find disk/.mailroom/agents/bob -name '*.mr*' -printf '%f\n' | cut -d. -f2); do
			at --as alice purge "$id" >/dev/null 2>>wrong || echo "$on: purge fails" >>wrong
		done
		same "$((2 + 2 * more)) " "$(mails) $(cat wrong 2>/dev/null)" "$on: purge removes all of it"
		[ "$(kept)" -ge 26 ] && ok "$on: what is freed goes to the reserve ($(kept))" || not_ok "$on: what is freed goes to the reserve ($(kept))"
		rm -f disk/fill.*
		exits 0 "$on: a send fits again" at --as alice send bob carol -m 'there is space again'
		at --as bob drain >/dev/null 2>&1
		same 32 "$(kept)" "$on: and the reserve is whole again"
		at doctor --json >out 2>err; same "" "$(jq -r 'select(.severity == "problem" and .code != "space") | .what' out)" "$on: and the doctor finds nothing wrong"
		umount disk; rm -f wrong all
	done
done

# ---- a room without a reserve, and one that was used up ----
mount -t tmpfs -o size=4m tmpfs disk
mr init disk --name disk >/dev/null 2>&1
for name in alice bob; do at register $name >/dev/null 2>&1; done
rm -rf disk/.mailroom/reserve
at --as alice send bob -m one >/dev/null 2>&1
same 0 "$(kept)" 'a send makes no reserve'
at doctor --json >out 2>err
same 'reserve note' "$(jq -r 'select(.code == "reserve") | .code + " " + .severity' out)" 'the doctor tells of a missing one'
at doctor --fix >/dev/null 2>&1
same 32 "$(kept)" 'doctor --fix makes it'
rm -rf disk/.mailroom/reserve
exits 0 'so does the next command that moves mail' at --as bob drain
same '32 524288' "$(kept) $(du -B1 -c disk/.mailroom/reserve/* | tail -n 1 | cut -f 1)" 'and it is real space'
rm -f disk/.mailroom/reserve/3*
at --as alice send bob -m two >/dev/null 2>&1; at --as bob drain >/dev/null 2>&1
same 32 "$(kept)" 'what is missing of it is made again'
id=$(at --as alice send bob -m read 2>/dev/null); at --as bob read "$id" >/dev/null 2>&1
at --as alice send bob -m three >/dev/null 2>&1; rm -rf disk/.mailroom/reserve; fill space
exits 1 'without a reserve a full disk stops drain' at --as bob drain
same 1 "$(unread_of bob | wc -l)" 'and the mail is still there'
exits 0 'but not purge, which frees before it writes' at --as alice purge --reason full "$id"
exits 0 'and leaves a tombstone' at --as alice why "$id"
says out 'purged by .alice.*full' 'that says why'
id=$(first); at --as alice purge "$id" >/dev/null 2>&1
same "$(find disk/.mailroom/agents -name "*$id*")" '' 'also of what somebody has to be told of'
rm -f disk/fill.*; rm -rf disk/.mailroom/reserve; ln -s /tmp disk/.mailroom/reserve; at --as alice send bob -m four >/dev/null 2>&1
exits 0 'a planted link in its place does not stop drain' at --as bob drain
same '' "$(find /tmp -maxdepth 1 -name '[0-3][0-9]')" 'and is not followed'
umount disk

# ---- killed anywhere while the reserve is given up and made again ----
if MAILROOM_FAULT= "$DEVBIN" --version >/dev/null 2>&1; then
	mount -t tmpfs -o size=4m tmpfs disk
	mr init disk --name disk >/dev/null 2>&1; for name in alice bob; do at register $name >/dev/null 2>&1; done
	i=0; while [ $i -lt 60 ]; do at --as alice send bob -m "k $i" >/dev/null 2>&1; i=$((i + 1)); done
	fill space
	before=$(find disk/.mailroom/agents/bob -name '*.mr*' | wc -l)
	n=30; while [ $n -lt 190 ]; do
		MAILROOM_FAULT=kill-after:$n "$DEVBIN" --room "$here/disk" --as bob drain --limit 1 </dev/null >/dev/null 2>&1
		n=$((n + 3))
	done
	same "$before" "$(find disk/.mailroom/agents/bob -name '*.mr*' | wc -l)" 'a drain killed at any call loses nothing'
	exits 0 'and the next one goes on' at --as bob drain
	umount disk
fi

# ---- a limit on the size of files is an error, not a signal ----
room alice bob
head -c 200000 /dev/zero | tr '\0' x >big
limited() { (ulimit -f 64; "$BIN" "$@" </dev/null); } # blocks of 512 bytes
exits 1 'send of a message above the limit on file sizes' limited --as alice send bob -f big
says err 'File too large' 'says what is wrong'
says err 'ulimit -f' 'and what to change'
exits 1 'to several' limited --as alice send bob alice -f big
exits 1 'with a key' limited --as alice send bob --key k -f big --json
same full "$(jq -r .error.code err)" 'with the code of a full disk'
same '0' "$(find .mailroom/agents .mailroom/spool -type f -name '*.mr*' | wc -l)" 'nothing is half-done'
exits 0 'a small one goes through' limited --as alice send bob -m small
mr --as alice send bob -f big >/dev/null 2>&1
(ulimit -f 64; "$BIN" --as bob drain --json </dev/null >cut 2>err); same 1 $? 'drain into a file that may not grow so far fails'
says err 'File too large|output' 'with a reason'
same 2 "$(unread bob)" 'and what was not shown whole is unread'
finish
