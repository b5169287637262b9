/* SPDX-License-Identifier: MIT */
/*
 * parse.c - any bytes to a message. Other programs deliver into our folders, so any field may be missing, folded,
 * encoded, repeated or wrong; fields that cannot be understood are left out or left unchanged.
 *
 * Limits keep garbage cheap: only the first MiB of a header block is read, and the first 1,000 of its lines.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "message/header.h"
#include "message/message.h"
#include "message/parts.h"

enum { HEADER_LINES_MAX = 1000, HEADER_BYTES_MAX = 1 << 20 };

enum { FROM, TO, CC, LISTS, UNFOLDED = LISTS, CLEAN, DECODED, BUFS };

struct parser {
	struct mr_message m;
	struct arena *own;
	const char *room;
	struct mr_header *headers;
	size_t headers_cap;
	struct buf b[BUFS]; /* lists stay undecoded: a decoded name may have a comma or a bracket; scratch */
	bool nomem;
};

static void
parser_done(struct parser *p)
{
	for (size_t i = 0; i < BUFS; i++)
		buf_done(&p->b[i]);
}

static const char *
keep(struct parser *p, struct mr_str s)
{
	return arena_keep(&p->own, s, &p->nomem);
}

/* ---- Header lines ---- */

static void
note_address(struct parser *p, struct mr_str name, struct mr_str value)
{
	static const char *const lists[LISTS] = { "From", "To", "Cc" };

	for (size_t i = 0; i < LISTS; i++) {
		if (!str_caseeq(name, str_of(lists[i])))
			continue;
		buf_adds(&p->b[i], p->b[i].len > 0 ? ", " : "");
		buf_add(&p->b[i], value);
	}
}

/* Cleans the text of one buffer into another. */
static struct mr_str
cleaned(struct parser *p, const struct buf *foreign)
{
	buf_clear(&p->b[CLEAN]);
	header_clean(&p->b[CLEAN], buf_str(foreign));
	return str_trim(buf_str(&p->b[CLEAN]));
}

static void
take_header(struct parser *p, const struct header_line *line)
{
	if (!arena_grow(&p->own, &p->headers, p->m.headers_n, &p->headers_cap, sizeof(*p->headers))) {
		p->nomem = true;
		return;
	}
	buf_clear(&p->b[UNFOLDED]);
	header_unfold(&p->b[UNFOLDED], line->raw);
	struct mr_str value = cleaned(p, &p->b[UNFOLDED]);

	note_address(p, line->name, value);
	/* Only free text has encoded words; ids, dates and our own headers are literal. */
	if (!str_casestarts(line->name, "Mailroom-") &&
	    !str_is_among(line->name, "References In-Reply-To Message-ID Date", " ")) {
		/* Decoded text is as foreign as the rest: it must not bring in a line break. */
		buf_clear(&p->b[DECODED]);
		encoded_words_decode(&p->b[DECODED], buf_str(&p->b[UNFOLDED]));
		value = cleaned(p, &p->b[DECODED]);
	}
	p->headers[p->m.headers_n++] = (struct mr_header){ keep(p, line->name), keep(p, value) };
}

/* ---- Addresses ---- */

static void
take_list(struct parser *p, const struct buf *value, struct mr_names *ret)
{
	struct address_list list = address_list(buf_str(value));
	size_t cap = 0;

	*ret = (struct mr_names){ 0 };
	for (struct mr_str address, agent, room; !p->nomem && address_next(&list, &address);) {
		address_split(address, &agent, &room);
		bool here = room.len > 0 && str_caseeq(room, str_of(p->room)) && agent.len > 0 &&
			    str_find(agent, '@') == agent.len;
		bool grown = arena_grow(&p->own, &ret->v, ret->n, &cap, sizeof(*ret->v));

		if (grown && (ret->v[ret->n] = arena_dup(&p->own, here ? agent : address)))
			ret->n++;
		else
			p->nomem = true;
	}
}

