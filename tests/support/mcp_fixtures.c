/* SPDX-License-Identifier: MIT */
/*
 * mcp_fixtures.c - test builds only: the tools, resources and prompts that the official conformance suite calls by
 * name, with the answers that it compares. `mailroom mcp --conformance` offers them beside our own; see docs/MCP.md,
 * "Conformance".
 *
 * An answer is written as JSON. In it <name> stands for the caller's argument of that name, <uri> for the resource's
 * address and
 * <*> for what the star in the row's name stands for.
 */
#include "cli/mcp/mcp.h"

#include <time.h>

#define TEXT(...) #__VA_ARGS__
#define STEP_MS 50

/* clang-format off */
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define IMAGE "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" PNG "\"}"
#define SAYS(text) "{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define TOOL(name, about) "{\"name\":\"" name "\",\"description\":\"" about "\",\"inputSchema\":{\"type\":\"object\"}}"
#define RESOURCE(uri, about, type) "{\"uri\":\"" uri "\",\"name\":\"" about "\",\"description\":\"" about "\",\"mimeType\":\"" type "\"}"
#define PROMPT(name, about, arguments) "{\"name\":\"" name "\",\"description\":\"" about "\",\"arguments\":[" arguments "]}"
#define ARGUMENT(name, about) "{\"name\":\"" name "\",\"description\":\"" about "\",\"required\":true}"

static const struct fixture {
	const char *list, *name;
	const char *entry;  /* in that list */
	const char *result; /* with a code: the error */
} fixtures[] = {
	{ "tools", "test_simple_text", TOOL("test_simple_text", "a text"),
	    SAYS("This is a simple text response for testing.") },
	{ "tools", "test_image_content", TOOL("test_image_content", "a picture"), "{\"content\":[" IMAGE "]}" },
	{ "tools", "test_audio_content", TOOL("test_audio_content", "a sound"),
	    "{\"content\":[{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"" WAV "\"}]}" },
	{ "tools", "test_embedded_resource", TOOL("test_embedded_resource", "a resource within the answer"),
	    TEXT({"content": [{"type": "resource", "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain",
		"text": "This is an embedded resource content."}}]}) },
	{ "tools", "test_multiple_content_types", TOOL("test_multiple_content_types", "a text, a picture and a resource"),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE ","
	    TEXT({"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
		"text": "{\"test\":\"data\",\"value\":123}"}}) "]}" },
	{ "tools", "test_error_handling", TOOL("test_error_handling", "fails"),
	    TEXT({"isError": true, "content": [{"type": "text", "text": "This tool intentionally returns an error for testing"}]}) },
	{ "tools", "test_tool_with_progress", TOOL("test_tool_with_progress", "tells how far it is"), SAYS("done") },
	{ "tools", "test_missing_capability", TOOL("test_missing_capability", "needs a client with sampling"),
	    TEXT({"code": -32021, "message": "needs sampling", "data": {"requiredCapabilities": {"sampling": {}}}}) },
	{ "tools", "test_streaming_elicitation", TOOL("test_streaming_elicitation", "asks nothing back"), SAYS("nothing to ask") },
	{ "tools", "test_logging_tool", TOOL("test_logging_tool", "logs nothing"), SAYS("nothing to log") },
	{ "tools", "json_schema_2020_12_tool",
	    TEXT({"name": "json_schema_2020_12_tool", "description": "a schema with all that a schema may have", "inputSchema": {
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object",
		    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		    "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}}), SAYS("ok") },

	{ "resources", "test://static-text", RESOURCE("test://static-text", "a text", "text/plain"),
	    TEXT({"contents": [{"uri": "test://static-text", "mimeType": "text/plain",
		"text": "This is the content of the static text resource."}]}) },
	{ "resources", "test://static-binary", RESOURCE("test://static-binary", "a picture", "image/png"),
	    "{\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\",\"blob\":\"" PNG "\"}]}" },
	{ "resources", "test://watched-resource", RESOURCE("test://watched-resource", "one to subscribe to", "text/plain"),
	    TEXT({"contents": [{"uri": "test://watched-resource", "mimeType": "text/plain", "text": "It never changes."}]}) },
	{ "resourceTemplates", "test://template/*/data",
	    TEXT({"uriTemplate": "test://template/{id}/data", "name": "by number", "description": "one for each number",
		"mimeType": "application/json"}),
	    TEXT({"contents": [{"uri": "<uri>", "mimeType": "application/json",
		"text": "{\"id\":\"<*>\",\"templateTest\":true,\"data\":\"Data for ID: <*>\"}"}]}) },

	{ "prompts", "test_simple_prompt", PROMPT("test_simple_prompt", "without arguments", ""),
	    TEXT({"messages": [{"role": "user", "content": {"type": "text", "text": "This is a simple prompt for testing."}}]}) },
	{ "prompts", "test_prompt_with_arguments", PROMPT("test_prompt_with_arguments", "with two arguments",
		ARGUMENT("arg1", "the first") "," ARGUMENT("arg2", "the second")),
	    TEXT({"messages": [{"role": "user", "content": {"type": "text",
		"text": "Prompt with arguments: arg1='<arg1>', arg2='<arg2>'"}}]}) },
	{ "prompts", "test_prompt_with_embedded_resource", PROMPT("test_prompt_with_embedded_resource", "with a resource in it",
		ARGUMENT("resourceUri", "which one")),
	    TEXT({"messages": [{"role": "user", "content": {"type": "resource", "resource": {"uri": "<resourceUri>",
		"mimeType": "text/plain", "text": "Embedded resource content for testing."}}},
		{"role": "user", "content": {"type": "text", "text": "Please process the embedded resource above."}}]}) },
	{ "prompts", "test_prompt_with_image", PROMPT("test_prompt_with_image", "with a picture in it", ""),
	    "{\"messages\":[{\"role\":\"user\",\"content\":" IMAGE "},"
	    TEXT({"role": "user", "content": {"type": "text", "text": "Please analyze the image above."}}) "]}" },
};
/* clang-format on */

static const struct {
	const char *method, *list, *key;
	bool cached;
} methods[] = {
	{ "tools/call", "tools", "name", false },
	{ "prompts/get", "prompts", "name", false },
	{ "resources/read", "resources", "uri", true },
	{ "resources/read", "resourceTemplates", "uri", true },
};

/* What the star of the row's name stands for; without a star the name itself must be it. */
static bool
matches(const struct fixture *f, struct mr_str name, struct mr_str *ret_star)
{
	const char *star = strchr(f->name, '*');
	size_t before = star ? (size_t)(star - f->name) : 0;

	*ret_star = STR("");
	if (!star)
		return str_eq(name, str_of(f->name));
	if (name.len < strlen(f->name) || memcmp(name.ptr, f->name, before) != 0 || !str_ends(name, star + 1))
		return false;
	*ret_star = (struct mr_str){ name.ptr + before, name.len - strlen(f->name) + 1 };
	return true;
}

/* The inner bytes of a string in the caller's JSON: they are escaped as our answer needs them. */
static struct mr_str
member(struct json_value object, const char *key)
{
	struct json_value v;

	if (!json_find(object, key, &v) || v.kind != JSON_STRING)
		return STR("");
	return (struct mr_str){ v.raw.ptr + 1, v.raw.len - 2 };
}

static void
fill(struct buf *out, const char *text, const struct mcp_request *r, struct mr_str star)
{
	struct json_value arguments;
	char key[32];

	if (!json_find(r->params, "arguments", &arguments))
		arguments = r->params;
	for (; *text; text++) {
		int n = 0;

		if (sscanf(text, "<%31[a-zA-Z0-9*]>%n", key, &n) != 1 || n == 0) {
			buf_addc(out, *text);
			continue;
		}
		buf_add(out, strcmp(key, "*") == 0 ? star : member(arguments, key));
		text += n - 1;
	}
}

static void
tell_progress(struct mcp_server *s, const struct mcp_request *r)
{
	struct json_value token;
	bool wanted = json_find(r->meta, "progressToken", &token);

	for (int64_t done = 0; done <= 100; done += 50) {
		mr_auto(buf_done) struct buf line = BUF_INIT;
		struct json j = JSON_INIT(&line);

		if (!wanted)
			return;
		notice_begin(&j, "notifications/progress");
		json_key(&j, "progressToken");
		json_raw(&j, token.raw);
		json_key(&j, "progress");
		json_int(&j, done);
		json_key(&j, "total");
		json_int(&j, 100);
		line_end(&j);
		(void)mcp_write(s, &line);
		(void)nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000L }, NULL);
	}
}

static void
answer(struct mcp_server *s, const struct mcp_request *r, const struct fixture *f, struct mr_str star, bool cached)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, text = BUF_INIT;
	struct json j = JSON_INIT(&line);
	struct json_value all, key, one;
	const char *problem;

	if (strcmp(f->name, "test_tool_with_progress") == 0)
		tell_progress(s, r);
	fill(&text, f->result, r, star);
	if (!json_whole(buf_str(&text), &all, &problem))
		return; /* the suite will say so */
	if (json_find(all, "code", &one))
		buf_addf(
		    &line, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":%s}\n", (int)r->id.len, r->id.ptr, buf_z(&text));
	else {
		answer_begin(&j, r);
		if (cached)
			answer_cache(&j, r, 0, true);
		for (size_t at = 0; json_member(all, &at, &key, &one);) {
			mr_auto(buf_done) struct buf name = BUF_INIT;

			json_text(key, &name);
			json_key(&j, buf_z(&name));
			json_raw(&j, one.raw);
		}
		answer_end(&j, r);
	}
	(void)mcp_write(s, &line);
}

