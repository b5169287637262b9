/* SPDX-License-Identifier: MIT */
/*
 * cmd_who.c - the agents of a room and the state of their mailboxes: who, stats, and bare `mailroom`.
 *
 * Bare `mailroom` is what an agent types first, so it works without an identity; a person on a terminal sees what needs
 * attention before all else.
 */
#include "cli/printout.h"
#include "helptext.h"

#define NAMES_SHOWN 12   /* of live agents, and of unknown ones */
#define PROBLEMS_SHOWN 6 /* by bare mailroom */
#define WHO_SHOWN 200    /* by who: more lines than that nobody reads, and an agent pays for each */

/* ---- The agents, sorted by name ---- */

struct entry {
	struct mr_agent agent;
	struct mr_counts counts;
	const char *state; /* "live", "gone", "never" before the first life, "unknown", also in a room without lives */
};
struct roster {               /* finish with roster_done */
	struct mr_agents all; /* what the strings of most entries belong to */
	struct entry *v;
	size_t n, cap;
	size_t closed; /* their mail is not for us to count */
	struct cli *cli;
};

static void
roster_done(struct roster *r)
{
	for (size_t i = 0; i < r->n; i++)
		mr_agent_done(&r->v[i].agent);
	free(r->v);
	mr_list_done(&r->all);
}

static enum mr_rc
load_counts(struct roster *r, struct entry *e, struct mr_error *err)
{
	enum mr_rc rc = mr_count(r->cli->room, e->agent.name, &e->counts, err);
	bool closed = rc == MR_REFUSED && e->agent.others; /* a guarded room */

	r->closed += closed;
	/* Not found: it was pruned while we looked. */
	return mr_unless(rc, closed ? MR_REFUSED : MR_NOTFOUND, err);
}

/* Its strings belong to the entry from now on. */
static enum mr_rc
add_entry(struct roster *r, struct mr_agent *agent, struct mr_error *err)
{
	static const char *const words[] = { [MR_GONE] = "gone", [MR_UNKNOWN] = "unknown", [MR_LIVE] = "live" };

	TRY(mr_got(array_grow(&r->v, r->n, &r->cap, sizeof(*r->v)), err));
	struct entry *e = &r->v[r->n++];

	*e = (struct entry){ .agent = *agent };
	*agent = (struct mr_agent){ 0 };
	e->state = !mr_room_has(r->cli->room, MR_HAS_LIVES) ? "unknown"
		   : e->agent.life == 0                     ? "never"
							    : words[mr_agent_presence(&e->agent)];
	return MR_OK;
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->agent.name, y->agent.name);
}

/* All agents, or those that the operands reach. */
static enum mr_rc
roster_load(struct cli *cli, struct roster *r)
{
	size_t kept = 0;

	r->cli = cli;
	if (cli->argc == 0)
		TRY(mr_agent_list(cli->room, &r->all, &cli->err));
	for (size_t i = 0; i < r->all.n; i++)
		TRY(add_entry(r, &r->all.v[i], &cli->err));
	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_resolution_done) struct mr_resolution reach = { 0 };

		TRY(mr_resolve(cli->room, "", cli->argv[i], &reach, &cli->err));
		for (size_t j = 0; j < reach.targets.n; j++) {
			mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
			enum mr_rc rc = mr_agent_get(cli->room, reach.targets.v[j], &agent, &cli->err);

			if (rc == MR_OK)
				TRY(add_entry(r, &agent, &cli->err));
			else if (rc != MR_NOTFOUND && rc != MR_REFUSED) /* pruned meanwhile, or a queue */
				return rc;
		}
	}
	if (r->n > 1)
		qsort(r->v, r->n, sizeof(*r->v), by_name);
	for (size_t i = 0; i < r->n; i++) /* reached by two addresses */
		if (kept == 0 || strcmp(r->v[kept - 1].agent.name, r->v[i].agent.name) != 0)
			r->v[kept++] = r->v[i];
		else
			mr_agent_done(&r->v[i].agent);
	r->n = kept;
	return MR_OK;
}

static void
tell_closed(struct cli *cli, const struct roster *r)
{
	if (r->closed > 0)
		cli_warn(cli, "the mail of %zu of these agents is closed to this login, and not counted", r->closed);
}

/* ---- who ---- */

