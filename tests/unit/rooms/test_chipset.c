/* SPDX-License-Identifier: MIT */
/* The chipset format: names, both dialects, the bytes that we write and the one change that a message sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/id.h"
#include "rooms/chipset/chipset.h"
#include <stdio.h>

#define EXPECT(want, call)                                                                                             \
	do {                                                                                                           \
		struct mr_error err = { 0 };                                                                           \
		enum mr_rc got_ = (call);                                                                              \
		if (got_ != (want))                                                                                    \
			fail_msg("%s:%d: %s gave %s: %s", __FILE__, __LINE__, #call, mr_rc_word(got_), err.message);   \
	} while (0)

static struct buf
golden(const char *name)
{
	struct buf text = BUF_INIT;
	char path[512], block[1024];
	size_t n;

	(void)snprintf(path, sizeof path, "%s/chipset/%s", TEST_DATA, name);
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	while ((n = fread(block, 1, sizeof block, f)) > 0)
		buf_add(&text, (struct mr_str){ block, n });
	(void)fclose(f);
	return text;
}

/* ---- Names ---- */

static void
assert_name(const char *name, const char *time, const char *sender)
{
	struct chipset_name parts = { 0 };
	int64_t ms = 0;

	assert_true(chipset_name_parse(str_of(name), &parts));
	assert_true(time_parse_rfc3339(str_of(time), &ms));
	assert_int_equal(parts.ms, ms);
	assert_true(str_eq(parts.sender, str_of(sender)));
}

static void
a_name_is_a_time_and_a_sender_with_dashes(void **state)
{
	static const char *const none[] = { "notes.json", "2026-07-01T08-15-30Z-a.txt", "2026-07-01T08-15-30Z.json",
		"2026-07-01T08-15-30Z-.json", "2026-13-01T08-15-30Z-a.json", "2026-07-01T08-15-30.Z-a.json",
		"2026-07-01T08-15-30-a.json", "2026-07-01T08-15-30.1234567890Z-a.json", ".json", "" };
	struct chipset_name parts;

	(void)state;
	assert_name("2026-07-01T08-15-30.250Z-lead-01.json", "2026-07-01T08:15:30.250Z", "lead-01");
	assert_name("2026-03-05T10-30-00Z-mayor.json", "2026-03-05T10:30:00Z", "mayor");
	assert_name("2026-03-06T09:15:00Z-witness-01.json", "2026-03-06T09:15:00Z", "witness-01");
	assert_name("2026-03-06T09-15-00.123456789Z-a.b_c.json", "2026-03-06T09:15:00.123Z", "a.b_c");
	assert_name("2026-03-06T09-15-00+02-00-w-1.json", "2026-03-06T07:15:00Z", "w-1");
	assert_name("2026-03-06T09-15-00-02:30-w-1.json", "2026-03-06T11:45:00Z", "w-1");
	assert_name("2026-03-06-x.json", "2026-03-06", "x");
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		if (chipset_name_parse(str_of(none[i]), &parts))
			fail_msg("'%s' has a time", none[i]);
	char made[CHIPSET_NAME_MAX + 1];

	chipset_name_make(1782893730250, "lead-01", made);
	assert_string_equal(made, "2026-07-01T08-15-30.250Z-lead-01.json");
}

