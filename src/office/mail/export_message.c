/* SPDX-License-Identifier: MIT */
/* export_message.c - one message from room to room: its names, what it answers, what the other format can hold, and
 * what state it was in. */
#include "base/error.h"
#include "office/mail/export.h"
#include "office/link/link.h"

/* ---- Answers and threads ---- */

static bool
can_hold(struct mr_room *room, const struct mr_message *msg, unsigned field)
{
	return !ROOM_HAS(room, lacks) || !(room->driver->lacks(room, msg) & field);
}

/* What the other room calls a message that was copied. MR_NOTFOUND: it was not, or is gone again. */
static enum mr_rc
name_there(struct export_run *e, struct known *k, const char **ret, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_room *to = e->c.to;
	enum mr_rc rc;

	if (k->there_id[0] == '\0')
		return mr_fail(err, MR_NOTFOUND, "'%s' was not copied so far", k->id);
	if (!k->there) {
		rc = to->driver->fetch(
		    to, e->c.agents.v[k->agent].there, k->there_id, MAIL_FOLDERS, SCAN_HEADERS, &msg, err);
		if (rc != MR_OK)
			return rc;
		k->there = lookup_spoken_id(to, &msg, &e->x.own);
	}
	*ret = k->there;
	return k->there ? MR_OK : mr_nomem(err);
}

static enum mr_rc
cross_answer(struct export_run *e, struct known *answered, struct mr_message *msg, struct mr_error *err)
{
	enum mr_rc rc;

	if (!ROOM_HAS(e->c.to, lacks)) { /* it keeps our ids */
		msg->reply_to = answered->id;
		return MR_OK;
	}
	if (!can_hold(e->c.to, msg, FIELD_REPLY_TO))
		return MR_OK;
	e->too_early = answered->there_id[0] == '\0' && !e->last_chance;
	if (e->too_early)
		return MR_OK;
	rc = name_there(e, answered, &msg->reply_to, err);
	return rc == MR_NOTFOUND ? MR_OK : rc; /* then it stays what it was */
}

static enum mr_rc
cross_thread(struct export_run *e, struct mr_message *msg, struct mr_error *err)
{
	struct known *self = index_find(&e->x, msg->id, e->agent);
	struct known *answered = NULL, *began;
	const struct name_pair *pair = e->c.agents.v;
	size_t writer = e->agent;

	if (msg->reply_to[0]) { /* who answers has what he answers in his own mailbox */
		for (size_t i = 0; i < e->c.agents.n; i++)
			writer = strcmp(pair[i].here, msg->from) == 0 ? i : writer;
		answered = index_find(&e->x, msg->reply_to, writer);
	}
	if (!msg->thread[0] || (self && strcmp(msg->thread, self->spoken) == 0))
		msg->thread = msg->id;
	began = index_find(&e->x, msg->thread, e->agent);
	if (began && strcmp(msg->thread, msg->id) != 0)
		msg->thread = began->id;
	if (answered && !(e->c.from->driver->abilities & ROOM_THREADS))
		msg->thread = index_root(&e->x, answered);
	return answered ? cross_answer(e, answered, msg, err) : MR_OK;
}

static enum mr_rc
put_off(struct export_run *e, const char *id, struct mr_error *err)
{
	if (e->late_n == e->late_cap) {
		size_t cap = e->late_cap ? 2 * e->late_cap : 64;
		struct late *grown = realloc(e->late, cap * sizeof(*grown));

		if (!grown)
			return mr_nomem(err);
		e->late = grown;
		e->late_cap = cap;
	}
	e->late[e->late_n].agent = e->agent;
	memcpy(e->late[e->late_n++].id, id, MR_ID_LEN + 1);
	return MR_OK;
}

/* ---- One message ---- */

static bool
was_read(const struct export_run *e, const struct mr_message *msg)
{
	return (msg->flags & MR_SEEN) ||
	       (msg->folder == MR_ARCHIVE && !(e->c.from->driver->abilities & ROOM_READ_STATE));
}

/* Where mail has no marks, having been read is having left the inbox. Whoever has it in hand, or moved it on, knows its
 * state better than we do. */
static enum mr_rc
set_state(struct export_run *e, const char *id, const struct mr_message *msg, struct mr_error *err)
{
	struct mr_room *to = e->c.to;
	const char *agent = e->c.agents.v[e->agent].there;
	unsigned abilities = to->driver->abilities, flags = was_read(e, msg) ? MR_SEEN : 0;
	bool marks = (abilities & ROOM_READ_STATE) && ROOM_HAS(to, mark);
	bool archive = msg->folder == MR_ARCHIVE || (!marks && flags);
	enum mr_rc rc = MR_OK;

	if (abilities & ROOM_PIN)
		flags |= msg->flags & (MR_REPLIED | MR_PINNED | MR_TRASHED);
	if (abilities & ROOM_HOLDS)
		flags |= msg->flags & MR_ACKED;
	if (marks && flags)
		rc = to->driver->mark(to, agent, id, flags, 0, err);
	if (rc == MR_OK && archive && (abilities & ROOM_ARCHIVE) && ROOM_HAS(to, move))
		rc = to->driver->move(to, agent, id, MR_ARCHIVE, err);
	return rc == MR_NOTFOUND || rc == MR_BUSY || rc == MR_EXISTS ? MR_OK : rc;
}

