/* SPDX-License-Identifier: MIT */
/*
 * patrol_run.c - running a handler. Its command is cut into words first and filled in afterwards, word by word: what
 * stands in a message never becomes another word, and there is no shell. Nor may it become an option: a word that
 * begins with a field is not run when the field begins with a dash.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/text.h"
#include "office/patrol/patrol.h"
#include <stdlib.h>

#define ENV_VALUE_MAX ((size_t)100 << 10) /* the kernel takes 128 KiB; what is longer is in the JSON only */
#define ENV_ALL_MAX ((size_t)512 << 10)
#define SAID_CHARS 160

/* ---- Words ---- */

/* One word with its quotes taken off; *rest is moved behind it. False: a quote is open. */
static bool
next_word(const char **rest, struct buf *out)
{
	const char *p = *rest;
	char quote = 0;

	for (; *p && (quote || !strchr(" \t", *p)); p++) {
		if (quote && *p == quote) {
			quote = 0;
		} else if (!quote && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else {
			if (*p == '\\' && quote != '\'' && p[1])
				p++;
			buf_addc(out, *p);
		}
	}
	*rest = p;
	return !quote;
}

struct mr_names
split_command(const char *command, struct mr_error *err)
{
	struct mr_names words = { 0 };

	for (;;) {
		mr_auto(buf_done) struct buf word = BUF_INIT;

		command += strspn(command, " \t");
		if (!*command)
			break;
		bool closed = next_word(&command, &word);

		if (closed && !word.failed && names_add(&words, (struct mr_str){ buf_z(&word), word.len }))
			continue;
		if (closed)
			(void)mr_nomem(err);
		else
			(void)mr_fail(err, MR_REFUSED, "a quote is not closed in the command");
		mr_names_done(&words);
		return (struct mr_names){ 0 };
	}
	if (words.n == 0)
		(void)mr_fail(err, MR_REFUSED, "the command is empty");
	return words;
}

enum mr_rc
patrol_words(const struct errand *e, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names forms = split_command(e->command, err);

	if (forms.n == 0)
		return mr_wrap(err, "handler of '%s'", e->def->name);
	for (size_t i = 0; i < forms.n; i++) {
		mr_auto(buf_done) struct buf word = BUF_INIT;

		type_fill(&word, forms.v[i], &e->values);
		if (word.failed || !names_add(ret, (struct mr_str){ buf_z(&word), word.len }))
			return mr_nomem(err);
		if (forms.v[i][0] != '{')
			continue;
		if (i == 0)
			return mr_fail(
			    err, MR_REFUSED, "handler of '%s': a message may not say which program runs", e->def->name);
		if (word.len > 0 && word.ptr[0] == '-')
			return mr_fail(err, MR_REFUSED, "%s begins with a dash: '%.60s'", forms.v[i], word.ptr);
		if (word.len > ENV_VALUE_MAX)
			return mr_fail(err, MR_REFUSED, "%s is too long for a command line", forms.v[i]);
	}
	return MR_OK;
}

void
patrol_join(struct buf *out, const struct mr_names *words)
{
	for (size_t i = 0; i < words->n; i++) {
		if (i > 0)
			buf_addc(out, ' ');
		text_clean_line(out, str_of(words->v[i]));
	}
}

/* ---- Environment ---- */

/* What a patrol outside of this one said of its message; and the session in which this one runs, which would make the
 * command act as the agent of that session and not as the one whom MAILROOM_AGENT names. */
const char *const patrol_keeps_back[] = { "MAILROOM_FIELD_", "MAILROOM_FROM=", "MAILROOM_TYPE=", "MAILROOM_ATTEMPT=",
	"MAILROOM_SUBJECT=", "CLAUDE_CODE_SESSION_ID=", "CLAUDE_PID=", "CODEX_THREAD_ID=", "GEMINI_SESSION_ID=", NULL };

static bool
set(struct mr_names *env, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "%s=", name);
	buf_adds(&line, value);
	return buf_ok(&line) && names_add(env, buf_str(&line));
}

static bool
is_set(const struct mr_names *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			return true;
	return false;
}

/* The first of two of one name counts, as in the message. */
static bool
set_fields(struct mr_names *env, const struct type_values *values)
{
	size_t all = 0;
	bool ok = true;

	for (size_t i = 0; i < values->n && ok; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		size_t len = strlen(values->v[i].value);

		type_variable(&name, values->v[i].name);
		if (len > ENV_VALUE_MAX || all + len > ENV_ALL_MAX || is_set(env, buf_z(&name)))
			continue;
		all += len;
		ok = buf_ok(&name) && set(env, buf_z(&name), values->v[i].value);
	}
	return ok;
}

