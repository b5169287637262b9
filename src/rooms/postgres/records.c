/* SPDX-License-Identifier: MIT */
/*
 * records.c - small values of the post office, their locks, and queues and channels as places. A lock is one of the
 * session: the server lets it go when this process ends. After a failover two may have it for a minute; what it guards
 * bears that.
 */
#include "rooms/postgres/postgres.h"

static enum mr_rc
no_record(const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no %s record '%s' of '%s'", kind, name, owner);
}

enum mr_rc
pg_slot_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("record_put");
	mr_auto(mr_names_done) struct mr_names poke = { 0 };

	PG_BIND(&c, TEXT(kind), TEXT(owner), TEXT(name), BYTES(text));
	pg_forget(owner[0] ? &pg_of(room)->self_memo : &pg_of(room)->room_memo);
	if (strcmp(kind, "nudge") == 0 && names_add(&poke, str_of(owner))) /* a wait ends by a nudge, too */
		c.poke[0] = &poke;
	return pg_run(room, &c, err);
}

enum mr_rc
pg_slot_record_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("record_get");

	switch (pg_small_record(pg_of(room), kind, owner, name, ret)) {
	case PG_MISSING:
		return no_record(kind, owner, name, err);
	case PG_THERE:
		return buf_ok(ret) ? MR_OK : mr_nomem(err);
	case PG_UNKNOWN:
		break;
	}
	PG_BIND(&c, TEXT(kind), TEXT(owner), TEXT(name));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return no_record(kind, owner, name, err);
	buf_add(ret, pg_get_bytes(&c, 0, 0));
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

enum mr_rc
pg_slot_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("record_drop");

	pg_forget(owner[0] ? &pg_of(room)->self_memo : &pg_of(room)->room_memo);
	PG_BIND(&c, TEXT(kind), TEXT(owner), TEXT(name), AGAIN);
	TRY(pg_run(room, &c, err));
	return pg_rc(&c) == PG_DONE ? MR_OK : no_record(kind, owner, name, err);
}

enum mr_rc
pg_slot_record_each(struct mr_room *room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name),
    void *ctx, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("record_each");
	bool go_on = true;

	if (pg_is_small(kind, owner) && pg_memo(pg_of(room), owner)) {
		mr_auto(free_ptr) char *lines = strdup(pg_memo(pg_of(room), owner)->small); /* fn may change records */

		for (char *at = lines, *next; at && *at && go_on; at = next) {
			char *name = at + strcspn(at, " ");

			next = at + strcspn(at, "\n");
			next += *next ? 1 : 0;
			name[strcspn(name, "\n")] = '\0';
			if (*name == ' ') {
				name[1 + strcspn(name + 1, " ")] = '\0';
				*name = '\0';
				go_on = strcmp(at, kind) != 0 || fn(ctx, name + 1);
			}
		}
		return lines ? MR_OK : mr_nomem(err);
	}
	PG_BIND(&c, TEXT(kind), TEXT(owner));
	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows) && go_on; i++)
		go_on = fn(ctx, pg_get_text(&c, i, 0));
	return MR_OK;
}

/* ---- Locks ---- */

void
pg_lock_free(struct pg_lock *lock)
{
	free(lock->kind);
	free(lock->owner);
	free(lock->name);
	free(lock);
}

static bool
is_same(const struct pg_lock *l, const char *kind, const char *owner, const char *name)
{
	return strcmp(l->kind, kind) == 0 && strcmp(l->owner, owner) == 0 && strcmp(l->name, name) == 0;
}

enum mr_rc
pg_slot_record_lock(struct mr_room *room, const char *kind, const char *owner, const char *name, int64_t wait_ms,
    void **ret_lock, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("record_lock");
	struct pg_lock *lock = calloc(1, sizeof(*lock));
	bool mine = false;

	if (!lock)
		return mr_nomem(err);
	*lock = (struct pg_lock){ .kind = strdup(kind), .owner = strdup(owner), .name = strdup(name) };
	for (const struct pg_lock *l = pg->locks; l; l = l->next)
		mine |= is_same(l, kind, owner, name);
	PG_BIND(&c, TEXT(kind), TEXT(owner), TEXT(name), INT(wait_ms > 0 ? wait_ms : 0), BOOL(mine));
	c.session = true;
	c.wait_ms = wait_ms;
	c.reads = true; /* with its answer the session is lost, and the lock with it */
	c.failed |= !lock->kind || !lock->owner || !lock->name;
	enum mr_rc rc = pg_run(room, &c, err);

	if (rc == MR_OK && pg_rc(&c) != PG_DONE)
		rc = mr_fail(err, MR_BUSY, "'%s/%s/%s' is locked by another command", kind, owner, name);
	if (rc != MR_OK) {
		pg_lock_free(lock);
		return rc;
	}
	pg_forget_all(pg); /* what is read behind the lock is what the one before wrote */
	lock->next = pg->locks;
	pg->locks = lock;
	*ret_lock = lock;
	return MR_OK;
}

void
pg_slot_record_unlock(struct mr_room *room, void *held)
{
	struct pg_lock *lock = held;
	mr_auto(pg_call_done) struct pg_call c = PG_READ("record_unlock");

	if (!lock)
		return;
	for (struct pg_lock **at = &pg_of(room)->locks; *at; at = &(*at)->next)
		if (*at == lock) {
			*at = lock->next;
			break;
		}
	PG_BIND(&c, TEXT(lock->kind), TEXT(lock->owner), TEXT(lock->name));
	if (pg_of(room)->conn) /* with the session it is gone already */
		(void)pg_run(room, &c, IGNORED);
	pg_lock_free(lock);
}

/* ---- Queues and channels ---- */

enum mr_rc
pg_slot_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("place_make");

	if (!box[0])
		return MR_OK;
	PG_BIND(&c, PLACE(box));
	return pg_run(room, &c, err);
}

enum mr_rc
pg_slot_remove_box(struct mr_room *room, const char *box, bool force, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("place_remove");
	bool queue = box_queue(box) != NULL;

	if (!strchr(box, ':')) /* nothing is lost: the mail goes to the dead letters */
		return pg_agent_remove(room, box, ret_dead, err);
	PG_BIND(&c, PLACE(box), BOOL(force || !queue), AGAIN);
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		break;
	case PG_REFUSED:
		return mr_fail(err, MR_REFUSED, "there is work in queue '%s': %lld messages", box_queue(box),
		    (long long)pg_get_int(&c, 0, 1));
	default:
		return mr_fail(
		    err, MR_NOTFOUND, "no %s '%s' in this room", queue ? "queue" : "channel", strchr(box, ':') + 1);
	}
	if (ret_dead)
		*ret_dead = (size_t)pg_get_int(&c, 0, 1);
	return MR_OK;
}
