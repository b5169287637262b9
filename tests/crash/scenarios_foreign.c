/* SPDX-License-Identifier: MIT */
/*
 * Rooms of other systems: sending, marking and archiving, with mail of theirs in the mailbox. Whatever happened, their
 * bytes are as they were, ours is there once or not at all, and the next send works.
 */
#include "crash.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define TEXT "line one\nline two: the end of the message is here" /* formats differ in the last line break */
#define TEXT_JSON "line one\\nline two: the end of the message is here"
#define LONG_AGO 1782893730
#define OURS 2 /* messages of ours that wait for bob, beside one of theirs */

struct kind {
	const char *name;
	const char *where, *reader; /* below the world's folder: who sends, who reads (the same room mostly) */
	const char *const *folders; /* that must be there */
	const char *theirs;         /* file with their message */
	const char *bytes;          /* of it, or in it; %s: the world's folder */
};

static const char *const teams_folders[] = { "teams", "teams/town", "teams/town/inboxes", NULL };
static const char *const chipset_folders[] = { "state", "state/mail", "state/mail/bob", NULL };
static const char *const handoff_folders[] = { "root", "root/alice", "root/alice/inbox", "root/bob", "root/bob/tmp",
	"root/bob/inbox", "root/bob/archive", NULL };
static const char *const workspace_folders[] = { "alice", "alice/.mailbox", "alice/.mailbox/inbox",
	"alice/.mailbox/scratch", "bob", "bob/.mailbox", "bob/.mailbox/inbox", "bob/.mailbox/scratch", NULL };

static const struct kind teams = { "teams", "teams/town", "teams/town", teams_folders, "teams/town/inboxes/bob.json",
	"  {\n    \"from\": \"lead\",\n    \"text\": \"" TEXT_JSON "\",\n    \"timestamp\": "
	"\"2026-07-01T08:15:30.250Z\",\n    \"x\": { \"y\": [1.50, 1E3] },\n    \"read\": false\n  }" };
static const struct kind chipset = { "chipset", "state", "state", chipset_folders,
	"state/mail/bob/2026-07-01T08-15-30Z-lead-01.json",
	"{\n  \"from\": \"lead-01\", \"body\": \"" TEXT_JSON
	"\", \"x\": 1.50,\n  \"to\": \"bob\", \"type\": \"coordination\","
	"\n  \"subject\": \"s\", \"timestamp\": \"2026-07-01T08:15:30Z\", \"read\": false, \"priority\": \"low\"\n}" };
static const struct kind handoff = { "handoff", "root", "root", handoff_folders,
	"root/bob/inbox/20260701T081530Z-3b1f9c02-next-steps.md",
	"---\nfrom: lead-01\nmsg_id: 3b1f9c02-77aa-4c1e-9d5e-0a1b2c3d4e5f\nsubject: Next steps\nto: "
	"bob\n---\n\n" TEXT };
static const struct kind workspace = { "workspace", "alice", "bob", workspace_folders,
	"bob/.mailbox/inbox/0f1e2d3c4b5a69788796a5b4c3d2e1f0",
	"---\nREQUEST_ID: 0f1e2d3c4b5a69788796a5b4c3d2e1f0\nMESSAGE_TYPE: NEW\nRECEIVER_INBOX_PATH: "
	"%s/bob/.mailbox/inbox/0f1e2d3c4b5a69788796a5b4c3d2e1f0\nREPLY_INBOX_PATH: \n---\n\n" TEXT "\n" };

/* ---- The world ---- */

static void
path_in(const struct world *w, const char *path, char ret[320])
{
	snprintf(ret, 320, "%s/%s", w->dir, path);
}

static struct mr_room *
open_room(const struct world *w, const char *where)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char spec[320], state[320];

	snprintf(spec, sizeof(spec), "%s:%s/%s", w->foreign->name, w->dir, where);
	path_in(w, "own", state);
	if (mr_room_open(spec, &(struct mr_room_options){ .state_dir = state }, &room, &err) != MR_OK)
		return NULL;
	return room;
}

static struct mr_self
self_of(struct mr_room *room, const char *agent)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	if (mr_self_named(room, agent, &self, &err) != MR_OK)
		memset(&self, 0, sizeof(self));
	return self;
}

static void
their_bytes(const struct world *w, char ret[1024])
{
	const char *bytes = w->foreign->bytes, *here = strstr(bytes, "%s");

	if (here)
		snprintf(ret, 1024, "%.*s%s%s", (int)(here - bytes), bytes, w->dir, here + 2);
	else
		snprintf(ret, 1024, "%s", bytes);
}

