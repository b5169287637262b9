/* SPDX-License-Identifier: MIT */
/* cmd_link.c - links to other rooms: link NAME SPEC, link list, link name; unlink; and carry, which moves their mail.
 */
#include "base/format.h"
#include "helptext.h"

#include <poll.h>

#define POLL_FIRST_MS 100
#define POLL_MAX_MS 2000
#define NO_LINKS "there are no links; mailroom link NAME KIND:WHERE\n"

/* ---- link list ---- */

/* waiting NULL: not a row of the list. */
static void
list_link(struct listing *list, const struct mr_link *link, const size_t *waiting)
{
	mr_auto(buf_done) struct buf pairs = BUF_INIT;
	mr_auto(list_done) struct listing names = { .cli = list->cli, .form = LIST_ARRAY };
	bool allowed = waiting && mr_link_allowed(list->cli->room, link);

	for (size_t i = 0; i < link->names_n; i++) {
		mr_auto(buf_done) struct buf pair = BUF_INIT;

		buf_addf(&pair, "%s=%s", link->names[i].local, link->names[i].foreign);
		buf_adds(&pairs, i > 0 ? ", " : "");
		fence_name(&pairs, buf_z(&pair));
		list_row(&names, kv_str("local", link->names[i].local), kv_str("foreign", link->names[i].foreign));
	}
	buf_adds(&pairs, pairs.len > 0 ? "" : "-");
	list_row(list, col("NAME", kv_str("name", link->name)), col_name("ROOM", kv_str("room", link->room)),
	    kv_json("names", list->cli->json ? list_json(&names) : NULL), kv_opt("created_by", link->created_by),
	    kv_time("created", link->created_ms), waiting ? col("WAITING", kv_size("waiting", *waiting)) : kv_none(),
	    waiting ? kv_bool("allowed", allowed) : kv_none(), col_str("ALLOWED", allowed ? "yes" : "no"),
	    col_fenced("NAMES", &pairs));
}

/* ---- link, link name, unlink ---- */

static int
introduce(struct cli *cli, const char *link, const char *local, const char *foreign)
{
	const struct link_options *o = cli->opts;
	char made[MR_ADDRESS_MAX + 1];

	if (o->adopt)
		TRY_CLI(env_not_in_session(cli, "adopting a mailbox of another room", &cli->err));
	TRY_CLI(mr_link_introduce(cli->room, link, local, foreign, o->adopt, made, &cli->err));
	return out_answer(cli, CELLS(kv_str("name", link), kv_str("local", local), kv_str("foreign", made)),
	    "%s is known in %s as %s\n", local, link, made);
}

static int
run_create(struct cli *cli)
{
	const struct link_options *o = cli->opts;
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	const char *name = cli->argv[0];
	int code = EXIT_DONE;

	if (cli->argc != 2)
		return cli_usage(cli, "usage: mailroom link NAME KIND:WHERE");
	for (const char *const *pair = o->name; *pair; pair++)
		if (!strchr(*pair, '=') || (*pair)[0] == '=')
			return cli_usage(cli, "--name '%s' is not LOCAL=FOREIGN", *pair);
	TRY_CLI(env_not_in_session(cli, "linking rooms", &cli->err));
	enum mr_rc rc = cli_know_self(cli, &cli->err);

	if (rc == MR_NOTFOUND && !cli->as_option) /* a person who links rooms need not be an agent */
		rc = mr_self_named(cli->room, "operator", &cli->self, &cli->err);
	TRY_CLI(rc);
	TRY_CLI(cli_find_room(cli, cli->argv[1], true, &place, &cli->err));
	TRY_CLI(mr_link_create(cli->room, &cli->self, name, place.spec, o->make, &cli->err));
	cli->changed = true;
	if (cli->json) {
		TRY_CLI(mr_link_get(cli->room, name, &link, &cli->err));
		list_link(&(struct listing){ .cli = cli }, &link, NULL);
	} else {
		fence_addf(&cli->out, "linked %s to %s; write to AGENT@%s\n", name, place.spec, name);
	}
	for (const char *const *pair = o->name; *pair && code == EXIT_DONE; pair++) {
		const char *equals = strchr(*pair, '=');
		const char *local = arena_dup(&cli->own, (struct mr_str){ *pair, (size_t)(equals - *pair) });

		code = local ? introduce(cli, name, local, equals[1] ? equals + 1 : NULL) : EXIT_FAILED;
	}
	return code;
}

