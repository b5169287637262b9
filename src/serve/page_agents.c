/* SPDX-License-Identifier: MIT */
/* page_agents.c - agents by evidence, a mailbox as its owner would see it, channels. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/harness.h"
#include "serve/page.h"

#define IDLE_MS ((int64_t)10 * 60 * 1000)
#define MAIL_SHOWN 100
#define POSTS_SHOWN 50

/* ---- Agents ---- */

struct row {
	const struct mr_agent *agent;
	struct mr_counts n;
	const char *state, *class;
	unsigned rank; /* you, the living, those that are gone and have mail or work; then the others */
};

static bool
count_held(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

/* What is known of it: its process is there (and ran a command lately, or not), it is gone, or nothing can be told. */
static const char *
state_of(const struct mr_agent *a, bool lives)
{
	static const char *const words[] = { [MR_GONE] = "gone", [MR_UNKNOWN] = "unknown", [MR_LIVE] = "live" };
	enum mr_presence presence = mr_agent_presence(a);

	if (!lives || a->life == 0)
		return lives ? "never" : "unknown";
	return presence == MR_LIVE && clock_now_ms() - a->seen_ms > IDLE_MS ? "idle" : words[presence];
}

static struct row
row_of(struct request *req, const struct mr_agent *a)
{
	struct row r = {
		.agent = a, .state = state_of(a, mr_room_has(req->room, MR_HAS_LIVES)), .class = "", .rank = 4
	};

	(void)mr_count(req->room, a->name, &r.n, IGNORED);
	(void)mr_queue_held(req->room, a->name, NULL, count_held, &r.n.held, IGNORED);
	if (strcmp(a->name, OPERATOR_NAME) == 0)
		r.state = "you", r.rank = 0;
	else if (strcmp(r.state, "live") == 0)
		r.class = "good", r.rank = 1;
	else if (strcmp(r.state, "idle") == 0)
		r.rank = 2;
	else if (strcmp(r.state, "gone") == 0 && (r.n.unread || r.n.held))
		r.class = "now", r.rank = 3;
	return r;
}

static int
by_rank(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank) : strcmp(a->agent->name, b->agent->name);
}

/* "claude-code-0f3c..." is a session of claude-code. */
static const char *
harness_of(struct request *req, const char *session)
{
	for (const char *dash = strchr(session, '-'); dash; dash = strchr(dash + 1, '-')) {
		const char *name = arena_dup(&req->own, (struct mr_str){ session, (size_t)(dash - session) });

		if (name && harness_named(name))
			return name;
	}
	return session;
}

static void
number_cell(struct buf *out, const char *label, size_t n)
{
	html_addf(out, "<td class=\"number%s\" data-label=\"%s\">%zu</td>", n > 0 ? "" : " zero", label, n);
}

static void
time_cell(struct buf *out, const char *label, int64_t ms, const char *door)
{
	html_addf(out, "<td data-label=\"%s\">", label);
	page_time(out, ms);
	html_addf(out, *door ? "<small> by %s</small></td>" : "%s</td>", door);
}

static void
add_agent(struct request *req, const struct row *r)
{
	struct buf *out = req->out;
	const struct mr_agent *a = r->agent;

	html_addf(out, "<tr data-key=\"%s\"><th scope=\"row\">", a->name);
	page_address(out, a->name);
	html_addf(out, *a->role ? "<small>%s</small></th><td>" : "%s</th><td>", a->role);
	page_tag(out, r->class, r->state);
	if (r->n.urgent > 0)
		html_addf(out, " <span class=\"tag now\">%zu urgent</span>", r->n.urgent);
	buf_adds(out, "</td>");
	number_cell(out, "unread", r->n.unread);
	time_cell(out, "oldest", r->n.oldest_unread_ms, "");
	number_cell(out, "in hand", r->n.held);
	time_cell(out, "seen", a->seen_ms, mr_door_word(a->door));
	html_addf(out,
	    "<td class=\"soft\">%s</td><td class=\"soft path\" title=\"%s\"><bdi>%s</bdi></td><td class=\"last\"><div class=\"actions\">",
	    harness_of(req, a->session), a->worktree, a->worktree);
	if (req->may_write && r->rank > 0) {
		page_button(req, "/do/nudge", "Nudge", "", FIELDS({ "agent", a->name }));
		page_link(out, "/write?to=", a->name, "button", "Write");
	}
	buf_adds(out, "</div></td></tr>\n");
}

