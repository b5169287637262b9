/* SPDX-License-Identifier: MIT */
/* yard.h - a folder with the workspaces "lead" and "tester" in it, and short words for what every case does. */
#ifndef TESTS_UNIT_ROOMS_YARD_H
#define TESTS_UNIT_ROOMS_YARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "support/sys_fault.h"
#include "rooms/workspace/workspace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
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

struct yard {
	char path[128];
	struct mr_room *room; /* the yard itself */
	const struct room_driver *ops;
};

static inline const char *
in_yard(const struct yard *y, const char *rest)
{
	static char path[8][600];
	static unsigned at;

	at = (at + 1) % 8;
	(void)snprintf(path[at], sizeof path[at], "%s/%s", y->path, rest);
	return path[at];
}

static inline struct mr_room *
open_at(const struct yard *y, const char *rest)
{
	struct mr_room *room = NULL;
	char spec[700];

	(void)snprintf(spec, sizeof spec, "workspace:%s", in_yard(y, rest));
	EXPECT(MR_OK, room_open_spec(spec, NULL, &room, &err));
	return room;
}

static inline void
add(struct yard *y, const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	EXPECT(MR_OK, y->ops->add_agent(y->room, &agent, &err));
}

static inline int
yard_up(void **state)
{
	struct yard *y = calloc(1, sizeof *y);
	const char *top = getenv("TMPDIR");
	char made[100];

	assert_non_null(y);
	/* Where syncing costs nothing, if there is such a place: a case makes many yards. */
	(void)snprintf(made, sizeof made, "%.60s/mr-yard-XXXXXX",
	    top                             ? top
	    : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
					    : "/tmp");
	assert_non_null(mkdtemp(made));
	assert_non_null(realpath(made, y->path));
	y->room = open_at(y, "");
	y->ops = y->room->driver;
	add(y, "lead");
	add(y, "tester");
	*state = y;
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
yard_down(void **state)
{
	struct yard *y = *state;

	sys_plan_set(NULL);
	mr_room_close(y->room);
	(void)nftw(y->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(y);
	return 0;
}

static inline bool
has(const struct yard *y, const char *rest)
{
	struct stat st;

	return lstat(in_yard(y, rest), &st) == 0;
}

static inline void
write_file(const struct yard *y, const char *rest, const char *text)
{
	FILE *f = fopen(in_yard(y, rest), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void
read_text(const struct yard *y, const char *rest, char *ret, size_t size)
{
	FILE *f = fopen(in_yard(y, rest), "r");

	assert_non_null(f);
	ret[fread(ret, 1, size - 1, f)] = '\0';
	(void)fclose(f);
}

/* Files in a folder; -1: no such folder. */
static inline int
count_files(const struct yard *y, const char *rest)
{
	DIR *d = opendir(in_yard(y, rest));
	int n = 0;

	if (!d)
		return -1;
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	(void)closedir(d);
	return n;
}

struct out { /* a message to be sent; zeroed: none of it */
	const char *from, *to, *body, *subject, *thread, *reply_to, *reply_path;
	bool carried;
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *staged_ctx;
};

static inline enum mr_rc
post(struct yard *y, struct out out, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct mr_message msg = { .from = out.from,
		.subject = out.subject ? out.subject : "",
		.date_ms = clock_now_ms(),
		.type = "",
		.reply_to = out.reply_to ? out.reply_to : "",
		.replace_key = "",
		.path = "",
		.body = out.body ? out.body : "hi\n",
		.body_len = strlen(out.body ? out.body : "hi\n") };
	struct delivery what = { .msg = &msg,
		.to = &to,
		.sender = out.from,
		.carried = out.carried,
		.staged = out.staged,
		.staged_ctx = out.staged_ctx };
	struct delivered ignored = { 0 };

	id_new(msg.id);
	msg.thread = out.thread ? out.thread : msg.id;
	assert_true(names_add(&to, str_of(out.to)));
	msg.to = to;
	if (out.reply_path)
		assert_int_equal(y->ops->face->expect_answer(y->room, out.reply_path, err), MR_OK);
	return y->ops->deliver(y->room, &what, ret ? ret : &ignored, err);
}

struct seen {
	size_t n, trouble;
	char id[MR_ID_LEN + 1]; /* of the last */
	char why[400];
};

static inline bool
count_message(void *ctx, const struct mr_message *msg)
{
	struct seen *s = ctx;

	s->n++;
	memcpy(s->id, msg->id, sizeof s->id);
	return true;
}

static inline void
count_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct seen *s = ctx;

	(void)path;
	s->trouble++;
	(void)snprintf(s->why, sizeof s->why, "%s", err->message);
}

static inline struct seen
look(struct yard *y, const char *agent, unsigned folders)
{
	struct seen s = { 0 };
	const struct scan_request want = {
		.folders = folders, .depth = SCAN_BODIES, .trouble = count_trouble, .trouble_ctx = &s
	};

	EXPECT(MR_OK, y->ops->scan(y->room, agent, &want, count_message, &s, &err));
	return s;
}

static inline struct mr_message
fetch(struct yard *y, const char *agent, const char *id)
{
	struct mr_message msg = { 0 };

	EXPECT(MR_OK, y->ops->fetch(y->room, agent, id, 0, SCAN_BODIES, &msg, &err));
	return msg;
}

#endif
