/* SPDX-License-Identifier: MIT */
/*
 * operator.h - what the person in charge of the agents sees. Nothing here changes a room.
 *
 *	attention.c   what needs a person now: judged by names, kind by kind, the most pressing kept
 *	picture.c     who told whom: a thread or a span of time, for src/picture to draw
 *	needs.c       one need: opening what it is about, the evidence, what can be done
 *	why.c         what happened to a message
 *
 * May call everything but room; only doors call it.
 */
#ifndef OFFICE_OPERATOR_H
#define OFFICE_OPERATOR_H

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/id.h"
#include "office/mail/mail.h"
#include "office/work/work.h"

/* What a need is judged by beyond its public part. */
struct need {
	struct mr_need is;
	const char *to;    /* MR_NEED_OVERDUE: who was asked */
	const char *token; /* MR_NEED_LEASE, _ATTEMPT */
	unsigned attempt, attempts;
	bool over;           /* the claim is: its holder is gone, or its time is up and nobody is seen to hold it */
	struct mr_error err; /* MR_NEED_LINK, _UNREADABLE */
};

struct needs { /* of a room, as they are gathered; finish with needs_done */
	struct mr_room *room;
	int64_t now_ms, unread_ms;
	size_t limit;
	struct roll own;                  /* what the strings live in */
	struct need *kept[MR_NEED_KINDS]; /* `limit` places each, the most pressing first */
	size_t n[MR_NEED_KINDS], total[MR_NEED_KINDS];
};
/* ---- needs.c ---- */

/* Opens what it is about, and fills in evidence and actions. False: it is settled by now. A message that cannot be read
 * becomes MR_NEED_UNREADABLE. */
bool need_describe(struct needs *g, struct need *need);

/* ---- why.c: evidence, each a part of a sentence ---- */

/* "; life 2 of 'bob' is live, last seen 3m ago": would the agent read its mail? */
void why_presence(struct buf *out, struct mr_room *room, const char *agent);
/* "listed to life 2 of 'bob' at TIME"; false: that life was not told of it, as far as anybody knows. */
bool why_announced(struct buf *out, struct mr_room *room, const char *agent, const char *id, int64_t *ret_at_ms);
/* "claimed from queue 'q' at TIME (attempt 3), failed at TIME: 'reason'"; returns the state in a word. */
const char *why_past_claim(struct buf *out, const struct past_claim *past);

#endif
