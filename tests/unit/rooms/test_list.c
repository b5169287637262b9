/* SPDX-License-Identifier: MIT */
/* Listing, finding and marking in the native driver, alone and while others move files. */
#include "box.h"

#define FLIPPED 2000
#if defined(__SANITIZE_ADDRESS__) || defined(MR_PORTABLE)
#define LISTINGS 40
#else
#define LISTINGS 200
#endif

static size_t
count(struct box *b, unsigned folders, bool unread_only)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, folders, unread_only, NULL, &l, &err));
	return l.n;
}

static struct listed
find(struct box *b, const char *id, unsigned folders, struct arena **own)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	struct listed at = { 0 };

	EXPECT(MR_OK, list_find(&box, id, folders, own, &at, &err));
	assert_string_equal(at.id, id);
	return at;
}

static unsigned
flags_of(struct box *b, const char *id)
{
	struct arena *own = NULL;
	unsigned flags = find(b, id, 0, &own).flags;

	arena_free(own);
	return flags;
}

static void
unseen_mail_is_unread_in_new_and_in_cur(void **state)
{
	char id[MR_ID_LEN + 1];

	box_mail(*state, "new", NULL, id);
	box_mail(*state, "cur", "", id);
	box_mail(*state, "cur", "F", id);
	box_mail(*state, "cur", "S", id);
	box_write(*state, "agents/bob/cur/.hidden", "x");
	assert_int_equal(count(*state, MR_INBOX, false), 4);
	assert_int_equal(count(*state, MR_INBOX, true), 3);
}

static void
a_message_in_new_and_cur_counts_once_and_cur_wins(void **state)
{
	struct box *b = *state;
	mr_auto(listing_done) struct listing l = { 0 };
	char id[MR_ID_LEN + 1], name[NAME_LEN], rest[2][NAME_LEN + 64];

	box_mail(b, "new", NULL, id);
	name_for_id(id, name);
	(void)snprintf(rest[0], sizeof(rest[0]), "agents/bob/new/%s", name);
	(void)snprintf(rest[1], sizeof(rest[1]), "agents/bob/cur/%s:2,S", name);
	assert_int_equal(link(box_path(b, rest[0]), box_path(b, rest[1])), 0);
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, NULL, &l, &err));
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].box, BOX_CUR);
	assert_int_equal(l.v[0].flags, MR_SEEN);
	assert_int_equal(count(b, MR_INBOX, true), 0);
}

static void
every_place_is_found_by_id(void **state)
{
	static const struct {
		const char *folder, *info;
		unsigned in;
	} places[] = {
		{ "new", NULL, MR_INBOX },
		{ "cur", "", MR_INBOX },
		{ "cur", "S", MR_INBOX },
		{ "cur", "PRS", MR_INBOX },
		{ ".Archive.2020-01/cur", "DS", MR_ARCHIVE },
		{ ".Archive.2020-01/new", NULL, MR_ARCHIVE },
		{ ".Sent/cur", "S", MR_SENT },
		{ ".Sent/cur", "FS", MR_SENT },
		{ ".Sent.2020-01/cur", "S", MR_SENT },
	};
	struct box *b = *state;
	static const char *const folders[] = { ".Archive.2020-01", ".Sent", ".Sent.2020-01" };
	char id[MR_ID_LEN + 1], rest[64];

	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(rest, sizeof(rest), "agents/bob/%s", folders[i]);
		assert_int_equal(mkdir(box_path(b, rest), 0700), 0);
		(void)snprintf(rest, sizeof(rest), "agents/bob/%s/cur", folders[i]);
		assert_int_equal(mkdir(box_path(b, rest), 0700), 0);
		(void)snprintf(rest, sizeof(rest), "agents/bob/%s/new", folders[i]);
		assert_int_equal(mkdir(box_path(b, rest), 0700), 0);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct arena *own = NULL;
		box_mail(b, places[i].folder, places[i].info, id);
		assert_int_equal(find(b, id, 0, &own).folder, places[i].in);
		arena_free(own);
	}
	id_new(id);
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	struct arena *own = NULL;
	struct listed at;
	EXPECT(MR_NOTFOUND, list_find(&box, id, 0, &own, &at, &err));
	arena_free(own);
}

