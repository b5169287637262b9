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
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/full.h"
#include "base/process.h"
#include "base/sys.h"
#include "cli/mcp/mcp.h"
#include "cli/peer/peer.h"
#include "helptext.h"

#define READ_STEP ((size_t)64 << 10)
#define SETTLE_MS 5000     /* a worker that marks for longer is not waited for */
#define FIRST_LOOK_MS 5000 /* for a watcher that opens its room */
#define LEAVE_MS 5000      /* for calls at work when the client has left */
#define PROGRESS_MS 5000   /* clients give up on a silent call after a minute or less */

/* ---- Children ---- */

struct mcp_child *
child_named(struct mcp_server *s, struct mr_str id)
{
	for (struct mcp_child *c = s->children; c < s->children + MCP_CHILDREN_MAX; c++)
		if (c->id && !c->settling && str_eq(str_of(c->id), id))
			return c;
	return NULL;
}

void
child_end(struct mcp_child *child)
{
	if (child->pid > 0)
		(void)sys_close(child->fd);
	free(child->id);
	free(child->progress);
	buf_done(&child->answer);
	*child = (struct mcp_child){ 0 };
}

static struct mcp_child *
free_place(struct mcp_server *s, size_t from, size_t n)
{
	for (struct mcp_child *c = s->children + from; c < s->children + from + n; c++)
		if (!c->id)
			return c;
	return NULL;
}

typedef void beside_fn(struct mcp_server *s, int fd);
/* In a free place: what is to be beside the server, or for a request the job; NULL: a watcher. */
static bool
start_process(struct mcp_server *s, beside_fn *beside, const struct mcp_request *r, const struct job *job,
    struct mcp_child *child)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	pid_t pid = fork();

	if (pid == 0) {
		(void)sys_close(ends[0]);
		if (beside)
			beside(s, ends[1]);
		if (job)
			worker_run(s, r, job, ends[1]);
		watch_run(s, r, ends[1]);
	}
	(void)sys_close(ends[1]);
	if (pid < 0) {
		(void)sys_close(ends[0]);
		return false;
	}
	child->pid = pid;
	child->fd = ends[0];
	return true;
}

/* `id` is none that a request can have: a string in JSON has quotes. */
static void
start_beside(struct mcp_server *s, beside_fn *run, const char *id)
{
	struct mcp_child *child = free_place(s, MCP_CALLS_MAX, MCP_LISTENERS_MAX);

	child->id = strdup(id);
	(void)start_process(s, run, NULL, NULL, child);
}

static bool
refuse_call(
    struct mcp_server *s, const struct mcp_request *r, const struct job *job, const char *message, const char *hint)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s\nhint: %s", message, hint);
	return job->resource ? mcp_error(s, r, MCP_INTERNAL, "%s", message) : mcp_tool_error(s, r, buf_z(&text));
}

bool
call_start(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int64_t limit_ms)
{
	struct mcp_child *child = free_place(s, 0, MCP_CALLS_MAX);
	struct json_value token = json_get(r->meta, "progressToken");

	if (!child)
		return refuse_call(
		    s, r, job, "too many calls are running", "cancel a wait, or call again when one has ended");
	if (!start_process(s, NULL, r, job, child) || !(child->id = strndup(r->id.ptr, r->id.len))) {
		child_end(child);
		return refuse_call(s, r, job, "the call could not be started", "try again");
	}
	child->patient = job->tool->patience_s > 0;
	child->started_ms = child->told_ms = clock_boot_ms();
	child->limit_ms = limit_ms;
	if (token.kind == JSON_STRING || token.kind == JSON_NUMBER)
		child->progress = strndup(token.raw.ptr, token.raw.len);
	return true;
}

