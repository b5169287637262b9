/* SPDX-License-Identifier: MIT */
/* page_attention.c - the first page: what needs the operator, the most pressing first, with its evidence and its
 * actions. */
#include "serve/page.h"

static const char *
need_title(enum mr_need_kind kind)
{
	static const char *const titles[MR_NEED_KINDS] = {
		[MR_NEED_ANSWER] = "waits for you",
		[MR_NEED_OVERDUE] = "answer overdue",
		[MR_NEED_UNREAD] = "unread for long",
		[MR_NEED_LEASE] = "lease ends",
		[MR_NEED_ATTEMPT] = "last attempt",
		[MR_NEED_FAILED] = "work failed",
		[MR_NEED_DEAD] = "dead letter",
		[MR_NEED_GONE] = "gone",
		[MR_NEED_LINK] = "link",
		[MR_NEED_THROTTLED] = "throttled",
		[MR_NEED_UNREADABLE] = "unreadable",
	};

	return titles[kind];
}

/* An action is a command line; this door has a form or a page for most of them, and need_row shows the others to be
 * typed: carrying and examining. */
static void
add_action(struct request *req, const struct mr_need *need, const struct mr_action *a, bool first)
{
	static const struct {
		const char *word, *path, *label;
	} forms[] = {
		{ "mark", "/do/mark", "Mark read" },
		{ "release", "/do/release", "Release" },
		{ "retry", "/do/retry", "Retry" },
		{ "drop", "/do/drop", "Drop" },
		{ "nudge", "/do/nudge", "Nudge" },
	};
	const char *word = a->words[strcmp(a->words[0], "dead") == 0];
	const char *agent =
	    strcmp(word, "nudge") == 0 ? a->words[1] : need->agent; /* of an overdue answer: who owes it */
	struct buf *out = req->out;

	if (strcmp(a->words[0], "reply") == 0 && req->may_write) {
		page_link(out, "/thread/", need->id, first && need->pressing ? "button first" : "button", "Answer");
		return;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (strcmp(forms[i].word, word) == 0)
			page_button(req, forms[i].path, forms[i].label, strcmp(word, "drop") == 0 ? "danger" : "",
			    FIELDS({ "id", need->id }, { "agent", agent }, { "queue", need->queue }));
}

static void
need_row(struct request *req, const struct mr_need *need)
{
	mr_auto(buf_done) struct buf key = BUF_INIT;
	struct buf *out = req->out;
	const char *level = need->pressing ? "now" : need->kind <= MR_NEED_ATTEMPT ? "soon" : "";
	bool box = need->kind == MR_NEED_UNREAD || need->kind == MR_NEED_GONE; /* it is about an agent, not a message */
	const char *to = need->kind == MR_NEED_OVERDUE && need->actions_n > 0 ? need->actions[0].words[1] : need->agent;
	bool dead = need->kind == MR_NEED_DEAD || need->kind == MR_NEED_FAILED;
	const char *title = *need->subject && !box ? need->subject
			    : *need->agent         ? need->agent
			    : *need->link          ? need->link
			    : *need->thread        ? need->thread
						   : need->path;

	buf_addf(&key, "%s %s%s%s%s%s", mr_need_word(need->kind), need->id, need->agent, need->link, need->thread,
	    need->path);
	row_begin(out, buf_z(&key), level, NULL, NULL, NULL);
	page_tag(out, level, need_title(need->kind));
	if ((*need->id && !box) || (*need->thread && !*need->agent))
		page_link(out, dead ? "/dead/" : "/thread/", *need->id ? need->id : need->thread, "title", title);
	else if (*need->agent)
		page_link(out, "/agent/", need->agent, "title", title);
	else
		html_addf(out, "<span class=\"title\">%s</span>", title);
	buf_adds(out, "<span class=\"soft\">");
	if (box && *need->subject)
		html_addf(out, "oldest: %s", need->subject);
	if (*need->from && !box) {
		page_address(out, need->from);
		buf_adds(out, *to && strcmp(to, need->from) != 0 ? " \u2192 " : "");
	}
	if (*to && strcmp(to, need->from) != 0 && !box)
		page_address(out, to);
	html_addf(out, "%s%s</span>", *need->queue ? " in queue:" : "", need->queue);
	page_time(out, need->since_ms);
	buf_adds(out, ROW_WHY);
	page_evidence(out, need->why);
	for (size_t i = 0; i < need->actions_n && (*need->link || need->kind == MR_NEED_UNREADABLE); i++) {
		buf_adds(out, i > 0 ? " or <code>mailroom" : "; <code>mailroom");
		for (const char *const *w = need->actions[i].words; *w; w++)
			html_addf(out, " %s", *w);
		buf_adds(out, "</code>");
	}
	buf_adds(out, ROW_ACTIONS);
	for (size_t i = 0; i < need->actions_n; i++)
		add_action(req, need, &need->actions[i], i == 0);
	if (box)
		page_link(out, "/agent/", need->agent, "button", "Mailbox");
	buf_adds(out, ROW_END);
}

static void
room_numbers(struct request *req, const struct mr_attention *a)
{
	struct buf *out = req->out;
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	size_t live = 0;

	(void)mr_agent_list(req->room, &agents, IGNORED);
	for (size_t i = 0; i < agents.n; i++)
		live += agents.v[i].life > 0 && mr_agent_presence(&agents.v[i]) == MR_LIVE;
	html_addf(out,
	    "<ul class=\"numbers\"><li><b>%zu</b> live of %zu mailboxes</li><li><b>%zu</b> unread</li><li><b>%zu</b> in hand</li><li><b>%zu</b> dead letters</li><li><b>%zu</b> new in the last minute, <b>%zu</b> of them read</li></ul>\n",
	    live, a->boxes_n, a->unread, a->held, a->dead, a->came, a->seen);
}

enum mr_rc
page_attention(struct request *req, struct mr_error *err)
{
	mr_auto(mr_attention_done) struct mr_attention a = { 0 };
	struct buf *out = req->out;
	size_t now = 0, all = 0;
	char more[80];

	TRY(page_needs(req, &a, &all, err));
	req->needs = &all;
	for (size_t i = 0; i < a.n; i++)
		now += a.needs[i].pressing;
	int n = snprintf(more, sizeof(more), a.n == 0 ? "all quiet" : "%zu thing%s need%s you", all,
	    all == 1 ? "" : "s", all == 1 ? "s" : "");

	if (now > 0)
		(void)snprintf(more + n, sizeof(more) - (size_t)n, ", %zu of them now", now);
	page_begin(req, "Attention", NULL);
	buf_adds(out, "<div data-part=\"attention\">");
	page_head(out, "Attention", more);
	rows_begin(out, "needs");
	for (size_t i = 0; i < a.n; i++)
		need_row(req, &a.needs[i]);
	rows_end(out, a.n, "All quiet", "Nobody waits for you, nothing is late, nothing is stuck.");
	if (a.more > 0)
		html_addf(out, "<p class=\"soft\">and %zu more of the same kinds</p>", a.more);
	room_numbers(req, &a);
	buf_adds(out, "</div>\n");
	return MR_OK;
}
