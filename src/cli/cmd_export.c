/* SPDX-License-Identifier: MIT */
/* cmd_export.c - mailroom export and import: all mail of one room into another. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "helptext.h"

/* ---- The other room ---- */

static bool
has_folder(const char *path, const char *name)
{
	mr_auto(buf_done) struct buf full = BUF_INIT;
	struct stat st;

	buf_addf(&full, "%s/%s", path, name);
	return buf_ok(&full) && sys_stat_target(buf_z(&full), &st) == 0 && S_ISDIR(st.st_mode);
}

static enum mr_rc
open_other(struct cli *cli, const char *given, struct mr_room **ret, struct mr_error *err)
{
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	struct mr_room_options options = { .state_dir = cli->env.state_dir, .data_dir = env_data_dirs() };
	const char *spec = spec_expand(cli, given);
	bool said = spec && strncmp(spec, "folder:", 7) == 0;

	TRY(mr_got(spec, err));
	/* "folder:PATH", and a bare path that is a Maildir and no room: the library gets an absolute path without
	 * links. */
	mr_auto(free_ptr) char *path = realpath(said ? spec + 7 : spec, NULL);

	if (path && (said || (!has_folder(path, ".mailroom") && !has_folder(path, "agents") &&
				 has_folder(path, "cur") && has_folder(path, "new"))))
		spec = cli_text(cli, "folder:%s", path);
	TRY(mr_got(spec, err));
	if (strncmp(spec, "postgres", 8) == 0)
		cli_hand_over_to_full(cli); /* nothing was done yet; where there is none, opening the room says so */
	if (strncmp(spec, "folder:", 7) == 0)
		return mr_room_open(spec, &options, ret, err);
	enum mr_rc rc = mr_room_find(spec, NULL, NULL, true, &place, err);

	if (rc == MR_OK && place.warning)
		cli_warn(cli, "%s", place.warning);
	return rc == MR_OK ? mr_room_open(place.spec, &options, ret, err) : rc;
}

/* ---- The run ---- */

static bool
on_step(void *ctx, const struct mr_export_step *step)
{
	struct cli *cli = ctx;

	if (step->trouble) {
		progress_clear(cli);
		cli_warn(cli, "%s: '%s' was skipped: %s%s%s", step->agent, step->what, step->trouble->message,
		    step->trouble->hint[0] ? "; " : "", step->trouble->hint);
	}
	return progress_step(cli, step->agent, step->done, step->total);
}

static int
copy(struct cli *cli, const struct copy_options *o, struct mr_room *from, struct mr_room *to)
{
	struct mr_export_options options = { .names = o->name, .agent = o->agent, .dry_run = cli->dry_run };
	struct mr_exported got = { 0 };
	bool dry = cli->dry_run;

	if (cli->argc > 0) /* argv ends in NULL */
		options.agents = (const char *const *)cli->argv;
	if (!mr_room_has(from, MR_HAS_NAMES) && !options.agent)
		return cli_usage(cli, "a Maildir does not say whose mail it is: give --agent NAME");
	progress_begin(cli, from);
	enum mr_rc rc = mr_export(from, to, &options, on_step, cli, &got, &cli->err);

	progress_clear(cli);
	if (rc != MR_OK && got.copied + got.there + got.skipped == 0)
		return cli_fail(cli, &cli->err);
	if (!out_json(cli, kv_size("agents", got.agents), kv_size(dry ? "would_copy" : "copied", got.copied),
		kv_size("there", got.there), kv_size("skipped", got.skipped), kv_bool("stopped", got.stopped))) {
		fence_addf(&cli->out, "%s %zu, already there %zu, skipped %zu\n", dry ? "would copy" : "copied",
		    got.copied, got.there, got.skipped);
		if (got.stopped)
			cli_warn(cli, "stopped before the end; the same command again copies the rest");
	}
	TRY_CLI(rc);
	return got.skipped > 0 || got.stopped ? EXIT_FAILED : EXIT_DONE;
}

/* The other room is at `place`. */
static int
run_with(struct cli *cli, const char *place, const struct copy_options *o)
{
	struct mr_room *other = NULL;
	bool out = cli->cmd == &command_export;

	if (!place)
		return cli_usage(
		    cli, "%s ROOM", out ? "give the other room with --to" : "give the other room with --from");
	TRY_CLI(open_other(cli, place, &other, &cli->err));
	int code = out ? copy(cli, o, cli->room, other) : copy(cli, o, other, cli->room);

	mr_room_close(other);
	return code;
}

int
cmd_export(struct cli *cli, const struct export_options *o)
{
	return run_with(cli, o->to, &o->copy);
}

int
cmd_import(struct cli *cli, const struct import_options *o)
{
	return run_with(cli, o->from, &o->copy);
}
