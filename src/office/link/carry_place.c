/* SPDX-License-Identifier: MIT */
/*
 * carry_place.c - the place in our threads of a message that comes from another room: which of ours it answers. Once
 * found it is written down, before the message is delivered: see carry_in.c.
 */
#include "base/id.h"
#include "office/link/arrival.h"

/* ---- Which message of ours does it answer ---- */

static bool
is_reply_subject(const char *subject)
{
	return str_caseeq((struct mr_str){ subject, strlen(subject) < 3 ? 0 : 3 }, STR("Re:"));
}

/* Formats without references: the newest message to that agent with its subject, else the newest that he has not
 * answered. */
static const struct carried_line *
guess_answered(const struct arrival *a, const struct memory *m)
{
	bool knows_threads = a->c->there->driver->abilities & ROOM_THREADS;
	const struct carried_line *open = NULL;
	char subject[17];

	if (knows_threads && !is_reply_subject(a->msg.subject))
		return NULL;
	memory_subject(a->msg.subject, subject);
	for (size_t i = m->n; i > 0; i--) {
		const struct carried_line *l = &m->v[i - 1];

		if (l->state == CARRIED_GOT)
			continue;
		if (strcmp(l->subject, subject) == 0)
			return l;
		if (!open && !l->answered)
			open = l;
	}
	return knows_threads ? NULL : open;
}

static const struct carried_line *
find_thread(const struct memory *m, const char *there_thread)
{
	for (size_t i = m->n; i > 0 && *there_thread; i--)
		if (strcmp(m->v[i - 1].there_thread, there_thread) == 0)
			return &m->v[i - 1];
	return NULL;
}

static bool
starts_thread(const struct arrival *a)
{
	const char *spoken = mr_message_header(&a->msg, "Message-ID");

	return strcmp(a->msg.thread, a->msg.id) == 0 || (spoken && strcmp(a->msg.thread, spoken) == 0);
}

struct looking {
	struct arrival *a;
	bool found;
};

/* An answer may come from another than the one who was asked. */
static enum mr_rc
look_elsewhere(void *ctx, const struct memory *m, struct mr_error *err)
{
	struct looking *looking = ctx;
	struct arrival *a = looking->a;
	const struct carried_line *l = NULL;

	if (!looking->found && strcmp(m->local, a->local) == 0)
		l = memory_by_there(m, a->msg.reply_to);
	if (!l)
		return MR_OK;
	looking->found = true;
	(void)snprintf(a->answers, sizeof(a->answers), "%s", l->id);
	a->carried.thread = arena_dup(&a->own, str_of(l->thread));
	return a->carried.thread ? MR_OK : mr_nomem(err);
}

static enum mr_rc
place_in_thread(struct arrival *a, const struct memory *m, struct mr_error *err)
{
	const struct carried_line *l = memory_by_there(m, a->msg.reply_to), *same;
	struct looking looking = { .a = a };
	enum mr_rc rc = MR_OK;

	a->carried.thread = starts_thread(a) ? "" : a->msg.thread;
	if (!l && *a->msg.reply_to)
		rc = memory_each(a->c->room, a->c->link.name, look_elsewhere, &looking, err);
	if (rc != MR_OK || looking.found) {
		a->carried.reply_to = a->answers;
		return rc;
	}
	if (!l && !*a->msg.reply_to)
		l = guess_answered(a, m);
	if (!l) {
		same = find_thread(m, a->carried.thread);
		if (same)
			a->carried.thread = arena_dup(&a->own, str_of(same->thread));
		return a->carried.thread ? MR_OK : mr_nomem(err);
	}
	(void)snprintf(a->answers, sizeof(a->answers), "%s", l->id);
	a->carried.reply_to = a->answers;
	a->carried.thread = arena_dup(&a->own, str_of(*l->thread ? l->thread : l->id));
	return a->carried.thread ? MR_OK : mr_nomem(err);
}

/* ---- The record of a place once found ---- */

