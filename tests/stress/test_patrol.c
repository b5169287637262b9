/* SPDX-License-Identifier: MIT */
/*
 * test_patrol.c - patrols that are killed at any moment: every message is handled, nothing that is recorded as handled
 * runs again, and a handler that keeps the ids it has seen has each effect exactly once. Only the patrols are killed,
 * so that their handlers live on: one that looks first and acts then would act twice if it ran beside itself.
 *
 * With MAILROOM_TEST_LONG: 200 kills over 1,000 messages.
 */
#include "stress/crowd.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include <fcntl.h>

#define PATROLS 2u

struct beat {
	struct crowd room;
	atomic_bool over;
};

static const char type_file[] = "Type: JOB\n"
				"Summary: something to do\n"
				"Subject: JOB {Number}\n"
				"Field: Number; number; required; subject\n"
				"Handler: handle\n";
/* runs: every start. again: starts although it was recorded as handled. effects: what the handler is for. */
static const char handler[] = "#!/bin/sh\n"
			      "read -r line <.mailroom/records/handled/bob/$MAILROOM_ID || line=none\n"
			      "echo \"$MAILROOM_ID $MAILROOM_ATTEMPT\" >>runs\n"
			      "[ \"$line\" = 'State: handled' ] && echo \"$MAILROOM_ID\" >>again\n"
			      "[ \"$line\" = 'State: running' ] || echo \"$MAILROOM_ID $line\" >>unnoted\n"
			      "[ -e seen/$MAILROOM_ID ] && exit 0\n"
			      "case $1 in *[05]) sleep 0.03 ;; esac\n"
			      "echo \"$1\" >>effects\n"
			      ": >seen/$MAILROOM_ID\n";

static void
write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	struct mr_error err = { 0 };
	int fd = -1;

	assert_int_equal(dir_make(AT_FDCWD, dir, 0700, false, &fd, &err), MR_OK);
	assert_int_equal(file_replace(fd, name, str_of(text), mode, &err), MR_OK);
	sys_close_fd(&fd);
}

static char *
render(void *ctx, const struct mr_message *msg, size_t *ret_len)
{
	(void)ctx;
	*ret_len = strlen(msg->id);
	return strdup(msg->id);
}

static void
patrol(void *ctx, unsigned number)
{
	struct beat *b = ctx;
	struct mr_room *room = crowd_open(&b->room);
	struct mr_self bob = crowd_self(room, "bob");
	struct mr_patrol_options options = { .render = render };

	(void)number;
	if (chdir(b->room.dir) != 0)
		crowd_die("chdir", NULL);
	while (!atomic_load(&b->over)) {
		struct mr_error err = { 0 };
		struct mr_patrolled done = { 0 };

		MUST(mr_patrol(room, &bob, &options, &done, &err));
		if (done.failed + done.dead + done.broken > 0)
			crowd_die("a handler failed", &err);
		if (done.handled == 0)
			crowd_nap_us(2000);
	}
	mr_room_close(room);
}

static size_t
left_over(struct mr_room *room)
{
	return crowd_count(room, "bob", (struct mr_filter){ .folders = MR_INBOX | MR_HELD });
}

static void
kill_often(struct beat *b, pid_t patrols[PATROLS], unsigned kills)
{
	uint64_t dice = (uint64_t)getpid();

	for (unsigned k = 0; k < kills; k++) {
		unsigned i = crowd_dice(&dice) % PATROLS;
		int status = 0;

		crowd_nap_us(2000 + crowd_dice(&dice) % (CROWD_SLOW ? 60000 : 10000));
		(void)kill(patrols[i], SIGKILL);
		(void)waitpid(patrols[i], &status, 0);
		assert_true(WIFSIGNALED(status)); /* else it had failed by itself */
		patrols[i] = crowd_spawn(patrol, b, i);
	}
}

/* ---- What was written ---- */

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a file, sorted; none when it is not there. */
static struct mr_names
lines_of(const struct beat *b, const char *name)
{
	struct buf text = BUF_INIT;
	struct mr_names lines = { 0 };
	struct mr_error err = { 0 };
	int fd = -1;

	assert_int_equal(dir_open(AT_FDCWD, b->room.dir, &fd, &err), MR_OK);
	(void)file_read(fd, name, (size_t)1 << 24, &text, &err);
	sys_close_fd(&fd);
	for (char *rest = text.ptr, *line; rest && (line = strsep(&rest, "\n")) && rest;)
		assert_true(names_add(&lines, str_of(line)));
	if (lines.n > 1)
		qsort(lines.v, lines.n, sizeof(*lines.v), by_bytes);
	buf_done(&text);
	return lines;
}

