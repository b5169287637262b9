/* SPDX-License-Identifier: MIT */
/* Holds of the native driver: one winner, back when the holder dies, never taken from the living. */
#include "box.h"
#include "base/clock.h"
#include "base/process.h"
#include "support/sys_fault.h"
#include "rooms/maildir/maildir.h"
#include <poll.h>

#define SHARED 200
#define HOLDERS 4

static const struct claim_terms by_process = { .kind = CLAIM_HANDLE, .life = 1, .session = "" };

static size_t
count(struct box *b, unsigned folders)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, folders, false, NULL, &l, &err));
	return l.n;
}

static struct claim
lease(struct box *b, const char *id, int64_t lease_ms)
{
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .session = "", .lease_ms = lease_ms };
	struct claim hold = { 0 };

	EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &terms, &hold, &err));
	return hold;
}

static bool
holds_has(struct box *b, const char *token)
{
	char rest[64];

	(void)snprintf(rest, sizeof(rest), "holds/%s", token);
	return box_has(b, rest);
}

/* ---- Several holders ---- */

struct contest {
	char ids[SHARED][MR_ID_LEN + 1];
	int pipe[2]; /* one byte for each message that was won: its number */
	bool archive;
};

static void
hold_all(struct box *b, void *arg)
{
	struct contest *c = arg;

	for (size_t i = 0; i < SHARED; i++) {
		struct claim hold = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc rc = maildir_claim(&b->room, "bob", c->ids[i], &by_process, &hold, &err);
		unsigned char number = (unsigned char)i;
		if (rc == MR_OK) {
			if (write(c->pipe[1], &number, 1) != 1 ||
			    maildir_settle(&b->room, &hold, c->archive ? SETTLE_ARCHIVE : SETTLE_SEEN, &err) != MR_OK)
				_exit(2);
		} else if (rc != MR_BUSY && rc != MR_NOTFOUND) {
			_exit(3);
		}
	}
}

static void
run_contest(struct box *b, bool archive)
{
	struct contest c = { .archive = archive };
	unsigned won[SHARED] = { 0 };
	unsigned char number;
	pid_t pids[HOLDERS];

	assert_int_equal(pipe(c.pipe), 0);
	for (size_t i = 0; i < SHARED; i++)
		box_mail(b, "new", NULL, c.ids[i]);
	for (int i = 0; i < HOLDERS; i++)
		pids[i] = box_fork(b, hold_all, &c);
	(void)close(c.pipe[1]);
	while (read(c.pipe[0], &number, 1) == 1)
		won[number]++;
	for (int i = 0; i < HOLDERS; i++)
		box_join(pids[i]);
	(void)close(c.pipe[0]);
	for (size_t i = 0; i < SHARED; i++)
		assert_int_equal(won[i], 1);
	assert_int_equal(count(b, MR_HELD), 0);
	assert_int_equal(count(b, archive ? MR_ARCHIVE : MR_INBOX), SHARED);
}

static void
four_processes_get_each_of_200_messages_exactly_once(void **state)
{
	run_contest(*state, false);
}

static void
four_processes_that_archive_get_each_exactly_once(void **state)
{
	run_contest(*state, true);
}

/* ---- Holders that die ---- */

static void
hold_and_stay(struct box *b, void *arg)
{
	struct contest *c = arg;
	struct claim hold;
	struct mr_error err = { 0 };

	for (size_t i = 0; i < 20; i++)
		if (maildir_claim(&b->room, "bob", c->ids[i], &by_process, &hold, &err) != MR_OK)
			_exit(2);
	(void)!write(c->pipe[1], "", 1);
	for (;;)
		(void)pause();
}

