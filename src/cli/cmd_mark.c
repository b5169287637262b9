/* SPDX-License-Identifier: MIT */
/* mailroom mark, archive, clear: what an agent does with mail in its inbox besides reading it. */
#include "printout.h"
#include "helptext.h"

/* ---- mark ---- */

static const struct word {
	const char *name;
	unsigned set, clear;
} words[] = {
	{ "read", MR_SEEN, 0 },
	{ "unread", 0, MR_SEEN },
	{ "pinned", MR_PINNED, 0 },
	{ "unpinned", 0, MR_PINNED },
	{ 0 },
};

struct choice {               /* of messages to mark or to archive */
	struct printout base; /* first: trouble is reported through it; `seen` are those chosen */
	const struct word *word;
	uint64_t place;        /* behind the last message so far */
	size_t met;            /* places of --at that there are */
	size_t unread, pinned; /* that are not archived */
};

static bool
collect(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;

	if ((msg->flags & c->word->set) != c->word->set || (msg->flags & c->word->clear) != 0)
		return names_add(&c->base.seen, str_of(msg->id));
	return true;
}

/* How often the place is in the lists of --at, "0,2,5"; ANY_PLACE counts all of them. *ret_bad: no such list. */
#define ANY_PLACE UINT64_MAX
static size_t
count_places(const struct mark_options *o, uint64_t place, const char **ret_bad)
{
	size_t n = 0;

	for (const char *const *at = o->at; *at; at++) {
		const char *p = *at;

		do {
			size_t len = strcspn(p, ",");
			uint64_t number = 0;

			if (!str_to_u64((struct mr_str){ p, len }, &number)) {
				*ret_bad = *at;
				return 0;
			}
			n += place == ANY_PLACE || place == number;
			p += len;
		} while (*p++ == ',');
	}
	return n;
}

static bool
collect_places(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;
	const char *bad;
	uint64_t place = msg->place > 0 ? msg->place - 1 : c->place;

	if (place >= c->place)
		c->place = place + 1;
	if (count_places(c->base.cli->opts, place, &bad) == 0)
		return true;
	c->met++;
	return collect(ctx, msg);
}

/* The ids to mark: the operands, or what --at or the filters find. */
static int
choose_marked(struct cli *cli, struct choice *c)
{
	const struct mark_options *o = cli->opts;
	struct mr_scan scan = {
		.order = MR_OLDEST_FIRST, .filter = filter_of(cli, &o->filter), .trouble = printout_trouble
	};
	const char *bad = NULL;
	size_t places = count_places(o, ANY_PLACE, &bad);

	for (int i = 1; i < cli->argc; i++)
		if (!names_add(&c->base.seen, str_of(cli->argv[i])))
			return EXIT_FAILED;
	if (cli->argc > 1)
		return EXIT_DONE;
	if (bad)
		return cli_usage(cli, "option '--at': '%s' is not a list of places such as 0 or 0,2,5", bad);
	scan.filter.no_control = !o->filter.type && !o->at[0]; /* nobody has seen those: they wait for a patrol */
	TRY_CLI(mr_scan(cli->room, cli->self.agent, &scan, o->at[0] ? collect_places : collect, c, &cli->err));
	if (o->at[0] && c->met == 0) {
		(void)mr_fail(
		    &cli->err, MR_NOTFOUND, "the inbox of '%s' has no message at that place", cli->self.agent);
		if (c->place > 0)
			(void)mr_hint(&cli->err, "the last one is at %zu", (size_t)c->place - 1);
		return cli_fail(cli, &cli->err);
	}
	if (c->met < places)
		cli_warn(cli, "some of these places have no message, or were named twice");
	return EXIT_DONE;
}

int
cmd_mark(struct cli *cli, const struct mark_options *o)
{
	struct choice c = { .base = { .cli = cli }, .word = words };
	bool chosen = o->all || filter_is_given(&o->filter), placed = o->at[0] != NULL;
	size_t done = 0;

	while (c.word->name && strcmp(c.word->name, cli->argv[0]) != 0)
		c.word++;
	if (!c.word->name)
		return cli_usage(cli, "'%s' is not one of read, unread, pinned, unpinned", cli->argv[0]);
	if (cli->argc == 1 && !chosen && !placed)
		return cli_usage(cli, "nothing is named to mark: give ids, --at, --all, or a filter");
	if ((cli->argc > 1) + chosen + placed > 1)
		return cli_usage(cli, "give only one of: ids, --at, or --all with filters");
	int code = choose_marked(cli, &c);
	bool marks = code == EXIT_DONE;

	for (size_t i = 0; i < c.base.seen.n && marks; i++) {
		enum mr_rc rc = mr_mark(cli->room, &cli->self, c.base.seen.v[i], c.word->set, c.word->clear, &cli->err);

		if (rc == MR_OK)
			done++;
		else if (cli->argc > 1 ||
			 rc != MR_NOTFOUND) /* found by a filter, then moved by another: not ours to tell */
			code = cli_fail(cli, &cli->err);
	}
	mr_names_done(&c.base.seen);
	if (!marks)
		return code;
	TRY_CLI(mr_flush(cli->room, &cli->err)); /* where marks are written together, none was: no count */
	if (!out_json(cli, kv_str("mark", c.word->name), kv_size("changed", done)))
		buf_addf(&cli->out, "%s marked %s\n", counted(done, "message").text, c.word->name);
	return code;
}

