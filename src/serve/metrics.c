/* SPDX-License-Identifier: MIT */
/* metrics.c - /metrics in the text format of Prometheus. What is counted is looked up when it is asked for; "sent" and
 * "read" of the last minute come from the mail itself, so a restart of the server loses nothing. */
#include "base/clock.h"
#include "serve/serve.h"

/* The value of a label: backslash, quote and line break are escaped. */
static void
add_label(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			buf_addc(out, '\\');
		if (*text == '\n')
			buf_adds(out, "\\n");
		else
			buf_addc(out, *text);
	}
}

static void
sample(struct buf *out, const char *name, const char *label, const char *value, long long number)
{
	buf_addf(out, "mailroom_%s", name);
	if (label) {
		buf_addf(out, "{%s=\"", label);
		add_label(out, value);
		buf_adds(out, "\"}");
	}
	buf_addf(out, " %lld\n", number);
}

static void
heading(struct buf *out, const char *name, const char *help)
{
	buf_addf(out, "# HELP mailroom_%s %s\n# TYPE mailroom_%s gauge\n", name, help, name);
}

static long long
seconds_since(int64_t ms)
{
	return ms > 0 && ms < clock_now_ms() ? (long long)((clock_now_ms() - ms) / 1000) : 0;
}

static void
add_queue(struct buf *out, const char *queue, const char *state, size_t n)
{
	buf_adds(out, "mailroom_queue{queue=\"");
	add_label(out, queue);
	buf_addf(out, "\",state=\"%s\"} %zu\n", state, n);
}

enum mr_rc
metrics(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(mr_attention_done) struct mr_attention all = { 0 };
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };
	struct buf *out = &reply->body;

	TRY(mr_attention(req->room, &(struct mr_attention_options){ 0 }, &all, err));
	(void)mr_queue_list(req->room, &queues, IGNORED); /* a room without queues has none to show */
	reply->type = "text/plain; version=0.0.4; charset=utf-8";
	heading(out, "unread", "Unread messages of an agent.");
	for (size_t i = 0; i < all.boxes_n; i++)
		sample(out, "unread", "agent", all.boxes[i].agent, (long long)all.boxes[i].unread);
	heading(out, "oldest_unread_seconds", "Age of the oldest unread message of an agent; 0: none.");
	for (size_t i = 0; i < all.boxes_n; i++)
		sample(
		    out, "oldest_unread_seconds", "agent", all.boxes[i].agent, seconds_since(all.boxes[i].oldest_ms));
	heading(out, "held", "Mail and work in the hands of an agent.");
	for (size_t i = 0; i < all.boxes_n; i++)
		sample(out, "held", "agent", all.boxes[i].agent, (long long)all.boxes[i].held);
	heading(out, "queue", "Work of a queue, by state.");
	for (size_t i = 0; i < queues.n; i++) {
		struct mr_queue_counts n = { 0 };

		if (mr_queue_count(req->room, queues.v[i].name, &n, IGNORED) != MR_OK)
			continue; /* it was deleted just now */
		add_queue(out, queues.v[i].name, "ready", n.ready);
		add_queue(out, queues.v[i].name, "delayed", n.delayed);
		add_queue(out, queues.v[i].name, "claimed", n.claimed);
		add_queue(out, queues.v[i].name, "failed", n.failed);
	}
	heading(out, "dead", "Dead letters and failed work of the room.");
	sample(out, "dead", NULL, NULL, (long long)all.dead);
	heading(out, "came_last_minute", "Mail of the last minute that is still in the inbox of an agent.");
	for (size_t i = 0; i < all.boxes_n; i++)
		sample(out, "came_last_minute", "agent", all.boxes[i].agent, (long long)all.boxes[i].came);
	heading(out, "read_last_minute", "How much of it was read.");
	for (size_t i = 0; i < all.boxes_n; i++)
		sample(out, "read_last_minute", "agent", all.boxes[i].agent, (long long)all.boxes[i].seen);
	heading(out, "needs", "What needs a person now, by kind.");
	for (size_t i = 0; i < MR_NEED_KINDS; i++)
		sample(out, "needs", "kind", mr_need_word((enum mr_need_kind)i), (long long)all.total[i]);
	return MR_OK;
}
