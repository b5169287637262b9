/* SPDX-License-Identifier: MIT */
/*
 * worker.c - one call, in a process of its own: runs the command with its text caught, answers through a socket, and
 * goes on (marks mail as read, keeps a claim) only when the server has said that stdout took the answer.
 *
 * When the answer goes out: a command that shows mail flushes before it marks, so its first flush is the answer. One
 * that has changed the room already cannot be undone by a lost answer, so its text waits for the warnings behind it.
 *
 * How it ends early: the server closes the socket, by cancelling or by dying. One that waits for mail holds nothing
 * and is ended by SIGIO at once. Any other is at work for milliseconds, finds out when it answers, and puts back what
 * nobody saw; killed in that moment it would keep a claim until its lease ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/mcp/mcp.h"

struct worker {
	const struct mcp_request *request;
	const struct job *job;
	int fd;
	struct cli_sink sink;
	struct buf text;  /* of the command's stdout */
	struct buf words; /* of its stderr */
	bool failed;      /* an error was said */
	char id[MR_ID_LEN + 1];
	struct mr_names whole, cut; /* ids of what is shown */
	char token[MR_TOKEN_LEN + 1];
	unsigned attempt;
};

/* ---- The process ---- */

static void
heed_nothing(int signal_number)
{
	(void)signal_number;
}

void
worker_detach(struct mcp_server *s)
{
	int null_fd = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

	/* A handler, not SIG_IGN, which programs that a command starts would inherit. */
	(void)signal(SIGINT, heed_nothing);
	(void)signal(SIGTERM, heed_nothing);
	for (int fd = 0; fd < 2; fd++)
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			_exit(EXIT_FAILED);
	/* The other workers must see it when the server ends: nobody else may hold its ends of their sockets. */
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid > 0)
			(void)sys_close(s->calls[i].fd);
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		if (s->listeners[i].pid > 0)
			(void)sys_close(s->listeners[i].fd);
}

static int followed_fd = -1;

/* The server writes nothing to one that follows it: what can be read is the end. */
static void
look_up(int signal_number)
{
	struct pollfd end = { .fd = followed_fd, .events = POLLIN };

	(void)signal_number;
	if (poll(&end, 1, 0) > 0)
		_exit(EXIT_DONE);
}

void
worker_follow(int fd)
{
	followed_fd = fd;
	(void)signal(SIGIO, look_up);
	(void)fcntl(fd, F_SETOWN, (int)getpid());
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
	look_up(SIGIO); /* it may have ended before */
}

static void
stand_alone(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC);
	(void)signal(SIGIO, heed_nothing);
}

/* ---- The answer ---- */

static void
add_names(struct json *j, const char *key, const struct mr_names *names)
{
	json_key(j, key);
	json_open(j, '[');
	for (size_t i = 0; i < names->n; i++)
		json_str(j, str_of(names->v[i]));
	json_close(j);
}

/* Nothing in it that others wrote, but the text: ids and tokens are ours. */
static void
add_structured(struct json *j, const struct worker *w, struct mr_str text)
{
	json_key(j, "structuredContent");
	json_open(j, '{');
	json_key(j, "text");
	json_str(j, text);
	if (w->job->tool->output == TOOL_SENT)
		json_key_str(j, "id", w->id);
	if (w->job->tool->output == TOOL_MAIL)
		add_names(j, "ids", &w->whole);
	if (w->job->tool->output == TOOL_MAIL && w->cut.n > 0)
		add_names(j, "cut", &w->cut);
	if (w->job->tool->output == TOOL_WORK && w->token[0]) {
		json_key_str(j, "id", w->id);
		json_key_str(j, "token", w->token);
		json_key_int(j, "attempt", w->attempt);
	}
	json_close(j);
}

static void
add_result(struct buf *line, const struct worker *w, struct mr_str text, bool error)
{
	struct json j = JSON_INIT(line);

	answer_begin(&j, w->request);
	json_key(&j, w->job->resource ? "contents" : "content");
	json_open(&j, '[');
	json_open(&j, '{');
	if (w->job->resource) {
		json_key_str(&j, "uri", MCP_INBOX_URI);
		json_key_str(&j, "mimeType", "text/plain");
	} else {
		json_key_str(&j, "type", "text");
	}
	json_key(&j, "text");
	json_str(&j, text);
	json_close(&j);
	json_close(&j);
	if (w->job->resource)
		answer_cache(&j, w->request, 0, false);
	if (!w->job->resource && !error)
		add_structured(&j, w, text);
	if (!w->job->resource)
		json_key_bool(&j, "isError", error);
	answer_end(&j, w->request);
}

