/* SPDX-License-Identifier: MIT */
/*
 * costs.c - what a command costs that a clock does not show: system calls and syncs (strace), instructions of its own
 * (callgrind), the most memory it had, and what a message takes on the disk. The same commands are run once under each
 * of the tools; where one does not work its figures are left out.
 */
#include "rival.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIGURES "bench.figures"
#define OUTPUT "bench.out"
#define BATCH_INPUT "costs-batch"
#define BATCH 1000
#define ARGS_MAX 24
#define UNREAD 10
#define DISK_MESSAGES 200

enum tool { STRACE, CALLGRIND, PEAK, TOOLS };
enum op { EMPTY, CHECK, SEND, INBOX, RECV, DONE, DRAIN, BATCH_SEND, OPS };

static struct cost {
	const char *name, *what;
	double calls, syncs, instructions, peak_kb; /* below 0: not known */
	double messages;                            /* that it is for; figures but memory are for one of them */
	double calls_budget, syncs_budget;          /* 0: none */
} costs[OPS] = {
	[EMPTY] = { .name = "an empty program", .what = "static, does nothing: the floor of the columns" },
	[CHECK] = { .name = "check --inject", .what = "a hook's look, without mail" },
	[SEND] = { .name = "send", .what = "1 KB to one agent", .calls_budget = 120, .syncs_budget = 3 },
	[INBOX] = { .name = "inbox", .what = "10 unread, 10 read" },
	[RECV] = { .name = "recv", .what = "takes one to work on" },
	[DONE] = { .name = "done", .what = "finishes it" },
	[DRAIN] = { .name = "drain", .what = "one message" },
	[BATCH_SEND] = { .name = "send --batch", .what = "one of 1,000 of 1 KB", .messages = BATCH },
};

/* ---- Reading what a tool wrote ---- */

static void
count_trace(struct cost *c)
{
	FILE *trace = fopen(FIGURES, "r");
	char *line = NULL;
	size_t size = 0;

	c->calls = c->syncs = 0;
	while (trace && getline(&line, &size, trace) > 0) {
		const char *call = line + strspn(line, "0123456789 ");

		if (*call < 'a' || *call > 'z') /* signals, exits, calls that go on */
			continue;
		c->calls += 1;
		c->syncs += strncmp(call, "fsync(", 6) == 0 || strncmp(call, "fdatasync(", 10) == 0 ||
			    strncmp(call, "syncfs(", 7) == 0;
	}
	free(line);
	if (!trace || fclose(trace) != 0 || c->calls <= 0)
		die("strace wrote nothing");
}

static double
number_behind(const char *word)
{
	FILE *file = fopen(FIGURES, "r");
	char line[512];
	double number = -1;

	while (file && fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, word);

		if (at)
			number = strtod(at + strlen(word), NULL);
	}
	if (file)
		(void)fclose(file);
	return number;
}

static void
take_figures(struct cost *c, enum tool tool)
{
	double n = c->messages > 0 ? c->messages : 1;

	if (tool == STRACE) {
		count_trace(c);
		c->calls /= n;
		c->syncs /= n;
	} else if (tool == CALLGRIND)
		c->instructions = number_behind("Collected : ") / n;
	else
		c->peak_kb = number_behind("");
}

/* ---- Running under a tool ---- */

static char *peak_program;

static const char *const *
tool_argv(enum tool tool)
{
	static const char *const strace[] = { "strace", "-f", "-qq", "-o", FIGURES, "--", NULL };
	static const char *const callgrind[] = { "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
		"--log-file=" FIGURES, "--", NULL };
	static const char *peak[] = { NULL, FIGURES, NULL };

	peak[0] = peak_program;
	return tool == STRACE ? strace : tool == CALLGRIND ? callgrind : peak;
}

