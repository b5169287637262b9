/* SPDX-License-Identifier: MIT */
/*
 * The post office in rooms that are not its own: slots that are NULL, abilities that are missing, names in other
 * letters. The room is one in memory whose table is cut down to what the driver of another format has.
 */
#include "message/address.h"
#include "message/message.h"
#include "town.h"

struct foreign {
	struct mr_room *room;
	struct room_driver driver;
	struct mr_self alice, bob;
};

static unsigned held_back; /* what lacks_some reports */
static size_t fetched;     /* calls of fetch */
static const struct room_driver *whole;
static char sent_reply_path[64];
static bool answer_there;
static size_t sent_headers; /* of the last message */

static enum mr_rc
spell_escaped(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	(void)room;
	if (address_normal(str_of(given), ret, &ignored) == MR_OK)
		return MR_OK;
	return foreign_to_address(str_of(given), ret, err);
}

static unsigned
lacks_some(struct mr_room *room, const struct mr_message *msg)
{
	unsigned has = 0;

	(void)room;
	has |= *msg->subject ? FIELD_SUBJECT : 0;
	has |= msg->cc.n > 0 ? FIELD_CC : 0;
	has |= *msg->type ? FIELD_TYPE : 0;
	has |= msg->priority != MR_NORMAL ? FIELD_PRIORITY : 0;
	has |= *msg->thread ? FIELD_THREAD : 0;
	has |= *msg->reply_to ? FIELD_REPLY_TO : 0;
	for (size_t i = 0; i < msg->headers_n; i++)
		has |= strcmp(msg->headers[i].name, "Color") != 0 ? FIELD_HEADERS : 0;
	has |= msg->by_ms ? FIELD_BY : 0;
	return has & held_back;
}

static enum mr_rc
counted_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	fetched++;
	return whole->fetch(room, agent, id, folders, depth, ret, err);
}

static enum mr_rc
noting_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	sent_headers = what->msg->headers_n;
	enum mr_rc rc = whole->deliver(room, what, ret, err);

	(void)snprintf(ret->native_id, sizeof(ret->native_id), "called-%.6s", ret->id + 20);
	return rc;
}

static enum mr_rc
noting_folder(struct mr_room *room, const char *folder, struct mr_error *err)
{
	(void)room;
	(void)err;
	(void)snprintf(sent_reply_path, sizeof(sent_reply_path), "%s", folder);
	return MR_OK;
}

static enum mr_rc
found_answer(
    struct mr_room *room, const char *dir, const char *id, bool take, struct mr_message *ret, struct mr_error *err)
{
	struct mr_message answer = { .from = "x",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.body = "yes",
		.body_len = 3 };

	(void)room;
	assert_string_equal(dir, "/client");
	assert_true(str_starts(str_of(id), "called-"));
	if (!answer_there)
		return mr_fail(err, MR_NOTFOUND, "not yet");
	answer_there = !take;
	return message_copy(&answer, ret, err);
}

static enum mr_rc
clear_some(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	(void)room;
	(void)err;
	assert_int_equal(what->what, REMOVE_INBOX);
	*ret_removed = strcmp(what->box, "bob") == 0 ? 3 : 0;
	return MR_OK;
}

/* Nothing but what the formats of other programs have. */
static void
cut_down(struct room_driver *d, unsigned abilities)
{
	const struct room_driver all = *d;

	const struct room_driver left = {
		.kind = "strange",
		.abilities = abilities,
		.open = all.open,
		.close = all.close,
		.each_agent = all.each_agent,
		.find_agent = all.find_agent,
		.add_agent = all.add_agent,
		.remove_box = all.remove_box,
		.spell = spell_escaped,
		.unsupported = lacks_some,
		.deliver = all.deliver,
		.scan = all.scan,
		.fetch = counted_fetch,
		.mark = abilities & (ROOM_READ_STATE | ROOM_ARCHIVE) ? all.mark : NULL,
	};
	room_fill(d, &left);
}

