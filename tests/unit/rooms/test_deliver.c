/* SPDX-License-Identifier: MIT */
/*
 * Delivery, fan-out and send keys of the native driver: what is there after a kill or an error at every
 * system call, and what a later command makes of it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/sys_break.h"
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

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void
scratch_done(struct scratch *s)
{
	maildir_close(&s->room);
	record_done(&s->room.settings);
	free(s->room.name);
	free(s->room.spec);
	(void)nftw(s->path, remove_entry, 32, FTW_DEPTH | FTW_PHYS);
}

static void
write_text(const char *folder, const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
make_folder(const char *root, const char *path)
{
	char whole[256];

	(void)snprintf(whole, sizeof whole, "%s/%s", root, path);
	assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
}

/* By hand and unsynced: hundreds of rooms are made here. */
static void
make_agent(const struct scratch *s, const char *name)
{
	static const char *const parts[] = { "", "/tmp", "/new", "/cur", "/held", "/lives" };
	char path[200], folder[256];

	for (size_t i = 0; i < 6; i++) {
		(void)snprintf(path, sizeof path, "agents/%s%s", name, parts[i]);
		make_folder(s->path, path);
	}
	(void)snprintf(folder, sizeof folder, "%s/agents/%s", s->path, name);
	write_text(folder, "agent", "Name: x\n");
}

static void
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

static const char plain_room[] = "Format: 1\nName: town\n", fast_room[] = "Format: 1\nName: town\nSync: fast\n";
static const char *room_settings = plain_room;

static void
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

static enum mr_rc
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
	enum mr_rc rc = maildir_deliver(&s->room, &what, ret, err);

	for (size_t i = 0; i < recipients; i++)
		free(names[i]);
	return rc;
}

static enum mr_rc
send_plain(struct scratch *s, size_t recipients, struct delivered *ret, struct mr_error *err)
{
	return send_text(s, recipients, NULL, BODY, ret, err);
}

static void
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

static size_t
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
static size_t
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

static size_t
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
static size_t
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
static size_t
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

static void
recover(struct scratch *s)
{
	struct mr_error err = { 0 };

	reopen(s);
	if (maildir_recover(&s->room, &err) != MR_OK)
		fail_msg("recover: %s", err.message);
}

typedef void child_fn(struct scratch *s);

/* Runs fn in a child that is killed at call `at`. False: it came to its end, there is no such call. */
static bool
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

/* ---- One recipient ---- */

static void
a_delivered_message_is_one_whole_unwritable_file(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct stat st;
	char path[400], name[NAME_LEN];

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(copies_of(&s, "a"), 1);
	name_for_id(got.id, name);
	(void)snprintf(path, sizeof path, "%s/agents/a/new/%s", s.path, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(st.st_nlink, 2); /* and the sender's .Sent */
	assert_int_equal(count_in(&s, "agents/sender/.Sent/cur"), 1);
}

static void
one_delivery_syncs_contents_link_and_folder(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK); /* makes .Sent */
	sys_plan_set(&(struct sys_plan){ 0 });
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(sys_syncs(), 3);
	sys_plan_set(NULL);
}

#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
static unsigned long
syncs_of_a_send(size_t recipients, const char *key, const char *how)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	room_settings = fast_room;
	scratch_new(&s);
	room_settings = plain_room;
	assert_int_equal(send_text(&s, recipients, "first", BODY, &got, &err), MR_OK); /* makes .Sent, keys/sender */
	mr_names_done(&got.missing);
	assert_true(sys_break_set(how));
	reopen(&s);
	sys_plan_set(&(struct sys_plan){ 0 });
	assert_int_equal(send_text(&s, recipients, key, BODY, &got, &err), MR_OK);
	unsigned long n = sys_syncs();
	sys_plan_set(NULL);
	assert_true(sys_break_set(NULL));
	mr_names_done(&got.missing);
	return n;
}

