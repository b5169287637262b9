/* SPDX-License-Identifier: MIT */
/* mailroom wait */
#include "printout.h"

#include "base/clock.h"
#include "helptext.h"
#include <poll.h>

/* Harnesses end a tool call after two minutes or ten; a person at a terminal may be patient. */
#define PATIENCE_TTY_MS (540 * 1000)
#define PATIENCE_MS (100 * 1000)

/* For a sender without a mailbox. */
static int
wait_for_answer(struct cli *cli, const char *id, const char *dir, int64_t timeout_ms)
{
	mr_auto(mr_message_done) struct mr_message answer = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_answer_wait(cli->room, id, dir, timeout_ms, &answer, &err);
	bool whole = true;

	if (rc == MR_EMPTY) {
		cli_warn(cli, "%s", err.message);
		return EXIT_NOTHING;
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		cli_json_message(cli, &answer, true);
	} else {
		whole = budget_message(cli, &answer, 0);
		budget_end(cli, "answer", "mailroom wait --id ID --budget 0");
	}
	if (!cli_flush(cli))
		return EXIT_FAILED;
	if (whole && mr_answer_taken(cli->room, id, dir, &err) != MR_OK)
		return cli_fail(cli, &err);
	return EXIT_DONE;
}

#define CARRY_EVERY_MS 1000
#define BUSY_PAUSE_MS 50 /* another process of the agent shows the nudges just now */

/* Until there is mail, or nudges that are ours to show: *ret_nudges, else NULL. */
static enum mr_rc
wait_for_any(struct cli *cli, const struct mr_filter *filter, int64_t timeout_ms, struct mr_nudges **ret_nudges,
    struct mr_error *err)
{
	/* What comes from linked rooms ends the wait, so nobody waits for the carrier; who only looks does. */
	cli_carry_first(cli, timeout_ms > 0 ? 0 : CARRY_PATIENCE_MS);
	int64_t end_ms = clock_boot_ms() + timeout_ms, slice_ms = cli_has_links(cli) ? CARRY_EVERY_MS : INT64_MAX;

	for (;;) {
		struct mr_error ignored = { 0 };
		int64_t left_ms = end_ms - clock_boot_ms();
		bool nudged = false, last = left_ms <= slice_ms;
		enum mr_rc rc = mr_wait_or_nudge(cli->room, cli->self.agent, filter,
		    left_ms <= 0 ? 0
		    : last       ? left_ms
				 : slice_ms,
		    &nudged, err);

		if (rc == MR_EMPTY && !last) {
			*err = (struct mr_error){ 0 };
			cli_carry_first(cli, 0); /* what it brings ends the next slice */
			continue;
		}
		if (rc != MR_OK)
			return rc;
		rc = mr_nudges_open(cli->room, cli->self.agent, true, ret_nudges, &ignored);
		if (rc == MR_OK || !nudged)
			return MR_OK;
		if (clock_boot_ms() >= end_ms)
			return mr_fail(err, MR_EMPTY, "no mail for '%s' came in time", cli->self.agent);
		(void)poll(NULL, 0, BUSY_PAUSE_MS);
	}
}

static bool
asks_for_some(struct cli *cli)
{
	const struct wait_options *o = cli->opts;

	return filter_is_given(&o->filter) || o->id;
}

/* Nudges first, then mail; nudges are gone once stdout has taken all of it. */
static int
show(struct cli *cli, struct mr_scan *scan, struct mr_nudges *nudges)
{
	struct printout l = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;
	size_t shown = nudges_print(cli, nudges);

	if (!printout_run(&l, scan, &code))
		return code;
	if (!cli->json)
		budget_end(cli, "message", "mailroom inbox");
	if (!cli_flush(cli))
		return EXIT_FAILED;
	if (shown > 0 && mr_nudges_shown(nudges, shown, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (l.n > 0 || !asks_for_some(cli))
		return EXIT_DONE;
	cli_warn(cli, "a nudge ended the wait; the mail that was asked for has not come");
	return EXIT_NOTHING;
}

/* ---- --read ---- */

struct found {
	struct printout base; /* first: trouble is reported through it */
	struct mr_names ids;
};

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct found *f = ctx;

	return printout_hides(&f->base, msg) || names_add(&f->ids, str_of(msg->id));
}

/* Taken by another meanwhile is none of ours. False: no more fits. */
static bool
read_one(struct cli *cli, struct mr_show *show, const char *id, int *ret_exit)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_show_take(show, id, &msg, &err);

	if (rc == MR_BUSY || rc == MR_NOTFOUND)
		return true;
	if (rc != MR_OK) {
		*ret_exit = cli_fail(cli, &err);
		return true;
	}
	if (cli->json)
		cli_json_message(cli, &msg, true);
	else if (!budget_message(cli, &msg, 0) && mr_show_back(show, msg.id, &err) != MR_OK)
		*ret_exit = cli_fail(cli, &err);
	return cli->json || !cli->budget.full;
}

