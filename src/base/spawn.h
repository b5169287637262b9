/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - running another program: an argument list, never a line for a shell. It gets its input, what it prints is
 * kept up to a limit, and it has so long. The only place that calls fork and exec for another program and waits
 * for it.
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
	const char *const *argv;    /* NULL-terminated; the first is looked for in PATH unless it has a slash */
	struct mr_str input;        /* its standard input; a program that does not read it is no error */
	const char *const *env;     /* NULL-terminated "NAME=value" lines beside our own environment, or NULL */
	const char *const *without; /* or NULL; NULL-terminated: what begins so in our environment is not handed on */
	const char *dir;            /* working folder, or NULL: ours */
	int64_t limit_ms;  /* 0: none. Then its whole process group is ended: SIGTERM, a second later SIGKILL */
	size_t output_max; /* bytes kept of each stream; 0: SPAWN_OUTPUT_MAX. The rest is read and dropped */
	/* Or NULL. Called when it has a process (and a process group of that number) whose program has not begun: only
	 * MR_OK lets it begin. If we are killed before this returns it never does, so what this writes down is all that
	 * can be running. */
	enum mr_rc (*started)(void *ctx, int64_t pid, struct mr_error *err);
	void *started_ctx;
	/* Or NULL. With it, its standard input is not closed behind `input` but when this says so, which is asked after
	 * each piece that it printed: for servers that end with their input. */
	bool (*enough)(void *ctx, const struct buf *out);
	void *enough_ctx;
	bool (*stop)(void *ctx); /* or NULL: asked every 100 ms; true ends it as if the time were up */
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

/* MR_OK: it ran and ended, however. MR_NOTFOUND: there is no such program; MR_REFUSED: it may not be run. */
enum mr_rc spawn_run(const struct spawn *what, struct spawned *ret, struct mr_error *err);
/* "exit 3", "signal 9", "no end within 5s": what became of it, for messages. */
void spawned_describe(const struct spawned *ran, int64_t limit_ms, struct buf *out);
void spawned_done(struct spawned *ran);

/* Does that process run with that environment entry ("NAME=value")? False also where the kernel does not tell. */
bool spawned_with(const struct mr_process *p, const char *entry);

#endif
