/* SPDX-License-Identifier: MIT */
/* pg_rows.c - sends, lists, wake-ups, round trips and a far server. Two sides of a row take turns, so that a disk that
 * slows down hits both. */
#include "pg.h"
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS 300
#define CLIENTS_MAX 32
#define CLIENTS_S 2.0
#define LIBRARY_OPS 100
#define RTT_MS 100.0

static char body[1025];

/* ---- One send: the statement of the driver, and the same bytes in a plain row ---- */

static double
bare_send(PGconn *conn)
{
	char id[MR_ID_LEN + 1];

	pg_new_id(id);
	const char *args[] = { id, "From: alice\nTo: bob\nSubject: bench\n\n", body };

	return pg_timed(conn, "INSERT INTO bare (id, head, body) VALUES ($1, $2::bytea, $3::bytea)", 3, args);
}

static double
our_send(PGconn *conn)
{
	char id[MR_ID_LEN + 1];

	pg_new_id(id);
	const char *args[] = { id, "From: alice\nTo: bob\nSubject: bench\n\n", body, "0", "alice", "{carol}", NULL,
		NULL, NULL, "0", "2", "0", "f", "f" };

	return pg_timed(conn, "SELECT town.send($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)", 14, args);
}

/* What send() leaves, by a statement that checks nothing. */
static double
plain_rows(PGconn *conn)
{
	char id[MR_ID_LEN + 1];

	pg_new_id(id);
	const char *args[] = { id, "From: alice\nTo: bob\nSubject: bench\n\n", body };

	return pg_timed(conn,
	    "WITH m AS (INSERT INTO town.message (id, head, body, digest, sender, prio, look, at) "
	    "VALUES ($1, $2::bytea, $3::bytea, '0', 1, 2, false, now()) RETURNING id) "
	    "INSERT INTO town.inbox (place, id, prio, look) SELECT 1, id, 2, false FROM m",
	    3, args);
}

static void
open_as(struct pg_bench *b, const struct mr_names *expects, struct mr_room **ret, struct mr_self *self)
{
	struct mr_error err = { 0 };
	struct mr_env env = { .as = "alice" };
	struct mr_room_options how = { .env = &env, .expects = expects };

	if (mr_room_open(b->spec, &how, ret, &err) != MR_OK || mr_self_named(*ret, "alice", self, &err) != MR_OK)
		die("cannot open the room: %s", err.message);
}

static double
library_send(struct mr_room *room, const struct mr_self *self, const char *to)
{
	struct mr_error err = { 0 };
	struct mr_draft draft = {
		.to = (const char *[]){ to, NULL }, .subject = "bench", .body = body, .body_len = sizeof(body) - 1
	};
	struct mr_receipt receipt = { 0 };
	double begun = now_us();

	if (mr_send(room, self, &draft, &receipt, &err) != MR_OK)
		die("a send failed: %s", err.message);
	mr_receipt_done(&receipt);
	return now_us() - begun;
}

void
pg_rows_send(struct pg_bench *b)
{
	PGconn *conn = pg_connection(b);
	struct mr_room *room = NULL;
	struct mr_self self = { 0 };
	double bare[OPS], ours[OPS], library[LIBRARY_OPS];

	memset(body, 'x', sizeof(body) - 1);
	pg_do(conn,
	    "CREATE TABLE bare (id text COLLATE \"C\" PRIMARY KEY, head bytea NOT NULL, body bytea NOT NULL, at timestamptz NOT NULL DEFAULT now())");
	for (int i = 0; i < 20; i++) {
		(void)bare_send(conn);
		(void)our_send(conn);
	}
	for (int i = 0; i < OPS; i++) {
		bare[i] = bare_send(conn);
		ours[i] = our_send(conn);
	}
	open_as(b, NULL, &room, &self);
	for (int i = 0; i < LIBRARY_OPS; i++)
		library[i] = library_send(room, &self, "carol");
	mr_room_close(room);
	double floor = median(bare, OPS);

	pg_row("bare-insert", "INSERT of 1 KB and its commit, an open connection", floor, "us", 0, false);
	pg_row("send", "send() beside it", median(ours, OPS) / floor, "x", 1.3, false);
	pg_row("send-library", "mr_send on an open room: it looks up sender and recipient first",
	    median(library, LIBRARY_OPS) / floor, "x", 0, false);
	PQfinish(conn);
}

/*
 * ---- Many clients ----
 *
 * On few processors these are busy, not the disk, and a send writes two rows where the bare INSERT writes one: the same
 * rows in a plain statement come to 0.5 to 0.8 of it. So a send is judged beside those rows, and its share of the bare
 * INSERT stands with it.
 */

struct client {
	PGconn *conn;
	double (*op)(PGconn *conn);
	double until_us;
	long done;
};

