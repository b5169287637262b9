/* SPDX-License-Identifier: MIT */
/* page_work.c - queues as a board, and dead letters. */
#include <stddef.h>

#include "base/clock.h"
#include "serve/page.h"

/* ---- Queues ---- */

static const struct column {
	const char *title, *states;
	size_t shown; /* cards */
	size_t count; /* where struct mr_queue_counts has their number */
} columns[] = {
	{ "Ready", "ready reserved", 12, offsetof(struct mr_queue_counts, ready) },
	{ "Delayed", "delayed", 12, offsetof(struct mr_queue_counts, delayed) },
	{ "Claimed", "claimed", 12, offsetof(struct mr_queue_counts, claimed) },
	{ "Done", "done", 5, offsetof(struct mr_queue_counts, done) },
	{ "Failed", "failed", 12, offsetof(struct mr_queue_counts, failed) },
};
#define CARDS_MOST 12

static void
add_card(struct request *req, const struct mr_queue *q, const struct mr_queue_task *task)
{
	struct buf *out = req->out;
	bool claimed = strcmp(task->state, "claimed") == 0, failed = strcmp(task->state, "failed") == 0;
	bool over = claimed && task->until_ms > 0 && task->until_ms < clock_now_ms();

	html_addf(out, "<li class=\"card\" data-key=\"%s\">", task->id);
	page_link(out, "/thread/", task->id, "title", page_subject(task->subject));
	html_addf(out, *task->who ? "<div class=\"soft\">%s" : "<div class=\"soft\">from %s",
	    *task->who ? task->who : task->from);
	if (task->since_ms > 0) {
		buf_adds(out, claimed ? " for " : ", ");
		page_time(out, task->since_ms);
		buf_adds(out, claimed ? "" : " ago");
	}
	if (task->attempt > 1 || claimed)
		html_addf(out, q->attempts > 0 ? ", attempt %u of %u" : ", attempt %u", task->attempt, q->attempts);
	if (task->until_ms > 0)
		buf_adds(out, over ? ", lease ended " : claimed ? ", lease ends " : ", starts ");
	page_time(out, task->until_ms);
	buf_adds(out, over ? " ago" : "");
	buf_adds(out, "</div><div class=\"actions\">");
	if (claimed)
		page_button(req, "/do/release", "Release", "", FIELDS({ "id", task->id }, { "queue", q->name }));
	if (failed)
		page_dead_buttons(req, task->id, req->path);
	buf_adds(out, "</div></li>");
}

static void
queue_head(struct request *req, const struct mr_queue *q, const struct mr_queue_counts *c)
{
	struct buf *out = req->out;
	bool active = q->status == MR_QUEUE_ACTIVE;
	char lease[24];

	duration_text(q->lease_ms, lease);
	html_addf(out, "<div class=\"group\" id=\"queue:%s\"><h2>queue:%s</h2>", q->name, q->name);
	page_tag(out, active ? "good" : "soon", queue_status_word(q->status));
	html_addf(out, "<span class=\"soft\">for %s (%zu live), lease %s, ",
	    strcmp(q->claimers, "*") == 0 ? "anybody" : q->claimers, c->claimers, lease);
	if (q->attempts > 0)
		page_count(out, q->attempts, "attempt");
	else
		buf_adds(out, "attempts without limit");
	buf_adds(out, "</span><div class=\"actions\">");
	page_button(req, "/do/queue", active ? "Pause" : "Resume", "",
	    FIELDS({ "queue", q->name }, { "status", active ? "pause" : "resume" }));
	buf_adds(out, "</div></div>\n");
}

static enum mr_rc
add_queue(struct request *req, const struct mr_queue *q, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_queue_tasks tasks = { 0 };
	struct buf *out = req->out;
	struct mr_queue_counts counts = { 0 };

	TRY(mr_queue_count(req->room, q->name, &counts, err));
	TRY(mr_queue_tasks(req->room, q->name, true, CARDS_MOST, &tasks, err));
	queue_head(req, q, &counts);
	buf_adds(out, "<div class=\"board\" tabindex=\"0\" role=\"group\" aria-label=\"Work of the queue\">");
	for (const struct column *c = columns; c < columns + sizeof(columns) / sizeof(columns[0]); c++) {
		size_t all = *(const size_t *)(const void *)((const char *)&counts + c->count), n = 0;

		html_addf(out,
		    "<section class=\"column%s\"><h3>%s<span class=\"count\">%zu</span></h3><ul class=\"cards\">",
		    all > 0 ? "" : " none", c->title, all);
		for (size_t i = 0; i < tasks.n && n < c->shown; i++)
			if (strstr(c->states, tasks.v[i].state)) {
				add_card(req, q, &tasks.v[i]);
				n++;
			}
		buf_adds(out, "</ul>");
		if (all > n)
			html_addf(out, "<p class=\"soft\">and %zu more</p>", all - n);
		buf_adds(out, "</section>");
	}
	buf_adds(out, "</div>\n");
	return MR_OK;
}

enum mr_rc
page_queues(struct request *req, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };

	page_begin(req, "Queues", "each piece of work goes to exactly one agent");
	buf_adds(req->out, "<div data-part=\"queues\">");
	TRY(mr_queue_list(req->room, &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		enum mr_rc rc = add_queue(req, &queues.v[i], err);

		if (rc != MR_NOTFOUND) /* deleted this very moment */
			TRY(rc);
	}
	if (queues.n == 0)
		page_quiet(req->out, "No queues", "mailroom queue create NAME makes one.");
	buf_adds(req->out, "</div>\n");
	return MR_OK;
}

/* ---- Dead letters ---- */

#define DEAD_SHOWN 200

static bool
add_dead(void *ctx, const char *queue, const struct mr_message *msg)
{
	const struct request *req = ctx;
	struct buf *out = req->out;

	row_begin(out, msg->id, "", "/dead/", msg->id, page_subject(msg->subject));
	if (*msg->type)
		page_tag(out, "", msg->type);
	page_time(out, msg->date_ms);
	buf_adds(out, ROW_WHY);
	letter_way(out, msg);
	html_addf(out, "</span><span>%s%s", *queue ? "failed in queue:" : "could not be delivered", queue);
	buf_adds(out, ROW_ACTIONS);
	page_dead_buttons(req, msg->id, "/dead");
	buf_adds(out, ROW_END);
	return true;
}

enum mr_rc
page_dead(struct request *req, struct mr_error *err)
{
	size_t all = 0;

	page_begin(req, "Dead letters", "kept until you deliver them again or drop them");
	rows_begin(req->out, "dead");
	TRY(mr_dead_each(req->room, DEAD_SHOWN, add_dead, req, &all, err));
	rows_end(req->out, all, "No dead letters", "Everything could be delivered, and no work failed.");
	if (all > DEAD_SHOWN)
		html_addf(req->out, "<p class=\"soft\">and %zu more</p>", all - DEAD_SHOWN);
	return MR_OK;
}

enum mr_rc
page_dead_one(struct request *req, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char queue[MR_ADDRESS_MAX + 1] = "";

	TRY(mr_dead_get(req->room, req->rest, &msg, queue, err));
	page_begin(req, page_subject(msg.subject), *queue ? "failed work" : "a dead letter");
	letter_whole(req, &msg, msg.subject, true);
	buf_adds(req->out, "<div class=\"actions\">");
	page_dead_buttons(req, msg.id, "/dead");
	buf_adds(req->out, "</div></article>\n");
	return MR_OK;
}
