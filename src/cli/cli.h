/* SPDX-License-Identifier: MIT */
/*
 * cli.h - the command line: one table that defines the commands, their help and their man pages.
 *
 * A command is a function cmd_NAME in a file cmd_*.c and a text, help/NAME.txt. --help, the man page, `describe --all`,
 * the parser and main all read that text: nothing is said twice.
 * main.c parses the global options, opens what the command's `needs` ask for, and runs it.
 * Data goes to stdout, words to stderr; a flush error on stdout is a failure.
 *
 * A command that shows mail:
 *
 *	budget_begin(cli);
 *	... for each message:
 *		whole = budget_message(cli, &msg, 0);    or text_line + budget_add for listings
 *		(with cli->json: out_json_message)
 *	budget_end(cli, "message", "mailroom drain again");    closes the fence, says what was left out
 *	if (!cli_flush(cli))
 *		return EXIT_FAILED;                      stdout did not take it: nothing may be marked
 *	... mark what was shown whole
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fence.h"
#include "base/text.h"
#include "message/json.h"
#include "mailroom-hooks.h"
#include "mailroom-town.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOTHING = 3,
	EXIT_REFUSED = 4,
	EXIT_MISSING = 5,
	EXIT_DOUBT = 6
};

struct cli;

enum cmd_needs {
	CMD_NOTHING = 0,
	CMD_ROOM = 1,
	CMD_SELF = 2,     /* implies room */
	CMD_AS_IT_IS = 4, /* with room: what crashed commands left behind is not completed by opening it */
	CMD_CARRIES = 8,  /* with self: mail that waits in linked rooms is brought first */
	CMD_FULL = 16,    /* with room: mailroom-full does it better */
	CMD_IDS = 32,     /* with self: it finds the ends of ids that are not near better */
};

enum opt_type {       /* and the type of its member */
	OPT_FLAG,     /* bool */
	OPT_TEXT,     /* const char *, the last one given; NULL: none */
	OPT_LIST,     /* const char *const *, all that were given, NULL-terminated; never NULL */
	OPT_NUMBER,   /* int64_t, not negative when given */
	OPT_DURATION, /* int64_t, milliseconds */
	OPT_TIME,     /* int64_t, milliseconds since 1970 */
	OPT_PRIORITY, /* const enum mr_priority *; NULL: none */
	OPT_BUDGET,   /* int64_t: see budget_begin */
};

struct opt {               /* an empty row ends a table */
	char letter;       /* or 0 */
	const char *name;  /* "subject" */
	const char *value; /* "TEXT"; NULL: a flag */
	const char *help;
	bool hidden; /* accepted, not taught (--body, --to) */
	enum opt_type type;
	bool in_cli;         /* its member is one of struct cli, else of the command's own struct */
	size_t offset;       /* of the member */
	int64_t absent;      /* what a number is when the option is not given */
	const char *choices; /* "a, b": what a text may be; NULL: anything */
	bool positive;       /* what a number that is given may be: not 0 */
	int64_t most;        /* ... and no more than that; 0: anything */
	unsigned words;      /* bits of the words of the command that it is for; 0: all */
	uint64_t bit;        /* in cli->given; 0: a global one */
};

/* What a file of help/ says. tools/gen-help makes help_NAME from each; helptext.h declares them. Lists end in NULL. */
struct help {
	const char *synopsis;             /* after the name: "[-s SUBJECT] [-m TEXT | -f FILE] TO..." */
	const char *summary;              /* one line, lower case */
	const struct opt *opts;           /* or NULL */
	size_t options_size;              /* of struct NAME_options in helptext.h, which cli->opts points to */
	const char *const *about;         /* paragraphs, or NULL */
	const char *const *examples;      /* shell lines, or NULL; the tests run each in a room with alice and bob */
	const char *const *differences;   /* man section DIFFERENCES, or NULL */
	const char *exits;                /* exit codes that can occur: "012345" */
	const char *const *operands;      /* of each alternative in the synopsis: "add NAME MEMBER..." */
	const char *lesson;               /* of describe: the text for an agent */
	const char *const *environment;   /* of mailroom itself: a name, its meaning, a name ... */
	const char *const *exit_meanings; /* of mailroom itself, by exit code */
};

