/* SPDX-License-Identifier: MIT */
/*
 * save.c - a planned file is written: whole and durable beside the old one, with its mode and owner, then renamed over
 * it. Right before that the old one is read again: a harness writes its settings whenever it likes, and a change of its
 * own must not be lost. Between that look and the rename there is no lock that all of them know.
 */
#include "base/file.h"
#include "base/findings.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define RANDOM_LEN 12

static mode_t
new_mode(const struct setup *s, mode_t full)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return s->project ? full & ~mask : full & 0700;
}

static enum mr_rc
changed_meanwhile(const struct setup_file *f, struct mr_error *err)
{
	return mr_fail(err, MR_BUSY, "'%s' was changed by another program at the same time\nrun this again", f->path);
}

static enum mr_rc
is_still_the_same(int dir_fd, const struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf now = BUF_INIT;
	enum mr_rc rc = file_read(dir_fd, f->name, f->before.len + 1, &now, err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED || (rc == MR_OK && !str_eq(buf_str(&now), buf_str(&f->before))))
		return changed_meanwhile(f, err);
	return rc;
}

/* Root sets up somebody's files: they stay his. */
static enum mr_rc
keep_owner(int dir_fd, const char *temporary, const struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, temporary, O_RDONLY, 0);
	struct stat st;

	if (fd < 0 && errno == ENOENT) /* another one has swept it away */
		return changed_meanwhile(f, err);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", temporary);
	if (st.st_uid == f->st.st_uid && st.st_gid == f->st.st_gid)
		return MR_OK;
	if (sys_chown_fd(fd, f->st.st_uid, f->st.st_gid) < 0 || sys_chmod_fd(fd, f->st.st_mode & 07777) < 0 ||
	    sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot keep the owner of '%s'", f->path);
	return MR_OK;
}

/* ---- The file beside it ---- */

static void
add_prefix(const struct setup_file *f, struct buf *out)
{
	buf_addf(out, ".%s.mailroom-", f->name);
}

struct sweep {
	int dir_fd;
	struct buf prefix;
};

static bool
sweep_one(void *ctx, const struct dir_entry *entry)
{
	const struct sweep *s = ctx;
	struct mr_str name = str_of(entry->name);

	if (name.len == s->prefix.len + RANDOM_LEN && str_starts(name, s->prefix.ptr) &&
	    !findings_in_use(s->dir_fd, entry->name))
		(void)sys_unlink(s->dir_fd, entry->name);
	return true;
}

/* What a setup that was killed has left. One that is alive, just before its rename, notices that its file is gone and
 * begins again. */
void
save_sweep(const struct setup_file *f)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	struct sweep s = { .prefix = BUF_INIT };
	struct mr_error ignored = { 0 };

	add_prefix(f, &s.prefix);
	if (buf_ok(&s.prefix) && dir_open(AT_FDCWD, f->folder, &dir_fd, &ignored) == MR_OK) {
		s.dir_fd = dir_fd;
		(void)dir_each(dir_fd, sweep_one, &s, &ignored);
	}
	buf_done(&s.prefix);
}

/* ---- Writing and removing ---- */

static enum mr_rc
put_in_place(int dir_fd, const char *temporary, const struct setup_file *f, struct mr_error *err)
{
	enum mr_rc rc;

	if (!f->there) {
		rc = file_prepared_publish(dir_fd, temporary, dir_fd, f->name, err);
		return rc == MR_EXISTS || rc == MR_NOTFOUND ? changed_meanwhile(f, err) : rc;
	}
	rc = keep_owner(dir_fd, temporary, f, err);
	if (rc == MR_OK)
		rc = is_still_the_same(dir_fd, f, err);
	if (rc != MR_OK)
		return rc;
	if (sys_rename(dir_fd, temporary, dir_fd, f->name) < 0)
		return errno == ENOENT ? changed_meanwhile(f, err) : mr_fail_errno(err, "cannot replace '%s'", f->path);
	if (sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", f->path);
	return MR_OK;
}

static enum mr_rc
write_file(int dir_fd, const struct setup *s, const struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf temporary = BUF_INIT;
	char random[RANDOM_LEN + 1];
	enum mr_rc rc;

	random_hex(random, RANDOM_LEN);
	add_prefix(f, &temporary);
	buf_adds(&temporary, random);
	if (!buf_ok(&temporary))
		return mr_nomem(err);
	rc = file_prepare(dir_fd, buf_z(&temporary), buf_str(&f->after),
	    f->there ? f->st.st_mode & 07777 : new_mode(s, 0666), 0, err);
	if (rc == MR_OK)
		rc = put_in_place(dir_fd, buf_z(&temporary), f, err);
	if (rc != MR_OK)
		(void)sys_unlink(dir_fd, buf_z(&temporary));
	return rc;
}

/* The folders that we made go with the file, if nothing else is in them. */
static enum mr_rc
remove_file(int dir_fd, const struct setup_file *f, struct mr_error *err)
{
	TRY(is_still_the_same(dir_fd, f, err));
	if ((sys_unlink(dir_fd, f->name) < 0 && errno != ENOENT) || sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot remove '%s'", f->path);
	for (size_t i = f->memory.folders.n; i > 0; i--)
		if (sys_rmdir(AT_FDCWD, f->memory.folders.v[i - 1]) < 0)
			break;
	return MR_OK;
}

static enum mr_rc
may_write(const struct setup_file *f, struct mr_error *err)
{
	if (!f->there || access(f->path, W_OK) == 0)
		return MR_OK;
	if (errno == ENOENT)
		return changed_meanwhile(f, err);
	(void)mr_fail_errno(err, "cannot write '%s'", f->path);
	return mr_hint(err, "it is write-protected; if something else makes this file, change it there");
}

enum mr_rc
save_file(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	struct mr_error forgotten = { 0 };
	enum mr_rc rc = may_write(f, err);

	if (rc == MR_OK && f->learnt && setup_memory_save(s, f, &forgotten) != MR_OK)
		cli_warn(s->cli, "what was there before is not remembered: %s", forgotten.message);
	if (rc == MR_OK)
		rc = dir_make(AT_FDCWD, f->folder, new_mode(s, 0777), true, &dir_fd, err);
	if (rc != MR_OK)
		return rc;
	return f->gone ? remove_file(dir_fd, f, err) : write_file(dir_fd, s, f, err);
}
