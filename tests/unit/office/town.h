/* SPDX-License-Identifier: MIT */
/*
 * town.h - a small room with alice, bob and carol, for the tests of the post office. Every case runs on a
 * room in memory and on a native one: *state is the kind.
 */
#ifndef TESTS_OFFICE_TOWN_H
#define TESTS_OFFICE_TOWN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "office/office.h"
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIND_MEM "mem"
#define KIND_MAILDIR "maildir"
#define ON_BOTH(test)                                                                                                  \
	{ #test " (mem)", test, NULL, NULL, (void *)(uintptr_t)KIND_MEM },                                             \
	{                                                                                                              \
#test " (maildir)", test, NULL, NULL, (void *)(uintptr_t)KIND_MAILDIR                                  \
	}
#define ON_MAILDIR(test)                                                                                               \
	{                                                                                                              \
#test " (maildir)", test, NULL, NULL, (void *)(uintptr_t)KIND_MAILDIR                                  \
	}

#define assert_ok(call) town_assert_rc((call), MR_OK, &err, #call, __FILE__, __LINE__)
#define assert_rc(call, want) town_assert_rc((call), (want), &err, #call, __FILE__, __LINE__)

struct town {
	struct mr_room *room;
	char dir[64];    /* "" for a room in memory */
	char config[64]; /* the user's configuration */
	struct mr_self alice, bob, carol, operator;
};

static inline void
town_assert_rc(enum mr_rc rc, enum mr_rc want, const struct mr_error *err, const char *call, const char *file, int line)
{
	if (rc == want)
		return;
	print_error("%s\n  gave %s (wanted %s): %s\n", call, mr_rc_word(rc), mr_rc_word(want), err->message);
	_fail(file, line);
}

static inline void
town_register(struct town *t, const char *name, bool takeover, struct mr_self *ret)
{
	struct mr_env env = { 0 };
	struct mr_register_options options = { .takeover = takeover };
	struct mr_registration got = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_register(t->room, name, &env, &options, &got, &err));
	*ret = (struct mr_self){ .life = got.life };
	(void)snprintf(ret->agent, sizeof(ret->agent), "%s", name);
}

static inline void
town_open_room(struct town *t, const char *kind)
{
	struct mr_error err = { 0 };

	(void)snprintf(t->config, sizeof(t->config), "/tmp/mailroom-config-XXXXXX");
	assert_non_null(mkdtemp(t->config));
	struct mr_room_options open = { .config_dir = t->config };

	if (strcmp(kind, KIND_MEM) == 0) {
		struct mr_agent operator= {
			.name = OPERATOR, .worktree = "", .session = "", .host = "", .role = "", .wake = ""
		};

		assert_ok(mr_room_open("mem:town", &open, &t->room, &err));
		assert_ok(t->room->driver->add_agent(t->room, &operator, & err));
		return;
	}
	struct mr_init_options options = { .name = "town", .sync = "none" };
	char *path = NULL;

	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/mailroom-office-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	assert_ok(mr_room_init(t->dir, t->dir, &options, &path, &err));
	assert_ok(mr_room_open(path, &open, &t->room, &err));
	free(path);
}

static inline struct town
town_new(void **state)
{
	struct town t = { 0 };

	town_open_room(&t, *state);
	town_register(&t, "alice", false, &t.alice);
	town_register(&t, "bob", false, &t.bob);
	town_register(&t, "carol", false, &t.carol);
	(void)snprintf(t.operator.agent, sizeof(t.operator.agent), OPERATOR);
	return t;
}

static inline int
town_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
town_done(struct town *t)
{
	mr_room_close(t->room);
	(void)nftw(t->config, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (t->dir[0])
		(void)nftw(t->dir, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- Short ways to do what nearly every test does ---- */

#define TO(...) ((const char *[]){ __VA_ARGS__, NULL })

static inline struct mr_draft
draft_to(const char *const *to, const char *body)
{
	return (struct mr_draft){ .to = to, .body = body, .body_len = strlen(body) };
}

static inline void
town_send_draft(struct town *t, const struct mr_self *self, const struct mr_draft *draft, char ret_id[MR_ID_LEN + 1])
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };

	assert_ok(mr_send(t->room, self, draft, &receipt, &err));
	if (ret_id)
		memcpy(ret_id, receipt.id, MR_ID_LEN + 1);
	mr_receipt_done(&receipt);
}

static inline void
town_send(struct town *t, const struct mr_self *self, const char *to, const char *body, char ret_id[MR_ID_LEN + 1])
{
	struct mr_draft draft = draft_to(TO(to), body);

	town_send_draft(t, self, &draft, ret_id);
}

struct seen { /* what a scan showed */
	size_t n;
	char ids[64][MR_ID_LEN + 1];
	char subjects[64][80];
	unsigned flags[64];
	unsigned attempts[64];
};

static inline bool
town_note(void *ctx, const struct mr_message *msg)
{
	struct seen *seen = ctx;

	if (seen->n < 64) {
		memcpy(seen->ids[seen->n], msg->id, MR_ID_LEN + 1);
		(void)snprintf(seen->subjects[seen->n], 80, "%s", msg->subject);
		seen->flags[seen->n] = msg->flags;
		seen->attempts[seen->n] = msg->attempt;
	}
	seen->n++;
	return true;
}

static inline struct seen
town_scan(struct town *t, const char *agent, const struct mr_scan *scan)
{
	struct seen seen = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_scan(t->room, agent, scan, town_note, &seen, &err));
	return seen;
}

static inline struct seen
town_unread(struct town *t, const char *agent)
{
	return town_scan(t, agent, &(struct mr_scan){ .filter = { .unread = true } });
}

static inline size_t
town_count(struct town *t, const char *agent, unsigned folders)
{
	return town_scan(t, agent, &(struct mr_scan){ .filter = { .folders = folders } }).n;
}

#endif
