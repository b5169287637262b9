/* SPDX-License-Identifier: MIT */
/* roster.c - see roster.h. */
#include "cli/roster.h"

static const char *
copy(struct roster *roster, const char *text)
{
	const char *mine = arena_dup(&roster->own, str_of(text));

	if (!mine)
		roster->failed = true;
	return mine ? mine : "";
}

static bool
add_entry(void *ctx, const struct mr_agent *agent)
{
	struct roster *r = ctx;

	if (r->n == r->room_for) {
		size_t more = r->room_for ? r->room_for * 2 : 16;
		struct roster_entry *v = realloc(r->v, more * sizeof(*v));

		if (!v) {
			r->failed = true;
			return false;
		}
		r->v = v;
		r->room_for = more;
	}
	struct roster_entry *e = &r->v[r->n++];

	*e = (struct roster_entry){ .agent = *agent, .presence = mr_agent_presence(agent), .lives = r->lives };
	e->agent.own = NULL;
	e->agent.worktree = copy(r, agent->worktree);
	e->agent.session = copy(r, agent->session);
	e->agent.host = copy(r, agent->host);
	e->agent.role = copy(r, agent->role);
	e->agent.wake = copy(r, agent->wake);
	return !r->failed;
}

static int
by_name(const void *a, const void *b)
{
	const struct roster_entry *x = a, *y = b;

	return strcmp(x->agent.name, y->agent.name);
}

enum mr_rc
roster_load(struct cli *cli, bool counts, struct roster *ret, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { .lives = mr_room_has_lives(cli->room) };

	TRY(mr_each_agent(cli->room, add_entry, &r, err));
	if (r.failed)
		return mr_nomem(err);
	if (r.n > 1)
		qsort(r.v, r.n, sizeof(*r.v), by_name);
	for (size_t i = 0; counts && i < r.n; i++) {
		enum mr_rc rc = mr_count(cli->room, r.v[i].agent.name, &r.v[i].counts, err);

		if (rc != MR_OK && rc != MR_NOTFOUND) /* pruned while we looked: nothing to count */
			return rc;
	}
	*ret = r;
	r = (struct roster){ 0 };
	return MR_OK;
}

void
roster_done(struct roster *roster)
{
	free(roster->v);
	arena_free(roster->own);
	*roster = (struct roster){ 0 };
}

const char *
roster_state(const struct roster_entry *entry)
{
	if (!entry->lives)
		return "unknown";
	if (entry->agent.life == 0)
		return "never";
	return entry->presence == MR_LIVE ? "live" : entry->presence == MR_UNKNOWN ? "unknown" : "gone";
}

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	size_t *n = ctx;

	(void)msg;
	(*n)++;
	return true;
}

enum mr_rc
dead_letters(struct cli *cli, size_t limit, size_t *ret, struct mr_error *err)
{
	struct mr_scan scan = { .filter.folders = MR_DEAD, .order = MR_NEWEST_FIRST, .limit = limit };
	size_t n = 0;

	enum mr_rc rc = mr_scan(cli->room, "", &scan, count_one, &n, err);

	if (rc != MR_OK && rc != MR_UNSUPPORTED) /* a kind without dead letters has none */
		return rc;
	*ret = n;
	return MR_OK;
}
