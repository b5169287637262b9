/* SPDX-License-Identifier: MIT */
/* queue_fetch.c - reading one message of a queue, wherever in it it is. */
#include "base/error.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/queue.h"
#include <stdio.h>

#define FETCH_TRIES 20
#define FILE_LIMIT ((size_t)64 << 20)

static enum mr_rc
parse_found(struct mr_room *room, const struct queue *q, const struct work_at *at, struct mr_str text,
    const struct stat *st, struct mr_message *ret, struct mr_error *err)
{
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.size_bytes = text.len };
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct work_name n;

	if (!work_parse(at->state, str_of(at->name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is no name of work", at->name);
	memcpy(msg.id, n.file.id, sizeof(msg.id));
	msg.attempt = work_attempt(&n);
	if (at->state == QUEUE_CLAIMED) {
		msg.folder = MR_HELD;
		memcpy(msg.token, n.file.token, sizeof(msg.token));
	}
	if (message_parse(text, room->name, MESSAGE_ALL, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	shared_forget(q->md);
	msg.proof = shared_proof(q->md, msg.from, st);
	buf_addf(&path, "queues/%s/%s/%s", q->name, at->path, at->name);
	struct arena *own = msg.own;
	const char *kept = arena_dup(&own, buf_str(&path));
	msg.own = own;
	if (!buf_ok(&path) || kept == NULL) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	msg.path = kept;
	*ret = msg;
	return MR_OK;
}

enum mr_rc
maildir_queue_fetch(
    struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct stat st;

	enum mr_rc rc = queue_open(&q, maildir_of(room), queue, err);
	if (rc != MR_OK)
		return rc;
	for (int tries = 0; tries < FETCH_TRIES; tries++) {
		mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;
		rc = queue_find(&q, id, &at, err);
		if (rc != MR_OK)
			return rc;
		buf_clear(&text);
		rc = file_read_stat(at.fd, at.name, FILE_LIMIT, &text, &st, err);
		if (rc == MR_OK)
			return parse_found(room, &q, &at, buf_str(&text), &st, ret, err);
		if (rc == MR_REFUSED) { /* a planted link or folder, or larger than any mail: it will never be read */
			err->code = MR_CORRUPT;
			return MR_CORRUPT;
		}
		if (rc != MR_NOTFOUND) /* it moved between finding and reading: find it again */
			return rc;
	}
	return mr_fail(err, MR_BUSY, "message '%s' in queue '%s' is moved all the time", id, queue);
}