static void
mail_of_other_programs_is_found_by_the_id_of_its_name(void **state)
{
	struct box *b = *state;
	struct file_name n;

	box_write(b, "agents/bob/new/1762900000.M1P2.host", "Subject: hi\n\nx\n");
	assert_true(name_parse(STR("1762900000.M1P2.host"), &n));
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", n.id, MR_SEEN | MR_PINNED, 0, 0, &err));
	assert_true(box_has(b, "agents/bob/cur/1762900000.M1P2.host:2,FS"));
	assert_int_equal(flags_of(b, n.id), MR_SEEN | MR_PINNED);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", n.id, 0, MR_SEEN, 0, &err));
	assert_true(box_has(b, "agents/bob/cur/1762900000.M1P2.host:2,F"));
}

static void
acked_counts_only_where_the_folder_says_that_the_letter_is_ours(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	box_mail(b, "cur", "Sa", id);
	assert_int_equal(flags_of(b, id), MR_SEEN);
	box_write(b, "agents/bob/dovecot-keywords", "0 $Forwarded\n");
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, MR_ACKED | MR_PINNED, 0, 0, &err));
	assert_int_equal(flags_of(b, id), MR_SEEN | MR_PINNED);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, 0, 0, MR_ARCHIVE, &err));
	assert_int_equal(flags_of(b, id), MR_SEEN | MR_PINNED); /* forwarded there is not done here */
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, MR_ACKED, 0, 0, &err));
	assert_int_equal(flags_of(b, id), MR_SEEN | MR_PINNED | MR_ACKED);
}

static void
a_mark_on_archived_mail_stays_in_its_folder(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	box_mail(b, "new", NULL, id);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, 0, 0, MR_ARCHIVE, &err));
	assert_int_equal(count(b, MR_INBOX, false), 0);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, MR_SEEN, 0, 0, &err));
	assert_int_equal(count(b, MR_ARCHIVE, false), 1);
	assert_int_equal(flags_of(b, id), MR_SEEN);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, 0, 0, MR_INBOX, &err));
	assert_int_equal(count(b, MR_INBOX, false), 1);
	assert_int_equal(count(b, MR_ARCHIVE, false), 0);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, 0, 0, MR_DEAD, &err));
	assert_int_equal(count(b, MR_INBOX, false), 0);
	assert_int_equal(count(b, MR_DEAD, false), 1);
}

static void
two_copies_of_one_message_both_get_a_place_among_the_dead(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1], name[NAME_LEN], rest[NAME_LEN + 64];

	for (int i = 0; i < 2; i++) {
		if (i == 0)
			box_mail(b, "new", NULL, id);
		name_for_id(id, name);
		(void)snprintf(rest, sizeof(rest), "agents/bob/new/%s", name);
		box_write(b, rest, "Subject: a copy\n\n");
		EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, 0, 0, MR_DEAD, &err));
	}
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	EXPECT(MR_OK, mailbox_open_dead(&dead, maildir_of(&b->room), &err));
	mr_auto(listing_done) struct listing l = { 0 };
	EXPECT(MR_OK, list_folders(&dead, MR_INBOX, false, NULL, &l, &err));
	assert_int_equal(l.n, 1); /* one id, in two files: */
	(void)snprintf(rest, sizeof(rest), "dead/new/%s", name);
	assert_true(box_has(b, rest));
	assert_true(strstr(l.v[0].name, ",D=") != NULL || strcmp(l.v[0].name, name) == 0);
}

/* ---- Scans ---- */

struct seen {
	char ids[64][MR_ID_LEN + 1];
	size_t n, troubles;
};

static bool
note(void *ctx, const struct mr_message *msg)
{
	struct seen *s = ctx;

	assert_true(s->n < 64);
	memcpy(s->ids[s->n++], msg->id, sizeof(msg->id));
	assert_non_null(msg->path);
	return true;
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct seen *s = ctx;

	assert_true(strncmp(path, "agents/bob/", 11) == 0);
	assert_true(err->message[0] != '\0');
	s->troubles++;
}

