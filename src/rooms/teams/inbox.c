/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - what is in a file. It is walked once from the front, entry by entry, so that a file that was cut gives up
 * all that is whole before the cut. Its next version keeps every byte of a good file but those of a changed `read` and
 * of the new entry, whatever its layout; of a damaged one the whole entries are put together anew.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <fcntl.h>

#define PATIENCE_MS 320

struct inbox *
inbox_new(const char *agent)
{
	struct inbox *in = calloc(1, sizeof *in);

	if (in) {
		in->refs = 1;
		(void)snprintf(in->agent, sizeof in->agent, "%s", agent);
	}
	return in;
}

static void
forget_entries(struct inbox *in)
{
	free(in->v);
	free(in->order);
	in->v = NULL;
	in->order = NULL;
	in->n = in->order_n = 0;
}

void
inbox_unref(struct inbox **ref)
{
	struct inbox *in = *ref;

	*ref = NULL;
	if (!in || --in->refs > 0)
		return;
	buf_done(&in->text);
	forget_entries(in);
	free(in);
}

/* ---- Parsing ---- */

/* Behind an entry: a comma (true), the end of the array, or nothing good. */
static bool
goes_on(struct inbox *in, struct mr_str text, size_t *at)
{
	*at = json_skip_space(text, *at);
	if (*at < text.len && text.ptr[*at] == ',') {
		++*at;
		return true;
	}
	if (*at >= text.len || text.ptr[*at] != ']') {
		in->state = INBOX_TORN;
		in->problem = *at >= text.len ? "ends within its array" : "lacks a comma";
		return false;
	}
	in->state = json_skip_space(text, *at + 1) >= text.len ? INBOX_GOOD : INBOX_CLEARED;
	return false;
}

static enum mr_rc
walk(struct inbox *in, struct mr_error *err)
{
	struct mr_str text = buf_str(&in->text);
	bool bom = str_starts(text, "\xEF\xBB\xBF"), more = true;
	size_t at = json_skip_space(text, bom ? 3 : 0), cap = 0;
	struct json_value value;

	if (at >= text.len || text.ptr[at] != '[') { /* a whole value is somebody's meaning; anything else is damage */
		in->problem = "";
		in->state = json_value_at(text, &at, &value, &in->problem) ? INBOX_ALIEN : INBOX_TORN;
		if (in->state == INBOX_ALIEN)
			in->problem = "is no array";
		return MR_OK;
	}
	size_t first = json_skip_space(text, ++at);

	if (first < text.len && text.ptr[first] == ']') {
		at = first;
		more = goes_on(in, text, &at);
	}
	while (more) {
		if (!json_value_at(text, &at, &value, &in->problem)) {
			in->state = in->problem == json_too_deep ? INBOX_ALIEN : INBOX_TORN;
			return MR_OK;
		}
		if (in->n == cap) {
			cap = cap ? cap * 2 : 64;
			struct entry *v = realloc(in->v, cap * sizeof *v);

			if (!v)
				return mr_nomem(err);
			in->v = v;
		}
		entry_parse(value, &in->v[in->n++]);
		more = goes_on(in, text, &at);
	}
	if (bom && in->state == INBOX_GOOD) { /* the original cannot read it at all */
		in->state = INBOX_TORN;
		in->problem = "begins with a byte order mark";
	}
	return MR_OK;
}

/* The entries stand in one array: where they have the same id, their order is that of their places. */
static int
by_id(const void *a, const void *b)
{
	const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
	int order = strcmp(left->id, right->id);

	return order ? order : left < right ? -1 : left > right;
}

enum mr_rc
inbox_parse(struct inbox *in, struct mr_error *err)
{
	bool twins = false, fine = true;

	TRY(walk(in, err));
	in->order = calloc(in->n + 1, sizeof(*in->order));
	if (!in->order)
		return mr_nomem(err);
	for (size_t i = 0; i < in->n; i++) {
		if (in->v[i].problem)
			continue;
		fine &= entry_identify(&in->v[i], 0);
		in->order[in->order_n++] = &in->v[i];
	}
	qsort(in->order, in->order_n, sizeof(*in->order), by_id);
	/* Entries that are the same in every respect are told apart by counting. */
	for (size_t i = 0, n = 0; i + 1 < in->order_n; i++) {
		bool twin = strcmp(in->order[i - n]->id, in->order[i + 1]->id) == 0;

		n = twin ? n + 1 : 0;
		if (twin)
			fine &= entry_identify(in->order[i + 1], (unsigned)n);
		twins |= twin;
	}
	if (twins)
		qsort(in->order, in->order_n, sizeof(*in->order), by_id);
	return fine ? MR_OK : mr_nomem(err);
}

