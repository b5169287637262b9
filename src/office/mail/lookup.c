/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - ids. People and agents type the last characters of an id, because the first ones stay the same
 * for minutes; programs and mail headers give whole ones, also as <id@room>.
 */
#include "base/error.h"
#include "base/id.h"
#include "message/message.h"
#include "office/office.h"

#define AMBIGUOUS_MAX 5 /* listed in the hint */

/* ---- Spelling ---- */

static bool
is_id_char(char c)
{
	return c != '\0' && strchr("0123456789abcdefghjkmnpqrstvwxyz", c) != NULL;
}

static enum mr_rc
refuse_spelling(const char *given, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "'%.60s' is not a message id\nan id is 26 letters and digits; its last 6 or more are enough", given);
}

enum mr_rc
lookup_spelling(
    const struct mr_room *room, const char *given, char ret[MR_ID_LEN + 1], bool *ret_full, struct mr_error *err)
{
	struct mr_str inner = msgid_inner(str_of(given), room->name);
	char id[MR_ID_LEN + 1] = "";

	if (inner.len == 0 || inner.len > MR_ID_LEN)
		return refuse_spelling(given, err);
	for (size_t i = 0; i < inner.len; i++) {
		char c = inner.ptr[i];

		id[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		if (!is_id_char(id[i]))
			return refuse_spelling(given, err);
	}
	if (inner.len < SHORT_ID_MIN)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is too short for a message id\ngive at least %d characters from the end of the id", id,
		    SHORT_ID_MIN);
	if (inner.len == MR_ID_LEN && !id_valid(str_of(id)))
		return refuse_spelling(given, err);
	*ret_full = inner.len == MR_ID_LEN;
	(void)snprintf(ret, MR_ID_LEN + 1, "%s", id);
	return MR_OK;
}

/* ---- The ends of ids ---- */

struct found_ids {
	char v[AMBIGUOUS_MAX + 1][MR_ID_LEN + 1]; /* one more than is listed: there are others */
	size_t n;
};

static bool
note_id(void *ctx, const struct mr_message *msg)
{
	struct found_ids *found = ctx;

	for (size_t i = 0; i < found->n; i++) /* mail to oneself lies in two folders */
		if (strcmp(found->v[i], msg->id) == 0)
			return true;
	(void)snprintf(found->v[found->n++], MR_ID_LEN + 1, "%s", msg->id);
	return found->n <= AMBIGUOUS_MAX;
}

static enum mr_rc
scan_suffix(struct mr_room *room, const char *agent, const char *suffix, unsigned folders, struct found_ids *found,
    struct mr_error *err)
{
	struct scan_request want = {
		.folders = folders,
		.depth = SCAN_NAMES,
		.newest_first = true,
		.id_suffix = suffix,
	};

	if (found->n > AMBIGUOUS_MAX)
		return MR_OK;
	return office_scan(room, agent, &want, note_id, found, err);
}

static enum mr_rc
scan_held_work(
    struct mr_room *room, const char *agent, const char *suffix, struct found_ids *found, struct mr_error *err)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	enum mr_rc rc = claim_held_work(room, agent, suffix, &claims, err);

	for (size_t i = 0; i < claims.n && rc == MR_OK && found->n <= AMBIGUOUS_MAX; i++) {
		struct mr_message named = { 0 };

		(void)snprintf(named.id, sizeof(named.id), "%s", claims.v[i].id);
		(void)note_id(found, &named);
	}
	return rc;
}

static enum mr_rc
settle_on_one(const struct found_ids *found, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	if (found->n == 1) {
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", found->v[0]);
		return MR_OK;
	}
	for (size_t i = 0; i < found->n && i < AMBIGUOUS_MAX; i++)
		buf_addf(&list, "%s%s", i > 0 ? ", " : "", found->v[i]);
	if (found->n > AMBIGUOUS_MAX)
		buf_adds(&list, ", ...");
	return mr_fail(err, MR_REFUSED, "several messages end in '%s'\none of: %s", given, buf_z(&list));
}

/* ---- What another program calls a message ---- */

struct spoken_search {
	const char *given;
	struct found_ids found;
};

static bool
note_if_spoken(void *ctx, const struct mr_message *msg)
{
	struct spoken_search *search = ctx;
	const char *spoken = mr_message_header(msg, "Message-ID");

	return !spoken || strcmp(spoken, search->given) != 0 || note_id(&search->found, msg);
}

/* In the room of another program its own name for a message is as good as our id. One name may stand for a whole
 * conversation: then what waits is meant, before what was read and what was sent. MR_NOTFOUND leaves err alone. */
