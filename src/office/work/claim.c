/* SPDX-License-Identifier: MIT */
/*
 * claim.c - work: recv, then done, release, fail or extend. The token of a claim proves that it is still ours. Each
 * claim has a new token, so a `done` that comes after the lease expired and another agent got the mail finds nothing
 * (promise 4).
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/id.h"
#include "office/address/address.h"
#include "office/mail/mail.h"
#include "office/work/work.h"

#define RECV_ROUNDS 20
#define FEW 64 /* messages among which a recv usually finds its own */

static enum mr_rc
claim_able(const struct mr_room *room, struct mr_error *err)
{
	if (room->driver->abilities & ROOM_HOLDS)
		return MR_OK;
	(void)room_lacks(room, "claims on mail", err);
	return mr_hint(err, "read it instead, which files it: mailroom drain");
}

enum mr_rc
lease_check(int64_t lease_ms, struct mr_error *err)
{
	if (lease_ms >= 0 && lease_ms <= LEASE_MAX_MS)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "a lease must be between 1 ms and 366 days");
}

void
claim_fill(const struct claim *claim, struct mr_claim *ret)
{
	*ret = (struct mr_claim){ .attempt = claim->attempt, .deadline_ms = claim->deadline_ms };
	(void)snprintf(ret->token, sizeof(ret->token), "%s", claim->token);
	(void)snprintf(ret->id, sizeof(ret->id), "%s", claim->id);
}

/* ---- Leases of this life ---- */

/* Work that an agent holds stays with it while it lives. If its process can be seen, the lease does not run out anyway;
 * if not (another pid namespace, another machine's view of a shared room), its hooks are the sign of life. A hook runs
 * often, so a lease is renewed only when half of it is over. */
enum mr_rc
mr_claims_keep(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(claims_done) struct claims held = { 0 };
	bool renewed = false;

	if (!(room->driver->abilities & ROOM_HOLDS))
		return MR_OK;
	TRY(office_not_fenced(room, self, err));
	TRY(claims_held(room, self, &held, err));
	for (size_t i = 0; i < held.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { .lease_ms = LEASE_DEFAULT_MS };
		const char *name = box_queue(held.v[i].box);

		if ((name && mr_queue_get(room, name, &queue, IGNORED) != MR_OK) ||
		    held.v[i].deadline_ms - clock_now_ms() >= queue.lease_ms / 2)
			continue;
		(void)room->driver->extend(room, &held.v[i], queue.lease_ms, IGNORED); /* over meanwhile */
		renewed = true;
	}
	return renewed ? office_flush(room, err) : MR_OK;
}

/* ---- recv ---- */

struct claim_terms
claim_terms_of(struct mr_room *room, const struct mr_self *self, int64_t lease_ms)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct claim_terms terms = { .kind = CLAIM_LEASE,
		.claimer = self->agent,
		.life = self->life,
		.lease_ms = lease_ms,
		.session = self->session };

	if (room->driver->find_agent(room, self->agent, &agent, IGNORED) == MR_OK && agent.life == self->life)
		terms.process = agent.process;
	return terms;
}

struct receiving { /* a recv, to which a scan offers mail in work order */
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_filter *filter;
	struct claim_terms terms;
	struct claim claim;
	struct mr_message msg;
	struct mr_error err;
	enum mr_rc rc;        /* of the last message; MR_EMPTY: it was not for us */
	bool offered, beaten; /* anything was offered; another agent took some of it meanwhile */
};

/* The name alone does not identify a control message that an earlier version delivered, nor this life's note to the
 * next one. Those wait for a patrol and for that life; a program may ask for one by its type. An unreadable message is
 * no work either. */
static bool
is_control(struct receiving *r, const struct mr_message *offered)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (offered->own || r->filter->type)
		return false;
	enum mr_rc rc =
	    r->room->driver->fetch(r->room, r->self->agent, offered->id, MR_INBOX, SCAN_HEADERS, &msg, IGNORED);

	bool for_next = rc == MR_OK && r->filter->life > 0 && msg.sender_life == r->filter->life &&
			successor_is_own(&msg, r->self->agent);

	return rc == MR_CORRUPT || for_next || (rc == MR_OK && mr_is_control(r->room, r->self->agent, &msg, IGNORED));
}

