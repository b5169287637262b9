/* SPDX-License-Identifier: MIT */
/* mail_send.c - gt mail send, reply, nudge, dnd, and the mail that other commands of gt send by themselves. */
#include "cli/draft.h"
#include "cli/gt/gt.h"

#define PATIENCE_MS 15000
#define FRESH_MS 60000

int
gt_body(struct cli *cli, const char *text, bool from_stdin, struct buf *ret)
{
	if (from_stdin && text)
		return cli_usage(cli, "--stdin and -m are both given: give the text with one of them");
	if (!from_stdin) {
		buf_adds(ret, text ? text : "");
		return EXIT_DONE;
	}
	TRY_CLI(cli_read("-", ret, &cli->err));
	while (ret->len > 0 && ret->ptr[ret->len - 1] == '\n')
		ret->ptr[--ret->len] = '\0';
	return EXIT_DONE;
}

/* ---- What follows a delivery ---- */

/* The mail is delivered, maybe in doubt: cli->err says why. Prints what waits in cli->out, then warns and notifies. */
static int
finish_send(struct cli *cli, const struct mr_draft *draft, enum mr_rc rc, const struct mr_receipt *receipt)
{
	cli->changed = true;
	cli->done_id = receipt->id;
	bool flushed = cli_flush(cli);

	cli->done_id = NULL;
	if (rc == MR_INDOUBT)
		cli_warn(cli, "%s", cli->err.message);
	cli_warn_each(cli, &receipt->warnings);
	cli_warn_each(cli, &receipt->trouble);
	if (receipt->notify)
		cli_notify(cli, receipt, cli->self.agent, draft->subject);
	nudges_of_mail(cli, draft, receipt);
	return flushed ? EXIT_DONE : EXIT_FAILED;
}

int
gt_mail(struct cli *cli, struct mr_draft *draft, char ret_id[MR_ID_LEN + 1])
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_send(cli->room, &cli->self, draft, &receipt, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", receipt.id);
	return finish_send(cli, draft, rc, &receipt);
}

/* ---- send ---- */

static void
report(struct cli *cli, const struct mr_draft *draft, const char *type, const struct mr_receipt *receipt)
{
	struct buf *out = &cli->out;

	if (gt_json(cli, kv_str("id", receipt->id), kv_names("recipients", &receipt->to)))
		return;
	buf_adds(out, "✓ Message sent to ");
	out_line(out, draft->to[0]);
	buf_adds(out, "\n  Subject: ");
	out_line(out, draft->subject);
	buf_addc(out, '\n');
	if (receipt->to.n != 1 || strcmp(receipt->to.v[0], draft->to[0]) != 0) {
		buf_adds(out, "  Recipients: ");
		for (size_t i = 0; i < receipt->to.n; i++)
			fence_addf(out, "%s%s", i > 0 ? ", " : "", gt_spelled(receipt->to.v[i]));
		buf_addc(out, '\n');
	}
	for (size_t i = 0; draft->cc && draft->cc[i]; i++)
		fence_addf(out, "  CC: %s\n", draft->cc[i]);
	if (strcmp(type, "notification") != 0)
		fence_addf(out, "  Type: %s\n", type);
	fence_addf(out, "  ID: %s\n", receipt->id);
}

int
gt_send(struct cli *cli, const struct gt_mail_send_options *o)
{
	static const char *const types[] = { "task", "scavenge", "reply", "escalation", NULL };
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *type = "notification", *given = o->to ? o->to : cli->argc > 0 ? cli->argv[0] : NULL;
	const char *to[] = { NULL, NULL };
	struct mr_header headers[3]; /* for what only gt has */
	struct mr_draft draft = { .to = to, .subject = o->subject, .headers = headers, .no_text = true };
	size_t copies = opt_count(o->cc);

	if (o->self) /* the caller, also when --from names another sender */
		to[0] = arena_dup(&cli->own, str_of(cli->self.agent));
	else if (given)
		to[0] = gt_recipient(cli, given);
	if (!to[0])
		return cli_usage(cli, "the recipient is missing: give an address, --to ADDRESS or --self");
	if (!draft.subject || !draft.subject[0])
		return cli_usage(cli, "a message needs a subject: -s SUBJECT");
	if (!gt_priority(cli, o->priority, &draft.priority))
		return EXIT_USAGE;
	draft.priority_given = o->priority != NULL;
	if (o->notify && draft.priority == MR_NORMAL)
		draft.priority = MR_HIGH;
	if (o->urgent)
		draft.priority = MR_URGENT;
	TRY_CODE(gt_body(cli, o->message ? o->message : o->body, o->stdin_, &body));
	TRY_CLI(gt_act_as(cli, o->from));
	draft.body = body.len > 0 ? body.ptr : "";
	draft.body_len = body.len;
	draft.force = o->force;
	draft.reply_to = o->reply_to;
	const char **cc = copies > 0 ? arena_alloc(&cli->own, (copies + 1) * sizeof(*cc)) : NULL;

	for (size_t i = 0; cc && i < copies; i++)
		cc[i] = gt_recipient(cli, o->cc[i]);
	draft.cc = cc;
	if (o->type && word_at(types, o->type) >= 0)
		headers[draft.headers_n++] = (struct mr_header){ "GT-Type", type = o->type };
	if (!o->permanent && mr_room_has(cli->room, MR_HAS_LIVES)) /* the formats of others have no place for it */
		headers[draft.headers_n++] = (struct mr_header){ "GT-Wisp", "yes" };
	if (o->pinned)
		headers[draft.headers_n++] = (struct mr_header){ "GT-Pinned", "yes" };
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	if (draft.reply_to)
		draft_note_limited(cli, &receipt);
	/* Pinned mail stays until it is archived by its id. Its header says so from the delivery on; the flag, which
	 * our own commands respect, is set afterwards. */
	for (size_t i = 0; o->pinned && i < receipt.to.n; i++) {
		struct mr_self owner = { 0 };

		if (mr_self_named(cli->room, receipt.to.v[i], &owner, IGNORED) == MR_OK)
			(void)mr_mark(cli->room, &owner, receipt.id, MR_PINNED, 0, IGNORED);
	}
	if (o->pinned)
		(void)mr_flush(cli->room, IGNORED);
	report(cli, &draft, type, &receipt);
	return finish_send(cli, &draft, rc, &receipt);
}

