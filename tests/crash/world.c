/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

void
tell_char(int fd, char c)
{
	if (write(fd, &c, 1) != 1)
		_exit(9);
}

/* ---- The set-up ---- */

static struct world_options set;
static char *sized_body;

void
world_options_set(const struct world_options *options)
{
	set = *options;
	free(sized_body);
	sized_body = NULL;
	if (!set.sized)
		return;
	sized_body = malloc(set.body_size + 1);
	assert_non_null(sized_body);
	for (size_t i = 0; i < set.body_size; i++) /* every sector differs from every other */
		sized_body[i] = (char)(i % 64 == 63 || i + 1 == set.body_size ? '\n' : 'a' + (i / 7 + i / 512) % 26);
	sized_body[set.body_size] = '\0';
}

const char *
world_body(void)
{
	return set.sized ? sized_body : "line one\nline two: the end of the message is here\n";
}

static const char *
scratch_parent(void)
{
	return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void
world_folder(struct world *w)
{
	snprintf(w->dir, sizeof(w->dir), "%s/mailroom-crash.XXXXXX", scratch_parent());
	assert_non_null(mkdtemp(w->dir));
}

/* One message that was read and one that was archived, with a sender's copy of each. */
static void
give_history(struct mr_room *room, const char *from, const char *to)
{
	const char *list[] = { to, NULL };
	struct mr_draft draft = { .to = list, .subject = HISTORY, .body = "long ago\n", .body_len = 9 };
	struct mr_error err = { 0 };
	struct mr_self sender = { 0 }, self = { 0 };
	enum mr_rc rc = mr_self_named(room, from, &sender, &err);

	if (rc == MR_OK)
		rc = mr_self_named(room, to, &self, &err);
	for (int i = 0; rc == MR_OK && i < 2; i++) {
		struct mr_receipt receipt = { 0 };

		rc = mr_send(room, &sender, &draft, &receipt, &err);
		if (rc == MR_OK)
			rc = i == 0 ? mr_mark(room, &self, receipt.id, MR_SEEN, 0, &err)
				    : mr_archive(room, &self, receipt.id, &err);
		mr_receipt_done(&receipt);
	}
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	if (rc != MR_OK)
		fail_msg("history: %s", err.message);
}

const char *
world_sync(void)
{
	return set.sync ? set.sync : "full";
}

void
world_new(struct world *w, const char *const *agents)
{
	struct mr_error err = { 0 };
	struct mr_env nobody = { 0 };
	char *path = NULL;

	const char *first = agents[0];

	world_folder(w);
	if (mr_room_init(w->dir, w->dir, &(struct mr_init_options){ .name = "town", .sync = world_sync() }, &path,
		&err) != MR_OK)
		fail_msg("init: %s", err.message);
	free(path);
	struct mr_room *room = world_open(w, true);
	for (; *agents != NULL; agents++) {
		struct mr_registration reg = { 0 };
		if (mr_register(room, *agents, &nobody, NULL, &reg, &err) != MR_OK)
			fail_msg("register %s: %s", *agents, err.message);
		if (set.history)
			give_history(room, first, *agents);
	}
	mr_room_close(room);
}

struct mr_room *
world_open(const struct world *w, bool recover)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char path[96], config[96];
	struct mr_room_options options = { .no_recover = !recover, .config_dir = config };

	snprintf(config, sizeof(config), "%s/config", w->dir);
	snprintf(path, sizeof(path), "%s/.mailroom", w->dir);
	if (mr_room_open(path, &options, &room, &err) != MR_OK)
		return NULL;
	return room;
}

void
world_send(struct mr_room *room, const char *from, const char *to, char ret_id[MR_ID_LEN + 1])
{
	struct mr_error err = { 0 };
	struct mr_self self = { 0 };
	struct mr_receipt receipt = { 0 };
	const char *list[] = { to, NULL };
	struct mr_draft draft = { .to = list, .body = BODY, .body_len = strlen(BODY) };

	if (mr_self_named(room, from, &self, &err) != MR_OK || mr_send(room, &self, &draft, &receipt, &err) != MR_OK)
		fail_msg("send: %s", err.message);
	memcpy(ret_id, receipt.id, sizeof(receipt.id));
	mr_receipt_done(&receipt);
}

struct counting {
	struct census census;
	const char *id;
};

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;

	if ((c->id != NULL && strcmp(c->id, msg->id) != 0) || strcmp(msg->subject, HISTORY) == 0)
		return true;
	c->census.copies++;
	c->census.seen += (msg->flags & MR_SEEN) != 0;
	c->census.unread += (msg->flags & MR_SEEN) == 0 && msg->folder == MR_INBOX;
	c->census.acked += (msg->flags & MR_ACKED) != 0;
	c->census.held += msg->folder == MR_HELD;
	if (msg->body_len != strlen(BODY) || memcmp(msg->body, BODY, msg->body_len) != 0)
		c->census.torn++;
	return true;
}

static void
count_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct counting *c = ctx;

	print_message("# %s: %s\n", path, err->message);
	c->census.torn++;
}

struct census
world_count(struct mr_room *room, const char *agent, const char *id)
{
	struct mr_error err = { 0 };
	struct counting c = { .id = id };
	struct mr_scan scan = { .bodies = true, .trouble = count_trouble };

	scan.filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE;
	if (mr_scan(room, agent, &scan, count_one, &c, &err) != MR_OK)
		fail_msg("scan %s: %s", agent, err.message);
	return c.census;
}
