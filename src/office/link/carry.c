/* SPDX-License-Identifier: MIT */
/*
 * carry.c - the mail of one link, both ways: first incoming, then outgoing mail, so that a notice about mail that could
 * not be taken in goes out with the same call.
 *
 * A link has no lock: any number of carriers may run at once. Outgoing, the claim of the queue gives a message to one
 * of them (carry_out.c); incoming, a key of this room accepts it once (carry_in.c).
 *
 * Nothing goes in circles: in formats with headers a message names the rooms and links that carried it; it never goes
 * through the same one twice, and through at most eight.
 *
 * When the owner of a team leaves, it deletes the team's folder with all unread mail, and only the sender's copy is
 * left. The sender is told, once, with the text. A message that is missing from a mailbox that still exists is not
 * lost: in many formats, reading removes a message.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/mail/mail.h"
#include "office/link/link.h"
#include <stdlib.h>

#define TRAIL_HEADER "X-Mailroom-Carried" /* "town/blue, hall/red" */
#define HOPS_MAX 8

void
carrier_trouble(const struct carrier *c, struct mr_error *err)
{
	if (c->trouble)
		c->trouble(c->ctx, c->link.name, err);
	*err = (struct mr_error){ 0 };
}

enum mr_rc
carry_target(struct mr_room *room, const char *address, struct room_box *ret, struct mr_error *err)
{
	struct mr_str agent, link;

	address_split(str_of(address), &agent, &link);
	if (link.len == 0) {
		TRY(address_check(agent, err));
		TRY(agent_exists(room, address, err));
		(void)snprintf(ret->z, sizeof(ret->z), "%s", address);
		return MR_OK;
	}
	if (link.len > MR_LINK_NAME_MAX || !target_exists(room, "link", link.ptr))
		return mr_fail(err, MR_NOTFOUND, "no link for '%.80s'", address);
	*ret = link_box(link.ptr);
	return MR_OK;
}

/* ---- The message as the other side has it ---- */

/* Gives `ret` the extra headers of a message, and the trail with this step. */
static enum mr_rc
take_headers(const struct mr_message *msg, const char *step, struct mr_room *to, struct mr_message *ret,
    struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf trail = BUF_INIT;
	const char *before = mr_message_header(msg, TRAIL_HEADER);
	struct mr_header *headers = arena_alloc(own, (msg->headers_n + 1) * sizeof(*headers));
	size_t n = 0, hops = 0;

	TRY(mr_got(headers, err));
	for (struct mr_str rest = str_of(before ? before : ""), one; str_cut(&rest, ',', &one); hops++)
		if (str_eq(str_trim(one), str_of(step)))
			return mr_fail(
			    err, MR_REFUSED, "it was already carried through '%s': it goes in circles", step);
	if (hops >= HOPS_MAX)
		return mr_fail(err, MR_REFUSED, "it was carried %d times: it goes in circles", HOPS_MAX);
	for (size_t i = 0; i < msg->headers_n; i++) {
		const struct mr_header *h = &msg->headers[i];

		if (!message_header_reserved(str_of(h->name)) && !ascii_caseeq(h->name, "References") &&
		    !ascii_caseeq(h->name, TRAIL_HEADER))
			headers[n++] = *h;
	}
	buf_addf(&trail, "%s%s%s", before ? before : "", before ? ", " : "", step);
	headers[n].name = TRAIL_HEADER;
	headers[n].value = buf_ok(&trail) ? arena_dup(own, buf_str(&trail)) : NULL;
	TRY(mr_got(headers[n].value, err));
	ret->headers = headers;
	ret->headers_n = n + 1;
	/* Without headers in that format no reader looks for it, and as text it would only be noise. */
	if (to->driver->unsupported(to, ret) & FIELD_HEADERS)
		ret->headers_n = n;
	return MR_OK;
}

/* Agents of the other room get their name there, those of this room the name that they have there, and all others keep
 * their room in the name. One more place is left at the end. */
