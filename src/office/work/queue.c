/* SPDX-License-Identifier: MIT */
/*
 * queue.c - work queues: their settings, which agents may claim, and deleting them. The settings are a record that a
 * person can read; the driver keeps the work. Counts come from the work itself: a stored counter would be wrong after
 * the first crash.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/address/address.h"
#include "message/address.h"
#include "office/work/work.h"

#define QUEUE "queue"

/* ---- Who may claim ---- */

static struct mr_str
without_end_slash(const char *pattern)
{
	struct mr_str s = str_of(pattern);

	s.len -= s.len > 1 && s.ptr[s.len - 1] == '/';
	return s;
}

bool
office_lets_claim(const char *claimers, const char *agent)
{
	char want_short[MR_ADDRESS_MAX + 1], have_short[MR_ADDRESS_MAX + 1];
	struct mr_str want = without_end_slash(claimers), have = str_of(agent);

	if (str_eq(want, STR("*")) || pattern_fits(want, have))
		return true;
	/* "rig/crew/" + "*" is not "rig/" + "*": the pattern keeps its middle part, only the name is shortened. */
	if (memchr(want.ptr, '*', want.len))
		return pattern_fits(want, address_short(have, have_short));
	return str_eq(address_short(want, want_short), address_short(have, have_short));
}

enum mr_rc
office_check_claimer(const struct mr_queue *queue, const char *agent, struct mr_error *err)
{
	if (office_lets_claim(queue->claimers, agent))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%s' may not claim from the queue '%s'\nits claimers are '%.120s'", agent,
	    queue->name, queue->claimers);
}

static enum mr_rc
check_claimers(const char *claimers, struct mr_error *err)
{
	struct mr_str rest = without_end_slash(claimers), part;
	bool fine = rest.len > 0 && rest.len <= MR_ADDRESS_MAX;

	while (fine && str_cut(&rest, '/', &part))
		fine = str_eq(part, STR("*")) || address_check(part, IGNORED) == MR_OK;
	if (fine)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.80s' is not a pattern of agents\n"
	    "'*' means every agent; otherwise an address in which '*' stands for one whole part, as in 'rig/crew/*'",
	    claimers);
}

/* ---- Settings ---- */

static const char *const status_words[] = {
	[MR_QUEUE_ACTIVE] = "active",
	[MR_QUEUE_PAUSED] = "paused",
	[MR_QUEUE_CLOSED] = "closed",
};

void
mr_queue_done(struct mr_queue *queue)
{
	if (!queue)
		return;
	arena_free(queue->own);
	*queue = (struct mr_queue){ 0 };
}

static unsigned
small_number(const struct record *lines, const char *field, unsigned otherwise)
{
	int64_t n = record_int(lines, field, otherwise);

	return n < 0 || n > UINT32_MAX ? otherwise : (unsigned)n;
}

static bool
read_queue(void *ret, const char *name, struct record *lines)
{
	struct mr_queue *queue = ret;
	const char *claimers = record_get(lines, "Claimers"), *status = record_get(lines, "Status");

	*queue = (struct mr_queue){
		.claimers = claimers ? claimers : "*",
		.by_priority = ascii_caseeq(settings_text(lines, "Order"), "priority"),
		.max_claims = small_number(lines, "Max-Claims", 0),
		.attempts = small_number(lines, "Attempts", 3),
		/* An unknown word was written by a newer program: then work stops. */
		.status = status ? MR_QUEUE_PAUSED : MR_QUEUE_ACTIVE,
		.created_by = settings_text(lines, "Created-By"),
		.created_ms = record_time(lines, "Created"),
	};
	for (size_t i = 0; status && i < sizeof(status_words) / sizeof(status_words[0]); i++)
		if (ascii_caseeq(status, status_words[i]))
			queue->status = (enum mr_queue_status)i;
	if (!duration_parse(str_of(settings_text(lines, "Lease")), &queue->lease_ms) || queue->lease_ms <= 0 ||
	    queue->lease_ms > LEASE_MAX_MS)
		queue->lease_ms = LEASE_DEFAULT_MS;
	(void)snprintf(queue->name, sizeof(queue->name), "%s", name);
	return true;
}

enum mr_rc
mr_queue_get(struct mr_room *room, const char *name, struct mr_queue *ret, struct mr_error *err)
{
	return settings_get(room, QUEUE, name, read_queue, ret, &ret->own, err);
}

