/* SPDX-License-Identifier: MIT */
/*
 * claim.c - work: recv, then done, release, fail or extend. A claim is a hold with a lease; its token is the
 * proof that it is still ours. Each claim has a new token, so a `done` that comes after the lease ran out and
 * the mail went to someone else finds nothing (promise 4).
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/mail/mail.h"
#include "office/office.h"

#define LEASE_DEFAULT_MS ((int64_t)15 * 60 * 1000)
#define RECV_ROUNDS 20

enum mr_rc
claim_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *driver = room->driver;

	if ((driver->abilities & ROOM_HOLDS) && DRIVER_HAS(driver, hold) && DRIVER_HAS(driver, settle) &&
	    DRIVER_HAS(driver, each_hold))
		return MR_OK;
	(void)office_lacks(room, "claims on mail", err);
	return mr_hint(err, "read it instead, which files it: mailroom drain");
}

static enum mr_rc
check_lease(int64_t *lease_ms, struct mr_error *err)
{
	if (*lease_ms == 0)
		*lease_ms = LEASE_DEFAULT_MS;
	if (*lease_ms > 0 && *lease_ms <= LEASE_MAX_MS)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "a lease is more than nothing and at most 366 days");
}

void
claim_fill(const struct hold *hold, struct mr_claim *ret)
{
	*ret = (struct mr_claim){ .attempt = hold->attempt, .deadline_ms = hold->deadline_ms };
	(void)snprintf(ret->token, sizeof(ret->token), "%s", hold->token);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", hold->id);
}

/* ---- recv ---- */

struct gathering {
	struct mr_room *room;
	const char *agent;
	const struct matcher *matcher;
	bool all;
	size_t judged; /* offered, refused by the filter, or found to be broken */
	struct candidates found;
};

/* Control messages wait for a patrol; who asks for one by its type is a program. */
static bool
is_for_patrol(const struct gathering *g, const struct mr_message *msg)
{
	const struct mr_filter *filter = g->matcher->filter;
	struct mr_error broken = { 0 };

	return !(filter && filter->type) && mr_is_control(g->room, g->agent, msg, &broken);
}

static bool
gather(void *ctx, const struct mr_message *msg)
{
	struct gathering *g = ctx;

	g->judged++;
	if (!matcher_fits(g->matcher, msg) || is_for_patrol(g, msg))
		return true;
	/* They come oldest first, so nothing goes before the first urgent one. */
	return candidates_add(&g->found, msg) && (g->all || msg->priority < MR_URGENT || msg->released_ms > 0);
}

static void
count_trouble(void *ctx, const char *path, const struct mr_error *trouble)
{
	struct gathering *g = ctx;

	(void)path; /* told by those who look; work goes on without it */
	(void)trouble;
	g->judged++;
}

/* MR_EMPTY: nothing that passes. MR_BUSY: all that was listed moved on before it was read. */
static enum mr_rc
gather_work(struct mr_room *room, const char *agent, const struct matcher *matcher, bool all, struct candidates *ret,
    struct mr_error *err)
{
	struct gathering g = { .room = room, .agent = agent, .matcher = matcher, .all = all };
	struct scan_request want = {
		.folders = MR_INBOX,
		.depth = matcher->depth == SCAN_BODIES ? SCAN_BODIES : SCAN_HEADERS,
		.unread_only = true,
		.trouble = count_trouble,
		.trouble_ctx = &g,
	};
	enum mr_rc rc = room->driver->scan(room, agent, &want, gather, &g, err);

	if (rc == MR_OK && g.found.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && g.found.n == 0)
		rc = g.judged == 0 && scan_finds_names(room, agent, MR_INBOX, true) ? MR_BUSY : MR_EMPTY;
	if (rc != MR_OK) {
		candidates_done(&g.found);
		return rc;
	}
	candidates_sort(&g.found, MR_WORK_ORDER);
	*ret = g.found;
	return MR_OK;
}

/* While the harness of a bound session is seen to live, its lease does not run out. */
void
claim_describe_holder(struct mr_room *room, const struct mr_self *self, struct hold_terms *terms)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(room, find_agent) && room->driver->find_agent(room, self->agent, &agent, &ignored) == MR_OK &&
	    agent.life == self->life)
		terms->process = agent.process;
}