int
gt_reply(struct cli *cli, const struct gt_mail_reply_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .subject = o->subject };
	const char *text = cli->argc > 1 ? cli->argv[1] : o->message ? o->message : o->body;
	TRY_CODE(gt_body(cli, text, o->stdin_, &body));
	if (body.len == 0)
		return cli_usage(cli, "a reply needs a text: gt mail reply ID -m TEXT");
	draft.body = body.ptr;
	draft.body_len = body.len;
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, false, &receipt, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	draft_note_limited(cli, &receipt);
	fence_addf(&cli->out, "✓ Reply sent to %s\n  ID: %s\n", receipt.to.n > 0 ? gt_spelled(receipt.to.v[0]) : "",
	    receipt.id);
	return finish_send(cli, &draft, rc, &receipt);
}

/* ---- nudge, dnd ---- */

int
gt_nudge(struct cli *cli, const struct gt_nudge_options *o)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_resolution_done) struct mr_resolution meant = { 0 };
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	mr_auto(mr_agent_done) struct mr_agent self = { 0 };
	bool urgent = o->priority && strcmp(o->priority, "urgent") == 0;
	struct mr_nudge nudge = { .priority = urgent ? MR_URGENT : MR_NORMAL };
	struct mr_nudge_options how = { .force = o->force, .patience_ms = PATIENCE_MS, .mode = nudge_mode(o->mode) };

	TRY_CODE(gt_body(cli, cli->argc > 1 ? cli->argv[1] : o->message, o->stdin_, &text));
	if (text.len == 0)
		return cli_usage(cli, "a nudge needs a text: gt nudge TARGET TEXT");
	nudge.text = buf_z(&text);
	/* A life that began more than a minute ago has nothing new to tell. */
	if (o->if_fresh && (mr_agent_get(cli->room, cli->self.agent, &self, IGNORED) != MR_OK ||
			       clock_now_ms() - self.started_ms > FRESH_MS))
		return EXIT_DONE;
	const char *target = gt_recipient(cli, cli->argv[0]);
	struct mr_str rig = gt_rig_of(cli->self.agent);

	/* "witness" and "refinery" are those of the caller's own rig. */
	if (rig.len > 0 && (strcmp(target, "witness") == 0 || strcmp(target, "refinery") == 0))
		target = cli_text(cli, "%.*s/%s", (int)rig.len, rig.ptr, target);
	TRY_CLI(mr_got(target, &cli->err));
	TRY_CLI(mr_resolve(cli->room, cli->self.agent, target, &meant, &cli->err));
	const struct mr_names *agents = &meant.targets;
	int code = EXIT_DONE;

	if (strcmp(meant.form, "channel") == 0) { /* a nudge goes to its subscribers */
		TRY_CLI(mr_channel_get(cli->room, meant.name, &channel, &cli->err));
		agents = &channel.subscribers;
	}
	for (size_t i = 0; i < agents->n; i++) {
		struct mr_nudged done = { 0 };

		if (mr_nudge_send(cli->room, &cli->self, agents->v[i], &nudge, &how, &done, &cli->err) != MR_OK) {
			code = cli_fail(cli, &cli->err);
			continue;
		}
		cli->changed = true;
		nudges_say_way(&cli->out, gt_spelled(agents->v[i]), &done);
		buf_addc(&cli->out, '\n');
	}
	return code;
}

int
gt_dnd(struct cli *cli)
{
	const char *word = cli->argc > 0 ? cli->argv[0] : "status";
	int64_t since_ms = 0;
	bool on = strcmp(word, "on") == 0, asks = strcmp(word, "status") == 0;

	if (!asks && !on && strcmp(word, "off") != 0)
		return cli_usage(cli, "'%.40s' is not one of on, off, status", word);
	if (!asks)
		TRY_CLI(mr_dnd_set(cli->room, cli->self.agent, on, &cli->err));
	cli->changed = !asks;
	TRY_CLI(mr_dnd_get(cli->room, cli->self.agent, &on, &since_ms, &cli->err));
	fence_addf(&cli->out, "%s Do not disturb is %s for %s\n", on ? "🔕" : "🔔", on ? "on" : "off",
	    gt_spelled(cli->self.agent));
	return EXIT_DONE;
}
