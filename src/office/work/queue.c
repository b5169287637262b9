/* SPDX-License-Identifier: MIT */
/*
 * queue.c - work queues: their settings, who may claim, and what is in them. The settings are a record that a
 * person can read; the work is the driver's. Counts are taken from what is there: a counter would be wrong
 * after the first crash.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/address/address.h"
#include "message/address.h"
#include "office/office.h"

#define QUEUE "queue"
#define LEASE_DEFAULT_MS ((int64_t)10 * 60 * 1000)

enum mr_rc
office_queue_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if ((d->abilities & ROOM_QUEUES) && DRIVER_HAS(d, queue_make) && DRIVER_HAS(d, queue_remove) &&
	    DRIVER_HAS(d, queue_claim) && DRIVER_HAS(d, queue_settle) && DRIVER_HAS(d, queue_extend) &&
	    DRIVER_HAS(d, queue_each) && DRIVER_HAS(d, queue_fetch) && DRIVER_HAS(d, queue_find_claim))
		return MR_OK;
	return office_lacks(room, "work queues", err);
}

/* ---- Who may claim ---- */

static struct mr_str
take_part(struct mr_str *rest)
{
	const char *slash = memchr(rest->ptr, '/', rest->len);
	size_t len = slash ? (size_t)(slash - rest->ptr) : rest->len;
	struct mr_str part = { rest->ptr, len };

	rest->ptr += len + (slash ? 1 : 0);
	rest->len -= len + (slash ? 1 : 0);
	return part;
}

/* One spelling for those that mean the same agent: "mayor/" and "rig/mayor" are "mayor", "rig/crew/max" and
 * "rig/polecats/max" are "rig/max". ret has room for MR_ADDRESS_MAX + 1. */
static struct mr_str
short_spelling(struct mr_str name, char *ret)
{
	struct mr_str rest = name, part[3] = { 0 };
	size_t n = 0, len = 0;

	while (rest.len > 0 && n < 3)
		part[n++] = take_part(&rest);
	if (rest.len > 0)
		return name;
	if (n == 2 && (str_eq(part[1], STR("mayor")) || str_eq(part[1], STR("deacon"))))
		return part[1];
	if (n < 3 || !(str_eq(part[1], STR("crew")) || str_eq(part[1], STR("polecats"))))
		return name;
	memcpy(ret, part[0].ptr, part[0].len);
	len = part[0].len;
	ret[len++] = '/';
	memcpy(ret + len, part[2].ptr, part[2].len);
	return (struct mr_str){ ret, len + part[2].len };
}

static struct mr_str
without_end_slash(const char *pattern)
{
	struct mr_str s = str_of(pattern);

	if (s.len > 1 && s.ptr[s.len - 1] == '/')
		s.len--;
	return s;
}

bool
office_lets_claim(const char *claimers, const char *agent)
{
	char want_short[MR_ADDRESS_MAX + 1], have_short[MR_ADDRESS_MAX + 1];
	struct mr_str want = without_end_slash(claimers), have = str_of(agent);

	if (str_eq(want, STR("*")) || pattern_fits(want, have))
		return true;
	/* "rig/crew/" + "*" is not "rig/" + "*": a pattern keeps its middle, only the name is shortened. */
	if (memchr(want.ptr, '*', want.len))
		return pattern_fits(want, short_spelling(have, have_short));
	return str_eq(short_spelling(want, want_short), short_spelling(have, have_short));
}

