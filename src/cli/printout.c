/* SPDX-License-Identifier: MIT */
/*
 * printout.c - mail on stdout: how much text a command shows off a terminal, the fence around it (promises 7 and 9),
 * and what inbox, sent, search, thread and wait share: run a scan, print what it finds.
 *
 * Harnesses cut long output before the model sees it, so mail that stdout took may never have been read. Text
 * for an agent therefore stays below a budget: a piece is shown whole or not at all, and what was not shown
 * is counted, so that the caller marks none of it and the last line says how to get it. The first piece that
 * does not fit ends the showing, so that order is kept; only a message that no call with this budget could
 * show whole is shown in part, or it would block the ones behind it for ever.
 *
 * The lines of the fence (base/fence.h) have 8 random digits. The sender could not know them, so no byte of the
 * mail can close the fence or begin another message.
 */
#include "cli/printout.h"
#include "cli/view.h"

#include <unistd.h>

#define BUDGET_DEFAULT 9000
#define LINE_CHARS 20 /* no line of a list is shorter: id, time and sender alone are longer */
#define CLOSING 300   /* kept free for the end of the fence and the note */
#define OPENING 75    /* length of the line that opens the fence, and a little */
#define HOW_MAX 120
#define CUT_LEAST 200 /* less than that of a message is not worth showing */
#define CUT_NOTE 210

/* ---- The budget ---- */

void
budget_begin(struct cli *cli)
{
	struct budget *b = &cli->budget;
	int64_t limit = cli->out_tty || cli->json ? 0 : BUDGET_DEFAULT;

	*b = (struct budget){ .fenced = !cli->out_tty && !cli->json };
	fence_mark(b->mark);
	if (cli->budget_option >= 0)
		limit = cli->budget_option;
	b->limit = limit == 0 || cli->json ? INT64_MAX : limit;
	b->used = (int64_t)utf8_chars(buf_str(&cli->out));
}

static void
add_counted(struct cli *cli, const struct buf *text)
{
	cli->out.failed |= text->failed;
	buf_add(&cli->out, buf_str(text));
	cli->budget.used += (int64_t)utf8_chars(buf_str(text));
}

static void
open_fence(struct cli *cli)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (!cli->budget.fenced || cli->budget.open)
		return;
	cli->budget.open = true;
	(cli->budget.own ? fence_open_own : fence_open)(&line, cli->budget.mark);
	add_counted(cli, &line);
}

static int64_t
space_left(const struct cli *cli)
{
	const struct budget *b = &cli->budget;

	if (b->limit == INT64_MAX)
		return INT64_MAX;
	return b->limit - b->used - CLOSING - (b->fenced && !b->open ? OPENING : 0);
}

bool
budget_add(struct cli *cli, const struct buf *piece)
{
	struct budget *b = &cli->budget;
	int64_t chars = (int64_t)utf8_chars(buf_str(piece));

	if (piece->failed) {
		cli->out.failed = true; /* cli_flush says so, and nothing gets marked */
		return false;
	}
	if (b->full || chars > space_left(cli)) {
		b->full = true;
		b->left++;
		b->left_chars += chars;
		return false;
	}
	open_fence(cli);
	add_counted(cli, piece);
	b->shown++;
	return true;
}

static bool
add_and_tell(struct cli *cli, const struct mr_message *msg, const struct buf *piece)
{
	bool added = budget_add(cli, piece);

	if (added && cli->sink && cli->sink->shown)
		cli->sink->shown(cli->sink->ctx, msg, true);
	return added;
}

bool
budget_line(struct cli *cli, const struct mr_message *msg, const char *behind)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (cli->json) {
		out_json_message(cli, NULL, msg, false, NULL);
		return true;
	}
	text_line(cli, &line, msg, behind);
	return add_and_tell(cli, msg, &line);
}

void
budget_left(struct cli *cli, size_t pieces)
{
	if (pieces == 0)
		return;
	cli->budget.left += pieces;
	cli->budget.full = cli->budget.untried = true;
}

