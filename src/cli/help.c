/* SPDX-License-Identifier: MIT */
/* help.c - the texts of help/: --help and `help`, usage errors, and `describe` for agents and programs. Man pages are
 * made from them by tools/gen-help. */
#include "helptext.h"

#define WIDTH 79
#define OPTION_COLUMN 26

/* ---- --help ---- */

/* A paragraph, folded. */
static void
add_wrapped(struct buf *out, const char *text, size_t indent)
{
	size_t column = 0;

	for (const char *p = text; *p; p += *p == ' ') {
		struct mr_str word = { p, strcspn(p, " ") };
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
		p += word.len;
	}
	buf_addc(out, '\n');
}

/* Behind an empty line, unless it is the first. */
static void
add_heading(struct cli *cli, struct buf *out, const char *text)
{
	buf_adds(out, out->len > 0 ? "\n" : "");
	out_styled(cli, out, STYLE_BOLD, text);
	buf_addc(out, '\n');
}

static void
add_options(struct buf *out, const struct opt *opts)
{
	for (const struct opt *o = opts; o->name; o++) {
		mr_auto(buf_done) struct buf left = BUF_INIT, right = BUF_INIT;

		if (o->hidden)
			continue;
		if (o->letter)
			buf_addf(&left, "  -%c, --%s", o->letter, o->name);
		else
			buf_addf(&left, "      --%s", o->name);
		if (o->value)
			buf_addf(&left, " %s", o->value);
		add_wrapped(&right, o->help ? o->help : "", OPTION_COLUMN);
		buf_add(out, buf_str(&left));
		bool below = left.len + 2 > OPTION_COLUMN || right.len < OPTION_COLUMN;

		for (size_t i = left.len; !below && i < OPTION_COLUMN; i++)
			buf_addc(out, ' ');
		buf_adds(out, below ? "\n" : "");
		buf_adds(out, right.ptr + (below ? 0 : OPTION_COLUMN)); /* its first line stands on this one */
	}
}

static void
add_synopsis(struct buf *out, const struct cmd *cmd)
{
	buf_addf(out, "%s%s%s\n", cmd->name, cmd->help->synopsis[0] ? " " : "", cmd->help->synopsis);
}

void
help_command(struct cli *cli, const struct cmd *cmd, struct buf *out)
{
	const struct help *help = cmd->help;

	add_heading(cli, out, "Usage");
	buf_adds(out, "  mailroom ");
	add_synopsis(out, cmd);
	buf_addf(out, "  %s\n", help->summary);
	if (help->examples)
		add_heading(cli, out, help->examples[1] ? "Examples" : "Example");
	/* Not indented: a here-document's last line must stay at the margin to be pasted. */
	for (const char *const *e = help->examples; e && *e; e++)
		buf_addf(out, "%s\n", *e);
	for (const char *const *p = help->about; p && *p; p++) {
		buf_addc(out, '\n');
		add_wrapped(out, *p, 0);
	}
	if (cmd->subcommands)
		add_heading(cli, out, "Commands");
	for (const struct cmd *const *c = cmd->subcommands; c && *c; c++) {
		buf_adds(out, "  ");
		add_synopsis(out, *c);
		add_wrapped(out, (*c)->help->summary, 6);
	}
	if (help->opts && help->opts->name) {
		add_heading(cli, out, "Options");
		add_options(out, help->opts);
	}
	buf_adds(out, "\nExit codes");
	for (const char *c = help->exits; *c; c++)
		buf_addf(out, " %c", *c);
	buf_adds(out, ", --room, --as, --json: mailroom help options\n");
}

void
help_usage(struct cli *cli)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	const struct cmd *cmd = cli->cmd;

	buf_adds(&out, "usage: mailroom ");
	add_synopsis(&out, cmd);
	buf_addf(&out, "  %s\n", cmd->help->summary);
	if (cmd->help->examples)
		buf_addf(&out, "for example:\n%s\n", cmd->help->examples[0]);
	buf_addf(&out, "more: mailroom %s --help\n", cmd->name);
	if (buf_ok(&out))
		cli_say(cli, &out);
}

void
help_overview(struct cli *cli, struct buf *out)
{
	buf_adds(out, "Mail for AI agents: durable, on plain files, with no daemon.\n");
	add_heading(cli, out, "Usage");
	buf_adds(out, "  mailroom [--room SPEC] [--as AGENT] [--json] COMMAND ...\n"
		      "  mailroom                  who you are, the room, unread mail, who is live\n");
	for (size_t i = 0; commands[i]; i++) {
		for (const struct heading *h = command_headings; h->first; h++)
			if (h->first == commands[i] && h->text)
				add_heading(cli, out, h->text);
		if (!commands[i]->hidden)
			buf_addf(out, "  %-10s %s\n", commands[i]->name, commands[i]->help->summary);
	}
	buf_adds(
	    out, "\nmailroom COMMAND --help explains one of them; mailroom describe teaches an agent six of them.\n");
}