enum mr_rc
mr_queue_list(struct mr_room *room, struct mr_queues *ret, struct mr_error *err)
{
	return settings_list(room, QUEUE, sizeof(*ret->v), read_queue, ret, err);
}

enum mr_rc
mr_queue_create(struct mr_room *room, const struct mr_self *self, const struct mr_queue *settings, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	const char *claimers = settings->claimers ? settings->claimers : "*";
	int64_t lease_ms = settings->lease_ms > 0 ? settings->lease_ms : LEASE_DEFAULT_MS;
	char name[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, QUEUE, settings->name, name, err));
	TRY(office_not_fenced(room, self, err));
	TRY(target_name_free(room, QUEUE, name, err));
	TRY(check_claimers(claimers, err));
	TRY(lease_check(settings->lease_ms, err));
	buf_addf(&lines, "Name: %s\nClaimers: %s\nOrder: %s\nMax-Claims: %u\nLease: %llds\nAttempts: %u\nStatus: %s\n",
	    name, claimers, settings->by_priority ? "priority" : "fifo", settings->max_claims,
	    (long long)(lease_ms + 999) / 1000, settings->attempts, status_words[settings->status]);
	/* The place for the work first, because the settings make it a queue. */
	TRY(room->driver->make_box(room, room_box(QUEUE, name).z, err));
	return settings_create(room, QUEUE, name, self->agent, &lines, NULL, err);
}

enum mr_rc
mr_queue_set_status(struct mr_room *room, const char *name, enum mr_queue_status status, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, QUEUE, name, local, err));
	return settings_set(room, QUEUE, local, "Status", status_words[status], err);
}

/* ---- Deleting ---- */

static bool
note_undone(void *ctx, const struct queue_item *item)
{
	return names_add(ctx, str_of(item->id));
}

enum mr_rc
mr_queue_delete(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 }, now = { 0 };
	size_t ignored = 0, *dead = ret_dead ? ret_dead : &ignored;
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = mr_queue_get(room, name, &queue, err);

	/* A removal that was cut off may have left work without a queue. */
	if (rc == MR_NOTFOUND && force && target_name(room, QUEUE, name, local, IGNORED) == MR_OK &&
	    room->driver->remove_box(room, room_box(QUEUE, local).z, true, dead, IGNORED) == MR_OK && *dead > 0) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	if (force) {
		/* Closed first, so that nothing new arrives meanwhile. */
		TRY(mr_queue_set_status(room, queue.name, MR_QUEUE_CLOSED, err));
		/* Senders are told before the work goes to dead letters: if it is cut off here, some were told of a
		 * queue that still exists, and are not told again. */
		mr_auto(mr_names_done) struct mr_names undone = { 0 };

		TRY(room->driver->each_claim(room, room_box(QUEUE, queue.name).z,
		    QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED, note_undone, &undone, err));
		for (size_t i = 0; i < undone.n; i++) {
			mr_auto(mr_message_done) struct mr_message msg = { 0 };
			char key[32 + MR_ID_LEN];

			if (room_fetch_work(room, queue.name, undone.v[i], &msg, IGNORED) != MR_OK)
				continue; /* done meanwhile, or broken: then nobody can be told */
			(void)snprintf(key, sizeof(key), "queue-deleted-%s", msg.id);
			struct bounce bounce = {
				.from = msg.from, /* a queue cannot be a sender, and naming an agent would be false */
				.reason = "the queue was deleted",
				.key = key,
			};
			TRY(bounce_deliver(room, &bounce, &msg, err,
			    "This message waited in the queue '%s', which was deleted. No agent will do it.",
			    queue.name));
		}
	}
	rc = room->driver->remove_box(room, room_box(QUEUE, queue.name).z, force, dead, err);
	if (rc == MR_REFUSED)
		return mr_fail(err, MR_REFUSED,
		    "there is work in the queue '%s'\n"
		    "wait until it is done, or give --force: it goes to dead letters, and its senders are told",
		    queue.name);
	if (rc != MR_OK)
		return rc;
	/* The settings may have been removed with the work; then a queue of that name is a new one. */
	rc = mr_queue_get(room, queue.name, &now, err);
	if (rc == MR_OK && now.created_ms == queue.created_ms)
		rc = room->driver->record_drop(room, QUEUE, "", queue.name, err);
	return mr_unless(rc, MR_NOTFOUND, err);
}
