/* SPDX-License-Identifier: MIT */
/*
 * node.c - our command and a Node program with the real proper-lockfile at one team inbox. Node cannot be stepped, so
 * it is a process that sends one message for each line it is given, and is let go for a while:
 * either our command stands before its n-th call while Node sends (and waits for our lock), or Node is stopped by a
 * signal at some moment of its send while our command runs (and waits for its lock).
 */
#include "race.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LET_GO_MS 12 /* a send of Node takes two or three when nobody is in its way */

struct node {
	pid_t pid;
	int in, out;
	char base[64], inbox[120], spec[120];
	unsigned asked;
};

static const char *
modules(void)
{
	return TEST_DATA "/../../build/node/installed";
}

static bool
node_start(struct node *n)
{
	int to[2], from[2];

	if (access(modules(), F_OK) < 0 || pipe(to) < 0 || pipe(from) < 0)
		return false;
	n->pid = fork();
	if (n->pid == 0) {
		if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0)
			_exit(126);
		for (int fd = 3; fd < 64; fd++)
			(void)close(fd);
		(void)execlp(
		    "node", "node", TEST_DATA "/../../tests/peers/teams-peer.mjs", "bench", n->inbox, (char *)NULL);
		_exit(127);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	n->in = to[1];
	n->out = from[0];
	return n->pid > 0;
}

static void
node_ask(struct node *n)
{
	n->asked++;
	if (write(n->in, "\n", 1) != 1)
		(void)fprintf(stderr, "# node does not listen\n");
}

/* True: it has sent it. */
static bool
node_answers(struct node *n, int ms)
{
	struct pollfd fd = { .fd = n->out, .events = POLLIN };
	struct timespec t0, t1;
	char line[64];

	(void)clock_gettime(CLOCK_MONOTONIC, &t0);
	for (int left = ms; left > 0;) {
		int got = poll(&fd, 1, left);
		if (got > 0)
			return read(n->out, line, sizeof(line)) > 0;
		if (got == 0)
			return false;
		(void)clock_gettime(CLOCK_MONOTONIC, &t1);
		left = ms - (int)((t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000);
	}
	return false;
}

static bool
count_message(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(unsigned *)ctx;
	return true;
}

static unsigned
count_inbox(const struct node *n)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	struct mr_scan scan = { 0 };
	unsigned found = 0;

	if (mr_room_open(n->spec, &(struct mr_room_options){ .state_dir = n->base }, &room, &err) != MR_OK ||
	    mr_scan(room, "target", &scan, count_message, &found, &err) != MR_OK)
		(void)printf("# %s\n", err.message);
	mr_room_close(room);
	return found;
}

static void
nap_us(unsigned us)
{
	struct timespec left = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static bool
start_ours(struct node *n, const char *bin, struct actor *a)
{
	static char out[100];

	(void)snprintf(out, sizeof(out), "%s/out", n->base);
	a->out = out;
	return actor_start(a,
	    (const char *[]){ bin, "--room", n->spec, "--as", "ours", "send", "target", "-m", "ours: whole", NULL },
	    n->base);
}

/* Ours stands before its step-th call, Node sends. */
static bool
ours_stands(struct node *n, const char *bin, unsigned step, bool *ret_beyond, struct actor *a)
{
	if (!start_ours(n, bin, a))
		return false;
	actors_patience(true);
	for (unsigned i = 0; i < step && !a->ended; i++)
		if (actor_step(a) != REACH_STEP)
			break;
	*ret_beyond = a->ended;
	actors_patience(false);
	node_ask(n);
	bool answered = node_answers(n, LET_GO_MS);
	actors_patience(true);
	bool ended = actors_finish(a, NULL);
	actors_patience(false);
	return ended && (answered || node_answers(n, 5000));
}

/* Node stands after so many microseconds of its send, ours runs. */
static bool
node_stands(struct node *n, const char *bin, unsigned us, struct actor *a)
{
	node_ask(n);
	nap_us(us);
	(void)kill(n->pid, SIGSTOP);
	bool started = start_ours(n, bin, a);
	actors_patience(true);
	for (unsigned i = 0, blocked = 0; started && i < 400 && blocked < 3 && !a->ended; i++)
		blocked += actor_step(a) == REACH_BLOCKED;
	actors_patience(false);
	(void)kill(n->pid, SIGCONT);
	actors_patience(true);
	bool ended = started && actors_finish(a, NULL);
	actors_patience(false);
	return ended && node_answers(n, 5000);
}

static unsigned
race_rounds(struct node *n, const char *bin, unsigned rounds, uint64_t *dice, unsigned *ret_ran)
{
	unsigned accepted = 0, step = 1, bad = 0;
	struct actor a = { 0 };

	for (unsigned i = 0; i < rounds; i++, ++*ret_ran) {
		bool beyond = false;
		bool went = i % 2 == 0 ? ours_stands(n, bin, step++, &beyond, &a)
				       : node_stands(n, bin, race_dice(dice) % 4000, &a);
		if (beyond)
			step = 1;
		accepted += actor_exit(&a) == 0;
		unsigned have = count_inbox(n);
		if (went && actor_exit(&a) == 0 && have == accepted + n->asked)
			continue;
		(void)printf("# VIOLATION teams lock x Node lock: round %u (%s): exit %d, %u messages of %u + %u%s\n",
		    i, i % 2 == 0 ? "ours stands" : "Node stands", actor_exit(&a), have, accepted, n->asked,
		    went ? "" : ", and one of them does not come to its end");
		bad++;
		break; /* the sums are wrong from here on */
	}
	return bad;
}

unsigned
race_node(const char *bin, unsigned rounds, uint64_t seed, char *ret_row, size_t size)
{
	struct node n = { .in = -1, .out = -1 };
	unsigned ran = 0, bad = 1;
	char dir[100];

	(void)snprintf(n.base, sizeof(n.base), "/tmp/mailroom-race-node.XXXXXX");
	if (!mkdtemp(n.base))
		return 1;
	for (const char *const *part = (const char *const[]){ "teams", "teams/t", "teams/t/inboxes", NULL }; *part;
	     part++) {
		(void)snprintf(dir, sizeof(dir), "%s/%s", n.base, *part);
		(void)mkdir(dir, 0700);
	}
	(void)snprintf(n.spec, sizeof(n.spec), "teams:%s/teams/t", n.base);
	(void)snprintf(n.inbox, sizeof(n.inbox), "%s/target.json", dir);
	if (node_start(&n)) {
		node_ask(&n); /* the first makes the file, and Node is warm then */
		if (node_answers(&n, 10000))
			bad = race_rounds(&n, bin, rounds, &seed, &ran);
		(void)close(n.in);
		(void)kill(n.pid, SIGKILL);
		(void)waitpid(n.pid, NULL, 0);
		(void)snprintf(ret_row, size, "%6u schedules, %u violations", ran, bad);
	} else {
		bad = 0;
		(void)snprintf(ret_row, size, "skipped: no proper-lockfile in build/node (make deps-test)");
	}
	world_remove(n.base);
	return bad;
}
