/* SPDX-License-Identifier: MIT */
/*
 * claim.c - claims on mail and on work. The server decides by its own clock and its own locks: a lease has a deadline
 * of the database's time; a claim that lasts as long as a handle has the lock of the handle's token, which the server
 * lets go when the session ends. Token and attempt together are the fence: a late `done` finds nothing.
 *
 * A lease does not run out while its holder's harness lives. Only the machine of that process can tell, so this driver
 * asks the kernel for leases of this boot that are over by time; the others go by time alone.
 */
#include "base/process.h"
#include "rooms/postgres/postgres.h"
#include <unistd.h>

#define PAGE 32        /* as many letters as a list brings */
#define LETTER_HEAD 10 /* a column of the type letter; NULL: the list did not bring the text */

static int64_t
lease_clamp(int64_t lease_ms)
{
	return lease_ms < 0 ? 0 : lease_ms > LEASE_MAX_MS ? LEASE_MAX_MS : lease_ms;
}

static const char *
how_letter(enum settle how)
{
	static const char *const letters[] = { [SETTLE_BACK] = "b",
		[SETTLE_LATER] = "l",
		[SETTLE_SEEN] = "s",
		[SETTLE_ARCHIVE] = "a",
		[SETTLE_DONE] = "d",
		[SETTLE_DEAD] = "f" };

	return letters[how];
}

/* Does the holder's harness live on, as far as this machine can tell? */
static bool
harness_lives(const struct mr_process *p)
{
	return p->pid != 0 && process_state(p) == PROCESS_ALIVE && process_codex(p) != CODEX_SHARED;
}

static enum mr_rc
is_over(const struct claim *claim, struct mr_error *err)
{
	if (box_queue(claim->box))
		return mr_fail(err, MR_NOTFOUND,
		    "that claim on '%s' is over\n"
		    "it ran out or was settled; another agent may be at work on it: stop, and change nothing more",
		    claim->id);
	return mr_fail(err, MR_NOTFOUND,
	    "that hold on '%s' is over\n"
	    "it ran out, was settled or the name was taken over; another agent may have the message",
	    claim->id);
}

/* ---- Taking ---- */

/* kind, lease, token, session, host, process: what both functions take. */
static void
add_terms(struct postgres *pg, struct pg_call *c, const struct claim_terms *terms, struct claim *claim)
{
	struct mr_process process = terms->process;
	bool lease = terms->kind == CLAIM_LEASE;

	if (lease || pg->token[0] == '\0')
		token_new(claim->token);
	if (!lease && pg->token[0] == '\0')
		memcpy(pg->token, claim->token, sizeof(pg->token));
	if (!lease) {
		memcpy(claim->token, pg->token, sizeof(claim->token));
		(void)process_describe((int64_t)getpid(), &process);
		c->session = true;
	}
	PG_BIND(c, INT(lease_clamp(terms->lease_ms)), TEXT(claim->token), TEXT(terms->session ? terms->session : ""),
	    TEXT(host_name()), PROCESS(&process), AGAIN);
}

/* The letter in that row of the list and those behind it, but for those whose text is asked for: that question gives
 * back what waits. */
static enum mr_rc
hold_page(struct mr_room *room, int first, const struct claim_terms *terms, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("hold_many");
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	struct mr_process process = { 0 };
	int row;

	for (int i = first; i < pg->letters.n && i < first + PAGE; i++)
		if (!pg->letters.held[i].gone && !pg->letters.held[i].claimed &&
		    (i == first || !PQgetisnull(pg->letters.rows, i, LETTER_HEAD)) &&
		    !names_add(&ids, str_of(PQgetvalue(pg->letters.rows, i, 0))))
			return mr_nomem(err);
	if (ids.n < 2) /* one alone is asked for with all that may be wrong with it */
		return MR_OK;
	if (pg->token[0] == '\0')
		token_new(pg->token);
	(void)process_describe((int64_t)getpid(), &process);
	PG_BIND(&c, TEXT(pg->letters.box), NAMES(&ids), INT(terms->life), TEXT(pg->token),
	    TEXT(terms->session ? terms->session : ""), TEXT(host_name()), PROCESS(&process), AGAIN);
	c.session = true;
	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows); i++) {
		struct pg_held *held = pg_letter_held(pg, pg->letters.box, pg_get_text(&c, i, 0), &row);

		if (!held || !names_add(&pg->ahead, str_of(pg_get_text(&c, i, 0))))
			continue; /* it goes back with the session */
		*held = (struct pg_held){ .ahead = true,
			.attempt = (unsigned)pg_get_int(&c, i, 1),
			.since_ms = pg_get_int(&c, i, 2),
			.flags = (unsigned)pg_get_int(&c, i, 3),
			.priority = (enum mr_priority)(MR_URGENT - pg_get_int(&c, i, 4)),
			.look = pg_get_int(&c, i, 5) != 0 };
		memcpy(held->token, pg->token, sizeof(held->token));
	}
	return MR_OK;
}

