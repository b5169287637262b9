/* SPDX-License-Identifier: MIT */
/* peak.c - peak FILE COMMAND...: writes the most memory that the command had, in KB. A program of its own, static and
 * small: a child starts with the peak of the process that forked it. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 3)
		return 2;
	pid = fork();
	if (pid == 0) {
		(void)execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 1;
	FILE *out = fopen(argv[1], "w");
	if (!out || fprintf(out, "%ld\n", usage.ru_maxrss) < 0 || fclose(out) != 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
