/* SPDX-License-Identifier: MIT */
/*
 * full.c - the only place where one command becomes another program: mailroom-full, which has more libraries
 * linked in, or mailroom-serve, which also has libmicrohttpd. It is looked for beside the running program and nowhere
 * else; neither PATH nor the environment nor a room can name it. A program that has the libraries never comes here
 * twice.
 */
#include <limits.h>
#include <unistd.h>

#include "base/full.h"
#include "base/sys.h"
#include "helptext.h"

/* A file of the owner of the command, or of root, that nobody may write who could not write the command itself. */
static bool
is_ours(const char *path, const struct stat *self)
{
	struct stat st;

	if (sys_stat_target(path, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & S_IWOTH) != 0)
		return false;
	bool group = (st.st_mode & S_IWGRP) == 0 || (st.st_gid == self->st_gid && (self->st_mode & S_IWGRP) != 0);

	return group && (st.st_uid == self->st_uid || st.st_uid == 0);
}

void
cli_hand_over(struct cli *cli, const char *program)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	static const char *const places[] = { "/../libexec/mailroom/", "/" /* a build */ };
	struct stat st;

	if (cli->sink || !cli->command_line)
		return;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0 || sys_stat_target("/proc/self/exe", &st) != 0)
		return;
	self[len] = '\0';
	char *slash = strrchr(self, '/');

	if (!slash)
		return;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		text_join(path, sizeof(path), self, places[i], program, NULL);
		if (is_ours(path, &st))
			(void)execv(path, cli->command_line); /* returns if it cannot be run: then without it */
	}
}

void
cli_hand_over_to_full(struct cli *cli)
{
	if (!is_full())
		cli_hand_over(cli, "mailroom-full");
}

void
cli_hand_over_for_room(struct cli *cli, const char *spec)
{
	if (str_starts(str_of(spec), "postgres:") || str_starts(str_of(spec), "postgresql:"))
		cli_hand_over_to_full(cli); /* where there is none, opening the room says so */
}
