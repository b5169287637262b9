/* SPDX-License-Identifier: MIT */
/*
 * station.h - a native room with a sender and five agents for one case, a send to the first few of them, what is there
 * after it was killed or failed at a call.
 */
#ifndef TESTS_UNIT_ROOMS_STATION_H
#define TESTS_UNIT_ROOMS_STATION_H

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "support/sys_fault.h"
#include "support/sys_break.h"
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#define BODY "first line\nthe end\n"
static const char *const everyone[] = { "a", "b", "c", "d", "rig/e" };
#define EVERYONE (sizeof everyone / sizeof everyone[0])

/* ---- A room for one case ---- */

struct scratch {
	char path[64];
	struct mr_room room;
};

static inline int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void
scratch_done(struct scratch *s)
{
	maildir_close(&s->room);
	record_done(&s->room.settings);
	free(s->room.name);
	free(s->room.spec);
	(void)nftw(s->path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
}

static inline void
write_text(const char *folder, const char *name, const char *text)
{
	char path[400];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void
make_folder(const char *root, const char *path)
{
	char whole[300];

	(void)snprintf(whole, sizeof whole, "%s/%s", root, path);
	assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
}

/* By hand and unsynced: hundreds of rooms are made here. */
static inline void
make_agent(const struct scratch *s, const char *name)
{
	static const char *const parts[] = { "", "/tmp", "/new", "/cur", "/held", "/lives" };
	char path[200], folder[300];

	for (size_t i = 0; i < 6; i++) {
		(void)snprintf(path, sizeof path, "agents/%s%s", name, parts[i]);
		make_folder(s->path, path);
	}
	(void)snprintf(folder, sizeof folder, "%s/agents/%s", s->path, name);
	write_text(folder, "agent", "Name: x\n");
}

static inline void
reopen(struct scratch *s)
{
	struct mr_error err = { 0 };

	maildir_close(&s->room);
	record_done(&s->room.settings);
	free(s->room.name);
	free(s->room.spec);
	s->room = (struct mr_room){ 0 };
	if (maildir_open(&s->room, s->path, &err) != MR_OK)
		fail_msg("%s", err.message);
}

static const char plain_room[] = "Format: 1\nName: town\nSync: full\n",
		  fast_room[] = "Format: 1\nName: town\nSync: fast\n";
static const char *room_settings = plain_room;

static inline void
scratch_new(struct scratch *s)
{
	static const char *const folders[] = { "agents", "agents/rig", "spool", "keys", "dead", "dead/new", "dead/cur",
		"dead/tmp" };
	const char *tmp = getenv("TMPDIR");

	/* In memory where possible: a kill loses no page of a file, so the disk would add only its time. */
	if (!tmp)
		tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	*s = (struct scratch){ 0 };
	(void)snprintf(s->path, sizeof s->path, "%.40s/mr-deliver-XXXXXX", tmp);
	assert_non_null(mkdtemp(s->path));
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		make_folder(s->path, folders[i]);
	write_text(s->path, "room", room_settings);
	make_agent(s, "sender");
	for (size_t i = 0; i < EVERYONE; i++)
		make_agent(s, everyone[i]);
	reopen(s);
}

/* ---- Sending and counting ---- */

/* Several recipients are looked up before the delivery; else the delivery looks itself. */
static bool looked_up = true;
static void (*meanwhile)(struct scratch *s); /* what others do between the two */

static inline enum mr_rc
look_up(struct scratch *s, size_t recipients, uint64_t *ret_removals, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	*ret_removals = looked_up && recipients > 1 ? maildir_removals(&s->room) : 0;
	for (size_t i = 0; rc == MR_OK && *ret_removals && i < recipients; i++)
		rc = maildir_find_agent(&s->room, everyone[i], NULL, err);
	return rc;
}

static inline enum mr_rc
send_text(struct scratch *s, size_t recipients, const char *key, const char *body, struct delivered *ret,
    struct mr_error *err)
{
	char *names[EVERYONE];
	struct mr_names to = { names, recipients };
	struct mr_message msg = { .from = "sender",
		.subject = "hello",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = body,
		.body_len = strlen(body),
		.date_ms = 1700000000000 };

	for (size_t i = 0; i < recipients; i++)
		names[i] = strdup(everyone[i]);
	id_new(msg.id);
	msg.to = to;
	struct delivery what = { .msg = &msg, .to = &to, .sender = "sender", .key = key };
	enum mr_rc rc = look_up(s, recipients, &what.removals, err);

	if (rc == MR_OK && meanwhile)
		meanwhile(s);
	if (rc == MR_OK)
		rc = maildir_deliver(&s->room, &what, ret, err);

	for (size_t i = 0; i < recipients; i++)
		free(names[i]);
	return rc;
}

static inline enum mr_rc
send_plain(struct scratch *s, size_t recipients, struct delivered *ret, struct mr_error *err)
{
	return send_text(s, recipients, NULL, BODY, ret, err);
}

static inline void
check_whole(const char *path)
{
	char text[4096];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	size_t n = fread(text, 1, sizeof text - 1, f);

	text[n] = '\0';
	(void)fclose(f);
	if (!strstr(text, "Subject: hello\n") || n < 8 || strcmp(text + n - 8, "the end\n") != 0)
		fail_msg("'%s' is torn: %zu bytes", path, n);
}

static inline size_t
count_in(const struct scratch *s, const char *folder)
{
	char path[512];
	size_t n = 0;

	(void)snprintf(path, sizeof path, "%s/%s", s->path, folder);
	DIR *d = opendir(path);

	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "%s/%s/%s", s->path, folder, e->d_name);
		if (strstr(e->d_name, ".mr") && strstr(folder, "spool") == NULL)
			check_whole(path);
		n++;
	}
	(void)closedir(d);
	return n;
}

