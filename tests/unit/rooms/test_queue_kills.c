/* SPDX-License-Identifier: MIT */
/* Senders and claimers of a queue killed at every call: nothing lost, nothing doubled. */
#include "support/sys_fault.h"
#include "work.h"

struct victim { /* by both processes */
	struct letter letter;
	enum settle how;
	struct claim hold;
	unsigned long at;
	bool after, accepted;
};

static void
plan_death(const struct victim *v)
{
	struct sys_plan plan = { .fault = v->after ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, .at = v->at };

	sys_plan_set(&plan);
}

static void
die_sending(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	plan_death(v);
	v->accepted = try_send(b, &v->letter, id, &err) == MR_OK;
}

static void
die_claiming(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct claim_terms terms = terms_of("bob", 1);
	struct mr_error err = { 0 };

	plan_death(v);
	terms.max_claims = v->how == SETTLE_DONE ? 3 : 0;
	v->accepted = maildir_claim(&b->room, "queue:jobs", NULL, &terms, &v->hold, &err) == MR_OK;
}

static void
die_settling(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct mr_error err = { 0 };

	plan_death(v);
	v->accepted =
	    maildir_settle(&b->room, &v->hold, v->how, &err) == MR_OK && maildir_flush(&b->room, &err) == MR_OK;
}

/* Runs it with death at call `at`. False: it came through. */
static bool
dies(struct box *b, void (*work)(struct box *, void *), struct victim *v)
{
	int status = 0;
	pid_t pid = box_fork(b, work, v);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static struct victim *
new_victim(void)
{
	struct victim *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(v != MAP_FAILED);
	return v;
}

static void
kill_sends(struct box *b, const struct letter *letter, unsigned long least)
{
	struct victim *v = new_victim();
	size_t all = 0;

	sync_fully(b);
	for (int after = 0; after < 2; after++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			v->letter = *letter;
			v->after = after;
			v->accepted = false;
			died = dies(b, die_sending, v);
			EXPECT(MR_OK, maildir_sweep(&b->room, NULL, &err));
			size_t here = work_off(b);
			all += here;
			assert_true(here <= 1);
			if (v->accepted)
				assert_int_equal(here, 1);
			if (letter->also != NULL)
				assert_int_equal(in_inbox(b), all);
		}
		assert_true(v->at > least);
	}
	assert_int_equal(total(count(b)), all);
	(void)munmap(v, sizeof(*v));
}

static void
a_killed_send_to_a_queue_is_whole_or_nothing(void **state)
{
	kill_sends(*state, &(struct letter){ .priority = MR_NORMAL }, 8);
}

static void
a_killed_fan_out_with_a_queue_reaches_both_or_none(void **state)
{
	kill_sends(*state, &(struct letter){ .priority = MR_HIGH, .also = "bob" }, 20);
}

static void
a_fan_out_that_was_claimed_before_its_sender_was_completed_is_not_doubled(void **state)
{
	struct box *b = *state;
	struct victim *v = new_victim();
	bool died = true;
	size_t sent = 0;

	sync_fully(b);
	for (v->at = 1; died; v->at++) {
		v->letter = (struct letter){ .also = "bob", .key = NULL };
		died = dies(b, die_sending, v);
		/* Someone works on it, and finishes, before anybody completes the send. */
		(void)work_off(b);
		EXPECT(MR_OK, maildir_sweep(&b->room, NULL, &err));
		(void)work_off(b);
		struct counts n = count(b);
		assert_int_equal(n.done, total(n));
		assert_true(n.done == sent || n.done == sent + 1);
		sent = n.done;
		assert_int_equal(in_inbox(b), sent);
	}
	(void)munmap(v, sizeof(*v));
}

static void
kill_claims(struct box *b, enum settle how, unsigned long least)
{
	struct victim *v = new_victim();
	char id[MR_ID_LEN + 1];

	sync_fully(b);
	for (int after = 0; after < 2; after++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			v->how = how;
			v->after = after;
			v->accepted = false;
			send_work(b, MR_NORMAL, id);
			size_t had = total(count(b));
			died = dies(b, die_claiming, v);
			struct counts n = count(b);
			assert_int_equal(total(n), had);
			assert_int_equal(n.ready + n.claimed, 1);
			if (v->accepted)
				assert_int_equal(n.claimed, 1);
			/* The lease was 1 ms: a claimer that died has lost it. */
			usleep(2000);
			struct claim hold = { 0 };
			if (n.claimed == 1) {
				EXPECT(MR_OK, maildir_each_claim(
						  &b->room, "queue:jobs", QUEUE_CLAIMED, remember_hold, &hold, &err));
				assert_true(hold.over);
				EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_BACK, &err));
			}
			hold = claim(b, false);
			assert_string_equal(hold.id, id);
			assert_int_equal(hold.attempt, n.claimed + 1);
			EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
		}
		assert_true(v->at > least);
	}
	(void)munmap(v, sizeof(*v));
}

static void
a_killed_claim_loses_nothing(void **state)
{
	kill_claims(*state, SETTLE_BACK, 10);
}

static void
a_killed_claim_under_a_limit_loses_nothing(void **state)
{
	kill_claims(*state, SETTLE_DONE, 12);
}

static void
a_killed_settle_is_done_or_still_claimed(void **state)
{
	struct box *b = *state;
	static const enum settle ends[] = { SETTLE_DONE, SETTLE_DEAD, SETTLE_BACK, SETTLE_LATER };
	struct victim *v = new_victim();
	char id[MR_ID_LEN + 1];

	sync_fully(b);
	for (size_t e = 0; e < 4; e++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			send_work(b, MR_NORMAL, id);
			v->how = ends[e];
			v->after = v->at % 2;
			v->accepted = false;
			v->hold = claim(b, false);
			size_t had = total(count(b));
			died = dies(b, die_settling, v);
			struct counts n = count(b);
			assert_int_equal(total(n), had);
			if (v->accepted)
				assert_int_equal(n.claimed, 0);
			if (n.claimed == 1)
				EXPECT(MR_OK, maildir_settle(&b->room, &v->hold, SETTLE_DONE, &err));
			else
				EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &v->hold, SETTLE_DONE, &err));
			(void)work_off(b);
		}
		assert_true(v->at > 5);
	}
	(void)munmap(v, sizeof(*v));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_QUEUE(a_killed_send_to_a_queue_is_whole_or_nothing),
		IN_QUEUE(a_killed_fan_out_with_a_queue_reaches_both_or_none),
		IN_QUEUE(a_fan_out_that_was_claimed_before_its_sender_was_completed_is_not_doubled),
		IN_QUEUE(a_killed_claim_loses_nothing),
		IN_QUEUE(a_killed_claim_under_a_limit_loses_nothing),
		IN_QUEUE(a_killed_settle_is_done_or_still_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
