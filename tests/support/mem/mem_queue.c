/* SPDX-License-Identifier: MIT */
/* mem_queue.c - work queues: what is in them. */
#include "base/clock.h"
#include "base/error.h"
#include "message/message.h"
#include "support/mem/mem.h"

const char *
mem_target(const char *to, const char *prefix)
{
	return str_starts(str_of(to), prefix) ? to + strlen(prefix) : NULL;
}

enum mr_rc
mem_queue_find(struct mem *mem, const char *name, struct mem_queue **ret, struct mr_error *err)
{
	for (size_t i = 0; i < mem->queues_n; i++) {
		if (strcmp(mem->queues[i].name, name) == 0) {
			*ret = &mem->queues[i];
			return MR_OK;
		}
	}
	return mr_fail(err, MR_NOTFOUND, "no queue '%s' in this room", name);
}

struct mem_work *
mem_work_get(struct mem_queue *queue, const char *id)
{
	for (size_t i = 0; i < queue->work_n; i++)
		if (strcmp(queue->work[i].id, id) == 0)
			return &queue->work[i];
	return NULL;
}

void
mem_work_drop(struct mem_queue *queue, struct mem_work *work)
{
	size_t at = (size_t)(work - queue->work);

	mem_letter_done(work->letter);
	queue->work_n--;
	memmove(work, work + 1, (queue->work_n - at) * sizeof *work);
}

bool
mem_queue_reserve(struct mem_queue *queue)
{
	if (queue->work_n < queue->work_cap)
		return true;
	size_t cap = queue->work_cap * 2 + 8;
	struct mem_work *grown = realloc(queue->work, cap * sizeof *grown);

	if (!grown)
		return false;
	queue->work = grown;
	queue->work_cap = cap;
	return true;
}

void
mem_queue_put(struct mem_queue *queue, const struct mr_message *msg, struct mem_letter *letter)
{
	struct mem_work work = {
		.state = QUEUE_READY, .priority = msg->priority, .not_before_ms = msg->not_before_ms, .letter = letter
	};
	size_t at = queue->work_n;

	memcpy(work.id, msg->id, sizeof work.id);
	while (at > 0 && strcmp(queue->work[at - 1].id, work.id) > 0)
		at--;
	memmove(&queue->work[at + 1], &queue->work[at], (queue->work_n - at) * sizeof work);
	queue->work[at] = work;
	queue->work_n++;
	letter->refs++;
}

void
mem_queue_done(struct mem_queue *queue)
{
	for (size_t i = 0; i < queue->work_n; i++)
		mem_letter_done(queue->work[i].letter);
	free(queue->work);
}

enum queue_state
mem_work_state(const struct mem_work *work)
{
	bool early = work->state == QUEUE_READY && work->not_before_ms > clock_now_ms();

	return early ? QUEUE_DELAYED : work->state;
}

/* ---- Making and removing ---- */

enum mr_rc
mem_queue_make(struct mr_room *room, const char *queue, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_queue *there = NULL;
	struct mr_error ignored = { 0 };

	if (mem_queue_find(mem, queue, &there, &ignored) == MR_OK)
		return MR_OK;
	struct mem_queue *grown = realloc(mem->queues, (mem->queues_n + 1) * sizeof *grown);

	if (!grown)
		return mr_nomem(err);
	mem->queues = grown;
	grown[mem->queues_n] = (struct mem_queue){ 0 };
	(void)snprintf(grown[mem->queues_n].name, sizeof grown->name, "%s", queue);
	mem->queues_n++;
	return MR_OK;
}