static bool
run_under(struct bench *b, enum tool tool, const char *const *argv)
{
	const char *const *wrap = tool_argv(tool);
	const char *all[ARGS_MAX];
	size_t n = 0;

	for (size_t i = 0; wrap[i]; i++)
		all[n++] = wrap[i];
	for (size_t i = 0; argv[i]; i++) {
		if (n + 1 == ARGS_MAX)
			die("too many arguments");
		all[n++] = argv[i];
	}
	all[n] = NULL;
	return run_program(b, all, OUTPUT) == 0;
}

static void
run_op(struct bench *b, enum tool tool, enum op op, const char *const *argv)
{
	if (!run_under(b, tool, argv))
		die("'%s' failed under a tool", costs[op].name);
	take_figures(&costs[op], tool);
}

/* Of the claim that the recv before printed. */
static void
read_token(char token[MR_TOKEN_LEN + 1])
{
	static char text[16384];
	FILE *output = fopen(OUTPUT, "r");
	size_t n = output ? fread(text, 1, sizeof(text) - 1, output) : 0;
	const char *at;

	text[n] = '\0';
	at = strstr(text, "\"token\":\"");
	if (!at)
		die("recv printed no token");
	(void)snprintf(token, MR_TOKEN_LEN + 1, "%s", at + 9);
	(void)fclose(output);
}

static void
pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static void
run_all(struct bench *b, enum tool tool)
{
	char token[MR_TOKEN_LEN + 1];
	const char *const empty[] = { b->empty, NULL };
	const char *const check_argv[] = { b->command, "--as", "ivy", "check", "--inject", NULL };
	const char *const send[] = { b->command, "--as", "alice", "send", "trudy", "-m", b->body, NULL };
	const char *const inbox[] = { b->command, "--as", "iris", "inbox", NULL };
	const char *const recv[] = { b->command, "--as", "trudy", "--json", "recv", NULL };
	const char *const done[] = { b->command, "--as", "trudy", "done", token, NULL };
	const char *const drain[] = { b->command, "--as", "trudy", "drain", NULL };
	const char *const batch[] = { b->command, "--as", "alice", "send", "--batch", NULL };

	run_op(b, tool, EMPTY, empty);
	run_op(b, tool, CHECK, check_argv);
	run_op(b, tool, SEND, send);
	pause_ms(100); /* a folder that has just changed is read twice */
	run_op(b, tool, INBOX, inbox);
	run_op(b, tool, RECV, recv);
	read_token(token);
	pause_ms(100);
	run_op(b, tool, DONE, done);
	(void)run_timed(b, send);
	pause_ms(100);
	run_op(b, tool, DRAIN, drain);
	b->input = BATCH_INPUT;
	run_op(b, tool, BATCH_SEND, batch);
	b->input = NULL;
}

/* ---- Setting up ---- */

static void
write_batch(const struct bench *b)
{
	FILE *file = fopen(BATCH_INPUT, "w");

	for (unsigned i = 0; file && i < BATCH; i++) {
		(void)fputs("{\"to\":\"batty\",\"body\":\"", file);
		for (const char *c = b->body; *c; c++)
			(void)fputs(*c == '\n' ? "\\n" : (const char[]){ *c, '\0' }, file);
		(void)fputs("\"}\n", file);
	}
	if (!file || fclose(file) != 0)
		die("cannot write '%s'", BATCH_INPUT);
}

static void
send_to(struct bench *b, const char *agent, char ret_id[MR_ID_LEN + 1])
{
	const char *const to[] = { agent, NULL };
	struct mr_draft draft = { .to = to, .body = b->body, .body_len = BODY_BYTES };
	struct mr_self alice = self_of(b, "alice");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	check(mr_send(b->room, &alice, &draft, &receipt, &err), &err, "send");
	memcpy(ret_id, receipt.id, sizeof(receipt.id));
	mr_receipt_done(&receipt);
}

