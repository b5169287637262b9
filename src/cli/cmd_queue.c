/* SPDX-License-Identifier: MIT */
/* mailroom queue: work queues, from which one of many takes each message. */
#include "base/clock.h"
#include "cli/subword.h"
#include "helptext.h"

#define TASKS 20             /* shown at most */
#define WAIT_MS (100 * 1000) /* harnesses end a tool call after two minutes */

static const char *
status_word(enum mr_queue_status status)
{
	static const char *const words[] = {
		[MR_QUEUE_ACTIVE] = "active", [MR_QUEUE_PAUSED] = "paused", [MR_QUEUE_CLOSED] = "closed"
	};

	return words[status];
}

/* ---- create ---- */

static bool
read_settings(struct cli *cli, struct mr_queue *q)
{
	int64_t max_claims = 0, attempts = 3;
	const char *order = opt_text(cli, "order");

	q->claimers = opt_text(cli, "claimers") ? opt_text(cli, "claimers") : "*";
	q->lease_ms = 10 * 60 * 1000;
	if (!opt_number(cli, "max-claims", &max_claims) || !opt_number(cli, "attempts", &attempts) ||
	    !opt_duration(cli, "lease", &q->lease_ms))
		return false;
	if (order && strcmp(order, "fifo") != 0 && strcmp(order, "priority") != 0)
		return cli_usage(cli, "option '--order' is fifo or priority, not '%s'", order), false;
	if (max_claims > 1000000 || attempts > 1000000)
		return cli_usage(cli, "that number is too large: at most 1000000"), false;
	if (q->lease_ms <= 0)
		return cli_usage(cli, "--lease must be more than nothing"), false;
	q->by_priority = order && strcmp(order, "priority") == 0;
	q->max_claims = (unsigned)max_claims;
	q->attempts = (unsigned)attempts;
	return true;
}

static int
say(struct cli *cli, const char *name, const char *state)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_str(&j, "state", state);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s queue:%s\n", state, name);
	}
	return EXIT_DONE;
}

static const char *
bare(const char *name)
{
	return strncmp(name, "queue:", 6) == 0 ? name + 6 : name;
}

static int
run_create(struct cli *cli)
{
	struct mr_queue q = { 0 };
	struct mr_error err = { 0 };
	const char *name = bare(cli->argv[0]);

	if (!read_settings(cli, &q))
		return EXIT_USAGE;
	if (strlen(name) >= sizeof(q.name))
		return cli_usage(cli, "that name is too long");
	(void)snprintf(q.name, sizeof(q.name), "%s", name);
	if (mr_queue_create(cli->room, &cli->self, &q, &err) != MR_OK)
		return cli_fail(cli, &err);
	return say(cli, name, "created");
}

/* ---- list ---- */

struct listing {
	struct cli *cli;
	struct table table;
	size_t n;
	bool failed;
	struct mr_error err;
};

static void
json_settings(struct json *j, const struct mr_queue *q)
{
	json_key_str(j, "name", q->name);
	json_key_str(j, "status", status_word(q->status));
	json_key_str(j, "claimers", q->claimers);
	json_key_str(j, "order", q->by_priority ? "priority" : "fifo");
	json_key_int(j, "max_claims", q->max_claims);
	json_key_int(j, "lease_seconds", q->lease_ms / 1000);
	json_key_int(j, "attempts", q->attempts);
	json_key_str(j, "created_by", q->created_by);
	json_key_time(j, "created", q->created_ms);
}

static void
json_counts(struct json *j, const struct mr_queue_counts *c)
{
	json_key_int(j, "ready", (int64_t)c->ready);
	json_key_int(j, "delayed", (int64_t)c->delayed);
	json_key_int(j, "claimed", (int64_t)c->claimed);
	json_key_int(j, "done", (int64_t)c->done);
	json_key_int(j, "failed", (int64_t)c->failed);
	json_key_int(j, "live_claimers", (int64_t)c->claimers);
	json_key_int(j, "unknown_claimers", (int64_t)c->claimers_unknown);
}

