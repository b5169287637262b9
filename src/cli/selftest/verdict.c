/* SPDX-License-Identifier: MIT */
/* verdict.c - what the commands promised, as the journal has it, against what is in the room. */
#include "cli/selftest/selftest.h"

#include <stdarg.h>

struct trial {
	struct journal *j;
	struct verdict *v;
	unsigned reader; /* whose mailbox is looked at */
	bool failed;     /* out of memory */
};

MR_PRINTF(2, 3)
static void
broken(struct trial *t, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (t->v->broken_n++ < BROKEN_MAX)
		t->failed |= !names_add(&t->v->broken, str_of(text));
}

struct sent *
journal_find(struct journal *j, const char *tag)
{
	unsigned sender;
	size_t number;

	if (sscanf(tag, "t%u-%zu", &sender, &number) != 2 || sender >= SENDERS || number >= j->n[sender])
		return NULL;
	return &j->all[sender][number];
}

static bool
judge_copy(void *ctx, const struct mr_message *msg)
{
	struct trial *t = ctx;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct sent *s = journal_find(t->j, msg->subject);
	bool consumed = msg->folder == MR_ARCHIVE || (msg->flags & MR_SEEN);

	if (!s) {
		broken(t, "r%u has '%.40s', which nobody sent", t->reader, msg->subject);
		return true;
	}
	body_of(msg->subject, &body);
	if (msg->body_len != body.len || memcmp(msg->body, buf_z(&body), body.len) != 0)
		broken(t, "the text of '%s' for r%u is not whole: %zu bytes of %zu", msg->subject, t->reader,
		    msg->body_len, body.len);
	if (s->copies[t->reader]++ > 0)
		broken(t, "r%u has '%s' twice", t->reader, msg->subject);
	if (consumed && !s->shown[t->reader])
		broken(t, "'%s' for r%u was consumed, but never shown", msg->subject, t->reader);
	if (!consumed && msg->folder == MR_HELD)
		broken(t, "'%s' for r%u is still held by a process that is dead", msg->subject, t->reader);
	return true;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *why)
{
	broken(ctx, "'%.80s' cannot be read: %.80s", path, why->message);
}

static void
note_problem(void *ctx, const struct mr_finding *f)
{
	if (f->severity == MR_PROBLEM && !f->fixed && strcmp(f->code, "space") != 0)
		broken(ctx, "doctor: %.40s: %.140s", f->code, f->what);
}

static void
judge_sent(struct trial *t, const struct sent *s, unsigned sender, size_t number)
{
	struct verdict *v = t->v;
	unsigned copies = 0;
	char tag[TAG_LEN];

	(void)snprintf(tag, sizeof tag, "t%u-%zu", sender, number);
	for (unsigned i = 0; i < READERS; i++)
		copies += s->copies[i];
	bool there = copies > 0 || s->claimed;

	v->accepted += s->answer == 'y';
	v->doubtful += s->answer == 'm';
	v->refused += s->answer == 'n';
	v->arrived += s->answer == 'm' && there;
	if (s->again)
		broken(t, "work '%s' was handed out again after it was done", tag);
	if (s->done > 1)
		broken(t, "work '%s' was done twice", tag);
	if (s->answer == 'n' && there)
		broken(t, "'%s' was refused, but is there", tag);
	else if (s->kind == 'f' && copies > 0 && copies < READERS)
		broken(t, "'%s' was sent to %d and reached %u of them", tag, READERS, copies);
	else if (s->kind == 'f' && s->answer == 'm')
		v->fan_outs++;
	/* Work whose `done` was killed is done as well, without an answer. */
	if (s->answer == 'y' && (s->kind == 'q'      ? !s->claimed
				    : s->kind == 'f' ? copies == 0
						     : s->copies[s->reader] == 0))
		broken(t, "'%s' was accepted and is not there", tag);
}

enum mr_rc
verdict_reach(struct journal *j, struct mr_room *room, struct verdict *ret, struct mr_error *err)
{
	struct mr_scan all = {
		.filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE }, .bodies = true, .trouble = tell_unreadable
	};
	struct trial t = { .j = j, .v = ret };
	struct mr_queue_counts counts = { 0 };
	size_t claimed = 0;

	*ret = (struct verdict){ 0 };
	for (unsigned i = 0; i <= WORKERS; i++) {
		ret->commands += j->commands[i];
		ret->killed += j->killed[i];
	}
	if (j->strays > 0)
		broken(
		    &t, "%zu messages were shown or handed out that nobody sent, the last '%s'", j->strays, j->stray);
	TRY(mr_doctor(room, false, note_problem, &t, err));
	for (t.reader = 0; t.reader < READERS; t.reader++) {
		const char name[] = { 'r', (char)('0' + t.reader), '\0' };

		TRY(mr_scan(room, name, &all, judge_copy, &t, err));
	}
	for (unsigned i = 0; i < SENDERS; i++)
		for (size_t n = 0; n < j->n[i]; n++) {
			claimed += j->all[i][n].claimed;
			judge_sent(&t, &j->all[i][n], i, n);
		}
	TRY(mr_queue_count(room, "work", &counts, err));
	if (counts.ready + counts.claimed + counts.failed > 0)
		broken(&t, "%zu pieces of work are left, %zu are claimed, %zu failed", counts.ready, counts.claimed,
		    counts.failed);
	if (counts.done != claimed)
		broken(&t, "%zu pieces of work were handed out, and %zu are done", claimed, counts.done);
	return mr_got(!t.failed, err);
}