/* False ends the scan: we have it, or no other can be had. */
static bool
take_offered(void *ctx, const struct mr_message *offered)
{
	struct receiving *r = ctx;
	const struct room_driver *driver = r->room->driver;

	r->offered = true;
	r->rc = MR_EMPTY;
	if (is_control(r, offered))
		return true;
	if (!r->terms.claimer)
		r->terms = claim_terms_of(r->room, r->self, r->terms.lease_ms);
	r->rc = driver->claim(r->room, r->self->agent, offered->id, &r->terms, &r->claim, &r->err);
	if (r->rc == MR_BUSY || r->rc == MR_NOTFOUND) {
		r->beaten = true;
		r->rc = MR_EMPTY;
	}
	if (r->rc != MR_OK)
		return r->rc == MR_EMPTY;
	r->rc = driver->fetch(r->room, r->self->agent, offered->id, MR_HELD, SCAN_BODIES, &r->msg, &r->err);
	if (r->rc == MR_OK)
		r->rc = office_flush(r->room, &r->err);
	if (r->rc == MR_OK)
		return false;
	(void)driver->settle(r->room, &r->claim, SETTLE_BACK, IGNORED);
	(void)office_flush(r->room, IGNORED);
	mr_message_done(&r->msg);
	if (r->rc == MR_CORRUPT || r->rc == MR_NOTFOUND) /* commands that list mail report it; go on */
		r->rc = MR_EMPTY;
	return r->rc == MR_EMPTY;
}

enum mr_rc
mr_recv(struct mr_room *room, const struct mr_self *self, const struct mr_filter *filter, int64_t lease_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	struct mr_scan scan = { .order = MR_WORK_ORDER, .names = true, .limit = FEW };
	struct receiving r = { .room = room, .self = self, .filter = &scan.filter, .rc = MR_EMPTY };

	mr_auto(relief_end) struct relief relief = relief_begin(room);
	TRY(claim_able(room, err));
	TRY(lease_check(lease_ms, err));
	TRY(office_not_fenced(room, self, err));
	if (filter)
		scan.filter = *filter;
	scan.filter.folders = MR_INBOX;
	scan.filter.unread = true;
	scan.filter.no_control = !scan.filter.type;
	r.terms.lease_ms = lease_ms ? lease_ms : LEASE_DEFAULT_MS;
	/* The first round looks at the first few. If none was for us, or others were faster, the next one goes through
	 * all. */
	for (int round = 0; round < RECV_ROUNDS && r.rc == MR_EMPTY; round++) {
		r.offered = r.beaten = false;
		TRY(mr_scan(room, self->agent, &scan, take_offered, &r, err));
		if (!r.beaten && (round > 0 || !r.offered))
			break;
		scan.limit = 0;
	}
	if (r.rc == MR_EMPTY)
		return mr_fail(err, MR_EMPTY, "no mail is waiting for '%s'", self->agent);
	*err = r.err;
	if (r.rc != MR_OK)
		return r.rc;
	claim_fill(&r.claim, ret_claim);
	*ret_msg = r.msg;
	return MR_OK;
}

/* ---- Finding the claim that is meant ---- */

/* Does it belong to this agent and this life? */
static enum mr_rc
check_holder(const struct claim *claim, const struct mr_self *self, struct mr_error *err)
{
	if (strcmp(claim->agent, self->agent) != 0)
		return mr_fail(err, MR_REFUSED,
		    "that claim belongs to '%s'\nonly its holder can settle it, and the operator release it; `mailroom recv` gives you work of your own",
		    claim->agent);
	if (claim->life == self->life)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "that claim belongs to an older life of '%s'\nits mail comes back by itself; `mailroom recv` gives the next",
	    self->agent);
}

/* By the end of an id on which this life holds exactly one claim, on its own mail or on work of a queue; or by a token
 * whose file a power cut took. */
static enum mr_rc
search_claims(
    struct mr_room *room, const struct mr_self *self, const char *what, struct claim *ret, struct mr_error *err)
{
	mr_auto(claims_done) struct claims all = { 0 };
	mr_auto(buf_done) struct buf tokens = BUF_INIT;
	const struct claim *ours = NULL, *older = NULL, *others = NULL;
	size_t found = 0;

	TRY(claims_in(room, self->agent, &all, err));
	TRY(claims_on_work(room, &all, err));
	for (const struct claim *c = all.v; c < all.v + all.n; c++) {
		bool own = strcmp(c->agent, self->agent) == 0;

		if (c->kind == CLAIM_LEASE && own && strcmp(c->token, what) == 0) {
			*ret = *c;
			return check_holder(c, self, err);
		}
		if (c->kind != CLAIM_LEASE || !str_ends(str_of(c->id), what))
			continue;
		if (!own) {
			others = c->over ? others : c;
		} else if (c->life != self->life) {
			older = c;
		} else {
			ours = c;
			buf_addf(&tokens, "%s%s", found++ > 0 ? ", " : "", c->token);
		}
	}
	if (found > 1)
		return mr_fail(
		    err, MR_REFUSED, "several claims match '%s'\ngive one of the tokens: %s", what, buf_z(&tokens));
	if (ours) {
		*ret = *ours;
		return MR_OK;
	}
	if (older || others)
		return check_holder(older ? older : others, self, err);
	return mr_fail(err, MR_NOTFOUND,
	    "no claim '%s': that claim is over (lease ran out, released or done)\n"
	    "`mailroom recv` gives the next message; `mailroom inbox` lists what waits",
	    what);
}

