/* SPDX-License-Identifier: MIT */
/* cmd_setup.c - our entries in the settings of a harness: shown, written, taken out, tried. */
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "helptext.h"
#include "message/diff.h"

#define TRIES 10

/* ---- Saying ---- */

/* The plan for a file, with `written` what became of it. */
static void
print_file(struct cli *cli, const struct setup_file *f, bool written)
{
	mr_auto(buf_done) struct buf diff = BUF_INIT, lines = BUF_INIT;
	struct mr_str after = f->gone ? STR("") : buf_str(&f->after);

	if (f->changed)
		diff_unified(buf_str(&f->before), after, f->there ? f->path : NULL, f->gone ? NULL : f->path, &diff);
	if (out_json(cli, kv_str("file", f->path),
		kv_str("action", !f->changed ? "none"
				 : f->gone   ? "remove"
				 : f->there  ? "change"
					     : "create"),
		kv_bool("written", written && f->changed), kv_str("diff", f->changed ? buf_z(&diff) : NULL),
		f->left.n > 0 ? kv_names("left", &f->left) : kv_none()))
		return;
	if (written) {
		if (f->changed)
			fence_addf(&cli->out, "%s %.4096s\n",
			    f->gone    ? "removed"
			    : f->there ? "changed"
				       : "made",
			    f->path);
	} else if (!f->changed) {
		fence_addf(&cli->out, "%.4096s: nothing to do\n", f->path);
	} else {
		(void)fence_add(&lines, buf_str(&diff), out_form(cli, FENCE_TEXT), 0);
		lines.failed |= diff.failed;
		out_fenced(cli, &lines);
	}
}

/* A project's files name the bare command, so that they are the same in every clone. */
static void
warn_of_project(struct setup *s)
{
	const char *found = command_in_path(s);
	mr_auto(free_ptr) char *real = found ? realpath(found, NULL) : NULL;

	if (!found)
		cli_warn(s->cli,
		    "these files name 'mailroom', which a shell does not find; put it in $PATH: ln -s %s DIR",
		    s->program);
	else if (real && strcmp(real, s->program) != 0)
		cli_warn(s->cli, "these files name 'mailroom', and the first in $PATH is '%s', not this program '%s'",
		    found, s->program);
	if (s->harness->files[1].parts & SETUP_TOML)
		cli_warn(s->cli,
		    "the folders that Codex's sandbox must write to belong in your own settings, not in the "
		    "project's: run once: mailroom setup codex --apply");
}

/* ---- Doing ---- */

/* The harness may write its file at the same time: then its new text is what is edited. */
static enum mr_rc
save(struct setup *s, const struct setup_where *where, enum setup_way way, struct setup_file *f, struct mr_error *err)
{
	enum mr_rc rc = MR_BUSY;

	save_sweep(f);
	for (int i = 0; i < TRIES && rc == MR_BUSY; i++) {
		if (i > 0) {
			*err = (struct mr_error){ 0 };
			TRY(plan_file(s, where, way, f, err));
		}
		rc = f->changed ? save_file(s, way, f, err) : MR_OK;
	}
	if (rc == MR_OK && way == SETUP_OUT)
		prior_drop(s, f);
	return rc;
}

