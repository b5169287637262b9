/* SPDX-License-Identifier: MIT */
/* page_agents.c - agents by evidence, a mailbox as its owner would see it, channels. */
#include "base/clock.h"
#include "serve/page.h"

#define IDLE_MS ((int64_t)10 * 60 * 1000)
#define MAIL_SHOWN 100
#define POSTS_SHOWN 50

/* ---- Agents ---- */

struct agent_list {
	struct reply *reply;
	struct request *req;
	size_t n, live;
	bool lives;
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

/* "claude-code-0f3c..." is a session of claude-code. */
static struct mr_str
harness_of(const char *session)
{
	static const char *const known[] = { "claude-code", "codex", "gemini", "cursor" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_starts(str_of(session), known[i]))
			return str_of(known[i]);
	return str_of(session);
}

static void
agent_facts(struct buf *out, const struct mr_agent *a)
{
	mr_auto(buf_done) struct buf harness = BUF_INIT;

	buf_add(&harness, harness_of(a->session));
	html_addf(out, "<td class=\"soft\">%s</td><td class=\"soft path\" title=\"%s\"><bdi>%s</bdi></td>",
	    buf_z(&harness), a->worktree, a->worktree);
}

static void
add_agent(struct agent_list *list, const struct mr_agent *a)
{
	struct reply *reply = list->reply;
	struct buf *out = &reply->body;
	struct mr_counts c = { 0 };
	const char *state = state_of(a, list->lives);
	bool live = strcmp(state, "live") == 0, gone = strcmp(state, "gone") == 0;
	bool operator= strcmp(a->name, OPERATOR_NAME) == 0;

	list->n++;
	list->live += live || strcmp(state, "idle") == 0;
	(void)mr_count(list->req->room, a->name, &c, IGNORED);
	(void)mr_queue_held(list->req->room, a->name, NULL, count_held, &c.held, IGNORED);
	html_addf(out, "<tr data-key=\"%s\"><th scope=\"row\">", a->name);
	page_address(out, a->name);
	if (*a->role)
		html_addf(out, "<small>%s</small>", a->role);
	buf_adds(out, "</th><td>");
	page_tag(out, live ? "good" : gone && (c.unread || c.held) ? "now" : "", operator? "you" : state);
	html_addf(out, "</td><td class=\"number\" data-label=\"unread\">");
	if (c.urgent > 0)
		html_addf(out, "<span class=\"tag now\">%zu urgent</span> ", c.urgent);
	html_addf(out, "%zu</td><td data-label=\"oldest\">", c.unread);
	page_time(out, c.oldest_unread_ms);
	html_addf(out, "</td><td class=\"number\" data-label=\"held\">%zu</td><td data-label=\"seen\">", c.held);
	page_time(out, a->seen_ms);
	if (a->door)
		html_addf(out, "<span class=\"soft\"> by %s</span>", mr_door_word(a->door));
	buf_adds(out, "</td>");
	agent_facts(out, a);
	buf_adds(out, "<td class=\"last\"><div class=\"actions\">");
	if (list->req->may_write && !operator) {
		page_button(reply, list->req, "/do/nudge", "Nudge", "", FIELDS({ "agent", a->name }));
		page_link(out, "/write?to=", a->name, "button", "Write");
	}
	buf_adds(out, "</div></td></tr>\n");
}

enum mr_rc
page_agents(struct request *req, struct reply *reply, struct mr_error *err)
{
	static const char *const headings[] = { "Name", "State", "*Unread", "Oldest", "*Held", "Last seen", "Harness",
		"Worktree", "" };
	mr_auto(buf_done) struct buf head = BUF_INIT;
	struct reply rows = { 0 };
	struct agent_list list = { .reply = &rows, .req = req, .lives = mr_room_has_lives(req->room) };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	enum mr_rc rc = mr_agent_list(req->room, &agents, err);
	struct buf *out = &reply->body;

	for (size_t i = 0; i < agents.n; i++)
		add_agent(&list, &agents.v[i]);

	if (rc == MR_OK) {
		buf_addf(&head, list.lives ? "%zu live of %zu" : "%zu", list.lives ? list.live : list.n, list.n);
		page_begin(reply, req, "Agents");
		page_head(out, "Agents", buf_z(&head));
		buf_adds(out,
		    "<div data-part=\"agents\" class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Agents\"><table><thead><tr>");
		for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++)
			html_addf(out,
			    *headings[i] == '*' ? "<th scope=\"col\" class=\"number\">%s</th>"
			    : *headings[i]      ? "<th scope=\"col\">%s</th>"
						: "<td>%s</td>",
			    headings[i] + (*headings[i] == '*'));
		buf_adds(out, "</tr></thead><tbody>\n");
		buf_add(out, buf_str(&rows.body));
		buf_adds(out, "</tbody></table></div>\n");
		out->failed |= rows.body.failed;
		page_end(reply, req);
	}
	buf_done(&rows.body);
	return rc;
}

