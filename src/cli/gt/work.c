/* SPDX-License-Identifier: MIT */
/* work.c - gt handoff, hook, done: what an agent says about its own work. */
#include "cli/gt/gt.h"
#include "helptext.h"

#include <unistd.h>

/* ---- handoff ---- */

static int
hand_off(struct cli *cli, const char *subject, const char *text, bool collect)
{
	struct mr_handoff what = { .subject = subject, .text = text, .collect = collect, .dry_run = cli->dry_run };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_handoff(cli->room, &cli->self, &what, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	cli->changed = !what.dry_run;
	if (what.dry_run)
		fence_addf(&cli->out, "would hand off to the next life of %s\n", gt_spelled(cli, cli->self.agent));
	else
		fence_addf(&cli->out, "🤝 Handed off to the next life of %s\n  ID: %s\n",
		    gt_spelled(cli, cli->self.agent), receipt.id);
	mr_receipt_done(&receipt);
	return EXIT_DONE;
}

static bool
is_polecat(const char *agent)
{
	struct mr_str rig = gt_rig_of(agent);
	const char *name = agent + rig.len + 1;

	if (rig.len == 0 || strcmp(name, "witness") == 0 || strcmp(name, "refinery") == 0)
		return false;
	return !strchr(name, '/') || str_starts(str_of(name), "polecats/");
}

static int report_done(struct cli *cli, const struct gt_done_options *o, const char *status, const char *note);

static int
run_handoff(struct cli *cli)
{
	const struct gt_handoff_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int code = gt_body(cli, o->message, o->stdin_, &text);

	if (code != EXIT_DONE)
		return code;
	/* A role is somebody else's session, which we do not start; anything else is the work that goes on. */
	if (cli->argc > 0)
		buf_addf(&text, "%sHook: %s", text.len > 0 ? "\n\n" : "", cli->argv[0]);
	if (o->reason)
		buf_addf(&text, "%sReason: %s", text.len > 0 ? "\n\n" : "", o->reason);
	if (!buf_ok(&text) && text.failed)
		cli->out.failed = true;
	if (is_polecat(cli->self.agent))
		return report_done(cli, &(struct gt_done_options){ 0 }, "DEFERRED", buf_z(&text));
	return hand_off(cli, o->subject, text.len > 0 ? buf_z(&text) : NULL, o->collect);
}

const struct cmd gt_handoff = {
	.name = "gt handoff",
	.help = &help_gt_handoff,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_handoff,
};

/* ---- hook ---- */

static int
run_hook(struct cli *cli)
{
	const struct task_options *o = cli->opts;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1] = "";
	bool dry = cli->dry_run;

	if (cli->argc == 0) {
		enum mr_rc rc = mr_hook_get(cli->room, cli->self.agent, id, &err);

		if (rc != MR_OK && rc != MR_EMPTY)
			return cli_fail(cli, &err);
		fence_addf(&cli->out, "%s\n", rc == MR_OK ? id : "Nothing on the hook");
		return EXIT_DONE;
	}
	enum mr_rc rc = dry ? mr_resolve_id(cli->room, cli->self.agent, cli->argv[0], MR_INBOX | MR_HELD, id, &err)
			    : mr_hook_set(cli->room, &cli->self, cli->argv[0], o->force, id, &err);

	if (rc != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = !dry;
	fence_addf(&cli->out, "%s %s\n", dry ? "would put on the hook:" : "✓ On the hook:", id);
	return o->subject || o->message ? hand_off(cli, o->subject, o->message, false) : EXIT_DONE;
}

const struct cmd gt_hook = {
	.name = "gt hook",
	.help = &help_gt_hook,
	.needs = CMD_SELF,
	.max_args = 1,
	.run = run_hook,
};
const struct cmd gt_mail_hook = {
	.name = "gt mail hook",
	.help = &help_gt_mail_hook,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_hook,
};

/* ---- done ---- */

/* The branch of the working folder, or "". */
static void
add_branch(struct buf *out)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	mr_auto(free_ptr) char *branch = cwd ? mr_git_branch(cwd) : NULL;

	buf_adds(out, branch ? branch : "");
}

static void
add_field(struct buf *out, const char *name, const char *value)
{
	if (value && value[0])
		buf_addf(out, "%s: %s\n", name, value);
}

static int
report_done(struct cli *cli, const struct gt_done_options *o, const char *status, const char *note)
{
	mr_auto(buf_done) struct buf to = BUF_INIT, subject = BUF_INIT, body = BUF_INIT, branch = BUF_INIT;
	const char *agent = cli->self.agent, *given = o->branch;
	struct mr_str rig = gt_rig_of(agent);
	char id[MR_ID_LEN + 1] = "";

	buf_adds(&branch, given ? given : "");
	if (!given)
		add_branch(&branch);
	buf_add(&to, rig);
	buf_adds(&to, "/witness");
	buf_addf(&subject, "POLECAT_DONE %s", strrchr(agent, '/') + 1);
	add_field(&body, "Exit", status);
	add_field(&body, "Issue", o->issue);
	add_field(&body, "MR", o->mr);
	add_field(&body, "Branch", buf_z(&branch));
	buf_addc(&body, '\n');
	add_field(&body, "Target", o->target);
	add_field(&body, "Cleanup Status", o->cleanup_status);
	add_field(&body, "Pre-Verified", o->pre_verified ? "true" : NULL);
	buf_adds(&body, note);
	while (body.len > 0 && body.ptr[body.len - 1] == '\n')
		body.ptr[--body.len] = '\0';
	struct gt_letter letter = {
		.to = buf_z(&to), .subject = buf_z(&subject), .body = buf_z(&body), .body_len = body.len, .wisp = true
	};

	if (!gt_priority(cli, o->priority, &letter.priority))
		return EXIT_USAGE;
	int code = gt_mail(cli, &letter, id);

	if (code == EXIT_DONE)
		fence_addf(&cli->out, "✓ %s: told %s\n  ID: %s\n", status, buf_z(&to), id);
	return code;
}

static bool
is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

static int
run_done(struct cli *cli)
{
	static const char *const states[] = { "MERGED", "COMPLETED", "ESCALATED", "DEFERRED", "PHASE_COMPLETE", NULL };
	static const char *const clean[] = { "clean", "uncommitted", "unpushed", "stash", "unknown", NULL };
	const struct gt_done_options *o = cli->opts;
	const char *status = o->status, *cleanup = o->cleanup_status;
	struct mr_error err = { 0 };

	if (status && !is_one_of(status, states))
		return cli_usage(
		    cli, "'%.40s' is none of COMPLETED, MERGED, ESCALATED, DEFERRED, PHASE_COMPLETE", status);
	/* What Gas Town's documents call MERGED its command calls COMPLETED; only with a merge request is it more. */
	if (status && strcmp(status, "MERGED") == 0 && !o->mr)
		status = "COMPLETED";
	if (cleanup && !is_one_of(cleanup, clean))
		return cli_usage(cli, "'%.40s' is none of clean, uncommitted, unpushed, stash, unknown", cleanup);
	if (!is_polecat(cli->self.agent)) {
		(void)mr_fail(&err, MR_REFUSED, "'%s' is no polecat", cli->self.agent);
		(void)mr_hint(&err, "only RIG/NAME and RIG/polecats/NAME report to a witness");
		return cli_fail(cli, &err);
	}
	return report_done(cli, o, status ? status : "COMPLETED", "");
}

const struct cmd gt_done = {
	.name = "gt done",
	.help = &help_gt_done,
	.needs = CMD_SELF,
	.max_args = 0,
	.run = run_done,
};
