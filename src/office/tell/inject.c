/* SPDX-License-Identifier: MIT */
/*
 * inject.c - what an agent is told now: unread mail that was not announced yet, nudges, overdue answers; and the
 * reasons for it not to end its turn yet: urgent mail that it has not read, and work that it has neither finished nor
 * given back. Each reason is used once in a life: an agent that goes idle all the same has decided so, and repeating it
 * would be a loop.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/fence.h"
#include "base/id.h"
#include "base/text.h"
#include "office/mail/mail.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include "office/work/work.h"
#include <stdlib.h>

#define NEWS_MAX 200 /* messages that were never told or not listed yet: at most so many are opened */
#define NEWS_OF_CROWD 30
#define LISTING_MAX 512   /* with more unread mail, a look at the names is worth recording the state */
#define URGENT_MAX 256    /* reasons not to stop */
#define STOPPED "stopped" /* in the told log: ids of urgent mail, tokens of claims */

/* ---- Gathering ---- */

/* For display only; never looked up. */
static const char *
keep_name(struct mr_injection *inj, const char *address)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	office_name(inj->room, address, &name);
	inj->failed |= name.failed;
	return arena_keep(&inj->own, buf_str(&name), &inj->failed);
}

static struct inject_item *
new_item(struct mr_injection *inj, const char *id)
{
	if (!array_grow(&inj->items, inj->n, &inj->cap, sizeof(*inj->items))) {
		inj->failed = true;
		return NULL;
	}
	struct inject_item *item = &inj->items[inj->n++];

	*item = (struct inject_item){ .from = "", .color = "" };
	(void)snprintf(item->id, sizeof(item->id), "%s", id);
	return item;
}

/* Keeps only what the list needs, because there may be thousands of unread messages. */
static void
consider(struct mr_injection *inj, const struct mr_message *msg)
{
	const char *color = mr_message_header(msg, "Color");
	struct mr_str body = { msg->body, msg->body ? msg->body_len : 0 };
	struct mr_error broken = { 0 };

	if (inj->what == MR_INJECT_URGENT && (msg->priority != MR_URGENT || announced_listed(&inj->before, msg->id)))
		return;
	if (mr_is_control(inj->room, inj->self.agent, msg, &broken)) /* those are for a patrol */
		return;
	struct inject_item *item = new_item(inj, msg->id);

	if (!item)
		return;
	item->place = msg->place;
	item->from = keep_name(inj, msg->from);
	item->subject = arena_keep(&inj->own, str_of(msg->subject), &inj->failed);
	item->color = arena_keep(&inj->own, str_of(color ? color : ""), &inj->failed);
	item->priority = msg->priority;
	item->handoff = successor_is_own(msg, inj->self.agent);
	item->told = announced_listed(&inj->before, msg->id);
	item->unproven = msg->proof == MR_UNPROVEN;
	item->broken = broken.code != MR_OK ? arena_keep(&inj->own, str_of(broken.message), &inj->failed) : NULL;
	bool first = inj->n == 1 && inject_trimmed(body).len <= 4 * (size_t)INJECT_WHOLE_CHARS;

	if ((inj->format == MR_INJECT_TEAMS || first) && msg->body) {
		item->body.ptr = arena_keep(&inj->own, body, &inj->failed);
		item->body.len = inj->failed ? 0 : body.len;
	}
}

/* An unreadable file is told once, like mail; otherwise it would be lost in silence. */
static void
add_unreadable(struct mr_injection *inj, const char *id, const char *path, const struct mr_error *why)
{
	mr_auto(buf_done) struct buf what = BUF_INIT;
	struct inject_item *item = inj->what == MR_INJECT_URGENT ? NULL : new_item(inj, id);

	if (!item)
		return;
	buf_addf(&what, "%s: %s", path, why->message);
	item->subject = arena_keep(&inj->own, buf_str(&what), &inj->failed);
	item->priority = MR_LOW;
	item->unreadable = true;
}

static bool
is_over(const struct mr_injection *inj, const struct announced_id *told)
{
	int64_t age_s = clock_now_ms() / 1000 - told->at_s;
	bool lately = inj->what != MR_INJECT_STOP && age_s >= 0 && age_s < INJECT_AGAIN_S;

	return told->kind != ANNOUNCED_COUNTED && (told->kind != ANNOUNCED_AGAIN || lately);
}

