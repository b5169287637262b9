/* SPDX-License-Identifier: MIT */
/*
 * setup.h - `mailroom setup HARNESS`: our entries in the settings files of other programs, in and out again.
 *
 *	place.c    where the files are, and what our entries say: the running program, the room; command lines
 *	json.c     edits of "hooks", "mcpServers" and "permissions"; codex.c edits config.toml
 *	plugin.c   a file that is all ours, in harnesses that load programs
 *	files.c    one file: reading, planning, what was there before us, writing
 *	check.c    --check: what stands in the files is tried, in a room of its own
 *	team.c     --team: a link to a team of Claude Code, and our agents as its members
 *
 * The harnesses are rows of cli/harness.c. All files are planned before the first is written, so that what cannot be
 * understood in one of them leaves all as they are. How our entries are found again: message/splice.h.
 */
#ifndef CLI_SETUP_SETUP_H
#define CLI_SETUP_SETUP_H

#include "cli/cli.h"
#include "cli/harness.h"
#include "message/jsonc.h"

#include <sys/stat.h>

#define SETUP_SERVER_NAME "mailroom"
/* For the commands of GRANTED_COMMANDS in the shell and the tools of GRANTED_TOOLS: else each is asked for, or refused
 * without a terminal. */
extern const char *const setup_permissions[];
extern const size_t setup_permissions_n;
/* The first of them are what earlier builds asked for: every command, those that start programs included. They are
 * taken back. */
#define SETUP_OLD_PERMISSIONS 2

struct setup {
	struct cli *cli;
	const struct harness *harness;
	bool project, peers;
	const char *project_dir;
	const char *program;       /* absolute */
	const char *command;       /* what the settings name: the program, or in a project the bare name */
	const char *room;          /* spec for the command lines, or NULL: wherever the agent is */
	const char *hook, *waiter; /* command lines */
	const char *state_dir, *config_dir;
	const char *homes[2]; /* the variables that say so (setup_home_names), or NULL */
	const char *room_dir; /* folder of the room that we are in, or NULL */
};
extern const char *const setup_home_names[2];
enum mr_rc setup_place(struct setup *s, struct mr_error *err);
const char *setup_path(struct setup *s, const struct setup_where *where, struct mr_error *err); /* NULL: see err */

/* ---- Command lines ---- */
void command_quote(struct buf *out, const char *word); /* so that sh takes it as one word */
/* Words as sh reads them; false: there is more in it than words and quotes. */
bool command_split(const char *line, struct mr_names *ret);
/* The `mailroom` that a shell finds; NULL: none. */
const char *command_in_path(struct setup *s);
bool command_is_program(const struct setup *s, const char *word);
/* PROGRAM hook HARNESS [--wait] [--room SPEC] */
bool command_is_hook(const struct setup *s, const char *line, bool *ret_waits);

/* ---- One file ---- */
enum setup_way { SETUP_IN, SETUP_OUT };
struct setup_prior { /* what the text cannot tell; kept in the configuration folder */
	enum { WAS_UNKNOWN, WAS_MISSING, WAS_BLANK, WAS_THERE } was;
	struct mr_names folders; /* that we made, the outermost first */
	struct mr_names added;   /* permissions and roots that --apply put in */
	bool known;              /* there is a record of this file */
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
	bool keep_all; /* permissions and roots are not taken out: see files.c */
	bool fresh;    /* nothing of ours was in it */
	struct setup_prior prior;
	struct mr_names left; /* --remove: permissions and roots like ours that are not known to be ours */
};

/* Has the harness such a file here, and is it of use? What is of no use now is still taken out. */
bool settings_wanted(struct setup *s, const struct setup_where *where, enum setup_way way);
/* Only what is there. */
enum mr_rc read_settings(struct setup *s, const struct setup_where *where, struct setup_file *f, struct mr_error *err);
enum mr_rc plan_file(
    struct setup *s, const struct setup_where *where, enum setup_way way, struct setup_file *f, struct mr_error *err);
void file_done(struct setup_file *f);
/* MR_BUSY: another program changed it meanwhile, nothing was written. */
enum mr_rc save_file(const struct setup *s, enum setup_way way, struct setup_file *f, struct mr_error *err);
void save_sweep(const struct setup_file *f); /* what a killed setup left beside it */
/* One setup at a time reads, edits and keeps records: until the descriptor is closed. -1: there is no such folder, or
 * others take too long; then the text is still safe, and at worst a permission stays. */
int prior_lock(const struct setup *s, enum setup_way way);
void prior_drop(const struct setup *s, const struct setup_file *f);
/* Did --apply put that permission or root in? What only looks like ours is the user's. */
bool prior_added(const struct setup_file *f, const char *string);
enum mr_rc prior_add(struct setup_file *f, const char *string, struct mr_error *err);
void text_take(struct buf *text, struct buf *changed); /* the changed text is the text now */
enum mr_rc text_object(struct buf *text, struct jsonc *ret, struct mr_error *err); /* parsed, an object */

/* ---- What is in a file ---- */
/* An edit makes one change in the text, or none: MR_EMPTY, or the same text. edit_all repeats it on the changed text
 * until there is nothing left to do; files.c has the table of them. */
struct edit {
	const struct setup *s;
	struct setup_file *f; /* prior.added grows by what an edit grants */
	struct mr_str text;
	const struct jsonc *doc; /* of JSON: the text, parsed; else NULL */
	struct buf *out;         /* the changed text; of TOML: the text, to be changed */
	struct mr_error *err;
};
typedef enum mr_rc edit_fn(const struct edit *e);
enum mr_rc edit_all(const struct setup *s, struct setup_file *f, edit_fn *edit, struct buf *text, struct mr_error *err);
#define SETUP_OTHER_SERVER                                                                                             \
	"it has another server called '%s'\ngive that one another name, or remove it; then run this again"
edit_fn hooks_put, hooks_take, hooks_take_version, server_put, server_take, allow_put, allow_take;
/* The whole file, with the sum of its text in its first line. MR_EXISTS: it is not ours. */
edit_fn plugin_put, plugin_take;
edit_fn codex_put_server, codex_take_server, codex_put_env, codex_put_root, codex_take_root;

/* The command line of our hook (or waiter) for an event; false: there is none. */
bool hooks_command(const struct setup *s, struct json_value root, const char *event, bool waits, struct buf *ret);
/* The server called mailroom: its program and arguments, and "NAME=value" lines. False: there is none. */
bool server_command(struct json_value root, unsigned parts, struct mr_names *argv, struct mr_names *env);
bool allow_has(struct json_value root, const char *permission);

bool plugin_is_current(const struct setup *s, const struct buf *text);

struct codex_says {            /* finish with codex_says_done */
	struct mr_names argv;  /* of our server */
	struct buf homes[2];   /* what the server is told of setup_home_names */
	struct mr_names roots; /* that the sandbox may write */
};
/* Adds to what is there. MR_CORRUPT: it is no TOML. */
enum mr_rc codex_read(const struct buf *text, struct codex_says *ret, struct mr_error *err);
void codex_says_done(struct codex_says *c);

int team_run(struct cli *cli, const char *team, enum setup_way way, bool preview);

/* problem NULL: that part is fine. */
typedef void check_say_fn(void *ctx, struct setup *s, const char *part, const char *problem, const char *repair);
enum mr_rc check_try(struct setup *s, check_say_fn *say, void *ctx, struct mr_error *err);

#endif
