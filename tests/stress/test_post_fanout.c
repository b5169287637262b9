/* SPDX-License-Identifier: MIT */
/* A fan-out killed at each of its steps, among readers. */
#include "support/sys_fault.h"
#include "stress/post.h"

#define READERS 3u
#define POINTS_MAX 2000u

struct fan {
	struct crowd room;
	atomic_bool over;
	pid_t parent;
	atomic_ulong calls;                       /* of a whole send */
	atomic_uchar consumed[FIFTY][POINTS_MAX]; /* shown and marked, by message */
	unsigned char copies[FIFTY][POINTS_MAX];
	bool accepted[POINTS_MAX];
	atomic_bool purged[POINTS_MAX];
	atomic_uint shown;
};

struct unread {
	char id[16][MR_ID_LEN + 1];
	unsigned n;
};

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	struct unread *u = ctx;

	if (strcmp(msg->type, "purged") == 0) /* that one of them is gone */
		return true;
	memcpy(u->id[u->n++], msg->id, MR_ID_LEN + 1);
	return u->n < sizeof(u->id) / sizeof(u->id[0]);
}

/* When the first gets one in five, alice takes it back from all, while the process that sent it is still at it or just
 * dead. */
static void
purge_some(struct fan *f, struct mr_room *room, const struct mr_self *self, const char *id, unsigned number)
{
	struct mr_self alice = crowd_self(room, "alice");
	struct mr_error err = { 0 };
	enum mr_rc rc;

	if (strcmp(self->agent, "agent0") != 0 || number % 5 != 3)
		return;
	atomic_store(&f->purged[number], true);
	do
		rc = mr_purge(room, &alice, id, "a mistake", NULL, &err);
	while (rc == MR_BUSY);
	if (rc != MR_OK)
		crowd_die("mr_purge", &err);
}

/* As a command does it: reads, and leaves it, or archives it now, or later. */
static void
consume_one(struct fan *f, struct mr_room *room, unsigned recipient, const char *id, uint32_t mood)
{
	struct mr_self self = self_number(room, "agent", recipient);
	struct mr_error err = { 0 };
	struct mr_show *show = NULL;
	struct mr_message msg = { 0 };

	MUST(mr_show_open(room, &self, NULL, &show, &err));
	enum mr_rc rc = mr_show_take(show, id, &msg, &err);
	unsigned number = rc == MR_OK ? (unsigned)strtoul(msg.body, NULL, 10) % POINTS_MAX : 0;

	mr_message_done(&msg);
	if (rc == MR_OK)
		rc = mr_show_finish(show, mood % 3 == 1, NULL, &err);
	mr_show_close(show);
	if (rc == MR_NOTFOUND || (rc == MR_REFUSED && atomic_load(&f->purged[number])))
		return; /* purged; if it was not, then the count will tell */
	if (rc != MR_OK)
		crowd_die("show", &err);
	atomic_fetch_add(&f->consumed[recipient][number], 1);
	atomic_fetch_add(&f->shown, 1);
	if (mood % 3 == 2 && mr_archive(room, &self, id, &err) != MR_OK && !atomic_load(&f->purged[number]))
		crowd_die("mr_archive", &err);
	MUST(mr_flush(room, &err));
	purge_some(f, room, &self, id, number);
}

static void
consume(struct fan *f, unsigned recipient, uint32_t mood)
{
	struct mr_error err = { 0 };
	struct unread unread = { 0 };
	struct mr_room *room = NULL;

	/* It must find what a killed sender left, not complete it. */
	MUST(mr_room_open(f->room.path, &(struct mr_room_options){ .no_recover = true }, &room, &err));
	struct mr_self self = self_number(room, "agent", recipient);

	MUST(mr_scan(room, self.agent, &(struct mr_scan){ .filter = { .unread = true } }, note_unread, &unread, &err));
	for (unsigned i = 0; i < unread.n; i++)
		consume_one(f, room, recipient, unread.id[i], mood);
	mr_room_close(room);
}

