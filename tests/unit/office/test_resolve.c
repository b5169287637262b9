/* SPDX-License-Identifier: MIT */
/* What addresses mean: the forms, the order in which they are tried, spellings that meet in one mailbox. */
#include "office/address/address.h"
#include "town.h"

/* ---- A town of rigs ---- */

static void
settle(struct town *t, const char *const *names)
{
	struct mr_self ignored;

	for (; *names; names++)
		town_register(t, *names, false, &ignored);
}

static struct town
gas_town(void **state)
{
	struct town t = town_new(state);

	settle(&t,
	    TO("mayor", "deacon", "deacon/dogs/rex", "green/witness", "blue/witness", "green/refinery",
		"green/crew/max", "green/crew/joe", "blue/crew/joe", "green/polecats/nux", "greener/polecats/toast"));
	return t;
}

/* The targets with spaces between them, sorted, or "code: message (hint)". */
static const char *
means(struct town *t, const char *sender, const char *address)
{
	static char text[1000];
	struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_resolve(t->room, sender, address, &r, &err);

	text[0] = '\0';
	if (rc != MR_OK) {
		(void)snprintf(text, sizeof(text), "%s: %s (%s)", mr_rc_word(rc), err.message, err.hint);
		assert_null(r.form);
		return text;
	}
	for (size_t i = 1; i < r.targets.n; i++)
		for (size_t k = i; k > 0 && strcmp(r.targets.v[k - 1], r.targets.v[k]) > 0; k--) {
			char *swap = r.targets.v[k];
			r.targets.v[k] = r.targets.v[k - 1];
			r.targets.v[k - 1] = swap;
		}
	for (size_t i = 0; i < r.targets.n; i++) {
		size_t len = strlen(text);
		(void)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "", r.targets.v[i]);
	}
	mr_resolution_done(&r);
	return text;
}

#define assert_means(address, want) assert_string_equal(means(&t, "alice", address), want)
#define assert_refuses(address, code, part)                                                                            \
	do {                                                                                                           \
		const char *got_ = means(&t, "alice", address);                                                        \
		if (strncmp(got_, code ": ", sizeof(code) + 1) != 0 || !strstr(got_, part))                            \
			fail_msg("'%s': %s", address, got_);                                                           \
	} while (0)

static void
form_is(struct town *t, const char *address, const char *form, const char *name)
{
	struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_resolve(t->room, "alice", address, &r, &err));
	assert_string_equal(r.form, form);
	assert_string_equal(r.name, name);
	mr_resolution_done(&r);
}

static void
make_record(struct town *t, const char *kind, const char *name, const char *text)
{
	struct mr_error err = { 0 };
	const struct room_driver *driver = t->room->driver;

	if (strcmp(kind, "queue") == 0)
		assert_ok(driver->make_box(t->room, room_box("queue", name).z, &err));
	if (strcmp(kind, "channel") == 0)
		assert_ok(driver->make_box(t->room, room_box("channel", name).z, &err));
	assert_ok(driver->record_put(t->room, kind, "", name, str_of(text), &err));
}

static void
set_rules(struct town *t, const char *text)
{
	struct mr_error err = { 0 };

	record_done(&t->room->settings);
	assert_ok(record_parse(str_of(text), &t->room->settings, &err));
}

/* ---- Forms ---- */

static void
an_agent_is_found_by_its_name(void **state)
{
	struct town t = gas_town(state);

	assert_means("bob", "bob");
	assert_means("agent:bob", "bob");
	assert_means("bob@town", "bob");
	assert_means("agent:bob@town", "bob");
	assert_means("alice", "alice"); /* named directly, the sender gets it too */
	assert_means("green/crew/max", "green/crew/max");
	assert_means("green/witness", "green/witness");
	form_is(&t, "green/witness", "agent", "green/witness");
	assert_refuses("bob@elsewhere", "refused", "no link to room 'elsewhere'");
	assert_refuses("", "refused", "empty");
	assert_refuses("a b", "refused", "-m");
	assert_refuses("../bob", "refused", "begins with '.'");
	assert_refuses("foo:bob", "refused", "not allowed");
	town_done(&t);
}

