/* SPDX-License-Identifier: MIT */
/*
 * parts.c - multipart bodies, read line by line without keeping them.
 *
 * Only the beginning of a line is examined, because a boundary is short. The line end before a boundary belongs to the
 * boundary (RFC 2046), so each line end is held back until the next line is known.
 */
#include "message/parts.h"

#include "base/error.h"
#include "base/text.h"
#include "message/header.h"
#include "message/message.h"

enum { NAME_BYTES = 255 };

struct part {
	const char *name, *type; /* in parts.own; the name is one line of UTF-8, "" for none */
	char charset[40];
	enum body_encoding encoding;
	uint64_t at, stored, size; /* its offset, its stored length, its decoded length */
	bool text;                 /* it belongs to the text */
	struct buf decoded;        /* of text */
};

struct parts {
	struct arena *own;
	struct part v[PARTS_MAX];
	size_t n;
	struct level { /* open multiparts, the innermost last */
		char boundary[PARTS_BOUNDARY + 1];
		size_t len;
		bool alternative, digest;
		size_t chosen; /* of alternatives: part number + 1 */
	} levels[PARTS_DEPTH];
	size_t levels_n;
	enum { PARTS_BETWEEN, PARTS_HEADERS, PARTS_LEAF } state;
	bool multipart; /* the whole body is one */
	uint64_t pos;
	struct buf head, out;           /* headers of the current part; scratch */
	struct decoder decoder;         /* of the current part */
	char line[PARTS_BOUNDARY + 16]; /* the beginning of a line that may be a boundary */
	size_t line_n;
	bool probing; /* the line may still be a boundary */
	bool blank;   /* this line is empty so far */
	char eol[2];  /* a line end that belongs to the boundary if one follows */
	size_t eol_n, text_bytes;
	bool failed; /* out of memory */
};

bool
parts_needed(struct mr_str type)
{
	return str_casestarts(type, "multipart/") || str_casestarts(type, "text/html") ||
	       (type.len > 0 && !str_casestarts(type, "text/"));
}

static void
parts_done(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		buf_done(&p->v[i].decoded);
	decoder_end(&p->decoder, &p->out);
	buf_done(&p->head);
	buf_done(&p->out);
	arena_free(p->own);
}

/* ---- A part that is no multipart ---- */

/* Removes a part from the text. */
static void
demote(struct parts *p, struct part *part)
{
	part->text = false;
	p->text_bytes -= part->decoded.len;
	buf_done(&part->decoded);
}

/* One of the alternatives is the text: the first plain one, or HTML as long as there is no plain one. */
static bool
is_chosen(struct parts *p, struct mr_str type)
{
	size_t i = p->levels_n;

	while (i > 0 && !p->levels[i - 1].alternative)
		i--;
	if (i == 0)
		return true;
	struct level *among = &p->levels[i - 1];
	struct part *before = among->chosen > 0 ? &p->v[among->chosen - 1] : NULL;

	if (before && (!str_eq(str_of(before->type), STR("text/html")) || str_eq(type, STR("text/html"))))
		return false;
	if (before && before->text)
		demote(p, before);
	among->chosen = p->n + 1;
	return true;
}

