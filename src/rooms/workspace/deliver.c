/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - a new message, and an answer: a copy in the sender's scratch, then the same bytes in the recipient's
 * inbox. Every recipient gets an id of its own, because the answers of two would else meet under one name in our inbox.
 *
 * The question is taken out of the inbox before its answer goes out, because the next message of the conversation may
 * come under the same name the moment after, and is not to be removed with it:
 *
 *	waits in inbox --claim--> scratch/<id>.in --draft, deliver--> answered
 *	        ^--------- back, when the answer could not be delivered
 *
 * Older questions of the same channel and the same sender that nobody answered are superseded: each gets its own
 * answer, the empty one. What others asked there stays open. One sender is one folder for the answers.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "rooms/workspace/workspace.h"
#include <stdio.h>

#define RECEIVED (MR_INBOX | MR_ARCHIVE)

/* ---- What the format can hold ---- */

/* Earlier by arrival: mtime, ctime, name. */
static bool
is_older(const struct kit_item *a, const struct kit_item *b)
{
	if (a->mtime_ns != b->mtime_ns)
		return a->mtime_ns < b->mtime_ns;
	if (entry_of(a)->ctime_ns != entry_of(b)->ctime_ns)
		return entry_of(a)->ctime_ns < entry_of(b)->ctime_ns;
	return strcmp(a->name, b->name) < 0;
}

/* The message that a REQUEST_ID means to this agent: the one that waits, else the newest that was taken; or NULL. */
static struct kit_item *
find_question(const struct kit_items *all, const char *request_id)
{
	struct kit_item *best = NULL;

	for (size_t i = 0; i < all->n; i++) {
		struct kit_item *item = &all->v[i];

		if (item->folder == MR_SENT || strcmp(entry_of(item)->request_id, request_id) != 0)
			continue;
		if (!best || (best->folder != MR_INBOX && item->folder == MR_INBOX) ||
		    (best->folder == item->folder && is_older(best, item)))
			best = item;
	}
	return best;
}

unsigned
workspace_unsupported(struct mr_room *room, const struct mr_message *msg)
{
	unsigned fields = kit_fields(msg, NULL) & ~(unsigned)FIELD_THREAD;
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(kit_items_done) struct kit_items all = { 0 };

	if (!utf8_text(kit_text(msg)))
		fields |= FIELD_BINARY;
	/* An answer goes back to where its question came from, or is none here. */
	if ((fields & FIELD_REPLY_TO) && kit_box_open(room, msg->from, BOX_AS_IT_IS, &box, IGNORED) == MR_OK &&
	    kit_list(box, RECEIVED, &all, IGNORED) == MR_OK && find_question(&all, msg->reply_to))
		fields &= ~(unsigned)FIELD_REPLY_TO;
	return fields;
}

/* ---- One message ---- */

struct draft { /* one message to one recipient */
	char id[ROOM_NATIVE_ID_MAX + 1];
	struct buf receiver, reply, body, bytes;
	struct posting posting; /* as delivered */
};

static void
draft_done(struct draft *d)
{
	buf_done(&d->receiver);
	buf_done(&d->reply);
	buf_done(&d->body);
	buf_done(&d->bytes);
}

/* A subject that is not the first line anyway becomes a heading; that of an answer only where it was changed. */
static void
add_body(struct buf *out, const struct mr_message *msg, bool answer)
{
	mr_auto(buf_done) struct buf seen = BUF_INIT;

	memo_subject(&seen, kit_text(msg));
	if (msg->subject && msg->subject[0] && !(answer && str_starts(str_of(msg->subject), "Re:")) &&
	    !str_eq(buf_str(&seen), str_of(msg->subject)))
		buf_addf(out, "# %s\n\n", msg->subject);
	buf_add(out, kit_text(msg));
}

