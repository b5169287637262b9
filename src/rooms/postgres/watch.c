/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting. watch() takes the presence lock of the place and listens, before the caller looks. A sender pokes
 * after its commit, and only places whose presence lock is taken: a session that begins to wait later looks later, too.
 * A poke is lost only when its sender dies between its two transactions; against that, deadlines and dead holders, a
 * wait ends after 1, 5, then every 30 seconds, and the caller looks again. Waiting survives a restart of the server:
 * conn.c watches again, and rings.
 *
 * The whole room (agent "") is poked by every poke. Once a second it is asked for a text that every write changes:
 * marks and claims poke nobody, and a page shows them, too.
 */
#include "rooms/postgres/postgres.h"
#include <errno.h>
#include <poll.h>

#define PAUSE_FIRST_MS 1000
#define PAUSE_SECOND_MS 5000
#define PAUSE_MAX_MS 30000

/* Also takes the lock by which senders see that somebody waits, if another had it and ended. */
static bool
room_changed(struct mr_room *room, struct pg_watch *w)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("watch_room");

	c.session = true;
	if (pg_run(room, &c, IGNORED) != MR_OK)
		return true;
	uint64_t print = hash_bytes(str_of(pg_get_text(&c, 0, 0)));
	bool changed = print != w->print;

	w->print = print;
	return changed;
}

enum mr_rc
pg_slot_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_READ("watch");

	PG_BIND(&c, PLACE(agent));
	c.session = true;
	pg_forget_all(pg); /* what the caller looks at from now on is newer than the watch */
	TRY(pg_run(room, &c, err));
	if (pg_rc(&c) != PG_DONE)
		return mr_fail(err, MR_NOTFOUND, "no '%s' in this room", agent);
	struct pg_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return mr_nomem(err);
	(void)snprintf(w->name, sizeof(w->name), "%s", agent);
	(void)snprintf(w->channel, sizeof(w->channel), "%s", pg_get_text(&c, 0, 1));
	w->pause_ms = PAUSE_FIRST_MS;
	w->next = pg->watches;
	pg->watches = w;
	if (!agent[0])
		(void)room_changed(room, w);
	*ret_watch = w;
	return MR_OK;
}

bool
pg_slot_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct postgres *pg = pg_of(room);
	struct pg_watch *w = watch;
	int64_t until_ms = clock_boot_ms() + (timeout_ms < w->pause_ms ? timeout_ms : w->pause_ms);

	pg_notices(pg);
	while (!w->rung && clock_boot_ms() < until_ms) {
		struct pollfd p = { .fd = pg->conn ? PQsocket(pg->conn) : -1, .events = POLLIN };
		int n = poll(&p, 1, (int)(until_ms - clock_boot_ms()));

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && !PQconsumeInput(pg->conn)) { /* the server is gone: the next look connects anew */
			pg_disconnect(pg);
			(void)pg_connect(pg, IGNORED);
			break;
		}
		pg_notices(pg);
	}
	if (!w->name[0]) {
		bool rung = w->rung;

		w->rung = false;
		return rung || room_changed(room, w);
	}
	w->pause_ms = w->rung ? PAUSE_FIRST_MS : w->pause_ms < PAUSE_SECOND_MS ? PAUSE_SECOND_MS : PAUSE_MAX_MS;
	w->rung = false;
	return true;
}

bool
pg_watch_rang(const void *watch)
{
	return ((const struct pg_watch *)watch)->pause_ms == PAUSE_FIRST_MS;
}

void
pg_slot_watch_close(struct mr_room *room, void *watch)
{
	struct postgres *pg = pg_of(room);
	struct pg_watch *w = watch;
	mr_auto(pg_call_done) struct pg_call c = PG_READ("unwatch");
	bool another = false;

	if (!w)
		return;
	for (struct pg_watch **at = &pg->watches; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	for (const struct pg_watch *o = pg->watches; o; o = o->next)
		another |= strcmp(o->channel, w->channel) == 0;
	PG_BIND(&c, TEXT(w->channel));
	if (pg->conn && !another)
		(void)pg_run(room, &c, IGNORED);
	free(w);
}
