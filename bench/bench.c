/* SPDX-License-Identifier: MIT */
/* bench.c - options, the room and its agents, the order of the rows. Started by bench/run. */
#include "bench.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
die(const char *fmt, ...)
{
	int reason = errno;
	va_list args;

	va_start(args, fmt);
	(void)fputs("bench: ", stderr);
	(void)vfprintf(stderr, fmt, args);
	(void)fprintf(stderr, " (%s)\n", strerror(reason));
	va_end(args);
	exit(1);
}

char *
path_of(const char *fmt, ...)
{
	char *path = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&path, fmt, args) < 0)
		die("out of memory");
	va_end(args);
	return path;
}

void
make_folder(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		die("cannot make '%s'", path);
}

void
check(enum mr_rc rc, const struct mr_error *err, const char *what)
{
	if (rc == MR_OK)
		return;
	(void)fprintf(stderr, "bench: %s: %s%s%s\n", what, err->message, err->hint[0] ? "; " : "", err->hint);
	exit(1);
}

struct mr_self
self_of(struct bench *b, const char *agent)
{
	struct mr_error err = { 0 };
	struct mr_self self = { 0 };

	check(mr_self_named(b->room, agent, &self, &err), &err, agent);
	return self;
}

void
register_agent(struct bench *b, const char *name)
{
	struct mr_env nobody = { .as = name, .worktree = b->work };
	struct mr_registration registration = { 0 };
	struct mr_error err = { 0 };

	check(mr_register(b->room, name, &nobody, NULL, &registration, &err), &err, "register");
}

static void
make_room(struct bench *b)
{
	char *config =
	    path_of("%s/.config/mailroom", b->work); /* where the command, whose home it is, looks for trust */
	struct mr_init_options options = { .name = "bench", .sync = "full", .config_dir = config };
	struct mr_error err = { 0 };
	char *path = NULL;

	check(mr_room_init(b->work, b->work, &options, &path, &err), &err, "init");
	check(mr_room_open(path, NULL, &b->room, &err), &err, "open");
	free(path);
	free(config);
	register_agent(b, "alice");
	register_agent(b, "bob");
	for (size_t i = 0; i < sizeof(b->body) - 1; i++)
		b->body[i] = i % 64 == 63 ? '\n' : "etaoin shrdlu"[i % 13];
}

static void
take_options(struct bench *b, int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "d:c:e:f:j:n:p:r:")) != -1;) {
		switch (opt) {
		case 'd':
			b->work = optarg;
			break;
		case 'c':
			b->command = optarg;
			break;
		case 'e':
			b->empty = optarg;
			break;
		case 'f':
			b->file_system = optarg;
			break;
		case 'j':
			b->json = optarg;
			break;
		case 'p':
			b->top = optarg;
			break;
		case 'r':
			b->parts = optarg;
			break;
		case 'n':
			b->archived = atol(optarg);
			break;
		default:
			exit(2);
		}
	}
	if (!b->work || !b->command || !b->empty || !b->file_system || !b->json || !b->top)
		die("use bench/run");
}

static void
rows_budget(struct bench *b)
{
	rows_send(b);
	rows_wake(b);
	rows_foreign(b);
	rows_fan_out(b);
	rows_check(b);
	rows_hook(b);
	rows_inbox(b);
	rows_claim(b);
	rows_batch(b);
	report_rows(b);
}

struct part {
	const char *name;
	void (*measure)(struct bench *b);
	bool own_folder, own_room; /* without: in the first one */
};

static void
measure(struct bench *b, const struct part *part)
{
	const char *home = b->work;
	struct mr_room *room = b->room;
	char *own = path_of("%s-%s", home, part->name); /* beside it: a room within a room makes commands warn */
	double began = now_us();

	if (part->own_folder) {
		b->work = own;
		if ((mkdir(own, 0711) < 0 && errno != EEXIST) || chdir(own) < 0)
			die("cannot make '%s'", own);
	}
	if (part->own_room)
		make_room(b);
	part->measure(b);
	if (part->own_room)
		mr_room_close(b->room);
	if (chdir(home) < 0)
		die("cannot go back to '%s'", home);
	b->work = home;
	b->room = room;
	free(own);
	(void)printf("(%s: %.0f s)\n\n", part->name, (now_us() - began) / 1e6);
}

int
main(int argc, char **argv)
{
	static struct bench b = { .archived = 200000 };
	static const struct part parts[] = { { "budget", rows_budget, false, false },
		{ "costs", rows_costs, true, true }, { "rivals", rows_rivals, true, false },
		{ "sizes", rows_sizes, true, false }, { "parallel", rows_parallel, true, false },
		{ "growth", rows_growth, true, false } };

	take_options(&b, argc, argv);
	if (chdir(b.work) < 0)
		die("cannot go to '%s'", b.work);
	b.busy = busy_share();
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	make_room(&b);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!b.parts || strstr(b.parts, parts[i].name))
			measure(&b, &parts[i]);
	mr_room_close(b.room);
	records_write(&b);
	return b.missed ? 3 : 0;
}
