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
		.form = cli->json ? PRINTOUT_WHOLE : PRINTOUT_TURNS,
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
		    "no thread '%s' in your mail\nmailroom inbox --all and mailroom search show what there is",
		    cli->argv[0]));
	printout_turn(&l);
	return finish(cli, l.n, "", how);
}

/* ---- sent ---- */

struct became {
	const char *queue;             /* the message is work of that queue, and has no other recipient */
	struct mr_names names, states; /* side by side, one state for each recipient */
	bool failed;
};

static void
became_done(struct became *b)
{
	mr_names_done(&b->names);
	mr_names_done(&b->states);
}

/* Of several facts about one recipient the most final one counts; -1: says nothing about its state. */
static int
finality(const char *state)
{
	static const struct {
		const char *state;
		int finality;
	} words[] = { { "sent", -1 }, { "announced", -1 }, { "rung", -1 }, { "came back", -1 }, { "released", -1 },
		{ "unread", 0 }, { "held", 0 }, { "pending", 0 }, { "carried", 0 }, { "ready", 0 }, { "claimed", 0 },
		{ "delayed", 0 }, { "answered", 2 } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(state, words[i].state) == 0)
			return words[i].finality;
	return 1;
}

static void
print_sent(struct cli *cli, struct mr_message *msg, const struct became *b)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	const char *comma = "";
	bool waits = false;

	if (cli->json) {
		struct json j = JSON_INIT(&line);

		json_open(&j, '{');
		for (size_t i = 0; i < b->names.n; i++)
			json_key_str(&j, b->names.v[i], b->states.v[i]);
		json_close(&j);
		out_json_message(cli, NULL, msg, false, CELLS(kv_json("became", &line)));
		return;
	}
	for (size_t i = 0; i < b->states.n; i++)
		waits |= finality(b->states.v[i]) == 0;
	msg->flags = waits ? msg->flags & ~(unsigned)MR_SEEN : msg->flags | MR_SEEN;
	text_line(cli, &line, msg);
	if (line.len > 0 && b->states.n > 0) {
		line.len--; /* its line break */
		buf_adds(&line, "  (");
		for (size_t i = 0; i < b->states.n; i++) { /* "read", or "2 read, 1 unread" */
			size_t n = 0, before = 0;

			for (size_t k = 0; k < b->states.n; k++) {
				bool same = strcmp(b->states.v[k], b->states.v[i]) == 0;

				n += same;
				before += same && k < i;
			}
			if (before > 0)
				continue;
			buf_adds(&line, comma);
			if (b->states.n > 1)
				buf_addf(&line, "%zu ", n);
			buf_adds(&line, b->states.v[i]);
			comma = ", ";
		}
		buf_adds(&line, ")\n");
	}
	(void)budget_add(cli, &line);
}

static enum mr_rc
show_sent(struct cli *cli, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(became_done) struct became b = { 0 };
	mr_auto(mr_list_done) struct mr_trails facts = { 0 };
	enum mr_rc rc = mr_fetch(cli->room, cli->self.agent, id, &msg, &cli->err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc; /* purged this very moment */
	if (msg.to.n == 1 && msg.cc.n == 0 && str_starts(str_of(msg.to.v[0]), "queue:"))
		b.queue = msg.to.v[0];
	(void)mr_became(cli->room, &cli->self, &msg, &facts, IGNORED);
	for (const struct mr_trail *fact = facts.v; fact < facts.v + facts.n; fact++) {
		const char *name = b.queue ? b.queue : fact->agent;
		int final = finality(fact->state);
		size_t i = 0;

		while (i < b.names.n && strcmp(b.names.v[i], name) != 0)
			i++;
		if (final >= 0 && i == b.names.n) {
			b.failed |= !names_add(&b.names, str_of(name)) || !names_add(&b.states, str_of(fact->state));
		} else if (final >= 0 && final > finality(b.states.v[i])) {
			char *state = strdup(fact->state);

			b.failed |= !state;
			free(state ? b.states.v[i] : NULL);
			b.states.v[i] = state ? state : b.states.v[i];
		}
	}
	if (b.failed)
		return mr_nomem(&cli->err);
	msg.folder = MR_SENT; /* mail to itself is found in the inbox first */
	print_sent(cli, &msg, &b);
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
