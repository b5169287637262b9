/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "town.h"

static void
refuse(struct town *t, const struct mr_draft *draft, enum mr_rc want)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };

	assert_rc(mr_send(t->room, &t->alice, draft, &receipt, &err), want);
	assert_true(err.message[0] != '\0');
	assert_int_equal(receipt.to.n, 0);
}

static void
something_is_said_once_a_life(void **state)
{
	struct town t = town_new(state);
	struct mr_self next = t.alice;

	next.life++;
	assert_true(agent_said_first(t.room, &t.alice, "storage"));
	assert_false(agent_said_first(t.room, &t.alice, "storage"));
	assert_true(agent_said_first(t.room, &t.alice, "other"));
	assert_true(agent_said_first(t.room, &next, "storage"));
	assert_false(agent_said_first(t.room, &next, "storage"));
	town_done(&t);
}

static void
a_refused_send_leaves_nothing(void **state)
{
	struct town t = town_new(state);
	char long_key[300];
	char *huge = calloc(1, MR_BODY_MAX + 1);

	memset(long_key, 'k', sizeof(long_key) - 1);
	long_key[sizeof(long_key) - 1] = '\0';
	assert_non_null(huge);
	memset(huge, 'x', MR_BODY_MAX + 1);
	struct mr_draft good = draft_to(TO("bob"), "hello"), d = good;

	d.to = TO("bob", "nobody"), refuse(&t, &d, MR_NOTFOUND);
	d.to = TO("bob", "two words"), refuse(&t, &d, MR_REFUSED);
	d.to = TO("bob", "../carol"), refuse(&t, &d, MR_REFUSED);
	d.to = TO("bob", "carol@elsewhere"), refuse(&t, &d, MR_REFUSED);
	d.to = TO("bob", "queue:work"), refuse(&t, &d, MR_NOTFOUND);
	d.to = TO("bob", "@nonsense"), refuse(&t, &d, MR_NOTFOUND);
	d.to = TO("bob", ""), refuse(&t, &d, MR_REFUSED);
	d = good, d.to = TO(NULL), refuse(&t, &d, MR_REFUSED);
	d = good, d.body = " \n\t", d.body_len = 3, refuse(&t, &d, MR_REFUSED);
	d = good, d.body = huge, d.body_len = MR_BODY_MAX + 1, refuse(&t, &d, MR_REFUSED);
	d = good, d.subject = "a\nBcc: carol", refuse(&t, &d, MR_REFUSED);
	d = good, d.subject = "bad \xff utf-8", refuse(&t, &d, MR_REFUSED);
	d = good, d.type = "two words", refuse(&t, &d, MR_REFUSED);
	d = good, d.type = "a\nb", refuse(&t, &d, MR_REFUSED);
	d = good, d.key = long_key, refuse(&t, &d, MR_REFUSED);
	d = good, d.key = "a\nb", refuse(&t, &d, MR_REFUSED);
	d = good, d.replace_key = "", refuse(&t, &d, MR_REFUSED);
	d = good, d.thread = "no thread", refuse(&t, &d, MR_REFUSED);
	d = good, d.reply_to = "01k9w3b7zq8m4c2v6t1x5n0prs", refuse(&t, &d, MR_NOTFOUND);
	d = good, d.priority = 7, refuse(&t, &d, MR_REFUSED);
	struct mr_header forged[] = { { "From", "operator" }, { "References", "<x@y>" }, { "X", "a\r\nTo: carol" },
		{ "A b", "c" } };

	for (size_t i = 0; i < 4; i++)
		d = good, d.headers = &forged[i], d.headers_n = 1, refuse(&t, &d, MR_REFUSED);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), 0);
	assert_int_equal(town_count(&t, "alice", MR_SENT), 0);
	free(huge);
	town_done(&t);
}

static void
a_sender_must_be_registered_and_not_fenced(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "hello");
	struct mr_self stranger = { .agent = "stranger" }, new_life = { 0 }, bound = t.operator;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	bound.bound = true;
	assert_rc(mr_send(t.room, &stranger, &draft, &receipt, &err), MR_NOTFOUND);
	assert_rc(mr_send(t.room, &bound, &draft, &receipt, &err), MR_REFUSED);
	town_register(&t, "alice", true, &new_life);
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	town_send(&t, &new_life, "bob", "hello", NULL);
	town_send(&t, &t.operator, "bob", "hello", NULL);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 2);
	town_done(&t);
}

