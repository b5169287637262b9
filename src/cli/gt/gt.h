/* SPDX-License-Identifier: MIT */
/*
 * gt.h - `mailroom gt ...`, and the same command under the name `gt`: the messaging commands of Gas Town with their
 * flags, JSON keys and exit codes, over a mailroom. They are built on the same library calls as our own commands, so
 * the promises are the same: shown before marked, durable before said.
 *
 *	gt.c          which command is meant (help/gt.txt lists them), and which agent calls
 *	words.c       how gt spells names, ids, priorities and JSON
 *	mail_look.c   inbox, thread, search, read, peek, check
 *	mail_send.c   send, reply, nudge, dnd
 *	mail_tidy.c   mark-read, mark-unread, archive, delete, clear, drain
 *	mail_names.c  groups, queues, channels, the directory
 *	work.c        handoff, hook, done, sling, deacon redispatch
 *	escalate.c    escalate and its subcommands
 *
 * A run function returns an exit code as ever. gt knows only 0 and 1, so main turns every other code into 1 in the
 * end, but for those that are made with GT_EXIT.
 */
#ifndef CLI_GT_GT_H
#define CLI_GT_GT_H

#include "cli/view.h"
#include "helptext.h"

#define GT_EXIT(code) (100 + (code))

/* ---- gt.c ---- */
/* The command that the words behind argv[*at] ("gt") name; *at is its last word then. NULL after a usage error. */
const struct cmd *gt_command(struct cli *cli, int argc, char **argv, int *at);
int gt_exit(int code);

/* The room of the town that the environment names, or NULL. */
const char *gt_town(struct cli *cli);
/* "rig/nux" of a polecat nux: an agent by its role, rig and name, each of which may be "". */
const char *gt_address(struct cli *cli, const char *role, const char *rig, const char *name);
/* Finds the calling agent where no variable names it: by .gt-agent, by the working folder. Fills cli->env. */
void gt_find_agent(struct cli *cli);
/* Nobody was found: a person without a harness is the overseer. */
bool gt_is_overseer(struct cli *cli);
/* Acts as the agent of an option or operand from now on; NULL changes nothing. The error is in cli->err. */
enum mr_rc gt_act_as(struct cli *cli, const char *agent);
/* The rig of an address, "gastown" of gastown/polecats/nux; "" for an agent of the town. */
struct mr_str gt_rig_of(const char *agent);

/* ---- words.c ---- */
const char *gt_verb(const struct cli *cli); /* the last word of the command's name */
const char *gt_spelled(const char *agent);  /* "mayor/", "overseer"; anything else as it is */
/* What a person wrote for a recipient: hq-group-x is group:x, and so on. */
const char *gt_recipient(struct cli *cli, const char *given);
/* "hq-group-x" and "group:x" are x; kind is "group", "queue" or "channel". For gt-q-x the queue is looked for in the
 * caller's rig, then in the others. */
const char *gt_name(struct cli *cli, const char *kind, const char *given);
/* 0 urgent ... 4 backlog, or one of our words; NULL changes nothing. False after a usage error. */
bool gt_priority(struct cli *cli, const char *given, enum mr_priority *ret);

/* With --json: an object, indented by two blanks as gt prints it, and true. Else false. */
#define gt_json(cli, ...) gt_json_cells(cli, CELLS(__VA_ARGS__))
bool gt_json_cells(struct cli *cli, const struct cell *cells);
/* Ends a list that is not LIST_LINES: prints its JSON in the same form, or, as text, `nothing` and a line break when it
 * has no rows. rc and cli->err are those of the call that filled it. Returns the exit code. */
int gt_list_end(struct listing *list, enum mr_rc rc, const char *nothing);
void gt_json_out(struct cli *cli, const struct buf *compact); /* one value of compact JSON in that form */

/* The message as a row of JSON; true as list_row. `owner` is whose mailbox it is from; "" for a queue or channel. */
bool gt_list_message(struct listing *list, const struct mr_message *msg, const char *owner);
/* Its body without the line ends behind it, which mail has and gt has not. */
struct mr_str gt_text_of(const struct mr_message *msg);
const char *gt_type(const struct mr_message *msg); /* task, escalation, scavenge, notification or reply */
/* A control message: not shown to an agent as text. */
bool gt_hides(struct cli *cli, const struct mr_message *msg, const char *owner);
bool gt_is_wisp(const struct mr_message *msg);
bool gt_is_pinned(const struct mr_message *msg);
/* For out_fenced: what gt shows of mail is never cut short, for it has no option to ask for more. */
void gt_text_message(struct cli *cli, struct buf *out, const struct mr_message *msg, const char *owner);
void gt_text_when(struct buf *out, int64_t ms); /* local, "2026-03-05 10:30" */

/* ---- mail_send.c ---- */
/* Sends what a command of gt sends by itself, and nudges its recipient. The error is printed; EXIT_DONE: it is sent. */
int gt_mail(struct cli *cli, struct mr_draft *draft, char ret_id[MR_ID_LEN + 1]);
/* The text of a message: the operand or option, else with --stdin standard input. Returns an exit code. */
int gt_body(struct cli *cli, const char *text, bool from_stdin, struct buf *ret);

#endif
