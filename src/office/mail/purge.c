/* SPDX-License-Identifier: MIT */
/*
 * purge.c - removing a message for good: permission, notices, and the tombstone.
 *
 * Its sender and the operator may do it. Agents that had it unread get a short mail, so that they do not wait for a
 * message that was announced and vanished. The mail has no word of the message, not even its subject, which often is
 * the first line of the text, because a leaked text must not leak again.
 *
 *	1. records/purged/_/<id>        the purge in progress: the lines of intent_fields, Tell ..., Away ...
 *	2. the mail to those in Tell    its id is Notice: a repeated purge finds it and does not send it again
 *	3. every copy is unlinked       the sender's own last: until then it can still be found and purged
 *	4. records/purged/_/<bucket>    a line for the message: who, when and why, for mr_why
 *	5. records/purged/_/<id> goes
 *
 * After a kill at any point the records explain the state, recovery does not complete a delivery of the message (the
 * driver looks for 1), and the next purge of it goes on with the same words. A lock lets one purge run at a time.
 *
 * Purging must make space. A record for each message would take as much as a small message did, and so would the key of
 * the mail (send --key), which is why there is neither: a line takes some 80 bytes.
 *
 * On a disk that is full to the last, reserve included, 1 or 2 finds no space. Then 3 comes first and makes it.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/address.h"
#include "office/address/address.h"
#include "office/mail/mail.h"

#define PURGED "purged"
#define LOCK_WAIT_MS 10000
#define BUCKET_CHARS 5                /* of the id: messages of about nine hours */
#define BUCKET_MAX ((size_t)48 << 10) /* beyond it a message has its own record */

struct intent { /* record 1 */
	const char *by, *at, *reason, *unfinished, *from, *sent, *notice;
};
static const struct record_field intent_fields[] = {
	{ "By", RECORD_TEXT, offsetof(struct intent, by) },
	{ "At", RECORD_TEXT, offsetof(struct intent, at) },
	{ "Reason", RECORD_TEXT, offsetof(struct intent, reason) },
	{ "Unfinished", RECORD_TEXT, offsetof(struct intent, unfinished) },
	{ "From", RECORD_TEXT, offsetof(struct intent, from) },
	{ "Sent", RECORD_TEXT, offsetof(struct intent, sent) },
	{ "Notice", RECORD_TEXT, offsetof(struct intent, notice) },
};

/* ---- Tombstones ---- */

static void
bucket_of(const char *id, char ret[BUCKET_CHARS + 1])
{
	memcpy(ret, id, BUCKET_CHARS);
	ret[BUCKET_CHARS] = '\0';
}

static enum mr_rc
get_record(struct mr_room *room, const char *name, struct record *ret, struct mr_error *err)
{
	return ROOM_HAS(room, record_get) ? office_record(room, PURGED, "", name, ret, err) : MR_NOTFOUND;
}

bool
tombstone_get(struct mr_room *room, const char *id, struct tombstone *ret, struct record *own)
{
	char bucket[BUCKET_CHARS + 1];

	if (get_record(room, id, own, IGNORED) == MR_OK) {
		struct intent i = { 0 };

		record_read(own, RECORD_FIELDS(intent_fields), &i);
		*ret = (struct tombstone){ *i.by ? i.by : "?", *i.at ? i.at : "?", i.reason, *i.unfinished };
		return true;
	}
	bucket_of(id, bucket);
	bool known = get_record(room, bucket, own, IGNORED) == MR_OK;

	for (size_t i = 0; i < own->n && known; i++) {
		if (!str_starts(str_of(own->lines[i].value), id))
			continue;
		char *rest = arena_dup(&own->own, str_of(own->lines[i].value));

		if (!rest)
			return false;
		(void)strsep(&rest, " ");
		const char *at = strsep(&rest, " "), *by = strsep(&rest, " ");

		*ret = (struct tombstone){ .by = by ? by : "?", .at = at ? at : "?", .reason = rest ? rest : "" };
		return true;
	}
	return false;
}

/* ---- One purge ---- */

