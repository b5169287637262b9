/* SPDX-License-Identifier: MIT */
/*
 * dead.c - dead letters: mail that was failed or left behind, and the failed work of queues. They stay until a person
 * or an agent has them delivered again or drops them. The outcome is kept as a line of records/dead-done/_/<id>, for
 * mr_why and for the next retry.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/address/address.h"
#include "office/mail/mail.h"

#define ENDS "dead-done"

/* ---- Outcomes ---- */

enum mr_rc
letter_ends(struct mr_room *room, const char *id, struct letter_ends *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record record = { 0 };
	mr_auto(roll_done) struct roll r = { 0 };

	if (ROOM_HAS(room, record_get))
		TRY(mr_unless(office_record(room, ENDS, "", id, &record, err), MR_NOTFOUND, err));
	/* "<new id, or -> <by whom> <when> <whose copies ...>": none of these has a space in it. */
	for (size_t i = 0; i < record.n; i++) {
		char *words[3] = { 0 }, *rest = arena_dup(&r.own, str_of(record.lines[i].value)), *word;
		char **of = arena_alloc(&r.own, strlen(record.lines[i].value) / 2 * sizeof(*of) + sizeof(*of));
		size_t n = 0;

		TRY(mr_got(rest && of, err));
		while ((word = strsep(&rest, " ")))
			if (*word && n++ < 3)
				words[n - 1] = word;
			else if (*word)
				of[n - 4] = word;
		if (n < 3) /* another program wrote it */
			continue;
		struct letter_end *end = roll_add(&r, sizeof(*end));

		TRY(mr_got(end, err));
		*end = (struct letter_end){ strcmp(words[0], "-") == 0 ? "" : words[0], words[1], words[2],
			{ of, n - 3 } };
	}
	return mr_got(roll_give(&r, ret), err);
}

/* Durable. Noting the same retry twice notes it once. */
static enum mr_rc
note_end(struct mr_room *room, const char *id, const char *again, const char *by, const struct mr_names *of,
    struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char at[RFC3339_LEN + 1];

	if (!ROOM_HAS(room, record_put))
		return MR_OK;
	TRY(record_edit_begin(&e, room, ENDS, "", id, err));
	/* A repeated retry ends the same way. */
	if (*again && e.text.len > 0 && strstr(buf_z(&e.text), again))
		return MR_OK;
	time_rfc3339(clock_now_ms(), at);
	buf_addf(&line, "%s %s %s", *again ? again : "-", by, at);
	for (size_t i = 0; i < of->n; i++)
		buf_addf(&line, " %s", of->v[i]);
	TRY(mr_got(buf_ok(&line), err));
	TRY(header_add(&e.text, *again ? "Retried" : "Dropped", buf_str(&line), err));
	return record_edit_save(&e, err);
}

/* ---- All of them ---- */

struct letter {
	char id[MR_ID_LEN + 1];
	char queue[MR_ADDRESS_MAX + 1]; /* in which it failed; "": a letter of the room */
};

static bool
note_letter(void *ctx, const struct mr_message *msg)
{
	struct letter *letter = roll_add(ctx, sizeof(*letter));

	if (letter)
		(void)snprintf(letter->id, sizeof(letter->id), "%s", msg->id);
	return letter;
}

static bool
note_failed(void *ctx, const struct queue_item *item)
{
	return names_add(ctx, str_of(item->id));
}

/* The failed work of each queue. */
static enum mr_rc
failed_list(struct mr_room *room, const char *suffix, struct roll *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };

	if (room->driver->abilities & ROOM_QUEUES)
		TRY(settings_names(room, "queue", &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_names_done) struct mr_names ids = { 0 };
		enum mr_rc rc = room->driver->each_claim(
		    room, room_box("queue", queues.v[i]).z, QUEUE_FAILED, note_failed, &ids, err);

		TRY(mr_unless(rc, MR_NOTFOUND, err)); /* deleted just now */
		for (size_t j = 0; j < ids.n; j++) {
			struct letter *letter =
			    str_ends(str_of(ids.v[j]), suffix) ? roll_add(ret, sizeof(*letter)) : NULL;

			if (!letter)
				continue;
			(void)snprintf(letter->id, sizeof(letter->id), "%s", ids.v[j]);
			(void)snprintf(letter->queue, sizeof(letter->queue), "%s", queues.v[i]);
		}
	}
	return mr_got(!ret->failed, err);
}

static enum mr_rc
letter_fetch(
    struct mr_room *room, const struct letter *l, enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	TRY(*l->queue ? room_fetch_work(room, l->queue, l->id, ret, err)
		      : room->driver->fetch(room, OPERATOR, l->id, MR_DEAD, depth, ret, err));
	ret->folder = MR_DEAD;
	return MR_OK;
}

