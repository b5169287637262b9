/* SPDX-License-Identifier: MIT */
/*
 * content.c - bodies with attachments. A short one is a value like any other body. A long one lies in a temporary file
 * on its way: from there it goes to the server in pieces, rows of the table chunk, in the transaction of the send, as
 * often as that must be asked for. So memory stays flat.
 *
 * In the row of such a message stands its outline in the place of the body: the text, and of each attachment what a
 * reader is told of it. A message is read by its outline alone; pieces are fetched when an attachment is saved, or the
 * message carried.
 *
 *	Outline: 1
 *	Part: 512 412308 300000 2       at, bytes there and decoded, encoding (enum body_encoding)
 *	Type: image/png
 *	Name: b.png
 *
 *	The text.
 *
 * The outline is the sender's word. Where it is missing (of an earlier mailroom) or not in order, all of the body is
 * looked through once.
 */
#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/parts.h"
#include "rooms/postgres/postgres.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define SHORT_MAX ((size_t)64 << 10)
#define PAGE ((uint64_t)1 << 20)
#define PIECE ((size_t)256 << 10)

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
pg_spool_each(const struct pg_spool *s, bytes_fn *to, void *ctx, struct mr_error *err)
{
	mr_auto(free_ptr) char *piece = malloc(PIECE);

	TRY(mr_got(piece != NULL, err));
	for (uint64_t at = 0; at < s->bytes;) {
		ssize_t n = sys_pread(s->file.fd, piece, PIECE, (off_t)at);

		if (n <= 0)
			return n < 0 ? mr_fail_errno(err, "cannot read the temporary file")
				     : mr_fail(err, MR_IO, "the temporary file has lost its end");
		TRY(to(ctx, (struct mr_str){ piece, (size_t)n }, err));
		at += (uint64_t)n;
	}
	return MR_OK;
}

struct spooled {
	struct mr_content is;
	const struct pg_spool *spool;
};

static enum mr_rc
spooled_read(const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err)
{
	(void)at, (void)n; /* parts_read wants all of it */
	return pg_spool_each(((const struct spooled *)content)->spool, to, ctx, err);
}

/* The outline of a body in the spool, behind its header block in `text`. */
static enum mr_rc
add_outline(struct mr_room *room, const struct pg_spool *spool, struct buf *text, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct spooled body = { .is = { .type = "", .encoding = "", .read = spooled_read }, .spool = spool };

	TRY(message_parse(buf_str(text), room->name, MESSAGE_HEADERS, &msg, err));
	msg.content = &body.is;
	TRY(parts_read(&msg, 0, err));
	record_add(text, "Outline", "1");
	for (const struct mr_attachment *a = msg.attachments; a < msg.attachments + msg.attachments_n; a++) {
		buf_addf(text, "Part: %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", a->at, a->stored_bytes, a->size_bytes,
		    a->encoding);
		record_add(text, "Type", a->type);
		record_add(text, "Name", a->name);
	}
	buf_addc(text, '\n');
	buf_add(text, (struct mr_str){ msg.body, msg.body_len });
	return mr_got(buf_ok(text), err);
}

enum mr_rc
pg_content_gather(
    struct mr_room *room, const struct mr_message *msg, struct buf *text, struct pg_spool *spool, struct mr_error *err)
{
	struct gathering g = { .room = room, .text = text, .spool = spool, .head = text->len };

	TRY(message_write_content(msg, gather, &g, err));
	if (spool->bytes == 0)
		return MR_OK;
	text->len = g.head;
	text->ptr[g.head] = '\0';
	return add_outline(room, spool, text, err);
}

/* ---- From the server ---- */

static enum mr_rc
content_range(struct mr_room *room, const char *box, const char *id, uint64_t at, uint64_t n, bytes_fn *to, void *ctx,
    struct mr_error *err)
{
	while (n > 0) {
		mr_auto(pg_call_done) struct pg_call c = PG_READ("content");

		PG_BIND(&c, TEXT(box), TEXT(id), INT(at), INT(n < PAGE ? n : PAGE));
		TRY(pg_run(room, &c, err));
		if (PQntuples(c.rows) == 0)
			return mr_fail(
			    err, MR_NOTFOUND, "the text of '%s' is gone: it was purged, or is no longer yours", id);
		for (int i = 0; i < PQntuples(c.rows) && n > 0; i++) {
			struct mr_str piece = pg_get_bytes(&c, i, 0);

			piece.len = piece.len > n ? (size_t)n : piece.len;
			TRY(to(ctx, piece, err));
			at += piece.len;
			n -= piece.len;
		}
	}
	return MR_OK;
}