static void
a_scan_of_inbox_and_archive_is_in_order_of_ids(void **state)
{
	static const unsigned folders = MR_INBOX | MR_ARCHIVE;
	struct box *b = *state;
	char ids[10][MR_ID_LEN + 1];

	for (size_t i = 0; i < 10; i++) {
		box_mail(b, "new", NULL, ids[i]);
		if (i % 3 == 0)
			EXPECT(MR_OK, maildir_mark(&b->room, "bob", ids[i], 0, 0, MR_ARCHIVE, &err));
	}
	for (int newest = 0; newest < 2; newest++) {
		struct seen s = { 0 };
		struct scan_request want = {
			.folders = folders, .depth = SCAN_BODIES, .order = newest == 1 ? SCAN_NEWEST : SCAN_OLDEST
		};
		EXPECT(MR_OK, maildir_scan(&b->room, "bob", &want, note, &s, &err));
		assert_int_equal(s.n, 10);
		for (size_t i = 0; i < 10; i++)
			assert_string_equal(s.ids[i], ids[newest ? 9 - i : i]);
	}
}

static void
what_is_planted_in_a_mailbox_is_trouble_and_never_followed(void **state)
{
	struct box *b = *state;
	struct seen s = { 0 };
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_HEADERS, .trouble = note_trouble, .trouble_ctx = &s
	};
	char id[MR_ID_LEN + 1];

	box_mail(b, "new", NULL, id);
	assert_int_equal(symlink("/etc/passwd", box_path(b, "agents/bob/new/1.link")), 0);
	assert_int_equal(mkfifo(box_path(b, "agents/bob/new/2.pipe"), 0600), 0);
	assert_int_equal(mkdir(box_path(b, "agents/bob/new/3.folder"), 0700), 0);
	box_write(b, "agents/bob/new/4.empty", "");
	EXPECT(MR_OK, maildir_scan(&b->room, "bob", &want, note, &s, &err));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.troubles, 4);
}

static void
a_symlinked_mailbox_folder_is_refused(void **state)
{
	struct box *b = *state;
	struct seen s = { 0 };
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS };

	assert_int_equal(rmdir(box_path(b, "agents/bob/new")), 0);
	assert_int_equal(symlink("/etc", box_path(b, "agents/bob/new")), 0);
	EXPECT(MR_REFUSED, maildir_scan(&b->room, "bob", &want, note, &s, &err));
	assert_int_equal(unlink(box_path(b, "agents/bob/new")), 0);
	assert_int_equal(mkdir(box_path(b, "agents/bob/new"), 0700), 0);
}

static void
a_crowded_cur_is_filed_by_the_command_that_made_mail_seen_and_not_by_looking(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1], pinned[MR_ID_LEN + 1];

	box_mail(b, "cur", "FS", pinned);
	for (int i = 0; i < 300; i++)
		box_mail(b, "cur", "S", id);
	assert_int_equal(count(b, MR_INBOX, true), 0);
	assert_int_equal(count(b, MR_INBOX, false), 301);
	EXPECT(MR_OK, maildir_flush(&b->room, &err));
	assert_int_equal(count(b, MR_INBOX, false), 301);
	box_mail(b, "new", NULL, id);
	EXPECT(MR_OK, maildir_mark(&b->room, "bob", id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, maildir_flush(&b->room, &err));
	assert_int_equal(count(b, MR_INBOX, false), 65);
	assert_int_equal(count(b, MR_ARCHIVE, false), 237);
	struct arena *own = NULL;
	assert_int_equal(find(b, pinned, 0, &own).folder, MR_INBOX);
	assert_int_equal(find(b, id, 0, &own).folder, MR_INBOX); /* the newest stays */
	arena_free(own);
}

/* ---- While others move files ---- */

/* Renames all files between two states for ever. */
static void
flip_flags(struct box *b, void *arg)
{
	static const char *const infos[2] = { ":2,", ":2,S" };
	char(*ids)[MR_ID_LEN + 1] = arg;
	char from[NAME_LEN + 64], to[NAME_LEN + 64], name[NAME_LEN];

	for (unsigned round = 0;; round++) {
		for (size_t i = 0; i < FLIPPED; i++) {
			name_for_id(ids[i], name);
			(void)snprintf(from, sizeof(from), "agents/bob/cur/%s%s", name, infos[round % 2]);
			(void)snprintf(to, sizeof(to), "agents/bob/cur/%s%s", name, infos[(round + 1) % 2]);
			(void)!rename(box_path(b, from), box_path(b, to)); /* gone: a mark was faster */
		}
	}
}

