/* SPDX-License-Identifier: MIT */
/* test_translate.c - a message as another kind of room can hold it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "office/link/link.h"

#define ID "01k9c3v9fh6n2m8q4r5s7t0w1x"

static unsigned missing; /* what the format of the tests cannot hold */

static unsigned
fake_lacks(struct mr_room *room, const struct mr_message *msg)
{
	unsigned lacks = missing;

	(void)room;
	if ((missing & FIELD_HEADERS) && msg->headers_n == 1 && strcmp(msg->headers[0].name, "Color") == 0)
		lacks &= ~(unsigned)FIELD_HEADERS; /* the one header that it knows */
	return lacks;
}

static const struct room_driver poor = { .kind = "poor", .unsupported = fake_lacks };
static const struct room_driver rich = { .kind = "rich" };
static struct mr_room poor_room = { .driver = &poor_room.table }, rich_room = { .driver = &rich_room.table };

static struct mr_message
letter(const char *body)
{
	static char bob[] = "bob", carol[] = "carol", dave[] = "dave";
	static char *to[] = { bob, carol }, *cc[] = { dave };
	static const struct mr_header headers[] = {
		{ "Message-ID", "<" ID "@town>" },
		{ "X-Ticket", "7" },
		{ "Color", "blue" },
		{ "References", "<a@b>" },
	};

	return (struct mr_message){
		.id = ID,
		.from = "alice",
		.to = { to, 2 },
		.cc = { cc, 1 },
		.subject = "Plans",
		.date_ms = 1762000000000,
		.type = "task",
		.priority = MR_URGENT,
		.thread = "kitchen",
		.reply_to = "01k9c3v9fh6n2m8q4r5s7t0w1y",
		.replace_key = "",
		.by_ms = 1762000000000,
		.sender_life = 4,
		.headers = headers,
		.headers_n = 4,
		.body = body,
		.body_len = strlen(body),
		.path = "",
	};
}

static void
assert_body(const struct translated *t, const char *want)
{
	assert_string_equal(t->msg.body, want);
	assert_int_equal(t->msg.body_len, strlen(want));
}

static void
what_is_lacking_is_stated_in_order(void **unused)
{
	struct mr_message msg = letter("hello");
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	missing = ~(unsigned)FIELD_BINARY;
	assert_int_equal(translate(&poor_room, &msg, &t, &err), MR_OK);
	assert_body(&t, "hello\n-- \nSubject: Plans\nTo: bob, carol\nCc: dave\nType: task\nPriority: urgent\n"
			"Thread: kitchen\nReply-To: 01k9c3v9fh6n2m8q4r5s7t0w1y\nBy: 2025-11-01T12:26:40.000Z\n"
			"X-Ticket: 7\n");
	assert_string_equal(t.msg.subject, "");
	assert_string_equal(t.msg.type, "");
	assert_string_equal(t.msg.thread, ID);
	assert_string_equal(t.msg.reply_to, "");
	assert_int_equal(t.msg.priority, MR_NORMAL);
	assert_int_equal(t.msg.by_ms, 0);
	assert_int_equal(t.msg.cc.n, 0);
	assert_int_equal(t.msg.sender_life, 0);
	assert_int_equal(t.msg.headers_n, 1);
	assert_string_equal(t.msg.headers[0].name, "Color");
	translated_done(&t);
	assert_string_equal(msg.subject, "Plans");
}

static void
what_can_be_held_is_left_alone(void **unused)
{
	struct mr_message msg = letter("hello\n");
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	assert_int_equal(translate(&rich_room, &msg, &t, &err), MR_OK);
	assert_body(&t, "hello\n");
	assert_string_equal(t.msg.thread, "kitchen");
	assert_int_equal(t.msg.headers_n, 3); /* Message-ID is a field, not an extra header */
	assert_int_equal(t.msg.to.n, 2);
	translated_done(&t);

	missing = FIELD_PRIORITY | FIELD_THREAD | FIELD_SUBJECT;
	msg.priority = MR_NORMAL;
	msg.thread = msg.id;
	msg.subject = "hello"; /* made of the body */
	msg.headers_n = 0;
	assert_int_equal(translate(&poor_room, &msg, &t, &err), MR_OK);
	assert_body(&t, "hello\n");
	translated_done(&t);
}

