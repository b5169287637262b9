/* SPDX-License-Identifier: MIT */
/*
 * diff.c - Myers' greedy way through two lists of lines: what is the same is found diagonal by diagonal, so that a few
 * changes in a large file cost little. Who changes more than STEPS_MAX lines sees the whole middle replaced.
 */
#include "message/diff.h"

#include "base/error.h"
#include "base/text.h"

#define CONTEXT 3
#define STEPS_MAX 1000
#define LINE_MAX_CHARS 300
#define LINE_LEAD 40 /* shown of a long line before its change */

struct lines {
	struct mr_str *v;
	size_t n;
};

struct edit { /* an old line that goes, or a new one that comes; in order */
	bool added;
	size_t old_at, new_at;
};

struct diff {
	struct lines old, new;
	struct edit *edits;
	size_t n;
};

static bool
split(struct mr_str text, struct lines *ret)
{
	size_t n = 1;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '\n';
	ret->v = calloc(n, sizeof *ret->v);
	if (!ret->v)
		return false;
	for (size_t at = 0; at < text.len;) {
		const char *end = memchr(text.ptr + at, '\n', text.len - at);
		size_t len = end ? (size_t)(end - text.ptr) + 1 - at : text.len - at;

		ret->v[ret->n++] = (struct mr_str){ text.ptr + at, len };
		at += len;
	}
	return true;
}

/* ---- The way ---- */

