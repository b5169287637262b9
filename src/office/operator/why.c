/* SPDX-License-Identifier: MIT */
/*
 * why.c - what happened to a message, with evidence, and no more than the evidence shows (promise 5): the copies in the
 * room, the tombstone of a purge, what retention removed, the fate of dead letters, and recipients named in the message
 * without a copy.
 */
#include "base/clock.h"
#include "base/format.h"
#include "base/id.h"
#include "message/address.h"
#include "office/operator/operator.h"
#include "office/address/address.h"
#include "office/link/link.h"
#include "office/mail/mail.h"
#include "office/nudge/nudge.h"
#include "office/tell/tell.h"
#include "office/who/who.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)

struct trail { /* finish with trail_done */
	struct mr_room *room;
	char id[MR_ID_LEN + 1];
	struct roll facts;         /* struct mr_trail */
	struct mr_names have;      /* agents with a copy, also an unfinished one */
	struct mr_names readers;   /* agents in whose folders the message can be read */
	struct mr_names answerers; /* agents who may have answered: the message is marked answered, or was their work */
	bool dead;                 /* a copy is among the dead letters, which do not say whose it was */
	bool kept;                 /* one is in a queue or a channel */
};

static void
trail_done(struct trail *t)
{
	roll_done(&t->facts);
	mr_names_done(&t->have);
	mr_names_done(&t->answerers);
	mr_names_done(&t->readers);
}

static void
tell(struct trail *t, const char *agent, const char *state, const struct buf *evidence, int64_t at_ms)
{
	struct mr_trail *fact = roll_add(&t->facts, sizeof(*fact));

	if (fact)
		*fact = (struct mr_trail){ roll_str(&t->facts, agent), roll_str(&t->facts, state),
			roll_str(&t->facts, buf_z(evidence)), at_ms };
}

/* "<before><time>" */
static void
add_time(struct buf *out, const char *before, int64_t ms)
{
	buf_addf(out, "%s%s", before, time_text(ms).z);
}

/* ---- Copies ---- */

void
why_presence(struct buf *out, struct mr_room *room, const char *name)
{
	static const char *const words[] = { [MR_GONE] = "gone", [MR_UNKNOWN] = "unknown", [MR_LIVE] = "live" };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (!office_has_lives(room))
		return;
	enum mr_rc rc = room->driver->find_agent(room, name, &agent, IGNORED);

	if (rc == MR_NOTFOUND)
		buf_addf(out, "; no agent named '%s' is registered", name);
	if (rc != MR_OK)
		return;
	if (agent.life == 0) {
		if (strcmp(name, OPERATOR) != 0)
			buf_addf(out, "; '%s' has not lived here yet", name);
		return;
	}
	buf_addf(out, "; life %u of '%s' is %s", agent.life, name, words[mr_agent_presence(&agent)]);
	if (agent.seen_ms > 0)
		buf_addf(out, ", last seen %s ago", span_text(clock_now_ms() - agent.seen_ms).z);
	if (agent.session && agent.session[0] && mr_agent_presence(&agent) == MR_LIVE &&
	    !nudge_somebody_waits(room, name))
		buf_adds(out, "; nothing wakes its session");
}

/* The record of a told message is kept as long as it is unread. */
bool
why_announced(struct buf *out, struct mr_room *room, const char *name, const char *id, int64_t *ret_at_ms)
{
	mr_auto(announced_done) struct announced told = { 0 };
	struct mr_self self;

	if (!agent_life_of(room, name, &self))
		return false;
	announced_load(room, &self, &told);
	const struct announced_id *found = announced_find(&told, id);

	if (!found)
		return false;
	format_addf(out, "%s to life %u of '%s'",
	    found->kind == ANNOUNCED_LOGGED    ? "listed or only counted,"
	    : found->kind == ANNOUNCED_COUNTED ? "counted, not listed,"
					       : "listed",
	    self.life, name);
	*ret_at_ms = found->at_s * 1000;
	if (found->door[0])
		buf_addf(out, " by %s", found->door);
	if (found->at_s > 0)
		add_time(out, found->kind == ANNOUNCED_AGAIN ? ", last at " : " at ", found->at_s * 1000);
	else
		buf_adds(out, "; the time was not recorded");
	return true;
}

