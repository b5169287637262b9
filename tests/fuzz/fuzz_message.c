/* SPDX-License-Identifier: MIT */
/* Any bytes as a message: its fields are clean, headers alone give the same, and what can be written again is
 * read as the same. */
#include "fuzz.h"

#include "base/id.h"
#include "base/text.h"
#include "message/header.h"
#include "message/message.h"

#define OWN_ID "01k9w3b7zq8m4c2v6t1x5n0prs"
#define YEAR_9999_MS INT64_C(253402300799999)

static bool
is_date_writable(int64_t ms)
{
	return ms >= 0 && ms <= YEAR_9999_MS;
}

static void
check_clean(const struct mr_message *m)
{
	const char *const fields[] = { m->from, m->subject, m->type, m->thread, m->reply_to, m->replace_key, m->path };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		assert(fields[i] && !header_value_problem(str_of(fields[i])));
	for (size_t i = 0; i < m->to.n; i++)
		assert(m->to.v[i][0] && !header_value_problem(str_of(m->to.v[i])));
	for (size_t i = 0; i < m->cc.n; i++)
		assert(m->cc.v[i][0] && !header_value_problem(str_of(m->cc.v[i])));
	for (size_t i = 0; i < m->headers_n; i++) {
		assert(header_name_valid(str_of(m->headers[i].name)));
		assert(!header_value_problem(str_of(m->headers[i].value)));
	}
	assert(m->headers_n >= 1 && m->headers_n <= 1000);
	assert(!m->body || m->body[m->body_len] == '\0');
	assert(m->priority >= MR_LOW && m->priority <= MR_URGENT);
}

static void
check_same(const struct mr_message *a, const struct mr_message *b)
{
	assert(strcmp(a->id, b->id) == 0);
	assert(strcmp(a->from, b->from) == 0);
	assert(a->to.n == b->to.n && a->cc.n == b->cc.n);
	for (size_t i = 0; i < a->to.n; i++)
		assert(strcmp(a->to.v[i], b->to.v[i]) == 0);
	for (size_t i = 0; i < a->cc.n; i++)
		assert(strcmp(a->cc.v[i], b->cc.v[i]) == 0);
	assert(strcmp(a->subject, b->subject) == 0);
	assert(strcmp(a->type, b->type) == 0);
	assert(strcmp(a->thread, b->thread) == 0);
	assert(strcmp(a->reply_to, b->reply_to) == 0);
	assert(strcmp(a->replace_key, b->replace_key) == 0);
	assert(a->priority == b->priority);
	assert(a->sender_life == b->sender_life);
	if (is_date_writable(a->date_ms))
		assert(a->date_ms / 1000 == b->date_ms / 1000);
	if (is_date_writable(a->by_ms))
		assert(a->by_ms == b->by_ms);
	if (is_date_writable(a->not_before_ms))
		assert(a->not_before_ms == b->not_before_ms);
}

static void
check_body(const struct mr_message *a, const struct mr_message *b)
{
	bool text = !memchr(a->body, '\0', a->body_len) && utf8_valid((struct mr_str){ a->body, a->body_len });
	bool ends = a->body_len == 0 || !text || a->body[a->body_len - 1] == '\n';

	assert(b->body_len == a->body_len + !ends);
	assert(memcmp(a->body, b->body, a->body_len) == 0);
}

static void
write_again(const struct mr_message *m)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message back = { 0 };
	struct mr_message copy = *m;
	struct mr_error err = { 0 };

	copy.content = NULL; /* its text alone: fuzz_parts.c has the rest */
	copy.headers_n = 0;  /* those that we write are not to be given, the others are kept as they are */
	if (message_write(&copy, "town", &out, &err) != MR_OK) {
		assert(err.code == MR_REFUSED && err.message[0] && out.len == 0);
		return;
	}
	assert(message_headers_complete(buf_str(&out)));
	enum mr_rc rc = message_parse(buf_str(&out), "town", MESSAGE_ALL, &back, &err);
	assert(rc == MR_OK);
	check_same(m, &back);
	check_body(m, &back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(mr_message_done) struct mr_message all = { .id = OWN_ID };
	mr_auto(mr_message_done) struct mr_message head = { .id = OWN_ID };
	mr_auto(mr_message_done) struct mr_message nameless = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct mr_error err = { 0 };

	(void)message_headers_complete(text);
	subject_from_body(&subject, text);
	assert(!header_value_problem(buf_str(&subject)) && utf8_chars(buf_str(&subject)) <= 78);
	enum mr_rc rc = message_parse(text, "town", MESSAGE_ALL, &all, &err);
	assert(message_parse(text, "town", MESSAGE_HEADERS, &head, &err) == rc);
	assert(message_parse(text, "town", MESSAGE_HEADERS, &nameless, &err) == rc);
	if (rc != MR_OK) {
		assert(rc == MR_CORRUPT && !all.own && !head.own);
		return 0;
	}
	assert(nameless.id[0] == '\0' || id_valid(str_of(nameless.id)));
	assert(all.body && !head.body);
	check_clean(&all);
	check_same(&all, &head);
	buf_clear(&subject);
	subject_reply(&subject, str_of(all.subject));
	assert(str_starts(buf_str(&subject), "Re:") && !header_value_problem(buf_str(&subject)));
	char digest[65];
	message_digest(&all, digest);
	assert(strlen(digest) == 64);
	write_again(&all);
	return 0;
}
