# Nudges: queued, shown to who waits, typed into real tmux panes. `make test` runs it once, with tmux from Debian.
# once
. "$(dirname "$0")/../lib/tap.sh"
unset TMUX TMUX_PANE

now_ms() { echo $(($(date +%s%N) / 1000000)); }
queued() { ls ".mailroom/nudges/$1" 2>/dev/null | wc -l | tr -d ' '; }
nudge() { "$BIN" --as "$1" nudge "$2" -m "$3" </dev/null; }

# ---- the queue ----
room alice bob carol
exits 0 'a nudge for who has no terminal' mr --as alice nudge bob -m 'still there?'
says out '^queued for bob: no terminal' 'is queued, and it says why'
same 1 "$(queued bob)" 'as one file'
exits 0 'the same again' mr --as alice nudge bob -m 'still there?'
same 1 "$(queued bob)" 'is still one'
exits 0 'inbox' mr --as bob inbox
says out 'nudge from alice, 2 times: still there\?' 'shows it, with its number'
same 1 "$(queued bob)" 'and leaves it there'
exits 0 'an urgent one, text on stdin' sh -c 'printf "%s\n" "stop" "now" | "$BIN" --as carol nudge bob --urgent --mode queue --json'
same queued "$(jq -r .way out)" 'says how as JSON'
exits 0 'wait ends at once' mr --as bob wait --timeout 5
same 'URGENT nudge from carol: stop now' "$(grep nudge out | head -n 1)" 'urgent ones first, one line each'
same 0 "$(queued bob)" 'shown nudges are removed'
exits 3 'and not shown again' mr --as bob wait --timeout 0
nudge alice bob 'for json' >/dev/null
exits 3 'a nudge beside a filter ends the wait, too' mr --as bob wait --timeout 5 --from carol --json
same 'true for json' "$(jq -r '"\(.nudge) \(.text)"' out)" 'is shown, but is not the mail that was asked for'
nudge alice bob 'kept' >/dev/null
"$BIN" --as bob wait --timeout 0 </dev/null >/dev/full 2>err; same 1 $? 'stdout that takes nothing is a failure'
same 1 "$(queued bob)" 'and nothing is removed before it was shown'
mr --as bob wait --timeout 0 >/dev/null
exits 0 'a short-lived one' mr --as alice nudge bob -m 'soon over' --ttl 10m
exits 0 'a later one' mr --as alice nudge bob -m 'later' --not-before 20m
exits 0 'the short-lived one is there' mr --as bob inbox
says out 'soon over' 'before its time is over'
silent_about out 'nudge.*later' 'the later one is not shown yet'
exits 0 'wait, 21 minutes later' env MAILROOM_TEST_CLOCK_OFFSET_MS=1260000 "$DEVBIN" --as bob wait --timeout 0
silent_about out 'soon over' 'what is over is dropped'
says out 'nudge from alice: later' 'what was deferred is shown'
i=0; while [ $i -lt 50 ]; do echo $i; i=$((i + 1)); done | xargs -I{} -P 2 "$BIN" --as alice nudge bob --mode queue -m 'number {}' >/dev/null
same 50 "$(queued bob)" '50 wait'
exits 4 'the 51st is refused' mr --as alice nudge bob --mode queue -m 'one too many'
says err '50 nudges wait' 'and says why'
exits 0 'an urgent one is let in' mr --as alice nudge bob --mode queue --urgent -m 'one more'
( "$BIN" --as bob wait --timeout 0 --json </dev/null >one.out 2>one.err & "$BIN" --as bob wait --timeout 0 --json </dev/null >two.out 2>two.err; wait )
same 51 "$(cat one.out two.out | jq -r .text | sort | uniq -u | wc -l | tr -d ' ')" 'two that show at once show each once'
says "$(grep -l refused one.err two.err)" '1 further nudge for you found the queue full' 'the agent learns of the refused one'
exits 5 'nobody of that name' mr --as alice nudge nobody -m hello
exits 4 'no words' mr --as alice nudge bob -m ''
exits 2 'no such mode' mr --as alice nudge bob -m x --mode soon

