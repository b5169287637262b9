/* SPDX-License-Identifier: MIT */
/* scenarios_office.c - pruning, handoffs, escalations, channels, queues, and completing what another began. */
#include "support/sys_fault.h"
#include "more.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- prune ---- */

static enum mr_rc
run_prune(struct world *w, int tell)
{
	static const char *const bob[] = { "bob", NULL };
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	enum mr_rc rc = mr_prune(room, &(struct mr_prune_options){ .names = bob, .force = true }, NULL, &err);
	mr_room_close(room);
	return rc;
}

static void
ignore_finding(void *ctx, const struct mr_finding *f)
{
	(void)ctx;
	(void)f;
}

/* Whatever was left: his mail is with him or with the dead letters, and he can be pruned for good. */
static void
check_pruned(struct world *w)
{
	struct mr_room *room = world_open(w, true);
	struct mr_error err = { 0 };

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_true(p.all <= 1);
		if (w->accepted)
			assert_int_equal(p.dead, 1);
	}
	mr_room_close(room);
	enum mr_rc again = run_prune(w, -1);
	assert_true(again == MR_OK || again == MR_NOTFOUND);
	room = world_open(w, true);
	if (again == MR_NOTFOUND) /* the name was gone and the mail not yet moved: doctor knows of it */
		assert_int_equal(mr_doctor(room, true, ignore_finding, NULL, &err), MR_OK);
	mr_room_close(room);
	room = world_open(w, true);
	for (unsigned i = 0; i < WORK; i++)
		assert_int_equal(more_places(room, "bob", w->ids[i]).dead, 1);
	mr_room_close(room);
}

/* ---- handoff, escalate ---- */

static enum mr_rc
run_handoff(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "carol");
	enum mr_rc rc =
	    mr_handoff(room, &self, &(struct mr_handoff){ .subject = "half done", .text = BODY }, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static void
check_handed_off(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	struct places p = more_places(room, "carol", NULL);
	assert_true(p.all <= 1);
	if (w->accepted) {
		assert_int_equal(p.unread, 1);
		assert_int_equal(p.pinned, 1);
	}
	mr_room_close(room);
}

static enum mr_rc
run_escalate(struct world *w, int tell)
{
	struct mr_escalation what = { .severity = MR_LEVEL_HIGH, .text = "main does not build", .reason = "why" };
	struct mr_escalated made = { 0 };
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "alice");
	enum mr_rc rc = mr_escalate(room, &self, &what, false, false, &made, &err);
	mr_escalated_done(&made);
	mr_room_close(room);
	return rc;
}

static size_t
escalations_of(struct mr_room *room)
{
	struct mr_escalations all = { 0 };
	struct mr_error err = { 0 };

	assert_non_null(room);
	assert_int_equal(mr_escalation_list(room, true, &all, &err), MR_OK);
	size_t n = all.n;

	for (size_t i = 0; i < n; i++)
		assert_string_equal(all.v[i].text, "main does not build");
	mr_list_done(&all);
	return n;
}

/* On record once, and the operator is told; what was cut off is told by the patrol of stale ones, or when the same is
 * said again. */
static void
check_escalated(struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);
	size_t n = escalations_of(room);

	size_t told = more_places(room, "operator", NULL).all;
	assert_true(n <= 1);
	assert_true(told <= n);
	if (w->accepted)
		assert_int_equal(told, 1);
	mr_room_close(room);
	assert_int_equal(run_escalate(w, -1), MR_OK);
	room = world_open(w, true);
	assert_int_equal(escalations_of(room), 1);
	assert_int_equal(
	    mr_escalation_stale(room, &(struct mr_self){ .agent = "alice" }, false, NULL, NULL, &err), MR_OK);
	assert_int_equal(more_places(room, "operator", NULL).all, 1);
	mr_room_close(room);
}

/* ---- channels ---- */

static void
setup_channel(struct world *w)
{
	struct mr_error err = { 0 };
	bool changed = false;

	setup_three(w);
	struct mr_room *room = world_open(w, true);
	struct mr_self self = more_self(room, "alice");
	if (mr_channel_create(room, &self, "news", 0, 0, &err) != MR_OK ||
	    mr_channel_subscribe(room, "news", "bob", true, &changed, &err) != MR_OK ||
	    mr_channel_subscribe(room, "news", "carol", true, &changed, &err) != MR_OK)
		fail_msg("channel: %s", err.message);
	char id[MR_ID_LEN + 1];
	world_send(room, "alice", "channel:news", id);
	mr_room_close(room);
}

