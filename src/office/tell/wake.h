/* SPDX-License-Identifier: MIT */
/*
 * wake.h - waking idle agents, and when not to.
 *
 *	wake.c        waiting for something to wake an agent for, and telling it
 *	wake_look.c   what an agent is woken for: mail, nudges, work
 *	wake_limit.c  at most so many wakes in one direction of a thread: two polite agents must not thank each other
 *	              all night
 */
#ifndef OFFICE_WAKE_H
#define OFFICE_WAKE_H

#include "office/tell/inject.h"

/* ---- wake_limit.c ---- */
#define WAKES "wakes" /* kind of record, and folder */
#define WAKE_LIMIT 30 /* in so much time, where the room has no Wake-Limit */
#define WAKE_WINDOW_MS ((int64_t)10 * 60 * 1000)
#define WAKE_LIMIT_MAX 100

struct wake_thread {
	char hash[65]; /* of the key */
	bool told;     /* the operator knows that it was too much */
	int64_t at_ms[WAKE_LIMIT_MAX];
	size_t n; /* the newest, in order */
};
struct wake_rule {
	size_t limit;
	int64_t window_ms;
};
/* Of a line such as "30/10m"; false: it is none, and the usual one counts. NULL is the usual one. */
bool wake_rule_parse(const char *line, struct wake_rule *ret);
struct wakes { /* of a room, in the last day; finish with wakes_done */
	struct wake_thread *v;
	size_t n, cap;
	struct wake_rule rule;
};
void wakes_load(struct mr_room *room, struct wakes *ret); /* best effort: none */
void wakes_done(struct wakes *w);
/* What is counted: mail from one to another in a thread; where a room has none, all that one writes to another. */
void wake_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out);
void wake_nudge_key(const char *from, const char *agent, struct buf *out);
/* Until when such mail wakes nobody; 0: it may wake now; WAKE_NEVER: a program wrote it, and the one before it in this
 * thread has woken somebody. After so many wakes it is quiet until the window has passed since the last one. */
#define WAKE_NEVER INT64_MAX
int64_t wakes_until(const struct wakes *w, const char *key);
/* The whole thread, both directions: does the operator know that it was too much? */
void wake_thread_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out);
bool wakes_told(const struct wakes *w, const char *thread);
/* One wake in each of these threads, now. */
enum mr_rc wakes_count(struct mr_room *room, const struct mr_names *keys, struct mr_error *err);
enum mr_rc wakes_note_told(struct mr_room *room, const char *key, struct mr_error *err);

/* ---- wake_look.c ---- */
struct wake_look { /* finish with wake_look_done */
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_wake_options *options;
	struct announced before;
	struct wakes wakes;
	struct mr_names keys;   /* threads of what wakes */
	struct mr_names offers; /* work that could be claimed, the first of each queue */
	struct mr_names told;   /* of it, what this life was offered before */
	struct mr_names queues; /* with work that was not */
	bool nudged;
	bool failed; /* out of memory */
};
/* Nothing for one who is not to be disturbed. MR_REFUSED: the life is fenced. */
enum mr_rc wake_look(struct wake_look *l, struct mr_error *err);
bool wake_found(const struct wake_look *l);
void wake_look_done(struct wake_look *l);
/* Such mail came too often: one message to the operator, whoever finds it first. */
void wake_tell_operator(struct wake_look *l, const struct mr_message *msg, const char *agent);
#define WAKE_OFFERED "offered" /* kind of memory: "<queue>/<id>.<attempt>" */

#endif
