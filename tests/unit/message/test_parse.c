/* SPDX-License-Identifier: MIT */
/* Messages as other mail programs write them, and worse. */
#include "check.h"
#include "message/message.h"

#define ID "01k9w3b7zq8m4c2v6t1x5n0prs"

static struct mr_message
parse(struct mr_str text)
{
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	if (message_parse(text, "town", MESSAGE_ALL, &msg, &err) != MR_OK)
		fail_msg("%s", err.message);
	return msg;
}
#define PARSE(literal) parse(STR(literal))

static void
a_message_of_ours_is_read(void **state)
{
	mr_auto(mr_message_done) struct mr_message m =
	    PARSE("From: greenplace/witness@town\n"
		  "To: greenplace/refinery@town, bob@elsewhere\n"
		  "Cc: carol@TOWN\n"
		  "Subject: 🤝 HANDOFF: nux → refinery\n"
		  "Date: Thu, 05 Mar 2026 10:30:00 +0000\n"
		  "Message-ID: <" ID "@town>\n"
		  "In-Reply-To: <01k9w3b7zq8m4c2v6t1x5n0prt@town>\n"
		  "References: <01k9w3b7zq8m4c2v6t1x5n0pr0@town> <01k9w3b7zq8m4c2v6t1x5n0prt@town>\n"
		  "Mailroom-Type: HANDOFF\n"
		  "Mailroom-Priority: urgent\n"
		  "Mailroom-Life: 7\n"
		  "Mailroom-By: 2026-03-05T11:30:00.500Z\n"
		  "Mailroom-Not-Before: 2026-03-05T12:30:00.250+01:00\n"
		  "Mailroom-Replace-Key: status\n"
		  "X-Branch: main\n"
		  "\n"
		  "Issue: gp-abc\n\nText.\n");

	(void)state;
	assert_string_equal(m.id, ID);
	assert_string_equal(m.from, "greenplace/witness");
	assert_int_equal(m.to.n, 2);
	assert_string_equal(m.to.v[0], "greenplace/refinery");
	assert_string_equal(m.to.v[1], "bob@elsewhere");
	assert_string_equal(m.cc.v[0], "carol");
	assert_string_equal(m.subject, "🤝 HANDOFF: nux → refinery");
	assert_int_equal(m.date_ms, 1772706600000);
	assert_string_equal(m.reply_to, "01k9w3b7zq8m4c2v6t1x5n0prt");
	assert_string_equal(m.thread, "01k9w3b7zq8m4c2v6t1x5n0pr0");
	assert_string_equal(m.type, "HANDOFF");
	assert_int_equal(m.priority, MR_URGENT);
	assert_int_equal(m.sender_life, 7);
	assert_int_equal(m.by_ms, 1772710200500);
	assert_int_equal(m.not_before_ms, 1772710200250);
	assert_string_equal(m.replace_key, "status");
	assert_string_equal(mr_message_header(&m, "x-branch"), "main");
	assert_null(mr_message_header(&m, "X-Bran"));
	assert_int_equal(m.headers_n, 15);
	assert_string_equal(m.body, "Issue: gp-abc\n\nText.\n");
	assert_int_equal(m.body_len, 21);
}

static void
missing_headers_are_empty_and_the_date_is_the_ids(void **state)
{
	mr_auto(mr_message_done) struct mr_message m = { .id = "01kjytmgy00000000000000000" };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(message_parse(STR("X: y\n\nhi"), "town", MESSAGE_ALL, &m, &err), MR_OK);
	assert_string_equal(m.from, "");
	assert_int_equal(m.to.n + m.cc.n, 0);
	assert_string_equal(m.subject, "");
	assert_string_equal(m.type, "");
	assert_string_equal(m.reply_to, "");
	assert_string_equal(m.replace_key, "");
	assert_string_equal(m.path, "");
	assert_string_equal(m.thread, m.id);
	assert_int_equal(m.priority, MR_NORMAL);
	assert_true(m.date_ms > 1700000000000);
	assert_string_equal(m.body, "hi");
}

static void
a_foreign_message_keeps_its_ids(void **state)
{
	mr_auto(mr_message_done) struct mr_message m =
	    PARSE("Message-ID: <abc.1@example.org>\nIn-Reply-To: Your mail <x@y> of "
		  "Monday\nReferences:\n\t<first@y>\n <x@y>\n\n");
	mr_auto(mr_message_done) struct mr_message carried =
	    PARSE("Message-ID: <" ID "@other>\nReferences: <" ID "@other>\n\n");
	mr_auto(mr_message_done) struct mr_message vague = PARSE("In-Reply-To: Your mail of Monday\n\n");

	(void)state;
	assert_string_equal(m.id, "");
	assert_string_equal(m.reply_to, "x@y");
	assert_string_equal(m.thread, "first@y");
	assert_string_equal(carried.id, ID);
	assert_string_equal(carried.thread, ID);
	assert_string_equal(vague.reply_to, "");
}

