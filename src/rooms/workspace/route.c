/* SPDX-License-Identifier: MIT */
/*
 * route.c - where an answer may go. REPLY_INBOX_PATH is what the sender says, and would let any message make a file
 * wherever we can write. So: absolute, no "..", the file's name is not hidden (or the path is a folder, as with cp:
 * then the name is the REQUEST_ID), and the folder is somebody's .mailbox/inbox or stands in our own
 * .mailbox/reply-paths. Nothing that is there is written over.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/front.h"
#include "rooms/workspace/workspace.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define NAME_BYTES_MAX 200

void
route_done(struct route *route)
{
	sys_close_fd(&route->dir_fd);
	free(route->path);
	free(route->name);
	*route = ROUTE_INIT;
}

static bool
goes_up(struct mr_str path)
{
	for (size_t at = 0; at + 1 < path.len; at++)
		if (path.ptr[at] == '.' && path.ptr[at + 1] == '.' && (at == 0 || path.ptr[at - 1] == '/') &&
		    (at + 2 == path.len || path.ptr[at + 2] == '/'))
			return true;
	return false;
}

/* What is wrong with the text of a path, or NULL. */
static const char *
path_problem(struct mr_str path)
{
	if (path.len == 0 || path.ptr[0] != '/')
		return "is no absolute path";
	return goes_up(path) ? "has '..' in it" : memo_value_problem(path);
}

/* The last part is opened by itself, so that it is no link; of an inbox the last two. */
enum mr_rc
route_open_dir(struct mr_str dir, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf above = BUF_INIT, below = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	const char *problem = path_problem(dir);
	size_t at;

	dir = kit_trim_slashes(dir);
	if (problem)
		return mr_fail(err, MR_REFUSED, "'%.*s' %s", (int)(dir.len < 200 ? dir.len : 200), dir.ptr, problem);
	at = dir.len;
	if (str_ends(dir, "/.mailbox/inbox"))
		at -= strlen("/inbox");
	while (at > 0 && dir.ptr[at - 1] != '/')
		at--;
	buf_add(&above, (struct mr_str){ dir.ptr, at });
	buf_add(&below, (struct mr_str){ dir.ptr + at, dir.len - at });
	if (!buf_ok(&above))
		return mr_nomem(err);
	if (below.len == 0)
		return mr_fail(err, MR_REFUSED, "the root folder takes no answers");
	fd = sys_open(AT_FDCWD, buf_z(&above), O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return mr_fail(err, MR_NOTFOUND, "no folder '%.*s'", (int)(dir.len < 200 ? dir.len : 200), dir.ptr);
	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", buf_z(&above));
	return dir_open(fd, buf_z(&below), ret_fd, err);
}

/* Is it a line of <workspace>/.mailbox/reply-paths? */
static bool
is_listed(const struct box *from, struct mr_str dir)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str rest, line;

	if (file_read(from->fd, ".mailbox/reply-paths", MEMO_MAX, &text, IGNORED) != MR_OK)
		return false;
	rest = buf_str(&text);
	while (str_line(&rest, &line)) {
		line = kit_trim_slashes(str_trim(line));
		if (line.len > 0 && line.ptr[0] == '/' && str_eq(line, dir))
			return true;
	}
	return false;
}

/* May it stand in a line for a shell, between quotes? */
static bool
is_plain(struct mr_str path)
{
	for (size_t i = 0; i < path.len; i++)
		if (!memchr("/._-+@, ", path.ptr[i], 8) && !isalnum((unsigned char)path.ptr[i]))
			return false;
	return true;
}

static enum mr_rc
refuse_dir(const struct box *from, const struct memo *memo, struct mr_str dir, struct mr_error *err)
{
	int len = (int)(memo->reply.len < 160 ? memo->reply.len : 160);

	(void)mr_fail(err, MR_REFUSED, "its answer would go to '%.*s', which is not in an inbox", len, memo->reply.ptr);
	if (dir.len > 1 && dir.len + strlen(from->path) <= 150 && is_plain(dir) && is_plain(str_of(from->path)))
		return mr_hint(err, "if that is a mailman's folder, allow it: echo '%.*s' >>'%s/.mailbox/reply-paths'",
		    (int)dir.len, dir.ptr, from->path);
	return mr_hint(err, "to allow that folder, add it as a line to '%s/.mailbox/reply-paths'", from->path);
}

