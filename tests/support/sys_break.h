/* SPDX-License-Identifier: MIT */
/*
 * sys_break.h - test builds only (-Dfault_env=true): ways to be wrong on purpose, one at a time, so that the tests of
 * power cuts and races can prove that they would notice. In every other build none of them exists (base/fault.h).
 */
#ifndef SUPPORT_SYS_BREAK_H
#define SUPPORT_SYS_BREAK_H

#include <stdbool.h>

enum sys_break {
	BREAK_NOTHING,
	BREAK_NO_DIR_SYNC,       /* folders are not synced */
	BREAK_NO_FILE_SYNC,      /* files are not synced */
	BREAK_NAME_BEFORE_BYTES, /* a new file gets its name while it is empty */
	BREAK_MARK_BEFORE_SHOW,  /* mail is consumed before it was shown */
	BREAK_SOURCE_FIRST,      /* of a move, the folder that lost the name is synced first */
	BREAK_NO_UNNAMED,        /* not wrong, only poorer: as on a system without unnamed files */
	BREAK_NO_LOCKS,          /* every lock is given to every process that asks */
	BREAK_UNTOLD_REMOVAL,    /* the removal of an agent is not told to processes that send to it */
	BREAK_ORDERED,           /* not wrong, only bold: every file system counts as one that keeps the order */
	BREAK_NO_WRITE_OUT,      /* so it does, and bytes are not written out before their file gets its name */
};

/* "no-dir-sync", "no-file-sync", ... as above, in small letters; "ordered,no-dir-sync" is both. false: no such way.
 * NULL: be right again. */
bool sys_break_set(const char *name);
bool sys_break_is(enum sys_break which);
bool sys_break_skips_sync(int fd);
bool sys_break_is_ordered(void);
bool sys_break_renews(void);          /* MAILROOM_TEST_RENEW is set: folders are made anew however small they are */
bool sys_break_skips_all_syncs(void); /* a sync of everything would heal either of the two */
/* Links the staged file while it is empty, then writes its bytes: 0, or -1 and errno. */
int sys_break_link_empty(int fd, int dir_fd, const char *name);

#endif
