/* SPDX-License-Identifier: MIT */
/* mailroom archive */
#include "printout.h"

#include "base/clock.h"
#include "helptext.h"

struct choice {
	struct printout base; /* first: trouble is reported through it */
	struct mr_names ids;
	size_t unread, pinned; /* that stay */
	bool include_unread;
};

static bool
consider(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;

	if (msg->flags & MR_PINNED)
		c->pinned++;
	else if (!(msg->flags & MR_SEEN) && !c->include_unread)
		c->unread++;
	else
		return names_add(&c->ids, str_of(msg->id));
	return true;
}

/* An id that was named: the same rules, but staying is an error with the reason. */
static int
consider_named(struct cli *cli, struct choice *c, const char *id)
{
	struct mr_error err = { 0 };
	struct mr_message msg = { 0 };
	int code = EXIT_DONE;

	if (mr_fetch(cli->room, cli->self.agent, id, &msg, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (msg.flags & MR_PINNED) {
		(void)mr_fail(&err, MR_REFUSED, "'%s' is pinned", msg.id);
		(void)mr_hint(&err, "mailroom mark unpinned %s", short_id(msg.id));
		code = cli_fail(cli, &err);
	} else if (!(msg.flags & MR_SEEN) && !c->include_unread) {
		(void)mr_fail(&err, MR_REFUSED, "'%s' is unread", msg.id);
		(void)mr_hint(&err, "read it first, or add --include-unread");
		code = cli_fail(cli, &err);
	} else if (!names_add(&c->ids, str_of(msg.id))) {
		code = EXIT_FAILED;
	}
	mr_message_done(&msg);
	return code;
}

static int
choose(struct cli *cli, struct choice *c)
{
	const struct archive_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		int one = consider_named(cli, c, cli->argv[i]);
		code = one != EXIT_DONE ? one : code;
	}
	if (cli->argc > 0)
		return code;
	scan.filter.before_ms = o->older_than_ms > 0 ? clock_now_ms() - o->older_than_ms : 0;
	if (mr_scan(cli->room, cli->self.agent, &scan, consider, c, &err) != MR_OK)
		return cli_fail(cli, &err);
	return EXIT_DONE;
}

static void
report(struct cli *cli, const struct choice *c, size_t moved, bool dry)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_int(&j, "archived", dry ? 0 : (int64_t)moved);
		json_key_int(&j, "would_archive", dry ? (int64_t)moved : 0);
		json_key_int(&j, "kept_unread", (int64_t)c->unread);
		json_key_int(&j, "kept_pinned", (int64_t)c->pinned);
		out_json_line(cli, &j);
		return;
	}
	out_count(&cli->out, moved, "message");
	buf_adds(&cli->out, dry ? " would be archived" : " archived");
	if (c->unread > 0)
		buf_addf(&cli->out, ", %zu unread kept", c->unread);
	if (c->pinned > 0)
		buf_addf(&cli->out, ", %zu pinned kept", c->pinned);
	buf_addc(&cli->out, '\n');
}

int
cmd_archive(struct cli *cli)
{
	const struct archive_options *o = cli->opts;
	struct choice c = { .base = { .cli = cli }, .include_unread = o->include_unread };
	struct mr_error err = { 0 };
	bool dry = cli->dry_run;
	size_t moved = 0;

	if (cli->argc == 0 && o->older_than_ms < 0 && !o->all_read)
		return cli_usage(cli, "archive what? give ids, --older-than or --all-read");
	if (cli->argc > 0 && (o->older_than_ms >= 0 || o->all_read))
		return cli_usage(cli, "give ids, or --older-than and --all-read, not both");
	if (mr_room_folders(cli->room, MR_ARCHIVE, &err) != MR_OK)
		return cli_fail(cli, &err);
	int code = choose(cli, &c);
	for (size_t i = 0; i < c.ids.n; i++) {
		enum mr_rc rc = dry ? MR_OK : mr_archive(cli->room, &cli->self, c.ids.v[i], &err);
		if (rc == MR_OK)
			moved++;
		else if (cli->argc > 0 ||
			 (rc != MR_NOTFOUND && rc != MR_BUSY)) /* moved or taken by another meanwhile */
			code = cli_fail(cli, &err);
	}
	if (mr_flush(cli->room, &err) != MR_OK)
		code = cli_fail(cli, &err);
	report(cli, &c, moved, dry);
	mr_names_done(&c.ids);
	return code;
}
