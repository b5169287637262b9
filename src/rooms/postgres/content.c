/* SPDX-License-Identifier: MIT */
/*
 * content.c - bodies with attachments. A short one is a value like any other body. A long one lies in a temporary file
 * on its way: from there it goes to the server in pieces, rows of the table chunk, in the transaction of the send, as
 * often as that must be asked for; and into it pieces are fetched, for content_read to find the parts. So memory stays
 * flat, and the connection is free while somebody reads or writes the parts.
 */
#include "base/file.h"
#include "base/sys.h"
#include "room/content.h"
#include "rooms/postgres/postgres.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SHORT_MAX ((size_t)64 << 10)
#define PAGE ((int64_t)1 << 20)

enum mr_rc
pg_spool_open(struct mr_room *room, struct pg_spool *s, struct mr_error *err)
{
	if (pg_folder(room, "/outbox", true, &s->folder, IGNORED) != MR_OK)
		s->folder = sys_open(AT_FDCWD, P_tmpdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (s->folder < 0)
		return mr_fail_errno(err, "cannot open a folder for temporary files");
	return stage_open(&s->file, s->folder, s->folder, 0600, err);
}

void
pg_spool_done(struct pg_spool *s)
{
	stage_done(&s->file);
	sys_close_fd(&s->folder);
}

/* ---- To the server ---- */

struct gathering {
	struct mr_room *room;
	struct buf *text; /* the header block, and behind it a short body */
	struct pg_spool *spool;
	size_t head;
};

static enum mr_rc
gather(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	struct gathering *g = ctx;
	struct pg_spool *s = g->spool;

	if (s->file.fd < 0) {
		buf_add(g->text, bytes);
		if (!buf_ok(g->text))
			return mr_nomem(err);
		if (g->text->len - g->head <= SHORT_MAX)
			return MR_OK;
		TRY(pg_spool_open(g->room, s, err));
		bytes = (struct mr_str){ g->text->ptr + g->head, g->text->len - g->head };
	}
	TRY(stage_write(&s->file, bytes, err));
	s->bytes += bytes.len;
	return MR_OK;
}

enum mr_rc
pg_content_gather(
    struct mr_room *room, const struct mr_message *msg, struct buf *text, struct pg_spool *spool, struct mr_error *err)
{
	struct gathering g = { .room = room, .text = text, .spool = spool, .head = text->len };

	return message_write_content(msg, gather, &g, err);
}

/* ---- From the server ---- */

enum mr_rc
pg_content_each(
    struct mr_room *room, const char *box, const char *id, int64_t total, bytes_fn *to, void *ctx, struct mr_error *err)
{
	for (int64_t at = 0; at < total;) {
		mr_auto(pg_call_done) struct pg_call c = PG_READ("content");

		PG_BIND(&c, TEXT(box), TEXT(id), INT(at), INT(PAGE));
		TRY(pg_run(room, &c, err));
		if (PQntuples(c.rows) == 0)
			return mr_fail(
			    err, MR_NOTFOUND, "the text of '%s' is gone: it was purged, or is not yours any more", id);
		for (int i = 0; i < PQntuples(c.rows); i++) {
			struct mr_str piece = pg_get_bytes(&c, i, 0);

			TRY(to(ctx, piece, err));
			at += (int64_t)piece.len;
		}
	}
	return MR_OK;
}

static enum mr_rc
spool_piece(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	return stage_write(&((struct pg_spool *)ctx)->file, bytes, err);
}

enum mr_rc
pg_content_read(struct mr_room *room, const char *box, struct mr_str head, int64_t total, struct mr_message *msg,
    struct mr_error *err)
{
	mr_auto(pg_spool_done) struct pg_spool s = PG_SPOOL_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(pg_spool_open(room, &s, err));
	TRY(spool_piece(&s, head, err));
	TRY(pg_content_each(room, box, msg->id, total, spool_piece, &s, err));
	if (lseek(s.file.fd, 0, SEEK_SET) < 0)
		return mr_fail_errno(err, "cannot read the temporary file");
	return content_read(s.file.fd, head.len + (size_t)total, room->name, MESSAGE_ALL, &text, msg, err);
}
