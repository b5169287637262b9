/* SPDX-License-Identifier: MIT */
/* cmd_patrol.c - mailroom patrol: mail that programs handle, once, or until it is told to stop; and what was done. */
#include "cli/view.h"
#include "helptext.h"

#include <signal.h>
#include <stdlib.h>

#define REST_MS 2000

static volatile sig_atomic_t stop_asked;

static void
ask_stop(int signal)
{
	(void)signal;
	stop_asked = 1;
}

static bool
is_stop_asked(void *ctx)
{
	(void)ctx;
	return stop_asked != 0;
}

struct round {
	struct cli *cli;
	bool watch, dry_run;
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

static void
step_text(struct cli *cli, const struct mr_patrol_step *step, struct buf *out)
{
	bool bad =
	    strcmp(step->what, "failed") == 0 || strcmp(step->what, "dead") == 0 || strcmp(step->what, "trouble") == 0;

	out_styled(cli, out, bad ? STYLE_RED : STYLE_BOLD, step->what);
	add_part(cli, out, " ", *step->id ? short_id(step->id) : "");
	add_part(cli, out, " ", step->type);
	add_part(cli, out, " from ", step->from);
	if (step->attempt > 1)
		buf_addf(out, ", attempt %u", step->attempt);
	add_part(cli, out, ": ", step->handler);
	add_part(cli, out, *step->handler ? " -> " : ": ", step->result);
	buf_addc(out, '\n');
}

/* Names, fields and what handlers say come from mail: inside the fence. */
static void
print_step(struct cli *cli, const struct mr_patrol_step *step, bool when)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (out_json(cli, kv_time("at", step->at_ms), kv_str("what", step->what), kv_opt("id", step->id),
		kv_opt("type", step->type), kv_opt("from", step->from), kv_opt("handler", step->handler),
		kv_opt("result", step->result), kv_int("attempt", step->attempt)))
		return;
	if (when) {
		text_when(&line, step->at_ms);
		buf_addc(&line, '\t');
	}
	step_text(cli, step, &line);
	(void)budget_add(cli, &line);
}

static void
tell(void *ctx, const struct mr_patrol_step *step)
{
	struct round *r = ctx;

	/* every two seconds, the same */
	if (r->watch &&
	    (strcmp(step->what, "waiting") == 0 ||
		((strcmp(step->what, "unhandled") == 0 || strcmp(step->what, "unproven") == 0) && r->rounds > 0)))
		return;
	print_step(r->cli, step, false);
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
add_setting(struct round *r, const char *option, const char *given)
{
	struct cli *cli = r->cli;
	const char *equals = strchr(given, '=');
	bool handler = strcmp(option, "handler") == 0;
	mr_auto(buf_done) struct buf value = BUF_INIT;

	if (!equals || equals == given)
		return cli_usage(cli, "option '--%s' is %s=%s, not '%s'", option, handler ? "TYPE" : "NAME",
			   handler ? "COMMAND" : "VALUE", given),
		       false;
	struct mr_str name = { given, (size_t)(equals - given) };

	if (handler) {
		buf_add(&value, name);
		buf_addc(&value, ' ');
		name = STR("Handler");
	}
	buf_adds(&value, equals + 1);
	struct mr_header *h = &r->settings[r->settings_n++];

	h->name = arena_dup(&cli->own, name);
	h->value = arena_dup(&cli->own, buf_str(&value));
	return h->name && h->value;
}

static bool
read_settings(struct round *r)
{
	const struct patrol_options *o = r->cli->opts;
	size_t sets = 0, handlers = 0;

	while (o->set[sets])
		sets++;
	while (o->handler[handlers])
		handlers++;
	r->settings = arena_alloc(&r->cli->own, (sets + handlers + 1) * sizeof(*r->settings));
	if (!r->settings)
		return false;
	for (size_t i = 0; i < sets; i++)
		if (!add_setting(r, "set", o->set[i]))
			return false;
	for (size_t i = 0; i < handlers; i++)
		if (!add_setting(r, "handler", o->handler[i]))
			return false;
	return true;
}

/* ---- Rounds ---- */

static int
once(struct round *r)
{
	struct mr_patrol_options options = {
		.settings = r->settings,
		.settings_n = r->settings_n,
		.dry_run = r->dry_run,
		.patient = r->watch,
		.rest_ms = r->watch ? REST_MS : 0,
		.render = render,
		.fn = tell,
		.stop = is_stop_asked,
		.ctx = r,
	};
	struct mr_patrolled done = { 0 };
	struct mr_error err = { 0 };

	budget_begin(r->cli);
	enum mr_rc rc = mr_patrol(r->cli->room, &r->cli->self, &options, &done, &err);

	budget_end(r->cli, "line", "mailroom patrol log --json");
	if (!r->watch && !r->dry_run && (rc == MR_OK || done.handled + done.failed > 0))
		summary(r->cli, &done);
	if (rc != MR_OK)
		return cli_fail(r->cli, &err);
	if (done.failed + done.dead > 0)
		return EXIT_FAILED;
	return done.waiting > 0 && done.handled + done.aside == 0 && !r->dry_run ? EXIT_NOTHING : EXIT_DONE;
}

static int
stay(struct round *r)
{
	struct sigaction action = { .sa_handler = ask_stop };
	int code = EXIT_DONE;

	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	while (!stop_asked) {
		code = once(r);
		r->rounds++;
		mr_self_seen(r->cli->room, &r->cli->self);
		if (!cli_flush(r->cli))
			return EXIT_FAILED;
		if (code != EXIT_DONE && code != EXIT_NOTHING && code != EXIT_FAILED)
			return code; /* refused, or the room is gone: staying does not help */
	}
	return EXIT_DONE;
}

/* ---- log ---- */

static void
print_entry(void *ctx, const struct mr_patrol_step *step)
{
	print_step(ctx, step, true);
}

static int
run_log(struct cli *cli)
{
	const struct patrol_options *o = cli->opts;
	struct mr_error err = { 0 };

	budget_begin(cli);
	if (mr_patrol_log(cli->room, cli->self.agent, (size_t)o->limit, print_entry, cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	budget_end(cli, "line", "mailroom patrol log --json");
	if (!cli->json && cli->out.len == 0)
		buf_adds(&cli->out, "no patrol has done anything here\n");
	return EXIT_DONE;
}

/* A person types it. An agent is let to do so by the user's configuration only: setup allows it to run mailroom, and a
 * handler would let it run anything. */
static enum mr_rc
may_give_handlers(struct cli *cli, struct mr_error *err)
{
	const char *rule = mr_config_get(cli->room, "Session-Handlers");

	if (rule && ascii_caseeq(rule, "yes"))
		return MR_OK;
	return env_not_in_session(cli, "patrol --handler", err);
}

int
cmd_patrol(struct cli *cli)
{
	const struct patrol_options *o = cli->opts;
	struct mr_error err = { 0 };
	struct round r = { .cli = cli, .watch = o->watch, .dry_run = cli->dry_run };

	if (cli->argc > 0 && strcmp(cli->argv[0], "log") == 0) {
		cli->subword = "log";
		return run_log(cli);
	}
	if (cli->argc > 0)
		return cli_usage(cli, "'patrol %s' is no command; there is 'patrol log'", cli->argv[0]);
	if (r.watch && (o->once || r.dry_run))
		return cli_usage(cli, "--watch excludes --once and --dry-run");
	if (!read_settings(&r))
		return EXIT_USAGE;
	if (o->handler[0] && may_give_handlers(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	return r.watch ? stay(&r) : once(&r);
}
