/* SPDX-License-Identifier: MIT */
/*
 * mailroom channel: what is posted stays in the channel and goes to every subscriber.
 *
 * Reading: each post is one piece of text, shown whole or not at all, so that the last number shown is a cursor that
 * neither skips nor repeats. A post that does not fit the budget ends the reading, and the rest is only counted.
 * --follow gets a new budget with every batch; a post that does not fit ends that, too.
 */
#include "base/id.h"
#include "cli/draft.h"
#include "helptext.h"
#include <poll.h>

#define HOUR_MS ((int64_t)3600 * 1000)
#define STUCK_PAUSE_FIRST_MS 50
#define STUCK_PAUSE_MAX_MS 2000

int
cmd_channel_create(struct cli *cli, const struct channel_options *o)
{
	TRY_CLI(mr_channel_create(
	    cli->room, &cli->self, cli->argv[0], o->retain_count, o->retain_hours * HOUR_MS, &cli->err));
	return say_state(cli, "channel", "created");
}

/* ---- list, show, subscribers ---- */

static void
text_limits(struct buf *out, const struct mr_channel *c)
{
	if (c->retain_count > 0)
		buf_addf(out, "%lld posts", (long long)c->retain_count);
	if (c->retain_ms > 0)
		buf_addf(out, "%s%lld hours", c->retain_count > 0 ? ", " : "", (long long)(c->retain_ms / HOUR_MS));
	if (c->retain_count == 0 && c->retain_ms == 0)
		buf_adds(out, "everything");
}

/* last NULL: a row of the list. */
static bool
list_channel(struct listing *list, const struct mr_channel *c, const uint64_t *last, size_t posts)
{
	mr_auto(buf_done) struct buf limits = BUF_INIT;

	text_limits(&limits, c);
	return list_row(list, col("NAME", kv_str("name", c->name)),
	    col("STATUS", kv_str("status", c->closed ? "closed" : "active")), kv_int("retain_count", c->retain_count),
	    kv_int("retain_hours", c->retain_ms / HOUR_MS), kv_names("subscribers", &c->subscribers),
	    col("SUBSCRIBERS", kv_size(NULL, c->subscribers.n)), kv_str("created_by", c->created_by),
	    kv_time("created", c->created_ms), col_str("KEEPS", buf_z(&limits)),
	    last ? kv_size("posts", posts) : kv_none(), last ? kv_int("last", (int64_t)*last) : kv_none());
}

int
cmd_channel_list(struct cli *cli, const struct channel_options *)
{
	mr_auto(list_done) struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_channels channels = { 0 };
	enum mr_rc rc = mr_channel_list(cli->room, &channels, &cli->err);

	for (size_t i = 0; i < channels.n; i++)
		(void)list_channel(&list, &channels.v[i], NULL, 0);
	TRY_CLI(rc);
	return list_end(&list, "no channels; `mailroom channel create NAME` makes one\n");
}

int
cmd_channel_show(struct cli *cli, const struct channel_options *)
{
	mr_auto(mr_channel_done) struct mr_channel c = { 0 };
	uint64_t last = 0;
	size_t n = 0;

	TRY_CLI(mr_channel_get(cli->room, cli->argv[0], &c, &cli->err));
	TRY_CLI(mr_channel_count(cli->room, c.name, &last, &n, &cli->err));
	if (list_channel(&(struct listing){ .cli = cli, .form = LIST_JSON }, &c, &last, n))
		return EXIT_DONE;
	fence_addf(&cli->out, "channel:%s is %s\n  keeps ", c.name, c.closed ? "closed" : "active");
	text_limits(&cli->out, &c);
	buf_addf(&cli->out, "; %zu kept now, the last is number %llu\n", n, (unsigned long long)last);
	fence_addf(&cli->out, "  created by '%s', %s\n  %s\n", c.created_by, dated(c.created_ms).text,
	    counted(c.subscribers.n, "subscriber").text);
	out_names(&cli->out, "    ", &c.subscribers);
	return EXIT_DONE;
}

