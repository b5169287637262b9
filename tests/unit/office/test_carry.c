/* SPDX-License-Identifier: MIT */
/* Carrying: once, by any number of carriers. Kills are in tests/crash/scenarios_carry.c. */
#include "base/id.h"
#include "office/link/link.h"
#include "town.h"

struct pair { /* a town and another room, linked as blue, where dora lives */
	struct town town;
	char dir[64];
	struct mr_room *blue;
	struct mr_self dora;
};

static struct pair
pair_new(void **state)
{
	struct pair p = { .town = town_new(state), .dora = { .agent = "dora", .life = 1 } };
	struct mr_init_options options = { .name = "blue", .sync = "none" };
	struct mr_error err = { 0 };
	struct town other = { 0 };
	char *path = NULL;

	(void)snprintf(p.dir, sizeof(p.dir), "/tmp/mailroom-blue-XXXXXX");
	assert_non_null(mkdtemp(p.dir));
	assert_ok(mr_room_init(p.dir, p.dir, &options, &path, &err));
	assert_ok(mr_room_open(path, NULL, &p.blue, &err));
	other.room = p.blue;
	town_register(&other, "dora", false, &p.dora);
	assert_ok(mr_link_create(p.town.room, &p.town.alice, "blue", path, false, &err));
	free(path);
	return p;
}

static void
pair_done(struct pair *p)
{
	mr_room_close(p->blue);
	(void)nftw(p->dir, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	town_done(&p->town);
}

struct troubles {
	size_t n;
	char last[320];
};

static void
note_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	struct troubles *t = ctx;

	assert_string_equal(link, "blue");
	t->n++;
	(void)snprintf(t->last, sizeof(t->last), "%s", err->message);
}

static struct mr_carried
carry(struct pair *p, struct troubles *troubles)
{
	struct troubles ignored = { 0 };
	struct mr_carried done = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_carry(p->town.room, "blue", MR_CARRY_IN | MR_CARRY_OUT, note_trouble,
	    troubles ? troubles : &ignored, &done, &err));
	return done;
}

static struct seen
seen_there(struct pair *p, const char *agent)
{
	struct town there = { .room = p->blue };

	return town_scan(&there, agent, &(struct mr_scan){ .filter = { .folders = MR_INBOX } });
}

static void
send_there(struct pair *p, const char *to, const char *body, char ret_id[MR_ID_LEN + 1])
{
	struct town there = { .room = p->blue };

	town_send(&there, &p->dora, to, body, ret_id);
}

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

static void
forget_all(struct pair *p)
{
	struct mr_names names = { 0 };
	struct mr_room *room = p->town.room;
	struct mr_error err = { 0 };

	assert_ok(room->driver->record_each(room, CARRIED_KIND, "blue", note_name, &names, &err));
	assert_true(names.n > 0);
	for (size_t i = 0; i < names.n; i++)
		assert_ok(room->driver->record_drop(room, CARRIED_KIND, "blue", names.v[i], &err));
	mr_names_done(&names);
}

/* The key of this room outlives the mark over there: what is read again is not delivered twice. */
static void
what_was_not_marked_over_there_is_not_delivered_twice(void **state)
{
	struct pair p = pair_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&p.town, &p.town.alice, "dora@blue", "question", NULL);
	send_there(&p, "alice", "answer", id);
	assert_int_equal(carry(&p, NULL).in, 1);
	assert_ok(p.blue->driver->mark(p.blue, "alice", id, 0, MR_SEEN, 0, &err));
	assert_int_equal(carry(&p, NULL).in, 0);
	assert_int_equal(town_unread(&p.town, "alice").n, 1);
	/* Also where the memory was lost: the key knows. */
	assert_ok(p.blue->driver->mark(p.blue, "alice", id, 0, MR_SEEN, 0, &err));
	forget_all(&p);
	assert_int_equal(carry(&p, NULL).in, 0);
	assert_int_equal(town_unread(&p.town, "alice").n, 1);
	pair_done(&p);
}

static void
two_carriers_at_once_carry_each_message_once(void **state)
{
	struct pair p = pair_new(state);
	char id[MR_ID_LEN + 1];
	pid_t children[3];

	town_send(&p.town, &p.town.alice, "dora@blue", "first", NULL);
	for (int i = 0; i < 8; i++)
		send_there(&p, "alice", "answer", id);
	for (size_t i = 0; i < 3; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct mr_error err = { 0 };
			struct mr_carried done = { 0 };
			struct mr_room *room = NULL;
			char path[96];

			(void)snprintf(path, sizeof(path), "%s/.mailroom", p.town.dir);
			for (int n = 0; n < 4; n++) {
				struct mr_receipt receipt = { 0 };
				struct mr_draft draft = draft_to(TO("dora@blue"), "more");

				if (mr_room_open(path, &(struct mr_room_options){ .config_dir = p.town.config }, &room,
					&err) != MR_OK ||
				    mr_send(room, &p.town.bob, &draft, &receipt, &err) != MR_OK ||
				    mr_carry(room, "blue", MR_CARRY_IN | MR_CARRY_OUT, NULL, NULL, &done, &err) !=
					MR_OK)
					_exit(1);
				mr_receipt_done(&receipt);
				mr_room_close(room);
			}
			_exit(0);
		}
	}
	for (size_t i = 0; i < 3; i++) {
		int status = 0;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(carry(&p, NULL).waiting, 0);
	assert_int_equal(town_unread(&p.town, "alice").n, 8);
	assert_int_equal(seen_there(&p, "dora").n, 13);
	pair_done(&p);
}