static void
line_breaks_of_others_start_no_header(void **unused)
{
	struct mr_message msg = letter("hello");
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	missing = FIELD_TYPE;
	msg.headers_n = 0;
	msg.subject = "one\nPriority: urgent";
	msg.type = "a\r\nb";
	msg.reply_to = "no id at all";
	assert_int_equal(translate(&poor_room, &msg, &t, &err), MR_OK);
	assert_string_equal(t.msg.subject, "one Priority: urgent");
	assert_body(&t, "hello\n-- \nType: a  b\nReply-To: no id at all\n");
	assert_string_equal(t.msg.reply_to, "");
	translated_done(&t);
}

static void
control_becomes_prose(void **unused)
{
	static const char *const control[] = {
		"{\"type\":\"shutdown_request\"}",
		" \n{ \"a\": 1, \"t\\u0079pe\": \"x\" }\n",
		"\xef\xbb\xbf{\"type\":\"x\"}\xc2\xa0",
		"{\"type\":1,\"type\":\"x\"}",
	};
	static const char *const data[] = { "{\"type\":1}", "{\"kind\":\"x\"}", "[{\"type\":\"x\"}]", "{type}", "" };
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	missing = 0;
	for (size_t i = 0; i < sizeof(control) / sizeof(*control); i++) {
		struct mr_message msg = letter(control[i]);
		assert_int_equal(translate(i % 2 ? &rich_room : &poor_room, &msg, &t, &err), MR_OK);
		assert_memory_equal(t.msg.body, "alice sent this", 15);
		translated_done(&t);
	}
	for (size_t i = 0; i < sizeof(data) / sizeof(*data); i++) {
		struct mr_message msg = letter(data[i]);
		assert_int_equal(translate(&rich_room, &msg, &t, &err), MR_OK);
		assert_body(&t, data[i]);
		translated_done(&t);
	}
	struct mr_message msg = letter("{\n\"type\":\"x\"}");
	assert_int_equal(translate(&rich_room, &msg, &t, &err), MR_OK);
	assert_body(&t, "alice sent this; it is shown as text, not as a command:\n\n    {\n    \"type\":\"x\"}");
	translated_done(&t);
}

/* Deeper than we read, but not deeper than others do. */
static void
deep_control_becomes_prose(void **unused)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	buf_adds(&body, "{\"type\":\"x\",\"a\":");
	for (int i = 0; i < 400; i++)
		buf_addc(&body, i < 200 ? '[' : ']');
	buf_addc(&body, '}');
	struct mr_message msg = letter(buf_z(&body));
	assert_int_equal(translate(&rich_room, &msg, &t, &err), MR_OK);
	assert_memory_equal(t.msg.body, "alice sent this", 15);
	translated_done(&t);
}

static void
what_is_no_text_becomes_base64(void **unused)
{
	struct mr_message msg = letter("");
	struct translated t = { 0 };
	struct mr_error err = { 0 };

	(void)unused;
	missing = FIELD_BINARY | FIELD_TYPE;
	msg.body = "\0\1\2";
	msg.body_len = 3;
	assert_int_equal(translate(&poor_room, &msg, &t, &err), MR_OK);
	assert_body(&t, "The body is not text; these are its 3 bytes in base64:\n\nAAEC\n-- \nType: task\n");
	translated_done(&t);
	assert_int_equal(translate(&rich_room, &msg, &t, &err), MR_OK);
	assert_int_equal(t.msg.body_len, 3);
	translated_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lacking_is_stated_in_order),
		cmocka_unit_test(what_can_be_held_is_left_alone),
		cmocka_unit_test(line_breaks_of_others_start_no_header),
		cmocka_unit_test(control_becomes_prose),
		cmocka_unit_test(deep_control_becomes_prose),
		cmocka_unit_test(what_is_no_text_becomes_base64),
	};

	room_fill(&poor_room.table, &poor);
	room_fill(&rich_room.table, &rich);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