int
cmd_channel_subscribers(struct cli *cli, const struct channel_options *)
{
	mr_auto(mr_channel_done) struct mr_channel c = { 0 };

	TRY_CLI(mr_channel_get(cli->room, cli->argv[0], &c, &cli->err));
	if (out_json(cli, kv_str("name", c.name), kv_names("subscribers", &c.subscribers)))
		return EXIT_DONE;
	if (c.subscribers.n == 0)
		fence_addf(&cli->out, "nobody has subscribed to %s; mailroom channel subscribe %s\n", c.name, c.name);
	out_names(&cli->out, "", &c.subscribers);
	return EXIT_DONE;
}

/* ---- subscribe, close, delete, prune, post ---- */

int
cmd_channel_subscribe(struct cli *cli, const struct channel_options *)
{
	const char *who = cli->argc > 1 ? cli->argv[1] : cli->self.agent, *name = cli->argv[0];
	bool on = strcmp(cli->subword, "subscribe") == 0, changed = false;

	TRY_CLI(mr_channel_subscribe(cli->room, name, who, on, &changed, &cli->err));
	return out_answer(cli,
	    CELLS(kv_str("name", bare_name("channel", name)), kv_str("agent", who), kv_bool("subscribed", on),
		kv_bool("changed", changed)),
	    "%s %s %s\n", who, on ? "gets what is posted in" : "no longer gets what is posted in", name);
}

int
cmd_channel_close(struct cli *cli, const struct channel_options *o)
{
	TRY_CLI(mr_channel_close(cli->room, cli->argv[0], !o->open, &cli->err));
	return say_state(cli, "channel", o->open ? "opened" : "closed");
}

int
cmd_channel_delete(struct cli *cli, const struct channel_options *)
{
	TRY_CLI(mr_channel_delete(cli->room, cli->argv[0], &cli->err));
	return say_state(cli, "channel", "deleted");
}

int
cmd_channel_prune(struct cli *cli, const struct channel_options *o)
{
	mr_auto(mr_list_done) struct mr_channels all = { 0 };
	mr_auto(mr_channel_done) struct mr_channel one = { 0 };
	int code = EXIT_DONE;

	if (o->all == (cli->argc > 0))
		return cli_usage(cli, "name one channel, or give --all");
	if (o->all && mr_channel_list(cli->room, &all, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err); /* the channels that can be read are pruned all the same */
	else if (!o->all)
		TRY_CLI(mr_channel_get(cli->room, cli->argv[0], &one, &cli->err));
	for (size_t i = 0; i < (o->all ? all.n : 1); i++) {
		const char *name = o->all ? all.v[i].name : one.name;
		size_t removed = 0;
		enum mr_rc rc = mr_channel_prune(cli->room, name, true, &removed, &cli->err);

		if (rc == MR_NOTFOUND && o->all) /* deleted this very moment */
			continue;
		if (rc != MR_OK) {
			code = cli_fail(cli, &cli->err);
		} else if (!out_json(cli, kv_str("name", name), kv_size("removed", removed))) {
			fence_addf(&cli->out, "%s: %s removed\n", name, counted(removed, "post").text);
		}
	}
	if (o->all && all.n == 0 && !cli->json)
		buf_adds(&cli->out, "no channels\n");
	return code;
}

/* send channel:NAME, for those who look for it here. */
int
cmd_channel_post(struct cli *cli, const struct channel_options *o)
{
	static const char *const none[] = { NULL };
	mr_auto(buf_done) struct buf body = BUF_INIT, target = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct draft_options text = { .message = o->message, .attach = none, .header = none, .field = none };

	buf_addf(&target, "channel:%s", bare_name("channel", cli->argv[0]));
	struct mr_draft draft = { .to = (const char *[]){ buf_z(&target), NULL } };
	TRY_CODE(draft_read(cli, &text, o->subject, &draft, &body));
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &cli->err);

	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}

