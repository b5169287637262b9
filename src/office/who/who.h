/* SPDX-License-Identifier: MIT */
/*
 * who.h - agents, their lives and sessions, and which of them the caller is.
 *
 *	agent.c     agents: list, presence, names, counts
 *	session.c   bindings: which harness session, or which terminal, is which agent; sessions of Codex (threads)
 *	self.c      which agent the caller is; binding a session to a life
 *	told.c      what one life was told and is not to be told again
 *	token.c     tokens of the HTTP door: which agent their bearer is
 *
 * They may call address. Also shared by office/room, the highest folder, which may call all others:
 *
 *	find.c      finding the room           init.c      making one         open.c   opening one
 *	register.c  names and lives, the beginning and end of a session
 *	prune.c     removing agents
 *	doctor.c, leftovers.c   checking a room; lines that only earlier builds obeyed
 *
 * A life is one continuous occupation of an agent's name, by a session or a process. A newer life fences the older
 * ones.
 */
#ifndef OFFICE_WHO_H
#define OFFICE_WHO_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "harness/harness.h"
#include "office/office.h"
#include "room/room.h"

/* ---- find.c ---- */
bool path_has_room(const char *room_path); /* is there a `room` file in it? */

/* ---- init.c ---- */
/* Makes this the only line of its name in the settings of the native room at `path`; value NULL removes it, MR_NOTFOUND
 * if there is none. MR_REFUSED: the room belongs to another user. */
enum mr_rc room_put_setting(const char *path, const char *name, const char *value, struct mr_error *err);

/* Makes the mailbox of the person in charge. MR_EXISTS: it exists. */
enum mr_rc room_add_operator(struct mr_room *room, struct mr_error *err);

/* ---- session.c ---- */
struct binding { /* finish with binding_done; for session_save the strings are borrowed */
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	struct mr_process process;
	const char *session;
	const char *worktree;
	const char *room; /* its spec; set when read */
	int64_t bound_ms;
	struct mr_process shell; /* of a terminal: the shell of the command that registered */
	bool lists;              /* session_save: write the next two; else those in the file stay */
	bool hooked;             /* see tell/confirm.c */
	const char *noted;       /* ids, separated by blanks; '-' after an id: it was made unread once */
	const char *inherited;   /* see mr_env; session_save: NULL keeps those in the file */
	const char *file;        /* in struct sessions: its file name */
	struct record own;       /* holds the strings of a binding that was read */
};
void binding_done(struct binding *b); /* self.c */
/* MR_NOTFOUND: not bound in this room. MR_CORRUPT, MR_REFUSED: there is a file, but it cannot be trusted. */
enum mr_rc session_load(
    const char *state_dir, const char *session, const char *room_spec, struct binding *ret, struct mr_error *err);
bool session_save(const char *state_dir, const char *room_spec, const struct binding *b); /* false: it was not stored */
/* The binding in this room of another session of the same live harness process: /clear gives a running harness a new
 * session id. Only for harnesses that do so. False: there is none. */
bool session_find_process(const char *state_dir, const char *session, const char *room_spec,
    const struct mr_process *process, struct binding *ret);
/* May these two session ids of one process be the same session before and after /clear? */
bool session_may_clear(const char *a, const char *b);
bool session_is_in(const struct binding *b, const char *room_spec);
/* Was mail shown in the session, and it is not known yet whether the model got it? */
bool session_is_unconfirmed(const struct binding *b);
struct sessions { /* every readable binding, of any room; finish with sessions_done */
	int folder;
	struct binding *v;
	size_t n;
};
/* The bindings whose file names begin with `beginning`. Finish ret also on failure. */
enum mr_rc sessions_load(const char *state_dir, const char *beginning, struct sessions *ret);
void sessions_done(struct sessions *all);
/* For a harness that gives its shells and servers no id: the session of the nearest bound process above us, and that
 * process. The caller frees it. NULL: none, or the process has several sessions and ours is not known. */
char *session_above(const char *state_dir, struct mr_process *ret);
/* Serialises decisions that end in a binding. -1: no lock is possible (a read-only folder), go on. */
int session_lock(const char *state_dir);

bool terminal_is(const char *session); /* is it a binding of a terminal, not of a harness session? */
/* Outside a harness: the agents that this terminal session registered in this room; inside one none. MR_REFUSED: other
 * lives have all of these names now. The caller must not fall back to another agent, whose mail it would read. */
