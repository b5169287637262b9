/* SPDX-License-Identifier: MIT */
/*
 * bell.c - ringing for an idle session, and recording the result.
 *
 * A harness may present a ring as the user's own words. Such a ring holds the number of messages, their ids and the
 * command to run; no part of it was chosen by a sender. It becomes a prompt, and the prompt's hook answers it: the hook
 * tells what is new, as at any prompt, or, if all of it was read meanwhile, blocks the prompt, so that a ring that came
 * too late costs no call of the model. At most one such ring is open for a life. If it is not answered within REPEAT_MS
 * it is repeated, twice; after that it stays open until the session's next prompt, and `doctor` reports it. If a
 * harness does not present the ring as the user's words, the ring tells the mail itself and ends with that.
 *
 * The last BELLS of a life are kept in its told log, so that `why` can report which messages a bell rang for, and the
 * result. Two processes write, and neither waits for the other: the ringer writes "bell", the prompt that answers
 * "bell-end".
 *
 *	bell      <bell> <how> <rung ms> <ended ms> <times> <work> <door> <id> ...
 *	bell-end  <bell> <how> <ended ms>
 *
 * A ring is recorded as "ringing" before the door is tried, because its answer may come before the door returns. The
 * ringer holds a lock meanwhile, which ends with its process: "ringing" without the lock was cut off by a kill. That
 * ring may or may not have arrived, so it is rung again under the same id; if both arrive, the second is blocked.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <stdio.h>
#include <string.h>

#define BELL "bell"
#define BELL_END "bell-end"
#define RINGER "ringer" /* lock */
#define BELL_ID_LEN 6
#define BELLS 16
#define RING_START "mailroom bell "
#define IDS_SAID 5
#define REPEAT_MS ((int64_t)10 * 60 * 1000)
#define SAME_REQUEST_MS 10000
#define RINGS_MOST 3

static const struct {
	const char *word, *said;
} ends[] = {
	[MR_BELL_RINGING] = { "ringing", ", and cut off" },
	[MR_BELL_RUNG] = { "rung", ", not answered yet" },
	[MR_BELL_TOLD] = { "told", ", which told of it" },
	[MR_BELL_ANSWERED] = { "answered", ", answered at " },
	[MR_BELL_STALE] = { "stale", ", blocked as stale (it had been read) at " },
	[MR_BELL_UNTAKEN] = { "untaken", ", which did not take it, at " },
};
#define ENDS (sizeof ends / sizeof ends[0])

struct bell {
	char id[BELL_ID_LEN + 1];
	enum mr_bell_end how;
	int64_t rung_ms, ended_ms;
	unsigned times;
	unsigned work; /* it also says that work waits in a queue */
	char door[MR_DOOR_MAX];
	const char *ids; /* as in its line, each with a blank before it */
};
struct bells { /* the newest last; finish with bells_done */
	struct mr_names lines, over;
	struct bell v[BELLS];
	size_t n;
};

static void
bells_done(struct bells *b)
{
	mr_names_done(&b->lines);
	mr_names_done(&b->over);
}

static enum mr_bell_end
end_named(const char *word)
{
	size_t how = 0;

	while (how < MR_BELL_UNTAKEN && strcmp(ends[how].word, word) != 0)
		how++;
	return (enum mr_bell_end)how;
}

static void
load(struct mr_room *room, const struct mr_self *self, struct bells *ret)
{
	*ret = (struct bells){ 0 };
	told_words(room, self, BELL, &ret->lines);
	told_words(room, self, BELL_END, &ret->over);
	for (size_t i = ret->lines.n > BELLS ? ret->lines.n - BELLS : 0; i < ret->lines.n; i++) {
		struct bell b = { 0 };
		char how[16] = "";
		long long rung = 0, ended = 0;
		int len = 0;

		if (sscanf(ret->lines.v[i], "%6[0-9a-f] %15[a-z] %lld %lld %u %u %23[a-z-]%n", b.id, how, &rung, &ended,
			&b.times, &b.work, b.door, &len) != 7)
			continue;
		b.how = end_named(how);
		b.rung_ms = rung;
		b.ended_ms = ended;
		b.ids = ret->lines.v[i] + len;
		for (size_t j = 0; j < ret->over.n; j++)
			if (strncmp(ret->over.v[j], b.id, BELL_ID_LEN) == 0 &&
			    sscanf(ret->over.v[j] + BELL_ID_LEN, " %15[a-z] %lld", how, &ended) == 2) {
				b.how = end_named(how);
				b.ended_ms = ended;
			}
		ret->v[ret->n++] = b;
	}
}