/* The commit of the folder carries bytes and name; where nobody knows that it does, nothing is left out. */
static void
sync_fast_is_one_commit_only_where_the_order_is_kept(void **state)
{
	(void)state;
	assert_int_equal(syncs_of_a_send(1, NULL, "ordered"), 1);
	assert_int_equal(syncs_of_a_send(3, NULL, "ordered"), 1 + 3);         /* spool/, each new/ */
	assert_int_equal(syncs_of_a_send(1, "second", "ordered"), 1 + 1 + 1); /* spool/, keys/sender, new/ */
	assert_int_equal(syncs_of_a_send(1, NULL, NULL), 3);                  /* tests run in memory */
	assert_int_equal(syncs_of_a_send(3, NULL, NULL), 6 + 3);
}
#endif

static void
an_unknown_recipient_is_refused_and_hold_makes_the_mailbox(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	char *names[] = { (char *)(uintptr_t) "nobody/here" };
	struct mr_names to = { names, 1 };
	struct mr_message msg = { .from = "sender",
		.subject = "hello",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = strlen(BODY),
		.to = to };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_deliver(&s.room, &what, &got, &err), MR_NOTFOUND);
	what.make_mailboxes = true;
	assert_int_equal(maildir_deliver(&s.room, &what, &got, &err), MR_OK);
	assert_int_equal(copies_of(&s, "nobody/here"), 1);
}

static void
a_taken_name_is_never_overwritten(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	char *names[] = { (char *)(uintptr_t) "a" };
	struct mr_names to = { names, 1 };
	struct mr_message msg = { .from = "sender",
		.subject = "hello",
		.type = "",
		.reply_to = "",
		.replace_key = "",
		.body = BODY,
		.body_len = strlen(BODY),
		.to = to };
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered first = { 0 }, second = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	id_new(msg.id);
	msg.thread = msg.id;
	assert_int_equal(maildir_deliver(&s.room, &what, &first, &err), MR_OK);
	assert_int_equal(maildir_deliver(&s.room, &what, &second, &err), MR_OK);
	assert_string_not_equal(first.id, second.id);
	assert_string_equal(msg.thread, second.id);
	assert_int_equal(copies_of(&s, "a"), 2);
}

static void
send_to_one(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_plain(s, 1, &got, &err) == MR_OK ? 0 : 1);
}

/* Forking is slow under the sanitizers: there every n-th call must do; the plain build takes them all. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 11
#elif defined(MR_PORTABLE)
#define STRIDE 3
#else
#define STRIDE 1
#endif

static void
a_kill_at_any_call_leaves_the_whole_message_or_nothing(void **state)
{
	unsigned long points = 0, with = 0, without = 0;

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		for (unsigned long at = 1;; at++) {
			mr_auto(scratch_done) struct scratch s;

			scratch_new(&s);
			bool hit = killed_at(&s, kind ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_to_one);

			recover(&s);
			*(reached(&s, 1) == 1 ? &with : &without) += hit;
			if (!hit) {
				assert_int_equal(reached(&s, 1), 1);
				break;
			}
			points++;
		}
	}
	assert_true(points > 12 && with > 4 && without > 4);
}

/* Every error at every call, once and for good: what the answer says is what is so. */
static void
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

static void
an_error_at_any_call_of_a_delivery_is_told_as_it_is(void **state)
{
	(void)state;
	try_errors(1, 60);
}

#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
static void
an_error_at_any_call_of_a_fast_delivery_is_told_as_it_is(void **state)
{
	(void)state;
	room_settings = fast_room;
	assert_true(sys_break_set("ordered"));
	try_errors(1, 60);
	assert_true(sys_break_set(NULL));
	room_settings = plain_room;
}
#endif

/* ---- Fan-out ---- */

static void
a_fan_out_is_one_file_with_many_names(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct stat st;
	char path[400], name[NAME_LEN];

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, EVERYONE, &got, &err), MR_OK);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE);
	name_for_id(got.id, name);
	(void)snprintf(path, sizeof path, "%s/agents/c/new/%s", s.path, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_nlink, EVERYONE + 1);
	assert_int_equal(count_in(&s, "spool"), 0);
}

