/* SPDX-License-Identifier: MIT */
/* table.c - the commands, in the order in which help lists them. A new command is one file and two lines
 * here. */
#include "cli/cli.h"

/* clang-format off */
const struct cmd *const commands[] = {
	&cmd_init, &cmd_where, &cmd_trust, &cmd_config, &cmd_register, &cmd_whoami, &cmd_who, &cmd_takeover, &cmd_prune,
	&cmd_send, &cmd_reply, &cmd_inbox, &cmd_read, &cmd_recv, &cmd_done, &cmd_release, &cmd_fail,
	&cmd_extend, &cmd_mark, &cmd_archive, &cmd_clear, &cmd_drain, &cmd_wait, &cmd_thread, &cmd_sent, &cmd_why,
	&cmd_search, &cmd_purge,
	&cmd_resolve, &cmd_group, &cmd_queue, &cmd_channel, &cmd_dead,
	&cmd_link, &cmd_unlink, &cmd_carry, &cmd_export, &cmd_import,
	&cmd_nudge, &cmd_dnd, &cmd_check, &cmd_handoff, &cmd_types, &cmd_patrol, &cmd_escalate, &cmd_lint, &cmd_gt,
	&cmd_setup, &cmd_hook, &cmd_mcp,
	&cmd_doctor, &cmd_selftest, &cmd_stats, &cmd_describe,
	&cmd_help, &cmd_status, &cmd_man_page, &cmd_generate_message, &cmd_mb,
	NULL,
};
/* clang-format on */

const char *
command_heading(const struct cmd *cmd)
{
	static const struct {
		const struct cmd *first;
		const char *heading;
	} groups[] = {
		{ &cmd_init, "Rooms and agents" },
		{ &cmd_send, "Mail" },
		{ &cmd_resolve, "Post office" },
		{ &cmd_link, "Between rooms" },
		{ &cmd_nudge, "Flow" },
		{ &cmd_setup, "Doors for the harnesses of agents" },
		{ &cmd_doctor, "Care" },
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (groups[i].first == cmd)
			return groups[i].heading;
	return NULL;
}

const struct cmd *
command_named(const char *word, bool *ret_alias)
{
	for (size_t i = 0; commands[i]; i++) {
		if (strcmp(commands[i]->name, word) == 0) {
			*ret_alias = false;
			return commands[i];
		}
	}
	for (size_t i = 0; commands[i]; i++) {
		for (const char *const *a = commands[i]->aliases; a && *a; a++) {
			if (strcmp(*a, word) == 0) {
				*ret_alias = true;
				return commands[i];
			}
		}
	}
	return NULL;
}

static const struct {
	const struct cmd *cmd;
	const char *words; /* with a space around each; NULL: the command has none */
} changing[] = {
	{ &cmd_register, NULL },
	{ &cmd_takeover, NULL },
	{ &cmd_prune, NULL },
	{ &cmd_send, NULL },
	{ &cmd_reply, NULL },
	{ &cmd_done, NULL },
	{ &cmd_release, NULL },
	{ &cmd_fail, NULL },
	{ &cmd_extend, NULL },
	{ &cmd_mark, NULL },
	{ &cmd_archive, NULL },
	{ &cmd_clear, NULL },
	{ &cmd_purge, NULL },
	{ &cmd_group, " create add remove delete " },
	{ &cmd_queue, " create pause resume close delete " },
	{ &cmd_channel, " create post subscribe unsubscribe close delete prune " },
	{ &cmd_dead, " retry drop " },
	{ &cmd_types, " new " },
	{ &cmd_nudge, NULL },
	{ &cmd_handoff, NULL },
	{ &cmd_escalate, " ack close stale " },
	{ &cmd_dnd, " on off " },
	{ &cmd_link, " create name " },
	{ &cmd_unlink, NULL },
	{ &cmd_carry, NULL },
	{ &cmd_patrol, NULL },
};

bool
command_changes(const struct cmd *cmd, const char *word)
{
	char spaced[40];

	text_join(spaced, sizeof(spaced), " ", word ? word : "", " ", NULL);
	for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
		if (changing[i].cmd == cmd)
			return !changing[i].words || !word || strstr(changing[i].words, spaced) != NULL;
	return false;
}

bool
command_granted(const char *words)
{
#define NAME(words) words,
	static const char *const granted[] = { GRANTED_COMMANDS(NAME) };
#undef NAME

	for (size_t i = 0; i < sizeof(granted) / sizeof(granted[0]); i++)
		if (strcmp(granted[i], words) == 0)
			return true;
	return false;
}