struct ending {             /* a claim that has ended */
	const char *agent;  /* whose claims; NULL: any agent's */
	struct claim claim; /* the last one */
	enum settle how;
	int64_t ended_ms;
	bool found;
};

static void
note_ending(void *ctx, const struct past_claim *past)
{
	struct ending *e = ctx;

	if (e->agent && strcmp(past->claim->agent, e->agent) != 0)
		return;
	e->claim = *past->claim;
	e->claim.reason = e->claim.only_for = NULL; /* they do not outlive this call */
	e->how = past->how;
	e->ended_ms = past->ended_ms;
	e->found = true;
}

/* `what` is a token, or an id, which may be short: then the agent's own mail completes it. */
static bool
find_ending(struct mr_room *room, const struct mr_self *self, const char *what, bool full, struct ending *ret)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	char id[MR_ID_LEN + 1];

	*ret = (struct ending){ 0 };
	if (token_valid(str_of(what)))
		(void)room->driver->each_past(room, NULL, NULL, what, 0, note_ending, ret, IGNORED);
	(void)snprintf(id, sizeof(id), "%s", what);
	if (ret->found || (!full && mr_resolve_id(room, self->agent, what, 0, id, IGNORED) != MR_OK))
		return ret->found;
	ret->agent = self->agent;
	(void)room->driver->each_past(room, "", id, NULL, 0, note_ending, ret, IGNORED);
	if (!ret->found && (room->driver->abilities & ROOM_QUEUES) &&
	    settings_names(room, "queue", &queues, IGNORED) == MR_OK)
		for (size_t i = 0; i < queues.n; i++)
			(void)room->driver->each_past(
			    room, room_box("queue", queues.v[i]).z, id, NULL, 0, note_ending, ret, IGNORED);
	return ret->found;
}

static enum mr_rc
say_ending(const struct ending *e, const struct mr_self *self, struct mr_error *err)
{
	static const char *const words[] = {
		[SETTLE_DONE] = "done", [SETTLE_LATER] = "released", [SETTLE_DEAD] = "failed"
	};
	const char *id = e->claim.id, *queue = box_queue(e->claim.box);
	bool ours = strcmp(e->claim.agent, self->agent) == 0;
	mr_auto(buf_done) struct buf who = BUF_INIT;
	char at[RFC3339_LEN + 1];

	time_rfc3339(e->ended_ms, at);
	if (e->how == SETTLE_DONE || e->how == SETTLE_LATER || e->how == SETTLE_DEAD) {
		format_addf(&who, "'%s'", e->claim.agent);
		(void)mr_fail(
		    err, MR_NOTFOUND, "'%s' was %s by %s at %s", id, words[e->how], ours ? "you" : buf_z(&who), at);
		if (e->how == SETTLE_DONE)
			return mr_hint(err, "nothing is left to do; `mailroom why %s` shows the rest", id);
		if (e->how == SETTLE_DEAD)
			return mr_hint(err, "it is kept: `mailroom dead list`");
		return queue ? mr_hint(err, "`mailroom recv queue:%s` gives the next", queue)
			     : mr_hint(err, "`mailroom recv` gives the next message");
	}
	/* It was put back: the time was up, or a newer life took over. */
	format_addf(&who, "the claim of '%s'", e->claim.agent);
	(void)mr_fail(err, MR_NOTFOUND, "%s on '%s' is over: %s, and it went back at %s",
	    ours ? "your claim" : buf_z(&who), id,
	    ours && e->claim.life < self->life ? "a newer life took over" : "its lease ran out", at);
	if (!queue)
		return mr_hint(err, "it is in the inbox again: `mailroom recv` gives it anew");
	return mr_hint(
	    err, "another agent may be at work on it: stop, and change nothing more; `mailroom why %s` shows more", id);
}

/* `what` is a token, or the end of an id. MR_REFUSED: it belongs to another agent or an older life; MR_NOTFOUND: it has
 * ended. */
