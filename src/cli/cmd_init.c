/* SPDX-License-Identifier: MIT */
/* cmd_init.c - making a room. */
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "helptext.h"

static bool
read_options(struct cli *cli, struct mr_init_options *ret)
{
	const struct init_options *o = cli->opts;
	const char *share = o->share;

	ret->name = o->name;
	ret->sync = o->sync;
	ret->share_group = share != NULL;
	if (share && strcmp(share, "group") != 0)
		return cli_usage(cli, "option '--share' is 'group', not '%s'", share), false;
	if (ret->sync && strcmp(ret->sync, "none") != 0 && strcmp(ret->sync, "fast") != 0 &&
	    strcmp(ret->sync, "full") != 0)
		return cli_usage(cli, "option '--sync' is 'full', 'fast' or 'none', not '%s'", ret->sync), false;
	if (cli->room_option && cli->argc == 0)
		return cli_usage(cli, "init takes the place as an argument: mailroom init PATH"), false;
	return true;
}

static void
warn_storage(struct cli *cli, const struct mr_storage *storage, const char *sync)
{
	if (!storage->power_safe)
		cli_warn(cli, "a power cut can lose mail here (%s): %s", storage->file_system, storage->reason);
	if (sync && strcmp(sync, "fast") == 0 && storage->sync_reason[0])
		cli_warn(cli, "mail is made durable as with '--sync full': %s", storage->sync_reason);
	if (sync && strcmp(sync, "none") == 0)
		cli_warn(cli, "this room syncs nothing: a power cut or a crash of the machine can lose accepted mail");
}

static void
print_made(struct cli *cli, const char *path, bool made, const struct mr_storage *storage)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "path", path);
		json_key_str(&j, "name", mr_room_name(cli->room));
		json_key_bool(&j, "created", made);
		json_key_str(&j, "file_system", storage->file_system);
		json_key_bool(&j, "power_safe", storage->power_safe);
		out_json_line(cli, &j);
		return;
	}
	(void)fence_add(&cli->out, str_of(path), FENCE_LINE, 0);
	buf_adds(&cli->out, made ? "\n  is the room '" : "\n  is already the room '");
	(void)fence_add(&cli->out, str_of(mr_room_name(cli->room)), FENCE_LINE, 0);
	buf_adds(&cli->out, made ? "'\n  next: mailroom register NAME\n"
				 : "'; nothing was changed\n  next: mailroom register NAME, or mailroom who\n");
}

/* init trusts what it makes, never what it finds. */
static void
say_if_untrusted(struct cli *cli)
{
	int64_t since_ms;

	if (mr_room_trust(cli->room, &since_ms) < MR_TRUST_VARIABLE)
		cli_warn(cli, "this room was here before and is not trusted; if it is yours: mailroom trust");
}

int
cmd_init(struct cli *cli)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0), *path = NULL;
	struct mr_error untrusted = { 0 };
	struct mr_init_options options = { .config_dir = env_config_dir(cli), .ret_trust = &untrusted };
	struct mr_storage storage = { 0 };
	struct mr_error err = { 0 };

	if (!read_options(cli, &options))
		return EXIT_USAGE;
	if (!cwd)
		return (void)mr_fail_errno(&err, "cannot tell the working folder"), cli_fail(cli, &err);
	enum mr_rc rc = mr_room_init(cli->argc > 0 ? cli->argv[0] : NULL, cwd, &options, &path, &err);

	if (rc != MR_OK && !(rc == MR_EXISTS && path))
		return cli_fail(cli, &err);
	struct mr_error later = { 0 };

	struct mr_room_options open = { .config_dir = options.config_dir, .trust_paths = env_get("MAILROOM_TRUST") };

	if (mr_room_open(path, &open, &cli->room, &later) != MR_OK || cli_storage(cli, &storage, &later) != MR_OK)
		return cli_fail(cli, &later);
	print_made(cli, path, rc == MR_OK, &storage);
	if (untrusted.code != MR_OK)
		cli_warn(cli,
		    "it is not noted that you trust this room: %s; run 'mailroom trust' in a terminal of your own",
		    untrusted.message);
	else if (rc == MR_EXISTS)
		say_if_untrusted(cli);
	warn_storage(cli, &storage, options.sync);
	return EXIT_DONE;
}
