/* SPDX-License-Identifier: MIT */
/*
 * screen.c - what the screen of an agent's terminal tells. Every doubt is an answer that keeps us from typing: what is
 * typed into a menu chooses something, and what is added to a line that a person is writing is sent with it.
 */
#include "base/error.h"
#include "base/text.h"
#include "harness/harness.h"

#define NEAR_END 14   /* lines above the end in which a sign of work or of a dialog counts */
#define PROMPT_NEAR 8 /* ... and the prompt */
#define LONG_TEXT 600 /* an input area may scroll: of a longer text only the end must be seen */
#define TAIL 200

static const char *const busy_signs[] = { "esc to interrupt", "ctrl+c to interrupt", "ctrl-c to interrupt", NULL };
static const char *const dialog_signs[] = { "enter to select", "enter to confirm", "enter to continue", "enter to exit",
	"press enter", "esc to cancel", "esc to exit", "esc to go back", "(y/n)", "[y/n]", "(yes/no)", "do you want to",
	"do you trust", "would you like to", "allow this", "tab to switch", "arrow keys",
	"\xe2\x86\x91/\xe2\x86\x93 to", "--more--", "rewind", NULL };

/* ---- Lines without escapes ---- */

struct line {
	char text[1024]; /* plain, cut; lower case of ASCII */
	size_t len;
	bool empty;   /* nothing but blanks */
	bool drafted; /* something behind the prompt is neither dim nor under a drawn cursor */
	bool prompt;
	bool choice; /* the prompt sign stands before "1." */
};

struct pen {
	bool dim, inverse;
};

/* "38;5;2" is a colour, not "dim". */
static void
set_pen(struct pen *pen, struct mr_str params)
{
	unsigned values[16] = { 0 };
	size_t n = 1;

	for (size_t i = 0; i < params.len; i++) {
		if (params.ptr[i] == ';' || params.ptr[i] == ':')
			n += n < 16 ? 1 : 0;
		else if (params.ptr[i] >= '0' && params.ptr[i] <= '9')
			values[n - 1] = values[n - 1] % 100000 * 10 + (unsigned)(params.ptr[i] - '0');
	}
	for (size_t i = 0; i < n; i++) {
		unsigned v = values[i];

		if ((v == 38 || v == 48 || v == 58) && i + 1 < n)
			i += values[i + 1] == 5 ? 2 : 4;
		else if (v == 0)
			*pen = (struct pen){ 0 };
		else if (v == 2 || v == 22)
			pen->dim = v == 2;
		else if (v == 7 || v == 27)
			pen->inverse = v == 7;
	}
}

/* Bytes of the escape at s, which begins with ESC. */
static size_t
skip_escape(struct mr_str s, struct pen *pen)
{
	size_t at = 2;

	if (s.len < 2)
		return s.len;
	if (s.ptr[1] == '[') {
		while (at < s.len && (unsigned char)s.ptr[at] < 0x40)
			at++;
		if (at < s.len && s.ptr[at] == 'm')
			set_pen(pen, (struct mr_str){ s.ptr + 2, at - 2 });
		return at < s.len ? at + 1 : at;
	}
	if (s.ptr[1] == ']') {
		while (at < s.len && s.ptr[at] != '\a' && s.ptr[at] != '\033')
			at++;
		return at < s.len && s.ptr[at] == '\033' ? at + 2 : at + 1;
	}
	return s.ptr[1] == '(' || s.ptr[1] == ')' ? 3 : 2;
}

static bool
is_blank(uint32_t cp)
{
	return cp <= ' ' || cp == 0xa0 || cp == 0x3000 || (cp >= 0x2000 && cp <= 0x200b);
}

static bool
is_frame(uint32_t cp) /* box drawing, blocks */
{
	return cp >= 0x2500 && cp <= 0x259f;
}