static enum mr_rc
resolve_spoken(struct mr_room *room, const char *agent, const char *given, unsigned folders, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	static const enum mr_folder order[] = { MR_INBOX, MR_ARCHIVE, MR_SENT };
	struct spoken_search search = { .given = given };
	struct mr_error ignored = { 0 };

	if (office_has_lives(room))
		return MR_NOTFOUND;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && search.found.n == 0; i++) {
		struct scan_request want = { .folders = order[i], .depth = SCAN_HEADERS };

		if (folders == 0 || (folders & order[i]))
			(void)office_scan(room, agent, &want, note_if_spoken, &search, &ignored);
	}
	return search.found.n == 0 ? MR_NOTFOUND : settle_on_one(&search.found, given, ret_id, err);
}

enum mr_rc
mr_resolve_id(struct mr_room *room, const char *agent, const char *id, unsigned folders, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc = lookup_spelling(room, id, spelled, &full, err), spoken;

	if (rc == MR_OK && full) {
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", spelled);
		return MR_OK;
	}
	spoken = resolve_spoken(room, agent, id, folders, ret_id, err);
	if (spoken != MR_NOTFOUND) {
		if (spoken == MR_OK)
			*err = (struct mr_error){ 0 };
		return spoken;
	}
	if (rc != MR_OK)
		return rc;
	rc = scan_suffix(room, agent, spelled, folders ? folders : ALL_FOLDERS, &found, err);
	if (rc == MR_OK && found.n == 0 && folders == 0)
		rc = scan_held_work(room, agent, spelled, &found, err);
	if (rc == MR_OK && found.n == 0 && folders == 0)
		rc = scan_suffix(room, agent, spelled, MR_DEAD, &found, err);
	if (rc != MR_OK)
		return rc;
	if (found.n > 0)
		return settle_on_one(&found, spelled, ret_id, err);
	(void)mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox of '%s'", spelled, agent);
	if (!ROOM_HAS(room, each_place))
		return mr_hint(err, "`mailroom inbox --all` lists ids");
	return mr_hint(err, "`mailroom inbox --all` lists ids; `mailroom why %s` looks everywhere", spelled);
}

/* ---- Everywhere ---- */

