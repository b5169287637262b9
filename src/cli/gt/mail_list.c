/* SPDX-License-Identifier: MIT */
/* mail_list.c - gt mail inbox, thread, search: lists of messages. */
#include <strings.h>

#include "cli/gt/gt.h"
#include "message/type.h"
#include "helptext.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

/* ---- A list of messages, as text or JSON ---- */

struct listing {
	struct cli *cli; /* first: see gt_trouble */
	const char *owner;
	struct buf text, json_text;
	struct json json;
	struct mr_names seen;
	size_t n, unread;
	bool (*wanted)(struct cli *cli, const struct mr_message *msg); /* or NULL: all */
};

static struct listing
listing_of(struct cli *cli)
{
	return (struct listing){ .cli = cli, .owner = cli->self.agent };
}

static void
listing_done(struct listing *l)
{
	buf_done(&l->text);
	buf_done(&l->json_text);
	mr_names_done(&l->seen);
}

static void
add_text(struct listing *l, const struct mr_message *msg)
{
	const char *type = gt_type(msg);
	/* "HANDOFF: ..." says it already */
	bool notable = strcmp(type, "notification") != 0 && !str_caseeq(type_word(str_of(msg->subject)), str_of(type));

	l->cli->budget.marks |=
	    (msg->flags & MR_SEEN ? LINE_READ : LINE_UNREAD) | (msg->priority >= MR_HIGH ? LINE_URGENT : 0);
	buf_addf(&l->text, "%zu. %s ", l->n, msg->flags & MR_SEEN ? "○" : "●");
	gt_clean(&l->text, msg->subject);
	buf_addf(&l->text, "%s%s%s", notable ? " [" : "", notable ? type : "", notable ? "]" : "");
	buf_addf(&l->text, "%s%s\n    %s from ", msg->priority >= MR_HIGH ? " !" : "", gt_is_wisp(msg) ? " (wisp)" : "",
	    msg->id);
	gt_clean(&l->text, gt_spelled(l->cli, msg->from));
	buf_adds(&l->text, "\n    ");
	gt_text_when(&l->text, msg->date_ms);
	buf_addc(&l->text, '\n');
}

static bool
add_message(void *ctx, const struct mr_message *msg)
{
	struct listing *l = ctx;

	if (names_has(&l->seen, msg->id) || (l->wanted && !l->wanted(l->cli, msg)) || gt_hides(l->cli, msg, l->owner))
		return true;
	if (!names_add(&l->seen, str_of(msg->id)))
		return l->text.failed = true, false;
	l->n++;
	l->unread += msg->flags & MR_SEEN ? 0 : 1;
	if (l->cli->json)
		gt_json_message(l->cli, &l->json, msg, l->owner);
	else
		add_text(l, msg);
	return true;
}

/* Prints what the scan finds; `heading` and `nothing` only as text. */
static int
list(struct listing *l, struct mr_scan *scan, const char *heading, const char *nothing)
{
	struct cli *cli = l->cli;
	struct mr_error err = { 0 };

	l->json = JSON_INIT(&l->json_text);
	json_open(&l->json, '[');
	scan->trouble = gt_trouble;
	scan->bodies = true;
	if (mr_scan(cli->room, l->owner, scan, add_message, l, &err) != MR_OK)
		return cli_fail(cli, &err);
	json_close(&l->json);
	if (l->text.failed)
		cli->out.failed = true;
	if (cli->json) {
		gt_json_out(cli, &l->json_text);
		return EXIT_DONE;
	}
	if (heading)
		fence_addf(&cli->out, "📬 %s: %s (%zu messages, %zu unread)\n", heading, gt_spelled(cli, l->owner), l->n,
		    l->unread);
	if (l->n == 0) {
		fence_addf(&cli->out, "  %s\n", nothing);
		return EXIT_DONE;
	}
	out_fenced(cli, &l->text);
	budget_legend(cli);
	return EXIT_DONE;
}

/* ---- inbox ---- */

static int
run_inbox(struct cli *cli)
{
	const struct gt_mail_inbox_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter.unread = o->unread };
	const char *identity = o->identity;

	if (!identity)
		identity = o->address;
	if (!identity && cli->argc > 0)
		identity = cli->argv[0];
	if (o->unread && o->all)
		return cli_usage(cli, "--unread and --all exclude each other");
	if (!gt_act_as(cli, identity))
		return EXIT_FAILED;
	mr_auto(listing_done) struct listing l = listing_of(cli);

	return list(&l, &scan, "Inbox", "(no messages)");
}

const struct cmd gt_mail_inbox = {
	.name = "gt mail inbox",
	.help = &help_gt_mail_inbox,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_inbox,
};

/* ---- thread ---- */

static int
run_thread(struct cli *cli)
{
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .filter.folders = EVERYWHERE };
	mr_auto(listing_done) struct listing l = listing_of(cli);

	scan.filter.thread = cli->argv[0];
	return list(&l, &scan, NULL, "No messages in this thread");
}

const struct cmd gt_mail_thread = {
	.name = "gt mail thread",
	.help = &help_gt_mail_thread,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_thread,
};

/* ---- search ---- */

static bool
has(struct mr_str text, const char *what)
{
	size_t len = strlen(what);

	for (size_t i = 0; i + len <= text.len; i++)
		if (strncasecmp(text.ptr + i, what, len) == 0)
			return true;
	return false;
}

static bool
matches(struct cli *cli, const struct mr_message *msg)
{
	const struct gt_mail_search_options *o = cli->opts;
	const char *from = o->from, *query = cli->argv[0];
	bool subject = o->subject, body = o->body;

	if (from && !has(str_of(msg->from), from) && !has(str_of(gt_spelled(cli, msg->from)), from))
		return false;
	if (subject == body)
		subject = body = true;
	return (subject && has(str_of(msg->subject), query)) ||
	       (body && msg->body && has((struct mr_str){ msg->body, msg->body_len }, query));
}

static int
run_search(struct cli *cli)
{
	struct mr_scan scan = { .order = MR_NEWEST_FIRST, .filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE };
	mr_auto(listing_done) struct listing l = listing_of(cli);

	l.wanted = matches;
	return list(&l, &scan, NULL, "No messages found");
}

const struct cmd gt_mail_search = {
	.name = "gt mail search",
	.help = &help_gt_mail_search,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_search,
};
