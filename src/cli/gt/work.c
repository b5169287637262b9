/* SPDX-License-Identifier: MIT */
/* work.c - gt handoff, hook, done: what an agent says about its own work; gt sling, deacon redispatch: giving work out,
 * once and again. */
#include "cli/gt/gt.h"

#include <unistd.h>

/* ---- done ---- */

static bool
is_polecat(const char *agent)
{
	struct mr_str rig = gt_rig_of(agent);
	const char *name = agent + rig.len + 1;

	if (rig.len == 0 || strcmp(name, "witness") == 0 || strcmp(name, "refinery") == 0)
		return false;
	return !strchr(name, '/') || str_starts(str_of(name), "polecats/");
}

static void
add_field(struct buf *out, const char *name, const char *value)
{
	if (value && value[0])
		buf_addf(out, "%s: %s\n", name, value);
}

/* Tells the witness of the rig that the polecat's work is over. */
static int
report_done(struct cli *cli, const char *status, const struct gt_done_options *o, const char *note)
{
	mr_auto(buf_done) struct buf to = BUF_INIT, subject = BUF_INIT, body = BUF_INIT;
	mr_auto(free_ptr) char *cwd = o->branch ? NULL : getcwd(NULL, 0);
	mr_auto(free_ptr) char *branch = cwd ? mr_git_branch(cwd) : NULL;
	const struct mr_header wisp = { "GT-Wisp", "yes" };
	struct mr_draft draft = { .headers = &wisp, .headers_n = mr_room_has(cli->room, MR_HAS_LIVES) ? 1 : 0 };
	char id[MR_ID_LEN + 1] = "";

	buf_add(&to, gt_rig_of(cli->self.agent));
	buf_adds(&to, "/witness");
	buf_addf(&subject, "POLECAT_DONE %s", strrchr(cli->self.agent, '/') + 1);
	add_field(&body, "Exit", status);
	add_field(&body, "Issue", o->issue);
	add_field(&body, "MR", o->mr);
	add_field(&body, "Branch", o->branch ? o->branch : branch);
	buf_addc(&body, '\n');
	add_field(&body, "Target", o->target);
	add_field(&body, "Cleanup Status", o->cleanup_status);
	add_field(&body, "Pre-Verified", o->pre_verified ? "true" : NULL);
	buf_adds(&body, note);
	while (body.len > 0 && body.ptr[body.len - 1] == '\n')
		body.ptr[--body.len] = '\0';
	if (!gt_priority(cli, o->priority, &draft.priority))
		return EXIT_USAGE;
	if (cli->dry_run) {
		fence_addf(&cli->out, "would tell %s: %s, %s\n", buf_z(&to), buf_z(&subject), status);
		return EXIT_DONE;
	}
	draft.to = (const char *[]){ buf_z(&to), NULL };
	draft.subject = buf_z(&subject);
	draft.body = buf_z(&body);
	draft.body_len = body.len;
	int code = gt_mail(cli, &draft, id);

	if (code == EXIT_DONE)
		fence_addf(&cli->out, "✓ %s: told %s\n  ID: %s\n", status, buf_z(&to), id);
	return code;
}

int
gt_done(struct cli *cli, const struct gt_done_options *o)
{
	const char *status = o->status ? o->status : "COMPLETED";

	/* What Gas Town's documents call MERGED its command calls COMPLETED; only with a merge request is it more. */
	if (strcmp(status, "MERGED") == 0 && !o->mr)
		status = "COMPLETED";
	if (!is_polecat(cli->self.agent))
		TRY_CLI(mr_fail(&cli->err, MR_REFUSED,
		    "'%s' is not a polecat\nonly RIG/NAME and RIG/polecats/NAME report to a witness", cli->self.agent));
	return report_done(cli, status, o, "");
}

/* ---- handoff, hook ---- */

static int
hand_off(struct cli *cli, const char *subject, const char *text, bool collect)
{
	struct mr_handoff what = { .subject = subject, .text = text, .collect = collect, .dry_run = cli->dry_run };
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *agent = gt_spelled(cli->self.agent);
	enum mr_rc rc = mr_handoff(cli->room, &cli->self, &what, &receipt, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	cli->changed = !cli->dry_run;
	if (cli->dry_run)
		fence_addf(&cli->out, "would hand off to the next life of %s\n", agent);
	else
		fence_addf(&cli->out, "🤝 Handed off to the next life of %s\n  ID: %s\n", agent, receipt.id);
	return EXIT_DONE;
}

int
gt_handoff(struct cli *cli, const struct gt_handoff_options *o)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	TRY_CODE(gt_body(cli, o->message, o->stdin_, &text));
	/* The operand, a role or a bead, is written into the message: we start no session. */
	if (cli->argc > 0)
		buf_addf(&text, "%sHook: %s", text.len > 0 ? "\n\n" : "", cli->argv[0]);
	if (o->reason)
		buf_addf(&text, "%sReason: %s", text.len > 0 ? "\n\n" : "", o->reason);
	if (text.failed)
		cli->out.failed = true;
	if (is_polecat(cli->self.agent))
		return report_done(cli, "DEFERRED", &(struct gt_done_options){ 0 }, buf_z(&text));
	return hand_off(cli, o->subject, text.len > 0 ? buf_z(&text) : NULL, o->collect);
}

