/* SPDX-License-Identifier: MIT */
/* cmd_carry.c - mailroom carry: the mail of the links, once, or until it is told to stop. */
#include "base/format.h"
#include "cli/cli.h"
#include "helptext.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#define POLL_FIRST_MS 100
#define POLL_MAX_MS 2000

static volatile sig_atomic_t stop_asked;

static void
ask_stop(int signal)
{
	(void)signal;
	stop_asked = 1;
}

struct round { /* all the links that are asked for, once */
	struct cli *cli;
	struct mr_names links;
	bool watch;
	size_t moved;             /* in this round */
	struct mr_names said;     /* troubles of the round before: said once, not every two seconds */
	struct mr_names said_now; /* ... of this one */
	int code;
};

/* ---- Troubles ---- */

static void
say_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	struct round *r = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	format_addf(&text, "link '%s': %s%s%s", link, err->message, err->hint[0] ? "; " : "", err->hint);
	(void)names_add(&r->said_now, buf_str(&text));
	if (!names_has(&r->said, buf_z(&text)))
		cli_warn(r->cli, "%s", buf_z(&text));
}

static void
forget_said(struct round *r)
{
	mr_names_done(&r->said);
	r->said = r->said_now;
	r->said_now = (struct mr_names){ 0 };
}

/* ---- One round ---- */

static bool
note_link(void *ctx, const struct mr_link *link)
{
	return names_add(ctx, str_of(link->name));
}

/* The links as they are now: one may be made while we watch. */
static enum mr_rc
find_links(struct round *r, struct mr_error *err)
{
	struct cli *cli = r->cli;

	mr_names_done(&r->links);
	for (int i = 0; i < cli->argc; i++)
		if (!names_add(&r->links, str_of(cli->argv[i])))
			return mr_nomem(err);
	return cli->argc > 0 ? MR_OK : mr_link_each(cli->room, note_link, &r->links, err);
}

static void
report_json(struct cli *cli, const char *link, const struct mr_carried *done)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "link", link);
	json_key_int(&j, "out", (int64_t)done->out);
	json_key_int(&j, "in", (int64_t)done->in);
	json_key_int(&j, "waiting", (int64_t)done->waiting);
	json_key_int(&j, "failed", (int64_t)done->failed);
	json_key_int(&j, "vanished", (int64_t)done->vanished);
	out_json_line(cli, &j);
}

static void
report(struct round *r, const char *link, const struct mr_carried *done)
{
	struct buf *out = &r->cli->out;
	size_t moved = done->out + done->in + done->failed + done->vanished;

	r->moved += moved;
	if (r->watch && moved == 0)
		return;
	if (r->cli->json) {
		report_json(r->cli, link, done);
		return;
	}
	fence_name(out, link);
	buf_addf(out, ": %zu out, %zu in", done->out, done->in);
	if (done->waiting > 0)
		buf_addf(out, ", %zu waiting", done->waiting);
	if (done->failed > 0)
		buf_addf(out, ", %zu failed", done->failed);
	if (done->vanished > 0)
		buf_addf(out, ", %zu vanished unread", done->vanished);
	buf_addc(out, '\n');
}

/* False: the link did not work, and that was said. */
static bool
carry_one(struct round *r, const char *link, unsigned ways, struct mr_carried *ret)
{
	struct mr_carried done = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_carry(r->cli->room, link, ways, say_trouble, r, &done, &err);

	ret->out += done.out;
	ret->in += done.in;
	ret->waiting = done.waiting;
	ret->failed += done.failed;
	ret->vanished += done.vanished;
	if (rc == MR_OK)
		return true;
	if (r->watch)
		say_trouble(r, link, &err);
	else
		r->code = cli_fail(r->cli, &err);
	return false;
}

/* Everything comes in first: mail from one link may go on by another. */
static bool
carry_all(struct round *r)
{
	struct mr_error err = { 0 };
	size_t n;

	r->moved = 0;
	if (find_links(r, &err) != MR_OK) {
		r->code = cli_fail(r->cli, &err);
		return false;
	}
	n = r->links.n;
	mr_auto(free_ptr) struct mr_carried *done = calloc(n + 1, sizeof(*done));

	if (!done) {
		(void)mr_nomem(&err);
		r->code = cli_fail(r->cli, &err);
		return false;
	}
	mr_auto(free_ptr) bool *works = malloc((n + 1) * sizeof(*works));

	if (!works) {
		(void)mr_nomem(&err);
		r->code = cli_fail(r->cli, &err);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		works[i] = n == 1 || carry_one(r, r->links.v[i], MR_CARRY_IN, &done[i]);
	for (size_t i = 0; i < n; i++) {
		works[i] = works[i] &&
			   carry_one(r, r->links.v[i], n > 1 ? MR_CARRY_OUT : MR_CARRY_IN | MR_CARRY_OUT, &done[i]);
		if (works[i] || done[i].out + done[i].in + done[i].failed + done[i].vanished > 0)
			report(r, r->links.v[i], &done[i]);
	}
	forget_said(r);
	return true;
}

/* ---- Staying ---- */

/* Soon after something moved, for that is when the next comes; at last every two seconds. */
static void
stay(struct round *r)
{
	int pause_ms = POLL_FIRST_MS;

	while (!stop_asked && carry_all(r) && cli_flush(r->cli)) {
		pause_ms = r->moved > 0 ? POLL_FIRST_MS : pause_ms * 2;
		if (pause_ms > POLL_MAX_MS)
			pause_ms = POLL_MAX_MS;
		if (!stop_asked)
			(void)poll(NULL, 0, pause_ms);
	}
}

int
cmd_carry(struct cli *cli)
{
	const struct carry_options *o = cli->opts;
	struct round r = { .cli = cli, .watch = o->watch };
	struct sigaction action = { .sa_handler = ask_stop };

	if (r.watch && o->once)
		return cli_usage(cli, "--once and --watch exclude each other");
	if (r.watch) {
		(void)sigaction(SIGTERM, &action, NULL);
		(void)sigaction(SIGINT, &action, NULL);
		stay(&r);
	} else if (carry_all(&r) && !cli->json && r.links.n == 0) {
		buf_adds(&cli->out, "there are no links; mailroom link NAME KIND:WHERE\n");
	}
	mr_names_done(&r.links);
	mr_names_done(&r.said);
	return r.code;
}
