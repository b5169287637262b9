# once
# A full disk, a read-only room, a sandbox without /proc, file systems that refuse links. Needs root: it mounts small file
# systems below its scratch folder, in a mount namespace of its own where there is one.
. "$(dirname "$0")/../lib/tap.sh"
here=$(pwd -P)
if [ "$(id -u)" != 0 ] || ! command -v unshare >/dev/null || ! unshare -m true 2>/dev/null; then
	echo '1..0 # skip needs root and mount namespaces'; exit 0
fi
if [ -z "$MAILROOM_TEST_MOUNTS" ]; then # everything mounted ends with the namespace, also after a kill
	MAILROOM_TEST_MOUNTS=1 unshare -m --propagation private sh "$top/tests/e2e/${0##*/}"; exit
fi
trap 'cd /; for m in $(sed -n "s|^[^ ]* \($here[^ ]*\) .*|\1|p" /proc/mounts | sort -r); do umount -l "$m" 2>/dev/null; done
	chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
mkdir disk
if ! mount -t tmpfs -o size=256k tmpfs disk 2>/dev/null; then echo '1..0 # skip may not mount'; exit 0; fi
mails() { find disk/.mailroom/agents -name '*.mr*' | wc -l; }

# ---- a full disk ----
mr init disk --name disk >/dev/null 2>&1
at() { "$BIN" --room "$here/disk" "$@" </dev/null; }
for name in alice bob carol; do at register $name >/dev/null 2>&1; done
at --as alice send bob -m 'before' >/dev/null 2>&1
head -c 30000 /dev/zero | tr '\0' x >big
n=$(mails)
dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null
exits 1 'send on a full disk' at --as alice send bob -f big
says err 'space' 'says that there is no space'
says err 'nothing was delivered|free|space' 'and what to do'
same "$n" "$(mails)" 'nothing is visible'
exits 1 'send to several' at --as alice send bob carol -f big
same "$n $(ls disk/.mailroom/spool | wc -l)" "$(mails) 0" 'nothing is visible, and nothing stays in the spool'
exits 1 'send with a key' at --as alice send bob --key k1 -f big
same "$n" "$(mails)" 'nothing is visible'
exits 1 'with --json' at --as alice send bob -f big --json
same full "$(jq -r .error.code err)" 'the code is full'
exits 0 'inbox on a full disk' at --as bob inbox --json
same before "$(jq -r .subject out)" 'shows the mail'
id=$(jq -r .id out)
at --as bob read "$id" >out 2>err; code=$?
case $code in 0|1) ok 'read';; *) not_ok "read: exit $code";; esac
says out before 'shows it, even if it cannot note that it was read'
"$BIN" --room "$here/disk" --as bob drain </dev/null >out 2>err; code=$?
case $code in 0|1) ok "drain ends (exit $code)";; *) not_ok "drain: exit $code"; note <err;; esac
at register dave >out 2>err; code=$?
case $code in 0) ok 'register finds room';; 1) grep -q space err && ok 'register says that there is no space' || { note <err; not_ok 'register says that there is no space'; } ;; *) note <err; not_ok "register: exit $code";; esac
rm disk/fill
exits 0 'after space was made' at --as alice send bob -f big
exits 0 'sending works again' at --as alice send bob carol -m 'after'
exits 0 'also with the key that failed' at --as alice send bob --key k1 -f big
same 1 "$(ls disk/.mailroom/agents/bob/new disk/.mailroom/agents/bob/cur | grep -c "$(cat out)")" 'once'
exits 0 'register too' at register erin
# every size of a nearly full disk: refused with nothing visible, or accepted whole
for left in 0 1 2 3 4 5 6 8; do
	rm -f disk/fill; dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null
	size=$(($(stat -c %s disk/fill) - left * 4096)); [ $size -gt 0 ] && truncate -s $size disk/fill
	n=$(mails)
	at --as alice send bob carol -f big >out 2>err; code=$?
	case $code in
	0) [ "$(mails)" = $((n + 3)) ] || [ "$(mails)" = $((n + 2)) ] || echo "$left pages: accepted, $n then $(mails)" ;;
	1) [ "$(mails)" = "$n" ] || echo "$left pages: refused, $n then $(mails)" ;;
	6) ;;
	*) echo "$left pages: exit $code: $(cat err)" ;;
	esac