static void
list_agent(struct listing *list, const struct entry *e, enum mr_trust trust)
{
	mr_auto(buf_done) struct buf place = BUF_INIT, name = BUF_INIT;
	const struct mr_agent *a = &e->agent;

	fence_name(&place, a->worktree[0] ? a->worktree : "-");
	if (a->role[0])
		fence_addf(&place, "  ('%s')", a->role);
	text_name(list->cli, &name, a->name);
	list_row(list, col_fenced("NAME", &name), kv_str("name", a->name), col("STATE", kv_str("state", e->state)),
	    col("LIFE", kv_int("life", a->life)), col("UNREAD", kv_size("unread", e->counts.unread)),
	    kv_size("urgent", e->counts.urgent), kv_size("held", e->counts.held),
	    col("OLDEST", kv_time("oldest_unread", e->counts.oldest_unread_ms)), kv_time("created", a->created_ms),
	    kv_time("started", a->started_ms), col("SEEN", kv_time("seen", a->seen_ms)),
	    col("BY", kv_str("seen_by", mr_door_word(a->door))), col_fenced("WORKTREE", &place),
	    kv_str("worktree", a->worktree), kv_str("session", a->session), kv_str("host", a->host),
	    kv_int("pid", a->process.pid), kv_str("role", a->role), kv_str("room_trust", mr_trust_word(trust)));
}

int
cmd_who(struct cli *cli, const struct who_options *o)
{
	size_t most = o->limit > 0 ? (size_t)o->limit : cli->json ? SIZE_MAX : WHO_SHOWN;
	mr_auto(roster_done) struct roster roster = { 0 };
	mr_auto(list_done) struct listing list = { .cli = cli };
	int64_t since_ms;
	enum mr_trust trust = mr_room_trust(cli->room, &since_ms);
	size_t more = 0;

	TRY_CLI(roster_load(cli, &roster));
	for (size_t i = 0; i < roster.n; i++) {
		if (o->live && strcmp(roster.v[i].state, "live") != 0)
			continue;
		if (list.n >= most) {
			more++;
			continue;
		}
		TRY_CLI(load_counts(&roster, &roster.v[i], &cli->err));
		list_agent(&list, &roster.v[i], trust);
	}
	(void)list_end(&list, o->live ? "no agent here is known to be live; `mailroom who` shows all\n"
			      : mr_room_has(cli->room, MR_HAS_REGISTRY) ? "nobody is here yet; mailroom register NAME\n"
									: "nobody is here yet\n");
	if (!cli->json && more > 0)
		buf_addf(&cli->out, "and %zu more: raise --limit, or name some, as in 'mailroom who rig/*'\n", more);
	if (!cli->json && list.n > 0) {
		buf_adds(&cli->out, trust >= MR_TRUST_VARIABLE ? "the room is trusted by " : "the room is ");
		trust_text(&cli->out, trust, since_ms);
		buf_addc(&cli->out, '\n');
	}
	tell_closed(cli, &roster);
	return EXIT_DONE;
}

/* ---- stats ---- */

/* e NULL: the sum of all agents, the last line of the table. */
static void
list_counts(struct listing *list, const struct entry *e, const struct mr_counts *c)
{
	list_row(list, e ? col("NAME", kv_str("name", e->agent.name)) : col_str("NAME", "in all"),
	    e ? kv_str("state", e->state) : kv_none(), col("UNREAD", kv_size("unread", c->unread)),
	    col("URGENT", kv_size("urgent", c->urgent)), col("HELD", kv_size("held", c->held)),
	    col("READ", kv_size("read", c->seen)), col("OLDEST", kv_time("oldest_unread", c->oldest_unread_ms)));
}

static void
list_cost(void *ctx, const struct mr_cost *c)
{
	list_row(ctx, col("KEPT", kv_str("what", c->what)), col("FILES", kv_size("files", c->files)),
	    kv_size("bytes", c->bytes),
	    col("KIB", (struct cell){ .kind = CELL_INT, .number = (int64_t)(c->bytes + 1023) / 1024 }),
	    col("LIMIT", kv_opt("keep", c->keep)));
}

