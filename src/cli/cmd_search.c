/* SPDX-License-Identifier: MIT */
/* cmd_search.c - mailroom search, thread, sent, why, purge: mail beyond the inbox, and what became of it. */
#include "cli/printout.h"
#include "helptext.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

/* ---- search, thread ---- */

static int
finish(struct cli *cli, size_t n, const char *nothing, const char *how)
{
	if (!cli->json && n == 0)
		fence_addf(&cli->out, "%s\n", nothing);
	else if (!cli->json)
		budget_end(cli, "message", how);
	return EXIT_DONE;
}

int
cmd_search(struct cli *cli, const struct search_options *o)
{
	const char *words = operands_text(cli, 0);
	mr_auto(query_done) struct query query = { 0 };
	struct mr_scan scan = {
		.order = MR_NEWEST_FIRST, .limit = (size_t)o->limit, .filter = filter_of(cli, &o->filter)
	};
	mr_auto(
	    printout_done) struct printout l = { .cli = cli, .each_once = true, .stream = cli->json || cli->out_tty };

	budget_begin(cli);
	TRY_CLI(query_parse(str_of(words), &query, &cli->err));
	l.query = &query;
	scan.filter.words = words[0] ? words : NULL;
	scan.filter.regex = o->regex;
	scan.filter.folders = EVERYWHERE;
	TRY_CLI(printout_run(&l, &scan));
	return finish(cli, l.n, "nothing found", "more words, --since or --limit");
}

int
cmd_thread(struct cli *cli, const struct thread_options *o)
{
	struct mr_scan scan = { .order = cli->json ? MR_OLDEST_FIRST : MR_NEWEST_FIRST, .filter.folders = EVERYWHERE };
	mr_auto(printout_done) struct printout l = {
		.cli = cli,
		.conversation = true,
		.brief = o->brief,
		.each_once = true,
	};
	char how[80];

	budget_begin(cli);
	(void)snprintf(how, sizeof(how), "mailroom thread %.30s --json", cli->argv[0]);
	scan.filter.thread = cli->argv[0];
	/* What an agent works on is shown as the newest. */
	if (!cli->json)
		TRY_CLI(printout_held(&l, &scan.filter));
	TRY_CLI(printout_run(&l, &scan));
	if (cli->json)
		TRY_CLI(printout_held(&l, &scan.filter));
	if (l.n == 0)
		TRY_CLI(mr_fail(&cli->err, MR_NOTFOUND,
		    "no thread '%s' in your mail\n`mailroom inbox --all` and `mailroom search` show what there is",
		    cli->argv[0]));
	printout_turn(&l);
	return finish(cli, l.n, "", how);
}

/* ---- sent ---- */

/* Of several facts about one recipient the most final one counts; -1: says nothing about its state. */
static int
finality(const char *state)
{
	if (str_is_among(str_of(state), "sent,announced,rung,came back,released", ","))
		return -1;
	if (str_is_among(str_of(state), "unread,held,pending,carried,ready,claimed,delayed", ","))
		return 0;
	return strcmp(state, "answered") == 0 ? 2 : 1;
}

/* Leaves one fact for each recipient. Work of a queue has no other recipient than the queue. */
static void
keep_final(struct mr_trails *facts, const char *queue)
{
	size_t n = 0;

	for (size_t i = 0; i < facts->n; i++) {
		struct mr_trail fact = facts->v[i];
		size_t k = 0;

		fact.agent = queue ? queue : fact.agent;
		while (k < n && strcmp(facts->v[k].agent, fact.agent) != 0)
			k++;
		if (finality(fact.state) > (k < n ? finality(facts->v[k].state) : -1))
			facts->v[k] = fact;
		n += k == n && finality(fact.state) >= 0;
	}
	facts->n = n;
}

