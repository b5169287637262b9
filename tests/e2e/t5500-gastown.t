#!/bin/sh
# SPDX-License-Identifier: MIT
# once
# The town of examples/gastown: its flows with real processes, worktrees and merges. Time is a clock that the test moves.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # thousands of small files, and no power cut is tested here
. "$(dirname "$0")/../lib/tap.sh"
example=$top/examples/gastown town="$scratch/the town"
mkdir bin && ln -s "$DEVBIN" bin/mailroom # the build whose clock can be moved
PATH=$scratch/bin:$PATH MAILROOM_DATA=$top/share/mailroom MAILROOM=$town/.mailroom
export PATH MAILROOM_DATA MAILROOM
unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
end_all() { for h in "$town"/rigs/*/polecats/*.hook; do [ ! -e "$h" ] || kill -s KILL -- "-$(sed -n 's/^Pid: //p' "$h")"; done 2>/dev/null; kill "$deacon"; } 2>/dev/null
deacon=
trap 'end_all; rm -rf "$scratch"' EXIT

later() { export MAILROOM_TEST_CLOCK_OFFSET_MS=$(($1 * 60000)); } # later MINUTES: since the beginning
bead() { sh "$example/bead" "$town" "$@"; }
sling() { mailroom gt sling "$1" "$2" | sed 's,.*/,,'; } # prints the polecat
patrol() { who=$1; shift; mailroom --as "$who" patrol "$@" 2>&1 </dev/null; }
sweep() { sh "$example/sweep" "$town" "$1"; }
get() { sed -n "s/^$2: //p" "$town/$1" 2>/dev/null; }
main() { git -C "$town/rigs/$1/origin.git" "$2" "$3" ${4+"$4"}; }
# subjects AGENT TYPE: of all mail it ever got of that type
subjects() { mailroom --as "$1" search '' --type "$2" --json 2>/dev/null | jq -r .subject; }
how_many() { subjects "$1" "$2" | wc -l | tr -d ' '; }
newest() { mailroom --as "$1" search '' --type "$2" --json | jq -rs 'sort_by(.id)|last.id'; }
is_there() { [ -n "$(mailroom --as "$1" inbox --type "$2" --json)" ]; }
has_mail() { until_true is_there "$@"; }
# killed RIG NAME: dies as it stands, with all it had started
killed() { pid=$(get "rigs/$1/polecats/$2.hook" Pid); [ -n "$pid" ] || return; kill -s KILL -- "-$pid"; while [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do sleep 0.02; done; }
until_true() { tries=0; while [ $((tries += 1)) -le 200 ]; do "$@" >/dev/null 2>&1 && return; sleep 0.05; done; return 1; }
is_at() { [ "$(bead status "$1")" = "$2" ]; }
# again AGENT ID: runs its handler once more, as after a kill that came before anything was noted
again() {
	mailroom --as "$1" read "$2" --json --peek >message || return 1
	type=$(jq -r .type message)
	jq -r '.fields|to_entries[]|"MAILROOM_FIELD_\(.key|ascii_upcase|gsub("[^A-Z0-9]";"_"))=\(.value)"' message | tr '\n' '\0' |
		MAILROOM_AGENT=$1 MAILROOM_ID=$2 MAILROOM_TYPE=$type MAILROOM_FROM=$(jq -r .from message) MAILROOM_ATTEMPT=2 \
		xargs -0 sh -c 'handler=$1 town=$2; shift 2; exec env "$@" sh "$handler" "$town"' sh \
		"$example/handlers/$(echo "$type" | tr A-Z_ a-z-)" "$town"
}

# ---- the town
printf 'test ! -e slow || sleep 0.7\ntest ! -e broken || { echo "broken is there"; exit 1; }\n' >rules
check 'a town is made' env TEST="$scratch/rules" sh "$example/town" "$town" gp=gp bd=bd cd=cd
for t in REWORK RECOVERED_BEAD; do check "$t is a sound type" mailroom types check "$example/types/$t"; done
sleep 600 & deacon=$!
mailroom takeover --pid $deacon deacon >/dev/null 2>&1

# ---- completion
bead add gp-1 'an apple' Run 'echo apple >>fruit'
pole=$(sling gp-1 gp)
same nux "$pole" 'a bead is slung to a free polecat'
check 'who works and reports' has_mail gp/witness POLECAT_DONE
same closed "$(bead status gp-1)" 'its bead is closed'
check 'the worktree is there' test -d "$town/rigs/gp/polecats/nux"
exits 0 'the witness checks' patrol gp/witness
same merge-requested "$(get cleanup/gp.nux State)" 'and notes that the branch waits'
same 'MERGE_READY nux' "$(subjects gp/refinery MERGE_READY)" 'the refinery is told'
exits 0 'it merges' patrol gp/refinery
same apple "$(main gp show main:fruit)" 'the work is on main'
exits 0 'the witness cleans up' patrol gp/witness
check 'the commit that was reported is on main' git -C "$town/rigs/gp/origin.git" merge-base --is-ancestor "$(get cleanup/gp.nux Merge-Commit)" main
same closed "$(get cleanup/gp.nux State)" 'the record is closed'
check 'the worktree is gone' test ! -e "$town/rigs/gp/polecats/nux"
same gone "$(mailroom who | awk '$1 == "gp/polecats/nux" { print $2 }')" 'and its process'

# ---- each effect once
before="$(main gp rev-parse main) $(how_many gp/refinery MERGE_READY) $(how_many gp/witness MERGED)"
for pair in "gp/witness POLECAT_DONE" "gp/refinery MERGE_READY" "gp/witness MERGED"; do
	id=$(newest ${pair% *} ${pair#* })
	again ${pair% *} "$id" >/dev/null 2>&1
	rm "$town"/seen/*/"$id"
	check "$pair handled again" again ${pair% *} "$id"
done
rm -rf "$town"/answers/*
id=$(newest gp/refinery MERGE_READY); rm "$town/seen/gp.refinery/$id"
check 'and a merge whose outcome was not noted' again gp/refinery "$id"
same "$before" "$(main gp rev-parse main) $(how_many gp/refinery MERGE_READY) $(how_many gp/witness MERGED)" 'has no effect twice'

# ---- a refinery that is killed in the middle
bead add gp-2 'a slow one' Run 'touch slow'
sling gp-2 gp >/dev/null
has_mail gp/witness POLECAT_DONE
patrol gp/witness >/dev/null
mailroom --as gp/refinery patrol >/dev/null 2>&1 </dev/null & patrol=$!
sleep 0.4
kill -KILL $patrol; wait $patrol 2>/dev/null
until_true eval '! patrol gp/refinery | grep waiting'
patrol gp/refinery >/dev/null
exits 0 'it is merged' patrol gp/witness
same '1 1' "$(main gp log --format=%s main | grep -c '^Merge .*(gp-2)') $(mailroom --as gp/witness search gp-2 --type MERGED --json | wc -l)" 'once, and said once'
same closed "$(get cleanup/gp.nux State)" 'and cleaned up'
git clone -q "$town/rigs/gp/origin.git" by-hand 2>/dev/null
commit() { ( cd by-hand && git pull -q && sh -c "$1" && git add -A && git -c user.name=t -c user.email=t@t commit -q -m "$2" && git push -q ); }
commit 'rm slow' 'fast again'

# ---- handlers are killed all the time, before and behind what they do
for n in 1 2 3; do bead add gp-k$n "kill $n" Run "echo $n >k$n" && sling gp-k$n gp >/dev/null; done
for n in 1 2 3; do until_true is_at gp-k$n closed; done
mkdir flaky && cat >flaky/mailroom <<'FLAKY' && chmod +x flaky/mailroom
#!/bin/sh
n=$(($(cat "$FLAKY" 2>/dev/null || echo 0) + 1)); echo $n >"$FLAKY"
case $((n % 5)) in 0) kill -s KILL $PPID; exit 1 ;; 2) "$DEVBIN" "$@"; kill -s KILL $PPID; exit 1 ;; esac
exec "$DEVBIN" "$@"
FLAKY
for round in 1 2 3 4 5; do
	for agent in gp/witness gp/refinery; do FLAKY=$scratch/calls PATH=$scratch/flaky:$PATH "$DEVBIN" --as $agent patrol --set Escalate-After=0 </dev/null 2>&1; done
done >log
says log '^failed .*signal 9' 'handlers are killed'
says log '^handled .*attempt [2-9]' 'and run again'
all_closed() { for who in gp/witness gp/refinery; do patrol $who --set Escalate-After=0; done; for one in nux slit ace; do [ "$(get cleanup/gp.$one State)" = closed ] || return 1; done; }
check 'in the end all is merged and cleaned up' until_true all_closed
same '3 1,1 1,1 1,1' "$(main gp log --format=%s main | grep -c '^Merge .*(gp-k') $(for n in 1 2 3; do printf '%s,%s ' "$(mailroom --as gp/refinery search "gp-k$n" --type MERGE_READY --json | wc -l)" "$(mailroom --as gp/witness search "gp-k$n" --type MERGED --json | wc -l)"; done | sed 's/ $//')" 'each merged once, and said once'

# ---- merge failure
bead add gp-3 'a broken one' Run 'touch broken' Fix 'git rm -qf broken; echo fixed >fixed'
sling gp-3 gp >/dev/null
has_mail gp/witness POLECAT_DONE
patrol gp/witness >/dev/null; tip=$(main gp rev-parse main)
exits 0 'tests fail' patrol gp/refinery
same "$tip" "$(main gp rev-parse main)" 'main is as it was'
mailroom --as gp/witness read "$(newest gp/witness MERGE_FAILED)" --json --peek >out
same 'tests: broken is there' "$(jq -r '.fields|"\(.["Failure-Type"]): \(.Error)"' out)" 'the witness knows why'
exits 0 'it tells the polecat' patrol gp/witness
check 'who mends it and reports again' has_mail gp/witness POLECAT_DONE
same 'REWORK gp-3' "$(subjects gp/polecats/nux REWORK)" 'told once'
for who in gp/witness gp/refinery gp/witness; do patrol $who >/dev/null; done
same 'fixed gone closed' "$(main gp show main:fixed) $(main gp cat-file -e main:broken 2>/dev/null || echo gone) $(get cleanup/gp.nux State)" 'it is merged'

# ---- rebase
bead add gp-4 'one' Run 'echo one >README' && bead add gp-5 'two' Run 'echo two >README' Resolve 'echo both >README'
a=$(sling gp-4 gp); b=$(sling gp-5 gp)
same 'nux slit' "$a $b" 'two at once'
until_true eval '[ "$(mailroom --as gp/witness inbox --type POLECAT_DONE --json | wc -l)" -eq 2 ]'
patrol gp/witness >/dev/null
same 'MERGE_READY nux,MERGE_READY slit' "$(mailroom --as gp/refinery inbox --type MERGE_READY --json | jq -r .subject | sort | paste -sd ,)" 'both may be merged'
patrol gp/refinery >/dev/null
loser=$(subjects gp/witness REWORK_REQUEST); loser=${loser#* }
mailroom --as gp/witness read "$(newest gp/witness REWORK_REQUEST)" --json --peek >out
same '["README"]' "$(jq -c '.fields["Conflict-Files"]|if type=="array" then . else split(", ") end' out)" 'one has a conflict'
says out 'git rebase origin/main' 'and is told how to go on'
if [ "$loser" = slit ]; then merged=both; else merged=one; fi
exits 0 'the polecat gets it' patrol gp/witness
check 'it rebases and is done again' has_mail gp/witness POLECAT_DONE
for who in gp/witness gp/refinery gp/witness; do patrol $who >/dev/null; done
same "$merged" "$(main gp show main:README)" 'and is merged'
same 'closed closed' "$(get cleanup/gp.nux State) $(get cleanup/gp.slit State)" 'both are cleaned up'

# ---- abandoned work
bead add gp-6 'a long one' Run "test -e $scratch/go || sleep 300; echo long >long"
sling gp-6 gp >/dev/null
until_true is_at gp-6 in_progress
sweep gp >out
same '' "$(cat out)" 'who lives is left alone'
killed gp nux
mkdir mute && printf '#!/bin/sh\ncase " $* " in *" send "*) exit 1 ;; esac\nexec "$DEVBIN" "$@"\n' >mute/mailroom && chmod +x mute/mailroom
exits 1 'a sweep that cannot send' env PATH="$scratch/mute:$PATH" sh "$example/sweep" "$town" gp
check 'is followed by one that begins again: the polecat that was killed is found' sweep gp
same 'open ' "$(bead status gp-6) $(get beads/gp-6 Assignee)" 'its bead is open and nobody has it'
check 'its worktree is gone' test ! -e "$town/rigs/gp/polecats/nux"
sweep gp >/dev/null
same 'RECOVERED_BEAD gp-6' "$(subjects deacon RECOVERED_BEAD)" 'the deacon is told once'
mailroom --as deacon read "$(newest deacon RECOVERED_BEAD)" --json --peek >out; says out 'reset to open with no assignee' 'in the words of the protocol'
exits 0 'and gives it out again' patrol deacon
until_true is_at gp-6 in_progress
same gp/polecats/nux "$(get beads/gp-6 Assignee)" 'the rig is found by the prefix'
killed gp nux; sweep gp >/dev/null
exits 3 'killed again, it waits' patrol deacon
says out 'cooldown' 'for five minutes'
exits 2 'by hand it is too soon, too' mailroom --as deacon gt deacon redispatch gp-6
touch go; later 6
exits 0 'then it goes out' patrol deacon
check 'and gets done' has_mail gp/witness POLECAT_DONE
exits 3 'a bead that is not open is skipped' mailroom --as deacon gt deacon redispatch gp-6 --cooldown 0s
for who in gp/witness gp/refinery gp/witness; do patrol $who >/dev/null; done
same long "$(main gp show main:long)" 'and merged'
rm go

# ---- not for ever
: >"$town/rigs/bd/names" # nobody is free there
bead add bd-1 'nobody does it'
mailroom --as bd/witness send deacon --type RECOVERED_BEAD --field Bead=bd-1 >/dev/null 2>&1
for minute in 12 18 24; do later $minute; patrol deacon >out; done
says out '^failed .*RECOVERED_BEAD' 'nobody takes it'
same 0 "$(how_many mayor REDISPATCH_FAILED)" 'three times'
later 30
exits 0 'after that' patrol deacon
same 'REDISPATCH_FAILED: bd-1 (3 attempts)' "$(subjects mayor REDISPATCH_FAILED)" 'the mayor knows'
exits 0 'once more' mailroom --as deacon gt deacon redispatch bd-1
says out 'escalated' 'that is said'
same 1 "$(how_many mayor REDISPATCH_FAILED)" 'and no second mail sent'
exits 1 'a bead of no rig' mailroom --as deacon gt deacon redispatch zz-1

bead add gp-7 'kills everybody' Run 'sleep 300'
printf 'a\nb\nc\n' >"$town/respawns/gp-7"
pole=$(sling gp-7 gp); until_true is_at gp-7 in_progress; killed gp "$pole"; sweep gp >/dev/null
same 'SPAWN_BLOCKED gp-7 (respawn limit reached) blocked' "$(subjects mayor SPAWN_BLOCKED) $(bead status gp-7)" 'a bead that lost three is not given out'
same 0 "$(subjects deacon RECOVERED_BEAD | grep -c gp-7)" 'and the deacon not told'
bead add gp-8 'done by others' Run 'sleep 300'
pole=$(sling gp-8 gp); until_true is_at gp-8 in_progress; killed gp "$pole"
commit 'touch others' 'done (gp-8)'
sweep gp >/dev/null
same 'closed 0' "$(bead status gp-8) $(subjects deacon RECOVERED_BEAD | grep -c gp-8)" 'what is on main already is closed'

# ---- a dirty worktree
bead add gp-9 'half' Run 'echo half >half; sleep 300'
pole=$(sling gp-9 gp); until_true test -e "$town/rigs/gp/polecats/$pole/half"; killed gp "$pole"
sweep gp >/dev/null; sweep gp >/dev/null
same "RECOVERY_NEEDED gp/$pole" "$(subjects deacon RECOVERY_NEEDED)" 'work that is not committed is reported, once'
mailroom --as deacon read "$(newest deacon RECOVERY_NEEDED)" --json --peek >out
same has_uncommitted "$(jq -r '.fields["Cleanup Status"]' out)" 'with what would be lost'
check 'nothing is cleaned up' test -e "$town/rigs/gp/polecats/$pole/half"
same "gp/polecats/$pole" "$(get beads/gp-9 Assignee)" 'and nothing given out'
exits 0 'the deacon saves it' patrol deacon
same half "$(main gp show "saved/gp-9/$pole:half")" 'on the origin'
check 'then the witness goes on' sweep gp
same 'open gone' "$(bead status gp-9) $(test -e "$town/rigs/gp/polecats/$pole" || echo gone)" 'bead open, worktree gone'
patrol deacon >/dev/null; until_true is_at gp-9 in_progress
same "saved/gp-9/$pole" "$(get beads/gp-9 Saved)" 'who has it next knows where it is'

# ---- reports that must not count
killed gp nux; rm -rf "$town/rigs/gp/polecats/nux/half"; sweep gp >/dev/null
bead add gp-10 'a pear' Run 'echo pear >>fruit; git add -A; git commit -qm early; git push -q origin HEAD; until test -e '"$scratch/pear"'; do sleep 0.05; done; echo pears >>fruit'
mailroom --as gp/polecats/nux gt done --issue gp-9 --branch polecat/nux/gp-9 >/dev/null
pole=$(sling gp-10 gp)
ready=$(how_many gp/refinery MERGE_READY)
exits 0 'a report from an earlier life' patrol gp/witness
says out '^set-aside .*POLECAT_DONE' 'is set aside'
same "$ready live" "$(how_many gp/refinery MERGE_READY) $(mailroom who | awk -v n="gp/polecats/$pole" '$1 == n { print $2 }')" 'nothing is merged, nobody ended'
mailroom --as gp/polecats/$pole gt done --issue gp-10 --branch "$(get rigs/gp/polecats/$pole.hook Branch)" >/dev/null
patrol gp/witness >/dev/null
same "$ready" "$(how_many gp/refinery MERGE_READY)" 'one that comes too early is not believed'
touch "$town/rigs/gp/polecats/$pole/left" && sed -i 's/^Status: .*/Status: closed/' "$town/beads/gp-10"
mailroom --as gp/polecats/$pole gt done --issue gp-10 --branch "$(get rigs/gp/polecats/$pole.hook Branch)" >/dev/null
patrol gp/witness >/dev/null
mailroom --as gp/polecats/$pole read "$(newest gp/polecats/$pole REWORK)" --json --peek >out
same "$ready has_uncommitted in_progress" "$(how_many gp/refinery MERGE_READY) $(jq -r .fields.Why out) $(bead status gp-10)" 'nor one with work that is not committed'
rm "$town/rigs/gp/polecats/$pole/left"
touch pear
until_true is_at gp-10 closed
has_mail gp/witness POLECAT_DONE
patrol gp/witness >/dev/null
tip=$(git -C "$town/rigs/gp/polecats/$pole" rev-parse HEAD)
mailroom --as gp/refinery send gp/witness --type MERGED --field Polecat="$pole" --field Branch="$(get rigs/gp/polecats/$pole.hook Branch)" --field Merge-Commit="$tip" >/dev/null 2>&1
exits 1 'MERGED for a commit that is not on main' patrol gp/witness
says out 'not on main: nothing is cleaned up' 'is not believed'
same 'merge-requested pears' "$(get "cleanup/gp.$pole" State) $(tail -n 1 "$town/rigs/gp/polecats/$pole/fruit")" 'and cleans up nothing'
exits 0 'once it is merged' patrol gp/refinery
exits 0 'both are' patrol gp/witness
same 'closed gone' "$(get "cleanup/gp.$pole" State) $(test -e "$town/rigs/gp/polecats/$pole" || echo gone)" 'cleaned up'

# ---- HELP
while IFS='|' read -r topic problem; do
	mailroom --as gp/polecats/nux send gp/witness --type HELP --field Topic="$topic" --field Problem="$problem" >/dev/null 2>&1
done <<-'CALLS'
	a leak|there is an exposed secret in the log
	build|segfault in the linker
	merge|waiting on the other branch
	parser|unclear what it should accept
	tests|no progress since noon
	docs|a word in the room is missing
CALLS
exits 0 'calls for help' patrol gp/witness
fwd() { mailroom --as "$1" inbox --json | jq -r 'select(.subject|startswith("[FWD]"))|"\(.subject) \(.priority)"' | sort | paste -sd ';'; }
same '[FWD][CRITICAL] HELP: a leak urgent' "$(fwd operator)" 'an emergency goes to the person in charge'
same '[FWD][HIGH] HELP: build high;[FWD][MEDIUM] HELP: docs normal;[FWD][MEDIUM] HELP: parser normal' "$(fwd deacon)" 'failures, decisions and the rest to the deacon'
same '[FWD][HIGH] HELP: merge high' "$(fwd mayor)" 'what is blocked to the mayor'
same '[FWD][MEDIUM] HELP: tests normal' "$(fwd gp/witness)" 'sessions to the witness'

# ---- second-order monitoring
later 0; patrol deacon >/dev/null # who was seen when is the disk's time
kill $deacon; wait $deacon 2>/dev/null
later 4
for rig in gp bd cd; do patrol $rig/witness >/dev/null & done; wait
same 0 "$(how_many mayor ALERT)" 'a deacon that is unseen for four minutes is no alert'
later 6
for rig in gp bd cd; do patrol $rig/witness >/dev/null & done; wait
for rig in gp bd cd; do patrol $rig/witness >/dev/null; done
same 'ALERT: deacon is not seen any more' "$(subjects mayor ALERT)" 'after more than five, three witnesses send one'

# ---- HANDOFF
id=$(mailroom --as mayor handoff -s 'the release' -m '## Next
tag it' 2>/dev/null)
patrol mayor >/dev/null
mailroom takeover mayor >/dev/null 2>&1
mailroom --as mayor check --inject >out
same "$id" "$(grep -o '01[0-9a-z]\{24\}' out | head -n 1)" 'a successor is shown the handoff first'
says out 'HANDOFF: the release' 'by its subject'
mailroom --as mayor read "$id" >out; says out 'tag it' 'and reads what is next'
finish
