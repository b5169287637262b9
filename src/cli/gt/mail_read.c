/* SPDX-License-Identifier: MIT */
/* mail_read.c - gt mail inbox, read, peek, thread, search: looking at mail. */
#include <strings.h>

#include "base/text.h"
#include "cli/gt/gt.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)
#define PEEK_BYTES 500

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
	bool notable = strcmp(type, "notification") != 0;

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

	if (names_has(&l->seen, msg->id) || (l->wanted && !l->wanted(l->cli, msg)))
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
		buf_addf(&cli->out, "📬 %s: %s (%zu messages, %zu unread)\n", heading, gt_spelled(cli, l->owner), l->n,
		    l->unread);
	if (l->n == 0) {
		buf_addf(&cli->out, "  %s\n", nothing);
		return EXIT_DONE;
	}
	gt_show_begin(cli);
	(void)budget_add(cli, buf_str(&l->text));
	budget_end(cli, "message", "gt mail inbox");
	return EXIT_DONE;
}

/* ---- inbox ---- */

static int
run_inbox(struct cli *cli)
{
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter.unread = opt_flag(cli, "unread") };
	const char *identity = opt_text(cli, "identity");

	if (!identity)
		identity = opt_text(cli, "address");
	if (!identity && cli->argc > 0)
		identity = cli->argv[0];
	if (opt_flag(cli, "unread") && opt_flag(cli, "all"))
		return cli_usage(cli, "--unread and --all exclude each other");
	if (!gt_act_as(cli, identity))
		return EXIT_FAILED;
	mr_auto(listing_done) struct listing l = listing_of(cli);

	return list(&l, &scan, "Inbox", "(no messages)");
}

static const struct opt inbox_opts[] = {
	OPT(0, "identity", "ADDRESS", "whose inbox; default: yours"),
	OPT_HIDDEN(0, "address", "ADDRESS"),
	OPT('u', "unread", NULL, "only unread mail"),
	OPT('a', "all", NULL, "read mail too: the default"),
	GT_JSON,
	OPT_END,
};
const struct cmd gt_mail_inbox = {
	.name = "gt mail inbox",
	.needs = CMD_SELF,
	.synopsis = "[ADDRESS]",
	.summary = "list the inbox, urgent first, then the newest",
	.opts = inbox_opts,
	.max_args = 1,
	.run = run_inbox,
};

/* ---- read ---- */

struct place {
	struct cli *cli;
	uint64_t left;
	char id[MR_ID_LEN + 1];
};

static bool
count_down(void *ctx, const struct mr_message *msg)
{
	struct place *p = ctx;

	if (--p->left > 0)
		return true;
	(void)snprintf(p->id, sizeof(p->id), "%s", msg->id);
	return false;
}

/* A number of few digits is a place in the inbox, as it was listed; an id is longer. False: said what is wrong. */
static bool
find_place(struct cli *cli, const char *given, char ret_id[MR_ID_LEN + 1])
{
	struct place p = { .cli = cli };
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .trouble = gt_trouble };
	struct mr_error err = { 0 };

	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", given);
	if (strlen(given) > 5 || !str_to_u64(str_of(given), &p.left))
		return true;
	uint64_t place = p.left;

	if (place > 0 && mr_scan(cli->room, cli->self.agent, &scan, count_down, &p, &err) != MR_OK)
		return cli_fail(cli, &err), false;
	if (!p.id[0]) {
		(void)mr_fail(&err, MR_NOTFOUND, "there is no message %s in the inbox of '%s'", given, cli->self.agent);
		(void)mr_hint(&err, "gt mail inbox lists them");
		return cli_fail(cli, &err), false;
	}
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", p.id);
	return true;
}

static void
show(struct cli *cli, const struct mr_message *msg, const char *owner)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (cli->json) {
		struct json j = JSON_INIT(&text);

		gt_json_message(cli, &j, msg, owner);
		gt_json_out(cli, &text);
		return;
	}
	gt_text_message(cli, &text, msg, owner);
	if (text.failed)
		cli->out.failed = true;
	gt_show_begin(cli);
	(void)budget_add(cli, buf_str(&text));
	budget_end(cli, "message", "gt mail read");
}

struct elsewhere {
	struct cli *cli;
	const char *id;
	struct mr_message msg;
	char owner[MR_ADDRESS_MAX + 1];
};

static bool
look_there(void *ctx, const struct mr_agent *agent)
{
	struct elsewhere *e = ctx;
	struct mr_error ignored = { 0 };

	if (mr_fetch(e->cli->room, agent->name, e->id, &e->msg, &ignored) != MR_OK)
		return true;
	(void)snprintf(e->owner, sizeof(e->owner), "%s", agent->name);
	return false;
}

