/* SPDX-License-Identifier: MIT */
/*
 * fault.h - facilities of test builds (-Dfault_env=true) that no other build has: the fault points of sys.c, steered by
 * sys_plan_set of tests/support/sys_fault.h; the record of every call that changes the disk
 * (tests/support/sys_record.h); deliberate bugs (tests/support/sys_break.h).
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
#include "support/sys_break.h"
#include "support/sys_record.h"
enum point_verdict point_before(enum point_kind kind);
long point_after(long result); /* returns the result and keeps errno */
#else
#define point_before(kind) ((void)(kind), POINT_GO)
#define point_after(result) (result)
#define record_names(result, ...) (result)
#define record_file(result, ...) (result)
#define record_bytes(n, ...) (n)
#define sys_break_is(which) false
#define sys_break_skips_sync(fd) false
#define sys_break_is_ordered() false
#define sys_break_renews() false
#define sys_break_skips_all_syncs() false
#define sys_break_link_empty(fd, dir_fd, name) (-1)
#endif

/* Should a failed call be tried again? After an EINTR, injected or not, and after sys_relief freed space. */
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
