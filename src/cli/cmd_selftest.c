/* SPDX-License-Identifier: MIT */
/* cmd_selftest.c - mailroom's promises, tried on the user's own disk. */
#include "base/id.h"
#include "cli/selftest/selftest.h"
#include "helptext.h"

#define TIME_MS ((int64_t)60 * 1000)
#define TIME_MAX_MS ((int64_t)24 * 3600 * 1000)

int
cmd_selftest(struct cli *cli)
{
	const struct selftest_options *o = cli->opts;
	struct scratch scratch = SCRATCH_INIT;
	struct mr_error err = { 0 };
	int64_t time_ms = o->time_ms >= 0 ? o->time_ms : TIME_MS;
	bool crash = o->crash, keep = false;
	uint32_t random = 0;

	if (!crash && (o->time_ms >= 0 || o->seed >= 0))
		return cli_usage(cli, "--time and --seed are for --crash");
	if (time_ms <= 0 || time_ms > TIME_MAX_MS)
		return cli_usage(cli, "option '--time' is from a second to a day");
	random_bytes(&random, sizeof random);
	if (scratch_make(cli, o->dir, &scratch, &err) != MR_OK)
		return cli_fail(cli, &err);
	int code = crash ? crash_run(cli, &scratch, time_ms, o->seed >= 0 ? (uint64_t)o->seed : random, &keep)
			 : probe_run(cli, &scratch);

	if (keep)
		scratch_keep(&scratch);
	else
		scratch_remove(&scratch);
	return code;
}