struct telling { /* the letters of the room and failed work, together in order */
	struct mr_room *room;
	const struct letter *failed; /* the newest first */
	size_t failed_n, at, told, limit;
	mr_dead_fn *fn;
	void *ctx;
	bool over;
};

static int
newest_letter(const void *a, const void *b)
{
	return strcmp(((const struct letter *)b)->id, ((const struct letter *)a)->id);
}

static bool
tell_one(struct telling *t, const char *queue, const struct mr_message *msg)
{
	t->over = !t->fn || !t->fn(t->ctx, queue, msg) || ++t->told == t->limit;
	return !t->over;
}

/* Tells failed work that is newer than this id. Doctor reports unreadable work. */
static bool
tell_failed(struct telling *t, const char *before)
{
	for (; t->fn && !t->over && t->at < t->failed_n && strcmp(t->failed[t->at].id, before) > 0; t->at++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		if (letter_fetch(t->room, &t->failed[t->at], SCAN_HEADERS, &msg, IGNORED) == MR_OK)
			(void)tell_one(t, t->failed[t->at].queue, &msg);
	}
	return !t->over;
}

static bool
tell_letter(void *ctx, const struct mr_message *msg)
{
	return tell_failed(ctx, msg->id) && tell_one(ctx, "", msg);
}

enum mr_rc
mr_dead_each(struct mr_room *room, size_t limit, mr_dead_fn *fn, void *ctx, size_t *ret_all, struct mr_error *err)
{
	size_t own = 0;
	struct scan_request want = { .folders = MR_DEAD,
		.depth = fn ? SCAN_HEADERS : SCAN_NAMES,
		.order = SCAN_NEWEST,
		.most = limit,
		.ret_total = &own };
	mr_auto(roll_done) struct roll failed = { 0 };
	struct telling t = { .room = room, .limit = limit, .fn = fn, .ctx = ctx };

	if (!(room->driver->abilities & ROOM_DEAD))
		return room_lacks(room, "dead letters", err);
	TRY(failed_list(room, "", &failed, err));
	t.failed = failed.v;
	t.failed_n = failed.n;
	if (failed.n > 1)
		qsort(failed.v, failed.n, sizeof *t.failed, newest_letter);
	TRY(room->driver->scan(room, OPERATOR, &want, tell_letter, &t, err));
	(void)tell_failed(&t, "");
	if (ret_all)
		*ret_all = own + failed.n;
	return MR_OK;
}

/* ---- One of them ---- */

static enum mr_rc
find_letter(struct mr_room *room, const char *given, struct letter *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll all = { 0 }; /* those of the room, then failed work */
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	struct scan_request want = { .folders = MR_DEAD, .depth = SCAN_NAMES, .id_suffix = spelled };
	bool full;

	TRY(lookup_spelling(room, given, spelled, &full, err));
	if (!(room->driver->abilities & ROOM_DEAD))
		return room_lacks(room, "dead letters", err);
	TRY(room->driver->scan(room, OPERATOR, &want, note_letter, &all, err));
	TRY(failed_list(room, spelled, &all, err));
	const struct letter *letters = all.v;

	for (size_t i = 0; i < all.n; i++)
		found_add(&found, letters[i].id);
	if (found.n == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no dead letter '%s' in room '%s'\n`mailroom dead list` shows them; `mailroom why %s` looks everywhere",
		    spelled, room->name, spelled);
	TRY(found_one(&found, "dead letters", spelled, ret->id, err));
	*ret = letters[0];
	return MR_OK;
}

