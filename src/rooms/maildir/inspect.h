/* SPDX-License-Identifier: MIT */
/*
 * inspect.h - what the doctor's files share.
 *
 *	inspect.c          mailboxes, queues, holds
 *	inspect_spool.c    fan-outs under way
 *	inspect_tree.c     every file and folder: modes, owners, times, leftovers, what is not ours
 *	inspect_mail.c     one message file: empty, torn, from the future, flags nobody knows
 *	inspect_orphans.c  records of links that are gone; the attic
 */
#ifndef ROOMS_MAILDIR_INSPECT_H
#define ROOMS_MAILDIR_INSPECT_H

#include "base/findings.h"
#include "rooms/maildir/maildir.h"

struct inspection {
	struct mr_room *room;
	struct maildir *md;
	struct findings f;
	struct buf path; /* of what is being looked at, relative to the room */
	uid_t owner;     /* of the room */
	gid_t group;
	size_t modes, stray, mail; /* how many findings of that kind; zero is told as well */
	uint32_t keywords;         /* letters a-z that another program gave a meaning in the folder looked at */
};

void inspect_fine(struct inspection *in, const char *code, const char *what);
enum mr_rc inspect_spool(struct inspection *in, struct mr_error *err);
enum mr_rc inspect_walk(struct inspection *in, int parent_fd, const char *name, unsigned depth, struct mr_error *err);
void inspect_mode(struct inspection *in, int dir_fd, const char *name, const struct stat *st);
void inspect_mail(struct inspection *in, int dir_fd, const char *name, const struct stat *st);
uint32_t inspect_keywords(int box_fd);
enum mr_rc inspect_orphans(struct inspection *in, struct mr_error *err);
void inspect_attic(struct inspection *in);

#endif
