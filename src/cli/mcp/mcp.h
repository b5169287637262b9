/* SPDX-License-Identifier: MIT */
/*
 * mcp.h - the MCP server over standard input and output: one JSON-RPC message a line.
 *
 *	serve.c    the loop: lines in, answers of workers and news of watchers out, cancelling, leaving
 *	request.c  one line as a request, and which era of the protocol it is of
 *	methods.c  what each method answers, and the form of answers, errors and notices
 *	tools.c    the eight tools: their table, how they are listed, and a call as a command line
 *	worker.c   the processes that the server starts: one for each call, one for each subscription
 *	bell.c     another one, which wakes an idle session of Claude Code where its hooks do not; with --peers there is
 *	           one more, cli/peer/peer.c
 *
 * The server itself never touches a room. Each call runs in a process of its own: a `wait` blocks nobody, a crash is
 * one failed call, and cancelling is closing its socket. A worker marks mail as shown only after the server said that
 * stdout took the answer (promise 9).
 */
#ifndef CLI_MCP_MCP_H
#define CLI_MCP_MCP_H

#include "cli/cli.h"
#include "message/json_read.h"
#include <sys/types.h>

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_LINE_MAX ((size_t)32 << 20)
#define MCP_CALLS_MAX 16
#define MCP_LISTENERS_MAX 16
#define MCP_CHILDREN_MAX (MCP_CALLS_MAX + MCP_LISTENERS_MAX)
#define MCP_INBOX_URI "mailroom://inbox"
#define MCP_META "io.modelcontextprotocol/"

enum mcp_code {
	MCP_PARSE = -32700,
	MCP_INVALID = -32600,
	MCP_NO_METHOD = -32601,
	MCP_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_NO_RESOURCE = -32002, /* legacy only */
	MCP_VERSION = -32022,
};

enum mcp_era { MCP_LEGACY, MCP_MODERN };
enum mcp_kind { MCP_REQUEST, MCP_NOTICE, MCP_RESPONSE, MCP_BAD };

struct mcp_request { /* borrows the line */
	enum mcp_kind kind;
	enum mcp_era era;
	struct mr_str id;         /* as it was written: a string with its quotes, or a number; "null": none */
	struct mr_str method;     /* without its quotes; a method with escapes in it is none that we know */
	struct json_value params; /* an empty object when there are none */
	struct json_value meta;   /* likewise */
	struct json_value all;
	/* MCP_BAD: what to answer */
	enum mcp_code code;
	char problem[160];
	char version[40]; /* MCP_VERSION: the one that was asked for */
};

struct mcp_child { /* what is under way for a request; id NULL: the place is free */
	char *id;  /* raw; "" is the one of resources/subscribe */
	pid_t pid; /* its process; 0: it needs none (a subscription to lists, which never change) */
	int fd;    /* of a call: its answer; of a watcher: a byte for each piece of news */
	/* Of a call: */
	char *progress; /* raw token, or NULL */
	bool patient;   /* it waits for mail: it is not waited for when the client leaves */
	bool settling;  /* answered; it marks what was shown, and ends */
	int64_t started_ms, told_ms, limit_ms;
	struct buf answer;
};

struct mcp_extra;
struct mcp_server {
	const char *room, *as; /* options of the command line, or NULL */
	const struct mcp_extra *extra;
	bool initialized;                            /* a client of the handshake era is there */
	bool greeted;                                /* --greeted: another process hears one request of its client */
	bool opencode;                               /* started by OpenCode, whose plugin names the session */
	bool gone;                                   /* stdout takes nothing any more */
	int64_t session_pid;                         /* bell_session() */
	struct mcp_child children[MCP_CHILDREN_MAX]; /* calls first, then MCP_LISTENERS_MAX subscriptions */
};

/* Tools, resources and prompts of the protocol's conformance suite: test builds, with --conformance. */
struct mcp_extra {
	/* Appends entries to an open array: "tools", "resources", "resourceTemplates", "prompts". */
	void (*list)(struct json *j, const char *what, enum mcp_era era);
	/* Further members of the open capabilities object. */
	void (*capabilities)(struct json *j, enum mcp_era era);
	/* Each request, before we look at it. True: it was answered with mcp_write, or will be. */
	bool (*request)(struct mcp_server *s, const struct mcp_request *r);
};
#ifdef MR_FAULT_ENV
extern const struct mcp_extra mcp_fixtures; /* tests/support/mcp_fixtures.c */
#endif

/* ---- request.c ---- */
void request_parse(struct mr_str line, bool initialized, struct mcp_request *ret);
bool request_is(const struct mcp_request *r, const char *method);
#define MCP_SESSION_ARGUMENT "mailroom_session" /* of a tool, in OpenCode */
/* "codex-<id>" when the caller's harness names its session in _meta; NULL: it does not. The caller frees it. */
char *request_session(const struct mcp_request *r, bool opencode);

