/* SPDX-License-Identifier: MIT */
/* table.c - the commands of gt, how one is found, and what `mailroom gt` itself says. */
#include "base/text.h"
#include "cli/gt/gt.h"
#include "helptext.h"

#define ROW(words, text, needs_, min, max, ...)                                                                        \
	&(const struct cmd)                                                                                            \
	{                                                                                                              \
		.name = words, .help = &text, .needs = needs_, .min_args = min, .max_args = max, .run = __VA_ARGS__    \
	}

/* clang-format off */
const struct cmd *const gt_commands[] = {
	ROW("gt mail send", help_gt_mail_send, CMD_SELF, 0, 1, gt_send),
	ROW("gt mail reply", help_gt_mail_reply, CMD_SELF, 1, 2, gt_reply),
	ROW("gt mail hook", help_gt_mail_hook, CMD_SELF, 1, 1, gt_hook),
	ROW("gt mail inbox", help_gt_mail_inbox, CMD_SELF, 0, 1, gt_inbox),
	ROW("gt mail read", help_gt_mail_read, CMD_SELF, 1, 1, gt_read, .aliases = (const char *const[]){ "gt mail show", NULL }),
	ROW("gt mail peek", help_gt_mail_peek, CMD_NOTHING, 0, 0, gt_peek),
	ROW("gt mail mark-read", help_gt_mail_mark_read, CMD_SELF, 0, -1, gt_mark, .aliases = (const char *const[]){ "gt mail ack", NULL }),
	ROW("gt mail mark-unread", help_gt_mail_mark_unread, CMD_SELF, 1, -1, gt_mark),
	ROW("gt mail archive", help_gt_mail_archive, CMD_SELF, 0, -1, gt_archive),
	ROW("gt mail delete", help_gt_mail_delete, CMD_SELF, 1, -1, gt_mark),
	ROW("gt mail clear", help_gt_mail_clear, CMD_SELF, 0, 1, gt_clear),
	ROW("gt mail drain", help_gt_mail_drain, CMD_SELF, 0, 0, gt_drain),
	ROW("gt mail check", help_gt_mail_check, CMD_NOTHING, 0, 0, gt_check),
	ROW("gt mail thread", help_gt_mail_thread, CMD_SELF, 1, 1, gt_thread),
	ROW("gt mail search", help_gt_mail_search, CMD_SELF, 1, 1, gt_search),
	ROW("gt mail directory", help_gt_mail_directory, CMD_ROOM, 0, 0, gt_directory, .aliases = (const char *const[]){ "gt mail dir", "gt mail addresses", NULL }),
	ROW("gt mail claim", help_gt_mail_claim, CMD_SELF, 0, 1, gt_claim),
	ROW("gt mail release", help_gt_mail_release, CMD_SELF, 1, 1, gt_release),
	ROW("gt mail queue create", help_gt_mail_queue_create, CMD_SELF, 1, 1, gt_queue_create),
	ROW("gt mail queue show", help_gt_mail_queue_show, CMD_ROOM, 1, 1, gt_queue_show),
	ROW("gt mail queue list", help_gt_mail_queue_list, CMD_ROOM, 0, 0, gt_queue_list),
	ROW("gt mail queue delete", help_gt_mail_queue_delete, CMD_ROOM, 1, 1, gt_queue_delete),
	ROW("gt mail announces", help_gt_mail_announces, CMD_ROOM, 0, 1, gt_channel),
	ROW("gt mail group list", help_gt_mail_group_list, CMD_ROOM, 0, 0, gt_group_list),
	ROW("gt mail group show", help_gt_mail_group_show, CMD_ROOM, 1, 1, gt_group_show),
	ROW("gt mail group create", help_gt_mail_group_create, CMD_SELF, 1, -1, gt_group_create),
	ROW("gt mail group add", help_gt_mail_group_add, CMD_ROOM, 2, 2, gt_group_change),
	ROW("gt mail group remove", help_gt_mail_group_remove, CMD_ROOM, 2, 2, gt_group_change),
	ROW("gt mail group delete", help_gt_mail_group_delete, CMD_ROOM, 1, 1, gt_group_delete),
	ROW("gt mail channel", help_gt_mail_channel, CMD_ROOM, 0, 1, gt_channel),
	ROW("gt mail channel list", help_gt_mail_channel_list, CMD_ROOM, 0, 0, gt_channel),
	ROW("gt mail channel show", help_gt_mail_channel_show, CMD_ROOM, 1, 1, gt_channel),
	ROW("gt mail channel create", help_gt_mail_channel_create, CMD_SELF, 1, 1, gt_channel_create),
	ROW("gt mail channel delete", help_gt_mail_channel_delete, CMD_ROOM, 1, 1, gt_channel_delete),
	ROW("gt mail channel subscribe", help_gt_mail_channel_subscribe, CMD_SELF, 1, 1, gt_subscribe),
	ROW("gt mail channel unsubscribe", help_gt_mail_channel_unsubscribe, CMD_SELF, 1, 1, gt_subscribe),
	ROW("gt mail channel subscribers", help_gt_mail_channel_subscribers, CMD_ROOM, 1, 1, gt_subscribers),
	ROW("gt nudge", help_gt_nudge, CMD_SELF, 1, 2, gt_nudge),
	ROW("gt dnd", help_gt_dnd, CMD_SELF, 0, 1, gt_dnd),
	ROW("gt escalate", help_gt_escalate, CMD_SELF, 0, -1, gt_escalate),
	ROW("gt escalate list", help_gt_escalate_list, CMD_ROOM, 0, 0, gt_escalate_list),
	ROW("gt escalate show", help_gt_escalate_show, CMD_ROOM, 1, 1, gt_escalate_show),
	ROW("gt escalate ack", help_gt_escalate_ack, CMD_SELF, 1, 1, gt_escalate_ack),
	ROW("gt escalate close", help_gt_escalate_close, CMD_SELF, 1, 1, gt_escalate_close),
	ROW("gt escalate stale", help_gt_escalate_stale, CMD_SELF, 0, 0, gt_escalate_stale),
	ROW("gt handoff", help_gt_handoff, CMD_SELF, 0, 1, gt_handoff),
	ROW("gt hook", help_gt_hook, CMD_SELF, 0, 1, gt_hook),
	ROW("gt done", help_gt_done, CMD_SELF, 0, 0, gt_done),
	ROW("gt sling", help_gt_sling, CMD_ROOM, 2, 2, gt_sling),
	ROW("gt deacon redispatch", help_gt_deacon_redispatch, CMD_SELF, 1, 1, gt_redispatch),
	ROW("gt deacon redispatch-state", help_gt_deacon_redispatch_state, CMD_ROOM, 0, 0, gt_redispatch_state),
	NULL,
};
/* clang-format on */

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

static int
run_gt(struct cli *cli)
{
	return cli_usage(cli, "which command of gt? 'mailroom gt --help' lists them");
}

const struct cmd command_gt = {
	.name = "gt",
	.help = &help_gt,
	.subcommands = gt_commands,
	.max_args = 0,
	.run = run_gt,
};
