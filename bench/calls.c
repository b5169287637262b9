/* SPDX-License-Identifier: MIT */
/* calls.c - how many system calls and syncs a command makes, counted with strace. Counts only: strace makes
 * every call slow. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACE "bench.strace"
#define OUTPUT "bench.out"
#define ARGS_MAX 16

static void
count_trace(unsigned *calls, unsigned *syncs)
{
	FILE *trace = fopen(TRACE, "r");
	char *line = NULL;
	size_t size = 0;

	*calls = *syncs = 0;
	if (!trace)
		die("cannot read '%s'", TRACE);
	while (getline(&line, &size, trace) > 0) {
		const char *call = line + strspn(line, "0123456789 ");

		if (*call < 'a' || *call > 'z') /* signals, exits, calls that go on */
			continue;
		*calls += 1;
		*syncs += strncmp(call, "fsync(", 6) == 0 || strncmp(call, "fdatasync(", 10) == 0 ||
			  strncmp(call, "syncfs(", 7) == 0;
	}
	free(line);
	(void)fclose(trace);
}

static void
trace_command(struct bench *b, const char *name, const char *what, const char *const *argv)
{
	const char *traced[ARGS_MAX] = { "strace", "-f", "-qq", "-o", TRACE, "--" };
	size_t n = 6;
	unsigned calls, syncs;

	for (size_t i = 0; argv[i] && n + 1 < ARGS_MAX; i++)
		traced[n++] = argv[i];
	if (run_program(b, traced, OUTPUT) != 0)
		die("'%s' under strace failed", name);
	count_trace(&calls, &syncs);
	report_calls(name, what, calls, syncs);
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

void
rows_calls(struct bench *b)
{
	char token[MR_TOKEN_LEN + 1];
	const char *const probe[] = { "strace", "-qq", "-o", TRACE, "--", b->empty, NULL };
	const char *const send[] = { b->command, "--as", "alice", "send", "trudy", "-m", "hi", NULL };
	const char *const check[] = { b->command, "--as", "trudy", "check", "--inject", NULL };
	const char *const inbox[] = { b->command, "--as", "carol", "inbox", NULL };
	const char *const recv[] = { b->command, "--as", "trudy", "--json", "recv", NULL };
	const char *const done[] = { b->command, "--as", "trudy", "done", token, NULL };
	const char *const drain[] = { b->command, "--as", "trudy", "drain", NULL };

	if (access("/usr/bin/strace", X_OK) != 0 || run_program(b, probe, NULL) != 0) {
		(void)fprintf(stderr, "bench: strace does not work here: system calls are not counted\n");
		return;
	}
	register_agent(b, "trudy");
	trace_command(b, "calls-empty", "an empty static program", probe + 5);
	(void)nanosleep(&(struct timespec){ .tv_sec = 3, .tv_nsec = 200000000 }, NULL);
	if (run_program(b, check, NULL) != 0)
		die("check failed");
	trace_command(b, "calls-check", "check --inject without mail", check);
	trace_command(b, "calls-send", "send to one agent", send);
	(void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	trace_command(b, "calls-inbox", "inbox with 10 unread and 10 read", inbox);
	trace_command(b, "calls-recv", "recv", recv);
	read_token(token);
	trace_command(b, "calls-done", "done", done);
	if (run_program(b, send, NULL) != 0)
		die("send failed");
	(void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	trace_command(b, "calls-drain", "drain of one message", drain);
	(void)unlink(TRACE);
	(void)unlink(OUTPUT);
}
