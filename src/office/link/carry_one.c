/* SPDX-License-Identifier: MIT */
/*
 * carry_one.c - one message to one recipient over there, exactly once, whenever the carrier is killed. How far it is
 * stands in a record of this room ("carrying", named after the message and the recipient), each step durable before the
 * next begins:
 *
 *	            nothing has happened
 *	As: ...     planned: under which name, as an answer to what. It is not thought about again: the table of names
 *	            and the memory may change, and a delivery that is repeated must be the same
 *	Ticket: ... all is written over there, and not visible; the next step is a rename
 *	Done: ...   it is there
 *	Failed:     it can never be there, and its sender was told
 *
 * A room with keys needs no ticket: repeated with the same key it says which message that was. In the others, whoever
 * finds a ticket asks that room whether it was published: only the one who holds the claim of the message does that, so
 * nobody publishes meanwhile. After an error the ticket is taken back first, durably, and what is left over there is
 * removed then: gone, it would say that it was published.
 *
 * The record goes after the message is settled in its queue. A kill in between leaves a record; carry_out.c drops it.
 */
#include "base/id.h"
#include "message/address.h"
#include "office/link/carry_plan.h"
#include "office/link/translate.h"

struct journey { /* one message to one recipient under way */
	struct carrier *c;
	const struct mr_message *msg;
	const char *recipient;
	char there[MR_ADDRESS_MAX + 1]; /* the recipient without @LINK */
	char name[64];                  /* of the record */
	struct plan plan;
	struct mr_message carried;
	const struct mr_message *on_the_way; /* as the driver has it */
	char ticket[ROOM_TICKET_MAX + 1];    /* that this try was given */
	struct delivered got;
	struct arena *own;
};

static enum mr_rc
save(struct journey *j, struct mr_error *err)
{
	return plan_save(j->c, j->name, j->recipient, &j->plan, err);
}

/* ---- Planning ---- */

struct finding {
	struct journey *j;
	bool found;
};

/* In whichever conversation over this link the message was that this one answers. */
static enum mr_rc
find_answered(void *ctx, const struct memory *m, struct mr_error *err)
{
	struct finding *f = ctx;
	struct journey *j = f->j;
	const struct carried_line *l = f->found ? NULL : memory_by_id(m, j->msg->reply_to);

	if (!l)
		return MR_OK;
	f->found = true;
	j->plan.reply_to = arena_dup(&j->own, str_of(*l->spoken ? l->spoken : l->there));
	j->plan.thread = arena_dup(&j->own, str_of(l->there_thread));
	return j->plan.reply_to && j->plan.thread ? MR_OK : mr_nomem(err);
}

static enum mr_rc
plan_thread(struct journey *j, struct mr_error *err)
{
	mr_auto(memory_done) struct memory m = { 0 };
	struct finding f = { .j = j };
	struct mr_room *room = j->c->room;
	const struct mr_message *msg = j->msg;
	enum mr_rc rc = MR_OK;

	/* What starts a thread here starts one there. */
	j->plan.reply_to = "";
	j->plan.thread = strcmp(msg->thread, msg->id) == 0 ? "" : msg->thread;
	if (*msg->reply_to) {
		rc = memory_load(room, j->c->link.name, msg->from, j->there, &m, err);
		if (rc == MR_OK)
			rc = find_answered(&f, &m, err);
		if (rc == MR_OK && !f.found)
			rc = memory_each(room, j->c->link.name, find_answered, &f, err);
	}
	return rc;
}

static enum mr_rc
make_plan(struct journey *j, struct mr_error *err)
{
	char as[MR_ADDRESS_MAX + 1];
	struct carrier *c = j->c;
	enum mr_rc rc = link_proxy(c->room, c->there, c->link.name, j->msg->from, as, err);

	if (rc == MR_OK)
		rc = plan_thread(j, err);
	if (rc != MR_OK)
		return rc;
	j->plan.as = arena_dup(&j->own, str_of(as));
	if (!j->plan.as)
		return mr_nomem(err);
	return save(j, err);
}

/* ---- The message as it is over there ---- */

/* Those who live there by their name, ours by the name that they have there, everybody else with his room. */
static enum mr_rc
map_names(struct journey *j, const struct mr_names *from, struct mr_names *ret, struct mr_error *err)
{
	const struct carrier *c = j->c;

	*ret = (struct mr_names){ 0 };
	ret->v = arena_alloc(&j->own, (from->n + 1) * sizeof(*ret->v));
	if (!ret->v)
		return mr_nomem(err);
	for (size_t i = 0; i < from->n; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		const char *known = link_foreign_of(&c->link, from->v[i]);
		struct mr_str agent, room;

		address_split(str_of(from->v[i]), &agent, &room);
		if (str_eq(room, str_of(c->link.name)))
			buf_add(&name, agent);
		else if (known)
			buf_adds(&name, known);
		else
			buf_addf(
			    &name, "%s%s%s", from->v[i], room.len > 0 ? "" : "@", room.len > 0 ? "" : c->room->name);
		ret->v[i] = buf_ok(&name) ? arena_dup(&j->own, buf_str(&name)) : NULL;
		if (!ret->v[i])
			return mr_nomem(err);
		ret->n++;
	}
	return MR_OK;
}

