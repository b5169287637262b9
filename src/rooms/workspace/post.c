/* SPDX-License-Identifier: MIT */
/*
 * post.c - one file into one folder, and which folder an answer may go to. Peers list every name in an inbox, so
 * nothing may be seen there before it is whole: it is written without a name, or with one that begins with a dot where
 * the system cannot do that.
 *
 * REPLY_INBOX_PATH is what the sender says, and would let any message make a file wherever we can write. So: absolute,
 * no "..", the file's name is not hidden (or the path is a folder, as with cp: then the name is the REQUEST_ID), and
 * the folder is somebody's .mailbox/inbox or stands in our own .mailbox/reply-paths. Nothing that is there is written
 * over.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BUSY_STEP_MS 50
#define NAME_BYTES_MAX 200

/* ---- Where an answer may go ---- */

void
route_done(struct route *route)
{
	sys_close_fd(&route->dir_fd);
	free(route->path);
	free(route->name);
	*route = ROUTE_INIT;
}

/* What is wrong with the text of a path, or NULL. */
static const char *
path_problem(struct mr_str path)
{
	struct mr_str rest = path, part;

	if (path.len == 0 || path.ptr[0] != '/')
		return "is not an absolute path";
	while (str_cut(&rest, '/', &part))
		if (str_eq(part, STR("..")))
			return "has '..' in it";
	return memo_value_problem(path);
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
	TRY(mr_got(buf_ok(&above), err));
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
is_listed(struct kit_box *from, struct mr_str dir)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str rest, line;

	if (file_read(box_of(from)->fd, ".mailbox/reply-paths", MEMO_MAX, &text, IGNORED) != MR_OK)
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
		if (!memchr("/._-+@, ", path.ptr[i], 8) && !ascii_alnum(path.ptr[i]))
			return false;
	return true;
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
route_answer(struct kit_box *from, const struct memo *memo, struct route *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT, name = BUF_INIT;
	struct mr_str dir, file;
	struct stat own, there;
	int shown = (int)(memo->reply.len < 160 ? memo->reply.len : 160);
	const char *problem = path_problem(memo->reply);

	if (memo->reply.len == 0)
		return mr_fail(err, MR_REFUSED,
		    "'%.*s' wants no answer: it has no REPLY_INBOX_PATH\nwrite a new message with 'mailroom send'",
		    (int)memo->request_id.len, memo->request_id.ptr);
	if (problem)
		return mr_fail(err, MR_REFUSED,
		    "its answer would go to '%.*s', which %s\n"
		    "the sender has to ask again with another REPLY_INBOX_PATH",
		    shown, memo->reply.ptr, problem);
	route_split(memo->reply, memo->request_id, &dir, &file);
	/* Readers pass over names with a dot in front, and so do we, because files that are still being written are
	 * called so. The temporary name and scratch/NAME.in.N have to fit, too. */
	if (file.len > NAME_BYTES_MAX || str_starts(file, "."))
		return mr_fail(err, MR_REFUSED,
		    "its answer would be the file '%.*s', whose name %s\n"
		    "the sender has to ask again with another REPLY_INBOX_PATH",
		    (int)(file.len < 60 ? file.len : 60), file.ptr,
		    file.len > NAME_BYTES_MAX ? "is longer than 200 bytes"
					      : "begins with a dot, and readers of a mailbox pass over such files");
	if (dir.len <= 1 || (!str_ends(dir, "/.mailbox/inbox") && !is_listed(from, dir))) {
		(void)mr_fail(
		    err, MR_REFUSED, "its answer would go to '%.*s', which is not in an inbox", shown, memo->reply.ptr);
		if (dir.len > 1 && dir.len + strlen(box_of(from)->path) <= 150 && is_plain(dir) &&
		    is_plain(str_of(box_of(from)->path)))
			return mr_hint(err,
			    "if that is a mailman's folder, allow it: echo '%.*s' >>'%s/.mailbox/reply-paths'",
			    (int)dir.len, dir.ptr, box_of(from)->path);
		return mr_hint(
		    err, "to allow that folder, add it as a line to '%s/.mailbox/reply-paths'", box_of(from)->path);
	}
	if (route_open_dir(dir, &ret->dir_fd, err) != MR_OK) {
		(void)mr_wrap(err, "the answer has no place");
		return err->code == MR_NOTFOUND ? mr_hint(err, "the sender who asked has moved or is gone") : err->code;
	}
	if (sys_stat_fd(ret->dir_fd, &there) < 0)
		return mr_fail_errno(err, "cannot look at the folder for the answer");
	/* No loops: an answer to ourselves would come back as the next message. */
	if (from->inbox_fd >= 0 && sys_stat_fd(from->inbox_fd, &own) == 0 && own.st_dev == there.st_dev &&
	    own.st_ino == there.st_ino)
		return mr_fail(err, MR_REFUSED,
		    "its answer would go to the inbox of '%s' itself\nfinish it with 'mailroom mark read'",
		    from->agent);
	buf_add(&name, file);
	if (sys_stat(ret->dir_fd, buf_z(&name), &there) == 0 && !S_ISREG(there.st_mode))
		return mr_fail(
		    err, MR_REFUSED, "the place of its answer is taken by '%s', which is not a message", buf_z(&name));
	buf_add(&path, dir);
	buf_addf(&path, "/%s", buf_z(&name));
	ret->path = buf_take(&path);
	ret->name = buf_take(&name);
	return mr_got(ret->path && ret->name, err);
}

/* ---- One file ---- */

int64_t
post_stamp(struct workspace *ws)
{
	while (clock_now_ms() == ws->last_ms) /* ids of one date would be in no order */
		(void)poll(NULL, 0, 1);
	int64_t now_ns = clock_now_ns();

	ws->last_ms = now_ns / 1000000;
	return now_ns;
}

/* As readable as its folder, and always for its owner when that is not us. */
static mode_t
mode_for(int dir_fd)
{
	struct stat st;

	if (sys_stat_fd(dir_fd, &st) < 0)
		return 0600;
	return 0600 | (st.st_mode & 0044) | (st.st_uid != geteuid() ? 0044 : 0);
}

static void
note(struct workspace *ws, struct posting *p, const struct stat *st)
{
	p->mtime_ns = kit_mtime_ns(st);
	workspace_settled(ws, st);
}

static enum mr_rc
post_at(struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err)
{
	struct stat st;

	TRY(kit_publish(&(struct kit_file){ .tmp_fd = dir_fd,
			    .dir_fd = dir_fd,
			    .name = name,
			    .bytes = p->bytes,
			    .mode = mode_for(dir_fd),
			    .mtime_ns = p->mtime_ns,
			    .st = &st },
	    p->what, dir, err));
	note(ws, p, &st);
	return MR_OK;
}

/* ---- At a destination ---- */

/* What stands at the destination, as far as it concerns us. */
struct occupant {
	bool is_message, same_request, empty_answer;
	char request_id[64]; /* the beginning of it */
};

static struct occupant
look_at(int dir_fd, const char *name, struct mr_str ours)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct occupant o = { 0 };
	struct memo memo, own;

	if (file_read(dir_fd, name, MEMO_MAX, &text, IGNORED) != MR_OK || memo_parse(buf_str(&text), &memo))
		return o;
	while (memo.body.len > 0 && (unsigned char)memo.body.ptr[memo.body.len - 1] <= ' ')
		memo.body.len--;
	o.is_message = true;
	o.same_request = !memo_parse(ours, &own) && str_eq(memo.request_id, own.request_id);
	o.empty_answer = memo.is_reply && str_eq(memo.body, STR("\"\""));
	(void)snprintf(o.request_id, sizeof o.request_id, "%.*s", (int)memo.request_id.len, memo.request_id.ptr);
	return o;
}

