/* SPDX-License-Identifier: MIT */
/*
 * format.c - file names, the ids that follow from them, and the bytes of a message.
 *
 *	20260701T081530Z-3b1f9c02-parser-next-steps.md
 *
 * Names sort by second; within a second the original's eight random digits do not. Ours are the first 32 bits of a
 * msg_id that begins with the nanoseconds (times four, plus two random bits), so that our mail sorts as it was sent. An
 * id of ours is made of the same two parts and a hash of the name: it sorts as the names do, and stays while the file
 * has its name.
 *
 *	---
 *	from: lead-01
 *	msg_id: 3b1f9c02-77aa-4c1e-9d5e-0a1b2c3d4e5f
 *	subject: Parser: next steps
 *	reply_to: ...                 only in an answer
 *	to: worker-7
 *	---
 *	                              one empty line, then the body byte for byte
 *
 * Agents look at it with `head -8`: no field more. Nothing is quoted, a value is the rest of its line; so what would
 * end the line is refused.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/id.h"
#include "message/front.h"
#include <stdio.h>

#define STAMP_LEN 16 /* 20260701T081530Z */
#define HEX_LEN 8
#define SUFFIX ".md"

/* ---- msg_id ---- */

static void
write_uuid(const unsigned char b[16], char ret[HANDOFF_UUID_LEN + 1])
{
	(void)snprintf(ret, HANDOFF_UUID_LEN + 1, "%02x%02x%02x%02x-%02x%02x-4%x%02x-%x%x%02x-%02x%02x%02x%02x%02x%02x",
	    b[0], b[1], b[2], b[3], b[4], b[5], b[6] & 15, b[7], 8 | (b[8] & 3), b[8] >> 4, b[9], b[10], b[11], b[12],
	    b[13], b[14], b[15]);
}

void
handoff_uuid(char ret[HANDOFF_UUID_LEN + 1])
{
	unsigned char b[16];

	random_bytes(b, sizeof b);
	write_uuid(b, ret);
}

static void
put_moment(unsigned char b[16], uint32_t ns)
{
	uint32_t first = ns << 2 | (b[3] & 3);

	for (size_t i = 0; i < 4; i++)
		b[i] = (unsigned char)(first >> (24 - 8 * i));
}

void
handoff_msg_id_at(int64_t ns, char ret[HANDOFF_UUID_LEN + 1])
{
	unsigned char b[16];

	random_bytes(b, sizeof b);
	put_moment(b, (uint32_t)(ns % 1000000000));
	write_uuid(b, ret);
}

void
handoff_msg_id_from(int64_t ms, struct mr_str seed, unsigned attempt, char ret[HANDOFF_UUID_LEN + 1])
{
	struct sha256 s;
	unsigned char b[32];
	char again[16];

	(void)snprintf(again, sizeof again, "%u", attempt);
	sha256_init(&s);
	sha256_add(&s, seed);
	sha256_add(&s, (struct mr_str){ again, strlen(again) + 1 });
	sha256_end(&s, b);
	/* Beneath the millisecond the hash tells messages apart. */
	uint32_t below = ((uint32_t)b[16] << 16 | (uint32_t)b[17] << 8 | b[18]) % 1000000;

	put_moment(b, (uint32_t)(ms % 1000) * 1000000 + below);
	write_uuid(b, ret);
}

/* ---- File names ---- */

/* Bytes outside a-z and 0-9 are dashes, several are one, none stands at an end. */
static size_t
put_slug(const char *subject, char *ret, size_t room)
{
	size_t n = 0;
	bool dash = false;

	for (const char *p = subject; *p && n < room; p++) {
		char c = ascii_lower(*p);

		if (!ascii_alnum(c)) {
			dash = n > 0;
			continue;
		}
		if (dash && n + 2 > room)
			break;
		if (dash)
			ret[n++] = '-';
		dash = false;
		ret[n++] = c;
	}
	return n;
}

void
handoff_file_name(int64_t ms, const char *msg_id, const char *subject, char ret[HANDOFF_NAME_MAX + 1])
{
	struct civil c = civil_of(ms >= 0 ? ms / 1000 : (ms - 999) / 1000);
	int at = snprintf(ret, HANDOFF_NAME_MAX + 1, "%04d%02d%02dT%02d%02d%02dZ-%.8s-", c.year, c.month, c.day, c.hour,
	    c.minute, c.second, msg_id);
	size_t len = (size_t)at;

	len += put_slug(subject[0] ? subject : "message", ret + len, HANDOFF_NAME_MAX - len - strlen(SUFFIX));
	memcpy(ret + len, SUFFIX, sizeof SUFFIX);
}

/* In the archive also x.md.1, which was put beside an x.md of other content. */
bool
handoff_name_is_mail(const char *name, enum mr_folder folder)
{
	struct mr_str s = str_of(name);

	if (folder == MR_ARCHIVE) {
		size_t n = s.len;

		while (n > 0 && ascii_digit(name[n - 1]))
			n--;
		if (n < s.len && n > 0 && name[n - 1] == '.')
			s.len = n - 1;
	}
	return str_ends(s, SUFFIX);
}

