/* SPDX-License-Identifier: MIT */
/* table.c - finding a command, and what is known of it. The commands are listed in help/mailroom.txt. */
#include "cli/cli.h"

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

bool
command_changes(const struct cmd *cmd, const char *word)
{
	char spaced[40];

	text_join(spaced, sizeof(spaced), " ", word ? word : "", " ", NULL);
	return cmd->changes && (!word || !cmd->changes[0] || strstr(cmd->changes, spaced) != NULL);
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
