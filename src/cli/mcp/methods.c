/* SPDX-License-Identifier: MIT */
/* methods.c - what each method of the protocol answers, and the lines for the client: results in the form of the
 * request's era, errors, notices. */
#include <stdarg.h>

#include "cli/mcp/mcp.h"
#include "cli/view.h"

#define CONSTANT_MS (60 * 60 * 1000) /* what only another version of mailroom changes */

static const struct mr_names modern = { (char *[]){ (char[]){ MCP_MODERN_VERSION } }, 1 };

/* ---- Lines ---- */

void
line_end(struct json *j)
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
answer_begin(struct json *j, const struct mcp_request *r)
{
	json_cells(j, CELLS(kv_open(""), kv_str("jsonrpc", "2.0"), kv_raw("id", r->id), kv_open("result"),
			  kv_if("resultType", r->era == MCP_MODERN ? "complete" : NULL)));
}

void
answer_cache(struct json *j, const struct mcp_request *r, int64_t ttl_ms, bool everybody)
{
	if (r->era == MCP_MODERN)
		json_cells(j, CELLS(kv_int("ttlMs", ttl_ms), kv_str("cacheScope", everybody ? "public" : "private")));
}

void
answer_end(struct json *j, const struct mcp_request *r)
{
	if (r->era == MCP_MODERN)
		json_cells(j, CELLS(kv_open("_meta"), kv_open(MCP_META "serverInfo"), kv_str("name", "mailroom"),
				  kv_str("version", MAILROOM_VERSION), kv_close(), kv_close()));
	line_end(j);
}

void
answer_error(struct buf *line, const struct mcp_request *r, enum mcp_code code, const char *message, const char *uri)
{
	struct json j = JSON_INIT(line);

	json_cells(&j, CELLS(kv_open(""), kv_str("jsonrpc", "2.0"), kv_raw("id", r->id), kv_open("error"),
			   kv_int("code", code), kv_str("message", message)));
	if (code == MCP_VERSION)
		json_cells(&j, CELLS(kv_open("data"), kv_names("supported", &modern), kv_str("requested", r->version)));
	else if (uri)
		json_cells(&j, CELLS(kv_open("data"), kv_str("uri", uri)));
	line_end(&j);
}

bool
mcp_error(struct mcp_server *s, const struct mcp_request *r, enum mcp_code code, const char *fmt, ...)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char message[700];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	answer_error(&line, r, code, message, NULL);
	(void)mcp_write(s, &line);
	return false;
}

bool
mcp_tool_error(struct mcp_server *s, const struct mcp_request *r, const char *message)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);

	answer_begin(&j, r);
	json_cells(&j, CELLS(kv_list("content"), kv_open(""), kv_str("type", "text"), kv_str("text", message),
			   kv_close(), kv_close(), kv_bool("isError", true)));
	answer_end(&j, r);
	(void)mcp_write(s, &line);
	return false;
}

void
notice_begin(struct json *j, const char *method)
{
	json_cells(j, CELLS(kv_open(""), kv_str("jsonrpc", "2.0"), kv_str("method", method), kv_open("params")));
}

/* ---- Opening ---- */

static void
add_capabilities(struct mcp_server *s, struct json *j, enum mcp_era era)
{
	json_cells(j, CELLS(kv_open("capabilities"), kv_raw("tools", STR("{}")), kv_open("resources"),
			  kv_bool("subscribe", true), kv_close()));
	if (s->extra)
		s->extra->capabilities(j, era);
	json_close(j);
}

static const char *const versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL };

bool
mcp_is_legacy(const char *version)
{
	return word_at(versions, version) >= 0;
}

static bool
initialize(struct mcp_server *s, const struct mcp_request *r, struct json *j)
{
	mr_auto(buf_done) struct buf asked = BUF_INIT;

	if (!json_find_text(r->params, "protocolVersion", &asked))
		return mcp_error(s, r, MCP_PARAMS, "'protocolVersion' is missing");
	s->initialized = true;
	json_key_str(j, "protocolVersion", mcp_is_legacy(buf_z(&asked)) ? buf_z(&asked) : versions[0]);
	add_capabilities(s, j, MCP_LEGACY);
	json_cells(j, CELLS(kv_open("serverInfo"), kv_str("name", "mailroom"), kv_str("title", "mailroom"),
			  kv_str("version", MAILROOM_VERSION), kv_close(), kv_str("instructions", mcp_instructions)));
	return true;
}

