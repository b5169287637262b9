/* SPDX-License-Identifier: MIT */
/* carry_plan.h - what carry_plan.c and carry_one.c share. */
#ifndef OFFICE_CARRY_PLAN_H
#define OFFICE_CARRY_PLAN_H

#include "office/link/link.h"

struct plan { /* what the record says; finish with plan_done */
	struct record lines;
	const char *as, *reply_to, *thread, *ticket, *id, *done, *spoken;
	bool exists, is_done, failed;
};
void plan_done(struct plan *p);
/* The name of the record. */
void plan_name(const char *id, const char *recipient, char ret[64]);
/* None: MR_OK, exists is false. */
enum mr_rc plan_load(struct carrier *c, const char *name, struct plan *ret, struct mr_error *err);
/* Durable. */
enum mr_rc plan_save(
    struct carrier *c, const char *name, const char *recipient, const struct plan *p, struct mr_error *err);

#endif
