# SPDX-License-Identifier: MIT
# mailbox.sh - the twelve functions of the mailbox skill, done by mailroom. Source it in bash (or any sh):
#
#	. mailbox.sh
#	export AGENT_MAILBOX_ID=$(mb_resolve_self)
#	mb_ensure_inbox; mb_register Ada
#	printf 'Hello.\n' | mb_send "$(mb_lookup Bob | cut -f1)" - 'A first word'
#
# The command is $MAILROOM_COMMAND, else mailroom; the mailboxes are in $MB_TEST_ROOT, else /tmp/agent-mailbox.
# Arguments, outputs and exit codes are those of the original but where that would lose mail or act for nobody:
# mailroom-handoff(5) has the list.

mb_root() { "${MAILROOM_COMMAND:-mailroom}" mb -- root "$@"; }
mb_dir() { "${MAILROOM_COMMAND:-mailroom}" mb -- dir "$@"; }
mb_resolve_self() { "${MAILROOM_COMMAND:-mailroom}" mb -- resolve_self "$@"; }
mb_ensure_inbox() { "${MAILROOM_COMMAND:-mailroom}" mb -- ensure_inbox "$@"; }
mb_send() { "${MAILROOM_COMMAND:-mailroom}" mb -- send "$@"; }
mb_list() { "${MAILROOM_COMMAND:-mailroom}" mb -- list "$@"; }
mb_archive() { "${MAILROOM_COMMAND:-mailroom}" mb -- archive "$@"; }
mb_wait() { "${MAILROOM_COMMAND:-mailroom}" mb -- wait "$@"; }
mb_register() { "${MAILROOM_COMMAND:-mailroom}" mb -- register "$@"; }
mb_lookup() { "${MAILROOM_COMMAND:-mailroom}" mb -- lookup "$@"; }
mb_names() { "${MAILROOM_COMMAND:-mailroom}" mb -- names "$@"; }
mb_whois() { "${MAILROOM_COMMAND:-mailroom}" mb -- whois "$@"; }