/* Was it told already, and is not to be repeated? */
static bool
is_quiet(struct mr_injection *inj, const char *id)
{
	struct announced_id *told = announced_find(&inj->before, id);

	if (!told)
		return false;
	if (told->kind == ANNOUNCED_LOGGED) {
		inj->quiet++;
		return announced_still(&inj->before, id);
	}
	told->still = true;
	if (!is_over(inj, told))
		return false;
	inj->quiet += told->kind != ANNOUNCED_UNREADABLE && told->kind != ANNOUNCED_OWN;
	return true;
}

static bool
is_to_list(const struct announced_id *told)
{
	return told->kind == ANNOUNCED_AGAIN || told->kind == ANNOUNCED_COUNTED;
}

static bool
note_name(void *ctx, const struct mr_message *msg)
{
	return candidates_add(ctx, msg);
}

/* May it be told now? Mail that was told for good is only marked as still there. */
static bool
is_news(void *ctx, const char *id)
{
	struct mr_injection *inj = ctx;
	struct announced_id *told;

	announced_load_log(inj->room, &inj->self, &inj->before);
	told = announced_known(&inj->before, id);
	if (told) {
		told->still = true;
		return is_to_list(told);
	}
	if (announced_still(&inj->before, id))
		return false;
	buf_addf(&inj->news, "%s\n", id);
	return true;
}

/* The inbox is unchanged since all had been told: the notes hold all there is to say. */
static void
take_noted(struct mr_injection *inj, struct candidates *ret)
{
	inj->total = inj->before.unread;
	for (size_t i = 0; i < inj->before.n; i++) {
		struct announced_id *told = &inj->before.v[i];
		struct mr_message name = { .folder = MR_INBOX };

		told->still = true;
		memcpy(name.id, told->id, sizeof name.id);
		if (is_to_list(told))
			(void)candidates_add(ret, &name);
	}
}

/* Counts mail that was told and needs no repetition; new mail that is not opened now is told by its number. */
static void
sort_out(struct mr_injection *inj, const struct candidates *ids)
{
	mr_auto(nameset_done) struct nameset offered = { 0 };
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(buf_done) struct buf rest = BUF_INIT;
	size_t uncounted = 0;

	for (size_t i = 0; i < ids->n; i++) {
		struct announced_id *told = announced_known(&inj->before, ids->v[i].id);

		if (told)
			told->offered = true;
		inj->failed |= !nameset_add_once(&offered, &names, ids->v[i].id);
	}
	for (size_t i = 0; i < inj->before.n; i++) {
		const struct announced_id *told = &inj->before.v[i];

		uncounted += told->still && !told->offered &&
			     (told->kind == ANNOUNCED_UNREADABLE || told->kind == ANNOUNCED_OWN);
	}
	for (struct mr_str left = buf_str(&inj->news), id; str_cut(&left, '\n', &id) && id.len == MR_ID_LEN;) {
		char one[MR_ID_LEN + 1] = "";

		memcpy(one, id.ptr, MR_ID_LEN);
		if (!nameset_has(&offered, one))
			buf_addf(&rest, "%s\n", one);
	}
	inj->failed |= inj->news.failed || rest.failed;
	inj->crowd = rest.len > 0;
	buf_clear(&inj->news);
	buf_add(&inj->news, buf_str(&rest));
	inj->quiet = inj->total > ids->n + uncounted ? inj->total - ids->n - uncounted : 0;
}