/* ---- read: where to begin ---- */

struct reading {
	struct cli *cli;
	const char *name; /* of the channel */
	uint64_t after;   /* last number seen */
	int64_t since_ms; /* posts from before are passed over */
	const char *id;   /* only while looking for it: the end of an id */
	uint64_t found;   /* its number */
	size_t matches;
	int64_t limit;       /* 0: none */
	int64_t shown, left; /* left out by the budget */
	bool failed;
};

static bool
match_id(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct reading *r = ctx;

	if (str_ends(str_of(msg->id), r->id)) {
		r->found = number;
		r->matches++;
	}
	return true;
}

/* A number, a time, or an id: digits alone are a number. */
static int
read_since(struct reading *r, const char *since)
{
	struct cli *cli = r->cli;
	uint64_t number = 0;

	if (!since)
		return EXIT_DONE;
	if (strlen(since) < MR_ID_LEN - 1 && str_to_u64(str_of(since), &number)) {
		r->after = number;
		return EXIT_DONE;
	}
	if (strlen(since) != MR_ID_LEN && mr_time_parse(since, &r->since_ms, IGNORED) == MR_OK)
		return EXIT_DONE;
	if (strlen(since) < 6)
		return cli_usage(cli, "option '--since' needs a number, a time or an id, not '%s'", since);
	r->id = since;
	enum mr_rc rc = mr_channel_read(cli->room, r->name, 0, false, match_id, r, &cli->err);

	if (rc != MR_OK && rc != MR_CORRUPT)
		return cli_fail(cli, &cli->err);
	if (r->matches > 1)
		return cli_usage(cli, "several posts end in '%s': give more of the id, or the number", since);
	if (r->matches == 0)
		TRY_CLI(mr_fail(&cli->err, MR_NOTFOUND,
		    "'%s' is not a number, a time or a post of '%s'\n"
		    "the channel may no longer keep that post; `mailroom channel read %s` shows what it has",
		    since, r->name, r->name));
	r->after = r->found;
	return EXIT_DONE;
}

/* ---- read: showing ---- */

static bool
show_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct reading *r = ctx;
	struct cli *cli = r->cli;

	if (id_time_ms(msg->id) < r->since_ms) {
		if (r->left == 0)
			r->after = number;
		return true;
	}
	if (cli->json) {
		out_json_message(cli, CELLS(kv_size("number", number)), msg, true, NULL);
	} else {
		mr_auto(buf_done) struct buf piece = BUF_INIT;

		text_message(cli, &piece, number, msg);
		cli->out.failed |= !buf_ok(&piece); /* cli_flush says so */
		if (cli->out.failed || !budget_add(cli, &piece)) {
			r->left++;
			return !cli->out.failed && (r->limit == 0 || r->shown + r->left < r->limit);
		}
	}
	r->after = number;
	r->shown++;
	/* A stream is of use while it runs: hand over as it comes. */
	if (cli->json && !cli_flush(cli)) {
		r->failed = true;
		return false;
	}
	return r->limit == 0 || r->shown < r->limit;
}

/* One batch. *ret_more: there may be more to come. */
static enum mr_rc
show_batch(struct reading *r, bool *ret_more, struct mr_error *err)
{
	struct cli *cli = r->cli;
	char how[160];
	enum mr_rc rc = mr_channel_read(cli->room, r->name, r->after, true, show_post, r, err);

	(void)snprintf(
	    how, sizeof(how), "mailroom channel read %s --since %llu", r->name, (unsigned long long)r->after);
	budget_end(cli, "post", how);
	if (!cli_flush(cli))
		r->failed = true;
	*ret_more = !r->failed && !cli->budget.full && (r->limit == 0 || r->shown < r->limit);
	return rc;
}

