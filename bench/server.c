/* SPDX-License-Identifier: MIT */
/* server.c - a server that belongs to the bench alone: its data on the measured disk, its socket in its own folder or
 * on the loopback, its end by its pid. */
#include "rival.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVERS_MAX 8
#define CONNECT_TRIES 500
#define STOP_TRIES 1000

static struct running {
	const char *folder;
	pid_t pid;
	int end_with;
} servers[SERVERS_MAX];

bool
is_here(const char *program)
{
	static const char *const folders[] = { "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin" };
	bool here = false;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !here; i++) {
		char *path = path_of("%s/%s", folders[i], program);

		here = access(path, X_OK) == 0;
		free(path);
	}
	return here;
}

static void
pause_10ms(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Between fork and exec. PostgreSQL refuses to run as root. */
static _Noreturn void
become(const struct running *s, const char *const *argv, bool as_nobody)
{
	struct passwd *nobody = as_nobody && geteuid() == 0 ? getpwnam("nobody") : NULL;
	int out = open("bench.log", O_WRONLY | O_CREAT | O_APPEND, 0644), in = open("/dev/null", O_RDONLY);

	if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(126);
	if (nobody && (setgroups(0, NULL) < 0 || setgid(nobody->pw_gid) < 0 || setuid(nobody->pw_uid) < 0))
		_exit(126);
	/* after the change of user, which would take it back */
	if (prctl(PR_SET_PDEATHSIG, s->end_with) < 0)
		_exit(126);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

void
server_start(const char *folder, const char *const *argv, bool as_nobody, int end_with)
{
	struct running *s = servers;

	while (s < servers + SERVERS_MAX && s->pid > 0)
		s++;
	if (s == servers + SERVERS_MAX)
		die("too many servers");
	*s = (struct running){ .folder = folder, .end_with = end_with };
	s->pid = fork();
	if (s->pid < 0)
		die("cannot fork");
	if (s->pid == 0) {
		if (chdir(folder) < 0)
			_exit(126);
		become(s, argv, as_nobody);
	}
}

pid_t
server_pid(const char *folder)
{
	for (struct running *s = servers; s < servers + SERVERS_MAX; s++)
		if (s->pid > 0 && strcmp(s->folder, folder) == 0)
			return s->pid;
	return 0;
}

static bool
has_ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) != 0;
}

void
server_stop(const char *folder)
{
	for (struct running *s = servers; s < servers + SERVERS_MAX; s++) {
		if (s->pid <= 0 || strcmp(s->folder, folder) != 0)
			continue;
		bool ended = false;

		(void)kill(s->pid, s->end_with);
		for (int i = 0; i < STOP_TRIES && !(ended = has_ended(s->pid)); i++)
			pause_10ms();
		if (!ended) {
			(void)kill(s->pid, SIGKILL);
			(void)waitpid(s->pid, NULL, 0);
		}
		s->pid = 0;
	}
}

/* ---- Speaking to it ---- */

static int
connect_patiently(int family, const struct sockaddr *address, socklen_t len)
{
	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			die("cannot make a socket");
		if (connect(fd, address, len) == 0)
			return fd;
		(void)close(fd);
		pause_10ms(); /* it may still be starting */
	}
	die("a server does not answer");
}

int
connect_unix(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		die("'%s' is too long for a socket", path);
	(void)strcpy(address.sun_path, path);
	return connect_patiently(AF_UNIX, (const struct sockaddr *)&address, sizeof(address));
}

int
connect_loopback(unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connect_patiently(AF_INET, (const struct sockaddr *)&address, sizeof(address));
}

unsigned
free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		die("no port is free");
	(void)close(fd);
	return ntohs(address.sin_port);
}

void
ask(int fd, const char *request, size_t len, const char *end, char *answer, size_t size)
{
	size_t got = 0;

	if (write(fd, request, len) != (ssize_t)len)
		die("a server takes no request");
	do {
		ssize_t n = read(fd, answer + got, size - 1 - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("a server gave no answer");
		got += (size_t)n;
		answer[got] = '\0';
	} while (!strstr(answer, end) && got < size - 1);
}
