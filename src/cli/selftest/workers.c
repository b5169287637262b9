/* SPDX-License-Identifier: MIT */
/*
 * workers.c - the processes of the campaign. Each runs our commands one after the other, kills three in four of them at
 * a random moment of their usual time, and writes down what they answered. The journals are outside of the room, and
 *the workers themselves are not killed:
 *
 *	S <kind> <reader> <answer> <tag>    a send: kinds and answers below
 *	V <reader> <tag>                    a reader was shown it
 *	C <tag>  D <tag>                    work was handed out; done
 *	K <commands> <killed>               at the end
 */
#include "base/clock.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

enum { OP_SEND, OP_KEY, OP_FAN, OP_QUEUE, OP_DRAIN, OP_RECV, OP_DONE, OPS };

struct worker {
	uint64_t random;
	unsigned number;
	int journal;
	size_t commands, killed;
	int64_t usual_us[OPS]; /* how long it takes when nobody kills it; 0: not known yet */
	unsigned long next_tag;
};

void
reader_name(unsigned i, char ret[8])
{
	(void)snprintf(ret, 8, "r%u", i % 10);
}

void
hand_name(unsigned i, char ret[8])
{
	(void)snprintf(ret, 8, "w%u", i % 10);
}

void
body_of(const char *tag, struct buf *out)
{
	unsigned long n = strtoul(strchr(tag, '-') ? strchr(tag, '-') + 1 : "0", NULL, 10);

	for (unsigned long i = 0; i < 1 + n * 7 % 300; i++)
		buf_addf(out, "%s line %lu\n", tag, i);
}

MR_PRINTF(3, 4)
static enum mr_rc
note(struct worker *w, struct mr_error *err, const char *fmt, ...)
{
	char line[128];
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(line, sizeof line, fmt, args);

	va_end(args);
	return sys_write_all(w->journal, line, (size_t)n) == 0 ? MR_OK : mr_fail_errno(err, "cannot write the journal");
}

/* One in four is left alone, and so is the first of each kind. */
static enum mr_rc
run(struct worker *w, int op, bool may_kill, const char *const *args, struct child *ret, struct mr_error *err)
{
	bool spared = !may_kill || w->usual_us[op] == 0 || random_next(&w->random) % 4 == 0;
	int64_t kill_us = spared ? -1 : (int64_t)(random_next(&w->random) % (uint64_t)(w->usual_us[op] + 1));
	enum mr_rc rc = child_run(args, kill_us, ret, err);

	w->commands++;
	w->killed += rc == MR_OK && ret->exit_code == -1;
	if (rc == MR_OK && ret->exit_code != -1) /* a slow moment shall not make all later kills come too late */
		w->usual_us[op] = w->usual_us[op] ? (w->usual_us[op] * 7 + ret->took_us) / 8 : ret->took_us;
	return rc;
}

/* ---- Sending ---- */

static char
answer_of(const struct child *c)
{
	return c->exit_code == 0 ? 'y' : c->exit_code == -1 || c->exit_code == EXIT_DOUBT ? 'm' : 'n';
}

static enum mr_rc
send_one(struct worker *w, int op, struct mr_error *err)
{
	static const char kinds[] = { [OP_SEND] = 'p', [OP_KEY] = 'k', [OP_FAN] = 'f', [OP_QUEUE] = 'q' };
	mr_auto(buf_done) struct buf body = BUF_INIT;
	unsigned reader = (unsigned)(random_next(&w->random) % READERS);
	char tag[TAG_LEN], to[8];
	char answer;
	enum mr_rc rc;

	(void)snprintf(tag, sizeof tag, "t%u-%lu", w->number, w->next_tag++);
	reader_name(reader, to);
	body_of(tag, &body);
	const char *const one[] = { "send", to, "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const keyed[] = { "send", to, "--key", tag, "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const all[] = { "send", "r0", "r1", "r2", "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const queue[] = { "send", "queue:work", "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const *const args[] = { [OP_SEND] = one, [OP_KEY] = keyed, [OP_FAN] = all, [OP_QUEUE] = queue };

	if (!buf_ok(&body))
		return mr_nomem(err);
	do { /* who sends with a key repeats it until there is an answer */
		mr_auto(child_done) struct child c = { 0 };

		rc = run(w, op, true, args[op], &c, err);
		answer = answer_of(&c);
	} while (rc == MR_OK && op == OP_KEY && answer == 'm');
	return rc == MR_OK ? note(w, err, "S %c %u %c %s\n", kinds[op], reader, answer, tag) : rc;
}

static enum mr_rc
send_some(struct worker *w, struct mr_error *err)
{
	static const int ops[] = { OP_SEND, OP_SEND, OP_KEY, OP_FAN, OP_FAN, OP_QUEUE, OP_QUEUE };

	return send_one(w, ops[random_next(&w->random) % (sizeof ops / sizeof ops[0])], err);
}

/* ---- Reading ---- */

/* Only whole lines were shown; what was cut off must come again. */
static const char *
take_line(const char **at, char *ret_tag)
{
	const char *line = *at, *end = strchr(line, '\n');
	const char *subject = end ? strstr(line, "\"subject\":\"") : NULL;

	if (!end)
		return NULL;
	*at = end + 1;
	ret_tag[0] = '\0';
	if (subject && subject < end) {
		subject += strlen("\"subject\":\"");
		(void)snprintf(ret_tag, TAG_LEN, "%.*s", (int)strcspn(subject, "\""), subject);
	}
	return line;
}

static enum mr_rc
read_some(struct worker *w, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };
	unsigned reader = (unsigned)(random_next(&w->random) % READERS);
	char name[8], tag[TAG_LEN];

	reader_name(reader, name);
	const char *const args[] = { "drain", "--json", "--budget", "0", "--limit", "5", "--as", name, NULL };
	enum mr_rc rc = run(w, OP_DRAIN, true, args, &c, err);

	for (const char *at = buf_z(&c.out); rc == MR_OK && take_line(&at, tag);)
		rc = note(w, err, "V %u %s\n", reader, tag);
	return rc;
}

/* ---- Working ---- */

/* What a killed worker held comes back when its name is taken over. */
static enum mr_rc
begin_again(struct worker *w, const char *name, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };
	const char *const args[] = { "takeover", name, NULL };

	w->commands++;
	return child_run(args, -1, &c, err);
}

