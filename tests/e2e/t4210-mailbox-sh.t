# once
# share/mailroom/mailbox.sh: the functions of the mailbox skill over mailroom. Each thing that the skill's own tests look at, and what
# they do not: modes, order, reply_to, exit codes, limits, and that the lock really keeps others out.
. "$(dirname "$0")/../lib/tap.sh"
command -v bash >/dev/null || { echo '1..0 # SKIP no bash'; exit 0; }

shim=$top/share/mailroom/mailbox.sh peer=$top/tests/peers/handoff-peer.sh
export MAILROOM_COMMAND=$BIN MB_TEST_ROOT=$scratch/agent-mailbox AGENT_MAILBOX_ID=bob MB_NO_FSWATCH=1 MB_POLL_INTERVAL=1
unset AGENT_HARNESS CLAUDE_CODE MB_NO_FLOCK
root=$MB_TEST_ROOT
# m FUNCTION ARGUMENT...: in a bash that sourced the file, as the skill does
m() { bash -uc '. "$0"; "$@"' "$shim" "$@"; }
as() { AGENT_MAILBOX_ID=$1; shift; m "$@"; } # only in subshells and pipes
fresh() { rm -rf "$root"; }
files() { find "$1" -mindepth 1 -type f 2>/dev/null | wc -l | tr -d ' '; }
mode() { stat -c %a "$1"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# ---- sourcing ----
exits 0 'it can be sourced under set -u' bash -uc '. "$0"' "$shim"
same '' "$(cat out err)" 'and prints nothing'
same 12 "$(bash -c '. "$0"; declare -F' "$shim" | grep -c ' mb_')" 'it defines twelve functions'
same 0 "$(bash -c '. "$0"; declare -F' "$shim" | grep -vc ' mb_')" 'and no other'
exits 127 'without the command it fails' env MAILROOM_COMMAND=/no/such/command bash -uc '. "$0"; mb_names' "$shim"

# ---- root, dir, self ----
same "$root" "$(m mb_root)" 'the root is MB_TEST_ROOT'
same /tmp/agent-mailbox "$(unset MB_TEST_ROOT; m mb_root)" 'or the fixed one'
m mb_root >out; same "${#root}" "$(wc -c <out | tr -d ' ')" 'with no line end'
same "$root/x" "$(m mb_dir x)" 'dir is below it'
[ ! -e "$root" ] && ok 'asking makes nothing' || not_ok 'asking makes nothing'
same bob "$(m mb_resolve_self)" 'self is AGENT_MAILBOX_ID'
(unset AGENT_MAILBOX_ID; m mb_resolve_self) >out; says out '^[0-9a-f-]{36}$' 'or a new id'
(unset AGENT_MAILBOX_ID; m mb_resolve_self) >out2; cmp -s out out2 && not_ok 'each time another' || ok 'each time another'

# ---- mailboxes ----
exits 0 'ensure_inbox' m mb_ensure_inbox
same '' "$(cat out)" 'prints nothing'
for d in tmp inbox archive; do [ -d "$root/bob/$d" ] && ok "$d is there" || not_ok "$d is there"; done
same '700 700 700 700 700' "$(stat -c %a "$root" "$root/bob" "$root/bob/tmp" "$root/bob/inbox" "$root/bob/archive" | tr '\n' ' ' | sed 's/ $//')" 'all of it closed to others'
exits 0 'of somebody else' m mb_ensure_inbox worker-7
[ -d "$root/worker-7/inbox" ] && ok 'too' || not_ok 'too'
exits 4 'an id that leads out' m mb_ensure_inbox ../evil
[ ! -e "$scratch/evil" ] && ok 'makes nothing' || not_ok 'makes nothing'
m mb_list >out; same '' "$(cat out)" 'an empty inbox lists nothing'
exits 0 'nor does one that is not there' m mb_list nobody
same '' "$(cat out)" 'it prints nothing'
[ ! -e "$root/nobody" ] && ok 'and makes nothing' || not_ok 'and makes nothing'

# ---- send ----
fresh; printf 'use `auth` and $HOME\nno end' >body.md
exits 0 'send from a file' m mb_send alice body.md 'Auth flow: findings'
says out '^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}-auth-flow-findings\.md$' 'prints the name'
same 0 "$(wc -l <out | tr -d ' ')" 'with no line end'
letter=$(cat out)
[ -f "$root/alice/inbox/$letter" ] && ok 'which is in the inbox' || not_ok 'which is in the inbox'
same '1 0' "$(files "$root/alice/inbox") $(files "$root/alice/tmp")" 'one file there, none in tmp'
[ ! -e "$root/alice/archive" ] && ok 'no archive is made' || not_ok 'no archive is made'
same '600 700 700' "$(mode "$root/alice/inbox/$letter") $(mode "$root/alice/inbox") $(mode "$root/alice")" 'closed to others'
id=$(sed -n 's/^msg_id: //p' "$root/alice/inbox/$letter")
printf -- '---\nfrom: bob\nmsg_id: %s\nsubject: Auth flow: findings\nto: alice\n---\n\n' "$id" | cat - body.md >want
cmp want "$root/alice/inbox/$letter" && ok 'every byte as it should be' || not_ok 'every byte as it should be'
head -8 "$root/alice/inbox/$letter" >out; says out '^from: bob$' 'the first eight lines have from'
says out '^subject: Auth flow: findings$' 'the subject'; says out '^msg_id: [0-9a-f-]{36}$' 'and a msg_id'
reply=$(cd "$scratch" && AGENT_MAILBOX_ID=alice m mb_send bob - 're: Auth' "$id" <body.md)
same "reply_to: $id" "$(sed -n 5p "$root/bob/inbox/$reply")" 'an answer has reply_to in its place'
same 'to: bob' "$(sed -n 6p "$root/bob/inbox/$reply")" 'before to'
sed '1,8d' "$root/bob/inbox/$reply" >out; cmp out body.md && ok 'stdin arrives byte for byte' || not_ok 'stdin arrives byte for byte'
letter=$(m mb_send carol body.md </dev/null); case $letter in *-message.md) ok 'without a subject it is "message"' ;; *) not_ok "without a subject: $letter" ;; esac
same 'subject: message' "$(sed -n 4p "$root/carol/inbox/$letter")" 'in the file too'
letter=$(m mb_send carol body.md 'Grüße an Ömer'); case $letter in *-gr-e-an-mer.md) ok 'other letters are dashes' ;; *) not_ok "other letters: $letter" ;; esac
letter=$(m mb_send carol body.md '?!'); case $letter in *-.md) ok 'a slug may be empty' ;; *) not_ok "empty slug: $letter" ;; esac
letter=$(m mb_send carol body.md '--json'); same 'subject: --json' "$(sed -n 4p "$root/carol/inbox/$letter")" 'a subject is no option'
letter=$(m mb_send carol body.md "$(printf 'long %0300d' 7)"); [ ${#letter} -le 200 ] && [ -f "$root/carol/inbox/$letter" ] && ok "a long subject is cut in the name (${#letter})" || not_ok "long subject: ${#letter}"
same 315 "$(sed -n 4p "$root/carol/inbox/$letter" | wc -c | tr -d ' ')" 'and whole in the file'
: >empty; letter=$(m mb_send carol empty leer); same 7 "$(wc -l <"$root/carol/inbox/$letter" | tr -d ' ')" 'an empty body is a message'
fresh
exits 5 'a body file that is not there' m mb_send alice /no/such/file x
same '' "$(cat out)" 'prints no name'
exits 4 'a line end in the subject' m mb_send alice body.md "$(printf 'a\nfrom: evil')"
exits 4 'in reply_to' m mb_send alice body.md x "$(printf 'a\nb')"
exits 4 'a target that leads out' m mb_send ../../evil body.md x
exits 4 'the registry as a target' m mb_send registry.json body.md x
exits 2 'no body' m mb_send alice
same 0 "$(files "$root")" 'nothing of that left a file'
i=0; while [ $i -lt 12 ]; do echo $i | m mb_send zoe - same >/dev/null; i=$((i + 1)); done
same '0 1 2 3 4 5 6 7 8 9 10 11 ' "$(m mb_list zoe | while read -r f; do tail -n 1 "$f"; done | tr '\n' ' ')" 'list is in the order of sending, also within a second'

# ---- without an id of one's own ----
fresh
for call in 'mb_list' 'mb_send alice body.md x' 'mb_archive x.md' 'mb_wait 0' 'mb_ensure_inbox' 'mb_register X'; do
	( unset AGENT_MAILBOX_ID; m $call ) >out 2>err; code=$?
	[ $code -eq 4 ] && grep -q AGENT_MAILBOX_ID err && [ ! -e "$root" ] && ok "$call without AGENT_MAILBOX_ID fails and makes nothing" || { note <err; not_ok "$call without AGENT_MAILBOX_ID: $code"; }
done

# ---- list, archive ----
fresh; m mb_ensure_inbox; letter=$(m mb_send bob body.md one); echo x >"$root/bob/inbox/notes.txt"; ln -s /etc/passwd "$root/bob/inbox/l.md"; mkdir "$root/bob/inbox/d.md"
same "$root/bob/inbox/$letter" "$(m mb_list)" 'list has the path, and only mail'
exits 0 'archive by path' m mb_archive "$root/bob/inbox/$letter"
same '' "$(cat out)" 'prints nothing'
same '' "$(m mb_list)" 'the inbox is empty then'
[ -f "$root/bob/archive/$letter" ] && ok 'and the archive has it' || not_ok 'and the archive has it'
exits 0 'a second time' m mb_archive "$letter"
says err 'already archived' 'says so, and succeeds'
exits 0 'what never was' m mb_archive no-such.md
printf -- '---\nfrom: x\n---\n\nother\n' >"$root/bob/inbox/$letter"
exits 0 'another message of that name' m mb_archive "$letter"
same '2' "$(ls "$root/bob/archive" | grep -c "$letter")" 'is put beside it'
letter=$(m mb_send worker-7 body.md two); exits 0 'archive for another id' m mb_archive "$letter" worker-7
[ -f "$root/worker-7/archive/$letter" ] && ok 'makes the archive' || not_ok 'makes the archive'

# ---- wait ----
fresh
begun=$(now_ms); exits 1 'wait without mail' m mb_wait 0.4; took=$(($(now_ms) - begun))
same '' "$(cat out err)" 'says nothing'
[ $took -ge 390 ] && [ $took -lt 10000 ] && ok "fractions of a second count ($took ms)" || not_ok "took $took ms"
[ -d "$root/bob/inbox" ] && ok 'it made the inbox' || not_ok 'it made the inbox'
exits 1 'wait 0 looks once' m mb_wait 0
exits 4 'a time that is none' m mb_wait soon
( sleep 0.4; m mb_send bob body.md late >/dev/null ) & begun=$(now_ms)
exits 0 'mail ends it' m mb_wait 30; took=$(($(now_ms) - begun)); wait
[ $took -lt 10000 ] && ok "at once, not at the next poll ($took ms)" || not_ok "after $took ms"
( sleep 0.3; "$peer" send bob2 body.md late >/dev/null ) & begun=$(now_ms)
exits 0 'so does mail of another program' m mb_wait 30 bob2; took=$(($(now_ms) - begun)); wait
[ $took -lt 10000 ] && ok "at once ($took ms)" || not_ok "after $took ms"
exits 0 'with mail there it returns' m mb_wait 9

# ---- registry ----
fresh
same Bob "$(m mb_register Bob)" 'register prints the name'
m mb_register Bo2 >out; same 3 "$(wc -c <out | tr -d ' ')" 'with no line end'
check 'the registry is JSON' jq -e . "$root/registry.json"
says "$root/registry.json" '^  "Bob": \{"id":"bob","harness":"unknown","inbox":"'"$root"'/bob/inbox","pid":[0-9]+,"created":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"\},$' 'in the layout of the original'
same '600 600' "$(mode "$root/registry.json") $(mode "$root/.registry.lock")" 'closed to others'
exits 0 'a name that is taken' m mb_register Bob other
same collision "$(cat out)" 'is a collision'
same 2 "$(jq 'keys|length' "$root/registry.json")" 'and changes nothing'
same 'Bob Bo2 ' "$(m mb_names | tr '\n' ' ')" 'names are in the order of the file'
same "$(printf 'bob\t%s/bob/inbox' "$root")" "$(m mb_lookup Bob)" 'lookup'
exits 1 'lookup of nobody' m mb_lookup Nobody
same '' "$(cat out err)" 'says nothing'
same 'Bob Bo2 ' "$(m mb_whois bob | tr '\n' ' ')" 'whois has all names of an id'
exits 1 'whois of nobody' m mb_whois nobody
same '' "$(cat out err)" 'says nothing'
same Kid "$(m mb_register Kid child-1)" 'naming a child'
same 'child-1 Kid' "$(m mb_lookup Kid | cut -f1) $(m mb_whois child-1)" 'resolves both ways'
same '' "$(m mb_whois child-2)" 'an id without a name has none'
m mb_register '' child-2 >out; says out '^agent-[0-9a-f]{4}$' 'without a name one is made'
same 'Old Bob|Jürgen|bob' "$(m mb_register 'Old Bob')|$(m mb_register Jürgen)|$(m mb_register bob)" 'names may have spaces and other letters, and differ in case'
same "bob	$root/bob/inbox" "$(m mb_lookup 'Old Bob')" 'and are found'
for bad in 'a"b' 'a\b' "$(printf 'a\tb')" -x collision; do exits 4 "the name '$bad' is refused" m mb_register "$bad"; done
same claude "$(CLAUDE_CODE=1 m mb_register C >/dev/null; jq -r .C.harness "$root/registry.json")" 'the harness comes from CLAUDE_CODE'
same codex "$(AGENT_HARNESS=codex CLAUDE_CODE=1 m mb_register D >/dev/null; jq -r .D.harness "$root/registry.json")" 'or AGENT_HARNESS'
fresh; mkdir -m 755 "$root"; echo stray >"$root/body.md"
for i in 1 2 3 4 5; do m mb_register "p$i" "id$i" >/dev/null & done; wait
same 'p1 p2 p3 p4 p5 ' "$(m mb_names | sort | tr '\n' ' ')" 'five at once are all there'
check 'as JSON' jq -e . "$root/registry.json"
same 0 "$(find "$root" -name '*.tmp*' | wc -l | tr -d ' ')" 'no temporary file is left'

# ---- the lock keeps others out, both ways ----
exec 8>>"$root/.registry.lock"; flock 8; begun=$(now_ms)
( m mb_register late late >late.out; now_ms >late.end ) 8>&- &
sleep 0.5
same '' "$(m mb_lookup late)" 'while the shell has the lock we wait'
exec 8>&-; wait
same late "$(cat late.out)" 'then the name is taken'
[ $(($(cat late.end) - begun)) -ge 480 ] && ok 'after that' || not_ok "after $(($(cat late.end) - begun)) ms"
( MAILROOM_FAULT=delay:120000 MAILROOM_COMMAND=$DEVBIN m mb_register slow slow >/dev/null; : >slow.end ) &
tries=0; until ! flock -n "$root/.registry.lock" true || [ -e slow.end ] || [ $tries -gt 400 ]; do tries=$((tries + 1)); sleep 0.01; done
[ ! -e slow.end ] && ok 'while we have it the shell does not get it' || not_ok 'nobody saw us with the lock'
same 1 "$(flock "$root/.registry.lock" grep -c '"slow"' "$root/registry.json")" 'and when it does we have written'
wait
same 7 "$(m mb_names | wc -l | tr -d ' ')" 'nothing was lost'
finish
