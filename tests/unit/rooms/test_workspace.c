/* SPDX-License-Identifier: MIT */
/* test_workspace.c - questions and answers of the workspace kind, and what must not happen to them. */
#include "support/sys_fault.h"
#include "yard.h"

static void
a_question_is_answered_under_its_id(void **state)
{
	struct yard *y = *state;
	struct delivered asked = { 0 }, answered = { 0 };
	char place[200], text[2000], want[2000];

	sys_plan_set(NULL); /* counts from here */
	EXPECT(MR_OK,
	    post(y,
		(struct out){
		    .from = "lead", .to = "tester", .body = "Run it.\n", .subject = "Run it.", .thread = "build-42" },
		&asked, &err));
	assert_true(sys_syncs() >= 6); /* for our copy and for theirs: the file, its link, its folder */
	assert_int_equal(strlen(asked.native_id), 32);
	(void)snprintf(place, sizeof place, "tester/.mailbox/inbox/%.32s", asked.native_id);
	(void)snprintf(want, sizeof want,
	    "---\nREQUEST_ID: %s\nMESSAGE_TYPE: NEW\nCHANNEL_ID: build-42\nRECEIVER_INBOX_PATH: "
	    "%s/tester/.mailbox/inbox/%s\n"
	    "REPLY_INBOX_PATH: %s/lead/.mailbox/inbox/%s\n---\n\nRun it.\n",
	    asked.native_id, y->path, asked.native_id, y->path, asked.native_id);
	read_text(y, place, text, sizeof text);
	assert_string_equal(text, want);

	struct mr_message msg = fetch(y, "tester", asked.id);

	assert_string_equal(msg.from, "lead");
	assert_string_equal(msg.to.v[0], "tester");
	assert_string_equal(msg.subject, "Run it.");
	assert_string_equal(msg.thread, "build-42");
	assert_string_equal(mr_message_header(&msg, "Message-ID"), asked.native_id);
	assert_memory_equal(msg.body, "Run it.\n", msg.body_len);
	mr_message_done(&msg);
	EXPECT(MR_OK,
	    post(y,
		(struct out){ .from = "tester", .to = "lead", .subject = "Re: Run it.", .reply_to = asked.native_id },
		&answered, &err));
	assert_string_equal(answered.native_id, asked.native_id);
	assert_int_equal(look(y, "tester", MR_INBOX).n, 0);
	msg = fetch(y, "lead", answered.id);
	assert_string_equal(msg.from, "tester");
	assert_string_equal(msg.reply_to, asked.native_id);
	assert_string_equal(msg.thread, "build-42");
	assert_memory_equal(msg.body, "hi\n", msg.body_len);
	mr_message_done(&msg);
	msg = fetch(y, "tester", asked.id); /* still known, and by the same id */
	assert_int_equal(msg.folder, MR_ARCHIVE);
	mr_message_done(&msg);
	assert_int_equal(look(y, "tester", MR_SENT).n, 1);
	assert_int_equal(look(y, "lead", MR_SENT).n, 1);
}

/* The follow-up comes under the name of the question that was just answered. */
static void
a_follow_up_survives_the_answer(void **state)
{
	struct yard *y = *state;
	struct delivered one = { 0 }, two = { 0 }, three = { 0 };

	EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, &one, &err));
	EXPECT(MR_OK, post(y, (struct out){ .from = "tester", .to = "lead", .reply_to = one.native_id }, &two, &err));
	EXPECT(
	    MR_OK, post(y, (struct out){ .from = "lead", .to = "tester", .reply_to = one.native_id, .body = "and?\n" },
		       &three, &err));
	assert_int_equal(look(y, "tester", MR_INBOX).n, 1);
	assert_string_not_equal(three.id, one.id);
	assert_string_equal(three.native_id, one.native_id);
	struct mr_message msg = fetch(y, "tester", three.id);

	assert_memory_equal(msg.body, "and?\n", 5);
	mr_message_done(&msg);
	EXPECT(MR_OK, y->ops->mark(y->room, "tester", three.id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, y->ops->flush(y->room, &err));
	assert_int_equal(look(y, "tester", MR_INBOX).n, 0);
	assert_int_equal(look(y, "tester", MR_ARCHIVE).n, 2);
	EXPECT(MR_OK, y->ops->mark(y->room, "tester", three.id, 0, MR_SEEN, 0, &err));
	EXPECT(MR_BUSY, y->ops->mark(y->room, "tester", one.id, 0, MR_SEEN, 0, &err)); /* that name is taken */
	assert_string_equal(look(y, "tester", MR_INBOX).id, three.id);
	assert_int_equal(look(y, "lead", MR_SENT).n, 2); /* the older copy was not written over */
}

