/* SPDX-License-Identifier: MIT */
/* kept.c - a hash table with a few slots for each hash. When all are taken, a new message replaces one of them. */
#include "room/kept.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "message/message.h"

#define SLOTS 4096
#define TRIED 4                       /* slots for a hash */
#define MESSAGE_MAX ((size_t)4 << 10) /* bytes as it is stored */
#define ALL_MAX ((size_t)8 << 20)     /* bytes of all that are kept; in memory about twice as much */

static struct {
	pthread_mutex_t lock;
	size_t bytes;
	struct slot {
		char *place; /* NULL: the slot is empty */
		struct mr_message msg;
	} slots[SLOTS];
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The slot that holds the message, else one that it can use. */
static struct slot *
slot_of(const char *place, const char *id)
{
	uint64_t hash = hash_bytes(str_of(place)) * 31 + hash_bytes(str_of(id));
	struct slot *first = &kept.slots[(hash ^ hash >> 32) % SLOTS / TRIED * TRIED],
		    *other = &first[hash >> 16 & (TRIED - 1)];

	for (struct slot *s = first; s < first + TRIED; s++)
		if (!s->place)
			other = s;
		else if (strcmp(s->msg.id, id) == 0 && strcmp(s->place, place) == 0)
			return s;
	return other;
}

bool
kept_find(const char *place, const char *id, bool body, struct mr_message *ret)
{
	(void)pthread_mutex_lock(&kept.lock);
	const struct slot *slot = slot_of(place, id);
	struct mr_message msg = slot->msg;
	bool found = slot->place && strcmp(msg.id, id) == 0 && strcmp(slot->place, place) == 0 && (msg.body || !body);

	if (!body) {
		msg.body = NULL;
		msg.body_len = 0;
	}
	found = found && message_copy(&msg, ret, IGNORED) == MR_OK;
	(void)pthread_mutex_unlock(&kept.lock);
	return found;
}

static void
empty(struct slot *slot)
{
	kept.bytes -= slot->place ? slot->msg.size_bytes : 0;
	free(slot->place);
	mr_message_done(&slot->msg);
	*slot = (struct slot){ 0 };
}

void
kept_add(const char *place, const struct mr_message *msg)
{
	if (msg->size_bytes > MESSAGE_MAX || msg->attachments_n > 0 || msg->content)
		return;
	(void)pthread_mutex_lock(&kept.lock);
	struct slot *slot = slot_of(place, msg->id);

	empty(slot);
	if (kept.bytes + msg->size_bytes <= ALL_MAX && message_copy(msg, &slot->msg, IGNORED) == MR_OK) {
		slot->place = strdup(place);
		kept.bytes += slot->place ? msg->size_bytes : 0;
	}
	(void)pthread_mutex_unlock(&kept.lock);
}
