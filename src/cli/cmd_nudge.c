/* SPDX-License-Identifier: MIT */
/* Nudges: showing them, telling those who get mail, mailroom nudge and dnd. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/gt/gt.h"

#define TEXT_MAX 4000         /* characters of one nudge in a listing */
#define MAIL_PATIENCE_MS 3000 /* for an idle terminal, when one agent got the mail; with several nobody waits */

/* ---- Showing ---- */

/* False: it did not fit. */
static bool
print_one(struct cli *cli, const struct mr_nudge *n)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (out_json(cli, kv_bool("nudge", true), kv_str("from", n->from), kv_str("text", n->text),
		kv_str("priority", n->priority == MR_URGENT ? "urgent" : "normal"), kv_opt("kind", n->kind),
		kv_opt("thread", n->thread), kv_time("date", n->at_ms), kv_int("times", (int64_t)n->times),
		kv_bool("answer_wanted", n->answer_wanted)))
		return true;
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
	return budget_add(cli, &line);
}

size_t
nudges_print(struct cli *cli, struct mr_nudges *nudges)
{
	size_t n = mr_nudges_count(nudges), shown = 0;
	unsigned refused = mr_nudges_refused(nudges);

	while (shown < n && print_one(cli, mr_nudges_get(nudges, shown)))
		shown++;
	if (refused > 0 && shown > 0)
		cli_warn(cli, "%u further nudge%s for you found the queue full and %s refused", refused,
		    refused == 1 ? "" : "s", refused == 1 ? "was" : "were");
	return shown;
}

void
nudges_look(struct cli *cli)
{
	struct mr_nudges *nudges = NULL;

	if (mr_nudges_open(cli->room, cli->self.agent, false, &nudges, IGNORED) != MR_OK)
		return;
	(void)nudges_print(cli, nudges);
	mr_nudges_close(nudges);
}

void
nudges_say_way(struct buf *out, const char *agent, const struct mr_nudged *done)
{
	switch (done->way) {
	case MR_NUDGE_SKIPPED:
		fence_addf(out, "skipped: %s is not to be disturbed (--force nudges anyway)", agent);
		break;
	case MR_NUDGE_QUEUED:
		fence_addf(out, "queued for %s", agent);
		if (done->coalesced)
			buf_adds(out, ", where the same nudge was waiting");
		if (done->came[0])
			buf_addf(out, "; its bell: %s, %s", done->bell,
			    strcmp(done->came, "rung") == 0 ? "not answered yet" : done->came);
		if (done->why[0])
			fence_addf(out, ": %.300s", done->why);
		break;
	case MR_NUDGE_SHOWN:
		fence_addf(out, "shown to %s, who was waiting", agent);
		if (done->came[0])
			buf_addf(out, " (bell: %s, %s)", done->bell, done->came);
		break;
	case MR_NUDGE_TYPED:
		fence_addf(out, "typed and submitted in the terminal of %s", agent);
		break;
	case MR_NUDGE_PLACED:
		fence_addf(out, "left for %s, in place of the one before", agent);
		break;
	}
}

/*
 * ---- Mail for the operator ----
 *
 * The command comes from the user's configuration and runs on its own: the send is done whether it works or not. What
 * the mail says reaches it as environment variables, never as shell text.
 */

static void
set_cleaned(const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	text_clean_line(&clean, str_of(value));
	(void)setenv(name, buf_z(&clean), 1);
}

void
cli_notify(struct cli *cli, const struct mr_receipt *receipt, const char *from, const char *subject)
{
	mr_auto(mr_message_done) struct mr_message sent = { 0 };

	/* The draft may have left it to the library: what was sent says it. */
	if (!subject && mr_fetch(cli->room, "operator", receipt->id, &sent, IGNORED) == MR_OK)
		subject = sent.subject;
	pid_t child = fork();

	if (child < 0) {
		cli_warn(cli, "the mail is delivered, but your Notify command could not be started");
		return;
	}
	if (child > 0) {
		(void)waitpid(child, NULL, 0); /* only the short-lived middle process */
		return;
	}
	/* A second fork, so that nobody has to wait for the command and it is nobody's zombie. */
	if (fork() != 0)
		_exit(0);
	int null_fd = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

	(void)setsid();
	for (int fd = 0; fd < 3; fd++) {
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			(void)sys_close(fd);
	}
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	set_cleaned("MAILROOM_SUBJECT", subject ? subject : "");
	set_cleaned("MAILROOM_ID", receipt->id);
	set_cleaned("MAILROOM_FROM", from ? from : "");
	(void)execl("/bin/sh", "sh", "-c", receipt->notify, (char *)NULL);
	_exit(127);
}

