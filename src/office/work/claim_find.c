/* SPDX-License-Identifier: MIT */
/* claim_find.c - which claim is meant: a token, or the end of an id on which this life holds exactly one
 * claim; on its own mail, or on work of a queue. And what of queues is in an agent's hands. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/mail/mail.h"
#include "office/office.h"

struct claim_search {
	const char *what; /* in lower case */
	const struct mr_self *self;
	struct hold by_token, by_id;
	bool token_found;
	size_t ids_found;   /* claims of this life whose id ends in `what` */
	struct buf tokens;  /* theirs */
	bool older;         /* an earlier life's id ends so */
	struct hold others; /* a claim of somebody else whose id ends so */
	bool others_found;
};

static bool
note_claim(void *ctx, const struct hold *hold)
{
	struct claim_search *s = ctx;

	if (hold->kind != HOLD_LEASE)
		return true;
	if (strcmp(hold->token, s->what) == 0) {
		s->by_token = *hold;
		s->token_found = true;
		return false;
	}
	if (!str_ends(str_of(hold->id), s->what))
		return true;
	if (hold->life != s->self->life) {
		s->older = true;
		return true;
	}
	s->by_id = *hold;
	buf_addf(&s->tokens, "%s%s", s->ids_found++ > 0 ? ", " : "", hold->token);
	return true;
}

static bool
note_queue_claim(void *ctx, const struct queue_item *item)
{
	struct claim_search *s = ctx;

	if (!item->hold)
		return true;
	if (strcmp(item->hold->agent, s->self->agent) == 0)
		return note_claim(s, item->hold);
	if (item->hold->kind == HOLD_LEASE && !item->hold->over && str_ends(str_of(item->id), s->what)) {
		s->others = *item->hold;
		s->others_found = true;
	}
	return true;
}

/* What is no hold on the agent's own mail may be one on work from a queue: a token says which, for an id all
 * queues are asked. */
static enum mr_rc
search_queues(struct mr_room *room, struct claim_search *s, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (office_queue_able(room, &ignored) != MR_OK)
		return MR_OK;
	if (token_valid(str_of(s->what))) {
		rc = room->driver->queue_find_claim(room, s->what, &s->by_token, err);
		s->token_found = rc == MR_OK;
		if (rc != MR_NOTFOUND)
			return rc;
	}
	rc = settings_names(room, "queue", &queues, err);
	for (size_t i = 0; i < queues.n && rc == MR_OK; i++) {
		rc = room->driver->queue_each(room, queues.v[i], QUEUE_CLAIMED, note_queue_claim, s, err);
		if (rc == MR_NOTFOUND) /* deleted this very moment */
			rc = MR_OK;
	}
	return rc;
}

static enum mr_rc
refuse_older_life(const struct mr_self *self, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "that claim belongs to an older life of '%s'\nits mail comes back by itself; `mailroom recv` gives the next",
	    self->agent);
}

static enum mr_rc
refuse_others(const struct hold *hold, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "that claim belongs to '%s'\nonly its holder can settle it; `mailroom recv` gives you work of your own",
	    hold->agent);
}

static enum mr_rc
choose_claim(const struct claim_search *s, const struct mr_self *self, struct hold *ret, struct mr_error *err)
{
	if (s->token_found && strcmp(s->by_token.agent, self->agent) != 0)
		return refuse_others(&s->by_token, err);
	if (s->token_found && s->by_token.life != self->life)
		return refuse_older_life(self, err);
	if (s->token_found || s->ids_found == 1) {
		*ret = s->token_found ? s->by_token : s->by_id;
		return MR_OK;
	}
	if (s->ids_found > 1)
		return mr_fail(err, MR_REFUSED, "several claims match '%s'\ngive one of the tokens: %s", s->what,
		    buf_z(&s->tokens));
	if (s->older)
		return refuse_older_life(self, err);
	if (s->others_found)
		return refuse_others(&s->others, err);
	return mr_fail(err, MR_NOTFOUND,
	    "no claim '%s': that claim is over (lease ran out, released or done)\n"
	    "`mailroom recv` gives the next message; `mailroom inbox` lists what waits",
	    s->what);
}