# ---- killed while showing ----
nudge alice bob 'survives' >/dev/null; send alice bob 'long' >/dev/null
i=0; while [ $i -lt 40 ]; do echo "subject number $i, and long enough to fill a pipe when there are many of them"; i=$((i + 1)); done >long
mkfifo pipe; sleep 9 >pipe & sleeper=$!
( exec 3<pipe; exec sleep 9 ) & reader=$!
i=0; while [ $i -lt 14 ]; do nudge alice carol "$(cat long) $i" >/dev/null; nudge alice carol "$(cat long) $(cat long) $i" >/dev/null; i=$((i + 1)); done
same 28 "$(queued carol)" 'more than a pipe takes'
"$BIN" --as carol wait --timeout 0 --json </dev/null >pipe 2>/dev/null & shower=$!
sleep 0.3
exits 3 'while one shows them nobody else does' mr --as carol wait --timeout 0 --json
kill -9 $shower; wait $shower 2>/dev/null
kill $sleeper $reader 2>/dev/null; wait $sleeper $reader 2>/dev/null
same 28 "$(queued carol)" 'a shower that is killed leaves them'
exits 0 'the next one' mr --as carol wait --timeout 0 --json
same 28 "$(wc -l <out | tr -d ' ')" 'shows them all'

# ---- who waits ----
mr --as bob wait --timeout 0 >/dev/null; mr --as bob drain >/dev/null
( "$BIN" --as bob wait --timeout 8s </dev/null >waiter.out 2>waiter.err; echo $? >waiter.code ) &
sleep 0.3; begun=$(now_ms)
exits 0 'a nudge for who waits' mr --as alice nudge bob -m 'wake up'
says out '^shown to bob, who was waiting' 'is shown at once'
wait; took=$(($(now_ms) - begun))
same 0 "$(cat waiter.code)" 'and ends the wait'
says waiter.out 'nudge from alice: wake up' 'which prints it'
[ $took -lt 2000 ] && ok "in no time ($took ms)" || not_ok "in no time ($took ms)"

# ---- do not disturb, notices of mail ----
check 'dnd on' mr --as bob dnd on
says out 'not to be disturbed' 'says so'
exits 0 'a nudge for who is not to be disturbed' mr --as alice nudge bob -m hello
says out '^skipped' 'is skipped, and it says so'
exits 0 'mail comes' mr --as alice send bob -m 'quiet' --notify
same '1 0' "$(unread bob) $(queued bob)" 'without a nudge'
exits 0 '--force' mr --as alice nudge bob -m hello --force
same 1 "$(queued bob)" 'nudges all the same'
check 'dnd off' mr --as bob dnd off --json
same false "$(jq .dnd out)" 'as JSON'
mr --as bob wait --timeout 0 >/dev/null
id=$(mr --as alice send bob -m 'secret words' --notify)
same 1 "$(queued bob)" 'send --notify nudges'
mr --as alice send bob -m 'more words' --notify >/dev/null
exits 0 'wait' mr --as bob wait --timeout 0
says out 'nudge from alice, mail, 2 times: you have mail from alice: mailroom read' 'once for two, with who and which id'
silent_about out 'nudge.*words' 'and no word of the mail'
mr --as bob send bob -m 'to myself' --notify >/dev/null; mr --as alice send bob -m 'plain' >/dev/null
same 0 "$(queued bob)" 'not for mail to oneself, nor unasked'
echo 'Nudge-On-Send: yes' >>.mailroom/room
mr --as alice send bob -m 'by rule' >/dev/null; mr --as alice send bob -m 'not this' --no-notify >/dev/null
same 1 "$(queued bob)" 'a room can ask for it, and --no-notify wins'

