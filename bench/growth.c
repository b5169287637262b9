/* SPDX-License-Identifier: MIT */
/*
 * growth.c - cost against history: each row is one command in rooms of 10, 1,000, 100,000 (BENCH_LONG: 1,000,000)
 * messages, or of 10, 500, 5,000 agents, beside the bare calls of the same work or beside itself in the smallest room.
 * A row above its limit fails the bench.
 *
 *	BENCH_ONLY=inbox-limit   only rows whose names have this in them
 *	BENCH_MOST=1000          no room is larger
 */
#include "growth.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURNS_MAX 9
#define TURNS_MIN 3
#define ENOUGH_US 3e6 /* for one size of a row: then TURNS_MIN are enough */
#define FLAT_KB 8192  /* more than in the smallest room */
#define TEAM_KB 0.3   /* of an entry: a team's file is one JSON text, which is read whole */
#define MS 1e3

static const long message_sizes[] = { 10, 1000, 100000, 1000000 };
static const long agent_sizes[] = { 10, 500, 5000 };

struct row {
	const char *name, *what;
	enum kind kind;
	const char *command; /* words behind the program's name; @id, @6: a message and its last characters */
	double (*bare)(struct bench *b, struct town *t); /* NULL: the same in the smallest room */
	double times;                                    /* of the bare side, at most; 0: no limit */
	double ms;                                       /* at most; 0: no limit */
	long most;                                       /* of what is in a room; 0: 100,000 */
	long least;                                      /* a smaller room may be above `times`: it has fixed costs */
	const char *undo;                                /* behind each time; @token is the one that was printed */
	void (*before)(struct bench *b, struct town *t); /* each time; may be NULL */
	const char *peer; /* a program of somebody else: the command is a line for sh. NULL: mailroom */
	int code;         /* it exits with */
	bool each; /* its time is that of one message, beside that in the room before: what is copied costs the same */
};

/* clang-format off */
static const struct row rows[] = {
	{ "inbox-limit", "inbox --limit 10, all unread", UNREAD, "--as bob inbox --limit 10", bare_names, 2 },
	{ "inbox-limit", "the newest 10", UNREAD, "mlist .mailroom/agents/bob/new | sort | tail -n 10 | mscan 2>/dev/null", .peer = "mblaze" },
	{ "inbox-limit", "the newest 10", UNREAD, "sqlite3 ../mail.db 'SELECT id, subject FROM mail WHERE seen = 0 ORDER BY id DESC LIMIT 10'", .peer = "sqlite3" },
	{ "recv", "recv, all unread", UNREAD, "--as bob --json recv", bare_names, 2, .undo = "--as bob release @token" },
	{ "wait", "wait, all unread", UNREAD, "--as bob wait", bare_names, 2 },
	{ "who-unread", "who, all unread", UNREAD, "who", bare_names, 2 },
	{ "hook", "hook at a prompt, all unread and announced", UNREAD, "hook claude-code", NULL, 3 },
	{ "drain", "drain --budget 0 of all", DRAINED, "--as bob drain --budget 0", bare_moves, 1.5, .most = 10000, .least = 10000, .before = refill },
	{ "inbox-after-backlog", "inbox, 10 unread, after mark read --all", READ, "--as bob inbox", NULL, 1.2, .most = 20000 },
	{ "thread", "thread of 5, archived", ARCHIVED, "--as bob thread @id", NULL, 0, 50, 1000000 },
	{ "thread", "the same thread", ARCHIVED, "notmuch show 'thread:{id:@id@bench}'", .peer = "notmuch" },
	{ "thread", "the same thread", ARCHIVED, "sqlite3 ../mail.db \"SELECT * FROM mail WHERE thread = '@id'\"", .peer = "sqlite3" },
	{ "search-first", "first hit of a rare word, archived", ARCHIVED, "--as bob search needle --limit 1", NULL, 0, 50, 1000000 },
	{ "search-all", "all 10 hits of a rare word, archived", ARCHIVED, "--as bob search needle", NULL, 0, 1000, 1000000 },
	{ "search-all", "all hits", ARCHIVED, "notmuch search --output=summary needle", .peer = "notmuch" },
	{ "search-all", "all hits", ARCHIVED, "sqlite3 ../mail.db \"SELECT m.* FROM words JOIN mail m ON m.id = words.rowid WHERE words MATCH 'needle'\"", .peer = "sqlite3" },
	{ "search-since", "search --since 1d, archived", ARCHIVED, "--as bob search letter --since 1d", bare_names, 2, 0, 1000000 },
	{ "read-suffix", "read by the last 6 characters, archived", ARCHIVED, "--as bob read @6", NULL, 0, 10, 1000000 },
	{ "reply-suffix", "reply by the last 6 characters, archived", ARCHIVED, "--as bob reply @6 -m thanks", NULL, 0, 10, 1000000 },
	{ "why-suffix", "why by the last 6 characters, archived", ARCHIVED, "--as bob why @6", NULL, 0, 10, 1000000 },
	{ "stats", "stats, archived", ARCHIVED, "stats", NULL },
	{ "doctor", "doctor, archived", ARCHIVED, "doctor", NULL },
	{ "export", "a message of export into an empty room", SENT, "export --to ../copy alice", NULL, 1.3, .most = 3000, .before = new_copy, .each = true },
	{ "import", "a message of import from such a room", SENT, "--room ../copy/.mailroom import --from . alice", NULL, 1.3, .most = 3000, .before = new_copy, .each = true },
	{ "sent", "sent --limit 10", SENT, "--as bob sent --limit 10", bare_names, 2 },
	{ "who-agents", "who", AGENTS, "who", NULL, 0, 150 },
	{ "send-all", "send @all", AGENTS, "--as rig000/a00000 send @all -m hi", bare_links, 1.5 },
	{ "pattern", "resolve of a pattern that 10 match", AGENTS, "--as rig000/a00000 resolve rig000/*", NULL, 0, 50 },
	{ "mistyped", "send to a mistyped name", AGENTS, "--as rig000/a00000 send rgi000/a00001 -m hi", NULL, 0, 50, .code = 5 },
	{ "group-add", "group add of all in one command", AGENTS, "--as rig000/a00000 group add fleet -", NULL, 0, 500, .before = empty_group },
	{ "teams-look", "inbox --limit 10 of a team's file", TEAM, "--room teams:teams/crew --as bob inbox --limit 10", bare_json, 2, .most = 200000 },
	{ "teams-check", "check of a team's file", TEAM, "--room teams:teams/crew --as bob check", bare_json, 2, .most = 200000 },
	{ "teams-hook", "hook at a prompt, all unread in a team's file", TEAM, "--room teams:teams/crew --as bob check --inject", bare_json, 2, .most = 200000 },
	{ "teams-wait", "wait, all unread in a team's file", TEAM, "--room teams:teams/crew --as bob wait", bare_json, 2, .most = 200000 },
};
/* clang-format on */

