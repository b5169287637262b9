/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the event of a harness and as the record of a session: what is taken for a name or a path is one line of
 * text, every answer is one line of JSON, and nothing more is found in a part of the bytes than in all of them.
 */
#include "fuzz.h"

#include "cli/cells.c"
#include "cli/harness.c"
#include "cli/hook/event.c"

const char text_copilot_js[] = "", text_opencode_js[] = "", text_pi_js[] = "";

static void
check_word(const char *word)
{
	for (; *word; word++)
		assert((unsigned char)*word >= ' ' && *word != 0x7f);
}

static void
check_answer(const struct harness *harness, const struct event *event, enum answer answer, struct mr_str text)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct json_value whole;
	const char *problem;

	if (!answer_fits(harness, event, answer))
		return;
	answer_write(harness, event, answer, text, &out);
	assert(memchr(out.ptr, '\n', out.len) == out.ptr + out.len - 1);
	assert(json_whole(buf_str(&out), &whole, &problem) && whole.kind == JSON_OBJECT);
}

static void
check_event(const char *name, struct mr_str text)
{
	const struct harness *harness = harness_named(name);
	struct arena *own = NULL;
	struct event e = { 0 };
	const char *problem = NULL;

	if (event_parse(harness, text, &own, &e, &problem)) {
		check_word(e.session);
		check_word(e.cwd);
		check_word(e.source);
		check_word(e.reason);
		check_word(e.transcript);
		assert(strlen(e.session) <= SESSION_MAX && (e.moment == MOMENT_NONE) == !*e.name);
		check_answer(harness, &e, ANSWER_CONTEXT, text);
		check_answer(harness, &e, ANSWER_GO_ON, text);
	} else {
		assert(problem && *problem && !e.name);
	}
	arena_free(own);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < harnesses_n; i++)
		check_event(harnesses[i].name, text);
	if (transcript_last_peer(text, "team-lead", &out))
		assert(str_starts(buf_str(&out), "[to "));
	else
		assert(out.len == 0);
	return 0;
}
