/* SPDX-License-Identifier: MIT */
/* mail.c - delivering, looking, marking, moving. */
#include "suite.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/text.h"

#define LISTED_MAX 16
struct listed { /* what a scan showed */
	struct {
		char id[MR_ID_LEN + 1];
		unsigned flags;
		enum mr_folder folder;
		bool body, subject;
	} v[LISTED_MAX];
	size_t n, stop_after;
};

static bool
list_one(void *ctx, const struct mr_message *msg)
{
	struct listed *list = ctx;

	assert_true(list->n < LISTED_MAX);
	memcpy(list->v[list->n].id, msg->id, sizeof msg->id);
	list->v[list->n].flags = msg->flags;
	list->v[list->n].folder = msg->folder;
	list->v[list->n].body = msg->body != NULL;
	list->v[list->n].subject = msg->subject[0] != '\0';
	list->n++;
	return list->n != list->stop_after;
}

static struct listed
list(struct world *w, const char *agent, const struct scan_request *want)
{
	struct listed list = { 0 };

	EXPECT(MR_OK, w->ops->scan(w->room, agent, want, list_one, &list, &err));
	return list;
}

static void
add_people(struct world *w)
{
	add_agent(w, "alice");
	add_agent(w, "bob");
	add_agent(w, "carol");
}

/* What try_send puts into a message and this kind cannot hold. */
static unsigned
lacking(struct world *w)
{
	char *to[] = { (char[]){ "a" }, (char[]){ "b" } };
	struct mr_message msg = { .from = "alice",
		.to = { to, 2 },
		.subject = "hello",
		.type = "note",
		.priority = MR_HIGH,
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "\xff",
		.body_len = 1 };

	return DRIVER_HAS(w->ops, unsupported) ? w->ops->unsupported(w->room, &msg) : 0;
}

static void
mail_reaches_every_recipient_once(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob", "carol", "rig/witness" } };
	struct delivered done = { 0 };
	unsigned lacks = lacking(w);

	add_people(w);
	add_agent(w, "rig/witness");
	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	assert_false(done.repeated);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(count_in(w, letter.to[i], MR_INBOX), 1);
		assert_int_equal(count_unread(w, letter.to[i]), 1);
		struct mr_message msg = fetch_ok(w, letter.to[i], done.id, MR_INBOX);

		assert_string_equal(msg.from, "alice");
		if (!(lacks & FIELD_SUBJECT))
			assert_string_equal(msg.subject, "hello");
		if (!(lacks & FIELD_TYPE))
			assert_string_equal(msg.type, "note");
		if (!(lacks & FIELD_PRIORITY))
			assert_int_equal(msg.priority, MR_HIGH);
		assert_int_equal(msg.to.n, lacks & FIELD_TO ? 1 : 3);
		assert_string_equal(msg.to.v[msg.to.n - 1], lacks & FIELD_TO ? letter.to[i] : "rig/witness");
		assert_string_equal(msg.thread, done.id);
		if (DRIVER_HAS(w->ops, take_life))
			assert_int_equal(msg.sender_life, 1);
		assert_int_equal(msg.flags, 0);
		assert_int_equal(msg.attempt, 0);
		assert_int_equal(msg.folder, MR_INBOX);
		assert_true(msg.size_bytes > 0);
		mr_message_done(&msg);
	}
	assert_int_equal(count_in(w, "alice", MR_INBOX), 0);
}