static void
a_name_that_is_taken_over_there_lets_the_mail_wait(void **state)
{
	struct pair p = pair_new(state);
	struct mr_agent stranger = { .name = "bob", .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct troubles troubles = { 0 };
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1];

	assert_ok(p.blue->driver->add_agent(p.blue, &stranger, &err));
	town_send(&p.town, &p.town.bob, "dora@blue", "from bob", NULL);
	town_send(&p.town, &p.town.alice, "dora@blue", "from alice", NULL); /* it keeps nobody else from going */
	assert_int_equal(seen_there(&p, "dora").n, 1);
	assert_int_equal(carry(&p, &troubles).waiting, 1);
	assert_int_equal(troubles.n, 1);
	assert_non_null(strstr(troubles.last, "has that name there"));
	assert_ok(mr_link_introduce(p.town.room, "blue", "bob", "bob.of.town", false, foreign, &err));
	assert_int_equal(carry(&p, NULL).out, 1);
	assert_int_equal(seen_there(&p, "dora").n, 2);
	pair_done(&p);
}

static void
a_recipient_who_left_bounces_once(void **state)
{
	struct pair p = pair_new(state);
	struct mr_agent stranger = { .name = "bob", .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1];
	size_t dead = 0;

	assert_ok(p.blue->driver->add_agent(p.blue, &stranger, &err));
	town_send(&p.town, &p.town.bob, "dora@blue", "late", NULL); /* waits for a name */
	assert_ok(p.blue->driver->remove_box(p.blue, "dora", true, &dead, &err));
	assert_ok(mr_link_introduce(p.town.room, "blue", "bob", "bob2", false, foreign, &err));
	struct mr_carried done = carry(&p, NULL);
	assert_int_equal(done.failed, 1);
	assert_int_equal(done.out, 0);
	assert_int_equal(carry(&p, NULL).failed, 0);
	struct seen seen = town_unread(&p.town, "bob");
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.subjects[0], "Failed: late");
	struct mr_queue_counts counts = { 0 };
	assert_ok(mr_queue_count(p.town.room, "link-blue", &counts, &err));
	assert_int_equal(counts.failed, 1);
	pair_done(&p);
}

/* Killed after the notice and before it was noted, the next carrier may meet another error: its sender knows already,
 * and the link goes on. */
static void
a_notice_is_sent_once_whatever_the_reason(void **state)
{
	struct pair p = pair_new(state);
	struct mr_agent stranger = { .name = "bob", .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1], id[MR_ID_LEN + 1];
	struct mr_message about = { 0 };
	size_t dead = 0;

	assert_ok(p.blue->driver->add_agent(p.blue, &stranger, &err));
	town_send(&p.town, &p.town.bob, "dora@blue", "late", id); /* waits for a name */
	assert_ok(mr_fetch(p.town.room, "bob", id, &about, &err));
	mr_auto(notice_done) struct notice notice = {
		.from = "dora@blue", .to = "bob", .reason = "the error of before the kill"
	};
	buf_adds(&notice.story, "It cannot go.");
	buf_adds(&notice.advice, "Send it again.");
	buf_addf(&notice.key, "failed:%s:dora@blue", id);
	assert_ok(notice_send(p.town.room, &notice, &about, &err));
	mr_message_done(&about);
	assert_ok(p.blue->driver->remove_box(p.blue, "dora", true, &dead, &err));
	assert_ok(mr_link_introduce(p.town.room, "blue", "bob", "bob2", false, foreign, &err));
	assert_int_equal(carry(&p, NULL).failed, 1);
	assert_int_equal(carry(&p, NULL).failed, 0);
	assert_int_equal(town_unread(&p.town, "bob").n, 1);
	pair_done(&p);
}

static void
unread_mail_whose_mailbox_is_gone_comes_back_once(void **state)
{
	struct pair p = pair_new(state);
	struct mr_error err = { 0 };
	size_t dead = 0;
	char id[MR_ID_LEN + 1];

	town_send(&p.town, &p.town.alice, "dora@blue", "read", id);
	assert_ok(p.blue->driver->mark(p.blue, "dora", seen_there(&p, "dora").ids[0], MR_SEEN, 0, 0, &err));
	assert_int_equal(carry(&p, NULL).vanished, 0);
	town_send(&p.town, &p.town.alice, "dora@blue", "never read", id);
	assert_int_equal(carry(&p, NULL).vanished, 0);
	assert_ok(p.blue->driver->remove_box(p.blue, "dora", true, &dead, &err));
	assert_int_equal(carry(&p, NULL).vanished, 1);
	assert_int_equal(carry(&p, NULL).vanished, 0);
	struct seen seen = town_unread(&p.town, "alice");
	assert_int_equal(seen.n, 1);
	struct mr_message msg = { 0 };
	assert_ok(mr_fetch(p.town.room, "alice", seen.ids[0], &msg, &err));
	assert_string_equal(msg.reply_to, id);
	assert_non_null(strstr(msg.body, "never read"));
	mr_message_done(&msg);
	pair_done(&p);
}

