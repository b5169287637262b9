/* SPDX-License-Identifier: MIT */
/*
 * nudge.c - delivering a nudge. It is first put into the queue, in every mode; then faster ways are tried from there: a
 * waiting process of the agent shows it at once, else a notice is typed into the agent's terminal, else it stays for
 * the next hook. So a crash loses nothing, and the result says which way it went.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <poll.h>

#define WAITER_MS 2500 /* for a waiting process to show it */
#define WAITER_POLL_MS 20
#define DND "dnd"
#define DND_NAME "on"
#define ANSWER "nudge_response" /* kind of a nudge that answers one */
#define ANSWER_POLL_MS 100

static enum mr_rc
check(const struct mr_nudge *nudge, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	size_t len = nudge->text ? strlen(nudge->text) : 0;

	if (len == 0)
		return mr_fail(err, MR_REFUSED, "the nudge has no text");
	if (len > MR_NUDGE_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the nudge has %zu bytes, more than %zu\nsend it as mail: mailroom send", len, MR_NUDGE_MAX);
	if (!utf8_valid(str_of(nudge->text)))
		return mr_fail(err, MR_REFUSED, "the text of the nudge is not UTF-8");
	if (nudge->expires_ms != 0 && nudge->expires_ms <= clock_now_ms())
		return mr_fail(err, MR_REFUSED, "the nudge expires before it is sent");
	TRY(header_add(&lines, "Kind", str_of(nudge->kind), err));
	return header_add(&lines, "Thread", str_of(nudge->thread), err);
}

/* ---- Do not disturb: a record that exists while it is on, with its start time ---- */

static enum mr_rc
find_undisturbed(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "memory for agents that are not to be disturbed", err);
	TRY(agent_spelled(room, given, ret, err));
	enum mr_rc rc = agent_exists(room, ret, err);

	return rc == MR_NOTFOUND ? agent_unknown(room, ret, err) : rc;
}

enum mr_rc
mr_dnd_get(struct mr_room *room, const char *agent, bool *ret_on, int64_t *ret_since_ms, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	char name[MR_ADDRESS_MAX + 1];

	TRY(find_undisturbed(room, agent, name, err));
	enum mr_rc rc = room->driver->record_get(room, DND, name, DND_NAME, &text, err);

	TRY(mr_unless(rc, MR_NOTFOUND, err));
	*ret_on = rc == MR_OK;
	*ret_since_ms = record_parse(buf_str(&text), &lines, IGNORED) == MR_OK ? record_time(&lines, "Since") : 0;
	return MR_OK;
}

enum mr_rc
mr_dnd_set(struct mr_room *room, const char *agent, bool on, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1], text[RFC3339_LEN + 16];
	bool was = false;
	int64_t since;

	TRY(find_undisturbed(room, agent, name, err));
	TRY(mr_dnd_get(room, name, &was, &since, err));
	if (was == on)
		return MR_OK;
	(void)snprintf(text, sizeof text, "Since: %s\n", time_text(clock_now_ms()).z);
	if (on)
		return room->driver->record_put(room, DND, name, DND_NAME, str_of(text), err);
	/* Not found: another process was faster. */
	return mr_unless(room->driver->record_drop(room, DND, name, DND_NAME, err), MR_NOTFOUND, err);
}

bool
dnd_is_on(struct mr_room *room, const char *agent)
{
	int64_t since;
	bool on = false;

	return ROOM_HAS(room, record_put) && mr_dnd_get(room, agent, &on, &since, IGNORED) == MR_OK && on;
}

/* ---- The faster ways ---- */

enum mr_rc
nudge_lock_look(struct mr_room *room, const char *kind, const char *agent, const char *name)
{
	void *lock = NULL;
	enum mr_rc rc = MR_UNSUPPORTED;

	if (ROOM_HAS(room, record_lock))
		rc = room->driver->record_lock(room, kind, agent, name, 0, &lock, IGNORED);
	if (rc == MR_OK)
		room->driver->record_unlock(room, lock);
	return rc;
}

bool
nudge_somebody_waits(struct mr_room *room, const char *agent)
{
	return nudge_lock_look(room, NUDGE, agent, NUDGE_WAITER) == MR_BUSY;
}

/* A nudge that left the queue was shown; by which process does not matter. `waited`: a process was waiting before it
 * was queued. */
static bool
was_shown(struct mr_room *room, const char *agent, const char *name, bool waited)
{
	int64_t end = clock_boot_ms() + (waited ? WAITER_MS : 0);

	while (nudge_waits(room, agent, name)) {
		if (clock_boot_ms() >= end)
			return false;
		(void)poll(NULL, 0, WAITER_POLL_MS);
	}
	return true;
}

