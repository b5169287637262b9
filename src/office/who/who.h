/* SPDX-License-Identifier: MIT */
/*
 * who.h - shared by the half of the post office that knows where the room is and who is who.
 *
 *	agent.c     agents: list, presence, names, counts
 *	session.c   bindings: which harness session, or which terminal, is which agent; sessions of Codex (threads)
 *	self.c      who am I, tying a session to a life
 *	told.c      what one life was told and shall not be told again
 *	token.c     tokens of the HTTP door: which agent their bearer is
 *
 * and by office/room, the highest folder, which may call all others:
 *
 *	find.c      where the room is          init.c      making one         open.c   opening one
 *	register.c  names and lives, the beginning and end of a session
 *	prune.c     taking names away
 *	doctor.c, leftovers.c   is it well; what earlier builds obeyed
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
/* Makes that the only line of its name in the settings of the native room at `path`; value NULL removes it, MR_NOTFOUND
 * if there is none. MR_REFUSED: the room is another user's. */
enum mr_rc room_put_setting(const char *path, const char *name, const char *value, struct mr_error *err);

/* The mailbox of the person in charge. MR_EXISTS. */
enum mr_rc room_add_operator(struct mr_room *room, struct mr_error *err);

/* ---- session.c ---- */
struct binding { /* finish with binding_done; to save: the strings are borrowed */
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	struct mr_process process;
	const char *session;
	const char *worktree;
	const char *room; /* its spec; of one that was read */
	int64_t bound_ms;
	struct mr_process shell; /* of a terminal: what ran the command that registered */
	bool lists;              /* to save: these two as they are here; else those that stand in the file stay */
	bool hooked;             /* see tell/confirm.c */
	const char *noted;       /* ids, with blanks between them; with a '-' behind it: was unread again once */
	const char *inherited;   /* see mr_env; NULL, to save: those that stand in the file stay */
	const char *file;        /* in struct sessions: its name */
	struct record own;       /* what was read has its strings there */
};
void binding_done(struct binding *b); /* self.c */
/* MR_NOTFOUND: not bound in this room. MR_CORRUPT, MR_REFUSED: there is a file, but it cannot be trusted. */
enum mr_rc session_load(
    const char *state_dir, const char *session, const char *room_spec, struct binding *ret, struct mr_error *err);
bool session_save(const char *state_dir, const char *room_spec, const struct binding *b); /* false: it is not kept */
/* The binding in this room of another session of the same live harness process: /clear gives a running
 * harness a new session id. Only for harnesses that do so. False: there is none. */
bool session_find_process(const char *state_dir, const char *session, const char *room_spec,
    const struct mr_process *process, struct binding *ret);
/* May these two session ids of one process be the same session before and after /clear? */
bool session_may_clear(const char *a, const char *b);
bool session_is_in(const struct binding *b, const char *room_spec);
/* Was mail shown in it, of which it is not known yet that the model got it? */
bool session_is_unconfirmed(const struct binding *b);
struct sessions { /* every binding that can be read, of whatever room; finish with sessions_done */
	int folder;
	struct binding *v;
	size_t n;
};
/* The bindings whose file names begin so. ret is to be finished in any case. */
enum mr_rc sessions_load(const char *state_dir, const char *beginning, struct sessions *ret);
void sessions_done(struct sessions *all);
/* For a harness that tells its shells and servers no id: the session of the nearest bound process above us, and that
 * process. The caller frees it. NULL: none, or its process does not say which of its sessions we are in. */
char *session_above(const char *state_dir, struct mr_process *ret);
/* Decisions that end in a binding are made one at a time. -1: no lock could be had (a read-only folder), go
 * on. */
int session_lock(const char *state_dir);

bool terminal_is(const char *session); /* a binding of a terminal, not of a harness's session */
/* Outside of a harness: the agents that this terminal session registered in this room; none elsewhere. */
enum mr_rc terminal_agents(struct mr_room *room, const struct mr_env *env, struct mr_names *ret, struct mr_error *err);
/* Did the shell that this command runs in, or one around it, register that agent? Others in the same terminal, started
 * side by side, may want one name at once, and one is to get it. */