static struct foreign
foreign_new(unsigned abilities)
{
	struct foreign f = { .alice.agent = "alice", .bob.agent = "bob" };
	struct mr_error err = { 0 };

	held_back = 0;
	fetched = 0;
	assert_ok(mr_room_open("mem:strange", NULL, &f.room, &err));
	whole = f.room->driver;
	f.driver = *whole;
	cut_down(&f.driver, abilities);
	return f;
}

/* The table must be where the room finds it. */
static void
foreign_use(struct foreign *f, const char *const *agents)
{
	struct mr_error err = { 0 };

	f->room->driver = &f->driver;
	for (; agents && *agents; agents++) {
		struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

		assert_ok(foreign_to_address(str_of(*agents), agent.name, &err));
		assert_ok(f->driver.add_agent(f->room, &agent, &err));
	}
}

static void
foreign_done(struct foreign *f)
{
	mr_room_close(f->room);
}

#define OPEN_FOREIGN(f, abilities, ...)                                                                                \
	struct foreign f = foreign_new(abilities);                                                                     \
	struct mr_error err = { 0 };                                                                                   \
	foreign_use(&f, TO(__VA_ARGS__))

static enum mr_rc
send_to(struct foreign *f, const char *to, const char *body, struct mr_receipt *ret, struct mr_error *err)
{
	struct mr_draft draft = draft_to(TO(to), body);

	return mr_send(f->room, &f->alice, &draft, ret, err);
}

static void
names_are_spelled(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "Old Bob", "bob");
	struct mr_receipt receipt = { 0 };
	struct mr_self self = { 0 };
	struct mr_agent agent = { 0 };

	(void)state;
	assert_ok(send_to(&f, "Old Bob", "hi", &receipt, &err));
	assert_string_equal(receipt.to.v[0], "Old%20Bob");
	assert_int_equal(receipt.not_live.n, 0);
	mr_receipt_done(&receipt);
	assert_ok(send_to(&f, "Old%20Bob", "an address stands for itself", &receipt, &err));
	assert_string_equal(receipt.to.v[0], "Old%20Bob");
	mr_receipt_done(&receipt);
	assert_rc(send_to(&f, "Old Tom", "hi", &receipt, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "-m"));
	assert_rc(send_to(&f, "bobb", "hi", &receipt, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'bob'"));
	assert_ok(mr_self_named(f.room, "Old Bob", &self, &err));
	assert_string_equal(self.agent, "Old%20Bob");
	assert_ok(mr_agent_get(f.room, "Old Bob", &agent, &err));
	mr_agent_done(&agent);
	foreign_done(&f);
}

static void
where_nobody_registers_anybody_is_written_to(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_OPEN_BOXES, "bob");
	struct mr_receipt receipt = { 0 };
	struct mr_registration reg = { 0 };
	struct mr_env env = { 0 };
	struct mr_self self = { 0 };
	struct mr_counts counts = { 0 };

	(void)state;
	assert_ok(mr_count(f.room, "carol", &counts, &err));
	assert_ok(send_to(&f, "carol", "hi", &receipt, &err));
	assert_int_equal(receipt.not_live.n, 1); /* worth a word: it may be a slip */
	mr_receipt_done(&receipt);
	assert_ok(mr_count(f.room, "carol", &counts, &err));
	assert_int_equal(counts.unread, 1);
	assert_ok(send_to(&f, "operator", "just a name", &receipt, &err));
	mr_receipt_done(&receipt);
	assert_rc(mr_register(f.room, "dan", &env, NULL, &reg, &err), MR_UNSUPPORTED);
	assert_ok(mr_self_named(f.room, "whoever", &self, &err));
	assert_rc(mr_self_resolve(f.room, &env, &self, &err), MR_NOTFOUND);
	assert_null(strstr(err.hint, "register"));
	foreign_done(&f);
}

static void
all_is_everybody_but_the_sender(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "alice", "bob", "Old Bob", "operator");
	struct mr_receipt receipt = { 0 };

	(void)state;
	assert_ok(send_to(&f, "@all", "hi", &receipt, &err));
	assert_int_equal(receipt.to.n, 3);
	assert_false(names_has(&receipt.to, "alice"));
	assert_true(names_has(&receipt.to, "operator"));
	mr_receipt_done(&receipt);
	foreign_done(&f);
}