static enum mr_rc
compose(struct journey *j, struct mr_error *err)
{
	const struct mr_message *msg = j->msg;
	mr_auto(buf_done) struct buf step = BUF_INIT;
	enum mr_rc rc;

	j->carried = (struct mr_message){
		.from = j->plan.as,
		.subject = msg->subject,
		.date_ms = msg->date_ms,
		.type = msg->type_by_subject ? "" : msg->type,
		.priority = msg->priority,
		.thread = j->plan.thread,
		.reply_to = j->plan.reply_to,
		.replace_key = "",
		.by_ms = msg->by_ms,
		.body = msg->body,
		.body_len = msg->body_len,
		.path = "",
	};
	(void)snprintf(j->carried.id, sizeof(j->carried.id), "%s", msg->id);
	buf_addf(&step, "%s/%s", j->c->room->name, j->c->link.name);
	rc = map_names(j, &msg->to, &j->carried.to, err);
	if (rc == MR_OK)
		rc = map_names(j, &msg->cc, &j->carried.cc, err);
	if (rc == MR_OK)
		rc = carry_headers(msg, buf_z(&step), j->c->there, &j->carried, &j->own, err);
	return rc;
}

/* ---- Delivering ---- */

/* Removes what the ticket before this one left. */
static void
tidy(struct journey *j, const char *ticket)
{
	struct mr_room *there = j->c->there;
	struct mr_error ignored = { 0 };
	bool published;

	if (*ticket && ROOM_HAS(there, settle_ticket))
		(void)there->driver->settle_ticket(there, ticket, &published, &ignored);
}

static enum mr_rc
note_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	struct journey *j = ctx;
	char before[ROOM_TICKET_MAX + 1];
	enum mr_rc rc;

	if (strlen(ticket) > ROOM_TICKET_MAX)
		return mr_fail(err, MR_REFUSED, "the ticket '%.40s...' is too long", ticket);
	memcpy(before, j->ticket, sizeof(before));
	(void)snprintf(j->ticket, sizeof(j->ticket), "%s", ticket);
	j->plan.ticket = j->ticket;
	/* What the driver knows of the message by now is what is known of it after a kill. */
	j->plan.id = j->on_the_way->id;
	j->plan.spoken = j->got.spoken;
	rc = save(j, err);
	if (rc == MR_OK)
		tidy(j, before);
	return rc;
}

/* The driver says that nobody has it. If this cannot be noted, the next try asks about the ticket. */
static void
withdraw_ticket(struct journey *j)
{
	struct mr_error ignored = { 0 };

	if (!*j->ticket)
		return;
	j->plan.ticket = j->plan.id = j->plan.spoken = "";
	if (save(j, &ignored) == MR_OK)
		tidy(j, j->ticket);
}

static enum mr_rc
deliver(struct journey *j, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	struct mr_room *there = j->c->there;
	char *name = j->there, key[96], hash[65];
	struct mr_names to = { &name, 1 };
	bool keys = there->driver->abilities & ROOM_KEYS;
	/* The plan lies in this room: whom it names as the sender is asked over there, each time. */
	enum mr_rc rc = link_is_stand_in(j->c->room, there, j->c->link.name, j->msg->from, j->plan.as, err);

	if (rc == MR_OK)
		rc = compose(j, err);
	if (rc == MR_OK)
		rc = translate(there, &j->carried, &t, err);
	if (rc != MR_OK)
		return rc;
	sha256_hex(str_of(j->recipient), hash);
	(void)snprintf(key, sizeof(key), "carry:%s:%.32s", j->msg->id, hash);
	struct delivery what = {
		.msg = &t.msg,
		.to = &to,
		.sender = j->plan.as,
		.key = keys ? key : NULL,
		.key_is_all = true, /* the names of its other recipients may have changed since */
		.carried = true,
		.staged = keys ? NULL : note_ticket,
		.staged_ctx = keys ? NULL : j,
	};

	j->on_the_way = &t.msg;
	rc = there->driver->deliver(there, &what, &j->got, err);
	mr_names_done(&j->got.missing);
	j->got.missing = (struct mr_names){ 0 };
	if (rc != MR_OK && rc != MR_INDOUBT)
		withdraw_ticket(j);
	return rc;
}

struct search { /* for what was published before a kill */
	const struct journey *j;
	struct memory known; /* other messages of the two */
	struct delivered found;
};