done >wrong
same '' "$(cat wrong)" 'with a few pages left a send is accepted whole or refused with nothing visible'
umount disk
# no inodes left
mount -t tmpfs -o size=1m,nr_inodes=60 tmpfs disk
mr init disk --name disk >/dev/null 2>&1; at register alice >/dev/null 2>&1; at register bob >/dev/null 2>&1
i=0; while touch disk/f$i; do i=$((i + 1)); done 2>/dev/null
n=$(mails)
exits 1 'send without an inode left' at --as alice send bob -m x
says err 'space' 'says it too'
same "$n" "$(mails)" 'nothing is visible'
rm -f disk/f*
exits 0 'after files were removed' at --as alice send bob -m x
umount disk
mount -t tmpfs -o size=8k tmpfs disk
"$BIN" init disk --name disk </dev/null >out 2>err; code=$?
if [ $code = 0 ]; then ok 'init fits on 8k'; else same 1 $code 'init on a disk that is too small fails'; fi
umount disk

# ---- a read-only room ----
mkdir ro && mr init ro --name ro >/dev/null 2>&1
at() { "$BIN" --room "$here/ro" "$@" </dev/null; }
at register alice >/dev/null 2>&1; at register bob >/dev/null 2>&1
id=$(at --as alice send bob -m 'to be read' 2>/dev/null)
mount --bind ro ro && mount -o remount,ro,bind ro
exits 1 'send into a read-only room' at --as alice send bob -m x
says err 'ead-only' 'says that it is read-only'
exits 0 'inbox' at --as bob inbox --json
same "$id" "$(jq -r .id out)" 'still lists'
exits 0 'read --peek' at --as bob read --peek "$id"
says out 'to be read' 'still shows'
exits 0 'read --raw too' at --as bob read --raw "$id"
exits 0 'and where' at where
exits 0 'and who' at who
exits 0 'and search' at --as bob search read
exits 0 'and wait, when there is mail' at --as bob wait --timeout 0
exits 0 'and why' at --as bob why "$id"
"$BIN" --room "$here/ro" --as bob read "$id" </dev/null >out 2>err; code=$?
same 1 $code 'read, which marks, is an error'
says out 'to be read' 'but shows the message'
exits 1 'drain' at --as bob drain
says err 'ead-only' 'says why'
exits 1 'register' at register carol
says err 'ead-only' 'says why'
exits 1 'inside a harness' env CLAUDE_CODE_SESSION_ID=s-1 "$BIN" --room "$here/ro" --as alice send bob -m x
says err 'sandbox' 'it names the sandbox as the likely reason'
says err 'mailroom setup|writable_roots|allow' 'and the setting that is missing'
exits 1 'Codex' env CODEX_THREAD_ID=t-1 "$BIN" --room "$here/ro" --as alice send bob -m x
says err 'writable_roots' 'is told its own'
umount ro
exits 0 'writable again' at --as alice send bob -m x
same 2 "$(at --as bob inbox --json 2>/dev/null | wc -l)" 'nothing was lost'

# ---- no /proc ----
room alice bob carol
mkdir proc
noproc() { unshare -m sh -c 'mount -t tmpfs tmpfs /proc && exec "$@"' sh "$BIN" "$@" </dev/null; }
if unshare -m sh -c 'mount -t tmpfs tmpfs /proc && test ! -e /proc/self'; then
	exits 0 'send without /proc' noproc --as alice send bob -m 'no proc'
	exits 0 'to several' noproc --as alice send bob carol -m 'no proc either'
	same 2 "$(unread bob)" 'arrives'
	same '400' "$(find .mailroom/agents/bob/new -type f -printf '%m\n' | sort -u)" 'whole, with the right mode'
	exits 0 'recv' noproc --as bob recv --json
	exits 0 'done' noproc --as bob done "$(jq -r .token out)"
	exits 0 'drain' noproc --as bob drain
	says out 'no proc either' 'shows the rest'
	exits 0 'register' noproc register dave
	exits 0 'who' noproc who
	same '' "$(find .mailroom/agents/*/tmp .mailroom/spool -type f)" 'and nothing is left behind'
	sleep 60 & live=$!
	mr takeover carol --pid $live >/dev/null 2>&1
	exits 4 'who cannot look does not call a life gone' noproc register carol
	kill $live; wait $live 2>/dev/null
else
	skip 'a sandbox without /proc' 'cannot hide /proc here'
fi

