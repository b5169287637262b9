/* SPDX-License-Identifier: MIT */
/*
 * serve.c - the loop of the server: lines from the client, answers of workers, news of watchers.
 *
 * While a worker is still marking what its answer showed, no further line is read: a client that has an answer and asks
 * again finds what the answer said done.
 *
 * Leaving: on SIGINT and SIGTERM at once, there is no state to lose. When stdin ends, calls that are at work are
 * answered first, for they take milliseconds and the client may still be listening; one that waits for mail is ended.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/mcp/mcp.h"

#define READ_STEP ((size_t)64 << 10)
#define SETTLE_MS 5000 /* a worker that marks for longer is not waited for */
#define LEAVE_MS 5000  /* for calls at work when the client has left */

struct input {
	struct buf bytes;
	size_t from;   /* of what was not handled yet */
	size_t looked; /* bytes in which there is no line break */
	bool skipping; /* the rest of a line that was too long */
	bool ended;
};

/* ---- Lines ---- */

static void
handle_line(struct mcp_server *s, struct mr_str line)
{
	struct mcp_request r;

	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	if (json_skip_space(line, 0) == line.len)
		return;
	request_parse(line, s->initialized, &r);
	mcp_handle(s, &r);
}

static void
refuse_long_line(struct mcp_server *s)
{
	struct mcp_request r = { .id = STR("null") };

	mcp_error(s, &r, MCP_INVALID, "the line is longer than %zu MiB", MCP_LINE_MAX >> 20);
}

static void
drop_long_line(struct mcp_server *s, struct input *in)
{
	if (in->bytes.len - in->from <= MCP_LINE_MAX)
		return;
	if (!in->skipping)
		refuse_long_line(s);
	in->skipping = true;
	in->from = in->looked = 0;
	buf_clear(&in->bytes);
}

static bool
is_settling(const struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].settling && clock_boot_ms() - s->calls[i].told_ms < SETTLE_MS)
			return true;
	return false;
}

/* As many whole lines as may be handled now. */
static void
handle_lines(struct mcp_server *s, struct input *in)
{
	while (!s->gone && !is_settling(s)) {
		const char *from = in->bytes.ptr + in->looked;
		const char *end = in->bytes.len > in->looked ? memchr(from, '\n', in->bytes.len - in->looked) : NULL;

		if (!end) {
			in->looked = in->bytes.len;
			break;
		}
		struct mr_str line = { in->bytes.ptr + in->from, (size_t)(end - in->bytes.ptr) - in->from };

		in->from = in->looked = (size_t)(end - in->bytes.ptr) + 1;
		if (!in->skipping)
			handle_line(s, line);
		in->skipping = false;
	}
	if (in->from > 0) {
		memmove(in->bytes.ptr, in->bytes.ptr + in->from, in->bytes.len - in->from);
		in->bytes.len -= in->from;
		in->looked -= in->from;
		in->from = 0;
	}
	drop_long_line(s, in);
}

static void
read_more(struct mcp_server *s, struct input *in)
{
	ssize_t got = -1;

	if (buf_reserve(&in->bytes, READ_STEP))
		got = sys_read(0, in->bytes.ptr + in->bytes.len, READ_STEP);
	if (got > 0)
		in->bytes.len += (size_t)got;
	in->ended = got <= 0;
	if (in->ended && in->bytes.len > in->from && !in->skipping) { /* a last line without its break */
		buf_addc(&in->bytes, '\n');
		if (!buf_ok(&in->bytes))
			s->gone = true;
	}
}

/* ---- The loop ---- */

struct ready {
	struct pollfd fds[1 + MCP_CALLS_MAX + MCP_LISTENERS_MAX];
	nfds_t n;
};

static void
add_fd(struct ready *p, int fd)
{
	p->fds[p->n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* The first is stdin; -1 is passed over by poll. */
static void
gather(struct mcp_server *s, const struct input *in, struct ready *p)
{
	p->n = 0;
	add_fd(p, in->ended || is_settling(s) ? -1 : 0);
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		add_fd(p, s->calls[i].pid > 0 ? s->calls[i].fd : -1);
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		add_fd(p, s->listeners[i].id ? s->listeners[i].fd : -1);
}

static void
serve_ready(struct mcp_server *s, struct input *in, const struct ready *p)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (p->fds[1 + i].revents && s->calls[i].pid > 0)
			call_readable(s, &s->calls[i]);
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		if (p->fds[1 + MCP_CALLS_MAX + i].revents && s->listeners[i].id)
			subscribe_readable(s, &s->listeners[i]);
	if (p->fds[0].revents)
		read_more(s, in);
	handle_lines(s, in);
}

static bool
is_at_work(const struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid > 0 && !s->calls[i].patient && !s->calls[i].settling)
			return true;
	return false;
}

static int
pause_of(struct mcp_server *s, const struct input *in)
{
	int64_t ms = calls_progress(s);

	if (in->ended || is_settling(s)) /* their ends are polled, but have limits, too */
		ms = ms < 0 || ms > 100 ? 100 : ms;
	return (int)ms;
}

static void
leave(struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid > 0)
			call_end(&s->calls[i]);
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		if (s->listeners[i].id)
			listener_end(&s->listeners[i]);
}

static void
leave_at_once(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_DONE); /* the ends of the workers' sockets close with us */
}

int
mcp_serve(struct mcp_server *s)
{
	struct input in = { 0 };
	struct ready p;
	int64_t ended_ms = 0;

	(void)signal(SIGINT, leave_at_once);
	(void)signal(SIGTERM, leave_at_once);
	while (!s->gone) {
		if (in.ended && ended_ms == 0)
			ended_ms = clock_boot_ms();
		if (in.ended && in.bytes.len == 0 && (!is_at_work(s) || clock_boot_ms() - ended_ms > LEAVE_MS))
			break;
		gather(s, &in, &p);
		if (poll(p.fds, p.n, pause_of(s, &in)) > 0)
			serve_ready(s, &in, &p);
		else
			handle_lines(s, &in);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	leave(s);
	buf_done(&in.bytes);
	return s->gone ? EXIT_FAILED : EXIT_DONE;
}
