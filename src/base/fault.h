/* SPDX-License-Identifier: MIT */
/*
 * fault.h - the fault points of sys.c. Private to src/base. Test builds (-Dfault_env=true) steer them with sys_plan_set
 * of tests/support/sys_fault.h; in every other build they are nothing.
 *
 *	if (point_before(POINT_OTHER) == POINT_FAIL)
 *		return -1;                      errno is the injected one
 *	return point_after(fsync(fd));          may not return: SYS_FAULT_KILL_AFTER
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

enum point_kind { POINT_OTHER, POINT_WRITE, POINT_SYNC };
enum point_verdict { POINT_GO, POINT_HALF /* only for POINT_WRITE */, POINT_FAIL };

#ifdef MR_FAULT_ENV
enum point_verdict point_before(enum point_kind kind);
long point_after(long result); /* passes the result and errno through */
#else
#define point_before(kind) ((void)(kind), POINT_GO)
#define point_after(result) (result)
#endif

/* Is a call that failed worth another attempt? After an EINTR, injected or not, and after sys_relief freed space. */
bool point_again(enum point_kind kind);

/* A call that fails or succeeds as a whole. */
#define ATTEMPT(kind, call) (point_before(kind) == POINT_FAIL ? -1L : point_after((long)(call)))
#define RETRYING(kind, call)                                                                                           \
	({                                                                                                             \
		long result_;                                                                                          \
		do                                                                                                     \
			result_ = ATTEMPT(kind, call);                                                                 \
		while (result_ < 0 && point_again(kind));                                                              \
		result_;                                                                                               \
	})

#endif