static void
the_operator_has_several_names(void **state)
{
	struct town t = gas_town(state);

	assert_means("operator", "operator");
	assert_means("human", "operator");
	assert_means("overseer", "operator");
	assert_means("@overseer", "operator");
	assert_means("@human", "operator");
	form_is(&t, "@overseer", "operator", "operator");
	town_done(&t);
}

static void
a_star_is_one_whole_part(void **state)
{
	struct town t = gas_town(state);

	assert_means("*/witness", "blue/witness green/witness");
	assert_means("green/crew/*", "green/crew/joe green/crew/max");
	assert_means("*/crew/joe", "blue/crew/joe green/crew/joe");
	assert_means("*/*/joe", "blue/crew/joe green/crew/joe");
	assert_means("*", "bob carol deacon mayor operator");
	form_is(&t, "*/witness", "wildcard", "*/witness");
	assert_refuses("*/nobody", "not-found", "no agent matches '*/nobody'");
	assert_refuses("gr*/witness", "refused", "one whole part");
	assert_refuses("*/", "refused", "one whole part");
	assert_refuses("green//*", "refused", "one whole part");
	assert_string_equal(means(&t, "green/refinery", "*/refinery"),
	    "not-found: no agent but you matches '*/refinery' (`mailroom who` lists the agents of this room)");
	town_done(&t);
}

static void
patterns_go_by_the_shape_of_the_address(void **state)
{
	struct town t = gas_town(state);

	assert_means("@town", "bob carol deacon mayor");
	assert_means("@witnesses", "blue/witness green/witness");
	assert_means("@refineries", "green/refinery");
	assert_means("@deacons", "deacon");
	assert_means("@dogs", "deacon/dogs/rex");
	assert_means("@crew", "blue/crew/joe green/crew/joe green/crew/max");
	assert_means("@polecats", "green/polecats/nux greener/polecats/toast");
	/* a rig is a whole part: green is not greener */
	assert_means("@rig/green", "green/crew/joe green/crew/max green/polecats/nux green/refinery green/witness");
	assert_means("@crew/green", "green/crew/joe green/crew/max");
	assert_means("@polecats/greener", "greener/polecats/toast");
	assert_means("@all",
	    "blue/crew/joe blue/witness bob carol deacon deacon/dogs/rex green/crew/joe green/crew/max "
	    "green/polecats/nux green/refinery green/witness greener/polecats/toast mayor");
	form_is(&t, "@crew/green", "pattern", "crew/green");
	assert_string_equal(means(&t, "green/witness", "@witnesses"), "blue/witness");
	assert_refuses("@rig/none", "not-found", "no agent matches '@rig/none'");
	assert_refuses("@rig/", "not-found", "no pattern '@rig/'");
	assert_refuses("@rig/a/b", "refused", "one part");
	assert_refuses("@witneses", "not-found", "'@witnesses'");
	assert_refuses("@", "not-found", "@refineries");
	town_done(&t);
}

static void
a_room_defines_patterns_of_its_own(void **state)
{
	struct town t = gas_town(state);

	set_rules(&t, "Format: 1\nPattern-Reviewers: bob, */witness ,mayor/\nPattern-reviewers: alice\n"
		      "Pattern-loop: @loop, carol\nPattern-empty: ,\nPattern-gone: nobody\nPattern-crew: carol\n");
	assert_means("@reviewers", "blue/witness bob green/witness mayor");
	form_is(&t, "@reviewers", "pattern", "reviewers");
	assert_means("@loop", "carol");
	assert_means("@crew", "carol"); /* the room's own stands before the one that is built in */
	assert_refuses("@empty", "refused", "pattern '@empty' reaches nobody");
	assert_refuses("@gone", "refused", "no agent");
	assert_refuses("@reviewer", "not-found", "'@Reviewers'");
	town_done(&t);
}

