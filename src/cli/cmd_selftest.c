/* SPDX-License-Identifier: MIT */
/* cmd_selftest.c - mailroom's promises, tried on the user's own disk. */
#include "base/id.h"
#include "cli/selftest/selftest.h"

#define TIME_MS ((int64_t)60 * 1000)
#define TIME_MAX_MS ((int64_t)24 * 3600 * 1000)

static int
run_selftest(struct cli *cli)
{
	struct scratch scratch = SCRATCH_INIT;
	struct mr_error err = { 0 };
	int64_t time_ms = TIME_MS, seed = 0;
	bool crash = opt_flag(cli, "crash"), keep = false;
	uint32_t random = 0;

	if (!opt_duration(cli, "time", &time_ms) || !opt_number(cli, "seed", &seed))
		return EXIT_USAGE;
	if (!crash && (opt_text(cli, "time") || opt_text(cli, "seed")))
		return cli_usage(cli, "--time and --seed are for --crash");
	if (time_ms <= 0 || time_ms > TIME_MAX_MS)
		return cli_usage(cli, "option '--time' is from a second to a day");
	random_bytes(&random, sizeof random);
	if (!opt_text(cli, "seed"))
		seed = random;
	if (scratch_make(cli, opt_text(cli, "dir"), &scratch, &err) != MR_OK)
		return cli_fail(cli, &err);
	int code = crash ? crash_run(cli, &scratch, time_ms, (uint64_t)seed, &keep) : probe_run(cli, &scratch);

	if (keep)
		scratch_keep(&scratch);
	else
		scratch_remove(&scratch);
	return code;
}

static const struct opt opts[] = {
	OPT(0, "crash", NULL, "kill mailroom at random moments, and see whether a promise breaks"),
	OPT(0, "dir", "DIR", "on the disk of this folder (default: beside the room, else the working folder)"),
	OPT(0, "time", "TIME", "with --crash: how long (default 60s)"),
	OPT(0, "seed", "N", "with --crash: the same choices as the run that printed it; the moments differ"),
	OPT_END,
};
static const char *const about[] = {
	"Tries what mailroom needs of a disk and a kernel, one by one: writing and syncing, links, renames, locks, "
	"notices of changes. It says what is there, and what mailroom does where something is not. Nothing is done in "
	"your room: it works in a folder of its own, which it removes.",
	"With --crash it makes a room there, lets four processes send, send to several, send with keys, read and do "
	"queue work with this very program, and sends SIGKILL to three in four of these commands at a random moment. "
	"Then it compares what was promised with what is there: accepted mail once and whole, a send to several at all "
	"or at nobody, nothing consumed that was not shown, work done once. It prints the counts and the seed. If a "
	"promise was broken it says which, exits with 1, and keeps the folder.",
	"A killed process loses nothing that the kernel has: what a power cut may do is not tried, but told as far as "
	"the kind of file system is known.",
	NULL,
};
static const char *const examples[] = { "mailroom selftest", "mailroom selftest --dir /tmp --json", NULL };

const struct cmd cmd_selftest = {
	.name = "selftest",
	.synopsis = "[--dir DIR] [--crash [--time TIME] [--seed N]]",
	.summary = "try mailroom's promises on your own disk",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "",
	.run = run_selftest,
};