static void
an_id_leads_nowhere_else(void **state)
{
	static const char *const bad[] = { "", ".", "..", "../x", "a/b", "archive", ".hidden", "a b", "a%20b",
		"%2E%2E%2Fx", "+", "x\n", "12345678901234567890123456789012345678901234567890123456789012345" };
	char id[CHIPSET_ID_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		EXPECT(MR_REFUSED, chipset_id(bad[i], id, &err));
	EXPECT(MR_OK, chipset_id("polecat-0a1b2c3d4e", id, &err));
	EXPECT(MR_OK, chipset_id("%74mp", id, &err));
	assert_string_equal(id, "tmp");
}

/* ---- Writing ---- */

static void
assert_written(const struct mr_message *msg, const struct chipset_words *words, const char *name)
{
	mr_auto(buf_done) struct buf want = golden(name), got = BUF_INIT;

	chipset_write(&got, msg, words);
	assert_string_equal(buf_z(&got), buf_z(&want));
	assert_int_equal(got.len, want.len);
}

static void
what_we_write_is_what_the_original_writes(void **state)
{
	struct mr_message first = { .subject = "Pick up the parser task",
		.type = "",
		.reply_to = "",
		.body = "Start with the header reader.\nAsk if the grammar is unclear." };
	struct mr_message escapes = { .subject = "Done: \"quoted\" \\ slash / tab\there",
		.type = "completion_report",
		.reply_to = "",
		.priority = MR_URGENT,
		.body = "na\xc3\xafve \xe2\x80\x93 \xe2\x9c\x93 \xf0\x9f\x98\x80\x01\x7f\xe2\x80\xa8" };
	struct chipset_words words = { .from = "lead-01", .to = "worker-7", .ms = 1782893730250, .imported = "" };

	(void)state;
	first.body_len = strlen(first.body);
	escapes.body_len = strlen(escapes.body);
	assert_written(&first, &words, "g1.json");
	words.read = true;
	assert_written(&first, &words, "g2.json");
	words = (struct chipset_words){ .from = "w9", .to = "lead-01", .ms = 1782893760000, .imported = "" };
	assert_written(&escapes, &words, "g3.json");
}

static void
an_answer_keeps_the_order_of_keys(void **state)
{
	struct mr_message msg = { .subject = "s", .type = "t", .reply_to = "2026-07-01T08-15-30.250Z-lead-01.json" };
	struct chipset_words words = { .from = "a", .to = "b", .ms = 0, .imported = "01k9w3b7zq8m4c2v6t1x5n0prs" };
	mr_auto(buf_done) struct buf got = BUF_INIT;

	(void)state;
	msg.priority = MR_LOW;
	chipset_write(&got, &msg, &words);
	assert_string_equal(buf_z(&got),
	    "{\n  \"body\": \"\",\n  \"from\": \"a\",\n  \"in_reply_to\": \"2026-07-01T08-15-30.250Z-lead-01.json\",\n"
	    "  \"mailroom_id\": \"01k9w3b7zq8m4c2v6t1x5n0prs\",\n  \"priority\": \"low\",\n  \"read\": false,\n"
	    "  \"subject\": \"s\",\n  \"timestamp\": \"1970-01-01T00:00:00.000Z\",\n  \"to\": \"b\",\n  \"type\": "
	    "\"t\"\n}\n");
}

/* ---- Changing "read" ---- */

static void
assert_marked(const char *text, bool read, const char *want)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct json_value object;

	EXPECT(MR_OK, chipset_object(str_of(text), &object, &err));
	bool changed = chipset_set_read(str_of(text), object, read, &out);

	if (!want) {
		assert_false(changed);
		assert_int_equal(out.len, 0);
		return;
	}
	assert_true(changed);
	assert_string_equal(buf_z(&out), want);
}

static void
a_mark_changes_nothing_else(void **state)
{
	mr_auto(buf_done) struct buf unread = golden("g1.json"), read = golden("g2.json"), plain = golden("g5.json");
	mr_auto(buf_done) struct buf marked = BUF_INIT;

	(void)state;
	assert_marked(buf_z(&unread), true, buf_z(&read));
	assert_marked(buf_z(&read), false, buf_z(&unread));
	assert_marked(buf_z(&read), true, NULL);
	assert_marked(buf_z(&unread), false, NULL);
	assert_marked("{\"n\":12345678901234567890, \"read\" :0,\"x\":{\"read\":false}}\r\n", true,
	    "{\"n\":12345678901234567890, \"read\" :true,\"x\":{\"read\":false}}\r\n");
	assert_marked(
	    "{\"read\":false,\"read\":null}", true, "{\"read\":false,\"read\":true}"); /* the last one counts */
	assert_marked("{\"re\\u0061d\":\"\"}", true, "{\"re\\u0061d\":true}");
	assert_marked("{\"read\":[]}", true, NULL);
	assert_marked("{}", true, "{\"read\": true}");
	assert_marked("{ }\n", true, "{\"read\": true }\n");
	buf_add(&marked, (struct mr_str){ plain.ptr, plain.len - strlen("\n}") });
	buf_adds(&marked, ",\n  \"read\": true\n}");
	assert_marked(buf_z(&plain), true, buf_z(&marked));
}

/* ---- Reading ---- */

static struct mr_message
letter(const char *name, const char *text)
{
	struct chipset_origin at = { .box = "lead", .name = name, .folder = MR_INBOX, .mtime_ms = 42 };
	struct mr_message msg = { 0 };

	EXPECT(MR_OK, chipset_letter(str_of(text), &at, SCAN_BODIES, &msg, &err));
	return msg;
}

static void
the_first_dialect_is_read(void **state)
{
	mr_auto(buf_done) struct buf text = golden("g3.json");
	mr_auto(mr_message_done) struct mr_message msg = letter("2026-07-01T08-16-00.000Z-w9.json", buf_z(&text));
	char id[MR_ID_LEN + 1];

	(void)state;
	id_from_name(1782893760000, STR("2026-07-01T08-16-00.000Z-w9.json"), id);
	assert_string_equal(msg.id, id);
	assert_string_equal(msg.thread, id);
	assert_string_equal(msg.from, "w9");
	assert_string_equal(msg.to.v[0], "lead-01");
	assert_string_equal(msg.subject, "Done: \"quoted\" \\ slash / tab\there");
	assert_string_equal(msg.body, "na\xc3\xafve \xe2\x80\x93 \xe2\x9c\x93 \xf0\x9f\x98\x80\x01\x7f\xe2\x80\xa8");
	assert_string_equal(msg.type, "completion_report");
	assert_int_equal(msg.priority, MR_URGENT);
	assert_int_equal(msg.date_ms, 1782893760000);
	assert_int_equal(msg.flags, 0);
	assert_string_equal(mr_message_header(&msg, "Message-ID"), "2026-07-01T08-16-00.000Z-w9.json");
	assert_string_equal(msg.path, "mail/lead/2026-07-01T08-16-00.000Z-w9.json");
	assert_non_null(strstr(mr_message_header(&msg, "Mailroom-Note"), "addressed to another"));
}