struct purge { /* finish with purge_done */
	struct mr_room *room;
	char id[MR_ID_LEN + 1];
	struct intent intent;
	struct record lines; /* holds the intent's strings, when an earlier purge is continued */
	struct mr_message msg;
	char at[RFC3339_LEN + 1], sent[RFC3339_LEN + 1], notice[MR_ID_LEN + 1]; /* of a new intent */
	struct mr_names tell;                                                   /* agents that had it unread */
	struct mr_names away; /* in linked rooms: recipients, or its sender */
	struct mr_names readers;
	bool dead;
	bool failed; /* out of memory */
	bool continued;
	void *lock; /* or NULL */
};

static void
purge_done(struct purge *p)
{
	record_done(&p->lines);
	mr_message_done(&p->msg);
	mr_names_done(&p->tell);
	mr_names_done(&p->away);
	mr_names_done(&p->readers);
	if (p->lock)
		p->room->driver->record_unlock(p->room, p->lock);
}

/* The headers of any copy. False: none can be read. */
static bool
fetch_any(struct purge *p)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	const struct room_driver *driver = p->room->driver;
	enum mr_rc rc = MR_NOTFOUND;

	for (size_t i = 0; i < p->readers.n && rc != MR_OK; i++)
		rc = lookup_own(p->room, p->readers.v[i], p->id, SCAN_HEADERS, &p->msg, IGNORED);
	if (rc != MR_OK && p->dead)
		rc = driver->fetch(p->room, OPERATOR, p->id, MR_DEAD, SCAN_HEADERS, &p->msg, IGNORED);
	if (rc != MR_OK && (p->room->driver->abilities & ROOM_QUEUES))
		(void)settings_names(p->room, "queue", &queues, IGNORED);
	for (size_t i = 0; i < queues.n && rc != MR_OK; i++)
		rc = room_fetch_work(p->room, queues.v[i], p->id, &p->msg, IGNORED);
	return rc == MR_OK;
}

static void
note_away(struct purge *p, const char *address)
{
	struct mr_str agent, link;

	address_split(str_of(address), &agent, &link);
	if (link.len > 0)
		p->failed |= !names_add_once(&p->away, address);
}

static enum mr_rc
check_may(const struct purge *p, const struct mr_self *self, struct mr_error *err)
{
	const char *from = p->intent.from;
	bool operator= strcmp(self->agent, OPERATOR) == 0;

	if (operator&& self->bound)
		return mr_fail(err, MR_REFUSED,
		    "an agent's session may not purge as '%s'\n"
		    "that name belongs to the person who runs the room: ask with `mailroom escalate`",
		    OPERATOR);
	if (operator||(*from &&strcmp(self->agent, from) == 0))
		return MR_OK;
	if (!*from || strchr(from, '@'))
		return mr_fail(err, MR_REFUSED,
		    "only the operator may purge '%s': its sender is not in this room\n"
		    "ask: mailroom send operator -m 'please purge %s'",
		    p->id, p->id);
	return mr_fail(err, MR_REFUSED,
	    "only its sender '%.100s' or the operator may purge '%s'\nask: mailroom send %.80s -m 'please purge %s'",
	    from, p->id, from, p->id);
}

/* Finds out all that must be known before the first copy is removed. An earlier purge that was cut off is completed as
 * it was begun. */
static enum mr_rc
begin(struct purge *p, const struct mr_self *self, const char *reason, struct mr_error *err)
{
	mr_auto(mr_list_done) struct places places = { 0 };

	p->continued = get_record(p->room, p->id, &p->lines, IGNORED) == MR_OK && record_get(&p->lines, "Unfinished");
	if (p->continued)
		record_read(&p->lines, RECORD_FIELDS(intent_fields), &p->intent);
	for (size_t i = 0; p->continued && i < p->lines.n; i++) {
		const struct mr_header *line = &p->lines.lines[i];

		if (strcmp(line->name, "Tell") == 0)
			p->failed |= !names_add(&p->tell, str_of(line->value));
		if (strcmp(line->name, "Away") == 0)
			p->failed |= !names_add(&p->away, str_of(line->value));
	}
	TRY(office_places(p->room, p->id, &places, err));
	/* An unfinished fan-out counts: purging must reach it before it makes more copies. */
	for (const struct place_of *at = places.v; at < places.v + places.n; at++) {
		bool unread = (at->folder == MR_INBOX || at->folder == MR_HELD) && !(at->flags & MR_SEEN);

		p->dead |= at->folder == MR_DEAD;
		if (!*at->agent || at->folder == 0)
			continue;
		p->failed |= !names_add_once(&p->readers, at->agent);
		p->failed |= !p->continued && unread && !names_add_once(&p->tell, at->agent);
	}
	TRY(mr_got(!p->failed, err));
	if (p->continued)
		return check_may(p, self, err);
	if (places.n == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no copy of '%s' anywhere in room '%s'\n`mailroom why %s` shows what is known of it", p->id,
		    p->room->name, p->id);
	bool known = fetch_any(p);

	time_rfc3339(clock_now_ms(), p->at);
	id_new(p->notice);
	if (known)
		time_rfc3339(p->msg.date_ms, p->sent);
	p->intent = (struct intent){
		.by = self->agent,
		.at = p->at,
		.reason = reason,
		.unfinished = "yes",
		.from = known ? p->msg.from : "",
		.sent = p->sent,
		.notice = p->notice,
	};
	note_away(p, p->intent.from);
	for (size_t i = 0; i < p->msg.to.n; i++)
		note_away(p, p->msg.to.v[i]);
	for (size_t i = 0; i < p->msg.cc.n; i++)
		note_away(p, p->msg.cc.v[i]);
	return p->failed ? mr_nomem(err) : check_may(p, self, err);
}

