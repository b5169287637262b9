/* SPDX-License-Identifier: MIT */
/* table.c - the commands of gt, how one is found, and what `mailroom gt` itself says. */
#include "base/text.h"
#include "cli/gt/gt.h"

extern const struct cmd gt_mail_send, gt_mail_reply, gt_mail_hook, gt_mail_inbox, gt_mail_read, gt_mail_peek,
    gt_mail_mark_read, gt_mail_mark_unread, gt_mail_archive, gt_mail_delete, gt_mail_clear, gt_mail_drain,
    gt_mail_check, gt_mail_thread, gt_mail_search, gt_mail_directory, gt_mail_claim, gt_mail_release,
    gt_mail_queue_create, gt_mail_queue_show, gt_mail_queue_list, gt_mail_queue_delete, gt_mail_announces,
    gt_mail_group_list, gt_mail_group_show, gt_mail_group_create, gt_mail_group_add, gt_mail_group_remove,
    gt_mail_group_delete, gt_mail_channel, gt_mail_channel_list, gt_mail_channel_show, gt_mail_channel_create,
    gt_mail_channel_delete, gt_mail_channel_subscribe, gt_mail_channel_unsubscribe, gt_mail_channel_subscribers,
    gt_nudge, gt_dnd, gt_escalate, gt_escalate_list, gt_escalate_show, gt_escalate_ack, gt_escalate_close,
    gt_escalate_stale, gt_handoff, gt_hook, gt_done, gt_sling, gt_deacon_redispatch, gt_deacon_redispatch_state;

const struct cmd *const gt_commands[] = {
	&gt_mail_send,
	&gt_mail_reply,
	&gt_mail_hook,
	&gt_mail_inbox,
	&gt_mail_read,
	&gt_mail_peek,
	&gt_mail_mark_read,
	&gt_mail_mark_unread,
	&gt_mail_archive,
	&gt_mail_delete,
	&gt_mail_clear,
	&gt_mail_drain,
	&gt_mail_check,
	&gt_mail_thread,
	&gt_mail_search,
	&gt_mail_directory,
	&gt_mail_claim,
	&gt_mail_release,
	&gt_mail_queue_create,
	&gt_mail_queue_show,
	&gt_mail_queue_list,
	&gt_mail_queue_delete,
	&gt_mail_announces,
	&gt_mail_group_list,
	&gt_mail_group_show,
	&gt_mail_group_create,
	&gt_mail_group_add,
	&gt_mail_group_remove,
	&gt_mail_group_delete,
	&gt_mail_channel,
	&gt_mail_channel_list,
	&gt_mail_channel_show,
	&gt_mail_channel_create,
	&gt_mail_channel_delete,
	&gt_mail_channel_subscribe,
	&gt_mail_channel_unsubscribe,
	&gt_mail_channel_subscribers,
	&gt_nudge,
	&gt_dnd,
	&gt_escalate,
	&gt_escalate_list,
	&gt_escalate_show,
	&gt_escalate_ack,
	&gt_escalate_close,
	&gt_escalate_stale,
	&gt_handoff,
	&gt_hook,
	&gt_done,
	&gt_sling,
	&gt_deacon_redispatch,
	&gt_deacon_redispatch_state,
	NULL,
};

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
		gt_clean(out, argv[i]);
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
		return &cmd_gt;
	if (!add_continuations(&more, &words))
		return unknown(cli, argc, argv, at);
	if (help)
		return &cmd_gt;
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
	cli->json = opt_flag(cli, "json");
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