/* Is it one of the list, and ours now? Its page is held with it. */
static bool
claim_listed(
    struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms, struct claim *claim)
{
	int row;
	struct pg_held *held = pg_letter_held(pg_of(room), box, id, &row);

	if (!held || terms->kind != CLAIM_HANDLE)
		return false;
	if (!held->ahead && !held->claimed && !held->gone) {
		if (hold_page(room, row, terms, IGNORED) != MR_OK)
			return false;
		held = pg_letter_held(pg_of(room), box, id, &row); /* the list may have been dropped meanwhile */
	}
	if (!held || !held->ahead)
		return false;
	held->ahead = false;
	held->claimed = true;
	(void)snprintf(claim->id, sizeof(claim->id), "%s", id);
	memcpy(claim->token, held->token, sizeof(claim->token));
	claim->attempt = held->attempt;
	claim->since_ms = held->since_ms;
	claim->flags = held->flags;
	claim->priority = held->priority;
	claim->look = held->look;
	return true;
}

static enum mr_rc
claim_mail(struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms, struct claim *claim,
    struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("hold");
	int row;

	if (claim_listed(room, box, id, terms, claim))
		return MR_OK;
	PG_BIND(&c, TEXT(box), TEXT(id), TEXT(terms->kind == CLAIM_LEASE ? "l" : "p"), INT(terms->life));
	add_terms(pg_of(room), &c, terms, claim);
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		break;
	case PG_BUSY:
		return mr_fail(err, MR_BUSY,
		    "message '%s' is being shown or worked on by another command\n"
		    "it comes back by itself when that ends without success",
		    id);
	case PG_REFUSED:
		return mr_fail(err, MR_REFUSED,
		    "'%s' was taken over by its life %u, this is life %u\n"
		    "the mail is with the new life; register under another name to go on",
		    box, (unsigned)pg_get_int(&c, 0, 5), terms->life);
	default:
		return mr_fail(err, MR_NOTFOUND, "no unread message '%s' in the inbox of '%s'", id, box);
	}
	(void)snprintf(claim->id, sizeof(claim->id), "%s", id);
	claim->attempt = (unsigned)pg_get_int(&c, 0, 1);
	claim->deadline_ms = pg_get_int(&c, 0, 2);
	claim->since_ms = pg_get_int(&c, 0, 3);
	claim->flags = (unsigned)pg_get_int(&c, 0, 4);
	claim->priority = (enum mr_priority)(MR_URGENT - pg_get_int(&c, 0, 6));
	claim->look = pg_get_int(&c, 0, 7) != 0;
	struct pg_held *held = pg_letter_held(pg_of(room), box, id, &row);

	if (held) {
		*held = (struct pg_held){ .claimed = true, .attempt = claim->attempt, .flags = claim->flags };
		memcpy(held->token, claim->token, sizeof(held->token));
	}
	return MR_OK;
}

static enum mr_rc
claim_work(
    struct mr_room *room, const char *queue, const struct claim_terms *terms, struct claim *claim, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("claim");

	PG_BIND(&c, TEXT(queue), TEXT(terms->claimer), INT(terms->life), BOOL(terms->by_priority),
	    INT(terms->max_claims), TEXT(terms->kind == CLAIM_LEASE ? "l" : "p"));
	add_terms(pg_of(room), &c, terms, claim);
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		break;
	case PG_EMPTY:
		return mr_fail(err, MR_EMPTY, "nothing is ready in queue '%s'", queue);
	case PG_BUSY:
		return mr_fail(
		    err, MR_BUSY, "queue '%s' has %u live claims, which is its limit", queue, terms->max_claims);
	case PG_REFUSED:
		return mr_fail(err, MR_REFUSED,
		    "'%s' was taken over by a newer life than %u\nregister under another name to go on", terms->claimer,
		    terms->life);
	default:
		return mr_fail(err, MR_NOTFOUND, "no queue '%s' in this room", queue);
	}
	(void)snprintf(claim->id, sizeof(claim->id), "%s", pg_get_text(&c, 0, 1));
	claim->attempt = (unsigned)pg_get_int(&c, 0, 2);
	claim->since_ms = pg_get_int(&c, 0, 3);
	claim->deadline_ms = pg_get_int(&c, 0, 4);
	return MR_OK;
}

