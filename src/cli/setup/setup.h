/* SPDX-License-Identifier: MIT */
/*
 * setup.h - `mailroom setup HARNESS`: our entries in the settings files of other programs, in and out again.
 *
 *	harness.c   which harness has which files, events and forms (a table)
 *	place.c     where they are, and what is to stand in them: the running program, the room
 *	command.c   command lines as a shell reads them, and which of them are ours
 *	hooks.c     edits of "hooks"; server.c of "mcpServers" and "permissions"; codex.c of config.toml
 *	plan.c      one file: read, edit, what comes of it
 *	memory.c    what the text cannot tell: which file, folder or entry was there before us
 *	save.c      writing, so that neither a crash nor the harness itself, writing at the same time, loses anything
 *	team.c      --team: a link to a team of Claude Code, and our agents as its members
 *	check.c     --check; probe.c: its scratch room, with a message; talk.c: the server asked for it
 *
 * All files are planned before the first is written, so that what cannot be understood in one of them leaves all as
 * they are. How what was put in is found again: message/splice.h.
 */
#ifndef CLI_SETUP_SETUP_H
#define CLI_SETUP_SETUP_H

#include "cli/cli.h"
#include "message/jsonc.h"

#include <sys/stat.h>

#define SETUP_SERVER_NAME "mailroom"
/* For the commands of GRANTED_COMMANDS in the shell and the tools of GRANTED_TOOLS: else each is asked for, or refused
 * without a terminal. */
extern const char *const setup_permissions[];
extern const size_t setup_permissions_n;
/* What earlier builds asked for: every command, those that start programs included. They are taken back. */
extern const char *const setup_old_permissions[2];

enum setup_part { /* bits: what is in a file */
	SETUP_HOOKS = 1,
	SETUP_SERVER = 2,
	SETUP_ALLOW = 4, /* the permission to run mailroom */
	SETUP_TOML = 8,  /* Codex's config.toml: server and writable roots */
};

struct setup_where {
	const char *variable;   /* with the folder of the user's files, or NULL */
	const char *folder;     /* beneath $HOME, without the variable */
	const char *name;       /* in that folder */
	const char *in_project; /* in the project's */
	unsigned parts;
};

struct setup_event {
	const char *name;
	bool waits;      /* it also starts the waiter */
	bool shows;      /* it is there to tell the model something: --check looks for the message */
	int64_t timeout; /* 0: that of the harness */
};

struct setup_harness {
	const char *name;
	const char *title; /* for people */
	struct setup_where files[2];
	size_t files_n;
	const struct setup_event *events; /* up to one without a name */
	int64_t timeout;                  /* of a hook, in its own unit */
	bool named;                       /* handlers have a name */
	bool flat;                        /* no groups of handlers, and a version */
	bool typed;                       /* servers have a type */
	const char *session_key;          /* of an event */
	const char *session_variable;     /* for its MCP servers, or NULL */
	const char *shell_variable;       /* and for its shells, in every version that we support */
	bool by_process;                  /* where it says nothing, its process above us does */
	const char *note;                 /* what the user is asked once, or NULL */
};
const struct setup_harness *setup_harness(const char *name); /* NULL: none of ours */
void setup_harness_names(struct buf *out);

struct setup {
	struct cli *cli;
	const struct setup_harness *harness;
	bool project;
	const char *project_dir;
	const char *program;       /* absolute */
	const char *command;       /* what the settings name: the program, or in a project the bare name */
	const char *room;          /* spec for the command lines, or NULL: wherever the agent is */
	const char *hook, *waiter; /* command lines */
	const char *state_dir;
	const char *config_dir;
	const char *state_home, *config_home; /* the variables that say so, or NULL */
	const char *room_dir;                 /* folder of the room that we are in, or NULL */
};
enum mr_rc setup_place(struct setup *s, struct mr_error *err);
const char *setup_path(struct setup *s, const struct setup_where *where, struct mr_error *err); /* NULL: see err */

/* ---- Command lines ---- */
void command_quote(struct buf *out, const char *word);
/* Words as sh reads them; false: there is more in it than words and quotes. */
bool command_split(const char *line, struct mr_names *ret);
/* The `mailroom` that a shell finds; NULL: none. */
const char *command_in_path(struct setup *s);
bool command_is_program(const struct setup *s, const char *word);
/* PROGRAM hook HARNESS [--wait] [--room SPEC] */
bool command_is_hook(const struct setup *s, const char *line, bool *ret_waits);

/* ---- One file ---- */
struct setup_memory {
	enum { WAS_UNKNOWN, WAS_MISSING, WAS_BLANK, WAS_THERE } was;
	struct mr_names folders; /* that we made, the outermost first */
	struct mr_names added;   /* permissions and roots that --apply put in */
	bool known;              /* there is a memory of this file */
};