static size_t
count_lines(const struct beat *b, const char *name)
{
	struct mr_names lines = lines_of(b, name);
	size_t n = lines.n;

	mr_names_done(&lines);
	return n;
}

static void
assert_each_effect_once(const struct beat *b, unsigned messages)
{
	struct mr_names effects = lines_of(b, "effects");

	assert_int_equal(effects.n, messages);
	for (size_t i = 1; i < effects.n; i++)
		assert_string_not_equal(effects.v[i - 1], effects.v[i]);
	mr_names_done(&effects);
}

/* Of one message no attempt number comes twice. */
static void
assert_attempts_count_up(const struct beat *b)
{
	struct mr_names runs = lines_of(b, "runs");

	for (size_t i = 1; i < runs.n; i++)
		assert_string_not_equal(runs.v[i - 1], runs.v[i]);
	mr_names_done(&runs);
}

static bool
count_acked(void *ctx, const struct mr_message *msg)
{
	*(unsigned *)ctx += (msg->flags & MR_ACKED) != 0;
	return true;
}

static void
count_handled(void *ctx, const struct mr_patrol_step *step)
{
	*(unsigned *)ctx += strcmp(step->what, "handled") == 0;
}

static void
assert_all_acknowledged(const struct beat *b, unsigned messages)
{
	struct mr_room *room = crowd_open(&b->room);
	struct mr_scan scan = { .filter = { .folders = MR_ARCHIVE } };
	struct mr_error err = { 0 };
	unsigned acked = 0, handled = 0;

	assert_int_equal(left_over(room), 0);
	assert_int_equal(mr_scan(room, "bob", &scan, count_acked, &acked, &err), MR_OK);
	assert_int_equal(acked, messages);
	assert_int_equal(mr_patrol_log(room, "bob", 0, count_handled, &handled, &err), MR_OK);
	assert_int_equal(handled, messages);
	mr_room_close(room);
}

/* ---- The test ---- */

static void
send_jobs(struct mr_room *room, unsigned messages)
{
	struct mr_self alice = crowd_self(room, "alice");
	struct mr_error err = { 0 };

	for (unsigned i = 0; i < messages; i++) {
		char subject[32];

		(void)snprintf(subject, sizeof(subject), "JOB %u", i);
		MUST(crowd_send(room, &alice,
		    (struct mr_draft){ .to = TO("bob"), .subject = subject, .body = "please" }, NULL, &err));
	}
}

static void
killed_patrols_handle_every_message_and_have_each_effect_once(void **state)
{
	(void)state;
	struct beat *b = crowd_share(sizeof(*b));
	unsigned messages = crowd_long() ? 1000 : CROWD_SLOW ? 30 : 200;
	unsigned kills = crowd_long() ? 200 : CROWD_SLOW ? 8 : 40;
	pid_t patrols[PATROLS];
	char types[128];

	b->room = crowd_new("none", TO("alice", "bob"));
	(void)snprintf(types, sizeof(types), "%s/types", b->room.path);
	write_file(types, "JOB", type_file, 0600);
	write_file(b->room.dir, "handle", handler, 0700);
	(void)snprintf(types, sizeof(types), "%s/seen", b->room.dir);
	write_file(types, ".keep", "", 0600);
	struct mr_room *room = crowd_open(&b->room);
	struct mr_error err = { 0 };

	MUST(mr_config_set(room, "Handler-handle", "./handle {Number}", false, &err));
	send_jobs(room, messages);
	for (unsigned i = 0; i < PATROLS; i++)
		patrols[i] = crowd_spawn(patrol, b, i);
	kill_often(b, patrols, kills);
	for (unsigned i = 0; left_over(room) > 0 && i < 12000; i++)
		crowd_nap_us(5000);
	atomic_store(&b->over, true);
	assert_int_equal(crowd_wait(patrols, PATROLS), 0);
	mr_room_close(room);

	assert_all_acknowledged(b, messages);
	assert_each_effect_once(b, messages);
	assert_attempts_count_up(b);
	assert_int_equal(count_lines(b, "again"), 0);
	assert_int_equal(count_lines(b, "unnoted"), 0);
	assert_true(count_lines(b, "runs") >= messages);
	print_message("# %u messages, %u kills, %zu runs\n", messages, kills, count_lines(b, "runs"));
	crowd_done(&b->room);
	(void)munmap(b, sizeof(*b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_patrols_handle_every_message_and_have_each_effect_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
