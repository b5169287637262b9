# SPDX-License-Identifier: MIT
# once
# Retention: Keep-Archive, Keep-Sent, Keep-Done, Keep-Dead; what is never removed; what is said of it.
. "$(dirname "$0")/../lib/tap.sh"
day=86400000
at() { # at DAYS COMMAND...: with the clock set forward
	days=$1; shift
	MAILROOM_TEST_CLOCK_OFFSET_MS=$(awk "BEGIN { printf \"%.0f\", $days * $day }") "$DEVBIN" "$@"
}
archived() { find ".mailroom/agents/$1" -type f -path '*/.Archive*/cur/*' | wc -l; }
sent() { find ".mailroom/agents/$1" -type f -path '*/.Sent*/cur/*' | wc -l; }
touch_room() { at "$1" --as alice send carol -m tick >/dev/null 2>&1; } # any command that writes

# ---- settings ----
room alice bob carol
exits 0 'set it' mr config set Keep-Archive 90d
same 'Keep-Archive: 90d' "$(grep Keep- ".mailroom/room")" 'it stands in the file room'
silent_about err 'number of messages' 'a time is taken without a word'
exits 0 'a plain number' mr config set Keep-Sent 500
says err '500 is a number of messages, not of days' 'is said to be no time'
exits 0 'which can be taken back' mr config unset Keep-Sent
exits 0 'list' mr config list
says out 'Keep-Archive: 90d' 'shows it'
exits 0 'where' mr where
says out 'Keep-Archive: 90d' 'shows it, too'
exits 0 'doctor' mr doctor
says out 'Keep-Archive: 90d' 'tells of it'
for bad in 0 -3 90m 5s 12h 2g 1P abc 90d90 '' 99999999999999999999 1.5d; do
	mr config set Keep-Sent "$bad" >/dev/null 2>&1 && echo "taken: $bad"
done >wrong
same '' "$(cat wrong)" 'what is no time of a day or more, number or size is refused'
exits 4 'a mistyped one' mr config set Keep-Sent 90m
says err '90d, 12w' 'says what is allowed'
exits 4 'an unknown one' mr config set Keep-Mail 90d
says err 'Keep-Done and Keep-Dead$' 'is refused with all that there are'
exits 0 'unset' mr config unset Keep-Archive
same '' "$(grep Keep- ".mailroom/room")" 'takes the line away'
exits 5 'twice' mr config unset Keep-Archive
echo 'Keep-Dead: sometimes' >>".mailroom/room"
exits 1 'a bad one in the file' mr doctor
says out "Keep-Dead: 'sometimes' is not understood" 'is a problem'

# ---- a time ----
room alice bob carol
for i in 1 2 3 4 5 6; do mr --as alice send bob -m "old $i" >>ids 2>/dev/null; done
first=$(head -1 ids) pinned=$(sed -n 2p ids) unread=$(sed -n 3p ids)
question=$(mr --as alice send bob -m 'an answer by then?' --by 300d 2>/dev/null)
mr --as bob read $(cat ids) "$question" >/dev/null
mr --as bob archive $(cat ids) "$question" >/dev/null
mr --as bob mark pinned "$pinned" >/dev/null
mr --as bob mark unread "$unread" >/dev/null 2>&1
mr --as alice send bob -m 'in the inbox' >/dev/null 2>&1
same 7 "$(archived bob)" 'seven are archived'
mr config set Keep-Archive 10d >/dev/null
touch_room 0
same 7 "$(archived bob)" 'nothing goes when the setting is new'
touch_room 32
same 7 "$(archived bob)" 'nor at the first look after a month without one: the clock may be wrong'
touch_room 32.5
same 7 "$(archived bob)" 'nor within a day of that'
touch_room 33.5
same 3 "$(archived bob)" 'what is older goes a day later: not the pinned, the unread, the question'
check 'the pinned one is there' at 33.5 --as bob read "$pinned" --peek
check 'the unread one is there' at 33.5 --as bob read "$unread" --peek
check 'the question is there' at 33.5 --as bob read "$question" --peek
same 1 "$(at 33.5 --as bob inbox --json -u | jq -r .id | wc -l)" 'the inbox is as it was'
same 8 "$(sent alice | awk '{ print ($1 >= 8) ? 8 : $1 }')" 'sent mail is kept: nobody said otherwise'
exits 0 'why' at 33.5 --as alice why "$first"
says out 'removed by Keep-Archive: 10d, last on 20' 'says who removed it, and when'
mr config set Keep-Sent 10d >/dev/null
touch_room 33.6
touch_room 34.8
at 34.8 --as alice why "$first" >out 2>&1
says out 'removed from the archives by Keep-Archive: 10d' 'also when no copy is left'
says out 'removed from sent mail by Keep-Sent' 'and from where'
exits 5 'of what was never there' at 34.8 --as alice why 01aaaaaaaaaaaaaaaaaaaaaaaa

