/* SPDX-License-Identifier: MIT */
/* write.c - a message as the format has it: keys in order, two spaces, one line end; and the one change that a message
 * ever sees, of "read", in which every other byte stays as somebody wrote it. */
#include "rooms/chipset/chipset.h"

static void
add_member(struct buf *out, const char *key, struct mr_str value)
{
	buf_addf(out, "%s  \"%s\": ", out->len > 2 ? ",\n" : "", key);
	json_stringify(out, value);
}

/* The format has no word for "high": chipset_lacks tells, and whoever asks all the same gets what is nearest. */
static const char *
priority_word(enum mr_priority priority)
{
	if (priority == MR_LOW)
		return "low";
	return priority == MR_URGENT ? "urgent" : "normal";
}

/* Keys in ascending order. */
void
chipset_write(struct buf *out, const struct mr_message *msg, const struct chipset_words *words)
{
	char stamp[RFC3339_LEN + 1];

	time_rfc3339(words->ms, stamp);
	buf_adds(out, "{\n");
	add_member(out, "body", (struct mr_str){ msg->body ? msg->body : "", msg->body ? msg->body_len : 0 });
	add_member(out, "from", str_of(words->from));
	if (msg->reply_to[0])
		add_member(out, "in_reply_to", str_of(msg->reply_to));
	if (words->imported[0])
		add_member(out, "mailroom_id", str_of(words->imported));
	add_member(out, "priority", str_of(priority_word(msg->priority)));
	buf_addf(out, ",\n  \"read\": %s", words->read ? "true" : "false");
	add_member(out, "subject", str_of(msg->subject));
	add_member(out, "timestamp", str_of(stamp));
	add_member(out, "to", str_of(words->to));
	add_member(out, "type", str_of(msg->type[0] ? msg->type : "coordination"));
	buf_adds(out, "\n}\n");
}

/* ---- The change of "read" ---- */

struct last_member { /* of the object; key.raw.ptr NULL: it has none */
	struct json_value key, value;
};

static struct last_member
last_of(struct json_value object)
{
	struct last_member last = { 0 };
	struct json_value key, value;

	for (size_t at = 0; json_member(object, &at, &key, &value);)
		last = (struct last_member){ key, value };
	return last;
}

/* Behind the last member, with the white space that stands before that one. */
static void
append_read(struct mr_str text, struct json_value object, const char *word, struct buf *out)
{
	struct last_member last = last_of(object);
	const char *end = text.ptr + text.len, *begin = object.raw.ptr + 1;

	if (last.key.raw.ptr) {
		const char *gap = last.key.raw.ptr;

		while (gap > begin && (gap[-1] == ' ' || gap[-1] == '\t' || gap[-1] == '\n' || gap[-1] == '\r'))
			gap--;
		begin = last.value.raw.ptr + last.value.raw.len;
		buf_add(out, (struct mr_str){ text.ptr, (size_t)(begin - text.ptr) });
		buf_addc(out, ',');
		buf_add(out, (struct mr_str){ gap, (size_t)(last.key.raw.ptr - gap) });
	} else {
		buf_add(out, (struct mr_str){ text.ptr, (size_t)(begin - text.ptr) });
	}
	buf_addf(out, "\"read\": %s", word);
	buf_add(out, (struct mr_str){ begin, (size_t)(end - begin) });
}

bool
chipset_set_read(struct mr_str text, struct json_value object, bool read, struct buf *out)
{
	const char *word = read ? "true" : "false";
	struct json_value now;

	if (chipset_is_read(object) == read)
		return false;
	if (!json_find(object, "read", &now)) {
		append_read(text, object, word, out);
		return true;
	}
	size_t before = (size_t)(now.raw.ptr - text.ptr), after = before + now.raw.len;

	buf_add(out, (struct mr_str){ text.ptr, before });
	buf_adds(out, word);
	buf_add(out, (struct mr_str){ text.ptr + after, text.len - after });
	return true;
}