static void
an_unknown_recipient_is_refused_with_near_names(void **state)
{
	struct town t = town_new(state);
	struct mr_self witness;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bbo"), "hello");

	town_register(&t, "green/witness", false, &witness);
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'bob'"));
	assert_non_null(strstr(err.hint, "--hold"));
	draft.to = TO("witness");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'green/witness'"));
	draft.to = TO("please tell bob");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "-m"));
	town_done(&t);
}

static void
hold_makes_a_mailbox_that_waits(void **state)
{
	struct town t = town_new(state);
	struct mr_self dora;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("dora"), "welcome");

	draft.hold = true;
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.not_live.n, 1);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "dora").n, 1);
	town_register(&t, "dora", false, &dora);
	assert_int_equal(town_unread(&t, "dora").n, 1);
	town_done(&t);
}

static void
nobody_gets_it_twice(void **state)
{
	struct town t = town_new(state);
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_message msg = { 0 };
	struct mr_draft draft = draft_to(TO("bob", "bob/", "bob@town", "human", "@overseer", "alice"), "hello");

	draft.cc = TO("carol", "bob", OPERATOR, "*");
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 4);
	assert_string_equal(receipt.to.v[0], "bob");
	assert_string_equal(receipt.to.v[1], OPERATOR);
	assert_string_equal(receipt.to.v[2], "alice");
	assert_string_equal(receipt.to.v[3], "carol");
	assert_int_equal(receipt.not_live.n, 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(town_count(&t, receipt.to.v[i], MR_INBOX), 1);
	assert_ok(mr_fetch(t.room, "carol", receipt.id, &msg, &err));
	assert_int_equal(msg.to.n, 3);
	assert_int_equal(msg.cc.n, 1);
	assert_string_equal(msg.cc.v[0], "carol");
	assert_string_equal(msg.from, "alice");
	assert_int_equal(msg.sender_life, t.alice.life);
	assert_string_equal(msg.subject, "hello");
	mr_message_done(&msg);
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
patterns_match_whole_parts_and_leave_out_the_sender(void **state)
{
	struct town t = town_new(state);
	struct mr_self crew1, crew2, witness;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("green/crew/*"), "hello");

	town_register(&t, "green/crew/one", false, &crew1);
	town_register(&t, "green/crew/two", false, &crew2);
	town_register(&t, "blue/witness", false, &witness);
	assert_ok(mr_send(t.room, &crew1, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 1);
	assert_string_equal(receipt.to.v[0], "green/crew/two");
	mr_receipt_done(&receipt);
	draft.to = TO("*/witness");
	assert_ok(mr_send(t.room, &crew1, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 1);
	mr_receipt_done(&receipt);
	draft.to = TO("@all", "bob");
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 5); /* not alice, not the operator */
	assert_false(names_has(&receipt.to, OPERATOR));
	mr_receipt_done(&receipt);
	draft.to = TO("red/*");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_NOTFOUND);
	draft.to = TO("green/cr*/one");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	town_done(&t);
}

static void
a_dry_run_checks_all_and_writes_nothing(void **state)
{
	struct town t = town_new(state);
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bob"), "hello");

	draft.dry_run = true;
	draft.key = "k";
	draft.by_ms = 1;
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(strlen(receipt.id), MR_ID_LEN);
	assert_int_equal(receipt.to.n, 1);
	mr_receipt_done(&receipt);
	draft.subject = "a\nb";
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	assert_int_equal(town_count(&t, "alice", MR_SENT), 0);
	town_done(&t);
}

static void
a_key_makes_one_message_of_many_sends(void **state)
{
	struct town t = town_new(state);
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bob", "carol"), "hello");
	char first[MR_ID_LEN + 1];

	draft.key = "deploy 7";
	town_send_draft(&t, &t.alice, &draft, first);
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_true(receipt.repeated);
	assert_string_equal(receipt.id, first);
	mr_receipt_done(&receipt);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 1);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), 1);
	draft.body = "hallo";
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	town_send_draft(&t, &t.bob, &draft, NULL); /* keys belong to their sender */
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 2);
	town_done(&t);
}

