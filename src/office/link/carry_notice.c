/* SPDX-License-Identifier: MIT */
/*
 * carry_notice.c - telling a sender what became of his mail, wherever he lives: in this room, or in a linked one. Then
 * the notice is mail like his own, and goes into the queue of that link.
 *
 * With a key, so that a carrier that finds out again after a kill tells nothing twice. The key alone says that it was
 * told: the reason may read otherwise by then, and that must not keep the link from going on.
 */
#include "base/clock.h"
#include "base/id.h"
#include "office/link/link.h"

#define NOTICE_TYPE "bounce" /* a bounce never bounces */

static void
write_body(struct buf *out, const struct notice *notice, const struct mr_message *about)
{
	char date[RFC3339_LEN + 1];

	time_rfc3339(about->date_ms, date);
	buf_addf(out, "%s\n\n", notice->story);
	if (*notice->reason)
		buf_addf(out, "Reason: %s\n", notice->reason);
	buf_addf(out, "Message: %s\n", about->id);
	if (*about->subject)
		buf_addf(out, "Subject: %s\n", about->subject);
	buf_addf(out, "Sent: %s\n\n%s\n", date, notice->advice);
	if (!about->body || about->body_len == 0)
		return;
	buf_adds(out, "\nThis was its text:\n\n");
	buf_add(out, (struct mr_str){ about->body, about->body_len });
}

static enum mr_rc
deliver(struct mr_room *room, const struct notice *notice, const struct mr_message *about, const char *target,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, where = BUF_INIT, who = BUF_INIT;
	struct delivered got = { 0 };
	enum mr_rc rc;

	if (*about->subject)
		buf_addf(&subject, "Failed: %s", about->subject);
	else
		buf_addf(
		    &subject, "Failed: your message %s", about->id); /* it was purged here: nothing else is known */
	write_body(&body, notice, about);
	buf_adds(&where, target);
	buf_adds(&who, notice->to);
	if (!buf_ok(&subject) || !buf_ok(&body) || !buf_ok(&where) || !buf_ok(&who))
		return mr_nomem(err);
	struct mr_names targets = { &where.ptr, 1 };
	struct mr_message msg = {
		.from = notice->from,
		.to = { &who.ptr, 1 },
		.subject = buf_z(&subject),
		.date_ms = clock_now_ms(),
		.type = NOTICE_TYPE,
		.priority = about->priority,
		.thread = about->thread,
		.reply_to = about->id,
		.replace_key = "",
		.body = buf_z(&body),
		.body_len = body.len,
		.path = "",
	};
	struct delivery what = {
		.msg = &msg, .to = &targets, .sender = LINK_CLAIMERS, .key = notice->key, .key_is_all = true
	};

	id_new(msg.id);
	rc = room->driver->deliver(room, &what, &got, err);
	mr_names_done(&got.missing);
	/* In doubt: durable, and any later command completes it. Not found: pruned since we looked. */
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_NOTFOUND)
		return MR_OK;
	return mr_wrap(err, "notice to '%s'", notice->to);
}

enum mr_rc
notice_send(struct mr_room *room, const struct notice *notice, const struct mr_message *about, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	char target[MR_ADDRESS_MAX + 8];

	if (strcmp(about->type, NOTICE_TYPE) == 0 || !*notice->to ||
	    carry_target(room, notice->to, target, &ignored) != MR_OK)
		return MR_OK;
	return deliver(room, notice, about, target, err);
}
