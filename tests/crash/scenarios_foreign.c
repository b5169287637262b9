/* SPDX-License-Identifier: MIT */
/*
 * Rooms of other systems: sending, marking and archiving, with mail of theirs in the mailbox. Whatever happened, their
 * bytes are as they were, ours is there once or not at all, and the next send works.
 */
#include "foreign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- Sending, marking, archiving ---- */

static enum mr_rc
run_send(struct world *w, int tell)
{
	(void)tell;
	return foreign_send(w, NULL);
}

static enum mr_rc
change(struct world *w, bool archive)
{
	struct mr_error err = { 0 };
	struct mr_room *room = foreign_open(w, w->foreign->reader);
	enum mr_rc rc = MR_OK;

	if (room == NULL)
		return MR_IO;
	struct mr_self self = foreign_self(room, "bob");
	for (size_t i = 0; rc == MR_OK && i < OURS; i++)
		rc = archive ? mr_archive(room, &self, w->ids[i], &err)
			     : mr_mark(room, &self, w->ids[i], MR_SEEN, 0, &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_mark(struct world *w, int tell)
{
	(void)tell;
	return change(w, false);
}

static enum mr_rc
run_archive(struct world *w, int tell)
{
	(void)tell;
	return change(w, true);
}

/* In a workspace an answer takes the message out of the inbox first: one that was never sent must not have cost it. */
static enum mr_rc
run_reply(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = foreign_open(w, w->foreign->reader);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = foreign_self(room, "bob");
	struct mr_draft draft = { .body = TEXT, .body_len = strlen(TEXT) };
	enum mr_rc rc = mr_reply(room, &self, w->ids[0], &draft, false, &receipt, &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

/* ---- What is there afterwards ---- */

struct counting {
	struct census all, ours; /* ours: with one of the ids that were there before */
	const struct world *w;
};

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;
	size_t len = msg->body_len;
	bool known = false;

	for (size_t i = 0; i < OURS; i++)
		known |= strcmp(c->w->ids[i], msg->id) == 0;
	while (len > 0 && msg->body[len - 1] == '\n')
		len--;
	bool unread = (msg->flags & MR_SEEN) == 0 && msg->folder == MR_INBOX;
	c->all.copies++;
	c->all.torn += len != strlen(TEXT) || memcmp(msg->body, TEXT, len) != 0;
	c->ours.copies += known;
	c->ours.unread += known && unread;
	return true;
}

static void
count_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct counting *c = ctx;

	print_message("# %s: %s\n", path, err->message);
	c->all.torn++;
}

static struct counting
count_in(const struct world *w, const char *where, const char *agent)
{
	struct mr_error err = { 0 };
	struct counting c = { .w = w };
	struct mr_scan scan = { .bodies = true, .trouble = count_trouble };
	struct mr_room *room = foreign_open(w, where);

	assert_non_null(room);
	foreign_settle(w);
	struct mr_self self = foreign_self(room, agent);
	scan.filter.folders = MR_INBOX | MR_ARCHIVE;
	if (mr_scan(room, self.agent, &scan, count_one, &c, &err) != MR_OK)
		fail_msg("scan: %s", err.message);
	mr_room_close(room);
	return c;
}

static struct counting
count(const struct world *w)
{
	return count_in(w, w->foreign->reader, "bob");
}

/* `more` of ours may have come, each message is there once; the next send works. */
static struct counting
check_whole(struct world *w, size_t more)
{
	struct counting c = count(w);

	assert_int_equal(c.all.torn, 0);
	assert_int_equal(c.ours.copies, OURS);
	assert_in_range(c.all.copies, OURS + 1, OURS + 1 + more);
	foreign_check_theirs(w);
	foreign_let_time_pass(w);
	char id[MR_ID_LEN + 1];
	(void)foreign_send(w, id);
	struct counting after = count(w);
	assert_int_equal(after.all.copies, c.all.copies + 1);
	assert_int_equal(after.all.torn, 0);
	foreign_check_theirs(w);
	return c;
}

static void
check_foreign_sent(struct world *w)
{
	struct counting c = check_whole(w, 1);

	if (w->accepted || w->doubted)
		assert_int_equal(c.all.copies, OURS + 2);
	if (w->refused)
		assert_int_equal(c.all.copies, OURS + 1);
	assert_int_equal(c.ours.unread, OURS);
}

static void
check_foreign_changed(struct world *w)
{
	struct counting c = check_whole(w, 0);

	if (w->accepted)
		assert_int_equal(c.ours.unread, 0);
}

static void
check_replied(struct world *w)
{
	struct counting c = check_whole(w, 0), answers = count_in(w, w->foreign->where, "alice");

	assert_int_equal(answers.all.torn, 0);
	assert_in_range(answers.all.copies, 0, 1);
	if (w->accepted || w->doubted)
		assert_int_equal(answers.all.copies, 1);
	if (w->accepted)
		assert_int_equal(c.ours.unread, OURS - 1);
	if (w->refused) {
		assert_int_equal(answers.all.copies, 0);
		assert_int_equal(run_reply(w, -1), MR_OK);
	}
}

const struct scenario foreign_scenarios[] = {
	{ "teams send", setup_teams, run_send, check_foreign_sent, 8, 0 },
	{ "teams mark", setup_teams, run_mark, check_foreign_changed, 8, 0 },
	{ "chipset send", setup_chipset, run_send, check_foreign_sent, 6, 0 },
	{ "chipset mark", setup_chipset, run_mark, check_foreign_changed, 6, 0 },
	{ "chipset archive", setup_chipset, run_archive, check_foreign_changed, 6, 0 },
	{ "handoff send", setup_handoff, run_send, check_foreign_sent, 6, 0 },
	{ "handoff archive", setup_handoff, run_archive, check_foreign_changed, 4, 0 },
	{ "workspace send", setup_workspace, run_send, check_foreign_sent, 6, 0 },
	{ "workspace reply", setup_workspace, run_reply, check_replied, 10, 0 },
	{ "workspace mark", setup_workspace, run_mark, check_foreign_changed, 4, 0 },
};
const size_t foreign_scenarios_n = sizeof(foreign_scenarios) / sizeof(foreign_scenarios[0]);