static void
write_theirs(const struct world *w)
{
	const struct timespec long_ago[2] = { { .tv_sec = LONG_AGO }, { .tv_sec = LONG_AGO } };
	bool in_array = w->foreign == &teams;
	char path[320], bytes[1024];

	path_in(w, w->foreign->theirs, path);
	their_bytes(w, bytes);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fprintf(file, "%s%s%s", in_array ? "[\n" : "", bytes, in_array ? "\n]" : "") > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

static void
check_theirs(const struct world *w)
{
	char path[320], bytes[1024], found[8192];

	path_in(w, w->foreign->theirs, path);
	their_bytes(w, bytes);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
	(void)fclose(file);
	if (w->foreign == &teams)
		assert_non_null(strstr(found, bytes));
	else
		assert_string_equal(found, bytes);
}

static enum mr_rc
send_one(struct world *w, char ret_id[MR_ID_LEN + 1])
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = open_room(w, w->foreign->where);
	char bob[320] = "bob";

	if (room == NULL)
		return MR_IO;
	if (w->foreign == &workspace)
		path_in(w, "bob", bob);
	struct mr_self self = self_of(room, "alice");
	const char *const to[] = { bob, NULL };
	struct mr_draft draft = { .to = to, .body = TEXT, .body_len = strlen(TEXT) };
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	if (rc == MR_OK && ret_id != NULL)
		memcpy(ret_id, receipt.id, sizeof(receipt.id));
	else if (ret_id != NULL)
		fail_msg("send: %s", err.message);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

/* A file in a workspace that is younger than a moment may still be in the making, so readers wait a little: not in a
 * test that looks a thousand times. Its date is part of its id, so this comes before anybody has seen that. */
static void
let_settle(const struct world *w)
{
	char path[320];
	struct dirent *e;
	struct stat st;

	if (w->foreign != &workspace)
		return;
	path_in(w, "bob/.mailbox/inbox", path);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode) || time(NULL) - st.st_mtime > 5)
			continue;
		struct timespec earlier[2] = { st.st_mtim, st.st_mtim };
		earlier[0].tv_sec -= 10;
		earlier[1].tv_sec -= 10;
		assert_int_equal(utimensat(dirfd(dir), e->d_name, earlier, 0), 0);
	}
	(void)closedir(dir);
}

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct world *w = ctx;

	for (size_t i = 0; msg->date_ms / 1000 != LONG_AGO && i < OURS; i++)
		if (w->ids[i][0] == '\0') {
			memcpy(w->ids[i], msg->id, sizeof(msg->id));
			break;
		}
	return true;
}

