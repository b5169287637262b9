/* SPDX-License-Identifier: MIT */
/*
 * dead.c - dead letters: mail that was failed or left behind, and the failed work of queues. Nothing removes
 * them but a person or an agent who says so: by having them delivered again, or by dropping them. What became of one is
 * kept as a line of records/dead-done/_/<id>, for mr_why and for the next retry.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/address/address.h"
#include "office/mail/mail.h"

#define ENDS "dead-done"
#define QUEUE_PREFIX "queue:"

static enum mr_rc
check_able(const struct mr_room *room, struct mr_error *err)
{
	return (room->driver->abilities & ROOM_DEAD) ? MR_OK : room_lacks(room, "dead letters", err);
}

/* ---- What became of them ---- */

enum mr_rc
letter_ends(struct mr_room *room, const char *id, letter_end_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(record_done) struct record record = { 0 };
	enum mr_rc rc = ROOM_HAS(room, record_get) ? office_record(room, ENDS, "", id, &record, err) : MR_NOTFOUND;

	if (rc == MR_NOTFOUND)
		return MR_OK;
	TRY(rc);
	/* "<new id, or -> <by whom> <when> <whose copies ...>": none of these has a space in it. */
	for (size_t i = 0; i < record.n; i++) {
		mr_auto(mr_names_done) struct mr_names words = { 0 };
		struct mr_str rest = str_of(record.lines[i].value), word;

		while (str_word(&rest, " ", &word))
			if (!names_add(&words, word))
				return mr_nomem(err);
		if (words.n < 3) /* another program wrote it */
			continue;
		fn(ctx, &(struct letter_end){ .again = strcmp(words.v[0], "-") == 0 ? "" : words.v[0],
			    .by = words.v[1],
			    .at = words.v[2],
			    .of = { words.v + 3, words.n - 3 } });
	}
	return MR_OK;
}

/* Durable. Noting the same retry twice notes it once. */
static enum mr_rc
note_end(struct mr_room *room, const char *id, struct letter_end *end, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char at[RFC3339_LEN + 1];

	if (!ROOM_HAS(room, record_put))
		return MR_OK;
	TRY(record_edit_begin(&e, room, ENDS, "", id, err));
	/* A retry that is repeated ends the same way. */
	if (*end->again && e.text.len > 0 && strstr(buf_z(&e.text), end->again))
		return MR_OK;
	time_rfc3339(clock_now_ms(), at);
	buf_addf(&line, "%s %s %s", *end->again ? end->again : "-", end->by, at);
	for (size_t i = 0; i < end->of.n; i++)
		buf_addf(&line, " %s", end->of.v[i]);
	TRY(mr_got(buf_ok(&line), err));
	TRY(header_add(&e.text, *end->again ? "Retried" : "Dropped", buf_str(&line), err));
	TRY(record_edit_save(&e, err));
	office_records_age(room, ENDS);
	return MR_OK;
}

/* ---- All of them ---- */

static enum mr_rc
queue_names(struct mr_room *room, struct mr_names *ret, struct mr_error *err)
{
	return room->driver->abilities & ROOM_QUEUES ? settings_names(room, "queue", ret, err) : MR_OK;
}

static bool
note_failed(void *ctx, const struct queue_item *item)
{
	return names_add(ctx, str_of(item->id));
}

static enum mr_rc
failed_ids(struct mr_room *room, const char *queue, struct mr_names *ret, struct mr_error *err)
{
	enum mr_rc rc = room->driver->each_claim(room, room_box("queue", queue).z, QUEUE_FAILED, note_failed, ret, err);

	return rc == MR_NOTFOUND ? MR_OK : rc; /* deleted this very moment */
}

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

enum mr_rc
mr_dead_each(struct mr_room *room, mr_dead_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct listing l = { .fn = fn, .ctx = ctx };
	struct scan_request want = { .folders = MR_DEAD, .depth = SCAN_HEADERS };

	TRY(check_able(room, err));
	TRY(room->driver->scan(room, OPERATOR, &want, pass_on, &l, err));
	if (!l.stopped)
		TRY(queue_names(room, &queues, err));
	for (size_t i = 0; i < queues.n && !l.stopped; i++) {
		mr_auto(mr_names_done) struct mr_names ids = { 0 };

		TRY(failed_ids(room, queues.v[i], &ids, err));
		for (size_t j = 0; j < ids.n && !l.stopped; j++) {
			mr_auto(mr_message_done) struct mr_message msg = { 0 };

			if (room_fetch_work(room, queues.v[i], ids.v[j], &msg, IGNORED) != MR_OK)
				continue; /* dropped meanwhile, or not readable: doctor tells of it */
			msg.folder = MR_DEAD;
			l.stopped = !fn(ctx, queues.v[i], &msg);
		}
	}
	return MR_OK;
}

