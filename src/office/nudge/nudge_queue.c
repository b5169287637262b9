/* SPDX-License-Identifier: MIT */
/*
 * nudge_queue.c - the nudges that wait for an agent, a record each. Senders are ordered by the change of one record
 * beside them, which also counts those who found the queue full, so that the agent learns of it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/nudge/nudge.h"
#include <inttypes.h>

#define STATE_KIND "nudge-state"
#define STATE_NAME "state"
#define DEPTH 50
#define URGENT_EXTRA 10 /* places that only urgent ones get */
#define NORMAL_TTL_MS ((int64_t)30 * 60 * 1000)
#define URGENT_TTL_MS ((int64_t)2 * 3600 * 1000)
#define STRANGE_MS ((int64_t)24 * 3600 * 1000) /* what is no nudge is removed after that long */

enum mr_rc
nudge_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if ((d->face && d->face->nudge_put) ||
	    (DRIVER_HAS(d, record_put) && DRIVER_HAS(d, record_each) && DRIVER_HAS(d, record_lock)))
		return MR_OK;
	(void)office_lacks(room, "nudges", err);
	return mr_hint(err, "send mail instead: mailroom send");
}

/* ---- Settings ---- */

static int64_t
ttl_of(const struct mr_room *room, enum mr_priority priority)
{
	bool urgent = priority == MR_URGENT;
	const char *set = record_get(&room->settings, urgent ? "Nudge-Urgent-TTL" : "Nudge-TTL");
	int64_t ms;

	if (set && duration_parse(str_of(set), &ms) && ms > 0)
		return ms;
	return urgent ? URGENT_TTL_MS : NORMAL_TTL_MS;
}

static size_t
depth_of(const struct mr_room *room, enum mr_priority priority)
{
	int64_t depth = record_int(&room->settings, "Nudge-Depth", DEPTH);

	return (size_t)(depth > 0 ? depth : DEPTH) + (priority == MR_URGENT ? URGENT_EXTRA : 0);
}

/* ---- What is there ---- */

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
nudge_names(struct mr_room *room, const char *agent, struct mr_names *ret, struct mr_error *err)
{
	if (!ROOM_HAS(room, record_each))
		return MR_OK;
	return room->driver->record_each(room, NUDGE, agent, note_name, ret, err);
}

void
nudge_drop(struct mr_room *room, const char *agent, const char *name)
{
	struct mr_error ignored = { 0 };

	(void)room->driver->record_drop(room, NUDGE, agent, name, &ignored);
}

bool
nudge_waits(struct mr_room *room, const char *agent, const char *name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	return room->driver->record_get(room, NUDGE, agent, name, &text, &ignored) != MR_NOTFOUND;
}

bool
nudge_any(struct mr_room *room, const char *agent)
{
	return nudge_any_but(room, agent, &(struct mr_names){ 0 });
}

bool
nudge_any_but(struct mr_room *room, const char *agent, const struct mr_names *names)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error ignored = { 0 };
	bool any = false;

	if (mr_nudges_open(room, agent, false, &nudges, &ignored) == MR_OK)
		for (size_t i = 0; i < mr_nudges_count(nudges) && !any; i++)
			any = !names_has(names, nudges_name(nudges, i));
	mr_nudges_close(nudges);
	return any;
}

/* ---- How many were refused ---- */

static unsigned
refused_in(struct mr_str text)
{
	mr_auto(record_done) struct record lines = { 0 };
	struct mr_error ignored = { 0 };
	int64_t n = 0;

	if (record_parse(text, &lines, &ignored) == MR_OK)
		n = record_int(&lines, "Refused", 0);
	return n > 0 && n < INT32_MAX ? (unsigned)n : 0;
}

unsigned
nudge_refused(struct mr_room *room, const char *agent)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (room->driver->record_get(room, STATE_KIND, agent, STATE_NAME, &text, &ignored) != MR_OK)
		return 0;
	return refused_in(buf_str(&text));
}

static enum mr_rc
forget(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const unsigned *n = ctx;
	unsigned refused = refused_in(buf_str(text));

	(void)exists;
	(void)err;
	buf_clear(text);
	buf_addf(text, "Refused: %u\n", refused > *n ? refused - *n : 0);
	return MR_OK;
}

void
nudge_refused_forget(struct mr_room *room, const char *agent, unsigned n)
{
	struct mr_error ignored = { 0 };

	if (n > 0)
		(void)room_record_change(room, STATE_KIND, agent, STATE_NAME, forget, &n, &ignored);
}

/* ---- One more ---- */

struct adding {
	struct mr_room *room;
	const char *agent;
	struct mr_nudge nudge;
	char name[NUDGE_NAME_LEN + 1];
	bool coalesced, full;
	size_t waiting;
};

