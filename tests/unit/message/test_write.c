/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "message/message.h"

#define ID "01k9w3b7zq8m4c2v6t1x5n0prs"
#define OTHER "01k9w3b7zq8m4c2v6t1x5n0prt"

static struct mr_message
sample(void)
{
	static char refinery[] = "greenplace/refinery";
	static char *to[] = { refinery };

	return (struct mr_message){
		.id = ID,
		.from = "greenplace/witness",
		.to = { to, 1 },
		.subject = "MERGE_READY nux",
		.date_ms = 1772706600000,
		.type = "MERGE_READY",
		.priority = MR_HIGH,
		.thread = ID,
		.reply_to = "",
		.replace_key = "",
		.body = "Branch: feature-xyz\n",
		.body_len = 20,
	};
}

static void
expect_refused(const struct mr_message *msg, const char *room, const char *says)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	assert_int_equal(message_write(msg, room, &out, &err), MR_REFUSED);
	if (!strstr(err.message, says))
		fail_msg("want '%s' in '%s'", says, err.message);
	assert_true(err.hint[0] != '\0');
	assert_null(strchr(err.message, '\n'));
	assert_int_equal(out.len, 0);
}

static void
expect_text(const struct mr_message *msg, const char *want)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	assert_int_equal(message_write(msg, "town", &out, &err), MR_OK);
	assert_string_equal(buf_z(&out), want);
}

static void
the_bytes_of_a_message_are_these(void **state)
{
	struct mr_message msg = sample();

	(void)state;
	expect_text(&msg, "From: greenplace/witness@town\n"
			  "To: greenplace/refinery@town\n"
			  "Subject: MERGE_READY nux\n"
			  "Date: Thu, 05 Mar 2026 10:30:00 +0000\n"
			  "Message-ID: <" ID "@town>\n"
			  "Mailroom-Type: MERGE_READY\n"
			  "Mailroom-Priority: high\n"
			  "MIME-Version: 1.0\n"
			  "Content-Type: text/markdown; charset=utf-8\n"
			  "Content-Transfer-Encoding: 8bit\n"
			  "\n"
			  "Branch: feature-xyz\n");
}

static void
all_fields_come_in_a_fixed_order(void **state)
{
	struct mr_message msg = sample();
	char cc1[] = "carol@elsewhere", cc2[] = "dave";
	char *cc[] = { cc1, cc2 };
	const struct mr_header extra[] = { { "X-Branch", "main" }, { "References", "<a@b> <c@d>" } };

	(void)state;
	msg.cc = (struct mr_names){ cc, 2 };
	msg.thread = "my-thread";
	msg.reply_to = OTHER;
	msg.sender_life = 3;
	msg.by_ms = 1772710200500;
	msg.not_before_ms = 1772710200000;
	msg.replace_key = "status";
	msg.headers = extra;
	msg.headers_n = 2;
	msg.body = "no newline";
	msg.body_len = 10;
	expect_text(&msg, "From: greenplace/witness@town\n"
			  "To: greenplace/refinery@town\n"
			  "Cc: carol@elsewhere, dave@town\n"
			  "Subject: MERGE_READY nux\n"
			  "Date: Thu, 05 Mar 2026 10:30:00 +0000\n"
			  "Message-ID: <" ID "@town>\n"
			  "In-Reply-To: <" OTHER "@town>\n"
			  "References: <a@b> <c@d>\n"
			  "Mailroom-Type: MERGE_READY\n"
			  "Mailroom-Priority: high\n"
			  "Mailroom-Thread: my-thread\n"
			  "Mailroom-Life: 3\n"
			  "Mailroom-By: 2026-03-05T11:30:00.500Z\n"
			  "Mailroom-Not-Before: 2026-03-05T11:30:00.000Z\n"
			  "Mailroom-Replace-Key: status\n"
			  "X-Branch: main\n"
			  "MIME-Version: 1.0\n"
			  "Content-Type: text/markdown; charset=utf-8\n"
			  "Content-Transfer-Encoding: 8bit\n"
			  "\n"
			  "no newline\n");
}