enum mr_rc
mr_dead_get(struct mr_room *room, const char *id, struct mr_message *ret, char ret_queue[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	struct letter letter;

	TRY(find_letter(room, id, &letter, err));
	TRY(letter_fetch(room, &letter, SCAN_BODIES, ret, err));
	(void)snprintf(ret_queue, MR_ADDRESS_MAX + 1, "%s", letter.queue);
	return MR_OK;
}

static enum mr_rc
letter_remove(struct mr_room *room, const struct letter *letter, struct mr_error *err)
{
	return room->driver->remove(
	    room, &(struct removal){ .what = REMOVE_DEAD, .box = letter->queue, .id = letter->id }, NULL, err);
}

/* ---- Whose copy it was ---- */

/* A letter of the room does not say whose copy it was. Recipients who have their copy need no second one, nor do those
 * whose dead copy was delivered again or dropped before; what went to a channel is there. ret_again is the last retry,
 * or "". */
static enum mr_rc
find_owners(struct mr_room *room, const struct mr_message *msg, const struct letter *letter, struct mr_names *ret,
    char ret_again[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_list_done) struct letter_ends ends = { 0 };
	mr_auto(mr_list_done) struct places places = { 0 };
	mr_auto(mr_names_done) struct mr_names have = { 0 };
	const struct mr_names *lists[] = { &msg->to, &msg->cc };
	bool worked_off = false, ok = true; /* in some queue, perhaps one that is gone */

	TRY(letter_ends(room, letter->id, &ends, err));
	(void)snprintf(ret_again, MR_ID_LEN + 1, "%s", ends.n > 0 ? ends.v[ends.n - 1].again : "");
	if (*letter->queue)
		return mr_got(names_add(ret, str_of(room_box("queue", letter->queue).z)), err);
	if (ROOM_HAS(room, each_place))
		TRY(office_places(room, letter->id, &places, err));
	for (size_t i = 0; i < ends.n; i++)
		for (size_t j = 0; j < ends.v[i].of.n; j++)
			ok &= names_add(&have, str_of(ends.v[i].of.v[j]));
	for (const struct place_of *p = places.v; p < places.v + places.n; p++) {
		if (*p->agent && (p->folder & (MR_INBOX | MR_HELD | MR_ARCHIVE)))
			ok &= names_add(&have, str_of(p->agent));
		worked_off |= strcmp(p->state, "done") == 0;
	}
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < lists[i]->n; j++) {
			mr_auto(mr_message_done) struct mr_message work = { 0 };
			const char *name = lists[i]->v[j], *queue = box_queue(name);
			bool lacks = !names_has(&have, name);

			if (!queue)
				lacks = lacks && address_check(str_of(name), IGNORED) == MR_OK;
			else if (!(room->driver->abilities & ROOM_QUEUES))
				lacks = false;
			else if (!target_exists(room, "queue", queue))
				lacks = lacks && !worked_off;
			else
				lacks =
				    lacks && room_fetch_work(room, queue, letter->id, &work, IGNORED) == MR_NOTFOUND;
			ok &= !lacks || names_add_once(ret, name);
		}
	return mr_got(ok, err);
}

/* ---- Dropping ---- */

/* Only the operator or a registered agent acts on dead letters. */
static enum mr_rc
find_for(struct mr_room *room, const struct mr_self *self, const char *id, struct letter *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	TRY(office_not_fenced(room, self, err));
	if (ROOM_HAS(room, find_agent) && strcmp(self->agent, OPERATOR) != 0)
		TRY(mr_agent_get(room, self->agent, &agent, err));
	return find_letter(room, id, ret, err);
}

enum mr_rc
mr_dead_drop(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(mr_names_done) struct mr_names owners = { 0 };
	struct letter letter;
	char again[MR_ID_LEN + 1];

	TRY(find_for(room, self, id, &letter, err));
	/* An unreadable one can be dropped, too. */
	if (letter_fetch(room, &letter, SCAN_HEADERS, &msg, IGNORED) == MR_OK)
		TRY(find_owners(room, &msg, &letter, &owners, again, err));
	/* Durable before the removal: after a cut-off the record still explains what is missing. */
	TRY(note_end(room, letter.id, "", self->agent, &owners, err));
	return letter_remove(room, &letter, err);
}

/* ---- Delivering again: first, under a key; then noted; then removed. A kill in between neither loses nor doubles it.
 * ---- */

struct retrying {
	struct mr_room *room;
	struct letter letter;
	struct mr_message msg;
	struct mr_names owners;    /* whose copy it may be */
	char again[MR_ID_LEN + 1]; /* a retry before this one, or "" */
	struct recipients who;
	struct arena *own;
};

static void
retrying_done(struct retrying *r)
{
	mr_message_done(&r->msg);
	mr_names_done(&r->owners);
	recipients_done(&r->who);
	arena_free(r->own);
}

static enum mr_rc
choose_recipients(struct retrying *r, const char *const *to, struct mr_error *err)
{
	const char **list = arena_alloc(&r->own, (r->owners.n + 1) * sizeof(*list));

	TRY(mr_got(list, err));
	if (!to && r->owners.n == 0)
		return mr_fail(err, MR_REFUSED,
		    "every recipient of '%s' has a copy\ngive its new recipient: --to AGENT", r->letter.id);
	for (size_t i = 0; !to && i < r->owners.n; i++) {
		const char *queue = box_queue(r->owners.v[i]);

		list[i] = r->owners.v[i];
		if (queue && !target_exists(r->room, "queue", queue))
			return mr_fail(err, MR_NOTFOUND,
			    "queue '%s' no longer exists\n`mailroom queue create %s`, or give its new recipient: --to ADDRESS",
			    queue, queue);
	}
	enum mr_rc rc = recipients_resolve(r->room, "", to ? to : list, NULL, false, &r->who, err);

	return rc == MR_NOTFOUND ? mr_hint(err, "give its new recipient: --to AGENT; `mailroom who` lists the agents")
				 : rc;
}

