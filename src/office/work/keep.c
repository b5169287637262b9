/* SPDX-License-Identifier: MIT */
/*
 * keep.c - the work in an agent's hands stays there while it lives. Where its process can be seen the lease does not
 * run out anyway; where it cannot (a pid namespace, another machine's view of a shared room) its hooks are the sign of
 * life. A hook runs often, so a lease is renewed only when half of it is over.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

#define OWN_MAIL_LEASE_MS ((int64_t)15 * 60 * 1000)

struct keeping {
	struct mr_room *room;
	const struct mr_self *self;
	struct claims due;
};

static bool
note_if_due(void *ctx, const struct hold *hold)
{
	struct keeping *k = ctx;
	int64_t left_ms = hold->deadline_ms - clock_now_ms();

	return hold->kind != HOLD_LEASE || hold->life != k->self->life || left_ms >= OWN_MAIL_LEASE_MS / 2 ||
	       claims_add(&k->due, hold);
}

static void
renew_work(struct keeping *k, const struct hold *hold)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct mr_error ignored = { 0 };

	if (hold->life != k->self->life || mr_queue_get(k->room, hold->queue, &queue, &ignored) != MR_OK ||
	    hold->deadline_ms - clock_now_ms() >= queue.lease_ms / 2)
		return;
	struct hold renewed = *hold;

	if (k->room->driver->queue_extend(k->room, &renewed, queue.lease_ms, &ignored) == MR_OK)
		(void)office_flush(k->room, &ignored);
}

enum mr_rc
mr_claims_keep(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(claims_done) struct claims work = { 0 };
	struct keeping k = { .room = room, .self = self };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (claim_able(room, &ignored) != MR_OK || !ROOM_HAS(room, extend))
		return MR_OK;
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = room->driver->each_hold(room, self->agent, note_if_due, &k, err);
	for (size_t i = 0; i < k.due.n && rc == MR_OK; i++)
		(void)room->driver->extend(room, &k.due.v[i], OWN_MAIL_LEASE_MS, &ignored); /* over meanwhile */
	if (rc == MR_OK && k.due.n > 0)
		rc = office_flush(room, err);
	claims_done(&k.due);
	if (rc == MR_OK)
		rc = claim_held_work(room, self->agent, NULL, &work, err);
	for (size_t i = 0; i < work.n && rc == MR_OK; i++)
		renew_work(&k, &work.v[i]);
	return rc;
}
