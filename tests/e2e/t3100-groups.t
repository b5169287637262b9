# Groups from the command line.
. "$(dirname "$0")/../lib/tap.sh"

room alice bob carol
exits 0 'no groups' mr group list
says out 'no groups' 'is said'
exits 0 'create' mr --as alice group create team alice bob
says out 'group:team' 'and how to send to it'
check 'it is a file of header lines' grep -qx 'Member: bob' .mailroom/groups/team
check 'that says who made it' grep -qx 'Created-By: alice' .mailroom/groups/team
exits 4 'a second one of that name' mr --as alice group create team
exits 4 'a bad name' mr --as alice group create Team
exits 0 'list' mr group list
says out '^team .*alice, bob' 'shows the members'
exits 0 'list --json' mr group list --json
same 'team alice alice,bob' "$(jq -r '"\(.name) \(.created_by) \(.members|join(","))"' out)" 'too'

exits 0 'add' mr group add team carol nobody
says out '^added carol to team' 'says so'
says err "'nobody' reaches nobody yet" 'and warns of a member nobody knows'
exits 0 'adding again' mr group add team carol --json
same false "$(jq .changed out)" 'changes nothing'
exits 0 'show' mr group show team
says out '^team: 4 members' 'shows the members'
says out 'reaches 3 recipients: alice, bob, carol' 'and whom they come to'
says err "member 'nobody'" 'and who is missing'
exits 0 'show with its prefix' mr group show group:team
says out '^team: 4 members' 'is the same'
exits 0 'show --json' mr group show team --json
same '4 3 1' "$(jq -r '"\(.members|length) \(.reaches|length) \(.trouble|length)"' out)" 'too'

exits 0 'send' mr --as alice send group:team -m 'to the team'
says err "member 'nobody' of group 'team': no agent" 'names the member who was not reached'
same '0 1 1' "$(unread alice) $(unread bob) $(unread carol)" 'the others got it, the sender did not'
exits 0 'send by the bare name' mr --as alice send team --json -m again
same 'bob,carol 1' "$(jq -r '"\(.to|join(",")) \(.trouble|length)"' out)" 'and --json'
exits 0 'remove' mr group remove team nobody bob
says out '^removed bob from team' 'says so'
exits 0 'removing again' mr group remove team bob
says out '^bob was not in team$' 'changes nothing'

mr --as alice group create a bob group:b >/dev/null 2>&1
mr --as alice group create b group:a carol >/dev/null 2>&1
exits 0 'a cycle' mr --as alice send a --json -m round
same 'bob,carol' "$(jq -r '.to|join(",")' out)" 'ends'
mr --as alice group create me alice >/dev/null 2>&1
exits 4 'a group of oneself' mr --as alice send me -m hi
says err 'nobody but you' 'reaches nobody'
mr --as alice group create none >/dev/null
exits 4 'an empty group' mr --as alice send bob none -m 'not even bob'
same '' "$(grep -rl 'not even bob' .mailroom/agents/*/new)" 'sends nothing'
exits 0 'show of an empty group' mr group show none
says err 'reaches nobody' 'says so'

exits 0 'delete' mr group delete b
exits 5 'deleting again' mr group delete b
exits 0 'a group that named it' mr --as alice send a -m hi
says err "member 'group:b' of group 'a': no group" 'goes on, and says so'
exits 5 'show of what is not there' mr group show b
exits 5 'adding to it' mr group add b bob
exits 2 'a wrong word' mr group make x
says err 'list, show, create' 'lists the words'
exits 2 'show of which' mr group show
exits 2 'add whom' mr group add team

# ---- many at once ----
mr --as alice group create crowd >/dev/null
i=0; while [ $i -lt 50 ]; do mr group add crowd "w$i" >/dev/null 2>&1 & i=$((i + 1)); done; wait
same 50 "$(grep -c '^Member: ' .mailroom/groups/crowd)" '50 processes join at once and none is lost'
# ---- many in one command ----
i=0; while [ $i -lt 3000 ]; do echo "m$i"; i=$((i + 1)); done >names
many() { "$BIN" "$@" <names; }
exits 0 'create from stdin' many --as alice group create fleet -
same 3000 "$(grep -c '^Member: ' .mailroom/groups/fleet)" 'takes a member a line'
same 21 "$(grep -c 'reach' err)" 'warns of the first twenty that nobody knows, and that there may be more'
exits 0 'again' many group add fleet - --json
same 'false 3000' "$(jq .changed out | sort | uniq -c | awk '{print $2, $1}')" 'changes nothing'
printf '\n bob \nbob\n\ncarol\n' >names
exits 0 'words and stdin' many group add fleet alice - alice
same '1 1 1' "$(for m in alice bob carol; do grep -cx "Member: $m" .mailroom/groups/fleet; done | paste -sd' ')" 'each member once'
says out '^alice was in fleet already' 'what is given twice is told twice'
same 'added alice to fleet' "$(head -n 1 out)" 'in the order in which it was given'
cp .mailroom/groups/fleet before
printf 'dora\nno such member\nemil\n' >names
exits 4 'a bad member among good ones' many group add fleet erna - franz
says err 'no such member' 'is named'
check 'and nothing was changed' cmp before .mailroom/groups/fleet
exits 4 'neither by a remove' many group remove fleet bob -
check 'of which one cannot be a member' cmp before .mailroom/groups/fleet
printf 'dora\0emil\n' >names
exits 4 'a NUL on stdin' many group add fleet -
check 'is refused' cmp before .mailroom/groups/fleet
printf '# by hand\nNote: stays\nMember: m7\n' >>.mailroom/groups/fleet
i=0; while [ $i -lt 3000 ]; do echo "m$i"; i=$((i + 1)); done >names
exits 0 'remove from stdin' many group remove fleet - m1 nobody
same 'm1 was not in fleet,nobody was not in fleet' "$(tail -n 2 out | paste -sd,)" 'each is told once'
same 'alice bob carol' "$(sed -n 's/^Member: //p' .mailroom/groups/fleet | sort | paste -sd' ')" 'takes them all out, also where one stands twice'
check 'lines of others stay' grep -qx 'Note: stays' .mailroom/groups/fleet
: >names
exits 0 'an empty stdin' many group add fleet -
same '' "$(cat out err)" 'adds nobody'
if strace -qq -o raw -- "$BIN" --version >/dev/null 2>&1; then
	i=0; while [ $i -lt 500 ]; do echo "m$i"; i=$((i + 1)); done >names
	strace -f -qq -e trace=rename,renameat,renameat2,linkat,fsync,fdatasync -o raw -- "$BIN" group add fleet - <names >out 2>err
	check 'many members are one change of the record' test "$(grep -c . raw)" -le 6
else
	skip 'many members are one change of the record' 'strace does not work here'
fi
exits 0 'doctor' mr doctor
says out '^0 problems' 'finds nothing wrong'
finish
