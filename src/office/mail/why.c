/* SPDX-License-Identifier: MIT */
/*
 * why.c - what happened to a message, with evidence, and no more than the evidence says (promise 5). The
 * copies that the room has, the tombstone of a purge, what became of dead letters, and the recipients in the
 * message itself for whom no copy is left.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "message/address.h"
#include "office/tell/inject.h"
#include "office/link/link.h"

struct trail {
	struct mr_room *room;
	const char *id;
	mr_trail_fn *fn;
	void *ctx;
	struct mr_names have;      /* agents with a copy, or with one on its way */
	struct mr_names readers;   /* agents in whose folders the message can be read */
	struct mr_names answerers; /* agents who may have answered: the message was marked so, or was their work */
	bool dead;                 /* a copy is among the dead letters, which do not say whose it was */
	bool kept;                 /* one is in a queue or a channel */
	size_t facts;
};

static void
tell(struct trail *t, const char *agent, const char *state, const char *evidence)
{
	struct mr_trail fact = { .agent = agent, .state = state, .evidence = evidence };

	t->facts++;
	t->fn(t->ctx, &fact);
}

/* ---- Who would read it ---- */

static void
add_presence(struct buf *out, struct mr_room *room, const char *name)
{
	static const char *const words[] = { [MR_GONE] = "gone", [MR_UNKNOWN] = "unknown", [MR_LIVE] = "live" };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };
	char ago[24];

	if (!ROOM_HAS(room, find_agent) || !office_has_lives(room))
		return;
	enum mr_rc rc = room->driver->find_agent(room, name, &agent, &ignored);

	if (rc == MR_NOTFOUND)
		buf_addf(out, "; nobody named '%s' is registered", name);
	if (rc != MR_OK)
		return;
	if (agent.life == 0) {
		if (strcmp(name, OPERATOR) != 0)
			buf_addf(out, "; '%s' has not lived here yet", name);
		return;
	}
	buf_addf(out, "; life %u of '%s' is %s", agent.life, name, words[mr_agent_presence(&agent)]);
	if (agent.seen_ms > 0) {
		int64_t ms = clock_now_ms() - agent.seen_ms;

		duration_text(ms > 0 ? ms : 0, ago);
		buf_addf(out, ", last seen %s ago", ago);
	}
}

/* ---- Announced, answered ---- */

/* The memory of a life keeps what was unread when it was told something last. */
static void
tell_announced(struct trail *t, const struct place_of *place, const char *id)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(announced_done) struct announced told = { 0 };
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct mr_self self = { 0 };
	char at[RFC3339_LEN + 1];

	if (!office_has_lives(t->room) || !ROOM_HAS(t->room, find_agent) ||
	    t->room->driver->find_agent(t->room, place->agent, &agent, &ignored) != MR_OK || agent.life == 0)
		return;
	(void)snprintf(self.agent, sizeof(self.agent), "%s", place->agent);
	(void)snprintf(self.session, sizeof(self.session), "%s", agent.session ? agent.session : "");
	self.life = agent.life;
	announced_load(t->room, &self, &told);
	const struct announced_id *found = announced_find(&told, id);
	if (!found)
		return;
	format_addf(&evidence, "%s to life %u of '%s'", found->counted ? "counted, not listed," : "listed", agent.life,
	    place->agent);
	if (found->at_s > 0) {
		time_rfc3339(found->at_s * 1000, at);
		buf_addf(&evidence, "%s at %s", found->again ? ", last" : "", at);
	} else {
		buf_adds(&evidence, "; when, nobody wrote down");
	}
	tell(t, place->agent, "announced", buf_z(&evidence));
}

static bool
tell_answer(void *ctx, const struct mr_message *msg)
{
	struct trail *t = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	char at[RFC3339_LEN + 1];

	if (strcmp(msg->type, BOUNCE_TYPE) == 0) /* the claim that failed tells of it */
		return true;
	time_rfc3339(msg->date_ms, at);
	format_addf(&evidence, "'%s' answered with %s at %s", msg->from, msg->id, at);
	tell(t, msg->from, "answered", buf_z(&evidence));
	return true;
}

/* What those who had it sent as an answer: a copy is in their sent mail, unless they removed it. */
static void
tell_answers(struct trail *t, const char *id)
{
	for (size_t i = 0; i < t->answerers.n; i++) {
		struct mr_scan answers = { .filter = { .folders = MR_SENT, .reply_to = id } };
		struct mr_error ignored = { 0 };

		(void)mr_scan(t->room, t->answerers.v[i], &answers, tell_answer, t, &ignored);
	}
}

static void
note_answerer(struct trail *t, const char *agent)
{
	if (*agent && !names_has(&t->answerers, agent))
		(void)names_add(&t->answerers, str_of(agent));
}