static void
the_second_dialect_is_read(void **state)
{
	mr_auto(buf_done) struct buf text = golden("g5.json");
	mr_auto(mr_message_done) struct mr_message msg = letter("2026-07-01T08:17:00.000Z-w1.json", buf_z(&text));

	(void)state;
	assert_string_equal(msg.from, "w1");
	assert_string_equal(msg.subject, "DONE");
	assert_string_equal(msg.body, "DONE: t-1");
	assert_string_equal(msg.type, "mail");
	assert_int_equal(msg.priority, MR_NORMAL);
	assert_int_equal(msg.flags, 0);
	assert_null(mr_message_header(&msg, "Mailroom-Note"));
	mr_auto(mr_message_done) struct mr_message wordy =
	    letter("x.json", "{\"payload\": \"all is well: really\\nyes\"}");

	assert_string_equal(wordy.subject, "all is well: really");
	assert_int_equal(wordy.date_ms, 42);
	assert_string_equal(wordy.from, "");
}

static void
an_answer_names_what_it_answers(void **state)
{
	mr_auto(mr_message_done) struct mr_message msg = letter("2026-07-01T08-17-00.000Z-w1.json",
	    "{\"from\":\"w1\",\"to\":\"lead\",\"in_reply_to\":\"2026-07-01T08-16-00.000Z-w9.json\"}");
	char id[MR_ID_LEN + 1];

	(void)state;
	id_from_name(1782893760000, STR("2026-07-01T08-16-00.000Z-w9.json"), id);
	assert_string_equal(msg.reply_to, id);
	assert_string_equal(mr_message_header(&msg, "In-Reply-To"), "2026-07-01T08-16-00.000Z-w9.json");
}

static void
fields_count_more_than_the_name(void **state)
{
	mr_auto(mr_message_done) struct mr_message msg =
	    letter("2026-07-01T08-17-00.000Z-w1.json", "{\"from\":\"w2\",\"to\":\"lead\",\"timestamp\":\"2026-07-01T09:"
						       "00:00Z\",\"subject\":\"a\\nb\",\"body\":{\"x\":1},"
						       "\"read\":\"yes\",\"priority\":\"whatever\"}");

	(void)state;
	assert_string_equal(msg.from, "w2");
	assert_int_equal(msg.date_ms, 1782896400000);
	assert_int_equal(id_time_ms(msg.id), 1782893820000); /* the id stays with the file */
	assert_string_equal(msg.subject, "a b");
	assert_string_equal(msg.body, "{\"x\":1}");
	assert_int_equal(msg.flags, MR_SEEN);
	assert_int_equal(msg.priority, MR_NORMAL);
	assert_non_null(strstr(mr_message_header(&msg, "Mailroom-Note"), "another sender"));
	mr_auto(mr_message_done) struct mr_message odd =
	    letter("2026-07-01T08-17-00.000Z-w1.json", "{\"from\":\"../../etc\",\"to\":\"Old Bob\",\"body\":null}");

	assert_string_equal(odd.from, "%2E./%2E./etc");
	assert_string_equal(odd.to.v[0], "Old%20Bob");
	assert_string_equal(odd.body, "");
}

static void
what_is_no_message_is_corrupt(void **state)
{
	static const char *const bad[] = { "", "null", "[]", "\"text\"", "{\"from\":", "\xef\xbb\xbf{}", "{} {}",
		"{'a':1}" };
	struct chipset_origin at = { .box = "lead", .name = "x.json", .folder = MR_INBOX };
	mr_auto(buf_done) struct buf deep = BUF_INIT;
	struct mr_message msg = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		EXPECT(MR_CORRUPT, chipset_letter(str_of(bad[i]), &at, SCAN_BODIES, &msg, &err));
	for (int i = 0; i < 100000; i++)
		buf_adds(&deep, "{\"body\":");
	EXPECT(MR_CORRUPT, chipset_letter(buf_str(&deep), &at, SCAN_BODIES, &msg, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_a_time_and_a_sender_with_dashes),
		cmocka_unit_test(an_id_leads_nowhere_else),
		cmocka_unit_test(what_we_write_is_what_the_original_writes),
		cmocka_unit_test(an_answer_keeps_the_order_of_keys),
		cmocka_unit_test(a_mark_changes_nothing_else),
		cmocka_unit_test(the_first_dialect_is_read),
		cmocka_unit_test(the_second_dialect_is_read),
		cmocka_unit_test(an_answer_names_what_it_answers),
		cmocka_unit_test(fields_count_more_than_the_name),
		cmocka_unit_test(what_is_no_message_is_corrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
