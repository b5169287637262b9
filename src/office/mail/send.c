/* SPDX-License-Identifier: MIT */
/*
 * send.c - accepted sends, from letter to receipt: one, an answer, many at once. Everything that can be refused is
 * refused before the driver is asked to deliver (draft.c); steps after the delivery (retiring older mail, the receipt's
 * news about the recipients) never turn an accepted message into a failure.
 */
#include "message/message.h"
#include "office/mail/outgoing.h"
#include "office/rules/config.h"

/* The request to the driver; borrows from the letter. */
static struct delivery
delivery_of(struct outgoing *l)
{
	return (struct delivery){
		.msg = &l->msg,
		.to = &l->who.all,
		.sender = l->self->agent,
		.key = l->draft->key,
		.make_mailboxes = l->who.missing,
		.removals = l->who.missing ? 0 : l->who.removals,
		.only = l->draft->only,
		.superseded = &l->superseded,
	};
}

/* ---- After the delivery ---- */

static struct mr_names
names_take(struct mr_names *from)
{
	struct mr_names all = *from;

	*from = (struct mr_names){ 0 };
	return all;
}

/* The user's Notify: command is for mail to the operator. In a room of an earlier build the setting Notify: is not run
 * any more, and the sender is told so once a life. */
static void
add_notify(const struct outgoing *l, struct mr_receipt *ret)
{
	const char *command = mr_config_get(l->room, "Notify");

	if (command && !ret->repeated && strcmp(l->self->agent, OPERATOR) != 0)
		ret->notify = strdup(command);
	if (!command && mr_room_setting(l->room, "Notify") && agent_said_first(l->room, l->self, "notify"))
		ret->warning = strdup(
		    "the room's own Notify: is not run, because a room holds no commands; the user can allow it with: "
		    "mailroom config adopt");
}

/* The message was sent (MR_OK, MR_INDOUBT), or this is a dry run and `got` is NULL: the remaining steps, and the
 * receipt, which takes the names of the letter. Nothing here turns an accepted message into a failure. */
static void
finish(struct outgoing *l, enum mr_rc rc, struct delivered *got, struct mr_receipt *ret)
{
	struct mr_error err = { 0 };
	bool boxes = false; /* a queue, which may be a link's, or a channel is among the recipients */

	for (size_t i = 0; i < l->who.all.n; i++)
		boxes |= strchr(l->who.all.v[i], ':') != NULL;
	*ret = (struct mr_receipt){ 0 };
	(void)snprintf(ret->id, sizeof(ret->id), "%s", got ? got->id : l->msg.id);
	if (got) {
		if (boxes)
			channel_after_delivery(l->room, &l->who.all);
		if (rc == MR_OK && *l->msg.replace_key)
			ret->retired = mail_retire(l->room, &l->msg, &l->who.all, got->id);
		/* The sender of the question has its answer now, except if it answered itself. */
		if (*l->msg.reply_to && strcmp(l->original.from, l->self->agent) != 0)
			due_drop(l->room, l->original.from, l->original.id);
		for (size_t i = 0; i < got->warnings.n; i++)
			(void)names_add(&l->who.trouble, str_of(got->warnings.v[i]));
		ret->repeated = got->repeated;
		ret->missing = names_take(&got->missing);
		ret->superseded = names_take(&l->superseded);
	}
	ret->to = names_take(&l->who.all);
	ret->not_live = names_take(&l->who.not_live);
	ret->trouble = names_take(&l->who.trouble);
	ret->warnings = names_take(&l->typed.warnings);
	/* Reports the fields that the type made: the answer to a request will name its id. */
	if (l->typed.def && (ret->fields = calloc(1, sizeof(*ret->fields))))
		(void)mr_message_fields(l->room, &l->msg, ret->fields, IGNORED);
	if (boxes)
		l->room->office->links->delivered(
		    l->room, ret->id, &ret->to, &l->who.to, &l->who.cc, got ? &ret->trouble : NULL);
	if (!got)
		return;
	if (names_has(&ret->to, OPERATOR))
		add_notify(l, ret);
	if (l->draft->reply_path &&
	    answer_expect(l->room, got->id, got->native_id, l->draft->reply_path, &err) != MR_OK) {
		struct buf text = BUF_INIT;

		buf_addf(&text,
		    "the place of the answer could not be recorded (%s): give `mailroom wait` --reply-path and --id %s",
		    err.message, got->native_id);
		free(ret->warning);
		ret->warning = buf_take(&text);
	}
}

/* ---- One ---- */

