/* SPDX-License-Identifier: MIT */
/* jobs.h - queues in the town, in few words. */
#ifndef TESTS_OFFICE_JOBS_H
#define TESTS_OFFICE_JOBS_H

#include "base/clock.h"
#include "base/id.h"
#include "town.h"
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

static inline void
make_queue(struct town *t, const char *name, struct mr_queue settings)
{
	struct mr_error err = { 0 };

	(void)snprintf(settings.name, sizeof(settings.name), "%s", name);
	assert_ok(mr_queue_create(t->room, &t->alice, &settings, &err));
}

static inline struct mr_claim
take_for(struct town *t, const struct mr_self *self, const char *queue, int64_t lease_ms, const char *subject)
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_recv(t->room, self, queue, lease_ms, 0, &claim, &msg, &err));
	assert_string_equal(msg.subject, subject);
	assert_string_equal(msg.id, claim.id);
	assert_string_equal(msg.token, claim.token);
	assert_int_equal(msg.attempt, claim.attempt);
	assert_int_equal(msg.folder, MR_HELD);
	assert_non_null(msg.body);
	mr_message_done(&msg);
	return claim;
}

static inline struct mr_claim
take(struct town *t, const struct mr_self *self, const char *subject)
{
	return take_for(t, self, "builds", 0, subject);
}

#define assert_no_work(t, self, why)                                                                                   \
	do {                                                                                                           \
		struct mr_claim none = { 0 };                                                                          \
		struct mr_message no_msg = { 0 };                                                                      \
		assert_rc(mr_queue_recv((t)->room, (self), "builds", 0, 0, &none, &no_msg, &err), why);                \
	} while (0)

static inline struct mr_queue_counts
count(struct town *t, const char *queue)
{
	struct mr_queue_counts counts = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_count(t->room, queue, &counts, &err));
	return counts;
}

static inline void
send_urgently(struct town *t, const char *body, enum mr_priority priority)
{
	struct mr_draft draft = draft_to(TO("queue:builds"), body);

	draft.priority = priority;
	town_send_draft(t, &t->alice, &draft, NULL);
}

static inline void
assert_bounce(struct town *t, const char *agent, const char *id, const char *from, const char *reason)
{
	struct mr_message bounce = { 0 };
	struct mr_error err = { 0 };
	struct seen unread = town_unread(t, agent);

	assert_int_equal(unread.n, 1);
	assert_ok(mr_fetch(t->room, agent, unread.ids[0], &bounce, &err));
	assert_string_equal(bounce.type, "bounce");
	assert_string_equal(bounce.from, from);
	assert_string_equal(bounce.reply_to, id);
	assert_non_null(strstr(bounce.body, reason));
	mr_message_done(&bounce);
}

#endif
