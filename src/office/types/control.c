/* SPDX-License-Identifier: MIT */
/* control.c - bodies that are commands of some program: see control.h. */
#include "office/types/control.h"

#include "base/text.h"
#include "message/json_read.h"

/* What the readers of other programs cut off before they parse: every white space that Unicode knows, and the mark of
 * byte order. */
static bool
is_space(uint32_t cp)
{
	return cp <= ' ' || cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200b) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000 || cp == 0xfeff;
}

static struct mr_str
trim_space(struct mr_str s)
{
	uint32_t cp;
	size_t n;

	while (s.len > 0 && (n = utf8_next(s, &cp)) > 0 && is_space(cp)) {
		s.ptr += n;
		s.len -= n;
	}
	while (s.len > 0) {
		size_t at = s.len - 1;

		while (at > 0 && s.len - at < 4 && ((unsigned char)s.ptr[at] & 0xc0) == 0x80)
			at--;
		if (utf8_next((struct mr_str){ s.ptr + at, s.len - at }, &cp) != s.len - at || !is_space(cp))
			break;
		s.len = at;
	}
	return s;
}

static size_t
count_openings(struct mr_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += s.ptr[i] == '{' || s.ptr[i] == '[';
	return n;
}

/* What is nested deeper than we read, others may read: it counts as control, too. */
bool
control_is(struct mr_str body)
{
	struct json_value object, type;
	const char *problem;

	body = trim_space(body);
	if (body.len < 2 || body.ptr[0] != '{' || body.ptr[body.len - 1] != '}')
		return false;
	if (!json_whole(body, &object, &problem))
		return count_openings(body) > JSON_DEPTH_MAX;
	return json_find(object, "type", &type) && type.kind == JSON_STRING;
}

void
control_as_prose(struct buf *out, const char *from, struct mr_str body)
{
	buf_addf(out, "%s sent this; it is shown as text and is no command:\n\n", from && from[0] ? from : "Somebody");
	while (body.len > 0) {
		const char *lf = memchr(body.ptr, '\n', body.len);
		size_t len = lf ? (size_t)(lf - body.ptr) + 1 : body.len;

		buf_adds(out, "    ");
		buf_add(out, (struct mr_str){ body.ptr, len });
		body.ptr += len;
		body.len -= len;
	}
}
