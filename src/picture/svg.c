/* SPDX-License-Identifier: MIT */
/*
 * svg.c - a picture as SVG: a file that a browser, an <img> or a page shows alike. No script, nothing loaded, all text
 * of others escaped. The colours are custom properties, so that the reader's light or dark is right; the names of the
 * classes begin with mr-, because a page may hold the picture among its own.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "picture/picture.h"

enum {
	GUTTER = 76, /* of the times */
	MARGIN = 16,
	HEAD = 46,
	ARROW_H = 32,
	THIN_H = 26,      /* of a row without a message */
	NAMES_EVERY = 24, /* rows: the names again */
	LANE_MIN = 84,
	LANE_MAX = 210,
	WIDE = 1240, /* of the page: lanes share it */
	LOOP = 26
};
#define CHAR_PX 6.1 /* of a label, on average */

static const char style[] =
    ".mr{--bg:#fff;--fg:#1d2733;--dim:#6b7785;--line:#c3ccd6;--life:#dfe6ee;--box:#f3f6f9;--plain:#2563a8;"
    "--answer:#0f7b6c;--ask:#7a3fb5;--work:#9a6200;--high:#c2410c;--urgent:#c81e1e;--low:#7b8794;--held:#e8a33d;"
    "font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;background:var(--bg)}"
    "@media (prefers-color-scheme:dark){.mr{--bg:#12171d;--fg:#e4eaf1;--dim:#8e9bab;--line:#3a4552;--life:#26303b;"
    "--box:#1b222b;--plain:#6cb0f5;--answer:#4ccdb6;--ask:#c39af0;--work:#e0b155;--high:#ff9a5c;--urgent:#ff7b7b;"
    "--low:#8e9bab;--held:#b97f22}}"
    ".mr .mr-bg{fill:var(--bg)}.mr text{fill:var(--fg)}.mr .mr-dim{fill:var(--dim)}"
    ".mr .mr-time{fill:var(--dim);font-size:11px;font-variant-numeric:tabular-nums}"
    ".mr .mr-name{font-weight:600;font-size:12.5px}.mr .mr-box{fill:var(--box);stroke:var(--line)}"
    ".mr .mr-queue{stroke:var(--work);stroke-width:1.5}"
    ".mr .mr-title{font-size:15px;font-weight:600}"
    ".mr .mr-lane{stroke:var(--line)}.mr .mr-before{stroke:var(--line);stroke-dasharray:1 5}"
    ".mr .mr-gone{stroke:var(--urgent);stroke-dasharray:3 7;opacity:.6}.mr .mr-life{fill:var(--life)}"
    ".mr .mr-held{fill:var(--held);opacity:.85}.mr .mr-cross{stroke:var(--urgent);stroke-width:2;fill:none}"
    ".mr .mr-gap{stroke:var(--line);stroke-dasharray:2 4}"
    ".mr .mr-m{--c:var(--plain)}.mr .mr-answer{--c:var(--answer)}.mr .mr-ask{--c:var(--ask)}"
    ".mr .mr-work{--c:var(--work)}.mr .mr-low{--c:var(--low)}.mr .mr-high{--c:var(--high)}"
    ".mr .mr-urgent{--c:var(--urgent)}"
    ".mr .mr-m path{stroke:var(--c);stroke-width:1.6;fill:none}.mr .mr-run path{stroke-width:3}"
    ".mr .mr-m .mr-tip{fill:var(--c);stroke-linejoin:round}.mr .mr-m .mr-open{fill:var(--bg)}"
    ".mr .mr-unread .mr-shaft{stroke-dasharray:5 4}.mr .mr-run.mr-unread .mr-shaft{stroke-dasharray:10 5}.mr .mr-m .mr-dot{fill:var(--c)}"
    ".mr .mr-label{font-size:11.5px;paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}"
    ".mr .mr-hit{fill:transparent}.mr .mr-m:hover .mr-hit,.mr a:focus .mr-hit{fill:var(--life);opacity:.5}"
    ".mr a{text-decoration:none;outline:none}";

