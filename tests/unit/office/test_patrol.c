/* SPDX-License-Identifier: MIT */
/* Patrols: what is run and what is not, and what becomes of it. */
#include "town.h"

#include "base/clock.h"
#include "base/process.h"
#include "base/spawn.h"
#include "office/patrol.h"
#include <signal.h>

struct beat { /* what a round told */
	struct mr_patrolled done;
	struct buf told; /* "what result\n" */
};

static char *
render(void *ctx, const struct mr_message *msg, size_t *ret_len)
{
	char *text = NULL;
	int n = asprintf(&text, "{\"id\":\"%s\"}", msg->id);

	(void)ctx;
	*ret_len = n > 0 ? (size_t)n : 0;
	return n > 0 ? text : NULL;
}

static void
note_step_told(void *ctx, const struct mr_patrol_step *step)
{
	struct buf *told = ctx;

	buf_addf(told, "%s %u %s\n", step->what, step->attempt, step->result);
}

static struct beat
go_round(struct town *t, const struct mr_self *self, struct mr_patrol_options options)
{
	struct beat b = { 0 };
	struct mr_error err = { 0 };

	options.render = render;
	options.fn = note_step_told;
	options.ctx = &b.told;
	assert_ok(mr_patrol(t->room, self, &options, &b.done, &err));
	return b;
}
#define PLAIN ((struct mr_patrol_options){ 0 })

static void
forget(struct beat *b)
{
	buf_done(&b->told);
}

static void
add_type(struct town *t, const char *name, const char *more)
{
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "Type: %s\nSummary: a test\nSubject: %s {What}\nField: What; word; required; subject\n%s\n",
	    name, name, more);
	assert_ok(t->room->driver->record_put(t->room, "type", "", name, buf_str(&text), &err));
}

static void
send_subject(
    struct town *t, const struct mr_self *from, const char *to, const char *subject, char ret_id[MR_ID_LEN + 1])
{
	struct mr_draft draft = draft_to(TO(to), "Note: hi\n");

	draft.subject = subject;
	town_send_draft(t, from, &draft, ret_id);
}

static struct mr_header
setting(const char *name, const char *value)
{
	return (struct mr_header){ name, value };
}
#define WITH(...)                                                                                                      \
	((struct mr_patrol_options){ .settings = (const struct mr_header[]){ __VA_ARGS__ },                            \
	    .settings_n = sizeof((const struct mr_header[]){ __VA_ARGS__ }) / sizeof(struct mr_header) })

/* ---- Handling ---- */

static void
what_has_a_handler_is_handled_and_the_rest_left(void **state)
{
	struct town t = town_new(state);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: test {What} = main");
	add_type(&t, "IDLE", "");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	send_subject(&t, &t.alice, "bob", "IDLE main", NULL);
	send_subject(&t, &t.alice, "bob", "just mail", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.handled, 1);
	assert_int_equal(b.done.left, 2);
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_true(msg.flags & MR_ACKED);
	mr_message_done(&msg);
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.handled, 0);
	forget(&b);
	town_done(&t);
}

static void
a_handler_gets_fields_and_message_without_a_shell(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN",
	    "Field: Note; text\nHandler: sh -c 'test \"$1\" = \"$2\" -a \"$MAILROOM_FIELD_NOTE\" = hi -a "
	    "\"$MAILROOM_FROM-$MAILROOM_TYPE-$MAILROOM_ATTEMPT\" = alice-RUN-1 && grep -q \"$MAILROOM_ID\"' x {What} "
	    "'$(id);`id`>x|*'");
	send_subject(&t, &t.alice, "bob", "RUN $(id);`id`>x|*", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_string_equal(buf_z(&b.told), "handled 1 exit 0\n");
	forget(&b);
	town_done(&t);
}

static void
a_field_never_is_an_option_nor_the_program(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Handler: rm {What}");
	add_type(&t, "EXEC", "Handler: {What} x");
	send_subject(&t, &t.alice, "bob", "RUN --version", NULL);
	send_subject(&t, &t.alice, "bob", "EXEC true", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.broken, 2);
	assert_non_null(strstr(buf_z(&b.told), "begins with a dash"));
	assert_non_null(strstr(buf_z(&b.told), "may not say which program"));
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN); /* told once, left for ever */
	assert_int_equal(b.done.broken, 2);
	assert_int_equal(b.told.len, 0);
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_int_equal(town_unread(&t, "bob").attempts[0], 1);
	forget(&b);
	town_done(&t);
}

