/* SPDX-License-Identifier: MIT */
/* db.c - the database: opening, its tables, our words as FTS5's tokenizer. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "base/file.h"
#include "index/index.h"

#define DATABASE "mail.db"
#define VERSION 2 /* of tables, links and words; any other is not used */
#define VERSION_TEXT "2"
#define WORD_BYTES 64 /* of a longer word the index has the beginning: a candidate too many, at worst */
#define BUSY_MS 2000

static const char schema[] =
    "CREATE TABLE store(number INTEGER PRIMARY KEY, agent TEXT NOT NULL, name TEXT NOT NULL, folders INTEGER NOT NULL,"
    " stamp INTEGER NOT NULL, whole INTEGER NOT NULL, UNIQUE(agent, name));"
    "CREATE TABLE copy(doc INTEGER NOT NULL, store INTEGER NOT NULL, id TEXT NOT NULL,"
    " PRIMARY KEY(doc, store, id)) WITHOUT ROWID;"
    "CREATE INDEX copy_of_store ON copy(store, id);"
    "CREATE TABLE doc(doc INTEGER PRIMARY KEY, sum INTEGER NOT NULL);"
    "CREATE TABLE tie(key INTEGER NOT NULL, doc INTEGER NOT NULL, PRIMARY KEY(key, doc)) WITHOUT ROWID;"
    "CREATE VIRTUAL TABLE words USING fts5(sender, rcpt, kind, rest, content='', columnsize=0, tokenize='mailroom');";

static const char *const sql[SQL_N] = {
	[SQL_STORES] = "SELECT number, name, stamp, whole FROM store WHERE agent = ?1",
	[SQL_STORE_ADD] = "INSERT INTO store(agent, name, folders, stamp, whole) VALUES(?1, ?2, ?3, 0, 0)",
	[SQL_STORE_STAMP] = "UPDATE store SET stamp = ?2, whole = ?3 WHERE number = ?1",
	[SQL_STORE_DROP] = "DELETE FROM store WHERE number = ?1",
	[SQL_COPIES] = "SELECT id, doc FROM copy WHERE store = ?1 ORDER BY id",
	[SQL_COPY_ADD] = "INSERT OR IGNORE INTO copy(doc, store, id) VALUES(?1, ?2, ?3)",
	[SQL_COPY_DROP] = "DELETE FROM copy WHERE store = ?1 AND id = ?2",
	[SQL_COPIES_DROP] = "DELETE FROM copy WHERE store = ?1",
	[SQL_DOCS_AT] = "SELECT doc, sum FROM doc WHERE doc >= ?1 AND doc < ?2",
	[SQL_DOC_ADD] = "INSERT INTO doc(doc, sum) VALUES(?1, ?2)",
	[SQL_LINK_ADD] = "INSERT OR IGNORE INTO tie(key, doc) VALUES(?1, ?2)",
	[SQL_WORDS_ADD] = "INSERT INTO words(rowid, sender, rcpt, kind, rest) VALUES(?1, ?2, ?3, ?4, ?5)",
	[SQL_AGENTS] = "SELECT DISTINCT agent FROM store",
	[SQL_COUNT] = "SELECT count(*) FROM copy",
	[SQL_GONE] = "SELECT count(*), sum(NOT EXISTS (SELECT 1 FROM copy c WHERE c.doc = d.doc)) FROM doc d",
	[SQL_UNREADABLE] = "SELECT store, id FROM copy WHERE doc = 0",
#define BY_LINK                                                                                                        \
	"SELECT l.doc, c.store, c.id FROM tie l CROSS JOIN copy c ON c.doc = l.doc WHERE l.key = ?1 ORDER BY l.doc"
	[SQL_BY_LINK] = BY_LINK " DESC",
	[SQL_BY_LINK_OLDEST] = BY_LINK,
#define BY_WORDS                                                                                                       \
	"SELECT w.rowid, c.store, c.id FROM words w CROSS JOIN copy c ON c.doc = w.rowid WHERE words MATCH ?1 "        \
	"AND w.rowid >= ?2 AND w.rowid < ?3 ORDER BY w.rowid"
	[SQL_BY_WORDS] = BY_WORDS " DESC",
	[SQL_BY_WORDS_OLDEST] = BY_WORDS,
};