struct drawing {
	struct buf *out;
	const struct picture_layout *l;
	const char *link;
	int lane_w, width, top, bottom;
	int *y; /* of each row its middle; and of the end */
};

/* ---- Text ---- */

/* XML has no place for two characters that UTF-8 has. */
static void
escape(struct buf *out, struct mr_str s)
{
	static const char special[] = "<>&\"'";
	static const char *const names[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };

	for (; s.len > 0; s.ptr++, s.len--) {
		const char *found = s.ptr[0] ? strchr(special, s.ptr[0]) : NULL;

		if (found) {
			buf_adds(out, names[found - special]);
		} else if (str_starts(s, "\xEF\xBF\xBE") || str_starts(s, "\xEF\xBF\xBF")) {
			buf_adds(out, "\xEF\xBF\xBD");
			s = str_from(s, 2);
		} else {
			buf_addc(out, s.ptr[0]);
		}
	}
}

static void
add_clean(struct buf *out, const char *text)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	text_clean_line(&clean, str_of(text));
	escape(out, buf_str(&clean));
	out->failed |= clean.failed;
}

/* At most so many pixels wide. */
static void
add_fitted(struct buf *out, struct mr_str clean, double px)
{
	mr_auto(buf_done) struct buf cut = BUF_INIT;

	(void)text_fit(&cut, clean, px > 3 * CHAR_PX ? (size_t)(px / CHAR_PX) : 3);
	escape(out, buf_str(&cut));
	out->failed |= cut.failed;
}

/* ---- Lanes ---- */

static int
lane_x(const struct drawing *d, size_t lane)
{
	return GUTTER + MARGIN + (int)lane * d->lane_w + d->lane_w / 2;
}

/* Where row i begins. */
static int
row_top(const struct drawing *d, size_t i)
{
	return i < d->l->n ? d->y[i] - (d->l->rows[i].n > 0 ? ARROW_H / 2 + 4 : THIN_H / 2) : d->bottom;
}

static void
add_line(struct drawing *d, const char *class, int x, int from, int to)
{
	if (to > from)
		buf_addf(d->out, "<path class=\"%s\" d=\"M%d %dV%d\"/>\n", class, x, from, to);
}

