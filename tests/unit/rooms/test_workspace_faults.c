/* SPDX-License-Identifier: MIT */
/* test_workspace_faults.c - what a room of the workspace kind is, and what is left when the disk fails or mail is
 * carried. */
#include "support/sys_fault.h"
#include "yard.h"

static void
where_is_a_workspace_or_a_yard(void **state)
{
	struct yard *y = *state;
	static const struct {
		const char *where, *owner;
	} cases[] = { { "", NULL }, { "lead", "lead" }, { "lead/.", "lead" }, { "project", "project" },
		{ "bare", NULL } };

	assert_int_equal(mkdir(in_yard(y, "bare"), 0700) | mkdir(in_yard(y, "project"), 0700), 0);
	write_file(y, "project/main.c", "int x;\n");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct mr_room *room = open_at(y, cases[i].where);
		const char *owner = room->owner;

		if (cases[i].owner)
			assert_string_equal(owner, cases[i].owner);
		else
			assert_null(owner);
		mr_room_close(room);
	}
	assert_false(has(y, "project/.mailbox")); /* looking makes nothing */
	struct mr_room *room = NULL;

	EXPECT(MR_NOTFOUND, room_open_spec("workspace:/no/such/folder", NULL, &room, &err));
}

static void
names_and_paths_are_spelled(void **state)
{
	struct yard *y = *state;
	char address[MR_ADDRESS_MAX + 1];
	struct mr_agent found = { 0 };

	EXPECT(MR_OK, y->ops->spell(y->room, "Old Bob", address, &err));
	assert_string_equal(address, "Old%20Bob");
	EXPECT(MR_NOTFOUND, y->ops->find_agent(y->room, address, &found, &err));
	add(y, address);
	assert_true(has(y, "Old Bob/.mailbox/inbox"));
	EXPECT(MR_OK, y->ops->spell(y->room, "Old%20Bob", address, &err));
	assert_string_equal(address, "Old%20Bob");
	EXPECT(MR_OK, y->ops->spell(y->room, in_yard(y, "lead/.mailbox/inbox"), address, &err));
	assert_string_equal(address, "lead");
	EXPECT(MR_REFUSED, y->ops->spell(y->room, "a/b", address, &err));
	EXPECT(MR_REFUSED, post(y, (struct out){ .from = "lead", .to = "%2E." }, NULL, &err)); /* ".." */

	/* outside the yard: known by its path from then on */
	assert_int_equal(mkdir(in_yard(y, "far"), 0700) | mkdir(in_yard(y, "far/away"), 0700), 0);
	assert_int_equal(
	    mkdir(in_yard(y, "far/away/.mailbox"), 0700) | mkdir(in_yard(y, "far/away/.mailbox/inbox"), 0700), 0);
	EXPECT(MR_NOTFOUND, post(y, (struct out){ .from = "lead", .to = "away" }, NULL, &err));
	EXPECT(MR_OK, y->ops->spell(y->room, in_yard(y, "far/away"), address, &err));
	assert_string_equal(address, "away");
	EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "away" }, NULL, &err));
	assert_int_equal(count_files(y, "far/away/.mailbox/inbox"), 1);
	assert_int_equal(mkdir(in_yard(y, "far/lead"), 0700), 0);
	EXPECT(MR_REFUSED, y->ops->spell(y->room, in_yard(y, "far/lead"), address, &err)); /* another lead */
}

/* One send or answer with system call `at` failing: all of it or nothing. False: it was over before. */
static bool
with_fault(void **state, bool answer, unsigned long at)
{
	struct yard *y = NULL;
	struct delivered asked = { 0 };
	struct mr_error failure = { 0 };

	(void)yard_up(state);
	y = *state;
	workspace_of(y->room)->busy_ms = 0;
	if (answer)
		EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, &asked, &err));
	struct out out = {
		.from = answer ? "tester" : "lead", .to = answer ? "lead" : "tester", .reply_to = asked.native_id
	};

	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
	enum mr_rc rc = post(y, out, NULL, &failure);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	size_t got = look(y, out.to, MR_INBOX).n;

	if (got != (rc == MR_OK || rc == MR_INDOUBT))
		fail_msg(
		    "call %lu, answer %d: %s (%s), but %zu arrived", at, answer, mr_rc_word(rc), failure.message, got);
	assert_int_equal(look(y, out.from, MR_SENT).n, got);
	/* The question waits, or was taken, and is never lost. */
	if (answer)
		assert_int_equal(look(y, "tester", MR_INBOX | MR_ARCHIVE).n, 1);
	if (answer && rc != MR_OK && rc != MR_INDOUBT && !strstr(failure.hint, "scratch/"))
		assert_int_equal(look(y, "tester", MR_INBOX).n, 1);
	(void)yard_down(state);
	return hit;
}

