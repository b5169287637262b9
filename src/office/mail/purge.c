/* SPDX-License-Identifier: MIT */
/*
 * purge.c - removing a message for good: who may, who is told, and what is kept.
 *
 * Its sender may, and the operator. Those who had it unread get a short mail, so that nobody waits for what was
 * announced and then vanished. The mail has no word of the message, not even its subject, which often is the first line
 * of the text: what leaked must not leak again.
 *
 *	1. records/purged/_/<id>        what is being done: By, At, Reason, Unfinished, From, Sent, Notice, Tell ...,
 *Away ...
 *	2. the mail to those in Tell    its id is Notice: a repeated purge finds it and does not send it again
 *	3. every copy is unlinked       the sender's own last: until then it can still be found and purged
 *	4. records/purged/_/<bucket>    a line for the message: who, when and why, for mr_why
 *	5. records/purged/_/<id> goes
 *
 * Killed anywhere, what is left explains itself, recovery does not complete a delivery of the message (the driver looks
 * for 1), and the next purge of it goes on with the same words. One purge at a time: they have a lock.
 *
 * Purging must make space. A record for each message would take as much as a small message did, and so would the key of
 * the mail (send --key), which is why there is neither: a line takes some 80 bytes.
 *
 * On a disk that is full to the last, reserve included, 1 or 2 finds no space. Then 3 comes first and makes it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "office/link/link.h"

#define PURGED "purged"
#define LOCK_WAIT_MS 10000
#define BUCKET_CHARS 5                /* of the id: messages of about nine hours */
#define BUCKET_MAX ((size_t)48 << 10) /* beyond it a message has its own record */

/* ---- Tombstones ---- */

static void
bucket_of(const char *id, char ret[BUCKET_CHARS + 1])
{
	memcpy(ret, id, BUCKET_CHARS);
	ret[BUCKET_CHARS] = '\0';
}

struct tombstone_line {
	const char *id;
	struct mr_str value; /* "<id> <at> <by> <reason>" */
	bool no_room;
};

/* Also replaces the line of the message, which a purge that was cut off may have left. */
static enum mr_rc
put_line(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct tombstone_line *new = ctx;
	mr_auto(record_done) struct record old = { 0 };
	enum mr_rc rc = exists ? record_parse(buf_str(text), &old, err) : MR_OK;

	if (rc != MR_OK && rc != MR_CORRUPT)
		return rc;
	new->no_room = text->len > BUCKET_MAX;
	if (new->no_room)
		return MR_OK;
	*err = (struct mr_error){ 0 };
	buf_clear(text);
	rc = header_add(text, "Purged", new->value, err);
	for (size_t i = 0; i < old.n && rc == MR_OK; i++)
		if (!str_starts(str_of(old.lines[i].value), new->id))
			rc = header_add(text, old.lines[i].name, str_of(old.lines[i].value), err);
	return rc;
}

static enum mr_rc
get_record(struct mr_room *room, const char *name, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc =
	    ROOM_HAS(room, record_get) ? room->driver->record_get(room, PURGED, "", name, &text, err) : MR_NOTFOUND;

	return rc == MR_OK ? record_parse(buf_str(&text), ret, err) : rc;
}

static const char *
line_or(const struct record *r, const char *name, const char *otherwise)
{
	const char *value = record_get(r, name);

	return value ? value : otherwise;
}

enum mr_rc
tombstone_get(struct mr_room *room, const char *id, struct tombstone *ret, struct record *own, struct mr_error *err)
{
	char bucket[BUCKET_CHARS + 1];

	if (get_record(room, id, own, err) == MR_OK) {
		*ret = (struct tombstone){ .by = line_or(own, "By", "?"),
			.at = line_or(own, "At", "?"),
			.reason = line_or(own, "Reason", ""),
			.unfinished = record_get(own, "Unfinished") != NULL };
		return MR_OK;
	}
	*err = (struct mr_error){ 0 };
	bucket_of(id, bucket);
	enum mr_rc rc = get_record(room, bucket, own, err);

	for (size_t i = 0; i < own->n && rc == MR_OK; i++) {
		if (!str_starts(str_of(own->lines[i].value), id))
			continue;
		char *rest = arena_dup(&own->own, str_of(own->lines[i].value));

		if (!rest)
			return mr_nomem(err);
		(void)strsep(&rest, " ");
		const char *at = strsep(&rest, " "), *by = strsep(&rest, " ");

		*ret = (struct tombstone){ .by = by ? by : "?", .at = at ? at : "?", .reason = rest ? rest : "" };
		return MR_OK;
	}
	return mr_fail(err, MR_NOTFOUND, "'%s' was not purged", id);
}

/* ---- One purge ---- */