struct entry *
inbox_find(struct inbox *in, const char *id)
{
	size_t low = 0, high = in->order_n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(in->order[middle]->id, id);

		if (order == 0)
			return in->order[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

enum mr_rc
inbox_corrupt(const struct inbox *in, struct mr_error *err)
{
	(void)mr_fail(err, MR_CORRUPT, "the inbox of '%s' %s", in->agent, in->problem ? in->problem : "is damaged");
	if (in->state == INBOX_ALIEN)
		return mr_hint(err, "it is left as it is; an inbox is a JSON array of objects: see whose file it is");
	return mr_hint(err, "the whole messages at its beginning can be read; the next change saves the rest aside");
}

/* ---- Reading ---- */

static enum mr_rc
read_once(struct inbox *in, int dir_fd, const char *file, struct mr_error *err)
{
	/* O_NONBLOCK: a pipe in its place must not hold us up before we see what it is. */
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, file, O_RDONLY | O_NONBLOCK, 0);

	buf_clear(&in->text);
	forget_entries(in);
	if (fd < 0 && errno == ENOENT) {
		in->state = INBOX_MISSING;
		return MR_OK;
	}
	in->state = INBOX_GOOD;
	in->read_ns = clock_now_ns();
	if (fd < 0 && errno != ELOOP && errno != ENXIO)
		return mr_fail_errno(err, "cannot open '%s'", file);
	if (fd >= 0 && sys_stat_fd(fd, &in->st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", file);
	if (fd < 0 || !S_ISREG(in->st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a regular file", file);
	enum mr_rc rc =
	    (uintmax_t)in->st.st_size > INBOX_MAX ? MR_REFUSED : file_read_fd(fd, INBOX_MAX, &in->text, err);

	if (rc == MR_REFUSED)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is larger than %zu MB, the limit of an inbox\nnobody reads it any more: save what matters and empty it",
		    file, INBOX_MAX / 1000000);
	return rc == MR_OK ? inbox_parse(in, err) : mr_wrap(err, "'%s'", file);
}

enum mr_rc
inbox_read(struct inbox *in, int dir_fd, const char *file, unsigned patience_ms, struct mr_error *err)
{
	for (unsigned pause_ms = 5;; pause_ms *= 2) {
		TRY(read_once(in, dir_fd, file, err));
		/* What nobody has touched for two seconds is not being written. */
		bool settled = clock_now_ns() - kit_mtime_ns(&in->st) > 2000000000;

		if (in->state != INBOX_TORN || settled || pause_ms > patience_ms)
			return MR_OK;
		lock_pause_us(pause_ms * 1000);
	}
}

/* Has it changed since? Within the grain of the kernel's clock nobody can tell. */
static bool
still_same(const struct inbox *in, int dir_fd, const char *file)
{
	const int64_t grain_ns = 50000000;
	struct stat st;

	if (in->state == INBOX_MISSING || sys_stat(dir_fd, file, &st) < 0)
		return false;
	return st.st_ino == in->st.st_ino && st.st_size == in->st.st_size &&
	       kit_mtime_ns(&st) == kit_mtime_ns(&in->st) && in->read_ns - kit_mtime_ns(&st) > grain_ns;
}

enum mr_rc
inbox_load(struct teams *t, const char *agent, bool cached, struct inbox **ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(inbox_unref) struct inbox *in = NULL;
	char file[TEAM_NAME_LEN];
	enum mr_rc rc = teams_open_dir(t, t->inboxes, &dir_fd, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	teams_inbox_name(agent, file);
	if (rc == MR_OK && cached && t->cache && strcmp(t->cache->agent, agent) == 0 &&
	    still_same(t->cache, dir_fd, file)) {
		*ret = t->cache;
		t->cache->refs++;
		return MR_OK;
	}
	in = inbox_new(agent);
	if (!in)
		return mr_nomem(err);
	if (rc == MR_OK) {
		TRY(inbox_read(in, dir_fd, file, PATIENCE_MS, err));
		for (size_t i = 0; i < t->marks_n; i++) { /* what this handle has marked and not written yet */
			struct entry *e = strcmp(t->marks[i].agent, agent) == 0 ? inbox_find(in, t->marks[i].id) : NULL;

			if (e)
				e->seen = t->marks[i].seen;
		}
		inbox_unref(&t->cache);
		t->cache = in;
		in->refs++;
	}
	*ret = in;
	in = NULL;
	return MR_OK;
}

/* ---- The next version ---- */

enum mr_rc
edit_inbox(const struct inbox *in, const struct letter *more, struct buf *ret, bool *ret_changed, struct mr_error *err)
{
	bool good = in->state == INBOX_GOOD && in->n > 0, changed = in->state != INBOX_GOOD || more != NULL;
	const char *at = good ? in->text.ptr : NULL; /* up to here it is copied */

	for (size_t i = 0; i < in->n; i++) {
		const struct entry *e = &in->v[i];

		if (good)
			buf_add(ret, (struct mr_str){ at, (size_t)(e->raw.ptr - at) });
		else
			buf_adds(ret, i == 0 ? "[\n  " : ",\n  ");
		changed |= entry_add(e, ret);
		at = e->raw.ptr + e->raw.len;
	}
	if (more) {
		buf_adds(ret, in->n == 0 ? "[\n" : ",\n");
		letter_add(more, ret);
	}
	if (good)
		buf_add(ret, (struct mr_str){ at, (size_t)(in->text.ptr + in->text.len - at) });
	else
		buf_adds(ret, in->n == 0 && !more ? "[]" : "\n]");
	if (!buf_ok(ret))
		return mr_nomem(err);
	*ret_changed = changed;
	return MR_OK;
}
