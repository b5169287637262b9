/* SPDX-License-Identifier: MIT */
/* cmd_patrol.c - mailroom patrol: mail that programs handle, once, or until it is told to stop; and what was done. */
#include "helptext.h"

#define REST_MS 2000

struct round {
	struct cli *cli;
	bool watch, log;
	size_t rounds; /* that are done */
	struct mr_header *settings;
	size_t settings_n;
};

/* ---- Telling ---- */

static void
add_part(struct cli *cli, struct buf *out, const char *before, const char *text)
{
	if (!*text)
		return;
	buf_adds(out, before);
	out_styled(cli, out, STYLE_PLAIN, text);
}

/* Names, fields and what handlers say come from mail: inside the fence. */
static void
tell(void *ctx, const struct mr_patrol_step *step)
{
	struct round *r = ctx;
	struct cli *cli = r->cli;
	mr_auto(buf_done) struct buf line = BUF_INIT;
	const char *what = step->what;
	bool bad = strcmp(what, "failed") == 0 || strcmp(what, "dead") == 0 || strcmp(what, "trouble") == 0;

	/* every two seconds, the same */
	if (r->watch && (strcmp(what, "waiting") == 0 ||
			    ((strcmp(what, "unhandled") == 0 || strcmp(what, "unproven") == 0) && r->rounds > 0)))
		return;
	if (out_json(cli, kv_time("at", step->at_ms), kv_str("what", what), kv_opt("id", step->id),
		kv_opt("type", step->type), kv_opt("from", step->from), kv_opt("handler", step->handler),
		kv_opt("result", step->result), kv_int("attempt", step->attempt)))
		return;
	if (r->log) {
		text_when(&line, step->at_ms);
		buf_addc(&line, '\t');
	}
	out_styled(cli, &line, bad ? STYLE_RED : STYLE_BOLD, what);
	add_part(cli, &line, " ", short_id(step->id));
	add_part(cli, &line, " ", step->type);
	add_part(cli, &line, " from ", step->from);
	if (step->attempt > 1)
		buf_addf(&line, ", attempt %u", step->attempt);
	add_part(cli, &line, ": ", step->handler);
	add_part(cli, &line, *step->handler ? " -> " : ": ", step->result);
	buf_addc(&line, '\n');
	(void)budget_add(cli, &line);
}

static char *
render(void *ctx, const struct mr_message *msg, size_t *ret_len)
{
	struct round *r = ctx;
	struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	json_message(&j, msg, r->cli->room, true);
	buf_addc(&text, '\n');
	*ret_len = text.len;
	return buf_take(&text);
}

static void
summary(struct cli *cli, const struct mr_patrolled *done)
{
	const struct {
		size_t n;
		const char *word;
	} parts[] = { { done->failed, "failed" }, { done->dead, "dead" }, { done->aside, "set aside" },
		{ done->waiting, "waiting" }, { done->broken, "broken" }, { done->left, "left alone" } };

	if (out_json(cli, kv_str("what", "round"), kv_size("handled", done->handled), kv_size("failed", done->failed),
		kv_size("dead", done->dead), kv_size("aside", done->aside), kv_size("waiting", done->waiting),
		kv_size("broken", done->broken), kv_size("left", done->left)))
		return;
	buf_addf(&cli->out, "%zu handled", done->handled);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].n > 0)
			fence_addf(&cli->out, ", %zu %s", parts[i].n, parts[i].word);
	buf_addc(&cli->out, '\n');
}

/* ---- Settings ---- */

