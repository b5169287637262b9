/* SPDX-License-Identifier: MIT */
/*
 * stop.c - reasons for an agent not to end its turn yet: urgent mail that it has not read, and work in its hands that
 * it has neither finished nor given back. Each is a reason once in a life. An agent that goes idle all the same has
 * decided so, and to be told again and again would be a loop.
 *
 * Mail is told as at a prompt (inject.c), and remembered as announced; what was a reason is remembered here.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/fence.h"
#include "office/mail/mail.h"
#include "office/tell/inject.h"
#include "office/tell/memory.h"
#include <stdlib.h>

#define STOPPED "stopped" /* kind of memory: ids of urgent mail, tokens of claims */
#define LIST_MAX 10

struct mr_stop {
	struct mr_room *room;
	struct mr_self self;
	struct mr_injection *mail; /* or NULL */
	struct mr_names reasons;   /* all there are now */
	struct claims held;
	struct buf text;
	bool failed; /* out of memory */
};

/* ---- Reasons ---- */

static bool
note_urgent(void *ctx, const struct mr_message *msg)
{
	struct mr_stop *s = ctx;
	struct mr_error broken = { 0 };

	if (msg->priority == MR_URGENT && !(msg->flags & MR_SEEN) &&
	    !mr_is_control(s->room, s->self.agent, msg, &broken) && !names_add(&s->reasons, str_of(msg->id)))
		s->failed = true;
	return !s->failed;
}

static enum mr_rc
find_urgent(struct mr_stop *s, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };

	if (!(s->room->driver->abilities & ROOM_PRIORITIES))
		return MR_OK;
	return office_scan(s->room, s->self.agent, &want, note_urgent, s, err);
}

static enum mr_rc
find_held(struct mr_stop *s, struct mr_error *err)
{
	TRY(claims_held(s->room, &s->self, &s->held, err));
	for (size_t i = 0; i < s->held.n; i++)
		if (!names_add(&s->reasons, str_of(s->held.v[i].token)))
			s->failed = true;
	return MR_OK;
}

static bool
is_new(struct mr_stop *s)
{
	mr_auto(mr_names_done) struct mr_names before = { 0 };

	if (s->reasons.n == 0)
		return false;
	memory_words(s->room, &s->self, STOPPED, &before);
	for (size_t i = 0; i < s->reasons.n; i++)
		if (!names_has(&before, s->reasons.v[i]))
			return true;
	return false;
}

/* ---- As text ---- */

static void
add_claim(struct mr_stop *s, const struct claim *hold)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	enum mr_rc rc = claim_message(s->room, hold, &msg, IGNORED);
	struct buf *out = &s->text;

	buf_addf(out, "- %s", hold->token);
	if (box_queue(hold->box))
		buf_addf(out, ", of queue %s", box_queue(hold->box));
	if (rc == MR_OK) {
		buf_adds(out, ", from ");
		(void)fence_add(out, str_of(*msg.from ? msg.from : "somebody"), FENCE_LINE, INJECT_NAME_CHARS);
		buf_adds(out, msg.proof == MR_UNPROVEN ? " (unproven): " : ": ");
		(void)fence_add(
		    out, str_of(*msg.subject ? msg.subject : "(no subject)"), FENCE_LINE, INJECT_SUBJECT_CHARS);
	}
	buf_addc(out, '\n');
}

static void
add_held(struct mr_stop *s)
{
	char mark[FENCE_MARK_LEN + 1];

	if (s->held.n == 0)
		return;
	fence_mark(mark);
	buf_adds(&s->text, "<system-reminder>\n");
	inject_count(&s->text, s->held.n, "claim");
	buf_adds(&s->text, " in your hands: mailroom done TOKEN when it is finished, mailroom release TOKEN gives it "
			   "back, mailroom fail TOKEN says that it cannot be done.\n");
	fence_open(&s->text, mark);
	for (size_t i = 0; i < s->held.n && i < LIST_MAX; i++)
		add_claim(s, &s->held.v[i]);
	fence_close(&s->text, mark);
	if (s->held.n > LIST_MAX)
		buf_addf(&s->text, "and %zu more: mailroom inbox\n", s->held.n - LIST_MAX);
	buf_adds(&s->text, "</system-reminder>\n");
}

enum mr_rc
mr_stop_open(struct mr_room *room, const struct mr_self *self, enum mr_inject_format format, struct mr_stop **ret,
    struct mr_error *err)
{
	struct mr_stop *s = calloc(1, sizeof *s);
	struct mr_error nothing = { 0 };

	if (!s)
		return mr_nomem(err);
	s->room = room;
	s->self = *self;
	enum mr_rc rc = office_not_fenced(room, self, err);

	scan_sweep(room, self->agent); /* what a dead process held is unread again */
	if (rc == MR_OK)
		rc = find_urgent(s, err);
	if (rc == MR_OK)
		rc = find_held(s, err);
	if (rc == MR_OK && !is_new(s))
		rc = mr_fail(err, MR_EMPTY, "nothing keeps '%s' from going idle", self->agent);
	if (rc == MR_OK && inject_open_insisting(room, self, format, &s->mail, &nothing) == MR_OK)
		buf_adds(&s->text, mr_inject_text(s->mail));
	if (rc == MR_OK)
		add_held(s);
	if (rc == MR_OK && (s->failed || s->text.failed))
		rc = mr_nomem(err);
	if (rc == MR_OK && s->text.len == 0) /* read this very moment */
		rc = mr_fail(err, MR_EMPTY, "nothing keeps '%s' from going idle", self->agent);
	if (rc != MR_OK) {
		mr_stop_close(s);
		return rc;
	}
	*ret = s;
	return MR_OK;
}

const char *
mr_stop_text(const struct mr_stop *stop)
{
	return buf_z(&stop->text);
}

enum mr_rc
mr_stop_shown(struct mr_stop *stop, struct mr_error *err)
{
	/* First that it was said: a loop is worse than mail that is announced twice. */
	enum mr_rc rc = memory_put_words(stop->room, &stop->self, STOPPED, &stop->reasons, err);
	struct mr_error ignored = { 0 };

	if (stop->mail)
		(void)mr_inject_shown(stop->mail, &ignored);
	return rc;
}

void
mr_stop_close(struct mr_stop *stop)
{
	if (!stop)
		return;
	mr_inject_close(stop->mail);
	mr_names_done(&stop->reasons);
	claims_done(&stop->held);
	buf_done(&stop->text);
	free(stop);
}
