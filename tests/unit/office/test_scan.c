/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "town.h"

/* low 1, urgent 2, normal 3, urgent 4, high 5: subjects in the order of sending */
static void
send_five(struct town *t)
{
	static const enum mr_priority priorities[] = { MR_LOW, MR_URGENT, MR_NORMAL, MR_URGENT, MR_HIGH };
	static const char *const subjects[] = { "low 1", "urgent 2", "normal 3", "urgent 4", "high 5" };

	for (size_t i = 0; i < 5; i++) {
		struct mr_draft draft = draft_to(TO("bob"), "text of a message");

		draft.subject = subjects[i];
		draft.priority = priorities[i];
		draft.type = i % 2 ? "TASK" : NULL;
		town_send_draft(t, i < 3 ? &t->alice : &t->carol, &draft, NULL);
	}
}

static void
assert_order(struct town *t, const struct mr_scan *scan, const char *const *subjects)
{
	struct seen seen = town_scan(t, "bob", scan);
	size_t n = 0;

	for (; subjects[n]; n++) {
		assert_true(n < seen.n);
		assert_string_equal(seen.subjects[n], subjects[n]);
	}
	assert_int_equal(seen.n, n);
}

static void
four_orders_and_a_limit(void **state)
{
	struct town t = town_new(state);
	struct mr_scan scan = { 0 };

	send_five(&t);
	assert_order(&t, &scan, TO("low 1", "urgent 2", "normal 3", "urgent 4", "high 5"));
	scan.order = MR_NEWEST_FIRST;
	assert_order(&t, &scan, TO("high 5", "urgent 4", "normal 3", "urgent 2", "low 1"));
	scan.limit = 2;
	assert_order(&t, &scan, TO("high 5", "urgent 4"));
	scan.order = MR_BY_PRIORITY;
	assert_order(&t, &scan, TO("urgent 4", "urgent 2"));
	scan.limit = 0;
	assert_order(&t, &scan, TO("urgent 4", "urgent 2", "high 5", "normal 3", "low 1"));
	scan.order = MR_WORK_ORDER;
	scan.bodies = true;
	assert_order(&t, &scan, TO("urgent 2", "urgent 4", "high 5", "normal 3", "low 1"));
	town_done(&t);
}

static void
filters_let_through_what_they_say(void **state)
{
	struct town t = town_new(state);
	enum mr_priority urgent = MR_URGENT;
	struct mr_error err = { 0 };

	send_five(&t);
	struct seen all = town_unread(&t, "bob");

	assert_order(&t, &(struct mr_scan){ .filter = { .from = "carol" } }, TO("urgent 4", "high 5"));
	assert_order(&t, &(struct mr_scan){ .filter = { .from = "carol@town" } }, TO("urgent 4", "high 5"));
	assert_order(&t, &(struct mr_scan){ .filter = { .type = "task" } }, TO("urgent 2", "urgent 4"));
	assert_order(&t, &(struct mr_scan){ .filter = { .priority = &urgent } }, TO("urgent 2", "urgent 4"));
	assert_order(&t, &(struct mr_scan){ .filter = { .since_ms = clock_now_ms() + 1000 } }, TO(NULL));
	assert_int_equal(
	    town_scan(&t, "bob", &(struct mr_scan){ .filter = { .before_ms = clock_now_ms() + 1000 } }).n, 5);
	assert_ok(mr_mark(t.room, &t.bob, all.ids[1], MR_SEEN, 0, &err));
	assert_order(&t, &(struct mr_scan){ .filter = { .seen = true } }, TO("urgent 2"));
	assert_int_equal(town_unread(&t, "bob").n, 4);
	assert_ok(mr_archive(t.room, &t.bob, all.ids[1], &err));
	assert_order(&t, &(struct mr_scan){ .filter = { .folders = MR_ARCHIVE } }, TO("urgent 2"));
	assert_int_equal(town_scan(&t, "bob", &(struct mr_scan){ 0 }).n, 4);
	assert_ok(mr_flush(t.room, &err));
	town_done(&t);
}

