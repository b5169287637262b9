/* SPDX-License-Identifier: MIT */
/*
 * answer.c - an answer. The question is taken out of the inbox before its answer goes out, because the next message of
 * the conversation may come under the same name the moment after, and is not to be removed with it:
 *
 *	waits in inbox --claim--> scratch/<id>.in --draft, deliver--> answered
 *	        ^--------- back, when the answer could not be delivered
 *
 * Older questions of the same channel and the same sender that nobody answered are superseded: each gets its own
 * answer, the empty one. What others asked there stays open. One sender is one folder for the answers.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/workspace/workspace.h"
#include <stdio.h>
#include <stdlib.h>

bool
answer_find(const struct entries *all, const char *request_id, size_t *ret)
{
	const struct entry *best = NULL;

	for (size_t i = 0; i < all->n; i++) {
		const struct entry *e = &all->v[i];

		if (e->folder == MR_SENT || strcmp(e->request_id, request_id) != 0)
			continue;
		if (!best || (best->folder != MR_INBOX && e->folder == MR_INBOX) ||
		    (best->folder == e->folder && entry_is_older(best, e))) {
			best = e;
			*ret = i;
		}
	}
	return best != NULL;
}

/* ---- One answer ---- */

struct answer {
	const struct mr_message *msg; /* NULL: the empty answer */
	struct delivery *what;        /* for staged; NULL with the empty answer */
	struct posting posting;       /* as delivered */
	struct buf bytes;
	char id[ROOM_SPOKEN_MAX + 1];
};

static void
answer_done(struct answer *a)
{
	buf_done(&a->bytes);
}

/* Who answers may be asked further, but for the empty answer, which ends it. The subject says nothing new, unless it
 * was changed. */
static enum mr_rc
write_answer(struct answer *a, const struct box *from, const struct memo *question, const struct route *route,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf reply = BUF_INIT, seen = BUF_INIT, body = BUF_INIT;
	struct memo memo = { .request_id = question->request_id,
		.is_reply = true,
		.channel = question->channel,
		.receiver = str_of(route->path),
		.body = STR("\"\"") };

	if (a->msg) {
		struct mr_str text = { a->msg->body ? a->msg->body : "", a->msg->body ? a->msg->body_len : 0 };

		memo_subject(&seen, text);
		if (a->msg->subject && a->msg->subject[0] && !str_starts(str_of(a->msg->subject), "Re:") &&
		    !str_eq(buf_str(&seen), str_of(a->msg->subject)))
			buf_addf(&body, "# %s\n\n", a->msg->subject);
		buf_add(&body, text);
		memo.body = buf_str(&body);
		buf_addf(&reply, "%s/.mailbox/inbox/%s", from->path, a->id);
		memo.reply = buf_str(&reply);
	}
	memo_write(&a->bytes, &memo);
	if (!buf_ok(&a->bytes) || reply.failed || body.failed)
		return mr_nomem(err);
	return check_memo(from, buf_str(&a->bytes), err);
}

static enum mr_rc
draft_and_deliver(
    struct workspace *ws, struct box *from, struct answer *a, const struct route *route, struct mr_error *err)
{
	mr_auto(buf_done) struct buf dir = BUF_INIT;
	struct mr_error ignored = { 0 };
	bool staged = a->what && a->what->staged;

	a->posting = (struct posting){ .bytes = buf_str(&a->bytes),
		.mtime_ns = post_stamp(ws),
		.what = a->what,
		.over_empty = a->msg != NULL,
		.at_once = a->msg == NULL };
	buf_add(&dir, (struct mr_str){ route->path, strlen(route->path) - strlen(route->name) - 1 });
	if (!buf_ok(&dir))
		return mr_nomem(err);
	if (!staged && post_draft(ws, from, a->id, &a->posting, err) != MR_OK)
		return err->code;
	enum mr_rc rc = post_deliver(ws, route->dir_fd, buf_z(&dir), route->name, &a->posting, err);

	if (rc == MR_OK && staged)
		(void)post_draft(ws, from, a->id, &a->posting, &ignored);
	if (rc != MR_OK && rc != MR_INDOUBT && !staged)
		(void)sys_unlink(from->scratch_fd, a->id); /* a draft of what was never sent */
	return rc;
}

/* The claim came first; without an answer the question waits again. */
static enum mr_rc
give_back(const struct box *from, struct entry *question, struct mr_error *err)
{
	struct mr_error back = { 0 };

	if (claim_back(from, question, &back) == MR_OK && sys_fsync(from->inbox_fd) == 0)
		return err->code;
	return mr_hint(err, "the question is not in the inbox any more: it is kept as scratch/%s", question->name);
}

