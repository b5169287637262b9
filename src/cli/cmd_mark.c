/* SPDX-License-Identifier: MIT */
/* mailroom mark */
#include "printout.h"
#include "helptext.h"

static const struct word {
	const char *name;
	unsigned set, clear;
} words[] = {
	{ "read", MR_SEEN, 0 },
	{ "unread", 0, MR_SEEN },
	{ "pinned", MR_PINNED, 0 },
	{ "unpinned", 0, MR_PINNED },
};

struct marking {
	struct printout base; /* first: trouble is reported through it */
	const struct word *word;
	struct mr_names ids;
	uint64_t place; /* behind the last message so far */
	size_t met;     /* places of --at that there are */
};

static const struct word *
word_named(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

static bool
collect(void *ctx, const struct mr_message *msg)
{
	struct marking *m = ctx;

	if ((msg->flags & m->word->set) != m->word->set || (msg->flags & m->word->clear) != 0)
		return names_add(&m->ids, str_of(msg->id));
	return true;
}

/* ---- By their places ---- */

/* The next number of a list with commas. False: the list is at its end, or *ret_ok is false. */
static bool
next_place(const char **list, uint64_t *ret, bool *ret_ok)
{
	size_t len = strcspn(*list, ",");
	bool more = len > 0;

	if (**list == '\0')
		return false;
	*ret_ok = more && str_to_u64((struct mr_str){ *list, len }, ret);
	*list += len;
	if (**list == ',' && *++*list == '\0') /* "1," */
		*ret_ok = false;
	return *ret_ok;
}

static bool
is_wanted(const struct cli *cli, uint64_t place)
{
	const struct mark_options *o = cli->opts;

	for (const char *const *at = o->at; *at; at++) {
		const char *list = *at;
		uint64_t n = 0;
		bool ok = true;

		while (next_place(&list, &n, &ok))
			if (n == place)
				return true;
	}
	return false;
}

static bool
collect_places(void *ctx, const struct mr_message *msg)
{
	struct marking *m = ctx;

	uint64_t place = msg->place > 0 ? msg->place - 1 : m->place;

	if (place >= m->place)
		m->place = place + 1;
	if (!is_wanted(m->base.cli, place))
		return true;
	m->met++;
	return collect(ctx, msg);
}

/* How many places --at names; 0 after a usage error. */
static size_t
count_places(struct cli *cli)
{
	const struct mark_options *o = cli->opts;
	size_t places = 0;

	for (const char *const *at = o->at; *at; at++) {
		const char *list = *at;
		uint64_t n = 0;
		bool ok = *list != '\0';

		while (ok && next_place(&list, &n, &ok))
			places++;
		if (!ok) {
			(void)cli_usage(cli, "option '--at': '%s' is no list of places, such as 0 or 0,2,5", *at);
			return 0;
		}
	}
	return places;
}

static int
choose_places(struct cli *cli, struct marking *m)
{
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble };
	struct mr_error err = { 0 };
	size_t places = count_places(cli);

	if (places == 0)
		return EXIT_USAGE;
	if (mr_scan(cli->room, cli->self.agent, &scan, collect_places, m, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (m->met == 0) {
		(void)mr_fail(&err, MR_NOTFOUND, "the inbox of '%s' has no message at that place", cli->self.agent);
		if (m->place > 0)
			(void)mr_hint(&err, "the last one is at %zu", (size_t)m->place - 1);
		return cli_fail(cli, &err);
	}
	if (m->met < places)
		cli_warn(cli, "some of these places have no message, or were named twice");
	return EXIT_DONE;
}

static bool
has_filter(const struct cli *cli)
{
	const struct mark_options *o = cli->opts;

	return filter_is_given(&o->filter);
}

/* The ids to mark: the operands, or what the filters find. Returns an exit code. */
static int
choose(struct cli *cli, struct marking *m)
{
	const struct mark_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble };
	struct mr_error err = { 0 };

	for (int i = 1; i < cli->argc; i++)
		if (!names_add(&m->ids, str_of(cli->argv[i])))
			return EXIT_FAILED;
	if (cli->argc > 1)
		return EXIT_DONE;
	if (o->at[0])
		return choose_places(cli, m);
	scan.filter = filter_of(cli, &o->filter);
	scan.filter.no_control = !o->filter.type; /* nobody has seen those: they wait for a patrol */
	if (mr_scan(cli->room, cli->self.agent, &scan, collect, m, &err) != MR_OK)
		return cli_fail(cli, &err);
	return EXIT_DONE;
}

static int
mark_all(struct cli *cli, struct marking *m)
{
	struct mr_error err = { 0 };
	size_t done = 0;
	int code = EXIT_DONE;

	for (size_t i = 0; i < m->ids.n; i++) {
		enum mr_rc rc = mr_mark(cli->room, &cli->self, m->ids.v[i], m->word->set, m->word->clear, &err);
		if (rc == MR_OK)
			done++;
		else if (cli->argc > 1 ||
			 rc != MR_NOTFOUND) /* found by a filter, then moved by another: not ours to tell */
			code = cli_fail(cli, &err);
	}
	if (mr_flush(cli->room, &err) != MR_OK) /* where marks are written together, none was: no count */
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_str(&j, "mark", m->word->name);
		json_key_int(&j, "changed", (int64_t)done);
		out_json_line(cli, &j);
	} else {
		out_count(&cli->out, done, "message");
		fence_addf(&cli->out, " marked %s\n", m->word->name);
	}
	return code;
}

int
cmd_mark(struct cli *cli)
{
	const struct mark_options *o = cli->opts;
	struct marking m = { .base = { .cli = cli }, .word = word_named(cli->argv[0]) };

	if (m.word == NULL)
		return cli_usage(cli, "mark as what? '%s' is none of read, unread, pinned, unpinned", cli->argv[0]);
	bool chosen = o->all || has_filter(cli), placed = o->at[0] != NULL;

	if (cli->argc == 1 && !chosen && !placed)
		return cli_usage(cli, "mark what? give ids, --at, --all, or a filter");
	if ((cli->argc > 1) + chosen + placed > 1)
		return cli_usage(cli, "give ids, or --at, or --all and filters: one of them");
	int code = choose(cli, &m);
	if (code == EXIT_DONE)
		code = mark_all(cli, &m);
	mr_names_done(&m.ids);
	return code;
}
