/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - a new message: a copy in the sender's scratch, then the same bytes in the recipient's inbox. Every
 * recipient gets an id of its own, because the answers of two would else meet under one name in our inbox.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "rooms/workspace/workspace.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- What the format can hold ---- */

static bool
is_known_to(struct workspace *ws, const char *agent, const char *request_id)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	const struct listing listing = { .folders = MR_INBOX | MR_ARCHIVE };
	struct mr_error ignored = { 0 };
	size_t at = 0;

	return box_open(&box, ws, agent, BOX_AS_IT_IS, &ignored) == MR_OK &&
	       entries_read(ws, &box, &listing, &all, &ignored) == MR_OK && answer_find(&all, request_id, &at);
}

static bool
is_text(struct mr_str s)
{
	return utf8_valid(s) && (s.len == 0 || !memchr(s.ptr, '\0', s.len));
}

unsigned
workspace_lacks(struct mr_room *room, const struct mr_message *msg)
{
	unsigned lacks = 0;

	if (msg->cc.n > 0)
		lacks |= FIELD_CC;
	if (msg->to.n > 1)
		lacks |= FIELD_TO;
	if (msg->type && msg->type[0])
		lacks |= FIELD_TYPE;
	if (msg->priority != MR_NORMAL)
		lacks |= FIELD_PRIORITY;
	if (msg->by_ms)
		lacks |= FIELD_BY;
	if (msg->headers_n > 0)
		lacks |= FIELD_HEADERS;
	if (msg->body && !is_text((struct mr_str){ msg->body, msg->body_len }))
		lacks |= FIELD_BINARY;
	/* An answer goes back to where its question came from, or is none here. */
	if (msg->reply_to && msg->reply_to[0] && !is_known_to(workspace_of(room), msg->from, msg->reply_to))
		lacks |= FIELD_REPLY_TO;
	return lacks;
}

enum mr_rc
check_memo(const struct box *from, struct mr_str bytes, struct mr_error *err)
{
	if (bytes.len > MEMO_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the message is larger than 1 MiB\nput it in a file that the recipient can read, and mail the path");
	if (!is_text(bytes))
		return mr_fail(err, MR_REFUSED, "the message is not UTF-8 text, and a workspace holds nothing else");
	if (from && box_scratch_named(from, bytes))
		return mr_fail(err, MR_REFUSED,
		    "the message names the scratch folder of '%s'\nscratch is private: copy what others shall see to another folder",
		    from->address);
	return MR_OK;
}

/* ---- One message ---- */

struct draft { /* one message to one recipient */
	char request_id[MEMO_ID_LEN + 1];
	struct buf receiver, reply, body, bytes;
};

static void
draft_done(struct draft *d)
{
	buf_done(&d->receiver);
	buf_done(&d->reply);
	buf_done(&d->body);
	buf_done(&d->bytes);
}

/* A subject that is not the first line anyway becomes a heading. */
static void
add_body(struct buf *out, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf seen = BUF_INIT;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };

	memo_subject(&seen, body);
	if (msg->subject && msg->subject[0] && !str_eq(buf_str(&seen), str_of(msg->subject)))
		buf_addf(out, "# %s\n\n", msg->subject);
	buf_add(out, body);
}

/* Of an import the id follows from the message, so that a second one finds it. */
static void
choose_id(const struct delivery *what, char ret[MEMO_ID_LEN + 1])
{
	mr_auto(buf_done) struct buf identity = BUF_INIT;
	char hex[65];

	if (!what->keep) {
		random_hex(ret, MEMO_ID_LEN);
		return;
	}
	buf_addf(&identity, "%s\n%lld\n%s", what->msg->id, (long long)what->msg->date_ms, what->msg->from);
	sha256_hex(buf_str(&identity), hex);
	memcpy(ret, hex, MEMO_ID_LEN);
	ret[MEMO_ID_LEN] = '\0';
}

/* Where the answer shall go. Somebody without a workspace here, whose mail is imported, is at least named by it. */
static enum mr_rc
add_reply_path(struct workspace *ws, const struct delivery *what, struct draft *d, struct mr_error *err)
{
	if (what->reply_path) {
		size_t len = strlen(what->reply_path);

		while (len > 1 && what->reply_path[len - 1] == '/')
			len--;
		buf_add(&d->reply, (struct mr_str){ what->reply_path, len });
		buf_addf(&d->reply, "/%s", d->request_id);
		return MR_OK;
	}
	TRY(workspace_path(ws, what->msg->from, &d->reply, err));
	buf_addf(&d->reply, "/.mailbox/inbox/%s", d->request_id);
	return MR_OK;
}