static void
mail_of_a_killed_process_is_back_after_the_next_sweep_and_not_before(void **state)
{
	struct box *b = *state;
	struct contest c = { 0 };
	struct claim hold;
	char byte;

	assert_int_equal(pipe(c.pipe), 0);
	for (size_t i = 0; i < 20; i++)
		box_mail(b, "new", NULL, c.ids[i]);
	pid_t pid = box_fork(b, hold_and_stay, &c);
	assert_int_equal(read(c.pipe[0], &byte, 1), 1);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 20);
	EXPECT(MR_BUSY, maildir_claim(&b->room, "bob", c.ids[0], &by_process, &hold, &err));
	EXPECT(MR_BUSY, maildir_mark(&b->room, "bob", c.ids[0], MR_SEEN, 0, 0, &err));
	box_kill(pid);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 0);
	assert_int_equal(count(b, MR_INBOX), 20);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", c.ids[0], &by_process, &hold, &err));
	assert_int_equal(hold.attempt, 2);
	(void)close(c.pipe[0]);
	(void)close(c.pipe[1]);
}

static void
closing_the_room_ends_its_process_holds(void **state)
{
	struct box *b = *state;
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	box_mail(b, "cur", "F", id);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &by_process, &hold, &err));
	assert_true(holds_has(b, hold.token));
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err)); /* our own is not swept */
	assert_int_equal(count(b, MR_HELD), 1);
	token_close(maildir_of(&b->room));
	assert_false(holds_has(b, hold.token));
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_INBOX), 1);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &hold, SETTLE_SEEN, &err));
}

/* Kills the child at every disk-touching call of hold and settle; *arg is the call. */
static void
hold_settle_killed(struct box *b, void *arg)
{
	struct contest *c = arg;
	struct claim hold;
	struct mr_error err = { 0 };

	sys_plan_set(&(struct sys_plan){
	    .fault = c->archive ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, .at = (unsigned long)c->pipe[0] });
	if (maildir_claim(&b->room, "bob", c->ids[0], &by_process, &hold, &err) == MR_OK)
		(void)maildir_settle(&b->room, &hold, SETTLE_ARCHIVE, &err);
	sys_plan_set(NULL);
}

static void
a_kill_at_any_call_loses_no_mail(void **state)
{
	struct box *b = *state;
	int points = 0;

	for (int after = 0; after < 2; after++) {
		bool killed = true;
		for (int at = 1; killed; at++) {
			struct contest c = { .archive = after == 1, .pipe = { at, 0 } };
			int status = 0;
			box_mail(b, "new", NULL, c.ids[0]);
			pid_t pid = box_fork(b, hold_settle_killed, &c);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			killed = WIFSIGNALED(status);
			points += killed;
			EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
			struct mr_message msg = { 0 };
			EXPECT(MR_OK,
			    maildir_fetch(&b->room, "bob", c.ids[0], MR_INBOX | MR_ARCHIVE, SCAN_BODIES, &msg, &err));
			assert_string_equal(msg.subject, c.ids[0]);
			assert_int_equal(msg.folder == MR_ARCHIVE, (msg.flags & MR_SEEN) != 0);
			mr_message_done(&msg);
			assert_int_equal(count(b, MR_HELD), 0);
			EXPECT(MR_OK, maildir_mark(&b->room, "bob", c.ids[0], 0, 0, MR_DEAD, &err));
			assert_int_equal(count(b, MR_INBOX | MR_ARCHIVE), 0);
		}
	}
	assert_true(points > 20);
}

/* ---- Leases ---- */

static void
a_lease_that_ran_out_comes_back_and_its_done_finds_nothing(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	box_mail(b, "new", NULL, id);
	struct claim first = lease(b, id, 60000);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 1);
	EXPECT(MR_OK, maildir_extend(&b->room, &first, 0, &err));
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_INBOX), 1);
	assert_false(holds_has(b, first.token));
	EXPECT(MR_NOTFOUND, maildir_extend(&b->room, &first, 60000, &err));
	assert_false(holds_has(b, first.token));
	struct claim second = lease(b, id, 60000);
	assert_int_equal(second.attempt, 2);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &second, SETTLE_DONE, &err));
	struct mr_message msg = { 0 };
	EXPECT(MR_OK, maildir_fetch(&b->room, "bob", id, 0, SCAN_NAMES, &msg, &err));
	assert_int_equal(msg.flags, MR_SEEN | MR_ACKED);
	assert_int_equal(msg.folder, MR_ARCHIVE);
	mr_message_done(&msg);
}