/* All files are planned and shown before the first is written. */
static int
edit_files(struct setup *s, enum setup_way way, bool preview, struct setup_file files[HARNESS_FILES])
{
	struct cli *cli = s->cli;
	const struct setup_where *wheres[HARNESS_FILES];
	size_t n = 0;
	bool changes = false;

	for (size_t i = 0; s->harness->files[i].name; i++)
		if (settings_wanted(s, &s->harness->files[i], way))
			wheres[n++] = &s->harness->files[i];
	for (size_t i = 0; i < n; i++)
		TRY_CLI(plan_file(s, wheres[i], way, &files[i], &cli->err));
	for (size_t i = 0; i < n; i++) {
		changes |= files[i].changed;
		if (preview || !cli->json)
			print_file(cli, &files[i], false);
	}
	if (s->project && way == SETUP_IN)
		warn_of_project(s);
	if (!preview && !cli_flush(cli)) /* what was not shown is not done */
		return EXIT_FAILED;
	for (size_t i = 0; i < n && !preview; i++) {
		TRY_CLI(save(s, wheres[i], way, &files[i], &cli->err));
		changes |= files[i].changed;
		cli->changed |= files[i].changed;
		print_file(cli, &files[i], true);
	}
	if (cli->json)
		return EXIT_DONE;
	for (size_t i = 0; i < n; i++) {
		const struct setup_file *f = &files[i];

		if (f->left.n == 0)
			continue;
		fence_addf(&cli->out, "note: %.4096s keeps %s", f->path, f->left.v[0]);
		if (f->left.n > 1)
			buf_addf(&cli->out, " and %zu more", f->left.n - 1);
		buf_adds(&cli->out, ", which setup has no record of adding; if it is not yours, remove it\n");
	}
	if (changes && preview)
		buf_addf(
		    &cli->out, "nothing was written; %s does it\n", way == SETUP_IN ? "--apply" : "--remove alone");
	else if (changes && way == SETUP_IN && s->harness->note)
		buf_addf(&cli->out, "note: %s\n", s->harness->note);
	if (changes && !preview && way == SETUP_IN)
		buf_addf(
		    &cli->out, "next: mailroom setup %s%s --check\n", s->harness->name, s->project ? " --project" : "");
	return EXIT_DONE;
}

static void
say_part(void *ctx, struct setup *s, const char *part, const char *problem, const char *repair)
{
	struct cli *cli = s->cli;

	*(bool *)ctx |= problem != NULL;
	if (out_json(cli, kv_str("part", part), kv_bool("ok", problem == NULL), kv_str("problem", problem),
		kv_str("repair", problem ? repair : NULL)))
		return;
	out_styled(cli, &cli->out, problem ? STYLE_RED : STYLE_GREEN, problem ? "wrong" : "ok   ");
	buf_addf(&cli->out, "  %s", part);
	if (problem) {
		buf_adds(&cli->out, ": ");
		(void)fence_add(&cli->out, str_of(problem), FENCE_LINE, 0);
		fence_addf(&cli->out, "\n       repair: %.4096s", repair);
	}
	buf_addc(&cli->out, '\n');
}

int
cmd_setup(struct cli *cli, const struct setup_options *o)
{
	struct setup s = {
		.cli = cli, .project = o->project, .peers = o->peers, .harness = harness_named(cli->argv[0])
	};
	struct setup_file files[HARNESS_FILES] = { 0 };
	enum setup_way way = o->remove ? SETUP_OUT : SETUP_IN;
	bool preview = o->preview || (!o->apply && !o->remove);

	if (!s.harness) {
		mr_auto(buf_done) struct buf names = BUF_INIT;

		harness_names(&names);
		return cli_usage(cli, "'%s' is not a harness that can be set up: give %s", cli->argv[0], buf_z(&names));
	}
	if (o->team && strcmp(cli->argv[0], "claude-code") != 0)
		return cli_usage(cli, "--team is for Claude Code only: mailroom setup claude-code --team TEAM");
	if (o->peers && (o->team || strcmp(cli->argv[0], "claude-code") != 0))
		return cli_usage(cli, "--peers is for Claude Code only: mailroom setup claude-code --peers");
	if (!o->team && cli->argc > 1)
		return cli_usage(cli, "unexpected argument '%s'", cli->argv[1]);
	if (o->team)
		return team_run(cli, o->team, way, preview);
	TRY_CLI(setup_place(&s, &cli->err));
	if (o->check) {
		bool wrong = false;

		TRY_CLI(check_try(&s, say_part, &wrong, &cli->err));
		return wrong ? EXIT_FAILED : EXIT_DONE;
	}
	mr_auto(sys_close_fd) int lock = preview ? -1 : prior_lock(&s, way);
	int code = edit_files(&s, way, preview, files);

	for (size_t i = 0; i < HARNESS_FILES; i++)
		file_done(&files[i]);
	return code;
}