static bool
add_numbers(struct table *t, const struct mr_queue_counts *c)
{
	const size_t numbers[] = { c->ready, c->delayed, c->claimed, c->done, c->failed, c->claimers,
		c->claimers_unknown };
	bool ok = true;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && ok; i++) {
		char text[24];

		(void)snprintf(text, sizeof(text), "%zu", numbers[i]);
		ok = table_add(t, text);
	}
	return ok;
}

static bool
list_one(void *ctx, const struct mr_queue *q)
{
	struct listing *l = ctx;
	struct mr_queue_counts counts = { 0 };
	enum mr_rc rc = mr_queue_count(l->cli->room, q->name, &counts, NULL, NULL, &l->err);

	if (rc == MR_NOTFOUND) /* deleted this very moment */
		return true;
	if (rc != MR_OK) {
		l->failed = true;
		return false;
	}
	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_open(&j, '{');
		json_settings(&j, q);
		json_counts(&j, &counts);
		out_json_line(l->cli, &j);
		return true;
	}
	return table_add(&l->table, q->name) && table_add(&l->table, status_word(q->status)) &&
	       add_numbers(&l->table, &counts) && table_name(&l->table, q->claimers);
}

static int
run_list(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "STATUS", "READY", "DELAYED", "CLAIMED", "DONE", "FAILED",
		"LIVE", "UNKNOWN", "CLAIMERS" };
	struct listing l = { .cli = cli, .table = { .columns = 10 } };
	struct mr_error err = { 0 };
	bool ok = true;

	for (size_t i = 0; i < 10 && ok; i++)
		ok = table_add(&l.table, heading[i]);
	enum mr_rc rc = mr_queue_each(cli->room, list_one, &l, &err);

	if (rc == MR_OK && !l.failed && !cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	else if (rc == MR_OK && !l.failed && !cli->json)
		buf_adds(&cli->out, "no queues; mailroom queue create NAME makes one\n");
	mr_names_done(&l.table.cells);
	if (rc != MR_OK || l.failed)
		return cli_fail(cli, rc != MR_OK ? &err : &l.err);
	return EXIT_DONE;
}

/* ---- show ---- */

struct showing {
	struct cli *cli;
	struct buf claims;
	struct json j;
	unsigned attempts; /* of the queue; 0: no limit */
};

static void
show_claim(void *ctx, const struct mr_queue_claim *claim)
{
	struct showing *s = ctx;

	if (s->cli->json) {
		json_open(&s->j, '{');
		json_key_str(&s->j, "id", claim->id);
		json_key_str(&s->j, "holder", claim->holder);
		json_key_int(&s->j, "attempt", claim->attempt);
		json_key_time(&s->j, "since", claim->since_ms);
		json_key_time(&s->j, "lease_until", claim->deadline_ms);
		json_key_bool(&s->j, "live", claim->live);
		json_close(&s->j);
		return;
	}
	/* The token is not shown: it is the holder's proof. */
	fence_addf(&s->claims, "  %s held by '%s'", short_id(claim->id), claim->holder);
	if (claim->since_ms > 0) {
		int64_t age_ms = clock_now_ms() - claim->since_ms;
		char age[24];

		duration_text(age_ms > 0 ? age_ms : 0, age);
		buf_addf(&s->claims, " for %s", age);
	}
	buf_addf(&s->claims, ", attempt %u", claim->attempt);
	if (s->attempts > 0)
		buf_addf(&s->claims, " of %u", s->attempts);
	buf_addf(&s->claims, ", %s\n", claim->live ? "live" : "over");
}

struct task_list {
	struct cli *cli;
	struct table table;
	struct json j;
	unsigned attempts;
	size_t n;
};