/* A word of a command that is several: "queue create", "channel read", "dead list". */
struct subword { /* a NULL word ends a table */
	const char *word;
	const char *operands;        /* for usage errors: "NAME", "NAME [AGENT]" */
	int min_args, max_args;      /* behind the word; max -1: any number */
	bool self;                   /* needs the caller's agent */
	int (*run)(struct cli *cli); /* argv begins behind the word */
};

/* What does not go together, by bits as in cli->given and these two. An empty row ends a table. */
#define GIVEN_JSON ((uint64_t)1 << 62)
#define GIVEN_OPERANDS ((uint64_t)1 << 63)
struct refusal {
	enum {
		REFUSE_WITH,
		REFUSE_WITHOUT,
		REFUSE_TWO,
		REFUSE_NONE
	} how;                  /* one of `first`, or two or none of them ... */
	uint64_t first, second; /* ... with or without one of `second` */
	const char *why;        /* a * in it: the first of the first that was given */
};

struct cmd { /* from the RULES of its text; declared in helptext.h as command_NAME, and run as cmd_NAME */
	const char *name;
	const struct help *help;
	const char *const *aliases; /* accepted, not taught; NULL-terminated or NULL */
	unsigned needs;
	const struct cmd *const *subcommands; /* with options of their own, names in full; NULL-terminated, or NULL */
	const struct subword *words;          /* or NULL */
	const struct refusal *refused;        /* or NULL */
	int min_args, max_args;               /* operands; max -1: any number */
	bool hidden;                          /* not in help: mb */
	const char
	    *changes; /* does it change the room before it prints? NULL: no; "": yes; " add delete ": these words do */
	int (*run)(struct cli *cli); /* returns an enum exit_code */
};

enum line_mark { LINE_UNREAD = 1, LINE_READ = 2, LINE_URGENT = 4, LINE_PINNED = 8, LINE_HELD = 16 };
struct budget {        /* of the text that a command shows; see budget_* below */
	int64_t limit; /* characters; INT64_MAX: none */
	int64_t used;
	bool fenced;             /* off a terminal: mail is framed with a delimiter nobody can foresee */
	bool open;               /* the fence's first line was printed */
	bool full;               /* a piece did not fit: nothing more is shown, so that order is kept */
	size_t shown, cut, left; /* pieces shown whole, shown in part, not shown */
	bool own;                /* what is shown is the reader's own mail */
	unsigned marks;          /* enum line_mark: those in the lines shown, for the legend */
	bool thread;             /* messages of one conversation, the newest first: see budget_turn */
	bool untried;            /* some of what was left was not even measured */
	int64_t left_chars;      /* of what was left */
	char mark[9];            /* the delimiter: 8 random hex digits */
};

/* Takes what a command says in place of stdout and stderr: how another door (mcp/) runs one in its own process. */
struct cli_sink {
	/* Text for stdout. False: nobody took it, and nothing may be marked. */
	bool (*take)(void *ctx, const struct cli *cli, struct mr_str text);
	/* Words for stderr, through the fence already; hint may be "". code: of an error ("not-found"); NULL: a warning
	 */
	void (*say)(void *ctx, const char *code, const char *message, const char *hint);
	/* A message is in the text: all of it (or its line in a listing), or a part. May be NULL. */
	void (*shown)(void *ctx, const struct mr_message *msg, bool whole);
	void *ctx;
	bool closed; /* its answer is out: text from now on is lost */
};