static void
what_was_carried_before_is_not_carried_in_circles(void **state)
{
	struct pair p = pair_new(state);
	struct mr_header header = { "X-Mailroom-Carried", "a/b, c/d, e/f, g/h, i/j, k/l, m/n, o/p" };
	struct mr_draft draft = draft_to(TO("dora@blue"), "round");
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };

	draft.headers = &header;
	draft.headers_n = 1;
	assert_ok(mr_send(p.town.room, &p.town.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.trouble.n, 1);
	assert_non_null(strstr(receipt.trouble.v[0], "circles"));
	mr_receipt_done(&receipt);
	header.value = "town/blue";
	assert_ok(mr_send(p.town.room, &p.town.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.trouble.n, 1);
	mr_receipt_done(&receipt);
	assert_int_equal(seen_there(&p, "dora").n, 0);
	assert_int_equal(town_unread(&p.town, "alice").n, 2); /* told of both */
	pair_done(&p);
}

static void
an_answer_of_another_finds_its_thread(void **state)
{
	struct pair p = pair_new(state);
	struct town there = { .room = p.blue };
	struct mr_self eve;
	struct mr_error err = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	town_register(&there, "eve", false, &eve);
	town_send(&p.town, &p.town.alice, "dora@blue", "question", id);
	/* eve answers what dora was asked: she refers to it by its id there. */
	struct mr_header reference = { "X-Forwarded", "yes" };
	char name[] = "alice", *names[] = { name };
	struct mr_names to = { names, 1 };
	struct delivered got = { 0 };
	struct mr_message answer = { .from = "eve",
		.to = to,
		.subject = "Re: question",
		.date_ms = 1790000000000,
		.type = "",
		.thread = "",
		.reply_to = seen_there(&p, "dora").ids[0],
		.replace_key = "",
		.headers = &reference,
		.headers_n = 1,
		.body = "it is me",
		.body_len = 8,
		.path = "" };
	(void)snprintf(answer.id, sizeof(answer.id), "01m7f5evarspd2y733heram8nn");
	struct delivery what = { .msg = &answer, .to = &to, .sender = "" };
	assert_ok(p.blue->driver->deliver(p.blue, &what, &got, &err));
	assert_int_equal(carry(&p, NULL).in, 1);
	assert_ok(mr_fetch(p.town.room, "alice", town_unread(&p.town, "alice").ids[0], &msg, &err));
	assert_string_equal(msg.from, "eve@blue");
	assert_string_equal(msg.reply_to, id);
	assert_string_equal(msg.thread, id);
	assert_string_equal(mr_message_header(&msg, "X-Forwarded"), "yes");
	mr_message_done(&msg);
	pair_done(&p);
}

static void
a_correspondence_ends_when_nothing_of_it_is_open(void **state)
{
	static const char old_id[] = "01jg000000000000000000000a", *const there = "m-1";
	char name[] = "m-1", *unread_names[] = { name };
	const struct mr_names unread = { unread_names, 1 }, none = { 0 };
	struct carried_line lines[2] = { { .state = CARRIED_READ, .id = old_id, .there = "m-0" },
		{ .state = CARRIED_GOT, .id = old_id, .there = there } };
	struct correspondence m = { .local = "alice", .foreign = "dora", .v = lines, .n = 2 };
	char now[MR_ID_LEN + 1];

	(void)state;
	assert_true(correspondence_may_end(&m, &none));
	assert_false(correspondence_may_end(&m, &unread)); /* only the record tells that it was carried */
	lines[0].state = CARRIED_SENT;
	assert_false(correspondence_may_end(&m, &none)); /* its sender is told when it vanishes */
	lines[0].state = CARRIED_LOST;
	assert_true(correspondence_may_end(&m, &none));
	id_new(now);
	lines[0].id = now;
	assert_false(correspondence_may_end(&m, &none));
	m.n = 0;
	assert_false(correspondence_may_end(&m, &none));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_was_not_marked_over_there_is_not_delivered_twice),
		ON_MAILDIR(two_carriers_at_once_carry_each_message_once),
		ON_BOTH(a_name_that_is_taken_over_there_lets_the_mail_wait),
		ON_BOTH(a_recipient_who_left_bounces_once),
		ON_BOTH(a_notice_is_sent_once_whatever_the_reason),
		ON_BOTH(unread_mail_whose_mailbox_is_gone_comes_back_once),
		ON_BOTH(what_was_carried_before_is_not_carried_in_circles),
		ON_BOTH(an_answer_of_another_finds_its_thread),
		cmocka_unit_test(a_correspondence_ends_when_nothing_of_it_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
