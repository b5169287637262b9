/* SPDX-License-Identifier: MIT */
/* mail_tidy.c - gt mail mark-read, mark-unread, archive, delete, clear, drain: keeping the inbox short. What gt closes
 * we archive: it leaves the inbox, and search, thread and read still find it. */
#include <strings.h>

#include "base/clock.h"
#include "base/id.h"
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- Several ids at once ---- */

enum what { MARK_READ, MARK_UNREAD, CLOSE };

/* Work of a queue is in nobody's inbox: reading it off or closing it is to be done with it. */
static bool
finish_work(struct cli *cli, enum what what, const char *id)
{
	struct mr_error ignored = { 0 };
	char done[MR_ID_LEN + 1];

	return what != MARK_UNREAD && mr_claim_done(cli->room, &cli->self, id, done, &ignored) == MR_OK;
}

static enum mr_rc
do_one(struct cli *cli, enum what what, const char *id, struct mr_error *err)
{
	enum mr_rc rc;

	if (what == CLOSE)
		rc = mr_archive(cli->room, &cli->self, id, err);
	else
		rc = mr_mark(
		    cli->room, &cli->self, id, what == MARK_READ ? MR_SEEN : 0, what == MARK_UNREAD ? MR_SEEN : 0, err);
	return rc != MR_OK && finish_work(cli, what, id) ? MR_OK : rc;
}

/* "k/n", a line on stderr for each that failed, and 1 if one did. */
static int
do_all(struct cli *cli, enum what what, const struct mr_names *ids, const char *done_word)
{
	struct mr_error err = { 0 };
	size_t done = 0;
	int code = EXIT_DONE;

	for (size_t i = 0; i < ids->n; i++) {
		if (do_one(cli, what, ids->v[i], &err) == MR_OK)
			done++;
		else
			code = cli_fail(cli, &err);
	}
	if (mr_flush(cli->room, &err) != MR_OK)
		code = cli_fail(cli, &err);
	cli->changed = done > 0;
	if (ids->n == 1 && done == 1)
		fence_addf(&cli->out, "✓ Message %s\n", done_word);
	else
		fence_addf(&cli->out, "%s %s %zu/%zu messages\n", done == ids->n ? "✓" : "✗", done_word, done, ids->n);
	return code;
}

static int
do_operands(struct cli *cli, enum what what, const char *done_word)
{
	struct mr_names ids = { cli->argv, (size_t)cli->argc };

	return do_all(cli, what, &ids, done_word);
}

/* ---- What a rule chooses ---- */

struct choice {
	struct cli *cli; /* first: see gt_trouble */
	struct mr_names ids;
	bool (*wanted)(struct choice *c, const struct mr_message *msg);
	int64_t before_ms;
	size_t protocol, wisp_protocol, read_wisp;
	bool failed;
};

static bool
choose_one(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;

	if (!c->wanted(c, msg))
		return true;
	c->failed = !names_add(&c->ids, str_of(msg->id));
	return !c->failed;
}

/* Returns an exit code. */
static int
choose(struct choice *c, const struct mr_filter *filter)
{
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = gt_trouble, .filter = *filter };
	struct mr_error err = { 0 };

	if (mr_scan(c->cli->room, c->cli->self.agent, &scan, choose_one, c, &err) != MR_OK)
		return cli_fail(c->cli, &err);
	if (!c->failed)
		return EXIT_DONE;
	(void)mr_nomem(&err);
	return cli_fail(c->cli, &err);
}

static void
choice_done(struct choice *c)
{
	mr_names_done(&c->ids);
}

static bool
want_all(struct choice *c, const struct mr_message *msg)
{
	(void)c;
	(void)msg;
	return true;
}

/* By the id, which knows when it was sent better than its Date: has, which has no parts of a second. */
static bool
want_stale(struct choice *c, const struct mr_message *msg)
{
	return id_time_ms(msg->id) < c->before_ms && !gt_is_pinned(msg);
}

/* ---- mark-read, mark-unread ---- */

static int
run_mark_read(struct cli *cli)
{
	const struct gt_mail_mark_read_options *o = cli->opts;
	mr_auto(choice_done) struct choice c = { .cli = cli, .wanted = want_all };

	if (o->all == (cli->argc > 0))
		return cli_usage(cli, "give ids, or --all: one of them");
	if (cli->argc > 0)
		return do_operands(cli, MARK_READ, "marked as read");
	int code = choose(&c, &(struct mr_filter){ .unread = true });

	return code == EXIT_DONE ? do_all(cli, MARK_READ, &c.ids, "marked as read") : code;
}

static int
run_mark_unread(struct cli *cli)
{
	return do_operands(cli, MARK_UNREAD, "marked as unread");
}

static const char *const mark_read_aliases[] = { "gt mail ack", NULL };
const struct cmd gt_mail_mark_read = {
	.name = "gt mail mark-read",
	.help = &help_gt_mail_mark_read,
	.aliases = mark_read_aliases,
	.needs = CMD_SELF,
	.max_args = -1,
	.run = run_mark_read,
};
const struct cmd gt_mail_mark_unread = {
	.name = "gt mail mark-unread",
	.help = &help_gt_mail_mark_unread,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = -1,
	.run = run_mark_unread,
};

