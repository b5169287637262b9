/* SPDX-License-Identifier: MIT */
/*
 * mcp.c - /mcp: Streamable HTTP in front of the server that `mailroom mcp` is. Each request is a process of its own,
 * which runs as the agent of the bearer's token: no session is kept here, so nothing is lost with this process, and
 * none is needed, because that server knows nothing of one call in the next. What a session would be for is one
 * subscription of a client of the handshake era, and there is one thing to subscribe to: its GET is a stream that tells
 * of mail for the agent of its token, whether it said resources/subscribe on the way or not.
 *
 * A call that waits (a tool with patience, a subscription) is answered by a stream from a thread of its own; when the
 * client leaves, the process ends. Everything else is answered by the worker, because the status depends on the answer.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/spawn.h"
#include "cli/mcp/mcp.h"
#include "message/mime.h"
#include "serve/serve.h"

#define CALLS_MAX 64
#define LISTENERS_MAX 128
#define QUICK_MS 20000
#define LISTEN                                                                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"" MCP_INBOX_URI "\"}}"

static atomic_size_t calls, listeners; /* that stream */

struct call { /* one process, and what becomes of its lines */
	const struct server *server;
	char agent[MR_ADDRESS_MAX + 1];
	struct buf line;       /* the request */
	struct stream *stream; /* NULL: it is no stream */
	atomic_size_t *counted;
	bool listens;  /* its answer is of no interest, only what comes behind it */
	size_t passed; /* bytes of its output that were handed on */
	bool answered;
};

/* ---- Replies ---- */

static enum mr_rc
refuse(const struct request *req, unsigned status, int code, const char *message)
{
	req->reply->status = status;
	answer_error(req->out, &(struct mcp_request){ .id = STR("null") }, (enum mcp_code)code, message, NULL);
	return MR_OK;
}

/* The status that goes with an answer of the newer era; `complete`: its request said what every request must. */
static unsigned
status_of_answer(struct mr_str line, bool complete)
{
	struct json_value all_of_it, error, code;
	const char *problem;

	if (!json_whole(line, &all_of_it, &problem) || !json_find(all_of_it, "error", &error) ||
	    !json_find(error, "code", &code))
		return 200;
	if (str_eq(code.raw, STR("-32601")))
		return 404;
	return !complete || str_eq(code.raw, STR("-32021")) || str_eq(code.raw, STR("-32022")) ? 400 : 200;
}

/* ---- The process ---- */

/* An answer has a result or an error; a notice has neither. */
static bool
is_answer(struct mr_str line)
{
	struct json_value message, method;
	const char *problem;

	return json_whole(line, &message, &problem) && !json_find(message, "method", &method);
}

static void
add_event(struct buf *out, struct mr_str line)
{
	buf_adds(out, "event: message\ndata: ");
	buf_add(out, line);
	buf_adds(out, "\n\n");
}

/* Hands on each whole line. True: that was the answer, and the process may leave. */
static bool
pass_lines(void *ctx, const struct buf *out)
{
	struct call *c = ctx;
	struct mr_str rest = { out->ptr + c->passed, out->len - c->passed }, line;

	while (memchr(rest.ptr, '\n', rest.len) && str_line(&rest, &line)) {
		mr_auto(buf_done) struct buf event = BUF_INIT;

		c->passed = (size_t)(rest.ptr - out->ptr);
		c->answered |= is_answer(line);
		add_event(&event, line);
		if (c->stream && c->listens && is_answer(line))
			(void)stream_add(c->stream, STR(":\n\n")); /* its client sees that it is subscribed */
		else if (c->stream)
			(void)stream_add(c->stream, buf_str(&event));
	}
	return c->answered && !c->listens;
}

static bool
has_left(void *ctx)
{
	return !stream_add(((struct call *)ctx)->stream, STR(""));
}

static enum mr_rc
run(struct call *c, struct spawned *ret, bool quick, struct mr_error *err)
{
	const char *argv[] = { "/proc/self/exe", "--room", c->server->spec, "--as", c->agent, "mcp", "--greeted",
		c->server->conformance ? "--conformance" : NULL, NULL };
	struct spawn what = { .argv = argv, .input = buf_str(&c->line), .enough = pass_lines, .enough_ctx = c };

	what.output_max = MCP_LINE_MAX;
	if (quick)
		what.limit_ms = QUICK_MS;
	else
		what.stop = has_left, what.stop_ctx = c;
	return spawn_run(&what, ret, err);
}

static void
call_free(struct call *c)
{
	if (!c)
		return;
	buf_done(&c->line);
	free(c);
}

static struct call *
call_new(const struct request *req, struct mr_str message)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct call){ .server = req->server };
	memcpy(c->agent, req->agent, sizeof(c->agent));
	for (size_t i = 0; i < message.len; i++) /* a line is a message */
		buf_addc(&c->line, message.ptr[i] == '\n' || message.ptr[i] == '\r' ? ' ' : message.ptr[i]);
	buf_addc(&c->line, '\n');
	if (buf_ok(&c->line))
		return c;
	call_free(c);
	return NULL;
}

static void *
run_streamed(void *ctx)
{
	struct call *c = ctx;
	struct spawned ran = { 0 };

	(void)run(c, &ran, false, IGNORED);
	stream_end(c->stream); /* without an answer, if it died: the client asks again */
	--*c->counted;
	spawned_done(&ran);
	call_free(c);
	return NULL;
}

