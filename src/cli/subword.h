/* SPDX-License-Identifier: MIT */
/* subword.h - commands that are several: "queue create", "channel read", "dead list". */
#ifndef CLI_SUBWORD_H
#define CLI_SUBWORD_H

#include "cli/cli.h"

struct subword { /* a NULL word ends a table */
	const char *word;
	const char *operands;        /* for usage errors: "NAME", "NAME [AGENT]" */
	int min_args, max_args;      /* behind the word; max -1: any number */
	bool self;                   /* who we are must be known */
	int (*run)(struct cli *cli); /* argv begins behind the word */
};
/* Finds the word in argv[0] and runs it. */
int subword_run(struct cli *cli, const struct subword *table);

#endif