int
cmd_link(struct cli *cli, const struct link_options *)
{
	const char *word = cli->argc > 0 ? cli->argv[0] : "list"; /* looking costs nothing */
	mr_auto(list_done) struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_links links = { 0 };

	if (strcmp(word, "list") == 0) {
		cli->subword = "list";
		if (cli->argc > 1)
			return cli_usage(cli, "unexpected argument '%s'", cli->argv[1]);
		enum mr_rc rc = mr_link_list(cli->room, &links, &cli->err);

		for (size_t i = 0; i < links.n; i++) {
			const struct mr_link *link = &links.v[i];
			struct mr_queue_counts counts = { 0 };
			char queue[MR_NAME_MAX + 1];
			size_t waiting = 0;

			(void)snprintf(queue, sizeof(queue), "link-%.*s", MR_LINK_NAME_MAX, link->name);
			if (mr_queue_count(list.cli->room, queue, &counts, IGNORED) == MR_OK)
				waiting = counts.ready + counts.delayed + counts.claimed;
			list_link(&list, link, &waiting);
		}
		TRY_CLI(rc);
		return list_end(&list, NO_LINKS);
	}
	if (strcmp(word, "name") == 0) {
		cli->subword = "name";
		if (cli->argc < 3 || cli->argc > 4)
			return cli_usage(cli, "usage: mailroom link name LINK LOCAL [FOREIGN]");
		return introduce(cli, cli->argv[1], cli->argv[2], cli->argc == 4 ? cli->argv[3] : NULL);
	}
	cli->subword = "create";
	return run_create(cli);
}

int
cmd_unlink(struct cli *cli, const struct unlink_options *o)
{
	const char *name = cli->argv[0];
	size_t dead = 0;

	TRY_CLI(env_not_in_session(cli, "unlinking rooms", &cli->err));
	TRY_CLI(mr_link_remove(cli->room, name, o->force, &dead, &cli->err));
	if (out_json(cli, kv_str("name", name), kv_bool("unlinked", true), kv_size("dead", dead)))
		return EXIT_DONE;
	fence_addf(&cli->out, "unlinked %s", name);
	if (dead > 0)
		buf_addf(&cli->out, "; %s to dead letters", counted(dead, "message").text);
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

/* ---- carry: once, or until it is told to stop ---- */

struct round { /* all the links that are asked for, once */
	struct cli *cli;
	struct mr_names links;
	bool watch;
	size_t moved;             /* in this round */
	struct mr_names said;     /* troubles of the round before: said once, not every two seconds */
	struct mr_names said_now; /* ... of this one */
	int code;
};

static void
say_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	struct round *r = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	format_addf(&text, "link '%s': %s%s%s", link, err->message, err->hint[0] ? "; " : "", err->hint);
	(void)names_add(&r->said_now, buf_str(&text));
	if (!names_has(&r->said, buf_z(&text)))
		cli_warn(r->cli, "%s", buf_z(&text));
}

static void
report(struct round *r, const char *link, const struct mr_carried *done)
{
	struct buf *out = &r->cli->out;
	size_t moved = done->out + done->in + done->failed + done->vanished;

	r->moved += moved;
	if (r->watch && moved == 0)
		return;
	if (out_json(r->cli, kv_str("link", link), kv_size("out", done->out), kv_size("in", done->in),
		kv_size("waiting", done->waiting), kv_size("failed", done->failed),
		kv_size("vanished", done->vanished)))
		return;
	fence_name(out, link);
	buf_addf(out, ": %zu out, %zu in", done->out, done->in);
	if (done->waiting > 0)
		buf_addf(out, ", %zu waiting", done->waiting);
	if (done->failed > 0)
		buf_addf(out, ", %zu failed", done->failed);
	if (done->vanished > 0)
		buf_addf(out, ", %zu vanished unread", done->vanished);
	buf_addc(out, '\n');
}

