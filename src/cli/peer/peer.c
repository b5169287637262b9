/* SPDX-License-Identifier: MIT */
/*
 * peer.c - what a session of Claude Code sends to an agent by its own means lands in the agent's mailbox.
 *
 * The answer. Nothing is written back: the tool of the sender says "success" when we close the connection, and an error
 * when the kernel resets it, which it does when we close with bytes unread. So the bytes are only looked at
 * (SO_PEEK_OFF) until the message is on stable storage. A process that is killed before has answered with a reset.
 *
 * The sender. What a message says of its sender is its sender's word. The kernel names the process at the other end,
 * that process's entry in the registry the session, and the session's binding the agent. Where one of these is missing
 * the message is from UNPROVEN, an agent without a process, and the text says what is known.
 *
 * A retry. A sender that was told of a failure although the message is stored (we were killed in between) sends it anew
 * under another id, and nothing in it tells the two apart. So the same text of the same session is taken for the same
 * message for a minute; Claude Code's own sessions do that for half a minute.
 */
#include "cli/peer/peer.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "cli/mcp/mcp.h"
#include "cli/view.h"
#include "helptext.h"
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define UNPROVEN "claude-unproven"
#define DIGEST "Peer-Digest"
#define REPEAT_MS 60000
#define FRAME_S 5 /* so long a sender may take for its two lines */
#define READ_STEP ((size_t)16 << 10)
#define LOOK_MS 2000 /* until the server is asked again who it is */

/* ---- The bytes ---- */

static bool
look_at_lines(int fd, struct buf *ret)
{
	const struct timeval limit = { .tv_sec = FRAME_S };
	int64_t end_ms = clock_boot_ms() + FRAME_S * 1000;
	int from = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof from) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0)
		return false;
	while (ret->len < FRAME_MAX && clock_boot_ms() < end_ms && buf_reserve(ret, READ_STEP)) {
		ssize_t n = recv(fd, ret->ptr + ret->len, READ_STEP, MSG_PEEK);

		if (n <= 0)
			return false;
		ret->len += (size_t)n;
		const char *end = memchr(ret->ptr, '\n', ret->len);

		if (end && memchr(end + 1, '\n', ret->len - (size_t)(end + 1 - ret->ptr)))
			return true;
	}
	return false;
}

/* ---- The sender ---- */

struct sender {
	struct mr_self self;
	char where[72];  /* its session or process */
	struct buf note; /* what is known of one that is unproven; else empty */
};

static enum mr_rc
find_sender(struct cli *cli, int registry_fd, int64_t pid, struct sender *ret, struct mr_error *err)
{
	struct registry_entry entry = { 0 };
	char session[96];
	const struct mr_env env = { .session = session, .state_dir = cli->env.state_dir };

	bool known = registry_read(registry_fd, pid, &entry) && entry.runs && entry.session[0];
	if (!known)
		(void)snprintf(entry.session, sizeof entry.session, "process %" PRId64, pid);
	(void)snprintf(session, sizeof session, "claude-code-%s", entry.session);
	(void)snprintf(ret->where, sizeof ret->where, "%s", entry.session);
	if (known && mr_self_bound(cli->room, &env, &ret->self))
		return MR_OK;
	if (known)
		buf_addf(&ret->note,
		    "\n\n-- \nunproven: session '%s' of Claude Code is not an agent of this room; answers: SendMessage to uds:%s\n",
		    entry.name, entry.socket);
	else
		buf_addf(&ret->note, "\n\n-- \nunproven: process %" PRId64 " is not a session of Claude Code\n", pid);
	if (mr_self_named(cli->room, UNPROVEN, &ret->self, IGNORED) != MR_OK)
		(void)mr_register(cli->room, UNPROVEN, &(struct mr_env){ 0 },
		    &(struct mr_register_options){ .role = "senders that cannot be identified; reads no mail" },
		    &(struct mr_registration){ 0 }, IGNORED); /* or another process does so just now */
	return mr_self_named(cli->room, UNPROVEN, &ret->self, err);
}

/* ---- The message ---- */

struct repeat {
	char digest[65];
	bool found;
};

static bool
is_repeat(void *ctx, const struct mr_message *msg)
{
	struct repeat *r = ctx;
	const char *digest = mr_message_header(msg, DIGEST);

	r->found = digest && strcmp(digest, r->digest) == 0;
	return !r->found;
}

