/* SPDX-License-Identifier: MIT */
/* findings.c - reporting what an inspection finds, and keeping the files that its repair takes away. */
#include "base/findings.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define SPACE_MIN ((uint64_t)64 << 20)
#define SPACE_PERCENT 1
#define WHAT_MAX 1024

struct findings
findings_begin(bool fix, mr_finding_fn *fn, void *ctx)
{
	return (struct findings){ .fix = fix, .fn = fn, .ctx = ctx, .attic = ATTIC_NONE };
}

void
findings_keep_in_state(struct findings *f, const char *state_dir)
{
	f->attic =
	    (struct attic){ .home_fd = AT_FDCWD, .home = state_dir, .dir_mode = 0700, .file_mode = 0600, .fd = -1 };
}

/* ---- The attic: keeps files that a repair takes away ---- */

#define NAME_BYTES 200 /* of the name in the attic, without a number */
#define NUMBERS 1000

/* For another file system: first a durable copy. Folders stay where they are. */
static int
copy_over(int dir_fd, const char *name, int to_fd, const char *to, mode_t mode)
{
	struct mr_error err = { .sys_errno = EXDEV };
	struct stat st;

	if (sys_stat(dir_fd, name, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) ||
	    file_publish_copy(dir_fd, name, to_fd, to_fd, to, mode, PUBLISH_FULL, &err) != MR_OK) {
		errno = err.sys_errno;
		return -1;
	}
	if (sys_unlink(dir_fd, name) == 0)
		return 0;
	int failed = errno;

	(void)sys_unlink(to_fd, to);
	errno = failed;
	return -1;
}

/* Best effort: the name of the file in the attic has its old path. */
static void
note(struct attic *a, const char *path, const char *code, const char *why, const char *place)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, file = BUF_INIT;
	char now[RFC3339_LEN + 1];

	time_rfc3339(clock_now_ms(), now);
	buf_addf(&line, "%s %s ", now, code);
	text_clean_line(&line, str_of(path));
	buf_adds(&line, " -> ");
	text_clean_line(&line, str_of(place));
	buf_adds(&line, ": ");
	text_clean_line(&line, str_of(why));
	buf_addc(&line, '\n');
	buf_addf(&file, "%s%s" ATTIC "/log", a->home, a->home[0] ? "/" : "");
	mr_auto(sys_close_fd) int fd =
	    buf_ok(&line) && buf_ok(&file)
		? sys_open(a->home_fd, buf_z(&file), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, a->file_mode)
		: -1;

	if (fd >= 0)
		(void)sys_write_all(fd, line.ptr, line.len);
}

/* Moves dir_fd/name, a file or a folder, into the attic; on an error it stays where it is. `path` is its name for
 * people, `code` and `why` are for the log. ret_place: "attic/2026-03-05/...". */
static enum mr_rc
attic_take(struct attic *a, int dir_fd, const char *name, const char *path, const char *code, const char *why,
    struct buf *ret_place, struct mr_error *err)
{
	mr_auto(buf_done) struct buf folder = BUF_INIT, flat = BUF_INIT;
	char now[RFC3339_LEN + 1];
	size_t len = strlen(path);
	int moved = -1;

	if (!a->home)
		return mr_fail(err, MR_UNSUPPORTED, "there is no folder to keep it in");
	if (a->fd < 0) {
		time_rfc3339(clock_now_ms(), now);
		(void)snprintf(a->day, sizeof a->day, "%.10s", now);
	}
	buf_addf(&folder, "%s%s" ATTIC "/%s", a->home, a->home[0] ? "/" : "", a->day);
	TRY(mr_got(buf_ok(&folder), err));
	if (a->fd < 0)
		TRY(dir_make(a->home_fd, buf_z(&folder), a->dir_mode, true, &a->fd, err));
	for (int i = 1; moved < 0; i++) {
		if (i > NUMBERS)
			return mr_fail(err, MR_EXISTS, "the attic already has %d entries named '%s'", NUMBERS, path);
		buf_clear(&flat);
		/* A file name made of a path; of a long one the end is more useful. */
		for (const char *c = len > NAME_BYTES / 3 ? path + len - NAME_BYTES / 3 : path; *c; c++)
			buf_add(&flat, *c == '/' ? STR("%2F") : (struct mr_str){ c, 1 });
		if (i > 1)
			buf_addf(&flat, ".%d", i);
		TRY(mr_got(buf_ok(&flat), err));
		moved = sys_rename_new(dir_fd, name, a->fd, buf_z(&flat));
		if (moved < 0 && errno == EXDEV)
			moved = copy_over(dir_fd, name, a->fd, buf_z(&flat), a->file_mode);
		if (moved < 0 && errno != EEXIST)
			return mr_fail_errno(err, "cannot move '%s' to the attic", path);
	}
	/* First the folder that gained it: a power cut in between leaves it in both places or in the old one. */
	(void)sys_fsync(a->fd);
	(void)sys_fsync(dir_fd);
	buf_clear(ret_place);
	buf_addf(ret_place, "%s/%s", buf_z(&folder), buf_z(&flat));
	note(a, path, code, why, buf_z(ret_place));
	return MR_OK;
}