static void
draw_name(struct drawing *d, size_t lane, int y)
{
	const char *name = d->l->of->lanes[lane].name;
	bool queue = str_starts(str_of(name), "queue:"), channel = str_starts(str_of(name), "channel:");
	int x = lane_x(d, lane), w = d->lane_w - 14;

	buf_addf(d->out, "<g><title>");
	add_clean(d->out, name);
	if (d->l->of->lanes[lane].life)
		buf_addf(d->out, ", life %u", d->l->of->lanes[lane].life);
	if (d->l->of->lanes[lane].died_ms)
		buf_adds(d->out, ", gone");
	buf_addf(d->out, "</title><rect class=\"mr-box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"26\" rx=\"%d\"/>",
	    queue ? " mr-queue" : "", x - w / 2, y, w, queue ? 0 : 6);
	buf_addf(d->out, "<text class=\"mr-name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">", x, y + 17);
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	buf_adds(&clean, channel ? "#" : ""); /* the kind of place is seen, the room is for its name */
	text_clean_line(&clean, str_of(queue || channel ? strchr(name, ':') + 1 : name));
	add_fitted(d->out, buf_str(&clean), (w - 8) / 1.32);
	buf_adds(d->out, "</text></g>\n");
	d->out->failed |= clean.failed;
}

static void
draw_lane(struct drawing *d, size_t lane)
{
	const struct picture_layout *l = d->l;
	const struct mr_lane *is = &l->of->lanes[lane];
	int x = lane_x(d, lane), born = is->born_ms ? row_top(d, l->born[lane]) : d->top;
	int dead = l->dead[lane] < l->n ? d->y[l->dead[lane]] : d->bottom;

	born = born < dead ? born : dead;
	if (is->life)
		buf_addf(d->out, "<rect class=\"mr-life\" x=\"%d\" y=\"%d\" width=\"8\" height=\"%d\" rx=\"4\"/>\n",
		    x - 4, born, dead - born);
	add_line(d, "mr-before", x, d->top, born);
	add_line(d, "mr-lane", x, born, dead);
	add_line(d, "mr-gone", x, dead, d->bottom);
}

static void
draw_bar(struct drawing *d, const struct mr_bar *bar, const struct picture_span *span)
{
	int x = lane_x(d, bar->lane), from = row_top(d, span->from) + 4, to = row_top(d, span->to);

	if (span->from >= d->l->n)
		from = d->bottom - 10;
	buf_addf(d->out, "<rect class=\"mr-held\" x=\"%d\" y=\"%d\" width=\"7\" height=\"%d\" rx=\"2\"><title>", x - 3,
	    from, to > from + 8 ? to - from : 8);
	add_clean(d->out, d->l->of->lanes[bar->lane].name);
	buf_addf(d->out, " held %s for %s: ", bar->id,
	    span_text((bar->to_ms ? bar->to_ms : d->l->of->to_ms) - bar->from_ms).z);
	add_clean(d->out, bar->how);
	buf_adds(d->out, "</title></rect>\n");
}

/* ---- Rows ---- */

static void
draw_tip(struct drawing *d, int x, int y, int way, bool read)
{
	buf_addf(d->out, "<path class=\"mr-tip%s\" d=\"M%d %dl%d -4.5v9z\"/>", read ? "" : " mr-open", x - way * 5, y,
	    -way * 9);
}

static const char *
class_of(const struct drawing *d, const struct mr_arrow *a)
{
	bool work = a->to_n > 0 && str_starts(str_of(d->l->of->lanes[a->to[0]].name), "queue:");

	if (a->priority >= MR_URGENT)
		return " mr-urgent";
	if (a->priority == MR_HIGH)
		return " mr-high";
	if (a->question)
		return " mr-ask";
	if (a->answer)
		return " mr-answer";
	if (work)
		return " mr-work";
	return a->priority == MR_LOW ? " mr-low" : "";
}

static void
add_title(struct drawing *d, const struct picture_row *row)
{
	const struct picture_layout *l = d->l;
	const struct mr_arrow *a = &l->of->arrows[row->first];
	struct buf *out = d->out;

	buf_addf(out, "<title>%.19sZ  ", time_text(a->at_ms).z);
	add_clean(out, l->of->lanes[a->from].name);
	buf_adds(out, row->both_ways ? " ⇄" : " →");
	for (size_t i = 0; i < a->to_n; i++) {
		buf_adds(out, i ? ", " : " ");
		add_clean(out, l->of->lanes[a->to[i]].name);
		buf_adds(out, row->n > 1 || a->read[i] ? "" : " (unread)");
	}
	for (size_t i = 0; i < row->n && i < 20; i++) {
		buf_addc(out, '\n');
		add_clean(out, a[i].subject);
	}
	if (row->n > 20)
		buf_addf(out, "\nand %zu more", row->n - 20);
	if (row->n == 1) {
		buf_addc(out, '\n');
		add_clean(out, a->type);
		buf_adds(out, *a->type ? ", " : "");
		buf_addf(out, "%s, %s", mr_priority_word(a->priority), a->id);
	} else if (picture_unread(l, row) > 0) {
		buf_addf(out, "\n%zu unread", picture_unread(l, row));
	}
	buf_adds(out, "</title>");
}

static void
draw_shafts(struct drawing *d, const struct picture_row *row, int y)
{
	const struct mr_arrow *a = &d->l->of->arrows[row->first];
	int from = lane_x(d, a->from);
	size_t left, right;

	picture_reach(d->l, row, &left, &right);
	if (left == right) { /* to itself */
		buf_addf(d->out, "<path class=\"mr-shaft\" d=\"M%d %dh%dv10h-%d\"/>", from + 5, y - 5, LOOP, LOOP - 8);
		draw_tip(d, from + 8, y + 5, -1, a->read[0]);
		return;
	}
	buf_addf(d->out, "<path class=\"mr-shaft\" d=\"M%d %dH%d\"/>", lane_x(d, left) + 6, y, lane_x(d, right) - 6);
	if (a->to_n > 1)
		buf_addf(d->out, "<circle class=\"mr-dot\" cx=\"%d\" cy=\"%d\" r=\"3.5\"/>", from, y);
	for (size_t i = 0; i < a->to_n; i++)
		if (a->to[i] != a->from)
			draw_tip(d, lane_x(d, a->to[i]), y, a->to[i] > a->from ? 1 : -1,
			    row->n > 1 ? picture_unread(d->l, row) == 0 : a->read[i]);
	if (row->both_ways)
		draw_tip(d, from, y, a->to[0] > a->from ? -1 : 1, picture_unread(d->l, row) == 0);
}

/* Above its arrow, in the middle; one that is longer goes on to where there is more room. */
static void
draw_label(struct drawing *d, struct mr_str label, int left, int right, int y)
{
	double need = CHAR_PX * (double)utf8_width(label);
	bool loop = left == right, fits = need<right - left - 20, leftwards = left - GUTTER> d->width - right;
	int x = loop ? left + LOOP + 14 : fits ? (left + right) / 2 : leftwards ? right - 10 : left + 10;

	buf_addf(d->out, "<text class=\"mr-label\" x=\"%d\" y=\"%d\"%s>", x, loop ? y + 4 : y - 6,
	    loop        ? ""
	    : fits      ? " text-anchor=\"middle\""
	    : leftwards ? " text-anchor=\"end\""
			: "");
	add_fitted(d->out, label, fits && !loop ? need + CHAR_PX : leftwards && !loop ? x - GUTTER : d->width - x - 4);
	buf_adds(d->out, "</text>");
}

static void
draw_message(struct drawing *d, const struct picture_row *row, int y)
{
	const struct mr_arrow *a = &d->l->of->arrows[row->first];
	mr_auto(buf_done) struct buf label = BUF_INIT;
	size_t left, right, copies = 0;

	picture_reach(d->l, row, &left, &right);
	for (size_t i = 0; i < row->n; i++)
		copies += a[i].to_n;
	if (d->link) {
		buf_adds(d->out, "<a href=\"");
		add_clean(d->out, d->link);
		buf_addf(d->out, "%s\">", a->id);
	}
	buf_addf(d->out, "<g class=\"mr-m%s%s%s\">", row->n > 1 ? " mr-run" : "", class_of(d, a),
	    copies > 0 && picture_unread(d->l, row) == copies ? " mr-unread" : "");
	add_title(d, row);
	buf_addf(d->out, "<rect class=\"mr-hit\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", GUTTER,
	    y - ARROW_H / 2 - 4, d->width - GUTTER, ARROW_H);
	draw_shafts(d, row, y);
	picture_label(d->l, row, &label);
	draw_label(d, buf_str(&label), lane_x(d, left), lane_x(d, right), y);
	buf_adds(d->out, d->link ? "</g></a>\n" : "</g>\n");
	d->out->failed |= label.failed;
}

static void
draw_thin(struct drawing *d, const struct picture_row *row, int y)
{
	mr_auto(buf_done) struct buf label = BUF_INIT;
	int x = row->kind == ROW_GAP ? (GUTTER + d->width) / 2 : lane_x(d, row->lane);

	picture_label(d->l, row, &label);
	/* On the side of its lane where it fits, else where there is more room. */
	bool left = row->kind != ROW_GAP && CHAR_PX * (double)utf8_width(buf_str(&label)) > d->width - x - 15 &&
		    x - GUTTER > d->width - x;

	if (row->kind == ROW_GAP)
		buf_addf(d->out, "<path class=\"mr-gap\" d=\"M%d %dH%d\"/>", GUTTER, y, d->width - MARGIN);
	else if (row->kind == ROW_DEATH)
		buf_addf(d->out, "<path class=\"mr-cross\" d=\"M%d %dl10 10m0 -10l-10 10\"/>", x - 5, y - 5);
	buf_addf(d->out, "<text class=\"mr-label mr-dim\" x=\"%d\" y=\"%d\"%s>",
	    row->kind == ROW_GAP ? x
	    : left               ? x - 11
				 : x + 11,
	    y + 4,
	    row->kind == ROW_GAP ? " text-anchor=\"middle\""
	    : left               ? " text-anchor=\"end\""
				 : "");
	add_fitted(d->out, buf_str(&label), left ? x - GUTTER - 11 : d->width - x - 11);
	buf_adds(d->out, "</text>\n");
	d->out->failed |= label.failed;
}

/* ---- All of it ---- */

static void
draw_legend(struct drawing *d, int y)
{
	static const struct {
		const char *class, *word;
	} all[] = { { "", "message" }, { " mr-answer", "answer" }, { " mr-ask", "answer wanted by a time" },
		{ " mr-work", "work" }, { " mr-high", "high" }, { " mr-urgent", "urgent" }, { " mr-low", "low" } };
	int x = GUTTER + MARGIN;

	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
		bool used = false;

		for (size_t i = 0; i < d->l->of->arrows_n && !used; i++)
			used = strcmp(class_of(d, &d->l->of->arrows[i]), all[k].class) == 0;
		if (!used)
			continue;
		buf_addf(d->out, "<g class=\"mr-m%s\"><path d=\"M%d %dh22\"/></g>", all[k].class, x, y - 4);
		buf_addf(d->out, "<text class=\"mr-time\" x=\"%d\" y=\"%d\">%s</text>\n", x + 28, y, all[k].word);
		x += 48 + (int)(CHAR_PX * (double)strlen(all[k].word));
	}
	buf_addf(d->out, "<g class=\"mr-m mr-unread\"><path class=\"mr-shaft\" d=\"M%d %dh22\"/></g>", x, y - 4);
	buf_addf(d->out, "<text class=\"mr-time\" x=\"%d\" y=\"%d\">unread</text>\n", x + 28, y);
	if (d->l->of->bars_n > 0) {
		buf_addf(d->out, "<rect class=\"mr-held\" x=\"%d\" y=\"%d\" width=\"7\" height=\"12\" rx=\"2\"/>",
		    x + 84, y - 10);
		buf_addf(d->out, "<text class=\"mr-time\" x=\"%d\" y=\"%d\">in hand</text>\n", x + 98, y);
	}
}