static void
an_extended_lease_does_not_run_out(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	box_mail(b, "new", NULL, id);
	struct claim hold = lease(b, id, 0);
	int64_t before_ms = hold.deadline_ms;
	EXPECT(MR_OK, maildir_extend(&b->room, &hold, 3600000, &err));
	assert_true(hold.deadline_ms > before_ms + 3000000);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 1);
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_BACK, &err));
	assert_int_equal(count(b, MR_INBOX), 1);
}

static void
a_clock_set_forward_does_not_end_a_lease_within_one_boot(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	box_mail(b, "new", NULL, id);
	struct claim hold = lease(b, id, 60000);
	clock_shift_ms(3600000);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 1);
	char rest[64]; /* without the record only the wall clock is left, and it may be wrong */
	(void)snprintf(rest, sizeof(rest), "holds/%s", hold.token);
	assert_int_equal(unlink(box_path(b, rest)), 0);
	clock_shift_ms(60000 + CLOCK_GRACE_MS - 10000);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 1);
	clock_shift_ms(3600000);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	clock_shift_ms(0);
	assert_int_equal(count(b, MR_INBOX), 1);
}

static void
the_boot_clock_decides_where_it_is_shared_and_else_the_wall_clock_with_grace(void **state)
{
	(void)state;
	static const struct {
		struct lease_time t;
		bool up;
	} cases[] = {
		/* shared: the wall clock may say what it likes */
		{ { true, 999, 1000, 0, 1000000 }, false },
		{ { true, 1000, 1000, 0, 1000000 }, true },
		{ { true, 999, 1000, 1000000 + CLOCK_GRACE_MS, 1000 }, false },
		{ { true, 2000, 1000, 0, 1000000 }, true },
		/* another boot, another machine, a time namespace nobody knows: so may the boot clock */
		{ { false, 0, 0, 999, 1000 }, false },
		{ { false, 0, 0, 1000, 1000 }, false },
		{ { false, 5000, 1000, 1000, 1000 }, false },
		{ { false, 5000, 1000, 999 + CLOCK_GRACE_MS, 1000 }, false },
		{ { false, 5000, 1000, 1000 + CLOCK_GRACE_MS, 1000 }, true },
		{ { false, 0, 1000, 1000 + CLOCK_GRACE_MS, 1000 }, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (lease_time_is_up(&cases[i].t) != cases[i].up)
			fail_msg("case %zu", i);
	}
}

/* Rewrites holds/<token> without the lines that begin so, and with one more. */
static void
change_record(struct box *b, const char *token, const char *without, const char *with)
{
	char path[64], line[256], text[2000] = "";
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "holds/%s", token);
	FILE *f = fopen(box_path(b, path), "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, without, strlen(without)) != 0)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", line);
	}
	assert_int_equal(fclose(f), 0);
	f = fopen(box_path(b, path), "w");
	assert_non_null(f);
	assert_true(fprintf(f, "%s%s", text, with) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool
is_swept(struct box *b)
{
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	return count(b, MR_HELD) == 0;
}

static void
a_lease_of_another_boot_or_an_unknown_clock_lasts_by_the_wall_clock(void **state)
{
	struct box *b = *state;
	static const char *const lines[] = { "", "Boot: 11111111-2222-3333-4444-555555555555\n",
		"Host: another-host\nBoot-Began: 1\n" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char id[MR_ID_LEN + 1];
		box_mail(b, "new", NULL, id);
		struct claim hold = lease(b, id, 1); /* by the boot clock it is over at once */
		change_record(b, hold.token, boot_id()[0] ? "Boot:" : "Host:", lines[i]);
		(void)usleep(3000);
		assert_false(is_swept(b));
		clock_shift_ms(CLOCK_GRACE_MS - 5000);
		assert_false(is_swept(b));
		clock_shift_ms(CLOCK_GRACE_MS + 2000);
		assert_true(is_swept(b));
		clock_shift_ms(0);
	}
}

static void
a_process_that_cannot_be_judged_neither_ends_a_lease_nor_prolongs_it(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .session = "", .lease_ms = 60000 };
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	if (!process_describe(getpid(), &terms.process))
		skip();
	terms.process.pid_ns++;
	box_mail(b, "new", NULL, id);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &terms, &hold, &err));
	assert_false(is_swept(b));
	EXPECT(MR_OK, maildir_extend(&b->room, &hold, 1, &err));
	(void)usleep(3000);
	assert_true(is_swept(b));
}

