/* SPDX-License-Identifier: MIT */
/*
 * hook.h - `mailroom hook HARNESS`: a harness runs it at certain moments with the event as JSON on stdin, and reads
 * the answer in a form of its own.
 *
 *	event.c       what the harness says, what it is told, whom a worker wrote to last (pure, fuzzed)
 *	input.c       standard input, bounded, and the time limit of the whole
 *	log.c         why a hook did nothing: a small file in the state folder
 *	moments.c     what is done at which moment
 *	once.c        a session is told once, however many hooks run at that moment
 *	greeting.c    what a session is told at its start: who it is
 *	idle.c        in a team: the lead is told that a worker is idle
 *	waiter.c      --wait: beside an idle session, until there is something to wake it for
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
	bool stopping;          /* of a stop: this turn exists because a hook of its harness blocked the last one */
	bool aborted;           /* of a stop: by the user, or an error */
	struct mr_str result;   /* of a tool: what the model gets of it, as JSON; it lives in the text of the event */
	bool mailroom;          /* of a tool: it is ours, or its command names us */
	bool subagent;          /* a helper inside the session: it has no mailbox of its own */
};
/* Takes any bytes. False: no event of that harness can be seen in them, *ret_problem says why. Text that was cut off is
 * read as far as it goes. */
bool event_parse(
    const struct harness *harness, struct mr_str text, struct arena **own, struct event *ret, const char **ret_problem);

enum answer {
	ANSWER_CONTEXT, /* the model reads it */
	ANSWER_GO_ON,   /* the turn does not end: the model reads it and goes on */
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

/* Standard input to its end; of more than INPUT_MAX the rest is read and dropped. */
enum mr_rc input_read(struct buf *ret, struct mr_error *err);
#define INPUT_MAX ((size_t)4 << 20)
/* After so long the process ends with 0, with a line in the log. 0: no limit any more. */
void time_limit(int seconds);

/* One line, "<time> <harness> <event>: <text>". Best effort. */
void log_begin(struct cli *cli, const char *harness);
void log_event(const char *event);
void log_line(const char *text);
void log_error(const struct mr_error *err);
void log_late(void); /* from a signal handler: that the time is up */

/* What is done at this moment; text for the harness goes to cli->out. */
void moment_run(struct cli *cli, const struct harness *harness, const struct event *event);
/* Opens the room and finds out who this session is. MR_NOTFOUND: outside of any room, or nobody. `tells`: this process
 * says what is unread, so that at a start all of it is new. */
enum mr_rc moment_know_self(
    struct cli *cli, const struct event *event, bool tells, struct mr_arrival *ret_arrival, struct mr_error *err);
/* Nobody else tells this session anything until this process ends. What was read before is to be read again. */
void once_begin(struct cli *cli, const struct event *event);
bool once_is_repeat(void);                 /* another process has just told of this very start */
void once_note(const struct event *event); /* this one has */
void once_forget(struct cli *cli);         /* the session ended */
enum mr_inject_format moment_format(const struct cli *cli);
void greeting_add(struct cli *cli, const struct harness *harness, const struct mr_arrival *arrival, struct buf *out);

/* Room of a team: tells its lead that this worker is idle. */
void idle_notify(struct cli *cli, const struct event *event);
/* "[to NAME] SUMMARY" by the rule of the original; false: nothing to say. `text` is the end of a record of a session,
 * an entry a line. */
bool transcript_last_peer(struct mr_str text, const char *lead, struct buf *out);

/* Returns the exit code: EXIT_WAKE with text on stderr wakes the session. */
#define EXIT_WAKE 2
int waiter_run(struct cli *cli, const struct event *event);
/* The session ended: nobody waits for it any more. */
void waiter_dismiss(struct cli *cli);

#endif