static void
one_unknown_recipient_refuses_the_whole_fan_out(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	char path[128];

	(void)state;
	scratch_new(&s);
	(void)snprintf(path, sizeof path, "%s/agents/c/agent", s.path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(send_plain(&s, EVERYONE, &got, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.message, "'c'"));
	assert_int_equal(reached(&s, EVERYONE), 0);
	assert_int_equal(count_in(&s, "spool"), 0);
}

static void
send_to_all(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_plain(s, EVERYONE, &got, &err) == MR_OK ? 0 : 1);
}

static void
a_kill_at_any_call_of_a_fan_out_reaches_all_or_none(void **state)
{
	unsigned long points = 0, all = 0, none = 0;

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		for (unsigned long at = 1;; at += STRIDE) {
			mr_auto(scratch_done) struct scratch s;

			scratch_new(&s);
			bool hit = killed_at(&s, kind ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_to_all);

			recover(&s);
			size_t have = reached(&s, EVERYONE);

			if (have != 0 && have != EVERYONE)
				fail_msg("killed at call %lu: %zu of %zu have it", at, have, EVERYONE);
			*(have ? &all : &none) += hit;
			recover(&s);
			assert_int_equal(reached(&s, EVERYONE), have);
			if (!hit) {
				assert_int_equal(have, EVERYONE);
				break;
			}
			points++;
		}
	}
	assert_true(points > 60 / STRIDE && all > 20 / STRIDE && none > 20 / STRIDE);
}

static void
only_recover(struct scratch *s)
{
	struct mr_error err = { 0 };

	_exit(maildir_recover(&s->room, &err) == MR_OK ? 0 : 1);
}

static void
a_kill_while_completing_is_completed_by_the_next(void **state)
{
	unsigned long first = 0, points = 0;

	(void)state;
	/* The first call after which the fan-out is certain: found once, then one room for each point. */
	for (bool certain = false; !certain; first++) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_BEFORE, first + 1, send_to_all));
		certain = reached(&s, EVERYONE) == 2;
	}
	for (bool hit = true; hit; points += STRIDE) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_BEFORE, first, send_to_all));
		reopen(&s);
		hit = killed_at(&s, SYS_FAULT_KILL_AFTER, points + 1, only_recover);
		recover(&s);
		assert_int_equal(reached(&s, EVERYONE), EVERYONE);
		assert_int_equal(records_left(&s), 0);
	}
	assert_true(points > 20);
}

static void
whoever_completes_a_fan_out_syncs_every_folder(void **state)
{
	bool found = false;

	(void)state;
	for (unsigned long at = 1; !found; at++) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		found = reached(&s, EVERYONE) == 3;
		if (!found)
			continue;
		/* The counter passes over those that have it, but their folders were never synced. */
		sys_plan_set(&(struct sys_plan){ 0 });
		recover(&s);
		assert_true(sys_syncs() >= EVERYONE + 1);
		sys_plan_set(NULL);
	}
}

static void
who_has_moved_the_message_does_not_get_it_twice(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	bool found = false;

	(void)state;
	/* Killed between the first link and its counter: that reader archived it before anyone came. */
	for (unsigned long at = 1; !found; at++) {
		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		found = reached(&s, EVERYONE) == 1;
		if (!found)
			scratch_done(&s);
	}
	mr_auto(listing_done) struct listing list = { 0 };
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	reopen(&s);
	assert_int_equal(mailbox_open(&box, maildir_of(&s.room), "a", &err), MR_OK);
	assert_int_equal(list_folders(&box, MR_INBOX, false, NULL, &list, &err), MR_OK);
	assert_int_equal(list.n, 1);
	assert_int_equal(maildir_move(&s.room, "a", list.v[0].id, MR_ARCHIVE, &err), MR_OK);
	recover(&s);
	assert_int_equal(copies_of(&s, "a"), 0);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE - 1);
	assert_int_equal(records_left(&s), 0);
}

static void
an_error_at_any_call_of_a_fan_out_is_told_as_it_is(void **state)
{
	(void)state;
	try_errors(EVERYONE, 200);
}