/* Sends under way. A message without its record is litter that goes after 36 hours. */
static inline size_t
records_left(const struct scratch *s)
{
	char path[128];
	size_t n = 0;

	(void)snprintf(path, sizeof path, "%s/spool", s->path);
	DIR *d = opendir(path);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += id_valid(str_of(e->d_name));
	(void)closedir(d);
	return n;
}

static inline size_t
copies_of(const struct scratch *s, const char *agent)
{
	char path[200];
	size_t n = 0;

	(void)snprintf(path, sizeof path, "agents/%s/new", agent);
	n += count_in(s, path);
	(void)snprintf(path, sizeof path, "agents/%s/cur", agent);
	return n + count_in(s, path);
}

/* As a reader sees it: where a rename is link + unlink, a kill in between leaves one message two names. */
static inline size_t
messages_of(struct scratch *s, const char *agent)
{
	mr_auto(listing_done) struct listing list = { 0 };
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mr_error err = { 0 };

	assert_int_equal(mailbox_open(&box, maildir_of(&s->room), agent, &err), MR_OK);
	assert_int_equal(list_folders(&box, MR_INBOX, false, NULL, &list, &err), MR_OK);
	return list.n;
}

/* How many of the first n agents have exactly one copy; nobody may have more. */
static inline size_t
reached(const struct scratch *s, size_t n)
{
	size_t have = 0;

	for (size_t i = 0; i < n; i++) {
		size_t copies = copies_of(s, everyone[i]);

		if (copies > 1)
			fail_msg("'%s' has %zu copies", everyone[i], copies);
		have += copies;
	}
	return have;
}

static inline void
recover(struct scratch *s)
{
	struct mr_error err = { 0 };

	reopen(s);
	if (maildir_sweep(&s->room, NULL, &err) != MR_OK)
		fail_msg("recover: %s", err.message);
}

typedef void child_fn(struct scratch *s);

/* Runs fn in a child that is killed at call `at`. False: it came to its end, there is no such call. */
static inline bool
killed_at(struct scratch *s, enum sys_fault fault, unsigned long at, child_fn *fn)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		sys_plan_set(&(struct sys_plan){ .fault = fault, .at = at });
		fn(s);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}
/* Forking is slow under the sanitizers: there every n-th call must do; the plain build takes them all. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 11
#elif defined(MR_PORTABLE)
#define STRIDE 3
#else
#define STRIDE 1
#endif

static inline void
send_to_all(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_plain(s, EVERYONE, &got, &err) == MR_OK ? 0 : 1);
}

/* Every error at every call, once and for good: what the answer says is what is so. */
static inline void
try_errors(size_t recipients, unsigned long least_points)
{
	static const struct {
		int error;
		bool for_good;
	} faults[] = { { EIO, false }, { EIO, true }, { ENOSPC, true }, { EMFILE, false }, { EACCES, false } };
	unsigned long points = 0, refused = 0, doubtful = 0;

	for (unsigned kind = 0; kind < sizeof faults / sizeof faults[0]; kind++) {
		for (unsigned long at = 1;; at++) {
			mr_auto(scratch_done) struct scratch s;
			struct delivered got = { 0 };
			struct mr_error err = { 0 };

			scratch_new(&s);
			sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO,
			    .at = at,
			    .error = faults[kind].error,
			    .for_good = faults[kind].for_good });
			enum mr_rc rc = send_plain(&s, recipients, &got, &err);
			bool hit = sys_plan_hit();

			sys_plan_set(NULL);
			if (rc == MR_OK)
				assert_int_equal(reached(&s, recipients), recipients);
			else if (rc != MR_INDOUBT)
				assert_int_equal(reached(&s, recipients), 0);
			recover(&s);
			size_t want = rc == MR_OK || rc == MR_INDOUBT ? recipients : 0;

			if (reached(&s, recipients) != want)
				fail_msg("call %lu, error %d: answer %d (%s), but %zu have it", at, faults[kind].error,
				    (int)rc, err.message, reached(&s, recipients));
			refused += rc != MR_OK && rc != MR_INDOUBT;
			doubtful += rc == MR_INDOUBT;
			if (rc == MR_INDOUBT)
				assert_true(id_valid(str_of(got.id)));
			mr_names_done(&got.missing);
			points += hit;
			if (!hit)
				break;
		}
	}
	assert_true(points > least_points && refused > least_points / 3 && doubtful > 0);
}

#endif
