/* SPDX-License-Identifier: MIT */
/*
 * mailroom-town.h - what Gas Town adds to mail: groups, work queues, channels, message types, nudges, patrols,
 * hand-offs, escalations, rules for mail, the current task of an agent. The rules of mailroom.h hold here as well.
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
	struct mr_group *v; /* by name */
	size_t n;
};
/* Also filled in when one of them cannot be read: the error says which. */
MR_API enum mr_rc mr_group_list(struct mr_room *room, struct mr_groups *ret, struct mr_error *err);
MR_API enum mr_rc mr_group_get(struct mr_room *room, const char *name, struct mr_group *ret, struct mr_error *err);
MR_API enum mr_rc mr_group_create(struct mr_room *room, const struct mr_self *self, const char *name,
    const char *const *members, struct mr_error *err); /* MR_EXISTS */
/* Adds or removes all members, up to NULL, in one change, or none of them. ret_changed has a place for each: false when
 * it was (not) a member already, which is success. */
MR_API enum mr_rc mr_group_change(struct mr_room *room, const char *name, bool add, const char *const *members,
    bool *ret_changed, struct mr_error *err);
/* A sentence for each of these members that reaches nobody now, up to twenty: they may come later, or are misspelled.
 */
MR_API enum mr_rc mr_group_check(
    struct mr_room *room, const char *const *members, struct mr_names *ret_trouble, struct mr_error *err);
MR_API enum mr_rc mr_group_delete(struct mr_room *room, const char *name, struct mr_error *err);

/* ---- Work queues ---- */

enum mr_queue_status { MR_QUEUE_ACTIVE, MR_QUEUE_PAUSED /* no claims */, MR_QUEUE_CLOSED /* no mail, no claims */ };
struct mr_queue {                      /* settings; finish with mr_queue_done */
	char name[MR_ADDRESS_MAX + 1]; /* NAME or RIG/NAME */
	const char *claimers;          /* pattern of agents; "*" alone: everybody */
	bool by_priority;              /* else first in, first out */
	unsigned max_claims;           /* live claims in the whole queue; 0: no limit */
	int64_t lease_ms;
	unsigned attempts; /* after so many it is failed; 0: never */
	enum mr_queue_status status;
	const char *created_by;
	int64_t created_ms;
	void *own;
};
MR_API void mr_queue_done(struct mr_queue *queue);
struct mr_queues {
	void *own;
	struct mr_queue *v; /* by name */
	size_t n;
};
/* Also filled in when one of them cannot be read: the error says which. */
MR_API enum mr_rc mr_queue_list(struct mr_room *room, struct mr_queues *ret, struct mr_error *err);
MR_API enum mr_rc mr_queue_get(struct mr_room *room, const char *name, struct mr_queue *ret, struct mr_error *err);
MR_API enum mr_rc mr_queue_create(
    struct mr_room *room, const struct mr_self *self, const struct mr_queue *settings, struct mr_error *err);
MR_API enum mr_rc mr_queue_set_status(
    struct mr_room *room, const char *name, enum mr_queue_status status, struct mr_error *err);
/* MR_REFUSED while work is in it, unless `force`, which moves it to dead letters. */
MR_API enum mr_rc mr_queue_delete(
    struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err);

struct mr_queue_counts {
	size_t ready, delayed, claimed, done, failed;
	size_t claimers, claimers_unknown; /* by the pattern: live, and those of whom nobody can tell from here */
};
/* Counted from what is there, never from counters. */
MR_API enum mr_rc mr_queue_count(
    struct mr_room *room, const char *name, struct mr_queue_counts *ret, struct mr_error *err);
/* What came since then, and what was done and failed. */
struct mr_queue_pace {
	size_t came, done, failed;
};
MR_API enum mr_rc mr_queue_pace(
    struct mr_room *room, const char *name, int64_t since_ms, struct mr_queue_pace *ret, struct mr_error *err);
