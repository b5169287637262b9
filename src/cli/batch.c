/* SPDX-License-Identifier: MIT */
/*
 * batch.c - send --batch. Lines are gathered into groups that are sent together (mr_send_many): up to so many, or until
 * there is nothing more to read at the moment, so that a slow writer does not wait. The answers of a group are printed
 * when all of it is durable, and before the next is sent: an id that was printed is a promise.
 */
#include "cli/draft.h"
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
static void
note_code(struct batch *b, enum mr_rc rc)
{
	static const int order[] = { EXIT_DONE, EXIT_NOTHING, EXIT_MISSING, EXIT_REFUSED, EXIT_FAILED, EXIT_DOUBT };
	int code = exit_of(rc);
	bool worse = false;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i] == code && worse)
			b->code = code;
		worse |= order[i] == b->code;
	}
}

static void
print_line(struct batch *b, size_t line, const struct mr_sent *sent, const struct mr_error *err)
{
/* Of a thousand lines nearly all have nothing to tell of. */
#define SOME(key, list) ((list).n > 0 ? kv_names(key, &(list)) : kv_none())
	struct json j = JSON_INIT(&b->cli->out);
	bool dry = b->cli->dry_run;

	json_cells(&j, CELLS(kv_open(""), kv_size("line", line)));
	if (sent && (sent->rc == MR_OK || sent->rc == MR_INDOUBT)) {
		const struct mr_receipt *r = &sent->receipt;

		json_cells(
		    &j, CELLS(kv_str("id", dry ? NULL : r->id), kv_names("to", &r->to), SOME("not_live", r->not_live),
			    SOME("missing", r->missing), SOME("trouble", r->trouble), SOME("warnings", r->warnings),
			    kv_bool("repeated", r->repeated), kv_size("retired", r->retired)));
		b->cli->changed |= !dry;
	}
#undef SOME
	if (err->code != MR_OK)
		json_cells(&j, CELLS(kv_open("error"), kv_str("code", mr_rc_word(err->code)),
				   kv_str("message", err->message), kv_opt("hint", err->hint), kv_close()));
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
		mr_receipt_done(&b->sent[i].receipt);
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

/* False: nobody takes the answers. */
static bool
take_line(struct batch *b, struct mr_str line)
{
	struct mr_draft *draft = &b->drafts[b->drafts_n];
	struct mr_error err = { 0 };

	b->lines++;
	if (str_trim(line).len == 0)
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
	return (b->entries_n < GROUP_MAX && b->bytes < GROUP_BYTES) || flush(b);
}

/* All lines that are whole; at the end of the input also what is left. */
static bool
take_lines(struct batch *b, bool end)
{
	struct mr_error err = { 0 };
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
	if (b->taken > 0) { /* a long line comes in many pieces: it is not to be copied with each */
		b->in.len -= b->taken;
		if (b->in.len > 0)
			memmove(b->in.ptr, b->in.ptr + b->taken, b->in.len);
		b->taken = 0;
	}
	if (fine && b->in.len > LINE_MAX_BYTES && !b->skipping) {
		b->lines++;
		(void)mr_fail(&err, MR_REFUSED,
		    "the line has over %zu bytes\nput the text into a file and send its path", LINE_MAX_BYTES);
		add_wrong(b, &err);
		fine = b->entries_n < GROUP_MAX || flush(b);
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

static enum mr_rc
read_some(struct batch *b, size_t *ret, struct mr_error *err)
{
	ssize_t got;

	TRY(mr_got(buf_reserve(&b->in, CHUNK), err));
	do /* somebody who shares it may have made it one that does not block */
		got = sys_read(0, b->in.ptr + b->in.len, CHUNK);
	while (got < 0 && errno == EAGAIN && more_waits(-1));
	if (got < 0)
		return mr_fail_errno(err, "cannot read 'stdin'");
	b->in.len += (size_t)got;
	*ret = (size_t)got;
	return MR_OK;
}

int
batch_run(struct cli *cli)
{
	mr_auto(batch_free) struct batch *b = calloc(1, sizeof(*b));
	const rlim_t enough = 4 * GROUP_MAX; /* each message of a group is an open file until all are on the disk */
	struct rlimit files;
	bool more = true;

	if (!b)
		TRY_CLI(mr_nomem(&cli->err));
	b->cli = cli;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < enough) {
		files.rlim_cur = files.rlim_max < enough ? files.rlim_max : enough;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* refused: in smaller groups, then */
	}
	while (more) {
		size_t got = 0;

		if (b->entries_n > 0 && !more_waits(0) && !flush(b))
			return b->code;
		if (read_some(b, &got, &cli->err) != MR_OK) {
			(void)cli_fail(cli, &cli->err);
			note_code(b, MR_IO);
		}
		more = got > 0;
		if (!take_lines(b, !more))
			return b->code;
	}
	if (b->entries_n > 0)
		(void)flush(b);
	return b->code;
}
