/* SPDX-License-Identifier: MIT */
/*
 * channel_read.c - mailroom channel read: the posts of a channel from somewhere on, and what comes.
 *
 * Each post is one piece of text: shown whole or not at all, so that the last number shown is a cursor that
 * neither skips nor repeats. What does not fit the budget ends the reading, and the rest is only counted. Whoever
 * follows gets a new budget with every batch; one that does not fit ends the following, too.
 */
#include "cli/channel_read.h"

#include "base/clock.h"
#include "base/id.h"
#include "helptext.h"
#include <poll.h>

#define STUCK_PAUSE_FIRST_MS 50
#define STUCK_PAUSE_MAX_MS 2000

struct reading {
	struct cli *cli;
	uint64_t after;   /* last number seen */
	int64_t since_ms; /* posts from before are passed over */
	const char *id;   /* only while looking for it: the end of an id */
	uint64_t found;   /* its number */
	size_t matches;
	int64_t limit;       /* 0: none */
	int64_t shown, left; /* left out by the budget */
	uint64_t *numbers;   /* only while counting */
	size_t n, cap;
	bool failed;
};

/* ---- Where to begin ---- */

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

static int
begin_after_id(struct reading *r, const char *name, const char *id)
{
	struct mr_error err = { 0 };

	r->id = id;
	enum mr_rc rc = mr_channel_read(r->cli->room, name, 0, false, match_id, r, &err);

	if (rc != MR_OK && rc != MR_CORRUPT)
		return cli_fail(r->cli, &err);
	if (r->matches == 1) {
		r->after = r->found;
		return EXIT_DONE;
	}
	if (r->matches > 1)
		return cli_usage(r->cli, "several posts end in '%s': give more of the id, or the number", id);
	(void)mr_fail(&err, MR_NOTFOUND, "'%s' is no number, time or post of '%s'", id, name);
	(void)mr_hint(&err, "a post that the channel no longer keeps cannot be found; mailroom channel read %s", name);
	return cli_fail(r->cli, &err);
}

/* A number, a time, or an id: digits alone are a number. */
static int
read_since(struct reading *r, const char *name, const char *since)
{
	struct mr_error ignored = { 0 };
	uint64_t number = 0;

	if (!since)
		return EXIT_DONE;
	if (strlen(since) < MR_ID_LEN - 1 && str_to_u64(str_of(since), &number)) {
		r->after = number;
		return EXIT_DONE;
	}
	if (strlen(since) != MR_ID_LEN && mr_time_parse(since, &r->since_ms, &ignored) == MR_OK)
		return EXIT_DONE;
	if (strlen(since) < 6)
		return cli_usage(r->cli, "option '--since' needs a number, a time or an id, not '%s'", since);
	return begin_after_id(r, name, since);
}

static bool
note_number(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct reading *r = ctx;

	(void)msg;
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 256;
		uint64_t *grown = reallocarray(r->numbers, cap, sizeof(*grown));

		if (!grown) {
			r->failed = true;
			return false;
		}
		r->numbers = grown;
		r->cap = cap;
	}
	r->numbers[r->n++] = number;
	return true;
}

/* Without --since the newest are meant: the number before them is where to begin. */
static enum mr_rc
begin_at_newest(struct reading *r, const char *name, struct mr_error *err)
{
	enum mr_rc rc = mr_channel_read(r->cli->room, name, 0, false, note_number, r, err);

	if (rc == MR_OK && r->failed)
		rc = mr_nomem(err);
	if ((rc == MR_OK || rc == MR_CORRUPT) && (int64_t)r->n > r->limit)
		r->after = r->numbers[(int64_t)r->n - r->limit - 1];
	free(r->numbers);
	r->numbers = NULL;
	return rc == MR_CORRUPT ? MR_OK : rc;
}

/* ---- Showing ---- */

static void
print_json(struct cli *cli, uint64_t number, const struct mr_message *msg)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_int(&j, "number", (int64_t)number);
	json_message_keys(&j, msg, cli->room, true);
	out_json_line(cli, &j);
}