/* ---- Mail ---- */

static void
tell_notify(void *ctx, const struct mr_receipt *receipt, const char *subject)
{
	struct cli *cli = ctx;

	if (receipt->notify)
		cli_notify(cli, receipt, cli->self.agent, subject);
}

/* The text of the mail stays in the mail: what is typed into a terminal is not a place for words of others. gt nudges
 * as Gas Town does: it types, and a thread wakes its agents however often it goes on. */
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
		.mode = cli->gt || (types && ascii_caseeq(types, "yes")) ? MR_NUDGE_WAIT_IDLE : MR_NUDGE_QUEUE };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };
	bool gt = cli->gt;

	if (!gt && mr_wake_by_mail(cli->room, &cli->self, to, id,
		       &(struct mr_wake_options){ .told = tell_notify, .ctx = cli }, &err) != MR_OK) {
		cli_warn(cli, "the mail is delivered, but: %s", err.message);
		return;
	}
	(void)snprintf(text, sizeof text, "you have mail from %s: %s %s",
	    gt ? gt_spelled(cli->self.agent) : cli->self.agent, gt ? "gt mail read" : "mailroom read",
	    gt ? id : short_id(id));
	enum mr_rc rc = mr_nudge_send(cli->room, &cli->self, to, &nudge, &how, &done, &err);

	if (rc != MR_OK && !(gt && rc == MR_UNSUPPORTED))
		cli_warn(cli, "the mail is delivered, but: %s", err.message);
	else if (rc == MR_OK && done.way == MR_NUDGE_TYPED && !gt)
		mr_wake_count(cli->room, to, id);
}

void
nudges_of_mail(struct cli *cli, const struct mr_draft *draft, const struct mr_receipt *receipt)
{
	const char *rule = mr_room_setting(cli->room, "Nudge-On-Send");
	const char *own = mr_config_get(cli->room, "Nudge-On-Send");

	if (cli->no_notify ||
	    (!cli->notify && !cli->gt && !(rule && ascii_caseeq(rule, "yes")) && !(own && ascii_caseeq(own, "yes"))))
		return;
	for (size_t i = 0; i < receipt->to.n; i++) {
		const char *to = receipt->to.v[i];

		/* Queues and channels cannot be nudged, agents of other rooms are out of reach, and the sender
		 * knows. */
		if (strpbrk(to, ":@") == NULL && strcmp(to, cli->self.agent) != 0 &&
		    !(cli->gt && strcmp(to, "operator") == 0))
			nudge_one(cli, draft, receipt->id, to, receipt->to.n == 1);
	}
}

/* ---- nudge ---- */

enum mr_nudge_mode
nudge_mode(const char *word)
{
	if (word && strcmp(word, "queue") == 0)
		return MR_NUDGE_QUEUE;
	return word && strcmp(word, "immediate") == 0 ? MR_NUDGE_IMMEDIATE : MR_NUDGE_WAIT_IDLE;
}

static int
escalate(struct cli *cli, const char *agent)
{
	const struct nudge_options *o = cli->opts;
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *to[] = { o->escalate_to, NULL };

	if (!to[0])
		return EXIT_NOTHING;
	buf_addf(&subject, "no answer from %s", agent);
	buf_addf(&body, "%s did not answer a nudge (%s) within %s.\n", agent, o->kind ? o->kind : "no kind",
	    lasting(o->await_ms).text);
	struct mr_draft draft = { .to = to,
		.subject = buf_z(&subject),
		.body = buf_z(&body),
		.body_len = body.len,
		.type = "health_escalation",
		.priority = MR_URGENT };
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	cli_warn_each(cli, &receipt.warnings);
	cli_warn(cli, "%s was told: %s", to[0], receipt.id);
	return EXIT_NOTHING;
}

