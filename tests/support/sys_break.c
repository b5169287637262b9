/* SPDX-License-Identifier: MIT */
/* sys_break.c - see sys_break.h. */
#include "support/sys_break.h"

#include "base/sys.h"
#include "support/sys_record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum sys_break broken;
static bool and_ordered;

bool
sys_break_set(const char *name)
{
	static const char *const names[] = {
		[BREAK_NO_DIR_SYNC] = "no-dir-sync",
		[BREAK_NO_FILE_SYNC] = "no-file-sync",
		[BREAK_NAME_BEFORE_BYTES] = "name-before-bytes",
		[BREAK_MARK_BEFORE_SHOW] = "mark-before-show",
		[BREAK_SOURCE_FIRST] = "source-first",
		[BREAK_NO_UNNAMED] = "no-unnamed",
		[BREAK_NO_LOCKS] = "no-locks",
		[BREAK_UNTOLD_REMOVAL] = "untold-removal",
		[BREAK_ORDERED] = "ordered",
		[BREAK_NO_WRITE_OUT] = "no-write-out",
	};

	broken = BREAK_NOTHING;
	and_ordered = name && strncmp(name, "ordered,", 8) == 0;
	if (name == NULL)
		return true;
	name += and_ordered ? 8 : 0;
	for (size_t i = BREAK_NO_DIR_SYNC; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			broken = (enum sys_break)i;
	return broken != BREAK_NOTHING;
}

bool
sys_break_is(enum sys_break which)
{
	return broken == which;
}

bool
sys_break_is_ordered(void)
{
	return and_ordered || broken == BREAK_ORDERED || broken == BREAK_NO_WRITE_OUT;
}

bool
sys_break_renews(void)
{
	return getenv("MAILROOM_TEST_RENEW") != NULL;
}

bool
sys_break_skips_all_syncs(void)
{
	return broken == BREAK_NO_DIR_SYNC || broken == BREAK_NO_FILE_SYNC;
}

bool
sys_break_skips_sync(int fd)
{
	struct stat st;

	if (!sys_break_skips_all_syncs())
		return false;
	return fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) != 0) == (broken == BREAK_NO_DIR_SYNC);
}

int
sys_break_link_empty(int fd, int dir_fd, const char *name)
{
	struct stat st;
	char *bytes = NULL;
	int result = -1;

	if (fstat(fd, &st) == 0)
		bytes = malloc((size_t)st.st_size + 1);
	if (bytes && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size &&
	    record_file(ftruncate(fd, 0), RECORD_TRUNCATE, fd, -1, NULL) == 0)
		result = sys_link_unnamed(fd, dir_fd, name);
	(void)usleep(10000); /* else the moment in which it is empty is too short for a test to meet */
	if (result == 0)
		result = sys_pwrite_all(fd, bytes, (size_t)st.st_size, 0) < 0 || sys_fsync(fd) < 0 ? -1 : 0;
	free(bytes);
	return result;
}
