/* SPDX-License-Identifier: MIT */
/*
 * main.c - finds the command, opens what it needs, runs it, and turns the result into an exit code.
 *
 * Order matters: stdout is flushed before anything that follows is said on stderr, and a stdout that is gone
 * is an error (SIGPIPE is ignored), because marking mail depends on it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/full.h"
#include "base/sys.h"
#include "cli/faults.h"
#include "cli/gt/gt.h"

/* ---- The commands ---- */

bool
command_is_called(const struct cmd *cmd, const char *words)
{
	for (const char *const *a = cmd->aliases; a && *a; a++)
		if (strcmp(*a, words) == 0)
			return true;
	return strcmp(cmd->name, words) == 0;
}

const struct cmd *
command_named(const char *word)
{
	for (size_t i = 0; commands[i]; i++)
		if (command_is_called(commands[i], word))
			return commands[i];
	return NULL;
}

bool
command_changes(const struct cmd *cmd, const char *word)
{
	char spaced[40];

	text_join(spaced, sizeof(spaced), " ", word ? word : "", " ", NULL);
	return cmd->changes && (!word || !cmd->changes[0] || strstr(cmd->changes, spaced) != NULL);
}

/* ---- What a command needs ---- */

static void
trace_line(void *ctx, const char *line)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)ctx;
	buf_adds(&text, "mailroom: trace: ");
	(void)fence_add(&text, str_of(line), FENCE_LINE, 0);
	buf_addc(&text, '\n');
	if (buf_ok(&text))
		(void)sys_write_all(2, text.ptr, text.len);
}

static enum mr_rc
open_room(struct cli *cli, struct mr_error *err)
{
	struct mr_room_options options = { 0 };
	const char *option = cli->room_option, *debug = env_get("MAILROOM_DEBUG");

	if (!option && cli->gt && !env_get("MAILROOM"))
		option = gt_town(cli);
	TRY(cli_find_room(cli, option, !cli->unheard, &cli->place, err));
	if (cli->place.warning)
		cli_warn(cli, "%s", cli->place.warning);
	if (debug && strcmp(debug, "1") == 0)
		options.trace = trace_line;
	env_fill(cli);
	options.state_dir = cli->env.state_dir;
	options.data_dir = env_data_dirs();
	options.config_dir = env_config_dir(cli);
	options.trust_paths = env_get("MAILROOM_TRUST");
	options.found = cli->place.found;
	options.no_index = cli->no_index;
	options.env = &cli->env;
	options.pool = env_get("MAILROOM_POOL");
	options.expects = &(struct mr_names){ .v = cli->argv, .n = (size_t)cli->argc };
	options.no_recover = cli->cmd && (cli->cmd->needs & CMD_AS_IT_IS) != 0;
	enum mr_rc rc = mr_room_open(cli->place.spec, &options, &cli->room, err);

	if (rc == MR_UNTRUSTED && trust_offer(cli, &options)) {
		*err = (struct mr_error){ 0 };
		rc = mr_room_open(cli->place.spec, &options, &cli->room, err);
	}
	return rc;
}

/* What only matters to an agent whose name does not follow from --as or a binding. */
static void
know_surroundings(struct cli *cli)
{
	bool registers = cli->cmd == &command_register || cli->cmd == &command_takeover;

	if (cli->env.session)
		env_find_process(cli);
	cli->env.outside = (!cli->as_option || registers) && env_is_outside(cli);
	if ((!cli->as_option || registers) && mr_place_worktree(&cli->place, IGNORED) == MR_OK)
		cli->env.worktree = cli->place.worktree;
}

enum mr_rc
cli_open_room(struct cli *cli, struct mr_error *err)
{
	TRY(open_room(cli, err));
	know_surroundings(cli);
	return MR_OK;
}

enum mr_rc
cli_open_as_self(struct cli *cli, struct mr_error *err)
{
	TRY(open_room(cli, err));
	/* Where nothing but the session's binding is needed for it: not in a server, see self_present_session. */
	if (!cli->gt && !cli->as_option && !cli->second_session && !cli->env_aged &&
	    mr_self_bound(cli->room, &cli->env, &cli->self)) {
		cli->self_known = true;
		cli_seen(cli);
		return MR_OK;
	}
	know_surroundings(cli);
	return cli_know_self(cli, err);
}

