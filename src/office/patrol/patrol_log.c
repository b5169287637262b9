/* SPDX-License-Identifier: MIT */
/*
 * patrol_log.c - what was done. For messages it is their notes, which are durable before anything is acknowledged: the
 * log can lack nothing that was done. What is no message's is kept as lines of one record, the newest of them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/patrol/patrol.h"
#include <stdlib.h>

#define EVENT_KIND "patrol"
#define EVENTS "events"
#define EVENTS_MAX 300
#define LOCK_WAIT_MS 2000

void
patrol_tell(const struct patrol *p, const struct mr_patrol_step *step)
{
	if (p->options->fn)
		p->options->fn(p->options->ctx, step);
}

/* ---- Events ---- */

static void
copy_newest(struct buf *out, const struct record *lines)
{
	struct mr_error ignored = { 0 };

	for (size_t i = lines->n > EVENTS_MAX - 1 ? lines->n - (EVENTS_MAX - 1) : 0; i < lines->n; i++)
		(void)header_add(out, lines->lines[i].name, str_of(lines->lines[i].value), &ignored);
}

static void
write_event(struct patrol *p, const struct mr_patrol_step *step)
{
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT, clean = BUF_INIT;
	struct mr_error ignored = { 0 };
	const char *agent = p->self->agent;
	char at[RFC3339_LEN + 1];
	void *lock = NULL;

	time_rfc3339(step->at_ms, at);
	buf_addf(&line, "%s %s %s %s", at, step->what, *step->type ? step->type : "-", step->result);
	header_clean(&clean, buf_str(&line));
	if (notes_lock(p->room, EVENT_KIND, agent, LOCK_WAIT_MS, &lock, &ignored) != MR_OK)
		return;
	if (notes_load(p->room, EVENT_KIND, agent, EVENTS, &lines, &ignored) == MR_OK) {
		copy_newest(&text, &lines);
		if (header_add(&text, "Did", buf_str(&clean), &ignored) == MR_OK && buf_ok(&text))
			(void)notes_put(p->room, EVENT_KIND, agent, EVENTS, buf_str(&text), &ignored);
	}
	notes_unlock(p->room, lock);
}

void
patrol_event(struct patrol *p, const char *what, const char *type, const char *result)
{
	struct mr_patrol_step step = {
		.at_ms = clock_now_ms(),
		.what = what,
		.id = "",
		.type = type,
		.from = "",
		.handler = "",
		.result = result,
	};

	p->count.cared++;
	patrol_tell(p, &step);
	if (!p->options->dry_run)
		write_event(p, &step);
}

/* ---- Reading ---- */

struct entry {
	struct mr_patrol_step step;
	size_t place; /* as it was written down: several things happen within a millisecond */
};
struct log {
	struct entry *v;
	size_t n, cap;
	struct arena *own;
	bool failed;
};

static void
keep(struct log *log, struct mr_patrol_step step)
{
	if (log->n == log->cap) {
		size_t cap = log->cap ? 2 * log->cap : 64;
		struct entry *v = reallocarray(log->v, cap, sizeof(*v));

		if (!v) {
			log->failed = true;
			return;
		}
		log->v = v;
		log->cap = cap;
	}
	log->v[log->n] = (struct entry){ .step = step, .place = log->n };
	log->n++;
}

static const char *
own(struct log *log, const char *text)
{
	const char *copy = arena_dup(&log->own, str_of(text ? text : ""));

	log->failed |= !copy;
	return copy ? copy : "";
}

static enum mr_rc
read_note(struct mr_room *room, const char *agent, const char *id, struct log *log, struct mr_error *err)
{
	mr_auto(note_done) struct note note = { 0 };
	struct mr_patrol_step step;
	enum mr_rc rc = note_load(room, agent, id, &note, err);

	for (size_t i = 0; i < note.did.n && rc == MR_OK; i++) {
		if (!note_step(&note, note.did.v[i], own(log, id), &log->own, &step))
			continue;
		step.type = own(log, step.type);
		step.from = own(log, step.from);
		step.handler = own(log, step.handler);
		keep(log, step);
	}
	return rc;
}

static void
read_event(struct log *log, const char *line)
{
	char *rest = arena_dup(&log->own, str_of(line));
	const char *at = rest ? strsep(&rest, " ") : NULL;
	const char *what = rest ? strsep(&rest, " ") : NULL;
	const char *type = rest ? strsep(&rest, " ") : NULL;
	struct mr_patrol_step step = { .id = "", .from = "", .handler = "", .result = rest ? rest : "" };

	if (!type || !time_parse_rfc3339(str_of(at), &step.at_ms))
		return;
	step.what = what;
	step.type = strcmp(type, "-") == 0 ? "" : type;
	keep(log, step);
}

static int
by_time(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;

	if (a->step.at_ms != b->step.at_ms)
		return a->step.at_ms < b->step.at_ms ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

static enum mr_rc
read_all(struct mr_room *room, const char *agent, struct log *log, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(record_done) struct record events = { 0 };
	enum mr_rc rc = notes_names(room, NOTE_KIND, agent, &ids, err);

	for (size_t i = 0; i < ids.n && rc == MR_OK; i++)
		rc = read_note(room, agent, ids.v[i], log, err);
	if (rc == MR_OK)
		rc = notes_load(room, EVENT_KIND, agent, EVENTS, &events, err);
	for (size_t i = 0; i < events.n && rc == MR_OK; i++)
		read_event(log, events.lines[i].value);
	return rc == MR_OK && log->failed ? mr_nomem(err) : rc;
}

enum mr_rc
mr_patrol_log(struct mr_room *room, const char *agent, size_t limit, mr_patrol_fn *fn, void *ctx, struct mr_error *err)
{
	struct log log = { 0 };
	enum mr_rc rc = notes_able(room, err);

	if (rc == MR_OK)
		rc = read_all(room, agent, &log, err);
	if (rc == MR_OK && log.n > 1)
		qsort(log.v, log.n, sizeof(*log.v), by_time);
	for (size_t i = limit > 0 && log.n > limit ? log.n - limit : 0; i < log.n && rc == MR_OK; i++)
		fn(ctx, &log.v[i].step);
	free(log.v);
	arena_free(log.own);
	return rc;
}

/* ---- Forgetting ---- */

static bool
is_over(struct mr_room *room, const char *agent, const char *id, int64_t before_ms)
{
	mr_auto(note_done) struct note note = { 0 };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };

	if (note_load(room, agent, id, &note, &ignored) != MR_OK || note.at_ms > before_ms ||
	    note.state == NOTE_RUNNING)
		return false;
	/* What could be taken for new mail is remembered as long as it lies there. */
	return room->driver->fetch(room, agent, id, office_folders(room, MR_INBOX | MR_HELD), SCAN_NAMES, &msg,
		   &ignored) == MR_NOTFOUND;
}

void
patrol_forget_old(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	struct mr_error ignored = { 0 };
	int64_t before_ms = clock_now_ms() - p->set.keep_ms;

	if (p->set.keep_ms <= 0 || notes_names(p->room, NOTE_KIND, p->self->agent, &ids, &ignored) != MR_OK)
		return;
	/* Ids begin with their time: the first that is young enough ends it. */
	for (size_t i = 0; i < ids.n && id_time_ms(ids.v[i]) < before_ms; i++)
		if (is_over(p->room, p->self->agent, ids.v[i], before_ms))
			notes_drop(p->room, NOTE_KIND, p->self->agent, ids.v[i]);
}
