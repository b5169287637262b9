/* SPDX-License-Identifier: MIT */
/* sys_fault.h - test builds only: a plan makes one of the calls that touch the disk fail, or kills the process there.
 */
#ifndef SUPPORT_SYS_FAULT_H
#define SUPPORT_SYS_FAULT_H

#include <stdbool.h>

enum sys_fault {
	SYS_FAULT_NONE,
	SYS_FAULT_ERRNO,       /* the call fails with plan.error; once, or from then on */
	SYS_FAULT_SHORT,       /* a write writes half */
	SYS_FAULT_KILL_BEFORE, /* SIGKILL to ourselves instead of the call */
	SYS_FAULT_KILL_AFTER,  /* ... right after the call */
};
struct sys_plan {
	enum sys_fault fault;
	unsigned long at; /* the call to hit: 1 is the first */
	bool for_good;    /* that call and all later ones */
	int error;
	unsigned delay_us; /* sleep that long before every disk-touching call (schedules) */
};
void sys_plan_set(const struct sys_plan *plan); /* NULL: none; also resets the counters */
unsigned long sys_calls(void);                  /* fault points passed since the plan was set */
unsigned long sys_syncs(void);                  /* fsyncs among them */
bool sys_plan_hit(void);                        /* did the fault happen */

#endif
