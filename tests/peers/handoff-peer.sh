#!/bin/bash
# SPDX-License-Identifier: MIT
# handoff-peer.sh VERB [ARGUMENT...] - another program at the mailboxes of a handoff room, for the tests: behaves as
# mailroom-handoff(5) says of the original, its habits and weaknesses included. It renames over what is there, reads
# the registry line by line, drops the lines it does not know, and syncs nothing.
set -u
root=${MB_TEST_ROOT:-/tmp/agent-mailbox}
registry=$root/registry.json
entry_line='^[[:blank:]]*"(.*)": \{.*"id":"([^"]*)".*"inbox":"([^"]*)"'
some_line='^[[:blank:]]*(".*": \{.*)$'

me() { if [ -n "${AGENT_MAILBOX_ID:-}" ]; then printf %s "$AGENT_MAILBOX_ID"; else cat /proc/sys/kernel/random/uuid; fi; }
folders() { local id=$1; shift; (cd "$root" 2>/dev/null || mkdir -p "$root" && cd "$root" && for f; do mkdir -p -m 700 "$id/$f"; done); }

# each_entry FUNCTION: calls it with name, id and inbox of every line that counts as an entry.
each_entry() {
	local line
	[ -f "$registry" ] || return 0
	while IFS= read -r line || [ -n "$line" ]; do
		[[ $line =~ $entry_line ]] && "$1" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
	done <"$registry"
	return 0
}
wanted= found=1
print_name() { printf '%s\n' "$1"; }
if_named() { [ "$1" = "$wanted" ] && { printf '%s\t%s\n' "$2" "$3"; found=0; }; }
if_id() { [ "$2" = "$wanted" ] && { printf '%s\n' "$1"; found=0; }; }
mark_found() { [ "$1" = "$wanted" ] && found=0; }

slug() {
	local LC_ALL=C s=${1,,}
	s=${s//[^a-z0-9]/-}
	while [[ $s == *--* ]]; do s=${s//--/-}; done
	s=${s#-}; printf %s "${s%-}"
}

put() { # put TO FILE [SUBJECT] [REPLY_TO]
	local to=$1 file=$2 subject=${3:-message} id name
	id=$(cat /proc/sys/kernel/random/uuid)
	name=$(date -u +%Y%m%dT%H%M%SZ)-${id:0:8}-$(slug "$subject").md
	folders "$to" tmp inbox
	{
		printf -- '---\nfrom: %s\nmsg_id: %s\nsubject: %s\n' "$(me)" "$id" "$subject"
		if [ -n "${4:-}" ]; then printf 'reply_to: %s\n' "$4"; fi
		printf 'to: %s\n---\n\n' "$to"
		cat "$file"
	} >"$root/$to/tmp/$name"
	mv -f "$root/$to/tmp/$name" "$root/$to/inbox/$name"
	printf %s "$name"
}

rewrite() { # rewrite NAME ID: with the lock held
	local line kept=() i
	[ -f "$registry" ] || echo '{}' >"$registry"
	wanted=$1; each_entry mark_found
	if [ $found = 0 ]; then printf collision; return; fi
	while IFS= read -r line; do [[ $line =~ $some_line ]] && kept+=("${BASH_REMATCH[1]%,}"); done <"$registry"
	kept+=("$(printf '"%s": {"id":"%s","harness":"%s","inbox":"%s","pid":%d,"created":"%s"}' "$1" "$2" "${AGENT_HARNESS:-unknown}" \
		"$root/$2/inbox" $$ "$(date -u +%Y-%m-%dT%H:%M:%SZ)")")
	{
		echo '{'
		for i in "${!kept[@]}"; do
			if [ "$i" -lt $((${#kept[@]} - 1)) ]; then printf '  %s,\n' "${kept[i]}"; else printf '  %s\n' "${kept[i]}"; fi
		done
		echo '}'
	} >"$root/.registry.tmp.$$"
	mv -f "$root/.registry.tmp.$$" "$registry"
	printf %s "$1"
}

verb=$1; shift
case $verb in
resolve_self) me ;;
ensure_inbox) folders "${1:-$(me)}" tmp inbox archive ;;
send) put "$@" ;;
list) find "$root/${1:-$(me)}/inbox" -maxdepth 1 -type f -name '*.md' 2>/dev/null | sort ;;
archive)
	box=$root/${2:-$(me)} base=${1##*/}
	mkdir -p -m 700 "$box/archive"
	if [ -f "$box/inbox/$base" ]; then mv -f "$box/inbox/$base" "$box/archive/$base"; fi ;;
wait)
	id=${2:-$(me)} left=$((${1:-540} * 10))
	mkdir -p "$root/$id/inbox"
	while [ -z "$(find "$root/$id/inbox" -maxdepth 1 -type f -name '*.md')" ]; do
		[ $left -gt 0 ] || exit 1
		sleep 0.1; left=$((left - 1))
	done ;;
register)
	name=$1 id=${2:-$(me)}
	mkdir -p -m 700 "$root"
	exec 9>"$root/.registry.lock"
	flock 9
	rewrite "$name" "$id" ;;
lookup) wanted=$1; each_entry if_named; exit $found ;;
whois) wanted=$1; each_entry if_id; exit $found ;;
names) each_entry print_name ;;
prune) # the skill's recipe: jq, and no lock
	id=$("$0" lookup "$1" | cut -f1)
	rm -rf "${root:?}/${id:?}"
	jq --arg n "$1" 'del(.[$n])' "$registry" >"$registry.new" && mv "$registry.new" "$registry" ;;
parent) # handback: the sender of the first message
	file=$(grep -l '^subject: spawn:' "$root/$(me)"/archive/* "$root/$(me)"/inbox/* 2>/dev/null | head -n 1)
	[ -n "$file" ] && sed -n 's/^from: //p' "$file" | head -n 1 ;;
*) echo "handoff-peer: no verb $verb" >&2; exit 2 ;;
esac