/* ---- Reporting ---- */

static void
tell(struct findings *f, struct mr_finding finding)
{
	struct findings_code *c = f->codes, *end = f->codes + f->codes_n;

	while (c < end && strcmp(c->code, finding.code) != 0)
		c++;
	if (finding.severity == MR_FINE || (c == end && f->codes_n == FINDINGS_CODES)) {
		c = NULL;
	} else if (c == end) {
		c->code = finding.code;
		f->codes_n++;
	}
	f->told += finding.severity != MR_FINE;
	if (c && c->n++ >= FINDINGS_EACH) {
		c->more++;
		c->more_fixed += finding.fixed;
		if (!finding.fixed && finding.severity > c->worst)
			c->worst = finding.severity;
		return;
	}
	finding.path = finding.path ? finding.path : "";
	finding.why = finding.why ? finding.why : "";
	finding.fix = finding.fix ? finding.fix : "";
	f->fn(f->ctx, &finding);
}

void
findings_say(struct findings *f, const struct mr_finding *like, const char *fmt, ...)
{
	struct mr_finding finding = *like;
	char what[WHAT_MAX];
	va_list args;

	va_start(args, fmt);
	format_print(what, sizeof what, fmt, args);
	va_end(args);
	finding.what = what;
	tell(f, finding);
}

void
findings_take(struct findings *f, int dir_fd, const char *name, const struct mr_finding *like, const char *fmt, ...)
{
	mr_auto(buf_done) struct buf place = BUF_INIT, done = BUF_INIT, log = BUF_INIT;
	struct mr_finding finding = *like;
	struct mr_error err = { 0 };
	char what[WHAT_MAX];
	va_list args;

	va_start(args, fmt);
	format_print(what, sizeof what, fmt, args);
	va_end(args);
	finding.what = what;
	if (f->fix) {
		buf_addf(&log, "%s (%s)", what, finding.why ? finding.why : "");
		finding.fixed =
		    attic_take(&f->attic, dir_fd, name, finding.path, finding.code, buf_z(&log), &place, &err) == MR_OK;
		buf_addf(&done, finding.fixed ? "it is in '%s' now" : "move it away by hand: %s",
		    finding.fixed ? buf_z(&place) : err.message);
		finding.fix = buf_z(&done);
	}
	tell(f, finding);
}

void
findings_end(struct findings *f)
{
	for (size_t i = 0; i < f->codes_n; i++) {
		const struct findings_code *c = &f->codes[i];
		bool fixed = c->more == c->more_fixed;
		char what[80];

		if (c->more == 0)
			continue;
		(void)snprintf(what, sizeof what, "and %zu more of this kind", c->more);
		struct mr_finding more = { .severity = fixed ? MR_NOTE : c->worst,
			.code = c->code,
			.path = "",
			.what = what,
			.why = "",
			.fix =
			    fixed ? "each is logged in the attic, or was repaired in place" : "see the first of them",
			.fixed = fixed };

		f->fn(f->ctx, &more);
	}
	sys_close_fd(&f->attic.fd);
}

/* ---- Leftovers ---- */

int64_t
findings_age_ms(const struct stat *st)
{
	int64_t modified = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
	int64_t changed = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;

	return clock_now_ms() - (modified > changed ? modified : changed);
}

