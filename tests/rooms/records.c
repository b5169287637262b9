/* SPDX-License-Identifier: MIT */
/* records.c - the records of the post office, where mail is, and purging it. */
#include "suite.h"

static void
put(struct world *w, const char *owner, const char *name, const char *text)
{
	EXPECT(MR_OK, w->ops->record_put(w->room, "due", owner, name, str_of(text), &err));
}

static void
assert_record(struct world *w, const char *owner, const char *name, const char *text)
{
	mr_auto(buf_done) struct buf got = BUF_INIT;

	EXPECT(MR_OK, w->ops->record_get(w->room, "due", owner, name, &got, &err));
	assert_string_equal(buf_z(&got), text);
}

static bool
collect_record(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

static void
records_are_kept_by_kind_owner_and_name(void **state)
{
	struct world *w = *state;
	static const char *const owners[] = { "", "_", "bob", "rig/witness", "rig", "rig+witness", "rig-witness" };
	mr_auto(buf_done) struct buf got = BUF_INIT;

	for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
		put(w, owners[i], "same", owners[i]);
	for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
		assert_record(w, owners[i], "same", owners[i]);
	EXPECT(MR_NOTFOUND, w->ops->record_get(w->room, "due", "carol", "same", &got, &err));
	EXPECT(MR_NOTFOUND, w->ops->record_get(w->room, "purged", "bob", "same", &got, &err));
	EXPECT(MR_NOTFOUND, w->ops->record_get(w->room, "due", "bob", "other", &got, &err));
}

static void
a_record_is_replaced_and_dropped(void **state)
{
	struct world *w = *state;
	mr_auto(buf_done) struct buf got = BUF_INIT;

	put(w, "bob", "one", "a long first value");
	put(w, "bob", "one", "short");
	assert_record(w, "bob", "one", "short");
	EXPECT(MR_OK, w->ops->record_drop(w->room, "due", "bob", "one", &err));
	EXPECT(MR_NOTFOUND, w->ops->record_drop(w->room, "due", "bob", "one", &err));
	EXPECT(MR_NOTFOUND, w->ops->record_get(w->room, "due", "bob", "one", &got, &err));
}

static void
records_are_listed_each_once(void **state)
{
	struct world *w = *state;
	static const char *const names[] = { "one", "01k9w3b7zq8m4c2v6t1x5n0prs", "x.tmp", "a_b-c.d" };
	mr_auto(mr_names_done) struct mr_names seen = { 0 };

	EXPECT(MR_OK, w->ops->record_each(w->room, "due", "bob", collect_record, &seen, &err));
	assert_int_equal(seen.n, 0);
	for (size_t i = 0; i < 4; i++)
		put(w, "bob", names[i], "value");
	put(w, "bob", "one", "again");
	put(w, "carol", "hers", "value");
	EXPECT(MR_OK, w->ops->record_each(w->room, "due", "bob", collect_record, &seen, &err));
	assert_int_equal(seen.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_true(names_has(&seen, names[i]));
}

/* ---- Changes under a lock ---- */

/* Adds to the record; *ret_existed: it was there. */
static void
append(struct world *w, const char *kind, const char *owner, const char *name, const char *add, bool *ret_existed)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };

	EXPECT(MR_OK, record_edit_begin(&e, w->room, kind, owner, name, &err));
	*ret_existed = e.exists;
	buf_adds(&e.text, add);
	EXPECT(MR_OK, record_edit_save(&e, &err));
}

/* Changes the text and does not save it. */
static void
think_better_of_it(struct world *w, const char *kind, const char *name)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };

	EXPECT(MR_OK, record_edit_begin(&e, w->room, kind, "", name, &err));
	buf_adds(&e.text, "x");
}

static void
a_change_sees_what_is_there_and_replaces_it(void **state)
{
	struct world *w = *state;
	bool existed = true;

	append(w, "due", "bob", "list", "one\n", &existed);
	assert_false(existed);
	append(w, "due", "bob", "list", "two\n", &existed);
	assert_true(existed);
	assert_record(w, "bob", "list", "one\ntwo\n");
}

static void
a_change_that_is_not_saved_changes_nothing(void **state)
{
	struct world *w = *state;
	static const char *const kinds[] = { "due", "group", "queue", "channel" };

	for (size_t i = 0; i < 4; i++) {
		mr_auto(buf_done) struct buf got = BUF_INIT;
		mr_auto(mr_names_done) struct mr_names seen = { 0 };

		think_better_of_it(w, kinds[i], "it");
		EXPECT(MR_NOTFOUND, w->ops->record_get(w->room, kinds[i], "", "it", &got, &err));
		EXPECT(MR_OK, w->ops->record_each(w->room, kinds[i], "", collect_record, &seen, &err));
		assert_int_equal(seen.n, 0);
	}
	put(w, "", "it", "as it was");
	think_better_of_it(w, "due", "it");
	assert_record(w, "", "it", "as it was");
}