/* Nudges first, then mail as 'read' shows it. */
static int
show_whole(struct cli *cli, struct mr_scan *scan, struct mr_nudges *nudges)
{
	struct found f = { .base = { .cli = cli } };
	struct mr_show *show = NULL;
	struct mr_error err = { 0 };
	int code = EXIT_DONE;
	size_t shown = nudges_print(cli, nudges), i = 0;

	scan->trouble = printout_trouble;
	if (mr_scan(cli->room, cli->self.agent, scan, note_id, &f, &err) != MR_OK ||
	    mr_show_open(cli->room, &cli->self, &show, &err) != MR_OK)
		code = cli_fail(cli, &err);
	while (show && i < f.ids.n && read_one(cli, show, f.ids.v[i++], &code))
		;
	if (!cli->json) {
		budget_left(cli, f.ids.n - i);
		budget_end(cli, "message", "mailroom read ID");
	}
	if (!cli_flush(cli))
		code = EXIT_FAILED; /* nobody saw it: closing gives it back */
	else if ((show && mr_show_finish(show, false, NULL, &err) != MR_OK) ||
		 (shown > 0 && mr_nudges_shown(nudges, shown, &err) != MR_OK))
		code = cli_fail(cli, &err);
	bool missed = code == EXIT_DONE && f.ids.n == 0 && asks_for_some(cli);

	if (missed)
		cli_warn(cli, "a nudge ended the wait; the mail that was asked for has not come");
	mr_show_close(show);
	mr_names_done(&f.ids);
	return missed ? EXIT_NOTHING : code;
}

int
cmd_wait(struct cli *cli)
{
	const struct wait_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter = filter_of(cli, &o->filter) };
	struct mr_error err = { 0 };
	char answered[MR_ID_LEN + 1];
	int64_t timeout_ms = o->timeout_ms >= 0 ? o->timeout_ms : cli->out_tty ? PATIENCE_TTY_MS : PATIENCE_MS;

	budget_begin(cli);
	const char *id = o->id, *dir = cli_folder(cli, o->reply_path);

	if (dir != NULL && id == NULL)
		return cli_usage(cli, "--reply-path goes with --id: the message whose answer is wanted");
	if (id != NULL && (dir != NULL || mr_answer_expected(cli->room, id)))
		return wait_for_answer(cli, id, dir, timeout_ms);
	scan.filter.unread = true;
	scan.filter.life = cli->self.life;
	if (id != NULL) {
		/* A full id is taken as it is: looked up here, so that nobody waits for an answer to nothing. */
		if (mr_question(cli->room, cli->self.agent, id, answered, &err) != MR_OK)
			return cli_fail(cli, &err);
		scan.filter.reply_to = answered;
	}
	struct mr_nudges *nudges = NULL;
	enum mr_rc rc = wait_for_any(cli, &scan.filter, timeout_ms, &nudges, &err);

	if (rc == MR_EMPTY) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		struct printout l = { .cli = cli };

		printout_unreadable(&l);
		text_name(cli, &name, cli->self.agent);
		cli_warn(cli, "no mail came for %s%s", buf_z(&name), l.trouble > 0 ? " that can be read" : "");
		return EXIT_NOTHING;
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	int code = o->read ? show_whole(cli, &scan, nudges) : show(cli, &scan, nudges);

	mr_nudges_close(nudges);
	return code;
}