bool
listener_start(struct mcp_server *s, const struct mcp_request *r, struct mr_str id, bool inbox)
{
	struct mcp_child *child = free_place(s, MCP_CALLS_MAX, MCP_LISTENERS_MAX);

	if (!child)
		return mcp_error(s, r, MCP_INTERNAL, "too many subscriptions are open: cancel one");
	child->id = strndup(id.ptr, id.len);
	if (child->id && !inbox)
		return true;
	if (child->id && start_process(s, NULL, r, NULL, child)) {
		struct pollfd ready = { .fd = child->fd, .events = POLLIN };
		char word;

		/* The subscription is confirmed behind the watcher's first look: what comes later is told. */
		if (poll(&ready, 1, FIRST_LOOK_MS) > 0)
			(void)sys_read(child->fd, &word, 1);
		return true;
	}
	child_end(child);
	return mcp_error(s, r, MCP_INTERNAL, "the mail cannot be watched now: try again");
}

/* The answer is one line, so its end is its line break; without one the worker died. */
static void
read_call(struct mcp_server *s, struct mcp_child *call)
{
	struct buf *answer = &call->answer;
	ssize_t got = buf_reserve(answer, READ_STEP) ? sys_read(call->fd, answer->ptr + answer->len, READ_STEP) : -1;
	char taken = 'y';

	if (got <= 0) {
		struct mcp_request r = { .id = str_of(call->id) };

		if (!call->settling)
			(void)mcp_error(
			    s, &r, MCP_INTERNAL, "the call ended without an answer; what it did is not known");
		child_end(call);
		return;
	}
	answer->len += (size_t)got;
	/* When stdout does not take it the server leaves, and the worker sees that. */
	if (answer->ptr[answer->len - 1] != '\n' || call->settling || !mcp_write(s, answer))
		return;
	call->settling = true;
	call->told_ms = clock_boot_ms();
	buf_clear(answer);
	(void)send(call->fd, &taken, 1, MSG_NOSIGNAL);
}

/* Tells how long calls have been waiting. Returns the milliseconds until the next time; -1: never. */
static int64_t
tell_progress(struct mcp_server *s)
{
	int64_t now_ms = clock_boot_ms(), next_ms = -1;

	for (struct mcp_child *call = s->children; call < s->children + MCP_CALLS_MAX; call++) {
		mr_auto(buf_done) struct buf line = BUF_INIT;
		struct json j = JSON_INIT(&line);

		if (!call->id || call->settling || !call->progress || !call->patient)
			continue;
		if (now_ms - call->told_ms >= PROGRESS_MS) {
			call->told_ms = now_ms;
			notice_begin(&j, "notifications/progress");
			json_cells(
			    &j, CELLS(kv_raw("progressToken", str_of(call->progress)),
				    kv_int("progress", (now_ms - call->started_ms) / 1000),
				    kv_int("total", call->limit_ms / 1000), kv_str("message", "waiting for mail")));
			line_end(&j);
			(void)mcp_write(s, &line);
		}
		int64_t left_ms = PROGRESS_MS - (now_ms - call->told_ms);

		if (next_ms < 0 || left_ms < next_ms)
			next_ms = left_ms;
	}
	return next_ms;
}

/* ---- Lines ---- */

static bool
is_settling(const struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->children[i].settling && clock_boot_ms() - s->children[i].told_ms < SETTLE_MS)
			return true;
	return false;
}

/* As many whole lines as may be handled now. */
static void
handle_lines(struct mcp_server *s, struct lines *in)
{
	struct mcp_request r = { .id = STR("null") };
	struct mr_str line;

	while (!s->gone && !is_settling(s)) {
		enum line got = lines_next(in, &line);

		if (got == LINE_NONE)
			return;
		if (got == LINE_TOO_LONG) {
			r = (struct mcp_request){ .id = STR("null") };
			(void)mcp_error(s, &r, MCP_INVALID, "the line is longer than %zu MiB", MCP_LINE_MAX >> 20);
			continue;
		}
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (json_skip_space(line, 0) < line.len) {
			request_parse(line, s->initialized, &r);
			mcp_handle(s, &r);
		}
	}
}

/* ---- The loop ---- */

