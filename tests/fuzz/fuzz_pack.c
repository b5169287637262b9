/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a packed month. The first byte says what the others are: 0, the lines of its table, behind what comes
 * before the first NUL as its messages; else the whole file. A listing names files of mail within the pack, and a pack
 * that is found whole gives back every message of its table.
 */
#include "fuzz.h"

#include <unistd.h>

#include "base/file.h"
#include "rooms/maildir/maildir.h"
#if MR_ZLIB
#include "pack/zlib.c"
#endif

#define HEAD "\x1f\x8b\x08\x10\0\0\0\0\0\x03"
#define TAIL "\0\x03\0\0\0\0\0\0\0\0\0"

static void
make_file(struct buf *out, struct mr_str input)
{
	const char *nul = input.len > 0 ? memchr(input.ptr, '\0', input.len) : NULL;
	size_t n = nul ? (size_t)(nul - input.ptr) : 0;
	struct mr_str table = { input.ptr + n + (nul != NULL), input.len - n - (nul != NULL) };
	char digits[21];

	buf_add(out, (struct mr_str){ input.ptr, n });
	n = out->len;
	buf_add(out, (struct mr_str){ HEAD, sizeof(HEAD) - 1 });
	buf_adds(out, "mailroom pack 1\n");
	buf_add(out, table);
	(void)snprintf(digits, sizeof(digits), "%020zu", out->len - n + 20 + sizeof(TAIL) - 1);
	buf_adds(out, digits);
	buf_add(out, (struct mr_str){ TAIL, sizeof(TAIL) - 1 });
}

struct seen {
	int fd;
	uint64_t size, sum;
	bool whole;
};

static bool
look(void *ctx, const char *name, struct packed_at at)
{
	struct seen *s = ctx;
	struct listed l = { .name = name, .subfolder = ".", .packed = at };
	struct mr_error err = { 0 };
	struct stat st = { 0 };
	int fd = -1;

	assert(strlen(name) < NAME_LEN && !strchr(name, '/') && !strchr(name, '\n'));
	assert(at.offset <= s->size && at.length <= s->size - at.offset);
	s->sum += at.length;
	enum mr_rc rc = pack_open_message(s->fd, &l, &fd, &st, &err);

	assert(rc == MR_OK || err.message[0]);
	if (rc == MR_OK)
		assert(st.st_size == (off_t)at.size);
	else
		assert(!s->whole || rc == MR_UNSUPPORTED); /* without zlib */
	sys_close_fd(&fd);
	return true;
}

static char path[] = "/tmp/mailroom-fuzz-pack.XXXXXX";

static void
clean_up(void)
{
	dir_remove_tree(AT_FDCWD, path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int folder = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };

	if (folder < 0) {
		assert(mkdtemp(path) && dir_open(AT_FDCWD, path, &folder, &err) == MR_OK);
		(void)atexit(clean_up);
	}
	if (size == 0)
		return 0;
	if (data[0] == 0)
		make_file(&text, input_of(data + 1, size - 1));
	else
		buf_add(&text, input_of(data + 1, size - 1));
	struct maildir md = { .root_fd = folder };
	struct seen s = { .fd = sys_open(folder, PACK_FILE, O_RDWR | O_CREAT, 0600), .size = text.len };

	assert(s.fd >= 0 && ftruncate(s.fd, (off_t)text.len) == 0);
	assert(text.len == 0 || sys_pwrite_all(s.fd, text.ptr, text.len, 0) == 0);
	enum mr_rc rc = pack_check(&md, ".", &err);

	assert(rc == MR_OK || err.message[0]);
	s.whole = rc == MR_OK;
	rc = pack_each(&md, ".", look, &s, &err);
	assert(!s.whole || (rc == MR_OK && s.sum <= text.len));
	sys_close_fd(&s.fd);
	return 0;
}
