/* SPDX-License-Identifier: MIT */
/* mail_send.c - gt mail send, reply, and the mail that other commands of gt send by themselves. */
#include <unistd.h>

#include "base/file.h"
#include "cli/draft.h"
#include "cli/gt/gt.h"
#include "helptext.h"

static const char *const types[] = { "task", "scavenge", "notification", "reply", "escalation", NULL };

static const char *
type_named(const char *word)
{
	for (size_t i = 0; word && types[i]; i++)
		if (strcmp(types[i], word) == 0)
			return types[i];
	return "notification";
}

/* ---- The text ---- */

int
gt_body(struct cli *cli, const char *text, bool from_stdin, struct buf *ret)
{
	struct mr_error err = { 0 };

	if (from_stdin && text)
		return cli_usage(cli, "--stdin and -m exclude each other: the text comes from one place");
	if (!from_stdin) {
		buf_adds(ret, text ? text : "");
		return EXIT_DONE;
	}
	if (file_read_fd(STDIN_FILENO, MR_BODY_MAX, ret, &err) != MR_OK) {
		(void)mr_wrap(&err, "the text from standard input");
		return cli_fail(cli, &err);
	}
	while (ret->len > 0 && ret->ptr[ret->len - 1] == '\n')
		ret->ptr[--ret->len] = '\0';
	return EXIT_DONE;
}

/* ---- Headers for what only gt has ---- */

struct marks {
	struct mr_header v[4];
	size_t n;
};

static void
mark(struct marks *m, const char *name, const char *value)
{
	m->v[m->n++] = (struct mr_header){ name, value };
}

static void
say_warnings(struct cli *cli, const struct mr_receipt *receipt)
{
	for (size_t i = 0; i < receipt->warnings.n; i++)
		cli_warn(cli, "%s", receipt->warnings.v[i]);
	for (size_t i = 0; i < receipt->trouble.n; i++)
		cli_warn(cli, "%s", receipt->trouble.v[i]);
}

int
gt_mail(struct cli *cli, const struct gt_letter *letter, char ret_id[MR_ID_LEN + 1])
{
	const char *to[] = { letter->to, NULL };
	struct marks marks = { 0 };
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };

	if (letter->type)
		mark(&marks, "GT-Type", letter->type);
	if (letter->wisp && mr_room_has_lives(cli->room)) /* the formats of others have no place for it */
		mark(&marks, "GT-Wisp", "yes");
	struct mr_draft draft = { .to = to,
		.subject = letter->subject,
		.body = letter->body,
		.body_len = letter->body_len,
		.priority = letter->priority,
		.key = letter->key,
		.headers = marks.v,
		.headers_n = marks.n };
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	if (rc == MR_INDOUBT)
		cli_warn(cli, "%s", err.message);
	cli->changed = true;
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", receipt.id);
	say_warnings(cli, &receipt);
	cli_notify(cli, &receipt, cli->self.agent, letter->subject);
	if (!letter->no_notify)
		gt_nudge_mail(cli, &receipt, letter->priority);
	mr_receipt_done(&receipt);
	return EXIT_DONE;
}

/* ---- send ---- */

static const char **
copies(struct cli *cli, const char *const *given)
{
	size_t n = 0;

	while (given[n])
		n++;
	const char **list = n > 0 ? arena_alloc(&cli->own, (n + 1) * sizeof(*list)) : NULL;

	for (size_t i = 0; list && i < n; i++)
		list[i] = gt_recipient(cli, given[i]);
	return list;
}

static void
add_agents(struct cli *cli, const char *label, const struct mr_names *names)
{
	fence_addf(&cli->out, "  %s: ", label);
	for (size_t i = 0; i < names->n; i++)
		fence_addf(&cli->out, "%s%s", i > 0 ? ", " : "", gt_spelled(cli, names->v[i]));
	buf_addc(&cli->out, '\n');
}

static void
report(struct cli *cli, const struct mr_draft *draft, const char *type, const struct mr_receipt *receipt)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	if (cli->json) {
		json_open(&j, '{');
		json_key_str(&j, "id", receipt->id);
		json_key_names(&j, "recipients", &receipt->to);
		json_close(&j);
		gt_json_out(cli, &text);
		return;
	}
	buf_adds(&cli->out, "✓ Message sent to ");
	gt_clean(&cli->out, draft->to[0]);
	buf_adds(&cli->out, "\n  Subject: ");
	gt_clean(&cli->out, draft->subject);
	buf_addc(&cli->out, '\n');
	if (receipt->to.n != 1 || strcmp(receipt->to.v[0], draft->to[0]) != 0)
		add_agents(cli, "Recipients", &receipt->to);
	for (size_t i = 0; draft->cc && draft->cc[i]; i++)
		fence_addf(&cli->out, "  CC: %s\n", draft->cc[i]);
	if (strcmp(type, "notification") != 0)
		fence_addf(&cli->out, "  Type: %s\n", type);
	fence_addf(&cli->out, "  ID: %s\n", receipt->id);
}

/* What is pinned stays until somebody archives it by its id. The header says so from the first moment on; the mark,
 * which our own commands respect, is set as soon as it is there. */
