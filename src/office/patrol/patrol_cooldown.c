/* SPDX-License-Identifier: MIT */
/*
 * patrol_cooldown.c - a type that is handled at most once in so long, for each value of its key (a bead that is
 * dispatched again and again). The time of the last start counts, whether it succeeded or not; who was killed in
 * between may finish what he had begun. The records are the whole room's: two mailboxes with the same type share them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/patrol/patrol.h"

#define KIND "cooldown"
#define LOCK_WAIT_MS 10000

static enum mr_rc
name_of(const struct errand *e, char ret[33], struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s\n", e->def->name);
	if (e->def->cooldown_key)
		type_fill(&text, e->def->cooldown_key, &e->values);
	if (!buf_ok(&text))
		return mr_nomem(err);
	notes_name(buf_z(&text), ret);
	return MR_OK;
}

static int64_t
left_of(const struct errand *e, const char *name, struct mr_error *err)
{
	mr_auto(record_done) struct record last = { 0 };

	if (notes_load(e->p->room, KIND, "", name, &last, err) != MR_OK)
		return 0;
	const char *id = record_get(&last, "Id");
	int64_t since = clock_now_ms() - record_time(&last, "At");

	if (!id || since < 0 || since >= e->def->cooldown_ms)
		return 0;
	if (strcmp(id, e->msg.id) == 0 && e->note.state == NOTE_RUNNING)
		return 0;
	return e->def->cooldown_ms - since;
}

int64_t
cooldown_left(const struct errand *e)
{
	struct mr_error ignored = { 0 };
	char name[33];

	if (e->def->cooldown_ms <= 0 || name_of(e, name, &ignored) != MR_OK)
		return 0;
	return left_of(e, name, &ignored);
}

static enum mr_rc
take(const struct errand *e, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char now[RFC3339_LEN + 1];

	if (left_of(e, name, err) > 0)
		return mr_fail(err, MR_BUSY, "another message of that type was just handled");
	time_rfc3339(clock_now_ms(), now);
	buf_addf(&text, "Type: %s\nAt: %s\nId: %s\n", e->def->name, now, e->msg.id);
	if (!buf_ok(&text))
		return mr_nomem(err);
	return notes_put(e->p->room, KIND, "", name, buf_str(&text), err);
}

enum mr_rc
cooldown_take(const struct errand *e, struct mr_error *err)
{
	void *lock = NULL;
	char name[33];

	if (e->def->cooldown_ms <= 0)
		return MR_OK;
	enum mr_rc rc = name_of(e, name, err);

	if (rc == MR_OK)
		rc = notes_lock(e->p->room, KIND, "", LOCK_WAIT_MS, &lock, err);
	if (rc == MR_OK)
		rc = take(e, name, err);
	notes_unlock(e->p->room, lock);
	return rc;
}
