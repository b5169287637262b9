/* SPDX-License-Identifier: MIT */
/* open.c - from a spec to an open room and back, and the public functions that describe a room. */
#include "base/full.h"
#include "base/error.h"
#include "base/storage.h"
#include "room/room.h"
#include <sys/sysmacros.h>

static bool
is_word(struct mr_str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 'a' || s.ptr[i] > 'z')
			return false;
	return s.len > 0;
}

static enum mr_rc
refuse_kind(struct mr_str kind, struct mr_error *err)
{
	char known[160] = "";
	size_t len = 0;

	for (const struct room_driver *const *d = room_drivers(); *d && len < sizeof known; d++)
		len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", (*d)->kind);
	return mr_fail(err, MR_REFUSED,
	    "cannot open a room of kind '%.*s': no such kind\n"
	    "kinds of room are %s; write a path with a colon in it as ./%.*s:...",
	    (int)(kind.len < 60 ? kind.len : 60), kind.ptr, known, (int)(kind.len < 60 ? kind.len : 60), kind.ptr);
}

/* "KIND:WHERE", or a path. A word before the first colon is always a kind: if a mistyped kind were taken for a path, it
 * would make a second room next to the intended one. */
static enum mr_rc
split_spec(const char *spec, const struct room_driver **ret_driver, const char **ret_where, struct mr_error *err)
{
	const char *colon = strchr(spec, ':');

	if (spec[0] == '\0')
		return mr_fail(
		    err, MR_REFUSED, "cannot open room '': the name is empty\ngive the room's folder, or KIND:WHERE");
	if (colon && spec[0] != '/' && spec[0] != '.') {
		struct mr_str kind = { spec, (size_t)(colon - spec) };

		if (is_word(kind)) {
			const struct room_driver *driver = room_driver_named(kind);

			if (!driver && room_kind_needs_full(kind)) {
				full_missed = true;
				return mr_fail(err, MR_UNSUPPORTED,
				    "a room in PostgreSQL needs 'mailroom-full', which is not installed\n"
				    "install it beside this command (libexec/mailroom/mailroom-full), with the library libpq5");
			}
			if (!driver)
				return refuse_kind(kind, err);
			*ret_driver = driver;
			*ret_where = colon + 1;
			return MR_OK;
		}
	}
	*ret_driver = room_drivers()[0];
	*ret_where = spec;
	return MR_OK;
}

const char *
room_place(int fd, const struct stat *st, char ret[ROOM_PLACE_LEN])
{
	uint64_t id = major(st->st_dev) == 0 ? storage_identity(fd) : 0;

	if (id != 0) {
		(void)snprintf(
		    ret, ROOM_PLACE_LEN, "fs%llx:%llu", (unsigned long long)id, (unsigned long long)st->st_ino);
		return ret;
	}
	(void)snprintf(
	    ret, ROOM_PLACE_LEN, "%llu:%llu", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
	return ret;
}

enum mr_rc
room_open_spec(const char *spec, const struct mr_room_options *options, struct mr_room **ret, struct mr_error *err)
{
	const char *state_dir = options ? options->state_dir : NULL;
	const struct room_driver *driver = NULL;
	const char *where = NULL;

	TRY(split_spec(spec, &driver, &where, err));

	struct mr_room *room = calloc(1, sizeof *room);
	struct buf full = BUF_INIT;

	buf_adds(&full, driver->kind);
	buf_addc(&full, ':');
	buf_adds(&full, where);
	char *owned = buf_take(&full);
	char *state = state_dir ? strdup(state_dir) : NULL;

	if (!room || !owned || (state_dir && !state)) {
		free(room);
		free(owned);
		free(state);
		return mr_nomem(err);
	}
	room_fill(&room->table, driver);
	room->driver = &room->table;
	room->state_dir = state;
	room->must_exist = options && options->must_exist;
	room->making = options ? options->init : NULL;
	room->expects = options ? options->expects : NULL;
	room->pool = options ? options->pool : NULL;
	room->no_index = options && options->no_index;
	room->spec = owned; /* as given; a driver that knows the absolute place replaces it */
	enum mr_rc rc = room->driver->open(room, where, err);

	if (rc != MR_OK) {
		mr_room_close(room);
		return rc;
	}
	room->making = NULL; /* the caller's */
	room->expects = NULL;
	room->pool = NULL;
	*ret = room;
	return MR_OK;
}

void
room_forget_watch(struct mr_room *room)
{
	if (room->watch)
		room->driver->watch_close(room, room->watch);
	room->watch = NULL;
}

void
mr_room_close(struct mr_room *room)
{
	if (!room)
		return;
	if (room->watch)
		room_forget_watch(room);
	room->driver->close(room);
	if (room->office) /* it has a table around the others, so free it only after close */
		room->office_free(room);
	free(room->wrap_state); /* holds the table that driver points to, so free it last */
	record_done(&room->settings);
	mr_names_done(&room->barred);
	free(room->spec);
	free(room->name);
	free(room->state_dir);
	free(room->data_dir);
	free(room);
}

const struct mr_names *
mr_room_barred(const struct mr_room *room)
{
	return &room->barred;
}

void
mr_room_on_progress(struct mr_room *room, mr_progress_fn *fn, void *ctx)
{
	room->progress = fn;
	room->progress_ctx = ctx;
}

const char *
mr_room_name(const struct mr_room *room)
{
	return room->name;
}

const char *
mr_room_spec(const struct mr_room *room)
{
	return room->spec;
}

const char *
mr_room_kind(const struct mr_room *room)
{
	return room->driver->kind;
}

const char *
mr_room_setting(const struct mr_room *room, const char *name)
{
	return record_get(&room->settings, name);
}

enum mr_rc
mr_room_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return room->driver->storage(room, ret, err);
}
