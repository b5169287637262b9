/* SPDX-License-Identifier: MIT */
/* mail_tidy.c - gt mail mark-read, mark-unread, archive, delete, clear, drain: keeping the inbox short. What gt closes
 * we archive: it leaves the inbox, and search, thread and read still find it. */
#include "base/id.h"
#include "cli/gt/gt.h"
#include "cli/printout.h"

/* ---- Several ids at once ---- */

enum what { MARK_READ, MARK_UNREAD, CLOSE };

/* "k/n", a line on stderr for each that failed, and 1 if one did. */
static int
do_all(struct cli *cli, enum what what, const struct mr_names *ids, const char *done_word)
{
	unsigned set = what == MARK_READ ? MR_SEEN : 0, clear = what == MARK_UNREAD ? MR_SEEN : 0;
	size_t done = 0;
	int code = EXIT_DONE;

	for (size_t i = 0; i < ids->n; i++) {
		const char *id = ids->v[i];
		char finished[MR_ID_LEN + 1];
		enum mr_rc rc = what == CLOSE ? mr_archive(cli->room, &cli->self, id, &cli->err)
					      : mr_mark(cli->room, &cli->self, id, set, clear, &cli->err);

		/* Claimed work of a queue is in no inbox: marking it read or closing it finishes the claim. */
		if (rc == MR_OK || (what != MARK_UNREAD && mr_claim_done(cli->room, &cli->self, id, NULL, finished,
							       NULL, IGNORED) == MR_OK))
			done++;
		else
			code = cli_fail(cli, &cli->err);
	}
	if (mr_flush(cli->room, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err);
	cli->changed = done > 0;
	if (ids->n == 1 && done == 1)
		fence_addf(&cli->out, "✓ Message %s\n", done_word);
	else
		fence_addf(&cli->out, "%s %s %zu/%zu messages\n", done == ids->n ? "✓" : "✗", done_word, done, ids->n);
	return code;
}

static int
close_all(struct cli *cli, const struct mr_names *ids, const char *done_word)
{
	if (!cli->dry_run)
		return do_all(cli, CLOSE, ids, done_word);
	fence_addf(&cli->out, "would be %s: %zu\n", done_word, ids->n);
	for (size_t i = 0; i < ids->n; i++)
		fence_addf(&cli->out, "  %s\n", ids->v[i]);
	return EXIT_DONE;
}

/* ---- What a rule chooses ---- */

struct choice {
	struct printout base; /* first: trouble is reported through it; `seen` are those chosen */
	bool (*wanted)(struct choice *c, const struct mr_message *msg); /* NULL: all */
	int64_t before_ms;
	size_t protocol, wisp_protocol, read_wisp;
	bool failed;
};

static bool
choose_one(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;

	if (c->wanted && !c->wanted(c, msg))
		return true;
	c->failed = !names_add(&c->base.seen, str_of(msg->id));
	return !c->failed;
}

static enum mr_rc
choose(struct choice *c, const struct mr_filter *filter)
{
	struct cli *cli = c->base.cli;
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble, .filter = *filter };

	TRY(mr_scan(cli->room, cli->self.agent, &scan, choose_one, c, &cli->err));
	return c->failed ? mr_nomem(&cli->err) : MR_OK;
}

static void
choice_done(struct choice *c)
{
	printout_done(&c->base);
}

/* ---- The commands ---- */

/* mark-read, mark-unread, delete */
int
gt_mark(struct cli *cli)
{
	const struct gt_mail_mark_read_options *o = cli->opts; /* of mark-read only */
	mr_auto(choice_done) struct choice c = { .base.cli = cli };
	const struct mr_names operands = { cli->argv, (size_t)cli->argc };

	if (strcmp(gt_verb(cli), "delete") == 0)
		return do_all(cli, CLOSE, &operands, "deleted");
	if (strcmp(gt_verb(cli), "mark-unread") == 0)
		return do_all(cli, MARK_UNREAD, &operands, "marked as unread");
	if (o->all)
		TRY_CLI(choose(&c, &(struct mr_filter){ .unread = true }));
	return do_all(cli, MARK_READ, o->all ? &c.base.seen : &operands, "marked as read");
}

/* Goes by the id, which has the time in milliseconds; Date has seconds. */
static bool
want_stale(struct choice *c, const struct mr_message *msg)
{
	return id_time_ms(msg->id) < c->before_ms && !gt_is_pinned(msg);
}

int
gt_archive(struct cli *cli, const struct gt_mail_archive_options *)
{
	mr_auto(choice_done) struct choice c = { .base.cli = cli, .wanted = want_stale };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	const struct mr_names operands = { cli->argv, (size_t)cli->argc };

	if (cli->argc > 0)
		return close_all(cli, &operands, "archived");
	TRY_CLI(mr_agent_get(cli->room, cli->self.agent, &agent, &cli->err));
	if (agent.started_ms == 0)
		TRY_CLI(
		    mr_fail(&cli->err, MR_REFUSED, "'%s' has no life here, so no mail is from before it", agent.name));
	c.before_ms = agent.started_ms;
	TRY_CLI(choose(&c, &(struct mr_filter){ 0 }));
	return close_all(cli, &c.base.seen, "archived");
}

int
gt_clear(struct cli *cli, const struct gt_mail_clear_options *)
{
	mr_auto(choice_done) struct choice c = { .base.cli = cli };

	TRY_CLI(gt_act_as(cli, cli->argc > 0 ? cli->argv[0] : NULL));
	TRY_CLI(choose(&c, &(struct mr_filter){ 0 }));
	return do_all(cli, CLOSE, &c.base.seen, "cleared");
}

/* Protocol mail, and wisps that were read; never pinned mail, HELP or HANDOFF. */
static bool
want_drained(struct choice *c, const struct mr_message *msg)
{
	static const char *const prefixes[] = { "CRASHED_POLECAT", "POLECAT_DONE", "POLECAT_STARTED",
		"LIFECYCLE:", "MERGED", "MERGE_READY", "MERGE_FAILED", "SWARM_START" };
	bool protocol = false, wisp = gt_is_wisp(msg);

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		protocol |= str_starts(str_of(msg->subject), prefixes[i]);
	if (str_starts(str_of(msg->subject), "HELP") || strstr(msg->subject, "HANDOFF") || gt_is_pinned(msg) ||
	    (!protocol && !(wisp && (msg->flags & MR_SEEN))))
		return false;
	if (!protocol)
		c->read_wisp++;
	else if (wisp)
		c->wisp_protocol++;
	else
		c->protocol++;
	return true;
}

int
gt_drain(struct cli *cli, const struct gt_mail_drain_options *o)
{
	mr_auto(choice_done) struct choice c = { .base.cli = cli, .wanted = want_drained };

	TRY_CLI(gt_act_as(cli, o->identity));
	TRY_CLI(choose(&c, &(struct mr_filter){ .before_ms = o->all ? 0 : clock_now_ms() - o->max_age_ms }));
	if (c.base.seen.n == 0) {
		buf_adds(&cli->out, "✓ Nothing to drain\n");
		return EXIT_DONE;
	}
	int code = close_all(cli, &c.base.seen, "drained");

	if (c.protocol > 0)
		buf_addf(&cli->out, "  protocol: %zu\n", c.protocol);
	if (c.wisp_protocol > 0)
		buf_addf(&cli->out, "  wisp+protocol: %zu\n", c.wisp_protocol);
	if (c.read_wisp > 0)
		buf_addf(&cli->out, "  read-wisp: %zu\n", c.read_wisp);
	return code;
}