static void
what_was_asked_for_and_cannot_be_held_is_refused(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "bob", "carol");
	struct mr_draft plain = draft_to(TO("bob"), "hi");
	struct mr_header color = { "Color", "blue" }, other = { "X-Mood", "blue" };
	const struct {
		struct mr_draft draft;
		unsigned field;
		const char *says;
	} refused[] = {
		{ { .subject = "s" }, FIELD_SUBJECT, "subjects" },
		{ { .type = "t" }, FIELD_TYPE, "types" },
		{ { .priority = MR_URGENT }, FIELD_PRIORITY, "priorities" },
		{ { .thread = "t" }, FIELD_THREAD, "threads" },
		{ { .headers = &other, .headers_n = 1 }, FIELD_HEADERS, "headers" },
		{ { .cc = TO("carol") }, FIELD_CC, "copies" },
		{ { .key = "k" }, 0, "keys" },
		{ { .by_ms = 1 }, FIELD_BY, "answer" },
		{ { .reply_path = "/x" }, 0, "reply paths" },
	};
	struct mr_receipt receipt = { 0 };
	struct mr_counts counts = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct mr_draft draft = refused[i].draft;

		draft.to = plain.to;
		draft.body = plain.body;
		draft.body_len = plain.body_len;
		held_back = refused[i].field;
		assert_rc(mr_send(f.room, &f.alice, &draft, &receipt, &err), MR_UNSUPPORTED);
		assert_non_null(strstr(err.message, refused[i].says));
		assert_true(refused[i].field == 0 || err.hint[0] != '\0');
	}
	assert_ok(mr_count(f.room, "bob", &counts, &err));
	assert_int_equal(counts.unread, 0);
	held_back = FIELD_HEADERS | FIELD_SUBJECT; /* a subject that was made of the body is no loss */
	plain.headers = &color;
	plain.headers_n = 1;
	assert_ok(mr_send(f.room, &f.alice, &plain, &receipt, &err));
	mr_receipt_done(&receipt);
	foreign_done(&f);
}

static void
an_answer_leaves_out_what_cannot_be_held(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "alice", "bob");
	struct mr_draft draft = draft_to(TO("bob"), "which port?"), answer = draft_to(NULL, "8081");
	struct mr_receipt receipt = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	(void)state;
	f.driver.deliver = noting_deliver;
	draft.priority = MR_URGENT;
	assert_ok(mr_send(f.room, &f.alice, &draft, &receipt, &err));
	memcpy(id, receipt.id, sizeof(id));
	mr_receipt_done(&receipt);
	held_back = FIELD_SUBJECT | FIELD_PRIORITY | FIELD_THREAD | FIELD_REPLY_TO | FIELD_HEADERS | FIELD_CC;
	assert_ok(mr_reply(f.room, &f.bob, id, &answer, true, &receipt, &err));
	assert_ok(mr_fetch(f.room, "alice", receipt.id, &msg, &err));
	assert_int_equal(msg.priority, MR_NORMAL);
	assert_int_equal(sent_headers, 0); /* not even References */
	mr_message_done(&msg);
	mr_receipt_done(&receipt);
	answer.priority = MR_LOW; /* but this was said */
	assert_rc(mr_reply(f.room, &f.bob, id, &answer, false, &receipt, &err), MR_UNSUPPORTED);
	assert_rc(mr_question(f.room, "alice", id, id, &err), MR_UNSUPPORTED);
	held_back = 0;
	assert_ok(mr_question(f.room, "alice", id, id, &err)); /* found in bob's mailbox: alice has no copy */
	foreign_done(&f);
}