void
cli_seen(struct cli *cli)
{
	cli->self.door = cli->door ? cli->door : MR_DOOR_COMMAND;
	mr_self_seen(cli->room, &cli->self);
}

enum mr_rc
cli_know_self(struct cli *cli, struct mr_error *err)
{
	if (cli->second_session && !cli->as_option)
		return mr_fail(err, MR_REFUSED,
		    "two harness sessions are in the environment, '%s' is the second\n"
		    "give your name with --as NAME, or unset the variable of the outer harness",
		    cli->second_session);
	if (cli->gt)
		gt_find_agent(cli);
	if (mr_self_resolve(cli->room, &cli->env, &cli->self, err) != MR_OK &&
	    !(cli->gt && err->code == MR_NOTFOUND && gt_is_overseer(cli)))
		return err->code;
	cli->self_known = true;
	cli_seen(cli);
	return MR_OK;
}

enum mr_rc
cli_storage(struct cli *cli, struct mr_storage *ret, struct mr_error *err)
{
	enum mr_rc rc = mr_room_storage(cli->room, ret, err);

	if (rc != MR_UNSUPPORTED)
		return rc;
	*ret = (struct mr_storage){ .file_system = "unknown" };
	(void)snprintf(ret->reason, sizeof(ret->reason), "%.150s", err->message);
	return MR_OK;
}

/* A caller that names a folder for the answer needs no mailbox and no name. */
static bool
is_client(struct cli *cli)
{
	const struct wait_options *wait = cli->cmd == &command_wait ? cli->opts : NULL;
	const struct send_options *send = cli->cmd == &command_send ? cli->opts : NULL;
	const char *folder = wait ? wait->reply_path : send ? send->reply_path : NULL;

	if (!folder && !(wait && wait->id && mr_answer_expected(cli->room, wait->id)))
		return false;
	cli->self = (struct mr_self){ .agent = "client", .how = "it has no mailbox" };
	return true;
}

/* Warns of what another user of a shared room has closed and the command left out, and of answers that did not come.
 * An error here does not change the result of the command. */
static void
remind(struct cli *cli)
{
	mr_auto(mr_list_done) struct mr_dues dues = { 0 };
	/* Not for hooks: a harness drops their stderr. */
	const struct mr_names *barred = cli->room && !cli->unheard ? mr_room_barred(cli->room) : NULL;

	if (barred)
		cli_warn_each(cli, barred);
	if (cli->self_known)
		(void)mr_overdue(cli->room, &cli->self, &dues, &cli->err);
	for (const struct mr_due *due = dues.v; due < dues.v + dues.n; due++) {
		cli_warn(cli, "nobody answered %s to '%s' ('%s') by %s: mailroom why %s", short_id(due->id), due->to,
		    due->subject, dated(due->by_ms).text, short_id(due->id));
		mr_overdue_told(cli->room, &cli->self, due->id);
	}
}

static int
run(struct cli *cli)
{
	const char *named = cli->cmd == &command_init && cli->argc > 0 ? cli->argv[0]
			    : cli->room_option                         ? cli->room_option
								       : env_get("MAILROOM");
	unsigned needs = cli->cmd->needs;
	enum mr_rc rc = MR_OK;

	if (named)
		cli_hand_over_for_room(cli, named);
	if (needs & CMD_SELF)
		rc = cli_open_as_self(cli, &cli->err);
	else if (needs & CMD_ROOM)
		rc = cli_open_room(cli, &cli->err);
	if (rc != MR_OK && !(cli->room && cli->err.code == MR_NOTFOUND && (needs & CMD_SELF) && is_client(cli)))
		return cli_fail(cli, &cli->err);
	/* Before anything is done: what a send stored could not be stored again there. */
	if (!is_full() && cli->command_line && cli->room && mr_room_has(cli->room, MR_HAS_FAR_LINKS))
		cli_hand_over_to_full(cli); /* where there is none, mail for that link waits */
	if ((needs & CMD_FULL) && (cli->cmd == &command_index || mr_room_has(cli->room, MR_HAS_INDEX | MR_HAS_PACKS)))
		cli_hand_over_to_full(cli);
	for (int i = 0; i < cli->argc && (needs & CMD_IDS) && !is_full() && !cli->sink; i++)
		if (mr_id_is_far(cli->room, cli->self.agent, cli->argv[i]))
			cli_hand_over_to_full(cli);
	if ((needs & CMD_CARRIES) && !cli->threaded)
		cli_carry_first(cli, CARRY_PATIENCE_MS);
	cli->err = (struct mr_error){ 0 };
	int code = opt_fit(cli) ? cli->cmd->run(cli) : EXIT_USAGE;
	/* What a failing command had gathered is still true: it is shown, and the failure stays the exit
	 * code. */
	if (code == EXIT_DONE && command_changes(cli->cmd, cli->subword) && !cli->dry_run)
		cli->changed = true;
	/* A sink may answer with the text, and nothing said afterwards would be heard. */
	if (cli->sink && !cli->sink->closed)
		remind(cli);
	bool flushed = cli_flush(cli);

	if (!cli->sink)
		remind(cli);
	if (!flushed && code == EXIT_DONE)
		return cli->changed ? EXIT_DOUBT : EXIT_FAILED;
	return code;
}

