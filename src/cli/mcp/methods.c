/* SPDX-License-Identifier: MIT */
/* methods.c - what each method of the protocol answers. */
#include "cli/mcp/mcp.h"

#define CONSTANT_MS (60 * 60 * 1000) /* what only another version of mailroom changes */

/* ---- Opening ---- */

static void
add_capabilities(struct mcp_server *s, struct json *j, enum mcp_era era)
{
	json_key(j, "capabilities");
	json_open(j, '{');
	json_key(j, "tools");
	json_raw(j, STR("{}"));
	json_key(j, "resources");
	json_raw(j, STR("{\"subscribe\":true}"));
	if (s->extra)
		s->extra->capabilities(j, era);
	json_close(j);
}

static void
initialize(struct mcp_server *s, const struct mcp_request *r)
{
	static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };
	mr_auto(buf_done) struct buf line = BUF_INIT, asked = BUF_INIT;
	struct json j = JSON_INIT(&line);
	const char *version = versions[0];

	if (!json_find_text(r->params, "protocolVersion", &asked)) {
		mcp_error(s, r, MCP_PARAMS, "'protocolVersion' is missing");
		return;
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (strcmp(versions[i], buf_z(&asked)) == 0)
			version = versions[i];
	s->initialized = true;
	answer_begin(&j, r);
	json_key_str(&j, "protocolVersion", version);
	add_capabilities(s, &j, MCP_LEGACY);
	json_key(&j, "serverInfo");
	json_open(&j, '{');
	json_key_str(&j, "name", "mailroom");
	json_key_str(&j, "title", "mailroom");
	json_key_str(&j, "version", MAILROOM_VERSION);
	json_close(&j);
	json_key_str(&j, "instructions", mcp_instructions);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

static void
discover(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);

	answer_begin(&j, r);
	json_key(&j, "supportedVersions");
	json_raw(&j, STR("[\"" MCP_MODERN_VERSION "\"]"));
	add_capabilities(s, &j, MCP_MODERN);
	json_key_str(&j, "instructions", mcp_instructions);
	answer_cache(&j, r, CONSTANT_MS, true);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

static void
ping(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);

	answer_begin(&j, r);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

/* ---- Lists ---- */

static void
add_inbox_resource(struct json *j)
{
	json_open(j, '{');
	json_key_str(j, "uri", MCP_INBOX_URI);
	json_key_str(j, "name", "inbox");
	json_key_str(j, "title", "Unread mail");
	json_key_str(j, "description", "Your unread mail as a list; reading it changes nothing");
	json_key_str(j, "mimeType", "text/plain");
	json_close(j);
}

static void
list(struct mcp_server *s, const struct mcp_request *r, const char *what)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	struct json_value cursor;

	if (json_find(r->params, "cursor", &cursor) && cursor.kind != JSON_NULL) {
		mcp_error(s, r, MCP_PARAMS, "there is one page: no cursor was given out");
		return;
	}
	answer_begin(&j, r);
	json_key(&j, what);
	json_open(&j, '[');
	if (strcmp(what, "tools") == 0)
		for (size_t i = 0; i < mcp_tools_n; i++)
			tool_json(&j, &mcp_tools[i]);
	if (strcmp(what, "resources") == 0)
		add_inbox_resource(&j);
	if (s->extra)
		s->extra->list(&j, what, r->era);
	json_close(&j);
	answer_cache(&j, r, CONSTANT_MS, true);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

/* ---- Calls ---- */

static int64_t
limit_of(const struct tool *tool, const struct args *args)
{
	uint64_t seconds = (uint64_t)tool->patience_s;
	const char *given = args_text(args, "timeout");

	if (given)
		(void)str_to_u64(str_of(given), &seconds);
	return (int64_t)seconds * 1000;
}

static void
start_tool(struct mcp_server *s, const struct mcp_request *r, const struct tool *tool, struct json_value arguments)
{
	mr_auto(args_done) struct args args = { 0 };
	mr_auto(buf_done) struct buf problem = BUF_INIT;
	struct job job = { .tool = tool };
	const char *wrong = NULL;

	if (!args_read(tool, arguments, &args, &problem))
		call_answer_tool_error(s, r, buf_z(&problem), NULL);
	else if (!tool->command(&args, &job.words, &wrong))
		call_answer_tool_error(s, r, wrong, NULL);
	else if (job.words.failed)
		mcp_error(s, r, MCP_INTERNAL, "out of memory");
	else
		(void)call_start(s, r, &job, limit_of(tool, &args));
	words_done(&job.words);
}

static void
call_tool(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct json_value arguments = { JSON_OBJECT, STR("{}") }, given;

	if (!json_find_text(r->params, "name", &name)) {
		mcp_error(s, r, MCP_PARAMS, "'name' of the tool is missing");
		return;
	}
	const struct tool *tool = tool_named(buf_str(&name));

	if (!tool) {
		mcp_error(s, r, MCP_PARAMS, "there is no tool '%.60s'", buf_z(&name));
		return;
	}
	if (json_find(r->params, "arguments", &given) && given.kind != JSON_NULL)
		arguments = given;
	if (arguments.kind != JSON_OBJECT) {
		mcp_error(s, r, MCP_PARAMS, "'arguments' must be an object");
		return;
	}
	start_tool(s, r, tool, arguments);
}

static void
read_resource(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf uri = BUF_INIT;
	struct job job = { .tool = tool_named(STR("inbox")), .resource = true };

	if (!json_find_text(r->params, "uri", &uri)) {
		mcp_error(s, r, MCP_PARAMS, "'uri' of the resource is missing");
		return;
	}
	if (strcmp(buf_z(&uri), MCP_INBOX_URI) != 0) {
		mcp_no_resource(s, r, buf_z(&uri));
		return;
	}
	words_add(&job.words, "inbox");
	if (!job.words.failed)
		(void)call_start(s, r, &job, 0);
	words_done(&job.words);
}

/* ---- Choosing ---- */

static void
subscribe(struct mcp_server *s, const struct mcp_request *r)
{
	subscribe_legacy(s, r, true);
}

static void
unsubscribe(struct mcp_server *s, const struct mcp_request *r)
{
	subscribe_legacy(s, r, false);
}

static void
list_tools(struct mcp_server *s, const struct mcp_request *r)
{
	list(s, r, "tools");
}

static void
list_resources(struct mcp_server *s, const struct mcp_request *r)
{
	list(s, r, "resources");
}

static void
list_templates(struct mcp_server *s, const struct mcp_request *r)
{
	list(s, r, "resourceTemplates");
}

enum { IN_LEGACY = 1, IN_MODERN = 2 };

static const struct {
	const char *name;
	unsigned eras;
	void (*answer)(struct mcp_server *s, const struct mcp_request *r);
} methods[] = {
	{ "initialize", IN_LEGACY, initialize },
	{ "ping", IN_LEGACY, ping },
	{ "server/discover", IN_MODERN, discover },
	{ "tools/list", IN_LEGACY | IN_MODERN, list_tools },
	{ "tools/call", IN_LEGACY | IN_MODERN, call_tool },
	{ "resources/list", IN_LEGACY | IN_MODERN, list_resources },
	{ "resources/templates/list", IN_LEGACY | IN_MODERN, list_templates },
	{ "resources/read", IN_LEGACY | IN_MODERN, read_resource },
	{ "resources/subscribe", IN_LEGACY, subscribe },
	{ "resources/unsubscribe", IN_LEGACY, unsubscribe },
	{ "subscriptions/listen", IN_MODERN, subscribe_listen },
};

static void
answer(struct mcp_server *s, const struct mcp_request *r)
{
	unsigned era = r->era == MCP_MODERN ? IN_MODERN : IN_LEGACY;

	if (call_known(s, r->id) || subscribe_known(s, r->id)) {
		mcp_error(s, r, MCP_INVALID, "another request with this id is running");
		return;
	}
	if (s->extra && s->extra->request(s, r))
		return;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if ((methods[i].eras & era) && request_is(r, methods[i].name)) {
			methods[i].answer(s, r);
			return;
		}
	mcp_error(s, r, MCP_NO_METHOD, "there is no method '%.*s'", (int)(r->method.len < 60 ? r->method.len : 60),
	    r->method.ptr);
}

static void
notice(struct mcp_server *s, const struct mcp_request *r)
{
	struct json_value id;

	if (!request_is(r, "notifications/cancelled") || !json_find(r->params, "requestId", &id))
		return;
	call_cancel(s, id.raw);
	subscribe_cancel(s, id.raw);
}

void
mcp_handle(struct mcp_server *s, const struct mcp_request *r)
{
	switch (r->kind) {
	case MCP_REQUEST:
		answer(s, r);
		break;
	case MCP_NOTICE:
		notice(s, r);
		break;
	case MCP_RESPONSE: /* we ask clients nothing */
		break;
	case MCP_BAD:
		mcp_error(s, r, r->code, "%s", r->problem);
		break;
	}
}