/* One line of the screen, without its end. The pen goes on to the next one. */
static void
read_line(struct mr_str s, struct pen *pen, struct line *ret)
{
	*ret = (struct line){ .empty = true };
	bool begun = false, behind = false; /* the prompt needs a space behind it, or the end */

	for (size_t at = 0, n; at < s.len; at += n) {
		struct mr_str rest = { s.ptr + at, s.len - at };
		uint32_t cp = 0;

		if (rest.ptr[0] == '\033') {
			n = skip_escape(rest, pen);
			n = n > rest.len ? rest.len : n;
			continue;
		}
		n = utf8_next(rest, &cp);
		n = n > 0 ? n : 1;
		if (ret->len + n < sizeof ret->text) {
			memcpy(ret->text + ret->len, rest.ptr, n);
			ret->len += n;
		}
		ret->empty &= is_blank(cp);
		if (!begun && !is_blank(cp) && !is_frame(cp)) {
			begun = true;
			ret->prompt = cp == 0x276f || cp == 0x203a; /* ❯ › */
		} else if (ret->prompt && !behind) {
			behind = true;
			ret->prompt = is_blank(cp);
		} else if (ret->prompt && !is_blank(cp) && !is_frame(cp)) {
			ret->drafted |= !pen->dim && !pen->inverse;
		}
	}
	for (size_t i = 0; i < ret->len; i++)
		ret->text[i] = ascii_lower(ret->text[i]);
	if (ret->prompt) {
		const char *p = ret->text + strcspn(ret->text, "0123456789abcdefghijklmnopqrstuvwxyz");

		ret->choice = strspn(p, "0123456789") > 0 && p[strspn(p, "0123456789")] == '.';
	}
}

/* ---- Judging ---- */

static bool
has_sign(const struct line *line, const char *const *signs)
{
	for (; *signs; signs++)
		if (strstr(line->text, *signs))
			return true;
	return false;
}

enum screen_state
screen_judge(struct mr_str screen)
{
	struct line lines[NEAR_END]; /* the last ones with something on them, the lowest last */
	const struct line *prompt = NULL;
	bool busy = false, dialog = false;
	struct pen pen = { 0 };
	size_t n = 0;

	for (struct mr_str line; str_cut(&screen, '\n', &line);) {
		if (n == NEAR_END) {
			memmove(lines, lines + 1, (NEAR_END - 1) * sizeof *lines);
			n--;
		}
		read_line(line, &pen, &lines[n]);
		n += lines[n].empty ? 0 : 1;
	}

	for (size_t i = 0; i < n; i++) {
		busy |= has_sign(&lines[i], busy_signs);
		dialog |= lines[i].choice || has_sign(&lines[i], dialog_signs);
		if (lines[i].prompt && i + PROMPT_NEAR >= n)
			prompt = &lines[i];
	}
	if (dialog)
		return SCREEN_DIALOG;
	if (prompt && prompt->drafted)
		return SCREEN_DRAFT;
	if (busy)
		return SCREEN_BUSY;
	return prompt ? SCREEN_IDLE : SCREEN_UNKNOWN;
}

/* ---- What was typed ---- */

/* Blanks and frames gone: a program may wrap, indent and frame its input as it likes. */
static void
squeeze(struct buf *out, struct mr_str s)
{
	for (size_t at = 0, n; at < s.len; at += n) {
		struct mr_str rest = { s.ptr + at, s.len - at };
		uint32_t cp = 0;

		n = utf8_next(rest, &cp);
		n = n > 0 ? n : 1;
		if (!is_blank(cp) && !is_frame(cp))
			buf_add(out, str_first(rest, n));
	}
}

bool
screen_shows(struct mr_str screen, struct mr_str text)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT, wanted = BUF_INIT;

	struct mr_str area = screen; /* from the last line that begins with a prompt; without one, all of it */

	for (struct mr_str from = screen, one; str_cut(&screen, '\n', &one); from = screen) {
		struct pen pen = { 0 };
		struct line line;

		read_line(one, &pen, &line);
		if (line.prompt)
			area = from;
	}
	squeeze(&shown, area);
	squeeze(&wanted, text);
	if (!buf_ok(&shown) || !buf_ok(&wanted) || wanted.len == 0 || shown.len == 0)
		return false;
	if (memmem(shown.ptr, shown.len, wanted.ptr, wanted.len) || strstr(buf_z(&shown), "[Pastedtext"))
		return true;
	return wanted.len > LONG_TEXT && memmem(shown.ptr, shown.len, wanted.ptr + wanted.len - TAIL, TAIL) != NULL;
}
