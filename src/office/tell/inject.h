/* SPDX-License-Identifier: MIT */
/*
 * inject.h - what an agent is told by its hooks about mail that waits.
 *
 *	inject.c           what is to be told: unread mail that was not announced yet, nudges, overdue answers
 *	inject_memory.c    what was announced to this life already
 *	inject_reminder.c  as a block between <system-reminder> tags
 *	inject_teams.c     as <teammate-message> blocks, with texts
 *
 * A hook runs at every prompt, mostly for nothing: the names of unread mail are read, and only mail that is to be
 * listed is opened. What was told is remembered only after it was printed.
 */
#ifndef OFFICE_INJECT_H
#define OFFICE_INJECT_H

#include "office/office.h"

struct inject_item { /* strings live in the injection's arena */
	char id[MR_ID_LEN + 1];
	size_t place;                       /* mr_message.place */
	const char *from, *subject, *color; /* from as its people write it */
	enum mr_priority priority;
	bool unproven;      /* another user of the room may have written it in that name */
	bool handoff;       /* from oneself: the first thing to read */
	const char *broken; /* a control message that cannot be used: why; or NULL */
	struct mr_str body; /* only of what is shown with its text */
	bool listed;        /* by the renderer */
	bool told;          /* listed before, and told again */
	bool unreadable;    /* by anybody: subject says why, and the id may be made of its path */
};
struct inject_due {
	char id[MR_ID_LEN + 1];
	const char *to, *subject; /* to as its people write it */
};

struct announced {
	struct announced_id {
		char id[MR_ID_LEN + 1];
		bool again;      /* it is to be told until it is read: urgent, a hand-off */
		int64_t at_s;    /* when it was told last; 0: unknown */
		bool counted;    /* only as one of several more: it is still to be listed, but wakes nobody any more */
		bool unreadable; /* no mail that a command could show */
		bool own;        /* this life wrote it for the next one: known, and not counted either */
	} * v;                   /* sorted by id */
	size_t n, cap;
	bool fresh; /* nothing was remembered for this life */
};

struct mr_injection {
	struct mr_room *room;
	struct mr_self self;
	enum mr_inject_format format;
	bool urgent_only;          /* and only what is new */
	struct announced before;   /* told already */
	struct announced unread;   /* of those: what is still unread */
	struct inject_item *items; /* in the order in which they are told */
	size_t n, cap;
	bool whole;   /* there is one, and its text is short: it is shown, too */
	bool insist;  /* what was told a moment ago, too */
	size_t quiet; /* unread, told before, and not told again */
	struct inject_due *due;
	size_t due_n, due_cap;
	struct mr_nudges *nudges; /* or NULL */
	size_t nudges_shown;
	char mark[9];
	struct buf text;
	struct arena *own;
	bool failed; /* out of memory */
};

#define INJECT_LIST_MAX 10 /* lines of one list */
#define INJECT_AGAIN_S 60  /* so long what was told is not told again: a wake, its prompt and a tool are one request */
#define INJECT_SUBJECT_CHARS 120
#define INJECT_WHOLE_CHARS 600 /* one message that is no longer is shown with its text */
#define INJECT_NAME_CHARS 80
#define INJECT_NUDGE_CHARS 4000 /* after so many the other nudges wait; one is always shown whole */
#define INJECT_BODY_CHARS 1500  /* of one message */
#define INJECT_BODIES_CHARS 6000

/* ---- inject.c ---- */
/* As mr_inject_open; urgent mail and the hand-off are there, also if they were told a moment ago. */
enum mr_rc inject_open_insisting(struct mr_room *room, const struct mr_self *self, enum mr_inject_format format,
    struct mr_injection **ret, struct mr_error *err);

/* ---- inject_memory.c ---- */
/* Best effort: what cannot be remembered is announced again. */
void announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret);
const struct announced_id *announced_find(const struct announced *a, const char *id);
bool announced_listed(const struct announced *a, const char *id); /* there, and not only counted */
/* At the end; NULL: out of memory. */
struct announced_id *announced_add(struct announced *a, const char *id, bool again);
enum mr_rc announced_save(
    struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err);
void announced_done(struct announced *a);
/* The hand-off that this life just wrote: it need not be told of it, until its context is cleared. */
void announced_own(struct mr_room *room, const struct mr_self *self, const char *id);
void announced_forget(struct mr_room *room, const struct mr_self *self); /* all of it is told again */

/* ---- inject_reminder.c, inject_teams.c ---- */
void inject_reminder(struct mr_injection *inj);
void inject_teams(struct mr_injection *inj);
/* What is shown of a text, and counts: not the line breaks at its end. */
struct mr_str inject_trimmed(struct mr_str text);
/* "1 message", "3 urgent messages" */
void inject_count(struct buf *out, size_t n, const char *noun);

#endif