static void
draw_heading(struct drawing *d)
{
	const struct mr_picture *p = d->l->of;
	mr_auto(buf_done) struct buf title = BUF_INIT;
	struct time_text from = time_text(p->arrows_n > 0 ? p->arrows[0].at_ms : p->from_ms);
	struct time_text to = time_text(p->arrows_n > 0 ? p->arrows[p->arrows_n - 1].at_ms : p->to_ms);

	text_clean_line(&title, str_of(*p->title ? p->title : "Mail of the room"));
	buf_addf(d->out, "<text class=\"mr-title\" x=\"%d\" y=\"24\">", MARGIN);
	add_fitted(d->out, buf_str(&title), (d->width - MARGIN) / 1.35);
	buf_addf(d->out, "</text><text class=\"mr-time\" x=\"%d\" y=\"42\">%.10s %.5s to %.10s %.5s UTC, %zu message%s",
	    MARGIN, from.z, from.z + 11, to.z, to.z + 11, p->arrows_n, p->arrows_n == 1 ? "" : "s");
	if (p->left_out > 0)
		buf_addf(d->out, ", %zu earlier ones left out", p->left_out);
	buf_adds(d->out, "</text>\n");
	d->out->failed |= title.failed;
}

/* Places the rows; the names of the lanes stand between some of them again. */
static void
place(struct drawing *d, bool *names)
{
	int y = d->top + 14;

	for (size_t i = 0; i < d->l->n; i++) {
		int h = d->l->rows[i].n > 0 ? ARROW_H : THIN_H;

		if (names[i])
			y += 34;
		d->y[i] = y + h / 2 + (d->l->rows[i].n > 0 ? 4 : 0);
		y += h;
	}
	d->bottom = y + 10;
}

