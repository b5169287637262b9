/* SPDX-License-Identifier: MIT */
/* message.c - small functions on a message, its digest, copies, and subjects that mailroom makes. */
#include "message/message.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include <inttypes.h>

static const char *const priorities[] = { "low", "normal", "high", "urgent" }; /* from MR_LOW on */
enum { PRIORITIES = sizeof(priorities) / sizeof(*priorities) };

void
mr_message_done(struct mr_message *msg)
{
	if (!msg)
		return;
	if (msg->own && msg->content && msg->content->free)
		msg->content->free(msg->content);
	arena_free(msg->own);
	*msg = (struct mr_message){ 0 };
}

const char *
mr_message_header(const struct mr_message *msg, const char *name)
{
	for (size_t i = 0; i < msg->headers_n; i++)
		if (ascii_caseeq(msg->headers[i].name, name))
			return msg->headers[i].value;
	return NULL;
}

const char *
mr_priority_word(enum mr_priority priority)
{
	size_t i = (size_t)priority - (size_t)MR_LOW;

	return i < PRIORITIES ? priorities[i] : "normal";
}

enum mr_rc
mr_priority_parse(const char *word, enum mr_priority *ret, struct mr_error *err)
{
	for (int i = 0; i < PRIORITIES; i++)
		if (ascii_caseeq(priorities[i], word)) {
			*ret = (enum mr_priority)(MR_LOW + i);
			return MR_OK;
		}
	return mr_fail(err, MR_REFUSED, "'%.40s' is not a priority\nuse urgent, high, normal or low", word);
}

struct mr_str
msgid_inner(struct mr_str value, const char *room)
{
	struct mr_str inner = str_trim(value), rest = inner;
	size_t open = str_find(value, '<');

	if (open < value.len) {
		inner = str_from(value, open + 1);
		inner = str_trim(str_first(inner, str_find(inner, '>')));
	} else if (str_word(&rest, " \t", &inner)) {
		/* "Your message of Monday" is not an id, "a@b c@d" begins with one. */
		if (rest.len > 0 && str_find(inner, '@') == inner.len)
			inner.len = 0;
		size_t len = room ? strlen(room) : 0; /* typed: "v6t1x5@town" */

		if (len > 0 && inner.len > len + 1 && str_ends(inner, room) && inner.ptr[inner.len - len - 1] == '@')
			inner.len -= len + 1;
	}
	/* A ULID is accepted with any room: threads go on when mail is carried. */
	if (inner.len > MR_ID_LEN && inner.ptr[MR_ID_LEN] == '@' && id_valid(str_first(inner, MR_ID_LEN)))
		inner.len = MR_ID_LEN;
	return inner;
}

/* Each piece is preceded by its length, so that no two different messages feed the same bytes. */
static void
feed(struct sha256 *hash, struct mr_str s)
{
	char length[24];

	size_t n = text_number(length, s.len, 0);

	length[n++] = ':';
	sha256_add(hash, (struct mr_str){ length, n });
	sha256_add(hash, s);
}

static void
feed_z(struct sha256 *hash, const char *z)
{
	feed(hash, z ? str_of(z) : STR(""));
}

static void
feed_number(struct sha256 *hash, int64_t number)
{
	char text[24];
	(void)snprintf(text, sizeof(text), "%" PRId64, number);
	feed(hash, str_of(text));
}

static void
feed_names(struct sha256 *hash, const struct mr_names *names)
{
	feed_number(hash, (int64_t)names->n);
	for (size_t i = 0; i < names->n; i++)
		feed_z(hash, names->v[i]);
}

static enum mr_rc
feed_content(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	(void)err;
	sha256_add(ctx, bytes);
	return MR_OK;
}

void
message_digest(const struct mr_message *msg, char ret[65])
{
	struct sha256 hash;

	sha256_init(&hash);
	feed_z(&hash, msg->from);
	feed_names(&hash, &msg->to);
	feed_names(&hash, &msg->cc);
	feed_z(&hash, msg->subject);
	feed_z(&hash, msg->type);
	feed_number(&hash, msg->priority);
	/* A thread that the message starts is its id, and a retry has another id. */
	feed_z(&hash, msg->thread && strcmp(msg->thread, msg->id) == 0 ? "" : msg->thread);
	feed_z(&hash, msg->reply_to);
	feed_z(&hash, msg->replace_key);
	feed_number(&hash, (int64_t)msg->headers_n);
	for (size_t i = 0; i < msg->headers_n; i++) {
		feed_z(&hash, msg->headers[i].name);
		feed_z(&hash, msg->headers[i].value);
	}
	feed(&hash, (struct mr_str){ msg->body, msg->body ? msg->body_len : 0 });
	bool whole = message_write_content(msg, feed_content, &hash, IGNORED) == MR_OK;

	sha256_end_hex(&hash, ret);
	ret[0] = whole ? ret[0] : '\0';
}

/* ---- Copies, with an arena of their own ---- */

struct copying {
	struct arena *own;
	bool failed; /* out of memory */
};