int
cmd_stats(struct cli *cli)
{
	mr_auto(roster_done) struct roster roster = { 0 };
	mr_auto(list_done) struct listing list = { .cli = cli, .form = LIST_ARRAY };
	mr_auto(list_done) struct listing sum = { .cli = cli, .form = LIST_ONE };
	mr_auto(list_done) struct listing costs = { .cli = cli, .form = LIST_ARRAY };
	struct mr_counts total = { 0 };
	size_t dead = 0;

	progress_begin(cli, cli->room);
	TRY_CLI(roster_load(cli, &roster));
	for (size_t i = 0; i < roster.n; i++)
		TRY_CLI(load_counts(&roster, &roster.v[i], &cli->err));
	/* A kind without dead letters has none. */
	TRY_CLI(mr_unless(mr_dead_each(cli->room, 0, NULL, NULL, &dead, &cli->err), MR_UNSUPPORTED, &cli->err));
	enum mr_rc rc = mr_costs(cli->room, list_cost, &costs, &cli->err);

	progress_clear(cli);
	tell_closed(cli, &roster);
	if (rc != MR_UNSUPPORTED)
		TRY_CLI(rc);
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
	list_counts(cli->json ? &sum : &list, NULL, &total);
	out_json(cli, kv_str("room", mr_room_name(cli->room)), kv_json("agents", list_json(&list)),
	    kv_json("total", list_json(&sum)), kv_size("dead_letters", dead),
	    rc == MR_OK ? kv_json("disk", list_json(&costs)) : kv_none());
	(void)list_end(&list, "");
	if (!cli->json && mr_room_folders(cli->room, MR_DEAD, &cli->err) == MR_OK)
		buf_addf(&cli->out, "%s\n", counted(dead, "dead letter").text);
	(void)list_end(&costs, "");
	return EXIT_DONE;
}

/* ---- Bare mailroom ---- */

static void
add_problem(struct mr_names *problems, struct buf *text)
{
	(void)names_add(problems, buf_str(text)); /* out of memory: one line fewer */
	buf_clear(text);
}

/* What `mailroom top` lists, a line each, and what a power cut may do. */
static enum mr_rc
find_problems(struct cli *cli, struct mr_names *problems)
{
	mr_auto(mr_attention_done) struct mr_attention a = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_storage storage = { 0 };

	TRY(mr_attention(cli->room, &(struct mr_attention_options){ .limit = PROBLEMS_SHOWN }, &a, &cli->err));
	for (size_t i = 0; i < a.n && i < PROBLEMS_SHOWN; i++) {
		const struct mr_need *n = &a.needs[i];

		buf_addf(&text, "%s %s: %s%s%s", mr_need_word(n->kind), need_about(n), n->subject,
		    *n->subject ? ": " : "", n->why);
		add_problem(problems, &text);
	}
	if (a.more + a.n > PROBLEMS_SHOWN) {
		buf_addf(&text, "and %zu more: mailroom top", a.more + a.n - PROBLEMS_SHOWN);
		add_problem(problems, &text);
	}
	if (mr_room_storage(cli->room, &storage, IGNORED) == MR_OK && !storage.power_safe) {
		buf_addf(&text, "a power cut can lose mail here (%s): %s", storage.file_system, storage.reason);
		add_problem(problems, &text);
	}
	return MR_OK;
}

static void
names_in_state(const struct roster *roster, const char *state, struct mr_names *ret)
{
	for (size_t i = 0; i < roster->n; i++)
		if (strcmp(roster->v[i].state, state) == 0)
			(void)names_add(ret, str_of(roster->v[i].agent.name));
}

static void
print_self(struct cli *cli, const struct mr_counts *mine, const struct mr_error *nobody)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct buf *out = &cli->out;

	out_styled(cli, out, STYLE_DIM, "you   ");
	if (!cli->self_known) {
		fence_addf(out, "%.4096s\n      %.4096s\n", nobody->message,
		    nobody->hint[0] ? nobody->hint : "mailroom register NAME");
		return;
	}
	text_name(cli, &name, cli->self.agent);
	out_colored(cli, out, STYLE_BOLD, buf_str(&name));
	if (mr_room_has(cli->room, MR_HAS_LIVES))
		buf_addf(out, ", life %u", cli->self.life);
	fence_addf(out, " (%.4096s)\n", cli->self.how);
	out_styled(cli, out, STYLE_DIM, "mail  ");
	buf_addf(out, "%zu unread", mine->unread);
	if (mine->urgent > 0)
		buf_addf(out, ", %zu of it urgent", mine->urgent);
	if (mine->held > 0)
		buf_addf(out, ", %zu in your hands", mine->held);
	buf_addc(out, '\n');
}