static void
draw(struct drawing *d, bool *names)
{
	const struct mr_picture *p = d->l->of;
	int height = d->bottom + (d->l->n > NAMES_EVERY ? 34 : 0) + 34;

	buf_addf(d->out,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mr\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
	    "role=\"%s\">\n<title>",
	    d->width, height, d->width, height, d->link ? "group" : "img"); /* what is an image has no links in it */
	add_clean(d->out, *p->title ? p->title : "Mail of the room");
	buf_addf(d->out, "</title>\n<style>%s</style>\n<rect class=\"mr-bg\" width=\"%d\" height=\"%d\"/>\n", style,
	    d->width, height);
	draw_heading(d);
	for (size_t i = 0; i < p->lanes_n; i++)
		draw_lane(d, i);
	for (size_t i = 0; i < p->bars_n; i++)
		draw_bar(d, &p->bars[i], &d->l->bars[i]);
	for (size_t i = 0; i < d->l->n; i++) {
		const struct picture_row *row = &d->l->rows[i];

		for (size_t k = 0; names[i] && k < p->lanes_n; k++)
			draw_name(d, k, row_top(d, i) - 31);
		if (row->kind != ROW_GAP) {
			char at[16];

			picture_time(d->l, row->at_ms, true, at);
			buf_addf(d->out, "<text class=\"mr-time\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
			    GUTTER - 4, d->y[i] + 4, at);
		}
		if (row->n > 0)
			draw_message(d, row, d->y[i]);
		else
			draw_thin(d, row, d->y[i]);
	}
	for (size_t k = 0; k < p->lanes_n; k++) {
		draw_name(d, k, d->top - 26);
		if (d->l->n > NAMES_EVERY)
			draw_name(d, k, d->bottom);
	}
	if (p->arrows_n > 0)
		draw_legend(d, height - 12);
	else
		buf_addf(d->out, "<text class=\"mr-dim\" x=\"%d\" y=\"%d\">no mail</text>\n", MARGIN, height - 12);
	buf_adds(d->out, "</svg>\n");
}