static void
looking_asks_for_what_there_is(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "alice", "bob");
	struct mr_receipt receipt = { 0 };
	struct seen seen = { 0 };
	struct mr_scan everywhere = { .filter = { .folders = MR_INBOX | MR_ARCHIVE | MR_SENT | MR_HELD } };
	struct mr_scan sent = { .filter = { .folders = MR_SENT } }, dead = { .filter = { .folders = MR_DEAD } };
	struct mr_scan thread = { .filter = { .thread = "x" } }, type = { .filter = { .type = "x" } };
	enum mr_priority high = MR_HIGH;
	struct mr_scan priority = { .filter = { .priority = &high } };
	size_t removed = 0;

	(void)state;
	assert_ok(send_to(&f, "bob", "hi", &receipt, &err));
	mr_receipt_done(&receipt);
	assert_ok(mr_scan(f.room, "bob", &everywhere, town_note, &seen, &err));
	assert_int_equal(seen.n, 1);
	assert_rc(mr_scan(f.room, "alice", &sent, town_note, &seen, &err), MR_UNSUPPORTED);
	assert_rc(mr_scan(f.room, "alice", &dead, town_note, &seen, &err), MR_UNSUPPORTED);
	assert_rc(mr_scan(f.room, "bob", &thread, town_note, &seen, &err), MR_UNSUPPORTED);
	assert_ok(mr_scan(f.room, "bob", &type, town_note, &seen, &err)); /* a subject has one, too */
	assert_rc(mr_scan(f.room, "bob", &priority, town_note, &seen, &err), MR_UNSUPPORTED);
	assert_rc(mr_wait(f.room, "bob", &thread.filter, 0, NULL, &err), MR_UNSUPPORTED);
	assert_rc(mr_archive(f.room, &f.bob, seen.ids[0], &err), MR_UNSUPPORTED);
	assert_rc(mr_clear(f.room, &f.bob, &removed, &err), MR_UNSUPPORTED);
	f.driver.remove = clear_some;
	f.driver.abilities |= ROOM_CLEAR;
	assert_ok(mr_clear(f.room, &f.bob, &removed, &err));
	assert_int_equal(removed, 3);
	foreign_done(&f);
}

static void
no_slot_is_taken_for_granted(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "alice", "bob");
	struct mr_receipt receipt = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_resolution meant = { 0 };
	struct mr_trails trails = { 0 };
	struct mr_dues dues = { 0 };
	char id[MR_ID_LEN + 1];

	(void)state;
	assert_ok(send_to(&f, "bob", "hi", &receipt, &err));
	memcpy(id, receipt.id, sizeof(id));
	mr_receipt_done(&receipt);
	assert_rc(mr_recv(f.room, &f.bob, NULL, 1000, &claim, &msg, &err), MR_UNSUPPORTED);
	assert_rc(mr_claim_done(f.room, &f.bob, id, NULL, id, NULL, &err), MR_UNSUPPORTED);
	assert_rc(mr_why(f.room, &f.alice, id, &trails, &err), MR_UNSUPPORTED);
	assert_rc(mr_purge(f.room, &f.alice, id, NULL, NULL, &err), MR_UNSUPPORTED);
	assert_rc(mr_fetch_raw(f.room, "bob", id, NULL, NULL, &err), MR_UNSUPPORTED);
	assert_rc(mr_dead_each(f.room, 0, NULL, NULL, NULL, &err), MR_UNSUPPORTED);
	assert_rc(mr_dead_drop(f.room, &f.alice, id, &err), MR_UNSUPPORTED);
	assert_rc(mr_dead_retry(f.room, &f.alice, id, NULL, &receipt, &err), MR_UNSUPPORTED);
	assert_rc(mr_group_create(f.room, &f.alice, "team", TO("bob"), &err), MR_UNSUPPORTED);
	assert_rc(mr_queue_create(f.room, &f.alice, &(struct mr_queue){ .name = "q" }, &err), MR_UNSUPPORTED);
	assert_rc(mr_channel_create(f.room, &f.alice, "c", 0, 0, &err), MR_UNSUPPORTED);
	assert_rc(send_to(&f, "queue:q", "hi", &receipt, &err), MR_UNSUPPORTED);
	assert_rc(send_to(&f, "channel:c", "hi", &receipt, &err), MR_UNSUPPORTED);
	assert_rc(send_to(&f, "group:g", "hi", &receipt, &err), MR_UNSUPPORTED);
	assert_rc(send_to(&f, "@nothing", "hi", &receipt, &err), MR_NOTFOUND);
	assert_ok(mr_resolve(f.room, "alice", "bob", &meant, &err));
	mr_resolution_done(&meant);
	assert_ok(mr_overdue(f.room, &f.alice, &dues, &err));
	foreign_done(&f);
}