/* ---- archive ---- */

static bool
consider(void *ctx, const struct mr_message *msg)
{
	struct choice *c = ctx;
	const struct archive_options *o = c->base.cli->opts;

	if (msg->flags & MR_PINNED)
		c->pinned++;
	else if (!(msg->flags & MR_SEEN) && !o->include_unread)
		c->unread++;
	else
		return names_add(&c->base.seen, str_of(msg->id));
	return true;
}

static int
choose_archived(struct cli *cli, struct choice *c)
{
	const struct archive_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble };
	int code = EXIT_DONE;

	/* An id that was named: the same rules, but staying is an error with the reason. */
	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		enum mr_rc rc = mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, &cli->err);

		if (rc == MR_OK && !consider(c, &msg))
			rc = mr_nomem(&cli->err);
		if (c->pinned > 0)
			rc = mr_fail(&cli->err, MR_REFUSED, "'%s' is pinned\nmailroom mark unpinned %s", msg.id,
			    short_id(msg.id));
		if (c->unread > 0)
			rc = mr_fail(
			    &cli->err, MR_REFUSED, "'%s' is unread\nread it first, or add --include-unread", msg.id);
		c->unread = c->pinned = 0;
		if (rc != MR_OK)
			code = cli_fail(cli, &cli->err);
	}
	if (cli->argc > 0)
		return code;
	scan.filter.before_ms = o->older_than_ms > 0 ? clock_now_ms() - o->older_than_ms : 0;
	TRY_CLI(mr_scan(cli->room, cli->self.agent, &scan, consider, c, &cli->err));
	return EXIT_DONE;
}

static int
pack(struct cli *cli)
{
	const struct archive_options *o = cli->opts;
	struct mr_packed done = { 0 };

	progress_begin(cli, cli->room);
	enum mr_rc rc = mr_pack(cli->room, &cli->self, o->pack ? o->pack : o->unpack, !o->pack, &done, &cli->err);

	progress_clear(cli);
	TRY_CLI(rc);
	if (!o->pack)
		return out_answer(cli, CELLS(kv_str("month", o->unpack), kv_size("unpacked", done.messages)),
		    "%s of %s unpacked\n", counted(done.messages, "message").text, o->unpack);
	if (out_json(cli, kv_str("month", o->pack), kv_size("packed", done.messages), kv_size("total", done.total),
		kv_size("kept", done.left), kv_size("bytes_before", (size_t)done.bytes_before),
		kv_size("bytes_after", (size_t)done.bytes_after)))
		return EXIT_DONE;
	fence_addf(
	    &cli->out, "%s of %s packed, %zu in the pack", counted(done.messages, "message").text, o->pack, done.total);
	if (done.messages > 0)
		fence_addf(&cli->out, "; %llu KiB of files became %llu KiB",
		    (unsigned long long)done.bytes_before / 1024, (unsigned long long)done.bytes_after / 1024);
	if (done.left > 0)
		fence_addf(&cli->out, "; %zu stay files (unread, pinned, or of another user)", done.left);
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

int
cmd_archive(struct cli *cli, const struct archive_options *o)
{
	struct choice c = { .base = { .cli = cli } };
	bool dry = cli->dry_run;
	size_t moved = 0;

	if (o->pack || o->unpack)
		return pack(cli);
	TRY_CLI(mr_room_folders(cli->room, MR_ARCHIVE, &cli->err));
	int code = choose_archived(cli, &c);

	for (size_t i = 0; i < c.base.seen.n; i++) {
		enum mr_rc rc = dry ? MR_OK : mr_archive(cli->room, &cli->self, c.base.seen.v[i], &cli->err);

		if (rc == MR_OK)
			moved++;
		else if (cli->argc > 0 ||
			 (rc != MR_NOTFOUND && rc != MR_BUSY)) /* moved or taken by another meanwhile */
			code = cli_fail(cli, &cli->err);
	}
	mr_names_done(&c.base.seen);
	if (mr_flush(cli->room, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err);
	if (out_json(cli, kv_size("archived", dry ? 0 : moved), kv_size("would_archive", dry ? moved : 0),
		kv_size("kept_unread", c.unread), kv_size("kept_pinned", c.pinned)))
		return code;
	buf_addf(&cli->out, "%s%s archived", counted(moved, "message").text, dry ? " would be" : "");
	if (c.unread > 0)
		buf_addf(&cli->out, ", %zu unread kept", c.unread);
	if (c.pinned > 0)
		buf_addf(&cli->out, ", %zu pinned kept", c.pinned);
	buf_addc(&cli->out, '\n');
	return code;
}

/* ---- clear: what the programs of some rooms do with an inbox ---- */

int
cmd_clear(struct cli *cli)
{
	size_t removed = 0;

	TRY_CLI(mr_clear(cli->room, &cli->self, &removed, &cli->err));
	return out_answer(cli, CELLS(kv_str("agent", cli->self.agent), kv_size("removed", removed)), "%s removed\n",
	    counted(removed, "message").text);
}
