/* SPDX-License-Identifier: MIT */
/* rival_server.c - redis, beanstalkd and PostgreSQL, each set up so that it answers when the message is on the disk. */
#include "rival.h"
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_MAX 4096

struct connection {
	int fd;
	char *request;
	size_t len;
	const char *good; /* how an answer begins that means "kept" */
};

static void *
new_connection(int fd, char *request, const char *good)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		die("out of memory");
	*c = (struct connection){ .fd = fd, .request = request, .len = strlen(request), .good = good };
	return c;
}

static double
send_request(struct bench *b, void *handle)
{
	struct connection *c = handle;
	char answer[ANSWER_MAX];
	double began = now_us();

	(void)b;
	ask(c->fd, c->request, c->len, "\r\n", answer, sizeof(answer));
	if (strncmp(answer, c->good, strlen(c->good)) != 0)
		die("a server refused: %s", answer);
	return now_us() - began;
}

static void
close_connection(void *handle)
{
	struct connection *c = handle;

	(void)close(c->fd);
	free(c->request);
	free(c);
}

static void
stop_server(const struct rival *r)
{
	server_stop(r->folder);
}

/* ---- redis ---- */

static bool
start_redis(struct bench *b, const struct rival *r)
{
	const char *const argv[] = { "redis-server", "--port", "0", "--unixsocket", "socket", "--dir", ".", "--save",
		"", "--appendonly", "yes", "--appendfsync", "always", "--daemonize", "no", NULL };
	char *path = path_of("%s/socket", r->folder), answer[64];

	(void)b;
	if (!is_here("redis-server") || !is_here("redis-cli")) {
		free(path);
		return false;
	}
	make_folder(r->folder);
	server_start(r->folder, argv, false, SIGTERM);
	int fd = connect_unix(path);

	ask(fd, "PING\r\n", 6, "\r\n", answer, sizeof(answer));
	(void)close(fd);
	free(path);
	return true;
}

static void *
open_redis_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *path = path_of("%s/socket", r->folder);
	const char *const argv[] = { "redis-cli", "-s", path, "XADD", "mail", "*", "body", b->body, NULL };
	struct command *c = command_new(argv, NULL);

	(void)sender;
	c->owned[0] = path;
	return c;
}

static void *
open_redis(struct bench *b, const struct rival *r, unsigned sender)
{
	char *path = path_of("%s/socket", r->folder);
	int fd = connect_unix(path);

	(void)sender;
	free(path);
	return new_connection(fd,
	    path_of("*5\r\n$4\r\nXADD\r\n$4\r\nmail\r\n$1\r\n*\r\n$4\r\nbody\r\n$%d\r\n%s\r\n", BODY_BYTES, b->body),
	    "$");
}

#define REDIS_KEEPS "full: the append-only file is synced before the answer (appendfsync always)"

const struct rival redis_command = { .name = "redis-cli XADD",
	.how = COMMAND,
	.folder = "rival-redis-command",
	.durability = REDIS_KEEPS,
	.window_ms = 500,
	.start = start_redis,
	.open = open_redis_command,
	.send = command_send,
	.close = command_close,
	.stop = stop_server };

const struct rival redis_open = { .name = "redis XADD",
	.how = OPEN,
	.folder = "rival-redis-open",
	.durability = REDIS_KEEPS,
	.note = "all messages are in the server's memory too",
	.window_ms = 500,
	.start = start_redis,
	.open = open_redis,
	.send = send_request,
	.close = close_connection,
	.stop = stop_server };

/* ---- beanstalkd ---- */

static unsigned command_port, open_port;

static bool
start_beanstalkd(struct bench *b, const struct rival *r)
{
	unsigned port = free_port();
	char *number = path_of("%u", port);
	const char *const argv[] = { "beanstalkd", "-f0", "-b", ".", "-l", "127.0.0.1", "-p", number, NULL };

	(void)b;
	if (!is_here("beanstalkd")) {
		free(number);
		return false;
	}
	*(r == &beanstalkd_open ? &open_port : &command_port) = port;
	make_folder(r->folder);
	server_start(r->folder, argv, false, SIGTERM);
	(void)close(connect_loopback(port));
	free(number);
	return true;
}

static char *
put_request(struct bench *b)
{
	return path_of("put 0 0 60 %d\r\n%s\r\n", BODY_BYTES, b->body);
}

/* It has no command of its own: ours connects, puts, and ends. */
static void *
open_beanstalkd_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *client = path_of("%s/build/bench/beanput", b->top), *port = path_of("%u", command_port);
	const char *const argv[] = { client, port, b->body, NULL };
	struct command *c = command_new(argv, NULL);

	(void)r, (void)sender;
	c->owned[0] = client;
	c->owned[1] = port;
	return c;
}

static void *
open_beanstalkd(struct bench *b, const struct rival *r, unsigned sender)
{
	(void)r, (void)sender;
	return new_connection(connect_loopback(open_port), put_request(b), "INSERTED");
}

#define BEANSTALKD_KEEPS "full: the log is synced at every write (-f0)"
#define BEANSTALKD_NOTE "its log is allocated 10 MB at a time, so bytes say nothing"

const struct rival beanstalkd_command = { .name = "beanstalkd put",
	.how = COMMAND,
	.folder = "rival-beanstalkd-command",
	.durability = BEANSTALKD_KEEPS,
	.note = "it has no command of its own: a small static client of ours; " BEANSTALKD_NOTE,
	.start = start_beanstalkd,
	.open = open_beanstalkd_command,
	.send = command_send,
	.close = command_close,
	.stop = stop_server };