static void
names_without_lives(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER, "alice");
	struct mr_registration reg = { 0 };
	struct mr_env env = { .session = "claude-code-1" };
	struct mr_register_options takeover = { .takeover = true };
	struct mr_prune_options stale = { .stale_ms = 1000 };
	struct mr_receipt receipt = { 0 };

	(void)state;
	assert_ok(mr_register(f.room, "Old Bob", &env, NULL, &reg, &err));
	assert_true(reg.created);
	assert_int_equal(reg.life, 0);
	assert_rc(mr_register(f.room, "Old Bob", &env, NULL, &reg, &err), MR_EXISTS);
	assert_true(err.hint[0] != '\0');
	assert_ok(send_to(&f, "Old Bob", "hi", &receipt, &err));
	mr_receipt_done(&receipt);
	assert_ok(mr_register(f.room, "Old Bob", &env, &takeover, &reg, &err));
	assert_int_equal(reg.unread, 1);
	assert_false(reg.created);
	assert_rc(mr_register(f.room, "nobody", &env, &takeover, &reg, &err), MR_NOTFOUND);
	assert_rc(mr_prune(f.room, &stale, NULL, &err), MR_UNSUPPORTED);
	struct mr_prune_options dry = { .names = TO("Old Bob"), .dry_run = true };

	assert_rc(mr_prune(f.room, &dry, NULL, &err), MR_REFUSED);
	dry.force = true;
	assert_ok(mr_prune(f.room, &dry, NULL, &err));
	foreign_done(&f);
}

static void
what_a_scan_showed_is_not_fetched_again(void **state)
{
	OPEN_FOREIGN(f, ROOM_READ_STATE | ROOM_REGISTER | ROOM_PRIORITIES, "alice", "bob");
	struct mr_scan urgent_first = { .order = MR_BY_PRIORITY }, work = { .order = MR_WORK_ORDER, .bodies = true };
	struct mr_filter from_alice = { .from = "alice" }, from_carol = { .from = "carol" };
	struct mr_draft draft = draft_to(TO("bob"), "x");
	struct seen seen = { 0 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct mr_receipt receipt = { 0 };

		draft.priority = i == 7 ? MR_URGENT : MR_NORMAL;
		draft.subject = i == 7 ? "seven" : "other";
		assert_ok(mr_send(f.room, &f.alice, &draft, &receipt, &err));
		mr_receipt_done(&receipt);
	}
	assert_ok(mr_scan(f.room, "bob", &urgent_first, town_note, &seen, &err));
	assert_int_equal(seen.n, 20);
	assert_string_equal(seen.subjects[0], "seven");
	seen.n = 0;
	assert_ok(mr_scan(f.room, "bob", &work, town_note, &seen, &err));
	assert_int_equal(seen.n, 20);
	assert_ok(mr_wait(f.room, "bob", &from_alice, 0, NULL, &err));
	assert_rc(mr_wait(f.room, "bob", &from_carol, 0, NULL, &err), MR_EMPTY);
	assert_int_equal(fetched, 0);

	/* Without priorities it is an order by time. */
	f.driver.abilities &= ~(unsigned)ROOM_PRIORITIES;
	seen.n = 0;
	assert_ok(mr_scan(f.room, "bob", &urgent_first, town_note, &seen, &err));
	assert_true(strcmp(seen.ids[0], seen.ids[19]) > 0);
	seen.n = 0;
	assert_ok(mr_scan(f.room, "bob", &work, town_note, &seen, &err));
	assert_true(strcmp(seen.ids[0], seen.ids[19]) < 0);
	foreign_done(&f);
}

