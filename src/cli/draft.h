/* SPDX-License-Identifier: MIT */
/* draft.h - what commands that send share: reading a draft from the options, reporting what became of it. */
#ifndef CLI_DRAFT_H
#define CLI_DRAFT_H

#include "cli.h"

struct draft_options;
/* Subject (NULL: made of the text; "" in a team: none), body, type, priority, headers, key, by. Returns EXIT_DONE, or
 * the exit code after saying what is wrong. */
int draft_read(
    struct cli *cli, const struct draft_options *o, const char *subject, struct mr_draft *draft, struct buf *body);
/* Prints the id (or the error), who will not read it soon, and runs Notify:. Returns the exit code. */
int draft_report(struct cli *cli, const struct mr_draft *draft, enum mr_rc rc, const struct mr_receipt *receipt,
    const struct mr_error *err);
/* Before it, after a send that goes on with a thread: adds to the warnings whom the message does not wake now, because
 * the thread has woken them too often. */
void draft_note_limited(struct cli *cli, struct mr_receipt *receipt);

/* ---- batch.c ---- */
/* send --batch: a message a line from stdin to its end, what became of it a line out. Returns the exit code. */
int batch_run(struct cli *cli);
/* batch_line.c, pure and fuzzed: one line to a draft, whose strings are in *own. MR_REFUSED says what is wrong. */
enum mr_rc batch_line(struct mr_str line, struct arena **own, struct mr_draft *ret, struct mr_error *err);

#endif
