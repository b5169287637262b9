/* SPDX-License-Identifier: MIT */
/*
 * chaos.c - chaos BIN DEVBIN SECONDS SEED [NAME...]: lets workers loose in a room, for SECONDS in each of the
 * surroundings (or those whose names begin so), then the storms. Prints a line each, and what must be given to see it
 * again.
 */
#include "chaos.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct model *model;
static unsigned rows, bad_rows;

static void
make_room(struct chaos *c)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	struct order order = { .bin = c->bin, .dir = c->dir };

	if (!answer)
		exit(1);
	run_command(&order, (const char *[]){ "init", "--name", "town", ".", NULL }, answer);
	for (unsigned i = 0; i < AGENTS; i++)
		run_command(&order, (const char *[]){ "register", agent_names[i], NULL }, answer);
	run_command(
	    &order, (const char *[]){ "--as", "alice", "queue", "create", "work", "--attempts", "100", NULL }, answer);
	if (answer->exit_code != 0) {
		(void)fprintf(stderr, "chaos: no room in '%s'\n", c->dir);
		exit(1);
	}
	free(answer);
}

static void
begin(struct chaos *c)
{
	memset(model, 0, sizeof(*model));
	atomic_store(&model->next, 1);
	(void)snprintf(
	    c->dir, sizeof(c->dir), "%s/mailroom-chaos.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(c->dir))
		exit(1);
	(void)setenv("HOME", c->dir, 1);
	(void)setenv("XDG_STATE_HOME", c->dir, 1);
}

static void
end(struct chaos *c, const char *name, const char *row, unsigned bad)
{
	rows++;
	bad_rows += bad > 0;
	(void)printf("chaos: %-24s %s\n", name, row);
	if (bad > 0)
		(void)printf("chaos:   seed %llu\n", (unsigned long long)c->seed);
	(void)fflush(stdout);
	around_leave(c);
	remove_tree(c->dir);
}

/* The next command completes what was left behind; leases end, too. */
static void
settle(struct chaos *c)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	struct order order = { .bin = c->bin, .dir = c->dir };

	for (unsigned turn = 0; answer && turn < 2; turn++) {
		for (unsigned i = 0; i < AGENTS; i++)
			run_command(&order, (const char *[]){ "--as", agent_names[i], "inbox", NULL }, answer);
		(void)usleep(20000);
	}
	free(answer);
}

static unsigned
let_loose(struct chaos *c, double seconds, char *ret_row, size_t size)
{
	pid_t pids[WORKERS];
	uint64_t state = c->seed;
	double until = now_s() + seconds;
	unsigned skipped = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = around_worker(c, i, work);
	while (now_s() < until && atomic_load(&model->next) < TAGS) {
		(void)usleep(30000);
		around_disturb(c, &state);
	}
	atomic_store(&model->over, true);
	for (unsigned i = 0; i < WORKERS; i++) {
		int status = 0;
		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			;
		skipped += WIFEXITED(status) && WEXITSTATUS(status) == 77;
	}
	around_calm(c);
	settle(c);
	unsigned bad = count_all(c);
	unsigned commands = atomic_load(&model->commands);
	(void)snprintf(ret_row, size, "%u commands, %u killed, %u failed, %u sends, %u accepted: %u violations%s",
	    commands, atomic_load(&model->killed), atomic_load(&model->failed), atomic_load(&model->next) - 1,
	    atomic_load(&model->accepted), bad, skipped ? " (NOT POSSIBLE HERE)" : "");
	return bad + (skipped == 0 && commands < 20 + AGENTS);
}

static bool
is_asked_for(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	return false;
}

static void
storms(struct chaos *c, unsigned messages, double seconds, char **names)
{
	static const char *const how[] = { "drain", "recv", "mcp", "hook" };
	char row[240], name[32];

	c->around = AROUND_PLAIN;
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(name, sizeof(name), "storm on %s", how[i]);
		if (!is_asked_for(name, names))
			continue;
		begin(c);
		make_room(c);
		/* one by one takes ten times as long: all of them only when there is time */
		unsigned n = i > 0 && seconds < 20 ? messages / 5 : messages;
		unsigned bad = storm(c, how[i], n, row, sizeof(row));
		end(c, name, row, bad);
	}
}

int
main(int argc, char **argv)
{
	if (argc < 5) {
		(void)fprintf(stderr, "usage: chaos BIN DEVBIN SECONDS SEED [NAME...]\n");
		return 2;
	}
	struct chaos c = { .bin = argv[1], .devbin = argv[2], .seed = strtoull(argv[4], NULL, 10), .faults = true };
	const char *messages = getenv("STORM");
	char row[240];

	model = mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (model == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < AROUND_N; i++) {
		c.around = (enum surroundings)i;
		if (!is_asked_for(around_names[i], argv + 5))
			continue;
		begin(&c);
		if (!around_enter(&c)) {
			remove_tree(c.dir);
			continue;
		}
		make_room(&c);
		unsigned bad = let_loose(&c, strtod(argv[3], NULL), row, sizeof(row));
		end(&c, around_names[i], row, bad);
	}
	storms(&c, messages ? (unsigned)strtoul(messages, NULL, 10) : 1000, strtod(argv[3], NULL), argv + 5);
	(void)printf("chaos: seed %llu: %u passed, %u failed\n", (unsigned long long)c.seed, rows - bad_rows, bad_rows);
	return bad_rows == 0 && rows > 0 ? 0 : 1;
}
