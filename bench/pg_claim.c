/* SPDX-License-Identifier: MIT */
/*
 * pg_claim.c - taking work and finishing it: ours, and what pgmq and river do, with little and with much waiting, and
 * while a transaction stays open for which the server keeps every row that is gone. Work is added as fast as it is
 * taken, so what waits stays as it is.
 */
#include "pg.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 100
#define OPS 200

struct kind {
	const char *name;
	void (*make)(PGconn *conn);
	void (*fill)(PGconn *conn, long n); /* so much waits then */
	void (*add)(PGconn *conn);
	double (*take)(PGconn *conn); /* takes and finishes one */
	double limit_many, limit_old; /* 0: a figure to compare with */
};

/* ---- Ours ---- */

static void
our_make(PGconn *conn)
{
	pg_do(conn, "SELECT town.place_make('q', 'work')");
}

static void
our_fill(PGconn *conn, long n)
{
	pg_do(conn, "TRUNCATE town.ready, town.claim, town.finished, town.past, town.low");
	pg_do(conn,
	    "INSERT INTO town.ready (queue, id, prio) SELECT p.place, '02' || lpad(n::text, 24, '0'), 2 FROM generate_series(1, %ld) n, town.place p "
	    "WHERE p.kind = 'q'",
	    n);
	pg_do(conn, "VACUUM ANALYZE town.ready, town.claim, town.finished, town.past, town.low");
}

static void
our_add(PGconn *conn)
{
	char id[MR_ID_LEN + 1];

	pg_new_id(id);
	pg_do(conn, "INSERT INTO town.ready (queue, id, prio) SELECT place, '%s', 2 FROM town.place WHERE kind = 'q'",
	    id);
}

static double
our_take(PGconn *conn)
{
	char token[MR_ID_LEN + 1];
	double begun = now_us();

	pg_new_id(token);
	const char *args[] = { token };
	PGresult *rows = pg_query(conn,
	    "SELECT rc, id, attempt FROM town.claim('work','bob',0,false,0,'l',600000,$1,'','host',0,0,0,'',false)", 1,
	    args);
	char id[MR_ID_LEN + 1], attempt[12];

	(void)snprintf(id, sizeof(id), "%s", PQgetvalue(rows, 0, 1));
	(void)snprintf(attempt, sizeof(attempt), "%s", PQgetvalue(rows, 0, 2));
	bool empty = strcmp(PQgetvalue(rows, 0, 0), "0") != 0;

	PQclear(rows);
	if (empty)
		die("nothing was claimed");
	const char *settle[] = { token, id, attempt };

	(void)pg_timed(conn, "SELECT * FROM town.claim_settle($1,$2,$3::int,'d',NULL,NULL,0,false)", 3, settle);
	return now_us() - begun;
}

/* ---- pgmq: read hides a row for a while, delete removes it ---- */

static void
pgmq_make(PGconn *conn)
{
	pg_do(conn,
	    "CREATE TABLE pgmq (msg_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, read_ct int NOT NULL DEFAULT 0, enqueued_at timestamptz NOT NULL DEFAULT now(), "
	    "vt timestamptz NOT NULL DEFAULT clock_timestamp(), message jsonb)");
	pg_do(conn, "CREATE INDEX pgmq_vt ON pgmq (vt)");
}

static void
pgmq_fill(PGconn *conn, long n)
{
	pg_do(conn, "TRUNCATE pgmq");
	pg_do(conn, "INSERT INTO pgmq (message) SELECT '{}' FROM generate_series(1, %ld)", n);
	pg_do(conn, "VACUUM ANALYZE pgmq");
}

static void
pgmq_add(PGconn *conn)
{
	pg_do(conn, "INSERT INTO pgmq (message) VALUES ('{}')");
}