static void
a_replace_key_retires_older_unread_mail_of_that_sender_only(void **state)
{
	struct town t = town_new(state);
	struct mr_draft status = draft_to(TO("bob"), "status");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char last[MR_ID_LEN + 1];

	status.replace_key = "status";
	town_send(&t, &t.alice, "bob", "no key", NULL);
	for (int i = 0; i < 3; i++) {
		town_send_draft(&t, &t.alice, &status, last);
		town_send_draft(&t, &t.carol, &status, NULL);
	}
	struct seen unread = town_unread(&t, "bob");

	assert_int_equal(unread.n, 3); /* the one without, and the last of each */
	assert_string_equal(unread.ids[1], last);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 4);
	status.replace_key = "other";
	assert_ok(mr_send(t.room, &t.alice, &status, &receipt, &err));
	assert_int_equal(receipt.retired, 0);
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
a_replace_key_leaves_held_and_newer_mail_alone(void **state)
{
	struct town t = town_new(state);
	struct mr_draft status = draft_to(TO("bob"), "status");
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char done[MR_ID_LEN + 1], newest[MR_ID_LEN + 1];

	status.replace_key = "status";
	town_send_draft(&t, &t.alice, &status, NULL);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	town_send_draft(&t, &t.alice, &status, newest);
	assert_int_equal(town_count(&t, "bob", MR_HELD), 1);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, done, NULL, &err));
	/* A send whose id is older than what is there (two processes at once) must not retire the newer one.
	 */
	clock_shift_ms(-3600 * 1000);
	struct mr_message late = { .from = "alice",
		.subject = "s",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "status",
		.body = "late",
		.body_len = 4,
		.path = "",
		.date_ms = 1 };
	struct mr_names to = { (char *[]){ (char[]){ "bob" } }, 1 };
	struct delivery what = { .msg = &late, .to = &to, .sender = "alice" };
	struct delivered got = { 0 };

	(void)snprintf(late.id, sizeof(late.id), "01k0000000000000000000aaaa");
	assert_ok(t.room->driver->deliver(t.room, &what, &got, &err));
	clock_shift_ms(0);
	struct seen unread = town_unread(&t, "bob");

	assert_int_equal(unread.n, 2);
	town_send_draft(&t, &t.alice, &status, newest);
	unread = town_unread(&t, "bob");
	assert_int_equal(unread.n, 1);
	assert_string_equal(unread.ids[0], newest);
	town_done(&t);
}

static pid_t
send_status_from_a_child(struct town *t, const struct mr_self *self)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	struct mr_draft status = draft_to(TO("bob"), "status");
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };
	bool ok = mr_room_open(mr_room_spec(t->room), NULL, &room, &err) == MR_OK;

	status.replace_key = "status";
	for (int i = 0; ok && i < 30; i++) {
		struct mr_receipt receipt = { 0 };

		ok = mr_send(room, self, &status, &receipt, &err) == MR_OK;
		mr_receipt_done(&receipt);
	}
	_exit(ok ? 0 : 1);
}

static void
replacing_from_several_processes_never_leaves_an_empty_inbox(void **state)
{
	struct town t = town_new(state);
	struct mr_draft status = draft_to(TO("bob"), "status");
	pid_t children[3];
	size_t looks = 0;
	int running = 3;

	status.replace_key = "status";
	town_send_draft(&t, &t.alice, &status, NULL);
	children[0] = send_status_from_a_child(&t, &t.alice);
	children[1] = send_status_from_a_child(&t, &t.alice);
	children[2] = send_status_from_a_child(&t, &t.carol);
	while (running > 0) {
		int result = 0;

		struct mr_scan unread = { .filter = { .unread = true }, .order = looks++ % 4 };

		assert_true(town_scan(&t, "bob", &unread).n > 0);
		for (size_t i = 0; i < 3; i++)
			if (children[i] > 0 && waitpid(children[i], &result, WNOHANG) == children[i]) {
				assert_int_equal(result, 0);
				children[i] = 0;
				running--;
			}
	}
	assert_true(looks > 3);
	town_send_draft(&t, &t.alice, &status, NULL);
	town_send_draft(&t, &t.carol, &status, NULL);
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_int_equal(town_count(&t, "bob", MR_INBOX | MR_ARCHIVE), 93);
	town_done(&t);
}

