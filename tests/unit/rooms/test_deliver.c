/* SPDX-License-Identifier: MIT */
/* Delivery to one: what is there after a kill or an error at every system call. */
#include "support/sys_fault.h"
#include "station.h"

static void
a_delivered_message_is_one_whole_unwritable_file(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct stat st;
	char path[400], name[NAME_LEN], month[24], sent[80];

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(copies_of(&s, "a"), 1);
	name_for_id(got.id, name);
	(void)snprintf(path, sizeof path, "%s/agents/a/new/%s", s.path, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_nlink, 2); /* and the sender's .Sent */
	name_month(SENT_FOLDER, id_time_ms(got.id), month);
	(void)snprintf(sent, sizeof sent, "agents/sender/%s/cur", month);
	assert_int_equal(count_in(&s, sent), 1);
}

static void
one_delivery_syncs_contents_link_and_folder(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	sys_plan_set(&(struct sys_plan){ 0 });
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(sys_syncs(), 3);
	sys_plan_set(NULL);
}

#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
static unsigned long
syncs_of_a_send(size_t recipients, const char *key, const char *how)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	room_settings = fast_room;
	scratch_new(&s);
	room_settings = plain_room;
	assert_int_equal(send_text(&s, recipients, "first", BODY, &got, &err), MR_OK); /* makes keys/sender */
	mr_names_done(&got.missing);
	assert_true(sys_break_set(how));
	reopen(&s);
	sys_plan_set(&(struct sys_plan){ 0 });
	assert_int_equal(send_text(&s, recipients, key, BODY, &got, &err), MR_OK);
	unsigned long n = sys_syncs();
	sys_plan_set(NULL);
	assert_true(sys_break_set(NULL));
	mr_names_done(&got.missing);
	return n;
}

/* The commit of the folder carries bytes and name; where nobody knows that it does, nothing is left out. */
static void
sync_fast_is_one_commit_only_where_the_order_is_kept(void **state)
{
	(void)state;
	assert_int_equal(syncs_of_a_send(1, NULL, "ordered"), 1);
	assert_int_equal(syncs_of_a_send(3, NULL, "ordered"), 1 + 3);         /* spool/, each new/ */
	assert_int_equal(syncs_of_a_send(1, "second", "ordered"), 1 + 1 + 1); /* spool/, keys/sender, new/ */
	assert_int_equal(syncs_of_a_send(1, NULL, NULL), 3);                  /* tests run in memory */
	assert_int_equal(syncs_of_a_send(3, NULL, NULL), 6 + 3);
}
#endif

static void
an_unknown_recipient_is_refused_and_hold_makes_the_mailbox(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	char *names[] = { (char *)(uintptr_t) "nobody/here" };
	struct mr_names to = { names, 1 };
	struct mr_message msg = { .from = "sender",
		.subject = "hello",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = strlen(BODY),
		.to = to };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_deliver(&s.room, &what, &got, &err), MR_NOTFOUND);
	what.make_mailboxes = true;
	assert_int_equal(maildir_deliver(&s.room, &what, &got, &err), MR_OK);
	assert_int_equal(copies_of(&s, "nobody/here"), 1);
}

static void
a_taken_name_is_never_overwritten(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	char *names[] = { (char *)(uintptr_t) "a" };
	struct mr_names to = { names, 1 };
	struct mr_message msg = { .from = "sender",
		.subject = "hello",
		.type = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = strlen(BODY),
		.to = to };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered first = { 0 }, second = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	id_new(msg.id);
	msg.thread = msg.id;
	assert_int_equal(maildir_deliver(&s.room, &what, &first, &err), MR_OK);
	assert_int_equal(maildir_deliver(&s.room, &what, &second, &err), MR_OK);
	assert_string_not_equal(first.id, second.id);
	assert_string_equal(msg.thread, second.id);
	assert_int_equal(copies_of(&s, "a"), 2);
}

static void
send_to_one(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_plain(s, 1, &got, &err) == MR_OK ? 0 : 1);
}

static void
a_kill_at_any_call_leaves_the_whole_message_or_nothing(void **state)
{
	unsigned long points = 0, with = 0, without = 0;

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		for (unsigned long at = 1;; at++) {
			mr_auto(scratch_done) struct scratch s;

			scratch_new(&s);
			bool hit = killed_at(&s, kind ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_to_one);

			recover(&s);
			*(reached(&s, 1) == 1 ? &with : &without) += hit;
			if (!hit) {
				assert_int_equal(reached(&s, 1), 1);
				break;
			}
			points++;
		}
	}
	assert_true(points > 12 && with > 4 && without > 4);
}

static void
an_error_at_any_call_of_a_delivery_is_told_as_it_is(void **state)
{
	(void)state;
	try_errors(1, 60);
}

