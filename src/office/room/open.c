/* SPDX-License-Identifier: MIT */
/* open.c - opening a room for use: the driver's open, trust, tracing, and completing what crashed commands left behind.
 * Also two services for the rest of the office: the folders of mailroom's data files, and the reserve for a full
 * disk. */
#include "base/error.h"
#include "office/link/link.h"
#include "office/rules/config.h"
#include "office/types/types.h"
#include "office/who/who.h"
#include <limits.h>
#include <unistd.h>

#define BESIDE "@/" /* in a list of folders: the folder of this program */

static void
free_office(struct mr_room *room)
{
	struct user_config *user = room->office->user;

	types_detach(room);
	if (user) {
		free(user->dir);
		free(user->paths);
		record_done(&user->lines);
		free(user);
	}
	free(room->office);
	room->office = NULL;
}

/* Tells the driver what this command will ask for, because each request to a distant room takes a round trip: the
 * acting agent comes first. */
static enum mr_rc
open_far(const char *spec, const struct mr_room_options *o, struct mr_room **ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	mr_auto(binding_done) struct binding bound = { 0 };
	struct mr_room_options there = *o;
	const char *self = o->env ? o->env->as : NULL;

	if (o->env && !self && o->env->session &&
	    session_load(o->env->state_dir, o->env->session, spec, &bound, IGNORED) == MR_OK)
		self = bound.agent;
	self = self || !o->env ? self : o->env->agent;
	there.expects = NULL;
	if (self && names_add(&words, str_of(self))) {
		for (size_t i = 0; o->expects && i < o->expects->n; i++)
			(void)names_add_once(&words, o->expects->v[i]);
		there.expects = &words;
	}
	return room_open_spec(spec, &there, ret, err);
}

enum mr_rc
mr_room_open(const char *spec, const struct mr_room_options *options, struct mr_room **ret_room, struct mr_error *err)
{
	static const struct mr_room_options plain = { 0 };
	const struct mr_room_options *o = options ? options : &plain;
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct mr_error put_off = { 0 };
	struct mr_room *room = NULL;

	bool far = room_kind_needs_full(str_first(str_of(spec), strcspn(spec, ":")));

	TRY(far ? open_far(spec, o, &room, err) : room_open_spec(spec, o, &room, err));
	room->trace = o->trace;
	room->trace_ctx = o->trace_ctx;
	if (o->trace)
		room_wrap_trace(room);
	room->data_dir = o->data_dir ? strdup(o->data_dir) : NULL;
	room->office = calloc(1, sizeof(*room->office));
	room->office_free = free_office;
	enum mr_rc rc = mr_got(room->office && (room->data_dir || !o->data_dir), err);

	if (rc == MR_OK)
		rc = types_attach(room, err);
	if (rc == MR_OK)
		rc = config_attach(room, o, err);
	if (rc != MR_OK) {
		mr_room_close(room);
		return rc;
	}
	room->office->links = &linked_rooms;
	/* If something cannot be completed now, a later command does it; reading mail must not wait for it. */
	if (!o->no_recover && room->driver->sweep(room, NULL, &put_off) != MR_OK && room->trace) {
		buf_addf(&line, "recover: put off: %s", put_off.message);
		room->trace(room->trace_ctx, buf_z(&line));
	}
	*ret_room = room;
	return MR_OK;
}

/* ---- What an open room has ---- */

bool
mr_room_has(struct mr_room *room, unsigned what)
{
	const struct room_driver *driver = room->driver;
	mr_auto(free_ptr) char *index = NULL;
	mr_auto(buf_done) struct buf packed = BUF_INIT;

	return ((what & MR_HAS_NAMES) && !(driver->abilities & ROOM_NAMELESS)) ||
	       ((what & MR_HAS_LIVES) && office_has_lives(room)) ||
	       ((what & MR_HAS_REGISTRY) && (driver->abilities & ROOM_REGISTER) && ROOM_HAS(room, add_agent)) ||
	       ((what & MR_HAS_INDEX) && !room->no_index && driver->files &&
		   driver->files->index_folder(room, false, &index, IGNORED) == MR_OK) ||
	       ((what & MR_HAS_PACKS) && driver->files &&
		   driver->record_get(room, ROOM_KEPT, "", ROOM_PACKED, &packed, IGNORED) == MR_OK) ||
	       ((what & MR_HAS_LINKS) && config_has_link(room, false)) ||
	       ((what & MR_HAS_FAR_LINKS) && config_has_link(room, true));
}

/* The folder of the program is looked up only if a shipped type is needed. */
const char *
office_data_dirs(struct mr_room *room)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	char program[PATH_MAX];

	if (!room->data_dir || !strstr(room->data_dir, BESIDE))
		return room->data_dir;
	ssize_t len = readlink("/proc/self/exe", program, sizeof program);

	while (len > 0 && program[len - 1] != '/')
		len--;
	for (const char *at = room->data_dir; *at; at += strcspn(at, ":"), at += *at == ':') {
		struct mr_str part = { at, strcspn(at, ":") };
		bool beside = str_starts(part, BESIDE);

		if (beside && len <= 0) /* the program's path is not visible */
			continue;
		buf_adds(&list, list.len > 0 ? ":" : "");
		if (beside) {
			buf_add(&list, (struct mr_str){ program, (size_t)len });
			part = (struct mr_str){ part.ptr + strlen(BESIDE), part.len - strlen(BESIDE) };
		}
		buf_add(&list, part);
	}
	char *whole = buf_take(&list);

	if (whole) { /* out of memory: as if no data files were beside it */
		free(room->data_dir);
		room->data_dir = whole;
	}
	return room->data_dir;
}

/*
 * ---- A full disk ----
 *
 * Operations that empty a mailbox (showing, claiming, settling, marking, archiving, purging) run between relief_begin
 * and relief_end: if a call there finds no space, it is tried again after the room freed a part of its reserve.
 * Operations that fill mailboxes run outside, and are refused as a whole.
 */

struct relief
relief_begin(struct mr_room *room)
{
	return (struct relief){ sys_relief_set(room->relief.free_some ? &room->relief : NULL) };
}

void
relief_end(struct relief *r)
{
	(void)sys_relief_set(r->before);
}
