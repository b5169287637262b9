/* SPDX-License-Identifier: MIT */
/*
 * request.c - one line as a JSON-RPC message. A request with the modern keys in its _meta says everything about itself;
 * without them it belongs to a client that has shaken hands, or it is an error.
 */
#include <stdarg.h>

#include "cli/mcp/mcp.h"

#define SESSION_MAX 120

static const struct json_value empty_object = { JSON_OBJECT, { "{}", 2 } };

/* Returns false, so that `return bad(...)` ends the reading. */
MR_PRINTF(3, 4)
static bool
bad(struct mcp_request *r, enum mcp_code code, const char *fmt, ...)
{
	va_list args;

	r->kind = MCP_BAD;
	r->code = code;
	va_start(args, fmt);
	(void)vsnprintf(r->problem, sizeof(r->problem), fmt, args);
	va_end(args);
	return false;
}

bool
request_is(const struct mcp_request *r, const char *method)
{
	return str_eq(r->method, str_of(method));
}

/* A number with a fraction or an exponent is refused: what it would be compared with, nobody can say. */
static bool
is_id(struct json_value v)
{
	if (v.kind == JSON_STRING)
		return true;
	for (size_t i = 0; i < v.raw.len; i++)
		if (v.raw.ptr[i] == '.' || v.raw.ptr[i] == 'e' || v.raw.ptr[i] == 'E')
			return false;
	return v.kind == JSON_NUMBER;
}

static bool
find_object(struct json_value in, const char *key, struct json_value *ret)
{
	struct json_value found = json_get(in, key);

	*ret = found.kind == JSON_OBJECT ? found : empty_object;
	return !found.raw.ptr || found.kind == JSON_OBJECT;
}

/* `initialize` and `ping` are of the old era alone, `server/discover` and `subscriptions/listen` of the new one. */
static bool
read_era(struct mcp_request *r, bool initialized)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value version = json_get(r->meta, MCP_META "protocolVersion");
	struct json_value capabilities = json_get(r->meta, MCP_META "clientCapabilities");

	if (request_is(r, "initialize") && !version.raw.ptr)
		return true;
	if (!version.raw.ptr && !capabilities.raw.ptr && !json_get(r->meta, MCP_META "clientInfo").raw.ptr &&
	    !request_is(r, "server/discover") && !request_is(r, "subscriptions/listen"))
		return initialized || request_is(r, "ping") ||
		       bad(r, MCP_PARAMS, "_meta needs '" MCP_META "protocolVersion', or 'initialize' comes first");
	r->era = MCP_MODERN;
	if (version.kind != JSON_STRING)
		return bad(r, MCP_PARAMS, "_meta needs '" MCP_META "protocolVersion', a string");
	json_text(version, &text);
	if (strcmp(buf_z(&text), MCP_MODERN_VERSION) != 0) {
		(void)snprintf(r->version, sizeof(r->version), "%s", buf_z(&text));
		return bad(r, MCP_VERSION, "this version of the protocol is not supported");
	}
	return capabilities.kind == JSON_OBJECT ||
	       bad(r, MCP_PARAMS, "_meta needs '" MCP_META "clientCapabilities', an object");
}

/* True: it is a request, a notice or a response, well formed. */
static bool
read_envelope(struct mcp_request *r)
{
	struct json_value v;
	bool has_id = json_find(r->all, "id", &v);

	if (has_id && !is_id(v))
		return bad(r, MCP_INVALID, "'id' must be a string or a whole number");
	if (has_id)
		r->id = v.raw;
	r->kind = has_id ? MCP_REQUEST : MCP_NOTICE;
	if (!json_find(r->all, "jsonrpc", &v) || !str_eq(v.raw, STR("\"2.0\"")))
		return bad(r, MCP_INVALID, "'jsonrpc' must be \"2.0\"");
	if (!json_find(r->all, "method", &v)) {
		if (!has_id || (!json_find(r->all, "result", &v) && !json_find(r->all, "error", &v)))
			return bad(r, MCP_INVALID, "'method' is missing");
		r->kind = MCP_RESPONSE;
		return true;
	}
	if (v.kind != JSON_STRING)
		return bad(r, MCP_INVALID, "'method' must be a string");
	r->method = (struct mr_str){ v.raw.ptr + 1, v.raw.len - 2 };
	if (find_object(r->all, "params", &r->params) && find_object(r->params, "_meta", &r->meta))
		return true;
	if (has_id)
		return bad(r, MCP_PARAMS, "'params' and its '_meta' must be objects");
	r->method = STR(""); /* a notice is never answered */
	return true;
}

void
request_parse(struct mr_str line, bool initialized, struct mcp_request *ret)
{
	const char *problem = NULL;

	*ret = (struct mcp_request){ .id = STR("null"), .params = empty_object, .meta = empty_object };
	ret->method = STR("");
	if (!json_whole(line, &ret->all, &problem))
		(void)bad(ret, MCP_PARSE, "the line is not JSON: it %s", problem);
	else if (ret->all.kind != JSON_OBJECT)
		(void)bad(ret, MCP_INVALID,
		    ret->all.kind == JSON_ARRAY ? "batches are not supported: one message a line"
						: "a message must be an object");
	else if (read_envelope(ret) && ret->kind == MCP_REQUEST)
		(void)read_era(ret, initialized);
}

char *
request_session(const struct mcp_request *r, bool opencode)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	/* OpenCode has one server for all its sessions; our plugin there writes over whatever the model said. */
	if (opencode && json_find_text(json_get(r->params, "arguments"), MCP_SESSION_ARGUMENT, &name))
		return str_starts(buf_str(&name), "opencode-") && name.len <= SESSION_MAX ? buf_take(&name) : NULL;
	buf_adds(&name, "codex-");
	size_t before = name.len;

	if (!json_find_text(r->meta, "threadId", &name) || name.len == before || name.len > SESSION_MAX ||
	    strlen(buf_z(&name)) != name.len)
		return NULL;
	return buf_take(&name);
}
