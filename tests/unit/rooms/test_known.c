/* SPDX-License-Identifier: MIT */
/*
 * Finding one of many messages: after a look at all of them it must cost what one file costs, not what the folder
 * costs, or marking ten thousand takes minutes. Measured against the look itself, in processor time. And what is
 * put in the place of a message that was found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "rooms/kit/kit.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MANY 800
#define FETCHES 400
#define START_MS INT64_C(1780000000000)

struct kind {
	const char *name;
	const char *folders[3]; /* of bob, below the root */
	void (*put)(const char *root, int i);
};

static void
write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "wx");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
put_chipset(const char *root, int i)
{
	char stamp[RFC3339_LEN + 1], path[300], text[300];

	time_rfc3339(START_MS + i * 1000, stamp);
	(void)snprintf(text, sizeof text, "{\"from\": \"lead\", \"timestamp\": \"%s\", \"body\": \"%d\"}", stamp, i);
	stamp[13] = stamp[16] = '-';
	(void)snprintf(path, sizeof path, "%s/mail/bob/%s-lead.json", root, stamp);
	write_file(path, text);
}

static void
put_handoff(const char *root, int i)
{
	char stamp[RFC3339_LEN + 1], path[300], text[300];

	time_rfc3339(START_MS + i * 1000, stamp);
	(void)snprintf(path, sizeof path, "%s/bob/inbox/%.4s%.2s%.2sT%.2s%.2s%.2sZ-%08x-hi.md", root, stamp, stamp + 5,
	    stamp + 8, stamp + 11, stamp + 14, stamp + 17, i);
	(void)snprintf(text, sizeof text,
	    "---\nfrom: lead\nmsg_id: %08x-0000-4000-8000-000000000000\nsubject: hi\n---\n%d\n", i, i);
	write_file(path, text);
}

static void
put_workspace(const char *root, int i)
{
	const struct timespec when[2] = { { .tv_sec = START_MS / 1000 + i }, { .tv_sec = START_MS / 1000 + i } };
	char path[300], text[900];

	(void)snprintf(path, sizeof path, "%s/bob/.mailbox/inbox/%032x", root, i);
	(void)snprintf(text, sizeof text,
	    "---\nREQUEST_ID: %032x\nMESSAGE_TYPE: NEW\nRECEIVER_INBOX_PATH: %s\nREPLY_INBOX_PATH: %s/x\n---\n\n%d\n",
	    i, path, root, i);
	write_file(path, text);
	assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static const struct kind kinds[] = {
	{ "chipset", { "mail", "mail/bob", NULL }, put_chipset },
	{ "handoff", { "bob", "bob/inbox", "bob/archive" }, put_handoff },
	{ "workspace", { "bob", "bob/.mailbox", "bob/.mailbox/inbox" }, put_workspace },
};

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static struct mr_room *
open_with(const struct kind *kind, int many, char root[64])
{
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };
	char path[300];

	(void)snprintf(root, 64, "/tmp/mailroom-known-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < 3 && kind->folders[i]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", root, kind->folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (int i = 0; i < many; i++)
		kind->put(root, i);
	(void)snprintf(path, sizeof path, "%s:%s", kind->name, root);
	assert_int_equal(room_open_spec(path, NULL, &room, &err), MR_OK);
	return room;
}

static int64_t
used_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct ids {
	char v[MANY][MR_ID_LEN + 1];
	size_t n;
};

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct ids *ids = ctx;

	memcpy(ids->v[ids->n++], msg->id, sizeof msg->id);
	return ids->n < MANY;
}

static void
assert_says(const struct mr_message *msg, int number)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%d", number);
	assert_int_equal(strncmp(msg->body, text, strlen(text)), 0);
}

