/* SPDX-License-Identifier: MIT */
/* Any bytes as an index of git and as a reflog: paths end and are no longer than allowed, pieces lie within the text.
 * The first byte says which hash. */
#include "fuzz.h"

#include "message/gitfile.h"

struct seen {
	struct mr_str text;
	size_t n;
};

static bool
note_entry(void *ctx, const struct git_entry *entry)
{
	struct seen *s = ctx;
	size_t len = strlen(entry->path);

	assert(len > 0 && len <= GIT_PATH_LONGEST && entry->stage < 4);
	if (git_path_is_plain(entry->path))
		assert(entry->path[0] != '/' && !strstr(entry->path, "/../") && strncmp(entry->path, "../", 3) != 0 &&
		       strncmp(entry->path, ".git/", 5) != 0);
	s->n++;
	return s->n < 100000;
}

static bool
note_move(void *ctx, const struct git_move *move)
{
	struct seen *s = ctx;

	assert(lies_within(move->commit, s->text) && lies_within(move->message, s->text) && move->seconds >= 0);
	assert(move->commit.len == (size_t)2 * GIT_SHA1 || move->commit.len == (size_t)2 * GIT_SHA256);
	assert(!memchr(move->message.ptr ? move->message.ptr : "", '\n', move->message.len));
	s->n++;
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_error err = { 0 };
	struct seen entries = { 0 }, moves = { 0 };
	bool split = false;

	if (size == 0)
		return 0;
	struct mr_str text = input_of(data + 1, size - 1);
	enum mr_rc rc = git_index_each(text, data[0] & 1 ? GIT_SHA256 : GIT_SHA1, note_entry, &entries, &split, &err);

	assert(rc == MR_OK || ((rc == MR_CORRUPT || rc == MR_UNSUPPORTED) && err.message[0]));
	assert(entries.n <= size / 40);
	moves.text = text;
	git_log_each_back(text, note_move, &moves);
	assert(moves.n <= size / 40);
	return 0;
}
