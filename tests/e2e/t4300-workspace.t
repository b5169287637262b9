# Workspace mailboxes: beside a peer that follows the flows with cp and rm, and by hand as the manual says.
. "$(dirname "$0")/../lib/tap.sh"

peer=$top/tests/peers/workspace-peer.sh golden=$data/workspace
# as NAME ARGS...: mailroom in that agent's workspace; peer_as NAME ARGS...: the peer.
as() { who=$1; shift; "$BIN" --room "workspace:$scratch/$who" "$@" </dev/null; }
peer_as() { (cd "$1" && shift && sh "$peer" "$@"); }
yard() {
	rm -rf lead tester
	for name in lead tester; do mkdir -p $name/.mailbox/inbox $name/.mailbox/scratch; done
}
waiting() { ls "$1/.mailbox/inbox"; }
settled() { touch -d '5 seconds ago' "$1"/.mailbox/inbox/*; }

check 'the golden files are as they were' sh -c "cd '$golden' && sha256sum -c SHA256SUMS"

# ---- we ask, the peer answers, we ask further ----
yard
exits 0 'we ask' as lead send tester -m 'Run the parser tests.' --json
id=$(waiting tester)
same "$id" "$(waiting tester | grep -E '^[0-9a-f]{32}$')" 'one file, 32 hex digits'
check 'our copy is the same' cmp "tester/.mailbox/inbox/$id" "lead/.mailbox/scratch/$id"
same 'Run the parser tests.' "$(peer_as tester body "$id")" 'the peer reads it'
check 'and answers' peer_as tester reply "$id" 'Two failures.'
settled lead
same 'tester:Two failures.' "$(as lead inbox --json | jq -r '"\(.from):\(.subject)"')" 'we see who'
exits 0 'we ask further' as lead reply "$(as lead inbox --json | jq -r .id)" -m 'Which?'
same '' "$(waiting lead)" 'its answer is done'
same 'Which?' "$(peer_as tester body "$id")" 'the follow-up is there under the same id'
check 'the peer ends it' peer_as tester reply "$id" 't_header' last
settled lead
exits 0 'we read it' as lead drain
says out '^t_header' 'the last answer'
says out '^From: tester' 'is known to be from the one whom we asked'
same '' "$(waiting lead)" 'nothing waits'

# ---- the peer asks, we answer, it asks further, we answer ----
yard
id=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'Ready?' build-42)
settled tester
same "lead build-42" "$(as tester inbox --json | jq -r '"\(.from) \(.thread)"')" 'the peer asks'
exits 0 'we answer' as tester reply "$(as tester inbox --json | jq -r .id)" -m 'Yes.'
same 'Yes.' "$(peer_as lead body "$id")" 'it reads the answer'
same 'build-42' "$(sed -n 's/^CHANNEL_ID: //p' "lead/.mailbox/inbox/$id")" 'of the same channel'
check 'it asks further' peer_as lead reply "$id" 'Then go.'
settled tester
exits 0 'we read it' as tester drain
says out '^Then go' 'the follow-up came'
exits 0 'and answer what was read' as tester reply "$(as tester search 'Then go' --json | jq -r .id)" -m 'Gone.'
same 'Gone.' "$(peer_as lead body "$id")" 'it has that, too'

# ---- a question or an answer? ----
yard
id=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'Ready?' build-42)
settled tester
exits 0 'inbox' as tester inbox
says out 'Ready\?  \[NEW\]' 'says that it is a question'
same "$id NEW build-42 $scratch/tester/.mailbox/inbox/$id $scratch/lead/.mailbox/inbox/$id" \
	"$(as tester inbox --json | jq -r '.envelope | "\(.REQUEST_ID) \(.MESSAGE_TYPE) \(.CHANNEL_ID) \(.RECEIVER_INBOX_PATH) \(.REPLY_INBOX_PATH)"')" 'JSON has its id and its paths'
exits 0 'read' as tester read --peek "$(as tester inbox --json | jq -r .id)"
says out '^MESSAGE_TYPE: NEW' 'says so, too'
says out "^REQUEST_ID: $id" 'with the id'
says out "^REPLY_INBOX_PATH: $scratch/lead/.mailbox/inbox/$id" 'and where the answer goes'
as tester reply "$(as tester inbox --json | jq -r .id)" -m 'Yes.' >/dev/null
settled lead
exits 0 'inbox of the other' as lead inbox
says out 'Yes\.  \[REPLY\]' 'says that it is an answer'

# ---- channels ----
yard
ids=
for n in 1 2 3; do ids="$ids $(peer_as lead send "$scratch/tester/.mailbox/inbox" "question $n" chat)"; done
set -- $ids
i=9; for id in $ids; do touch -d "$i seconds ago" "tester/.mailbox/inbox/$id"; i=$((i - 1)); done
exits 0 'the newest is answered' as tester reply "$(as tester inbox --json | jq -r 'select(.subject == "question 3").id')" -m 'all of it'
same '"" "" all of it' "$(for id; do peer_as lead body "$id"; done | tr '\n' ' ' | sed 's/ $//')" 'the older get the empty answer'
same '' "$(waiting tester)" 'none is left'

# ---- channels: what others asked stays open ----
crowd() {
	yard
	rm -rf other; mkdir -p other/.mailbox/inbox other/.mailbox/scratch
	l1=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'lead 1' chat)
	o1=$(peer_as other send "$scratch/tester/.mailbox/inbox" 'other 1' chat)
	l2=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'lead 2' chat)
	i=9; for id in $l1 $o1 $l2; do touch -d "$i seconds ago" "tester/.mailbox/inbox/$id"; i=$((i - 1)); done
	as tester inbox --json >before
}
of() { jq -r "select(.subject == \"$1\").id" before; }
crowd
exits 0 'the newest of three is answered' as tester reply "$(of 'lead 2')" -m 'both' --json
same "$(of 'lead 1')" "$(jq -r '.superseded[]' out)" 'the older one of the same sender is superseded, and JSON says so'
says err "1 older question of the same sender and channel got an empty answer: $(of 'lead 1')" 'the text, too'
same '"" both' "$(for id in $l1 $l2; do peer_as lead body "$id"; done | tr '\n' ' ' | sed 's/ $//')" 'lead has both answers'
same "$o1 " "$(waiting tester; waiting other | tr '\n' ' ') " 'what the other asked still waits, without an answer'
exits 0 'it can be answered' timeout 60 "$BIN" --room "workspace:$scratch/tester" reply "$(of 'other 1')" -m 'yours' --json
same 'yours' "$(peer_as other body "$o1")" 'and has its answer'
same '[]' "$(jq -c .superseded out)" 'that ends nothing else'
exits 0 'what got the empty answer can be answered in earnest' timeout 60 "$BIN" --room "workspace:$scratch/tester" reply "$(of 'lead 1')" -m 'after all'
same 'after all' "$(peer_as lead body "$l1")" 'while the empty one waits, it takes its place'
same "$(printf '%s\n' "$l1" "$l2" | sort)" "$(ls -A lead/.mailbox/inbox)" 'and nothing else is left there'
crowd
exits 0 'reply --only' as tester reply "$(of 'lead 2')" --only -m 'this one' --json
same '[]' "$(jq -c .superseded out)" 'supersedes nothing'
same "$(printf '%s\n' "$l1" "$o1" | sort)" "$(waiting tester)" 'the other questions wait'
same "$l2" "$(waiting lead)" 'one answer went out'
rm -rf other

# ---- golden files are read ----
yard
cp "$golden/superseded-by-hand" lead/.mailbox/inbox/00112233445566778899aabbccddeeff
cp "$golden/new" lead/.mailbox/inbox/0f1e2d3c4b5a69788796a5b4c3d2e1f0
printf 'no front matter\n' >lead/.mailbox/inbox/broken
touch -d '5 seconds ago' lead/.mailbox/inbox/*
exits 0 'golden files' as lead inbox --json
cp out inbox
same '"" Run the parser tests and list the failures.' "$(jq -r .subject inbox | sort | tr '\n' ' ' | sed 's/ $//')" 'are read'
says err "skipped 'lead/.mailbox/inbox/broken'" 'and what is broken is told'
check 'and left alone' test -f lead/.mailbox/inbox/broken
same 'build-42 build-42' "$(jq -r .thread inbox | tr '\n' ' ' | sed 's/ $//')" 'the channel is the thread'

# ---- an older question that cannot be answered ----
yard
old=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'older' chat)
mkdir "lead/.mailbox/inbox/$old"
new=$(peer_as lead send "$scratch/tester/.mailbox/inbox" 'newer' chat)
touch -d '9 seconds ago' "tester/.mailbox/inbox/$old"; touch -d '5 seconds ago' "tester/.mailbox/inbox/$new"
exits 0 'the newest is answered all the same' as tester reply "$(as tester inbox --json | jq -r 'select(.subject == "newer").id')" -m 'here'
says err "1 older question of channel 'chat' was not answered" 'and what could not be is said'
same here "$(peer_as lead body "$new")" 'the answer is there'
check 'the older one still waits' test -f "tester/.mailbox/inbox/$old"

# ---- evidence ----
yard
id=$(as lead send tester -m 'Where am I?')
exits 0 'why' as lead why "$id" --json
same 'lead sent|tester unread|' "$(jq -r '"\(.agent) \(.state)"' out | sort | tr '\n' '|')" 'says who has it'
as tester drain >/dev/null
as lead why "$id" --json >out
same 'lead sent|tester read|' "$(jq -r '"\(.agent) \(.state)"' out | sort | tr '\n' '|')" 'and that it was read'
same "$(stat -f -c %T "$scratch" | sed 's,ext2/ext3,ext4,')" "$(as lead where --json | jq -r .storage.file_system)" 'the disk under it is known'
exits 0 'doctor' as lead doctor
says out 'storage' 'tells of it, too'

# ---- refusals ----
exits 4 'a priority is refused' as lead send tester --priority high -m x
exits 4 'scratch is not told' as lead send tester -m "see $scratch/lead/.mailbox/scratch/notes"
exits 5 'nobody' as lead send nobody -m x
check 'and nothing is made for nobody' test ! -e nobody
same '' "$(waiting tester)" 'nothing was sent'

# ---- who wants no answer ----
yard
printf -- '---\nREQUEST_ID: 88\nMESSAGE_TYPE: NEW\nREPLY_INBOX_PATH: \n---\n\nfor your information\n' >lead/.mailbox/inbox/88
settled lead
exits 4 'a message without a reply path' as lead reply "$(as lead inbox --json | jq -r .id)" -m 'but I want to'
says err "wants no answer: it has no REPLY_INBOX_PATH" 'is not answered, for that reason'
same 88 "$(waiting lead)" 'and stays'

# ---- a client without a workspace ----
yard
mkdir desk
id=$("$BIN" --room "workspace:$scratch/tester/.." send tester -m 'Any news?' --reply-path "$scratch/desk" </dev/null)
same "$scratch/desk/$(waiting tester)" "$(sed -n 's/^REPLY_INBOX_PATH: //p' tester/.mailbox/inbox/*)" 'a client asks'
settled tester
question=$(as tester inbox --json | jq -r .id)
exits 4 'its folder is not allowed' as tester reply "$question" -m 'None.'
says err 'reply-paths' 'and how to allow it is said'
check 'the question still waits' test -n "$(waiting tester)"
echo "$scratch/desk" >tester/.mailbox/reply-paths
exits 0 'allowed' as tester reply "$question" -m 'None.'
touch -d '5 seconds ago' desk/*
exits 0 'the client waits' "$BIN" --room "workspace:$scratch/tester/.." wait --id "$id" --timeout 5
says out '^None' 'and has the answer'
exits 5 'without a folder for the answer one must be somebody' "$BIN" --room "workspace:$scratch/tester/.." send tester -m x
rm -r desk

# ---- the answer goes to the very path that was named ----
yard
mkdir mailman
asks() { printf -- '---\nREQUEST_ID: %s\nMESSAGE_TYPE: NEW\nCHANNEL_ID: chat\nREPLY_INBOX_PATH: %s\n---\n\n%s?\n' "$1" "$2" "$1" >"tester/.mailbox/inbox/$1"; settled tester; }
asks q1 "$scratch/lead/.mailbox/inbox/other-name"
exits 0 'another name in an inbox' as tester reply "$(as tester inbox --json | jq -r .id)" -m 'here'
same 'other-name' "$(waiting lead)" 'is where the answer is'
same "$scratch/lead/.mailbox/inbox/other-name" "$(sed -n 's/^RECEIVER_INBOX_PATH: //p' lead/.mailbox/inbox/other-name)" 'and what it says'
same q1 "$(sed -n 's/^REQUEST_ID: //p' lead/.mailbox/inbox/other-name)" 'with the id of the question'
asks q2 "$scratch/mailman/reply.md"
exits 4 'a mailman' as tester reply "$(as tester inbox --json | jq -r .id)" -m 'no'
says err "hint: .*echo '$scratch/mailman' >>'$scratch/tester/.mailbox/reply-paths'" 'is refused with the one step that allows it'
sh -c "$(sed -n 's/.*hint:.*allow it: //p' err)"
exits 0 'after it' as tester reply "$(as tester inbox --json | jq -r .id)" -m 'news'
same 'reply.md' "$(ls -A mailman)" 'the mailman has the file that it named'
says mailman/reply.md '^news$' 'with the answer'
rm mailman/reply.md
asks q3 "$scratch/mailman/reply.md"; asks q4 "$scratch/mailman/reply.md"
touch -d '9 seconds ago' tester/.mailbox/inbox/q3
exits 0 'of two questions with one place for the answer' timeout 60 "$BIN" --room "workspace:$scratch/tester" reply "$(as tester inbox --json | jq -r 'select(.subject == "q4?").id')" -m 'q4'
same q3 "$(waiting tester)" 'the older one stays open'
says err "1 older question of channel 'chat' was not answered: .*another request, 'q4'" 'which is said, with the reason'
exits 4 'a place that has the answer to another request' timeout 5 "$BIN" --room "workspace:$scratch/tester" reply "$(as tester inbox --json | jq -r .id)" -m 'q3'
says err "a message of another request, 'q4', still waits as 'reply.md'" 'is said to have it, at once'
silent_about err 'same conversation' 'and it is called nothing else'
same q4 "$(sed -n 's/^REQUEST_ID: //p' mailman/reply.md)" 'it keeps it'
rm mailman/reply.md
exits 0 'when that was taken' as tester reply "$(as tester inbox --json | jq -r .id)" -m 'q3'
same q3 "$(sed -n 's/^REQUEST_ID: //p' mailman/reply.md)" 'it is answered'
printf -- '---\nREQUEST_ID: q9\nMESSAGE_TYPE: REPLY\nREPLY_INBOX_PATH: \n---\n\n""\n' >mailman/reply.md
asks q6 "$scratch/mailman/reply.md"
exits 4 'the empty answer to another request' timeout 5 "$BIN" --room "workspace:$scratch/tester" reply "$(as tester inbox --json | jq -r .id)" -m 'q6'
same q9 "$(sed -n 's/^REQUEST_ID: //p' mailman/reply.md)" 'is not written over either'
rm mailman/reply.md tester/.mailbox/inbox/q6
asks a "$scratch/mailman/a.md"; asks b "$scratch/mailman/b.md"; asks c "$scratch/mailman"
touch -d '9 seconds ago' tester/.mailbox/inbox/a; touch -d '8 seconds ago' tester/.mailbox/inbox/b
exits 0 'one mailman is one sender' as tester reply "$(as tester inbox --json | jq -r 'select(.subject == "c?").id')" -m 'all' --json
same '2' "$(jq '.superseded | length' out)" 'whatever the files for its answers are called'
same 'a.md:"" b.md:"" c:all' "$(cd mailman && for f in *; do echo "$f:$(tail -n1 "$f")"; done | tr '\n' ' ' | sed 's/ $//')" 'each has its own'
mkdir second
asks d "$scratch/mailman"; asks e "$scratch/second"
printf '%s\n' "$scratch/second" >>tester/.mailbox/reply-paths
touch -d '9 seconds ago' tester/.mailbox/inbox/d
exits 0 'two folders beside each other' as tester reply "$(as tester inbox --json | jq -r 'select(.subject == "e?").id')" -m 'x'
same d "$(waiting tester)" 'are two senders'
rm -r second tester/.mailbox/inbox/d
asks q5 "$scratch/mail'\$(touch evil)'/x"
exits 4 'a path that means something to a shell' as tester reply "$(as tester inbox --json | jq -r 'select(.subject == "q5?").id')" -m x
silent_about err 'echo' 'makes no line for one'
rm -r mailman

# ---- whatever name the file has; and a refusal says what is wrong with it ----
yard
mkdir mailman
echo "$scratch/mailman" >tester/.mailbox/reply-paths
only() { as tester inbox --json | jq -r .id; }
for dir in lead/.mailbox/inbox mailman; do
	for file in 'other name' 'antwört.md' "it's 1+1"; do
		asks q1 "$scratch/$dir/$file"
		exits 0 "an answer to $dir/$file" as tester reply "$(only)" -m 'here'
		same "$file" "$(ls -A "$dir")" 'is where it was wanted'
		same "$scratch/$dir/$file" "$(sed -n 's/^RECEIVER_INBOX_PATH: //p' "$dir/$file")" 'and what it says'
		rm "$dir/$file"
	done
	asks q2 "$scratch/$dir/.hidden"
	exits 4 "a hidden file in $dir" as tester reply "$(only)" -m no
	says err "'\\.hidden', whose name begins with a dot" 'is refused for its name'
	silent_about err 'reply-paths|not in an inbox' 'and not for its folder'
	rm tester/.mailbox/inbox/q2
done
asks q3 "$scratch/mailman/$(printf %0201d 7)"
exits 4 'a name that is too long' as tester reply "$(only)" -m no
says err 'longer than 200 bytes' 'is refused as such'
rm tester/.mailbox/inbox/q3
asks q4 "$scratch/mailman/../lead/.mailbox/inbox/q4"
exits 4 'a path with ..' as tester reply "$(only)" -m no
says err "has '\\.\\.' in it" 'is refused for that'
silent_about err 'absolute' 'and not called relative'
rm tester/.mailbox/inbox/q4
asks q5 "lead/.mailbox/inbox/q5"
exits 4 'a relative one' as tester reply "$(only)" -m no
says err 'is not an absolute path' 'is called so'
rm tester/.mailbox/inbox/q5
exits 4 'the folder of a client with ..' "$BIN" --room "workspace:$scratch/tester/.." send tester -m x --reply-path "$scratch/mailman/../lead"
says err "has '\\.\\.' in it" 'is refused for that, too'
rm -r mailman

# ---- by hand ----
yard
awk '/^\.Sh BY HAND/ { on = 1 } /^\.Sh DIFF/ { on = 0 } on && /^\.Bd/ { n++; w = 1; next } /^\.Ed/ { w = 0 } on && w { gsub(/\\e/, "\\"); print > ("block." n) }' "$top/man/mailroom-workspace.5"
check 'asking as the manual says' sh -eu block.1
settled tester
same 'lead' "$(as tester inbox --json | jq -r .from)" 'is seen'
check 'answering as the manual says' sh -eu block.2
settled lead
exits 0 'is seen' as lead drain
says out '^Two failures' 'too'
finish