static void
words_and_patterns_search_headers_and_text(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "The Branch is feature-xyz\nÄrger im Büro");
	struct seen seen = { 0 };
	struct mr_error err = { 0 };

	draft.subject = "MERGE_READY nux";
	town_send_draft(&t, &t.alice, &draft, NULL);
	town_send(&t, &t.carol, "bob", "something else", NULL);
	assert_order(&t, &(struct mr_scan){ .filter = { .words = "FEATURE-XYZ  alice nux" } }, TO("MERGE_READY nux"));
	assert_order(&t, &(struct mr_scan){ .filter = { .words = "Büro" } }, TO("MERGE_READY nux"));
	assert_order(&t, &(struct mr_scan){ .filter = { .words = "alice else" } }, TO(NULL));
	assert_order(&t, &(struct mr_scan){ .filter = { .regex = "^the branch is .*z$" } }, TO("MERGE_READY nux"));
	assert_order(&t, &(struct mr_scan){ .filter = { .regex = "^from: (carol|dora)" }, .order = MR_BY_PRIORITY },
	    TO("something else"));
	struct mr_scan bad = { .filter = { .regex = "a(b" } };

	assert_rc(mr_scan(t.room, "bob", &bad, town_note, &seen, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "a(b"));
	town_done(&t);
}

/* ---- Ids ---- */

static void
plant(struct town *t, const char *id)
{
	struct mr_message msg = { .from = "alice",
		.subject = "planted",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "x",
		.body_len = 1,
		.path = "",
		.date_ms = 1 };
	char name[] = "bob", *names[] = { name };
	struct mr_names to = { names, 1 };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)snprintf(msg.id, sizeof(msg.id), "%s", id);
	assert_ok(t->room->driver->deliver(t->room, &what, &got, &err));
}

static void
the_end_of_an_id_is_enough_unless_it_is_ambiguous(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1] = "untouched";

	plant(&t, "01k9w3b7zq8m4c2v6t1x5n0prs");
	plant(&t, "01k9w3b7zq8m4c2v6t9y5n0prs");
	assert_rc(mr_resolve_id(t.room, "bob", "5n0prs", 0, id, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "01k9w3b7zq8m4c2v6t1x5n0prs"));
	assert_non_null(strstr(err.hint, "01k9w3b7zq8m4c2v6t9y5n0prs"));
	assert_string_equal(id, "untouched");
	assert_ok(mr_resolve_id(t.room, "bob", "Y5N0PRS", 0, id, &err));
	assert_string_equal(id, "01k9w3b7zq8m4c2v6t9y5n0prs");
	assert_ok(mr_resolve_id(t.room, "bob", "<01k9w3b7zq8m4c2v6t1x5n0prs@town>", 0, id, &err));
	assert_string_equal(id, "01k9w3b7zq8m4c2v6t1x5n0prs");
	assert_rc(mr_resolve_id(t.room, "bob", "n0prs", 0, id, &err), MR_REFUSED);
	assert_rc(mr_resolve_id(t.room, "bob", "../../etc", 0, id, &err), MR_REFUSED);
	assert_rc(mr_resolve_id(t.room, "bob", "", 0, id, &err), MR_REFUSED);
	assert_rc(mr_resolve_id(t.room, "bob", "zzzzzz", 0, id, &err), MR_NOTFOUND);
	town_done(&t);
}

static enum mr_rc
add_raw(void *ctx, const char *bytes, size_t n, struct mr_error *err)
{
	(void)err;
	buf_add(ctx, (struct mr_str){ bytes, n });
	return MR_OK;
}

