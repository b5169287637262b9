/* SPDX-License-Identifier: MIT */
/* mailroom lint: mail that breaks the room's rules for mail. */
#include "helptext.h"

#define LINT_SINCE_MS ((int64_t)24 * 3600 * 1000)

static void
report(void *ctx, const struct mr_lint *f)
{
	struct listing *list = ctx;
	struct cli *cli = list->cli;
	mr_auto(buf_done) struct buf agent = BUF_INIT;

	if (list_row(list, kv_str("rule", f->rule), kv_str("agent", f->agent), kv_str("id", f->id),
		kv_time("date", f->date_ms), kv_str("text", f->text)))
		return;
	fence_name(&agent, f->agent);
	buf_addf(&cli->out, "%s  %s  ", short_id(f->id), f->rule);
	out_colored(cli, &cli->out, STYLE_BOLD, buf_str(&agent));
	fence_addf(&cli->out, ": %.300s\n", f->text);
}

int
cmd_lint(struct cli *cli, const struct lint_options *o)
{
	struct listing list = { .cli = cli };
	int64_t since_ms = o->since_ms >= 0 ? o->since_ms : clock_now_ms() - LINT_SINCE_MS;
	size_t looked_at = 0;

	TRY_CLI(mr_lint_room(cli->room, o->policy, since_ms, report, &list, &looked_at, &cli->err));
	if (!cli->json)
		buf_addf(&cli->out, "%s in %s\n", counted(list.n, "finding").text, counted(looked_at, "message").text);
	return list.n > 0 ? EXIT_FAILED : EXIT_DONE;
}
