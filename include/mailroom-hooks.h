/* SPDX-License-Identifier: MIT */
/*
 * mailroom-hooks.h - what the hooks of a harness need: who a session is, what to tell its agent at a prompt, after a
 * tool and before it stops, and when to wake it. The rules of mailroom.h hold here as well.
 */
#ifndef MAILROOM_HOOKS_H
#define MAILROOM_HOOKS_H

#include "mailroom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What an agent is told ---- */

/* The agent that the others tell when they are idle, as in a team of Claude Code, whose agents also read their mail as
 * MR_INJECT_TEAMS. NULL: there is none. */
MR_API const char *mr_room_lead(const struct mr_room *room);
struct mr_injection;
enum mr_inject_format {
	MR_INJECT_REMINDER, /* <system-reminder> blocks: who wrote, and what about */
	MR_INJECT_TEAMS,    /* <teammate-message> blocks, with the beginning of the text */
};
enum mr_inject_what {
	MR_INJECT_ALL,
	MR_INJECT_URGENT, /* urgent mail and nudges that this life was not told of: for in between, while it works */
	/* Reasons for an agent not to end its turn, of which this life was not told before: unread urgent mail, which
	 * comes with all other news, and work in its hands. */
	MR_INJECT_STOP,
};
/* Text for the context of an agent: its hand-off, mail not announced to this life yet (urgent mail until it is read),
 * queued nudges, answers that did not come. Nothing in it that others wrote can close a block or open another.
 * MR_EMPTY: there is nothing to tell. */
MR_API enum mr_rc mr_inject_open(struct mr_room *room, const struct mr_self *self, enum mr_inject_what what,
    enum mr_inject_format format, struct mr_injection **ret, struct mr_error *err);
MR_API const char *mr_inject_text(const struct mr_injection *inj);
/* It was printed: the mail is remembered as announced by that door (lower case and hyphens), the nudges are removed. */
MR_API enum mr_rc mr_inject_shown(struct mr_injection *inj, const char *door, struct mr_error *err);
MR_API void mr_inject_close(struct mr_injection *inj);

/* ---- Hooks: what a harness tells us ---- */

struct mr_arrive_options {
	bool begins;  /* a session, or its context, begins: its terminal is remembered for nudges */
	bool goes_on; /* the harness says that it is the same session, maybe under another id: /clear, compaction,
			 resume */
	bool cleared; /* ... by /clear, so that its id is a new one */
	bool anew;    /* its model knows nothing any more: what was announced to this life is told again */
};
struct mr_arrival {
	struct mr_self self;
	bool registered; /* under a name that was taken for it just now */
	size_t returned; /* mail and work of the last life of that name that came back */
	/* The agent that this session was before; "": none, or it is still the same. Another session took that name
	 * meanwhile.
	 */
	char was[MR_ADDRESS_MAX + 1];
	unsigned was_life;
	/* After /clear, registered: the agents one of which it was before, and nobody can tell which. "": it is clear.
	 */
	char maybe[200];
};
/* mr_self_resolve for a session that has just begun. A session without a name is registered under the name of its
 * worktree's folder, with a number behind it while that is somebody else: "web", "web-2". */
MR_API enum mr_rc mr_arrive(struct mr_room *room, const struct mr_env *env, const struct mr_arrive_options *options,
    struct mr_arrival *ret, struct mr_error *err);

/* What a tool gave the model of this session: mail that a command of it consumed, and whose id is in it, has been seen.
 * `over`: the call that showed the rest, or the turn, has ended: that is unread again, once. */
MR_API void mr_confirm(struct mr_room *room, const struct mr_self *self, const char *seen, size_t seen_len, bool over);
/* From now on what commands of this session consume is to be confirmed. `after_tool`: a hook runs after tools, as is
 * seen now; else only if that was seen in the last days. */
MR_API void mr_confirm_begin(struct mr_room *room, const struct mr_self *self, const char *harness, bool after_tool);

/* The harness session that the calling process runs in, because a process above it is bound to one; NULL: none. The
 * caller frees it. Sessions may not change the configuration. */
MR_API char *mr_session_above(const char *state_dir);
/* Was `other` in the environment of the hooks of `session` (mr_env.inherited)? Then it is a harness outside of it. */
MR_API bool mr_session_inherits(const char *state_dir, const char *session, const char *other);

