/* SPDX-License-Identifier: MIT */
/*
 * mailroom-town.h - what Gas Town adds to mail: groups, work queues, channels, message types, nudges, patrols,
 * hand-offs, escalations, mail rules, the current task of an agent. The rules of mailroom.h hold here as well.
 */
#ifndef MAILROOM_TOWN_H
#define MAILROOM_TOWN_H

#include "mailroom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Groups ---- */

#define MR_NAME_MAX 64 /* of a group, queue or channel: [a-z0-9][a-z0-9_-]*; a queue may be RIG/NAME */

struct mr_group { /* finish with mr_group_done */
	char name[MR_NAME_MAX + 1];
	struct mr_names members; /* addresses, wildcards, patterns, group:NAME */
	const char *created_by;
	int64_t created_ms;
	void *own;
};
MR_API void mr_group_done(struct mr_group *group);
struct mr_groups {
	void *own;
	struct mr_group *v; /* sorted by name */
	size_t n;
};
/* *ret is also filled in when a group cannot be read: err says which. */
MR_API enum mr_rc mr_group_list(struct mr_room *room, struct mr_groups *ret, struct mr_error *err);
MR_API enum mr_rc mr_group_get(struct mr_room *room, const char *name, struct mr_group *ret, struct mr_error *err);
MR_API enum mr_rc mr_group_create(struct mr_room *room, const struct mr_self *self, const char *name,
    const char *const *members, struct mr_error *err); /* MR_EXISTS: there is such a group */
/* Adds or removes all of `members` (NULL-terminated) in one change; on failure none. ret_changed has one element for
 * each: false when that one was (or was not) a member already, which is no failure. */
MR_API enum mr_rc mr_group_change(struct mr_room *room, const char *name, bool add, const char *const *members,
    bool *ret_changed, struct mr_error *err);
/* Returns up to twenty sentences, one for each of these members that reaches nobody now. It may be registered later, or
 * be misspelled. */
MR_API enum mr_rc mr_group_check(
    struct mr_room *room, const char *const *members, struct mr_names *ret_trouble, struct mr_error *err);
MR_API enum mr_rc mr_group_delete(struct mr_room *room, const char *name, struct mr_error *err);

/* ---- Work queues ---- */

enum mr_queue_status { MR_QUEUE_ACTIVE, MR_QUEUE_PAUSED /* no claims */, MR_QUEUE_CLOSED /* no mail, no claims */ };
struct mr_queue {                      /* settings; finish with mr_queue_done */
	char name[MR_ADDRESS_MAX + 1]; /* NAME or RIG/NAME */
	const char *claimers;          /* pattern of agents; "*": all agents */
	bool by_priority;              /* else the oldest first */
	unsigned max_claims;           /* live claims in the whole queue; 0: no limit */
	int64_t lease_ms;
	unsigned attempts; /* work fails after so many attempts; 0: never */
	enum mr_queue_status status;
	const char *created_by;
	int64_t created_ms;
	void *own;
};
MR_API void mr_queue_done(struct mr_queue *queue);
struct mr_queues {
	void *own;
	struct mr_queue *v; /* sorted by name */
	size_t n;
};
/* *ret is also filled in when a queue cannot be read: err says which. */
MR_API enum mr_rc mr_queue_list(struct mr_room *room, struct mr_queues *ret, struct mr_error *err);
MR_API enum mr_rc mr_queue_get(struct mr_room *room, const char *name, struct mr_queue *ret, struct mr_error *err);
MR_API enum mr_rc mr_queue_create(
    struct mr_room *room, const struct mr_self *self, const struct mr_queue *settings, struct mr_error *err);
MR_API enum mr_rc mr_queue_set_status(
    struct mr_room *room, const char *name, enum mr_queue_status status, struct mr_error *err);
/* MR_REFUSED while the queue holds work, unless `force`, which moves that work to dead letters. */
MR_API enum mr_rc mr_queue_delete(
    struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err);

