/* SPDX-License-Identifier: MIT */
/* hook.c - the one message that an agent works on (Gas Town's hook): a record of its id, and the message is pinned, so
 * that nothing but its own archiving takes it away. It is on the hook until then. */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

#define HOOK "hook"
#define CURRENT "current"

struct hooking {
	struct mr_room *room;
	const struct mr_self *self;
	const char *id;
	bool force;
};

static enum mr_rc
hook_read(struct mr_str text, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	enum mr_rc rc = record_parse(text, &lines, err);
	const char *id = rc == MR_OK ? record_get(&lines, "Id") : NULL;

	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", id ? id : "");
	return rc;
}

/* Is the message still in the inbox? Once it is archived the hook is free. */
static bool
is_there(struct mr_room *room, const char *agent, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };

	return id[0] && mr_fetch(room, agent, id, &msg, &ignored) == MR_OK && (msg.folder & (MR_INBOX | MR_HELD));
}

static enum mr_rc
put_on(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct hooking *h = ctx;
	char before[MR_ID_LEN + 1] = "", at[RFC3339_LEN + 1];

	if (exists && hook_read(buf_str(text), before, err) != MR_OK)
		before[0] = '\0'; /* what cannot be read holds nothing */
	*err = (struct mr_error){ 0 };
	if (!h->force && strcmp(before, h->id) != 0 && is_there(h->room, h->self->agent, before))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is on the hook of '%s'\narchive it when it is done, or replace it with --force", before,
		    h->self->agent);
	time_rfc3339(clock_now_ms(), at);
	buf_clear(text);
	buf_addf(text, "Id: %s\nSince: %s\n", h->id, at);
	return buf_ok(text) ? MR_OK : mr_nomem(err);
}

enum mr_rc
mr_hook_set(struct mr_room *room, const struct mr_self *self, const char *id, bool force, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	struct hooking hooking = { .room = room, .self = self, .id = full, .force = force };
	enum mr_rc rc = office_not_fenced(room, self, err);

	if (rc == MR_OK && !ROOM_HAS(room, record_change))
		return office_lacks(room, "hooks", err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD, full, err);
	/* Pinned first: what is on the hook is never cleared away, not even in between. */
	if (rc == MR_OK)
		rc = mr_mark(room, self, full, MR_PINNED, 0, err);
	if (rc == MR_OK)
		rc = mr_flush(room, err);
	if (rc == MR_OK)
		rc = room->driver->record_change(room, HOOK, self->agent, CURRENT, put_on, &hooking, err);
	if (rc == MR_OK)
		memcpy(ret_id, full, sizeof(full));
	return rc;
}

enum mr_rc
mr_hook_get(struct mr_room *room, const char *agent, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char id[MR_ID_LEN + 1] = "";

	if (!ROOM_HAS(room, record_get))
		return office_lacks(room, "hooks", err);
	enum mr_rc rc = room->driver->record_get(room, HOOK, agent, CURRENT, &text, err);

	if (rc == MR_OK)
		rc = hook_read(buf_str(&text), id, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (rc == MR_NOTFOUND || !is_there(room, agent, id))
		return mr_fail(err, MR_EMPTY, "there is nothing on the hook of '%s'", agent);
	memcpy(ret_id, id, sizeof(id));
	return MR_OK;
}