/* Anybody may read any message by its id. That is looking: it stays unread for its recipient. */
static int
read_elsewhere(struct cli *cli, const char *id, const struct mr_error *why)
{
	struct elsewhere e = { .cli = cli, .id = id };
	struct mr_error err = { 0 };

	if (strlen(id) == MR_ID_LEN && mr_each_agent(cli->room, look_there, &e, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!e.owner[0])
		return cli_fail(cli, why);
	show(cli, &e.msg, e.owner);
	mr_message_done(&e.msg);
	return EXIT_DONE;
}

static int
run_read(struct cli *cli)
{
	char id[MR_ID_LEN + 1];
	struct mr_error err = { 0 };
	struct mr_show *taken = NULL;
	struct mr_message msg = { 0 };

	if (strlen(cli->argv[0]) > MR_ID_LEN) {
		(void)mr_fail(&err, MR_NOTFOUND, "there is no message '%.60s'", cli->argv[0]);
		return cli_fail(cli, &err);
	}
	if (!find_place(cli, cli->argv[0], id))
		return EXIT_FAILED;
	if (mr_show_open(cli->room, &cli->self, &taken, &err) != MR_OK)
		return cli_fail(cli, &err);
	enum mr_rc rc = mr_show_take(taken, id, &msg, &err);
	int code = EXIT_DONE;

	if (rc == MR_OK || rc == MR_BUSY) {
		show(cli, &msg, cli->self.agent);
		if (!cli_flush(cli))
			code = EXIT_FAILED; /* nobody saw it: closing gives it back */
		else if (mr_show_finish(taken, false, NULL, &err) != MR_OK)
			code = cli_fail(cli, &err);
	} else {
		code = rc == MR_NOTFOUND ? read_elsewhere(cli, id, &err) : cli_fail(cli, &err);
	}
	mr_message_done(&msg);
	mr_show_close(taken);
	return code;
}

static const struct opt read_opts[] = { GT_JSON, OPT_END };
static const char *const read_aliases[] = { "gt mail show", NULL };
const struct cmd gt_mail_read = {
	.name = "gt mail read",
	.aliases = read_aliases,
	.needs = CMD_SELF,
	.synopsis = "ID | NUMBER",
	.summary = "show a message, by id or by its number in the inbox, then mark it read",
	.opts = read_opts,
	.min_args = 1,
	.max_args = 1,
	.run = run_read,
};

/* ---- peek: for a popup, so every failure is silent ---- */

struct peeking {
	struct cli *cli;
	struct mr_str first; /* points into text */
	struct buf text;
	size_t n;
};

static bool
peek_one(void *ctx, const struct mr_message *msg)
{
	struct peeking *p = ctx;

	if (p->n++ > 0)
		return true;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };

	if (body.len > PEEK_BYTES) { /* not in the middle of a character */
		body.len = PEEK_BYTES;
		while (body.len > 0 && ((unsigned char)body.ptr[body.len] & 0xc0) == 0x80)
			body.len--;
	}
	gt_clean(&p->text, msg->subject);
	buf_adds(&p->text, "\nFrom: ");
	gt_clean(&p->text, gt_spelled(p->cli, msg->from));
	buf_addf(&p->text, "\nID: %s\n\n", msg->id);
	text_clean(&p->text, body);
	buf_adds(&p->text, body.len < msg->body_len ? "...\n" : "\n");
	return true;
}

static void
peeking_done(struct peeking *p)
{
	buf_done(&p->text);
}

static int
run_peek(struct cli *cli)
{
	mr_auto(peeking_done) struct peeking p = { .cli = cli };
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter.unread = true, .bodies = true };
	struct mr_error ignored = { 0 };

	if (cli_open_room(cli, &ignored) != MR_OK || cli_know_self(cli, &ignored) != MR_OK ||
	    mr_scan(cli->room, cli->self.agent, &scan, peek_one, &p, &ignored) != MR_OK || p.n == 0)
		return EXIT_FAILED;
	if (p.n > 1)
		buf_addf(&p.text, "+%zu more\n", p.n - 1);
	gt_show_begin(cli);
	(void)budget_add(cli, buf_str(&p.text));
	budget_end(cli, "message", "gt mail inbox");
	return EXIT_DONE;
}

const struct cmd gt_mail_peek = {
	.name = "gt mail peek",
	.synopsis = "",
	.summary = "show the beginning of the first unread message; 1 and nothing else if there is none",
	.max_args = 0,
	.run = run_peek,
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
	.needs = CMD_SELF,
	.synopsis = "ID",
	.summary = "list a conversation, the oldest first; ID is its own or that of a message in it",
	.opts = read_opts,
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
	const char *from = opt_text(cli, "from"), *query = cli->argv[0];
	bool subject = opt_flag(cli, "subject"), body = opt_flag(cli, "body");

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

static const struct opt search_opts[] = {
	OPT(0, "from", "TEXT", "only from senders whose address has this in it"),
	OPT(0, "subject", NULL, "look in subjects only"),
	OPT(0, "body", NULL, "look in texts only"),
	OPT(0, "archive", NULL, "look in the archive too: that is always so"),
	GT_JSON,
	OPT_END,
};
const struct cmd gt_mail_search = {
	.name = "gt mail search",
	.needs = CMD_SELF,
	.synopsis = "TEXT",
	.summary = "find mail of the inbox and the archive that has this text in it, in any case",
	.opts = search_opts,
	.min_args = 1,
	.max_args = 1,
	.run = run_search,
};
