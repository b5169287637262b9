/* SPDX-License-Identifier: MIT */
/* mail_look.c - gt mail inbox, thread, search, read, peek, check: looking at mail. */
#include <strings.h>

#include "cli/gt/gt.h"
#include "cli/printout.h"
#include "message/type.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)
#define PEEK_BYTES 500

/* ---- inbox, thread, search: lists of messages ---- */

struct mail_list {
	struct printout base; /* first: trouble is reported through it */
	struct listing json;
	struct buf text;
	size_t unread;
	bool (*wanted)(struct cli *cli, const struct mr_message *msg); /* or NULL: all */
};

static void
mail_list_done(struct mail_list *l)
{
	list_done(&l->json);
	buf_done(&l->text);
	printout_done(&l->base);
}

static bool
add_message(void *ctx, const struct mr_message *msg)
{
	struct mail_list *l = ctx;
	struct cli *cli = l->base.cli;
	struct mr_names *all = &l->base.seen;
	bool seen = (msg->flags & MR_SEEN) != 0, urgent = msg->priority >= MR_HIGH;
	const char *type = gt_type(msg);
	/* "HANDOFF: ..." says it already */
	bool notable = strcmp(type, "notification") != 0 && !str_caseeq(type_word(str_of(msg->subject)), str_of(type));

	if (names_has(all, msg->id) || (l->wanted && !l->wanted(cli, msg)) || gt_hides(cli, msg, cli->self.agent))
		return true;
	if (!names_add(all, str_of(msg->id)))
		return cli->out.failed = true, false;
	l->unread += seen ? 0 : 1;
	if (cli->json)
		return gt_list_message(&l->json, msg, cli->self.agent);
	cli->budget.marks |= (seen ? LINE_READ : LINE_UNREAD) | (urgent ? LINE_URGENT : 0);
	buf_addf(&l->text, "%zu. %s ", all->n, seen ? "○" : "●");
	out_line(&l->text, msg->subject);
	buf_addf(&l->text, "%s%s%s", notable ? " [" : "", notable ? type : "", notable ? "]" : "");
	buf_addf(&l->text, "%s%s\n    %s from ", urgent ? " !" : "", gt_is_wisp(msg) ? " (wisp)" : "", msg->id);
	out_line(&l->text, gt_spelled(msg->from));
	buf_adds(&l->text, "\n    ");
	gt_text_when(&l->text, msg->date_ms);
	buf_addc(&l->text, '\n');
	return true;
}

/* Prints what the scan finds; `heading` (or NULL) and `nothing` only as text. */
static int
list_mail(struct cli *cli, struct mr_scan *scan, bool (*wanted)(struct cli *, const struct mr_message *),
    const char *heading, const char *nothing)
{
	mr_auto(mail_list_done) struct mail_list l = {
		.base.cli = cli, .json = { .cli = cli, .form = LIST_ARRAY }, .wanted = wanted
	};

	scan->trouble = printout_trouble;
	scan->bodies = true;
	TRY_CLI(mr_scan(cli->room, cli->self.agent, scan, add_message, &l, &cli->err));
	if (cli->json) {
		gt_json_out(cli, list_json(&l.json));
		return EXIT_DONE;
	}
	if (heading)
		fence_addf(&cli->out, "📬 %s: %s (%zu messages, %zu unread)\n", heading, gt_spelled(cli->self.agent),
		    l.base.seen.n, l.unread);
	if (l.base.seen.n == 0) {
		fence_addf(&cli->out, "  %s\n", nothing);
		return EXIT_DONE;
	}
	out_fenced(cli, &l.text);
	budget_legend(cli);
	return EXIT_DONE;
}

int
gt_inbox(struct cli *cli, const struct gt_mail_inbox_options *o)
{
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter.unread = o->unread };
	const char *operand = cli->argc > 0 ? cli->argv[0] : NULL;

	TRY_CLI(gt_act_as(cli, o->identity ? o->identity : o->address ? o->address : operand));
	return list_mail(cli, &scan, NULL, "Inbox", "(no messages)");
}

