/* SPDX-License-Identifier: MIT */
/*
 * cmd_complete.c - what may stand at the end of a command line. The shells' scripts know nothing of mailroom: they pass
 * the words, and get the candidates.
 *
 * Commands and options come from the table that --help is made of, and so does what an operand is: the words of the
 * synopsis ("show NAME | add NAME MEMBER...") say where a name of a group or an address stands. Names come from the
 * room, which is opened late and only looked at.
 *
 * A candidate ends up on a command line by a keypress, so names that a shell would have to quote are left out.
 */
#include "cli/gt/gt.h"
#include "cli/harness.h"

#define IDS_MOST 50

struct completion {
	struct cli *cli;
	const struct cmd *cmd; /* whose line it is; NULL: not yet typed */
	char **operands;       /* those typed before the word */
	size_t n;
	struct mr_str word; /* to be completed */
	struct mr_str lead; /* of the word: "--as=", which stays as it is */
	bool prefixed;      /* "queue:NAME", as it is written to */
};

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@+%"

static void
offer(struct completion *c, const char *before, struct mr_str text, const char *about)
{
	char name[MR_ADDRESS_MAX + 64];
	int n = snprintf(name, sizeof(name), "%s%.*s", before, (int)text.len, text.ptr);

	if (n <= 0 || n >= (int)sizeof(name) || strspn(name, PLAIN) != (size_t)n ||
	    strncmp(name, c->word.ptr, c->word.len) != 0)
		return;
	buf_add(&c->cli->out, c->lead);
	buf_adds(&c->cli->out, name);
	buf_addc(&c->cli->out, '\t');
	(void)fence_add(&c->cli->out, str_of(about), FENCE_LINE, 60);
	buf_addc(&c->cli->out, '\n');
}

/* ---- Names of the room ---- */

enum {                  /* what may be offered, beside enum names_kind */
	INBOX = 64,     /* ids of mail */
	HELD = 128,     /* ... of work */
	NAMES = 255,    /* all of those, which need a room */
	PREFIXED = 256, /* "queue:NAME", as it is written to */
	EVERYBODY = 512,
	COMMANDS = 1024,
	HARNESSES = 2048,
	FILES = 4096,
};
#define ADDRESSES ((unsigned)AGENTS | GROUPS | QUEUES | CHANNELS | PREFIXED | EVERYBODY)

static bool
offer_id(void *ctx, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf about = BUF_INIT;

	buf_addf(&about, "%s: %s", msg->from, msg->subject);
	offer(ctx, "", str_of(short_id(msg->id)), buf_z(&about));
	return true;
}

enum mr_rc
names_each(struct cli *cli, unsigned kinds, names_fn *fn, void *ctx)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(mr_list_done) struct mr_groups groups = { 0 };
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };
	mr_auto(mr_list_done) struct mr_channels channels = { 0 };
	mr_auto(mr_list_done) struct mr_links links = { 0 };
	mr_auto(mr_list_done) struct mr_types types = { 0 };
	struct mr_room *room = cli->room;
	struct mr_error *err = &cli->err;

	if (kinds & AGENTS)
		TRY(mr_unless(mr_agent_list(room, &agents, err), MR_UNSUPPORTED, err));
	if (kinds & GROUPS)
		TRY(mr_unless(mr_group_list(room, &groups, err), MR_UNSUPPORTED, err));
	if (kinds & QUEUES)
		TRY(mr_unless(mr_queue_list(room, &queues, err), MR_UNSUPPORTED, err));
	if (kinds & CHANNELS)
		TRY(mr_unless(mr_channel_list(room, &channels, err), MR_UNSUPPORTED, err));
	if (kinds & LINKS)
		TRY(mr_unless(mr_link_list(room, &links, err), MR_UNSUPPORTED, err));
	if (kinds & TYPES)
		TRY(mr_unless(mr_type_list(room, &types, NULL, NULL, err), MR_UNSUPPORTED, err));
	for (size_t i = 0; i < agents.n; i++)
		fn(ctx, AGENTS, agents.v[i].name, agents.v[i].role);
	for (size_t i = 0; i < queues.n; i++)
		fn(ctx, QUEUES, queues.v[i].name, "queue");
	for (size_t i = 0; i < groups.n; i++)
		fn(ctx, GROUPS, groups.v[i].name, "group");
	for (size_t i = 0; i < channels.n; i++)
		fn(ctx, CHANNELS, channels.v[i].name, "channel");
	for (size_t i = 0; i < links.n; i++)
		fn(ctx, LINKS, links.v[i].name, "link");
	for (size_t i = 0; i < types.n; i++)
		fn(ctx, TYPES, types.v[i].name, types.v[i].summary);
	return MR_OK;
}

