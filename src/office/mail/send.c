/* SPDX-License-Identifier: MIT */
/*
 * send.c - one accepted send, from letter to receipt. Everything that can be refused was refused before the
 * driver is asked to deliver (outgoing.c); what comes after the delivery (retiring older mail, the receipt's news about
 * the recipients) never turns an accepted message into a failure.
 */
#include "base/error.h"
#include "message/message.h"
#include "office/rules/config.h"
#include "office/mail/outgoing.h"
#include "office/link/link.h"

/* ---- After the delivery ---- */

static char *
notify_command(const struct outgoing *l)
{
	const char *command;

	if (!names_has(&l->who.all, OPERATOR) || strcmp(l->self->agent, OPERATOR) == 0)
		return NULL;
	command = config_get(l->room, "Notify");
	return command ? strdup(command) : NULL;
}

/* A room of an earlier build says Notify: itself. Nobody is notified any more, and the sender hears of it once a life.
 */
static char *
ignored_notify(const struct outgoing *l)
{
	const struct room_driver *driver = l->room->driver;

	if (!names_has(&l->who.all, OPERATOR) || !mr_room_setting(l->room, "Notify") || config_get(l->room, "Notify") ||
	    !DRIVER_HAS(driver, once) || !driver->once(l->room, l->self->agent, l->self->life, "notify"))
		return NULL;
	return strdup(
	    "the room's own Notify: is not run, because a room holds no commands; the user can allow it with: "
	    "mailroom config adopt");
}

static void
names_move(struct mr_names *to, struct mr_names *from)
{
	*to = *from;
	*from = (struct mr_names){ 0 };
}

/* What the type made by itself is told: a request's id is what its answer will name. */
static struct mr_fields *
fields_of(const struct outgoing *l)
{
	struct mr_fields *fields = l->typed.def ? calloc(1, sizeof(*fields)) : NULL;
	struct mr_error ignored = { 0 };

	if (fields)
		(void)mr_message_fields(l->room, &l->msg, fields, &ignored);
	return fields;
}

/* ---- The send ---- */

static enum mr_rc
rehearse(struct outgoing *l, struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(message_write(&l->msg, l->room->name, &text, err));
	*ret = (struct mr_receipt){ 0 };
	(void)snprintf(ret->id, sizeof(ret->id), "%s", l->msg.id);
	names_move(&ret->to, &l->who.all);
	names_move(&ret->not_live, &l->who.not_live);
	names_move(&ret->trouble, &l->who.trouble);
	names_move(&ret->warnings, &l->typed.warnings);
	ret->fields = fields_of(l);
	link_after_delivery(l->room, ret->id, &ret->to, &l->who.to, &l->who.cc, NULL);
	return MR_OK;
}

struct delivery
outgoing_delivery(struct outgoing *l)
{
	return (struct delivery){
		.msg = &l->msg,
		.to = &l->who.all,
		.sender = l->self->agent,
		.key = l->draft->key,
		.make_mailboxes = l->who.missing,
		.removals = l->who.missing ? 0 : l->who.removals, /* who has no mailbox yet was not found */
		.only = l->draft->only,
		.superseded = &l->superseded,
		.reply_path = l->draft->reply_path,
	};
}

static enum mr_rc
deliver(struct outgoing *l, struct delivered *ret, struct mr_error *err)
{
	struct delivery what = outgoing_delivery(l);
	struct mr_error ignored = { 0 };
	char planned[MR_ID_LEN + 1];
	enum mr_rc rc;

	memcpy(planned, l->msg.id, sizeof(planned));
	rc = link_hold(l->room, &l->who.away, err);
	if (rc != MR_OK)
		return rc;
	if (l->msg.by_ms) {
		rc = due_put(l->room, l->self->agent, &l->msg, err);
		if (rc != MR_OK)
			return rc;
	}
	types_note_asked(l->room, l->typed.def, &l->msg, &l->who.all);
	*err = (struct mr_error){ 0 };
	rc = l->room->driver->deliver(l->room, &what, ret, err);
	if (rc == MR_OK && err->code == MR_OK && err->hint[0])
		(void)names_add(
		    &l->who.trouble, str_of(err->hint)); /* it is out: no memory to say more is no failure */
	if (l->msg.by_ms && ((rc != MR_OK && rc != MR_INDOUBT) || strcmp(planned, ret->id) != 0)) {
		/* Nothing went out under the id that was written down. A known key keeps its first record. */
		due_drop(l->room, l->self->agent, planned);
		if ((rc == MR_OK || rc == MR_INDOUBT) && !ret->repeated) {
			(void)snprintf(l->msg.id, sizeof(l->msg.id), "%s", ret->id);
			(void)due_put(l->room, l->self->agent, &l->msg, &ignored);
		}
	}
	return rc;
}

