# SPDX-License-Identifier: MIT
# once
# What the room notes for itself has an end: 90 days after something is over its record, key or folder goes, and what is open stays.
. "$(dirname "$0")/../lib/tap.sh"
unset CLAUDE_CONFIG_DIR CLAUDE_CODE_TEAM_NAME MB_TEST_ROOT
at() { # at DAYS COMMAND...: with the clock set forward
	days=$1; shift
	MAILROOM_TEST_CLOCK_OFFSET_MS=$(awk "BEGIN { printf \"%.0f\", $days * 86400000 }") "$DEVBIN" "$@" </dev/null
}
# look DAYS: commands that write, so often that a pass of retention comes by everything; two days of them, because the first look after a
# month without one removes nothing.
look() { for more in 0 1.1 1.2 1.3; do at "$(awk "BEGIN { print $1 + $more }")" --as alice send alice -m tick >/dev/null 2>&1; done; }
escalations() { at "$1" escalate list --all --json | jq -r .status | sort | tr '\n' ' '; }

# ---- escalations ----
room alice bob
for i in 1 2 3; do at 0 --as alice escalate "trouble $i" >>ids 2>/dev/null; done
first=$(sed -n 1p ids) second=$(sed -n 2p ids) open=$(sed -n 3p ids)
at 0 --as bob escalate close "$first" --reason settled >/dev/null
check 'a closed one lies aside' test -f ".mailroom/records/escalation/closed/$first" -a ! -e ".mailroom/records/escalation/_/$first"
same 2 "$(at 0 escalate list --json | jq -r .id | grep -c -e "$open" -e "$second")" 'and the two that are open are listed'
same 'closed open open ' "$(escalations 0)" 'with --all all three are'
same settled "$(at 0 escalate show "$first" --json | jq -r .closed_reason)" 'and is shown'
exits 4 'closing it again' at 0 --as alice escalate close "$first" --reason twice
says err 'was closed by .bob.' 'says who did'
exits 4 'so does acknowledging it' at 0 --as alice escalate ack "$first"
# A kill at each call leaves it in one state, and shown once.
n=1; kills=0; wrong=
while [ $n -lt 400 ] && [ "$(at 0 escalate show "$second" --json | jq -r .status)" = open ]; do
	MAILROOM_FAULT=kill-before:$n at 0 --as bob escalate close "$second" --reason settled >/dev/null 2>&1
	kills=$((kills + 1)); n=$((n + 5))
	[ "$(at 0 escalate list --all --json | jq -r .id | grep -c "$second")" = 1 ] || wrong="$wrong $n"
done
check "killed at $kills points" test "$kills" -gt 3
same '' "$wrong" 'it is listed once'
# One that an earlier version closed where it was.
cp ".mailroom/records/escalation/closed/$first" ".mailroom/records/escalation/_/esc-earlier"
same 'closed closed closed open ' "$(escalations 0)" 'one of an earlier version is closed'
at 0 --as alice escalate 'another one' >/dev/null 2>&1
check 'and lies aside after the next escalation' test -f .mailroom/records/escalation/closed/esc-earlier -a ! -e .mailroom/records/escalation/_/esc-earlier
at 0 --as alice escalate 'another one' >/dev/null 2>&1
look 0; look 20; look 40; look 60; look 80
same 'closed closed closed open open ' "$(escalations 82)" 'after 82 days all are there'
look 95
same 'open open ' "$(escalations 97)" 'after 96 those that are open'
exits 5 'the closed one' at 97 escalate show "$first"
same "trouble 3" "$(at 97 escalate show "$open" --json | jq -r .text)" 'and those are whole'

# ---- a clock that jumps ----
room alice
id=$(at 0 --as alice escalate 'soon settled' 2>/dev/null); at 0 --as alice escalate close "$id" --reason yes >/dev/null
look 0
at 200 --as alice send alice -m tick >/dev/null 2>&1
same 'closed ' "$(escalations 0)" 'a clock that jumps ahead removes nothing at first'
at 0 --as alice send alice -m tick >/dev/null 2>&1; look 1
same 'closed ' "$(escalations 1)" 'nor when it is set right again'

# ---- what became of messages; beads ----
room alice bob
at 0 --as alice purge "$(at 0 --as alice send bob -m secret)" --reason leaked >/dev/null 2>&1
at 0 register gone >/dev/null 2>&1; id=$(at 0 --as alice send gone -m 'too late'); at 0 prune gone --force >/dev/null 2>&1
at 0 --as alice dead drop "$id" --force >/dev/null 2>&1
mr config set Bead-Status 'printf open' >/dev/null; mr config set Sling true >/dev/null
at 0 gt --as bob deacon redispatch gt-1 --rig r >/dev/null; at 0 gt --as bob deacon redispatch gt-2 --rig r >/dev/null
kept() { for f in purged dead-done redispatch; do ls ".mailroom/records/$f/_" | wc -l; done | tr -d ' ' | tr '\n' ' '; }
same '1 1 2 ' "$(kept)" 'a tombstone, the end of a dead letter, two beads'
look 0; look 20; look 40; look 60; look 80
touch -d '80 days' .mailroom/records/redispatch/_/gt-2 # the clock of the kernel is not set forward
look 95
same '1 1 1 ' "$(kept)" 'after 95 days the later bead is there, and for a year the others'
for d in 110 135 160 185 210 235 260 285 310 335 360 367; do look $d; done
same '0 0 0 ' "$(kept)" 'and then nothing'
check 'doctor finds nothing wrong' at 370 doctor