static void
a_message_with_a_wrong_field_is_left_and_told(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Field: Size; one-of big small; required\nHandler: true");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.broken, 1);
	assert_non_null(strstr(buf_z(&b.told), "Size"));
	assert_int_equal(town_unread(&t, "bob").n, 1);
	forget(&b);
	town_done(&t);
}

static void
recorded_as_handled_it_never_runs_again(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct note note = { .state = NOTE_HANDLED, .attempt = 1 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: false");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	assert_ok(note_save(t.room, "bob", id, &note, &err)); /* killed before it was acknowledged */
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.failed, 0);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 1);
	forget(&b);
	town_done(&t);
}

static void
what_a_kill_cut_off_runs_again_but_not_beside_itself(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct note note = { .state = NOTE_RUNNING, .attempt = 1, .until_ms = clock_now_ms() + 60000 };
	char id[MR_ID_LEN + 1];
	pid_t handler = fork();

	if (handler == 0) {
		(void)pause();
		_exit(0);
	}
	add_type(&t, "RUN", "Handler: sh -c 'test $MAILROOM_ATTEMPT = 2'");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	assert_true(process_describe(handler, &note.process));
	assert_ok(note_save(t.room, "bob", id, &note, &err));
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.waiting, 1);
	assert_int_equal(town_unread(&t, "bob").attempts[0], 0);
	forget(&b);
	assert_int_equal(kill(handler, SIGKILL), 0);
	assert_int_equal(waitpid(handler, NULL, 0), handler);
	b = go_round(&t, &t.bob, PLAIN);
	assert_string_equal(buf_z(&b.told), "handled 2 exit 0\n");
	forget(&b);
	town_done(&t);
}

/* ---- Failing ---- */

static void
failures_are_counted_and_end_in_one_escalation_and_a_dead_letter(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Handler: sh -c 'echo no such thing >&2; exit 7'\nEscalate-After: 2\nEscalate-To: carol");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_string_equal(buf_z(&b.told), "failed 1 exit 7: no such thing\n");
	assert_int_equal(town_unread(&t, "bob").n, 1);
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.dead, 1);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 1);
	assert_string_equal(town_unread(&t, "carol").subjects[0], "ESCALATION: RUN from alice failed 2 times");
	assert_string_equal(town_unread(&t, "alice").subjects[0], "Failed: RUN main");
	forget(&b);
	town_done(&t);
}

static void
cut_off_while_giving_up_it_is_escalated_once(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: false\nEscalate-After: 1\nEscalate-To: carol");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	for (int i = 0; i < 2; i++) { /* the second time as if the first had been killed before the dead letter */
		struct note note = { 0 };
		struct beat b;

		assert_ok(note_load(t.room, "bob", id, &note, &err));
		if (i == 1) {
			note.state = NOTE_FAILED;
			assert_ok(note_save(t.room, "bob", id, &note, &err));
			assert_ok(mr_dead_drop(t.room, &t.alice, id, &err));
			send_subject(&t, &t.alice, "bob", "RUN main", id);
			assert_ok(note_save(t.room, "bob", id, &note, &err));
		}
		note_done(&note);
		b = go_round(&t, &t.bob, PLAIN);
		assert_int_equal(b.done.dead, 1);
		forget(&b);
	}
	assert_int_equal(town_unread(&t, "carol").n, 2); /* two messages, one each */
	town_done(&t);
}