/* ---- Errors ---- */

enum mr_rc
index_failed(struct index_db *ix, struct mr_error *err)
{
	int code = sqlite3_errcode(ix->db) & 0xff;
	const char *why = sqlite3_errmsg(ix->db);

	if (code == SQLITE_IOERR && sqlite3_system_errno(ix->db) == ENOSPC) /* for the shared memory of the log */
		code = SQLITE_FULL;

	switch (code) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return mr_fail(err, MR_CORRUPT, "it is damaged (%s)\n`mailroom index` makes it again", why);
	case SQLITE_FULL:
		return mr_fail(err, MR_FULL, "the disk is full");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return mr_fail(err, MR_BUSY, "another process is using it");
	case SQLITE_NOMEM:
		return mr_nomem(err);
	default:
		return mr_fail(err, MR_IO, "%s", why);
	}
}

/* ---- Words ---- */

static int
word_make(void *ctx, const char **args, int n, Fts5Tokenizer **ret)
{
	static char any;

	(void)ctx;
	(void)args;
	(void)n;
	*ret = (Fts5Tokenizer *)&any; /* there is nothing to keep, and NULL would be "out of memory" */
	return SQLITE_OK;
}

static void
word_unmake(Fts5Tokenizer *t)
{
	(void)t;
}

static int
word_each(Fts5Tokenizer *t, void *ctx, int flags, const char *text, int len,
    int (*take)(void *, int, const char *, int, int, int))
{
	struct mr_str rest = { text, (size_t)len }, word;
	char low[WORD_BYTES];
	int rc = SQLITE_OK;

	(void)t;
	(void)flags;
	while (rc == SQLITE_OK && query_word(&rest, &word)) {
		size_t n = word.len < WORD_BYTES ? word.len : WORD_BYTES;
		int start = (int)(word.ptr - text);

		for (size_t i = 0; i < n; i++)
			low[i] = ascii_lower(word.ptr[i]);
		rc = take(ctx, 0, low, (int)n, start, start + (int)word.len);
	}
	return rc;
}

static bool
add_words(sqlite3 *db)
{
	fts5_tokenizer words = { word_make, word_unmake, word_each };
	sqlite3_stmt *st = NULL;
	fts5_api *api = NULL;
	bool made = false;

	if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_bind_pointer(st, 1, (void *)&api, "fts5_api_ptr", NULL) == SQLITE_OK) {
		(void)sqlite3_step(st);
		made = api && api->xCreateTokenizer(api, "mailroom", NULL, &words, NULL) == SQLITE_OK;
	}
	(void)sqlite3_finalize(st);
	return made;
}

/* ---- Opening ---- */

static enum mr_rc
number_of(struct index_db *ix, const char *question, int64_t *ret, struct mr_error *err)
{
	sqlite3_stmt *st = NULL;
	bool told = sqlite3_prepare_v2(ix->db, question, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW;

	if (told)
		*ret = sqlite3_column_int64(st, 0);
	enum mr_rc rc = told ? MR_OK : index_failed(ix, err);

	(void)sqlite3_finalize(st);
	return rc;
}

enum mr_rc
index_run(struct index_db *ix, const char *text, struct mr_error *err)
{
	return sqlite3_exec(ix->db, text, NULL, NULL, NULL) == SQLITE_OK ? MR_OK : index_failed(ix, err);
}

/* A new file is ours alone whatever the umask; SQLite gives the files beside it the same mode. */
static enum mr_rc
make_file(const char *path, bool make, struct mr_error *err)
{
	struct stat st;

	if (sys_stat(AT_FDCWD, path, &st) == 0)
		return S_ISREG(st.st_mode) && st.st_uid == sys_euid()
			   ? MR_OK
			   : mr_fail(err, MR_CORRUPT, "'%s' is not a file of yours", DATABASE);
	if (!make)
		return mr_fail(err, MR_NOTFOUND, "there is no index");
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600);

	return fd >= 0 ? MR_OK : mr_fail_errno(err, "cannot make '%s'", DATABASE);
}

