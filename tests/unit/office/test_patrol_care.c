/* SPDX-License-Identifier: MIT */
/* What a patrol waits for, sets aside and takes care of. */
#include "rounds.h"

/* ---- Waiting, setting aside ---- */

static void
a_cooldown_is_by_key(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Handler: true\nCooldown: 5m\nCooldown-Key: {What}");
	send_subject(&t, &t.alice, "bob", "RUN one", NULL);
	send_subject(&t, &t.alice, "bob", "RUN one", NULL);
	send_subject(&t, &t.alice, "bob", "RUN two", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.handled, 2);
	assert_int_equal(b.done.waiting, 1);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(town_unread(&t, "bob").attempts[0], 0);
	forget(&b);
	clock_shift_ms(5 * 60 * 1000 + 1000);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.handled, 1);
	forget(&b);
	clock_shift_ms(0);
	town_done(&t);
}

static void
a_report_of_an_earlier_life_is_set_aside(void **state)
{
	struct town t = town_new(state);
	struct mr_self again;
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: false");
	add_type(&t, "OLD", "Handler: true");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	send_subject(&t, &t.alice, "bob", "OLD main", NULL);
	town_register(&t, "alice", true, &again);
	struct beat b = go_round(&t, &t.bob, WITH(setting("Stale-Guard", "RUN")));

	assert_int_equal(b.done.aside, 1);
	assert_int_equal(b.done.handled, 1);
	assert_non_null(strstr(buf_z(&b.told), "sent by life 1 of its sender, which is at life 2 now"));
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 2);
	forget(&b);
	town_done(&t);
}

static void
a_dry_run_does_nothing(void **state)
{
	struct town t = town_new(state);
	struct mr_patrol_options dry = { .dry_run = true };

	add_type(&t, "RUN", "Handler: false");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, dry);

	assert_string_equal(buf_z(&b.told), "would-run 1 \n");
	assert_int_equal(town_unread(&t, "bob").attempts[0], 0);
	forget(&b);
	town_done(&t);
}

static void
settings_that_make_no_sense_are_refused(void **state)
{
	struct town t = town_new(state);
	static const struct mr_header wrong[] = { { "Escalate-Two", "x" }, { "Stale-After", "soon" },
		{ "Wake", "maybe" }, { "Time-Limit", "0s" }, { "Escalate-After", "-1" } };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct mr_patrol_options options = { .settings = &wrong[i], .settings_n = 1, .render = render };
		struct mr_patrolled done = { 0 };
		struct mr_error err = { 0 };

		assert_rc(mr_patrol(t.room, &t.bob, &options, &done, &err), MR_REFUSED);
		assert_non_null(strstr(err.message, wrong[i].name));
	}
	town_done(&t);
}

/* ---- Care ---- */

static void
three_watchers_send_one_alert_an_outage(void **state)
{
	struct town t = town_new(state);
	struct mr_self watchers[3] = { t.bob, t.carol }, deacon;

	town_register(&t, "dave", false, &watchers[2]);
	town_register(&t, "deacon", false, &deacon);
	for (int outage = 1; outage <= 2; outage++) {
		clock_shift_ms(outage * 6 * 60 * 1000);
		for (int round = 0; round < 2; round++)
			for (int w = 0; w < 3; w++) {
				struct beat b = go_round(
				    &t, &watchers[w], WITH(setting("Watch", "deacon"), setting("Alert-To", "alice")));

				assert_int_equal(b.done.cared, round == 0 && w == 0);
				forget(&b);
			}
		assert_int_equal(town_unread(&t, "alice").n, outage);
		assert_string_equal(
		    town_unread(&t, "alice").subjects[outage - 1], "ALERT: deacon is not seen any more");
		town_register(&t, "deacon", true, &deacon);
		struct beat b = go_round(&t, &t.bob, WITH(setting("Watch", "deacon"), setting("Alert-To", "alice")));

		assert_int_equal(b.done.cared, 0); /* it is back */
		forget(&b);
	}
	clock_shift_ms(0);
	town_done(&t);
}

static void
register_gone(struct town *t, const char *name, const char *wake)
{
	struct mr_env env = { 0 };
	mr_auto(buf_done) struct buf setting = BUF_INIT;
	struct mr_registration got = { 0 };
	struct mr_error err = { 0 };
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(process_describe(pid, &env.process));
	assert_ok(mr_register(t->room, name, &env, NULL, &got, &err));
	buf_addf(&setting, "Wake-%s", name);
	assert_ok(mr_config_set(t->room, buf_z(&setting), wake, false, &err));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
a_wake_command_runs_once_a_backlog(void **state)
{
	struct town t = town_new(state);

	register_gone(&t, "sleepy", "sh -c 'test $MAILROOM_AGENT = sleepy'");
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.told.len, 0); /* no mail waits */
	forget(&b);
	town_send(&t, &t.alice, "sleepy", "wake up", NULL);
	town_send(&t, &t.alice, "sleepy", "wake up again", NULL);
	b = go_round(&t, &t.bob, WITH(setting("Wake", "no")));
	assert_int_equal(b.told.len, 0);
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN);
	assert_non_null(strstr(buf_z(&b.told), "woke 0 sleepy with"));
	assert_non_null(strstr(buf_z(&b.told), ": exit 0"));
	forget(&b);
	b = go_round(&t, &t.carol, PLAIN);
	assert_int_equal(b.told.len, 0);
	forget(&b);
	town_done(&t);
}