/* ---- A claim that is over: how it ended ---- */

struct ending {
	const char *agent; /* whose claims; NULL: anybody's */
	struct hold hold;  /* the last one */
	enum settle how;
	int64_t ended_ms;
	bool found;
};

static void
note_ending(void *ctx, const struct past_claim *past)
{
	struct ending *e = ctx;

	if (e->agent && strcmp(past->hold->agent, e->agent) != 0)
		return;
	e->hold = *past->hold;
	e->hold.reason = e->hold.only_for = NULL; /* they do not outlive this call */
	e->how = past->how;
	e->ended_ms = past->ended_ms;
	e->found = true;
}

/* `what` is a token, or an id, which may be short: then the agent's own mail says which is meant. */
static bool
find_ending(struct mr_room *room, const struct mr_self *self, const char *what, bool full, struct ending *ret)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error ignored = { 0 };
	char id[MR_ID_LEN + 1];

	*ret = (struct ending){ 0 };
	if (!ROOM_HAS(room, queue_past))
		return false;
	if (token_valid(str_of(what)))
		(void)room->driver->queue_past(room, NULL, NULL, what, note_ending, ret, &ignored);
	(void)snprintf(id, sizeof(id), "%s", what);
	if (ret->found || (!full && mr_resolve_id(room, self->agent, what, 0, id, &ignored) != MR_OK))
		return ret->found;
	ret->agent = self->agent;
	(void)room->driver->queue_past(room, "", id, NULL, note_ending, ret, &ignored);
	if (!ret->found && office_queue_able(room, &ignored) == MR_OK &&
	    settings_names(room, "queue", &queues, &ignored) == MR_OK)
		for (size_t i = 0; i < queues.n; i++)
			(void)room->driver->queue_past(room, queues.v[i], id, NULL, note_ending, ret, &ignored);
	return ret->found;
}

/* "done", "released", "failed" */
static void
say_settled(const struct ending *e, bool ours, const char *how, const char *at, struct mr_error *err)
{
	if (ours)
		(void)mr_fail(err, MR_NOTFOUND, "'%s' was %s by you at %s", e->hold.id, how, at);
	else
		(void)mr_fail(err, MR_NOTFOUND, "'%s' was %s by '%s' at %s", e->hold.id, how, e->hold.agent, at);
}

/* It came back: the time was up, or a newer life took over. */
static enum mr_rc
say_came_back(const struct ending *e, bool ours, unsigned life, const char *at, struct mr_error *err)
{
	const char *why = ours && e->hold.life < life ? "a newer life took over" : "its lease ran out";

	if (ours)
		(void)mr_fail(
		    err, MR_NOTFOUND, "your claim on '%s' is over: %s, and it went back at %s", e->hold.id, why, at);
	else
		(void)mr_fail(err, MR_NOTFOUND, "the claim of '%s' on '%s' is over: %s, and it went back at %s",
		    e->hold.agent, e->hold.id, why, at);
	if (!*e->hold.queue)
		return mr_hint(err, "it is in the inbox again: `mailroom recv` gives it anew");
	return mr_hint(
	    err, "another may be at work on it: stop, and change nothing more; `mailroom why %s` tells", e->hold.id);
}

