/* SPDX-License-Identifier: MIT */
/*
 * hook.h - `mailroom hook HARNESS`: a harness runs it at certain moments with the event as JSON on stdin, and reads
 * the answer in a form of its own.
 *
 *	event.c    what the harness says, what it is told, whom a worker wrote to last (pure, fuzzed)
 *	moments.c  the command: its input, its time limit, its log; and what is done at which moment
 *	ring.c     the bells of harnesses that are woken from outside of a hook's own end
 *	session.c  a session is told once, however many hooks run at that moment; --wait: beside an idle session
 *
 * A hook must never be in the way of an agent: whatever goes wrong here is written into the log, and the answer is
 * silence and exit 0.
 */
#ifndef CLI_HOOK_HOOK_H
#define CLI_HOOK_HOOK_H

#include "cli/cli.h"
#include "cli/harness.h"

struct event { /* strings are "" when missing, and live in the arena */
	enum moment moment;
	const char *name; /* as the harness calls it; of our table */
	const char *session;
	const char *cwd;
	const char *source;     /* of a start: startup, resume, clear, compact */
	const char *reason;     /* of an end: clear and resume are none, another session of the same process follows */
	const char *transcript; /* a path */
	const char *prompt;     /* if it is short enough for a ring; else "" */
	bool unprompted;        /* of a prompt: it is empty */
	bool stopping;          /* of a stop: this turn exists because a hook of its harness blocked the last one */
	bool aborted;           /* of a stop: by the user, or an error */
	struct mr_str result;   /* of a tool: what the model gets of it, as JSON; it lives in the text of the event */
	bool mailroom;          /* of a tool: it is ours, or its command names us */
	bool subagent;          /* a helper inside the session: it has no mailbox of its own */
};

struct hook {
	struct cli *cli;
	const struct harness *harness;
	struct event event;
	struct cli_sink sink; /* what the command says beside its answer goes to the log */
	const char *log_dir;  /* NULL: there is no log */
	int64_t began_ms;     /* what the room told so far may be as old as this */
	int telling;          /* the lock of the process that tells this session something; -1: not ours */
	bool repeat;          /* another process has just told of this very start */
};

/* ---- event.c ---- */
/* Takes any bytes. False: no event of that harness can be seen in them, *ret_problem says why. Text that was cut off is
 * read as far as it goes. */
bool event_parse(
    const struct harness *harness, struct mr_str text, struct arena **own, struct event *ret, const char **ret_problem);

enum answer {
	ANSWER_CONTEXT, /* the model reads it */
	ANSWER_GO_ON,   /* the turn does not end: the model reads it and goes on */
	ANSWER_BLOCK,   /* the model is not asked; the person at the harness reads why */
	ANSWER_USER,    /* for the person at the harness; the model does not see it */
};
/* Can the harness take that at this moment? */
bool answer_fits(const struct harness *harness, const struct event *event, enum answer answer);
/* Is it known that the model sees what is said at this moment? Else it is said, and not remembered as told. */
bool answer_reaches(const struct harness *harness, const struct event *event);
/* Lines that are only a <system-reminder> tag are left out. */
void answer_without_tags(struct mr_str text, struct buf *out);
/* One line of JSON with only the keys that the harness knows, the text without tags. */
void answer_write(
    const struct harness *harness, const struct event *event, enum answer answer, struct mr_str text, struct buf *out);

/* "[to NAME] SUMMARY" by the rule of the original; false: nothing to say. `text` is the end of a record of a session,
 * an entry a line. */
bool transcript_last_peer(struct mr_str text, const char *lead, struct buf *out);

/* ---- moments.c ---- */
/* One line, "<time> <harness> <event>: <text>". Best effort. */
void log_line(const struct hook *h, const char *text);
/* After so long the process ends with 0, with a line in the log that has the harness and the event as they are known
 * now. 0: no limit any more. */
void time_limit(const struct hook *h, int seconds);

/* Opens the room and finds out who this session is. MR_NOTFOUND: outside of any room, or nobody. `tells`: this process
 * says what is unread, so that at a start all of it is new. */
enum mr_rc hook_know_self(struct hook *h, bool tells, struct mr_arrival *ret_arrival, struct mr_error *err);
enum mr_inject_format hook_format(const struct hook *h);

/* ---- ring.c ---- */
/* Rings the session's bell as mr_wake_ring does. */
enum mr_rc ring_bell(struct hook *h, struct mr_wake *what, struct mr_error *err);
/* Of a Unix socket: both ends; -1: nobody listens there, or the path cannot be one. Only our user may connect. */
int socket_connect(const char *path);
int socket_listen(const char *path);
/* Writes to a session's socket. MR_REFUSED: it is not there, or did not take it. */
enum mr_rc ring_socket(const struct harness_socket *door, const char *session, const char *text, struct mr_error *err);
bool ring_has_door(const struct hook *h); /* can this session be woken at all? */

/* ---- session.c ---- */
/* From now on no other process tells this session anything, until this one ends. True: one has since `read_ms` (of the
 * boot clock), so what was read then must be read again. */
bool telling_begin(struct hook *h, int64_t read_ms);
void telling_note(const struct hook *h); /* this process has told it something, and that is remembered */
/* The session ended: its files go, and with them its waiter. */
void session_forget(const struct hook *h);
/* Returns the exit code: HOOK_WAKES after text on stderr, which wakes the session. */
#define HOOK_WAKES 102 /* hook_exit makes of it what the harness understands */
int waiter_run(struct hook *h, int64_t gather_ms);

#endif
