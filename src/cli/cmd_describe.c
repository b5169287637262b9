/* SPDX-License-Identifier: MIT */
/*
 * cmd_describe.c - teaches an agent the six commands it needs, in at most 500 tokens; --all gives programs
 * the whole contract as one JSON object, from the same structs as --help.
 */
#include "cli/cli.h"
#include "helptext.h"

static void
json_strings(struct json *j, const char *key, const char *const *v)
{
	json_key(j, key);
	json_open(j, '[');
	for (; v && *v; v++)
		json_str(j, str_of(*v));
	json_close(j);
}

static void
json_options(struct json *j, const char *key, const struct opt *opts)
{
	json_key(j, key);
	json_open(j, '[');
	for (const struct opt *o = opts; o && o->name; o++) {
		const char letter[2] = { o->letter, '\0' };

		if (o->hidden)
			continue;
		json_open(j, '{');
		json_key_str(j, "name", o->name);
		json_key_str(j, "letter", o->letter ? letter : NULL);
		json_key_str(j, "value", o->value);
		json_key_str(j, "help", o->help);
		json_close(j);
	}
	json_close(j);
}

static void
json_exits(struct json *j, const char *codes)
{
	json_key(j, "exit_codes");
	json_open(j, '{');
	for (; *codes; codes++) {
		const char code[2] = { *codes, '\0' };

		json_key_str(j, code, help_mailroom.exit_meanings[*codes - '0']);
	}
	json_close(j);
}

/* true, false, or the second words for which it is true */
static void
add_granted(struct json *j, const struct cmd *cmd)
{
#define NAME(words) words,
	static const char *const all[] = { GRANTED_COMMANDS(NAME) };
#undef NAME
	size_t len = strlen(cmd->name), n = 0;

	json_key(j, "granted");
	if (command_granted(cmd->name)) {
		json_bool(j, true);
		return;
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strncmp(all[i], cmd->name, len) != 0 || all[i][len] != ' ')
			continue;
		if (n++ == 0)
			json_open(j, '[');
		json_str(j, str_of(all[i] + len + 1));
	}
	if (n > 0)
		json_close(j);
	else
		json_bool(j, false);
}

static void
json_command(struct json *j, const struct cmd *cmd)
{
	char codes[8];

	json_open(j, '{');
	json_key_str(j, "name", cmd->name);
	json_key_str(j, "synopsis", cmd->help->synopsis);
	json_key_str(j, "summary", cmd->help->summary);
	json_strings(j, "about", cmd->help->about);
	json_options(j, "options", cmd->help->opts);
	json_strings(j, "examples", cmd->help->examples);
	json_key_bool(j, "needs_room", cmd->needs != CMD_NOTHING);
	add_granted(j, cmd);
	json_key_bool(j, "needs_agent", (cmd->needs & CMD_SELF) != 0);
	exit_codes_of(cmd, codes);
	json_exits(j, codes);
	json_close(j);
}

static void
print_contract(struct cli *cli)
{
	static const char *const message_keys[] = { "id", "from", "proven", "to", "cc", "subject", "date", "type",
		"priority", "thread", "reply_to", "read", "acked", "pinned", "replied", "body", "fields", "headers",
		"envelope", "room", "path", "folder", "attempt", "token", "size", "by", "not_before", "lease_until",
		"queue", "number", NULL };
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "program", "mailroom");
	json_key_str(&j, "version", MAILROOM_VERSION);
	json_key_str(&j, "usage", "mailroom [--room SPEC] [--as AGENT] [--json] COMMAND ...");
	json_options(&j, "global_options", help_mailroom.opts);
	json_exits(&j, "0123456");
	json_strings(&j, "message_keys", message_keys);
	json_key(&j, "commands");
	json_open(&j, '[');
	for (size_t i = 0; commands[i]; i++) {
		if (!commands[i]->hidden)
			json_command(&j, commands[i]);
	}
	json_close(&j);
	out_json_line(cli, &j);
}

int
cmd_describe(struct cli *cli)
{
	const struct describe_options *o = cli->opts;

	if (o->all) {
		print_contract(cli);
	} else if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "text", help_describe.lesson);
		out_json_line(cli, &j);
	} else {
		buf_adds(&cli->out, help_describe.lesson);
	}
	return EXIT_DONE;
}