static void
begin_leaf(struct parts *p, struct mr_str content_type, struct mr_str encoding, struct mr_str disposition)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, clean = BUF_INIT, type = BUF_INIT;
	struct body_kind kind = body_kind_of(content_type, encoding);
	struct mr_str word, rest = content_type;
	struct part *part = &p->v[p->n];
	bool last = p->n + 1 == PARTS_MAX, digest = p->levels_n > 0 && p->levels[p->levels_n - 1].digest;

	if (last) /* all the rest is one piece */
		p->levels_n = 0;
	if (!mime_param(&name, disposition, "filename"))
		(void)mime_param(&name, content_type, "name");
	header_clean(&clean, buf_str(&name));
	word = str_trim(buf_str(&clean));
	*part = (struct part){ .name = arena_keep(&p->own, utf8_within(word, NAME_BYTES), &p->failed),
		.encoding = kind.encoding,
		.at = p->pos };
	if (last || str_casestarts(content_type, "multipart/"))
		part->encoding = BODY_PLAIN;
	memcpy(part->charset, kind.charset, sizeof part->charset);
	if (!str_cut(&rest, ';', &word) || !memchr(word.ptr, '/', word.len) || !header_is_plain(word))
		word = digest ? STR("message/rfc822") : STR("text/plain");
	word = utf8_cut(str_trim(last ? STR("application/octet-stream") : word), NAME_BYTES);
	for (size_t i = 0; i < word.len; i++)
		buf_addc(&type, ascii_lower(word.ptr[i]));
	part->type = arena_keep(&p->own, buf_str(&type), &p->failed);
	bool file = part->name[0] || str_casestarts(str_trim(disposition), "attachment");

	if (!p->multipart) /* independent of its declared type: if it is text, it is the text */
		part->text = !file || str_starts(buf_str(&type), "text/");
	else
		part->text = !file && str_starts(buf_str(&type), "text/") && is_chosen(p, buf_str(&type));
	p->decoder = (struct decoder){ .encoding = part->encoding };
	p->failed |= name.failed || clean.failed || type.failed;
	p->n++;
	p->state = PARTS_LEAF;
}

static void
leaf_decoded(struct parts *p)
{
	struct part *part = &p->v[p->n - 1];

	part->size += p->out.len;
	p->failed |= p->out.failed;
	if (!part->text)
		return;
	if (p->text_bytes + p->out.len > MR_BODY_MAX) {
		demote(p, part);
		return;
	}
	p->text_bytes += p->out.len;
	buf_add(&part->decoded, buf_str(&p->out));
	p->failed |= part->decoded.failed;
}

static void
leaf_bytes(struct parts *p, struct mr_str bytes)
{
	p->v[p->n - 1].stored += bytes.len;
	buf_clear(&p->out);
	decoder_feed(&p->decoder, bytes, &p->out);
	leaf_decoded(p);
}

static void
end_leaf(struct parts *p)
{
	if (p->state != PARTS_LEAF)
		return;
	buf_clear(&p->out);
	decoder_end(&p->decoder, &p->out);
	leaf_decoded(p);
	p->state = PARTS_BETWEEN;
}

/* ---- Structure ---- */

static bool
open_level(struct parts *p, struct mr_str content_type)
{
	mr_auto(buf_done) struct buf boundary = BUF_INIT;
	struct level *level = &p->levels[p->levels_n];

	if (!str_casestarts(content_type, "multipart/") || p->levels_n == PARTS_DEPTH ||
	    !mime_param(&boundary, content_type, "boundary") || boundary.len == 0 || boundary.len > PARTS_BOUNDARY)
		return false;
	*level = (struct level){ .len = boundary.len,
		.alternative = str_casestarts(content_type, "multipart/alternative"),
		.digest = str_casestarts(content_type, "multipart/digest") };
	memcpy(level->boundary, boundary.ptr, boundary.len);
	p->failed |= boundary.failed;
	p->levels_n++;
	p->state = PARTS_BETWEEN;
	return true;
}

static void
begin_part(struct parts *p)
{
	struct header_cursor c = header_begin(buf_str(&p->head));
	mr_auto(buf_done) struct buf type = BUF_INIT, encoding = BUF_INIT, disposition = BUF_INIT;

	for (struct header_line line; header_next(&c, &line);) {
		struct buf *to = str_caseeq(line.name, STR("Content-Type"))                ? &type
				 : str_caseeq(line.name, STR("Content-Transfer-Encoding")) ? &encoding
				 : str_caseeq(line.name, STR("Content-Disposition"))       ? &disposition
											   : NULL;
		if (to && to->len == 0)
			header_unfold(to, line.raw);
	}
	p->failed |= type.failed || encoding.failed || disposition.failed;
	p->eol_n = 0;
	if (p->n + 1 == PARTS_MAX || !open_level(p, buf_str(&type)))
		begin_leaf(p, buf_str(&type), buf_str(&encoding), buf_str(&disposition));
}

