/* SPDX-License-Identifier: MIT */
/*
 * event.c - what a harness says, what it is told, and what its record of a session shows: pure functions on bytes. How
 * each harness names things is in cli/harness.c.
 *
 * Of an event only the members of the outermost object are looked at, one after the other, so that a text that was cut
 * off behind the ones that count (a tool's answer can be long) is still an event. Unknown events and fields are
 * ignored.
 */
#include "cli/hook/hook.h"
#include "cli/view.h"

#include "message/json_read.h"

#define SESSION_MAX 120
#define PREVIEW_LEN 2000
#define SUMMARY_UNITS 80 /* of UTF-16, as JavaScript counts */

/* ---- Events ---- */

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

static void
take_field(const struct harness *harness, struct json_value key, struct json_value value, struct arena **own,
    struct event *ret, bool *ret_named)
{
	static const char persisted[] = "persistedOutputPath";
	const struct {
		const char *key, **word;
	} words[] = { { harness->session_key, &ret->session }, { "cwd", &ret->cwd }, { "source", &ret->source },
		{ "reason", &ret->reason }, { "transcript_path", &ret->transcript } };
	struct json_value first;
	size_t at = 0;

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (json_key_is(key, words[i].key))
			*words[i].word = word_of(value, own);
	if (json_key_is(key, "hook_event_name")) {
		const char *name = word_of(value, own);

		*ret_named = value.kind == JSON_STRING;
		for (const struct harness_event *e = harness->events; e->name; e++)
			if (strcmp(e->name, name) == 0) {
				ret->name = e->name;
				ret->moment = e->moment;
			}
	} else if (json_key_is(key, "workspace_roots") && !*ret->cwd) {
		if (value.kind == JSON_ARRAY && json_item(value, &at, &first))
			ret->cwd = word_of(first, own);
	} else if (json_key_is(key, "stop_hook_active") || json_key_is(key, "loop_count")) {
		ret->stopping = json_truthy(value);
	} else if (json_key_is(key, "status")) {
		const char *status = word_of(value, own);

		ret->aborted = strcmp(status, "aborted") == 0 || strcmp(status, "error") == 0;
	} else if (json_key_is(key, "tool_response") || (json_key_is(key, "error") && ret->result.len == 0)) {
		ret->result = value.raw;
		/* Claude Code puts a long result into a file, and shows the model how it begins. */
		if (value.raw.len > PREVIEW_LEN && memmem(value.raw.ptr, value.raw.len, persisted, strlen(persisted)))
			ret->result.len = PREVIEW_LEN;
	} else if (json_key_is(key, "tool_name") || json_key_is(key, "tool_input")) {
		ret->mailroom |= memmem(value.raw.ptr, value.raw.len, "mailroom", strlen("mailroom")) != NULL;
	} else if (json_key_is(key, "prompt") && value.kind == JSON_STRING) {
		ret->unprompted = value.raw.len == 2;
		ret->prompt = value.raw.len < MR_RING_MAX ? word_of(value, own) : "";
	} else if (json_key_is(key, "agent_id")) {
		ret->subagent = json_truthy(value);
	}
}

bool
event_parse(
    const struct harness *harness, struct mr_str text, struct arena **own, struct event *ret, const char **ret_problem)
{
	struct event e = {
		.name = "", .session = "", .cwd = "", .source = "", .reason = "", .transcript = "", .prompt = ""
	};
	size_t at = json_skip_space(text, 0);
	const char *problem = NULL;
	bool named = false;

	*ret_problem = "it is not a JSON object";
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
	if (e.moment == MOMENT_PROMPT && e.unprompted) /* Qwen Code has one after every tool */
		e.moment = MOMENT_NONE;
	*ret = e;
	return true;
}

/* ---- Answers ---- */

bool
answer_fits(const struct harness *harness, const struct event *event, enum answer answer)
{
	if (answer == ANSWER_GO_ON)
		return event->moment == MOMENT_STOP;
	if (answer == ANSWER_BLOCK)
		return event->moment == MOMENT_PROMPT && harness->form != FORM_CURSOR;
	if (answer == ANSWER_USER) /* the others have no such word */
		return harness->form == FORM_SPECIFIC;
	if (harness->form == FORM_CURSOR && event->moment == MOMENT_TOOL)
		return false; /* it takes the text and drops it, and it would be said after every tool */
	return event->moment == MOMENT_START || event->moment == MOMENT_PROMPT || event->moment == MOMENT_TOOL;
}

/* Cursor shows its model what a start and a stop say. At a prompt only some versions are said to do so. */
bool
answer_reaches(const struct harness *harness, const struct event *event)
{
	return harness->form != FORM_CURSOR || event->moment == MOMENT_START || event->moment == MOMENT_STOP;
}