/* `mailroom help [COMMAND | options]`, for those who try that word first. */
int
cmd_help(struct cli *cli)
{
	const struct cmd *cmd = cli->argc > 0 ? command_named(cli->argv[0]) : NULL;

	if (cli->argc == 0) {
		help_overview(cli, &cli->out);
	} else if (strcmp(cli->argv[0], "options") == 0) {
		add_heading(cli, &cli->out, "Options of every command");
		add_options(&cli->out, help_mailroom.opts);
		add_heading(cli, &cli->out, "Exit codes");
		for (int code = 0; code <= EXIT_DOUBT; code++)
			buf_addf(&cli->out, "  %d  %s\n", code, help_mailroom.exit_meanings[code]);
	} else if (cmd) {
		help_command(cli, cmd, &cli->out);
	} else {
		return cli_usage(cli, "there is no command '%s'", cli->argv[0]);
	}
	return EXIT_DONE;
}

/* ---- describe: for an agent in at most 500 tokens; --all for programs, the whole contract as one JSON object ---- */

static void
json_options(struct json *j, const char *key, const struct opt *opts)
{
	json_cells(j, CELLS(kv_list(key)));
	for (const struct opt *o = opts; o && o->name; o++)
		if (!o->hidden)
			json_cells(j, CELLS(kv_open(""), kv_str("name", o->name),
					  kv_opt("letter", (const char[]){ o->letter, '\0' }),
					  kv_str("value", o->value), kv_str("help", o->help), kv_close()));
	json_close(j);
}

static void
json_exits(struct json *j, const char *codes)
{
	json_cells(j, CELLS(kv_open("exit_codes")));
	for (; *codes; codes++)
		json_key_str(j, (const char[]){ *codes, '\0' }, help_mailroom.exit_meanings[*codes - '0']);
	json_close(j);
}

/* true, false, or the second words for which it is true */
static void
json_granted(struct json *j, const struct cmd *cmd)
{
#define NAME(words) words,
	static const char *const all[] = { GRANTED_COMMANDS(NAME) };
#undef NAME
	size_t len = strlen(cmd->name), n = 0;
	bool whole = false;

	json_key(j, "granted");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		whole |= strcmp(all[i], cmd->name) == 0;
		if (strncmp(all[i], cmd->name, len) != 0 || all[i][len] != ' ')
			continue;
		if (n++ == 0)
			json_open(j, '[');
		json_str(j, str_of(all[i] + len + 1));
	}
	if (n > 0)
		json_close(j);
	else
		json_bool(j, whole);
}

int
cmd_describe(struct cli *cli, const struct describe_options *o)
{
	static const char *const message_keys[] = { "id", "from", "proven", "to", "cc", "subject", "date", "type",
		"priority", "thread", "reply_to", "read", "acked", "pinned", "replied", "body", "fields", "headers",
		"envelope", "room", "path", "folder", "attempt", "token", "size", "by", "not_before", "lease_until",
		"queue", "number", NULL };
	struct json j = JSON_INIT(&cli->out);

	if (!o->all && !out_json(cli, kv_str("text", help_describe.lesson)))
		buf_adds(&cli->out, help_describe.lesson);
	if (!o->all)
		return EXIT_DONE;
	json_cells(&j, CELLS(kv_open(""), kv_str("program", "mailroom"), kv_str("version", MAILROOM_VERSION),
			   kv_str("usage", "mailroom [--room SPEC] [--as AGENT] [--json] COMMAND ...")));
	json_options(&j, "global_options", help_mailroom.opts);
	json_exits(&j, "0123456");
	json_cells(&j, CELLS(kv_words("message_keys", message_keys), kv_list("commands")));
	for (size_t i = 0; commands[i]; i++) {
		const struct cmd *cmd = commands[i];

		if (cmd->hidden)
			continue;
		json_cells(&j, CELLS(kv_open(""), kv_str("name", cmd->name), kv_str("synopsis", cmd->help->synopsis),
				   kv_str("summary", cmd->help->summary), kv_words("about", cmd->help->about)));
		json_options(&j, "options", cmd->help->opts);
		json_cells(&j,
		    CELLS(kv_words("examples", cmd->help->examples), kv_bool("needs_room", cmd->needs != CMD_NOTHING)));
		json_granted(&j, cmd);
		json_cells(&j, CELLS(kv_bool("needs_agent", (cmd->needs & CMD_SELF) != 0)));
		json_exits(&j, cmd->help->exits);
		json_close(&j);
	}
	json_close(&j);
	out_json_line(cli, &j);
	return EXIT_DONE;
}