/* A message that somebody had removed for good over there does not come back: MR_EXISTS. */
static enum mr_rc
was_purged(struct export_run *e, const char *id, struct mr_error *err)
{
	mr_auto(record_done) struct record own = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_room *to = e->c.to;
	struct tombstone stone;

	if (!(to->driver->abilities & ROOM_PURGE) || tombstone_get(to, id, &stone, &own, &ignored) != MR_OK)
		return MR_OK;
	return mr_fail(err, MR_EXISTS, "it was there, and was purged");
}

static enum mr_rc
rehearse(struct export_run *e, const struct mr_message *msg, const char *agent, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message found = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_room *to = e->c.to;

	if (!ROOM_HAS(to, lacks) &&
	    to->driver->fetch(to, agent, msg->id, MAIL_FOLDERS, SCAN_NAMES, &found, &ignored) == MR_OK)
		return mr_fail(err, MR_EXISTS, "it is there already");
	return MR_OK;
}

/* Some rooms know senders only by their mailboxes, and take no mail from who has none. True: he has one, by us or by
 * another export that runs at the same time. */
static bool
make_sender(struct export_run *e, const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_error ignored = { 0 };
	struct mr_room *to = e->c.to;
	enum mr_rc rc;

	if (office_has_lives(to) || !(to->driver->abilities & ROOM_REGISTER) || !name[0]) /* ours take any sender */
		return false;
	(void)snprintf(agent.name, sizeof(agent.name), "%s", name);
	rc = to->driver->add_agent(to, &agent, &ignored);
	return rc == MR_OK || rc == MR_EXISTS;
}

/* `msg` has its names and answers as the other room has them. */
static enum mr_rc
deliver(struct export_run *e, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct delivered got = { 0 };
	const char *agent = e->c.agents.v[e->agent].there;
	struct known *self = index_find(&e->x, msg->id, e->agent);
	enum mr_rc rc = translate(e->c.to, msg, &t, err), state = MR_OK;

	if (rc == MR_OK && !names_add(&to, str_of(agent)))
		rc = mr_nomem(err);
	if (rc != MR_OK)
		return rc;
	if (e->options->dry_run)
		return rehearse(e, msg, agent, err);
	struct delivery what = {
		.msg = &t.msg, .to = &to, .sender = "", .make_mailboxes = true, .keep = true, .carried = true
	};
	rc = e->c.to->driver->deliver(e->c.to, &what, &got, err);
	if (rc == MR_REFUSED && make_sender(e, msg->from))
		rc = e->c.to->driver->deliver(e->c.to, &what, &got, err);
	mr_names_done(&got.missing);
	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	if (self && got.id[0]) {
		memcpy(self->there_id, got.id, sizeof(self->there_id));
		self->there = got.spoken[0] ? arena_dup(&e->x.own, str_of(got.spoken)) : NULL;
	}
	if (got.id[0])
		state = set_state(e, got.id, msg, err);
	return state == MR_OK ? rc : mr_wrap(err, "it is there, but not marked as it was");
}

enum mr_rc
export_message(struct export_run *e, const struct mr_message *original, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 }, cc = { 0 };
	char from[MR_ADDRESS_MAX + 1];
	struct mr_message msg = *original;
	bool rough = false;
	enum mr_rc rc = was_purged(e, msg.id, err);

	if (rc == MR_OK)
		rc = cross_thread(e, &msg, err);
	if (e->too_early)
		return put_off(e, msg.id, err);
	if (rc == MR_OK)
		rc = crossing_sender(&e->c, original->from, from, &rough, err);
	if (rc == MR_OK)
		rc = crossing_names(&e->c, &original->to, &to, err);
	if (rc == MR_OK)
		rc = crossing_names(&e->c, &original->cc, &cc, err);
	struct mr_header *headers = rc == MR_OK ? calloc(msg.headers_n + 1, sizeof(*headers)) : NULL;

	if (rc != MR_OK || !headers)
		return rc != MR_OK ? rc : mr_nomem(err);
	if (msg.headers_n > 0)
		memcpy(headers, msg.headers, msg.headers_n * sizeof(*headers));
	if (rough)
		headers[msg.headers_n++] = (struct mr_header){ "X-From", original->from };
	msg.headers = headers;
	msg.from = from;
	msg.to = to;
	msg.cc = cc;
	rc = deliver(e, &msg, err);
	free(headers);
	return rc;
}