static void
a_living_sender_is_left_alone(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	int ready[2];
	char byte;
	int status;

	(void)state;
	scratch_new(&s);
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (pid == 0) { /* sleeps before every call: alive for as long as we look */
		sys_plan_set(&(struct sys_plan){ .delay_us = 20000 });
		(void)!write(ready[1], "x", 1);
		send_to_all(&s);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	clock_shift_ms((int64_t)3 * 24 * 3600 * 1000); /* whatever the clock says of its age */
	for (unsigned i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
		reopen(&s);
		assert_int_equal(maildir_recover(&s.room, &err), MR_OK);
		(void)usleep(3000);
	}
	clock_shift_ms(0);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* ---- Keys ---- */

static void
a_retry_with_the_same_key_is_the_same_message(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered first = { 0 }, again = { 0 }, other = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_text(&s, 2, "k", BODY, &first, &err), MR_OK);
	assert_false(first.repeated);
	assert_int_equal(send_text(&s, 2, "k", BODY, &again, &err), MR_OK);
	assert_true(again.repeated);
	assert_string_equal(first.id, again.id);
	assert_int_equal(reached(&s, 2), 2);
	assert_int_equal(send_text(&s, 2, "k", "another\nthe end\n", &other, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, first.id));
	assert_int_equal(reached(&s, 2), 2);
	assert_int_equal(send_text(&s, 2, "k2", "another\nthe end\n", &other, &err), MR_OK);
}

static void
a_key_that_is_no_line_of_text_is_refused(void **state)
{
	static const char *const bad[] = { "", " k", "a\nb", "\xff" };
	mr_auto(scratch_done) struct scratch s;

	(void)state;
	scratch_new(&s);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		assert_int_equal(send_text(&s, 1, bad[i], BODY, &got, &err), MR_REFUSED);
	}
	assert_int_equal(reached(&s, 1), 0);
}

static void
send_with_key(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_text(s, 3, "k", BODY, &got, &err) == MR_OK ? 0 : 1);
}

static void
a_keyed_send_killed_anywhere_and_retried_arrives_once(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		for (unsigned long at = 1;; at += STRIDE) {
			mr_auto(scratch_done) struct scratch s;
			struct delivered got = { 0 };
			struct mr_error err = { 0 };

			scratch_new(&s);
			bool hit =
			    killed_at(&s, kind % 2 ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_with_key);

			if (kind < 2)
				recover(&s); /* a later command's */
			reopen(&s);
			if (send_text(&s, 3, "k", BODY, &got, &err) != MR_OK)
				fail_msg("killed at call %lu: %s", at, err.message);
			recover(&s);
			assert_int_equal(reached(&s, 3), 3);
			assert_int_equal(records_left(&s), 0);
			if (!hit) {
				assert_true(got.repeated);
				break;
			}
			points++;
		}
	}
	assert_true(points > 100 / STRIDE);
}

static void
a_keyed_send_refused_anywhere_gives_its_key_back(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (unsigned long at = 1;; at++) {
		mr_auto(scratch_done) struct scratch s;
		struct delivered got = { 0 }, again = { 0 };
		struct mr_error err = { 0 };

		scratch_new(&s);
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
		enum mr_rc rc = send_text(&s, 3, "k", BODY, &got, &err);
		bool hit = sys_plan_hit();

		sys_plan_set(NULL);
		if (rc != MR_OK && rc != MR_INDOUBT)
			assert_int_equal(reached(&s, 3), 0);
		mr_names_done(&got.missing);
		if (send_text(&s, 3, "k", BODY, &again, &err) != MR_OK)
			fail_msg("error at call %lu: %s", at, err.message);
		if (rc == MR_OK || rc == MR_INDOUBT)
			assert_string_equal(got.id, again.id);
		assert_int_equal(reached(&s, 3), 3);
		if (!hit)
			break;
		points++;
	}
	assert_true(points > 40);
}

