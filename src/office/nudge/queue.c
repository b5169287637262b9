/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the nudges that wait for an agent, one record each: header lines, an empty line, the text.
 *
 *	From: alice
 *	At: 2026-03-05T10:30:00.000Z
 *	Expires: 2026-03-05T11:00:00.000Z
 *	Priority: urgent
 *
 *	still on task 12?
 *
 * Senders take turns by locking one record beside the nudges. It also counts nudges that were refused because the queue
 * was full, so that the agent learns of them. Nudges are removed only after they were shown; until then a lock keeps
 * other processes from showing them, and it ends with its process.
 *
 * In the room of a program with its own place for nudges the last one stays there, and every reader remembers which one
 * it has seen: mailroom in the state folder, by the time in the nudge.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/nudge/nudge.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#define STATE_KIND "nudge-state"
#define STATE_NAME "state"
#define DEPTH 50
#define URGENT_EXTRA 10 /* places for urgent nudges only */
#define NORMAL_TTL_MS ((int64_t)30 * 60 * 1000)
#define URGENT_TTL_MS ((int64_t)2 * 3600 * 1000)
#define STRANGE_MS ((int64_t)24 * 3600 * 1000) /* a record that is not a nudge is removed after that long */
#define TIMES_MAX 1000000
#define SEEN_FOLDER "nudges-seen"
#define SEEN_MAX ((size_t)4096)

enum mr_rc
nudge_able(const struct mr_room *room, struct mr_error *err)
{
	if (ROOM_FACE_HAS(room, nudge_put) ||
	    (ROOM_HAS(room, record_put) && ROOM_HAS(room, record_each) && ROOM_HAS(room, record_lock)))
		return MR_OK;
	(void)room_lacks(room, "nudges", err);
	return mr_hint(err, "send mail instead: mailroom send");
}

/* ---- One nudge as text ---- */

#define AT(member) offsetof(struct mr_nudge, member)
static const struct record_field fields[] = {
	{ "From", RECORD_TEXT, AT(from) },
	{ "At", RECORD_TIME, AT(at_ms) },
	{ "Expires", RECORD_TIME, AT(expires_ms) },
	{ "Not-Before", RECORD_TIME, AT(not_before_ms) },
	{ "Kind", RECORD_TEXT, AT(kind) },
	{ "Thread", RECORD_TEXT, AT(thread) },
	{ "Times", RECORD_SOME, AT(times) },
};

static enum mr_rc
put(struct mr_room *room, const char *agent, const char *name, const struct mr_nudge *nudge, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_nudge lines = *nudge;

	lines.times = nudge->times > 1 ? nudge->times : 0;
	record_write(&text, RECORD_FIELDS(fields), &lines);
	buf_addf(&text, "%s\n%s\n", nudge->priority == MR_URGENT ? "Priority: urgent\n" : "", nudge->text);
	TRY(mr_got(buf_ok(&text), err));
	return room->driver->record_put(room, NUDGE, agent, name, buf_str(&text), err);
}

/* MR_NOTFOUND; MR_CORRUPT: it is not a nudge. */
static enum mr_rc
get(struct mr_room *room, const char *agent, const char *name, struct mr_nudge *ret, struct roll *own,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct mr_nudge n = { 0 };

	TRY(room->driver->record_get(room, NUDGE, agent, name, &text, err));
	const char *gap = strstr(buf_z(&text), "\n\n");
	struct mr_str head = { buf_z(&text), gap ? (size_t)(gap - buf_z(&text)) + 1 : 0 };

	TRY(record_parse(head, &lines, err));
	record_read(&lines, RECORD_FIELDS(fields), &n);
	if (!gap || !gap[2] || !n.from[0] || n.expires_ms == 0)
		return mr_fail(err, MR_CORRUPT, "not a nudge: its sender, expiry or text is missing");
	struct mr_str body = str_of(gap + 2);

	body.len -= body.ptr[body.len - 1] == '\n';
	const char *priority = record_get(&lines, "Priority");

	n.priority = priority && ascii_caseeq(priority, "urgent") ? MR_URGENT : MR_NORMAL;
	n.times = n.times > 0 && n.times < TIMES_MAX ? n.times : 1;
	n.text = arena_dup(&lines.own, body);
	TRY(mr_got(n.text, err));
	roll_join(own, lines.own); /* it holds the strings */
	lines.own = NULL;
	*ret = n;
	return MR_OK;
}

static void
drop(struct mr_room *room, const char *agent, const char *name)
{
	(void)room->driver->record_drop(room, NUDGE, agent, name, IGNORED);
}

enum mr_rc
nudge_names(struct mr_room *room, const char *agent, struct mr_names *ret, struct mr_error *err)
{
	return ROOM_HAS(room, record_each) ? office_records(room, NUDGE, agent, ret, err) : MR_OK;
}