static void
groups_queues_and_channels_are_records_too(void **state)
{
	struct world *w = *state;
	static const char *const kinds[] = { "group", "queue", "channel" };
	static const char *const others[] = { "ops", "rig.1/builds", "ops" };

	for (size_t i = 0; i < 3; i++) {
		bool existed;
		mr_auto(mr_names_done) struct mr_names seen = { 0 }, left = { 0 };
		mr_auto(buf_done) struct buf got = BUF_INIT;

		append(w, kinds[i], "", "builds", "Name: x\n", &existed);
		EXPECT(MR_OK, w->ops->record_put(w->room, kinds[i], "", others[i], STR("Name: y\n"), &err));
		EXPECT(MR_OK, w->ops->record_get(w->room, kinds[i], "", others[i], &got, &err));
		assert_string_equal(buf_z(&got), "Name: y\n");
		EXPECT(MR_OK, w->ops->record_each(w->room, kinds[i], "", collect_record, &seen, &err));
		assert_int_equal(seen.n, 2);
		assert_true(names_has(&seen, "builds"));
		assert_true(names_has(&seen, others[i]));
		EXPECT(MR_OK, w->ops->record_drop(w->room, kinds[i], "", others[i], &err));
		EXPECT(MR_NOTFOUND, w->ops->record_drop(w->room, kinds[i], "", others[i], &err));
		EXPECT(MR_OK, w->ops->record_each(w->room, kinds[i], "", collect_record, &left, &err));
		assert_int_equal(left.n, 1);
	}
}

/* ---- Places and purge ---- */

struct places {
	size_t n;
	char states[256];
};

static void
note_place(void *ctx, const struct place_of *place)
{
	struct places *places = ctx;
	size_t len = strlen(places->states);

	assert_true(place->evidence && place->evidence[0] != '\0');
	(void)snprintf(places->states + len, sizeof places->states - len, "[%s:%s]", place->agent, place->state);
	places->n += place->folder != 0;
}

static struct places
places_of(struct world *w, const char *id)
{
	struct places places = { 0 };

	EXPECT(MR_OK, w->ops->each_place(w->room, id, note_place, &places, &err));
	return places;
}

static void
every_copy_is_found_and_purged(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob", "carol", "dave", "rig/eve" }, .make_mailboxes = true };
	struct delivered done = { 0 };
	char other[MR_ID_LEN + 1];
	size_t removed = 0;

	add_agent(w, "alice");
	add_agent(w, "bob");
	add_agent(w, "carol");
	send_to(w, "bob", "stays", other);
	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", done.id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "carol", done.id, 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "dave", done.id, 0, 0, MR_DEAD, &err));
	struct places before = places_of(w, done.id);

	assert_int_equal(before.n, 5);
	assert_non_null(strstr(before.states, "[bob:read]"));
	assert_non_null(strstr(before.states, "[carol:archived]"));
	assert_non_null(strstr(before.states, "[rig/eve:unread]"));
	assert_non_null(strstr(before.states, "[alice:sent]"));
	assert_non_null(strstr(before.states, "[:dead]"));
	struct claim hold = hold_ok(w, "rig/eve", done.id, 0, 60000);

	assert_non_null(strstr(places_of(w, done.id).states, "[rig/eve:held]"));
	EXPECT(MR_OK,
	    w->ops->remove(w->room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = done.id }, &removed, &err));
	assert_int_equal(removed, 5);
	assert_int_equal(places_of(w, done.id).n, 0);
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
}

static bool
no_record_is_listed(void *ctx, const char *name)
{
	(void)ctx;
	fail_msg("'%s' is listed", name);
	return false;
}

static void
a_lock_beside_records_has_one_holder(void **state)
{
	struct world *w = *state;
	void *lock = NULL, *other = NULL, *third = NULL;

	EXPECT(MR_OK, w->ops->record_lock(w->room, "nudge", "rig/bob", "shown", 0, &lock, &err));
	EXPECT(MR_BUSY, w->ops->record_lock(w->room, "nudge", "rig/bob", "shown", 0, &third, &err));
	EXPECT(MR_OK, w->ops->record_lock(w->room, "nudge", "rig/bob", "waiting", 0, &other, &err));
	/* A change of records does not wait for it, and it is no record itself. */
	EXPECT(MR_OK, w->ops->record_each(w->room, "nudge", "rig/bob", no_record_is_listed, NULL, &err));
	EXPECT(MR_OK, w->ops->record_put(w->room, "nudge", "rig/bob", "1-a", STR("text"), &err));
	EXPECT(MR_OK, w->ops->record_drop(w->room, "nudge", "rig/bob", "1-a", &err));
	w->ops->record_unlock(w->room, other);
	w->ops->record_unlock(w->room, lock);
	EXPECT(MR_OK, w->ops->record_lock(w->room, "nudge", "rig/bob", "shown", 0, &third, &err));
	w->ops->record_unlock(w->room, third);
}

const struct suite_case record_cases[] = {
	CASE(records_are_kept_by_kind_owner_and_name, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_record_is_replaced_and_dropped, ROOM_REGISTER | ROOM_HOLDS),
	CASE(records_are_listed_each_once, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_change_sees_what_is_there_and_replaces_it, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_change_that_is_not_saved_changes_nothing, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_lock_beside_records_has_one_holder, ROOM_REGISTER | ROOM_HOLDS),
	CASE(groups_queues_and_channels_are_records_too, ROOM_QUEUES | ROOM_CHANNELS),
	CASE(every_copy_is_found_and_purged, ROOM_REGISTER | ROOM_PURGE | ROOM_HOLDS),
	{ 0 },
};
