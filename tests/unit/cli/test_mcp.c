/* SPDX-License-Identifier: MIT */
/* Lines as requests of one era or the other, arguments as command lines, and what the definitions of the tools cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "cli/mcp/mcp.h"

#define MODERN                                                                                                         \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                       \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* ---- Requests ---- */

static void
lines_are_sorted(void **state)
{
	static const struct {
		const char *line;
		bool initialized;
		enum mcp_kind kind;
		int code; /* of MCP_BAD */
		const char *id;
		enum mcp_era era;
	} cases[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", true, MCP_REQUEST, 0, "1", MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", false, MCP_BAD, MCP_PARAMS, "1",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a b\",\"method\":\"ping\"}", false, MCP_REQUEST, 0, "\"a b\"",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"initialize\"}", false, MCP_REQUEST, 0, "-7",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"tools/list\",\"params\":{" MODERN "}}",
		    false, MCP_REQUEST, 0, "12345678901234567890", MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{" MODERN "}}", true, MCP_REQUEST,
		    0, "2", MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server/discover\"}", true, MCP_BAD, MCP_PARAMS, "2",
		    MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
		  "list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
		  "protocolVersion\":\"2026-07-28\"}}}",
		    true, MCP_BAD, MCP_PARAMS, "2", MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
		  "list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
		  "clientCapabilities\":{}}}}",
		    true, MCP_BAD, MCP_PARAMS, "2", MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
		  "list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
		  "protocolVersion\":\"2025-11-25\"}}}",
		    true, MCP_BAD, MCP_VERSION, "2", MCP_MODERN },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", false, MCP_NOTICE, 0, "null",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[]}", false, MCP_NOTICE, 0, "null", MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}", true, MCP_RESPONSE, 0, "9", MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":9}", true, MCP_BAD, MCP_INVALID, "9", MCP_LEGACY },
		{ "{\"id\":1,\"method\":\"ping\"}", true, MCP_BAD, MCP_INVALID, "1", MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", true, MCP_BAD, MCP_INVALID, "null",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", true, MCP_BAD, MCP_INVALID, "null",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}", true, MCP_BAD, MCP_INVALID, "1", MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}", true, MCP_BAD, MCP_PARAMS, "1",
		    MCP_LEGACY },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", true, MCP_BAD, MCP_INVALID, "null",
		    MCP_LEGACY },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", true, MCP_BAD, MCP_PARSE, "null", MCP_LEGACY },
		{ "hello", true, MCP_BAD, MCP_PARSE, "null", MCP_LEGACY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mcp_request r;

		request_parse(str_of(cases[i].line), cases[i].initialized, &r);
		if (r.kind != cases[i].kind || !str_eq(r.id, str_of(cases[i].id)) || r.era != cases[i].era ||
		    (r.kind == MCP_BAD && (int)r.code != cases[i].code))
			fail_msg("case %zu: %s: kind %d, era %d, code %d, id %.*s", i, cases[i].line, (int)r.kind,
			    (int)r.era, (int)r.code, (int)r.id.len, r.id.ptr);
	}
}

