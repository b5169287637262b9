/* SPDX-License-Identifier: MIT */
/*
 * confirm.c - did the model see the mail that a command showed? In a harness the text goes into the result of a tool,
 * which is dropped if the user interrupts the call, cut short by `| head`, or replaced by a preview. The hooks of the
 * session get the result as the model gets it. So a command of a session with such hooks notes in the session's binding
 * the ids that it is about to consume, and a hook checks whether they are in the model's result:
 *
 *	unread --note, consume--> noted --its id is in a result--> read, for good
 *	                            |--the call or the turn is over--> unread again, once
 *
 * Mail is noted before it is consumed, and made unread before the note is dropped: a kill at any point shows mail twice
 * and never loses it. Mail that was made unread once and is consumed again counts as read; otherwise `drain | jq
 * .subject` would never end.
 */
#include "office/tell/tell.h"
#include "office/who/who.h"
#include <fcntl.h>

#define NOTED_MAX 8000 /* bytes of ids in a binding */
#define FOLDER "tool-hooks"
#define KNOWN_MS ((int64_t)7 * 24 * 3600 * 1000)
#define RETURNED '-' /* marks an id that was made unread once */

/* Loads the binding of this life, and takes the lock under which it is changed. */
static bool
load(struct mr_room *room, const struct mr_self *self, struct binding *ret, int *ret_lock)
{
	*ret_lock = session_lock(room->state_dir);
	return *ret_lock >= 0 && self->session[0] &&
	       session_load(room->state_dir, self->session, room->spec, ret, IGNORED) == MR_OK &&
	       strcmp(ret->agent, self->agent) == 0 && ret->life == self->life;
}

static void
save(struct mr_room *room, struct binding *b, const struct buf *noted)
{
	const char *text = buf_z(noted);

	while (strlen(text) > NOTED_MAX) { /* the oldest are dropped first */
		text += strcspn(text, " ");
		text += *text == ' ';
	}
	b->noted = text;
	b->lists = true;
	(void)session_save(room->state_dir, room->spec, b);
}

void
confirm_note(struct mr_room *room, const struct mr_self *self, const struct claim *shown, size_t n)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(buf_done) struct buf noted = BUF_INIT;
	mr_auto(sys_close_fd) int lock = -1;

	if (!self->hooked || n == 0 || !load(room, self, &b, &lock))
		return;
	buf_adds(&noted, b.noted);
	for (size_t i = 0; i < n; i++)
		if (!strstr(buf_z(&noted), shown[i].id)) /* noted already, or made unread before */
			buf_addf(&noted, "%s%s", noted.len > 0 ? " " : "", shown[i].id);
	if (buf_ok(&noted) && strcmp(buf_z(&noted), b.noted) != 0)
		save(room, &b, &noted);
}

/* Sorts the ids into those that stay noted and those to make unread. False: out of memory. */
static bool
judge(const char *noted, struct mr_str seen, bool over, struct buf *rest, struct mr_names *back)
{
	for (const char *at = noted; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		bool returned = at[len - 1] == RETURNED;
		struct mr_str id = { at, returned ? len - 1 : len };

		at += len;
		if (seen.len > 0 && memmem(seen.ptr, seen.len, id.ptr, id.len))
			continue;
		if (over && !returned && !names_add(back, id))
			return false;
		buf_addf(rest, "%s%.*s%s", rest->len > 0 ? " " : "", (int)id.len, id.ptr, returned || over ? "-" : "");
	}
	return buf_ok(rest);
}

void
mr_confirm(struct mr_room *room, const struct mr_self *self, const char *seen, size_t seen_len, bool over)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_names_done) struct mr_names back = { 0 };
	mr_auto(buf_done) struct buf rest = BUF_INIT;
	mr_auto(sys_close_fd) int lock = -1;

	if (!self->unconfirmed || !ROOM_HAS(room, mark) || !(room->driver->abilities & ROOM_ARCHIVE))
		return;
	if (!load(room, self, &b, &lock) || !judge(b.noted, (struct mr_str){ seen, seen_len }, over, &rest, &back))
		return;
	if (back.n > 0) {
		/* Unread again, and to be announced again. */
		mr_auto(announced_done) struct announced told = { 0 };

		for (size_t i = 0; i < back.n; i++) { /* not found: purged meanwhile */
			(void)room->driver->mark(room, self->agent, back.v[i], 0, MR_SEEN, 0, IGNORED);
			(void)room->driver->mark(room, self->agent, back.v[i], 0, 0, MR_INBOX, IGNORED);
		}
		(void)office_flush(room, IGNORED);
		announced_load(room, self, &told);
		for (size_t i = 0; i < back.n; i++)
			announced_drop(&told, back.v[i]);
		if (told.changed)
			(void)announced_save(room, self, &told, IGNORED);
	}
	if (strcmp(buf_z(&rest), b.noted) != 0)
		save(room, &b, &rest);
}

/* ---- Does this session have such hooks? ---- */

/* A hook after tools is known if one has run; for the first call of a session, if one ran in another session. */
static bool
harness_is_known(const char *state_dir, const char *harness, bool says)
{
	mr_auto(sys_close_fd) int folder = -1;
	struct stat st;

	if (dir_below(state_dir, FOLDER, says, true, &folder, IGNORED) != MR_OK)
		return says;
	if (says) {
		(void)file_replace(folder, harness, (struct mr_str){ 0 }, 0600, IGNORED);
		return true;
	}
	return sys_stat(folder, harness, &st) == 0 && clock_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000 < KNOWN_MS;
}

void
mr_confirm_begin(struct mr_room *room, const struct mr_self *self, const char *harness, bool after_tool)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(sys_close_fd) int lock = -1;

	if (self->hooked || !self->bound || !room->state_dir || !office_has_lives(room) ||
	    !(room->driver->abilities & ROOM_ARCHIVE) || !harness_is_known(room->state_dir, harness, after_tool) ||
	    !load(room, self, &b, &lock) || b.hooked)
		return;
	b.hooked = b.lists = true;
	(void)session_save(room->state_dir, room->spec, &b);
}