/* MR_EMPTY: another was quicker, or the mail cannot be read; try the next. */
static enum mr_rc
claim_one(struct mr_room *room, const struct mr_self *self, const char *id, const struct hold_terms *terms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };
	struct hold hold = { 0 };
	enum mr_rc rc = room->driver->hold(room, self->agent, id, terms, &hold, err);

	if (rc == MR_BUSY || rc == MR_NOTFOUND)
		return MR_EMPTY;
	if (rc != MR_OK)
		return rc;
	rc = room->driver->fetch(room, self->agent, id, MR_HELD, SCAN_BODIES, &msg, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc != MR_OK) {
		(void)room->driver->settle(room, &hold, SETTLE_BACK, &ignored);
		(void)office_flush(room, &ignored);
		mr_message_done(&msg);
		return rc == MR_CORRUPT || rc == MR_NOTFOUND ? MR_EMPTY : rc;
	}
	claim_fill(&hold, ret_claim);
	*ret_msg = msg;
	return MR_OK;
}

static enum mr_rc
claim_first(struct mr_room *room, const struct mr_self *self, const struct candidates *work, int64_t lease_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	struct hold_terms terms = {
		.kind = HOLD_LEASE,
		.life = self->life,
		.lease_ms = lease_ms,
		.session = self->session,
	};
	enum mr_rc rc = MR_EMPTY;

	claim_describe_holder(room, self, &terms);
	for (size_t i = 0; i < work->n && rc == MR_EMPTY; i++)
		rc = claim_one(room, self, work->v[i].id, &terms, ret_claim, ret_msg, err);
	return rc;
}

/* The first round stops at an urgent message; if another was quicker, the second goes through all. */
static enum mr_rc
recv_rounds(struct mr_room *room, const struct mr_self *self, const struct matcher *matcher, int64_t lease_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	enum mr_rc rc = MR_BUSY;

	for (int round = 0; round < 2 || (round < RECV_ROUNDS && rc == MR_BUSY); round++) {
		mr_auto(candidates_done) struct candidates work = { 0 };

		rc = gather_work(room, self->agent, matcher, round > 0, &work, err);
		if (rc == MR_OK)
			rc = claim_first(room, self, &work, lease_ms, ret_claim, ret_msg, err);
		if (rc != MR_EMPTY && rc != MR_BUSY)
			return rc;
	}
	return MR_EMPTY;
}

enum mr_rc
mr_recv(struct mr_room *room, const struct mr_self *self, const struct mr_filter *filter, int64_t lease_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	mr_auto(matcher_done) struct matcher matcher = { 0 };
	enum mr_rc rc = claim_able(room, err);

	relief_begin(&relief, room);
	if (rc == MR_OK)
		rc = check_lease(&lease_ms, err);
	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = matcher_init(&matcher, room, self->agent, filter, err);
	if (rc != MR_OK)
		return rc;
	scan_sweep(room, self->agent);
	rc = recv_rounds(room, self, &matcher, lease_ms, ret_claim, ret_msg, err);
	if (rc == MR_EMPTY)
		return mr_fail(err, MR_EMPTY, "no mail is waiting for '%s'", self->agent);
	return rc;
}

/* ---- done, release, fail, extend ---- */

static enum mr_rc
say_if_over(const struct hold *hold, enum mr_rc rc, struct mr_error *err)
{
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND,
	    "the claim '%s' on '%s' is over: lease ran out, released or done\n"
	    "the message may be with someone else now; `mailroom why %s` tells",
	    hold->token, hold->id, hold->id);
}

static enum mr_rc
settle_claim(
    struct mr_room *room, const struct hold *hold, enum settle how, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	enum mr_rc rc;

	relief_begin(&relief, room);
	rc = *hold->queue ? room->driver->queue_settle(room, hold, how, err)
			  : room->driver->settle(room, hold, how, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK)
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", hold->id);
	return say_if_over(hold, rc, err);
}