static void
a_lease_does_not_run_out_while_its_harness_lives(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .session = "claude-code-1" };
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	pid_t harness = fork();
	assert_true(harness >= 0);
	if (harness == 0) {
		(void)alarm(60);
		for (;;)
			(void)pause();
	}
	if (!process_describe(harness, &terms.process)) {
		box_kill(harness);
		skip();
	}
	box_mail(b, "new", NULL, id);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &terms, &hold, &err));
	EXPECT(MR_OK, maildir_extend(&b->room, &hold, 0, &err)); /* keeps what is known of the holder */
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 1);
	box_kill(harness);
	EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
	assert_int_equal(count(b, MR_HELD), 0);
}

/* ---- The fence ---- */

static void
a_life_that_was_taken_over_holds_nothing_and_gets_nothing(void **state)
{
	struct box *b = *state;
	struct mr_agent agent = { .name = "bob", .life = 1, .worktree = "", .session = "", .host = "" };
	struct claim old = { 0 }, none = { 0 };
	char id[MR_ID_LEN + 1], other[MR_ID_LEN + 1];
	size_t returned = 0;

	EXPECT(MR_OK, maildir_take_life(&b->room, &agent, &returned, &err));
	box_mail(b, "new", NULL, id);
	box_mail(b, "new", NULL, other);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &by_process, &old, &err));
	agent.life = 2;
	EXPECT(MR_OK, maildir_take_life(&b->room, &agent, &returned, &err));
	assert_int_equal(returned, 1);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &old, SETTLE_SEEN, &err));
	EXPECT(MR_REFUSED, maildir_claim(&b->room, "bob", other, &by_process, &none, &err));
	assert_int_equal(count(b, MR_INBOX), 2);
	assert_int_equal(count(b, MR_HELD), 0);
}

static void
a_takeover_that_was_cut_off_is_finished_by_the_next_sweep(void **state)
{
	struct box *b = *state;
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	for (int renamed = 0; renamed < 2; renamed++) {
		box_mail(b, "new", NULL, id);
		EXPECT(MR_OK, maildir_claim(&b->room, "bob", id, &by_process, &hold, &err));
		if (renamed)
			assert_int_equal(
			    rename(box_path(b, "agents/bob/held/1"), box_path(b, "agents/bob/held/.gone.1.abcdef")), 0);
		else
			box_write(b, "agents/bob/lives/2", "Life: 2\n");
		EXPECT(MR_OK, maildir_sweep(&b->room, "bob", &err));
		EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &hold, SETTLE_SEEN, &err));
		assert_int_equal(count(b, MR_HELD), 0);
		assert_int_equal(count(b, MR_INBOX), (size_t)renamed + 1);
		(void)unlink(box_path(b, "agents/bob/lives/2"));
	}
	assert_false(box_has(b, "agents/bob/held/.gone.1.abcdef"));
}

/* ---- Names and marks ---- */

static void
letters_of_other_programs_survive_a_hold(void **state)
{
	struct box *b = *state;
	struct file_name n;
	struct claim hold = { 0 };

	box_write(b, "agents/bob/cur/17.foreign:2,DPb", "Subject: hi\n\nx\n");
	assert_true(name_parse(STR("17.foreign"), &n));
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", n.id, &by_process, &hold, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_BACK, &err));
	assert_true(box_has(b, "agents/bob/cur/17.foreign,A=1:2,DPb"));
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", n.id, &by_process, &hold, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_SEEN, &err));
	assert_true(box_has(b, "agents/bob/cur/17.foreign,A=1:2,DPSb"));
}

static void
a_name_too_long_to_be_held_is_refused_and_stays(void **state)
{
	struct box *b = *state;
	char name[240], rest[300];
	struct file_name n;
	struct claim hold;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)snprintf(rest, sizeof(rest), "agents/bob/new/%s", name);
	box_write(b, rest, "Subject: hi\n\nx\n");
	assert_true(name_parse(str_of(name), &n));
	EXPECT(MR_REFUSED, maildir_claim(&b->room, "bob", n.id, &by_process, &hold, &err));
	assert_int_equal(count(b, MR_INBOX), 1);
}

