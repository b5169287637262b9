/* SPDX-License-Identifier: MIT */
/*
 * dead_retry.c - delivering a dead letter again: delivered first, under a key, then noted, then removed, so that a kill
 * in between neither loses nor doubles it.
 */
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/mail/dead.h"

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
check_owners(struct retrying *r, struct mr_error *err)
{
	if (r->owners.n == 0)
		return mr_fail(err, MR_REFUSED,
		    "nobody to whom '%s' was sent is without it\nsay who shall get it: --to AGENT", r->letter.id);
	for (size_t i = 0; i < r->owners.n; i++) {
		const char *name = r->owners.v[i];

		if (!str_starts(str_of(name), "queue:") || target_exists(r->room, "queue", name + strlen("queue:")))
			continue;
		return mr_fail(err, MR_NOTFOUND,
		    "queue '%s' is gone\n`mailroom queue create %s`, or say who shall get it: --to ADDRESS",
		    name + strlen("queue:"), name + strlen("queue:"));
	}
	return MR_OK;
}

static enum mr_rc
choose_recipients(struct retrying *r, const char *const *to, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (!to) {
		rc = check_owners(r, err);
		if (rc != MR_OK)
			return rc;
		const char **list = arena_alloc(&r->own, (r->owners.n + 1) * sizeof(*list));

		if (!list)
			return mr_nomem(err);
		for (size_t i = 0; i < r->owners.n; i++)
			list[i] = r->owners.v[i];
		to = list;
	}
	rc = recipients_resolve(r->room, "", to, NULL, false, &r->who, err);
	if (rc == MR_NOTFOUND)
		return mr_hint(err, "say who shall get it: --to AGENT; `mailroom who` lists the agents");
	return rc;
}

/* Nothing in it depends on who retries, or when: after a crash anybody's retry is the same send. */
static enum mr_rc
compose(struct retrying *r, struct mr_message *ret, struct mr_error *err)
{
	const struct mr_message *letter = &r->letter;
	mr_auto(buf_done) struct buf original = BUF_INIT;
	struct mr_header *headers = arena_alloc(&r->own, (letter->headers_n + 1) * sizeof(*headers));
	size_t n = 0;

	if (!headers)
		return mr_nomem(err);
	for (size_t i = 0; i < letter->headers_n; i++)
		if (!message_header_reserved(str_of(letter->headers[i].name)))
			headers[n++] = letter->headers[i];
	buf_addf(&original, "<%s@%s>", letter->id, r->room->name);
	headers[n].name = "Resent-Message-ID";
	headers[n].value = buf_ok(&original) ? arena_dup(&r->own, buf_str(&original)) : NULL;
	if (!headers[n++].value)
		return mr_nomem(err);
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

static void
fill_receipt(struct retrying *r, struct delivered *got, struct mr_receipt *ret)
{
	*ret = (struct mr_receipt){
		.repeated = got->repeated,
		.to = r->who.all,
		.not_live = r->who.not_live,
		.missing = got->missing,
	};
	(void)snprintf(ret->id, sizeof(ret->id), "%s", got->id);
	r->who.all = r->who.not_live = (struct mr_names){ 0 };
}

/* The same for whoever repeats a retry that was cut off, although some of the letter's files may be gone by then; but
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

/* What is left to do after the delivery: say what became of the letter, then remove it. */
static enum mr_rc
bury(struct retrying *r, const char *again, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names others = { 0 };
	struct letter_end end = { .again = again, .by = r->self->agent, .of = r->owners };
	char ignored[MR_ID_LEN + 1];
	enum mr_rc rc = letter_note_end(r->room, r->letter.id, &end, err);

	/* Another recipient may have failed its copy since we looked: that one lies beside ours now, and waits for a
	 * retry of its own, which then takes both away. */
	if (rc == MR_OK && !*r->queue)
		rc = dead_owners(r->room, &r->letter, r->queue, &others, ignored, err);
	if (rc == MR_OK && others.n == 0)
		rc = r->room->driver->dead_drop(r->room, r->queue, r->letter.id, err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static enum mr_rc
deliver_again(struct retrying *r, struct mr_receipt *ret, struct mr_error *err)
{
	struct mr_message msg;
	struct delivered got = { 0 };
	struct mr_error other = { 0 };
	char key[16 + MR_ID_LEN + 65];
	enum mr_rc rc = compose(r, &msg, err);

	if (rc == MR_OK)
		rc = retry_key(r, key, err);
	if (rc != MR_OK)
		return rc;
	bool ours = address_check(str_of(msg.from), &other) == MR_OK;
	struct delivery what = {
		.msg = &msg,
		.to = &r->who.all,
		.sender = ours ? msg.from : OPERATOR,
		.key = r->room->driver->abilities & ROOM_KEYS ? key : NULL,
	};

	rc = r->room->driver->deliver(r->room, &what, &got, err);
	if (rc != MR_OK && rc != MR_INDOUBT) {
		mr_names_done(&got.missing);
		return mr_wrap(err, "delivering '%s' again", r->letter.id);
	}
	/* In doubt it is durable all the same: whoever comes next completes it. */
	retention_after_delivery(r->room, &r->who.all);
	fill_receipt(r, &got, ret);
	if (bury(r, ret->id, &other) != MR_OK && rc == MR_OK) {
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
	enum mr_rc rc = dead_check_hand(room, self, err);

	if (rc == MR_OK)
		rc = mr_dead_get(room, id, &r.letter, r.queue, err);
	if (rc == MR_OK)
		rc = dead_owners(room, &r.letter, r.queue, &r.owners, r.again, err);
	if (rc == MR_OK && !to && is_leftover(&r)) {
		rc = room->driver->dead_drop(room, r.queue, r.letter.id, err);
		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
		*ret = (struct mr_receipt){ .repeated = true };
		(void)snprintf(ret->id, sizeof(ret->id), "%s", r.again);
		return MR_OK;
	}
	if (rc == MR_OK)
		rc = choose_recipients(&r, to, err);
	return rc == MR_OK ? deliver_again(&r, ret, err) : rc;
}
