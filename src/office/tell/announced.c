/* SPDX-License-Identifier: MIT */
/*
 * announced.c - the mail that a life was told of. If two processes of one life tell something at once, the later note
 * stays, and nothing is lost by that.
 *
 * It is a text in the told log (who/told.c): the ids that are still unread, one a line, each with a sign (enum
 * announced_kind) and the time of the last notice (unix seconds); an older version wrote the time only after a plus.
 * After the time is the door: "prompt", "waiter".
 *
 * Most of a large backlog is told only by its number, and only once. Those ids are in a second text, the log: sorted
 * lines of equal length and nothing else, so that 100,000 of them can be searched in memory as they are. It is read
 * only if the mailbox has changed: the first line of the small text is the state of the inbox (scan_state) when all
 * unread mail had been told, and its number. An earlier version skips that line and tells the backlog again.
 */
#include "base/error.h"
#include "base/id.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include <stdlib.h>

#define ANNOUNCED "announced"
#define ANNOUNCED_LOG "announced-log"
#define LOG_LINE ((size_t)MR_ID_LEN + 1)
#define SMALL_MAX 256 /* entries; beyond that, ids that are only known to be told go to the log */
#define STATE_LINE "state "

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct announced_id *)a)->id, ((const struct announced_id *)b)->id);
}

struct announced_id *
announced_known(const struct announced *a, const char *id)
{
	struct announced_id key = { 0 };

	if (a->n == 0)
		return NULL;
	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	return bsearch(&key, a->v, a->n, sizeof(key), by_id);
}

static int
by_line(const void *a, const void *b)
{
	return memcmp(a, b, MR_ID_LEN);
}

static char *
find_line(const struct announced *a, const char *id)
{
	return a->log.len < LOG_LINE ? NULL : bsearch(id, a->log.ptr, a->log.len / LOG_LINE, LOG_LINE, by_line);
}

struct announced_id *
announced_find(const struct announced *a, const char *id)
{
	static struct announced_id in_log = { .kind = ANNOUNCED_LOGGED };
	struct announced_id *known = announced_known(a, id);

	return known ? known : find_line(a, id) ? &in_log : NULL;
}

bool
announced_still(struct announced *a, const char *id)
{
	char *line = find_line(a, id);

	if (line)
		line[MR_ID_LEN] = '+';
	return line != NULL;
}

void
announced_drop(struct announced *a, const char *id)
{
	struct announced_id *known = announced_known(a, id);
	char *line = find_line(a, id);

	if (known) {
		size_t behind = a->n - (size_t)(known - a->v) - 1;

		memmove(known, known + 1, behind * sizeof *known);
		a->n--;
	}
	if (line) {
		char *next = line + LOG_LINE;

		memmove(line, next, a->log.len - (size_t)(next - a->log.ptr));
		a->log.len -= LOG_LINE;
		a->log_changed = true;
	}
	a->changed |= known || line;
}

void
announced_forget_gone(struct announced *a, bool at_once)
{
	size_t n = a->log.len / LOG_LINE, still = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		still += a->log.ptr[i * LOG_LINE + MR_ID_LEN] == '+';
	if (!at_once && still >= n / 2)
		return;
	for (size_t at = 0; at < n * LOG_LINE; at += LOG_LINE)
		if (a->log.ptr[at + MR_ID_LEN] == '+') {
			memmove(a->log.ptr + kept, a->log.ptr + at, LOG_LINE);
			kept += LOG_LINE;
		}
	a->log.len = kept;
	a->log_changed = true;
}

void
announced_log(struct announced *a, struct mr_str ids)
{
	buf_add(&a->log, ids);
	a->log_changed = true;
}

bool
announced_listed(const struct announced *a, const char *id)
{
	const struct announced_id *told = announced_find(a, id);

	return told && told->kind != ANNOUNCED_COUNTED;
}

struct announced_id *
announced_add(struct announced *a, const char *id)
{
	size_t at = a->n;

	if (!array_grow(&a->v, a->n, &a->cap, sizeof(*a->v)))
		return NULL;
	while (at > 0 && strncmp(a->v[at - 1].id, id, MR_ID_LEN) > 0) /* a text that is read is sorted already */
		at--;
	if (at > 0 && strncmp(a->v[at - 1].id, id, MR_ID_LEN) == 0)
		return &a->v[at - 1];
	memmove(&a->v[at + 1], &a->v[at], (a->n++ - at) * sizeof(*a->v));
	a->v[at] = (struct announced_id){ .kind = ANNOUNCED_ONCE };
	(void)snprintf(a->v[at].id, sizeof(a->v[at].id), "%.*s", MR_ID_LEN, id);
	return &a->v[at];
}

void
announced_done(struct announced *a)
{
	free(a->v);
	buf_done(&a->log);
	*a = (struct announced){ 0 };
}

