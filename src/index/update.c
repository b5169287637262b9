/* SPDX-License-Identifier: MIT */
/*
 * update.c - bringing the index up to date. A store whose stamp is the one that the index noted is not looked at.
 * Of any other the names are listed and compared with those that the index has: only what is new is read, and what left
 * one store for another (the inbox for the archive) is not read again.
 *
 * What was read is gathered and put in by batches, in the order of ids: FTS5 writes a piece of its index whenever
 * numbers go down. A batch is a transaction, so a killed update goes on where it stopped. The stamp of a store is noted
 * after its last batch, and is the one that it had before it was listed.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "index/index.h"
#include <fcntl.h>

#define BATCH_BYTES ((size_t)8 << 20)
#define BATCH_N 4000
#define GONE_SHARE 4  /* one text of so many may be of mail that is gone */
#define MOST_NEW 5000 /* that a search reads for the index: more is scanned as if there were none */
#define WAIT_FOR_EVER_MS ((int64_t)7 * 24 * 3600 * 1000)

struct known { /* a copy that the index has */
	char id[MR_ID_LEN + 1];
	int64_t doc;
};
struct knowns {
	struct known *v;
	size_t n, cap;
};

struct entry { /* a message to be put in */
	char id[MR_ID_LEN + 1];
	bool readable;
	struct mr_str sender, rcpt, kind, rest;
	uint64_t thread, own, reply; /* keys; 0: none */
};

struct work { /* one agent's */
	struct index_update *u;
	const char *agent;
	struct index_store *store;
	struct mr_names ids; /* of the store, as listed */
	struct knowns known; /* of the store, by id */
	struct knowns gone;  /* of the stores before it: it may have moved */
	struct entry *v;     /* the batch */
	size_t n, cap, bytes;
	struct arena *texts;
	enum mr_rc rc;
	struct mr_error *err;
};

static void
work_done(struct work *w)
{
	mr_names_done(&w->ids);
	free(w->known.v);
	free(w->gone.v);
	free(w->v);
	arena_free(w->texts);
}

uint64_t
index_key(const char *kind, const char *value)
{
	char text[1200];

	text_join(text, sizeof(text), kind, value, NULL);
	uint64_t key = hash_bytes(str_of(text));

	return *value ? key | 1 : 0;
}

static int
by_id(const void *a, const void *b) /* the id comes first in both structs */
{
	return memcmp(a, b, MR_ID_LEN);
}

static const struct known *
find_known(const struct knowns *k, const char *id)
{
	return k->n > 0 ? bsearch(id, k->v, k->n, sizeof(*k->v), by_id) : NULL;
}

/* ---- Putting in ---- */

static enum mr_rc
add_copy(struct work *w, int64_t doc, const char *id)
{
	return index_do(w->u->ix, w->err, SQL_COPY_ADD, "iis", doc, w->store->number, str_of(id));
}

/* The number of this text: the one that it has, or a new one. */
static enum mr_rc
find_doc(struct work *w, const struct entry *e, int64_t sum, int64_t *ret_doc, bool *ret_new)
{
	int64_t ms = id_time_ms(e->id), next = (ms > 0 ? ms : 1) << DOC_BITS;
	sqlite3_stmt *st = index_ask(w->u->ix, SQL_DOCS_AT, "ii", next, next + (1 << DOC_BITS));

	*ret_new = true;
	while (*ret_new && index_row(w->u->ix, st)) {
		*ret_doc = sqlite3_column_int64(st, 0);
		next = *ret_doc + 1; /* full: it comes among those of the next millisecond */
		*ret_new = sqlite3_column_int64(st, 1) != sum;
	}
	if (*ret_new) {
		*ret_doc = next;
		return index_asked(w->u->ix, w->err);
	}
	(void)sqlite3_reset(st);
	return MR_OK;
}

static enum mr_rc
add_link(struct work *w, uint64_t key, int64_t doc)
{
	return key ? index_do(w->u->ix, w->err, SQL_LINK_ADD, "ii", (int64_t)key, doc) : MR_OK;
}

