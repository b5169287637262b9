/* SPDX-License-Identifier: MIT */
/* cmd_who.c - who is in this room, whether they live, and what waits for them. */
#include "base/clock.h"
#include "cli/roster.h"
#include "helptext.h"

static void
print_json(struct cli *cli, const struct roster_entry *e, const char *trust)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "name", e->agent.name);
	json_key_str(&j, "state", roster_state(e));
	json_key_int(&j, "life", (int64_t)e->agent.life);
	json_key_int(&j, "unread", (int64_t)e->counts.unread);
	json_key_int(&j, "urgent", (int64_t)e->counts.urgent);
	json_key_int(&j, "held", (int64_t)e->counts.held);
	json_key_time(&j, "oldest_unread", e->counts.oldest_unread_ms);
	json_key_time(&j, "created", e->agent.created_ms);
	json_key_time(&j, "started", e->agent.started_ms);
	json_key_time(&j, "seen", e->agent.seen_ms);
	json_key_str(&j, "worktree", e->agent.worktree);
	json_key_str(&j, "session", e->agent.session);
	json_key_str(&j, "host", e->agent.host);
	json_key_int(&j, "pid", e->agent.process.pid);
	json_key_str(&j, "role", e->agent.role);
	json_key_str(&j, "room_trust", trust);
	out_json_line(cli, &j);
}

static bool
add_number(struct table *t, size_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%zu", n);
	return table_add(t, text);
}

static bool
add_time(struct table *t, int64_t ms)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (ms > 0)
		text_when(&text, ms);
	else
		buf_adds(&text, "-");
	return table_add(t, buf_z(&text));
}

static bool
add_row(struct cli *cli, struct table *t, const struct roster_entry *e)
{
	mr_auto(buf_done) struct buf place = BUF_INIT, name = BUF_INIT;

	fence_name(&place, e->agent.worktree[0] ? e->agent.worktree : "-");
	if (e->agent.role[0])
		fence_addf(&place, "  ('%s')", e->agent.role);
	text_name(cli, &name, e->agent.name);
	return table_put(t, &name) && table_add(t, roster_state(e)) && add_number(t, e->agent.life) &&
	       add_number(t, e->counts.unread) && add_time(t, e->counts.oldest_unread_ms) &&
	       add_time(t, e->agent.seen_ms) && table_put(t, &place);
}

static int
run_who(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "STATE", "LIFE", "UNREAD", "OLDEST", "SEEN", "WORKTREE" };
	mr_auto(roster_done) struct roster roster = { 0 };
	struct table table = { .columns = 7 };
	struct mr_error err = { 0 };
	bool only_live = opt_flag(cli, "live"), ok = true;
	size_t shown = 0;
	int64_t since_ms;
	enum mr_trust trust = mr_room_trust(cli->room, &since_ms);

	if (roster_load(cli, true, &roster, &err) != MR_OK)
		return cli_fail(cli, &err);
	for (size_t i = 0; i < 7 && ok; i++)
		ok = table_add(&table, heading[i]);
	for (size_t i = 0; i < roster.n && ok; i++) {
		const struct roster_entry *e = &roster.v[i];

		if (only_live && (e->presence != MR_LIVE || e->agent.life == 0))
			continue;
		shown++;
		if (cli->json)
			print_json(cli, e, mr_trust_word(trust));
		else
			ok = add_row(cli, &table, e);
	}
	if (!cli->json && shown > 0) {
		table_print(cli, &table, &cli->out);
		buf_adds(&cli->out, trust >= MR_TRUST_VARIABLE ? "the room is trusted by " : "the room is ");
		trust_text(&cli->out, trust, since_ms);
		buf_addc(&cli->out, '\n');
	} else if (!cli->json)
		buf_adds(&cli->out, only_live ? "nobody is known to be live here; mailroom who shows all\n"
				    : mr_room_registers(cli->room) ? "nobody is here yet; mailroom register NAME\n"
								   : "nobody is here yet\n");
	mr_names_done(&table.cells);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

static const char *const aliases[] = { "agents", NULL };
const struct cmd cmd_who = {
	.name = "who",
	.help = &help_who,
	.aliases = aliases,
	.needs = CMD_ROOM,
	.run = run_who,
};
