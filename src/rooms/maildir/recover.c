/* SPDX-License-Identifier: MIT */
/*
 * recover.c - completing what crashed commands left in spool/. Every command does this, so it costs one
 * open and one read of an empty folder when there is nothing.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

struct leftovers { /* names in spool/ */
	struct mr_names records; /* <id> */
	struct mr_names rest;    /* messages and temporary files */
	bool failed;
};

static bool
sort_leftover(void *ctx, const struct dir_entry *entry)
{
	struct leftovers *left = ctx;
	struct mr_str name = str_of(entry->name);

	if (id_valid(name))
		left->failed |= !names_add(&left->records, name);
	else if (str_ends(name, ".mr") || str_ends(name, ".tmp"))
		left->failed |= !names_add(&left->rest, name);
	return !left->failed;
}

/* A message gets its name just before its record: only age tells an orphan from one that is about to
 * get one. */
static void
remove_orphan(int spool_fd, const char *name)
{
	struct stat st;
	struct mr_str whole = str_of(name);
	char record[NAME_LEN];

	if (sys_stat(spool_fd, name, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (int64_t)st.st_mtime * 1000 > clock_now_ms() - SPOOL_STRAY_MS)
		return;
	if (str_ends(whole, ".mr")) {
		(void)snprintf(record, sizeof record, "%.*s", (int)(whole.len - 3), name);
		if (sys_stat(spool_fd, record, &st) == 0 || errno != ENOENT)
			return;
	}
	(void)sys_unlink(spool_fd, name);
}

static enum mr_rc
recover_one(struct mr_room *room, const char *id, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;
	bool lost;

	spool_init(&job, room);
	if (spool_open(&job, false, err) != MR_OK)
		return err->code;
	enum mr_rc rc = spool_lock(&job, id, 0, err);

	/* Busy: its sender lives. Gone: it finished just now. Corrupt: kept for doctor and a person. */
	if (rc == MR_BUSY || rc == MR_NOTFOUND || rc == MR_CORRUPT)
		return MR_OK;
	if (rc == MR_OK)
		rc = spool_roll_forward(&job, &lost, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot complete the delivery of '%s'", id);
}

enum mr_rc
maildir_recover(struct mr_room *room, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct leftovers left = { 0 };
	enum mr_rc rc = dir_open(maildir_of(room)->root_fd, "spool", &fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(fd, sort_leftover, &left, err);
	if (rc == MR_OK && left.failed)
		rc = mr_nomem(err);
	/* One that cannot be completed must not keep the others waiting; the first error is told. */
	for (size_t i = 0; rc != MR_NOMEM && i < left.records.n; i++) {
		struct mr_error one = { 0 };

		if (recover_one(room, left.records.v[i], &one) != MR_OK && rc == MR_OK) {
			*err = one;
			rc = one.code;
		}
	}
	for (size_t i = 0; i < left.rest.n; i++)
		remove_orphan(fd, left.rest.v[i]);
	mr_names_done(&left.records);
	mr_names_done(&left.rest);
	return rc;
}