static void
offer_name(void *ctx, enum names_kind kind, const char *name, const char *about)
{
	struct completion *c = ctx;
	bool prefixed = c->prefixed && (kind & (GROUPS | QUEUES | CHANNELS));
	char prefix[16];

	text_join(prefix, sizeof prefix, prefixed ? about : "", prefixed ? ":" : "", NULL);
	offer(c, prefix, str_of(name), about);
}

/* "read|unread|pinned" */
static void
words_of(struct completion *c, struct mr_str alternatives)
{
	struct mr_str word;

	while (str_cut(&alternatives, '|', &word)) {
		char again[64]; /* another alternative of the synopsis may begin with it, too */

		(void)snprintf(again, sizeof(again), "%.*s\t", (int)word.len, word.ptr);
		if (c->cli->out.len == 0 || !strstr(buf_z(&c->cli->out), again))
			offer(c, "", word, "");
	}
}

/* What stands where the synopsis, or the value of an option, has this word. NAME depends on the command. Where there is
 * no room, or none that may be looked at, there is nothing; what it says then is for nobody. */
static const struct source {
	const char *word, *command; /* NULL: of any command */
	unsigned what;
} sources[] = {
	{ "TO", NULL, ADDRESSES },
	{ "ADDRESS", NULL, ADDRESSES },
	{ "MEMBER", NULL, ADDRESSES },
	{ "AGENT", NULL, AGENTS },
	{ "ID", NULL, INBOX },
	{ "TOKEN|ID", NULL, HELD },
	{ "queue:NAME", NULL, (unsigned)QUEUES | PREFIXED },
	{ "TYPE", NULL, TYPES },
	{ "LINK", NULL, LINKS },
	{ "NAME", "group", GROUPS },
	{ "NAME", "queue", QUEUES },
	{ "NAME", "channel", CHANNELS },
	{ "NAME", "types", TYPES },
	{ "NAME", "unlink", LINKS },
	{ "NAME", "register", AGENTS },
	{ "NAME", "takeover", AGENTS },
	{ "NAME", "prune", AGENTS },
	{ "THREAD", NULL, INBOX },
	{ "COMMAND", "help", COMMANDS },
	{ "HARNESS", NULL, HARNESSES },
	{ "FILE", NULL, FILES },
	{ "DIR", NULL, FILES },
	{ "PATH", NULL, FILES },
	{ "ROOM", NULL, FILES },
	{ "SPEC", NULL, FILES },
};

static void
offer_all(struct completion *c, unsigned what)
{
	struct mr_scan scan = { .order = MR_NEWEST_FIRST, .limit = IDS_MOST };
	struct mr_self *self = &c->cli->self;

	c->prefixed = (what & PREFIXED) != 0;
	(void)names_each(c->cli, what & AGENTS, offer_name, c);
	if (what & EVERYBODY)
		offer(c, "", STR("@all"), "every agent but you and the operator");
	(void)names_each(c->cli, what & ~(unsigned)AGENTS, offer_name, c);
	/* The newest of the caller's mail, by the short ids that lists show. A look at the names of others is no sign
	 * of life: mr_self_seen is not called. */
	if ((what & (INBOX | HELD)) && mr_self_resolve(c->cli->room, &c->cli->env, self, IGNORED) == MR_OK) {
		scan.filter.folders = (what & INBOX ? MR_INBOX : 0U) | MR_HELD;
		(void)mr_scan(c->cli->room, self->agent, &scan, offer_id, c, IGNORED);
		(void)mr_queue_held(c->cli->room, self->agent, &scan.filter, offer_id, c, IGNORED);
	}
	if (what & FILES)
		buf_adds(&c->cli->out, ":files\n");
	for (size_t i = 0; (what & COMMANDS) && commands[i]; i++)
		if (!commands[i]->hidden)
			offer(c, "", str_of(commands[i]->name), commands[i]->help->summary);
	for (size_t i = 0; (what & HARNESSES) && i < harnesses_n; i++)
		offer(c, "", str_of(harnesses[i].name), harnesses[i].title);
}

static void
give(struct completion *c, struct mr_str word)
{
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const struct source *s = &sources[i];

		if (str_eq(word, str_of(s->word)) &&
		    (!s->command || (c->cmd && strcmp(s->command, c->cmd->name) == 0)) &&
		    (!(s->what & NAMES) || c->cli->room || cli_open_room(c->cli, IGNORED) == MR_OK)) {
			offer_all(c, s->what);
			return;
		}
	}
	if (word.len > 0 && word.ptr[0] >= 'a' && word.ptr[0] <= 'z')
		words_of(c, word);
}

/* ---- Operands: what the synopsis says ---- */

