/* SPDX-License-Identifier: MIT */
/* test_crowd.c - many senders, many readers, many that register: nothing lost, nothing twice. */
#include "stress/crowd.h"

#define SENDERS 16u
#define READERS 4u
#define SENDS 500u

struct traffic {
	struct crowd room;
	unsigned sends; /* a sender */
	atomic_bool all_sent;
	atomic_uchar shown[SENDERS * SENDS]; /* how often message number i was shown */
	atomic_uint strange;                 /* shown with a body that nobody sent */
};

static void
send_many(void *ctx, unsigned number)
{
	struct traffic *t = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&t->room);
	struct mr_self alice = crowd_self(room, "alice");

	for (unsigned i = 0; i < t->sends; i++) {
		char body[64];

		(void)snprintf(body, sizeof(body), "number %u\nend", number * t->sends + i);
		MUST(crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .body = body }, NULL, &err));
	}
	mr_room_close(room);
}

struct batch {
	char ids[100][MR_ID_LEN + 1];
	size_t n;
};

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct batch *b = ctx;

	memcpy(b->ids[b->n++], msg->id, MR_ID_LEN + 1);
	return b->n < 100;
}

static void
note_shown(struct traffic *t, const struct mr_message *msg)
{
	unsigned long i = strncmp(msg->body, "number ", 7) == 0 ? strtoul(msg->body + 7, NULL, 10) : ~0ul;

	if (i >= SENDERS * t->sends || !strstr(msg->body, "\nend"))
		atomic_fetch_add(&t->strange, 1);
	else
		atomic_fetch_add(&t->shown[i], 1);
}

/* What the drain command does: hold, show, then mark and archive. */
static void
show_batch(struct traffic *t, struct mr_room *room, const struct mr_self *bob, const struct batch *b)
{
	struct mr_error err = { 0 };
	struct mr_show *show = NULL;

	MUST(mr_show_open(room, bob, NULL, &show, &err));
	for (size_t i = 0; i < b->n; i++) {
		struct mr_message msg = { 0 };
		enum mr_rc rc = mr_show_take(show, b->ids[i], &msg, &err);

		if (rc == MR_OK && !(msg.flags & MR_SEEN))
			note_shown(t, &msg);
		else if (rc != MR_OK && rc != MR_BUSY && rc != MR_NOTFOUND)
			crowd_die("mr_show_take", &err);
		mr_message_done(&msg);
	}
	MUST(mr_show_finish(show, true, NULL, &err));
	mr_show_close(show);
}

static void
drain_all(void *ctx, unsigned number)
{
	struct traffic *t = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&t->room);
	struct mr_self bob = crowd_self(room, "bob");

	(void)number;
	for (;;) {
		bool was_last = atomic_load(&t->all_sent);
		struct batch b = { .n = 0 };
		struct mr_scan scan = { .filter = { .unread = true } };

		MUST(mr_scan(room, "bob", &scan, note_id, &b, &err));
		if (b.n == 0 && was_last)
			break;
		if (b.n == 0)
			crowd_nap_us(500);
		else
			show_batch(t, room, &bob, &b);
	}
	mr_room_close(room);
}

static void
sixteen_senders_and_four_readers_and_every_message_is_shown_exactly_once(void **state)
{
	(void)state;
	struct traffic *t = crowd_share(sizeof(*t));
	pid_t senders[SENDERS], readers[READERS];

	t->room = crowd_new("full", TO("alice", "bob"));
	t->sends = CROWD_SLOW ? 60 : crowd_long() ? SENDS : SENDS / 2;
	for (unsigned i = 0; i < READERS; i++)
		readers[i] = crowd_spawn(drain_all, t, i);
	for (unsigned i = 0; i < SENDERS; i++)
		senders[i] = crowd_spawn(send_many, t, i);
	assert_int_equal(crowd_wait(senders, SENDERS), 0);
	atomic_store(&t->all_sent, true);
	assert_int_equal(crowd_wait(readers, READERS), 0);
	unsigned never = 0, twice = 0;

	for (unsigned i = 0; i < SENDERS * t->sends; i++) {
		never += t->shown[i] == 0;
		twice += t->shown[i] > 1;
	}
	assert_int_equal(never, 0);
	assert_int_equal(twice, 0);
	assert_int_equal(t->strange, 0);
	struct mr_room *room = crowd_open(&t->room);

	assert_int_equal(crowd_count(room, "bob", (struct mr_filter){ .folders = MR_ARCHIVE }), SENDERS * t->sends);
	assert_int_equal(crowd_count(room, "bob", (struct mr_filter){ .folders = MR_INBOX | MR_HELD }), 0);
	assert_int_equal(crowd_count(room, "alice", (struct mr_filter){ .folders = MR_SENT }), SENDERS * t->sends);
	mr_room_close(room);
	crowd_done(&t->room);
	(void)munmap(t, sizeof(*t));
}

/* ---- Names ---- */

#define NAMES 50u

struct census_office {
	struct crowd room;
	atomic_uint winners, refused;
};

static void
register_as(struct census_office *o, const char *name)
{
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&o->room);
	struct mr_registration got = { 0 };
	enum mr_rc rc = mr_register(room, name, &(struct mr_env){ 0 }, &(struct mr_register_options){ 0 }, &got, &err);

	if (rc == MR_OK)
		atomic_fetch_add(&o->winners, 1);
	else if (rc == MR_REFUSED)
		atomic_fetch_add(&o->refused, 1);
	else
		crowd_die(name, &err);
	mr_room_close(room);
}

static void
register_own_name(void *ctx, unsigned number)
{
	char name[40];

	if (number % 5 == 0)
		(void)snprintf(name, sizeof(name), "rig%u", number / 5);
	else
		(void)snprintf(name, sizeof(name), "rig%u/crew/w%u", number / 5, number % 5);
	register_as(ctx, name);
}

static void
register_one_name(void *ctx, unsigned number)
{
	(void)number;
	register_as(ctx, "rig/mayor");
}

static void
fifty_processes_register_fifty_names_some_within_others(void **state)
{
	(void)state;
	struct census_office *o = crowd_share(sizeof(*o));
	struct mr_error err = { 0 };
	struct mr_agents agents = { 0 };
	unsigned found = 0;

	o->room = crowd_new("full", TO("alice"));
	assert_int_equal(crowd_run(NAMES, register_own_name, o), 0);
	assert_int_equal(o->winners, NAMES);
	struct mr_room *room = crowd_open(&o->room);

	assert_int_equal(mr_agent_list(room, &agents, &err), MR_OK);
	for (size_t i = 0; i < agents.n; i++)
		found += strncmp(agents.v[i].name, "rig", 3) == 0;
	mr_list_done(&agents);
	assert_int_equal(found, NAMES);
	mr_room_close(room);
	crowd_done(&o->room);
	(void)munmap(o, sizeof(*o));
}

static void
fifty_processes_register_one_name_and_one_gets_it(void **state)
{
	(void)state;
	struct census_office *o = crowd_share(sizeof(*o));

	o->room = crowd_new("full", TO("alice"));
	assert_int_equal(crowd_run(NAMES, register_one_name, o), 0);
	assert_int_equal(o->winners, 1);
	assert_int_equal(o->refused, NAMES - 1);
	crowd_done(&o->room);
	(void)munmap(o, sizeof(*o));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_senders_and_four_readers_and_every_message_is_shown_exactly_once),
		cmocka_unit_test(fifty_processes_register_fifty_names_some_within_others),
		cmocka_unit_test(fifty_processes_register_one_name_and_one_gets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