/* ---- Spellings ---- */

static void
mayor_and_deacon_are_one_mailbox_each(void **state)
{
	struct town t = gas_town(state);
	static const char *const spellings[] = { "mayor", "mayor/", "green/mayor", "blue/mayor/", "agent:mayor" };

	for (size_t i = 0; i < 5; i++) {
		assert_means(spellings[i], "mayor");
		town_send(&t, &t.alice, spellings[i], "to whom it may concern", NULL);
	}
	assert_means("deacon/", "deacon");
	assert_means("green/deacon", "deacon");
	assert_int_equal(town_unread(&t, "mayor").n, 5);
	struct mr_draft twice = draft_to(TO("mayor", "mayor/", "green/mayor"), "once");

	town_send_draft(&t, &t.alice, &twice, NULL);
	assert_int_equal(town_unread(&t, "mayor").n, 6);
	assert_refuses("green/crew/mayor", "not-found", "no agent");
	/* and nobody can split it in two by registering another spelling */
	struct mr_env nobody = { 0 };
	struct mr_registration reg = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(mr_register(t.room, "green/mayor", &nobody, NULL, &reg, &err), MR_REFUSED);
	assert_means("green/mayor", "mayor");
	town_done(&t);
}

static void
held_mail_for_a_mayor_to_come_waits_in_one_mailbox(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("green/mayor", "mayor/", "mayor"), "welcome");

	draft.hold = true;
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_int_equal(town_unread(&t, "mayor").n, 1);
	assert_means("green/mayor", "mayor");
	town_done(&t);
}

static void
a_rig_and_a_name_find_the_one_worker(void **state)
{
	struct town t = gas_town(state);

	assert_means("green/max", "green/crew/max");
	assert_means("green/nux", "green/polecats/nux");
	assert_means("green/polecats/max", "green/crew/max"); /* crew and polecats share their names */
	assert_means("green/crew/nux", "green/polecats/nux");
	assert_means("deacon/rex", "deacon/dogs/rex");
	form_is(&t, "green/max", "agent", "green/crew/max");
	assert_refuses("green/toast", "not-found", "'greener/polecats/toast'");
	settle(&t, TO("green/polecats/max"));
	assert_refuses("green/max", "refused", "'green/crew/max', 'green/polecats/max'");
	assert_means("green/crew/max", "green/crew/max");
	assert_means("green/polecats/max", "green/polecats/max");
	settle(&t, TO("green/max"));
	assert_means("green/max", "green/max");
	settle(&t, TO("green/zed"));
	assert_means("green/crew/zed", "green/zed");
	assert_means("green/polecats/zed", "green/zed");
	town_done(&t);
}

static void
spellings_of_one_agent_deliver_once(void **state)
{
	struct town t = gas_town(state);
	struct mr_draft draft = draft_to(TO("green/max", "green/crew/max", "@crew/green", "green/crew/*"), "once");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 2);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "green/crew/max").n, 1);
	town_done(&t);
}

/* ---- Order ---- */

static void
one_name_of_several_kinds_is_refused(void **state)
{
	struct town t = gas_town(state);
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bob"), "which?");
	struct mr_receipt receipt = { 0 };

	make_record(&t, "group", "bob", "Name: bob\nMember: carol\n");
	make_record(&t, "queue", "bob", "Name: bob\n");
	make_record(&t, "channel", "news", "Name: news\nSubscriber: carol\n");
	make_record(&t, "queue", "news", "Name: news\n");
	assert_refuses("bob", "refused", "agent:bob, group:bob, queue:bob");
	assert_refuses("news", "refused", "queue:news, channel:news");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_means("agent:bob", "bob");
	assert_means("group:bob", "carol");
	assert_means("list:bob", "carol");
	assert_means("@bob", "carol");
	assert_means("queue:bob", "queue:bob");
	assert_means("channel:news", "carol channel:news");
	assert_means("announce:news", "carol channel:news");
	make_record(&t, "group", "witnesses", "Name: witnesses\nMember: carol\n");
	assert_means("@witnesses", "carol"); /* a group stands before the pattern of that name */
	assert_means("witnesses", "carol");
	town_done(&t);
}