static bool
note_name(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

enum mr_rc
lookup_anywhere(
    struct mr_room *room, const char *agent, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct found_ids found = { 0 };
	char spelled[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc = mr_resolve_id(room, agent, given, 0, ret_id, err);

	if (rc != MR_NOTFOUND || !ROOM_HAS(room, each_agent))
		return rc;
	rc = lookup_spelling(room, given, spelled, &full, err);
	if (rc == MR_OK)
		rc = room->driver->each_agent(room, note_name, &agents, err);
	for (size_t i = 0; rc == MR_OK && i < agents.n; i++) {
		rc = scan_suffix(room, agents.v[i], spelled, ALL_FOLDERS, &found, err);
		if (rc == MR_NOTFOUND) /* pruned while we look */
			rc = MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	if (found.n > 0)
		return settle_on_one(&found, spelled, ret_id, err);
	return mr_fail(err, MR_NOTFOUND,
	    "no message '%s' in room '%s'\na message that was purged is known by its full id only", spelled,
	    room->name);
}

enum mr_rc
lookup_anyones(struct mr_room *room, const char *id, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	enum mr_rc rc = MR_NOTFOUND;

	if (!ROOM_HAS(room, each_agent) || room->driver->each_agent(room, note_name, &agents, err) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' in room '%s'", id, room->name);
	for (size_t i = 0; rc != MR_OK && rc != MR_NOMEM && i < agents.n; i++) {
		*err = (struct mr_error){ 0 };
		rc = room->driver->fetch(
		    room, agents.v[i], id, office_folders(room, ALL_FOLDERS), SCAN_HEADERS, ret, err);
	}
	return rc == MR_OK || rc == MR_NOMEM
		   ? rc
		   : mr_fail(err, MR_NOTFOUND, "no message '%s' in room '%s'", id, room->name);
}

/* ---- Fetching ---- */

enum mr_rc
lookup_claimed(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	enum mr_rc rc = claim_held_work(room, agent, id, &claims, err);

	if (rc == MR_OK && claims.n == 0)
		return mr_fail(err, MR_NOTFOUND, "'%s' holds no work '%s'", agent, id);
	if (rc == MR_OK)
		rc = room->driver->queue_fetch(room, claims.v[0].queue, id, ret, err);
	if (rc != MR_OK)
		return rc;
	ret->folder = MR_HELD;
	ret->attempt = claims.v[0].attempt;
	(void)snprintf(ret->token, sizeof(ret->token), "%s", claims.v[0].token);
	return MR_OK;
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

/* Nobody writes down who did it: whoever knows the whole id was given it. */
static enum mr_rc
fetch_done_work(struct mr_room *room, const char *id, struct mr_message *ret)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error ignored = { 0 };

	if (office_queue_able(room, &ignored) != MR_OK || settings_names(room, "queue", &queues, &ignored) != MR_OK)
		return MR_NOTFOUND;
	for (size_t i = 0; i < queues.n; i++) {
		struct done_work done = { .id = id };

		(void)room->driver->queue_each(room, queues.v[i], QUEUE_DONE, note_done, &done, &ignored);
		if (done.found && room->driver->queue_fetch(room, queues.v[i], id, ret, &ignored) == MR_OK)
			return MR_OK;
	}
	return MR_NOTFOUND;
}

enum mr_rc
lookup_original(
    struct mr_room *room, const char *agent, const char *given, struct mr_message *ret, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	struct mr_error ignored = { 0 };
	enum mr_rc rc = mr_resolve_id(room, agent, given, 0, full, err);

	if (rc != MR_OK)
		return rc;
	rc = room->driver->fetch(room, agent, full, office_folders(room, ALL_FOLDERS), SCAN_HEADERS, ret, err);
	if (rc != MR_NOTFOUND)
		return rc;
	if (lookup_claimed(room, agent, full, ret, &ignored) != MR_OK && fetch_done_work(room, full, ret) != MR_OK)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

enum mr_rc
mr_fetch(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	struct mr_error ignored = { 0 };
	enum mr_rc rc = mr_resolve_id(room, agent, id, 0, full, err);

	if (rc != MR_OK)
		return rc;
	rc = room->driver->fetch(room, agent, full, office_folders(room, ALL_FOLDERS), SCAN_BODIES, ret, err);
	if (rc == MR_NOTFOUND && lookup_claimed(room, agent, full, ret, &ignored) == MR_OK)
		return MR_OK;
	if (rc == MR_NOTFOUND && office_folders(room, MR_DEAD) &&
	    room->driver->fetch(room, agent, full, MR_DEAD, SCAN_BODIES, ret, &ignored) == MR_OK)
		return MR_OK;
	return rc;
}

/* Others who got it may answer it, too; of what somebody wrote to itself nobody has heard. */
static enum mr_rc
not_for_agent_alone(const struct mr_message *msg, const char *agent, struct mr_error *err)
{
	if (msg->to.n != 1 || msg->cc.n > 0 || strcmp(msg->to.v[0], agent) != 0)
		return MR_OK;
	if (strcmp(msg->from, agent) == 0)
		(void)mr_fail(err, MR_REFUSED, "'%s' is from you to yourself: nobody else will answer it", msg->id);
	else
		(void)mr_fail(
		    err, MR_REFUSED, "'%s' is from '%s' to you: nobody else will answer it", msg->id, msg->from);
	return mr_hint(err, "answer it: mailroom reply %s", msg->id);
}

enum mr_rc
mr_question(struct mr_room *room, const char *agent, const char *id, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc = mr_resolve_id(room, agent, id, 0, full, err);

	if (rc != MR_OK)
		return rc;
	rc = mr_fetch(room, agent, full, &msg, err);
	if (rc == MR_NOTFOUND && !(room->driver->abilities & ROOM_SENT))
		rc = lookup_anyones(room, full, &msg, err);
	if (rc == MR_OK)
		rc = not_for_agent_alone(&msg, agent, err);
	if (rc == MR_OK)
		rc = filter_can_tell_answers(room, &msg, err);
	if (rc == MR_OK)
		(void)snprintf(ret_id, MR_ID_LEN + 1, "%s", full);
	return rc;
}

enum mr_rc
mr_fetch_raw(struct mr_room *room, const char *agent, const char *id, char **ret, size_t *ret_len, struct mr_error *err)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	if (!ROOM_HAS(room, fetch_raw))
		return office_lacks(room, "raw messages", err);
	rc = mr_resolve_id(room, agent, id, 0, full, err);
	if (rc == MR_OK)
		rc = room->driver->fetch_raw(room, agent, full, &bytes, err);
	if (rc != MR_OK)
		return rc;
	size_t len = bytes.len;
	char *taken = buf_take(&bytes);

	if (!taken)
		return mr_nomem(err);
	*ret = taken;
	*ret_len = len;
	return MR_OK;
}

const char *
lookup_spoken_id(const struct mr_room *room, const struct mr_message *msg, struct arena **own)
{
	const char *given = mr_message_header(msg, "Message-ID");
	struct mr_str inner = given ? msgid_inner(str_of(given), room->name) : (struct mr_str){ 0 };

	return arena_dup(own, inner.len > 0 ? inner : str_of(msg->id));
}
