/* SPDX-License-Identifier: MIT */
/* inject.c - what an agent is to be told now: see inject.h. */
#include "office/mail/mail.h"
#include "office/tell/inject.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fence.h"
#include "base/id.h"
#include "base/text.h"
#include "message/type.h"
#include "office/types/types.h"
#include "office/nudge/nudge.h"
#include <stdlib.h>

/* ---- Gathering ---- */

static const char *
keep(struct mr_injection *inj, struct mr_str s)
{
	const char *kept = arena_dup(&inj->own, s);

	if (!kept)
		inj->failed = true;
	return kept ? kept : "";
}

/* Shown, and never looked up. */
static const char *
keep_name(struct mr_injection *inj, const char *address)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	office_name(inj->room, address, &name);
	inj->failed |= name.failed;
	return keep(inj, buf_str(&name));
}

static struct inject_item *
new_item(struct mr_injection *inj)
{
	if (inj->n == inj->cap) {
		size_t cap = inj->cap ? 2 * inj->cap : 16;
		struct inject_item *items = reallocarray(inj->items, cap, sizeof(*items));

		if (!items) {
			inj->failed = true;
			return NULL;
		}
		inj->items = items;
		inj->cap = cap;
	}
	inj->items[inj->n] = (struct inject_item){ 0 };
	return &inj->items[inj->n++];
}

/* What its list does not need is not kept: there may be thousands of unread messages. */
static void
add_item(struct mr_injection *inj, const struct mr_message *msg, const struct mr_error *broken)
{
	const char *color = mr_message_header(msg, "Color");
	struct inject_item *item = new_item(inj);

	if (!item)
		return;
	(void)snprintf(item->id, sizeof(item->id), "%s", msg->id);
	item->place = msg->place;
	item->from = keep_name(inj, msg->from);
	item->subject = keep(inj, str_of(msg->subject));
	item->color = keep(inj, str_of(color ? color : ""));
	item->priority = msg->priority;
	item->handoff = successor_is_own(msg, inj->self.agent);
	item->told = announced_listed(&inj->before, msg->id);
	item->unproven = msg->proof == MR_UNPROVEN;
	item->broken = broken->code != MR_OK ? keep(inj, str_of(broken->message)) : NULL;
	struct mr_str text =
	    inject_trimmed((struct mr_str){ msg->body ? msg->body : "", msg->body ? msg->body_len : 0 });
	bool first = inj->n == 1 && text.len <= 4 * (size_t)INJECT_WHOLE_CHARS;

	if ((inj->format == MR_INJECT_TEAMS || first) && msg->body)
		item->body = (struct mr_str){ keep(inj, (struct mr_str){ msg->body, msg->body_len }), msg->body_len };
	if (inj->failed)
		item->body.len = 0;
}

/* It is told once, as mail is: what nobody can read would be lost in silence otherwise. */
static void
add_unreadable(struct mr_injection *inj, const char *id, const char *path, const struct mr_error *why)
{
	mr_auto(buf_done) struct buf what = BUF_INIT;
	struct inject_item *item = inj->urgent_only ? NULL : new_item(inj);

	buf_addf(&what, "%s: %s", path, why->message);

	if (!item)
		return;
	(void)snprintf(item->id, sizeof(item->id), "%s", id);
	item->from = item->color = "";
	item->subject = keep(inj, buf_str(&what));
	item->priority = MR_LOW;
	item->unreadable = true;
}

/* Told already, and not again? */
static bool
is_quiet(struct mr_injection *inj, const char *id)
{
	const struct announced_id *told = announced_find(&inj->before, id);

	if (!told)
		return false;
	struct announced_id *still = announced_add(&inj->unread, id, told->again);
	int64_t age_s = clock_now_ms() / 1000 - told->at_s;
	bool lately = !inj->insist && age_s >= 0 && age_s < INJECT_AGAIN_S;
	bool quiet = !told->counted && (!told->again || lately);

	if (still) {
		still->counted = told->counted;
		still->unreadable = told->unreadable;
		still->own = told->own;
		still->at_s = told->at_s;
	} else {
		inj->failed = true;
	}
	inj->quiet += quiet && !told->unreadable && !told->own;
	return quiet;
}

static void
consider(struct mr_injection *inj, const struct mr_message *msg)
{
	struct mr_error broken = { 0 };

	if (inj->urgent_only && (msg->priority != MR_URGENT || announced_listed(&inj->before, msg->id)))
		return;
	/* Those are for a patrol. */
	if (!mr_is_control(inj->room, inj->self.agent, msg, &broken))
		add_item(inj, msg, &broken);
}

static bool
note_name(void *ctx, const struct mr_message *msg)
{
	return candidates_add(ctx, msg);
}

/* What was only counted is listed when its turn comes, so many at a time: only those are opened. */
static bool
waits_for_turn(struct mr_injection *inj, const struct candidate *c, size_t *turns)
{
	const struct announced_id *told = announced_find(&inj->before, c->id);

	if (!told || !told->counted || ((!inj->urgent_only || c->priority == MR_URGENT) && ++*turns <= INJECT_LIST_MAX))
		return false;
	inj->quiet++;
	return true;
}

