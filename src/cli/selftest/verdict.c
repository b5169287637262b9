/* SPDX-License-Identifier: MIT */
/* verdict.c - what the commands promised, out of the journals, against what is in the room. */
#include "base/file.h"
#include "cli/selftest/selftest.h"

#include <stdarg.h>
#include <stdlib.h>

#define JOURNAL_MAX ((size_t)256 << 20)

struct sent { /* one send */
	char tag[TAG_LEN];
	char kind, answer;
	unsigned char reader;
	unsigned char copies[READERS]; /* in their mailboxes */
	bool shown[READERS];
	unsigned char claimed, done;
};
struct trial {
	struct verdict *v;
	struct sent *all;
	size_t n, cap;
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

/* ---- The journals ---- */

static void
add_sent(struct trial *t, const char *line)
{
	struct sent s = { 0 };
	unsigned reader = 0;

	if (sscanf(line, "S %c %u %c %23s", &s.kind, &reader, &s.answer, s.tag) != 4 || reader >= READERS)
		return;
	s.reader = (unsigned char)reader;
	t->failed |= !array_grow(&t->all, t->n, &t->cap, sizeof *t->all);
	if (t->failed)
		return;
	t->all[t->n++] = s;
	t->v->accepted += s.answer == 'y';
	t->v->doubtful += s.answer == 'm';
	t->v->refused += s.answer == 'n';
}

static int
by_tag(const void *a, const void *b)
{
	return strcmp(((const struct sent *)a)->tag, ((const struct sent *)b)->tag);
}

static struct sent *
sent_as(struct trial *t, const char *tag)
{
	struct sent key = { 0 };

	(void)snprintf(key.tag, sizeof key.tag, "%s", tag);
	return t->n ? bsearch(&key, t->all, t->n, sizeof *t->all, by_tag) : NULL;
}

static void
take_entry(struct trial *t, const char *line)
{
	char what = line[0], tag[TAG_LEN] = "";
	unsigned reader = 0;
	size_t ran, killed;

	if (sscanf(line, "K %zu %zu", &ran, &killed) == 2) {
		t->v->commands += ran;
		t->v->killed += killed;
		return;
	}
	bool shown = sscanf(line, "V %u %23s", &reader, tag) == 2 && reader < READERS;
	bool work = (what == 'C' || what == 'D') && sscanf(line + 1, " %23s", tag) == 1;
	struct sent *s = shown || work ? sent_as(t, tag) : NULL;

	t->v->shown += shown;
	if (shown && !s)
		broken(t, "'%s' was shown, which nobody sent", tag);
	else if (work && !s)
		broken(t, "work '%s' was handed out that nobody sent", tag);
	else if (work && s->done)
		broken(t, what == 'C' ? "work '%s' was handed out again after it was done" : "work '%s' was done twice",
		    tag);
	if (shown && s)
		s->shown[reader] = true;
	if (work && s && what == 'C')
		s->claimed = 1;
	if (work && s && what == 'D') {
		s->done = 1;
		t->v->done++;
	}
}

static enum mr_rc
read_journal(int journals_fd, unsigned worker, struct trial *t, void (*take)(struct trial *t, const char *line),
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[32];

	(void)snprintf(name, sizeof name, "journal.%u", worker);
	TRY(file_read(journals_fd, name, JOURNAL_MAX, &text, err));
	for (const char *line = buf_z(&text); *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "")
		take(t, line);
	return t->failed ? mr_nomem(err) : MR_OK;
}

/* ---- The room ---- */

static bool
judge_copy(void *ctx, const struct mr_message *msg)
{
	struct trial *t = ctx;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct sent *s = sent_as(t, msg->subject);
	bool consumed = msg->folder == MR_ARCHIVE || (msg->flags & MR_SEEN);

	if (!s) {
		broken(t, "r%u has '%.40s', which nobody sent", t->reader, msg->subject);
		return true;
	}
	body_of(s->tag, &body);
	if (msg->body_len != body.len || memcmp(msg->body, buf_z(&body), body.len) != 0)
		broken(t, "the text of '%s' for r%u is not whole: %zu bytes of %zu", s->tag, t->reader, msg->body_len,
		    body.len);
	if (s->copies[t->reader]++ > 0)
		broken(t, "r%u has '%s' twice", t->reader, s->tag);
	if (consumed && !s->shown[t->reader])
		broken(t, "'%s' for r%u was consumed, but never shown", s->tag, t->reader);
	if (!consumed && msg->folder == MR_HELD)
		broken(t, "'%s' for r%u is still held by a process that is dead", s->tag, t->reader);
	return true;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *why)
{
	broken(ctx, "'%.80s' cannot be read: %.80s", path, why->message);
}

static void
judge_one(struct trial *t, const struct sent *s)
{
	unsigned copies = 0;

	for (unsigned i = 0; i < READERS; i++)
		copies += s->copies[i];
	t->v->arrived += s->answer == 'm' && (copies > 0 || s->claimed);
	if (s->answer == 'n' && (copies > 0 || s->claimed))
		broken(t, "'%s' was refused, but is there", s->tag);
	else if (s->kind == 'f' && copies > 0 && copies < READERS)
		broken(t, "'%s' was sent to %d and reached %u of them", s->tag, READERS, copies);
	else if (s->kind == 'f' && s->answer == 'm')
		t->v->fan_outs++;
	if (s->answer != 'y')
		return;
	if (s->kind == 'q' ? !s->claimed || !s->done : s->kind == 'f' ? copies == 0 : s->copies[s->reader] == 0)
		broken(t, "'%s' was accepted and is not there", s->tag);
}

/* Work whose `done` was killed is done as well, without an answer. */
static enum mr_rc
judge_queue(struct trial *t, struct mr_room *room, struct mr_error *err)
{
	struct mr_queue_counts counts = { 0 };
	size_t claimed = 0;

	TRY(mr_queue_count(room, "work", &counts, err));
	for (size_t i = 0; i < t->n; i++) {
		claimed += t->all[i].claimed;
		if (t->all[i].kind == 'q' && t->all[i].claimed)
			t->all[i].done = 1;
	}
	if (counts.ready + counts.claimed + counts.failed > 0)
		broken(t, "%zu pieces of work are left, %zu are claimed, %zu failed", counts.ready, counts.claimed,
		    counts.failed);
	if (counts.done != claimed)
		broken(t, "%zu pieces of work were handed out, and %zu are done", claimed, counts.done);
	return MR_OK;
}

static void
note_problem(void *ctx, const struct mr_finding *f)
{
	if (f->severity == MR_PROBLEM && !f->fixed && strcmp(f->code, "space") != 0)
		broken(ctx, "doctor: %.40s: %.140s", f->code, f->what);
}

static void
trial_done(struct trial *t)
{
	free(t->all);
}

enum mr_rc
verdict_reach(int journals_fd, struct mr_room *room, struct verdict *ret, struct mr_error *err)
{
	struct mr_scan all = {
		.filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE }, .bodies = true, .trouble = tell_unreadable
	};
	mr_auto(trial_done) struct trial t = { .v = ret };

	*ret = (struct verdict){ 0 };
	for (unsigned i = 0; i < SENDERS; i++)
		TRY(read_journal(journals_fd, i, &t, add_sent, err));
	if (t.n > 0)
		qsort(t.all, t.n, sizeof *t.all, by_tag);
	for (unsigned i = 0; i <= WORKERS; i++)
		TRY(read_journal(journals_fd, i, &t, take_entry, err));
	TRY(mr_doctor(room, false, note_problem, &t, err));
	for (t.reader = 0; t.reader < READERS; t.reader++) {
		const char name[] = { 'r', (char)('0' + t.reader), '\0' };

		TRY(mr_scan(room, name, &all, judge_copy, &t, err));
	}
	TRY(judge_queue(&t, room, err));
	for (size_t i = 0; i < t.n; i++)
		judge_one(&t, &t.all[i]);
	return t.failed ? mr_nomem(err) : MR_OK;
}
