/* SPDX-License-Identifier: MIT */
/* The chipset driver beside others: many senders, a racing archive, kills and failures at every call. */
#include "support/sys_fault.h"
#include "town.h"

#define SENDERS 4
#define RACES 3
#ifdef __SANITIZE_ADDRESS__
#define EACH 40
#else
#define EACH 200
#endif

static bool
is_being_marked(const struct town *t)
{
	bool found = false;
	DIR *dir = opendir(in(t, "mail/bob"));

	for (const struct dirent *e; dir && (e = readdir(dir));)
		found |= kit_is_temporary(e->d_name);
	if (dir)
		(void)closedir(dir);
	return found;
}

/* What the original does, a plain rename, just when the mark has read the message and not yet taken its place. */
static void
archive_in_between(struct town *t, int which)
{
	char from[64], to[64];

	(void)snprintf(from, sizeof from, "mail/bob/2026-07-01T08-15-30.%03dZ-w1.json", which);
	(void)snprintf(to, sizeof to, "mail/bob/archive/2026-07-01T08-15-30.%03dZ-w1.json", which);
	for (int i = 0; i < 2000 && !is_being_marked(t); i++)
		(void)usleep(500);
	if (rename(in(t, from), in(t, to)) != 0)
		_exit(1);
}

static void
mail_archived_while_it_is_marked_is_there_once(void **state)
{
	struct town *t = *state;
	size_t gone = 0;

	(void)send(t, "alice", "bob", "hi");
	assert_int_equal(mkdir(in(t, "mail/bob/archive"), 0700), 0);
	for (int i = 0; i < RACES; i++) {
		char name[64], rest[96], id[MR_ID_LEN + 1];
		struct mr_error err = { 0 };

		(void)snprintf(name, sizeof name, "2026-07-01T08-15-30.%03dZ-w1.json", i);
		(void)snprintf(rest, sizeof rest, "mail/bob/%s", name);
		put(t, rest, "{\"body\":\"x\",\"read\":false}");
		assert_true(chipset_name_id(str_of(name), id));
		pid_t other = start(t, archive_in_between, i);

		sys_plan_set(&(struct sys_plan){ .delay_us = 20000 });
		enum mr_rc rc = t->ops->mark(t->room, "bob", id, MR_SEEN, 0, 0, &err);

		sys_plan_set(NULL);
		join(other);
		assert_true(rc == MR_OK || rc == MR_NOTFOUND);
		gone += rc == MR_NOTFOUND;
	}
	assert_int_equal(files_in(t, "mail/bob/archive"), RACES);
	assert_int_equal(files_in(t, "mail/bob"), 2); /* alice's, and the archive */
	assert_true(gone > 0);                        /* a race that never happens also passes */
}

/* ---- Many at once ---- */

static void
send_many(struct town *t, int which)
{
	char from[16];

	(void)snprintf(from, sizeof from, "w-%d", which % 2); /* two of them are one sender */
	for (int i = 0; i < EACH; i++)
		(void)send(t, from, "bob", "x");
}

