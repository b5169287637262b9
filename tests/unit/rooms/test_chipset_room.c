/* SPDX-License-Identifier: MIT */
/* The chipset driver on disk: sending, reading, marks, the archive, imports, who lives there. */
#include "town.h"

/* ---- Sending ---- */

static void
reading_makes_nothing_and_the_first_mail_makes_all(void **state)
{
	const struct town *t = *state;
	struct stat st;

	assert_int_equal(scan(t, "bob", MR_INBOX | MR_ARCHIVE).n, 0);
	assert_false(has(t, ""));
	(void)send(t, "alice", "bob", "hi");
	assert_int_equal(scan(t, "bob", MR_INBOX).unread, 1);
	assert_int_equal(stat(in(t, "mail/bob"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700); /* as the folder around it */
	assert_int_equal(chmod(in(t, "mail"), 0755), 0);
	struct delivered done = send(t, "alice", "carol", "hi");
	char rest[400];

	assert_int_equal(stat(in(t, "mail/carol"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	(void)snprintf(rest, sizeof rest, "mail/carol/%s", done.native_id);
	assert_int_equal(stat(in(t, rest), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
}

static void
times_of_one_sender_only_grow(void **state)
{
	const struct town *t = *state;
	struct delivered done[4];

	done[0] = send(t, "alice", "bob", "1");
	clock_shift_ms(-3600000); /* somebody sets the clock back */
	done[1] = send(t, "alice", "bob", "2");
	done[2] = send(t, "alice", "bob", "3");
	struct delivered other = send(t, "carol", "bob", "of another sender");

	assert_true(id_time_ms(other.id) < id_time_ms(done[0].id));
	clock_shift_ms(0);
	done[3] = send(t, "alice", "bob", "4");
	for (size_t i = 1; i < 4; i++) {
		assert_true(id_time_ms(done[i].id) > id_time_ms(done[i - 1].id));
		assert_true(strcmp(done[i].native_id, done[i - 1].native_id) > 0);
	}
	assert_int_equal(id_time_ms(done[2].id), id_time_ms(done[0].id) + 2);
	assert_string_equal(scan(t, "bob", MR_INBOX).ids[0], other.id);
}

static void
what_the_format_cannot_hold_is_told(void **state)
{
	const struct town *t = *state;
	struct mr_message msg = draft("alice", "x");
	char *two[] = { (char[]){ "bob" }, (char[]){ "carol" } };
	struct mr_header headers[] = { { "Message-ID", "x" }, { "References", "x" }, { "X-Colour", "blue" } };

	msg.headers = headers;
	msg.headers_n = 2;
	msg.reply_to = "2026-07-01T08-16-00.000Z-w9.json";
	assert_int_equal(t->ops->unsupported(t->room, &msg), 0);
	char id[MR_ID_LEN + 1];

	assert_true(chipset_name_id(str_of(msg.reply_to), id));
	msg.thread = id;
	assert_int_equal(t->ops->unsupported(t->room, &msg), 0);
	msg.headers_n = 3;
	msg.thread = "build-42";
	msg.reply_to = "01k9w3b7zq8m4c2v6t1x5n0prs";
	msg.priority = MR_HIGH;
	msg.by_ms = 1;
	msg.to = msg.cc = (struct mr_names){ two, 2 };
	msg.body = "\xff";
	assert_int_equal(t->ops->unsupported(t->room, &msg), FIELD_HEADERS | FIELD_THREAD | FIELD_REPLY_TO |
								 FIELD_PRIORITY | FIELD_BY | FIELD_TO | FIELD_CC |
								 FIELD_BINARY);
}

static void
bad_mail_is_refused_before_anything_is_there(void **state)
{
	const struct town *t = *state;
	char *large = malloc(70000);
	struct delivery what = { 0 };
	struct delivered done = { 0 };

	assert_non_null(large);
	memset(large, 'x', 69999);
	large[69999] = '\0';
	const struct {
		const char *from, *to, *body;
	} bad[] = { { "alice", "archive", "x" }, { "alice", "a/b", "x" }, { "..", "bob", "x" }, { "a b", "bob", "x" },
		{ "alice", "bob", "\xff" }, { "alice", "bob", large } };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct mr_message msg = draft(bad[i].from, bad[i].body);

		EXPECT(MR_REFUSED, deliver(t->room, &msg, bad[i].to, &what, &done, &err));
	}
	assert_false(has(t, ""));
	large[60000] = '\0';
	(void)send(t, "alice", "bob", large);
	free(large);
}

static void
stale_temporary_files_go_and_others_stay(void **state)
{
	const struct town *t = *state;

	(void)send(t, "alice", "bob", "1");
	put(t, "mail/bob/.mailroom-mark-0123456789abcdef.tmp", "x");
	put(t, "mail/bob/.mailroom-carry-0123456789abcdef.tmp", "x");
	put(t, "mail/bob/.msg.tmp", "x");
	(void)send(t, "alice", "bob", "2");
	assert_true(has(t, "mail/bob/.mailroom-mark-0123456789abcdef.tmp"));
	clock_shift_ms(2 * 3600000);
	(void)send(t, "alice", "bob", "3");
	assert_false(has(t, "mail/bob/.mailroom-mark-0123456789abcdef.tmp"));
	assert_true(has(t, "mail/bob/.mailroom-carry-0123456789abcdef.tmp"));
	assert_true(has(t, "mail/bob/.msg.tmp"));
	assert_int_equal(scan(t, "bob", MR_INBOX).troubles, 0);
}

/* ---- Reading ---- */

static void
damaged_mail_neither_stops_nor_falsifies_a_listing(void **state)
{
	const struct town *t = *state;
	struct delivered good = send(t, "alice", "bob", "whole");

	put(t, "mail/bob/2026-07-01T08-15-30.250Z-w1.json", "{\"from\": \"w2\", \"to\": \"bob\", \"body\": \"of w2\"}");
	put(t, "mail/bob/2026-07-01T08-15-30.251Z-w1.json", "{\"from\": \"w1\", \"bo");
	put(t, "mail/bob/2026-07-01T08-15-30.252Z-w1.json", "null");
	put(t, "mail/bob/.2026-07-01T08-15-30.253Z-w1.json", "{\"body\": \"a dot before\"}");
	put(t, "mail/bob/.msg.tmp", "{");
	put(t, "mail/bob/notes.txt", "{");
	assert_int_equal(mkdir(in(t, "mail/bob/folder.json"), 0700), 0);
	assert_int_equal(symlink("/etc/passwd", in(t, "mail/bob/2026-07-01T08-15-30.254Z-w1.json")), 0);
	assert_int_equal(mkfifo(in(t, "mail/bob/2026-07-01T08-15-30.255Z-w1.json"), 0600), 0);
	struct seen s = scan(t, "bob", MR_INBOX);

	assert_int_equal(s.n, 3);
	assert_int_equal(s.troubles, 4);
	assert_string_equal(s.ids[2], good.id);
	assert_int_equal(files_in(t, "mail/bob"), 10);
	EXPECT(MR_NOTFOUND, t->ops->mark(t->room, "bob", "01k9w3b7zq8m4c2v6t1x5n0prs", MR_SEEN, 0, 0, &err));
	char id[MR_ID_LEN + 1];

	assert_true(chipset_name_id(STR("2026-07-01T08-15-30.251Z-w1.json"), id));
	EXPECT(MR_CORRUPT, t->ops->mark(t->room, "bob", id, MR_SEEN, 0, 0, &err));
}

static void
a_mailbox_behind_a_link_is_an_error(void **state)
{
	const struct town *t = *state;
	struct seen s = { 0 };
	struct scan_request want = { .folders = MR_INBOX };

	(void)send(t, "alice", "carol", "hi");
	assert_int_equal(symlink("carol", in(t, "mail/bob")), 0);
	EXPECT(MR_REFUSED, t->ops->scan(t->room, "bob", &want, see, &s, &err));
	struct mr_message msg = draft("alice", "x");
	struct delivery what = { 0 };
	struct delivered done = { 0 };

	EXPECT(MR_REFUSED, deliver(t->room, &msg, "bob", &what, &done, &err));
	assert_int_equal(scan(t, "carol", MR_INBOX).n, 1);
}

/* ---- Marks and the archive ---- */

static void
a_mark_keeps_id_mode_and_time(void **state)
{
	const struct town *t = *state;
	struct delivered done = send(t, "alice", "bob", "hi");
	char rest[400];
	struct stat before, after;

	(void)snprintf(rest, sizeof rest, "mail/bob/%s", done.native_id);
	assert_int_equal(chmod(in(t, rest), 0640), 0);
	assert_int_equal(stat(in(t, rest), &before), 0);
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, MR_SEEN, 0, 0, &err));
	assert_int_equal(scan(t, "bob", MR_INBOX).unread, 0);
	assert_int_equal(stat(in(t, rest), &after), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(files_in(t, "mail/bob"), 1);
	ino_t inode = after.st_ino;

	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, MR_SEEN, 0, 0, &err)); /* read already: not touched */
	assert_int_equal(stat(in(t, rest), &after), 0);
	assert_int_equal(after.st_ino, inode);
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, MR_REPLIED, 0, 0, &err));
	EXPECT(MR_UNSUPPORTED, t->ops->mark(t->room, "bob", done.id, MR_PINNED, 0, 0, &err));
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, MR_SEEN, 0, &err));
	assert_int_equal(scan(t, "bob", MR_INBOX).unread, 1);
	EXPECT(MR_OK, t->ops->flush(t->room, &err));
}

