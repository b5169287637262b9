/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - looks a room over, explains what it finds, and repairs it only when told to. */
#include "base/text.h"
#include "cli/cli.h"

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
	json_key_str(&j, "check", f->check);
	json_key_str(&j, "text", f->text);
	json_key_str(&j, "advice", f->advice && f->advice[0] ? f->advice : NULL);
	json_key_bool(&j, "fixed", f->fixed);
	out_json_line(cli, &j);
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
	buf_addf(out, "  %s: ", f->check);
	text_clean_line(out, str_of(f->text));
	buf_addc(out, '\n');
	if (f->advice && f->advice[0] && !f->fixed && f->severity != MR_FINE) {
		buf_adds(out, "         ");
		text_clean_line(out, str_of(f->advice));
		buf_addc(out, '\n');
	}
}

static void
report(void *ctx, const struct mr_finding *f)
{
	struct visit *v = ctx;

	v->fixed += f->fixed;
	v->problems += f->severity == MR_PROBLEM && !f->fixed;
	v->fixable += !f->fixed && f->severity != MR_FINE && f->advice && strstr(f->advice, "--fix");
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

	if (mr_doctor(cli->room, fix, report, &v, &err) != MR_OK)
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
	OPT(0, "fix", NULL, "repair what can be repaired; mail is moved aside, never deleted"),
	OPT_END,
};
static const char *const about[] = {
	"Checks the room: its settings, the modes of files and folders, what crashed commands "
	"left behind, unreadable mail, expired holds, and whether the file system survives a "
	"power cut. It explains each finding, and changes nothing without --fix. The exit code is "
	"1 while problems remain.",
	NULL,
};
static const char *const examples[] = { "mailroom doctor", "mailroom doctor --fix", NULL };

const struct cmd cmd_doctor = {
	.name = "doctor",
	.needs = CMD_ROOM,
	.synopsis = "[--fix]",
	.summary = "check the room, explain what is wrong, and repair it when told to",
	.opts = opts,
	.about = about,
	.examples = examples,
	.run = run_doctor,
};