enum mr_rc
mr_nudge_send(struct mr_room *room, const struct mr_self *self, const char *to, const struct mr_nudge *nudge,
    const struct mr_nudge_options *options, struct mr_nudged *ret, struct mr_error *err)
{
	static const struct mr_nudge_options plain = { 0 };
	char agent[MR_ADDRESS_MAX + 1], name[NUDGE_NAME_LEN + 1] = "";
	struct mr_nudge n = *nudge;

	if (!options)
		options = &plain;
	n.from = self->agent;
	n.kind = n.kind ? n.kind : "";
	n.thread = n.thread ? n.thread : "";
	*ret = (struct mr_nudged){ .way = MR_NUDGE_SKIPPED };
	TRY(nudge_able(room, err));
	TRY(check(&n, err));
	TRY(office_not_fenced(room, self, err));
	enum mr_rc rc = agent_spelled(room, to, agent, err);

	if (rc == MR_OK && !(room->driver->abilities & ROOM_OPEN_BOXES))
		rc = agent_exists(room, agent, err);
	TRY(rc == MR_NOTFOUND ? agent_unknown(room, agent, err) : rc);
	if (ROOM_FACE_HAS(room, nudge_put)) {
		n.at_ms = clock_now_ms();
		ret->way = MR_NUDGE_PLACED;
		return room->driver->face->nudge_put(room, agent, &n, err);
	}
	if (n.answer_wanted)
		return room_lacks(room, "nudges that want an answer; ask with mail", err);
	if (!options->force && dnd_is_on(room, agent))
		return MR_OK;
	bool waited = options->mode != MR_NUDGE_QUEUE &&
		      nudge_somebody_waits(room, agent); /* asked first, because the wait ends with the nudge */

	int64_t since_ms = clock_now_ms();
	TRY(nudge_enqueue(room, agent, &n, name, &ret->coalesced, err));
	ret->way = MR_NUDGE_QUEUED;
	if (options->mode == MR_NUDGE_QUEUE || n.not_before_ms > clock_now_ms())
		return MR_OK;
	bool shown = was_shown(room, agent, name, waited);

	(void)snprintf(ret->bell, sizeof ret->bell, "%s", waited ? "wait" : "");
	bell_since(room, agent, since_ms, ret);
	if (shown) {
		ret->way = MR_NUDGE_SHOWN;
		return MR_OK;
	}
	enum pane_result result = pane_type(room, agent, name, options, ret->why, sizeof ret->why);

	if (result == PANE_TYPED)
		ret->way = MR_NUDGE_TYPED;
	else if (result == PANE_GONE)
		ret->way = MR_NUDGE_SHOWN;
	else if (result == PANE_DOUBT || options->mode == MR_NUDGE_IMMEDIATE)
		return mr_fail(err, result == PANE_DOUBT ? MR_INDOUBT : MR_IO,
		    "the nudge for '%s' was not submitted: %s\n"
		    "it is queued, and shown with the next hook or 'mailroom wait' of %.80s",
		    agent, ret->why, agent);
	return MR_OK;
}

/* ---- The answer ---- */

/* For the room of a program whose answer to a nudge is a nudge itself. The next one replaces it there, so the wait
 * looks often, and takes the answer even if another process has seen it. */
enum mr_rc
mr_nudge_answer(struct mr_room *room, const struct mr_self *self, const char *from, int64_t since_ms, int64_t wait_ms,
    char **ret_text, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + wait_ms;
	char agent[MR_ADDRESS_MAX + 1];

	if (!ROOM_FACE_HAS(room, nudge_get))
		return room_lacks(room, "nudges that want an answer; ask with mail", err);
	TRY(agent_spelled(room, from, agent, err));
	for (;;) {
		struct mr_nudge n = { 0 };
		struct arena *own = NULL;
		bool came = room->driver->face->nudge_get(room, self->agent, &n, &own, IGNORED) == MR_OK &&
			    strcmp(n.kind, ANSWER) == 0 && strcmp(n.from, agent) == 0 && n.at_ms >= since_ms;

		if (came)
			*ret_text = strdup(n.text);
		arena_free(own);
		if (came)
			return *ret_text ? MR_OK : mr_nomem(err);
		if (clock_boot_ms() >= end_ms)
			return mr_fail(err, MR_EMPTY, "no answer from '%s'", agent);
		(void)poll(NULL, 0, ANSWER_POLL_MS);
	}
}
