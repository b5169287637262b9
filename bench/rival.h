/* SPDX-License-Identifier: MIT */
/*
 * rival.h - others that keep one message of 1 KB, measured beside mailroom on the same disk.
 *
 * Two groups that are never compared with each other: as a command (a program is started for every message) and with an
 * open handle (a connection, an open database or room, a program that runs already). What a peer does not
 * promise, it need not do: each says in words what is left after a power cut.
 *
 *	rivals.c        the table; one message each, in turn; bytes and syncs of a message
 *	rival_files.c   mailroom, its bare calls, mblaze, nq, a shell mailbox
 *	rival_node.c    the inbox of a team, by Node
 *	rival_sqlite.c  SQLite in this process and as a command
 *	rival_server.c  redis, beanstalkd, PostgreSQL
 *	server.c        a server of the bench's own: started, spoken to, ended by its pid
 *	parallel.c      1, 8 and 32 of them at once
 *	disk.c          what a folder takes on the disk; syncs of everything below this process
 */
#ifndef RIVAL_H
#define RIVAL_H

#include "bench.h"

#define COMMAND "command"
#define OPEN "open"
#define SENDERS_MAX 32

struct rival {
	const char *name, *how;                                /* COMMAND or OPEN */
	const char *folder;                                    /* all its data, in the work folder */
	const char *durability;                                /* what it really gives */
	const char *note;                                      /* on the bytes or the way of measuring; may be NULL */
	unsigned window_ms;                                    /* how long many send at once; 0: not measured */
	bool (*start)(struct bench *b, const struct rival *r); /* false: not here */
	void *(*open)(struct bench *b, const struct rival *r, unsigned sender);
	double (*send)(struct bench *b, void *handle);
	void (*rest)(struct bench *b, void *handle);   /* until nothing of it runs in the background; may be NULL */
	void (*settle)(struct bench *b, void *handle); /* what is written later anyway is written now; may be NULL */
	void (*close)(void *handle);
	void (*stop)(const struct rival *r); /* may be NULL */
};

extern const struct rival bare_open, mailroom_command, mailroom_library, mailroom_fast_command, mailroom_fast_library,
    mdeliver_command, nq_command, shell_command, shell_open;
extern const struct rival teams_command, teams_open, sqlite_command, sqlite_open, sqlite_wal_command, sqlite_wal_open;
extern const struct rival redis_command, redis_open, beanstalkd_command, beanstalkd_open, postgres_command,
    postgres_open;
extern const struct rival *const all_rivals[]; /* NULL at the end */

/* ---- A command as a handle ---- */

#define COMMAND_ARGS 14

struct command {
	const char *argv[COMMAND_ARGS];
	const char *input;    /* a file; NULL: nothing */
	const char *variable; /* one more of the environment; may be NULL */
	char *owned[2];       /* freed with it */
};

struct command *command_new(const char *const *argv, const char *input);
double command_send(struct bench *b, void *handle);
void command_close(void *handle);

/* ---- Servers ---- */

bool is_here(const char *program); /* where commands are looked for, and in sbin */
/* Its working folder is `folder`, its output goes to a file there. Signalled with end_with when this process ends,
 * however that happens. */
void server_start(const char *folder, const char *const *argv, bool as_nobody, int end_with);
void server_stop(const char *folder);
pid_t server_pid(const char *folder); /* 0: none there */
int connect_unix(const char *path);
int connect_loopback(unsigned port);
unsigned free_port(void);
/* Sends all, then reads until `end` has come; the answer is NUL-terminated. */
void ask(int fd, const char *request, size_t len, const char *end, char *answer, size_t size);

/* ---- The disk ---- */

struct usage {
	double bytes, allocated; /* of contents; of blocks */
};
struct usage usage_of(const char *folder);
/* Syncs of this process, of a server (0: none) and of all that they start from now on. false: cannot be counted here.
 */
bool syncs_begin(struct bench *b, pid_t server);
long syncs_now(void); /* so far */
void syncs_end(void);

#endif
