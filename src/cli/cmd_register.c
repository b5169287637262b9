/* SPDX-License-Identifier: MIT */
/* cmd_register.c - becoming an agent: a free name, or one whose last life is gone. Takeover is the same with
 * force. */
#include "base/process.h"
#include "base/text.h"
#include "cli/view.h"
#include "helptext.h"

static bool
read_pid(struct cli *cli)
{
	const struct life_options *o = cli->opts;

	if (o->pid < 0)
		return true;
	if (o->pid == 0 || !process_describe(o->pid, &cli->env.process))
		return cli_usage(cli, "option '--pid': there is no process %lld here", (long long)o->pid), false;
	return true;
}

/* In single quotes, so that a shell takes it as one word. */
static void
add_quoted(struct buf *out, const char *text)
{
	bool plain = *text != '\0';

	for (const char *p = text; *p && plain; p++)
		plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			strchr("/._+-%", *p);
	if (plain) {
		buf_adds(out, text);
		return;
	}
	buf_addc(out, '\'');
	for (const char *p = text; *p; p++)
		buf_adds(out, *p == '\'' ? "'\\''" : (char[]){ *p, '\0' });
	buf_addc(out, '\'');
}

/* How later commands know who they are. */
static void
print_way(struct cli *cli, const char *name, const char *mailbox, const struct mr_registration *r)
{
	struct buf *out = &cli->out;
	bool alone = r->bound && r->here <= 1;

	if (mailbox[0]) {
		if (alone)
			buf_addf(out,
			    "later commands of this %ssession know it; for the functions of the mailbox skill:\n",
			    r->here == 1 ? "terminal " : "");
		buf_adds(out, "export AGENT_MAILBOX_ID=");
		add_quoted(out, mailbox);
		buf_addc(out, '\n');
	} else if (r->here == 1) {
		buf_adds(out, "later commands of this terminal session know it\n");
	} else if (!alone) {
		if (r->here > 1)
			buf_addf(out, "this terminal has registered %zu agents: ", r->here);
		else if (mr_room_has_lives(cli->room))
			buf_adds(out, "neither a harness session nor a terminal is known here: ");
		buf_adds(out, "give --as ");
		add_quoted(out, name);
		buf_adds(out, " with each command, or export MAILROOM_AGENT=");
		add_quoted(out, name);
		buf_addc(out, '\n');
	}
}

static void
print_text(struct cli *cli, const char *name, const struct mr_registration *r)
{
	struct buf *out = &cli->out;

	buf_adds(out, "you are ");
	(void)fence_add(out, str_of(name), FENCE_LINE, 0);
	if (r->life > 0)
		buf_addf(out, ", life %u", r->life);
	buf_adds(out, r->continued ? ", as before" : r->created ? ", new here" : "");
	buf_addc(out, '\n');
	buf_adds(out, "  ");
	out_count(out, r->unread, "unread message");
	if (r->unread > 0)
		buf_adds(out, ": mailroom inbox");
	buf_addc(out, '\n');
	if (r->returned > 0) {
		buf_adds(out, "  ");
		out_count(out, r->returned, "message");
		buf_adds(out, " of the last life came back\n");
	}
	if (r->returned_work > 0) {
		buf_adds(out, "  ");
		out_count(out, r->returned_work, "claim");
		buf_adds(out, " of the last life went back to queues\n");
	}
}

/* The mailbox skill knows an agent by the id of its mailbox, which its commands are told in a variable. */
static const char *
mailbox_of(struct cli *cli, const char *name)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };
	const char *id = NULL;

	if (strcmp(mr_room_kind(cli->room), "handoff") == 0 && mr_agent_get(cli->room, name, &agent, &ignored) == MR_OK)
		id = arena_dup(&cli->own, str_of(agent.session));
	return id ? id : "";
}

static const char *
wake_setting(struct cli *cli, const char *name)
{
	mr_auto(buf_done) struct buf setting = BUF_INIT;
	const char *copy;

	buf_addf(&setting, "Wake-%s", name);
	copy = arena_dup(&cli->own, buf_str(&setting));
	return copy ? copy : "Wake-";
}

/* A command is the user's to give: it goes into the configuration, not into the room. */
static enum mr_rc
check_wake(struct cli *cli, const char *name, const char *wake, struct mr_error *err)
{
	enum mr_rc rc = env_not_in_session(cli, "giving a command with --wake", err);

	return rc == MR_OK ? mr_config_check(wake_setting(cli, name), wake, err) : rc;
}

int
cli_register(struct cli *cli, bool takeover)
{
	const struct life_options *o = cli->opts;
	const char *name = cli->argv[0];
	struct mr_register_options options = { .role = o->role, .takeover = takeover };
	const char *wake = o->wake;
	struct mr_registration done = { 0 };
	struct mr_error err = { 0 };

	if (cli->as_option && strcmp(cli->as_option, name) != 0)
		return cli_usage(cli, "--as %s and the name %s are two different agents", cli->as_option, name);
	if (!read_pid(cli))
		return EXIT_USAGE;
	if (wake && check_wake(cli, name, wake, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (mr_register(cli->room, name, &cli->env, &options, &done, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (wake && mr_config_set(cli->room, wake_setting(cli, name), wake, false, &err) != MR_OK)
		return cli_fail(cli, &err);
	const char *mailbox = mailbox_of(cli, name);

	if (!out_json(cli, kv_str("agent", name), kv_int("life", done.life), kv_bool("created", done.created),
		kv_bool("continued", done.continued), kv_size("unread", done.unread),
		kv_size("returned", done.returned), kv_size("returned_work", done.returned_work),
		kv_str("session", cli->env.session), kv_if("mailbox", mailbox))) {
		print_text(cli, name, &done);
		print_way(cli, name, mailbox, &done);
	}
	return EXIT_DONE;
}

int
cmd_register(struct cli *cli)
{
	return cli_register(cli, false);
}