/* The content does not depend on who retries, or when: after a crash any agent's retry is the same send. */
static enum mr_rc
compose(struct retrying *r, struct mr_message *ret, struct mr_error *err)
{
	const struct mr_message *msg = &r->msg;
	char resent[MR_ID_LEN + MR_NAME_MAX + MR_ADDRESS_MAX];
	struct mr_header *headers = arena_alloc(&r->own, (msg->headers_n + 1) * sizeof(*headers));
	size_t n = 0;

	(void)snprintf(resent, sizeof(resent), "<%s@%s>", r->letter.id, r->room->name);
	TRY(mr_got(headers, err));
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!message_header_reserved(str_of(msg->headers[i].name)))
			headers[n++] = msg->headers[i];
	headers[n++] = (struct mr_header){ "Resent-Message-ID", arena_dup(&r->own, str_of(resent)) };
	TRY(mr_got(headers[n - 1].value, err));
	*ret = *msg;
	ret->to = r->who.to;
	ret->cc = (struct mr_names){ 0 };
	ret->thread = *msg->thread ? msg->thread : msg->id;
	ret->by_ms = ret->not_before_ms = 0;
	ret->flags = ret->attempt = 0;
	ret->headers = headers;
	ret->headers_n = n;
	ret->own = NULL;
	id_new(ret->id);
	return MR_OK;
}

static enum mr_rc
deliver_again(struct retrying *r, struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf to = BUF_INIT;
	struct mr_message msg;
	struct delivered got = { 0 };
	char key[16 + MR_ID_LEN + 65], digest[65];

	TRY(compose(r, &msg, err));
	/* The same key if a cut-off retry is repeated, although some of the letter's files may be gone by then; but
	 * another key if another recipient's copy of the same message died later, or failed in a queue. */
	buf_adds(&to, r->letter.queue);
	for (size_t i = 0; i < r->who.all.n; i++)
		buf_addf(&to, "\n%s", r->who.all.v[i]);
	TRY(mr_got(buf_ok(&to), err));
	sha256_hex(buf_str(&to), digest);
	(void)snprintf(key, sizeof(key), "dead-retry-%s-%s", r->letter.id, digest);
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
	return rc;
}

/* After the delivery: records the outcome, then removes the letter. */
static enum mr_rc
remove_retried(struct retrying *r, const struct mr_self *self, const char *again, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names others = { 0 };
	char ignored[MR_ID_LEN + 1];

	TRY(note_end(r->room, r->letter.id, again, self->agent, &r->owners, err));
	/* Another recipient may have failed its copy meanwhile: that one is beside ours now, and waits for a retry of
	 * its own, which then removes both. */
	if (!*r->letter.queue)
		TRY(find_owners(r->room, &r->msg, &r->letter, &others, ignored, err));
	return others.n > 0 ? MR_OK : mr_unless(letter_remove(r->room, &r->letter, err), MR_NOTFOUND, err);
}

/* If all recipients were dealt with, and the last outcome was a retry, then that retry was cut off before the letter
 * was removed. But with a channel among the recipients it may be the copy of a subscriber, who is not named. */
static bool
is_leftover(const struct retrying *r)
{
	const struct mr_names *lists[] = { &r->msg.to, &r->msg.cc };

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
	mr_auto(retrying_done) struct retrying r = { .room = room };
	struct mr_error late = { 0 };

	TRY(find_for(room, self, id, &r.letter, err));
	TRY(letter_fetch(room, &r.letter, SCAN_BODIES, &r.msg, err));
	TRY(find_owners(room, &r.msg, &r.letter, &r.owners, r.again, err));
	if (!to && is_leftover(&r)) {
		TRY(mr_unless(letter_remove(room, &r.letter, err), MR_NOTFOUND, err));
		*ret = (struct mr_receipt){ .repeated = true };
		(void)snprintf(ret->id, sizeof(ret->id), "%s", r.again);
		return MR_OK;
	}
	TRY(choose_recipients(&r, to, err));
	enum mr_rc rc = deliver_again(&r, ret, err);

	if ((rc != MR_OK && rc != MR_INDOUBT) || remove_retried(&r, self, ret->id, &late) == MR_OK || rc != MR_OK)
		return rc;
	*err = late;
	mr_receipt_done(ret);
	return mr_wrap(err, "delivered, but still among the dead letters");
}
