/* SPDX-License-Identifier: MIT */
/* holding.h - what hold.c, sweep.c, token.c and the claims of a queue share. The essay is in hold.c. */
#ifndef ROOMS_MAILDIR_HOLDING_H
#define ROOMS_MAILDIR_HOLDING_H

#include "rooms/maildir/maildir.h"

/* ---- token.c: holds/<token> ---- */
/* The token of this handle's process holds; made, locked and visible when it returns. */
enum mr_rc token_for_process(struct maildir *md, const char *agent, const struct hold_terms *terms,
    char ret[MR_TOKEN_LEN + 1], struct mr_error *err);
/* queue "": the agent's own mail. */
enum mr_rc token_for_lease(struct maildir *md, const char *agent, const char *queue, const struct hold_terms *terms,
    int64_t lease_ms, char ret[MR_TOKEN_LEN + 1], struct mr_error *err);
/* What the file says of the holder: agent, life, queue, since_ms, kind. MR_NOTFOUND: there is none. */
enum mr_rc token_read(struct maildir *md, const char *token, struct hold *hold, struct mr_error *err);
/* Writes the new deadline of a lease, keeping what else is known of its holder. */
enum mr_rc token_extend(struct maildir *md, const struct hold *hold, int64_t lease_ms, struct mr_error *err);
/* Adds what a release says to the file. */
enum mr_rc token_note(struct maildir *md, const struct hold *hold, struct mr_error *err);
struct queue;
/* The claim is over: what holds/<token> says of it moves into the past of the queue (past.c), or with NULL of the
 * agents' own mail. Best effort. */
void past_keep(struct maildir *md, const struct queue *q, const struct file_name *n, enum settle how);
struct lease_time {
	bool shares_clock; /* the record is of this boot, and its clock can be read here */
	int64_t boot_now_ms, boot_deadline_ms;
	int64_t now_ms, deadline_ms; /* by the wall clock */
};
bool lease_time_is_up(const struct lease_time *t);
/* Is the hold over: its holder dead, its time up? In doubt it is not. */
bool token_is_over(struct maildir *md, const struct file_name *held);
void token_drop(struct maildir *md, const char *token); /* best effort: a file without mail means nothing */
/* The file of a process that is dead, locked so that it cannot come alive while it is removed. -1: its process lives,
 * it is a lease, another agent's, or it cannot be judged. agent NULL: anybody's. */
int token_of_dead(int holds_fd, const char *token, const char *agent);

/* ---- hold.c ---- */
int64_t hold_clamp_lease(int64_t lease_ms);
/* Whole seconds, rounded up: a name never promises less than was asked for. */
int64_t hold_deadline_s(int64_t lease_ms);
/* Ends a hold: renames held_fd/name (parts n) to where `how` says. MR_NOTFOUND: someone else ended it. */
enum mr_rc hold_end(
    struct mailbox *box, int held_fd, const char *name, struct file_name *n, enum settle how, struct mr_error *err);

/* ---- sweep.c ---- */
/* Gives the mail back that the agent's dead processes and old lives held; their files in holds/ stay. */
enum mr_rc sweep_mail(struct maildir *md, const char *agent, struct mr_error *err);

#endif
