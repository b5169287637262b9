/* SPDX-License-Identifier: MIT */
/*
 * scan.c - answering a scan from the index. The words of the query become a question to FTS5, made of words that
 * query.c took apart and nothing else, so no text of a user is ever FTS syntax. A thread, and answers to a message, are
 * found by their hash. Both name candidates in the order of mail; each is fetched and judged by the matcher.
 *
 * What the index does not have comes in between: stores that could not be brought up to date are scanned, and mail that
 * could not be read is tried again each time, so that it is told of as without an index.
 */
#include <stdlib.h>

#include "base/id.h"
#include "index/index.h"

#define TRIES 20
#define DAY_MS ((int64_t)24 * 3600 * 1000)

struct candidate_id {
	char id[MR_ID_LEN + 1];
	unsigned folders; /* where the index saw it */
};
struct candidate_ids {
	struct candidate_id *v;
	size_t n, cap;
};

struct answer { /* one scan under way */
	struct index_db *ix;
	struct mr_room *room;
	const struct index_scan *want;
	struct index_stores stores;
	struct candidate_ids group;  /* from the index, of one millisecond */
	struct candidate_ids beside; /* from elsewhere, in order */
	size_t beside_at;
	struct mr_names told; /* ids that were judged */
	struct nameset told_set;
	size_t shown;
	bool stopped;
	enum mr_rc rc;
	struct mr_error *err;
};

static void
answer_done(struct answer *a)
{
	index_stores_done(&a->stores);
	free(a->group.v);
	free(a->beside.v);
	mr_names_done(&a->told);
	nameset_done(&a->told_set);
}

/* ---- The question ---- */

/* The words of a text as one phrase of FTS5. */
static void
add_phrase(struct buf *out, const char *column, const char *text, bool prefix)
{
	struct mr_str rest = str_of(text), word;
	bool any = false;

	while (query_word(&rest, &word)) {
		if (!any)
			buf_addf(out, "%s%s%s\"", out->len > 0 ? " AND " : "", column, *column ? " : " : "");
		else
			buf_addc(out, ' ');
		buf_add(out, word);
		any = true;
	}
	if (any)
		buf_adds(out, prefix ? "\" *" : "\"");
}

/* A thread, or what is answered: few messages, so nothing else is asked for. 0: neither. */
static uint64_t
key_of(const struct matcher *m)
{
	if (*m->reply_to)
		return index_key("r", m->reply_to_native ? m->reply_to_native : m->reply_to);
	if (m->thread && *m->thread)
		return index_key("t", m->thread);
	for (size_t i = 0; i < m->query.n; i++)
		if (m->query.v[i].field == QUERY_THREAD && !m->query.v[i].exclude)
			return index_key("t", m->query.v[i].text);
	return 0;
}

/* ---- Candidates ---- */

static bool
add_candidate(struct answer *a, struct candidate_ids *to, const char *id, unsigned folders)
{
	if (!array_grow(&to->v, to->n, &to->cap, sizeof(*to->v))) {
		a->rc = mr_nomem(a->err);
		return false;
	}
	struct candidate_id *c = &to->v[to->n++];

	(void)snprintf(c->id, sizeof(c->id), "%s", id);
	c->folders = folders;
	return true;
}

/* By id; of two copies the one that was not sent. */
static int
by_oldest(const void *va, const void *vb)
{
	const struct candidate_id *a = va, *b = vb;
	int order = strcmp(a->id, b->id);

	return order ? order : (int)(a->folders & MR_SENT) - (int)(b->folders & MR_SENT);
}

static int
by_newest(const void *va, const void *vb)
{
	const struct candidate_id *a = va, *b = vb;

	return strcmp(a->id, b->id) ? by_oldest(vb, va) : by_oldest(va, vb);
}

static void
sort(const struct answer *a, struct candidate_ids *c)
{
	if (c->n > 1)
		qsort(c->v, c->n, sizeof(*c->v), a->want->newest_first ? by_newest : by_oldest);
}

static void
judge(struct answer *a, const struct candidate_id *c)
{
	const struct index_scan *want = a->want;
	enum scan_depth depth = want->depth > want->matcher->depth ? want->depth : want->matcher->depth;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error trouble = { 0 };
	size_t told = a->told.n;

	if (want->wants && !want->wants(want->wants_ctx, c->id))
		return;
	if (!nameset_add_once(&a->told_set, &a->told, c->id))
		a->rc = mr_nomem(a->err);
	if (a->rc != MR_OK || a->told.n == told)
		return;
	enum mr_rc rc =
	    a->room->driver->fetch(a->room, want->agent, c->id, c->folders & want->folders, depth, &msg, &trouble);

	if (rc == MR_NOTFOUND)
		rc = a->room->driver->fetch(a->room, want->agent, c->id, want->folders, depth, &msg, &trouble);
	if (rc == MR_NOMEM)
		a->rc = mr_nomem(a->err);
	else if (rc != MR_OK && rc != MR_NOTFOUND && want->trouble)
		want->trouble(want->ctx, c->id, &trouble);
	if (rc != MR_OK || !matcher_fits(want->matcher, &msg))
		return;
	a->shown++;
	a->stopped = !want->fn(want->ctx, &msg);
}