#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
static void
an_error_at_any_call_of_a_fast_delivery_is_told_as_it_is(void **state)
{
	(void)state;
	room_settings = fast_room;
	assert_true(sys_break_set("ordered"));
	try_errors(1, 60);
	assert_true(sys_break_set(NULL));
	room_settings = plain_room;
}
#endif

/* The copy of an agent that was removed while the group was sent is a dead letter, whatever fails behind that. */
static void
a_batch_says_where_the_mail_of_a_removed_agent_is(void **state)
{
	unsigned told = 0;
	bool hit = true;

	(void)state;
	for (unsigned long at = 1; hit && at < 300; at++) {
		mr_auto(scratch_done) struct scratch s;
		char name[] = "a", *names[] = { name };
		struct mr_names to = { names, 1 };
		struct mr_message messages[2];
		struct parcel parcels[2] = { 0 };

		scratch_new(&s);
		for (size_t i = 0; i < 2; i++) {
			messages[i] = (struct mr_message){ .from = "sender",
				.to = to,
				.subject = "s",
				.type = "",
				.thread = "",
				.reply_to = "",
				.replace_key = "",
				.path = "",
				.date_ms = 1700000000000,
				.body = "text",
				.body_len = 4 };
			id_new(messages[i].id);
			parcels[i].what = (struct delivery){ .msg = &messages[i], .to = &to, .sender = "sender" };
		}
		sys_plan_set(
		    &(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .for_good = true, .error = ENOENT });
		struct delivery many = parcels[0].what;
		struct delivered ignored = { 0 };

		many.many = parcels;
		many.many_n = 2;
		assert_int_equal(maildir_deliver(&s.room, &many, &ignored, &(struct mr_error){ 0 }), MR_OK);
		hit = sys_plan_hit();
		sys_plan_set(NULL);
		for (size_t i = 0; i < 2; i++) {
			mr_names_done(&parcels[i].got.missing);
			if (!strstr(parcels[i].err.message, "was removed just now"))
				continue;
			told++;
			assert_int_equal(parcels[i].rc, MR_NOTFOUND);
			assert_non_null(strstr(parcels[i].err.hint, "among the dead letters"));
		}
	}
	assert_true(told > 0);
}

static enum mr_rc
import(struct mr_room *room, const char *to, const char *id)
{
	char *names[] = { (char *)(uintptr_t)to };
	struct mr_names one = { names, 1 };
	struct mr_message msg = { .from = "x",
		.subject = "old",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = sizeof BODY - 1,
		.to = one,
		.date_ms = 1700000000000 };
	struct delivery what = { .msg = &msg, .to = &one, .sender = "", .keep = true };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)snprintf(msg.id, sizeof msg.id, "%s", id);
	return maildir_deliver(room, &what, &got, &err);
}

/* Each remembers what the mailbox had when it looked. */
static void
of_two_that_import_at_once_one_delivers(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_room other = { 0 };
	char ids[4][MR_ID_LEN + 1];
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_open(&other, s.path, &err), MR_OK);
	for (size_t i = 0; i < 4; i++)
		id_new(ids[i]);
	assert_int_equal(import(&s.room, "a", ids[0]), MR_OK);
	assert_int_equal(import(&other, "a", ids[1]), MR_OK);
	assert_int_equal(maildir_mark(&other, "a", ids[1], 0, 0, MR_ARCHIVE, &err), MR_OK);
	assert_int_equal(import(&s.room, "a", ids[1]), MR_EXISTS);
	assert_int_equal(import(&s.room, "a", ids[0]), MR_EXISTS);
	assert_int_equal(import(&s.room, "b", ids[0]), MR_OK); /* another mailbox */
	assert_int_equal(import(&other, "a", ids[0]), MR_EXISTS);
	assert_int_equal(import(&s.room, "a", ids[2]), MR_OK);
	assert_int_equal(import(&other, "a", ids[3]), MR_OK);
	maildir_close(&other);
	record_done(&other.settings);
	free(other.name);
	free(other.spec);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delivered_message_is_one_whole_unwritable_file),
		cmocka_unit_test(one_delivery_syncs_contents_link_and_folder),
#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
		cmocka_unit_test(sync_fast_is_one_commit_only_where_the_order_is_kept),
#endif
		cmocka_unit_test(an_unknown_recipient_is_refused_and_hold_makes_the_mailbox),
		cmocka_unit_test(a_taken_name_is_never_overwritten),
		cmocka_unit_test(of_two_that_import_at_once_one_delivers),
		cmocka_unit_test(a_batch_says_where_the_mail_of_a_removed_agent_is),
		cmocka_unit_test(a_kill_at_any_call_leaves_the_whole_message_or_nothing),
		cmocka_unit_test(an_error_at_any_call_of_a_delivery_is_told_as_it_is),
#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
		cmocka_unit_test(an_error_at_any_call_of_a_fast_delivery_is_told_as_it_is),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
