/* SPDX-License-Identifier: MIT */
/* nudge.c - gt nudge, gt dnd, and the nudge that mail sent by gt comes with. */
#include "base/clock.h"
#include "cli/gt/gt.h"
#include "cli/nudges.h"
#include "helptext.h"

#define PATIENCE_MS 15000
#define MAIL_PATIENCE_MS 3000
#define FRESH_MS 60000

/* ---- With mail ---- */

void
gt_nudge_mail(struct cli *cli, const struct mr_receipt *receipt, enum mr_priority priority)
{
	size_t n = receipt->to.n;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "you have mail from %s: gt mail read %s", gt_spelled(cli, cli->self.agent), receipt->id);
	for (size_t i = 0; i < n; i++) {
		struct mr_nudge nudge = {
			.text = buf_z(&text), .kind = "mail", .priority = priority >= MR_HIGH ? MR_URGENT : MR_NORMAL
		};
		struct mr_nudge_options how = { .patience_ms = n == 1 ? MAIL_PATIENCE_MS : 0 };
		struct mr_nudged done = { 0 };
		struct mr_error err = { 0 };
		const char *to = receipt->to.v[i];

		/* Queues and channels have no shoulder, and who writes to itself knows. */
		if (strpbrk(to, ":@") || strcmp(to, cli->self.agent) == 0 || strcmp(to, "operator") == 0)
			continue;
		enum mr_rc rc = mr_nudge_send(cli->room, &cli->self, to, &nudge, &how, &done, &err);

		if (rc != MR_OK && rc != MR_UNSUPPORTED)
			cli_warn(cli, "the mail is delivered, but: %s", err.message);
	}
}

/* ---- gt nudge ---- */

static bool
read_mode(struct cli *cli, enum mr_nudge_mode *ret)
{
	const struct gt_nudge_options *o = cli->opts;
	const char *word = o->mode;

	*ret = MR_NUDGE_WAIT_IDLE;
	if (word && strcmp(word, "queue") == 0)
		*ret = MR_NUDGE_QUEUE;
	else if (word && strcmp(word, "immediate") == 0)
		*ret = MR_NUDGE_IMMEDIATE;
	else if (word && strcmp(word, "wait-idle") != 0)
		return cli_usage(cli, "'%.40s' is none of wait-idle, queue, immediate", word), false;
	return true;
}

static bool
read_priority(struct cli *cli, enum mr_priority *ret)
{
	const struct gt_nudge_options *o = cli->opts;
	const char *word = o->priority;

	if (word && strcmp(word, "urgent") == 0)
		*ret = MR_URGENT;
	else if (word && strcmp(word, "normal") != 0)
		return cli_usage(cli, "the priority of a nudge is normal or urgent, not '%.40s'", word), false;
	return true;
}

/* "witness" and "refinery" are those of the caller's own rig. */
static const char *
target(struct cli *cli, const char *given)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str rig = gt_rig_of(cli->self.agent);

	if ((strcmp(given, "witness") != 0 && strcmp(given, "refinery") != 0) || rig.len == 0)
		return given;
	buf_add(&text, rig);
	buf_addf(&text, "/%s", given);
	const char *copy = arena_dup(&cli->own, buf_str(&text));

	return copy ? copy : given;
}

/* A life that began more than a minute ago has nothing new to tell. */
static bool
is_fresh(struct cli *cli)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };

	return mr_agent_get(cli->room, cli->self.agent, &agent, &ignored) == MR_OK &&
	       clock_now_ms() - agent.started_ms <= FRESH_MS;
}

static int
nudge_all(
    struct cli *cli, const struct mr_names *agents, const struct mr_nudge *nudge, const struct mr_nudge_options *how)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < agents->n; i++) {
		struct mr_nudged done = { 0 };
		struct mr_error err = { 0 };

		if (mr_nudge_send(cli->room, &cli->self, agents->v[i], nudge, how, &done, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		cli->changed = true;
		nudges_say_way(&cli->out, gt_spelled(cli, agents->v[i]), &done);
		buf_addc(&cli->out, '\n');
	}
	return code;
}

static int
run_nudge(struct cli *cli)
{
	const struct gt_nudge_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_nudge nudge = { 0 };
	struct mr_nudge_options how = { .force = o->force, .patience_ms = PATIENCE_MS };
	struct mr_resolution meant = { 0 };
	struct mr_error err = { 0 };

	if (!read_mode(cli, &how.mode) || !read_priority(cli, &nudge.priority))
		return EXIT_USAGE;
	int code = gt_body(cli, cli->argc > 1 ? cli->argv[1] : o->message, o->stdin_, &text);

	if (code != EXIT_DONE)
		return code;
	if (text.len == 0)
		return cli_usage(cli, "a nudge needs a text: gt nudge TARGET TEXT");
	nudge.text = buf_z(&text);
	if (o->if_fresh && !is_fresh(cli))
		return EXIT_DONE;
	if (mr_resolve(cli->room, cli->self.agent, target(cli, gt_recipient(cli, cli->argv[0])), &meant, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (strcmp(meant.form, "channel") == 0) { /* its posts are for all, a nudge is for those who follow it */
		mr_auto(mr_channel_done) struct mr_channel channel = { 0 };

		code = mr_channel_get(cli->room, meant.name, &channel, &err) == MR_OK
			   ? nudge_all(cli, &channel.subscribers, &nudge, &how)
			   : cli_fail(cli, &err);
	} else {
		code = nudge_all(cli, &meant.targets, &nudge, &how);
	}
	mr_resolution_done(&meant);
	return code;
}

const struct cmd gt_nudge = {
	.name = "gt nudge",
	.help = &help_gt_nudge,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 2,
	.run = run_nudge,
};

/* ---- gt dnd ---- */

static int
run_dnd(struct cli *cli)
{
	const char *word = cli->argc > 0 ? cli->argv[0] : "status";
	struct mr_error err = { 0 };
	int64_t since_ms = 0;
	bool on = false, asks = strcmp(word, "status") == 0;

	if (!asks && strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
		return cli_usage(cli, "'%.40s' is none of on, off, status", word);
	if (!asks && mr_dnd_set(cli->room, cli->self.agent, strcmp(word, "on") == 0, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = !asks;
	if (mr_dnd_get(cli->room, cli->self.agent, &on, &since_ms, &err) != MR_OK)
		return cli_fail(cli, &err);
	fence_addf(&cli->out, "%s Do not disturb is %s for %s\n", on ? "🔕" : "🔔", on ? "on" : "off",
	    gt_spelled(cli, cli->self.agent));
	return EXIT_DONE;
}

const struct cmd gt_dnd = {
	.name = "gt dnd",
	.help = &help_gt_dnd,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_dnd,
};