static void
tell_place(void *ctx, const struct place_of *place)
{
	struct trail *t = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	char limit[MR_WAKE_WHY_MAX];

	buf_adds(&evidence, place->evidence);
	if (*place->agent && place->folder != MR_SENT) {
		(void)names_add(&t->have, str_of(place->agent));
		if (!(place->flags & MR_SEEN))
			add_presence(&evidence, t->room, place->agent);
		if (place->folder == MR_INBOX && !(place->flags & MR_SEEN) &&
		    mr_wake_limited(t->room, place->agent, t->id, limit))
			buf_addf(&evidence, "; %s", limit);
	}
	if (place->folder == MR_DEAD)
		t->dead = true;
	else if (!*place->agent && strcmp(place->state, "pending") != 0)
		t->kept = true;
	else if (*place->agent && place->folder != 0)
		(void)names_add(&t->readers, str_of(place->agent));
	if (*place->agent && (place->folder & (MR_INBOX | MR_ARCHIVE)))
		tell_announced(t, place, t->id);
	if (place->folder != MR_SENT && (place->flags & (MR_REPLIED | MR_ACKED)))
		note_answerer(t, place->agent);
	tell(t, place->agent, place->state, buf_z(&evidence));
}

/* ---- The claims on it that are over ---- */

static void
tell_past(void *ctx, const struct past_claim *past)
{
	struct trail *t = ctx;
	const struct hold *hold = past->hold;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = "came back", *how = "lease ran out, or its holder is gone: came back at";
	char at[RFC3339_LEN + 1];

	if (past->how == SETTLE_LATER)
		state = "released", how = "released at";
	else if (past->how == SETTLE_DONE)
		state = "done", how = "done at";
	else if (past->how == SETTLE_DEAD)
		state = "failed", how = "failed at";
	if (*hold->queue)
		format_addf(&evidence, "claimed from queue '%s'", hold->queue);
	else
		buf_adds(&evidence, "claimed");
	if (hold->since_ms > 0) {
		time_rfc3339(hold->since_ms, at);
		buf_addf(&evidence, " at %s", at);
	}
	time_rfc3339(past->ended_ms, at);
	buf_addf(&evidence, " (attempt %u), %s %s", hold->attempt, how, at);
	if (hold->reason)
		format_addf(&evidence, ": '%s'", hold->reason);
	if (hold->only_for) {
		time_rfc3339(hold->only_until_ms, at);
		format_addf(&evidence, ", only for '%s' until %s", hold->only_for, at);
	}
	note_answerer(t, hold->agent);
	tell(t, hold->agent, state, buf_z(&evidence));
}

static void
tell_claims(struct trail *t, const char *id)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error ignored = { 0 };

	if (!ROOM_HAS(t->room, queue_past))
		return;
	(void)t->room->driver->queue_past(t->room, "", id, NULL, tell_past, t, &ignored);
	if (settings_names(t->room, "queue", &queues, &ignored) != MR_OK)
		return;
	for (size_t i = 0; i < queues.n; i++)
		(void)t->room->driver->queue_past(t->room, queues.v[i], id, NULL, tell_past, t, &ignored);
}

/* ---- The tombstone ---- */

static void
tell_tombstone(struct trail *t, const char *id)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	mr_auto(record_done) struct record own = { 0 };
	struct mr_error ignored = { 0 };
	struct tombstone stone;

	if (tombstone_get(t->room, id, &stone, &own, &ignored) != MR_OK)
		return;
	int64_t at_ms;

	format_addf(
	    &evidence, "purged by '%s' at %s", stone.by, time_parse_rfc3339(str_of(stone.at), &at_ms) ? stone.at : "?");
	if (*stone.reason)
		format_addf(&evidence, ": '%s'", stone.reason);
	if (stone.unfinished)
		buf_addf(&evidence, "; it was cut off, and mailroom purge %s completes it", id);
	tell(t, "", "purged", buf_z(&evidence));
}

/* ---- Dead letters that are gone ---- */

#define ENDS "dead-done"

/* "<new id, or -> <by whom> <when> <whose copies ...>": none of these has a space in it. */
static bool
parse_end(char *line, struct letter_end *ret, struct mr_error *err)
{
	char *rest = NULL;
	const char *again = strtok_r(line, " ", &rest), *by = strtok_r(NULL, " ", &rest),
		   *at = strtok_r(NULL, " ", &rest);

	if (!at)
		return true; /* another program wrote it */
	ret->again = strcmp(again, "-") == 0 ? "" : again;
	ret->by = by;
	ret->at = at;
	for (const char *of; (of = strtok_r(NULL, " ", &rest));)
		if (!names_add(&ret->of, str_of(of))) {
			(void)mr_nomem(err);
			return false;
		}
	return true;
}

enum mr_rc
letter_ends(struct mr_room *room, const char *id, letter_end_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record record = { 0 };
	struct arena *own = NULL;
	enum mr_rc rc = MR_NOTFOUND;

	if (ROOM_HAS(room, record_get))
		rc = room->driver->record_get(room, ENDS, "", id, &text, err);
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), &record, err);
	for (size_t i = 0; i < record.n && rc == MR_OK; i++) {
		struct letter_end end = { 0 };
		char *line = arena_dup(&own, str_of(record.lines[i].value));

		if (!line)
			rc = mr_nomem(err);
		else if (!parse_end(line, &end, err))
			rc = err->code;
		else if (end.at)
			fn(ctx, &end);
		mr_names_done(&end.of);
	}
	arena_free(own);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static enum mr_rc
