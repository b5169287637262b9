/* SPDX-License-Identifier: MIT */
/*
 * patrol_note.c - how far one message is, and its story:
 *
 *	State: handled
 *	At: 2026-03-05T10:30:00.123Z
 *	First: 2026-03-05T10:29:00.000Z    start of its handler
 *	Attempt: 2
 *	Failures: 1
 *	Process: ...                       of its handler, while it runs
 *	Until: ...                         its time limit
 *	Type: MERGED
 *	From: gp/refinery
 *	Handler: ./on-merged nux
 *	Result: exit 0
 *	Did: 2026-03-05T10:29:00.000Z 1 failed exit 3: no such branch
 *	Did: 2026-03-05T10:30:00.123Z 2 handled exit 0
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "office/patrol/patrol.h"

#define STORY_MAX 40 /* lines */

static const char *const words[] = {
	[NOTE_NEW] = "new",
	[NOTE_RUNNING] = "running",
	[NOTE_HANDLED] = "handled",
	[NOTE_FAILED] = "failed",
	[NOTE_ASIDE] = "set-aside",
	[NOTE_BROKEN] = "broken",
	[NOTE_DEAD] = "dead",
};

void
note_done(struct note *note)
{
	mr_names_done(&note->did);
	arena_free(note->own);
	*note = (struct note){ 0 };
}

/* ---- Reading ---- */

static const char *
text_of(struct note *note, const struct record *lines, const char *name)
{
	const char *value = record_get(lines, name);
	const char *copy = value ? arena_dup(&note->own, str_of(value)) : NULL;

	return copy ? copy : "";
}

static void
read_lines(struct note *ret, const struct record *lines)
{
	const char *state = record_get(lines, "State"), *process = record_get(lines, "Process");

	for (size_t i = 0; state && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], state) == 0)
			ret->state = (enum note_state)i;
	ret->attempt = (unsigned)record_int(lines, "Attempt", 0);
	ret->failures = (unsigned)record_int(lines, "Failures", 0);
	if (process && !process_parse(str_of(process), &ret->process))
		ret->process = (struct mr_process){ 0 };
	ret->until_ms = record_time(lines, "Until");
	ret->at_ms = record_time(lines, "At");
	ret->first_ms = record_time(lines, "First");
	ret->type = text_of(ret, lines, "Type");
	ret->from = text_of(ret, lines, "From");
	ret->handler = text_of(ret, lines, "Handler");
	ret->result = text_of(ret, lines, "Result");
	for (size_t i = 0; i < lines->n; i++)
		if (ascii_caseeq(lines->lines[i].name, "Did"))
			(void)names_add(&ret->did, str_of(lines->lines[i].value));
}

/* A note that is there and says nothing (a power cut on storage that is not safe) counts as one that was never
 * written: the handler runs again, which it must be able to bear anyway. */
enum mr_rc
note_load(struct mr_room *room, const char *agent, const char *id, struct note *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(notes_load(room, NOTE_KIND, agent, id, &lines, err));
	note_done(ret);
	read_lines(ret, &lines);
	return MR_OK;
}

/* ---- Writing ---- */

static void
add(struct buf *out, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (!value || !*value)
		return;
	header_clean(&clean, str_of(value));
	if (!buf_ok(&clean) || header_add(out, name, str_trim(buf_str(&clean)), &ignored) != MR_OK)
		out->failed = true;
}

static void
add_number(struct buf *out, const char *name, unsigned value)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", value);
	add(out, name, number);
}

static void
add_time(struct buf *out, const char *name, int64_t ms)
{
	char at[RFC3339_LEN + 1];

	time_rfc3339(ms, at);
	add(out, name, ms > 0 ? at : "");
}

enum mr_rc
note_save(struct mr_room *room, const char *agent, const char *id, const struct note *note, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, process = BUF_INIT;

	add(&text, "State", words[note->state]);
	add_time(&text, "At", note->at_ms);
	add_time(&text, "First", note->first_ms);
	add_number(&text, "Attempt", note->attempt);
	add_number(&text, "Failures", note->failures);
	if (note->state == NOTE_RUNNING && note->process.pid != 0) {
		process_format(&note->process, &process);
		add(&text, "Process", buf_z(&process));
	}
	if (note->state == NOTE_RUNNING)
		add_time(&text, "Until", note->until_ms);
	add(&text, "Type", note->type);
	add(&text, "From", note->from);
	add(&text, "Handler", note->handler);
	add(&text, "Result", note->result);
	for (size_t i = note->did.n > STORY_MAX ? note->did.n - STORY_MAX : 0; i < note->did.n; i++)
		add(&text, "Did", note->did.v[i]);
	if (!buf_ok(&text))
		return mr_nomem(err);
	return notes_put(room, NOTE_KIND, agent, id, buf_str(&text), err);
}

enum mr_rc
note_turn(struct note *note, enum note_state state, const char *word, const char *result, struct mr_error *err)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char at[RFC3339_LEN + 1];

	note->state = state;
	note->at_ms = clock_now_ms();
	note->result = arena_dup(&note->own, str_of(result));
	time_rfc3339(note->at_ms, at);
	buf_addf(&line, "%s %u %s %s", at, note->attempt, word, result);
	if (!note->result || !buf_ok(&line) || !names_add(&note->did, buf_str(&line)))
		return mr_nomem(err);
	return MR_OK;
}

/* ---- The story ---- */

bool
note_step(const struct note *note, const char *line, const char *id, struct arena **own, struct mr_patrol_step *ret)
{
	char *rest = arena_dup(own, str_of(line));
	const char *at = rest ? strsep(&rest, " ") : NULL;
	const char *attempt = rest ? strsep(&rest, " ") : NULL;
	const char *what = rest ? strsep(&rest, " ") : NULL;
	uint64_t n = 0;

	if (!what || !str_to_u64(str_of(attempt), &n))
		return false;
	*ret = (struct mr_patrol_step){
		.what = what,
		.id = id,
		.type = note->type ? note->type : "",
		.from = note->from ? note->from : "",
		.handler = note->handler ? note->handler : "",
		.result = rest ? rest : "",
		.attempt = (unsigned)n,
	};
	return time_parse_rfc3339(str_of(at), &ret->at_ms);
}
