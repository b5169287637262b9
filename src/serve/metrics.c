/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - /metrics in the text format of Prometheus. All of it is looked up when it is asked for, also what was
 * sent and done in the last minute: the mail itself tells, so a restart of the server loses nothing.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "serve/serve.h"

#define MINUTE_MS 60000

/* A family of samples: one number of each agent, or of each queue. */
struct family {
	const char *name, *state, *help; /* a state, where a family has one; help NULL: of the family above */
	size_t at;                       /* of the number */
};

struct of_agent {
	size_t unread, oldest_s, held, sent, came, read;
};
#define OF_AGENT(member) offsetof(struct of_agent, member)
static const struct family agent_families[] = {
	{ "unread", NULL, "Unread messages of an agent.", OF_AGENT(unread) },
	{ "oldest_unread_seconds", NULL, "Age of the oldest unread message of an agent; 0: none.", OF_AGENT(oldest_s) },
	{ "held", NULL, "Mail and work in the hands of an agent.", OF_AGENT(held) },
	{ "sent_last_minute", NULL, "Messages that an agent sent in the last minute.", OF_AGENT(sent) },
	{ "came_last_minute", NULL, "Messages that came for an agent in the last minute.", OF_AGENT(came) },
	{ "read_last_minute", NULL, "How many of those that came were read.", OF_AGENT(read) },
};

struct of_queue {
	struct mr_queue_counts now;
	struct mr_queue_pace pace;
};
#define OF_QUEUE(member) offsetof(struct of_queue, member)
static const struct family queue_families[] = {
	{ "queue", "ready", "Work of a queue, by state.", OF_QUEUE(now.ready) },
	{ "queue", "delayed", NULL, OF_QUEUE(now.delayed) },
	{ "queue", "claimed", NULL, OF_QUEUE(now.claimed) },
	{ "queue", "failed", NULL, OF_QUEUE(now.failed) },
	{ "queue", "done", NULL, OF_QUEUE(now.done) },
	{ "queue_came_last_minute", NULL, "Work that came into a queue in the last minute.", OF_QUEUE(pace.came) },
	{ "queue_done_last_minute", NULL, "Work of a queue that was done in the last minute.", OF_QUEUE(pace.done) },
	{ "queue_failed_last_minute", NULL, "Work of a queue that failed in the last minute.", OF_QUEUE(pace.failed) },
};

static void
heading(struct buf *out, const char *name, const char *help)
{
	buf_addf(out, "# HELP mailroom_%s %s\n# TYPE mailroom_%s gauge\n", name, help, name);
}

/* Backslash, quote and line break are escaped in the value of a label. */
static void
sample(struct buf *out, const char *name, const char *label, const char *value, const char *state, size_t number)
{
	buf_addf(out, "mailroom_%s{%s=\"", name, label);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_addc(out, '\\');
		buf_adds(out, *value == '\n' ? "\\n" : (const char[]){ *value, '\0' });
	}
	buf_addf(out, "\"%s%s%s} %zu\n", state ? ",state=\"" : "", state ? state : "", state ? "\"" : "", number);
}

/* names[i] has its numbers at numbers + i * size. */
static void
add_families(struct buf *out, const struct family *families, size_t families_n, const char *label,
    const struct mr_names *names, const void *numbers, size_t size)
{
	for (const struct family *f = families; f < families + families_n; f++) {
		if (f->help)
			heading(out, f->name, f->help);
		for (size_t i = 0; i < names->n; i++)
			sample(out, f->name, label, names->v[i], f->state,
			    *(const size_t *)(const void *)((const char *)numbers + i * size + f->at));
	}
}
#define ADD_FAMILIES(out, families, label, names, numbers)                                                             \
	add_families(out, families, sizeof(families) / sizeof(families[0]), label, names, numbers, sizeof(*(numbers)))

static enum mr_rc
add_agents(struct buf *out, const struct mr_attention *all, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(free_ptr) struct of_agent *numbers = calloc(all->boxes_n + 1, sizeof(*numbers));
	int64_t now_ms = clock_now_ms();
	for (size_t i = 0; numbers && i < all->boxes_n; i++) {
		const struct mr_box *box = &all->boxes[i];
		bool old = box->oldest_ms > 0 && box->oldest_ms < now_ms;

		TRY(mr_got(names_add(&names, str_of(box->agent)), err));
		numbers[i] = (struct of_agent){ .unread = box->unread,
			.oldest_s = old ? (size_t)(now_ms - box->oldest_ms) / 1000 : 0,
			.held = box->held,
			.sent = box->sent,
			.came = box->came + box->archived,
			.read = box->seen + box->archived };
	}
	TRY(mr_got(numbers != NULL, err));
	ADD_FAMILIES(out, agent_families, "agent", &names, numbers);
	return MR_OK;
}

static enum mr_rc
add_queues(struct request *req, struct buf *out, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };

	(void)mr_queue_list(req->room, &queues, IGNORED); /* a room without queues has none to show */
	mr_auto(free_ptr) struct of_queue *numbers = calloc(queues.n + 1, sizeof(*numbers));

	for (size_t i = 0; numbers && i < queues.n; i++) {
		const char *name = queues.v[i].name;
		struct of_queue *n = &numbers[names.n];

		if (mr_queue_count(req->room, name, &n->now, IGNORED) == MR_OK && /* else it was deleted just now */
		    mr_queue_pace(req->room, name, clock_now_ms() - MINUTE_MS, &n->pace, IGNORED) == MR_OK)
			TRY(mr_got(names_add(&names, str_of(name)), err));
	}
	TRY(mr_got(numbers != NULL, err));
	ADD_FAMILIES(out, queue_families, "queue", &names, numbers);
	return MR_OK;
}

enum mr_rc
metrics(struct request *req, struct mr_error *err)
{
	mr_auto(mr_attention_done) struct mr_attention all = { 0 };
	struct buf *out = req->out;

	TRY(mr_attention(req->room, &(struct mr_attention_options){ .minute = true }, &all, err));
	req->reply->type = "text/plain; version=0.0.4; charset=utf-8";
	TRY(add_agents(out, &all, err));
	TRY(add_queues(req, out, err));
	heading(out, "dead", "Dead letters and failed work of the room.");
	buf_addf(out, "mailroom_dead %zu\n", all.dead);
	heading(out, "needs", "What needs a person now, by kind.");
	for (size_t i = 0; i < MR_NEED_KINDS; i++)
		sample(out, "needs", "kind", mr_need_word((enum mr_need_kind)i), NULL, all.total[i]);
	return MR_OK;
}
