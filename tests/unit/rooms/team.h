/* SPDX-License-Identifier: MIT */
/* team.h - a team in a folder of its own, for the tests of the driver of teams. */
#ifndef TESTS_TEAM_H
#define TESTS_TEAM_H

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

extern const struct room_driver room_teams;

#define EXPECT(want, call)                                                                                             \
	do {                                                                                                           \
		struct mr_error err = { 0 };                                                                           \
		enum mr_rc got_ = (call);                                                                              \
		if (got_ != (want)) {                                                                                  \
			print_error("%s is %s: %s\n", #call, mr_rc_word(got_), err.message);                           \
			_fail(__FILE__, __LINE__);                                                                     \
		}                                                                                                      \
	} while (0)

struct team {
	char path[128]; /* the root; the team is "blue", its inboxes are in blue/inboxes */
	struct mr_room *room;
};

static inline int
team_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static inline void
team_open(struct team *t, bool with_state)
{
	char spec[160], state[160];

	(void)snprintf(spec, sizeof spec, "teams:%s/blue", t->path);
	(void)snprintf(state, sizeof state, "%s/state", t->path);
	struct mr_room_options options = { .state_dir = with_state ? state : NULL };

	EXPECT(MR_OK, room_open_spec(spec, &options, &t->room, &err));
}

static inline void
team_make(struct team *t, bool with_state)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(t->path, sizeof t->path, "%s/mailroom-teams-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(t->path));
	team_open(t, with_state);
}

static inline void
team_done(struct team *t)
{
	mr_room_close(t->room);
	(void)nftw(t->path, team_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* name is relative to the root */
static inline void
team_put(const struct team *t, const char *name, struct mr_str text)
{
	char path[512];

	for (const char *folder = "blue"; folder; folder = strcmp(folder, "blue") == 0 ? "blue/inboxes" : NULL) {
		(void)snprintf(path, sizeof path, "%s/%s", t->path, folder);
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	}
	(void)snprintf(path, sizeof path, "%s/%s", t->path, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text.ptr, 1, text.len, f), text.len);
	assert_int_equal(fclose(f), 0);
}

static inline char *
team_slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(text);
	if (!f) {
		free(text);
		return NULL;
	}
	*ret_len = fread(text, 1, (1 << 20) - 1, f);
	(void)fclose(f);
	return text;
}

static inline void
team_same(const struct team *t, const char *name, struct mr_str want)
{
	char path[512];
	size_t len = 0;

	(void)snprintf(path, sizeof path, "%s/%s", t->path, name);
	char *text = team_slurp(path, &len);

	assert_non_null(text);
	if (len != want.len || memcmp(text, want.ptr, len) != 0)
		fail_msg("'%s' is\n%s\nand should be\n%.*s", name, text, (int)want.len, want.ptr);
	free(text);
}

#define BOB "blue/inboxes/bob.json"

struct mail { /* what a test sends */
	const char *from, *text, *subject, *color, *type;
	int64_t date_ms;
	bool keep, carried, hold;
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *staged_ctx;
};

static inline enum mr_rc
team_send(struct team *t, const char *to, struct mail mail, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	struct mr_header color = { "Color", mail.color };
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_message msg = { .id = "01k9w3b7zq8m4c2v6t1x5n0prs",
		.from = mail.from ? mail.from : "alice",
		.subject = mail.subject ? mail.subject : "",
		.date_ms = mail.date_ms ? mail.date_ms : clock_now_ms(),
		.type = mail.type ? mail.type : "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = mail.text ? mail.text : "hi",
		.body_len = strlen(mail.text ? mail.text : "hi"),
		.headers = &color,
		.headers_n = mail.color ? 1 : 0,
		.path = "" };
	struct delivery what = { .msg = &msg,
		.to = &names,
		.sender = msg.from,
		.make_mailboxes = mail.hold,
		.keep = mail.keep,
		.carried = mail.carried,
		.staged = mail.staged,
		.staged_ctx = mail.staged_ctx };
	struct delivered done = { 0 };

	assert_true(names_add(&names, str_of(to)));
	enum mr_rc rc = room_teams.deliver(t->room, &what, &done, err);

	if (rc == MR_OK)
		assert_true(id_valid(str_of(done.id)));
	if (ret_id)
		memcpy(ret_id, done.id, sizeof done.id);
	mr_names_done(&done.missing);
	return rc;
}

struct team_list {
	struct {
		char id[MR_ID_LEN + 1], from[80], subject[80], type[40], message_id[64];
		char body[400];
		unsigned flags;
		int64_t date_ms;
	} v[64];
	size_t n, troubles;
};

static inline bool
team_note(void *ctx, const struct mr_message *msg)
{
	struct team_list *l = ctx;

	if (l->n >= 64)
		return false;
	const char *message_id = mr_message_header(msg, "Message-ID");

	memcpy(l->v[l->n].id, msg->id, sizeof msg->id);
	(void)snprintf(l->v[l->n].from, sizeof l->v->from, "%s", msg->from);
	(void)snprintf(l->v[l->n].subject, sizeof l->v->subject, "%s", msg->subject);
	(void)snprintf(l->v[l->n].type, sizeof l->v->type, "%s", msg->type);
	(void)snprintf(l->v[l->n].message_id, sizeof l->v->message_id, "%s", message_id ? message_id : "");
	(void)snprintf(l->v[l->n].body, sizeof l->v->body, "%s", msg->body ? msg->body : "");
	l->v[l->n].flags = msg->flags;
	l->v[l->n].date_ms = msg->date_ms;
	l->n++;
	return true;
}

static inline void
team_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct team_list *l = ctx;

	(void)path;
	assert_int_equal(err->code, MR_CORRUPT);
	l->troubles++;
}

static inline struct team_list
team_list(struct team *t, const char *agent)
{
	struct team_list l = { 0 };
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_BODIES, .trouble = team_trouble, .trouble_ctx = &l
	};

	EXPECT(MR_OK, room_teams.scan(t->room, agent, &want, team_note, &l, &err));
	return l;
}

#endif
