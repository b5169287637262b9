/* SPDX-License-Identifier: MIT */
/* cmd_stats.c - how much mail there is, by agent and in all. */
#include "cli/roster.h"
#include "helptext.h"

static struct mr_counts
total_of(const struct roster *roster)
{
	struct mr_counts t = { 0 };

	for (size_t i = 0; i < roster->n; i++) {
		const struct mr_counts *c = &roster->v[i].counts;

		t.unread += c->unread;
		t.seen += c->seen;
		t.held += c->held;
		t.urgent += c->urgent;
		if (c->oldest_unread_ms > 0 && (t.oldest_unread_ms == 0 || c->oldest_unread_ms < t.oldest_unread_ms))
			t.oldest_unread_ms = c->oldest_unread_ms;
	}
	return t;
}

static void
json_counts(struct json *j, const struct mr_counts *c)
{
	json_key_int(j, "unread", (int64_t)c->unread);
	json_key_int(j, "urgent", (int64_t)c->urgent);
	json_key_int(j, "held", (int64_t)c->held);
	json_key_int(j, "read", (int64_t)c->seen);
	json_key_time(j, "oldest_unread", c->oldest_unread_ms);
}

static void
print_json(struct cli *cli, const struct roster *roster, const struct mr_counts *total, size_t dead)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "room", mr_room_name(cli->room));
	json_key(&j, "agents");
	json_open(&j, '[');
	for (size_t i = 0; i < roster->n; i++) {
		json_open(&j, '{');
		json_key_str(&j, "name", roster->v[i].agent.name);
		json_key_str(&j, "state", roster_state(&roster->v[i]));
		json_counts(&j, &roster->v[i].counts);
		json_close(&j);
	}
	json_close(&j);
	json_key(&j, "total");
	json_open(&j, '{');
	json_counts(&j, total);
	json_close(&j);
	json_key_int(&j, "dead_letters", (int64_t)dead);
	out_json_line(cli, &j);
}

static bool
add_row(struct table *t, const char *name, const struct mr_counts *c)
{
	const size_t numbers[] = { c->unread, c->urgent, c->held, c->seen };
	mr_auto(buf_done) struct buf oldest = BUF_INIT;
	bool ok = table_add(t, name);

	for (size_t i = 0; i < 4 && ok; i++) {
		char text[24];

		(void)snprintf(text, sizeof(text), "%zu", numbers[i]);
		ok = table_add(t, text);
	}
	if (c->oldest_unread_ms > 0)
		text_when(&oldest, c->oldest_unread_ms);
	else
		buf_adds(&oldest, "-");
	return ok && table_add(t, buf_z(&oldest));
}

static int
run_stats(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "UNREAD", "URGENT", "HELD", "READ", "OLDEST" };
	mr_auto(roster_done) struct roster roster = { 0 };
	struct table table = { .columns = 6 };
	struct mr_error err = { 0 };
	size_t dead = 0;
	bool ok = true;

	if (roster_load(cli, true, &roster, &err) != MR_OK || dead_letters(cli, 0, &dead, &err) != MR_OK)
		return cli_fail(cli, &err);
	struct mr_counts total = total_of(&roster);

	if (cli->json) {
		print_json(cli, &roster, &total, dead);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < 6 && ok; i++)
		ok = table_add(&table, heading[i]);
	for (size_t i = 0; i < roster.n && ok; i++)
		ok = add_row(&table, roster.v[i].agent.name, &roster.v[i].counts);
	ok = ok && add_row(&table, "in all", &total);
	if (ok)
		table_print(cli, &table, &cli->out);
	mr_names_done(&table.cells);
	if (mr_room_folders(cli->room, MR_DEAD, &err) == MR_OK) {
		out_count(&cli->out, dead, "dead letter");
		buf_addc(&cli->out, '\n');
	}
	return ok ? EXIT_DONE : EXIT_FAILED;
}

const struct cmd cmd_stats = {
	.name = "stats",
	.help = &help_stats,
	.needs = CMD_ROOM,
	.run = run_stats,
};