# ---- links that the file system refuses (a sandbox that forbids links across folders answers so) ----
room alice bob carol
if MAILROOM_FAULT= "$DEVBIN" --version >/dev/null 2>&1; then
	"$DEVBIN" --as alice send bob carol -m warm-up </dev/null >/dev/null 2>&1
	for error in EXDEV EPERM EMLINK; do
		n=1 accepted=0
		while [ $n -le 60 ]; do
			before=$(find .mailroom/agents -path '*/new/*' -type f | wc -l)
			MAILROOM_FAULT=errno:$error:$n "$DEVBIN" --as alice send bob carol -m "link $error $n" </dev/null >out 2>err; code=$?
			after=$(find .mailroom/agents -path '*/new/*' -type f | wc -l)
			case $code in
			0) accepted=$((accepted + 1)); [ $after = $((before + 2)) ] || echo "$error at call $n: accepted, $before then $after" ;;
			1|4|5) [ $after = $before ] || echo "$error at call $n: refused (exit $code), $before then $after: $(cat err)" ;;
			6) mr --as bob whoami >/dev/null 2>&1; after=$(find .mailroom/agents -path '*/new/*' -type f | wc -l)
				[ $after = $((before + 2)) ] || echo "$error at call $n: in doubt and not completed, $before then $after" ;;
			*) echo "$error at call $n: exit $code" ;;
			esac
			n=$((n + 3))
		done
		[ $accepted -gt 0 ] || echo "$error: never accepted"
	done >wrong
	same '' "$(cat wrong)" 'a link refused anywhere: accepted with a copy, or refused with nothing visible, or completed later'
	exits 0 'when all links across folders are refused' mr --as alice send bob -m x
else
	skip 'refused links' 'no build with fault points'
fi
mkdir -p other && mount -t tmpfs -o size=1m tmpfs other 2>/dev/null && {
	room alice bob carol
	cp -a .mailroom/agents/carol/. other/ && mount --bind other .mailroom/agents/carol
	exits 0 'a mailbox on another file system' mr --as alice send bob carol -m 'far away'
	same '1 1' "$(unread bob) $(unread carol)" 'gets a copy'
	exits 0 'and is read there' mr --as carol drain
	says out 'far away' 'as anywhere'
	umount .mailroom/agents/carol
}
# ---- the index: a full disk, a read-only room ----
full=$(dirname "$DEVBIN")/mailroom-full
if [ -x "$full" ]; then
	mkdir -p inst/bin inst/libexec/mailroom; cp "$BIN" inst/bin/mailroom; cp "$full" inst/libexec/mailroom/
	small=$BIN BIN=$here/inst/bin/mailroom
	compare() { # compare COUNT SEED NAME
		python3 "$top/tests/lib/index_room.py" compare "$BIN" "$here/disk/.mailroom" "$1" "$2" >answers 2>&1
		if grep -q ', 0 differ$' answers; then ok "$3"; else note <answers; not_ok "$3"; fi
	}
	mount -t tmpfs -o size=8m tmpfs disk
	mr init disk --name disk >/dev/null 2>&1
	at() { "$BIN" --room "$here/disk" "$@" </dev/null; }
	for name in alice bob town/carol; do at register $name >/dev/null 2>&1; done
	sed -i 's/^Name: .*/Name: r/' disk/.mailroom/room
	python3 "$top/tests/lib/index_room.py" make disk/.mailroom 100 4 >/dev/null
	left() { # left KIB: so much is free
		rm -f disk/fill; free=$(($(stat -f -c %a disk) * 4 - $1)); [ $free -le 0 ] || head -c $((free * 1024)) /dev/zero >disk/fill
	}
	for kib in 0 16 100 300; do
		left $kib
		at index >out 2>err; code=$?
		[ $code = 1 ] && grep -q 'disk is full\|space' err || { echo "$kib KiB: exit $code: $(cat err)"; }
		compare 3 $kib "index with $kib KiB: the same answers" >>compared
	done >wrong
	cat compared
	same '' "$(cat wrong)" 'on a full disk the index fails and says why'
	same 4 "$(grep -c '^ok' compared)" 'and answers are the same' || note <compared
	left 4000
	exits 0 'with space it is made' at index
	compare 6 21 'and is right'
	at --as alice send bob -m 'after the index' >/dev/null 2>&1
	left 0
	compare 6 22 'a full disk under an index that is not up to date: the same answers'
	rm -f disk/fill
	exits 0 'up to date' at index
	mount -o remount,ro disk
	compare 6 23 'a read-only room with an index: the same answers'
	exits 1 'which cannot be brought up to date' at index
	says err 'ead-only|readonly' 'and it says why'
	mount -o remount,rw disk
	exits 0 'writable again' at index
	umount disk
	BIN=$small
else
	skip 'the index on a full disk' 'mailroom-full was not built'
fi
finish
