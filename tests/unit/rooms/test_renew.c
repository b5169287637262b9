/* SPDX-License-Identifier: MIT */
/* Folders that are made anew: the renewal killed, or refused by the kernel, at every call; a sender with the old folder
 * open. */
#include "support/sys_fault.h"
#include "box.h"
#include <sys/file.h>

#define NEW_MAIL 4u
#define CUR_MAIL 2u
#define ALL_MAIL (NEW_MAIL + CUR_MAIL)

#ifndef MR_PORTABLE
struct blow {
	struct sys_plan plan;
};

#endif

static void
renew_all(struct box *b)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);

	EXPECT(MR_OK, renew_folders(&box, 100, &err));
}

#ifndef MR_PORTABLE
static void
work_renew_with_blow(struct box *b, void *arg)
{
	const struct blow *blow = arg;
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	struct mr_error err = { 0 };

	sys_plan_set(&blow->plan);
	(void)renew_folders(&box, 100, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	_exit(hit ? 2 : 0);
}

#endif

static size_t
count(struct box *b, const char *const *ids)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };
	size_t found = 0;

	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, NULL, &l, &err));
	for (size_t i = 0; i < l.n; i++)
		for (size_t k = 0; k < ALL_MAIL; k++)
			found += strcmp(l.v[i].id, ids[k]) == 0;
	assert_int_equal(found, l.n);
	return found;
}

static bool
is_tidy(struct box *b)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	int held_fd = -1, new_fd = -1, cur_fd = -1;

	EXPECT(MR_OK, mailbox_folder(&box, BOX_HELD, &held_fd, &err));
	EXPECT(MR_OK, mailbox_folder(&box, BOX_NEW, &new_fd, &err));
	EXPECT(MR_OK, mailbox_folder(&box, BOX_CUR, &cur_fd, &err));
	EXPECT(MR_OK, dir_names(held_fd, &names, &err));
	EXPECT(MR_OK, dir_names(new_fd, &names, &err));
	EXPECT(MR_OK, dir_names(cur_fd, &names, &err));
	for (size_t i = 0; i < names.n; i++)
		if (names.v[i][0] == '.')
			return false;
	return names.n == ALL_MAIL;
}

static ino_t
inode_of(struct box *b, const char *rest)
{
	struct stat st;

	assert_int_equal(lstat(box_path(b, rest), &st), 0);
	return st.st_ino;
}

#ifndef MR_PORTABLE
static void
renew_with_every_blow(struct box *b, const char *const *ids, struct sys_plan plan)
{
	int end = 1;

	for (plan.at = 1; end != 0; plan.at++) {
		struct blow blow = { .plan = plan };
		int status = 0;
		pid_t pid = box_fork(b, work_renew_with_blow, &blow);

		assert_int_equal(waitpid(pid, &status, 0), pid);
		end = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		/* Nothing is hidden and nothing doubled, before anybody has swept. */
		if (count(b, ids) != ALL_MAIL)
			fail_msg("%zu messages are listed after a blow at call %lu", count(b, ids), plan.at);
		for (size_t i = 0; i < ALL_MAIL; i++) {
			mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
			mr_auto(arena_done) struct arena *own = NULL;
			struct mr_message msg = { 0 };
			struct listed at;

			EXPECT(MR_OK, list_find(&box, ids[i], MR_INBOX, &own, &at, &err));
			EXPECT(MR_OK, maildir_fetch(&b->room, "bob", ids[i], MR_INBOX, SCAN_BODIES, &msg, &err));
			mr_message_done(&msg);
			if (plan.at % 3 == 0) { /* what was left behind can be marked where it is */
				EXPECT(MR_OK, maildir_mark(&b->room, "bob", ids[i], MR_PINNED, 0, 0, &err));
				EXPECT(MR_OK, maildir_mark(&b->room, "bob", ids[i], 0, MR_PINNED, 0, &err));
			}
		}
		EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
		assert_int_equal(count(b, ids), ALL_MAIL);
		if (!is_tidy(b))
			fail_msg("something is left behind after a blow at call %lu and a sweep", plan.at);
	}
	assert_true(plan.at > 30); /* a harness that injects nothing also passes */
}

#endif

static int
setup(void **state)
{
	assert_int_equal(setenv("MAILROOM_TEST_RENEW", "1", 1), 0);
	return box_setup(state);
}

static void
fill(struct box *b, char text[ALL_MAIL][MR_ID_LEN + 1], const char *ids[ALL_MAIL])
{
	for (size_t i = 0; i < ALL_MAIL; i++) {
		box_mail(b, i < NEW_MAIL ? "new" : "cur", i < NEW_MAIL ? NULL : "S", text[i]);
		ids[i] = text[i];
	}
}