/* False: the link did not work, and that was said. */
static bool
carry_one(struct round *r, const char *link, unsigned ways, struct mr_carried *ret)
{
	struct mr_carried done = { 0 };
	struct mr_error *err = &r->cli->err;
	enum mr_rc rc = mr_carry(r->cli->room, link, ways, say_trouble, r, &done, err);

	ret->out += done.out;
	ret->in += done.in;
	ret->waiting = done.waiting;
	ret->failed += done.failed;
	ret->vanished += done.vanished;
	if (rc != MR_OK && r->watch)
		say_trouble(r, link, err);
	else if (rc != MR_OK)
		r->code = cli_fail(r->cli, err);
	return rc == MR_OK;
}

/* Everything comes in first: mail from one link may go on by another. */
static enum mr_rc
carry_all(struct round *r, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_links links = { 0 };
	struct cli *cli = r->cli;

	r->moved = 0;
	mr_names_done(&r->links); /* as they are now: one may be made while we watch */
	for (int i = 0; i < cli->argc; i++)
		TRY(mr_got(names_add(&r->links, str_of(cli->argv[i])), err));
	if (cli->argc == 0)
		TRY(mr_link_list(cli->room, &links, err));
	for (size_t i = 0; i < links.n; i++)
		TRY(mr_got(names_add(&r->links, str_of(links.v[i].name)), err));
	size_t n = r->links.n;
	mr_auto(free_ptr) struct link_round {
		struct mr_carried done;
		bool works;
	} *rounds = calloc(n + 1, sizeof(*rounds));

	TRY(mr_got(rounds, err));
	for (size_t i = 0; i < n; i++)
		rounds[i].works = n == 1 || carry_one(r, r->links.v[i], MR_CARRY_IN, &rounds[i].done);
	for (size_t i = 0; i < n; i++) {
		struct mr_carried *done = &rounds[i].done;
		unsigned ways = n > 1 ? MR_CARRY_OUT : MR_CARRY_IN | MR_CARRY_OUT;

		if ((rounds[i].works && carry_one(r, r->links.v[i], ways, done)) ||
		    done->out + done->in + done->failed + done->vanished > 0)
			report(r, r->links.v[i], done);
	}
	mr_names_done(&r->said);
	r->said = r->said_now;
	r->said_now = (struct mr_names){ 0 };
	return MR_OK;
}

int
cmd_carry(struct cli *cli, const struct carry_options *o)
{
	struct round r = { .cli = cli, .watch = o->watch };
	int pause_ms = POLL_FIRST_MS;
	bool going = true;

	if (o->watch)
		stop_heed(0);
	while (going) {
		if (carry_all(&r, &cli->err) != MR_OK) {
			r.code = cli_fail(cli, &cli->err);
			break;
		}
		going = o->watch && cli_flush(cli) && !stop_asked(NULL);
		/* Soon after something moved, for that is when the next comes; at last every two seconds. */
		pause_ms = r.moved > 0 ? POLL_FIRST_MS : pause_ms * 2;
		if (pause_ms > POLL_MAX_MS)
			pause_ms = POLL_MAX_MS;
		if (going)
			(void)poll(NULL, 0, pause_ms);
		going = going && !stop_asked(NULL);
	}
	if (!o->watch && r.code == EXIT_DONE && !cli->json && r.links.n == 0)
		buf_adds(&cli->out, NO_LINKS);
	mr_names_done(&r.links);
	mr_names_done(&r.said);
	mr_names_done(&r.said_now);
	return r.code;
}
