/* SPDX-License-Identifier: MIT */
/*
 * gitfile.h - two files of a git repository as bytes: the index (which files are tracked, and what they looked like)
 * and a reflog (where HEAD was). Commands use these instead of git, which would run programs that the configuration of
 * the repository names. Pure; the bytes are not trusted.
 *
 *	index, versions 2, 3 and 4: "DIRC" version count, entries, extensions, hash
 *	entry: ctime mtime dev ino mode uid gid size (40 bytes), hash, flags (2), more flags (2, version 3 up), path
 *	reflog: <old> <new> <name> <<mail>> <seconds> <zone>TAB<message>LF
 */
#ifndef MESSAGE_GITFILE_H
#define MESSAGE_GITFILE_H

#include "base/buf.h"

#define GIT_SHA1 20
#define GIT_SHA256 32
#define GIT_PATH_LONGEST 4095

struct git_entry {
	const char *path; /* as stored, see git_path_is_plain; valid during the call */
	uint32_t mode; /* 0100644, 0120000: a link, 0160000: a submodule, 040000: a folder that was not checked out */
	uint32_t mtime_s, mtime_ns;
	uint32_t size;  /* its lowest 32 bits */
	unsigned stage; /* not 0: one side of a conflict */
	bool unwatched; /* its user told git not to check it, or it is not checked out */
	bool intended;  /* git add -N: none of its content is in the index yet */
};
typedef bool git_entry_fn(void *ctx, const struct git_entry *entry); /* false stops */
/* hash_len: GIT_SHA1 or GIT_SHA256. *ret_split: a part of the index is in another file. MR_CORRUPT; MR_UNSUPPORTED:
 * unknown version. */
enum mr_rc git_index_each(
    struct mr_str index, size_t hash_len, git_entry_fn *fn, void *ctx, bool *ret_split, struct mr_error *err);
/* Is it below the worktree, as git allows it: relative, without "..", ".git" and empty parts? */
bool git_path_is_plain(const char *path);

struct git_move {
	struct mr_str commit; /* the new commit of HEAD, in hexadecimal digits */
	struct mr_str message;
	int64_t seconds;
};
typedef bool git_move_fn(void *ctx, const struct git_move *move); /* false stops */
/* Calls fn for the lines from the last to the first; skips lines of another form. */
void git_log_each_back(struct mr_str log, git_move_fn *fn, void *ctx);

#endif