enum mr_rc
pg_slot_claim(struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms, struct claim *ret,
    struct mr_error *err)
{
	const char *queue = box_queue(box);
	struct claim claim = { .life = terms->life, .kind = terms->kind };

	(void)snprintf(claim.box, sizeof(claim.box), "%s", box);
	(void)snprintf(claim.agent, sizeof(claim.agent), "%s", queue ? terms->claimer : box);
	TRY(queue ? claim_work(room, queue, terms, &claim, err) : claim_mail(room, box, id, terms, &claim, err));
	*ret = claim;
	return MR_OK;
}

/* ---- Ending ---- */

enum mr_rc
pg_slot_settle(struct mr_room *room, const struct claim *claim, enum settle how, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	const char *queue = box_queue(claim->box);
	mr_auto(pg_call_done) struct pg_call c = PG_CALL(queue ? "claim_settle" : "settle");
	mr_auto(mr_names_done) struct mr_names poke = { 0 };

	pg_letter_gone(pg, claim->box, claim->id);
	if (!queue && claim->kind == CLAIM_HANDLE && pg->expects.n > 0 &&
	    (how == SETTLE_SEEN || how == SETTLE_ARCHIVE || how == SETTLE_BACK)) {
		pg_end_hold(pg, claim->box, claim->id, how_letter(how));
		return MR_OK;
	}
	if (queue && (how == SETTLE_SEEN || how == SETTLE_ARCHIVE))
		return mr_fail(err, MR_REFUSED, "work of a queue ends as done or failed, or goes back");
	if (queue)
		PG_BIND(&c, TEXT(claim->token), TEXT(claim->id), INT(claim->attempt), TEXT(how_letter(how)),
		    TEXT(claim->reason), TEXT(claim->only_for), INT(claim->only_until_ms), AGAIN);
	else
		PG_BIND(&c, TEXT(claim->box), TEXT(claim->id), TEXT(claim->token), INT(claim->attempt),
		    TEXT(how_letter(how)), INT(claim->kind == CLAIM_HANDLE && pg_was_ahead(pg, claim->id)), AGAIN);
	/* What is there again wakes what waits for it. */
	if ((how == SETTLE_BACK || how == SETTLE_LATER) && names_add(&poke, str_of(queue ? queue : claim->box)))
		c.poke[queue ? 1 : 0] = &poke;
	TRY(pg_run(room, &c, err));
	return pg_rc(&c) == PG_DONE ? MR_OK : is_over(claim, err);
}

/* What a command showed is marked in one transaction; whether it was over by then is told here. */
enum mr_rc
pg_slot_flush(struct mr_room *room, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("settle_many");
	struct pg_ends e = pg->ends;
	mr_auto(mr_names_done) struct mr_names ids = e.ids, hows = e.hows, ahead = e.ahead;
	int over = 0;

	pg->ends = (struct pg_ends){ 0 };
	if (ids.n == 0)
		return MR_OK;
	PG_BIND(&c, TEXT(e.box), TEXT(pg->token), NAMES(&ids), NAMES(&hows), NAMES(&ahead), AGAIN);
	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows); i++)
		for (size_t k = 0; k < ids.n; k++)
			over +=
			    strcmp(ids.v[k], pg_get_text(&c, i, 0)) == 0 && hows.v[k][0] != 'n' && hows.v[k][0] != 'b';
	if (over > 0)
		return mr_fail(err, MR_REFUSED,
		    "%d of the messages shown no longer belong to this life of '%s'\n"
		    "they come again: the server was away, or a newer life of '%s' took over (see mailroom who)",
		    over, e.box, e.box);
	return MR_OK;
}

enum mr_rc
pg_slot_extend(struct mr_room *room, struct claim *claim, int64_t lease_ms, struct mr_error *err)
{
	bool work = box_queue(claim->box) != NULL;
	mr_auto(pg_call_done) struct pg_call c = PG_CALL(work ? "claim_extend" : "extend");

	if (!work)
		PG_BIND(&c, TEXT(claim->box), TEXT(claim->id), TEXT(claim->token));
	else
		PG_BIND(&c, TEXT(claim->token), TEXT(claim->id));
	PG_BIND(&c, INT(claim->attempt), INT(lease_clamp(lease_ms)));
	TRY(pg_run(room, &c, err));
	if (pg_rc(&c) != PG_DONE)
		return is_over(claim, err);
	claim->deadline_ms = pg_get_int(&c, 0, 1);
	return MR_OK;
}

