/* SPDX-License-Identifier: MIT */
/* scratch.c - a folder for the self test on the very disk that is asked about. */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PREFIX ".mailroom-selftest-"

/* Beside the room that a command would use here. Rooms of other programs get nothing of ours. */
static enum mr_rc
find_place(struct cli *cli, struct buf *ret, struct mr_error *err)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	struct mr_error none = { 0 };
	const char *env = getenv("MAILROOM");

	if (!cwd)
		return mr_fail_errno(err, "cannot tell the working folder");
	if (mr_room_find(spec_expand(cli, cli->room_option, cwd), spec_expand(cli, env && env[0] ? env : NULL, cwd),
		cwd, &place, &none) == MR_OK &&
	    str_starts(str_of(place.spec), "maildir:/")) {
		const char *path = place.spec + strlen("maildir:");

		buf_add(ret, (struct mr_str){ path, (size_t)(strrchr(path, '/') - path) });
	}
	if (ret->len == 0)
		buf_adds(ret, cwd);
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

enum mr_rc
scratch_make(struct cli *cli, const char *dir, struct scratch *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char random[13];
	enum mr_rc rc = MR_OK;

	if (dir)
		buf_adds(&path, cli_folder(cli, dir));
	else
		rc = find_place(cli, &path, err);
	if (rc != MR_OK)
		return rc;
	random_hex(random, 12);
	buf_addf(&path, "/" PREFIX "%s", random);
	if (!buf_ok(&path))
		return mr_nomem(err);
	if (sys_mkdir(AT_FDCWD, buf_z(&path), 0700) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s'", buf_z(&path));
		return mr_hint(err, "--dir DIR names a folder on the disk that shall be tested");
	}
	rc = dir_open(AT_FDCWD, buf_z(&path), &ret->fd, err);
	ret->path = buf_take(&path);
	return rc;
}

void
scratch_remove(struct scratch *s)
{
	if (s->path)
		dir_remove_tree(AT_FDCWD, s->path);
	scratch_keep(s);
}

void
scratch_keep(struct scratch *s)
{
	sys_close_fd(&s->fd);
	free(s->path);
	*s = SCRATCH_INIT;
}
