/* SPDX-License-Identifier: MIT */
/* keep.c - imports: with its own date, and once, however often it is repeated and whatever became of it. */
#include "suite.h"
#include "base/clock.h"
#include "base/id.h"

#define LONG_AGO INT64_C(1700000000000)

static enum mr_rc
keep(struct world *w, const char *to, const char *name, const char *body, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_message msg = {
		.from = "alice",
		.subject = "",
		.date_ms = LONG_AGO,
		.type = "",
		.reply_to = "",
		.replace_key = "",
		.body = body,
		.body_len = strlen(body),
		.path = "",
	};
	struct delivery what = { .msg = &msg, .to = &names, .sender = "", .keep = true };

	assert_true(names_add(&names, str_of(to)));
	assert_true(names_add(&msg.to, str_of(to)));
	id_from_name(LONG_AGO, str_of(name), msg.id);
	msg.thread = msg.id;
	enum mr_rc rc = w->ops->deliver(w->room, &what, ret, err);

	mr_names_done(&msg.to);
	return rc;
}

static void
what_is_imported_keeps_its_date(void **state)
{
	struct world *w = *state;
	struct delivered done = { 0 };

	add_agent(w, "alice");
	add_agent(w, "bob");
	EXPECT(MR_OK, keep(w, "bob", "one", "hello\n", &done, &err));
	assert_true(id_valid(str_of(done.id)));
	struct mr_message msg = fetch_ok(w, "bob", done.id, MR_INBOX);

	assert_int_equal(msg.date_ms / 1000, LONG_AGO / 1000);
	assert_string_equal(msg.from, "alice");
	assert_int_equal(msg.flags, 0);
	mr_message_done(&msg);
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
}

static void
an_import_repeated_finds_it(void **state)
{
	struct world *w = *state;
	struct delivered first = { 0 }, again = { 0 };

	add_agent(w, "alice");
	add_agent(w, "bob");
	add_agent(w, "carol");
	EXPECT(MR_OK, keep(w, "bob", "one", "hello\n", &first, &err));
	EXPECT(MR_OK, keep(w, "bob", "two", "hello\n", &again, &err)); /* alike, and another message */
	EXPECT(MR_EXISTS, keep(w, "bob", "one", "hello\n", &again, &err));
	assert_string_equal(first.id, again.id);
	EXPECT(MR_OK, keep(w, "carol", "one", "hello\n", &again, &err)); /* her own copy */
	if (w->ops->abilities & ROOM_READ_STATE) {
		EXPECT(MR_OK, w->ops->mark(w->room, "bob", first.id, MR_SEEN, 0, 0, &err));
		EXPECT(MR_OK, DRIVER_HAS(w->ops, flush) ? w->ops->flush(w->room, &err) : MR_OK);
		EXPECT(MR_EXISTS, keep(w, "bob", "one", "hello\n", &again, &err));
		assert_string_equal(first.id, again.id);
	}
	if (w->ops->abilities & ROOM_ARCHIVE) {
		EXPECT(MR_OK, w->ops->mark(w->room, "bob", first.id, 0, 0, MR_ARCHIVE, &err));
		EXPECT(MR_OK, DRIVER_HAS(w->ops, flush) ? w->ops->flush(w->room, &err) : MR_OK);
		EXPECT(MR_EXISTS, keep(w, "bob", "one", "hello\n", &again, &err));
		assert_string_equal(first.id, again.id);
	}
	assert_int_equal(count_in(w, "bob", MR_INBOX | MR_ARCHIVE), 2);
	assert_int_equal(count_in(w, "carol", MR_INBOX | MR_ARCHIVE), 1);
}

const struct suite_case keep_cases[] = {
	CASE(what_is_imported_keeps_its_date, 0),
	CASE(an_import_repeated_finds_it, 0),
	{ 0 },
};
