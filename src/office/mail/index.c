/* SPDX-License-Identifier: MIT */
/* index.c - the way to an index of the mail, where the room has one and this program can use it: see index.h. */
#include <fcntl.h>

#include "base/file.h"
#include "office/mail/index.h"

static enum mr_rc
find_folder(struct mr_room *room, bool make, char **ret, struct mr_error *err)
{
	const struct room_files *files = room->driver->files;

	return files ? files->index_folder(room, make, ret, err) : room_lacks(room, "index", err);
}

enum mr_rc
mr_index_update(
    struct mr_room *room, bool wait, mr_index_fn *progress, void *ctx, struct mr_indexed *ret, struct mr_error *err)
{
	mr_auto(free_ptr) char *folder = NULL;

	if (!is_full() && room->driver->files)
		return mr_fail(err, MR_UNSUPPORTED,
		    "an index needs SQLite, which this program is not built with\n"
		    "`make install` puts libexec/mailroom/mailroom-full beside the command where Debian's package "
		    "libsqlite3-dev is installed; without it search, thread and why look through all mail");
	TRY(find_folder(room, true, &folder, err));
	return sqlite_index.update(room, folder, wait, progress, ctx, ret, err);
}

enum mr_rc
mr_index_drop(struct mr_room *room, struct mr_error *err)
{
	mr_auto(free_ptr) char *folder = NULL;
	enum mr_rc rc = find_folder(room, false, &folder, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "this room has no index");
	TRY(rc);
	dir_remove_tree(AT_FDCWD, folder);
	free_ptr(&folder);
	if (find_folder(room, false, &folder, IGNORED) == MR_NOTFOUND)
		return MR_OK;
	return mr_fail(err, MR_IO, "the index could not be removed completely\ncheck that you may write into the room");
}

enum mr_rc
index_scan(struct mr_room *room, const struct index_scan *want, struct mr_error *err)
{
	mr_auto(free_ptr) char *folder = NULL;
	mr_auto(buf_done) struct buf warning = BUF_INIT;

	if (!is_full() || room->no_index || find_folder(room, false, &folder, IGNORED) != MR_OK)
		return MR_UNSUPPORTED;
	enum mr_rc rc = sqlite_index.scan(room, folder, want, err);

	if (rc == MR_UNSUPPORTED && err->message[0]) {
		buf_addf(&warning, "the index is not used: %s", err->message);
		(void)names_add_once(&room->barred, buf_z(&warning));
	}
	if (rc == MR_UNSUPPORTED)
		*err = (struct mr_error){ 0 };
	return rc;
}

void
index_ends_next(struct index_ends *e, const char *agent)
{
	mr_names_done(&e->known);
	mr_names_done(&e->stores);
	mr_names_done(&e->ids);
	e->agent = agent;
	e->asked = false;
}

void
index_ends_done(struct index_ends *e)
{
	if (e->index)
		sqlite_index.ends_done(e);
	index_ends_next(e, NULL);
}

bool
index_ends(void *ctx, const char *store, struct mr_names *ret)
{
	struct index_ends *e = ctx;
	mr_auto(free_ptr) char *folder = NULL;

	if (!is_full() || e->room->no_index)
		return false;
	if (!e->asked && find_folder(e->room, false, &folder, IGNORED) == MR_OK)
		sqlite_index.ends(e, folder);
	e->asked = true;
	if (!names_has(&e->known, store))
		return false;
	for (size_t i = 0; i < e->ids.n; i++)
		if (strcmp(e->stores.v[i], store) == 0 && !names_add(ret, str_of(e->ids.v[i])))
			return false;
	return true;
}
