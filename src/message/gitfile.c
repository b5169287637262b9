/* SPDX-License-Identifier: MIT */
/* gitfile.c - see gitfile.h. */
#include "message/gitfile.h"

#include "base/error.h"

#define HEADER 12 /* "DIRC", version, count */
#define STAT_LEN 40
#define FLAG_UNWATCHED 0x8000
#define FLAG_MORE 0x4000
#define MORE_SKIPPED 0x4000
#define MORE_INTENDED 0x2000
#define NAME_BITS 0x0fff

/* ---- The index ---- */

static uint32_t
number(const char *at, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | (unsigned char)at[i];
	return n;
}

struct reading {
	struct mr_str left; /* entries and extensions that are not read yet */
	uint32_t version;
	size_t hash_len;
	struct buf path; /* of the last entry: version 4 stores only the difference */
};

/* The number of bytes to drop from the last path: seven bits a byte, each but the last plus one. */
static bool
take_offset(struct reading *r, size_t *ret)
{
	size_t n = 0;

	for (int i = 0; r->left.len > 0 && i < 4; i++) {
		unsigned char c = (unsigned char)r->left.ptr[0];

		r->left = str_from(r->left, 1);
		n = n << 7 | (c & 0x7f);
		if (!(c & 0x80)) {
			*ret = n;
			return true;
		}
		n++;
	}
	return false;
}

static bool
take_entry(struct reading *r, struct git_entry *ret)
{
	size_t head = STAT_LEN + r->hash_len + 2;

	if (r->left.len < head + 2)
		return false;
	const char *at = r->left.ptr;
	uint32_t flags = number(at + STAT_LEN + r->hash_len, 2);
	uint32_t more = r->version >= 3 && (flags & FLAG_MORE) ? number(at + head, 2) : 0;

	*ret = (struct git_entry){ .mode = number(at + 24, 4),
		.mtime_s = number(at + 8, 4),
		.mtime_ns = number(at + 12, 4),
		.size = number(at + 36, 4),
		.stage = flags >> 12 & 3,
		.unwatched = (flags & FLAG_UNWATCHED) || (more & MORE_SKIPPED),
		.intended = more & MORE_INTENDED };
	head += r->version >= 3 && (flags & FLAG_MORE) ? 2 : 0;
	r->left = str_from(r->left, head);
	size_t dropped = 0;

	if (r->version == 4 && (!take_offset(r, &dropped) || dropped > r->path.len))
		return false;
	size_t len = str_find(r->left, '\0'), keep = r->version == 4 ? r->path.len - dropped : 0;
	size_t whole = r->version == 4 ? len + 1 : len + 8 - (head + len) % 8; /* padded, counted from the head */

	if (len == r->left.len || keep + len > GIT_PATH_LONGEST)
		return false;
	buf_cut(&r->path, keep);
	buf_add(&r->path, str_first(r->left, len));
	if (whole > r->left.len || r->path.len == 0)
		return false;
	r->left = str_from(r->left, whole);
	if ((flags & NAME_BITS) != (r->path.len < NAME_BITS ? r->path.len : NAME_BITS))
		return false;
	ret->path = buf_z(&r->path);
	return true;
}

enum mr_rc
git_index_each(struct mr_str index, size_t hash_len, git_entry_fn *fn, void *ctx, bool *ret_split, struct mr_error *err)
{
	struct reading r = { .hash_len = hash_len, .path = BUF_INIT };
	enum mr_rc rc = MR_OK;

	*ret_split = false;
	if (index.len < HEADER + hash_len || memcmp(index.ptr, "DIRC", 4) != 0)
		return mr_fail(err, MR_CORRUPT, "it is not a git index");
	r.version = number(index.ptr + 4, 4);
	if (r.version < 2 || r.version > 4)
		return mr_fail(err, MR_UNSUPPORTED, "its version %u is unknown", (unsigned)r.version);
	r.left = (struct mr_str){ index.ptr + HEADER, index.len - HEADER - hash_len };
	uint32_t n = number(index.ptr + 8, 4), i = 0;

	for (bool more = true; i < n && more; i++) {
		struct git_entry entry;

		if (!take_entry(&r, &entry)) {
			rc = r.path.failed ? mr_nomem(err)
					   : mr_fail(err, MR_CORRUPT, "its entry %u is torn", (unsigned)i + 1);
			break;
		}
		more = fn(ctx, &entry);
	}
	/* The extension "link" says that most entries are in a shared index. */
	while (rc == MR_OK && i == n && !*ret_split && r.left.len >= 8) {
		size_t len = number(r.left.ptr + 4, 4);

		*ret_split = str_starts(r.left, "link");
		r.left = str_from(r.left, len > r.left.len - 8 ? r.left.len : 8 + len);
	}
	buf_done(&r.path);
	return rc;
}

bool
git_path_is_plain(const char *path)
{
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && memcmp(at, "..", 2) == 0) ||
		    (n == 4 && strncasecmp(at, ".git", 4) == 0))
			return false;
		at += n;
		if (*at == '\0')
			return true;
	}
}

/* ---- A reflog ---- */

static bool
read_move(struct mr_str line, struct git_move *ret)
{
	struct mr_str old, rest = { 0 };

	*ret = (struct git_move){ 0 };
	(void)str_split(line, '\t', &line, &ret->message);
	const char *end = line.ptr + line.len, *mail = memrchr(line.ptr, '>', line.len);

	if (!str_split(line, ' ', &old, &rest) || !str_split(rest, ' ', &ret->commit, &rest) || !mail ||
	    mail < rest.ptr - 1 || end - mail < 3 || mail[1] != ' ')
		return false;
	for (const char *c = mail + 2; c < end && *c >= '0' && *c <= '9' && ret->seconds < (int64_t)1 << 40; c++)
		ret->seconds = ret->seconds * 10 + (*c - '0');
	for (size_t i = 0; i < ret->commit.len; i++)
		if (!ascii_digit(ret->commit.ptr[i]) && !(ret->commit.ptr[i] >= 'a' && ret->commit.ptr[i] <= 'f'))
			return false;
	return ret->commit.len == (size_t)2 * GIT_SHA1 || ret->commit.len == (size_t)2 * GIT_SHA256;
}

void
git_log_each_back(struct mr_str log, git_move_fn *fn, void *ctx)
{
	while (log.len > 0) {
		size_t end = log.ptr[log.len - 1] == '\n' ? log.len - 1 : log.len;
		const char *lf = memrchr(log.ptr, '\n', end);
		size_t from = lf ? (size_t)(lf - log.ptr) + 1 : 0;
		struct git_move move;

		if (read_move((struct mr_str){ log.ptr + from, end - from }, &move) && !fn(ctx, &move))
			return;
		log.len = from;
	}
}
