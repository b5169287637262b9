/* SPDX-License-Identifier: MIT */
/*
 * due.c - answers that were asked for by a time (send --by). The record is durable before the message goes
 * out: an answer can come, and drop it, the moment after. A record whose message never went out, or whose
 * answer came by another way (a mail client), is found out when its time is up.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

#define DUE "due"

enum mr_rc
due_put(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char by[RFC3339_LEN + 1];
	enum mr_rc rc;

	if (!ROOM_HAS(room, record_put))
		return office_lacks(room, "memory for answers that are due", err);
	time_rfc3339(msg->by_ms, by);
	rc = header_add(&text, "By", str_of(by), err);
	if (rc == MR_OK && msg->to.n > 0)
		rc = header_add(&text, "To", str_of(msg->to.v[0]), err);
	if (rc == MR_OK)
		rc = header_add(&text, "Subject", str_of(msg->subject), err);
	if (rc != MR_OK)
		return rc;
	if (!buf_ok(&text))
		return mr_nomem(err);
	return room->driver->record_put(room, DUE, sender, msg->id, buf_str(&text), err);
}

void
due_drop(struct mr_room *room, const char *sender, const char *id)
{
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(room, record_drop))
		(void)room->driver->record_drop(room, DUE, sender, id, &ignored);
}

/* ---- What is overdue ---- */

static bool
note_record(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

static void
note_place(void *ctx, const struct place_of *place)
{
	(void)place;
	*(bool *)ctx = true;
}

/* The copy in the sender's folder is not synced, so its absence proves nothing: ask for any copy. */
static bool
went_out(struct mr_room *room, const char *id)
{
	struct mr_error ignored = { 0 };
	bool exists = false;

	if (!ROOM_HAS(room, each_place) || room->driver->each_place(room, id, note_place, &exists, &ignored) != MR_OK)
		return true;
	return exists;
}

static bool
stop_at_answer(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	*(bool *)ctx = true;
	return false;
}

static bool
was_answered(struct mr_room *room, const char *agent, const char *id)
{
	struct mr_scan answers = { .filter = { .folders = MR_INBOX | MR_HELD, .reply_to = id }, .limit = 1 };
	struct mr_error ignored = { 0 };
	bool answered = false;

	(void)mr_scan(room, agent, &answers, stop_at_answer, &answered, &ignored);
	return answered;
}

/* One whose answer came, or that never went out, has done its duty and goes. */
static void
report_if_overdue(struct mr_room *room, const char *agent, const char *id, struct mr_str text, mr_due_fn *fn, void *ctx)
{
	mr_auto(record_done) struct record record = { 0 };
	struct mr_due due = { .to = "", .subject = "" };
	struct mr_error ignored = { 0 };
	const char *value;

	if (record_parse(text, &record, &ignored) != MR_OK)
		return;
	value = record_get(&record, "By");
	if (!value || !time_parse_rfc3339(str_of(value), &due.by_ms) || due.by_ms > clock_now_ms())
		return;
	if (!went_out(room, id) || was_answered(room, agent, id)) {
		due_drop(room, agent, id);
		return;
	}
	(void)snprintf(due.id, sizeof(due.id), "%s", id);
	if ((value = record_get(&record, "To")))
		due.to = value;
	if ((value = record_get(&record, "Subject")))
		due.subject = value;
	fn(ctx, &due);
}

enum mr_rc
due_each(struct mr_room *room, const char *sender, mr_due_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(room, record_each) || !ROOM_HAS(room, record_get))
		return MR_OK; /* nothing can be due where nothing can be asked for */
	rc = room->driver->record_each(room, DUE, sender, note_record, &ids, err);
	for (size_t i = 0; rc == MR_OK && i < ids.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		rc = room->driver->record_get(room, DUE, sender, ids.v[i], &text, err);
		if (rc == MR_NOTFOUND) { /* answered this very moment */
			rc = MR_OK;
			continue;
		}
		if (rc == MR_OK)
			report_if_overdue(room, sender, ids.v[i], buf_str(&text), fn, ctx);
	}
	return rc;
}

struct telling {
	struct mr_room *room;
	const char *agent;
	mr_due_fn *fn;
	void *ctx;
};

static void
tell_and_forget(void *ctx, const struct mr_due *due)
{
	const struct telling *t = ctx;

	t->fn(t->ctx, due);
	due_drop(t->room, t->agent, due->id);
}

enum mr_rc
mr_overdue(struct mr_room *room, const struct mr_self *self, mr_due_fn *fn, void *ctx, struct mr_error *err)
{
	struct telling t = { .room = room, .agent = self->agent, .fn = fn, .ctx = ctx };

	return due_each(room, self->agent, tell_and_forget, &t, err);
}
