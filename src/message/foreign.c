/* SPDX-License-Identifier: MIT */
/* foreign.c - %XX in addresses. See foreign.h. */
#include "message/foreign.h"

#include "base/error.h"
#include "base/text.h"
#include "message/address.h"

enum mr_rc
foreign_to_address(struct mr_str name, char *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT, shown = BUF_INIT;

	bool first = false; /* a part that is a reserved name, or begins with a dot, has its first byte escaped */

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
