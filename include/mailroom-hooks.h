/* SPDX-License-Identifier: MIT */
/*
 * mailroom-hooks.h - what the hooks of a harness need: which agent a session is; what to tell that agent at a prompt,
 * after a tool and before it stops; and when to wake it. The rules of mailroom.h hold here as well.
 */
#ifndef MAILROOM_HOOKS_H
#define MAILROOM_HOOKS_H

#include "mailroom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What an agent is told ---- */

/* The agent that the other agents notify when they are idle, as in a team of Claude Code; agents of such a room also
 * read their mail as MR_INJECT_TEAMS. NULL: the room has no lead. */
MR_API const char *mr_room_lead(const struct mr_room *room);
struct mr_injection;
enum mr_inject_format {
	MR_INJECT_REMINDER, /* <system-reminder> blocks: who wrote, and what about */
	MR_INJECT_TEAMS,    /* <teammate-message> blocks, with the beginning of the text */
};
enum mr_inject_what {
	MR_INJECT_ALL,
	MR_INJECT_URGENT, /* urgent mail and nudges that this life was not told of yet: for between its tools */
	/* Reasons for an agent not to end its turn, of which this life was not told before: unread urgent mail (all
	 * other news comes with it), and work that the agent holds. */
	MR_INJECT_STOP,
};
/* Makes a text for the context of an agent: its hand-off, mail not announced to this life yet (urgent mail until it is
 * read), queued nudges, and its questions whose answers are overdue. Text of other senders is escaped: it can neither
 * close a block of *ret nor open one. MR_EMPTY: there is nothing to tell. */
MR_API enum mr_rc mr_inject_open(struct mr_room *room, const struct mr_self *self, enum mr_inject_what what,
    enum mr_inject_format format, struct mr_injection **ret, struct mr_error *err);
MR_API const char *mr_inject_text(const struct mr_injection *inj);
/* Call it after the text was printed: records the mail as announced by that door (lower case and hyphens) and removes
 * the nudges. */
MR_API enum mr_rc mr_inject_shown(struct mr_injection *inj, const char *door, struct mr_error *err);
MR_API void mr_inject_close(struct mr_injection *inj);

/* ---- Hooks: what a harness reports ---- */

struct mr_arrive_options {
	bool begins;  /* a session or its context begins: its terminal is recorded for nudges */
	bool goes_on; /* the same session goes on, maybe under another id: /clear, compaction, resume */
	bool cleared; /* it goes on after /clear, so its id is a new one */
	bool anew;    /* the model has lost its context: old announcements are repeated */
};
struct mr_arrival {
	struct mr_self self;
	bool registered; /* under a name that was chosen for it just now */
	size_t returned; /* mail and work of the last life of that name that were put back */
	/* The agent that this session was before, if another session took that name meanwhile; else "". */
	char was[MR_ADDRESS_MAX + 1];
	unsigned was_life;
	/* After /clear, when registered: the agents one of which this session was before, if it cannot be told which;
	 * else "". */
	char maybe[200];
};
/* mr_self_resolve for a session that has just begun. A session without a name is registered under the name of its
 * worktree's folder; if another agent has that name, a number is added: "web", "web-2". */
MR_API enum mr_rc mr_arrive(struct mr_room *room, const struct mr_env *env, const struct mr_arrive_options *options,
    struct mr_arrival *ret, struct mr_error *err);

/* Reads the output that a tool gave to the model of this session: mail that a command of the session consumed counts as
 * seen if its id is in that output. `over`: the call that showed the rest, or the turn, has ended: mail that is still
 * not confirmed becomes unread again, once. */
MR_API void mr_confirm(struct mr_room *room, const struct mr_self *self, const char *seen, size_t seen_len, bool over);
/* From now on, mail that commands of this session consume needs mr_confirm. `after_tool`: the caller saw that a hook
 * runs after tools; without it, this acts only if such a hook ran in the last days. */
MR_API void mr_confirm_begin(struct mr_room *room, const struct mr_self *self, const char *harness, bool after_tool);

/* The harness session of the calling process, found through a process above it that is bound to a session; NULL: none.
 * The caller frees it. Sessions may not change the configuration. */
MR_API char *mr_session_above(const char *state_dir);
/* Was `other` in the environment of the hooks of `session` (mr_env.inherited)? Then `other` is a harness outside of
 * `session`. */
MR_API bool mr_session_inherits(const char *state_dir, const char *session, const char *other);

/* The session of self ended: its life counts as gone until that session is resumed. */
MR_API enum mr_rc mr_leave(struct mr_room *room, const struct mr_self *self, struct mr_error *err);

