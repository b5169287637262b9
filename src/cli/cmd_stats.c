/* SPDX-License-Identifier: MIT */
/* cmd_stats.c - how much mail there is, by agent and in all. */
#include "cli/roster.h"
#include "cli/view.h"
#include "helptext.h"

/* e NULL: the sum of all agents, the last line of the table. */
static void
list_counts(struct listing *list, const struct roster_entry *e, const struct mr_counts *c)
{
	list_row(list, e ? col("NAME", kv_str("name", e->agent.name)) : col_str("NAME", "in all"),
	    e ? kv_str("state", roster_state(e)) : kv_none(), col("UNREAD", kv_size("unread", c->unread)),
	    col("URGENT", kv_size("urgent", c->urgent)), col("HELD", kv_size("held", c->held)),
	    col("READ", kv_size("read", c->seen)), col("OLDEST", kv_time("oldest_unread", c->oldest_unread_ms)));
}

int
cmd_stats(struct cli *cli)
{
	mr_auto(roster_done) struct roster roster = { 0 };
	struct listing list = { .cli = cli, .form = LIST_ARRAY };
	struct mr_counts total = { 0 };
	struct mr_error err = { 0 };
	size_t dead = 0;

	if (roster_load(cli, true, &roster, &err) != MR_OK || dead_letters(cli, 0, &dead, &err) != MR_OK)
		return cli_fail(cli, &err);
	for (size_t i = 0; i < roster.n; i++) {
		const struct mr_counts *c = &roster.v[i].counts;

		list_counts(&list, &roster.v[i], c);
		total.unread += c->unread;
		total.seen += c->seen;
		total.held += c->held;
		total.urgent += c->urgent;
		if (c->oldest_unread_ms > 0 &&
		    (total.oldest_unread_ms == 0 || c->oldest_unread_ms < total.oldest_unread_ms))
			total.oldest_unread_ms = c->oldest_unread_ms;
	}
	if (!cli->json)
		list_counts(&list, NULL, &total);
	out_json(cli, kv_str("room", mr_room_name(cli->room)), kv_json("agents", list_json(&list)), kv_open("total"),
	    kv_size("unread", total.unread), kv_size("urgent", total.urgent), kv_size("held", total.held),
	    kv_size("read", total.seen), kv_time("oldest_unread", total.oldest_unread_ms), kv_close(),
	    kv_size("dead_letters", dead));
	(void)list_end(&list, "");
	if (!cli->json && mr_room_folders(cli->room, MR_DEAD, &err) == MR_OK) {
		out_count(&cli->out, dead, "dead letter");
		buf_addc(&cli->out, '\n');
	}
	return EXIT_DONE;
}
