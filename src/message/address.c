/* SPDX-License-Identifier: MIT */
/* address.c - who mail is for: checking our own addresses, reading the lists that others write. */
#include "message/address.h"

#include "base/error.h"
#include "base/text.h"

enum { COMPONENT_MAX = 64, COMPONENTS_MAX = 4 };

static const struct mr_str reserved[] = { STR("tmp"), STR("new"), STR("cur"), STR("held"), STR("lives"), STR("agent"),
	STR("dovecot-keywords") };

bool
address_byte(char c)
{
	bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

	return word || c == '.' || c == '_' || c == '+' || c == '-';
}

bool
address_reserved(struct mr_str part)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
		if (str_caseeq(part, reserved[i]))
			return true;
	return false;
}

int
address_hex(char c)
{
	return c >= 'a' ? -1 : hex_digit(c);
}

/* "%20": a byte of a foreign name that an address cannot hold (foreign.h). Of a byte that it can hold only the first of
 * a part may be escaped, where the part would else be refused: so every name has one spelling. */
static bool
is_escape(struct mr_str part, size_t at)
{
	if (part.len - at < 3 || part.ptr[at] != '%')
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

static const char *
component_problem(struct mr_str part)
{
	if (part.len == 0)
		return "has an empty part";
	if (part.len > COMPONENT_MAX)
		return "has a part of more than 64 bytes";
	if (part.ptr[0] == '.')
		return "has a part that begins with '.'";
	for (size_t i = 0; i < part.len; i++) {
		if (is_escape(part, i))
			i += 2;
		else if (!address_byte(part.ptr[i]))
			return "has a character that is not allowed";
	}
	return address_reserved(part) ? "uses a reserved name" : NULL;
}

/* Shows an address that may hold anything, short and harmless. */
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
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	mr_auto(buf_done) struct buf piece = BUF_INIT;

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
		const char *slash = memchr(rest.ptr, '/', rest.len);
		size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;
		struct mr_str part = { rest.ptr, len };
		const char *problem = component_problem(part);
		if (problem)
			return refuse(address, problem, part, err);
		if (n > COMPONENTS_MAX)
			return refuse(address, "has more than 4 parts", address, err);
		if (!slash)
			return MR_OK;
		rest.ptr += len + 1;
		rest.len -= len + 1;
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
	size_t at = address.len;

	while (at > 0 && address.ptr[at - 1] != '@')
		at--;
	if (at == 0) {
		*ret_agent = address;
		*ret_room = (struct mr_str){ address.ptr + address.len, 0 };
		return;
	}
	*ret_agent = (struct mr_str){ address.ptr, at - 1 };
	*ret_room = (struct mr_str){ address.ptr + at, address.len - at };
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