/* The next work. lease_ms 0: the queue's. wait_ms 0: do not wait. MR_EMPTY: none. MR_REFUSED: paused, closed, not
 * a claimer. MR_BUSY: max_claims are live (after a wait: MR_EMPTY). Work that cannot be read is put aside and told in
 * ret_claim->skipped, with MR_EMPTY in the hint. done, release, fail and extend are those of recv: they take the token.
 */
MR_API enum mr_rc mr_queue_recv(struct mr_room *room, const struct mr_self *self, const char *name, int64_t lease_ms,
    int64_t wait_ms, struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err);
struct mr_queue_task {
	char id[MR_ID_LEN + 1];
	const char *state;          /* "claimed", "ready", "reserved", "delayed", "failed", "done" */
	const char *from, *subject; /* "" when it cannot be read */
	char
	    who[MR_ADDRESS_MAX + 1]; /* claimed: its holder; reserved: for whom; failed, done: the last holder; or "" */
	enum mr_priority priority;
	unsigned attempt;
	int64_t since_ms; /* claimed, released, failed or done, as far as that is known; else sent */
	int64_t until_ms; /* claimed: its lease; reserved, delayed: until then; else 0 */
	bool over;        /* claimed: its holder is gone, or its time is up */
};
struct mr_queue_tasks {
	void *own;
	struct mr_queue_task *v;
	size_t n;
	size_t more; /* that are not listed */
};
/* Claimed work first, all of it; then what is next, then what failed, with `done` also what is done: at most `limit` of
 * each state. */
MR_API enum mr_rc mr_queue_tasks(
    struct mr_room *room, const char *name, bool done, size_t limit, struct mr_queue_tasks *ret, struct mr_error *err);
/* What is still to be done, as this agent (NULL: nobody) sees it. Claims that are over are put back first. */
MR_API enum mr_rc mr_queue_left(
    struct mr_room *room, const char *agent, const char *name, struct mr_queue_left *ret, struct mr_error *err);
/* Until something is ready, or with `drained` until nothing is ready, delayed or claimed. MR_EMPTY: the time is up. */
MR_API enum mr_rc mr_queue_wait(struct mr_room *room, const char *name, bool drained, int64_t timeout_ms,
    struct mr_queue_left *ret, struct mr_error *err);
/* The work of queues that is in this agent's hands, the oldest claim of each queue first: MR_HELD, with its token. A
 * room without queues has none. The filter (NULL: everything) lets through as in a mailbox. */
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
	struct mr_channel *v; /* by name */
	size_t n;
};
/* Also filled in when one of them cannot be read: the error says which. */
MR_API enum mr_rc mr_channel_list(struct mr_room *room, struct mr_channels *ret, struct mr_error *err);
MR_API enum mr_rc mr_channel_get(struct mr_room *room, const char *name, struct mr_channel *ret, struct mr_error *err);
MR_API enum mr_rc mr_channel_create(struct mr_room *room, const struct mr_self *self, const char *name,
    int64_t retain_count, int64_t retain_ms, struct mr_error *err);
MR_API enum mr_rc mr_channel_subscribe(
    struct mr_room *room, const char *name, const char *agent, bool on, bool *ret_changed, struct mr_error *err);
MR_API enum mr_rc mr_channel_close(struct mr_room *room, const char *name, bool closed, struct mr_error *err);
MR_API enum mr_rc mr_channel_delete(struct mr_room *room, const char *name, struct mr_error *err);
/* Posts in order of their numbers, from the one after `after` (0: from the first that is kept). */
typedef bool mr_post_fn(void *ctx, uint64_t number, const struct mr_message *msg);
MR_API enum mr_rc mr_channel_read(struct mr_room *room, const char *name, uint64_t after, bool bodies, mr_post_fn *fn,
    void *ctx, struct mr_error *err);