/* MR_REFUSED: not UTF-8, too large, or it names the scratch folder of its sender. */
static enum mr_rc
write_memo(struct draft *d, struct memo *memo, struct kit_box *from, struct mr_error *err)
{
	TRY(mr_got(!d->receiver.failed && !d->reply.failed && !d->body.failed, err));
	memo_write(&d->bytes, memo);
	TRY(mr_got(buf_ok(&d->bytes), err));
	if (d->bytes.len > MEMO_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the message is larger than 1 MiB\nput it in a file that the recipient can read, and mail the path");
	if (!utf8_text(buf_str(&d->bytes)))
		return mr_fail(err, MR_REFUSED, "the message is not UTF-8 text, and a workspace holds nothing else");
	if (from && box_scratch_named(from, buf_str(&d->bytes)))
		return mr_fail(err, MR_REFUSED,
		    "the message names the scratch folder of '%s'\n"
		    "scratch is private: copy what others are to see to another folder",
		    from->agent);
	d->posting.bytes = buf_str(&d->bytes);
	return MR_OK;
}

/* Scratch first, as the format wants it; but of mail that is carried the copy comes last: after a kill before that, it
 * would tell of a message that is sent again under another id. from NULL: no copy is kept. */
static enum mr_rc
hand_over(struct workspace *ws, struct kit_box *from, int dir_fd, const char *dir, const char *name, struct draft *d,
    struct mr_error *err)
{
	bool staged = d->posting.what && d->posting.what->staged;

	if (from && !staged)
		TRY(post_draft(from, d->id, &d->posting, err));
	enum mr_rc rc = post_deliver(ws, dir_fd, dir, name, &d->posting, err);

	if (rc == MR_OK && from && staged)
		(void)post_draft(from, d->id, &d->posting, IGNORED); /* delivered is delivered */
	if (rc != MR_OK && rc != MR_INDOUBT && from && !staged)
		(void)sys_unlink(from->other_fd, d->id); /* our own copy of what was never sent */
	return rc;
}

/* ---- A new message ---- */

static enum mr_rc
compose(struct workspace *ws, const struct delivery *what, struct kit_box *from, struct kit_box *to, struct draft *d,
    struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	bool own_thread = !msg->thread || !msg->thread[0] || strcmp(msg->thread, msg->id) == 0;

	if (what->keep) { /* the id follows from the message, so that a second import finds it */
		mr_auto(buf_done) struct buf identity = BUF_INIT;
		char hex[65];

		buf_addf(&identity, "%s\n%lld\n%s", msg->id, (long long)msg->date_ms, msg->from);
		sha256_hex(buf_str(&identity), hex);
		(void)snprintf(d->id, sizeof d->id, "%.*s", MEMO_ID_LEN, hex);
	} else {
		random_hex(d->id, MEMO_ID_LEN);
	}
	box_path(to, MR_INBOX, &d->receiver);
	buf_addf(&d->receiver, "/%s", d->id);
	/* Where the answer shall go. A sender without a workspace here, whose mail is imported, is at least named. */
	if (ws->reply_path) {
		buf_addf(&d->reply, "%s/%s", ws->reply_path, d->id);
	} else {
		TRY(workspace_path(ws, msg->from, &d->reply, err));
		buf_addf(&d->reply, "/.mailbox/inbox/%s", d->id);
	}
	add_body(&d->body, msg, false);
	struct memo memo = { .request_id = str_of(d->id),
		.channel = str_of(own_thread ? "" : msg->thread),
		.receiver = buf_str(&d->receiver),
		.reply = buf_str(&d->reply),
		.body = buf_str(&d->body) };

	if (memo_value_problem(memo.channel))
		return mr_fail(err, MR_REFUSED, "the thread %s", memo_value_problem(memo.channel));
	if (memo_value_problem(memo.reply) || memo_value_problem(memo.receiver))
		return mr_fail(err, MR_REFUSED, "a path of this message has a control character or is not UTF-8");
	return write_memo(d, &memo, from, err);
}

struct sending {
	struct mr_room *room;
	const struct delivery *what;
	struct kit_box *from; /* NULL: no copy is kept */
};

static enum mr_rc
deliver_one(void *sending, const char *recipient, struct delivered *ret, struct mr_error *err)
{
	const struct sending *s = sending;
	const struct delivery *what = s->what;
	struct workspace *ws = workspace_of(s->room);
	mr_auto(draft_done) struct draft d = { 0 };
	mr_auto(kit_box_close) struct kit_box *to = NULL;
	mr_auto(buf_done) struct buf dir = BUF_INIT;

	TRY(kit_box_open(s->room, recipient, BOX_MAKE_OWN, &to, err));
	TRY(compose(ws, what, s->from, to, &d, err));
	(void)snprintf(ret->native_id, sizeof ret->native_id, "%s", d.id);
	if (what->keep) { /* wherever an earlier import of it is now */
		mr_auto(kit_items_done) struct kit_items all = { 0 };
		const struct kit_item *there =
		    kit_list(to, RECEIVED, &all, IGNORED) == MR_OK ? find_question(&all, d.id) : NULL;

		if (there) {
			memcpy(ret->id, there->id, sizeof ret->id);
			return mr_fail(err, MR_EXISTS, "'%s' already has that message", recipient);
		}
	}
	d.posting.mtime_ns = what->keep ? what->msg->date_ms * 1000000 : post_stamp(ws);
	d.posting.what = what;
	box_path(to, MR_INBOX, &dir);
	TRY(mr_got(buf_ok(&dir), err));
	/* Told before it is handed over: the caller notes it with the ticket, and looks for it after a kill. */
	workspace_message_id(d.posting.mtime_ns, d.posting.bytes, ret->id);
	enum mr_rc rc = hand_over(ws, what->keep ? NULL : s->from, to->inbox_fd, buf_z(&dir), d.id, &d, err);

	if (rc == MR_OK || rc == MR_INDOUBT)
		workspace_message_id(d.posting.mtime_ns, d.posting.bytes, ret->id);
	return rc;
}

static enum mr_rc
deliver_new(
    struct mr_room *room, struct delivery *what, struct kit_box *from, struct delivered *ret, struct mr_error *err)
{
	struct sending s = { room, what, from };

	for (size_t i = 0; i < what->to->n; i++) {
		mr_auto(kit_box_close) struct kit_box *box = NULL;
		enum mr_rc rc = kit_box_open(room, what->to->v[i], BOX_AS_IT_IS, &box, err);

		if (rc != MR_OK && strcmp(what->to->v[i], CLIENT) == 0)
			return mr_hint(err, "a sender without a workspace can only get answers: mailroom reply ID");
		TRY(rc);
	}
	return kit_deliver(what, deliver_one, &s, ret, err);
}

/* ---- An answer ---- */

/* The question was claimed first; without an answer it waits again. */
static enum mr_rc
give_back(const struct kit_box *from, const struct kit_item *question, struct mr_error *err)
{
	if (claim_back(from, question, IGNORED) == MR_OK && sys_fsync(from->inbox_fd) == 0)
		return err->code;
	return mr_hint(err, "the question is no longer in the inbox: it is kept as scratch/%s", question->name);
}

/* what NULL: the empty answer, which ends the conversation; after any other one the answerer may be asked further. */
static enum mr_rc
answer_one(struct kit_box *from, struct kit_items *all, struct kit_item *question, struct delivery *what,
    struct draft *d, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, dir = BUF_INIT;
	mr_auto(route_done) struct route route = ROUTE_INIT;
	struct memo asked;
	char asker[MR_ADDRESS_MAX + 1];
	bool waits = question->folder == MR_INBOX;

	(void)snprintf(d->id, sizeof d->id, "%s", entry_of(question)->request_id);
	TRY(workspace_text(from, question, &text, err));
	if (memo_parse(buf_str(&text), &asked))
		return mr_fail(err, MR_NOTFOUND, "'%s' has become another message", question->name);
	workspace_address_in(asked.reply, asker);
	if (what && !(what->to->n == 1 && (asked.reply.len == 0 || strcmp(what->to->v[0], asker) == 0)))
		return mr_fail(err, MR_REFUSED,
		    "an answer goes only to the sender of the question, '%s'\nsend a separate message to others",
		    asker);
	TRY(route_answer(from, &asked, &route, err));
	struct memo memo = { .request_id = asked.request_id,
		.is_reply = true,
		.channel = asked.channel,
		.receiver = str_of(route.path),
		.body = STR("\"\"") };

	if (what) {
		add_body(&d->body, what->msg, true);
		box_path(from, MR_INBOX, &d->reply);
		buf_addf(&d->reply, "/%s", d->id);
		memo.body = buf_str(&d->body);
		memo.reply = buf_str(&d->reply);
	}
	TRY(write_memo(d, &memo, from, err));
	if (waits)
		TRY(claim_take(from, all, question, err));
	if (waits && (sys_fsync(from->other_fd) < 0 || sys_fsync(from->inbox_fd) < 0)) {
		(void)mr_fail_errno(err, "cannot make the claim of '%s' durable", question->name);
		return give_back(from, question, err);
	}
	d->posting.mtime_ns = post_stamp(workspace_of(from->room));
	d->posting.what = what;
	d->posting.over_empty = what != NULL;
	d->posting.at_once = what == NULL;
	buf_add(&dir, (struct mr_str){ route.path, strlen(route.path) - strlen(route.name) - 1 });
	enum mr_rc rc = hand_over(workspace_of(from->room), from, route.dir_fd, buf_z(&dir), route.name, d, err);

	return rc == MR_OK || rc == MR_INDOUBT || !waits ? rc : give_back(from, question, err);
}

/* Is it another open question of the same sender in the same channel? */
static bool
is_open_beside(const struct kit_items *all, const struct kit_item *item, const struct kit_item *question)
{
	const struct entry *e = entry_of(item), *asked = entry_of(question);
	struct mr_str its_dir, dir, name;

	if (item == question || item->folder == MR_SENT || e->is_reply || strcmp(e->channel, asked->channel) != 0 ||
	    !e->reply[0] || !asked->reply[0])
		return false;
	route_split(str_of(e->reply), str_of(e->request_id), &its_dir, &name);
	route_split(str_of(asked->reply), str_of(asked->request_id), &dir, &name);
	if (!str_eq(its_dir, dir)) /* another sender's */
		return false;
	for (const struct kit_item *a = all->v; a < all->v + all->n; a++)
		if (a->folder == MR_SENT && entry_of(a)->is_reply && is_older(item, a) &&
		    strcmp(entry_of(a)->request_id, e->request_id) == 0)
			return false; /* it has an answer */
	return true;
}

/* What fails here undoes nothing: the answer is out. A warning tells how many, and why the last. */
static void
answer_superseded(struct kit_box *from, struct kit_items *all, const struct kit_item *newest, struct mr_names *done,
    struct mr_names *warnings)
{
	char text[300];
	size_t failed = 0;
	struct mr_error last = { 0 };

	for (size_t i = 0; i < all->n; i++) {
		mr_auto(draft_done) struct draft empty = { 0 };
		struct kit_item *item = &all->v[i];

		if (!is_open_beside(all, item, newest) || !is_older(item, newest))
			continue;
		if (answer_one(from, all, item, NULL, &empty, &last) != MR_OK)
			failed++;
		else if (done)
			(void)names_add(done, str_of(item->id)); /* it is out: no memory to say so is no failure */
	}
	if (failed == 0)
		return;
	(void)snprintf(text, sizeof text, "%zu older question%s of channel '%.40s' %s not answered: %.120s", failed,
	    failed == 1 ? "" : "s", entry_of(newest)->channel, failed == 1 ? "was" : "were", last.message);
	(void)names_add(warnings, str_of(text));
}

static enum mr_rc
deliver_answer(struct kit_box *from, struct delivery *what, struct kit_items *all, struct kit_item *question,
    struct delivered *ret, struct mr_error *err)
{
	mr_auto(draft_done) struct draft d = { 0 };
	const struct entry *e = entry_of(question);
	bool supersedes = !what->only && !e->is_reply && e->channel[0]; /* if it is the newest of them */

	for (size_t i = 0; i < all->n && supersedes; i++)
		supersedes = !is_open_beside(all, &all->v[i], question) || !is_older(question, &all->v[i]);
	TRY(answer_one(from, all, question, what, &d, err));
	workspace_message_id(d.posting.mtime_ns, d.posting.bytes, ret->id);
	(void)snprintf(ret->native_id, sizeof ret->native_id, "%s", d.id);
	if (supersedes)
		answer_superseded(from, all, question, what->superseded, &ret->warnings);
	return MR_OK;
}

/* ---- The slot ---- */

static enum mr_rc
deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	const struct workspace *ws = workspace_of(room);
	const char *sender = what->sender && what->sender[0] ? what->sender : what->msg->from;
	mr_auto(kit_box_close) struct kit_box *from = NULL;
	mr_auto(kit_items_done) struct kit_items all = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	/* A client has no folders of its own, and an import needs none. */
	if (ws->reply_path)
		TRY(route_open_dir(str_of(ws->reply_path), &fd, err));
	if (ws->reply_path || what->keep)
		return deliver_new(room, what, NULL, ret, err);
	/* Own folders are made; those of a stand-in for an agent of another room, too, or nobody could answer it. */
	enum mr_rc rc = kit_box_open(room, sender, what->carried ? BOX_MAKE_ANY : BOX_MAKE_OWN, &from, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_REFUSED,
		    "'%s' has no workspace here, so no answer could arrive\n"
		    "send from a workspace, or give --reply-path DIR for the answer",
		    sender);
	TRY(rc);
	if (!what->msg->reply_to || !what->msg->reply_to[0])
		return deliver_new(room, what, from, ret, err);
	TRY(kit_list(from, RECEIVED | MR_SENT, &all, err));
	struct kit_item *question = find_question(&all, what->msg->reply_to);

	if (question)
		return deliver_answer(from, what, &all, question, ret, err);
	if (!what->carried) /* the office has seen it: an answer must not become a new message */
		return mr_fail(err, MR_NOTFOUND,
		    "the message that this answers can no longer be found\n"
		    "nothing was sent; look with `mailroom inbox`, then try again");
	return deliver_new(room, what, from, ret, err);
}

enum mr_rc
workspace_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	enum mr_rc rc = deliver(room, what, ret, err);

	free(ws->reply_path);
	ws->reply_path = NULL;
	return rc;
}
