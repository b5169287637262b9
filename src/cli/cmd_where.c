/* SPDX-License-Identifier: MIT */
/* cmd_where.c - which room, which agent and which address is meant, and why: where, whoami, resolve. */
#include "base/format.h"
#include "message/address.h"
#include "helptext.h"

/* ---- where ---- */

int
cmd_where(struct cli *cli)
{
	static const char *const keeps[] = { "Keep-Archive", "Keep-Sent", "Keep-Done", "Keep-Dead" };
	struct mr_storage storage = { 0 };
	mr_auto(buf_done) struct buf disk = BUF_INIT, trust = BUF_INIT, keep = BUF_INIT, sync = BUF_INIT;
	int64_t since_ms;
	enum mr_trust by = mr_room_trust(cli->room, &since_ms);

	TRY_CLI(cli_storage(cli, &storage, &cli->err));
	for (size_t i = 0; i < sizeof keeps / sizeof keeps[0]; i++)
		if (mr_room_setting(cli->room, keeps[i]))
			buf_addf(
			    &keep, "%s%s: %s", keep.len ? ", " : "", keeps[i], mr_room_setting(cli->room, keeps[i]));
	if (out_json(cli, kv_str("spec", mr_room_spec(cli->room)), kv_str("name", mr_room_name(cli->room)),
		kv_str("kind", mr_room_kind(cli->room)), kv_str("why", cli->place.why),
		kv_str("worktree", cli->place.worktree), kv_str("warning", cli->place.warning),
		kv_str("trust", mr_trust_word(by)), kv_time("trusted_since", since_ms), kv_open("storage"),
		kv_str("file_system", storage.file_system), kv_bool("power_safe", storage.power_safe),
		kv_opt("reason", storage.reason), kv_opt("sync", storage.sync),
		kv_opt("sync_reason", storage.sync_reason), kv_opt("copies", storage.copies), kv_close(),
		kv_opt("keep", buf_z(&keep))))
		return EXIT_DONE;
	trust_text(&trust, by, since_ms);
	if (strcmp(storage.file_system, "unknown") == 0)
		buf_addf(&disk, "unknown: %s", storage.reason);
	else
		buf_addf(&disk, "%s, %s%s", storage.file_system,
		    storage.power_safe ? "survives a power cut" : "a power cut can lose mail: ", storage.reason);
	if (storage.sync[0])
		buf_addf(&sync, "%s%s%s", storage.sync, storage.sync_reason[0] ? ": " : "", storage.sync_reason);
	const char *const facts[][2] = { { "why", cli->place.why }, { "name", mr_room_name(cli->room) },
		{ "kind", mr_room_kind(cli->room) }, { "worktree", cli->place.worktree ? cli->place.worktree : "-" },
		{ "trust", buf_z(&trust) }, { "storage", buf_z(&disk) }, { "sync", buf_z(&sync) },
		{ "copies", storage.copies }, { "keep", buf_z(&keep) } };

	fence_addf(&cli->out, "%.4096s\n", mr_room_spec(cli->room));
	for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
		if (facts[i][1][0])
			fence_addf(&cli->out, "  %-9s %.4096s\n", facts[i][0], facts[i][1]);
	return EXIT_DONE;
}

/* ---- whoami ---- */

int
cmd_whoami(struct cli *cli)
{
	if (out_json(cli, kv_str("agent", cli->self.agent), kv_int("life", cli->self.life),
		kv_str("room", mr_room_name(cli->room)), kv_str("how", cli->self.how),
		kv_bool("bound", cli->self.bound), kv_opt("session", cli->self.session)))
		return EXIT_DONE;
	text_name(cli, &cli->out, cli->self.agent);
	buf_adds(&cli->out, "\n  ");
	if (mr_room_has(cli->room, MR_HAS_LIVES))
		buf_addf(&cli->out, "life %u ", cli->self.life);
	fence_addf(&cli->out, "in room %s: %.4096s\n", mr_room_name(cli->room), cli->self.how);
	return EXIT_DONE;
}

/* ---- resolve ---- */

static void
print_list(struct cli *cli, const char *heading, const struct mr_names *names)
{
	if (names->n == 0)
		return;
	out_styled(cli, &cli->out, STYLE_DIM, heading);
	buf_addc(&cli->out, '\n');
	for (size_t i = 0; i < names->n; i++) {
		buf_adds(&cli->out, "  ");
		out_styled(cli, &cli->out, STYLE_PLAIN, names->v[i]);
		buf_addc(&cli->out, '\n');
	}
}

int
cmd_resolve(struct cli *cli)
{
	int code = EXIT_DONE;

	/* Groups leave their sender out, so the answer depends on the caller; a caller without a name is allowed. */
	if (cli_know_self(cli, &cli->err) != MR_OK && cli->as_option)
		return cli_fail(cli, &cli->err);
	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_resolution_done) struct mr_resolution r = { 0 };
		struct mr_error err = { 0 };

		if (mr_resolve(cli->room, cli->self_known ? cli->self.agent : "", cli->argv[i], &r, &err) != MR_OK)
			code = cli_fail(cli, &err);
		else if (!out_json(cli, kv_str("address", cli->argv[i]), kv_str("form", r.form), kv_str("name", r.name),
			     kv_names("targets", &r.targets), kv_names("trouble", &r.trouble),
			     kv_names("trail", &r.trail), kv_str("room", mr_room_name(cli->room)))) {
			/* Only of agents other programs have other names. */
			mr_auto(buf_done) struct buf line = BUF_INIT, name = BUF_INIT;

			if (!mr_room_has(cli->room, MR_HAS_LIVES) && strcmp(r.form, "agent") == 0)
				foreign_from_address(r.name, &name);
			else
				buf_adds(&name, r.name);
			format_addf(&line, "%s '%s%s': %s", r.form, strcmp(r.form, "pattern") == 0 ? "@" : "",
			    buf_z(&name), counted(r.targets.n, "recipient").text);
			if (r.targets.n > 0)
				out_styled(cli, &cli->out, STYLE_DIM, buf_z(&line));
			for (size_t k = 0; k < r.targets.n; k++) {
				buf_adds(&cli->out, k == 0 ? "\n  " : "  ");
				text_name(cli, &cli->out, r.targets.v[k]);
				buf_addc(&cli->out, '\n');
			}
			print_list(cli, "how", &r.trail);
			print_list(cli, "trouble", &r.trouble);
		}
	}
	return code;
}
