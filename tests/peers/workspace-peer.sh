#!/bin/sh
# SPDX-License-Identifier: MIT
# workspace-peer.sh - an agent that follows the flows of the workspace mailbox format with test, sed, cp and rm, as their
# text says. Run it in the agent's workspace.
#
#	workspace-peer.sh send INBOX-FOLDER TEXT [CHANNEL]   prints the id
#	workspace-peer.sh reply ID TEXT [last]               "last": no further answer is wanted
#	workspace-peer.sh list
#	workspace-peer.sh body ID
set -eu
own=$(pwd)/.mailbox
field() { sed -n "s/^$2: //p" "$1" | head -n 1; }
# draft ID TYPE CHANNEL RECEIVER REPLY TEXT: the scratch file.
draft() {
	{
		printf -- '---\nREQUEST_ID: %s\nMESSAGE_TYPE: %s\n' "$1" "$2"
		[ -z "$3" ] || printf 'CHANNEL_ID: %s\n' "$3"
		printf 'RECEIVER_INBOX_PATH: %s\n' "$4"
		[ -z "$5" ] || printf 'REPLY_INBOX_PATH: %s\n' "$5"
		printf -- '---\n\n%s\n' "$6"
	} >"$own/scratch/$1"
}
case $1 in
send)
	id=$(tr -d - </proc/sys/kernel/random/uuid)
	test -d "$2"
	draft "$id" NEW "${4-}" "$2/$id" "$own/inbox/$id" "$3"
	cp "$own/scratch/$id" "$2/$id"
	echo "$id" ;;
reply)
	message=$own/inbox/$2
	receiver=$(field "$message" RECEIVER_INBOX_PATH) reply=$(field "$message" REPLY_INBOX_PATH) channel=$(field "$message" CHANNEL_ID)
	test -d "$(dirname "$reply")"
	[ "${4-}" = last ] && receiver=
	draft "$2" REPLY "$channel" "$reply" "$receiver" "$3"
	cp "$own/scratch/$2" "$reply"
	rm "$message" ;;
list) ls "$own/inbox" ;;
body) sed '1,/^---$/d' "$own/inbox/$2" | sed '1{/^$/d;}' ;;
esac
