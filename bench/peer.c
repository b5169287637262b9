/* SPDX-License-Identifier: MIT */
/* peer.c - another program that sends once for every line it gets, and answers with the microseconds it took. Its start
 * is not counted. */
#include "bench.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void
peer_start(struct peer *p, const char *const *argv)
{
	posix_spawn_file_actions_t files;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("cannot make a pipe");
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_adddup2(&files, in[0], 0);
	(void)posix_spawn_file_actions_adddup2(&files, out[1], 1);
	if (posix_spawnp(&p->pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ) != 0)
		die("cannot start '%s'", argv[0]);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)close(in[0]);
	(void)close(out[1]);
	p->to = in[1];
	p->from = fdopen(out[0], "r");
	p->name = argv[0];
	if (!p->from)
		die("out of memory");
}

double
peer_send(struct peer *p)
{
	char line[64];

	if (write(p->to, "\n", 1) != 1 || !fgets(line, sizeof(line), p->from))
		die("'%s' has ended", p->name);
	return strtod(line, NULL);
}

double
peer_ask(struct peer *p, const char *line)
{
	char answer[256];
	size_t len = strlen(line);
	double began = now_us();

	if (write(p->to, line, len) != (ssize_t)len || !fgets(answer, sizeof(answer), p->from))
		die("'%s' has ended", p->name);
	return now_us() - began;
}

void
peer_stop(struct peer *p)
{
	(void)close(p->to);
	(void)waitpid(p->pid, NULL, 0);
	(void)fclose(p->from);
}