/* A single message may be shown with its text. */
static enum scan_depth
depth_of(const struct mr_injection *inj, const struct candidates *ids)
{
	size_t news = 0;

	for (size_t i = 0; i < ids->n && news < 2; i++) {
		const struct announced_id *told = announced_find(&inj->before, ids->v[i].id);

		news += !told || told->again || told->counted;
	}
	return inj->format == MR_INJECT_TEAMS || news == 1 ? SCAN_BODIES : SCAN_HEADERS;
}

/* Where mail is found by its id: names first, then what is new, the more urgent first. */
static enum mr_rc
gather_by_name(struct mr_injection *inj, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };
	mr_auto(candidates_done) struct candidates ids = { 0 };
	size_t turns = 0;

	scan_sweep(inj->room, inj->self.agent); /* what a dead process held is unread again */
	enum mr_rc rc = office_scan(inj->room, inj->self.agent, &want, note_name, &ids, err);

	if (ids.failed)
		return mr_nomem(err);
	if (rc != MR_OK || ids.n == 0)
		return rc;
	candidates_sort(&ids, MR_BY_PRIORITY);
	announced_load(inj->room, &inj->self, &inj->before);
	enum scan_depth depth = depth_of(inj, &ids);

	for (size_t i = 0; i < ids.n && !inj->failed; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error trouble = { 0 };

		const char *id = ids.v[i].id;

		if (is_quiet(inj, id) || waits_for_turn(inj, &ids.v[i], &turns))
			continue;
		rc = inj->room->driver->fetch(inj->room, inj->self.agent, id, MR_INBOX, depth, &msg, &trouble);
		if (rc == MR_OK && !(msg.flags & MR_SEEN))
			consider(inj, &msg);
		else if (rc != MR_OK && rc != MR_NOTFOUND) /* read or held this very moment */
			add_unreadable(inj, id, id, &trouble);
	}
	return MR_OK;
}

static bool
consider_seen(void *ctx, const struct mr_message *msg)
{
	struct mr_injection *inj = ctx;

	if (!(msg->flags & MR_SEEN) && !is_quiet(inj, msg->id))
		consider(inj, msg);
	return !inj->failed;
}

static void
note_unreadable(void *ctx, const char *path, const struct mr_error *err)
{
	struct mr_injection *inj = ctx;
	char id[MR_ID_LEN + 1];

	id_from_name(0, str_of(path), id);
	if (!is_quiet(inj, id))
		add_unreadable(inj, id, path, err);
}

/* In the rooms of other programs finding one message costs as much as going through all. */
static enum mr_rc
gather_by_scan(struct mr_injection *inj, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX,
		.depth = SCAN_BODIES,
		.unread_only = true,
		.trouble = note_unreadable,
		.trouble_ctx = inj };

	announced_load(inj->room, &inj->self, &inj->before);
	return office_scan(inj->room, inj->self.agent, &want, consider_seen, inj, err);
}

/* ---- Answers that did not come ---- */

static void
note_due(void *ctx, const struct mr_due *due)
{
	struct mr_injection *inj = ctx;

	if (inj->due_n == inj->due_cap) {
		size_t cap = inj->due_cap ? 2 * inj->due_cap : 8;
		struct inject_due *v = reallocarray(inj->due, cap, sizeof(*v));

		if (!v) {
			inj->failed = true;
			return;
		}
		inj->due = v;
		inj->due_cap = cap;
	}
	struct inject_due *d = &inj->due[inj->due_n++];

	(void)snprintf(d->id, sizeof(d->id), "%s", due->id);
	d->to = keep_name(inj, due->to);
	d->subject = keep(inj, str_of(due->subject));
}

/* ---- The order: one's own hand-off, then the more urgent, of these what was not told yet, then the newer; but for a
 * team ---- */

static int
in_order(const void *va, const void *vb)
{
	const struct inject_item *a = va, *b = vb;

	if (a->handoff != b->handoff)
		return a->handoff ? -1 : 1;
	if (!a->handoff && a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->told != b->told)
		return a->told ? 1 : -1;
	return strcmp(b->id, a->id);
}

/* As a team's harness has it: the order of the inbox. */
static int
in_inbox_order(const void *va, const void *vb)
{
	const struct inject_item *a = va, *b = vb;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return strcmp(a->id, b->id);
}

static enum mr_rc
gather(struct mr_injection *inj, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	bool by_name = inj->room->driver->abilities & ROOM_HOLDS;
	enum mr_rc rc = by_name ? gather_by_name(inj, err) : gather_by_scan(inj, err);

	if (rc != MR_OK)
		return rc;
	const struct inject_item *only = inj->n == 1 ? inj->items : NULL;
	struct mr_str text = inject_trimmed(only ? only->body : STR(""));

	inj->whole = only && !only->unreadable && !only->broken && only->body.len > 0 &&
		     utf8_cut(text, INJECT_WHOLE_CHARS).len == text.len;
	if (inj->n > 1)
		qsort(inj->items, inj->n, sizeof(*inj->items),
		    inj->format == MR_INJECT_TEAMS ? in_inbox_order : in_order);
	if (!inj->urgent_only)
		(void)due_each(inj->room, inj->self.agent, note_due, inj, &ignored);
	/* MR_BUSY: another process shows them at this moment. */
	if (mr_nudges_open(inj->room, inj->self.agent, true, &inj->nudges, &ignored) != MR_OK)
		inj->nudges = NULL;
	if (inj->urgent_only && inj->nudges && mr_nudges_get(inj->nudges, 0)->priority != MR_URGENT) {
		mr_nudges_close(inj->nudges);
		inj->nudges = NULL;
	}
	return inj->failed ? mr_nomem(err) : MR_OK;
}

