/* SPDX-License-Identifier: MIT */
/* mail_queue.c - gt mail claim, release, queue ...: work that one of many takes. */
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- claim, release ---- */

static void
show_claimed(struct cli *cli, const char *queue, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	fence_addf(&cli->out, "✓ Claimed message from queue %s\n", queue);
	gt_text_message(cli, &text, msg, cli->self.agent);
	if (text.failed)
		cli->out.failed = true;
	out_fenced(cli, &text);
}

/* What nobody saw goes back at once. */
static int
claim_from(struct cli *cli, const char *queue, enum mr_rc *ret_rc, struct mr_error *err)
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };
	char id[MR_ID_LEN + 1];

	*ret_rc = mr_queue_recv(cli->room, &cli->self, queue, 0, 0, &claim, &msg, err);
	if (claim.skipped[0])
		cli_warn(cli, "%s", claim.skipped);
	if (*ret_rc != MR_OK)
		return EXIT_FAILED;
	show_claimed(cli, queue, &msg);
	mr_message_done(&msg);
	if (cli_flush(cli))
		return EXIT_DONE;
	(void)mr_claim_put_back(
	    cli->room, &cli->self, claim.token, &(struct mr_release){ .unseen = true }, id, &ignored);
	return EXIT_FAILED;
}

static bool
note_name(void *ctx, const struct mr_queue *queue)
{
	return queue->status != MR_QUEUE_ACTIVE || names_add(ctx, str_of(queue->name));
}

/* All active queues that let us, in order, until one has work: a queue that is empty is no reason to give up. */
static int
claim_any(struct cli *cli)
{
	struct mr_names queues = { 0 };
	struct mr_error err = { 0 };
	size_t eligible = 0;
	int code = EXIT_DONE;
	bool over = false;

	if (mr_queue_each(cli->room, note_name, &queues, &err) != MR_OK) {
		over = true;
		code = cli_fail(cli, &err);
	}
	for (size_t i = 0; i < queues.n && !over; i++) {
		enum mr_rc rc;

		if (str_starts(str_of(queues.v[i]), "link-")) /* outgoing mail of a link, for `carry` */
			continue;
		code = claim_from(cli, queues.v[i], &rc, &err);
		over = rc == MR_OK;
		eligible += rc == MR_EMPTY || rc == MR_BUSY ? 1 : 0;
		if (rc == MR_OK || rc == MR_EMPTY || rc == MR_BUSY || rc == MR_REFUSED || rc == MR_NOTFOUND)
			code = over ? code : EXIT_DONE;
		else
			over = true, code = cli_fail(cli, &err);
	}
	if (!over)
		buf_adds(&cli->out,
		    eligible > 0 ? "No messages available to claim\n" : "No queue that you may claim from\n");
	mr_names_done(&queues);
	return code;
}

static int
run_claim(struct cli *cli)
{
	struct mr_error err = { 0 };
	enum mr_rc rc;

	if (cli->argc == 0)
		return claim_any(cli);
	const char *queue = gt_name(cli, "queue", cli->argv[0]);
	int code = claim_from(cli, queue, &rc, &err);

	if (rc == MR_EMPTY) {
		fence_addf(&cli->out, "No messages available in queue %s\n", queue);
		return EXIT_DONE;
	}
	return rc == MR_OK ? code : cli_fail(cli, &err);
}