bool terminal_registered(struct mr_room *room, const struct mr_env *env, const char *agent);
/* Notes that it registered this one; `alone`: and is no other. False: there is no terminal, it ends
 * with this command, or there is nowhere to note it. */
bool terminal_bind(struct mr_room *room, const struct mr_env *env, const char *agent, unsigned life, bool alone);

bool thread_is(const char *session);         /* one of Codex */
int64_t thread_made_ms(const char *session); /* when it began; 0: its id does not tell */
/* The server of all terminals, `process`, is there and does not have it any more. */
bool thread_is_unloaded(const char *session, const struct mr_process *process);
/* Has that server threads beside this one that never were bound to anybody? True also when nobody can tell. */
bool thread_has_strangers(const char *state_dir, const char *session, const struct mr_process *server);

/* ---- agent.c ---- */
bool agent_is_operator(const char *name); /* by any of its names, "human" and so on */
/* False also for a life that is older than the name: its name was pruned, and made anew by somebody. */
bool agent_has_life(const struct mr_agent *agent);
/* The life that the agent has now; false: it has none. */
bool agent_life_of(struct mr_room *room, const char *name, struct mr_self *ret);
/* The local, normal name of "alice", "alice@thisroom", "human". ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc agent_local_name(const struct mr_room *room, const char *address, char *ret, struct mr_error *err);
/* MR_NOTFOUND for a name that nobody registered, with near names and the line to type. */
enum mr_rc agent_unknown(struct mr_room *room, const char *name, struct mr_error *err);
/* "life 3, session claude-code-12, process 4711, in /w/a, since 2h" */
void agent_describe_life(const struct mr_agent *agent, struct buf *out);
/* Unread mail in the inbox, by names alone. */
enum mr_rc agent_unread(struct mr_room *room, const char *name, size_t *ret, struct mr_error *err);

/* ---- told.c ---- */
/* MR_NOTFOUND: nothing is noted. */
enum mr_rc told_read(
    struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err);
/* With `first`, the first of this life, what earlier lives were told is forgotten. */
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
/* Remembers the terminal of this life, or that it has none. Best effort: without one, nudges are queued. */
void pane_remember(struct mr_room *room, const char *agent, unsigned life, const struct mr_env *env);
const char *self_session(const struct mr_env *env); /* or "" */
/* The binding of env's session in this room: its own file, the one from before /clear, or the life that names
 * the session. In a room without lives, where nobody is fenced, the agent need only be there still. MR_NOTFOUND:
 * unbound. *ret_saved: a file of this very session id says so. */
enum mr_rc self_binding(
    struct mr_room *room, const struct mr_env *env, struct binding *ret, bool *ret_saved, struct mr_error *err);
/* Where no id is known at all: the session and process of the harness above us, if one is bound. What is returned
 * keeps the id; the caller frees it. */
char *self_surround(struct mr_env *env);
/* Is the binding's life still the newest? ret_agent is the agent. MR_REFUSED: fenced, with who and what to
 * type; MR_NOTFOUND: the name was pruned. */
enum mr_rc self_check(struct mr_room *room, const struct mr_env *env, const struct binding *b,
    struct mr_agent *ret_agent, struct mr_error *err);
bool self_bind_plain(struct mr_room *room, const struct mr_env *env, const char *name);
/* Is agent's newest life the one of env's session, or of its very process? */
bool self_is_life(const struct mr_env *env, const struct mr_agent *agent);
/* Notes in the life and in a binding that env's session is this life. */
enum mr_rc self_adopt_life(
    struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, struct mr_error *err);
/* Takes the life after agent's newest for env's session, and binds it. MR_EXISTS: another was quicker. */
enum mr_rc self_take_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent,
    unsigned *ret_life, size_t *ret_returned, struct mr_error *err);

#endif
