/* SPDX-License-Identifier: MIT */
/*
 * patrol.h - what the files of the patrol share.
 *
 *	patrol.c            one round: the mail, then the care
 *	patrol_settings.c   Patrol-NAME: lines of the room's settings
 *	patrol_notes.c      where a patrol keeps what it knows: records of the room, or files outside
 *	patrol_note.c       how far one message is
 *	patrol_message.c    one message: take it, act on it
 *	patrol_judge.c      ... what is to be done with it
 *	patrol_run.c        its handler: arguments, environment, time limit
 *	patrol_give_up.c    after the last failure
 *	patrol_cooldown.c   not again so soon
 *	patrol_care.c       leases, overdue answers, channels, archive
 *	patrol_alert.c      agents that are unseen
 *	patrol_wake.c       commands that wake them
 *	patrol_log.c        what was done
 *
 * The order that makes it right: a message is taken (nobody else has it), "running" is written down with the process
 * of its handler before the handler's first instruction, "handled" after its success, and only then the message is
 * acknowledged. A kill leaves one of three states behind: "running" and the process is there: it is waited for;
 * "running" and it is gone: the handler runs again with the next attempt number; "handled": it is acknowledged.
 */
#ifndef OFFICE_PATROL_H
#define OFFICE_PATROL_H

#include "office/office.h"
#include "office/types/types.h"

struct patrol_settings { /* finish with patrol_settings_done */
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

/* ---- patrol_settings.c ---- */
enum mr_rc patrol_settings_read(struct patrol *p, struct mr_error *err);
void patrol_settings_done(struct patrol_settings *set);
/* The command for that type: of the command line, else of the user's configuration; "": none. */
const char *patrol_handler(const struct patrol *p, const struct type_def *def);
/* Is that what a type may say: "", or a name for the configuration to decide about? */
bool patrol_handler_is_name(const char *handler);

/* ---- patrol_notes.c: like the records of a room; owner is an agent or "" ---- */
enum mr_rc notes_able(const struct mr_room *room, struct mr_error *err);
enum mr_rc notes_get(struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret,
    struct mr_error *err); /* MR_NOTFOUND */
enum mr_rc notes_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err); /* durable */
void notes_drop(struct mr_room *room, const char *kind, const char *owner, const char *name);
/* Names, in order. None: MR_OK. */
enum mr_rc notes_names(
    struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err);
/* One at a time, for all records of that kind and owner. MR_BUSY. */
enum mr_rc notes_lock(
    struct mr_room *room, const char *kind, const char *owner, int64_t wait_ms, void **ret_lock, struct mr_error *err);
void notes_unlock(struct mr_room *room, void *lock);
/* A name for a record that stands for any text. */
void notes_name(const char *text, char ret[33]);
/* notes_get, parsed; empty when there is none or it cannot be read. */
enum mr_rc notes_load(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err);

/* ---- patrol_note.c ---- */
#define NOTE_KIND "handled"
enum note_state { NOTE_NEW, NOTE_RUNNING, NOTE_HANDLED, NOTE_FAILED, NOTE_ASIDE, NOTE_BROKEN, NOTE_DEAD };
struct note { /* finish with note_done */
	enum note_state state;
	unsigned attempt;  /* how often its handler was started */
	unsigned failures; /* how often that went wrong */
	struct mr_process process;
	int64_t until_ms; /* NOTE_RUNNING: its time limit */
	int64_t at_ms;    /* of the state */
	int64_t first_ms; /* when its handler was started for the first time */
	const char *type, *from, *handler, *result;
	struct mr_names did; /* "TIME ATTEMPT WORD TEXT", the oldest first */
	struct arena *own;
};
void note_done(struct note *note);
/* None: MR_OK, NOTE_NEW. */
enum mr_rc note_load(struct mr_room *room, const char *agent, const char *id, struct note *ret, struct mr_error *err);
/* Durable. */
enum mr_rc note_save(
    struct mr_room *room, const char *agent, const char *id, const struct note *note, struct mr_error *err);