/* "  (read)", or "  (2 read, 1 unread)" */
static void
add_states(struct buf *line, const struct mr_trails *facts)
{
	const char *comma = "  (";

	for (size_t i = 0; i < facts->n; i++) {
		size_t n = 0, before = 0;

		for (size_t k = 0; k < facts->n; k++) {
			bool same = strcmp(facts->v[k].state, facts->v[i].state) == 0;

			n += same;
			before += same && k < i;
		}
		if (before > 0)
			continue;
		buf_adds(line, comma);
		if (facts->n > 1)
			buf_addf(line, "%zu ", n);
		buf_adds(line, facts->v[i].state);
		comma = ", ";
	}
	buf_adds(line, facts->n > 0 ? ")" : "");
}

static enum mr_rc
show_sent(struct cli *cli, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(mr_list_done) struct mr_trails facts = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = mr_fetch(cli->room, cli->self.agent, id, &msg, &cli->err);
	bool waits = false;

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc; /* purged this very moment */
	bool queue = msg.to.n == 1 && msg.cc.n == 0 && str_starts(str_of(msg.to.v[0]), "queue:");

	(void)mr_became(cli->room, &cli->self, &msg, &facts, IGNORED);
	keep_final(&facts, queue ? msg.to.v[0] : NULL);
	msg.folder = MR_SENT; /* mail to itself is found in the inbox first */
	if (cli->json) {
		struct json j = JSON_INIT(&text);

		json_open(&j, '{');
		for (const struct mr_trail *fact = facts.v; fact < facts.v + facts.n; fact++)
			json_key_str(&j, fact->agent, fact->state);
		json_close(&j);
		out_json_message(cli, NULL, &msg, false, CELLS(kv_json("became", &text)));
		return MR_OK;
	}
	for (size_t i = 0; i < facts.n; i++)
		waits |= finality(facts.v[i].state) == 0;
	msg.flags = waits ? msg.flags & ~(unsigned)MR_SEEN : msg.flags | MR_SEEN;
	add_states(&text, &facts);
	cli->out.failed |= text.failed;
	(void)budget_line(cli, &msg, buf_z(&text));
	return MR_OK;
}

int
cmd_sent(struct cli *cli, const struct sent_options *o)
{
	struct mr_scan scan = { .order = MR_NEWEST_FIRST,
		.limit = (size_t)o->limit,
		.trouble = printout_trouble,
		.filter = filter_of(cli, &o->filter) };
	mr_auto(printout_done) struct printout l = { .cli = cli };

	budget_begin(cli);
	scan.filter.folders = MR_SENT;
	cli->budget.own = true;
	enum mr_rc rc = mr_scan(cli->room, cli->self.agent, &scan, printout_collect, &l, &cli->err);

	for (size_t i = 0; i < l.seen.n && rc == MR_OK; i++)
		rc = show_sent(cli, l.seen.v[i]);
	TRY_CLI(rc);
	return finish(cli, l.seen.n, "nothing sent yet", "mailroom sent --limit N");
}

/* ---- why ---- */

int
cmd_why(struct cli *cli)
{
	mr_auto(list_done) struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_trails facts = { 0 };

	TRY_CLI(mr_why(cli->room, &cli->self, cli->argv[0], &facts, &cli->err));
	for (const struct mr_trail *fact = facts.v; fact < facts.v + facts.n; fact++) {
		mr_auto(buf_done) struct buf evidence = BUF_INIT;

		out_line(&evidence, fact->evidence);
		list_row(&list, col_name("WHO", kv_str("agent", fact->agent)),
		    col("STATE", kv_str("state", fact->state)), col_fenced("EVIDENCE", &evidence),
		    kv_str("evidence", fact->evidence), kv_time("at", fact->at_ms));
	}
	return list_end(&list, "");
}

/* ---- purge ---- */

int
cmd_purge(struct cli *cli, const struct purge_options *o)
{
	mr_auto(mr_purged_done) struct mr_purged purged = { 0 };
	char id[MR_ID_LEN + 1];

	TRY_CLI(mr_resolve_id(cli->room, cli->self.agent, cli->argv[0], 0, id, &cli->err));
	TRY_CLI(mr_purge(cli->room, &cli->self, id, o->reason, &purged, &cli->err));
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