#ifndef MR_PORTABLE
static void
a_renewal_killed_or_refused_anywhere_hides_loses_and_doubles_nothing(void **state)
{
	struct box *b = *state;
	char text[ALL_MAIL][MR_ID_LEN + 1];
	const char *ids[ALL_MAIL];

	fill(b, text, ids);
	for (int sync = 0; sync < 2; sync++) {
		maildir_of(&b->room)->sync = sync != 0;
		renew_with_every_blow(b, ids, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE });
		renew_with_every_blow(b, ids, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER });
		renew_with_every_blow(b, ids, (struct sys_plan){ .fault = SYS_FAULT_ERRNO, .error = EIO });
	}
}

static void
a_renewal_replaces_the_folders_and_keeps_the_mail(void **state)
{
	struct box *b = *state;
	char text[ALL_MAIL][MR_ID_LEN + 1];
	const char *ids[ALL_MAIL];
	ino_t new_inode = inode_of(b, "agents/bob/new"), cur_inode = inode_of(b, "agents/bob/cur");

	fill(b, text, ids);
	assert_int_equal(mkdir(box_path(b, "agents/bob/held/3"), 0700), 0);
	renew_all(b);
	assert_true(new_inode != inode_of(b, "agents/bob/new"));
	assert_true(cur_inode != inode_of(b, "agents/bob/cur"));
	assert_false(box_has(b, "agents/bob/held/3")); /* large and empty: the next claim makes it */
	assert_int_equal(count(b, ids), ALL_MAIL);
	assert_true(is_tidy(b));
}

static void
a_mailbox_that_was_open_finds_that_its_folder_was_removed(void **state)
{
	struct box *b = *state;
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	char id[MR_ID_LEN + 1], name[NAME_LEN];
	int old_fd = -1, new_fd = -1, tmp_fd = -1;

	EXPECT(MR_OK, mailbox_folder(&box, BOX_NEW, &old_fd, &err));
	EXPECT(MR_OK, mailbox_folder(&box, BOX_TMP, &tmp_fd, &err));
	assert_false(mailbox_refresh(&box));
	renew_all(b);
	id_new(id);
	name_for_id(id, name);
	EXPECT(MR_IO,
	    file_publish(old_fd, tmp_fd, name, STR("From: a\n\nlate\n"), 0400, PUBLISH_NOSYNC, &err)); /* ENOENT */
	assert_true(mailbox_refresh(&box));
	EXPECT(MR_OK, mailbox_folder(&box, BOX_NEW, &new_fd, &err));
	EXPECT(MR_OK, file_publish(new_fd, tmp_fd, name, STR("From: a\n\nlate\n"), 0400, PUBLISH_NOSYNC, &err));
}

static void
a_renewal_leaves_what_another_living_one_works_on(void **state)
{
	struct box *b = *state;
	ino_t inode = inode_of(b, "agents/bob/new");
	mr_auto(sys_close_fd) int fd = open(box_path(b, "agents/bob/new"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(sys_flock(fd, LOCK_EX | LOCK_NB), 0);
	renew_all(b);
	assert_true(inode == inode_of(b, "agents/bob/new"));
	sys_close_fd(&fd);
	/* The leftover of another goes first. */
	assert_int_equal(mkdir(box_path(b, "agents/bob/held/.gone.cur.12345678"), 0700), 0);
	renew_all(b);
	assert_true(inode == inode_of(b, "agents/bob/new"));
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	renew_all(b);
	assert_true(inode != inode_of(b, "agents/bob/new"));
}

#endif

#ifdef MR_PORTABLE
static void
where_folders_cannot_be_exchanged_they_stay(void **state)
{
	struct box *b = *state;
	char text[ALL_MAIL][MR_ID_LEN + 1];
	const char *ids[ALL_MAIL];
	ino_t inode = inode_of(b, "agents/bob/new");

	fill(b, text, ids);
	renew_all(b);
	assert_true(inode == inode_of(b, "agents/bob/new"));
	assert_int_equal(count(b, ids), ALL_MAIL);
	assert_true(is_tidy(b));
}
#endif

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, box_teardown)
	const struct CMUnitTest tests[] = {
#ifdef MR_PORTABLE
		T(where_folders_cannot_be_exchanged_they_stay),
#else
		T(a_renewal_replaces_the_folders_and_keeps_the_mail),
		T(a_renewal_killed_or_refused_anywhere_hides_loses_and_doubles_nothing),
		T(a_mailbox_that_was_open_finds_that_its_folder_was_removed),
		T(a_renewal_leaves_what_another_living_one_works_on),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