static void
mail_to_oneself_is_not_ambiguous(void **state)
{
	struct town t = town_new(state);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf raw = BUF_INIT;
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "alice", "note to myself", id);
	assert_ok(mr_fetch(t.room, "alice", id + 18, &msg, &err));
	assert_string_equal(msg.subject, "note to myself");
	assert_int_equal(msg.folder, MR_INBOX);
	mr_message_done(&msg);
	assert_ok(mr_fetch_raw(t.room, "alice", id + 18, add_raw, &raw, &err));
	assert_non_null(strstr(buf_z(&raw), "note to myself\n"));
	assert_rc(mr_fetch(t.room, "alice", "01k9w3b7zq8m4c2v6t1x5n0prs", &msg, &err), MR_NOTFOUND);
	town_done(&t);
}

/* ---- What happened ---- */

struct facts {
	size_t n;
	struct {
		char agent[40], state[16], evidence[300];
	} v[16];
};

static enum mr_rc
why(struct town *t, const struct mr_self *self, const char *id, struct facts *f)
{
	mr_auto(mr_list_done) struct mr_trails all = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_why(t->room, self, id, &all, &err);

	for (const struct mr_trail *fact = all.v; fact < all.v + all.n; fact++) {
		assert_true(f->n < 16);
		(void)snprintf(f->v[f->n].agent, 40, "%s", fact->agent);
		(void)snprintf(f->v[f->n].state, 16, "%s", fact->state);
		(void)snprintf(f->v[f->n++].evidence, 300, "%s", fact->evidence);
	}
	return rc;
}

static const char *
fact_of(const struct facts *f, const char *agent, const char *state)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].agent, agent) == 0 && strcmp(f->v[i].state, state) == 0)
			return f->v[i].evidence;
	return NULL;
}

static void
why_tells_where_each_copy_is(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "hello");
	struct facts f = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, id);
	assert_ok(mr_mark(t.room, &t.bob, id, MR_SEEN, 0, &err));
	assert_ok(mr_archive(t.room, &t.bob, id, &err));
	assert_int_equal(why(&t, &t.operator, id + 16, &f), MR_OK); /* not in the operator's own mailbox */
	assert_non_null(fact_of(&f, "alice", "sent"));
	assert_non_null(fact_of(&f, "bob", "archived"));
	assert_non_null(fact_of(&f, "carol", "unread"));
	assert_non_null(strstr(fact_of(&f, "carol", "unread"), "'carol' is unknown"));
	assert_int_equal(f.n, 3);
	assert_int_equal(why(&t, &t.alice, "01k9w3b7zq8m4c2v6t1x5n0prs", &f), MR_NOTFOUND);
	town_done(&t);
}

static void
a_recipient_without_a_copy_is_named(void **state)
{
	struct town t = town_new(state);
	char id[] = "01k9w3b7zq8m4c2v6t1x5n0prs", bob[] = "bob", carol[] = "carol", *both[] = { bob, carol };
	struct mr_message msg = { .from = "alice",
		.to = { both, 2 },
		.subject = "s",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "x",
		.body_len = 1,
		.path = "",
		.date_ms = 1 };
	struct mr_names to = { both, 1 };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered got = { 0 };
	struct facts f = { 0 };
	struct mr_error err = { 0 };

	(void)snprintf(msg.id, sizeof(msg.id), "%s", id);
	assert_ok(t.room->driver->deliver(t.room, &what, &got, &err));
	assert_int_equal(why(&t, &t.alice, id, &f), MR_OK);
	assert_non_null(fact_of(&f, "carol", "nowhere"));
	assert_null(fact_of(&f, "bob", "nowhere"));
	town_done(&t);
}

