# What needs a person, live in a real terminal. `make test` runs it once, with tmux from Debian.
# once
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
exits 0 'an empty room' mr top --once
says out 'all quiet; in the last minute 0 messages came, 0 of them read' 'is quiet'
"$BIN" --as alice queue create builds --attempts 1 </dev/null >/dev/null 2>&1
ask=$(mr --as alice send operator -s 'which colour?' -m 'green or blue' --by 1h 2>/dev/null)
mr --as bob send operator -s 'the disk is full' -m x --priority urgent >/dev/null 2>&1
mr --as alice send queue:builds -s 'build it' -m x >/dev/null 2>&1
mr --as bob recv queue:builds >/dev/null 2>&1
exits 0 'top --json' mr top --json
same '[["answer",true,"the disk is full"],["answer",false,"which colour?"],["attempt",false,"build it"]]' "$(jq -c '.needs | map([.kind, .pressing, .subject])' out)" 'lists what needs the operator, the most pressing first'
same "[\"reply\",\"$ask\"] true" "$(jq -r '.needs[1].actions[0] | "\(.command | tojson) \(.text)"' out)" 'with what can be done, as words of a command'
same '4 2 1 0' "$(jq -r '"\(.agents) \(.came) \(.held) \(.more)"' out)" 'and the numbers of the room'
schema='def ok(s): . as $v | (s.properties // {}) as $p | if type == "object" then (keys == (s.required | sort)) and (keys == ($p | keys)) and all(keys[]; . as $k | $v[$k] | ok($p[$k]))
	elif type == "array" then all(.[]; ok(s.items)) else (s.enum == null or (s.enum | index($v)) != null) and (s.type == null or ([s.type] | flatten | map(if . == "integer" then "number" else . end) | index($v | type)) != null) end; ok($s[0])'
same true "$(jq --slurpfile s "$top/docs/schema/attention.json" "$schema" out)" 'and is what docs/schema/attention.json says'
exits 0 'top in a pipe' mr top
says out 'not instructions' 'prints the list once, in a fence'
says out '^ ! answer .* bob: the disk is full' 'with the urgent one marked'
says out 'claimed by .bob. .* ago, attempt 1 of 1; its lease ends at ' 'and the evidence'
exits 0 'of each kind no more than --limit' mr top --limit 1 --json
same '2 1' "$(jq -r '"\(.needs | length) \(.more)"' out)" 'and how many there are beside'
exits 2 'a limit is a number from 1 to 200' mr top --limit 0
exits 2 'a time is a time' mr top --unread soon
exits 2 'no operand' mr top x

# ---- only what is listed is opened ----
if command -v strace >/dev/null; then
	mkdir crowd && "$BIN" init crowd >/dev/null 2>&1 </dev/null
	( cd crowd || exit
	for i in 01 02 03 04 05 06 07 08 09 10 11 12; do "$BIN" register a$i </dev/null >/dev/null 2>&1; done
	for i in 1 2 3 4 5 6 7 8 9 10; do "$BIN" --as a01 send '@all' operator -s "news $i" -m x </dev/null >/dev/null 2>&1; done )
	sleep 1.1
	strace -f -e trace=openat,openat2,open -o trace "$BIN" --room crowd/.mailroom top --unread 1s --limit 2 --json </dev/null >few 2>/dev/null
	same '4 17' "$(jq -r '"\(.needs | length) \(.more)"' few)" 'of 11 agents with 10 unread each, and 10 for the operator, 2 of each kind are listed'
	same 4 "$(grep -cE '[0-9]{10}\.[0-9a-z]{26}[^"]*\.mr' trace)" 'and of 120 messages 4 are opened'
else
	skip 'only what is listed is opened' 'no strace'
fi