/* 1. `finished`: the record that stays if the bucket has no room for a line. */
static enum mr_rc
put_intent(const struct purge *p, bool finished, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct intent end = { .by = p->intent.by, .at = p->intent.at, .reason = p->intent.reason };

	record_write(&text, RECORD_FIELDS(intent_fields), finished ? &end : &p->intent);
	for (size_t i = 0; !finished && i < p->tell.n; i++)
		record_add(&text, "Tell", p->tell.v[i]);
	for (size_t i = 0; !finished && i < p->away.n; i++)
		record_add(&text, "Away", p->away.v[i]);
	TRY(mr_got(buf_ok(&text), err));
	return p->room->driver->record_put(p->room, PURGED, "", p->id, buf_str(&text), err);
}

/* 2. Only agents that are still registered: any other would make the whole delivery fail. */
static enum mr_rc
tell(struct purge *p, struct mr_names *ret_told, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	const struct intent *i = &p->intent;
	const char *from = *i->from ? i->from : "somebody";
	mr_auto(mr_list_done) struct places told = { 0 };

	for (size_t k = 0; k < p->tell.n; k++)
		if (strcmp(p->tell.v[k], i->by) != 0 && agent_exists(p->room, p->tell.v[k], IGNORED) == MR_OK &&
		    !names_add(&to, str_of(p->tell.v[k])))
			return mr_nomem(err);
	if (to.n > 0 && p->continued)
		TRY(office_places(p->room, i->notice, &told, err));
	if (to.n > 0 && told.n == 0) {
		struct office_notice notice = {
			.from = i->by, .to = &to, .subject = &subject, .body = &body, .type = PURGED, .id = i->notice
		};

		buf_addf(&subject, "Removed: a message from %s", from);
		buf_addf(&body, "A message from %s was removed before you were done with it, by %s.\n\n", from, i->by);
		buf_addf(&body, "Reason: %s\nMessage: %s\n", *i->reason ? i->reason : "none given", p->id);
		if (*i->sent)
			buf_addf(&body, "Sent: %s\n", i->sent);
		if (notice_deliver(p->room, &notice, err) != MR_OK)
			return mr_wrap(err, "cannot notify the recipients that had not read it");
	}
	*ret_told = to;
	to = (struct mr_names){ 0 };
	return MR_OK;
}

/* ---- 4 and 5 ---- */

/* Also replaces the line of the message, which a purge that was cut off may have left. */
static enum mr_rc
put_tombstone(struct purge *p, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(record_done) struct record old = { 0 };
	mr_auto(buf_done) struct buf value = BUF_INIT;
	char bucket[BUCKET_CHARS + 1];

	bucket_of(p->id, bucket);
	buf_addf(&value, "%s %s %s %s", p->id, p->intent.at, p->intent.by, p->intent.reason);
	TRY(mr_got(buf_ok(&value), err));
	TRY(record_edit_begin(&e, p->room, PURGED, "", bucket, err));
	if (e.exists)
		TRY(mr_unless(record_parse(buf_str(&e.text), &old, err), MR_CORRUPT, err));
	if (e.text.len > BUCKET_MAX) {
		record_edit_done(&e);
		return put_intent(p, true, err);
	}
	buf_clear(&e.text);
	TRY(header_add(&e.text, "Purged", str_trim(buf_str(&value)), err));
	for (size_t i = 0; i < old.n; i++)
		if (!str_starts(str_of(old.lines[i].value), p->id))
			TRY(header_add(&e.text, old.lines[i].name, str_of(old.lines[i].value), err));
	TRY(record_edit_save(&e, err));
	return mr_unless(p->room->driver->record_drop(p->room, PURGED, "", p->id, err), MR_NOTFOUND, err);
}