static struct bell *
last(struct bells *b)
{
	return b->n > 0 ? &b->v[b->n - 1] : NULL;
}

/* Replaces the line of that bell, or appends one. */
static enum mr_rc
put_line(struct mr_room *room, const struct mr_self *self, const char *kind, const struct mr_names *lines,
    struct mr_str line, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };

	for (size_t i = lines->n >= BELLS ? lines->n - BELLS + 1 : 0; i < lines->n; i++)
		if (strncmp(lines->v[i], line.ptr, BELL_ID_LEN) != 0)
			TRY(mr_got(names_add(&all, str_of(lines->v[i])), err));
	TRY(mr_got(names_add(&all, line), err));
	return told_put_words(room, self, kind, &all, err);
}

static enum mr_rc
save(struct mr_room *room, const struct mr_self *self, const struct bells *all, const struct bell *b,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "%s %s %lld %lld %u %u %s%s", b->id, ends[b->how].word, (long long)b->rung_ms,
	    (long long)b->ended_ms, b->times, b->work, b->door, b->ids);
	return buf_ok(&line) ? put_line(room, self, BELL, &all->lines, buf_str(&line), err) : mr_nomem(err);
}

/* The ringer's lock is free: whatever it was doing was cut off. */
static bool
is_cut_off(struct mr_room *room, const struct mr_self *self, const struct bell *b)
{
	return b->how == MR_BELL_RINGING && nudge_lock_look(room, BELL, self->agent, RINGER) == MR_OK;
}

static void
compose(const struct bell *b, const struct bell_reason *why, char ret[MR_RING_MAX])
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, RING_START "%s: ", b->id);
	if (why->ids->n > 0)
		buf_addf(&text, "%zu%s new message%s (", why->ids->n, why->more ? " or more" : "",
		    why->ids->n == 1 ? "" : "s");
	for (size_t i = 0; i < why->ids->n && i < IDS_SAID; i++)
		buf_addf(&text, "%s%s", i > 0 ? ", " : "", why->ids->v[i]);
	if (why->ids->n > 0)
		buf_addf(&text, "%s). Run: mailroom drain", why->ids->n > IDS_SAID ? ", ..." : "");
	else
		buf_adds(&text,
		    why->work ? "work waits in a queue. Run: mailroom queue list" : "a nudge. Run: mailroom inbox");
	(void)snprintf(ret, MR_RING_MAX, "%s", buf_ok(&text) ? buf_z(&text) : "");
}

/* Recorded before it is rung, and again after. */
static enum mr_rc
ring_and_note(struct mr_room *room, const struct mr_self *self, const struct bells *all, struct bell *b, bool tells,
    const char *text, mr_ring_fn *ring, void *ctx, struct mr_error *err)
{
	TRY(save(room, self, all, b, err));
	enum mr_rc rc = ring(ctx, text, err);

	b->how = rc != MR_OK ? MR_BELL_UNTAKEN : tells ? MR_BELL_TOLD : MR_BELL_RUNG;
	b->ended_ms = b->how == MR_BELL_RUNG ? 0 : clock_now_ms();
	(void)save(room, self, all, b, IGNORED);
	return rc;
}

enum mr_rc
bell_ring(struct mr_room *room, const struct mr_self *self, const char *door, const struct bell_reason *why,
    mr_ring_fn *ring, void *ctx, struct mr_error *err)
{
	mr_auto(bells_done) struct bells all = { 0 };
	mr_auto(buf_done) struct buf ids = BUF_INIT;
	struct bell b = { .how = MR_BELL_RINGING, .rung_ms = clock_now_ms(), .times = 1, .work = why->work };
	char text[MR_RING_MAX];
	void *lock = NULL;

	if (ROOM_HAS(room, record_lock))
		TRY(room->driver->record_lock(
		    room, BELL, self->agent, RINGER, 0, &lock, err)); /* MR_BUSY: another process is ringing */
	load(room, self, &all);
	const struct bell *before = last(&all);

	random_hex(b.id, BELL_ID_LEN);
	if (before && before->how == MR_BELL_RINGING && lock)
		memcpy(b.id, before->id, sizeof b.id); /* cut off */
	else if (before && before->how <= MR_BELL_RUNG)
		b.times = before->times + 1;
	(void)snprintf(b.door, sizeof b.door, "%s", door);
	for (size_t i = 0; i < why->ids->n; i++)
		buf_addf(&ids, " %s", why->ids->v[i]);
	b.ids = buf_z(&ids);
	compose(&b, why, text);
	enum mr_rc rc = MR_OK;

	if (!buf_ok(&ids) || !text[0])
		rc = mr_nomem(err);
	else if (!why->tells && b.times > 1 &&
		 (before->times >= RINGS_MOST || clock_now_ms() - before->rung_ms < REPEAT_MS))
		rc = mr_fail(err, MR_BUSY, "the last ring of '%s' was not answered yet", self->agent);
	else
		rc = ring_and_note(
		    room, self, &all, &b, why->tells != NULL, why->tells ? why->tells : text, ring, ctx, err);
	if (lock)
		room->driver->record_unlock(room, lock);
	return rc;
}