# ---- the clock ----
room alice bob
mr config set Keep-Archive 2d >/dev/null
mr --as bob read "$(send alice bob x)" >/dev/null; mr --as bob archive --all-read >/dev/null
touch_room() { at "$1" --as alice send alice -m tick >/dev/null 2>&1; }
touch_room 0; touch_room -3; touch_room -1.5
same 1 "$(archived bob)" 'with a clock before the making of the room nothing goes'
touch_room 0; touch_room 1.5
same 1 "$(archived bob)" 'nor what is younger than the limit'
touch_room 3
same 0 "$(archived bob)" 'a right one removes it'

# ---- a number, a size ----
room alice bob
i=0; while [ $i -lt 40 ]; do printf '{"to":"bob","body":"%s"}\n' $i; i=$((i + 1)); done | at -40 --as alice send --batch >/dev/null 2>&1
at -40 --as bob drain --json >/dev/null 2>&1
i=0; while [ $i -lt 40 ]; do printf '{"to":"bob","body":"%s"}\n' $i; i=$((i + 1)); done | "$BIN" --as alice send --batch >/dev/null 2>&1
mr --as bob drain --json >/dev/null 2>&1; mr --as bob archive --all-read >/dev/null 2>&1
same '80 80' "$(archived bob) $(sent alice)" 'eighty, half of them of an earlier month'
mr config set Keep-Archive 50 >/dev/null; mr config set Keep-Sent 100K >/dev/null
touch_room 0; touch_room 1.5
same 50 "$(archived bob)" 'the newest fifty stay'
check 'of the size about a hundred kilobytes' sh -c "test $(du -k -c .mailroom/agents/alice/.Sent*/cur/* | awk 'END { print $1 }') -le 110"
check 'and not much less' test "$(sent alice)" -ge 20
same 40 "$(ls .mailroom/agents/bob/.Archive.$(date -u +%Y-%m)/cur | wc -l)" 'those of the earlier month went first'

# ---- work that is done, dead letters ----
room alice bob
mr --as alice queue create build >/dev/null 2>&1
for i in 1 2 3 4; do mr --as alice send queue:build -m "job $i" >/dev/null 2>&1; done
for i in 1 2; do token=$(mr --as bob recv queue:build --json | jq -r .token); mr --as bob done "$token" >/dev/null; done
token=$(mr --as bob recv queue:build --json | jq -r .token); mr --as bob fail "$token" --reason no >/dev/null
q=.mailroom/queues/build
same 2 "$(find $q/done -type f | wc -l)" 'two are done'
mr config set Keep-Done 1d >/dev/null; mr config set Keep-Dead 1d >/dev/null
touch_room 0; touch_room 1.5; touch_room 3
same '0 0 0' "$(find $q/done -type f | wc -l) $(find $q/past -type f 2>/dev/null | wc -l) $(find $q/failed -type f | wc -l)" 'they go, what was known of them, and what failed'
same 1 "$(find $q/ready -type f -name '*.mr*' | wc -l)" 'what waits stays'

# ---- months go when they are empty; two commands at once; kill ----
room alice bob
months() { ls -d .mailroom/agents/bob/.Archive.* 2>/dev/null | wc -l; }
i=0; while [ $i -lt 600 ]; do printf '{"to":"bob","body":"%s"}\n' $i; i=$((i + 1)); done | at -70 --as alice send --batch >/dev/null 2>&1
at -70 --as bob drain --json >/dev/null 2>&1
at -70 --as bob archive --all-read >/dev/null 2>&1
before=$(archived bob)
mr config set Keep-Archive 30d >/dev/null; touch_room 0
n=0; MAILROOM_FAULT=kill-before:30 touch_room 1.2
while [ $n -lt 8 ]; do touch_room 1.2 & n=$((n + 1)); done; wait
n=0; while [ $n -lt 8 ] && [ "$(archived bob)" -gt 0 ]; do touch_room 1.2; n=$((n + 1)); done
same '600 0' "$before $(archived bob)" 'a slice a command, until all are gone'
touch_room 3
same 0 "$(months)" 'the empty folder goes, too'
id=$(at -70 --as alice send bob -m again 2>/dev/null); at -70 --as bob read "$id" >/dev/null; at -70 --as bob archive "$id" >/dev/null
same '1 1' "$(months) $(archived bob)" 'mail of that month makes it anew'
check 'doctor finds nothing wrong' at 4 doctor

