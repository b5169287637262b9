/* SPDX-License-Identifier: MIT */
/*
 * carry_lost.c - what became of mail that was delivered over there. The folder of a team is deleted by its owner when
 * he leaves: what nobody had read is gone with it, and only its sender's copy is left. He is told, once, with the text.
 *
 * Gone from a mailbox that is still there is no loss: in many formats, reading takes a message away. Only a mailbox
 * that is gone as a whole, or its room, says that nobody will read it.
 *
 * The notice has a key, and is sent before the line is noted as lost: killed in between, it is sent again and arrives
 * once.
 */
#include "base/id.h"
#include "office/link/link.h"

/* The sender's own copy. He may be in a third room: then only what the line knows is left. */
static void
find_text(struct carrier *c, const char *local, const struct carried_line *l, struct mr_message *ret)
{
	struct mr_room *room = c->room;
	struct mr_error ignored = { 0 };

	if (!strchr(local, '@') &&
	    room->driver->fetch(room, local, l->id, ALL_FOLDERS, SCAN_BODIES, ret, &ignored) == MR_OK)
		return;
	if (room->driver->queue_fetch(room, c->queue, l->id, ret, &ignored) == MR_OK)
		return;
	*ret = (struct mr_message){ .from = "", .subject = "", .type = "", .thread = l->thread, .reply_to = "" };
	ret->date_ms = id_time_ms(l->id); /* purged: of its time the id still knows */
	(void)snprintf(ret->id, sizeof(ret->id), "%s", l->id);
}

static enum mr_rc
tell_lost(struct carrier *c, const struct memory *m, const struct carried_line *l, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message about = { 0 };
	mr_auto(buf_done) struct buf story = BUF_INIT, advice = BUF_INIT, key = BUF_INIT, from = BUF_INIT;

	find_text(c, m->local, l, &about);
	buf_addf(&from, "%s@%s", m->foreign, c->link.name);
	buf_addf(&story, "%s had not read this message when %s was removed. Nobody will read it there.", buf_z(&from),
	    c->there ? "that mailbox" : "that room");
	buf_addf(&advice, "If it still matters, send it to somebody else, or again when %s is back.", buf_z(&from));
	buf_addf(&key, "lost:%s:%s:%s", c->link.name, l->id, m->foreign);
	if (!buf_ok(&story) || !buf_ok(&advice) || !buf_ok(&key) || !buf_ok(&from))
		return mr_nomem(err);
	struct notice notice = {
		.from = buf_z(&from),
		.to = m->local,
		.story = buf_z(&story),
		.reason = "",
		.advice = buf_z(&advice),
		.key = buf_z(&key),
	};

	return notice_send(c->room, &notice, &about, err);
}

/* CARRIED_SENT: nothing new. */
static enum mr_rc
look_after(struct carrier *c, const struct memory *m, const struct carried_line *l, enum carried_state *ret,
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
	if (!ROOM_HAS(c->there, find_agent) && !ROOM_HAS(c->there, has_agent)) {
		*ret = CARRIED_READ;
		return MR_OK;
	}
	rc = link_lives_there(c->there, m->foreign, err);
	if (rc == MR_OK)
		*ret = CARRIED_READ;
	if (rc == MR_NOTFOUND)
		*err = (struct mr_error){ 0 };
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	return names_add(ctx, str_of(msg->id));
}

/* What waits is the rule, and one look at the mailbox finds all of it; only the others are asked for one by one. */
static void
find_unread(struct carrier *c, const struct memory *m, struct mr_names *ret)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };
	struct mr_error ignored = { 0 };
	bool any = false;

	for (size_t i = 0; i < m->n; i++)
		any |= m->v[i].state == CARRIED_SENT;
	if (any && c->there)
		(void)c->there->driver->scan(c->there, m->foreign, &want, note_unread, ret, &ignored);
}

static enum mr_rc
look_at_pair(void *ctx, const struct memory *m, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names unread = { 0 };
	struct carrier *c = ctx;

	find_unread(c, m, &unread);
	for (size_t i = 0; i < m->n; i++) {
		struct carried_line l = m->v[i];
		enum carried_state state = CARRIED_SENT;
		enum mr_rc rc = MR_OK;

		if (l.state != CARRIED_SENT || names_has(&unread, l.there))
			continue;
		rc = look_after(c, m, &l, &state, err);
		if (rc == MR_OK && state == CARRIED_LOST)
			rc = tell_lost(c, m, &l, err);
		if (rc == MR_OK && state != CARRIED_SENT) {
			l.state = state;
			rc = memory_note(c->room, c->link.name, m->local, m->foreign, &l, "", err);
		}
		c->count.vanished += rc == MR_OK && state == CARRIED_LOST;
		if (rc != MR_OK) /* asked again next time; the others are looked at now */
			carrier_trouble(c, err);
	}
	return MR_OK;
}

enum mr_rc
carry_lost(struct carrier *c, struct mr_error *err)
{
	return memory_each(c->room, c->link.name, look_at_pair, c, err);
}
