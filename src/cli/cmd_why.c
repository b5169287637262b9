/* SPDX-License-Identifier: MIT */
/* mailroom why, purge: what happened to a message, and making one go away. */
#include "cli.h"

/* ---- why ---- */

static const struct opt no_opts[] = { OPT_END };
static const char *const why_about[] = {
	"Tells what happened to a message: for everyone it was sent to, whether it is unread, read, held, archived, "
	"dead or gone, "
	"and how that is known. It tells each claim that is over: by whom, since when, and how it "
	"ended (on an agent's own mail for at least a month); when it was announced, as far as that is still known, "
	"when "
	"the file of mail that was read changed last, and the answers to it. "
	"It claims no more than the evidence: a message in cur/ was shown, not understood.",
	NULL,
};
static const char *const why_examples[] = {
	"id=$(mailroom --as alice send bob -m 'hello')\nmailroom --as alice why \"$id\"",
	NULL,
};

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
	.needs = CMD_SELF,
	.synopsis = "ID",
	.summary = "tell what happened to a message, with evidence",
	.opts = no_opts,
	.about = why_about,
	.examples = why_examples,
	.min_args = 1,
	.max_args = 1,
	.run = run_why,
};

/* ---- purge ---- */

static const struct opt purge_opts[] = {
	OPT('r', "reason", "TEXT", "why; kept in the tombstone, and told to agents who had not read it"),
	OPT_END,
};
static const char *const purge_about[] = {
	"Removes a message from every mailbox of the room, for a key or password that was sent by mistake. It is the "
	"one command that deletes mail, and it leaves a tombstone, without the text, that 'mailroom why' shows. What "
	"an "
	"agent has read it has read: change the key too.",
	"Only its sender and the operator may. Agents who had not read it get a short mail of type 'purged' with the "
	"reason, and without its text or subject. A copy that was carried to a linked room is named and not removed: "
	"purge it there.",
	"It works on a full disk: without space to note what it does it removes the message first. If it is cut off, "
	"repeat it.",
	NULL,
};
static const char *const purge_examples[] = {
	"id=$(mailroom --as alice send bob -m 'password: hunter2')\nmailroom --as alice purge --reason 'leaked a "
	"password' \"$id\"",
	NULL,
};

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
	.needs = CMD_SELF,
	.synopsis = "[--reason TEXT] ID",
	.summary = "remove a message from every mailbox, leaving a tombstone",
	.opts = purge_opts,
	.about = purge_about,
	.examples = purge_examples,
	.min_args = 1,
	.max_args = 1,
	.run = run_purge,
};