enum mr_rc terminal_agents(struct mr_room *room, const struct mr_env *env, struct mr_names *ret, struct mr_error *err);
/* Did the shell of this command, or one around it, register that agent? Several shells in one terminal may want one
 * name at once, and only one is to get it. */
bool terminal_registered(struct mr_room *room, const struct mr_env *env, const char *agent);
/* Binds this terminal to the agent; `alone`: removes its other bindings. False: there is no terminal, it ends with this
 * command, or there is no state folder. */
bool terminal_bind(struct mr_room *room, const struct mr_env *env, const char *agent, unsigned life, bool alone);

bool thread_is(const char *session);         /* one of Codex */
int64_t thread_made_ms(const char *session); /* its creation; 0: its id does not tell */
/* True: the server of all terminals, `process`, exists and has unloaded the thread. */
bool thread_is_unloaded(const char *session, const struct mr_process *process);
/* Does that server have other threads that were never bound to an agent? True also if that cannot be told. */
bool thread_has_strangers(const char *state_dir, const char *session, const struct mr_process *server);

/* ---- agent.c ---- */
bool agent_is_operator(const char *name); /* under any of its names ("human" and so on) */
/* False also for a life that is older than the name: the name was pruned and registered again. */
bool agent_has_life(const struct mr_agent *agent);
/* The current life of the agent; false: it has none. */
bool agent_life_of(struct mr_room *room, const char *name, struct mr_self *ret);
/* The local, normal name of "alice", "alice@thisroom", "human". ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc agent_local_name(const struct mr_room *room, const char *address, char *ret, struct mr_error *err);
/* MR_NOTFOUND for an unregistered name, with similar names and the line to type. */
enum mr_rc agent_unknown(struct mr_room *room, const char *name, struct mr_error *err);
/* "life 3, session claude-code-12, process 4711, in /w/a, since 2h" */
void agent_describe_life(const struct mr_agent *agent, struct buf *out);
/* Unread mail in the inbox, by names alone. */
enum mr_rc agent_unread(struct mr_room *room, const char *name, size_t *ret, struct mr_error *err);

/* ---- told.c ---- */
/* MR_NOTFOUND: there is none. */
enum mr_rc told_read(
    struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err);
/* `first`: it is the first of this life, so the texts of earlier lives are dropped. */
enum mr_rc told_write(struct mr_room *room, const struct mr_self *self, const char *kind, const struct buf *text,
    bool first, struct mr_error *err);
void told_forget(struct mr_room *room, const struct mr_self *self, const char *kind);
/* A set of words, a line each. */
void told_words(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_names *ret);
enum mr_rc told_put_words(struct mr_room *room, const struct mr_self *self, const char *kind,
    const struct mr_names *words, struct mr_error *err);

/* ---- self.c ---- */
#define PANE "pane" /* kind of record: the terminal of an agent's newest life */
#define PANE_NAME "tmux"
/* Records the terminal of this life, or that it has none. Best effort: without one, nudges are queued. */
void pane_remember(struct mr_room *room, const char *agent, unsigned life, const struct mr_env *env);
const char *self_session(const struct mr_env *env); /* or "" */
/* The binding of env's session in this room: its own file, the one from before /clear, or the life that names the
 * session. In a room without lives the agent need only exist. MR_NOTFOUND: unbound. *ret_saved: a file of this very
 * session id says so. */
enum mr_rc self_binding(
    struct mr_room *room, const struct mr_env *env, struct binding *ret, bool *ret_saved, struct mr_error *err);
/* If no id is known: the session and process of the harness above us, if one is bound. The result holds the id; the
 * caller frees it. */
char *self_surround(struct mr_env *env);
/* Is the binding's life still the newest? ret_agent is the agent. MR_REFUSED: fenced, with the holder and the line to
 * type; MR_NOTFOUND: the name was pruned. */
enum mr_rc self_check(struct mr_room *room, const struct mr_env *env, const struct binding *b,
    struct mr_agent *ret_agent, struct mr_error *err);
bool self_bind_plain(struct mr_room *room, const struct mr_env *env, const char *name);
/* Is agent's newest life that of env's session, or of its very process? */
bool self_is_life(const struct mr_env *env, const struct mr_agent *agent);
/* Records in the life and in a binding that env's session is this life. */
enum mr_rc self_adopt_life(
    struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, struct mr_error *err);
/* Takes the life after agent's newest for env's session, and binds it. MR_EXISTS: another process was faster. */
enum mr_rc self_take_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent,
    unsigned *ret_life, size_t *ret_returned, struct mr_error *err);

#endif