static int
unknown_command(struct cli *cli, const char *word)
{
	mr_auto(buf_done) struct buf near = BUF_INIT;

	for (size_t i = 0; commands[i]; i++) {
		size_t limit = strlen(commands[i]->name) > 4 ? 2 : 1;

		if (!commands[i]->hidden && edit_distance(commands[i]->name, word, limit) <= limit)
			buf_addf(&near, "%s'%s'", near.len > 0 ? " or " : "", commands[i]->name);
	}
	if (near.len > 0)
		return cli_usage(cli, "there is no command '%s'; did you mean %s?", word, buf_z(&near));
	return cli_usage(cli, "there is no command '%s'", word);
}

/* The words of the command first, then the options that stood before or among them, then the rest: so one parser does
 * for all places. `gt --json mail --as X inbox` has up to five words; an option of its own ends them. NULL: out of
 * memory. */
static char **
put_in_order(struct cli *cli, int argc, char **argv, int *ret_words)
{
	size_t size = sizeof(char *) * ((size_t)argc + 2);
	char **out = arena_alloc(&cli->own, size), **options = arena_alloc(&cli->own, size);
	int words = 0, n = 0, i = 1;
	bool gt = false;

	if (!out || !options)
		return NULL;
	out[0] = argv[0];
	while (i < argc && words < (gt ? 5 : 1)) {
		bool value = strcmp(argv[i], "--room") == 0 || strcmp(argv[i], "--as") == 0;
		bool global = value || str_starts(str_of(argv[i]), "--as=") || str_starts(str_of(argv[i]), "--room=") ||
			      strcmp(argv[i], "--json") == 0;
		bool is_word = argv[i][0] != '-' || (words == 0 && strcmp(argv[i], "--") == 0);

		if (gt && !is_word && !global)
			break;
		if (is_word) {
			gt |= words == 0 && strcmp(argv[i], "gt") == 0;
			out[++words] = argv[i++];
			continue;
		}
		options[n++] = argv[i++];
		if (value && i < argc)
			options[n++] = argv[i++];
	}
	memcpy(out + 1 + words, options, (size_t)n * sizeof(*out));
	memcpy(out + 1 + words + n, argv + i, (size_t)(argc - i) * sizeof(*out));
	*ret_words = words;
	return out;
}

