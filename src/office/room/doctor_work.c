/* SPDX-License-Identifier: MIT */
/* doctor_work.c - work in the hands of the dead, and links that lead nowhere. */
#include "base/error.h"
#include "office/room/doctor.h"
#include "office/link/link.h"

/* ---- Claims ---- */

struct claim_count {
	struct mr_room *room;
	size_t live, over;
	char agent[MR_ADDRESS_MAX + 1]; /* of the first that is over */
};

static bool
count_claim(void *ctx, const struct queue_item *item)
{
	struct claim_count *c = ctx;

	if (!office_claim_over(c->room, item->claim)) {
		c->live++;
		return true;
	}
	if (c->over++ == 0)
		memcpy(c->agent, item->claim->agent, sizeof c->agent);
	return true;
}

static enum mr_rc
examine_queue(struct examination *x, const char *name, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct claim_count before = { .room = x->room }, after = { .room = x->room };
	enum mr_rc rc = mr_queue_get(x->room, name, &queue, err);

	if (rc == MR_OK)
		rc = x->room->driver->each_claim(
		    x->room, room_box("queue", name).z, QUEUE_CLAIMED, count_claim, &before, err);
	if (rc != MR_OK || before.over == 0)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (x->f.fix) {
		office_queue_sweep(x->room, &queue);
		rc = x->room->driver->each_claim(
		    x->room, room_box("queue", name).z, QUEUE_CLAIMED, count_claim, &after, err);
	}
	bool fixed = x->f.fix && rc == MR_OK && after.over == 0;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "claims",
		.path = name,
		.why = "whoever claimed it was killed, let its time run out, or was taken over",
		.fix = fixed ? "it can be claimed again, or is a dead letter if its attempts are used up"
			     : "the next claim puts it back, and so does mailroom doctor --fix",
		.fixed = fixed },
	    "queue '%s' has %zu claims that are over, the first of '%s'", name, before.over, before.agent);
	return rc;
}

enum mr_rc
doctor_claims(struct examination *x, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error none = { 0 };

	if (office_queue_able(x->room, &none) != MR_OK)
		return MR_OK;
	enum mr_rc rc = settings_names(x->room, "queue", &queues, err);

	for (size_t i = 0; rc == MR_OK && i < queues.n; i++) {
		struct mr_error why = { 0 };

		if (examine_queue(x, queues.v[i], &why) != MR_OK)
			findings_say(&x->f,
			    &(struct mr_finding){ .severity = MR_PROBLEM,
				.code = "queues",
				.path = queues.v[i],
				.why = "nobody can claim from it",
				.fix = why.hint },
			    "%s", why.message);
	}
	return rc;
}

/* ---- Links ---- */

static bool
examine_link(void *ctx, const struct mr_link *link)
{
	struct examination *x = ctx;
	struct mr_room *there = NULL;
	struct mr_error err = { 0 };
	enum mr_rc rc = link_open(x->room, link, &there, &err);

	mr_room_close(there);
	if (rc == MR_OK ||
	    !mr_link_allowed(x->room, link)) /* one that is not allowed is told with the other leftovers */
		return true;
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "links",
		.path = link->name,
		.why = "mail for it waits until it is there again; what came back from it is not lost",
		.fix = err.hint },
	    rc == MR_NOTFOUND ? "the room of %s" : "%s", err.message);
	return true;
}

/* A removal of a link takes its queue first; whatever else leaves one alone leaves mail that nobody carries. */
static enum mr_rc
examine_link_queues(struct examination *x, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	enum mr_rc rc = settings_names(x->room, "queue", &queues, err);

	for (size_t i = 0; rc == MR_OK && i < queues.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
		mr_auto(buf_done) struct buf target = BUF_INIT;
		struct mr_error ignored = { 0 };

		buf_addf(&target, "queue:%s", queues.v[i]);
		const char *link = link_of_target(buf_z(&target));

		if (!link || mr_queue_get(x->room, queues.v[i], &queue, &ignored) != MR_OK ||
		    strcmp(queue.claimers, LINK_CLAIMERS) != 0 || link_exists(x->room, link))
			continue;
		findings_say(&x->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "links",
			.path = queues.v[i],
			.why = "the link was removed by hand, or its making was cut off: nobody carries what is in it",
			.fix = "make the link again (mailroom link), or mailroom queue delete --force" },
		    "the queue '%s' belongs to a link that is gone", queues.v[i]);
	}
	return rc;
}

enum mr_rc
doctor_links(struct examination *x, struct mr_error *err)
{
	struct mr_error none = { 0 };

	if (link_able(x->room, &none) != MR_OK)
		return MR_OK;
	enum mr_rc rc = mr_link_each(x->room, examine_link, x, err);

	if (rc == MR_CORRUPT) {
		findings_say(&x->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "links",
			.path = "links",
			.why = "nothing is carried over it",
			.fix = "look at that file; mailroom unlink --force forgets it" },
		    "%s", err->message);
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	return rc == MR_OK ? examine_link_queues(x, err) : rc;
}
