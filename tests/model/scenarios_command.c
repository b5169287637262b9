/* SPDX-License-Identifier: MIT */
/*
 * scenarios_command.c - the command itself, where it matters what standard output took before which call. The record is
 * its standard output, so that both stand in one order.
 */
#include "more.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Beside the folder of the tests. */
static void
command_path(char ret[512])
{
	ssize_t n = readlink("/proc/self/exe", ret, 400);

	assert_true(n > 0);
	ret[n] = '\0';
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(ret, '/');
		assert_non_null(slash);
		*slash = '\0';
	}
	(void)snprintf(ret + strlen(ret), 16, "/mailroom");
}

static void
become_command(const struct world *w, int tell, const char *const *args, const char *input)
{
	char bin[512], room[96], record[256], link[40];
	const char *argv[16] = { "mailroom", "--room", room, "--as", "bob" };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	command_path(bin);
	(void)snprintf(room, sizeof(room), "%s/.mailroom", w->dir);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", tell);
	ssize_t n = readlink(link, record, sizeof(record) - 1);
	if (n < 0 || null < 0)
		_exit(126);
	record[n] = '\0';
	(void)setenv("MAILROOM_TEST_RECORD", record, 1);
	(void)setenv("MAILROOM_TEST_BOOT_ID", MODEL_BOOT, 1);
	(void)setenv("XDG_STATE_HOME", w->dir, 1);
	for (size_t i = 5; i < 15 && *args; i++)
		argv[i] = *args++;
	int in = null;
	if (input) {
		FILE *lines = tmpfile();
		if (!lines || fputs(input, lines) < 0 || fflush(lines) != 0 || lseek(fileno(lines), 0, SEEK_SET) != 0)
			_exit(126);
		in = fileno(lines);
	}
	(void)dup2(in, 0);
	(void)dup2(tell, 1);
	(void)dup2(null, 2);
	(void)execv(bin, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static enum mr_rc
run_with_input(const struct world *w, int tell, const char *const *args, const char *input)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		become_command(w, tell, args, input);
	return waitpid(child, &status, 0) == child && status == 0 ? MR_OK : MR_IO;
}

static enum mr_rc
run_command(const struct world *w, int tell, const char *const *args)
{
	return run_with_input(w, tell, args, NULL);
}

static enum mr_rc
run_read(struct world *w, int tell)
{
	return run_command(w, tell, (const char *const[]){ "read", w->ids[0], w->ids[1], w->ids[2], NULL });
}

static enum mr_rc
run_drain(struct world *w, int tell)
{
	return run_command(w, tell, (const char *const[]){ "drain", "--json", NULL });
}

static enum mr_rc
run_recv(struct world *w, int tell)
{
	return run_command(w, tell, (const char *const[]){ "recv", "--lease", "1s", "--json", NULL });
}

static enum mr_rc
run_inbox(struct world *w, int tell)
{
	return run_command(w, tell, (const char *const[]){ "inbox", NULL });
}

/* Each once; what is consumed was printed; what was acknowledged is consumed. */
static void
check_printed(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.held + p.dead, 0);
		if (p.unread == 0)
			assert_true(w->shown & (1u << i));
		if (w->accepted)
			assert_int_equal(p.unread, 0);
	}
	mr_room_close(room);
}

/* Nothing is consumed: the lease is over when the machine is back. */
static void
check_untouched(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.unread, 1);
	}
	mr_room_close(room);
}

/* ---- send --batch: a line that was printed is a message that is there ---- */

static enum mr_rc
run_send_batch(struct world *w, int tell)
{
	static const char *const to[] = { "alice", "carol", "alice", "alice", "carol" };
	char *input = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&input, &size);

	assert_non_null(out);
	for (size_t i = 0; i < 5; i++) {
		(void)fprintf(out, "{\"to\":\"%s\",\"subject\":\"m%zu\",\"body\":\"", to[i], i);
		for (const char *c = BODY; *c; c++)
			(void)(*c == '\n' ? fputs("\\n", out) : fputc(*c, out));
		(void)fputs("\"}\n", out);
	}
	(void)fclose(out);
	enum mr_rc rc = run_with_input(w, tell, (const char *const[]){ "send", "--batch", NULL }, input);
	free(input);
	return rc;
}

static void
check_send_batch(struct world *w)
{
	static const char *const to_alice[] = { "alice", NULL }, *const to_carol[] = { "carol", NULL };
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < 5; i++)
		check_batch_message(w, room, i, i == 1 || i == 4 ? to_carol : to_alice);
	mr_room_close(room);
}

const struct scenario command_scenarios[] = {
	{ "mailroom send --batch", setup_three, run_send_batch, check_send_batch, 5, 0 },
	{ "mailroom read", setup_three, run_read, check_printed, 5, 0 },
	{ "mailroom drain", setup_three, run_drain, check_printed, 5, 0 },
	{ "mailroom recv", setup_three, run_recv, check_untouched, 5, 0 },
	{ "mailroom inbox", setup_three, run_inbox, check_untouched, 0, 0 },
};
const size_t command_scenarios_n = sizeof(command_scenarios) / sizeof(command_scenarios[0]);
