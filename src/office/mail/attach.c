/* SPDX-License-Identifier: MIT */
/*
 * attach.c - attachments: from files into a message, from a message into files. Never more than a piece of one is in
 * memory.
 *
 * A message with files is multipart/mixed: its text, then each file in base64. The boundary is made of the hash of the
 * text, so it cannot occur in the text, and base64 has none of its characters; and a send that is repeated with the
 * same key has the same bytes.
 */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/header.h"
#include "message/mime.h"
#include "office/mail/outgoing.h"
#include "room/content.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

enum { FILES_MAX = 256, PIECE = 57 * 1024, BASE64_LINE = 76, SAME_NAME_MAX = 1000 };

/* By the end of the name, lower case: enough for mail programs to show the common types. */
static const struct {
	const char *end, *type;
} types[] = {
	{ ".txt", "text/plain" },
	{ ".log", "text/plain" },
	{ ".md", "text/markdown" },
	{ ".csv", "text/csv" },
	{ ".html", "text/html" },
	{ ".patch", "text/x-diff" },
	{ ".diff", "text/x-diff" },
	{ ".json", "application/json" },
	{ ".pdf", "application/pdf" },
	{ ".zip", "application/zip" },
	{ ".gz", "application/gzip" },
	{ ".tgz", "application/gzip" },
	{ ".tar", "application/x-tar" },
	{ ".eml", "message/rfc822" },
	{ ".png", "image/png" },
	{ ".jpg", "image/jpeg" },
	{ ".jpeg", "image/jpeg" },
	{ ".gif", "image/gif" },
	{ ".svg", "image/svg+xml" },
	{ ".webp", "image/webp" },
	{ ".mp4", "video/mp4" },
	{ ".mp3", "audio/mpeg" },
	{ ".wav", "audio/x-wav" },
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };
#define OTHER_TYPE "application/octet-stream"

/* ---- From files into a message ---- */

struct composed {
	struct mr_content is;
	char type[96], boundary[40];
	const struct mr_attachment *files;
	size_t n;
	int fd[FILES_MAX];
};

static enum mr_rc
write_file(const struct mr_attachment *file, int fd, bytes_fn *to, void *ctx, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(free_ptr) char *piece = malloc(PIECE);

	TRY(mr_got(piece, err));
	for (uint64_t at = 0; at < file->size_bytes;) {
		uint64_t left = file->size_bytes - at;
		size_t want = left < PIECE ? (size_t)left : PIECE, n = 0;

		while (n < want) { /* whole lines of base64 need whole pieces */
			ssize_t got = sys_pread(fd, piece + n, want - n, (off_t)(at + n));

			if (got < 0)
				return mr_fail_errno(err, "cannot read '%s'", file->name);
			if (got == 0)
				return mr_fail(err, MR_REFUSED, "'%s' became shorter while it was read", file->name);
			n += (size_t)got;
		}
		buf_clear(&text);
		base64_encode(&text, (struct mr_str){ piece, n }, BASE64_LINE);
		TRY(mr_got(buf_ok(&text), err));
		TRY(to(ctx, buf_str(&text), err));
		at += n;
	}
	return MR_OK;
}

static enum mr_rc
composed_write(
    const struct mr_content *content, const struct mr_message *msg, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct composed *c = (const struct composed *)content;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "--%s\n", c->boundary);
	message_write_text(&text, (struct mr_str){ msg->body, msg->body ? msg->body_len : 0 });
	buf_addc(&text, '\n'); /* the line end before a boundary belongs to it */
	for (size_t i = 0; i < c->n; i++) {
		buf_addf(&text,
		    "--%s\nContent-Type: %s\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment",
		    c->boundary, c->files[i].type);
		mime_add_param(&text, "filename", str_of(c->files[i].name));
		buf_adds(&text, "\n\n");
		TRY(mr_got(buf_ok(&text), err));
		TRY(to(ctx, buf_str(&text), err));
		buf_clear(&text);
		TRY(write_file(&c->files[i], c->fd[i], to, ctx, err));
	}
	buf_addf(&text, "--%s--\n", c->boundary);
	TRY(mr_got(buf_ok(&text), err));
	return to(ctx, buf_str(&text), err);
}