static pid_t
start_failing_sender(struct scratch *s, unsigned long fail_at)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		reopen(s);
		sys_plan_set(
		    &(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = fail_at, .error = EIO, .delay_us = 2000 });
		enum mr_rc rc = send_text(s, 3, "k", BODY, &got, &err);

		_exit(rc == MR_OK || rc == MR_INDOUBT ? 0 : 1);
	}
	return pid;
}

static void
who_waits_for_a_send_that_is_withdrawn_sends_itself(void **state)
{
	unsigned long keyed = 0;
	size_t withdrawn = 0;

	(void)state;
	for (bool taken = false; !taken; keyed++) { /* the call that takes the key */
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, keyed + 1, send_with_key));
		taken = count_in(&s, "keys/sender") == 1;
	}
	for (unsigned long at = keyed + 1; at < keyed + 7; at++) {
		mr_auto(scratch_done) struct scratch s;
		struct delivered got = { 0 };
		struct mr_error err = { 0 };
		char path[400], name[NAME_LEN];
		int status;

		scratch_new(&s);
		pid_t pid = start_failing_sender(&s, at);

		for (unsigned i = 0; i < 10000 && count_in(&s, "keys/sender") == 0; i++)
			(void)usleep(500);
		assert_int_equal(send_text(&s, 3, "k", BODY, &got, &err), MR_OK);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		withdrawn += WEXITSTATUS(status) == 1;
		recover(&s);
		assert_int_equal(reached(&s, 3), 3);
		name_for_id(got.id, name); /* what we were told is what is there */
		(void)snprintf(path, sizeof path, "%s/agents/c/new/%s", s.path, name);
		assert_int_equal(access(path, F_OK), 0);
	}
	assert_true(withdrawn > 0);
}

/* A process with the key: killed at a random call or not at all; its id comes through the pipe. */
static pid_t
start_sender(struct scratch *s, int out_fd, unsigned long kill_at)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		reopen(s);
		if (kill_at)
			sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER, .at = kill_at });
		(void)maildir_recover(&s->room, &err);
		enum mr_rc rc = send_text(s, 3, "k", BODY, &got, &err);

		if (rc == MR_OK)
			(void)!write(out_fd, got.id, MR_ID_LEN + 1);
		_exit(rc == MR_OK ? 0 : 1);
	}
	return pid;
}

static void
twenty_senders_with_one_key_send_one_message(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		mr_auto(scratch_done) struct scratch s;
		char first[MR_ID_LEN + 1] = "", id[MR_ID_LEN + 1];
		pid_t pids[20];
		int ends[2], status, finished = 0;
		unsigned seed = round * 7919 + 1;

		scratch_new(&s);
		assert_int_equal(pipe(ends), 0);
		for (unsigned i = 0; i < 20; i++) {
			seed = seed * 1103515245 + 12345;
			pids[i] = start_sender(&s, ends[1], i % 4 == 3 ? 0 : 1 + (seed >> 16) % 70);
		}
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			if (WIFEXITED(status)) {
				assert_int_equal(WEXITSTATUS(status), 0);
				finished++;
			} else { /* killed: its retry */
				pid_t retry = start_sender(&s, ends[1], 0);

				assert_int_equal(waitpid(retry, &status, 0), retry);
				assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			}
		}
		(void)close(ends[1]);
		size_t answers = 0;

		while (read(ends[0], id, sizeof id) == sizeof id) {
			if (answers++ == 0)
				memcpy(first, id, sizeof id);
			assert_string_equal(first, id);
		}
		(void)close(ends[0]);
		assert_true(answers >= 20 && finished >= 5);
		recover(&s);
		assert_int_equal(reached(&s, 3), 3);
		assert_int_equal(count_in(&s, "keys/sender"), 1);
	}
}

/* ---- Who lives there ---- */