static bool
is_empty_answer(const void *posting, int dir_fd, const char *name)
{
	struct occupant o = look_at(dir_fd, name, ((const struct posting *)posting)->bytes);

	return o.same_request && o.empty_answer;
}

/* The question got the empty answer, which is still unread, and now gets a real answer: the two change places, so
 * that the name is never free for a third. MR_EXISTS: something else stands there. */
static enum mr_rc
post_over_empty(struct workspace *ws, int dir_fd, const char *name, struct posting *p, struct mr_error *err)
{
	const struct kit_temporary temporary = kit_temporary(KIT_TEMPORARY);
	bool done = false;
	struct stat st;

	if (p->over_empty && !(p->what && p->what->staged) && is_empty_answer(p, dir_fd, name)) {
		TRY(file_prepare(dir_fd, temporary.z, p->bytes, mode_for(dir_fd), p->mtime_ns, err));
		if (sys_stat(dir_fd, temporary.z, &st) < 0 ||
		    kit_exchange(dir_fd, temporary.z, name, is_empty_answer, p, &done) < 0)
			(void)sys_unlink(dir_fd, temporary.z);
	}
	if (!done)
		return mr_fail(err, MR_EXISTS, "'%s' already exists", name);
	note(ws, p, &st);
	if (sys_fsync(dir_fd) == 0)
		return MR_OK;
	return mr_fail(err, MR_INDOUBT,
	    "'%s' is visible but may not survive a power cut\ncheck the disk; the message is whole: do not send it again",
	    name);
}