static void
tell_place(struct trail *t, const struct place_of *place)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT, told = BUF_INIT, rung = BUF_INIT;
	bool unread = !(place->flags & MR_SEEN);
	char limit[MR_WAKE_WHY_MAX];
	struct mr_self life;
	int64_t told_ms;

	buf_adds(&evidence, place->evidence);
	if (*place->agent && place->folder != MR_SENT) {
		(void)names_add(&t->have, str_of(place->agent));
		if (unread)
			why_presence(&evidence, t->room, place->agent);
		if (place->folder == MR_INBOX && unread && mr_wake_limited(t->room, place->agent, t->id, limit))
			buf_addf(&evidence, "; %s", limit);
	}
	if (place->folder == MR_DEAD)
		t->dead = true;
	else if (!*place->agent && strcmp(place->state, "pending") != 0)
		t->kept = true;
	else if (*place->agent && place->folder != 0)
		(void)names_add(&t->readers, str_of(place->agent));
	bool delivered = *place->agent && (place->folder & (MR_INBOX | MR_ARCHIVE));

	if (delivered && why_announced(&told, t->room, place->agent, t->id, &told_ms))
		tell(t, place->agent, "announced", &told, told_ms);
	if (delivered && agent_life_of(t->room, place->agent, &life) && bell_of(t->room, &life, t->id, &rung, &told_ms))
		tell(t, place->agent, "rung", &rung, told_ms);
	if (*place->agent && place->folder != MR_SENT && (place->flags & (MR_REPLIED | MR_ACKED)))
		(void)names_add_once(&t->answerers, place->agent);
	tell(t, place->agent, place->state, &evidence, 0);
}

/* ---- Ended claims, answers ---- */

const char *
why_past_claim(struct buf *out, const struct past_claim *past)
{
	static const struct {
		const char *state, *how;
	} ends[] = {
		[SETTLE_BACK] = { "came back", "the lease ran out, or its holder is gone: came back at " },
		[SETTLE_LATER] = { "released", "released at " },
		[SETTLE_DONE] = { "done", "done at " },
		[SETTLE_DEAD] = { "failed", "failed at " },
	};
	const struct claim *hold = past->claim;
	enum settle how = ends[past->how].state ? past->how : SETTLE_BACK;

	buf_adds(out, "claimed");
	if (box_queue(hold->box))
		format_addf(out, " from queue '%s'", box_queue(hold->box));
	if (hold->since_ms > 0)
		add_time(out, " at ", hold->since_ms);
	buf_addf(out, " (attempt %u), ", hold->attempt);
	add_time(out, ends[how].how, past->ended_ms);
	if (hold->reason)
		format_addf(out, ": '%s'", hold->reason);
	if (hold->only_for) {
		format_addf(out, ", only for '%s'", hold->only_for);
		add_time(out, " until ", hold->only_until_ms);
	}
	return ends[how].state;
}

static void
tell_past(void *ctx, const struct past_claim *past)
{
	struct trail *t = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = why_past_claim(&evidence, past);

	if (*past->claim->agent)
		(void)names_add_once(&t->answerers, past->claim->agent);
	tell(t, past->claim->agent, state, &evidence, past->ended_ms);
}

static void
tell_claims(struct trail *t)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	const struct room_driver *driver = t->room->driver;

	if (driver->each_past(t->room, "", t->id, NULL, 0, tell_past, t, IGNORED) == MR_UNSUPPORTED)
		return;
	(void)settings_names(t->room, "queue", &queues, IGNORED);
	for (size_t i = 0; i < queues.n; i++)
		(void)driver->each_past(
		    t->room, room_box("queue", queues.v[i]).z, t->id, NULL, 0, tell_past, t, IGNORED);
}

static bool
tell_answer(void *ctx, const struct mr_message *msg)
{
	struct trail *t = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;

	if (strcmp(msg->type, BOUNCE_TYPE) == 0) /* the failed claim is reported instead */
		return true;
	format_addf(&evidence, "'%s' answered with %s", msg->from, msg->id);
	add_time(&evidence, " at ", msg->date_ms);
	tell(t, msg->from, "answered", &evidence, msg->date_ms);
	return true;
}

/* Answers by agents that had it: a copy is in their sent mail, unless they removed it. Clocks may differ by a day at
 * most. */
