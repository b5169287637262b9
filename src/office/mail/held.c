/* SPDX-License-Identifier: MIT */
/* held.c - claims of agents, on their own mail and on work of queues. */
#include "office/address/address.h"
#include "office/mail/mail.h"

/* A power cut may have lost the holder's record: then only the time counts. */
bool
office_claim_over(struct mr_room *room, const struct claim *claim)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (claim->over || claim->agent[0] == '\0')
		return claim->over;
	enum mr_rc rc = room->driver->find_agent(room, claim->agent, &agent, IGNORED);
	return rc == MR_NOTFOUND || (rc == MR_OK && claim->life > 0 && claim->life < agent.life);
}

enum mr_rc
claim_message(struct mr_room *room, const struct claim *claim, struct mr_message *ret, struct mr_error *err)
{
	bool work = box_queue(claim->box);

	TRY(room->driver->fetch(
	    room, claim->box, claim->id, work ? 0 : MR_HELD, work ? SCAN_BODIES : SCAN_HEADERS, ret, err));
	ret->folder = MR_HELD;
	ret->attempt = claim->attempt;
	(void)snprintf(ret->token, sizeof(ret->token), "%s", claim->token);
	return MR_OK;
}

/* ---- Lists of claims ---- */

void
claims_done(struct claims *c)
{
	free(c->v);
	*c = (struct claims){ 0 };
}

bool
claims_add(struct claims *c, const struct claim *claim)
{
	bool ok = array_grow(&c->v, c->n, &c->cap, sizeof(*c->v));

	c->failed |= !ok;
	if (ok)
		c->v[c->n++] = *claim;
	return ok;
}

static bool
note_item(void *ctx, const struct queue_item *item)
{
	return claims_add(ctx, item->claim);
}

enum mr_rc
claims_in(struct mr_room *room, const char *box, struct claims *ret, struct mr_error *err)
{
	TRY(room->driver->each_claim(room, box, QUEUE_CLAIMED, note_item, ret, err));
	return ret->failed ? mr_nomem(err) : MR_OK;
}

enum mr_rc
claims_on_work(struct mr_room *room, struct claims *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };

	if (!(room->driver->abilities & ROOM_QUEUES))
		return MR_OK;
	TRY(settings_names(room, "queue", &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		/* not found: deleted this very moment */
		TRY(mr_unless(claims_in(room, room_box("queue", queues.v[i]).z, ret, err), MR_NOTFOUND, err));
	}
	return MR_OK;
}

enum mr_rc
claim_held_work(struct mr_room *room, const char *agent, const char *suffix, struct claims *ret, struct mr_error *err)
{
	mr_auto(claims_done) struct claims all = { 0 };

	TRY(claims_on_work(room, &all, err));
	for (size_t i = 0; i < all.n; i++)
		if (strcmp(all.v[i].agent, agent) == 0 && (!suffix || str_ends(str_of(all.v[i].id), suffix)) &&
		    !office_claim_over(room, &all.v[i]) && !claims_add(ret, &all.v[i]))
			return mr_nomem(err);
	return MR_OK;
}

enum mr_rc
claims_held(struct mr_room *room, const struct mr_self *self, struct claims *ret, struct mr_error *err)
{
	mr_auto(claims_done) struct claims all = { 0 };

	if (room->driver->abilities & ROOM_HOLDS)
		TRY(claims_in(room, self->agent, &all, err));
	TRY(claim_held_work(room, self->agent, NULL, &all, err));
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].kind == CLAIM_LEASE && all.v[i].life == self->life && !claims_add(ret, &all.v[i]))
			return mr_nomem(err);
	return MR_OK;
}

enum mr_rc
mr_queue_held(struct mr_room *room, const char *agent, const struct mr_filter *filter, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(matcher_done) struct matcher matcher = { 0 };
	mr_auto(claims_done) struct claims claims = { 0 };

	TRY(matcher_init(&matcher, room, agent, filter, err));
	TRY(claim_held_work(room, agent, NULL, &claims, err));
	for (size_t i = 0; i < claims.n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		/* Settled just now, or unreadable: recv reports it. */
		if (claim_message(room, &claims.v[i], &msg, IGNORED) != MR_OK)
			continue;
		if (matcher_fits(&matcher, &msg) && !fn(ctx, &msg))
			break;
	}
	return MR_OK;
}