struct mr_queue_counts {
	size_t ready, delayed, claimed, done, failed;
	size_t claimers, claimers_unknown; /* matching agents: live, and of unknown presence */
};
/* Counts the work itself; no counters are stored. */
MR_API enum mr_rc mr_queue_count(
    struct mr_room *room, const char *name, struct mr_queue_counts *ret, struct mr_error *err);
/* Work that arrived, was done and failed since then. */
struct mr_queue_pace {
	size_t came, done, failed;
};
MR_API enum mr_rc mr_queue_pace(
    struct mr_room *room, const char *name, int64_t since_ms, struct mr_queue_pace *ret, struct mr_error *err);
/* Claims the next work. lease_ms 0: the queue's lease. wait_ms 0: do not wait. MR_OK: the claim and the message are the
 * caller's to finish, and the claim ends with mr_claim_done, _release or _fail, which take its token. MR_EMPTY: there
 * is none. MR_REFUSED: the queue is paused or closed, or self may not claim from it. MR_BUSY: max_claims are live
 * (after a wait: MR_EMPTY). Work that cannot be read is put aside and named in ret_claim->skipped, with MR_EMPTY in the
 * hint. */
MR_API enum mr_rc mr_queue_recv(struct mr_room *room, const struct mr_self *self, const char *name, int64_t lease_ms,
    int64_t wait_ms, struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err);
struct mr_queue_task {
	char id[MR_ID_LEN + 1];
	const char *state;          /* "claimed", "ready", "reserved", "delayed", "failed", "done" */
	const char *from, *subject; /* "" when it cannot be read */
	char who[MR_ADDRESS_MAX +
		 1]; /* claimed: its holder; reserved: the agent it waits for; failed, done: the last holder; or "" */
	enum mr_priority priority;
	unsigned attempt;
	int64_t since_ms; /* when it was claimed, released, failed or done, if that is known; else when it was sent */
	int64_t until_ms; /* claimed: end of its lease; reserved, delayed: end of that; else 0 */
	bool over;        /* claimed: its holder is gone, or its lease has ended */
};
struct mr_queue_tasks {
	void *own;
	struct mr_queue_task *v;
	size_t n;
	size_t more; /* tasks that are not listed */
};
/* Lists all claimed work, then ready, reserved and delayed work, then failed work, and with `done` also finished work:
 * at most `limit` of each state except claimed. */
MR_API enum mr_rc mr_queue_tasks(
    struct mr_room *room, const char *name, bool done, size_t limit, struct mr_queue_tasks *ret, struct mr_error *err);
/* Counts the work that is still to be done, as this agent (NULL: no agent in particular) sees it. Claims that have
 * ended are put back first. */
MR_API enum mr_rc mr_queue_left(
    struct mr_room *room, const char *agent, const char *name, struct mr_queue_left *ret, struct mr_error *err);
/* Waits until something is ready; with `drained` until nothing is ready, delayed or claimed. MR_EMPTY: the time is
 * up. */
MR_API enum mr_rc mr_queue_wait(struct mr_room *room, const char *name, bool drained, int64_t timeout_ms,
    struct mr_queue_left *ret, struct mr_error *err);
/* Calls back for each work of a queue that this agent holds (MR_HELD, with its token), the oldest claim of each queue
 * first. In a room without queues there is none. The filter (NULL: everything) acts as in a mailbox. */
MR_API enum mr_rc mr_queue_held(struct mr_room *room, const char *agent, const struct mr_filter *filter,
    mr_message_fn *fn, void *ctx, struct mr_error *err);

/* ---- Channels ---- */