static void
a_busy_destination_is_not_written_over(void **state)
{
	struct yard *y = *state;
	struct delivered one = { 0 };
	char place[200], text[100];

	workspace_of(y->room)->busy_ms = 100;
	EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, &one, &err));
	(void)snprintf(place, sizeof place, "lead/.mailbox/inbox/%.32s", one.native_id);
	write_file(y, place, "something unread");
	struct out answer = { .from = "tester", .to = "lead", .reply_to = one.native_id };

	EXPECT(MR_BUSY, post(y, answer, NULL, &err));
	read_text(y, place, text, sizeof text);
	assert_string_equal(text, "something unread");
	assert_int_equal(look(y, "tester", MR_INBOX).n, 1); /* it waits again */
	assert_int_equal(look(y, "tester", MR_SENT).n, 0);
	assert_int_equal(unlink(in_yard(y, place)), 0);
	EXPECT(MR_OK, post(y, answer, NULL, &err));
	EXPECT(MR_OK, post(y, answer, NULL, &err)); /* the same bytes are there: as good as sent */
	assert_int_equal(look(y, "lead", MR_INBOX).n, 1);
}

static void
older_questions_of_a_channel_get_the_empty_answer(void **state)
{
	struct yard *y = *state;
	struct delivered asked[3] = { 0 };
	char place[200], text[1000];

	for (size_t i = 0; i < 3; i++)
		EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester", .thread = "c" }, &asked[i], &err));
	EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, NULL, &err)); /* not of that channel */
	EXPECT(MR_OK, y->ops->mark(y->room, "tester", asked[0].id, MR_SEEN, 0, 0, &err));   /* shown, not answered */
	EXPECT(MR_OK,
	    post(y, (struct out){ .from = "tester", .to = "lead", .reply_to = asked[2].native_id, .body = "all" }, NULL,
		&err));
	assert_int_equal(look(y, "tester", MR_INBOX).n, 1);
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(place, sizeof place, "lead/.mailbox/inbox/%.32s", asked[i].native_id);
		read_text(y, place, text, sizeof text);
		assert_non_null(strstr(text, "MESSAGE_TYPE: REPLY\nCHANNEL_ID: c\n"));
		assert_non_null(strstr(text, i == 2 ? "---\n\nall\n" : "REPLY_INBOX_PATH: \n---\n\n\"\"\n"));
	}
	assert_int_equal(look(y, "lead", MR_INBOX).n, 3);
}

static void
hostile_reply_paths_are_refused(void **state)
{
	struct yard *y = *state;
	static const struct {
		const char *path; /* %s is the yard */
		enum mr_rc want;
	} cases[] = {
		{ "/etc/q", MR_REFUSED },
		{ "%s/q", MR_REFUSED },
		{ "%s/x/../lead/.mailbox/inbox/q", MR_REFUSED },
		{ "lead/.mailbox/inbox/q", MR_REFUSED },
		{ "%s/linked/.mailbox/inbox/q", MR_REFUSED },
		{ "%s/lead/.mailbox/inbox/.other", MR_REFUSED },
		{ "%s/lead/.mailbox/inbox/o\tther", MR_REFUSED },
		{ "%s/lead/.mailbox/inbox/\xff", MR_REFUSED },
		{ "%s/gone/.mailbox/inbox/q", MR_NOTFOUND },
		{ "%s/tester/.mailbox/inbox/q", MR_REFUSED },
		{ "%s/tester/.mailbox/scratch/q", MR_NOTFOUND }, /* it names our scratch: not even shown */
		{ "", MR_REFUSED },
		{ "%s/lead/.mailbox/inbox/other", MR_OK },
		{ "%s/lead/.mailbox/inbox/o ther", MR_OK },
		{ "%s/lead/.mailbox/inbox", MR_OK },
	};

	assert_int_equal(mkdir(in_yard(y, "linked"), 0700) | mkdir(in_yard(y, "linked/.mailbox"), 0700), 0);
	assert_int_equal(symlink(in_yard(y, "lead/.mailbox/inbox"), in_yard(y, "linked/.mailbox/inbox")), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char path[400] = "", text[900], from[MR_ADDRESS_MAX + 1];
		const char *mark = strstr(cases[i].path, "%s");

		(void)snprintf(path, sizeof path, "%s%s", mark ? y->path : "", mark ? mark + 2 : cases[i].path);
		(void)snprintf(
		    text, sizeof text, "---\nREQUEST_ID: q\nMESSAGE_TYPE: NEW\nREPLY_INBOX_PATH: %s\n---\n\nx\n", path);
		write_file(y, "tester/.mailbox/inbox/q", text);
		workspace_address_in(str_of(path), from);
		struct mr_error err = { 0 };
		enum mr_rc got = post(y, (struct out){ .from = "tester", .to = from, .reply_to = "q" }, NULL, &err);

		if (got != cases[i].want)
			fail_msg("'%s': %s: %s", path, mr_rc_word(got), err.message);
		assert_int_equal(has(y, "tester/.mailbox/inbox/q"), got != MR_OK); /* left pending */
	}
	assert_true(has(y, "lead/.mailbox/inbox/other")); /* the very path that was named */
	assert_true(has(y, "lead/.mailbox/inbox/q"));     /* a folder gets the file under its id */
}