static enum mr_rc
make_env(const struct errand *e, unsigned attempt, struct mr_names *ret, struct mr_error *err)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", attempt);
	if (set(ret, "MAILROOM", e->p->room->spec) && set(ret, "MAILROOM_AGENT", e->p->self->agent) &&
	    set(ret, "MAILROOM_ID", e->msg.id) && set(ret, "MAILROOM_FROM", e->msg.from) &&
	    set(ret, "MAILROOM_TYPE", e->def->name) && set(ret, "MAILROOM_ATTEMPT", number) &&
	    set(ret, "MAILROOM_SUBJECT", e->msg.subject) && set_fields(ret, &e->values))
		return MR_OK;
	return mr_nomem(err);
}

/* ---- Running ---- */

/* names as a NULL-terminated list; the strings are borrowed. */
static const char **
list_of(const struct mr_names *names)
{
	const char **list = calloc(names->n + 1, sizeof(*list));

	for (size_t i = 0; list && i < names->n; i++)
		list[i] = names->v[i];
	return list;
}

static int64_t
limit_of(const struct errand *e)
{
	return e->def->time_limit_ms > 0 ? e->def->time_limit_ms : e->p->set.time_limit_ms;
}

/* Before the handler's first instruction: whoever finds this note after our death can tell whether it still runs. */
static enum mr_rc
note_process(void *ctx, int64_t pid, struct mr_error *err)
{
	struct errand *e = ctx;

	e->note.process = (struct mr_process){ 0 };
	if (!process_describe(pid, &e->note.process))
		e->note.process.pid = pid;
	return note_save(e->p->room, e->p->self->agent, e->msg.id, &e->note, err);
}

static void
begin_note(struct errand *e)
{
	e->note.state = NOTE_RUNNING;
	e->note.attempt++;
	e->note.at_ms = clock_now_ms();
	e->note.until_ms = e->note.at_ms + limit_of(e);
	if (e->note.first_ms == 0)
		e->note.first_ms = e->note.at_ms;
	e->note.type = e->def->name;
	e->note.from = e->msg.from;
	e->msg.attempt = e->note.attempt;
}

void
patrol_describe(struct buf *out, const struct spawned *ran, int64_t limit_ms)
{
	struct mr_str said = str_trim(buf_str(&ran->err));
	const char *end = said.len > 0 ? memchr(said.ptr, '\n', said.len) : NULL;

	spawned_describe(ran, limit_ms, out);
	if (end)
		said.len = (size_t)(end - said.ptr);
	if (said.len == 0)
		return;
	buf_adds(out, ": ");
	text_clean_line(out, utf8_cut(said, SAID_CHARS));
}

static enum mr_rc
spawn_handler(struct errand *e, const struct mr_names *words, struct spawned *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names env = { 0 };
	size_t len = 0;

	TRY(make_env(e, e->note.attempt, &env, err));
	mr_auto(free_ptr) const char **argv = list_of(words);
	mr_auto(free_ptr) const char **envp = list_of(&env);
	mr_auto(free_ptr) char *input = e->p->options->render(e->p->options->ctx, &e->msg, &len);

	if (!argv || !envp || !input)
		return mr_nomem(err);
	struct spawn what = {
		.argv = argv,
		.input = { input, len },
		.env = envp,
		.without = patrol_keeps_back,
		.limit_ms = limit_of(e),
		.output_max = (size_t)64 << 10,
		.started = note_process,
		.started_ctx = e,
	};

	return spawn_run(&what, ret, err);
}

enum mr_rc
patrol_run(struct errand *e, bool *ret_succeeded, struct buf *result, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	mr_auto(spawned_done) struct spawned ran = { 0 };
	enum mr_rc rc = patrol_words(e, &words, err);

	if (rc != MR_OK)
		return rc;
	begin_note(e);
	rc = spawn_handler(e, &words, &ran, err);
	*ret_succeeded = false;
	if (rc == MR_NOTFOUND || rc == MR_REFUSED) { /* no such program: it may be installed by the next time */
		buf_adds(result, err->message);
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	patrol_describe(result, &ran, limit_of(e));
	*ret_succeeded = ran.exit_code == 0 && !ran.timed_out;
	return MR_OK;
}
