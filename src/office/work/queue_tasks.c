/* SPDX-License-Identifier: MIT */
/* queue_tasks.c - what is in a queue, message by message: in whose hands, since when, and what it is about. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/office.h"

struct task {
	char id[MR_ID_LEN + 1];
	enum queue_state state;
	char who[MR_ADDRESS_MAX + 1];
	int64_t since_ms, until_ms;
	unsigned attempt;
	enum mr_priority turn; /* of ready work, where priorities count */
};

struct tasks {
	struct task *v;
	size_t n, cap;
	bool by_priority, failed;
};

static void
tasks_done(struct tasks *t)
{
	free(t->v);
}

static bool
add_task(void *ctx, const struct queue_item *item)
{
	struct tasks *t = ctx;

	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct task *v = reallocarray(t->v, cap, sizeof(*v));

		t->failed = !v;
		if (!v)
			return false;
		t->v = v;
		t->cap = cap;
	}
	struct task *task = &t->v[t->n++];
	bool held = item->state == QUEUE_CLAIMED && item->hold;

	*task = (struct task){ .state = item->state, .attempt = item->attempt, .since_ms = id_time_ms(item->id) };
	(void)snprintf(task->id, sizeof(task->id), "%s", item->id);
	task->turn = t->by_priority && item->state == QUEUE_READY ? item->priority : MR_NORMAL;
	(void)snprintf(task->who, sizeof(task->who), "%s", held ? item->hold->agent : item->only_for);
	if (held) {
		task->since_ms = item->hold->since_ms;
		task->until_ms = item->hold->deadline_ms;
	} else if (item->released_ms > 0) {
		task->since_ms = item->released_ms;
		task->until_ms = item->only_until_ms;
	} else if (item->state == QUEUE_DELAYED) {
		task->until_ms = item->not_before_ms;
	}
	return true;
}

static int
rank(enum queue_state state)
{
	return state == QUEUE_CLAIMED   ? 0
	       : state == QUEUE_READY   ? 1
	       : state == QUEUE_DELAYED ? 2
	       : state == QUEUE_FAILED  ? 3
					: 4;
}

/* What is in somebody's hands first, then what is next; what is over last, the newest of it first. */
static int
by_turn(const void *va, const void *vb)
{
	const struct task *a = va, *b = vb;
	int ra = rank(a->state), rb = rank(b->state);

	if (ra != rb)
		return ra < rb ? -1 : 1;
	if (ra >= 3)
		return strcmp(b->id, a->id);
	if (a->turn != b->turn)
		return a->turn > b->turn ? -1 : 1;
	if (a->since_ms != b->since_ms)
		return a->since_ms < b->since_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

/* Who ended it, and when: the last one. */
static void
note_end(void *ctx, const struct past_claim *past)
{
	struct task *task = ctx;

	(void)snprintf(task->who, sizeof(task->who), "%s", past->hold->agent);
	task->since_ms = past->ended_ms;
}

static void
tell_task(struct mr_room *room, const char *queue, struct task *task, mr_queue_task_fn *fn, void *ctx)
{
	static const char *const words[] = { "claimed", "ready", "delayed", "failed", "done" };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };
	bool over = task->state == QUEUE_DONE || task->state == QUEUE_FAILED;
	bool read = room->driver->queue_fetch(room, queue, task->id, &msg, &ignored) == MR_OK;

	if (over && ROOM_HAS(room, queue_past))
		(void)room->driver->queue_past(room, queue, task->id, NULL, note_end, task, &ignored);
	struct mr_queue_task told = {
		.id = task->id,
		.state = task->state == QUEUE_READY && task->who[0] ? "reserved" : words[rank(task->state)],
		.from = read ? msg.from : "",
		.subject = read ? msg.subject : "",
		.who = task->who,
		.attempt = task->attempt,
		.since_ms = task->since_ms,
		.until_ms = task->until_ms,
	};

	fn(ctx, &told);
}

enum mr_rc
mr_queue_tasks(struct mr_room *room, const char *name, bool done, size_t limit, mr_queue_task_fn *fn, void *ctx,
    size_t *ret_more, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	mr_auto(tasks_done) struct tasks tasks = { 0 };
	unsigned states = QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED | QUEUE_FAILED;
	enum mr_rc rc = mr_queue_get(room, name, &queue, err);

	tasks.by_priority = queue.by_priority;
	if (rc == MR_OK)
		rc = room->driver->queue_each(
		    room, queue.name, states | (done ? (unsigned)QUEUE_DONE : 0), add_task, &tasks, err);
	if (rc == MR_OK && tasks.failed)
		rc = mr_nomem(err);
	if (rc != MR_OK)
		return rc;
	if (tasks.n > 1)
		qsort(tasks.v, tasks.n, sizeof(*tasks.v), by_turn);
	for (size_t i = 0; i < tasks.n && i < limit; i++)
		tell_task(room, queue.name, &tasks.v[i], fn, ctx);
	*ret_more = tasks.n > limit ? tasks.n - limit : 0;
	return MR_OK;
}