struct remote { /* a body that stays at the server */
	struct mr_content is;
	struct postgres *pg; /* NULL: the room was closed */
	struct remote *next;
	uint64_t bytes;
	char box[MR_ADDRESS_MAX + 16], id[MR_ID_LEN + 1];
};

static enum mr_rc
remote_read(const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct remote *r = (const struct remote *)content;
	uint64_t from = at > r->is.at ? at - r->is.at : 0, left = from < r->bytes ? r->bytes - from : 0;

	if (!r->pg)
		return mr_fail(err, MR_UNSUPPORTED, "the attachments of '%s' are in a room that was closed", r->id);
	return content_range(r->pg->room, r->box, r->id, from, n < left ? n : left, to, ctx, err);
}

static void
remote_free(struct mr_content *content)
{
	struct remote *r = (struct remote *)content;

	for (struct remote **at = r->pg ? &r->pg->remotes : NULL; at && *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
	free(r);
}

void
pg_contents_close(struct postgres *pg)
{
	for (struct remote *r = pg->remotes; r; r = r->next)
		r->pg = NULL;
}

/* False: it is not in order. */
static bool
take_outline(struct mr_message *msg, struct mr_str outline, uint64_t at, uint64_t bytes)
{
	mr_auto(record_done) struct record r = { 0 };
	struct mr_str text;
	struct arena *own = msg->own;

	if (outline.len == 0 || !utf8_text(outline) || record_and_rest(outline, &r, &text, IGNORED) != MR_OK)
		return false;
	struct mr_attachment *v = arena_alloc(&own, (r.n + 1) * sizeof(*v)), *a = v;
	bool fine = v != NULL && record_get(&r, "Outline");
	size_t n = 0;

	for (size_t i = 0; i < r.n && fine; i++) {
		const char *name = r.lines[i].name, *value = arena_dup(&own, str_of(r.lines[i].value));

		fine = value != NULL;
		if (fine && strcmp(name, "Part") == 0) {
			a = v + n++;
			*a = (struct mr_attachment){ .name = "", .type = "" };
			fine = sscanf(value, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %d", &a->at, &a->stored_bytes,
				   &a->size_bytes, &a->encoding) == 4 &&
			       a->at <= bytes && a->stored_bytes <= bytes - a->at && a->encoding >= BODY_PLAIN &&
			       a->encoding <= BODY_BASE64;
			a->at += at;
		} else if (strcmp(name, "Type") == 0) {
			a->type = value;
		} else if (strcmp(name, "Name") == 0) {
			a->name = value;
		}
	}
	msg->body = arena_dup(&own, text);
	msg->own = own;
	msg->body_len = text.len;
	msg->attachments = v;
	msg->attachments_n = fine ? n : 0;
	return fine && msg->body;
}

enum mr_rc
pg_content_attach(
    struct mr_room *room, const char *box, uint64_t at, uint64_t bytes, struct mr_message *msg, struct mr_error *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	const char *type = mr_message_header(msg, "Content-Type");
	const char *encoding = mr_message_header(msg, "Content-Transfer-Encoding");

	if (!r) {
		mr_message_done(msg);
		return mr_nomem(err);
	}
	*r = (struct remote){
		.is = { type ? type : "", encoding ? encoding : "", NULL, remote_read, remote_free, at },
		.pg = pg_of(room),
		.next = pg_of(room)->remotes,
		.bytes = bytes,
	};
	(void)snprintf(r->box, sizeof(r->box), "%s", box);
	(void)snprintf(r->id, sizeof(r->id), "%s", msg->id);
	pg_of(room)->remotes = r;
	msg->content = &r->is;
	return MR_OK;
}

enum mr_rc
pg_content_read(struct mr_room *room, const char *box, struct mr_str head, struct mr_str outline, int64_t total,
    struct mr_message *msg, struct mr_error *err)
{
	TRY(message_parse(head, room->name, MESSAGE_HEADERS, msg, err));
	TRY(pg_content_attach(room, box, head.len, (uint64_t)total, msg, err));
	enum mr_rc rc = take_outline(msg, outline, head.len, (uint64_t)total) ? MR_OK : parts_read(msg, head.len, err);

	if (rc != MR_OK)
		mr_message_done(msg);
	return rc;
}
