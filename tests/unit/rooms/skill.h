/* SPDX-License-Identifier: MIT */
/* skill.h - a root of the mailbox skill for one case, and short words for what every case does. */
#ifndef TESTS_UNIT_ROOMS_SKILL_H
#define TESTS_UNIT_ROOMS_SKILL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/sys.h"
#include "rooms/handoff/handoff.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct place {
	char folder[160];
	struct mr_room *room;
	const struct room_driver *ops;
};

static inline int
open_it(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	const char *tmp = getenv("TMPDIR");
	struct mr_error err = { 0 };
	char spec[200];

	assert_non_null(p);
	(void)snprintf(p->folder, sizeof p->folder, "%s/mailroom-handoff-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->folder));
	(void)snprintf(spec, sizeof spec, "handoff:%s/root", p->folder);
	assert_int_equal(room_open_spec(spec, NULL, &p->room, &err), MR_OK);
	p->ops = p->room->driver;
	*state = p;
	return 0;
}

static inline int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int
close_it(void **state)
{
	struct place *p = *state;

	mr_room_close(p->room);
	(void)nftw(p->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

/* ---- Short words ---- */

static inline const char *
path_of(const struct place *p, const char *below)
{
	static char path[600];

	(void)snprintf(path, sizeof path, "%s/root%s%s", p->folder, below[0] ? "/" : "", below);
	return path;
}

static inline void
put(const struct place *p, const char *name, const char *text)
{
	FILE *file = fopen(path_of(p, name), "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	(void)fclose(file);
}

static inline enum mr_rc
try_add(struct place *p, const char *name, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "codex", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return p->ops->add_agent(p->room, &agent, err);
}

static inline void
add(struct place *p, const char *name)
{
	struct mr_error err = { 0 };

	if (try_add(p, name, &err) != MR_OK)
		fail_msg("%s", err.message);
}

/* The id of an agent's mailbox. */
static inline const char *
id_of(struct place *p, const char *name)
{
	static char id[2][HANDOFF_ID_MAX + 1];
	static unsigned turn;
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	if (p->ops->find_agent(p->room, name, &agent, &err) != MR_OK)
		fail_msg("%s", err.message);
	turn ^= 1;
	(void)snprintf(id[turn], sizeof id[turn], "%s", agent.session);
	mr_agent_done(&agent);
	return id[turn];
}

struct sent {
	const char *from, *to, *subject, *body, *reply_to;
	bool keep, carried;
	int64_t date_ms;
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *ctx;
};

static inline enum mr_rc
try_send(struct place *p, struct sent s, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct mr_message msg = { .id = "01k9w3b7zq8m4c2v6t1x5n0prs",
		.from = s.from ? s.from : "alice",
		.subject = s.subject ? s.subject : "hello",
		.date_ms = s.date_ms,
		.type = "",
		.thread = "",
		.reply_to = s.reply_to ? s.reply_to : "",
		.replace_key = "",
		.path = "",
		.body = s.body ? s.body : "hi\n" };
	struct delivery what = { .msg = &msg,
		.to = &to,
		.sender = "",
		.keep = s.keep,
		.carried = s.carried,
		.staged = s.staged,
		.staged_ctx = s.ctx };

	msg.body_len = strlen(msg.body);
	assert_true(names_add(&to, str_of(s.to ? s.to : "bob")));
	return p->ops->deliver(p->room, &what, ret, err);
}

static inline struct delivered
send(struct place *p, struct sent s)
{
	struct delivered done = { 0 };
	struct mr_error err = { 0 };

	if (try_send(p, s, &done, &err) != MR_OK)
		fail_msg("%s", err.message);
	return done;
}

static inline struct mr_message
fetch(struct place *p, const char *agent, const char *id)
{
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	if (p->ops->fetch(p->room, agent, id, 0, SCAN_BODIES, &msg, &err) != MR_OK)
		fail_msg("%s", err.message);
	return msg;
}

struct seen {
	size_t n, troubles;
	char last[400];
};

static inline bool
count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	((struct seen *)ctx)->n++;
	return true;
}

static inline void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct seen *seen = ctx;

	seen->troubles++;
	(void)snprintf(seen->last, sizeof seen->last, "%s: %s", path, err->message);
}

static inline struct seen
look(struct place *p, const char *agent, unsigned folders)
{
	struct seen seen = { 0 };
	struct mr_error err = { 0 };
	struct scan_request want = {
		.folders = folders, .depth = SCAN_BODIES, .trouble = note_trouble, .trouble_ctx = &seen
	};

	if (p->ops->scan(p->room, agent, &want, count_one, &seen, &err) != MR_OK)
		fail_msg("%s", err.message);
	return seen;
}

#define BOTH (MR_INBOX | MR_ARCHIVE)

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_it, close_it)

#endif