/* ---- Looking ---- */

/* Columns of the type held. */
enum {
	BOX,
	AGENT,
	ID,
	TOKEN,
	LIFE,
	ATTEMPT,
	PRIO,
	KIND,
	FLAGS,
	SINCE,
	DEADLINE,
	OVER,
	PID,
	STATE = PID + 4,
	NOT_BEFORE,
	RELEASED,
	ONLY_FOR,
	ONLY_UNTIL
};

static void
read_claim(const struct pg_call *c, int row, struct claim *ret)
{
	struct mr_process process = pg_get_process(c, row, PID);

	*ret = (struct claim){ .life = (unsigned)pg_get_int(c, row, LIFE),
		.attempt = (unsigned)pg_get_int(c, row, ATTEMPT),
		.deadline_ms = pg_get_int(c, row, DEADLINE),
		.kind = pg_get_text(c, row, KIND)[0] == 'l' ? CLAIM_LEASE : CLAIM_HANDLE,
		.flags = (unsigned)pg_get_int(c, row, FLAGS),
		.since_ms = pg_get_int(c, row, SINCE) };
	(void)snprintf(ret->box, sizeof(ret->box), "%s", pg_get_text(c, row, BOX));
	(void)snprintf(ret->agent, sizeof(ret->agent), "%s", pg_get_text(c, row, AGENT));
	(void)snprintf(ret->id, sizeof(ret->id), "%s", pg_get_text(c, row, ID));
	(void)snprintf(ret->token, sizeof(ret->token), "%s", pg_get_text(c, row, TOKEN));
	ret->over = pg_get_int(c, row, OVER) != 0 && !(ret->kind == CLAIM_LEASE && harness_lives(&process));
}

enum mr_rc
pg_slot_each_claim(struct mr_room *room, const char *box, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	const char *queue = box_queue(box);
	mr_auto(pg_call_done) struct pg_call c = PG_READ(queue ? "work" : "holds");
	bool go_on = true;

	PG_BIND(&c, TEXT(queue ? queue : box));
	if (queue)
		PG_BIND(&c, INT(states));
	TRY(pg_run(room, &c, err));
	if (queue && PQntuples(c.rows) == 0)
		return mr_fail(err, MR_NOTFOUND, "no queue '%s' in this room", queue);
	for (int i = 0; i < PQntuples(c.rows) && go_on; i++) {
		struct claim claim;
		int64_t state = pg_get_int(&c, i, STATE);
		struct queue_item item = { .state = (enum queue_state)state,
			.priority = (enum mr_priority)(MR_URGENT - pg_get_int(&c, i, PRIO)),
			.attempt = (unsigned)pg_get_int(&c, i, ATTEMPT),
			.not_before_ms = pg_get_int(&c, i, NOT_BEFORE),
			.released_ms = pg_get_int(&c, i, RELEASED) };

		if (state == -PG_NOTFOUND)
			return pg_no_agent(box, err);
		if (state == 0) /* the queue is there */
			continue;
		(void)snprintf(item.id, sizeof(item.id), "%s", pg_get_text(&c, i, ID));
		(void)snprintf(item.only_for, sizeof(item.only_for), "%s", pg_get_text(&c, i, ONLY_FOR));
		item.only_until_ms = item.only_for[0] ? pg_get_int(&c, i, ONLY_UNTIL) : 0;
		if (state == QUEUE_CLAIMED) {
			read_claim(&c, i, &claim);
			item.claim = &claim;
		}
		go_on = fn(ctx, &item);
	}
	return MR_OK;
}

enum mr_rc
pg_slot_find_claim(struct mr_room *room, const char *token, struct claim *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("claim_find");

	PG_BIND(&c, TEXT(token));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return mr_fail(err, MR_NOTFOUND, "no claim '%s': it is over, or never was", token);
	read_claim(&c, 0, ret);
	return MR_OK;
}