int
gt_thread(struct cli *cli)
{
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .filter.folders = EVERYWHERE };

	scan.filter.thread = cli->argv[0];
	return list_mail(cli, &scan, NULL, NULL, "No messages in this thread");
}

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
	bool both = o->subject == o->body;

	if (o->from && !has(str_of(msg->from), o->from) && !has(str_of(gt_spelled(msg->from)), o->from))
		return false;
	return ((both || o->subject) && has(str_of(msg->subject), cli->argv[0])) ||
	       ((both || o->body) && msg->body && has((struct mr_str){ msg->body, msg->body_len }, cli->argv[0]));
}

int
gt_search(struct cli *cli, const struct gt_mail_search_options *)
{
	struct mr_scan scan = { .order = MR_NEWEST_FIRST, .filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE };

	return list_mail(cli, &scan, matches, NULL, "No messages found");
}

/* ---- read ---- */

struct place {
	struct printout base;
	uint64_t left;
	char id[MR_ID_LEN + 1];
};

static bool
count_down(void *ctx, const struct mr_message *msg)
{
	struct place *p = ctx;

	if (gt_hides(p->base.cli, msg, p->base.cli->self.agent) || --p->left > 0)
		return true;
	(void)snprintf(p->id, sizeof(p->id), "%s", msg->id);
	return false;
}

/* A number of few digits is a place in the inbox, as it was listed; an id is longer. */
static enum mr_rc
find_id(struct cli *cli, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	struct place p = { .base.cli = cli };
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .trouble = printout_trouble };

	if (strlen(given) > MR_ID_LEN)
		return mr_fail(err, MR_NOTFOUND, "there is no message '%.60s'", given);
	if (strlen(given) > 5 || !str_to_u64(str_of(given), &p.left)) {
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", given);
		return MR_OK;
	}
	if (p.left > 0)
		TRY(mr_scan(cli->room, cli->self.agent, &scan, count_down, &p, err));
	if (!p.id[0])
		return mr_fail(err, MR_NOTFOUND,
		    "there is no message %s in the inbox of '%s'\ngt mail inbox lists them", given, cli->self.agent);
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", p.id);
	return MR_OK;
}

static void
show(struct cli *cli, const struct mr_message *msg, const char *owner)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(list_done) struct listing one = { .cli = cli, .form = LIST_ONE };

	if (cli->json && gt_list_message(&one, msg, owner)) {
		gt_json_out(cli, list_json(&one));
		return;
	}
	gt_text_message(cli, &text, msg, owner);
	out_fenced(cli, &text);
}

/* Any agent may read any message by its id. It stays unread for its recipient. */
static int
read_elsewhere(struct cli *cli, const char *id, const struct mr_error *why)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (strlen(id) == MR_ID_LEN)
		TRY_CLI(mr_agent_list(cli->room, &agents, &cli->err));
	for (size_t i = 0; i < agents.n; i++) {
		if (mr_fetch(cli->room, agents.v[i].name, id, &msg, IGNORED) != MR_OK)
			continue;
		if (gt_hides(cli, &msg, agents.v[i].name))
			break;
		show(cli, &msg, agents.v[i].name);
		return EXIT_DONE;
	}
	return cli_fail(cli, why);
}

int
gt_read(struct cli *cli)
{
	char id[MR_ID_LEN + 1];
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_show *taken = NULL;
	struct mr_error err = { 0 };

	TRY_CLI(find_id(cli, cli->argv[0], id, &cli->err));
	TRY_CLI(mr_show_open(cli->room, &cli->self, NULL, &taken, &cli->err));
	enum mr_rc rc = mr_show_take(taken, id, &msg, &err);
	int code = EXIT_DONE;

	if (rc != MR_OK && rc != MR_BUSY) {
		code = rc == MR_NOTFOUND ? read_elsewhere(cli, id, &err) : cli_fail(cli, &err);
	} else if (gt_hides(cli, &msg, cli->self.agent)) {
		(void)mr_fail(&err, MR_REFUSED,
		    "%s is a control message, for programs\n`mailroom patrol` runs its handler; --json shows it",
		    msg.id);
		code = cli_fail(cli, &err); /* closing gives it back */
	} else {
		show(cli, &msg, cli->self.agent);
		if (!cli_flush(cli))
			code = EXIT_FAILED; /* closing gives it back unread */
		else if (mr_show_finish(taken, false, NULL, &err) != MR_OK)
			code = cli_fail(cli, &err);
	}
	mr_show_close(taken);
	return code;
}

