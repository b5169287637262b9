/* SPDX-License-Identifier: MIT */
/* listing.h - what inbox, sent, search, thread and wait share: run a scan, print what it finds. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli.h"

enum listing_form { LISTING_LINES, LISTING_WHOLE /* every message with its body */ };

struct listing {
	struct cli *cli;
	enum listing_form form;
	struct mr_names seen;  /* ids printed, when one message may turn up twice */
	bool each_once;        /* a thread: the same mail may be in the inbox and in .Sent */
	bool stream;           /* hand every line to stdout at once */
	size_t n;              /* printed or left out by the budget */
	size_t trouble;        /* messages that could not be read */
};

/* Runs the scan in self's mailbox and prints; false: the error was printed and *ret_exit set. */
bool listing_run(struct listing *l, struct mr_scan *scan, int *ret_exit);
void listing_done(struct listing *l);
/* Tells on stderr of a message that cannot be read; for mr_scan's trouble. ctx is a struct listing. */
void listing_trouble(void *ctx, const char *path, const struct mr_error *err);

#endif
