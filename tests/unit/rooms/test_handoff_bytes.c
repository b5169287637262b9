/* SPDX-License-Identifier: MIT */
/* The bytes of a handoff room: registry, file names and messages, against the golden files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/id.h"
#include "rooms/handoff/handoff.h"
#include <fcntl.h>
#include <stdio.h>

#define ROOT "/tmp/agent-mailbox"

static struct buf
golden(const char *name)
{
	struct buf text = BUF_INIT;
	struct mr_error err = { 0 };
	char path[400];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/handoff/%s", TEST_DATA, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(file_read_fd(fileno(file), 1 << 20, &text, &err), MR_OK);
	(void)fclose(file);
	return text;
}

static struct registry
parsed(struct mr_str text)
{
	struct registry r = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(registry_parse(text, &r, &err), MR_OK);
	return r;
}

static void
assert_written(const struct registry *r, const char *want)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	registry_write(r, ROOT, &out);
	assert_string_equal(buf_z(&out), want);
}

/* ---- Registry ---- */

static void
any_layout_is_read_and_the_one_layout_written(void **state)
{
	static const char *const layouts[] = { "registry.json", "registry-spaced.json", "registry-jq.json" };
	mr_auto(buf_done) struct buf want = golden("registry.json");

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		mr_auto(buf_done) struct buf text = golden(layouts[i]);
		mr_auto(registry_done) struct registry r = parsed(buf_str(&text));

		assert_false(r.broken);
		assert_int_equal(r.n, 2);
		assert_string_equal(registry_named(&r, STR("Wim"))->id, "worker-7");
		assert_string_equal(registry_with_id(&r, STR("lead-01"))->name, "Lea");
		assert_null(registry_named(&r, STR("lea")));
		assert_written(&r, buf_z(&want));
	}
}

static void
what_is_whole_in_a_broken_registry_is_saved(void **state)
{
	mr_auto(buf_done) struct buf text = golden("registry-broken.json");
	mr_auto(registry_done) struct registry r = parsed(buf_str(&text));

	(void)state;
	assert_true(r.broken);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0].name, "Wim");
	assert_string_equal(r.v[0].pid, "4243");
	mr_auto(registry_done) struct registry torn = parsed(STR(
	    "{\n  \"a\": {\n    \"id\": \"1\"\n  },\n  \"b\": {\"id\":\"2\",\"inbox\":\"/x\"},\n  \"c\": {\"id\":\"3"));

	assert_int_equal(torn.n, 2);
	assert_string_equal(torn.v[0].id, "1");
	assert_string_equal(torn.v[1].inbox, "/x");
}

static void
what_others_put_into_an_entry_is_kept(void **state)
{
	mr_auto(registry_done) struct registry r =
	    parsed(STR("{\"Old \\u0042ob\": {\"x y\": [1, {\"a b\": \"c \\\" d\"}], "
		       "\"id\": \"i\", \"created\": null, \"pid\": \"7\"}}"));

	(void)state;
	assert_int_equal(r.n, 1);
	assert_written(&r, "{\n  \"Old Bob\": {\"id\":\"i\",\"harness\":\"unknown\",\"inbox\":\"" ROOT
			   "/i/inbox\",\"pid\":0,\"created\":\"\",\"x y\":[1,{\"a b\":\"c \\\" d\"}]}\n}\n");
}

static void
nothing_and_nonsense_are_empty_registries(void **state)
{
	static const char *const texts[] = { "", "{}", "{}\n", " \n", "[]", "null", "{\"a\":5}", "{\"a\":{}}",
		"{\"a\":{\"id\":7}}", "{", "\"", "{{{{", "\"a\":", "\"a\": {", "\xff\xfe" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		mr_auto(registry_done) struct registry r = parsed(str_of(texts[i]));

		assert_int_equal(r.n, 0);
		assert_written(&r, "{}\n");
	}
}

static void
entries_are_added_last_and_taken_out(void **state)
{
	mr_auto(registry_done) struct registry r = { 0 };
	struct mr_error err = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct registry_entry e = {
			.name = name, .id = name, .harness = "h", .inbox = "/i", .created = "c", .pid = "1", .more = ""
		};

		(void)snprintf(name, sizeof name, "n%02d", i);
		assert_int_equal(registry_add(&r, &e, &err), MR_OK);
	}
	registry_remove(&r, registry_named(&r, STR("n07")));
	assert_int_equal(r.n, 39);
	assert_null(registry_named(&r, STR("n07")));
	assert_string_equal(r.v[38].name, "n39");
}

/* ---- File names ---- */

static void
assert_named(int64_t ms, const char *msg_id, const char *subject, const char *want)
{
	char name[HANDOFF_NAME_MAX + 1];

	handoff_file_name(ms, msg_id, subject, name);
	assert_string_equal(name, want);
}

