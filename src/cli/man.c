/* SPDX-License-Identifier: MIT */
/*
 * man.c - man pages from the same structs as --help. The build runs `mailroom man-page NAME` for each name,
 * so a page cannot say anything else than the command does.
 */
#include <ctype.h>

#include "base/text.h"
#include "helptext.h"

#define MAN_DATE "2026-11-15"

/* Text that roff prints as it is: no requests at the start of a line, no escapes, no smart hyphens in what is
 * typed. */
static void
add_roff(struct buf *out, const char *text)
{
	struct mr_str rest = str_of(text);
	bool line_start = out->len == 0 || out->ptr[out->len - 1] == '\n';

	while (rest.len > 0) {
		uint32_t cp = 0;
		size_t len = utf8_next(rest, &cp);

		if (len == 0)
			break;
		if (line_start && (cp == '.' || cp == '\''))
			buf_adds(out, "\\&");
		if (cp == '\\')
			buf_adds(out, "\\e");
		else if (cp == '-')
			buf_adds(out, "\\-");
		else if (cp == '\'')
			buf_adds(out, "\\(aq");
		else if (cp == '`')
			buf_adds(out, "\\(ga");
		else if (cp == '^')
			buf_adds(out, "\\(ha");
		else if (cp == '~')
			buf_adds(out, "\\(ti");
		else if (cp >= 0x80)
			buf_addf(out, "\\[u%04X]", (unsigned)cp);
		else
			buf_addc(out, (char)cp);
		line_start = cp == '\n';
		rest = (struct mr_str){ rest.ptr + len, rest.len - len };
	}
}

static void
add_line(struct buf *out, const char *text)
{
	add_roff(out, text);
	buf_addc(out, '\n');
}

static void
add_paragraphs(struct buf *out, const char *const *paragraphs)
{
	bool first = true;

	for (const char *const *p = paragraphs; p && *p; p++) {
		if (!first)
			buf_adds(out, ".PP\n");
		add_line(out, *p);
		first = false;
	}
}

static void
add_title(struct buf *out, const char *name)
{
	buf_adds(out, ".\\\" Made by `mailroom man-page`: change its text in help/ instead.\n.TH \"MAILROOM");
	if (name)
		buf_addc(out, '-');
	for (const char *p = name ? name : ""; *p; p++)
		buf_addc(out, (char)toupper((unsigned char)*p));
	buf_addf(out, "\" \"1\" \"%s\" \"mailroom %s\" \"mailroom\"\n", MAN_DATE, MAILROOM_VERSION);
}

static void
add_option(struct buf *out, const struct opt *o)
{
	buf_adds(out, ".TP\n");
	if (o->letter)
		buf_addf(out, "\\fB\\-%c\\fR, ", o->letter);
	buf_adds(out, "\\fB\\-\\-");
	add_roff(out, o->name);
	buf_adds(out, "\\fR");
	if (o->value) {
		buf_adds(out, " \\fI");
		add_roff(out, o->value);
		buf_adds(out, "\\fR");
	}
	buf_addc(out, '\n');
	add_line(out, o->help ? o->help : "");
}

static void
add_options(struct buf *out, const struct opt *own)
{
	buf_adds(out, ".SH OPTIONS\n");
	for (const struct opt *o = own; o && o->name; o++) {
		if (!o->hidden)
			add_option(out, o);
	}
	for (const struct opt *o = help_mailroom.opts; o->name; o++)
		add_option(out, o);
}

static void
add_exit_status(struct buf *out, const char *codes)
{
	buf_adds(out, ".SH EXIT STATUS\n");
	for (const char *c = codes; *c; c++) {
		buf_addf(out, ".TP\n\\fB%c\\fR\n", *c);
		add_line(out, help_mailroom.exit_meanings[*c - '0']);
	}
}