struct purge { /* finish with purge_done */
	struct mr_room *room;
	char id[MR_ID_LEN + 1];
	struct record lines; /* what the strings live in, when an earlier purge is continued */
	struct mr_message msg;
	const char *by, *reason, *from;
	char at[RFC3339_LEN + 1], sent[RFC3339_LEN + 1];
	char notice[MR_ID_LEN + 1];
	struct mr_names tell; /* who had it unread */
	struct mr_names away; /* in linked rooms: recipients, or its sender */
	size_t copies;
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

static void
note_copy(void *ctx, const struct place_of *place)
{
	struct purge *p = ctx;

	/* A fan-out under way counts: purging must reach it before it makes more copies. */
	p->copies++;
	p->dead |= place->folder == MR_DEAD;
	if (!*place->agent || place->folder == 0)
		return;
	p->failed |= !names_has(&p->readers, place->agent) && !names_add(&p->readers, str_of(place->agent));
	bool unread = (place->folder == MR_INBOX || place->folder == MR_HELD) && !(place->flags & MR_SEEN);

	if (!p->continued && unread && !names_has(&p->tell, place->agent))
		p->failed |= !names_add(&p->tell, str_of(place->agent));
}

/* The headers of any copy. */
static enum mr_rc
fetch_any(struct purge *p, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	const struct room_driver *driver = p->room->driver;
	struct mr_error ignored = { 0 };
	enum mr_rc rc = MR_NOTFOUND;

	for (size_t i = 0; i < p->readers.n && rc != MR_OK; i++)
		rc = driver->fetch(p->room, p->readers.v[i], p->id, office_folders(p->room, ALL_FOLDERS), SCAN_HEADERS,
		    &p->msg, &ignored);
	if (rc != MR_OK && p->dead)
		rc = driver->fetch(p->room, OPERATOR, p->id, MR_DEAD, SCAN_HEADERS, &p->msg, &ignored);
	if (rc != MR_OK && office_queue_able(p->room, &ignored) == MR_OK)
		(void)settings_names(p->room, "queue", &queues, &ignored);
	for (size_t i = 0; i < queues.n && rc != MR_OK; i++)
		rc = driver->queue_fetch(p->room, queues.v[i], p->id, &p->msg, &ignored);
	if (rc == MR_OK)
		return MR_OK;
	return mr_fail(err, MR_NOTFOUND, "no copy of '%s' can be read", p->id);
}

static void
note_away(struct purge *p, const char *address)
{
	struct mr_str agent, link;

	address_split(str_of(address), &agent, &link);
	if (link.len > 0 && !names_has(&p->away, address))
		p->failed |= !names_add(&p->away, str_of(address));
}

/* An earlier purge of it was cut off: it is completed as it was begun. */
static enum mr_rc
go_on(struct purge *p, struct mr_error *err)
{
	p->continued = true;
	p->by = line_or(&p->lines, "By", "");
	p->from = line_or(&p->lines, "From", "");
	p->reason = line_or(&p->lines, "Reason", "");
	(void)snprintf(p->at, sizeof(p->at), "%s", line_or(&p->lines, "At", ""));
	(void)snprintf(p->sent, sizeof(p->sent), "%s", line_or(&p->lines, "Sent", ""));
	(void)snprintf(p->notice, sizeof(p->notice), "%s", line_or(&p->lines, "Notice", ""));
	for (size_t i = 0; i < p->lines.n; i++) {
		const struct mr_header *line = &p->lines.lines[i];
		struct mr_names *to = strcmp(line->name, "Tell") == 0   ? &p->tell
				      : strcmp(line->name, "Away") == 0 ? &p->away
									: NULL;

		if (to && !names_add(to, str_of(line->value)))
			return mr_nomem(err);
	}
	return MR_OK;
}

static enum mr_rc
check_may(const struct purge *p, const struct mr_self *self, struct mr_error *err)
{
	if (strcmp(self->agent, OPERATOR) == 0 && self->bound)
		return mr_fail(err, MR_REFUSED,
		    "an agent's session may not purge as '%s'\n"
		    "that name belongs to the person who runs the room: ask it with mailroom escalate",
		    OPERATOR);
	if (strcmp(self->agent, OPERATOR) == 0 || (*p->from && strcmp(self->agent, p->from) == 0))
		return MR_OK;
	if (!*p->from || strchr(p->from, '@'))
		return mr_fail(err, MR_REFUSED,
		    "only the operator may purge '%s': its sender is not in this room\n"
		    "ask: mailroom send operator -m 'please purge %s'",
		    p->id, p->id);
	return mr_fail(err, MR_REFUSED,
	    "only its sender '%.100s' or the operator may purge '%s'\nask: mailroom send %.80s -m 'please purge %s'",
	    p->from, p->id, p->from, p->id);
}

/* Finds out all that must be known before the first copy goes. */
static enum mr_rc
begin(struct purge *p, const struct mr_self *self, const char *reason, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	enum mr_rc rc = MR_OK;

	if (get_record(p->room, p->id, &p->lines, &ignored) == MR_OK && record_get(&p->lines, "Unfinished"))
		rc = go_on(p, err);
	if (rc == MR_OK)
		rc = p->room->driver->each_place(p->room, p->id, note_copy, p, err);
	if (rc == MR_OK && p->failed)
		rc = mr_nomem(err);
	if (rc != MR_OK || p->continued)
		return rc == MR_OK ? check_may(p, self, err) : rc;
	if (p->copies == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no copy of '%s' anywhere in room '%s'\n`mailroom why %s` tells what is known of it", p->id,
		    p->room->name, p->id);
	bool known = fetch_any(p, &ignored) == MR_OK;

	p->by = self->agent;
	p->reason = reason;
	p->from = known ? p->msg.from : "";
	time_rfc3339(clock_now_ms(), p->at);
	id_new(p->notice);
	if (known)
		time_rfc3339(p->msg.date_ms, p->sent);
	note_away(p, p->from);
	for (size_t i = 0; i < p->msg.to.n; i++)
		note_away(p, p->msg.to.v[i]);
	for (size_t i = 0; i < p->msg.cc.n; i++)
		note_away(p, p->msg.cc.v[i]);
	return p->failed ? mr_nomem(err) : check_may(p, self, err);
}

/* ---- 1 ---- */

static enum mr_rc
add_line(struct buf *out, const char *name, const char *value, struct mr_error *err)
{
	return *value ? header_add(out, name, str_of(value), err) : MR_OK;
}

static enum mr_rc
put_intent(const struct purge *p, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = add_line(&text, "By", p->by, err);

	if (rc == MR_OK)
		rc = add_line(&text, "At", p->at, err);
	if (rc == MR_OK)
		rc = add_line(&text, "Reason", p->reason, err);
	if (rc == MR_OK)
		rc = add_line(&text, "Unfinished", "yes", err);
	if (rc == MR_OK)
		rc = add_line(&text, "From", p->from, err);
	if (rc == MR_OK)
		rc = add_line(&text, "Sent", p->sent, err);
	if (rc == MR_OK)
		rc = add_line(&text, "Notice", p->notice, err);
	for (size_t i = 0; i < p->tell.n && rc == MR_OK; i++)
		rc = add_line(&text, "Tell", p->tell.v[i], err);
	for (size_t i = 0; i < p->away.n && rc == MR_OK; i++)
		rc = add_line(&text, "Away", p->away.v[i], err);
	if (rc == MR_OK && !buf_ok(&text))
		rc = mr_nomem(err);
	return rc == MR_OK ? p->room->driver->record_put(p->room, PURGED, "", p->id, buf_str(&text), err) : rc;
}

/* ---- 2 ---- */

/* Those who are still registered: one that is not would have the whole delivery refused. */
static enum mr_rc
still_here(struct purge *p, struct mr_names *ret, struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < p->tell.n; i++)
		if (strcmp(p->tell.v[i], p->by) != 0 && agent_exists(p->room, p->tell.v[i], &ignored) == MR_OK &&
		    !names_add(ret, str_of(p->tell.v[i])))
			return mr_nomem(err);
	return MR_OK;
}