/* Waits for stdin and all children, and serves those that have something. */
static void
serve_once(struct mcp_server *s, struct lines *in)
{
	struct pollfd fds[MCP_CHILDREN_MAX + 1]; /* the last is stdin; -1 is passed over by poll */
	bool deaf = in->ended || is_settling(s);
	int64_t pause_ms = tell_progress(s);
	char news[64];

	if (deaf && (pause_ms < 0 || pause_ms > 100)) /* the ends of children are polled, but have limits, too */
		pause_ms = 100;
	for (size_t i = 0; i < MCP_CHILDREN_MAX; i++)
		fds[i] = (struct pollfd){ .fd = s->children[i].pid > 0 ? s->children[i].fd : -1, .events = POLLIN };
	fds[MCP_CHILDREN_MAX] = (struct pollfd){ .fd = deaf ? -1 : 0, .events = POLLIN };
	if (poll(fds, MCP_CHILDREN_MAX + 1, (int)pause_ms) > 0) {
		for (size_t i = 0; i < MCP_CHILDREN_MAX; i++)
			if (fds[i].revents && i < MCP_CALLS_MAX)
				read_call(s, &s->children[i]);
			else if (fds[i].revents && sys_read(s->children[i].fd, news, sizeof(news)) > 0)
				mcp_inbox_changed(s, &s->children[i]);
			else if (fds[i].revents) { /* it died: there is nothing to hear any more */
				(void)sys_close(s->children[i].fd);
				s->children[i].pid = 0;
			}
		if (fds[MCP_CHILDREN_MAX].revents)
			(void)lines_read(in); /* an error is an end, too */
	}
	handle_lines(s, in);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void
leave_at_once(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_DONE); /* the ends of the workers' sockets close with us */
}

/* What OpenCode starts, it tells its process id. A harness that was started in a shell of OpenCode hands the variable
 * on, but is itself what runs us: its model may write the plugin's argument, and is not believed. */
static bool
opencode_runs_us(void)
{
	const char *named = env_get("OPENCODE_PID");
	struct mr_process above;
	uint64_t pid = 0;

	return named && str_to_u64(str_of(named), &pid) && process_harness(&above) && above.pid == (int64_t)pid;
}

int
cmd_mcp(struct cli *cli, const struct mcp_options *o)
{
	struct mcp_server s = { .room = cli->room_option, .as = cli->as_option };
	struct lines in = { .longest = MCP_LINE_MAX };
	int64_t ended_ms = 0;

	s.initialized = s.greeted = o->greeted; /* src/serve/mcp.c */
#ifdef MR_FAULT_ENV
	if (o->conformance)
		s.extra = &mcp_fixtures;
#endif
	/* Workers are forks of this process: where the room has an index or packed mail, it is the program that can use
	 * them. What is to be said of the room, the calls say. */
	cli->unheard = true;
	if (!is_full() && cli_open_room(cli, IGNORED) == MR_OK && mr_room_has(cli->room, MR_HAS_INDEX | MR_HAS_PACKS))
		cli_hand_over_to_full(cli);
	cli->unheard = false;
	mr_room_close(cli->room);
	cli->room = NULL;
	s.opencode = opencode_runs_us();
	(void)signal(SIGINT, leave_at_once);
	(void)signal(SIGTERM, leave_at_once);
	s.session_pid = s.greeted ? 0 : bell_session();
	if (s.session_pid > 0)
		start_beside(&s, bell_run, "bell");
	if (o->peers)
		start_beside(&s, peer_run, "peer");
	while (!s.gone) {
		bool at_work = false;

		for (const struct mcp_child *c = s.children; c < s.children + MCP_CALLS_MAX; c++)
			at_work |= c->id && !c->patient && !c->settling;
		if (in.ended && ended_ms == 0)
			ended_ms = clock_boot_ms();
		if (in.ended && in.from == in.bytes.len && (!at_work || clock_boot_ms() - ended_ms > LEAVE_MS))
			break;
		serve_once(&s, &in);
	}
	for (size_t i = 0; i < MCP_CHILDREN_MAX; i++)
		child_end(&s.children[i]);
	buf_done(&in.bytes);
	return s.gone ? EXIT_FAILED : EXIT_DONE;
}