static void
folders_for_answers_can_be_allowed(void **state)
{
	struct yard *y = *state;
	struct delivered asked = { 0 };
	struct mr_message answer = { 0 };
	char text[300];
	const char *dir = in_yard(y, "mailman");

	assert_int_equal(mkdir(dir, 0700), 0);
	struct out question = { .from = "nobody", .to = "tester", .reply_path = dir };

	EXPECT(MR_REFUSED, post(y, (struct out){ .from = "nobody", .to = "tester" }, NULL, &err));
	EXPECT(MR_OK, post(y, question, &asked, &err));
	EXPECT(MR_NOTFOUND, y->ops->face->fetch_answer(y->room, dir, asked.native_id, false, &answer, &err));
	assert_false(has(y, "nobody"));
	struct out reply = { .from = "tester", .to = CLIENT, .reply_to = asked.native_id, .body = "done\n" };
	struct mr_message msg = fetch(y, "tester", asked.id);

	assert_string_equal(msg.from, CLIENT);
	mr_message_done(&msg);
	EXPECT(MR_REFUSED, post(y, reply, NULL, &err));
	(void)snprintf(text, sizeof text, "# of the chat bridge\n%s/\n", dir);
	write_file(y, "tester/.mailbox/reply-paths", text);
	EXPECT(MR_OK, post(y, reply, NULL, &err));
	EXPECT(MR_OK, y->ops->face->fetch_answer(y->room, dir, asked.native_id, true, &answer, &err));
	assert_string_equal(answer.from, "tester");
	assert_memory_equal(answer.body, "done\n", 5);
	mr_message_done(&answer);
	assert_int_equal(count_files(y, "mailman"), 0);
}

static void
scratch_is_never_named(void **state)
{
	struct yard *y = *state;
	char body[300], text[700];

	(void)snprintf(body, sizeof body, "see %s/lead/.mailbox/scratch/notes\n", y->path);
	EXPECT(MR_REFUSED, post(y, (struct out){ .from = "lead", .to = "tester", .body = body }, NULL, &err));
	assert_int_equal(count_files(y, "tester/.mailbox/inbox"), 0);
	assert_int_equal(count_files(y, "lead/.mailbox/scratch"), 0);
	(void)snprintf(text, sizeof text, "---\nREQUEST_ID: s\nMESSAGE_TYPE: NEW\n---\n\n%s", body);
	write_file(y, "lead/.mailbox/inbox/s", text);
	struct seen s = look(y, "lead", MR_INBOX);

	assert_int_equal(s.n, 0);
	assert_int_equal(s.trouble, 1);
	assert_true(has(y, "lead/.mailbox/inbox/s"));
}

static void
what_is_malformed_is_told_and_left_alone(void **state)
{
	struct yard *y = *state;
	static const char *const texts[] = { "no front matter\n", "---\nMESSAGE_TYPE: NEW\n---\n\nx\n",
		"---\nREQUEST_ID: x\nMESSAGE_TYPE: New\n---\n\nx\n",
		"---\nREQUEST_ID: ../x\nMESSAGE_TYPE: NEW\n---\n\nx\n" };
	const char *fine = "---\nCOLOUR: red\nMESSAGE_TYPE: \"NEW\"\r\nREQUEST_ID:   r-1  \n---\nbody without a blank";

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char name[60];

		(void)snprintf(name, sizeof name, "lead/.mailbox/inbox/m%zu", i);
		write_file(y, name, texts[i]);
	}
	write_file(y, "lead/.mailbox/inbox/.hidden", "x");
	write_file(y, "lead/.mailbox/inbox/empty", "");
	write_file(y, "lead/.mailbox/inbox/r-1", fine);
	assert_int_equal(symlink("r-1", in_yard(y, "lead/.mailbox/inbox/link")), 0);
	struct seen s = look(y, "lead", MR_INBOX);

	assert_int_equal(s.trouble, 4);
	assert_int_equal(s.n, 1);
	struct mr_message msg = fetch(y, "lead", s.id);

	assert_string_equal(mr_message_header(&msg, "colour"), "red");
	assert_string_equal(mr_message_header(&msg, "Message-ID"), "r-1");
	assert_non_null(mr_message_header(&msg, "Warning"));
	assert_string_equal(msg.from, CLIENT);
	assert_string_equal(msg.body, "body without a blank");
	mr_message_done(&msg);
	assert_int_equal(count_files(y, "lead/.mailbox/inbox"), 8);
}

