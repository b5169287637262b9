/* SPDX-License-Identifier: MIT */
/*
 * mcp.c - /mcp: Streamable HTTP in front of the server that `mailroom mcp` is. Each request is a process of its own,
 * which runs as the agent of the bearer's token: no session is kept here, so nothing is lost with this process, and
 * none is needed, because that server knows nothing of one call in the next. A client of the handshake era gets no
 * Mcp-Session-Id and no stream of its own (GET is 405): what it would subscribe to, `wait` tells.
 *
 * A call that waits (a tool with patience, a subscription) is answered by a stream from a thread of its own; when the
 * client leaves, the process ends. Everything else is answered by the worker, because the status depends on the answer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/spawn.h"
#include "cli/mcp/mcp.h"
#include "message/mime.h"
#include "serve/serve.h"

#define CALLS_MAX 64
#define QUICK_MS 20000

static const char *const legacy_versions[] = { "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25" };

static atomic_size_t calls; /* that stream */

struct call { /* one process, and what becomes of its lines */
	char *spec, *agent;
	struct buf line;       /* the request */
	struct stream *stream; /* NULL: it is no stream */
	bool conformance;
	size_t passed; /* bytes of its output that were handed on */
	bool answered;
};

/* ---- Replies ---- */

static enum mr_rc
refuse(struct reply *reply, unsigned status, int code, const char *message)
{
	struct json j = JSON_INIT(&reply->body);

	buf_clear(&reply->body);
	reply->status = status;
	json_open(&j, '{');
	json_cells(&j, CELLS(kv_str("jsonrpc", "2.0"), kv_raw("id", STR("null")), kv_open("error"),
			   kv_int("code", code), kv_str("message", message), kv_close()));
	json_close(&j);
	buf_addc(&reply->body, '\n');
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
		buf_adds(&event, "event: message\ndata: ");
		buf_add(&event, line);
		buf_adds(&event, "\n\n");
		if (c->stream)
			(void)stream_add(c->stream, buf_str(&event));
	}
	return c->answered;
}

static bool
has_left(void *ctx)
{
	return !stream_is_there(((struct call *)ctx)->stream);
}

static enum mr_rc
run(struct call *c, struct spawned *ret, bool quick, struct mr_error *err)
{
	const char *argv[] = { "/proc/self/exe", "--room", c->spec, "--as", c->agent, "mcp", "--greeted",
		c->conformance ? "--conformance" : NULL, NULL };
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
	free(c->spec);
	free(c->agent);
	free(c);
}

static void *
run_streamed(void *ctx)
{
	struct call *c = ctx;
	struct spawned ran = { 0 };

	(void)run(c, &ran, false, IGNORED);
	stream_end(c->stream); /* without an answer, if it died: the client asks again */
	calls--;
	spawned_done(&ran);
	call_free(c);
	return NULL;
}

static enum mr_rc
begin_stream(struct request *req, struct reply *reply, struct call *c, struct mr_error *err)
{
	bool fits = calls++ < CALLS_MAX;
	pthread_t thread;
	pthread_attr_t detached;

	(void)pthread_attr_init(&detached);
	(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	c->stream = fits ? stream_new(req, reply, MCP_LINE_MAX) : NULL;
	bool begun = c->stream && pthread_create(&thread, &detached, run_streamed, c) == 0;

	(void)pthread_attr_destroy(&detached);
	if (begun) {
		reply->type = "text/event-stream";
		return MR_OK;
	}
	calls--;
	if (c->stream)
		stream_end(c->stream);
	call_free(c);
	TRY(mr_got(!fits, err));
	reply_header(reply, "Retry-After", "1");
	return refuse(reply, 503, MCP_INTERNAL, "too many calls are under way");
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
mismatch(const struct request *req, struct json_value message)
{
	static const struct {
		const char *method, *member;
	} named[] = { { "tools/call", "name" }, { "prompts/get", "name" }, { "resources/read", "uri" } };
	mr_auto(buf_done) struct buf method = BUF_INIT, said = BUF_INIT, name = BUF_INIT, header = BUF_INIT;
	const char *version = req_header(req, "MCP-Protocol-Version"), *of_method = req_header(req, "Mcp-Method");
	const char *of_name = req_header(req, "Mcp-Name");
	struct json_value params = { JSON_OBJECT, STR("{}") }, meta = params;

	if (!json_find_text(message, "method", &method))
		return "a client has nothing to answer";
	if (!version)
		return "MCP-Protocol-Version is missing";
	(void)json_find(message, "params", &params);
	(void)json_find(params, "_meta", &meta);
	if (json_find_text(meta, MCP_META "protocolVersion", &said) &&
	    !str_eq(str_trim(str_of(version)), buf_str(&said)))
		return "MCP-Protocol-Version is not the version that the body says";
	if (!of_method)
		return "Mcp-Method is missing";
	if (!str_eq(str_trim(str_of(of_method)), buf_str(&method)))
		return "Mcp-Method is not the method that the body says";
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (strcmp(named[i].method, buf_z(&method)) != 0)
			continue;
		if (!of_name)
			return "Mcp-Name is missing";
		header_text(str_of(of_name), &header);
		if (!json_find_text(params, named[i].member, &name) || !str_eq(buf_str(&header), buf_str(&name)))
			return "Mcp-Name is not the name that the body says";
	}
	return NULL;
}

static bool
is_legacy(const char *version)
{
	for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++)
		if (strcmp(version, legacy_versions[i]) == 0)
			return true;
	return false;
}