static enum mr_rc
check_text(const struct memo *memo, struct mr_error *err)
{
	int len = (int)(memo->reply.len < 160 ? memo->reply.len : 160);
	const char *problem = path_problem(memo->reply);

	if (memo->reply.len == 0)
		return mr_fail(err, MR_REFUSED,
		    "'%.*s' wants no answer: it has no REPLY_INBOX_PATH\nwrite a new message with 'mailroom send'",
		    (int)memo->request_id.len, memo->request_id.ptr);
	if (!problem)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "its answer would go to '%.*s', which %s\nthe sender has to ask again with another REPLY_INBOX_PATH", len,
	    memo->reply.ptr, problem);
}

/* No loops: an answer to ourselves would come back as the next message. And nothing may stand where the file goes but
 * another message. */
static enum mr_rc
check_place(const struct box *from, int dir_fd, const char *name, struct mr_error *err)
{
	struct stat own, there;

	if (sys_stat_fd(dir_fd, &there) < 0)
		return mr_fail_errno(err, "cannot look at the folder for the answer");
	if (from->inbox_fd >= 0 && sys_stat_fd(from->inbox_fd, &own) == 0 && own.st_dev == there.st_dev &&
	    own.st_ino == there.st_ino)
		return mr_fail(err, MR_REFUSED,
		    "its answer would go to the inbox of '%s' itself\nfinish it with 'mailroom mark read'",
		    from->address);
	if (sys_stat(dir_fd, name, &there) == 0 && !S_ISREG(there.st_mode))
		return mr_fail(err, MR_REFUSED, "where its answer would go stands '%s', which is no message", name);
	return MR_OK;
}

void
route_split(struct mr_str reply, struct mr_str request_id, struct mr_str *ret_dir, struct mr_str *ret_name)
{
	struct mr_str path = kit_trim_slashes(reply);
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	struct stat st;

	*ret_name = kit_last_part(path);
	*ret_dir = kit_trim_slashes((struct mr_str){ path.ptr, path.len - ret_name->len });
	if (str_eq(*ret_name, request_id))
		return;
	buf_add(&whole, path);
	if (str_ends(path, "/.mailbox/inbox") ||
	    (buf_ok(&whole) && sys_stat(AT_FDCWD, buf_z(&whole), &st) == 0 && S_ISDIR(st.st_mode))) {
		*ret_dir = path;
		*ret_name = request_id;
	}
}

enum mr_rc
route_answer(const struct box *from, const struct memo *memo, struct route *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT, name = BUF_INIT;
	struct mr_str dir, file;
	const char *problem = NULL;

	TRY(check_text(memo, err));
	route_split(memo->reply, memo->request_id, &dir, &file);
	/* Readers pass over names with a dot in front, and so do we, because files that are still being written are
	 * called so. The temporary name and scratch/NAME.in.N have to fit, too. */
	if (file.len > NAME_BYTES_MAX)
		problem = "is longer than 200 bytes";
	else if (str_starts(file, "."))
		problem = "begins with a dot, and readers of a mailbox pass over such files";
	if (problem)
		return mr_fail(err, MR_REFUSED,
		    "its answer would be the file '%.*s', whose name %s\nthe sender has to ask again with another REPLY_INBOX_PATH",
		    (int)(file.len < 60 ? file.len : 60), file.ptr, problem);
	if (dir.len <= 1 || (!str_ends(dir, "/.mailbox/inbox") && !is_listed(from, dir)))
		return refuse_dir(from, memo, dir, err);
	if (route_open_dir(dir, &ret->dir_fd, err) != MR_OK) {
		(void)mr_wrap(err, "the answer has no place");
		return err->code == MR_NOTFOUND ? mr_hint(err, "the one who asked has moved or is gone") : err->code;
	}
	buf_add(&name, file);
	TRY(check_place(from, ret->dir_fd, buf_z(&name), err));
	buf_add(&path, dir);
	buf_addf(&path, "/%s", buf_z(&name));
	ret->path = buf_take(&path);
	ret->name = buf_take(&name);
	return ret->path && ret->name ? MR_OK : mr_nomem(err);
}
