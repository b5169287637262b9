/* SPDX-License-Identifier: MIT */
/* message.c - small questions to a message, and its digest. */
#include "message/message.h"

#include "base/error.h"
#include "base/id.h"
#include <inttypes.h>

static const struct {
	const char *word;
	enum mr_priority is;
} priorities[] = {
	{ "urgent", MR_URGENT },
	{ "high", MR_HIGH },
	{ "normal", MR_NORMAL },
	{ "low", MR_LOW },
};
enum { PRIORITIES = sizeof(priorities) / sizeof(*priorities) };

void
mr_message_done(struct mr_message *msg)
{
	if (!msg)
		return;
	arena_free(msg->own);
	*msg = (struct mr_message){ 0 };
}

const char *
mr_message_header(const struct mr_message *msg, const char *name)
{
	for (size_t i = 0; i < msg->headers_n; i++) {
		if (ascii_caseeq(msg->headers[i].name, name))
			return msg->headers[i].value;
	}
	return NULL;
}

const char *
mr_priority_word(enum mr_priority priority)
{
	for (size_t i = 0; i < PRIORITIES; i++) {
		if (priorities[i].is == priority)
			return priorities[i].word;
	}
	return "normal";
}

enum mr_rc
mr_priority_parse(const char *word, enum mr_priority *ret, struct mr_error *err)
{
	for (size_t i = 0; i < PRIORITIES; i++) {
		if (ascii_caseeq(priorities[i].word, word)) {
			*ret = priorities[i].is;
			return MR_OK;
		}
	}
	return mr_fail(err, MR_REFUSED, "'%.40s' is not a priority\nuse urgent, high, normal or low", word);
}

struct mr_str
msgid_inner(struct mr_str value, const char *room)
{
	const char *open = value.len > 0 ? memchr(value.ptr, '<', value.len) : NULL;
	struct mr_str inner = str_trim(value);

	if (open) {
		const char *start = open + 1, *end = value.ptr + value.len;
		const char *close = memchr(start, '>', (size_t)(end - start));
		inner = str_trim((struct mr_str){ start, (size_t)((close ? close : end) - start) });
	} else {
		/* "Your message of Monday" is no id, "a@b c@d" begins with one. */
		size_t n = 0;
		while (n < inner.len && inner.ptr[n] != ' ' && inner.ptr[n] != '\t')
			n++;
		bool alone = n == inner.len;
		inner.len = n;
		if (!alone && n > 0 && !memchr(inner.ptr, '@', n))
			inner.len = 0;
		if (room && room[0] && str_ends(inner, room)) { /* typed: "v6t1x5@town" */
			size_t before = inner.len - strlen(room);
			if (before > 1 && inner.ptr[before - 1] == '@')
				inner.len = before - 1;
		}
	}
	/* A ULID is one whatever room it was sent from: threads go on when mail is carried. */
	if (inner.len > MR_ID_LEN && inner.ptr[MR_ID_LEN] == '@' && id_valid((struct mr_str){ inner.ptr, MR_ID_LEN }))
		inner.len = MR_ID_LEN;
	return inner;
}

/* Each piece with its length before it, so that no two different messages feed the same bytes. */
static void
feed(struct sha256 *hash, struct mr_str s)
{
	char length[24];
	size_t n = text_number(length, s.len, 0);

	length[n++] = ':';
	sha256_add(hash, (struct mr_str){ length, n });
	if (s.len > 0)
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
	int n = snprintf(text, sizeof(text), "%" PRId64, number);

	feed(hash, (struct mr_str){ text, (size_t)n });
}

static void
feed_names(struct sha256 *hash, const struct mr_names *names)
{
	feed_number(hash, (int64_t)names->n);
	for (size_t i = 0; i < names->n; i++)
		feed_z(hash, names->v[i]);
}

void
message_digest(const struct mr_message *msg, char ret[65])
{
	struct sha256 hash;
	unsigned char sum[32];

	sha256_init(&hash);
	feed_z(&hash, msg->from);
	feed_names(&hash, &msg->to);
	feed_names(&hash, &msg->cc);
	feed_z(&hash, msg->subject);
	feed_z(&hash, msg->type);
	feed_number(&hash, msg->priority);
	/* A thread that the message starts is its id, and a retry has another one. */
	feed_z(&hash, msg->thread && strcmp(msg->thread, msg->id) == 0 ? "" : msg->thread);
	feed_z(&hash, msg->reply_to);
	feed_z(&hash, msg->replace_key);
	feed_number(&hash, (int64_t)msg->headers_n);
	for (size_t i = 0; i < msg->headers_n; i++) {
		feed_z(&hash, msg->headers[i].name);
		feed_z(&hash, msg->headers[i].value);
	}
	feed(&hash, (struct mr_str){ msg->body, msg->body ? msg->body_len : 0 });
	sha256_end(&hash, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}