static bool
print_text(struct cli *cli, uint64_t number, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf piece = BUF_INIT;

	text_post(cli, &piece, number, msg);
	if (!buf_ok(&piece)) {
		cli->out.failed = true; /* cli_flush says so */
		return false;
	}
	return budget_add(cli, buf_str(&piece));
}

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
	if (cli->json)
		print_json(cli, number, msg);
	else if (!print_text(cli, number, msg)) {
		r->left++;
		return !cli->out.failed && (r->limit == 0 || r->shown + r->left < r->limit);
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
show_batch(struct reading *r, const char *name, bool *ret_more, struct mr_error *err)
{
	struct cli *cli = r->cli;
	char how[160];
	enum mr_rc rc = mr_channel_read(cli->room, name, r->after, true, show_post, r, err);

	if (!cli->json) {
		(void)snprintf(
		    how, sizeof(how), "mailroom channel read %s --since %llu", name, (unsigned long long)r->after);
		budget_end(cli, "post", how);
	}
	if (!cli_flush(cli))
		r->failed = true;
	*ret_more = !r->failed && !cli->budget.full && (r->limit == 0 || r->shown < r->limit);
	return rc;
}

/* A post that was purged or cannot be read keeps its number and is never shown: then the channel says that
 * there is more, and reading gets nothing. Looking again must not become a busy loop. */
static void
pause_if_stuck(uint64_t before, uint64_t after, int *pause_ms)
{
	if (after != before) {
		*pause_ms = STUCK_PAUSE_FIRST_MS;
		return;
	}
	(void)poll(NULL, 0, *pause_ms);
	*pause_ms = 2 * *pause_ms < STUCK_PAUSE_MAX_MS ? 2 * *pause_ms : STUCK_PAUSE_MAX_MS;
}

static int
follow(struct reading *r, const char *name, int64_t timeout_ms)
{
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;
	struct mr_error err = { 0 };
	bool more = true, told = false;
	int pause_ms = STUCK_PAUSE_FIRST_MS;

	for (bool first = true;; first = false) {
		uint64_t before = r->after;

		budget_begin(r->cli);
		enum mr_rc rc = show_batch(r, name, &more, &err);

		if (r->failed)
			return EXIT_FAILED;
		if (rc == MR_CORRUPT && !told) /* passed over: the others go on */
			cli_warn(r->cli, "%s", err.message);
		told = rc == MR_CORRUPT;
		if (rc != MR_OK && rc != MR_CORRUPT)
			return cli_fail(r->cli, &err);
		if (!first)
			pause_if_stuck(before, r->after, &pause_ms);
		int64_t rest_ms = timeout_ms < 0 ? -1 : deadline_ms - clock_boot_ms();

		if (!more || (timeout_ms >= 0 && rest_ms <= 0))
			return EXIT_DONE;
		rc = mr_channel_wait(r->cli->room, name, r->after, rest_ms, &err);
		if (rc == MR_EMPTY)
			return EXIT_DONE;
		if (rc != MR_OK)
			return cli_fail(r->cli, &err);
	}
}

static bool
note_last(void *ctx, uint64_t number, const struct mr_message *msg)
{
	(void)msg;
	*(uint64_t *)ctx = number;
	return true;
}

/* A cursor from beyond the end is a mistake that "nothing new" would hide for ever. */
static void
say_nothing(struct reading *r, const char *name, bool since)
{
	struct mr_error ignored = { 0 };
	struct buf *out = &r->cli->out;
	uint64_t last = 0;

	if (since && r->after > 0)
		(void)mr_channel_read(r->cli->room, name, 0, false, note_last, &last, &ignored);
	if (last > 0 && last < r->after)
		buf_addf(out, "nothing after %llu in %s: the last post is %llu\n", (unsigned long long)r->after, name,
		    (unsigned long long)last);
	else
		buf_addf(out, "nothing %s in %s\n", since ? "new" : "posted", name);
}

int
channel_read(struct cli *cli)
{
	const struct channel_options *o = cli->opts;
	struct reading r = { .cli = cli, .limit = o->limit };
	struct mr_error err = { 0 };
	const char *name = cli->argv[0], *since = o->since;
	bool more;

	budget_begin(cli);
	name = strncmp(name, "channel:", 8) == 0 ? name + 8 : name;
	int code = read_since(&r, name, since);

	if (code != EXIT_DONE)
		return code;
	if (o->follow)
		return follow(&r, name, o->timeout_ms);
	if (r.limit > 0 && !since && begin_at_newest(&r, name, &err) != MR_OK)
		return cli_fail(cli, &err);
	enum mr_rc rc = show_batch(&r, name, &more, &err);

	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (r.failed)
		return EXIT_FAILED;
	if (r.shown == 0 && !cli->json && !cli->budget.full)
		say_nothing(&r, name, since != NULL);
	return EXIT_DONE;
}