static void
an_answer_goes_to_the_agent_whatever_else_is_called_so(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("alice"), "a question"), answer = draft_to(NULL, "an answer");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.bob, &draft, id);
	make_record(&t, "group", "bob", "Name: bob\nMember: carol\n");
	assert_ok(mr_reply(t.room, &t.alice, id, &answer, false, &receipt, &err));
	assert_int_equal(receipt.to.n, 1);
	assert_string_equal(receipt.to.v[0], "bob");
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
an_address_with_a_slash_is_an_agent_only(void **state)
{
	struct town t = gas_town(state);
	struct mr_error err = { 0 };

	assert_ok(mr_group_create(t.room, &t.alice, "crowd", TO("carol"), &err));
	make_record(&t, "queue", "green/work", "Name: green/work\n");
	assert_refuses("crowd/", "not-found", "'group:crowd'");
	assert_means("crowd", "carol");
	assert_refuses("green/work", "not-found", "'queue:green/work'");
	assert_means("queue:green/work", "queue:green/work");
	form_is(&t, "queue:green/work", "queue", "green/work");
	assert_refuses("queue:Green Work", "refused", "-m");
	assert_refuses("queue:GREEN", "refused", "cannot name a queue");
	assert_refuses("group:green/work", "refused", "cannot name a group");
	town_done(&t);
}

static void
what_is_unknown_comes_with_near_names_of_every_kind(void **state)
{
	struct town t = gas_town(state);
	struct mr_error err = { 0 };

	assert_ok(mr_group_create(t.room, &t.alice, "builders", TO("carol"), &err));
	make_record(&t, "queue", "reviews", "Name: reviews\n");
	make_record(&t, "channel", "weather", "Name: weather\n");
	assert_refuses("caroll", "not-found", "'carol'");
	assert_refuses("builder", "not-found", "'group:builders'");
	assert_refuses("queue:review", "not-found", "'queue:reviews'");
	assert_refuses("wether", "not-found", "'channel:weather'");
	assert_refuses("group:reviews", "not-found", "'queue:reviews'");
	assert_refuses("witness", "not-found", "'green/witness'");
	assert_refuses("green/nobody", "not-found", "no agent 'green/nobody'");
	assert_refuses("green/witnes", "not-found", "'green/witness'");
	assert_refuses("xyzzy", "not-found", "--hold");
	assert_refuses("q", "not-found", "mailroom who");
	town_done(&t);
}

/* ---- Queues and channels ---- */

static void
closed_queues_and_channels_refuse_mail_and_paused_ones_take_it(void **state)
{
	struct town t = gas_town(state);
	struct mr_error err = { 0 };

	make_record(&t, "queue", "open", "Name: open\nStatus: active\n");
	make_record(&t, "queue", "paused", "Name: paused\nStatus: paused\n");
	make_record(&t, "queue", "closed", "Name: closed\nStatus: closed\n");
	make_record(&t, "channel", "old", "Name: old\nStatus: closed\nSubscriber: bob\n");
	assert_means("queue:open", "queue:open");
	assert_means("queue:paused", "queue:paused");
	assert_refuses("queue:closed", "refused", "queue 'closed' is closed");
	assert_refuses("channel:old", "refused", "channel 'old' is closed");
	assert_ok(target_check(t.room, "bob", &err));
	assert_ok(target_check(t.room, "queue:paused", &err));
	assert_rc(target_check(t.room, "queue:closed", &err), MR_REFUSED);
	assert_rc(target_check(t.room, "queue:none", &err), MR_NOTFOUND);
	/* as a member it is the group's trouble */
	assert_ok(mr_group_create(t.room, &t.alice, "some", TO("bob", "queue:closed", "queue:open"), &err));
	struct mr_resolution r = { 0 };

	assert_ok(mr_resolve(t.room, "alice", "some", &r, &err));
	assert_int_equal(r.targets.n, 2);
	assert_int_equal(r.trouble.n, 1);
	assert_non_null(strstr(r.trouble.v[0], "closed"));
	mr_resolution_done(&r);
	town_done(&t);
}