/* For rooms that find mail by its id: names first, then the new messages, the more urgent first. */
static enum mr_rc
gather_by_name(struct mr_injection *inj, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX,
		.depth = SCAN_NAMES,
		.unread_only = true,
		.order = SCAN_URGENCY,
		.most = NEWS_MAX,
		.wants = is_news,
		.wants_ctx = inj,
		.ret_total = &inj->total,
		.state = &inj->state };
	mr_auto(candidates_done) struct candidates ids = { 0 };
	size_t turns = 0, news = 0;

	announced_load_brief(inj->room, &inj->self, &inj->before);
	memcpy(inj->state.text, inj->before.state, sizeof inj->state.text);
	scan_sweep(inj->room, inj->self.agent); /* mail of a dead holder is unread again */
	TRY(office_scan(inj->room, inj->self.agent, &want, note_name, &ids, err));
	if (inj->state.same)
		take_noted(inj, &ids);
	TRY(mr_got(!ids.failed, err));
	/* More than are opened: then only as many as a list shows. */
	if (!inj->state.same && inj->total > NEWS_MAX && ids.n >= NEWS_MAX) {
		size_t n = 0;

		while (n < ids.n && (ids.v[n].look || n < NEWS_OF_CROWD))
			n++;
		ids.n = n;
	}
	sort_out(inj, &ids);
	candidates_sort(ids.v, ids.n, MR_BY_PRIORITY);
	for (size_t i = 0; i < ids.n && news < 2; i++) {
		const struct announced_id *told = announced_find(&inj->before, ids.v[i].id);

		news += !told || is_to_list(told);
	}
	/* A single message may be shown with its text. */
	enum scan_depth depth = inj->format == MR_INJECT_TEAMS || news == 1 ? SCAN_BODIES : SCAN_HEADERS;

	for (size_t i = 0; i < ids.n && !inj->failed; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		const struct announced_id *told = announced_find(&inj->before, ids.v[i].id);
		const char *id = ids.v[i].id;
		struct mr_error trouble = { 0 };

		if (is_quiet(inj, id) || (inj->what == MR_INJECT_URGENT && !told && !ids.v[i].look &&
					     ids.v[i].priority != MR_URGENT && inj->total > LOOK_MAX))
			continue;
		/* Mail that was only counted is listed later, some at a time: only those are opened. */
		if (told && told->kind == ANNOUNCED_COUNTED &&
		    ((inj->what == MR_INJECT_URGENT && ids.v[i].priority != MR_URGENT) || ++turns > INJECT_LIST_MAX)) {
			inj->quiet++;
			continue;
		}
		enum mr_rc rc =
		    inj->room->driver->fetch(inj->room, inj->self.agent, id, MR_INBOX, depth, &msg, &trouble);

		if (rc == MR_OK && !(msg.flags & MR_SEEN))
			consider(inj, &msg);
		else if (rc != MR_OK && rc != MR_NOTFOUND) /* read or held at this moment */
			add_unreadable(inj, id, id, &trouble);
	}
	return MR_OK;
}

static bool
consider_unread(void *ctx, const struct mr_message *msg)
{
	struct mr_injection *inj = ctx;

	announced_load_log(inj->room, &inj->self, &inj->before);
	if ((msg->flags & MR_SEEN) || is_quiet(inj, msg->id))
		return !inj->failed;
	/* A team's harness shows all of it, over several turns. */
	if (inj->n < NEWS_MAX || msg->priority == MR_URGENT || inj->what == MR_INJECT_URGENT ||
	    inj->format == MR_INJECT_TEAMS || announced_known(&inj->before, msg->id)) {
		consider(inj, msg);
	} else {
		inj->crowd = true;
		inj->quiet++;
		buf_addf(&inj->news, "%s\n", msg->id);
	}
	return !inj->failed && !inj->news.failed;
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

/* In rooms of other programs finding one message costs as much as reading all: that is done when the inbox has changed,
 * or something must be repeated. */
static enum mr_rc
gather_by_scan(struct mr_injection *inj, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX,
		.depth = SCAN_BODIES,
		.order = SCAN_NEWEST,
		.unread_only = true,
		.ret_total = &inj->total,
		.state = &inj->state,
		.trouble = note_unreadable,
		.trouble_ctx = inj };
	struct announced *before = &inj->before;
	bool over = true;

	announced_load_brief(inj->room, &inj->self, before);
	for (size_t i = 0; i < before->n; i++)
		over &= is_over(inj, &before->v[i]);
	if (over)
		memcpy(inj->state.text, before->state, sizeof inj->state.text);
	TRY(office_scan(inj->room, inj->self.agent, &want, consider_unread, inj, err));
	inj->failed |= inj->news.failed;
	if (!inj->state.same)
		return MR_OK;
	inj->total = inj->quiet = before->unread;
	for (size_t i = 0; i < before->n; i++)
		(void)is_quiet(inj, before->v[i].id);
	inj->quiet = before->unread;
	return MR_OK;
}

