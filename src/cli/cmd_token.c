/* SPDX-License-Identifier: MIT */
/* cmd_token.c - tokens of the HTTP door: make, list, take back. */
#include "helptext.h"

#define NAME_SHOWN 8 /* of 64 digits: enough to tell tokens apart */

int
cmd_token_create(struct cli *cli, const struct token_options *o)
{
	bool agent = cli->argc > 0;
	struct mr_token token = { .read_only = o->read_only };
	char secret[MR_SECRET_LEN + 1], name[NAME_SHOWN + 1];

	TRY_CLI(env_not_in_session(cli, "making a token", &cli->err));
	text_join(token.agent, sizeof(token.agent), agent ? cli->argv[0] : "operator", NULL);
	if (agent)
		TRY_CLI(mr_address_check(cli->argv[0], &cli->err));
	if (!agent && !token.read_only)
		return cli_usage(cli, "name an agent, or give --read-only for a link that only shows the room");
	token.expires_ms = o->expires_ms > 0 ? clock_now_ms() + o->expires_ms : 0;
	TRY_CLI(mr_token_create(cli->room, &token, secret, &token, &cli->err));
	text_join(name, sizeof(name), token.name, NULL);
	if (out_json(cli, kv_str("name", name), kv_str("token", secret), kv_str("agent", token.agent),
		kv_bool("read_only", token.read_only), kv_time("expires", token.expires_ms)))
		return EXIT_DONE;
	buf_addf(&cli->out, "%s%s\n", agent ? "" : "http://127.0.0.1:8025/login?token=", secret);
	cli_warn(cli, "token %s is shown once; mailroom token revoke %s takes it back", name, name);
	return EXIT_DONE;
}

int
cmd_token_list(struct cli *cli, const struct token_options *)
{
	struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_tokens all = { 0 };

	TRY_CLI(mr_token_list(cli->room, &all, &cli->err));
	for (size_t i = 0; i < all.n; i++) {
		const struct mr_token *t = &all.v[i];
		char name[NAME_SHOWN + 1];

		text_join(name, sizeof(name), t->name, NULL);
		list_row(&list, col("NAME", kv_str("name", name)), col_name("AGENT", kv_str("agent", t->agent)),
		    col_str("MAY", t->read_only ? "look" : "act"), kv_bool("read_only", t->read_only),
		    col_str("KIND", t->browser ? "browser" : "token"), kv_bool("browser", t->browser),
		    col("CREATED", kv_time("created", t->created_ms)), kv_time("expires", t->expires_ms));
	}
	return list_end(&list, "no tokens\n");
}

int
cmd_token_revoke(struct cli *cli, const struct token_options *)
{
	struct mr_token token;

	TRY_CLI(env_not_in_session(cli, "taking a token back", &cli->err));
	TRY_CLI(mr_token_revoke(cli->room, cli->argv[0], &token, &cli->err));
	token.name[NAME_SHOWN] = '\0';
	return out_answer(cli,
	    CELLS(kv_str("name", token.name), kv_str("agent", token.agent), kv_str("state", "revoked")),
	    "revoked %s of %s\n", token.name, token.agent);
}