/* The session of self ended: its life is gone, until that session is resumed. */
MR_API enum mr_rc mr_leave(struct mr_room *room, const struct mr_self *self, struct mr_error *err);

/* Gives the claims of this life a new lease where less than half of one is left; a room without claims has none. */
MR_API enum mr_rc mr_claims_keep(struct mr_room *room, const struct mr_self *self, struct mr_error *err);

struct mr_wake_options {
	enum mr_inject_format format;
	int64_t gather_ms;       /* what comes within that time of the first is told with it */
	bool (*stay)(void *ctx); /* asked at least every two seconds; false: leave. NULL: stay */
	/* The operator got a message, because a thread has woken agents too often: for the room's Notify:. Or NULL. */
	void (*told)(void *ctx, const struct mr_receipt *receipt, const char *subject);
	void *ctx; /* of both */
};
/* Until there is something to wake an idle agent for: mail that was not announced to this life yet, nudges, or work in
 * a queue that it may claim; never for one that is not to be disturbed. After as many wakes in one thread as
 * the room's Wake-Limit: says further mail in it wakes nobody, and the operator is told once. MR_EMPTY: `stay` said no;
 * MR_REFUSED: the life is fenced. */
MR_API enum mr_rc mr_wake_wait(
    struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, struct mr_error *err);
struct mr_wake; /* what a woken agent is told */
/* MR_EMPTY: it was told otherwise meanwhile. `unattended`: where no process waits for it; until mr_wake_close no other
 * begins to. MR_BUSY: one does. */
MR_API enum mr_rc mr_wake_open(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options,
    bool unattended, struct mr_wake **ret, struct mr_error *err);
MR_API const char *mr_wake_text(const struct mr_wake *wake);
MR_API void mr_wake_close(struct mr_wake *wake);

/* A ring says what there is, and with that the agent is told. But some harnesses take a ring for the user's own words:
 * there it says how many messages there are, their ids and what to run, nothing that a sender chose, and the hook of
 * the prompt that it becomes tells of the mail. */
#define MR_RING_MAX 320 /* of the latter */
#define MR_DOOR_MAX 24
typedef enum mr_rc mr_ring_fn(void *ctx, const char *text, struct mr_error *err);
/* That counts as a wake, and it is not woken for the same again. `tells`: with mr_wake_text. MR_BUSY: the last ring is
 * not answered yet. MR_INDOUBT: it rang, and that could not be noted. Else what `ring` returns; it is noted either way,
 * with the door's name (lower case and hyphens). */
MR_API enum mr_rc mr_wake_ring(
    struct mr_wake *wake, const char *door, bool tells, mr_ring_fn *ring, void *ctx, struct mr_error *err);
enum mr_bell_end {
	MR_BELL_RINGING,  /* or its ringer was killed */
	MR_BELL_RUNG,     /* not over */
	MR_BELL_TOLD,     /* by the ring itself */
	MR_BELL_ANSWERED, /* by a prompt that told of the mail */
	MR_BELL_STALE,    /* the mail was read meanwhile */
	MR_BELL_UNTAKEN   /* the door did not take it */
};
MR_API bool mr_bell_open(struct mr_room *room, const struct mr_self *self); /* is a ring not answered yet? */
/* Is this prompt the last ring for this life? *ret_keep: it is more than news of mail, or its mail was told only now.
 */
MR_API bool mr_bell_is(struct mr_room *room, const struct mr_self *self, const char *prompt, bool *ret_keep);
MR_API void mr_bell_end(struct mr_room *room, const struct mr_self *self, enum mr_bell_end how);
/* Before an agent is nudged because of that message in its mailbox: MR_REFUSED, its thread has woken agents too often.
 * Afterwards, if that woke it: mr_wake_count. */
MR_API enum mr_rc mr_wake_by_mail(struct mr_room *room, const struct mr_self *self, const char *agent, const char *id,
    const struct mr_wake_options *options, struct mr_error *err);
MR_API void mr_wake_count(struct mr_room *room, const char *agent, const char *id);
/* Does that unread message wake its recipient only later, or not at all? ret_why says it: "wakes of this thread are
 * limited until 20:41 UTC". */
#define MR_WAKE_WHY_MAX 80
MR_API bool mr_wake_limited(struct mr_room *room, const char *agent, const char *id, char ret_why[MR_WAKE_WHY_MAX]);

#ifdef __cplusplus
}
#endif
#endif
