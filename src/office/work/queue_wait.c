/* SPDX-License-Identifier: MIT */
/*
 * queue_wait.c - what a queue still has to give, and waiting until it has something or is drained. A queue is drained
 * when nothing is ready, delayed or claimed: as long as somebody holds a claim, the work may come back.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"
#include <poll.h>

#define POLL_MS 2000 /* claims that end ring no bell */
#define BLIND_POLL_MS 250

struct leaving {
	struct mr_room *room;
	const char *agent;
	struct mr_queue_left left;
};

static bool
count_left(void *ctx, const struct queue_item *item)
{
	struct leaving *l = ctx;

	if (item->state == QUEUE_DELAYED)
		l->left.delayed++;
	else if (item->state == QUEUE_CLAIMED)
		l->left.claimed++;
	else if (item->only_for[0] && (!l->agent || strcmp(item->only_for, l->agent) != 0))
		l->left.reserved++;
	else
		l->left.ready++;
	if (item->state == QUEUE_CLAIMED && item->hold && l->agent && strcmp(item->hold->agent, l->agent) == 0)
		l->left.mine++;
	return true;
}

enum mr_rc
mr_queue_left(
    struct mr_room *room, const char *agent, const char *name, struct mr_queue_left *ret, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct leaving l = { .room = room, .agent = agent };
	enum mr_rc rc = mr_queue_get(room, name, &queue, err);

	if (rc != MR_OK)
		return rc;
	office_queue_sweep(room, &queue);
	rc = room->driver->queue_each(
	    room, queue.name, QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED, count_left, &l, err);
	if (rc == MR_OK)
		*ret = l.left;
	return rc;
}

static void
pause_for(struct mr_room *room, void *watch, int64_t rest_ms)
{
	int64_t longest = watch ? POLL_MS : BLIND_POLL_MS;
	int64_t ms = rest_ms < longest ? rest_ms : longest;

	if (watch)
		room->driver->watch_wait(room, watch, ms);
	else
		(void)poll(NULL, 0, (int)ms);
}

/* The end of a claim is seen by looking; what is sent rings, too. */
enum mr_rc
mr_queue_wait(struct mr_room *room, const char *name, bool drained, int64_t timeout_ms, struct mr_queue_left *ret,
    struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;
	char watched[MR_ADDRESS_MAX + 16];
	struct mr_error ignored = { 0 };
	void *watch = NULL;
	enum mr_rc rc;

	(void)snprintf(watched, sizeof(watched), "queue:%s", strncmp(name, "queue:", 6) == 0 ? name + 6 : name);
	if (!drained && timeout_ms > 0 && ROOM_HAS(room, watch) &&
	    room->driver->watch(room, watched, &watch, &ignored) != MR_OK)
		watch = NULL;
	for (;;) {
		rc = mr_queue_left(room, NULL, name, ret, err);
		size_t open = ret->ready + ret->reserved;
		int64_t rest_ms = deadline_ms - clock_boot_ms();

		if (rc != MR_OK || (drained ? open + ret->delayed + ret->claimed == 0 : open > 0))
			break;
		if (rest_ms <= 0) {
			rc = MR_EMPTY;
			break;
		}
		pause_for(room, watch, rest_ms);
	}
	if (watch)
		room->driver->watch_close(room, watch);
	return rc;
}