static enum mr_rc
open_injection(struct mr_injection how, struct mr_injection **ret, struct mr_error *err)
{
	struct mr_injection *inj = calloc(1, sizeof(*inj));
	struct mr_room *room = how.room;
	enum mr_rc rc;

	if (!inj)
		return mr_nomem(err);
	*inj = how;
	rc = gather(inj, err);
	bool any = inj->nudges || inj->n + inj->due_n + inj->quiet > 0; /* mostly there is nothing */

	if (rc == MR_OK && any)
		rc = office_not_fenced(room, &inj->self, err);
	if (rc == MR_OK && any)
		fence_mark(inj->mark);
	if (rc == MR_OK && inj->format == MR_INJECT_TEAMS)
		inject_teams(inj);
	else if (rc == MR_OK)
		inject_reminder(inj);
	if (rc == MR_OK && (inj->text.failed || inj->failed))
		rc = mr_nomem(err);
	if (rc == MR_OK && inj->text.len == 0)
		rc = mr_fail(err, MR_EMPTY, "there is nothing to tell '%s'", inj->self.agent);
	if (rc != MR_OK) {
		mr_inject_close(inj);
		return rc;
	}
	*ret = inj;
	return MR_OK;
}

enum mr_rc
mr_inject_open(struct mr_room *room, const struct mr_self *self, enum mr_inject_format format,
    struct mr_injection **ret, struct mr_error *err)
{
	return open_injection((struct mr_injection){ .room = room, .self = *self, .format = format }, ret, err);
}

enum mr_rc
mr_inject_open_urgent(struct mr_room *room, const struct mr_self *self, enum mr_inject_format format,
    struct mr_injection **ret, struct mr_error *err)
{
	return open_injection(
	    (struct mr_injection){ .room = room, .self = *self, .format = format, .urgent_only = true }, ret, err);
}

enum mr_rc
inject_open_insisting(struct mr_room *room, const struct mr_self *self, enum mr_inject_format format,
    struct mr_injection **ret, struct mr_error *err)
{
	return open_injection(
	    (struct mr_injection){ .room = room, .self = *self, .format = format, .insist = true }, ret, err);
}

const char *
mr_inject_text(const struct mr_injection *inj)
{
	return buf_z(&inj->text);
}

/* ---- After it was printed ---- */

/* False: out of memory. */
static bool
remember(struct mr_injection *inj, const struct inject_item *item, bool *ret_news)
{
	const struct announced_id *told = announced_find(&inj->before, item->id);
	struct announced_id *now = NULL;

	if (told && (!item->listed || (!told->counted && !told->again)))
		return true;
	for (size_t i = 0; told && !now && i < inj->unread.n; i++)
		if (strcmp(inj->unread.v[i].id, item->id) == 0)
			now = &inj->unread.v[i];
	if (!now)
		now = announced_add(&inj->unread, item->id, false);
	if (!now)
		return false;
	*ret_news = true;
	now->counted = !item->listed;
	now->unreadable = item->unreadable;
	now->again = item->listed && (item->priority == MR_URGENT || item->handoff);
	now->at_s = clock_now_ms() / 1000;
	return true;
}

enum mr_rc
mr_inject_shown(struct mr_injection *inj, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	bool news = false;

	if (inj->nudges && inj->nudges_shown > 0)
		rc = mr_nudges_shown(inj->nudges, inj->nudges_shown, err);
	for (size_t i = 0; i < inj->due_n && i < INJECT_LIST_MAX; i++)
		due_drop(inj->room, inj->self.agent, inj->due[i].id);
	inj->unread.fresh = inj->before.fresh;
	for (size_t i = 0; i < inj->n && rc != MR_NOMEM; i++)
		if (!remember(inj, &inj->items[i], &news))
			rc = mr_nomem(err);
	if (!news || rc == MR_NOMEM)
		return rc;
	struct mr_error trouble = { 0 };

	if (announced_save(inj->room, &inj->self, &inj->unread, &trouble) != MR_OK && rc == MR_OK) {
		*err = trouble;
		rc = trouble.code;
	}
	return rc;
}

void
mr_inject_close(struct mr_injection *inj)
{
	if (!inj)
		return;
	mr_nudges_close(inj->nudges);
	announced_done(&inj->before);
	announced_done(&inj->unread);
	free(inj->items);
	free(inj->due);
	buf_done(&inj->text);
	arena_free(inj->own);
	free(inj);
}