static void
purge_removes_every_copy_and_leaves_a_tombstone(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "the key is 1234");
	struct facts f = { 0 };
	struct mr_error err = { 0 };
	struct mr_purged purged = { 0 };
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, id);
	town_send(&t, &t.alice, "bob", "stays", NULL);
	assert_rc(mr_purge(t.room, &t.alice, id, "line\nbreak", &purged, &err), MR_REFUSED);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 2);
	assert_ok(mr_mark(t.room, &t.bob, id, MR_SEEN, 0, &err));
	assert_ok(mr_purge(t.room, &t.alice, id + 18, "leaked key", &purged, &err));
	assert_int_equal(purged.removed, 3);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 1);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), 1); /* that it is gone, which bob need not be told */
	assert_int_equal(purged.told.n, 1);
	assert_string_equal(purged.told.v[0], "carol");
	assert_int_equal(purged.carried.n, 0);
	mr_purged_done(&purged);
	assert_int_equal(town_count(&t, "alice", MR_SENT), 2);
	assert_int_equal(why(&t, &t.alice, id, &f), MR_OK);
	assert_int_equal(f.n, 1);
	assert_non_null(strstr(fact_of(&f, "", "purged"), "by 'alice'"));
	assert_non_null(strstr(fact_of(&f, "", "purged"), "leaked key"));
	assert_rc(mr_purge(t.room, &t.alice, id, "again", &purged, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
only_the_sender_and_the_operator_may_purge(void **state)
{
	struct town t = town_new(state);
	struct mr_self harness = t.operator;
	struct mr_error err = { 0 };
	char one[MR_ID_LEN + 1], two[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "one", one);
	town_send(&t, &t.alice, "bob", "two", two);
	harness.bound = true;
	assert_rc(mr_purge(t.room, &t.bob, one, "", NULL, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "alice"));
	assert_rc(mr_purge(t.room, &t.carol, one, "", NULL, &err), MR_REFUSED);
	assert_rc(mr_purge(t.room, &harness, one, "", NULL, &err), MR_REFUSED);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 2);
	assert_ok(mr_purge(t.room, &t.operator, one, "", NULL, &err));
	assert_ok(mr_purge(t.room, &t.alice, two, "", NULL, &err));
	town_done(&t);
}

/* More of one time than fit into one record. */
static void
every_purged_message_has_its_tombstone(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1], first[MR_ID_LEN + 1], long_reason[600];
	struct facts f = { 0 };

	memset(long_reason, 'x', sizeof long_reason - 1);
	long_reason[sizeof long_reason - 1] = '\0';
	for (int i = 0; i < 100; i++) {
		town_send(&t, &t.alice, "bob", "x", i == 0 ? first : id);
		assert_ok(mr_purge(t.room, &t.alice, i == 0 ? first : id, long_reason, NULL, &err));
	}
	assert_int_equal(why(&t, &t.alice, first, &f), MR_OK);
	assert_non_null(strstr(fact_of(&f, "", "purged"), "by 'alice'"));
	f = (struct facts){ 0 };
	assert_int_equal(why(&t, &t.alice, id, &f), MR_OK);
	assert_non_null(strstr(fact_of(&f, "", "purged"), "by 'alice'"));
	town_done(&t);
}

static void
count_problems(void *ctx, const struct mr_finding *finding)
{
	if (finding->severity == MR_PROBLEM) {
		print_message("problem: %s: %s\n", finding->code, finding->what);
		++*(size_t *)ctx;
	}
}

static void
a_fresh_room_has_no_problems(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	size_t problems = 0;

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_ok(mr_doctor(t.room, false, count_problems, &problems, &err));
	assert_int_equal(problems, 0);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(four_orders_and_a_limit),
		ON_BOTH(filters_let_through_what_they_say),
		ON_BOTH(words_and_patterns_search_headers_and_text),
		ON_BOTH(the_end_of_an_id_is_enough_unless_it_is_ambiguous),
		ON_BOTH(mail_to_oneself_is_not_ambiguous),
		ON_BOTH(why_tells_where_each_copy_is),
		ON_BOTH(a_recipient_without_a_copy_is_named),
		ON_BOTH(purge_removes_every_copy_and_leaves_a_tombstone),
		ON_BOTH(only_the_sender_and_the_operator_may_purge),
		ON_BOTH(every_purged_message_has_its_tombstone),
		ON_BOTH(a_fresh_room_has_no_problems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