static bool
add_edit(struct diff *d, bool added, size_t old_at, size_t new_at)
{
	if ((d->n & (d->n + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
		struct edit *more = realloc(d->edits, (2 * d->n + 1) * sizeof *more);

		if (!more)
			return false;
		d->edits = more;
	}
	d->edits[d->n++] = (struct edit){ added, old_at, new_at };
	return true;
}

struct way {
	const struct lines *old, *new;
	size_t skip;                     /* lines that are the same at the beginning */
	int64_t n, m;                    /* what is between, old and new */
	int64_t *reached[STEPS_MAX + 1]; /* by step: for each diagonal -step..step, how far in the old lines */
};

static bool
same_line(const struct way *w, int64_t x, int64_t y)
{
	return str_eq(w->old->v[w->skip + (size_t)x], w->new->v[w->skip + (size_t)y]);
}

static int64_t
start_of(const struct way *w, int64_t step, int64_t k)
{
	const int64_t *last = step > 0 ? w->reached[step - 1] + (step - 1) : NULL;

	if (!last)
		return 0;
	if (k == -step || (k != step && last[k - 1] < last[k + 1]))
		return last[k + 1]; /* a new line */
	return last[k - 1] + 1;     /* an old one goes */
}

/* How many lines change; -1: too many, or out of memory. */
static int64_t
find_way(struct way *w)
{
	for (int64_t step = 0; step <= STEPS_MAX && step <= w->n + w->m; step++) {
		w->reached[step] = calloc((size_t)(2 * step + 1), sizeof(int64_t));
		if (!w->reached[step])
			return -1;
		for (int64_t k = -step; k <= step; k += 2) {
			int64_t x = start_of(w, step, k), y = x - k;

			while (x < w->n && y >= 0 && y < w->m && same_line(w, x, y))
				x++, y++;
			w->reached[step][k + step] = x;
			if (x >= w->n && y >= w->m)
				return step;
		}
	}
	return -1;
}

static bool
walk_back(struct diff *d, const struct way *w, int64_t steps)
{
	int64_t x = w->n, y = w->m;

	for (int64_t step = steps; step > 0; step--) {
		int64_t k = x - y, from = start_of(w, step, k);
		const int64_t *last = w->reached[step - 1] + (step - 1);
		bool added = k == -step || (k != step && last[k - 1] < last[k + 1]);

		x = added ? from : from - 1;
		y = added ? from - k - 1 : from - k;
		if (!add_edit(d, added, w->skip + (size_t)x, w->skip + (size_t)y))
			return false;
	}
	for (size_t i = 0; i < d->n / 2; i++) {
		struct edit swap = d->edits[i];

		d->edits[i] = d->edits[d->n - 1 - i];
		d->edits[d->n - 1 - i] = swap;
	}
	return true;
}

static bool
replace_all(struct diff *d, const struct way *w)
{
	bool fine = true;

	for (int64_t i = 0; i < w->n && fine; i++)
		fine = add_edit(d, false, w->skip + (size_t)i, w->skip);
	for (int64_t i = 0; i < w->m && fine; i++)
		fine = add_edit(d, true, w->skip + (size_t)w->n, w->skip + (size_t)i);
	return fine;
}

static bool
compare(struct diff *d)
{
	struct way w = { .old = &d->old, .new = &d->new };
	size_t old_n = d->old.n, new_n = d->new.n;

	while (w.skip < old_n && w.skip < new_n && str_eq(d->old.v[w.skip], d->new.v[w.skip]))
		w.skip++;
	while (old_n > w.skip && new_n > w.skip && str_eq(d->old.v[old_n - 1], d->new.v[new_n - 1]))
		old_n--, new_n--;
	w.n = (int64_t)(old_n - w.skip);
	w.m = (int64_t)(new_n - w.skip);
	int64_t steps = find_way(&w);
	bool fine = steps >= 0 ? walk_back(d, &w, steps) : replace_all(d, &w);

	for (size_t i = 0; i <= STEPS_MAX; i++)
		free(w.reached[i]);
	return fine;
}

/* ---- Showing ---- */

static void
show_line(struct buf *out, char mark, struct mr_str line, size_t from)
{
	struct mr_str shown = line;
	bool ends = str_ends(line, "\n");

	if (ends)
		shown.len--;
	if (str_ends(shown, "\r"))
		shown.len--;
	buf_addc(out, mark);
	if (from > 0) {
		while (from > 0 && ((unsigned char)shown.ptr[from] & 0xc0) == 0x80)
			from--;
		buf_adds(out, "... ");
		shown = (struct mr_str){ shown.ptr + from, shown.len - from };
	}
	struct mr_str cut = utf8_cut(shown, LINE_MAX_CHARS);

	/* Tabs are how a file is indented; all else is one cleaned line. */
	for (; cut.len > 0 && cut.ptr[0] == '\t'; cut.ptr++, cut.len--, shown.len--)
		buf_addc(out, '\t');
	text_clean_line(out, cut);
	buf_adds(out, cut.len < shown.len ? " ...\n" : "\n");
	if (!ends)
		buf_adds(out, "\\ no newline at the end of the file\n");
}

/* Of a long line that is put in place of another: where they begin to differ. */
static size_t
first_difference(const struct diff *d, size_t i)
{
	const struct edit *e = &d->edits[i];
	const struct edit *other = NULL;

	if (!e->added && i + 1 < d->n && d->edits[i + 1].added && d->edits[i + 1].new_at == e->new_at)
		other = &d->edits[i + 1];
	else if (e->added && i > 0 && !d->edits[i - 1].added && d->edits[i - 1].new_at == e->new_at)
		other = &d->edits[i - 1];
	if (!other)
		return 0;
	struct mr_str a = d->old.v[e->added ? other->old_at : e->old_at];
	struct mr_str b = d->new.v[e->added ? e->new_at : other->new_at];
	size_t n = 0;

	while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
		n++;
	return n > LINE_MAX_CHARS / 2 ? n - LINE_LEAD : 0;
}

static size_t
end_of_hunk(const struct diff *d, size_t first)
{
	size_t last = first;

	while (
	    last + 1 < d->n && d->edits[last + 1].old_at <= d->edits[last].old_at + !d->edits[last].added + 2 * CONTEXT)
		last++;
	return last + 1;
}

static void
show_hunk(const struct diff *d, size_t first, size_t behind, struct buf *out)
{
	const struct edit *a = &d->edits[first], *z = &d->edits[behind - 1];
	size_t lead = a->old_at < CONTEXT ? a->old_at : CONTEXT, old_at = a->old_at - lead;
	size_t old_end = z->old_at + !z->added, new_end = z->new_at + z->added;

	for (int i = 0; i < CONTEXT && old_end < d->old.n; i++)
		old_end++, new_end++;
	size_t old_n = old_end - old_at, new_at = a->new_at - lead, new_n = new_end - new_at;

	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_n > 0 ? old_at + 1 : old_at, old_n,
	    new_n > 0 ? new_at + 1 : new_at, new_n);
	for (size_t i = first; i < behind; i++) {
		const struct edit *e = &d->edits[i];

		while (old_at < e->old_at)
			show_line(out, ' ', d->old.v[old_at++], 0);
		show_line(out, e->added ? '+' : '-', e->added ? d->new.v[e->new_at] : d->old.v[old_at++],
		    first_difference(d, i));
	}
	while (old_at < old_end)
		show_line(out, ' ', d->old.v[old_at++], 0);
}

void
diff_unified(struct mr_str before, struct mr_str after, const char *old_name, const char *new_name, struct buf *out)
{
	struct diff d = { 0 };

	if (!split(before, &d.old) || !split(after, &d.new) || !compare(&d))
		out->failed = true;
	if (!out->failed && (d.n > 0 || !old_name || !new_name)) {
		buf_adds(out, "--- ");
		text_clean_line(out, str_of(old_name ? old_name : "/dev/null"));
		buf_adds(out, "\n+++ ");
		text_clean_line(out, str_of(new_name ? new_name : "/dev/null"));
		buf_addc(out, '\n');
		for (size_t i = 0; i < d.n;) {
			size_t behind = end_of_hunk(&d, i);

			show_hunk(&d, i, behind, out);
			i = behind;
		}
	}
	free(d.old.v);
	free(d.new.v);
	free(d.edits);
}
