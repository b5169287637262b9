/* SPDX-License-Identifier: MIT */
/* mem_records.c - small values of the post office. */
#include "base/error.h"
#include "support/mem/mem.h"
#include <stdlib.h>

void
mem_record_done(struct mem_record *record)
{
	free(record->kind);
	free(record->owner);
	free(record->name);
	buf_done(&record->text);
}

static bool
is_of(const struct mem_record *record, const char *kind, const char *owner)
{
	return strcmp(record->kind, kind) == 0 && strcmp(record->owner, owner) == 0;
}

static struct mem_record *
find(struct mem *mem, const char *kind, const char *owner, const char *name)
{
	for (size_t i = 0; i < mem->records_n; i++)
		if (is_of(&mem->records[i], kind, owner) && strcmp(mem->records[i].name, name) == 0)
			return &mem->records[i];
	return NULL;
}

/* A queue or channel works as soon as its settings are found. */
static enum mr_rc
make_what_it_settles(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	if (owner[0] == '\0' && strcmp(kind, "queue") == 0)
		return mem_queue_make(room, name, err);
	if (owner[0] == '\0' && strcmp(kind, "channel") == 0)
		return mem_channel_make(room, name, err);
	return MR_OK;
}

enum mr_rc
mem_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_record *old = find(mem, kind, owner, name);
	struct mem_record *grown = NULL;
	struct buf bytes = BUF_INIT;

	buf_add(&bytes, text);
	if (!buf_ok(&bytes))
		goto nomem;
	if (old) {
		buf_done(&old->text);
		old->text = bytes;
		return MR_OK;
	}
	if (make_what_it_settles(room, kind, owner, name, err) != MR_OK) {
		buf_done(&bytes);
		return err->code;
	}
	grown = realloc(mem->records, (mem->records_n + 1) * sizeof *grown);
	if (!grown)
		goto nomem;
	mem->records = grown;
	struct mem_record record = {
		.kind = strdup(kind), .owner = strdup(owner), .name = strdup(name), .text = bytes
	};

	if (!record.kind || !record.owner || !record.name) {
		mem_record_done(&record);
		return mr_nomem(err);
	}
	mem->records[mem->records_n++] = record;
	return MR_OK;
nomem:
	buf_done(&bytes);
	return mr_nomem(err);
}

static enum mr_rc
no_record(const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no %s record '%s' of '%s'", kind, name, owner);
}

enum mr_rc
mem_record_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err)
{
	const struct mem_record *record = find(mem_of(room), kind, owner, name);

	if (!record)
		return no_record(kind, owner, name, err);
	buf_add(ret, buf_str(&record->text));
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

enum mr_rc
mem_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_record *record = find(mem, kind, owner, name);

	if (!record)
		return no_record(kind, owner, name, err);
	mem_record_done(record);
	*record = mem->records[--mem->records_n];
	return MR_OK;
}

enum mr_rc
mem_record_each(struct mr_room *room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name),
    void *ctx, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	mr_auto(mr_names_done) struct mr_names names = { 0 }; /* fn may drop what it is shown */

	for (size_t i = 0; i < mem->records_n; i++)
		if (is_of(&mem->records[i], kind, owner) && !names_add(&names, str_of(mem->records[i].name)))
			return mr_nomem(err);
	for (size_t i = 0; i < names.n; i++)
		if (!fn(ctx, names.v[i]))
			break;
	return MR_OK;
}

/* ---- Locks: a record of their own kind ---- */

#define LOCK_KIND "(lock)"

enum mr_rc
mem_record_lock(struct mr_room *room, const char *kind, const char *owner, const char *name, int64_t wait_ms,
    void **ret_lock, struct mr_error *err)
{
	mr_auto(buf_done) struct buf key = BUF_INIT;

	(void)wait_ms; /* a room in memory has one process: the caller has the lock */
	buf_addf(&key, "%s/%s/%s", kind, owner, name);
	if (!buf_ok(&key))
		return mr_nomem(err);
	if (find(mem_of(room), LOCK_KIND, buf_z(&key), "lock"))
		return mr_fail(err, MR_BUSY, "'%s' is locked", buf_z(&key));
	if (mem_record_put(room, LOCK_KIND, buf_z(&key), "lock", STR("held"), err) != MR_OK)
		return err->code;
	*ret_lock = buf_take(&key);
	return *ret_lock ? MR_OK : mr_nomem(err);
}

void
mem_record_unlock(struct mr_room *room, void *lock)
{
	struct mr_error ignored = { 0 };

	if (lock)
		(void)mem_record_drop(room, LOCK_KIND, lock, "lock", &ignored);
	free(lock);
}
