/* SPDX-License-Identifier: MIT */
/* cmd_queue.c - mailroom queue: work queues, from which one of many takes each message. */
#include "helptext.h"

const char *
queue_status_word(enum mr_queue_status status)
{
	static const char *const words[] = {
		[MR_QUEUE_ACTIVE] = "active", [MR_QUEUE_PAUSED] = "paused", [MR_QUEUE_CLOSED] = "closed"
	};

	return words[status];
}

/* ---- create, pause, resume, close, delete ---- */

int
cmd_queue_create(struct cli *cli, const struct queue_options *o)
{
	const char *name = bare_name("queue", cli->argv[0]);
	struct mr_queue q = {
		.claimers = o->claimers ? o->claimers : "*",
		.lease_ms = o->lease_ms,
		.by_priority = o->order && strcmp(o->order, "priority") == 0,
		.max_claims = (unsigned)o->max_claims,
		.attempts = (unsigned)o->attempts,
	};

	if (strlen(name) >= sizeof(q.name))
		return cli_usage(cli, "that name is too long");
	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	TRY_CLI(mr_queue_create(cli->room, &cli->self, &q, &cli->err));
	return say_state(cli, "queue", "created");
}

/* pause, resume, close */
int
cmd_queue_status(struct cli *cli, const struct queue_options *)
{
	bool pause = strcmp(cli->subword, "pause") == 0, close = strcmp(cli->subword, "close") == 0;
	enum mr_queue_status status = pause ? MR_QUEUE_PAUSED : close ? MR_QUEUE_CLOSED : MR_QUEUE_ACTIVE;

	TRY_CLI(mr_queue_set_status(cli->room, cli->argv[0], status, &cli->err));
	return say_state(cli, "queue", status == MR_QUEUE_ACTIVE ? "resumed" : queue_status_word(status));
}

int
cmd_queue_delete(struct cli *cli, const struct queue_options *o)
{
	size_t dead = 0;

	TRY_CLI(mr_queue_delete(cli->room, cli->argv[0], o->force, &dead, &cli->err));
	if (dead > 0)
		cli_warn(cli, "%zu message%s went to dead letters: mailroom dead list", dead, dead == 1 ? "" : "s");
	return say_state(cli, "queue", "deleted");
}

/* ---- list, show ---- */

/* claims and tasks NULL: a row of the list. */
static void
list_queue(struct listing *list, const struct mr_queue *q, const struct mr_queue_counts *c, const struct buf *claims,
    const struct buf *tasks, size_t more)
{
	list_row(list, col("NAME", kv_str("name", q->name)),
	    col("STATUS", kv_str("status", queue_status_word(q->status))), kv_str("claimers", q->claimers),
	    kv_str("order", q->by_priority ? "priority" : "fifo"), kv_int("max_claims", q->max_claims),
	    kv_int("lease_seconds", q->lease_ms / 1000), kv_int("attempts", q->attempts),
	    kv_str("created_by", q->created_by), kv_time("created", q->created_ms),
	    col("READY", kv_size("ready", c->ready)), col("DELAYED", kv_size("delayed", c->delayed)),
	    col("CLAIMED", kv_size("claimed", c->claimed)), col("DONE", kv_size("done", c->done)),
	    col("FAILED", kv_size("failed", c->failed)), col("LIVE", kv_size("live_claimers", c->claimers)),
	    col("UNKNOWN", kv_size("unknown_claimers", c->claimers_unknown)),
	    col_name("CLAIMERS", kv_str(NULL, q->claimers)), kv_json("claims", claims), kv_json("tasks", tasks),
	    tasks ? kv_size("more_tasks", more) : kv_none());
}

int
cmd_queue_list(struct cli *cli, const struct queue_options *)
{
	mr_auto(list_done) struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };
	enum mr_rc rc = mr_queue_list(cli->room, &queues, &cli->err);

	for (size_t i = 0; i < queues.n; i++) {
		struct mr_queue_counts counts = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc counted = mr_queue_count(cli->room, queues.v[i].name, &counts, &err);

		if (counted == MR_OK)
			list_queue(&list, &queues.v[i], &counts, NULL, NULL, 0);
		else if (counted != MR_NOTFOUND) /* not found: deleted this very moment */
			return cli_fail(cli, &err);
	}
	TRY_CLI(rc);
	return list_end(&list, "no queues; `mailroom queue create NAME` makes one\n");
}

static void
list_task(struct listing *list, const struct mr_queue_task *task, unsigned attempts)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct said since = task->since_ms > 0 ? dated(task->since_ms) : (struct said){ "-" };
	char attempt[32];

	(void)snprintf(attempt, sizeof(attempt), attempts > 0 ? "%u of %u" : "%u", task->attempt, attempts);
	(void)fence_add(&subject, str_of(task->subject), FENCE_NAME, FENCE_FIELD_CHARS);
	list_row(list, kv_str("id", task->id), col("STATE", kv_str("state", task->state)),
	    col_str("ID", short_id(task->id)), kv_str("from", task->from), kv_str("subject", task->subject),
	    col_name("WHO", kv_str("who", task->who)), col_str("SINCE", since.text), col_str("ATTEMPT", attempt),
	    col_fenced("SUBJECT", &subject), kv_int("attempt", task->attempt), kv_time("since", task->since_ms),
	    kv_time("until", task->until_ms));
}