static void
names_are_those_of_the_original(void **state)
{
	const int64_t ms = 1782893730000; /* 2026-07-01T08:15:30Z */

	(void)state;
	assert_named(ms, "3b1f9c02-77aa-4c1e-9d5e-0a1b2c3d4e5f", "Parser: next steps",
	    "20260701T081530Z-3b1f9c02-parser-next-steps.md");
	assert_named(ms, "75be4a23-0", "\xc3\xb6 !?", "20260701T081530Z-75be4a23-.md");
	assert_named(ms, "75be4a23", "", "20260701T081530Z-75be4a23-message.md");
	assert_named(ms, "75be4a23",
	    "Gr\xc3\xbc\xc3\x9f"
	    "e an \xc3\x96mer",
	    "20260701T081530Z-75be4a23-gr-e-an-mer.md");
	assert_named(ms, "75be4a23", "--a//b..", "20260701T081530Z-75be4a23-a-b.md");
}

static void
long_subjects_are_cut_without_a_dash_at_the_end(void **state)
{
	char subject[400], name[HANDOFF_NAME_MAX + 1];

	(void)state;
	for (size_t at = 150; at < 190; at++) { /* a dash at every place where the cut may be */
		memset(subject, 'x', sizeof subject);
		subject[at] = ' ';
		subject[sizeof subject - 1] = '\0';
		handoff_file_name(0, "75be4a23", subject, name);
		assert_true(strlen(name) <= HANDOFF_NAME_MAX && strlen(name) >= HANDOFF_NAME_MAX - 1);
		assert_null(strstr(name, "-.md"));
		assert_true(str_ends(str_of(name), "x.md"));
	}
}

static void
only_markdown_files_are_mail(void **state)
{
	(void)state;
	assert_true(handoff_name_is_mail("a.md", MR_INBOX));
	assert_true(handoff_name_is_mail(".hidden.md", MR_INBOX));
	assert_false(handoff_name_is_mail("a.md.1", MR_INBOX));
	assert_false(handoff_name_is_mail("a.txt", MR_INBOX));
	assert_true(handoff_name_is_mail("a.md.1", MR_ARCHIVE));
	assert_true(handoff_name_is_mail("a.md", MR_ARCHIVE));
	assert_false(handoff_name_is_mail("a.1", MR_ARCHIVE));
	assert_false(handoff_name_is_mail("1", MR_ARCHIVE));
}

/* The order of a second, which the original leaves to chance. */
static void
ids_and_names_sort_as_they_were_sent(void **state)
{
	static const int64_t below[] = { 0, 1, 999, 1000, 999999, 1000000, 1000001, 500000000, 999999998, 999999999 };
	char last_name[HANDOFF_NAME_MAX + 1] = "", last_id[MR_ID_LEN + 1] = "";

	(void)state;
	for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
		char msg_id[HANDOFF_UUID_LEN + 1], name[HANDOFF_NAME_MAX + 1], id[MR_ID_LEN + 1];
		int64_t ns = 1782893730000000000 + below[i];

		handoff_msg_id_at(ns, msg_id);
		assert_int_equal(strlen(msg_id), HANDOFF_UUID_LEN);
		handoff_file_name(ns / 1000000, msg_id, "same", name);
		handoff_message_id(name, 0, id);
		assert_true(id_valid(str_of(id)));
		assert_int_equal(id_time_ms(id), ns / 1000000);
		assert_true(strcmp(name, last_name) > 0);
		assert_true(strcmp(id, last_id) > 0);
		memcpy(last_name, name, sizeof name);
		memcpy(last_id, id, sizeof id);
	}
}

static void
an_id_follows_from_the_name_alone(void **state)
{
	static const char *const odd[] = { "x.md", "20260701T081530Z.md", "20261301T081530Z-75be4a23-x.md",
		"20260701T081530Z-75BE4A23-x.md", "20260701T081530Z-75be4a2-x.md" };
	char a[MR_ID_LEN + 1], b[MR_ID_LEN + 1];

	(void)state;
	handoff_message_id("20260701T081530Z-ffffffff-x.md", 5, a);
	handoff_message_id("20260701T081530Z-ffffffff-x.md", 6, b);
	assert_string_equal(a, b);
	assert_int_equal(id_time_ms(a), 1782893730999);
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		assert_false(handoff_name_has_stamp(odd[i]));
		handoff_message_id(odd[i], 1234567, a);
		assert_int_equal(id_time_ms(a), 1234567);
	}
}