static enum mr_rc
check_claimers(const char *claimers, struct mr_error *err)
{
	struct mr_str rest = without_end_slash(claimers);
	struct mr_error why = { 0 };
	bool fine = rest.len > 0 && rest.len <= MR_ADDRESS_MAX;

	while (fine && rest.len > 0) {
		struct mr_str part = take_part(&rest);

		fine = str_eq(part, STR("*")) || address_check(part, &why) == MR_OK;
	}
	if (fine)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.80s' is no pattern of agents\n"
	    "'*' is everybody; else an address in which '*' stands for one whole part, as in 'rig/crew/*'",
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

static enum mr_queue_status
status_of(const char *word)
{
	for (size_t i = 0; word && i < sizeof(status_words) / sizeof(status_words[0]); i++)
		if (ascii_caseeq(word, status_words[i]))
			return (enum mr_queue_status)i;
	/* A word that we do not know was written by a newer program, and stops what we may not do. */
	return word ? MR_QUEUE_PAUSED : MR_QUEUE_ACTIVE;
}

static unsigned
small_number(const struct record *lines, const char *field, unsigned otherwise)
{
	int64_t n = record_int(lines, field, otherwise);

	return n < 0 || n > UINT32_MAX ? otherwise : (unsigned)n;
}

static void
read_settings(struct record *lines, const char *name, struct mr_queue *ret)
{
	const char *claimers = record_get(lines, "Claimers"), *order = record_get(lines, "Order"),
		   *lease = record_get(lines, "Lease"), *by = record_get(lines, "Created-By");

	*ret = (struct mr_queue){
		.claimers = claimers ? claimers : "*",
		.by_priority = order && ascii_caseeq(order, "priority"),
		.max_claims = small_number(lines, "Max-Claims", 0),
		.attempts = small_number(lines, "Attempts", 3),
		.status = status_of(record_get(lines, "Status")),
		.created_by = by ? by : "",
		.created_ms = record_time(lines, "Created"),
		.own = lines->own,
	};
	if (!lease || !duration_parse(str_of(lease), &ret->lease_ms) || ret->lease_ms <= 0 ||
	    ret->lease_ms > LEASE_MAX_MS)
		ret->lease_ms = LEASE_DEFAULT_MS;
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	lines->own = NULL; /* the strings are the queue's now */
}

enum mr_rc
mr_queue_get(struct mr_room *room, const char *name, struct mr_queue *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = office_queue_able(room, err);

	if (rc == MR_OK)
		rc = settings_name(QUEUE, name, local, err);
	if (rc == MR_OK)
		rc = settings_load(room, QUEUE, local, &lines, err);
	if (rc == MR_OK)
		read_settings(&lines, local, ret);
	return rc;
}

enum mr_rc
mr_queue_each(struct mr_room *room, mr_queue_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error broken = { 0 };
	enum mr_rc rc = office_queue_able(room, err);

	if (rc == MR_OK)
		rc = settings_names(room, QUEUE, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };

		rc = mr_queue_get(room, names.v[i], &queue, err);
		if (rc == MR_NOTFOUND) { /* deleted this very moment */
			*err = (struct mr_error){ 0 };
			rc = MR_OK;
			continue;
		}
		if (rc == MR_CORRUPT) { /* one that is broken does not hide the others */
			broken = broken.code == MR_OK ? *err : broken;
			rc = MR_OK;
			continue;
		}
		if (rc == MR_OK && !fn(ctx, &queue))
			break;
	}
	if (rc == MR_OK && broken.code != MR_OK)
		*err = broken;
	return rc == MR_OK ? broken.code : rc;
}

static enum mr_rc
write_settings(const char *name, const struct mr_queue *q, struct buf *out, struct mr_error *err)
{
	int64_t lease_s = ((q->lease_ms > 0 ? q->lease_ms : LEASE_DEFAULT_MS) + 999) / 1000;
	char lease[32], max_claims[16], attempts[16];
	const struct {
		const char *field, *value;
	} lines[] = {
		{ "Name", name },
		{ "Claimers", q->claimers ? q->claimers : "*" },
		{ "Order", q->by_priority ? "priority" : "fifo" },
		{ "Max-Claims", max_claims },
		{ "Lease", lease },
		{ "Attempts", attempts },
		{ "Status", status_words[q->status] },
	};
	enum mr_rc rc = MR_OK;

	(void)snprintf(lease, sizeof(lease), "%llds", (long long)lease_s);
	(void)snprintf(max_claims, sizeof(max_claims), "%u", q->max_claims);
	(void)snprintf(attempts, sizeof(attempts), "%u", q->attempts);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && rc == MR_OK; i++)
		rc = header_add(out, lines[i].field, str_of(lines[i].value), err);
	return rc;
}

