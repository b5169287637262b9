/* SPDX-License-Identifier: MIT */
/*
 * batch.c - send --batch. Lines are gathered into groups that are sent together (mr_send_many): up to so many, or until
 * there is nothing more to read at the moment, so that a slow writer does not wait. The answers of a group are printed
 * when all of it is durable, and before the next is sent: an id that was printed is a promise.
 */
#include "cli/draft.h"
#include "helptext.h"
#include <sys/resource.h>
#include <poll.h>

#define GROUP_MAX 1000
#define GROUP_BYTES ((size_t)8 << 20)
#define CHUNK ((size_t)64 << 10)
#define LINE_MAX_BYTES (3 * MR_BODY_MAX + CHUNK) /* a text of 16 MiB, most of it escaped */

struct entry { /* one line of the group */
	size_t line;
	struct mr_error err; /* it is no draft; MR_OK: it is the next one */
};
struct batch {
	struct cli *cli;
	struct lines in;
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
	buf_done(&(*b)->in.bytes);
	arena_free((*b)->own);
	mr_names_done(&(*b)->nudged);
	free(*b);
}

/* ---- Out ---- */

/* Of all lines the worst: in doubt, failed, refused, nobody of that name. */
static void
note_code(struct batch *b, enum mr_rc rc)
{
	static const char rank[] = {
		[EXIT_NOTHING] = 1, [EXIT_MISSING] = 2, [EXIT_REFUSED] = 3, [EXIT_FAILED] = 4, [EXIT_DOUBT] = 5
	};

	if (rank[exit_of(rc)] > rank[b->code])
		b->code = exit_of(rc);
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
	if (receipt->notify)
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
	size_t next = 0;

	mr_send_many(b->cli->room, &b->cli->self, b->drafts, b->drafts_n, b->sent);
	for (size_t i = 0; i < b->entries_n; i++) {
		const struct entry *entry = &b->entries[i];
		const struct mr_draft *draft = &b->drafts[next];
		struct mr_sent *sent = entry->err.code == MR_OK ? &b->sent[next++] : NULL;
		bool fine = sent && sent->rc == MR_OK;

		if (fine && !draft->dry_run && (draft->thread || draft->reply_to))
			draft_note_limited(b->cli, &sent->receipt);
		print_line(b, entry->line, sent, sent && !fine ? &sent->error : &entry->err);
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

/* All lines that there are. False: nobody takes the answers. */
static bool
take_lines(struct batch *b)
{
	const struct send_options *o = b->cli->opts;
	struct mr_str line;
	enum line got;

	while ((got = lines_next(&b->in, &line)) != LINE_NONE) {
		struct mr_draft *draft = &b->drafts[b->drafts_n];
		struct entry *entry = &b->entries[b->entries_n];

		b->lines++;
		if (got == LINE_WHOLE && str_trim(line).len == 0)
			continue;
		*entry = (struct entry){ .line = b->lines };
		b->entries_n++;
		if (got == LINE_TOO_LONG) {
			(void)mr_fail(&entry->err, MR_REFUSED,
			    "the line has over %zu bytes\nput the text into a file and send its path", LINE_MAX_BYTES);
		} else if (batch_line(line, &b->own, draft, &entry->err) == MR_OK) {
			draft->dry_run = b->cli->dry_run;
			draft->hold |= o->hold;
			draft->force |= o->draft.force;
			b->drafts_n++;
		}
		b->bytes += got == LINE_WHOLE ? line.len : 0;
		if ((b->entries_n == GROUP_MAX || b->bytes >= GROUP_BYTES) && !flush(b))
			return false;
	}
	return true;
}

int
batch_run(struct cli *cli)
{
	mr_auto(batch_free) struct batch *b = calloc(1, sizeof(*b));
	const rlim_t enough = 4 * GROUP_MAX; /* each message of a group is an open file until all are on the disk */
	struct rlimit files;
	struct pollfd in = { .fd = 0, .events = POLLIN };

	TRY_CLI(mr_got(b, &cli->err));
	b->cli = cli;
	b->in.longest = LINE_MAX_BYTES;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < enough) {
		files.rlim_cur = files.rlim_max < enough ? files.rlim_max : enough;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* refused: in smaller groups, then */
	}
	while (!b->in.ended) {
		if (b->entries_n > 0 && poll(&in, 1, 0) <= 0 && !flush(b))
			return b->code;
		if (!lines_read(&b->in)) {
			(void)mr_fail_errno(&cli->err, "cannot read 'stdin'");
			(void)cli_fail(cli, &cli->err);
			note_code(b, MR_IO);
		}
		if (!take_lines(b))
			return b->code;
	}
	if (b->entries_n > 0)
		(void)flush(b);
	return b->code;
}