static void
composed_free(struct mr_content *content)
{
	struct composed *c = (struct composed *)content;

	for (size_t i = 0; i < c->n; i++)
		sys_close_fd(&c->fd[i]);
	free(c);
}

static enum mr_rc
add_file(struct composed *c, struct mr_attachment *file, const char *path, struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	mr_auto(sys_close_fd) int fd = sys_open_user(path, O_NONBLOCK);
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "there is no file '%s'", path);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a file: only files can be attached", path);
	header_clean(&name, str_of(slash ? slash + 1 : path));
	file->name = buf_ok(&name) ? arena_dup(own, buf_str(&name)) : NULL;
	TRY(mr_got(file->name, err));
	const char *end = strrchr(file->name, '.');

	file->type = OTHER_TYPE;
	/* Mail inside of mail may not be base64 (RFC 2046). */
	for (size_t i = 0; end && end > file->name && !ascii_caseeq(end, ".eml") && i < TYPES; i++)
		if (ascii_caseeq(end, types[i].end))
			file->type = types[i].type;
	file->size_bytes = (uint64_t)st.st_size;
	c->fd[c->n++] = fd;
	fd = -1;
	return MR_OK;
}

enum mr_rc
outgoing_attach(struct outgoing *l, struct mr_error *err)
{
	const struct mr_draft *d = l->draft;
	struct mr_attachment *files = NULL;
	struct composed *c = NULL;
	uint64_t bytes = 0;
	char hash[65];
	size_t n = 0;

	for (size_t i = 0; d->mime && i < d->mime->attachments_n; i++)
		bytes += d->mime->attachments[i].size_bytes;
	if (d->mime) {
		l->msg.attachments = d->mime->attachments;
		l->msg.attachments_n = d->mime->attachments_n;
		l->msg.content = d->mime->content;
	}
	while (d->attach && d->attach[n])
		n++;
	if (n > FILES_MAX)
		return mr_fail(err, MR_REFUSED, "%zu attachments: at most %d are allowed", n, (int)FILES_MAX);
	if (n > 0) {
		files = arena_alloc(&l->own, n * sizeof(*files));
		c = calloc(1, sizeof(*c));
		TRY(mr_got(files && c, err));
		l->attached = &c->is;
		sha256_hex((struct mr_str){ l->msg.body, l->msg.body ? l->msg.body_len : 0 }, hash);
		(void)snprintf(c->boundary, sizeof c->boundary, "=_%.24s", hash);
		(void)snprintf(c->type, sizeof c->type, "multipart/mixed; boundary=\"%s\"", c->boundary);
		c->is = (struct mr_content){
			.type = c->type, .encoding = "", .write = composed_write, .free = composed_free
		};
		c->files = files;
		l->msg.content = l->attached;
		l->msg.attachments = files;
		l->msg.attachments_n = n;
	}
	for (size_t i = 0; i < n; i++) {
		TRY(add_file(c, &files[i], d->attach[i], &l->own, err));
		bytes += files[i].size_bytes;
	}
	if (bytes > MR_ATTACH_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the attachments have %" PRIu64 " bytes: at most 64 MiB together are allowed\n"
		    "--attach-as-path puts the paths into the text instead",
		    bytes);
	return MR_OK;
}

enum mr_rc
mr_message_read(int fd, const char *name, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_message msg = { .path = "" };
	struct stat st;

	if (sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at the message");
	TRY(content_read(fd, (size_t)st.st_size, name, MESSAGE_ALL, &text, &msg, err));
	*ret = msg;
	return MR_OK;
}

/* ---- From a message into files ---- */

/* Characters that a shell, a file manager or another system may misinterpret. */
static bool
is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xfeff || (cp >= 0x200b && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x206f) || (cp >= 0xe0000 && cp <= 0xe0fff) ||
	       (cp < 0x80 && strchr("\"*:<>?|`$", (int)cp));
}