/* Every file that a plain reader can see is whole, and holds what its name says. */
static void
look_plainly(const struct town *t)
{
	DIR *dir = opendir(in(t, "mail/bob"));

	for (const struct dirent *e; dir && (e = readdir(dir));) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		char rest[400];
		mr_auto(sys_close_fd) int fd = -1;

		if (!str_ends(str_of(e->d_name), ".json"))
			continue;
		(void)snprintf(rest, sizeof rest, "mail/bob/%s", e->d_name);
		fd = open(in(t, rest), O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		EXPECT(MR_OK, file_read_fd(fd, 4096, &text, &err));
		assert_true(str_ends(buf_str(&text), "\"to\": \"bob\",\n  \"type\": \"coordination\"\n}\n"));
		struct json_value object;
		mr_auto(buf_done) struct buf sender = BUF_INIT, stamp = BUF_INIT;
		char name[CHIPSET_NAME_MAX + 1];
		int64_t ms = 0;

		EXPECT(MR_OK, chipset_object(buf_str(&text), &object, &err));
		assert_true(json_find_text(object, "from", &sender) && json_find_text(object, "timestamp", &stamp));
		assert_true(time_parse_rfc3339(buf_str(&stamp), &ms));
		chipset_name_make(ms, buf_z(&sender), name);
		assert_string_equal(name, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
}

static void
all_of_many_parallel_sends_arrive_whole(void **state)
{
	struct town *t = *state;
	pid_t pids[SENDERS];

	for (int i = 0; i < SENDERS; i++)
		pids[i] = start(t, send_many, i);
	while (files_in(t, "mail/bob") < SENDERS * EACH / 2)
		look_plainly(t);
	for (int i = 0; i < SENDERS; i++)
		join(pids[i]);
	look_plainly(t);
	assert_int_equal(files_in(t, "mail/bob"), SENDERS * EACH); /* and nothing else */
	assert_int_equal(scan(t, "bob", MR_INBOX).unread, SENDERS * EACH);
}

/* ---- Kills and failures ---- */

struct killed {
	unsigned long at;
	const char *id; /* to be marked and archived; NULL: send */
};
static struct killed victim;

static void
act_and_die(struct town *t, int which)
{
	struct mr_error err = { 0 };

	sys_plan_set(&(struct sys_plan){ .fault = (enum sys_fault)which, .at = victim.at });
	if (!victim.id) {
		(void)send(t, "alice", "bob", "new");
	} else {
		(void)t->ops->mark(t->room, "bob", victim.id, MR_SEEN, 0, 0, &err);
		(void)t->ops->mark(t->room, "bob", victim.id, 0, 0, MR_ARCHIVE, &err);
		(void)t->ops->flush(t->room, &err);
	}
}

/* True: it was killed there; false: it was over before. */
static bool
kill_at(const struct town *t, unsigned long at, const char *id, enum sys_fault how)
{
	int status = 0;

	victim = (struct killed){ at, id };
	pid_t pid = start(t, act_and_die, (int)how);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

static void
a_kill_anywhere_leaves_mail_whole_and_once(void **state)
{
	const struct town *t = *state;
	unsigned long points = 0;
	size_t before = 0;

	for (int killed = 1; killed; points++) {
		killed = kill_at(t, points + 1, NULL, SYS_FAULT_KILL_BEFORE);
		struct seen s = scan(t, "bob", MR_INBOX);

		assert_int_equal(s.troubles, 0);
		assert_true(s.n == before || s.n == before + 1);
		assert_true(killed || s.n == before + 1);
		before = s.n;
	}
	assert_true(points > 4);
	points = 0;
	for (int killed = 1; killed; points++) {
		struct delivered done = send(t, "alice", "bob", "to be marked");
		size_t all = scan(t, "bob", MR_INBOX | MR_ARCHIVE).n;

		killed = kill_at(t, points + 1, done.id, SYS_FAULT_KILL_BEFORE);
		struct seen s = scan(t, "bob", MR_INBOX | MR_ARCHIVE);

		assert_int_equal(s.n, all);
		assert_int_equal(s.troubles, 0);
	}
	assert_true(points > 8);
}

static void
a_failed_call_leaves_nothing_behind(void **state)
{
	const struct town *t = *state;
	struct delivered done = send(t, "alice", "bob", "first");
	bool hit = true;

	for (unsigned long at = 1; hit; at++) {
		struct mr_message msg = draft("alice", "x");
		struct delivery what = { 0 };
		struct delivered ret = { 0 };
		struct mr_error err = { 0 };
		size_t before = files_in(t, "mail/bob");

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = ENOSPC });
		enum mr_rc rc = deliver(t->room, &msg, "bob", &what, &ret, &err);

		hit = sys_plan_hit();
		sys_plan_set(NULL);
		size_t left = files_in(t, "mail/bob") - before - (rc == MR_OK);
#ifdef MR_PORTABLE
		left -= left == 1 && rc == MR_OK; /* a temporary name whose removal failed: no reader looks at it */
#endif
		assert_int_equal(left, 0);
	}
	hit = true;
	for (unsigned long at = 1; hit; at++) {
		struct mr_error failure = { 0 };
		size_t before = files_in(t, "mail/bob");

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
		(void)t->ops->mark(t->room, "bob", done.id, MR_SEEN, 0, 0, &failure);
		hit = sys_plan_hit();
		sys_plan_set(NULL);
		EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, MR_SEEN, 0, &err));
		assert_true(files_in(t, "mail/bob") <= before + 1); /* at most the old copy, where its removal failed */
	}
	assert_int_equal(scan(t, "bob", MR_INBOX).troubles, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mail_archived_while_it_is_marked_is_there_once),
		TEST(all_of_many_parallel_sends_arrive_whole),
		TEST(a_kill_anywhere_leaves_mail_whole_and_once),
		TEST(a_failed_call_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