static void
seen_mail_cannot_be_held(void **state)
{
	struct box *b = *state;
	struct claim hold;
	char id[MR_ID_LEN + 1];

	box_mail(b, "cur", "S", id);
	EXPECT(MR_NOTFOUND, maildir_claim(&b->room, "bob", id, &by_process, &hold, &err));
}

/* ---- Waiting ---- */

static void
deliver_soon(struct box *b, void *arg)
{
	char id[MR_ID_LEN + 1];

	(void)arg;
	(void)poll(NULL, 0, 100);
	box_mail(b, "new", NULL, id);
}

static void
a_wait_ends_when_mail_comes_and_otherwise_after_two_seconds_at_most(void **state)
{
	struct box *b = *state;
	void *watch = NULL;

	EXPECT(MR_OK, maildir_watch(&b->room, "bob", &watch, &err));
	int64_t began_ms = clock_boot_ms();
	pid_t pid = box_fork(b, deliver_soon, NULL);
	maildir_watch_wait(&b->room, watch, 60000);
	int64_t took_ms = clock_boot_ms() - began_ms;
	box_join(pid);
	assert_true(took_ms < 10000);
	assert_int_equal(count(b, MR_INBOX), 1);
	began_ms = clock_boot_ms();
	maildir_watch_wait(&b->room, watch, 50);
	took_ms = clock_boot_ms() - began_ms;
	assert_true(took_ms < 10000);
	maildir_watch_close(&b->room, watch);
}

static bool
note_alice(void *ctx, const struct mr_message *msg)
{
	*(bool *)ctx |= strcmp(msg->from, "alice") == 0;
	return true;
}

/* A second wait takes over the watch of the first: what came in between, and a mailbox that was made anew, must ring.
 */
static void
the_next_wait_hears_of_mail_in_a_mailbox_that_was_made_anew(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	void *watch = NULL;

	for (int round = 0; round < 3; round++) {
		struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
		bool came = false;

		EXPECT(MR_OK, maildir_watch(&b->room, "bob", &watch, &err));
		int64_t began_ms = clock_boot_ms();
		pid_t pid = box_fork(b, deliver_soon, NULL);

		maildir_watch_wait(&b->room, watch, 60000);
		int64_t took_ms = clock_boot_ms() - began_ms;
		box_join(pid);
		assert_true(took_ms < 10000);
		EXPECT(MR_OK, maildir_scan(&b->room, "bob", &want, note_alice, &came, &err));
		assert_true(came);
		maildir_watch_close(&b->room, watch);
		box_mail(b, "new", NULL, id); /* while nobody looks */
		if (round == 1) {
			assert_int_equal(rename(box_path(b, "agents/bob/new"), box_path(b, "agents/bob/old")), 0);
			assert_int_equal(mkdir(box_path(b, "agents/bob/new"), 0700), 0);
		}
	}
}

/* ---- The mailbox that a handle keeps open ---- */

/* A takeover that is cut off behind its rename has given nothing back yet, and the handle of the old life has the
 * folder open: still that life is over. */
static void
a_handle_that_is_open_settles_nothing_of_a_life_that_was_fenced(void **state)
{
	struct box *b = *state;
	char ids[2][MR_ID_LEN + 1];
	struct claim holds[2];

	for (int i = 0; i < 2; i++) {
		box_mail(b, "new", NULL, ids[i]);
		EXPECT(MR_OK, maildir_claim(&b->room, "bob", ids[i], &by_process, &holds[i], &err));
	}
	EXPECT(MR_OK, maildir_settle(&b->room, &holds[0], SETTLE_ARCHIVE, &err));
	assert_int_equal(rename(box_path(b, "agents/bob/held/1"), box_path(b, "agents/bob/held/.gone.1.abcdef")), 0);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &holds[1], SETTLE_ARCHIVE, &err));
	assert_int_equal(count(b, MR_ARCHIVE), 1);
}

