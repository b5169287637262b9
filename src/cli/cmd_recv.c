/* SPDX-License-Identifier: MIT */
/* cmd_recv.c - mailroom recv: takes work under a lease, from the agent's own mail or from a queue. 'done' finishes it;
 * the work of a dead agent comes back. */
#include "cli/printout.h"
#include "helptext.h"

#define DRAIN_SLICE_MS 1000

struct request {
	const char *queue; /* with or without its prefix; NULL: the agent's own mail */
	struct mr_filter filter;
	int64_t lease_ms;
	bool until_drained;
	bool bounded; /* by --wait */
};

static enum mr_rc
take_own(struct cli *cli, const struct request *want, int64_t wait_ms, struct mr_claim *claim, struct mr_message *msg)
{
	int64_t deadline_ms = clock_boot_ms() + wait_ms;

	for (;;) {
		enum mr_rc rc = mr_recv(cli->room, &cli->self, &want->filter, want->lease_ms, claim, msg, &cli->err);
		int64_t rest_ms = deadline_ms - clock_boot_ms();

		if (rc != MR_EMPTY || wait_ms == 0 || rest_ms <= 0)
			return rc;
		cli->err = (struct mr_error){ 0 };
		TRY(mr_wait(cli->room, cli->self.agent, &want->filter, rest_ms, NULL, &cli->err));
	}
}

/* With --until-drained it waits in short slices, because the end of another agent's claim wakes nobody. */
static enum mr_rc
take_queued(
    struct cli *cli, const struct request *want, int64_t wait_ms, struct mr_claim *claim, struct mr_message *msg)
{
	int64_t deadline_ms = clock_boot_ms() + wait_ms, slice_ms = want->until_drained ? 0 : wait_ms;
	const struct mr_queue_left *left = &claim->left;

	for (;;) {
		cli->err = (struct mr_error){ 0 };
		enum mr_rc rc =
		    mr_queue_recv(cli->room, &cli->self, want->queue, want->lease_ms, slice_ms, claim, msg, &cli->err);
		int64_t rest_ms = want->bounded ? deadline_ms - clock_boot_ms() : DRAIN_SLICE_MS;

		if (!want->until_drained || (rc != MR_EMPTY && rc != MR_BUSY) || rest_ms <= 0 ||
		    (rc == MR_EMPTY && left->ready + left->reserved + left->delayed + left->claimed == left->mine))
			return rc;
		slice_ms = rest_ms < DRAIN_SLICE_MS ? rest_ms : DRAIN_SLICE_MS;
	}
}

/* The queue has nothing for us. Says what may still come. */
static int
say_left(struct cli *cli, const struct mr_queue_left *left)
{
	const struct {
		size_t n;
		const char *what;
	} parts[] = { { left->ready, "ready" }, { left->claimed - left->mine, "claimed by others and may come back" },
		{ left->mine, "in your hands" }, { left->reserved, "reserved for another" },
		{ left->delayed, "delayed" } };
	mr_auto(buf_done) struct buf rest = BUF_INIT;

	if (cli->err.hint[0])
		cli_warn(cli, "%s (it is kept; 'mailroom doctor' says more)", cli->err.hint);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].n > 0)
			buf_addf(&rest, "%s%zu %s %s", rest.len > 0 ? ", " : "; ", parts[i].n,
			    parts[i].n == 1 ? "is" : "are", parts[i].what);
	cli_warn(cli, "nothing to take: %s%s", cli->err.message, buf_z(&rest));
	out_json(cli, kv_str("state", "empty"), kv_size("ready", left->ready), kv_size("claimed", left->claimed),
	    kv_size("mine", left->mine), kv_size("reserved", left->reserved), kv_size("delayed", left->delayed));
	return EXIT_NOTHING;
}

/* The tokens stand in front of the fence, all of them: inside, mail could imitate one. */
static void
print_claim(struct cli *cli, const struct mr_claim *claim, const struct mr_message *msg, struct buf *tokens)
{
	char of[24] = "";
	size_t before = tokens->len;

	if (cli->json) {
		out_json_message(cli, NULL, msg, true,
		    CELLS(claim->attempts > 0 ? kv_int("attempts", claim->attempts) : kv_none(),
			kv_time("lease_until", claim->deadline_ms)));
		return;
	}
	if (claim->attempts > 0)
		(void)snprintf(of, sizeof(of), " of %u", claim->attempts);
	fence_addf(tokens, "token %s for %s, attempt %u%s, yours until %s\n", claim->token, claim->id, claim->attempt,
	    of, dated(claim->deadline_ms).text);
	cli->budget.used += (int64_t)(tokens->len - before);
	(void)budget_message(cli, msg, 0);
}

/* Of a message that is not shown. */
static void
put_back(struct cli *cli, const char *token)
{
	char id[MR_ID_LEN + 1];

	(void)mr_claim_release(cli->room, &cli->self, token, &(struct mr_release){ .unseen = true }, id, IGNORED);
}

int
cmd_recv(struct cli *cli, const struct recv_options *o)
{
	struct request want = {
		.queue = cli->argc > 0 ? cli->argv[0] : NULL,
		.filter = filter_of(cli, &o->filter),
		.until_drained = o->until_drained,
		.bounded = !o->until_drained || o->wait_ms >= 0,
	};
	mr_auto(mr_names_done) struct mr_names tokens = { 0 };
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	int code = EXIT_DONE;

	want.lease_ms = o->lease_ms >= 0 ? o->lease_ms : 0;
	want.filter.life = cli->self.life; /* hand-offs of this life are for the next one */
	budget_begin(cli);
	while ((int64_t)tokens.n < o->limit && !cli->budget.full && code == EXIT_DONE) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_claim claim = { 0 };
		int64_t wait_ms = tokens.n == 0 && o->wait_ms > 0 ? o->wait_ms : 0; /* for the first */
		enum mr_rc rc = (want.queue ? take_queued : take_own)(cli, &want, wait_ms, &claim, &msg);

		if ((rc == MR_EMPTY || rc == MR_BUSY) && tokens.n > 0)
			break;
		if (rc == MR_EMPTY) {
			code = want.queue ? say_left(cli, &claim.left)
					  : printout_nothing(cli, "nothing to take: no unread mail for");
		} else if (rc != MR_OK) {
			code = cli_fail(cli, &cli->err);
		} else if (!names_add(&tokens, str_of(claim.token))) {
			put_back(cli, claim.token);
			(void)mr_nomem(&cli->err);
			code = cli_fail(cli, &cli->err);
		} else {
			if (claim.skipped[0])
				cli_warn(cli, "%s (it is kept; 'mailroom doctor' says more)", claim.skipped);
			print_claim(cli, &claim, &msg, &lines);
		}
	}
	if (!cli->json && tokens.n > 0) {
		budget_end(cli, "message", "mailroom read ID");
		buf_addf(&lines, "when finished: mailroom done %s\n", tokens.v[0]);
		buf_add(&lines, buf_str(&cli->out));
		buf_clear(&cli->out);
		buf_add(&cli->out, buf_str(&lines));
	}
	if (cli_flush(cli))
		return code;
	for (size_t i = 0; i < tokens.n; i++)
		put_back(cli, tokens.v[i]);
	return EXIT_FAILED;
}
