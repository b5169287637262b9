/* SPDX-License-Identifier: MIT */
/* town.h - a chipset room of one case, and short words for what every case does. */
#ifndef TESTS_UNIT_ROOMS_TOWN_H
#define TESTS_UNIT_ROOMS_TOWN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "room/room.h"
#include "rooms/chipset/chipset.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(want, call)                                                                                             \
	do {                                                                                                           \
		struct mr_error err = { 0 };                                                                           \
		enum mr_rc got_ = (call);                                                                              \
		if (got_ != (want))                                                                                    \
			fail_msg("%s:%d: %s gave %s: %s", __FILE__, __LINE__, #call, mr_rc_word(got_), err.message);   \
	} while (0)

struct town {
	char path[128];
	struct mr_room *room;
	const struct room_driver *ops;
};

static inline struct mr_room *
open_room(const struct town *t)
{
	struct mr_room *room = NULL;
	char spec[160];

	(void)snprintf(spec, sizeof spec, "chipset:%s/state", t->path);
	EXPECT(MR_OK, room_open_spec(spec, NULL, &room, &err));
	return room;
}

static inline int
set_up(void **state)
{
	struct town *t = calloc(1, sizeof *t);
	const char *top = getenv("TMPDIR");

	assert_non_null(t);
	(void)snprintf(t->path, sizeof t->path, "%.80s/mr-chipset-XXXXXX", top ? top : "/tmp");
	assert_non_null(mkdtemp(t->path));
	t->room = open_room(t);
	t->ops = t->room->driver;
	*state = t;
	return 0;
}

static inline int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline int
tear_down(void **state)
{
	struct town *t = *state;

	clock_shift_ms(0);
	mr_room_close(t->room);
	(void)nftw(t->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static inline const char *
in(const struct town *t, const char *rest)
{
	static char path[4][640];
	static unsigned at;

	at = (at + 1) % 4;
	(void)snprintf(path[at], sizeof path[at], "%s/state/%s", t->path, rest);
	return path[at];
}

static inline void
put(const struct town *t, const char *rest, const char *text)
{
	FILE *f = fopen(in(t, rest), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline bool
has(const struct town *t, const char *rest)
{
	struct stat st;

	return lstat(in(t, rest), &st) == 0;
}

static inline size_t
files_in(const struct town *t, const char *rest)
{
	size_t n = 0;
	DIR *dir = opendir(in(t, rest));

	for (const struct dirent *e; dir && (e = readdir(dir));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (dir)
		(void)closedir(dir);
	return n;
}

/* ---- Short words ---- */

static inline struct mr_message
draft(const char *from, const char *body)
{
	return (struct mr_message){ .from = from,
		.subject = "hello",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.date_ms = clock_now_ms(),
		.body = body,
		.body_len = strlen(body) };
}

static inline enum mr_rc
deliver(struct mr_room *room, struct mr_message *msg, const char *to, struct delivery *what, struct delivered *ret,
    struct mr_error *err)
{
	char *names[] = { strdup(to) };
	struct mr_names list = { names, 1 };

	what->msg = msg;
	what->to = &list;
	what->sender = msg->from;
	enum mr_rc rc = room->driver->deliver(room, what, ret, err);

	if (rc == MR_OK)
		assert_true(id_valid(str_of(ret->id)));
	free(names[0]);
	return rc;
}

static inline struct delivered
send(const struct town *t, const char *from, const char *to, const char *body)
{
	struct mr_message msg = draft(from, body);
	struct delivery what = { 0 };
	struct delivered done = { 0 };

	EXPECT(MR_OK, deliver(t->room, &msg, to, &what, &done, &err));
	return done;
}

struct seen {
	char ids[16][MR_ID_LEN + 1];
	size_t n, unread, troubles;
};

static inline bool
see(void *ctx, const struct mr_message *msg)
{
	struct seen *s = ctx;

	if (s->n < 16)
		memcpy(s->ids[s->n], msg->id, sizeof msg->id);
	s->n++;
	s->unread += !(msg->flags & MR_SEEN);
	return true;
}

static inline void
trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct seen *s = ctx;

	assert_true(str_starts(str_of(path), "mail/"));
	assert_true(err->message[0] != '\0');
	s->troubles++;
}

static inline struct seen
scan(const struct town *t, const char *agent, unsigned folders)
{
	struct seen s = { 0 };
	struct scan_request want = { .folders = folders, .depth = SCAN_BODIES, .trouble = trouble, .trouble_ctx = &s };

	EXPECT(MR_OK, t->ops->scan(t->room, agent, &want, see, &s, &err));
	return s;
}

static inline pid_t
start(const struct town *t, void (*work)(struct town *child, int which), int which)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)alarm(60);
	struct town child = *t;

	child.room = open_room(t);
	work(&child, which);
	mr_room_close(child.room);
	_exit(0);
}

static inline void
join(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
