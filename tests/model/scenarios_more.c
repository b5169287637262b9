/* SPDX-License-Identifier: MIT */
/* scenarios_more.c - operations on mail that the campaign of kills has not, or checks less strictly: with power cuts
 * what was acknowledged must hold. */
#include "more.h"

#include "base/clock.h"
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define HOUR_MS (3600 * 1000)

struct mr_self
more_self(struct mr_room *room, const char *agent)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	if (mr_self_named(room, agent, &self, &err) != MR_OK)
		memset(&self, 0, sizeof(self));
	return self;
}

/* ---- Where a message is ---- */

struct finding_places {
	const char *id;
	struct places p;
};

static bool
note_place(void *ctx, const struct mr_message *msg)
{
	struct finding_places *f = ctx;

	if ((f->id && strcmp(f->id, msg->id) != 0) || strcmp(msg->subject, HISTORY) == 0)
		return true;
	f->p.inbox += msg->folder == MR_INBOX;
	f->p.unread += msg->folder == MR_INBOX && (msg->flags & MR_SEEN) == 0;
	f->p.held += msg->folder == MR_HELD;
	f->p.archive += msg->folder == MR_ARCHIVE;
	f->p.pinned += (msg->flags & MR_PINNED) != 0;
	f->p.all++;
	if (f->id && msg->body && (msg->body_len != strlen(BODY) || memcmp(msg->body, BODY, strlen(BODY)) != 0))
		f->p.torn++;
	return true;
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct finding_places *f = ctx;

	print_message("# %s: %s\n", path, err->message);
	f->p.torn++;
}

static bool
note_dead(void *ctx, const char *queue, const struct mr_message *msg)
{
	struct finding_places *f = ctx;

	(void)queue;
	if (f->id && strcmp(f->id, msg->id) != 0)
		return true;
	f->p.dead++;
	f->p.all++;
	return true;
}

struct places
more_places(struct mr_room *room, const char *agent, const char *id)
{
	struct finding_places f = { .id = id };
	struct mr_error err = { 0 };
	struct mr_scan scan = { .bodies = true, .trouble = note_trouble };

	scan.filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE;
	enum mr_rc rc = mr_scan(room, agent, &scan, note_place, &f, &err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		fail_msg("scan %s: %s", agent, err.message);
	if (mr_dead_each(room, 0, note_dead, &f, NULL, &err) != MR_OK)
		fail_msg("dead letters: %s", err.message);
	assert_int_equal(f.p.torn, 0);
	return f.p;
}

/* ---- Three messages for bob, one of them perhaps in his hands ---- */

void
setup_three(struct world *w)
{
	static const char *const three[] = { "alice", "bob", "carol", NULL };

	world_new(w, three);
	struct mr_room *room = world_open(w, true);
	for (size_t i = 0; i < WORK; i++)
		world_send(room, "alice", "bob", w->ids[i]);
	mr_room_close(room);
}

static void
setup_held(struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };

	setup_three(w);
	struct mr_room *room = world_open(w, true);
	struct mr_self self = more_self(room, "bob");
	assert_int_equal(mr_recv(room, &self, NULL, HOUR_MS, &claim, &msg, &err), MR_OK);
	memcpy(w->token, claim.token, sizeof(claim.token));
	memcpy(w->ids[0], msg.id, sizeof(msg.id));
	mr_message_done(&msg);
	mr_room_close(room);
}

static enum mr_rc
change_all(struct world *w, bool archive)
{
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);
	enum mr_rc rc = MR_OK;

	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "bob");
	for (unsigned i = 0; rc == MR_OK && i < WORK; i++)
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
	return change_all(w, false);
}

static enum mr_rc
run_archive(struct world *w, int tell)
{
	(void)tell;
	return change_all(w, true);
}

static void
check_marked(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.inbox, 1);
		if (w->accepted)
			assert_int_equal(p.unread, 0);
	}
	mr_room_close(room);
}

/* The first is marked, which makes both folders anew with the others in them; then mail comes into the new one. */
static enum mr_rc
run_renew(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);
	char id[MR_ID_LEN + 1];

	(void)tell;
	if (room == NULL || setenv("MAILROOM_TEST_RENEW", "1", 1) != 0)
		return MR_IO;
	struct mr_self self = more_self(room, "bob");
	enum mr_rc rc = mr_mark(room, &self, w->ids[0], MR_SEEN, 0, &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	if (rc == MR_OK)
		world_send(room, "alice", "bob", id);
	mr_room_close(room);
	return rc;
}

static void
check_renewed(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.inbox, 1);
		if (w->accepted)
			assert_int_equal(p.unread, i > 0);
	}
	if (w->accepted)
		assert_int_equal(more_places(room, "bob", NULL).inbox, WORK + 1);
	mr_room_close(room);
}

static void
check_archived(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.inbox + p.archive, 1);
		if (w->accepted)
			assert_int_equal(p.archive, 1);
	}
	mr_room_close(room);
}

#ifdef MR_ZLIB
/* ---- archive --pack and --unpack: of each message, always, the file or its place in the pack ---- */

#define LATER_MS ((int64_t)100 * 24 * HOUR_MS)

static void
setup_old(struct world *w)
{
	setup_three(w);
	assert_int_equal(change_all(w, false), MR_OK);
	assert_int_equal(change_all(w, true), MR_OK);
}

