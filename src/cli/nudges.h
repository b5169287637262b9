/* SPDX-License-Identifier: MIT */
/* nudges.h - showing nudges, and nudging those who get mail. */
#ifndef CLI_NUDGES_H
#define CLI_NUDGES_H

#include "cli/cli.h"

/* A line of text, or of JSON, for each; NULL has none. Says how many were shown: those may be removed, after the
 * flush. */
size_t nudges_print(struct cli *cli, struct mr_nudges *nudges);
bool nudges_print_one(struct cli *cli, const struct mr_nudge *nudge); /* after budget_begin; false: it was not shown */
/* Shows those of self and leaves them where they are. */
void nudges_look(struct cli *cli);
/* After a send: a nudge for each agent that got it, when --notify or the room asks for it. */
void nudges_of_mail(struct cli *cli, const struct mr_draft *draft, const struct mr_receipt *receipt);
/* "bob is busy: the nudge is queued" and so on, as one line. */
void nudges_say_way(struct buf *out, const char *agent, const struct mr_nudged *done);
const char *nudges_way_word(enum mr_nudge_way way);

#endif
