# once
# The operator's mailbox over IMAP, served by Dovecot as the configuration in share/ has it, while mailroom works in the same mailbox: nothing is
# lost, nothing comes twice.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null 2>&1; then # Dovecot serves nobody with the number 0
	# the name of a socket is 107 bytes at most
	tmp=$(mktemp -d /tmp/mri.XXXXXX) && chmod 755 "$tmp" && cp "${BIN:-build/musl/mailroom}" "$tmp/mailroom" && mkdir "$tmp/work" &&
		cp "$(dirname "$0")/../lib/imap.py" "$(dirname "$0")/../../share/mailroom/dovecot/dovecot.conf" "$tmp" && chown -R 65534:65534 "$tmp/work" && chmod 644 "$tmp"/imap.py "$tmp"/dovecot.conf
	MAILROOM_TOP=$(cd "$(dirname "$0")/../.." && pwd) IMAP_FILES=$tmp BIN=$tmp/mailroom TMPDIR=$tmp/work setpriv --reuid=65534 --regid=65534 --clear-groups sh "$0"
	code=$?
	rm -rf "$tmp"
	exit $code
fi
. "$(dirname "$0")/../lib/tap.sh"
files=${IMAP_FILES:-$top/tests/lib} conf=${IMAP_FILES:-$top/share/mailroom/dovecot}/dovecot.conf
dovecot=$(command -v dovecot || ls /usr/sbin/dovecot 2>/dev/null)
for need in "$dovecot" python3 jq; do
	command -v "${need:-none}" >/dev/null 2>&1 || { skip 'IMAP' "${need:-dovecot} is not here"; finish; }
done
ls /usr/lib/dovecot/imap >/dev/null 2>&1 || { skip 'IMAP' 'dovecot-imapd is not here'; finish; }

room bob
mkdir -p st/home
n=0
while [ $n -lt 40 ]; do n=$((n + 1)); echo "{\"to\":\"operator\",\"subject\":\"old-$n\",\"body\":\"text $n\"}"; done | "$BIN" --as bob send --batch >/dev/null 2>&1
# a free port may be taken before Dovecot has it: then another
server= tries=0
until [ -n "$server" ] && python3 -c "import imaplib; imaplib.IMAP4('127.0.0.1', $port).login('operator', 'x')" 2>/dev/null || [ $tries -gt 300 ]; do
	tries=$((tries + 1))
	if [ -z "$server" ] || ! kill -0 $server 2>/dev/null; then
		port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		sed "s|@ROOM@|$scratch/.mailroom|; s|@STATE@|$scratch/st|; s|@USER@|$(id -un)|; s|@GROUP@|$(id -gn)|; s|1143\$|$port|" "$conf" >my.conf
		"$dovecot" -F -c "$scratch/my.conf" >dovecot.out 2>&1 &
		server=$!
	fi
	sleep 0.1
done
check 'Dovecot serves the mailbox' test $tries -le 300 || note <dovecot.out

# ---- a client and mailroom at once ----
python3 "$files/imap.py" "$port" 2 >client 2>client.err &
client=$!
n=0
while kill -0 $client 2>/dev/null; do
	n=$((n + 1))
	mr --as bob send operator -s "late-$n" -m "text" >/dev/null 2>>err.log && echo "late-$n" >>late
	id=$(mr --as operator inbox --all --json 2>/dev/null | jq -r .id | sed -n "$((n % 7 + 1))p")
	case $((n % 4)) in
	0) mr --as operator read "$id" >/dev/null 2>&1 ;;
	1) mr --as operator mark "$id" --pin >/dev/null 2>&1 ;;
	2) mr --as operator archive "$id" --include-unread >/dev/null 2>&1 ;;
	3) token=$(mr --as operator recv --json 2>/dev/null | jq -r .token); [ -z "$token" ] || mr --as operator done "$token" >/dev/null 2>&1 ;;
	esac
done
wait $client
same 0 $? 'the client is content'
note <client.err
same '' "$(grep -v '^$' err.log 2>/dev/null | head -n 3)" 'and every send was accepted'
check 'both had work' sh -c 'test $(wc -l <late) -gt 3 && grep -q ^new client'

# ---- every message is somewhere, once, or was expunged ----
{ seq 1 40 | sed 's/^/old-/'; cat late; sed -n 's/^new //p' client; } | sort >want
{ find .mailroom/agents/operator -path '*/.Sent*' -prune -o -type f -path '*/new/*' -print -o -type f -path '*/cur/*' -print -o -type f -path '*/held/*' -print |
	while read -r file; do sed -n '/^\r*$/q; s/^Subject: \([^\r]*\).*/\1/p' "$file"; done; } | sort >have
sed -n 's/^gone //p' client | sort >gone
sort -u have gone >known
same '' "$(comm -23 want known | tr '\n' ' ')" 'nothing is lost'
# A move of Dovecot's is a link and a removal: what mailroom files away in between is in both folders.
sed -n 's/^moved //p' client | sort >moved
same '' "$(uniq -d have | comm -23 - moved | tr '\n' ' ')" 'nothing is there twice'
echo "# $(wc -l <want) messages, $(wc -l <late) sent meanwhile, $(wc -l <moved) moved, $(wc -l <gone) expunged"
python3 - "$port" >flags 2>&1 <<'PY'
import imaplib, sys
m = imaplib.IMAP4("127.0.0.1", int(sys.argv[1]))
m.login("operator", "none")
m.select("INBOX")
m.append("INBOX", "", None, b"From: phone@example.org\r\nTo: operator@town\r\nSubject: by phone\r\n\r\nhi\r\n")
m.noop()
uid = m.uid("SEARCH", None, "SUBJECT", '"by phone"')[1][0].split()[-1]
m.uid("STORE", uid, "+FLAGS", "(\\Seen \\Flagged)")
m.logout()
PY
same 'true true' "$(mr --as operator inbox --all --json | jq -r 'select(.subject == "by phone") | "\(.read) \(.pinned)"')" 'a flag of the client is a mark here'
kill $server 2>/dev/null
wait $server 2>/dev/null
exits 0 'doctor has nothing against it' sh -c "'$BIN' doctor --fix >/dev/null 2>&1; '$BIN' doctor"
finish
