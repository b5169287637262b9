/* SPDX-License-Identifier: MIT */
/* reply.c - an answer is a send whose recipients, subject, thread and priority come from the original. */
#include "base/error.h"
#include "message/message.h"
#include "office/office.h"

struct address_list { /* NULL-terminated */
	const char **v;
	size_t n;
	struct arena *own;
	bool failed; /* out of memory */
};

static void
address_list_done(struct address_list *list)
{
	free(list->v);
	arena_free(list->own);
}

static bool
address_list_init(struct address_list *list, size_t max)
{
	list->v = calloc(max + 1, sizeof(*list->v));
	return list->v != NULL;
}

/* A message names agents as they are registered, whatever groups and queues are called so too. */
static void
add(struct address_list *list, const char *name)
{
	mr_auto(buf_done) struct buf exact = BUF_INIT;

	buf_addf(&exact, "%s%s", strchr(name, ':') ? "" : "agent:", name);
	list->v[list->n] = buf_ok(&exact) ? arena_dup(&list->own, buf_str(&exact)) : NULL;
	if (list->v[list->n])
		list->n++;
	else
		list->failed = true;
}

/* Only agents get a copy of an answer: in a queue it would be new work, in a channel a post to all. */
static void
add_other_agents(struct address_list *list, const struct mr_names *names, const char *self)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->v[i], self) != 0 && !strchr(names->v[i], ':'))
			add(list, names->v[i]);
}

/* The sender; for mail of one's own the agents who got it, else the queue or channel that it went to, else oneself.
 */
static void
default_to(struct address_list *to, const struct mr_message *original, const char *self)
{
	if (strcmp(original->from, self) == 0)
		add_other_agents(to, &original->to, self);
	for (size_t i = 0; to->n == 0 && strcmp(original->from, self) == 0 && i < original->to.n; i++)
		if (strchr(original->to.v[i], ':'))
			add(to, original->to.v[i]);
	if (to->n == 0)
		add(to, original->from);
}

static void
mark_replied(struct mr_room *room, const struct mr_self *self, const struct mr_message *original)
{
	struct mr_error ignored = { 0 };

	/* Held mail keeps its place; its end comes with `done`. The answer is out by now: that a flag could
	 * not be set is no reason to report a failure that would make the caller answer again. */
	if (!ROOM_HAS(room, mark) || !(room->driver->abilities & ROOM_READ_STATE))
		return;
	if (original->folder != MR_INBOX && original->folder != MR_ARCHIVE)
		return;
	if (room->driver->mark(room, self->agent, original->id, MR_REPLIED, 0, &ignored) == MR_OK)
		(void)office_flush(room, &ignored);
}

static enum mr_rc
send_answer(struct mr_room *room, const struct mr_self *self, const struct mr_message *original,
    const struct mr_draft *given, bool all, struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(address_list_done) struct address_list to = { 0 }, cc = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct mr_draft draft = *given;
	unsigned implied = FIELD_REPLY_TO | FIELD_THREAD;

	if (!address_list_init(&to, original->to.n + 1) || !address_list_init(&cc, original->to.n + original->cc.n))
		return mr_nomem(err);
	default_to(&to, original, self->agent);
	if (all) {
		add_other_agents(&cc, &original->to, self->agent);
		add_other_agents(&cc, &original->cc, self->agent);
	}
	subject_reply(&subject, str_of(original->subject));
	if (!buf_ok(&subject) || to.failed || cc.failed)
		return mr_nomem(err);
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
	enum mr_rc rc = lookup_original(room, self->agent, id, &original, err);

	if (rc == MR_OK)
		rc = send_answer(room, self, &original, draft, all, ret, err);
	if ((rc == MR_OK || rc == MR_INDOUBT) && !draft->dry_run)
		mark_replied(room, self, &original);
	return rc;
}
