/* SPDX-License-Identifier: MIT */
/*
 * patrol_give_up.c - after the last failure: somebody is told, the sender too, then the message goes to dead letters.
 * Everything said follows from the note, which is durable, and goes out under a key: cut off anywhere, the next patrol
 * says the same again and it arrives once. A room without keys may get it twice then.
 */
#include "base/error.h"
#include "office/patrol/patrol.h"

unsigned
patrol_patience(const struct errand *e)
{
	return e->def->escalate_after > 0 ? e->def->escalate_after : (unsigned)e->p->set.escalate_after;
}

static const char *
ear_of(const struct errand *e)
{
	return e->def->escalate_to && *e->def->escalate_to ? e->def->escalate_to : e->p->set.escalate_to;
}

static void
write_body(struct buf *out, const struct errand *e)
{
	buf_addf(out, "%s could not handle this message, and it will not be tried again.\n\n", e->p->self->agent);
	buf_addf(out, "Type: %s\nMessage: %s\nFrom: %s\nSubject: %s\n", e->def->name, e->msg.id, e->msg.from,
	    e->msg.subject);
	buf_addf(out, "Failures: %u\nLast: %s\n", e->note.failures, e->note.result);
	if (office_folders(e->p->room, MR_DEAD))
		buf_adds(out, "\nThe message is kept: mailroom dead list\n");
}

static enum mr_rc
send_to(const struct errand *e, const char *to, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_room *room = e->p->room;
	char key[16 + MR_ID_LEN];

	buf_addf(&subject, "ESCALATION: %s from %s failed %u times", e->def->name, e->msg.from, e->note.failures);
	write_body(&body, e);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return mr_nomem(err);
	(void)snprintf(key, sizeof(key), "escalate-%s", e->msg.id);
	struct mr_draft draft = {
		.to = (const char *[]){ to, NULL },
		.subject = buf_z(&subject),
		.body = buf_z(&body),
		.body_len = body.len,
		.priority = room->driver->abilities & ROOM_PRIORITIES ? MR_HIGH : MR_NORMAL,
		.key = room->driver->abilities & ROOM_KEYS ? key : NULL,
	};
	enum mr_rc rc = send_draft(room, e->p->self, &draft, FIELD_SUBJECT, &receipt, err);

	return rc == MR_INDOUBT ? MR_OK : rc; /* stored; any later command completes it */
}

/* One that cannot be reached must not keep the failure secret: where there is an operator, he is told instead. */
static enum mr_rc
escalate(struct errand *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *to = ear_of(e);
	enum mr_rc rc;

	if (!*to)
		return MR_OK;
	rc = send_to(e, to, err);
	if (rc != MR_OK && office_has_lives(e->p->room) && strcmp(to, OPERATOR) != 0) {
		buf_addf(&text, "cannot escalate to '%s' (%s): the operator is told", to, err->message);
		patrol_event(e->p, "trouble", e->def->name, buf_z(&text));
		to = OPERATOR;
		*err = (struct mr_error){ 0 };
		rc = send_to(e, to, err);
	}
	buf_clear(&text);
	buf_addf(&text, "%s told %s after %u failures", e->msg.id, to, e->note.failures);
	if (rc == MR_OK)
		patrol_event(e->p, "escalated", e->def->name, buf_z(&text));
	return rc;
}

/* Until now only the number of attempts tells of those. */
static void
count_cut_offs(struct note *note)
{
	if (!note_is_deadly(note))
		return;
	note->failures = note->attempt;
	note->result = "cut off each time: whoever ran it ended before it did";
}

enum mr_rc
patrol_give_up(struct errand *e, struct mr_error *err)
{
	struct mr_room *room = e->p->room;
	mr_auto(buf_done) struct buf last = BUF_INIT;
	char key[16 + MR_ID_LEN];

	count_cut_offs(&e->note);
	enum mr_rc rc = escalate(e, err);

	(void)snprintf(key, sizeof(key), "gave-up-%s", e->msg.id);
	buf_adds(&last, e->note.result);
	if (rc == MR_OK && office_has_lives(room) && strcmp(e->msg.from, ear_of(e)) != 0)
		rc = bounce_send(room, e->p->self, &e->msg, buf_z(&last), key, err);
	if (rc == MR_OK)
		rc = errand_turn(e, NOTE_DEAD, "dead", buf_z(&last), err);
	if (rc == MR_OK)
		rc = errand_settle(e, SETTLE_DEAD, err);
	if (rc == MR_OK)
		e->p->count.dead++;
	return rc;
}
