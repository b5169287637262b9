/* SPDX-License-Identifier: MIT */
/* help.c - --help and usage errors, printed from the command's own struct. */
#include "base/text.h"
#include "helptext.h"

#define WIDTH 79
#define OPTION_COLUMN 26

void
exit_codes_of(const struct cmd *cmd, char ret[8])
{
	const char *more = cmd->help->exits ? cmd->help->exits : cmd->needs ? "45" : "";
	size_t n = 0;

	if (str_starts(str_of(cmd->name), "gt ")) { /* that is all that gt has */
		(void)snprintf(ret, 8, "01");
		return;
	}
	for (char c = '0'; c <= '6'; c++) {
		if (c <= '2' || strchr(more, c) || (c == '6' && command_changes(cmd, NULL)))
			ret[n++] = c;
	}
	ret[n] = '\0';
}

void
help_wrap(struct buf *out, const char *text, size_t indent)
{
	struct mr_str rest = str_of(text);
	size_t column = 0;

	while (rest.len > 0) {
		const char *space = memchr(rest.ptr, ' ', rest.len);
		size_t len = space ? (size_t)(space - rest.ptr) : rest.len;
		struct mr_str word = { rest.ptr, len };
		size_t width = utf8_width(word);

		if (column > 0 && column + 1 + width > WIDTH) {
			buf_addc(out, '\n');
			column = 0;
		}
		for (; column < indent; column++)
			buf_addc(out, ' ');
		if (column > indent) {
			buf_addc(out, ' ');
			column++;
		}
		buf_add(out, word);
		column += width;
		len += space ? 1 : 0;
		rest = (struct mr_str){ rest.ptr + len, rest.len - len };
	}
	buf_addc(out, '\n');
}

static void
add_option(struct buf *out, const struct opt *o)
{
	mr_auto(buf_done) struct buf left = BUF_INIT, right = BUF_INIT;

	if (o->letter)
		buf_addf(&left, "  -%c, --%s", o->letter, o->name);
	else
		buf_addf(&left, "      --%s", o->name);
	if (o->value)
		buf_addf(&left, " %s", o->value);
	help_wrap(&right, o->help ? o->help : "", OPTION_COLUMN);
	buf_add(out, buf_str(&left));
	if (left.len + 2 > OPTION_COLUMN || right.len < OPTION_COLUMN) {
		buf_addc(out, '\n');
		buf_add(out, buf_str(&right));
		return;
	}
	for (size_t i = left.len; i < OPTION_COLUMN; i++)
		buf_addc(out, ' ');
	buf_adds(out, right.ptr + OPTION_COLUMN); /* its first line stands on this one */
}

static void
add_synopsis(struct buf *out, const struct cmd *cmd)
{
	buf_addf(out, "mailroom %s%s%s\n", cmd->name, cmd->help->synopsis[0] ? " " : "", cmd->help->synopsis);
}

static void
add_options(struct cli *cli, const struct cmd *cmd, struct buf *out)
{
	if (!cmd->help->opts || !cmd->help->opts->name)
		return;
	buf_addc(out, '\n');
	out_styled(cli, out, STYLE_BOLD, "Options");
	buf_addc(out, '\n');
	for (const struct opt *o = cmd->help->opts; o->name; o++) {
		if (!o->hidden)
			add_option(out, o);
	}
}

void
help_options(struct cli *cli, struct buf *out)
{
	out_styled(cli, out, STYLE_BOLD, "Options of every command");
	buf_addc(out, '\n');
	for (const struct opt *o = help_mailroom.opts; o->name; o++)
		add_option(out, o);
	buf_addc(out, '\n');
	out_styled(cli, out, STYLE_BOLD, "Exit codes");
	buf_addc(out, '\n');
	for (int code = 0; code <= EXIT_DOUBT; code++)
		buf_addf(out, "  %d  %s\n", code, help_mailroom.exit_meanings[code]);
}

static void
add_subcommands(struct cli *cli, const struct cmd *cmd, struct buf *out)
{
	if (!cmd->subcommands)
		return;
	buf_addc(out, '\n');
	out_styled(cli, out, STYLE_BOLD, "Commands");
	buf_addc(out, '\n');
	for (const struct cmd *const *c = cmd->subcommands; *c; c++) {
		buf_addf(out, "  %s%s%s\n", (*c)->name, (*c)->help->synopsis[0] ? " " : "", (*c)->help->synopsis);
		help_wrap(out, (*c)->help->summary, 6);
	}
}

void
help_command(struct cli *cli, const struct cmd *cmd, struct buf *out)
{
	char codes[8];

	out_styled(cli, out, STYLE_BOLD, "Usage");
	buf_adds(out, "\n  ");
	add_synopsis(out, cmd);
	buf_addf(out, "  %s\n", cmd->help->summary);
	if (cmd->help->examples && cmd->help->examples[0]) {
		buf_addc(out, '\n');
		out_styled(cli, out, STYLE_BOLD, cmd->help->examples[1] ? "Examples" : "Example");
		buf_addc(out, '\n');
		/* Not indented: a here-document's last line must stay at the margin to be pasted. */
		for (const char *const *e = cmd->help->examples; *e; e++)
			buf_addf(out, "%s\n", *e);
	}
	for (const char *const *p = cmd->help->about; p && *p; p++) {
		buf_addc(out, '\n');
		help_wrap(out, *p, 0);
	}
	add_subcommands(cli, cmd, out);
	add_options(cli, cmd, out);
	exit_codes_of(cmd, codes);
	buf_adds(out, "\nExit codes");
	for (const char *c = codes; *c; c++)
		buf_addf(out, " %c", *c);
	buf_adds(out, ", --room, --as, --json: mailroom help options\n");
}

void
help_usage(struct buf *out, const struct cmd *cmd)
{
	buf_adds(out, "usage: ");
	add_synopsis(out, cmd);
	buf_addf(out, "  %s\n", cmd->help->summary);
	if (cmd->help->examples && cmd->help->examples[0])
		buf_addf(out, "for example:\n%s\n", cmd->help->examples[0]);
	buf_addf(out, "more: mailroom %s --help\n", cmd->name);
}

void
help_overview(struct cli *cli, struct buf *out)
{
	buf_adds(out, "Mail for AI agents: durable, on plain files, with no daemon.\n\n");
	out_styled(cli, out, STYLE_BOLD, "Usage");
	buf_adds(out, "\n  mailroom [--room SPEC] [--as AGENT] [--json] COMMAND ...\n"
		      "  mailroom                  who you are, the room, unread mail, who is live\n\n");
	for (size_t i = 0; commands[i]; i++) {
		for (const struct heading *h = command_headings; h->first; h++) {
			if (h->first != commands[i] || !h->text)
				continue;
			buf_adds(out, i > 0 ? "\n" : "");
			out_styled(cli, out, STYLE_BOLD, h->text);
			buf_addc(out, '\n');
		}
		if (!commands[i]->hidden)
			buf_addf(out, "  %-10s %s\n", commands[i]->name, commands[i]->help->summary);
	}
	buf_adds(out, "\nmailroom COMMAND --help explains one of them; mailroom describe teaches an agent "
		      "six of them.\n");
}