enum mr_rc
mr_picture_svg(const struct mr_picture *p, const char *link, char **ret, size_t *ret_len, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(picture_layout_done) struct picture_layout l = { 0 };
	struct drawing d = { .out = &out, .l = &l, .link = link, .top = HEAD + 46 };
	int lanes = p->lanes_n > 0 ? (int)p->lanes_n : 1;

	TRY(mr_got(picture_layout(&l, p, RUNS_FROM), err));
	mr_auto(free_ptr) int *y = calloc(l.n + 1, sizeof *y);
	mr_auto(free_ptr) bool *names = calloc(l.n + 1, sizeof *names);

	TRY(mr_got(y && names, err));
	d.y = y;
	d.lane_w = (WIDE - GUTTER - 2 * MARGIN) / lanes;
	d.lane_w = d.lane_w < LANE_MIN ? LANE_MIN : d.lane_w > LANE_MAX ? LANE_MAX : d.lane_w;
	d.width = GUTTER + 2 * MARGIN + lanes * d.lane_w;
	d.width = d.width > 560 ? d.width : 560;
	for (size_t i = NAMES_EVERY; i + NAMES_EVERY / 2 < l.n; i += NAMES_EVERY)
		names[i] = true;
	place(&d, names);
	draw(&d, names);
	TRY(mr_got(buf_ok(&out), err));
	*ret_len = out.len;
	*ret = buf_take(&out);
	return MR_OK;
}
