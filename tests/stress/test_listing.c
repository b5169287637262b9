/* SPDX-License-Identifier: MIT */
/*
 * test_listing.c - a listing misses nothing while other programs rename the files.
 *
 * One process does what a mail client does that marks mail: rename in cur/ with and without S. Another does what
 * mblaze's minc does: move from new/ to cur/. When all has moved it is put back, between two listings, because no
 * mail client moves mail that way.
 */
#include "room/room.h"
#include "stress/crowd.h"
#include <dirent.h>
#include <fcntl.h>

#define MESSAGES 2000u
#define LISTINGS 120u
#define WHOLE_EVERY 12u /* the others read names only; messages are looked up again one by one as they move */

struct shelf {
	struct crowd room;
	atomic_bool over;
	atomic_bool turn_back; /* the mover waits for the lister to stand still */
	atomic_bool standing;
	atomic_uint renames, moves, refused;
};

static int
open_folder(const struct shelf *s, const char *name)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/agents/bob/%s", s->room.path, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		crowd_die(path, NULL);
	return fd;
}

/* The names in a folder, read once; a mail client works from such a list, too. */
struct names {
	char (*v)[80];
	size_t n;
};

static struct names
names_of(int dir_fd)
{
	struct names names = { .v = calloc(MESSAGES, sizeof(*names.v)) };
	DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;

	while (names.v && dir && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.' && names.n < MESSAGES)
			(void)snprintf(names.v[names.n++], sizeof(*names.v), "%.79s", e->d_name);
	(void)closedir(dir);
	return names;
}

static void
flip_marks(void *ctx, unsigned number)
{
	struct shelf *s = ctx;
	int cur = open_folder(s, "cur");

	(void)number;
	while (!atomic_load(&s->over)) {
		struct names names = names_of(cur);

		for (size_t i = 0; i < names.n && !atomic_load(&s->over); i++) {
			char to[90];
			size_t len = strlen(names.v[i]);

			if (names.v[i][len - 1] == 'S')
				(void)snprintf(to, sizeof(to), "%.*s", (int)(len - 1), names.v[i]);
			else
				(void)snprintf(to, sizeof(to), "%sS", names.v[i]);
			if (renameat(cur, names.v[i], cur, to) == 0)
				atomic_fetch_add(&s->renames, 1);
		}
		free(names.v);
	}
}

static void
move_all(struct shelf *s, int from, int to, bool back)
{
	struct names names = names_of(from);

	for (size_t i = 0; i < names.n && !atomic_load(&s->over); i++) {
		char name[90];

		if (back && i % 2 == 0)
			continue;
		(void)snprintf(
		    name, sizeof(name), "%.*s%s", (int)strcspn(names.v[i], ":"), names.v[i], back ? "" : ":2,");
		if (renameat(from, names.v[i], to, name) == 0)
			atomic_fetch_add(&s->moves, 1);
		if (!back && i % 16 == 0)
			crowd_nap_us(200);
	}
	free(names.v);
}

static void
take_in(void *ctx, unsigned number)
{
	struct shelf *s = ctx;
	int new = open_folder(s, "new"), cur = open_folder(s, "cur");

	(void)number;
	while (!atomic_load(&s->over)) {
		move_all(s, new, cur, false);
		atomic_store(&s->turn_back, true);
		while (!atomic_load(&s->standing) && !atomic_load(&s->over))
			crowd_nap_us(50);
		move_all(s, cur, new, true);
		atomic_store(&s->turn_back, false);
		while (atomic_load(&s->standing) && !atomic_load(&s->over))
			crowd_nap_us(50);
	}
}

static void
stand_still_if_asked(struct shelf *s)
{
	if (!atomic_load(&s->turn_back))
		return;
	atomic_store(&s->standing, true);
	while (atomic_load(&s->turn_back))
		crowd_nap_us(50);
	atomic_store(&s->standing, false);
}

/* Without the durable way of sending: 2,000 files that mailroom reads like its own. */
static void
fill(struct shelf *s)
{
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&s->room);
	struct mr_self alice = crowd_self(room, "alice");

	for (unsigned i = 0; i < MESSAGES; i++)
		MUST(crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .body = "text" }, NULL, &err));
	mr_room_close(room);
}

struct tally {
	size_t n;
	char last[MR_ID_LEN + 1];
	bool twice;
};

static bool
tally_one(void *ctx, const struct mr_message *msg)
{
	struct tally *t = ctx;

	t->twice |= strcmp(t->last, msg->id) >= 0;
	memcpy(t->last, msg->id, sizeof(t->last));
	t->n++;
	return true;
}

static void
a_listing_while_two_thousand_files_are_moved_has_them_all(void **state)
{
	(void)state;
	struct shelf *s = crowd_share(sizeof(*s));
	struct mr_error err = { 0 };
	unsigned listings = crowd_long() ? 10 * LISTINGS : CROWD_SLOW ? LISTINGS / 5 : LISTINGS;
	unsigned incomplete = 0, doubled = 0;

	s->room = crowd_new("none", TO("alice", "bob"));
	fill(s);
	pid_t movers[] = { crowd_spawn(flip_marks, s, 0), crowd_spawn(take_in, s, 0) };
	struct mr_room *room = crowd_open(&s->room);

	for (unsigned i = 0; i < listings; i++) {
		struct scan_request names = { .folders = MR_INBOX, .depth = SCAN_NAMES };
		struct mr_scan whole = { .filter = { .folders = MR_INBOX } };
		struct tally t = { .n = 0 };

		stand_still_if_asked(s);
		if (i % WHOLE_EVERY == 0)
			assert_int_equal(mr_scan(room, "bob", &whole, tally_one, &t, &err), MR_OK);
		else
			assert_int_equal(room->driver->scan(room, "bob", &names, tally_one, &t, &err), MR_OK);
		incomplete += t.n != MESSAGES;
		doubled += t.twice;
	}
	atomic_store(&s->over, true);
	assert_int_equal(crowd_wait(movers, 2), 0);
	mr_room_close(room);
	assert_true(s->renames > listings * 10 && s->moves > MESSAGES / 2); /* else nobody disturbed us */
	assert_int_equal(incomplete, 0);
	assert_int_equal(doubled, 0);
	crowd_done(&s->room);
	(void)munmap(s, sizeof(*s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_while_two_thousand_files_are_moved_has_them_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
