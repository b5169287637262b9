/* SPDX-License-Identifier: MIT */
/*
 * name.c - file names to parts and back. Pure: no I/O, any bytes.
 *
 *	1772706600.01kjyyyyyyyyyyyyyyyyyyyyyy.mr,P=0,L=1,A=2,U=7:2,FS
 *	└────────────────── base ──────────────────────┘│   │   └ flags: state, sorted, ours and others'
 *	                                    │   │       │   └ tail: what other programs add (mbsync's ,U=)
 *	                                    │   │       └ attempt: handed out and come back that often
 *	                                    │   └ look inside: the name does not tell its place in a list
 *	                                    └ priority: 0 urgent, 1 high, 3 low; normal mail has none
 *
 *	1772706600.01kjyyyyyyyyyyyyyyyyyyyyyy.mr,A=1,B=1772706700000-<who>-<who>-1772707300
 *	                                             └ released: when, by whom, only for whom and until when
 *
 *	h.<token>.<deadline>.<attempt>.<the whole name it had before it was held>
 *
 * Other programs' names are kept byte for byte; only letters and ",A=" of ours are ever changed.
 */
#include "base/text.h"
#include "rooms/maildir/maildir.h"
#include <stdarg.h>

#define HELD_PREFIX "h."
#define RELEASED_DIGITS 12   /* at least: milliseconds since 2001 */
#define ATTEMPT_MAX 1000000u /* a longer number is not ours but part of a foreign name */

static const struct {
	char letter;
	unsigned flag;
} our_letters[] = {
	{ 'F', MR_PINNED },
	{ 'R', MR_REPLIED },
	{ 'S', MR_SEEN },
	{ 'T', MR_TRASHED },
	{ 'a', MR_ACKED },
};

static unsigned
flag_of_letter(char letter)
{
	for (size_t i = 0; i < sizeof(our_letters) / sizeof(our_letters[0]); i++)
		if (our_letters[i].letter == letter)
			return our_letters[i].flag;
	return 0;
}

static size_t
count_digits(struct mr_str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n;
}

/* ",A=<digits>" up to the end of the base name or the next comma. */
static bool
find_attempt(struct mr_str s, size_t *ret_at, size_t *ret_len, unsigned *ret_attempt)
{
	for (size_t i = 0; i + 4 <= s.len; i++) {
		if (memcmp(s.ptr + i, ",A=", 3) != 0)
			continue;
		struct mr_str rest = str_from(s, i + 3);
		size_t digits = count_digits(rest);
		uint64_t value = 0;
		if (digits == 0 || (digits < rest.len && rest.ptr[digits] != ',') ||
		    !str_to_u64((struct mr_str){ rest.ptr, digits }, &value) || value > ATTEMPT_MAX)
			continue;
		*ret_at = i;
		*ret_len = 3 + digits;
		*ret_attempt = (unsigned)value;
		return true;
	}
	return false;
}

static bool
take_part(struct mr_str *s, struct mr_str *ret)
{
	const char *dash = s->len == 0 ? NULL : memchr(s->ptr, '-', s->len);

	*ret = (struct mr_str){ s->ptr, dash ? (size_t)(dash - s->ptr) : s->len };
	*s = str_from(*s, dash ? ret->len + 1 : s->len);
	return ret->len > 0;
}

bool
name_released(const struct file_name *n, struct released *ret)
{
	struct mr_str rest = n->released, part;
	struct released r = { 0 };
	uint64_t at_ms = 0, until_s = 0;

	if (!take_part(&rest, &part) || part.len < RELEASED_DIGITS || !str_to_u64(part, &at_ms) ||
	    at_ms > INT64_MAX / 2)
		return false;
	r.at_ms = (int64_t)at_ms;
	for (int i = 0; i < 2; i++) {
		if (!take_part(&rest, &part))
			continue;
		if (part.len != NAME_WHO_LEN)
			return false;
		memcpy(i == 0 ? r.by : r.only_for, part.ptr, NAME_WHO_LEN);
	}
	if (take_part(&rest, &part) && (!str_to_u64(part, &until_s) || until_s > INT64_MAX / 1000))
		return false;
	r.only_until_s = (int64_t)until_s;
	*ret = r;
	return true;
}

void
name_released_text(const struct released *r, char ret[NAME_RELEASED_LEN])
{
	int len = snprintf(ret, NAME_RELEASED_LEN, "%lld", (long long)r->at_ms);

	if (r->by[0] != '\0')
		len += snprintf(ret + len, NAME_RELEASED_LEN - (size_t)len, "-%s", r->by);
	if (r->by[0] != '\0' && r->only_for[0] != '\0')
		(void)snprintf(
		    ret + len, NAME_RELEASED_LEN - (size_t)len, "-%s-%lld", r->only_for, (long long)r->only_until_s);
}

void
name_who(const char *agent, char ret[NAME_WHO_LEN + 1])
{
	char hash[65];

	sha256_hex(str_of(agent), hash);
	memcpy(ret, hash, NAME_WHO_LEN);
	ret[NAME_WHO_LEN] = '\0';
}

