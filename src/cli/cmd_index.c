/* SPDX-License-Identifier: MIT */
/* cmd_index.c - mailroom index: an index of the mail, made, kept up to date, removed. */
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "helptext.h"

#define REST_MS 2000
#define REST_SHARE 20 /* watching takes at most a twentieth of the time */

static bool
go_on(void *ctx, size_t added)
{
	struct cli *cli = ctx;

	if (!cli->json && isatty(2))
		progress_count(cli, added, "read");
	return !stop_asked(NULL);
}

static int
update(struct cli *cli, bool quiet_if_same)
{
	struct mr_indexed done = { 0 };
	enum mr_rc rc = mr_index_update(cli->room, false, go_on, cli, &done, &cli->err);

	if (rc == MR_BUSY) {
		cli_warn(cli, "another process is bringing the index up to date; this one waits");
		rc = mr_index_update(cli->room, true, go_on, cli, &done, &cli->err);
	}
	progress_clear(cli);
	TRY_CLI(rc);
	if (done.rebuilt)
		cli_warn(cli, "the old index was damaged or of another version: it was made again");
	if (quiet_if_same && done.added + done.removed == 0)
		return EXIT_DONE;
	if (out_json(cli, kv_size("messages", done.messages), kv_size("added", done.added),
		kv_size("removed", done.removed), kv_bool("rebuilt", done.rebuilt),
		kv_bool("stopped", stop_asked(NULL))))
		return EXIT_DONE;
	if (done.added + done.removed == 0)
		fence_addf(&cli->out, "the index is up to date\n");
	else
		fence_addf(&cli->out, "%zu messages in the index: %zu added, %zu removed\n", done.messages, done.added,
		    done.removed);
	return EXIT_DONE;
}

int
cmd_index(struct cli *cli, const struct index_options *o)
{
	bool first = true;

	if (o->drop) {
		TRY_CLI(mr_index_drop(cli->room, &cli->err));
		return out_answer(cli, CELLS(kv_bool("dropped", true)), "the index is removed\n");
	}
	stop_heed(SA_RESTART);
	do {
		int64_t began_ms = clock_boot_ms();
		int code = update(cli, o->watch && !first);

		first = false;
		if (code != EXIT_DONE || !cli_flush(cli) || !o->watch || stop_asked(NULL))
			return code;
		int64_t rest_ms = (clock_boot_ms() - began_ms) * REST_SHARE;

		(void)poll(NULL, 0, (int)(rest_ms < REST_MS ? REST_MS : rest_ms < 60000 ? rest_ms : 60000));
	} while (!stop_asked(NULL));
	return EXIT_DONE;
}
