/* SPDX-License-Identifier: MIT */
/* inspect_spool.c - fan-outs under way: whose sender lives, whose died, and records that nobody can read. */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/inspect.h"
#include <errno.h>

static bool
collect_id(void *ctx, const struct dir_entry *entry)
{
	return !id_valid(str_of(entry->name)) || names_add(ctx, str_of(entry->name));
}

/* MR_OK: nobody works on it. MR_BUSY: its sender does. */
static enum mr_rc
judge_record(struct inspection *in, const char *id, size_t *ret_recipients, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;

	spool_init(&job, in->room);
	enum mr_rc rc = spool_open(&job, false, err);

	if (rc == MR_OK)
		rc = spool_lock(&job, id, 0, err);
	*ret_recipients = job.to.n;
	return rc;
}

static void
check_record(struct inspection *in, int spool_fd, const char *id)
{
	struct mr_error why = { 0 }, failed = { 0 };
	char path[MR_ID_LEN + 8];
	size_t recipients = 0;
	struct stat st;
	enum mr_rc rc = judge_record(in, id, &recipients, &why);

	(void)snprintf(path, sizeof path, "spool/%s", id);
	if (rc == MR_NOTFOUND)
		return;
	if (rc == MR_BUSY) {
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = "spool", .path = path },
		    "message '%s' is being delivered right now", id);
		return;
	}
	if (rc != MR_OK) {
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "spool",
			.path = path,
			.why = "it says who is to get a message, and cannot be read: some of them may lack it",
			.fix = "its message, if any, is beside it; see who lacks it, send it anew, then remove both" },
		    "%s", why.message);
		return;
	}
	if (in->f.fix)
		(void)maildir_recover(in->room, &failed);
	bool fixed = in->f.fix && sys_stat(spool_fd, id, &st) < 0 && errno == ENOENT;

	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "spool",
		.path = path,
		.why = "its sender was killed on the way; it goes to all of them, not to some",
		.fix = fixed         ? "all of them have it now"
		       : failed.code ? failed.message
				     : "any sending command completes it, and so does mailroom doctor --fix",
		.fixed = fixed },
	    "the sender of message '%s' died before all %zu recipients had it", id, recipients);
}

enum mr_rc
inspect_spool(struct inspection *in, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(in->md->root_fd, "spool", &fd, err);

	if (rc == MR_OK)
		rc = dir_each(fd, collect_id, &ids, err);
	for (size_t i = 0; rc == MR_OK && i < ids.n; i++)
		check_record(in, fd, ids.v[i]);
	if (rc == MR_OK && ids.n == 0)
		inspect_fine(in, "spool", "no delivery is half done");
	return rc == MR_NOTFOUND ? MR_OK : rc;
}