static int
follow(struct reading *r, int64_t timeout_ms)
{
	struct cli *cli = r->cli;
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;
	bool more = true, told = false;
	int pause_ms = STUCK_PAUSE_FIRST_MS;

	for (bool first = true;; first = false) {
		uint64_t before = r->after;

		budget_begin(cli);
		enum mr_rc rc = show_batch(r, &more, &cli->err);

		if (r->failed)
			return EXIT_FAILED;
		if (rc == MR_CORRUPT && !told) /* passed over: the others go on */
			cli_warn(cli, "%s", cli->err.message);
		told = rc == MR_CORRUPT;
		if (rc != MR_OK && rc != MR_CORRUPT)
			return cli_fail(cli, &cli->err);
		/* A post that was purged or cannot be read keeps its number and is never shown: then the channel says
		 * that there is more, and reading gets nothing. Looking again must not become a busy loop. */
		if (r->after != before) {
			pause_ms = STUCK_PAUSE_FIRST_MS;
		} else if (!first) {
			(void)poll(NULL, 0, pause_ms);
			pause_ms = 2 * pause_ms < STUCK_PAUSE_MAX_MS ? 2 * pause_ms : STUCK_PAUSE_MAX_MS;
		}
		int64_t rest_ms = timeout_ms < 0 ? -1 : deadline_ms - clock_boot_ms();

		if (!more || (timeout_ms >= 0 && rest_ms <= 0))
			return EXIT_DONE;
		rc = mr_channel_wait(cli->room, r->name, r->after, rest_ms, &cli->err);
		if (rc != MR_OK)
			return rc == MR_EMPTY ? EXIT_DONE : cli_fail(cli, &cli->err);
	}
}

struct newest { /* of a channel: posts that can be read, behind `after` */
	uint64_t after;
	size_t n, skip;
};

static bool
count_newest(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct newest *w = ctx;

	(void)msg;
	w->n++;
	if (w->skip > 0) {
		w->skip--;
		w->after = number;
	}
	return true;
}

int
cmd_channel_read(struct cli *cli, const struct channel_options *o)
{
	struct reading r = { .cli = cli, .name = bare_name("channel", cli->argv[0]), .limit = o->limit };
	uint64_t last = 0;
	size_t kept = 0;
	bool more;

	budget_begin(cli);
	TRY_CODE(read_since(&r, o->since));
	if (o->follow)
		return follow(&r, o->timeout_ms);
	TRY_CLI(mr_channel_count(cli->room, r.name, &last, &kept, &cli->err));
	if (r.limit > 0 && !o->since && kept > (size_t)r.limit) {
		/* Begins the reading before the newest `limit` posts. Numbers of purged posts are left out of the
		 * count. */
		struct newest w = { 0 };
		size_t limit = (size_t)r.limit;

		for (uint64_t span = limit; w.n < limit; span *= 2) {
			w = (struct newest){ .after = last > span ? last - span : 0 };
			TRY_CLI(mr_channel_read(cli->room, r.name, w.after, false, count_newest, &w, &cli->err));
			if (w.after == 0)
				break;
		}
		if (w.n > limit) {
			w = (struct newest){ .after = w.after, .skip = w.n - limit };
			TRY_CLI(mr_channel_read(cli->room, r.name, w.after, false, count_newest, &w, &cli->err));
		}
		r.after = w.after;
	}
	TRY_CLI(show_batch(&r, &more, &cli->err));
	if (r.failed)
		return EXIT_FAILED;
	if (r.shown > 0 || cli->json || cli->budget.full)
		return EXIT_DONE;
	/* A cursor from beyond the end is a mistake that "nothing new" would hide for ever. */
	if (o->since && last > 0 && last < r.after)
		buf_addf(&cli->out, "nothing after %llu in %s: the last post is %llu\n", (unsigned long long)r.after,
		    r.name, (unsigned long long)last);
	else
		buf_addf(&cli->out, "nothing %s in %s\n", o->since ? "new" : "posted", r.name);
	return EXIT_DONE;
}