static void
pin(struct cli *cli, const struct mr_receipt *receipt)
{
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < receipt->to.n; i++) {
		struct mr_self owner = { 0 };

		if (mr_self_named(cli->room, receipt->to.v[i], &owner, &ignored) == MR_OK)
			(void)mr_mark(cli->room, &owner, receipt->id, MR_PINNED, 0, &ignored);
	}
	(void)mr_flush(cli->room, &ignored);
}

static int
deliver(struct cli *cli, const struct mr_draft *draft, const char *type, bool pinned)
{
	const struct gt_mail_send_options *o = cli->opts;
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_send(cli->room, &cli->self, draft, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	if (draft->thread || draft->reply_to)
		draft_note_limited(cli, &receipt);
	cli->changed = true;
	cli->done_id = receipt.id;
	report(cli, draft, type, &receipt);
	bool flushed = cli_flush(cli);

	cli->done_id = NULL;
	if (rc == MR_INDOUBT)
		cli_warn(cli, "%s", err.message);
	say_warnings(cli, &receipt);
	if (pinned)
		pin(cli, &receipt);
	cli_notify(cli, &receipt, cli->self.agent, draft->subject);
	if (!o->no_notify)
		gt_nudge_mail(cli, &receipt, draft->priority);
	mr_receipt_done(&receipt);
	return flushed ? EXIT_DONE : EXIT_FAILED;
}

static const char *
address(struct cli *cli)
{
	const struct gt_mail_send_options *o = cli->opts;

	if (o->self) /* also when --from makes it another's */
		return arena_dup(&cli->own, str_of(cli->self.agent));
	if (o->to)
		return gt_recipient(cli, o->to);
	return cli->argc > 0 ? gt_recipient(cli, cli->argv[0]) : NULL;
}

static int
run_send(struct cli *cli)
{
	const struct gt_mail_send_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	const char *to[] = { address(cli), NULL };
	const char *type = type_named(o->type);
	struct mr_draft draft = { .to = to, .cc = copies(cli, o->cc), .subject = o->subject };
	struct marks marks = { 0 };

	if (!to[0])
		return cli_usage(cli, "send to whom? give an address, --to ADDRESS or --self");
	if (!draft.subject || !draft.subject[0])
		return cli_usage(cli, "a message needs a subject: -s SUBJECT");
	if (o->notify && o->no_notify)
		return cli_usage(cli, "--notify and --no-notify exclude each other");
	if (!gt_priority(cli, o->priority, &draft.priority))
		return EXIT_USAGE;
	draft.priority_given = o->priority != NULL;
	if (o->notify && draft.priority == MR_NORMAL)
		draft.priority = MR_HIGH;
	if (o->urgent)
		draft.priority = MR_URGENT;
	int code = gt_body(cli, o->message ? o->message : o->body, o->stdin_, &body);

	if (code != EXIT_DONE)
		return code;
	if (!gt_act_as(cli, o->from))
		return EXIT_FAILED;
	draft.body = body.len > 0 ? body.ptr : "";
	draft.body_len = body.len;
	draft.no_text = true;
	draft.force = o->force;
	draft.reply_to = o->reply_to;
	if (strcmp(type, "notification") != 0)
		mark(&marks, "GT-Type", type);
	if (!o->permanent && mr_room_has_lives(cli->room))
		mark(&marks, "GT-Wisp", "yes");
	if (o->pinned)
		mark(&marks, "GT-Pinned", "yes");
	draft.headers = marks.v;
	draft.headers_n = marks.n;
	return deliver(cli, &draft, type, o->pinned);
}

const struct cmd gt_mail_send = {
	.name = "gt mail send",
	.help = &help_gt_mail_send,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_send,
};

/* ---- reply ---- */

static int
run_reply(struct cli *cli)
{
	const struct gt_mail_reply_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .subject = o->subject };
	const char *text = cli->argc > 1 ? cli->argv[1] : o->message ? o->message : o->body;
	int code = gt_body(cli, text, o->stdin_, &body);

	if (code != EXIT_DONE)
		return code;
	if (body.len == 0)
		return cli_usage(cli, "a reply needs a text: gt mail reply ID -m TEXT");
	draft.body = body.ptr;
	draft.body_len = body.len;
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, false, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	draft_note_limited(cli, &receipt);
	cli->changed = true;
	cli->done_id = receipt.id;
	fence_addf(&cli->out, "✓ Reply sent to %s\n  ID: %s\n",
	    receipt.to.n > 0 ? gt_spelled(cli, receipt.to.v[0]) : "", receipt.id);
	bool flushed = cli_flush(cli);

	cli->done_id = NULL;
	if (rc == MR_INDOUBT)
		cli_warn(cli, "%s", err.message);
	say_warnings(cli, &receipt);
	cli_notify(cli, &receipt, cli->self.agent, draft.subject);
	gt_nudge_mail(cli, &receipt, draft.priority);
	mr_receipt_done(&receipt);
	return flushed ? EXIT_DONE : EXIT_FAILED;
}

const struct cmd gt_mail_reply = {
	.name = "gt mail reply",
	.help = &help_gt_mail_reply,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 2,
	.run = run_reply,
};
