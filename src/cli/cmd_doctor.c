/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - looks a room over, explains what it finds, and repairs it only when told to. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/doctor_hooks.h"
#include "helptext.h"

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

int
cmd_doctor(struct cli *cli)
{
	const struct doctor_options *o = cli->opts;
	struct visit v = { .cli = cli };
	struct mr_error err = { 0 };
	bool fix = o->fix;

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
