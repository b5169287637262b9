/* SPDX-License-Identifier: MIT */
/* cmd_init.c - making a room. */
#include <unistd.h>

#include "helptext.h"

int
cmd_init(struct cli *cli, const struct init_options *o)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0), *path = NULL;
	struct mr_error untrusted = { 0 };
	struct mr_init_options options = { .name = o->name,
		.sync = o->sync,
		.share_group = o->share != NULL,
		.upgrade = o->upgrade,
		.roles = o->roles,
		.config_dir = env_config_dir(cli),
		.ret_trust = &untrusted };
	struct mr_room_options open = { .config_dir = options.config_dir, .trust_paths = env_get("MAILROOM_TRUST") };
	struct mr_storage storage = { 0 };
	int64_t since_ms;

	const char *sync = o->sync ? o->sync : "auto";

	if (cli->room_option && cli->argc == 0)
		return cli_usage(cli, "init takes the place as an argument: mailroom init PATH");
	if (!cwd)
		TRY_CLI(mr_fail_errno(&cli->err, "cannot find the working folder"));
	enum mr_rc rc = mr_room_init(cli->argc > 0 ? cli->argv[0] : NULL, cwd, &options, &path, &cli->err);

	if (rc != MR_OK && !(rc == MR_EXISTS && path))
		return cli_fail(cli, &cli->err);
	cli->err = (struct mr_error){ 0 };
	TRY_CLI(mr_room_open(path, &open, &cli->room, &cli->err));
	TRY_CLI(cli_storage(cli, &storage, &cli->err));
	bool made = rc == MR_OK;

	if (!out_json(cli, kv_str("path", path), kv_str("name", mr_room_name(cli->room)), kv_bool("created", made),
		kv_str("file_system", storage.file_system), kv_bool("power_safe", storage.power_safe),
		kv_opt("sync", storage.sync), kv_opt("sync_reason", storage.sync_reason),
		kv_opt("copies", storage.copies))) {
		fence_addf(&cli->out, "%.4096s\n  is %s room '%s'", path, made ? "the" : "already the",
		    mr_room_name(cli->room));
		if (made && storage.sync_reason[0])
			buf_addf(&cli->out, ", Sync: %s, because %s", storage.sync, storage.sync_reason);
		buf_adds(&cli->out, made ? "\n  next: mailroom register NAME\n"
					 : "; nothing was changed\n  next: mailroom register NAME, or mailroom who\n");
	}
	if (untrusted.code != MR_OK)
		cli_warn(cli,
		    "your trust in this room could not be recorded: %s; run 'mailroom trust' in a terminal of your own",
		    untrusted.message);
	else if (!made && mr_room_trust(cli->room, &since_ms) <
			      MR_TRUST_VARIABLE) /* init trusts what it makes, never what it finds */
		cli_warn(cli, "this room was here before and is not trusted; if it is yours: mailroom trust");
	if (storage.one_copy)
		cli_warn(cli, "%s", storage.copies);
	if (!storage.power_safe)
		cli_warn(cli, "a power cut can lose mail here (%s): %s", storage.file_system, storage.reason);
	if (strcmp(sync, "fast") == 0 && strcmp(storage.sync, "full") == 0)
		cli_warn(cli, "mail is made durable as with '--sync full': %s", storage.sync_reason);
	if (strcmp(sync, "none") == 0)
		cli_warn(cli, "this room syncs nothing: a power cut or a crash of the machine can lose accepted mail");
	return EXIT_DONE;
}
