/* SPDX-License-Identifier: MIT */
/*
 * view.h - what a command shows, once: a list of cells, each with its key in JSON, its heading in a table, or both.
 *
 * A list is a table as text and a line of JSON for each row:
 *
 *	struct listing list = { .cli = cli };
 *	... list_row(&list, col("NAME", kv_str("name", q->name)), col("READY", kv_int("ready", n)),
 *		kv_time("created", q->created_ms));            a cell without col() is in JSON only
 *	return list_end(&list, "no queues\n");
 *
 * An answer is an object in JSON; as text it is a sentence, or whatever the command adds unless out_json returns true:
 *
 *	return out_answer(cli, CELLS(kv_str("name", name), kv_str("state", "made")), "made %s\n", name);
 *
 * Cells borrow their strings. Out of memory sets cli->out.failed, which cli_flush reports.
 */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include "cli/cli.h"

struct cell {
	enum cell_kind {
		CELL_END,
		CELL_NONE, /* is not shown */
		CELL_STR,  /* NULL is null, and "-" in a table */
		CELL_TEXT, /* bytes */
		CELL_INT,
		CELL_BOOL,
		CELL_TIME, /* RFC 3339 in JSON, an age or a date in a table; 0 is null and "-" */
		CELL_NAMES,
		CELL_JSON,   /* is JSON already */
		CELL_FENCED, /* is fenced already; in a table only */
		CELL_WORDS,
		CELL_OPEN, /* begins an object */
		CELL_LIST, /* begins an array */
		CELL_CLOSE,
	} kind;
	bool quoted;         /* in a table as FENCE_NAME, "-" when it is empty */
	const char *key;     /* NULL: not in JSON; "": a value in an array, or the outermost */
	const char *heading; /* NULL: not in the table */
	union {
		const char *str;
		struct mr_str text;
		int64_t number;
		const struct mr_names *names;
		const char *const *words;
	};
};
#define kv_none() ((struct cell){ .kind = CELL_NONE })
#define kv_str(name, ...) ((struct cell){ .kind = CELL_STR, .key = name, .str = __VA_ARGS__ })
#define kv_text(name, ...) ((struct cell){ .kind = CELL_TEXT, .key = name, .text = __VA_ARGS__ })
#define kv_int(name, ...) ((struct cell){ .kind = CELL_INT, .key = name, .number = __VA_ARGS__ })
#define kv_size(name, ...) kv_int(name, (int64_t)(__VA_ARGS__))
#define kv_bool(name, ...) ((struct cell){ .kind = CELL_BOOL, .key = name, .number = __VA_ARGS__ })
#define kv_time(name, ...) ((struct cell){ .kind = CELL_TIME, .key = name, .number = __VA_ARGS__ })
#define kv_raw(name, ...) ((struct cell){ .kind = CELL_JSON, .key = name, .text = __VA_ARGS__ })
#define kv_names(name, ...) ((struct cell){ .kind = CELL_NAMES, .key = name, .names = __VA_ARGS__ })
#define kv_words(name, ...) ((struct cell){ .kind = CELL_WORDS, .key = name, .words = __VA_ARGS__ }) /* up to NULL */
/* The cells up to kv_close are an object of that name, or an array. */
#define kv_open(name) ((struct cell){ .kind = CELL_OPEN, .key = name })
#define kv_list(name) ((struct cell){ .kind = CELL_LIST, .key = name })
#define kv_close() ((struct cell){ .kind = CELL_CLOSE })
struct cell kv_opt(const char *key, const char *value);       /* null when it is empty */
struct cell kv_if(const char *key, const char *value);        /* left out when it is empty or NULL */
struct cell kv_json(const char *key, const struct buf *json); /* NULL: left out */

struct cell col(const char *heading, struct cell cell);
struct cell col_name(const char *heading, struct cell cell); /* text of others */
/* In the table only. */
#define col_str(title, value) ((struct cell){ .kind = CELL_STR, .heading = title, .str = value })
#define col_fenced(title, fenced) ((struct cell){ .kind = CELL_FENCED, .heading = title, .text = buf_str(fenced) })

#define CELLS(...) ((const struct cell[]){ __VA_ARGS__, { .kind = CELL_END } })

/* Inside an open object. */
void json_cells(struct json *j, const struct cell *cells);
/* With --json: a line with one object, and true. Else false. */
#define out_json(cli, ...) out_json_cells(cli, CELLS(__VA_ARGS__))
bool out_json_cells(struct cli *cli, const struct cell *cells);

/* An answer of one sentence: with --json these cells. Returns EXIT_DONE. */
#define out_answer(cli, cells, ...)                                                                                    \
	(out_json_cells(cli, cells) ? EXIT_DONE : (fence_addf(&(cli)->out, __VA_ARGS__), EXIT_DONE))

/* The message as a line of JSON, with these cells (or NULL) before and behind its own keys. */
void out_json_message(
    struct cli *cli, const struct cell *before, const struct mr_message *msg, bool body, const struct cell *behind);

enum listing_form {
	LIST_LINES, /* a line of JSON for each row */
	LIST_ARRAY, /* list_json has all rows as one array */
	LIST_KEYED, /* ... as one object; the first cell of a row is also its key */
	LIST_ONE,   /* list_json has the only row */
	LIST_JSON,  /* a line of JSON for each row, and no table: an answer whose text is something else */
};
struct listing { /* finish with list_end or list_done */
	struct cli *cli;
	enum listing_form form;
	size_t n;              /* rows */
	struct mr_names cells; /* of the table as they are printed, headings first */
	size_t columns;
	struct buf json_text; /* not with LIST_LINES */
	struct json json;
};
/* With --json writes the row as JSON and returns true. Else adds its columns to the table, if there is one. */
#define list_row(list, ...) list_cells(list, CELLS(__VA_ARGS__))
bool list_cells(struct listing *list, const struct cell *cells);
/* Prints the table, or `nothing` if it has no rows. Returns EXIT_DONE. */
int list_end(struct listing *list, const char *nothing);
const struct buf *list_json(struct listing *list);
void list_done(struct listing *list);

const char *queue_status_word(enum mr_queue_status status); /* cmd_queue.c */
/* cmd_escalate.c: what became of an escalation, in the keys of our own command or of gt. */
void escalated_json(struct cli *cli, const struct mr_escalated *e, const char *source);

#endif
