/* SPDX-License-Identifier: MIT */
/* foreign.c - %XX in addresses. See foreign.h. */
#include "message/foreign.h"

#include "base/error.h"
#include "base/text.h"
#include "message/address.h"

/* One part between slashes. A part that is a reserved name, or begins with a dot, has its first byte escaped. */
static void
add_part(struct buf *out, struct mr_str part)
{
	bool first = address_reserved(part) || (part.len > 0 && part.ptr[0] == '.');

	for (size_t i = 0; i < part.len; i++)
		if ((i == 0 && first) || !address_byte(part.ptr[i]))
			buf_addf(out, "%%%02X", (unsigned char)part.ptr[i]);
		else
			buf_addc(out, part.ptr[i]);
}

enum mr_rc
foreign_to_address(struct mr_str name, char *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	for (struct mr_str rest = name;;) {
		const char *slash = rest.len > 0 ? memchr(rest.ptr, '/', rest.len) : NULL;
		size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;

		add_part(&out, str_first(rest, len));
		if (!slash)
			break;
		buf_addc(&out, '/');
		rest = (struct mr_str){ slash + 1, rest.len - len - 1 };
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