static void
setup(struct world *w, const struct kind *kind)
{
	char path[320];

	world_folder(w);
	w->foreign = kind;
	for (const char *const *folder = kind->folders; *folder != NULL; folder++) {
		path_in(w, *folder, path);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	write_theirs(w);
	for (size_t i = 0; i < OURS; i++)
		(void)send_one(w, w->ids[i]);
	if (kind != &workspace)
		return;
	let_settle(w);
	memset(w->ids, 0, sizeof(w->ids));
	struct mr_error err = { 0 };
	struct mr_room *room = open_room(w, kind->reader);
	assert_int_equal(mr_scan(room, "bob", &(struct mr_scan){ 0 }, note_id, w, &err), MR_OK);
	mr_room_close(room);
}

/* ---- Sending, marking, archiving ---- */

static enum mr_rc
run_send(struct world *w, int tell)
{
	(void)tell;
	return send_one(w, NULL);
}

static enum mr_rc
change(struct world *w, bool archive)
{
	struct mr_error err = { 0 };
	struct mr_room *room = open_room(w, w->foreign->reader);
	enum mr_rc rc = MR_OK;

	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	for (size_t i = 0; rc == MR_OK && i < OURS; i++)
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
	return change(w, false);
}

static enum mr_rc
run_archive(struct world *w, int tell)
{
	(void)tell;
	return change(w, true);
}

/* In a workspace an answer takes the message out of the inbox first: one that was never sent must not have cost it. */
static enum mr_rc
run_reply(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = open_room(w, w->foreign->reader);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	struct mr_draft draft = { .body = TEXT, .body_len = strlen(TEXT) };
	enum mr_rc rc = mr_reply(room, &self, w->ids[0], &draft, false, &receipt, &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

/* ---- What is there afterwards ---- */

struct counting {
	struct census all, ours; /* ours: with one of the ids that were there before */
	const struct world *w;
};

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;
	size_t len = msg->body_len;
	bool known = false;

	for (size_t i = 0; i < OURS; i++)
		known |= strcmp(c->w->ids[i], msg->id) == 0;
	while (len > 0 && msg->body[len - 1] == '\n')
		len--;
	bool unread = (msg->flags & MR_SEEN) == 0 && msg->folder == MR_INBOX;
	c->all.copies++;
	c->all.torn += len != strlen(TEXT) || memcmp(msg->body, TEXT, len) != 0;
	c->ours.copies += known;
	c->ours.unread += known && unread;
	return true;
}

static void
count_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct counting *c = ctx;

	print_message("# %s: %s\n", path, err->message);
	c->all.torn++;
}

static struct counting
count_in(const struct world *w, const char *where, const char *agent)
{
	struct mr_error err = { 0 };
	struct counting c = { .w = w };
	struct mr_scan scan = { .bodies = true, .trouble = count_trouble };
	struct mr_room *room = open_room(w, where);

	assert_non_null(room);
	let_settle(w);
	struct mr_self self = self_of(room, agent);
	scan.filter.folders = MR_INBOX | MR_ARCHIVE;
	if (mr_scan(room, self.agent, &scan, count_one, &c, &err) != MR_OK)
		fail_msg("scan: %s", err.message);
	mr_room_close(room);
	return c;
}

static struct counting
count(const struct world *w)
{
	return count_in(w, w->foreign->reader, "bob");
}

/* The lock of a team's inbox that a dead process left is the only thing that time must heal: eleven seconds of it. */
static void
let_time_pass(const struct world *w)
{
	struct timespec then[2];
	char path[320];

	(void)clock_gettime(CLOCK_REALTIME, &then[0]);
	then[0].tv_sec -= 11;
	then[1] = then[0];
	path_in(w, "teams/town/inboxes/bob.json.lock", path);
	(void)utimensat(AT_FDCWD, path, then, 0);
}

/* `more` of ours may have come, each message is there once; the next send works. */
static struct counting
check_whole(struct world *w, size_t more)
{
	struct counting c = count(w);

	assert_int_equal(c.all.torn, 0);
	assert_int_equal(c.ours.copies, OURS);
	assert_in_range(c.all.copies, OURS + 1, OURS + 1 + more);
	check_theirs(w);
	let_time_pass(w);
	char id[MR_ID_LEN + 1];
	(void)send_one(w, id);
	struct counting after = count(w);
	assert_int_equal(after.all.copies, c.all.copies + 1);
	assert_int_equal(after.all.torn, 0);
	check_theirs(w);
	return c;
}

static void
check_foreign_sent(struct world *w)
{
	struct counting c = check_whole(w, 1);

	if (w->accepted || w->doubted)
		assert_int_equal(c.all.copies, OURS + 2);
	if (w->refused)
		assert_int_equal(c.all.copies, OURS + 1);
	assert_int_equal(c.ours.unread, OURS);
}

static void
check_foreign_changed(struct world *w)
{
	struct counting c = check_whole(w, 0);

	if (w->accepted)
		assert_int_equal(c.ours.unread, 0);
}

static void
check_replied(struct world *w)
{
	struct counting c = check_whole(w, 0), answers = count_in(w, w->foreign->where, "alice");

	assert_int_equal(answers.all.torn, 0);
	assert_in_range(answers.all.copies, 0, 1);
	if (w->accepted || w->doubted)
		assert_int_equal(answers.all.copies, 1);
	if (w->accepted)
		assert_int_equal(c.ours.unread, OURS - 1);
	if (w->refused) {
		assert_int_equal(answers.all.copies, 0);
		assert_int_equal(run_reply(w, -1), MR_OK);
	}
}

static void
setup_teams(struct world *w)
{
	setup(w, &teams);
}

static void
setup_chipset(struct world *w)
{
	setup(w, &chipset);
}

static void
setup_handoff(struct world *w)
{
	setup(w, &handoff);
}

static void
setup_workspace(struct world *w)
{
	setup(w, &workspace);
}

const struct scenario foreign_scenarios[] = {
	{ "teams send", setup_teams, run_send, check_foreign_sent, 8, 0 },
	{ "teams mark", setup_teams, run_mark, check_foreign_changed, 8, 0 },
	{ "chipset send", setup_chipset, run_send, check_foreign_sent, 6, 0 },
	{ "chipset mark", setup_chipset, run_mark, check_foreign_changed, 6, 0 },
	{ "chipset archive", setup_chipset, run_archive, check_foreign_changed, 6, 0 },
	{ "handoff send", setup_handoff, run_send, check_foreign_sent, 6, 0 },
	{ "handoff archive", setup_handoff, run_archive, check_foreign_changed, 4, 0 },
	{ "workspace send", setup_workspace, run_send, check_foreign_sent, 6, 0 },
	{ "workspace reply", setup_workspace, run_reply, check_replied, 10, 0 },
	{ "workspace mark", setup_workspace, run_mark, check_foreign_changed, 4, 0 },
};
const size_t foreign_scenarios_n = sizeof(foreign_scenarios) / sizeof(foreign_scenarios[0]);
