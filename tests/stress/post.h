/* SPDX-License-Identifier: MIT */
/* post.h - a post office in memory for a crowd. */
#ifndef TESTS_STRESS_POST_H
#define TESTS_STRESS_POST_H

#include "base/clock.h"
#include "stress/crowd.h"
#include <limits.h>

#define CLAIMERS 8u
#define WORK_MAX 5000u
#define LEASE_MS 300

/* How much of it: the full number only when a long run was asked for. */
static inline unsigned
so_many(unsigned full, unsigned quick)
{
	return crowd_long() ? full : CROWD_SLOW ? quick / 4 : quick;
}

/* A process that works until it is told to stop also stops when the test is gone. */
static inline bool
goes_on(const atomic_bool *over, pid_t parent)
{
	return !atomic_load(over) && getppid() == parent;
}

/* ---- The room: in memory, so that a sync is a call like any other ---- */

static inline struct crowd
post_room(const char *sync, const char *prefix, unsigned agents)
{
	struct crowd c = { 0 };
	struct mr_error err = { 0 };
	struct mr_init_options options = { .name = "town", .sync = sync };
	char *path = NULL, name[32];

	(void)snprintf(
	    c.dir, sizeof(c.dir), "%s/mailroom-post-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(c.dir));
	MUST(mr_room_init(c.dir, c.dir, &options, &path, &err));
	(void)snprintf(c.path, sizeof(c.path), "%s", path);
	free(path);
	struct mr_room *room = crowd_open(&c);

	for (unsigned i = 0; i <= agents; i++) {
		struct mr_registration got = { 0 };

		(void)snprintf(name, sizeof(name), "%s%u", prefix, i);
		MUST(mr_register(room, i < agents ? name : "alice", &(struct mr_env){ 0 },
		    &(struct mr_register_options){ 0 }, &got, &err));
	}
	mr_room_close(room);
	return c;
}

static inline struct mr_self
self_number(struct mr_room *room, const char *prefix, unsigned number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%u", prefix, number);
	return crowd_self(room, name);
}

static inline void
send_number(struct mr_room *room, const struct mr_self *self, const char *to, unsigned number, char *ret_id)
{
	struct mr_error err = { 0 };
	char body[32];

	(void)snprintf(body, sizeof(body), "%u", number);
	MUST(crowd_send(room, self, (struct mr_draft){ .to = TO(to), .body = body }, ret_id, &err));
}

static inline void
make_queue(struct mr_room *room, const struct mr_self *self, struct mr_queue settings)
{
	struct mr_error err = { 0 };

	(void)snprintf(settings.name, sizeof(settings.name), "jobs");
	MUST(mr_queue_create(room, self, &settings, &err));
}

static inline struct mr_queue_counts
count_work(struct mr_room *room)
{
	struct mr_queue_counts n = { 0 };
	struct mr_error err = { 0 };

	MUST(mr_queue_count(room, "jobs", &n, &err));
	return n;
}

#define FIFTY 50u

/* NULL-terminated, and as long as the program. */
static inline const char *const *
fifty_names(void)
{
	static char names[FIFTY][16];
	static const char *list[FIFTY + 1];

	for (unsigned i = 0; i < FIFTY; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "agent%u", i);
		list[i] = names[i];
	}
	return list;
}

#endif
