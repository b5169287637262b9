/* SPDX-License-Identifier: MIT */
/*
 * data.c - where what comes with mailroom is. Only who needs a type that was shipped asks, so only then the folder of
 * the program is looked up.
 */
#include "base/error.h"
#include "office/office.h"
#include <limits.h>
#include <unistd.h>

#define BESIDE "@/"

/* The folder of this program, with a slash behind it; empty when it cannot be seen. */
static struct mr_str
program_folder(char path[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);

	while (len > 0 && path[len - 1] != '/')
		len--;
	return (struct mr_str){ path, len > 0 ? (size_t)len : 0 };
}

const char *
office_data_dirs(struct mr_room *room)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	char path[PATH_MAX];

	if (!room->data_dir || !strstr(room->data_dir, BESIDE))
		return room->data_dir;
	struct mr_str folder = program_folder(path);

	for (const char *at = room->data_dir; *at;) {
		size_t len = strcspn(at, ":");
		struct mr_str part = { at, len };
		bool beside = str_starts(part, BESIDE);

		if (!beside || folder.len > 0) {
			if (list.len > 0)
				buf_addc(&list, ':');
			if (beside) {
				buf_add(&list, folder);
				part.ptr += strlen(BESIDE);
				part.len -= strlen(BESIDE);
			}
			buf_add(&list, part);
		}
		at += len;
		at += *at == ':';
	}
	char *whole = buf_take(&list);

	if (whole) { /* out of memory: as if nothing had been shipped beside it */
		free(room->data_dir);
		room->data_dir = whole;
	}
	return room->data_dir;
}
