/* SPDX-License-Identifier: MIT */
/*
 * index.h - an index of a room's mail in SQLite, with FTS5. Only in mailroom-full.
 *
 *	db.c      the database: opening, its tables, our words as FTS5's tokenizer
 *	update.c  bringing it up to date, store by store (room.h, struct mail_store)
 *	scan.c    answering a scan from it
 *	full.c    which libraries this program has
 *
 * It is a cache. The database is whole after a kill and after a power cut (write-ahead log, synced at checkpoints). One
 * that SQLite finds torn, or that another version wrote, is removed and made again by the next update, and passed by
 * until then. Nothing in it is shown: it names candidates, and each is fetched from the room and judged by the matcher.
 *
 *	store   a part of an agent's mailbox, and the stamp that it had when all of it was in the index
 *	copy    a message of a store
 *	doc     one text, of any number of copies. Its number is the time of the id (48 bits of milliseconds) and
 *	        15 bits to tell several apart, so FTS5 gives hits newest first without sorting. 0 stands for mail
 *	        that could not be read, which is a candidate of every search
 *	link    from the hash of a thread, of what is answered, or of the end of an id, to docs
 *	words   FTS5 without contents: sender, recipients, type, and subject and body
 *
 * Hashes and numbers may meet; then a candidate too many is read, nothing more.
 */
#ifndef INDEX_INDEX_H
#define INDEX_INDEX_H

#include <sqlite3.h>

#include "office/mail/index.h"

#define DOC_BITS 15
#define DOC_UNREADABLE 0
#define END_LEN 6 /* characters of an id that are enough to name it */

enum index_sql { /* statements that are kept prepared; db.c has their text */
	SQL_STORES,
	SQL_STORE_ADD,
	SQL_STORE_STAMP,
	SQL_STORE_DROP,
	SQL_COPIES,
	SQL_COPY_ADD,
	SQL_COPY_DROP,
	SQL_COPIES_DROP,
	SQL_DOCS_AT,
	SQL_DOC_ADD,
	SQL_LINK_ADD,
	SQL_WORDS_ADD,
	SQL_AGENTS,
	SQL_COUNT,
	SQL_GONE,
	SQL_UNREADABLE,
	SQL_BY_LINK,
	SQL_BY_LINK_OLDEST,
	SQL_BY_WORDS,
	SQL_BY_WORDS_OLDEST,
	SQL_N
};

struct index_db { /* finish with index_close */
	sqlite3 *db;
	sqlite3_stmt *kept[SQL_N];
	int code; /* of the last step */
};

/* MR_NOTFOUND: none, and not to be made. MR_CORRUPT: torn, or of another version. */
enum mr_rc index_open(struct index_db *ix, const char *folder, bool make, struct mr_error *err);
void index_close(struct index_db *ix);
/* Removes the files, for a new beginning. */
void index_remove(const char *folder);
/* The statement with its values: `values` has a letter for each, 'i' an int64_t, 's' a struct mr_str that lives until
 * it has run. NULL: index_failed says why. */
sqlite3_stmt *index_ask(struct index_db *ix, enum index_sql which, const char *values, ...);
/* Inserts or deletes: runs a statement that returns no row. */
enum mr_rc index_do(struct index_db *ix, struct mr_error *err, enum index_sql which, const char *values, ...);
/* Steps to the next row. False: there is none, the statement was reset, and index_asked tells whether that is its end.
 */
bool index_row(struct index_db *ix, sqlite3_stmt *st);
enum mr_rc index_asked(struct index_db *ix, struct mr_error *err);
enum mr_rc index_run(struct index_db *ix, const char *sql, struct mr_error *err);
/* From SQLite's last error: MR_CORRUPT, MR_FULL, MR_BUSY or MR_IO. */
enum mr_rc index_failed(struct index_db *ix, struct mr_error *err);

/* ---- update.c ---- */

struct index_store { /* a store as it is, and what the index knows of it */
	struct mail_store now;
	char name[256];
	int64_t number;  /* in the index; 0: unknown there */
	bool is_current; /* all of it is in the index */
};
struct index_stores { /* finish with index_stores_done */
	struct index_store *v;
	size_t n, cap;
};
/* The stores of an agent. */
enum mr_rc index_stores(
    struct index_db *ix, struct mr_room *room, const char *agent, struct index_stores *ret, struct mr_error *err);
void index_stores_done(struct index_stores *s);

struct index_update {
	struct index_db *ix;
	struct mr_room *room;
	size_t most_new; /* stores with more that is new are left as they are; 0: none */
	mr_index_fn *progress;
	void *ctx;
	size_t added, removed;
	bool stopped;
};
/* Brings the stores of one agent up to date; the lock is held. is_current tells of each whether it is. */
enum mr_rc index_update_agent(
    struct index_update *u, const char *agent, struct index_stores *stores, struct mr_error *err);
/* The lock of those who write into the index. MR_BUSY. wait_ms as lock_take. */
enum mr_rc index_lock(const char *folder, int64_t wait_ms, int *ret_fd, struct mr_error *err);
/* For a search: what can be done at once, by this process. Stores that are not current afterwards have to be scanned.
 */
void index_refresh(
    struct index_db *ix, struct mr_room *room, const char *folder, const char *agent, struct index_stores *stores);

uint64_t index_key(const char *kind, const char *value); /* "t" thread, "r" what is answered, "e" the end of an id */

enum mr_rc index_update_all(struct mr_room *room, const char *folder, bool wait, mr_index_fn *progress, void *ctx,
    struct mr_indexed *ret, struct mr_error *err);
enum mr_rc index_scan_mail(
    struct mr_room *room, const char *folder, const struct index_scan *want, struct mr_error *err);
void index_find_ends(struct index_ends *e, const char *folder);
void index_ends_close(struct index_ends *e);

#endif
