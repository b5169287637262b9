/* SPDX-License-Identifier: MIT */
/*
 * transcript.c - whom did a worker write to last? By the rule of the original (mailroom-teams(5)): from the end of the
 * record back to the last prompt, which is a user's entry whose content is a plain string; in an entry of the
 * assistant the first call of SendMessage that has a string for `to` and for `message`, and goes neither to everybody
 * nor to the lead.
 */
#include "cli/hook/hook.h"

#include "message/json_read.h"

#define SUMMARY_UNITS 80 /* of UTF-16, as JavaScript counts */

static bool
text_is(struct json_value object, const char *key, const char *want)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	return json_find_text(object, key, &text) && strcmp(buf_z(&text), want) == 0;
}

/* Half of a pair at the end becomes what json_text makes of it everywhere: U+FFFD. */
static void
add_units(struct buf *out, struct mr_str text, size_t units)
{
	for (size_t at = 0; at < text.len && units > 0;) {
		unsigned char c = (unsigned char)text.ptr[at];
		size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		if (len > text.len - at)
			len = text.len - at;
		if (len == 4 && units == 1) {
			buf_adds(out, "\xEF\xBF\xBD");
			return;
		}
		buf_add(out, (struct mr_str){ text.ptr + at, len });
		units -= len == 4 ? 2 : 1;
		at += len;
	}
}

static bool
add_if_to_peer(struct json_value block, const char *lead, struct buf *out)
{
	mr_auto(buf_done) struct buf to = BUF_INIT, message = BUF_INIT, summary = BUF_INIT;
	struct json_value input;

	if (!text_is(block, "type", "tool_use") || !text_is(block, "name", "SendMessage") ||
	    !json_find(block, "input", &input) || !json_find_text(input, "to", &to) ||
	    !json_find_text(input, "message", &message) || strcmp(buf_z(&to), "*") == 0 ||
	    ascii_caseeq(buf_z(&to), lead))
		return false;
	buf_addf(out, "[to %s] ", buf_z(&to));
	if (json_find_text(input, "summary", &summary))
		buf_add(out, buf_str(&summary));
	else
		add_units(out, buf_str(&message), SUMMARY_UNITS);
	return true;
}

enum entry { ENTRY_OTHER, ENTRY_PROMPT, ENTRY_FOUND };

static enum entry
judge(struct mr_str line, const char *lead, struct buf *out)
{
	struct json_value entry, message, content, block;
	const char *problem = NULL;
	size_t at = 0;

	if (!json_whole(line, &entry, &problem) || !json_find(entry, "message", &message) ||
	    !json_find(message, "content", &content))
		return ENTRY_OTHER;
	if (text_is(entry, "type", "user") && content.kind == JSON_STRING)
		return ENTRY_PROMPT;
	if (!text_is(entry, "type", "assistant") || content.kind != JSON_ARRAY)
		return ENTRY_OTHER;
	while (json_item(content, &at, &block))
		if (add_if_to_peer(block, lead, out))
			return ENTRY_FOUND;
	return ENTRY_OTHER;
}

bool
transcript_last_peer(struct mr_str text, const char *lead, struct buf *out)
{
	while (text.len > 0) {
		size_t begin = text.len;

		while (begin > 0 && text.ptr[begin - 1] != '\n')
			begin--;
		struct mr_str line = { text.ptr + begin, text.len - begin };
		enum entry entry = line.len > 0 ? judge(line, lead, out) : ENTRY_OTHER;

		if (entry != ENTRY_OTHER)
			return entry == ENTRY_FOUND;
		text.len = begin > 0 ? begin - 1 : 0;
	}
	return false;
}
