/* SPDX-License-Identifier: MIT */
/* printout.h - what inbox, sent, search, thread and wait share: run a scan, print what it finds. The budget that they
 * keep is in cli.h. */
#ifndef CLI_PRINTOUT_H
#define CLI_PRINTOUT_H

#include "cli.h"
#include "message/query.h"

struct printout {
	struct cli *cli;
	bool conversation;         /* whole messages, scanned newest first as text; printout_turn puts them in order */
	struct mr_names seen;      /* ids collected, or printed, when one message may turn up twice */
	bool each_once;            /* a thread: the same mail may be in the inbox and in .Sent */
	bool stream;               /* hand every line to stdout at once */
	const struct query *query; /* a search: the text around the first hit is shown; or NULL */
	bool brief;                /* of a conversation: lines only, from now on */
	size_t *starts;            /* of its messages in cli->out */
	size_t starts_n;
	size_t n;       /* printed or left out by the budget */
	size_t hidden;  /* control messages */
	size_t total;   /* how many there are, where names tell it; else 0 */
	size_t trouble; /* messages that could not be read */
};

/* Runs the scan in self's mailbox and prints. The error is in cli->err. */
enum mr_rc printout_run(struct printout *l, struct mr_scan *scan);
/* The work of queues that self holds, which is in no folder of its own. */
enum mr_rc printout_held(struct printout *l, const struct mr_filter *filter);
void printout_done(struct printout *l);
/* For mr_scan: adds the id to `seen`, but for control messages. */
bool printout_collect(void *ctx, const struct mr_message *msg);
/* For mr_scan: counts; ctx is a size_t. */
bool printout_count(void *ctx, const struct mr_message *msg);
/* Turns a conversation that was printed as text: the oldest first. */
void printout_turn(struct printout *l);
/* A control message, which waits for a patrol and is not shown as text. One that no program can use is told on stderr
 * and shown. */
bool printout_hides(struct cli *cli, const char *owner, const struct mr_message *msg);
/* Tells on stderr of a message that cannot be read; for mr_scan's trouble. ctx is a struct printout. */
void printout_trouble(void *ctx, const char *path, const struct mr_error *err);

/* Takes a message and shows it whole, or in part as budget_message; what was not shown whole is given back. What
 * another took meanwhile is passed over. False: stop, the budget is used up, or *ret_exit says what failed. */
bool printout_take(
    struct cli *cli, struct mr_show *show, const char *id, int64_t cut_chars, size_t *ret_shown, int *ret_exit);

/* Warns of each unread message that cannot be read, then says the sentence with the agent's name behind it. Returns
 * EXIT_NOTHING. */
int printout_nothing(struct cli *cli, const char *sentence);

#endif
