/* SPDX-License-Identifier: MIT */
/* mailroom dnd: do not disturb. */
#include "base/clock.h"
#include "subword.h"
#include "helptext.h"

static int
report(struct cli *cli, bool on, int64_t since_ms)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "agent", cli->self.agent);
		json_key_bool(&j, "dnd", on);
		json_key_time(&j, "since", since_ms);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	fence_addf(&cli->out, "%s %s", cli->self.agent, on ? "is not to be disturbed" : "can be nudged");
	if (on && since_ms > 0) {
		char since[24];

		duration_text(clock_now_ms() - since_ms, since);
		fence_addf(&cli->out, ", since %s", since);
	}
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

static int
run_status(struct cli *cli)
{
	struct mr_error err = { 0 };
	int64_t since_ms = 0;
	bool on = false;

	if (mr_dnd_get(cli->room, cli->self.agent, &on, &since_ms, &err) != MR_OK)
		return cli_fail(cli, &err);
	return report(cli, on, since_ms);
}

static int
set(struct cli *cli, bool on)
{
	struct mr_error err = { 0 };

	if (mr_dnd_set(cli->room, cli->self.agent, on, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	return run_status(cli);
}

static int
run_on(struct cli *cli)
{
	return set(cli, true);
}

static int
run_off(struct cli *cli)
{
	return set(cli, false);
}

static const struct subword words[] = {
	{ "on", "", 0, 0, true, run_on },
	{ "off", "", 0, 0, true, run_off },
	{ "status", "", 0, 0, true, run_status },
	{ 0 },
};

int
cmd_dnd(struct cli *cli)
{
	return subword_run(cli, words);
}