/* ---- archive, delete, clear ---- */

static int
say_would(struct cli *cli, const struct mr_names *ids, const char *done_word)
{
	fence_addf(&cli->out, "would be %s: %zu\n", done_word, ids->n);
	for (size_t i = 0; i < ids->n; i++)
		fence_addf(&cli->out, "  %s\n", ids->v[i]);
	return EXIT_DONE;
}

static int
run_archive(struct cli *cli)
{
	const struct gt_mail_archive_options *o = cli->opts;
	mr_auto(choice_done) struct choice c = { .cli = cli, .wanted = want_stale };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_names operands = { cli->argv, (size_t)cli->argc };
	struct mr_error err = { 0 };
	bool dry = cli->dry_run;

	if (o->stale == (cli->argc > 0))
		return cli_usage(cli, "give ids, or --stale: one of them");
	if (cli->argc > 0)
		return dry ? say_would(cli, &operands, "archived") : do_operands(cli, CLOSE, "archived");
	if (mr_agent_get(cli->room, cli->self.agent, &agent, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (agent.started_ms == 0) {
		(void)mr_fail(&err, MR_REFUSED, "'%s' has no life here, so no mail is from before it", agent.name);
		return cli_fail(cli, &err);
	}
	c.before_ms = agent.started_ms;
	int code = choose(&c, &(struct mr_filter){ 0 });

	if (code != EXIT_DONE)
		return code;
	return dry ? say_would(cli, &c.ids, "archived") : do_all(cli, CLOSE, &c.ids, "archived");
}

static int
run_delete(struct cli *cli)
{
	return do_operands(cli, CLOSE, "deleted");
}

static int
run_clear(struct cli *cli)
{
	mr_auto(choice_done) struct choice c = { .cli = cli, .wanted = want_all };

	if (!gt_act_as(cli, cli->argc > 0 ? cli->argv[0] : NULL))
		return EXIT_FAILED;
	int code = choose(&c, &(struct mr_filter){ 0 });

	return code == EXIT_DONE ? do_all(cli, CLOSE, &c.ids, "cleared") : code;
}

const struct cmd gt_mail_archive = {
	.name = "gt mail archive",
	.help = &help_gt_mail_archive,
	.needs = CMD_SELF,
	.max_args = -1,
	.run = run_archive,
};
const struct cmd gt_mail_delete = {
	.name = "gt mail delete",
	.help = &help_gt_mail_delete,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = -1,
	.run = run_delete,
};
const struct cmd gt_mail_clear = {
	.name = "gt mail clear",
	.help = &help_gt_mail_clear,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_clear,
};

/* ---- drain ---- */

static bool
is_protocol(const struct mr_message *msg)
{
	static const char *const prefixes[] = { "CRASHED_POLECAT", "POLECAT_DONE", "POLECAT_STARTED",
		"LIFECYCLE:", "MERGED", "MERGE_READY", "MERGE_FAILED", "SWARM_START" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(str_of(msg->subject), prefixes[i]))
			return true;
	return false;
}

static bool
is_for_somebody(const struct mr_message *msg)
{
	return str_starts(str_of(msg->subject), "HELP") || strstr(msg->subject, "HANDOFF");
}

static bool
want_drained(struct choice *c, const struct mr_message *msg)
{
	bool protocol = is_protocol(msg), wisp = gt_is_wisp(msg);
	bool read_wisp = wisp && (msg->flags & MR_SEEN);

	if (is_for_somebody(msg) || gt_is_pinned(msg) || (!protocol && !read_wisp))
		return false;
	if (protocol && wisp)
		c->wisp_protocol++;
	else if (protocol)
		c->protocol++;
	else
		c->read_wisp++;
	return true;
}

static int
run_drain(struct cli *cli)
{
	const struct gt_mail_drain_options *o = cli->opts;
	mr_auto(choice_done) struct choice c = { .cli = cli, .wanted = want_drained };
	bool dry = cli->dry_run;

	if (!gt_act_as(cli, o->identity))
		return EXIT_FAILED;
	int code = choose(&c, &(struct mr_filter){ .before_ms = o->all ? 0 : clock_now_ms() - o->max_age_ms });

	if (code != EXIT_DONE)
		return code;
	if (c.ids.n == 0) {
		buf_adds(&cli->out, "✓ Nothing to drain\n");
		return EXIT_DONE;
	}
	code = dry ? say_would(cli, &c.ids, "drained") : do_all(cli, CLOSE, &c.ids, "drained");
	if (c.protocol > 0)
		buf_addf(&cli->out, "  protocol: %zu\n", c.protocol);
	if (c.wisp_protocol > 0)
		buf_addf(&cli->out, "  wisp+protocol: %zu\n", c.wisp_protocol);
	if (c.read_wisp > 0)
		buf_addf(&cli->out, "  read-wisp: %zu\n", c.read_wisp);
	return code;
}

const struct cmd gt_mail_drain = {
	.name = "gt mail drain",
	.help = &help_gt_mail_drain,
	.needs = CMD_SELF,
	.max_args = 0,
	.run = run_drain,
};
