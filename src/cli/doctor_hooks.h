/* SPDX-License-Identifier: MIT */
/* doctor_hooks.h - agents of harness sessions that nobody tells of their mail. */
#ifndef CLI_DOCTOR_HOOKS_H
#define CLI_DOCTOR_HOOKS_H

#include "cli/cli.h"

/* A note for each harness and worktree that an agent lives in and whose settings have no hook of mailroom. */
enum mr_rc doctor_hooks(struct cli *cli, mr_finding_fn *fn, void *ctx, struct mr_error *err);

#endif