struct mr_channel { /* settings; finish with mr_channel_done */
	char name[MR_NAME_MAX + 1];
	struct mr_names subscribers;
	int64_t retain_count; /* 0: no limit */
	int64_t retain_ms;    /* 0: for ever */
	bool closed;
	const char *created_by;
	int64_t created_ms;
	void *own;
};
MR_API void mr_channel_done(struct mr_channel *channel);
struct mr_channels {
	void *own;
	struct mr_channel *v; /* sorted by name */
	size_t n;
};
/* *ret is also filled in when a channel cannot be read: err says which. */
MR_API enum mr_rc mr_channel_list(struct mr_room *room, struct mr_channels *ret, struct mr_error *err);
MR_API enum mr_rc mr_channel_get(struct mr_room *room, const char *name, struct mr_channel *ret, struct mr_error *err);
MR_API enum mr_rc mr_channel_create(struct mr_room *room, const struct mr_self *self, const char *name,
    int64_t retain_count, int64_t retain_ms, struct mr_error *err);
MR_API enum mr_rc mr_channel_subscribe(
    struct mr_room *room, const char *name, const char *agent, bool on, bool *ret_changed, struct mr_error *err);
MR_API enum mr_rc mr_channel_close(struct mr_room *room, const char *name, bool closed, struct mr_error *err);
MR_API enum mr_rc mr_channel_delete(struct mr_room *room, const char *name, struct mr_error *err);
/* Posts in the order of their numbers, from the first after `after` (0: from the oldest that is kept). */
typedef bool mr_post_fn(void *ctx, uint64_t number, const struct mr_message *msg);
MR_API enum mr_rc mr_channel_read(struct mr_room *room, const char *name, uint64_t after, bool bodies, mr_post_fn *fn,
    void *ctx, struct mr_error *err);
/* The number of posts that are kept, and the number of the last (0: none). No post is opened. */
MR_API enum mr_rc mr_channel_count(
    struct mr_room *room, const char *name, uint64_t *ret_last, size_t *ret_count, struct mr_error *err);
/* Waits until something is posted after that number. MR_EMPTY: the time is up. */
MR_API enum mr_rc mr_channel_wait(
    struct mr_room *room, const char *name, uint64_t after, int64_t timeout_ms, struct mr_error *err);
/* Removes posts beyond the channel's limits. With `buffer` (for patrols) the count limit acts only above 110 % of
 * it. */
MR_API enum mr_rc mr_channel_prune(
    struct mr_room *room, const char *name, bool buffer, size_t *ret_removed, struct mr_error *err);

/* ---- Message types: files that define the subject and text of a message, and who sends it to whom ---- */

struct mr_type {
	const char *name;
	const char *pack; /* the pack it is from; "": the room's own */
	const char *summary;
	const char *subject; /* template: "MERGED {Polecat}"; "": none */
	bool nudge;          /* a nudge, not mail */
	bool routed;         /* for programs: not shown to an agent as text */
};
MR_LIST(mr_types, struct mr_type); /* the room's own first, then by pack and name */
/* The types in effect here: the room's own type hides a type of the same name from a pack. Each file with an error is
 * reported to `trouble` (may be NULL). */
MR_API enum mr_rc mr_type_list(
    struct mr_room *room, struct mr_types *ret, mr_trouble_fn *trouble, void *ctx, struct mr_error *err);
/* The file as it is; ret_pack is the pack it is from. MR_NOTFOUND: the hint lists similar names. The caller frees
 * both. */
MR_API enum mr_rc mr_type_text(
    struct mr_room *room, const char *name, char **ret, size_t *ret_len, char **ret_pack, struct mr_error *err);
/* Checks the text and makes it a type of this room. MR_EXISTS: the room has that type, unless `replace`. */
MR_API enum mr_rc mr_type_put(
    struct mr_room *room, const char *name, const char *text, size_t text_len, bool replace, struct mr_error *err);

struct mr_fields {        /* fields of one message, in the order of its type; finish with mr_fields_done */
	const char *type; /* "": plain mail, and no fields */
	const struct mr_header *v;
	size_t n;
	const char *text; /* the text after the fields */
	const char *json; /* the whole object of a JSON body; or "" */
	void *own;
};
/* Reads the fields of msg, which must have its body. Plain mail: MR_OK and no fields. MR_REFUSED, MR_CORRUPT: a field
 * is wrong and err names it; *ret has all that could be read. */