bool
nudge_waits(struct mr_room *room, const char *agent, const char *name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	return room->driver->record_get(room, NUDGE, agent, name, &text, IGNORED) != MR_NOTFOUND;
}

/* ---- How many were refused ---- */

static unsigned
refused_in(struct mr_str text)
{
	mr_auto(record_done) struct record lines = { 0 };
	int64_t n = record_parse(text, &lines, IGNORED) == MR_OK ? record_int(&lines, "Refused", 0) : 0;

	return n > 0 && n < INT32_MAX ? (unsigned)n : 0;
}

/* ---- Adding a nudge ---- */

struct adding {
	struct mr_room *room;
	const char *agent;
	struct mr_nudge nudge;
	char name[NUDGE_NAME_LEN + 1];
	bool coalesced, full;
	size_t waiting;
};

/* The same words, or another message from the same sender: one line in the agent's context is enough for both. */
static bool
is_same(const struct mr_nudge *a, const struct mr_nudge *b)
{
	bool mail = strcmp(a->kind, "mail") == 0;

	return strcmp(a->from, b->from) == 0 && strcmp(a->kind, b->kind) == 0 && strcmp(a->thread, b->thread) == 0 &&
	       a->priority == b->priority && a->not_before_ms == b->not_before_ms &&
	       (mail || strcmp(a->text, b->text) == 0);
}

/* Counts valid nudges, removes expired ones, and finds one with the same text. */
static void
look_at(struct adding *a, const char *name, struct mr_nudge *same, char *same_name)
{
	mr_auto(roll_done) struct roll own = { 0 };
	struct mr_nudge n = { 0 };
	int64_t now = clock_now_ms();
	uint64_t sent_ns = 0; /* the time in its name */
	enum mr_rc rc = get(a->room, a->agent, name, &n, &own, IGNORED);

	(void)str_to_u64((struct mr_str){ name, strcspn(name, "-") }, &sent_ns);
	if ((rc == MR_OK && n.expires_ms <= now) ||
	    (rc == MR_CORRUPT && (int64_t)(sent_ns / 1000000) + STRANGE_MS < now))
		drop(a->room, a->agent, name);
	else if (rc != MR_NOTFOUND)
		a->waiting++;
	if (rc == MR_OK && n.expires_ms > now && is_same(&n, &a->nudge)) {
		same->times = n.times;
		same->expires_ms = n.expires_ms;
		(void)snprintf(same_name, NUDGE_NAME_LEN + 1, "%s", name);
	}
}

static enum mr_rc
add_or_refuse(struct adding *a, struct buf *text, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	const struct room_driver *d = a->room->driver;
	struct mr_nudge same = { 0 };
	char same_name[NUDGE_NAME_LEN + 1] = "";
	unsigned refused = refused_in(buf_str(text));
	enum mr_rc rc = MR_OK;
	void *lock = NULL;

	TRY(nudge_names(a->room, a->agent, &names, err));
	for (size_t i = 0; i < names.n; i++)
		look_at(a, names.v[i], &same, same_name);
	/* Only while no process shows it: it would be removed without showing the new one. */
	if (same_name[0] && d->record_lock(a->room, NUDGE, a->agent, NUDGE_SHOWN, 0, &lock, IGNORED) == MR_OK) {
		a->coalesced = nudge_waits(a->room, a->agent, same_name);
		if (a->coalesced) {
			memcpy(a->name, same_name, sizeof a->name);
			a->nudge.times = same.times + 1;
			if (a->nudge.expires_ms < same.expires_ms)
				a->nudge.expires_ms = same.expires_ms;
			rc = put(a->room, a->agent, a->name, &a->nudge, err);
		}
		d->record_unlock(a->room, lock);
		if (a->coalesced)
			return rc;
	}
	int64_t set = record_int(&a->room->settings, "Nudge-Depth", DEPTH);
	size_t depth = (size_t)(set > 0 ? set : DEPTH) + (a->nudge.priority == MR_URGENT ? URGENT_EXTRA : 0);

	if (a->waiting < depth)
		return put(a->room, a->agent, a->name, &a->nudge, err);
	a->full = true;
	buf_clear(text);
	buf_addf(text, "Refused: %u\n", refused + 1);
	return MR_OK;
}

