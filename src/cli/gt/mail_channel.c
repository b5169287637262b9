/* SPDX-License-Identifier: MIT */
/* mail_channel.c - gt mail channel ... and announces: what everybody may read. gt's announces are channels, too. */
#include "cli/gt/gt.h"
#include "helptext.h"

#define HOUR_MS ((int64_t)3600 * 1000)

/* ---- The list ---- */

struct channel_list {
	struct cli *cli;
	struct json json;
	struct buf text;
	size_t n;
};

static bool
list_channel(void *ctx, const struct mr_channel *channel)
{
	struct channel_list *l = ctx;

	l->n++;
	if (!l->cli->json) {
		fence_addf(&l->cli->out, "  %s (%zu subscribers%s)\n", channel->name, channel->subscribers.n,
		    channel->closed ? ", closed" : "");
		return true;
	}
	json_key(&l->json, channel->name);
	json_open(&l->json, '{');
	json_key_str(&l->json, "Name", channel->name);
	json_key_names(&l->json, "Subscribers", &channel->subscribers);
	json_key_str(&l->json, "Status", channel->closed ? "closed" : "active");
	json_key_int(&l->json, "RetentionCount", channel->retain_count);
	json_key_int(&l->json, "RetentionHours", channel->retain_ms / HOUR_MS);
	json_key_str(&l->json, "CreatedBy", channel->created_by);
	json_key_time(&l->json, "CreatedAt", channel->created_ms);
	json_close(&l->json);
	return true;
}

static bool
list_announce(void *ctx, const struct mr_channel *channel)
{
	struct channel_list *l = ctx;

	if (!l->cli->json)
		return list_channel(ctx, channel);
	l->n++;
	json_open(&l->json, '{');
	json_key_str(&l->json, "name", channel->name);
	json_key_names(&l->json, "readers", &channel->subscribers);
	json_key_int(&l->json, "retain_count", channel->retain_count);
	json_close(&l->json);
	return true;
}

static int
list(struct cli *cli, mr_channel_fn *one, char bracket, const char *nothing)
{
	struct channel_list l = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	l.json = JSON_INIT(&l.text);
	json_open(&l.json, bracket);
	if (mr_channel_each(cli->room, one, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	json_close(&l.json);
	if (code == EXIT_DONE && cli->json)
		gt_json_out(cli, &l.text);
	else if (code == EXIT_DONE && l.n == 0)
		fence_addf(&cli->out, "%s\n", nothing);
	buf_done(&l.text);
	return code;
}

/* ---- The posts of one, newest first ---- */

struct post { /* rendered: a piece of text or an object */
	struct post *older;
	char *text;
};
struct posts {
	struct cli *cli;
	const char *body_key;
	struct post *newest;
	size_t n;
	bool failed;
};

static void
post_json(struct posts *p, struct buf *out, const struct mr_message *msg)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_key_str(&j, "id", msg->id);
	json_key_str(&j, "title", msg->subject);
	if (gt_text_of(msg).len > 0) {
		json_key(&j, p->body_key);
		json_str(&j, gt_text_of(msg));
	}
	json_key_str(&j, "from", gt_spelled(p->cli, msg->from));
	json_key_time(&j, "created", msg->date_ms);
	json_key_int(&j, "priority", gt_priority_number(msg->priority));
	json_close(&j);
}

static bool
take_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct posts *p = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct post *post = arena_alloc(&p->cli->own, sizeof(*post));

	(void)number;
	if (p->cli->json) {
		post_json(p, &text, msg);
	} else {
		gt_text_message(p->cli, &text, msg, "");
		buf_addc(&text, '\n');
	}
	if (post && buf_ok(&text))
		post->text = arena_dup(&p->cli->own, buf_str(&text));
	if (!post || !post->text)
		return p->failed = true, false;
	post->older = p->newest;
	p->newest = post;
	p->n++;
	return true;
}

static void
print_posts(struct cli *cli, const struct posts *p, const char *name)
{
	mr_auto(buf_done) struct buf json = BUF_INIT, lines = BUF_INIT;
	char mark[FENCE_MARK_LEN + 1];

	if (cli->json) {
		buf_addc(&json, '[');
		for (const struct post *post = p->newest; post; post = post->older)
			buf_addf(&json, "%s%s", post->text, post->older ? "," : "");
		buf_addc(&json, ']');
		gt_json_out(cli, &json);
		return;
	}
	fence_addf(&cli->out, "📢 Channel: %s (%zu messages)\n", name, p->n);
	fence_mark(mark);
	for (const struct post *post = p->newest; post; post = post->older) {
		if (!cli->out_tty) /* no post can pass for two */
			buf_addf(&lines, "--- message %s ---\n", mark);
		buf_adds(&lines, post->text);
	}
	if (p->newest)
		out_fenced(cli, &lines);
}

