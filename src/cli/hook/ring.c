/* SPDX-License-Identifier: MIT */
/*
 * ring.c - the bells of harnesses that are not woken by the end of a hook. They are rung from beside the session, by
 * its own waiter: a sender in a sandbox can ring nobody.
 *
 * Codex has `codex queue --thread ID --message TEXT`: the text is the next prompt of an idle session, or waits for the
 * end of the turn. It has the user's voice, so nothing that a sender wrote is in it (office/nudge/bell.c). The program
 * is the one that runs us. `codex exec` takes such a prompt and drops it: its sessions are never rung.
 *
 * Qwen Code gives the hooks of a session with a terminal a socket and a token. What comes that way is shown as a
 * message of another session, and no hook runs for it: the mail is told in the ring itself.
 */
#include "cli/hook/hook.h"
#include "cli/view.h"

#include "base/file.h"
#include "base/id.h"
#include "base/spawn.h"
#include "base/sys.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define QUEUE_LIMIT_MS 10000
#define QUEUE_TRIES 2
#define SOCKET_LIMIT_S 5
#define BACKLOG 64
#define HEAD_MAX 4096 /* of the record of a session: its first line says who began it */

/* ---- Codex ---- */

/* The program that runs us, if it is Codex. */
static bool
codex_program(char ret[PATH_MAX])
{
	char link[32];

	(void)snprintf(link, sizeof link, "/proc/%ld/exe", (long)getppid());
	ssize_t n = readlink(link, ret, PATH_MAX - 1);

	if (n <= 0)
		return false;
	ret[n] = '\0';
	return str_starts(str_of(path_name(ret)), "codex");
}

/* A run without a terminal ends with its turn. */
static bool
is_exec(const struct hook *h)
{
	char head[HEAD_MAX];
	mr_auto(sys_close_fd) int fd =
	    h->event.transcript[0] == '/' ? sys_open_user(h->event.transcript, O_NONBLOCK) : -1;
	ssize_t n = fd >= 0 ? sys_pread(fd, head, sizeof head, 0) : -1;
	const char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;

	return n > 0 &&
	       memmem(head, end ? (size_t)(end - head) : (size_t)n, STR("codex_exec").ptr, STR("codex_exec").len);
}

static enum mr_rc
ring_queue(void *ctx, const char *text, struct mr_error *err)
{
	const struct hook *h = ctx;
	char program[PATH_MAX];

	if (!codex_program(program))
		return mr_fail(err, MR_REFUSED, "the program that runs this hook is not Codex");
	const char *argv[] = { program, "queue", "--thread", h->event.session, "--message", text, NULL };

	for (int tries = 0; tries < QUEUE_TRIES; tries++) {
		mr_auto(spawned_done) struct spawned ran = { 0 };
		mr_auto(buf_done) struct buf why = BUF_INIT;

		TRY(spawn_run(&(struct spawn){ .argv = argv, .limit_ms = QUEUE_LIMIT_MS }, &ran, err));
		if (ran.exit_code == 0)
			return MR_OK;
		spawned_describe(&ran, QUEUE_LIMIT_MS, &why);
		(void)mr_fail(err, MR_REFUSED, "codex queue: %s: %.200s", buf_z(&why),
		    ran.err.len > 0 ? buf_z(&ran.err) : "it says nothing");
		if (ran.exit_code == 2) /* an older Codex has no such command */
			break;
	}
	return err->code;
}

/* ---- The end of a hook, which the harness or our plugin in it makes a prompt of ---- */

static enum mr_rc
ring_exit(void *ctx, const char *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	(void)ctx;
	answer_without_tags(str_of(text), &plain);
	TRY(mr_got(buf_ok(&plain), err));
	return sys_write_all(2, plain.ptr, plain.len) < 0 ? mr_fail_errno(err, "the harness did not take the text")
							  : MR_OK;
}

/* ---- A socket of the session ---- */

/* A socket with what is its address when that fits. */
static int
new_socket(const char *path, int flags, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof ret->sun_path)
		return -1;
	memcpy(ret->sun_path, path, strlen(path) + 1);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

