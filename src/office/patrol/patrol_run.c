/* SPDX-License-Identifier: MIT */
/*
 * patrol_run.c - running a command. The command is first split into words, then the fields are filled in word by word:
 * text of a message never becomes another word, and there is no shell. Nor may it become an option: if a word begins
 * with a field and the field begins with a dash, the command is not run.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "office/mail/mail.h"
#include "office/patrol/patrol.h"
#include "office/rules/config.h"
#include <stdlib.h>

#define ENV_VALUE_MAX ((size_t)100 << 10) /* the kernel takes 128 KiB; longer values are only in the JSON */
#define ENV_ALL_MAX ((size_t)512 << 10)
#define SAID_CHARS 160

/* What an outer patrol said of its message, and the session in which this patrol runs: with the session, the command
 * would act as the agent of that session and not as the one that MAILROOM_AGENT names. */
#define LINE(variable, harness) variable "=",
const char *const patrol_keeps_back[] = { "MAILROOM_FIELD_", "MAILROOM_FROM=", "MAILROOM_TYPE=", "MAILROOM_ATTEMPT=",
	"MAILROOM_SUBJECT=", "CLAUDE_PID=", SESSION_VARIABLES(LINE) NULL };
#undef LINE

/* ---- Words ---- */

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

/* ---- Notices ---- */

enum mr_rc
patrol_send(struct mr_room *room, const struct mr_self *self, const char *to, enum mr_priority priority,
    const char *key, const struct buf *subject, const struct buf *body, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	unsigned abilities = room->driver->abilities;
	struct mr_draft draft = {
		.to = (const char *[]){ to, NULL },
		.subject = buf_z(subject),
		.body = buf_z(body),
		.body_len = body->len,
		.priority = abilities & ROOM_PRIORITIES ? priority : MR_NORMAL,
		.key = abilities & ROOM_KEYS ? key : NULL,
	};

	TRY(mr_got(buf_ok(subject) && buf_ok(body), err));
	enum mr_rc rc = send_draft(room, self, &draft, FIELD_SUBJECT, &receipt, err);
	return rc == MR_INDOUBT ? MR_OK : rc; /* stored; any later command completes it */
}

/* ---- Running ---- */

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

static bool
is_set(const struct mr_names *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			return true;
	return false;
}

/* False: out of memory. */
static bool
make_env(const struct errand *e, struct mr_names *env)
{
	char attempt[16];
	size_t all = 0;
	const char *const lines[][2] = {
		{ "MAILROOM", e->p->room->spec },
		{ "MAILROOM_AGENT", e->p->self->agent },
		{ "MAILROOM_ID", e->msg.id },
		{ "MAILROOM_FROM", e->msg.from },
		{ "MAILROOM_TYPE", e->def->name },
		{ "MAILROOM_ATTEMPT", attempt },
		{ "MAILROOM_SUBJECT", e->msg.subject },
	};

	(void)snprintf(attempt, sizeof(attempt), "%u", e->note.attempt);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!names_addf(env, "%s=%s", lines[i][0], lines[i][1]))
			return false;
	for (size_t i = 0; i < e->values.n; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		size_t len = strlen(e->values.v[i].value);

		type_variable(&name, e->values.v[i].name);
		/* If a name occurs twice, the first counts, as in the message. */
		if (len > ENV_VALUE_MAX || all + len > ENV_ALL_MAX || is_set(env, buf_z(&name)))
			continue;
		all += len;
		if (!buf_ok(&name) || !names_addf(env, "%s=%s", buf_z(&name), e->values.v[i].value))
			return false;
	}
	return true;
}

/* Written before the handler's first instruction: after our death this note tells whether it still runs. */
static enum mr_rc
note_process(void *ctx, int64_t pid, struct mr_error *err)
{
	struct errand *e = ctx;

	e->note.process = (struct mr_process){ 0 };
	if (!process_describe(pid, &e->note.process))
		e->note.process.pid = pid;
	return note_save(e->p->room, e->p->self->agent, e->msg.id, &e->note, err);
}

enum mr_rc
patrol_run(struct errand *e, bool *ret_succeeded, struct buf *result, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 }, env = { 0 };
	mr_auto(spawned_done) struct spawned ran = { 0 };
	struct note *note = &e->note;
	struct spawn how = {
		.without = patrol_keeps_back,
		.limit_ms = e->def->time_limit_ms > 0 ? e->def->time_limit_ms : e->p->set.time_limit_ms,
		.output_max = (size_t)64 << 10,
		.started = note_process,
		.started_ctx = e,
	};

	*ret_succeeded = false;
	TRY(patrol_words(e, &words, err));
	note->state = NOTE_RUNNING;
	note->attempt++;
	note->at_ms = clock_now_ms();
	note->until_ms = note->at_ms + how.limit_ms;
	note->first_ms = note->first_ms ? note->first_ms : note->at_ms;
	note->type = e->def->name;
	note->from = e->msg.from;
	e->msg.attempt = note->attempt;
	mr_auto(free_ptr) char *input = e->p->options->render(e->p->options->ctx, &e->msg, &how.input.len);
	how.input.ptr = input;
	TRY(mr_got(input && make_env(e, &env), err));
	how.argv = names_list(&words);
	how.env = names_list(&env);
	enum mr_rc rc = spawn_run(&how, &ran, err);
	if (rc == MR_NOTFOUND || rc == MR_REFUSED) { /* no such program: it may be installed by the next time */
		buf_adds(result, err->message);
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	TRY(rc);
	patrol_describe(result, &ran, how.limit_ms);
	*ret_succeeded = ran.exit_code == 0 && !ran.timed_out;
	return MR_OK;
}
