/* SPDX-License-Identifier: MIT */
/*
 * tell.h - what agents are told without asking, and what they were told already.
 *
 *	announced.c    the mail that a life was told of
 *	confirm.c      whether the model saw the mail that a command of its session showed
 *	inject.c       what hooks tell about waiting mail; reasons not to stop yet
 *	inject_text.c  the same as text, in two forms
 *	wake.c         waiting for a reason to wake an idle agent, and telling it
 *	wake_limit.c   limits the wakes in one direction of a thread, so that two polite agents stop
 *	escalate.c     trouble that a person or agent must act on
 *	show.c         mail is shown before it is consumed
 *	successor.c, worktree.c   an agent's note to its next life
 *
 * A hook runs at every prompt, usually with nothing to tell: it reads the names of unread mail, and opens only mail
 * that is to be listed. News is recorded as told only after it was printed. May call mail, work, nudge, types, who and
 * address.
 */
#ifndef OFFICE_TELL_H
#define OFFICE_TELL_H

#include "office/office.h"

/* ---- confirm.c ---- */

/* Standard output took these messages; they are about to be consumed. */
void confirm_note(struct mr_room *room, const struct mr_self *self, const struct claim *shown, size_t n);

/* ---- announced.c ---- */

enum announced_kind { /* the sign in its line */
	ANNOUNCED_ONCE = '=',
	ANNOUNCED_AGAIN = '+',      /* to be told until it is read: urgent mail, a note to the next life */
	ANNOUNCED_COUNTED = '-',    /* told only by number: it is still to be listed, but wakes nobody */
	ANNOUNCED_UNREADABLE = '!', /* a file that no command can show as mail */
	ANNOUNCED_OWN = '~',        /* this life wrote it for the next one: neither told nor counted */
	ANNOUNCED_LOGGED = 'l',     /* in the log: nothing is known but that it was told */
};
struct announced { /* the mail that was announced to a life; finish with announced_done */
	struct announced_id {
		char id[MR_ID_LEN + 1];
		enum announced_kind kind;
		int64_t at_s;           /* the last notice; 0: unknown */
		char door[MR_DOOR_MAX]; /* its door; "": unknown */
		bool still;             /* for the caller: it is still unread, */
		bool offered;           /* and it may be told now */
	} * v;                          /* sorted by id */
	size_t n, cap;
	bool fresh;                 /* nothing was recorded for this life */
	char state[SCAN_STATE_LEN]; /* of the inbox when all unread mail had been told; "": unknown */
	size_t unread;              /* number of that mail */
	struct buf log;             /* ids that are only known to be told, a line each; sorted, except new ones */
	bool logged;                /* the log was read */
	bool log_changed, changed;  /* they must be saved */
};
/* Best effort: what cannot be read is announced again. */
void announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret);
void announced_load_brief(
    struct mr_room *room, const struct mr_self *self, struct announced *ret); /* without the log */
void announced_load_log(
    struct mr_room *room, const struct mr_self *self, struct announced *a); /* reads it at most once */
/* The entry outside of the log; NULL: there is none. */
struct announced_id *announced_known(const struct announced *a, const char *id);
/* Is it in the log? Then marks it as still unread. */
bool announced_still(struct announced *a, const char *id);
/* Removes unmarked lines of the log: at once, or if they are most of it. */
void announced_forget_gone(struct announced *a, bool at_once);
void announced_log(struct announced *a, struct mr_str ids); /* adds lines to it */
void announced_drop(struct announced *a, const char *id);
struct announced_id *announced_find(const struct announced *a, const char *id);
bool announced_listed(const struct announced *a, const char *id); /* told, and not only counted */
/* The entry of that id; makes it if it is missing. NULL: out of memory. */
struct announced_id *announced_add(struct announced *a, const char *id);
enum mr_rc announced_save(
    struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err);
void announced_done(struct announced *a);
/* The note that this life just wrote: it need not be told, until the context is cleared. */
void announced_own(struct mr_room *room, const struct mr_self *self, const char *id);
void announced_forget(struct mr_room *room, const struct mr_self *self); /* everything is told again */

/* ---- inject.c ---- */

