/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - ids. People and agents type the last characters of an id, because the first ones stay the same for
 * minutes; programs and mail headers give full ones, also as <id@room>. A short id means a near message: first the
 * inbox and held mail, then a month of archive and sent mail at a time, the newest first; so a million archived
 * messages cost nothing and make no id ambiguous. Then fetching the message.
 */
#include "base/id.h"
#include "message/message.h"
#include "office/address/address.h"
#include "office/mail/index.h"
#include "office/mail/mail.h"

/* ---- Spelling ---- */

enum mr_rc
lookup_spelling(
    const struct mr_room *room, const char *given, char ret[MR_ID_LEN + 1], bool *ret_full, struct mr_error *err)
{
	struct mr_str inner = msgid_inner(str_of(given), room->name);
	char id[MR_ID_LEN + 1] = "";
	bool valid = inner.len > 0 && inner.len <= MR_ID_LEN;

	for (size_t i = 0; valid && i < inner.len; i++) {
		id[i] = ascii_lower(inner.ptr[i]);
		valid = id[i] && strchr("0123456789abcdefghjkmnpqrstvwxyz", id[i]);
	}
	if (valid && inner.len < SHORT_ID_MIN)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is too short for a message id\ngive at least %d characters from the end of the id", id,
		    SHORT_ID_MIN);
	if (!valid || (inner.len == MR_ID_LEN && !id_valid(str_of(id))))
		return mr_fail(err, MR_REFUSED,
		    "'%.60s' is not a message id\nan id is 26 letters and digits; its last 6 or more are enough",
		    given);
	*ret_full = inner.len == MR_ID_LEN;
	memcpy(ret, id, sizeof(id));
	return MR_OK;
}

bool
lookup_is_id(const struct mr_room *room, const char *given)
{
	char id[MR_ID_LEN + 1];
	bool full;

	return lookup_spelling(room, given, id, &full, IGNORED) == MR_OK;
}

const char *
lookup_native_id(const struct mr_room *room, const struct mr_message *msg, struct arena **own)
{
	const char *given = mr_message_header(msg, "Message-ID");
	struct mr_str inner = given ? msgid_inner(str_of(given), room->name) : (struct mr_str){ 0 };

	return arena_dup(own, inner.len > 0 ? inner : str_of(msg->id));
}

/* ---- The ends of ids ---- */

void
found_add(struct found_ids *found, const char *id)
{
	for (size_t i = 0; i < found->n; i++) /* mail to oneself is in two folders */
		if (strcmp(found->v[i], id) == 0)
			return;
	if (found->n <= FOUND_SHOWN)
		(void)snprintf(found->v[found->n++], MR_ID_LEN + 1, "%s", id);
}

enum mr_rc
found_one(const struct found_ids *found, const char *what, const char *given, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	if (found->n == 1) {
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", found->v[0]);
		return MR_OK;
	}
	for (size_t i = 0; i < found->n; i++)
		buf_addf(&list, "%s%s", i > 0 ? ", " : "", i < FOUND_SHOWN ? found->v[i] : "...");
	return mr_fail(err, MR_REFUSED, "several %s end in '%s'\none of: %s", what, given, buf_z(&list));
}

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct found_ids *found = ctx;

	found_add(found, msg->id);
	return found->n <= FOUND_SHOWN;
}

static enum mr_rc
scan_suffix(struct index_ends *ends, const char *agent, unsigned folders, struct found_ids *found, struct mr_error *err)
{
	struct scan_request want = { .folders = folders,
		.depth = SCAN_NAMES,
		.order = SCAN_NEWEST,
		.id_suffix = ends->suffix,
		.nearest = true,
		.ends = index_ends,
		.ends_ctx = ends };

	index_ends_next(ends, agent);
	return found->n > FOUND_SHOWN ? MR_OK : office_scan(ends->room, agent, &want, note_id, found, err);
}

bool
mr_id_is_far(struct mr_room *room, const char *agent, const char *given)
{
	struct scan_request want = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .order = SCAN_NEWEST };
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	bool full;

	if (lookup_spelling(room, given, spelled, &full, IGNORED) != MR_OK || full || !mr_room_has(room, MR_HAS_INDEX))
		return false;
	want.id_suffix = spelled;
	return office_scan(room, agent, &want, note_id, &found, IGNORED) == MR_OK && found.n == 0;
}

struct native_search {
	const char *given;
	struct found_ids found;
};

static bool
note_if_native(void *ctx, const struct mr_message *msg)
{
	struct native_search *search = ctx;
	const char *id = mr_message_header(msg, "Message-ID");

	return !id || strcmp(id, search->given) != 0 || note_id(&search->found, msg);
}

/* In the room of another program its own id of a message is accepted, too. One id may stand for a whole conversation:
 * then waiting mail has precedence over read and sent mail. MR_NOTFOUND leaves err alone. */
