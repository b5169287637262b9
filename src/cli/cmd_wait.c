/* SPDX-License-Identifier: MIT */
/* cmd_wait.c - mailroom wait: until there is mail, an answer or a nudge. */
#include "cli/printout.h"
#include "helptext.h"

#include <poll.h>

/* Harnesses end a tool call after two minutes or ten; a person at a terminal may be patient. */
#define PATIENCE_TTY_MS (540 * 1000)
#define PATIENCE_MS (100 * 1000)
#define CARRY_EVERY_MS 1000
#define LISTED 64        /* lines at most, unless --budget says otherwise: that mail came is what matters here */
#define BUSY_PAUSE_MS 50 /* another process of the agent shows the nudges just now */

/* For a sender without a mailbox. */
static int
wait_for_answer(struct cli *cli, const char *id, const char *dir, int64_t timeout_ms)
{
	mr_auto(mr_message_done) struct mr_message answer = { 0 };
	enum mr_rc rc = mr_answer_wait(cli->room, id, dir, timeout_ms, &answer, &cli->err);

	if (rc == MR_EMPTY) {
		cli_warn(cli, "%s", cli->err.message);
		return EXIT_NOTHING;
	}
	TRY_CLI(rc);
	bool whole = budget_message(cli, &answer, 0);

	budget_end(cli, "answer", "mailroom wait --id ID --budget 0");
	if (!cli_flush(cli))
		return EXIT_FAILED;
	if (whole)
		TRY_CLI(mr_answer_taken(cli->room, id, dir, &cli->err));
	return EXIT_DONE;
}

/* Until there is mail, or nudges that are ours to show: *ret_nudges, else NULL. */
static enum mr_rc
wait_for_any(struct cli *cli, const struct mr_filter *filter, int64_t timeout_ms, struct mr_nudges **ret_nudges,
    struct mr_error *err)
{
	/* Mail from linked rooms ends the wait, so do not wait for the carrier; with --timeout 0 do. */
	cli_carry_first(cli, timeout_ms > 0 ? 0 : CARRY_PATIENCE_MS);
	int64_t end_ms = clock_boot_ms() + timeout_ms,
		slice_ms = mr_room_has(cli->room, MR_HAS_LINKS) ? CARRY_EVERY_MS : INT64_MAX;

	for (;;) {
		int64_t left_ms = end_ms - clock_boot_ms();
		bool nudged = false, last = left_ms <= slice_ms;
		enum mr_rc rc = mr_wait(cli->room, cli->self.agent, filter,
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
		if (mr_nudges_open(cli->room, cli->self.agent, true, ret_nudges, IGNORED) == MR_OK || !nudged)
			return MR_OK;
		if (clock_boot_ms() >= end_ms)
			return mr_fail(err, MR_EMPTY, "no mail for '%s' came in time", cli->self.agent);
		(void)poll(NULL, 0, BUSY_PAUSE_MS);
	}
}

/* ---- Showing: with --read the mail whole, as 'read' does ---- */

/* Nudges first, then mail; nudges are gone, and with --read the mail is read, once stdout has taken all of it. */
static int
show_all(struct cli *cli, struct mr_scan *scan, struct mr_nudges *nudges)
{
	const struct wait_options *o = cli->opts;
	mr_auto(printout_done) struct printout l = { .cli = cli };
	struct mr_show *show = NULL;
	size_t shown = nudges_print(cli, nudges), whole = 0, i = 0, n;
	int code = EXIT_DONE;

	if (o->read) {
		scan->trouble = printout_trouble;
		if (mr_scan(cli->room, cli->self.agent, scan, printout_collect, &l, &cli->err) != MR_OK ||
		    mr_show_open(cli->room, &cli->self, NULL, &show, &cli->err) != MR_OK)
			code = cli_fail(cli, &cli->err);
		n = l.seen.n;
		while (show && i < n && printout_take(cli, show, l.seen.v[i], 0, &whole, &code))
			i++;
		if (!cli->json && i < n)
			budget_left(cli, n - i - 1);
	} else {
		TRY_CLI(printout_run(&l, scan));
		n = l.n;
	}
	budget_end(cli, "message", o->read ? "mailroom read ID" : "mailroom inbox");
	if (!cli_flush(cli))
		code = EXIT_FAILED; /* closing gives it back unread */
	else if ((show && mr_show_finish(show, false, NULL, &cli->err) != MR_OK) ||
		 (shown > 0 && mr_nudges_shown(nudges, shown, &cli->err) != MR_OK))
		code = cli_fail(cli, &cli->err);
	mr_show_close(show);
	if (code != EXIT_DONE || n > 0 || (!filter_is_given(&o->filter) && !o->id))
		return code;
	cli_warn(cli, "a nudge ended the wait; the mail that was asked for has not come");
	return EXIT_NOTHING;
}

int
cmd_wait(struct cli *cli, const struct wait_options *o)
{
	struct mr_scan scan = { .order = MR_BY_PRIORITY, .filter = filter_of(cli, &o->filter) };
	char answered[MR_ID_LEN + 1];
	int64_t timeout_ms = o->timeout_ms >= 0 ? o->timeout_ms : cli->out_tty ? PATIENCE_TTY_MS : PATIENCE_MS;
	const char *dir = cli_folder(cli, o->reply_path);
	struct mr_nudges *nudges = NULL;

	budget_begin(cli);
	scan.screen = cli->budget_option < 0 ? LISTED : 0;
	if (o->id && (dir || mr_answer_expected(cli->room, o->id)))
		return wait_for_answer(cli, o->id, dir, timeout_ms);
	scan.filter.unread = true;
	scan.filter.life = cli->self.life;
	if (o->id) {
		/* Fails now if there is no such message, so that wait does not wait for an answer to nothing. */
		TRY_CLI(mr_question(cli->room, cli->self.agent, o->id, answered, &cli->err));
		scan.filter.reply_to = answered;
	}
	enum mr_rc rc = wait_for_any(cli, &scan.filter, timeout_ms, &nudges, &cli->err);

	if (rc == MR_EMPTY)
		return printout_nothing(cli, "no mail came for");
	TRY_CLI(rc);
	int code = show_all(cli, &scan, nudges);

	mr_nudges_close(nudges);
	return code;
}
