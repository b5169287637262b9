/* SPDX-License-Identifier: MIT */
/*
 * mailroom inbox: looking never consumes.
 *
 * mailroom drain: hold, show, flush, then mark and archive. Several drains share out the mail, because a held
 * message is in nobody else's sight; one that is killed gives its mail back at once, because the kernel
 * drops its lock.
 */
#include "printout.h"
#include "helptext.h"

#define CHUNK 1000 /* messages held, marked and synced together: what a killed drain shows again at most */
#define CHUNK_BYTES ((size_t)1 << 20) /* of output, which is in memory until then */

/* ---- inbox ---- */

static bool
print_work(void *ctx, const struct mr_message *msg)
{
	struct printout *l = ctx;
	const struct inbox_options *o = l->cli->opts;

	if (o->limit > 0 && (int64_t)l->n >= o->limit)
		return false;
	l->n++;
	(void)budget_line(l->cli, msg, "");
	return true;
}

int
cmd_inbox(struct cli *cli, const struct inbox_options *o)
{
	struct mr_scan scan = {
		.order = MR_BY_PRIORITY, .filter = filter_of(cli, &o->filter), .limit = (size_t)o->limit
	};
	struct printout l = { .cli = cli };
	struct mr_counts counts = { 0 };

	budget_begin(cli);
	scan.filter.unread = !o->all;
	scan.filter.folders = o->all ? MR_INBOX | MR_HELD : MR_INBOX;
	if (!cli->json)
		nudges_look(cli);
	TRY_CLI(printout_run(&l, &scan));
	if (o->all)
		TRY_CLI(mr_queue_held(cli->room, cli->self.agent, &scan.filter, print_work, &l, &cli->err));
	if (cli->json)
		return EXIT_DONE;
	budget_end(cli, "message", "mailroom inbox with filters");
	if (l.n > 0)
		return EXIT_DONE;
	buf_addf(&cli->out, "no %smail for ", o->all ? "" : "unread ");
	text_name(cli, &cli->out, cli->self.agent);
	buf_adds(&cli->out, filter_is_given(&o->filter) ? " that matches" : "");
	if (!o->all) {
		(void)mr_count(cli->room, cli->self.agent, &counts, IGNORED);
		(void)mr_queue_held(cli->room, cli->self.agent, NULL, printout_count, &counts.held, IGNORED);
	}
	if (counts.held > 0)
		buf_addf(&cli->out, " (%zu held: see 'mailroom inbox --all')", counts.held);
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

/* ---- drain ---- */

struct queue {
	struct printout base; /* first: trouble is reported through it; `seen` are waiting to be shown, in work order */
	size_t notes;         /* the first so many: to oneself */
};

/* What this life left for the next one is not for this one to put away. */
static bool
is_for_next(const struct mr_self *self, const struct mr_message *msg)
{
	return self->life > 0 && msg->sender_life == self->life && mr_handoff_is_own(self, msg);
}

/* Once more before it is taken: of a large mailbox only names were listed. */
static bool
is_wanted(void *ctx, const struct mr_message *msg)
{
	const struct cli *cli = ((struct queue *)ctx)->base.cli;

	return !is_for_next(&cli->self, msg) && !mr_is_control(cli->room, cli->self.agent, msg, IGNORED);
}

static bool
collect(void *ctx, const struct mr_message *msg)
{
	struct queue *q = ctx;
	const struct mr_self *self = &q->base.cli->self;
	struct mr_names *ids = &q->base.seen;

	if (is_for_next(self, msg) || printout_hides(q->base.cli, self->agent, msg))
		return true;
	if (!names_add(ids, str_of(msg->id)))
		return false;
	/* Where there are no priorities mail comes by its age: what an earlier life left is still the first. */
	if (mr_handoff_is_own(self, msg)) {
		char *last = ids->v[ids->n - 1];

		memmove(ids->v + q->notes + 1, ids->v + q->notes, (ids->n - 1 - q->notes) * sizeof(last));
		ids->v[q->notes++] = last;
	}
	return true;
}

/* One chunk: from i on. Returns the next index; *ret_exit is set on trouble. */
static size_t
drain_chunk(struct queue *q, size_t i, size_t *ret_shown, int *ret_exit)
{
	struct cli *cli = q->base.cli;
	const struct mr_names *ids = &q->base.seen;
	const struct drain_options *o = cli->opts;
	const struct mr_show_choice choice = { .wanted = is_wanted, .trouble = printout_trouble, .ctx = q };
	struct mr_show *show = NULL;
	size_t end = ids->n - i > CHUNK ? i + CHUNK : ids->n;
	bool more = true;

	if (mr_show_open(cli->room, &cli->self, &choice, &show, &cli->err) != MR_OK) {
		*ret_exit = cli_fail(cli, &cli->err);
		return ids->n;
	}
	while (i < end && more && cli->out.len < CHUNK_BYTES)
		more = printout_take(cli, show, ids->v[i++], 1500, ret_shown, ret_exit);
	bool last = !more || i == ids->n;

	if (last && !cli->json) {
		budget_left(cli, ids->n - i);
		if (cli->budget.shown + cli->budget.cut + cli->budget.left > 0)
			budget_end(cli, "message", "mailroom drain again");
	}
	if (!cli_flush(cli))
		*ret_exit = EXIT_FAILED;
	else if (mr_show_finish(show, !o->keep, NULL, &cli->err) != MR_OK)
		*ret_exit = cli_fail(cli, &cli->err);
	mr_show_close(show);
	return last || *ret_exit == EXIT_FAILED ? ids->n : i;
}

int
cmd_drain(struct cli *cli, const struct drain_options *o)
{
	struct mr_scan scan = { .order = MR_WORK_ORDER,
		.names = true,
		.limit = (size_t)o->limit,
		.filter = filter_of(cli, &o->filter),
		.trouble = printout_trouble };
	struct queue queue = { .base = { .cli = cli } };
	int code = EXIT_DONE;
	size_t shown = 0;

	budget_begin(cli);
	scan.filter.unread = scan.filter.no_control = true;
	if (mr_scan(cli->room, cli->self.agent, &scan, collect, &queue, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err);
	for (size_t i = 0; code != EXIT_FAILED && i < queue.base.seen.n;)
		i = drain_chunk(&queue, i, &shown, &code);
	if (!cli->json && shown == 0 && queue.base.seen.n == 0 && code == EXIT_DONE) {
		buf_adds(&cli->out, "no unread mail for ");
		text_name(cli, &cli->out, cli->self.agent);
		buf_addc(&cli->out, '\n');
	}
	mr_names_done(&queue.base.seen);
	return code;
}