struct cli {
	const struct cmd *cmd;
	const struct cli_sink *sink; /* NULL: stdout and stderr */
	char **command_line;         /* as the process was started; NULL: it is a call from within (cli_call) */
	bool json;
	bool json_given; /* the parser met --json; until then cli->json is a guess for usage errors */
	bool gt;         /* cmd is one of gt's: see gt/gt.h */
	bool want_help;
	const char *room_option, *as_option;
	const char *caller_session; /* "codex-<id>": what a door knows of its caller, before the environment; or NULL */
	bool env_aged;              /* the environment is a server's, of when it was started */
	bool threaded;              /* other threads run beside: nobody is forked to carry mail */
	struct mr_place place;      /* filled when CMD_ROOM */
	struct mr_env env;          /* filled when CMD_ROOM */
	const char *second_session; /* variable of another harness session that is there too; NULL: none */
	struct mr_room *room;
	struct mr_self self; /* filled when CMD_SELF */
	enum mr_door door;   /* by which its agent is seen; UNKNOWN: a command */
	bool self_known;
	int argc; /* operands */
	char **argv;
	void *opts;             /* the command's struct NAME_options, filled by the parser */
	uint64_t given;         /* a bit for each option of the command, by its place in the table */
	bool completes;         /* the line is being typed: what is wrong in it is for nobody */
	const struct opt *open; /* then: the option whose value comes next, or NULL */
	bool dry_run;           /* --dry-run */
	bool no_index;          /* --no-index */
	bool notify, no_notify; /* --notify, --no-notify: whether the recipients of mail are nudged */
	int64_t budget_option;  /* --budget; -1: not given */
	bool gt_json;           /* --json of a command of gt */
	struct mr_error err;    /* of the last call that failed, for TRY_CLI */
	bool out_tty, color;    /* color: stdout may be coloured */
	bool unheard;           /* a hook: nobody reads warnings, so nothing is looked for that only warns */
	bool hooked;            /* see struct mr_env */
	size_t columns;         /* of the terminal; 0: not one, do not cut lines */
	struct buf out;         /* text waiting for stdout */
	struct budget budget;
	struct progress {    /* progress.c */
		bool wanted; /* stderr is a terminal, and no JSON is on it */
		bool drawn;
		size_t columns;
		int64_t begun_ms, next_ms; /* on the clock that nobody sets: not drawn again earlier than next_ms */
	} progress;
	const char *subword; /* "create" of "queue create"; NULL: the command has none */
	bool changed;        /* the room was changed: an answer that stdout does not take is no reason to repeat it */
	const char *done_id; /* of what was sent, when changed; or NULL */
	struct arena *own;   /* strings that live as long as the command */
};

/* ---- cmd_complete.c ---- */
enum names_kind { AGENTS = 1, GROUPS = 2, QUEUES = 4, CHANNELS = 8, LINKS = 16, TYPES = 32 };
typedef void names_fn(void *ctx, enum names_kind kind, const char *name, const char *about);
/* Everything of these kinds that the room has. The error is in cli->err. */
enum mr_rc names_each(struct cli *cli, unsigned kinds, names_fn *fn, void *ctx);

/* ---- progress.c: for commands that go over all mail, or stay ---- */
/* SIGINT and SIGTERM do no more than ask to stop; flags as for sigaction. */
void stop_heed(int flags);
bool stop_asked(void *ctx); /* ctx is for callbacks */
/* "mailroom: 12 messages read" on a terminal, over what was said before. */
void progress_count(struct cli *cli, size_t n, const char *done);
/* What calls on that room tell of themselves is drawn from now on, and Ctrl-C stops them. */
void progress_begin(struct cli *cli, struct mr_room *room);
/* False: Ctrl-C. ctx is the struct cli. */
bool progress_step(void *ctx, const char *what, size_t done, size_t total);
void progress_clear(struct cli *cli); /* before anything else is said */

