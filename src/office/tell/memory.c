/* SPDX-License-Identifier: MIT */
/*
 * memory.c - see memory.h. Two processes of one life at once may both tell a thing: the later one's memory stays, and
 * nothing is lost by it.
 */
#include "office/tell/memory.h"

#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/who/who.h"
#include <fcntl.h>

#define MEMORY_MAX ((size_t)1 << 20)

static bool
has_records(const struct mr_room *room)
{
	return ROOM_HAS(room, record_get) && ROOM_HAS(room, record_put);
}

static void
record_name(const struct mr_self *self, char ret[65])
{
	(void)snprintf(ret, 65, "life-%u", self->life);
}

static void
file_name(const struct mr_room *room, const struct mr_self *self, char ret[65])
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;

	buf_addf(&whole, "%s\n%s\n%s\n%u", room->spec, self->agent, self->session, self->life);
	sha256_hex(buf_str(&whole), ret);
}

static enum mr_rc
open_state(const struct mr_room *room, const char *kind, bool make, int *ret_fd, struct mr_error *err)
{
	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no folder for what mailroom remembers");
	return dir_below(room->state_dir, kind, make, true, ret_fd, err);
}

enum mr_rc
memory_read(struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	if (has_records(room)) {
		record_name(self, name);
		return room->driver->record_get(room, kind, self->agent, name, ret, err);
	}
	file_name(room, self, name);
	TRY(open_state(room, kind, false, &fd, err));
	return file_read(fd, name, MEMORY_MAX, ret, err);
}

/* ---- Writing ---- */

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

static void
forget_other_lives(struct mr_room *room, const struct mr_self *self, const char *kind, const char *mine)
{
	struct other_lives others = { .mine = mine };
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(room, record_each) && ROOM_HAS(room, record_drop) &&
	    room->driver->record_each(room, kind, self->agent, note_other, &others, &ignored) == MR_OK)
		for (size_t i = 0; i < others.names.n; i++)
			(void)room->driver->record_drop(room, kind, self->agent, others.names.v[i], &ignored);
	mr_names_done(&others.names);
}

enum mr_rc
memory_write(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_str text, bool first,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];
	enum mr_rc rc;

	if (has_records(room)) {
		record_name(self, name);
		rc = room->driver->record_put(room, kind, self->agent, name, text, err);
		if (rc == MR_OK && first)
			forget_other_lives(room, self, kind, name);
		return rc;
	}
	file_name(room, self, name);
	rc = open_state(room, kind, true, &fd, err);
	return rc == MR_OK ? file_replace(fd, name, text, 0600, err) : rc;
}

void
memory_forget(struct mr_room *room, const struct mr_self *self, const char *kind)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	char name[65];

	if (has_records(room)) {
		record_name(self, name);
		if (ROOM_HAS(room, record_drop))
			(void)room->driver->record_drop(room, kind, self->agent, name, &ignored);
		return;
	}
	file_name(room, self, name);
	if (open_state(room, kind, false, &fd, &ignored) == MR_OK)
		(void)sys_unlink(fd, name);
}

/* ---- Words ---- */

void
memory_words(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (memory_read(room, self, kind, &text, &ignored) != MR_OK)
		return;
	for (struct mr_str rest = buf_str(&text); rest.len > 0;) {
		const char *lf = memchr(rest.ptr, '\n', rest.len);
		size_t len = lf ? (size_t)(lf - rest.ptr) : rest.len, step = lf ? len + 1 : len;

		if (len > 0 && !names_add(ret, (struct mr_str){ rest.ptr, len }))
			return;
		rest.ptr += step;
		rest.len -= step;
	}
}

enum mr_rc
memory_put_words(struct mr_room *room, const struct mr_self *self, const char *kind, const struct mr_names *words,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, before = BUF_INIT;
	struct mr_error ignored = { 0 };
	bool first = memory_read(room, self, kind, &before, &ignored) != MR_OK;

	for (size_t i = 0; i < words->n; i++)
		buf_addf(&text, "%s\n", words->v[i]);
	return buf_ok(&text) ? memory_write(room, self, kind, buf_str(&text), first, err) : mr_nomem(err);
}
