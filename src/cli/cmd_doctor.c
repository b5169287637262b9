/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - looks a room over, explains what it finds, and repairs it only when told to. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/doctor_hooks.h"

struct visit {
	struct cli *cli;
	size_t problems, fixed, notes;
	size_t fixable; /* whose advice is --fix */
};

static void
print_json(struct cli *cli, const struct mr_finding *f)
{
	static const char *const words[] = { "fine", "note", "problem" };
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "severity", words[f->severity]);
	json_key_str(&j, "code", f->code);
	json_key_str(&j, "path", f->path[0] ? f->path : NULL);
	json_key_str(&j, "what", f->what);
	json_key_str(&j, "why", f->why[0] ? f->why : NULL);
	json_key_str(&j, "fix", f->fix[0] ? f->fix : NULL);
	json_key_bool(&j, "fixed", f->fixed);
	out_json_line(cli, &j);
}

static void
print_line(struct buf *out, const char *label, const char *text)
{
	if (!text[0])
		return;
	buf_addf(out, "         %s: ", label);
	(void)fence_add(out, str_of(text), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

static void
print_text(struct cli *cli, const struct mr_finding *f)
{
	struct buf *out = &cli->out;

	if (f->fixed)
		out_styled(cli, out, STYLE_GREEN, "fixed  ");
	else if (f->severity == MR_FINE)
		out_styled(cli, out, STYLE_GREEN, "fine   ");
	else if (f->severity == MR_NOTE)
		out_styled(cli, out, STYLE_YELLOW, "note   ");
	else
		out_styled(cli, out, STYLE_RED, "PROBLEM");
	buf_addf(out, "  %s: ", f->code);
	(void)fence_add(out, str_of(f->what), FENCE_LINE, 0);
	buf_addc(out, '\n');
	if (f->severity == MR_FINE)
		return;
	print_line(out, "why", f->why);
	print_line(out, f->fixed ? "done" : "fix", f->fix);
}

static void
report(void *ctx, const struct mr_finding *f)
{
	struct visit *v = ctx;

	v->fixed += f->fixed;
	v->problems += f->severity == MR_PROBLEM && !f->fixed;
	v->fixable += !f->fixed && f->severity != MR_FINE && strstr(f->fix, "--fix");
	v->notes += f->severity == MR_NOTE && !f->fixed;
	if (v->cli->json)
		print_json(v->cli, f);
	else
		print_text(v->cli, f);
}

static int
run_doctor(struct cli *cli)
{
	struct visit v = { .cli = cli };
	struct mr_error err = { 0 };
	bool fix = opt_flag(cli, "fix");

	if (mr_doctor(cli->room, fix, report, &v, &err) != MR_OK || doctor_hooks(cli, report, &v, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json) {
		out_count(&cli->out, v.problems, "problem");
		buf_adds(&cli->out, ", ");
		out_count(&cli->out, v.notes, "note");
		if (v.fixed > 0)
			buf_addf(&cli->out, ", %zu fixed", v.fixed);
		buf_adds(&cli->out, v.fixable > 0 && !fix ? "; mailroom doctor --fix repairs what it can\n" : "\n");
	}
	return v.problems > 0 ? EXIT_FAILED : EXIT_DONE;
}

static const struct opt opts[] = {
	OPT(0, "fix", NULL, "repair what is safe to repair; what is taken away is kept in the attic"),
	OPT_END,
};
static const char *const about[] = {
	"Checks the room and explains each finding: what is so, why, and what to do. It changes nothing without --fix. "
	"The exit code is 1 while problems remain; notes are no problems.",
	"It looks for: leftovers of killed commands, also in the rooms of other programs; messages that are empty or "
	"torn, files that are not ours, symbolic links; modes and owners; claims and holds of the dead, deliveries to "
	"several that stopped half-way, locks that nobody renews; flags that nobody explains; links that lead nowhere, "
	"and what is left of links; mail and files from the future; disks that are nearly full (below 64 MiB, or 1 % "
	"of "
	"blocks or inodes); storage that may lose mail in a power cut; mail that nobody fetches; sessions of a harness "
	"without our hooks, and notes of sessions that ended more than 30 days ago.",
	"--fix is narrow. It closes modes, puts back what the dead held, completes deliveries, removes dead locks, "
	"makes the operator's mailbox. Temporary files, empty messages and old records it moves to the room's folder "
	"attic/DATE (for sessions and the rooms of other programs: in mailroom's state folder), where attic/log says "
	"what, whence and why; it deletes nothing. What is younger than 36 hours, locked, or held by somebody who "
	"lives "
	"is left alone. Mail in the attic is not found by purge: empty it by hand.",
	"With --json each finding is a line: severity (fine, note, problem), code, path, what, why, fix, fixed.",
	NULL,
};
static const char *const examples[] = { "mailroom doctor", "mailroom doctor --fix", NULL };

const struct cmd cmd_doctor = {
	.name = "doctor",
	.needs = CMD_ROOM | CMD_AS_IT_IS,
	.synopsis = "[--fix]",
	.summary = "check the room, explain what is wrong, and repair it when told to",
	.opts = opts,
	.about = about,
	.examples = examples,
	.run = run_doctor,
};
