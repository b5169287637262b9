/* SPDX-License-Identifier: MIT */
/* cmd_where.c - which room is used and why, and what a power cut may do there. */
#include "base/text.h"
#include "cli/view.h"
#include "helptext.h"

static void
add_fact(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "  %-9s ", name);
	(void)fence_add(out, str_of(value), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

int
cmd_where(struct cli *cli)
{
	struct mr_storage storage = { 0 };
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf disk = BUF_INIT, trust = BUF_INIT;
	int64_t since_ms;
	enum mr_trust by = mr_room_trust(cli->room, &since_ms);

	if (cli_storage(cli, &storage, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (out_json(cli, kv_str("spec", mr_room_spec(cli->room)), kv_str("name", mr_room_name(cli->room)),
		kv_str("kind", mr_room_kind(cli->room)), kv_str("why", cli->place.why),
		kv_str("worktree", cli->place.worktree), kv_str("warning", cli->place.warning),
		kv_str("trust", mr_trust_word(by)), kv_time("trusted_since", since_ms), kv_open("storage"),
		kv_str("file_system", storage.file_system), kv_bool("power_safe", storage.power_safe),
		kv_opt("reason", storage.reason), kv_opt("sync", storage.sync),
		kv_opt("sync_reason", storage.sync_reason), kv_close()))
		return EXIT_DONE;
	(void)fence_add(&cli->out, str_of(mr_room_spec(cli->room)), FENCE_LINE, 0);
	buf_addc(&cli->out, '\n');
	add_fact(&cli->out, "why", cli->place.why);
	add_fact(&cli->out, "name", mr_room_name(cli->room));
	add_fact(&cli->out, "kind", mr_room_kind(cli->room));
	add_fact(&cli->out, "worktree", cli->place.worktree ? cli->place.worktree : "-");
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
