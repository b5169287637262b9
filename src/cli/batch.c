/* SPDX-License-Identifier: MIT */
/*
 * batch.c - send --batch. Lines are gathered into groups that are sent together (mr_send_many): up to so many, or until
 * there is nothing more to read at the moment, so that a slow writer does not wait. The answers of a group are printed
 * when all of it is durable, and before the next is sent: whoever reads an id has the promise.
 */
#include "cli/draft.h"
#include "base/error.h"
#include "base/sys.h"
#include "helptext.h"
#include <sys/resource.h>
#include <errno.h>
#include <poll.h>

#define GROUP_MAX 1000
#define GROUP_BYTES ((size_t)8 << 20)
#define CHUNK ((size_t)64 << 10)
#define LINE_MAX_BYTES (3 * MR_BODY_MAX + CHUNK) /* a text of 16 MiB, most of it escaped */

struct entry { /* one line of the group */
	size_t line;
	const struct mr_error *err; /* it is no draft; else it is the next one */
};
struct batch {
	struct cli *cli;
	struct buf in;        /* read and not taken yet */
	size_t taken, looked; /* of it: lines that were taken, bytes without an end of line */
	bool skipping;        /* to the end of a line that is too long */
	size_t lines;
	struct arena *own; /* of the group */
	struct entry entries[GROUP_MAX];
	struct mr_draft drafts[GROUP_MAX];
	struct mr_sent sent[GROUP_MAX];
	size_t entries_n, drafts_n, bytes;
	struct mr_names nudged; /* a mailbox once: that there is mail is said, not how much */
	int code;
};

static void
batch_free(struct batch **b)
{
	if (!*b)
		return;
	buf_done(&(*b)->in);
	arena_free((*b)->own);
	mr_names_done(&(*b)->nudged);
	free(*b);
}

/* ---- Out ---- */

/* Of all lines the worst: in doubt, failed, refused, nobody of that name. */
static size_t
badness(int code)
{
	static const int order[] = { EXIT_DONE, EXIT_NOTHING, EXIT_MISSING, EXIT_REFUSED, EXIT_FAILED, EXIT_DOUBT };
	size_t i = 0;

	while (i < sizeof(order) / sizeof(order[0]) && order[i] != code)
		i++;
	return i;
}

static void
note_code(struct batch *b, enum mr_rc rc)
{
	int code = exit_of(rc);

	if (badness(code) > badness(b->code))
		b->code = code;
}

static void
print_trouble(struct json *j, const struct mr_error *err)
{
	json_key(j, "error");
	json_open(j, '{');
	json_key_str(j, "code", mr_rc_word(err->code));
	json_key_str(j, "message", err->message);
	json_key_str(j, "hint", err->hint[0] ? err->hint : NULL);
	json_close(j);
}

/* Of a thousand lines nearly all have nothing to tell of. */
static void
add_names(struct json *j, const char *key, const struct mr_names *names)
{
	if (names->n > 0)
		json_key_names(j, key, names);
}

static void
print_line(struct batch *b, size_t line, const struct mr_sent *sent, const struct mr_error *err)
{
	struct json j = JSON_INIT(&b->cli->out);
	bool dry = b->cli->dry_run;

	json_open(&j, '{');
	json_key_int(&j, "line", (int64_t)line);
	if (sent && (sent->rc == MR_OK || sent->rc == MR_INDOUBT)) {
		const struct mr_receipt *receipt = &sent->receipt;

		json_key_str(&j, "id", dry ? NULL : receipt->id);
		json_key_names(&j, "to", &receipt->to);
		add_names(&j, "not_live", &receipt->not_live);
		add_names(&j, "missing", &receipt->missing);
		add_names(&j, "trouble", &receipt->trouble);
		add_names(&j, "warnings", &receipt->warnings);
		json_key_bool(&j, "repeated", receipt->repeated);
		json_key_int(&j, "retired", (int64_t)receipt->retired);
		b->cli->changed |= !dry;
	}
	if (err->code != MR_OK)
		print_trouble(&j, err);
	out_json_line(b->cli, &j);
	note_code(b, sent ? sent->rc : err->code);
}

/* After the answers are out, as with a single message. */
static void
follow_up(struct batch *b, const struct mr_draft *draft, const struct mr_sent *sent)
{
	const struct mr_receipt *receipt = &sent->receipt;

	if (sent->rc != MR_OK || draft->dry_run)
		return;
	if (receipt->warning != NULL)
		cli_warn(b->cli, "%s", receipt->warning);
	if (receipt->repeated)
		return;
	cli_notify(b->cli, receipt, b->cli->self.agent, draft->subject);
	if (receipt->to.n == 1) {
		if (names_has(&b->nudged, receipt->to.v[0]))
			return;
		(void)names_add(&b->nudged, str_of(receipt->to.v[0])); /* out of memory: one nudge too many */
	}
	nudges_of_mail(b->cli, draft, receipt);
}

/* Sends the group and tells. False: nobody takes the answers. */
static bool
flush(struct batch *b)
{
	const struct mr_error none = { 0 };
	size_t next = 0;

	mr_send_many(b->cli->room, &b->cli->self, b->drafts, b->drafts_n, b->sent);
	for (size_t i = 0; i < b->entries_n; i++) {
		const struct mr_draft *draft = b->entries[i].err ? NULL : &b->drafts[next];
		struct mr_sent *sent = b->entries[i].err ? NULL : &b->sent[next++];
		bool fine = sent && sent->rc == MR_OK;

		if (fine && !draft->dry_run && (draft->thread || draft->reply_to))
			draft_note_limited(b->cli, &sent->receipt);
		print_line(b, b->entries[i].line, sent, fine ? &none : sent ? &sent->error : b->entries[i].err);
	}
	bool told = cli_flush(b->cli);

	if (!told)
		b->code = b->cli->changed ? EXIT_DOUBT : EXIT_FAILED;
	for (size_t i = 0; i < b->drafts_n; i++) {
		if (told)
			follow_up(b, &b->drafts[i], &b->sent[i]);
		mr_sent_done(&b->sent[i]);
	}
	arena_free(b->own);
	b->own = NULL;
	b->entries_n = b->drafts_n = b->bytes = 0;
	return told;
}