static enum mr_rc
resolve_native(struct mr_room *room, const char *agent, const char *given, unsigned folders, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	static const enum mr_folder order[] = { MR_INBOX, MR_ARCHIVE, MR_SENT };
	struct native_search search = { .given = given };

	if (office_has_lives(room))
		return MR_NOTFOUND;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && search.found.n == 0; i++) {
		struct scan_request want = { .folders = order[i], .depth = SCAN_HEADERS };

		if (folders == 0 || (folders & order[i]))
			(void)office_scan(room, agent, &want, note_if_native, &search, IGNORED);
	}
	return search.found.n == 0 ? MR_NOTFOUND : found_one(&search.found, "messages", given, ret_id, err);
}

enum mr_rc
mr_resolve_id(struct mr_room *room, const char *agent, const char *id, unsigned folders, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	mr_auto(index_ends_done) struct index_ends ends = { .room = room, .suffix = spelled };
	bool full;
	enum mr_rc rc = lookup_spelling(room, id, spelled, &full, err), native;

	if (rc == MR_OK && full) {
		memcpy(ret_id, spelled, sizeof(spelled));
		return MR_OK;
	}
	native = resolve_native(room, agent, id, folders, ret_id, err);
	if (native == MR_OK)
		*err = (struct mr_error){ 0 };
	if (native != MR_NOTFOUND)
		return native;
	TRY(rc);
	TRY(scan_suffix(&ends, agent, folders ? folders : ALL_FOLDERS, &found, err));
	if (found.n == 0 && folders == 0) {
		TRY(claim_held_work(room, agent, spelled, &claims, err));
		for (size_t i = 0; i < claims.n; i++)
			found_add(&found, claims.v[i].id);
	}
	if (found.n == 0 && folders == 0)
		TRY(scan_suffix(&ends, agent, MR_DEAD, &found, err));
	if (found.n > 0)
		return found_one(&found, room->driver->abilities & ROOM_NAMES ? "of the nearest messages" : "messages",
		    spelled, ret_id, err);
	(void)mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox of '%s'", spelled, agent);
	if (!ROOM_HAS(room, each_place))
		return mr_hint(err, "`mailroom inbox --all` lists ids");
	return mr_hint(err, "`mailroom inbox --all` lists ids; `mailroom why %s` looks everywhere", spelled);
}

/* ---- Everywhere ---- */

enum mr_rc
lookup_anywhere(
    struct mr_room *room, const char *agent, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	mr_auto(index_ends_done) struct index_ends ends = { .room = room, .suffix = spelled };
	bool full;
	enum mr_rc rc = mr_resolve_id(room, agent, given, 0, ret_id, err);

	if (rc != MR_NOTFOUND || !ROOM_HAS(room, each_agent))
		return rc;
	TRY(lookup_spelling(room, given, spelled, &full, err));
	TRY(office_agents(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++) {
		/* not found: pruned while we look */
		TRY(mr_unless(scan_suffix(&ends, agents.v[i], ALL_FOLDERS, &found, err), MR_NOTFOUND, err));
	}
	if (found.n > 0)
		return found_one(&found, "messages", spelled, ret_id, err);
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in room '%s'\na purged message is known by its full id only",
	    spelled, room->name);
}

enum mr_rc
lookup_anyones(struct mr_room *room, const char *id, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	enum mr_rc rc = MR_NOTFOUND;

	(void)office_agents(room, &agents, err);
	for (size_t i = 0; rc != MR_OK && rc != MR_NOMEM && i < agents.n; i++) {
		*err = (struct mr_error){ 0 };
		rc = lookup_own(room, agents.v[i], id, SCAN_HEADERS, ret, err);
	}
	if (rc == MR_OK || rc == MR_NOMEM)
		return rc;
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in room '%s'", id, room->name);
}

/* ---- Fetching ---- */

enum mr_rc
lookup_own(struct mr_room *room, const char *agent, const char *id, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	return room->driver->fetch(room, agent, id, office_folders(room, ALL_FOLDERS), depth, ret, err);
}

/* Work of a queue that is in this agent's hands. */
static bool
lookup_claimed(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret)
{
	mr_auto(claims_done) struct claims claims = { 0 };

	return claim_held_work(room, agent, id, &claims, IGNORED) == MR_OK && claims.n > 0 &&
	       claim_message(room, &claims.v[0], ret, IGNORED) == MR_OK;
}

bool
lookup_elsewhere(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret)
{
	return lookup_claimed(room, agent, id, ret) ||
	       (office_folders(room, MR_DEAD) &&
		   room->driver->fetch(room, agent, id, MR_DEAD, SCAN_BODIES, ret, IGNORED) == MR_OK);
}

struct done_work {
	const char *id;
	bool found;
};