static enum mr_rc
begin_stream(struct request *req, struct call *c, struct mr_error *err)
{
	pthread_t thread;

	c->counted = c->listens ? &listeners : &calls;
	bool fits = ++*c->counted <= (c->listens ? LISTENERS_MAX : CALLS_MAX);

	c->stream = fits ? stream_new(req, MCP_LINE_MAX) : NULL;
	if (c->stream && pthread_create(&thread, NULL, run_streamed, c) == 0) {
		(void)pthread_detach(thread);
		req->reply->type = "text/event-stream";
		return MR_OK;
	}
	--*c->counted;
	if (c->stream)
		stream_end(c->stream);
	call_free(c);
	TRY(mr_got(!fits, err));
	reply_header(req, "Retry-After", "1");
	return refuse(req, 503, MCP_INTERNAL, "too many calls are under way");
}

/* ---- The request ---- */

/* "=?base64?...?=" is how a header says what it could not say otherwise. */
static void
header_text(struct mr_str value, struct buf *out)
{
	value = str_trim(value);
	if (value.len >= 11 && str_starts(value, "=?base64?") && str_ends(value, "?="))
		base64_decode(out, (struct mr_str){ value.ptr + 9, value.len - 11 });
	else
		buf_add(out, value);
}

/* Of a request of the newer era, the headers must say what the body says. NULL: they do. */
static const char *
mismatch(const struct request *req, const struct mcp_request *r)
{
	static const struct {
		const char *method, *member;
	} named[] = { { "tools/call", "name" }, { "prompts/get", "name" }, { "resources/read", "uri" } };
	mr_auto(buf_done) struct buf said = BUF_INIT, name = BUF_INIT, header = BUF_INIT;
	const char *version = req_header(req, "MCP-Protocol-Version"), *of_method = req_header(req, "Mcp-Method");
	const char *of_name = req_header(req, "Mcp-Name");

	if (r->method.len == 0)
		return "a response is not accepted: this server asks its clients nothing";
	if (!version)
		return "MCP-Protocol-Version is missing";
	if (json_find_text(r->meta, MCP_META "protocolVersion", &said) &&
	    !str_eq(str_trim(str_of(version)), buf_str(&said)))
		return "MCP-Protocol-Version is not the version in the body";
	if (!of_method)
		return "Mcp-Method is missing";
	if (!str_eq(str_trim(str_of(of_method)), r->method))
		return "Mcp-Method is not the method in the body";
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (!request_is(r, named[i].method))
			continue;
		if (!of_name)
			return "Mcp-Name is missing";
		header_text(str_of(of_name), &header);
		if (!json_find_text(r->params, named[i].member, &name) || !str_eq(buf_str(&header), buf_str(&name)))
			return "Mcp-Name is not the name in the body";
	}
	return NULL;
}

/* Waits for the answer. Of the newer era, its error says the status. */
static enum mr_rc
answer_now(struct request *req, struct call *c, bool modern, bool complete, struct mr_error *err)
{
	struct spawned ran = { 0 };
	struct mr_str answer = STR(""), line;
	enum mr_rc rc = run(c, &ran, true, err);
	struct mr_str lines = buf_str(&ran.out);

	while (rc == MR_OK && str_line(&lines, &line)) {
		answer = is_answer(line) ? line : answer;
		add_event(req->out, line);
	}
	if (rc == MR_OK && answer.len > 0 && answer.ptr > ran.out.ptr) {
		req->reply->type = "text/event-stream"; /* notices came before it */
	} else if (rc == MR_OK) {
		buf_clear(req->out);
		buf_add(req->out, answer);
		req->reply->status = modern ? status_of_answer(answer, complete) : 200;
		if (answer.len == 0)
			(void)refuse(req, 500, MCP_INTERNAL, "the server behind this path gave no answer");
	}
	spawned_done(&ran);
	call_free(c);
	return rc;
}

enum mr_rc
mcp(struct request *req, struct mr_error *err)
{
	const char *accept = req_header(req, "Accept"), *type = req_header(req, "Content-Type");
	const char *version = req_header(req, "MCP-Protocol-Version"), *wrong;
	bool get = strcmp(req->method, "GET") == 0;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct mcp_request r;

	req->reply->type = "application/json";
	if (!get && strcmp(req->method, "POST") != 0) {
		reply_header(req, "Allow", "GET, POST");
		return refuse(req, 405, -32000, "there is no session to end");
	}
	if (!accept || !strstr(accept, "text/event-stream") || (!get && !strstr(accept, "application/json")))
		return refuse(req, 406, -32000, "Accept must name application/json and text/event-stream");
	if (!get && (!type || !str_starts(str_of(type), "application/json")))
		return refuse(req, 415, -32000, "the body must be application/json");
	request_parse(get ? STR(LISTEN) : req->body, true, &r);
	if (r.all.kind != JSON_OBJECT)
		return refuse(req, 400, r.code, r.problem);
	bool modern = !get && (r.era == MCP_MODERN || (version && !mcp_is_legacy(version)));

	if (modern && (wrong = mismatch(req, &r)))
		return refuse(req, 400, -32020, wrong);
	if (r.kind == MCP_NOTICE || r.kind == MCP_RESPONSE) {
		req->reply->status = 202; /* nothing that is told to us changes anything: each request is on its own */
		return MR_OK;
	}
	bool complete = r.kind == MCP_REQUEST && r.era == MCP_MODERN;
	const struct tool *tool =
	    request_is(&r, "tools/call") && json_find_text(r.params, "name", &name) ? tool_named(buf_str(&name)) : NULL;
	struct call *c = call_new(req, get ? STR(LISTEN) : req->body);

	TRY(mr_got(c != NULL, err));
	c->listens = get;
	if (get ||
	    ((!modern || complete) && ((tool && tool->patience_s > 0) || request_is(&r, "subscriptions/listen"))))
		return begin_stream(req, c, err);
	return answer_now(req, c, modern, complete, err);
}