/* ---- One of them ---- */

static bool
note_dead(void *ctx, const struct mr_message *msg)
{
	found_add(ctx, msg->id);
	return true;
}

static enum mr_rc
find_letter(struct mr_room *room, const char *given, char ret_id[MR_ID_LEN + 1], char ret_queue[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	bool full;

	TRY(check_able(room, err));
	TRY(lookup_spelling(room, given, spelled, &full, err));
	struct scan_request want = { .folders = MR_DEAD, .depth = SCAN_NAMES, .id_suffix = spelled };

	*ret_queue = '\0';
	TRY(room->driver->scan(room, OPERATOR, &want, note_dead, &found, err));
	TRY(queue_names(room, &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_names_done) struct mr_names ids = { 0 };

		TRY(failed_ids(room, queues.v[i], &ids, err));
		for (size_t j = 0; j < ids.n; j++) {
			if (!str_ends(str_of(ids.v[j]), spelled))
				continue;
			if (found.n == 0)
				(void)snprintf(ret_queue, MR_ADDRESS_MAX + 1, "%s", queues.v[i]);
			found_add(&found, ids.v[j]);
		}
	}
	if (found.n == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no dead letter '%s' in room '%s'\n`mailroom dead list` shows them; `mailroom why %s` looks everywhere",
		    spelled, room->name, spelled);
	return found_one(&found, "dead letters", spelled, ret_id, err);
}

enum mr_rc
mr_dead_get(struct mr_room *room, const char *id, struct mr_message *ret, char ret_queue[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	char full[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1];

	TRY(find_letter(room, id, full, queue, err));
	TRY(*queue ? room_fetch_work(room, queue, full, ret, err)
		   : room->driver->fetch(room, OPERATOR, full, MR_DEAD, SCAN_BODIES, ret, err));
	ret->folder = MR_DEAD;
	(void)snprintf(ret_queue, MR_ADDRESS_MAX + 1, "%s", queue);
	return MR_OK;
}

/* ---- Whose copy it was ---- */

struct copies {
	struct mr_names have;      /* agents who have theirs, and those whose dead copy was dealt with before */
	char again[MR_ID_LEN + 1]; /* the last retry, or "" */
	bool worked_off;           /* in some queue, perhaps one that is gone */
	bool failed;               /* out of memory */
};

static void
copies_done(struct copies *c)
{
	mr_names_done(&c->have);
}

static void
note_place(void *ctx, const struct place_of *place)
{
	struct copies *c = ctx;

	if (*place->agent && (place->folder & (MR_INBOX | MR_HELD | MR_ARCHIVE)))
		c->failed |= !names_add(&c->have, str_of(place->agent));
	c->worked_off |= strcmp(place->state, "done") == 0;
}

static void
note_past(void *ctx, const struct letter_end *end)
{
	struct copies *c = ctx;

	(void)snprintf(c->again, sizeof(c->again), "%s", end->again);
	for (size_t i = 0; i < end->of.n; i++)
		c->failed |= !names_add(&c->have, str_of(end->of.v[i]));
}

static bool
lacks_copy(struct mr_room *room, const struct copies *c, const char *id, const char *name)
{
	mr_auto(mr_message_done) struct mr_message work = { 0 };
	const char *queue = name + strlen(QUEUE_PREFIX);

	if (names_has(&c->have, name))
		return false;
	if (!str_starts(str_of(name), QUEUE_PREFIX))
		return address_check(str_of(name), IGNORED) == MR_OK;
	if (!(room->driver->abilities & ROOM_QUEUES))
		return false;
	if (!target_exists(room, "queue", queue))
		return !c->worked_off;
	return room_fetch_work(room, queue, id, &work, IGNORED) == MR_NOTFOUND;
}

/* A letter of the room does not say whose copy it was. Of its recipients, those who have theirs need no second one,
 * nor those whose dead copy was delivered again or dropped before; what went to a channel is there. */
static enum mr_rc
find_owners(struct mr_room *room, const struct mr_message *letter, const char *queue, struct mr_names *ret,
    char ret_again[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(copies_done) struct copies c = { 0 };
	const struct mr_names *lists[] = { &letter->to, &letter->cc };
	char target[MR_ADDRESS_MAX + 16];

	TRY(letter_ends(room, letter->id, note_past, &c, err));
	(void)snprintf(ret_again, MR_ID_LEN + 1, "%s", c.again);
	if (*queue) {
		(void)snprintf(target, sizeof(target), QUEUE_PREFIX "%s", queue);
		return names_add(ret, str_of(target)) ? MR_OK : mr_nomem(err);
	}
	if (ROOM_HAS(room, each_place))
		TRY(room->driver->each_place(room, letter->id, note_place, &c, err));
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < lists[i]->n; j++)
			if (lacks_copy(room, &c, letter->id, lists[i]->v[j]))
				c.failed |= !names_add_once(ret, lists[i]->v[j]);
	return c.failed ? mr_nomem(err) : MR_OK;
}

/* ---- Dropping ---- */

/* Only the operator, or an agent that is registered, acts on dead letters. */
static enum mr_rc
check_hand(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	TRY(check_able(room, err));
	TRY(office_not_fenced(room, self, err));
	if (ROOM_HAS(room, find_agent) && strcmp(self->agent, OPERATOR) != 0)
		TRY(mr_agent_get(room, self->agent, &agent, err));
	return MR_OK;
}

enum mr_rc
mr_dead_drop(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message letter = { 0 };
	mr_auto(mr_names_done) struct mr_names owners = { 0 };
	char full[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1], again[MR_ID_LEN + 1], again_queue[MR_ADDRESS_MAX + 1];

	TRY(check_hand(room, self, err));
	TRY(find_letter(room, id, full, queue, err));
	/* One that cannot be read can be dropped, too. */
	if (mr_dead_get(room, full, &letter, again_queue, IGNORED) == MR_OK)
		TRY(find_owners(room, &letter, queue, &owners, again, err));
	/* Durable before it goes: a drop that is cut off still explains what is missing. */
	TRY(note_end(room, full, &(struct letter_end){ .again = "", .by = self->agent, .of = owners }, err));
	return room->driver->remove(
	    room, &(struct removal){ .what = REMOVE_DEAD, .box = queue, .id = full }, NULL, err);
}

/* ---- Delivering again: first, under a key; then noted; then removed. A kill in between neither loses nor doubles it.
 * ---- */

struct retrying {
	struct mr_room *room;
	const struct mr_self *self;
	struct mr_message letter;
	char queue[MR_ADDRESS_MAX + 1];
	struct mr_names owners;    /* whose copy it may be */
	char again[MR_ID_LEN + 1]; /* a retry before this one, or "" */
	struct recipients who;
	struct arena *own;
};

static void
retrying_done(struct retrying *r)
{
	mr_message_done(&r->letter);
	mr_names_done(&r->owners);
	recipients_done(&r->who);
	arena_free(r->own);
}

static enum mr_rc
choose_recipients(struct retrying *r, const char *const *to, struct mr_error *err)
{
	const char **list = arena_alloc(&r->own, (r->owners.n + 1) * sizeof(*list));

	if (!list)
		return mr_nomem(err);
	if (!to && r->owners.n == 0)
		return mr_fail(err, MR_REFUSED,
		    "nobody to whom '%s' was sent is without it\nsay who shall get it: --to AGENT", r->letter.id);
	for (size_t i = 0; !to && i < r->owners.n; i++) {
		const char *queue = r->owners.v[i] + strlen(QUEUE_PREFIX);

		list[i] = r->owners.v[i];
		if (str_starts(str_of(list[i]), QUEUE_PREFIX) && !target_exists(r->room, "queue", queue))
			return mr_fail(err, MR_NOTFOUND,
			    "queue '%s' is gone\n`mailroom queue create %s`, or say who shall get it: --to ADDRESS",
			    queue, queue);
	}
	enum mr_rc rc = recipients_resolve(r->room, "", to ? to : list, NULL, false, &r->who, err);

	if (rc == MR_NOTFOUND)
		return mr_hint(err, "say who shall get it: --to AGENT; `mailroom who` lists the agents");
	return rc;
}

/* Nothing in it depends on who retries, or when: after a crash anybody's retry is the same send. */
static enum mr_rc
compose(struct retrying *r, struct mr_message *ret, struct mr_error *err)
{
	const struct mr_message *letter = &r->letter;
	char original[MR_ID_LEN + MR_NAME_MAX + MR_ADDRESS_MAX];
	struct mr_header *headers = arena_alloc(&r->own, (letter->headers_n + 1) * sizeof(*headers));
	size_t n = 0;

	(void)snprintf(original, sizeof(original), "<%s@%s>", letter->id, r->room->name);
	const char *resent = arena_dup(&r->own, str_of(original));

	if (!headers || !resent)
		return mr_nomem(err);
	for (size_t i = 0; i < letter->headers_n; i++)
		if (!message_header_reserved(str_of(letter->headers[i].name)))
			headers[n++] = letter->headers[i];
	headers[n++] = (struct mr_header){ "Resent-Message-ID", resent };
	*ret = *letter;
	ret->to = r->who.to;
	ret->cc = (struct mr_names){ 0 };
	ret->thread = *letter->thread ? letter->thread : letter->id;
	ret->by_ms = ret->not_before_ms = 0;
	ret->flags = ret->attempt = 0;
	ret->headers = headers;
	ret->headers_n = n;
	ret->own = NULL;
	id_new(ret->id);
	return MR_OK;
}

/* The same for a repetition of a retry that was cut off, although some of the letter's files may be gone by then; but
 * another one where another recipient's copy of the same message died later, or was failed in a queue. */
static enum mr_rc
retry_key(const struct retrying *r, char ret[16 + MR_ID_LEN + 65], struct mr_error *err)
{
	mr_auto(buf_done) struct buf to = BUF_INIT;
	char digest[65];

	buf_adds(&to, r->queue);
	for (size_t i = 0; i < r->who.all.n; i++)
		buf_addf(&to, "\n%s", r->who.all.v[i]);
	if (!buf_ok(&to))
		return mr_nomem(err);
	sha256_hex(buf_str(&to), digest);
	(void)snprintf(ret, 16 + MR_ID_LEN + 65, "dead-retry-%s-%s", r->letter.id, digest);
	return MR_OK;
}

/* After the delivery: says what became of the letter, then removes it. */
static enum mr_rc
remove_retried(struct retrying *r, const char *again, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names others = { 0 };
	struct letter_end end = { .again = again, .by = r->self->agent, .of = r->owners };
	char ignored[MR_ID_LEN + 1];

	TRY(note_end(r->room, r->letter.id, &end, err));
	/* Another recipient may have failed its copy since we looked: that one lies beside ours now, and waits for a
	 * retry of its own, which then takes both away. */
	if (!*r->queue)
		TRY(find_owners(r->room, &r->letter, r->queue, &others, ignored, err));
	if (others.n > 0)
		return MR_OK;
	enum mr_rc rc = r->room->driver->remove(
	    r->room, &(struct removal){ .what = REMOVE_DEAD, .box = r->queue, .id = r->letter.id }, NULL, err);

	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static enum mr_rc
deliver_again(struct retrying *r, struct mr_receipt *ret, struct mr_error *err)
{
	struct mr_message msg;
	struct delivered got = { 0 };
	struct mr_error other = { 0 };
	char key[16 + MR_ID_LEN + 65];

	TRY(compose(r, &msg, err));
	TRY(retry_key(r, key, err));
	bool ours = address_check(str_of(msg.from), IGNORED) == MR_OK;
	struct delivery what = {
		.msg = &msg,
		.to = &r->who.all,
		.sender = ours ? msg.from : OPERATOR,
		.key = r->room->driver->abilities & ROOM_KEYS ? key : NULL,
	};
	enum mr_rc rc = r->room->driver->deliver(r->room, &what, &got, err);

	if (rc != MR_OK && rc != MR_INDOUBT) {
		delivered_done(&got);
		return mr_wrap(err, "delivering '%s' again", r->letter.id);
	}
	/* In doubt it is durable all the same: the next command completes it. */
	channel_after_delivery(r->room, &r->who.all);
	*ret = (struct mr_receipt){
		.repeated = got.repeated, .to = r->who.all, .not_live = r->who.not_live, .missing = got.missing
	};
	(void)snprintf(ret->id, sizeof(ret->id), "%s", got.id);
	r->who.all = r->who.not_live = (struct mr_names){ 0 };
	mr_names_done(&got.warnings);
	if (remove_retried(r, ret->id, &other) != MR_OK && rc == MR_OK) {
		*err = other;
		mr_receipt_done(ret);
		return mr_wrap(err, "delivered, but still among the dead letters");
	}
	return rc;
}

/* All who should have it were dealt with, and the last time it was delivered again: then that retry was cut off before
 * the letter was gone. But with a channel among the recipients it may be the copy of a subscriber, who is not named. */
static bool
is_leftover(const struct retrying *r)
{
	const struct mr_names *lists[] = { &r->letter.to, &r->letter.cc };

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < lists[i]->n; j++)
			if (str_starts(str_of(lists[i]->v[j]), "channel:"))
				return false;
	return r->owners.n == 0 && *r->again;
}

enum mr_rc
mr_dead_retry(struct mr_room *room, const struct mr_self *self, const char *id, const char *const *to,
    struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(retrying_done) struct retrying r = { .room = room, .self = self };

	TRY(check_hand(room, self, err));
	TRY(mr_dead_get(room, id, &r.letter, r.queue, err));
	TRY(find_owners(room, &r.letter, r.queue, &r.owners, r.again, err));
	if (!to && is_leftover(&r)) {
		enum mr_rc rc = room->driver->remove(
		    room, &(struct removal){ .what = REMOVE_DEAD, .box = r.queue, .id = r.letter.id }, NULL, err);

		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
		*ret = (struct mr_receipt){ .repeated = true };
		(void)snprintf(ret->id, sizeof(ret->id), "%s", r.again);
		return MR_OK;
	}
	TRY(choose_recipients(&r, to, err));
	return deliver_again(&r, ret, err);
}