const struct rival beanstalkd_open = { .name = "beanstalkd put",
	.how = OPEN,
	.folder = "rival-beanstalkd-open",
	.durability = BEANSTALKD_KEEPS,
	.note = BEANSTALKD_NOTE,
	.window_ms = 500,
	.start = start_beanstalkd,
	.open = open_beanstalkd,
	.send = send_request,
	.close = close_connection,
	.stop = stop_server };

/* ---- PostgreSQL ---- */

static char *
find_postgres(const char *program) /* Debian's psql in /usr/bin is a script around it */
{
	char *pattern = path_of("/usr/lib/postgresql/*/bin/%s", program), *path = NULL;
	glob_t found = { 0 };

	if (glob(pattern, 0, NULL, &found) == 0)
		path = path_of("%s", found.gl_pathv[found.gl_pathc - 1]);
	globfree(&found);
	free(pattern);
	return path;
}

static void
give_to_nobody(const char *folder)
{
	struct passwd *nobody = geteuid() == 0 ? getpwnam("nobody") : NULL;

	if (nobody && chown(folder, nobody->pw_uid, nobody->pw_gid) < 0)
		die("cannot give '%s' away", folder);
}

static void *
open_psql(struct bench *b, const struct rival *r, const char *option, const char *sql)
{
	char *psql = find_postgres("psql"), *socket = path_of("%s/%s", b->work, r->folder);
	const char *const argv[] = { psql, "-X", "-q", "-A", "-t", "-h", socket, "-U", "bench", "-d", "postgres",
		option, sql, NULL };
	struct command *c = command_new(argv, NULL);

	c->owned[0] = psql;
	c->owned[1] = socket;
	return c;
}

static void
wait_until_ready(struct bench *b, const char *socket)
{
	char *program = find_postgres("pg_isready");
	const char *const argv[] = { program, "-q", "-h", socket, NULL };

	for (int i = 0; run_program(b, argv, NULL) != 0; i++) {
		if (i == 600)
			die("PostgreSQL does not start: see %s/bench.log", socket);
		(void)usleep(50000);
	}
	free(program);
}

static bool
start_postgres(struct bench *b, const struct rival *r)
{
	char *initdb = find_postgres("initdb"), *postgres = find_postgres("postgres"), *script;
	bool here = initdb && postgres;

	if (here) {
		char *socket = path_of("%s/%s", b->work, r->folder);

		make_folder(r->folder);
		give_to_nobody(r->folder);
		/* What initdb leaves unsynced is synced by the bench; the server is set up as Debian leaves it. */
		script =
		    path_of("'%s' -D data -U bench --auth=trust --no-sync >initdb.log 2>&1 && exec '%s' -D data -c "
			    "listen_addresses= -c unix_socket_directories='%s' -c fsync=on -c synchronous_commit=on",
			initdb, postgres, socket);
		const char *const argv[] = { "sh", "-c", script, NULL };

		server_start(r->folder, argv, true, SIGINT);
		wait_until_ready(b, socket);
		struct command *c =
		    open_psql(b, r, "-c", "CREATE TABLE mail(id bigserial PRIMARY KEY, recipient text, body text)");
		(void)run_timed(b, c->argv);
		command_close(c);
		free(script);
		free(socket);
	}
	free(initdb);
	free(postgres);
	return here;
}

static void *
open_postgres_command(struct bench *b, const struct rival *r, unsigned sender)
{
	static char *sql;

	(void)sender;
	if (!sql)
		sql = path_of("INSERT INTO mail(recipient, body) VALUES('rita', '%s')", b->body);
	return open_psql(b, r, "-c", sql);
}

static void *
open_postgres(struct bench *b, const struct rival *r, unsigned sender)
{
	struct command *c = open_psql(b, r, "-f", "-");
	struct peer *p = calloc(1, sizeof(*p));

	(void)sender;
	if (!p)
		die("out of memory");
	peer_start(p, c->argv);
	command_close(c);
	(void)peer_ask(p, "PREPARE put(text) AS INSERT INTO mail(recipient, body) VALUES('rita', $1) RETURNING id;"
			  " SELECT 0;\n");
	return p;
}

static double
send_postgres(struct bench *b, void *handle)
{
	static char *sql;

	if (!sql)
		sql = path_of("EXECUTE put('%s');\n", b->body);
	return peer_ask(handle, sql);
}

static void
settle_postgres(struct bench *b, void *handle)
{
	(void)b;
	(void)peer_ask(handle, "CHECKPOINT; SELECT 0;\n");
}

static void
close_postgres(void *handle)
{
	peer_stop(handle);
	free(handle);
}

#define POSTGRES_KEEPS "full: the write-ahead log is synced before the answer (synchronous_commit on)"

const struct rival postgres_command = { .name = "psql INSERT",
	.how = COMMAND,
	.folder = "rival-postgres-command",
	.durability = POSTGRES_KEEPS,
	.note = "psql itself, not Debian's script around it",
	.window_ms = 500,
	.start = start_postgres,
	.open = open_postgres_command,
	.send = command_send,
	.close = command_close,
	.stop = stop_server };

const struct rival postgres_open = { .name = "PostgreSQL INSERT",
	.how = OPEN,
	.folder = "rival-postgres-open",
	.durability = POSTGRES_KEEPS,
	.note =
	    "prepared, through a psql that stays open; the log's files of 16 MB, used again and again, are allocated "
	    "ahead",
	.window_ms = 500,
	.start = start_postgres,
	.open = open_postgres,
	.send = send_postgres,
	.settle = settle_postgres,
	.close = close_postgres,
	.stop = stop_server };