static void
add_entries(struct json *j, const char *what, enum mcp_era era)
{
	(void)era;
	for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++)
		if (strcmp(fixtures[i].list, what) == 0)
			json_raw(j, str_of(fixtures[i].entry));
}

/* What the server itself knows nothing of: prompts, and a resource that never changes, so that nobody must watch it. */
static bool
answered_alone(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	bool prompts = request_is(r, "prompts/list");
	bool subscribes = request_is(r, "resources/subscribe") || request_is(r, "resources/unsubscribe");

	if (!prompts &&
	    (!subscribes || r->era != MCP_LEGACY || !str_eq(member(r->params, "uri"), STR("test://watched-resource"))))
		return false;
	answer_begin(&j, r);
	if (prompts) {
		json_key(&j, "prompts");
		json_open(&j, '[');
		add_entries(&j, "prompts", r->era);
		json_close(&j);
		answer_cache(&j, r, 0, true);
	}
	answer_end(&j, r);
	(void)mcp_write(s, &line);
	return true;
}

static bool
on_request(struct mcp_server *s, const struct mcp_request *r)
{
	struct mr_str star;

	for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++)
		for (size_t i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++)
			if (request_is(r, methods[m].method) && strcmp(fixtures[i].list, methods[m].list) == 0 &&
			    matches(&fixtures[i], member(r->params, methods[m].key), &star)) {
				answer(s, r, &fixtures[i], star, methods[m].cached);
				return true;
			}
	return answered_alone(s, r);
}

static void
add_capabilities(struct json *j, enum mcp_era era)
{
	(void)era;
	json_key(j, "prompts"); /* our own server has none */
	json_open(j, '{');
	json_close(j);
}

const struct mcp_extra mcp_fixtures = {
	.list = add_entries,
	.capabilities = add_capabilities,
	.request = on_request,
};
