/* SPDX-License-Identifier: MIT */
/*
 * keep.c - imports. A message keeps its date, which is its name here, so a second import finds it by that name; two
 * messages of one sender in one millisecond are told apart by the id that they came with ("mailroom_id").
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"

/* Is the file of that name this very message? MR_NOTFOUND: there is no file. */
static enum mr_rc
is_it(int fd, const char *name, const char *id, bool *ret_same, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, imported = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct json_value object;
	char own[MR_ID_LEN + 1];
	enum mr_rc rc = chipset_file_read(fd, name, &text, err);

	*ret_same = false;
	if (rc == MR_NOTFOUND || rc == MR_NOMEM)
		return rc;
	if (rc != MR_OK || chipset_object(buf_str(&text), &object, &ignored) != MR_OK)
		return MR_OK; /* the name is taken, by whatever it is */
	if (json_find_text(object, "mailroom_id", &imported))
		*ret_same = strcmp(buf_z(&imported), id) == 0;
	else if (chipset_name_id(str_of(name), own))
		*ret_same = strcmp(own, id) == 0;
	return MR_OK;
}

/* MR_NOTFOUND: the name is free. MR_EXISTS: it is there. MR_OK: the name is another's. */
static enum mr_rc
look_in(int box_fd, const char *folder, const char *name, const char *id, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	bool same = false;
	enum mr_rc rc = dir_open(box_fd, folder, &fd, err);

	if (rc == MR_OK)
		rc = is_it(fd, name, id, &same, err);
	return rc == MR_OK && same ? mr_fail(err, MR_EXISTS, "'%s' is there already", name) : rc;
}

enum mr_rc
chipset_keep_place(int box_fd, const char *from, const char *id, int64_t *ms, struct mr_error *err)
{
	for (int tries = 0; tries < CHIPSET_TRIES; tries++, ++*ms) {
		char name[CHIPSET_NAME_MAX + 1];

		chipset_name_make(*ms, from, name);
		enum mr_rc inbox = look_in(box_fd, ".", name, id, err);

		if (inbox != MR_OK && inbox != MR_NOTFOUND)
			return inbox;
		enum mr_rc archive = look_in(box_fd, "archive", name, id, err);

		if (archive != MR_OK && archive != MR_NOTFOUND)
			return archive;
		if (inbox == MR_NOTFOUND && archive == MR_NOTFOUND)
			return MR_OK;
	}
	return mr_fail(err, MR_BUSY, "%d names in a row are taken", CHIPSET_TRIES);
}
