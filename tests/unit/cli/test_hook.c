/* SPDX-License-Identifier: MIT */
/* The events of harnesses, the answers in their forms, and whom a worker wrote to last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/error.h"
#include "cli/hook/hook.h"

/* Of the plugins, which are not looked at here. */
extern const char text_copilot_js[], text_opencode_js[], text_pi_js[];
const char text_copilot_js[] = "", text_opencode_js[] = "", text_pi_js[] = "";

static bool
parse(const char *harness, const char *text, struct arena **own, struct event *ret)
{
	const char *problem = NULL;
	bool ok = event_parse(harness_named(harness), str_of(text), own, ret, &problem);

	assert_true(ok || (problem && *problem));
	return ok;
}

/* ---- Events ---- */

static void
every_event_has_its_moment(void **state)
{
	static const struct {
		const char *harness, *name;
		enum moment moment;
	} cases[] = {
		{ "claude-code", "SessionStart", MOMENT_START },
		{ "claude-code", "UserPromptSubmit", MOMENT_PROMPT },
		{ "claude-code", "PostToolUse", MOMENT_TOOL },
		{ "claude-code", "PostToolUseFailure", MOMENT_TOOL },
		{ "claude-code", "Stop", MOMENT_STOP },
		{ "claude-code", "SessionEnd", MOMENT_END },
		{ "claude-code", "PreToolUse", MOMENT_NONE },
		{ "claude-code", "SubagentStop", MOMENT_NONE },
		{ "claude-code", "stop", MOMENT_NONE },
		{ "codex", "SessionStart", MOMENT_START },
		{ "codex", "UserPromptSubmit", MOMENT_PROMPT },
		{ "codex", "PostToolUse", MOMENT_TOOL },
		{ "codex", "Stop", MOMENT_STOP },
		{ "codex", "SessionEnd", MOMENT_END },
		{ "codex", "PermissionRequest", MOMENT_NONE },
		{ "gemini", "SessionStart", MOMENT_START },
		{ "gemini", "BeforeAgent", MOMENT_PROMPT },
		{ "gemini", "AfterTool", MOMENT_TOOL },
		{ "gemini", "AfterAgent", MOMENT_STOP },
		{ "gemini", "SessionEnd", MOMENT_END },
		{ "gemini", "Stop", MOMENT_NONE },
		{ "cursor", "sessionStart", MOMENT_START },
		{ "cursor", "beforeSubmitPrompt", MOMENT_PROMPT },
		{ "cursor", "postToolUse", MOMENT_TOOL },
		{ "cursor", "stop", MOMENT_STOP },
		{ "cursor", "sessionEnd", MOMENT_END },
		{ "cursor", "SessionStart", MOMENT_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[100];
		struct arena *own = NULL;
		struct event e;

		(void)snprintf(text, sizeof text, "{\"hook_event_name\":\"%s\"}", cases[i].name);
		assert_true(parse(cases[i].harness, text, &own, &e));
		if (e.moment != cases[i].moment)
			fail_msg("%s %s is %d", cases[i].harness, cases[i].name, (int)e.moment);
		arena_free(own);
	}
	assert_null(harness_named("emacs"));
	assert_null(harness_named(""));
}

static void
fields_are_found(void **state)
{
	struct arena *own = NULL;
	struct event e;

	(void)state;
	assert_true(parse("claude-code",
	    " {\"x\":[{\"session_id\":\"inner\"}],\"session_id\":\"a-1\",\"cwd\":\"/w\\u00e9b\",\"source\":\"clear\","
	    "\"transcript_path\":\"/t\",\"stop_hook_active\":true,\"agent_id\":\"h\",\"reason\":\"clear\","
	    "\"hook_event_name\":\"Stop\"} ",
	    &own, &e));
	assert_string_equal(e.name, "Stop");
	assert_string_equal(e.session, "a-1");
	assert_string_equal(e.cwd, "/w\xc3\xa9"
				   "b");
	assert_string_equal(e.source, "clear");
	assert_string_equal(e.reason, "clear");
	assert_string_equal(e.transcript, "/t");
	assert_true(e.stopping && e.subagent && !e.aborted);
	assert_true(parse("cursor",
	    "{\"conversation_id\":\"c\",\"session_id\":\"other\",\"workspace_roots\":[\"/a\",\"/b\"],\"status\":"
	    "\"aborted\",\"loop_count\":0,\"hook_event_name\":\"stop\"}",
	    &own, &e));
	assert_string_equal(e.session, "c");
	assert_string_equal(e.cwd, "/a");
	assert_true(e.aborted && !e.stopping);
	/* Wrong kinds of values are as if they were not there. */
	assert_true(parse("codex",
	    "{\"hook_event_name\":\"Stop\",\"session_id\":7,\"cwd\":null,\"transcript_path\":null,\"agent_id\":\"\","
	    "\"workspace_roots\":\"/a\",\"stop_hook_active\":false}",
	    &own, &e));
	assert_true(!*e.session && !*e.cwd && !*e.transcript && !e.stopping && !e.subagent);
	assert_true(parse("codex", "{\"hook_event_name\":\"Stop\",\"session_id\":\"a\\nb\"}", &own, &e));
	assert_string_equal(e.session, "");
	arena_free(own);
}

static void
what_is_cut_off_is_read_as_far_as_it_goes(void **state)
{
	static const char whole[] =
	    "{\"session_id\":\"s\",\"hook_event_name\":\"PostToolUse\",\"tool_response\":\"xxx\"}";
	size_t known = strlen("{\"session_id\":\"s\",\"hook_event_name\":\"PostToolUse\"");
	struct arena *own = NULL;

	(void)state;
	for (size_t len = 0; len < sizeof whole; len++) {
		struct event e;
		const char *problem;
		bool ok = event_parse(harness_named("claude-code"), (struct mr_str){ whole, len }, &own, &e, &problem);

		assert_true(ok == (len >= known));
		if (ok)
			assert_true(e.moment == MOMENT_TOOL && strcmp(e.session, "s") == 0);
	}
	arena_free(own);
}

/* ---- Answers ---- */

static void
answers_have_the_form_of_their_harness(void **state)
{
	static const struct {
		const char *harness, *event;
		enum answer answer;
		const char *want;
	} cases[] = {
		{ "claude-code", "SessionStart", ANSWER_CONTEXT,
		    "{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"additionalContext\":\"a\\n\\\"b\"}}"
		    "\n" },
		{ "claude-code", "PostToolUseFailure", ANSWER_CONTEXT,
		    "{\"hookSpecificOutput\":{\"hookEventName\":\"PostToolUseFailure\",\"additionalContext\":"
		    "\"a\\n\\\"b\"}}\n" },
		{ "claude-code", "Stop", ANSWER_GO_ON, "{\"decision\":\"block\",\"reason\":\"a\\n\\\"b\"}\n" },
		{ "codex", "Stop", ANSWER_GO_ON, "{\"decision\":\"block\",\"reason\":\"a\\n\\\"b\"}\n" },
		{ "gemini", "BeforeAgent", ANSWER_CONTEXT,
		    "{\"hookSpecificOutput\":{\"hookEventName\":\"BeforeAgent\",\"additionalContext\":\"a\\n\\\"b\"}}"
		    "\n" },
		{ "gemini", "AfterAgent", ANSWER_GO_ON, "{\"decision\":\"deny\",\"reason\":\"a\\n\\\"b\"}\n" },
		{ "cursor", "sessionStart", ANSWER_CONTEXT, "{\"additional_context\":\"a\\n\\\"b\"}\n" },
		{ "cursor", "beforeSubmitPrompt", ANSWER_CONTEXT,
		    "{\"continue\":true,\"additional_context\":\"a\\n\\\"b\"}\n" },
		{ "cursor", "stop", ANSWER_GO_ON, "{\"followup_message\":\"a\\n\\\"b\"}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct harness *harness = harness_named(cases[i].harness);
		mr_auto(buf_done) struct buf out = BUF_INIT;
		struct arena *own = NULL;
		char text[100];
		struct event e;

		(void)snprintf(text, sizeof text, "{\"hook_event_name\":\"%s\"}", cases[i].event);
		assert_true(parse(cases[i].harness, text, &own, &e));
		assert_true(answer_fits(harness, &e, cases[i].answer));
		assert_int_equal(answer_reaches(harness, &e), strcmp(cases[i].event, "beforeSubmitPrompt") != 0);
		assert_false(answer_fits(harness, &e, cases[i].answer == ANSWER_GO_ON ? ANSWER_CONTEXT : ANSWER_GO_ON));
		answer_write(harness, &e, cases[i].answer, STR("a\n\"b"), &out);
		assert_string_equal(buf_z(&out), cases[i].want);
		arena_free(own);
	}
}

/* ---- The last message to a peer ---- */

#define ASSISTANT(blocks) "{\"type\":\"assistant\",\"message\":{\"content\":[" blocks "]}}\n"
#define SENT(input) "{\"type\":\"tool_use\",\"name\":\"SendMessage\",\"input\":{" input "}}"
#define PROMPT "{\"type\":\"user\",\"message\":{\"content\":\"go on\"}}\n"
#define RESULT "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}\n"

static void
the_last_message_to_a_peer(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: none */
	} cases[] = {
		{ "", NULL },
		{ "\n\n", NULL },
		{ "no json\n", NULL },
		{ PROMPT, NULL },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\",\"summary\":\"s\"")), "[to w] s" },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\",\"summary\":\"\"")), "[to w] " },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\",\"summary\":7")), "[to w] m" },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\"")) PROMPT, NULL },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\"")) RESULT "\n", "[to w] m" },
		{ ASSISTANT(SENT("\"to\":\"w\",\"message\":\"m\""))
			ASSISTANT(SENT("\"to\":\"LEAD\",\"message\":\"m\"")),
		    "[to w] m" },
		{ ASSISTANT(SENT("\"to\":\"*\",\"message\":\"m\"")), NULL },
		{ ASSISTANT(SENT("\"to\":\"w\"")), NULL },
		{ ASSISTANT(SENT("\"to\":\"a\",\"message\":\"1\"") "," SENT("\"to\":\"b\",\"message\":\"2\"")),
		    "[to a] 1" },
		{ ASSISTANT(SENT("\"to\":\"*\",\"message\":\"1\"") "," SENT("\"to\":\"b\",\"message\":\"2\"")),
		    "[to b] 2" },
		{ "{\"type\":\"assistant\",\"message\":{\"content\":\"text\"}}\n", NULL },
		{ "{\"type\":\"assistant\",\"message\":7}\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		bool found = transcript_last_peer(str_of(cases[i].text), "lead", &out);

		if (found != (cases[i].want != NULL) || (found && strcmp(buf_z(&out), cases[i].want) != 0))
			fail_msg("%s: %s", cases[i].text, found ? buf_z(&out) : "none");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_has_its_moment),
		cmocka_unit_test(fields_are_found),
		cmocka_unit_test(what_is_cut_off_is_read_as_far_as_it_goes),
		cmocka_unit_test(answers_have_the_form_of_their_harness),
		cmocka_unit_test(the_last_message_to_a_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