/* How many are kept, and the number of the last (0: none); opens none of them. */
MR_API enum mr_rc mr_channel_count(
    struct mr_room *room, const char *name, uint64_t *ret_last, size_t *ret_count, struct mr_error *err);
/* Something was posted after that number, or the time is up (MR_EMPTY). */
MR_API enum mr_rc mr_channel_wait(
    struct mr_room *room, const char *name, uint64_t after, int64_t timeout_ms, struct mr_error *err);
/* Retention. With `buffer` (for patrols) the count limit acts only above 110 % of it. */
MR_API enum mr_rc mr_channel_prune(
    struct mr_room *room, const char *name, bool buffer, size_t *ret_removed, struct mr_error *err);

/* ---- Message types: files that say how the subject and text of a message look, and who sends it to whom ---- */

struct mr_type {
	const char *name;
	const char *pack; /* that it came with; "": the room's own */
	const char *summary;
	const char *subject; /* form: "MERGED {Polecat}"; "": it has none of its own */
	bool nudge;          /* a tap on the shoulder, not mail */
	bool routed;         /* for programs: not shown to an agent as text */
};
MR_LIST(mr_types, struct mr_type); /* the room's own first, then by pack and name */
/* Those that count here: a type of the room's own hides that of a pack with the same name. Files that are wrong go to
 * `trouble` (may be NULL). */
MR_API enum mr_rc mr_type_list(
    struct mr_room *room, struct mr_types *ret, mr_trouble_fn *trouble, void *ctx, struct mr_error *err);
/* The file as it is; ret_pack is where it comes from. MR_NOTFOUND with near names. The caller frees both. */
MR_API enum mr_rc mr_type_text(
    struct mr_room *room, const char *name, char **ret, size_t *ret_len, char **ret_pack, struct mr_error *err);
/* Makes it a type of this room, after checking it. MR_EXISTS: the room has it, unless `replace`. */
MR_API enum mr_rc mr_type_put(
    struct mr_room *room, const char *name, const char *text, size_t text_len, bool replace, struct mr_error *err);

struct mr_fields {        /* of one message, in the order of its type; finish with mr_fields_done */
	const char *type; /* "": plain mail, and no fields */
	const struct mr_header *v;
	size_t n;
	const char *text; /* after the fields */
	const char *json; /* of a JSON body: the whole object; or "" */
	void *own;
};
/* msg with its body. MR_OK with none for plain mail; MR_REFUSED, MR_CORRUPT: one is wrong, and err names it; ret has
 * what could be read all the same. */
MR_API enum mr_rc mr_message_fields(
    struct mr_room *room, const struct mr_message *msg, struct mr_fields *ret, struct mr_error *err);
MR_API void mr_fields_done(struct mr_fields *fields);

/* ---- Nudges: a tap on the shoulder, not mail ---- */

struct mr_nudge {                  /* all strings "" when missing */
	const char *from;          /* mr_nudge_send: self */
	const char *text;          /* at most MR_NUDGE_MAX bytes */
	enum mr_priority priority; /* MR_URGENT, or anything else: normal */
	const char *kind;          /* a word: "mail", "health_check"; or "" */
	const char *thread;
	int64_t at_ms;         /* when it was sent; set by mr_nudge_send */
	int64_t expires_ms;    /* not shown afterwards; 0: by the room's settings, 30 minutes, urgent ones 2 hours */
	int64_t not_before_ms; /* not shown earlier; 0: at once */
	unsigned times;        /* how often the same was sent while it waited; at least 1 */
	bool answer_wanted;    /* only where the room can hold it */
};
#define MR_NUDGE_MAX ((size_t)16 << 10)