static void
read_is_archived_where_there_are_no_marks(void **state)
{
	OPEN_FOREIGN(f, ROOM_ARCHIVE | ROOM_REGISTER, "alice", "bob");
	struct mr_receipt receipt = { 0 };
	struct mr_counts counts = { 0 };

	(void)state;
	assert_ok(send_to(&f, "bob", "hi", &receipt, &err));
	assert_ok(mr_mark(f.room, &f.bob, receipt.id, MR_SEEN, 0, &err));
	assert_ok(mr_count(f.room, "bob", &counts, &err));
	assert_int_equal(counts.unread, 0);
	assert_ok(mr_mark(f.room, &f.bob, receipt.id, 0, MR_SEEN, &err));
	assert_ok(mr_count(f.room, "bob", &counts, &err));
	assert_int_equal(counts.unread, 1);
	assert_rc(mr_mark(f.room, &f.bob, receipt.id, MR_PINNED, 0, &err), MR_UNSUPPORTED);
	mr_receipt_done(&receipt);
	foreign_done(&f);
}

static void
an_answer_comes_into_a_folder(void **state)
{
	OPEN_FOREIGN(f, ROOM_REGISTER | ROOM_REPLY_PATHS, "bob");
	char dir[] = "/tmp/mailroom-office-XXXXXX", id[MR_ID_LEN + 1];
	struct mr_draft draft = draft_to(TO("bob"), "which port?");
	struct mr_receipt receipt = { 0 };
	struct mr_message answer = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	f.driver.deliver = noting_deliver;
	f.driver.face = &(const struct room_face){ .expect_answer = noting_folder, .fetch_answer = found_answer };
	draft.reply_path = "client";
	assert_rc(mr_send(f.room, &f.alice, &draft, &receipt, &err), MR_REFUSED);
	draft.reply_path = "/client";
	assert_ok(mr_send(f.room, &f.alice, &draft, &receipt, &err));
	assert_non_null(receipt.warning); /* no folder to remember it in */
	mr_receipt_done(&receipt);
	f.room->state_dir = strdup(dir);
	assert_ok(mr_send(f.room, &f.alice, &draft, &receipt, &err));
	assert_null(receipt.warning);
	assert_string_equal(sent_reply_path, "/client");
	memcpy(id, receipt.id, sizeof(id));
	mr_receipt_done(&receipt);
	assert_true(mr_answer_expected(f.room, id));
	assert_rc(mr_answer_wait(f.room, id, NULL, 0, &answer, &err), MR_EMPTY);
	answer_there = true;
	assert_ok(mr_answer_wait(f.room, id, NULL, 0, &answer, &err));
	assert_string_equal(answer.body, "yes");
	mr_message_done(&answer);
	assert_true(answer_there); /* looking does not take it */
	assert_ok(mr_answer_taken(f.room, id, NULL, &err));
	assert_false(answer_there);
	assert_false(mr_answer_expected(f.room, id));
	assert_rc(mr_answer_wait(f.room, id, NULL, 0, &answer, &err), MR_NOTFOUND);
	assert_rc(mr_answer_wait(f.room, "called-x", "/client", 0, &answer, &err), MR_EMPTY);
	assert_false(mr_answer_expected(f.room, "../sessions/x"));
	foreign_done(&f);
	(void)nftw(dir, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_spelled),
		cmocka_unit_test(where_nobody_registers_anybody_is_written_to),
		cmocka_unit_test(all_is_everybody_but_the_sender),
		cmocka_unit_test(what_was_asked_for_and_cannot_be_held_is_refused),
		cmocka_unit_test(an_answer_leaves_out_what_cannot_be_held),
		cmocka_unit_test(looking_asks_for_what_there_is),
		cmocka_unit_test(no_slot_is_taken_for_granted),
		cmocka_unit_test(names_without_lives),
		cmocka_unit_test(what_a_scan_showed_is_not_fetched_again),
		cmocka_unit_test(read_is_archived_where_there_are_no_marks),
		cmocka_unit_test(an_answer_comes_into_a_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
