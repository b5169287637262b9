/* SPDX-License-Identifier: MIT */
/* calls.c - the server's side of its workers: starting them, passing their answers on, ending them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "cli/mcp/mcp.h"

#define PROGRESS_MS 5000 /* clients give up on a silent call after a minute or less */

void
call_answer_tool_error(struct mcp_server *s, const struct mcp_request *r, const char *message, const char *hint)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, text = BUF_INIT;
	struct json j = JSON_INIT(&line);

	buf_addf(&text, "%s%s%s", message, hint ? "\nhint: " : "", hint ? hint : "");
	answer_begin(&j, r);
	json_key(&j, "content");
	json_open(&j, '[');
	json_open(&j, '{');
	json_key_str(&j, "type", "text");
	json_key_str(&j, "text", buf_z(&text));
	json_close(&j);
	json_close(&j);
	json_key_bool(&j, "isError", true);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

void
call_end(struct mcp_call *call)
{
	(void)sys_close(call->fd);
	free(call->id);
	free(call->progress);
	buf_done(&call->answer);
	*call = (struct mcp_call){ 0 };
}

static struct mcp_call *
find(struct mcp_server *s, struct mr_str id)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid > 0 && !s->calls[i].settling && str_eq(str_of(s->calls[i].id), id))
			return &s->calls[i];
	return NULL;
}

bool
call_known(const struct mcp_server *s, struct mr_str id)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid > 0 && !s->calls[i].settling && str_eq(str_of(s->calls[i].id), id))
			return true;
	return false;
}

void
call_cancel(struct mcp_server *s, struct mr_str id)
{
	struct mcp_call *call = find(s, id);

	if (call)
		call_end(call); /* whoever cancels gets no answer; the worker sees its socket end */
}

static char *
raw_copy(struct mr_str raw)
{
	return strndup(raw.ptr, raw.len);
}

static char *
progress_token(const struct mcp_request *r)
{
	struct json_value token;

	if (!json_find(r->meta, "progressToken", &token) || (token.kind != JSON_STRING && token.kind != JSON_NUMBER))
		return NULL;
	return raw_copy(token.raw);
}

static bool
refuse(struct mcp_server *s, const struct mcp_request *r, const struct job *job, const char *message, const char *hint)
{
	if (job->resource)
		mcp_error(s, r, MCP_INTERNAL, "%s", message);
	else
		call_answer_tool_error(s, r, message, hint);
	return false;
}

static struct mcp_call *
free_place(struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_CALLS_MAX; i++)
		if (s->calls[i].pid == 0)
			return &s->calls[i];
	return NULL;
}

bool
call_start(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int64_t limit_ms)
{
	struct mcp_call *place = free_place(s);
	int ends[2];
	char *id = NULL;

	if (!place)
		return refuse(
		    s, r, job, "too many calls are running", "cancel a wait, or call again when one has ended");
	id = raw_copy(r->id);
	if (!id || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		free(id);
		return refuse(s, r, job, "the call could not be started", "try again");
	}
	pid_t pid = fork();

	if (pid == 0) {
		(void)sys_close(ends[0]);
		worker_run(s, r, job, ends[1]);
	}
	(void)sys_close(ends[1]);
	if (pid < 0) {
		(void)sys_close(ends[0]);
		free(id);
		return refuse(s, r, job, "the call could not be started", "try again");
	}
	*place = (struct mcp_call){ .pid = pid,
		.fd = ends[0],
		.id = id,
		.progress = progress_token(r),
		.patient = job->tool->patience_s > 0,
		.started_ms = clock_boot_ms(),
		.told_ms = clock_boot_ms(),
		.limit_ms = limit_ms };
	return true;
}

/* The answer is one line, so its end is its line break; without one the worker died. */
static void
pass_on(struct mcp_server *s, struct mcp_call *call)
{
	char taken = 'y';

	if (!mcp_write(s, &call->answer))
		return; /* the server leaves, and the worker sees it */
	call->settling = true;
	call->told_ms = clock_boot_ms();
	buf_clear(&call->answer);
	(void)send(call->fd, &taken, 1, MSG_NOSIGNAL);
}

static void
report_death(struct mcp_server *s, const struct mcp_call *call)
{
	struct mcp_request r = { .id = str_of(call->id) };

	mcp_error(s, &r, MCP_INTERNAL, "the call ended without an answer; what it did is not known");
}

void
call_readable(struct mcp_server *s, struct mcp_call *call)
{
	ssize_t got = -1;

	if (buf_reserve(&call->answer, 65536))
		got = sys_read(call->fd, call->answer.ptr + call->answer.len, 65536);
	if (got > 0)
		call->answer.len += (size_t)got;
	if (got > 0 && call->answer.ptr[call->answer.len - 1] == '\n' && !call->settling)
		pass_on(s, call);
	if (got > 0)
		return;
	if (!call->settling)
		report_death(s, call);
	call_end(call);
}

int64_t
calls_progress(struct mcp_server *s)
{
	int64_t now_ms = clock_boot_ms(), next_ms = -1;

	for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
		struct mcp_call *call = &s->calls[i];
		mr_auto(buf_done) struct buf line = BUF_INIT;
		struct json j = JSON_INIT(&line);

		if (call->pid == 0 || call->settling || !call->progress || !call->patient)
			continue;
		if (now_ms - call->told_ms >= PROGRESS_MS) {
			call->told_ms = now_ms;
			notice_begin(&j, "notifications/progress");
			json_key(&j, "progressToken");
			json_raw(&j, str_of(call->progress));
			json_key_int(&j, "progress", (now_ms - call->started_ms) / 1000);
			json_key_int(&j, "total", call->limit_ms / 1000);
			json_key_str(&j, "message", "waiting for mail");
			notice_end(&j);
			(void)mcp_write(s, &line);
		}
		int64_t left_ms = PROGRESS_MS - (now_ms - call->told_ms);

		if (next_ms < 0 || left_ms < next_ms)
			next_ms = left_ms;
	}
	return next_ms;
}
