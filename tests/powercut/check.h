/* SPDX-License-Identifier: MIT */
/* check.h - what is known of each message after the cut. */
#ifndef TESTS_POWERCUT_CHECK_H
#define TESTS_POWERCUT_CHECK_H

#include "cut.h"

#define RECIPIENTS 5

struct op { /* one message, by its tag */
	bool tried, accepted, refused, read, done, drained, archived;
	bool keyed; /* of a batch: can be repeated */
	char id[40];
	unsigned copies[RECIPIENTS];
	bool seen, finished, in_archive; /* of the first recipient's copy */
};
extern struct op ops[WORKERS * TAGS_A_WORKER];
struct sums {
	unsigned acknowledged, lost, torn, twice, undone, half, visible, names, index, trouble;
};
extern struct sums sum;
extern const char *room;

void complain(unsigned *counter, const char *what, unsigned tag);
int run_there(const char *spec, const char *const *argv, char *ret_out, size_t size);

/* ---- check_elsewhere.c ---- */
void set_state_folder(void);
void take_elsewhere(void); /* queues, channels, rooms of other systems, what was carried */

#endif
