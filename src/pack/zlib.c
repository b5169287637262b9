/* SPDX-License-Identifier: MIT */
/* zlib.c - see pack.h. */
#define ZLIB_CONST
#include <zlib.h>

#include "pack/pack.h"

#define GZIP 16 /* added to the window bits: gzip and its checksum, not zlib's own form */
#define LEVEL 6

bool
pack_deflate(struct mr_str text, const char *name, const char *comment, uint32_t mtime_s, struct buf *out)
{
	z_stream z = { .next_in = (const Bytef *)text.ptr, .avail_in = (uInt)text.len };
	gz_header header = { .time = mtime_s,
		.os = 3, /* only read from */
		.name = (Bytef *)(uintptr_t)name,
		.comment = (Bytef *)(uintptr_t)comment };
	bool done = false;

	if (text.len > UINT32_MAX / 2 ||
	    deflateInit2(&z, LEVEL, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	if (deflateSetHeader(&z, &header) == Z_OK && buf_reserve(out, deflateBound(&z, text.len))) {
		z.next_out = (Bytef *)out->ptr + out->len;
		z.avail_out = (uInt)(out->cap - out->len - 1);
		done = deflate(&z, Z_FINISH) == Z_STREAM_END;
	}
	if (done) {
		out->len += z.total_out;
		out->ptr[out->len] = '\0';
	}
	(void)deflateEnd(&z);
	return done;
}

bool
pack_inflate(struct mr_str member, size_t limit, size_t *ret_used, struct buf *out)
{
	z_stream z = { .next_in = (const Bytef *)member.ptr, .avail_in = (uInt)member.len };
	size_t began = out->len;
	int rc = Z_OK;

	if (member.len > UINT32_MAX / 2 || inflateInit2(&z, MAX_WBITS + GZIP) != Z_OK)
		return false;
	while (rc == Z_OK && out->len - began <= limit && buf_reserve(out, 16384)) {
		uInt room = (uInt)(out->cap - out->len - 1 < 1u << 30 ? out->cap - out->len - 1 : 1u << 30);

		z.next_out = (Bytef *)out->ptr + out->len;
		z.avail_out = room;
		rc = inflate(&z, Z_NO_FLUSH);
		out->len += room - z.avail_out;
	}
	if (out->ptr)
		out->ptr[out->len] = '\0';
	bool whole = rc == Z_STREAM_END && (z.avail_in == 0 || ret_used) && out->len - began <= limit;

	if (ret_used)
		*ret_used = member.len - z.avail_in;
	(void)inflateEnd(&z);
	return whole;
}
