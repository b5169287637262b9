/* SPDX-License-Identifier: MIT */
/*
 * layout.c - the rows of a picture. Time goes down, but not to scale: a row each for what happened, and one row for a
 * silence that is much longer than usual, whatever its length. In a large picture a run of messages is one row.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "picture/picture.h"
#include <stdlib.h>

#define GAP_MS ((int64_t)120 * 1000) /* a shorter silence is none */
#define GAP_TIMES 6                  /* so many times the usual pause is one */
#define RUN_MIN 3                    /* messages one way; in turn twice as many */
#define DAY_MS ((int64_t)24 * 3600 * 1000)

/* ---- Runs ---- */

static bool
same_way(const struct mr_arrow *a, const struct mr_arrow *b)
{
	return a->from == b->from && a->to_n == b->to_n && memcmp(a->to, b->to, a->to_n * sizeof *a->to) == 0;
}

static bool
back_and_forth(const struct mr_arrow *a, const struct mr_arrow *b)
{
	return a->to_n == 1 && b->to_n == 1 && a->from == b->to[0] && b->from == a->to[0] && a->from != b->from;
}

/* How many messages from `first` on are one row, and whether they go both ways. A message that stands out ends a run.
 */
static size_t
run_length(const struct mr_picture *p, size_t first, int64_t gap_ms, bool *ret_both)
{
	const struct mr_arrow *a = p->arrows;
	size_t same = 1, turns = 1;

	*ret_both = false;
	if (a[first].priority >= MR_HIGH)
		return 1;
	for (size_t i = first + 1; i < p->arrows_n && a[i].at_ms - a[i - 1].at_ms < gap_ms; i++) {
		if (a[i].priority >= MR_HIGH)
			break;
		if (same == i - first && same_way(&a[first], &a[i]))
			same++;
		if (turns == i - first && (same_way(&a[first], &a[i]) || back_and_forth(&a[first], &a[i])))
			turns++;
		if (turns != i - first + 1 && same != i - first + 1)
			break;
	}
	*ret_both = same < RUN_MIN && turns >= (size_t)2 * RUN_MIN;
	return *ret_both ? turns : same >= RUN_MIN ? same : 1;
}

/* ---- Silence ---- */

