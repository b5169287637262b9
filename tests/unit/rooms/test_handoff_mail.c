/* SPDX-License-Identifier: MIT */
/* Mail in a room of the mailbox skill: its format, ids, archive, imports. */
#include "skill.h"

/* ---- Mail ---- */

static void
mail_is_the_format_of_the_original(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf want = BUF_INIT;
	struct mr_message raw = { 0 };
	struct mr_error err = { 0 };
	struct stat st;

	add(p, "alice");
	add(p, "Old%20Bob");
	struct delivered done =
	    send(p, (struct sent){ .to = "Old%20Bob", .subject = "Parser: next", .reply_to = "m-1", .body = "no end" });
	struct mr_message msg = fetch(p, "Old%20Bob", done.id);

	assert_string_equal(msg.from, "alice");
	assert_string_equal(msg.to.v[0], "Old%20Bob");
	assert_string_equal(msg.subject, "Parser: next");
	assert_string_equal(msg.reply_to, "m-1");
	assert_string_equal(msg.thread, done.id);
	assert_string_equal(mr_message_header(&msg, "Message-ID"), done.native_id);
	assert_true(msg.date_ms > clock_now_ms() - 60000);
	assert_int_equal(stat(path_of(p, msg.path), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(p->ops->fetch(p->room, "Old%20Bob", done.id, 0, SCAN_RAW, &raw, &err), MR_OK);
	buf_addf(&want, "---\nfrom: %s\nmsg_id: %s\nsubject: Parser: next\nreply_to: m-1\nto: %s\n---\n\nno end",
	    id_of(p, "alice"), done.native_id, id_of(p, "Old%20Bob"));
	assert_string_equal(raw.body, buf_z(&want));
	mr_message_done(&raw);
	mr_message_done(&msg);
}

static void
an_id_stays_when_mail_is_read(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };

	add(p, "alice");
	add(p, "bob");
	struct delivered done = send(p, (struct sent){ 0 });

	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_SEEN, 0, 0, &err), MR_OK);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_SEEN, 0, 0, &err), MR_OK);
	struct mr_message msg = fetch(p, "bob", done.id);

	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_int_equal(msg.flags, MR_SEEN);
	mr_message_done(&msg);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, 0, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 1);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_PINNED, 0, 0, &err), MR_UNSUPPORTED);
}

static void
what_is_no_message_is_reported_and_the_rest_goes_on(void **state)
{
	struct place *p = *state;
	char path[300];
	const char *id;

	add(p, "alice");
	add(p, "bob");
	send(p, (struct sent){ 0 });
	id = id_of(p, "bob");
	(void)snprintf(path, sizeof path, "%s/inbox/notes.md", id);
	put(p, path, "just notes\n");
	(void)snprintf(path, sizeof path, "%s/inbox/.other.md", id);
	put(p, path, "---\nfrom: x y\nto: somebody-else\n---\n\nhi\n");
	(void)snprintf(path, sizeof path, "%s/inbox/readme.txt", id);
	put(p, path, "---\nfrom: x\n---\n");
	(void)snprintf(path, sizeof path, "%s/inbox/link.md", id);
	assert_int_equal(symlink("/etc/passwd", path_of(p, path)), 0);
	struct seen seen = look(p, "bob", MR_INBOX);

	assert_int_equal(seen.n, 2);        /* ours, and the one for somebody else, which is shown all the same */
	assert_int_equal(seen.troubles, 2); /* that one, and the notes */
}

static void
a_root_that_was_moved_is_reported(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf registry = BUF_INIT;

	add(p, "bob");
	assert_int_equal(look(p, "bob", BOTH).troubles, 0);
	buf_addf(&registry, "{\"bob\":{\"id\":\"%s\",\"inbox\":\"/elsewhere/inbox\"}}", id_of(p, "bob"));
	put(p, "registry.json", buf_z(&registry));
	struct seen seen = look(p, "bob", BOTH);

	assert_int_equal(seen.troubles, 1);
	assert_non_null(strstr(seen.last, "/elsewhere/inbox"));
}

/* ---- Archive ---- */

