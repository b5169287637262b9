/* SPDX-License-Identifier: MIT */
/* scan.c - looking at an inbox: without a lock, in the order of ids. */
#include "base/error.h"
#include "rooms/teams/teams.h"

static void
path_of(const char *agent, char ret[TEAM_NAME_LEN + 16])
{
	char file[TEAM_NAME_LEN];

	teams_inbox_name(agent, file);
	(void)snprintf(ret, TEAM_NAME_LEN + 16, "inboxes/%s", file);
}

/* An agent without a file has no mail; a name that is nobody's has no mailbox. */
static enum mr_rc
load(struct mr_room *room, const char *agent, bool cached, struct inbox **ret, struct mr_error *err)
{
	struct mr_agent found = { 0 };

	TRY(inbox_load(teams_of(room), agent, cached, ret, err));
	if ((*ret)->state == INBOX_MISSING) {
		enum mr_rc rc = teams_find_agent(room, agent, &found, err);

		arena_free(found.own);
		return rc;
	}
	return (*ret)->state == INBOX_ALIEN ? inbox_corrupt(*ret, err) : MR_OK;
}

/* What is there and cannot be shown. */
static void
report(const struct inbox *in, const char *path, const struct scan_request *want)
{
	struct mr_error why = { 0 };

	if (!want->trouble)
		return;
	if (in->state == INBOX_TORN) {
		(void)inbox_corrupt(in, &why);
		want->trouble(want->trouble_ctx, path, &why);
	}
	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].problem) {
			(void)mr_fail(
			    &why, MR_CORRUPT, "entry %zu of the inbox of '%s' %s", i, in->agent, in->v[i].problem);
			(void)mr_hint(&why, "it is kept as it is; some versions of the original delete such entries");
			want->trouble(want->trouble_ctx, path, &why);
		}
}

enum mr_rc
teams_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	char path[TEAM_NAME_LEN + 16];

	if (!(want->folders & MR_INBOX) && (want->folders & MR_DEAD))
		return MR_OK; /* the room's own dead letters: there are none */
	TRY(load(room, agent, false, &in, err));
	if (!(want->folders & MR_INBOX))
		return MR_OK;
	path_of(agent, path);
	report(in, path, want);
	for (size_t i = 0; i < in->order_n; i++) {
		const struct entry *e = in->order[want->newest_first ? in->order_n - 1 - i : i];
		struct mr_message msg = { 0 };

		if ((want->unread_only && e->seen) || (want->id_suffix && !str_ends(str_of(e->id), want->id_suffix)))
			continue;
		TRY(entry_message(e, agent, path, want->depth, &msg, err));
		msg.place = (size_t)(e - in->v) + 1;
		bool more = fn(ctx, &msg);

		mr_message_done(&msg);
		if (!more)
			break;
	}
	return MR_OK;
}

static enum mr_rc
find(struct mr_room *room, const char *agent, const char *id, unsigned folders, struct inbox **ret_in,
    struct entry **ret, struct mr_error *err)
{
	struct entry *found = NULL;

	TRY(load(room, agent, true, ret_in, err));
	if (folders == 0 || (folders & MR_INBOX))
		found = inbox_find(*ret_in, id);
	if (!found)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	*ret = found;
	return MR_OK;
}

enum mr_rc
teams_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	struct entry *e = NULL;
	char path[TEAM_NAME_LEN + 16];

	TRY(find(room, agent, id, folders, &in, &e, err));
	path_of(agent, path);
	TRY(entry_message(e, agent, path, depth, ret, err));
	ret->place = (size_t)(e - in->v) + 1;
	return MR_OK;
}

enum mr_rc
teams_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	struct entry *e = NULL;

	TRY(find(room, agent, id, 0, &in, &e, err));
	buf_add(ret, e->raw);
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

/* ---- Where is a message? ---- */

struct search {
	struct mr_room *room;
	const char *id;
	place_fn *fn;
	void *ctx;
};

static bool
look_at(void *ctx, const struct mr_agent *agent)
{
	const struct search *s = ctx;
	mr_auto(inbox_unref) struct inbox *in = NULL;
	struct mr_error ignored = { 0 };
	struct entry *e = NULL;
	char path[TEAM_NAME_LEN + 16], evidence[TEAM_NAME_LEN + 64];

	if (find(s->room, agent->name, s->id, MR_INBOX, &in, &e, &ignored) != MR_OK)
		return true;
	path_of(agent->name, path);
	(void)snprintf(
	    evidence, sizeof evidence, "entry %zu of %s, %s", (size_t)(e - in->v), path, e->seen ? "read" : "not read");
	s->fn(s->ctx, &(struct place_of){ .agent = agent->name,
			  .folder = MR_INBOX,
			  .flags = e->seen ? MR_SEEN : 0,
			  .state = e->seen ? "read" : "unread",
			  .evidence = evidence });
	return true;
}

enum mr_rc
teams_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { room, id, fn, ctx };

	return teams_each_agent(room, look_at, &s, err);
}