static enum mr_rc
claim_find(struct mr_room *room, const struct mr_self *self, const char *what, struct claim *ret, struct mr_error *err)
{
	struct ending ending;
	char spelled[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc = MR_NOTFOUND;

	TRY(claim_able(room, err));
	TRY(office_not_fenced(room, self, err));
	TRY(lookup_spelling(room, what, spelled, &full, err)); /* tokens have the alphabet of ids */
	if (token_valid(str_of(spelled)))
		rc = room->driver->find_claim(room, spelled, ret, err);
	/* A token of another agent's mail is not accepted here. Work of a queue belongs to all, so its claimer is
	 * named. */
	if (rc == MR_OK && (box_queue(ret->box) || (ret->kind == CLAIM_LEASE && strcmp(ret->agent, self->agent) == 0)))
		return check_holder(ret, self, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	rc = search_claims(room, self, spelled, ret, err);
	return rc == MR_NOTFOUND && find_ending(room, self, spelled, full, &ending) ? say_ending(&ending, self, err)
										    : rc;
}

/* ---- done, release, fail, extend ---- */

static enum mr_rc
say_if_over(const struct claim *claim, enum mr_rc rc, struct mr_error *err)
{
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND,
	    "the claim '%s' on '%s' is over: lease ran out, released or done\n"
	    "another agent may have the message now; `mailroom why %s` shows more",
	    claim->token, claim->id, claim->id);
}

static enum mr_rc
settle_claim(
    struct mr_room *room, const struct claim *claim, enum settle how, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = relief_begin(room);
	enum mr_rc rc = room->driver->settle(room, claim, how, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK)
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", claim->id);
	return say_if_over(claim, rc, err);
}

/* Reserves it for another agent for a time: the agent must exist, and be one of the queue's claimers. */
static enum mr_rc
reserve_for(struct mr_room *room, const struct mr_release *how, struct claim *claim, char agent[MR_ADDRESS_MAX + 1],
    struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	mr_auto(mr_resolution_done) struct mr_resolution meant = { 0 };

	if (!box_queue(claim->box))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is your own mail: no other agent can claim it\n`mailroom send %s -m TEXT --reply-to %s` passes it on",
		    claim->id, how->to, claim->id);
	TRY(mr_resolve(room, claim->agent, how->to, &meant, err));
	if (meant.targets.n != 1 || strchr(meant.targets.v[0], ':'))
		return mr_fail(err, MR_REFUSED,
		    "'%.100s' is not a single agent\n--to takes the address of an agent of this room", how->to);
	TRY(mr_queue_get(room, box_queue(claim->box), &queue, err));
	(void)snprintf(agent, MR_ADDRESS_MAX + 1, "%s", meant.targets.v[0]);
	TRY(office_check_claimer(&queue, agent, err));
	claim->only_for = agent;
	claim->only_until_ms = clock_now_ms() + (how->to_ms > 0 ? how->to_ms : queue.lease_ms);
	return MR_OK;
}

/* The operator takes work of a queue away from its holder, by its token or the end of its id. An agent's session
 * cannot: it is not the operator, even under that name. */
static bool
find_for_operator(struct mr_room *room, const struct mr_self *self, const char *what, struct claim *ret)
{
	mr_auto(claims_done) struct claims all = { 0 };
	size_t found = 0;

	if (strcmp(self->agent, OPERATOR) != 0 || self->bound || claims_on_work(room, &all, IGNORED) != MR_OK)
		return false;
	for (size_t i = 0; i < all.n; i++)
		if (strcmp(all.v[i].token, what) == 0 ||
		    (strlen(what) >= SHORT_ID_MIN && str_ends(str_of(all.v[i].id), what))) {
			*ret = all.v[i];
			found++;
		}
	return found == 1;
}

enum mr_rc
mr_claim_release(struct mr_room *room, const struct mr_self *self, const char *what, const struct mr_release *how,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	struct claim claim = { 0 };
	char agent[MR_ADDRESS_MAX + 1];

	TRY(claim_able(room, err));
	if (!find_for_operator(room, self, what, &claim))
		TRY(claim_find(room, self, what, &claim, err));
	if (!how)
		return settle_claim(room, &claim, SETTLE_LATER, ret_id, err);
	if (how->to_ms > LEASE_MAX_MS)
		return mr_fail(err, MR_REFUSED, "work is reserved for at most 366 days");
	if (how->to)
		TRY(reserve_for(room, how, &claim, agent, err));
	if (how->reason && !box_queue(claim.box))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is your own mail: no other agent would read the reason\n"
		    "`mailroom fail %s --reason TEXT` tells its sender, and ends it",
		    claim.id, what);
	claim.reason = how->reason && *how->reason ? how->reason : NULL;
	return settle_claim(room, &claim, how->unseen ? SETTLE_BACK : SETTLE_LATER, ret_id, err);
}

