/* SPDX-License-Identifier: MIT */
/* cmd_register.c - agents that come and go. register takes a free name, or one whose last life is gone; takeover is the
 * same with force; prune removes agents, and their unread mail goes to the dead letters. */
#include "base/process.h"
#include "cli/setup/setup.h"
#include "helptext.h"

/* ---- register, takeover ---- */

/* Says how later commands find out which agent they are. */
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
		command_quote(out, mailbox);
		buf_addc(out, '\n');
	} else if (r->here == 1) {
		buf_adds(out, "later commands of this terminal session know it\n");
	} else if (!alone) {
		if (r->here > 1)
			buf_addf(out, "this terminal has registered %zu agents: ", r->here);
		else if (mr_room_has(cli->room, MR_HAS_LIVES))
			buf_adds(out, "neither a harness session nor a terminal is known here: ");
		buf_adds(out, "give --as ");
		command_quote(out, name);
		buf_adds(out, " with each command, or export MAILROOM_AGENT=");
		command_quote(out, name);
		buf_addc(out, '\n');
	}
}

int
cmd_register(struct cli *cli, const struct life_options *o)
{
	const char *name = cli->argv[0];
	struct mr_register_options options = { .role = o->role, .takeover = cli->cmd == &command_takeover };
	mr_auto(mr_agent_done) struct mr_agent agent = { .session = "" };
	mr_auto(buf_done) struct buf wake = BUF_INIT;
	struct mr_registration done = { 0 };

	if (cli->as_option && strcmp(cli->as_option, name) != 0)
		return cli_usage(cli, "--as %s and the name %s are two different agents", cli->as_option, name);
	if (o->pid == 0 || (o->pid > 0 && !process_describe(o->pid, &cli->env.process)))
		return cli_usage(cli, "option '--pid': there is no process %lld here", (long long)o->pid);
	/* A command is the user's to give: it goes into the configuration, not into the room. */
	buf_addf(&wake, "Wake-%s", name);
	if (o->wake) {
		TRY_CLI(env_not_in_session(cli, "giving a command with --wake", &cli->err));
		TRY_CLI(mr_config_set(NULL, buf_z(&wake), o->wake, false, &cli->err));
	}
	TRY_CLI(mr_register(cli->room, name, &cli->env, &options, &done, &cli->err));
	if (o->wake)
		TRY_CLI(mr_config_set(cli->room, buf_z(&wake), o->wake, false, &cli->err));
	/* The mailbox skill knows an agent by the id of its mailbox, which its commands are told in a variable. A room
	 * without lives has that id, if its kind has one, in the place of the session. */
	if (!mr_room_has(cli->room, MR_HAS_LIVES))
		(void)mr_agent_get(cli->room, name, &agent, IGNORED);
	if (!out_json(cli, kv_str("agent", name), kv_int("life", done.life), kv_bool("created", done.created),
		kv_bool("continued", done.continued), kv_size("unread", done.unread),
		kv_size("returned", done.returned), kv_size("returned_work", done.returned_work),
		kv_str("session", cli->env.session), kv_if("mailbox", agent.session))) {
		struct buf *out = &cli->out;

		fence_addf(out, "you are %.200s", name);
		if (done.life > 0)
			buf_addf(out, ", life %u", done.life);
		buf_adds(out, done.continued ? ", as before" : done.created ? ", new here" : "");
		buf_addf(out, "\n  %s%s\n", counted(done.unread, "unread message").text,
		    done.unread > 0 ? ": mailroom inbox" : "");
		if (done.returned > 0)
			buf_addf(out, "  %s of the last life came back\n", counted(done.returned, "message").text);
		if (done.returned_work > 0)
			buf_addf(out, "  %s of the last life went back to queues\n",
			    counted(done.returned_work, "claim").text);
		print_way(cli, name, agent.session, &done);
	}
	return EXIT_DONE;
}

/* ---- prune ---- */

int
cmd_prune(struct cli *cli, const struct prune_options *o)
{
	mr_auto(mr_list_done) struct mr_prunings done = { 0 };
	struct mr_prune_options options = {
		.dry_run = cli->dry_run, .force = o->force, .stale_ms = o->stale_ms > 0 ? o->stale_ms : 0
	};

	if (o->stale_ms == 0)
		return cli_usage(cli, "option '--stale' needs a time, such as 7d");
	/* argv ends in NULL: opt_parse takes its list from zeroed memory. */
	options.names = cli->argc > 0 ? (const char *const *)cli->argv : NULL;
	enum mr_rc rc = mr_prune(cli->room, &options, &done, &cli->err);

	for (size_t i = 0; i < done.n; i++) {
		const struct mr_pruned *p = &done.v[i];
		struct buf *out = &cli->out;
		bool keeps = mr_room_has(cli->room, MR_HAS_LIVES); /* elsewhere there are no dead letters */

		if (out_json(cli, kv_str("agent", p->name), kv_size("dead_letters", keeps ? p->dead : 0),
			keeps ? kv_none() : kv_size("deleted", p->dead), kv_size("returned_work", p->returned),
			kv_time("seen", p->seen_ms), kv_bool("dry_run", cli->dry_run)))
			continue;
		fence_addf(out, "%s %s: %s%s", cli->dry_run ? "would prune" : "pruned", p->name,
		    counted(p->dead, "unread message").text,
		    p->dead == 0 ? ""
		    : keeps      ? " to dead letters"
				 : " deleted");
		if (p->returned > 0)
			buf_addf(out, ", %s back to queues", counted(p->returned, "claim").text);
		buf_addc(out, '\n');
	}
	TRY_CLI(rc);
	if (done.n == 0 && !cli->json)
		buf_adds(&cli->out, "nobody to prune\n");
	return EXIT_DONE;
}
