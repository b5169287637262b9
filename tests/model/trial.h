/* SPDX-License-Identifier: MIT */
/* trial.h - running an operation, and checking the states that a cut could leave. */
#ifndef TESTS_MODEL_TRIAL_H
#define TESTS_MODEL_TRIAL_H

#include "model.h"
#include "../crash/crash.h"

struct trial { /* one operation over one set-up, with what is known of it */
	const struct scenario *scenario;
	unsigned flavours;
	unsigned want;
	struct world world;
	struct fs fs;
	struct states states;
	char record[96], log[96];
	int *at; /* shared with the child that checks: the state it looks at */
	unsigned violations;
	bool quiet;
};
/* `t` says what to do: scenario, flavours, want, quiet. Runs the operation, told to be wrong in that way (NULL: right).
 */
void trial_begin(struct trial *t, const char *broken);
void check_in_children(struct trial *t);
void trial_end(struct trial *t);
bool long_form(void);

/* ---- Over several set-ups ---- */

struct sums {
	unsigned calls, set_ups, different, violations;
	long drawn, allowed; /* -1: too many to count */
};
struct sums run_set_ups(const struct scenario *s, unsigned flavours, const char *how, const char *sync);
void print_sums(const char *name, const struct sums *sum);

#endif
