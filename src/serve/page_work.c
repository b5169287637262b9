/* SPDX-License-Identifier: MIT */
/* page_work.c - queues as a board, and dead letters. */
#include "base/clock.h"
#include "serve/page.h"

#define CARDS_SHOWN 12 /* in a column */
#define DONE 3
#define DONE_SHOWN 5 /* of what is done */

/* ---- Queues ---- */

static const char *const columns[][2] = { { "Ready", "ready reserved" }, { "Delayed", "delayed" },
	{ "Claimed", "claimed" }, { "Done", "done" }, { "Failed", "failed" } };
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct board {
	struct reply *reply;
	struct request *req;
	const struct mr_queue *queue;
	struct buf cards[COLUMNS];
	size_t n[COLUMNS];
	struct reply card; /* buttons write into a reply */
};

static void
board_done(struct board *b)
{
	for (size_t i = 0; i < COLUMNS; i++)
		buf_done(&b->cards[i]);
}

static void
card_buttons(struct reply *card, struct request *req, const struct mr_queue *q, const struct mr_queue_task *task)
{
	struct buf *out = &card->body;
	bool claimed = strcmp(task->state, "claimed") == 0, failed = strcmp(task->state, "failed") == 0;

	if (!req->may_write || (!claimed && !failed))
		return;
	buf_adds(out, "<div class=\"actions\">");
	if (claimed)
		page_button(card, req, "/do/release", "Release", "", FIELDS({ "id", task->id }, { "queue", q->name }));
	if (failed) {
		page_button(card, req, "/do/retry", "Retry", "", FIELDS({ "id", task->id }));
		page_button(card, req, "/do/drop", "Drop", "danger", FIELDS({ "id", task->id }));
	}
	buf_adds(out, "</div>");
}

static void
add_card(struct board *b, const struct mr_queue_task *task)
{
	size_t c = 0;

	while (c < COLUMNS && !strstr(columns[c][1], task->state))
		c++;
	if (c == COLUMNS || b->n[c]++ >= (c == DONE ? DONE_SHOWN : CARDS_SHOWN))
		return;
	struct reply card = { .body = b->cards[c] };
	struct buf *out = &card.body;

	html_addf(out, "<li class=\"card\" data-key=\"%s\">", task->id);
	page_link(out, "/thread/", task->id, "title", *task->subject ? task->subject : "(no subject)");
	buf_adds(out, "<div class=\"soft\">");
	html_addf(out, "%s%s", *task->who ? task->who : task->from, task->since_ms > 0 ? ", " : "");
	page_time(out, task->since_ms);
	if (task->attempt > 1 || c == 2)
		html_addf(out, b->queue->attempts > 0 ? ", attempt %u of %u" : ", attempt %u", task->attempt,
		    b->queue->attempts);
	if (task->until_ms > 0) {
		buf_adds(out, c == 2 ? ", lease ends " : ", starts ");
		page_time(out, task->until_ms);
	}
	buf_adds(out, "</div>");
	card_buttons(&card, b->req, b->queue, task);
	buf_adds(out, "</li>");
	b->cards[c] = card.body;
}

static void
queue_head(struct reply *reply, struct request *req, const struct mr_queue *q, const struct mr_queue_counts *c)
{
	struct buf *out = &reply->body;
	bool active = q->status == MR_QUEUE_ACTIVE;
	char lease[24];

	duration_text(q->lease_ms, lease);
	html_addf(out, "<div class=\"group\" id=\"queue:%s\"><h2>queue:%s</h2>", q->name, q->name);
	page_tag(out, active ? "good" : "soon", queue_status_word(q->status));
	html_addf(
	    out, "<span class=\"soft\">%s, lease %s, ", strcmp(q->claimers, "*") == 0 ? "anybody" : q->claimers, lease);
	if (q->attempts > 0)
		page_count(out, q->attempts, "attempt");
	else
		buf_adds(out, "attempts without limit");
	html_addf(out, ", %zu live claimer%s</span><div class=\"actions\">", c->claimers, c->claimers == 1 ? "" : "s");
	page_button(reply, req, "/do/queue", active ? "Pause" : "Resume", "",
	    FIELDS({ "queue", q->name }, { "status", active ? "pause" : "resume" }));
	buf_adds(out, "</div></div>\n");
}