/* ---- The commands ---- */
extern const struct cmd *const commands[]; /* NULL-terminated, in the order of help; hidden ones last */
extern const struct heading {
	const struct cmd *first;
	const char *text; /* above it in the list of all; NULL: nothing */
} command_headings[];
const struct cmd *command_named(const char *word);
bool command_is_called(const struct cmd *cmd, const char *words); /* by its name, or an alias */
/* Does it change the room before it prints? `word` is its subword; NULL asks whether any of them does. */
bool command_changes(const struct cmd *cmd, const char *word);
/* What setup lets agents run unasked, in every harness: commands that start no program and change neither the user's
 * configuration nor who is who. Setup's permissions, the skill and the docs are made from this list or tested against
 * it, and tests/trust/no-exec.t proves that none of them starts a program. */
/* clang-format off */
#define GRANTED_COMMANDS(X) \
	X("send") X("reply") X("inbox") X("read") X("recv") X("done") X("release") X("fail") X("extend") X("wait") \
	X("drain") X("thread") X("sent") X("why") X("search") X("who") X("whoami") X("where") X("describe") X("check") \
	X("resolve") X("handoff") X("queue show") X("queue list") X("channel read") X("channel post") X("channel list") X("channel show")
/* clang-format on */
/* ... and which tools of the MCP server: not nudge, which may type into a terminal by running tmux. */
#define GRANTED_TOOLS(X) X("send") X("inbox") X("read") X("wait") X("recv") X("done") X("who")

/* ---- opt.c ---- */
/* Parses argv[1..] (argv[0] is the command's name) into cli->argv, cli->opts and cli itself; options and operands may
 * be mixed, "--" ends options. Globals (--room, --as, --json, --help) are taken anywhere. Prints a usage error with a
 * hint (near option names) and returns false. */
bool opt_parse(struct cli *cli, int argc, char **argv);
/* "NAME" of "queue:NAME"; any other name as it is. */
const char *bare_name(const char *kind, const char *given);
/* What most of them answer: the state of what argv[0] names. */
int say_state(struct cli *cli, const char *kind, const char *state);
/* Runs the word in argv[0] of a command with words. */
int subword_run(struct cli *cli);
/* An option of the command, or a global one, by its name, or by its letter if that is not 0; NULL: there is none. */
const struct opt *opt_find(const struct cli *cli, struct mr_str name, char letter);
/* Do these options and operands go together? Says so if not. */
bool opt_fit(struct cli *cli);
/* How many values an option that takes several was given. */
size_t opt_count(const char *const *values);
/* The place of the word among these (NULL-terminated); -1: it is none of them. */
int word_at(const char *const *words, const char *word);

/* The filters of inbox, mark, wait and others. */
struct filter_options;
struct mr_filter filter_of(const struct cli *cli, const struct filter_options *o);
bool filter_is_given(const struct filter_options *o);

/* ---- out.c: printing ---- */
int sendmail_exit(int code); /* cmd_sendmail.c: as sysexits.h has it */
int exit_of(enum mr_rc rc);  /* the one map from results to exit codes */
/* Prints the error as text or JSON on stderr and returns its exit code. */
int cli_fail(struct cli *cli, const struct mr_error *err);
/* Returns from a command, saying why, unless the call is MR_OK; the call writes its error to cli->err. */
#define TRY_CLI(call)                                                                                                  \
	do {                                                                                                           \
		if ((call) != MR_OK)                                                                                   \
			return cli_fail(cli, &cli->err);                                                               \
	} while (0)
/* Returns its exit code from a command, unless that is EXIT_DONE. */
#define TRY_CODE(call)                                                                                                 \
	do {                                                                                                           \
		int code_of_call = (call);                                                                             \
		if (code_of_call != EXIT_DONE)                                                                         \
			return code_of_call;                                                                           \
	} while (0)
int cli_usage(struct cli *cli, const char *fmt, ...) MR_PRINTF(2, 3); /* returns EXIT_USAGE, with a hint at --help */
void cli_warn(struct cli *cli, const char *fmt, ...)
    MR_PRINTF(2, 3); /* "mailroom: ..." on stderr; with --json {"warning":...} */
