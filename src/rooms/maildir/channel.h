/* SPDX-License-Identifier: MIT */
/*
 * channel.h - what the files of channels share.
 *
 *	channels/<name>/posts/<number>   twelve digits, so that ls sorts; the first is 000000000001
 *	channels/<name>/.ends            "<first> <last>\n": a guess that is checked before it is used, and the lock
 *	channels/<name>/.floor           the last number, once its post was removed too
 *
 * Why numbers are never skipped and never used twice:
 *
 * - A post takes last + 1 by link(2) and goes one up when another was faster. Nobody takes a number back, so there
 *   are no holes, and whoever sees number n can see all before it that are still kept.
 * - Posts are removed from the low end only, one after the other, by retention. A poster that had found the end,
 *   was stopped, and woke up after all that it had seen was removed would take a number for a second time. So
 *   posters share a lock of .ends, and retention has it alone: posters never wait for each other, and one that
 *   is stopped delays retention only.
 * - If the newest post goes too, its number is first written to .floor, durably.
 * - A purged post leaves an empty file: its number stays taken.
 *
 * A reader shows nothing whose number a power cut could take away again (it syncs the folder once for all that it
 * found), because the next post would get that number, and the reader's cursor would pass it over.
 */
#ifndef ROOMS_MAILDIR_CHANNEL_H
#define ROOMS_MAILDIR_CHANNEL_H

#include "rooms/maildir/maildir.h"

#define CHANNEL_ENDS ".ends"
#define CHANNEL_FLOOR ".floor"
#define POST_NAME_LEN 24

struct channel { /* an open channel; by value, finish with channel_done */
	struct maildir *md;
	const char *name; /* borrowed */
	int fd;           /* channels/<name> */
	int posts_fd;
	int lock_fd; /* .ends, or -1: not locked */
};
#define CHANNEL_INIT ((struct channel){ .fd = -1, .posts_fd = -1, .lock_fd = -1 })

enum channel_lock { CHANNEL_UNLOCKED, CHANNEL_SHARED, CHANNEL_ALONE };
/* MR_NOTFOUND: no such channel. MR_BUSY: another has the lock and did not let go within ten seconds. */
enum mr_rc channel_open(
    struct channel *c, struct maildir *md, const char *name, enum channel_lock lock, struct mr_error *err);
void channel_done(struct channel *c);
enum mr_rc channel_name_check(const char *name, struct mr_error *err);

void post_name(uint64_t number, char ret[POST_NAME_LEN]);
bool post_exists(const struct channel *c, uint64_t number);

struct post_list {
	uint64_t *v;
	size_t n, cap;
	bool failed;
};
/* All numbers from `from` on, in order; reads the whole folder. */
enum mr_rc post_list_read(const struct channel *c, uint64_t from, struct post_list *ret, struct mr_error *err);
void post_list_done(struct post_list *list);

struct post_ends {
	uint64_t first, last;
}; /* 0: not known */
struct post_ends post_ends_guess(const struct channel *c);
void post_ends_note(const struct channel *c, const struct post_ends *known); /* best effort; 0: as it was */
/* Highest number that was ever taken. Under a lock it stays true of all that is removed. */
enum mr_rc post_last(const struct channel *c, uint64_t *ret, struct mr_error *err);

#endif
