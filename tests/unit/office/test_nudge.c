/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "office/nudge/nudge.h"
#include "town.h"
#include <signal.h>

static struct mr_nudged
tap(struct town *t, const struct mr_self *self, const char *to, struct mr_nudge nudge)
{
	struct mr_nudge_options queue = { .mode = MR_NUDGE_QUEUE };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_nudge_send(t->room, self, to, &nudge, &queue, &done, &err));
	return done;
}

static struct mr_nudges *
take(struct town *t, const char *agent)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error err = { 0 };

	assert_ok(mr_nudges_open(t->room, agent, true, &nudges, &err));
	return nudges;
}

static void
urgent_first_then_in_order(void **state)
{
	struct town t = town_new(state);
	struct mr_nudges *nudges;
	struct mr_error err = { 0 };

	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "one" });
	tap(&t, &t.carol, "bob", (struct mr_nudge){ .text = "two\nlines", .kind = "health_check", .thread = "t1" });
	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "now", .priority = MR_URGENT });
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 3);
	assert_string_equal(mr_nudges_get(nudges, 0)->text, "now");
	assert_string_equal(mr_nudges_get(nudges, 1)->text, "one");
	assert_string_equal(mr_nudges_get(nudges, 2)->text, "two\nlines");
	assert_string_equal(mr_nudges_get(nudges, 2)->from, "carol");
	assert_string_equal(mr_nudges_get(nudges, 2)->kind, "health_check");
	assert_string_equal(mr_nudges_get(nudges, 2)->thread, "t1");
	assert_ok(mr_nudges_shown(nudges, 2, &err));
	mr_nudges_close(nudges);
	nudges = take(&t, "bob"); /* what was not shown is there again */
	assert_int_equal(mr_nudges_count(nudges), 1);
	assert_string_equal(mr_nudges_get(nudges, 0)->text, "two\nlines");
	mr_nudges_close(nudges);
	town_done(&t);
}

static void
two_never_show_the_same(void **state)
{
	struct town t = town_new(state);
	struct mr_nudges *first, *second = NULL;
	struct mr_error err = { 0 };

	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "one" });
	first = take(&t, "bob");
	assert_rc(mr_nudges_open(t.room, "bob", true, &second, &err), MR_BUSY);
	/* What comes meanwhile is another nudge, also if it says the same: the one that is shown goes. */
	assert_false(tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "one" }).coalesced);
	assert_ok(mr_nudges_shown(first, mr_nudges_count(first), &err));
	mr_nudges_close(first);
	second = take(&t, "bob");
	assert_int_equal(mr_nudges_count(second), 1);
	assert_ok(mr_nudges_shown(second, 1, &err));
	mr_nudges_close(second);
	assert_rc(mr_nudges_open(t.room, "bob", true, &second, &err), MR_EMPTY);
	town_done(&t);
}

/* The kernel gives the lock of a dead process away. */
static void
a_crash_brings_them_back(void **state)
{
	struct town t = town_new(state);
	struct mr_nudges *nudges = NULL;
	struct mr_error err = { 0 };
	int status = 0;

	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "one" });
	pid_t pid = fork();

	if (pid == 0) {
		if (mr_nudges_open(t.room, "bob", true, &nudges, &err) != MR_OK)
			_exit(1);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 1);
	mr_nudges_close(nudges);
	town_done(&t);
}

static void
the_same_twice_is_one(void **state)
{
	struct town t = town_new(state);
	struct mr_nudges *nudges;

	assert_false(tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "ping" }).coalesced);
	assert_true(tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "ping" }).coalesced);
	assert_false(tap(&t, &t.carol, "bob", (struct mr_nudge){ .text = "ping" }).coalesced);
	town_send(&t, &t.alice, "bob", "the mail", NULL);
	assert_false(tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "mail 1", .kind = "mail" }).coalesced);
	assert_true(tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "mail 2", .kind = "mail" }).coalesced);
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 3);
	assert_int_equal(mr_nudges_get(nudges, 0)->times, 2);
	assert_string_equal(mr_nudges_get(nudges, 2)->text, "mail 2");
	mr_nudges_close(nudges);
	town_done(&t);
}