enum mr_nudge_mode {
	MR_NUDGE_WAIT_IDLE, /* queued; when the agent's terminal is idle, a notice is typed there */
	MR_NUDGE_QUEUE,
	MR_NUDGE_IMMEDIATE, /* queued, and the notice is typed now, also while it works */
};
enum mr_nudge_way {
	MR_NUDGE_SKIPPED, /* the agent is not to be disturbed */
	MR_NUDGE_QUEUED,
	MR_NUDGE_SHOWN,  /* to a process of the agent that waited */
	MR_NUDGE_TYPED,  /* the notice was typed and submitted; the nudge is in the queue until it is shown */
	MR_NUDGE_PLACED, /* where the other program looks for it */
};
struct mr_nudge_options {
	enum mr_nudge_mode mode;
	bool force;          /* also one that is not to be disturbed */
	int64_t patience_ms; /* how long to wait for an idle terminal; 0: look once */
};
struct mr_nudged {
	enum mr_nudge_way way;
	bool coalesced; /* the same was waiting already: it is shown once, with its number */
	char why[240];  /* queued and not typed: why; or "" */
	char bell[24]; /* the door of the bell that rang for it: "codex-queue"; "wait": another process waited; or "" */
	char came[16]; /* of that bell: "told", "answered", "stale", "rung" (not answered yet), "untaken"; or "" */
};
/* MR_REFUSED: the queue is full (the agent is told with its next nudge). MR_INDOUBT: typed, but it cannot be seen that
 * it was submitted; MR_IO: MR_NUDGE_IMMEDIATE could not type it. In both cases it is queued, and ret is filled in. */
MR_API enum mr_rc mr_nudge_send(struct mr_room *room, const struct mr_self *self, const char *to,
    const struct mr_nudge *nudge, const struct mr_nudge_options *options, struct mr_nudged *ret, struct mr_error *err);

/* Waits for the answer to a nudge with answer_wanted that was sent at since_ms or later. MR_EMPTY: none came. The
 * caller frees *ret_text. */
MR_API enum mr_rc mr_nudge_answer(struct mr_room *room, const struct mr_self *self, const char *from, int64_t since_ms,
    int64_t wait_ms, char **ret_text, struct mr_error *err);

struct mr_nudges; /* nudges that are being shown, urgent ones first, then the oldest */
/* With `take` nobody else shows them until they are closed, or this process ends: what was not mr_nudges_shown then is
 * there again. MR_EMPTY: none; MR_BUSY: another process is showing them. */
MR_API enum mr_rc mr_nudges_open(
    struct mr_room *room, const char *agent, bool take, struct mr_nudges **ret, struct mr_error *err);
MR_API size_t mr_nudges_count(const struct mr_nudges *nudges);
MR_API const struct mr_nudge *mr_nudges_get(const struct mr_nudges *nudges, size_t i);
MR_API unsigned mr_nudges_refused(const struct mr_nudges *nudges); /* how many found the queue full since the last */
/* The first n were seen: they are removed. */
MR_API enum mr_rc mr_nudges_shown(struct mr_nudges *nudges, size_t n, struct mr_error *err);
MR_API void mr_nudges_close(struct mr_nudges *nudges);

/* Do not disturb: no nudges, no notices of mail; mail itself comes as ever. */
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
	const char *handler; /* the command, its fields filled in */
	const char *result;  /* a phrase: "exit 3: no such branch" */
	unsigned attempt;    /* 1: the first time; 0: nothing was run */
};
typedef void mr_patrol_fn(void *ctx, const struct mr_patrol_step *step);