static int
run_release(struct cli *cli)
{
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	if (mr_claim_release(cli->room, &cli->self, cli->argv[0], id, &err) != MR_OK ||
	    mr_flush(cli->room, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Released message %s\n", id);
	return EXIT_DONE;
}

const struct cmd gt_mail_claim = {
	.name = "gt mail claim",
	.help = &help_gt_mail_claim,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_claim,
};
const struct cmd gt_mail_release = {
	.name = "gt mail release",
	.help = &help_gt_mail_release,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_release,
};

/* ---- queue create, delete ---- */

static void
add_limits(struct buf *out, const struct mr_queue *queue)
{
	buf_addf(out, "  Order: %s\n", queue->by_priority ? "priority" : "fifo");
	if (queue->max_claims > 0)
		buf_addf(out, "  Max claims: %u\n", queue->max_claims);
	else
		buf_adds(out, "  Max claims: no limit\n");
}

static int
run_create(struct cli *cli)
{
	const struct gt_mail_queue_create_options *o = cli->opts;
	struct mr_queue settings = { .claimers = o->claimers };
	const char *name = gt_name(cli, "queue", cli->argv[0]), *order = o->order;
	struct mr_error err = { 0 };

	if (!settings.claimers)
		return cli_usage(cli, "who may claim? --claimers PATTERN is required");
	if (o->max_claims > 1000000)
		return cli_usage(cli, "--max-claims is at most 1000000; 0: no limit");
	if (order && strcmp(order, "fifo") != 0 && strcmp(order, "priority") != 0)
		return cli_usage(cli, "option '--order' is fifo or priority, not '%s'", order);
	settings.max_claims = (unsigned)o->max_claims;
	settings.by_priority = order && strcmp(order, "priority") == 0;
	if (strlen(name) > MR_ADDRESS_MAX)
		return cli_usage(cli, "the name of a queue has at most %d characters", MR_NAME_MAX);
	(void)snprintf(settings.name, sizeof(settings.name), "%s", name);
	if (mr_queue_create(cli->room, &cli->self, &settings, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Created queue %s\n  ID: ", name);
	gt_add_id(&cli->out, "queue", name);
	fence_addf(&cli->out, "\n  Claimers: %s\n", settings.claimers);
	add_limits(&cli->out, &settings);
	return EXIT_DONE;
}

static int
run_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "queue", cli->argv[0]);
	struct mr_error err = { 0 };
	size_t dead = 0;

	if (mr_queue_delete(cli->room, name, true, &dead, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Deleted queue %s\n", name);
	if (dead > 0)
		buf_addf(&cli->out, "  %zu messages were in it: mailroom dead list\n", dead);
	return EXIT_DONE;
}

/* ---- queue show, list ---- */

static const char *
status_word(enum mr_queue_status status)
{
	return status == MR_QUEUE_PAUSED ? "paused" : status == MR_QUEUE_CLOSED ? "closed" : "active";
}

static void
queue_keys(struct json *j, const struct mr_queue *queue)
{
	mr_auto(buf_done) struct buf id = BUF_INIT;

	gt_add_id(&id, "queue", queue->name);
	json_key_str(j, "id", buf_z(&id));
	json_key_str(j, "name", queue->name);
	json_key_str(j, "claim_pattern", queue->claimers);
	json_key_str(j, "status", status_word(queue->status));
}

static void
show_json(struct cli *cli, const struct mr_queue *queue, const struct mr_queue_counts *counts)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	json_open(&j, '{');
	queue_keys(&j, queue);
	json_key_int(&j, "available_count", (int64_t)(counts->ready + counts->delayed));
	json_key_int(&j, "processing_count", (int64_t)counts->claimed);
	json_key_int(&j, "completed_count", (int64_t)counts->done);
	json_key_int(&j, "failed_count", (int64_t)counts->failed);
	json_key_str(&j, "created_by", queue->created_by);
	json_key_time(&j, "created_at", queue->created_ms);
	json_key_str(&j, "processing_order", queue->by_priority ? "priority" : "fifo");
	json_key_int(&j, "max_claims", queue->max_claims);
	json_close(&j);
	gt_json_out(cli, &text);
}

static int
run_show(struct cli *cli)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct mr_queue_counts counts = { 0 };
	struct mr_error err = { 0 };
	const char *name = gt_name(cli, "queue", cli->argv[0]);

	if (mr_queue_get(cli->room, name, &queue, &err) != MR_OK ||
	    mr_queue_count(cli->room, name, &counts, NULL, NULL, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		show_json(cli, &queue, &counts);
		return EXIT_DONE;
	}
	fence_addf(&cli->out, "Queue: %s\n  ID: ", queue.name);
	gt_add_id(&cli->out, "queue", queue.name);
	fence_addf(&cli->out,
	    "\n  Claimers: '%s'\n  Status: %s\n  Available: %zu\n  Processing: %zu\n  Completed: %zu\n  Failed: %zu\n",
	    queue.claimers, status_word(queue.status), counts.ready + counts.delayed, counts.claimed, counts.done,
	    counts.failed);
	add_limits(&cli->out, &queue);
	return EXIT_DONE;
}

struct queue_list {
	struct cli *cli;
	struct json json;
	struct buf text;
	size_t n;
};

static bool
list_one(void *ctx, const struct mr_queue *queue)
{
	struct queue_list *l = ctx;

	l->n++;
	if (!l->cli->json) {
		fence_addf(&l->cli->out, "  %s (%s, claimers '%s')\n", queue->name, status_word(queue->status),
		    queue->claimers);
		return true;
	}
	json_open(&l->json, '{');
	queue_keys(&l->json, queue);
	json_close(&l->json);
	return true;
}

static int
run_list(struct cli *cli)
{
	struct queue_list l = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	l.json = JSON_INIT(&l.text);
	json_open(&l.json, '[');
	if (mr_queue_each(cli->room, list_one, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	json_close(&l.json);
	if (code == EXIT_DONE && cli->json)
		gt_json_out(cli, &l.text);
	else if (code == EXIT_DONE && l.n == 0)
		buf_adds(&cli->out, "No queues defined\n");
	buf_done(&l.text);
	return code;
}

const struct cmd gt_mail_queue_create = {
	.name = "gt mail queue create",
	.help = &help_gt_mail_queue_create,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_create,
};
const struct cmd gt_mail_queue_show = {
	.name = "gt mail queue show",
	.help = &help_gt_mail_queue_show,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};
const struct cmd gt_mail_queue_list = {
	.name = "gt mail queue list",
	.help = &help_gt_mail_queue_list,
	.needs = CMD_ROOM,
	.run = run_list,
};
const struct cmd gt_mail_queue_delete = {
	.name = "gt mail queue delete",
	.help = &help_gt_mail_queue_delete,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_delete,
};