static void
set_up(struct bench *b)
{
	const char *const warm_send[] = { b->command, "--as", "alice", "send", "trudy", "-m", "hi", NULL };
	const char *const warm_drain[] = { b->command, "--as", "trudy", "drain", NULL };
	const char *const warm_check[] = { b->command, "--as", "ivy", "check", "--inject", NULL };
	static const char *const names[] = { "trudy", "iris", "ivy", "diana", "batty" };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		register_agent(b, names[i]);
	struct mr_self iris = self_of(b, "iris");

	for (unsigned i = 0; i < 2 * UNREAD; i++) {
		send_to(b, "iris", id);
		if (i < UNREAD)
			check(mr_mark(b->room, &iris, id, MR_SEEN, 0, &err), &err, "mark");
	}
	check(mr_flush(b->room, &err), &err, "flush");
	(void)run_timed(b, warm_send); /* the folders of the first time are made */
	(void)run_timed(b, warm_drain);
	write_batch(b);
	pause_ms(3200); /* a folder without mail is remembered once it held still for three seconds */
	(void)run_timed(b, warm_check);
	for (size_t i = 0; i < OPS; i++)
		costs[i].calls = costs[i].syncs = costs[i].instructions = costs[i].peak_kb = -1;
}

/* ---- The disk ---- */

static void
record_disk(struct bench *b)
{
	const char *const batch[] = { b->command, "--as", "alice", "send", "--batch", NULL };
	char id[MR_ID_LEN + 1];
	FILE *out;

	sync_disk();
	struct usage before = usage_of(".mailroom");
	for (unsigned i = 0; i < DISK_MESSAGES; i++)
		send_to(b, "diana", id);
	sync_disk();
	struct usage between = usage_of(".mailroom");
	b->input = BATCH_INPUT;
	(void)run_timed(b, batch);
	b->input = NULL;
	sync_disk();
	struct usage after = usage_of(".mailroom");

	out = record_begin("disk");
	record_text(
	    out, "what", "a message of 1 KB, sent by send: in the mailbox and in the sender's list of what was sent");
	record_number(out, "bytes", (between.bytes - before.bytes) / DISK_MESSAGES);
	record_number(out, "disk_bytes", (between.allocated - before.allocated) / DISK_MESSAGES);
	record_end(out);
	out = record_begin("disk");
	record_text(out, "what", "the same by send --batch");
	record_number(out, "bytes", (after.bytes - between.bytes) / BATCH);
	record_number(out, "disk_bytes", (after.allocated - between.allocated) / BATCH);
	record_end(out);
}

static void
record_cost(const struct cost *c)
{
	FILE *out = record_begin("costs");

	record_text(out, "name", c->name);
	record_text(out, "what", c->what);
	if (c->calls >= 0) {
		record_number(out, "calls", c->calls);
		record_number(out, "syncs", c->syncs);
	}
	if (c->calls_budget > 0) {
		record_number(out, "calls_budget", c->calls_budget);
		record_number(out, "syncs_budget", c->syncs_budget);
	}
	if (c->instructions >= 0)
		record_number(out, "instructions", c->instructions);
	if (c->peak_kb >= 0)
		record_number(out, "peak_kb", c->peak_kb);
	record_end(out);
	(void)printf("%-17s %8.1f calls %6.2f syncs %10.0f instructions %6.0f KB\n", c->name, c->calls, c->syncs,
	    c->instructions, c->peak_kb);
}

void
rows_costs(struct bench *b)
{
	static const char *const names[] = { "strace", "valgrind", NULL };
	const char *const empty[] = { b->empty, NULL };

	peak_program = path_of("%s/build/bench/peak", b->top);
	set_up(b);
	for (int tool = 0; tool < TOOLS; tool++)
		if ((!names[tool] || is_here(names[tool])) && run_under(b, (enum tool)tool, empty))
			run_all(b, (enum tool)tool);
		else
			(void)fprintf(stderr, "bench: %s does not work here: its figures are left out\n",
			    names[tool] ? names[tool] : "the launcher for memory");
	record_disk(b);
	for (size_t i = 0; i < OPS; i++)
		record_cost(&costs[i]);
	(void)unlink(FIGURES);
	(void)unlink(OUTPUT);
	free(peak_program);
}