MR_API enum mr_rc mr_message_fields(
    struct mr_room *room, const struct mr_message *msg, struct mr_fields *ret, struct mr_error *err);
MR_API void mr_fields_done(struct mr_fields *fields);

/* ---- Nudges: a tap on the shoulder, not mail ---- */

struct mr_nudge {                  /* all strings "" when missing */
	const char *from;          /* mr_nudge_send sets it to self */
	const char *text;          /* at most MR_NUDGE_MAX bytes */
	enum mr_priority priority; /* MR_URGENT; all others count as normal */
	const char *kind;          /* a word: "mail", "health_check"; or "" */
	const char *thread;
	int64_t at_ms;      /* when it was sent; set by mr_nudge_send */
	int64_t expires_ms; /* not shown after this; 0: as the room's settings say (30 minutes, urgent ones 2 hours) */
	int64_t not_before_ms; /* not shown earlier; 0: at once */
	unsigned times;        /* how often the same nudge was sent while it waited; at least 1 */
	bool answer_wanted;    /* acts only where the room can store it */
};
#define MR_NUDGE_MAX ((size_t)16 << 10)

enum mr_nudge_mode {
	MR_NUDGE_WAIT_IDLE, /* queued; a notice is typed in the agent's terminal when that is idle */
	MR_NUDGE_QUEUE,
	MR_NUDGE_IMMEDIATE, /* queued, and the notice is typed now, even while the agent works */
};
enum mr_nudge_way {
	MR_NUDGE_SKIPPED, /* the agent is not to be disturbed */
	MR_NUDGE_QUEUED,
	MR_NUDGE_SHOWN,  /* by a process of the agent that waited for it */
	MR_NUDGE_TYPED,  /* the notice was typed and submitted; the nudge is queued until it is shown */
	MR_NUDGE_PLACED, /* put where the other program looks for it */
};
struct mr_nudge_options {
	enum mr_nudge_mode mode;
	bool force;          /* also to an agent that is not to be disturbed */
	int64_t patience_ms; /* how long to wait for an idle terminal; 0: look once */
};
struct mr_nudged {
	enum mr_nudge_way way;
	bool coalesced; /* the same nudge was waiting: it is shown once, with its count */
	char why[240];  /* why it was queued and not typed; or "" */
	char bell[24];  /* door of the bell that rang: "codex-queue"; "wait": a waiting process; or "" */
	char came[16];  /* result of that bell: "told", "answered", "stale", "rung" (no answer yet), "untaken"; or "" */
};
/* MR_REFUSED: the queue is full (the agent is told so with its next nudge). MR_INDOUBT: it was typed, but it cannot be
 * seen that it was submitted. MR_IO: MR_NUDGE_IMMEDIATE could not type it. In the last two cases it is queued, and ret
 * is filled in. */
MR_API enum mr_rc mr_nudge_send(struct mr_room *room, const struct mr_self *self, const char *to,
    const struct mr_nudge *nudge, const struct mr_nudge_options *options, struct mr_nudged *ret, struct mr_error *err);

/* Waits for the answer to a nudge with answer_wanted that was sent at since_ms or later. MR_EMPTY: none came. The
 * caller frees *ret_text. */
MR_API enum mr_rc mr_nudge_answer(struct mr_room *room, const struct mr_self *self, const char *from, int64_t since_ms,
    int64_t wait_ms, char **ret_text, struct mr_error *err);

struct mr_nudges; /* nudges that are being shown, urgent ones first, then the oldest */
/* With `take` no other process shows these nudges until they are closed or this process ends; those that were not
 * passed to mr_nudges_shown by then wait again. MR_EMPTY: none; MR_BUSY: another process is showing them. */
MR_API enum mr_rc mr_nudges_open(
    struct mr_room *room, const char *agent, bool take, struct mr_nudges **ret, struct mr_error *err);