static void
each_recipient_has_its_own_read_state(void **state)
{
	struct world *w = *state;
	struct delivered done = { 0 };

	add_people(w);
	EXPECT(MR_OK, try_send(w, &(struct letter){ .to = { "bob", "carol" } }, &done, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", done.id, MR_SEEN, 0, 0, &err));
	assert_int_equal(count_unread(w, "bob"), 0);
	assert_int_equal(count_in(w, "bob", MR_INBOX | MR_ARCHIVE), 1); /* where what is read is kept */
	assert_int_equal(count_unread(w, "carol"), 1);
}

static void
a_missing_recipient_refuses_all(void **state)
{
	struct world *w = *state;

	add_people(w);
	EXPECT(MR_NOTFOUND, try_send(w, &(struct letter){ .to = { "bob", "nobody", "carol" } }, NULL, &err));
	EXPECT(MR_NOTFOUND, try_send(w, &(struct letter){ .to = { "nobody" } }, NULL, &err));
	EXPECT(MR_NOTFOUND, try_send(w, &(struct letter){ .to = { "bob", "nobody" }, .key = "k" }, NULL, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
	assert_int_equal(count_in(w, "carol", MR_INBOX), 0);
	assert_int_equal(count_in(w, "alice", MR_SENT), 0);
}

static void
a_key_of_a_refused_send_is_free(void **state)
{
	struct world *w = *state;

	add_people(w);
	EXPECT(MR_NOTFOUND, try_send(w, &(struct letter){ .to = { "dave" }, .key = "k" }, NULL, &err));
	EXPECT(MR_OK, try_send(w, &(struct letter){ .to = { "bob" }, .key = "k" }, NULL, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
}

static void
missing_mailboxes_are_made_when_asked(void **state)
{
	struct world *w = *state;
	struct mr_agent found = { 0 };

	add_people(w);
	EXPECT(MR_OK, try_send(w, &(struct letter){ .to = { "bob", "later/on" }, .make_mailboxes = true }, NULL, &err));
	EXPECT(MR_OK, try_send(w, &(struct letter){ .to = { "soon" }, .make_mailboxes = true }, NULL, &err));
	assert_int_equal(count_unread(w, "bob"), 1);
	assert_int_equal(count_unread(w, "later/on"), 1);
	assert_int_equal(count_unread(w, "soon"), 1);
	EXPECT(MR_OK, w->ops->find_agent(w->room, "later/on", &found, &err));
	assert_int_equal(found.life, 0); /* nobody has lived there yet */
	arena_free(found.own);
}

static void
the_sender_keeps_a_copy(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	add_people(w);
	send_to(w, "bob", "hi", id);
	assert_int_equal(count_in(w, "alice", MR_SENT), 1);
	assert_int_equal(count_in(w, "bob", MR_SENT), 0);
	send_to(w, "alice", "to myself", id);
	assert_int_equal(count_in(w, "alice", MR_SENT), 2);
	assert_int_equal(count_unread(w, "alice"), 1);
}

static void
a_repeated_key_gives_the_same_id(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob" }, .key = "build-7 / \xc3\xa9" };
	struct delivered first = { 0 }, second = { 0 };

	add_people(w);
	EXPECT(MR_OK, try_send(w, &letter, &first, &err));
	assert_false(first.repeated);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", first.id, 0, 0, MR_ARCHIVE, &err)); /* wherever it is by then */
	EXPECT(MR_OK, try_send(w, &letter, &second, &err));
	assert_true(second.repeated);
	assert_string_equal(second.id, first.id);
	assert_int_equal(count_in(w, "bob", MR_INBOX | MR_ARCHIVE), 1);
	assert_int_equal(count_in(w, "alice", MR_SENT), 1);
	letter.from = "carol"; /* a key is its sender's own */
	EXPECT(MR_OK, try_send(w, &letter, &second, &err));
	assert_false(second.repeated);
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
}

static void
a_key_is_refused_for_another_content(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob" }, .key = "k" };

	add_people(w);
	EXPECT(MR_OK, try_send(w, &letter, NULL, &err));
	letter.body = STR("something else");
	EXPECT(MR_REFUSED, try_send(w, &letter, NULL, &err));
	letter = (struct letter){ .to = { "carol" }, .key = "k" };
	EXPECT(MR_REFUSED, try_send(w, &letter, NULL, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
	assert_int_equal(count_in(w, "carol", MR_INBOX), 0);
}

static void
scans_go_in_order_of_sending_both_ways(void **state)
{
	struct world *w = *state;
	char ids[4][MR_ID_LEN + 1];
	struct scan_request want = { .folders = MR_INBOX | MR_ARCHIVE };

	add_people(w);
	for (size_t i = 0; i < 4; i++)
		send_to(w, "bob", "hi", ids[i]);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[2], MR_SEEN, 0, 0, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[1], 0, 0, MR_ARCHIVE, &err));
	struct listed up = list(w, "bob", &want);

	want.order = SCAN_NEWEST;
	struct listed down = list(w, "bob", &want);

	assert_int_equal(up.n, 4);
	assert_int_equal(down.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(up.v[i].id, ids[i]);
		assert_string_equal(down.v[3 - i].id, ids[i]);
	}
	assert_int_equal(up.v[1].folder, MR_ARCHIVE);
	assert_int_equal(up.v[2].flags, MR_SEEN);
	struct listed first = { .stop_after = 1 };

	EXPECT(MR_OK, w->ops->scan(w->room, "bob", &want, list_one, &first, &err));
	assert_int_equal(first.n, 1);
	assert_string_equal(first.v[0].id, ids[3]);
}

static bool
wants_all_but(void *ctx, const char *id)
{
	return strcmp(ctx, id) != 0;
}

static void
a_scan_of_names_knows_the_order(void **state)
{
	struct world *w = *state;
	/* In order of sending; l: look inside, r: released after it was claimed */
	static const struct {
		int priority;
		char extra;
	} sent[] = { { MR_NORMAL, 0 }, { MR_URGENT, 0 }, { MR_LOW, 0 }, { MR_URGENT, 'r' }, { MR_HIGH, 0 },
		{ MR_LOW, 'l' }, { MR_NORMAL, 0 }, { MR_URGENT, 0 } };
	static const struct {
		enum scan_order order;
		size_t most, n, v[8];
	} cases[] = {
		{ SCAN_OLDEST, 0, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
		{ SCAN_OLDEST, 3, 4, { 0, 1, 2, 5 } }, /* mail to look into is not counted */
		{ SCAN_NEWEST, 2, 3, { 7, 6, 5 } },
		{ SCAN_URGENCY, 0, 8, { 5, 7, 3, 1, 4, 6, 0, 2 } },
		{ SCAN_URGENCY, 4, 5, { 5, 7, 3, 1, 4 } },
		{ SCAN_WORK, 0, 8, { 5, 1, 7, 4, 0, 6, 2, 3 } },
		{ SCAN_WORK, 1, 2, { 5, 1 } },
	};
	char ids[8][MR_ID_LEN + 1];
	size_t total = 0;

	add_people(w);
	for (size_t i = 0; i < 8; i++) {
		struct letter letter = { .to = { "bob", i % 2 ? "carol" : NULL },
			.priority = sent[i].priority - MR_HIGH,
			.look = sent[i].extra == 'l' };
		struct delivered done = { 0 };

		EXPECT(MR_OK, try_send(w, &letter, &done, &err));
		memcpy(ids[i], done.id, sizeof done.id);
		if (sent[i].extra == 'r') {
			struct claim claim = hold_ok(w, "bob", ids[i], 0, 60000);

			EXPECT(MR_OK, w->ops->settle(w->room, &claim, SETTLE_LATER, &err));
		}
	}
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		for (unsigned depth = SCAN_NAMES; depth <= SCAN_HEADERS; depth++) {
			struct scan_request want = { .folders = MR_INBOX,
				.depth = (enum scan_depth)depth,
				.order = cases[c].order,
				.most = cases[c].most,
				.ret_total = &total };
			struct listed got = list(w, "bob", &want);

			assert_int_equal(got.n, cases[c].n);
			assert_int_equal(total, 8);
			for (size_t i = 0; i < got.n; i++)
				assert_string_equal(got.v[i].id, ids[cases[c].v[i]]);
		}
	}
	struct scan_request want = {
		.folders = MR_INBOX, .order = SCAN_URGENCY, .most = 2, .wants = wants_all_but, .ret_total = &total
	};

	want.wants_ctx = ids[7];
	struct listed got = list(w, "bob", &want);

	assert_true(got.n == 3 && total == 8);
	assert_string_equal(got.v[1].id, ids[3]);
	/* By the time in the id. */
	want = (struct scan_request){ .folders = MR_INBOX | MR_ARCHIVE, .since_ms = id_time_ms(ids[0]) };
	assert_int_equal(list(w, "bob", &want).n, 8);
	want.before_ms = id_time_ms(ids[7]) + 1;
	assert_int_equal(list(w, "bob", &want).n, 8);
	want.since_ms = want.before_ms;
	assert_int_equal(list(w, "bob", &want).n, 0);
	want = (struct scan_request){ .folders = MR_INBOX | MR_ARCHIVE, .before_ms = id_time_ms(ids[0]) };
	assert_int_equal(list(w, "bob", &want).n, 0);
}

static void
a_scan_shows_only_what_was_asked_for(void **state)
{
	struct world *w = *state;
	char ids[3][MR_ID_LEN + 1];
	struct scan_request want = { .folders = MR_INBOX };
	const unsigned pin = w->ops->abilities & ROOM_PIN ? MR_PINNED : 0;

	add_people(w);
	/* Where anybody may be written to, a mailbox that is not there is an empty one. */
	struct mr_agent nobody = { 0 };
	struct mr_error gone = { 0 };
	enum mr_rc known =
	    DRIVER_HAS(w->ops, find_agent) ? w->ops->find_agent(w->room, "nobody", &nobody, &gone) : MR_OK;

	arena_free(nobody.own);
	EXPECT(known, w->ops->scan(w->room, "nobody", &want, list_one, NULL, &err));
	for (size_t i = 0; i < 3; i++)
		send_to(w, "bob", "hi", ids[i]);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[0], MR_SEEN | pin, 0, 0, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[1], pin, 0, 0, &err)); /* marked, still unread */
	want.unread_only = true;
	assert_int_equal(list(w, "bob", &want).n, 2);
	want.unread_only = false;
	want.id_suffix = ids[1] + 20;
	struct listed one = list(w, "bob", &want);

	assert_int_equal(one.n, 1);
	assert_string_equal(one.v[0].id, ids[1]);
	assert_false(one.v[0].subject || one.v[0].body);
	want.depth = SCAN_HEADERS;
	one = list(w, "bob", &want);
	assert_true(one.v[0].subject && !one.v[0].body);
	want.depth = SCAN_BODIES;
	one = list(w, "bob", &want);
	assert_true(one.v[0].subject && one.v[0].body);
	want.id_suffix = "zzzzzzzz";
	assert_int_equal(list(w, "bob", &want).n, 0);
}

static void
assert_body(const struct mr_message *msg, struct mr_str want)
{
	assert_int_equal(msg->body_len, want.len);
	assert_memory_equal(msg->body, want.ptr, want.len);
}

static void
mail_is_fetched_from_every_folder(void **state)
{
	struct world *w = *state;
	char ids[4][MR_ID_LEN + 1];
	static const enum mr_folder folders[] = { MR_INBOX, MR_HELD, MR_ARCHIVE, MR_DEAD };
	struct mr_message msg = { 0 };

	add_people(w);
	for (size_t i = 0; i < 4; i++)
		send_to(w, "bob", "the body\n", ids[i]);
	struct claim hold = hold_ok(w, "bob", ids[1], 0, 60000);

	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[2], 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", ids[3], 0, 0, MR_DEAD, &err));
	for (size_t i = 0; i < 4; i++) {
		msg = fetch_ok(w, "bob", ids[i], folders[i]);
		assert_int_equal(msg.folder, folders[i]);
		assert_body(&msg, STR("the body\n"));
		assert_string_equal(msg.token, i == 1 ? hold.token : "");
		mr_message_done(&msg);
		if (folders[i] == MR_DEAD)
			continue;
		assert_int_equal(flags_of(w, "bob", ids[i], 0), 0);
		EXPECT(MR_OK, w->ops->fetch(w->room, "bob", ids[i], 0, SCAN_RAW, &msg, &err));
		assert_non_null(strstr(msg.body, ids[i]));
		mr_message_done(&msg);
		EXPECT(MR_NOTFOUND,
		    w->ops->fetch(w->room, "bob", ids[i], (unsigned)~folders[i] & 15, SCAN_NAMES, &msg, &err));
	}
	msg = fetch_ok(w, "alice", ids[0], MR_SENT);
	mr_message_done(&msg);
	EXPECT(MR_NOTFOUND, w->ops->fetch(w->room, "carol", ids[0], 0, SCAN_HEADERS, &msg, &err));
	EXPECT(MR_NOTFOUND, w->ops->fetch(w->room, "nobody", ids[0], 0, SCAN_HEADERS, &msg, &err));
}

static void
marks_are_set_and_cleared(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];
	const unsigned all = MR_SEEN | MR_REPLIED | MR_PINNED | MR_TRASHED;

	add_people(w);
	send_to(w, "bob", "hi", id);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_PINNED, 0, 0, &err));
	assert_int_equal(flags_of(w, "bob", id, 0), MR_PINNED);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, all, 0, 0, &err));
	assert_int_equal(flags_of(w, "bob", id, 0), all);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, all, 0, 0, &err)); /* twice is once */
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_REPLIED, MR_SEEN | MR_TRASHED, 0, &err));
	assert_int_equal(flags_of(w, "bob", id, 0), MR_REPLIED | MR_PINNED);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, 0, all, 0, &err));
	assert_int_equal(flags_of(w, "bob", id, 0), 0);
	assert_int_equal(count_unread(w, "bob"), 1);
	EXPECT(MR_NOTFOUND, w->ops->mark(w->room, "bob", "01k9w3b7zq8m4c2v6t1x5n0prs", MR_SEEN, 0, 0, &err));
	EXPECT(MR_NOTFOUND, w->ops->mark(w->room, "alice", id, MR_SEEN, 0, 0, &err)); /* hers is in sent */
	if (DRIVER_HAS(w->ops, flush))
		EXPECT(MR_OK, w->ops->flush(w->room, &err));
}

