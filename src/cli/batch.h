/* SPDX-License-Identifier: MIT */
/* batch.h - send --batch: a message a line in, what became of it a line out. */
#ifndef CLI_BATCH_H
#define CLI_BATCH_H

#include "cli/cli.h"

/* From stdin to its end. Returns the exit code. */
int batch_run(struct cli *cli);

/* ---- batch_line.c (pure, fuzzed) ---- */

/* One line to a draft, whose strings are in *own. MR_REFUSED says what is wrong with it. */
enum mr_rc batch_line(struct mr_str line, struct arena **own, struct mr_draft *ret, struct mr_error *err);

#endif
