/* SPDX-License-Identifier: MIT */
/*
 * text.c - a picture for a terminal:
 *
 *	         alice     bob      carol
 *	10:30:01   ├────────▶│        │     build it
 *	10:30:09   │         ├╌╌╌╌╌╌╌▶│     who has the key?
 *	           ┊         ┊        ┊     12m of silence
 *
 * A column an agent, a row a message: solid when it was read, broken while it is unread, double for a run. The subjects
 * stand on the right. Where the columns do not fit, it is a list of lines.
 */
#include "base/error.h"
#include "base/text.h"
#include "picture/picture.h"

enum { SPACING_MIN = 5, SPACING_MAX = 14, SUBJECT_MIN = 18, WIDTH_MAX = 400 };

struct plate { /* one line: a cell is one column of the terminal */
	const char *cell[WIDTH_MAX];
};
struct writing {
	struct buf *out;
	const struct picture_layout *l;
	size_t width;  /* of the terminal */
	size_t gutter; /* of the times */
	size_t spacing;
	size_t drawn; /* columns of gutter and lanes */
};

static size_t
lane_at(const struct writing *w, size_t lane)
{
	return w->gutter + lane * w->spacing + w->spacing / 2;
}

static void
pad(struct buf *out, size_t from, size_t to)
{
	for (; from < to; from++)
		buf_addc(out, ' ');
}

/* Ends the line there, without blanks at its end. */
static void
end_line(struct buf *out)
{
	while (out->len > 0 && out->ptr[out->len - 1] == ' ')
		out->ptr[--out->len] = '\0';
	buf_addc(out, '\n');
}

/* ---- The heading ---- */

/* Every other name on a line of its own where they are too long to stand side by side. */
static void
write_names(struct writing *w)
{
	const struct mr_picture *p = w->l->of;
	size_t lines = 1;

	for (size_t i = 0; i < p->lanes_n; i++)
		if (utf8_width(str_of(p->lanes[i].name)) >= w->spacing)
			lines = 2;
	for (size_t line = 0; line < lines; line++) {
		size_t at = 0;

		for (size_t i = line; i < p->lanes_n; i += lines) {
			mr_auto(buf_done) struct buf name = BUF_INIT, cut = BUF_INIT;

			text_clean_line(&name, str_of(p->lanes[i].name));
			size_t n = text_fit(&cut, buf_str(&name), lines * w->spacing - 1), x = lane_at(w, i);

			x = x > n / 2 ? x - n / 2 : 0;
			x = x + n > w->width ? w->width - n : x;
			x = at > 0 && x < at + 1 ? at + 1 : x;
			pad(w->out, at, x);
			buf_adds(w->out, buf_z(&cut));
			at = x + n;
		}
		end_line(w->out);
	}
}

/* ---- Rows ---- */

static bool
is_held(const struct writing *w, size_t row, size_t lane)
{
	for (size_t i = 0; i < w->l->of->bars_n; i++)
		if (w->l->of->bars[i].lane == lane && w->l->bars[i].from <= row && row < w->l->bars[i].to)
			return true;
	return false;
}

static void
draw_lanes(const struct writing *w, size_t row, struct plate *plate)
{
	const struct picture_row *r = &w->l->rows[row];

	for (size_t i = 0; i < w->l->of->lanes_n; i++) {
		bool there = row >= w->l->born[i] && row < w->l->dead[i];

		plate->cell[lane_at(w, i)] = r->kind == ROW_GAP ? "┊" : is_held(w, row, i) ? "┃" : there ? "│" : "┊";
	}
	if (r->kind == ROW_DEATH)
		plate->cell[lane_at(w, r->lane)] = "✕";
}

static void
draw_arrow(const struct writing *w, const struct picture_row *row, struct plate *plate)
{
	const struct mr_arrow *a = &w->l->of->arrows[row->first];
	size_t from = lane_at(w, a->from), left, right;
	bool unread = picture_unread(w->l, row) > 0;
	const char *shaft = row->kind == ROW_RUN ? "═" : unread ? "╌" : "─";

	picture_reach(w->l, row, &left, &right);
	if (left == right) { /* to itself */
		plate->cell[from] = "├";
		plate->cell[from + 1] = unread ? "╌" : "─";
		plate->cell[from + 2] = "↩";
		return;
	}
	for (size_t x = lane_at(w, left) + 1; x < lane_at(w, right); x++)
		plate->cell[x] = plate->cell[x] ? (row->kind == ROW_RUN ? "╪" : "┼") : shaft;
	plate->cell[from] = a->from == left ? "├" : a->from == right ? "┤" : "┼";
	for (size_t i = 0; i < a->to_n; i++)
		if (a->to[i] != a->from)
			plate->cell[a->to[i] > a->from ? lane_at(w, a->to[i]) - 1 : lane_at(w, a->to[i]) + 1] =
			    a->to[i] > a->from ? "▶" : "◀";
	if (row->both_ways) {
		plate->cell[a->from == left ? from + 1 : from - 1] = a->from == left ? "◀" : "▶";
		plate->cell[from] = "│";
	}
}