enum mr_rc
nudge_enqueue(struct mr_room *room, const char *agent, const struct mr_nudge *nudge, char ret_name[NUDGE_NAME_LEN + 1],
    bool *ret_coalesced, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	struct adding a = { .room = room, .agent = agent, .nudge = *nudge };
	bool urgent = nudge->priority == MR_URGENT;
	char random[9];

	a.nudge.at_ms = clock_now_ms();
	a.nudge.times = 1;
	if (a.nudge.expires_ms == 0) {
		const char *set = record_get(&room->settings, urgent ? "Nudge-Urgent-TTL" : "Nudge-TTL");
		int64_t ttl_ms;

		if (!set || !duration_parse(str_of(set), &ttl_ms) || ttl_ms <= 0)
			ttl_ms = urgent ? URGENT_TTL_MS : NORMAL_TTL_MS;
		a.nudge.expires_ms =
		    (a.nudge.not_before_ms > a.nudge.at_ms ? a.nudge.not_before_ms : a.nudge.at_ms) + ttl_ms;
	}
	random_hex(random, 8);
	(void)snprintf(
	    a.name, sizeof a.name, "%019" PRId64 "-%s", clock_now_ns(), random); /* sorted by the time of sending */
	if (record_edit_begin(&e, room, STATE_KIND, agent, STATE_NAME, err) != MR_OK ||
	    add_or_refuse(&a, &e.text, err) != MR_OK || record_edit_save(&e, err) != MR_OK)
		return mr_wrap(err, "cannot queue a nudge for '%s'", agent);
	if (a.full)
		return mr_fail(err, MR_REFUSED,
		    "cannot nudge '%s': %zu nudges wait for it already\n"
		    "it is told with the next nudge that it sees; send as mail what must not be lost: mailroom send %.80s",
		    agent, a.waiting, agent);
	memcpy(ret_name, a.name, sizeof a.name);
	*ret_coalesced = a.coalesced;
	return MR_OK;
}

/* ---- Nudges seen in another program's room ---- */

static enum mr_rc
open_seen(
    struct mr_room *room, const char *agent, bool make, int *ret_fd, struct hash_name *ret_name, struct mr_error *err)
{
	*ret_name = hash_name("%s\n%s", room->spec, agent);
	return office_state(room, SEEN_FOLDER, make, ret_fd, err);
}

static int64_t
last_seen_ms(struct mr_room *room, const char *agent)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct hash_name name;
	int64_t ms = INT64_MIN;

	if (open_seen(room, agent, false, &fd, &name, IGNORED) != MR_OK ||
	    file_read(fd, name.z, SEEN_MAX, &text, IGNORED) != MR_OK ||
	    !time_parse_rfc3339((struct mr_str){ buf_z(&text), strcspn(buf_z(&text), "\n") }, &ms))
		return INT64_MIN;
	return ms;
}

/* ---- Showing ---- */

struct entry {
	struct mr_nudge nudge;
	char name[NUDGE_NAME_LEN + 1]; /* "" in the room of another program */
};

struct mr_nudges {
	struct mr_room *room;
	char agent[MR_ADDRESS_MAX + 1];
	void *lock; /* NULL: only reading */
	struct entry *v;
	size_t n;
	unsigned refused;
	struct roll own; /* owns the strings */
};

struct sender_search {
	const char *from;
	int64_t at_ms;
	bool found;
};

static bool
stop_at_sender(void *ctx, const struct mr_message *msg)
{
	struct sender_search *s = ctx;

	s->found = !(msg->flags & MR_SEEN) && ascii_caseeq(msg->from, s->from) && id_time_ms(msg->id) <= s->at_ms;
	return !s->found;
}

/* It announced mail that was read or taken meanwhile. Later mail has a nudge of its own, or none. */
static bool
is_settled(const struct mr_nudges *all, const struct mr_nudge *nudge)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
	struct sender_search s = { .from = nudge->from, .at_ms = nudge->at_ms };

	return strcmp(nudge->kind, "mail") == 0 &&
	       office_scan(all->room, all->agent, &want, stop_at_sender, &s, IGNORED) == MR_OK && !s.found;
}

static void
add_one(struct mr_nudges *all, const char *name)
{
	struct entry *e = &all->v[all->n];
	int64_t now = clock_now_ms();

	if (strlen(name) > NUDGE_NAME_LEN || get(all->room, all->agent, name, &e->nudge, &all->own, IGNORED) != MR_OK)
		return;
	if (e->nudge.expires_ms <= now || is_settled(all, &e->nudge)) {
		if (all->lock)
			drop(all->room, all->agent, name);
		return;
	}
	if (e->nudge.not_before_ms > now)
		return;
	(void)snprintf(e->name, sizeof e->name, "%s", name);
	all->n++;
}

static int
urgent_first(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return ORDER(b->nudge.priority == MR_URGENT, a->nudge.priority == MR_URGENT) ?: strcmp(a->name, b->name);
}