void cli_warn_each(struct cli *cli, const struct mr_names *warnings);
void cli_say(struct cli *cli, const struct buf *text); /* text of several lines for stderr, as it is */
/* A file that the user named; its folders are made. Whole or not at all, unlike a plain write: somebody may watch that
 * folder. (cmd_foreign.c) */
enum mr_rc cli_write_file(const char *path, struct mr_str bytes, struct mr_error *err);
/* The size of the terminal that stdout is; false: it is none. (cmd_top.c) */
bool cli_window(size_t *ret_columns, size_t *ret_lines);
/* All of it to stdout, also where that does not block; -1 and errno: it was not taken. */
int out_write(const char *bytes, size_t n);
/* Writes cli->out to stdout now; false: stdout did not take it, and that was said on stderr: the exit code is
 * EXIT_DOUBT when cli->changed, else EXIT_FAILED. */
bool cli_flush(struct cli *cli);
void out_json_line(struct cli *cli, struct json *j); /* closes what is open, ends the line; j writes to &cli->out */
/* What a format shows: fence_addf(out, "%s\n", counted(n, "message").text). */
struct said {
	char text[64];
};
struct said counted(size_t n, const char *noun); /* "12 messages", "1 message", "8,400 characters" */
struct said lasting(int64_t ms);                 /* "5m", "2h" */
struct said dated(int64_t ms);                   /* 2026-03-05T10:30:00.123Z */
enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_YELLOW, STYLE_GREEN };
/* One line of others, whole, through the fence. */
void out_line(struct buf *out, const char *text);
/* The same, coloured when cli->color; a "<" stays one when a person looks. */
void out_styled(struct cli *cli, struct buf *out, enum style style, const char *text);
/* The same with text that is ours or fenced already. */
void out_colored(struct cli *cli, struct buf *out, enum style style, struct mr_str fenced);
/* A line for each name, through the fence. */
void out_names(struct buf *out, const char *indent, const struct mr_names *names);
/* "name      value" as a line, the value through the fence; nothing for an empty one. */
void out_fact(struct cli *cli, struct buf *out, const char *indent, int width, const char *name, const char *value);
/* Lines of which every field went through the fence, to cli->out; off a terminal between the two lines of a fence. */
void out_fenced(struct cli *cli, const struct buf *lines);
/* The form in which text of others gets to stdout: a "<" stays one when a person looks. */
unsigned out_form(const struct cli *cli, enum fence_form form);

/* ---- cmd_send.c ---- */
/* The text to send: `text` (-m), else `file` (-f; "-" is stdin), else stdin, but only when that is a pipe or a file: an
 * agent's shell may hold an open socket there. Returns EXIT_DONE, or the exit code after saying what is wrong (both
 * given, none given, empty, over 16 MiB, unreadable). */
int cli_body(struct cli *cli, const char *text, const char *file, struct buf *ret);
/* All of that file; "-": of stdin. MR_REFUSED: over 16 MiB. */
enum mr_rc cli_read(const char *file, struct buf *ret, struct mr_error *err);
bool cli_stdin_has_text(void); /* a pipe or a file */
struct lines {                 /* of standard input; finish with buf_done(&bytes) */
	struct buf bytes;
	size_t from, looked; /* where the next line begins; of that so much has no line break */
	size_t longest;      /* a longer line is passed over */
	bool skipping;       /* to the end of such a line */
	bool ended;
};
enum line { LINE_NONE, LINE_WHOLE, LINE_TOO_LONG };
/* Reads what there is, and waits for it; false: errno says why not. */
bool lines_read(struct lines *l);
/* The next line without its break; it stays where it is until more is read. At the end of the input the rest is one. */
enum line lines_next(struct lines *l, struct mr_str *ret);

