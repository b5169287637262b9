/* SPDX-License-Identifier: MIT */
/* subject.c - subjects that we make ourselves. */
#include "base/error.h"
#include "base/text.h"
#include "message/message.h"

enum { SUBJECT_CHARS = 78 };

/* Bytes of "Re:", "re :" or "RE[2]:" at the start, 0 if there is none. */
static size_t
reply_prefix(struct mr_str s)
{
	size_t at = 2;

	if (s.len < 3 || !str_caseeq((struct mr_str){ s.ptr, 2 }, STR("re")))
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
		subject = str_trim((struct mr_str){ subject.ptr + n, subject.len - n });
	buf_adds(out, subject.len > 0 ? "Re: " : "Re:");
	buf_add(out, subject);
}

static struct mr_str
first_line(struct mr_str body)
{
	while (body.len > 0) {
		const char *lf = memchr(body.ptr, '\n', body.len);
		size_t len = lf ? (size_t)(lf - body.ptr) : body.len;
		struct mr_str line = { body.ptr, len };
		if (len > 0 && line.ptr[len - 1] == '\r')
			line.len--;
		line = str_trim(line);
		if (line.len > 0)
			return line;
		size_t taken = lf ? len + 1 : len;
		body.ptr += taken;
		body.len -= taken;
	}
	return body;
}

void
subject_from_body(struct buf *out, struct mr_str body)
{
	char first[400];
	mr_auto(buf_done) struct buf clean = BUF_IN(first);

	/* The cut comes first as well: a body may be one line of 16 MiB. */
	text_clean_line(&clean, utf8_cut(first_line(body), SUBJECT_CHARS + 1));
	struct mr_str line = str_trim(buf_str(&clean));
	if (utf8_chars(line) <= SUBJECT_CHARS) {
		buf_add(out, line);
		return;
	}
	buf_add(out, str_trim(utf8_cut(line, SUBJECT_CHARS - 1)));
	buf_adds(out, "…");
}
