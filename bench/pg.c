/* SPDX-License-Identifier: MIT */
/* pg.c - connections, rounds, the table and the JSON of the PostgreSQL part. Usage: pg INFO FOLDER COMMAND LAG JSON
 * MANY BEHIND. */
#include "pg.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 64

static struct row {
	const char *name, *what, *unit;
	double figure, limit;
	bool least;
} rows[ROWS_MAX];
static size_t rows_n;

void
die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)fputs("bench/pg: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

double
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_size);
	return n == 0 ? 0 : v[n / 2];
}

/* ---- Statements ---- */

PGconn *
pg_connection(const struct pg_bench *b)
{
	PGconn *conn = PQconnectdb(b->info);

	if (PQstatus(conn) != CONNECTION_OK)
		die("cannot connect: %s", PQerrorMessage(conn));
	return conn;
}

static PGresult *
checked(PGconn *conn, PGresult *rows_of, const char *sql)
{
	ExecStatusType status = PQresultStatus(rows_of);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		die("%.200s: %s", sql, PQerrorMessage(conn));
	return rows_of;
}

void
pg_do(PGconn *conn, const char *fmt, ...)
{
	char sql[4000];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(sql, sizeof(sql), fmt, args);
	va_end(args);
	PQclear(checked(conn, PQexec(conn, sql), sql));
}

PGresult *
pg_query(PGconn *conn, const char *sql, int n, const char *const *args)
{
	return checked(conn, PQexecParams(conn, sql, n, NULL, args, NULL, NULL, 0), sql);
}

double
pg_timed(PGconn *conn, const char *sql, int n, const char *const *args)
{
	double begun = now_us();

	PQclear(pg_query(conn, sql, n, args));
	return now_us() - begun;
}

/* Ids as the room has them: the time in front, so they grow. */
void
pg_new_id(char ret[MR_ID_LEN + 1])
{
	static _Atomic unsigned long n;
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	unsigned long long ms = (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;

	for (int i = 9; i >= 0; i--, ms /= 32)
		ret[i] = digits[ms % 32];
	(void)snprintf(ret + 10, MR_ID_LEN - 9, "%016lu", ++n);
}

/* ---- Rows ---- */

static bool
is_missed(const struct row *r)
{
	return r->limit > 0 && (r->least ? r->figure < r->limit : r->figure > r->limit);
}

void
pg_row(const char *name, const char *what, double figure, const char *unit, double limit, bool least)
{
	if (rows_n == ROWS_MAX)
		die("too many rows");
	rows[rows_n++] = (struct row){ name, what, unit, figure, limit, least };
	const struct row *r = &rows[rows_n - 1];

	(void)printf("%-22s %9.2f %-6s ", name, figure, unit);
	if (limit > 0)
		(void)printf("%s %-6.2f %-7s", least ? ">=" : "<=", limit, is_missed(r) ? "MISSED" : "");
	else
		(void)printf("%17s", "");
	(void)printf(" %s\n", what);
	(void)fflush(stdout);
}

static int
write_rows(const char *path)
{
	FILE *out = fopen(path, "w");
	int missed = 0;

	if (!out)
		die("cannot write %s", path);
	(void)fputs("[\n", out);
	for (size_t i = 0; i < rows_n; i++) {
		const struct row *r = &rows[i];

		missed += is_missed(r);
		(void)fprintf(out,
		    " {\"row\": \"%s\", \"what\": \"%s\", \"figure\": %.3f, \"unit\": \"%s\", \"%s\": %.2f, \"missed\": %s}%s\n",
		    r->name, r->what, r->figure, r->unit, r->least ? "at_least" : "at_most", r->limit,
		    is_missed(r) ? "true" : "false", i + 1 < rows_n ? "," : "");
	}
	(void)fputs("]\n", out);
	if (fclose(out) != 0)
		die("cannot write %s", path);
	return missed;
}

static void
make_room(struct pg_bench *b)
{
	struct mr_error err = { 0 };
	struct mr_init_options how = { .name = "town" };
	struct mr_room *room = NULL;
	struct mr_env nobody = { .state_dir = NULL };
	static const char *const agents[] = { "alice", "bob", "carol", "dave", "erin", "frank" };
	char *path = NULL;

	(void)snprintf(b->spec, sizeof(b->spec), "postgres:%s#town", b->info);
	if (mr_room_init(b->spec, "/", &how, &path, &err) != MR_OK || mr_room_open(b->spec, NULL, &room, &err) != MR_OK)
		die("no room: %s", err.message);
	for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++) {
		struct mr_registration reg = { 0 };

		if (mr_register(room, agents[i], &nobody, NULL, &reg, &err) != MR_OK)
			die("no agent: %s", err.message);
	}
	mr_room_close(room);
	free(path);
}

int
main(int argc, char **argv)
{
	if (argc != 8)
		die("usage: pg INFO FOLDER COMMAND LAG JSON MANY BEHIND");
	struct pg_bench b = { .info = argv[1],
		.folder = argv[2],
		.command = argv[3],
		.lag = argv[4],
		.many = strtol(argv[6], NULL, 10),
		.behind = strtol(argv[7], NULL, 10) };

	make_room(&b);
	pg_rows_send(&b);
	pg_rows_clients(&b);
	pg_rows_inbox(&b);
	pg_rows_wake(&b);
	pg_rows_trips(&b);
	pg_rows_far(&b);
	pg_rows_claim(&b);
	return write_rows(argv[5]) > 0 ? 3 : 0;
}