/* Delivers a prepared letter, or with dry_run only fills in the receipt. */
static enum mr_rc
send_letter(struct outgoing *l, struct mr_receipt *ret, struct mr_error *err)
{
	struct delivery what = delivery_of(l);
	struct delivered got = { 0 };
	char planned[MR_ID_LEN + 1];

	if (l->draft->dry_run) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		TRY(message_write(&l->msg, l->room->name, &text, err));
		finish(l, MR_OK, NULL, ret);
		return MR_OK;
	}
	memcpy(planned, l->msg.id, sizeof(planned));
	if (l->who.away.n > 0)
		TRY(l->room->office->links->hold(l->room, &l->who.away, err));
	if (l->msg.by_ms)
		TRY(due_put(l->room, l->self->agent, &l->msg, err));
	if (l->typed.def)
		types_note_asked(l->room, l->typed.def, &l->msg, &l->who.all);
	if (l->draft->reply_path)
		TRY(l->room->driver->face->expect_answer(l->room, l->draft->reply_path, err));
	enum mr_rc rc = l->room->driver->deliver(l->room, &what, &got, err);
	bool out = rc == MR_OK || rc == MR_INDOUBT;

	if (l->msg.by_ms && (!out || strcmp(planned, got.id) != 0)) {
		/* Nothing was sent under the recorded id. A known key keeps its first record. */
		due_drop(l->room, l->self->agent, planned);
		(void)snprintf(l->msg.id, sizeof(l->msg.id), "%s", got.id);
		if (out && !got.repeated)
			(void)due_put(l->room, l->self->agent, &l->msg, IGNORED);
	}
	if (out)
		finish(l, rc, &got, ret);
	delivered_done(&got);
	return rc;
}

enum mr_rc
send_draft(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, unsigned implied,
    struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(outgoing_done) struct outgoing l = { .room = room, .self = self, .draft = draft, .implied = implied };

	TRY(outgoing_prepare(&l, err));
	return send_letter(&l, ret, err);
}

enum mr_rc
mr_send(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, struct mr_receipt *ret,
    struct mr_error *err)
{
	mr_auto(outgoing_done) struct outgoing l = { .room = room, .self = self, .draft = draft };

	TRY(outgoing_prepare(&l, err));
	return send_letter(&l, ret, err);
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
	if (receipt->fields)
		mr_fields_done(receipt->fields);
	free(receipt->fields);
	free(receipt->warning);
	free(receipt->notify);
	*receipt = (struct mr_receipt){ 0 };
}

/* ---- An answer: recipients, subject, thread and priority come from the original ---- */

/* To a list of strings. `agent:` stands before an agent, so that no group or queue of that name is meant. */
static void
add_address(struct roll *list, const char *name)
{
	char exact[2 * MR_ADDRESS_MAX + 16];
	const char **at = roll_add(list, sizeof(*at));

	(void)snprintf(exact, sizeof(exact), "%s%s", strchr(name, ':') ? "" : "agent:", name);
	if (at)
		*at = roll_str(list, exact);
}

/* Only agents get a copy of an answer: in a queue it would be new work, in a channel a post to all. */
static void
add_other_agents(struct roll *list, const struct mr_names *names, const char *self)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->v[i], self) != 0 && !strchr(names->v[i], ':'))
			add_address(list, names->v[i]);
}

static enum mr_rc
send_answer(struct mr_room *room, const struct mr_self *self, const struct mr_message *original,
    const struct mr_draft *given, bool all, struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll to = { 0 }, cc = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct mr_draft draft = *given;
	unsigned implied = FIELD_REPLY_TO | FIELD_THREAD;
	bool own = strcmp(original->from, self->agent) == 0;

	/* To the sender; an answer to own mail goes to the agents who got it, else to its queue or channel, else to
	 * oneself. */
	if (own)
		add_other_agents(&to, &original->to, self->agent);
	for (size_t i = 0; own && to.n == 0 && i < original->to.n; i++)
		if (strchr(original->to.v[i], ':'))
			add_address(&to, original->to.v[i]);
	if (to.n == 0)
		add_address(&to, original->from);
	if (all) {
		add_other_agents(&cc, &original->to, self->agent);
		add_other_agents(&cc, &original->cc, self->agent);
	}
	bool ended = roll_add(&to, sizeof(char *)) && roll_add(&cc, sizeof(char *)); /* by NULL */

	subject_reply(&subject, str_of(original->subject));
	TRY(mr_got(buf_ok(&subject) && ended && !to.failed && !cc.failed, err));
	if (!draft.to)
		draft.to = to.v;
	if (!draft.cc) {
		draft.cc = cc.v;
		implied |= FIELD_CC;
	}
	if (!draft.no_subject && (!draft.subject || !*draft.subject)) {
		draft.subject = buf_z(&subject);
		implied |= FIELD_SUBJECT;
	}
	if (draft.priority == MR_NORMAL && original->priority > MR_NORMAL) {
		draft.priority = original->priority;
		implied |= FIELD_PRIORITY;
	}
	draft.reply_to = original->id;
	return send_draft(room, self, &draft, implied, ret, err);
}

