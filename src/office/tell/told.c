/* SPDX-License-Identifier: MIT */
/*
 * told.c - the told log. Two processes of one life at once may both tell a thing: the later one's note stays, and
 * nothing is lost by it.
 *
 * What was announced is the ids that are still unread, one a line, and when they were told last (unix seconds). Between
 * the two is a plus for those that are told again until they are read, a minus for those that were only counted, an
 * exclamation mark for what cannot be read, a tilde for the note that this life wrote to the next one, an equals sign
 * for the others; an older version wrote the time only behind a plus. Behind the time is the door: "prompt", "waiter".
 *
 * Of a large backlog most is told by its number alone and never again. Those ids go to a second text, the log: sorted
 * lines of one length and nothing else, so that 100,000 of them are searched as they lie in memory. It is read only
 * when the mailbox has changed: the first line of the small text is the state of the inbox (scan_state) when all that
 * was unread had been told, and how much that was. An earlier version passes over that line and tells the backlog
 * again.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/tell/tell.h"
#include <stdlib.h>

#define TOLD_MAX ((size_t)64 << 20)
#define ANNOUNCED "announced"
#define ANNOUNCED_LOG "announced-log"
#define LOG_LINE ((size_t)MR_ID_LEN + 1)
#define SMALL_MAX 256 /* entries; what is only known to be told goes to the log beyond that */
#define STATE_LINE "state "

/* ---- One text ---- */

/* The name of the record, or with *ret_fd the file in the state folder: rooms of other programs keep no records. */
static enum mr_rc
find_place(struct mr_room *room, const struct mr_self *self, const char *kind, bool make, char ret_name[65],
    int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;

	if (ROOM_HAS(room, record_put)) {
		(void)snprintf(ret_name, 65, "life-%u", self->life);
		return MR_OK;
	}
	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no folder for what mailroom remembers");
	buf_addf(&whole, "%s\n%s\n%s\n%u", room->spec, self->agent, self->session, self->life);
	sha256_hex(buf_str(&whole), ret_name);
	return dir_below(room->state_dir, kind, make, true, ret_fd, err);
}

/* MR_NOTFOUND: nothing is noted. */
static enum mr_rc
read_told(struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	TRY(find_place(room, self, kind, false, name, &fd, err));
	if (fd < 0)
		return room->driver->record_get(room, kind, self->agent, name, ret, err);
	return file_read(fd, name, TOLD_MAX, ret, err);
}

/* With `first`, the first of this life, what earlier lives were told is forgotten. */
static enum mr_rc
write_told(struct mr_room *room, const struct mr_self *self, const char *kind, const struct buf *text, bool first,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	if (!buf_ok(text))
		return mr_nomem(err);
	TRY(find_place(room, self, kind, true, name, &fd, err));
	if (fd >= 0)
		return file_replace(fd, name, buf_str(text), 0600, err);
	TRY(room->driver->record_put(room, kind, self->agent, name, buf_str(text), err));
	if (first)
		(void)office_records(room, kind, self->agent, &lives, IGNORED);
	for (size_t i = 0; i < lives.n; i++)
		if (strcmp(lives.v[i], name) != 0)
			(void)room->driver->record_drop(room, kind, self->agent, lives.v[i], IGNORED);
	return MR_OK;
}

void
told_words(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (read_told(room, self, kind, &text, IGNORED) != MR_OK)
		return;
	for (struct mr_str rest = buf_str(&text), line; str_cut(&rest, '\n', &line);)
		if (line.len > 0 && !names_add(ret, line))
			return;
}

enum mr_rc
told_put_words(struct mr_room *room, const struct mr_self *self, const char *kind, const struct mr_names *words,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, before = BUF_INIT;
	bool first = read_told(room, self, kind, &before, IGNORED) != MR_OK;

	for (size_t i = 0; i < words->n; i++)
		buf_addf(&text, "%s\n", words->v[i]);
	return write_told(room, self, kind, &text, first, err);
}

/* ---- What was announced ---- */

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