static void
crlf_and_folds_and_encoded_words_are_undone(void **state)
{
	mr_auto(mr_message_done) struct mr_message m =
	    PARSE("Received: from a by b\r\n"
		  "From: =?UTF-8?Q?J=C3=B6rg=2C_X?= <joerg@example.org>\r\n"
		  "To: \"Agent, One\"\r\n <alice@town>,\r\n\tbob@town\r\n"
		  "Subject: =?utf-8?Q?caf=C3=A9?=\r\n =?utf-8?Q?_ol=C3=A9?= and\r\n more\r\n"
		  "Content-Type: text/plain; charset=\"utf-8\"\r\n"
		  "Content-Transfer-Encoding: quoted-printable\r\n"
		  "\r\n"
		  "Gr=C3=BC=C3=9Fe, a very =\r\nlong line\r\nend\r\n");

	(void)state;
	assert_string_equal(m.from, "joerg@example.org");
	assert_string_equal(mr_message_header(&m, "From"), "Jörg, X <joerg@example.org>");
	assert_int_equal(m.to.n, 2);
	assert_string_equal(m.to.v[0], "alice");
	assert_string_equal(m.to.v[1], "bob");
	assert_string_equal(m.subject, "café olé and more");
	assert_string_equal(m.body, "Grüße, a very long line\nend\n");
}

static void
bodies_are_decoded(void **state)
{
	static const struct {
		struct mr_str headers, want;
	} cases[] = {
		{ STR("Content-Transfer-Encoding: base64\n\naGVsbG8NCndvcmxkDQo=\n"), STR("hello\nworld\n") },
		{ STR("Content-Transfer-Encoding: Base64 \n\nYQ0KAGI=\n"), STR("a\r\n\0b") },
		{ STR("Content-Type: text/plain; format=flowed; charset=ISO-8859-1\n\ncaf\xe9\n"), STR("café\n") },
		{ STR("Content-Type: text/plain; charset=windows-1252\nContent-Transfer-Encoding: "
		      "quoted-printable\n\n=E9\n"),
		    STR("é\n") },
		{ STR("Content-Type: text/plain; charset=us-ascii\n\n\xe9t\xe9\n"), STR("été\n") },
		{ STR("Content-Type: text/plain; charset=us-ascii\n\nété\n"), STR("été\n") },
		{ STR("Content-Type: text/plain; charset=koi8-r\n\n\xc1\xc2\n"), STR("аб\n") },
		{ STR("Content-Type: text/plain; charset=x-nobody\n\n\xc1\n"), STR("\xc1\n") },
		{ STR("Content-Type: text/plain; charset=windows-1252\n\n\x93x\x94\n"), STR("“x”\n") },
		{ STR("Content-Type: application/octet-stream; charset=latin1\nContent-Transfer-Encoding: "
		      "base64\n\n6Q0K\n"),
		    STR("") }, /* an attachment */
		{ STR("Content-Type: application/json\n\n{\"a\": 1}\n"), STR("{\"a\": 1}\n") },
		{ STR("Content-Type: multipart/mixed; boundary=\"a; "
		      "charset=latin1\"\nContent-Transfer-Encoding: base64\n\n--a\n\xe9\n"),
		    STR("--a\n\xe9\n") },
		{ STR("Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\n--a--\r\n"), STR("") },
		{ STR("X: y\n\nkept\r\nas it is\r\n"), STR("kept\r\nas it is\r\n") },
		{ STR("X: y\r\n\r\na\r\nb\r\n"), STR("a\nb\n") },
		{ STR("X: y\n\n"), STR("") },
		{ STR("Content-Transfer-Encoding: base64\n\n"), STR("") },
		{ STR("X: y"), STR("") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		mr_auto(mr_message_done) struct mr_message m = parse(cases[i].headers);
		check_str((struct mr_str){ m.body, m.body_len }, cases[i].want, __FILE__, __LINE__);
		assert_int_equal(m.body[m.body_len], '\0');
	}
}

/* PARTS_MAX is 256: the last part is the whole rest, also behind parts that have not even headers. */
static void
parts_beyond_the_limit_are_one(void **state)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)state;
	buf_adds(&text, "Content-Type: multipart/mixed; boundary=a\n\n");
	for (int i = 0; i < 600; i++)
		buf_adds(&text, "--a\n");
	mr_auto(mr_message_done) struct mr_message m = parse(buf_str(&text));

	assert_true(m.attachments_n <= 256);
}