static void
add_examples(struct buf *out, const char *const *examples)
{
	if (!examples || !examples[0])
		return;
	buf_adds(out, ".SH EXAMPLES\n");
	for (const char *const *e = examples; *e; e++) {
		if (e != examples)
			buf_adds(out, ".PP\n");
		buf_adds(out, ".EX\n");
		add_line(out, *e);
		buf_adds(out, ".EE\n");
	}
}

static void
add_subcommands(struct buf *out, const struct cmd *const *list)
{
	if (!list)
		return;
	buf_adds(out, ".SH COMMANDS\n");
	for (; *list; list++) {
		const struct cmd *c = *list;

		buf_adds(out, ".TP\n\\fB");
		add_roff(out, c->name);
		buf_adds(out, "\\fR ");
		add_line(out, c->help->synopsis);
		add_line(out, c->help->summary);
		for (const char *const *a = c->aliases; a && *a; a++) {
			buf_adds(out, ".br\nAlso \\fB");
			add_roff(out, *a);
			buf_adds(out, "\\fR.\n");
		}
		if (!c->help->opts || !c->help->opts->name)
			continue;
		buf_adds(out, ".RS\n");
		for (const struct opt *o = c->help->opts; o->name; o++)
			add_option(out, o);
		buf_adds(out, ".RE\n");
	}
}

void
man_command(struct buf *out, const struct cmd *cmd)
{
	static const char *const no_original[] = { "This command follows no original.", NULL };
	char codes[8];

	add_title(out, cmd->name);
	buf_adds(out, ".SH NAME\nmailroom\\-");
	add_roff(out, cmd->name);
	buf_adds(out, " \\- ");
	add_line(out, cmd->help->summary);
	buf_adds(out, ".SH SYNOPSIS\n\\fBmailroom ");
	add_roff(out, cmd->name);
	buf_adds(out, "\\fR ");
	add_line(out, cmd->help->synopsis);
	buf_adds(out, ".SH DESCRIPTION\n");
	if (cmd->help->about && cmd->help->about[0])
		add_paragraphs(out, cmd->help->about);
	else
		add_line(out, cmd->help->summary);
	add_subcommands(out, cmd->subcommands);
	add_options(out, cmd->help->opts);
	exit_codes_of(cmd, codes);
	add_exit_status(out, codes);
	add_examples(out, cmd->help->examples);
	buf_adds(out, ".SH DIFFERENCES\n");
	add_paragraphs(out, cmd->help->differences ? cmd->help->differences : no_original);
	buf_adds(out, ".SH SEE ALSO\n.BR mailroom (1),\n.BR mailroom (7),\n.BR mailroom\\-maildir (5)\n");
}

void
man_overview(struct buf *out)
{
	add_title(out, NULL);
	buf_adds(out, ".SH NAME\nmailroom \\- mail for AI agents\n.SH SYNOPSIS\n\\fBmailroom\\fR "
		      "[\\fB\\-\\-room\\fR \\fISPEC\\fR] "
		      "[\\fB\\-\\-as\\fR \\fIAGENT\\fR] [\\fB\\-\\-json\\fR] [\\fICOMMAND\\fR ...]\n.SH DESCRIPTION\n");
	add_paragraphs(out, help_mailroom.about);
	buf_adds(out, ".SH COMMANDS\n");
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->hidden)
			continue;
		buf_addf(out, ".TP\n\\fB%s\\fR\n", commands[i]->name);
		add_line(out, commands[i]->help->summary);
	}
	add_options(out, NULL);
	buf_adds(out, ".SH ENVIRONMENT\n");
	for (const char *const *e = help_mailroom.environment; *e; e += 2) {
		buf_addf(out, ".TP\n\\fB%s\\fR\n", e[0]);
		add_line(out, e[1]);
	}
	add_exit_status(out, "0123456");
	buf_adds(out, ".SH SEE ALSO\n.BR mailroom (7),\n.BR mailroom\\-maildir (5)\n");
}