/* True if a part was shown. */
static bool
show_part(struct cli *cli, const struct mr_message *msg, struct mr_str piece, int64_t cut_chars)
{
	struct budget *b = &cli->budget;
	int64_t chars = (int64_t)utf8_chars(piece), room = space_left(cli) - CUT_NOTE;
	mr_auto(buf_done) struct buf part = BUF_INIT;

	if (cut_chars > 0 && room > cut_chars)
		room = cut_chars;
	if (room < CUT_LEAST)
		return false;
	buf_add(&part, utf8_cut(piece, (size_t)room));
	if (part.len > 0 && part.ptr[part.len - 1] != '\n')
		buf_addc(&part, '\n');
	/* The delimiter in this line tells it from text of the message itself. */
	buf_addf(&part,
	    "--- cut %s: %s, not marked; all of it: mailroom read %s --to FILE.txt; archive it unread: mailroom archive %s "
	    "--include-unread ---\n",
	    b->fenced ? b->mark : "here", counted((size_t)(chars - room), "more character").text, short_id(msg->id),
	    short_id(msg->id));
	open_fence(cli);
	add_counted(cli, &part);
	b->cut++;
	return true;
}

bool
budget_message(struct cli *cli, const struct mr_message *msg, int64_t cut_chars)
{
	char first[4000];
	mr_auto(buf_done) struct buf piece = BUF_IN(first);
	const struct budget *b = &cli->budget;

	if (cli->json) {
		out_json_message(cli, NULL, msg, true, NULL);
		return true;
	}
	text_message(cli, &piece, 0, msg);
	int64_t chars = (int64_t)utf8_chars(buf_str(&piece));
	bool too_long_for_any_call = b->limit != INT64_MAX && chars > b->limit - CLOSING - OPENING;

	if (b->full || piece.failed || !too_long_for_any_call || !show_part(cli, msg, buf_str(&piece), cut_chars))
		return add_and_tell(cli, msg, &piece);
	if (cli->sink && cli->sink->shown)
		cli->sink->shown(cli->sink->ctx, msg, false);
	return false;
}

void
budget_legend(struct cli *cli)
{
	static const struct {
		unsigned mark;
		const char *text, *own; /* of mail to this agent, of what it sent */
	} signs[] = { { LINE_UNREAD, "● unread", "● waits" }, { LINE_READ, "○ read", "○ waits for nobody" },
		{ LINE_HELD, "◐ in hand", "◐ in hand" }, { LINE_URGENT, "! high or urgent", "! high or urgent" },
		{ LINE_PINNED, "F pinned", "F pinned" } };
	mr_auto(buf_done) struct buf line = BUF_INIT;

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (cli->budget.marks & signs[i].mark)
			buf_addf(
			    &line, "%s%s", line.len > 0 ? ", " : "", cli->budget.own ? signs[i].own : signs[i].text);
	buf_addc(&line, '\n');
	add_counted(cli, &line);
	cli->budget.marks = 0;
}

void
budget_end(struct cli *cli, const char *noun, const char *how)
{
	struct budget *b = &cli->budget;
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (b->open) {
		fence_close(&line, b->mark);
		add_counted(cli, &line);
		b->open = false;
	}
	if (b->marks && !cli->json)
		budget_legend(cli);
	if (b->left == 0 || cli->json)
		return;
	buf_clear(&line);
	buf_addf(&line, "%zu%s %s%s", b->left, b->shown + b->cut > 0 ? " more" : "", noun, b->left == 1 ? "" : "s");
	if (b->left_chars > 0 && !b->untried)
		buf_addf(&line, " (%s)", counted((size_t)b->left_chars, "character").text);
	buf_adds(&line, " not shown: ");
	buf_add(&line, utf8_cut(str_of(how), HOW_MAX));
	if (b->untried) {
		buf_adds(&line, ", or a larger --budget");
	} else if (b->left_chars > 0 && b->limit != INT64_MAX) {
		int64_t enough = b->used + b->left_chars + CLOSING + OPENING;

		buf_addf(&line, ", or --budget %lld", (long long)((enough + 999) / 1000 * 1000));
	}
	buf_addc(&line, '\n');
	add_counted(cli, &line);
}

/* ---- Running a scan ---- */

void
printout_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct printout *l = ctx;

	l->trouble++;
	cli_warn(l->cli, "skipped '%s': %s (it is kept; 'mailroom doctor' says more)", path, err->message);
}