/* Those from elsewhere that come before this one; NULL: all of them. */
static void
judge_beside(struct answer *a, const struct candidate_id *before)
{
	while (a->beside_at < a->beside.n && !a->stopped && a->rc == MR_OK) {
		const struct candidate_id *c = &a->beside.v[a->beside_at];

		if (before && (a->want->newest_first ? by_newest : by_oldest)(c, before) > 0)
			return;
		judge(a, c);
		a->beside_at++;
	}
}

static void
judge_group(struct answer *a)
{
	sort(a, &a->group);
	for (size_t i = 0; i < a->group.n && !a->stopped && a->rc == MR_OK; i++) {
		judge_beside(a, &a->group.v[i]);
		if (!a->stopped && a->rc == MR_OK)
			judge(a, &a->group.v[i]);
	}
	a->group.n = 0;
}

/* The folders of a store of this agent; 0: another's, or not asked for. */
static unsigned
folders_of(const struct answer *a, int64_t store)
{
	for (size_t i = 0; i < a->stores.n; i++)
		if (a->stores.v[i].number == store)
			return a->stores.v[i].now.folders & a->want->folders;
	return 0;
}

/* ---- What the index does not have ---- */

struct beside {
	struct answer *a;
	unsigned folders;
};

static bool
note_fitting(void *ctx, const struct mr_message *msg)
{
	struct beside *b = ctx;

	if (matcher_fits(b->a->want->matcher, msg))
		(void)add_candidate(b->a, &b->a->beside, msg->id, b->folders);
	return b->a->rc == MR_OK;
}

static enum mr_rc
gather_beside(struct answer *a)
{
	for (size_t i = 0; i < a->stores.n; i++) {
		const struct index_store *s = &a->stores.v[i];
		struct beside b = { a, s->now.folders & a->want->folders };
		struct scan_request want = { .folders = s->now.folders,
			.store = s->now.name,
			.depth = a->want->matcher->depth,
			.trouble = a->want->trouble,
			.trouble_ctx = a->want->ctx };

		if (!s->is_current && b.folders != 0)
			TRY(a->room->driver->scan(a->room, a->want->agent, &want, note_fitting, &b, a->err));
	}
	sqlite3_stmt *st = index_ask(a->ix, SQL_UNREADABLE, "");

	while (index_row(a->ix, st)) {
		unsigned folders = folders_of(a, sqlite3_column_int64(st, 0));
		const char *id = (const char *)sqlite3_column_text(st, 1);

		if (folders != 0 && id)
			(void)add_candidate(a, &a->beside, id, folders);
	}
	TRY(index_asked(a->ix, a->err));
	sort(a, &a->beside);
	return a->rc;
}

/* ---- Scanning ---- */

static enum mr_rc
ask(struct answer *a, const struct buf *question, uint64_t key)
{
	const struct index_scan *want = a->want;
	bool newest = want->newest_first;
	struct scan_request span = { 0 };

	matcher_span(want->matcher, &span);
	/* Of mail that others put there the date may be a little later than the id. */
	int64_t since_ms = want->matcher->since_ms > DAY_MS ? want->matcher->since_ms - DAY_MS : 0;
	sqlite3_stmt *st = key ? index_ask(a->ix, newest ? SQL_BY_LINK : SQL_BY_LINK_OLDEST, "i", (int64_t)key)
			       : index_ask(a->ix, newest ? SQL_BY_WORDS : SQL_BY_WORDS_OLDEST, "sii", buf_str(question),
				     since_ms << DOC_BITS, span.before_ms ? span.before_ms << DOC_BITS : INT64_MAX);

	/* Rows are doc, store, id. */
	int64_t group_ms = -1;

	while (a->rc == MR_OK && !a->stopped && index_row(a->ix, st)) {
		int64_t ms = sqlite3_column_int64(st, 0) >> DOC_BITS;
		unsigned folders = folders_of(a, sqlite3_column_int64(st, 1));
		const char *id = (const char *)sqlite3_column_text(st, 2);

		if (ms != group_ms)
			judge_group(a);
		group_ms = ms;
		if (folders != 0 && id)
			(void)add_candidate(a, &a->group, id, folders);
	}
	if (a->ix->code != SQLITE_ROW && a->rc == MR_OK)
		a->rc = index_asked(a->ix, a->err);
	(void)sqlite3_reset(st);
	if (a->rc == MR_OK && !a->stopped)
		judge_group(a);
	if (a->rc == MR_OK && !a->stopped)
		judge_beside(a, NULL);
	return a->rc;
}

