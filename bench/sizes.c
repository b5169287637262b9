/* SPDX-License-Identifier: MIT */
/* sizes.c - a send into and a look at a mailbox that holds 1, 1,000, 10,000, 100,000 messages; a send in a room with 2,
 * 50, 1,000 agents. */
#include "size.h"
#include <stdio.h>
#include <stdlib.h>

#define SIZE_ROUNDS 5
#define SIZE_OPS 3
#define SLOW_US 100000 /* once a round is enough then */

static const long sizes[] = { 1, 1000, 10000, 100000 };
static const struct grower *const growers[] = { &mailroom_grows, &mailroom_unread_grows, &library_grows,
	&mdeliver_grows, &sqlite_grows, &sqlite_command_grows, &shell_grows, &teams_grows };

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define GROWERS (sizeof(growers) / sizeof(growers[0]))

static double
median_of(struct bench *b, double (*act)(struct bench *b))
{
	double took[SIZE_OPS];
	size_t n = 0;

	do {
		sync_disk();
		took[n++] = act(b);
	} while (n < SIZE_OPS && took[0] < SLOW_US);
	return median(took, n);
}

static void
record_point(const struct grower *g, const char *what, long held, double *took)
{
	FILE *out = record_begin("sizes");

	record_text(out, "name", g->name);
	record_text(out, "how", g->how);
	record_text(out, "what", what);
	record_text(out, "look_what", g->look_what ? g->look_what : "");
	record_number(out, "held", (double)held);
	record_number(out, "us", median(took, SIZE_ROUNDS));
	record_number(out, "low_us", took[0]);
	record_number(out, "high_us", took[SIZE_ROUNDS - 1]);
	record_end(out);
	(void)printf("%-26s %-8s %-5s at %6ld %10.0f us\n", g->name, g->how, what, held, took[SIZE_ROUNDS / 2]);
}

static void
measure_size(struct bench *b, long held, const bool here[GROWERS])
{
	static double sends[GROWERS][SIZE_ROUNDS], looks[GROWERS][SIZE_ROUNDS];

	for (int round = -1; round < SIZE_ROUNDS; round++) /* the first is to warm up */
		for (size_t k = 0; k < GROWERS; k++) {
			size_t at = round < 0 ? 0 : (size_t)round, i = (k + at) % GROWERS; /* no one is always first */
			const struct grower *g = growers[i];

			if (!here[i] || held > g->most)
				continue;
			if (g->send)
				sends[i][at] = median_of(b, g->send);
			if (g->look)
				looks[i][at] = median_of(b, g->look);
		}
	for (size_t i = 0; i < GROWERS; i++) {
		if (!here[i] || held > growers[i]->most)
			continue;
		if (growers[i]->send)
			record_point(growers[i], "send", held, sends[i]);
		if (growers[i]->look)
			record_point(growers[i], "look", held, looks[i]);
	}
}

/* ---- Agents ---- */

struct town {
	unsigned agents;
	struct command *command;
	double took[SIZE_ROUNDS];
};

static void
make_town(struct bench *b, struct town *t)
{
	struct mr_init_options options = { .name = "agents" };
	struct mr_error err = { 0 };
	struct bench town = *b;
	char *where = path_of("%s/agents-%u", b->work, t->agents), *path = NULL;

	make_folder(where);
	check(mr_room_init(where, where, &options, &path, &err), &err, "init");
	check(mr_room_open(path, NULL, &town.room, &err), &err, "open");
	for (unsigned i = 0; i < t->agents; i++) {
		char *name = path_of("agent%04u", i);

		register_agent(&town, name);
		free(name);
	}
	mr_room_close(town.room);
	const char *const argv[] = { b->command, "--room", path, "--as", "agent0000", "send", "agent0001", "-m",
		b->body, NULL };
	t->command = command_new(argv, NULL);
	t->command->owned[0] = path;
	free(where);
}

static void
measure_agents(struct bench *b)
{
	static struct town towns[] = { { .agents = 2 }, { .agents = 50 }, { .agents = 1000 } };
	const size_t n = sizeof(towns) / sizeof(towns[0]);

	for (size_t i = 0; i < n; i++)
		make_town(b, &towns[i]);
	for (int round = -1; round < SIZE_ROUNDS; round++)
		for (size_t i = 0; i < n; i++) {
			double took[SIZE_OPS * 4];

			for (size_t k = 0; k < SIZE_OPS * 4; k++) {
				sync_disk();
				took[k] = command_send(b, towns[i].command);
			}
			towns[i].took[round < 0 ? 0 : round] = median(took, SIZE_OPS * 4);
		}
	for (size_t i = 0; i < n; i++) {
		FILE *out = record_begin("agents");

		record_number(out, "agents", towns[i].agents);
		record_number(out, "us", median(towns[i].took, SIZE_ROUNDS));
		record_number(out, "low_us", towns[i].took[0]);
		record_number(out, "high_us", towns[i].took[SIZE_ROUNDS - 1]);
		record_end(out);
		(void)printf("send with %4u agents %8.0f us\n", towns[i].agents, towns[i].took[SIZE_ROUNDS / 2]);
		command_close(towns[i].command);
	}
}

void
rows_sizes(struct bench *b)
{
	bool here[GROWERS];
	long held = 0;

	for (size_t i = 0; i < GROWERS; i++)
		here[i] = growers[i]->start(b);
	for (size_t s = 0; s < SIZES; s++) {
		for (size_t i = 0; i < GROWERS; i++)
			if (here[i] && sizes[s] <= growers[i]->most)
				growers[i]->grow(b, held, sizes[s]);
		held = sizes[s];
		measure_size(b, held, here);
	}
	for (size_t i = 0; i < GROWERS; i++)
		if (here[i] && growers[i]->stop)
			growers[i]->stop();
	measure_agents(b);
}
