/* SPDX-License-Identifier: MIT */
/*
 * mem_claim.c - claims on the work of a queue. One is known by queue, id, token and attempt together, like a hold.
 * What ran out stays claimed until somebody puts it back: how often that may happen is the office's to know.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "support/mem/mem.h"

static unsigned
count_live(const struct mem_queue *queue)
{
	unsigned live = 0;

	for (size_t i = 0; i < queue->work_n; i++) {
		const struct mem_work *work = &queue->work[i];

		live += work->state == QUEUE_CLAIMED &&
			!mem_lease_is_over(&work->hold, work->boot_deadline_ms, &work->process);
	}
	return live;
}

/* Since when it waits; released work has the whole way before it again. */
static int64_t
waits_since(const struct mem_work *work)
{
	return work->released_ms > 0 ? work->released_ms : id_time_ms(work->id);
}

static bool
comes_before(const struct mem_work *a, const struct mem_work *b, bool by_priority)
{
	if (by_priority && a->priority != b->priority)
		return a->priority > b->priority;
	return waits_since(a) < waits_since(b);
}

static bool
is_for(const struct mem_work *work, const char *claimer, bool own_too)
{
	if (work->only_for[0] != '\0' && strcmp(work->only_for, claimer) != 0 && clock_now_ms() < work->only_until_ms)
		return false;
	return own_too || work->released_ms == 0 || strcmp(work->released_by, claimer) != 0;
}

static struct mem_work *
choose(struct mem_queue *queue, const char *claimer, bool by_priority, bool own_too)
{
	struct mem_work *best = NULL;

	for (size_t i = 0; i < queue->work_n; i++) {
		struct mem_work *work = &queue->work[i];

		if (mem_work_state(work) != QUEUE_READY || !is_for(work, claimer, own_too))
			continue;
		if (!best || comes_before(work, best, by_priority))
			best = work;
	}
	return best;
}

enum mr_rc
mem_queue_claim(
    struct mr_room *room, const char *queue, const struct claim_terms *terms, struct claim *ret, struct mr_error *err)
{
	struct mem_queue *q = NULL;

	if (mem_queue_find(mem_of(room), queue, &q, err) != MR_OK)
		return err->code;
	if (terms->max_claims > 0 && count_live(q) >= terms->max_claims)
		return mr_fail(
		    err, MR_BUSY, "queue '%s' has %u live claims, which is its limit", queue, terms->max_claims);
	struct mem_work *work = choose(q, terms->claimer, terms->by_priority, false);

	if (!work) /* what the claimer released itself: only when there is nothing else */
		work = choose(q, terms->claimer, terms->by_priority, true);

	if (!work)
		return mr_fail(err, MR_EMPTY, "nothing is ready in queue '%s'", queue);
	struct claim hold = {
		.life = terms->life, .attempt = ++work->attempt, .kind = terms->kind, .since_ms = clock_now_ms()
	};

	(void)snprintf(hold.agent, sizeof hold.agent, "%s", terms->claimer);
	(void)snprintf(hold.box, sizeof hold.box, "queue:%s", queue);
	memcpy(hold.id, work->id, sizeof hold.id);
	token_new(hold.token);
	if (hold.kind == CLAIM_LEASE) {
		hold.deadline_ms = hold.since_ms + terms->lease_ms;
		work->boot_deadline_ms = clock_boot_ms() + terms->lease_ms;
	}
	work->process = terms->process;
	work->hold = hold;
	work->state = QUEUE_CLAIMED;
	*ret = hold;
	return MR_OK;
}

static enum mr_rc
find_claim(struct mr_room *room, const struct claim *hold, struct mem_work **ret, struct mr_error *err)
{
	struct mem_queue *q = NULL;
	struct mr_error ignored = { 0 };
	struct mem_work *work = NULL;

	if (mem_queue_find(mem_of(room), box_queue(hold->box), &q, &ignored) == MR_OK)
		work = mem_work_get(q, hold->id);
	if (!work || work->state != QUEUE_CLAIMED || strcmp(work->hold.token, hold->token) != 0 ||
	    work->hold.attempt != hold->attempt) {
		(void)mr_fail(err, MR_NOTFOUND, "that claim on '%s' is over", hold->id);
		return mr_hint(err, "it ran out or was settled; another agent may be at work on it");
	}
	*ret = work;
	return MR_OK;
}

