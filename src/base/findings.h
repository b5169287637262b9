/* SPDX-License-Identifier: MIT */
/*
 * findings.h - shared by all inspections of a room: reporting findings, without a thousand repetitions; the rule that
 * distinguishes a leftover from a file in use; space on the disk.
 *
 *	struct findings f = findings_begin(fix, fn, ctx);
 *	findings_keep_in_state(&f, room->state_dir);        or f.attic = ... in a native room
 *	... findings_say, findings_leftover, findings_space
 *	findings_end(&f);                                   reports those that were only counted
 */
#ifndef BASE_FINDINGS_H
#define BASE_FINDINGS_H

#include "base/buf.h"
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The attic is where doctor --fix puts files that it takes out of a room. Nothing is thrown away: a person looks, and
 * empties it.
 *
 *	attic/2026-03-05/agents%2Fbob%2Ftmp%2Fmr-1.tmp     the path it had, "/" as "%2F"
 *	attic/log                                          a line each: when, what kind of finding, from, to, why
 *
 * In a native room it is a folder of the room; for a room of another program it is in mailroom's state folder.
 */
#define ATTIC "attic"

struct attic {            /* finish with attic_done */
	int home_fd;      /* the folder that holds attic/, or AT_FDCWD; borrowed */
	const char *home; /* below home_fd; NULL: there is no attic, and nothing can be taken */
	mode_t dir_mode, file_mode;
	int fd; /* attic/<day>, -1 until it is needed */
	char day[11];
};
#define ATTIC_NONE ((struct attic){ .fd = -1 })

#define FINDINGS_STRAY_MS ((int64_t)36 * 3600 * 1000) /* an older temporary file is not in use */
#define FINDINGS_FUTURE_MS ((int64_t)5 * 60 * 1000)   /* clocks of two machines may differ by this much */
#define FINDINGS_EACH 20                              /* of one code are reported one by one */
#define FINDINGS_CODES 32

struct findings {
	bool fix;
	mr_finding_fn *fn;
	void *ctx;
	struct attic attic;
	size_t told; /* notes and problems */
	struct findings_code {
		const char *code;
		size_t n, more, more_fixed;
		enum mr_severity worst; /* of those that were only counted and not fixed */
	} codes[FINDINGS_CODES];
	size_t codes_n;
};

struct findings findings_begin(bool fix, mr_finding_fn *fn, void *ctx);
void findings_end(struct findings *f);
/* state_dir NULL: there is no attic, so nothing is taken. */
void findings_keep_in_state(struct findings *f, const char *state_dir);

/* like->what is made of the format; codes are literals. */
void findings_say(struct findings *f, const struct mr_finding *like, const char *fmt, ...) MR_PRINTF(3, 4);
/* Takes it to the attic if `fix` was set, and reports it: like->fixed and ->fix are filled in. like->fix: advice if it
 * was not set. */
void findings_take(struct findings *f, int dir_fd, const char *name, const struct mr_finding *like, const char *fmt,
    ...) MR_PRINTF(5, 6);

/* Its age by the later of its two times. Negative: in the future, by this clock. */
int64_t findings_age_ms(const struct stat *st);
/* Has a living process opened it? The kernel answers, so that no clock and no pid namespace can mislead; false also if
 * it cannot tell (another user's file, a network file system), and then only the age counts. */
bool findings_in_use(int dir_fd, const char *name);
/* A temporary file of ours in a room of another program: reports and takes it when no process can be using it. A file
 * that a link may still ask for (FILE_CARRY) is only reported for a month, then put aside: its absence would mean that
 * its message was delivered. */
void findings_leftover(struct findings *f, int dir_fd, const char *name, const char *path);
/* Reports low blocks or inodes; `fd` is on that file system. */
void findings_space(struct findings *f, int fd);

#endif
