/* SPDX-License-Identifier: MIT */
/* answer.c - what a harness is told, in its own form. Some refuse an answer with a key that they do not know. */
#include "cli/hook/harness.h"

bool
answer_fits(const struct harness *harness, const struct event *event, enum answer answer)
{
	if (answer == ANSWER_GO_ON)
		return event->moment == MOMENT_STOP;
	if (answer == ANSWER_USER) /* Cursor has no such word */
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

static void
write_specific(
    const struct harness *harness, const struct event *event, enum answer answer, const char *text, struct json *j)
{
	if (answer == ANSWER_USER) {
		json_key_str(j, "systemMessage", text);
		return;
	}
	if (answer == ANSWER_GO_ON) {
		json_key_str(j, "decision", harness->decision);
		json_key_str(j, "reason", text);
		return;
	}
	json_key(j, "hookSpecificOutput");
	json_open(j, '{');
	json_key_str(j, "hookEventName", event->name);
	json_key_str(j, "additionalContext", text);
	json_close(j);
}

static void
write_cursor(const struct event *event, enum answer answer, const char *text, struct json *j)
{
	if (event->moment == MOMENT_PROMPT)
		json_key_bool(j, "continue", true);
	json_key_str(j, answer == ANSWER_GO_ON ? "followup_message" : "additional_context", text);
}

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
		write_cursor(event, answer, buf_z(&whole), &j);
	else
		write_specific(harness, event, answer, buf_z(&whole), &j);
	json_close(&j);
	buf_addc(out, '\n');
}