static void *
run_client(void *arg)
{
	struct client *c = arg;

	while (now_us() < c->until_us) {
		(void)c->op(c->conn);
		c->done++;
	}
	return NULL;
}

static double
throughput(struct client *clients, int n, double (*op)(PGconn *conn))
{
	pthread_t threads[CLIENTS_MAX];
	double begun = now_us();
	long done = 0;

	for (int i = 0; i < n; i++) {
		clients[i].op = op;
		clients[i].done = 0;
		clients[i].until_us = begun + CLIENTS_S * 1e6;
		if (pthread_create(&threads[i], NULL, run_client, &clients[i]) != 0)
			die("no thread");
	}
	for (int i = 0; i < n; i++) {
		(void)pthread_join(threads[i], NULL);
		done += clients[i].done;
	}
	return (double)done / ((now_us() - begun) / 1e6);
}

void
pg_rows_clients(struct pg_bench *b)
{
	static const struct {
		int n;
		const char *bare, *rows, *share, *ours;
		double least;
	} rounds[] = { { 8, "bare-insert-8", "rows-8-clients", "send-8-share", "send-8-clients", 0.8 },
		{ 32, "bare-insert-32", "rows-32-clients", "send-32-share", "send-32-clients", 0.8 } };
	struct client clients[CLIENTS_MAX];

	for (int i = 0; i < CLIENTS_MAX; i++)
		clients[i].conn = pg_connection(b);
	for (size_t r = 0; r < sizeof(rounds) / sizeof(rounds[0]); r++) {
		double bare[3], plain[3], ours[3];

		for (int i = 0; i < 3; i++) {
			bare[i] = throughput(clients, rounds[r].n, bare_send);
			plain[i] = throughput(clients, rounds[r].n, plain_rows);
			ours[i] = throughput(clients, rounds[r].n, our_send);
		}
		pg_row(rounds[r].bare, "INSERTs a second", median(bare, 3), "/s", 0, false);
		pg_row(rounds[r].rows, "the rows of a send in a plain statement beside them",
		    median(plain, 3) / median(bare, 3), "x", 0, true);
		pg_row(rounds[r].share, "sends a second beside the INSERTs", median(ours, 3) / median(bare, 3), "x", 0,
		    true);
		pg_row(rounds[r].ours, "sends a second beside those rows", median(ours, 3) / median(plain, 3), "x",
		    rounds[r].least, true);
	}
	for (int i = 0; i < CLIENTS_MAX; i++)
		PQfinish(clients[i].conn);
}

/* ---- An inbox beside a large archive ---- */

static double
look(PGconn *conn, const char *agent)
{
	return pg_timed(conn, "SELECT * FROM town.scan($1,1,2,0,true,NULL,NULL,NULL,NULL,false,0,false)", 1, &agent);
}

void
pg_rows_inbox(struct pg_bench *b)
{
	PGconn *conn = pg_connection(b);
	double empty[OPS], full[OPS];

	for (int k = 0; k < 2; k++)
		pg_do(conn,
		    "WITH m AS (INSERT INTO town.message (id, head, body, digest, prio, look, at) SELECT '01%d' || lpad(n::text, 23, '0'), "
		    "'From: alice\nSubject: x\n\n', 'text', '', 2, false, now() FROM generate_series(1, 10) n RETURNING id) "
		    "INSERT INTO town.inbox (place, id, prio, look) SELECT p.place, m.id, 2, false FROM m, town.place p WHERE p.name = '%s'",
		    k, k == 0 ? "erin" : "frank");
	pg_do(conn,
	    "INSERT INTO town.archive (place, id, flags, attempt, prio, look) SELECT p.place, '00' || lpad(n::text, 24, '0'), 1, 0, 2, false "
	    "FROM generate_series(1, %ld) n, town.place p WHERE p.name = 'frank'",
	    b->many);
	pg_do(conn, "VACUUM ANALYZE town.archive, town.inbox, town.message");
	for (int i = 0; i < OPS; i++) {
		empty[i] = look(conn, "erin");
		full[i] = look(conn, "frank");
	}
	pg_row("inbox-archived", "a look at 10 unread beside the large archive, and without one",
	    median(full, OPS) / median(empty, OPS), "x", 1.1, false);
	PQfinish(conn);
}

/* ---- A wake-up ---- */

static double
wake(PGconn *waits, PGconn *tells, const char *sql)
{
	double begun = now_us();
	PGnotify *n = NULL;

	if (PQsendQuery(tells, sql) != 1)
		die("cannot send");
	while (!n) {
		struct pollfd p = { .fd = PQsocket(waits), .events = POLLIN };

		if (poll(&p, 1, 10000) <= 0 || PQconsumeInput(waits) != 1)
			die("nobody was woken");
		n = PQnotifies(waits);
	}
	double took = now_us() - begun;

	PQfreemem(n);
	for (PGresult *rows; (rows = PQgetResult(tells)) != NULL;)
		PQclear(rows);
	return took;
}