static enum mr_rc
say_ending(const struct ending *e, const struct mr_self *self, struct mr_error *err)
{
	bool ours = strcmp(e->hold.agent, self->agent) == 0;
	char at[RFC3339_LEN + 1];

	time_rfc3339(e->ended_ms, at);
	switch (e->how) {
	case SETTLE_DONE:
		say_settled(e, ours, "done", at, err);
		return mr_hint(err, "nothing is left to do; `mailroom why %s` tells the rest", e->hold.id);
	case SETTLE_LATER:
		say_settled(e, ours, "released", at, err);
		return *e->hold.queue ? mr_hint(err, "`mailroom recv queue:%s` gives the next", e->hold.queue)
				      : mr_hint(err, "`mailroom recv` gives the next message");
	case SETTLE_DEAD:
		say_settled(e, ours, "failed", at, err);
		return mr_hint(err, "it is kept: `mailroom dead list`");
	case SETTLE_BACK:
	case SETTLE_SEEN:
	case SETTLE_ARCHIVE:
		break;
	}
	return say_came_back(e, ours, self->life, at, err);
}

enum mr_rc
claim_find(struct mr_room *room, const struct mr_self *self, const char *what, struct hold *ret, struct mr_error *err)
{
	struct claim_search s = { .self = self };
	struct ending ending;
	char spelled[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc = claim_able(room, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = lookup_spelling(room, what, spelled, &full, err); /* tokens have the alphabet of ids */
	if (rc != MR_OK)
		return rc;
	s.what = spelled;
	rc = room->driver->each_hold(room, self->agent, note_claim, &s, err);
	if (rc == MR_OK && !s.token_found)
		rc = search_queues(room, &s, err);
	if (rc == MR_OK)
		rc = choose_claim(&s, self, ret, err);
	if (rc == MR_NOTFOUND && find_ending(room, self, spelled, full, &ending))
		rc = say_ending(&ending, self, err);
	buf_done(&s.tokens);
	return rc;
}

/* ---- Work of queues in an agent's hands ---- */

struct holding {
	const char *agent, *suffix;
	struct claims *claims;
};

static bool
note_held(void *ctx, const struct queue_item *item)
{
	const struct holding *h = ctx;

	if (!item->hold || strcmp(item->hold->agent, h->agent) != 0 ||
	    (h->suffix && !str_ends(str_of(item->id), h->suffix)))
		return true;
	return claims_add(h->claims, item->hold);
}

enum mr_rc
claim_held_work(struct mr_room *room, const char *agent, const char *suffix, struct claims *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	mr_auto(claims_done) struct claims found = { 0 };
	struct holding h = { agent, suffix, &found };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (office_queue_able(room, &ignored) != MR_OK)
		return MR_OK;
	rc = settings_names(room, "queue", &queues, err);
	for (size_t i = 0; i < queues.n && rc == MR_OK; i++) {
		rc = room->driver->queue_each(room, queues.v[i], QUEUE_CLAIMED, note_held, &h, err);
		if (rc == MR_NOTFOUND) /* deleted this very moment */
			rc = MR_OK;
	}
	for (size_t i = 0; i < found.n && rc == MR_OK; i++)
		if (!office_claim_over(room, &found.v[i]) && !claims_add(ret, &found.v[i]))
			rc = mr_nomem(err);
	return rc == MR_OK && found.failed ? mr_nomem(err) : rc;
}

enum mr_rc
mr_queue_held(struct mr_room *room, const char *agent, const struct mr_filter *filter, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(matcher_done) struct matcher matcher = { 0 };
	mr_auto(claims_done) struct claims claims = { 0 };
	enum mr_rc rc = matcher_init(&matcher, room, agent, filter, err);

	if (rc == MR_OK)
		rc = claim_held_work(room, agent, NULL, &claims, err);
	for (size_t i = 0; i < claims.n && rc == MR_OK; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };

		/* Settled this very moment, or not readable: recv says so. */
		if (room->driver->queue_fetch(room, claims.v[i].queue, claims.v[i].id, &msg, &ignored) != MR_OK)
			continue;
		msg.folder = MR_HELD;
		msg.attempt = claims.v[i].attempt;
		(void)snprintf(msg.token, sizeof(msg.token), "%s", claims.v[i].token);
		if (matcher_fits(&matcher, &msg) && !fn(ctx, &msg))
			break;
	}
	return rc;
}