enum mr_rc
mr_reply(struct mr_room *room, const struct mr_self *self, const char *id, const struct mr_draft *draft, bool all,
    struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message original = { 0 };

	TRY(lookup_original(room, self->agent, id, &original, err));
	enum mr_rc rc = send_answer(room, self, &original, draft, all, ret, err);

	/* Held mail keeps its place; it ends with `done`. The answer is sent by now, so a flag that could not be set is
	 * no reason to report a failure, after which the caller would answer again. */
	if ((rc == MR_OK || rc == MR_INDOUBT) && !draft->dry_run && (room->driver->abilities & ROOM_READ_STATE) &&
	    (original.folder & (MR_INBOX | MR_ARCHIVE)) &&
	    room->driver->mark(room, self->agent, original.id, MR_REPLIED, 0, 0, IGNORED) == MR_OK)
		(void)office_flush(room, IGNORED);
	return rc;
}

/* ---- Many at once ---- */

/* Each letter is checked and composed by itself. Plain messages to one agent are given to the driver together, the
 * others are sent in their place, after those before them. Limits of a group: open files (the driver takes fewer if the
 * process may not open so many), and bytes that are written and not flushed. */
#define GROUP_MAX 1000
#define GROUP_BYTES ((size_t)8 << 20)

struct group { /* written together */
	struct mr_room *room;
	struct outgoing *letters; /* one more than n may be in use */
	struct parcel *parcels;
	size_t n, bytes;
};

static void
group_done(struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		outgoing_done(&g->letters[i]);
	free(g->letters);
	free(g->parcels);
}

static void
flush(struct group *g)
{
	struct delivered ignored = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < g->n; i++)
		g->parcels[i] = (struct parcel){ .what = delivery_of(&g->letters[i]) };
	if (g->n == 0)
		return;
	struct delivery all = g->parcels[0].what;

	all.many = g->parcels;
	all.many_n = g->n;
	enum mr_rc rc = g->room->driver->deliver(g->room, &all, &ignored, &err);

	for (size_t i = 0; i < g->n; i++) {
		struct parcel *p = &g->parcels[i];
		struct mr_sent *sent = g->letters[i].sent;

		sent->rc = rc == MR_OK ? p->rc : rc; /* not MR_OK: none of them was tried */
		if (sent->rc != MR_OK)
			sent->error = rc == MR_OK ? p->err : err;
		if (rc == MR_OK && (p->rc == MR_OK || p->rc == MR_INDOUBT))
			finish(&g->letters[i], p->rc, &p->got, &sent->receipt);
		delivered_done(&p->got);
		outgoing_done(&g->letters[i]);
	}
	g->n = g->bytes = 0;
}

/* It needs more than one link and one flush, or the results of those before it. */
static bool
goes_alone(const struct outgoing *l)
{
	const struct mr_draft *d = l->draft;

	return !(l->room->driver->abilities & ROOM_BATCH) || l->who.all.n != 1 || strchr(l->who.all.v[0], ':') ||
	       l->who.away.n > 0 || l->who.missing || d->dry_run || d->key || d->replace_key || d->reply_path ||
	       l->msg.by_ms != 0 || l->judged;
}

void
mr_send_many(
    struct mr_room *room, const struct mr_self *self, const struct mr_draft *drafts, size_t n, struct mr_sent *ret)
{
	size_t cap = n < GROUP_MAX ? n : GROUP_MAX;
	mr_auto(group_done) struct group g = {
		.room = room,
		.letters = calloc(cap, sizeof(*g.letters)),
		.parcels = calloc(cap, sizeof(*g.parcels)),
	};

	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct mr_sent){ 0 };
		if (!g.letters || !g.parcels) {
			ret[i].rc = mr_nomem(&ret[i].error);
			continue;
		}
		struct outgoing *l = &g.letters[g.n];

		*l = (struct outgoing){
			.room = room,
			.self = self,
			.draft = &drafts[i],
			.before = g.n > 0 ? l - 1 : NULL,
			.sent = &ret[i],
		};
		ret[i].rc = outgoing_prepare(l, &ret[i].error);
		if (ret[i].rc == MR_OK && !goes_alone(l)) {
			g.bytes += l->msg.body_len;
			g.n++;
			ret[i].error = (struct mr_error){ 0 };
			if (g.n == cap || g.bytes >= GROUP_BYTES)
				flush(&g);
			continue;
		}
		if (ret[i].rc == MR_OK) {
			flush(&g); /* the order is kept; this letter stays where it is */
			ret[i].rc = send_letter(l, &ret[i].receipt, &ret[i].error);
		}
		if (ret[i].rc == MR_OK) /* errors on the way to a success are not reported */
			ret[i].error = (struct mr_error){ 0 };
		outgoing_done(l);
	}
	flush(&g);
}