enum mr_rc
mr_queue_create(struct mr_room *room, const struct mr_self *self, const struct mr_queue *settings, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	char name[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = office_queue_able(room, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = settings_name(QUEUE, settings->name, name, err);
	if (rc == MR_OK)
		rc = target_name_free(room, QUEUE, name, err);
	if (rc == MR_OK)
		rc = check_claimers(settings->claimers ? settings->claimers : "*", err);
	if (rc == MR_OK && (settings->lease_ms < 0 || settings->lease_ms > LEASE_MAX_MS))
		rc = mr_fail(err, MR_REFUSED, "a lease is more than nothing and at most 366 days");
	if (rc == MR_OK)
		rc = write_settings(name, settings, &lines, err);
	/* The place for the work first: the settings are what makes it a queue. */
	if (rc == MR_OK)
		rc = room->driver->queue_make(room, name, err);
	if (rc == MR_OK)
		rc = settings_create(room, QUEUE, name, self->agent, &lines, err);
	return rc;
}

enum mr_rc
mr_queue_set_status(struct mr_room *room, const char *name, enum mr_queue_status status, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = office_queue_able(room, err);

	if (rc == MR_OK)
		rc = settings_name(QUEUE, name, local, err);
	if (rc != MR_OK)
		return rc;
	return settings_change(
	    room, QUEUE, local, (struct settings_edit){ SETTINGS_SET, "Status", status_words[status] }, NULL, err);
}

/* ---- Deleting ---- */

struct undone {
	struct candidates work;
};

static bool
note_undone(void *ctx, const struct queue_item *item)
{
	struct undone *undone = ctx;
	struct mr_message msg = { .priority = item->priority };

	(void)snprintf(msg.id, sizeof(msg.id), "%s", item->id);
	return candidates_add(&undone->work, &msg);
}

/* Before the work goes to dead letters: cut off here, some senders were told of a queue that is still there,
 * and are not told again. */
static enum mr_rc
tell_senders(struct mr_room *room, const char *name, struct mr_error *err)
{
	struct undone undone = { 0 };
	mr_auto(buf_done) struct buf story = BUF_INIT;
	enum mr_rc rc = room->driver->queue_each(
	    room, name, QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED, note_undone, &undone, err);

	if (rc == MR_OK && undone.work.failed)
		rc = mr_nomem(err);
	buf_addf(&story, "This message waited in the queue '%s', which was deleted. Nobody will do it.", name);
	for (size_t i = 0; i < undone.work.n && rc == MR_OK; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };
		char key[32 + MR_ID_LEN];

		if (room->driver->queue_fetch(room, name, undone.work.v[i].id, &msg, &ignored) != MR_OK)
			continue; /* done meanwhile, or broken: then nobody can be told */
		(void)snprintf(key, sizeof(key), "queue-deleted-%s", msg.id);
		struct bounce bounce = {
			.from = msg.from, /* a queue has no voice of its own, and an agent's would be a lie */
			.story = buf_z(&story),
			.reason = "the queue was deleted",
			.key = key,
		};

		rc = bounce_deliver(room, &bounce, &msg, err);
	}
	candidates_done(&undone.work);
	return rc;
}

/* They may have gone with the work; then a queue of that name is another's, made since. */
static enum mr_rc
drop_settings(struct mr_room *room, const struct mr_queue *queue, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue now = { 0 };
	enum mr_rc rc = mr_queue_get(room, queue->name, &now, err);

	if (rc == MR_OK && now.created_ms == queue->created_ms)
		rc = room->driver->record_drop(room, QUEUE, "", queue->name, err);
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

/* A removal that was cut off may have left work without a queue. */
static enum mr_rc
bury_rest(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };
	size_t dead = 0;

	if (settings_name(QUEUE, name, local, &ignored) != MR_OK ||
	    room->driver->queue_remove(room, local, true, &dead, &ignored) != MR_OK || dead == 0)
		return err->code;
	*err = (struct mr_error){ 0 };
	if (ret_dead)
		*ret_dead = dead;
	return MR_OK;
}

enum mr_rc
mr_queue_delete(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	size_t dead = 0;
	enum mr_rc rc = mr_queue_get(room, name, &queue, err);

	if (rc == MR_NOTFOUND && force)
		return bury_rest(room, name, ret_dead, err);
	if (rc != MR_OK)
		return rc;
	if (force) {
		/* Closed first, so that nothing new arrives behind our back. */
		rc = mr_queue_set_status(room, queue.name, MR_QUEUE_CLOSED, err);
		if (rc == MR_OK)
			rc = tell_senders(room, queue.name, err);
	}
	if (rc == MR_OK)
		rc = room->driver->queue_remove(room, queue.name, force, &dead, err);
	if (rc == MR_REFUSED)
		return mr_fail(err, MR_REFUSED,
		    "there is work in the queue '%s'\n"
		    "wait until it is done, or give --force: it goes to dead letters, and its senders are told",
		    queue.name);
	if (rc == MR_OK)
		rc = drop_settings(room, &queue, err);
	if (rc != MR_OK)
		return rc;
	if (ret_dead)
		*ret_dead = dead;
	return MR_OK;
}
