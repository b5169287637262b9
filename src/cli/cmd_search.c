/* SPDX-License-Identifier: MIT */
/* mailroom search, thread, sent: looking at more than the inbox. */
#include "printout.h"
#include "helptext.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

static int
finish(struct printout *l, const char *nothing, const char *how)
{
	struct cli *cli = l->cli;

	if (!cli->json && l->n == 0)
		fence_addf(&cli->out, "%s\n", nothing);
	else if (!cli->json)
		budget_end(cli, "message", how);
	printout_done(l);
	return EXIT_DONE;
}

/* ---- search ---- */

int
cmd_search(struct cli *cli)
{
	const struct search_options *o = cli->opts;
	mr_auto(buf_done) struct buf words = BUF_INIT;
	struct mr_scan scan = {
		.order = MR_NEWEST_FIRST, .limit = (size_t)o->limit, .filter = filter_of(cli, &o->filter)
	};
	struct printout l = { .cli = cli, .each_once = true, .stream = cli->json || cli->out_tty };
	int code = EXIT_DONE;

	budget_begin(cli);
	scan.filter.regex = o->regex;
	if (cli->argc == 0 && scan.filter.regex == NULL)
		return cli_usage(cli, "search for what? give words or --regex");
	for (int i = 0; i < cli->argc; i++)
		buf_addf(&words, "%s%s", i > 0 ? " " : "", cli->argv[i]);
	scan.filter.words = words.len > 0 ? buf_z(&words) : NULL;
	scan.filter.folders = EVERYWHERE;
	if (!printout_run(&l, &scan, &code)) {
		printout_done(&l);
		return code;
	}
	return finish(&l, "nothing found", "more words, --since or --limit");
}

/* ---- thread ---- */

int
cmd_thread(struct cli *cli)
{
	const struct thread_options *o = cli->opts;
	struct mr_scan scan = { .order = cli->json ? MR_OLDEST_FIRST : MR_NEWEST_FIRST };
	struct printout l = {
		.cli = cli,
		.form = cli->json ? PRINTOUT_WHOLE : PRINTOUT_TURNS,
		.brief = o->brief,
		.each_once = true,
	};
	char how[80];
	int code = EXIT_DONE;

	budget_begin(cli);
	(void)snprintf(how, sizeof(how), "mailroom thread %.30s --json", cli->argv[0]);
	scan.filter.folders = EVERYWHERE;
	scan.filter.thread = cli->argv[0];
	if (!printout_run(&l, &scan, &code)) {
		printout_done(&l);
		return code;
	}
	if (l.n == 0) {
		struct mr_error err = { 0 };
		(void)mr_fail(&err, MR_NOTFOUND, "no thread '%s' in your mail", cli->argv[0]);
		(void)mr_hint(&err, "mailroom inbox --all and mailroom search show what there is");
		printout_done(&l);
		return cli_fail(cli, &err);
	}
	printout_turn(&l);
	return finish(&l, "", how);
}

/* ---- sent ---- */

struct sent_list {
	struct printout base; /* first: trouble is reported through it */
	struct mr_names ids;
};

/* Its copies are looked for when the scan is over. */
static bool
note_sent(void *ctx, const struct mr_message *msg)
{
	struct sent_list *l = ctx;

	return names_add(&l->ids, str_of(msg->id));
}

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

/* Of several facts about one recipient the last word counts; -1: not what became of it, but how. */
static int
finality(const char *state)
{
	static const char *const how[] = { "sent", "announced", "came back", "released" };
	static const char *const waiting[] = { "unread", "held", "pending", "carried", "ready", "claimed", "delayed" };

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (strcmp(state, how[i]) == 0)
			return -1;
	for (size_t i = 0; i < sizeof(waiting) / sizeof(waiting[0]); i++)
		if (strcmp(state, waiting[i]) == 0)
			return 0;
	return strcmp(state, "answered") == 0 ? 2 : 1;
}