/* ---- Fields ---- */

static struct mr_str
value_of(const struct parser *p, const char *name)
{
	const char *value = mr_message_header(&p->m, name);
	return value ? str_of(value) : STR("");
}

static enum mr_priority
priority_of(const struct parser *p)
{
	struct mr_str ours = value_of(p, "Mailroom-Priority");
	struct mr_str number = value_of(p, "X-Priority");
	struct mr_str importance = value_of(p, "Importance");
	enum mr_priority priority = MR_NORMAL;

	if (ours.len > 0)
		(void)mr_priority_parse(ours.ptr, &priority, IGNORED);
	else if (number.len > 0)
		priority = number.ptr[0] == '1'   ? MR_URGENT
			   : number.ptr[0] == '2' ? MR_HIGH
			   : number.ptr[0] == '4' || number.ptr[0] == '5'
			       ? MR_LOW
			       : MR_NORMAL; /* "1 (Highest)" to "5 (Lowest)" */
	else if (str_caseeq(importance, STR("high")))
		priority = MR_HIGH;
	else if (str_caseeq(importance, STR("low")))
		priority = MR_LOW;
	return priority;
}

static void
take_fields(struct parser *p)
{
	struct mr_message *m = &p->m;
	struct mr_str id = msgid_inner(value_of(p, "Message-ID"), p->room);
	struct mr_names from;

	if (!m->id[0] && id_valid(id))
		memcpy(m->id, id.ptr, MR_ID_LEN); /* its last byte is zero already */
	take_list(p, &p->b[FROM], &from);
	take_list(p, &p->b[TO], &m->to);
	take_list(p, &p->b[CC], &m->cc);
	m->from = from.n > 0 && from.v ? from.v[0] : "";
	m->subject = keep(p, value_of(p, "Subject"));
	m->type = keep(p, value_of(p, "Mailroom-Type"));
	m->replace_key = keep(p, value_of(p, "Mailroom-Replace-Key"));
	m->priority = priority_of(p);
	m->path = m->path ? m->path : "";
	struct mr_str answered = msgid_inner(value_of(p, "In-Reply-To"), p->room);
	struct mr_str thread = value_of(p, "Mailroom-Thread");

	if (thread.len == 0)
		thread = msgid_inner(value_of(p, "References"), p->room);
	if (thread.len == 0)
		thread = answered;
	if (thread.len == 0) /* of mail that starts a thread: the id that every answer will refer to */
		thread = id;
	m->reply_to = keep(p, answered);
	m->thread = keep(p, thread.len > 0 ? thread : str_of(m->id));

	uint64_t life;

	if (!time_parse_rfc5322(value_of(p, "Date"), &m->date_ms))
		m->date_ms = id_valid(str_of(m->id)) ? id_time_ms(m->id) : 0;
	if (!time_parse_rfc3339(value_of(p, "Mailroom-By"), &m->by_ms))
		m->by_ms = 0;
	if (!time_parse_rfc3339(value_of(p, "Mailroom-Not-Before"), &m->not_before_ms))
		m->not_before_ms = 0;
	m->sender_life = str_to_u64(value_of(p, "Mailroom-Life"), &life) && life <= UINT32_MAX ? (unsigned)life : 0;
}

/* Content that was parsed in memory stays there; its arena frees it. */
struct in_memory {
	struct mr_content is;
	struct mr_str raw;
};

static enum mr_rc
memory_read(const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct in_memory *m = (const struct in_memory *)content;
	uint64_t skip = at > content->at ? at - content->at : 0, left = skip < m->raw.len ? m->raw.len - skip : 0;

	return left == 0 ? MR_OK : to(ctx, (struct mr_str){ m->raw.ptr + skip, (size_t)(n < left ? n : left) }, err);
}

