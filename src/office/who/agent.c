/* SPDX-License-Identifier: MIT */
/* agent.c - the agents of a room: list, presence by evidence, names and similar names, counts of a mailbox. */
#include "base/format.h"
#include "base/id.h"
#include "base/text.h"
#include "message/address.h"
#include "office/address/address.h"
#include "office/who/who.h"

void
mr_agent_done(struct mr_agent *agent)
{
	if (!agent)
		return;
	arena_free(agent->own);
	*agent = (struct mr_agent){ 0 };
}

bool
agent_has_life(const struct mr_agent *agent)
{
	return agent->life > 0 && (agent->started_ms == 0 || agent->started_ms >= agent->created_ms);
}

const char *
mr_door_word(enum mr_door door)
{
	static const char *const words[] = { "", "library", "command", "hook", "mcp", "http" };

	return (size_t)door < sizeof words / sizeof words[0] ? words[door] : "";
}

enum mr_presence
mr_agent_presence(const struct mr_agent *agent)
{
	if (!agent_has_life(agent))
		return MR_GONE;
	/* Processes of another machine cannot be checked from here, and its boot id says nothing. The same holds for
	 * another pid namespace: a name never becomes free because its process cannot be seen. */
	if (agent->process.pid == 0 || (agent->host && agent->host[0] && strcmp(agent->host, host_name()) != 0))
		return MR_UNKNOWN;
	switch (process_state(&agent->process)) {
	case PROCESS_ALIVE:
		return agent->session && thread_is_unloaded(agent->session, &agent->process) ? MR_GONE : MR_LIVE;
	case PROCESS_DEAD:
		return MR_GONE;
	case PROCESS_UNKNOWN:
		break;
	}
	return MR_UNKNOWN;
}

static bool
list_agent(void *ctx, const struct mr_agent *agent)
{
	struct roll *l = ctx;
	struct mr_agent *a = roll_add(l, sizeof(*a));

	if (!a)
		return false;
	*a = *agent;
	a->own = NULL;
	a->worktree = roll_str(l, agent->worktree);
	a->session = roll_str(l, agent->session);
	a->host = roll_str(l, agent->host);
	a->role = roll_str(l, agent->role);
	a->wake = roll_str(l, agent->wake);
	return !l->failed;
}

enum mr_rc
mr_agent_list(struct mr_room *room, struct mr_agents *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll l = { 0 };

	TRY(room->driver->each_agent(room, false, list_agent, &l, err));
	TRY(mr_got(!l.failed, err));
	roll_sort(&l, sizeof(struct mr_agent));
	return mr_got(roll_give(&l, ret), err);
}

/* ---- Names ---- */

bool
agent_is_operator(const char *name)
{
	return address_is_operator(str_of(name)) || ascii_caseeq(name, "@overseer") || ascii_caseeq(name, "@human");
}

bool
agent_life_of(struct mr_room *room, const char *name, struct mr_self *ret)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (!office_has_lives(room) || room->driver->find_agent(room, name, &agent, IGNORED) != MR_OK)
		return false;
	*ret = (struct mr_self){ .life = agent.life };
	(void)snprintf(ret->agent, sizeof(ret->agent), "%s", name);
	(void)snprintf(ret->session, sizeof(ret->session), "%s", agent.session ? agent.session : "");
	return agent.life > 0;
}

enum mr_rc
agent_local_name(const struct mr_room *room, const char *address, char *ret, struct mr_error *err)
{
	struct mr_str agent = str_of(address), at = { 0 };

	if (address[0] != '@')
		address_split(str_of(address), &agent, &at);
	if (at.len > 0 && !str_eq(at, str_of(room->name))) {
		return mr_fail(err, MR_REFUSED,
		    "'%.100s' is an agent of another room\nthis room is '%s'; name another one with --room", address,
		    room->name);
	}
	bool is_operator = address_is_operator(agent) || agent_is_operator(address);

	return address_normal(is_operator ? STR(OPERATOR) : agent, ret, err);
}

enum mr_rc
agent_spelled(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	if (ROOM_HAS(room, spell))
		return room->driver->spell(room, given, ret, err);
	return office_has_lives(room) ? agent_local_name(room, given, ret, err)
				      : address_normal(str_of(given), ret, err);
}

enum mr_rc
agent_exists(struct mr_room *room, const char *name, struct mr_error *err)
{
	return ROOM_HAS(room, find_agent) ? room->driver->find_agent(room, name, NULL, err) : MR_OK;
}