MR_API size_t mr_nudges_count(const struct mr_nudges *nudges);
MR_API const struct mr_nudge *mr_nudges_get(const struct mr_nudges *nudges, size_t i);
MR_API unsigned mr_nudges_refused(
    const struct mr_nudges *nudges); /* how many were refused since the last time because the queue was full */
/* The first n were shown: removes them. */
MR_API enum mr_rc mr_nudges_shown(struct mr_nudges *nudges, size_t n, struct mr_error *err);
MR_API void mr_nudges_close(struct mr_nudges *nudges);

/* Do not disturb: no nudges and no notices of mail. Mail itself arrives as usual. */
MR_API enum mr_rc mr_dnd_set(struct mr_room *room, const char *agent, bool on, struct mr_error *err);
MR_API enum mr_rc mr_dnd_get(
    struct mr_room *room, const char *agent, bool *ret_on, int64_t *ret_since_ms, struct mr_error *err);

/* ---- Patrols: mail that programs handle ---- */

struct mr_patrol_step { /* one thing that a patrol did or found; strings are "" when missing */
	int64_t at_ms;
	const char *what; /* a word: "handled", "failed", "set-aside", "broken", "waiting", "escalated", "dead", and of
			     its rounds "alert", "woke", "overdue", "archived", "pruned", "trouble" */
	const char *id;   /* of the message */
	const char *type;
	const char *from;    /* its sender */
	const char *handler; /* the command, with its fields filled in */
	const char *result;  /* a phrase: "exit 3: no such branch" */
	unsigned attempt;    /* 1: the first time; 0: nothing was run */
};
typedef void mr_patrol_fn(void *ctx, const struct mr_patrol_step *step);

struct mr_patrol_options {
	const struct mr_header *settings; /* override those of the room (Patrol-NAME: value): "Escalate-To", ... */
	size_t settings_n;
	bool dry_run;    /* only report */
	bool patient;    /* wait longer after each failure of a message; for a patrol that stays */
	int64_t rest_ms; /* wait for mail afterwards, at most this long, if nothing was done */
	/* A message as its handler gets it on standard input, from malloc; NULL: out of memory. Required. */
	char *(*render)(void *ctx, const struct mr_message *msg, size_t *ret_len);
	mr_patrol_fn *fn;        /* or NULL */
	bool (*stop)(void *ctx); /* or NULL: asked before each message and before the rest; true ends the round */
	void *ctx;               /* for all three functions */
};
struct mr_patrolled {
	size_t handled, failed, dead; /* dead: given up and escalated; not counted in failed */
	size_t aside;                 /* mail from an earlier life of its sender: archived, not acted on */
	size_t waiting;               /* for the end of a cooldown or of a running handler */
	size_t broken;                /* a field is wrong: left there, reported once */
	size_t left;                  /* unread mail without a handler */
	size_t cared;                 /* other things done: alerts, wake commands, channels pruned, ... */
};
/* Makes one round through self's unread mail: each message whose type has a handler is handled and acknowledged. A
 * message that was recorded as handled is never handled again, even if the process is killed at any point. MR_OK also
 * when handlers failed. MR_REFUSED: a setting is wrong; MR_BUSY: the room has no claims, and another patrol is at this
 * mailbox. *ret is also filled in when the round ends early. */
MR_API enum mr_rc mr_patrol(struct mr_room *room, const struct mr_self *self, const struct mr_patrol_options *options,
    struct mr_patrolled *ret, struct mr_error *err);
/* Is this a control message: one for a patrol, never shown to an agent as text? A control message with a wrong field
 * returns false, so that it is shown and not lost; err says what is wrong (else err->code is MR_OK). */
MR_API bool mr_is_control(struct mr_room *room, const char *agent, const struct mr_message *msg, struct mr_error *err);
/* Calls back for what the patrols of that mailbox did, the oldest first, at most the newest `limit` (0: all that is
 * kept). */
MR_API enum mr_rc mr_patrol_log(
    struct mr_room *room, const char *agent, size_t limit, mr_patrol_fn *fn, void *ctx, struct mr_error *err);

