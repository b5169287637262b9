/* SPDX-License-Identifier: MIT */
/* evidence.c - where a message is, what is known of the disk, and that what a handle remembers is only where it looks
 * first. */
#include "suite.h"

static void
add_people(struct world *w)
{
	add_agent(w, "alice");
	add_agent(w, "bob");
}

struct sighting {
	size_t n; /* in bob's folders */
	char state[16];
};

static void
note_place(void *ctx, const struct place_of *place)
{
	struct sighting *s = ctx;

	assert_true(place->evidence[0] != '\0');
	if (strcmp(place->agent, "bob") != 0)
		return;
	s->n++;
	(void)snprintf(s->state, sizeof s->state, "%s", place->state);
}

static void
assert_told(struct world *w, const char *id, const char *state, const char *other)
{
	struct sighting s = { 0 };

	EXPECT(MR_OK, w->ops->each_place(w->room, id, note_place, &s, &err));
	assert_int_equal(s.n, 1);
	if (strcmp(s.state, other) != 0)
		assert_string_equal(s.state, state);
}

static void
in_whose_mailbox_and_whether_it_was_read_is_told(void **state)
{
	struct world *w = *state;
	struct sighting none = { 0 };
	char id[MR_ID_LEN + 1];

	add_people(w);
	if (!DRIVER_HAS(w->ops, each_place))
		fail_msg("nobody can ask what became of a message here");
	send_to(w, "bob", "hi", id);
	assert_told(w, id, "unread", "unread");
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, DRIVER_HAS(w->ops, flush) ? w->ops->flush(w->room, &err) : MR_OK);
	assert_told(w, id, "read", "archived"); /* where read mail is archived mail */
	EXPECT(MR_OK, w->ops->each_place(w->room, "00000000000000000000000000", note_place, &none, &err));
	assert_int_equal(none.n, 0);
}

static void
what_a_power_cut_may_do_is_told(void **state)
{
	struct world *w = *state;
	struct mr_storage storage = { 0 };

	add_people(w);
	if (w->spec[0] == '\0') /* not on a disk */
		return;
	assert_true(DRIVER_HAS(w->ops, storage));
	EXPECT(MR_OK, w->ops->storage(w->room, &storage, &err));
	assert_true(storage.file_system[0] != '\0');
	assert_int_equal(storage.power_safe, storage.reason[0] == '\0');
}

struct looked {
	size_t findings, problems;
};

static void
note_finding(void *ctx, const struct mr_finding *f)
{
	struct looked *l = ctx;

	l->findings++;
	l->problems += f->severity == MR_PROBLEM && strcmp(f->code, "space") != 0;
	assert_true(f->code[0] && f->what[0]);
	assert_non_null(f->path);
	assert_non_null(f->why);
	assert_non_null(f->fix);
	assert_true(!f->fixed || f->severity != MR_FINE);
}

static void
a_doctor_finds_a_room_in_order_and_leaves_it_so(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	add_people(w);
	send_to(w, "bob", "hi", id);
	assert_true(DRIVER_HAS(w->ops, inspect) || w->spec[0] == '\0');
	if (!DRIVER_HAS(w->ops, inspect)) /* not on a disk */
		return;
	for (int fix = 0; fix < 2; fix++) {
		struct looked l = { 0 };

		EXPECT(MR_OK, w->ops->inspect(w->room, fix == 1, note_finding, &l, &err));
		assert_true(l.findings > 0);
		assert_int_equal(l.problems, 0);
		assert_int_equal(count_unread(w, "bob"), 1);
	}
}

static void
mark_through(const char *spec, const char *id, unsigned set, unsigned clear)
{
	struct mr_room *other = NULL;

	EXPECT(MR_OK, room_open_spec(spec, NULL, &other, &err));
	EXPECT(MR_OK, other->driver->mark(other, "bob", id, set, clear, 0, &err));
	EXPECT(MR_OK, DRIVER_HAS(other->driver, flush) ? other->driver->flush(other, &err) : MR_OK);
	mr_room_close(other);
}

static void
what_another_marks_is_found_where_it_is_now(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1], later[MR_ID_LEN + 1];

	add_people(w);
	if (w->spec[0] == '\0')
		return;
	send_to(w, "bob", "hi", id);
	assert_int_equal(count_in(w, "bob", MR_INBOX | MR_ARCHIVE), 1); /* from now on it is known where it is */
	mark_through(w->room->spec, id, MR_SEEN, 0);
	assert_true(flags_of(w, "bob", id, 0) & MR_SEEN);
	mark_through(w->room->spec, id, 0, MR_SEEN);
	assert_false(flags_of(w, "bob", id, 0) & MR_SEEN);
	send_to(w, "bob", "came later", later);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", later, MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_SEEN, 0, 0, &err));
	assert_true(flags_of(w, "bob", id, 0) & MR_SEEN);
	assert_true(flags_of(w, "bob", later, 0) & MR_SEEN);
}

const struct suite_case evidence_cases[] = {
	CASE(in_whose_mailbox_and_whether_it_was_read_is_told, ROOM_READ_STATE),
	CASE(what_a_power_cut_may_do_is_told, 0),
	CASE(a_doctor_finds_a_room_in_order_and_leaves_it_so, 0),
	CASE(what_another_marks_is_found_where_it_is_now, ROOM_READ_STATE),
	{ 0 },
};