static void
note_state(void *ctx, const struct mr_trail *fact)
{
	struct became *b = ctx;
	const char *name = b->queue ? b->queue : fact->agent;

	if (finality(fact->state) < 0)
		return;
	for (size_t i = 0; i < b->names.n; i++) {
		if (strcmp(b->names.v[i], name) != 0)
			continue;
		char *state = finality(fact->state) > finality(b->states.v[i]) ? strdup(fact->state) : NULL;

		if (state) {
			free(b->states.v[i]);
			b->states.v[i] = state;
		}
		return;
	}
	b->failed |= !names_add(&b->names, str_of(name)) || !names_add(&b->states, str_of(fact->state));
}

/* "read", or "2 read, 1 unread". */
static void
add_states(struct buf *out, const struct became *b)
{
	bool first = true;

	for (size_t i = 0; i < b->states.n; i++) {
		size_t n = 0, before = 0;

		for (size_t k = 0; k < b->states.n; k++) {
			bool same = strcmp(b->states.v[k], b->states.v[i]) == 0;

			n += same;
			before += same && k < i;
		}
		if (before > 0)
			continue;
		buf_adds(out, first ? "" : ", ");
		if (b->states.n > 1)
			buf_addf(out, "%zu ", n);
		buf_adds(out, b->states.v[i]);
		first = false;
	}
}

static void
print_sent(struct cli *cli, struct mr_message *msg, const struct became *b)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	bool waits = false;

	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_message_keys(&j, msg, cli->room, false);
		json_key(&j, "became");
		json_open(&j, '{');
		for (size_t i = 0; i < b->names.n; i++)
			json_key_str(&j, b->names.v[i], b->states.v[i]);
		json_close(&j);
		out_json_line(cli, &j);
		return;
	}
	for (size_t i = 0; i < b->states.n; i++)
		waits |= finality(b->states.v[i]) == 0;
	msg->flags = waits ? msg->flags & ~(unsigned)MR_SEEN : msg->flags | MR_SEEN;
	text_line(cli, &line, msg);
	if (line.len > 0 && b->states.n > 0) {
		line.len--; /* its line break */
		buf_adds(&line, "  (");
		add_states(&line, b);
		buf_adds(&line, ")\n");
	}
	if (line.failed)
		cli->out.failed = true;
	else
		(void)budget_add(cli, buf_str(&line));
}

static bool
show_sent(struct cli *cli, const char *id, int *ret_code)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(became_done) struct became b = { 0 };
	struct mr_error err = { 0 }, ignored = { 0 };
	enum mr_rc rc = mr_fetch(cli->room, cli->self.agent, id, &msg, &err);

	if (rc == MR_NOTFOUND) /* purged this very moment */
		return true;
	if (rc == MR_OK && msg.to.n == 1 && msg.cc.n == 0 && strncmp(msg.to.v[0], "queue:", strlen("queue:")) == 0)
		b.queue = msg.to.v[0];
	if (rc == MR_OK)
		(void)mr_why(cli->room, &cli->self, id, note_state, &b, &ignored);
	if (rc == MR_OK && b.failed)
		rc = mr_nomem(&err);
	if (rc != MR_OK) {
		*ret_code = cli_fail(cli, &err);
		return false;
	}
	msg.folder = MR_SENT; /* one to oneself is in the inbox, too */
	print_sent(cli, &msg, &b);
	return true;
}

int
cmd_sent(struct cli *cli)
{
	const struct sent_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_NEWEST_FIRST,
		.limit = (size_t)o->limit,
		.filter = filter_of(cli, &o->filter),
		.trouble = printout_trouble };
	struct sent_list l = { .base = { .cli = cli } };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	budget_begin(cli);
	scan.filter.folders = MR_SENT;
	cli->budget.own = true;
	if (mr_scan(cli->room, cli->self.agent, &scan, note_sent, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	for (size_t i = 0; i < l.ids.n && code == EXIT_DONE; i++)
		if (!show_sent(cli, l.ids.v[i], &code))
			break;
	l.base.n = l.ids.n;
	mr_names_done(&l.ids);
	if (code != EXIT_DONE)
		return code;
	return finish(&l.base, "nothing sent yet", "mailroom sent --limit N");
}
