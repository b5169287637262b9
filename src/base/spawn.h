/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - runs another program from an argument list, never through a shell. It gets input, its output is kept up to
 * a limit, and its time is limited. Only this file calls fork and exec for another program and waits for it.
 *
 *	struct spawned ran = { 0 };
 *	if (spawn_run(&(struct spawn){ .argv = argv, .input = text, .limit_ms = 5000 }, &ran, err) == MR_OK)
 *		... ran.exit_code, buf_z(&ran.out)
 *	spawned_done(&ran);
 */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include "base/buf.h"

struct spawn {
	const char *const *argv; /* NULL-terminated; the first is searched in PATH unless it has a slash */
	struct mr_str input;     /* its standard input; it is no error if the program does not read it */
	const char *const *env;  /* NULL-terminated "NAME=value" lines, added to our environment, or NULL */
	const char *const
	    *without;     /* NULL-terminated, or NULL: variables of our environment with these beginnings are removed */
	const char *dir;  /* working folder, or NULL: ours */
	int64_t limit_ms; /* 0: none. After it the whole process group gets SIGTERM, a second later SIGKILL */
	size_t output_max; /* bytes kept of each stream; 0: SPAWN_OUTPUT_MAX. The rest is read and dropped */
	/* Or NULL. Called when the process (and its process group of that number) exists and its program has not begun:
	 * only MR_OK lets it begin. If we are killed before this returns, it never begins, so whatever runs has been
	 * recorded by this function. */
	enum mr_rc (*started)(void *ctx, int64_t pid, struct mr_error *err);
	void *started_ctx;
	/* Or NULL. With it, standard input is closed not after `input` but when this returns true; it is asked after
	 * each piece of output. For servers that end with their input. */
	bool (*enough)(void *ctx, const struct buf *out);
	void *enough_ctx;
	bool (*stop)(void *ctx); /* or NULL: asked every 100 ms; true ends the program as if the time were up */
	void *stop_ctx;
};
#define SPAWN_OUTPUT_MAX ((size_t)1 << 20)

struct spawned {       /* finish with spawned_done */
	int exit_code; /* 0-255; -1: ended by a signal */
	int signal;    /* 0: none */
	bool timed_out;
	bool cut; /* it printed more than was kept */
	struct buf out, err;
};

/* MR_OK: it ran and ended, in any way. MR_NOTFOUND: there is no such program; MR_REFUSED: it may not be run. */
enum mr_rc spawn_run(const struct spawn *what, struct spawned *ret, struct mr_error *err);
/* "exit 3", "signal 9", "no end within 5s": the result, for messages. */
void spawned_describe(const struct spawned *ran, int64_t limit_ms, struct buf *out);
void spawned_done(struct spawned *ran);

/* Does that process run with that environment entry ("NAME=value")? False also if the kernel does not tell. */
bool spawned_with(const struct mr_process *p, const char *entry);

#endif