static void
take_body(struct parser *p, struct mr_str text, struct mr_str raw)
{
	struct mr_str type = value_of(p, "Content-Type"), encoding = value_of(p, "Content-Transfer-Encoding");

	if (parts_needed(type)) {
		struct in_memory *m = arena_alloc(&p->own, sizeof(*m));

		p->nomem |= !m;
		if (!m)
			return;
		*m = (struct in_memory){ .is = { .type = keep(p, type),
					     .encoding = keep(p, encoding),
					     .read = memory_read,
					     .at = (uint64_t)(raw.ptr - text.ptr) },
			.raw = { keep(p, raw), raw.len } };
		p->m.content = &m->is;
		p->m.own = p->own;
		p->nomem |= parts_read(&p->m, m->is.at, IGNORED) != MR_OK;
		p->own = p->m.own;
		return;
	}

	mr_auto(buf_done) struct buf decoded = BUF_INIT;
	struct body_kind kind = body_kind_of(type, encoding);

	/* A writer that ends header lines with CRLF does the same in the body; in our own files a CR is text. */
	const char *lf = memchr(text.ptr, '\n', text.len);
	kind.crlf = lf && lf > text.ptr && lf[-1] == '\r';
	struct mr_str body = body_decode(&kind, raw, &decoded) ? buf_str(&decoded) : raw;

	p->nomem |= !buf_ok(&decoded);
	p->m.body = keep(p, body);
	p->m.body_len = body.len;
}

enum mr_rc
message_parse(
    struct mr_str text, const char *room, enum message_part part, struct mr_message *msg, struct mr_error *err)
{
	mr_auto(parser_done) struct parser p = { .m = *msg, .own = msg->own, .room = room };
	char first[BUFS][200];

	for (size_t i = 0; i < BUFS; i++)
		p.b[i] = BUF_IN(first[i]);
	p.m.headers_n = 0;
	p.m.body = NULL;
	p.m.body_len = 0;
	p.m.attachments = NULL;
	p.m.attachments_n = 0;
	p.m.content = NULL;
	struct mr_str head = { text.ptr, text.len < HEADER_BYTES_MAX ? text.len : HEADER_BYTES_MAX };
	struct header_cursor c = header_begin(head);

	for (struct header_line line; header_next(&c, &line);)
		if (p.m.headers_n < HEADER_LINES_MAX)
			take_header(&p, &line);
	p.m.headers = p.headers;
	size_t used = c.ended ? (size_t)(c.rest.ptr - text.ptr) : head.len;
	/* The part after the first empty line. */
	struct mr_str raw_body = text.len > 0 ? str_from(text, used) : text;
	bool empty = p.m.headers_n == 0;
	if (!empty) {
		take_fields(&p);
		if (part == MESSAGE_ALL)
			take_body(&p, text, raw_body);
	}
	for (size_t i = 0; i < BUFS; i++)
		p.nomem |= p.b[i].failed;
	if (p.nomem || empty) {
		if (msg->own)
			msg->own = p.own; /* it grew; the caller still owns it */
		else
			arena_free(p.own);
		return p.nomem ? mr_nomem(err) : mr_fail(err, MR_CORRUPT, "not a message: there is no header line");
	}
	if (p.m.size_bytes < text.len)
		p.m.size_bytes = text.len;
	p.m.own = p.own;
	*msg = p.m;
	return MR_OK;
}

size_t
message_body_at(struct mr_str text)
{
	struct mr_str head = { text.ptr, text.len < HEADER_BYTES_MAX ? text.len : HEADER_BYTES_MAX };
	struct header_cursor c = header_begin(head);

	for (struct header_line line; header_next(&c, &line);)
		continue;
	return c.ended ? (size_t)(c.rest.ptr - text.ptr) : head.len;
}

bool
message_headers_complete(struct mr_str text)
{
	struct mr_str line;

	if (text.len >= HEADER_BYTES_MAX)
		return true;
	while (str_line(&text, &line))
		if (line.len == 0 && text.ptr[-1] == '\n')
			return true;
	return false;
}
