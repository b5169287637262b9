/* SPDX-License-Identifier: MIT */
/* current_task.c - the one message that an agent works on (Gas Town calls it the hook): a record of its id. The message
 * is pinned, so that only its own archiving removes it; until then it is the current task. */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

#define KIND "hook"
#define NAME "current"

/* Is the message still in the inbox? After it is archived there is no current task. */
static bool
is_there(struct mr_room *room, const char *agent, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	return id[0] && mr_fetch(room, agent, id, &msg, IGNORED) == MR_OK && (msg.folder & (MR_INBOX | MR_HELD));
}

enum mr_rc
mr_hook_set(struct mr_room *room, const struct mr_self *self, const char *id, bool force, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(record_done) struct record lines = { 0 };
	char full[MR_ID_LEN + 1], at[RFC3339_LEN + 1];

	TRY(office_not_fenced(room, self, err));
	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "hooks", err);
	TRY(mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD, full, err));
	/* Pinned first, so that the current task is never archived automatically. */
	TRY(mr_mark(room, self, full, MR_PINNED, 0, err));
	TRY(mr_flush(room, err));
	TRY(record_edit_begin(&e, room, KIND, self->agent, NAME, err));
	if (e.exists)
		(void)record_parse(buf_str(&e.text), &lines, IGNORED); /* an unreadable record counts as empty */
	const char *before = record_get(&lines, "Id");

	if (!force && before && strcmp(before, full) != 0 && is_there(room, self->agent, before))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is on the hook of '%s'\narchive it when it is done, or replace it with --force", before,
		    self->agent);
	time_rfc3339(clock_now_ms(), at);
	buf_clear(&e.text);
	buf_addf(&e.text, "Id: %s\nSince: %s\n", full, at);
	TRY(record_edit_save(&e, err));
	memcpy(ret_id, full, sizeof(full));
	return MR_OK;
}

enum mr_rc
mr_hook_get(struct mr_room *room, const char *agent, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	if (!ROOM_HAS(room, record_get))
		return room_lacks(room, "hooks", err);
	TRY(mr_unless(office_record(room, KIND, agent, NAME, &lines, err), MR_NOTFOUND, err));
	const char *id = record_get(&lines, "Id");
	if (!id || strlen(id) > MR_ID_LEN || !is_there(room, agent, id))
		return mr_fail(err, MR_EMPTY, "there is nothing on the hook of '%s'", agent);
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", id);
	return MR_OK;
}
