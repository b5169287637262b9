/* SPDX-License-Identifier: MIT */
/*
 * sys_fault.c - counting the calls that touch the disk, and making one of them go wrong.
 *
 * The plan is set by tests before the work begins and only read afterwards. The counters are atomic
 * because a library user may work on two rooms in two threads.
 */
#include "base/fault.h"
#include "support/sys_fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static struct sys_plan plan;
static bool plan_active;
static bool kill_after_this_call;
static bool hit;
static atomic_ulong calls, syncs;

void
sys_plan_set(const struct sys_plan *new_plan)
{
	plan = new_plan != NULL ? *new_plan : (struct sys_plan){ 0 };
	plan_active = plan.fault != SYS_FAULT_NONE || plan.delay_us != 0;
	kill_after_this_call = false;
	hit = false;
	atomic_store(&calls, 0);
	atomic_store(&syncs, 0);
}

unsigned long
sys_calls(void)
{
	return atomic_load(&calls);
}

unsigned long
sys_syncs(void)
{
	return atomic_load(&syncs);
}

bool
sys_plan_hit(void)
{
	return hit;
}

static void
die_here(void)
{
	(void)raise(SIGKILL);
	for (;;) /* SIGKILL may be delivered a moment later; nothing may run meanwhile */
		(void)pause();
}

static void
sleep_before_call(void)
{
	struct timespec left = { .tv_sec = plan.delay_us / 1000000, .tv_nsec = (long)(plan.delay_us % 1000000) * 1000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static bool
is_planned(unsigned long number)
{
	if (number == plan.at)
		return true;
	/* An EINTR that never ends would only prove that retrying loops for ever. */
	bool repeats = plan.for_good && !(plan.fault == SYS_FAULT_ERRNO && plan.error == EINTR);
	return repeats && number > plan.at;
}

static enum point_verdict
follow_plan(enum point_kind kind, unsigned long number)
{
	if (plan.delay_us != 0)
		sleep_before_call();
	if (!is_planned(number))
		return POINT_GO;
	switch (plan.fault) {
	case SYS_FAULT_NONE:
		return POINT_GO;
	case SYS_FAULT_ERRNO:
		hit = true;
		errno = plan.error;
		return POINT_FAIL;
	case SYS_FAULT_SHORT:
		if (kind != POINT_WRITE)
			return POINT_GO;
		hit = true;
		return POINT_HALF;
	case SYS_FAULT_KILL_BEFORE:
		die_here();
		return POINT_FAIL;
	case SYS_FAULT_KILL_AFTER:
		kill_after_this_call = true;
		return POINT_GO;
	}
	return POINT_GO;
}

enum point_verdict
point_before(enum point_kind kind)
{
	unsigned long number = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;

	if (kind == POINT_SYNC)
		atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
	return plan_active ? follow_plan(kind, number) : POINT_GO;
}

long
point_after(long result)
{
	if (kill_after_this_call)
		die_here();
	return result;
}