static enum mr_rc
check_asker(const struct delivery *what, const struct memo *question, struct mr_error *err)
{
	char asker[MR_ADDRESS_MAX + 1];

	workspace_address_in(question->reply, asker);
	if (what->to->n == 1 && (question->reply.len == 0 || strcmp(what->to->v[0], asker) == 0))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "an answer goes to the one who asked, '%s', and to nobody else\nsend others a message of their own", asker);
}

static enum mr_rc
answer_one(struct workspace *ws, struct box *from, struct entry *question, struct answer *a, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(route_done) struct route route = ROUTE_INIT;
	struct memo memo;
	bool waits = question->folder == MR_INBOX;

	(void)snprintf(a->id, sizeof a->id, "%s", question->request_id);
	TRY(entry_text(from, question, &text, err));
	if (memo_parse(buf_str(&text), &memo))
		return mr_fail(err, MR_NOTFOUND, "'%s' is another message by now", question->name);
	if (a->what && check_asker(a->what, &memo, err) != MR_OK)
		return err->code;
	TRY(route_answer(from, &memo, &route, err));
	TRY(write_answer(a, from, &memo, &route, err));
	if (waits && claim_take(from, question, err) != MR_OK)
		return err->code;
	if (waits && (sys_fsync(from->scratch_fd) < 0 || sys_fsync(from->inbox_fd) < 0)) {
		(void)mr_fail_errno(err, "cannot make the claim of '%s' durable", question->name);
		return give_back(from, question, err);
	}
	enum mr_rc rc = draft_and_deliver(ws, from, a, &route, err);

	return rc == MR_OK || rc == MR_INDOUBT || !waits ? rc : give_back(from, question, err);
}

/* ---- Superseded ones ---- */

static bool
is_answered(const struct entries *all, const struct entry *question)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct entry *e = &all->v[i];

		if (e->folder == MR_SENT && e->is_reply && strcmp(e->request_id, question->request_id) == 0 &&
		    entry_is_older(question, e))
			return true;
	}
	return false;
}

static bool
same_sender(const struct entry *a, const struct entry *b)
{
	struct mr_str dir_a, dir_b, name;

	if (!a->reply[0] || !b->reply[0])
		return false;
	route_split(str_of(a->reply), str_of(a->request_id), &dir_a, &name);
	route_split(str_of(b->reply), str_of(b->request_id), &dir_b, &name);
	return str_eq(dir_a, dir_b);
}

/* Another open question of the one who asked this, in its channel? */
static bool
is_open_beside(const struct entries *all, const struct entry *e, const struct entry *question)
{
	return e != question && e->folder != MR_SENT && !e->is_reply && strcmp(e->channel, question->channel) == 0 &&
	       same_sender(e, question) && !is_answered(all, e);
}

static bool
is_newest(const struct entries *all, size_t at)
{
	for (size_t i = 0; i < all->n; i++)
		if (is_open_beside(all, &all->v[i], &all->v[at]) && entry_is_older(&all->v[at], &all->v[i]))
			return false;
	return true;
}

/* What fails here undoes nothing: the answer is out. err->hint tells how many, and why the last. */
static void
answer_superseded(struct workspace *ws, struct box *from, struct entries *all, size_t newest, struct mr_names *done,
    struct mr_error *err)
{
	size_t failed = 0;
	struct mr_error last = { 0 };

	for (size_t i = 0; i < all->n; i++) {
		mr_auto(answer_done) struct answer empty = { 0 };
		struct entry *e = &all->v[i];

		if (!is_open_beside(all, e, &all->v[newest]) || !entry_is_older(e, &all->v[newest]))
			continue;
		if (answer_one(ws, from, e, &empty, &last) != MR_OK)
			failed++;
		else if (done)
			(void)names_add(done, str_of(e->id)); /* it is out: no memory to say so is no failure */
	}
	if (failed > 0)
		(void)mr_hint(err, "%zu older question%s of channel '%.40s' %s not answered: %.120s", failed,
		    failed == 1 ? "" : "s", all->v[newest].channel, failed == 1 ? "was" : "were", last.message);
}

enum mr_rc
answer_deliver(struct workspace *ws, struct box *from, struct delivery *what, struct entries *all, size_t at,
    struct delivered *ret, struct mr_error *err)
{
	mr_auto(answer_done) struct answer a = { .msg = what->msg, .what = what };
	struct entry *question = &all->v[at];
	bool supersedes = !what->only && !question->is_reply && question->channel[0] && is_newest(all, at);

	TRY(answer_one(ws, from, question, &a, err));
	memo_id(a.posting.mtime_ns, a.posting.bytes, ret->id);
	memcpy(what->msg->id, ret->id, sizeof ret->id);
	(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", a.id);
	*err = (struct mr_error){ 0 }; /* its hint is what is said of the others */
	if (supersedes)
		answer_superseded(ws, from, all, at, what->superseded, err);
	return MR_OK;
}
