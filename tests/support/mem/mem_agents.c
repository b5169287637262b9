/* SPDX-License-Identifier: MIT */
/* mem_agents.c - names and their lives. */
#include "base/clock.h"
#include "base/error.h"
#include "support/mem/mem.h"

static struct mem_life *
life_numbered(struct mem_box *box, unsigned number)
{
	for (size_t i = box->lives_n; i-- > 0;)
		if (box->lives[i].number == number)
			return &box->lives[i];
	return NULL;
}

unsigned
mem_newest_life(const struct mem_box *box)
{
	return box->lives_n ? box->lives[box->lives_n - 1].number : 0;
}

static const char *
keep(struct arena **own, const char *z)
{
	return z && z[0] != '\0' ? arena_dup(own, str_of(z)) : "";
}

static enum mr_rc
describe(const struct mem_box *box, struct mr_agent *ret, struct mr_error *err)
{
	static const struct mem_life none = { .worktree = "", .session = "", .host = "" };
	const struct mem_life *life = box->lives_n ? &box->lives[box->lives_n - 1] : &none;
	struct arena *own = NULL;
	struct mr_agent agent = {
		.life = life->number,
		.created_ms = box->created_ms,
		.started_ms = life->started_ms,
		.seen_ms = life->seen_ms,
		.door = life->door,
		.process = life->process,
		.worktree = keep(&own, life->worktree),
		.session = keep(&own, life->session),
		.host = keep(&own, life->host),
		.role = keep(&own, box->role),
		.wake = keep(&own, box->wake),
	};

	if (!agent.worktree || !agent.session || !agent.host || !agent.role || !agent.wake) {
		arena_free(own);
		return mr_nomem(err);
	}
	memcpy(agent.name, box->name, sizeof agent.name);
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
mem_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct mem *mem = mem_of(room);

	(void)names_only;
	for (size_t i = 0; i < mem->boxes_n; i++) {
		struct mr_agent agent = { 0 };

		if (!mem->boxes[i]->registered)
			continue;
		if (describe(mem->boxes[i], &agent, err) != MR_OK)
			return err->code;
		bool more = fn(ctx, &agent);

		arena_free(agent.own);
		if (!more)
			break;
	}
	return MR_OK;
}

enum mr_rc
mem_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), name, &box, err) != MR_OK)
		return err->code;
	return ret ? describe(box, ret, err) : MR_OK;
}

static enum mr_rc
check_name_free(struct mem *mem, const char *name, struct mr_error *err)
{
	for (size_t i = 0; i < mem->boxes_n; i++) {
		const struct mem_box *box = mem->boxes[i];

		if (!box->registered)
			continue;
		if (strcmp(box->name, name) == 0)
			return mr_fail(err, MR_EXISTS, "cannot add agent '%s': the name is taken", name);
		if (ascii_caseeq(box->name, name)) {
			(void)mr_fail(err, MR_REFUSED, "cannot add agent '%s': it differs from '%s' only in case", name,
			    box->name);
			return mr_hint(err, "use '%s', or pick another name", box->name);
		}
	}
	return MR_OK;
}

enum mr_rc
mem_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	struct mem *mem = mem_of(room);

	if (check_name_free(mem, agent->name, err) != MR_OK)
		return err->code;
	struct mem_box *box = mem_box_any(mem, agent->name);

	if (!box)
		box = mem_box_new(mem, agent->name);
	if (!box)
		return mr_nomem(err);
	const char *role = keep(&box->own, agent->role);
	const char *wake = keep(&box->own, agent->wake);

	if (!role || !wake)
		return mr_nomem(err);
	box->role = role;
	box->wake = wake;
	box->created_ms = agent->created_ms ? agent->created_ms : clock_now_ms();
	box->registered = true;
	return MR_OK;
}

static enum mr_rc
fill_life(struct mem_box *box, struct mem_life *life, const struct mr_agent *agent, struct mr_error *err)
{
	const char *worktree = keep(&box->own, agent->worktree);
	const char *session = keep(&box->own, agent->session);
	const char *host = keep(&box->own, agent->host);

	if (!worktree || !session || !host)
		return mr_nomem(err);
	life->process = agent->process;
	life->worktree = worktree;
	life->session = session;
	life->host = host;
	life->seen_ms = clock_now_ms();
	return MR_OK;
}

enum mr_rc
mem_take_life(struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), agent->name, &box, err) != MR_OK)
		return err->code;
	if (agent->life <= mem_newest_life(box))
		return mr_fail(err, MR_EXISTS, "cannot take life %u of '%s': life %u was there before", agent->life,
		    agent->name, mem_newest_life(box));
	struct mem_life *grown = realloc(box->lives, (box->lives_n + 1) * sizeof *grown);

	if (!grown)
		return mr_nomem(err);
	box->lives = grown;
	struct mem_life life = { .number = agent->life,
		.started_ms = agent->started_ms ? agent->started_ms : clock_now_ms() };

	if (fill_life(box, &life, agent, err) != MR_OK)
		return err->code;
	box->lives[box->lives_n++] = life;
	*ret_returned = mem_hold_return_all(box); /* the new life holds nothing yet: all of it is older */
	return MR_OK;
}

enum mr_rc
mem_update_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), agent->name, &box, err) != MR_OK)
		return err->code;
	if (agent->life == 0) {
		const char *role = keep(&box->own, agent->role);

		box->role = role ? role : box->role;
		return role ? MR_OK : mr_nomem(err);
	}
	struct mem_life *life = life_numbered(box, agent->life);

	if (!life)
		return mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life);
	return fill_life(box, life, agent, err);
}

enum mr_rc
mem_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
    struct mr_error *err)
{
	struct mem_box *box = NULL;

	if (mem_box_find(mem_of(room), name, &box, err) != MR_OK)
		return err->code;
	if (ret_newest) {
		*ret_newest = mem_newest_life(box);
		return MR_OK;
	}
	if (mem_newest_life(box) > life) {
		(void)mr_fail(err, MR_REFUSED, "life %u of '%s' is over: life %u has taken its place", life, name,
		    mem_newest_life(box));
		return mr_hint(err, "stop, or register again to become the newest life");
	}
	if (session &&
	    (mem_newest_life(box) != life || life == 0 || strcmp(box->lives[box->lives_n - 1].session, session) != 0))
		return mr_fail(err, MR_NOTFOUND, "life %u of '%s' belongs to another session", life, name);
	return MR_OK;
}

void
mem_seen(struct mr_room *room, const char *name, unsigned life, enum mr_door door)
{
	struct mem_box *box = mem_box_any(mem_of(room), name);
	struct mem_life *found = box ? life_numbered(box, life) : NULL;

	if (found) {
		found->seen_ms = clock_now_ms();
		found->door = door;
	}
}

enum mr_rc
mem_remove_agent(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_box *box = NULL;
	size_t dead = 0;

	if (mem_box_find(mem, name, &box, err) != MR_OK)
		return err->code;
	box->registered = false;
	(void)mem_hold_return_all(box);
	for (size_t i = box->copies_n; i-- > 0;) {
		struct mem_copy *copy = &box->copies[i];

		if (copy->folder != MR_INBOX || (copy->flags & MR_SEEN))
			continue;
		if (mem_box_move(box, copy, &mem->dead, MR_DEAD, err) != MR_OK)
			return err->code;
		dead++;
	}
	*ret_dead = dead;
	return MR_OK;
}
