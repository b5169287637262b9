/* SPDX-License-Identifier: MIT */
#include "nudges.h"

#define TEXT_MAX 4000         /* characters of one nudge in a listing */
#define MAIL_PATIENCE_MS 3000 /* for an idle terminal, when one agent got the mail; with several nobody waits */

/* ---- Showing ---- */

static void
print_json(struct cli *cli, const struct mr_nudge *n)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_bool(&j, "nudge", true);
	json_key_str(&j, "from", n->from);
	json_key_str(&j, "text", n->text);
	json_key_str(&j, "priority", n->priority == MR_URGENT ? "urgent" : "normal");
	json_key_str(&j, "kind", n->kind[0] ? n->kind : NULL);
	json_key_str(&j, "thread", n->thread[0] ? n->thread : NULL);
	json_key_time(&j, "date", n->at_ms);
	json_key_int(&j, "times", (int64_t)n->times);
	json_key_bool(&j, "answer_wanted", n->answer_wanted);
	out_json_line(cli, &j);
}

static bool
print_text(struct cli *cli, const struct mr_nudge *n)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_adds(&line, n->priority == MR_URGENT ? "URGENT nudge from " : "nudge from ");
	text_name(cli, &line, n->from);
	if (n->kind[0])
		fence_addf(&line, ", %s", n->kind);
	if (n->times > 1)
		buf_addf(&line, ", %u times", n->times);
	if (n->answer_wanted)
		buf_adds(&line, ", an answer is wanted");
	buf_adds(&line, ": ");
	size_t left = fence_add(&line, str_of(n->text), out_form(cli, FENCE_LINE), TEXT_MAX);

	if (left > 0)
		buf_addf(&line, " (%zu more characters)", left);
	buf_addc(&line, '\n');
	return buf_ok(&line) && budget_add(cli, buf_str(&line));
}

size_t
nudges_print(struct cli *cli, struct mr_nudges *nudges)
{
	size_t n = mr_nudges_count(nudges), shown = 0;
	unsigned refused = mr_nudges_refused(nudges);

	for (; shown < n; shown++) {
		if (cli->json)
			print_json(cli, mr_nudges_get(nudges, shown));
		else if (!print_text(cli, mr_nudges_get(nudges, shown)))
			break;
	}
	if (refused > 0 && shown > 0)
		cli_warn(cli, "%u further nudge%s for you found the queue full and %s refused", refused,
		    refused == 1 ? "" : "s", refused == 1 ? "was" : "were");
	return shown;
}

bool
nudges_print_one(struct cli *cli, const struct mr_nudge *nudge)
{
	if (cli->json) {
		print_json(cli, nudge);
		return true;
	}
	bool printed = print_text(cli, nudge);

	budget_end(cli, "nudge", "mailroom wait");
	return printed;
}

void
nudges_look(struct cli *cli)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error ignored = { 0 };

	if (mr_nudges_open(cli->room, cli->self.agent, false, &nudges, &ignored) != MR_OK)
		return;
	(void)nudges_print(cli, nudges);
	mr_nudges_close(nudges);
}

/* ---- What became of one ---- */

const char *
nudges_way_word(enum mr_nudge_way way)
{
	switch (way) {
	case MR_NUDGE_SKIPPED:
		return "skipped";
	case MR_NUDGE_QUEUED:
		return "queued";
	case MR_NUDGE_SHOWN:
		return "shown";
	case MR_NUDGE_TYPED:
		return "typed";
	case MR_NUDGE_PLACED:
		return "placed";
	}
	return "?";
}

void
nudges_say_way(struct buf *out, const char *agent, const struct mr_nudged *done)
{
	switch (done->way) {
	case MR_NUDGE_SKIPPED:
		fence_addf(out, "skipped: %s is not to be disturbed (--force nudges all the same)", agent);
		break;
	case MR_NUDGE_QUEUED:
		fence_addf(out, "queued for %s", agent);
		if (done->coalesced)
			buf_adds(out, ", where the same was waiting");
		if (done->why[0])
			fence_addf(out, ": %.300s", done->why);
		break;
	case MR_NUDGE_SHOWN:
		fence_addf(out, "shown to %s, who was waiting", agent);
		break;
	case MR_NUDGE_TYPED:
		fence_addf(out, "typed and submitted in the terminal of %s", agent);
		break;
	case MR_NUDGE_PLACED:
		fence_addf(out, "left for %s, in place of the one before", agent);
		break;
	}
}

/* ---- Mail ---- */

static void
tell_notify(void *ctx, const struct mr_receipt *receipt, const char *subject)
{
	struct cli *cli = ctx;

	cli_notify(cli, receipt, cli->self.agent, subject);
}

/* The text of the mail stays in the mail: what is typed into a terminal is not a place for words of others. */
static void
nudge_one(struct cli *cli, const struct mr_draft *draft, const char *id, const char *to, bool only)
{
	char text[MR_ADDRESS_MAX + 80];
	struct mr_nudge nudge = {
		.text = text, .kind = "mail", .priority = draft->priority >= MR_HIGH ? MR_URGENT : MR_NORMAL
	};
	const char *types = mr_config_get(cli->room, "Nudge-On-Send");
	struct mr_nudge_options how = { .patience_ms = only ? MAIL_PATIENCE_MS : 0,
		/* Typing runs tmux. Agents may send unasked, so only the user lets a send do it. */
		.mode = types && ascii_caseeq(types, "yes") ? MR_NUDGE_WAIT_IDLE : MR_NUDGE_QUEUE };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };

	if (mr_wake_by_mail(cli->room, &cli->self, to, id, &(struct mr_wake_options){ .told = tell_notify, .ctx = cli },
		&err) != MR_OK) {
		cli_warn(cli, "the mail is delivered, but: %s", err.message);
		return;
	}
	(void)snprintf(text, sizeof text, "you have mail from %s: mailroom read %s", cli->self.agent, short_id(id));
	if (mr_nudge_send(cli->room, &cli->self, to, &nudge, &how, &done, &err) != MR_OK)
		cli_warn(cli, "the mail is delivered, but: %s", err.message);
	else if (done.way == MR_NUDGE_TYPED)
		mr_wake_count(cli->room, to, id);
}

void
nudges_of_mail(struct cli *cli, const struct mr_draft *draft, const struct mr_receipt *receipt)
{
	const char *rule = mr_room_setting(cli->room, "Nudge-On-Send");
	const char *own = mr_config_get(cli->room, "Nudge-On-Send");

	if (cli->no_notify ||
	    (!cli->notify && !(rule && ascii_caseeq(rule, "yes")) && !(own && ascii_caseeq(own, "yes"))))
		return;
	for (size_t i = 0; i < receipt->to.n; i++) {
		const char *to = receipt->to.v[i];

		/* Queues and channels have no shoulder, people in other rooms are out of reach, and who writes to
		 * itself knows. */
		if (strpbrk(to, ":@") == NULL && strcmp(to, cli->self.agent) != 0)
			nudge_one(cli, draft, receipt->id, to, receipt->to.n == 1);
	}
}
