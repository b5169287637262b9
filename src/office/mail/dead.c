/* SPDX-License-Identifier: MIT */
/*
 * dead.c - dead letters: mail that was failed or left behind, and the failed work of queues. Nothing removes
 * them but a person or an agent who says so: by having them delivered again, or by dropping them.
 */
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/mail/dead.h"

#define AMBIGUOUS_MAX 5

/* ---- Failed work ---- */

static bool
note_failed(void *ctx, const struct queue_item *item)
{
	return names_add(ctx, str_of(item->id));
}

static enum mr_rc
failed_ids(struct mr_room *room, const char *queue, struct mr_names *ret, struct mr_error *err)
{
	enum mr_rc rc = room->driver->queue_each(room, queue, QUEUE_FAILED, note_failed, ret, err);

	return rc == MR_NOTFOUND ? MR_OK : rc; /* deleted this very moment */
}

static enum mr_rc
queue_names_of(struct mr_room *room, struct mr_names *ret, struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	if (office_queue_able(room, &ignored) != MR_OK)
		return MR_OK;
	return settings_names(room, "queue", ret, err);
}

/* ---- All of them ---- */

struct listing {
	mr_dead_fn *fn;
	void *ctx;
	bool stopped;
};

static bool
pass_on(void *ctx, const struct mr_message *msg)
{
	struct listing *l = ctx;

	l->stopped = !l->fn(l->ctx, "", msg);
	return !l->stopped;
}

static enum mr_rc
list_queue(struct mr_room *room, const char *queue, struct listing *l, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	enum mr_rc rc = failed_ids(room, queue, &ids, err);

	for (size_t i = 0; i < ids.n && rc == MR_OK && !l->stopped; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };

		if (room->driver->queue_fetch(room, queue, ids.v[i], &msg, &ignored) != MR_OK)
			continue; /* dropped meanwhile, or not readable: doctor tells of it */
		msg.folder = MR_DEAD;
		l->stopped = !l->fn(l->ctx, queue, &msg);
	}
	return rc;
}

enum mr_rc
mr_dead_each(struct mr_room *room, mr_dead_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct listing l = { .fn = fn, .ctx = ctx };
	struct scan_request want = { .folders = MR_DEAD, .depth = SCAN_HEADERS };
	enum mr_rc rc;

	if (!ROOM_HAS(room, dead_drop))
		return office_lacks(room, "dead letters", err);
	rc = room->driver->scan(room, OPERATOR, &want, pass_on, &l, err);

	if (rc == MR_OK && !l.stopped)
		rc = queue_names_of(room, &queues, err);
	for (size_t i = 0; i < queues.n && rc == MR_OK && !l.stopped; i++)
		rc = list_queue(room, queues.v[i], &l, err);
	return rc;
}

/* ---- One of them ---- */

struct dead_search {
	const char *what; /* the end of an id, or all of it */
	size_t n;
	char id[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1]; /* of the first */
	struct buf ids;
};

static void
note_match(struct dead_search *s, const char *queue, const char *id)
{
	if (!str_ends(str_of(id), s->what) || (s->n > 0 && strcmp(s->id, id) == 0))
		return;
	if (s->n == 0) {
		(void)snprintf(s->id, sizeof(s->id), "%s", id);
		(void)snprintf(s->queue, sizeof(s->queue), "%s", queue);
	}
	if (s->n < AMBIGUOUS_MAX)
		buf_addf(&s->ids, "%s%s", s->n > 0 ? ", " : "", id);
	s->n++;
}

static bool
note_dead(void *ctx, const struct mr_message *msg)
{
	note_match(ctx, "", msg->id);
	return true;
}

static enum mr_rc
search_queues(struct mr_room *room, struct dead_search *s, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	enum mr_rc rc = queue_names_of(room, &queues, err);

	for (size_t i = 0; i < queues.n && rc == MR_OK; i++) {
		mr_auto(mr_names_done) struct mr_names ids = { 0 };

		rc = failed_ids(room, queues.v[i], &ids, err);
		for (size_t j = 0; j < ids.n; j++)
			note_match(s, queues.v[i], ids.v[j]);
	}
	return rc;
}