/* Renews the leases of this life's claims of which less than half is left. In a room without claims it does nothing. */
MR_API enum mr_rc mr_claims_keep(struct mr_room *room, const struct mr_self *self, struct mr_error *err);

struct mr_wake_options {
	enum mr_inject_format format;
	int64_t gather_ms;       /* news that arrive within that time after the first are told together with it */
	bool (*stay)(void *ctx); /* asked at least every two seconds; false ends the wait. NULL: never */
	/* Called when the operator got a message because a thread has woken agents too often, so that the caller can
	 * run the room's Notify:. Or NULL. */
	void (*told)(void *ctx, const struct mr_receipt *receipt, const char *subject);
	void *ctx; /* for both functions */
};
/* Waits until there is a reason to wake an idle agent: mail that was not announced to this life yet, nudges, or work in
 * a queue that it may claim. An agent that is not to be disturbed is never woken. Once a thread has caused as many
 * wakes as the room's Wake-Limit: allows, further mail in it wakes nobody, and the operator is told once. MR_EMPTY:
 * `stay` returned false; MR_REFUSED: the life is fenced. */
MR_API enum mr_rc mr_wake_wait(
    struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, struct mr_error *err);
struct mr_wake; /* what a woken agent is told */
/* MR_EMPTY: the agent was told in another way meanwhile. `unattended`: for an agent without a waiting process; until
 * mr_wake_close no process can begin to wait for it. MR_BUSY: a process is waiting. */
MR_API enum mr_rc mr_wake_open(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options,
    bool unattended, struct mr_wake **ret, struct mr_error *err);
MR_API const char *mr_wake_text(const struct mr_wake *wake);
MR_API void mr_wake_close(struct mr_wake *wake);

/* A ring carries the text of the news to the agent. But some harnesses present a ring as the user's own words: there
 * the ring holds only the number of messages, their ids and the command to run, nothing that a sender chose; the hook
 * of the prompt that the ring becomes tells of the mail. */
#define MR_RING_MAX 320 /* longest ring of that second kind */
#define MR_DOOR_MAX 24
typedef enum mr_rc mr_ring_fn(void *ctx, const char *text, struct mr_error *err);
/* Calls `ring` and counts it as a wake: the agent is not woken for the same news again. `tells`: the ring carries
 * mr_wake_text. MR_BUSY: the last ring is not answered yet. MR_INDOUBT: it rang, but that could not be recorded. Else
 * the result of `ring`, recorded with the door's name (lower case and hyphens). */
MR_API enum mr_rc mr_wake_ring(
    struct mr_wake *wake, const char *door, bool tells, mr_ring_fn *ring, void *ctx, struct mr_error *err);
enum mr_bell_end {
	MR_BELL_RINGING,  /* it is ringing, or its ringer was killed */
	MR_BELL_RUNG,     /* rung, not answered yet */
	MR_BELL_TOLD,     /* the ring itself told of the mail */
	MR_BELL_ANSWERED, /* a prompt told of the mail */
	MR_BELL_STALE,    /* the mail was read meanwhile */
	MR_BELL_UNTAKEN   /* the door did not take it */
};
MR_API bool mr_bell_open(struct mr_room *room, const struct mr_self *self); /* is a ring not answered yet? */
/* Is this prompt the last ring for this life? *ret_keep: keep the prompt, because it holds more than news of mail, or
 * because its mail was told only now. */
MR_API bool mr_bell_is(struct mr_room *room, const struct mr_self *self, const char *prompt, bool *ret_keep);
MR_API void mr_bell_end(struct mr_room *room, const struct mr_self *self, enum mr_bell_end how);
/* Call it before an agent is nudged because of that message in its mailbox. MR_REFUSED: its thread has woken agents too
 * often. If the nudge woke the agent, call mr_wake_count. */
MR_API enum mr_rc mr_wake_by_mail(struct mr_room *room, const struct mr_self *self, const char *agent, const char *id,
    const struct mr_wake_options *options, struct mr_error *err);
MR_API void mr_wake_count(struct mr_room *room, const char *agent, const char *id);
/* Does that unread message wake its recipient only later, or not at all? Then ret_why has the reason: "wakes of this
 * thread are limited until 20:41 UTC". */
#define MR_WAKE_WHY_MAX 80
MR_API bool mr_wake_limited(struct mr_room *room, const char *agent, const char *id, char ret_why[MR_WAKE_WHY_MAX]);

#ifdef __cplusplus
}
#endif
#endif