static void
a_full_queue_refuses_and_tells(void **state)
{
	struct town t = town_new(state);
	struct mr_nudge_options queue = { .mode = MR_NUDGE_QUEUE };
	struct mr_nudged done;
	struct mr_nudges *nudges;
	struct mr_error err = { 0 };
	char text[32];

	for (int i = 0; i < 60; i++) {
		(void)snprintf(text, sizeof text, "number %d", i);
		struct mr_nudge nudge = { .text = text, .priority = i < 50 ? MR_NORMAL : MR_URGENT };

		if (i == 50) {
			struct mr_nudge normal = { .text = text };

			assert_rc(mr_nudge_send(t.room, &t.alice, "bob", &normal, &queue, &done, &err), MR_REFUSED);
		}
		tap(&t, &t.alice, "bob", nudge);
	}
	struct mr_nudge urgent = { .text = "too many", .priority = MR_URGENT };

	assert_rc(mr_nudge_send(t.room, &t.alice, "bob", &urgent, &queue, &done, &err), MR_REFUSED);
	assert_true(err.hint[0] != '\0');
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 60);
	assert_int_equal(mr_nudges_refused(nudges), 2);
	assert_ok(mr_nudges_shown(nudges, 60, &err));
	mr_nudges_close(nudges);
	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "there is room again" });
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_refused(nudges), 0); /* said once */
	mr_nudges_close(nudges);
	town_done(&t);
}

static void
time_decides_what_is_shown(void **state)
{
	struct town t = town_new(state);
	struct mr_nudges *nudges = NULL;
	struct mr_error err = { 0 };
	int64_t now = clock_now_ms();

	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "normal" });
	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "urgent", .priority = MR_URGENT });
	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "later", .not_before_ms = now + 3600 * 1000 });
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 2);
	mr_nudges_close(nudges);
	clock_shift_ms(31 * 60 * 1000);
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 1);
	assert_string_equal(mr_nudges_get(nudges, 0)->text, "urgent");
	mr_nudges_close(nudges);
	clock_shift_ms(70 * 60 * 1000);
	nudges = take(&t, "bob");
	assert_int_equal(mr_nudges_count(nudges), 2);
	assert_string_equal(mr_nudges_get(nudges, 1)->text, "later");
	mr_nudges_close(nudges);
	clock_shift_ms(5 * 3600 * 1000);
	assert_rc(mr_nudges_open(t.room, "bob", true, &nudges, &err), MR_EMPTY);
	clock_shift_ms(0);
	town_done(&t);
}