/* The same words, or another message from the same sender: one line in the agent's context is enough for both. */
static bool
is_same(const struct mr_nudge *a, const struct mr_nudge *b)
{
	bool mail = strcmp(a->kind, "mail") == 0;

	return strcmp(a->from, b->from) == 0 && strcmp(a->kind, b->kind) == 0 && strcmp(a->thread, b->thread) == 0 &&
	       a->priority == b->priority && a->not_before_ms == b->not_before_ms &&
	       (mail || strcmp(a->text, b->text) == 0);
}

static enum mr_rc
put(struct adding *a, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(nudge_write(&a->nudge, &text, err));
	return a->room->driver->record_put(a->room, NUDGE, a->agent, a->name, buf_str(&text), err);
}

/* Counts those that still count, removes the others, and finds the one that says the same. */
static void
look_at(struct adding *a, const char *name, struct mr_nudge *same, char *same_name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct arena *own = NULL;
	struct mr_nudge n = { 0 };
	struct mr_error ignored = { 0 };
	int64_t now = clock_now_ms();
	enum mr_rc rc = a->room->driver->record_get(a->room, NUDGE, a->agent, name, &text, &ignored);

	if (rc == MR_OK)
		rc = nudge_parse(buf_str(&text), &n, &own, &ignored);
	if (rc == MR_OK && n.expires_ms <= now)
		nudge_drop(a->room, a->agent, name);
	else if (rc == MR_CORRUPT && nudge_name_ms(name) + STRANGE_MS < now)
		nudge_drop(a->room, a->agent, name);
	else if (rc != MR_NOTFOUND)
		a->waiting++;
	if (rc == MR_OK && n.expires_ms > now && is_same(&n, &a->nudge)) {
		same->times = n.times;
		same->expires_ms = n.expires_ms;
		(void)snprintf(same_name, NUDGE_NAME_LEN + 1, "%s", name);
	}
	arena_free(own);
}

/* Only while nobody shows it: whoever does would remove what he has not shown. */
static bool
coalesce(struct adding *a, const struct mr_nudge *same, const char *same_name, enum mr_rc *rc, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	void *lock = NULL;

	if (!same_name[0] ||
	    a->room->driver->record_lock(a->room, NUDGE, a->agent, NUDGE_SHOWN, 0, &lock, &ignored) != MR_OK)
		return false;
	a->coalesced = nudge_waits(a->room, a->agent, same_name);
	if (a->coalesced) {
		(void)snprintf(a->name, sizeof a->name, "%.*s", NUDGE_NAME_LEN, same_name);
		a->nudge.times = same->times + 1;
		if (a->nudge.expires_ms < same->expires_ms)
			a->nudge.expires_ms = same->expires_ms;
		*rc = put(a, err);
	}
	a->room->driver->record_unlock(a->room, lock);
	return a->coalesced;
}

static enum mr_rc
add_or_refuse(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct adding *a = ctx;
	struct mr_nudge same = { 0 };
	char same_name[NUDGE_NAME_LEN + 1] = "";
	enum mr_rc rc = nudge_names(a->room, a->agent, &names, err);

	(void)exists;
	for (size_t i = 0; rc == MR_OK && i < names.n; i++)
		look_at(a, names.v[i], &same, same_name);
	if (rc != MR_OK || coalesce(a, &same, same_name, &rc, err))
		return rc;
	if (a->waiting < depth_of(a->room, a->nudge.priority))
		return put(a, err);
	a->full = true;
	unsigned refused = refused_in(buf_str(text));

	buf_clear(text);
	buf_addf(text, "Refused: %u\n", refused + 1);
	return MR_OK;
}

enum mr_rc
nudge_enqueue(struct mr_room *room, const char *agent, const struct mr_nudge *nudge, char ret_name[NUDGE_NAME_LEN + 1],
    bool *ret_coalesced, struct mr_error *err)
{
	struct adding a = { .room = room, .agent = agent, .nudge = *nudge };

	a.nudge.at_ms = clock_now_ms();
	a.nudge.times = 1;
	if (a.nudge.expires_ms == 0)
		a.nudge.expires_ms = (a.nudge.not_before_ms > a.nudge.at_ms ? a.nudge.not_before_ms : a.nudge.at_ms) +
				     ttl_of(room, nudge->priority);
	nudge_name(a.name);
	if (room_record_change(room, STATE_KIND, agent, STATE_NAME, add_or_refuse, &a, err) != MR_OK)
		return mr_wrap(err, "cannot queue a nudge for '%s'", agent);
	if (a.full) {
		return mr_fail(err, MR_REFUSED,
		    "cannot nudge '%s': %zu nudges wait for it already\n"
		    "it is told so with the next one that it sees; what must not be lost is mail: mailroom send %.80s",
		    agent, a.waiting, agent);
	}
	memcpy(ret_name, a.name, sizeof a.name);
	*ret_coalesced = a.coalesced;
	return MR_OK;
}
