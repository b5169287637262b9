/* SPDX-License-Identifier: MIT */
/* The rows of a picture, and how they look: golden text for several widths, and what must not get into an SVG. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/error.h"
#include "picture/picture.h"

#define NOON ((int64_t)1763290800 * 1000) /* 2025-11-16T11:00:00Z */
#define SECOND ((int64_t)1000)
#define MINUTE (60 * SECOND)

static const bool seen[] = { true, true, true }, unseen[] = { false, false, false };
static const size_t first[] = { 0 }, second[] = { 1 }, third[] = { 2 }, others[] = { 1, 2 };

static struct mr_arrow
arrow(int64_t at_ms, size_t from, const size_t *to, size_t to_n, const bool *read, const char *subject)
{
	struct mr_arrow a = { .thread = "t",
		.subject = subject,
		.type = "",
		.at_ms = at_ms,
		.from = from,
		.to = to,
		.to_n = to_n,
		.read = read };
	static unsigned made;

	(void)snprintf(a.id, sizeof a.id, "01k9w3b7zq8m4c2v6t1x5n%04u", made++ % 10000);
	return a;
}

static void
assert_text(const struct mr_picture *p, size_t columns, const char *want)
{
	struct mr_error err = { 0 };
	char *got = NULL;
	size_t len = 0;

	assert_int_equal(mr_picture_text(p, columns, &got, &len, &err), MR_OK);
	if (strcmp(got, want) != 0)
		fail_msg("at %zu columns:\n%s\nand not:\n%s", columns, got, want);
	assert_int_equal(len, strlen(got));
	free(got);
}

static char *
svg(const struct mr_picture *p, const char *link)
{
	struct mr_error err = { 0 };
	char *got = NULL;
	size_t len = 0;

	assert_int_equal(mr_picture_svg(p, link, &got, &len, &err), MR_OK);
	assert_int_equal(len, strlen(got));
	return got;
}