struct setup_file {
	const char *path;          /* as the harness names it */
	const char *folder, *name; /* behind all symbolic links */
	unsigned parts;
	bool there;
	struct stat st; /* of the file, when it is there */
	struct buf before, after;
	bool changed;
	bool gone;     /* it is to be removed */
	bool keep_all; /* permissions and roots are not ours: see plan.c */
	bool fresh;    /* nothing of ours was in it */
	bool learnt;   /* the memory is to be written: --apply */
	struct setup_memory memory;
	struct mr_names left; /* --remove: permissions and roots like ours that are not known to be ours */
};
enum setup_way { SETUP_IN, SETUP_OUT };
/* Each changes the text, and leaves it alone when there is nothing to do. */
enum mr_rc hooks_edit(
    const struct setup *s, enum setup_way way, bool keep_root, struct buf *text, struct mr_error *err);
enum mr_rc server_edit(
    const struct setup *s, enum setup_way way, bool keep_root, struct buf *text, struct mr_error *err);
enum mr_rc allow_edit(const struct setup *s, const struct setup_file *f, enum setup_way way, bool keep_root,
    struct buf *text, struct mr_error *err);
/* All writable roots. */
enum mr_rc codex_roots(const struct buf *text, struct mr_names *ret, struct mr_error *err);
enum mr_rc codex_edit(
    const struct setup *s, const struct setup_file *f, enum setup_way way, struct buf *text, struct mr_error *err);
void text_take(struct buf *text, struct buf *changed); /* the changed text is the text now */
enum mr_rc text_object(struct buf *text, struct jsonc *ret, struct mr_error *err); /* parsed, an object */
/* Did --apply put that permission or root in? What only looks like ours is the user's. */
bool setup_memory_added(const struct setup_file *f, const char *string);

/* Only what is there. */
enum mr_rc read_settings(struct setup *s, const struct setup_where *where, struct setup_file *f, struct mr_error *err);
enum mr_rc plan_file(
    struct setup *s, const struct setup_where *where, enum setup_way way, struct setup_file *f, struct mr_error *err);
void file_done(struct setup_file *f);
/* One at a time reads, edits and remembers: until the descriptor is closed. -1: there is no such folder, or others take
 * too long; then the text is still safe (save.c), and at worst a permission stays. */
int setup_memory_lock(const struct setup *s, enum setup_way way);
enum mr_rc setup_memory_load(const struct setup *s, struct setup_file *f, struct mr_error *err);
enum mr_rc setup_memory_save(const struct setup *s, const struct setup_file *f, struct mr_error *err);
void setup_memory_drop(const struct setup *s, const struct setup_file *f);
void save_sweep(const struct setup_file *f); /* what a killed one left beside it */
/* MR_BUSY: somebody else changed it meanwhile, nothing was written. */
enum mr_rc save_file(const struct setup *s, struct setup_file *f, struct mr_error *err);

/* ---- What a file says, for --check ---- */
/* The command line of our hook (or waiter) for an event; false: there is none. */
bool hooks_command(
    const struct setup *s, const struct jsonc_node *root, const char *event, bool waits, struct buf *ret);
/* The server called mailroom: its program and arguments, and "NAME=value" lines. False: there is none. */
bool server_command(const struct jsonc_node *root, struct mr_names *argv, struct mr_names *env);
bool allow_has(const struct jsonc_node *root, const char *permission);
/* roots: all writable ones; state_home: what the server is told, or nothing. MR_CORRUPT as for the edits. */
enum mr_rc codex_command(
    struct buf *text, struct mr_names *argv, struct mr_names *roots, struct buf homes[2], struct mr_error *err);

/* ---- Doors of the command; each returns an exit code ---- */
int team_run(struct cli *cli, const char *team, enum setup_way way, bool preview);
int check_run(struct setup *s);

/* ---- probe.c: a room of its own with a message for a made-up session ---- */
struct probe {
	char root[256]; /* a temporary folder */
	char session[40];
	char mark[24]; /* in the subject: nobody else writes it */
	struct mr_room *room;
	struct arena *own;
	const char *env[16]; /* of the hooks and servers that are tried: what the harness tells them, and no more */
	const char *shell_env[16];
};
enum mr_rc probe_open(struct setup *s, struct probe *p, struct mr_error *err);
enum mr_rc probe_send(struct probe *p, const struct setup *s, struct mr_error *err); /* under a new mark */
/* A command line with the probe's room in the place of the one that it names; else as it is. NULL: out of memory. */
const char *probe_line(struct probe *p, const char *line);
void probe_close(struct probe *p);
/* Starts the server, asks for the inbox. MR_OK: the message was in the answer. */
enum mr_rc talk_to_server(
    const struct setup *s, struct probe *p, const char *const *argv, const char *const *env, struct mr_error *err);

#endif