# ---- chipset ----
mkdir -p chip/mail
"$BIN" --room "chipset:$scratch/chip" --as watch-1 nudge worker-7 --kind health_check --answer-wanted -m 'Still on task 12?' </dev/null >out 2>err
same 0 $? 'a nudge in a chipset room'
sed 's/"timestamp": "[^"]*"/"timestamp": "2026-07-01T08:20:00.000Z"/' chip/nudge/worker-7/latest.json >golden
same 9192943f0df9750597dba6eaafa26776806275bd7efcf84be8423e91f0fccfd4 "$(sha256sum <golden | cut -d ' ' -f 1)" 'has the bytes of the original'
exits 0 'wait there' mr --room "chipset:$scratch/chip" --as worker-7 wait --timeout 0
says out 'nudge from watch-1, health_check, an answer is wanted: Still on task 12' 'shows it'
exits 3 'once' mr --room "chipset:$scratch/chip" --as worker-7 wait --timeout 0
exits 4 'what the format cannot hold is refused' mr --room "chipset:$scratch/chip" --as watch-1 nudge worker-7 --urgent -m x

# ---- tmux ----
command -v tmux >/dev/null || { skip 'typing into a terminal' 'no tmux'; finish; }
sock=$scratch/tmux.sock
tm() { tmux -u -S "$sock" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
# An agent in a terminal: raw as real ones are, or a plain reader of lines; it registers itself and writes each line to a file.
cat >agent.py <<'PY'
import os, subprocess, sys, termios, time, tty
name, kind = sys.argv[1], sys.argv[2]
subprocess.run([os.environ["BIN"], "register", name, "--pid", str(os.getpid())], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
out = open(name + ".lines", "ab", 0)
say = lambda s: os.write(1, s.encode())
if kind == "busy":
    say("* Thinking (esc to interrupt)\r\n\r\n\u276f ")
elif kind == "dialog":
    say("Do you want to proceed?\r\n\u276f 1. Yes\r\n  2. No\r\n")
elif kind == "draft":
    say("\u276f half a thou")
elif kind == "deaf":
    say("\u276f ")
    t = termios.tcgetattr(0); t[3] &= ~termios.ECHO; termios.tcsetattr(0, termios.TCSANOW, t)
elif kind == "placeholder":
    say("\u276f \x1b[7mT\x1b[27m\x1b[2mry a question\x1b[22m")
else:
    say("\u276f ")
if kind in ("raw", "placeholder"):
    tty.setraw(0)
    line = b""
    while True:
        for c in os.read(0, 4096):
            c = bytes([c])
            if c in (b"\r", b"\n"):
                out.write(line + b"\n"); line = b""
                say("\r\n\u276f ")
            elif c == b"\x15":
                line = b""; say("\r\n\u276f ")
            else:
                if not line and kind == "placeholder": say("\r\x1b[K\u276f ")
                line += c; os.write(1, c)
while True:
    data = os.read(0, 65536)
    if not data: break
    out.write(data)
    if kind == "plain": say("\u276f ")
PY
BIN=$BIN tm new-session -d -s s -x 80 -y 24 -n raw "exec python3 agent.py raw raw" || { not_ok 'tmux starts'; finish; }
for kind in plain busy dialog draft deaf placeholder; do tm new-window -d -t s: -n $kind "exec python3 agent.py $kind $kind"; done
tm new-window -d -t s: -n shell "\"$BIN\" register shell --pid \$\$ >/dev/null </dev/null; sh"
for kind in raw plain busy dialog draft deaf placeholder shell; do
	tries=0; while [ ! -d ".mailroom/records/pane/$kind" ] && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
done
sleep 0.2
words='naïve – ✓ 😀 "quoted" '\''single'\'' $(touch run) `touch run` \n \; %s #{pane_id} ~ end;'
exits 0 'a nudge for an idle terminal' mr --as alice nudge raw -m "$words"
says out '^typed and submitted' 'is typed'
same "[from alice] $words" "$(tail -n 1 raw.lines)" 'exactly'
same 0 "$(queued raw)" 'and is not in the queue'
exits 0 'one with line breaks' mr --as alice nudge raw -m "-first
	second
third"
same '[from alice] -first  second third' "$(tail -n 1 raw.lines)" 'is one line'
{ i=0; while [ $i -lt 700 ]; do printf 'wörd%04d ✓ ;' $i; i=$((i + 1)); done; } >ten
[ "$(wc -c <ten)" -ge 10000 ] && ok 'ten kilobytes' || not_ok 'ten kilobytes'
exits 0 'are typed' mr --as alice nudge raw -f ten
same "[from alice] $(cat ten)" "$(tail -n 1 raw.lines)" 'exactly'
exits 0 'a plain reader of lines' mr --as alice nudge plain -m "$words"
says out '^typed and submitted' 'is typed into'
same "[from alice] $words" "$(cat plain.lines)" 'exactly'
exits 0 'what is too long for a plain terminal' mr --as alice nudge plain -f ten --patience 0
says out '^queued for plain: it is too long for a terminal that takes whole lines' 'is queued, and it says so'
same 1 "$(wc -l <plain.lines | tr -d ' ')" 'and nothing of it was submitted'
head -c 3600 ten | iconv -c -f UTF-8 -t UTF-8 >most
exits 0 'what just fits' mr --as alice nudge plain -f most
same "[from alice] $(cat most)" "$(tail -n 1 plain.lines)" 'arrives exactly'
exits 1 'immediately into a terminal without echo' mr --as alice nudge deaf -m 'password' --mode immediate
says err 'did not appear' 'says that it did not appear'
same '0 1' "$(wc -c <deaf.lines | tr -d ' ') $(queued deaf)" 'and did not submit it'
exits 0 'busy' mr --as alice nudge busy -m 'not now' --patience 0
says out '^queued for busy: it is busy' 'is queued'
exits 0 'immediately' mr --as alice nudge busy -m 'now' --mode immediate
says out '^typed' 'is typed all the same'
same '[from alice] now' "$(cat busy.lines)" 'and arrives'
for kind in dialog draft shell; do exits 0 "$kind" mr --as alice nudge $kind -m 'x' --patience 0; cp out $kind.out; done
says dialog.out '^queued.* a dialog' 'a dialog is not answered'
says draft.out '^queued.* somebody is typing' 'a line that somebody types is not touched'
says shell.out '^queued.* a shell' 'a shell gets nothing to run'
for kind in dialog draft; do exits 1 "not into a $kind, also immediately" mr --as alice nudge $kind -m 'x' --mode immediate; done
same '0 0' "$(wc -c <dialog.lines | tr -d ' ') $(wc -c <draft.lines | tr -d ' ')" 'nothing was typed there'
exits 0 'a placeholder is no draft' mr --as alice nudge placeholder -m 'hello'
same '[from alice] hello' "$(cat placeholder.lines)" 'and gets it'
tm copy-mode -t s:raw
exits 0 'copy mode that nobody looks at' mr --as alice nudge raw -m 'out of copy mode'
same '[from alice] out of copy mode' "$(tail -n 1 raw.lines)" 'is left'
( nudge alice raw 'left left left' >l.out & nudge carol raw 'right right right' >r.out; wait )
same '2 lines, whole' "$(tail -n 2 raw.lines | grep -cE '^\[from (alice\] left left left|carol\] right right right)$') lines, whole" 'two at once do not mix'
[ ! -e run ] && ok 'nothing was run by a shell' || not_ok 'nothing was run by a shell'
tm kill-window -t s:raw
exits 0 'a terminal that is gone' mr --as alice nudge raw -m 'anyone?'
says out '^queued for raw: ' 'is a queue'
tm kill-server; sleep 0.1
exits 0 'and a server that is gone, too' mr --as alice nudge placeholder -m 'anyone?'
says out '^queued for placeholder: ' 'is one'
exits 0 'no tmux at all' env PATH=/nowhere "$BIN" --as alice nudge busy -m 'anyone?' </dev/null
says out '^queued for busy: ' 'is one as well'
finish