static void
add_task(void *ctx, const struct mr_queue_task *task)
{
	struct task_list *l = ctx;
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	char since[RFC3339_LEN + 1] = "-", attempt[32];

	l->n++;
	if (l->cli->json) {
		json_open(&l->j, '{');
		json_key_str(&l->j, "id", task->id);
		json_key_str(&l->j, "state", task->state);
		json_key_str(&l->j, "from", task->from);
		json_key_str(&l->j, "subject", task->subject);
		json_key_str(&l->j, "who", task->who);
		json_key_int(&l->j, "attempt", task->attempt);
		json_key_time(&l->j, "since", task->since_ms);
		json_key_time(&l->j, "until", task->until_ms);
		json_close(&l->j);
		return;
	}
	if (task->since_ms > 0)
		time_rfc3339(task->since_ms, since);
	if (l->attempts > 0)
		(void)snprintf(attempt, sizeof(attempt), "%u of %u", task->attempt, l->attempts);
	else
		(void)snprintf(attempt, sizeof(attempt), "%u", task->attempt);
	(void)fence_add(&subject, str_of(task->subject), FENCE_NAME, FENCE_FIELD_CHARS);
	(void)(table_add(&l->table, task->state) && table_add(&l->table, short_id(task->id)) &&
	       table_name(&l->table, task->who) && table_add(&l->table, since) && table_add(&l->table, attempt) &&
	       table_put(&l->table, &subject));
}

/* Into `json`, an array, or into what is printed. */
static enum mr_rc
list_tasks(struct cli *cli, const struct mr_queue *q, struct buf *json, size_t *ret_more, struct mr_error *err)
{
	static const char *const heading[] = { "STATE", "ID", "WHO", "SINCE", "ATTEMPT", "SUBJECT" };
	struct task_list l = { .cli = cli, .table = { .columns = 6 }, .j = JSON_INIT(json), .attempts = q->attempts };
	int64_t limit = TASKS;

	if (!opt_number(cli, "limit", &limit))
		return MR_REFUSED;
	for (size_t i = 0; i < 6; i++)
		(void)table_add(&l.table, heading[i]);
	json_open(&l.j, '[');
	enum mr_rc rc =
	    mr_queue_tasks(cli->room, q->name, opt_flag(cli, "done"), (size_t)limit, add_task, &l, ret_more, err);
	json_close(&l.j);
	if (rc == MR_OK && !cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	if (rc == MR_OK && !cli->json && *ret_more > 0)
		buf_addf(&cli->out, "%zu more: --limit N\n", *ret_more);
	mr_names_done(&l.table.cells);
	return rc;
}

static void
show_text(struct cli *cli, const struct mr_queue *q, const struct mr_queue_counts *c, const struct buf *claims)
{
	struct buf *out = &cli->out;
	char lease[24], created[RFC3339_LEN + 1];

	duration_text(q->lease_ms, lease);
	time_rfc3339(q->created_ms, created);
	fence_addf(out, "queue:%s is %s\n", q->name, status_word(q->status));
	buf_addf(out, "  %zu ready, %zu delayed, %zu claimed, %zu done, %zu failed\n", c->ready, c->delayed, c->claimed,
	    c->done, c->failed);
	fence_addf(out, "  claimers '%s', %zu of them live", q->claimers, c->claimers);
	if (c->claimers_unknown > 0)
		buf_addf(out, ", %zu unknown (see 'mailroom who')", c->claimers_unknown);
	buf_addc(out, '\n');
	buf_addf(out, "  order %s, lease %s, ", q->by_priority ? "priority" : "fifo", lease);
	if (q->attempts > 0)
		buf_addf(out, "%u attempts (a release does not count)", q->attempts);
	else
		buf_adds(out, "attempts without limit");
	if (q->max_claims > 0)
		buf_addf(out, ", at most %u claims at a time", q->max_claims);
	fence_addf(out, "\n  created by '%s', %s\n", q->created_by, created);
	buf_add(out, buf_str(claims));
}

static int
run_show(struct cli *cli)
{
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_queue_counts counts = { 0 };
	struct mr_error err = { 0 };
	struct showing s = { .cli = cli, .claims = BUF_INIT };
	mr_auto(buf_done) struct buf line = BUF_INIT, tasks = BUF_INIT;
	int64_t limit = TASKS;
	size_t more = 0;

	if (!opt_number(cli, "limit", &limit))
		return EXIT_USAGE;
	s.j = JSON_INIT(&line);
	json_open(&s.j, '[');
	enum mr_rc rc = mr_queue_get(cli->room, cli->argv[0], &q, &err);

	s.attempts = q.attempts;
	if (rc == MR_OK)
		rc = mr_queue_count(cli->room, q.name, &counts, show_claim, &s, &err);
	json_close(&s.j);
	if (rc == MR_OK && !cli->json)
		show_text(cli, &q, &counts, &s.claims);
	if (rc == MR_OK)
		rc = list_tasks(cli, &q, &tasks, &more, &err);
	if (rc == MR_OK && cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_settings(&j, &q);
		json_counts(&j, &counts);
		json_key(&j, "claims");
		buf_add(&cli->out, buf_str(&line));
		j.comma = true;
		json_key(&j, "tasks");
		buf_add(&cli->out, buf_str(&tasks));
		j.comma = true;
		json_key_int(&j, "more_tasks", (int64_t)more);
		out_json_line(cli, &j);
	}
	buf_done(&s.claims);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

/* ---- wait ---- */

static int
run_wait(struct cli *cli)
{
	struct mr_queue_left left = { 0 };
	struct mr_error err = { 0 };
	int64_t timeout_ms = WAIT_MS;
	bool drained = opt_flag(cli, "empty");

	if (!opt_duration(cli, "timeout", &timeout_ms))
		return EXIT_USAGE;
	enum mr_rc rc = mr_queue_wait(cli->room, cli->argv[0], drained, timeout_ms, &left, &err);

	if (rc != MR_OK && rc != MR_EMPTY)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", bare(cli->argv[0]));
		json_key_int(&j, "ready", (int64_t)(left.ready + left.reserved));
		json_key_int(&j, "delayed", (int64_t)left.delayed);
		json_key_int(&j, "claimed", (int64_t)left.claimed);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "queue:%s: ", bare(cli->argv[0]));
		buf_addf(&cli->out, "%zu ready, %zu delayed, %zu claimed\n", left.ready + left.reserved, left.delayed,
		    left.claimed);
	}
	if (rc == MR_EMPTY)
		cli_warn(cli,
		    drained ? "the time is up, and the queue is not empty" : "the time is up, and nothing is ready");
	return rc == MR_OK ? EXIT_DONE : EXIT_NOTHING;
}

