/* SPDX-License-Identifier: MIT */
/*
 * peer.h - a process that stands for an agent among the peers of Claude Code, so that what a session sends to that name
 * lands in the agent's mailbox. None of Claude Code's part is documented; what was seen is 2.1.325.
 *
 *	frame.c     what a session writes to the socket of another: bytes to a text, no I/O
 *	registry.c  Claude Code's list of sessions: the entry of a process, and one of our own
 *	peer.c      the socket, who writes, the delivery, and the two doors: `mailroom peer` and `mailroom mcp --peers`
 */
#ifndef CLI_PEER_PEER_H
#define CLI_PEER_PEER_H

#include "cli/cli.h"

/* ---- frame.c ---- */
/* It fits into the buffer of a socket: it is read only when the message is stored. */
#define FRAME_MAX ((size_t)128 << 10)
/* The text in the two lines, added to *ret. Returns what is wrong with them, or NULL. */
const char *frame_text(struct mr_str lines, const char *token, const char *session, struct buf *ret);

/* ---- registry.c ---- */
struct registry_entry { /* what a process says there; "" for what it does not say, or what is too long to be true */
	char session[64], status[16], kind[16], name[64], socket[108];
	bool runs; /* the process that wrote it does */
};
/* The folder "sessions" of Claude Code's configuration, which is $CLAUDE_CONFIG_DIR or ~/.claude. */
enum mr_rc registry_open(int *ret_fd, struct mr_error *err);
bool registry_read(int registry_fd, int64_t pid, struct registry_entry *ret);
/* The name of the file with the token for a socket. */
void registry_key_name(int64_t pid, const char *socket, struct buf *ret);

struct stand_in {              /* what this process has there; STAND_IN_INIT before registry_enter */
	int registry, sockets; /* folders */
	int lock;              /* one process stands for an agent */
	int listens;
	char session[37], token[33];
	char socket[108];
};
#define STAND_IN_INIT ((struct stand_in){ .registry = -1, .sockets = -1, .lock = -1, .listens = -1 })
/* Entry, key and socket for the agent. MR_BUSY: another process stands for it. */
enum mr_rc registry_enter(struct stand_in *s, struct cli *cli, const char *agent, struct mr_error *err);
void registry_leave(struct stand_in *s);

/* ---- peer.c ---- */
struct mcp_server;
/* In a process of the server's: stands for the agent that it acts as, until `end` can be read. */
_Noreturn void peer_run(struct mcp_server *server, int end);

#endif