static void
mail_moves_to_the_archive_and_back_with_its_marks(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	add_people(w);
	send_to(w, "bob", "hi", id);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_SEEN | MR_PINNED, 0, 0, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, 0, 0, MR_ARCHIVE, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
	assert_int_equal(flags_of(w, "bob", id, MR_ARCHIVE), MR_SEEN | MR_PINNED);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_REPLIED, MR_SEEN, 0, &err));
	assert_int_equal(flags_of(w, "bob", id, MR_ARCHIVE), MR_REPLIED | MR_PINNED);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, 0, 0, MR_INBOX, &err));
	assert_int_equal(count_in(w, "bob", MR_ARCHIVE), 0);
	assert_int_equal(flags_of(w, "bob", id, MR_INBOX), MR_REPLIED | MR_PINNED);
	assert_int_equal(count_unread(w, "bob"), 1);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, 0, 0, MR_DEAD, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX | MR_ARCHIVE), 0);
	assert_int_equal(count_in(w, "", MR_DEAD), 1);
	EXPECT(MR_NOTFOUND, w->ops->mark(w->room, "bob", id, 0, 0, MR_ARCHIVE, &err));
	if (DRIVER_HAS(w->ops, flush))
		EXPECT(MR_OK, w->ops->flush(w->room, &err));
}

