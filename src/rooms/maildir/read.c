/* SPDX-License-Identifier: MIT */
/*
 * read.c - from a listed file to a message. Whatever is planted in a mailbox (a link, a pipe, a device, a
 * file of a terabyte) is refused with a reason, never followed, waited for or swallowed.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/reader.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define FIRST_READ ((size_t)8 << 10) /* holds the headers of nearly all mail */
#define FILE_LIMIT ((size_t)64 << 20)

static bool
same_folder(const struct listed *a, const struct listed *b)
{
	if (a->folder != b->folder || a->box != b->box || a->life != b->life)
		return false;
	return a->subfolder == b->subfolder ||
	       (a->subfolder != NULL && b->subfolder != NULL && strcmp(a->subfolder, b->subfolder) == 0);
}

/* The folder of the last message stays open: the next one is mostly in it too. The inbox's are the mailbox's own. */
static enum mr_rc
open_folder(struct reader *r, const struct listed *at, int *ret_fd, struct mr_error *err)
{
	if (at->folder == MR_INBOX && at->subfolder == NULL)
		return mailbox_folder(r->box, (enum box_folder)at->box, ret_fd, err);
	if (r->folder_fd < 0 || !same_folder(&r->folder, at)) {
		sys_close_fd(&r->folder_fd);
		r->folder_fd = -1;

		TRY(list_open_folder(r->box, at, &r->folder_fd, err));
		r->folder = *at;
		(void)snprintf(r->subfolder, sizeof(r->subfolder), "%s", at->subfolder != NULL ? at->subfolder : "");
		r->folder.subfolder = at->subfolder != NULL ? r->subfolder : NULL;
	}
	*ret_fd = r->folder_fd;
	return MR_OK;
}

const char *
reader_path(struct reader *r, const struct listed *at)
{
	const char *part = at->box == BOX_NEW ? "new" : "cur";

	buf_clear(&r->path);
	if (at->folder == MR_DEAD)
		buf_addf(&r->path, "dead/%s/%s", part, at->name);
	else if (at->folder == MR_HELD)
		buf_addf(&r->path, "agents/%s/held/%u/%s", r->box->agent, at->life, at->name);
	else
		buf_addf(&r->path, "agents/%s/%s%s%s/%s", r->box->agent, at->subfolder ? at->subfolder : "",
		    at->subfolder ? "/" : "", part, at->name);
	return buf_z(&r->path);
}

static enum mr_rc
open_file(struct reader *r, const struct listed *at, int *ret_fd, struct stat *ret_st, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	int folder_fd = -1;

	TRY(open_folder(r, at, &folder_fd, err));
	/* Without O_NONBLOCK a planted pipe would keep us here for ever. */
	fd = sys_open(folder_fd, at->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "'%s' is not there any more", at->name);
	if (fd < 0 && (errno == ELOOP || errno == EMLINK))
		return mr_fail(err, MR_REFUSED, "'%s' is a symbolic link, which is not followed", at->name);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", at->name);
	if (!S_ISREG(st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a file", at->name);
	*ret_st = st;
	*ret_fd = fd;
	fd = -1;
	return MR_OK;
}

/* Appends up to `more` bytes; *ret_end when the file, which had `size`, is at its end. */
static enum mr_rc
read_some(int fd, size_t more, size_t size, struct buf *text, bool *ret_end, struct mr_error *err)
{
	if (!buf_reserve(text, more))
		return mr_nomem(err);
	while (more > 0 && !(*ret_end = text->len >= size)) {
		ssize_t got = sys_read(fd, text->ptr + text->len, more);
		if (got < 0)
			return mr_fail_errno(err, "cannot read");
		if (got == 0) {
			*ret_end = true;
			break;
		}
		text->len += (size_t)got;
		more -= (size_t)got;
	}
	text->ptr[text->len] = '\0';
	return MR_OK;
}

static enum mr_rc
read_text(struct reader *r, int fd, size_t size, bool whole, struct mr_error *err)
{
	bool end = false;

	buf_clear(&r->text);
	if (whole && size > FILE_LIMIT)
		return mr_fail(err, MR_REFUSED, "%zu bytes are over the limit of %zu", size, FILE_LIMIT);
	if (whole)
		return file_read_fd(fd, FILE_LIMIT, &r->text, err);
	enum mr_rc rc = read_some(fd, FIRST_READ, size, &r->text, &end, err);
	while (rc == MR_OK && !end && !message_headers_complete(buf_str(&r->text)))
		rc = read_some(fd, r->text.len, size, &r->text, &end, err);
	return rc;
}

static int64_t
released_at(const struct listed *at)
{
	struct released r;
	struct file_name parts;

	return strstr(at->name, ",B=") != NULL && name_parse(str_of(at->name), &parts) && name_released(&parts, &r)
		   ? r.at_ms
		   : 0;
}

/* What the name and the place say; the strings are borrowed until a parse fills them in. */
static void
fill_in(struct mr_message *msg, const struct listed *at)
{
	struct file_name parts;

	*msg = (struct mr_message){ .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.flags = at->flags,
		.folder = (enum mr_folder)at->folder };
	memcpy(msg->id, at->id, sizeof(msg->id));
	msg->attempt = at->attempt;
	msg->released_ms = released_at(at);
	if (at->folder == MR_HELD && name_parse_held(str_of(at->name), &parts))
		memcpy(msg->token, parts.token, sizeof(msg->token));
}

enum mr_rc
reader_read(
    struct reader *r, const struct listed *at, enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_message msg;
	struct stat st;

	fill_in(&msg, at);
	if (depth == SCAN_NAMES) {
		msg.path = reader_path(r, at);
		*ret = msg;
		return MR_OK;
	}
	enum mr_rc rc = open_file(r, at, &fd, &st, err);
	if (rc != MR_OK)
		return rc;
	rc = read_text(r, fd, (size_t)st.st_size, depth == SCAN_BODIES, err);
	if (rc != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	msg.size_bytes = (size_t)st.st_size;
	rc = message_parse(
	    buf_str(&r->text), r->room->name, depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &msg, err);
	if (rc != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	msg.proof = shared_proof(r->box->md, msg.from, &st);
	rc = reader_own_path(r, at, &msg, err);
	if (rc == MR_OK)
		*ret = msg;
	else
		mr_message_done(&msg);
	return rc;
}

enum mr_rc
reader_own_path(struct reader *r, const struct listed *at, struct mr_message *msg, struct mr_error *err)
{
	struct arena *own = msg->own;
	const char *path = arena_dup(&own, str_of(reader_path(r, at)));

	msg->own = own;
	if (path == NULL)
		return mr_nomem(err);
	msg->path = path;
	return MR_OK;
}

enum mr_rc
reader_raw(struct reader *r, const struct listed *at, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;

	enum mr_rc rc = open_file(r, at, &fd, &st, err);
	if (rc != MR_OK)
		return rc;
	rc = read_text(r, fd, (size_t)st.st_size, true, err);
	if (rc != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	buf_add(ret, buf_str(&r->text));
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

void
reader_done(struct reader *r)
{
	sys_close_fd(&r->folder_fd);
	r->folder_fd = -1;
	shared_forget(maildir_of(r->room));
	buf_done(&r->text);
	buf_done(&r->path);
}
