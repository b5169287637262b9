/* SPDX-License-Identifier: MIT */
/* box.h - a room of one case with the mailbox "bob" in it, made by hand and unsynced; for the tests of the native
 * driver. */
#ifndef TESTS_UNIT_ROOMS_BOX_H
#define TESTS_UNIT_ROOMS_BOX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct box {
	char path[96];
	struct mr_room room;
};

#define EXPECT(want, call)                                                                                             \
	do {                                                                                                           \
		struct mr_error err = { 0 };                                                                           \
		enum mr_rc got_ = (call);                                                                              \
		if (got_ != (want))                                                                                    \
			fail_msg("%s:%d: %s gave %s: %s", __FILE__, __LINE__, #call, mr_rc_word(got_), err.message);   \
	} while (0)

/* A path in the room; one at a time, or both of a rename. */
static inline const char *
box_path(const struct box *b, const char *rest)
{
	static char path[4][512];
	static unsigned at;

	at = (at + 1) % 4;
	(void)snprintf(path[at], sizeof(path[at]), "%s/%s", b->path, rest);
	return path[at];
}

static inline void
box_write(const struct box *b, const char *rest, const char *text)
{
	FILE *f = fopen(box_path(b, rest), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline bool
box_has(const struct box *b, const char *rest)
{
	struct stat st;

	return lstat(box_path(b, rest), &st) == 0;
}

extern const struct room_driver room_maildir;

static inline void
box_open(struct box *b)
{
	b->room = (struct mr_room){ 0 };
	b->room.driver = &room_maildir;
	EXPECT(MR_OK, maildir_open(&b->room, b->path, &err));
}

static inline void
box_close(struct box *b)
{
	maildir_close(&b->room);
	record_done(&b->room.settings);
	free(b->room.name);
	free(b->room.spec);
	b->room = (struct mr_room){ 0 };
}

static inline int
box_setup(void **state)
{
	static const char *const folders[] = { "agents", "agents/bob", "agents/bob/tmp", "agents/bob/new",
		"agents/bob/cur", "agents/bob/held", "agents/bob/lives", "holds", "dead", "dead/tmp", "dead/new",
		"dead/cur" };
	struct box *b = calloc(1, sizeof(*b));
	const char *top = getenv("TMPDIR");

	assert_non_null(b);
	(void)snprintf(b->path, sizeof(b->path), "%.60s/mr-box-XXXXXX", top != NULL ? top : "/tmp");
	assert_non_null(mkdtemp(b->path));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_int_equal(mkdir(box_path(b, folders[i]), 0700), 0);
	box_write(b, "room", "Format: 1\nName: town\nSync: none\n");
	box_write(b, "agents/bob/agent", "Name: bob\n");
	box_open(b);
	*state = b;
	return 0;
}

static inline int
box_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline int
box_teardown(void **state)
{
	struct box *b = *state;

	box_close(b);
	(void)nftw(b->path, box_remove_one, 32, FTW_DEPTH | FTW_PHYS);
	free(b);
	return 0;
}

/* A message of ours in bob's folder ("new", "cur", ".Archive.2026-11/cur"), with these letters behind ":2," (NULL:
 * none). */
static inline void
box_mail(const struct box *b, const char *folder, const char *info, char ret_id[MR_ID_LEN + 1])
{
	char name[NAME_LEN], rest[NAME_LEN + 64], text[200];

	id_new(ret_id);
	name_for_id(ret_id, name);
	(void)snprintf(rest, sizeof(rest), "agents/bob/%s/%s%s%s", folder, name, info ? ":2," : "", info ? info : "");
	(void)snprintf(text, sizeof(text), "From: alice@town\nTo: bob@town\nSubject: %.26s\n\nhello\n", ret_id);
	box_write(b, rest, text);
}

static inline struct mailbox
box_mailbox(struct box *b)
{
	struct mailbox box = MAILBOX_INIT;

	EXPECT(MR_OK, mailbox_open(&box, maildir_of(&b->room), "bob", &err));
	return box;
}

/* Runs it in a child process with a room handle of its own; its pid. */
static inline pid_t
box_fork(struct box *b, void (*work)(struct box *child, void *arg), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)alarm(60); /* when the parent's case failed nobody ends us */
	struct box child = { 0 };
	memcpy(child.path, b->path, sizeof(child.path));
	box_open(&child);
	work(&child, arg);
	box_close(&child);
	_exit(0);
}

static inline void
box_join(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void
box_kill(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