/* A peer's cp, made slow: pieces with pauses. */
static void
write_slowly(const char *path, const char *head, unsigned pieces)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	(void)!write(fd, head, strlen(head));
	for (unsigned i = 0; i < pieces; i++) {
		(void)poll(NULL, 0, 20);
		(void)!write(fd, "more\n", 5);
	}
	_exit(close(fd));
}

static void
what_is_still_being_written_is_not_shown(void **state)
{
	struct yard *y = *state;
	static const char *const heads[] = { "---\nREQUEST_ID: p\nMESSAGE_TYPE: NEW\n",
		"---\nREQUEST_ID: p\nMESSAGE_TYPE: NEW\n---\n\n" };
	const char *path = in_yard(y, "lead/.mailbox/inbox/p");
	struct seen s = { 0 };

	write_file(y, "lead/.mailbox/inbox/p", heads[0]); /* begun, and not gone on with for a while */
	s = look(y, "lead", MR_INBOX);
	assert_true(s.n == 0 && s.trouble == 0);
	assert_int_equal(unlink(path), 0);
	pid_t pid = fork();

	if (pid == 0)
		write_slowly(path, heads[1], 15);
	(void)poll(NULL, 0, 60);
	s = look(y, "lead", MR_INBOX);
	assert_true(s.n == 0 && s.trouble == 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	s = look(y, "lead", MR_INBOX);
	assert_int_equal(s.n, 1);
	struct mr_message msg = fetch(y, "lead", s.id);

	assert_int_equal(msg.body_len, 15 * 5);
	mr_message_done(&msg);
}

#define MANY 30

static void
two_workers_never_get_the_same(void **state)
{
	struct yard *y = *state;
	struct delivered sent[MANY] = { 0 };
	int taken[2] = { 0 }, status = 0;

	for (size_t i = 0; i < MANY; i++)
		EXPECT(MR_OK, post(y, (struct out){ .from = "lead", .to = "tester" }, &sent[i], &err));
	pid_t pid = fork();

	for (size_t i = 0; i < MANY; i++) {
		struct mr_error err = { 0 };
		struct mr_room *own = i == 0 ? open_at(y, "tester") : NULL;
		static struct mr_room *room;

		if (own)
			room = own;
		size_t which = pid == 0 ? i : MANY - 1 - i;
		struct kit_items found = { 0 };
		struct kit_item *item = NULL;
		struct kit_box *box = NULL;

		(void)kit_box_open(room, "tester", BOX_AS_IT_IS, &box, &err);
		taken[pid == 0] += kit_find(box, sent[which].id, MR_INBOX, &found, &item, &err) == MR_OK &&
				   claim_take(box, &found, item, &err) == MR_OK;
		kit_items_done(&found);
		kit_box_close(&box);
		if (i == MANY - 1)
			mr_room_close(room);
	}
	if (pid == 0)
		_exit(taken[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(taken[0] + WEXITSTATUS(status), MANY);
	assert_int_equal(count_files(y, "tester/.mailbox/inbox"), 0);
}

/* What a peer sees that lists the inbox all the time: whole messages under their ids, and names with a dot. */
static void
watch_inbox(const char *path)
{
	for (unsigned long seen = 0; seen < 1000;) {
		DIR *d = opendir(path);

		seen = 0;
		for (const struct dirent *e; (e = readdir(d)) != NULL;) {
			char file[700], text[600];

			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(file, sizeof file, "%s/%s", path, e->d_name);
			FILE *f = fopen(file, "r");
			size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

			if (f)
				(void)fclose(f);
			text[n] = '\0';
			if (strlen(e->d_name) != 32 || n < 20 || strcmp(text + n - 14, "the last line\n") != 0)
				_exit(1);
			seen++;
		}
		(void)closedir(d);
	}
	_exit(0);
}

static void
a_peer_never_sees_half_a_message(void **state)
{
	struct yard *y = *state;
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		watch_inbox(in_yard(y, "tester/.mailbox/inbox"));
	for (size_t i = 0; i < 1000; i++)
		EXPECT(MR_OK,
		    post(y, (struct out){ .from = "lead", .to = "tester", .body = "x\nthe last line\n" }, NULL, &err));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_question_is_answered_under_its_id, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(a_follow_up_survives_the_answer, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(a_busy_destination_is_not_written_over, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(older_questions_of_a_channel_get_the_empty_answer, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(hostile_reply_paths_are_refused, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(folders_for_answers_can_be_allowed, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(scratch_is_never_named, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(what_is_malformed_is_told_and_left_alone, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(what_is_still_being_written_is_not_shown, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(two_workers_never_get_the_same, yard_up, yard_down),
		cmocka_unit_test_setup_teardown(a_peer_never_sees_half_a_message, yard_up, yard_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
