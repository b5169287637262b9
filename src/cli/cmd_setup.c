/* SPDX-License-Identifier: MIT */
/* cmd_setup.c - our entries in the settings of a harness: shown, written, taken out, tried. */
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "message/diff.h"
#include "helptext.h"

#define TRIES 10

struct plans {
	struct setup_file files[2];
	size_t n;
};

static void
plans_done(struct plans *p)
{
	for (size_t i = 0; i < p->n; i++)
		file_done(&p->files[i]);
}

/* All before the first is written. */
static enum mr_rc
plan_all(struct setup *s, enum setup_way way, struct plans *p, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (; p->n < s->harness->files_n && rc == MR_OK; p->n++)
		rc = plan_file(s, &s->harness->files[p->n], way, &p->files[p->n], err);
	return rc;
}

/* ---- Saying ---- */

static void
add_diff(const struct setup_file *f, struct buf *out)
{
	struct mr_str after = f->gone ? (struct mr_str){ "", 0 } : buf_str(&f->after);

	if (f->changed)
		diff_unified(buf_str(&f->before), after, f->there ? f->path : NULL, f->gone ? NULL : f->path, out);
}

static const char *
action_of(const struct setup_file *f)
{
	return !f->changed ? "none" : f->gone ? "remove" : f->there ? "change" : "create";
}

static void
print_json(struct cli *cli, const struct setup_file *f, bool written)
{
	mr_auto(buf_done) struct buf diff = BUF_INIT;
	struct json j = JSON_INIT(&cli->out);

	add_diff(f, &diff);
	json_open(&j, '{');
	json_key_str(&j, "file", f->path);
	json_key_str(&j, "action", action_of(f));
	json_key_bool(&j, "written", written);
	json_key_str(&j, "diff", f->changed ? buf_z(&diff) : NULL);
	if (f->left.n > 0) {
		json_key(&j, "left");
		json_open(&j, '[');
		for (size_t i = 0; i < f->left.n; i++)
			json_str(&j, str_of(f->left.v[i]));
		json_close(&j);
	}
	out_json_line(cli, &j);
}

static void
print_plan(struct cli *cli, const struct setup_file *f)
{
	mr_auto(buf_done) struct buf diff = BUF_INIT;
	mr_auto(buf_done) struct buf lines = BUF_INIT;

	if (!f->changed) {
		fence_addf(&cli->out, "%.4096s: nothing to do\n", f->path);
		return;
	}
	add_diff(f, &diff);
	(void)fence_add(&lines, buf_str(&diff), out_form(cli, FENCE_TEXT), 0);
	lines.failed |= diff.failed;
	out_fenced(cli, &lines);
}

static void
print_written(struct cli *cli, const struct setup_file *f)
{
	if (cli->json)
		print_json(cli, f, f->changed);
	else if (f->changed)
		fence_addf(&cli->out, "%s %.4096s\n", f->gone ? "removed" : f->there ? "changed" : "made", f->path);
}

static void
print_left(struct cli *cli, const struct setup_file *f)
{
	if (f->left.n == 0 || cli->json)
		return;
	fence_addf(&cli->out, "note: %.4096s keeps %s", f->path, f->left.v[0]);
	if (f->left.n > 1)
		buf_addf(&cli->out, " and %zu more", f->left.n - 1);
	buf_adds(&cli->out, ", which setup does not remember adding; if it is not yours, take it out\n");
}

