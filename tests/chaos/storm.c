/* SPDX-License-Identifier: MIT */
/*
 * storm.c - a mailbox full of messages and a receiver that is killed at random, again and again, until it is empty.
 * None may be consumed that its reader did not get to see.
 */
#include "chaos.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static unsigned
fill_mailbox(const struct chaos *c, unsigned messages, struct answer *answer)
{
	char path[128], line[160];

	(void)snprintf(path, sizeof(path), "%s/lines", c->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (unsigned i = 1; fd >= 0 && i <= messages; i++) {
		int n = snprintf(
		    line, sizeof(line), "{\"to\":\"bob\",\"subject\":\"t%05u\",\"body\":\"t%05u: whole\"}\n", i, i);
		if (write(fd, line, (size_t)n) != n)
			return 0;
		model->tags[i].to = 2;
		atomic_store(&model->tags[i].outcome, SENT_ACCEPTED);
	}
	if (fd >= 0)
		(void)close(fd);
	atomic_store(&model->next, messages + 1);
	run_command(&(struct order){ .bin = c->bin, .dir = c->dir, .input = path },
	    ARGS("--as", "alice", "send", "--batch"), answer);
	return answer->exit_code == 0 ? messages : 0;
}

/* Only whole lines count: its reader parses JSON. */
static unsigned
note_lines(const char *out)
{
	unsigned n = 0;

	for (const char *line = out, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		const char *at = memmem(line, (size_t)(end - line), ": whole", 7);
		if (!at || at - line < 6)
			continue;
		unsigned long tag = strtoul(at - 5, NULL, 10);
		if (tag < TAGS) {
			atomic_fetch_or(&model->tags[tag].shown, 2);
			n++;
		}
	}
	return n;
}

static bool
one_turn(const struct chaos *c, const char *how, struct order *order, struct answer *answer)
{
	char token[16];

	if (strcmp(how, "recv") != 0) {
		run_command(order, ARGS("--as", "bob", "drain", "--json", "--limit", "30"), answer);
		return note_lines(answer->out) > 0 || answer->exit_code == -1;
	}
	run_command(order, ARGS("--as", "bob", "recv", "--lease", "1s", "--json"), answer);
	(void)note_lines(answer->out);
	const char *at = strstr(answer->out, "\"token\":\"");
	if (answer->exit_code == 3)
		return false;
	if (!at || answer->exit_code != 0)
		return true;
	(void)snprintf(token, sizeof(token), "%.12s", at + 9);
	order->kill_after_us *= 2;
	run_command(order, ARGS("--as", "bob", "done", token), answer);
	(void)c;
	return true;
}

unsigned
storm(const struct chaos *c, const char *how, unsigned messages, char *ret_row, size_t size)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	uint64_t state = c->seed;
	unsigned turns = 0, empty = 0, twice = 0;
	double began = now_s();

	if (!answer || fill_mailbox(c, messages, answer) == 0) {
		free(answer);
		(void)snprintf(ret_row, size, "the mailbox could not be filled");
		return 1;
	}
	/* Twice empty, a lease apart: what a killed receiver held comes back. */
	while (empty < 2 && now_s() - began < 300) {
		bool calm = turns++ % 5 == 4;
		struct order order = {
			.bin = c->bin, .dir = c->dir, .kill_after_us = calm ? 0 : 200 + dice(&state) % 5000
		};
		if (one_turn(c, how, &order, answer)) {
			empty = 0;
			continue;
		}
		empty++;
		(void)usleep(1100000);
	}
	unsigned killed = atomic_load(&model->killed);
	for (unsigned i = 1; i <= messages; i++)
		twice += !(atomic_load(&model->tags[i].shown) & 2);
	unsigned bad = count_all(c) + (empty < 2);
	(void)snprintf(ret_row, size, "%u messages, %u commands, %u killed: %u never seen, %u violations (%.1f s)",
	    messages, atomic_load(&model->commands), killed, twice, bad + twice, now_s() - began);
	free(answer);
	return bad + twice;
}
