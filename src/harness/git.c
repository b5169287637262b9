/* SPDX-License-Identifier: MIT */
/*
 * git.c - what a git repository looks like on disk, as far as rooms care.
 *
 * A worktree has `.git`: the repository itself, or a file "gitdir: X". X is a linked worktree's own
 * folder when it has a file `commondir`, which leads to the shared repository; without one it is a
 * submodule or a repository kept elsewhere, and this worktree is the main one.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "mailroom-town.h"
#include "harness/harness.h"
#include <errno.h>
#include <fcntl.h>

#define POINTER_MAX ((size_t)16 << 10) /* of "gitdir: PATH" */
#define INDEX_MAX ((size_t)64 << 20)
#define REF_MAX ((size_t)4 << 20)

/* S_IFREG, S_IFDIR, ...; 0 when it is not there, and errno says why. */
static mode_t
type_of(const char *folder, const char *name)
{
	char *path = path_join(folder, name);
	struct stat st;
	mode_t type = path && sys_stat(AT_FDCWD, path, &st) == 0 ? st.st_mode & S_IFMT : 0;
	int why = path ? errno : ENOMEM;

	free(path);
	errno = why;
	return type;
}

static bool
read_in(const char *folder, const char *name, size_t limit, struct buf *ret)
{
	mr_auto(sys_close_fd) int fd = -1;

	return folder && dir_open(AT_FDCWD, folder, &fd, IGNORED) == MR_OK &&
	       file_read(fd, name, limit, ret, IGNORED) == MR_OK;
}

/* The path in a one-line file such as .git or commondir, absolute; NULL if there is none. */
static char *
read_pointer(const char *folder, const char *name, const char *prefix)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT;

	if (!read_in(folder, name, POINTER_MAX, &text))
		return NULL;
	struct mr_str line = str_trim_end(buf_str(&text));

	if (!str_starts(line, prefix))
		return NULL;
	line = str_trim(str_from(line, strlen(prefix)));
	if (line.len == 0 || memchr(line.ptr, '\0', line.len))
		return NULL;
	buf_add(&path, line);
	return buf_ok(&path) ? path_full(folder, buf_z(&path)) : NULL;
}

/* A linked worktree is one that its repository knows: <common>/worktrees/X/gitdir points back. A folder that only says
 * that it belongs to a repository must not bring its agents into that repository's room. */
static bool
is_linked_back(const char *top, const char *git_dir, const char *common)
{
	mr_auto(free_ptr) char *back = read_pointer(git_dir, "gitdir", "");
	mr_auto(free_ptr) char *own = path_join(top, ".git");
	mr_auto(free_ptr) char *worktrees = path_join(common, "worktrees");
	mr_auto(free_ptr) char *above = path_parent(git_dir);

	return back && own && worktrees && above && strcmp(back, own) == 0 && strcmp(worktrees, above) == 0;
}

/* What the `.git` in that folder says; *ret stays as it is where there is no repository. */
static void
describe(const char *top, struct git_place *ret)
{
	mode_t head =
	    type_of(top, ".git/HEAD"); /* one look for most folders: this one is a repository, or has no .git */
	char *git_dir = NULL, *common = NULL;

	if (head == S_IFREG || head == S_IFLNK) {
		*ret = (struct git_place){ strdup(top), path_join(top, ".git"), path_join(top, ".git"), strdup(top) };
		return;
	}
	if (head == 0 && errno == ENOTDIR && type_of(top, ".git") == S_IFREG)
		git_dir = read_pointer(top, ".git", "gitdir:");
	if (!git_dir || type_of(git_dir, "HEAD") != S_IFREG) {
		free(git_dir); /* points nowhere: git does not take it for a repository either */
		return;
	}
	common = read_pointer(git_dir, "commondir", "");
	if (common && is_linked_back(top, git_dir, common)) {
		/* A hidden repository (.git, .bare) lies in the project's folder; any other bare one is by itself, and
		 * then the worktrees can only meet inside it. */
		*ret = (struct git_place){ strdup(top), git_dir, common,
			path_name(common)[0] == '.' ? path_parent(common) : path_full("/", common) };
		return;
	}
	free(common);
	*ret = (struct git_place){ strdup(top), git_dir, path_full("/", git_dir), strdup(top) };
}

enum mr_rc
git_find(const char *folder, struct git_place *ret, struct mr_error *err)
{
	mr_auto(free_ptr) char *at = strdup(folder);

	*ret = (struct git_place){ 0 };
	while (at) {
		/* A room has a stub .git of its own, which is no repository to anyone. */
		if (!str_ends(str_of(at), "/" ROOM_FOLDER))
			describe(at, ret);
		if (ret->git_dir || ret->worktree) {
			if (ret->worktree && ret->git_dir && ret->common && ret->main)
				return MR_OK;
			git_place_done(ret);
			break;
		}
		if (strcmp(at, "/") == 0)
			return MR_OK;
		char *up = path_parent(at);

		free(at);
		at = up;
	}
	return mr_nomem(err);
}

bool
git_tracks(const struct git_place *place, const char *path)
{
	mr_auto(buf_done) struct buf index = BUF_INIT;

	/* Paths stand in the index as they are, ended by a NUL; the NUL keeps 'room' from matching 'roomy'. */
	return read_in(place->git_dir, "index", INDEX_MAX, &index) &&
	       memmem(index.ptr, index.len, path, strlen(path) + 1) != NULL;
}

void
git_place_done(struct git_place *place)
{
	free(place->worktree);
	free(place->git_dir);
	free(place->common);
	free(place->main);
	*place = (struct git_place){ 0 };
}

/* ---- What is checked out ---- */

static struct mr_str
first_line(const struct buf *text)
{
	return str_trim((struct mr_str){ text->ptr, strcspn(buf_z(text), "\n") });
}

bool
git_head(const char *folder, struct buf *branch, struct buf *commit)
{
	mr_auto(git_place_done) struct git_place git = { 0 };
	mr_auto(buf_done) struct buf head = BUF_INIT, text = BUF_INIT, ref = BUF_INIT, packed = BUF_INIT;

	if (git_find(folder, &git, IGNORED) != MR_OK || !read_in(git.git_dir, "HEAD", POINTER_MAX, &head))
		return false;
	struct mr_str line = first_line(&head);

	if (!str_starts(line, "ref: ")) { /* detached */
		buf_add(commit, line);
		return true;
	}
	buf_add(&ref, str_from(line, 5));
	buf_adds(branch, str_starts(buf_str(&ref), "refs/heads/") ? buf_z(&ref) + strlen("refs/heads/") : buf_z(&ref));
	if (read_in(git.common, buf_z(&ref), POINTER_MAX, &text)) {
		buf_add(commit, first_line(&text));
		return true;
	}
	/* "<commit> refs/heads/x" in the file of packed references. */
	buf_clear(&text);
	buf_addf(&packed, " %s\n", buf_z(&ref));
	if (!read_in(git.common, "packed-refs", REF_MAX, &text))
		return true;
	const char *at = memmem(text.ptr, text.len, packed.ptr, packed.len), *from = at;

	while (from && from > text.ptr && from[-1] != '\n')
		from--;
	if (at)
		buf_add(commit, (struct mr_str){ from, (size_t)(at - from) });
	return true;
}

char *
mr_git_branch(const char *folder)
{
	mr_auto(free_ptr) char *full = path_full("/", folder);
	mr_auto(buf_done) struct buf branch = BUF_INIT, commit = BUF_INIT;

	return full && git_head(full, &branch, &commit) && branch.len > 0 ? buf_take(&branch) : NULL;
}
