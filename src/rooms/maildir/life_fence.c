/* SPDX-License-Identifier: MIT */
/*
 * life_fence.c - what a life that is over held. The new life exists first, then every held/<M> of an older one is
 * renamed away, then its mail goes back to the inbox. Whatever an old life does late to mail that it holds fails on
 * the missing source. A crash after the rename leaves held/.gone.<M>.<random>: life_return_gone finishes it.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

struct held_folders {
	unsigned before;       /* lives below this number */
	struct mr_names lives; /* "3" */
	struct mr_names gone;  /* ".gone.3.a1b2c3" */
	bool failed;
};

static bool
collect_held(void *ctx, const struct dir_entry *entry)
{
	struct held_folders *held = ctx;
	unsigned n;

	if (str_starts(str_of(entry->name), ".gone."))
		held->failed |= !names_add(&held->gone, str_of(entry->name));
	else if (life_number(entry->name, &n) && n < held->before)
		held->failed |= !names_add(&held->lives, str_of(entry->name));
	return !held->failed;
}

/* Afterwards all that must be emptied is in held->gone. */
static enum mr_rc
rename_away(int held_fd, struct held_folders *held, struct mr_error *err)
{
	for (size_t i = 0; i < held->lives.n; i++) {
		char random[7], gone[NAME_LEN];

		random_hex(random, 6);
		(void)snprintf(gone, sizeof gone, ".gone.%.20s.%s", held->lives.v[i], random);
		if (sys_rename(held_fd, held->lives.v[i], held_fd, gone) < 0) {
			if (errno == ENOENT) /* another fence was faster */
				continue;
			return mr_fail_errno(err, "cannot fence 'held/%s'", held->lives.v[i]);
		}
		if (!names_add(&held->gone, str_of(gone)))
			return mr_nomem(err);
	}
	return MR_OK;
}

static enum mr_rc
empty_gone(struct mailbox *box, int held_fd, const char *name, size_t *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	size_t n = 0;
	enum mr_rc rc = dir_open(held_fd, name, &fd, err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED || /* emptied by another; a planted link is left alone */
	    (rc != MR_OK && shared_skip(box->md, err, "agents/%s/held/%s", box->agent, name)))
		return MR_OK;
	if (rc == MR_OK)
		rc = hold_return_all(box, fd, &n, err);
	*ret += n;
	/* Without a journal the loss of the folder may reach the disk before the mail's new names do. */
	if (rc == MR_OK && n > 0)
		rc = commit_flush(box->md, err);
	if (rc == MR_OK)
		(void)sys_rmdir(held_fd, name); /* not empty: something strange is in it, kept */
	return rc;
}

enum mr_rc
life_fence(struct mailbox *box, unsigned before, size_t *ret, struct mr_error *err)
{
	struct held_folders held = { .before = before };
	int held_fd;
	enum mr_rc rc = mailbox_folder(box, BOX_HELD, &held_fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(held_fd, collect_held, &held, err);
	if (rc == MR_OK && held.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && held.lives.n > 0)
		rc = rename_away(held_fd, &held, err);
	for (size_t i = 0; rc == MR_OK && i < held.gone.n; i++)
		rc = empty_gone(box, held_fd, held.gone.v[i], ret, err);
	mr_names_done(&held.lives);
	mr_names_done(&held.gone);
	return rc;
}

enum mr_rc
life_return_gone(struct mailbox *box, size_t *ret, struct mr_error *err)
{
	return life_fence(box, 0, ret, err);
}
