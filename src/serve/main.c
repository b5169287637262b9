/* SPDX-License-Identifier: MIT */
/* main.c - `mailroom serve`, in the program mailroom-serve. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/spawn.h"
#include "base/sys.h"
#include "helptext.h"
#include "serve/serve.h"

#define BACKLOG 128

/* "ADDR:PORT", "[::1]:PORT", or a port alone. */
static enum mr_rc
parse_listen(struct cli *cli, const char *text, struct server *ret, struct mr_error *err)
{
	const char *colon = strrchr(text, ':');
	struct mr_str host = colon ? (struct mr_str){ text, (size_t)(colon - text) } : STR("127.0.0.1");
	uint64_t port = 0;

	if (!str_to_u64(str_of(colon ? colon + 1 : text), &port) || port > 65535 || host.len == 0)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not an address to listen on\ngive one such as --listen 127.0.0.1:8025", text);
	ret->address = arena_dup(&cli->own, host);
	ret->port = (unsigned)port;
	return mr_got(ret->address != NULL, err);
}

/* A child that a killed server was just starting has its socket until it runs its program: wait for that. */
static bool
bind_to(int fd, const struct addrinfo *to)
{
	for (int tries = 0; bind(fd, to->ai_addr, to->ai_addrlen) < 0; tries++) {
		if (errno != EADDRINUSE || tries == 20)
			return false;
		(void)poll(NULL, 0, 50);
	}
	return true;
}

static enum mr_rc
listen_on(struct server *server, struct mr_error *err)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM }, *found = NULL;
	char host[64], port[8];
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int on = 1;

	(void)snprintf(host, sizeof(host), "%s", server->address);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		memmove(host, host + 1, strlen(host));
		host[strlen(host) - 1] = '\0';
	}
	(void)snprintf(port, sizeof(port), "%u", server->port);
	bool loopback = str_starts(str_of(host), "127.") || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;

	if (getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &hints, &found) != 0)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not an address of this machine\ngive one such as --listen 127.0.0.1:8025", host);
	if (!loopback && !server->insecure) {
		freeaddrinfo(found);
		return mr_fail(err, MR_REFUSED,
		    "'%s' can be reached from other machines, and mail would cross the network in the clear\n"
		    "use ssh -L 8025:127.0.0.1:8025, or a proxy with TLS in front; --insecure does it anyway",
		    host);
	}
	server->listen_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd >= 0)
		(void)setsockopt(server->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	bool bound_ok = server->listen_fd >= 0 && bind_to(server->listen_fd, found) &&
			listen(server->listen_fd, BACKLOG) == 0 &&
			getsockname(server->listen_fd, (struct sockaddr *)&bound, &len) == 0;
	int cause = errno;

	freeaddrinfo(found);
	errno = cause;
	if (!bound_ok)
		return mr_fail_errno(err, "cannot listen on %s:%u", host, server->port);
	server->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
							 : ((struct sockaddr_in *)(void *)&bound)->sin_port);
	return MR_OK;
}

/* xdg-open hands the link over to a browser and ends. */
static void
open_browser(struct cli *cli, const char *link)
{
	struct spawned ran = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = spawn_run(
	    &(struct spawn){ .argv = (const char *const[]){ "xdg-open", link, NULL }, .limit_ms = 5000 }, &ran, &err);

	if (rc != MR_OK || ran.exit_code != 0)
		cli_warn(cli, "no browser could be opened: open the link yourself");
	spawned_done(&ran);
}

int
serve_run(struct cli *cli)
{
	const struct serve_options *o = cli->opts;
	struct server server = { .read_only = o->read_only, .insecure = o->insecure, .listen_fd = -1 };
	mr_auto(buf_done) struct buf link = BUF_INIT;

#ifdef MR_FAULT_ENV
	server.conformance = o->conformance;
#endif
	TRY_CLI(env_not_in_session(cli, "serving the operator's view", &cli->err));
	TRY_CLI(cli_open_room(cli, &cli->err));
	server.spec = mr_room_spec(cli->room);
	TRY_CLI(parse_listen(cli, o->listen ? o->listen : "127.0.0.1:8025", &server, &cli->err));
	TRY_CLI(listen_on(&server, &cli->err));
	access_link(&server, &link);
	if (!out_json(
		cli, kv_str("url", buf_z(&link)), kv_str("room", server.spec), kv_bool("read_only", server.read_only)))
		buf_addf(&cli->out, "%s\n", buf_z(&link));
	if (!cli_flush(cli))
		return EXIT_FAILED;
	if (o->open)
		open_browser(cli, buf_z(&link));
	TRY_CLI(server_run(&server, &cli->err));
	return EXIT_DONE;
}
