/* SPDX-License-Identifier: MIT */
/*
 * findings.h - what every inspection of a room needs: telling what was found, never the same a thousand times; the rule
 * that tells a leftover from a file in use; space on the disk.
 *
 *	struct findings f = findings_begin(fix, fn, ctx);
 *	findings_keep_in_state(&f, room->state_dir);        or f.attic = ... in a native room
 *	... findings_say, findings_leftover, findings_space
 *	findings_end(&f);                                   says what was only counted
 */
#ifndef BASE_FINDINGS_H
#define BASE_FINDINGS_H

#include "base/buf.h"
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The attic is where doctor --fix puts what it takes out of a room. Nothing is thrown away: a person looks,
 * and empties it.
 *
 *	attic/2026-03-05/agents%2Fbob%2Ftmp%2Fmr-1.tmp     the path it had, "/" as "%2F"
 *	attic/log                                          a line each: when, what kind of finding, from, to, why
 *
 * In a native room it is a folder of the room; a room of another program gets nothing of ours, its attic is in
 * mailroom's state folder.
 */
#define ATTIC "attic"

struct attic {            /* finish with attic_done */
	int home_fd;      /* the folder that has attic/ in it, or AT_FDCWD; borrowed */
	const char *home; /* below home_fd; NULL: there is no attic, and nothing can be taken */
	mode_t dir_mode, file_mode;
	int fd; /* attic/<day>, -1 until it is needed */
	char day[11];
};
#define ATTIC_NONE ((struct attic){ .fd = -1 })

#define FINDINGS_STRAY_MS ((int64_t)36 * 3600 * 1000) /* an older temporary file has no owner */
#define FINDINGS_FUTURE_MS ((int64_t)5 * 60 * 1000)   /* clocks of two machines may differ so much */
#define FINDINGS_EACH 20                              /* of one code are told one by one */
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
/* state_dir NULL: nothing can be kept, so nothing is taken. */
void findings_keep_in_state(struct findings *f, const char *state_dir);

/* like->what is made of the format; codes are literals. */
void findings_say(struct findings *f, const struct mr_finding *like, const char *fmt, ...) MR_PRINTF(3, 4);
/* Takes it to the attic if fix was asked for, and tells: like->fixed and ->fix are filled in. like->fix: what to do
 * when it was not asked for. */
void findings_take(struct findings *f, int dir_fd, const char *name, const struct mr_finding *like, const char *fmt,
    ...) MR_PRINTF(5, 6);

/* How long ago it was changed, by the later of its two times. Negative: in the future, by this clock. */
int64_t findings_age_ms(const struct stat *st);
/* Has a living process it open? Asked of the kernel, so that no clock and no pid namespace can deceive; false also
 * where it does not tell (another user's file, a network file system), and then only the age speaks. */
bool findings_in_use(int dir_fd, const char *name);
/* A temporary file of ours in a room of another program: told, and taken, once no process can be using it. A file that
 * a link may still ask for (FILE_CARRY) is only told for a month, then put aside: gone it would say that its message
 * was delivered. */
void findings_leftover(struct findings *f, int dir_fd, const char *name, const char *path);
/* Blocks and inodes; `fd` is on that file system. */
void findings_space(struct findings *f, int fd);

#endif