/* Bytes that are not a boundary: in headers at most one line, else any number. */
static void
content(struct parts *p, struct mr_str bytes)
{
	p->pos += bytes.len;
	if (p->state == PARTS_HEADERS) {
		for (size_t i = 0; i < bytes.len; i++)
			p->blank &= bytes.ptr[i] == '\r' || bytes.ptr[i] == '\n';
		if (p->head.len < PARTS_HEADER)
			buf_add(&p->head, bytes);
		p->failed |= p->head.failed;
		if (p->blank && bytes.ptr[bytes.len - 1] == '\n')
			begin_part(p);
	} else if (p->state == PARTS_LEAF) {
		if (p->eol_n == 1 && p->eol[0] == '\r' && bytes.ptr[0] == '\n') {
			p->eol[p->eol_n++] = '\n';
			bytes.ptr++;
			if (--bytes.len == 0)
				return;
		}
		leaf_bytes(p, (struct mr_str){ p->eol, p->eol_n });
		p->eol_n = 0;
		while (bytes.len > 0 && p->eol_n < 2 && bytes.ptr[bytes.len - 1] == (p->eol_n ? '\r' : '\n')) {
			p->eol_n++;
			bytes.len--;
		}
		if (p->eol_n == 0 && bytes.len > 0 &&
		    bytes.ptr[bytes.len - 1] == '\r') { /* the pieces split between CR and LF */
			bytes.len--;
			p->eol_n = 1;
			p->eol[0] = '\r';
		} else {
			memcpy(p->eol, p->eol_n == 2 ? "\r\n" : "\n", p->eol_n);
		}
		leaf_bytes(p, bytes);
	}
}

/* Is the gathered line a boundary of an open multipart? Then everything inside of that one ends here. */
static void
end_probe(struct parts *p)
{
	struct mr_str line = { p->line, p->line_n };
	bool may_be = str_starts(line, "--");

	p->line_n = 0;
	p->probing = false;
	for (size_t i = p->levels_n; may_be && i > 0; i--) {
		const struct level *level = &p->levels[i - 1];

		if (line.len < 2 + level->len || memcmp(line.ptr + 2, level->boundary, level->len) != 0)
			continue;
		struct mr_str tail = str_from(line, 2 + level->len);
		bool last = str_starts(tail, "--");

		if (str_trim_end(last ? str_from(tail, 2) : tail).len > 0)
			continue;
		if (p->state == PARTS_HEADERS) /* a part with headers only */
			begin_part(p);
		if (p->n == PARTS_MAX) /* the last part is the whole rest */
			break;
		end_leaf(p);
		p->levels_n = i - last;
		p->state = last ? PARTS_BETWEEN : PARTS_HEADERS;
		buf_clear(&p->head);
		p->eol_n = 0;
		p->pos += line.len;
		return;
	}
	if (line.len > 0)
		content(p, line);
}

static enum mr_rc
parts_feed(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	struct parts *p = ctx;

	(void)err;
	while (bytes.len > 0 && !p->failed) {
		bool head = p->state == PARTS_HEADERS;

		if (p->probing && !head && p->line_n == 0 && bytes.ptr[0] != '-')
			p->probing = false;
		/* Lines that do not begin like a boundary are handled together. */
		const char *lf =
		    head || p->probing ? memchr(bytes.ptr, '\n', bytes.len) : memmem(bytes.ptr, bytes.len, "\n-", 2);
		size_t n = lf ? (size_t)(lf + 1 - bytes.ptr) : bytes.len;

		if (!lf && bytes.ptr[bytes.len - 1] == '\n')
			lf = bytes.ptr + bytes.len - 1;
		if (p->probing) {
			size_t space = sizeof p->line - p->line_n;
			bool fits = n <= space;

			n = fits ? n : space;
			memcpy(p->line + p->line_n, bytes.ptr, n);
			p->line_n += n;
			bool may_be = p->levels_n > 0 && p->line[0] == '-' && (p->line_n < 2 || p->line[1] == '-');

			if ((fits && lf) || !may_be || p->line_n == sizeof p->line)
				end_probe(p);
			lf = fits ? lf : NULL;
		} else {
			content(p, str_first(bytes, n));
		}
		bytes = str_from(bytes, n);
		if (lf)
			p->probing = p->blank = true;
	}
	return MR_OK;
}

