/* SPDX-License-Identifier: MIT */
/*
 * budget.c - how much text a command shows off a terminal, and the fence around it (promises 7 and 9).
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
#include "base/text.h"
#include "cli/cli.h"

#define BUDGET_DEFAULT 9000
#define CLOSING 300 /* kept free for the end of the fence and the note */
#define HOW_MAX 120
#define CUT_LEAST 200 /* less than that of a message is not worth showing */
#define CUT_NOTE 210

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
add_counted(struct cli *cli, struct mr_str text)
{
	buf_add(&cli->out, text);
	cli->budget.used += (int64_t)utf8_chars(text);
}

static void
open_fence(struct cli *cli)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (!cli->budget.fenced || cli->budget.open)
		return;
	cli->budget.open = true;
	if (cli->budget.own)
		fence_open_own(&line, cli->budget.mark);
	else
		fence_open(&line, cli->budget.mark);
	add_counted(cli, buf_str(&line));
}

#define OPENING 75 /* length of that line, and a little */

static int64_t
space_left(const struct cli *cli)
{
	const struct budget *b = &cli->budget;

	if (b->limit == INT64_MAX)
		return INT64_MAX;
	return b->limit - b->used - CLOSING - (b->fenced && !b->open ? OPENING : 0);
}

bool
budget_add(struct cli *cli, struct mr_str piece)
{
	struct budget *b = &cli->budget;
	int64_t chars = (int64_t)utf8_chars(piece);

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

static void
tell_shown(struct cli *cli, const struct mr_message *msg, bool whole)
{
	if (cli->sink)
		cli->sink->shown(cli->sink->ctx, msg, whole);
}

bool
budget_line(struct cli *cli, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	text_line(cli, &line, msg);
	if (line.failed) {
		cli->out.failed = true;
		return false;
	}
	if (!budget_add(cli, buf_str(&line)))
		return false;
	tell_shown(cli, msg, true);
	return true;
}

void
budget_left(struct cli *cli, size_t pieces)
{
	if (pieces == 0)
		return;
	cli->budget.left += pieces;
	cli->budget.full = cli->budget.untried = true;
}

static bool
too_long_for_any_call(const struct cli *cli, int64_t chars)
{
	const struct budget *b = &cli->budget;

	return b->limit != INT64_MAX && chars > b->limit - CLOSING - OPENING;
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
	buf_addf(&part, "--- cut %s: ", b->fenced ? b->mark : "here");
	out_count(&part, (size_t)(chars - room), "more character");
	buf_addf(&part,
	    ", not marked; all of it: mailroom read %s --to FILE.txt; away with it: mailroom archive %s "
	    "--include-unread ---\n",
	    short_id(msg->id), short_id(msg->id));
	open_fence(cli);
	add_counted(cli, buf_str(&part));
	b->cut++;
	return true;
}

bool
budget_message(struct cli *cli, const struct mr_message *msg, int64_t cut_chars)
{
	mr_auto(buf_done) struct buf piece = BUF_INIT;

	text_message(cli, &piece, msg);
	if (piece.failed) {
		cli->out.failed = true; /* cli_flush says so, and nothing gets marked */
		return false;
	}
	int64_t chars = (int64_t)utf8_chars(buf_str(&piece));

	if (!cli->budget.full && too_long_for_any_call(cli, chars) && show_part(cli, msg, buf_str(&piece), cut_chars)) {
		tell_shown(cli, msg, false);
		return false;
	}
	if (!budget_add(cli, buf_str(&piece)))
		return false;
	tell_shown(cli, msg, true);
	return true;
}

/* A quarter of the budget is for the older ones, of which a line says what they were about. */
static bool
fits_whole(const struct cli *cli, int64_t chars)
{
	const struct budget *b = &cli->budget;
	int64_t left = space_left(cli);

	return chars <= left && (b->limit == INT64_MAX || b->shown == 0 || left - chars >= b->limit / 4);
}

void
budget_turn(struct cli *cli, const struct mr_message *msg, bool *brief)
{
	mr_auto(buf_done) struct buf piece = BUF_INIT;

	cli->budget.thread = true;
	if (*brief) {
		(void)budget_line(cli, msg);
		return;
	}
	text_message(cli, &piece, msg);
	if (piece.failed) {
		cli->out.failed = true;
		return;
	}
	*brief = !fits_whole(cli, (int64_t)utf8_chars(buf_str(&piece)));
	if (!*brief)
		(void)budget_message(cli, msg, 0);
	else if (cli->budget.shown + cli->budget.cut > 0 ||
		 !show_part(cli, msg, buf_str(&piece), cli->budget.limit / 2))
		(void)budget_line(cli, msg);
}

static void
add_note(struct cli *cli, const char *noun, const char *how)
{
	struct budget *b = &cli->budget;
	mr_auto(buf_done) struct buf note = BUF_INIT;
	struct mr_str what = utf8_cut(str_of(how), HOW_MAX);

	buf_addf(&note, "%zu%s %s%s", b->left, b->shown + b->cut > 0 ? " more" : "", noun, b->left == 1 ? "" : "s");
	if (b->left_chars > 0 && !b->untried) {
		buf_adds(&note, " (");
		out_count(&note, (size_t)b->left_chars, "character");
		buf_adds(&note, ")");
	}
	buf_adds(&note, " not shown: ");
	buf_add(&note, what);
	if (b->untried) {
		buf_adds(&note, ", or a larger --budget");
	} else if (b->left_chars > 0 && b->limit != INT64_MAX) {
		int64_t enough = b->used + b->left_chars + CLOSING + OPENING;

		buf_addf(&note, ", or --budget %lld", (long long)((enough + 999) / 1000 * 1000));
	}
	buf_addc(&note, '\n');
	add_counted(cli, buf_str(&note));
}

void
budget_legend(struct cli *cli)
{
	static const struct {
		unsigned mark;
		const char *text, *own; /* of mail to this agent, of what it sent */
	} signs[] = { { LINE_UNREAD, "● unread", "● waits" }, { LINE_READ, "○ read", "○ waits for nobody" },
		{ LINE_URGENT, "! high or urgent", "! high or urgent" }, { LINE_PINNED, "F pinned", "F pinned" } };
	mr_auto(buf_done) struct buf line = BUF_INIT;

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (cli->budget.marks & signs[i].mark)
			buf_addf(
			    &line, "%s%s", line.len > 0 ? ", " : "", cli->budget.own ? signs[i].own : signs[i].text);
	buf_addc(&line, '\n');
	add_counted(cli, buf_str(&line));
	cli->budget.marks = 0;
}

void
budget_end(struct cli *cli, const char *noun, const char *how)
{
	struct budget *b = &cli->budget;
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (b->open) {
		fence_close(&line, b->mark);
		add_counted(cli, buf_str(&line));
		b->open = false;
	}
	if (b->marks && !cli->json)
		budget_legend(cli);
	if (b->left > 0 && !cli->json)
		add_note(cli, noun, how);
}
