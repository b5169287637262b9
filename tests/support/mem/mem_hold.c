/* SPDX-License-Identifier: MIT */
/*
 * mem_hold.c - mail that is being shown or worked on.
 *
 * A hold is known by agent, id, token and attempt together: a token alone may serve all holds of a
 * process, and the attempt is what makes a late settle find nothing after the mail went round again.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "support/mem/mem.h"

static void
put_back(struct mem_copy *copy)
{
	copy->folder = MR_INBOX;
	copy->attempt = copy->hold.attempt;
}

size_t
mem_hold_return_all(struct mem_box *box)
{
	size_t returned = 0;

	for (size_t i = 0; i < box->copies_n; i++) {
		if (box->copies[i].folder != MR_HELD)
			continue;
		put_back(&box->copies[i]);
		returned++;
	}
	return returned;
}

enum mr_rc
mem_hold(struct mr_room *room, const char *agent, const char *id, const struct claim_terms *terms, struct claim *ret,
    struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), agent, &box, err) != MR_OK ||
	    mem_check_life(room, agent, terms->life, NULL, NULL, err) != MR_OK)
		return err->code;
	struct mem_copy *copy = mem_box_get(box, id, MR_INBOX | MR_HELD);

	if (copy && copy->folder == MR_HELD)
		return mr_fail(err, MR_BUSY, "message '%s' is held by another", id);
	/* Seen since the caller looked: another command showed it, and twice would be once too often. */
	if (!copy || (copy->flags & MR_SEEN))
		return mr_fail(err, MR_NOTFOUND, "no unread message '%s' in the inbox of '%s'", id, agent);

	struct claim hold = {
		.life = terms->life, .attempt = copy->attempt + 1, .kind = terms->kind, .flags = copy->flags
	};

	(void)snprintf(hold.agent, sizeof hold.agent, "%s", agent);
	(void)snprintf(hold.box, sizeof hold.box, "%s", agent);
	memcpy(hold.id, copy->id, sizeof hold.id);
	token_new(hold.token);
	if (terms->kind == CLAIM_LEASE) {
		hold.deadline_ms = clock_now_ms() + terms->lease_ms;
		copy->boot_deadline_ms = clock_boot_ms() + terms->lease_ms;
	}
	copy->process = terms->process;
	copy->hold = hold;
	copy->folder = MR_HELD;
	*ret = hold;
	return MR_OK;
}

static enum mr_rc
find_held(struct mr_room *room, const struct claim *hold, struct mem_box **ret_box, struct mem_copy **ret,
    struct mr_error *err)
{
	struct mem_box *box = mem_box_any(mem_of(room), hold->agent);
	struct mem_copy *copy = box ? mem_box_get(box, hold->id, MR_HELD) : NULL;

	if (!copy || strcmp(copy->hold.token, hold->token) != 0 || copy->hold.attempt != hold->attempt) {
		(void)mr_fail(err, MR_NOTFOUND, "hold '%s' on message '%s' is over", hold->token, hold->id);
		return mr_hint(err, "it ran out, was settled or taken over; receive the message again");
	}
	*ret_box = box;
	*ret = copy;
	return MR_OK;
}

enum mr_rc
mem_mail_settle(struct mr_room *room, const struct claim *hold, enum settle how, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (find_held(room, hold, &box, &copy, err) != MR_OK)
		return err->code;
	switch (how) {
	case SETTLE_BACK:
		put_back(copy);
		break;
	case SETTLE_LATER: /* no attempt */
		copy->folder = MR_INBOX;
		copy->released_ms = clock_now_ms();
		break;
	case SETTLE_SEEN:
		copy->flags |= MR_SEEN;
		copy->folder = MR_INBOX;
		break;
	case SETTLE_ARCHIVE:
		copy->flags |= MR_SEEN;
		copy->folder = MR_ARCHIVE;
		break;
	case SETTLE_DONE:
		copy->flags |= MR_SEEN | MR_ACKED;
		copy->folder = MR_ARCHIVE;
		break;
	case SETTLE_DEAD:
		return mem_box_move(box, copy, &mem_of(room)->dead, MR_DEAD, err);
	}
	return MR_OK;
}

enum mr_rc
mem_mail_extend(struct mr_room *room, struct claim *hold, int64_t lease_ms, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (find_held(room, hold, &box, &copy, err) != MR_OK)
		return err->code;
	if (copy->hold.kind != CLAIM_LEASE)
		return mr_fail(
		    err, MR_REFUSED, "hold '%s' has no deadline: it lasts as long as its process", hold->token);
	copy->hold.deadline_ms = clock_now_ms() + lease_ms;
	copy->boot_deadline_ms = clock_boot_ms() + lease_ms;
	hold->deadline_ms = copy->hold.deadline_ms;
	return MR_OK;
}

enum mr_rc
mem_each_hold(struct mr_room *room, const char *agent, bool (*fn)(void *ctx, const struct queue_item *item), void *ctx,
    struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), agent, &box, err) != MR_OK)
		return err->code;
	struct claim *held = calloc(box->copies_n + 1, sizeof *held);
	size_t n = 0;

	if (!held)
		return mr_nomem(err);
	for (size_t i = 0; i < box->copies_n; i++)
		if (box->copies[i].folder == MR_HELD)
			held[n++] = box->copies[i].hold;
	for (size_t i = 0; i < n; i++) {
		struct queue_item item = { .state = QUEUE_CLAIMED, .attempt = held[i].attempt, .claim = &held[i] };

		memcpy(item.id, held[i].id, sizeof item.id);
		if (!fn(ctx, &item))
			break;
	}
	free(held);
	return MR_OK;
}

/* A process hold cannot outlive the room here: both end with this process. */
bool
mem_lease_is_over(const struct claim *hold, int64_t boot_deadline_ms, const struct mr_process *process)
{
	if (hold->kind != CLAIM_LEASE || clock_boot_ms() < boot_deadline_ms)
		return false;
	return process->pid == 0 || process_state(process) != PROCESS_ALIVE || process_codex(process) == CODEX_SHARED;
}

enum mr_rc
mem_sweep(struct mr_room *room, const char *agent, struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (!agent) /* nothing is ever left behind */
		return MR_OK;
	if (mem_box_find(mem_of(room), agent, &box, err) != MR_OK)
		return err->code;
	for (size_t i = 0; i < box->copies_n; i++) {
		struct mem_copy *copy = &box->copies[i];

		if (copy->folder == MR_HELD && mem_lease_is_over(&copy->hold, copy->boot_deadline_ms, &copy->process))
			put_back(copy);
	}
	return MR_OK;
}