/* The kernel gives a lease only to a process that alone has the file open. If another opens it at this moment, the
 * kernel sends a signal: an ignored one, because any other would end this process. */
bool
findings_in_use(int dir_fd, const char *name)
{
#ifdef F_SETLEASE
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0 || fcntl(fd, F_SETSIG, SIGURG) < 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return errno == EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
#else
	(void)dir_fd;
	(void)name;
#endif
	return false;
}

#define TICKET_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

/* A carrier that still asks finds the name of the file that was put aside: "not published", and delivers again. If the
 * file were removed, the answer would be the opposite. So it is never taken, and put aside only after its sender had a
 * month to ask. */
static void
put_ticket_aside(struct findings *f, int dir_fd, const char *name, const char *path, const struct stat *st)
{
	struct mr_finding finding = { .severity = MR_NOTE,
		.code = "leftovers",
		.path = path,
		.why = "a `mailroom carry` that was killed leaves it and may still ask for it; without it the message "
		       "would count as delivered",
		.fix = "run `mailroom carry` in every room that is linked with this one; `mailroom doctor --fix` "
		       "moves aside what is older than a month" };
	struct mr_error err = { 0 };
	bool published = false;
	char since[24];

	duration_text(findings_age_ms(st), since);
	if (f->fix && findings_age_ms(st) >= TICKET_KEPT_MS) {
		finding.fixed = file_prepared_void(dir_fd, name, &published, &err) == MR_OK;
		finding.fix = !finding.fixed ? err.message
			      : published    ? "it had been delivered: only its second name is gone"
					     : "it is kept as '" FILE_VOID "...' for a week; a carrier that still asks "
					       "is told that it was not delivered, and sends it again";
	}
	findings_say(f, &finding, "'%s' is a message on its way from another room, %s old", path, since);
}

void
findings_leftover(struct findings *f, int dir_fd, const char *name, const char *path)
{
	bool ticket = str_starts(str_of(name), FILE_CARRY);
	char since[24];
	struct stat st;

	if (sys_stat(dir_fd, name, &st) < 0 || findings_age_ms(&st) < FINDINGS_STRAY_MS ||
	    findings_in_use(dir_fd, name) || (str_starts(str_of(name), FILE_VOID) && !file_void_is_old(dir_fd, name)))
		return;
	duration_text(findings_age_ms(&st), since);
	/* Nobody asks for an empty one: a ticket is recorded only after its file is completely written. */
	if (ticket && st.st_size > 0)
		put_ticket_aside(f, dir_fd, name, path, &st);
	else
		findings_take(f, dir_fd, name,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "leftovers",
			.path = path,
			.why = "its writer was killed before the file got its name: nothing reads it",
			.fix = "`mailroom doctor --fix` moves it to the attic" },
		    "'%s' is a temporary file, %s old", path, since);
}

/* ---- The disk ---- */

void
findings_space(struct findings *f, int fd)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return;
	uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize, all = (uint64_t)fs.f_blocks * fs.f_frsize;

	if (all > 0 && (bytes < SPACE_MIN || bytes < all / 100 * SPACE_PERCENT))
		findings_say(f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "space",
			.why =
			    "below 64 MiB or 1 % of the disk a single large message fills it, and then every send is "
			    "refused",
			.fix = "free some space: remove what is not needed, or move old archives elsewhere" },
		    "only %llu MiB of %llu are free", (unsigned long long)(bytes >> 20),
		    (unsigned long long)(all >> 20));
	else if (fs.f_files > 0 && fs.f_favail < fs.f_files / 100 * SPACE_PERCENT)
		findings_say(f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "space",
			.why = "every message is a file; below 1 % of the inodes sends are soon refused, however many "
			       "bytes are free",
			.fix = "remove small files, or move the room to a file system with more inodes" },
		    "only %llu of %llu inodes are free", (unsigned long long)fs.f_favail,
		    (unsigned long long)fs.f_files);
	else
		findings_say(f, &(struct mr_finding){ .severity = MR_FINE, .code = "space" }, "%llu MiB are free",
		    (unsigned long long)(bytes >> 20));
}