enum mr_rc
mr_claim_done(struct mr_room *room, const struct mr_self *self, const char *what, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	struct hold hold = { 0 };
	enum mr_rc rc = claim_find(room, self, what, &hold, err);

	return rc == MR_OK ? settle_claim(room, &hold, SETTLE_DONE, ret_id, err) : rc;
}

/* Somebody else alone may claim it for a time: he must be here, and one of the queue's claimers. */
static enum mr_rc
reserve_for(struct mr_room *room, const struct mr_release *how, struct hold *hold, char agent[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct mr_resolution meant = { 0 };
	enum mr_rc rc;

	if (!*hold->queue)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is your own mail: nobody else can claim it\n`mailroom send %s -m TEXT --reply-to %s` passes it on",
		    hold->id, how->to, hold->id);
	rc = mr_resolve(room, hold->agent, how->to, &meant, err);
	if (rc == MR_OK && (meant.targets.n != 1 || strchr(meant.targets.v[0], ':'))) {
		rc = mr_fail(err, MR_REFUSED, "'%.100s' is not one agent", how->to);
		(void)mr_hint(err, "--to takes the address of an agent of this room");
	}
	if (rc == MR_OK)
		rc = mr_queue_get(room, hold->queue, &queue, err);
	(void)snprintf(agent, MR_ADDRESS_MAX + 1, "%s", meant.targets.n == 1 ? meant.targets.v[0] : "");
	mr_resolution_done(&meant);
	if (rc != MR_OK)
		return rc;
	if (!office_lets_claim(queue.claimers, agent))
		return mr_fail(err, MR_REFUSED, "'%s' may not claim from the queue '%s'\nits claimers are '%.120s'",
		    agent, queue.name, queue.claimers);
	hold->only_for = agent;
	hold->only_until_ms = clock_now_ms() + (how->to_ms > 0 ? how->to_ms : queue.lease_ms);
	return MR_OK;
}