static double
pgmq_take(PGconn *conn)
{
	double begun = now_us();
	PGresult *rows = pg_query(conn,
	    "WITH cte AS (SELECT msg_id FROM pgmq WHERE vt <= clock_timestamp() ORDER BY msg_id LIMIT 1 FOR UPDATE SKIP LOCKED) "
	    "UPDATE pgmq m SET vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1 FROM cte WHERE m.msg_id = cte.msg_id RETURNING m.msg_id",
	    0, NULL);
	char id[24];

	(void)snprintf(id, sizeof(id), "%s", PQntuples(rows) == 1 ? PQgetvalue(rows, 0, 0) : "");
	PQclear(rows);
	const char *args[] = { id };

	(void)pg_timed(conn, "DELETE FROM pgmq WHERE msg_id = $1::bigint", 1, args);
	return now_us() - begun;
}

/* ---- river: jobs change their state ---- */

static void
river_make(PGconn *conn)
{
	pg_do(conn,
	    "CREATE TABLE river (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, state text NOT NULL DEFAULT 'available', attempt smallint NOT NULL DEFAULT 0, "
	    "priority smallint NOT NULL DEFAULT 1, queue text NOT NULL DEFAULT 'default', scheduled_at timestamptz NOT NULL DEFAULT now(), attempted_at timestamptz, finalized_at timestamptz, args jsonb)");
	pg_do(conn, "CREATE INDEX river_prioritized ON river (state, queue, priority, scheduled_at, id)");
}

static void
river_fill(PGconn *conn, long n)
{
	pg_do(conn, "TRUNCATE river");
	pg_do(conn, "INSERT INTO river (args) SELECT '{}' FROM generate_series(1, %ld)", n);
	pg_do(conn, "VACUUM ANALYZE river");
}

static void
river_add(PGconn *conn)
{
	pg_do(conn, "INSERT INTO river (args) VALUES ('{}')");
}

static double
river_take(PGconn *conn)
{
	double begun = now_us();
	PGresult *rows = pg_query(conn,
	    "WITH locked AS (SELECT id FROM river WHERE state = 'available' AND queue = 'default' AND scheduled_at <= now() "
	    "ORDER BY priority, scheduled_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE river j SET state = 'running', attempt = j.attempt + 1, attempted_at = now() "
	    "FROM locked WHERE j.id = locked.id RETURNING j.id",
	    0, NULL);
	char id[24];

	(void)snprintf(id, sizeof(id), "%s", PQntuples(rows) == 1 ? PQgetvalue(rows, 0, 0) : "");
	PQclear(rows);
	const char *args[] = { id };

	(void)pg_timed(conn,
	    "UPDATE river SET state = 'completed', finalized_at = now() WHERE id = $1::bigint AND state = 'running'", 1,
	    args);
	return now_us() - begun;
}

/* ---- The rows ---- */

static double
takes(PGconn *conn, const struct kind *k, long n)
{
	double last[OPS];

	for (long i = 0; i < n; i++) {
		last[i % OPS] = k->take(conn);
		k->add(conn);
	}
	return median(last, OPS);
}

static void
row(const struct kind *k, const char *suffix, const char *what, double figure, double limit)
{
	static char names[16][40];
	static size_t n;

	(void)snprintf(names[n], sizeof(names[n]), "%s%s", k->name, suffix);
	pg_row(names[n++], what, figure, suffix[0] ? "x" : "us", limit, false);
}

void
pg_rows_claim(struct pg_bench *b)
{
	static const struct kind kinds[] = { { "claim", our_make, our_fill, our_add, our_take, 1.25, 2 },
		{ "pgmq", pgmq_make, pgmq_fill, pgmq_add, pgmq_take, 0, 0 },
		{ "river", river_make, river_fill, river_add, river_take, 0, 0 } };
	PGconn *conn = pg_connection(b), *old = pg_connection(b);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];

		k->make(conn);
		k->fill(conn, FEW);
		double few = takes(conn, k, 2 * OPS);

		row(k, "", "taken and finished, 100 waiting", few, 0);
		k->fill(conn, b->many);
		row(k, "-many", "much waiting, beside 100", takes(conn, k, 2 * OPS) / few, k->limit_many);
		k->fill(conn, FEW);
		pg_do(old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
		pg_do(old, "SELECT count(*) FROM bare");
		row(k, "-old", "much was taken while a transaction stayed open, beside none",
		    takes(conn, k, b->behind) / few, k->limit_old);
		pg_do(old, "COMMIT");
	}
	PQfinish(conn);
	PQfinish(old);
}