static int
by_size(const void *a, const void *b)
{
	return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

/* A pause that is so long is drawn as a gap. */
static bool
find_gap(const struct mr_picture *p, int64_t *ret_ms)
{
	int64_t *pauses = p->arrows_n > 1 ? calloc(p->arrows_n, sizeof *pauses) : NULL;
	int64_t usual = 0;

	if (p->arrows_n > 1 && !pauses)
		return false;
	for (size_t i = 1; i < p->arrows_n; i++)
		pauses[i - 1] = p->arrows[i].at_ms - p->arrows[i - 1].at_ms;
	if (p->arrows_n > 1) {
		qsort(pauses, p->arrows_n - 1, sizeof *pauses, by_size);
		usual = pauses[(p->arrows_n - 2) / 2];
	}
	free(pauses);
	*ret_ms = GAP_TIMES * usual > GAP_MS ? GAP_TIMES * usual : GAP_MS;
	return true;
}

/* ---- Rows ---- */

struct laying {
	struct picture_layout *l;
	int64_t gap_ms;
	struct picture_row *marks; /* what is no message, by its time */
	size_t marks_n, mark;
};

static void
add_row(struct laying *y, struct picture_row row)
{
	struct picture_layout *l = y->l;
	int64_t last = l->n > 0 ? l->rows[l->n - 1].until_ms : row.at_ms;

	if (row.at_ms - last >= y->gap_ms)
		l->rows[l->n++] = (struct picture_row){ .kind = ROW_GAP, .at_ms = last, .until_ms = row.at_ms };
	l->rows[l->n++] = row;
}

static void
add_marks(struct laying *y, int64_t before_ms)
{
	for (; y->mark < y->marks_n && y->marks[y->mark].at_ms < before_ms; y->mark++)
		add_row(y, y->marks[y->mark]);
}

static int
by_time(const void *va, const void *vb)
{
	const struct picture_row *a = va, *b = vb;

	return ORDER(a->at_ms, b->at_ms) ?: ORDER(a->lane, b->lane) ?: ORDER(a->bar, b->bar);
}

/* What happened before all that is drawn stands at its beginning. */
static void
gather_marks(struct laying *y)
{
	const struct mr_picture *p = y->l->of;

	for (size_t i = 0; i < p->lanes_n; i++)
		if (p->lanes[i].died_ms)
			y->marks[y->marks_n++] =
			    (struct picture_row){ ROW_DEATH, .at_ms = p->lanes[i].died_ms, .lane = i };
	for (size_t i = 0; i < p->bars_n; i++)
		y->marks[y->marks_n++] =
		    (struct picture_row){ ROW_TAKEN, .at_ms = p->bars[i].from_ms, .lane = p->bars[i].lane, .bar = i };
	for (size_t i = 0; i < y->marks_n; i++) {
		struct picture_row *row = &y->marks[i];

		row->at_ms = row->at_ms > p->from_ms ? row->at_ms : p->from_ms;
		row->until_ms = row->at_ms;
	}
	qsort(y->marks, y->marks_n, sizeof *y->marks, by_time);
}

/* The first row at that time or later; the row behind the last one: none. */
static size_t
row_at(const struct picture_layout *l, int64_t at_ms)
{
	size_t i = 0;

	while (i < l->n && (l->rows[i].kind == ROW_GAP ? l->rows[i].until_ms : l->rows[i].at_ms) < at_ms)
		i++;
	return i;
}

static void
place_lives(struct picture_layout *l)
{
	const struct mr_picture *p = l->of;

	for (size_t i = 0; i < p->lanes_n; i++) {
		l->born[i] = p->lanes[i].born_ms ? row_at(l, p->lanes[i].born_ms) : 0;
		l->dead[i] = l->n;
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct picture_row *row = &l->rows[i];

		if (row->kind == ROW_DEATH)
			l->dead[row->lane] = i;
		if (row->kind != ROW_TAKEN)
			continue;
		int64_t to_ms = p->bars[row->bar].to_ms;
		size_t to = to_ms ? row_at(l, to_ms + 1) : l->n;

		l->bars[row->bar] = (struct picture_span){ i, to > i ? to : i + 1, to_ms == 0 };
	}
}

bool
picture_layout(struct picture_layout *ret, const struct mr_picture *p, size_t runs_from)
{
	struct laying y = { .l = ret };

	*ret = (struct picture_layout){ .of = p, .day_ms = p->from_ms - p->from_ms % DAY_MS };
	ret->rows = calloc(2 * (p->arrows_n + p->lanes_n + p->bars_n) + 1, sizeof *ret->rows);
	ret->bars = calloc(p->bars_n + 1, sizeof *ret->bars);
	ret->born = calloc(p->lanes_n + 1, sizeof *ret->born);
	ret->dead = calloc(p->lanes_n + 1, sizeof *ret->dead);
	y.marks = calloc(p->lanes_n + p->bars_n + 1, sizeof *y.marks);
	if (!ret->rows || !ret->bars || !ret->born || !ret->dead || !y.marks || !find_gap(p, &y.gap_ms)) {
		free(y.marks);
		picture_layout_done(ret);
		return false;
	}
	gather_marks(&y);
	for (size_t i = 0, n; i < p->arrows_n; i += n) {
		bool both = false;

		n = p->arrows_n >= runs_from ? run_length(p, i, y.gap_ms, &both) : 1;
		add_marks(&y, p->arrows[i].at_ms);
		add_row(&y, (struct picture_row){ n > 1 ? ROW_RUN : ROW_ARROW, .at_ms = p->arrows[i].at_ms,
				.until_ms = p->arrows[i + n - 1].at_ms, .first = i, .n = n, .both_ways = both });
	}
	add_marks(&y, INT64_MAX);
	free(y.marks);
	place_lives(ret);
	return true;
}

void
picture_layout_done(struct picture_layout *l)
{
	free(l->rows);
	free(l->bars);
	free(l->born);
	free(l->dead);
	*l = (struct picture_layout){ 0 };
}

/* ---- What renderers ask ---- */

void
picture_reach(const struct picture_layout *l, const struct picture_row *row, size_t *ret_left, size_t *ret_right)
{
	const struct mr_arrow *a = &l->of->arrows[row->first];

	*ret_left = *ret_right = row->kind == ROW_DEATH ? row->lane : a->from;
	if (row->kind == ROW_DEATH || row->kind == ROW_GAP)
		return;
	for (size_t i = 0; i < a->to_n; i++) {
		*ret_left = a->to[i] < *ret_left ? a->to[i] : *ret_left;
		*ret_right = a->to[i] > *ret_right ? a->to[i] : *ret_right;
	}
}

size_t
picture_unread(const struct picture_layout *l, const struct picture_row *row)
{
	size_t unread = 0;

	for (size_t i = 0; i < row->n; i++)
		for (size_t k = 0; k < l->of->arrows[row->first + i].to_n; k++)
			unread += !l->of->arrows[row->first + i].read[k];
	return unread;
}

void
picture_time(const struct picture_layout *l, int64_t at_ms, bool seconds, char ret[16])
{
	struct time_text at = time_text(at_ms);

	if (at_ms - at_ms % DAY_MS == l->day_ms)
		(void)snprintf(ret, 16, "%.*s", seconds ? 8 : 5, at.z + 11);
	else
		(void)snprintf(ret, 16, seconds ? "%.5s %.5s" : "%.5s", at.z + 5, at.z + 11);
}

/* "bob takes: build it (done after 2m)" */
static void
add_taken(const struct picture_layout *l, const struct picture_row *row, struct buf *out)
{
	const struct mr_bar *bar = &l->of->bars[row->bar];

	text_clean_line(out, str_of(l->of->lanes[row->lane].name));
	buf_adds(out, " takes: ");
	for (size_t i = 0; i < l->of->arrows_n; i++)
		if (strcmp(l->of->arrows[i].id, bar->id) == 0)
			text_clean_line(out, str_of(l->of->arrows[i].subject));
	if (bar->to_ms == 0)
		return;
	buf_addf(out, " (%s after %s)", bar->how, span_text(bar->to_ms - bar->from_ms).z);
}

void
picture_label(const struct picture_layout *l, const struct picture_row *row, struct buf *out)
{
	const struct mr_arrow *a = &l->of->arrows[row->first];
	struct time_text span = span_text(row->until_ms - row->at_ms);

	if (row->kind == ROW_GAP) {
		buf_addf(out, "%s of silence", span.z);
	} else if (row->kind == ROW_DEATH) {
		text_clean_line(out, str_of(l->of->lanes[row->lane].name));
		buf_adds(out, " is gone");
	} else if (row->kind == ROW_TAKEN) {
		add_taken(l, row, out);
	} else if (row->kind == ROW_RUN) {
		if (row->until_ms - row->at_ms < 1000)
			buf_addf(out, row->both_ways ? "%zu in turn: " : "%zu \u00d7 ", row->n);
		else
			buf_addf(out, row->both_ways ? "%zu in turn in %s: " : "%zu in %s: ", row->n, span.z);
	}
	if (row->n > 0)
		text_clean_line(out, str_of(*a->subject ? a->subject : a->type));
}