static const char *
copy_text(struct copying *c, const char *text)
{
	return arena_keep(&c->own, str_of(text ? text : ""), &c->failed);
}

static void
copy_names(struct copying *c, const struct mr_names *from, struct mr_names *to)
{
	*to = (struct mr_names){ 0 };
	if (from->n == 0)
		return;
	to->v = arena_alloc(&c->own, from->n * sizeof(*to->v));
	c->failed |= !to->v;
	for (; to->v && to->n < from->n; to->n++) {
		to->v[to->n] = arena_dup(&c->own, str_of(from->v[to->n]));
		c->failed |= !to->v[to->n];
	}
}

/* NULL if there are none. */
static const struct mr_header *
copy_headers(struct copying *c, const struct mr_header *from, size_t n)
{
	struct mr_header *headers = n > 0 ? arena_alloc(&c->own, n * sizeof(*headers)) : NULL;

	c->failed |= n > 0 && !headers;
	for (size_t i = 0; headers && i < n; i++) {
		headers[i].name = copy_text(c, from[i].name);
		headers[i].value = copy_text(c, from[i].value);
	}
	return headers;
}

struct mr_message
message_blank(const char *id)
{
	struct mr_message msg = {
		.from = "", .subject = "", .type = "", .thread = "", .reply_to = "", .replace_key = "", .path = ""
	};

	text_join(msg.id, sizeof msg.id, id, NULL);
	return msg;
}

struct mr_message
message_new(const char *from, const char *subject, struct mr_str body)
{
	struct mr_message msg = message_blank("");

	msg.from = from;
	msg.subject = subject;
	msg.date_ms = clock_now_ms();
	msg.body = body.ptr;
	msg.body_len = body.len;
	id_new(msg.id);
	return msg;
}

enum mr_rc
message_copy(const struct mr_message *from, struct mr_message *ret, struct mr_error *err)
{
	struct copying c = { 0 };
	struct mr_message to = *from;

	const char **texts[] = { &to.from, &to.subject, &to.type, &to.thread, &to.reply_to, &to.replace_key, &to.path };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = copy_text(&c, *texts[i]);
	copy_names(&c, &from->to, &to.to);
	copy_names(&c, &from->cc, &to.cc);
	to.headers = copy_headers(&c, from->headers, from->headers_n);
	to.envelope = copy_headers(&c, from->envelope, from->envelope_n);
	struct mr_attachment *attachments = arena_alloc(&c.own, (from->attachments_n + 1) * sizeof(*attachments));

	for (size_t i = 0; attachments && i < from->attachments_n; i++) {
		attachments[i] = from->attachments[i];
		attachments[i].name = copy_text(&c, from->attachments[i].name);
		attachments[i].type = copy_text(&c, from->attachments[i].type);
	}
	c.failed |= !attachments;
	to.attachments = attachments;
	to.content = NULL; /* a copy is for display, not for writing */
	if (from->body)
		to.body = arena_keep(&c.own, (struct mr_str){ from->body, from->body_len }, &c.failed);
	if (c.failed) {
		arena_free(c.own);
		return mr_nomem(err);
	}
	to.own = c.own;
	*ret = to;
	return MR_OK;
}

/* ---- Subjects ---- */

enum { SUBJECT_CHARS = 78 };

/* Bytes of "Re:", "re :" or "RE[2]:" at the start, 0 if there is none. */
static size_t
reply_prefix(struct mr_str s)
{
	size_t at = 2;

	if (s.len < 3 || !str_casestarts(s, "re"))
		return 0;
	if (s.ptr[at] == '[') {
		do
			at++;
		while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9');
		if (at == 3 || at >= s.len || s.ptr[at] != ']')
			return 0;
		at++;
	}
	while (at < s.len && s.ptr[at] == ' ')
		at++;
	return at < s.len && s.ptr[at] == ':' ? at + 1 : 0;
}

void
subject_reply(struct buf *out, struct mr_str subject)
{
	size_t n;

	subject = str_trim(subject);
	while ((n = reply_prefix(subject)) > 0)
		subject = str_trim(str_from(subject, n));
	buf_adds(out, subject.len > 0 ? "Re: " : "Re:");
	buf_add(out, subject);
}

void
subject_from_body(struct buf *out, struct mr_str body)
{
	char first[400];
	mr_auto(buf_done) struct buf clean = BUF_IN(first);
	struct mr_str line = STR("");

	while (line.len == 0 && str_line(&body, &line))
		line = str_trim(line);

	if (line.len <= SUBJECT_CHARS && ascii_run(line, 0x7F, 0x7F) == line.len) { /* as nearly all are */
		buf_add(out, line);
		return;
	}
	/* Cut first, because a body may be one line of 16 MiB. */
	text_clean_line(&clean, utf8_cut(line, SUBJECT_CHARS + 1));
	line = str_trim(buf_str(&clean));
	if (utf8_cut(line, SUBJECT_CHARS).len == line.len) {
		buf_add(out, line);
		return;
	}
	buf_add(out, str_trim(utf8_cut(line, SUBJECT_CHARS - 1)));
	buf_adds(out, "…");
}