/* Text always ends in a line end; everything else is kept as it is. */
static void
any_body_comes_back_byte_for_byte(void **state)
{
	struct world *w = *state;
	const size_t mib = (size_t)1 << 20;
	mr_auto(free_ptr) char *large = malloc(mib);

	assert_non_null(large);
	for (size_t i = 0; i < mib; i++)
		large[i] = (char)(i * 2654435761u >> 13);
	const struct mr_str bodies[] = { STR(""), STR("a\0b\0\n"), STR("\xff\xfe bad \xc3\n"), STR("dos\r\nlines\r\n"),
		STR("\n\nFrom: not a header\n\n"), STR("From here\n.\n"), STR("\n"),
		STR("lone\rreturn and a tail \n\n\n"), STR("\xf0\x9f\xa4\x9d utf-8\n"), { large, mib } };

	struct mr_message open_ended = { 0 };
	char id[MR_ID_LEN + 1];

	add_people(w);
	send_to(w, "bob", "no line end", id);
	open_ended = fetch_ok(w, "bob", id, MR_INBOX);
	if (open_ended.body_len != 11) /* other formats keep it as it is */
		assert_body(&open_ended, STR("no line end\n"));
	mr_message_done(&open_ended);
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		struct letter letter = { .to = { "bob", "carol" }, .body = bodies[i] };
		struct delivered done = { 0 };

		if ((lacking(w) & FIELD_BINARY) &&
		    (!utf8_valid(bodies[i]) || memchr(bodies[i].ptr, '\0', bodies[i].len)))
			continue;
		EXPECT(MR_OK, try_send(w, &letter, &done, &err));
		struct mr_message msg = fetch_ok(w, "carol", done.id, MR_INBOX);

		assert_body(&msg, bodies[i]);
		mr_message_done(&msg);
	}
}

