/* SPDX-License-Identifier: MIT */
/*
 * over.c - removes old bookkeeping of the room that no command needs any more. retain.c calls it, with its pauses and
 * its checks of the clock, and it removes some of:
 *
 *	records/<kind>/<owner>    of room_overs: closed escalations, the ledger of work that was given out again, the
 *	                          fate of dead letters and of purged messages: 90 days, or a year, after their last
 *	                          change
 *	keys/<sender>             keys older than Keep-Keys of a sender that never sends again, and the folder
 *	agents/<address>          of a removed agent: its folders, when no mail of it is left and nothing happened
 *	                          there for 90 days
 *
 * Nothing open is among these: open escalations are stored elsewhere, and the key of an unfinished send has a second
 * link.
 */
#include "rooms/maildir/maildir.h"

#define LOOKS 1024 /* files of a folder that one look checks; each look begins at another file */

static struct path
records_path(const struct room_over *over)
{
	char escaped[NAME_LEN];

	name_escape(over->owner, escaped);
	return path_of("records/", over->kind, "/", escaped, NULL);
}

bool
over_places(struct maildir *md, struct mr_names *ret)
{
	mr_auto(mr_names_done) struct mr_names senders = { 0 };
	bool ok = names_in(md->root_fd, "keys", NULL, &senders, IGNORED) == MR_OK;

	for (unsigned i = 0; i < ROOM_OVERS; i++)
		ok &= names_add(ret, str_of(records_path(&room_overs[i]).z));
	for (size_t i = 0; i < senders.n; i++)
		ok &= names_add(ret, str_of(path_of("keys/", senders.v[i], NULL).z));
	return ok;
}

static size_t
clear_records(struct maildir *md, const char *path, int64_t keep_ms, size_t most, bool *ret_doubt)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	int64_t now_ms = clock_now_ms();
	unsigned char dice[2] = { 0 };
	size_t n = 0;

	if (names_in(md->root_fd, path, &fd, &names, IGNORED) != MR_OK)
		return 0;
	random_bytes(dice, sizeof dice);
	size_t first = names.n > LOOKS ? (size_t)(dice[0] << 8 | dice[1]) : 0;

	for (size_t i = 0; i < names.n && i < LOOKS && n < most && !*ret_doubt; i++) {
		const char *name = names.v[(first + i) % names.n];
		struct stat st;

		if (sys_stat(fd, name, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		*ret_doubt |= (int64_t)st.st_mtime * 1000 > now_ms + DAY_MS;
		if ((int64_t)st.st_mtime * 1000 < now_ms - keep_ms)
			n += sys_unlink(fd, name) == 0;
	}
	return n;
}

size_t
over_clear(struct mr_room *room, const char *place, size_t most, bool *ret_doubt)
{
	struct maildir *md = maildir_of(room);
	char sender[NAME_LEN];

	for (unsigned i = 0; i < ROOM_OVERS; i++)
		if (strcmp(place, records_path(&room_overs[i]).z) == 0)
			return clear_records(md, place, room_overs[i].keep_ms, most, ret_doubt);
	if (str_starts(str_of(place), "keys/") && name_unescape(place + strlen("keys/"), sender))
		key_expire(room, strcmp(sender, "_") == 0 ? "" : sender);
	if (str_starts(str_of(place), "agents/"))
		agents_retire(md, place + strlen("agents/"), clock_now_ms() - ROOM_OVER_MS);
	return 0;
}