#define PLACE_PREFIX "in-"

static void
place_name(const char *id, const char *proxy, char ret[64])
{
	char hash[65];

	sha256_hex(str_of(proxy), hash);
	(void)snprintf(ret, 64, PLACE_PREFIX "%s-%.16s", id, hash);
}

static void
record_name(const struct arrival *a, char ret[64])
{
	place_name(a->msg.id, a->proxy, ret);
}

static bool
load_place(struct arrival *a)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct mr_room *room = a->c->room;
	struct mr_error ignored = { 0 };
	const char *answers, *thread;
	char name[64];

	record_name(a, name);
	if (room->driver->record_get(room, CARRYING_KIND, a->c->link.name, name, &text, &ignored) != MR_OK ||
	    record_parse(buf_str(&text), &lines, &ignored) != MR_OK || !record_get(&lines, "Arrived"))
		return false;
	answers = record_get(&lines, "Answers");
	thread = record_get(&lines, "Thread");
	(void)snprintf(a->answers, sizeof(a->answers), "%s", answers ? answers : "");
	a->carried.reply_to = a->answers;
	a->carried.thread = arena_dup(&a->own, str_of(thread ? thread : ""));
	return a->carried.thread != NULL;
}

static enum mr_rc
save_place(struct arrival *a, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_room *room = a->c->room;
	char name[64];

	record_name(a, name);
	buf_addf(&text, "Arrived: %s\n", a->from);
	if (*a->answers)
		buf_addf(&text, "Answers: %s\n", a->answers);
	if (*a->carried.thread)
		buf_addf(&text, "Thread: %s\n", a->carried.thread);
	if (!buf_ok(&text))
		return mr_nomem(err);
	return room->driver->record_put(room, CARRYING_KIND, a->c->link.name, name, buf_str(&text), err);
}

enum mr_rc
arrival_place(struct arrival *a, const struct memory *m, struct mr_error *err)
{
	enum mr_rc rc;

	if (load_place(a))
		return MR_OK;
	rc = place_in_thread(a, m, err);
	return rc == MR_OK ? save_place(a, err) : rc;
}

void
arrival_placed(struct arrival *a)
{
	struct mr_error ignored = { 0 };
	char name[64];

	record_name(a, name);
	(void)a->c->room->driver->record_drop(a->c->room, CARRYING_KIND, a->c->link.name, name, &ignored);
}

/* ---- Leftovers of a kill between the mark and the end of the record ---- */

static bool
note_leftover(void *ctx, const char *name)
{
	return !str_starts(str_of(name), PLACE_PREFIX) || names_add(ctx, str_of(name));
}

/* Is that message still waiting in the mailbox that the record was made for? */
static bool
is_waiting(struct carrier *c, const char *name)
{
	char id[MR_ID_LEN + 1], made[64];

	(void)snprintf(id, sizeof(id), "%s", name + sizeof(PLACE_PREFIX) - 1);
	for (size_t i = 0; i < c->link.names_n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };
		const char *proxy = c->link.names[i].foreign;

		place_name(id, proxy, made);
		if (strcmp(made, name) != 0)
			continue;
		enum mr_rc rc = c->there->driver->fetch(c->there, proxy, id, MR_INBOX, SCAN_NAMES, &msg, &ignored);

		return rc == MR_OK ? !(msg.flags & MR_SEEN) : rc != MR_NOTFOUND;
	}
	return false;
}

void
arrival_tidy(struct carrier *c)
{
	struct mr_room *room = c->room;
	struct mr_names names = { 0 };
	struct mr_error ignored = { 0 };

	(void)room->driver->record_each(room, CARRYING_KIND, c->link.name, note_leftover, &names, &ignored);
	for (size_t i = 0; i < names.n; i++)
		if (!is_waiting(c, names.v[i]))
			(void)room->driver->record_drop(room, CARRYING_KIND, c->link.name, names.v[i], &ignored);
	mr_names_done(&names);
}
