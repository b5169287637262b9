/* SPDX-License-Identifier: MIT */
/*
 * inject_reminder.c - one block between <system-reminder> tags, each tag on its own line: for mail, and one for nudges.
 * Every line is ours, or begins with something of ours and ends with text of others on that same line; those lines
 * stand between the two lines of the fence.
 *
 * Urgent mail is listed with a call to read it now, then mail of high priority, then the rest, with the advice to
 * finish the task at hand first. Told not to interrupt, agents leave mail for ever; so it also says when to look. Each
 * list has its most; what is over it is counted, and listed at the next moments. A single short
 * message is shown with its text, which saves the agent a call.
 */
#include "base/error.h"
#include "base/fence.h"
#include "office/tell/inject.h"

#define OPEN "<system-reminder>\n"
#define CLOSE "</system-reminder>\n"

void
inject_count(struct buf *out, size_t n, const char *noun)
{
	buf_addf(out, "%zu %s%s", n, noun, n == 1 ? "" : "s");
}

struct mr_str
inject_trimmed(struct mr_str text)
{
	while (text.len > 0 && text.ptr[text.len - 1] && strchr(" \t\r\n", text.ptr[text.len - 1]))
		text.len--;
	return text;
}

/* ---- Lists ---- */

enum tier { TIER_HANDOFF, TIER_URGENT, TIER_HIGH, TIER_REST, TIER_UNREADABLE };

static enum tier
tier_of(const struct inject_item *item)
{
	if (item->unreadable)
		return TIER_UNREADABLE;
	if (item->handoff)
		return TIER_HANDOFF;
	if (item->priority == MR_URGENT)
		return TIER_URGENT;
	return item->priority == MR_HIGH ? TIER_HIGH : TIER_REST;
}

static size_t
count_tier(const struct mr_injection *inj, enum tier tier)
{
	size_t n = 0;

	for (size_t i = 0; i < inj->n; i++)
		n += tier_of(&inj->items[i]) == tier;
	return n;
}

static void
add_line(struct buf *out, const struct inject_item *item)
{
	if (item->unreadable) {
		buf_adds(out, "- ");
		(void)fence_add(out, str_of(item->subject), FENCE_LINE, INJECT_SUBJECT_CHARS);
		buf_addc(out, '\n');
		return;
	}
	buf_addf(out, "- %s from ", item->id);
	(void)fence_add(out, str_of(*item->from ? item->from : "somebody"), FENCE_NAME, INJECT_NAME_CHARS);
	buf_adds(out, item->unproven ? " (unproven): " : ": ");
	if (item->broken) {
		buf_adds(out, "a control message that no program can use (");
		(void)fence_add(out, str_of(item->broken), FENCE_LINE, INJECT_SUBJECT_CHARS);
		buf_adds(out, ")");
	} else {
		(void)fence_add(
		    out, str_of(*item->subject ? item->subject : "(no subject)"), FENCE_LINE, INJECT_SUBJECT_CHARS);
	}
	buf_addc(out, '\n');
}

/* Each line of it begins with blanks of ours. What the line with its subject has said is not said again. */
static void
add_text(struct buf *out, const struct inject_item *item)
{
	struct mr_str text = inject_trimmed(item->body);

	if (str_eq(text, str_trim(str_of(item->subject))))
		return;
	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		size_t len = lf ? (size_t)(lf - text.ptr) : text.len, step = lf ? len + 1 : len;

		buf_adds(out, "  ");
		(void)fence_add(out, (struct mr_str){ text.ptr, len }, FENCE_LINE, 0);
		buf_addc(out, '\n');
		text.ptr += step;
		text.len -= step;
	}
}