int
socket_connect(const char *path)
{
	struct sockaddr_un to;
	struct timeval limit = { .tv_sec = SOCKET_LIMIT_S };
	int fd = new_socket(path, 0, &to);

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) < 0 ||
			   setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
			   connect(fd, (const struct sockaddr *)&to, sizeof to) < 0))
		sys_close_fd(&fd);
	return fd;
}

int
socket_listen(const char *path)
{
	struct sockaddr_un at;
	int fd = new_socket(path, SOCK_NONBLOCK, &at);
	mode_t before = umask(0177);

	if (fd >= 0 && (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0))
		sys_close_fd(&fd);
	(void)umask(before);
	return fd;
}

enum mr_rc
ring_socket(const struct harness_socket *door, const char *session, const char *text, struct mr_error *err)
{
	const char *path = env_get(door->path), *token = env_get(door->token);
	mr_auto(buf_done) struct buf lines = BUF_INIT, id = BUF_INIT, plain = BUF_INIT;
	struct json j = JSON_INIT(&lines);
	char hex[33];

	answer_without_tags(str_of(text), &plain);
	random_hex(hex, 32);
	buf_addf(&id, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 13, hex + 17, hex + 20);
	json_cells(&j, CELLS(kv_open(""), kv_int("msgV", 1), kv_str("type", "auth"),
			   kv_str("token", token ? token : ""), kv_close()));
	buf_addc(&lines, '\n');
	j = (struct json)JSON_INIT(&lines);
	json_cells(&j, CELLS(kv_open(""), kv_int("msgV", 1), kv_str(door->id, buf_z(&id)), kv_str("type", "user"),
			   kv_str("priority", "next"), kv_str(door->session, session), kv_open("message"),
			   kv_str("role", "user"), kv_str("content", buf_z(&plain)), kv_close(), kv_close()));
	buf_addc(&lines, '\n');
	TRY(mr_got(buf_ok(&lines) && buf_ok(&id) && buf_ok(&plain), err));
	mr_auto(sys_close_fd) int fd = path ? socket_connect(path) : -1;

	if (!path)
		return mr_fail(err, MR_REFUSED, "the session has no socket");
	if (fd < 0 || sys_write_all(fd, lines.ptr, lines.len) < 0) {
		(void)mr_fail_errno(err, "the session's socket does not take the bell");
		err->code = MR_REFUSED;
		return MR_REFUSED;
	}
	return MR_OK;
}

static enum mr_rc
ring_own_socket(void *ctx, const char *text, struct mr_error *err)
{
	const struct hook *h = ctx;

	return ring_socket(h->harness->socket, h->event.session, text, err);
}

/* ---- All of them ---- */

enum mr_rc
ring_bell(struct hook *h, struct mr_wake *what, struct mr_error *err)
{
	static const struct {
		const char *way;
		bool tells; /* not in the user's voice */
		mr_ring_fn *ring;
	} ways[] = {
		[BELL_EXIT] = { "hook", true, ring_exit },
		[BELL_QUEUE] = { "queue", false, ring_queue },
		[BELL_PLUGIN] = { "plugin", false, ring_exit },
		[BELL_SOCKET] = { "socket", true, ring_own_socket },
	};
	enum bell bell = h->harness->bell;
	char door[MR_DOOR_MAX];

	(void)snprintf(door, sizeof door, "%s-%s", h->harness->name, ways[bell].way);
	return mr_wake_ring(what, door, ways[bell].tells, ways[bell].ring, h, err);
}

bool
ring_has_door(const struct hook *h)
{
	char program[PATH_MAX];

	switch (h->harness->bell) {
	case BELL_QUEUE:
		return codex_program(program) && !is_exec(h);
	case BELL_SOCKET:
		return env_get(h->harness->socket->path) != NULL;
	case BELL_EXIT:
	case BELL_PLUGIN:
		return true;
	case BELL_NONE:
		break;
	}
	return false;
}
