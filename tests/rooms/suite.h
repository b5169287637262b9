/* SPDX-License-Identifier: MIT */
/*
 * suite.h - one suite that every kind of room has to pass.
 *
 * A case is a cmocka test whose state is a struct world: a fresh room of the kind under test. It
 * talks to the driver's table only, and runs where the driver has the abilities that it needs.
 */
#ifndef TESTS_ROOMS_SUITE_H
#define TESTS_ROOMS_SUITE_H

#include "base/error.h"
#include "support/room_fault.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct world {
	struct mr_room *room;
	const struct room_driver *ops; /* room->driver */
	char folder[192];              /* where it is on disk; "": it is not */
	char spec[256];                /* to open it a second time; "" when it can be opened only once */
	unsigned schema;               /* of a room in a database: its number; 0: it is none */
	struct room_fault plan;        /* in a fault run */
	unsigned long traced;          /* lines, in a traced run */
};

struct suite_case {
	const char *name;
	CMUnitTestFunction test;
	unsigned needs; /* enum room_ability */
};
#define CASE(function, abilities)                                                                                      \
	{                                                                                                              \
#function, function, abilities                                                                         \
	}
extern const struct suite_case agent_cases[], mail_cases[], hold_cases[], record_cases[], queue_cases[],
    channel_cases[], keep_cases[], ticket_cases[], evidence_cases[], fault_cases[];
extern const struct CMUnitTest spec_tests[]; /* run once, not for every kind */
extern const size_t spec_tests_n;

/* ---- Fresh rooms ---- */
enum suite_mode { SUITE_BARE, SUITE_TRACE, SUITE_FAULT };
struct world *world_new(const struct room_driver *driver, enum suite_mode mode);
void world_free(struct world *w);

/* ---- Short words for what every case does; all of them fail the test when they fail ---- */
void check_rc(
    enum mr_rc got, enum mr_rc want, const struct mr_error *err, const char *call, const char *file, int line);
/* `err` is there for the call to use. */
#define EXPECT(want, call)                                                                                             \
	do {                                                                                                           \
		struct mr_error err = { 0 };                                                                           \
		enum mr_rc got_ = (call);                                                                              \
		check_rc(got_, want, &err, #call, __FILE__, __LINE__);                                                 \
	} while (0)

void add_agent(struct world *w, const char *name);
size_t take_life(struct world *w, const char *name, unsigned life); /* held mail that came back */

struct letter { /* what a case wants to send; zeroed fields get a default */
	const char *to[4];
	const char *from; /* "alice" */
	const char *key;
	struct mr_str body;
	bool make_mailboxes;
	int priority; /* enum mr_priority, less MR_HIGH */
	bool look;
};
/* ret may be NULL. */
enum mr_rc try_send(struct world *w, const struct letter *letter, struct delivered *ret, struct mr_error *err);
void send_to(struct world *w, const char *to, const char *body, char ret_id[MR_ID_LEN + 1]);

size_t count_in(struct world *w, const char *agent, unsigned folders);
size_t count_unread(struct world *w, const char *agent);
struct mr_message fetch_ok(struct world *w, const char *agent, const char *id, unsigned folders);
unsigned flags_of(struct world *w, const char *agent, const char *id, unsigned folders);
/* A lease of that many ms by life 0 of nobody in particular. */
struct claim hold_ok(struct world *w, const char *agent, const char *id, unsigned life, int64_t lease_ms);

#endif
