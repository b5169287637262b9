# once
# The example of docs/ADDING-A-ROOM.md: a kind of room that keeps mail in one mbox file, read only. Only test builds
# have it.
. "$(dirname "$0")/../lib/tap.sh"
mbox() { "$DEVBIN" --room "mbox:$PWD/letters" "$@" </dev/null >out 2>err; }

cat >letters <<'END'
From alice@example.org Thu Mar  5 10:30:00 2026
From: alice@example.org
To: letters@example.org
Subject: where we begin
Date: Thu, 5 Mar 2026 10:30:00 +0000
Message-ID: <one@example.org>

>From here on it is easy.
A needle is in this text.

From bob@example.org Thu Mar  5 11:30:00 2026
From: bob@example.org
To: letters@example.org
Subject: read before
Date: Thu, 5 Mar 2026 11:30:00 +0000
Status: RO
X-Status: F

The second.
END
cp letters before

check 'inbox lists the unread mail' mbox inbox --json
same 'where we begin' "$(jq -r .subject out)" 'which is the one without a status'
one=$(jq -r .id out)
check 'and all of it' mbox inbox --all --json
same '2 1' "$(jq -s -r '"\(length) \([.[]|select(.read)]|length)"' out)" 'of which one was read before'
check 'read shows a message' mbox read "$one" --json
same 'From here on it is easy.' "$(jq -r .body out | head -n 1)" 'without the mark before "From "'
same 'alice@example.org' "$(jq -r .from out)" 'and who wrote it'
check 'by the end of its id' mbox read "$(printf %s "$one" | tail -c 6)"
check 'search finds it by its text' mbox search needle --json
same "$one" "$(jq -r .id out)" 'and nothing else'
check 'the file is its owner'"'"'s, who is called like it' mbox who
says out '^letters ' 'and nobody else is there'

printf '\nFrom carol@example.org Thu Mar  5 12:30:00 2026\nFrom: carol@example.org\nSubject: third\nDate: Thu, 5 Mar 2026 12:30:00 +0000\n\nlate\n' >>letters
cat letters >grown
check 'mail that was appended is there' mbox inbox --json
same '2' "$(jq -s length out)" 'beside the first'
same "$one" "$(jq -s -r '[.[]|select(.subject == "where we begin")][0].id' out)" 'which has the same id'

exits 4 'nothing is delivered into it' mbox send letters -m 'no'
exits 4 'nothing is archived' mbox archive "$one"
check 'and the file is as it was' cmp letters grown
mkdir town && "$DEVBIN" init town --name town --sync none >/dev/null 2>&1; "$DEVBIN" --room town register bob >/dev/null 2>&1
check 'it can be imported into a room' "$DEVBIN" --room town import --from "mbox:$PWD/letters" --agent bob
same 3 "$("$DEVBIN" --room town --as bob inbox --all --json | wc -l | tr -d ' ')" 'with all its mail'
exits 5 'a missing file is said so' "$DEVBIN" --room "mbox:$PWD/nowhere" inbox
finish
