/* SPDX-License-Identifier: MIT */
/*
 * gt.h - `mailroom gt ...`, and the same command under the name `gt`: the messaging commands of Gas Town with their
 * flags, JSON keys and exit codes, over a mailroom. Each command is a struct cmd whose name is all its words ("gt mail
 * send"); table.c lists them. They are built on the same library calls as our own commands, so the promises are the
 * same: shown before marked, durable before said.
 *
 * A run function returns an exit code as ever. gt knows only 0 and 1, so main turns every other code into 1 in the
 * end, but for those that are made with GT_EXIT.
 */
#ifndef CLI_GT_GT_H
#define CLI_GT_GT_H

#include "cli/cli.h"

#define GT_EXIT(code) (100 + (code))

/* ---- table.c ---- */
extern const struct cmd *const gt_commands[]; /* NULL-terminated */
/* The command that the words behind argv[*at] ("gt") name; *at is its last word then. NULL after a usage error. */
const struct cmd *gt_command(struct cli *cli, int argc, char **argv, int *at);
/* --json is an option of some commands only. False after a usage error. */
bool gt_take_json(struct cli *cli);
int gt_exit(int code);

/* ---- who.c ---- */
/* The room of the town that the environment names, or NULL. */
const char *gt_town(struct cli *cli);
/* Who calls, where no variable says so: by .gt-agent, by the working folder. Fills cli->env. */
void gt_find_agent(struct cli *cli);
/* Nobody was found: a person without a harness is the overseer. */
bool gt_is_overseer(struct cli *cli);
/* Acts as the agent of an option or operand from now on; NULL changes nothing. False: said what is wrong. */
bool gt_act_as(struct cli *cli, const char *agent);
/* The rig of an address, "gastown" of gastown/polecats/nux; "" for an agent of the town. */
struct mr_str gt_rig_of(const char *agent);

/* ---- words.c: how gt spells what we have ---- */
const char *gt_spelled(struct cli *cli, const char *agent); /* "mayor/", "overseer"; anything else as it is */
/* What a person wrote for a recipient: hq-group-x is group:x, and so on. */
const char *gt_recipient(struct cli *cli, const char *given);
/* "hq-group-x" and "group:x" are x; kind is "group", "queue" or "channel". For gt-q-x the queue is looked for in the
 * caller's rig, then in the others. */
const char *gt_name(struct cli *cli, const char *kind, const char *given);
void gt_add_id(struct buf *out, const char *kind, const char *name); /* "hq-q-builds", "gt-q-builds" of rig/builds */
/* The value of --priority: 0 urgent ... 4 backlog, or one of our words; NULL: *ret stays. False after a usage error. */
bool gt_priority(struct cli *cli, const char *text, enum mr_priority *ret);
int gt_priority_number(enum mr_priority priority);

/* ---- print.c ---- */
/* One value of compact JSON, indented by two blanks as gt prints it, to stdout. */
void gt_json_out(struct cli *cli, const struct buf *compact);
/* `owner` is whose mailbox it is from; "" for a queue or channel. */
void gt_json_message(struct cli *cli, struct json *j, const struct mr_message *msg, const char *owner);
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
void gt_clean(struct buf *out, const char *text);
void gt_trouble(
    void *ctx, const char *path, const struct mr_error *err); /* for mr_scan; ctx starts with a struct cli * */

/* ---- mail_send.c ---- */
struct gt_letter {
	const char *to; /* one address */
	const char *subject, *body;
	size_t body_len;
	enum mr_priority priority;
	const char *type; /* of gt's, or NULL */
	const char *key;
	bool wisp, no_notify;
};
/* For commands that send something by themselves. The error is printed, EXIT_DONE: it is there. */
int gt_mail(struct cli *cli, const struct gt_letter *letter, char ret_id[MR_ID_LEN + 1]);
/* nudge.c: those who got it are told, as far as they can be. */
void gt_nudge_mail(struct cli *cli, const struct mr_receipt *receipt, enum mr_priority priority);
/* The text of a message: `text`, or standard input; both is a usage error. */
int gt_body(struct cli *cli, const char *text, bool from_stdin, struct buf *ret);

#endif