enum mr_rc
mem_queue_settle(struct mr_room *room, const struct claim *hold, enum settle how, struct mr_error *err)
{
	struct mem_work *work = NULL;

	if (find_claim(room, hold, &work, err) != MR_OK)
		return err->code;
	switch (how) {
	case SETTLE_BACK:
		work->state = QUEUE_READY;
		return MR_OK;
	case SETTLE_LATER:
		work->state = QUEUE_READY;
		work->attempt = hold->attempt - 1;
		work->released_ms = clock_now_ms();
		(void)snprintf(work->released_by, sizeof work->released_by, "%s", hold->agent);
		(void)snprintf(work->only_for, sizeof work->only_for, "%s", hold->only_for ? hold->only_for : "");
		work->only_until_ms = hold->only_until_ms;
		return MR_OK;
	case SETTLE_DONE:
		work->state = QUEUE_DONE;
		return MR_OK;
	case SETTLE_DEAD:
		work->state = QUEUE_FAILED;
		return MR_OK;
	case SETTLE_SEEN:
	case SETTLE_ARCHIVE:
		break;
	}
	return mr_fail(err, MR_REFUSED, "work of a queue ends as done or failed, or goes back");
}

enum mr_rc
mem_queue_extend(struct mr_room *room, struct claim *hold, int64_t lease_ms, struct mr_error *err)
{
	struct mem_work *work = NULL;

	if (find_claim(room, hold, &work, err) != MR_OK)
		return err->code;
	if (work->hold.kind != CLAIM_LEASE) /* it lasts as long as its process */
		return MR_OK;
	work->hold.deadline_ms = clock_now_ms() + lease_ms;
	work->boot_deadline_ms = clock_boot_ms() + lease_ms;
	hold->deadline_ms = work->hold.deadline_ms;
	return MR_OK;
}

/* ---- Either kind of box ---- */

enum mr_rc
mem_claim(struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms, struct claim *ret,
    struct mr_error *err)
{
	const char *queue = box_queue(box);

	return queue ? mem_queue_claim(room, queue, terms, ret, err) : mem_hold(room, box, id, terms, ret, err);
}

enum mr_rc
mem_settle(struct mr_room *room, const struct claim *claim, enum settle how, struct mr_error *err)
{
	return (box_queue(claim->box) ? mem_queue_settle : mem_mail_settle)(room, claim, how, err);
}

enum mr_rc
mem_extend(struct mr_room *room, struct claim *claim, int64_t lease_ms, struct mr_error *err)
{
	return (box_queue(claim->box) ? mem_queue_extend : mem_mail_extend)(room, claim, lease_ms, err);
}

enum mr_rc
mem_each_claim(struct mr_room *room, const char *box, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	const char *queue = box_queue(box);

	return queue ? mem_queue_each(room, queue, states, fn, ctx, err) : mem_each_hold(room, box, fn, ctx, err);
}

enum mr_rc
mem_find_claim(struct mr_room *room, const char *token, struct claim *ret, struct mr_error *err)
{
	struct mem *mem = mem_of(room);

	for (size_t i = 0; i < mem->boxes_n; i++) {
		for (size_t k = 0; k < mem->boxes[i]->copies_n; k++) {
			const struct mem_copy *copy = &mem->boxes[i]->copies[k];

			if (copy->folder == MR_HELD && strcmp(copy->hold.token, token) == 0) {
				*ret = copy->hold;
				return MR_OK;
			}
		}
	}
	for (size_t i = 0; i < mem->queues_n; i++) {
		for (size_t k = 0; k < mem->queues[i].work_n; k++) {
			const struct mem_work *work = &mem->queues[i].work[k];

			if (work->state != QUEUE_CLAIMED || strcmp(work->hold.token, token) != 0)
				continue;
			*ret = work->hold;
			ret->over = mem_lease_is_over(&work->hold, work->boot_deadline_ms, &work->process);
			return MR_OK;
		}
	}
	return mr_fail(err, MR_NOTFOUND, "no claim '%s': it is over, or never existed", token);
}

enum mr_rc
mem_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	const char *queue = box_queue(box);

	if (!box[0])
		return MR_OK;
	return queue ? mem_queue_make(room, queue, err) : mem_channel_make(room, mem_target(box, "channel:"), err);
}

enum mr_rc
mem_remove_box(struct mr_room *room, const char *box, bool force, size_t *ret_dead, struct mr_error *err)
{
	const char *queue = box_queue(box);

	if (!strchr(box, ':')) /* nothing is lost: the mail goes to the dead letters */
		return mem_remove_agent(room, box, ret_dead, err);
	return queue ? mem_queue_remove(room, queue, force, ret_dead, err)
		     : mem_channel_remove(room, mem_target(box, "channel:"), err);
}