static enum mr_rc
forward(struct request *req, struct reply *reply, bool modern, bool complete, bool streams, struct mr_error *err)
{
	struct call *c = calloc(1, sizeof(*c));
	struct spawned ran = { 0 };
	struct mr_str answer = STR(""), line;

	TRY(mr_got(c != NULL, err));
	c->spec = strdup(req->server->spec);
	c->agent = strdup(req->agent);
	c->conformance = req->server->conformance;
	for (size_t i = 0; i < req->body.len; i++) /* a line is a message */
		buf_addc(&c->line, req->body.ptr[i] == '\n' || req->body.ptr[i] == '\r' ? ' ' : req->body.ptr[i]);
	buf_addc(&c->line, '\n');
	if (!c->spec || !c->agent || !buf_ok(&c->line)) {
		call_free(c);
		return mr_nomem(err);
	}
	if (streams)
		return begin_stream(req, reply, c, err);
	enum mr_rc rc = run(c, &ran, true, err);
	struct mr_str lines = buf_str(&ran.out);

	while (rc == MR_OK && str_line(&lines, &line)) {
		if (is_answer(line))
			answer = line;
		buf_adds(&reply->body, "event: message\ndata: ");
		buf_add(&reply->body, line);
		buf_adds(&reply->body, "\n\n");
	}
	if (rc == MR_OK && answer.len == 0) {
		(void)refuse(reply, 500, MCP_INTERNAL, "the server behind this path gave no answer");
	} else if (rc == MR_OK && answer.ptr > ran.out.ptr) {
		reply->type = "text/event-stream"; /* notices came before it */
	} else if (rc == MR_OK) {
		buf_clear(&reply->body);
		buf_add(&reply->body, answer);
		reply->status = modern ? status_of_answer(answer, complete) : 200;
	}
	spawned_done(&ran);
	call_free(c);
	return rc;
}

enum mr_rc
mcp(struct request *req, struct reply *reply, struct mr_error *err)
{
	const char *accept = req_header(req, "Accept"), *type = req_header(req, "Content-Type");
	const char *version = req_header(req, "MCP-Protocol-Version"), *problem;
	mr_auto(buf_done) struct buf method = BUF_INIT, said = BUF_INIT, name = BUF_INIT;
	struct json_value message, params, meta, id, other;

	reply->type = "application/json";
	if (strcmp(req->method, "POST") != 0) {
		reply_header(reply, "Allow", "POST");
		return refuse(reply, 405, -32000, "messages are posted; there is no stream without one");
	}
	if (!accept || !strstr(accept, "application/json") || !strstr(accept, "text/event-stream"))
		return refuse(reply, 406, -32000, "Accept must name application/json and text/event-stream");
	if (!type || !str_starts(str_of(type), "application/json"))
		return refuse(reply, 415, -32000, "the body must be application/json");
	if (!json_whole(req->body, &message, &problem))
		return refuse(reply, 400, MCP_PARSE, "the body is no JSON");
	if (message.kind != JSON_OBJECT)
		return refuse(reply, 400, MCP_INVALID, "one message in a body");
	bool has_params = json_find(message, "params", &params),
	     has_meta = has_params && json_find(params, "_meta", &meta);
	bool says = has_meta && json_find_text(meta, MCP_META "protocolVersion", &said);
	bool modern = says || (version && !is_legacy(version));
	bool complete = says && json_find(meta, MCP_META "clientCapabilities", &other);
	const char *wrong = modern ? mismatch(req, message) : NULL;

	if (wrong)
		return refuse(reply, 400, -32020, wrong);
	if (!json_find_text(message, "method", &method) || !json_find(message, "id", &id)) {
		reply->status = 202; /* nothing that is told to us changes anything: each request is on its own */
		return MR_OK;
	}
	if (has_params)
		(void)json_find_text(params, "name", &name);
	const struct tool *tool = strcmp(buf_z(&method), "tools/call") == 0 ? tool_named(buf_str(&name)) : NULL;
	bool streams = (!modern || (complete && strcmp(buf_z(&said), MCP_MODERN_VERSION) == 0)) &&
		       ((tool && tool->patience_s > 0) || strcmp(buf_z(&method), "subscriptions/listen") == 0);

	return forward(req, reply, modern, complete, streams, err);
}