static void
a_session_comes_from_meta_alone(void **state)
{
	static const struct {
		const char *params, *session;
	} cases[] = {
		{ "{\"_meta\":{\"threadId\":\"0199-ab\"}}", "codex-0199-ab" },
		{ "{\"threadId\":\"0199-ab\"}", NULL },
		{ "{\"arguments\":{\"_meta\":{\"threadId\":\"x\"}}}", NULL },
		{ "{\"_meta\":{\"threadId\":7}}", NULL },
		{ "{\"_meta\":{\"threadId\":\"\"}}", NULL },
		{ "{\"_meta\":{\"threadId\":\"a\\u0000b\"}}", NULL },
		{ "{}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mr_auto(buf_done) struct buf line = BUF_INIT;
		struct mcp_request r;

		buf_addf(
		    &line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}", cases[i].params);
		request_parse(buf_str(&line), true, &r);
		char *session = request_session(&r, true);

		if (cases[i].session)
			assert_string_equal(session, cases[i].session);
		else
			assert_null(session);
		free(session);
	}
}

/* ---- Tools ---- */

static void
arguments_become_command_lines(void **state)
{
	static const struct {
		const char *tool, *arguments, *words; /* or the beginning of what is wrong, after "!" */
	} cases[] = {
		{ "send", "{\"to\":\"bob\",\"body\":\"--as=eve\"}", "send --message --as=eve -- bob" },
		{ "send", "{\"to\":\"bob, carol,\",\"body\":\"x\"}", "send --message x -- bob carol" },
		{ "send", "{\"to\":[\"Smith, Bob\",\"carol\"],\"body\":\"x\"}",
		    "send --message x -- Smith, Bob carol" },
		{ "send", "{\"to\":\"--room=x\",\"body\":\"x\"}", "send --message x -- --room=x" },
		{ "send", "{\"reply_to\":\"abc123\",\"body\":\"x\",\"key\":\"k\"}",
		    "reply --message x --key k -- abc123" },
		{ "send", "{\"to\":\"a\",\"reply_to\":\"b\",\"body\":\"x\"}", "send --message x --reply-to b -- a" },
		{ "send", "{\"body\":\"x\"}", "!give the recipient" },
		{ "send", "{\"to\":\"a\"}", "!argument 'body' is missing" },
		{ "send", "{\"to\":\"a\",\"body\":\"x\",\"as\":\"eve\"}", "!there is no argument 'as'" },
		{ "send", "{\"to\":\"a\",\"body\":\"x\",\"priority\":\"huge\"}",
		    "!argument 'priority' is not one of its values" },
		{ "send", "{\"to\":\"a\",\"body\":\"x\",\"priority\":\"hig\"}",
		    "!argument 'priority' is not one of its values" },
		{ "send", "{\"to\":\"a\",\"body\":\"x\\u0000y\"}", "!argument 'body' has a NUL" },
		{ "send", "{\"to\":7,\"body\":\"x\"}", "!argument 'to' must be a string" },
		{ "inbox", "{}", "inbox" },
		{ "inbox", "{\"all\":true,\"limit\":3,\"budget\":\"700\"}", "inbox --all --limit 3 --budget 700" },
		{ "inbox", "{\"all\":false,\"limit\":null}", "inbox" },
		{ "inbox", "{\"limit\":1.5}", "!argument 'limit' must be a whole number" },
		{ "inbox", "{\"limit\":-1}", "!argument 'limit' must be a whole number" },
		{ "inbox", "{\"all\":\"yes\"}", "!argument 'all' must be true or false" },
		{ "read", "{\"ids\":[\"a\",\"-b\"]}", "read -- a -b" },
		{ "read", "{\"ids\":\"a\"}", "read -- a" },
		{ "read", "{\"ids\":[]}", "!argument 'ids' is missing" },
		{ "wait", "{}", "wait --timeout 50" },
		{ "wait", "{\"timeout\":5,\"id\":\"x\"}", "wait --timeout 5 --id x" },
		{ "recv", "{\"queue\":\"q\",\"lease\":\"1h\"}", "recv --lease 1h -- q" },
		{ "done", "{\"token\":\"t\"}", "done -- t" },
		{ "done", "{\"token\":\"t\",\"outcome\":\"release\"}", "release -- t" },
		{ "done", "{\"token\":\"t\",\"outcome\":\"fail\",\"reason\":\"r\"}", "fail --reason r -- t" },
		{ "done", "{\"token\":\"t\",\"outcome\":\"fail\"}", "!outcome fail needs a 'reason'" },
		{ "who", "{\"live\":true}", "who --live" },
		{ "nudge", "{\"to\":\"bob\",\"text\":\"hi\",\"urgent\":true}", "nudge --message hi --urgent -- bob" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mr_auto(args_done) struct args args = { 0 };
		mr_auto(buf_done) struct buf got = BUF_INIT;
		mr_auto(words_done) struct words words = { 0 };
		const struct tool *tool = tool_named(str_of(cases[i].tool));
		struct json_value arguments;
		const char *problem = NULL;

		assert_non_null(tool);
		assert_true(json_whole(str_of(cases[i].arguments), &arguments, &problem));
		buf_addc(&got, '!');
		if (!args_read(tool, arguments, &args, &got)) {
			got.len = got.len < strlen(cases[i].words) ? got.len : strlen(cases[i].words);
		} else if (!args_command(tool, &args, &words, &problem)) {
			buf_add(&got, (struct mr_str){ problem, strlen(cases[i].words) - 1 });
		} else {
			buf_clear(&got);
			for (size_t n = 0; n < words.v.n; n++)
				buf_addf(&got, "%s%s", n > 0 ? " " : "", words.v.v[n]);
		}
		if (!str_eq(buf_str(&got), str_of(cases[i].words)))
			fail_msg("%s %s gives '%s'", cases[i].tool, cases[i].arguments, buf_z(&got));
	}
}

/* About four bytes are a token. docs/MCP.md says what a real tokenizer counts. */
static void
definitions_are_short(void **state)
{
	mr_auto(buf_done) struct buf all = BUF_INIT;
	struct json j = JSON_INIT(&all);

	(void)state;
	for (size_t i = 0; i < mcp_tools_n; i++) {
		size_t before = all.len;
		struct json_value tool, part, hint;
		const char *problem = NULL;

		tool_json(&j, &mcp_tools[i]);
		assert_true(json_whole((struct mr_str){ all.ptr + before, all.len - before }, &tool, &problem));
		assert_true(json_find(tool, "outputSchema", &part) && json_find(tool, "title", &part));
		assert_true(json_find(tool, "annotations", &part));
		for (const char *const *name = (const char *const[]){ "readOnlyHint", "destructiveHint",
			 "idempotentHint", "openWorldHint", NULL };
		     *name; name++)
			assert_true(json_find(part, *name, &hint));
	}
	assert_int_equal(mcp_tools_n, 8);
	if (all.len + strlen(mcp_instructions) > 8000)
		fail_msg("%zu bytes are more than 2,000 tokens", all.len + strlen(mcp_instructions));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_sorted),
		cmocka_unit_test(a_session_comes_from_meta_alone),
		cmocka_unit_test(arguments_become_command_lines),
		cmocka_unit_test(definitions_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