bool
agent_said_first(struct mr_room *room, const struct mr_self *self, const char *what)
{
	mr_auto(buf_done) struct buf before = BUF_INIT;
	char life[24];

	(void)snprintf(life, sizeof life, "Life: %u\n", self->life);
	(void)room->driver->record_get(room, "said", self->agent, what, &before, IGNORED);
	return self->life > 0 && strcmp(buf_z(&before), life) != 0 &&
	       room->driver->record_put(room, "said", self->agent, what, str_of(life), IGNORED) == MR_OK;
}

enum mr_rc
mr_agent_get(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];

	if (!ROOM_HAS(room, find_agent))
		return room_lacks(room, "registered agents", err);
	TRY(agent_spelled(room, name, local, err));
	enum mr_rc rc = room->driver->find_agent(room, local, ret, err);

	return rc == MR_NOTFOUND ? agent_unknown(room, local, err) : rc;
}

enum mr_rc
agent_unknown(struct mr_room *room, const char *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct near near = { .wanted = name, .prefix = "" };

	(void)office_agents(room, &all, IGNORED);
	for (size_t i = 0; i < all.n; i++)
		(void)near_offer(&near, all.v[i]);
	near_list(&near, &list);
	(void)mr_fail(err, MR_NOTFOUND, "no agent '%.160s' in room '%s'", name, room->name);
	if (!(room->driver->abilities & ROOM_REGISTER))
		return near.n ? mr_hint(err, "near names: %s", buf_z(&list))
			      : mr_hint(err, "`mailroom who` lists them");
	return near.n ? mr_hint(err, "near names: %s; or register it: mailroom register %.80s", buf_z(&list), name)
		      : mr_hint(err, "register it: mailroom register %.160s", name);
}

void
agent_describe_life(const struct mr_agent *agent, struct buf *out)
{
	char since[24];

	buf_addf(out, "life %u", agent->life);
	if (agent->session[0])
		format_addf(out, ", session '%.60s'", agent->session);
	if (agent->process.pid)
		buf_addf(out, ", process %lld%s", (long long)agent->process.pid,
		    process_is_elsewhere(&agent->process) ? " of another pid namespace" : "");
	if (agent->host[0] && strcmp(agent->host, host_name()) != 0)
		format_addf(out, " on '%.40s'", agent->host);
	if (agent->worktree[0])
		format_addf(out, ", in '%.80s'", agent->worktree);
	if (agent->started_ms > 0 && agent->started_ms <= clock_now_ms()) {
		duration_text(clock_now_ms() - agent->started_ms, since);
		buf_addf(out, ", since %s", since);
	}
}

/* ---- Counts of a mailbox ---- */

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	struct mr_counts *counts = ctx;
	int64_t at = msg->id[0] ? id_time_ms(msg->id) : msg->date_ms; /* names alone have no date */

	if (msg->folder == MR_HELD) {
		counts->held++;
	} else if (msg->flags & MR_SEEN) {
		counts->seen++;
	} else {
		counts->unread++;
		counts->urgent += msg->priority == MR_URGENT; /* if names tell it */
		if (counts->oldest_unread_ms == 0 || at < counts->oldest_unread_ms)
			counts->oldest_unread_ms = at;
	}
	return true;
}

static bool
count_urgent(void *ctx, const struct mr_message *msg)
{
	((struct mr_counts *)ctx)->urgent += msg->priority == MR_URGENT;
	return true;
}

enum mr_rc
mr_count(struct mr_room *room, const char *agent, struct mr_counts *ret, struct mr_error *err)
{
	struct mr_counts counts = { 0 };
	struct scan_request names = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .glance = true };
	struct scan_request headers = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
	unsigned abilities = room->driver->abilities;

	TRY(office_scan(room, agent, &names, count_one, &counts, err));
	if (counts.held > 0) { /* mail of a dead holder is unread again, and an operator must see that */
		(void)room->driver->sweep(room, agent, IGNORED);
		counts = (struct mr_counts){ 0 };
		TRY(office_scan(room, agent, &names, count_one, &counts, err));
	}
	if (counts.unread > 0 && (abilities & ROOM_PRIORITIES) && !(abilities & ROOM_NAMES)) {
		counts.urgent = 0;
		TRY(office_scan(room, agent, &headers, count_urgent, &counts, err));
	}
	*ret = counts;
	return MR_OK;
}

enum mr_rc
agent_unread(struct mr_room *room, const char *name, size_t *ret, struct mr_error *err)
{
	struct mr_counts counts = { 0 };
	struct scan_request names = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };

	TRY(office_scan(room, name, &names, count_one, &counts, err));
	*ret = counts.unread;
	return MR_OK;
}