/* The list of one tier, capped; what does not fit is counted, and wakes nobody any more. */
static void
add_list(struct mr_injection *inj, enum tier tier)
{
	struct buf *out = &inj->text;
	size_t lines = 0, more = 0;

	fence_open(out, inj->mark);
	for (size_t i = 0; i < inj->n; i++) {
		struct inject_item *item = &inj->items[i];

		if (tier_of(item) != tier)
			continue;
		item->listed = lines++ < INJECT_LIST_MAX;
		if (item->listed)
			add_line(out, item);
		else
			more++;
		if (inj->whole)
			add_text(out, item);
	}
	fence_close(out, inj->mark);
	if (inj->whole)
		buf_addf(out,
		    "That is the whole message: mailroom reply %s answers it, mailroom mark read %s settles it.\n",
		    inj->items[0].id, inj->items[0].id);
	if (more > 0)
		buf_addf(
		    out, "and %zu more of these: mailroom %s\n", more, tier == TIER_UNREADABLE ? "doctor" : "inbox");
}

static void
add_rest(struct mr_injection *inj, size_t n)
{
	if (n == 0)
		return;
	buf_adds(&inj->text, "Plus ");
	inject_count(&inj->text, n, "more unread message");
	buf_adds(&inj->text, ": mailroom inbox\n");
}

/* ---- Mail ---- */

static void
add_handoffs(struct mr_injection *inj)
{
	if (count_tier(inj, TIER_HANDOFF) == 0)
		return;
	buf_adds(&inj->text, inj->whole ? "HANDOFF: you left yourself a note. Read it before anything else.\n"
					: "HANDOFF: you left yourself a note. Read it before anything else: mailroom "
					  "read ID\n");
	add_list(inj, TIER_HANDOFF);
}

static void
add_mail(struct mr_injection *inj)
{
	size_t urgent = count_tier(inj, TIER_URGENT), high = count_tier(inj, TIER_HIGH);
	size_t rest = count_tier(inj, TIER_REST);
	struct buf *out = &inj->text;

	add_handoffs(inj);
	if (urgent > 0) {
		buf_adds(out, "URGENT: ");
		inject_count(out, urgent, "urgent message");
		buf_addf(out, " for you. Read now, then go on%s\n", inj->whole ? "." : ": mailroom read ID");
		add_list(inj, TIER_URGENT);
	}
	if (high > 0) {
		inject_count(out, high, "message");
		buf_adds(out, " of high priority for you.\n");
		add_list(inj, TIER_HIGH);
	}
	if (rest > 0) {
		inject_count(out, rest, urgent + high > 0 ? "other unread message" : "unread message");
		buf_adds(out, " for you.\n");
		add_list(inj, TIER_REST);
	}
	add_rest(inj, inj->quiet);
	if (inj->whole && high + rest > 0)
		buf_adds(out, "Finish the task at hand first, then see to it before you go idle.\n");
	else if (high + rest > 0 || (urgent == 0 && inj->quiet > 0))
		buf_addf(out, "%s first, then read these before you go idle: mailroom read ID, or mailroom drain\n",
		    urgent > 0 ? "The others can wait: finish the task at hand" : "Finish the task at hand");
}

static void
add_unreadable(struct mr_injection *inj)
{
	size_t n = count_tier(inj, TIER_UNREADABLE);

	if (n == 0)
		return;
	inject_count(&inj->text, n, "message");
	buf_addf(&inj->text, " for you cannot be read, and %s kept: mailroom doctor says more. Tell the operator.\n",
	    n == 1 ? "is" : "are");
	add_list(inj, TIER_UNREADABLE);
}

static void
add_due(struct mr_injection *inj)
{
	struct buf *out = &inj->text;

	if (inj->due_n == 0)
		return;
	buf_adds(out, "Nobody answered in time what you asked here (mailroom why ID tells more):\n");
	fence_open(out, inj->mark);
	for (size_t i = 0; i < inj->due_n && i < INJECT_LIST_MAX; i++) {
		buf_addf(out, "- %s to ", inj->due[i].id);
		(void)fence_add(out, str_of(inj->due[i].to), FENCE_NAME, INJECT_NAME_CHARS);
		buf_adds(out, ": ");
		(void)fence_add(out, str_of(inj->due[i].subject), FENCE_LINE, INJECT_SUBJECT_CHARS);
		buf_addc(out, '\n');
	}
	fence_close(out, inj->mark);
	if (inj->due_n > INJECT_LIST_MAX)
		buf_addf(out, "%zu more of these follow with the next prompt.\n", inj->due_n - INJECT_LIST_MAX);
}

