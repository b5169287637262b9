/* SPDX-License-Identifier: MIT */
/* size.h - mailboxes that grow: one that is sent to and holds n messages, one that is looked into, with n read and 10
 * unread. sizes.c measures them, size_files.c and size_tables.c have them. */
#ifndef SIZE_H
#define SIZE_H

#include "rival.h"

#define UNREAD 10

struct grower {
	const char *name, *how;         /* COMMAND or OPEN */
	const char *look_what;          /* what a look is; NULL: none is measured */
	long most;                      /* largest size that it is measured at */
	bool (*start)(struct bench *b); /* false: not here */
	void (*grow)(struct bench *b, long from, long to);
	double (*send)(struct bench *b); /* NULL: none is measured */
	double (*look)(struct bench *b);
	void (*stop)(void); /* may be NULL */
};

extern const struct grower mailroom_grows, library_grows, mailroom_unread_grows, mdeliver_grows, shell_grows,
    teams_grows, sqlite_grows, sqlite_command_grows;

#endif