struct mr_patrol_options {
	const struct mr_header *settings; /* before those of the room (Patrol-NAME: value): "Escalate-To", ... */
	size_t settings_n;
	bool dry_run;    /* only tell */
	bool patient;    /* what failed waits longer each time before it is tried again; for a patrol that stays */
	int64_t rest_ms; /* afterwards, when nothing was done: until mail comes, but at most so long */
	/* A message as its handler gets it on standard input, from malloc; NULL: out of memory. Required. */
	char *(*render)(void *ctx, const struct mr_message *msg, size_t *ret_len);
	mr_patrol_fn *fn;        /* or NULL */
	bool (*stop)(void *ctx); /* or NULL: asked before each message and before the rest; true ends the round */
	void *ctx;               /* of all three */
};
struct mr_patrolled {
	size_t handled, failed, dead; /* dead: given up and escalated; not among failed */
	size_t aside;                 /* from an earlier life of its sender: archived, not acted on */
	size_t waiting;               /* for the end of a cooldown, or of a handler that still runs */
	size_t broken;                /* a field is wrong: left, told once */
	size_t left;                  /* unread mail without a handler */
	size_t cared;                 /* other things done: alerts, wake commands, channels pruned, ... */
};
/* One round through self's unread mail: what has a type with a handler is handled and acknowledged. What was recorded
 * as handled never runs again, whichever process is killed when. MR_OK also when handlers failed. MR_REFUSED: a setting
 * is wrong; MR_BUSY: in a room without claims another patrol is at this mailbox. *ret is also filled in when it ends
 * early. */
MR_API enum mr_rc mr_patrol(struct mr_room *room, const struct mr_self *self, const struct mr_patrol_options *options,
    struct mr_patrolled *ret, struct mr_error *err);
/* Is this a message for a patrol, by which programs steer each other, never to be shown to an agent as text? One of
 * these with a wrong field is false, and err says what is wrong (else err->code is MR_OK): it is shown, or it would be
 * lost. */
MR_API bool mr_is_control(struct mr_room *room, const char *agent, const struct mr_message *msg, struct mr_error *err);
/* What the patrols of that mailbox did, the oldest first, at most the newest `limit` (0: all that is kept). */
MR_API enum mr_rc mr_patrol_log(
    struct mr_room *room, const char *agent, size_t limit, mr_patrol_fn *fn, void *ctx, struct mr_error *err);

/* ---- Hand-offs, escalations, hygiene ---- */

struct mr_handoff {
	const char *subject; /* NULL: from the text */
	const char *text;    /* NULL: that there is none */
	bool collect;        /* adds the state of the worktree, work in hand, unread mail, open questions */
	const char *dir;     /* whose worktree; NULL: here */
	bool dry_run;
};
/* A message to oneself, durable and pinned, that the next life is shown first. */
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
	unsigned raised;   /* how often its severity went up because nobody cared */
	int64_t raised_ms; /* when it did last; 0: never */
	bool mailed;       /* all on its route were told */
	const char *told;  /* those of the route who were, with commas between them */
	void *own;
};
MR_API void mr_escalation_done(struct mr_escalation *e);
MR_API const char *mr_level_word(enum mr_level level);
MR_API enum mr_rc mr_level_parse(const char *word, enum mr_level *ret, struct mr_error *err);
MR_API const char *mr_escalation_status_word(enum mr_escalation_status status);

struct mr_untold { /* one on the route who could not be told */
	const char *address, *why;
};
struct mr_escalated { /* finish with mr_escalated_done */
	char id[MR_ESCALATION_ID_LEN + 1];
	enum mr_level severity;
	bool repeated;      /* the same text of the same agent was open: that one's id, and nobody is told again */
	struct mr_names to; /* who got the mail */
	struct mr_untold *failed; /* who did not */
	size_t failed_n;
	char message[MR_ID_LEN + 1];
	void *own;
};
MR_API void mr_escalated_done(struct mr_escalated *e);
/* Of `what` severity, text, reason, source and related count. It is on record before anybody is told; MR_INDOUBT: not
 * everybody on the route could be told (ret is filled in). */
MR_API enum mr_rc mr_escalate(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *what,
    bool force, bool dry_run, struct mr_escalated *ret, struct mr_error *err);
