/* SPDX-License-Identifier: MIT */
/* inspect_orphans.c - what belonged to a link that is gone, and what earlier repairs have put into the attic. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/inspect.h"
#include <errno.h>

#define LOCK_WAIT_MS 1000

/* The post office keeps these for each link; an unlink that was killed leaves them. */
static const char *const kinds[] = { "carrying", "carried" };

static bool
note_owner(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

/* A folder's times tell only when names came and went: what is in it must be old, too. */
static bool
note_young(void *ctx, const struct dir_entry *entry)
{
	int *fd = ctx;
	struct stat st;

	if (sys_stat(*fd, entry->name, &st) < 0 || findings_age_ms(&st) >= FINDINGS_STRAY_MS)
		return true;
	*fd = -1;
	return false;
}

static bool
is_old(int kind_fd, const char *link, size_t *ret_n, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;

	if (sys_stat(kind_fd, link, &st) < 0 || findings_age_ms(&st) < FINDINGS_STRAY_MS ||
	    dir_open(kind_fd, link, &fd, err) != MR_OK || dir_each(fd, note_owner, &names, err) != MR_OK)
		return false;
	int looked = fd;

	*ret_n = names.n;
	return dir_each(fd, note_young, &looked, err) == MR_OK && looked >= 0 && names.n > 0;
}

/* Under the lock that whoever makes a link of that name must have. */
static void
check_link(struct inspection *in, int kind_fd, const char *kind, const char *link)
{
	mr_auto(sys_close_fd) int lock = -1;
	mr_auto(buf_done) struct buf path = BUF_INIT, record = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct stat st;
	size_t n = 0;

	buf_addf(&path, "records/%s/%s", kind, link);
	buf_addf(&record, "links/%s", link);
	if (!is_old(kind_fd, link, &n, &ignored))
		return;
	if (in->f.fix) {
		enum mr_rc rc =
		    lock_take(in->md->root_fd, "links/.lock", in->md->file_mode, LOCK_WAIT_MS, &lock, &ignored);

		if (rc != MR_OK && rc != MR_NOTFOUND) /* without that folder there was never a link */
			return;
	}
	if (sys_stat(in->md->root_fd, buf_z(&record), &st) == 0 || errno != ENOENT)
		return;
	findings_take(&in->f, kind_fd, link,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "links",
		.path = buf_z(&path),
		.why = "an unlink that was killed leaves them; a new link of that name would believe them",
		.fix = "mailroom doctor --fix moves them to the attic" },
	    "'%s' has %zu records of a link that is gone", buf_z(&path), n);
}

enum mr_rc
inspect_orphans(struct inspection *in, struct mr_error *err)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		mr_auto(mr_names_done) struct mr_names links = { 0 };
		mr_auto(sys_close_fd) int fd = -1;
		char folder[32];

		(void)snprintf(folder, sizeof folder, "records/%s", kinds[i]);
		enum mr_rc rc = dir_open(in->md->root_fd, folder, &fd, err);

		if (rc == MR_OK)
			rc = dir_each(fd, note_owner, &links, err);
		if (rc != MR_OK && rc != MR_NOTFOUND && !shared_skip(in->md, err, "%s", folder))
			return rc;
		*err = (struct mr_error){ 0 };
		for (size_t l = 0; l < links.n; l++)
			check_link(in, fd, kinds[i], links.v[l]);
	}
	return MR_OK;
}

/* ---- The attic ---- */

void
inspect_attic(struct inspection *in)
{
	mr_auto(mr_names_done) struct mr_names days = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	size_t n = 0;

	if (dir_open(in->md->root_fd, ATTIC, &fd, &ignored) != MR_OK ||
	    dir_each(fd, note_owner, &days, &ignored) != MR_OK)
		return;
	for (size_t i = 0; i < days.n; i++) {
		mr_auto(mr_names_done) struct mr_names things = { 0 };
		mr_auto(sys_close_fd) int day = -1;

		if (dir_open(fd, days.v[i], &day, &ignored) == MR_OK &&
		    dir_each(day, note_owner, &things, &ignored) == MR_OK)
			n += things.n;
	}
	if (n > 0)
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = ATTIC, .path = ATTIC },
		    "'" ATTIC "' keeps what repairs took away, %zu so far ('" ATTIC
		    "/log' says why): look, then empty it",
		    n);
}
