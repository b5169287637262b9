/* SPDX-License-Identifier: MIT */
/* more.h - what the operations that only the model has share. */
#ifndef TESTS_MODEL_MORE_H
#define TESTS_MODEL_MORE_H

#include "../crash/crash.h"

struct places {
	size_t all, inbox, unread, held, archive, dead, pinned, torn;
};
/* Where the copies of that id are (NULL: of any); asserts that none is torn. */
struct places more_places(struct mr_room *room, const char *agent, const char *id);
struct mr_self more_self(struct mr_room *room, const char *agent);
void setup_three(struct world *w);

extern const struct scenario more_scenarios[];
extern const size_t more_scenarios_n;

/* ---- scenarios_office.c ---- */
extern const struct scenario office_scenarios[];
extern const size_t office_scenarios_n;

/* ---- scenarios_rows.c ---- */
extern const struct scenario row_scenarios[];
extern const size_t row_scenarios_n;

/* ---- scenarios_command.c ---- */
#define MODEL_BOOT "11111111-2222-3333-4444-555555555555" /* before the cut */
extern const struct scenario command_scenarios[];
extern const size_t command_scenarios_n;

#endif