static enum mr_rc
map_names(const struct carrier *c, enum carry_way way, const struct mr_names *from, struct mr_names *ret,
    struct arena **own, struct mr_error *err)
{
	*ret = (struct mr_names){ .v = arena_alloc(own, (from->n + 1) * sizeof(*ret->v)) };
	TRY(mr_got(ret->v, err));
	for (size_t i = 0; i < from->n; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		const char *one = from->v[i];
		const char *known = way == CARRY_WAY_IN ? link_local_of(&c->link, one) : link_foreign_of(&c->link, one);
		struct mr_str agent, room;

		address_split(str_of(one), &agent, &room);
		if (way == CARRY_WAY_OUT && str_eq(room, str_of(c->link.name)))
			buf_add(&name, agent);
		else if (known)
			buf_adds(&name, known);
		else if (way == CARRY_WAY_IN ? strchr(one, '@') != NULL : room.len > 0)
			buf_adds(&name, one); /* of a third room */
		else
			buf_addf(&name, "%s@%s", one, way == CARRY_WAY_IN ? c->link.name : c->room->name);
		ret->v[i] = buf_ok(&name) ? arena_dup(own, buf_str(&name)) : NULL;
		TRY(mr_got(ret->v[i], err));
		ret->n++;
	}
	return MR_OK;
}

/* Another format may allow line breaks where ours has one line. */
static const char *
one_line(const char *text, struct arena **own)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (!header_value_problem(str_of(text)))
		return text;
	header_clean(&clean, str_of(text));
	return buf_ok(&clean) ? arena_dup(own, str_trim(buf_str(&clean))) : NULL;
}

enum mr_rc
carry_compose(const struct carrier *c, enum carry_way way, const struct mr_message *msg, const char *from,
    struct mr_message *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf step = BUF_INIT;
	const char *here = c->room->name, *link = c->link.name;

	*ret = message_new(from, one_line(msg->subject, own), (struct mr_str){ msg->body, msg->body_len });
	ret->date_ms = msg->date_ms;
	ret->type = one_line(msg->type_by_subject ? "" : msg->type, own);
	ret->priority = msg->priority;
	ret->by_ms = msg->by_ms;
	ret->attachments = msg->attachments;
	ret->attachments_n = msg->attachments_n;
	ret->content = msg->content;
	TRY(mr_got(ret->subject && ret->type, err));
	buf_addf(&step, "%s/%s", way == CARRY_WAY_IN ? link : here, way == CARRY_WAY_IN ? here : link);
	TRY(map_names(c, way, &msg->to, &ret->to, own, err));
	TRY(map_names(c, way, &msg->cc, &ret->cc, own, err));
	return take_headers(msg, buf_z(&step), way == CARRY_WAY_IN ? c->room : c->there, ret, own, err);
}

/* ---- Telling a sender what happened to its mail ----
 *
 * A sender in a linked room gets the notice through the queue of that link. The key keeps a carrier that finds out
 * again after a kill from telling it twice. Only the key decides that it was told: the reason may have other words by
 * then, and that must not block the link. */

void
notice_done(struct notice *n)
{
	buf_done(&n->story);
	buf_done(&n->advice);
	buf_done(&n->key);
}

enum mr_rc
notice_send(struct mr_room *room, const struct notice *n, const struct mr_message *about, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, to = BUF_INIT;
	struct room_box target;
	char *where = target.z;
	struct delivered got = { 0 };

	if (strcmp(about->type, BOUNCE_TYPE) == 0 || !*n->to || carry_target(room, n->to, &target, IGNORED) != MR_OK)
		return MR_OK;
	if (*about->subject)
		buf_addf(&subject, "Failed: %s", about->subject);
	else /* it was purged here: nothing else is known */
		buf_addf(&subject, "Failed: your message %s", about->id);
	buf_addf(&body, "%s\n\n", buf_z(&n->story));
	if (*n->reason)
		buf_addf(&body, "Reason: %s\n", n->reason);
	buf_addf(&body, "Message: %s\n", about->id);
	if (*about->subject)
		buf_addf(&body, "Subject: %s\n", about->subject);
	buf_addf(&body, "Sent: %s\n\n%s\n", time_text(about->date_ms).z, buf_z(&n->advice));
	if (about->body && about->body_len > 0) {
		buf_adds(&body, "\nThis was its text:\n\n");
		buf_add(&body, (struct mr_str){ about->body, about->body_len });
	}
	buf_adds(&to, n->to);
	TRY(mr_got(
	    !subject.failed && !body.failed && !to.failed && !n->story.failed && !n->advice.failed && !n->key.failed,
	    err));
	struct mr_message msg = message_new(n->from, buf_z(&subject), buf_str(&body));
	struct mr_names targets = { &where, 1 };
	struct delivery what = {
		.msg = &msg, .to = &targets, .sender = LINK_CLAIMERS, .key = buf_z(&n->key), .key_is_all = true
	};

	msg.to = (struct mr_names){ &to.ptr, 1 };
	msg.type = BOUNCE_TYPE;
	msg.priority = about->priority;
	msg.thread = about->thread;
	msg.reply_to = about->id;
	enum mr_rc rc = room->driver->deliver(room, &what, &got, err);

	delivered_done(&got);
	/* In doubt: durable, and any later command completes it. Not found: pruned meanwhile. */
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_NOTFOUND)
		return MR_OK;
	return mr_wrap(err, "notice to '%s'", n->to);
}