static enum mr_rc
put_in(struct work *w, const struct entry *e)
{
	struct index_db *ix = w->u->ix;
	const uint64_t parts[] = { hash_bytes(str_of(e->id)), hash_bytes(e->sender), hash_bytes(e->rcpt),
		hash_bytes(e->kind), hash_bytes(e->rest), e->thread, e->reply };
	int64_t sum = (int64_t)hash_bytes((struct mr_str){ (const char *)parts, sizeof(parts) }), doc = 0;
	bool is_new = false;

	if (!e->readable)
		return add_copy(w, DOC_UNREADABLE, e->id);
	TRY(find_doc(w, e, sum, &doc, &is_new));
	if (is_new) {
		TRY(index_do(ix, w->err, SQL_DOC_ADD, "ii", doc, sum));
		TRY(index_do(ix, w->err, SQL_WORDS_ADD, "issss", doc, e->sender, e->rcpt, e->kind, e->rest));
		TRY(add_link(w, e->thread, doc));
		TRY(add_link(w, e->own, doc));
		TRY(add_link(w, e->reply, doc));
		TRY(add_link(w, index_key("e", e->id + MR_ID_LEN - END_LEN), doc));
	}
	return add_copy(w, doc, e->id);
}

static enum mr_rc
put_batch(struct work *w)
{
	if (w->n == 0)
		return MR_OK;
	qsort(w->v, w->n, sizeof(*w->v), by_id);
	TRY(index_run(w->u->ix, "BEGIN IMMEDIATE", w->err));
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < w->n && rc == MR_OK; i++)
		rc = put_in(w, &w->v[i]);
	if (rc == MR_OK)
		rc = index_run(w->u->ix, "COMMIT", w->err);
	if (rc != MR_OK)
		(void)index_run(w->u->ix, "ROLLBACK", IGNORED);
	else
		w->u->added += w->n;
	w->n = w->bytes = 0;
	arena_free(w->texts);
	w->texts = NULL;
	if (rc == MR_OK && w->u->progress && !w->u->progress(w->u->ctx, w->u->added))
		w->u->stopped = true;
	return rc;
}

/* ---- Reading ---- */

static struct mr_str
keep(struct work *w, const struct buf *text)
{
	struct mr_str s = buf_str(text);
	char *copy = arena_dup(&w->texts, s);

	if (!copy || text->failed)
		w->rc = mr_nomem(w->err);
	w->bytes += s.len;
	return (struct mr_str){ copy, copy ? s.len : 0 };
}

static struct entry *
new_entry(struct work *w, const char *id)
{
	if (!array_grow(&w->v, w->n, &w->cap, sizeof(*w->v))) {
		w->rc = mr_nomem(w->err);
		return NULL;
	}
	struct entry *e = &w->v[w->n++];

	*e = (struct entry){ 0 };
	memcpy(e->id, id, sizeof(e->id));
	w->bytes += sizeof(*e);
	return e;
}

static bool
take_message(void *ctx, const struct mr_message *msg)
{
	struct work *w = ctx;
	mr_auto(buf_done) struct buf sender = BUF_INIT, rcpt = BUF_INIT, kind = BUF_INIT, rest = BUF_INIT;

	if (find_known(&w->known, msg->id))
		return true;
	struct entry *e = new_entry(w, msg->id);

	if (!e)
		return false;
	buf_adds(&sender, msg->from);
	for (size_t i = 0; i < msg->to.n + msg->cc.n; i++)
		buf_addf(&rcpt, "%s\n", i < msg->to.n ? msg->to.v[i] : msg->cc.v[i - msg->to.n]);
	buf_adds(&kind, msg->type);
	buf_addf(&rest, "%s\n", msg->subject);
	if (msg->body)
		buf_add(&rest, (struct mr_str){ msg->body, msg->body_len });
	e->readable = true;
	e->sender = keep(w, &sender);
	e->rcpt = keep(w, &rcpt);
	e->kind = keep(w, &kind);
	e->rest = keep(w, &rest);
	e->thread = index_key("t", msg->thread);
	e->own = strcmp(msg->thread, msg->id) != 0 ? index_key("t", msg->id) : 0;
	e->reply = index_key("r", msg->reply_to);
	if (w->rc == MR_OK && (w->n >= BATCH_N || w->bytes >= BATCH_BYTES))
		w->rc = put_batch(w);
	return w->rc == MR_OK && !w->u->stopped;
}

static bool
take_id(void *ctx, const struct mr_message *msg)
{
	struct work *w = ctx;

	if (!names_add(&w->ids, str_of(msg->id)))
		w->rc = mr_nomem(w->err);
	return w->rc == MR_OK;
}

