/* SPDX-License-Identifier: MIT */
/* mailroom lint: mail that breaks the room's rules for mail. */
#include "base/clock.h"
#include "cli/cli.h"
#include "helptext.h"

#define LINT_SINCE_MS ((int64_t)24 * 3600 * 1000)

struct listing {
	struct cli *cli;
	size_t n;
};

static void
report(void *ctx, const struct mr_lint *f)
{
	struct listing *l = ctx;
	struct buf *out = &l->cli->out;

	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(out);

		json_open(&j, '{');
		json_key_str(&j, "rule", f->rule);
		json_key_str(&j, "agent", f->agent);
		json_key_str(&j, "id", f->id);
		json_key_time(&j, "date", f->date_ms);
		json_key_str(&j, "text", f->text);
		out_json_line(l->cli, &j);
		return;
	}
	mr_auto(buf_done) struct buf agent = BUF_INIT;

	fence_name(&agent, f->agent);
	buf_addf(out, "%s  %s  ", short_id(f->id), f->rule);
	out_colored(l->cli, out, STYLE_BOLD, buf_str(&agent));
	fence_addf(out, ": %.300s\n", f->text);
}

int
cmd_lint(struct cli *cli)
{
	const struct lint_options *o = cli->opts;
	struct listing l = { .cli = cli };
	struct mr_error err = { 0 };
	int64_t since_ms = o->since_ms >= 0 ? o->since_ms : clock_now_ms() - LINT_SINCE_MS;
	size_t looked_at = 0;

	if (mr_lint_room(cli->room, o->policy, since_ms, report, &l, &looked_at, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json) {
		out_count(&cli->out, l.n, "finding");
		buf_adds(&cli->out, " in ");
		out_count(&cli->out, looked_at, "message");
		buf_addc(&cli->out, '\n');
	}
	return l.n > 0 ? EXIT_FAILED : EXIT_DONE;
}