static enum mr_rc
run_publish(struct world *w, int tell)
{
	static const char *const to[] = { "channel:news", NULL };
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .to = to, .body = BODY, .body_len = strlen(BODY) };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "alice");
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static bool
count_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	uint64_t *last = ctx;

	assert_true(number == *last + 1);
	assert_int_equal(msg->body_len, strlen(BODY));
	*last = number;
	return true;
}

static uint64_t
posts(struct mr_room *room)
{
	struct mr_error err = { 0 };
	uint64_t last = 0;

	assert_int_equal(mr_channel_read(room, "news", 0, true, count_post, &last, &err), MR_OK);
	return last;
}

/* Numbered without a gap, each post once; the subscribers have what the channel has. The next post follows. */
static void
check_published(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	uint64_t n = posts(room);
	assert_in_range(n, 1, 2);
	if (w->accepted)
		assert_int_equal(n, 2);
	assert_int_equal(world_count(room, "carol", NULL).copies, n);
	assert_int_equal(world_count(room, "carol", NULL).torn, 0);
	assert_int_equal(world_count(room, "bob", NULL).copies, WORK + n);
	mr_room_close(room);
	assert_int_equal(run_publish(w, -1), MR_OK);
	room = world_open(w, true);
	assert_int_equal(posts(room), n + 1);
	assert_int_equal(world_count(room, "carol", NULL).copies, n + 1);
	mr_room_close(room);
}

/* ---- a fan-out whose sender died, completed by the next command ---- */

static const char *const trio[] = { "bob", "carol", "dave", NULL };

static enum mr_rc
send_to_trio(struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .to = trio, .body = BODY, .body_len = strlen(BODY), .key = "once" };
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "alice");
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static size_t
count_trio(struct world *w, bool recover)
{
	struct mr_room *room = world_open(w, recover);
	size_t n = 0;

	assert_non_null(room);
	for (size_t i = 0; trio[i]; i++) {
		struct census c = world_count(room, trio[i], NULL);
		assert_int_equal(c.torn, 0);
		assert_true(c.copies <= 1);
		n += c.copies;
	}
	mr_room_close(room);
	return n;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

/* Killed at each call in turn, until one kill leaves it half done. */
static void
setup_half_sent(struct world *w)
{
	static const char *const four[] = { "alice", "bob", "carol", "dave", NULL };
	bool half = false;

	for (unsigned long at = 20; !half && at < 200; at++) {
		int status = 0;

		if (at > 20)
			(void)nftw(w->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		world_new(w, four);
		pid_t child = fork();
		if (child == 0) {
			sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER, .at = at });
			_exit(send_to_trio(w) == MR_OK ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status)); /* else the half was stepped over */
		half = count_trio(w, false) == 1;
	}
	assert_true(half);
}

static enum mr_rc
run_recovery(struct world *w, int tell)
{
	(void)tell;
	mr_room_close(world_open(w, true));
	return MR_OK;
}

static void
check_recovered(struct world *w)
{
	assert_int_equal(count_trio(w, true), 3);
	assert_int_equal(send_to_trio(w), MR_OK); /* the retry is the same message */
	assert_int_equal(count_trio(w, true), 3);
}

/* ---- queues ---- */

/* Done, or still claimed. What is claimed can be done, or comes back when its time is over: the file of the lease may
 * have been lost without the move. */
static void
check_queue_finished(struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_queue_counts n = { 0 };
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	assert_int_equal(mr_queue_count(room, "builds", &n, &err), MR_OK);
	assert_int_equal(n.done + n.claimed, 1);
	assert_int_equal(n.ready, WORK - 1);
	if (w->accepted)
		assert_int_equal(n.done, 1);
	mr_room_close(room);
	enum mr_rc again = run_queue_done(w, -1);
	if (n.done == 1)
		assert_int_equal(again, MR_NOTFOUND);
	else
		assert_true(again == MR_OK || again == MR_REFUSED);
}

const struct scenario office_scenarios[] = {
	{ "prune", setup_three, run_prune, check_pruned, 5, 0 },
	{ "handoff", setup_three, run_handoff, check_handed_off, 5, 0 },
	{ "escalate", setup_three, run_escalate, check_escalated, 5, 0 },
	{ "recovery of a fan-out", setup_half_sent, run_recovery, check_recovered, 5, 0 },
	{ "done queue:", setup_queue_claimed, run_queue_done, check_queue_finished, 5, 0 },
	{ "send channel:", setup_channel, run_publish, check_published, 5, 0 },
};
const size_t office_scenarios_n = sizeof(office_scenarios) / sizeof(office_scenarios[0]);
