/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - for the tests of the office: a temporary folder, a room in it, and processes that stand in
 * for harnesses (they only sleep, but they have pids, start times and ends like real ones).
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "mailroom-hooks.h"
#include "mailroom-town.h"

#define HARNESSES_MAX 16

struct scratch {
	char path[PATH_MAX];  /* the temporary folder, without links in it */
	char state[PATH_MAX]; /* state folder of the sessions */
	struct mr_room *room;
	pid_t harness[HARNESSES_MAX];
	size_t harnesses;
};

static inline void __attribute__((format(printf, 1, 2))) shell(const char *fmt, ...)
{
	char line[3 * PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	if (system(line) != 0) // NOLINT: the tests' own words
		fail_msg("failed: %s", line);
}

/* A file below the scratch folder. */
static inline char *
below(const struct scratch *s, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", s->path, name) > 0);
	return path;
}

static inline struct scratch *
scratch_new(void)
{
	struct scratch *s = calloc(1, sizeof *s);
	char made[] = "/tmp/mailroom-office-XXXXXX";

	assert_non_null(s);
	assert_non_null(mkdtemp(made));
	assert_non_null(realpath(made, s->path));
	snprintf(s->state, sizeof s->state, "%.4000s/state", s->path);
	return s;
}

static inline struct scratch *
scratch_with_room(void)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	char *path = NULL;

	if (mr_room_init(s->path, "/", NULL, &path, &err) != MR_OK || mr_room_open(path, NULL, &s->room, &err) != MR_OK)
		fail_msg("%s", err.message);
	free(path);
	return s;
}

static inline struct mr_process
harness_start(struct scratch *s)
{
	struct mr_process p = { 0 };
	pid_t pid = fork();

	assert_true(pid >= 0 && s->harnesses < HARNESSES_MAX);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not end its harnesses */
		for (;;)
			pause();
	}
	s->harness[s->harnesses++] = pid;
	assert_true(process_describe(pid, &p));
	return p;
}

static inline void
harness_end(struct scratch *s, const struct mr_process *p)
{
	for (size_t i = 0; i < s->harnesses; i++)
		if (s->harness[i] == (pid_t)p->pid) {
			kill(s->harness[i], SIGKILL);
			waitpid(s->harness[i], NULL, 0);
			s->harness[i] = s->harness[--s->harnesses];
			return;
		}
	fail_msg("no such harness");
}

static inline void
scratch_free(struct scratch *s)
{
	while (s->harnesses > 0)
		harness_end(s, &(struct mr_process){ .pid = s->harness[0] });
	mr_room_close(s->room);
	shell("chmod -R u+rwX '%s' && rm -rf '%s'", s->path, s->path);
	free(s);
}

/* A command of that session, run below that harness, in that worktree. */
static inline struct mr_env
env_of(const struct scratch *s, const char *session, const struct mr_process *process, const char *worktree)
{
	struct mr_env env = { .session = session, .worktree = worktree, .state_dir = s->state };

	if (process)
		env.process = *process;
	return env;
}

static inline struct mr_registration
registered(struct scratch *s, const char *name, const struct mr_env *env)
{
	struct mr_registration reg = { 0 };
	struct mr_error err = { 0 };

	if (mr_register(s->room, name, env, NULL, &reg, &err) != MR_OK)
		fail_msg("register %s: %s (%s)", name, err.message, err.hint);
	return reg;
}

static inline struct mr_self
resolved(struct scratch *s, const struct mr_env *env)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	if (mr_self_resolve(s->room, env, &self, &err) != MR_OK)
		fail_msg("resolve: %s (%s)", err.message, err.hint);
	return self;
}

static inline void
assert_is(struct scratch *s, const struct mr_env *env, const char *agent, unsigned life)
{
	struct mr_self self = resolved(s, env);

	assert_string_equal(self.agent, agent);
	assert_int_equal(self.life, life);
}

static inline struct mr_error
refused(struct scratch *s, const struct mr_env *env, enum mr_rc code)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_self_resolve(s->room, env, &self, &err);

	if (rc == MR_OK)
		fail_msg("acts as '%s' (%s)", self.agent, self.how);
	if (rc != code)
		fail_msg("code %d: %s", (int)rc, err.message);
	assert_int_equal(err.code, code);
	assert_true(err.hint[0] != '\0');
	return err;
}

static inline void
assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not say '%s'", text, part);
}

#endif
