# SPDX-License-Identifier: MIT
# once
# SMTP submission for a phone or a desk client: msmtpd as the unit in share/ starts it, two real clients (Python's, curl), a password, and an agent
# that waits for what they send.
. "$(dirname "$0")/../lib/tap.sh"
msmtpd=$(command -v msmtpd || ls "$top/build/msmtpd/usr/bin/msmtpd" 2>/dev/null)
for need in "$msmtpd" python3 curl jq; do
	command -v "${need:-none}" >/dev/null 2>&1 || { skip 'submission' "${need:-msmtpd} is not here"; finish; }
done

room bob
MAILROOM=$scratch/.mailroom; export MAILROOM
mkdir -p bin "$HOME/.config/mailroom" && ln -s "$BIN" bin/mailroom && PATH=$scratch/bin:$PATH
(umask 077; echo 'a secret' >"$HOME/.config/mailroom/submission-password")
server=
trap 'kill $server 2>/dev/null; rm -rf "$scratch"' EXIT
# the command of the unit, with another port: one that is free may be taken before msmtpd has it
unit=$(sed -n 's/^ExecStart=msmtpd //p' "$top/share/mailroom/systemd/mailroom-submission.service" | sed "s|%h|$HOME|")
tries=0
until [ -n "$server" ] && python3 -c "import smtplib; smtplib.SMTP('127.0.0.1', $port, timeout=5).noop()" 2>/dev/null || [ $tries -gt 300 ]; do
	tries=$((tries + 1))
	if [ -z "$server" ] || ! kill -0 $server 2>/dev/null; then
		port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		eval "exec \"\$msmtpd\" $(printf %s "$unit" | sed "s/1587/$port/")" >server.out 2>&1 &
		server=$!
	fi
	sleep 0.1
done
check 'msmtpd serves' test $tries -le 300 || note <server.out

town=$(mr --as bob where --json 2>/dev/null | jq -r .name)
cat >client.py <<'PY'
import smtplib, sys
from email.message import EmailMessage
port, password, to = int(sys.argv[1]), sys.argv[2], sys.argv[3]
m = EmailMessage()
m["From"], m["To"], m["Subject"] = "operator@" + to.split("@")[1], to, "by phone \u2603"
m.set_content("Come to the bridge.\n.\nThe dot is text.\n")
m.add_attachment(b"\0\1\2 bytes", maintype="application", subtype="octet-stream", filename="plan.bin")
s = smtplib.SMTP("127.0.0.1", port, timeout=20)
try:
    if password:
        s.login("operator", password)
    s.send_message(m)
    print("sent")
except smtplib.SMTPException as e:
    print("refused", getattr(e, "smtp_code", ""), e)
s.close()
PY
"$BIN" --as bob wait --timeout 60 --json >waited 2>/dev/null </dev/null &
waiter=$!
same sent "$(python3 client.py "$port" 'a secret' "bob@$town")" "Python's client submits"
wait $waiter
same 'operator by phone ☃' "$(jq -r '"\(.from) \(.subject)"' waited)" 'the agent that waited has it, from the operator'
id=$(jq -r .id waited)
mr --as bob read "$id" --save saved >read 2>&1
says read 'The dot is text' 'with its whole text'
check 'and its attachment' test "$(find saved -type f | head -n 1 | xargs wc -c | cut -d' ' -f1)" = 9
python3 client.py "$port" '' "bob@$town" >out; says out '^refused' 'without a password nothing is sent'
python3 client.py "$port" 'another' "bob@$town" >out; says out '^refused 535|^refused' 'nor with a wrong one'
python3 client.py "$port" 'a secret' "nobody@$town" >out; says out '^refused 5' 'an unknown agent is refused at once'
printf 'From: operator@%s\r\nTo: bob@%s\r\nSubject: by curl\r\n\r\nhello\r\n' "$town" "$town" >letter
check "curl's client submits" curl -sS --max-time 20 "smtp://127.0.0.1:$port" --mail-from "operator@$town" --mail-rcpt "bob@$town" --user 'operator:a secret' -T letter

# ---- a connection that breaks ----
cat >raw.py <<'PY'
import base64, socket, sys, time
port, to, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
s = socket.create_connection(("127.0.0.1", port), timeout=20)
f = s.makefile("rwb")
def say(line):
    f.write(line + b"\r\n"); f.flush()
def hear():
    line = f.readline()
    while line[3:4] == b"-":
        line = f.readline()
    return line.decode().strip()
hear()
for line in (b"EHLO me", b"AUTH PLAIN " + base64.b64encode(b"\0operator\0a secret"), b"MAIL FROM:<operator@here>", b"RCPT TO:<%s>" % to.encode(), b"DATA"):
    say(line)
    answer = hear()
say(b"From: operator\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@phone>\r\n\r\nthe first half" % (to.encode(), how.encode(), how.encode()))
if how == "half":
    time.sleep(0.5)
else:
    say(b"and the other\r\n.")
    if sys.argv[4:] != ["leave"]:
        print(hear())
s.shutdown(socket.SHUT_RDWR)
PY
settled() { # the command of every session has ended
	i=0; while [ $i -lt 100 ] && { [ $i -lt 5 ] || pgrep -f -- "sendmail.* bob@$town" >/dev/null; }; do sleep 0.1; i=$((i + 1)); done
}
python3 raw.py "$port" "bob@$town" half; settled
same '' "$(mr --as bob inbox --all --json | jq -r 'select(.subject == "half").subject')" 'of a client that breaks off nothing is sent'
python3 raw.py "$port" "bob@$town" whole leave; settled
same 250 "$(python3 raw.py "$port" "bob@$town" whole | cut -c1-3)" 'a client that lost the answer sends again'
same whole "$(mr --as bob inbox --all --json | jq -r 'select(.subject == "whole").subject')" 'and the message is there once'
same 'by curl' "$(mr --as bob inbox --json | jq -r 'select(.subject != "whole").subject')" 'and that is all there is'
finish