static void
add_label(struct writing *w, const struct picture_row *row, struct buf *label)
{
	if (row->n > 0 && w->l->of->arrows[row->first].priority >= MR_URGENT)
		buf_adds(label, "! ");
	picture_label(w->l, row, label);
}

static void
write_row(struct writing *w, size_t i)
{
	const struct picture_row *row = &w->l->rows[i];
	mr_auto(buf_done) struct buf label = BUF_INIT;
	struct plate plate = { 0 };
	char at[16] = "";

	if (row->kind != ROW_GAP)
		picture_time(w->l, row->at_ms, w->gutter > 8, at);
	buf_adds(w->out, at);
	draw_lanes(w, i, &plate);
	if (row->n > 0)
		draw_arrow(w, row, &plate);
	for (size_t x = strlen(at); x < w->drawn; x++)
		buf_adds(w->out, plate.cell[x] ? plate.cell[x] : " ");
	add_label(w, row, &label);
	buf_addc(w->out, ' ');
	(void)text_fit(w->out, buf_str(&label), w->width - w->drawn - 1);
	end_line(w->out);
	w->out->failed |= label.failed;
}

/* ---- The list ---- */

static void
write_listed(struct writing *w, const struct picture_row *row)
{
	const struct mr_picture *p = w->l->of;
	mr_auto(buf_done) struct buf line = BUF_INIT, label = BUF_INIT;
	char at[16] = "";

	add_label(w, row, &label);
	if (row->kind != ROW_GAP)
		picture_time(w->l, row->at_ms, false, at);
	buf_addf(&line, "%s%s", at, *at ? " " : "");
	if (row->n > 0) {
		const struct mr_arrow *a = &p->arrows[row->first];

		text_clean_line(&line, str_of(p->lanes[a->from].name));
		buf_adds(&line, row->both_ways ? "⇄" : picture_unread(w->l, row) > 0 ? "⇢" : "→");
		for (size_t i = 0; i < a->to_n; i++) {
			buf_adds(&line, i ? "," : "");
			text_clean_line(&line, str_of(p->lanes[a->to[i]].name));
		}
		(void)text_fit(w->out, buf_str(&line), w->width);
		buf_adds(w->out, "\n  ");
		(void)text_fit(w->out, buf_str(&label), w->width > 2 ? w->width - 2 : 0);
	} else {
		buf_add(&line, buf_str(&label));
		(void)text_fit(w->out, buf_str(&line), w->width);
	}
	end_line(w->out);
	w->out->failed |= line.failed || label.failed;
}

enum mr_rc
mr_picture_text(const struct mr_picture *p, size_t columns, char **ret, size_t *ret_len, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT, title = BUF_INIT;
	mr_auto(picture_layout_done) struct picture_layout l = { 0 };
	struct writing w = { .out = &out, .l = &l, .width = columns < WIDTH_MAX ? columns : WIDTH_MAX };
	size_t lanes = p->lanes_n > 0 ? p->lanes_n : 1;

	TRY(mr_got(picture_layout(&l, p, RUNS_FROM), err));
	w.gutter = w.width >= 72 ? 12 : 6;
	size_t text = w.width / 3 > SUBJECT_MIN ? w.width / 3 : SUBJECT_MIN;

	w.spacing = w.width > w.gutter + text ? (w.width - w.gutter - text) / lanes : 0;
	w.spacing = w.spacing > SPACING_MAX ? SPACING_MAX : w.spacing;
	w.drawn = w.gutter + lanes * w.spacing;
	text_clean_line(&title, str_of(p->title));
	if (title.len > 0) {
		(void)text_fit(&out, buf_str(&title), w.width);
		buf_addc(&out, '\n');
	}
	if (p->left_out > 0)
		buf_addf(&out, "(%zu earlier)\n", p->left_out);
	if (w.spacing >= SPACING_MIN && l.n > 0)
		write_names(&w);
	for (size_t i = 0; i < l.n; i++) {
		if (w.spacing >= SPACING_MIN)
			write_row(&w, i);
		else
			write_listed(&w, &l.rows[i]);
	}
	TRY(mr_got(buf_ok(&out) && buf_ok(&title), err));
	if (out.len == 0)
		buf_adds(&out, "no mail\n");
	TRY(mr_got(buf_ok(&out), err));
	*ret_len = out.len;
	*ret = buf_take(&out);
	return MR_OK;
}
