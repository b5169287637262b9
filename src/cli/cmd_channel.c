/* SPDX-License-Identifier: MIT */
/* mailroom channel: what is posted stays in the channel and goes to every subscriber. Reading is in
 * channel_read.c. */
#include "base/clock.h"
#include "cli/channel_read.h"
#include "cli/draft.h"
#include "cli/subword.h"
#include "helptext.h"

#define HOUR_MS ((int64_t)3600 * 1000)

static int
say(struct cli *cli, const char *name, const char *state)
{
	name = strncmp(name, "channel:", 8) == 0 ? name + 8 : name;
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_str(&j, "state", state);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s channel:%s\n", state, name);
	}
	return EXIT_DONE;
}

static int
run_create(struct cli *cli)
{
	const struct channel_options *o = cli->opts;
	struct mr_error err = { 0 };
	int64_t hours = o->retain_hours;

	if (hours > INT64_MAX / HOUR_MS)
		return cli_usage(cli, "that number of hours is too large");
	if (mr_channel_create(cli->room, &cli->self, cli->argv[0], o->retain_count, hours * HOUR_MS, &err) != MR_OK)
		return cli_fail(cli, &err);
	return say(cli, cli->argv[0], "created");
}

/* ---- list, show, subscribers ---- */

struct listing {
	struct cli *cli;
	struct table table;
	size_t n;
};

static void
json_channel(struct json *j, const struct mr_channel *c)
{
	json_open(j, '{');
	json_key_str(j, "name", c->name);
	json_key_str(j, "status", c->closed ? "closed" : "active");
	json_key_int(j, "retain_count", c->retain_count);
	json_key_int(j, "retain_hours", c->retain_ms / HOUR_MS);
	json_key_names(j, "subscribers", &c->subscribers);
	json_key_str(j, "created_by", c->created_by);
	json_key_time(j, "created", c->created_ms);
}

static void
text_limits(struct buf *out, const struct mr_channel *c)
{
	if (c->retain_count > 0)
		buf_addf(out, "%lld posts", (long long)c->retain_count);
	if (c->retain_ms > 0)
		buf_addf(out, "%s%lld hours", c->retain_count > 0 ? ", " : "", (long long)(c->retain_ms / HOUR_MS));
	if (c->retain_count == 0 && c->retain_ms == 0)
		buf_adds(out, "everything");
}

static bool
list_one(void *ctx, const struct mr_channel *c)
{
	struct listing *l = ctx;
	mr_auto(buf_done) struct buf limits = BUF_INIT;
	char subscribers[24];

	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_channel(&j, c);
		out_json_line(l->cli, &j);
		return true;
	}
	text_limits(&limits, c);
	(void)snprintf(subscribers, sizeof(subscribers), "%zu", c->subscribers.n);
	return table_add(&l->table, c->name) && table_add(&l->table, c->closed ? "closed" : "active") &&
	       table_add(&l->table, subscribers) && table_add(&l->table, buf_z(&limits));
}