static void
a_chain_of_replies_stays_one_thread(void **state)
{
	struct town t = town_new(state);
	struct mr_self *who[2] = { &t.alice, &t.bob };
	struct mr_receipt receipt = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char root[MR_ID_LEN + 1], last[MR_ID_LEN + 1], first_reference[MR_ID_LEN + 10];
	struct mr_draft start = draft_to(TO("bob"), "how are you"), answer = draft_to(NULL, "fine, and you");

	start.priority = MR_URGENT;
	town_send_draft(&t, &t.alice, &start, root);
	memcpy(last, root, sizeof(last));
	for (size_t i = 0; i < 25; i++) {
		assert_ok(mr_reply(t.room, who[(i + 1) % 2], last + 14, &answer, false, &receipt, &err));
		assert_string_equal(receipt.to.v[0], who[i % 2]->agent);
		memcpy(last, receipt.id, sizeof(last));
		mr_receipt_done(&receipt);
	}
	assert_ok(mr_fetch(t.room, "bob", last, &msg, &err));
	assert_string_equal(msg.thread, root);
	assert_string_equal(msg.subject, "Re: how are you");
	assert_int_equal(msg.priority, MR_URGENT);
	(void)snprintf(first_reference, sizeof(first_reference), "<%s@town>", root);
	const char *references = mr_message_header(&msg, "References");
	size_t n = 0;

	assert_non_null(references);
	assert_ptr_equal(strstr(references, first_reference), references);
	for (const char *c = references; *c; c++)
		n += *c == '<';
	assert_int_equal(n, 20);
	mr_message_done(&msg);
	assert_ok(mr_fetch(t.room, "bob", root, &msg, &err));
	assert_true(msg.flags & MR_REPLIED);
	assert_false(msg.flags & MR_SEEN);
	mr_message_done(&msg);
	struct mr_scan all = { .filter = { .folders = MR_INBOX | MR_SENT, .thread = last + 20 } };

	assert_int_equal(town_scan(&t, "bob", &all).n, 26);
	town_done(&t);
}

static void
a_reply_goes_to_the_sender_and_with_all_to_the_others(void **state)
{
	struct town t = town_new(state);
	struct mr_draft ask = draft_to(TO("bob"), "question"), answer = draft_to(NULL, "answer");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	ask.cc = TO("carol");
	town_send_draft(&t, &t.alice, &ask, id);
	assert_ok(mr_reply(t.room, &t.bob, id, &answer, true, &receipt, &err));
	assert_int_equal(receipt.to.n, 2);
	assert_string_equal(receipt.to.v[0], "alice");
	assert_string_equal(receipt.to.v[1], "carol");
	mr_receipt_done(&receipt);
	assert_ok(mr_reply(t.room, &t.alice, id, &answer, false, &receipt, &err)); /* to one's own: who got it */
	assert_int_equal(receipt.to.n, 1);
	assert_string_equal(receipt.to.v[0], "bob");
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
a_thread_is_a_word_or_that_of_a_known_message(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "hello");
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char first[MR_ID_LEN + 1], id[MR_ID_LEN + 1];

	draft.thread = "release-7";
	town_send_draft(&t, &t.alice, &draft, first);
	draft.thread = first + 18;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_string_equal(msg.thread, "release-7");
	mr_message_done(&msg);
	draft.thread = NULL;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_string_equal(msg.thread, id);
	mr_message_done(&msg);
	town_done(&t);
}

/* ---- Answers that are due ---- */

static size_t
overdue(struct town *t)
{
	mr_auto(mr_list_done) struct mr_dues dues = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_overdue(t->room, &t->alice, &dues, &err));
	for (size_t i = 0; i < dues.n; i++) {
		assert_string_equal(dues.v[i].to, "bob");
		assert_string_equal(dues.v[i].subject, "question");
		mr_overdue_told(t->room, &t->alice, dues.v[i].id);
	}
	return dues.n;
}

static void
an_answer_that_did_not_come_is_reported_once(void **state)
{
	struct town t = town_new(state);
	struct mr_draft ask = draft_to(TO("bob"), "question"), answer = draft_to(NULL, "answer");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	ask.by_ms = clock_now_ms() + 3600 * 1000;
	town_send_draft(&t, &t.alice, &ask, NULL);
	town_send_draft(&t, &t.alice, &ask, id);
	assert_int_equal(overdue(&t), 0);
	assert_ok(mr_reply(t.room, &t.bob, id, &answer, false, &receipt, &err));
	mr_receipt_done(&receipt);
	ask.to = TO("nobody");
	assert_rc(mr_send(t.room, &t.alice, &ask, &receipt, &err), MR_NOTFOUND);
	clock_shift_ms(2 * 3600 * 1000);
	assert_int_equal(overdue(&t), 1);
	assert_int_equal(overdue(&t), 0);
	clock_shift_ms(0);
	town_done(&t);
}