static int
dispatch(struct cli *cli, int argc, char **given)
{
	static char all[] = "@all";
	int words = 0;
	char **argv = put_in_order(cli, argc, given, &words);

	if (!argv)
		return EXIT_FAILED;
	for (int i = 1; i < argc && !cli->json; i++) /* a guess, so that usage errors are JSON too */
		cli->json = strcmp(argv[i], "--json") == 0;
	if (argc > 1 && strcmp(given[1], "--version") == 0) {
		buf_addf(&cli->out, "mailroom %s%s%s%s\n", MAILROOM_VERSION, is_full() ? " (full, " : "",
		    is_full() ? full_libraries : "", is_full() ? ")" : "");
		return cli_flush(cli) ? EXIT_DONE : EXIT_FAILED;
	}
	int at = words > 0 ? 1 : 0;

	cli->cmd = at > 0 ? command_named(argv[at]) : &command_status;
	if (!cli->cmd)
		return unknown_command(cli, argv[at]);
	cli->gt = cli->cmd == &command_gt;
	if (cli->gt && !(cli->cmd = gt_command(cli, argc, argv, &at)))
		return EXIT_USAGE;
	if (at > 0 && strcmp(argv[at], "broadcast") == 0) { /* is `send @all` */
		memmove(argv + at + 2, argv + at + 1, (size_t)(argc - at - 1) * sizeof(*argv));
		argv[at + 1] = all;
		argc++;
	}
	if (!opt_parse(cli, argc - at, argv + at))
		return EXIT_USAGE;
	cli->json = cli->json_given;
	if (cli->gt && cli->json_given) /* an option of some of its commands only, and theirs */
		return cli_usage(cli, "'%s' has no --json", cli->cmd->name);
	if (cli->gt)
		cli->json = cli->gt_json;
	if (cli->want_help) {
		if (cli->cmd == &command_status)
			help_overview(cli, &cli->out);
		else
			help_command(cli, cli->cmd, &cli->out);
		return cli_flush(cli) ? EXIT_DONE : EXIT_FAILED;
	}
	if (cli->argc < cli->cmd->min_args) { /* a command without its arguments explains itself */
		if (cli->json)
			return cli_usage(cli, "usage: mailroom %s %s", cli->cmd->name, cli->cmd->help->synopsis);
		help_usage(cli);
		return EXIT_USAGE;
	}
	if (cli->cmd->max_args >= 0 && cli->argc > cli->cmd->max_args)
		return cli_usage(cli, "unexpected argument '%s'", cli->argv[cli->cmd->max_args]);
	return run(cli);
}

void
cli_done(struct cli *cli)
{
	mr_room_close(cli->room);
	mr_place_done(&cli->place);
	buf_done(&cli->out);
	arena_free(cli->own);
}

int
cli_call(const struct cli_call *call, int argc, char **argv)
{
	struct cli cli = { .budget.limit = INT64_MAX,
		.budget_option = -1,
		.sink = call->sink,
		.caller_session = call->session,
		.door = call->door,
		.command_line = call->command_line,
		.env_aged = call->env_aged,
		.threaded = call->threaded,
		.room_option = call->room,
		.as_option = call->as };
	int code = dispatch(&cli, argc, argv);

	cli_done(&cli);
	return code;
}

int
main(int argc, char **argv)
{
	static char gt[] = "gt";
	struct cli cli = { .command_line = argv, .budget.limit = INT64_MAX, .budget_option = -1 };
	const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
	struct winsize size = { 0 };

	/* With stdin, stdout or stderr closed, the next file opened would get that number, and text for a person
	 * would end up in somebody's mail. The place is taken by something that can be neither read nor written that
	 * way. One question for all three; each that is in doubt is asked for. */
	struct pollfd files[3] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };
	bool unsure = poll(files, 3, 0) < 0;

	for (int fd = 0; fd < 3; fd++) {
		bool closed = (unsure || (files[fd].revents & POLLNVAL)) && fcntl(fd, F_GETFD) < 0;

		if (closed && sys_open(AT_FDCWD, "/dev/null", fd == 0 ? O_WRONLY : O_RDONLY, 0) != fd)
			_exit(EXIT_FAILED);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a file above `ulimit -f`: the write says so */
	faults_from_env();
	if (argc < 2 || strcmp(argv[1], command_hook.name) != 0) /* a hook speaks to a harness */
		cli.out_tty = ioctl(1, TIOCGWINSZ, &size) == 0;  /* what isatty asks */
	if (cli.out_tty) {
		const char *term = env_get("TERM");

		cli.color = !env_get("NO_COLOR") && term && strcmp(term, "dumb") != 0;
		cli.columns = size.ws_col > 20 ? size.ws_col : 80;
	}
	if (argv[0] && strcmp(slash ? slash + 1 : argv[0], gt) == 0) { /* under that name it is `mailroom gt` */
		char **words = arena_alloc(&cli.own, sizeof(char *) * ((size_t)argc + 2));

		if (!words)
			return EXIT_FAILED;
		words[0] = argv[0];
		words[1] = gt;
		memcpy(words + 2, argv + 1, (size_t)(argc - 1) * sizeof(*words));
		argv = words;
		argc++;
	}
	int code = dispatch(&cli, argc, argv);

	if (cli.gt)
		code = gt_exit(code);
	if (cli.cmd == &command_sendmail)
		code = sendmail_exit(code);
	if (cli.cmd == &command_hook)
		code = hook_exit(code);
	cli_done(&cli);
	return code;
}