/* ---- pause, resume, close, delete ---- */

static int
set_status(struct cli *cli, enum mr_queue_status status, const char *state)
{
	struct mr_error err = { 0 };

	if (mr_queue_set_status(cli->room, cli->argv[0], status, &err) != MR_OK)
		return cli_fail(cli, &err);
	return say(cli, bare(cli->argv[0]), state);
}

static int
run_pause(struct cli *cli)
{
	return set_status(cli, MR_QUEUE_PAUSED, "paused");
}

static int
run_resume(struct cli *cli)
{
	return set_status(cli, MR_QUEUE_ACTIVE, "resumed");
}

static int
run_close(struct cli *cli)
{
	return set_status(cli, MR_QUEUE_CLOSED, "closed");
}

static int
run_delete(struct cli *cli)
{
	struct mr_error err = { 0 };
	size_t dead = 0;

	if (mr_queue_delete(cli->room, cli->argv[0], opt_flag(cli, "force"), &dead, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (dead > 0)
		cli_warn(cli, "%zu message%s went to dead letters: mailroom dead list", dead, dead == 1 ? "" : "s");
	return say(cli, bare(cli->argv[0]), "deleted");
}

static const struct subword words[] = {
	{ "create", "NAME", 1, 1, true, run_create },
	{ "list", "", 0, 0, false, run_list },
	{ "show", "NAME", 1, 1, false, run_show },
	{ "wait", "NAME", 1, 1, false, run_wait },
	{ "pause", "NAME", 1, 1, true, run_pause },
	{ "resume", "NAME", 1, 1, true, run_resume },
	{ "close", "NAME", 1, 1, true, run_close },
	{ "delete", "NAME", 1, 1, true, run_delete },
	{ 0 },
};

static int
run(struct cli *cli)
{
	return subword_run(cli, words);
}

const struct cmd cmd_queue = {
	.name = "queue",
	.help = &help_queue,
	.needs = CMD_ROOM,
	.max_args = -1,
	.run = run,
};