enum mr_rc
mr_claim_put_back(struct mr_room *room, const struct mr_self *self, const char *what, const struct mr_release *how,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	struct hold hold = { 0 };
	char agent[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = claim_find(room, self, what, &hold, err);

	if (rc == MR_OK && how->to_ms > LEASE_MAX_MS)
		rc = mr_fail(err, MR_REFUSED, "work is reserved for at most 366 days");
	if (rc == MR_OK && how->to)
		rc = reserve_for(room, how, &hold, agent, err);
	if (rc == MR_OK && how->reason && !*hold.queue) {
		(void)mr_fail(err, MR_REFUSED, "'%s' is your own mail: nobody would read the reason", hold.id);
		rc = mr_hint(err, "`mailroom fail %s --reason TEXT` tells its sender, and ends it", what);
	}
	if (rc != MR_OK)
		return rc;
	hold.reason = how->reason && *how->reason ? how->reason : NULL;
	return settle_claim(room, &hold, how->unseen ? SETTLE_BACK : SETTLE_LATER, ret_id, err);
}

enum mr_rc
mr_claim_release(struct mr_room *room, const struct mr_self *self, const char *what, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	return mr_claim_put_back(room, self, what, &(struct mr_release){ 0 }, ret_id, err);
}

static enum mr_rc
fetch_claimed(struct mr_room *room, const struct hold *hold, struct mr_message *ret, struct mr_error *err)
{
	if (*hold->queue)
		return room->driver->queue_fetch(room, hold->queue, hold->id, ret, err);
	return room->driver->fetch(room, hold->agent, hold->id, MR_HELD, SCAN_HEADERS, ret, err);
}

enum mr_rc
mr_claim_fail(struct mr_room *room, const struct mr_self *self, const char *what, const char *reason,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct hold hold = { 0 };
	char key[16 + MR_TOKEN_LEN];
	enum mr_rc rc = claim_find(room, self, what, &hold, err);

	if (rc != MR_OK)
		return rc;
	rc = fetch_claimed(room, &hold, &msg, err);
	/* The bounce first: killed in between, the mail is tried again and at worst bounces twice. The other
	 * way round it would be dead and nobody told. */
	(void)snprintf(key, sizeof(key), "fail-%s", hold.token);
	if (rc == MR_OK)
		rc = bounce_send(room, self, &msg, reason ? reason : "", *hold.queue ? key : NULL, err);
	if (rc != MR_OK)
		return say_if_over(&hold, rc, err);
	*err = (struct mr_error){ 0 };
	rc = settle_claim(room, &hold, SETTLE_DEAD, ret_id, err);
	if (rc == MR_OK && bounce_sender_gone(room, &msg))
		(void)mr_hint(err, "its sender '%.100s' is gone: nobody was told", msg.from);
	return rc;
}

/* The answer first: killed in between, the claim is still there, and who finishes it with the same words sends
 * nothing twice, because the claim is the key. The other way round the result could be lost. */
static enum mr_rc
send_result(struct mr_room *room, const struct mr_self *self, const struct hold *hold, const char *sender,
    const struct mr_draft *result, char ret_answer[MR_ID_LEN + 1], struct mr_error *err)
{
	char key[16 + MR_TOKEN_LEN], to[MR_ADDRESS_MAX + 16];
	const char *const recipients[] = { to, NULL };
	struct mr_draft draft = {
		.to = recipients, .body = result->body, .body_len = result->body_len, .type = result->type, .key = key
	};
	struct mr_receipt receipt = { 0 };

	(void)snprintf(key, sizeof(key), "done-%s", hold->token);
	/* Not mr_reply's default: an answer to work that one sent oneself would be new work of the queue. */
	(void)snprintf(to, sizeof(to), "agent:%.160s", sender);
	enum mr_rc rc = mr_reply(room, self, hold->id, &draft, false, &receipt, err);
	(void)snprintf(ret_answer, MR_ID_LEN + 1, "%s", receipt.id);
	mr_receipt_done(&receipt);
	if (rc == MR_REFUSED && strstr(err->message, key)) {
		(void)mr_fail(
		    err, MR_REFUSED, "a result of this claim on '%s' was sent before, in other words", hold->id);
		(void)mr_hint(err, "`mailroom done %s` without a text finishes the work", hold->token);
	}
	return rc;
}

enum mr_rc
mr_claim_answer(struct mr_room *room, const struct mr_self *self, const char *what, const struct mr_draft *result,
    char ret_id[MR_ID_LEN + 1], char ret_answer[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct hold hold = { 0 };
	enum mr_rc rc = claim_find(room, self, what, &hold, err);

	ret_answer[0] = '\0';
	if (rc != MR_OK)
		return rc;
	rc = fetch_claimed(room, &hold, &msg, err);
	if (rc != MR_OK)
		return say_if_over(&hold, rc, err);
	bool gone = bounce_sender_gone(room, &msg);
	if (!gone)
		rc = send_result(room, self, &hold, msg.from, result, ret_answer, err);
	if (rc != MR_OK) /* also in doubt: it will be completed, and the claim is still there to be done */
		return rc;
	*err = (struct mr_error){ 0 };
	rc = settle_claim(room, &hold, SETTLE_DONE, ret_id, err);
	if (rc == MR_NOTFOUND && *ret_answer) /* the lease ran out in the meantime */
		(void)mr_hint(err, "your answer %s was sent; another may do the work once more", ret_answer);
	if (rc == MR_OK && gone)
		(void)mr_hint(err, "its sender '%.100s' is gone: nobody was told", msg.from);
	return rc;
}

enum mr_rc
mr_claim_extend(struct mr_room *room, const struct mr_self *self, const char *what, int64_t lease_ms,
    struct mr_claim *ret, struct mr_error *err)
{
	struct hold hold = { 0 };
	enum mr_rc rc = check_lease(&lease_ms, err);

	if (rc == MR_OK && !ROOM_HAS(room, extend))
		rc = office_lacks(room, "way to extend a claim", err);
	if (rc == MR_OK)
		rc = claim_find(room, self, what, &hold, err);
	if (rc != MR_OK)
		return rc;
	rc = *hold.queue ? room->driver->queue_extend(room, &hold, lease_ms, err)
			 : room->driver->extend(room, &hold, lease_ms, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK)
		claim_fill(&hold, ret);
	return say_if_over(&hold, rc, err);
}