static void
one_of_many_is_found_at_the_cost_of_one(void **state)
{
	const struct scan_request all = { .folders = MR_INBOX, .depth = SCAN_HEADERS };
	mr_auto(free_ptr) struct ids *ids = calloc(1, sizeof *ids);

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		struct mr_error err = { 0 };
		char root[64];
		struct mr_room *room = open_with(&kinds[k], MANY, root);
		int64_t start_us = used_us();

		ids->n = 0;
		assert_int_equal(room->driver->scan(room, "bob", &all, note_id, ids, &err), MR_OK);
		assert_int_equal(ids->n, MANY);
		int64_t look_us = used_us() - start_us;

		start_us = used_us();
		for (size_t i = 0; i < FETCHES; i++) {
			struct mr_message msg = { 0 };

			assert_int_equal(
			    room->driver->fetch(room, "bob", ids->v[i * 2], MR_INBOX, SCAN_BODIES, &msg, &err), MR_OK);
			assert_string_equal(msg.id, ids->v[i * 2]);
			assert_says(&msg, (int)i * 2);
			mr_message_done(&msg);
		}
		int64_t fetch_us = used_us() - start_us;

		if (fetch_us > 6 * look_us)
			fail_msg("%s: %d fetches cost %lld us, a look at %d messages %lld us", kinds[k].name, FETCHES,
			    (long long)fetch_us, MANY, (long long)look_us);
		mr_room_close(room);
		(void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
}

/* The next message of a conversation takes the name of the one before. */
static void
a_name_with_another_message_is_not_taken_for_it(void **state)
{
	const struct kind *kind = &kinds[2];
	const struct scan_request all = { .folders = MR_INBOX, .depth = SCAN_HEADERS };
	mr_auto(free_ptr) struct ids *ids = calloc(1, sizeof *ids);
	struct mr_error err = { 0 };
	struct mr_message msg = { 0 };
	char root[64], first[300], second[300];

	(void)state;
	struct mr_room *room = open_with(kind, 2, root);

	assert_int_equal(room->driver->scan(room, "bob", &all, note_id, ids, &err), MR_OK);
	(void)snprintf(first, sizeof first, "%s/bob/.mailbox/inbox/%032x", root, 0);
	(void)snprintf(second, sizeof second, "%s/bob/.mailbox/inbox/%032x", root, 1);
	assert_int_equal(rename(second, first), 0);
	assert_int_equal(room->driver->fetch(room, "bob", ids->v[0], 0, SCAN_BODIES, &msg, &err), MR_NOTFOUND);
	assert_int_equal(room->driver->fetch(room, "bob", ids->v[1], 0, SCAN_BODIES, &msg, &err), MR_OK);
	assert_says(&msg, 1);
	mr_message_done(&msg);
	mr_room_close(room);
	(void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void
items_are_found_by_their_ids(void **state)
{
	mr_auto(kit_items_done) struct kit_items items = { 0 };
	char id[MR_ID_LEN + 1];

	(void)state;
	assert_null(kit_with_id(&items, "00000000000000000000000000"));
	for (int i = 298; i >= 0; i -= 2) {
		(void)snprintf(id, sizeof id, "%026d", i);
		struct kit_item *item = kit_add(&items, "bob/inbox", id + 20, MR_INBOX);

		assert_non_null(item);
		memcpy(item->id, id, sizeof id);
	}
	kit_sort(&items);
	for (int i = -1; i <= 300; i++) {
		(void)snprintf(id, sizeof id, "%026d", i < 0 ? 999 : i);
		const struct kit_item *item = kit_with_id(&items, id);

		assert_int_equal(item != NULL, i >= 0 && i < 300 && i % 2 == 0);
		if (item) {
			assert_string_equal(item->name, id + 20);
			assert_int_equal(strncmp(item->path, "bob/inbox/", 10), 0);
		}
	}
}

/* What was seen in one mailbox is not looked for in another. */
static void
what_is_known_is_of_one_mailbox(void **state)
{
	const struct scan_request all = { .folders = MR_INBOX, .depth = SCAN_HEADERS };
	mr_auto(free_ptr) struct ids *ids = calloc(1, sizeof *ids);

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct mr_error err = { 0 };
		struct mr_message msg = { 0 };
		char root[64], path[300];
		struct mr_room *room = open_with(&kinds[k], 3, root);

		ids->n = 0;
		(void)snprintf(path, sizeof path, "%s/%salice", root, k == 0 ? "mail/" : "");
		assert_int_equal(mkdir(path, 0700), 0);
		assert_int_equal(room->driver->scan(room, "bob", &all, note_id, ids, &err), MR_OK);
		assert_int_equal(ids->n, 3);
		assert_int_equal(
		    room->driver->fetch(room, "alice", ids->v[0], MR_INBOX, SCAN_BODIES, &msg, &err), MR_NOTFOUND);
		mr_room_close(room);
		(void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
}

static bool
is_text(const void *text, int fd, const char *name)
{
	mr_auto(buf_done) struct buf there = BUF_INIT;

	return file_read(fd, name, 100, &there, IGNORED) == MR_OK && strcmp(buf_z(&there), text) == 0;
}

static void
an_exchange_gives_back_what_it_did_not_expect(void **state)
{
	char root[64], path[300];

	(void)state;
	for (int known = 0; known < 2; known++) {
		mr_auto(sys_close_fd) int fd = -1;
		bool done = !known;

		(void)snprintf(root, sizeof root, "/tmp/mailroom-known-XXXXXX");
		assert_non_null(mkdtemp(root));
		assert_int_equal(dir_open(AT_FDCWD, root, &fd, IGNORED), MR_OK);
		(void)snprintf(path, sizeof path, "%s/ours", root);
		write_file(path, "ours");
		assert_int_equal(kit_exchange(fd, "ours", "mail", is_text, "old", &done), -1); /* there is none */
		(void)snprintf(path, sizeof path, "%s/mail", root);
		write_file(path, known ? "old" : "another");
		assert_int_equal(kit_exchange(fd, "ours", "mail", is_text, "old", &done), 0);
		assert_int_equal(done, known);
		assert_true(is_text(known ? "ours" : "another", fd, "mail"));
		assert_int_equal(faccessat(fd, "ours", F_OK, 0), -1);
		(void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_found_by_their_ids),
		cmocka_unit_test(what_is_known_is_of_one_mailbox),
		cmocka_unit_test(a_name_with_another_message_is_not_taken_for_it),
		cmocka_unit_test(one_of_many_is_found_at_the_cost_of_one),
		cmocka_unit_test(an_exchange_gives_back_what_it_did_not_expect),
	};

	return cmocka_run_group_tests_name("rooms/known", tests, NULL, NULL);
}
