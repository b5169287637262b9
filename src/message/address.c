/* SPDX-License-Identifier: MIT */
/*
 * address.c - checking our own addresses, and reading address lists of other programs, as in To:, in one pass without
 * copying.
 *
 *	alice@x, "Smith, Bob" <bob@y>, (the boss) carol@z (Carol), Friends: dave@w, eve@v;
 *
 * Our own addresses may have a colon ("queue:work"), so a colon names a group only in a list that also has the
 * semicolon that ends one.
 */
#include "message/address.h"

#include "base/error.h"
#include "base/text.h"

enum { COMPONENT_MAX = 64, COMPONENTS_MAX = 4 };

static bool
address_byte(char c)
{
	return ascii_alnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
}

/* Is it a name that no part may have, in any case? */
static bool
address_reserved(struct mr_str part)
{
	static const char *const names[] = { "tmp", "new", "cur", "held", "lives", "agent", "dovecot-keywords" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_caseeq(part, str_of(names[i])))
			return true;
	return false;
}

static int
address_hex(char c)
{
	return c >= 'a' ? -1 : hex_digit(c);
}

/* "%20": a byte of a foreign name that an address cannot have (foreign_to_address). An allowed byte may be escaped only
 * as the first of a part that would otherwise be refused, so that every name has one spelling. */
static bool
is_escape(struct mr_str part, size_t at)
{
	if (part.len - at < 3)
		return false;
	int high = address_hex(part.ptr[at + 1]), low = address_hex(part.ptr[at + 2]);
	if (high < 0 || low < 0)
		return false;
	char c = (char)(high << 4 | low);

	if (c == '\0' || c == '/')
		return false;
	if (!address_byte(c))
		return true;
	char plain[COMPONENT_MAX];
	struct mr_str rest = { part.ptr + 3, part.len - 3 };

	plain[0] = c;
	memcpy(plain + 1, rest.ptr, rest.len);
	return at == 0 && (c == '.' || address_reserved((struct mr_str){ plain, rest.len + 1 }));
}

/* Adds a short and harmless form of an address, which may have any bytes. */
static void
show(struct buf *out, struct mr_str s)
{
	struct mr_str cut = utf8_cut(s, 40);
	text_clean_line(out, cut);
	if (cut.len < s.len)
		buf_adds(out, "…");
}

static enum mr_rc
refuse(struct mr_str address, const char *problem, struct mr_str part, struct mr_error *err)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT, piece = BUF_INIT;

	show(&whole, address);
	show(&piece, part);
	if (part.len > 0 && part.len < address.len)
		(void)mr_fail(err, MR_REFUSED, "address '%s' %s: '%s'", buf_z(&whole), problem, buf_z(&piece));
	else
		(void)mr_fail(err, MR_REFUSED, "address '%s' %s", buf_z(&whole), problem);
	return mr_hint(err, "an address is 1-4 parts joined by '/', each 1-64 of A-Z a-z 0-9 . _ + -, not beginning"
			    " with '.', none of tmp new cur held lives agent dovecot-keywords; 160 bytes in all");
}

enum mr_rc
address_check(struct mr_str address, struct mr_error *err)
{
	if (address.len == 0)
		return refuse(address, "is empty", address, err);
	if (address.len > MR_ADDRESS_MAX)
		return refuse(address, "has more than 160 bytes", address, err);
	struct mr_str rest = address;
	for (size_t n = 1;; n++) {
		struct mr_str part = str_first(rest, str_find(rest, '/'));
		const char *problem = part.len == 0              ? "has an empty part"
				      : part.len > COMPONENT_MAX ? "has a part of more than 64 bytes"
				      : part.ptr[0] == '.'       ? "has a part that begins with '.'"
								 : NULL;

		for (size_t i = 0; i < part.len && !problem; i++) {
			if (part.ptr[i] == '%' && is_escape(part, i))
				i += 2;
			else if (!address_byte(part.ptr[i]))
				problem = "has a character that is not allowed";
		}
		if (!problem && address_reserved(part))
			problem = "uses a reserved name";
		if (problem)
			return refuse(address, problem, part, err);
		if (n > COMPONENTS_MAX)
			return refuse(address, "has more than 4 parts", address, err);
		if (part.len == rest.len)
			return MR_OK;
		rest = str_from(rest, part.len + 1);
	}
}

enum mr_rc
mr_address_check(const char *address, struct mr_error *err)
{
	return address_check(str_of(address), err);
}

enum mr_rc
address_normal(struct mr_str address, char *ret, struct mr_error *err)
{
	if (address.len > 1 && address.ptr[address.len - 1] == '/')
		address.len--;

	TRY(address_check(address, err));
	memcpy(ret, address.ptr, address.len);
	ret[address.len] = '\0';
	return MR_OK;
}

