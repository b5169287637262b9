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

bool
storm_send(struct storm *s, unsigned from, unsigned to)
{
	char path[128], line[160];

	(void)snprintf(path, sizeof(path), "%s/lines", s->c->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (unsigned i = from; fd >= 0 && i <= to; i++) {
		int n = snprintf(
		    line, sizeof(line), "{\"to\":\"bob\",\"subject\":\"t%05u\",\"body\":\"t%05u: whole\"}\n", i, i);
		if (write(fd, line, (size_t)n) != n)
			return false;
		model->tags[i].to = 2;
		atomic_store(&model->tags[i].outcome, SENT_ACCEPTED);
	}
	if (fd >= 0)
		(void)close(fd);
	atomic_store(&model->next, to + 1);
	run_command(&(struct order){ .bin = s->c->bin, .dir = s->c->dir, .input = path },
	    ARGS("--as", "alice", "send", "--batch"), s->answer);
	return s->answer->exit_code == 0;
}

void
storm_note(const char *out, unsigned long tag_max)
{
	for (const char *line = out, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
		for (const char *at = line; (at = memchr(at, 't', (size_t)(end - at))) != NULL; at++) {
			if (strspn(at + 1, "0123456789") != 5 || at == line || !strchr(" \"", at[-1]))
				continue; /* a piece of an id */
			unsigned long tag = strtoul(at + 1, NULL, 10);
			if (tag <= tag_max && tag < TAGS)
				atomic_fetch_or(&model->tags[tag].shown, 2);
		}
}

static bool
storm_drain(struct storm *s, struct order *order)
{
	run_command(order, ARGS("--as", "bob", "drain", "--json", "--limit", "30"), s->answer);
	storm_note(s->answer->out, s->messages);
	return s->answer->out[0] != '\0';
}

static bool
storm_recv(struct storm *s, struct order *order)
{
	char token[16];

	run_command(order, ARGS("--as", "bob", "recv", "--lease", "1s", "--json"), s->answer);
	storm_note(s->answer->out, s->messages);
	const char *at = strstr(s->answer->out, "\"token\":\"");
	if (s->answer->exit_code == 3)
		return false;
	if (!at || s->answer->exit_code != 0)
		return true;
	(void)snprintf(token, sizeof(token), "%.12s", at + 9);
	order->kill_after_us *= 2;
	run_command(order, ARGS("--as", "bob", "done", token), s->answer);
	return true;
}

static const struct door {
	const char *name;
	bool (*turn)(struct storm *s, struct order *order);
	bool waits;          /* until a lease is over: then there may be more */
	unsigned longest_us; /* until it is killed */
} doors[] = {
	{ "drain", storm_drain, true, 5000 },
	{ "recv", storm_recv, true, 5000 },
	{ "mcp", storm_mcp, true, 4000 },
	{ "hook", storm_hook, false, 1500 },
};

/* Twice empty, a lease apart: what a killed receiver held comes back. */
static bool
run_until_empty(struct storm *s, const struct door *door)
{
	unsigned turns = 0, empty = 0;
	double began = now_s();

	while (empty < 2 && now_s() - began < 300) {
		bool calm = turns++ % 5 == 4;
		struct order order = { .bin = s->c->bin,
			.dir = s->c->dir,
			.kill_after_us = calm ? 0 : 200 + dice(&s->state) % door->longest_us };
		bool more = door->turn(s, &order);
		if (!calm) /* what was killed says nothing */
			continue;
		empty = more ? 0 : empty + 1;
		if (empty == 1 && door->waits)
			(void)usleep(1100000);
	}
	return empty == 2;
}

unsigned
storm(const struct chaos *c, const char *how, unsigned messages, char *ret_row, size_t size)
{
	struct storm s = { .c = c, .messages = messages, .answer = calloc(1, sizeof(*s.answer)), .state = c->seed };
	const struct door *door = doors;
	unsigned unseen = 0;
	double began = now_s();

	while (strcmp(door->name, how) != 0)
		door++;
	if (!s.answer || (door->waits && !storm_send(&s, 1, messages))) {
		free(s.answer);
		(void)snprintf(ret_row, size, "the mailbox could not be filled");
		return 1;
	}
	unsigned bad = !run_until_empty(&s, door);
	unsigned killed = atomic_load(&model->killed);
	for (unsigned i = 1; i <= messages; i++)
		unseen += !(atomic_load(&model->tags[i].shown) & 2);
	bad += count_all(c);
	(void)snprintf(ret_row, size, "%u messages, %u commands, %u killed: %u never seen, %u violations (%.1f s)",
	    messages, atomic_load(&model->commands), killed, unseen, bad + unseen, now_s() - began);
	free(s.answer);
	return bad + unseen;
}
