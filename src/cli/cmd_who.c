/* SPDX-License-Identifier: MIT */
/* cmd_who.c - who is in this room, whether they live, and what waits for them. */
#include "cli/roster.h"
#include "cli/view.h"
#include "helptext.h"

static void
list_agent(struct listing *list, const struct roster_entry *e, enum mr_trust trust)
{
	mr_auto(buf_done) struct buf place = BUF_INIT, name = BUF_INIT;
	const struct mr_agent *a = &e->agent;

	fence_name(&place, a->worktree[0] ? a->worktree : "-");
	if (a->role[0])
		fence_addf(&place, "  ('%s')", a->role);
	text_name(list->cli, &name, a->name);
	list_row(list, col_fenced("NAME", &name), kv_str("name", a->name),
	    col("STATE", kv_str("state", roster_state(e))), col("LIFE", kv_int("life", a->life)),
	    col("UNREAD", kv_size("unread", e->counts.unread)), kv_size("urgent", e->counts.urgent),
	    kv_size("held", e->counts.held), col("OLDEST", kv_time("oldest_unread", e->counts.oldest_unread_ms)),
	    kv_time("created", a->created_ms), kv_time("started", a->started_ms),
	    col("SEEN", kv_time("seen", a->seen_ms)), col_fenced("WORKTREE", &place), kv_str("worktree", a->worktree),
	    kv_str("session", a->session), kv_str("host", a->host), kv_int("pid", a->process.pid),
	    kv_str("role", a->role), kv_str("room_trust", mr_trust_word(trust)));
}

int
cmd_who(struct cli *cli)
{
	const struct who_options *o = cli->opts;
	mr_auto(roster_done) struct roster roster = { 0 };
	struct listing list = { .cli = cli };
	struct mr_error err = { 0 };
	bool only_live = o->live;
	int64_t since_ms;
	enum mr_trust trust = mr_room_trust(cli->room, &since_ms);

	if (roster_load(cli, true, &roster, &err) != MR_OK)
		return cli_fail(cli, &err);
	for (size_t i = 0; i < roster.n; i++)
		if (!only_live || (roster.v[i].presence == MR_LIVE && roster.v[i].agent.life > 0))
			list_agent(&list, &roster.v[i], trust);
	(void)list_end(&list, only_live ? "nobody is known to be live here; mailroom who shows all\n"
			      : mr_room_registers(cli->room) ? "nobody is here yet; mailroom register NAME\n"
							     : "nobody is here yet\n");
	if (!cli->json && list.n > 0) {
		buf_adds(&cli->out, trust >= MR_TRUST_VARIABLE ? "the room is trusted by " : "the room is ");
		trust_text(&cli->out, trust, since_ms);
		buf_addc(&cli->out, '\n');
	}
	return EXIT_DONE;
}
