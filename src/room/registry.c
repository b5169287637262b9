/* SPDX-License-Identifier: MIT */
/* registry.c - the list of drivers; the only file that names them. The first is what a bare path means. */
#include "room/room.h"

extern const struct room_driver room_maildir;
extern const struct room_driver room_folder;
extern const struct room_driver room_teams;
extern const struct room_driver room_chipset;
extern const struct room_driver room_handoff;
extern const struct room_driver room_workspace;
#ifdef MR_FAULT_ENV
extern const struct room_driver room_mem;  /* tests/support/mem */
extern const struct room_driver room_mbox; /* tests/support/mbox.c */
#endif

static const struct room_driver *const drivers[] = {
	&room_maildir,
	&room_teams,
	&room_chipset,
	&room_handoff,
	&room_workspace,
	&room_folder,
#ifdef MR_FAULT_ENV
	&room_mem,
	&room_mbox,
#endif
	NULL,
};

const struct room_driver *const *
room_drivers(void)
{
	return drivers;
}

const struct room_driver *
room_driver_named(struct mr_str kind)
{
	for (const struct room_driver *const *d = drivers; *d; d++)
		if (str_eq(str_of((*d)->kind), kind))
			return *d;
	return NULL;
}
