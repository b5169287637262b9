/* SPDX-License-Identifier: MIT */
/*
 * bell.c - ringing for a session whose harness takes a ring for the user's own words.
 *
 * Such a ring says how many messages there are, their ids, and what to run; nothing of it was chosen by a sender. It
 * becomes a prompt, and the prompt's hook answers it: it tells what is new, as at any prompt, or, when all of it was
 * read meanwhile, blocks the prompt, so that a ring that came too late costs no call of the model.
 *
 * At most one ring is open for a life. One that nobody answered within REPEAT_MS is repeated, twice; after that it
 *stays open until the session's next prompt, and `doctor` says that nobody answers. The ring is kept in the told log of
 *the life, so that `why` can tell which messages were rung for, and what came of it:
 *
 *	<bell> <how> <rung ms> <ended ms> <times> <work> <door>
 *	<id> ...
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/tell/tell.h"
#include <stdio.h>
#include <string.h>

#define BELL "bell"
#define BELL_ID_LEN 6
#define RING_START "mailroom bell "
#define IDS_SAID 5
#define REPEAT_MS ((int64_t)10 * 60 * 1000)
#define RINGS_MOST 3

static const char *const words[] = { [MR_BELL_RUNG] = "rung",
	[MR_BELL_ANSWERED] = "answered",
	[MR_BELL_STALE] = "stale",
	[MR_BELL_UNTAKEN] = "untaken" };

struct bell { /* finish with bell_done */
	char id[BELL_ID_LEN + 1];
	enum mr_bell_end how;
	int64_t rung_ms, ended_ms;
	unsigned times;
	unsigned work; /* it also says that work waits in a queue */
	char door[24];
	struct mr_names ids;
};

static void
bell_done(struct bell *b)
{
	mr_names_done(&b->ids);
}

/* False: none was rung for this life, or what is noted cannot be read. */
static bool
load(struct mr_room *room, const struct mr_self *self, struct bell *ret)
{
	mr_auto(mr_names_done) struct mr_names lines = { 0 };
	char how[16] = "";
	long long rung = 0, ended = 0;

	*ret = (struct bell){ 0 };
	told_words(room, self, BELL, &lines);
	if (lines.n == 0 || sscanf(lines.v[0], "%6[0-9a-f] %15[a-z] %lld %lld %u %u %23[a-z-]", ret->id, how, &rung,
				&ended, &ret->times, &ret->work, ret->door) != 7)
		return false;
	ret->rung_ms = rung;
	ret->ended_ms = ended;
	while (ret->how < MR_BELL_UNTAKEN && strcmp(words[ret->how], how) != 0)
		ret->how++;
	for (size_t i = 1; i < lines.n; i++)
		if (!names_add(&ret->ids, str_of(lines.v[i])))
			return false;
	return true;
}

static enum mr_rc
save(struct mr_room *room, const struct mr_self *self, const struct bell *b, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names lines = { 0 };
	char first[160];

	(void)snprintf(first, sizeof first, "%s %s %lld %lld %u %u %s", b->id, words[b->how], (long long)b->rung_ms,
	    (long long)b->ended_ms, b->times, b->work, b->door);
	TRY(mr_got(names_add(&lines, str_of(first)), err));
	for (size_t i = 0; i < b->ids.n; i++)
		TRY(mr_got(names_add(&lines, str_of(b->ids.v[i])), err));
	return told_put_words(room, self, BELL, &lines, err);
}

static bool
is_open(const struct bell *b)
{
	return b->how == MR_BELL_RUNG && (b->times >= RINGS_MOST || clock_now_ms() - b->rung_ms < REPEAT_MS);
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

enum mr_rc
bell_ring(struct mr_room *room, const struct mr_self *self, const char *door, const struct bell_reason *why,
    mr_ring_fn *ring, void *ctx, struct mr_error *err)
{
	mr_auto(bell_done) struct bell last = { 0 };
	struct bell b = {
		.how = MR_BELL_RUNG, .rung_ms = clock_now_ms(), .times = 1, .work = why->work, .ids = *why->ids
	};
	char text[MR_RING_MAX];

	if (load(room, self, &last) && last.how == MR_BELL_RUNG) {
		if (is_open(&last))
			return mr_fail(err, MR_BUSY, "the last ring for '%s' is not answered yet", self->agent);
		b.times = last.times + 1;
	}
	random_hex(b.id, BELL_ID_LEN);
	(void)snprintf(b.door, sizeof b.door, "%s", door);
	compose(&b, why, text);
	TRY(mr_got(text[0] != '\0', err));
	TRY(save(room, self, &b, err)); /* before it is rung: its answer may be quicker than we are */
	if (ring(ctx, text, err) == MR_OK)
		return MR_OK;
	b.how = MR_BELL_UNTAKEN;
	b.ended_ms = clock_now_ms();
	(void)save(room, self, &b, IGNORED);
	return err->code;
}

bool
mr_bell_open(struct mr_room *room, const struct mr_self *self)
{
	mr_auto(bell_done) struct bell b = { 0 };

	return load(room, self, &b) && is_open(&b);
}

bool
mr_bell_is(struct mr_room *room, const struct mr_self *self, const char *prompt, bool *ret_work)
{
	mr_auto(bell_done) struct bell b = { 0 };
	size_t start = strlen(RING_START);

	if (strncmp(prompt, RING_START, start) != 0 || !load(room, self, &b) || b.how == MR_BELL_UNTAKEN ||
	    strncmp(prompt + start, b.id, BELL_ID_LEN) != 0 || prompt[start + BELL_ID_LEN] != ':')
		return false;
	*ret_work = b.work != 0;
	return true;
}

void
mr_bell_end(struct mr_room *room, const struct mr_self *self, enum mr_bell_end how)
{
	mr_auto(bell_done) struct bell b = { 0 };

	if (!load(room, self, &b) || b.how != MR_BELL_RUNG)
		return;
	b.how = how;
	b.ended_ms = clock_now_ms();
	(void)save(room, self, &b, IGNORED);
}

bool
bell_of(struct mr_room *room, const struct mr_self *self, const char *id, struct buf *out, int64_t *ret_at_ms)
{
	mr_auto(bell_done) struct bell b = { 0 };
	char at[RFC3339_LEN + 1];

	if (!load(room, self, &b) || (*id && !names_has(&b.ids, id)))
		return false;
	*ret_at_ms = b.rung_ms;
	time_rfc3339(b.rung_ms, at);
	buf_addf(out, "rung by %s at %s", b.door, at);
	if (b.times > 1)
		buf_addf(out, ", for the %u. time", b.times);
	time_rfc3339(b.ended_ms, at);
	if (b.how == MR_BELL_RUNG)
		buf_adds(out, ", not answered yet");
	else
		buf_addf(out,
		    b.how == MR_BELL_ANSWERED ? ", answered at %s"
		    : b.how == MR_BELL_STALE  ? ", read before it was answered, at %s"
					      : ", which did not take it, at %s",
		    at);
	return *id || (b.how == MR_BELL_RUNG && b.times >= RINGS_MOST);
}
