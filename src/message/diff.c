/* SPDX-License-Identifier: MIT */
/*
 * diff.c - Myers' greedy algorithm on two lists of lines: it follows the equal lines diagonal by diagonal, so that a
 * few changes in a large file cost little. After STEPS_MAX changed lines the whole middle is shown as replaced.
 */
#include "message/diff.h"

#include "base/error.h"
#include "base/text.h"

#define CONTEXT 3
#define STEPS_MAX 1000
#define LINE_MAX_CHARS 300
#define LINE_LEAD 40 /* characters of a long line before its change */

struct lines {
	struct mr_str *v; /* each with its newline */
	size_t n, cap;
};

struct row { /* a line of either text: ' ' both have it, '-' only the old one, '+' only the new one */
	char mark;
	struct mr_str line;
};

static bool
split(struct mr_str text, struct lines *ret)
{
	for (size_t len; text.len > 0; text = str_from(text, len)) {
		if (!array_grow(&ret->v, ret->n, &ret->cap, sizeof(*ret->v)))
			return false;
		len = str_find(text, '\n');
		len += len < text.len;
		ret->v[ret->n++] = str_first(text, len);
	}
	return true;
}

/* The old line at which diagonal k is entered at that step, and whether by an added or a removed line. `far` has how
 * far each diagonal -step..step got: that of step s begins at s * s. */
static int
start_of(const int *far, int step, int k, bool *ret_added)
{
	if (step == 0)
		return 0;
	const int *last = far + (step - 1) * (step - 1) + (step - 1);

	*ret_added = k == -step || (k != step && last[k - 1] < last[k + 1]);
	return *ret_added ? last[k + 1] : last[k - 1] + 1;
}

/* The number of changed lines on the shortest path; -1: more than STEPS_MAX. */
static int
find_way(const struct mr_str *old, int n, const struct mr_str *new, int m, int *far)
{
	bool added;

	for (int step = 0; step <= STEPS_MAX && step <= n + m; step++)
		for (int k = -step; k <= step; k += 2) {
			int x = start_of(far, step, k, &added), y = x - k;

			while (x < n && y >= 0 && y < m && str_eq(old[x], new[y]))
				x++, y++;
			far[step * step + step + k] = x;
			if (x >= n && y >= m)
				return step;
		}
	return -1;
}

/* The rows of both texts in order. NULL: out of memory. */
static struct row *
compare(const struct lines *old, const struct lines *new, size_t *ret_n)
{
	size_t skip = 0, old_n = old->n, new_n = new->n, at = old_n + new_n;
	mr_auto(free_ptr) int *far = calloc((size_t)(STEPS_MAX + 1) * (STEPS_MAX + 1), sizeof(*far));
	struct row *rows = calloc(at + 1, sizeof(*rows));

	if (!far || !rows) {
		free(rows);
		return NULL;
	}
	while (skip < old_n && skip < new_n && str_eq(old->v[skip], new->v[skip]))
		skip++;
	for (; old_n > skip && new_n > skip && str_eq(old->v[old_n - 1], new->v[new_n - 1]); new_n--)
		rows[--at] = (struct row){ ' ', old->v[--old_n] };
	const struct mr_str *a = old->v + skip, *b = new->v + skip;
	int x = (int)(old_n - skip), y = (int)(new_n - skip), steps = find_way(a, x, b, y, far);

	while (steps < 0 && y > 0)
		rows[--at] = (struct row){ '+', b[--y] };
	while (steps < 0 && x > 0)
		rows[--at] = (struct row){ '-', a[--x] };
	for (int step = steps; step >= 0; step--) { /* back along the path */
		bool added = false;
		int from = start_of(far, step, x - y, &added);

		for (; x > from; y--)
			rows[--at] = (struct row){ ' ', a[--x] };
		if (step > 0)
			rows[--at] = added ? (struct row){ '+', b[--y] } : (struct row){ '-', a[--x] };
	}
	while (skip > 0)
		rows[--at] = (struct row){ ' ', old->v[--skip] };
	*ret_n = old->n + new->n - at;
	memmove(rows, rows + at, *ret_n * sizeof(*rows));
	return rows;
}

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
		shown = str_from(shown, from);
	}
	struct mr_str cut = utf8_cut(shown, LINE_MAX_CHARS);

	/* Tabs are indentation; the rest is one cleaned line. */
	for (; cut.len > 0 && cut.ptr[0] == '\t'; cut.ptr++, cut.len--, shown.len--)
		buf_addc(out, '\t');
	text_clean_line(out, cut);
	buf_adds(out, cut.len < shown.len ? " ...\n" : "\n");
	if (!ends)
		buf_adds(out, "\\ no newline at the end of the file\n");
}

/* For a long line that replaces another: where they begin to differ. */
static size_t
first_difference(const struct row *rows, size_t n, size_t i)
{
	struct mr_str a = rows[i].line, b;
	size_t same = 0;

	if (rows[i].mark == '-' && i + 1 < n && rows[i + 1].mark == '+')
		b = rows[i + 1].line;
	else if (rows[i].mark == '+' && i > 0 && rows[i - 1].mark == '-')
		b = rows[i - 1].line;
	else
		return 0;
	while (same < a.len && same < b.len && a.ptr[same] == b.ptr[same])
		same++;
	return same > LINE_MAX_CHARS / 2 ? same - LINE_LEAD : 0;
}

/* The rows from..end, with the numbers of their first lines. */
static void
show_hunk(const struct row *rows, size_t n, size_t from, size_t end, struct buf *out)
{
	size_t old_at = 0, new_at = 0, old_n = 0, new_n = 0;

	for (size_t i = 0; i < end; i++) {
		*(i < from ? &old_at : &old_n) += rows[i].mark != '+';
		*(i < from ? &new_at : &new_n) += rows[i].mark != '-';
	}
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_n > 0 ? old_at + 1 : old_at, old_n,
	    new_n > 0 ? new_at + 1 : new_at, new_n);
	for (size_t i = from; i < end; i++)
		show_line(out, rows[i].mark, rows[i].line, first_difference(rows, n, i));
}

void
diff_unified(struct mr_str before, struct mr_str after, const char *old_name, const char *new_name, struct buf *out)
{
	struct lines old = { 0 }, new = { 0 };
	size_t n = 0;
	mr_auto(free_ptr) struct row *rows = split(before, &old) && split(after, &new) ? compare(&old, &new, &n) : NULL;

	out->failed |= !rows;
	if (!out->failed && (!str_eq(before, after) || !old_name || !new_name)) {
		buf_adds(out, "--- ");
		text_clean_line(out, str_of(old_name ? old_name : "/dev/null"));
		buf_adds(out, "\n+++ ");
		text_clean_line(out, str_of(new_name ? new_name : "/dev/null"));
		buf_addc(out, '\n');
		for (size_t i = 0; i < n; i++) {
			size_t last = i;

			if (rows[i].mark == ' ')
				continue;
			for (size_t k = i; k < n && k <= last + 2 * CONTEXT + 1; k++)
				last = rows[k].mark != ' ' ? k : last;
			size_t end = last + CONTEXT < n ? last + CONTEXT + 1 : n;

			show_hunk(rows, n, i > CONTEXT ? i - CONTEXT : 0, end, out);
			i = end - 1;
		}
	}
	free(old.v);
	free(new.v);
}
