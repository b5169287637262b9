/* SPDX-License-Identifier: MIT */
/* specs.c - how a room is named, and what stands around every kind: the registry and the trace. */
#include "suite.h"

static void
assert_kind_and_name(const char *spec, const char *kind, const char *name)
{
	struct mr_room *room = NULL;

	EXPECT(MR_OK, room_open_spec(spec, NULL, &room, &err));
	assert_string_equal(mr_room_kind(room), kind);
	assert_string_equal(mr_room_name(room), name);
	mr_room_close(room);
}

static void
a_spec_names_the_kind_and_the_place(void **state)
{
	(void)state;
	assert_kind_and_name("mem:", "mem", "mem");
	assert_kind_and_name("mem:town", "mem", "town");
}

static void
an_unknown_kind_is_refused_with_those_there_are(void **state)
{
	struct mr_room *room = NULL;
	struct mr_error refusal = { 0 };

	(void)state;
	assert_int_equal(room_open_spec("mail:/tmp", NULL, &room, &refusal), MR_REFUSED);
	assert_non_null(strstr(refusal.message, "'mail'"));
	for (const struct room_driver *const *d = room_drivers(); *d; d++)
		assert_non_null(strstr(refusal.hint, (*d)->kind));
	assert_null(room);
	EXPECT(MR_REFUSED, room_open_spec("", NULL, &room, &err));
	EXPECT(MR_REFUSED, room_open_spec("mem:a/b", NULL, &room, &err));
}

static void
what_is_no_kind_is_a_path(void **state)
{
	static const char *const paths[] = { "/no/such:room", "./mem:x", "no-such-room", "Mem:x", "no.such:x" };
	struct mr_room *room = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		EXPECT(MR_NOTFOUND, room_open_spec(paths[i], NULL, &room, &err));
	assert_null(room);
}

static void
keep_line(void *ctx, const char *line)
{
	(void)snprintf(ctx, 400, "%s", line);
}

static void
a_trace_line_tells_what_was_asked_and_what_came_of_it(void **state)
{
	struct mr_room *room = NULL;
	struct mr_agent found = { 0 };
	char line[400] = "";

	(void)state;
	EXPECT(MR_OK, room_open_spec("mem:town", NULL, &room, &err));
	room->trace = keep_line;
	room->trace_ctx = line;
	room_wrap_trace(room);
	assert_false(ROOM_HAS(room, watch)); /* what a kind cannot do it cannot do traced either */
	EXPECT(MR_NOTFOUND, room->driver->find_agent(room, "bob", &found, &err));
	assert_true(str_starts(str_of(line), "find_agent 'bob': not-found "));
	assert_non_null(strstr(line, "us: no agent 'bob' in this room"));
	mr_room_close(room);
	assert_true(str_starts(str_of(line), "close mem:town: ok "));
}

const struct CMUnitTest spec_tests[] = {
	cmocka_unit_test(a_spec_names_the_kind_and_the_place),
	cmocka_unit_test(an_unknown_kind_is_refused_with_those_there_are),
	cmocka_unit_test(what_is_no_kind_is_a_path),
	cmocka_unit_test(a_trace_line_tells_what_was_asked_and_what_came_of_it),
};
const size_t spec_tests_n = sizeof spec_tests / sizeof spec_tests[0];