const struct announced_id *
announced_find(const struct announced *a, const char *id)
{
	static const struct announced_id in_log = { .logged = true };
	const struct announced_id *known = announced_known(a, id);

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

bool
announced_mostly_gone(const struct announced *a)
{
	size_t still = 0, n = a->log.len / LOG_LINE;

	for (size_t i = 0; i < n; i++)
		still += a->log.ptr[i * LOG_LINE + MR_ID_LEN] == '+';
	return still < n / 2;
}

void
announced_log(struct announced *a, struct mr_str ids, bool only_still)
{
	size_t kept = 0;

	for (size_t at = 0; only_still && at + LOG_LINE <= a->log.len; at += LOG_LINE) {
		if (a->log.ptr[at + MR_ID_LEN] == '+') {
			memmove(a->log.ptr + kept, a->log.ptr + at, LOG_LINE);
			kept += LOG_LINE;
		}
	}
	if (only_still)
		a->log.len = kept;
	buf_add(&a->log, ids);
	a->log_changed = true;
}

bool
announced_listed(const struct announced *a, const char *id)
{
	const struct announced_id *told = announced_find(a, id);

	return told && !told->counted;
}

struct announced_id *
announced_add(struct announced *a, const char *id, bool again)
{
	if (!array_grow(&a->v, a->n, &a->cap, sizeof(*a->v)))
		return NULL;
	struct announced_id *one = &a->v[a->n++];

	*one = (struct announced_id){ .again = again };
	(void)snprintf(one->id, sizeof(one->id), "%.*s", MR_ID_LEN, id);
	return one;
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
	if (read_told(room, self, ANNOUNCED_LOG, &a->log, IGNORED) != MR_OK || a->log.failed)
		buf_clear(&a->log);
	a->log.len -= a->log.len % LOG_LINE;
	/* Nobody else writes it; but a search in what is not sorted would end anywhere. */
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

	ret->fresh = read_told(room, self, ANNOUNCED, &text, IGNORED) != MR_OK;
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
		char kind = line.len > MR_ID_LEN ? line.ptr[MR_ID_LEN] : '=';
		struct announced_id *told = announced_add(ret, line.ptr, kind == '+');
		uint64_t at_s = 0;

		if (!told)
			break;
		struct mr_str more = line.len > MR_ID_LEN ? str_from(line, MR_ID_LEN + 1) : STR(""), at;

		if (str_cut(&more, ' ', &at) && str_to_u64(at, &at_s) && at_s <= INT64_MAX)
			told->at_s = (int64_t)at_s;
		(void)snprintf(told->door, sizeof told->door, "%.*s", (int)more.len, more.ptr);
		told->counted = kind == '-';
		told->unreadable = kind == '!';
		told->own = kind == '~';
	}
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_id);
}

enum mr_rc
announced_save(struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (all->n > 1)
		qsort(all->v, all->n, sizeof(*all->v), by_id);
	if (all->n > SMALL_MAX) {
		/* What is no more than told. */
		mr_auto(buf_done) struct buf ids = BUF_INIT;
		size_t kept = 0;

		for (size_t i = 0; i < all->n; i++) {
			const struct announced_id *a = &all->v[i];

			if (a->again || a->counted || a->unreadable || a->own)
				all->v[kept++] = *a;
			else
				buf_addf(&ids, "%s\n", a->id);
		}
		all->n = kept;
		announced_load_log(room, self, all);
		announced_log(all, buf_str(&ids), false);
		TRY(ids.failed || all->log.failed ? mr_nomem(err) : MR_OK);
	}
	if (all->log_changed) {
		struct buf *log = &all->log;
		size_t kept = 0;

		if (log->failed)
			return mr_nomem(err);
		if (log->len > LOG_LINE)
			qsort(log->ptr, log->len / LOG_LINE, LOG_LINE, by_line);
		for (size_t at = 0; at + LOG_LINE <= log->len; at += LOG_LINE) { /* each once */
			if (kept > 0 && by_line(log->ptr + kept - LOG_LINE, log->ptr + at) == 0)
				continue;
			memmove(log->ptr + kept, log->ptr + at, LOG_LINE);
			log->ptr[kept + MR_ID_LEN] = '\n';
			kept += LOG_LINE;
		}
		log->len = kept;
		all->log_changed = false;
		TRY(write_told(room, self, ANNOUNCED_LOG, log, all->fresh, err));
	}
	if (all->state[0])
		buf_addf(&text, STATE_LINE "%s %zu\n", all->state, all->unread);
	for (size_t i = 0; i < all->n; i++) {
		const struct announced_id *a = &all->v[i];
		char kind = a->again ? '+' : a->counted ? '-' : a->unreadable ? '!' : a->own ? '~' : '=';

		if (i == 0 || strcmp(a->id, a[-1].id) != 0)
			buf_addf(
			    &text, "%s%c%lld%s%s\n", a->id, kind, (long long)a->at_s, a->door[0] ? " " : "", a->door);
	}
	return write_told(room, self, ANNOUNCED, &text, all->fresh, err);
}

void
announced_own(struct mr_room *room, const struct mr_self *self, const char *id)
{
	mr_auto(announced_done) struct announced all = { 0 };

	announced_load(room, self, &all);
	struct announced_id *own = announced_add(&all, id, false);

	if (!own)
		return;
	own->own = true;
	(void)announced_save(room, self, &all, IGNORED);
}

void
announced_forget(struct mr_room *room, const struct mr_self *self)
{
	static const char *const kinds[] = { ANNOUNCED, ANNOUNCED_LOG };

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		char name[65];

		if (find_place(room, self, kinds[i], false, name, &fd, IGNORED) != MR_OK)
			continue;
		if (fd < 0)
			(void)room->driver->record_drop(room, kinds[i], self->agent, name, IGNORED);
		else
			(void)sys_unlink(fd, name);
	}
}
