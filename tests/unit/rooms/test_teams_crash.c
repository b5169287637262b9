/* SPDX-License-Identifier: MIT */
/* The lock of teams, and what is there after a kill or an error at every system call of a send, a mark, a clear. */
#include "support/sys_fault.h"
#include "team.h"
#include <signal.h>
#include <sys/wait.h>

#define LOCK BOB ".lock"

/* ---- The lock ---- */

static void
path_in(const struct team *t, const char *name, char ret[300])
{
	(void)snprintf(ret, 300, "%s/%s", t->path, name);
}

/* age_s before now; mode as mkdir in Node gives it */
static void
plant_lock(const struct team *t, mode_t mode, int age_s)
{
	char path[300];
	struct timespec when[2] = { { .tv_sec = time(NULL) - age_s }, { .tv_sec = time(NULL) - age_s } };

	path_in(t, LOCK, path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static size_t
files_in(const struct team *t)
{
	char path[300];
	size_t n = 0;
	const struct dirent *e;

	path_in(t, "blue/inboxes", path);
	DIR *d = opendir(path);

	assert_non_null(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	(void)closedir(d);
	return n;
}

static void
a_live_lock_is_never_taken(void **state)
{
	struct team t;
	char path[300];
	struct mr_error why = { 0 };

	(void)state;
	team_make(&t, false);
	team_put(&t, BOB, STR("[]"));
	plant_lock(&t, 0755, 5);
	teams_of(t.room)->patience_ms = 150;
	assert_int_equal(team_send(&t, "bob", (struct mail){ 0 }, NULL, &why), MR_BUSY);
	assert_non_null(strstr(why.message, "bob.json.lock"));
	assert_true(why.hint[0] != '\0');
	team_same(&t, BOB, STR("[]"));
	path_in(&t, LOCK, path);
	assert_int_equal(rmdir(path), 0); /* it is still there, and still empty */
	plant_lock(&t, 0755, -3);         /* the original sets the first one into the future */
	assert_int_equal(team_send(&t, "bob", (struct mail){ 0 }, NULL, &why), MR_BUSY);
	assert_int_equal(rmdir(path), 0);
	team_put(&t, LOCK, STR("")); /* what is no folder is no lock, and not ours to remove */
	assert_int_equal(team_send(&t, "bob", (struct mail){ 0 }, NULL, &why), MR_BUSY);
	assert_int_equal(access(path, F_OK), 0);
	team_done(&t);
}

static void
a_dead_lock_is_taken_over(void **state)
{
	static const struct {
		mode_t mode;
		int age_s;
	} locks[] = { { 0755, 11 }, { 01700, 0 } }; /* of another that died long ago; of one of ours, just now */
	struct team t;
	char inside[300];

	(void)state;
	team_make(&t, false);
	team_put(&t, BOB, STR("[]"));
	for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
		int64_t start_ms = clock_boot_ms();

		plant_lock(&t, locks[i].mode, locks[i].age_s);
		EXPECT(MR_OK, team_send(&t, "bob", (struct mail){ 0 }, NULL, &err));
		assert_true(clock_boot_ms() - start_ms < 10000);
		assert_int_equal(files_in(&t), 1);
	}
	plant_lock(&t, 0755, 0);
	path_in(&t, LOCK "/x", inside);
	(void)close(open(inside, O_CREAT | O_WRONLY, 0600)); /* no client of the original can ever take this one */
	path_in(&t, LOCK, inside);
	assert_int_equal(utimensat(AT_FDCWD, inside, (struct timespec[]){ { .tv_sec = 9 }, { .tv_sec = 9 } }, 0), 0);
	EXPECT(MR_OK, team_send(&t, "bob", (struct mail){ 0 }, NULL, &err));
	assert_int_equal(team_list(&t, "bob").n, 3);
	assert_int_equal(files_in(&t), 2); /* what was in it is put aside, not deleted */
	team_done(&t);
}

static void
many_at_a_stale_lock_lose_nothing(void **state)
{
	enum { PROCESSES = 5, SENDS = 3 };
	struct team t;
	int failed = 0;

	(void)state;
	team_make(&t, false);
	team_put(&t, BOB, STR("[]"));
	plant_lock(&t, 0755, 20);
	for (int p = 0; p < PROCESSES; p++)
		if (fork() == 0) {
			sys_plan_set(&(struct sys_plan){ .delay_us = 300 }); /* so that they would meet */
			for (int i = 0; i < SENDS; i++) {
				struct mr_error err = { 0 };
				char text[32];

				(void)snprintf(text, sizeof text, "%d of %d", i, p);
				if (team_send(&t, "bob", (struct mail){ .text = text }, NULL, &err) != MR_OK)
					_exit(1);
			}
			_exit(0);
		}
	for (int status; wait(&status) > 0;)
		failed += status != 0;
	assert_int_equal(failed, 0);
	assert_int_equal(team_list(&t, "bob").n, PROCESSES * SENDS);
	assert_int_equal(files_in(&t), 1);
	team_done(&t);
}

/* ---- Kills ---- */

enum act { ACT_SEND, ACT_SEND_FIRST, ACT_SEND_ODD, ACT_MARK, ACT_CLEAR, ACT_REGISTER, ACTS };

static void
prepare(struct team *t, enum act act)
{
	if (act == ACT_SEND_FIRST)
		return;
	if (act == ACT_REGISTER) {
		team_put(t, "blue/config.json", STR("{\n  \"members\": []\n}"));
		return;
	}
	team_put(t, BOB, STR("[]"));
	EXPECT(MR_OK, team_send(t, "bob", (struct mail){ .text = "one", .date_ms = 1772706601101 }, NULL, &err));
	if (act == ACT_SEND_ODD)
		team_put(
		    t, BOB, STR("[{\"from\":\"alice\",\"text\":\"one\",\"timestamp\":\"2026-03-05T10:30:01.101Z\"}]"));
	teams_of(t->room)->last[0] = '\0'; /* no waiting between the first and the second */
}

static enum mr_rc
perform(struct team *t, enum act act, const char *id, struct mr_error *err)
{
	struct mr_agent bob = { .name = "bob", .worktree = "", .role = "" };
	size_t removed = 0;
	enum mr_rc rc;

	switch (act) {
	case ACT_MARK:
		rc = room_teams.mark(t->room, "bob", id, MR_SEEN, 0, 0, err);
		return rc == MR_OK ? room_teams.flush(t->room, err) : rc;
	case ACT_CLEAR:
		return room_teams.remove(
		    t->room, &(struct removal){ .what = REMOVE_INBOX, .box = "bob" }, &removed, err);
	case ACT_REGISTER:
		return room_teams.add_agent(t->room, &bob, err);
	case ACT_SEND:
	case ACT_SEND_FIRST:
	case ACT_SEND_ODD:
	case ACTS:
		break;
	}
	return team_send(t, "bob", (struct mail){ .text = "two" }, NULL, err);
}

/* -1: neither as before nor as after; 0: before; 1: after */
static int
outcome(struct team *t, enum act act)
{
	struct mr_agent found = { 0 };
	struct mr_error ignored = { 0 };
	struct team_list l;

	if (act == ACT_REGISTER) {
		enum mr_rc rc = room_teams.find_agent(t->room, "bob", &found, &ignored);

		arena_free(found.own);
		return rc == MR_OK ? 1 : rc == MR_NOTFOUND ? 0 : -1;
	}
	l = team_list(t, "bob");
	if (l.troubles > 0)
		return -1;
	switch (act) {
	case ACT_SEND_FIRST:
		return l.n <= 1 ? (int)l.n : -1;
	case ACT_MARK:
		return l.n == 1 ? l.v[0].flags == MR_SEEN : -1;
	case ACT_CLEAR:
		return l.n <= 1 ? 1 - (int)l.n : -1;
	case ACT_SEND:
	case ACT_SEND_ODD:
	case ACT_REGISTER:
	case ACTS:
		break;
	}
	return l.n == 1 || l.n == 2 ? (int)l.n - 1 : -1;
}

static void
first_id(struct team *t, enum act act, char ret[MR_ID_LEN + 1])
{
	struct team_list l = { 0 };

	ret[0] = '\0';
	if (act != ACT_MARK)
		return;
	l = team_list(t, "bob");
	memcpy(ret, l.v[0].id, sizeof l.v[0].id);
}

/* False: it was over before that call. */
static bool
kill_at(enum act act, enum sys_fault fault, unsigned long at)
{
	struct team t;
	char id[MR_ID_LEN + 1];
	int status = 0;

	team_make(&t, false);
	prepare(&t, act);
	first_id(&t, act, id);
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_error err = { 0 };

		sys_plan_set(&(struct sys_plan){ .fault = fault, .at = at });
		_exit(perform(&t, act, id, &err) == MR_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	int is = outcome(&t, act);
	bool killed = WIFSIGNALED(status);

	if (is < 0 || (!killed && is != 1))
		fail_msg(
		    "act %d, killed at call %lu: the file is neither as before nor as after (%d)", (int)act, at, is);
	int64_t start_ms = clock_boot_ms();

	EXPECT(MR_OK, team_send(&t, "bob", (struct mail){ .text = "three", .hold = true }, NULL, &err));
	assert_true(clock_boot_ms() - start_ms < 10000); /* the lock of the dead is no obstacle */
	team_done(&t);
	return killed;
}

static void
a_kill_leaves_all_or_nothing(void **state)
{
	(void)state;
	for (int act = 0; act < ACTS; act++) {
		unsigned long at = 1;

		while (kill_at((enum act)act, SYS_FAULT_KILL_AFTER, at))
			at++;
		assert_true(at > 8);
	}
	for (unsigned long at = 1; kill_at(ACT_SEND, SYS_FAULT_KILL_BEFORE, at); at++)
		;
}

static bool
fail_at(enum act act, unsigned long at)
{
	struct team t;
	char id[MR_ID_LEN + 1];
	struct mr_error err = { 0 };

	team_make(&t, false);
	prepare(&t, act);
	first_id(&t, act, id);
	teams_of(t.room)->patience_ms = 300;
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
	enum mr_rc rc = perform(&t, act, id, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	if (act == ACT_MARK && rc != MR_OK) { /* kept for the next flush */
		mr_room_close(t.room);
		team_open(&t, false);
	}
	int is = outcome(&t, act);

	if (is < 0 || (rc == MR_OK && is != 1) || (rc != MR_OK && rc != MR_INDOUBT && act <= ACT_SEND_ODD && is != 0))
		fail_msg("act %d, call %lu failed: %s (%s), but the outcome is %d", (int)act, at, mr_rc_word(rc),
		    err.message, is);
	team_done(&t);
	return hit;
}

static void
a_failed_call_is_told_or_does_not_matter(void **state)
{
	(void)state;
	for (int act = 0; act < ACTS; act++)
		for (unsigned long at = 1; fail_at((enum act)act, at); at++)
			;
}

/* ---- Tickets ---- */

struct ticket {
	char text[ROOM_TICKET_MAX];
	char path[300]; /* where the child notes it */
};

static enum mr_rc
note_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	const struct ticket *t = ctx;
	FILE *f = fopen(t->path, "w");

	(void)err;
	assert_non_null(f);
	assert_true(fputs(ticket, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return MR_OK;
}

static bool
ticket_at(unsigned long at)
{
	struct team t;
	struct ticket ticket = { 0 };
	int status = 0;
	size_t len = 0;

	team_make(&t, false);
	prepare(&t, ACT_SEND);
	path_in(&t, "ticket", ticket.path);
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_error err = { 0 };
		struct mail mail = { .text = "two", .staged = note_ticket, .staged_ctx = &ticket };

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER, .at = at });
		_exit(team_send(&t, "bob", mail, NULL, &err) == MR_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	char *text = team_slurp(ticket.path, &len);
	bool published = false;

	if (text)
		EXPECT(MR_OK, room_teams.settle_ticket(t.room, text, &published, &err));
	assert_int_equal(team_list(&t, "bob").n, published ? 2 : 1);
	free(text);
	team_done(&t);
	return WIFSIGNALED(status);
}

static void
a_ticket_tells_whether_it_was_published(void **state)
{
	unsigned long at = 1;

	(void)state;
	while (ticket_at(at))
		at++;
	assert_true(at > 8);
}

struct thief {
	char lock[300];
	int calls;
};

static enum mr_rc
steal_lock(void *ctx, const char *ticket, struct mr_error *err)
{
	struct thief *thief = ctx;

	(void)ticket;
	(void)err;
	if (thief->calls++ == 0)
		assert_int_equal(rmdir(thief->lock), 0);
	return MR_OK;
}

static void
who_loses_the_lock_begins_anew(void **state)
{
	struct team t;
	struct thief thief = { 0 };

	(void)state;
	team_make(&t, false);
	prepare(&t, ACT_SEND);
	path_in(&t, LOCK, thief.lock);
	EXPECT(MR_OK, team_send(&t, "bob", (struct mail){ .text = "two", .staged = steal_lock, .staged_ctx = &thief },
			  NULL, &err));
	assert_int_equal(thief.calls, 2);
	assert_int_equal(team_list(&t, "bob").n, 2);
	assert_int_equal(files_in(&t), 1);
	team_done(&t);
}

/* From one call on nothing works any more: neither is the lock seen to be ours, nor can the inbox be read back. */
static void
what_cannot_be_read_back_is_in_doubt(void **state)
{
	bool hit = true;
	unsigned in_doubt = 0;

	(void)state;
	for (unsigned long at = 1; hit; at++) {
		struct mr_error why = { 0 };
		struct team t;

		team_make(&t, false);
		prepare(&t, ACT_SEND);
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .for_good = true, .error = EIO });
		enum mr_rc rc = team_send(&t, "bob", (struct mail){ .text = "two" }, NULL, &why);

		hit = sys_plan_hit();
		sys_plan_set(NULL);
		in_doubt += rc == MR_INDOUBT && strstr(why.message, "cannot be read back") != NULL;
		if (rc == MR_OK)
			assert_int_equal(team_list(&t, "bob").n, 2);
		team_done(&t);
	}
	assert_true(in_doubt > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_live_lock_is_never_taken),
		cmocka_unit_test(a_dead_lock_is_taken_over),
		cmocka_unit_test(many_at_a_stale_lock_lose_nothing),
		cmocka_unit_test(a_kill_leaves_all_or_nothing),
		cmocka_unit_test(a_failed_call_is_told_or_does_not_matter),
		cmocka_unit_test(a_ticket_tells_whether_it_was_published),
		cmocka_unit_test(who_loses_the_lock_begins_anew),
		cmocka_unit_test(what_cannot_be_read_back_is_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