# ---- beside a fan-out and a purge that were cut off ----
room alice bob carol
n=50; while [ $n -lt 200 ] && [ -z "$(ls .mailroom/spool)" ]; do
	MAILROOM_FAULT=kill-before:$n at -40 --as alice send bob carol -m 'to both' >/dev/null 2>&1; n=$((n + 1))
	[ "$(ls .mailroom/agents/bob/new | wc -l)" = 1 ] && [ -z "$(ls .mailroom/agents/carol/new)" ] || rm -f .mailroom/spool/* .mailroom/agents/*/new/*
done
id=$(ls .mailroom/spool | grep -v mr)
flock -F ".mailroom/spool/$id" sleep 300 & holder=$! # as the sender would, were it still at work
until ! flock -n ".mailroom/spool/$id" true; do sleep 0.01; done
at -40 --as bob read "$id" >/dev/null 2>&1; at -40 --as bob archive "$id" >/dev/null 2>&1
old=$(at -40 --as alice send bob -m 'like it, and whole' 2>/dev/null); at -40 --as bob read "$old" >/dev/null; at -40 --as bob archive "$old" >/dev/null
same '2 0' "$(archived bob) $(unread carol)" 'of a fan-out one has its copy, read and archived'
mr config set Keep-Archive 10d >/dev/null; touch_room 0; touch_room 1.5; touch_room 3
same "$id" "$(ls .mailroom/agents/bob/.Archive.*/cur | grep -o '01[0-9a-z]\{24\}')" 'while it is under way that copy stays, another goes'
kill $holder; wait $holder 2>/dev/null
touch_room 3.1
same '0 1' "$(unread bob) $(unread carol)" 'completed, nobody gets it twice'
touch_room 5; touch_room 6.5
same 0 "$(archived bob)" 'and then it goes'
room alice bob carol
id=$(at -40 --as alice send bob carol -m 'a secret' 2>/dev/null); at -40 --as bob read "$id" >/dev/null; at -40 --as bob archive "$id" >/dev/null
mr config set Keep-Archive 10d >/dev/null; touch_room 0
n=100; while [ $n -lt 900 ] && [ ! -e .mailroom/records/purged/_/"$id" ]; do
	MAILROOM_FAULT=kill-before:$n at 0.1 --as alice purge "$id" >/dev/null 2>&1; n=$((n + 4))
done
check 'a purge is cut off before the first copy went' test -e .mailroom/records/purged/_/"$id" -a "$(archived bob)" = 1 -a "$(unread carol)" -ge 1
touch_room 1.5; touch_room 3
same 1 "$(archived bob)" 'retention leaves its copies to it'
exits 0 'the next purge completes it' at 3.1 --as alice purge "$id"
same '' "$(grep -rl 'a secret' .mailroom)" 'with every copy'
touch_room 3.2; check 'doctor finds nothing wrong' at 3.2 doctor

# ---- killed before each of its calls ----
room alice bob
i=0; while [ $i -lt 60 ]; do printf '{"to":"bob","body":"%s"}\n' $i; i=$((i + 1)); done | at -40 --as alice send --batch >/dev/null 2>&1
at -40 --as bob drain --json >/dev/null 2>&1
at -40 --as bob archive --all-read >/dev/null 2>&1
pinned=$(find .mailroom/agents/bob -path '*/.Archive*/cur/*' -name '*.mr*' | head -1 | grep -o '01[0-9a-z]\{24\}')
at 0 --as bob mark pinned "$pinned" >/dev/null
mr config set Keep-Archive 30d >/dev/null; touch_room 0
n=1; kills=0; began=$(archived bob)
while [ $n -lt 200 ] && [ "$(archived bob)" -gt 1 ]; do
	MAILROOM_FAULT=kill-before:$n at 1.2 --as alice send alice -m tick >/dev/null 2>&1 && break
	kills=$((kills + 1)); n=$((n + 3))
	[ "$(find .mailroom/agents/bob -path '*/cur/*' -name "*$pinned*" | wc -l)" = 1 ] || { echo "# lost after a kill at $n"; break; }
done
check "killed at $kills points, the rest is removed later" sh -c "test $began = 60 && test $kills -gt 10"
touch_room 1.3; touch_room 1.4
same 1 "$(archived bob)" 'all but the pinned one'
same 1 "$(grep -c "^Removed: $(date -u -d '40 days ago' +%Y-%m) " .mailroom/records/kept/_/archive)" 'with one line for the month'
# ---- send keys: a week, by a clock that can be believed ----
room alice bob
keyed() { at "$1" --as alice send bob --key "$2" -m 'the same' 2>/dev/null; }
id=$(keyed 0 deploy)
keyed 400 other >/dev/null
keyed 400.1 more >/dev/null
same "$id" "$(keyed 0 deploy)" 'a command whose clock is a year ahead ends no key'
keyed 2 later >/dev/null
same "$id" "$(keyed 6 deploy)" 'a key is good for days'
keyed 9 last >/dev/null
check 'and free after a week' test "$(keyed 9 deploy)" != "$id"

finish
