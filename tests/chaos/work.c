/* SPDX-License-Identifier: MIT */
/* work.c - what a worker does: any command, at random, most of them with a fault. */
#include "chaos.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const agent_names[AGENTS] = { "alice", "bob", "carol", "dave" };

struct worker {
	struct chaos *c;
	unsigned number;
	uint64_t state;
	struct answer answer;
	struct order order;
	char fault[48], clock[32];
};
#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Half of the commands meet a fault of the test build, some are killed from outside, the others are left alone. */
static void
plan(struct worker *w)
{
	static const char *const errors[] = { "EIO", "ENOSPC", "EMFILE", "EINTR", "EACCES", "EROFS", "EDQUOT",
		"ENOMEM" };
	static const long long steps[] = { -2000, 3600000, -3600000, 86400000LL * 400, -86400000LL * 400, 61000, 0 };
	unsigned at = 1 + dice(&w->state) % (dice(&w->state) % 2 ? 30 : 140);

	w->order = (struct order){ .bin = w->c->bin, .dir = w->c->dir };
	if (w->c->around == AROUND_CLOCKS) {
		w->order.bin = w->c->devbin;
		w->order.clock = w->clock;
		(void)snprintf(w->clock, sizeof(w->clock), "%lld", steps[dice(&w->state) % 7]);
	}
	unsigned kind = w->c->faults ? dice(&w->state) % 10 : 9;
	if (kind < 2)
		(void)snprintf(w->fault, sizeof(w->fault), "kill-%s:%u", kind ? "after" : "before", at);
	else if (kind < 5)
		(void)snprintf(w->fault, sizeof(w->fault), "errno%s:%s:%u", kind == 2 ? "-from" : "",
		    errors[dice(&w->state) % 8], at);
	else if (kind == 5)
		(void)snprintf(w->fault, sizeof(w->fault), "short:%u", at);
	else if (kind == 6)
		w->order.kill_after_us = 100 + dice(&w->state) % 6000;
	if (kind < 6) {
		w->order.fault = w->fault;
		w->order.bin = w->c->devbin;
	}
}

/* What may consume has shown what it printed whole. */
static void
note_shown(struct worker *w, unsigned agent)
{
	for (const char *at = w->answer.out; (at = strstr(at, ": whole")) != NULL; at++) {
		if (at - w->answer.out < 6 || at[-6] != 't')
			continue;
		unsigned long n = strtoul(at - 5, NULL, 10);
		if (n < TAGS)
			atomic_fetch_or(&model->tags[n].shown, 1u << agent);
	}
}

static void
run_as(struct worker *w, unsigned agent, const char *const *rest)
{
	const char *argv[24] = { "--as", agent_names[agent] };
	size_t n = 2;

	while (*rest && n < 23)
		argv[n++] = *rest++;
	plan(w);
	run_command(&w->order, argv, &w->answer);
	if (strcmp(argv[2], "read") == 0 || strcmp(argv[2], "drain") == 0 || strcmp(argv[2], "recv") == 0)
		note_shown(w, agent);
}

/* ---- Sending ---- */

static void
note_sent(struct worker *w, unsigned tag, unsigned to)
{
	static const enum outcome by_exit[] = { SENT_ACCEPTED, SENT_REFUSED, SENT_REFUSED, SENT_REFUSED, SENT_REFUSED,
		SENT_REFUSED, SENT_DOUBT };
	int code = w->answer.exit_code;

	model->tags[tag].to = to;
	atomic_store(&model->tags[tag].outcome, code >= 0 && code <= 6 ? by_exit[code] : SENT_KILLED);
	if (code == 0)
		atomic_fetch_add(&model->accepted, 1);
}

static void
send_some(struct worker *w)
{
	unsigned tag = atomic_fetch_add(&model->next, 1), to = 0, from = dice(&w->state) % AGENTS;
	char subject[16], body[40], key[24];
	const char *argv[20] = { "send" };
	size_t n = 1;

	if (tag >= TAGS)
		return;
	if (dice(&w->state) % 5 == 0)
		to = QUEUE_BIT;
	else
		for (unsigned most = 1 + (dice(&w->state) % 3 == 0) * 2; most > 0; most--)
			to |= 1u << dice(&w->state) % AGENTS;
	for (unsigned i = 0; i < AGENTS; i++)
		if (to & (1u << i))
			argv[n++] = agent_names[i];
	if (to & QUEUE_BIT)
		argv[n++] = "queue:work";
	(void)snprintf(subject, sizeof(subject), "t%05u", tag);
	(void)snprintf(body, sizeof(body), "t%05u: whole", tag);
	(void)snprintf(key, sizeof(key), "k%u", tag);
	argv[n++] = "-s";
	argv[n++] = subject;
	argv[n++] = "-m";
	argv[n++] = body;
	bool keyed = dice(&w->state) % 4 == 0;
	if (keyed) {
		argv[n++] = "--key";
		argv[n++] = key;
	}
	model->tags[tag].to = to;
	atomic_store(&model->tags[tag].outcome, SENT_KILLED); /* until it says more */
	run_as(w, from, argv);
	if (keyed && w->answer.exit_code != 0) /* what a key is for */
		run_as(w, from, argv);
	note_sent(w, tag, to);
	/* A first try in doubt or killed may have been accepted: then a refused second one proves nothing. */
	if (keyed && w->answer.exit_code != 0 && w->answer.exit_code != 6)
		atomic_store(&model->tags[tag].outcome, SENT_KILLED);
}