/* ---- show.c: messages as text and JSON ---- */
/* The keys of the contract as one object. With `body`, msg->body, else null. */
void json_message(struct json *j, const struct mr_message *msg, struct mr_room *room, bool body);
/* An agent's name, as its room's people write it. */
void text_name(struct cli *cli, struct buf *out, const char *address);
/* "alice, bob", the first so many. */
void text_names(struct cli *cli, struct buf *out, const struct mr_names *names, size_t most);
/* As the value of "fields"; NULL: none. */
void json_fields_value(struct json *j, const struct mr_fields *fields);
const char *short_id(const char *id); /* the last 6 characters */
/* "12m" for the last day, else "Mar 05" or "2025-03-05" */
void text_when(struct buf *out, int64_t ms);
/* One line of a listing; `behind` is its end, fenced already, or "". */
void text_line(struct cli *cli, struct buf *out, const struct mr_message *msg, const char *behind);
/* A whole message, cleaned: headers, an empty line, the body. `number`: of a post in its channel; 0: none. */
void text_message(struct cli *cli, struct buf *out, uint64_t number, const struct mr_message *msg);
/* Must the body not be shown, because it is a control message and no person looks? */
bool text_hides_body(struct cli *cli, const struct mr_message *msg);

const char *need_about(const struct mr_need *need); /* who or what it is about */

/* ---- printout.c: how much text, and its fence (promise 9) ---- */
#define BUDGET_LEAST 500
/* Begins the text of a command, with the budget of --budget if it was given. */
void budget_begin(struct cli *cli);
/* Appends the piece (cleaned text that ends in a newline) to cli->out if it fits whole, with room left for the closing
 * lines; false: it does not fit, and is counted as left out. The fence is opened before the first piece. */
bool budget_add(struct cli *cli, const struct buf *piece);
/* text_line within the budget; with --json a line of JSON, and true. */
bool budget_line(struct cli *cli, const struct mr_message *msg, const char *behind);
/* text_message within the budget. True: shown whole. A message that is longer than the whole budget is shown in part,
 * at most cut_chars of it (0: as much as fits), with a line that says so; that too is false. With --json as above. */
bool budget_message(struct cli *cli, const struct mr_message *msg, int64_t cut_chars);
/* Counts what is not even tried: its length is unknown. */
void budget_left(struct cli *cli, size_t pieces);
/* What the signs of the lines mean, only those in budget.marks. budget_end does it, too. */
void budget_legend(struct cli *cli);
/* Closes the fence; when something was left out, one line says how much and how to get it. `how`: "mailroom drain
 * again". */
void budget_end(struct cli *cli, const char *noun, const char *how);

/* ---- cmd_nudge.c ---- */
enum mr_nudge_mode nudge_mode(const char *word); /* of --mode; NULL: wait-idle */
/* A line of text, or of JSON, for each; NULL has none. Says how many were shown: those may be removed, after the
 * flush. */
size_t nudges_print(struct cli *cli, struct mr_nudges *nudges);
/* Shows those of self and leaves them where they are. */
void nudges_look(struct cli *cli);
/* After a send: a nudge for each agent that got it, when --notify or the room asks for it. */
void nudges_of_mail(struct cli *cli, const struct mr_draft *draft, const struct mr_receipt *receipt);
/* "queued for bob" and so on, as one line. */
void nudges_say_way(struct buf *out, const char *agent, const struct mr_nudged *done);

/* Starts the user's Notify command, which the receipt of mail for the operator names; does not wait for it. */
void cli_notify(struct cli *cli, const struct mr_receipt *receipt, const char *from, const char *subject);