void
address_split(struct mr_str address, struct mr_str *ret_agent, struct mr_str *ret_room)
{
	const char *at = address.len > 0 ? memrchr(address.ptr, '@', address.len) : NULL;
	size_t n = at ? (size_t)(at - address.ptr) : address.len;

	*ret_agent = str_first(address, n);
	*ret_room = str_from(address, at ? n + 1 : n);
}

bool
address_plain(struct mr_str address)
{
	for (size_t i = 0; i < address.len; i++) {
		unsigned char c = (unsigned char)address.ptr[i];
		if (c <= ' ' || c == 0x7f || strchr(",;<>()\"\\", c))
			return false;
	}
	return address.len > 0;
}

/* ---- Names of other systems ---- */

enum mr_rc
foreign_to_address(struct mr_str name, char *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT, shown = BUF_INIT;

	bool first = false; /* a part that is a reserved name, or begins with a dot, gets its first byte escaped */

	for (size_t i = 0; i < name.len; i++) {
		struct mr_str part = str_from(name, i);

		part.len = str_find(part, '/');
		first = (i == 0 || name.ptr[i - 1] == '/') && (address_reserved(part) || str_starts(part, "."));
		if (first || (!address_byte(name.ptr[i]) && name.ptr[i] != '/'))
			buf_addf(&out, "%%%02X", (unsigned char)name.ptr[i]);
		else
			buf_addc(&out, name.ptr[i]);
	}
	if (!buf_ok(&out) && name.len > 0)
		return mr_nomem(err);
	if (address_normal(buf_str(&out), ret, err) == MR_OK)
		return MR_OK;
	text_clean_line(&shown, utf8_cut(name, 60));
	return mr_wrap(err, "the name '%s'", buf_z(&shown));
}

void
foreign_from_address(const char *address, struct buf *out)
{
	for (const char *p = address; *p; p++) {
		int high = p[0] == '%' ? address_hex(p[1]) : -1, low = high >= 0 ? address_hex(p[2]) : -1;

		if (low < 0) {
			buf_addc(out, *p);
			continue;
		}
		buf_addc(out, (char)(high << 4 | low));
		p += 2;
	}
}

/* ---- Lists ---- */

struct mailbox_span {       /* of the current mailbox */
	struct mr_str bare; /* text outside comments and angle brackets */
	struct mr_str angle;
	bool angled;
};

/* Returns the place after the quoted string or comment (which may nest) that begins at p; `end` if it is never
 * closed. */
static const char *
skip_quoted(const char *p, const char *end, char close)
{
	char open = *p;
	size_t depth = 0;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == close && depth > 0 && --depth == 0)
			return p + 1;
		else if (*p == open)
			depth++;
	}
	return end;
}

/* False: it has no address. */
static bool
address_in(const struct mailbox_span *m, struct mr_str *ret)
{
	struct mr_str route;

	*ret = m->angled ? str_trim(m->angle) : m->bare;
	/* "<@relay,@other:bob@y>": a source route is not part of the address. */
	if (m->angled && str_starts(*ret, "@") && str_split(*ret, ':', &route, ret))
		*ret = str_trim(*ret);
	return ret->len > 0;
}

struct address_list
address_list(struct mr_str value)
{
	return (struct address_list){ value, str_find(value, ';') < value.len };
}

bool
address_next(struct address_list *list, struct mr_str *ret)
{
	struct mailbox_span m = { 0 };
	const char *end = list->rest.ptr + list->rest.len;

	for (const char *p = list->rest.ptr, *next; p < end; p = next) {
		next = p + 1;
		if (*p == ',' || (list->groups && *p == ';')) {
			list->rest = str_between(next, end);
			if (address_in(&m, ret))
				return true;
			m = (struct mailbox_span){ 0 };
			continue;
		}
		if (list->groups && *p == ':') {
			m = (struct mailbox_span){ 0 };
			continue;
		}
		if (*p == '(') {
			next = skip_quoted(p, end, ')');
			continue;
		}
		if (*p == '<') {
			const char *close = memchr(p, '>', (size_t)(end - p));

			next = close ? close + 1 : end;
			m.angle = str_between(p + 1, close ? close : end);
			m.angled = true;
			continue;
		}
		if (ascii_space(*p))
			continue;
		if (*p == '"')
			next = skip_quoted(p, end, '"');
		m.bare = str_between(m.bare.ptr ? m.bare.ptr : p, next);
	}
	list->rest.len = 0;
	return address_in(&m, ret);
}