/* ---- One command in one room ---- */

#define WORDS_MAX 24

static void
replace(char *text, size_t size, const char *mark, const char *value)
{
	for (char *at; (at = strstr(text, mark)) != NULL;) {
		char *rest = path_of("%s", at + strlen(mark));

		(void)snprintf(at, size - (size_t)(at - text), "%s%s", value, rest);
		free(rest);
	}
}

/* That the command before printed. */
static const char *
read_token(void)
{
	static char text[16384];
	FILE *out = fopen("../out", "r");
	size_t n = out ? fread(text, 1, sizeof(text) - 1, out) : 0;

	text[n] = '\0';
	char *at = strstr(text, "\"token\":\"");
	if (!at)
		die("no token was printed");
	(void)fclose(out);
	at[9 + MR_TOKEN_LEN] = '\0';
	return at + 9;
}

/* In the room's folder, behind `wrap` if that is not NULL: µs. */
static double
run_words(struct bench *b, const struct row *r, const struct town *t, const char *command, const char *wrap)
{
	static char text[1024];
	const char *argv[WORDS_MAX + 4] = { wrap, "../peak" };
	size_t n = wrap ? 2 : 0;

	if (chdir(t->folder) < 0)
		die("cannot go to '%s'", t->folder);
	(void)snprintf(text, sizeof(text), "%s", command);
	replace(text, sizeof(text), "@id", t->id);
	replace(text, sizeof(text), "@6", t->id + MR_ID_LEN - 6);
	if (strstr(text, "@token"))
		replace(text, sizeof(text), "@token", read_token());
	if (r->peer) {
		memcpy(argv + n, (const char *const[]){ "sh", "-c", text }, 3 * sizeof(*argv));
	} else {
		argv[n++] = b->command;
		for (char *word = strtok(text, " "); word && n < WORDS_MAX; word = strtok(NULL, " "))
			argv[n++] = word;
	}
	b->input = strncmp(command, "hook", 4) == 0 ? "../prompt" : strstr(command, " fleet -") ? "../names" : NULL;
	b->variable = r->peer ? "NOTMUCH_CONFIG=../notmuch-config" : NULL;
	int words = r->code ? dup(2) : -1; /* of an error that is meant */

	if (words >= 0)
		(void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
	double began = now_us();
	int code = run_program(b, argv, "../out");
	double took = now_us() - began;

	if (words >= 0)
		(void)dup2(words, 2);

	if (code != (command == r->command ? r->code : 0))
		die("'%s' exited with %d in a room of %ld", command, code, t->n);
	b->input = b->variable = NULL;
	if (chdir(b->work) < 0)
		die("cannot go back");
	return took;
}

static double
run_row(struct bench *b, const struct row *r, struct town *t, const char *wrap)
{
	if (r->before)
		r->before(b, t);
	double took = run_words(b, r, t, r->command, wrap);

	if (r->undo)
		(void)run_words(b, r, t, r->undo, NULL);
	return took;
}

/* The most memory it has, in KB. */
static double
peak_of(struct bench *b, const struct row *r, struct town *t)
{
	char *peak = path_of("%s/build/bench/peak", b->top), *path = path_of("%s/../peak", t->folder);

	(void)run_row(b, r, t, peak);
	FILE *file = fopen(path, "r");
	double kb = 0;

	if (!file || fscanf(file, "%lf", &kb) != 1)
		die("no figure in '%s'", path);
	(void)fclose(file);
	free(peak), free(path);
	return kb;
}

/* ---- A row ---- */

struct point {
	double us, peak_kb;
	double
	    floor_us; /* of the bare side, with what the command takes in the smallest room; or all of that; 0: none */
	bool met;
};

static void
record_point(const struct row *r, long n, const struct point *p)
{
	FILE *out = record_begin("growth");

	record_text(out, "name", r->name);
	record_text(out, "what", r->what);
	record_text(out, "by", r->peer ? r->peer : "mailroom");
	record_text(out, "of", r->kind == AGENTS ? "agents" : "messages");
	record_number(out, "n", (double)n);
	record_number(out, "us", p->us);
	record_number(out, "peak_kb", p->peak_kb);
	record_flag(out, "bare", r->bare != NULL);
	if (p->floor_us > 0)
		record_number(out, "ratio", p->us / p->floor_us);
	if (r->times > 0)
		record_number(out, "times", r->times);
	if (r->ms > 0)
		record_number(out, "ms", r->ms);
	record_flag(out, "met", p->met);
	record_end(out);
	(void)printf(
	    "%-20s %-9s %8ld %11.2f ms %8.0f KB", r->name, r->peer ? r->peer : "mailroom", n, p->us / MS, p->peak_kb);
	if (p->floor_us > 0)
		(void)printf("  %6.2f x %s, at most %.1f", p->us / p->floor_us,
		    r->bare   ? "bare"
		    : r->each ? "before"
			      : "small",
		    r->times);
	if (r->ms > 0)
		(void)printf("  at most %.0f ms", r->ms);
	(void)printf("%s\n", p->met ? "" : "  MISSED");
}

/* first: of this row in the smallest room, or with `each` in the one before; NULL: this is it. */
static struct point
measure_point(struct bench *b, const struct row *r, struct town *t, struct town *small, const struct point *first)
{
	double ours[TURNS_MAX], beside[TURNS_MAX], began = now_us();
	bool by_times = first && r->times > 0 && !r->each;
	struct point p = { 0 };
	size_t n = 0;

	(void)run_row(b, r, t, NULL);
	do {
		sync_disk();
		if (by_times)
			beside[n] = r->bare ? r->bare(b, t) : run_row(b, r, small, NULL);
		sync_disk();
		ours[n++] = run_row(b, r, t, NULL);
	} while (n < TURNS_MIN || (n < TURNS_MAX && now_us() - began < ENOUGH_US));
	p.us = median(ours, n) / (r->each ? (double)t->n : 1);
	p.floor_us = by_times ? median(beside, n) + (r->bare ? first->us : 0) : first && r->each ? first->us : 0;
	p.peak_kb = peak_of(b, r, t);
	p.met = r->peer ||
		((p.floor_us <= 0 || t->n < r->least || p.us <= p.floor_us * r->times) &&
		    (r->ms <= 0 || p.us <= r->ms * MS) &&
		    (!first || p.peak_kb <= first->peak_kb + FLAT_KB + (r->kind == TEAM ? (double)t->n * TEAM_KB : 0)));
	return p;
}

static unsigned
measure_row(struct bench *b, const struct row *r, long most)
{
	const long *sizes = r->kind == AGENTS ? agent_sizes : message_sizes;
	size_t sizes_n = r->kind == AGENTS ? 3 : 4;
	struct town *small = town_of(b, r->kind, sizes[0]);
	struct point first;
	unsigned missed = 0;

	if (most > (r->most ? r->most : 100000))
		most = r->most ? r->most : 100000;
	for (size_t i = 0; i < sizes_n && (i == 0 || sizes[i - 1] < most); i++) {
		struct town *t = town_of(b, r->kind, sizes[i] < most ? sizes[i] : most);

		if (r->peer)
			town_index(b, t, r->peer);
		struct point p = measure_point(b, r, t, small, i ? &first : NULL);

		if (i == 0 || r->each)
			first = p;
		record_point(r, t->n, &p);
		missed += !p.met;
	}
	return missed;
}

void
rows_growth(struct bench *b)
{
	const char *only = getenv("BENCH_ONLY"), *at_most = getenv("BENCH_MOST");
	long most = at_most ? atol(at_most) : b->archived >= 1000000 ? 1000000 : 100000;
	unsigned missed = 0;

	if (!only ||
	    strstr("waiters", only)) /* before anything is sent to those agents: an agent with mail does not wait */
		missed += rows_waiters(b, most);
	for (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(rows[0]); r++) {
		if (only && !strstr(r->name, only))
			continue;
		if (r->peer && !is_here(strcmp(r->peer, "mblaze") == 0 ? "mscan" : r->peer))
			continue;
		missed += measure_row(b, r, most);
	}
	(void)printf("%u limits of growth missed\n\n", missed);
	b->missed += missed;
}