static void
too_long_a_run_is_ended_and_no_program_is_a_failure(void **state)
{
	struct town t = town_new(state);
	int64_t begin = clock_boot_ms();

	add_type(&t, "RUN", "Handler: sleep 20\nTime-Limit: 1s");
	add_type(&t, "NONE", "Handler: ./there-is-no-such-program");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	send_subject(&t, &t.alice, "bob", "NONE main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.failed, 2);
	assert_non_null(strstr(buf_z(&b.told), "failed 1 no end within 1s"));
	assert_non_null(strstr(buf_z(&b.told), "there is no such program"));
	assert_true(clock_boot_ms() - begin < 10000);
	forget(&b);
	town_done(&t);
}

static void
a_patient_patrol_pauses_after_a_failure(void **state)
{
	struct town t = town_new(state);
	struct mr_patrol_options patient = { .patient = true };

	add_type(&t, "RUN", "Handler: false");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, patient);

	assert_int_equal(b.done.failed, 1);
	forget(&b);
	b = go_round(&t, &t.bob, patient);
	assert_int_equal(b.done.failed, 0);
	assert_int_equal(b.done.waiting, 1);
	forget(&b);
	clock_shift_ms(3000);
	b = go_round(&t, &t.bob, patient);
	assert_int_equal(b.done.failed, 1);
	forget(&b);
	clock_shift_ms(0);
	town_done(&t);
}

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
	assert_non_null(strstr(buf_z(&b.told), "sent by life 1 of its sender, who is at life 2 now"));
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
	struct mr_register_options options = { .wake = wake };
	struct mr_registration got = { 0 };
	struct mr_error err = { 0 };
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(process_describe(pid, &env.process));
	assert_ok(mr_register(t->room, name, &env, &options, &got, &err));
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

/* ---- Before the first instruction ---- */

static enum mr_rc
refuse_to_begin(void *ctx, int64_t pid, struct mr_error *err)
{
	*(int64_t *)ctx = pid;
	return mr_fail(err, MR_FULL, "cannot be noted");
}

static enum mr_rc
die_here(void *ctx, int64_t pid, struct mr_error *err)
{
	(void)pid;
	(void)err;
	*(volatile int *)ctx = 1;
	(void)kill(getpid(), SIGKILL);
	return MR_OK;
}

static void
a_program_whose_start_was_not_noted_never_begins(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct spawned ran = { 0 };
	struct stat st;
	char path[128];
	int64_t pid = 0;
	int began = 0, status = 0;

	(void)snprintf(path, sizeof(path), "%s/ran", t.dir);
	struct spawn what = { .argv = TO("touch", path), .started = refuse_to_begin, .started_ctx = &pid };

	assert_rc(spawn_run(&what, &ran, &err), MR_FULL);
	assert_true(pid > 0);
	what.started = die_here;
	what.started_ctx = &began;
	pid_t patrol = fork();

	if (patrol == 0) {
		(void)spawn_run(&what, &ran, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(patrol, &status, 0), patrol);
	assert_true(WIFSIGNALED(status));
	(void)usleep(100000);
	assert_int_equal(stat(path, &st), -1);
	spawned_done(&ran);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_has_a_handler_is_handled_and_the_rest_left),
		ON_MAILDIR(a_handler_gets_fields_and_message_without_a_shell),
		ON_MAILDIR(a_field_never_is_an_option_nor_the_program),
		ON_BOTH(a_message_with_a_wrong_field_is_left_and_told),
		ON_BOTH(recorded_as_handled_it_never_runs_again),
		ON_MAILDIR(what_a_kill_cut_off_runs_again_but_not_beside_itself),
		ON_BOTH(failures_are_counted_and_end_in_one_escalation_and_a_dead_letter),
		ON_MAILDIR(cut_off_while_giving_up_it_is_escalated_once),
		ON_MAILDIR(too_long_a_run_is_ended_and_no_program_is_a_failure),
		ON_MAILDIR(a_patient_patrol_pauses_after_a_failure),
		ON_BOTH(a_cooldown_is_by_key),
		ON_BOTH(a_report_of_an_earlier_life_is_set_aside),
		ON_MAILDIR(a_dry_run_does_nothing),
		ON_MAILDIR(settings_that_make_no_sense_are_refused),
		ON_BOTH(three_watchers_send_one_alert_an_outage),
		ON_MAILDIR(a_wake_command_runs_once_a_backlog),
		ON_MAILDIR(overdue_answers_become_mail_once),
		ON_MAILDIR(channels_are_pruned_above_the_buffer_and_old_mail_is_archived),
		ON_MAILDIR(the_log_tells_it_all_in_order),
		/* the last that shifts the clock: ids never go back */
		ON_MAILDIR(what_was_done_is_forgotten_after_a_while_but_not_what_still_lies_there),
		ON_MAILDIR(a_program_whose_start_was_not_noted_never_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
