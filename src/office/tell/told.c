/* SPDX-License-Identifier: MIT */
/*
 * told.c - the told log. Two processes of one life at once may both tell a thing: the later one's note stays, and
 * nothing is lost by it.
 *
 * What was announced is the ids that are still unread, one a line, and when they were told last (unix seconds). Between
 * the two is a plus for those that are told again until they are read, a minus for those that were only counted, an
 * exclamation mark for what cannot be read, a tilde for the note that this life wrote to the next one, an equals sign
 * for the others; an older version wrote the time only behind a plus.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/tell/tell.h"
#include <stdlib.h>

#define TOLD_MAX ((size_t)1 << 20)
#define ANNOUNCED "announced"

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

const struct announced_id *
announced_find(const struct announced *a, const char *id)
{
	struct announced_id key = { 0 };

	if (a->n == 0)
		return NULL;
	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	return bsearch(&key, a->v, a->n, sizeof(key), by_id);
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
	*a = (struct announced){ 0 };
}

void
announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	ret->fresh = read_told(room, self, ANNOUNCED, &text, IGNORED) != MR_OK;
	for (struct mr_str rest = buf_str(&text), line; !ret->fresh && str_cut(&rest, '\n', &line);) {
		if (line.len < MR_ID_LEN || !id_valid((struct mr_str){ line.ptr, MR_ID_LEN }))
			continue;
		char kind = line.len > MR_ID_LEN ? line.ptr[MR_ID_LEN] : '=';
		struct announced_id *told = announced_add(ret, line.ptr, kind == '+');
		uint64_t at_s = 0;

		if (!told)
			break;
		if (line.len > MR_ID_LEN &&
		    str_to_u64((struct mr_str){ line.ptr + MR_ID_LEN + 1, line.len - MR_ID_LEN - 1 }, &at_s) &&
		    at_s <= INT64_MAX)
			told->at_s = (int64_t)at_s;
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
	for (size_t i = 0; i < all->n; i++) {
		const struct announced_id *a = &all->v[i];
		char kind = a->again ? '+' : a->counted ? '-' : a->unreadable ? '!' : a->own ? '~' : '=';

		if (i == 0 || strcmp(a->id, a[-1].id) != 0)
			buf_addf(&text, "%s%c%lld\n", a->id, kind, (long long)a->at_s);
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
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	if (find_place(room, self, ANNOUNCED, false, name, &fd, IGNORED) != MR_OK)
		return;
	if (fd < 0)
		(void)room->driver->record_drop(room, ANNOUNCED, self->agent, name, IGNORED);
	else
		(void)sys_unlink(fd, name);
}