/* Changes the state and adds a line to its story. `word` as in mr_patrol_step.what. */
enum mr_rc note_turn(
    struct note *note, enum note_state state, const char *word, const char *result, struct mr_error *err);
/* A line of the story as a step; strings are put into *own. False: it is none. */
bool note_step(
    const struct note *note, const char *line, const char *id, struct arena **own, struct mr_patrol_step *ret);

/* ---- patrol_message.c ---- */
struct errand { /* one message on its way; finish with errand_done */
	struct patrol *p;
	struct mr_message msg;
	const struct type_def *def;
	const char *command; /* not filled in */
	struct type_values values;
	struct buf line; /* the command, filled in, for people */
	struct note note;
	struct hold hold; /* of a room with holds, once taken */
	bool taken;
};
/* Only what concerns that message: MR_OK whatever becomes of it; anything else ends the round. */
enum mr_rc patrol_message(struct patrol *p, const char *id, struct mr_error *err);
/* Ends the hold, or marks it read. */
enum mr_rc errand_settle(struct errand *e, enum settle how, struct mr_error *err);
/* note_turn, note_save, and tells it. */
enum mr_rc errand_turn(
    struct errand *e, enum note_state state, const char *word, const char *result, struct mr_error *err);

/* ---- patrol_judge.c ---- */
enum verdict { ACT_RUN, ACT_WAIT, ACT_FINISH, ACT_ASIDE, ACT_GIVE_UP };
/* `why` says why it waits or is set aside. */
enum verdict errand_judge(const struct errand *e, struct buf *why);
bool note_is_over(const struct note *note);
/* Its handler was cut off so often and for so long, this time included, that it may be what ends the patrols. */
bool note_is_deadly(const struct note *note);
/* Does its handler, which a patrol that is dead started, still run? With may_end one far beyond its time is ended. */
bool note_runs(const struct note *note, const char *id, bool may_end);

/* ---- patrol_run.c ---- */
/* For spawn.without: what a patrol does not hand on to the commands that it runs. */
extern const char *const patrol_keeps_back[];
struct mr_names split_command(const char *command, struct mr_error *err); /* n 0: err says why */
/* Runs the handler; *result says how it ended. Any other result than MR_OK: it is not the message's fault. */
enum mr_rc patrol_run(struct errand *e, bool *ret_succeeded, struct buf *result, struct mr_error *err);
/* The handler's words with the fields filled in. MR_REFUSED: it must not be run like this. */
enum mr_rc patrol_words(const struct errand *e, struct mr_names *ret, struct mr_error *err);
/* Joined by spaces, for people. */
void patrol_join(struct buf *out, const struct mr_names *words);
/* How it ended, with the first line of what it said on stderr. */
struct spawned;
void patrol_describe(struct buf *out, const struct spawned *ran, int64_t limit_ms);

/* ---- patrol_give_up.c ---- */
unsigned patrol_patience(const struct errand *e); /* after so many failures; 0: never */
enum mr_rc patrol_give_up(struct errand *e, struct mr_error *err);

/* ---- patrol_cooldown.c ---- */
/* So long until the type may be handled again with that key; 0: now. */
int64_t cooldown_left(const struct errand *e);
/* Takes it for this message, one winner. MR_BUSY: another just did. */
enum mr_rc cooldown_take(const struct errand *e, struct mr_error *err);

/* ---- The rest of a round ---- */
enum mr_rc patrol_care(struct patrol *p, struct mr_error *err);
enum mr_rc patrol_alerts(struct patrol *p, struct mr_error *err);
enum mr_rc patrol_wakes(struct patrol *p, struct mr_error *err);

/* ---- patrol_log.c ---- */
void patrol_tell(const struct patrol *p, const struct mr_patrol_step *step);
/* Something that is no message's: told, counted, and written down. */
void patrol_event(struct patrol *p, const char *what, const char *type, const char *result);
/* Notes of messages that were done with long ago go. Best effort. */
void patrol_forget_old(struct patrol *p);

#endif
