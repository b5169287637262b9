/* SPDX-License-Identifier: MIT */
/*
 * work.h - work: claims on mail and on queues.
 *
 *	claim.c          recv, done, release, fail, extend: which claim is meant, and how it ends
 *	queue.c          work queues: their settings, who may claim, deleting them
 *	queue_work.c     the work of a queue: taking it, claims that are over, counting, listing, waiting
 *	current_task.c   the one message that an agent works on
 *
 * May call mail (sending, bounces, listing), address and rules.
 */
#ifndef OFFICE_WORK_H
#define OFFICE_WORK_H

#include "office/office.h"

#define LEASE_DEFAULT_MS ((int64_t)10 * 60 * 1000) /* of mail, and of a queue that says nothing else */

/* ---- queue.c, queue_work.c ---- */

/* May this agent claim? "*": all agents; else compares whole parts of the address, also in its short spelling. */
bool office_lets_claim(const char *claimers, const char *agent);
enum mr_rc office_check_claimer(const struct mr_queue *queue, const char *agent, struct mr_error *err); /* MR_REFUSED */
/* Ends the claims that are over: back to ready, or, after the last attempt, failed, after its sender was told. Best
 * effort. */
void office_queue_sweep(struct mr_room *room, const struct mr_queue *queue);
/* The same for the claims of one agent in all queues; returns how many are ready again. With dry_run: how many would be
 * if the agent were gone. */
size_t office_return_work(struct mr_room *room, const char *agent, bool dry_run);
/* ---- claim.c ---- */

enum mr_rc lease_check(int64_t lease_ms, struct mr_error *err); /* MR_REFUSED; 0 is the default */
/* A lease of this life. While its process lives, if one is known, the lease does not expire. */
struct claim_terms claim_terms_of(struct mr_room *room, const struct mr_self *self, int64_t lease_ms);
void claim_fill(const struct claim *claim, struct mr_claim *ret);
#endif
