/* SPDX-License-Identifier: MIT */
/* command.c - command lines of hooks: written so that a shell reads the words we mean, read only as far as we write
 * them. Whatever has more in it than words is somebody else's, and is left alone. */
#include "cli/setup/setup.h"

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-+./:@%=,", c));
}

void
command_quote(struct buf *out, const char *word)
{
	bool plain = word[0] != '\0';

	for (const char *c = word; *c; c++)
		plain &= is_plain(*c);
	if (plain) {
		buf_adds(out, word);
		return;
	}
	buf_addc(out, '\'');
	for (const char *c = word; *c; c++)
		if (*c == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addc(out, *c);
	buf_addc(out, '\'');
}

/* One piece of a word: up to the end of its quotes, or one character. NULL: no plain word. */
static const char *
take_piece(const char *at, struct buf *word)
{
	if (*at == '\'') {
		const char *end = strchr(at + 1, '\'');

		if (!end)
			return NULL;
		buf_add(word, (struct mr_str){ at + 1, (size_t)(end - at - 1) });
		return end + 1;
	}
	if (*at == '"') {
		for (at++; *at && *at != '"'; at++) {
			if (*at == '$' || *at == '`')
				return NULL;
			if (*at == '\\' && at[1] && strchr("\"\\$`", at[1]))
				at++;
			buf_addc(word, *at);
		}
		return *at ? at + 1 : NULL;
	}
	if (*at == '\\' && at[1]) {
		buf_addc(word, at[1]);
		return at + 2;
	}
	if (strchr("|&;<>()$`*?[]#~!{}\n\\", *at))
		return NULL;
	buf_addc(word, *at);
	return at + 1;
}

bool
command_split(const char *line, struct mr_names *ret)
{
	for (const char *at = line;;) {
		mr_auto(buf_done) struct buf word = BUF_INIT;

		at += strspn(at, " \t");
		if (!*at)
			return true;
		while (at && *at && *at != ' ' && *at != '\t')
			at = take_piece(at, &word);
		if (!at || !buf_ok(&word) || !names_add(ret, str_of(buf_z(&word))))
			return false;
	}
}

bool
command_is_program(const struct setup *s, const char *word)
{
	const char *slash = strrchr(word, '/');

	return strcmp(word, s->program) == 0 || strcmp(slash ? slash + 1 : word, "mailroom") == 0;
}

static bool
are_hook_words(const struct setup *s, const struct mr_names *words, bool *ret_waits)
{
	if (words->n < 3 || !command_is_program(s, words->v[0]) || strcmp(words->v[1], "hook") != 0 ||
	    strcmp(words->v[2], s->harness->name) != 0)
		return false;
	*ret_waits = false;
	for (size_t i = 3; i < words->n; i++) {
		if (strcmp(words->v[i], "--wait") == 0)
			*ret_waits = true;
		else if (strcmp(words->v[i], "--room") == 0 && i + 1 < words->n)
			i++;
		else
			return false;
	}
	return true;
}

bool
command_is_hook(const struct setup *s, const char *line, bool *ret_waits)
{
	struct mr_names words = { 0 };
	bool ours = command_split(line, &words) && are_hook_words(s, &words, ret_waits);

	mr_names_done(&words);
	return ours;
}