static void
tell_answers(struct trail *t, const char *agent)
{
	struct mr_scan answers = { .filter = { .folders = MR_SENT, .reply_to = t->id } };
	int64_t since_ms = id_time_ms(t->id) - DAY_MS;

	answers.filter.since_ms = since_ms > 0 ? since_ms : 0;
	(void)mr_scan(t->room, agent, &answers, tell_answer, t, IGNORED);
}

/* ---- Copies that are gone ---- */

static void
tell_tombstone(struct trail *t)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	mr_auto(record_done) struct record own = { 0 };
	struct tombstone stone;
	int64_t at_ms = 0;

	if (!tombstone_get(t->room, t->id, &stone, &own))
		return;
	format_addf(
	    &evidence, "purged by '%s' at %s", stone.by, time_parse_rfc3339(str_of(stone.at), &at_ms) ? stone.at : "?");
	if (*stone.reason)
		format_addf(&evidence, ": '%s'", stone.reason);
	if (stone.unfinished)
		buf_addf(&evidence, "; it was cut off, and mailroom purge %s completes it", t->id);
	tell(t, "", "purged", &evidence, at_ms);
}

/* Adds the setting that removed mail of that age there: "Keep-Archive: 90d, last on 2026-11-16". False: none did. */
static bool
add_remover(struct trail *t, enum room_shelf shelf, struct buf *out)
{
	const struct room_shelf_name *name = &room_shelves[shelf];
	mr_auto(record_done) struct record lines = { 0 };
	struct time_text sent = time_text(id_time_ms(t->id));

	if (!ROOM_HAS(t->room, record_get) ||
	    office_record(t->room, ROOM_KEPT, "", name->record, &lines, IGNORED) != MR_OK)
		return false;
	for (size_t i = 0; i < lines.n; i++) {
		struct mr_str rest = str_of(lines.lines[i].value), month, when, before;

		if (!str_cut(&rest, ' ', &month) || !str_cut(&rest, ' ', &when) || !str_cut(&rest, ' ', &before) ||
		    month.len != 7 || strncmp(month.ptr, sent.z, 7) != 0 || when.len < 10 ||
		    before.len != RFC3339_LEN || strncmp(sent.z, before.ptr, RFC3339_LEN) >= 0)
			continue;
		format_addf(out, "%s: %.*s, last on %.10s", name->setting, (int)rest.len, rest.ptr, when.ptr);
		return true;
	}
	return false;
}

static void
tell_end(struct trail *t, const struct letter_end *end)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = *end->again ? "retried" : "dropped";
	int64_t at_ms = 0;

	(void)time_parse_rfc3339(str_of(end->at), &at_ms);

	if (*end->again)
		format_addf(
		    &evidence, "was a dead letter: delivered again as %s by '%s' at %s", end->again, end->by, end->at);
	else
		format_addf(&evidence, "was a dead letter: dropped by '%s' at %s", end->by, end->at);
	for (size_t i = 0; i < end->of.n; i++) {
		(void)names_add(&t->have, str_of(end->of.v[i]));
		tell(t, end->of.v[i], state, &evidence, at_ms);
	}
	if (end->of.n == 0)
		tell(t, "", state, &evidence, at_ms);
}

/* A recipient that the message names. */
static void
tell_recipient(struct trail *t, const struct mr_message *msg, const char *name)
{
	mr_auto(buf_done) struct buf evidence = BUF_INIT, by = BUF_INIT;
	bool shared = str_starts(str_of(name), "queue:") || str_starts(str_of(name), "channel:");

	if (names_has(&t->have, name) || (shared && t->kept))
		return;
	/* An agent in a linked room: what the carriers recorded. */
	const char *carried = correspondence_evidence(t->room, msg->from, name, msg->id, &evidence);

	if (carried) {
		tell(t, name, carried, &evidence, 0);
		return;
	}
	buf_clear(&evidence);
	if (shared) {
		format_addf(&evidence, "'%s' no longer has it, or never got it", name);
		if (add_remover(t, SHELF_DONE, &by))
			buf_addf(&evidence, "; work of that age was removed by %s", buf_z(&by));
	} else if (address_check(str_of(name), IGNORED) != MR_OK) {
		format_addf(&evidence, "'%s' is not an address of this room", name);
	} else {
		format_addf(&evidence, "no copy is in the mailbox of '%s': ", name);
		buf_adds(&evidence, t->dead ? "it may be the one among the dead letters" : "removed by ");
		if (!t->dead && !add_remover(t, SHELF_ARCHIVE, &evidence))
			buf_adds(&evidence, "another program, or never delivered");
		why_presence(&evidence, t->room, name);
	}
	tell(t, name, "nowhere", &evidence, 0);
}