static void
show_text(struct cli *cli, const struct mr_queue *q, const struct mr_queue_counts *c)
{
	struct buf *out = &cli->out;

	fence_addf(out, "queue:%s is %s\n", q->name, queue_status_word(q->status));
	buf_addf(out, "  %zu ready, %zu delayed, %zu claimed, %zu done, %zu failed\n", c->ready, c->delayed, c->claimed,
	    c->done, c->failed);
	fence_addf(out, "  claimers '%s', %zu of them live", q->claimers, c->claimers);
	if (c->claimers_unknown > 0)
		buf_addf(out, ", %zu unknown (see 'mailroom who')", c->claimers_unknown);
	buf_addf(out, "\n  order %s, lease %s, ", q->by_priority ? "priority" : "fifo", lasting(q->lease_ms).text);
	if (q->attempts > 0)
		buf_addf(out, "%u attempts (a release does not count)", q->attempts);
	else
		buf_adds(out, "attempts without limit");
	if (q->max_claims > 0)
		buf_addf(out, ", at most %u claims at a time", q->max_claims);
	fence_addf(out, "\n  created by '%s', %s\n", q->created_by, dated(q->created_ms).text);
}

int
cmd_queue_show(struct cli *cli, const struct queue_options *o)
{
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	mr_auto(mr_list_done) struct mr_queue_tasks tasks = { 0 };
	mr_auto(list_done) struct listing claims = { .cli = cli, .form = LIST_ARRAY };
	mr_auto(list_done) struct listing list = { .cli = cli, .form = LIST_ARRAY };
	struct mr_queue_counts counts = { 0 };
	size_t limit = (size_t)o->limit;

	TRY_CLI(mr_queue_get(cli->room, cli->argv[0], &q, &cli->err));
	TRY_CLI(mr_queue_count(cli->room, q.name, &counts, &cli->err));
	TRY_CLI(mr_queue_tasks(cli->room, q.name, o->done, limit, &tasks, &cli->err));
	if (!cli->json)
		show_text(cli, &q, &counts);
	for (size_t i = 0; i < tasks.n; i++) {
		const struct mr_queue_task *task = &tasks.v[i];
		bool claimed = strcmp(task->state, "claimed") == 0;

		if (claimed && cli->json)
			list_row(&claims, kv_str("id", task->id), kv_str("holder", task->who),
			    kv_int("attempt", task->attempt), kv_time("since", task->since_ms),
			    kv_time("lease_until", task->until_ms), kv_bool("live", !task->over));
		else if (claimed) {
			/* A claim as text, without its token: that is the holder's proof. */
			int64_t age_ms = clock_now_ms() - task->since_ms;

			fence_addf(&cli->out, "  %s held by '%s'", short_id(task->id), task->who);
			if (task->since_ms > 0)
				buf_addf(&cli->out, " for %s", lasting(age_ms > 0 ? age_ms : 0).text);
			buf_addf(&cli->out, ", attempt %u", task->attempt);
			if (q.attempts > 0)
				buf_addf(&cli->out, " of %u", q.attempts);
			buf_addf(&cli->out, ", %s\n", task->over ? "over" : "live");
		}
		if (i < limit)
			list_task(&list, task, q.attempts);
	}
	size_t more = tasks.more + (tasks.n > limit ? tasks.n - limit : 0);

	if (cli->json) {
		list_queue(&(struct listing){ .cli = cli }, &q, &counts, list_json(&claims), list_json(&list), more);
		return EXIT_DONE;
	}
	(void)list_end(&list, "");
	if (more > 0)
		buf_addf(&cli->out, "%zu more: --limit N\n", more);
	return EXIT_DONE;
}

/* ---- wait ---- */

int
cmd_queue_wait(struct cli *cli, const struct queue_options *o)
{
	const char *name = bare_name("queue", cli->argv[0]);
	struct mr_queue_left left = { 0 };
	enum mr_rc rc = mr_queue_wait(cli->room, cli->argv[0], o->empty, o->timeout_ms, &left, &cli->err);
	size_t ready = left.ready + left.reserved;

	if (rc != MR_OK && rc != MR_EMPTY)
		return cli_fail(cli, &cli->err);
	if (!out_json(cli, kv_str("name", name), kv_size("ready", ready), kv_size("delayed", left.delayed),
		kv_size("claimed", left.claimed)))
		fence_addf(&cli->out, "queue:%s: %zu ready, %zu delayed, %zu claimed\n", name, ready, left.delayed,
		    left.claimed);
	if (rc == MR_OK)
		return EXIT_DONE;
	cli_warn(cli, "the time is up, and %s", o->empty ? "the queue is not empty" : "nothing is ready");
	return EXIT_NOTHING;
}