static void
a_watch_ends_when_mail_comes(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];
	void *watch = NULL;

	add_people(w);
	if (!DRIVER_HAS(w->ops, watch))
		skip();
	EXPECT(MR_OK, w->ops->watch(w->room, "bob", &watch, &err));
	send_to(w, "bob", "hi", id);
	int64_t start_ms = clock_boot_ms();

	w->ops->watch_wait(w->room, watch, 60000);
	assert_true(clock_boot_ms() - start_ms < 10000);
	w->ops->watch_close(w->room, watch);
}

const struct suite_case mail_cases[] = {
	CASE(mail_reaches_every_recipient_once, ROOM_REGISTER),
	CASE(each_recipient_has_its_own_read_state, ROOM_REGISTER | ROOM_READ_STATE),
	CASE(a_missing_recipient_refuses_all, ROOM_REGISTER),
	CASE(a_key_of_a_refused_send_is_free, ROOM_REGISTER | ROOM_KEYS),
	CASE(missing_mailboxes_are_made_when_asked, ROOM_REGISTER),
	CASE(the_sender_keeps_a_copy, ROOM_SENT),
	CASE(a_repeated_key_gives_the_same_id, ROOM_REGISTER | ROOM_KEYS | ROOM_ARCHIVE),
	CASE(a_key_is_refused_for_another_content, ROOM_REGISTER | ROOM_KEYS),
	CASE(scans_go_in_order_of_sending_both_ways, ROOM_READ_STATE | ROOM_ARCHIVE),
	CASE(a_scan_of_names_knows_the_order, ROOM_NAMES),
	CASE(a_scan_shows_only_what_was_asked_for, ROOM_READ_STATE),
	CASE(mail_is_fetched_from_every_folder, ROOM_REGISTER | ROOM_ARCHIVE | ROOM_HOLDS),
	CASE(marks_are_set_and_cleared, ROOM_REGISTER | ROOM_READ_STATE | ROOM_PIN),
	CASE(mail_moves_to_the_archive_and_back_with_its_marks, ROOM_REGISTER | ROOM_ARCHIVE | ROOM_PIN),
	CASE(any_body_comes_back_byte_for_byte, ROOM_REGISTER),
	CASE(a_watch_ends_when_mail_comes, 0),
	{ 0 },
};
