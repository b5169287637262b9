/* SPDX-License-Identifier: MIT */
/*
 * event.c - what a harness says, and the table of how each of them calls it. Unknown events and fields are none of our
 * business. Only the members of the outermost object are looked at, one after the other, so that a text that was cut
 * off behind the ones that count (a tool's answer can be long) is still an event.
 */
#include "cli/hook/harness.h"

#include "message/json_read.h"

static const struct named_moment claude_events[] = {
	{ "SessionStart", MOMENT_START },
	{ "UserPromptSubmit", MOMENT_PROMPT },
	{ "PostToolUse", MOMENT_TOOL },
	{ "PostToolUseFailure", MOMENT_TOOL },
	{ "Stop", MOMENT_STOP },
	{ "SessionEnd", MOMENT_END },
	{ NULL, MOMENT_NONE },
};
static const struct named_moment codex_events[] = {
	{ "SessionStart", MOMENT_START },
	{ "UserPromptSubmit", MOMENT_PROMPT },
	{ "PostToolUse", MOMENT_TOOL },
	{ "Stop", MOMENT_STOP },
	{ "SessionEnd", MOMENT_END },
	{ NULL, MOMENT_NONE },
};
static const struct named_moment gemini_events[] = {
	{ "SessionStart", MOMENT_START },
	{ "BeforeAgent", MOMENT_PROMPT },
	{ "AfterTool", MOMENT_TOOL },
	{ "AfterAgent", MOMENT_STOP },
	{ "SessionEnd", MOMENT_END },
	{ NULL, MOMENT_NONE },
};
static const struct named_moment cursor_events[] = {
	{ "sessionStart", MOMENT_START },
	{ "beforeSubmitPrompt", MOMENT_PROMPT },
	{ "postToolUse", MOMENT_TOOL },
	{ "stop", MOMENT_STOP },
	{ "sessionEnd", MOMENT_END },
	{ NULL, MOMENT_NONE },
};

static const struct harness harnesses[] = {
	{ "claude-code", "session_id", claude_events, FORM_SPECIFIC, "block", true, true, true },
	{ "codex", "session_id", codex_events, FORM_SPECIFIC, "block", false, true, false },
	{ "gemini", "session_id", gemini_events, FORM_SPECIFIC, "deny", false, true, false },
	{ "cursor", "conversation_id", cursor_events, FORM_CURSOR, NULL, false, false, false },
};
#define HARNESSES (sizeof harnesses / sizeof harnesses[0])
#define SESSION_MAX 120
#define PREVIEW_LEN 2000

const struct harness *
harness_named(const char *name)
{
	for (size_t i = 0; i < HARNESSES; i++)
		if (strcmp(harnesses[i].name, name) == 0)
			return &harnesses[i];
	return NULL;
}

const char *
harness_name(const struct harness *harness)
{
	return harness->name;
}

void
harness_names(struct buf *out)
{
	for (size_t i = 0; i < HARNESSES; i++)
		buf_addf(out, "%s%s", i == 0 ? "" : i + 1 < HARNESSES ? ", " : " or ", harnesses[i].name);
}

bool
harness_says_session(const struct harness *harness)
{
	return harness->says_session;
}

bool
harness_shows_results(const struct harness *harness)
{
	return harness->shows_results;
}

bool
harness_can_wake(const struct harness *harness)
{
	return harness->wakes;
}

/* ---- Fields ---- */

/* One line of plain text, or nothing: it becomes a name or a path. */
static const char *
word_of(struct json_value value, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (value.kind != JSON_STRING)
		return "";
	json_text(value, &text);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
			return "";
	const char *kept = buf_ok(&text) ? arena_dup(own, buf_str(&text)) : NULL;

	return kept ? kept : "";
}

static const char *
first_word_of(struct json_value array, struct arena **own)
{
	struct json_value first;
	size_t at = 0;

	return array.kind == JSON_ARRAY && json_item(array, &at, &first) ? word_of(first, own) : "";
}

static void
take_event_name(const struct harness *harness, const char *name, struct event *ret)
{
	for (const struct named_moment *m = harness->events; m->name; m++)
		if (strcmp(m->name, name) == 0) {
			ret->name = m->name;
			ret->moment = m->moment;
		}
}

/* Claude Code puts a long result into a file, and shows the model how it begins. */
static struct mr_str
part_seen(struct mr_str result)
{
	static const char word[] = "persistedOutputPath";

	if (result.len > PREVIEW_LEN && memmem(result.ptr, result.len, word, sizeof word - 1))
		result.len = PREVIEW_LEN;
	return result;
}

static void
take_field(const struct harness *harness, struct json_value key, struct json_value value, struct arena **own,
    struct event *ret, bool *ret_named)
{
	if (json_key_is(key, "hook_event_name")) {
		take_event_name(harness, word_of(value, own), ret);
		*ret_named = value.kind == JSON_STRING;
	} else if (json_key_is(key, harness->session_key)) {
		ret->session = word_of(value, own);
	} else if (json_key_is(key, "cwd")) {
		ret->cwd = word_of(value, own);
	} else if (json_key_is(key, "workspace_roots") && !*ret->cwd) {
		ret->cwd = first_word_of(value, own);
	} else if (json_key_is(key, "source")) {
		ret->source = word_of(value, own);
	} else if (json_key_is(key, "reason")) {
		ret->reason = word_of(value, own);
	} else if (json_key_is(key, "transcript_path")) {
		ret->transcript = word_of(value, own);
	} else if (json_key_is(key, "stop_hook_active") || json_key_is(key, "loop_count")) {
		ret->stopping = json_truthy(value);
	} else if (json_key_is(key, "status")) {
		const char *status = word_of(value, own);

		ret->aborted = strcmp(status, "aborted") == 0 || strcmp(status, "error") == 0;
	} else if (json_key_is(key, "tool_response") || (json_key_is(key, "error") && ret->result.len == 0)) {
		ret->result = part_seen(value.raw);
	} else if (json_key_is(key, "tool_name") || json_key_is(key, "tool_input")) {
		ret->mailroom |= memmem(value.raw.ptr, value.raw.len, "mailroom", strlen("mailroom")) != NULL;
	} else if (json_key_is(key, "agent_id")) {
		ret->subagent = json_truthy(value);
	}
}

bool
event_parse(
    const struct harness *harness, struct mr_str text, struct arena **own, struct event *ret, const char **ret_problem)
{
	struct event e = { .name = "", .session = "", .cwd = "", .source = "", .reason = "", .transcript = "" };
	size_t at = json_skip_space(text, 0);
	const char *problem = NULL;
	bool named = false;

	*ret_problem = "it is no JSON object";
	if (at == text.len || text.ptr[at++] != '{')
		return false;
	for (;;) {
		struct json_value key, value;

		at = json_skip_space(text, at);
		if (!json_value_at(text, &at, &key, &problem) || key.kind != JSON_STRING)
			break;
		at = json_skip_space(text, at);
		if (at == text.len || text.ptr[at++] != ':' || !json_value_at(text, &at, &value, &problem))
			break;
		take_field(harness, key, value, own, &e, &named);
		at = json_skip_space(text, at);
		if (at == text.len || text.ptr[at++] != ',')
			break;
	}
	*ret_problem = "it names no event";
	if (!named)
		return false;
	*ret_problem = "its session id is too long";
	if (strlen(e.session) > SESSION_MAX)
		return false;
	*ret = e;
	return true;
}
