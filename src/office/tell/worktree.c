/* SPDX-License-Identifier: MIT */
/*
 * worktree.c - the state of a git worktree, read from git's files. Running git would run commands of the folder's own
 * configuration (filters, a monitor), and a note to the next life may be written without a request.
 *
 * Tracked files are compared with the index by type, size and time; their contents are not read. The text says what
 * this cannot tell (staged changes, untracked files). The work is limited, and the text says so if it was cut.
 */
#include "base/clock.h"
#include "base/fence.h"
#include "base/file.h"
#include "base/sys.h"
#include "message/gitfile.h"
#include "office/tell/tell.h"
#include "office/mail/mail.h"
#include "office/who/who.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define INDEX_MAX ((size_t)64 << 20)
#define LOG_TAIL ((off_t)64 << 10)
#define MOVES_SHOWN 5
#define FILES_SHOWN 20
#define LOOKS_MAX 50000 /* one look costs about 2 us */

/* ---- Commits ---- */

struct moves {
	struct buf *out;
	size_t n;
};

static bool
add_move(void *ctx, const struct git_move *move)
{
	struct moves *m = ctx;

	if (m->n++ == 0)
		buf_adds(m->out, "- last moves of HEAD:\n");
	buf_addf(m->out, "  - %.10s %.16sZ ", move->commit.ptr, time_text(move->seconds * 1000).z);
	(void)fence_add(m->out, move->message, FENCE_LINE, 100);
	buf_addc(m->out, '\n');
	return m->n < MOVES_SHOWN;
}

static void
add_moves(struct buf *out, int git_fd)
{
	mr_auto(sys_close_fd) int fd = sys_open(git_fd, "logs/HEAD", O_RDONLY | O_NONBLOCK, 0);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct moves m = { .out = out };
	struct stat st;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	off_t from = st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0;
	ssize_t n = buf_reserve(&text, (size_t)LOG_TAIL) ? sys_pread(fd, text.ptr, (size_t)LOG_TAIL, from) : -1;

	if (n < 0)
		return;
	text.len = (size_t)n;
	git_log_each_back(buf_str(&text), add_move, &m);
}

/* ---- Files ---- */

struct looking {
	struct buf *out;
	int top_fd;
	size_t looks, found, odd, submodules;
	bool cut;
	char last[GIT_PATH_LONGEST + 1]; /* both sides of a conflict are one file */
};