static enum mr_rc
prepare(struct index_db *ix, bool make, struct mr_error *err)
{
	int64_t version = 0;

	(void)sqlite3_busy_timeout(ix->db, BUSY_MS);
	(void)sqlite3_db_config(ix->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(ix->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (!add_words(ix->db))
		return mr_fail(err, MR_IO, "this SQLite has no FTS5");
	TRY(number_of(ix, "PRAGMA user_version", &version, err));
	if (version != VERSION && version != 0)
		return mr_fail(err, MR_CORRUPT, "another version of mailroom made it\n`mailroom index` makes it again");
	/* The first pragma reads the file: a torn one is found out here. */
	TRY(index_run(ix, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16384", err));
	if (version == VERSION)
		return MR_OK;
	if (!make)
		return mr_fail(err, MR_NOTFOUND, "it is not begun");
	TRY(index_run(ix, "BEGIN IMMEDIATE", err));
	TRY(number_of(ix, "PRAGMA user_version", &version, err)); /* another process was faster */
	if (version == 0) {
		TRY(index_run(ix, schema, err));
		TRY(index_run(ix, "PRAGMA user_version=" VERSION_TEXT, err));
	}
	return index_run(ix, "COMMIT", err);
}

enum mr_rc
index_open(struct index_db *ix, const char *folder, bool make, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	*ix = (struct index_db){ 0 };
	buf_addf(&path, "%s/" DATABASE, folder);
	if (!buf_ok(&path))
		return mr_nomem(err);
	TRY(make_file(buf_z(&path), make, err));
	int code = sqlite3_open_v2(
	    buf_z(&path), &ix->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
	enum mr_rc rc = code == SQLITE_OK ? prepare(ix, make, err) : index_failed(ix, err);

	if (rc != MR_OK)
		index_close(ix);
	return rc;
}

void
index_close(struct index_db *ix)
{
	for (size_t i = 0; i < SQL_N; i++)
		(void)sqlite3_finalize(ix->kept[i]);
	(void)sqlite3_close(ix->db);
	*ix = (struct index_db){ 0 };
}

void
index_remove(const char *folder)
{
	for (const char *const *end = (const char *const[]){ "-wal", "-shm", "-journal", "", NULL }; *end; end++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;

		buf_addf(&path, "%s/" DATABASE "%s", folder, *end);
		if (buf_ok(&path))
			dir_remove_tree(AT_FDCWD, buf_z(&path));
	}
}

/* ---- Statements ---- */

static sqlite3_stmt *
bound(struct index_db *ix, enum index_sql which, const char *values, va_list args)
{
	sqlite3_stmt **st = &ix->kept[which];

	if (!*st && sqlite3_prepare_v3(ix->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, st, NULL) != SQLITE_OK)
		return NULL;
	(void)sqlite3_reset(*st);
	for (int at = 1; *values; values++, at++) {
		if (*values == 'i') {
			(void)sqlite3_bind_int64(*st, at, va_arg(args, int64_t));
		} else {
			struct mr_str s = va_arg(args, struct mr_str);

			(void)sqlite3_bind_text64(*st, at, s.ptr ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8);
		}
	}
	return *st;
}

sqlite3_stmt *
index_ask(struct index_db *ix, enum index_sql which, const char *values, ...)
{
	va_list args;

	va_start(args, values);
	sqlite3_stmt *st = bound(ix, which, values, args);

	va_end(args);
	return st;
}

enum mr_rc
index_do(struct index_db *ix, struct mr_error *err, enum index_sql which, const char *values, ...)
{
	va_list args;

	va_start(args, values);
	(void)index_row(ix, bound(ix, which, values, args));
	va_end(args);
	return index_asked(ix, err);
}

bool
index_row(struct index_db *ix, sqlite3_stmt *st)
{
	ix->code = st ? sqlite3_step(st) : SQLITE_ERROR;
	if (ix->code != SQLITE_ROW)
		(void)sqlite3_reset(st); /* and the connection still tells what went wrong */
	return ix->code == SQLITE_ROW;
}

enum mr_rc
index_asked(struct index_db *ix, struct mr_error *err)
{
	return ix->code == SQLITE_DONE ? MR_OK : index_failed(ix, err);
}

const struct mail_index sqlite_index = {
	.update = index_update_all,
	.scan = index_scan_mail,
	.ends = index_find_ends,
	.ends_done = index_ends_close,
};