enum mr_rc
page_agent(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(letters_done) struct letters all = { 0 };
	struct buf *out = &reply->body;
	struct mr_counts c = { 0 };

	TRY(mr_agent_get(req->room, req->rest, &agent, err));
	TRY(mr_count(req->room, agent.name, &c, err));
	TRY(letters_load(req, agent.name, &(struct mr_filter){ 0 }, MAIL_SHOWN, &all, err));
	page_begin(reply, req, agent.name);
	html_addf(out, "<div class=\"head\"><h1>%s</h1><p class=\"soft\">%s", agent.name,
	    state_of(&agent, mr_room_has_lives(req->room)));
	if (agent.life > 0)
		html_addf(out, ", life %u", agent.life);
	if (agent.seen_ms > 0) {
		buf_adds(out, ", seen ");
		page_time(out, agent.seen_ms);
		html_addf(out, agent.door ? " ago by %s" : " ago%s", mr_door_word(agent.door));
	}
	html_addf(out, ", %zu unread, its mailbox read-only</p><div class=\"actions\">", c.unread);
	if (strcmp(agent.name, OPERATOR_NAME) != 0) {
		page_button(reply, req, "/do/nudge", "Nudge", "", FIELDS({ "agent", agent.name }));
		if (req->may_write)
			page_link(out, "/write?to=", agent.name, "button first", "Write");
	}
	buf_adds(out, "</div></div>\n");
	rows_begin(out, "mailbox");
	for (size_t i = 0; i < all.n; i++)
		letter_row(out, &all.v[i], NULL);
	rows_end(out, all.n, "No mail", "Nothing came or went yet.");
	page_end(reply, req);
	return MR_OK;
}

/* ---- Channels ---- */

static void
add_channel(struct request *req, struct buf *out, const struct mr_channel *c)
{
	uint64_t last = 0;
	size_t posts = 0;

	(void)mr_channel_count(req->room, c->name, &last, &posts, IGNORED);
	row_begin(out, c->name, "");
	page_link(out, "/channel/", c->name, "title", c->name);
	if (c->closed)
		page_tag(out, "soon", "closed");
	row_why(out);
	page_count(out, posts, "post");
	buf_adds(out, "</span><span>");
	if (c->subscribers.n > 0)
		page_addresses(out, &c->subscribers);
	else
		buf_adds(out, "nobody listens");
	row_side(out, "actions");
	row_end(out);
}

enum mr_rc
page_channels(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_channels channels = { 0 };

	page_begin(reply, req, "Channels");
	page_head(&reply->body, "Channels", "each post stays for all who read");
	rows_begin(&reply->body, "channels");
	TRY(mr_channel_list(req->room, &channels, err));
	for (size_t i = 0; i < channels.n; i++)
		add_channel(req, &reply->body, &channels.v[i]);
	rows_end(&reply->body, channels.n, "No channels", "mailroom channel create NAME makes one.");
	page_end(reply, req);
	return MR_OK;
}

struct post_list {
	struct reply *reply;
	struct request *req;
};

static bool
add_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct post_list *list = ctx;
	struct letter l;

	(void)number;
	if (letter_copy(&l, msg, &list->req->own)) {
		letter_whole(list->reply, list->req, &l, "", false);
		buf_adds(&list->reply->body, "</article>\n");
	}
	return true;
}

enum mr_rc
page_channel(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	struct post_list list = { .reply = reply, .req = req };
	struct buf *out = &reply->body;
	uint64_t last = 0;
	size_t posts = 0;

	TRY(mr_channel_get(req->room, req->rest, &channel, err));
	TRY(mr_channel_count(req->room, channel.name, &last, &posts, err));
	page_begin(reply, req, channel.name);
	html_addf(out, "<div class=\"head\"><h1>channel:%s</h1><p class=\"soft\">", channel.name);
	page_count(out, posts, "post");
	html_addf(out, "%s</p><div class=\"actions\">", posts > POSTS_SHOWN ? ", the last 50" : "");
	if (req->may_write && !channel.closed)
		page_link(out, "/write?to=channel%3A", channel.name, "button first", "Post");
	buf_adds(out, "</div></div>\n<div data-part=\"posts\">");
	TRY(mr_channel_read(
	    req->room, channel.name, last > POSTS_SHOWN ? last - POSTS_SHOWN : 0, true, add_post, &list, err));
	if (posts == 0)
		page_quiet(out, "No posts", "Nothing was posted yet, or nothing of it is kept.");
	buf_adds(out, "</div>\n");
	page_end(reply, req);
	return MR_OK;
}
