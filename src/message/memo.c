/* SPDX-License-Identifier: MIT */
/* memo.c - reading and writing the message file of a workspace mailbox. See memo.h. */
#include "message/memo.h"

#include "base/error.h"
#include "base/text.h"
#include "message/front.h"
#include "message/message.h"

static const char *const keys[] = { "REQUEST_ID", "MESSAGE_TYPE", "CHANNEL_ID", "RECEIVER_INBOX_PATH",
	"REPLY_INBOX_PATH" };

bool
memo_key_unknown(struct mr_str key)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (str_eq(key, str_of(keys[i])))
			return false;
	return true;
}

bool
memo_id_safe(struct mr_str id)
{
	if (id.len == 0 || id.len > 200 || id.ptr[0] == '.')
		return false;
	for (size_t i = 0; i < id.len; i++) {
		char c = id.ptr[i];

		if (!ascii_alnum(c) && c != '.' && c != '_' && c != '-')
			return false;
	}
	return true;
}

const char *
memo_value_problem(struct mr_str value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
			return "has a control character";
	return utf8_valid(value) ? NULL : "is not UTF-8";
}

/* ---- Reading ---- */

/* The value of a known key; some writers put it in quotes. */
static struct mr_str
known_value(struct mr_str head, const char *key, bool *quoted)
{
	struct mr_str value = STR("");

	if (!front_get(head, key, &value) || value.len < 2)
		return value;
	char first = value.ptr[0];

	if ((first != '"' && first != '\'') || value.ptr[value.len - 1] != first)
		return value;
	*quoted = true;
	return str_trim((struct mr_str){ value.ptr + 1, value.len - 2 });
}

bool
memo_unfinished(struct mr_str text)
{
	struct front front;
	struct mr_str rest = text, line;

	return str_line(&rest, &line) && str_eq(line, STR("---")) && !front_split(text, &front);
}

const char *
memo_parse(struct mr_str text, struct memo *ret)
{
	struct front front;
	struct memo memo = { 0 };

	if (memo_unfinished(text))
		return "has front matter without an end";
	if (!front_split(text, &front))
		return "has no front matter";
	struct mr_str type = known_value(front.head, "MESSAGE_TYPE", &memo.quoted);

	memo.head = front.head;
	memo.request_id = known_value(front.head, "REQUEST_ID", &memo.quoted);
	memo.channel = known_value(front.head, "CHANNEL_ID", &memo.quoted);
	memo.receiver = known_value(front.head, "RECEIVER_INBOX_PATH", &memo.quoted);
	memo.reply = known_value(front.head, "REPLY_INBOX_PATH", &memo.quoted);
	/* At most one empty line is between the front matter and the text. */
	struct mr_str rest = front.body, line;

	memo.body = str_line(&rest, &line) && line.len == 0 ? rest : front.body;
	memo.is_reply = str_eq(type, STR("REPLY"));
	if (memo.request_id.len == 0)
		return "has no REQUEST_ID";
	if (!memo_id_safe(memo.request_id))
		return "has a REQUEST_ID that cannot be a file's name";
	if (!memo.is_reply && !str_eq(type, STR("NEW")))
		return "has a MESSAGE_TYPE that is neither NEW nor REPLY";
	*ret = memo;
	return NULL;
}

/* A heading is the whole subject; of any other text the first line is used. */
void
memo_subject(struct buf *out, struct mr_str body)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;
	struct mr_str rest = body, line;

	while (str_line(&rest, &line) && str_trim(line).len == 0)
		body = rest;
	if (!str_starts(body, "# ")) {
		subject_from_body(out, body);
		return;
	}
	(void)str_line(&body, &line);
	text_clean_line(&clean, utf8_cut(str_from(line, 2), 900));
	buf_add(out, str_trim(buf_str(&clean)));
}

/* ---- Writing ---- */

static bool
is_space(uint32_t c)
{
	return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static struct mr_str
without_space_at_end(struct mr_str s)
{
	while (s.len > 0) {
		size_t n = 1;
		uint32_t c = 0;

		while (n < 4 && n < s.len && utf8_next(str_from(s, s.len - n), &c) != n)
			n++;
		/* A byte that is not UTF-8 counts as a character. */
		if (utf8_next(str_from(s, s.len - n), &c) != n || !is_space(c))
			break;
		s.len -= n;
	}
	return s;
}

static void
add_line(struct buf *out, const char *key, struct mr_str value)
{
	buf_addf(out, "%s: ", key);
	buf_add(out, value);
	buf_addc(out, '\n');
}

void
memo_write(struct buf *out, const struct memo *memo)
{
	size_t start = out->len;

	buf_adds(out, "---\n");
	add_line(out, keys[0], memo->request_id);
	add_line(out, keys[1], memo->is_reply ? STR("REPLY") : STR("NEW"));
	if (memo->channel.len > 0)
		add_line(out, keys[2], memo->channel);
	add_line(out, keys[3], memo->receiver);
	add_line(out, keys[4], memo->reply);
	buf_adds(out, "---\n\n");
	buf_add(out, memo->body);
	if (!buf_ok(out))
		return;
	out->len = start + without_space_at_end(str_from(buf_str(out), start)).len;
	buf_addc(out, '\n');
}