static enum mr_rc
load_known(struct work *w)
{
	sqlite3_stmt *st = index_ask(w->u->ix, SQL_COPIES, "i", w->store->number);

	w->known.n = 0;
	while (index_row(w->u->ix, st)) {
		if (!array_grow(&w->known.v, w->known.n, &w->known.cap, sizeof(*w->known.v)))
			return mr_nomem(w->err);
		struct known *k = &w->known.v[w->known.n++];

		(void)snprintf(k->id, sizeof(k->id), "%s", (const char *)sqlite3_column_text(st, 0));
		k->doc = sqlite3_column_int64(st, 1);
	}
	return index_asked(w->u->ix, w->err);
}

/* Those that the index has and the store has no more: they leave the index, and are remembered for the stores that
 * follow. Both lists are in the order of ids. */
static enum mr_rc
drop_gone(struct work *w)
{
	size_t before = w->gone.n;

	for (size_t i = 0, at = 0; i < w->known.n; i++) {
		while (at < w->ids.n && memcmp(w->ids.v[at], w->known.v[i].id, MR_ID_LEN) < 0)
			at++;
		if (at < w->ids.n && memcmp(w->ids.v[at], w->known.v[i].id, MR_ID_LEN) == 0)
			continue;
		TRY(index_do(w->u->ix, w->err, SQL_COPY_DROP, "is", w->store->number, str_of(w->known.v[i].id)));
		if (!array_grow(&w->gone.v, w->gone.n, &w->gone.cap, sizeof(*w->gone.v)))
			return mr_nomem(w->err);
		w->gone.v[w->gone.n++] = w->known.v[i];
	}
	w->u->removed += w->gone.n - before;
	if (before > 0 && w->gone.n > before)
		qsort(w->gone.v, w->gone.n, sizeof(*w->gone.v), by_id);
	return MR_OK;
}

/* Of the ids that the index does not have, those that came from another store; what is left has to be read, and is all
 * that stays in w->ids. */
static enum mr_rc
take_moved(struct work *w)
{
	size_t left = 0;

	for (size_t i = 0; i < w->ids.n; i++) {
		char *id = w->ids.v[i];
		const struct known *moved = find_known(&w->gone, id);

		w->ids.v[i] = NULL;
		if (moved && moved->doc != DOC_UNREADABLE && !find_known(&w->known, id)) {
			TRY(add_copy(w, moved->doc, id));
			w->u->added++;
		} else if (!find_known(&w->known, id)) {
			w->ids.v[left++] = id;
			continue;
		}
		free(id);
	}
	w->ids.n = left;
	return MR_OK;
}

static enum mr_rc
read_new(struct work *w)
{
	struct scan_request all = {
		.folders = w->store->now.folders, .store = w->store->now.name, .depth = SCAN_BODIES
	};

	/* Most of it: the driver reads a folder quicker than one by one. */
	if (w->ids.n > 64 && w->ids.n > w->known.n)
		TRY(w->u->room->driver->scan(w->u->room, w->agent, &all, take_message, w, w->err));
	TRY(w->rc);
	TRY(put_batch(w));
	if (w->ids.n > 64 && w->ids.n > w->known.n)
		TRY(load_known(w));
	for (size_t i = 0; i < w->ids.n && w->rc == MR_OK && !w->u->stopped; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		if (find_known(&w->known, w->ids.v[i]))
			continue;
		enum mr_rc rc = w->u->room->driver->fetch(
		    w->u->room, w->agent, w->ids.v[i], all.folders, SCAN_BODIES, &msg, IGNORED);

		if (rc == MR_NOMEM)
			return mr_nomem(w->err);
		if (rc == MR_OK)
			(void)take_message(w, &msg);
		else if (rc != MR_NOTFOUND) /* moved on: its new store has it */
			(void)new_entry(w, w->ids.v[i]);
	}
	TRY(w->rc);
	return put_batch(w);
}

/* ---- Stores ---- */

