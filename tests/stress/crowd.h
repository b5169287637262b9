/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - many processes in one room: real ones, forked, each with a room handle of its own.
 *
 * A process of the crowd never uses cmocka's asserts: it says what went wrong on stderr and exits with 1, and the
 * test asserts that all exited with 0. What processes tell each other goes through memory mapped before the fork.
 */
#ifndef TESTS_STRESS_CROWD_H
#define TESTS_STRESS_CROWD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sys.h"
#include "mailroom-hooks.h"
#include "mailroom-town.h"
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CROWD_MAX 64

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CROWD_SLOW 1 /* a fifth of the work: sanitizers are here to see the code, not the crowd */
#else
#define CROWD_SLOW 0
#endif

static inline bool
crowd_long(void)
{
	const char *wish = getenv("MAILROOM_TEST_LONG");

	return wish && wish[0];
}

static inline _Noreturn void
crowd_die(const char *what, const struct mr_error *err)
{
	(void)fprintf(stderr, "# process %d: %s: %s\n", (int)getpid(), what, err ? err->message : "");
	_exit(1);
}
#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if ((call) != MR_OK)                                                                                   \
			crowd_die(#call, &err);                                                                        \
	} while (0)

/* ---- The room ---- */

struct crowd {
	char dir[64];
	char path[96]; /* of the room */
};

static inline struct mr_room *
crowd_open(const struct crowd *c)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char config[96];

	(void)snprintf(config, sizeof(config), "%s/config", c->dir);
	MUST(mr_room_open(c->path, &(struct mr_room_options){ .config_dir = config }, &room, &err));
	return room;
}

static inline struct mr_self
crowd_self(struct mr_room *room, const char *name)
{
	struct mr_error err = { 0 };
	struct mr_self self = { 0 };

	MUST(mr_self_named(room, name, &self, &err));
	return self;
}

static inline struct crowd
crowd_new(const char *sync, const char *const *agents)
{
	struct crowd c = { 0 };
	struct mr_error err = { 0 };
	struct mr_init_options options = { .name = "town", .sync = sync };
	char *path = NULL;

	(void)snprintf(c.dir, sizeof(c.dir), "/tmp/mailroom-crowd-XXXXXX");
	assert_non_null(mkdtemp(c.dir));
	MUST(mr_room_init(c.dir, c.dir, &options, &path, &err));
	(void)snprintf(c.path, sizeof(c.path), "%s", path);
	free(path);
	struct mr_room *room = crowd_open(&c);

	for (; *agents; agents++) {
		struct mr_registration got = { 0 };

		MUST(mr_register(room, *agents, &(struct mr_env){ 0 }, &(struct mr_register_options){ 0 }, &got, &err));
	}
	mr_room_close(room);
	return c;
}

static inline int
crowd_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
crowd_done(struct crowd *c)
{
	(void)nftw(c->dir, crowd_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- Its processes ---- */

static inline void *
crowd_share(size_t size)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(shared != MAP_FAILED);
	return shared;
}

typedef void crowd_fn(void *ctx, unsigned number);

static inline pid_t
crowd_spawn(crowd_fn *fn, void *ctx, unsigned number)
{
	pid_t pid = fork();

	if (pid == 0) {
		fn(ctx, number);
		_exit(0);
	}
	return pid;
}

/* How many of them did not exit with 0. */
static inline unsigned
crowd_wait(const pid_t *pids, unsigned n)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < n; i++) {
		int status = 0;

		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	return bad;
}

/* Runs fn in n processes at once; how many failed. */
static inline unsigned
crowd_run(unsigned n, crowd_fn *fn, void *ctx)
{
	pid_t pids[CROWD_MAX];

	for (unsigned i = 0; i < n; i++)
		pids[i] = crowd_spawn(fn, ctx, i);
	return crowd_wait(pids, n);
}

static inline void
crowd_nap_us(unsigned us)
{
	(void)usleep(us);
}

/* Seeded by process and said when it matters; the kernel's scheduling is the larger dice anyway. */
static inline uint32_t
crowd_dice(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* ---- What they all do ---- */

static inline enum mr_rc
crowd_send(struct mr_room *room, const struct mr_self *self, struct mr_draft draft, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	struct mr_receipt receipt = { 0 };

	draft.body_len = strlen(draft.body);
	enum mr_rc rc = mr_send(room, self, &draft, &receipt, err);

	if (rc == MR_OK && ret_id)
		memcpy(ret_id, receipt.id, MR_ID_LEN + 1);
	mr_receipt_done(&receipt);
	return rc;
}
#define TO(...) ((const char *const[]){ __VA_ARGS__, NULL })

static inline bool
crowd_count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

static inline size_t
crowd_count(struct mr_room *room, const char *agent, struct mr_filter filter)
{
	struct mr_error err = { 0 };
	struct mr_scan scan = { .filter = filter };
	size_t n = 0;

	MUST(mr_scan(room, agent, &scan, crowd_count_one, &n, &err));
	return n;
}

#endif
