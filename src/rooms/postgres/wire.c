/* SPDX-License-Identifier: MIT */
/* wire.c - one exchange with the server: a call, with what goes in front of it and behind it in the same pipeline, and
 * its answer. */
#include "rooms/postgres/postgres.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>

#define ANSWER_MS 15000
#define ANSWER_LEAST_MS 1000
#define RECONNECT_MS 10000
#define OFTEN 8 /* calls */

int64_t
pg_patience_ms(const struct postgres *pg)
{
	const char *set = record_get(&pg->room->settings, "Reconnect");
	int64_t ms = 0;

	return set && duration_parse(str_of(set), &ms) ? ms : RECONNECT_MS;
}

static int64_t
answer_ms(const struct postgres *pg)
{
	int64_t ms = pg_patience_ms(pg) * 3 / 2;

	return ms < ANSWER_LEAST_MS ? ANSWER_LEAST_MS : ms < ANSWER_MS ? ms : ANSWER_MS;
}

/* Until there is something to do. False: nothing moved for `quiet_ms`, or the connection is gone. */
static bool
move_bytes(struct postgres *pg, bool sends, int64_t quiet_ms)
{
	struct pollfd p = { .fd = PQsocket(pg->conn), .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
	int64_t until_ms = clock_boot_ms() + quiet_ms;
	int n;

	do {
		int64_t left_ms = until_ms - clock_boot_ms();

		n = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	return !(p.revents & (POLLIN | POLLERR | POLLHUP)) || PQconsumeInput(pg->conn);
}

static bool
flush_all(struct postgres *pg)
{
	int left;

	while ((left = PQflush(pg->conn)) > 0)
		if (!move_bytes(pg, true, answer_ms(pg)))
			return false;
	return left == 0;
}

/* False: no answer came. *ret NULL: the end of the results of one statement. */
static bool
next_result(struct postgres *pg, int64_t quiet_ms, PGresult **ret)
{
	while (PQisBusy(pg->conn))
		if (!move_bytes(pg, false, quiet_ms))
			return false;
	*ret = PQgetResult(pg->conn);
	return true;
}

/* Reads on to the end of a pipeline's part. */
static bool
read_to_sync(struct postgres *pg, int64_t quiet_ms)
{
	PGresult *rows = NULL;
	bool synced = false;

	while (!synced) {
		if (!next_result(pg, quiet_ms, &rows) || PQstatus(pg->conn) != CONNECTION_OK) {
			PQclear(rows);
			return false;
		}
		synced = rows && PQresultStatus(rows) == PGRES_PIPELINE_SYNC;
		PQclear(rows);
		rows = NULL;
	}
	return true;
}

/* The answers of pokes and the like, which nobody waited for. */
static bool
read_pending(struct postgres *pg)
{
	bool ok = true;

	for (; pg->pending > 0 && ok; pg->pending--)
		ok = read_to_sync(pg, answer_ms(pg));
	return ok;
}

static bool
drain(struct postgres *pg)
{
	return pg->pending == 0 || (read_pending(pg) && PQexitPipelineMode(pg->conn) == 1);
}

void
pg_notices(struct postgres *pg)
{
	PGnotify *n;

	while (pg->conn && (n = PQnotifies(pg->conn)) != NULL) {
		pg_forget_all(pg);
		for (struct pg_watch *w = pg->watches; w; w = w->next)
			w->rung |= strcmp(w->channel, n->relname) == 0;
		PQfreemem(n);
	}
}

#define SQL_MAX (PG_SCHEMA_MAX + 40 + PG_ARGS_MAX * 4)
static void
text_of(const struct postgres *pg, const struct pg_call *c, char ret[SQL_MAX])
{
	int len = snprintf(ret, SQL_MAX, "SELECT %s%s.%s(", c->value ? "" : "* FROM ", pg->schema, c->function);

	for (int i = 1; i <= c->n; i++)
		len += snprintf(ret + len, SQL_MAX - (size_t)len, "%s$%d", i > 1 ? "," : "", i);
	(void)snprintf(ret + len, SQL_MAX - (size_t)len, ")");
}

/* NULL: the call is not counted. */
static unsigned *
times_of(struct postgres *pg, const struct pg_call *c)
{
	for (size_t i = 0; i < PG_OFTEN_MAX; i++) {
		if (!pg->often[i].function)
			pg->often[i].function = c->function; /* a literal */
		if (strcmp(pg->often[i].function, c->function) == 0)
			return &pg->often[i].times;
	}
	return NULL;
}

/* A function that a connection calls again and again is prepared: that takes a third of the server's work away. It
 * costs a round trip once, so a command is over before. A pool may give the next call to another session. */
static void
prepare_often(struct postgres *pg, const struct pg_call *c)
{
	unsigned *times = pg->pooled ? NULL : times_of(pg, c);
	char sql[SQL_MAX];

	if (!times || ++*times != OFTEN)
		return;
	text_of(pg, c, sql);
	PGresult *rows = NULL;
	bool ok = drain(pg) && PQsendPrepare(pg->conn, c->function, sql, c->n, NULL) == 1 && flush_all(pg);

	while (ok && next_result(pg, answer_ms(pg), &rows) && rows) {
		ok = PQresultStatus(rows) == PGRES_COMMAND_OK;
		PQclear(rows);
	}
	if (!ok)
		*times = 0;
}

static bool
send_call(struct postgres *pg, const struct pg_call *c)
{
	const unsigned *times = times_of(pg, c);
	char sql[SQL_MAX];

	if (!pg->pooled && times && *times >= OFTEN)
		return PQsendQueryPrepared(pg->conn, c->function, c->n, c->values, c->lengths, c->formats, 1) == 1;
	text_of(pg, c, sql);
	return PQsendQueryParams(pg->conn, sql, c->n, NULL, c->values, c->lengths, c->formats, 1) == 1;
}

/* The rows of one of several calls, or its error. */
static bool
read_one(struct postgres *pg, int64_t quiet_ms, PGresult **ret)
{
	PGresult *rows = NULL, *end = NULL;

	if (!next_result(pg, quiet_ms, &rows) || (rows && !next_result(pg, quiet_ms, &end))) {
		PQclear(rows);
		return false;
	}
	PQclear(end);
	*ret = rows;
	return true;
}

/* The server, or this connection to it, is gone, and with it the answer. */
static bool
is_lost(const struct postgres *pg, const char *state)
{
	return PQstatus(pg->conn) != CONNECTION_OK || strncmp(state, "57P0", 4) == 0 || strncmp(state, "08", 2) == 0;
}

struct sending { /* the body of a send, in pieces */
	struct postgres *pg;
	const char *id;
	int64_t at;
	int pieces;
};

/* Each is on its way before the next one is read. */
static enum mr_rc
send_piece(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	struct sending *s = ctx;
	mr_auto(pg_call_done) struct pg_call chunk = PG_CALL("chunk");

	(void)err;
	PG_BIND(&chunk, TEXT(s->id), INT(s->at), BYTES(bytes));
	s->at += (int64_t)bytes.len;
	s->pieces++;
	return send_call(s->pg, &chunk) && flush_all(s->pg) ? MR_OK : MR_IO;
}

/* Sends the call with what goes in front of it and behind it, and reads its answer. False: the answer did not come
 * whole. In a pipeline the server commits at the sync: the rows before it promise nothing yet. */
static bool
exchange(struct postgres *pg, struct pg_call *c, PGresult **ret)
{
	const bool pokes = !pg->pooled && (c->poke[0] || c->poke[1] || c->poke[2]);
	mr_auto(pg_call_done) struct pg_call poke = PG_CALL("poke");

	if (pokes) {
		PG_BIND(&poke, NAMES(c->poke[0]), NAMES(c->poke[1]), NAMES(c->poke[2]));
		poke.value = true;
		prepare_often(pg, &poke);
	}
	prepare_often(pg, c);
	const bool piped = pokes || c->before || c->content || pg->pending;
	/* Answers of one transaction come together, behind its commit, unless they are many. */
	const int64_t quiet_ms = answer_ms(pg) + c->wait_ms;
	PGresult *end = NULL, *failed = NULL;
	bool ok = !piped || PQenterPipelineMode(pg->conn) == 1;
	struct sending sent = { .pg = pg, .id = c->values[0] };

	pg->warned = false;
	pg->trips++;
	/* What goes in front is in the same transaction. A pool takes the end of one for the end of a turn, and would
	 * give the answers behind it to another client: there nothing is sent behind a transaction before its answer.
	 */
	for (const struct pg_call *b = c->before; b && ok; b = b->before)
		ok = send_call(pg, b);
	ok = ok && (!c->content || pg_spool_each(c->content, send_piece, &sent, IGNORED) == MR_OK) &&
	     send_call(pg, c) && (!piped || PQpipelineSync(pg->conn));
	ok = ok && (!pokes || (send_call(pg, &poke) && PQpipelineSync(pg->conn)));
	ok = ok && flush_all(pg) && read_pending(pg); /* answers that nobody waited for come first */
	for (struct pg_call *b = c->before; b && ok; b = b->before) {
		PQclear(b->rows);
		b->rows = NULL;
		ok = read_one(pg, quiet_ms, &b->rows);
		if (PQresultStatus(b->rows) != PGRES_TUPLES_OK) { /* a failed one has no rows */
			PQclear(b->rows);
			b->rows = NULL;
		}
	}
	for (; sent.pieces > 0 && ok; sent.pieces--) {
		ok = read_one(pg, quiet_ms, &end);
		if (!failed && PQresultStatus(end) == PGRES_FATAL_ERROR)
			failed = end;
		else
			PQclear(end);
		end = NULL;
	}
	if (!ok || !next_result(pg, quiet_ms, ret)) {
		PQclear(failed);
		return false;
	}
	if (failed) { /* that is why the call itself was not even tried */
		PQclear(*ret);
		*ret = failed;
	}
	if (piped) {
		ok = read_to_sync(pg, quiet_ms);
		pg->pending = ok && pokes ? 1 : 0;
		return ok && (pokes || PQexitPipelineMode(pg->conn) == 1);
	}
	do {
		PQclear(end);
		end = NULL;
		ok = next_result(pg, quiet_ms, &end);
	} while (ok && end);
	return ok;
}

enum pg_asked
pg_ask(struct postgres *pg, struct pg_call *c, struct mr_error *err)
{
	PGresult *rows = NULL;
	bool ok = exchange(pg, c, &rows), hello = strcmp(c->function, "hello") == 0;
	char what[80];

	pg_notices(pg);
	if (rows && PQresultStatus(rows) == PGRES_TUPLES_OK && ok && PQstatus(pg->conn) == CONNECTION_OK) {
		c->rows = rows;
		return PG_ASKED_DONE;
	}
	if (ok && c->before && PQresultStatus(rows) == PGRES_PIPELINE_ABORTED) { /* by what was in front of it */
		PQclear(rows);
		c->before = NULL;
		return pg_ask(pg, c, err);
	}
	const char *state = pg_state_of(rows);
	enum pg_asked outcome = strcmp(state, "25006") == 0          ? PG_ASKED_AWAY
				: !rows || !ok || is_lost(pg, state) ? PG_ASKED_LOST
				: strncmp(state, "40", 2) == 0       ? PG_ASKED_REPEAT
								     : PG_ASKED_FAILED;

	(void)snprintf(what, sizeof(what), "%s%s%s", hello ? "open" : "do '", hello ? "" : c->function,
	    hello ? " the room" : "' in the room");
	(void)pg_fail(pg, rows, what, err);
	PQclear(rows);
	return outcome;
}

#ifdef MR_FAULT_ENV
/* Tests shift the wall clock of this process; in a room that a test build made, wall() follows. */
void
pg_follow_clock(struct postgres *pg)
{
	struct timespec now;
	char sql[80];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	int64_t shift_ms = clock_now_ms() - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);

	shift_ms = (shift_ms + (shift_ms < 0 ? -500 : 500)) / 1000 * 1000;
	if (!pg->conn || shift_ms == pg->shift_ms || !drain(pg))
		return;
	(void)snprintf(sql, sizeof(sql), "SET mailroom.test_shift = '%" PRId64 " ms'", shift_ms);
	PQclear(PQexec(pg->conn, sql));
	pg->shift_ms = shift_ms;
}
#endif

void
pg_ask_ahead(struct mr_room *room, struct pg_batch *b)
{
	struct postgres *pg = pg_of(room);
	struct pg_call last = PG_READ("life_newest"); /* a call that comes behind all of them */

	PG_BIND(&last, TEXT(""));
	last.before = b->n > 0 ? &b->v[b->n - 1] : NULL;
	if (b->n > 0 && pg_connect(pg, IGNORED) == MR_OK)
		(void)pg_ask(pg, &last, IGNORED);
	pg_call_done(&last);
	pg_batch_keep(pg, b);
}

void
pg_send_off(struct mr_room *room, struct pg_call *c)
{
	struct postgres *pg = pg_of(room);

	if (c->failed || pg_connect(pg, IGNORED) != MR_OK)
		return;
	if (pg->pooled) {
		(void)pg_ask(pg, c, &(struct mr_error){ 0 });
		return;
	}
	if (PQenterPipelineMode(pg->conn) == 1 && send_call(pg, c) && PQpipelineSync(pg->conn) == 1 && flush_all(pg))
		pg->pending++;
	else
		pg_disconnect(pg);
}

enum mr_rc
pg_script(struct postgres *pg, const char *sql, const char *what, struct mr_error *err)
{
	PGresult *rows = PQexec(pg->conn, sql);
	ExecStatusType status = PQresultStatus(rows);
	enum mr_rc rc = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? MR_OK : pg_fail(pg, rows, what, err);

	PQclear(rows);
	return rc;
}