struct inject_item { /* the injection's arena holds the strings */
	char id[MR_ID_LEN + 1];
	size_t place;                       /* mr_message.place */
	const char *from, *subject, *color; /* from: in the spelling that people use */
	enum mr_priority priority;
	bool unproven;      /* another user of the room may have written it under that name */
	bool handoff;       /* from the agent itself: to be read first */
	const char *broken; /* why a control message cannot be used; or NULL */
	struct mr_str body; /* only if it is shown with its text */
	bool listed;        /* by inject_text.c */
	bool told;          /* listed before, and repeated */
	bool unreadable;    /* nobody can read it: subject says why, and the id may be made of its path */
};
struct mr_injection {
	struct mr_room *room;
	struct mr_self self;
	enum mr_inject_format format;
	enum mr_inject_what what;
	struct mr_names reasons;   /* reasons not to stop: ids of urgent mail, tokens of claims */
	struct announced before;   /* told already */
	struct inject_item *items; /* in the order of the text */
	size_t n, cap;
	struct buf news;         /* ids that were never told, a line each */
	bool crowd;              /* there are more new ones than are opened: the rest is told by number, once */
	struct scan_state state; /* of the inbox during this look */
	size_t total;            /* unread mail by its names */
	bool whole;              /* a single message with a short text, which is shown */
	size_t quiet;            /* unread, told before, and not repeated */
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
#define INJECT_WHOLE_CHARS 600 /* a single message up to this length is shown with its text */
#define INJECT_BODY_CHARS 1500 /* of one message of a team */
#define INJECT_AGAIN_S 60      /* nothing is repeated within this time: a wake, its prompt and a tool are one request */

void inject_reminder(struct mr_injection *inj);
void inject_teams(struct mr_injection *inj);
/* The text without the line breaks at its end, as it is shown and counted. */
struct mr_str inject_trimmed(struct mr_str text);
/* "1 message", "3 urgent messages" */
void inject_count(struct buf *out, size_t n, const char *noun);

/* ---- wake_limit.c ---- */

#define WAKES "wakes" /* kind of record, and folder */
#define WAKE_LIMIT 30 /* wakes in the window, if the room has no Wake-Limit */
#define WAKE_WINDOW_MS ((int64_t)10 * 60 * 1000)
#define WAKE_LIMIT_MAX 100

struct wake_thread {
	char hash[65]; /* of the key */
	bool told;     /* the operator was told that there were too many */
	char name[81]; /* with told: the thread, if it is a word; or "" */
	int64_t at_ms[WAKE_LIMIT_MAX];
	size_t n; /* the newest, sorted */
};
struct wake_rule {
	size_t limit;
	int64_t window_ms;
};
/* Reads a line such as "30/10m"; false: it is wrong, and the default counts. NULL: the default. */
bool wake_rule_parse(const char *line, struct wake_rule *ret);
struct wakes { /* of a room, during the last day; finish with wakes_done */
	struct wake_thread *v;
	size_t n, cap;
	struct wake_rule rule;
};
void wakes_load(struct mr_room *room, struct wakes *ret); /* best effort: none if unreadable */
void wakes_done(struct wakes *w);
/* The unit that is counted: mail from one agent to another in a thread; in a room without threads, all mail from one to
 * the other. */
void wake_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out);
/* The key of the whole thread, both directions. */
void wake_thread_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out);
/* The time until such mail wakes nobody; 0: it may wake now; WAKE_NEVER: a program wrote it, and the last mail in this
 * thread has woken an agent already. After too many wakes nothing wakes until the window has passed since the last
 * one. */
#define WAKE_NEVER INT64_MAX
int64_t wakes_until(const struct wakes *w, const char *key);
bool wakes_told(const struct wakes *w, const char *thread); /* was the operator told that there were too many? */
/* Records one wake in each of these threads, now; or with `told`, that the operator was told of them. */
enum mr_rc wakes_note(struct mr_room *room, const struct mr_names *keys, bool told, struct mr_error *err);

/* ---- worktree.c ---- */

/* Describes the worktree around that folder, or around the working folder; nothing outside of one. */
void worktree_describe(struct buf *out, const char *dir);

#endif