/* A project's files name the bare command, so that they are the same for everybody who has a clone. */
static void
warn_of_project(struct setup *s)
{
	const char *found = command_in_path(s);
	mr_auto(free_ptr) char *real = found ? realpath(found, NULL) : NULL;

	if (!found)
		cli_warn(s->cli,
		    "these files name 'mailroom', and a shell does not find it; put it in $PATH: ln -s %s DIR",
		    s->program);
	else if (real && strcmp(real, s->program) != 0)
		cli_warn(s->cli, "these files name 'mailroom', and the first in $PATH is '%s', not this program '%s'",
		    found, s->program);
	if (s->harness->files[1].parts & SETUP_TOML)
		cli_warn(s->cli,
		    "the folders that Codex's sandbox must write are yours and not the project's; once: mailroom "
		    "setup codex --apply");
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

static int
write_all(struct setup *s, enum setup_way way, struct plans *p)
{
	struct mr_error err = { 0 };
	bool changed = false;

	if (!cli_flush(s->cli)) /* what was not shown is not done */
		return EXIT_FAILED;
	for (size_t i = 0; i < p->n; i++) {
		if (save(s, &s->harness->files[i], way, &p->files[i], &err) != MR_OK)
			return cli_fail(s->cli, &err);
		changed |= p->files[i].changed;
		s->cli->changed |= p->files[i].changed;
		print_written(s->cli, &p->files[i]);
	}
	if (s->cli->json)
		return EXIT_DONE;
	for (size_t i = 0; i < p->n; i++)
		print_left(s->cli, &p->files[i]);
	if (changed && way == SETUP_IN && s->harness->note)
		buf_addf(&s->cli->out, "note: %s\n", s->harness->note);
	if (changed && way == SETUP_IN)
		buf_addf(&s->cli->out, "next: mailroom setup %s%s --check\n", s->harness->name,
		    s->project ? " --project" : "");
	return EXIT_DONE;
}

static int
run_files(struct setup *s, enum setup_way way, bool preview)
{
	mr_auto(plans_done) struct plans plans = { 0 };
	struct mr_error err = { 0 };
	bool changes = false;
	mr_auto(sys_close_fd) int lock = preview ? -1 : prior_lock(s, way);

	if (plan_all(s, way, &plans, &err) != MR_OK)
		return cli_fail(s->cli, &err);
	for (size_t i = 0; i < plans.n; i++) {
		changes |= plans.files[i].changed;
		if (!s->cli->json)
			print_plan(s->cli, &plans.files[i]);
		else if (preview)
			print_json(s->cli, &plans.files[i], false);
	}
	if (s->project && way == SETUP_IN)
		warn_of_project(s);
	if (!preview)
		return write_all(s, way, &plans);
	for (size_t i = 0; i < plans.n; i++)
		print_left(s->cli, &plans.files[i]);
	if (changes && !s->cli->json)
		buf_addf(
		    &s->cli->out, "nothing was written; %s does it\n", way == SETUP_IN ? "--apply" : "--remove alone");
	return EXIT_DONE;
}

/* ---- The command ---- */

static int
check_options(struct cli *cli, bool preview, bool apply, bool remove, bool check)
{
	const struct setup_options *o = cli->opts;
	bool team = o->team != NULL;

	if (apply + remove + check > 1 || (check && preview))
		return cli_usage(cli, "--preview, --apply, --remove and --check exclude each other");
	if (team && (check || o->project))
		return cli_usage(cli, "--team goes with --preview, --apply or --remove only");
	if (team && strcmp(cli->argv[0], "claude-code") != 0)
		return cli_usage(cli, "teams are Claude Code's: mailroom setup claude-code --team TEAM");
	if (!team && cli->argc > 1)
		return cli_usage(cli, "'%s' is one argument too many", cli->argv[1]);
	return EXIT_DONE;
}

int
cmd_setup(struct cli *cli)
{
	const struct setup_options *o = cli->opts;
	struct setup s = { .cli = cli, .project = o->project };
	struct mr_error err = { 0 };
	bool apply = o->apply, remove = o->remove, check = o->check;
	bool preview = o->preview;
	enum setup_way way = remove ? SETUP_OUT : SETUP_IN;

	s.harness = harness_named(cli->argv[0]);
	if (!s.harness) {
		mr_auto(buf_done) struct buf names = BUF_INIT;

		harness_names(&names);
		return cli_usage(cli, "'%s' is no harness that can be set up: it is %s", cli->argv[0], buf_z(&names));
	}
	if (check_options(cli, preview, apply, remove, check) != EXIT_DONE)
		return EXIT_USAGE;
	preview |= !apply && !remove;
	if (o->team)
		return team_run(cli, o->team, way, preview);
	if (setup_place(&s, &err) != MR_OK)
		return cli_fail(cli, &err);
	return check ? check_run(&s) : run_files(&s, way, preview);
}