static enum mr_rc
compose(struct workspace *ws, const struct delivery *what, const struct box *from, const struct box *to,
    struct draft *d, struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	bool own_thread = !msg->thread || !msg->thread[0] || strcmp(msg->thread, msg->id) == 0;
	struct memo memo = { .channel = str_of(own_thread ? "" : msg->thread) };

	choose_id(what, d->request_id);
	buf_addf(&d->receiver, "%s/.mailbox/inbox/%s", to->path, d->request_id);
	TRY(add_reply_path(ws, what, d, err));
	add_body(&d->body, msg);
	if (!buf_ok(&d->receiver) || !buf_ok(&d->reply) || d->body.failed)
		return mr_nomem(err);
	memo.request_id = str_of(d->request_id);
	memo.receiver = buf_str(&d->receiver);
	memo.reply = buf_str(&d->reply);
	memo.body = buf_str(&d->body);
	if (memo_value_problem(memo.channel))
		return mr_fail(err, MR_REFUSED, "the thread %s", memo_value_problem(memo.channel));
	if (memo_value_problem(memo.reply) || memo_value_problem(memo.receiver))
		return mr_fail(err, MR_REFUSED, "a path of this message has a control character or is not UTF-8");
	memo_write(&d->bytes, &memo);
	if (!buf_ok(&d->bytes))
		return mr_nomem(err);
	return check_memo(from, buf_str(&d->bytes), err);
}

/* Wherever an earlier import of it is now. */
static bool
is_imported(struct workspace *ws, const struct box *to, const char *request_id, char ret_id[MR_ID_LEN + 1])
{
	mr_auto(entries_done) struct entries all = { 0 };
	const struct listing listing = { .folders = MR_INBOX | MR_ARCHIVE };
	struct mr_error ignored = { 0 };

	if (entries_read(ws, to, &listing, &all, &ignored) != MR_OK)
		return false;
	for (size_t i = 0; i < all.n; i++)
		if (strcmp(all.v[i].request_id, request_id) == 0) {
			memcpy(ret_id, all.v[i].id, MR_ID_LEN + 1);
			return true;
		}
	return false;
}

/* Scratch first, as the format wants it; but of mail that is carried the copy comes last: after a kill before that, it
 * would tell of a message that is sent again under another id. */
static enum mr_rc
hand_over(struct workspace *ws, const struct delivery *what, struct box *from, const struct box *to,
    const struct draft *d, struct posting *p, struct mr_error *err)
{
	mr_auto(buf_done) struct buf dir = BUF_INIT;
	struct mr_error ignored = { 0 };
	bool copy = from && !what->keep;

	buf_addf(&dir, "%s/.mailbox/inbox", to->path);
	if (!buf_ok(&dir))
		return mr_nomem(err);
	if (copy && !what->staged && post_draft(ws, from, d->request_id, p, err) != MR_OK)
		return err->code;
	enum mr_rc rc = post_deliver(ws, to->inbox_fd, buf_z(&dir), d->request_id, p, err);

	if (rc == MR_OK && copy && what->staged)
		(void)post_draft(ws, from, d->request_id, p, &ignored); /* delivered is delivered */
	if (rc != MR_OK && rc != MR_INDOUBT && copy && !what->staged)
		(void)sys_unlink(from->scratch_fd, d->request_id); /* our own copy of what was never sent */
	return rc;
}

static enum mr_rc
deliver_one(struct workspace *ws, struct delivery *what, struct box *from, const char *recipient, struct delivered *ret,
    struct mr_error *err)
{
	mr_auto(draft_done) struct draft d = { 0 };
	mr_auto(box_done) struct box to = BOX_INIT;