void
pg_rows_wake(struct pg_bench *b)
{
	PGconn *bare_waits = pg_connection(b), *our_waits = pg_connection(b), *tells = pg_connection(b);
	double bare[OPS], ours[OPS];

	pg_do(bare_waits, "LISTEN bench");
	pg_do(our_waits, "SELECT * FROM town.watch('a', 'dave')");
	for (int i = 0; i < OPS; i++) {
		bare[i] = wake(bare_waits, tells, "NOTIFY bench");
		ours[i] = wake(our_waits, tells, "SELECT town.poke(ARRAY['dave'], NULL, NULL)");
	}
	pg_row("wake", "a waiting agent is woken behind the commit, beside a bare NOTIFY",
	    median(ours, OPS) / median(bare, OPS), "x", 3, false);
	PQfinish(bare_waits);
	PQfinish(our_waits);
	PQfinish(tells);
}

/* ---- Round trips ---- */

/* What the command counted itself; its output goes to bench-out. */
static double
trips_of(const struct pg_bench *b, const char *words)
{
	char command[1200], line[400];
	double trips = -1;

	(void)snprintf(command, sizeof(command), "MAILROOM_DEBUG=1 MAILROOM='%s' %s %s 2>&1 >bench-out </dev/null",
	    b->spec, b->command, words);
	FILE *said = popen(command, "r"); /* the words are this program's own */

	while (said && fgets(line, sizeof(line), said)) {
		const char *at = strstr(line, "postgres: ");

		trips = at ? strtod(at + 10, NULL) : trips;
	}
	if (!said || pclose(said) == -1 || trips < 0)
		die("'%s' does not tell its round trips", words);
	return trips;
}

void
pg_rows_trips(struct pg_bench *b)
{
	static const struct {
		const char *name, *what, *words;
		double limit;
	} commands[] = {
		{ "trips-send", "behind the connection: hello, and the send", "--as alice send dave -m x", 2 },
		{ "trips-inbox", "hello, and the list with its letters", "--as dave inbox", 2 },
		{ "trips-recv", "hello, the list, the claim", "--as dave recv --json", 3 },
		{ "trips-done", "hello, and the end of the claim",
		    "--as dave done $(sed -n 's/.*\"token\":\"\\([0-9a-z]*\\)\".*/\\1/p' bench-out)", 2 },
		{ "trips-drain", "hello, the list, a page held, a page marked", "--as carol drain", 6 },
		{ "trips-who", "hello, the list, the counts of all", "--as alice who", 4 },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		pg_row(commands[i].name, commands[i].what, trips_of(b, commands[i].words), "trips", commands[i].limit,
		    false);
}

/* ---- A server that is far away ---- */

void
pg_rows_far(struct pg_bench *b)
{
	struct pg_bench far = *b;
	char at[300], from[300], to[300], half[16], bob[] = "bob", *names[] = { bob };
	const struct mr_names expects = { .v = names, .n = 1 };
	pid_t lag;

	(void)snprintf(at, sizeof(at), "%s/far", b->folder);
	(void)snprintf(from, sizeof(from), "%s/far/.s.PGSQL.5432", b->folder);
	(void)snprintf(to, sizeof(to), "%s/.s.PGSQL.5432", b->folder);
	(void)snprintf(half, sizeof(half), "%.0f", RTT_MS / 2);
	(void)snprintf(far.spec, sizeof(far.spec), "postgres:host=%s user=mailroom dbname=postgres#town", at);
	lag = fork();
	if (lag == 0) {
		(void)execlp("python3", "python3", b->lag, from, to, half, "bench-lag", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 100 && access(from, F_OK) < 0; i++)
		(void)poll(NULL, 0, 100);
	double open_ms[5], send_ms[5];

	for (int i = 0; i < 5; i++) {
		struct mr_room *room = NULL;
		struct mr_self self = { 0 };
		double begun = now_us();

		open_as(&far, &expects, &room, &self);
		open_ms[i] = (now_us() - begun) / 1e3;
		send_ms[i] = library_send(room, &self, "bob") / 1e3;
		mr_room_close(room);
	}
	(void)kill(lag, SIGTERM);
	(void)waitpid(lag, NULL, 0);
	pg_row(
	    "far-open", "connection and hello at a round trip of 100 ms", median(open_ms, 5) / RTT_MS, "RTT", 0, false);
	pg_row("far-send", "a send behind them", median(send_ms, 5) / RTT_MS, "RTT", 1.2, false);
}
