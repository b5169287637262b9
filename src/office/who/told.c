/* SPDX-License-Identifier: MIT */
/*
 * told.c - the told log: what one life was told and is not to be told again. Each kind is a small text: announced mail,
 * reasons that held up a stop, offered work, rung bells. A new life starts without one.
 *
 *	records/<kind>/<agent>/life-<n>                      native rooms
 *	<state>/<kind>/<hash of room, agent, session>        rooms of other programs, in which we put no files
 */
#include "base/id.h"
#include "office/who/who.h"

#define TOLD_MAX ((size_t)64 << 20)

/* The name of the record, or with *ret_fd the file in the state folder: rooms of other programs keep no records. */
static enum mr_rc
find_place(struct mr_room *room, const struct mr_self *self, const char *kind, bool make, char ret_name[65],
    int *ret_fd, struct mr_error *err)
{
	if (ROOM_HAS(room, record_put)) {
		(void)snprintf(ret_name, 65, "life-%u", self->life);
		return MR_OK;
	}
	(void)snprintf(
	    ret_name, 65, "%s", hash_name("%s\n%s\n%s\n%u", room->spec, self->agent, self->session, self->life).z);
	return office_state(room, kind, make, ret_fd, err);
}

enum mr_rc
told_read(struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	TRY(find_place(room, self, kind, false, name, &fd, err));
	if (fd < 0)
		return room->driver->record_get(room, kind, self->agent, name, ret, err);
	return file_read(fd, name, TOLD_MAX, ret, err);
}

enum mr_rc
told_write(struct mr_room *room, const struct mr_self *self, const char *kind, const struct buf *text, bool first,
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

	if (told_read(room, self, kind, &text, IGNORED) != MR_OK)
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
	bool first = told_read(room, self, kind, &before, IGNORED) != MR_OK;

	for (size_t i = 0; i < words->n; i++)
		buf_addf(&text, "%s\n", words->v[i]);
	return told_write(room, self, kind, &text, first, err);
}

void
told_forget(struct mr_room *room, const struct mr_self *self, const char *kind)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	if (find_place(room, self, kind, false, name, &fd, IGNORED) != MR_OK)
		return;
	if (fd < 0)
		(void)room->driver->record_drop(room, kind, self->agent, name, IGNORED);
	else
		(void)sys_unlink(fd, name);
}
