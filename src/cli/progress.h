/* SPDX-License-Identifier: MIT */
/* progress.h - one line on a terminal that says how far a long run is. Nothing anywhere else. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli/cli.h"

struct progress {
	bool wanted; /* stderr is a terminal, and nobody asked for JSON */
	bool drawn;
	size_t columns;
	int64_t next_ms; /* on the clock that nobody sets: not drawn again earlier */
};
struct progress progress_begin(const struct cli *cli);
void progress_draw(struct progress *p, size_t done, size_t total, const char *what);
void progress_clear(struct progress *p); /* before anything else is printed, and at the end */

#endif
