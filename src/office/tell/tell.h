/* SPDX-License-Identifier: MIT */
/*
 * tell.h - what agents are told without asking, and what they were told already.
 *
 *	announced.c    which mail one life was told of
 *	confirm.c      was mail that a session's command showed also seen by its model
 *	inject.c       what hooks tell about mail that waits; reasons not to stop yet
 *	inject_text.c  the same as text, in two forms
 *	wake.c         waiting for something to wake an idle agent for, and telling it
 *	wake_limit.c   at most so many wakes in one direction of a thread: so that two polite agents stop
 *	escalate.c     trouble that somebody must see to
 *	show.c         mail is shown before it is consumed
 *	successor.c, worktree.c   an agent's note to its next life
 *
 * A hook runs at every prompt, mostly for nothing: the names of unread mail are read, and only mail that is to be
 * listed is opened. What was told is noted only after it was printed. May call mail, work, nudge, types and who.
 */
#ifndef OFFICE_TELL_H
#define OFFICE_TELL_H

#include "office/office.h"

/* ---- confirm.c ---- */

/* These are about to be consumed, for standard output took them. */
void confirm_note(struct mr_room *room, const struct mr_self *self, const struct claim *shown, size_t n);

/* ---- announced.c ---- */

enum announced_kind { /* the sign in its line */
	ANNOUNCED_ONCE = '=',
	ANNOUNCED_AGAIN = '+',      /* it is to be told until it is read: urgent, a note to the next life */
	ANNOUNCED_COUNTED = '-',    /* only as one of several more: it is still to be listed, but wakes nobody */
	ANNOUNCED_UNREADABLE = '!', /* no mail that a command could show */
	ANNOUNCED_OWN = '~',        /* this life wrote it for the next one: known, and not counted either */
	ANNOUNCED_LOGGED = 'l',     /* in the log: nothing but that it was told is known */
};
struct announced { /* what was announced to a life; finish with announced_done */
	struct announced_id {
		char id[MR_ID_LEN + 1];
		enum announced_kind kind;
		int64_t at_s;           /* when it was told last; 0: unknown */
		char door[MR_DOOR_MAX]; /* by what; "": unknown */
		bool still;             /* for the caller: it is still unread, */
		bool offered;           /* and among what may be told now */
	} * v;                          /* sorted by id */
	size_t n, cap;
	bool fresh;                 /* nothing was noted for this life */
	char state[SCAN_STATE_LEN]; /* of the inbox when all that was unread had been told; "" not known */
	size_t unread;              /* how much that was */
	struct buf log;             /* ids that are only known to be told, a line each; sorted, but for new ones */
	bool logged;                /* the log was read */
	bool log_changed, changed;  /* to be saved */
};
/* Best effort: what cannot be read is announced again. */
void announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret);
void announced_load_brief(struct mr_room *room, const struct mr_self *self, struct announced *ret); /* not the log */
void announced_load_log(struct mr_room *room, const struct mr_self *self, struct announced *a);     /* once */
/* The entry that is not in the log; NULL: there is none. */
struct announced_id *announced_known(const struct announced *a, const char *id);
/* Is it in the log? Then it is marked as still unread there. */
bool announced_still(struct announced *a, const char *id);
/* Lines of the log that are not so marked go: at once, or if they are most of it. */
void announced_forget_gone(struct announced *a, bool at_once);
void announced_log(struct announced *a, struct mr_str ids); /* adds lines to it */
void announced_drop(struct announced *a, const char *id);
struct announced_id *announced_find(const struct announced *a, const char *id);
bool announced_listed(const struct announced *a, const char *id); /* there, and not only counted */
/* The entry of that id, made where it is missing; NULL: out of memory. */
struct announced_id *announced_add(struct announced *a, const char *id);
enum mr_rc announced_save(
    struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err);
void announced_done(struct announced *a);
/* The note that this life just wrote: it need not be told of it, until its context is cleared. */
void announced_own(struct mr_room *room, const struct mr_self *self, const char *id);
void announced_forget(struct mr_room *room, const struct mr_self *self); /* all of it is told again */

/* ---- inject.c ---- */

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
struct mr_injection {
	struct mr_room *room;
	struct mr_self self;
	enum mr_inject_format format;
	enum mr_inject_what what;
	struct mr_names reasons;   /* not to stop: ids of urgent mail, tokens of claims */
	struct announced before;   /* told already */
	struct inject_item *items; /* in the order in which they are told */
	size_t n, cap;
	struct buf news;         /* ids that were never told, a line each */
	bool crowd;              /* more of them than are opened: the rest is told by its number, once */
	struct scan_state state; /* of the inbox, as this saw it */
	size_t total;            /* how much is unread, as names tell it */
	bool whole;              /* there is one, and its text is short: it is shown, too */
	size_t quiet;            /* unread, told before, and not told again */
	struct mr_dues dues;
	struct mr_nudges *nudges; /* or NULL */
	size_t nudges_shown;
	char mark[9];
	struct buf text;
	struct arena *own;
	bool failed; /* out of memory */
};

/* ---- inject_text.c ---- */

#define INJECT_LIST_MAX 10 /* lines of one list */
#define INJECT_SUBJECT_CHARS 120
#define INJECT_NAME_CHARS 80
#define INJECT_WHOLE_CHARS 600 /* one message that is no longer is shown with its text */
#define INJECT_BODY_CHARS 1500 /* of one message of a team */
#define INJECT_AGAIN_S 60 /* so long what was told is not told again: a wake, its prompt and a tool are one request */

void inject_reminder(struct mr_injection *inj);
void inject_teams(struct mr_injection *inj);
/* What is shown of a text, and counts: not the line breaks at its end. */
struct mr_str inject_trimmed(struct mr_str text);
/* "1 message", "3 urgent messages" */
void inject_count(struct buf *out, size_t n, const char *noun);

/* ---- wake_limit.c ---- */

#define WAKES "wakes" /* kind of record, and folder */
#define WAKE_LIMIT 30 /* in so much time, where the room has no Wake-Limit */
#define WAKE_WINDOW_MS ((int64_t)10 * 60 * 1000)
#define WAKE_LIMIT_MAX 100

struct wake_thread {
	char hash[65]; /* of the key */
	bool told;     /* the operator knows that it was too much */
	char name[81]; /* with told: the thread, as far as it is a word; or "" */
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
/* The whole thread, both directions. */
void wake_thread_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out);
/* Until when such mail wakes nobody; 0: it may wake now; WAKE_NEVER: a program wrote it, and the one before it in this
 * thread has woken somebody. After so many wakes it is quiet until the window has passed since the last one. */
#define WAKE_NEVER INT64_MAX
int64_t wakes_until(const struct wakes *w, const char *key);
bool wakes_told(const struct wakes *w, const char *thread); /* does the operator know that it was too much? */
/* One wake in each of these threads, now; or with `told`, that the operator knows of them. */
enum mr_rc wakes_note(struct mr_room *room, const struct mr_names *keys, bool told, struct mr_error *err);

/* ---- worktree.c ---- */

/* The worktree around that folder, or here; nothing outside of one. */
void worktree_describe(struct buf *out, const char *dir);

#endif