enum mr_rc
post_deliver(
    struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + (p->at_once ? 0 : ws->busy_ms);

	for (;;) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct stat st;
		enum mr_rc rc = post_at(ws, dir_fd, dir, name, p, err);

		if (rc != MR_EXISTS)
			return rc;
		/* A resend finds its own bytes: it has that one's date then. */
		if (file_read_stat(dir_fd, name, MEMO_MAX, &text, &st, IGNORED) == MR_OK &&
		    str_eq(buf_str(&text), p->bytes)) {
			p->mtime_ns = kit_mtime_ns(&st);
			return MR_OK;
		}
		rc = post_over_empty(ws, dir_fd, name, p, err);
		if (rc != MR_EXISTS)
			return rc;
		struct occupant o = look_at(dir_fd, name, p->bytes);

		if (clock_boot_ms() < end_ms && (!o.is_message || o.same_request)) {
			(void)poll(NULL, 0, BUSY_STEP_MS);
			continue;
		}
		/* A conversation has one name, so what stands there may go any moment; the answer to another request
		 * goes when its sender wants, and a file that is no message may never. */
		if (o.same_request)
			(void)mr_fail(err, MR_BUSY, "a message of the same conversation still waits in '%s'", dir);
		else if (o.is_message)
			(void)mr_fail(err, MR_BUSY, "in '%s' a message of another request, '%s', still waits as '%s'",
			    dir, o.request_id, name);
		else
			(void)mr_fail(
			    err, MR_BUSY, "in '%s' the file '%s' is in the way: it is not a message", dir, name);
		return mr_hint(err, "try again when '%s' has been %s there; nothing was sent", name,
		    o.is_message ? "read" : "removed");
	}
}

/* ---- Our own copy ---- */

enum mr_rc
post_draft(struct kit_box *box, const char *id, struct posting *p, struct mr_error *err)
{
	char older[NAME_MAX + 1];

	TRY(box_need_scratch(box, err));
	for (unsigned tries = 0; tries < 100; tries++) {
		struct posting plain = { .bytes = p->bytes, .mtime_ns = p->mtime_ns };
		enum mr_rc rc = post_at(workspace_of(box->room), box->other_fd, "", id, &plain, err);

		if (rc == MR_INDOUBT) { /* only the copy is in doubt: nobody has the message */
			struct mr_error first = *err;

			return mr_fail(err, MR_IO,
			    "cannot keep a copy in scratch: %s\nnothing was sent; check the disk, then send it again",
			    first.message);
		}
		if (rc == MR_OK)
			p->mtime_ns = plain.mtime_ns;
		if (rc != MR_EXISTS)
			return rc;
		/* Two of ours may do this at once: the number that a rename gets is that one's. */
		if (kit_rename_free(box->other_fd, id, box->other_fd, id, 1, older) < 0 && errno != ENOENT)
			return errno == EEXIST ? mr_fail(err, MR_BUSY, "scratch has too many copies of '%s'", id)
					       : mr_fail_errno(err, "cannot keep the older copy of '%s'", id);
	}
	return mr_fail(err, MR_BUSY, "others keep writing to '%s' in scratch", id);
}
