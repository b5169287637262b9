/* SPDX-License-Identifier: MIT */
/* mailroom why, purge: what happened to a message, and making one go away. */
#include "cli.h"
#include "helptext.h"

/* ---- why ---- */

struct trail {
	struct cli *cli;
	struct table table;
	size_t n;
};

static void
add_fact(void *ctx, const struct mr_trail *fact)
{
	struct trail *t = ctx;

	t->n++;
	if (t->cli->json) {
		struct json j = JSON_INIT(&t->cli->out);
		json_open(&j, '{');
		json_key_str(&j, "agent", fact->agent);
		json_key_str(&j, "state", fact->state);
		json_key_str(&j, "evidence", fact->evidence);
		out_json_line(t->cli, &j);
		return;
	}
	mr_auto(buf_done) struct buf evidence = BUF_INIT;

	(void)fence_add(&evidence, str_of(fact->evidence), FENCE_LINE, 0);
	(void)table_name(&t->table, fact->agent);
	(void)table_add(&t->table, fact->state);
	(void)table_put(&t->table, &evidence);
}

static int
run_why(struct cli *cli)
{
	struct trail t = { .cli = cli, .table = { .columns = 3 } };
	struct mr_error err = { 0 };

	if (!cli->json) {
		(void)table_add(&t.table, "WHO");
		(void)table_add(&t.table, "STATE");
		(void)table_add(&t.table, "EVIDENCE");
	}
	enum mr_rc rc = mr_why(cli->room, &cli->self, cli->argv[0], add_fact, &t, &err);
	if (rc == MR_OK && !cli->json)
		table_print(cli, &t.table, &cli->out);
	mr_names_done(&t.table.cells);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

const struct cmd cmd_why = {
	.name = "why",
	.help = &help_why,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_why,
};

/* ---- purge ---- */

static int
run_purge(struct cli *cli)
{
	mr_auto(mr_purged_done) struct mr_purged purged = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	if (mr_resolve_id(cli->room, cli->self.agent, cli->argv[0], 0, id, &err) != MR_OK ||
	    mr_purge(cli->room, &cli->self, id, opt_text(cli, "reason"), &purged, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (purged.warning)
		cli_warn(cli, "%s is removed, but: %s", id, purged.warning);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_str(&j, "id", id);
		json_key_int(&j, "removed", (int64_t)purged.removed);
		json_key_names(&j, "told", &purged.told);
		json_key_names(&j, "carried", &purged.carried);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	fence_addf(&cli->out, "%zu %s of %s removed\n", purged.removed, purged.removed == 1 ? "copy" : "copies", id);
	for (size_t i = 0; i < purged.told.n; i++)
		fence_addf(&cli->out, "%s had not read it and was told\n", purged.told.v[i]);
	for (size_t i = 0; i < purged.carried.n; i++)
		fence_addf(&cli->out, "a copy is with %s; it is not removed there\n", purged.carried.v[i]);
	return EXIT_DONE;
}

const struct cmd cmd_purge = {
	.name = "purge",
	.help = &help_purge,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_purge,
};