static void
an_import_has_the_same_msg_id_each_time(void **state)
{
	char a[HANDOFF_UUID_LEN + 1], b[HANDOFF_UUID_LEN + 1], c[HANDOFF_UUID_LEN + 1];

	(void)state;
	handoff_msg_id_from(1500, STR("seed"), 0, a);
	handoff_msg_id_from(1500, STR("seed"), 0, b);
	handoff_msg_id_from(1500, STR("seed"), 1, c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
}

/* ---- Messages ---- */

static void
golden_messages_are_written_byte_for_byte(void **state)
{
	static const char *const names[] = { "worker-7/inbox/20260701T081530Z-3b1f9c02-parser-next-steps.md",
		"lead-01/inbox/20260701T081602Z-c0ffee00-re-parser-next-steps.md" };
	static const int64_t times[] = { 1782893730000, 1782893762000 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		mr_auto(buf_done) struct buf text = golden(names[i]);
		mr_auto(buf_done) struct buf again = BUF_INIT, msg_id = BUF_INIT, subject = BUF_INIT;
		struct mr_error err = { 0 };
		struct letter letter;

		assert_true(letter_parse(buf_str(&text), &letter));
		assert_int_equal(letter.reply_to.len, i ? 36 : 0);
		assert_true(str_eq(letter.to, i ? STR("lead-01") : STR("worker-7")));
		assert_int_equal(letter_write(&letter, &again, &err), MR_OK);
		assert_int_equal(again.len, text.len);
		assert_memory_equal(again.ptr, text.ptr, text.len);
		buf_add(&msg_id, letter.msg_id);
		buf_add(&subject, letter.subject);
		assert_named(times[i], buf_z(&msg_id), buf_z(&subject), strrchr(names[i], '/') + 1);
	}
}

static void
assert_read(const char *text, const char *from, const char *msg_id, const char *body)
{
	struct letter l;

	assert_true(letter_parse(str_of(text), &l));
	assert_true(str_eq(l.from, str_of(from)));
	assert_true(str_eq(l.msg_id, str_of(msg_id)));
	if (!str_eq(l.body, str_of(body)))
		fail_msg("body '%.*s' is not '%s'", (int)l.body.len, l.body.ptr, body);
}

static void
messages_of_other_hands_are_read(void **state)
{
	struct letter l;

	(void)state;
	assert_read("---\r\nfrom: a\r\nmsg_id: m\r\n---\r\n\r\nbody", "a", "m", "body");
	assert_read("---\nto: x\nextra: y\nfrom: a\n---\nno blank line", "a", "", "no blank line");
	assert_read("---\nmsg_id: m\n---\n", "", "m", "");
	assert_read("---\nfrom: a\n---\n\n\nfrom: b\n", "a", "", "\nfrom: b\n");
	/* no front matter, or one that does not end: the original's rule */
	assert_read("hello\nfrom: a\nmsg_id: m\n", "a", "m", "hello\nfrom: a\nmsg_id: m\n");
	assert_read("---\nfrom: a\n", "a", "", "---\nfrom: a\n");
	assert_false(letter_parse(STR(""), &l));
	assert_false(letter_parse(STR("just a note\n"), &l));
}

static void
what_would_break_the_header_is_refused(void **state)
{
	static const char bad[][8] = { "a\nb", "a\rb", "a\tb", "\x7f", "\x1b[m" };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		for (int field = 0; field < 3; field++) {
			struct letter l = { .from = STR("f"), .msg_id = STR("m"), .to = STR("t"), .subject = STR("s") };
			mr_auto(buf_done) struct buf out = BUF_INIT;
			struct mr_error err = { 0 };

			*(field == 0 ? &l.subject : field == 1 ? &l.reply_to : &l.from) = str_of(bad[i]);
			assert_int_equal(letter_write(&l, &out, &err), MR_REFUSED);
			assert_true(err.hint[0] != '\0');
		}
}

static void
names_and_ids_that_lead_astray_are_refused(void **state)
{
	static const char *const ids[] = { "", ".", "..", "../x", "a/b", ".x", "registry.json", "a b", "\xc3\xa9",
		"a\n" };
	static const char *const names[] = { "", "-x", "collision", "a\"b", "a\\b", "a\tb", "a\nb", "\xff" };
	struct mr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		assert_int_equal(handoff_id_check(ids[i], &err), MR_REFUSED);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		assert_int_equal(handoff_name_check(str_of(names[i]), &err), MR_REFUSED);
	assert_int_equal(handoff_id_check("A-z.0_9", &err), MR_OK);
	assert_int_equal(handoff_name_check(STR("Old B\xc3\xb6"
						"b"),
			     &err),
	    MR_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_layout_is_read_and_the_one_layout_written),
		cmocka_unit_test(what_is_whole_in_a_broken_registry_is_saved),
		cmocka_unit_test(what_others_put_into_an_entry_is_kept),
		cmocka_unit_test(nothing_and_nonsense_are_empty_registries),
		cmocka_unit_test(entries_are_added_last_and_taken_out),
		cmocka_unit_test(names_are_those_of_the_original),
		cmocka_unit_test(long_subjects_are_cut_without_a_dash_at_the_end),
		cmocka_unit_test(only_markdown_files_are_mail),
		cmocka_unit_test(ids_and_names_sort_as_they_were_sent),
		cmocka_unit_test(an_id_follows_from_the_name_alone),
		cmocka_unit_test(an_import_has_the_same_msg_id_each_time),
		cmocka_unit_test(golden_messages_are_written_byte_for_byte),
		cmocka_unit_test(messages_of_other_hands_are_read),
		cmocka_unit_test(what_would_break_the_header_is_refused),
		cmocka_unit_test(names_and_ids_that_lead_astray_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