/* ---- Nudges ---- */

static void
add_nudge(struct mr_injection *inj, const struct mr_nudge *nudge)
{
	mr_auto(buf_done) struct buf from = BUF_INIT;
	struct buf *out = &inj->text;

	office_name(inj->room, *nudge->from ? nudge->from : "unknown", &from);
	buf_adds(out, nudge->priority == MR_URGENT ? "  [URGENT from " : "  [from ");
	(void)fence_add(out, buf_str(&from), FENCE_NAME, INJECT_NAME_CHARS);
	buf_adds(out, "] ");
	(void)fence_add(out, str_of(nudge->text), FENCE_LINE, 0);
	if (nudge->times > 1)
		buf_addf(out, " (%u times)", nudge->times);
	buf_addc(out, '\n');
}

static void
add_nudge_heading(struct buf *out, size_t urgent, size_t n)
{
	buf_adds(out, "QUEUED NUDGE (");
	if (urgent > 0)
		buf_addf(out, "%zu urgent):\n", urgent);
	else
		buf_addf(out, "%zu message%s):\n", n, n == 1 ? "" : "s");
}

static size_t
count_urgent(const struct mr_nudges *nudges, size_t n)
{
	size_t urgent = 0;

	while (urgent < n && mr_nudges_get(nudges, urgent)->priority == MR_URGENT)
		urgent++;
	return urgent;
}

/* How many fit; one always does. */
static size_t
fitting(const struct mr_nudges *nudges)
{
	size_t n = 0, chars = 0, all = mr_nudges_count(nudges);

	while (n < all && (n == 0 || chars + strlen(mr_nudges_get(nudges, n)->text) <= INJECT_NUDGE_CHARS))
		chars += strlen(mr_nudges_get(nudges, n++)->text);
	return n;
}

static void
add_nudges(struct mr_injection *inj)
{
	size_t n = fitting(inj->nudges), urgent = count_urgent(inj->nudges, n), all = mr_nudges_count(inj->nudges);
	unsigned refused = mr_nudges_refused(inj->nudges);
	struct buf *out = &inj->text;

	if (inj->urgent_only)
		n = urgent;
	buf_adds(out, OPEN);
	if (n > 0) {
		add_nudge_heading(out, urgent, n);
		fence_open(out, inj->mark);
	}
	for (size_t i = 0; i < n; i++) {
		if (i == urgent && urgent > 0)
			buf_addf(out, "Plus %zu non-urgent nudge%s:\n", n - urgent, n - urgent == 1 ? "" : "s");
		add_nudge(inj, mr_nudges_get(inj->nudges, i));
	}
	if (n > 0)
		fence_close(out, inj->mark);
	if (n < all)
		buf_addf(out, "%zu more wait for the next prompt.\n", all - n);
	if (refused > 0)
		buf_addf(out, "%u nudge%s found your queue full and %s refused: their senders know.\n", refused,
		    refused == 1 ? "" : "s", refused == 1 ? "was" : "were");
	buf_adds(out, urgent > 0
			  ? "Handle the urgent ones before you go on.\n"
			  : "This is a notice in the background: go on with your task and see to it afterwards.\n");
	buf_adds(out, CLOSE);
	inj->nudges_shown = n;
}

void
inject_reminder(struct mr_injection *inj)
{
	struct buf *out = &inj->text;

	if (inj->n > 0 || inj->due_n > 0) {
		buf_adds(out, OPEN);
		if (inj->n > 0)
			add_mail(inj);
		add_due(inj);
		add_unreadable(inj);
		buf_adds(out, CLOSE);
	}
	if (inj->nudges)
		add_nudges(inj);
}