/* ",B=<value>" at the very end. If another program appends something, it becomes part of the tail, and the mail takes
 * its normal place again. A value in another form than ours is part of a foreign name. */
static void
split_released(struct mr_str *stem, struct file_name *n)
{
	struct released r;
	size_t at = stem->len;

	while (at > 0 && (hex_digit(stem->ptr[at - 1]) >= 0 || stem->ptr[at - 1] == '-'))
		at--;
	if (at < 3 || at == stem->len || memcmp(stem->ptr + at - 3, ",B=", 3) != 0)
		return;
	n->released = str_from(*stem, at);
	if (name_released(n, &r))
		stem->len = at - 3;
	else
		n->released = (struct mr_str){ 0 };
}

/* "<seconds>.<ulid>.mr", alone or before a comma: the name stays ours if another program appends fields. */
static bool
parse_ours(struct mr_str base, char ret_id[MR_ID_LEN + 1])
{
	size_t digits = count_digits(base);

	if (digits == 0 || base.len < digits + 1 + MR_ID_LEN + 3 || base.ptr[digits] != '.')
		return false;
	struct mr_str id = { base.ptr + digits + 1, MR_ID_LEN };
	struct mr_str rest = str_from(base, digits + 1 + MR_ID_LEN);
	if (!str_starts(rest, ".mr") || (rest.len > 3 && rest.ptr[3] != ',') || !id_valid(id))
		return false;
	memcpy(ret_id, id.ptr, MR_ID_LEN);
	ret_id[MR_ID_LEN] = '\0';
	return true;
}

/* ",P=<0..3>" and ",L=1" of a name of ours, in any place between fields of other programs. Any other value is not ours,
 * and the mail is normal. */
static void
read_fields(struct mr_str stem, struct file_name *n)
{
	bool has_priority = false;

	for (struct mr_str field; str_cut(&stem, ',', &field);) {
		char value = field.len == 3 && field.ptr[1] == '=' ? field.ptr[2] : '\0';

		if (field.len == 3 && field.ptr[0] == 'P' && value >= '0' && value <= '3' && !has_priority) {
			n->priority = MR_URGENT - (value - '0');
			has_priority = true;
		}
		n->look |= field.len == 3 && field.ptr[0] == 'L' && value == '1';
	}
}

bool
name_parse(struct mr_str name, struct file_name *ret)
{
	struct file_name n = { 0 };
	struct mr_str stem = name;
	uint64_t seconds = 0;
	size_t at, len;

	if (name.len == 0 || name.len >= NAME_LEN || name.ptr[0] == '.')
		return false;
	/* Cuts off the info. A ":2" without its comma counts as info too: at the end of a base it would become info as
	 * soon as our ",A=" followed it, and the id would change. */
	for (size_t i = 0; i + 3 <= stem.len; i++) {
		if (memcmp(stem.ptr + i, ":2,", 3) == 0) {
			n.has_info = true;
			n.flags = str_from(stem, i + 3);
			stem.len = i;
			break;
		}
	}
	while (str_ends(stem, ":2")) {
		n.has_info = true;
		stem.len -= 2;
	}
	split_released(&stem, &n);
	n.base = stem;
	n.tail = str_from(stem, stem.len);
	if (find_attempt(stem, &at, &len, &n.attempt)) {
		n.base.len = at;
		n.tail = str_from(stem, at + len);
	}
	n.ours = parse_ours(n.base, n.id);
	if (n.ours) {
		read_fields(stem, &n);
	} else {
		/* An id has 48 bits of milliseconds; a larger number is not a time. */
		if (!str_to_u64((struct mr_str){ n.base.ptr, count_digits(n.base) }, &seconds) ||
		    seconds > UINT64_C(281474976710))
			seconds = 0;
		id_from_name((int64_t)seconds * 1000, n.base, n.id);
	}
	*ret = n;
	return true;
}

/* Takes "<digits>." off the front. */
static bool
take_number(struct mr_str *s, uint64_t *ret)
{
	size_t digits = count_digits(*s);

	if (digits == 0 || digits >= s->len || s->ptr[digits] != '.' ||
	    !str_to_u64((struct mr_str){ s->ptr, digits }, ret))
		return false;
	*s = str_from(*s, digits + 1);
	return true;
}

bool
name_parse_held(struct mr_str name, struct file_name *ret)
{
	struct mr_str rest = name;
	uint64_t deadline = 0, attempt = 0;
	struct file_name n;

	if (!str_starts(rest, HELD_PREFIX))
		return false;
	rest = str_from(rest, strlen(HELD_PREFIX));
	if (rest.len <= MR_TOKEN_LEN || rest.ptr[MR_TOKEN_LEN] != '.')
		return false;
	struct mr_str token = { rest.ptr, MR_TOKEN_LEN };
	rest = str_from(rest, MR_TOKEN_LEN + 1);
	if (!token_valid(token) || !take_number(&rest, &deadline) || !take_number(&rest, &attempt) ||
	    deadline > INT64_MAX / 1000 || attempt > ATTEMPT_MAX || !name_parse(rest, &n))
		return false;
	n.held = true;
	memcpy(n.token, token.ptr, MR_TOKEN_LEN);
	n.deadline_s = (int64_t)deadline;
	n.hold_attempt = (unsigned)attempt;
	*ret = n;
	return true;
}

