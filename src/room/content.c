/* SPDX-License-Identifier: MIT */
/*
 * content.c - messages in files: read with only as much memory as their text needs, written with any content.
 *
 * A body with attachments is scanned once, in pieces, and stays in its file. The message keeps the file open, so that
 * it can be saved or carried even if a mail program moves the file meanwhile.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "message/message.h"
#include "message/parts.h"
#include "room/content.h"
#include "room/room.h"
#include <fcntl.h>

#define FIRST_READ ((size_t)8 << 10) /* holds the headers of nearly all mail */
#define PIECE ((size_t)64 << 10)

/* ---- A body that stays in its file ---- */

struct stored {
	struct mr_content is;
	int fd;
};

static enum mr_rc
stored_read(const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct stored *s = (const struct stored *)content;
	mr_auto(free_ptr) char *piece = malloc(PIECE);

	TRY(mr_got(piece, err));
	while (n > 0) {
		ssize_t got = sys_pread(s->fd, piece, n < PIECE ? (size_t)n : PIECE, (off_t)at);

		if (got < 0)
			return mr_fail_errno(err, "cannot read the stored message");
		if (got == 0)
			break;
		TRY(to(ctx, (struct mr_str){ piece, (size_t)got }, err));
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return MR_OK;
}

static void
stored_free(struct mr_content *content)
{
	struct stored *s = (struct stored *)content;

	sys_close_fd(&s->fd);
	free(s);
}

/* Its type and encoding are the message's own headers. */
static enum mr_rc
keep_stored(struct mr_message *msg, int fd, uint64_t at, struct mr_error *err)
{
	struct stored *s = calloc(1, sizeof(*s));
	const char *type = mr_message_header(msg, "Content-Type");
	const char *encoding = mr_message_header(msg, "Content-Transfer-Encoding");

	TRY(mr_got(s, err));
	*s = (struct stored){
		.is = { type ? type : "", encoding ? encoding : "", NULL, stored_read, stored_free, at },
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
	};
	if (s->fd < 0) {
		free(s);
		return mr_fail_errno(err, "cannot keep the message open");
	}
	msg->content = &s->is;
	return MR_OK;
}

/* ---- Reading ---- */

static enum mr_rc
read_more(int fd, size_t more, struct buf *text, bool *ret_end, struct mr_error *err)
{
	TRY(mr_got(buf_reserve(text, more), err));
	ssize_t got = sys_read(fd, text->ptr + text->len, more);

	if (got < 0)
		return mr_fail_errno(err, "cannot read");
	text->len += (size_t)got;
	text->ptr[text->len] = '\0';
	*ret_end = got == 0;
	return MR_OK;
}

enum mr_rc
content_read(int fd, size_t size, const char *room, enum message_part part, struct buf *text, struct mr_message *msg,
    struct mr_error *err)
{
	bool end = false;

	buf_clear(text);
	/* Reads 8 KiB, then doubles, until the headers are complete. The known size spares the read of EOF. */
	while (!end && text->len < size && (text->len == 0 || !message_headers_complete(buf_str(text))))
		TRY(read_more(fd, text->len > FIRST_READ ? text->len : FIRST_READ, text, &end, err));
	bool all = end || text->len >= size;

	TRY(message_parse(buf_str(text), room, part == MESSAGE_ALL && all ? MESSAGE_ALL : MESSAGE_HEADERS, msg, err));
	if (part != MESSAGE_ALL || all)
		return MR_OK;
	const char *type = mr_message_header(msg, "Content-Type");
	enum mr_rc rc = MR_OK;

	if (parts_needed(str_of(type ? type : ""))) {
		rc = keep_stored(msg, fd, message_body_at(buf_str(text)), err);
		if (rc == MR_OK)
			rc = parts_read(msg, msg->content->at, err);
	} else if (size > CONTENT_TEXT_MAX) {
		rc = mr_fail(err, MR_REFUSED, "%zu bytes are over the limit of %zu", size, CONTENT_TEXT_MAX);
	} else {
		while (rc == MR_OK && !end && text->len < size)
			rc = read_more(fd, size - text->len, text, &end, err);
		if (rc == MR_OK)
			rc = message_parse(buf_str(text), room, MESSAGE_ALL, msg, err);
	}
	if (rc != MR_OK)
		mr_message_done(msg);
	return rc;
}
