/* SPDX-License-Identifier: MIT */
/*
 * name.c - file names, and the ids that follow from them.
 *
 *	20260701T081530Z-3b1f9c02-parser-next-steps.md
 *
 * Names sort by second; within a second the original's eight random digits do not. Ours are the first 32 bits of a
 * msg_id that begins with the nanoseconds (times four, plus two random bits), so that our mail sorts as it was sent. An
 *id of ours is made of the same two parts and a hash of the name: it sorts as the names do, and stays while the file
 *has its name.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/id.h"
#include <inttypes.h>
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
		char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) {
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
	char digits[HEX_LEN + 1] = "";
	size_t n = 0;

	for (const char *p = msg_id; *p && n < HEX_LEN; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'))
			digits[n++] = *p;
	int at = snprintf(ret, HANDOFF_NAME_MAX + 1, "%04d%02d%02dT%02d%02d%02dZ-%s-", c.year, c.month, c.day, c.hour,
	    c.minute, c.second, digits);
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

		while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
			n--;
		if (n < s.len && n > 0 && name[n - 1] == '.')
			s.len = n - 1;
	}
	return str_ends(s, SUFFIX);
}

/* Number from `digits` characters, decimal or hexadecimal; false: others are among them. */
static bool
number_at(const char *s, size_t digits, unsigned base, uint32_t *ret)
{
	uint32_t value = 0;

	for (size_t i = 0; i < digits; i++) {
		unsigned d = 99;

		if (s[i] >= '0' && s[i] <= '9')
			d = (unsigned)(s[i] - '0');
		else if (s[i] >= 'a' && s[i] <= 'f')
			d = (unsigned)(s[i] - 'a') + 10;
		if (d >= base)
			return false;
		value = value * base + d;
	}
	*ret = value;
	return true;
}

static bool
moment_of(const char *name, int64_t *ret_s, uint32_t *ret_ns)
{
	uint32_t y, mo, d, h, mi, s, hex;

	if (strlen(name) < STAMP_LEN + 1 + HEX_LEN || !number_at(name, 4, 10, &y) || !number_at(name + 4, 2, 10, &mo) ||
	    !number_at(name + 6, 2, 10, &d) || name[8] != 'T' || !number_at(name + 9, 2, 10, &h) ||
	    !number_at(name + 11, 2, 10, &mi) || !number_at(name + 13, 2, 10, &s) || name[15] != 'Z' ||
	    name[16] != '-' || !number_at(name + STAMP_LEN + 1, HEX_LEN, 16, &hex))
		return false;
	struct civil c = { (int)y, (int)mo, (int)d, (int)h, (int)mi, (int)s, 0 };

	if (!civil_valid(&c))
		return false;
	*ret_s = civil_to_unix(&c);
	*ret_ns = hex >> 2 < 999999999 ? hex >> 2 : 999999999; /* of the original's random digits, one in fourteen */
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
