/* SPDX-License-Identifier: MIT */
/*
 * Carrying between rooms: out (a send to carol@blue, which carries at once) and in (an answer of hers). The next
 * command carries what is left: then it has arrived once, whole, if it was accepted, and never twice.
 */
#include "crash.h"
#include "room/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

/* ---- The other room ---- */

static void
spec_of(const struct world *w, const char *kind, char ret[160])
{
	snprintf(ret, 160, "%s:%s/blue%s", kind, w->dir, strcmp(kind, "maildir") == 0 ? "/.mailroom" : "");
}

static struct mr_room *
open_blue(const struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char spec[160];

	spec_of(w, w->kind, spec);
	if (mr_room_open(spec, NULL, &room, &err) != MR_OK)
		fail_msg("open: %s", err.message);
	return room;
}

static void
make_blue(struct world *w, const char *kind)
{
	struct mr_error err = { 0 };
	struct mr_agent carol = { .name = "carol", .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	char dir[96], *path = NULL;

	w->kind = kind;
	snprintf(dir, sizeof(dir), "%s/blue", w->dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	if (strcmp(kind, "maildir") == 0 &&
	    mr_room_init(dir, dir, &(struct mr_init_options){ .name = "blue", .sync = world_sync() }, &path, &err) !=
		MR_OK)
		fail_msg("init: %s", err.message);
	free(path);
	struct mr_room *blue = open_blue(w);
	enum mr_rc rc = blue->driver->add_agent(blue, &carol, &err);
	if (rc != MR_OK)
		fail_msg("carol: %s", err.message);
	mr_room_close(blue);
}

static void
setup_link(struct world *w, const char *kind)
{
	static const char *const pair[] = { "alice", "bob", NULL };
	struct mr_error err = { 0 };
	struct mr_self self = { .agent = "alice", .life = 1 };
	char spec[160];

	world_new(w, pair);
	make_blue(w, kind);
	struct mr_room *room = world_open(w, true);
	spec_of(w, kind, spec);
	if (mr_link_create(room, &self, "blue", spec, false, &err) != MR_OK)
		fail_msg("link: %s", err.message);
	mr_room_close(room);
}

/* ---- Counting ---- */

struct copies {
	size_t n, torn;
};

static bool
count_copy(void *ctx, const struct mr_message *msg)
{
	struct copies *copies = ctx;

	if (msg->subject && strcmp(msg->subject, HISTORY) == 0)
		return true;
	copies->n++;
	/* Formats differ in the last line break, and state around the text what they have no field for. */
	copies->torn += memmem(msg->body, msg->body_len, BODY, strlen(BODY) - 1) == NULL;
	return true;
}

static size_t
count_in(struct mr_room *room, const char *agent)
{
	struct copies copies = { 0 };
	struct mr_error err = { 0 };
	struct scan_request want = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE, .depth = SCAN_BODIES };
	enum mr_rc rc = room->driver->scan(room, agent, &want, count_copy, &copies, &err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		fail_msg("scan: %s", err.message);
	assert_int_equal(copies.torn, 0);
	return copies.n;
}

static void
print_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	(void)ctx;
	print_message("# %s: %s\n", link, err->message);
}

static struct mr_carried
carry(struct mr_room *room)
{
	struct mr_carried done = { 0 };
	struct mr_error err = { 0 };

	if (mr_carry(room, "blue", MR_CARRY_IN | MR_CARRY_OUT, print_trouble, NULL, &done, &err) != MR_OK)
		fail_msg("carry: %s", err.message);
	assert_int_equal(done.waiting + done.failed + done.vanished, 0);
	return done;
}

static bool
fail_record(void *ctx, const char *name)
{
	(void)ctx;
	fail_msg("record '%s' is left", name);
	return false;
}

static void
check_nothing_left(struct mr_room *room)
{
	struct mr_error err = { 0 };

	assert_int_equal(room->driver->record_each(room, "carrying", "blue", fail_record, NULL, &err), MR_OK);
}

/* ---- Out ---- */

static enum mr_rc
run_out(struct world *w, int tell)
{
	static const char *const to[] = { "carol@blue", NULL };
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_self self = { .agent = "alice", .life = 1 };
	struct mr_draft draft = { .to = to, .subject = "s", .body = BODY, .body_len = strlen(BODY) };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static void
check_out(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	(void)carry(room);
	struct mr_carried again = carry(room);
	assert_int_equal(again.out + again.in, 0);
	struct mr_room *blue = open_blue(w);
	size_t n = count_in(blue, "carol");
	assert_true(n <= 1);
	if (w->accepted || w->doubted)
		assert_int_equal(n, 1);
	if (w->refused)
		assert_int_equal(n, 0);
	mr_room_close(blue);
	assert_int_equal(count_in(room, "alice"), 0); /* nothing bounced */
	check_nothing_left(room);
	mr_room_close(room);
}

/* ---- In ---- */

static void
setup_in(struct world *w, const char *kind)
{
	struct mr_error err = { 0 };
	char proxy[MR_ADDRESS_MAX + 1];
	char name[] = "alice", *names[] = { name };
	struct mr_names to = { names, 1 };
	struct delivered got = { 0 };
	struct mr_message msg = { .from = "carol",
		.to = to,
		.subject = "s",
		.date_ms = 1790000000000,
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = strlen(BODY),
		.path = "" };

	setup_link(w, kind);
	struct mr_room *room = world_open(w, true);
	if (mr_link_introduce(room, "blue", "alice", NULL, false, proxy, &err) != MR_OK)
		fail_msg("introduce: %s", err.message);
	mr_room_close(room);
	struct mr_room *blue = open_blue(w);
	snprintf(msg.id, sizeof(msg.id), "01m7f5evarspd2y733heram8nn");
	if (blue->driver->deliver(blue,
		&(struct delivery){ .msg = &msg, .to = &to, .sender = "carol", .keep = w->kind[0] == 'w' }, &got,
		&err) != MR_OK)
		fail_msg("deliver: %s", err.message);
	mr_room_close(blue);
}

static enum mr_rc
run_in(struct world *w, int tell)
{
	struct mr_carried done = { 0 };
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	enum mr_rc rc = mr_carry(room, "blue", MR_CARRY_IN, NULL, NULL, &done, &err);
	mr_room_close(room);
	return rc;
}

static void
check_in(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	(void)carry(room);
	struct mr_carried again = carry(room);
	assert_int_equal(again.out + again.in, 0);
	assert_int_equal(count_in(room, "alice"), 1);
	check_nothing_left(room);
	mr_room_close(room);
}

/* ---- Each kind of room ---- */

#define KIND(kind)                                                                                                     \
	static void setup_out_##kind(struct world *w)                                                                  \
	{                                                                                                              \
		setup_link(w, #kind);                                                                                  \
	}                                                                                                              \
	static void setup_in_##kind(struct world *w)                                                                   \
	{                                                                                                              \
		setup_in(w, #kind);                                                                                    \
	}
KIND(maildir)
KIND(teams)
KIND(chipset)
KIND(handoff)
KIND(workspace)

/* Each kind costs a second or two: in the short form those that carry in the same way as another take turns. */
const struct scenario carry_scenarios[] = {
	{ "carry to a maildir", setup_out_maildir, run_out, check_out, 60, 3 },
	{ "carry from a maildir", setup_in_maildir, run_in, check_in, 25, 2 },
	{ "carry to a team", setup_out_teams, run_out, check_out, 60, 4 },
	{ "carry from a team", setup_in_teams, run_in, check_in, 25, 4 },
	{ "carry to chipset", setup_out_chipset, run_out, check_out, 60, 2 },
	{ "carry from chipset", setup_in_chipset, run_in, check_in, 25, 3 },
	{ "carry to handoff", setup_out_handoff, run_out, check_out, 60, 5 },
	{ "carry from handoff", setup_in_handoff, run_in, check_in, 25, 5 },
	{ "carry to a workspace", setup_out_workspace, run_out, check_out, 60, 5 },
	{ "carry from a workspace", setup_in_workspace, run_in, check_in, 25, 7 },
};
const size_t carry_scenarios_n = sizeof(carry_scenarios) / sizeof(carry_scenarios[0]);