static void
a_handle_that_is_open_takes_nothing_for_a_life_that_was_fenced(void **state)
{
	struct box *b = *state;
	char ids[2][MR_ID_LEN + 1];
	struct claim hold;

	box_write(b, "agents/bob/lives/1", "Life: 1\n");
	for (int i = 0; i < 2; i++)
		box_mail(b, "new", NULL, ids[i]);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", ids[0], &by_process, &hold, &err));
	box_write(b, "agents/bob/lives/2", "Life: 2\n");
	EXPECT(MR_REFUSED, maildir_claim(&b->room, "bob", ids[1], &by_process, &hold, &err));
	/* Also when so many followed that the files of both are gone. */
	assert_int_equal(rename(box_path(b, "agents/bob/lives/1"), box_path(b, "agents/bob/lives/18")), 0);
	assert_int_equal(unlink(box_path(b, "agents/bob/lives/2")), 0);
	EXPECT(MR_REFUSED, maildir_claim(&b->room, "bob", ids[1], &by_process, &hold, &err));
}

/* As after a restore from a backup. */
static void
a_handle_that_is_open_follows_a_mailbox_that_was_put_in_the_place_of_another(void **state)
{
	static const char *const folders[] = { "", "/tmp", "/new", "/cur", "/held", "/lives" };
	struct box *b = *state;
	char old[MR_ID_LEN + 1], fresh[MR_ID_LEN + 1], path[64];
	struct claim hold;

	box_mail(b, "new", NULL, old);
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", old, &by_process, &hold, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_ARCHIVE, &err));
	assert_int_equal(rename(box_path(b, "agents/bob"), box_path(b, "away")), 0);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(path, sizeof(path), "agents/bob%s", folders[i]);
		assert_int_equal(mkdir(box_path(b, path), 0700), 0);
	}
	box_write(b, "agents/bob/agent", "Name: bob\n");
	box_mail(b, "new", NULL, fresh);
	(void)poll(NULL, 0, 50); /* longer than a kept descriptor counts unseen */
	EXPECT(MR_OK, maildir_claim(&b->room, "bob", fresh, &by_process, &hold, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_ARCHIVE, &err));
	assert_int_equal(count(b, MR_ARCHIVE), 1);
	assert_int_equal(count(b, MR_INBOX | MR_HELD), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, box_setup, box_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(four_processes_get_each_of_200_messages_exactly_once),
		T(four_processes_that_archive_get_each_exactly_once),
		T(mail_of_a_killed_process_is_back_after_the_next_sweep_and_not_before),
		T(closing_the_room_ends_its_process_holds),
		T(a_kill_at_any_call_loses_no_mail),
		T(a_lease_that_ran_out_comes_back_and_its_done_finds_nothing),
		T(an_extended_lease_does_not_run_out),
		T(a_clock_set_forward_does_not_end_a_lease_within_one_boot),
		cmocka_unit_test(the_boot_clock_decides_where_it_is_shared_and_else_the_wall_clock_with_grace),
		T(a_lease_of_another_boot_or_an_unknown_clock_lasts_by_the_wall_clock),
		T(a_process_that_cannot_be_judged_neither_ends_a_lease_nor_prolongs_it),
		T(a_lease_does_not_run_out_while_its_harness_lives),
		T(a_life_that_was_taken_over_holds_nothing_and_gets_nothing),
		T(a_takeover_that_was_cut_off_is_finished_by_the_next_sweep),
		T(letters_of_other_programs_survive_a_hold),
		T(a_name_too_long_to_be_held_is_refused_and_stays),
		T(seen_mail_cannot_be_held),
		T(a_wait_ends_when_mail_comes_and_otherwise_after_two_seconds_at_most),
		T(the_next_wait_hears_of_mail_in_a_mailbox_that_was_made_anew),
		T(a_handle_that_is_open_settles_nothing_of_a_life_that_was_fenced),
		T(a_handle_that_is_open_takes_nothing_for_a_life_that_was_fenced),
		T(a_handle_that_is_open_follows_a_mailbox_that_was_put_in_the_place_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