enum mr_rc
mem_queue_remove(struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_queue *q = NULL;
	size_t open = 0;

	if (mem_queue_find(mem, queue, &q, err) != MR_OK)
		return err->code;
	for (size_t i = 0; i < q->work_n; i++)
		open += (q->work[i].state & (QUEUE_READY | QUEUE_CLAIMED)) != 0;
	if (open > 0 && !to_dead)
		return mr_fail(err, MR_REFUSED, "there is work in queue '%s': %zu messages", queue, open);
	if (!mem_box_reserve(&mem->dead, q->work_n))
		return mr_nomem(err);
	for (size_t i = 0; i < q->work_n; i++) {
		const struct mem_work *work = &q->work[i];
		struct mem_copy copy = { .folder = MR_DEAD, .attempt = work->attempt, .letter = work->letter };

		if (work->state == QUEUE_DONE)
			continue;
		memcpy(copy.id, work->id, sizeof copy.id);
		work->letter->refs++; /* the queue's own goes below */
		mem_box_put(&mem->dead, &copy);
	}
	mem_queue_done(q);
	*q = mem->queues[--mem->queues_n];
	*ret_dead = open;
	return MR_OK;
}

enum mr_rc
mem_dead_drop(struct mr_room *room, const char *queue, const char *id, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_queue *q = NULL;
	struct mem_copy *copy = queue[0] == '\0' ? mem_box_get(&mem->dead, id, MR_DEAD) : NULL;

	if (queue[0] != '\0' && mem_queue_find(mem, queue, &q, err) != MR_OK)
		return err->code;
	struct mem_work *work = q ? mem_work_get(q, id) : NULL;

	if (!copy && !(work && work->state == QUEUE_FAILED))
		return mr_fail(err, MR_NOTFOUND, "no dead letter '%s'", id);
	if (work)
		mem_work_drop(q, work);
	for (; copy; copy = mem_box_get(&mem->dead, id, MR_DEAD))
		mem_box_drop(&mem->dead, copy);
	return MR_OK;
}

/* ---- Looking ---- */

enum mr_rc
mem_queue_each(struct mr_room *room, const char *queue, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	struct mem_queue *q = NULL;

	if (mem_queue_find(mem_of(room), queue, &q, err) != MR_OK)
		return err->code;
	size_t n = q->work_n;
	mr_auto(free_ptr) struct mem_work *work = calloc(n + 1, sizeof *work); /* fn may settle what it is shown */

	if (!work)
		return mr_nomem(err);
	for (size_t i = 0; i < n; i++)
		work[i] = q->work[i];
	for (size_t i = 0; i < n; i++) {
		struct mem_work *w = &work[i];
		struct queue_item item = { .state = mem_work_state(w),
			.priority = w->priority,
			.attempt = w->attempt,
			.not_before_ms = w->not_before_ms };

		if (!(item.state & states))
			continue;
		memcpy(item.id, w->id, sizeof item.id);
		if (item.state == QUEUE_READY)
			item.released_ms = w->released_ms;
		if (item.state == QUEUE_READY && clock_now_ms() < w->only_until_ms) {
			(void)snprintf(item.only_for, sizeof item.only_for, "%s", w->only_for);
			item.only_until_ms = w->only_until_ms;
		}
		if (item.state == QUEUE_CLAIMED) {
			w->hold.over = mem_lease_is_over(&w->hold, w->boot_deadline_ms, &w->process);
			item.claim = &w->hold;
		}
		if (!fn(ctx, &item))
			break;
	}
	return MR_OK;
}

enum mr_rc
mem_queue_fetch(struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err)
{
	struct mem_queue *q = NULL;

	if (mem_queue_find(mem_of(room), queue, &q, err) != MR_OK)
		return err->code;
	const struct mem_work *work = mem_work_get(q, id);

	if (!work)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' in queue '%s'", id, queue);
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.attempt = work->attempt,
		.size_bytes = work->letter->text.len };

	memcpy(msg.id, work->id, sizeof msg.id);
	if (work->state == QUEUE_CLAIMED) {
		msg.folder = MR_HELD;
		memcpy(msg.token, work->hold.token, sizeof msg.token);
	}
	enum mr_rc rc = message_parse(buf_str(&work->letter->text), room->name, MESSAGE_ALL, &msg, err);

	if (rc == MR_OK)
		*ret = msg;
	return rc;
}
