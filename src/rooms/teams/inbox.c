/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - what is in a file. It is walked once from the front, entry by entry, so that a file that was cut gives up
 * all that is whole before the cut.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <fcntl.h>

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

void
inbox_drop(struct inbox *in)
{
	if (!in || --in->refs > 0)
		return;
	buf_done(&in->text);
	free(in->v);
	free(in->order);
	free(in);
}

void
inbox_unref(struct inbox **in)
{
	inbox_drop(*in);
	*in = NULL;
}

/* ---- Parsing ---- */

static bool
add_entry(struct inbox *in, size_t *cap, struct json_value value)
{
	if (in->n == *cap) {
		size_t more = *cap ? *cap * 2 : 64;
		struct entry *v = realloc(in->v, more * sizeof *v);

		if (!v)
			return false;
		in->v = v;
		*cap = more;
	}
	entry_parse(value, &in->v[in->n]);
	in->n++;
	return true;
}

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
	bool clean = json_skip_space(text, *at + 1) >= text.len;

	in->state = clean ? INBOX_GOOD : INBOX_CLEARED;
	return false;
}

/* No array. A whole value is somebody's meaning; anything else is damage. */
static void
judge_other(struct inbox *in, struct mr_str text, size_t at)
{
	struct json_value value;
	const char *problem = "";

	in->state = json_value_at(text, &at, &value, &problem) ? INBOX_ALIEN : INBOX_TORN;
	in->problem = in->state == INBOX_ALIEN ? "is no array" : problem;
}

static enum mr_rc
walk(struct inbox *in, struct mr_error *err)
{
	struct mr_str text = buf_str(&in->text);
	bool bom = str_starts(text, "\xEF\xBB\xBF");
	size_t at = json_skip_space(text, bom ? 3 : 0), cap = 0;

	if (at >= text.len || text.ptr[at] != '[') {
		judge_other(in, text, at);
		return MR_OK;
	}
	size_t first = json_skip_space(text, ++at);

	if (first < text.len && text.ptr[first] == ']') {
		at = first;
		(void)goes_on(in, text, &at);
	} else {
		struct json_value value;

		do {
			if (!json_value_at(text, &at, &value, &in->problem)) {
				in->state = strcmp(in->problem, "is nested too deep") == 0 ? INBOX_ALIEN : INBOX_TORN;
				return MR_OK;
			}
			if (!add_entry(in, &cap, value))
				return mr_nomem(err);
		} while (goes_on(in, text, &at));
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

/* Entries that are the same in every respect are told apart by counting. */
static bool
number_twins(struct inbox *in)
{
	bool found = false, fine = true;

	for (size_t i = 0, n = 0; i + 1 < in->order_n; i++) {
		bool twin = strcmp(in->order[i - n]->id, in->order[i + 1]->id) == 0;

		n = twin ? n + 1 : 0;
		if (twin)
			fine &= entry_identify(in->order[i + 1], (unsigned)n);
		found |= twin;
	}
	if (found)
		qsort(in->order, in->order_n, sizeof(*in->order), by_id);
	return fine;
}

static enum mr_rc
rank(struct inbox *in, struct mr_error *err)
{
	in->order = calloc(in->n + 1, sizeof(*in->order));
	if (!in->order)
		return mr_nomem(err);
	for (size_t i = 0; i < in->n; i++) {
		if (in->v[i].problem)
			continue;
		if (!entry_identify(&in->v[i], 0))
			return mr_nomem(err);
		in->order[in->order_n++] = &in->v[i];
	}
	qsort(in->order, in->order_n, sizeof(*in->order), by_id);
	return number_twins(in) ? MR_OK : mr_nomem(err);
}

enum mr_rc
inbox_parse(struct inbox *in, struct mr_error *err)
{
	enum mr_rc rc = walk(in, err);

	return rc == MR_OK ? rank(in, err) : rc;
}

struct entry *
inbox_find(struct inbox *in, const char *id)
{
	struct entry want = { 0 };
	const struct entry *key = &want;
	size_t low = 0, high = in->order_n;

	(void)snprintf(want.id, sizeof want.id, "%s", id);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(in->order[middle]->id, key->id);

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

enum mr_rc
inbox_read(struct inbox *in, int dir_fd, const char *file, struct mr_error *err)
{
	/* O_NONBLOCK: a pipe in its place must not hold us up before we see what it is. */
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, file, O_RDONLY | O_NONBLOCK, 0);

	buf_clear(&in->text);
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

	if (rc != MR_REFUSED)
		return rc == MR_OK ? rc : mr_wrap(err, "'%s'", file);
	return mr_fail(err, MR_REFUSED,
	    "'%s' is larger than %zu MB, the limit of an inbox\nnobody reads it any more: save what matters and empty it",
	    file, INBOX_MAX / 1000000);
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
	       st.st_mtim.tv_sec == in->st.st_mtim.tv_sec && st.st_mtim.tv_nsec == in->st.st_mtim.tv_nsec &&
	       in->read_ns - ((int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec) > grain_ns;
}

/* Nobody has touched it for so long that nobody is writing it. */
static bool
is_settled(const struct inbox *in)
{
	return clock_now_ns() - ((int64_t)in->st.st_mtim.tv_sec * 1000000000 + in->st.st_mtim.tv_nsec) > 2000000000;
}

static enum mr_rc
read_patiently(struct inbox **in, int dir_fd, const char *file, struct mr_error *err)
{
	for (unsigned pause_ms = 5;; pause_ms *= 2) {
		enum mr_rc rc = inbox_read(*in, dir_fd, file, err);

		if (rc == MR_OK && (*in)->state != INBOX_MISSING)
			rc = inbox_parse(*in, err);
		if (rc != MR_OK || (*in)->state != INBOX_TORN || pause_ms > 320 || is_settled(*in))
			return rc;
		struct inbox *again = inbox_new((*in)->agent);

		if (!again)
			return mr_nomem(err);
		inbox_drop(*in);
		*in = again;
		team_nap_us(pause_ms * 1000);
	}
}

/* What this handle has marked and not written yet. */
static void
overlay_marks(const struct teams *t, struct inbox *in)
{
	for (size_t i = 0; i < t->marks_n; i++) {
		struct entry *e = strcmp(t->marks[i].agent, in->agent) == 0 ? inbox_find(in, t->marks[i].id) : NULL;

		if (e)
			e->seen = t->marks[i].seen;
	}
}

enum mr_rc
inbox_load(struct teams *t, const char *agent, bool cached, struct inbox **ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(inbox_unref) struct inbox *in = inbox_new(agent);
	char file[TEAM_NAME_LEN];

	if (!in)
		return mr_nomem(err);
	enum mr_rc rc = teams_open_inboxes(t, &dir_fd, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	teams_inbox_name(agent, file);
	if (rc == MR_OK && cached && t->cache && strcmp(t->cache->agent, agent) == 0 &&
	    still_same(t->cache, dir_fd, file)) {
		inbox_unref(&in);
		in = t->cache;
		in->refs++;
	} else if (rc == MR_OK) {
		TRY(read_patiently(&in, dir_fd, file, err));
		overlay_marks(t, in);
		inbox_drop(t->cache);
		t->cache = in;
		in->refs++;
	}
	*ret = in;
	in = NULL;
	return MR_OK;
}