enum mr_rc
mr_why(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_trails *ret, struct mr_error *err)
{
	mr_auto(trail_done) struct trail t = { .room = room };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(mr_list_done) struct places places = { 0 };
	mr_auto(mr_list_done) struct letter_ends ends = { 0 };
	bool found = false;

	if (!ROOM_HAS(room, each_place))
		return room_lacks(room, "trail of its mail", err);
	TRY(lookup_anywhere(room, self->agent, id, t.id, err));
	tell_claims(&t);
	TRY(office_places(room, t.id, &places, err));
	for (size_t i = 0; i < places.n; i++)
		tell_place(&t, &places.v[i]);
	TRY(letter_ends(room, t.id, &ends, err));
	for (size_t i = 0; i < ends.n; i++)
		tell_end(&t, &ends.v[i]);
	for (size_t i = 0; i < t.answerers.n; i++)
		tell_answers(&t, t.answerers.v[i]);
	for (size_t i = 0; i < t.readers.n && !found; i++)
		found = lookup_own(room, t.readers.v[i], t.id, SCAN_HEADERS, &msg, IGNORED) == MR_OK;
	for (size_t i = 0; i < msg.to.n; i++)
		tell_recipient(&t, &msg, msg.to.v[i]);
	for (size_t i = 0; i < msg.cc.n; i++)
		tell_recipient(&t, &msg, msg.cc.v[i]);
	tell_tombstone(&t);
	/* The room's own settings that removed mail of that age. Single messages are not recorded. */
	for (unsigned i = 0, known = t.facts.n > 0; !known && i < ROOM_SHELVES; i++) {
		mr_auto(buf_done) struct buf evidence = BUF_INIT;

		buf_addf(&evidence, "mail of that age was removed from %s by ", room_shelves[i].what);
		if (add_remover(&t, (enum room_shelf)i, &evidence))
			tell(&t, "", "removed", &evidence, 0);
	}
	TRY(mr_got(!t.facts.failed, err));
	*ret = (struct mr_trails){ .v = t.facts.v, .n = t.facts.n, .own = roll_take(&t.facts) };
	if (ret->n > 0)
		return MR_OK;
	return mr_fail(err, MR_NOTFOUND,
	    "nothing is known of '%s' in room '%s'\nit was never sent here, or another program removed it", t.id,
	    room->name);
}

/* Names tell the state of a copy. False: there is none, or its name does not tell. */
static bool
tell_copy(struct trail *t, const char *agent)
{
	mr_auto(mr_message_done) struct mr_message copy = { 0 };
	const unsigned folders = MR_INBOX | MR_HELD | MR_ARCHIVE;

	if (!(t->room->driver->abilities & ROOM_FETCH) || strchr(agent, ':') ||
	    t->room->driver->fetch(t->room, agent, t->id, folders, SCAN_NAMES, &copy, IGNORED) != MR_OK)
		return false;
	tell(t, agent,
	    copy.folder == MR_HELD      ? "held"
	    : copy.folder == MR_ARCHIVE ? "archived"
	    : copy.flags & MR_SEEN      ? "read"
					: "unread",
	    &BUF_INIT, 0);
	if (copy.flags & (MR_REPLIED | MR_ACKED))
		tell_answers(t, agent);
	return true;
}

enum mr_rc
mr_became(struct mr_room *room, const struct mr_self *self, const struct mr_message *sent, struct mr_trails *ret,
    struct mr_error *err)
{
	mr_auto(trail_done) struct trail t = { .room = room };
	bool all = sent->to.n + sent->cc.n > 0;

	text_join(t.id, sizeof t.id, sent->id, NULL);
	for (size_t i = 0; i < sent->to.n && all; i++)
		all = tell_copy(&t, sent->to.v[i]);
	for (size_t i = 0; i < sent->cc.n && all; i++)
		all = tell_copy(&t, sent->cc.v[i]);
	if (!all)
		return mr_why(room, self, sent->id, ret, err);
	TRY(mr_got(!t.facts.failed, err));
	*ret = (struct mr_trails){ .v = t.facts.v, .n = t.facts.n, .own = roll_take(&t.facts) };
	return MR_OK;
}