/* ---- Hand-offs, escalations, hygiene ---- */

struct mr_handoff {
	const char *subject; /* NULL: made from the text */
	const char *text;    /* NULL: the hand-off has no text */
	bool collect;        /* adds the state of the worktree, held work, unread mail, open questions */
	const char *dir;     /* its worktree; NULL: the working folder's */
	bool dry_run;
};
/* Sends self a durable, pinned message, which is the first that its next life is shown. */
MR_API enum mr_rc mr_handoff(struct mr_room *room, const struct mr_self *self, const struct mr_handoff *what,
    struct mr_receipt *ret, struct mr_error *err);
MR_API bool mr_handoff_is_own(const struct mr_self *self, const struct mr_message *msg);

enum mr_level { MR_LEVEL_LOW, MR_LEVEL_MEDIUM, MR_LEVEL_HIGH, MR_LEVEL_CRITICAL };
enum mr_escalation_status { MR_ESCALATION_OPEN, MR_ESCALATION_ACKED, MR_ESCALATION_CLOSED };
#define MR_ESCALATION_ID_LEN (4 + MR_TOKEN_LEN) /* "esc-" and a token */
struct mr_escalation {                          /* finish with mr_escalation_done */
	char id[MR_ESCALATION_ID_LEN + 1];
	enum mr_level severity, original;
	enum mr_escalation_status status;
	const char *text, *reason, *source, *related, *by; /* "" when missing */
	const char *acked_by, *closed_by, *closed_reason;
	int64_t at_ms, acked_ms, closed_ms;
	unsigned raised;   /* how often its severity was raised because nobody acknowledged it */
	int64_t raised_ms; /* when it was raised last; 0: never */
	bool mailed;       /* all agents on its route were told */
	const char *told;  /* those on the route who were told, separated by commas */
	void *own;
};
MR_API void mr_escalation_done(struct mr_escalation *e);
MR_API const char *mr_level_word(enum mr_level level);
MR_API enum mr_rc mr_level_parse(const char *word, enum mr_level *ret, struct mr_error *err);
MR_API const char *mr_escalation_status_word(enum mr_escalation_status status);

struct mr_untold { /* an agent on the route who could not be told, and why */
	const char *address, *why;
};
struct mr_escalated { /* finish with mr_escalated_done */
	char id[MR_ESCALATION_ID_LEN + 1];
	enum mr_level severity;
	bool repeated;            /* the same agent has the same text open: this is that id, nobody is told again */
	struct mr_names to;       /* the recipients of the mail */
	struct mr_untold *failed; /* those on the route who did not get it */
	size_t failed_n;
	char message[MR_ID_LEN + 1];
	void *own;
};
MR_API void mr_escalated_done(struct mr_escalated *e);
/* Uses severity, text, reason, source and related of `what`. The escalation is recorded before anybody is told.
 * MR_INDOUBT: somebody on the route could not be told (ret is filled in). */
MR_API enum mr_rc mr_escalate(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *what,
    bool force, bool dry_run, struct mr_escalated *ret, struct mr_error *err);
MR_LIST(mr_escalations, struct mr_escalation); /* the oldest first */
/* `all`: closed ones too. */
MR_API enum mr_rc mr_escalation_list(struct mr_room *room, bool all, struct mr_escalations *ret, struct mr_error *err);
/* id may be the last 6 or more characters of it. */
MR_API enum mr_rc mr_escalation_get(
    struct mr_room *room, const char *id, struct mr_escalation *ret, struct mr_error *err);
/* MR_REFUSED: it is closed. *ret_changed is false when it was acknowledged before. */
MR_API enum mr_rc mr_escalation_ack(
    struct mr_room *room, const struct mr_self *self, const char *id, bool *ret_changed, struct mr_error *err);
MR_API enum mr_rc mr_escalation_close(
    struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_error *err);
