/* SPDX-License-Identifier: MIT */
/*
 * harness.h - the harnesses that mailroom knows: one row each in harness.c. hook/ reads how a harness names its events
 * and which answer it understands; setup/ reads where its settings are and what an entry there looks like.
 */
#ifndef CLI_HARNESS_H
#define CLI_HARNESS_H

#include "base/buf.h"

enum moment {
	MOMENT_NONE, /* an event that we do nothing at */
	MOMENT_START,
	MOMENT_PROMPT,
	MOMENT_TOOL,
	MOMENT_STOP,
	MOMENT_END,
};

struct harness_event {
	const char *name;
	enum moment moment;
	bool waits;      /* it also starts the waiter */
	bool shows;      /* its answer reaches the model: setup --check looks for the message in it */
	int64_t timeout; /* of its hook; 0: that of the harness */
};

enum answer_form {
	FORM_SPECIFIC, /* {"hookSpecificOutput":{"hookEventName","additionalContext"}}, {"decision","reason"} */
	FORM_CURSOR,   /* {"additional_context"}, {"followup_message"} */
	FORM_TOP,      /* {"additionalContext"}, {"decision","reason"} */
};

enum bell { /* how an idle session is woken */
	BELL_NONE,
	BELL_EXIT,   /* the end of a hook that runs beside it, with its words */
	BELL_QUEUE,  /* `codex queue`: a prompt, so it says nothing that a sender chose */
	BELL_PLUGIN, /* our plugin in it makes a prompt of what the waiter says at its end, as BELL_QUEUE does */
	BELL_SOCKET, /* a socket of the session, in the environment of its hooks */
};

struct harness_socket {           /* of a session, told to what it starts; how a line for it is written */
	const char *path, *token; /* variables */
	const char *id, *session; /* keys of a message */
};

enum setup_part { /* bits: what we put into a file */
	SETUP_HOOKS = 1,
	SETUP_SERVER = 2,
	SETUP_ALLOW = 4,       /* the permission to run mailroom */
	SETUP_TOML = 8,        /* Codex's config.toml: server and writable roots */
	SETUP_PLUGIN = 16,     /* a file that is all ours */
	SETUP_MCP_SERVER = 32, /* OpenCode: the server under "mcp", program and arguments in one list */
};

#define HARNESS_FILES 3
struct setup_where {
	const char *variable;   /* with the folder of the user's files, or NULL */
	const char *folder;     /* beneath $HOME, without the variable */
	const char *name;       /* in that folder */
	const char *in_project; /* in the project's; NULL: there it has none */
	unsigned parts;         /* enum setup_part */
	const char *only_with;  /* a setting of the user's settings.json beside it that must be on, or NULL */
};

struct harness {
	const char *name;               /* also the beginning of its sessions' names */
	const char *title;              /* for people */
	const char *session_key;        /* of an event */
	struct harness_event events[7]; /* up to one without a name */
	enum answer_form form;
	const char *decision; /* FORM_SPECIFIC: the word that lets the turn go on */
	enum bell bell;
	const struct harness_socket *socket; /* or NULL */
	const char *plugin;                  /* the text of its file behind the part that all share, or NULL */
	bool shows_results;                  /* after every tool its hook gets what the model gets of it */

	struct setup_where files[HARNESS_FILES + 1]; /* up to one without a name */
	int64_t timeout;                             /* of a hook, in its own unit */
	bool named;                                  /* handlers have a name */
	bool flat;                                   /* no groups of handlers, and a version */
	bool typed;                                  /* servers have a type */
	const char *session_variable;                /* that tells its MCP servers the session, or NULL */
	const char *shell_variable;                  /* that tells its shells, in every version that we support */
	bool by_process;                             /* where it says nothing, its process above us does */
	const char *note;                            /* what the user has to know once, or NULL */
};
extern const struct harness harnesses[];
extern const size_t harnesses_n;
const struct harness *harness_named(const char *name); /* NULL: none of ours */
void harness_names(struct buf *out);                   /* "a, b or c" */
/* Can its shells and servers tell which session is theirs? */
bool harness_says_session(const struct harness *harness);

#endif