static void
overdue_answers_become_mail_once(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("alice"), "when?");

	draft.by_ms = clock_now_ms() + 60000;
	town_send_draft(&t, &t.bob, &draft, NULL);
	clock_shift_ms(120000);
	for (int i = 0; i < 2; i++) {
		struct beat b = go_round(&t, &t.bob, PLAIN);

		assert_int_equal(b.done.cared, i == 0);
		forget(&b);
	}
	assert_string_equal(town_unread(&t, "bob").subjects[0], "OVERDUE: when?");
	clock_shift_ms(0);
	town_done(&t);
}

static void
channels_are_pruned_above_the_buffer_and_old_mail_is_archived(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct seen seen;

	assert_ok(mr_channel_create(t.room, &t.alice, "news", 0, 60 * 60 * 1000, &err));
	town_send(&t, &t.alice, "channel:news", "old news", NULL);
	town_send(&t, &t.alice, "bob", "old mail", NULL);
	town_send(&t, &t.alice, "bob", "unread mail", NULL);
	seen = town_unread(&t, "bob");
	assert_ok(mr_mark(t.room, &t.bob, seen.ids[0], MR_SEEN, 0, &err));
	clock_shift_ms(2 * 60 * 60 * 1000);
	struct beat b = go_round(&t, &t.bob, WITH(setting("Archive-After", "1h")));

	assert_non_null(strstr(buf_z(&b.told), "pruned 0 channel:news, 1 posts"));
	assert_non_null(strstr(buf_z(&b.told), "archived 0 1 read messages"));
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 1);
	forget(&b);
	clock_shift_ms(0);
	town_done(&t);
}

static void
the_log_tells_it_all_in_order(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf log = BUF_INIT;

	add_type(&t, "RUN", "Handler: sh -c 'test $MAILROOM_ATTEMPT = 2'");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	for (int i = 0; i < 2; i++) {
		struct beat b = go_round(&t, &t.bob, PLAIN);

		forget(&b);
		(void)usleep(2000);
	}
	assert_ok(mr_patrol_log(t.room, "bob", 0, note_step_told, &log, &err));
	assert_string_equal(buf_z(&log), "failed 1 exit 1\nhandled 2 exit 0\n");
	buf_clear(&log);
	assert_ok(mr_patrol_log(t.room, "bob", 1, note_step_told, &log, &err));
	assert_string_equal(buf_z(&log), "handled 2 exit 0\n");
	town_done(&t);
}

static bool
is_noted(struct town *t, const char *id)
{
	mr_auto(note_done) struct note note = { 0 };
	struct mr_error err = { 0 };

	assert_ok(note_load(t->room, "bob", id, &note, &err));
	return note.state != NOTE_NEW;
}

static void
what_was_done_is_forgotten_after_a_while_but_not_what_still_lies_there(void **state)
{
	struct town t = town_new(state);
	char done[MR_ID_LEN + 1], broken[MR_ID_LEN + 1], later[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: true {What}");
	send_subject(&t, &t.alice, "bob", "RUN main", done);
	send_subject(&t, &t.alice, "bob", "RUN -x", broken);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	forget(&b);
	clock_shift_ms((int64_t)31 * 24 * 3600 * 1000);
	send_subject(&t, &t.alice, "bob", "RUN other", later);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.handled, 1);
	assert_false(is_noted(&t, done));
	assert_true(is_noted(&t, broken));
	assert_true(is_noted(&t, later));
	forget(&b);
	clock_shift_ms(0);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_cooldown_is_by_key),
		ON_BOTH(a_report_of_an_earlier_life_is_set_aside),
		ON_MAILDIR(a_dry_run_does_nothing),
		ON_MAILDIR(settings_that_make_no_sense_are_refused),
		ON_BOTH(three_watchers_send_one_alert_an_outage),
		ON_MAILDIR(a_wake_command_runs_once_a_backlog),
		ON_MAILDIR(overdue_answers_become_mail_once),
		ON_MAILDIR(channels_are_pruned_above_the_buffer_and_old_mail_is_archived),
		ON_MAILDIR(the_log_tells_it_all_in_order),
		ON_MAILDIR(what_was_done_is_forgotten_after_a_while_but_not_what_still_lies_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