/* ---- peek: for a popup, so every failure is silent ---- */

struct peeking {
	struct cli *cli;
	struct buf text;
	size_t n;
};

static bool
peek_one(void *ctx, const struct mr_message *msg)
{
	struct peeking *p = ctx;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };

	if (gt_hides(p->cli, msg, p->cli->self.agent) || p->n++ > 0)
		return true;
	if (body.len > PEEK_BYTES) /* not in the middle of a character */
		for (body.len = PEEK_BYTES; body.len > 0 && ((unsigned char)body.ptr[body.len] & 0xc0) == 0x80;)
			body.len--;
	out_line(&p->text, msg->subject);
	buf_adds(&p->text, "\nFrom: ");
	out_line(&p->text, gt_spelled(msg->from));
	buf_addf(&p->text, "\nID: %s\n\n", msg->id);
	(void)fence_add(&p->text, body, FENCE_TEXT, 0);
	buf_adds(&p->text, body.len < msg->body_len ? "...\n" : "\n");
	return true;
}

int
gt_peek(struct cli *cli)
{
	struct peeking p = { .cli = cli };
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter.unread = true, .bodies = true };
	bool found = cli_open_room(cli, IGNORED) == MR_OK && cli_know_self(cli, IGNORED) == MR_OK &&
		     mr_scan(cli->room, cli->self.agent, &scan, peek_one, &p, IGNORED) == MR_OK && p.n > 0;

	if (p.n > 1)
		buf_addf(&p.text, "+%zu more\n", p.n - 1);
	if (found)
		out_fenced(cli, &p.text);
	buf_done(&p.text);
	return found ? EXIT_DONE : EXIT_FAILED;
}

/* ---- check: for hooks. 0 there is unread mail, 1 there is none; with --inject always 0 ---- */

/* A hook must never stop its harness: an error is a warning at most, and silent outside of a room. */
static int
inject(struct cli *cli, const char *identity)
{
	struct mr_error err = { 0 };
	struct mr_injection *inj = NULL;

	if (cli_open_room(cli, &err) != MR_OK || cli_know_self(cli, &err) != MR_OK || gt_act_as(cli, identity) != MR_OK)
		return EXIT_DONE;
	enum mr_rc rc = mr_inject_open(cli->room, &cli->self, MR_INJECT_ALL, MR_INJECT_REMINDER, &inj, &err);

	if (rc == MR_OK) {
		buf_adds(&cli->out, mr_inject_text(inj));
		if (cli_flush(cli))
			rc = mr_inject_shown(inj, "check", &err);
	}
	if (rc != MR_OK && rc != MR_EMPTY)
		cli_warn(cli, "%s", err.message);
	mr_inject_close(inj);
	return EXIT_DONE;
}

int
gt_check(struct cli *cli, const struct gt_mail_check_options *o)
{
	struct printout l = { .cli = cli };
	size_t unread = 0;

	if (o->inject)
		return inject(cli, o->identity);
	TRY_CLI(cli_open_room(cli, &cli->err));
	TRY_CLI(cli_know_self(cli, &cli->err));
	TRY_CLI(gt_act_as(cli, o->identity));
	TRY_CLI(mr_check(cli->room, cli->self.agent, printout_trouble, &l, &unread, &cli->err));
	if (gt_json(cli, kv_str("address", gt_spelled(cli->self.agent)), kv_size("unread", unread),
		kv_bool("has_new", unread > 0)))
		return EXIT_DONE;
	if (unread == 0)
		buf_adds(&cli->out, "No new mail\n");
	else
		fence_addf(&cli->out, "📬 %zu unread message%s\n", unread, unread == 1 ? "" : "s");
	return unread > 0 ? EXIT_DONE : EXIT_FAILED;
}