/* ---- In ---- */

static void
add_wrong(struct batch *b, const struct mr_error *err)
{
	static const struct mr_error no_memory = { .code = MR_NOMEM, .message = "out of memory" };
	struct mr_error *kept = arena_alloc(&b->own, sizeof(*kept));

	if (kept)
		*kept = *err;
	b->entries[b->entries_n++] = (struct entry){ .line = b->lines, .err = kept ? kept : &no_memory };
}

static bool
is_blank(struct mr_str line)
{
	return str_trim(line).len == 0;
}

/* False: nobody takes the answers. */
static bool
take_line(struct batch *b, struct mr_str line)
{
	struct mr_draft *draft = &b->drafts[b->drafts_n];
	struct mr_error err = { 0 };

	b->lines++;
	if (is_blank(line))
		return true;
	if (batch_line(line, &b->own, draft, &err) == MR_OK) {
		const struct send_options *o = b->cli->opts;

		draft->dry_run = b->cli->dry_run;
		draft->hold |= o->hold;
		draft->force |= o->draft.force;
		b->entries[b->entries_n++] = (struct entry){ .line = b->lines };
		b->drafts_n++;
	} else {
		add_wrong(b, &err);
	}
	b->bytes += line.len;
	return b->entries_n < GROUP_MAX && b->bytes < GROUP_BYTES ? true : flush(b);
}

static bool
take_too_long(struct batch *b)
{
	struct mr_error err = { 0 };

	b->lines++;
	(void)mr_fail(&err, MR_REFUSED, "the line has over %zu bytes", LINE_MAX_BYTES);
	(void)mr_hint(&err, "put the text into a file and send its path");
	add_wrong(b, &err);
	return b->entries_n < GROUP_MAX ? true : flush(b);
}

static void
drop_taken(struct batch *b)
{
	if (b->taken == 0)
		return; /* a long line comes in many pieces: it is not to be copied with each */
	b->in.len -= b->taken;
	if (b->in.len > 0)
		memmove(b->in.ptr, b->in.ptr + b->taken, b->in.len);
	b->taken = 0;
}

/* All lines that are whole; at the end of the input also what is left. */
static bool
take_lines(struct batch *b, bool end)
{
	bool fine = true;

	while (fine && b->taken < b->in.len) {
		const char *from = b->in.ptr + b->taken;
		size_t n = b->in.len - b->taken;
		const char *stop = memchr(from + b->looked, '\n', n - b->looked);

		if (!stop && !end) {
			b->looked = n;
			break;
		}
		size_t len = stop ? (size_t)(stop - from) : n;

		if (!b->skipping)
			fine = take_line(b, (struct mr_str){ from, len });
		b->skipping = false;
		b->taken += len + (stop != NULL);
		b->looked = 0;
	}
	drop_taken(b);
	if (fine && b->in.len > LINE_MAX_BYTES && !b->skipping) {
		fine = take_too_long(b);
		b->skipping = true;
	}
	if (b->skipping) {
		buf_clear(&b->in);
		b->looked = 0;
	}
	return fine;
}

static bool
more_waits(int timeout_ms)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, timeout_ms) > 0;
}

/* Bytes, 0 at the end, -1 after saying what is wrong. */
static ssize_t
read_some(struct batch *b)
{
	struct mr_error err = { 0 };
	ssize_t got = -1;

	if (buf_reserve(&b->in, CHUNK)) {
		do /* somebody who shares it may have made it one that does not block */
			got = sys_read(0, b->in.ptr + b->in.len, CHUNK);
		while (got < 0 && errno == EAGAIN && more_waits(-1));
		if (got < 0)
			(void)mr_fail_errno(&err, "cannot read 'stdin'");
	} else {
		(void)mr_nomem(&err);
	}
	if (got < 0)
		(void)cli_fail(b->cli, &err);
	else
		b->in.len += (size_t)got;
	return got;
}

static bool
copy_all(struct batch *b)
{
	ssize_t got = 1;

	while (got > 0) {
		if (b->entries_n > 0 && !more_waits(0) && !flush(b))
			return false;
		got = read_some(b);
		if (!take_lines(b, got <= 0))
			return false;
	}
	if (got < 0)
		note_code(b, MR_IO);
	return b->entries_n == 0 || flush(b);
}

/* Each message of a group is an open file until all of them are on the disk. */
static void
allow_files(void)
{
	const rlim_t enough = 4 * GROUP_MAX;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= enough)
		return;
	files.rlim_cur = files.rlim_max < enough ? files.rlim_max : enough;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* refused: in smaller groups, then */
}

int
batch_run(struct cli *cli)
{
	mr_auto(batch_free) struct batch *b = calloc(1, sizeof(*b));
	struct mr_error err = { 0 };

	if (!b) {
		(void)mr_nomem(&err);
		return cli_fail(cli, &err);
	}
	b->cli = cli;
	allow_files();
	(void)copy_all(b);
	return b->code;
}
