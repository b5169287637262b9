/* SPDX-License-Identifier: MIT */
/* mailroom done, release, fail, extend: how a claim ends, or goes on. One shape for all four. */
#include "cli.h"

#include "base/clock.h"
#include "helptext.h"

struct settled {
	char id[MR_ID_LEN + 1];
	char answer[MR_ID_LEN + 1]; /* of a result that was sent; or "" */
};
typedef enum mr_rc settle_fn(struct cli *cli, const char *what, struct settled *ret, struct mr_error *err);

static int
report(struct cli *cli, const char *verb, const struct settled *got, const struct mr_error *err)
{
	if (err->hint[0])
		cli_warn(cli, "%s", err->hint);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_str(&j, "id", got->id);
		json_key_str(&j, "state", verb);
		if (got->answer[0])
			json_key_str(&j, "answer", got->answer);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s %s\n", verb, got->id);
		if (got->answer[0])
			fence_addf(&cli->out, "answered with %s\n", got->answer);
	}
	return EXIT_DONE;
}

static int
settle_each(struct cli *cli, settle_fn *settle, const char *verb)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		struct mr_error err = { 0 };
		struct settled got = { 0 };
		if (settle(cli, cli->argv[i], &got, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		(void)report(cli, verb, &got, &err);
	}
	return code;
}

static enum mr_rc
finish(struct cli *cli, const char *what, struct settled *ret, struct mr_error *err)
{
	return mr_claim_done(cli->room, &cli->self, what, ret->id, err);
}

static enum mr_rc
put_back(struct cli *cli, const char *what, struct settled *ret, struct mr_error *err)
{
	const struct release_options *o = cli->opts;
	struct mr_release how = { .reason = o->reason, .to = o->to, .to_ms = o->for_ms > 0 ? o->for_ms : 0 };

	return mr_claim_put_back(cli->room, &cli->self, what, &how, ret->id, err);
}

static enum mr_rc
give_up(struct cli *cli, const char *what, struct settled *ret, struct mr_error *err)
{
	const struct fail_options *o = cli->opts;

	return mr_claim_fail(cli->room, &cli->self, what, o->reason, ret->id, err);
}

int
cmd_done(struct cli *cli)
{
	const struct done_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	const char *text = o->message, *file = o->file;
	struct settled got = { 0 };
	struct mr_error err = { 0 };

	/* Without an option stdin is not read: agents settle in loops whose input is something else. */
	if (!text && !file)
		return settle_each(cli, finish, "done");
	if (cli->argc != 1)
		return cli_usage(cli, "a result answers one message: give one TOKEN");
	int code = cli_body(cli, text, file, &body);
	if (code != EXIT_DONE)
		return code;
	struct mr_draft result = { .body = buf_z(&body), .body_len = body.len };
	if (mr_claim_answer(cli->room, &cli->self, cli->argv[0], &result, got.id, got.answer, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	return report(cli, "done", &got, &err);
}

int
cmd_release(struct cli *cli)
{
	const struct release_options *o = cli->opts;

	if (o->for_ms >= 0 && (o->for_ms == 0 || !o->to))
		return cli_usage(cli, "--for is how long only --to AGENT may take it: more than nothing");
	return settle_each(cli, put_back, "released");
}

int
cmd_fail(struct cli *cli)
{
	const struct fail_options *o = cli->opts;

	if (o->reason == NULL)
		return cli_usage(cli, "say why with --reason: the sender reads it");
	return settle_each(cli, give_up, "failed");
}

int
cmd_extend(struct cli *cli)
{
	const struct extend_options *o = cli->opts;
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };

	if (o->lease_ms <= 0)
		return cli_usage(cli, "--lease must be more than nothing");
	if (mr_claim_extend(cli->room, &cli->self, cli->argv[0], o->lease_ms, &claim, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_str(&j, "id", claim.id);
		json_key_str(&j, "token", claim.token);
		json_key_int(&j, "attempt", claim.attempt);
		json_key_time(&j, "lease_until", claim.deadline_ms);
		out_json_line(cli, &j);
	} else {
		char until[RFC3339_LEN + 1];
		time_rfc3339(claim.deadline_ms, until);
		fence_addf(&cli->out, "%s is yours until %s\n", claim.id, until);
	}
	return EXIT_DONE;
}