/* ---- Mail that was removed in the other room before it was read ---- */

/* Sends the sender's own copy. If the sender is in a third room, there is only the data of the line. */
static enum mr_rc
tell_lost(struct carrier *c, const struct correspondence *m, const struct carried_line *l, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message about = { 0 };
	mr_auto(notice_done) struct notice n = { .to = m->local, .reason = "" };
	mr_auto(buf_done) struct buf from = BUF_INIT;
	struct mr_room *room = c->room;

	if ((strchr(m->local, '@') ||
		room->driver->fetch(room, m->local, l->id, ALL_FOLDERS, SCAN_BODIES, &about, IGNORED) != MR_OK) &&
	    room_fetch_work(room, box_queue(c->box.z), l->id, &about, IGNORED) != MR_OK) {
		about =
		    (struct mr_message){ .from = "", .subject = "", .type = "", .thread = l->thread, .reply_to = "" };
		about.date_ms = id_time_ms(l->id); /* purged: the id still has its time */
		(void)snprintf(about.id, sizeof(about.id), "%s", l->id);
	}
	buf_addf(&from, "%s@%s", m->foreign, c->link.name);
	n.from = buf_z(&from);
	buf_addf(&n.story, "%s had not read this message when %s was removed. No agent will read it there.", n.from,
	    c->there ? "that mailbox" : "that room");
	buf_addf(&n.advice, "If it still matters, send it to somebody else, or again when %s is back.", n.from);
	buf_addf(&n.key, "lost:%s:%s:%s", c->link.name, l->id, m->foreign);
	return buf_ok(&from) ? notice_send(room, &n, &about, err) : mr_nomem(err);
}

/* CARRIED_SENT: unchanged. */
static enum mr_rc
look_after(struct carrier *c, const struct correspondence *m, const struct carried_line *l, enum carried_state *ret,
    struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	enum mr_rc rc;

	*ret = CARRIED_LOST;
	if (!c->there)
		return MR_OK;
	rc = c->there->driver->fetch(c->there, m->foreign, l->there, 0, SCAN_NAMES, &msg, err);
	if (rc == MR_OK)
		*ret = msg.folder == MR_INBOX && !(msg.flags & MR_SEEN) ? CARRIED_SENT : CARRIED_READ;
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	rc = ROOM_HAS(c->there, find_agent) ? link_lives_there(c->there, m->foreign, err) : MR_OK;
	if (rc == MR_OK)
		*ret = CARRIED_READ;
	return mr_unless(rc, MR_NOTFOUND, err);
}

/* The unread mail there is looked up only if the lines allow the record to end. */
static bool
end_if_over(struct carrier *c, const struct correspondence *m)
{
	mr_auto(mr_names_done) struct mr_names unread = { 0 };
	const char *proxy = link_foreign_of(&c->link, m->local);

	if (!c->there || !correspondence_may_end(m, &unread))
		return false;
	enum mr_rc rc = proxy ? link_unread(c->there, proxy, MR_INBOX, &unread, IGNORED) : MR_OK;

	return (rc == MR_OK || rc == MR_NOTFOUND) && correspondence_may_end(m, &unread) &&
	       correspondence_forget(c->room, c->link.name, m) && names_add_once(&c->silent, m->local);
}

