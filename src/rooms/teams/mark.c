/* SPDX-License-Identifier: MIT */
/* mark.c - `read`, and emptying an inbox. Marks are gathered: one lock and one write an inbox, at flush. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>

#define TRIES 3

enum mr_rc
teams_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	struct teams *t = teams_of(room);
	mr_auto(inbox_unref) struct inbox *in = NULL;

	TRY(inbox_load(t, agent, true, &in, err));
	struct entry *e = inbox_find(in, id);

	if (!e)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	bool seen = (set & MR_SEEN) || (e->seen && !(clear & MR_SEEN));

	if (seen == e->seen)
		return MR_OK;
	struct teams_mark *marks = realloc(t->marks, (t->marks_n + 1) * sizeof *marks);

	if (!marks)
		return mr_nomem(err);
	t->marks = marks;
	marks[t->marks_n] = (struct teams_mark){ .seen = seen };
	(void)snprintf(marks[t->marks_n].agent, sizeof marks->agent, "%s", agent);
	(void)snprintf(marks[t->marks_n].id, sizeof marks->id, "%s", id);
	t->marks_n++;
	e->seen = seen;
	return MR_OK;
}

/* ---- Changing a file that is there ---- */

struct change {
	struct mr_room *room;
	const char *agent;
	bool clear; /* else: the marks */
	size_t removed;
};

static void
take_marks(const struct teams *t, struct inbox *in)
{
	for (size_t i = 0; i < t->marks_n; i++) {
		struct entry *e = strcmp(t->marks[i].agent, in->agent) == 0 ? inbox_find(in, t->marks[i].id) : NULL;

		if (e)
			e->mark = t->marks[i].seen ? ENTRY_SEEN : ENTRY_UNSEEN;
	}
}

static enum mr_rc
change_locked(struct change *c, struct team_lock *l, int dir_fd, const char *file, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = inbox_new(c->agent);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool changed = false;

	if (!in)
		return mr_nomem(err);
	TRY(store_read_locked(c->room, in, dir_fd, file, err));
	if (in->state == INBOX_MISSING)
		return MR_OK; /* gone meanwhile, with all that was in it */
	if (c->clear) {
		c->removed = in->n;
		changed = !str_eq(buf_str(&in->text), STR("[]"));
		buf_adds(&text, "[]");
	} else {
		take_marks(teams_of(c->room), in);
		TRY(edit_inbox(in, NULL, &text, &changed, err));
	}
	if (!changed)
		return MR_OK;
	return store_replace(l, dir_fd, file, in->st.st_mode & 0777, buf_str(&text), err);
}

/* A folder or a file that is not there is not made. */
static enum mr_rc
change_file(struct change *c, struct mr_error *err)
{
	struct teams *t = teams_of(c->room);
	mr_auto(sys_close_fd) int dir_fd = -1;
	char file[TEAM_NAME_LEN];
	struct stat st;
	enum mr_rc rc = teams_open_inboxes(t, &dir_fd, err);

	teams_inbox_name(c->agent, file);
	if (rc == MR_OK && sys_stat(dir_fd, file, &st) < 0)
		rc = errno == ENOENT ? MR_NOTFOUND : mr_fail_errno(err, "cannot look at '%s'", file);
	if (rc == MR_NOTFOUND)
		return MR_OK;
	for (int i = 0; rc == MR_OK && i < TRIES; i++) {
		mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;

		rc = team_lock_take(&l, dir_fd, file, t->patience_ms, err);
		if (rc == MR_NOTFOUND)
			return MR_OK;
		if (rc == MR_OK)
			rc = change_locked(c, &l, dir_fd, file, err);
		if (team_lock_release(&l))
			break; /* else another may have written over it: once more */
	}
	return rc;
}

static void
forget_marks(struct teams *t, const char *agent)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->marks_n; i++)
		if (strcmp(t->marks[i].agent, agent) != 0)
			t->marks[kept++] = t->marks[i];
	t->marks_n = kept;
}

enum mr_rc
teams_flush(struct mr_room *room, struct mr_error *err)
{
	struct teams *t = teams_of(room);

	while (t->marks_n > 0) {
		char agent[MR_ADDRESS_MAX + 1];
		struct change c = { .room = room, .agent = agent };

		memcpy(agent, t->marks[0].agent, sizeof agent);
		TRY(change_file(&c, err));
		forget_marks(t, agent);
	}
	return MR_OK;
}

enum mr_rc
teams_clear(struct mr_room *room, const char *agent, size_t *ret_removed, struct mr_error *err)
{
	struct change c = { .room = room, .agent = agent, .clear = true };
	struct mr_agent found = { 0 };
	enum mr_rc rc = teams_find_agent(room, agent, &found, err);

	arena_free(found.own);
	if (rc == MR_OK)
		rc = change_file(&c, err);
	if (rc != MR_OK)
		return rc;
	forget_marks(teams_of(room), agent);
	*ret_removed = c.removed;
	return MR_OK;
}