static bool
note_if_it(void *ctx, const struct mr_message *msg)
{
	struct search *s = ctx;
	const char *spoken = mr_message_header(msg, "Message-ID");

	if (strcmp(msg->from, s->j->plan.as) != 0 || strcmp(msg->subject, s->j->msg->subject) != 0 ||
	    memory_by_there(&s->known, msg->id))
		return true;
	(void)snprintf(s->found.id, sizeof(s->found.id), "%s", msg->id);
	(void)snprintf(s->found.spoken, sizeof(s->found.spoken), "%s", spoken ? spoken : "");
	return false;
}

/* What it is called over there, so that its answer finds its thread. Taken by its reader already: then only the subject
 * will tell. */
static void
find_published(struct journey *j)
{
	struct mr_room *there = j->c->there;
	struct search s = { .j = j };
	struct mr_error ignored = { 0 };
	struct scan_request want = {
		.folders = office_folders(there, MR_INBOX | MR_ARCHIVE), .depth = SCAN_HEADERS, .newest_first = true
	};

	(void)snprintf(s.found.id, sizeof(s.found.id), "%s", j->plan.id);
	(void)snprintf(s.found.spoken, sizeof(s.found.spoken), "%s", j->plan.spoken);
	if (!*s.found.spoken &&
	    memory_load(j->c->room, j->c->link.name, j->msg->from, j->there, &s.known, &ignored) == MR_OK)
		(void)there->driver->scan(there, j->there, &want, note_if_it, &s, &ignored);
	memory_done(&s.known);
	j->got = s.found;
}

/* A kill or an error came after the ticket: is it there? */
static enum mr_rc
settle_ticket(struct journey *j, bool *ret_published, struct mr_error *err)
{
	struct mr_room *there = j->c->there;
	enum mr_rc rc;

	*ret_published = false;
	if (!*j->plan.ticket || !ROOM_HAS(there, settle_ticket))
		return MR_OK;
	rc = there->driver->settle_ticket(there, j->plan.ticket, ret_published, err);
	if (rc == MR_OK && *ret_published)
		find_published(j);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "cannot find out whether '%s' was delivered", j->msg->id);
}

static enum mr_rc
note_done(struct journey *j, struct mr_error *err)
{
	j->plan.ticket = j->plan.id = "";
	j->plan.done = j->got.id[0] ? j->got.id : "unknown";
	j->plan.spoken = j->got.spoken;
	return save(j, err);
}

/* For the thread of the answer, and to find out what became of it. */
static enum mr_rc
remember(struct journey *j, struct mr_error *err)
{
	const struct plan *p = &j->plan;
	const char *there = strcmp(p->done, "unknown") == 0 ? "" : p->done;
	struct carried_line l = {
		.state = *there ? CARRIED_SENT : CARRIED_READ,
		.id = j->msg->id,
		.thread = j->msg->thread,
		.there = there,
		.there_thread = *p->thread   ? p->thread
				: *p->spoken ? p->spoken
					     : there,
		.spoken = p->spoken,
	};

	memory_subject(j->msg->subject, l.subject);
	return memory_note(j->c->room, j->c->link.name, j->msg->from, j->there, &l, j->msg->reply_to, err);
}

/* Nothing is planned, and yet it was carried before: a power cut brought the message back into the queue that it had
 * left. The memory of the conversation is durable before that. */
static enum mr_rc
was_carried(struct journey *j, bool *ret, struct mr_error *err)
{
	mr_auto(memory_done) struct memory m = { 0 };
	enum mr_rc rc = memory_load(j->c->room, j->c->link.name, j->msg->from, j->there, &m, err);

	*ret = rc == MR_OK && memory_by_id(&m, j->msg->id) != NULL;
	return rc;
}

static enum mr_rc
travel(struct journey *j, struct mr_error *err)
{
	bool published = false, before = false;
	enum mr_rc rc = plan_load(j->c, j->name, &j->plan, err);

	if (rc == MR_OK && !j->plan.exists)
		rc = was_carried(j, &before, err);
	if (rc != MR_OK || before)
		return rc;
	if (!j->plan.exists)
		rc = make_plan(j, err);
	if (rc == MR_OK && !j->plan.is_done)
		rc = settle_ticket(j, &published, err);
	if (rc == MR_OK && !j->plan.is_done && !published)
		rc = deliver(j, err);
	if (rc == MR_OK && !j->plan.is_done) {
		rc = note_done(j, err);
		j->c->count.out += rc == MR_OK;
	}
	return rc == MR_OK ? remember(j, err) : rc;
}

enum mr_rc
carry_one(struct carrier *c, const struct mr_message *msg, const char *recipient, struct mr_error *err)
{
	struct journey j = { .c = c, .msg = msg, .recipient = recipient };
	struct mr_str agent, room;
	enum mr_rc rc;

	address_split(str_of(recipient), &agent, &room);
	(void)snprintf(j.there, sizeof(j.there), "%.*s", (int)agent.len, agent.ptr);
	plan_name(msg->id, recipient, j.name);
	rc = travel(&j, err);
	plan_done(&j.plan);
	arena_free(j.own);
	return rc;
}