static void
references_are_thread_and_message_answered(void **state)
{
	struct mr_message msg = sample();
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	(void)state;
	msg.thread = "01k9w3b7zq8m4c2v6t1x5n0pr0";
	msg.reply_to = OTHER;
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	assert_non_null(strstr(out.ptr, "\nReferences: <01k9w3b7zq8m4c2v6t1x5n0pr0@town> <" OTHER "@town>\n"));
	assert_null(strstr(out.ptr, "Mailroom-Thread"));
	buf_clear(&out);
	msg.thread = OTHER;
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	assert_non_null(strstr(out.ptr, "\nReferences: <" OTHER "@town>\n"));
	buf_clear(&out);
	msg.thread = msg.reply_to = "foreign.1@example.org";
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	assert_non_null(
	    strstr(out.ptr, "\nIn-Reply-To: <foreign.1@example.org>\nReferences: <foreign.1@example.org>\n"));
}

static void
no_field_can_carry_a_header_of_its_own(void **state)
{
	static const char *const evil[] = { "x\nBcc: evil", "x\r\nBcc: evil", "x\rBcc: evil", "x\xff", "\xed\xa0\x80" };

	(void)state;
	for (size_t i = 0; i < sizeof(evil) / sizeof(*evil); i++) {
		const char *says = i < 3 ? " has a line break" : " is not valid UTF-8";
		char want[64], bad[32];
		char *names[] = { bad };
		(void)snprintf(bad, sizeof(bad), "%s", evil[i]);
		const struct mr_header value = { "X-Extra", evil[i] }, name = { evil[i], "v" },
				       refs = { "References", evil[i] };
		struct mr_message msg;
#define REFUSES(field, change)                                                                                         \
	msg = sample();                                                                                                \
	change;                                                                                                        \
	(void)snprintf(want, sizeof(want), "%s%s", field, says);                                                       \
	expect_refused(&msg, "town", want)
		REFUSES("from", msg.from = evil[i]);
		REFUSES("to", msg.to = ((struct mr_names){ names, 1 }));
		REFUSES("cc", msg.cc = ((struct mr_names){ names, 1 }));
		REFUSES("subject", msg.subject = evil[i]);
		REFUSES("type", msg.type = evil[i]);
		REFUSES("thread", msg.thread = evil[i]);
		REFUSES("reply-to", msg.reply_to = evil[i]);
		REFUSES("replace-key", msg.replace_key = evil[i]);
		REFUSES("header 'X-Extra'", (msg.headers = &value, msg.headers_n = 1));
		REFUSES("header 'References'", (msg.headers = &refs, msg.headers_n = 1));
#undef REFUSES
		msg = sample();
		msg.headers = &name;
		msg.headers_n = 1;
		expect_refused(&msg, "town", "header name");
		msg = sample();
		expect_refused(&msg, evil[i], "room name");
	}
}

static void
addresses_cannot_add_recipients(void **state)
{
	static const char *const evil[] = { "a, b", "a,b", "a <b>", "a b", "\"a\"", "a;b", "(a)", "a\tb", "" };
	struct mr_message msg = sample();

	(void)state;
	for (size_t i = 0; i < sizeof(evil) / sizeof(*evil); i++) {
		char bad[16];
		char *names[] = { bad };
		(void)snprintf(bad, sizeof(bad), "%s", evil[i]);
		msg.to = (struct mr_names){ names, 1 };
		expect_refused(&msg, "town", "is not an address");
	}
	msg = sample();
	msg.reply_to = "a> <b";
	expect_refused(&msg, "town", "is not a message id");
	msg = sample();
	expect_refused(&msg, "my town", "room name");
	msg.id[0] = '\0';
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT;
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_REFUSED);
}

static void
headers_that_we_write_cannot_be_given(void **state)
{
	static const char *const ours[] = { "From", "to", "CC", "Subject", "date", "Message-Id", "In-Reply-To",
		"Mailroom-Life", "mailroom-anything", "MIME-Version", "Content-Type", "content-x" };

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		const struct mr_header extra = { ours[i], "v" };
		struct mr_message msg = sample();
		msg.headers = &extra;
		msg.headers_n = 1;
		expect_refused(&msg, "town", "is written by mailroom itself");
	}
}

