/* SPDX-License-Identifier: MIT */
/* cmd_where.c - which room is used and why, and what a power cut may do there. */
#include "base/text.h"
#include "cli/cli.h"
#include "helptext.h"

static void
print_json(struct cli *cli, const struct mr_storage *storage)
{
	struct json j = JSON_INIT(&cli->out);
	int64_t since_ms;
	enum mr_trust by = mr_room_trust(cli->room, &since_ms);

	json_open(&j, '{');
	json_key_str(&j, "spec", mr_room_spec(cli->room));
	json_key_str(&j, "name", mr_room_name(cli->room));
	json_key_str(&j, "kind", mr_room_kind(cli->room));
	json_key_str(&j, "why", cli->place.why);
	json_key_str(&j, "worktree", cli->place.worktree);
	json_key_str(&j, "warning", cli->place.warning);
	json_key_str(&j, "trust", mr_trust_word(by));
	json_key_time(&j, "trusted_since", since_ms);
	json_key(&j, "storage");
	json_open(&j, '{');
	json_key_str(&j, "file_system", storage->file_system);
	json_key_bool(&j, "power_safe", storage->power_safe);
	json_key_str(&j, "reason", storage->reason[0] ? storage->reason : NULL);
	json_key_str(&j, "sync", storage->sync[0] ? storage->sync : NULL);
	json_key_str(&j, "sync_reason", storage->sync_reason[0] ? storage->sync_reason : NULL);
	json_close(&j);
	out_json_line(cli, &j);
}

static void
add_fact(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "  %-9s ", name);
	(void)fence_add(out, str_of(value), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

static int
run_where(struct cli *cli)
{
	struct mr_storage storage = { 0 };
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf disk = BUF_INIT, trust = BUF_INIT;
	int64_t since_ms;

	if (cli_storage(cli, &storage, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		print_json(cli, &storage);
		return EXIT_DONE;
	}
	(void)fence_add(&cli->out, str_of(mr_room_spec(cli->room)), FENCE_LINE, 0);
	buf_addc(&cli->out, '\n');
	add_fact(&cli->out, "why", cli->place.why);
	add_fact(&cli->out, "name", mr_room_name(cli->room));
	add_fact(&cli->out, "kind", mr_room_kind(cli->room));
	add_fact(&cli->out, "worktree", cli->place.worktree ? cli->place.worktree : "-");
	enum mr_trust by = mr_room_trust(cli->room, &since_ms);

	trust_text(&trust, by, since_ms);
	add_fact(&cli->out, "trust", buf_z(&trust));
	if (strcmp(storage.file_system, "unknown") == 0)
		buf_addf(&disk, "unknown: %s", storage.reason);
	else
		buf_addf(&disk, "%s, %s%s", storage.file_system,
		    storage.power_safe ? "survives a power cut" : "a power cut can lose mail: ", storage.reason);
	add_fact(&cli->out, "storage", buf_z(&disk));
	if (storage.sync[0]) {
		buf_clear(&disk);
		buf_addf(&disk, "%s%s%s", storage.sync, storage.sync_reason[0] ? ", not fast as asked for: " : "",
		    storage.sync_reason);
		add_fact(&cli->out, "sync", buf_z(&disk));
	}
	return EXIT_DONE;
}

const struct cmd cmd_where = {
	.name = "where",
	.help = &help_where,
	.needs = CMD_ROOM,
	.run = run_where,
};