void
announced_load_log(struct mr_room *room, const struct mr_self *self, struct announced *a)
{
	if (a->logged)
		return;
	a->logged = true;
	if (told_read(room, self, ANNOUNCED_LOG, &a->log, IGNORED) != MR_OK || a->log.failed)
		buf_clear(&a->log);
	a->log.len -= a->log.len % LOG_LINE;
	/* Only mailroom writes it; but a binary search in unsorted lines would fail. */
	for (size_t at = 0; at + LOG_LINE <= a->log.len; at += LOG_LINE) {
		if (a->log.ptr[at + MR_ID_LEN] != '\n' ||
		    (at > 0 && by_line(a->log.ptr + at - LOG_LINE, a->log.ptr + at) >= 0)) {
			buf_clear(&a->log);
			return;
		}
	}
}

void
announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret)
{
	announced_load_brief(room, self, ret);
	announced_load_log(room, self, ret);
}

void
announced_load_brief(struct mr_room *room, const struct mr_self *self, struct announced *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	ret->fresh = told_read(room, self, ANNOUNCED, &text, IGNORED) != MR_OK;
	for (struct mr_str rest = buf_str(&text), line; !ret->fresh && str_cut(&rest, '\n', &line);) {
		if (str_starts(line, STATE_LINE)) {
			/* "state TEXT NUMBER" */
			struct mr_str state, number = str_from(line, strlen(STATE_LINE));
			uint64_t unread = 0;

			if (str_cut(&number, ' ', &state) && state.len < sizeof(ret->state) &&
			    str_to_u64(number, &unread)) {
				memcpy(ret->state, state.ptr, state.len);
				ret->unread = (size_t)unread;
			}
			continue;
		}
		if (line.len < MR_ID_LEN || !id_valid((struct mr_str){ line.ptr, MR_ID_LEN }))
			continue;
		struct announced_id *told = announced_add(ret, line.ptr);
		uint64_t at_s = 0;

		if (!told)
			break;
		struct mr_str more = line.len > MR_ID_LEN ? str_from(line, MR_ID_LEN + 1) : STR(""), at;

		if (line.len > MR_ID_LEN && memchr("+-!~", line.ptr[MR_ID_LEN], 4))
			told->kind = (enum announced_kind)line.ptr[MR_ID_LEN];
		if (str_cut(&more, ' ', &at) && str_to_u64(at, &at_s) && at_s <= INT64_MAX)
			told->at_s = (int64_t)at_s;
		(void)snprintf(told->door, sizeof told->door, "%.*s", (int)more.len, more.ptr);
	}
}

enum mr_rc
announced_save(struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (all->n > SMALL_MAX) {
		/* Ids that were told and need no other note. */
		mr_auto(buf_done) struct buf ids = BUF_INIT;
		size_t kept = 0;

		for (size_t i = 0; i < all->n; i++) {
			const struct announced_id *a = &all->v[i];

			if (a->kind != ANNOUNCED_ONCE)
				all->v[kept++] = *a;
			else
				buf_addf(&ids, "%s\n", a->id);
		}
		all->n = kept;
		announced_load_log(room, self, all);
		announced_log(all, buf_str(&ids));
		TRY(ids.failed || all->log.failed ? mr_nomem(err) : MR_OK);
	}
	if (all->log_changed) {
		struct buf *log = &all->log;
		size_t kept = 0;

		if (log->failed)
			return mr_nomem(err);
		if (log->len > LOG_LINE)
			qsort(log->ptr, log->len / LOG_LINE, LOG_LINE, by_line);
		for (size_t at = 0; at + LOG_LINE <= log->len; at += LOG_LINE) { /* each id once */
			if (kept > 0 && by_line(log->ptr + kept - LOG_LINE, log->ptr + at) == 0)
				continue;
			memmove(log->ptr + kept, log->ptr + at, LOG_LINE);
			log->ptr[kept + MR_ID_LEN] = '\n';
			kept += LOG_LINE;
		}
		log->len = kept;
		all->log_changed = false;
		TRY(told_write(room, self, ANNOUNCED_LOG, log, all->fresh, err));
	}
	if (all->state[0])
		buf_addf(&text, STATE_LINE "%s %zu\n", all->state, all->unread);
	for (size_t i = 0; i < all->n; i++) {
		const struct announced_id *a = &all->v[i];
		buf_addf(&text, "%s%c%lld%s%s\n", a->id, a->kind, (long long)a->at_s, a->door[0] ? " " : "", a->door);
	}
	return told_write(room, self, ANNOUNCED, &text, all->fresh, err);
}

void
announced_own(struct mr_room *room, const struct mr_self *self, const char *id)
{
	mr_auto(announced_done) struct announced all = { 0 };

	announced_load(room, self, &all);
	struct announced_id *own = announced_add(&all, id);

	if (!own)
		return;
	own->kind = ANNOUNCED_OWN;
	(void)announced_save(room, self, &all, IGNORED);
}

void
announced_forget(struct mr_room *room, const struct mr_self *self)
{
	told_forget(room, self, ANNOUNCED);
	told_forget(room, self, ANNOUNCED_LOG);
}