static void
a_body_that_is_no_text_becomes_base64(void **state)
{
	struct mr_message msg = sample();
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	(void)state;
	msg.body = "a\0b";
	msg.body_len = 3;
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	assert_true(str_ends(buf_str(&out), "Content-Transfer-Encoding: base64\n\nYQBi\n"));
	buf_clear(&out);
	msg.body = "\xff\xfe";
	msg.body_len = 2;
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	assert_true(str_ends(buf_str(&out), "Content-Transfer-Encoding: base64\n\n//4=\n"));
}

static void
many_recipients_fold_under_998_bytes(void **state)
{
	struct mr_message msg = sample();
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };
	char *names[1000], text[1000][24];
	size_t column = 0, folds = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "rig/agent-%zu", i);
		names[i] = text[i];
	}
	msg.to = (struct mr_names){ names, 1000 };
	assert_int_equal(message_write(&msg, "town", &out, &err), MR_OK);
	for (size_t i = 0; i < out.len; i++) {
		folds += i > 0 && out.ptr[i - 1] == '\n' && out.ptr[i] == ' ';
		column = out.ptr[i] == '\n' ? 0 : column + 1;
		assert_true(column < 998);
	}
	assert_true(folds > 10);
}

static void
the_digest_sees_what_the_sender_said_and_nothing_else(void **state)
{
	struct mr_message a = sample(), b = sample();
	char one[65], two[65];
	char x[] = "a", y[] = "b", xy[] = "ab";
	char *apart[] = { x, y }, *joined[] = { xy };

	(void)state;
	(void)snprintf(b.id, sizeof(b.id), "%s", OTHER);
	b.thread = OTHER;
	b.date_ms = 5;
	b.sender_life = 9;
	message_digest(&a, one);
	message_digest(&b, two);
	assert_string_equal(one, two);
	b.body_len--;
	message_digest(&b, two);
	assert_string_not_equal(one, two);
	b = a;
	b.subject = "MERGE_READY nuxM";
	message_digest(&b, two);
	assert_string_not_equal(one, two);
	a.to = (struct mr_names){ apart, 2 };
	b = a;
	b.to = (struct mr_names){ joined, 1 };
	message_digest(&a, one);
	message_digest(&b, two);
	assert_string_not_equal(one, two);
	b.to = (struct mr_names){ apart, 1 };
	b.cc = (struct mr_names){ apart + 1, 1 };
	message_digest(&b, two);
	assert_string_not_equal(one, two);
}

static void
the_digest_knows_where_a_field_ends(void **state)
{
	struct mr_message a = sample(), b = sample();
	char one[65], two[65];

	(void)state;
	a.subject = "x:y";
	a.type = "z";
	b.subject = "x";
	b.type = "y:z";
	message_digest(&a, one);
	message_digest(&b, two);
	assert_string_not_equal(one, two);
}

static void
priorities_are_words(void **state)
{
	enum mr_priority p = MR_LOW;
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(mr_priority_parse("Urgent", &p, &err), MR_OK);
	assert_int_equal(p, MR_URGENT);
	assert_string_equal(mr_priority_word(MR_LOW), "low");
	assert_int_equal(mr_priority_parse("asap", &p, &err), MR_REFUSED);
	assert_int_equal(p, MR_URGENT);
	assert_non_null(strstr(err.hint, "urgent, high, normal or low"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_of_a_message_are_these),
		cmocka_unit_test(all_fields_come_in_a_fixed_order),
		cmocka_unit_test(references_are_thread_and_message_answered),
		cmocka_unit_test(no_field_can_carry_a_header_of_its_own),
		cmocka_unit_test(addresses_cannot_add_recipients),
		cmocka_unit_test(headers_that_we_write_cannot_be_given),
		cmocka_unit_test(a_body_that_is_no_text_becomes_base64),
		cmocka_unit_test(many_recipients_fold_under_998_bytes),
		cmocka_unit_test(the_digest_sees_what_the_sender_said_and_nothing_else),
		cmocka_unit_test(the_digest_knows_where_a_field_ends),
		cmocka_unit_test(priorities_are_words),
	};
	return cmocka_run_group_tests_name("write", tests, NULL, NULL);
}