/* ---- env.c ---- */
/* Fills cli->env from the environment: session, harness process, agent variables, state folder. */
void env_fill(struct cli *cli);
bool env_is_headless(void); /* a harness without a person at it: it ends when its work does */
/* The harness that we are called from, which takes a look at every process above us; for who must know. */
void env_find_process(struct cli *cli);
bool env_is_outside(struct cli *cli); /* nothing in the environment tells of a harness; not for `gt` */
/* Where mailroom keeps what is no room's own; NULL: nowhere. */
const char *env_get(const char *name); /* a variable; NULL also when it is empty */
const char *env_state_dir(struct cli *cli);
/* Where the user says what rooms may do, outside of every room and of what a sandbox may write; NULL: nowhere. */
const char *env_config_dir(struct cli *cli);
/* MR_REFUSED inside a harness session: `what` is for the user to decide, not for an agent. */
enum mr_rc env_not_in_session(struct cli *cli, const char *what, struct mr_error *err);
/* Where what comes with mailroom may be, for mr_room_options.data_dir. */
const char *env_data_dirs(void);
/* A room's spec with the place that its kind has by itself, absolute. NULL stays NULL; NULL also: out of memory. */
const char *spec_expand(struct cli *cli, const char *spec);
/* mr_room_find with that spec; given NULL: the room of $MAILROOM, or the nearest. */
enum mr_rc cli_find_room(struct cli *cli, const char *given, bool warns, struct mr_place *ret, struct mr_error *err);

/* A folder that was named on the command line, absolute. NULL stays NULL. */
const char *cli_folder(struct cli *cli, const char *path);
/* "a, b"; "" also: out of memory. */
const char *joined(struct cli *cli, const struct mr_names *names);
/* The operands from that one on, with a blank between them; likewise. */
const char *operands_text(struct cli *cli, int from);
/* A string that lives as long as the command; NULL: out of memory. */
const char *cli_text(struct cli *cli, const char *fmt, ...) MR_PRINTF(2, 3);

/* ---- carry_first.c ---- */
#define CARRY_PATIENCE_MS 3000
/* Sends a carrier to the linked rooms, if there are any, and waits for it, but not longer than that. */
void cli_carry_first(struct cli *cli, int64_t patience_ms);

/* full.c */
/* Goes on as that program, in the same process and with the same command line; returns where there is none. */
void cli_hand_over(struct cli *cli, const char *program);
void cli_hand_over_to_full(struct cli *cli); /* unless this is one with its libraries */
/* The same if the room that is named, or made, is of a kind that only mailroom-full has. */
void cli_hand_over_for_room(struct cli *cli, const char *spec);

/* ---- src/serve/main.c: only in mailroom-serve, NULL elsewhere ---- */
int serve_run(struct cli *cli) __attribute__((weak));

/* ---- main.c ---- */
/* Runs one command line with everything it says going to the sink; room, as and session may be NULL. Returns its exit
 * code. */
struct cli_call {
	const struct cli_sink *sink;
	const char *room, *as, *session;
	enum mr_door door;
	char **command_line; /* the process may become another program, with these words; NULL: it must not */
	bool env_aged, threaded;
};
int cli_call(const struct cli_call *call, int argc, char **argv);
void cli_done(struct cli *cli);
enum mr_rc cli_open_room(struct cli *cli, struct mr_error *err);    /* finds and opens it, says its warning */
enum mr_rc cli_open_as_self(struct cli *cli, struct mr_error *err); /* and knows who we are: cheaper than one by one */
enum mr_rc cli_know_self(struct cli *cli, struct mr_error *err);
void cli_seen(struct cli *cli); /* mr_self_seen, by the door of this call */
/* mr_room_storage; a kind of room that cannot tell is "unknown" and not power-safe, not an error. */
enum mr_rc cli_storage(struct cli *cli, struct mr_storage *ret, struct mr_error *err);

/* ---- cmd_trust.c ---- */
/* A person at a terminal is asked whether to trust the room that was found here. True: it is trusted now. */
bool trust_offer(struct cli *cli, const struct mr_room_options *options);
void trust_text(struct buf *out, enum mr_trust by, int64_t since_ms); /* "mailroom init, since Mar 05" */

/* ---- hook/moments.c ---- */
int hook_exit(int code); /* what a harness may see of it */

/* ---- help.c ---- */
void help_command(struct cli *cli, const struct cmd *cmd, struct buf *out); /* --help */
void help_usage(struct cli *cli);                                           /* to stderr: usage and the first example */
void help_overview(struct cli *cli, struct buf *out);

#endif