/* The agent's own note, then the more urgent mail, among equals mail that was not told yet, then the newer. */
static int
in_order(const void *va, const void *vb)
{
	const struct inject_item *a = va, *b = vb;

	return ORDER(b->handoff, a->handoff) ?: (a->handoff ? 0 : ORDER(b->priority, a->priority))
		?: ORDER(a->told, b->told) ?: strcmp(b->id, a->id);
}

/* As a team's harness does: in the order of the inbox. */
static int
in_inbox_order(const void *va, const void *vb)
{
	const struct inject_item *a = va, *b = vb;

	return ORDER(a->place, b->place) ?: strcmp(a->id, b->id);
}

/* Saves the told ids and the state of the inbox; not the state if only urgent mail was told. */
static enum mr_rc
save_announced(struct mr_injection *inj, struct mr_error *err)
{
	struct announced *told = &inj->before;
	bool news = inj->crowd && inj->what != MR_INJECT_URGENT;
	size_t kept = 0;

	for (size_t i = 0; i < told->n; i++)
		if (told->v[i].still)
			told->v[kept++] = told->v[i];
	told->n = kept;
	told->state[0] = '\0';
	if (inj->state.same || inj->what != MR_INJECT_URGENT) {
		memcpy(told->state, inj->state.text, sizeof told->state);
		told->unread = inj->total;
	}
	/* Ids of mail that was read since stay in the log until it is written anyway, or until they are most of it. */
	if (told->logged)
		announced_forget_gone(told, news);
	if (told->logged && news)
		announced_log(told, buf_str(&inj->news));
	return announced_save(inj->room, &inj->self, told, err);
}

static enum mr_rc
gather(struct mr_injection *inj, struct mr_error *err)
{
	bool teams = inj->format == MR_INJECT_TEAMS;

	TRY(inj->room->driver->abilities & ROOM_NAMES ? gather_by_name(inj, err) : gather_by_scan(inj, err));
	if (inj->n == 1) {
		const struct inject_item *only = inj->items;
		struct mr_str text = inject_trimmed(only->body);

		inj->whole = !only->unreadable && !only->broken && only->body.len > 0 &&
			     utf8_cut(text, INJECT_WHOLE_CHARS).len == text.len;
	} else if (inj->n > 1) {
		qsort(inj->items, inj->n, sizeof(*inj->items), teams ? in_inbox_order : in_order);
	}
	if (inj->what != MR_INJECT_URGENT)
		(void)due_list(inj->room, inj->self.agent, true, &inj->dues, IGNORED);
	/* MR_BUSY: another process is showing them. */
	if (mr_nudges_open(inj->room, inj->self.agent, true, &inj->nudges, IGNORED) != MR_OK)
		inj->nudges = NULL;
	if (inj->what == MR_INJECT_URGENT && inj->nudges && mr_nudges_get(inj->nudges, 0)->priority != MR_URGENT) {
		mr_nudges_close(inj->nudges);
		inj->nudges = NULL;
	}
	TRY(mr_got(!inj->failed, err));
	if (inj->nudges || inj->n + inj->dues.n + inj->quiet > 0) { /* usually there is nothing */
		TRY(office_not_fenced(inj->room, &inj->self, err));
		fence_mark(inj->mark);
	}
	if (teams)
		inject_teams(inj);
	else
		inject_reminder(inj);
	TRY(mr_got(!inj->text.failed && !inj->failed, err));
	if (inj->text.len == 0 && !inj->crowd && inj->total > LISTING_MAX && inj->what != MR_INJECT_URGENT &&
	    !inj->state.same)
		(void)save_announced(inj, IGNORED); /* so that the next call need not list all of it */
	return inj->text.len > 0 ? MR_OK : mr_fail(err, MR_EMPTY, "there is nothing to tell '%s'", inj->self.agent);
}

/* ---- Reasons not to stop ---- */

static bool
note_urgent(void *ctx, const struct mr_message *msg)
{
	struct mr_injection *inj = ctx;
	struct mr_error broken = { 0 };

	if (msg->priority == MR_URGENT && !(msg->flags & MR_SEEN) &&
	    !mr_is_control(inj->room, inj->self.agent, msg, &broken) && !names_add(&inj->reasons, str_of(msg->id)))
		inj->failed = true;
	return !inj->failed;
}