static bool
discover(struct mcp_server *s, const struct mcp_request *r, struct json *j)
{
	json_cells(j, CELLS(kv_names("supportedVersions", &modern)));
	add_capabilities(s, j, MCP_MODERN);
	json_key_str(j, "instructions", mcp_instructions);
	answer_cache(j, r, CONSTANT_MS, true);
	return true;
}

/* ---- Lists ---- */

static bool
list(struct mcp_server *s, const struct mcp_request *r, struct json *j)
{
	const char *what = request_is(r, "tools/list")       ? "tools"
			   : request_is(r, "resources/list") ? "resources"
							     : "resourceTemplates";

	if (json_get(r->params, "cursor").kind != JSON_NULL)
		return mcp_error(s, r, MCP_PARAMS, "there is only one page: no cursor was issued");
	json_cells(j, CELLS(kv_list(what)));
	for (size_t i = 0; i < mcp_tools_n && strcmp(what, "tools") == 0; i++)
		tool_json(j, &mcp_tools[i]);
	if (strcmp(what, "resources") == 0)
		json_raw(j, STR("{\"uri\":\"" MCP_INBOX_URI "\",\"name\":\"inbox\",\"title\":\"Unread mail\","
				"\"description\":\"Your unread mail as a list; reading it changes nothing\","
				"\"mimeType\":\"text/plain\"}"));
	if (s->extra)
		s->extra->list(j, what, r->era);
	json_close(j);
	answer_cache(j, r, CONSTANT_MS, true);
	return true;
}

/* ---- Calls ---- */

static bool
call_tool(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, problem = BUF_INIT;
	mr_auto(args_done) struct args args = { 0 };
	struct json_value arguments = json_get(r->params, "arguments");
	const char *wrong = NULL;

	if (!json_find_text(r->params, "name", &name))
		return mcp_error(s, r, MCP_PARAMS, "'name' of the tool is missing");
	struct job job = { .tool = tool_named(buf_str(&name)) };

	if (!job.tool)
		return mcp_error(s, r, MCP_PARAMS, "there is no tool '%.60s'", buf_z(&name));
	if (arguments.kind != JSON_NULL && arguments.kind != JSON_OBJECT)
		return mcp_error(s, r, MCP_PARAMS, "'arguments' must be an object");
	uint64_t limit_s = (uint64_t)job.tool->patience_s;

	if (!args_read(job.tool, arguments, &args, &problem))
		return mcp_tool_error(s, r, buf_z(&problem));
	if (args_text(&args, "timeout"))
		(void)str_to_u64(str_of(args_text(&args, "timeout")), &limit_s);
	bool started = !args_command(job.tool, &args, &job.words, &wrong) ? mcp_tool_error(s, r, wrong)
		       : job.words.failed ? mcp_error(s, r, MCP_INTERNAL, "out of memory")
					  : call_start(s, r, &job, (int64_t)limit_s * 1000);

	words_done(&job.words);
	return started;
}

/* False: it is not about our resource, and was answered with an error. */
static bool
is_about_inbox(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf uri = BUF_INIT, line = BUF_INIT;
	char message[300];

	if (!json_find_text(r->params, "uri", &uri))
		return mcp_error(s, r, MCP_PARAMS, "'uri' of the resource is missing");
	if (strcmp(buf_z(&uri), MCP_INBOX_URI) == 0)
		return true;
	(void)snprintf(message, sizeof(message), "there is no resource '%.200s'", buf_z(&uri));
	answer_error(&line, r, r->era == MCP_MODERN ? MCP_PARAMS : MCP_NO_RESOURCE, message, buf_z(&uri));
	(void)mcp_write(s, &line);
	return false;
}

static bool
read_resource(struct mcp_server *s, const struct mcp_request *r)
{
	struct job job = { .tool = tool_named(STR("inbox")), .resource = true };

	words_add(&job.words, "inbox");
	bool started = is_about_inbox(s, r) && !job.words.failed && call_start(s, r, &job, 0);

	words_done(&job.words);
	return started;
}

/*
 * ---- Subscriptions ----
 *
 * The lists of tools and resources never change while the server runs. A client that asks only for those is
 * acknowledged with nothing, and hears nothing.
 */

/* A legacy client has one subscription, by resources/subscribe; its id is "". */
static bool
subscribe(struct mcp_server *s, const struct mcp_request *r, struct json *)
{
	bool on = request_is(r, "resources/subscribe");
	struct mcp_child *listener = child_named(s, STR(""));

	if (!is_about_inbox(s, r) || (on && !listener && !listener_start(s, r, STR(""), true)))
		return false;
	if (!on && listener)
		child_end(listener);
	return true;
}