static int
await(struct cli *cli, int64_t since_ms, int64_t wait_ms)
{
	mr_auto(free_ptr) char *text = NULL;
	const char *agent = cli->argv[0];

	if (!cli_flush(cli))
		return EXIT_FAILED;
	enum mr_rc rc = mr_nudge_answer(cli->room, &cli->self, agent, since_ms, wait_ms, &text, &cli->err);

	if (rc == MR_EMPTY) {
		cli_warn(cli, "%s", cli->err.message);
		return escalate(cli, agent);
	}
	TRY_CLI(rc);
	bool shown = print_one(
	    cli, &(struct mr_nudge){ .from = agent, .text = text, .kind = "nudge_response", .thread = "", .times = 1 });

	budget_end(cli, "nudge", "mailroom wait");
	return shown ? EXIT_DONE : EXIT_FAILED;
}

int
cmd_nudge(struct cli *cli, const struct nudge_options *o)
{
	static const char *const ways[] = { "skipped", "queued", "shown", "typed", "placed" }; /* enum mr_nudge_way */
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int64_t since_ms = clock_now_ms(), from_ms = since_ms + o->not_before_ms;
	struct mr_nudge nudge = {
		.priority = o->urgent     ? MR_URGENT
			    : o->priority ? *o->priority
					  : MR_NORMAL,
		.kind = o->kind,
		.thread = o->thread,
		.answer_wanted = o->answer_wanted,
		.not_before_ms = o->not_before_ms > 0 ? from_ms : 0,
		.expires_ms = o->ttl_ms > 0 ? from_ms + o->ttl_ms : 0,
	};
	struct mr_nudge_options how = { .patience_ms = o->patience_ms, .force = o->force, .mode = nudge_mode(o->mode) };
	struct mr_nudged done = { 0 };
	const char *agent = cli->argv[0];

	budget_begin(cli);
	if (cli->argc > 1 && o->message)
		return cli_usage(cli, "the text is given twice, with -m and without");
	TRY_CODE(
	    cli_body(cli, cli->argc > 1 ? cli->argv[1] : o->message, o->stdin_ && !o->file ? "-" : o->file, &text));
	if (memchr(text.ptr, '\0', text.len))
		return cli_usage(cli, "the text has a NUL byte");
	while (text.len > 0 && text.ptr[text.len - 1] == '\n') /* the line end that a heredoc has */
		text.ptr[--text.len] = '\0';
	nudge.text = buf_z(&text);
	TRY_CLI(mr_nudge_send(cli->room, &cli->self, agent, &nudge, &how, &done, &cli->err));
	cli->changed = done.way != MR_NUDGE_SKIPPED;
	if (!out_json(cli, kv_str("agent", agent), kv_str("way", ways[done.way]), kv_opt("why", done.why),
		kv_str("bell", done.bell[0] ? done.bell : "none"), kv_opt("came", done.came),
		kv_bool("coalesced", done.coalesced))) {
		nudges_say_way(&cli->out, agent, &done);
		buf_addc(&cli->out, '\n');
	}
	return o->await_ms >= 0 ? await(cli, since_ms, o->await_ms) : EXIT_DONE;
}

/* ---- dnd: do not disturb ---- */

int
cmd_dnd_status(struct cli *cli)
{
	int64_t since_ms = 0;
	bool on = false;

	TRY_CLI(mr_dnd_get(cli->room, cli->self.agent, &on, &since_ms, &cli->err));
	if (out_json(cli, kv_str("agent", cli->self.agent), kv_bool("dnd", on), kv_time("since", since_ms)))
		return EXIT_DONE;
	fence_addf(&cli->out, "%s %s", cli->self.agent, on ? "is not to be disturbed" : "can be nudged");
	if (on && since_ms > 0)
		buf_addf(&cli->out, ", since %s", lasting(clock_now_ms() - since_ms).text);
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

int
cmd_dnd_set(struct cli *cli)
{
	TRY_CLI(mr_dnd_set(cli->room, cli->self.agent, strcmp(cli->subword, "on") == 0, &cli->err));
	cli->changed = true;
	return cmd_dnd_status(cli);
}