# ---- keys of a sender that never sends again; the mailbox of an agent that is gone ----
room alice bob
at 0 register rig/worker >/dev/null 2>&1; at 0 register pinner >/dev/null 2>&1
at 0 --as rig/worker send bob --key once -m x >/dev/null
at 0 --as bob nudge rig/worker -m wake >/dev/null 2>&1
id=$(at 0 --as bob send pinner -m 'to keep'); at 0 --as pinner read "$id" >/dev/null; at 0 --as pinner archive "$id" >/dev/null; at 0 --as pinner mark pinned "$id" >/dev/null
check 'it has folders' test -d .mailroom/agents/rig/worker -a -d .mailroom/keys/rig%2Fworker -a -d .mailroom/nudges/rig%2Fworker
at 0 prune rig/worker pinner --force >/dev/null 2>&1
same '' "$(ls -d .mailroom/records/*/rig%2Fworker .mailroom/nudges/rig%2Fworker 2>/dev/null)" 'what was noted of it goes with it'
mr config set Keep-Sent 10 >/dev/null; mr config set Keep-Archive 10 >/dev/null
look 0
check 'its mailbox stays' test -d .mailroom/agents/rig/worker/lives
look 8
check 'its keys are forgotten after a week' test ! -e .mailroom/keys/rig%2Fworker
look 30; look 50; look 70; look 91; look 110; look 130; look 150; look 170; look 185
check 'half a year later no folder of it is left' test ! -e .mailroom/agents/rig
check 'one with pinned mail is' test -d .mailroom/agents/pinner
exits 0 'the name is free' at 190 register rig/worker
same x "$(at 190 --as rig/worker send rig/worker -m x >/dev/null; at 190 --as rig/worker drain --json | jq -r .body)" 'and its mail arrives'
check 'doctor finds nothing wrong' at 190 doctor

# ---- correspondences, and names over there ----
room alice bob
mkdir blue; mr init --name blue ./blue >/dev/null 2>&1
there() { days=$1; shift; at "$days" --room "$scratch/blue" "$@"; }
there 0 register carol >/dev/null 2>&1; mr --as alice link blue ./blue >/dev/null
at 0 register guest >/dev/null 2>&1
at 0 --as guest send carol@blue -m 'a question' >/dev/null 2>&1; at 0 --as alice send carol@blue -m 'nobody reads this' >/dev/null 2>&1
question=$(there 0 --as carol inbox --json | jq -r 'select(.from == "guest").id')
there 0 --as carol read "$question" >/dev/null; answer=$(there 0 --as carol reply "$question" -m 'an answer' 2>/dev/null)
at 0 carry >/dev/null
pairs() { grep -h ^Local: .mailroom/records/carried/blue/* 2>/dev/null | sort | tr '\n' ' '; }
same 'Local: alice Local: guest ' "$(pairs)" 'two correspondences'
there 20 --as guest mark unread "$answer" >/dev/null 2>&1
at 20 carry >/dev/null
same 1 "$(at 20 --as guest inbox --all --json | jq -r .from | grep -c carol@blue)" 'a message that is unread there once more, after its key, is not carried again'
at 85 carry >/dev/null
at 85 prune guest --force >/dev/null 2>&1
at 85 carry >/dev/null
same 'Local: alice Local: guest ' "$(pairs)" 'they are there for 90 days'
at 91 carry >/dev/null
same 'Local: alice ' "$(pairs)" 'then the one goes of which nothing is unread there'
silent_about .mailroom/links/blue '^Name: guest' 'with the name over there'
same 0 "$(there 91 who --json | jq -r .name | grep -c guest)" 'and the mailbox'
there 300 --as carol drain >/dev/null 2>&1
at 300 carry >/dev/null; at 300 carry >/dev/null
same '' "$(pairs)" 'the other when its mail was read'
same 1 "$(grep -c '^Name: alice' .mailroom/links/blue)" 'an agent that is there keeps its name'
exits 0 'it goes on' at 300 --as alice send carol@blue -m again
there 300 --as carol reply "$(there 300 --as carol inbox --json | jq -r .id)" -m 'and back' >/dev/null 2>&1
at 300 carry >/dev/null
same 1 "$(at 300 --as alice inbox --json | jq -r .from | grep -c carol@blue)" 'both ways'
finish
