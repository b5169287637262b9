/* SPDX-License-Identifier: MIT */
/*
 * pg.h - what a room in PostgreSQL costs beside bare statements in the same database, in the same run. A program of its
 *own: it needs libpq, and the driver, which libmailroom has only as a build option.
 *
 *	pg.c         the server's connections, rounds, the table, the JSON
 *	pg_rows.c    sends, lists, wake-ups, round trips, a far server
 *	pg_claim.c   work, beside what pgmq and river do for it
 */
#ifndef BENCH_PG_H
#define BENCH_PG_H

#include <libpq-fe.h>
#include <mailroom-town.h>
#include <stdbool.h>
#include <stddef.h>

struct pg_bench {
	const char *info;    /* of libpq: the server that belongs to this bench */
	const char *folder;  /* of its socket */
	const char *command; /* mailroom, with mailroom-full beside it */
	const char *lag;     /* tests/support/lag.py */
	long many;           /* waiting work, archived mail */
	long behind;         /* claims beside an old transaction */
	char spec[400];      /* of the room */
};

_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
double now_us(void);
double median(double *v, size_t n); /* sorts */
PGconn *pg_connection(const struct pg_bench *b);
/* Runs it and dies when it fails; printf. */
void pg_do(PGconn *conn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A statement with arguments as text, as the driver sends it: not prepared. The caller clears the rows. */
PGresult *pg_query(PGconn *conn, const char *sql, int n, const char *const *args);
double pg_timed(PGconn *conn, const char *sql, int n, const char *const *args); /* µs */
void pg_new_id(char ret[MR_ID_LEN + 1]);

/* A row: a figure, and its limit (0: none). A figure above it fails the bench; `least`: one below it. */
void pg_row(const char *name, const char *what, double figure, const char *unit, double limit, bool least);

void pg_rows_send(struct pg_bench *b);
void pg_rows_clients(struct pg_bench *b);
void pg_rows_inbox(struct pg_bench *b);
void pg_rows_wake(struct pg_bench *b);
void pg_rows_trips(struct pg_bench *b);
void pg_rows_far(struct pg_bench *b);
void pg_rows_claim(struct pg_bench *b);

#endif