bool
printout_hides(struct cli *cli, const char *owner, const struct mr_message *msg)
{
	struct mr_error err = { 0 };

	if (mr_is_control(cli->room, owner, msg, &err))
		return true;
	if (err.code != MR_OK)
		cli_warn(cli, "the control message %s cannot be used: %s", short_id(msg->id), err.message);
	return false;
}

bool
printout_collect(void *ctx, const struct mr_message *msg)
{
	struct printout *l = ctx;

	return (msg->folder != MR_SENT && printout_hides(l->cli, l->cli->self.agent, msg)) ||
	       names_add(&l->seen, str_of(msg->id));
}

bool
printout_count(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

bool
printout_take(
    struct cli *cli, struct mr_show *show, const char *id, int64_t cut_chars, size_t *ret_shown, int *ret_exit)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	enum mr_rc rc = mr_show_take(show, id, &msg, &cli->err);
	/* Another command has it, or had it, or a recv of this very life took it as work since it was listed: that is
	 * how they share. */
	bool elsewhere = (msg.flags & MR_SEEN) || msg.token[0] != '\0' || (msg.folder & (MR_ARCHIVE | MR_DEAD));

	if (rc == MR_EMPTY || rc == MR_BUSY || rc == MR_NOTFOUND || (rc == MR_OK && elsewhere))
		return true;
	if (rc != MR_OK) {
		*ret_exit = cli_fail(cli, &cli->err);
		return rc == MR_CORRUPT;
	}
	bool whole = budget_message(cli, &msg, cut_chars);

	*ret_shown += whole;
	if (!whole && mr_show_back(show, msg.id, &cli->err) != MR_OK)
		*ret_exit = cli_fail(cli, &cli->err);
	return cli->json || !cli->budget.full;
}

int
printout_nothing(struct cli *cli, const char *sentence)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct printout l = { .cli = cli };
	size_t unread = 0;

	(void)mr_check(cli->room, cli->self.agent, printout_trouble, &l, &unread, IGNORED);
	text_name(cli, &name, cli->self.agent);
	cli_warn(cli, "%s %s%s", sentence, buf_z(&name), l.trouble > 0 ? " that can be read" : "");
	return EXIT_NOTHING;
}

/* A message of a conversation, the newest first: whole as far as that fits, older ones as a line. A quarter of the
 * budget is for those lines. */
static void
print_turn(struct printout *l, const struct mr_message *msg)
{
	struct cli *cli = l->cli;
	struct budget *b = &cli->budget;
	mr_auto(buf_done) struct buf piece = BUF_INIT;
	size_t pieces = b->shown + b->cut, start = cli->out.len;
	size_t *grown = realloc(l->starts, (l->starts_n + 2) * sizeof(*grown));

	cli->out.failed |= !grown;
	if (!grown)
		return;
	l->starts = grown;
	b->thread = true;
	if (!l->brief) {
		text_message(cli, &piece, 0, msg);
		int64_t chars = (int64_t)utf8_chars(buf_str(&piece)), left = space_left(cli);

		l->brief = chars > left || (b->limit != INT64_MAX && b->shown > 0 && left - chars < b->limit / 4);
		cli->out.failed |= piece.failed;
	}
	if (!l->brief)
		(void)add_and_tell(cli, msg, &piece);
	else if (piece.len == 0 || pieces > 0 || !show_part(cli, msg, buf_str(&piece), b->limit / 2))
		(void)budget_line(cli, msg, "");
	if (b->shown + b->cut == pieces)
		return;                  /* left out */
	if (l->starts_n == 0 && b->open) /* behind the line that opens the fence */
		start += strcspn(buf_z(&cli->out) + start, "\n") + 1;
	l->starts[l->starts_n++] = start;
}

void
printout_turn(struct printout *l)
{
	mr_auto(buf_done) struct buf turned = BUF_INIT;
	struct buf *out = &l->cli->out;

	if (l->starts_n < 2 || !buf_ok(out))
		return;
	l->starts[l->starts_n] = out->len;
	for (size_t i = l->starts_n; i-- > 0;)
		buf_add(&turned, (struct mr_str){ out->ptr + l->starts[i], l->starts[i + 1] - l->starts[i] });
	if (buf_ok(&turned))
		memcpy(out->ptr + l->starts[0], turned.ptr, turned.len);
	else
		out->failed = true;
}