MR_LIST(mr_escalations, struct mr_escalation); /* the oldest first */
/* With `all` also closed ones. */
MR_API enum mr_rc mr_escalation_list(struct mr_room *room, bool all, struct mr_escalations *ret, struct mr_error *err);
/* id may be its last 6 characters or more. */
MR_API enum mr_rc mr_escalation_get(
    struct mr_room *room, const char *id, struct mr_escalation *ret, struct mr_error *err);
/* MR_REFUSED: it is closed. *ret_changed: false when it was acknowledged already. */
MR_API enum mr_rc mr_escalation_ack(
    struct mr_room *room, const struct mr_self *self, const char *id, bool *ret_changed, struct mr_error *err);
MR_API enum mr_rc mr_escalation_close(
    struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_error *err);
/* Open, not acknowledged, and older than the room's Escalate-Stale (4h) since it was made or last raised: one step up,
 * at most twice, and those on the new route are told. Also tells those who could not be told before. */
typedef void mr_escalation_stale_fn(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told);
MR_API enum mr_rc mr_escalation_stale(struct mr_room *room, const struct mr_self *self, bool dry_run,
    mr_escalation_stale_fn *fn, void *ctx, struct mr_error *err);

struct mr_lint { /* mail that breaks a rule of the room */
	const char
	    *rule; /* "budget", "duplicate", "nudge", "health-check", "placeholder", "routine", "empty-handoff" */
	const char *agent; /* who sent it */
	const char *id;    /* of the message */
	const char *text;  /* a sentence */
	int64_t date_ms;
};
typedef void mr_lint_fn(void *ctx, const struct mr_lint *finding);
/* Looks through the mail sent since then. policy NULL: the room's. MR_NOTFOUND: there is no such policy. */
MR_API enum mr_rc mr_lint_room(struct mr_room *room, const char *policy, int64_t since_ms, mr_lint_fn *fn, void *ctx,
    size_t *ret_looked_at, struct mr_error *err);

/* ---- Work that agents are given (Gas Town) ---- */

/* The one message of its inbox that the agent works on. It is pinned, and stays on the hook until it is archived.
 * MR_REFUSED: another one is there, unless `force`. */
MR_API enum mr_rc mr_hook_set(struct mr_room *room, const struct mr_self *self, const char *id, bool force,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* MR_EMPTY: nothing. */
MR_API enum mr_rc mr_hook_get(
    struct mr_room *room, const char *agent, char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* Gives a bead to a rig by the room's Sling: command, with BEAD RIG and the options (NULL-terminated, or NULL) behind
 * its own words. MR_NOTFOUND: there is no such command; MR_REFUSED: it failed. The caller frees *ret_output. */
MR_API enum mr_rc mr_sling(struct mr_room *room, const char *bead, const char *rig, const char *const *options,
    char **ret_output, struct mr_error *err);
/* What a worker says it is done with: the branch that is checked out in the git worktree around that folder, read from
 * its files: no program is run. NULL: none. The caller frees it. */
MR_API char *mr_git_branch(const char *folder);

struct mr_redispatch_options {
	const char *rig; /* NULL: by the room's Bead-Prefixes: */
	unsigned max_attempts;
	int64_t cooldown_ms;
};
enum mr_redispatch_end {
	MR_REDISPATCH_SLUNG,
	MR_REDISPATCH_ESCALATED,     /* too many attempts: the mayor was told */
	MR_REDISPATCH_WAS_ESCALATED, /* before */
	MR_REDISPATCH_COOLDOWN,      /* the last attempt is too young */
	MR_REDISPATCH_NOT_OPEN,      /* by the room's Bead-Status: command */
};
struct mr_redispatched {
	enum mr_redispatch_end end;
	unsigned attempts; /* this one included */
	int64_t wait_ms;   /* MR_REDISPATCH_COOLDOWN: so long yet */
	char rig[MR_ADDRESS_MAX + 1];
	char status[32]; /* of the bead, "" when nobody knows; only once it was asked for */
};
/* Gives a bead that lost its worker out again. Every attempt counts, whether or not the sling succeeds. */
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