static void
only_answers_that_are_really_missing_are_reported(void **state)
{
	struct town t = town_new(state);
	struct mr_draft ask = draft_to(TO("bob"), "question"), answer = draft_to(TO("alice"), "answer");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char archived[MR_ID_LEN + 1], by_hand[MR_ID_LEN + 1], purged[MR_ID_LEN + 1], reply[MR_ID_LEN + 1];
	const struct room_driver *real = t.room->driver;
	struct room_driver forgetful = *real;

	ask.by_ms = clock_now_ms() + 3600 * 1000;
	town_send_draft(&t, &t.alice, &ask, archived);
	town_send_draft(&t, &t.alice, &ask, by_hand);
	town_send_draft(&t, &t.alice, &ask, purged);
	answer.reply_to = archived; /* send --reply-to answers as well as reply does */
	town_send_draft(&t, &t.bob, &answer, reply);
	assert_ok(mr_mark(t.room, &t.alice, reply, MR_SEEN, 0, &err));
	assert_ok(mr_archive(t.room, &t.alice, reply, &err));
	forgetful.record_drop =
	    room_missing.record_drop; /* an answer from a mail client, which knows nothing of records */
	t.room->driver = &forgetful;
	assert_ok(mr_reply(t.room, &t.bob, by_hand, &answer, false, &receipt, &err));
	mr_receipt_done(&receipt);
	t.room->driver = real;
	assert_ok(mr_purge(t.room, &t.alice, purged, "test", NULL, &err));
	clock_shift_ms(2 * 3600 * 1000);
	assert_int_equal(overdue(&t), 0);
	clock_shift_ms(0);
	town_done(&t);
}

/* ---- In doubt, and rooms that can do less ---- */

static enum mr_rc
deliver_in_doubt(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	(void)room;
	memcpy(ret->id, what->msg->id, sizeof(ret->id));
	assert_true(names_add(&ret->missing, STR("carol")));
	return mr_fail(err, MR_INDOUBT, "one is missing");
}

static void
in_doubt_fills_the_receipt(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver doubtful = *real;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bob", "carol"), "hello");

	doubtful.deliver = deliver_in_doubt;
	t.room->driver = &doubtful;
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_INDOUBT);
	assert_int_equal(strlen(receipt.id), MR_ID_LEN);
	assert_int_equal(receipt.to.n, 2);
	assert_int_equal(receipt.missing.n, 1);
	mr_receipt_done(&receipt);
	doubtful.abilities &= ~(unsigned)ROOM_KEYS;
	draft.key = "k";
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "room has no send keys"));
	t.room->driver = real;
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(something_is_said_once_a_life),
		ON_BOTH(a_refused_send_leaves_nothing),
		ON_BOTH(a_sender_must_be_registered_and_not_fenced),
		ON_BOTH(an_unknown_recipient_is_refused_with_near_names),
		ON_BOTH(hold_makes_a_mailbox_that_waits),
		ON_BOTH(nobody_gets_it_twice),
		ON_BOTH(patterns_match_whole_parts_and_leave_out_the_sender),
		ON_BOTH(a_dry_run_checks_all_and_writes_nothing),
		ON_BOTH(a_key_makes_one_message_of_many_sends),
		ON_BOTH(a_replace_key_retires_older_unread_mail_of_that_sender_only),
		ON_BOTH(a_replace_key_leaves_held_and_newer_mail_alone),
		ON_MAILDIR(replacing_from_several_processes_never_leaves_an_empty_inbox),
		ON_BOTH(a_chain_of_replies_stays_one_thread),
		ON_BOTH(a_reply_goes_to_the_sender_and_with_all_to_the_others),
		ON_BOTH(a_thread_is_a_word_or_that_of_a_known_message),
		ON_BOTH(an_answer_that_did_not_come_is_reported_once),
		ON_BOTH(only_answers_that_are_really_missing_are_reported),
		ON_BOTH(in_doubt_fills_the_receipt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
