/* SPDX-License-Identifier: MIT */
/* Types in the post office: which one a message has, what is read for that, and that it costs nothing elsewhere. */
#include "scratch.h"

#include "base/error.h"
#include "message/message.h"
#include "office/types/types.h"

#define PACKS TEST_DATA "/../../share/mailroom"

static struct mr_room *
open_room(struct scratch *s, const char *data)
{
	struct mr_room_options options = { .data_dir = data };
	struct mr_error err = { 0 };
	char *path = below(s, ".mailroom");

	mr_room_close(s->room);
	s->room = NULL;
	if (mr_room_open(path, &options, &s->room, &err) != MR_OK)
		fail_msg("%s", err.message);
	free(path);
	return s->room;
}

static struct scratch *
town(const char *data)
{
	struct scratch *s = scratch_with_room();
	struct mr_registration r = { 0 };
	struct mr_error err = { 0 };

	open_room(s, data);
	assert_int_equal(mr_register(s->room, "alice", &(struct mr_env){ 0 }, NULL, &r, &err), MR_OK);
	assert_int_equal(mr_register(s->room, "bob", &(struct mr_env){ 0 }, NULL, &r, &err), MR_OK);
	return s;
}

static const char *
type_of(struct mr_room *room, const char *type, const char *subject)
{
	struct mr_message msg = { .from = "alice", .type = type, .subject = subject };
	const struct type_def *def = types_of(room, &msg);

	return def ? def->name : "";
}

static void
test_of_subject(void **state)
{
	struct scratch *s = town(PACKS);
	static const char *const pairs[][2] = {
		{ "MERGED nux", "MERGED" },
		{ "Re: MERGED nux", "MERGED" },
		{ "HELP: x", "HELP" },
		{ "LIFECYCLE:Shutdown nux", "LIFECYCLE_SHUTDOWN" },
		{ "\xf0\x9f\xa4\x9d HANDOFF: rest", "HANDOFF" },
		{ "MERGEDX nux", "" },
		{ "merged nux", "" },
		{ "the usual", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_string_equal(type_of(s->room, "", pairs[i][0]), pairs[i][1]);
	assert_string_equal(type_of(s->room, "HELP", "MERGED nux"), "HELP"); /* what it says counts */
	assert_string_equal(type_of(s->room, "UNHEARD_OF", "MERGED nux"), "");
	scratch_free(s);
}

static void
test_nothing_is_read_for_plain_mail(void **state)
{
	struct scratch *s = town(PACKS);
	struct types_store *store;

	(void)state;
	assert_string_equal(type_of(s->room, "", "the usual, and: more"), "");
	store = s->room->office->types;
	assert_int_equal(store->n, 0);
	assert_string_equal(type_of(s->room, "", "MERGED nux"), "MERGED");
	assert_int_equal(store->n, 1);
	assert_false(store->all_read);
	scratch_free(s);
}

static bool
check_may(void *ctx, const struct type_def *def)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct type_values none = { 0 };

	++*(size_t *)ctx;
	if (def->subject[0] == '{') /* whatever the sender likes: it tells nothing */
		assert_int_equal(type_subject_weight(def, STR("MERGED nux")), 0);
	type_fill(&subject, def->subject, &none);
	if (def->subject[0] && def->subject[0] != '{' && !types_subject_may(buf_str(&subject)))
		fail_msg("'%s' of %s: nobody would look for it", def->subject, def->name);
	return true;
}

/* The short way around reading files must not miss a type that is shipped. */
static void
test_packs_are_found_by_subject(void **state)
{
	struct scratch *s = town(PACKS);
	struct mr_error err = { 0 };
	size_t n = 0;

	(void)state;
	assert_int_equal(types_read_all(s->room, &err), MR_OK);
	assert_int_equal(s->room->office->types->wrong.n, 0);
	for (size_t i = 0; i < s->room->office->types->n; i++)
		(void)check_may(&n, s->room->office->types->v[i]);
	assert_true(n > 60);
	scratch_free(s);
}

static bool
keep_first(void *ctx, const struct mr_message *msg)
{
	struct mr_error err = { 0 };

	assert_int_equal(message_copy(msg, ctx, &err), MR_OK);
	return false;
}

static void
test_mail_gets_it_where_it_is_read(void **state)
{
	struct scratch *s = town(PACKS);
	mr_auto(mr_message_done) struct mr_message seen = { 0 }, fetched = { 0 };
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(mr_fields_done) struct mr_fields fields = { 0 };
	struct mr_draft draft = { .to = (const char *[]){ "bob", NULL }, .subject = "HELP: x", .body = "Problem: y" };
	struct mr_scan scan = { .filter = { .type = "HELP" } };
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	draft.body_len = strlen(draft.body);
	assert_int_equal(mr_self_named(s->room, "alice", &self, &err), MR_OK);
	assert_int_equal(mr_send(s->room, &self, &draft, &receipt, &err), MR_OK);
	assert_int_equal(mr_scan(s->room, "bob", &scan, keep_first, &seen, &err), MR_OK);
	assert_string_equal(seen.type, "HELP");
	assert_true(seen.type_by_subject);
	assert_int_equal(mr_fetch(s->room, "bob", receipt.id, &fetched, &err), MR_OK);
	assert_string_equal(fetched.type, "HELP");
	assert_int_equal(mr_message_fields(s->room, &fetched, &fields, &err), MR_OK);
	assert_true(fields.n > 0);
	open_room(s, NULL); /* strings of a message are its own */
	assert_string_equal(fetched.type, "HELP");
	scratch_free(s);
}

static void
test_own_types_stand_first(void **state)
{
	struct scratch *s = town(PACKS);
	static const char text[] = "Type: HELP\nSummary: ours\nSubject: HELP: {What}\nField: What; text; subject\n";
	const struct type_def *def = NULL;
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(types_get(s->room, "help", &def, &err), MR_OK);
	assert_string_equal(def->pack, "gastown");
	assert_int_equal(mr_type_put(s->room, "HELP", text, sizeof(text) - 1, false, &err), MR_OK);
	assert_int_equal(mr_type_put(s->room, "HELP", text, sizeof(text) - 1, false, &err), MR_EXISTS);
	assert_int_equal(types_get(s->room, "HELP", &def, &err), MR_OK);
	assert_string_equal(def->pack, "");
	assert_int_equal(mr_type_put(s->room, "HELP", "Type: OTHER\n", 12, true, &err), MR_REFUSED);
	open_room(s, NULL);
	assert_string_equal(type_of(s->room, "", "HELP: me"), "HELP");
	assert_int_equal(types_get(s->room, "MERGED", &def, &err), MR_NOTFOUND);
	assert_int_equal(types_get(s->room, "../HELP", &def, &err), MR_NOTFOUND);
	scratch_free(s);
}

static void
test_data_folders(void **state)
{
	struct scratch *s = town("/nowhere:" PACKS ":/nowhere2");
	const struct type_def *def = NULL;
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(types_get(s->room, "MERGED", &def, &err), MR_OK);
	open_room(s, "/nowhere");
	assert_int_equal(types_get(s->room, "MERGED", &def, &err), MR_NOTFOUND);
	scratch_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_subject),
		cmocka_unit_test(test_nothing_is_read_for_plain_mail),
		cmocka_unit_test(test_packs_are_found_by_subject),
		cmocka_unit_test(test_mail_gets_it_where_it_is_read),
		cmocka_unit_test(test_own_types_stand_first),
		cmocka_unit_test(test_data_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