static enum mr_rc
update_store(struct work *w)
{
	struct scan_request names = {
		.folders = w->store->now.folders, .store = w->store->now.name, .depth = SCAN_NAMES
	};

	if (w->store->number == 0) {
		TRY(index_do(w->u->ix, w->err, SQL_STORE_ADD, "ssi", str_of(w->agent), str_of(w->store->name),
		    (int64_t)w->store->now.folders));
		w->store->number = sqlite3_last_insert_rowid(w->u->ix->db);
	}
	mr_names_done(&w->ids);
	w->ids = (struct mr_names){ 0 };
	TRY(w->u->room->driver->scan(w->u->room, w->agent, &names, take_id, w, w->err));
	TRY(w->rc);
	TRY(load_known(w));
	TRY(index_run(w->u->ix, "BEGIN IMMEDIATE", w->err));
	enum mr_rc rc = drop_gone(w);

	if (rc == MR_OK)
		rc = take_moved(w);
	if (rc == MR_OK)
		rc = index_run(w->u->ix, "COMMIT", w->err);
	if (rc != MR_OK) {
		(void)index_run(w->u->ix, "ROLLBACK", IGNORED);
		return rc;
	}
	if (w->u->most_new > 0 && w->ids.n > w->u->most_new)
		return MR_OK;
	TRY(read_new(w));
	if (w->u->stopped)
		return MR_OK;
	w->store->is_current = true;
	return index_do(w->u->ix, w->err, SQL_STORE_STAMP, "iii", w->store->number, (int64_t)w->store->now.stamp,
	    (int64_t)!w->store->now.moving);
}

static bool
take_store(void *ctx, const struct mail_store *store)
{
	struct index_stores *s = ctx;

	if (!array_grow(&s->v, s->n, &s->cap, sizeof(*s->v)))
		return false;
	struct index_store *to = &s->v[s->n++];

	*to = (struct index_store){ .now = *store };
	text_join(to->name, sizeof(to->name), store->name, NULL);
	return true;
}

enum mr_rc
index_stores(
    struct index_db *ix, struct mr_room *room, const char *agent, struct index_stores *ret, struct mr_error *err)
{
	TRY(room->driver->files->each_store(room, agent, take_store, ret, err));
	for (size_t i = 0; i < ret->n; i++)
		ret->v[i].now.name = ret->v[i].name;
	sqlite3_stmt *st = index_ask(ix, SQL_STORES, "s", str_of(agent));

	while (index_row(ix, st)) {
		const char *name = (const char *)sqlite3_column_text(st, 1);

		for (size_t i = 0; name && i < ret->n; i++) {
			struct index_store *s = &ret->v[i];

			if (strcmp(s->name, name) != 0)
				continue;
			s->number = sqlite3_column_int64(st, 0);
			s->is_current =
			    sqlite3_column_int(st, 3) != 0 && (uint64_t)sqlite3_column_int64(st, 2) == s->now.stamp;
		}
	}
	return index_asked(ix, err);
}

void
index_stores_done(struct index_stores *s)
{
	free(s->v);
	*s = (struct index_stores){ 0 };
}

/* Stores of the agent that are there no more (agent NULL in the room: all of its stores). */
static enum mr_rc
drop_stores(struct work *w, const struct index_stores *stores)
{
	sqlite3_stmt *st = index_ask(w->u->ix, SQL_STORES, "s", str_of(w->agent));
	int64_t dead[64];
	size_t n = 0;

	while (n < 64 && index_row(w->u->ix, st)) {
		bool there = false;

		for (size_t i = 0; i < stores->n; i++)
			there |= stores->v[i].number == sqlite3_column_int64(st, 0);
		if (!there)
			dead[n++] = sqlite3_column_int64(st, 0);
	}
	(void)sqlite3_reset(st);
	TRY(n < 64 ? index_asked(w->u->ix, w->err) : MR_OK);
	for (size_t i = 0; i < n; i++) {
		TRY(index_do(w->u->ix, w->err, SQL_COPIES_DROP, "i", dead[i]));
		w->u->removed += (size_t)sqlite3_changes(w->u->ix->db);
		TRY(index_do(w->u->ix, w->err, SQL_STORE_DROP, "i", dead[i]));
	}
	return MR_OK;
}

enum mr_rc
index_update_agent(struct index_update *u, const char *agent, struct index_stores *stores, struct mr_error *err)
{
	mr_auto(work_done) struct work w = { .u = u, .agent = agent, .err = err };

	for (size_t i = 0; i < stores->n && !u->stopped; i++) {
		w.store = &stores->v[i];
		if (!w.store->is_current)
			TRY(update_store(&w));
	}
	return u->stopped ? MR_OK : drop_stores(&w, stores);
}

/* ---- For the commands ---- */