/* As a mail client and a hold that is given back do. */
static void
move_back_and_forth(struct box *b, void *arg)
{
	char(*ids)[MR_ID_LEN + 1] = arg;
	char from[NAME_LEN + 64], to[NAME_LEN + 64], name[NAME_LEN];

	for (unsigned round = 0;; round++) {
		for (size_t i = 0; i < FLIPPED; i++) {
			name_for_id(ids[i], name);
			(void)snprintf(from, sizeof(from), "agents/bob/%s/%s%s", round % 2 ? "new" : "cur", name,
			    round % 2 ? "" : ":2,");
			(void)snprintf(to, sizeof(to), "agents/bob/%s/%s%s", round % 2 ? "cur" : "new", name,
			    round % 2 ? ":2," : "");
			(void)!rename(box_path(b, from), box_path(b, to)); /* gone: a mark was faster */
		}
	}
}

static void
list_while(struct box *b, void (*mover)(struct box *b, void *arg))
{
	static char ids[FLIPPED][MR_ID_LEN + 1];
	size_t worst = FLIPPED;

	for (size_t i = 0; i < FLIPPED; i++)
		box_mail(b, "cur", "", ids[i]);
	pid_t pid = box_fork(b, mover, ids);
	for (int i = 0; i < LISTINGS; i++) {
		size_t n = count(b, MR_INBOX, false);
		worst = n < worst ? n : worst;
	}
	bool moved = waitpid(pid, NULL, WNOHANG) == 0; /* still at it: the test tested something */
	box_kill(pid);
	assert_true(moved);
	assert_int_equal(worst, FLIPPED);
	assert_int_equal(count(b, MR_INBOX, false), FLIPPED);
}

static void
a_listing_misses_none_of_2000_files_whose_flags_change(void **state)
{
	list_while(*state, flip_flags);
}

static void
a_listing_misses_none_of_2000_files_that_move_between_new_and_cur(void **state)
{
	list_while(*state, move_back_and_forth);
}

static void
a_mark_finds_its_message_while_another_renames_it(void **state)
{
	struct box *b = *state;
	static char ids[FLIPPED][MR_ID_LEN + 1];

	for (size_t i = 0; i < FLIPPED; i++)
		box_mail(b, "cur", "", ids[i]);
	pid_t pid = box_fork(b, flip_flags, ids);
	for (size_t i = 0; i < 100; i++) {
		struct mr_error err = { 0 };
		enum mr_rc rc = maildir_mark(&b->room, "bob", ids[i * 20], MR_PINNED, 0, 0, &err);
		if (rc != MR_OK)
			fail_msg("%s: %s", mr_rc_word(rc), err.message);
	}
	box_kill(pid);
	assert_int_equal(count(b, MR_INBOX, false), FLIPPED);
}

#define T(f) cmocka_unit_test_setup_teardown(f, box_setup, box_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(unseen_mail_is_unread_in_new_and_in_cur),
		T(a_message_in_new_and_cur_counts_once_and_cur_wins),
		T(every_place_is_found_by_id),
		T(mail_of_other_programs_is_found_by_the_id_of_its_name),
		T(acked_counts_only_where_the_folder_says_that_the_letter_is_ours),
		T(a_mark_on_archived_mail_stays_in_its_folder),
		T(two_copies_of_one_message_both_get_a_place_among_the_dead),
		T(a_scan_of_inbox_and_archive_is_in_order_of_ids),
		T(what_is_planted_in_a_mailbox_is_trouble_and_never_followed),
		T(a_symlinked_mailbox_folder_is_refused),
		T(a_crowded_cur_is_filed_by_the_command_that_made_mail_seen_and_not_by_looking),
		T(a_listing_misses_none_of_2000_files_whose_flags_change),
		T(a_listing_misses_none_of_2000_files_that_move_between_new_and_cur),
		T(a_mark_finds_its_message_while_another_renames_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