static void
print_names(struct cli *cli, const char *state, const struct mr_names *names)
{
	struct buf *out = &cli->out;

	if (names->n > 0)
		buf_addf(out, "      %s: ", state);
	text_names(cli, out, names, NAMES_SHOWN);
	if (names->n > NAMES_SHOWN)
		buf_addf(out, " and %zu more", names->n - NAMES_SHOWN);
	buf_adds(out, names->n > 0 ? "\n" : "");
}

int
cmd_status(struct cli *cli)
{
	static const char *const first[][2] = {
		{ "mailroom register NAME", "become an agent here" },
		{ "mailroom send NAME -s SUBJECT <<'EOF'", "send the lines up to EOF" },
		{ "mailroom inbox", "look at your mail" },
		{ "mailroom read ID", "read a message" },
		{ "mailroom reply ID <<'EOF'", "answer it" },
		{ "mailroom wait", "wait for mail" },
	};
	mr_auto(roster_done) struct roster roster = { 0 };
	mr_auto(mr_names_done) struct mr_names problems = { 0 }, live = { 0 }, unknown = { 0 }, gone = { 0 };
	struct mr_counts mine = { 0 };
	struct mr_error nobody = { 0 }; /* why there is no identity, and the line to type */
	struct buf *out = &cli->out;
	bool all = cli->out_tty || cli->json; /* looks into mailboxes; not at each command of an agent */

	if (cli_know_self(cli, &nobody) == MR_OK) {
		enum mr_rc rc = mr_count(cli->room, cli->self.agent, &mine, &cli->err);

		if (rc != MR_NOTFOUND) /* else a name in a variable that has no mailbox here yet */
			TRY_CLI(rc);
		if (rc == MR_OK) /* held is mail of the agent itself and work of queues */
			TRY_CLI(mr_queue_held(cli->room, cli->self.agent, NULL, printout_count, &mine.held, &cli->err));
	}
	TRY_CLI(roster_load(cli, &roster));
	if (all)
		TRY_CLI(find_problems(cli, &problems));
	names_in_state(&roster, "live", &live);
	names_in_state(&roster, "unknown", &unknown);
	names_in_state(&roster, "gone", &gone);
	if (out_json(cli, kv_str("agent", cli->self_known ? cli->self.agent : NULL), kv_int("life", cli->self.life),
		kv_str("how", cli->self_known ? cli->self.how : nobody.message),
		kv_str("hint", cli->self_known ? NULL : nobody.hint), kv_str("room", mr_room_name(cli->room)),
		kv_str("spec", mr_room_spec(cli->room)), kv_str("why", cli->place.why), kv_size("unread", mine.unread),
		kv_size("urgent", mine.urgent), kv_size("held", mine.held), kv_names("live", &live),
		kv_names("unknown", &unknown), kv_names("gone", &gone), kv_names("problems", &problems)))
		return EXIT_DONE;
	for (size_t i = 0; i < problems.n; i++) {
		out_styled(cli, out, STYLE_RED, "! ");
		fence_addf(out, "%.4096s\n", problems.v[i]);
	}
	print_self(cli, &mine, &nobody);
	out_styled(cli, out, STYLE_DIM, "room  ");
	out_styled(cli, out, STYLE_PLAIN, mr_room_name(cli->room));
	fence_addf(out, ": %.4096s (%.4096s)\n", mr_room_spec(cli->room), cli->place.why);
	print_names(cli, "live", &live);
	print_names(cli, "unknown", &unknown);
	if (cli->self_known) /* an agent that has a name has learnt them */
		return EXIT_DONE;
	buf_addc(&cli->out, '\n');
	for (size_t i = mr_room_has(cli->room, MR_HAS_REGISTRY) ? 0 : 1; i < sizeof(first) / sizeof(first[0]); i++)
		fence_addf(&cli->out, "  %-39s %s\n", first[i][0], first[i][1]);
	buf_adds(&cli->out, "  more: mailroom --help, mailroom describe\n");
	return EXIT_DONE;
}
