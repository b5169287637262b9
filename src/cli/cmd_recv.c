/* SPDX-License-Identifier: MIT */
/* mailroom recv: take work under a lease, of one's own mail or of a queue; 'done' finishes it, and the work of a dead
 * agent comes back. */
#include "cli/view.h"
#include "printout.h"

#include "base/clock.h"
#include "helptext.h"

#define DRAIN_SLICE_MS 1000
#define DEFAULT_LEASE_MS (10 * 60 * 1000)

/* The tokens stand in front of the fence, all of them: inside, mail could imitate one. */
static void
print_claim(struct cli *cli, const struct mr_claim *claim, const struct mr_message *msg, struct buf *tokens)
{
	char until[RFC3339_LEN + 1], of[24] = "";

	time_rfc3339(claim->deadline_ms, until);
	if (claim->attempts > 0)
		(void)snprintf(of, sizeof(of), " of %u", claim->attempts);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_message_keys(&j, msg, cli->room, true);
		if (claim->attempts > 0)
			json_key_int(&j, "attempts", claim->attempts);
		json_key_time(&j, "lease_until", claim->deadline_ms);
		out_json_line(cli, &j);
		return;
	}
	size_t before = tokens->len;
	fence_addf(tokens, "token %s for %s, attempt %u%s, yours until %s\n", claim->token, claim->id, claim->attempt,
	    of, until);
	cli->budget.used += (int64_t)(tokens->len - before);
	(void)budget_message(cli, msg, 0);
}

/* Puts back what nobody saw. */
static void
give_back(struct cli *cli, const struct mr_names *tokens)
{
	for (size_t i = 0; i < tokens->n; i++) {
		struct mr_error ignored = { 0 };
		char id[MR_ID_LEN + 1];
		(void)mr_claim_put_back(
		    cli->room, &cli->self, tokens->v[i], &(struct mr_release){ .unseen = true }, id, &ignored);
	}
}

struct request {
	const char *queue; /* NULL: one's own mail */
	struct mr_filter filter;
	int64_t lease_ms, limit;
	int64_t wait_ms; /* for the first */
	bool until_drained;
};

static enum mr_rc
take_own(struct cli *cli, const struct request *want, int64_t wait_ms, struct mr_claim *claim, struct mr_message *msg,
    struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + wait_ms;

	for (;;) {
		enum mr_rc rc = mr_recv(cli->room, &cli->self, &want->filter, want->lease_ms, claim, msg, err);
		int64_t rest_ms = deadline_ms - clock_boot_ms();

		if (rc != MR_EMPTY || wait_ms == 0 || rest_ms <= 0)
			return rc;
		*err = (struct mr_error){ 0 };
		rc = mr_wait(cli->room, cli->self.agent, &want->filter, rest_ms, err);
		if (rc != MR_OK)
			return rc;
	}
}

/* What may still come is asked for between short waits: the end of a claim rings no bell. */
static enum mr_rc
take_queued(struct cli *cli, const struct request *want, int64_t wait_ms, struct mr_claim *claim,
    struct mr_message *msg, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + wait_ms, slice_ms = want->until_drained ? 0 : wait_ms;
	const struct recv_options *o = cli->opts;
	bool bounded = !want->until_drained || o->wait_ms >= 0;

	for (;;) {
		*err = (struct mr_error){ 0 };
		enum mr_rc rc =
		    mr_queue_recv(cli->room, &cli->self, want->queue, want->lease_ms, slice_ms, claim, msg, err);
		const struct mr_queue_left *left = &claim->left;
		int64_t rest_ms = bounded ? deadline_ms - clock_boot_ms() : DRAIN_SLICE_MS;

		if (!want->until_drained || (rc != MR_EMPTY && rc != MR_BUSY) || rest_ms <= 0 ||
		    (rc == MR_EMPTY && left->ready + left->reserved + left->delayed + left->claimed == left->mine))
			return rc;
		slice_ms = rest_ms < DRAIN_SLICE_MS ? rest_ms : DRAIN_SLICE_MS;
	}
}

static void
add_left(struct buf *out, size_t n, const char *what)
{
	if (n > 0)
		buf_addf(out, "%s%zu %s %s", out->len > 0 ? ", " : "", n, n == 1 ? "is" : "are", what);
}

