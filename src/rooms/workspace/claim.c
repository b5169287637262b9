/* SPDX-License-Identifier: MIT */
/* claim.c - taking mail out of an inbox: a rename, of which one worker gets it. To another program it looks as after
 * its own delete. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <errno.h>
#include <stdlib.h>

#define NUMBERS_MAX 10000

enum mr_rc
claim_take(struct box *box, struct entry *e, struct mr_error *err)
{
	TRY(box_need_scratch(box, err));
	for (unsigned n = 0; n < NUMBERS_MAX; n++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;

		buf_addf(&name, "%s.in", e->name);
		if (n > 0)
			buf_addf(&name, ".%u", n);
		if (!buf_ok(&name))
			return mr_nomem(err);
		if (sys_rename_new(box->inbox_fd, e->name, box->scratch_fd, buf_z(&name)) == 0) {
			free(e->name);
			e->name = buf_take(&name);
			e->folder = MR_ARCHIVE;
			return MR_OK;
		}
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "'%s' was taken out of the inbox by another", e->name);
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot take '%s' out of the inbox", e->name);
	}
	return mr_fail(err, MR_BUSY, "cannot take '%s' out of the inbox: scratch has too many of that name", e->name);
}

enum mr_rc
claim_back(const struct box *box, struct entry *e, struct mr_error *err)
{
	const char *end = e->name, *in;

	for (const char *at = e->name; (in = strstr(at, ".in")) != NULL; at = in + 1)
		end = in; /* the last one: an id may have .in in it */
	char *name = strndup(e->name, (size_t)(end - e->name));

	if (!name)
		return mr_nomem(err);
	if (sys_rename_new(box->scratch_fd, e->name, box->inbox_fd, name) == 0) {
		free(e->name);
		e->name = name;
		e->folder = MR_INBOX;
		return MR_OK;
	}
	if (errno == EEXIST) {
		(void)mr_fail(
		    err, MR_BUSY, "cannot put '%s' back: the next message of that conversation waits there", name);
		(void)mr_hint(err, "read that one first");
	} else if (errno == ENOENT) {
		(void)mr_fail(err, MR_NOTFOUND, "'%s' is not there any more", e->name);
	} else {
		(void)mr_fail_errno(err, "cannot put '%s' back", name);
	}
	free(name);
	return err->code;
}

enum mr_rc
workspace_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	const struct listing listing = { .folders = MR_INBOX | MR_ARCHIVE, .id = id };
	struct entry *e = NULL;

	TRY(box_open(&box, ws, agent, BOX_AS_IT_IS, err));
	TRY(entries_read(ws, &box, &listing, &all, err));
	for (size_t i = 0; i < all.n && !e; i++)
		if (strcmp(all.v[i].id, id) == 0)
			e = &all.v[i];
	if (!e)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	/* Read or not is all that the format can remember. */
	if ((set & MR_SEEN) && e->folder == MR_INBOX) {
		TRY(claim_take(&box, e, err));
	} else if ((clear & MR_SEEN) && e->folder == MR_ARCHIVE) {
		TRY(claim_back(&box, e, err));
	} else {
		return MR_OK;
	}
	if (!names_has(&ws->dirty, agent) && !names_add(&ws->dirty, str_of(agent)))
		return mr_nomem(err);
	return MR_OK;
}

enum mr_rc
workspace_flush(struct mr_room *room, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < ws->dirty.n && rc == MR_OK; i++) {
		mr_auto(box_done) struct box box = BOX_INIT;

		rc = box_open(&box, ws, ws->dirty.v[i], BOX_AS_IT_IS, err);
		/* The folder that gained the name first: without a journal the other order can lose both. */
		if (rc == MR_OK &&
		    ((box.scratch_fd >= 0 && sys_fsync(box.scratch_fd) < 0) || sys_fsync(box.inbox_fd) < 0))
			rc = mr_fail_errno(err, "cannot make marks of '%s' durable", box.address);
	}
	if (rc == MR_OK)
		mr_names_done(&ws->dirty);
	return rc;
}