static void
mail_moves_to_the_archive_and_back(void **state)
{
	const struct town *t = *state;
	struct delivered done = send(t, "alice", "bob", "hi");

	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, 0, MR_ARCHIVE, &err));
	assert_int_equal(scan(t, "bob", MR_INBOX).n, 0);
	assert_int_equal(scan(t, "bob", MR_ARCHIVE).n, 1);
	assert_string_equal(scan(t, "bob", MR_ARCHIVE).ids[0], done.id);
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, MR_SEEN, 0, &err));
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", done.id, 0, 0, MR_INBOX, &err));
	assert_int_equal(scan(t, "bob", MR_INBOX).unread, 1);
	EXPECT(MR_UNSUPPORTED, t->ops->mark(t->room, "bob", done.id, 0, 0, MR_DEAD, &err));
	EXPECT(MR_NOTFOUND, t->ops->mark(t->room, "bob", "01k9w3b7zq8m4c2v6t1x5n0prs", 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_OK, t->ops->flush(t->room, &err));
}

static void
the_archive_is_never_written_over(void **state)
{
	const struct town *t = *state;
	const char *name = "2026-07-01T08-15-30.250Z-w1.json";
	char id[MR_ID_LEN + 1], inbox[100], archive[100];

	(void)send(t, "alice", "bob", "hi");
	(void)snprintf(inbox, sizeof inbox, "mail/bob/%s", name);
	(void)snprintf(archive, sizeof archive, "mail/bob/archive/%s", name);
	assert_true(chipset_name_id(str_of(name), id));
	static const char *const texts[] = { "{\"body\":\"1\"}", "{\"body\":\"2\"}", "{\"body\":\"3\"}",
		"{\"body\":\"2\"}" };

	for (size_t i = 0; i < 4; i++) {
		put(t, inbox, texts[i]);
		EXPECT(MR_OK, t->ops->mark(t->room, "bob", id, 0, 0, MR_ARCHIVE, &err));
		assert_false(has(t, inbox));
	}
	assert_int_equal(files_in(t, "mail/bob/archive"), 3); /* the last one was there already */
	assert_true(has(t, "mail/bob/archive/2026-07-01T08-15-30.250Z-w1.2.json"));
	/* The original's mark brings archived mail back: once, not twice. */
	put(t, inbox, "{\"body\":\"1\",\"read\": true}");
	put(t, archive, "{\"body\":\"1\",\"read\": false}");
	assert_int_equal(scan(t, "bob", MR_INBOX | MR_ARCHIVE).n, 4);
	put(t, inbox, "{\"body\":\"another\"}");
	assert_int_equal(scan(t, "bob", MR_INBOX | MR_ARCHIVE).n, 5);
}

