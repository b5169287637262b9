/* SPDX-License-Identifier: MIT */
/* Rooms of other systems, each with a message of theirs and some of ours for bob. */
#include "foreign.h"

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

#define TEXT_JSON "line one\\nline two: the end of the message is here"
#define LONG_AGO 1782893730

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
foreign_path(const struct world *w, const char *path, char ret[320])
{
	snprintf(ret, 320, "%s/%s", w->dir, path);
}

struct mr_room *
foreign_open(const struct world *w, const char *where)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char spec[320], state[320];

	snprintf(spec, sizeof(spec), "%s:%s/%s", w->foreign->name, w->dir, where);
	foreign_path(w, "own", state);
	if (mr_room_open(spec, &(struct mr_room_options){ .state_dir = state }, &room, &err) != MR_OK)
		return NULL;
	return room;
}

struct mr_self
foreign_self(struct mr_room *room, const char *agent)
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

	foreign_path(w, w->foreign->theirs, path);
	their_bytes(w, bytes);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fprintf(file, "%s%s%s", in_array ? "[\n" : "", bytes, in_array ? "\n]" : "") > 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

void
foreign_check_theirs(const struct world *w)
{
	char path[320], bytes[1024], found[8192];

	foreign_path(w, w->foreign->theirs, path);
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

enum mr_rc
foreign_send(struct world *w, char ret_id[MR_ID_LEN + 1])
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = foreign_open(w, w->foreign->where);
	char bob[320] = "bob";

	if (room == NULL)
		return MR_IO;
	if (w->foreign == &workspace)
		foreign_path(w, "bob", bob);
	struct mr_self self = foreign_self(room, "alice");
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
void
foreign_settle(const struct world *w)
{
	char path[320];
	struct dirent *e;
	struct stat st;

	if (w->foreign != &workspace)
		return;
	foreign_path(w, "bob/.mailbox/inbox", path);
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
		foreign_path(w, *folder, path);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	write_theirs(w);
	for (size_t i = 0; i < OURS; i++)
		(void)foreign_send(w, w->ids[i]);
	if (kind != &workspace)
		return;
	foreign_settle(w);
	memset(w->ids, 0, sizeof(w->ids));
	struct mr_error err = { 0 };
	struct mr_room *room = foreign_open(w, kind->reader);
	assert_int_equal(mr_scan(room, "bob", &(struct mr_scan){ 0 }, note_id, w, &err), MR_OK);
	mr_room_close(room);
}

/* The lock of a team's inbox that a dead process left is the only thing that time must heal: eleven seconds of it. */
void
foreign_let_time_pass(const struct world *w)
{
	struct timespec then[2];
	char path[320];

	(void)clock_gettime(CLOCK_REALTIME, &then[0]);
	then[0].tv_sec -= 11;
	then[1] = then[0];
	foreign_path(w, "teams/town/inboxes/bob.json.lock", path);
	(void)utimensat(AT_FDCWD, path, then, 0);
}

void
setup_teams(struct world *w)
{
	setup(w, &teams);
}

void
setup_chipset(struct world *w)
{
	setup(w, &chipset);
}

void
setup_handoff(struct world *w)
{
	setup(w, &handoff);
}

void
setup_workspace(struct world *w)
{
	setup(w, &workspace);
}