static void
add_subscription_id(struct json *j, struct mr_str id)
{
	json_cells(j, CELLS(kv_open("_meta"), kv_raw(MCP_META "subscriptionId", id), kv_close()));
}

/* The request stays open: its result would end the subscription. */
static bool
open_subscription(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	struct json_value wanted = json_get(r->params, "notifications"), one;
	struct json_value uris = json_get(wanted, "resourceSubscriptions");
	bool inbox = false;

	if (wanted.kind != JSON_OBJECT)
		return mcp_error(s, r, MCP_PARAMS, "'notifications' must be an object that says what to subscribe to");
	for (size_t at = 0; json_item(uris, &at, &one);)
		inbox |= json_is(one, MCP_INBOX_URI);
	if (!listener_start(s, r, r->id, inbox))
		return false;
	notice_begin(&j, "notifications/subscriptions/acknowledged");
	add_subscription_id(&j, r->id);
	json_cells(&j, CELLS(kv_raw("notifications",
			   inbox ? STR("{\"resourceSubscriptions\":[\"" MCP_INBOX_URI "\"]}") : STR("{}"))));
	line_end(&j);
	return mcp_write(s, &line);
}

void
mcp_inbox_changed(struct mcp_server *s, const struct mcp_child *listener)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);

	notice_begin(&j, "notifications/resources/updated");
	if (listener->id[0])
		add_subscription_id(&j, str_of(listener->id));
	json_key_str(&j, "uri", MCP_INBOX_URI);
	line_end(&j);
	(void)mcp_write(s, &line);
}

/* ---- Choosing ---- */

enum { IN_LEGACY = 1, IN_MODERN = 2, IN_BOTH = 3 };

static const struct {
	const char *name;
	unsigned eras;
	/* Adds the members of the result; or begins something that answers by itself. False: answered with an error. */
	bool (*add)(struct mcp_server *s, const struct mcp_request *r, struct json *j);
	bool (*begin)(struct mcp_server *s, const struct mcp_request *r);
} methods[] = {
	{ "initialize", IN_LEGACY, initialize, NULL },
	{ "ping", IN_LEGACY, NULL, NULL },
	{ "server/discover", IN_MODERN, discover, NULL },
	{ "tools/list", IN_BOTH, list, NULL },
	{ "tools/call", IN_BOTH, NULL, call_tool },
	{ "resources/list", IN_BOTH, list, NULL },
	{ "resources/templates/list", IN_BOTH, list, NULL },
	{ "resources/read", IN_BOTH, NULL, read_resource },
	{ "resources/subscribe", IN_LEGACY, subscribe, NULL },
	{ "resources/unsubscribe", IN_LEGACY, subscribe, NULL },
	{ "subscriptions/listen", IN_MODERN, NULL, open_subscription },
};

static bool
answer(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	unsigned era = r->era == MCP_MODERN ? IN_MODERN : IN_LEGACY;
	size_t i = 0, n = sizeof(methods) / sizeof(methods[0]);

	if (child_named(s, r->id))
		return mcp_error(s, r, MCP_INVALID, "another request with this id is running");
	if (s->extra && s->extra->request(s, r))
		return true;
	while (i < n && !((methods[i].eras & era) && request_is(r, methods[i].name)))
		i++;
	if (i == n)
		return mcp_error(s, r, MCP_NO_METHOD, "there is no method '%.*s'",
		    (int)(r->method.len < 60 ? r->method.len : 60), r->method.ptr);
	if (methods[i].begin)
		return methods[i].begin(s, r);
	answer_begin(&j, r);
	if (methods[i].add && !methods[i].add(s, r, &j))
		return false;
	answer_end(&j, r);
	return mcp_write(s, &line);
}

void
mcp_handle(struct mcp_server *s, const struct mcp_request *r)
{
	struct json_value id;

	if (r->kind == MCP_REQUEST)
		(void)answer(s, r);
	else if (r->kind == MCP_BAD)
		(void)mcp_error(s, r, r->code, "%s", r->problem);
	else if (r->kind == MCP_NOTICE && request_is(r, "notifications/cancelled") &&
		 json_find(r->params, "requestId", &id)) {
		struct mcp_child *cancelled = child_named(s, id.raw);

		if (cancelled)
			child_end(cancelled); /* a client that cancels gets no answer */
	}
	/* A response is passed over: we ask clients nothing. */
}