static void
add_held(struct mr_injection *inj, const struct claims *claims)
{
	struct buf *out = &inj->text;
	char mark[FENCE_MARK_LEN + 1];

	fence_mark(mark);
	buf_adds(out, "<system-reminder>\n");
	inject_count(out, claims->n, "claim");
	buf_adds(out, " in your hands: mailroom done TOKEN when it is finished, mailroom release TOKEN gives it back, "
		      "mailroom fail TOKEN says that it cannot be done.\n");
	fence_open(out, mark);
	for (size_t i = 0; i < claims->n && i < INJECT_LIST_MAX; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		const struct claim *held = &claims->v[i];

		buf_addf(out, "- %s", held->token);
		if (box_queue(held->box))
			buf_addf(out, ", of queue %s", box_queue(held->box));
		if (claim_message(inj->room, held, &msg, IGNORED) == MR_OK) {
			buf_adds(out, ", from ");
			(void)fence_add(out, str_of(*msg.from ? msg.from : "somebody"), FENCE_LINE, INJECT_NAME_CHARS);
			buf_adds(out, msg.proof == MR_UNPROVEN ? " (unproven): " : ": ");
			(void)fence_add(
			    out, str_of(*msg.subject ? msg.subject : "(no subject)"), FENCE_LINE, INJECT_SUBJECT_CHARS);
		}
		buf_addc(out, '\n');
	}
	fence_close(out, mark);
	if (claims->n > INJECT_LIST_MAX)
		buf_addf(out, "and %zu more: mailroom inbox\n", claims->n - INJECT_LIST_MAX);
	buf_adds(out, "</system-reminder>\n");
}

/* Names tell which mail is urgent; if there is little mail, all of it is opened. If the inbox is unchanged since all
 * had been told, only noted mail can be urgent and unread. */