/* Raises each escalation that is open, not acknowledged and older than the room's Escalate-Stale (4h), counted from its
 * creation or last raise: by one step, at most twice in all, and tells the new route. It also tells those who could not
 * be told before. */
typedef void mr_escalation_stale_fn(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told);
MR_API enum mr_rc mr_escalation_stale(struct mr_room *room, const struct mr_self *self, bool dry_run,
    mr_escalation_stale_fn *fn, void *ctx, struct mr_error *err);

struct mr_lint { /* mail that breaks a rule of the room */
	const char
	    *rule; /* "budget", "duplicate", "nudge", "health-check", "placeholder", "routine", "empty-handoff" */
	const char *agent; /* its sender */
	const char *id;    /* of the message */
	const char *text;  /* a sentence */
	int64_t date_ms;
};
typedef void mr_lint_fn(void *ctx, const struct mr_lint *finding);
/* Checks the mail sent since then. policy NULL: the room's. MR_NOTFOUND: there is no such policy. */
MR_API enum mr_rc mr_lint_room(struct mr_room *room, const char *policy, int64_t since_ms, mr_lint_fn *fn, void *ctx,
    size_t *ret_looked_at, struct mr_error *err);

/* ---- Work that agents are given (Gas Town) ---- */

/* Sets the one message of the agent's inbox that it works on. The message is pinned, and stays on the hook until it is
 * archived. MR_REFUSED: another message is on the hook, unless `force`. */
MR_API enum mr_rc mr_hook_set(struct mr_room *room, const struct mr_self *self, const char *id, bool force,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* MR_EMPTY: nothing is on the hook. */
MR_API enum mr_rc mr_hook_get(
    struct mr_room *room, const char *agent, char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* Gives a bead to a rig: runs the room's Sling: command and appends BEAD, RIG and the options (NULL-terminated, or
 * NULL). MR_NOTFOUND: there is no such command; MR_REFUSED: it failed. The caller frees *ret_output. */
MR_API enum mr_rc mr_sling(struct mr_room *room, const char *bead, const char *rig, const char *const *options,
    char **ret_output, struct mr_error *err);
/* The branch that is checked out in the git worktree around that folder: the work that a worker reports as done. It is
 * read from git's files; no program is run. NULL: none. The caller frees it. */
MR_API char *mr_git_branch(const char *folder);

struct mr_redispatch_options {
	const char *rig; /* NULL: found by the room's Bead-Prefixes: */
	unsigned max_attempts;
	int64_t cooldown_ms;
};
enum mr_redispatch_end {
	MR_REDISPATCH_SLUNG,
	MR_REDISPATCH_ESCALATED,     /* too many attempts: the mayor was told */
	MR_REDISPATCH_WAS_ESCALATED, /* the mayor was told before */
	MR_REDISPATCH_COOLDOWN,      /* the last attempt is too recent */
	MR_REDISPATCH_NOT_OPEN,      /* says the room's Bead-Status: command */
};
struct mr_redispatched {
	enum mr_redispatch_end end;
	unsigned attempts; /* this one included */
	int64_t wait_ms;   /* MR_REDISPATCH_COOLDOWN: time that is left */
	char rig[MR_ADDRESS_MAX + 1];
	char status[32]; /* of the bead; "" when it is unknown or was not asked for */
};
/* Gives out a bead again that lost its worker. Every attempt counts, whether or not the sling succeeds. */
MR_API enum mr_rc mr_redispatch(struct mr_room *room, const struct mr_self *self, const char *bead,
    const struct mr_redispatch_options *options, struct mr_redispatched *ret, struct mr_error *err);
struct mr_redispatch_entry {
	const char *bead, *rig;
	unsigned attempts;
	int64_t last_ms, escalated_ms; /* 0: never */
};
struct mr_redispatches {
	void *own;
	struct mr_redispatch_entry *v;
	size_t n;
};
MR_API enum mr_rc mr_redispatch_list(struct mr_room *room, struct mr_redispatches *ret, struct mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