static void
say_left(struct cli *cli, const struct mr_error *err, const struct mr_queue_left *left)
{
	mr_auto(buf_done) struct buf rest = BUF_INIT;

	add_left(&rest, left->ready, "ready");
	add_left(&rest, left->claimed - left->mine, "claimed by others and may come back");
	add_left(&rest, left->mine, "in your hands");
	add_left(&rest, left->reserved, "reserved for another");
	add_left(&rest, left->delayed, "delayed");
	cli_warn(cli, "nothing to take: %s%s%s", err->message, rest.len > 0 ? "; " : "", buf_z(&rest));
	out_json(cli, kv_str("state", "empty"), kv_size("ready", left->ready), kv_size("claimed", left->claimed),
	    kv_size("mine", left->mine), kv_size("reserved", left->reserved), kv_size("delayed", left->delayed));
}

static int
say_nothing(struct cli *cli, const struct request *want, const struct mr_error *err, const struct mr_queue_left *left)
{
	if (want->queue && err->hint[0])
		cli_warn(cli, "%s (it is kept; 'mailroom doctor' says more)", err->hint);
	if (want->queue) {
		say_left(cli, err, left);
		return EXIT_NOTHING;
	}
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct printout l = { .cli = cli };

	printout_unreadable(&l);
	text_name(cli, &name, cli->self.agent);
	cli_warn(
	    cli, "nothing to take: no unread mail for %s%s", buf_z(&name), l.trouble > 0 ? " that can be read" : "");
	return EXIT_NOTHING;
}

static int
take(struct cli *cli, const struct request *want, struct mr_names *tokens, struct buf *lines)
{
	while ((int64_t)tokens->n < want->limit && !cli->budget.full) {
		struct mr_error err = { 0 };
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		int64_t wait_ms = tokens->n == 0 ? want->wait_ms : 0;
		enum mr_rc rc = want->queue ? take_queued(cli, want, wait_ms, &claim, &msg, &err)
					    : take_own(cli, want, wait_ms, &claim, &msg, &err);

		if ((rc == MR_EMPTY || rc == MR_BUSY) && tokens->n > 0)
			break;
		if (rc == MR_EMPTY)
			return say_nothing(cli, want, &err, &claim.left);
		if (rc != MR_OK)
			return cli_fail(cli, &err);
		if (claim.skipped[0])
			cli_warn(cli, "%s (it is kept; 'mailroom doctor' says more)", claim.skipped);
		(void)names_add(tokens, str_of(claim.token));
		print_claim(cli, &claim, &msg, lines);
		mr_message_done(&msg);
	}
	return EXIT_DONE;
}

/* An operand is a queue, with or without its prefix. */
static bool
read_request(struct cli *cli, struct request *ret)
{
	const struct recv_options *o = cli->opts;
	static const char *const filters[] = { "from", "type", "priority", "thread", "since", NULL };
	const char *filter = opt_first_given(cli, filters);

	*ret = (struct request){ .queue = cli->argc > 0 ? cli->argv[0] : NULL, .limit = o->limit };
	ret->lease_ms = o->lease_ms >= 0 ? o->lease_ms : ret->queue ? 0 : DEFAULT_LEASE_MS;
	ret->wait_ms = o->wait_ms > 0 ? o->wait_ms : 0;
	ret->filter = filter_of(cli, &o->filter);
	budget_begin(cli);
	if (o->lease_ms == 0 || ret->limit <= 0) {
		cli_usage(cli, "--lease and --limit must be more than nothing");
		return false;
	}
	ret->filter.life = cli->self.life; /* what it left for the next one is no work for this one */
	ret->until_drained = o->until_drained;
	if (ret->until_drained && !ret->queue) {
		cli_usage(cli, "--until-drained needs a queue: mailroom recv queue:NAME --until-drained");
		return false;
	}
	if (ret->queue && filter) {
		cli_usage(cli, "a queue gives out what is next: --%s is for your own mail", filter);
		return false;
	}
	return true;
}

int
cmd_recv(struct cli *cli)
{
	struct request want;
	struct mr_names tokens = { 0 };

	if (!read_request(cli, &want))
		return EXIT_USAGE;
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	int code = take(cli, &want, &tokens, &lines);
	if (!cli->json && tokens.n > 0) {
		budget_end(cli, "message", "mailroom read ID");
		buf_addf(&lines, "when finished: mailroom done %s\n", tokens.v[0]);
		buf_add(&lines, buf_str(&cli->out));
		buf_clear(&cli->out);
		buf_add(&cli->out, buf_str(&lines));
	}
	if (!cli_flush(cli)) {
		give_back(cli, &tokens);
		code = EXIT_FAILED;
	}
	mr_names_done(&tokens);
	return code;
}