static enum mr_rc
read_all(struct mr_nudges *all, bool take, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(buf_done) struct buf state = BUF_INIT;
	const struct room_driver *d = all->room->driver;
	const bool foreign = ROOM_FACE_HAS(all->room, nudge_get);

	if (!foreign)
		TRY(nudge_names(all->room, all->agent, &names, err));
	all->v = calloc(names.n + 1, sizeof *all->v);
	TRY(mr_got(all->v, err));
	if (foreign) {
		enum mr_rc rc = d->face->nudge_get(all->room, all->agent, &all->v[0].nudge, &all->own.own, err);

		TRY(mr_unless(rc, MR_NOTFOUND, err));
		all->n = rc == MR_OK && all->v[0].nudge.at_ms > last_seen_ms(all->room, all->agent);
	} else if (names.n > 0) {
		/* A nudge that another process removed before we had the lock is gone when we read it. */
		if (take)
			TRY(d->record_lock(all->room, NUDGE, all->agent, NUDGE_SHOWN, 0, &all->lock, err));
		for (size_t i = 0; i < names.n; i++)
			add_one(all, names.v[i]);
		qsort(all->v, all->n, sizeof *all->v, urgent_first);
		if (all->n > 0)
			(void)d->record_get(all->room, STATE_KIND, all->agent, STATE_NAME, &state, IGNORED);
		all->refused = refused_in(buf_str(&state));
	}
	return all->n > 0 ? MR_OK : mr_fail(err, MR_EMPTY, "no nudges for '%s'", all->agent);
}

enum mr_rc
mr_nudges_open(struct mr_room *room, const char *agent, bool take, struct mr_nudges **ret, struct mr_error *err)
{
	if (nudge_able(room, err) == MR_UNSUPPORTED)
		return mr_fail(err, MR_EMPTY, "no nudges for '%.160s'", agent);
	struct mr_nudges *all = calloc(1, sizeof *all);

	TRY(mr_got(all, err));
	all->room = room;
	text_join(all->agent, sizeof all->agent, agent, NULL);
	enum mr_rc rc = read_all(all, take, err);

	if (rc == MR_OK)
		*ret = all;
	else
		mr_nudges_close(all);
	return rc;
}

size_t
mr_nudges_count(const struct mr_nudges *nudges)
{
	return nudges ? nudges->n : 0;
}

const struct mr_nudge *
mr_nudges_get(const struct mr_nudges *nudges, size_t i)
{
	return &nudges->v[i].nudge;
}

const char *
nudges_name(const struct mr_nudges *nudges, size_t i)
{
	return nudges->v[i].name;
}

unsigned
mr_nudges_refused(const struct mr_nudges *nudges)
{
	return nudges ? nudges->refused : 0;
}

enum mr_rc
mr_nudges_shown(struct mr_nudges *nudges, size_t n, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	struct mr_room *room = nudges->room;

	if (n == 0)
		return MR_OK;
	if (ROOM_FACE_HAS(room, nudge_get)) {
		mr_auto(sys_close_fd) int fd = -1;
		struct time_text seen = time_text(nudges->v[0].nudge.at_ms);
		struct hash_name name;

		if (nudges->v[0].nudge.at_ms <= last_seen_ms(room, nudges->agent))
			return MR_OK;
		TRY(open_seen(room, nudges->agent, true, &fd, &name, err));
		return file_replace(fd, name.z, str_of(seen.z), 0600, err);
	}
	if (!nudges->lock)
		return mr_fail(err, MR_REFUSED, "these nudges were opened without taking them");
	for (size_t i = 0; i < n && i < nudges->n; i++) {
		TRY(mr_unless(
		    room->driver->record_drop(room, NUDGE, nudges->agent, nudges->v[i].name, err), MR_NOTFOUND, err));
	}
	if (nudges->refused > 0 &&
	    record_edit_begin(&e, room, STATE_KIND, nudges->agent, STATE_NAME, IGNORED) == MR_OK) {
		unsigned refused = refused_in(buf_str(&e.text));

		buf_clear(&e.text);
		buf_addf(&e.text, "Refused: %u\n", refused > nudges->refused ? refused - nudges->refused : 0);
		(void)record_edit_save(&e, IGNORED);
	}
	nudges->refused = 0;
	return MR_OK;
}

void
mr_nudges_close(struct mr_nudges *nudges)
{
	if (!nudges)
		return;
	if (nudges->lock)
		nudges->room->driver->record_unlock(nudges->room, nudges->lock);
	roll_done(&nudges->own);
	free(nudges->v);
	free(nudges);
}

bool
nudge_any_but(struct mr_room *room, const char *agent, const struct mr_names *names)
{
	struct mr_nudges *nudges = NULL;
	bool any = false;

	if (mr_nudges_open(room, agent, false, &nudges, IGNORED) == MR_OK)
		for (size_t i = 0; i < nudges->n && !any; i++)
			any = !names_has(names, nudges->v[i].name);
	mr_nudges_close(nudges);
	return any;
}
