/* SPDX-License-Identifier: MIT */
/* answer.c - lines for the client: results in the form of the request's era, errors, notices. */
#include <stdarg.h>

#include "cli/mcp/mcp.h"

static void
add_envelope(struct json *j, const struct mcp_request *r)
{
	json_open(j, '{');
	json_key_str(j, "jsonrpc", "2.0");
	json_key(j, "id");
	json_raw(j, r->id);
}

void
answer_begin(struct json *j, const struct mcp_request *r)
{
	add_envelope(j, r);
	json_key(j, "result");
	json_open(j, '{');
	if (r->era == MCP_MODERN)
		json_key_str(j, "resultType", "complete");
}

void
answer_cache(struct json *j, const struct mcp_request *r, int64_t ttl_ms, bool everybody)
{
	if (r->era != MCP_MODERN)
		return;
	json_key_int(j, "ttlMs", ttl_ms);
	json_key_str(j, "cacheScope", everybody ? "public" : "private");
}

void
answer_end(struct json *j, const struct mcp_request *r)
{
	if (r->era == MCP_MODERN) {
		json_key(j, "_meta");
		json_open(j, '{');
		json_key(j, MCP_META "serverInfo");
		json_open(j, '{');
		json_key_str(j, "name", "mailroom");
		json_key_str(j, "version", MAILROOM_VERSION);
		json_close(j);
		json_close(j);
	}
	while (j->depth > 0)
		json_close(j);
	buf_addc(j->out, '\n');
}

static void
add_error(struct buf *line, const struct mcp_request *r, enum mcp_code code, const char *message, const char *uri)
{
	struct json j = JSON_INIT(line);

	add_envelope(&j, r);
	json_key(&j, "error");
	json_open(&j, '{');
	json_key_int(&j, "code", code);
	json_key_str(&j, "message", message);
	if (code == MCP_VERSION) {
		json_key(&j, "data");
		json_open(&j, '{');
		json_key_names(&j, "supported", &(struct mr_names){ (char *[]){ (char[]){ MCP_MODERN_VERSION } }, 1 });
		json_key_str(&j, "requested", r->version);
		json_close(&j);
	}
	if (uri) {
		json_key(&j, "data");
		json_open(&j, '{');
		json_key_str(&j, "uri", uri);
		json_close(&j);
	}
	while (j.depth > 0)
		json_close(&j);
	buf_addc(line, '\n');
}

void
answer_error(struct buf *line, const struct mcp_request *r, enum mcp_code code, const char *fmt, ...)
{
	char message[700];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	add_error(line, r, code, message, NULL);
}

void
notice_begin(struct json *j, const char *method)
{
	json_open(j, '{');
	json_key_str(j, "jsonrpc", "2.0");
	json_key_str(j, "method", method);
	json_key(j, "params");
	json_open(j, '{');
}

void
notice_end(struct json *j)
{
	while (j->depth > 0)
		json_close(j);
	buf_addc(j->out, '\n');
}

bool
mcp_write(struct mcp_server *s, const struct buf *line)
{
	if (!s->gone && (!buf_ok(line) || out_write(line->ptr, line->len) < 0))
		s->gone = true; /* half a line may be out: nothing that follows could be understood */
	return !s->gone;
}

void
mcp_error(struct mcp_server *s, const struct mcp_request *r, enum mcp_code code, const char *fmt, ...)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char message[700];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	add_error(&line, r, code, message, NULL);
	(void)mcp_write(s, &line);
}

void
mcp_no_resource(struct mcp_server *s, const struct mcp_request *r, const char *uri)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char message[300];

	(void)snprintf(message, sizeof(message), "there is no resource '%.200s'", uri);
	add_error(&line, r, r->era == MCP_MODERN ? MCP_PARAMS : MCP_NO_RESOURCE, message, uri);
	(void)mcp_write(s, &line);
}