/* ---- methods.c ---- */
void mcp_handle(struct mcp_server *s, const struct mcp_request *r);
bool mcp_is_legacy(const char *version); /* is it one of the handshake era? */
/* An answer is begun, its members are added, and it is ended with the line. */
void answer_begin(struct json *j, const struct mcp_request *r);
void answer_end(struct json *j, const struct mcp_request *r);
/* Modern: for how long it holds. */
void answer_cache(struct json *j, const struct mcp_request *r, int64_t ttl_ms, bool everybody);
/* uri: of a resource that is not there, or NULL. */
void answer_error(
    struct buf *line, const struct mcp_request *r, enum mcp_code code, const char *message, const char *uri);
/* {"jsonrpc","method","params":{ stays open; line_end closes all that is open, and ends the line. */
void notice_begin(struct json *j, const char *method);
void line_end(struct json *j);
/* One line to the client. False: stdout did not take it. */
bool mcp_write(struct mcp_server *s, const struct buf *line);
/* Both return false. */
bool mcp_error(struct mcp_server *s, const struct mcp_request *r, enum mcp_code code, const char *fmt, ...)
    MR_PRINTF(4, 5);
bool mcp_tool_error(struct mcp_server *s, const struct mcp_request *r, const char *message);
/* A subscription told that there is news. */
void mcp_inbox_changed(struct mcp_server *s, const struct mcp_child *listener);

/* ---- tools.c ---- */
enum arg_kind { ARG_TEXT, ARG_NAMES /* "a,b"; also a list */, ARG_LIST /* also one text */, ARG_NUMBER, ARG_FLAG };
#define ARG_OPERAND "--"
struct arg { /* name NULL ends a table */
	const char *name;
	enum arg_kind kind;
	const char *option; /* of the command, or ARG_OPERAND; NULL: the tool's own function reads it */
	const char *help;   /* or NULL */
	bool required;
	const char *choices;   /* "urgent|high|normal|low", or NULL */
	const char *otherwise; /* the value when it is not given, or NULL */
};
#define ARGS_MAX 9

struct args {
	const struct arg *table;
	struct mr_names values[ARGS_MAX]; /* no entry: not given. A flag that is false is not given. */
};
const char *args_text(const struct args *a, const char *name); /* or NULL */

struct words { /* a command line for cli_call */
	struct mr_names v;
	bool failed;
};
void words_add(struct words *w, const char *word);
void words_done(struct words *w);

enum tool_output { TOOL_TEXT, TOOL_SENT /* id */, TOOL_MAIL /* ids, left */, TOOL_WORK /* id, token, attempt */ };
struct tool {
	const char *name, *title, *about;
	struct arg args[ARGS_MAX + 1];
	bool reads, repeats; /* readOnlyHint, idempotentHint; destructiveHint and openWorldHint are false */
	enum tool_output output;
	bool fence;         /* the command does not fence what others wrote */
	int64_t patience_s; /* it waits by itself, so long when nothing is said; 0: it does not */
	/* NULL: the command has the name of the tool ("queue show": two words). Else it adds the command, and the
	 * arguments that have no option. False: the arguments do not go together, *ret_problem says why. */
	bool (*command)(const struct args *a, struct words *w, const char **ret_problem);
};
extern const char *const mcp_instructions;
extern const struct tool mcp_tools[];
extern const size_t mcp_tools_n;
const struct tool *tool_named(struct mr_str name);
void tool_json(struct json *j, const struct tool *tool);
/* The arguments of a call. False: *ret_problem says what is wrong, and what there is. */
bool args_read(const struct tool *tool, struct json_value arguments, struct args *ret, struct buf *ret_problem);
void args_done(struct args *a);
/* ... as a command line. False: see tool->command. */
bool args_command(const struct tool *tool, const struct args *a, struct words *w, const char **ret_problem);

/* ---- worker.c ---- */
struct job {
	const struct tool *tool;
	struct words words;
	bool resource; /* the text is asked for as a resource, not as the result of a tool */
};
/* In the new process: runs the job, answers through fd, and ends. */
_Noreturn void worker_run(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int fd);
/* In a process of its own: a byte to fd each time mail comes, until the server ends. */
_Noreturn void watch_run(struct mcp_server *s, const struct mcp_request *r, int fd);

/* In a process of the server's: no signals, no input; it ends with the server. */
void child_begin(struct mcp_server *s, int fd);
void child_detach(struct mcp_server *s); /* the same, but it looks for that end itself */
/* Silently: the room, and who we are. False: not now. cli_done either way. */
bool child_opens(struct cli *cli, const struct mcp_server *s, const char *session);

/* ---- bell.c ---- */
int64_t bell_session(void); /* the process of the session that runs us, if it has such a door; 0: no */
/* In a process of its own, until the server ends. */
_Noreturn void bell_run(struct mcp_server *s, int fd);

/* ---- serve.c ---- */
/* Starts a worker. False: it was answered with an error. */
bool call_start(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int64_t limit_ms);
/* A subscription, with a watcher if it is to the inbox. False: it was answered with an error. */
bool listener_start(struct mcp_server *s, const struct mcp_request *r, struct mr_str id, bool inbox);
/* What is under way with that id; NULL: nothing. */
struct mcp_child *child_named(struct mcp_server *s, struct mr_str id);
/* Its process sees that its socket ends. */
void child_end(struct mcp_child *child);

#endif