static void
token_in(const char *line, char ret[MR_TOKEN_LEN + 1])
{
	const char *token = strstr(line, "\"token\":\"");

	(void)snprintf(ret, MR_TOKEN_LEN + 1, "%.*s", MR_TOKEN_LEN, token ? token + strlen("\"token\":\"") : "none");
}

/* *ret_empty: there was nothing to do. */
static enum mr_rc
work_one(struct worker *w, bool may_kill, bool *ret_empty, struct mr_error *err)
{
	mr_auto(child_done) struct child got = { 0 }, done = { 0 };
	char name[8], tag[TAG_LEN], token[MR_TOKEN_LEN + 1];

	hand_name((unsigned)(random_next(&w->random) % HANDS), name);
	const char *const take[] = { "recv", "queue:work", "--json", "--as", name, NULL };
	enum mr_rc rc = run(w, OP_RECV, may_kill, take, &got, err);
	const char *at = buf_z(&got.out), *line = rc == MR_OK ? take_line(&at, tag) : NULL;

	if (line && strncmp(line, "{\"state\":\"empty\"", strlen("{\"state\":\"empty\"")) == 0)
		line =
		    NULL; /* not work: what is left in the queue, also told by a command that was killed right after */
	*ret_empty = got.exit_code == EXIT_NOTHING;
	if (rc == MR_OK && !may_kill && !line && !*ret_empty)
		return mr_fail(err, MR_IO, "work cannot be taken any more: 'mailroom recv queue:work' exits with %d",
		    got.exit_code);
	if (line) {
		token_in(line, token);
		const char *const finish[] = { "done", token, "--as", name, NULL };

		rc = note(w, err, "C %s\n", tag);
		if (rc == MR_OK)
			rc = run(w, OP_DONE, may_kill, finish, &done, err);
		if (rc == MR_OK && done.exit_code == 0)
			rc = note(w, err, "D %s\n", tag);
	}
	if (rc == MR_OK && (got.exit_code == -1 || done.exit_code == -1))
		rc = begin_again(w, name, err);
	return rc;
}

/* ---- One worker ---- */

static enum mr_rc
open_journal(const struct campaign *c, struct worker *w, struct mr_error *err)
{
	char name[32];

	(void)snprintf(name, sizeof name, "journal.%u", w->number);
	w->journal = sys_open(c->scratch->fd, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
	return w->journal >= 0 ? MR_OK : mr_fail_errno(err, "cannot make '%s'", name);
}

enum mr_rc
work(const struct campaign *c, unsigned worker, int64_t boot_deadline_ms, struct mr_error *err)
{
	struct worker w = { .random = c->seed + worker * UINT64_C(7919), .number = worker, .journal = -1 };
	enum mr_rc rc = open_journal(c, &w, err);
	bool empty;

	while (rc == MR_OK && clock_boot_ms() < boot_deadline_ms) {
		if (worker < SENDERS)
			rc = send_some(&w, err);
		else if (worker == SENDERS)
			rc = read_some(&w, err);
		else
			rc = work_one(&w, true, &empty, err);
	}
	if (rc == MR_OK)
		rc = note(&w, err, "K %zu %zu\n", w.commands, w.killed);
	sys_close_fd(&w.journal);
	return rc;
}

enum mr_rc
work_off(const struct campaign *c, struct mr_error *err)
{
	struct worker w = { .random = c->seed, .number = WORKERS, .journal = -1 };
	enum mr_rc rc = open_journal(c, &w, err);
	bool empty = false;

	for (unsigned i = 0; rc == MR_OK && i < HANDS; i++) {
		char name[8];

		hand_name(i, name);
		rc = begin_again(&w, name, err);
	}
	while (rc == MR_OK && !empty)
		rc = work_one(&w, false, &empty, err);
	sys_close_fd(&w.journal);
	return rc;
}
