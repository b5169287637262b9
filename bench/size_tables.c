/* SPDX-License-Identifier: MIT */
/* size_tables.c - growing mailboxes in which all messages share a file: SQLite, and the inbox of a team. */
#include "size.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The inbox of a team ---- */

#define TEAM "size-team"

static struct peer team_sender, team_reader;

static bool
start_teams(struct bench *b)
{
	char *installed = path_of("%s/build/node/installed", b->top),
	     *script = path_of("%s/bench/peer-teams.mjs", b->top);
	const char *const send[] = { "node", script, "bench", TEAM "/full.json", NULL };
	const char *const look[] = { "node", script, "look", TEAM "/reader.json", NULL };
	bool here = is_here("node") && access(installed, R_OK) == 0;

	if (here) {
		make_folder(TEAM);
		peer_start(&team_sender, send);
		peer_start(&team_reader, look);
	}
	free(installed);
	free(script);
	return here;
}

static void
grow_teams(struct bench *b, long from, long to)
{
	static const char *const inboxes[] = { TEAM "/full.json", TEAM "/reader.json" };
	char *script = path_of("%s/tests/peers/teams-peer.mjs", b->top), *count = path_of("%ld", to);

	(void)from;
	for (size_t i = 0; i < 2; i++) {
		const char *const argv[] = { "node", script, "fill", inboxes[i], count, "1024", NULL };

		(void)run_timed(b, argv);
	}
	free(script);
	free(count);
}

static double
send_teams(struct bench *b)
{
	(void)b;
	return peer_send(&team_sender);
}

static double
look_teams(struct bench *b)
{
	(void)b;
	return peer_send(&team_reader);
}

static void
stop_teams(void)
{
	peer_stop(&team_sender);
	peer_stop(&team_reader);
}

const struct grower teams_grows = { .name = "team inbox, Node",
	.how = OPEN,
	.look_what = "read, parse, pick the unread",
	.most = 10000,
	.start = start_teams,
	.grow = grow_teams,
	.send = send_teams,
	.look = look_teams,
	.stop = stop_teams };

/* ---- SQLite ---- */

#define BASE "size-sqlite/mail.db"
#define SCHEMA                                                                                                         \
	"PRAGMA journal_mode=wal; PRAGMA synchronous=FULL;"                                                            \
	"CREATE TABLE full(id INTEGER PRIMARY KEY, body TEXT, seen INTEGER);"                                          \
	"CREATE TABLE reader(id INTEGER PRIMARY KEY, body TEXT, seen INTEGER);"                                        \
	"CREATE INDEX unread ON reader(id) WHERE seen = 0;"
#define LOOK "SELECT id, body FROM reader WHERE seen = 0 ORDER BY id DESC LIMIT 10"

static double
send_sqlite_command(struct bench *b)
{
	static char *sql;

	if (!sql)
		sql = path_of("PRAGMA synchronous=FULL; INSERT INTO full(body, seen) VALUES('%s', 0)", b->body);
	const char *const argv[] = { "sqlite3", BASE, sql, NULL };

	return run_timed(b, argv);
}

static double
look_sqlite_command(struct bench *b)
{
	const char *const argv[] = { "sqlite3", BASE, LOOK, NULL };

	return run_timed(b, argv);
}

static void
grow_nothing(struct bench *b, long from, long to)
{
	(void)b, (void)from, (void)to;
}

#ifdef HAVE_SQLITE
#include <sqlite3.h>

static sqlite3 *db;
static sqlite3_stmt *insert, *look;

static void
run_sql(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(db));
}

static void
add_rows(struct bench *b, const char *table, long n, int seen)
{
	char *sql = path_of("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %ld) "
			    "INSERT INTO %s(body, seen) SELECT '%s', %d FROM c",
	    n, table, b->body, seen);

	run_sql(sql);
	free(sql);
}

static bool
start_sqlite(struct bench *b)
{
	make_folder("size-sqlite");
	if (sqlite3_open(BASE, &db) != SQLITE_OK)
		die("SQLite cannot open '%s'", BASE);
	run_sql(SCHEMA);
	add_rows(b, "reader", UNREAD, 0);
	if (sqlite3_prepare_v2(db, "INSERT INTO full(body, seen) VALUES(?, 0)", -1, &insert, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, LOOK, -1, &look, NULL) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(db));
	return true;
}

static void
grow_sqlite(struct bench *b, long from, long to)
{
	add_rows(b, "full", to - from, 0);
	add_rows(b, "reader", to - from, 1);
	run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
}

static double
send_sqlite(struct bench *b)
{
	double began = now_us();

	if (sqlite3_bind_text(insert, 1, b->body, BODY_BYTES, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_step(insert) != SQLITE_DONE || sqlite3_reset(insert) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(db));
	return now_us() - began;
}

static double
look_sqlite(struct bench *b)
{
	double began = now_us();
	int n = 0;

	(void)b;
	while (sqlite3_step(look) == SQLITE_ROW)
		n += sqlite3_column_bytes(look, 1) > 0;
	if (n != UNREAD || sqlite3_reset(look) != SQLITE_OK)
		die("SQLite shows %d unread", n);
	return now_us() - began;
}

static void
stop_sqlite(void)
{
	(void)sqlite3_finalize(insert);
	(void)sqlite3_finalize(look);
	(void)sqlite3_close(db);
}

static bool
has_command(struct bench *b)
{
	(void)b;
	return db != NULL && is_here("sqlite3");
}
#else
static bool
start_sqlite(struct bench *b)
{
	(void)b;
	return false;
}
#define has_command start_sqlite
#define grow_sqlite grow_nothing
#define send_sqlite NULL
#define look_sqlite NULL
#define stop_sqlite NULL
#endif

const struct grower sqlite_grows = { .name = "SQLite, WAL",
	.how = OPEN,
	.look_what = "SELECT of 10 by an index of the unread",
	.most = 100000,
	.start = start_sqlite,
	.grow = grow_sqlite,
	.send = send_sqlite,
	.look = look_sqlite,
	.stop = stop_sqlite };

const struct grower sqlite_command_grows = { .name = "sqlite3, WAL",
	.how = COMMAND,
	.look_what = "SELECT of 10 by an index of the unread",
	.most = 100000,
	.start = has_command,
	.grow = grow_nothing,
	.send = send_sqlite_command,
	.look = look_sqlite_command };
