/* SPDX-License-Identifier: MIT */
/* rounds.h - a patrol in the town, one round at a time, and what it told. */
#ifndef TESTS_OFFICE_ROUNDS_H
#define TESTS_OFFICE_ROUNDS_H

#include "town.h"

#include "base/clock.h"
#include "base/process.h"
#include "base/spawn.h"
#include "office/patrol/patrol.h"
#include <signal.h>

struct beat { /* what a round told */
	struct mr_patrolled done;
	struct buf told; /* "what result\n" */
};

static inline char *
render(void *ctx, const struct mr_message *msg, size_t *ret_len)
{
	char *text = NULL;
	int n = asprintf(&text, "{\"id\":\"%s\"}", msg->id);

	(void)ctx;
	*ret_len = n > 0 ? (size_t)n : 0;
	return n > 0 ? text : NULL;
}

static inline void
note_step_told(void *ctx, const struct mr_patrol_step *step)
{
	struct buf *told = ctx;

	buf_addf(told, "%s %u %s\n", step->what, step->attempt, step->result);
}

static inline struct beat
go_round(struct town *t, const struct mr_self *self, struct mr_patrol_options options)
{
	struct beat b = { 0 };
	struct mr_error err = { 0 };

	options.render = render;
	options.fn = note_step_told;
	options.ctx = &b.told;
	assert_ok(mr_patrol(t->room, self, &options, &b.done, &err));
	return b;
}
#define PLAIN ((struct mr_patrol_options){ 0 })

static inline void
forget(struct beat *b)
{
	buf_done(&b->told);
}

static inline void
add_type(struct town *t, const char *name, const char *more)
{
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT, rest = BUF_INIT, handler = BUF_INIT, value = BUF_INIT;
	const char *at = strstr(more, "Handler: "), *end = at ? strchrnul(at, '\n') : NULL;

	buf_add(&rest, (struct mr_str){ more, at ? (size_t)(at - more) : strlen(more) });
	if (at) { /* the command is the user's to give; the room has its name */
		buf_addf(&rest, "Handler: handle-%s%s", name, end);
		buf_addf(&handler, "Handler-handle-%s", name);
		buf_add(&value, (struct mr_str){ at + strlen("Handler: "), (size_t)(end - at) - strlen("Handler: ") });
		assert_ok(mr_config_set(t->room, buf_z(&handler), buf_z(&value), false, &err));
	}
	buf_addf(&text, "Type: %s\nSummary: a test\nSubject: %s {What}\nField: What; word; required; subject\n%s\n",
	    name, name, buf_z(&rest));
	assert_ok(t->room->driver->record_put(t->room, "type", "", name, buf_str(&text), &err));
}

static inline void
send_subject(
    struct town *t, const struct mr_self *from, const char *to, const char *subject, char ret_id[MR_ID_LEN + 1])
{
	struct mr_draft draft = draft_to(TO(to), "Note: hi\n");

	draft.subject = subject;
	town_send_draft(t, from, &draft, ret_id);
}

static inline struct mr_header
setting(const char *name, const char *value)
{
	return (struct mr_header){ name, value };
}
#define WITH(...)                                                                                                      \
	((struct mr_patrol_options){ .settings = (const struct mr_header[]){ __VA_ARGS__ },                            \
	    .settings_n = sizeof((const struct mr_header[]){ __VA_ARGS__ }) / sizeof(struct mr_header) })

#endif
