/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a process that looks for new mail and writes a byte when some came. It consumes nothing and marks nothing.
 *
 * New is what was not unread at the last look, by id: a wait alone would end at once while older mail is unread. The
 * wait therefore asks only for mail younger than all that is known. Dates are whole seconds, and a slow sender delivers
 * behind the others: such mail is found by the count of what is unread, looked at every two seconds (more often right
 * after mail came), and at the latest by a full look once a minute.
 *
 * Who we are may change meanwhile (a session is bound late, a name is taken over): it is asked again each minute, and
 * while nobody is here, every two seconds.
 */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/mcp/mcp.h"

#define GLANCE_MS 2000
#define BUSY_GLANCE_MS 200
#define FULL_LOOK_MS (60 * 1000)
#define CROWDED_PAUSE_MS 500 /* what woke us is nothing that we can see */

struct look {
	struct mr_names known, now;
	int64_t newest_ms;
	bool fresh;
};

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	struct look *k = ctx;

	if (msg->date_ms > k->newest_ms)
		k->newest_ms = msg->date_ms;
	if (!names_has(&k->known, msg->id))
		k->fresh = true;
	return names_add(&k->now, str_of(msg->id));
}

/* True: something is unread that was not before. */
static bool
look_for_new(struct cli *cli, struct look *k)
{
	struct mr_scan scan = { .filter = { .unread = true, .no_control = true } };
	struct mr_error ignored = { 0 };

	k->fresh = false;
	if (mr_scan(cli->room, cli->self.agent, &scan, note_unread, k, &ignored) != MR_OK) {
		mr_names_done(&k->now);
		return false;
	}
	mr_names_done(&k->known);
	k->known = k->now;
	k->now = (struct mr_names){ 0 };
	return k->fresh;
}

static void
tell(int fd)
{
	if (sys_write_all(fd, "m", 1) < 0)
		_exit(EXIT_DONE);
}

static int64_t
glance_ms(const struct look *k)
{
	return clock_now_ms() - k->newest_ms < 2 * GLANCE_MS ? BUSY_GLANCE_MS : GLANCE_MS;
}

/* For a minute; `k` knows what is unread. */
static void
watch_a_while(struct cli *cli, struct look *k, int fd)
{
	int64_t end_ms = clock_boot_ms() + FULL_LOOK_MS, brought_ms = 0;
	struct mr_counts before = { 0 };
	struct mr_error ignored = { 0 };

	(void)mr_count(cli->room, cli->self.agent, &before, &ignored);
	while (clock_boot_ms() < end_ms) {
		struct mr_filter younger = { .since_ms = k->newest_ms + 1 };
		struct mr_counts counts = { 0 };

		if (clock_boot_ms() - brought_ms >= GLANCE_MS) { /* mail from linked rooms is mail */
			brought_ms = clock_boot_ms();
			cli_bring(cli, 0);
		}
		enum mr_rc rc = mr_wait(cli->room, cli->self.agent, &younger, glance_ms(k), &ignored);

		if (rc != MR_OK && rc != MR_EMPTY)
			return;
		if (mr_count(cli->room, cli->self.agent, &counts, &ignored) != MR_OK)
			return;
		if (rc == MR_EMPTY && counts.unread == before.unread)
			continue;
		before = counts;
		if (look_for_new(cli, k))
			tell(fd);
		else if (rc == MR_OK)
			(void)poll(NULL, 0, CROWDED_PAUSE_MS);
	}
}

static bool
enter(struct cli *cli)
{
	struct mr_error ignored = { 0 };

	if (cli_open_room(cli, &ignored) != MR_OK || (cli->second_session && !cli->as_option))
		return false;
	return mr_self_resolve(cli->room, &cli->env, &cli->self, &ignored) == MR_OK;
}

static void
hear_nothing(void *ctx, bool error, const char *message, const char *hint)
{
	(void)ctx;
	(void)error;
	(void)message;
	(void)hint;
}

_Noreturn void
watch_run(struct mcp_server *s, const struct mcp_request *r, int fd)
{
	struct cli_sink sink = { .say = hear_nothing };
	struct look k = { 0 };
	char agent[MR_ADDRESS_MAX + 1] = "";
	char *session = request_session(r);

	worker_detach(s);
	worker_follow(fd);
	for (;;) {
		struct cli cli = {
			.sink = &sink, .room_option = s->room, .as_option = s->as, .caller_session = session
		};

		if (enter(&cli)) {
			bool same = strcmp(agent, cli.self.agent) == 0, fresh = look_for_new(&cli, &k);

			/* The first look is what the client can see for itself. */
			if (same && fresh)
				tell(fd);
			(void)snprintf(agent, sizeof(agent), "%s", cli.self.agent);
			watch_a_while(&cli, &k, fd);
		} else {
			(void)poll(NULL, 0, GLANCE_MS);
		}
		cli_done(&cli);
	}
}
