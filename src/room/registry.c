/* SPDX-License-Identifier: MIT */
/* registry.c - the list of drivers; the only file that names them. The first is the kind of a bare path. */
#include "base/full.h"
#include "room/room.h"

extern const struct room_driver room_maildir;
extern const struct room_driver room_folder;
extern const struct room_driver room_teams;
extern const struct room_driver room_chipset;
extern const struct room_driver room_handoff;
extern const struct room_driver room_workspace;
extern const struct room_driver room_postgres FULL_ONLY;
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
	&room_postgres, /* last: NULL in the small command */
	NULL,
};

const struct room_driver *const *
room_drivers(void)
{
	return drivers;
}

bool
room_kind_needs_full(struct mr_str kind)
{
	return str_eq(kind, STR("postgres")) || str_eq(kind, STR("postgresql"));
}

const struct room_driver *
room_driver_named(struct mr_str kind)
{
	if (room_kind_needs_full(kind)) /* libpq's own addresses begin with either word */
		return &room_postgres;
	for (const struct room_driver *const *d = drivers; *d; d++)
		if (str_eq(str_of((*d)->kind), kind))
			return *d;
	return NULL;
}