static void
a_newer_life_fences_the_older(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .name = "a", .life = 1, .worktree = "/w", .session = "s-1", .host = "h" };
	struct mr_error err = { 0 };
	struct mr_agent found = { 0 };
	size_t returned = 99;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(returned, 0);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_EXISTS);
	assert_int_equal(maildir_check_life(&s.room, "a", 1, &err), MR_OK);
	for (agent.life = 2; agent.life <= 20; agent.life++)
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	agent.life = 7;
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_EXISTS);
	assert_int_equal(maildir_check_life(&s.room, "a", 1, &err), MR_REFUSED);
	assert_int_equal(maildir_check_life(&s.room, "a", 3, &err), MR_REFUSED); /* next one forgotten */
	assert_int_equal(maildir_check_life(&s.room, "a", 19, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "is now life 20"));
	assert_int_equal(maildir_check_life(&s.room, "a", 20, &err), MR_OK);
	assert_int_equal(maildir_find_agent(&s.room, "a", &found, &err), MR_OK);
	assert_int_equal(found.life, 20);
	assert_string_equal(found.worktree, "/w");
	assert_string_equal(found.session, "s-1");
	arena_free(found.own);
	assert_int_equal(count_in(&s, "agents/a/lives"), 16);
	assert_true(maildir_once(&s.room, "a", 20, "storage"));
	assert_false(maildir_once(&s.room, "a", 20, "storage"));
}

static void
held_mail_of_an_older_life_comes_back_and_its_marks_fail(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .name = "a", .life = 1, .worktree = "", .session = "", .host = "" };
	struct hold_terms terms = { .kind = HOLD_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct hold hold;
	size_t returned = 99;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(maildir_hold(&s.room, "a", got.id, &terms, &hold, &err), MR_OK);
	assert_int_equal(copies_of(&s, "a"), 0);
	agent.life = 2;
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(returned, 1);
	assert_int_equal(copies_of(&s, "a"), 1);
	assert_int_equal(maildir_settle(&s.room, &hold, SETTLE_DONE, &err), MR_NOTFOUND);
	assert_int_equal(copies_of(&s, "a"), 1);
	assert_int_equal(count_in(&s, "agents/a/held"), 0);
}

static void
take_second_life(struct scratch *s)
{
	struct mr_agent agent = { .name = "a", .life = 2, .worktree = "", .session = "", .host = "" };
	struct mr_error err = { 0 };
	size_t returned;

	_exit(maildir_take_life(&s->room, &agent, &returned, &err) == MR_OK ? 0 : 1);
}

static void
a_takeover_killed_anywhere_loses_no_held_mail(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (bool hit = true; hit; points++) {
		mr_auto(scratch_done) struct scratch s;
		struct mr_agent agent = { .name = "a", .life = 1, .worktree = "", .session = "", .host = "" };
		struct hold_terms terms = { .kind = HOLD_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
		struct delivered got = { 0 };
		struct mr_error err = { 0 };
		struct hold hold;
		size_t returned;

		scratch_new(&s);
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
		assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
		assert_int_equal(maildir_hold(&s.room, "a", got.id, &terms, &hold, &err), MR_OK);
		hit = killed_at(&s, SYS_FAULT_KILL_AFTER, points + 1, take_second_life);
		recover(&s);
		agent.life = maildir_check_life(&s.room, "a", 1, &err) == MR_OK ? 2 : 3;
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
		assert_int_equal(messages_of(&s, "a"), 1);
		assert_int_equal(count_in(&s, "agents/a/held"), 0);
	}
	assert_true(points > 15);
}

static void
names_that_differ_only_in_case_clash_on_every_level(void **state)
{
	static const char *const clashing[] = { "A", "Rig/x", "rig/E", "RIG" };
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .role = "", .wake = "" };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	for (size_t i = 0; i < sizeof clashing / sizeof clashing[0]; i++) {
		(void)snprintf(agent.name, sizeof agent.name, "%s", clashing[i]);
		assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_REFUSED);
	}
	(void)snprintf(agent.name, sizeof agent.name, "rig");
	assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_OK);
	assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_EXISTS);
}