static void
read_all_day(void *ctx, unsigned number)
{
	struct fan *f = ctx;
	uint64_t dice = (uint64_t)getpid() * 7919 + number;

	while (goes_on(&f->over, f->parent))
		for (unsigned i = number; i < FIFTY && goes_on(&f->over, f->parent); i += READERS)
			consume(f, i, crowd_dice(&dice));
}

/* Message `number` to all, killed before call `at`; true: it was not reached, and the message is accepted. */
static bool
send_and_die(struct fan *f, unsigned number, unsigned long at)
{
	struct mr_error err = { 0 };
	char body[32];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_room *room = crowd_open(&f->room);
		struct mr_self alice = crowd_self(room, "alice");

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE, .at = at, .delay_us = 1 });
		(void)snprintf(body, sizeof(body), "%u", number);
		MUST(crowd_send(room, &alice, (struct mr_draft){ .to = fifty_names(), .body = body }, NULL, &err));
		atomic_store(&f->calls, sys_calls());
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	crowd_nap_us(number % 3 * 10000);    /* for those who have it to read it */
	mr_room_close(crowd_open(&f->room)); /* the next command completes what was left */
	return !WIFSIGNALED(status);
}

static bool
note_copy(void *ctx, const struct mr_message *msg)
{
	if (strcmp(msg->type, "purged") == 0)
		return true;
	((unsigned char *)ctx)[strtoul(msg->body, NULL, 10) % POINTS_MAX]++;
	return true;
}

static void
check_fan(struct fan *f, unsigned sent)
{
	struct mr_room *room = crowd_open(&f->room);
	struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE }, .bodies = true };
	struct mr_error err = { 0 };
	unsigned arrived = 0, purged = 0;

	for (unsigned i = 0; i < FIFTY; i++)
		consume(f, i, 0);
	for (unsigned i = 0; i < FIFTY; i++) {
		struct mr_self self = self_number(room, "agent", i);

		assert_int_equal(mr_scan(room, self.agent, &scan, note_copy, f->copies[i], &err), MR_OK);
	}
	for (unsigned n = 0; n < sent; n++) {
		unsigned each = f->consumed[0][n];

		assert_in_range(each, f->accepted[n], 1);
		arrived += each;
		purged += f->purged[n];
		for (unsigned i = 0; i < FIFTY; i++) {
			assert_int_equal(f->copies[i][n], f->purged[n] ? 0 : each);
			assert_in_range(f->consumed[i][n], f->purged[n] ? 0 : each, each);
		}
	}
	print_message(
	    "# %u sends, all but 2 killed: %u reached everybody, %u of them were purged\n", sent, arrived, purged);
	mr_room_close(room);
}

static void
a_fan_out_killed_at_any_step_reaches_each_of_fifty_readers_once(void **state)
{
	(void)state;
	struct fan *f = crowd_share(sizeof(*f));
	pid_t reader[READERS];
	unsigned sent = 0, meanwhile = 0;

	f->parent = getpid();
	f->room = post_room("full", "agent", FIFTY);
	f->accepted[sent++] = send_and_die(f, 0, ULONG_MAX);
	unsigned long calls = f->calls, points = so_many(POINTS_MAX, 25);

	points = points < calls ? points : calls;
	assert_in_range(calls, 2 * FIFTY, POINTS_MAX - 2);
	for (unsigned i = 0; i < READERS; i++)
		reader[i] = crowd_spawn(read_all_day, f, i);
	for (unsigned long i = 0; i < points; i++, sent++) {
		unsigned before = f->shown;

		f->accepted[sent] = send_and_die(f, sent, 1 + i * calls / points);
		meanwhile += f->shown > before;
	}
	f->accepted[sent] = send_and_die(f, sent, ULONG_MAX);
	sent++;
	atomic_store(&f->over, true);
	assert_int_equal(crowd_wait(reader, READERS), 0);
	assert_true(f->accepted[0] && f->accepted[sent - 1]);
	check_fan(f, sent);
	assert_true(meanwhile > 0);
	crowd_done(&f->room);
	(void)munmap(f, sizeof(*f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fan_out_killed_at_any_step_reaches_each_of_fifty_readers_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
