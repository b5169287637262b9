/* SPDX-License-Identifier: MIT */
/* retry.c - is a call that failed worth another attempt? */
#include "base/fault.h"
#include "base/sys.h"
#include <errno.h>

static _Thread_local const struct sys_relief *relief;

const struct sys_relief *
sys_relief_set(const struct sys_relief *next)
{
	const struct sys_relief *before = relief;

	relief = next;
	return before;
}

bool
point_again(enum point_kind kind)
{
	const struct sys_relief *use = relief;
	int error = errno;

	if (error == EINTR)
		return true;
	if ((error != ENOSPC && error != EDQUOT) || kind == POINT_SYNC || use == NULL)
		return false;
	relief = NULL; /* its own calls must not ask for it */
	bool freed = use->free_some(use->ctx);
	relief = use;
	errno = error;
	return freed;
}