/* A harness wraps what its hooks say in tags of its own, and Claude Code writes "&lt;system-reminder>" where it finds
 * one inside, which looks like a forgery. What others wrote has no such line: each of theirs begins with a dash. */
void
answer_without_tags(struct mr_str text, struct buf *out)
{
	while (text.len > 0) {
		const char *end = memchr(text.ptr, '\n', text.len);
		struct mr_str line = { text.ptr, end ? (size_t)(end - text.ptr) + 1 : text.len };

		if (!str_eq(line, STR("<system-reminder>\n")) && !str_eq(line, STR("</system-reminder>\n")))
			buf_add(out, line);
		text = (struct mr_str){ text.ptr + line.len, text.len - line.len };
	}
}

/* Some harnesses refuse an answer with a key that they do not know. */
void
answer_write(
    const struct harness *harness, const struct event *event, enum answer answer, struct mr_str text, struct buf *out)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	struct json j = JSON_INIT(out);

	answer_without_tags(text, &whole);
	if (!buf_ok(&whole))
		return;
	json_open(&j, '{');
	if (harness->form == FORM_CURSOR)
		json_cells(
		    &j, CELLS(event->moment == MOMENT_PROMPT ? kv_bool("continue", true) : kv_none(),
			    kv_str(answer == ANSWER_GO_ON ? "followup_message" : "additional_context", buf_z(&whole))));
	else if (answer == ANSWER_USER)
		json_key_str(&j, "systemMessage", buf_z(&whole));
	else if (answer == ANSWER_GO_ON || answer == ANSWER_BLOCK)
		json_cells(&j, CELLS(kv_str("decision", harness->decision), kv_str("reason", buf_z(&whole))));
	else if (harness->form == FORM_TOP)
		json_key_str(&j, "additionalContext", buf_z(&whole));
	else
		json_cells(&j, CELLS(kv_open("hookSpecificOutput"), kv_str("hookEventName", event->name),
				   kv_str("additionalContext", buf_z(&whole)), kv_close()));
	json_close(&j);
	buf_addc(out, '\n');
}

/*
 * ---- Transcripts ----
 *
 * Whom did a worker write to last? By the rule of the original (mailroom-teams(5)): from the end of the record back to
 * the last prompt, which is a user's entry whose content is a plain string; in an entry of the assistant the first call
 * of SendMessage that has a string for `to` and for `message`, and goes neither to everybody nor to the lead.
 */

/* Half of a pair at the end becomes what json_text makes of it everywhere: U+FFFD. */
static void
add_units(struct buf *out, struct mr_str text, size_t units)
{
	for (size_t at = 0; at < text.len && units > 0;) {
		unsigned char c = (unsigned char)text.ptr[at];
		size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

		if (len > text.len - at)
			len = text.len - at;
		if (len == 4 && units == 1) {
			buf_adds(out, "\xEF\xBF\xBD");
			return;
		}
		buf_add(out, (struct mr_str){ text.ptr + at, len });
		units -= len == 4 ? 2 : 1;
		at += len;
	}
}

static bool
add_if_to_peer(struct json_value block, const char *lead, struct buf *out)
{
	mr_auto(buf_done) struct buf to = BUF_INIT, message = BUF_INIT, summary = BUF_INIT;
	struct json_value input = json_get(block, "input");

	if (!json_is(json_get(block, "type"), "tool_use") || !json_is(json_get(block, "name"), "SendMessage") ||
	    !json_find_text(input, "to", &to) || !json_find_text(input, "message", &message) ||
	    strcmp(buf_z(&to), "*") == 0 || ascii_caseeq(buf_z(&to), lead))
		return false;
	buf_addf(out, "[to %s] ", buf_z(&to));
	if (json_find_text(input, "summary", &summary))
		buf_add(out, buf_str(&summary));
	else
		add_units(out, buf_str(&message), SUMMARY_UNITS);
	return true;
}

bool
transcript_last_peer(struct mr_str text, const char *lead, struct buf *out)
{
	while (text.len > 0) {
		struct json_value entry, content, block;
		size_t begin = text.len, at = 0;

		while (begin > 0 && text.ptr[begin - 1] != '\n')
			begin--;
		struct mr_str line = { text.ptr + begin, text.len - begin };

		text.len = begin > 0 ? begin - 1 : 0;
		if (!json_whole(line, &entry, NULL) || !json_find(json_get(entry, "message"), "content", &content))
			continue;
		if (json_is(json_get(entry, "type"), "user") && content.kind == JSON_STRING)
			return false; /* the prompt */
		if (!json_is(json_get(entry, "type"), "assistant") || content.kind != JSON_ARRAY)
			continue;
		while (json_item(content, &at, &block))
			if (add_if_to_peer(block, lead, out))
				return true;
	}
	return false;
}