/* What the command said, its words behind its text: the fence ends before them. */
static void
add_text(struct buf *out, const struct worker *w)
{
	char mark[FENCE_MARK_LEN + 1];
	bool fence = w->job->tool->fence && w->text.len > 0;

	fence_mark(mark);
	if (fence)
		fence_open(out, mark);
	buf_add(out, buf_str(&w->text));
	if (fence)
		fence_close(out, mark);
	buf_add(out, buf_str(&w->words));
	while (out->len > 0 && out->ptr[out->len - 1] == '\n')
		out->ptr[--out->len] = '\0';
}

/* True: the server's stdout took it. */
static bool
deliver(struct worker *w, bool error)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT;
	char byte;

	w->sink.closed = true;
	stand_alone(w->fd);
	add_text(&text, w);
	if (w->text.failed || w->words.failed || text.failed)
		return false;
	if (w->job->resource && error)
		answer_error(&line, w->request, MCP_INTERNAL, "%s", buf_z(&text));
	else
		add_result(&line, w, buf_str(&text), error);
	return buf_ok(&line) && sys_write_all(w->fd, line.ptr, line.len) == 0 && sys_read(w->fd, &byte, 1) == 1;
}

/* ---- What the command says ---- */

static bool
take(void *ctx, const struct cli *cli, struct mr_str text)
{
	struct worker *w = ctx;

	buf_add(&w->text, text);
	if (cli->done_id)
		(void)snprintf(w->id, sizeof(w->id), "%s", cli->done_id);
	if (w->text.failed)
		return false;
	if (cli->changed)
		return true;
	return deliver(w, w->failed && w->whole.n + w->cut.n == 0);
}

static void
say(void *ctx, bool error, const char *message, const char *hint)
{
	struct worker *w = ctx;
	mr_auto(buf_done) struct buf late = BUF_INIT;
	struct buf *out = w->sink.closed ? &late : &w->words;

	w->failed = w->failed || error;
	buf_addf(out, "%s\n", message);
	if (hint[0])
		buf_addf(out, "hint: %s\n", hint);
	if (w->sink.closed && buf_ok(&late)) /* the client's log is what is left */
		(void)sys_write_all(2, late.ptr, late.len);
}

static void
note_shown(void *ctx, const struct mr_message *msg, bool whole)
{
	struct worker *w = ctx;

	if (!names_add(whole ? &w->whole : &w->cut, str_of(msg->id)))
		w->text.failed = true;
	if (!w->job->tool || w->job->tool->output != TOOL_WORK)
		return;
	(void)snprintf(w->id, sizeof(w->id), "%s", msg->id);
	(void)snprintf(w->token, sizeof(w->token), "%s", msg->token);
	w->attempt = msg->attempt;
}

_Noreturn void
worker_run(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int fd)
{
	struct worker w = { .request = r, .job = job, .fd = fd };
	struct cli_call call = { .sink = &w.sink, .room = s->room, .as = s->as, .env_aged = true };
	char **argv = calloc(job->words.v.n + 2, sizeof(char *));
	static char self[] = "mailroom";

	worker_detach(s);
	call.session = request_session(r);
	w.sink = (struct cli_sink){ .take = take, .say = say, .shown = note_shown, .ctx = &w };
	if (job->tool->patience_s > 0)
		worker_follow(fd);
	if (!argv || job->words.failed)
		_exit(EXIT_FAILED);
	argv[0] = self;
	for (size_t i = 0; i < job->words.v.n; i++)
		argv[i + 1] = job->words.v.v[i];
	int code = cli_call(&call, (int)job->words.v.n + 1, argv);

	if (!w.sink.closed)
		(void)deliver(&w, code != EXIT_DONE && code != EXIT_NOTHING);
	_exit(code);
}