bool
mr_bell_open(struct mr_room *room, const struct mr_self *self)
{
	mr_auto(bells_done) struct bells all = { 0 };

	load(room, self, &all);
	const struct bell *b = last(&all);
	return b && b->how <= MR_BELL_RUNG && !is_cut_off(room, self, b) &&
	       (b->times >= RINGS_MOST || clock_now_ms() - b->rung_ms < REPEAT_MS);
}

/* If the start of the session told of the mail just now, this prompt belongs to the same request: it must reach the
 * model. */
bool
mr_bell_is(struct mr_room *room, const struct mr_self *self, const char *prompt, bool *ret_keep)
{
	mr_auto(bells_done) struct bells all = { 0 };
	size_t start = strlen(RING_START);

	if (strncmp(prompt, RING_START, start) != 0)
		return false;
	load(room, self, &all);
	const struct bell *b = last(&all);

	if (!b || b->how == MR_BELL_UNTAKEN || strncmp(prompt + start, b->id, BELL_ID_LEN) != 0 ||
	    prompt[start + BELL_ID_LEN] != ':')
		return false;
	*ret_keep = b->work != 0 || (b->how == MR_BELL_ANSWERED && clock_now_ms() - b->ended_ms < SAME_REQUEST_MS);
	return true;
}

void
mr_bell_end(struct mr_room *room, const struct mr_self *self, enum mr_bell_end how)
{
	mr_auto(bells_done) struct bells all = { 0 };
	char line[48];

	load(room, self, &all);
	const struct bell *b = last(&all);

	if (!b || b->how > MR_BELL_RUNG)
		return;
	(void)snprintf(line, sizeof line, "%s %s %lld", b->id, ends[how].word, (long long)clock_now_ms());
	(void)put_line(room, self, BELL_END, &all.over, str_of(line), IGNORED);
}

void
bell_since(struct mr_room *room, const char *agent, int64_t since_ms, struct mr_nudged *ret)
{
	mr_auto(bells_done) struct bells all = { 0 };
	struct mr_self self = { 0 };

	if (agent_life_of(room, agent, &self))
		load(room, &self, &all);
	const struct bell *b = last(&all);

	if (!b || (b->rung_ms < since_ms && b->how > MR_BELL_RUNG))
		return;
	(void)snprintf(ret->bell, sizeof ret->bell, "%s", b->door);
	(void)snprintf(ret->came, sizeof ret->came, "%s", ends[b->how].word);
}

bool
bell_of(struct mr_room *room, const struct mr_self *self, const char *id, struct buf *out, int64_t *ret_at_ms)
{
	mr_auto(bells_done) struct bells all = { 0 };
	size_t found = 0;

	load(room, self, &all);
	for (size_t i = 0; i < all.n; i++) {
		const struct bell *b = &all.v[i];

		if (*id ? !strstr(b->ids, id) : i + 1 < all.n || b->how > MR_BELL_RUNG || b->times < RINGS_MOST)
			continue;
		buf_adds(out, found++ > 0 ? "; " : "");
		buf_addf(out, "rung by %s at %s", b->door, time_text(b->rung_ms).z);
		if (b->times > 1)
			buf_addf(out, ", for the %u. time", b->times);
		buf_adds(out, ends[b->how].said);
		if (b->how > MR_BELL_TOLD)
			buf_adds(out, time_text(b->ended_ms).z);
		*ret_at_ms = b->rung_ms;
	}
	return found > 0;
}