/* ---- All of it ---- */

static enum mr_rc
purge(struct purge *p, struct mr_purged *ret, struct mr_error *err)
{
	const struct room_driver *driver = p->room->driver;
	bool keeps = ROOM_HAS(p->room, record_put) && ROOM_HAS(p->room, record_drop);
	bool begun = !keeps || p->continued || put_intent(p, false, err) == MR_OK;
	struct mr_error late = { 0 };
	enum mr_rc rc = MR_OK, told = MR_FULL;

	*err = (struct mr_error){ 0 }; /* no space, or another user closed the folder: removing it matters more */
	if (begun)
		told = tell(p, &ret->told, &late);
	TRY(driver->remove(p->room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = p->id }, &ret->removed, err));
	TRY(driver->flush(p->room, err));
	for (size_t i = 0; i < p->away.n; i++) {
		mr_auto(buf_done) struct buf ignored = BUF_INIT;
		const char *state =
		    strcmp(p->away.v[i], p->intent.from) == 0
			? "sent"
			: p->room->office->links->evidence(p->room, p->intent.from, p->away.v[i], p->id, &ignored);

		if (state && strcmp(state, "vanished") != 0)
			(void)names_add(&ret->carried, str_of(p->away.v[i]));
	}
	if (!begun)
		rc = put_tombstone(p, err);
	if (told != MR_OK)
		told = tell(p, &ret->told, &late);
	/* The record of 1 stays until all are told, because a repeated purge needs it. */
	if (begun && keeps && (told == MR_OK || told == MR_NOTFOUND))
		rc = put_tombstone(p, err);
	if (rc == MR_OK && told != MR_OK && told != MR_NOTFOUND) {
		*err = late;
		rc = told;
	}
	if (rc == MR_OK)
		return MR_OK;
	if (rc != MR_FULL) { /* repeating it would not help */
		ret->warning = strdup(err->message);
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	(void)mr_wrap(err, "'%s' is removed (%zu copies)", p->id, ret->removed);
	return mr_hint(err, begun ? "free some space, then repeat the command: it completes what is missing"
				  : "there was no space to record this: tell its recipients yourself");
}

enum mr_rc
mr_purge(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_purged *ret,
    struct mr_error *err)
{
	mr_auto(purge_done) struct purge p = { .room = room };
	mr_auto(mr_purged_done) struct mr_purged result = { 0 };

	if (!(room->driver->abilities & ROOM_PURGE))
		return room_lacks(room, "way to purge mail", err);
	mr_auto(relief_end) struct relief relief = relief_begin(room);
	TRY(office_not_fenced(room, self, err));
	TRY(lookup_anywhere(room, self->agent, id, p.id, err));
	if (reason && header_value_problem(str_of(reason)))
		return mr_fail(err, MR_REFUSED, "the reason %s", header_value_problem(str_of(reason)));
	/* Without a lock, if there is no space for it or another user closed the folder, it goes on all the same. */
	if (room->driver->record_lock(room, PURGED, "", "purge", LOCK_WAIT_MS, &p.lock, err) == MR_BUSY)
		return MR_BUSY;
	TRY(begin(&p, self, reason ? reason : "", err));
	TRY(purge(&p, &result, err));
	/* The index of the room has its words. It is a cache: it is removed as a whole, and made again on request. */
	if (room->driver->files && mr_unless(mr_index_drop(room, err), MR_NOTFOUND, err) != MR_OK)
		return mr_wrap(err, "'%s' is removed, but not its words in the index", p.id);
	if (!ret)
		return MR_OK;
	*ret = result;
	result = (struct mr_purged){ 0 };
	return MR_OK;
}

void
mr_purged_done(struct mr_purged *purged)
{
	mr_names_done(&purged->told);
	mr_names_done(&purged->carried);
	free(purged->warning);
	purged->warning = NULL;
}