/* NULL: no sign of a change. */
static const char *
judge(const struct looking *l, const struct git_entry *e)
{
	struct stat st;

	if (e->stage > 0)
		return "conflict";
	if (e->intended)
		return "new";
	if (sys_stat(l->top_fd, e->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? "missing" : "cannot be looked at";
	if ((e->mode & S_IFMT) != (st.st_mode & S_IFMT))
		return "changed";
	bool same_time = e->mtime_s == (uint32_t)st.st_mtim.tv_sec &&
			 (e->mtime_ns == (uint32_t)st.st_mtim.tv_nsec || e->mtime_ns == 0 || st.st_mtim.tv_nsec == 0);

	/* git writes size 0 for a file that changed at the time of the index itself: then only its contents tell. */
	if (e->size != (uint32_t)st.st_size)
		return e->size == 0 && same_time ? "perhaps changed" : "changed";
	return same_time ? NULL : "perhaps changed";
}

static bool
look_at(void *ctx, const struct git_entry *e)
{
	struct looking *l = ctx;

	if ((e->mode & S_IFMT) == S_IFDIR || e->unwatched)
		return true;
	if ((e->mode & S_IFMT) == 0160000) {
		l->submodules++;
		return true;
	}
	if (!git_path_is_plain(e->path)) {
		l->odd++;
		return true;
	}
	if (l->looks++ == LOOKS_MAX) {
		l->cut = true;
		return false;
	}
	if (e->stage > 0 && strcmp(e->path, l->last) == 0)
		return true;
	const char *word = judge(l, e);

	(void)snprintf(l->last, sizeof l->last, "%s", e->path);
	if (!word)
		return true;
	if (l->found++ == 0)
		buf_adds(l->out, "- tracked files that differ from the index, by size and time:\n");
	if (l->found <= FILES_SHOWN)
		fence_addf(l->out, "  - %s: %.300s\n", word, e->path);
	return true;
}

static void
add_files(struct buf *out, const char *worktree, int git_fd, size_t hash_len)
{
	mr_auto(buf_done) struct buf index = BUF_INIT;
	mr_auto(sys_close_fd) int top_fd = -1;
	struct looking l = { .out = out };
	struct mr_error err = { 0 };
	bool split = false;
	enum mr_rc rc = file_read(git_fd, "index", INDEX_MAX, &index, &err);

	if (rc == MR_NOTFOUND) {
		buf_adds(out, "- nothing is tracked yet\n");
		return;
	}
	if (rc == MR_OK)
		rc = dir_open(AT_FDCWD, worktree, &top_fd, &err);
	l.top_fd = top_fd;
	if (rc == MR_OK)
		rc = git_index_each(buf_str(&index), hash_len, look_at, &l, &split, &err);
	if (l.found > FILES_SHOWN)
		buf_addf(out, "  - and %zu more\n", l.found - FILES_SHOWN);
	if (rc != MR_OK)
		fence_addf(
		    out, "- which other files changed is not known: the index cannot be read: %s\n", err.message);
	else if (split)
		buf_adds(out, "- the index is split: files in its other part were not compared\n");
	else if (l.cut)
		buf_addf(out, "- the index is long: only its first %d files were compared\n", LOOKS_MAX);
	else if (l.found == 0)
		buf_adds(out, "- no tracked file differs from the index\n");
	if (l.odd > 0)
		buf_addf(out, "- %zu paths in the index lead out of the worktree; they were not looked at\n", l.odd);
	if (l.submodules > 0)
		buf_addf(out, "- submodules, not looked into: %zu\n", l.submodules);
}

/* ---- All of it ---- */

void
worktree_describe(struct buf *out, const char *dir)
{
	static const struct {
		const char *name, *what;
	} signs[] = { { "MERGE_HEAD", "merge" }, { "rebase-merge", "rebase" }, { "rebase-apply", "rebase" },
		{ "CHERRY_PICK_HEAD", "cherry-pick" }, { "REVERT_HEAD", "revert" }, { "BISECT_LOG", "bisection" } };
	mr_auto(buf_done) struct buf branch = BUF_INIT, commit = BUF_INIT;
	mr_auto(free_ptr) char *here = dir ? NULL : getcwd(NULL, 0);
	mr_auto(git_place_done) struct git_place git = { 0 };
	mr_auto(sys_close_fd) int git_fd = -1;
	struct stat st;

	dir = dir ? dir : here;
	if (!dir || !git_head(dir, &branch, &commit) || git_find(dir, &git, IGNORED) != MR_OK || !git.git_dir ||
	    dir_open(AT_FDCWD, git.git_dir, &git_fd, IGNORED) != MR_OK)
		return;
	fence_addf(out, "\n## Git\n\n- worktree: %.300s\n", git.worktree);
	fence_addf(out, "- branch: %s\n- commit: %s\n", branch.len > 0 ? buf_z(&branch) : "(detached)",
	    commit.len > 0 ? buf_z(&commit) : "(none yet)");
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		if (sys_stat(git_fd, signs[i].name, &st) == 0)
			buf_addf(out, "- a %s is in progress\n", signs[i].what);
	add_moves(out, git_fd);
	add_files(out, git.worktree, git_fd, commit.len == (size_t)2 * GIT_SHA256 ? GIT_SHA256 : GIT_SHA1);
	buf_adds(out, "- not known without running git: what is staged, and untracked files; `git status` tells\n");
}