	TRY(box_open(&to, ws, recipient, BOX_MAKE_OWN, err));
	TRY(compose(ws, what, from, &to, &d, err));
	if (what->keep && is_imported(ws, &to, d.request_id, ret->id)) {
		(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", d.request_id);
		return mr_fail(err, MR_EXISTS, "'%s' has that message already", recipient);
	}
	struct posting p = { .bytes = buf_str(&d.bytes),
		.mtime_ns = what->keep ? what->msg->date_ms * 1000000 : post_stamp(ws),
		.what = what };

	TRY(hand_over(ws, what, from, &to, &d, &p, err));
	memo_id(p.mtime_ns, p.bytes, ret->id);
	(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", d.request_id);
	return MR_OK;
}

/* ---- All of them ---- */

static enum mr_rc
check_recipients(struct workspace *ws, const struct mr_names *to, struct mr_error *err)
{
	for (size_t i = 0; i < to->n; i++) {
		mr_auto(box_done) struct box box = BOX_INIT;

		if (box_open(&box, ws, to->v[i], BOX_AS_IT_IS, err) == MR_OK)
			continue;
		if (strcmp(to->v[i], CLIENT) == 0)
			return mr_hint(err, "who has no workspace can only be answered: 'mailroom reply ID'");
		return err->code;
	}
	return MR_OK;
}

/* Some have it, the rest from `left` on has not. */
static enum mr_rc
stopped_halfway(const struct mr_names *to, size_t left, struct delivered *ret, struct mr_error *err)
{
	struct mr_error why = *err;

	for (size_t i = left; i < to->n; i++)
		if (!names_add(&ret->missing, str_of(to->v[i])))
			return mr_nomem(err);
	return mr_fail(err, MR_INDOUBT, "%zu of %zu got it: %s\nsend it again to those only who have not got it", left,
	    to->n, why.message);
}

/* The sender is told of the first. */
static enum mr_rc
deliver_new(struct workspace *ws, struct delivery *what, struct box *from, struct delivered *ret, struct mr_error *err)
{
	struct delivered first = { 0 };
	enum mr_rc rc = check_recipients(ws, what->to, err);
	size_t done = 0;

	while (rc == MR_OK && done < what->to->n) {
		struct delivered one = { 0 };

		rc = deliver_one(ws, what, from, what->to->v[done], &one, err);
		if (done == 0)
			first = one;
		done += rc == MR_OK;
	}
	if (rc != MR_OK && done > 0)
		rc = stopped_halfway(what->to, done, &first, err);
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_EXISTS) {
		*ret = first;
		memcpy(what->msg->id, first.id, sizeof first.id);
	}
	return rc;
}

/* The sender's folders: own ones are made; those of a stand-in for an agent of another room, too, or nobody could
 * answer it. A client has none, and an import needs none. */
static enum mr_rc
open_sender(struct workspace *ws, const struct delivery *what, struct box *ret, bool *ret_has, struct mr_error *err)
{
	const char *sender = what->sender && what->sender[0] ? what->sender : what->msg->from;
	mr_auto(sys_close_fd) int fd = -1;

	*ret_has = false;
	if (what->reply_path)
		return route_open_dir(str_of(what->reply_path), &fd, err);
	if (what->keep)
		return MR_OK;
	enum mr_rc rc = box_open(ret, ws, sender, what->carried ? BOX_MAKE_ANY : BOX_MAKE_OWN, err);

	*ret_has = rc == MR_OK;
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_REFUSED,
	    "'%s' has no workspace here, so nobody could answer\n"
	    "send from a workspace, or give --reply-path DIR, where the answer shall be put",
	    sender);
}

enum mr_rc
workspace_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box from = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	const struct listing listing = { .folders = MR_INBOX | MR_ARCHIVE | MR_SENT };
	bool has_box = false;
	size_t at = 0;

	TRY(open_sender(ws, what, &from, &has_box, err));
	if (has_box && what->msg->reply_to && what->msg->reply_to[0]) {
		TRY(entries_read(ws, &from, &listing, &all, err));
		if (answer_find(&all, what->msg->reply_to, &at))
			return answer_deliver(ws, &from, what, &all, at, ret, err);
		if (!what->carried &&
		    !what->keep) { /* the office has seen it: an answer must not become a new message */
			return mr_fail(err, MR_NOTFOUND,
			    "the message that this answers cannot be found any more\n"
			    "nothing was sent; look with `mailroom inbox`, then try again");
		}
	}
	return deliver_new(ws, what, has_box ? &from : NULL, ret, err);
}