/* ---- Consuming ---- */

static void
field(const char *out, const char *name, char ret[64])
{
	char key[24];

	(void)snprintf(key, sizeof(key), "\"%s\":\"", name);
	const char *at = strstr(out, key);
	ret[0] = '\0';
	if (at)
		(void)snprintf(ret, 64, "%.*s", (int)strcspn(at + strlen(key), "\""), at + strlen(key));
}

static void
take_work(struct worker *w, unsigned agent)
{
	static const char *const ends[] = { "done", "done", "release", "extend" };
	char token[64];

	if (dice(&w->state) % 2)
		run_as(w, agent, ARGS("recv", "--lease", "1s", "--json"));
	else
		run_as(w, agent, ARGS("recv", "queue:work", "--lease", "1s", "--json"));
	field(w->answer.out, "token", token);
	if (token[0] && dice(&w->state) % 4)
		run_as(w, agent, ARGS(ends[dice(&w->state) % 4], token));
}

static void
read_one(struct worker *w, unsigned agent)
{
	char id[64];

	run_as(w, agent, ARGS("inbox", "--json"));
	field(w->answer.out, "id", id);
	if (id[0] == '\0')
		return;
	switch (dice(&w->state) % 4) {
	case 0:
		run_as(w, agent, ARGS("mark", "pinned", id));
		break;
	case 1:
		run_as(w, agent, ARGS("mark", "unpinned", id));
		break;
	default:
		run_as(w, agent, ARGS("read", id));
	}
}

/* From here on whatever is there may be read without having been shown: he says so. */
static void
consume_unseen(struct worker *w, unsigned agent)
{
	if (dice(&w->state) % 2)
		run_as(w, agent, ARGS("mark", "read", "--all"));
	else
		run_as(w, agent, ARGS("archive", "--all-read", "--include-unread"));
	unsigned upto = atomic_load(&model->next), was = atomic_load(&model->asked[agent]);
	while (was < upto && !atomic_compare_exchange_weak(&model->asked[agent], &was, upto))
		;
}

/* ---- Everything else that there is ---- */

static void
do_other(struct worker *w, unsigned agent)
{
	static const char *const some[][6] = { { "inbox" }, { "who" }, { "whoami" }, { "where" }, { "sent" },
		{ "stats" }, { "search", "whole" }, { "doctor" }, { "doctor", "--fix" }, { "dead" },
		{ "queue", "list" }, { "queue", "show", "work" }, { "channel", "list" }, { "group", "list" },
		{ "check" }, { "check", "--inject" }, { "lint" }, { "link", "list" }, { "carry" },
		{ "wait", "--timeout", "0s" }, { "archive", "--all-read" }, { "resolve", "bob" }, { "types", "list" },
		{ "describe" }, { "nudge", "bob", "hello" }, { "dnd", "on" }, { "dnd", "off" },
		{ "group", "create", "team", "alice", "bob" }, { "group", "add", "team", "carol" },
		{ "group", "remove", "team", "carol" }, { "channel", "create", "news" },
		{ "channel", "subscribe", "news" }, { "channel", "read", "news" },
		{ "send", "channel:news", "-m", "a post" }, { "escalate", "trouble", "-s", "low" },
		{ "register", "eve" }, { "register", "mallory" }, { "prune", "eve", "--force" },
		{ "prune", "mallory", "--force" }, { "takeover", "eve" }, { "handoff", "-m", "a note" },
		{ "mark", "unread", "--all" }, { "hook", "codex" }, { "inbox", "--all", "--json" } };
	size_t n = sizeof(some) / sizeof(some[0]);
	unsigned which = dice(&w->state) % n;

	run_as(w, agent, some[which]);
	if (strcmp(some[which][0], "takeover") == 0)
		run_as(w, agent, ARGS("takeover", agent_names[agent]));
}

void
work(struct chaos *c, unsigned number)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		_exit(1);
	w->c = c;
	w->number = number;
	w->state = c->seed * 31 + number;
	while (!atomic_load(&model->over) && atomic_load(&model->next) < TAGS) {
		unsigned agent = dice(&w->state) % AGENTS;
		switch (dice(&w->state) % 12) {
		case 0:
		case 1:
		case 2:
		case 3:
			send_some(w);
			break;
		case 4:
			run_as(w, agent, ARGS("drain"));
			break;
		case 5:
			run_as(w, agent, ARGS("drain", "--json", "--limit", "3"));
			break;
		case 6:
		case 7:
			take_work(w, agent);
			break;
		case 8:
			read_one(w, agent);
			break;
		case 9:
			if (dice(&w->state) % 8 == 0)
				consume_unseen(w, agent);
			break;
		default:
			do_other(w, agent);
		}
	}
	free(w);
}
