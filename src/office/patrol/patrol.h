/* SPDX-License-Identifier: MIT */
/*
 * patrol.h - acting on mail without a model: what the files of the patrol share.
 *
 *	patrol.c           one round; Patrol-NAME: lines of the room's settings, and which handler a type has
 *	patrol_message.c   one message: judge it, take it, run its handler, or give it up
 *	patrol_run.c       commands: words, environment, time limit
 *	patrol_notes.c     what a patrol knows: records of the room, or files outside; the state of a message; the log
 *	patrol_care.c      alerts, wakes, leases, overdue answers, channels, archive
 *	dispatch.c         work that is kept elsewhere (beads): giving it to a worker, and again if that one is lost
 *
 * May call mail, work, types, rules, who, address and nudge. Others call it for the words of a command.
 *
 * The order that makes it safe: a message is taken (no other process has it); "running" is recorded with the process of
 * its handler before the handler's first instruction; "handled" is recorded after its success; only then the message is
 * acknowledged. A kill leaves one of three states: "running" and the process exists: wait for it; "running" and it is
 * gone: run the handler again with the next attempt number; "handled": acknowledge the message.
 */
#ifndef OFFICE_PATROL_H
#define OFFICE_PATROL_H

#include "base/spawn.h"
#include "office/office.h"
#include "office/types/types.h"

struct patrol_settings {
	const char *escalate_to, *alert_to;
	int64_t escalate_after; /* 0: never */
	int64_t time_limit_ms, stale_after_ms, archive_after_ms, keep_ms;
	struct mr_names watch;       /* patterns of agents */
	struct mr_names stale_guard; /* types; or "all", "none" */
	bool wake, channels, leases, overdue;
	struct arena *own;
};
struct patrol {
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_patrol_options *options;
	struct patrol_settings set;
	struct mr_patrolled count;
};

/* ---- patrol.c ---- */
/* Calls options->fn with the time filled in, and "" for strings that are NULL. */
void patrol_tell(const struct patrol *p, struct mr_patrol_step step);
/* The command for that type: of the command line, else of the user's configuration; "": none. */
const char *patrol_handler(const struct patrol *p, const struct type_def *def);

/* ---- patrol_notes.c: like the records of a room; owner is an agent or "" ---- */
enum mr_rc notes_able(const struct mr_room *room, struct mr_error *err);
enum mr_rc notes_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err); /* durable */
/* Empty if there is none or it cannot be read. */
enum mr_rc notes_load(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err);
struct notes_lock { /* finish with notes_unlock; { .fd = -1 }: not locked */
	struct mr_room *room;
	void *held; /* a record's lock, */
	int fd;     /* or that of a file outside the room */
};
/* Locks all records of that kind and owner. MR_BUSY: another process has the lock. */
enum mr_rc notes_lock(struct mr_room *room, const char *kind, const char *owner, int64_t wait_ms,
    struct notes_lock *ret, struct mr_error *err);
void notes_unlock(struct notes_lock *lock);

#define NOTE_KIND "handled"
#define NOTES_WAIT_MS 10000 /* for notes_lock */
enum note_state { NOTE_NEW, NOTE_RUNNING, NOTE_HANDLED, NOTE_FAILED, NOTE_ASIDE, NOTE_BROKEN, NOTE_DEAD };
struct note { /* the state of one message; finish with note_done */
	enum note_state state;
	unsigned attempt;  /* how often its handler was started */
	unsigned failures; /* how often that failed */
	struct mr_process process;
	int64_t until_ms; /* NOTE_RUNNING: its time limit */
	int64_t at_ms;    /* of the state */
	int64_t first_ms; /* when its handler was started for the first time */
	const char *type, *from, *handler, *result;
	struct mr_names did; /* "TIME ATTEMPT WORD TEXT", the oldest first */
	struct record lines; /* owns the strings */
};
void note_done(struct note *note);
/* None: MR_OK, NOTE_NEW. */
enum mr_rc note_load(struct mr_room *room, const char *agent, const char *id, struct note *ret, struct mr_error *err);
/* Durable. */
enum mr_rc note_save(
    struct mr_room *room, const char *agent, const char *id, const struct note *note, struct mr_error *err);
/* Changes the state and adds a line to its history. `word` as in mr_patrol_step.what. */
enum mr_rc note_turn(
    struct note *note, enum note_state state, const char *word, const char *result, struct mr_error *err);

/* An event that concerns no message: reported, counted and recorded. */
void patrol_event(struct patrol *p, const char *what, const char *type, const char *fmt, ...) MR_PRINTF(4, 5);
/* Removes notes of messages that were finished long ago. Best effort. */
void patrol_forget_old(struct patrol *p);

/* ---- patrol_message.c ---- */
struct errand { /* one message on its way */
	struct patrol *p;
	struct mr_message msg;
	const struct type_def *def;
	const char *command; /* before its fields are filled in */
	struct type_values values;
	struct buf line; /* the command, filled in, for people */
	struct note note;
	struct claim claim; /* in a room with claims, once taken */
	bool taken;
};
/* Handles one message. MR_OK whatever happens to that message; any other result ends the round. */
enum mr_rc patrol_message(struct patrol *p, const char *id, struct mr_error *err);

/* ---- patrol_run.c ---- */
/* Sends mail of a patrol, under a key if the room has keys: if it is repeated after a kill, it arrives once. */
enum mr_rc patrol_send(struct mr_room *room, const struct mr_self *self, const char *to, enum mr_priority priority,
    const char *key, const struct buf *subject, const struct buf *body, struct mr_error *err);
/* For spawn.without: variables that a patrol does not pass on to the commands that it runs. */
extern const char *const patrol_keeps_back[];
/* Runs the handler; *result says how it ended. Any result but MR_OK: the message is not the cause. */
enum mr_rc patrol_run(struct errand *e, bool *ret_succeeded, struct buf *result, struct mr_error *err);
/* The handler's words with the fields filled in. MR_REFUSED: it must not be run like this. */
enum mr_rc patrol_words(const struct errand *e, struct mr_names *ret, struct mr_error *err);
/* How it ended, with the first line of its stderr. */
void patrol_describe(struct buf *out, const struct spawned *ran, int64_t limit_ms);

/* ---- patrol_care.c: the rest of a round ---- */
enum mr_rc patrol_care(struct patrol *p, struct mr_error *err);

#endif