static enum mr_rc
deliver(struct cli *cli, const char *agent, const struct sender *from, const struct buf *text, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(buf_done) struct buf body = BUF_INIT, to = BUF_INIT, all = BUF_INIT;
	const struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE,
					  .from = from->self.agent,
					  .since_ms = clock_now_ms() - REPEAT_MS } };
	struct repeat repeat = { .found = false };

	buf_addf(&to, "agent:%s", agent);
	buf_addf(&all, "%s\n", from->where);
	buf_add(&all, buf_str(text));
	buf_add(&body, buf_str(text));
	buf_add(&body, buf_str(&from->note));
	TRY(mr_got(buf_ok(&to) && buf_ok(&all) && buf_ok(&body), err));
	sha256_hex(buf_str(&all), repeat.digest);
	TRY(mr_scan(cli->room, agent, &scan, is_repeat, &repeat, err));
	if (repeat.found)
		return MR_OK;
	const struct mr_draft draft = { .to = (const char *[]){ buf_z(&to), NULL },
		.body = buf_z(&body),
		.body_len = body.len,
		.headers = &(struct mr_header){ DIGEST, repeat.digest },
		.headers_n = 1 };
	enum mr_rc rc = mr_send(cli->room, &from->self, &draft, &receipt, err);

	if (rc == MR_OK && receipt.notify)
		cli_notify(cli, &receipt, from->self.agent, NULL);
	return rc == MR_INDOUBT ? MR_OK : rc; /* in doubt: it is kept, and will be completed */
}

static void
take_message(struct cli *cli, const struct stand_in *s, const char *agent, int fd)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT, text = BUF_INIT;
	struct sender from = { .note = BUF_INIT };
	char bytes[4096];
	struct mr_error err = { 0 };
	int64_t pid = process_of_socket(fd);

	if (pid <= 0 || !look_at_lines(fd, &lines)) /* without a byte: it looks whether somebody is there */
		return;
	struct pollfd sender = { .fd = fd };
	/* It waited too long, and was told of a failure: it may send the message again. */
	bool left = poll(&sender, 1, 0) > 0 && (sender.revents & (POLLHUP | POLLERR));
	const char *problem =
	    left ? "its sender has not waited" : frame_text(buf_str(&lines), s->token, s->session, &text);
	enum mr_rc rc =
	    problem ? mr_fail(&err, MR_REFUSED, "%s", problem) : find_sender(cli, s->registry, pid, &from, &err);

	if (rc == MR_OK)
		rc = deliver(cli, agent, &from, &text, &err);
	while (rc == MR_OK && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	if (rc != MR_OK)
		cli_warn(cli, "a message of process %" PRId64 " was refused: %s", pid, err.message);
	buf_done(&from.note);
}

/* ---- The two doors ---- */

static volatile sig_atomic_t leaving;

static void
leave(int signal_number)
{
	(void)signal_number;
	leaving = 1;
}

/* Until `end` can be read or a signal came, which it does only while this waits, never while a message is stored. */
static void
serve(struct cli *cli, const struct stand_in *s, const char *agent, int end)
{
	struct pollfd fds[2] = { { .fd = s->listens, .events = POLLIN }, { .fd = end, .events = POLLIN } };
	sigset_t none;

	(void)sigemptyset(&none);
	while (!leaving && (ppoll(fds, 2, NULL, &none) < 0 || !fds[1].revents)) {
		mr_auto(sys_close_fd) int fd = leaving ? -1 : accept(s->listens, NULL, NULL);

		if (fd >= 0)
			take_message(cli, s, agent, fd);
	}
}

int
cmd_peer(struct cli *cli)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	sigset_t blocked;
	mr_auto(registry_leave) struct stand_in s = STAND_IN_INIT;

	if (!mr_room_has(cli->room, MR_HAS_LIVES))
		TRY_CLI(mr_fail(&cli->err, MR_UNSUPPORTED, "a %s room does not know which session an agent is",
		    mr_room_kind(cli->room)));
	if (cli->argc == 0)
		TRY_CLI(cli_know_self(cli, &cli->err));
	TRY_CLI(mr_agent_get(cli->room, cli->argc > 0 ? cli->argv[0] : cli->self.agent, &agent, &cli->err));
	(void)sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		(void)sigaddset(&blocked, signals[i]);
		(void)signal(signals[i], leave);
	}
	(void)sigprocmask(SIG_BLOCK, &blocked, NULL);
	TRY_CLI(registry_enter(&s, cli, agent.name, &cli->err));
	if (!out_json(cli, kv_str("agent", agent.name), kv_int("pid", getpid()), kv_str("socket", s.socket)))
		fence_addf(&cli->out, "%s is among the peers of Claude Code, as long as this runs\n", agent.name);
	if (cli_flush(cli))
		serve(cli, &s, agent.name, -1);
	return EXIT_DONE;
}

_Noreturn void
peer_run(struct mcp_server *server, int end)
{
	struct pollfd ended = { .fd = end, .events = POLLIN };

	child_detach(server);
	do {
		struct stand_in s = STAND_IN_INIT;
		struct cli cli;

		if (child_opens(&cli, server, NULL) && mr_room_has(cli.room, MR_HAS_LIVES) &&
		    registry_enter(&s, &cli, cli.self.agent, IGNORED) == MR_OK)
			serve(&cli, &s, cli.self.agent, end);
		registry_leave(&s);
		cli_done(&cli);
	} while (poll(&ended, 1, LOOK_MS) == 0);
	_exit(EXIT_DONE);
}
