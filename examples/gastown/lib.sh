# SPDX-License-Identifier: MIT
# lib.sh - what the scripts of the town share: records, beads, polecats, and mail that is sent once.
#
# Everything that is known is a file of "Key: value" lines. A script may be killed between any two lines and be run
# again: each step looks whether it was done, or is mail with a key, of which the first one counts.
set -u

say() { echo "$*" >&2; } # the first line is in `mailroom patrol log`
die() { say "$*"; exit 1; }

# Names come out of messages and become parts of paths.
is_name() { case $1 in '' | [.-]* | *[!A-Za-z0-9._-]*) return 1 ;; esac; }
is_branch() { case $1 in '' | -*) return 1 ;; esac; git check-ref-format "refs/heads/$1"; }

# ---- Records ----
rec_get() { sed -n "s/^$2: //p" "$1" 2>/dev/null | head -n 1; }
# rec_set FILE [KEY VALUE]...: all of them or none.
rec_set() { ( flock 9 && rec_write "$@" ) 9>"$town/.lock"; }
# rec_set_if FILE KEY VALUE [KEY VALUE]...: only while KEY is VALUE; of several that try, one wins.
rec_set_if() { (
	flock 9 || exit 1
	file=$1
	[ "$(rec_get "$file" "$2")" = "$3" ] || exit 1
	shift 3
	rec_write "$file" "$@"
) 9>"$town/.lock"; }
rec_write() {
	file=$1; shift
	[ ! -e "$file" ] || cat "$file" >"$file.new" || return 1
	[ -e "$file" ] || : >"$file.new" || return 1
	while [ $# -gt 0 ]; do
		{ grep -v "^$1: " "$file.new"; printf '%s: %s\n' "$1" "$2"; } >"$file.newer"
		mv "$file.newer" "$file.new" || return 1
		shift 2
	done
	sync "$file.new" && mv "$file.new" "$file"
}

# ---- Where things are ----
bead() { echo "$town/beads/$1"; }                       # Status, Assignee, Title, Run ...
tree() { echo "$town/rigs/$1/polecats/$2"; }            # tree RIG POLECAT: its worktree
hook() { echo "$town/rigs/$1/polecats/$2.hook"; }       # what it works on, while it has a worktree
cleanup() { echo "$town/cleanup/$1.$2"; }               # how far its branch is
refinery() { echo "$town/rigs/$1/refinery"; }
fetch() { git -C "$(refinery "$1")" fetch -q --prune origin; }
is_on_main() { git -C "$(refinery "$1")" merge-base --is-ancestor "$2" origin/main 2>/dev/null; }

# ---- Handlers ----
# begin TOWN: ends the script at once if this message was done with. Sets town, me, rig.
begin() {
	town=$1 me=$MAILROOM_AGENT rig=${MAILROOM_AGENT%%/*}
	seen=$town/seen/$(printf %s "$me" | tr / .)/$MAILROOM_ID
	if [ -e "$seen" ]; then exit 0; fi
}
finish() { # finish TEXT: done with this message, for ever
	mkdir -p "${seen%/*}" && : >"$seen" || exit 1
	say "$*"
	exit 0
}
# post KEY TO TYPE [NAME=VALUE]...: sent once, however often it is said; so it must say the same each time.
post() {
	key=$1 to=$2 type=$3 count=$(($# - 3)); shift 3
	for value; do set -- "$@" --field "$value"; done
	shift $count
	mailroom --as "$me" send "$to" --key "$key" --type "$type" "$@" </dev/null >/dev/null
}

# ---- Polecats ----
# live, gone, never as the room sees its process; unknown when it cannot be asked: then nothing may be taken from it
presence() { # presence RIG NAME
	all=$(mailroom who) || { echo unknown; return; }
	printf '%s\n' "$all" | awk -v name="$1/polecats/$2" '$1 == name { state = $2 } END { print state ? state : "never" }'
}
is_gone() { case $(presence "$1" "$2") in gone | never) ;; *) return 1 ;; esac; }
# It has reported and only waits: a patrol can be killed at any time.
end_polecat() { # end_polecat RIG NAME
	pid=$(rec_get "$(hook "$1" "$2")" Pid) tries=0
	while [ $((tries += 1)) -le 40 ]; do
		case $(presence "$1" "$2") in gone | never) return 0 ;; live) ;; *) return 1 ;; esac
		[ $tries -gt 1 ] || [ -z "$pid" ] || kill -s KILL -- "-$pid" 2>/dev/null
		sleep 0.05
	done
	return 1
}
# What would be lost with the worktree; nothing: it may go. Fetch first.
unsaved() { # unsaved RIG NAME
	[ -d "$(tree "$1" "$2")" ] || return 0
	branch=$(rec_get "$(hook "$1" "$2")" Branch)
	( cd "$(tree "$1" "$2")" && changes=$(git status --porcelain) && stashes=$(git stash list) &&
		commits=$(git rev-list HEAD --not --remotes=origin) || { echo unknown; exit; }
	if [ -n "$changes" ]; then echo has_uncommitted
	elif printf '%s\n' "$stashes" | grep -qF " on $branch: "; then echo has_stash
	elif [ -n "$commits" ]; then echo has_unpushed; fi )
}
# Takes the worktree away; git refuses when something in it is not committed.
remove_tree() { # remove_tree RIG NAME
	[ ! -d "$(tree "$1" "$2")" ] || git -C "$(refinery "$1")" worktree remove "$(tree "$1" "$2")" || return 1
	git -C "$(refinery "$1")" branch -q -D "$(rec_get "$(hook "$1" "$2")" Branch)" 2>/dev/null
	return 0
}
