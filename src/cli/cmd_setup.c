/* SPDX-License-Identifier: MIT */
/* cmd_setup.c - our entries in the settings of a harness: shown, written, taken out, tried. */
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "message/diff.h"

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
		rc = f->changed ? save_file(s, f, err) : MR_OK;
	}
	if (rc == MR_OK && way == SETUP_OUT)
		setup_memory_drop(s, f);
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
	mr_auto(sys_close_fd) int lock = preview ? -1 : setup_memory_lock(s, way);

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
	bool team = opt_text(cli, "team") != NULL;

	if (apply + remove + check > 1 || (check && preview))
		return cli_usage(cli, "--preview, --apply, --remove and --check exclude each other");
	if (team && (check || opt_flag(cli, "project")))
		return cli_usage(cli, "--team goes with --preview, --apply or --remove only");
	if (team && strcmp(cli->argv[0], "claude-code") != 0)
		return cli_usage(cli, "teams are Claude Code's: mailroom setup claude-code --team TEAM");
	if (!team && cli->argc > 1)
		return cli_usage(cli, "'%s' is one argument too many", cli->argv[1]);
	return EXIT_DONE;
}

static int
run_setup(struct cli *cli)
{
	struct setup s = { .cli = cli, .project = opt_flag(cli, "project") };
	struct mr_error err = { 0 };
	bool apply = opt_flag(cli, "apply"), remove = opt_flag(cli, "remove"), check = opt_flag(cli, "check");
	bool preview = opt_flag(cli, "preview");
	enum setup_way way = remove ? SETUP_OUT : SETUP_IN;

	s.harness = setup_harness(cli->argv[0]);
	if (!s.harness) {
		mr_auto(buf_done) struct buf names = BUF_INIT;

		setup_harness_names(&names);
		return cli_usage(cli, "'%s' is no harness that can be set up: it is %s", cli->argv[0], buf_z(&names));
	}
	if (check_options(cli, preview, apply, remove, check) != EXIT_DONE)
		return EXIT_USAGE;
	preview |= !apply && !remove;
	if (opt_text(cli, "team"))
		return team_run(cli, opt_text(cli, "team"), way, preview);
	if (setup_place(&s, &err) != MR_OK)
		return cli_fail(cli, &err);
	return check ? check_run(&s) : run_files(&s, way, preview);
}

static const struct opt opts[] = {
	OPT(0, "preview", NULL, "show what would change and write nothing (the default; also with --remove)"),
	OPT(0, "apply", NULL, "show what changes, and write it"),
	OPT(0, "remove", NULL, "take our entries out again, and nothing else"),
	OPT(0, "check", NULL, "try it: does a message reach the hook and the MCP server as they are configured?"),
	OPT(0, "project", NULL, "the files of this project in place of your own"),
	OPT(0, "team", "TEAM", "claude-code: link this team and make our agents (or those named) its members"),
	OPT_END,
};
static const char *const about[] = {
	"Makes mailroom part of a harness: claude-code, codex, gemini or cursor. Hooks tell its agents of mail when a "
	"session starts, with each prompt, after tools and before it stops; in Claude Code one also wakes an idle "
	"session. "
	"The MCP server 'mailroom' gives them the tools. Claude Code may use, unasked, the commands and tools that "
	"start no program and change neither your "
	"configuration nor who is who (send, reply, inbox, read, recv, done, ...; `mailroom describe --all` marks them "
	"as "
	"granted); for all others it asks. In Codex's "
	"sandbox "
	"mailroom's state folder and the room around the working folder become writable; its server is told "
	"XDG_STATE_HOME where that is set. All command lines have the "
	"absolute path of this very program. Where there is no room they do nothing, so your own settings are the "
	"right "
	"place. --project writes into the project's, which others may get with git: there the command is the bare name "
	"mailroom, found in $PATH, and Codex's folders and variables are left to your own file; what is missing for "
	"that is told. With --room SPEC they use that room, wherever they run.",
	"Files: ~/.claude/settings.json and ~/.claude.json, in a project .claude/settings.json and .mcp.json; "
	"hooks.json "
	"and config.toml in .codex; settings.json in .gemini; hooks.json and mcp.json in .cursor. CLAUDE_CONFIG_DIR "
	"and "
	"CODEX_HOME are heeded.",
	"Only our own entries are touched, byte for byte: comments, unknown keys, the hooks of others, line ends and "
	"indentation stay, a symbolic link stays one, mode and owner are kept. --apply twice changes nothing the "
	"second "
	"time; --remove afterwards gives back the bytes that were there. A file that cannot be understood is refused, "
	"and "
	"then none is changed. Which files were there, and which permissions and writable folders --apply added, is "
	"remembered in the folder 'setup' of mailroom's configuration folder, which is in no sandbox's writable "
	"folders. "
	"--remove takes out only those: without that memory, and a second time, permissions stay, and it says so.",
	"--check starts the hook and the server that it finds in the files, in a room of its own that is removed "
	"afterwards, with a made-up session and a message for it, and says for each part whether the message was seen, "
	"and "
	"what to do if not. Exit code 1: something is wrong.",
	"--team TEAM links a team of Claude Code under its own name, as 'mailroom link' does, and enters our agents in "
	"its "
	"config.json, under its lock: then 'mailroom send alice@TEAM' reaches a running teammate, and what it answers "
	"comes "
	"back with the next look for mail, a hook's or a command's. With --remove they leave the team, after the mail "
	"that is there for them was "
	"carried, "
	"and the link is forgotten.",
	NULL,
};
static const char *const examples[] = {
	"mailroom setup claude-code",
	"mailroom setup codex --apply\nmailroom setup codex --check\nmailroom setup codex --remove",
	"mkdir -p ~/.claude/teams/crew && echo '{\"name\":\"crew\",\"members\":[]}' >~/.claude/teams/crew/config.json\n"
	"mailroom setup claude-code --team crew --apply\nmailroom setup claude-code --team crew --remove",
	NULL,
};

const struct cmd cmd_setup = {
	.name = "setup",
	.synopsis =
	    "HARNESS [--project] [--preview | --apply | --remove | --check] | claude-code --team TEAM [AGENT...]",
	.summary = "make mailroom part of a harness, or take it out",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "45",
	.min_args = 1,
	.max_args = -1,
	.run = run_setup,
};