enum mr_rc
index_lock(const char *folder, int64_t wait_ms, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;

	TRY(dir_open(AT_FDCWD, folder, &dir_fd, err));
	return lock_take(dir_fd, "lock", 0600, wait_ms, ret_fd, err);
}

void
index_refresh(
    struct index_db *ix, struct mr_room *room, const char *folder, const char *agent, struct index_stores *stores)
{
	mr_auto(sys_close_fd) int lock = -1;
	struct index_update u = { .ix = ix, .room = room, .most_new = MOST_NEW };
	bool current = true;

	for (size_t i = 0; i < stores->n; i++)
		current &= stores->v[i].is_current;
	/* Whatever fails, the stores that are not current are scanned. */
	if (!current && index_lock(folder, 0, &lock, IGNORED) == MR_OK)
		(void)index_update_agent(&u, agent, stores, IGNORED);
}

static enum mr_rc
update_agents(struct index_update *u, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	TRY(office_agents(u->room, &agents, err));
	for (size_t i = 0; i < agents.n && !u->stopped; i++) {
		mr_auto(index_stores_done) struct index_stores stores = { 0 };
		enum mr_rc rc = index_stores(u->ix, u->room, agents.v[i], &stores, err);

		if (rc == MR_OK)
			rc = index_update_agent(u, agents.v[i], &stores, err);
		if (rc == MR_NOTFOUND) /* removed while we look */
			*err = (struct mr_error){ 0 };
		else
			TRY(rc);
	}
	mr_auto(mr_names_done) struct mr_names known = { 0 };

	sqlite3_stmt *st = index_ask(u->ix, SQL_AGENTS, "");

	while (index_row(u->ix, st))
		if (!names_add(&known, str_of((const char *)sqlite3_column_text(st, 0))))
			return mr_nomem(err);
	for (size_t i = 0; i < known.n && !u->stopped; i++) {
		struct work w = { .u = u, .agent = known.v[i], .err = err };

		if (!names_has(&agents, known.v[i]))
			TRY(drop_stores(&w, &(struct index_stores){ 0 }));
	}
	return MR_OK;
}

/* Words of mail that is gone stay: FTS5 without contents would need the text to take them out. Once a quarter of the
 * texts are so, the index is made anew, and what was to be forgotten is. */
static bool
has_too_much_gone(struct index_db *ix)
{
	sqlite3_stmt *st = index_ask(ix, SQL_GONE, "");
	bool told = index_row(ix, st);
	int64_t docs = told ? sqlite3_column_int64(st, 0) : 0, gone = told ? sqlite3_column_int64(st, 1) : 0;

	(void)sqlite3_reset(st);
	return gone > 0 && gone >= docs / GONE_SHARE;
}

enum mr_rc
index_update_all(struct mr_room *room, const char *folder, bool wait, mr_index_fn *progress, void *ctx,
    struct mr_indexed *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int lock = -1;
	mr_auto(index_close) struct index_db ix = { 0 };
	struct index_update u = { .ix = &ix, .room = room, .progress = progress, .ctx = ctx };
	bool rebuilt = false;
	enum mr_rc rc = index_lock(folder, wait ? WAIT_FOR_EVER_MS : 0, &lock, err);

	if (rc == MR_BUSY)
		return mr_fail(err, MR_BUSY, "another process is bringing the index up to date");
	TRY(rc);
	for (int tries = 0; tries < 2; tries++) {
		rc = index_open(&ix, folder, true, err);
		if (rc == MR_OK)
			rc = update_agents(&u, err);
		bool anew = rc == MR_CORRUPT || (rc == MR_OK && u.removed > 0 && !u.stopped && has_too_much_gone(&ix));
		if (!anew || tries > 0)
			break;
		index_close(&ix);
		index_remove(folder);
		*err = (struct mr_error){ 0 };
		u.added = u.removed = 0;
		rebuilt = true;
	}
	if (rc != MR_OK)
		return mr_wrap(err, "the index");
	*ret = (struct mr_indexed){ .added = u.added, .removed = u.removed, .rebuilt = rebuilt };
	sqlite3_stmt *st = u.added + u.removed > 0 ? index_ask(&ix, SQL_COUNT, "") : NULL;

	if (st && index_row(&ix, st))
		ret->messages = (size_t)sqlite3_column_int64(st, 0);
	(void)sqlite3_reset(st);
	return MR_OK;
}