static enum mr_rc
find_letter(struct mr_room *room, const char *given, char ret_id[MR_ID_LEN + 1], char ret_queue[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	struct dead_search s = { 0 };
	mr_auto(buf_done) struct buf ids = BUF_INIT;
	char spelled[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc;

	if (!ROOM_HAS(room, dead_drop))
		return office_lacks(room, "dead letters", err);
	rc = lookup_spelling(room, given, spelled, &full, err);
	if (rc != MR_OK)
		return rc;
	struct scan_request want = { .folders = MR_DEAD, .depth = SCAN_NAMES, .id_suffix = spelled };

	s.what = spelled;
	rc = room->driver->scan(room, OPERATOR, &want, note_dead, &s, err);
	if (rc == MR_OK)
		rc = search_queues(room, &s, err);
	ids = s.ids;
	if (rc != MR_OK)
		return rc;
	if (s.n == 0) {
		return mr_fail(err, MR_NOTFOUND,
		    "no dead letter '%s' in room '%s'\n`mailroom dead list` shows them; `mailroom why %s` looks everywhere",
		    spelled, room->name, spelled);
	}
	if (s.n > 1)
		return mr_fail(err, MR_REFUSED, "several dead letters end in '%s'\none of: %s%s", spelled, buf_z(&ids),
		    s.n > AMBIGUOUS_MAX ? ", ..." : "");
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", s.id);
	(void)snprintf(ret_queue, MR_ADDRESS_MAX + 1, "%s", s.queue);
	return MR_OK;
}

enum mr_rc
mr_dead_get(struct mr_room *room, const char *id, struct mr_message *ret, char ret_queue[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	char full[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = find_letter(room, id, full, queue, err);

	if (rc == MR_OK)
		rc = *queue ? room->driver->queue_fetch(room, queue, full, ret, err)
			    : room->driver->fetch(room, OPERATOR, full, MR_DEAD, SCAN_BODIES, ret, err);
	if (rc != MR_OK)
		return rc;
	ret->folder = MR_DEAD;
	(void)snprintf(ret_queue, MR_ADDRESS_MAX + 1, "%s", queue);
	return MR_OK;
}

/* ---- Whose copy it was ---- */

struct copies {
	struct mr_names have;      /* agents who have theirs */
	struct mr_names settled;   /* whose dead copy was dealt with before */
	char again[MR_ID_LEN + 1]; /* the last retry, or "" */
	bool worked_off;           /* in some queue, perhaps one that is gone */
	bool failed;               /* out of memory */
};

static void
copies_done(struct copies *c)
{
	mr_names_done(&c->have);
	mr_names_done(&c->settled);
}

static void
note_place(void *ctx, const struct place_of *place)
{
	struct copies *c = ctx;

	if (*place->agent && (place->folder & (MR_INBOX | MR_HELD | MR_ARCHIVE)) &&
	    !names_add(&c->have, str_of(place->agent)))
		c->failed = true;
	if (strcmp(place->state, "done") == 0)
		c->worked_off = true;
}

static void
note_end(void *ctx, const struct letter_end *end)
{
	struct copies *c = ctx;

	(void)snprintf(c->again, sizeof(c->again), "%s", end->again);
	for (size_t i = 0; i < end->of.n; i++)
		if (!names_add(&c->settled, str_of(end->of.v[i])))
			c->failed = true;
}

static bool
lacks_copy(struct mr_room *room, const struct copies *c, const char *id, const char *name)
{
	mr_auto(mr_message_done) struct mr_message work = { 0 };
	struct mr_error ignored = { 0 };

	if (names_has(&c->settled, name) || names_has(&c->have, name))
		return false;
	if (!str_starts(str_of(name), "queue:"))
		return address_check(str_of(name), &ignored) == MR_OK;
	if (office_queue_able(room, &ignored) != MR_OK)
		return false;
	if (!target_exists(room, "queue", name + strlen("queue:")))
		return !c->worked_off;
	return room->driver->queue_fetch(room, name + strlen("queue:"), id, &work, &ignored) == MR_NOTFOUND;
}

enum mr_rc
dead_owners(struct mr_room *room, const struct mr_message *letter, const char *queue, struct mr_names *ret,
    char ret_again[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(copies_done) struct copies c = { 0 };
	const struct mr_names *lists[] = { &letter->to, &letter->cc };
	char target[MR_ADDRESS_MAX + 16];
	enum mr_rc rc = letter_ends(room, letter->id, note_end, &c, err);

	(void)snprintf(ret_again, MR_ID_LEN + 1, "%s", c.again);
	if (rc == MR_OK && *queue) {
		(void)snprintf(target, sizeof(target), "queue:%s", queue);
		return names_add(ret, str_of(target)) ? MR_OK : mr_nomem(err);
	}
	if (rc == MR_OK && ROOM_HAS(room, each_place))
		rc = room->driver->each_place(room, letter->id, note_place, &c, err);
	if (rc == MR_OK && c.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < 2 && rc == MR_OK; i++)
		for (size_t j = 0; j < lists[i]->n && rc == MR_OK; j++)
			if (lacks_copy(room, &c, letter->id, lists[i]->v[j]) && !names_has(ret, lists[i]->v[j]) &&
			    !names_add(ret, str_of(lists[i]->v[j])))
				rc = mr_nomem(err);
	return rc;
}

/* ---- Dropping ---- */

enum mr_rc
dead_check_hand(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(room, dead_drop))
		return office_lacks(room, "dead letters", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK && ROOM_HAS(room, find_agent) && strcmp(self->agent, OPERATOR) != 0)
		rc = mr_agent_get(room, self->agent, &agent, err);
	return rc;
}

enum mr_rc
mr_dead_drop(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message letter = { 0 };
	struct letter_end end = { .again = "", .by = self->agent };
	struct mr_error ignored = { 0 };
	char full[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1], again[MR_ID_LEN + 1], again_queue[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = dead_check_hand(room, self, err);

	if (rc == MR_OK)
		rc = find_letter(room, id, full, queue, err);
	/* One that cannot be read can be dropped, too. */
	if (rc == MR_OK && mr_dead_get(room, full, &letter, again_queue, &ignored) == MR_OK)
		rc = dead_owners(room, &letter, queue, &end.of, again, err);
	/* Durable before it goes: a drop that is cut off still explains what is missing. */
	if (rc == MR_OK)
		rc = letter_note_end(room, full, &end, err);
	if (rc == MR_OK)
		rc = room->driver->dead_drop(room, queue, full, err);
	mr_names_done(&end.of);
	return rc;
}