static enum mr_rc
add_queue(struct reply *reply, struct request *req, const struct mr_queue *q, struct mr_error *err)
{
	mr_auto(board_done) struct board b = { .reply = reply, .req = req, .queue = q };
	mr_auto(mr_list_done) struct mr_queue_tasks tasks = { 0 };
	struct buf *out = &reply->body;
	struct mr_queue_counts c = { 0 };

	TRY(mr_queue_count(req->room, q->name, &c, err));
	TRY(mr_queue_tasks(req->room, q->name, true, CARDS_SHOWN, &tasks, err));
	for (size_t i = 0; i < tasks.n; i++)
		add_card(&b, &tasks.v[i]);
	const size_t counts[COLUMNS] = { c.ready, c.delayed, c.claimed, c.done, c.failed };

	queue_head(reply, req, q, &c);
	buf_adds(out, "<div class=\"board\" tabindex=\"0\" role=\"group\" aria-label=\"Work of the queue\">");
	for (size_t i = 0; i < COLUMNS; i++) {
		html_addf(out, "<section class=\"column%s\"><h3>%s<span class=\"count\">%zu</span></h3>",
		    counts[i] > 0 ? "" : " none", columns[i][0], counts[i]);
		if (b.cards[i].len > 0) {
			buf_adds(out, "<ul class=\"cards\">");
			buf_add(out, buf_str(&b.cards[i]));
			buf_adds(out, "</ul>");
		}
		size_t shown = i == DONE ? DONE_SHOWN : CARDS_SHOWN;

		if (counts[i] > shown)
			html_addf(out, "<p class=\"soft\">and %zu more</p>", counts[i] - shown);
		buf_adds(out, "</section>");
		out->failed |= b.cards[i].failed;
	}
	buf_adds(out, "</div>\n");
	return MR_OK;
}

enum mr_rc
page_queues(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };

	page_begin(reply, req, "Queues");
	page_head(&reply->body, "Queues", "each piece of work goes to one claimer");
	buf_adds(&reply->body, "<div data-part=\"queues\">");
	TRY(mr_queue_list(req->room, &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		enum mr_rc rc = add_queue(reply, req, &queues.v[i], err);

		if (rc != MR_NOTFOUND) /* deleted this very moment */
			TRY(rc);
	}
	if (queues.n == 0)
		page_quiet(&reply->body, "No queues", "mailroom queue create NAME makes one.");
	buf_adds(&reply->body, "</div>\n");
	page_end(reply, req);
	return MR_OK;
}

/* ---- Dead letters ---- */

struct dead_list {
	struct reply *reply;
	struct request *req;
	size_t n;
};
#define DEAD_SHOWN 200

static bool
add_dead(void *ctx, const char *queue, const struct mr_message *msg)
{
	struct dead_list *list = ctx;
	struct buf *out = &list->reply->body;

	if (list->n++ >= DEAD_SHOWN)
		return true;
	row_begin(out, msg->id, "");
	page_link(out, "/dead/", msg->id, "title", *msg->subject ? msg->subject : "(no subject)");
	if (*msg->type)
		page_tag(out, "", msg->type);
	page_time(out, msg->date_ms);
	row_why(out);
	page_address(out, msg->from);
	buf_adds(out, " \u2192 ");
	page_addresses(out, &msg->to);
	html_addf(out, "</span><span>%s%s", *queue ? "failed in queue:" : "could not be delivered", queue);
	row_side(out, "actions");
	page_button(list->reply, list->req, "/do/retry", "Retry", "", FIELDS({ "id", msg->id }));
	page_button(list->reply, list->req, "/do/drop", "Drop", "danger", FIELDS({ "id", msg->id }));
	row_end(out);
	return true;
}

enum mr_rc
page_dead(struct request *req, struct reply *reply, struct mr_error *err)
{
	struct dead_list list = { .reply = reply, .req = req };

	page_begin(reply, req, "Dead letters");
	page_head(&reply->body, "Dead letters", "kept until somebody decides");
	rows_begin(&reply->body, "dead");
	TRY(mr_dead_each(req->room, add_dead, &list, err));
	rows_end(&reply->body, list.n, "No dead letters", "Everything could be delivered, and no work failed.");
	if (list.n > DEAD_SHOWN)
		html_addf(&reply->body, "<p class=\"soft\">and %zu more</p>", list.n - DEAD_SHOWN);
	page_end(reply, req);
	return MR_OK;
}

enum mr_rc
page_dead_one(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char queue[MR_ADDRESS_MAX + 1] = "";
	struct letter l;

	TRY(mr_dead_get(req->room, req->rest, &msg, queue, err));
	if (!letter_copy(&l, &msg, &req->own))
		return mr_nomem(err);
	page_begin(reply, req, *l.subject ? l.subject : "(no subject)");
	page_head(&reply->body, *l.subject ? l.subject : "(no subject)", *queue ? "failed work" : "a dead letter");
	letter_whole(reply, req, &l, l.subject, true);
	buf_adds(&reply->body, "<div class=\"actions\">");
	page_button(reply, req, "/do/retry", "Retry", "", FIELDS({ "id", l.id }, { "back", "/dead" }));
	page_button(reply, req, "/do/drop", "Drop", "danger", FIELDS({ "id", l.id }, { "back", "/dead" }));
	buf_adds(&reply->body, "</div></article>\n");
	page_end(reply, req);
	return MR_OK;
}