static void
fill_receipt(struct outgoing *l, enum mr_rc rc, struct delivered *got, struct mr_receipt *ret)
{
	*ret = (struct mr_receipt){ .repeated = got->repeated };
	memcpy(ret->id, got->id, sizeof(ret->id));
	retention_after_delivery(l->room, &l->who.all);
	if (rc == MR_OK)
		ret->retired = state_retire(l->room, &l->msg, &l->who.all, got->id);
	/* Whoever asked for this answer has it now, except when one answers oneself. */
	if (*l->msg.reply_to && strcmp(l->original.from, l->self->agent) != 0)
		due_drop(l->room, l->original.from, l->original.id);
	ret->warning = ignored_notify(l);
	ret->notify = got->repeated ? NULL : notify_command(l);
	names_move(&ret->to, &l->who.all);
	names_move(&ret->not_live, &l->who.not_live);
	names_move(&ret->trouble, &l->who.trouble);
	names_move(&ret->warnings, &l->typed.warnings);
	names_move(&ret->missing, &got->missing);
	names_move(&ret->superseded, &l->superseded);
	ret->fields = fields_of(l);
	link_after_delivery(l->room, ret->id, &ret->to, &l->who.to, &l->who.cc, &ret->trouble);
}

/* The message is out: that its answer must be looked for by hand is a warning. */
static void
expect_answer(const struct outgoing *l, const struct delivered *got, struct mr_receipt *ret)
{
	struct mr_error err = { 0 };
	struct buf text = BUF_INIT;

	if (!l->draft->reply_path || answer_expect(l->room, got->id, got->spoken, l->draft->reply_path, &err) == MR_OK)
		return;
	buf_addf(&text, "where the answer comes is not remembered (%s): give `wait` --reply-path and --id %s",
	    err.message, got->spoken);
	free(ret->warning);
	ret->warning = buf_take(&text);
}

void
outgoing_after(struct outgoing *l, enum mr_rc rc, struct delivered *got, struct mr_receipt *ret)
{
	fill_receipt(l, rc, got, ret);
	expect_answer(l, got, ret);
}

enum mr_rc
outgoing_send(struct outgoing *l, struct mr_receipt *ret, struct mr_error *err)
{
	struct delivered got = { 0 };
	enum mr_rc rc;

	if (l->draft->dry_run)
		return rehearse(l, ret, err);
	rc = deliver(l, &got, err);
	if (rc == MR_OK || rc == MR_INDOUBT)
		outgoing_after(l, rc, &got, ret);
	else
		mr_names_done(&got.missing);
	return rc;
}

enum mr_rc
mr_send(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, struct mr_receipt *ret,
    struct mr_error *err)
{
	return send_draft(room, self, draft, 0, ret, err);
}

enum mr_rc
send_draft(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, unsigned implied,
    struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(outgoing_done) struct outgoing l = { .room = room, .self = self, .draft = draft, .implied = implied };
	enum mr_rc rc = outgoing_prepare(&l, err);

	return rc == MR_OK ? outgoing_send(&l, ret, err) : rc;
}

void
mr_receipt_done(struct mr_receipt *receipt)
{
	if (!receipt)
		return;
	mr_names_done(&receipt->to);
	mr_names_done(&receipt->not_live);
	mr_names_done(&receipt->missing);
	mr_names_done(&receipt->trouble);
	mr_names_done(&receipt->warnings);
	mr_names_done(&receipt->superseded);
	mr_fields_done(receipt->fields);
	free(receipt->fields);
	free(receipt->warning);
	free(receipt->notify);
	*receipt = (struct mr_receipt){ 0 };
}
