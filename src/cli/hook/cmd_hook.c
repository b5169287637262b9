/* SPDX-License-Identifier: MIT */
/* cmd_hook.c - `mailroom hook HARNESS`: see hook.h. */
#include "cli/hook/hook.h"
#include "helptext.h"

#include <unistd.h>

#define TIME_LIMIT_S 5
#define END_LIMIT_S 1 /* when a session ends its hooks get little time */

static bool woke; /* exit code 2 is meant */

/* A harness takes 2 for "blocked": a mistake in its settings must not stop its user at every prompt. */
int
hook_exit(int code)
{
	return code == EXIT_USAGE && !woke ? EXIT_FAILED : code;
}

/* ---- What the library and the other parts of the command say, nobody hears but the log ---- */

static bool
take(void *ctx, const struct cli *cli, struct mr_str text)
{
	(void)ctx;
	(void)cli;
	return out_write(text.ptr, text.len) == 0;
}

static void
say(void *ctx, bool error, const char *message, const char *hint)
{
	(void)ctx;
	(void)hint;
	if (error)
		log_line(message);
}

static void
shown(void *ctx, const struct mr_message *msg, bool whole)
{
	(void)ctx;
	(void)msg;
	(void)whole;
}

static const struct cli_sink sink = { .take = take, .say = say, .shown = shown };

/* ---- Running ---- */

static bool
read_event(struct cli *cli, const struct harness *harness, struct buf *text, struct event *ret)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_error err = { 0 };
	const char *problem = NULL;

	if (input_read(text, &err) != MR_OK) {
		log_error(&err);
		return false;
	}
	if (!event_parse(harness, buf_str(text), &cli->own, ret, &problem)) {
		buf_addf(&why, "this is no event: %s", problem);
		log_line(buf_z(&why));
		return false;
	}
	return true;
}

static void
take_session(struct cli *cli, const struct harness *harness, const struct event *event)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (!event->session[0])
		return;
	buf_adds(&name, harness->name);
	buf_addc(&name, '-');
	buf_adds(&name, event->session);
	if (buf_ok(&name))
		cli->caller_session = arena_dup(&cli->own, buf_str(&name));
}

static int
refuse_harness(struct cli *cli)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;

	harness_names(&names);
	return cli_usage(cli, "'%.40s' is no harness that has hooks here: %s", cli->argv[0], buf_z(&names));
}

int
cmd_hook(struct cli *cli)
{
	const struct hook_options *o = cli->opts;
	const struct harness *harness = harness_named(cli->argv[0]);
	mr_auto(buf_done) struct buf text = BUF_INIT; /* a part of it is in the event */
	struct event event = { 0 };
	bool wait = o->wait;

	if (!harness)
		return refuse_harness(cli);
	if (wait && !harness->wakes)
		return cli_usage(cli, "--wait: a session of %s cannot be woken by its hooks", cli->argv[0]);
	log_begin(cli, harness->name);
	time_limit(TIME_LIMIT_S);
	cli->sink = &sink;
	if (!read_event(cli, harness, &text, &event) || event.moment == MOMENT_NONE ||
	    (event.subagent && !(event.moment == MOMENT_TOOL && harness->shows_results)))
		return EXIT_DONE;
	log_event(event.name);
	take_session(cli, harness, &event);
	if (event.moment == MOMENT_END)
		time_limit(END_LIMIT_S);
	if (wait) {
		int code = waiter_run(cli, &event);

		woke = code == EXIT_WAKE;
		return code;
	}
	moment_run(cli, harness, &event);
	return EXIT_DONE;
}
