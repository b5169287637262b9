/* SPDX-License-Identifier: MIT */
/*
 * nudge_show.c - handing nudges to whoever shows them. They are removed only after they were shown; until then the
 * lock keeps everybody else from showing them, and it goes with the process.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/nudge/nudge.h"
#include <stdlib.h>

struct entry {
	struct mr_nudge nudge;
	char name[NUDGE_NAME_LEN + 1];
};

struct mr_nudges {
	struct mr_room *room;
	char agent[MR_ADDRESS_MAX + 1];
	void *lock; /* NULL: only looking */
	struct entry *v;
	size_t n;
	unsigned refused;
	struct arena *own;
};

struct sender_search {
	const char *from;
	int64_t at_ms;
	bool found;
};

static bool
stop_at_sender(void *ctx, const struct mr_message *msg)
{
	struct sender_search *s = ctx;

	s->found = !(msg->flags & MR_SEEN) && ascii_caseeq(msg->from, s->from) && id_time_ms(msg->id) <= s->at_ms;
	return !s->found;
}

/* It said that there is mail, which was read or taken meanwhile. What came later has a nudge of its own, or none. */
static bool
is_settled(const struct mr_nudges *all, const struct mr_nudge *nudge)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
	struct sender_search s = { .from = nudge->from, .at_ms = nudge->at_ms };
	struct mr_error ignored = { 0 };

	return strcmp(nudge->kind, "mail") == 0 &&
	       office_scan(all->room, all->agent, &want, stop_at_sender, &s, &ignored) == MR_OK && !s.found;
}

static void
add_one(struct mr_nudges *all, const char *name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct entry *e = &all->v[all->n];
	struct mr_error ignored = { 0 };
	int64_t now = clock_now_ms();

	if (strlen(name) > NUDGE_NAME_LEN ||
	    all->room->driver->record_get(all->room, NUDGE, all->agent, name, &text, &ignored) != MR_OK ||
	    nudge_parse(buf_str(&text), &e->nudge, &all->own, &ignored) != MR_OK)
		return;
	if (e->nudge.expires_ms <= now || is_settled(all, &e->nudge)) {
		if (all->lock)
			nudge_drop(all->room, all->agent, name);
		return;
	}
	if (e->nudge.not_before_ms > now)
		return;
	(void)snprintf(e->name, sizeof e->name, "%s", name);
	all->n++;
}

static int
urgent_first(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int by_priority = (b->nudge.priority == MR_URGENT) - (a->nudge.priority == MR_URGENT);

	return by_priority ? by_priority : strcmp(a->name, b->name);
}

static enum mr_rc
read_all(struct mr_nudges *all, bool take, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	const struct room_driver *d = all->room->driver;
	enum mr_rc rc = nudge_names(all->room, all->agent, &names, err);

	if (rc != MR_OK || names.n == 0)
		return rc != MR_OK ? rc : mr_fail(err, MR_EMPTY, "no nudges for '%s'", all->agent);
	if (take) {
		rc = d->record_lock(all->room, NUDGE, all->agent, NUDGE_SHOWN, 0, &all->lock, err);
		if (rc != MR_OK)
			return rc;
		/* What another removed before we had the lock is gone when we read it. */
	}
	all->v = calloc(names.n, sizeof *all->v);
	if (!all->v)
		return mr_nomem(err);
	for (size_t i = 0; i < names.n; i++)
		add_one(all, names.v[i]);
	if (all->n == 0)
		return mr_fail(err, MR_EMPTY, "no nudges for '%s'", all->agent);
	qsort(all->v, all->n, sizeof *all->v, urgent_first);
	all->refused = nudge_refused(all->room, all->agent);
	return MR_OK;
}

static enum mr_rc
read_foreign(struct mr_nudges *all, struct mr_error *err)
{
	all->v = calloc(1, sizeof *all->v);
	if (!all->v)
		return mr_nomem(err);
	enum mr_rc rc = nudge_foreign_get(all->room, all->agent, &all->v[0].nudge, &all->own, err);

	all->n = rc == MR_OK ? 1 : 0;
	return rc;
}

enum mr_rc
mr_nudges_open(struct mr_room *room, const char *agent, bool take, struct mr_nudges **ret, struct mr_error *err)
{
	enum mr_rc rc = nudge_able(room, err);

	if (rc == MR_UNSUPPORTED)
		return mr_fail(err, MR_EMPTY, "no nudges for '%.160s'", agent);
	struct mr_nudges *all = calloc(1, sizeof *all);

	if (!all)
		return mr_nomem(err);
	all->room = room;
	text_join(all->agent, sizeof all->agent, agent, NULL);
	rc = ROOM_FACE_HAS(room, nudge_get) ? read_foreign(all, err) : read_all(all, take, err);
	if (rc == MR_OK)
		*ret = all;
	else
		mr_nudges_close(all);
	return rc;
}

size_t
mr_nudges_count(const struct mr_nudges *nudges)
{
	return nudges ? nudges->n : 0;
}

const struct mr_nudge *
mr_nudges_get(const struct mr_nudges *nudges, size_t i)
{
	return &nudges->v[i].nudge;
}

const char *
nudges_name(const struct mr_nudges *nudges, size_t i)
{
	return nudges->v[i].name;
}

unsigned
mr_nudges_refused(const struct mr_nudges *nudges)
{
	return nudges ? nudges->refused : 0;
}

enum mr_rc
mr_nudges_shown(struct mr_nudges *nudges, size_t n, struct mr_error *err)
{
	const struct room_driver *d = nudges->room->driver;

	if (n == 0)
		return MR_OK;
	if ((d->face && d->face->nudge_get))
		return nudge_foreign_seen(nudges->room, nudges->agent, &nudges->v[0].nudge, err);
	if (!nudges->lock)
		return mr_fail(err, MR_REFUSED, "these nudges were only looked at: open them to take them");
	for (size_t i = 0; i < n && i < nudges->n; i++) {
		enum mr_rc rc = d->record_drop(nudges->room, NUDGE, nudges->agent, nudges->v[i].name, err);

		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
	}
	nudge_refused_forget(nudges->room, nudges->agent, nudges->refused);
	nudges->refused = 0;
	return MR_OK;
}

void
mr_nudges_close(struct mr_nudges *nudges)
{
	if (!nudges)
		return;
	if (nudges->lock)
		nudges->room->driver->record_unlock(nudges->room, nudges->lock);
	arena_free(nudges->own);
	free(nudges->v);
	free(nudges);
}