static enum mr_rc
find_urgent(struct mr_injection *inj, struct mr_error *err)
{
	mr_auto(announced_done) struct announced told = { 0 };
	mr_auto(candidates_done) struct candidates ids = { 0 };
	struct scan_state state = { 0 };
	size_t total = 0;
	struct scan_request want = { .folders = MR_INBOX,
		.unread_only = true,
		.order = SCAN_URGENCY,
		.most = URGENT_MAX,
		.ret_total = &total,
		.state = &state };

	if (inj->room->driver->abilities & ROOM_NAMES) {
		announced_load_brief(inj->room, &inj->self, &told);
		memcpy(state.text, told.state, sizeof state.text);
		TRY(office_scan(inj->room, inj->self.agent, &want, note_name, &ids, err));
		for (size_t i = 0; state.same && i < told.n; i++) {
			struct mr_message name = { .folder = MR_INBOX, .look = true };

			memcpy(name.id, told.v[i].id, sizeof name.id);
			if (told.v[i].kind == ANNOUNCED_AGAIN)
				(void)candidates_add(&ids, &name);
		}
		inj->failed |= ids.failed;
	}
	if (total <= LOOK_MAX && !state.same) {
		want = (struct scan_request){ .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
		return office_scan(inj->room, inj->self.agent, &want, note_urgent, inj, err);
	}
	for (size_t i = 0; i < ids.n && !inj->failed; i++) {
		struct candidate *c = &ids.v[i];

		if (!c->look && c->priority == MR_URGENT)
			inj->failed |= !names_add(&inj->reasons, str_of(c->id));
		else if (c->look && candidate_open(inj->room, inj->self.agent, c, SCAN_HEADERS, true, IGNORED) == MR_OK)
			(void)note_urgent(inj, c->copy);
		candidate_close(c);
	}
	return MR_OK;
}

static enum mr_rc
gather_reasons(struct mr_injection *inj, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names before = { 0 };
	mr_auto(claims_done) struct claims held = { 0 };
	bool news = false;

	scan_sweep(inj->room, inj->self.agent); /* mail of a dead holder is unread again */
	TRY(office_not_fenced(inj->room, &inj->self, err));
	if (inj->room->driver->abilities & ROOM_PRIORITIES)
		TRY(find_urgent(inj, err));
	TRY(claims_held(inj->room, &inj->self, &held, err));
	for (size_t i = 0; i < held.n; i++)
		inj->failed |= !names_add(&inj->reasons, str_of(held.v[i].token));
	if (inj->reasons.n > 0)
		told_words(inj->room, &inj->self, STOPPED, &before);
	for (size_t i = 0; i < inj->reasons.n; i++)
		news |= !names_has(&before, inj->reasons.v[i]);
	TRY(mr_got(!inj->failed, err));
	if (news && gather(inj, IGNORED) != MR_OK) {
		buf_clear(&inj->text);
		inj->n = inj->dues.n = inj->nudges_shown = 0;
	}
	if (news && held.n > 0)
		add_held(inj, &held);
	TRY(mr_got(!inj->text.failed, err));
	/* Nothing new, or it was read at this moment. */
	return inj->text.len > 0 ? MR_OK
				 : mr_fail(err, MR_EMPTY, "nothing keeps '%s' from going idle", inj->self.agent);
}

/* ---- The injection ---- */

static void
injection_done(struct mr_injection *inj)
{
	mr_nudges_close(inj->nudges);
	announced_done(&inj->before);
	mr_names_done(&inj->reasons);
	buf_done(&inj->news);
	free(inj->items);
	mr_list_done(&inj->dues);
	buf_done(&inj->text);
	arena_free(inj->own);
}

enum mr_rc
mr_inject_open(struct mr_room *room, const struct mr_self *self, enum mr_inject_what what, enum mr_inject_format format,
    struct mr_injection **ret, struct mr_error *err)
{
	mr_auto(injection_done) struct mr_injection inj = { .room = room, .self = *self };
	struct mr_injection *got;

	inj.what = what;
	inj.format = format;
	TRY(what == MR_INJECT_STOP ? gather_reasons(&inj, err) : gather(&inj, err));
	got = malloc(sizeof(*got)); /* usually there is nothing to tell */
	TRY(mr_got(got, err));
	*got = inj;
	*ret = got;
	inj = (struct mr_injection){ 0 };
	return MR_OK;
}

const char *
mr_inject_text(const struct mr_injection *inj)
{
	return buf_z(&inj->text);
}

/* ---- After it was printed ---- */

/* False: out of memory. */
static bool
remember(struct mr_injection *inj, const struct inject_item *item, const char *door, bool *ret_news)
{
	struct announced_id *now = announced_find(&inj->before, item->id);

	if (now && (!item->listed || !is_to_list(now)))
		return true;
	if (!now && !(now = announced_add(&inj->before, item->id)))
		return false;
	*ret_news = now->still = true;
	if (item->listed && (item->priority == MR_URGENT || item->handoff))
		now->kind = ANNOUNCED_AGAIN;
	else if (!item->listed && !inj->crowd)
		now->kind = ANNOUNCED_COUNTED;
	else
		now->kind = item->unreadable ? ANNOUNCED_UNREADABLE : ANNOUNCED_ONCE;
	now->at_s = clock_now_ms() / 1000;
	(void)snprintf(now->door, sizeof now->door, "%s", door);
	return true;
}

static enum mr_rc
note_shown(struct mr_injection *inj, const char *door, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	struct mr_error trouble = { 0 };
	bool news = false;

	if (inj->nudges && inj->nudges_shown > 0)
		rc = mr_nudges_shown(inj->nudges, inj->nudges_shown, err);
	for (size_t i = 0; i < inj->dues.n && i < INJECT_LIST_MAX; i++)
		due_drop(inj->room, inj->self.agent, inj->dues.v[i].id);
	for (size_t i = 0; i < inj->n && rc != MR_NOMEM; i++)
		if (!remember(inj, &inj->items[i], door, &news))
			rc = mr_nomem(err);
	if (!news || rc == MR_NOMEM || save_announced(inj, &trouble) == MR_OK || rc != MR_OK)
		return rc;
	*err = trouble;
	return err->code;
}

enum mr_rc
mr_inject_shown(struct mr_injection *inj, const char *door, struct mr_error *err)
{
	if (inj->what != MR_INJECT_STOP)
		return note_shown(inj, door, err);
	/* First the note that it was said: a loop is worse than mail that is announced twice. */
	enum mr_rc rc = told_put_words(inj->room, &inj->self, STOPPED, &inj->reasons, err);

	(void)note_shown(inj, door, IGNORED);
	return rc;
}

void
mr_inject_close(struct mr_injection *inj)
{
	if (!inj)
		return;
	injection_done(inj);
	free(inj);
}
