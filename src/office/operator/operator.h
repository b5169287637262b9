/* SPDX-License-Identifier: MIT */
/*
 * operator.h - what the person in charge of the agents is shown. Nothing here changes a room.
 *
 *	attention.c   the list of what needs a person now: judged by names, the most pressing of each kind
 *	picture.c     who told whom: a thread or a span of time, for src/picture to draw
 *	needs.c       one need: opens its message, gives evidence and actions
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

/* A need with the data by which it is judged. */
struct need {
	struct mr_need is;
	const char *to;    /* MR_NEED_OVERDUE: the agent that was asked */
	const char *token; /* MR_NEED_LEASE, _ATTEMPT */
	unsigned attempt, attempts;
	bool over;           /* the claim is over: its holder is gone, or its time is up and no live holder is seen */
	struct mr_error err; /* MR_NEED_LINK, _UNREADABLE */
};

struct needs { /* of a room, while they are gathered; finish with needs_done */
	struct mr_room *room;
	int64_t now_ms, unread_ms;
	size_t limit;
	struct roll own;                  /* owns the strings */
	struct need *kept[MR_NEED_KINDS]; /* `limit` places each, the most pressing first */
	size_t n[MR_NEED_KINDS], total[MR_NEED_KINDS];
};
/* ---- needs.c ---- */

/* Opens the message and fills in evidence and actions. False: it is settled by now. An unreadable message becomes
 * MR_NEED_UNREADABLE. */
bool need_describe(struct needs *g, struct need *need);

/* ---- why.c: evidence, each a part of a sentence ---- */

/* "; life 2 of 'bob' is live, last seen 3m ago": would the agent read its mail? */
void why_presence(struct buf *out, struct mr_room *room, const char *agent);
/* "listed to life 2 of 'bob' at TIME"; false: nothing shows that this life was told of it. */
bool why_announced(struct buf *out, struct mr_room *room, const char *agent, const char *id, int64_t *ret_at_ms);
/* "claimed from queue 'q' at TIME (attempt 3), failed at TIME: 'reason'"; returns the state, a word. */
const char *why_past_claim(struct buf *out, const struct past_claim *past);

#endif
