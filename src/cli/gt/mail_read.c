/* SPDX-License-Identifier: MIT */
/* mail_read.c - gt mail read, peek: one message. */
#include "base/text.h"
#include "cli/gt/gt.h"
#include "helptext.h"

#define PEEK_BYTES 500

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

	if (gt_hides(p->cli, msg, p->cli->self.agent) || --p->left > 0)
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
	out_fenced(cli, &text);
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
	bool hidden = gt_hides(cli, &e.msg, e.owner);

	if (!hidden)
		show(cli, &e.msg, e.owner);
	mr_message_done(&e.msg);
	return hidden ? cli_fail(cli, why) : EXIT_DONE;
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

	if ((rc == MR_OK || rc == MR_BUSY) && gt_hides(cli, &msg, cli->self.agent)) {
		(void)mr_fail(&err, MR_REFUSED, "%s is a control message, for programs", msg.id);
		(void)mr_hint(&err, "`mailroom patrol` runs its handler; --json shows it");
		code = cli_fail(cli, &err); /* closing gives it back */
	} else if (rc == MR_OK || rc == MR_BUSY) {
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

static const char *const read_aliases[] = { "gt mail show", NULL };
const struct cmd gt_mail_read = {
	.name = "gt mail read",
	.help = &help_gt_mail_read,
	.aliases = read_aliases,
	.needs = CMD_SELF,
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

	if (gt_hides(p->cli, msg, p->cli->self.agent) || p->n++ > 0)
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
	(void)fence_add(&p->text, body, FENCE_TEXT, 0);
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
	out_fenced(cli, &p.text);
	return EXIT_DONE;
}

const struct cmd gt_mail_peek = {
	.name = "gt mail peek",
	.help = &help_gt_mail_peek,
	.max_args = 0,
	.run = run_peek,
};