/* The notice has a key, and is sent before the line is marked as lost: if it is killed in between, it is sent again and
 * arrives once. */
static enum mr_rc
look_at_pair(void *ctx, const struct correspondence *m, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names unread = { 0 };
	struct carrier *c = ctx;
	bool any = false;

	if (end_if_over(c, m))
		return MR_OK;
	TRY(mr_got(names_add_once(&c->talking, m->local), err));
	for (size_t i = 0; i < m->n; i++)
		any |= m->v[i].state == CARRIED_SENT;
	/* Most of it waits there, and one look at the mailbox finds that; only the rest is asked for one by one. */
	if (any && c->there)
		(void)link_unread(c->there, m->foreign, MR_INBOX, &unread, IGNORED);
	for (size_t i = 0; i < m->n; i++) {
		struct carried_line l = m->v[i];
		enum carried_state state = CARRIED_SENT;

		if (l.state != CARRIED_SENT || names_has(&unread, l.there))
			continue;
		enum mr_rc rc = look_after(c, m, &l, &state, err);

		if (rc == MR_OK && state == CARRIED_LOST)
			rc = tell_lost(c, m, &l, err);
		if (rc == MR_OK && state != CARRIED_SENT) {
			l.state = state;
			rc = correspondence_note(c->room, c->link.name, m->local, m->foreign, &l, "", err);
		}
		c->count.vanished += rc == MR_OK && state == CARRIED_LOST;
		if (rc != MR_OK) /* asked again next time; go on with the others */
			carrier_trouble(c, err);
	}
	return MR_OK;
}

/* ---- One link ---- */

static void
carrier_done(struct carrier *c)
{
	mr_room_close(c->there);
	mr_link_done(&c->link);
	mr_names_done(&c->talking);
	mr_names_done(&c->silent);
	free(c->stuck);
}

static enum mr_rc
carry(struct carrier *c, const char *link, unsigned ways, struct mr_error *err)
{
	struct mr_error second = { 0 };

	TRY(mr_link_get(c->room, link, &c->link, err));
	c->box = link_box(link);
	enum mr_rc rc = link_open(c->room, &c->link, &c->there, err);

	/* The room is gone, with all unread mail in it. */
	if (rc == MR_NOTFOUND && (ways & MR_CARRY_IN) &&
	    correspondence_each(c->room, link, look_at_pair, c, &second) != MR_OK)
		carrier_trouble(c, &second);
	if (rc != MR_OK) {
		c->count.waiting = link_waiting(c->room, link, &(int64_t){ 0 });
		return rc;
	}
	if (ways & MR_CARRY_IN) {
		link_remember(c->room, c->there, link);
		rc = carry_in(c, err);
	}
	if (rc == MR_OK && (ways & MR_CARRY_OUT))
		rc = carry_out(c, err);
	if (rc == MR_OK && (ways & MR_CARRY_IN))
		rc = correspondence_each(c->room, link, look_at_pair, c, err);
	for (size_t i = 0; i < c->silent.n && rc == MR_OK; i++)
		if (!names_has(&c->talking, c->silent.v[i]))
			link_forget_name(c->room, c->there, &c->link, c->silent.v[i]);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "link '%s'", link);
}

enum mr_rc
mr_carry(struct mr_room *room, const char *link, unsigned ways, mr_carry_trouble_fn *trouble, void *ctx,
    struct mr_carried *ret, struct mr_error *err)
{
	mr_auto(carrier_done) struct carrier c = { .room = room, .trouble = trouble, .ctx = ctx };
	enum mr_rc rc = carry(&c, link, ways, err);

	*ret = c.count;
	return rc;
}

enum mr_rc
carry_after_send(struct mr_room *room, const char *link, const char *id, mr_carry_trouble_fn *trouble, void *ctx,
    bool *ret_waits, struct mr_error *err)
{
	mr_auto(carrier_done) struct carrier c = { .room = room, .own = id, .trouble = trouble, .ctx = ctx };
	enum mr_rc rc = carry(&c, link, MR_CARRY_OUT, err);

	*ret_waits = c.own_waits;
	return rc;
}
