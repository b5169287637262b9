/* SPDX-License-Identifier: MIT */
/*
 * inject_memory.c - what was announced to a life: the ids that are still unread, one a line, with a plus behind those
 * that are told again until they are read. A new life knows nothing and is told everything.
 *
 *	records/announced/<agent>/life-<n>          native rooms
 *	<state>/announced/<hash of room, agent, session>     rooms of other programs, in which nothing may be left
 *
 * Two hooks of one life at once may both announce a message: the later one's memory stays. That is no loss.
 */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/inject.h"
#include "office/who.h"
#include <fcntl.h>
#include <stdlib.h>

#define ANNOUNCED "announced"
#define MEMORY_MAX ((size_t)1 << 20)

/* ---- The list ---- */

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
announced_add(struct announced *a, const char *id, bool again)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 32;
		struct announced_id *v = reallocarray(a->v, cap, sizeof(*v));

		if (!v)
			return false;
		a->v = v;
		a->cap = cap;
	}
	a->v[a->n] = (struct announced_id){ .again = again };
	(void)snprintf(a->v[a->n++].id, MR_ID_LEN + 1, "%s", id);
	return true;
}

void
announced_done(struct announced *a)
{
	free(a->v);
	*a = (struct announced){ 0 };
}

static void
parse(struct mr_str text, struct announced *ret)
{
	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		size_t len = lf ? (size_t)(lf - text.ptr) : text.len, step = lf ? len + 1 : len;
		struct mr_str line = { text.ptr, len };
		char id[MR_ID_LEN + 1] = "";

		if (len >= MR_ID_LEN && id_valid((struct mr_str){ line.ptr, MR_ID_LEN })) {
			memcpy(id, line.ptr, MR_ID_LEN);
			if (!announced_add(ret, id, len > MR_ID_LEN && line.ptr[MR_ID_LEN] == '+'))
				break;
		}
		text.ptr += step;
		text.len -= step;
	}
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_id);
}

/* ---- Where it is kept ---- */

static bool
has_records(const struct mr_room *room)
{
	return room->driver->record_get && room->driver->record_put;
}

static void
record_name(const struct mr_self *self, char ret[24])
{
	(void)snprintf(ret, 24, "life-%u", self->life);
}

static void
file_name(const struct mr_room *room, const struct mr_self *self, char ret[65])
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;

	buf_addf(&whole, "%s\n%s\n%s\n%u", room->spec, self->agent, self->session, self->life);
	sha256_hex(buf_str(&whole), ret);
}

static enum mr_rc
open_state(const struct mr_room *room, bool make, int *ret_fd, struct mr_error *err)
{
	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no folder for what mailroom remembers");
	mr_auto(free_ptr) char *path = path_join(room->state_dir, ANNOUNCED);

	if (!path)
		return mr_nomem(err);
	return make ? dir_make(AT_FDCWD, path, 0700, true, ret_fd, err) : dir_open(AT_FDCWD, path, ret_fd, err);
}

static enum mr_rc
read_text(struct mr_room *room, const struct mr_self *self, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	if (has_records(room)) {
		record_name(self, name);
		return room->driver->record_get(room, ANNOUNCED, self->agent, name, ret, err);
	}
	file_name(room, self, name);
	if (open_state(room, false, &fd, err) != MR_OK)
		return err->code;
	return file_read(fd, name, MEMORY_MAX, ret, err);
}

void
announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	ret->fresh = read_text(room, self, &text, &ignored) != MR_OK;
	if (!ret->fresh)
		parse(buf_str(&text), ret);
}

/* ---- Saving ---- */

struct other_lives {
	const char *mine;
	struct mr_names names;
};

static bool
note_other(void *ctx, const char *name)
{
	struct other_lives *o = ctx;

	return strcmp(name, o->mine) == 0 || names_add(&o->names, str_of(name));
}

/* With the first thing that a life is told, what earlier ones were told is forgotten. */
static void
forget_other_lives(struct mr_room *room, const struct mr_self *self, const char *mine)
{
	struct other_lives others = { .mine = mine };
	struct mr_error ignored = { 0 };

	if (room->driver->record_each && room->driver->record_drop &&
	    room->driver->record_each(room, ANNOUNCED, self->agent, note_other, &others, &ignored) == MR_OK)
		for (size_t i = 0; i < others.names.n; i++)
			(void)room->driver->record_drop(room, ANNOUNCED, self->agent, others.names.v[i], &ignored);
	mr_names_done(&others.names);
}

enum mr_rc
announced_save(struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];
	enum mr_rc rc;

	if (all->n > 1)
		qsort(all->v, all->n, sizeof(*all->v), by_id);
	for (size_t i = 0; i < all->n; i++)
		if (i == 0 || strcmp(all->v[i].id, all->v[i - 1].id) != 0)
			buf_addf(&text, "%s%s\n", all->v[i].id, all->v[i].again ? "+" : "");
	if (!buf_ok(&text))
		return mr_nomem(err);
	if (has_records(room)) {
		record_name(self, name);
		rc = room->driver->record_put(room, ANNOUNCED, self->agent, name, buf_str(&text), err);
		if (rc == MR_OK && all->fresh)
			forget_other_lives(room, self, name);
		return rc;
	}
	file_name(room, self, name);
	rc = open_state(room, true, &fd, err);
	return rc == MR_OK ? file_replace(fd, name, buf_str(&text), 0600, err) : rc;
}