enum mr_rc
pg_slot_each_past(struct mr_room *room, const char *box, const char *id, const char *token, int64_t since_ms,
    void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err)
{
	enum { P_BOX, P_AGENT, P_ID, P_TOKEN, P_LIFE, P_ATTEMPT, P_SINCE, P_ENDED, P_HOW, P_REASON, P_ONLY, P_UNTIL };
	static const enum settle hows[] = { SETTLE_BACK, SETTLE_LATER, SETTLE_DONE, SETTLE_DEAD };
	mr_auto(pg_call_done) struct pg_call c = PG_READ("claims_past");

	/* Of an id in all boxes: the next question is about another one. */
	PG_BIND(&c, TEXT(id || token ? NULL : box), TEXT(id), TEXT(token), INT(since_ms));
	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows); i++) {
		if (id && (box[0] ? strcmp(pg_get_text(&c, i, P_BOX), box) != 0
				  : box_queue(pg_get_text(&c, i, P_BOX)) != NULL))
			continue;
		struct claim claim = { .life = (unsigned)pg_get_int(&c, i, P_LIFE),
			.attempt = (unsigned)pg_get_int(&c, i, P_ATTEMPT),
			.since_ms = pg_get_int(&c, i, P_SINCE),
			.kind = CLAIM_LEASE,
			.reason = PQgetisnull(c.rows, i, P_REASON) ? NULL : pg_get_text(&c, i, P_REASON),
			.only_for = PQgetisnull(c.rows, i, P_ONLY) ? NULL : pg_get_text(&c, i, P_ONLY),
			.only_until_ms = pg_get_int(&c, i, P_UNTIL) };
		struct past_claim past = { .claim = &claim, .ended_ms = pg_get_int(&c, i, P_ENDED) };

		for (size_t k = 0; k < sizeof(hows) / sizeof(hows[0]); k++)
			if (strcmp(pg_get_text(&c, i, P_HOW), how_letter(hows[k])) == 0)
				past.how = hows[k];
		(void)snprintf(claim.box, sizeof(claim.box), "%s", pg_get_text(&c, i, P_BOX));
		(void)snprintf(claim.agent, sizeof(claim.agent), "%s", pg_get_text(&c, i, P_AGENT));
		(void)snprintf(claim.id, sizeof(claim.id), "%s", pg_get_text(&c, i, P_ID));
		(void)snprintf(claim.token, sizeof(claim.token), "%s", pg_get_text(&c, i, P_TOKEN));
		fn(ctx, &past);
	}
	return MR_OK;
}

void
pg_add_sweep(struct postgres *pg, struct pg_call *c, const struct mr_names *dead)
{
	char *agent = arena_dup(&c->own, str_of(pg->sweeps));

	c->failed |= agent == NULL;
	PG_BIND(c, TEXT(agent), TEXT(boot_id()), NAMES(dead));
	pg->sweeps[0] = '\0';
}

enum mr_rc
pg_swept(struct mr_room *room, const char *agent, struct pg_call *c, bool *ret_more, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names dead = { 0 };
	mr_auto(pg_call_done) struct pg_call again = PG_READ("sweep");

	*ret_more = false;
	for (int i = 0; c->rows && i < PQntuples(c->rows); i++) {
		struct mr_process process = pg_get_process(c, i, 1);

		if (PQgetisnull(c->rows, i, 0))
			return pg_no_agent(agent, err);
		if (!harness_lives(&process) && !names_add(&dead, str_of(pg_get_text(c, i, 0))))
			return mr_nomem(err);
	}
	if (dead.n == 0)
		return MR_OK;
	*ret_more = true;
	(void)snprintf(pg_of(room)->sweeps, sizeof(pg_of(room)->sweeps), "%s", agent);
	pg_add_sweep(pg_of(room), &again, &dead);
	return pg_run(room, &again, err);
}

/* One round trip, and a second one where a process of this machine held a lease and is dead. A command sweeps with its
 * next call. */
enum mr_rc
pg_slot_sweep(struct mr_room *room, const char *agent, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_READ("sweep");
	bool more;

	pg->tidies |= !agent;
	if (!agent) /* a command that was cut off leaves nothing, but one whose answer was lost */
		return pg_outbox_send(room, err);
	if (clock_boot_ms() > pg->look_ms) /* a watcher: it is never closed */
		pg_retain(room);
	pg_letters_done(pg);
	(void)snprintf(pg->sweeps, sizeof(pg->sweeps), "%s", agent);
	if (pg->expects.n > 0)
		return MR_OK;
	pg_add_sweep(pg, &c, NULL);
	TRY(pg_run(room, &c, err));
	return pg_swept(room, agent, &c, &more, err);
}