unsigned
name_flags(const struct file_name *n, bool acked_mapped)
{
	unsigned flags = 0;

	for (size_t i = 0; i < n->flags.len; i++)
		flags |= flag_of_letter(n->flags.ptr[i]);
	return acked_mapped ? flags : flags & ~(unsigned)MR_ACKED;
}

void
name_new(const char *id, enum mr_priority priority, bool look, char ret[NAME_LEN])
{
	size_t n = text_number(ret, (uint64_t)id_time_ms(id) / 1000, 0);
	char field[] = ",P=0";

	field[3] = (char)('0' + (MR_URGENT - (int)priority));
	text_join(ret + n, NAME_LEN - n, ".", id, ".mr", priority == MR_NORMAL ? "" : field, look ? ",L=1" : "", NULL);
}

/* A name that fits stays in the array. No printf, because three names are made for each message that is taken. */
static bool
fits(struct buf *name)
{
	bool lent = name->lent && !name->failed;

	buf_done(name);
	return lent;
}

bool
name_build(const struct file_name *n, unsigned attempt, unsigned flags, bool with_info, char ret[NAME_LEN])
{
	bool has[256] = { false };
	struct buf name = { .ptr = ret, .cap = NAME_LEN, .lent = true };
	char count[24];

	buf_add(&name, n->base);
	if (attempt > 0) {
		(void)text_number(count, attempt < ATTEMPT_MAX ? attempt : ATTEMPT_MAX, 0);
		buf_adds(&name, ",A=");
		buf_adds(&name, count);
	}
	buf_add(&name, n->tail);
	if (n->released.len > 0) {
		buf_adds(&name, ",B=");
		buf_add(&name, n->released);
	}
	/* The letters after ":2,": sorted, without repetition, those of other programs kept. */
	for (size_t i = 0; i < n->flags.len; i++) {
		char c = n->flags.ptr[i];

		has[(unsigned char)c] |= flag_of_letter(c) == 0 || (c == 'a' && !n->a_is_ours);
	}
	for (size_t i = 0; i < sizeof(our_letters) / sizeof(our_letters[0]); i++)
		has[(unsigned char)our_letters[i].letter] |= (flags & our_letters[i].flag) != 0;
	if (with_info)
		buf_adds(&name, ":2,");
	for (size_t c = 1; with_info && c < sizeof(has); c++)
		if (has[c])
			buf_addc(&name, (char)c);
	return fits(&name);
}

bool
name_build_held(const char *token, int64_t deadline_s, unsigned attempt, struct mr_str original, char ret[NAME_LEN])
{
	char deadline[24], count[24];

	(void)text_number(deadline, (uint64_t)deadline_s, 0);
	(void)text_number(count, attempt, 0);
	text_join(ret, NAME_LEN, HELD_PREFIX, token, ".", deadline, ".", count, ".", NULL);
	size_t len = strlen(ret);

	if (original.len >= NAME_LEN - len)
		return false;
	memcpy(ret + len, original.ptr, original.len);
	ret[len + original.len] = '\0';
	return true;
}

bool
name_is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names != NULL;
}

struct path
path_of(const char *part, ...)
{
	struct path path;
	size_t at = 0;
	va_list parts;

	va_start(parts, part);
	for (; part; part = va_arg(parts, const char *)) {
		text_join(path.z + at, sizeof path.z - at, part, NULL);
		at += strlen(path.z + at);
	}
	va_end(parts);
	return path;
}

void
name_month(const char *folder, int64_t at_ms, char ret[24])
{
	struct civil when = civil_of(at_ms / 1000);

	char year[24], month[24];

	(void)text_number(year, (unsigned)when.year % 10000u, 4);
	(void)text_number(month, (unsigned)when.month % 100u, 2);
	text_join(ret, 24, folder, ".", year, "-", month, NULL);
}

void
name_escape(const char *agent, char ret[NAME_LEN])
{
	size_t len = 0;

	/* "%" cannot be in an address, so escapes are unambiguous. "_" stands for no agent, so an agent named "_" is
	 * written differently. An address has at most 160 bytes and 3 slashes: it fits. */
	if (strcmp(agent, "_") == 0) {
		(void)snprintf(ret, NAME_LEN, "%%5F");
		return;
	}
	for (const char *p = agent; *p != '\0' && len + 4 < NAME_LEN; p++) {
		if (*p == '/') {
			memcpy(ret + len, "%2F", 3);
			len += 3;
		} else {
			ret[len++] = *p;
		}
	}
	if (len == 0)
		ret[len++] = '_';
	ret[len] = '\0';
}

bool
name_unescape(const char *name, char ret[NAME_LEN])
{
	size_t len = 0;

	for (const char *p = name; *p != '\0'; p++) {
		if (len + 1 >= NAME_LEN || (*p == '%' && strncmp(p, "%2F", 3) != 0))
			return false;
		ret[len++] = *p == '%' ? '/' : *p;
		p += *p == '%' ? 2 : 0;
	}
	ret[len] = '\0';
	return true;
}