/* ---- Imports and tickets ---- */

static enum mr_rc
import(const struct town *t, const char *id, const char *body, struct delivered *ret)
{
	struct mr_message msg = draft("alice", body);
	struct delivery what = { .keep = true };
	struct mr_error err = { 0 };

	memcpy(msg.id, id, sizeof msg.id);
	msg.date_ms = 1782893760000;
	msg.flags = MR_SEEN;
	return deliver(t->room, &msg, "bob", &what, ret, &err);
}

static void
an_import_is_found_again(void **state)
{
	const struct town *t = *state;
	struct delivered one = { 0 }, two = { 0 }, again = { 0 };

	assert_int_equal(import(t, "01k9w3b7zq8m4c2v6t1x5n0prs", "a", &one), MR_OK);
	assert_string_equal(one.native_id, "2026-07-01T08-16-00.000Z-alice.json");
	assert_int_equal(import(t, "01k9w3b7zq8m4c2v6t1x5n0prt", "a", &two), MR_OK); /* in the same millisecond */
	assert_string_equal(two.native_id, "2026-07-01T08-16-00.001Z-alice.json");
	EXPECT(MR_OK, t->ops->mark(t->room, "bob", one.id, 0, 0, MR_ARCHIVE, &err));
	assert_int_equal(import(t, "01k9w3b7zq8m4c2v6t1x5n0prs", "a", &again), MR_EXISTS);
	assert_string_equal(again.id, one.id);
	assert_int_equal(import(t, "01k9w3b7zq8m4c2v6t1x5n0prt", "a", &again), MR_EXISTS);
	assert_string_equal(again.id, two.id);
	struct seen s = scan(t, "bob", MR_INBOX | MR_ARCHIVE);

	assert_int_equal(s.n, 2);
	assert_int_equal(s.unread, 0);
	/* Taken from this room and brought back, a message is known by its own id. */
	struct delivered own = send(t, "alice", "bob", "b");
	struct mr_message msg = draft("alice", "b");
	struct delivery what = { .keep = true };

	memcpy(msg.id, own.id, sizeof msg.id);
	msg.date_ms = id_time_ms(own.id);
	EXPECT(MR_EXISTS, deliver(t->room, &msg, "bob", &what, &again, &err));
	assert_string_equal(again.id, own.id);
}