enum mr_rc
page_agents(struct request *req, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct buf *out = req->out;
	size_t live = 0;
	char more[64];

	TRY(mr_agent_list(req->room, &agents, err));
	struct row *rows = arena_alloc(&req->own, (agents.n + 1) * sizeof(*rows));

	TRY(mr_got(rows != NULL, err));
	for (size_t i = 0; i < agents.n; i++) {
		rows[i] = row_of(req, &agents.v[i]);
		live += rows[i].rank == 1 || rows[i].rank == 2;
	}
	if (agents.n > 1)
		qsort(rows, agents.n, sizeof(*rows), by_rank);
	(void)snprintf(
	    more, sizeof(more), mr_room_has(req->room, MR_HAS_LIVES) ? "%zu, %zu live" : "%zu", agents.n, live);
	page_begin(req, "Agents", more);
	buf_adds(out,
	    "<div data-part=\"agents\" class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Agents\"><table><thead><tr>"
	    "<th scope=\"col\">Name</th><th scope=\"col\">State</th><th scope=\"col\" class=\"number\">Unread</th>"
	    "<th scope=\"col\">Oldest</th><th scope=\"col\" class=\"number\">In hand</th><th scope=\"col\">Last seen</th>"
	    "<th scope=\"col\">Harness</th><th scope=\"col\">Worktree</th><td></td></tr></thead><tbody>\n");
	for (size_t i = 0; i < agents.n; i++)
		add_agent(req, &rows[i]);
	buf_adds(out, agents.n > 1
			  ? "</tbody></table></div>\n"
			  : "</tbody></table></div>\n<p class=\"soft\">mailroom register NAME makes one.</p>\n");
	return MR_OK;
}

enum mr_rc
page_agent(struct request *req, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(letters_done) struct letters all = { 0 };
	struct buf *out = req->out;
	struct mr_counts c = { 0 };

	TRY(mr_agent_get(req->room, req->rest, &agent, err));
	TRY(mr_count(req->room, agent.name, &c, err));
	TRY(letters_load(req, agent.name, &(struct mr_filter){ 0 }, MAIL_SHOWN, &all, err));
	page_begin(req, agent.name, NULL);
	html_addf(out, "<div class=\"head\"><h1>%s</h1><p class=\"soft\">%s", agent.name,
	    state_of(&agent, mr_room_has(req->room, MR_HAS_LIVES)));
	if (agent.life > 1)
		html_addf(out, ", life %u", agent.life);
	if (agent.seen_ms > 0) {
		buf_adds(out, ", seen ");
		page_time(out, agent.seen_ms);
		html_addf(out, agent.door ? " ago by %s" : " ago%s", mr_door_word(agent.door));
	}
	html_addf(out, ", %zu unread; looking marks nothing as read</p><div class=\"actions\">", c.unread);
	if (strcmp(agent.name, OPERATOR_NAME) != 0) {
		page_button(req, "/do/nudge", "Nudge", "", FIELDS({ "agent", agent.name }));
		if (req->may_write)
			page_link(out, "/write?to=", agent.name, "button first", "Write");
	}
	buf_adds(out, "</div></div>\n");
	rows_begin(out, "mailbox");
	for (size_t i = 0; i < all.n; i++)
		letter_row(out, &all.v[i], NULL);
	rows_end(out, all.n, "No mail", "Nothing came or went yet.");
	return MR_OK;
}

/* ---- Channels ---- */

static void
add_channel(struct request *req, struct buf *out, const struct mr_channel *c)
{
	uint64_t last = 0;
	size_t posts = 0;

	(void)mr_channel_count(req->room, c->name, &last, &posts, IGNORED);
	row_begin(out, c->name, "", "/channel/", c->name, c->name);
	if (c->closed)
		page_tag(out, "soon", "closed");
	buf_adds(out, ROW_WHY);
	page_count(out, posts, "post");
	buf_adds(out, c->subscribers.n > 0 ? "</span><span>subscribed: " : "</span><span>nobody is subscribed");
	page_addresses(out, &c->subscribers, NULL);
	buf_adds(out, ROW_ACTIONS);
	buf_adds(out, ROW_END);
}

enum mr_rc
page_channels(struct request *req, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_channels channels = { 0 };

	page_begin(req, "Channels", "every reader sees every post");
	rows_begin(req->out, "channels");
	TRY(mr_channel_list(req->room, &channels, err));
	for (size_t i = 0; i < channels.n; i++)
		add_channel(req, req->out, &channels.v[i]);
	rows_end(req->out, channels.n, "No channels", "mailroom channel create NAME makes one.");
	return MR_OK;
}

static bool
add_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct request *req = ctx;

	(void)number;
	letter_whole(req, msg, "", false);
	buf_adds(req->out, "</article>\n");
	return true;
}

enum mr_rc
page_channel(struct request *req, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	struct buf *out = req->out;
	uint64_t last = 0;
	size_t posts = 0;

	TRY(mr_channel_get(req->room, req->rest, &channel, err));
	TRY(mr_channel_count(req->room, channel.name, &last, &posts, err));
	page_begin(req, channel.name, NULL);
	html_addf(out, "<div class=\"head\"><h1>channel:%s</h1><p class=\"soft\">", channel.name);
	page_count(out, posts, "post");
	html_addf(out, "%s</p><div class=\"actions\">", posts > POSTS_SHOWN ? ", the last 50" : "");
	if (req->may_write && !channel.closed)
		page_link(out, "/write?to=channel%3A", channel.name, "button first", "Post");
	buf_adds(out, "</div></div>\n<div data-part=\"posts\">");
	TRY(mr_channel_read(
	    req->room, channel.name, last > POSTS_SHOWN ? last - POSTS_SHOWN : 0, true, add_post, req, err));
	if (posts == 0)
		page_quiet(out, "No posts", "Nothing was posted yet, or nothing of it is kept.");
	buf_adds(out, "</div>\n");
	return MR_OK;
}