static void
a_post_names_the_channel_and_goes_to_its_subscribers(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("channel:news"), "it rains");
	struct mr_receipt receipt = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	make_record(&t, "channel", "news",
	    "Name: news\nSubscriber: alice\nSubscriber: bob\nSubscriber: ghost\nSubscriber: carol\n");
	draft.cc = TO("carol");
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	assert_int_equal(receipt.to.n, 3); /* the channel, bob, carol */
	assert_int_equal(receipt.trouble.n, 1);
	assert_non_null(strstr(receipt.trouble.v[0], "subscriber 'ghost' of channel 'news'"));
	assert_ok(mr_fetch(t.room, "bob", receipt.id, &msg, &err));
	assert_int_equal(msg.to.n, 1);
	assert_string_equal(msg.to.v[0], "channel:news");
	assert_int_equal(msg.cc.n, 1);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	mr_message_done(&msg);
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
only_a_queue_can_make_mail_wait(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "later");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	make_record(&t, "queue", "work", "Name: work\n");
	draft.not_before_ms = 4102444800000;
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "queue"));
	assert_int_equal(town_unread(&t, "bob").n, 0);
	draft.to = TO("bob", "queue:work");
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED); /* bob would have it at once */
	assert_int_equal(town_unread(&t, "bob").n, 0);
	draft.to = TO("queue:work");
	town_send_draft(&t, &t.alice, &draft, NULL);
	town_done(&t);
}

static void
a_thousand_recipients_come_once_each(void **state)
{
	struct town t = town_new(state);
	struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };
	char name[40];

	for (int i = 0; i < 1000; i++) {
		struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

		(void)snprintf(agent.name, sizeof(agent.name), "big/crew/w%d", i);
		assert_ok(t.room->driver->add_agent(t.room, &agent, &err));
	}
	set_rules(&t, "Pattern-most: @crew, big/crew/*, @rig/big, bob\n");
	assert_ok(mr_resolve(t.room, "alice", "@most", &r, &err));
	assert_int_equal(r.targets.n, 1001);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "big/crew/w%d", i);
		assert_true(names_has(&r.targets, name));
	}
	mr_resolution_done(&r);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(an_agent_is_found_by_its_name),
		ON_BOTH(the_operator_has_several_names),
		ON_BOTH(a_star_is_one_whole_part),
		ON_BOTH(patterns_go_by_the_shape_of_the_address),
		ON_BOTH(a_room_defines_patterns_of_its_own),
		ON_BOTH(mayor_and_deacon_are_one_mailbox_each),
		ON_BOTH(held_mail_for_a_mayor_to_come_waits_in_one_mailbox),
		ON_BOTH(a_rig_and_a_name_find_the_one_worker),
		ON_BOTH(spellings_of_one_agent_deliver_once),
		ON_BOTH(one_name_of_several_kinds_is_refused),
		ON_BOTH(an_answer_goes_to_the_agent_whatever_else_is_called_so),
		ON_BOTH(an_address_with_a_slash_is_an_agent_only),
		ON_BOTH(what_is_unknown_comes_with_near_names_of_every_kind),
		ON_BOTH(closed_queues_and_channels_refuse_mail_and_paused_ones_take_it),
		ON_BOTH(a_post_names_the_channel_and_goes_to_its_subscribers),
		ON_BOTH(only_a_queue_can_make_mail_wait),
		ON_BOTH(a_thousand_recipients_come_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
