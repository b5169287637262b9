/* SPDX-License-Identifier: MIT */
/* Any bytes as MIME: the parts are the same however the bytes come, each lies within the message and decodes to the
 * size that is told, and all limits hold. Bytes through the HTML reader, too. */
#include "fuzz.h"

#include "base/text.h"
#include "message/header.h"
#include "message/message.h"
#include "message/parts.h"

#define OWN_ID "01k9w3b7zq8m4c2v6t1x5n0prs"

static void
check_attachments(const struct mr_message *m, struct mr_str text)
{
	assert(m->attachments_n <= PARTS_MAX);
	for (size_t i = 0; i < m->attachments_n; i++) {
		const struct mr_attachment *a = &m->attachments[i];
		mr_auto(buf_done) struct buf out = BUF_INIT;
		struct decoder d = { .encoding = (enum body_encoding)a->encoding };

		assert(a->at <= text.len && a->stored_bytes <= text.len - a->at);
		assert(!header_value_problem(str_of(a->name)) && strlen(a->name) <= 255);
		assert(!header_value_problem(str_of(a->type)) && strchr(a->type, '/'));
		decoder_feed(&d, (struct mr_str){ text.ptr + a->at, (size_t)a->stored_bytes }, &out);
		decoder_end(&d, &out);
		assert(out.len == a->size_bytes);
	}
}

struct stepped { /* a content that comes in small pieces */
	struct mr_content is;
	struct mr_str text;
	size_t step;
};

static enum mr_rc
read_stepped(const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct stepped *s = (const struct stepped *)content;

	(void)n;
	for (size_t i = at; i < s->text.len; i += s->step) {
		size_t left = s->text.len - i;

		assert(to(ctx, (struct mr_str){ s->text.ptr + i, left < s->step ? left : s->step }, err) == MR_OK);
	}
	return MR_OK;
}

static void
check_pieces(const struct mr_message *m, struct mr_str text)
{
	size_t at = message_body_at(text);

	for (size_t step = 1; step < 64; step = step * 5 + 1) {
		struct stepped content = { .is = { .read = read_stepped, .at = at }, .text = text, .step = step };
		mr_auto(mr_message_done) struct mr_message again = { .headers = m->headers, .headers_n = m->headers_n };
		struct mr_error err = { 0 };

		again.content = &content.is;
		assert(parts_read(&again, at, &err) == MR_OK);
		assert(again.body_len == m->body_len && memcmp(again.body, m->body, m->body_len) == 0);
		assert(again.attachments_n == m->attachments_n);
		for (size_t i = 0; i < m->attachments_n; i++) {
			assert(again.attachments[i].at == m->attachments[i].at);
			assert(again.attachments[i].stored_bytes == m->attachments[i].stored_bytes);
			assert(again.attachments[i].size_bytes == m->attachments[i].size_bytes);
			assert(strcmp(again.attachments[i].name, m->attachments[i].name) == 0);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(mr_message_done) struct mr_message m = { .id = OWN_ID };
	mr_auto(buf_done) struct buf plain = BUF_INIT, param = BUF_INIT, clean = BUF_INIT;
	mr_auto(buf_done) struct buf written = BUF_INIT, unfolded = BUF_INIT, back = BUF_INIT;
	struct mr_error err = { 0 };

	html_to_text(&plain, text);
	assert(plain.len <= 8 * text.len + 1); /* "<img>" is the longest word for the shortest tag */
	(void)mime_param(&param, text, "filename");
	assert(param.len <= 4 * text.len);
	header_clean(&clean, text);
	if (clean.len > 0 && clean.len < 1000) {
		mime_add_param(&written, "filename", buf_str(&clean));
		header_unfold(&unfolded, buf_str(&written));
		(void)mime_param(&back, buf_str(&unfolded), "filename");
		assert(str_eq(buf_str(&back), buf_str(&clean)) || memmem(clean.ptr, clean.len, "=?", 2));
	}
	if (message_parse(text, "town", MESSAGE_ALL, &m, &err) != MR_OK || !m.content)
		return 0;
	check_attachments(&m, text);
	check_pieces(&m, text);
	return 0;
}