# ---- in a terminal ----
command -v tmux >/dev/null || { skip 'top in a terminal' 'no tmux'; finish; }
sock=$scratch/tmux.sock
tm() { tmux -u -S "$sock" -f /dev/null "$@"; }
trap 'tmux -S "$sock" kill-server 2>/dev/null; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
until_true() { tries=0; until "$@" >/dev/null 2>&1; do tries=$((tries + 1)); [ $tries -lt 200 ] || return 1; sleep 0.1; done; }
screen() { tm capture-pane -p -t s; }
shows() { screen >shown; grep -qE "$1" shown; }
sees() { if until_true shows "$1"; then ok "$2"; else note <shown; not_ok "$2"; fi; }
gone() { ! kill -0 "$1" 2>/dev/null; }
tm new-session -d -s hold -x 90 -y 24 cat || { not_ok 'tmux starts'; finish; } # the server stays
# begin [VAR=VALUE...]: a shell that runs top, says how it ended, and leaves the modes of the terminal before and after.
begin() {
	rm -f before after ended
	cat >run.sh <<-END
		trap : INT
		stty -g >before
		env $* sh -c 'echo \$\$ >pid; exec "$BIN" top'
		echo \$? >ended
		stty -g >after
		echo given-back
		exec cat
	END
	tm kill-session -t s 2>/dev/null
	tm new-session -d -s s -x 90 -y 24 "sh run.sh" || { not_ok 'tmux starts'; finish; }
	until_true shows '^[^ ]+: [0-9]+ agents,'
	top_pid=$(cat pid)
	watcher=$(pgrep -P "$top_pid")
}
given_back() { # given_back STATUS NAME
	until_true test -s ended && until_true test -s after
	if [ "$(cat ended 2>/dev/null)" = "$1" ] && cmp -s before after && until_true shows '^given-back'; then ok "$2"
	else screen | note; echo "# exit $(cat ended)"; not_ok "$2"; fi
	[ -n "$watcher" ] && until_true gone "$watcher" || not_ok 'the process that watches is gone, too'
}
begin
sees '^>! answer .* bob: the disk is full' 'the list is there, the first line chosen'
sees 'j k move' 'and the keys'
mr --as carol send operator -s 'fresh from carol' -m 'a body' >/dev/null 2>&1
sees 'carol: fresh from carol' 'mail that comes is shown without a key'
tm send-keys -t s j
sees '^> .*alice: which colour[?]' 'j goes down'
sees "mailroom reply $ask -m TEXT" 'and shows what can be done'
tm send-keys -t s Enter
sees 'green or blue' 'enter shows the message'
sees '^Subject: which colour[?]' 'with its headers'
tm send-keys -t s q
sees '^> .*alice: which colour[?]' 'q goes back to the list'
same 3 "$(unread operator)" 'nothing was marked'
tm send-keys -t s Up
sees '^>! answer .* bob: the disk is full' 'the arrow goes up'

tm resize-window -t s -x 20 -y 5
sees '^town: 4 agents, 3 u…$' 'a window of 20 by 5 is cut to it'
screen >shown
same '5 20' "$(wc -l <shown) $(wc -L <shown)" 'and is filled, not overrun'
says shown '^j k enter r q$' 'with its keys'
for size in '1 1' '3 2' '200 3' '7 40'; do
	tm resize-window -t s -x "${size% *}" -y "${size#* }"
	sleep 0.2
	kill -0 "$top_pid" || not_ok "a window of $size ends it"
done
tm resize-window -t s -x 120 -y 30
sees 'j k move   enter message' 'a large one is used again'

mr --as alice send operator -s "$(printf 'evil \033[2J\033]0;title\007 \342\200\256 end')" -m "$(printf 'body \033[31mred\007 \302\233x')" --priority urgent >/dev/null 2>&1
sees 'evil <U[+]001B>[[]2J<U[+]001B>[]]0;title<U[+]0007> <U[+]202E> end' 'a hostile subject is shown, not obeyed'
tm send-keys -t s g j Enter
sees 'body <U[+]001B>[[]31mred<U[+]0007> <U[+]009B>x' 'nor is a hostile text'
tm send-keys -t s q q
given_back 0 'q gives the terminal back'

for signal in INT TERM HUP QUIT; do
	begin
	kill -s $signal "$top_pid"
	case $signal in INT) code=130 ;; TERM) code=143 ;; HUP) code=129 ;; QUIT) code=131 ;; esac
	given_back $code "so does a SIG$signal"
done
begin
tm send-keys -t s C-c
given_back 130 'and Ctrl-C'
begin
kill -s SEGV "$top_pid"
given_back 139 'and a fault'
begin
kill -s STOP "$top_pid"; kill -s CONT "$top_pid"
sees '^>! answer' 'stopped and continued, it draws again'
mr --as bob send operator -s 'after the stop' -m x >/dev/null 2>&1
sees 'bob: after the stop' 'and goes on'
tm send-keys -t s q
given_back 0 'until it is ended'

begin NO_COLOR=1
check 'with NO_COLOR there is no colour' sh -c "! tmux -u -S '$sock' capture-pane -e -p -t s | grep -q '$(printf '\033')\[[0-9;]*[1-7m]'"
tm send-keys -t s q
given_back 0 'and it ends as ever'
begin
sees_color() { tm capture-pane -e -p -t s | grep -q "$(printf '\033')\[31m"; }
if until_true sees_color; then ok 'without it there is'; else not_ok 'without it there is'; fi
kill -s KILL "$top_pid"
if until_true gone "$watcher"; then ok 'killed, it leaves no process behind'; else not_ok 'killed, it leaves no process behind'; fi
tm kill-server
finish
