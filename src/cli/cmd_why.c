/* SPDX-License-Identifier: MIT */
/* mailroom why, purge: what happened to a message, and making one go away. */
#include "cli/view.h"
#include "helptext.h"

/* ---- why ---- */

static void
list_fact(void *ctx, const struct mr_trail *fact)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT;

	(void)fence_add(&evidence, str_of(fact->evidence), FENCE_LINE, 0);
	list_row(ctx, col_name("WHO", kv_str("agent", fact->agent)), col("STATE", kv_str("state", fact->state)),
	    col_fenced("EVIDENCE", &evidence), kv_str("evidence", fact->evidence));
}

int
cmd_why(struct cli *cli)
{
	struct listing list = { .cli = cli };
	struct mr_error err = { 0 };

	if (mr_why(cli->room, &cli->self, cli->argv[0], list_fact, &list, &err) == MR_OK)
		return list_end(&list, "");
	list_done(&list);
	return cli_fail(cli, &err);
}

/* ---- purge ---- */

int
cmd_purge(struct cli *cli)
{
	const struct purge_options *o = cli->opts;
	mr_auto(mr_purged_done) struct mr_purged purged = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	if (mr_resolve_id(cli->room, cli->self.agent, cli->argv[0], 0, id, &err) != MR_OK ||
	    mr_purge(cli->room, &cli->self, id, o->reason, &purged, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (purged.warning)
		cli_warn(cli, "%s is removed, but: %s", id, purged.warning);
	if (out_json(cli, kv_str("id", id), kv_size("removed", purged.removed), kv_names("told", &purged.told),
		kv_names("carried", &purged.carried)))
		return EXIT_DONE;
	fence_addf(&cli->out, "%zu %s of %s removed\n", purged.removed, purged.removed == 1 ? "copy" : "copies", id);
	for (size_t i = 0; i < purged.told.n; i++)
		fence_addf(&cli->out, "%s had not read it and was told\n", purged.told.v[i]);
	for (size_t i = 0; i < purged.carried.n; i++)
		fence_addf(&cli->out, "a copy is with %s; it is not removed there\n", purged.carried.v[i]);
	return EXIT_DONE;
}