/* Offers what this alternative has behind the operands that were typed, if they fit it. */
static void
give_operand(struct completion *c, struct mr_str alternative)
{
	struct mr_str word = { 0 };
	bool many = false;

	for (size_t i = 0; i <= c->n; i++) {
		if (!many && !str_word(&alternative, " ", &word))
			return;
		if (str_ends(word, "...")) {
			many = true;
			word.len -= 3;
		}
		bool literal = word.len > 0 && word.ptr[0] >= 'a' && word.ptr[0] <= 'z' &&
			       !memchr(word.ptr, '|', word.len) && !memchr(word.ptr, ':', word.len);

		if (i < c->n && literal && !str_eq(word, str_of(c->operands[i])))
			return;
	}
	give(c, word);
}

/* gt's commands are of several words: the next one of each that begins with those typed. */
static void
gt_words(struct completion *c)
{
	struct mr_str last = { 0 };

	for (size_t i = 0; gt_commands[i]; i++) {
		struct mr_str rest = str_of(gt_commands[i]->name), word = { 0 };
		bool fits = str_word(&rest, " ", &word); /* "gt" */

		for (size_t k = 0; fits && k < c->n; k++)
			fits = str_word(&rest, " ", &word) && str_eq(word, str_of(c->operands[k]));
		if (!fits || !str_word(&rest, " ", &word) || str_eq(word, last))
			continue;
		offer(c, "", word, rest.len == 0 ? gt_commands[i]->help->summary : "");
		last = word;
	}
}

/* ---- The line ---- */

/* Reads the words before the last one. Returns the option whose value the last one is, or NULL. */
static const struct opt *
read_line(struct completion *c, int argc, char **argv)
{
	struct cli *cli = c->cli;
	struct cli line = { .cmd = &command_status, .completes = true, .own = cli->own }; /* it has no options */
	char **words = arena_alloc(&line.own, (size_t)argc * sizeof(*words)); /* words[0] is the name of the program */

	if (words) {
		memcpy(words + 1, argv, (size_t)(argc - 1) * sizeof(*words));
		(void)opt_parse(&line, argc, words);
	}
	if (line.argc > 0 && (c->cmd = command_named(line.argv[0]))) {
		line = (struct cli){ .cmd = c->cmd, .completes = true, .own = line.own };
		(void)opt_parse(&line, argc, words);
		c->operands = line.argv + 1;
		c->n = (size_t)line.argc - 1;
	}
	cli->own = line.own;
	if (line.room_option)
		cli->room_option = line.room_option;
	if (line.as_option)
		cli->as_option = line.as_option;
	return line.open;
}

int
cmd_complete(struct cli *cli)
{
	struct completion c = { .cli = cli };
	bool options = true;

	if (cli->argc == 0)
		return EXIT_DONE;
	char *last = cli->argv[cli->argc - 1];
	const char *equals = last[0] == '-' && last[1] == '-' ? strchr(last, '=') : NULL;

	const struct opt *open = read_line(&c, cli->argc, cli->argv);

	for (int i = 0; i + 1 < cli->argc; i++)
		options &= strcmp(cli->argv[i], "--") != 0;
	c.word = str_of(last);
	if (!open && options && equals) {
		open = opt_find(
		    &(struct cli){ .cmd = c.cmd }, (struct mr_str){ last + 2, (size_t)(equals - last) - 2 }, 0);
		c.word = str_of(equals + 1);
		c.lead = (struct mr_str){ last, (size_t)(equals - last) + 1 };
		if (!open || !open->value)
			return EXIT_DONE;
	}
	if (open) {
		struct mr_str value = str_of(open->value);

		if (str_ends(value, "..."))
			value.len -= 3;
		if (open->type == OPT_PRIORITY)
			words_of(&c, STR("urgent|high|normal|low"));
		else if (value.ptr[0] >= 'A' && value.ptr[0] <= 'Z')
			give(&c, value);
	} else if (options && last[0] == '-') {
		const struct opt *tables[] = { c.cmd ? c.cmd->help->opts : NULL, help_mailroom.opts };

		for (size_t t = 0; t < 2; t++)
			for (const struct opt *o = tables[t]; o && o->name; o++) {
				char name[64];

				(void)snprintf(name, sizeof(name), "--%s", o->name);
				if (!o->hidden)
					offer(&c, "", str_of(name), o->help ? o->help : "");
			}
	} else if (!c.cmd && cli->argc > 1 && cli->argv[0][0] != '-')
		return EXIT_DONE; /* behind a command that does not exist */
	else if (!c.cmd)
		offer_all(&c, COMMANDS);
	else if (c.cmd == &command_gt)
		gt_words(&c);
	else
		for (const char *const *o = c.cmd->help->operands; o && *o; o++)
			give_operand(&c, str_of(*o));
	return EXIT_DONE;
}