static size_t
occurrences(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

/* alice asks bob and carol, bob answers, carol takes it; then long nothing, and bob is gone. */
static struct mr_picture
story(void)
{
	static struct mr_lane lanes[] = { { .name = "alice", .life = 1, .born_ms = NOON - MINUTE },
		{ .name = "bob", .life = 2, .born_ms = NOON + 10 * SECOND, .died_ms = NOON + 50 * SECOND },
		{ .name = "carol", .life = 1, .born_ms = NOON - MINUTE } };
	static struct mr_arrow arrows[5];
	static struct mr_bar bars[1];

	arrows[0] = arrow(NOON, 0, others, 2, seen, "build it, please");
	arrows[1] = arrow(NOON + 20 * SECOND, 1, first, 1, seen, "Re: build it, please");
	arrows[2] = arrow(NOON + 40 * SECOND, 2, second, 1, unseen, "is it you or me?");
	arrows[3] = arrow(NOON + 60 * MINUTE, 0, first, 1, unseen, "note to self");
	arrows[3].priority = MR_URGENT;
	arrows[4] = arrow(NOON + 60 * MINUTE + SECOND, 2, first, 1, unseen, "done");
	bars[0] =
	    (struct mr_bar){ .lane = 2, .from_ms = NOON + 30 * SECOND, .to_ms = NOON + 45 * SECOND, .how = "done" };
	memcpy(bars[0].id, arrows[0].id, sizeof bars[0].id);
	return (struct mr_picture){ .title = "build it, please",
		.from_ms = NOON,
		.to_ms = NOON + 70 * MINUTE,
		.lanes = lanes,
		.lanes_n = 3,
		.arrows = arrows,
		.arrows_n = 5,
		.bars = bars,
		.bars_n = 1 };
}

static void
a_story_is_told_in_columns(void **state)
{
	struct mr_picture p = story();

	(void)state;
	assert_text(&p, 80, /* clang-format off */
	    "build it, please\n"
	    "                 alice          bob          carol\n"
	    "11:00:00           ├────────────▶┼────────────▶│       build it, please\n"
	    "11:00:20           │◀────────────┤             │       Re: build it, please\n"
	    "11:00:30           │             │             ┃       carol takes: build it, p…\n"
	    "11:00:40           │             │◀╌╌╌╌╌╌╌╌╌╌╌╌┤       is it you or me?\n"
	    "11:00:50           │             ✕             │       bob is gone\n"
	    "                   ┊             ┊             ┊       59m of silence\n"
	    "12:00:00           ├╌↩           ┊             │       ! note to self\n"
	    "12:00:01           │◀╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌╌╌╌╌┤       done\n"); /* clang-format on */
}

static void
small_windows_get_narrow_columns_and_then_a_list(void **state)
{
	struct mr_picture p = story();

	(void)state;
	p.arrows_n = 3;
	p.bars_n = 0;
	p.lanes[1].died_ms = 0;
	assert_text(&p, 40, /* clang-format off */
	    "build it, please\n"
	    "      alice     carol\n"
	    "            bob\n"
	    "11:00   ├───▶┼───▶│   build it, please\n"
	    "11:00   │◀───┤    │   Re: build it, ple…\n"
	    "11:00   │    │◀╌╌╌┤   is it you or me?\n");
	assert_text(&p, 20,
	    "build it, please\n"
	    "11:00 alice→bob,car…\n"
	    "  build it, please\n"
	    "11:00 bob→alice\n"
	    "  Re: build it, ple…\n"
	    "11:00 carol⇢bob\n"
	    "  is it you or me?\n"); /* clang-format on */
	for (size_t columns = 1; columns < 200; columns++) {
		struct mr_error err = { 0 };
		char *got = NULL;
		size_t len = 0;

		assert_int_equal(mr_picture_text(&p, columns, &got, &len, &err), MR_OK);
		free(got);
	}
	p.lanes[1].died_ms = NOON + 50 * SECOND;
}

static void
nothing_is_a_picture_too(void **state)
{
	struct mr_picture p = { .title = "", .from_ms = NOON, .to_ms = NOON };
	char *got = svg(&p, NULL);

	(void)state;
	assert_text(&p, 80, "no mail\n");
	assert_non_null(strstr(got, "no mail"));
	free(got);
}

/* ---- Many ---- */

static void
runs_are_one_row_in_a_large_picture_only(void **state)
{
	struct mr_arrow arrows[100];
	struct mr_lane lanes[] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	struct mr_picture p = { .title = "",
		.from_ms = NOON,
		.to_ms = NOON,
		.lanes = lanes,
		.lanes_n = 3,
		.arrows = arrows,
		.arrows_n = 100 };
	struct picture_layout l = { 0 };

	(void)state;
	for (size_t i = 0; i < 100; i++) /* 40 one way, 40 in turn, an urgent one, 19 that are no run */
		arrows[i] = arrow(NOON + (int64_t)i * SECOND, i >= 40 && i % 2 == 0,
		    i >= 40 && i % 2 == 0 ? first : second, 1, seen, "x");
	for (size_t i = 81; i < 100; i++)
		arrows[i] = arrow(NOON + (int64_t)i * SECOND, i % 3,
		    i % 3 == 0   ? second
		    : i % 3 == 1 ? third
				 : first,
		    1, seen, "x");
	arrows[80] = arrow(NOON + 80 * SECOND, 2, first, 1, seen, "fire");
	arrows[80].priority = MR_URGENT;
	assert_true(picture_layout(&l, &p, RUNS_FROM));
	assert_int_equal(l.n, 2 + 1 + 19);
	assert_true(l.rows[0].kind == ROW_RUN && l.rows[0].n == 40 && !l.rows[0].both_ways);
	assert_true(l.rows[1].kind == ROW_RUN && l.rows[1].n == 40 && l.rows[1].both_ways);
	assert_true(l.rows[2].kind == ROW_ARROW && l.rows[2].first == 80);
	picture_layout_done(&l);
	assert_true(picture_layout(&l, &p, 101));
	assert_int_equal(l.n, 100);
	picture_layout_done(&l);
}

static void
a_silence_is_long_by_the_measure_of_the_picture(void **state)
{
	struct mr_arrow arrows[4];
	struct mr_lane lanes[] = { { .name = "a" }, { .name = "b" } };
	struct mr_picture p = { .title = "",
		.from_ms = NOON,
		.to_ms = NOON,
		.lanes = lanes,
		.lanes_n = 2,
		.arrows = arrows,
		.arrows_n = 4 };
	struct picture_layout l = { 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++) /* one every ten minutes is no silence */
		arrows[i] = arrow(NOON + (int64_t)i * 10 * MINUTE, 0, second, 1, seen, "x");
	assert_true(picture_layout(&l, &p, RUNS_FROM));
	assert_int_equal(l.n, 4);
	picture_layout_done(&l);
	arrows[3].at_ms += 60 * MINUTE;
	assert_true(picture_layout(&l, &p, RUNS_FROM));
	assert_int_equal(l.n, 5);
	assert_true(l.rows[3].kind == ROW_GAP && l.rows[3].until_ms - l.rows[3].at_ms == 70 * MINUTE);
	picture_layout_done(&l);
}

/* ---- SVG ---- */

static void
what_others_wrote_is_text_in_an_svg(void **state)
{
	struct mr_picture p = story();
	char *got;

	(void)state;
	p.arrows[0].subject =
	    "</text><script>alert(1)</script>\" onload=\"x' \033[31m \xE2\x80\xAE \xEF\xBF\xBF &amp; \x01\xFF";
	p.arrows[1].type = "<b>";
	p.lanes[0].name = "<a href='x'>";
	p.title = p.arrows[0].subject;
	got = svg(&p, "/m/\"x");
	assert_null(strstr(got, "<script"));
	assert_null(strstr(got, "onload=\""));
	assert_null(strstr(got, "onload='"));
	assert_null(strstr(got, "<b>"));
	assert_null(strstr(got, "<a href='"));
	assert_null(strstr(got, "\033"));
	assert_null(strstr(got, "\x01"));
	assert_null(strstr(got, "\xE2\x80\xAE"));
	assert_null(strstr(got, "\xEF\xBF\xBF"));
	assert_null(strstr(got, "\xFF"));
	assert_non_null(strstr(got, "&lt;/text&gt;&lt;script&gt;"));
	assert_non_null(strstr(got, "&amp;amp;"));
	assert_int_equal(occurrences(got, "<a href=\"/m/&quot;x01k9"), 5);
	assert_int_equal(occurrences(got, "<svg"), 1);
	free(got);
	p.lanes[0].name = "alice";
}

static void
an_svg_says_read_unread_held_and_gone(void **state)
{
	struct mr_picture p = story();
	char *got = svg(&p, NULL);

	(void)state;
	assert_null(strstr(got, "<a "));
	assert_int_equal(occurrences(got, "class=\"mr-m"), 5 + 3); /* and the legend */
	assert_int_equal(occurrences(got, " mr-unread\"><title>"), 3);
	assert_int_equal(occurrences(got, "class=\"mr-cross\""), 1);
	assert_int_equal(occurrences(got, "class=\"mr-gone\""), 1);
	assert_int_equal(occurrences(got, "class=\"mr-gap\""), 1);
	assert_non_null(strstr(got, "59m of silence"));
	assert_non_null(strstr(got, "carol held "));
	assert_non_null(strstr(got, "prefers-color-scheme:dark"));
	free(got);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_story_is_told_in_columns),
		cmocka_unit_test(small_windows_get_narrow_columns_and_then_a_list),
		cmocka_unit_test(nothing_is_a_picture_too),
		cmocka_unit_test(runs_are_one_row_in_a_large_picture_only),
		cmocka_unit_test(a_silence_is_long_by_the_measure_of_the_picture),
		cmocka_unit_test(what_others_wrote_is_text_in_an_svg),
		cmocka_unit_test(an_svg_says_read_unread_held_and_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