static void
archiving_never_overwrites(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct handoff *h = handoff_of(p->room);
	char path[300], id[HANDOFF_ID_MAX + 1];

	add(p, "bob");
	(void)snprintf(id, sizeof id, "%s", id_of(p, "bob"));
	for (int i = 0; i < 4; i++) { /* one, its copy, another of that name, a third */
		static const char *const texts[] = { "from: a\n1", "from: a\n1", "from: a\n2", "from: a\n3" };

		(void)snprintf(path, sizeof path, "%s/inbox/x.md", id);
		put(p, path, texts[i]);
		assert_int_equal(handoff_move_file(h, id, "x.md", MR_INBOX, &err), MR_OK);
	}
	assert_int_equal(handoff_move_file(h, id, "x.md", MR_INBOX, &err), MR_NOTFOUND);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 0);
	assert_int_equal(look(p, "bob", MR_ARCHIVE).n, 3);
	(void)snprintf(path, sizeof path, "%s/archive/x.md.2", id);
	assert_int_equal(access(path_of(p, path), F_OK), 0);
}

/* ---- Imports and carried mail ---- */

static void
an_import_is_found_again_wherever_it_is(void **state)
{
	struct place *p = *state;
	struct sent s = { .keep = true, .date_ms = 1700000000123, .subject = "old" };
	struct delivered first = { 0 }, again = { 0 };
	struct mr_error err = { 0 };

	add(p, "alice");
	add(p, "bob");
	first = send(p, s);
	assert_int_equal(try_send(p, s, &again, &err), MR_EXISTS);
	assert_string_equal(first.id, again.id);
	assert_int_equal(p->ops->mark(p->room, "bob", first.id, MR_SEEN, 0, 0, &err), MR_OK);
	assert_int_equal(try_send(p, s, &again, &err), MR_EXISTS);
	struct mr_message msg = fetch(p, "bob", first.id);

	assert_int_equal(msg.date_ms, s.date_ms);
	assert_non_null(strstr(msg.path, "20231114T221320Z-"));
	mr_message_done(&msg);
	s.date_ms++;
	assert_string_not_equal(send(p, s).id, first.id);
	assert_int_equal(look(p, "bob", BOTH).n, 2);
}

struct staging {
	char ticket[ROOM_TICKET_MAX];
	enum mr_rc answer;
};

static enum mr_rc
keep_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	struct staging *s = ctx;

	(void)snprintf(s->ticket, sizeof s->ticket, "%s", ticket);
	return s->answer == MR_OK ? MR_OK : mr_fail(err, s->answer, "said no");
}

static enum mr_rc
die(void *ctx, const char *ticket, struct mr_error *err)
{
	(void)err;
	FILE *file = fopen(ctx, "w");

	(void)fputs(ticket, file);
	(void)fclose(file);
	_exit(9);
}

static void
a_ticket_tells_whether_it_was_published(void **state)
{
	struct place *p = *state;
	struct staging staging = { .answer = MR_REFUSED };
	struct sent s = { .carried = true, .date_ms = 1700000000000, .staged = keep_ticket, .ctx = &staging };
	struct delivered done = { 0 };
	struct mr_error err = { 0 };
	bool published = true;
	char note[200];

	add(p, "alice");
	add(p, "bob");
	assert_int_equal(try_send(p, s, &done, &err), MR_REFUSED);
	assert_int_equal(look(p, "bob", BOTH).n, 0);
	staging.answer = MR_OK;
	send(p, s);
	assert_int_equal(p->ops->settle_ticket(p->room, staging.ticket, &published, &err), MR_OK);
	assert_true(published);
	(void)snprintf(note, sizeof note, "%s/ticket", p->folder);
	if (fork() == 0) {
		s.staged = die;
		s.ctx = note;
		(void)try_send(p, s, &done, &err);
		_exit(1);
	}
	assert_true(wait(NULL) > 0);
	FILE *file = fopen(note, "r");

	assert_non_null(file);
	assert_non_null(fgets(staging.ticket, sizeof staging.ticket, file));
	(void)fclose(file);
	assert_int_equal(p->ops->settle_ticket(p->room, staging.ticket, &published, &err), MR_OK);
	assert_false(published);
	assert_int_equal(look(p, "bob", BOTH).n, 1);
	assert_int_equal(p->ops->settle_ticket(p->room, "../x/.mailroom-carry-y", &published, &err), MR_REFUSED);
	assert_int_equal(p->ops->settle_ticket(p->room, "x/other.md", &published, &err), MR_REFUSED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mail_is_the_format_of_the_original),
		TEST(an_id_stays_when_mail_is_read),
		TEST(what_is_no_message_is_reported_and_the_rest_goes_on),
		TEST(a_root_that_was_moved_is_reported),
		TEST(archiving_never_overwrites),
		TEST(an_import_is_found_again_wherever_it_is),
		TEST(a_ticket_tells_whether_it_was_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
