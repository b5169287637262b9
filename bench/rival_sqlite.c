/* SPDX-License-Identifier: MIT */
/* rival_sqlite.c - one INSERT as one transaction, synchronous=FULL, with the default journal and with a write-ahead
 * log. */
#include "rival.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TABLE "CREATE TABLE IF NOT EXISTS mail(id INTEGER PRIMARY KEY, recipient TEXT, body TEXT)"
#define INSERT "INSERT INTO mail(recipient, body) VALUES('rita', '%s')"

static bool
is_wal(const struct rival *r)
{
	return r == &sqlite_wal_command || r == &sqlite_wal_open;
}

static char *
database_of(const struct rival *r)
{
	return path_of("%s/mail.db", r->folder);
}

/* ---- As a command ---- */

static bool
start_command(struct bench *b, const struct rival *r)
{
	char *database = database_of(r), *sql;
	bool here = is_here("sqlite3");

	make_folder(r->folder);
	sql = path_of("PRAGMA journal_mode=%s; " TABLE, is_wal(r) ? "wal" : "delete");
	const char *const argv[] = { "sqlite3", database, sql, NULL };
	if (here && run_program(b, argv, NULL) != 0)
		die("sqlite3 failed");
	free(database);
	free(sql);
	return here;
}

static void *
open_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *database = database_of(r), *sql = path_of("PRAGMA synchronous=FULL; " INSERT, b->body);
	const char *const argv[] = { "sqlite3", "-cmd", ".timeout 30000", database, sql, NULL };
	struct command *c = command_new(argv, NULL);

	(void)sender;
	c->owned[0] = database;
	c->owned[1] = sql;
	return c;
}

/* ---- In this process ---- */

#ifdef HAVE_SQLITE
#include <sqlite3.h>

struct base {
	sqlite3 *db;
	sqlite3_stmt *insert;
};

static void
run_sql(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(db));
}

static void *
open_base(struct bench *b, const struct rival *r, unsigned sender)
{
	struct base *base = calloc(1, sizeof(*base));
	char *database = database_of(r);

	(void)b, (void)sender;
	if (!base || sqlite3_open(database, &base->db) != SQLITE_OK)
		die("SQLite cannot open '%s'", database);
	(void)sqlite3_busy_timeout(base->db, 30000);
	run_sql(base->db, is_wal(r) ? "PRAGMA journal_mode=wal" : "PRAGMA journal_mode=delete");
	run_sql(base->db, "PRAGMA synchronous=FULL");
	run_sql(base->db, TABLE);
	if (sqlite3_prepare_v2(
		base->db, "INSERT INTO mail(recipient, body) VALUES('rita', ?)", -1, &base->insert, NULL) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(base->db));
	free(database);
	return base;
}

static bool
start_base(struct bench *b, const struct rival *r)
{
	(void)b;
	make_folder(r->folder);
	return true;
}

static double
send_base(struct bench *b, void *handle)
{
	struct base *base = handle;
	double began = now_us();

	if (sqlite3_bind_text(base->insert, 1, b->body, BODY_BYTES, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_step(base->insert) != SQLITE_DONE || sqlite3_reset(base->insert) != SQLITE_OK)
		die("SQLite: %s", sqlite3_errmsg(base->db));
	return now_us() - began;
}

static void
settle_base(struct bench *b, void *handle)
{
	struct base *base = handle;

	(void)b;
	run_sql(base->db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void
close_base(void *handle)
{
	struct base *base = handle;

	(void)sqlite3_finalize(base->insert);
	(void)sqlite3_close(base->db);
	free(base);
}
#else
static bool
start_base(struct bench *b, const struct rival *r)
{
	(void)b, (void)r;
	return false;
}
#define open_base NULL
#define send_base NULL
#define settle_base NULL
#define close_base NULL
#endif

#define WITH_JOURNAL                                                                                                   \
	"nearly: the database is synced before the answer, the removal of the journal is not; a power cut right "      \
	"behind "                                                                                                      \
	"it can roll the last message back"
#define WITH_LOG "full: the log is synced before the answer"

const struct rival sqlite_command = { .name = "sqlite3, journal",
	.how = COMMAND,
	.folder = "rival-sqlite-command",
	.durability = WITH_JOURNAL,
	.start = start_command,
	.open = open_command,
	.send = command_send,
	.close = command_close };

const struct rival sqlite_wal_command = { .name = "sqlite3, WAL",
	.how = COMMAND,
	.folder = "rival-sqlite-wal-command",
	.durability = WITH_LOG,
	.note = "the last one to close the database moves the log into it: here that is every command",
	.window_ms = 500,
	.start = start_command,
	.open = open_command,
	.send = command_send,
	.close = command_close };

const struct rival sqlite_open = { .name = "SQLite, journal",
	.how = OPEN,
	.folder = "rival-sqlite-open",
	.durability = WITH_JOURNAL,
	.window_ms = 500,
	.start = start_base,
	.open = open_base,
	.send = send_base,
	.close = close_base };

const struct rival sqlite_wal_open = { .name = "SQLite, WAL",
	.how = OPEN,
	.folder = "rival-sqlite-wal-open",
	.durability = WITH_LOG,
	.window_ms = 500,
	.start = start_base,
	.open = open_base,
	.send = send_base,
	.settle = settle_base,
	.close = close_base };