/* gt hook, gt mail hook */
int
gt_hook(struct cli *cli, const struct task_options *o)
{
	char id[MR_ID_LEN + 1] = "";

	if (cli->argc == 0) {
		enum mr_rc rc = mr_hook_get(cli->room, cli->self.agent, id, &cli->err);

		if (rc != MR_OK && rc != MR_EMPTY)
			return cli_fail(cli, &cli->err);
		fence_addf(&cli->out, "%s\n", rc == MR_OK ? id : "Nothing on the hook");
		return EXIT_DONE;
	}
	if (cli->dry_run)
		TRY_CLI(mr_resolve_id(cli->room, cli->self.agent, cli->argv[0], MR_INBOX | MR_HELD, id, &cli->err));
	else
		TRY_CLI(mr_hook_set(cli->room, &cli->self, cli->argv[0], o->force, id, &cli->err));
	cli->changed = !cli->dry_run;
	fence_addf(&cli->out, "%s %s\n", cli->dry_run ? "would put on the hook:" : "✓ On the hook:", id);
	return o->subject || o->message ? hand_off(cli, o->subject, o->message, false) : EXIT_DONE;
}

/* ---- sling, deacon redispatch ---- */

int
gt_sling(struct cli *cli, const struct gt_sling_options *o)
{
	mr_auto(free_ptr) char *output = NULL;
	const char *options[8] = { NULL };
	size_t n = 0;

	if (o->force)
		options[n++] = "--force";
	if (o->no_convoy)
		options[n++] = "--no-convoy";
	if (o->agent) {
		options[n++] = "--agent";
		options[n++] = o->agent;
	}
	TRY_CLI(mr_sling(cli->room, cli->argv[0], cli->argv[1], options, &output, &cli->err));
	cli->changed = true;
	/* Scripts read it, so it stands alone. */
	(void)fence_add(&cli->out, str_of(output), out_form(cli, FENCE_TEXT), 0);
	return EXIT_DONE;
}

int
gt_redispatch(struct cli *cli, const struct gt_deacon_redispatch_options *o)
{
	struct mr_redispatch_options options = { .rig = o->rig,
		.cooldown_ms = o->cooldown_ms,
		.max_attempts = o->max_attempts < 1000000 ? (unsigned)o->max_attempts : 1000000 };
	struct mr_redispatched r = { 0 };
	struct buf *out = &cli->out;
	const char *bead = cli->argv[0];

	TRY_CLI(mr_redispatch(cli->room, &cli->self, bead, &options, &r, &cli->err));
	cli->changed = r.end == MR_REDISPATCH_SLUNG || r.end == MR_REDISPATCH_ESCALATED;
	switch (r.end) {
	case MR_REDISPATCH_SLUNG:
		fence_addf(out, "✓ Redispatched %s to %s (attempt %u)\n", bead, r.rig, r.attempts);
		return EXIT_DONE;
	case MR_REDISPATCH_ESCALATED:
		fence_addf(out, "🚨 %s failed %u times: the mayor was told\n", bead, r.attempts);
		return EXIT_DONE;
	case MR_REDISPATCH_WAS_ESCALATED:
		fence_addf(out, "%s was escalated to the mayor before\n", bead);
		return EXIT_DONE;
	case MR_REDISPATCH_COOLDOWN:
		fence_addf(out, "%s was given out a moment ago: try again in %s\n", bead, lasting(r.wait_ms).text);
		return GT_EXIT(2);
	case MR_REDISPATCH_NOT_OPEN:
		fence_addf(out, "%s is not open ('%s'): skipped\n", bead, r.status[0] ? r.status : "unknown");
		return GT_EXIT(3);
	}
	return EXIT_FAILED;
}

int
gt_redispatch_state(struct cli *cli)
{
	mr_auto(mr_list_done) struct mr_redispatches all = { 0 };

	TRY_CLI(mr_redispatch_list(cli->room, &all, &cli->err));
	for (const struct mr_redispatch_entry *e = all.v; e < all.v + all.n; e++) {
		fence_addf(&cli->out, "%s: %u attempts, last to '%s' at ", e->bead, e->attempts,
		    e->rig[0] ? e->rig : "nobody");
		gt_text_when(&cli->out, e->last_ms);
		buf_adds(&cli->out, e->escalated_ms > 0 ? ", escalated\n" : "\n");
	}
	if (all.n == 0)
		buf_adds(&cli->out, "Nothing was redispatched\n");
	return EXIT_DONE;
}