add_end(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct letter_end *end = ctx;
	mr_auto(buf_done) struct buf line = BUF_INIT;

	(void)exists;
	/* A retry that is repeated ends the same way. */
	if (*end->again && text->len > 0 && strstr(buf_z(text), end->again))
		return MR_OK;
	buf_addf(&line, "%s %s %s", *end->again ? end->again : "-", end->by, end->at);
	for (size_t i = 0; i < end->of.n; i++)
		buf_addf(&line, " %s", end->of.v[i]);
	if (!buf_ok(&line))
		return mr_nomem(err);
	enum mr_rc rc = header_add(text, *end->again ? "Retried" : "Dropped", buf_str(&line), err);

	return rc == MR_OK && !buf_ok(text) ? mr_nomem(err) : rc;
}

enum mr_rc
letter_note_end(struct mr_room *room, const char *id, const struct letter_end *end, struct mr_error *err)
{
	struct letter_end now = *end;
	char at[RFC3339_LEN + 1];

	if (!ROOM_HAS(room, record_change))
		return MR_OK;
	time_rfc3339(clock_now_ms(), at);
	now.at = at;
	return room->driver->record_change(room, ENDS, "", id, add_end, &now, err);
}

static void
tell_end(void *ctx, const struct letter_end *end)
{
	struct trail *t = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = *end->again ? "retried" : "dropped";

	if (*end->again)
		format_addf(
		    &evidence, "was a dead letter: delivered again as %s by '%s' at %s", end->again, end->by, end->at);
	else
		format_addf(&evidence, "was a dead letter: dropped by '%s' at %s", end->by, end->at);
	for (size_t i = 0; i < end->of.n; i++) {
		(void)names_add(&t->have, str_of(end->of.v[i]));
		tell(t, end->of.v[i], state, buf_z(&evidence));
	}
	if (end->of.n == 0)
		tell(t, "", state, buf_z(&evidence));
}

/* ---- Those who should have it ---- */

/* Somebody in a linked room: what the carriers have written down. */
static bool
tell_carried(struct trail *t, const struct mr_message *msg, const char *address)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = correspondence_evidence(t->room, msg->from, address, msg->id, &evidence);

	if (!state)
		return false;
	tell(t, address, state, buf_z(&evidence));
	return true;
}

static void
tell_missing(struct trail *t, const struct mr_message *msg, const struct mr_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		mr_auto(buf_done) struct buf evidence = BUF_INIT;
		struct mr_error ignored = { 0 };

		bool shared = str_starts(str_of(names->v[i]), "queue:") || str_starts(str_of(names->v[i]), "channel:");

		if (names_has(&t->have, names->v[i]) || (shared && t->kept) || tell_carried(t, msg, names->v[i]))
			continue;
		if (shared) {
			format_addf(&evidence, "'%s' has it no longer, or never got it", names->v[i]);
		} else if (address_check(str_of(names->v[i]), &ignored) != MR_OK) {
			format_addf(&evidence, "'%s' is not an address of this room", names->v[i]);
		} else {
			format_addf(&evidence, "no copy is in the mailbox of '%s': %s", names->v[i],
			    t->dead ? "it may be the one among the dead letters"
				    : "removed by another program, or never delivered");
			add_presence(&evidence, t->room, names->v[i]);
		}
		tell(t, names->v[i], "nowhere", buf_z(&evidence));
	}
}

static void
tell_recipients(struct trail *t, const char *id)
{
	for (size_t i = 0; i < t->readers.n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };

		if (t->room->driver->fetch(t->room, t->readers.v[i], id, ALL_FOLDERS, SCAN_HEADERS, &msg, &ignored) !=
		    MR_OK)
			continue;
		tell_missing(t, &msg, &msg.to);
		tell_missing(t, &msg, &msg.cc);
		return;
	}
}

enum mr_rc
mr_why(
    struct mr_room *room, const struct mr_self *self, const char *id, mr_trail_fn *fn, void *ctx, struct mr_error *err)
{
	struct trail t = { .room = room, .fn = fn, .ctx = ctx };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	if (!ROOM_HAS(room, each_place))
		return office_lacks(room, "trail of its mail", err);
	t.id = full;
	rc = lookup_anywhere(room, self->agent, id, full, err);
	if (rc == MR_OK) {
		tell_claims(&t, full);
		rc = room->driver->each_place(room, full, tell_place, &t, err);
	}
	if (rc == MR_OK)
		rc = letter_ends(room, full, tell_end, &t, err);
	if (rc == MR_OK) {
		tell_answers(&t, full);
		tell_recipients(&t, full);
		tell_tombstone(&t, full);
	}
	mr_names_done(&t.have);
	mr_names_done(&t.answerers);
	mr_names_done(&t.readers);
	if (rc == MR_OK && t.facts == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "nothing is known of '%s' in room '%s'\nit was never sent here, or removed by another program",
		    full, room->name);
	return rc;
}