static bool
moment_of(const char *name, int64_t *ret_s, uint32_t *ret_ns)
{
	static const struct {
		size_t at, digits;
		unsigned base;
	} parts[] = { { 0, 4, 10 }, { 4, 2, 10 }, { 6, 2, 10 }, { 9, 2, 10 }, { 11, 2, 10 }, { 13, 2, 10 },
		{ STAMP_LEN + 1, HEX_LEN, 16 } };
	static const char digits[] = "0123456789abcdef";
	uint32_t v[7] = { 0 };

	if (strlen(name) < STAMP_LEN + 1 + HEX_LEN || name[8] != 'T' || name[15] != 'Z' || name[16] != '-')
		return false;
	for (size_t i = 0; i < 7; i++)
		for (size_t j = 0; j < parts[i].digits; j++) {
			const char *digit = memchr(digits, name[parts[i].at + j], parts[i].base);

			if (!digit)
				return false;
			v[i] = v[i] * parts[i].base + (uint32_t)(digit - digits);
		}
	struct civil c = { (int)v[0], (int)v[1], (int)v[2], (int)v[3], (int)v[4], (int)v[5], 0 };

	if (!civil_to_unix(&c, ret_s))
		return false;
	*ret_ns = v[6] >> 2 < 999999999 ? v[6] >> 2 : 999999999; /* of the original's random digits, one in fourteen */
	return *ret_s >= 0;
}

bool
handoff_name_has_stamp(const char *name)
{
	int64_t s;
	uint32_t ns;

	return moment_of(name, &s, &ns);
}

void
handoff_message_id(const char *name, int64_t mtime_ms, char ret[MR_ID_LEN + 1])
{
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
	int64_t s;
	uint32_t ns;

	if (!moment_of(name, &s, &ns)) {
		id_from_name(mtime_ms, str_of(name), ret);
		return;
	}
	id_from_name(s * 1000 + ns / 1000000, str_of(name), ret);
	/* As in ids of our own: behind the ten digits of the millisecond four of the nanoseconds within it. */
	uint32_t below = ns % 1000000;

	for (size_t i = 0; i < 4; i++, below >>= 5)
		ret[13 - i] = alphabet[below & 31];
}

/* ---- The bytes of a message ---- */

#define FIELDS 5
static const char *const keys[FIELDS] = { "from", "msg_id", "subject", "reply_to", "to" };

/* As the original finds a field: the first line of the whole file that begins so. */
static bool
first_line(struct mr_str text, const char *key, struct mr_str *ret)
{
	struct mr_str line;
	const size_t n = strlen(key);

	while (str_line(&text, &line))
		if (str_starts(line, key) && line.len > n + 1 && line.ptr[n] == ':' && line.ptr[n + 1] == ' ') {
			*ret = str_trim((struct mr_str){ line.ptr + n + 2, line.len - n - 2 });
			return true;
		}
	return false;
}

bool
letter_parse(struct mr_str text, struct letter *ret)
{
	struct letter l = { .body = text };
	struct mr_str *const fields[FIELDS] = { &l.from, &l.msg_id, &l.subject, &l.reply_to, &l.to };
	struct front front;
	struct mr_str rest, line;
	bool is_front = front_split(text, &front), found[FIELDS];

	for (size_t i = 0; i < FIELDS; i++)
		found[i] = is_front ? front_get(front.head, keys[i], fields[i]) : first_line(text, keys[i], fields[i]);
	if (is_front) {
		l.head = front.head;
		l.body = rest = front.body;
		if (str_line(&rest, &line) && line.len == 0)
			l.body = rest;
	} else if (!found[0] && !found[1]) {
		return false;
	}
	*ret = l;
	return true;
}

bool
handoff_key_known(struct mr_str key)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (str_eq(key, str_of(keys[i])))
			return true;
	return false;
}

enum mr_rc
letter_write(const struct letter *letter, struct buf *out, struct mr_error *err)
{
	const struct mr_str values[FIELDS] = { letter->from, letter->msg_id, letter->subject, letter->reply_to,
		letter->to };

	buf_adds(out, "---\n");
	for (size_t i = 0; i < FIELDS; i++) {
		if (values[i].len == 0 && strcmp(keys[i], "reply_to") == 0)
			continue;
		for (size_t j = 0; j < values[i].len; j++)
			if ((unsigned char)values[i].ptr[j] < 0x20 || values[i].ptr[j] == 0x7f)
				return mr_fail(err, MR_REFUSED,
				    "the %s of a message has a control character in it\n"
				    "a field is one line here: leave line ends and tabs out of it",
				    keys[i]);
		buf_addf(out, "%s: ", keys[i]);
		buf_add(out, values[i]);
		buf_addc(out, '\n');
	}
	buf_adds(out, "---\n\n");
	buf_add(out, letter->body);
	return mr_got(buf_ok(out), err);
}