static void
safe_name(struct buf *out, const struct mr_attachment *a, size_t number)
{
	struct mr_str name = str_of(a->name);
	const char *end = "";

	for (size_t i = name.len; i > 0; i--)
		if (name.ptr[i - 1] == '/' || name.ptr[i - 1] == '\\') {
			name = (struct mr_str){ name.ptr + i, name.len - i };
			break;
		}
	for (size_t i = 0; i < TYPES && name.len == 0; i++)
		end = strcmp(types[i].type, a->type) == 0 && !end[0] ? types[i].end : end;
	if (name.len > 0 && strchr(".-~ ", name.ptr[0]))
		buf_addc(out, '_');
	while (name.len > 0 && out->len < MR_FILE_NAME_MAX - 40) {
		uint32_t cp = 0xfffd;
		size_t n = utf8_next(name, &cp);

		if (n == 0 || is_unsafe(cp))
			buf_addc(out, '_');
		else
			buf_add(out, (struct mr_str){ name.ptr, n });
		n = n ? n : 1;
		name.ptr += n;
		name.len -= n;
	}
	if (out->len == 0)
		buf_addf(out, "attachment-%zu%s", number + 1, end);
}

struct saving {
	struct decoder decoder;
	struct staged file;
	struct buf out;
};

static void
saving_done(struct saving *s)
{
	buf_clear(&s->out);
	decoder_end(&s->decoder, &s->out);
	stage_done(&s->file);
	buf_done(&s->out);
}

static enum mr_rc
save_piece(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	struct saving *s = ctx;

	buf_clear(&s->out);
	decoder_feed(&s->decoder, bytes, &s->out);
	TRY(mr_got(buf_ok(&s->out), err));
	return s->out.len > 0 ? stage_write(&s->file, buf_str(&s->out), err) : MR_OK;
}

enum mr_rc
mr_attachment_save(
    const struct mr_message *msg, size_t i, int dir_fd, char ret_name[MR_FILE_NAME_MAX + 1], struct mr_error *err)
{
	const struct mr_attachment *a = i < msg->attachments_n ? &msg->attachments[i] : NULL;
	mr_auto(saving_done) struct saving s = { .file = STAGED_INIT };
	mr_auto(buf_done) struct buf base = BUF_INIT;

	if (!a)
		return mr_fail(err, MR_NOTFOUND, "the message has no attachment %zu", i + 1);
	if (!msg->content || !msg->content->read)
		return mr_fail(
		    err, MR_UNSUPPORTED, "the attachments of '%s' are not loaded\nread it by its id", msg->id);
	s.decoder.encoding = (enum body_encoding)a->encoding;
	TRY(stage_open(&s.file, dir_fd, dir_fd, 0600, err));
	TRY(msg->content->read(msg->content, a->at, a->stored_bytes, save_piece, &s, err));
	buf_clear(&s.out);
	decoder_end(&s.decoder, &s.out);
	TRY(mr_got(buf_ok(&s.out), err));
	TRY(stage_write(&s.file, buf_str(&s.out), err));
	safe_name(&base, a, i);
	TRY(mr_got(buf_ok(&base), err));
	const char *dot = strrchr(base.ptr, '.');
	int stem = (int)(dot && dot > base.ptr ? dot - base.ptr : (ptrdiff_t)base.len);
	enum mr_rc rc = MR_EXISTS;

	for (unsigned k = 1; rc == MR_EXISTS && k <= SAME_NAME_MAX; k++) {
		char name[MR_FILE_NAME_MAX + 1];

		if (k == 1)
			(void)snprintf(name, sizeof name, "%s", base.ptr);
		else
			(void)snprintf(name, sizeof name, "%.*s-%u%s", stem, base.ptr, k, base.ptr + stem);
		rc = stage_publish(&s.file, dir_fd, name, PUBLISH_FULL, err);
		if (rc == MR_OK)
			memcpy(ret_name, name, sizeof name);
	}
	return rc;
}