static void
parts_begin(struct parts *p, struct mr_str content_type, struct mr_str transfer_encoding, struct mr_str disposition,
    uint64_t at)
{
	*p = (struct parts){ .pos = at, .probing = true, .blank = true };
	p->multipart = open_level(p, content_type);
	if (!p->multipart)
		begin_leaf(p, content_type, transfer_encoding, disposition);
}

static enum mr_rc
read_all(struct parts *p, const struct mr_message *msg, struct mr_error *err)
{
	TRY(message_write_content(msg, parts_feed, p, err));
	end_probe(p);
	if (p->state == PARTS_HEADERS && p->head.len > 0)
		begin_part(p);
	if (p->state == PARTS_LEAF) /* the body is cut off: then the line end belongs to it */
		leaf_bytes(p, (struct mr_str){ p->eol, p->eol_n });
	end_leaf(p);
	return MR_OK;
}

/* ---- The result ---- */

/* Adds a part to the text. False: it is not text. */
static bool
add_text(const struct part *part, struct buf *body)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, lines = BUF_INIT;
	bool html = strcmp(part->type, "text/html") == 0;
	bool said = str_starts(str_of(part->type), "text/");

	if (!said || !charset_to_utf8(&text, str_of(part->charset), buf_str(&part->decoded)))
		buf_add(&text, buf_str(&part->decoded));
	if (!said && !utf8_text(buf_str(&text)))
		return false;
	crlf_to_lf(&lines, buf_str(&text));
	if (body->len > 0 && body->ptr[body->len - 1] != '\n')
		buf_addc(body, '\n');
	if (html)
		html_to_text(body, buf_str(&lines));
	else
		buf_add(body, buf_str(&lines));
	body->failed |= text.failed || lines.failed;
	return !html;
}

enum mr_rc
parts_read(struct mr_message *msg, uint64_t at, struct mr_error *err)
{
	mr_auto(parts_done) struct parts p;
	struct mr_str headers[] = { STR("Content-Type"), STR("Content-Transfer-Encoding"), STR("Content-Disposition") };

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		const char *value = mr_message_header(msg, headers[i].ptr);

		headers[i] = str_of(value ? value : "");
	}
	parts_begin(&p, headers[0], headers[1], headers[2], at);
	TRY(read_all(&p, msg, err));
	if (p.n == 0) {
		parts_done(&p);
		parts_begin(&p, STR("text/plain"), STR(""), STR(""), at);
		TRY(read_all(&p, msg, err));
	}
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct arena *own = msg->own;
	struct mr_attachment *attachments = arena_alloc(&own, (p.n + 1) * sizeof(*attachments)), *a = attachments;

	for (struct part *part = p.v; attachments && part < p.v + p.n; part++) {
		if (part->text && add_text(part, &body))
			continue;
		*a = (struct mr_attachment){ .name = arena_keep(&own, str_of(part->name), &p.failed),
			.type = arena_keep(&own, str_of(part->type), &p.failed),
			.size_bytes = part->size,
			.at = part->at,
			.stored_bytes = part->stored,
			.encoding = part->encoding };
		a++;
	}
	const char *text = arena_dup(&own, buf_str(&body));

	msg->own = own;
	TRY(mr_got(!p.failed && attachments && buf_ok(&body) && text, err));
	msg->body = text;
	msg->body_len = body.len;
	msg->attachments = attachments;
	msg->attachments_n = (size_t)(a - attachments);
	return MR_OK;
}