static void
note_place(void *ctx, const struct place_of *place)
{
	(void)place;
	*(bool *)ctx = true;
}

static enum mr_rc
deliver_notice(struct purge *p, const struct mr_names *to, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	const char *from = *p->from ? p->from : "somebody";
	struct delivered got = { 0 };

	buf_addf(&subject, "Removed: a message from %s", from);
	buf_addf(&body, "A message from %s was removed before you were done with it, by %s.\n\n", from, p->by);
	buf_addf(&body, "Reason: %s\nMessage: %s\n", *p->reason ? p->reason : "none given", p->id);
	if (*p->sent)
		buf_addf(&body, "Sent: %s\n", p->sent);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return mr_nomem(err);
	struct mr_message msg = {
		.from = p->by,
		.to = *to,
		.subject = buf_z(&subject),
		.date_ms = clock_now_ms(),
		.type = PURGED,
		.thread = p->notice,
		.reply_to = "",
		.replace_key = "",
		.body = buf_z(&body),
		.body_len = body.len,
		.path = "",
	};
	struct delivery what = { .msg = &msg, .to = to, .sender = p->by };
	enum mr_rc rc;

	memcpy(msg.id, p->notice, sizeof(msg.id));
	rc = p->room->driver->deliver(p->room, &what, &got, err);
	mr_names_done(&got.missing);
	if (rc != MR_OK && rc != MR_INDOUBT) /* in doubt: durable, and any later command completes it */
		return mr_wrap(err, "cannot tell those who had not read it");
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

static enum mr_rc
tell(struct purge *p, struct mr_names *ret_told, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	bool told = false;
	enum mr_rc rc = still_here(p, &to, err);

	if (rc == MR_OK && to.n > 0 && p->continued)
		rc = p->room->driver->each_place(p->room, p->notice, note_place, &told, err);
	if (rc == MR_OK && to.n > 0 && !told)
		rc = deliver_notice(p, &to, err);
	if (rc != MR_OK)
		return rc;
	*ret_told = to;
	to = (struct mr_names){ 0 };
	return MR_OK;
}

/* ---- 4 and 5 ---- */

static enum mr_rc
put_tombstone(struct purge *p, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct tombstone_line line = { .id = p->id };
	char bucket[BUCKET_CHARS + 1];
	enum mr_rc rc;

	bucket_of(p->id, bucket);
	buf_addf(&value, "%s %s %s %s", p->id, p->at, p->by, p->reason);
	if (!buf_ok(&value))
		return mr_nomem(err);
	line.value = str_trim(buf_str(&value));
	rc = p->room->driver->record_change(p->room, PURGED, "", bucket, put_line, &line, err);
	if (rc == MR_OK && line.no_room) { /* then the record of 1 is what stays, finished */
		buf_clear(&value);
		rc = add_line(&value, "By", p->by, err);
		if (rc == MR_OK)
			rc = add_line(&value, "Reason", p->reason, err);
		if (rc == MR_OK)
			rc = add_line(&value, "At", p->at, err);
		return rc == MR_OK ? p->room->driver->record_put(p->room, PURGED, "", p->id, buf_str(&value), err) : rc;
	}
	if (rc == MR_OK)
		rc = p->room->driver->record_drop(p->room, PURGED, "", p->id, err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- All of it ---- */

static void
name_carried(struct purge *p, struct mr_purged *ret)
{
	for (size_t i = 0; i < p->away.n; i++) {
		mr_auto(buf_done) struct buf ignored = BUF_INIT;
		const char *state = strcmp(p->away.v[i], p->from) == 0
					? "sent"
					: correspondence_evidence(p->room, p->from, p->away.v[i], p->id, &ignored);

		if (state && strcmp(state, "vanished") != 0)
			(void)names_add(&ret->carried, str_of(p->away.v[i]));
	}
}

static enum mr_rc
purge(struct purge *p, struct mr_purged *ret, struct mr_error *err)
{
	const struct room_driver *driver = p->room->driver;
	bool keeps = ROOM_HAS(p->room, record_put);
	struct mr_error late = { 0 };
	enum mr_rc rc, told = MR_FULL;
	bool begun = !keeps || p->continued || put_intent(p, err) == MR_OK;

	*err = (struct mr_error){ 0 }; /* no space, or another user closed the folder: removing it matters more */
	if (begun)
		told = tell(p, &ret->told, &late);
	rc = driver->purge(p->room, p->id, &ret->removed, err);
	if (rc == MR_OK)
		rc = office_flush(p->room, err);
	if (rc != MR_OK)
		return rc;
	name_carried(p, ret);
	if (!begun)
		rc = put_tombstone(p, err);
	if (told != MR_OK)
		told = tell(p, &ret->told, &late);
	/* The record of 1 stays until everybody is told: a repeated purge needs it. */
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
	return mr_hint(err, begun ? "make room, then repeat the command: it completes what is missing"
				  : "there was no space to note this: tell its recipients yourself");
}

enum mr_rc
mr_purge(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_purged *ret,
    struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	mr_auto(purge_done) struct purge p = { .room = room };
	mr_auto(mr_purged_done) struct mr_purged result = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(room, purge) || !ROOM_HAS(room, each_place) || !(room->driver->abilities & ROOM_PURGE))
		return office_lacks(room, "way to purge mail", err);
	relief_begin(&relief, room);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = lookup_anywhere(room, self->agent, id, p.id, err);
	if (rc == MR_OK && reason && header_value_problem(str_of(reason)))
		rc = mr_fail(err, MR_REFUSED, "the reason %s", header_value_problem(str_of(reason)));
	/* Without a lock, where there is no space for it or another user closed the folder, it goes on all the same. */
	if (rc == MR_OK && ROOM_HAS(room, record_lock) &&
	    room->driver->record_lock(room, PURGED, "", "purge", LOCK_WAIT_MS, &p.lock, err) == MR_BUSY)
		rc = MR_BUSY;
	if (rc == MR_OK)
		rc = begin(&p, self, reason ? reason : "", err);
	if (rc == MR_OK)
		rc = purge(&p, &result, err);
	if (rc != MR_OK || !ret)
		return rc;
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
