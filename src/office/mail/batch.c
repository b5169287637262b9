/* SPDX-License-Identifier: MIT */
/*
 * batch.c - many messages at once. Each is checked and composed by itself (outgoing.c); those that are one plain
 * message for one agent are handed to the driver together, the others are sent where they stand, after what came before
 * them.
 */
#include "base/error.h"
#include "office/mail/outgoing.h"
#include "message/message.h"

/* At a time: files that are open (the driver takes fewer where the process may not open so many), bytes that are
 * written and not flushed. */
#define GROUP_MAX 1000
#define GROUP_BYTES ((size_t)8 << 20)

struct group { /* written together; letters[i] is told in *sent[i] */
	struct mr_room *room;
	struct outgoing *letters; /* one more than n may be in use */
	struct parcel *parcels;
	struct mr_sent **sent;
	size_t n, bytes;
};

static void
group_done(struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		outgoing_done(&g->letters[i]);
	free(g->letters);
	free(g->parcels);
	free(g->sent);
}

static bool
group_init(struct group *g, size_t n)
{
	size_t cap = n < GROUP_MAX ? n : GROUP_MAX;

	g->letters = calloc(cap, sizeof(*g->letters));
	g->parcels = calloc(cap, sizeof(*g->parcels));
	g->sent = calloc(cap, sizeof(struct mr_sent *));
	return g->letters && g->parcels && g->sent;
}

/* What was tried in vain on the way to a success is nobody's business. */
static void
tell(struct mr_sent *sent, enum mr_rc rc)
{
	sent->rc = rc;
	if (rc == MR_OK)
		sent->error = (struct mr_error){ 0 };
}

static void
flush(struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		g->parcels[i] = (struct parcel){ .what = outgoing_delivery(&g->letters[i]) };
	if (g->n > 0)
		g->room->driver->deliver_many(g->room, g->parcels, g->n);
	for (size_t i = 0; i < g->n; i++) {
		struct parcel *p = &g->parcels[i];

		g->sent[i]->error = p->err;
		tell(g->sent[i], p->rc);
		if (p->rc == MR_OK || p->rc == MR_INDOUBT)
			outgoing_after(&g->letters[i], p->rc, &p->got, &g->sent[i]->receipt);
		else
			mr_names_done(&p->got.missing);
		outgoing_done(&g->letters[i]);
	}
	g->n = g->bytes = 0;
}

/* Needs more than one link and one flush, or must see what became of those before it. */
static bool
goes_alone(const struct outgoing *l)
{
	const struct mr_draft *d = l->draft;
	const char *to = l->who.all.n == 1 ? l->who.all.v[0] : "";

	return !ROOM_HAS(l->room, deliver_many) || l->who.all.n != 1 || strncmp(to, "queue:", 6) == 0 ||
	       strncmp(to, "channel:", 8) == 0 || l->who.away.n > 0 || l->who.missing || d->dry_run || d->key ||
	       d->replace_key || d->reply_path || l->msg.by_ms != 0 || mr_room_setting(l->room, "Hygiene") ||
	       mr_room_setting(l->room, "Hygiene-Policy");
}

static void
take(struct group *g, const struct mr_self *self, const struct mr_draft *draft, struct mr_sent *ret)
{
	struct outgoing *l = &g->letters[g->n];

	*l = (struct outgoing){ .room = g->room, .self = self, .draft = draft, .before = g->letters, .before_n = g->n };
	ret->rc = outgoing_prepare(l, &ret->error);
	if (ret->rc != MR_OK) {
		outgoing_done(l);
		return;
	}
	if (!goes_alone(l)) {
		g->bytes += l->msg.body_len;
		g->sent[g->n++] = ret;
		return;
	}
	flush(g); /* what came before comes before; this letter stays where it is */
	tell(ret, outgoing_send(l, &ret->receipt, &ret->error));
	outgoing_done(l);
}

void
mr_send_many(
    struct mr_room *room, const struct mr_self *self, const struct mr_draft *drafts, size_t n, struct mr_sent *ret)
{
	mr_auto(group_done) struct group g = { .room = room };
	bool able = n > 0 && group_init(&g, n);

	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct mr_sent){ 0 };
		if (able)
			take(&g, self, &drafts[i], &ret[i]);
		else
			ret[i].rc = mr_nomem(&ret[i].error);
		if (g.n == GROUP_MAX || g.bytes >= GROUP_BYTES)
			flush(&g);
	}
	flush(&g);
}

void
mr_sent_done(struct mr_sent *sent)
{
	if (!sent)
		return;
	mr_receipt_done(&sent->receipt);
	*sent = (struct mr_sent){ 0 };
}