static void
a_pruned_agents_unread_mail_becomes_dead_letters(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct mr_agent found;
	size_t dead = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 2, &got, &err), MR_OK);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(maildir_remove_agent(&s.room, "a", false, &dead, &err), MR_OK);
	assert_int_equal(dead, 2);
	assert_int_equal(count_in(&s, "dead/new"), 2);
	assert_int_equal(copies_of(&s, "a"), 0);
	assert_int_equal(maildir_find_agent(&s.room, "a", &found, &err), MR_NOTFOUND);
	assert_int_equal(maildir_remove_agent(&s.room, "b", false, &dead, &err), MR_OK);
	assert_int_equal(count_in(&s, "dead/new"), 2); /* the same message, the same file */
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_NOTFOUND);
}

/* The agent goes at another moment of a slow send each time: nothing may stay where nobody looks. */
static void
prune_while_sending(size_t recipients)
{
	size_t arrived = 0, refused = 0;

	/* On a busy machine the send may need longer than 60 ms: go on until it won once. */
	for (unsigned wait_ms = 0; wait_ms < 60 || (arrived == 0 && wait_ms < 2000);
	     wait_ms += (unsigned)recipients + STRIDE / 2) {
		mr_auto(scratch_done) struct scratch s;
		struct mr_error err = { 0 };
		size_t dead = 0;
		int status;

		scratch_new(&s);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct delivered got = { 0 };

			reopen(&s);
			sys_plan_set(&(struct sys_plan){ .delay_us = 1000 });
			enum mr_rc rc = send_plain(&s, recipients, &got, &err);

			_exit(rc == MR_OK ? 0 : rc == MR_NOTFOUND ? 5 : 1);
		}
		(void)usleep(wait_ms * 1000);
		assert_int_equal(maildir_remove_agent(&s.room, everyone[recipients - 1], false, &dead, &err), MR_OK);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
		*(WEXITSTATUS(status) ? &refused : &arrived) += 1;
		assert_int_equal(copies_of(&s, everyone[recipients - 1]), 0);
		if (WEXITSTATUS(status) == 0)
			assert_int_equal(count_in(&s, "dead/new"), 1);
	}
	assert_true(arrived > 0 && refused > 0);
}

static void
mail_to_an_agent_that_is_just_being_pruned_is_dead_or_refused(void **state)
{
	(void)state;
	prune_while_sending(1);
	prune_while_sending(2);
}

/* ---- Evidence ---- */

static void
note_state(void *ctx, const struct place_of *place)
{
	char line[300];

	(void)snprintf(line, sizeof line, "%s %s\n", place->agent, place->state);
	buf_adds(ctx, line);
}

static void
purge_removes_every_copy_and_why_finds_none(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	mr_auto(buf_done) struct buf states = BUF_INIT;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	size_t dead, removed = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 3, &got, &err), MR_OK);
	assert_int_equal(maildir_mark(&s.room, "b", got.id, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(maildir_remove_agent(&s.room, "c", false, &dead, &err), MR_OK);
	assert_int_equal(maildir_each_place(&s.room, got.id, note_state, &states, &err), MR_OK);
	assert_string_equal(buf_z(&states), "a unread\nb read\nsender sent\n dead\n");
	assert_int_equal(maildir_purge(&s.room, got.id, &removed, &err), MR_OK);
	assert_int_equal(removed, 4);
	buf_clear(&states);
	assert_int_equal(maildir_each_place(&s.room, got.id, note_state, &states, &err), MR_OK);
	assert_string_equal(buf_z(&states), "");
}

static void
purged_mail_is_not_delivered_by_recovery(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1] = "";
	DIR *d;

	(void)state;
	for (unsigned long at = 1; id[0] == '\0'; at++) {
		char path[128];

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		(void)snprintf(path, sizeof path, "%s/spool", s.path);
		assert_non_null(d = opendir(path));
		for (struct dirent *e; (e = readdir(d));)
			if (id_valid(str_of(e->d_name)))
				(void)snprintf(id, sizeof id, "%.26s", e->d_name);
		(void)closedir(d);
		if (id[0] == '\0')
			scratch_done(&s);
	}
	reopen(&s);
	assert_int_equal(maildir_record_put(&s.room, "purged", "", id, STR("By: x\n"), &err), MR_OK);
	recover(&s);
	assert_int_equal(reached(&s, EVERYONE), 0);
	assert_int_equal(records_left(&s), 0);
}