/* --set NAME=VALUE, --handler TYPE=COMMAND (which is the setting Handler: TYPE COMMAND). */
static bool
read_settings(struct round *r)
{
	struct cli *cli = r->cli;
	const struct patrol_options *o = cli->opts;
	size_t sets = opt_count(o->set), n = sets + opt_count(o->handler);

	r->settings = arena_alloc(&cli->own, (n + 1) * sizeof(*r->settings));
	for (size_t i = 0; r->settings && i < n; i++) {
		bool handler = i >= sets;
		const char *given = handler ? o->handler[i - sets] : o->set[i], *equals = strchr(given, '=');

		if (!equals || equals == given)
			return cli_usage(cli, "option '--%s' is %s=%s, not '%s'", handler ? "handler" : "set",
				   handler ? "TYPE" : "NAME", handler ? "COMMAND" : "VALUE", given),
			       false;
		const char *name = arena_dup(&cli->own, (struct mr_str){ given, (size_t)(equals - given) });
		const char *value = handler && name ? cli_text(cli, "%s %s", name, equals + 1) : equals + 1;

		if (!name || !value)
			return false;
		r->settings[r->settings_n++] = (struct mr_header){ handler ? "Handler" : name, value };
	}
	return r->settings != NULL;
}

/* ---- Rounds ---- */

static bool
go_on(void *ctx, size_t added)
{
	(void)ctx, (void)added;
	return !stop_asked(NULL);
}

static int
once(struct round *r)
{
	struct cli *cli = r->cli;
	struct mr_patrol_options options = {
		.settings = r->settings,
		.settings_n = r->settings_n,
		.dry_run = cli->dry_run,
		.patient = r->watch,
		.rest_ms = r->watch ? REST_MS : 0,
		.render = render,
		.fn = tell,
		.stop = stop_asked,
		.ctx = r,
	};
	struct mr_patrolled done = { 0 };

	budget_begin(cli);
	enum mr_rc rc = mr_patrol(cli->room, &cli->self, &options, &done, &cli->err);

	budget_end(cli, "line", "mailroom patrol log --json");
	if (!cli->dry_run && mr_room_has(cli->room, MR_HAS_INDEX))
		(void)mr_index_update(cli->room, false, go_on, NULL, &(struct mr_indexed){ 0 }, IGNORED);
	if (!r->watch && !cli->dry_run && (rc == MR_OK || done.handled + done.failed > 0))
		summary(cli, &done);
	TRY_CLI(rc);
	if (done.failed + done.dead > 0)
		return EXIT_FAILED;
	return done.waiting > 0 && done.handled + done.aside == 0 && !cli->dry_run ? EXIT_NOTHING : EXIT_DONE;
}

static int
stay(struct round *r)
{
	int code = EXIT_DONE;

	stop_heed(0);
	while (!stop_asked(NULL)) {
		code = once(r);
		r->rounds++;
		cli_seen(r->cli);
		if (!cli_flush(r->cli))
			return EXIT_FAILED;
		if (code != EXIT_DONE && code != EXIT_NOTHING && code != EXIT_FAILED)
			return code; /* refused, or the room is gone: staying does not help */
	}
	return EXIT_DONE;
}

int
cmd_patrol(struct cli *cli, const struct patrol_options *o)
{
	const char *rule = mr_config_get(cli->room, "Session-Handlers");
	struct round r = { .cli = cli, .watch = o->watch };

	if (cli->argc > 0 && strcmp(cli->argv[0], "log") == 0) {
		cli->subword = "log";
		r = (struct round){ .cli = cli, .log = true };
		budget_begin(cli);
		TRY_CLI(mr_patrol_log(cli->room, cli->self.agent, (size_t)o->limit, tell, &r, &cli->err));
		budget_end(cli, "line", "mailroom patrol log --json");
		if (!cli->json && cli->out.len == 0)
			buf_adds(&cli->out, "no patrol has done anything here\n");
		return EXIT_DONE;
	}
	if (cli->argc > 0)
		return cli_usage(cli, "there is no command 'patrol %s'; there is 'patrol log'", cli->argv[0]);
	if (!read_settings(&r))
		return EXIT_USAGE;
	/* A person types it. An agent is let to do so by the user's configuration only: setup allows it to run
	 * mailroom, and a handler would let it run anything. */
	if (o->handler[0] && !(rule && ascii_caseeq(rule, "yes")))
		TRY_CLI(env_not_in_session(cli, "patrol --handler", &cli->err));
	return r.watch ? stay(&r) : once(&r);
}