static const struct opt opts[] = { OPT_END };
static const char *const about[] = {
	"The messaging commands of Gas Town, with its words, flags, JSON keys and exit codes, over a mailroom. "
	"Installed "
	"with 'make install GT=1' the command also answers to the name gt. Its mail is the same as that of the other "
	"commands: what gt sends, 'mailroom inbox' shows.",
	"Every error exits with 1, also a wrong flag, but for 'gt deacon redispatch': 2 means too soon and 3 that the "
	"bead "
	"is not open. 'gt mail check' exits with 0 when there is unread mail and 1 when there is none.",
	"Who you are: --as, the harness session, GT_ROLE with GT_RIG, GT_POLECAT, GT_CREW and GT_DOG_NAME, BD_ACTOR, "
	"then a "
	"file .gt-agent in the working folder or above it, then the working folder itself (RIG/polecats/NAME, "
	"deacon/dogs/NAME, RIG/crew/NAME, RIG/refinery, RIG/witness, mayor). A person without any of these is the "
	"overseer. "
	"The room is the one that the other commands find, or .mailroom in $GT_TOWN_ROOT or $GT_ROOT.",
	"Groups, queues and channels are named, or given by the ids that gt prints: hq-group-NAME, hq-q-NAME, "
	"gt-q-NAME for "
	"a queue of a rig (here RIG/NAME), hq-channel-NAME. They may stand where an address stands.",
	"'gt sling' and 'gt deacon redispatch' run commands from the room's settings, which are split into words and "
	"never "
	"see a shell: 'Sling: COMMAND' gets BEAD RIG and flags; 'Bead-Status: COMMAND' gets BEAD and prints its "
	"status, such "
	"as open; 'Bead-Prefixes: gt=gastown, bd=beads' says whose beads are whose.",
	NULL,
};
static const char *const examples[] = {
	"mailroom --as alice gt mail send bob -s 'HELP: tests hang' -m 'since the last merge'\nmailroom --as bob gt "
	"mail "
	"inbox",
	"mailroom --as alice gt mail send bob -s 'quotes' --stdin <<'EOF'\nNo shell reads $(this).\nEOF\nmailroom --as "
	"bob "
	"gt mail inbox --json | jq -r '.[0].id'",
	"mailroom --as alice gt mail queue create builds --claimers '*'\nmailroom --as alice gt mail send hq-q-builds "
	"-s "
	"'build main'\nmailroom --as bob gt mail claim builds",
	NULL,
};
static const char *const differences[] = {
	"Not here: gt broadcast, gt notify, gt nudge-poller, gt callbacks, gt signal, gt mol, gt deacon health-check, "
	"and "
	"everything of gt that is not about messages. Queued nudges need no poller: they are shown by the hook, by "
	"'mailroom "
	"wait', or typed by the sender. The work of callbacks and of the witness is that of 'mailroom patrol'.",
	"An agent has to be registered (mailroom register NAME) before it sends or gets mail; an unknown address is "
	"refused "
	"with the names that are near, and nothing is stored. A harness session that nobody knows is refused, not "
	"taken for "
	"the overseer. --from and --identity name a registered agent. --human is no flag there either: the address is "
	"overseer.",
	"send prints the id of the message, and has --json. --pinned is kept. A recipient of a Cc has a copy of its "
	"own: if "
	"one archives it, the other still has it. Ids are ours, 26 letters and digits; threads have the id of their "
	"first "
	"message.",
	"read by number counts as inbox lists. read of somebody else's message by its id only looks: it stays unread "
	"for its "
	"recipient. Off a terminal, what others wrote is framed by lines with a random number, as data and not as "
	"instructions. delivery_state is pending until a message was read, then acked; there is no delivery_acked_at "
	"and no "
	"claimed_at, and 'delivery' is never there.",
	"archive, delete, clear and drain move mail to the archive: search, thread and read by id still find it. "
	"archive "
	"--stale goes by the start of your life in the room, not of a tmux session. Pinned mail, HELP and HANDOFF are "
	"never "
	"drained.",
	"check --inject tells of a message once a life, urgent ones until they are read; what others wrote is escaped. "
	"There "
	"is no E-stop.",
	"thread also takes the id of a message. An empty result of thread, search and queue list is [] in JSON. search "
	"looks "
	"for the text as it stands, in inbox and archive; 'mailroom search --regex' takes expressions.",
	"A queue made by queue create gets mail. Of two claimers one wins. Claims end when their holder is gone or "
	"after ten "
	"minutes without a sign of it, and its status, limits and counters are real: archive, delete or mark-read of "
	"claimed "
	"work is its completion. claim without a name tries all queues that let you. queue delete moves what is left "
	"to "
	"'mailroom dead'. A claim pattern is compared with the long and the short spelling of an agent.",
	"announces and channels are one: announces reads what was posted. subscribe takes who you are, not BD_ACTOR "
	"alone. "
	"Names of channels are in small letters.",
	"@crew and @polecats without a rig, and RIG/polecats/*, work. A name of two kinds is refused with the forms to "
	"choose from. Members of a group that reach nobody are named.",
	"nudge to an agent without a session is queued for its next life, with exit code 0. A channel means its "
	"subscribers. "
	"A name of a tmux session is no target. Mail sent by gt nudges its recipients unless --no-notify; the nudge "
	"has the "
	"sender and the id, never the subject.",
	"escalate delivers by its record and by mail, to the routes of the room's settings (see mailroom-escalate(1)); "
	"the "
	"same open escalation twice is one. Ages are counted from the last raise.",
	"done mails POLECAT_DONE to RIG/witness, as the protocol says, and takes --mr and --branch beside gt's own "
	"flags. "
	"It touches neither git nor a session. handoff writes the message and leaves sessions alone: --auto, --cycle, "
	"--yes, "
	"--watch and --no-git-check change nothing, and a role as operand is written into the message. hook takes "
	"messages, "
	"no beads.",
	"deacon redispatch counts an attempt before it slings, under a lock, in records of the room; it knows no "
	"model-escalation.json. sling runs the room's command and nothing else.",
	NULL,
};

const struct cmd cmd_gt = {
	.name = "gt",
	.synopsis = "COMMAND...",
	.summary = "the messaging commands of Gas Town, over this room",
	.opts = opts,
	.about = about,
	.examples = examples,
	.differences = differences,
	.subcommands = gt_commands,
	.exits = "",
	.max_args = 0,
	.run = run_gt,
};