static void
count_problems(void *ctx, const struct mr_finding *finding)
{
	if (finding->severity == MR_PROBLEM && !finding->fixed && strcmp(finding->code, "space") != 0)
		++*(size_t *)ctx;
}

static void
doctor_finds_open_modes_and_links_and_closes_modes(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	char path[128];
	size_t problems = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_inspect(&s.room, true, count_problems, &problems, &err), MR_OK);
	problems = 0;
	assert_int_equal(send_plain(&s, 2, &got, &err), MR_OK);
	assert_int_equal(maildir_inspect(&s.room, false, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 0);
	(void)snprintf(path, sizeof path, "%s/agents/a", s.path);
	assert_int_equal(chmod(path, 0755), 0);
	(void)snprintf(path, sizeof path, "%s/agents/a/new/planted", s.path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(maildir_inspect(&s.room, false, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 2);
	problems = 0;
	assert_int_equal(maildir_inspect(&s.room, true, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delivered_message_is_one_whole_unwritable_file),
		cmocka_unit_test(one_delivery_syncs_contents_link_and_folder),
#if defined(MR_FAULT_ENV) && !defined(MR_PORTABLE)
		cmocka_unit_test(sync_fast_is_one_commit_only_where_the_order_is_kept),
		cmocka_unit_test(an_error_at_any_call_of_a_fast_delivery_is_told_as_it_is),
#endif
		cmocka_unit_test(an_unknown_recipient_is_refused_and_hold_makes_the_mailbox),
		cmocka_unit_test(a_taken_name_is_never_overwritten),
		cmocka_unit_test(a_kill_at_any_call_leaves_the_whole_message_or_nothing),
		cmocka_unit_test(an_error_at_any_call_of_a_delivery_is_told_as_it_is),
		cmocka_unit_test(a_fan_out_is_one_file_with_many_names),
		cmocka_unit_test(one_unknown_recipient_refuses_the_whole_fan_out),
		cmocka_unit_test(a_kill_at_any_call_of_a_fan_out_reaches_all_or_none),
		cmocka_unit_test(a_kill_while_completing_is_completed_by_the_next),
		cmocka_unit_test(whoever_completes_a_fan_out_syncs_every_folder),
		cmocka_unit_test(who_has_moved_the_message_does_not_get_it_twice),
		cmocka_unit_test(an_error_at_any_call_of_a_fan_out_is_told_as_it_is),
		cmocka_unit_test(a_living_sender_is_left_alone),
		cmocka_unit_test(a_retry_with_the_same_key_is_the_same_message),
		cmocka_unit_test(a_key_that_is_no_line_of_text_is_refused),
		cmocka_unit_test(a_keyed_send_killed_anywhere_and_retried_arrives_once),
		cmocka_unit_test(a_keyed_send_refused_anywhere_gives_its_key_back),
		cmocka_unit_test(who_waits_for_a_send_that_is_withdrawn_sends_itself),
		cmocka_unit_test(twenty_senders_with_one_key_send_one_message),
		cmocka_unit_test(a_newer_life_fences_the_older),
		cmocka_unit_test(held_mail_of_an_older_life_comes_back_and_its_marks_fail),
		cmocka_unit_test(a_takeover_killed_anywhere_loses_no_held_mail),
		cmocka_unit_test(names_that_differ_only_in_case_clash_on_every_level),
		cmocka_unit_test(a_pruned_agents_unread_mail_becomes_dead_letters),
		cmocka_unit_test(mail_to_an_agent_that_is_just_being_pruned_is_dead_or_refused),
		cmocka_unit_test(purge_removes_every_copy_and_why_finds_none),
		cmocka_unit_test(purged_mail_is_not_delivered_by_recovery),
		cmocka_unit_test(doctor_finds_open_modes_and_links_and_closes_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