static bool
note_done(void *ctx, const struct queue_item *item)
{
	struct done_work *done = ctx;

	done->found = strcmp(item->id, done->id) == 0;
	return !done->found;
}

enum mr_rc
lookup_original(
    struct mr_room *room, const char *agent, const char *given, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	char full[MR_ID_LEN + 1];
	struct done_work done = { .id = full };

	TRY(mr_resolve_id(room, agent, given, 0, full, err));
	enum mr_rc rc = lookup_own(room, agent, full, SCAN_HEADERS, ret, err);
	bool found = rc == MR_NOTFOUND && lookup_claimed(room, agent, full, ret);

	/* It is not recorded which agent did the work of a queue: an agent that knows the full id was given it. */
	if (rc == MR_NOTFOUND && !found && (room->driver->abilities & ROOM_QUEUES))
		(void)settings_names(room, "queue", &queues, IGNORED);
	for (size_t i = 0; i < queues.n && !found; i++) {
		(void)room->driver->each_claim(
		    room, room_box("queue", queues.v[i]).z, QUEUE_DONE, note_done, &done, IGNORED);
		found = done.found && room_fetch_work(room, queues.v[i], full, ret, IGNORED) == MR_OK;
	}
	if (!found)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

enum mr_rc
lookup_thread(struct mr_room *room, const char *agent, const char *given, struct arena **own, const char **ret,
    struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1] = "";

	if (lookup_is_id(room, given))
		TRY(mr_unless(mr_resolve_id(room, agent, given, 0, id, err), MR_NOTFOUND, err));
	if (*id) {
		bool known = lookup_own(room, agent, id, SCAN_HEADERS, &msg, IGNORED) == MR_OK ||
			     lookup_claimed(room, agent, id, &msg);

		given = known && *msg.thread ? msg.thread : id;
	}
	*ret = arena_dup(own, str_of(given));
	return *ret ? MR_OK : mr_nomem(err);
}

enum mr_rc
mr_fetch(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];

	TRY(mr_resolve_id(room, agent, id, 0, full, err));
	enum mr_rc rc = lookup_own(room, agent, full, SCAN_BODIES, ret, err);

	return rc == MR_NOTFOUND && lookup_elsewhere(room, agent, full, ret) ? MR_OK : rc;
}

enum mr_rc
mr_question(struct mr_room *room, const char *agent, const char *id, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char full[MR_ID_LEN + 1];

	TRY(mr_resolve_id(room, agent, id, 0, full, err));
	enum mr_rc rc = mr_fetch(room, agent, full, &msg, err);

	if (rc == MR_NOTFOUND && !(room->driver->abilities & ROOM_SENT))
		rc = lookup_anyones(room, full, &msg, err);
	TRY(rc);
	/* Other recipients may answer it, too; a message to oneself has no other reader. */
	if (msg.to.n == 1 && msg.cc.n == 0 && strcmp(msg.to.v[0], agent) == 0) {
		if (strcmp(msg.from, agent) == 0)
			(void)mr_fail(
			    err, MR_REFUSED, "'%s' is from you to yourself: no other agent will answer it", msg.id);
		else
			(void)mr_fail(err, MR_REFUSED, "'%s' is from '%s' to you: no other agent will answer it",
			    msg.id, msg.from);
		return mr_hint(err, "answer it: mailroom reply %s", msg.id);
	}
	TRY(filter_can_tell_answers(room, &msg, err));
	(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", full);
	return MR_OK;
}

struct raw_out {
	mr_bytes_fn *fn;
	void *ctx;
};

static enum mr_rc
pass_on(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	const struct raw_out *out = ctx;

	return out->fn(out->ctx, bytes.ptr, bytes.len, err);
}

enum mr_rc
mr_fetch_raw(struct mr_room *room, const char *agent, const char *id, mr_bytes_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message raw = { 0 };
	mr_auto(claims_done) struct claims claims = { 0 };
	struct raw_out out = { fn, ctx };
	char full[MR_ID_LEN + 1];

	if (!(room->driver->abilities & ROOM_RAW))
		return room_lacks(room, "raw messages", err);
	TRY(mr_resolve_id(room, agent, id, 0, full, err));
	enum mr_rc rc = room->driver->fetch(room, agent, full, 0, SCAN_RAW, &raw, err);

	if (rc == MR_NOTFOUND && claim_held_work(room, agent, full, &claims, IGNORED) == MR_OK && claims.n > 0)
		rc = room->driver->fetch(room, claims.v[0].box, full, 0, SCAN_RAW, &raw, err);
	TRY(rc);
	TRY(fn(ctx, raw.body, raw.body_len, err));
	return raw.content ? raw.content->read(raw.content, raw.content->at, UINT64_MAX, pass_on, &out, err) : MR_OK;
}