static void
a_failing_disk_leaves_all_or_nothing(void **state)
{
	for (int answer = 0; answer < 2; answer++) {
		unsigned long points = 0;
		void *own = NULL;

		(void)state;
		while (with_fault(&own, answer, points + 1))
			points++;
		assert_true(points > 10);
	}
}

enum act { ASK, ANSWER, MARK };

/* In a child that dies at call `at`. False: it was over before. */
static bool
killed_at(struct yard *y, enum act act, const struct delivered *asked, unsigned long at)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_error err = { 0 };
		struct out out = { .from = act == ASK ? "lead" : "tester",
			.to = act == ASK ? "tester" : "lead",
			.reply_to = act == ANSWER ? asked->native_id : NULL };

		workspace_of(y->room)->busy_ms = 0;
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE, .at = at });
		enum mr_rc rc = act == MARK ? y->ops->mark(y->room, "tester", asked->id, MR_SEEN, 0, 0, &err)
					    : post(y, out, NULL, &err);

		_exit(rc == MR_OK && (act != MARK || y->ops->flush(y->room, &err) == MR_OK) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* Whatever was under way: what is visible is whole, the question is there once, and trying again completes it, once. */
static void
a_kill_at_any_call_tears_and_loses_nothing(void **state)
{
	for (enum act act = ASK; act <= MARK; act++) {
		unsigned long at = 0;
		bool more = true;

		while (more) {
			struct delivered asked = { 0 };

			(void)yard_up(state);
			struct yard *y = *state;

			if (act != ASK)
				EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, &asked, &err));
			more = killed_at(y, act, &asked, ++at);
			struct seen here = look(y, "tester", MR_INBOX | MR_ARCHIVE), there = look(y, "lead", MR_INBOX);

			assert_true(here.trouble == 0 && there.trouble == 0 && there.n <= 1);
			assert_true(here.n <= 1 && (act == ASK || here.n == 1));
			if (act == ANSWER)
				EXPECT(MR_OK,
				    post(y, (struct out){ .from = "tester", .to = "lead", .reply_to = asked.native_id },
					NULL, &err));
			if (act == ANSWER)
				assert_int_equal(look(y, "lead", MR_INBOX).n, 1);
			if (act == MARK)
				EXPECT(MR_OK, y->ops->mark(y->room, "tester", asked.id, MR_SEEN, 0, 0, &err));
			(void)yard_down(state);
		}
		assert_true(at > 4);
	}
}

static enum mr_rc
keep_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	(void)err;
	(void)snprintf(ctx, ROOM_TICKET_MAX + 1, "%s", ticket);
	return MR_OK;
}

static enum mr_rc
die_here(void *ctx, const char *ticket, struct mr_error *err)
{
	int *fd = ctx;

	(void)err;
	(void)!write(*fd, ticket, strlen(ticket));
	_exit(0); /* as after a kill: nothing is cleaned up */
}

static void
a_ticket_tells_whether_it_was_published(void **state)
{
	struct yard *y = *state;
	char ticket[ROOM_TICKET_MAX + 1] = "";
	int fds[2];
	bool published = false;

	EXPECT(MR_OK,
	    post(y,
		(struct out){
		    .from = "guest", .to = "tester", .carried = true, .staged = keep_ticket, .staged_ctx = ticket },
		NULL, &err));
	assert_true(has(y, "guest/.mailbox/inbox")); /* where it can be answered */
	EXPECT(MR_OK, y->ops->settle_ticket(y->room, ticket, &published, &err));
	assert_true(published);
	assert_int_equal(look(y, "tester", MR_INBOX).n, 1);
	assert_int_equal(look(y, "guest", MR_SENT).n, 1);
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_error err = { 0 };

		(void)post(y,
		    (struct out){
			.from = "guest", .to = "tester", .carried = true, .staged = die_here, .staged_ctx = &fds[1] },
		    NULL, &err);
		_exit(1);
	}
	int status = 1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ssize_t n = read(fds[0], ticket, sizeof ticket - 1);

	assert_true(n > 0);
	ticket[n] = '\0';
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_int_equal(count_files(y, "tester/.mailbox/inbox"), 2);
	EXPECT(MR_OK, y->ops->settle_ticket(y->room, ticket, &published, &err));
	assert_false(published);
	assert_int_equal(look(y, "tester", MR_INBOX).n, 1);
	assert_int_equal(look(y, "guest", MR_SENT).n, 1);
	EXPECT(MR_REFUSED, y->ops->settle_ticket(y->room, "/etc/passwd", &published, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_is_a_workspace_or_a_yard, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(names_and_paths_are_spelled, yard_up, yard_down),
		cmocka_unit_test(a_failing_disk_leaves_all_or_nothing),
		cmocka_unit_test(a_kill_at_any_call_tears_and_loses_nothing),
		cmocka_unit_test_setup_teardown(a_ticket_tells_whether_it_was_published, yard_up, yard_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
