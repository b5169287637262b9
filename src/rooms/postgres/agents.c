/* SPDX-License-Identifier: MIT */
/* agents.c - names and their lives. */
#include "rooms/postgres/postgres.h"

enum mr_rc
pg_no_agent(const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room\n`mailroom who` lists them", name);
}

/* A row of agents(). */
static enum mr_rc
read_agent(const struct pg_call *c, int row, struct mr_agent *ret, struct mr_error *err)
{
	struct arena *own = NULL;
	const char *texts[5];
	bool ok = true;

	for (int i = 0; i < 5; i++) {
		texts[i] = arena_dup(&own, str_of(pg_get_text(c, row, 5 + i)));
		ok = ok && texts[i];
	}
	*ret = (struct mr_agent){ .life = (unsigned)pg_get_int(c, row, 1),
		.created_ms = pg_get_int(c, row, 2),
		.started_ms = pg_get_int(c, row, 3),
		.seen_ms = pg_get_int(c, row, 4),
		.worktree = texts[0],
		.session = texts[1],
		.host = texts[2],
		.role = texts[3],
		.wake = texts[4],
		.process = pg_get_process(c, row, 10),
		.others = pg_get_int(c, row, 14) != 0,
		.door = (enum mr_door)pg_get_int(c, row, 15),
		.own = own };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", pg_get_text(c, row, 0));
	if (!ok)
		arena_free(own);
	return ok ? MR_OK : mr_nomem(err);
}

enum mr_rc
pg_slot_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("agents");
	struct postgres *pg = pg_of(room);
	bool go_on = true;

	(void)names_only; /* one row has all of it */
	PG_BIND(&c, TEXT(NULL));
	TRY(pg_run(room, &c, err));
	mr_names_done(&pg->listed);
	mr_names_done(&pg->others);
	pg->listed = pg->others = (struct mr_names){ 0 };
	pg->glanced = 0;
	for (int i = 0; i < PQntuples(c.rows); i++) /* out of memory: it costs round trips */
		(void)names_add(pg_get_int(&c, i, 14) ? &pg->others : &pg->listed, str_of(pg_get_text(&c, i, 0)));
	for (int i = 0; i < PQntuples(c.rows) && go_on; i++) {
		struct mr_agent agent;

		TRY(read_agent(&c, i, &agent, err));
		go_on = fn(ctx, &agent);
		arena_free(agent.own);
	}
	return MR_OK;
}

enum mr_rc
pg_slot_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("agents");

	if (!ret && pg_memo(pg_of(room), name))
		return MR_OK;
	PG_BIND(&c, TEXT(name));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return pg_no_agent(name, err);
	return ret ? read_agent(&c, 0, ret, err) : MR_OK;
}

enum mr_rc
pg_slot_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("agent_add");

	PG_BIND(&c, TEXT(agent->name), TEXT(agent->role ? agent->role : ""), TEXT(agent->wake ? agent->wake : ""),
	    INT(agent->created_ms ? agent->created_ms : clock_now_ms()), AGAIN);
	pg_forget_all(pg_of(room));
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		return MR_OK;
	case PG_EXISTS:
		return mr_fail(err, MR_EXISTS, "there is already an agent '%s'", agent->name);
	default:
		return mr_fail(err, MR_REFUSED,
		    "'%s' differs from '%s' only in case\nuse that one, or pick another name", agent->name,
		    pg_get_text(&c, 0, 1));
	}
}

static void
add_life(struct pg_call *c, const struct mr_agent *agent)
{
	PG_BIND(c, TEXT(agent->worktree), TEXT(agent->session), TEXT(agent->host), PROCESS(&agent->process));
}

enum mr_rc
pg_slot_take_life(struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("life_take");

	PG_BIND(&c, TEXT(agent->name), INT(agent->life), INT(agent->started_ms));
	add_life(&c, agent);
	PG_BIND(&c, AGAIN);
	pg_forget_all(pg_of(room));
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		*ret_returned = (size_t)pg_get_int(&c, 0, 1);
		return MR_OK;
	case PG_EXISTS:
		return mr_fail(err, MR_EXISTS, "cannot take life %u of '%s': life %u was there before", agent->life,
		    agent->name, (unsigned)pg_get_int(&c, 0, 2));
	default:
		return pg_no_agent(agent->name, err);
	}
}

enum mr_rc
pg_slot_update_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("agent_update");

	PG_BIND(&c, TEXT(agent->name), INT(agent->life), TEXT(agent->role));
	add_life(&c, agent);
	pg_forget_all(pg_of(room));
	TRY(pg_run(room, &c, err));
	return pg_rc(&c) == PG_DONE ? MR_OK
				    : mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life);
}

enum mr_rc
pg_slot_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
    struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	struct pg_memo *memo = &pg->self_memo;

	if (!pg_memo(pg, name)) {
		mr_auto(pg_call_done) struct pg_call c = PG_READ("life_newest");

		PG_BIND(&c, TEXT(name));
		TRY(pg_run(room, &c, err));
		if (PQntuples(c.rows) == 0)
			return pg_no_agent(name, err);
		if (!pg_remember_life(pg, name, &c))
			return mr_nomem(err);
	}
	unsigned newest = memo->life;

	if (ret_newest) {
		*ret_newest = newest;
		return MR_OK;
	}
	if (newest > life)
		return mr_fail(err, MR_REFUSED,
		    "'%s' was taken over by its life %u, this is life %u\n"
		    "the mail is with the new life; register under another name to go on",
		    name, newest, life);
	if (session && (newest != life || life == 0 || strcmp(memo->session, session) != 0))
		return mr_fail(err, MR_NOTFOUND, "life %u of '%s' belongs to another session", life, name);
	return MR_OK;
}

void
pg_slot_seen(struct mr_room *room, const char *name, unsigned life, enum mr_door door)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("life_seen");

	PG_BIND(&c, TEXT(name), INT(life), INT(door));
	pg_send_off(room, &c);
}

enum mr_rc
pg_agent_remove(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("agent_remove");

	PG_BIND(&c, TEXT(name), AGAIN);
	pg_forget_all(pg_of(room));
	TRY(pg_run(room, &c, err));
	if (pg_rc(&c) != PG_DONE)
		return pg_no_agent(name, err);
	*ret_dead = (size_t)pg_get_int(&c, 0, 1);
	return MR_OK;
}
