/* SPDX-License-Identifier: MIT */
/* table.c - how a command of gt is found. help/gt.txt lists them. */
#include "base/text.h"
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- Finding one ---- */

/* How many of the words behind "gt" the name takes; 0: it is another command. */
static int
words_taken(const char *name, int argc, char **argv, int at)
{
	int n = 0;

	for (const char *p = name + strlen("gt"); *p; n++) {
		size_t len = strcspn(++p, " ");

		if (at + 1 + n >= argc || strlen(argv[at + 1 + n]) != len || strncmp(argv[at + 1 + n], p, len) != 0)
			return 0;
		p += len;
	}
	return n;
}

/* The words of a command that does not exist, for messages: "gt mail qeue". */
static void
add_words(struct buf *out, int argc, char **argv, int at, int most)
{
	buf_adds(out, "gt");
	for (int i = at + 1; i < argc && i <= at + most && argv[i][0] != '-'; i++) {
		buf_addc(out, ' ');
		out_line(out, argv[i]);
	}
}

static const struct cmd *
unknown(struct cli *cli, int argc, char **argv, int at)
{
	mr_auto(buf_done) struct buf near = BUF_INIT, given = BUF_INIT;
	size_t best = 4;

	add_words(&given, argc, argv, at, 2);
	for (int most = 1; most <= 3; most++) {
		mr_auto(buf_done) struct buf words = BUF_INIT;

		add_words(&words, argc, argv, at, most);
		for (size_t i = 0; gt_commands[i]; i++) {
			size_t d = edit_distance(gt_commands[i]->name, buf_z(&words), best);

			if (d >= best)
				continue;
			best = d;
			buf_clear(&near);
			buf_addf(&near, "; did you mean '%s'?", gt_commands[i]->name);
		}
	}
	(void)cli_usage(cli, "there is no '%.80s'%s", buf_z(&given), buf_z(&near));
	return NULL;
}

/* "gt mail" is no command, but begins some: those are named. */
static bool
add_continuations(struct buf *out, const struct buf *words)
{
	for (size_t i = 0; gt_commands[i]; i++) {
		const char *name = gt_commands[i]->name;

		if (strncmp(name, buf_z(words), words->len) == 0 && name[words->len] == ' ')
			buf_addf(out, "%s%s", out->len > 0 ? ", " : "", name + words->len + 1);
	}
	return out->len > 0;
}

/* No command was found. */
static const struct cmd *
incomplete(struct cli *cli, int argc, char **argv, int at)
{
	mr_auto(buf_done) struct buf words = BUF_INIT, more = BUF_INIT;
	bool help = false;

	for (int i = at + 1; i < argc; i++)
		help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
	add_words(&words, argc, argv, at, 3);
	if (strcmp(buf_z(&words), "gt") == 0) /* `gt --help` and nothing at all are about gt itself */
		return &command_gt;
	if (!add_continuations(&more, &words))
		return unknown(cli, argc, argv, at);
	if (help)
		return &command_gt;
	(void)cli_usage(cli, "which command of '%s'? %s", buf_z(&words), buf_z(&more));
	return NULL;
}

const struct cmd *
gt_command(struct cli *cli, int argc, char **argv, int *at)
{
	const struct cmd *found = NULL;
	int most = 0;

	for (size_t i = 0; gt_commands[i]; i++) {
		int n = words_taken(gt_commands[i]->name, argc, argv, *at);

		for (const char *const *a = gt_commands[i]->aliases; a && *a && n == 0; a++)
			n = words_taken(*a, argc, argv, *at);
		if (n <= most)
			continue;
		most = n;
		found = gt_commands[i];
	}
	if (!found)
		return incomplete(cli, argc, argv, *at);
	*at += most;
	return found;
}

bool
gt_take_json(struct cli *cli)
{
	if (cli->json_given)
		return cli_usage(cli, "'%s' has no --json", cli->cmd->name), false;
	cli->json = cli->gt_json;
	return true;
}

int
gt_exit(int code)
{
	if (code >= GT_EXIT(0))
		return code - GT_EXIT(0);
	return code == EXIT_DONE ? 0 : 1;
}

/* ---- gt itself ---- */

int
cmd_gt(struct cli *cli)
{
	return cli_usage(cli, "which command of gt? 'mailroom gt --help' lists them");
}