struct stage_watch {
	const struct town *t;
	char ticket[ROOM_TICKET_MAX + 1];
	char id[MR_ID_LEN + 1], native_id[ROOM_NATIVE_ID_MAX + 1]; /* as they were when it was staged */
	const struct delivered *done;
	enum mr_rc answer;
};

static enum mr_rc
on_staged(void *ctx, const char *ticket, struct mr_error *err)
{
	struct stage_watch *w = ctx;

	(void)snprintf(w->ticket, sizeof w->ticket, "%s", ticket);
	memcpy(w->id, w->done->id, sizeof w->id);
	memcpy(w->native_id, w->done->native_id, sizeof w->native_id);
	assert_int_equal(scan(w->t, "bob", MR_INBOX).n, 0); /* not visible yet */
	return w->answer == MR_OK ? MR_OK : mr_fail(err, w->answer, "no");
}

static void
a_ticket_tells_whether_it_was_published(void **state)
{
	const struct town *t = *state;
	struct stage_watch w = { .t = t, .answer = MR_FULL };
	struct delivery what = { .staged = on_staged, .staged_ctx = &w, .carried = true };
	struct delivered done = { 0 };
	struct mr_message msg = draft("alice", "x");
	bool published = true;

	w.done = &done;
	msg.date_ms = 1782893760000;
	EXPECT(MR_FULL, deliver(t->room, &msg, "bob", &what, &done, &err));
	assert_int_equal(files_in(t, "mail/bob"), 1); /* gone, it would say that it was published */
	for (int i = 0; i < 2; i++) { /* a kill within the first question is no reason for another answer */
		EXPECT(MR_OK, t->ops->settle_ticket(t->room, w.ticket, &published, &err));
		assert_false(published);
	}
	w.answer = MR_OK;
	EXPECT(MR_OK, deliver(t->room, &msg, "bob", &what, &done, &err));
	assert_string_equal(done.native_id, "2026-07-01T08-16-00.000Z-alice.json"); /* carried mail keeps its date */
	EXPECT(MR_OK, t->ops->settle_ticket(t->room, w.ticket, &published, &err));
	assert_true(published);
	assert_string_equal(w.id, done.id); /* the id was known when the ticket was noted */
	assert_string_equal(w.native_id, done.native_id);
	clock_shift_ms((int64_t)8 * 24 * 3600000);
	(void)send(t, "carol", "bob", "a week later");
	assert_int_equal(files_in(t, "mail/bob"), 2);
	EXPECT(MR_REFUSED, t->ops->settle_ticket(t->room, "bob/../x", &published, &err));
	EXPECT(MR_REFUSED, t->ops->settle_ticket(t->room, "../.mailroom-carry-0.tmp", &published, &err));
}

/* ---- Who, waiting, care ---- */

static bool
note_agent(void *ctx, const struct mr_agent *agent)
{
	struct buf *out = ctx;

	buf_addf(out, "%s%s%s ", agent->name, agent->role[0] ? "=" : "", agent->role);
	return true;
}

static void
count_finding(void *ctx, const struct mr_finding *finding)
{
	*(size_t *)ctx += finding->severity == MR_PROBLEM;
}

