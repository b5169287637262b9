/* SPDX-License-Identifier: MIT */
/*
 * run.c - what becomes of a call whose answer is lost.
 *
 * The answer to a call may be missing although the server did what was asked: the connection broke, the server was
 * restarted or another one promoted, or nothing came for 15 s. It is also missing when an answer carries a WARNING: the
 * server says success with a warning when an administrator cancelled its wait for the standby.
 *
 * Then the driver reconnects, for up to 10 s, and asks again. Every function that changes something either does the
 * same twice without harm, or takes an argument that says "asked again" and looks for its own id or token first. What
 * it finds may be on this server alone, so the driver ends with settled(): a commit behind which everything before it
 * is on the standby. Only when no server answers in that time is the outcome in doubt (MR_INDOUBT), and a send is kept
 * on this machine for the next command (local.c); a call that changes nothing, or that was never sent, failed (MR_IO).
 */
#include "rooms/postgres/postgres.h"
#include <inttypes.h>

#define REPEATS_MAX 5

static enum mr_rc
in_doubt(const struct pg_call *c, struct mr_error *err)
{
	err->code = MR_INDOUBT;
	(void)mr_wrap(err, "the server went away and it is not known whether it did '%s'", c->function);
	return mr_hint(
	    err, "once it answers again, 'mailroom why ID' shows it; a send with --key can simply be repeated");
}

/* For the end of the command. A server that comes and goes is told of once. */
static void
tell_away(struct postgres *pg)
{
	char line[120];

	(void)snprintf(
	    line, sizeof(line), "the server was away for %lld ms, and was asked again", (long long)pg->away_ms);
	if (!pg->told_away)
		(void)names_add(&pg->room->barred, str_of(line)); /* out of memory: not worth a failure */
	pg->told_away = true;
}

static void
poke_alone(struct postgres *pg, const struct pg_call *c)
{
	struct pg_call poke = PG_CALL("poke");
	struct mr_error ignored = { 0 };

	if (!c->poke[0] && !c->poke[1] && !c->poke[2])
		return;
	PG_BIND(&poke, NAMES(c->poke[0]), NAMES(c->poke[1]), NAMES(c->poke[2]));
	(void)pg_ask(pg, &poke, &ignored);
	pg_call_done(&poke);
}

static void
drop_rows(struct pg_call *c)
{
	PQclear(c->rows);
	c->rows = NULL;
}

/* Asks, with the sweep of a mailbox in front of it that a command owes. What a sweep brought back is looked at again.
 */
static enum pg_asked
ask_and_sweep(struct mr_room *room, struct pg_call *c, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	char swept[MR_ADDRESS_MAX + 1];
	bool more = false;

	(void)snprintf(swept, sizeof(swept), "%s", pg->sweeps);
	if (!swept[0])
		return pg_ask(pg, c, err);
	mr_auto(pg_call_done) struct pg_call sweep = PG_READ("sweep");

	pg_add_sweep(pg, &sweep, NULL);
	c->before = &sweep;
	enum pg_asked outcome = pg_ask(pg, c, err);

	c->before = NULL;
	if (outcome == PG_ASKED_DONE)
		(void)pg_swept(room, swept, &sweep, &more, IGNORED);
	if (!more || !c->reads)
		return outcome;
	drop_rows(c);
	return pg_connect(pg, err) == MR_OK ? pg_ask(pg, c, err) : PG_ASKED_LOST;
}

/* What was found when it was asked for again, or came with a warning, may be on this server alone: a commit behind it
 * waits for the standby. */
static enum pg_asked
settle(struct postgres *pg, struct pg_call *c, struct mr_error *err)
{
	if (c->reads || !(pg->warned || c->asked_again))
		return PG_ASKED_DONE;
	mr_auto(pg_call_done) struct pg_call settled = PG_CALL("settled");
	enum pg_asked outcome = pg_ask(pg, &settled, err);

	if (outcome == PG_ASKED_DONE && !pg->warned)
		return outcome;
	drop_rows(c);
	if (outcome == PG_ASKED_DONE)
		(void)mr_fail(err, MR_IO, "the server did not wait for its standby");
	return PG_ASKED_LOST;
}

/* A connection that can take the call. */
static enum mr_rc
connect_for(struct postgres *pg, const struct pg_call *c, int64_t lost_ms, struct mr_error *err)
{
	TRY(lost_ms ? pg_connect_until(pg, lost_ms + pg_patience_ms(pg), err) : pg_connect(pg, err));
	if (!c->session || !pg->pooled)
		return MR_OK;
	if (!pg->pool)
		return mr_fail(err, MR_UNSUPPORTED,
		    "this needs a session of its own, and a pool is between here and the server\n"
		    "give the direct address of the server in the spec, and that of the pool in MAILROOM_POOL");
	pg_leave_pool(pg); /* from now on the direct way */
	return connect_for(pg, c, lost_ms, err);
}

static void
answered(struct postgres *pg, const struct pg_call *c, int64_t lost_ms)
{
	pg->away_ms = lost_ms ? clock_boot_ms() - lost_ms : 0;
	if (pg->away_ms > 0 && !c->tells)
		tell_away(pg);
	pg_keep_copy(pg, c);
	if (pg->pooled)
		poke_alone(pg, c);
}

enum mr_rc
pg_run(struct mr_room *room, struct pg_call *c, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	struct mr_error why = { 0 };
	bool doubt = false;
	int64_t lost_ms = 0;
	enum mr_rc rc = MR_OK;

	pg->away_ms = 0;
	if (c->failed)
		return mr_nomem(err);
	if (pg_kept_find(pg, c))
		return MR_OK;
	if (pg->ends.ids.n > 0) /* what comes now sees them ended */
		TRY(pg_slot_flush(room, err));
	if (!c->reads)
		pg_kept_done(pg);
	for (int repeats = 0; rc == MR_OK;) {
		rc = connect_for(pg, c, lost_ms, &why);
		if (rc != MR_OK)
			break;
#ifdef MR_FAULT_ENV
		pg_follow_clock(pg);
#endif
		enum pg_asked outcome = ask_and_sweep(room, c, &why);

		if (outcome == PG_ASKED_DONE) {
			outcome = settle(pg, c, &why);
			doubt |= outcome != PG_ASKED_DONE;
		}
		if (outcome == PG_ASKED_DONE) {
			answered(pg, c, lost_ms);
			return MR_OK;
		}
		if (outcome == PG_ASKED_FAILED || (outcome == PG_ASKED_REPEAT && ++repeats == REPEATS_MAX))
			break;
		if (outcome == PG_ASKED_REPEAT)
			continue;
		/* The answer is lost, or this server was the primary until now and another one is by now. */
		pg_disconnect(pg);
		doubt |= outcome == PG_ASKED_LOST && !c->reads;
		lost_ms = lost_ms ? lost_ms : clock_boot_ms();
		c->asked_again = true;
		if (c->again >= 0)
			c->values[c->again] = "t";
		if (clock_boot_ms() > lost_ms + pg_patience_ms(pg))
			break;
	}
	*err = why;
	return doubt ? in_doubt(c, err) : err->code;
}