/* A message that was found, and the text around the first hit in it, which is bold or stands between two stars. */
static void
print_hit(struct printout *l, const struct mr_message *msg)
{
	struct cli *cli = l->cli;
	mr_auto(buf_done) struct buf piece = BUF_INIT, hit = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names parts = { 0 };
	struct query_snippet s = { 0 };
	unsigned form = out_form(cli, FENCE_LINE);
	bool found = msg->body && query_snippet(l->query, (struct mr_str){ msg->body, msg->body_len }, &s);

	if (cli->json) {
		cli->out.failed |=
		    found && (!names_add(&parts, s.before) || !names_add(&parts, s.hit) || !names_add(&parts, s.after));
		out_json_message(cli, NULL, msg, false, CELLS(found ? kv_names("snippet", &parts) : kv_none()));
		return;
	}
	text_line(cli, &piece, msg, "");
	if (found) {
		buf_adds(&piece, "       ");
		(void)fence_add(&piece, s.before, form, 0);
		(void)fence_add(&hit, s.hit, form, 0);
		buf_adds(&piece, cli->color ? "" : "*");
		out_colored(cli, &piece, STYLE_BOLD, buf_str(&hit));
		buf_adds(&piece, cli->color ? "" : "*");
		(void)fence_add(&piece, s.after, form, 0);
		buf_addc(&piece, '\n');
	}
	(void)add_and_tell(cli, msg, &piece);
}

static bool
print_one(void *ctx, const struct mr_message *msg)
{
	struct printout *l = ctx;

	progress_clear(l->cli);
	/* JSON is for programs, and what an agent sent itself it has seen. */
	if (!l->cli->json && msg->folder != MR_SENT && printout_hides(l->cli, l->cli->self.agent, msg)) {
		l->hidden++;
		return true;
	}
	if (l->each_once) {
		if (names_has(&l->seen, msg->id))
			return true;
		if (!names_add(&l->seen, str_of(msg->id)))
			return false;
	}
	l->n++;
	if (l->query)
		print_hit(l, msg);
	else if (l->conversation && !l->cli->json)
		print_turn(l, msg);
	else if (l->conversation)
		(void)budget_message(l->cli, msg, 0);
	else
		(void)budget_line(l->cli, msg, "");
	if (l->total > 0 && l->cli->budget.full) /* the rest is only counted */
		return false;
	return !l->stream || cli_flush(l->cli);
}

static void
show_progress(void *ctx, size_t n)
{
	progress_count(((struct printout *)ctx)->cli, n, "looked through");
}

enum mr_rc
printout_run(struct printout *l, struct mr_scan *scan)
{
	scan->trouble = printout_trouble;
	if (l->cli->out_tty && !l->cli->json && !l->cli->sink && isatty(2))
		scan->looked = show_progress;
	scan->bodies = l->conversation;
	if (!scan->bodies && !l->query && l->cli->budget.limit != INT64_MAX) {
		size_t fit = (size_t)(l->cli->budget.limit / LINE_CHARS) + 1;

		scan->ret_total = &l->total;
		scan->screen = scan->screen && scan->screen < fit ? scan->screen : fit;
	}
	enum mr_rc rc = mr_scan(l->cli->room, l->cli->self.agent, scan, print_one, l, &l->cli->err);

	progress_clear(l->cli);
	scan->ret_total = NULL;
	if (rc == MR_OK && l->total > l->n + l->hidden && (l->cli->budget.full || l->n + l->hidden >= scan->screen)) {
		budget_left(l->cli, l->total - l->n - l->hidden);
		l->n = l->total - l->hidden;
	}
	return rc;
}

enum mr_rc
printout_held(struct printout *l, const struct mr_filter *filter)
{
	return mr_queue_held(l->cli->room, l->cli->self.agent, filter, print_one, l, &l->cli->err);
}

void
printout_done(struct printout *l)
{
	mr_names_done(&l->seen);
	free(l->starts);
	l->starts = NULL;
}
