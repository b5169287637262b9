/* SPDX-License-Identifier: MIT */
/* box.c - one agent's inbox and scratch. The last parts of their paths are never links: what is in them decides where
 * we write. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

static enum mr_rc
no_workspace(const char *address, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "no workspace of '%s' with an inbox here\n"
	    "'mailroom who' lists those there are; another one is named by its path",
	    address);
}

static enum mr_rc
open_folders(struct box *box, struct mr_error *err)
{
	struct mr_error missing = { 0 };

	box->fd = sys_open(AT_FDCWD, box->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (box->fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return no_workspace(box->address, err);
	if (box->fd < 0)
		return mr_fail_errno(err, "cannot open workspace '%s'", box->path);
	if (dir_open(box->fd, ".mailbox/inbox", &box->inbox_fd, err) != MR_OK)
		return err->code == MR_NOTFOUND ? no_workspace(box->address, err) : err->code;
	if (dir_open(box->fd, ".mailbox/scratch", &box->scratch_fd, &missing) == MR_REFUSED) {
		*err = missing;
		return missing.code;
	}
	return MR_OK;
}

/* Scratch first: whoever sees the inbox may send at once. The workspace itself is made for other agents only. */
static enum mr_rc
make_folders(struct box *box, struct mr_error *err)
{
	sys_close_fd(&box->fd);
	box->fd = -1;
	if (dir_make(AT_FDCWD, box->path, 0700, true, &box->fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the workspace of '%s'", box->address);
	if (dir_make(box->fd, ".mailbox/scratch", 0700, true, &box->scratch_fd, err) != MR_OK ||
	    dir_make(box->fd, ".mailbox/inbox", 0700, true, &box->inbox_fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the mailbox of '%s'", box->address);
	return MR_OK;
}

enum mr_rc
box_open(struct box *box, struct workspace *ws, const char *address, enum box_make make, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	bool own = ws->own && strcmp(address, ws->owner) == 0;

	*box = BOX_INIT;
	(void)snprintf(box->address, sizeof box->address, "%s", address);
	TRY(workspace_path(ws, address, &path, err));
	box->path = buf_take(&path);
	if (!box->path)
		return mr_nomem(err);
	enum mr_rc rc = open_folders(box, err);

	if (rc != MR_NOTFOUND)
		return rc;
	if (make == BOX_MAKE_ANY || (own && make == BOX_MAKE_OWN))
		return make_folders(box, err);
	return own ? MR_OK : rc; /* the owner is there, with or without mail */
}

enum mr_rc
box_publish(struct workspace *ws, const char *address, struct mr_str note, struct mr_error *err)
{
	static const char *const below[] = { "inbox", NULL };
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = workspace_path(ws, address, &path, err);

	if (rc == MR_OK)
		rc = buf_ok(&path) ? dir_make(AT_FDCWD, buf_z(&path), 0700, true, &fd, err) : mr_nomem(err);
	return rc == MR_OK ? dir_publish(fd, ".mailbox", 0700, WORKSPACE_NOTE, note, below, err) : rc;
}

enum mr_rc
box_need_scratch(struct box *box, struct mr_error *err)
{
	return box->scratch_fd >= 0 ? MR_OK : dir_make(box->fd, ".mailbox/scratch", 0700, true, &box->scratch_fd, err);
}

void
box_done(struct box *box)
{
	sys_close_fd(&box->fd);
	sys_close_fd(&box->inbox_fd);
	sys_close_fd(&box->scratch_fd);
	free(box->path);
	*box = BOX_INIT;
}

bool
box_scratch_named(const struct box *box, struct mr_str text)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/.mailbox/scratch", box->path);
	return buf_ok(&path) && text.len > 0 && memmem(text.ptr, text.len, path.ptr, path.len) != NULL;
}