static enum mr_rc
change_pack(const struct world *w, bool unpack)
{
	struct mr_error err = { 0 };
	struct mr_packed packed = { 0 };
	char month[RFC3339_LEN + 1];

	/* Later: ids of one process only grow, so the mail cannot be sent earlier. */
	clock_shift_ms(LATER_MS);
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "bob");

	time_rfc3339(id_time_ms(w->ids[0]), month);
	month[7] = '\0';
	enum mr_rc rc = mr_pack(room, &self, month, unpack, &packed, &err);

	mr_room_close(room);
	clock_shift_ms(0);
	return rc;
}

static enum mr_rc
run_pack(struct world *w, int tell)
{
	(void)tell;
	return change_pack(w, false);
}

static void
setup_packed(struct world *w)
{
	setup_old(w);
	assert_int_equal(change_pack(w, false), MR_OK);
}

static enum mr_rc
run_unpack(struct world *w, int tell)
{
	(void)tell;
	return change_pack(w, true);
}

/* A pack, and one more file of that month: the new pack replaces the old one. */
static void
setup_packed_more(struct world *w)
{
	struct mr_error err = { 0 };

	setup_packed(w);
	struct mr_room *room = world_open(w, true);
	struct mr_self self = more_self(room, "bob");

	world_send(room, "alice", "bob", w->ids[2]);
	assert_int_equal(mr_mark(room, &self, w->ids[2], MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(mr_archive(room, &self, w->ids[2], &err), MR_OK);
	assert_int_equal(mr_flush(room, &err), MR_OK);
	mr_room_close(room);
}

static void
check_packed(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct places p = more_places(room, "bob", w->ids[i]);
		assert_int_equal(p.all, 1);
		assert_int_equal(p.archive, 1);
	}
	mr_room_close(room);
}
#endif

/* ---- reply ---- */

static enum mr_rc
run_reply(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .body = BODY, .body_len = strlen(BODY) };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "bob");
	enum mr_rc rc = mr_reply(room, &self, w->ids[0], &draft, false, &receipt, &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static void
check_replied(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	struct census c = world_count(room, "alice", NULL);
	assert_int_equal(c.torn, 0);
	assert_true(c.copies <= 1);
	if (w->accepted)
		assert_int_equal(c.copies, 1);
	for (unsigned i = 0; i < WORK; i++)
		assert_int_equal(more_places(room, "bob", w->ids[i]).all, 1);
	mr_room_close(room);
}

/* ---- release, fail, extend ---- */

enum ending { RELEASE, FAIL, EXTEND };

static enum mr_rc
end_claim(struct world *w, enum ending how)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	char id[MR_ID_LEN + 1];
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = more_self(room, "bob");
	enum mr_rc rc = how == RELEASE ? mr_claim_release(room, &self, w->token, NULL, id, &err)
			: how == FAIL  ? mr_claim_fail(room, &self, w->token, "no such file", id, &err)
				       : mr_claim_extend(room, &self, w->token, 2 * HOUR_MS, &claim, &err);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_release(struct world *w, int tell)
{
	(void)tell;
	return end_claim(w, RELEASE);
}

static enum mr_rc
run_fail(struct world *w, int tell)
{
	(void)tell;
	return end_claim(w, FAIL);
}

static enum mr_rc
run_extend(struct world *w, int tell)
{
	(void)tell;
	return end_claim(w, EXTEND);
}

static struct places
check_others(struct world *w, struct mr_room *room)
{
	assert_non_null(room);
	for (unsigned i = 1; i < WORK; i++) {
		struct places other = more_places(room, "bob", w->ids[i]);
		assert_int_equal(other.all, 1);
		assert_int_equal(other.unread, 1);
	}
	struct places p = more_places(room, "bob", w->ids[0]);
	assert_int_equal(p.all, 1);
	return p;
}

static void
check_released(struct world *w)
{
	struct mr_room *room = world_open(w, true);
	struct places p = check_others(w, room);

	assert_int_equal(p.unread + p.held, 1);
	if (w->accepted)
		assert_int_equal(p.unread, 1);
	mr_room_close(room);
}

/* The sender hears of it before the work is dead; a bounce too many is better than silence. */
static void
check_failed(struct world *w)
{
	struct mr_room *room = world_open(w, true);
	struct places p = check_others(w, room);
	struct places bounce = more_places(room, "alice", NULL);
	size_t bounces = bounce.all - bounce.dead;

	assert_int_equal(p.dead + p.held, 1);
	assert_true(bounces <= 1);
	if (p.dead)
		assert_int_equal(bounces, 1);
	if (w->accepted)
		assert_int_equal(p.dead, 1);
	mr_room_close(room);
}

static void
check_extended(struct world *w)
{
	struct mr_room *room = world_open(w, true);
	struct places p = check_others(w, room);

	assert_int_equal(p.held, 1);
	mr_room_close(room);
}

const struct scenario more_scenarios[] = {
	{ "mark", setup_three, run_mark, check_marked, 5, 0 },
	{ "renew a folder", setup_three, run_renew, check_renewed, 20, 0 },
	{ "archive", setup_three, run_archive, check_archived, 5, 0 },
	{ "reply", setup_three, run_reply, check_replied, 5, 0 },
	{ "release", setup_held, run_release, check_released, 3, 0 },
	{ "fail", setup_held, run_fail, check_failed, 5, 0 },
	{ "extend", setup_held, run_extend, check_extended, 3, 0 },
#ifdef MR_ZLIB
	{ "archive --pack", setup_old, run_pack, check_packed, 5, 0 },
	{ "archive --pack again", setup_packed_more, run_pack, check_packed, 5, 0 },
	{ "archive --unpack", setup_packed, run_unpack, check_packed, 5, 0 },
#endif
};
const size_t more_scenarios_n = sizeof(more_scenarios) / sizeof(more_scenarios[0]);