static int
run_list(struct cli *cli)
{
	struct listing l = { .cli = cli, .table = { .columns = 4 } };
	struct mr_error err = { 0 };
	bool ok = table_add(&l.table, "NAME") && table_add(&l.table, "STATUS") && table_add(&l.table, "SUBSCRIBERS") &&
		  table_add(&l.table, "KEEPS");
	enum mr_rc rc = ok ? mr_channel_each(cli->room, list_one, &l, &err) : mr_nomem(&err);

	if (rc == MR_OK && !cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	else if (rc == MR_OK && !cli->json)
		buf_adds(&cli->out, "no channels; mailroom channel create NAME makes one\n");
	mr_names_done(&l.table.cells);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

static void
print_subscribers(struct cli *cli, const struct mr_channel *c, const char *indent)
{
	for (size_t i = 0; i < c->subscribers.n; i++) {
		buf_adds(&cli->out, indent);
		fence_name(&cli->out, c->subscribers.v[i]);
		buf_addc(&cli->out, '\n');
	}
}

static int
run_show(struct cli *cli)
{
	mr_auto(mr_channel_done) struct mr_channel c = { 0 };
	struct mr_error err = { 0 };
	uint64_t last = 0;
	size_t n = 0;

	if (mr_channel_get(cli->room, cli->argv[0], &c, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (mr_channel_count(cli->room, c.name, &last, &n, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_channel(&j, &c);
		json_key_int(&j, "posts", (int64_t)n);
		json_key_int(&j, "last", (int64_t)last);
		out_json_line(cli, &j);
	} else {
		char created[RFC3339_LEN + 1];

		time_rfc3339(c.created_ms, created);
		fence_addf(&cli->out, "channel:%s is %s\n  keeps ", c.name, c.closed ? "closed" : "active");
		text_limits(&cli->out, &c);
		buf_addf(&cli->out, "; %zu kept now, the last is number %llu\n", n, (unsigned long long)last);
		fence_addf(&cli->out, "  created by '%s', %s\n  ", c.created_by, created);
		out_count(&cli->out, c.subscribers.n, "subscriber");
		buf_addc(&cli->out, '\n');
		print_subscribers(cli, &c, "    ");
	}
	return EXIT_DONE;
}

static int
run_subscribers(struct cli *cli)
{
	mr_auto(mr_channel_done) struct mr_channel c = { 0 };
	struct mr_error err = { 0 };

	if (mr_channel_get(cli->room, cli->argv[0], &c, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", c.name);
		json_key_names(&j, "subscribers", &c.subscribers);
		out_json_line(cli, &j);
	} else if (c.subscribers.n == 0) {
		fence_addf(&cli->out, "nobody has subscribed to %s; mailroom channel subscribe %s\n", c.name, c.name);
	} else {
		print_subscribers(cli, &c, "");
	}
	return EXIT_DONE;
}

/* ---- subscribe, close, delete, prune ---- */

static int
subscribe(struct cli *cli, bool on)
{
	const char *who = cli->argc > 1 ? cli->argv[1] : cli->self.agent, *name = cli->argv[0];
	struct mr_error err = { 0 };
	bool changed = false;

	if (mr_channel_subscribe(cli->room, name, who, on, &changed, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", strncmp(name, "channel:", 8) == 0 ? name + 8 : name);
		json_key_str(&j, "agent", who);
		json_key_bool(&j, "subscribed", on);
		json_key_bool(&j, "changed", changed);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s %s %s\n", who, on ? "gets what is posted in" : "gets no more of", name);
	}
	return EXIT_DONE;
}

static int
run_subscribe(struct cli *cli)
{
	return subscribe(cli, true);
}

static int
run_unsubscribe(struct cli *cli)
{
	return subscribe(cli, false);
}

static int
run_close(struct cli *cli)
{
	const struct channel_options *o = cli->opts;
	struct mr_error err = { 0 };
	bool open = o->open;

	if (mr_channel_close(cli->room, cli->argv[0], !open, &err) != MR_OK)
		return cli_fail(cli, &err);
	return say(cli, cli->argv[0], open ? "opened" : "closed");
}

static int
run_delete(struct cli *cli)
{
	struct mr_error err = { 0 };

	if (mr_channel_delete(cli->room, cli->argv[0], &err) != MR_OK)
		return cli_fail(cli, &err);
	return say(cli, cli->argv[0], "deleted");
}

struct pruning {
	struct cli *cli;
	int code;
};

static bool
prune_one(void *ctx, const struct mr_channel *c)
{
	struct pruning *p = ctx;
	struct cli *cli = p->cli;
	const struct channel_options *o = cli->opts;
	struct mr_error err = { 0 };
	size_t removed = 0;
	enum mr_rc rc = mr_channel_prune(cli->room, c->name, true, &removed, &err);

	if (rc == MR_NOTFOUND && o->all) /* deleted this very moment */
		return true;
	if (rc != MR_OK) {
		p->code = cli_fail(cli, &err);
		return true;
	}
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", c->name);
		json_key_int(&j, "removed", (int64_t)removed);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s: ", c->name);
		out_count(&cli->out, removed, "post");
		buf_adds(&cli->out, " removed\n");
	}
	return true;
}

static int
run_prune(struct cli *cli)
{
	const struct channel_options *o = cli->opts;
	struct pruning p = { .cli = cli };
	struct mr_error err = { 0 };

	if (o->all == (cli->argc > 0))
		return cli_usage(cli, "name one channel, or give --all");
	if (cli->argc > 0) {
		mr_auto(mr_channel_done) struct mr_channel c = { 0 };

		if (mr_channel_get(cli->room, cli->argv[0], &c, &err) != MR_OK)
			return cli_fail(cli, &err);
		(void)prune_one(&p, &c);
		return p.code;
	}
	if (mr_channel_each(cli->room, prune_one, &p, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->out.len == 0 && !cli->json && p.code == EXIT_DONE)
		buf_adds(&cli->out, "no channels\n");
	return p.code;
}

/* send channel:NAME, for those who look for it here. */
static int
run_post(struct cli *cli)
{
	const struct channel_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT, target = BUF_INIT;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	bool whole = strncmp(cli->argv[0], "channel:", 8) == 0;

	buf_addf(&target, "%s%s", whole ? "" : "channel:", cli->argv[0]);
	struct mr_draft draft = { .to = (const char *[]){ buf_z(&target), NULL }, .subject = o->subject };
	static const char *const none[] = { NULL };
	struct draft_options text = { .message = o->message, .header = none, .field = none };
	int code = draft_read(cli, &text, &draft, &body);

	if (code != EXIT_DONE)
		return code;
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &err);

	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}

static const struct subword words[] = {
	{ "create", "NAME", 1, 1, true, run_create },
	{ "list", "", 0, 0, false, run_list },
	{ "show", "NAME", 1, 1, false, run_show },
	{ "read", "NAME", 1, 1, false, channel_read },
	{ "post", "NAME", 1, 1, true, run_post },
	{ "subscribe", "NAME [AGENT]", 1, 2, true, run_subscribe },
	{ "unsubscribe", "NAME [AGENT]", 1, 2, true, run_unsubscribe },
	{ "subscribers", "NAME", 1, 1, false, run_subscribers },
	{ "close", "NAME", 1, 1, true, run_close },
	{ "delete", "NAME", 1, 1, true, run_delete },
	{ "prune", "NAME | --all", 0, 1, false, run_prune },
	{ 0 },
};

int
cmd_channel(struct cli *cli)
{
	return subword_run(cli, words);
}