static void
headers_of_foreign_priority_count(void **state)
{
	static const struct {
		const char *text;
		enum mr_priority want;
	} cases[] = {
		{ "X-Priority: 1 (Highest)\n\n", MR_URGENT },
		{ "X-Priority: 2\n\n", MR_HIGH },
		{ "X-Priority: 3\n\n", MR_NORMAL },
		{ "X-Priority: 5 (Lowest)\n\n", MR_LOW },
		{ "Importance: High\n\n", MR_HIGH },
		{ "Importance: low\n\n", MR_LOW },
		{ "Importance: normal\n\n", MR_NORMAL },
		{ "Mailroom-Priority: low\nX-Priority: 1\n\n", MR_LOW },
		{ "Mailroom-Priority: whatever\n\n", MR_NORMAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		mr_auto(mr_message_done) struct mr_message m = parse(str_of(cases[i].text));
		assert_int_equal(m.priority, cases[i].want);
	}
}

static void
nothing_hidden_in_a_header_comes_out_as_a_line_break(void **state)
{
	mr_auto(mr_message_done) struct mr_message m =
	    parse(STR("Subject: =?utf-8?q?a=0AFrom:_evil=0D=00b?= \0c\rd\nX: caf\xe9 =?utf-8?q?=FF?=\nFrom: "
		      "a\0b@x\n\n"));

	(void)state;
	assert_string_equal(m.subject, "a From: evil  b  c d");
	assert_string_equal(mr_message_header(&m, "X"), "café ÿ");
	assert_string_equal(m.from, "a b@x");
}

static void
the_first_of_repeated_headers_counts_and_lists_add_up(void **state)
{
	mr_auto(mr_message_done) struct mr_message m =
	    PARSE("Subject: one\nSubject: two\nTo: a@town\nTo: b@town\nFrom: x@town\nFrom: y@town\n\n");

	(void)state;
	assert_string_equal(m.subject, "one");
	assert_int_equal(m.to.n, 2);
	assert_string_equal(m.to.v[1], "b");
	assert_string_equal(m.from, "x");
}

static void
what_has_no_header_line_is_corrupt_and_changes_nothing(void **state)
{
	static const struct mr_str bad[] = { STR(""), STR("\n\nbody"), STR("just text"), STR("\r\n"), { NULL, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mr_message m = { .id = ID, .flags = MR_SEEN };
		struct mr_error err = { 0 };
		assert_int_equal(message_parse(bad[i], "town", MESSAGE_ALL, &m, &err), MR_CORRUPT);
		assert_null(m.own);
		assert_null(m.from);
		assert_int_equal(m.flags, MR_SEEN);
	}
}

static void
headers_alone_have_no_body(void **state)
{
	mr_auto(mr_message_done) struct mr_message m = { .size_bytes = 5000 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(message_parse(STR("Subject: x\n\ncut of"), "town", MESSAGE_HEADERS, &m, &err), MR_OK);
	assert_null(m.body);
	assert_int_equal(m.body_len, 0);
	assert_int_equal(m.size_bytes, 5000);
	assert_string_equal(m.subject, "x");
}

static void
completeness_of_headers_is_known(void **state)
{
	(void)state;
	assert_true(message_headers_complete(STR("A: b\n\n")));
	assert_true(message_headers_complete(STR("A: b\r\n\r\nx")));
	assert_true(message_headers_complete(STR("\nx")));
	assert_false(message_headers_complete(STR("A: b\n")));
	assert_false(message_headers_complete(STR("A: b\n\r")));
	assert_false(message_headers_complete(STR("A: b\n c")));
	assert_false(message_headers_complete(STR("")));
}

static void
ids_are_taken_out_of_their_brackets(void **state)
{
	(void)state;
	assert_str(msgid_inner(STR("<" ID "@town>"), "town"), ID);
	assert_str(msgid_inner(STR(ID "@town"), "town"), ID);
	assert_str(msgid_inner(STR(ID), "town"), ID);
	assert_str(msgid_inner(STR("< foo@bar >"), "town"), "foo@bar");
	assert_str(msgid_inner(STR("<foo@town>"), "town"), "foo@town");
	assert_str(msgid_inner(STR("v6t1x5@town"), "town"), "v6t1x5");
	assert_str(msgid_inner(STR("v6t1x5@downtown"), "town"), "v6t1x5@downtown");
	assert_str(msgid_inner(STR("<never"), NULL), "never");
	assert_str(msgid_inner(STR(""), NULL), "");
	assert_str(msgid_inner(STR("<>"), NULL), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_of_ours_is_read),
		cmocka_unit_test(missing_headers_are_empty_and_the_date_is_the_ids),
		cmocka_unit_test(a_foreign_message_keeps_its_ids),
		cmocka_unit_test(crlf_and_folds_and_encoded_words_are_undone),
		cmocka_unit_test(bodies_are_decoded),
		cmocka_unit_test(parts_beyond_the_limit_are_one),
		cmocka_unit_test(headers_of_foreign_priority_count),
		cmocka_unit_test(nothing_hidden_in_a_header_comes_out_as_a_line_break),
		cmocka_unit_test(the_first_of_repeated_headers_counts_and_lists_add_up),
		cmocka_unit_test(what_has_no_header_line_is_corrupt_and_changes_nothing),
		cmocka_unit_test(headers_alone_have_no_body),
		cmocka_unit_test(completeness_of_headers_is_known),
		cmocka_unit_test(ids_are_taken_out_of_their_brackets),
	};
	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