/* Nothing was found. Did mail move meanwhile? Then it may have been missed, and the question is asked again. */
static bool
is_settled(struct answer *a)
{
	mr_auto(index_stores_done) struct index_stores now = { 0 };

	if (index_stores(a->ix, a->room, a->want->agent, &now, IGNORED) != MR_OK || now.n != a->stores.n)
		return false;
	for (size_t i = 0; i < now.n; i++)
		if (now.v[i].now.stamp != a->stores.v[i].now.stamp)
			return false;
	return true;
}

enum mr_rc
index_scan_mail(struct mr_room *room, const char *folder, const struct index_scan *want, struct mr_error *err)
{
	mr_auto(index_close) struct index_db ix = { 0 };
	mr_auto(buf_done) struct buf question = BUF_INIT;
	uint64_t key = key_of(want->matcher);
	enum mr_rc rc = MR_OK;

	static const char *const columns[] = { [QUERY_FROM] = "sender", [QUERY_TO] = "rcpt", [QUERY_TYPE] = "kind" };

	if (want->matcher->from)
		add_phrase(&question, "sender", want->matcher->from, false);
	if (want->matcher->filter->type)
		add_phrase(&question, "kind", want->matcher->filter->type, false);
	for (size_t i = 0; i < want->matcher->query.n; i++) {
		const struct query_term *t = &want->matcher->query.v[i];

		if (t->exclude)
			continue;
		if (t->field == QUERY_TEXT)
			add_phrase(&question, "", t->text, t->prefix);
		else if (t->field == QUERY_FROM || t->field == QUERY_TO || t->field == QUERY_TYPE)
			add_phrase(&question, columns[t->field], t->text, false);
	}
	if (!buf_ok(&question) || (key == 0 && question.len == 0))
		return MR_UNSUPPORTED;
	rc = index_open(&ix, folder, false, err);
	for (int tries = 0; rc == MR_OK && tries < TRIES; tries++) {
		mr_auto(answer_done) struct answer a = { .ix = &ix, .room = room, .want = want, .err = err };

		rc = index_stores(&ix, room, want->agent, &a.stores, err);
		if (rc == MR_OK)
			index_refresh(&ix, room, folder, want->agent, &a.stores);
		if (rc == MR_OK)
			rc = gather_beside(&a);
		if (rc == MR_OK)
			rc = ask(&a, &question, key);
		if (rc == MR_OK && (a.shown > 0 || is_settled(&a)))
			return MR_OK;
	}
	if (rc == MR_OK || rc == MR_NOMEM || rc == MR_REFUSED)
		return rc;
	if (rc == MR_NOTFOUND) /* begun, and not there yet */
		*err = (struct mr_error){ 0 };
	return MR_UNSUPPORTED;
}

/* ---- The ends of ids ---- */

/* Rows from `store` on are store, id. */
static bool
take_ends(struct index_ends *e, const struct index_stores *stores, sqlite3_stmt *st, int store)
{
	bool fine = true;

	while (fine && index_row(e->index, st)) {
		int64_t number = sqlite3_column_int64(st, store);
		const char *id = (const char *)sqlite3_column_text(st, store + 1);

		for (size_t i = 0; i < stores->n && id && str_ends(str_of(id), e->suffix); i++)
			if (stores->v[i].number == number)
				fine &=
				    names_add(&e->stores, str_of(stores->v[i].name)) && names_add(&e->ids, str_of(id));
	}
	(void)sqlite3_reset(st);
	return fine && index_asked(e->index, IGNORED) == MR_OK;
}

void
index_ends_close(struct index_ends *e)
{
	index_close(e->index);
	free(e->index);
	e->index = NULL;
}

void
index_find_ends(struct index_ends *e, const char *folder)
{
	mr_auto(index_stores_done) struct index_stores stores = { 0 };
	size_t len = strlen(e->suffix);

	if (len < END_LEN)
		return;
	if (!e->index) {
		e->index = calloc(1, sizeof(struct index_db));
		if (e->index && index_open(e->index, folder, false, IGNORED) != MR_OK) {
			free(e->index);
			e->index = NULL;
		}
	}
	struct index_db *ix = e->index;

	if (!ix || index_stores(ix, e->room, e->agent, &stores, IGNORED) != MR_OK)
		return;
	int64_t key = (int64_t)index_key("e", e->suffix + len - END_LEN);

	if (!take_ends(e, &stores, index_ask(ix, SQL_BY_LINK, "i", key), 1) ||
	    !take_ends(e, &stores, index_ask(ix, SQL_UNREADABLE, ""), 0))
		return;
	for (size_t i = 0; i < stores.n; i++)
		if (stores.v[i].is_current && !names_add(&e->known, str_of(stores.v[i].name)))
			return;
}