/* An answer in the thread. mr_reply's own recipient is not used, because an answer to work that an agent sent itself
 * would be new work of the queue. */
static enum mr_rc
send_result(struct mr_room *room, const struct mr_self *self, const struct claim *claim, const char *sender,
    const struct mr_draft *result, char ret_answer[MR_ID_LEN + 1], struct mr_error *err)
{
	char key[16 + MR_TOKEN_LEN], to[MR_ADDRESS_MAX + 16];
	const char *const recipients[] = { to, NULL };
	struct mr_draft draft = {
		.to = recipients, .body = result->body, .body_len = result->body_len, .type = result->type, .key = key
	};
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };

	(void)snprintf(key, sizeof(key), "done-%s", claim->token);
	(void)snprintf(to, sizeof(to), "agent:%.160s", sender);
	enum mr_rc rc = mr_reply(room, self, claim->id, &draft, false, &receipt, err);
	(void)snprintf(ret_answer, MR_ID_LEN + 1, "%s", receipt.id);
	if (rc == MR_REFUSED && strstr(err->message, key))
		return mr_fail(err, MR_REFUSED,
		    "a result of this claim on '%s' was sent before, in other words\n"
		    "`mailroom done %s` without a text finishes the work",
		    claim->id, claim->token);
	return rc;
}

/* Done with a result, or failed with a reason. The sender is told first: after a kill in between, the claim still
 * exists, and a second `done` with the same text sends nothing twice, because the claim is the key; a second `fail`
 * bounces twice at worst. In the other order the result could be lost, or the mail be dead without its sender
 * knowing. */
static enum mr_rc
tell_and_settle(struct mr_room *room, const struct mr_self *self, const char *what, const struct mr_draft *result,
    const char *reason, char ret_id[MR_ID_LEN + 1], char ret_answer[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct claim claim = { 0 };
	char key[16 + MR_TOKEN_LEN];

	TRY(claim_find(room, self, what, &claim, err));
	enum mr_rc rc = claim_message(room, &claim, &msg, err);
	bool gone = rc == MR_OK && bounce_sender_gone(room, &msg);

	(void)snprintf(key, sizeof(key), "fail-%s", claim.token);
	if (rc == MR_OK && result && !gone) /* in doubt, too: it will be completed, and the claim still exists */
		TRY(send_result(room, self, &claim, msg.from, result, ret_answer, err));
	else if (rc == MR_OK && !result)
		rc = bounce_send(room, self, &msg, reason ? reason : "", box_queue(claim.box) ? key : NULL, err);
	if (rc != MR_OK)
		return say_if_over(&claim, rc, err);
	*err = (struct mr_error){ 0 };
	rc = settle_claim(room, &claim, result ? SETTLE_DONE : SETTLE_DEAD, ret_id, err);
	if (rc == MR_NOTFOUND && result && *ret_answer) /* the lease ended in the meantime */
		(void)mr_hint(err, "your answer %s was sent; another agent may do the work again", ret_answer);
	if (rc == MR_OK && gone)
		(void)mr_hint(err, "its sender '%.100s' is gone and was not told", msg.from);
	return rc;
}

enum mr_rc
mr_claim_fail(struct mr_room *room, const struct mr_self *self, const char *what, const char *reason,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	return tell_and_settle(room, self, what, NULL, reason, ret_id, NULL, err);
}

enum mr_rc
mr_claim_done(struct mr_room *room, const struct mr_self *self, const char *what, const struct mr_draft *result,
    char ret_id[MR_ID_LEN + 1], char ret_answer[MR_ID_LEN + 1], struct mr_error *err)
{
	struct claim claim = { 0 };

	if (result) {
		ret_answer[0] = '\0';
		return tell_and_settle(room, self, what, result, NULL, ret_id, ret_answer, err);
	}
	TRY(claim_find(room, self, what, &claim, err));
	return settle_claim(room, &claim, SETTLE_DONE, ret_id, err);
}

enum mr_rc
mr_claim_extend(struct mr_room *room, const struct mr_self *self, const char *what, int64_t lease_ms,
    struct mr_claim *ret, struct mr_error *err)
{
	struct claim claim = { 0 };

	TRY(lease_check(lease_ms, err));
	TRY(claim_find(room, self, what, &claim, err));
	enum mr_rc rc = room->driver->extend(room, &claim, lease_ms ? lease_ms : LEASE_DEFAULT_MS, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK)
		claim_fill(&claim, ret);
	return say_if_over(&claim, rc, err);
}