static void
agents_are_mailboxes_and_identities(void **state)
{
	const struct town *t = *state;
	mr_auto(buf_done) struct buf names = BUF_INIT;
	struct mr_agent agent = { 0 };
	size_t problems = 0;

	EXPECT(MR_OK, t->ops->each_agent(t->room, false, note_agent, &names, &err));
	assert_int_equal(names.len, 0);
	(void)send(t, "alice", "bob", "hi");
	(void)snprintf(agent.name, sizeof agent.name, "carol");
	EXPECT(MR_OK, t->ops->add_agent(t->room, &agent, &err));
	EXPECT(MR_EXISTS, t->ops->add_agent(t->room, &agent, &err));
	assert_int_equal(mkdir(in(t, "agents"), 0700), 0);
	put(t, "agents/bob.json", "{\"id\": \"bob\", \"role\": \"polecat\"}");
	put(t, "agents/mayor.json", "{\"id\": \"mayor\", \"role\": \"mayor\"}");
	assert_int_equal(mkdir(in(t, "mail/tmp"), 0700), 0);
	EXPECT(MR_OK, t->ops->inspect(t->room, false, count_finding, &problems, &err));
	assert_int_equal(problems, 0);
	assert_int_equal(mkdir(in(t, "mail/Old Bob"), 0700), 0);
	put(t, "mail/bob/x.json", "{");
	put(t, "mail/bob/2026-07-01T08-15-30Z-a.json", "{\"from\": \"b\"}");
	EXPECT(MR_OK, t->ops->each_agent(t->room, false, note_agent, &names, &err));
	assert_string_equal(buf_z(&names), "bob=polecat carol mayor=mayor %74mp ");
	EXPECT(MR_OK, t->ops->inspect(t->room, false, count_finding, &problems, &err));
	assert_int_equal(problems, 3);
	EXPECT(MR_OK, t->ops->find_agent(t->room, "nobody-yet", &agent, &err));
	arena_free(agent.own);
	EXPECT(MR_REFUSED, t->ops->find_agent(t->room, "a/b", &agent, &err));
	char address[MR_ADDRESS_MAX + 1];

	EXPECT(MR_OK, t->ops->spell(t->room, "tmp", address, &err));
	assert_string_equal(address, "%74mp");
	EXPECT(MR_REFUSED, t->ops->spell(t->room, "Old Bob", address, &err));
}

static void
note_place(void *ctx, const struct place_of *place)
{
	buf_addf(ctx, "%s %s, ", place->agent, place->state);
}

static void
why_finds_every_copy(void **state)
{
	const struct town *t = *state;
	mr_auto(buf_done) struct buf places = BUF_INIT;
	char *two[] = { (char[]){ "bob" }, (char[]){ "carol" } };
	struct mr_names to = { two, 2 };
	struct mr_message msg = draft("alice", "x");
	struct delivery what = { .msg = &msg, .to = &to, .sender = "alice" };
	struct delivered done = { 0 };

	EXPECT(MR_OK, t->ops->deliver(t->room, &what, &done, &err));
	EXPECT(MR_OK, t->ops->mark(t->room, "carol", done.id, 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_OK, t->ops->each_place(t->room, done.id, note_place, &places, &err));
	assert_string_equal(buf_z(&places), "bob unread, carol archived, ");
}

static void
mail_in_later(struct town *t, int which)
{
	(void)which;
	(void)usleep(100000);
	(void)send(t, "alice", "bob", "hi");
}

static void
a_wait_ends_with_the_first_mail_of_all(void **state)
{
	const struct town *t = *state;
	void *watch = NULL;
	int64_t start_ms = clock_boot_ms();

	EXPECT(MR_OK, t->ops->watch(t->room, "bob", &watch, &err));
	pid_t other = start(t, mail_in_later, 0);

	while (scan(t, "bob", MR_INBOX).n == 0 && clock_boot_ms() - start_ms < 5000)
		t->ops->watch_wait(t->room, watch, 5000);
	int64_t took_ms = clock_boot_ms() - start_ms;

	t->ops->watch_close(t->room, watch);
	join(other);
	assert_int_equal(scan(t, "bob", MR_INBOX).n, 1);
	if (took_ms > 4500) /* a watch that saw nothing takes 5000 */
		fail_msg("the wait took %lld ms", (long long)took_ms);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reading_makes_nothing_and_the_first_mail_makes_all),
		TEST(times_of_one_sender_only_grow),
		TEST(what_the_format_cannot_hold_is_told),
		TEST(bad_mail_is_refused_before_anything_is_there),
		TEST(stale_temporary_files_go_and_others_stay),
		TEST(damaged_mail_neither_stops_nor_falsifies_a_listing),
		TEST(a_mailbox_behind_a_link_is_an_error),
		TEST(a_mark_keeps_id_mode_and_time),
		TEST(mail_moves_to_the_archive_and_back),
		TEST(the_archive_is_never_written_over),
		TEST(an_import_is_found_again),
		TEST(a_ticket_tells_whether_it_was_published),
		TEST(agents_are_mailboxes_and_identities),
		TEST(why_finds_every_copy),
		TEST(a_wait_ends_with_the_first_mail_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