static void
do_not_disturb_is_honoured(void **state)
{
	struct town t = town_new(state);
	struct mr_nudge_options queue = { .mode = MR_NUDGE_QUEUE }, force = { .mode = MR_NUDGE_QUEUE, .force = true };
	struct mr_nudge nudge = { .text = "hello" };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };
	int64_t since = 0;
	bool on = true;

	assert_ok(mr_dnd_get(t.room, "bob", &on, &since, &err));
	assert_false(on);
	assert_ok(mr_dnd_set(t.room, "bob", true, &err));
	assert_ok(mr_dnd_set(t.room, "bob", true, &err));
	assert_ok(mr_dnd_get(t.room, "bob", &on, &since, &err));
	assert_true(on && since > 0);
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &queue, &done, &err));
	assert_int_equal(done.way, MR_NUDGE_SKIPPED);
	assert_false(nudge_any_but(t.room, "bob", &(struct mr_names){ 0 }));
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &force, &done, &err));
	assert_int_equal(done.way, MR_NUDGE_QUEUED);
	assert_ok(mr_dnd_set(t.room, "bob", false, &err));
	assert_ok(mr_dnd_set(t.room, "bob", false, &err));
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &queue, &done, &err));
	assert_int_equal(done.way, MR_NUDGE_QUEUED);
	assert_rc(mr_dnd_set(t.room, "nobody", true, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
bad_nudges_are_refused(void **state)
{
	struct town t = town_new(state);
	struct mr_nudged done;
	struct mr_error err = { 0 };
	char *big = calloc(1, MR_NUDGE_MAX + 2);

	memset(big, 'x', MR_NUDGE_MAX + 1);
	assert_rc(
	    mr_nudge_send(t.room, &t.alice, "bob", &(struct mr_nudge){ .text = "" }, NULL, &done, &err), MR_REFUSED);
	assert_rc(
	    mr_nudge_send(t.room, &t.alice, "bob", &(struct mr_nudge){ .text = big }, NULL, &done, &err), MR_REFUSED);
	assert_rc(mr_nudge_send(t.room, &t.alice, "bob", &(struct mr_nudge){ .text = "\xff" }, NULL, &done, &err),
	    MR_REFUSED);
	assert_rc(mr_nudge_send(
		      t.room, &t.alice, "bob", &(struct mr_nudge){ .text = "x", .kind = "a\nb" }, NULL, &done, &err),
	    MR_REFUSED);
	assert_rc(mr_nudge_send(t.room, &t.alice, "nobody", &(struct mr_nudge){ .text = "x" }, NULL, &done, &err),
	    MR_NOTFOUND);
	assert_false(nudge_any_but(t.room, "bob", &(struct mr_names){ 0 }));
	free(big);
	town_done(&t);
}

static void
a_waiter_is_woken(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	bool nudged = false;

	assert_rc(mr_wait(t.room, "bob", NULL, 100, &nudged, &err), MR_EMPTY);
	tap(&t, &t.alice, "bob", (struct mr_nudge){ .text = "one" });
	assert_ok(mr_wait(t.room, "bob", NULL, 5000, &nudged, &err));
	assert_true(nudged);
	assert_rc(mr_wait(t.room, "bob", NULL, 0, NULL, &err), MR_EMPTY); /* it is no mail */
	town_send(&t, &t.alice, "bob", "mail", NULL);
	assert_ok(mr_wait(t.room, "bob", NULL, 5000, &nudged, &err));
	assert_false(nudged);
	town_done(&t);
}

/* ---- What a screen tells ---- */

static void
screens_are_judged(void **state)
{
	static const struct {
		const char *screen;
		enum screen_state want;
	} cases[] = {
		{ "", SCREEN_UNKNOWN },
		{ "$ \n", SCREEN_UNKNOWN },
		{ "some output\n\n❯ \n\n\n", SCREEN_IDLE },
		{ "❯\n", SCREEN_IDLE },
		{ "› \n", SCREEN_IDLE },
		{ "────\n❯\u00a0\n────\n  ? for shortcuts\n", SCREEN_IDLE },
		{ "│ ❯ │\n", SCREEN_IDLE },
		{ "❯ \033[7mT\033[27m\033[2mry \"fix it\"\033[22m\n", SCREEN_IDLE },
		{ "❯ \033[38;5;2mgreen\033[0m\n", SCREEN_DRAFT },
		{ "❯ \033[2mdim\033[0mnot\n", SCREEN_DRAFT },
		{ "❯ old question\nanswer\n❯ \n", SCREEN_IDLE },
		{ "❯ half a thou\n", SCREEN_DRAFT },
		{ "❯half\n", SCREEN_UNKNOWN },
		{ "✻ Thinking… (esc to interrupt)\n\n❯ \n", SCREEN_BUSY },
		{ "✻ Thinking… (ESC to \033[1minterrupt\033[0m)\n\n❯ \n", SCREEN_BUSY },
		{ "✻ Thinking… (esc to interrupt)\n\n❯ and half a line\n", SCREEN_DRAFT },
		{ "Do you want to proceed?\n❯ 1. Yes\n  2. No\n", SCREEN_DIALOG },
		{ "❯ \033[7m1. Yes\033[0m\n  2. No\n", SCREEN_DIALOG },
		{ "Overwrite? [y/N]\n❯ \n", SCREEN_DIALOG },
		{ "❯ \n1\n2\n3\n4\n5\n6\n7\n8\n", SCREEN_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (screen_judge(str_of(cases[i].screen)) != cases[i].want)
			fail_msg("case %zu is %d: %s", i, (int)screen_judge(str_of(cases[i].screen)), cases[i].screen);
}

static void
typed_text_is_found_on_a_screen(void **state)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, screen = BUF_INIT;

	(void)state;
	assert_true(screen_shows(STR("❯ [from a] hello there\n"), STR("[from a] hello there")));
	assert_true(screen_shows(STR("│ ❯ [from a] hello  │\n│   there  │\n"), STR("[from a] hello there")));
	assert_false(screen_shows(STR("❯ [from a] hello there\nanswer\n❯ \n"), STR("[from a] hello there")));
	assert_false(screen_shows(STR("❯ [from a] hello ther\n"), STR("[from a] hello there")));
	assert_false(screen_shows(STR("❯ \n"), STR("[from a] hello there")));
	assert_true(screen_shows(STR("❯ [Pasted text #1 +20 lines]\n"), STR("[from a] hello there")));
	for (int i = 0; i < 200; i++)
		buf_addf(&text, "word%d ", i);
	buf_add(&screen, (struct mr_str){ text.ptr + 600, text.len - 600 });
	assert_true(screen_shows(buf_str(&screen), buf_str(&text))); /* a long one has scrolled */
	screen.len -= 20;
	assert_false(screen_shows(buf_str(&screen), buf_str(&text)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(urgent_first_then_in_order),
		ON_BOTH(two_never_show_the_same),
		ON_MAILDIR(a_crash_brings_them_back),
		ON_BOTH(the_same_twice_is_one),
		ON_BOTH(a_full_queue_refuses_and_tells),
		ON_BOTH(time_decides_what_is_shown),
		ON_BOTH(do_not_disturb_is_honoured),
		ON_BOTH(bad_nudges_are_refused),
		ON_BOTH(a_waiter_is_woken),
		cmocka_unit_test(screens_are_judged),
		cmocka_unit_test(typed_text_is_found_on_a_screen),
	};

	return cmocka_run_group_tests_name("nudge", tests, NULL, NULL);
}