static int
show(struct cli *cli, const char *given, const char *body_key)
{
	struct posts p = { .cli = cli, .body_key = body_key };
	const char *name = gt_name(cli, "channel", given);
	struct mr_error err = { 0 };

	if (mr_channel_read(cli->room, name, 0, true, take_post, &p, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (p.failed)
		cli->out.failed = true;
	print_posts(cli, &p, name);
	return EXIT_DONE;
}

static int
run_list(struct cli *cli)
{
	return list(cli, list_channel, '{', "No channels defined");
}

static int
run_show(struct cli *cli)
{
	return show(cli, cli->argv[0], "body");
}

static int
run_channel(struct cli *cli)
{
	return cli->argc > 0 ? run_show(cli) : run_list(cli);
}

static int
run_announces(struct cli *cli)
{
	if (cli->argc > 0)
		return show(cli, cli->argv[0], "description");
	return list(cli, list_announce, '[', "No announce channels defined");
}

/* ---- Changing ---- */

static int
run_create(struct cli *cli)
{
	const struct gt_mail_channel_create_options *o = cli->opts;
	const char *name = gt_name(cli, "channel", cli->argv[0]);
	struct mr_error err = { 0 };
	int64_t hours = o->retain_hours;

	if (hours > INT64_MAX / HOUR_MS)
		return cli_usage(cli, "--retain-hours is too large");
	if (mr_channel_create(cli->room, &cli->self, name, o->retain_count, hours * HOUR_MS, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Created channel '%s'\n  ID: hq-channel-%s\n", name, name);
	return EXIT_DONE;
}

static int
run_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "channel", cli->argv[0]);
	struct mr_error err = { 0 };

	if (mr_channel_delete(cli->room, name, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Deleted channel '%s'\n", name);
	return EXIT_DONE;
}

static int
subscribe(struct cli *cli, bool on)
{
	const char *name = gt_name(cli, "channel", cli->argv[0]), *agent = cli->self.agent;
	struct mr_error err = { 0 };
	bool changed = false;

	if (mr_channel_subscribe(cli->room, name, agent, on, &changed, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = changed;
	fence_addf(&cli->out, "✓ %s %s %s channel '%s'\n", gt_spelled(cli, agent), changed ? "is now" : "was already",
	    on ? "subscribed to" : "not subscribed to", name);
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
run_subscribers(struct cli *cli)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);
	struct mr_error err = { 0 };

	if (mr_channel_get(cli->room, gt_name(cli, "channel", cli->argv[0]), &channel, &err) != MR_OK)
		return cli_fail(cli, &err);
	json_open(&j, '[');
	for (size_t i = 0; i < channel.subscribers.n; i++) {
		const char *agent = gt_spelled(cli, channel.subscribers.v[i]);

		json_str(&j, str_of(agent));
		if (!cli->json) {
			fence_name(&cli->out, agent);
			buf_addc(&cli->out, '\n');
		}
	}
	json_close(&j);
	if (cli->json)
		gt_json_out(cli, &text);
	else if (channel.subscribers.n == 0)
		buf_adds(&cli->out, "No subscribers\n");
	return EXIT_DONE;
}

/* ---- The commands ---- */

#define ONE_NAME .min_args = 1, .max_args = 1

const struct cmd gt_mail_announces = {
	.name = "gt mail announces",
	.help = &help_gt_mail_announces,
	.needs = CMD_ROOM,
	.max_args = 1,
	.run = run_announces,
};
const struct cmd gt_mail_channel = {
	.name = "gt mail channel",
	.help = &help_gt_mail_channel,
	.needs = CMD_ROOM,
	.max_args = 1,
	.run = run_channel,
};
const struct cmd gt_mail_channel_list = {
	.name = "gt mail channel list",
	.help = &help_gt_mail_channel_list,
	.needs = CMD_ROOM,
	.run = run_list,
};
const struct cmd gt_mail_channel_show = {
	.name = "gt mail channel show",
	.help = &help_gt_mail_channel_show,
	.needs = CMD_ROOM,
	ONE_NAME,
	.run = run_show,
};
const struct cmd gt_mail_channel_create = {
	.name = "gt mail channel create",
	.help = &help_gt_mail_channel_create,
	.needs = CMD_SELF,
	ONE_NAME,
	.run = run_create,
};
const struct cmd gt_mail_channel_delete = {
	.name = "gt mail channel delete",
	.help = &help_gt_mail_channel_delete,
	.needs = CMD_ROOM,
	ONE_NAME,
	.run = run_delete,
};
const struct cmd gt_mail_channel_subscribe = {
	.name = "gt mail channel subscribe",
	.help = &help_gt_mail_channel_subscribe,
	.needs = CMD_SELF,
	ONE_NAME,
	.run = run_subscribe,
};
const struct cmd gt_mail_channel_unsubscribe = {
	.name = "gt mail channel unsubscribe",
	.help = &help_gt_mail_channel_unsubscribe,
	.needs = CMD_SELF,
	ONE_NAME,
	.run = run_unsubscribe,
};
const struct cmd gt_mail_channel_subscribers = {
	.name = "gt mail channel subscribers",
	.help = &help_gt_mail_channel_subscribers,
	.needs = CMD_ROOM,
	ONE_NAME,
	.run = run_subscribers,
};
