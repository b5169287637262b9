/* SPDX-License-Identifier: MIT */
/*
 * carry_first.c - before a command looks for mail, a carrier fetches what waits in linked rooms.
 *
 * The carrier is a process of its own. Another room may be slow (a team's lock is waited for up to half a minute), and
 * a look is to show what is here: so the command waits a moment for its carrier, then goes on without it. What it
 * brings later is there at the next look, and ends a wait. Any number of carriers may run (office/link/carry.c), but
 * none for long: where another room hangs, each look would leave one more.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define LOOK_MS 2
#define CARRIER_LIMIT_S 60 /* twice as long as a lock of another room is waited for */

static pid_t carrier; /* of this process, and still at work; 0: none */

/* The harness waits until nobody holds the hook's pipes, so none of them may stay open here; nor are locks and signal
 * handlers of the command ours. Killed, it is completed by the next carrier. */
static void
carry(struct cli *cli)
{
	static const int signals[] = { SIGALRM, SIGTERM, SIGINT, SIGHUP, SIGIO };
	mr_auto(free_ptr) char *room = strdup(mr_room_spec(cli->room));
	char *argv[] = { (char[]){ "mailroom" }, (char[]){ "--room" }, room, (char[]){ "carry" }, NULL };
	const struct cli_call call = { .command_line = argv };

	for (int fd = 0; fd < 3; fd++) {
		(void)close(fd);
		if (sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0) != fd)
			_exit(EXIT_FAILED);
	}
	sys_close_from(3);
	(void)setsid();
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		(void)signal(signals[i], SIG_DFL);
	(void)alarm(CARRIER_LIMIT_S);
	_exit(room ? cli_call(&call, 4, argv) : EXIT_FAILED);
}

static bool
is_busy(void)
{
	if (carrier > 0 && waitpid(carrier, NULL, WNOHANG) != 0)
		carrier = 0;
	return carrier > 0;
}

void
cli_carry_first(struct cli *cli, int64_t patience_ms)
{
	int64_t end_ms = clock_boot_ms() + patience_ms;

	if (!is_busy() && cli->room && mr_room_has(cli->room, MR_HAS_LINKS)) {
		carrier = fork();
		if (carrier == 0)
			carry(cli);
	}
	while (is_busy() && clock_boot_ms() < end_ms)
		(void)poll(NULL, 0, LOOK_MS);
}
